"""The greatest gain to a gap of 1e-3 by cells: l1 and linf against l2 on the same agents.

    python benchmarks/costs.py            the table of benchmarks/README.md
    python benchmarks/costs.py --quick    the smaller half of it

Each row is a sample with the three norms, one after the other in one process and on one thread, so
that the ratios mean something on a busy machine; each run is repeated and the least time taken.
"""

from __future__ import annotations

import argparse
import math
import time

from mipmech import Budget
from mipmech.model import make_instance, reduce
from mipmech.oracles.cells.compiling import warm
from mipmech.oracles.cells.engine import GainSearch

CASES = [
    (family, m, k)
    for k, sizes in (
        (2, (50, 500, 10_000)), (3, (50, 500, 10_000)), (4, (50, 500)), (5, (50, 200)),
    )
    for m in sizes
    for family in ("gaussian-mixture", "uniform-ball")
]  # fmt: skip
NORMS = ("l2", "l1", "linf")
REPEATS = 3
LIMIT = 120.0


def measured(family: str, m: int, k: int, norm: str) -> tuple[float, int, bool]:
    """The least seconds of a few runs, nodes, and whether the gap was closed."""
    geometry = reduce(make_instance(family, m, k, seed=3, norm=norm))
    least = math.inf
    for _ in range(REPEATS):
        search = GainSearch(geometry, Budget(LIMIT).start(), gap=1e-3)
        begun = time.perf_counter()
        search.run()
        least = min(least, time.perf_counter() - begun)
        if least > LIMIT / 4:
            break
    closed = search.upper <= search.lower / (1 - 2e-3)
    return least, search.search.nodes, bool(closed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    warm()
    print("| sample | k | l2 s | l1 s | linf s | l1/l2 | linf/l2 | nodes l2, l1, linf |")
    print("|---|---|---|---|---|---|---|---|")
    ratios: dict[str, list[float]] = {"l1": [], "linf": []}
    for family, m, k in CASES:
        if quick and m > 500:
            continue
        found = {norm: measured(family, m, k, norm) for norm in NORMS}
        base = found["l2"][0]
        shown = [f"{found[n][0]:.3f}" + " open" * (not found[n][2]) for n in NORMS]
        for norm, held in ratios.items():
            held.append(found[norm][0] / base)
        nodes = ", ".join(f"{found[n][1]:,}" for n in NORMS)
        quotients = " | ".join(f"{held[-1]:.2f}" for held in ratios.values())
        row = [f"{family}, m = {m:,}", str(k), *shown, quotients, nodes]
        print(f"| {' | '.join(row)} |", flush=True)
    for norm, held in ratios.items():
        mean = math.exp(sum(map(math.log, held)) / len(held))
        print(f"{norm} against l2: geometric mean {mean:.2f}, greatest {max(held):.2f}")


if __name__ == "__main__":
    main()
