"""Tasks on processes of this machine, with limits that hold.

To use an executor, give it tasks while some worker is `free`, and wait:

>>> with Processes(2) as executor:
...     for number in (9, 16):
...         executor.give(Task(str(number), math.sqrt, (number,)))
...     ended = executor.wait(60.0)
...     while executor.running:
...         ended += executor.wait(60.0)
>>> sorted((end.key, end.result) for end in ended)
[('16', 4.0), ('9', 3.0)]

Processes are started afresh, never forked (HiGHS hangs after a fork), and their libraries use one
thread each. Time is the monotonic clock's. A limit holds even if a solver hangs: the process is
killed, and the next task gets a new one.
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import IO, Any

from mipmech.workers.executor import HEARTBEAT, Ended, Executor, ExecutorLost, How, Task

# Thread pools of numerical libraries, as their documentation names them.
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
# Loading programs and compiling loops may take this long before a task's own clock starts.
PREPARING = 600.0
# If the program itself was suspended for longer (a paused machine), so were its tasks.
STALL = 5.0
# An idle worker that holds more than this share of a task's memory is replaced first.
FULL = 0.5
# If this many new workers die at once, none can be started.
STARTS = 3
# Seconds that a worker has to end by itself before it is killed.
FAREWELL = 2.0
# Characters of the output of a worker that died which are quoted in the reason.
LAST_WORDS = 400


@dataclass(eq=False)
class _Process:
    """A worker process and its task."""

    process: subprocess.Popen[bytes]
    pipe: Connection[Any, Any]
    said: IO[bytes]
    heard: int = 0
    task: Task | None = None
    given: float = 0.0
    began: float | None = None
    peak: int | None = None

    @property
    def deadline(self) -> float:
        """When its task is killed."""
        if self.task is None:
            return math.inf
        return self.given + PREPARING if self.began is None else self.began + self.task.seconds


@dataclass(eq=False)
class Processes(Executor):
    """Worker processes on this machine.

    clock : a monotonic clock, in seconds
    """

    workers: int
    clock: Callable[[], float] = time.monotonic
    _all: list[_Process] = field(default_factory=list)
    _looked: float = 0.0

    @property
    def slots(self) -> int:
        return self.workers

    @property
    def running(self) -> int:
        return sum(one.task is not None for one in self._all)

    def give(self, task: Task) -> None:
        """Start a task on an idle worker, or on a new one."""
        message = pickle.dumps((task.prepare, task.work, task.arguments, task.memory))
        for _ in range(len(self._all) + STARTS):
            one = self._idle(task.memory) or self._start()
            try:
                one.pipe.send_bytes(message)
                break
            except OSError:  # it died while it had nothing to do
                self._remove(one)
        else:
            raise ExecutorLost("no worker process can be started: each dies at once")
        now = self.clock()
        if not self.running:
            self._looked = now
        one.task, one.given, one.began, one.peak = task, now, None, None
        one.heard = os.fstat(one.said.fileno()).st_size

    def wait(self, seconds: float) -> list[Ended]:
        until = self.clock() + seconds
        while True:
            busy = [one for one in self._all if one.task is not None]
            pause = max(0.0, min(HEARTBEAT, until - self.clock()))
            if not busy:
                return []
            wait([one.pipe for one in busy], pause)
            self._excuse_stalls(busy, pause)
            ended = [end for one in busy if (end := self._look(one)) is not None]
            if ended or self.clock() >= until:
                return ended

    def close(self) -> None:
        for one in list(self._all):
            self._remove(one)

    # ------------------------------------------------------------ one worker

    def _idle(self, memory: int | None) -> _Process | None:
        """An idle worker that does not already hold much of the memory that the task may use."""
        for one in [one for one in self._all if one.task is None]:
            used = memory_of(one.process.pid) if memory is not None else None
            if memory is None or used is None or used <= FULL * memory:
                return one
            self._remove(one)
        return None

    def _start(self) -> _Process:
        ours, theirs = Pipe()
        said = tempfile.TemporaryFile()  # noqa: SIM115  (it lives as long as the worker)
        program = (
            f"import sys; sys.path[:] = {sys.path!r}; from mipmech.workers.child import main;"
            f" main({theirs.fileno()})"
        )
        with _ctrl_c_waits():
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", program],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                pass_fds=[theirs.fileno()],
                env={**os.environ, **dict.fromkeys(ONE_THREAD, "1")},
                process_group=0,  # whatever it starts ends with it
            )
        theirs.close()
        one = _Process(process, ours, said)
        self._all.append(one)
        return one

    def _remove(self, one: _Process) -> int | None:
        """End a worker; returns its exit status."""
        one.pipe.close()  # this is its end, unless it hangs
        if one.task is not None:
            _kill(one.process)
        try:
            status = one.process.wait(FAREWELL)
        except subprocess.TimeoutExpired:
            _kill(one.process)
            status = one.process.wait()
        one.said.close()
        self._all.remove(one)
        return status

    def _excuse_stalls(self, busy: list[_Process], pause: float) -> None:
        """If this program was suspended, give its workers the time back."""
        now = self.clock()
        excess = now - self._looked - pause
        if excess > STALL:
            for one in busy:
                one.given += excess
                one.began = None if one.began is None else one.began + excess
        self._looked = now

    def _look(self, one: _Process) -> Ended | None:
        """How a worker's task ended: by itself, at a limit, or by death; None if it is running."""
        assert one.task is not None
        try:
            while one.pipe.poll():
                kind, *rest = pickle.loads(one.pipe.recv_bytes())
                if kind == "began":
                    one.began = self.clock()
                    continue
                result, error, seconds, peak = rest
                how: How
                how, reason = error or ("done", None)
                ended = Ended(one.task.key, how, result, reason, seconds, peak, self._name(one))
                one.task = None
                if how == "memory":
                    self._remove(one)  # what it still holds would be charged to the next task
                return ended
        except (EOFError, OSError):
            return self._died(one)
        now = self.clock()
        used = memory_of(one.process.pid)
        if used is not None:
            one.peak = max(used, one.peak or 0)
        if one.task.memory is not None and (one.peak or 0) > one.task.memory:
            said = f"it used {one.peak or 0:,} bytes of memory, {one.task.memory:,} are allowed"
            return self._kill(one, "memory", said)
        if now > one.deadline:
            if one.began is None:
                return self._kill(one, "time", f"it was not ready to start after {PREPARING:g} s")
            said = f"it did not end within {one.task.seconds:g} s"
            return self._kill(one, "time", said)
        return None

    def _kill(self, one: _Process, how: How, reason: str) -> Ended:
        ended = self._ended(one, how, f"{reason}; the worker was killed")
        self._remove(one)
        return ended

    def _died(self, one: _Process) -> Ended:
        try:  # it closed its pipe: give it a moment to be gone, so that its own status is known
            status = one.process.wait(FAREWELL)
        except subprocess.TimeoutExpired:
            status = 0
        ended = self._ended(one, "died", f"the worker process {_death(status)}{_last_words(one)}")
        self._remove(one)
        return ended

    def _ended(self, one: _Process, how: How, reason: str) -> Ended:
        assert one.task is not None
        seconds = 0.0 if one.began is None else self.clock() - one.began
        return Ended(one.task.key, how, None, reason, seconds, one.peak, self._name(one))

    @staticmethod
    def _name(one: _Process) -> str:
        return f"{os.uname().nodename}/{one.process.pid}"


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a worker with all that it has started, such as a solver's own program."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Defer Ctrl-C while inside.

    A new process or thread inherits that, so that it cannot be hit before it ignores Ctrl-C itself.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _death(status: int) -> str:
    """How a process ended, by its exit status."""
    if status >= 0:
        return f"ended with status {status}"
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(-status).name}"
    return f"was killed by signal {-status}"


def _last_words(one: _Process) -> str:
    """The output of a worker during its last task, if any; of a long text, the start."""
    said = os.pread(one.said.fileno(), LAST_WORDS, one.heard)
    text = " ".join(said.decode(errors="replace").split())
    return f"; it said: {text}" if text else ""


def memory_of(process: int) -> int | None:
    """The bytes that a process has in memory now; None where that is unknown."""
    try:
        pages = Path(f"/proc/{process}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return None


def cores() -> int:
    """The cores that this process may use."""
    count = getattr(os, "sched_getaffinity", None)
    return len(count(0)) if count is not None else (os.cpu_count() or 1)
