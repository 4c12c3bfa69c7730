"""One instance on many workers: the same certificate, whoever searches, checks, dies or stops."""

from __future__ import annotations

import base64
import dataclasses
import functools
import json
import lzma
import os
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import mipmech
from mipmech import Budget, Instance, certify, make_instance
from mipmech.budget import Event, Stop
from mipmech.checker.leaves import Checked
from mipmech.checker.verdict import check, seal
from mipmech.cli import main
from mipmech.design.certificate import check_on
from mipmech.oracles.cells import search as cell_search
from mipmech.oracles.cells.engine import gain_problem
from mipmech.workers.executor import Ended, ExecutorLost
from mipmech.workers.ordered import STOPPED, ExecutorPool, Serial, ThreadPool, each, open_pool
from mipmech.workers.processes import Processes
from tests.conftest import ROOT

EXAMPLE = str(ROOT / "instances" / "paper" / "example1.json")


class Few:
    """Some of the workers of an executor."""

    def __init__(self, executor, slots):
        self.executor, self.slots = executor, slots

    running = property(lambda self: self.executor.running)
    free = property(lambda self: max(0, self.slots - self.running))

    def give(self, task):
        assert self.free
        self.executor.give(task)

    def wait(self, seconds):
        return self.executor.wait(seconds)


@pytest.fixture(scope="module")
def teams():
    """One, two and three workers; they live through the whole file, since starting takes long."""
    with Processes(3) as executor:
        yield {1: Few(executor, 1), 2: Few(executor, 2), 3: executor}


@pytest.fixture
def long_search(monkeypatch):
    """Small searches count as long ones: many blocks, several lots under way, growing budgets."""
    monkeypatch.setattr(cell_search, "FIRST_BUDGET", 5_000)
    monkeypatch.setattr(cell_search, "LAST_BUDGET", 20_000)
    monkeypatch.setattr(cell_search, "LONG_SHARE", 1 / 16)
    monkeypatch.setattr(cell_search, "LONG_BUDGET", 60_000)
    monkeypatch.setattr(cell_search, "LONG_SEARCH", 2_000)
    # Parts as small as that, too, so that there are many of them.
    monkeypatch.setattr(sys.modules["mipmech.checker.leaves"], "PART", 1 << 14)


SAMPLES = {
    2: (make_instance("ties", 40, 2, seed=2), 1e-4),
    3: (make_instance("costs", 80, 3, seed=3), 1e-4),
    4: (make_instance("gaussian-mixture", 30, 4, seed=4), 1e-3),
    5: (make_instance("gaussian-mixture", 15, 5, seed=5), 3e-2),
}


@functools.cache
def known(rank):
    """The certificate that one thread finds (in a long search)."""
    sample, gap = SAMPLES[rank]
    return certify(sample, gap=gap)


# ------------------------------------------------------------------ the same certificate


@pytest.mark.slow
@pytest.mark.parametrize("rank", SAMPLES)
@pytest.mark.usefixtures("long_search")
def test_workers_do_not_change_the_certificate(rank, teams):
    sample, gap = SAMPLES[rank]
    alone = known(rank)
    content = alone.content()
    assert alone.status == "optimal"
    assert certify(sample, gap=gap, budget=Budget(threads=2)).content() == content
    for executor in teams.values():
        found = certify(sample, gap=gap, executor=executor)
        assert found.content() == content
        assert found.stop is Stop.FINISHED
        assert (found.lower, found.upper, found.mechanism) == (
            alone.lower, alone.upper, alone.mechanism
        )  # fmt: skip
    assert check(content, sample)


def test_the_same_without_any_setting(teams):
    sample = make_instance("gaussian-mixture", 200, 3, seed=1)
    content = certify(sample, gap=1e-4).content()
    for count in (1, 2):
        assert certify(sample, gap=1e-4, executor=teams[count]).content() == content


@pytest.mark.parametrize("quality", [[1.0, 0.5], [0.0, 1.0]])
def test_one_dimension_and_nothing_to_see(quality, teams):
    """k = 1; and P w_f = 0, where there is nothing to search."""
    agents = np.random.default_rng(0).standard_normal((20, 2))
    sample = Instance.from_arrays(agents, quality, visible=[0], cost=2.0)
    content = certify(sample).content()
    found = certify(sample, executor=teams[2])
    assert found.content() == content
    assert found.status == "optimal"
    assert check_on(teams[2], content, sample).accepted


