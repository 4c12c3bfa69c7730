"""Workers: limits that hold, deaths that cost one task, parents that do not leave orphans."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from multiprocessing.connection import wait as wait_for

import pytest

from mipmech.workers import processes
from mipmech.workers.executor import ExecutorLost, Task
from mipmech.workers.processes import ONE_THREAD, Processes

pytestmark = pytest.mark.slow  # programs that start, hang and die
PATIENT = 120.0
MEGABYTE = 1 << 20


def hang():
    while True:
        pass


def eat():
    """Grow by some megabytes at a time, for ever."""
    eaten = []
    while True:
        eaten.append(bytearray(4 * MEGABYTE))
        time.sleep(0.001)


def gulp():
    return len(bytearray(64 << 30))


def crash():
    os.kill(os.getpid(), signal.SIGSEGV)


def shout():
    print("a last word")
    os._exit(9)


def settings():
    return [os.environ.get(name) for name in ONE_THREAD]


def own_number():
    return os.getpid()


def ignores_ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)
    return "still here"


def die_once(path):
    """Dies if it is the first to come."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return "second"
    os._exit(1)


def all_of(executor, tasks):
    """Do the tasks; how each ended."""
    waiting, ended = list(tasks)[::-1], {}
    while waiting or executor.running:
        while waiting and executor.free:
            executor.give(waiting.pop())
        ended |= {end.key: end for end in executor.wait(PATIENT)}
    return ended


@pytest.fixture
def executor():
    with Processes(2) as made:
        yield made


def test_results_and_errors_come_back(executor):
    tasks = [Task(str(n), math.sqrt, (n,)) for n in (4, -1, 9)]
    ended = all_of(executor, tasks)
    assert (ended["4"].how, ended["4"].result, ended["9"].result) == ("done", 2.0, 3.0)
    assert (ended["-1"].how, ended["-1"].result) == ("error", None)
    assert ended["-1"].reason.startswith("ValueError: ")
    assert all(end.memory > MEGABYTE for end in ended.values())


def test_workers_are_kept_and_use_one_thread(executor):
    ended = all_of(executor, [Task(str(n), own_number) for n in range(6)])
    assert 1 <= len({end.result for end in ended.values()}) <= 2
    assert all_of(executor, [Task("threads", settings)])["threads"].result == ["1"] * 4


def test_a_task_that_hangs_is_ended(executor):
    ended = all_of(executor, [Task("hang", hang, seconds=0.3), Task("fine", math.sqrt, (4,))])
    assert ended["hang"].how == "time"
    assert ended["hang"].reason == "it did not end within 0.3 s; the worker was killed"
    assert ended["hang"].seconds >= 0.3
    assert ended["fine"].result == 2.0


def test_preparing_does_not_count(executor):
    """What comes before the clock starts may take longer than the limit."""
    ended = all_of(executor, [Task("slow", math.sqrt, (4,), prepare=_nap, seconds=0.2)])
    assert ended["slow"].result == 2.0
    assert ended["slow"].seconds < 0.2


def _nap():
    begun = time.monotonic()
    while time.monotonic() < begun + 0.5:
        pass


def test_a_task_that_is_never_ready_is_ended(executor, monkeypatch):
    monkeypatch.setattr(processes, "PREPARING", 0.3)
    ended = all_of(executor, [Task("never", math.sqrt, (4,), prepare=hang)])
    assert ended["never"].how == "time"
    assert "not ready" in ended["never"].reason


def test_a_task_that_eats_memory_is_ended(executor):
    limit = 200 * MEGABYTE
    tasks = [Task("eat", eat, memory=limit), Task("gulp", gulp, memory=limit)]
    ended = all_of(executor, [*tasks, Task("after", own_number)])
    assert (ended["eat"].how, ended["gulp"].how) == ("memory", "memory")
    # It is looked at some twenty times a second, and fenced in besides.
    assert limit < ended["eat"].memory < 2 * limit + 256 * MEGABYTE
    assert ended["gulp"].reason == "out of memory"
    assert ended["after"].how == "done"


def leave_behind():
    _KEPT.append(bytearray(500 * MEGABYTE))


