"""The greatest gain to a gap of 1e-3 by cells: with requirements against without, same agents.

    python benchmarks/requirements.py            the table of benchmarks/README.md
    python benchmarks/requirements.py --quick    the smaller half of it

Each row is a sample without and with each requirement, one after the other in one process and on
one thread. Nodes do not depend on the machine; seconds do, so only their ratios mean something.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

from mipmech import Budget, Instance, make_instance
from mipmech.model.geometry import geometry_of
from mipmech.oracles.cells.compiling import warm
from mipmech.oracles.cells.engine import GainSearch

CASES = [
    (family, m, k)
    for k, sizes in ((2, (60, 1000)), (3, (60, 1000)), (4, (60, 200)))
    for m in sizes
    for family in ("gaussian-mixture", "uniform-ball")
]  # fmt: skip
REQUIREMENTS = {
    "accepted ≤ 30 %": {"accepted": [0, 0.3]},
    "accepted 50 to 55 %": {"accepted": [0.5, 0.55]},
    "parity 2 %": {"parity": {"groups": "half", "within": 0.02}},
    "both": {"accepted": [0.2, 0.3], "parity": {"groups": "half", "within": 0.02}},
    "nonnegative": {"nonnegative": "all"},
}
LIMIT = 60.0


def sample(family: str, m: int, k: int, unequal: bool) -> Instance:
    """Agents in two groups, one of them a little ahead in the first feature."""
    made = make_instance(family, m, k, seed=3)
    random = np.random.default_rng(3)
    half = (made.agents[:, 0] + random.standard_normal(m) > 0).astype(int).tolist()
    return Instance.from_arrays(
        made.agents @ made.view.matrix.T, np.abs(made.view.matrix @ made.quality),
        visible=list(range(k)), cost=made.cost, groups={"half": half},
        weights=random.uniform(0.5, 1.5, m) if unequal else None,
    )  # fmt: skip


def measured(instance: Instance, demanded: dict | None) -> tuple[float, int, float]:
    """Seconds, nodes and the gap."""
    search = GainSearch(geometry_of(instance, demanded), Budget(LIMIT).start(), gap=1e-3)
    begun = time.perf_counter()
    search.run()
    gap = 1 - float(search.lower / search.upper) if search.upper else 0.0
    return time.perf_counter() - begun, search.search.nodes, gap


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    warm()
    for unequal in (False, True):
        print(f"\n{'Unequal' if unequal else 'Equal'} weights: nodes, and their ratio; open gaps")
        print("| sample | k | without | " + " | ".join(REQUIREMENTS) + " |")
        print("|---|---|---|" + "---|" * len(REQUIREMENTS))
        ratios: dict[str, list[float]] = {name: [] for name in REQUIREMENTS}
        for family, m, k in CASES:
            if quick and m > 60:
                continue
            instance = sample(family, m, k, unequal)
            seconds, nodes, _ = measured(instance, None)
            row = []
            for name, demanded in REQUIREMENTS.items():
                _, found, gap = measured(instance, demanded)
                ratios[name].append(found / nodes)
                row.append(f"{found / nodes:.2f}" + (f" (gap {gap:.1%})" if gap > 1.1e-3 else ""))
            print(f"| {family} {m} | {k} | {nodes:,} in {seconds:.2f} s | {' | '.join(row)} |",
                  flush=True)  # fmt: skip
        means = [math.exp(sum(map(math.log, r)) / len(r)) for r in ratios.values()]
        most = [max(r) for r in ratios.values()]
        print("| geometric mean | | | " + " | ".join(f"{mean:.2f}" for mean in means) + " |")
        print("| greatest | | | " + " | ".join(f"{value:.2f}" for value in most) + " |")


if __name__ == "__main__":
    main()
