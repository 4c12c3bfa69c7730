"""One hard instance on many workers: how much faster two are than one.

    python benchmarks/certify_workers.py [--quick] [--repeat N] [--only CASE] [--replay]

A time is that of a whole `certify`, with the check of the proof. Workers are processes of one
thread each and have been started, with the compiled code loaded, before the clock is. The ways to
do it take turns, as often as ``--repeat`` says, and medians are shown, because the machine may have
other things to do; its load is shown as well. Every certificate must be the same.

``--replay`` is for machines that are never quiet, and for more workers than there are cores. Every
task is done once, here, and its processor time is taken; then the same `certify` runs again and
again with virtual workers, whose clock advances by the time of the tasks that they would be doing
and by what this process itself uses in between. Nothing is assumed but that every worker and the
process that directs them have a core each, and that sending takes no time but that of packing.
"""

from __future__ import annotations

import argparse
import heapq
import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from time import perf_counter, process_time

from asking import ratio, say, table

from mipmech import Budget, Instance, certify, make_instance
from mipmech.design.certificate import Certificate
from mipmech.workers.executor import Ended, Executor, Task
from mipmech.workers.processes import Processes

# family, agents, rank, gap
CASES = [
    ("uniform-ball", 10_000, 3, 1e-3),
    ("gaussian-mixture", 20, 8, 1e-3),
]
QUICK = [("uniform-ball", 200, 4, 1e-3)]
WORKERS = {"1 worker": 1, "2 workers": 2}
THREADS = {"1 thread": 1, "2 threads": 2}


@contextmanager
def started(workers: int | None) -> Iterator[Executor | None]:
    """Workers that have done something already."""
    if workers is None:
        yield None
        return
    with Processes(workers) as executor:
        certify(make_instance("gaussian-mixture", 200, 3, 1), gap=1e-2, executor=executor)
        yield executor


def timed(sample: Instance, gap: float, way: str) -> tuple[float, Certificate]:
    budget = Budget(threads=THREADS.get(way, 1))
    with started(WORKERS.get(way)) as executor:
        start = perf_counter()
        found = certify(sample, gap=gap, budget=budget, executor=executor)
        return perf_counter() - start, found


def case(family: str, m: int, k: int, gap: float, repeat: int) -> list[str]:
    sample = make_instance(family, m, k, 1)
    times: dict[str, list[float]] = {way: [] for way in [*WORKERS, *THREADS]}
    loads = []
    first: Certificate | None = None
    for turn in range(repeat):
        for way, seconds in times.items():
            taken, found = timed(sample, gap, way)
            seconds.append(taken)
            loads.append(os.getloadavg()[0])
            first = first or found
            assert found.content() == first.content(), f"{way} found something else"
            say(f"{family} {m} {k}, {way}, turn {turn + 1}: {taken:.1f} s, load {loads[-1]:.1f}")
    assert first is not None
    typical = {way: median(seconds) for way, seconds in times.items()}
    one = typical["1 worker"]
    return [
        f"{family}, m = {m:,}, k = {k}, gap {gap:g}", f"{first.work['nodes']:,}",
        *(f"{typical[way]:.1f} s" for way in times),
        ratio(typical["2 workers"], one), ratio(typical["2 threads"], typical["1 thread"]),
        ratio(one, typical["1 thread"]), f"{min(loads):.1f} to {max(loads):.1f}",
    ]  # fmt: skip


class Virtual:
    """Workers on a virtual clock; ``known`` has the results and times of tasks done before."""

    def __init__(self, slots: int, known: list[tuple[bytes, float]]) -> None:
        self.slots, self.known = slots, known
        self.now = self.directing = 0.0
        self.given = 0
        self._ends: list[tuple[float, int, Ended]] = []
        self._serial = 0
        self._mark = process_time()

    @property
    def running(self) -> int:
        return len(self._ends)

    @property
    def free(self) -> int:
        return self.slots - self.running

    def tick(self) -> None:
        """What this process has used since the last time."""
        used = process_time() - self._mark
        self.now, self.directing = self.now + used, self.directing + used
        self._mark += used

    def give(self, task: Task) -> None:
        message = pickle.dumps(task)
        self.tick()
        end = Ended(task.key, "done")
        if task.work is not task.prepare:  # that would be waking a worker
            end = self._done(task.key, message)
        self._serial += 1
        heapq.heappush(self._ends, (self.now + end.seconds, self._serial, end))

    def _done(self, key: str, message: bytes) -> Ended:
        """Done now, or before: tasks come in the same order, however many workers there are."""
        if self.given == len(self.known):
            task = pickle.loads(message)
            start = process_time()
            result = task.work(*task.arguments)
            self.known.append((pickle.dumps(result), process_time() - start))
        packed, seconds = self.known[self.given]
        self.given += 1
        self._mark = process_time()
        return Ended(key, "done", pickle.loads(packed), None, seconds)

    def wait(self, seconds: float) -> list[Ended]:
        self.tick()
        if not self._ends:
            return []
        until = self._ends[0][0]
        if until > self.now + seconds:
            self.now += seconds
            return []
        self.now = max(self.now, until)
        return [heapq.heappop(self._ends)[2]]

    def close(self) -> None:
        self._ends.clear()


VIRTUAL = (1, 2, 4, 8, 16)


def replay(family: str, m: int, k: int, gap: float) -> list[str]:
    sample = make_instance(family, m, k, 1)
    known: list[tuple[bytes, float]] = []
    first = certify(sample, gap=gap, executor=Virtual(1, known))
    times, directing = [], 0.0
    for slots in VIRTUAL:
        executor = Virtual(slots, known)
        found = certify(sample, gap=gap, executor=executor)
        executor.tick()
        assert found.content() == first.content()
        times.append(executor.now)
        directing = executor.directing
        say(f"{family} {m} {k}, {slots} virtual workers: {times[-1]:.1f} s")
    return [
        f"{family}, m = {m:,}, k = {k}, gap {gap:g}", f"{len(known):,}", f"{directing:.1f} s",
        *(f"{seconds:.1f} s" for seconds in times),
        *(ratio(seconds, times[0]) for seconds in times[1:]),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small case only")
    parser.add_argument("--repeat", type=int, default=1, help="how often each is done")
    parser.add_argument("--only", type=int, choices=range(len(CASES)), help="one case")
    parser.add_argument("--replay", action="store_true", help="virtual workers")
    chosen = parser.parse_args()
    some = QUICK if chosen.quick else CASES
    cases = [which for number, which in enumerate(some) if chosen.only in (None, number)]
    certify(make_instance("gaussian-mixture", 200, 3, 1), gap=1e-2)
    if chosen.replay:
        head = [
            "case", "tasks", "directing them", *(f"{slots} at work" for slots in VIRTUAL),
            *(f"{slots}: times as fast as 1" for slots in VIRTUAL[1:]),
        ]  # fmt: skip
        rows = [replay(*which) for which in cases]
        table("Certify on virtual workers: search and check, replayed", head, rows)
        return
    head = [
        "case", "nodes", *WORKERS, *THREADS, "2 workers: times as fast as 1",
        "2 threads: times as fast as 1", "1 worker: times as fast as 1 thread", "load",
    ]  # fmt: skip
    rows = [case(*which, chosen.repeat) for which in cases]
    table("Certify on workers: search and check", head, rows)


if __name__ == "__main__":
    main()