_KEPT: list[bytearray] = []


def test_what_one_task_leaves_behind_is_not_charged_to_the_next():
    with Processes(1) as single:
        tasks = [Task("messy", leave_behind), Task("tidy", _nap, memory=400 * MEGABYTE)]
        ended = all_of(single, tasks)
    assert [end.how for end in ended.values()] == ["done", "done"]


def start_a_program(path):
    """As a solver does that is a program of its own."""
    with subprocess.Popen(["sleep", "1000"]) as program:
        with open(path, "w") as stream:
            stream.write(str(program.pid))
        program.wait()


def test_a_killed_worker_takes_its_programs_along(tmp_path):
    file = tmp_path / "number"
    with Processes(1) as single:
        single.give(Task("solver", start_a_program, (str(file),), seconds=1000.0))
        while not file.exists() or not file.read_text():
            single.wait(0.05)
        handle = os.pidfd_open(int(file.read_text()))
    assert wait_for([handle], PATIENT), "a solver lives on without its worker"
    os.close(handle)


def test_workers_that_cannot_start(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with Processes(1) as single, pytest.raises(ExecutorLost, match="no worker process can be"):
        single.give(Task("large", len, (bytes(64 * MEGABYTE),)))


def test_no_limit_is_left_behind():
    """The fence of one task does not stand in the way of the next."""
    with Processes(1) as single:
        tasks = [Task("fenced", own_number, memory=400 * MEGABYTE), Task("large", _large)]
        ended = all_of(single, tasks)
        assert ended["large"].result == 1200 * MEGABYTE


def _large():
    return len(bytearray(1200 * MEGABYTE))


def test_a_crash_is_told_with_its_signal_and_last_words(executor):
    ended = all_of(executor, [Task("crash", crash), Task("shout", shout)])
    assert (ended["crash"].how, ended["shout"].how) == ("died", "died")
    assert ended["crash"].reason.startswith("the worker process was killed by SIGSEGV; it said: ")
    assert "Segmentation fault" in ended["crash"].reason
    assert ended["shout"].reason.startswith("the worker process ended with status 9")


def test_a_worker_killed_while_idle_is_replaced():
    with Processes(1) as single:
        first = all_of(single, [Task("a", own_number)])["a"].result
        os.kill(first, signal.SIGKILL)
        second = all_of(single, [Task("b", own_number)])["b"]
        if second.how == "died":  # it was given the task before its death was noticed
            second = all_of(single, [Task("b", own_number)])["b"]
        assert second.result != first


def test_ctrl_c_is_not_for_workers(executor):
    assert all_of(executor, [Task("deaf", ignores_ctrl_c)])["deaf"].result == "still here"


def test_a_paused_program_does_not_end_its_tasks():
    """If the clock leaps because we stood still ourselves, workers are given the time back."""
    leap = 0.0
    with Processes(1, clock=lambda: time.monotonic() + leap) as executor:
        executor.give(Task("naps", _nap, seconds=30.0))
        assert executor.wait(0.0) == []
        leap = 3600.0
        ended = []
        while executor.running:
            ended += executor.wait(1.0)
        assert [end.how for end in ended] == ["done"]


def test_close_ends_what_runs():
    executor = Processes(2)
    executor.give(Task("hang", hang))
    (process,) = executor._all
    executor.close()
    assert process.process.poll() is not None
    assert executor.running == 0


def test_no_orphans():
    """Killed without warning, a parent leaves no worker behind, not even one that is busy."""
    program = (
        "import sys, tests.workers.test_processes as t\n"
        "from mipmech.workers import *\n"
        "executor = Processes(2)\n"
        "executor.give(Task('hang', t.hang)); executor.give(Task('hang', t.hang))\n"
        "while not all(one.began for one in executor._all): executor.wait(0.1)\n"
        "print(*(one.process.pid for one in executor._all), flush=True)\n"
        "executor.wait(1000)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        numbers = [int(word) for word in parent.stdout.readline().split()]
        handles = [os.pidfd_open(number) for number in numbers]
        parent.kill()
    for handle in handles:
        assert wait_for([handle], PATIENT), "a worker lives on without its parent"
        os.close(handle)