@pytest.mark.usefixtures("long_search")
def test_progress_is_told_as_ever(teams):
    sample, gap = SAMPLES[4]
    events: dict[str, list[Event]] = {"here": [], "there": []}
    certify(sample, gap=gap, budget=Budget(watch=events["here"].append))
    there = Budget(watch=events["there"].append)
    certify(sample, gap=gap, budget=there, executor=teams[2])
    here, there = (
        [(e.lower, e.upper, e.work) for e in told if not e.note] for told in events.values()
    )
    assert here == there
    assert len(here) > 5
    assert any(event.note.startswith("checking: ") for event in events["there"])


@pytest.mark.usefixtures("long_search")
def test_budgets_and_lots_grow_with_the_search():
    """The rule itself: few small blocks at first, then more and larger ones."""
    sample = make_instance("uniform-ball", 40, 4, seed=1)
    given = []
    plain = cell_search.CellSearch._give

    class Search(cell_search.CellSearch):
        def _give(self, pool):
            plain(self, pool)
            given.append((self._under_way[-1].orders.budget, len(self._under_way)))

    timer = Budget().start()
    problem = gain_problem(mipmech.model.reduce(sample))
    search = Search(problem, lambda _v, _value: 0.0, timer, factor=1.0)
    search.best = 0.9 * float(problem.values(np.eye(4)).max())
    assert search.run(most=200_000) in (Stop.NODES, Stop.FINISHED)
    budgets, lots = zip(*given, strict=True)
    assert list(budgets) == sorted(budgets)
    assert budgets[:4] == (5_000, 10_000, 20_000, 20_000)
    assert budgets[-1] > 20_000
    assert lots[0] == 1
    assert max(lots) == cell_search.LOTS


# ------------------------------------------------------------------ the check


def altered(found):
    """A certificate that claims a little too much."""
    middle = float((found.lower + Fraction(found.upper)) / 2)
    return dataclasses.replace(found, upper=middle).content()


@pytest.mark.usefixtures("long_search")
def test_the_checker_on_workers_says_the_same(teams):
    sample = SAMPLES[3][0]
    content, claims_too_much = known(3).content(), altered(known(3))
    here, there = check(content, sample), check_on(teams[3], content, sample)
    assert here.accepted
    assert dataclasses.replace(here, seconds=0) == dataclasses.replace(there, seconds=0)
    here, there = check(claims_too_much, sample), check_on(teams[3], claims_too_much, sample)
    assert not here.accepted
    assert dataclasses.replace(here, seconds=0) == dataclasses.replace(there, seconds=0)


@pytest.mark.usefixtures("long_search")
def test_a_tree_that_is_cut_too_finely_is_noticed_in_a_part(teams):
    """What a part is rejected for comes back as the reason."""
    sample, content = SAMPLES[2][0], dict(known(2).content())
    symbols = bytes([3, 0, 0, 0]) + 60 * bytes([3, 0]) + bytes([0, 0])
    packed = base64.b85encode(lzma.compress(symbols)).decode()
    content["proof"] = content["proof"] | {"tree": packed}
    content["seal"] = seal(content)
    for verdict in (check(content, sample), check_on(teams[2], content, sample)):
        assert not verdict.accepted
        assert "finer than floats" in verdict.reason


def in_between(change):
    """An ``each`` that changes the list of answers."""

    def each_of(work, parts):
        return change([work(part) for part in parts])

    return each_of


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda answers: answers[:-1], "not checked"),
        (lambda answers: answers[1:], ""),
        (lambda answers: [*answers, answers[0]], "more answers"),
        (lambda answers: [Checked(1, 0.0), *answers[1:]], "came back"),
        (lambda answers: [Checked(a.leaves, float("nan")) for a in answers], "finite"),
        (lambda answers: [Checked(a.leaves, float("inf")) for a in answers], "finite"),
        (lambda _: [], "not checked"),
    ],
)
@pytest.mark.usefixtures("long_search")
def test_every_part_is_answered_for(change, reason):
    sample, content = SAMPLES[4][0], known(4).content()
    assert check(content, sample, each=in_between(list)).accepted
    verdict = check(content, sample, each=in_between(change))
    assert not verdict.accepted
    assert reason in verdict.reason


