"""How long `certify --engine milp` takes to close a gap of 1e-3, for k = 2…5, beside cells.

    python benchmarks/gain.py [--quick] [--seconds LIMIT] [--gap GAP]

One thread each. "Cones" and "models" are what was counted, and what HiGHS solved. The two engines
compute their bounds apart, and these must agree. A time with ">" reached the limit. The last rows
leave all the work to HiGHS (`counting=0`).
"""

from __future__ import annotations

import argparse
import math

from asking import table

from mipmech import Budget, certify, make_instance
from mipmech.design.gain_cover import GainCover
from mipmech.model import reduce
from mipmech.rationals import relative_gap

FAMILIES = ("gaussian-mixture", "uniform-ball", "costs")
SIZES = ((1000, 2), (30, 3), (200, 3), (60, 4), (100, 4), (60, 5))
# Few agents: without counting, HiGHS takes long.
ALONE = ((10, 2), (12, 3))


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one family")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--gap", type=float, default=1e-3)
    options = parser.parse_args()
    families = FAMILIES[:1] if options.quick else FAMILIES
    certify(make_instance(FAMILIES[0], agents=9, rank=2, seed=0), engine="milp")  # imports
    certify(make_instance(FAMILIES[0], agents=9, rank=2, seed=0))  # compiles
    rows = []
    for m, k in SIZES:
        for family in families:
            sample = make_instance(family, agents=m, rank=k, seed=1)
            limit = Budget(options.seconds)
            found = certify(sample, gap=options.gap, engine="milp", budget=limit)
            other = certify(sample, gap=options.gap, engine="cells", budget=limit)
            agree = found.lower <= other.upper and other.lower <= found.upper
            late = ">" if found.status == "gap" else ""
            work = f"{found.work['cones']:,}", found.work["models"]
            time = f"{late}{found.seconds:.2f} s"
            gap = f"{found.gap:.1e}" if agree else "THE ENGINES DISAGREE"
            rows.append([f"{family}, m = {m}, k = {k}", time, gap, *work, f"{other.seconds:.2f} s"])
    table("gain: engine milp", ["case", "milp", "gap", "cones", "models", "cells"], rows)
    alone = []
    for m, k in ALONE:
        for family in families:
            sample = make_instance(family, agents=m, rank=k, seed=1)
            timer = Budget(options.seconds).start()
            cover = GainCover(reduce(sample), options.gap, timer, counting=0)
            cover.run()
            gap = relative_gap(cover.lower, cover.upper)
            late = ">" if gap > options.gap * (1 + 1e-6) and math.isfinite(timer.left) else ""
            time = f"{late}{timer.seconds:.2f} s"
            alone.append([f"{family}, m = {m}, k = {k}", time, f"{gap:.1e}", cover.work["models"]])
    table("gain: HiGHS alone", ["case", "time", "gap", "models"], alone)


if __name__ == "__main__":
    main()
