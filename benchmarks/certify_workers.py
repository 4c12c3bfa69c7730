"""One hard instance on many workers: how much faster two are than one.

    python benchmarks/certify_workers.py [--quick] [--repeat N] [--only CASE]

A time is that of a whole `certify`, with the check of the proof. Workers are processes of one
thread each and have been started, with the compiled code loaded, before the clock is. The ways to
do it take turns, as often as ``--repeat`` says, and medians are shown, because the machine may have
other things to do; its load is shown as well. Every certificate must be the same.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from time import perf_counter

from asking import ratio, say, table

from mipmech import Budget, Instance, certify, make_instance
from mipmech.certificate import Certificate
from mipmech.workers import Executor, Processes

# family, agents, rank, gap
CASES = [
    ("uniform-ball", 15_000, 3, 1e-3),
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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small case only")
    parser.add_argument("--repeat", type=int, default=1, help="how often each is done")
    parser.add_argument("--only", type=int, choices=range(len(CASES)), help="one case")
    chosen = parser.parse_args()
    cases = QUICK if chosen.quick else CASES
    certify(make_instance("gaussian-mixture", 20, 2, 1))
    rows = [
        case(*which, chosen.repeat)
        for number, which in enumerate(cases)
        if chosen.only in (None, number)
    ]
    head = [
        "case", "nodes", *WORKERS, *THREADS, "2 workers: times as fast as 1",
        "2 threads: times as fast as 1", "1 worker: times as fast as 1 thread", "load",
    ]  # fmt: skip
    table("Certify on workers: search and check", head, rows)


if __name__ == "__main__":
    main()