@pytest.mark.usefixtures("long_search")
def test_a_higher_bound_in_one_part_is_noticed():
    sample, content = SAMPLES[4][0], known(4).content()
    parts = []
    check(
        content, sample, each=lambda work, items: map(work, parts.append(list(items)) or parts[0])
    )
    assert len(parts[0]) > 10
    for chosen in range(0, len(parts[0]), 5):

        def raised(answers, chosen=chosen):
            high = dataclasses.replace(
                answers[chosen], highest=2.0 * max(a.highest for a in answers)
            )
            return [*answers[:chosen], high, *answers[chosen + 1 :]]

        verdict = check(content, sample, each=in_between(raised))
        assert not verdict.accepted
        assert "more than the claimed upper bound" in verdict.reason


@pytest.mark.usefixtures("long_search")
def test_parts_are_the_whole_tree():
    """Agents taken from one part alone do not go unnoticed: every part's leaves are computed."""
    sample, content = SAMPLES[3][0], known(3).content()
    seen = []

    def each_of(work, parts):
        for part in parts:
            answer = work(part)
            seen.append((part.leaves, answer.leaves, int(np.count_nonzero(part.symbols == 0))))
            yield answer

    verdict = check(content, sample, each=each_of)
    assert verdict.accepted
    assert all(a == b == c for a, b, c in seen)
    assert sum(a for a, _, _ in seen) <= verdict.leaves


# ------------------------------------------------------------------ trouble


class Killing(Few):
    """Processes, one of which is killed from outside every so many tasks."""

    def __init__(self, executor, every, most):
        super().__init__(executor, executor.slots)
        self.every, self.most = every, most
        self.given = self.killed = 0

    def give(self, task):
        super().give(task)
        self.given += 1
        if self.given % self.every == 0 and self.killed < self.most:
            busy = next(one for one in self.executor._all if one.task is task)
            os.kill(busy.process.pid, signal.SIGKILL)
            self.killed += 1


@pytest.mark.slow
@pytest.mark.usefixtures("long_search")
def test_killed_workers_cost_nothing_but_time(teams):
    (sample, gap), content = SAMPLES[4], known(4).content()
    killing = Killing(teams[3], 17, most=2)
    found = certify(sample, gap=gap, executor=killing)
    assert killing.killed == 2
    assert found.content() == content


class Failing:
    """An executor that does tasks itself, a few of them, and is lost then."""

    slots = 2

    def __init__(self, most, how="lost"):
        self.most, self.how = most, how
        self.done = 0
        self.given = []

    @property
    def running(self):
        return len(self.given)

    @property
    def free(self):
        return 4 - len(self.given)

    def give(self, task):
        self.given.append(task)

    def wait(self, _seconds):
        if not self.given:
            return []
        if self.done >= self.most and self.how == "lost":
            raise ExecutorLost("the lights went out")
        task = self.given.pop()  # the last first: answers come in any order
        self.done += 1
        if self.done > self.most:
            return [Ended(task.key, self.how, reason="no luck")]
        return [Ended(task.key, "done", task.work(*task.arguments))]

    def close(self):
        self.given.clear()


@pytest.mark.parametrize(
    ("most", "how"),
    [(0, "lost"), (0, "error"), (30, "lost"), (30, "died"), (30, "time"), (10**9, "lost")],
)
@pytest.mark.usefixtures("long_search")
def test_a_lost_executor_leaves_a_certificate_of_what_came_back(most, how):
    (sample, gap), full = SAMPLES[4], known(4)
    found = certify(sample, gap=gap, executor=Failing(most, how))
    if most == 10**9:
        assert found.content() == full.content()
        return
    assert found.stop is Stop.LOST
    assert found.status == "gap"
    assert found.check()
    assert found.lower <= Fraction(full.upper)
    assert full.lower <= Fraction(found.upper)
    assert found.work["nodes"] > 0 or most == 0


@pytest.mark.usefixtures("long_search")
def test_an_executor_lost_during_the_check():
    sample, gap = SAMPLES[4]
    counting = Failing(10**9)
    full = certify(sample, gap=gap, executor=counting)
    events: list[Event] = []
    budget = Budget(watch=events.append)
    found = certify(sample, gap=gap, budget=budget, executor=Failing(counting.done - 2))
    assert found.content() == full.content()
    assert any("the lights went out" in event.note for event in events)


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.5])
def test_time_limits(seconds, teams):
    sample = make_instance("uniform-ball", 60, 6, seed=1)
    certify(SAMPLES[2][0], executor=teams[2])  # its workers are there
    began = time.monotonic()
    found = certify(sample, gap=1e-6, budget=Budget(seconds=seconds), executor=teams[2])
    assert time.monotonic() - began < seconds + 10
    assert found.stop is Stop.TIME
    assert found.status == "gap"
    assert found.check()
    again = certify(SAMPLES[2][0], executor=teams[2])  # whatever its workers were left with
    assert again.content() == certify(SAMPLES[2][0]).content()


@pytest.mark.usefixtures("long_search")
def test_node_limits(teams):
    sample, gap = SAMPLES[4]
    limited = Budget(nodes=3_000)
    content = certify(sample, gap=gap, budget=limited).content()
    assert content["stop"] == Stop.NODES.value
    for executor in (teams[1], teams[3]):
        assert certify(sample, gap=gap, budget=limited, executor=executor).content() == content


# ------------------------------------------------------------------ crews


def square(x):
    return x * x


@pytest.mark.slow
def test_crews_answer_in_order(teams):
    for threads, executor in ((1, None), (3, None), (1, teams[2])):
        with open_pool(threads, executor) as pool:
            assert list(each(pool, 2, square, range(20))) == [x * x for x in range(20)]
            for x in range(3):
                pool.put(square, x)
            assert pool.take(lambda: False) is STOPPED or isinstance(pool, ExecutorPool)
            rest = pool.drop()
            assert all(answer is STOPPED or answer in (0, 1, 4) for answer in rest)
            assert pool.drop() == []
    with open_pool() as pool:
        assert isinstance(pool, Serial)
    with open_pool(2) as pool:
        assert isinstance(pool, ThreadPool)


# ------------------------------------------------------------------ the command line


def shown(capsys, *arguments):
    status = main([*map(str, arguments), "--json"])
    return status, json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_the_command_line(capsys, tmp_path):
    proofs = [tmp_path / "here.json", tmp_path / "there.json"]
    assert shown(capsys, "certify", EXAMPLE, "--out", proofs[0])[0] == 0
    assert shown(capsys, "certify", EXAMPLE, "--workers", 2, "--out", proofs[1])[0] == 0
    assert proofs[0].read_text() == proofs[1].read_text()
    status, verdict = shown(capsys, "check", proofs[0], "--workers", 2)
    assert (status, verdict["status"]) == (0, "accepted")
    for wrong in (["--workers", 2, "--threads", 2], ["--workers", 0]):
        status, said = shown(capsys, "certify", EXAMPLE, *wrong)
        assert (status, said["error"]["field"]) == (2, "workers")
    status, said = shown(capsys, "certify", EXAMPLE, "--workers", 1, "--engine", "milp")
    assert (status, said["error"]["field"]) == (2, "engine")


@pytest.mark.slow
def test_ctrl_c_and_a_killed_worker_from_outside(tmp_path):
    """A real program: a worker is killed, then somebody presses Ctrl-C."""
    sample, proof = tmp_path / "hard.json", tmp_path / "proof.json"
    make_instance("uniform-ball", 60, 6, seed=1).save(sample)
    code = (
        "import sys; from mipmech.cli import main\n"
        "import mipmech.budget as b\n"
        "tell = b.Timer.tell\n"
        "def told(self, lower, upper, work):\n"
        "    print(work, flush=True, file=sys.stderr)\n"
        "    return tell(self, lower, upper, work)\n"
        "b.Timer.tell = told\n"
        f"sys.exit(main(['certify', {str(sample)!r}, '--gap', '1e-6', '--workers', '2',"
        f" '--out', {str(proof)!r}, '--json']))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        try:
            out, err = killed_and_interrupted(program)
        finally:
            program.kill()
    assert "Traceback" not in err
    found = json.loads(out)
    assert (program.returncode, found["status"], found["stop"]) == (1, "gap", "interrupted")
    assert check(proof).accepted


def killed_and_interrupted(program):
    """Kill a worker as soon as there is work, and press Ctrl-C later; what the program said."""

    def wait_for(work):
        while int(program.stderr.readline()) < work:
            pass

    wait_for(1)
    children = Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()
    assert len(children) == 2
    os.kill(int(children[0]), signal.SIGKILL)
    wait_for(50_000)
    program.send_signal(signal.SIGINT)
    return program.communicate(timeout=120)
