"""The best gain under l1 and linf costs, by MILPs on the facets of the dual unit sphere.

    python benchmarks/facets.py [--quick] [--seconds LIMIT]

No cells engine, no counting: for every facet of positive rate, the greatest soft density, with a
cutoff that is carried from facet to facet (rate × soft density = gain). Three runs, one thread
each:

- *HiGHS, whole*: one MILP for each facet.
- *Gurobi, whole*: the same Pyomo models, with the same first cutoff.
- *HiGHS, parts*: spatial branch and bound. A part of a facet and a window of b make one LP, the
  relaxation of the same Pyomo model, moved there by `set_facet` and `set_margin`: M, the bounds of
  t and the fixed agents are those of the part. Its longest side is halved until the LP is
  infeasible, or only a few agents are undecided; then HiGHS solves it as a MILP.

Every run proves the optimum to within 1e-5 of it. Times of "whole" are the solvers' own, without
the time that Pyomo needs to build and translate the models; those of "parts" are of everything.
"Parts" against "Gurobi, whole" compares two algorithms, not two solvers: Gurobi is not given the
parts. In the table families change with m, so it does not tell their effects apart.
Compare within one run only: machines are shared and noisy. A time with ">" reached the limit and
counts as the limit.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal

import numpy as np
from asking import PACKAGES, geometric_mean, installed, ratio, say, table

from formulations import (
    CubeFacet,
    all_facets,
    set_cutoff,
    set_facet,
    set_margin,
    soft_density_model,
)
from mipmech import Budget, Instance, make_instance
from mipmech.model import Geometry, reduce
from mipmech.oracles.milp.engine import SOFT_WIDEN
from mipmech.solver import Has, Program

# What a cutoff asks for beyond the best found, as a share of it.
GAP = 1e-5
# With no more undecided agents than this, a part is solved as a MILP (10 to 20 did about as well).
UNDECIDED = 15
# Directions tried on each facet before any solver is called, by all runs alike.
TRIED = 50
FAMILIES = ("uniform-ball", "gaussian-mixture", "heavy-tails")


@dataclass
class Case:
    """An instance with l1 or linf costs, and what a run has found of it."""

    norm: Literal["l1", "linf"]
    agents: int
    rank: int
    family: str
    limit: float
    best: float = 0.0
    closed: bool = True
    seconds: float = 0.0
    calls: int = 0
    geometry: Geometry = field(init=False)

    def __post_init__(self) -> None:
        made = make_instance(self.family, self.agents, self.rank, 1)
        columns = made.view.columns
        self.geometry = reduce(
            Instance.from_arrays(
                made.agents, made.quality, cost=1 / made.reach, norm=self.norm, visible=columns
            )
        )
        rng = np.random.default_rng(0)
        self.facets = [f for f in all_facets(self.norm, self.rank) if self.rate(f) > 0]
        self.facets.sort(key=self.rate, reverse=True)
        for facet in self.facets:
            if isinstance(facet, CubeFacet):
                tried = rng.uniform(-1, 1, size=(TRIED, self.rank))
                tried[:, facet.axis] = facet.sign
            else:
                tried = rng.dirichlet(np.ones(self.rank), size=TRIED) * facet.signs
            for u in tried:
                self.offer(facet, u)

    def __str__(self) -> str:
        return f"{self.norm}, {self.family}, m = {self.agents}, k = {self.rank}"

    @property
    def time(self) -> str:
        return f"{'' if self.closed else '>'}{self.seconds:.2f} s"

    @property
    def left(self) -> float:
        return max(0.0, self.limit - self.seconds)

    def rate(self, facet: Any) -> float:
        return float(facet.rate(self.geometry.p))

    def offer(self, facet: Any, u: Any) -> None:
        """Recount a direction with its best threshold, which is the end of somebody's reach."""
        g = self.geometry
        scores = g.z @ u
        distance = (scores + g.reach)[:, None] - scores
        covered = (distance >= 0) & (distance <= g.reach * (1 + 1e-12))
        most = float(((distance * covered) @ g.weight).max())
        self.best = max(self.best, self.rate(facet) * most)

    def cutoff(self, facet: Any, scale: float) -> float:
        return self.best * (1 + GAP) / self.rate(facet) / scale

    def model(self, facet: Any) -> Any:
        g = self.geometry
        widen = SOFT_WIDEN * (3 + float(g.reach.max()))
        # Weights with mean 1, as the oracles have them: tolerances of solvers are absolute.
        weight = g.weight * len(g.z)
        model = soft_density_model(
            g.z, g.reach, weight, None, (-1, 1), norm=facet, widen=widen, at_least=0.0
        )
        set_cutoff(model, self.cutoff(facet, model.scale / len(g.z)))
        return model


def whole_highs(case: Case) -> None:
    for facet in case.facets:
        solved = Program(case.model(facet)).solve(Budget(case.left))
        case.seconds, case.calls = case.seconds + solved.seconds, case.calls + 1
        if solved.values:
            case.offer(facet, solved.array("u"))
        if solved.has not in (Has.OPTIMUM, Has.INFEASIBLE):
            case.closed = False
            return


def whole_gurobi(case: Case) -> None:
    import pyomo.environ  # noqa: F401
    from pyomo.contrib.solver.common.factory import SolverFactory

    solver = SolverFactory("gurobi_direct")
    for facet in case.facets:
        model = case.model(facet)
        results = solver.solve(
            model,
            load_solutions=False,
            raise_exception_on_nonoptimal_result=False,
            rel_gap=0,
            threads=1,
            time_limit=max(case.left, 0.01),
        )
        case.seconds, case.calls = case.seconds + results.timing_info.gurobi_time, case.calls + 1
        if results.incumbent_objective is not None:
            results.solution_loader.load_vars()
            case.offer(facet, np.array([u.value for u in model.u.values()]))
        if results.termination_condition.name not in (
            "convergenceCriteriaSatisfied", "provenInfeasible", "infeasibleOrUnbounded",
        ):  # fmt: skip
            case.closed = False
            return


def parts_highs(case: Case) -> None:
    start = time.perf_counter()
    for facet in case.facets:
        case.closed = case.closed and _by_parts(case, facet, start)
    case.seconds = min(time.perf_counter() - start, case.limit)


def _by_parts(case: Case, facet: Any, start: float) -> bool:
    """Close a facet; whether that was done in time."""
    g = case.geometry
    model = case.model(facet)
    scale = model.scale / len(g.z)
    mixed, relaxed = Program(model), Program(model, relaxed=True)
    open_parts = [(facet.box(case.rank), (-math.inf, math.inf))]
    while open_parts:
        left = case.limit - (time.perf_counter() - start)
        if left <= 0:
            return False
        box, (bottom, top) = open_parts.pop()
        try:
            lower, upper = box = facet.box(case.rank, box)
        except ValueError:  # a corner of the box, but nothing of the facet
            continue
        low, high = facet.ranges(g.z, box)
        ends = low + g.reach, high + g.reach
        bottom, top = max(bottom, float(ends[0].min())), min(top, float(ends[1].max()))
        if bottom > top:
            continue
        set_facet(model, facet, box)
        set_margin(model, lowest=low, highest=high, window=(bottom, top))
        set_cutoff(model, case.cutoff(facet, scale))
        undecided = [i for i, s in model.s.items() if s.lb < s.ub]
        final = len(undecided) <= UNDECIDED
        solved = (mixed if final else relaxed).solve(Budget(left))
        case.calls += 1
        if solved.values:
            case.offer(facet, solved.array("u"))
        if solved.has is Has.INFEASIBLE or (final and solved.has is Has.OPTIMUM):
            continue
        # In units of the scores of those undecided, so that directions and thresholds compare.
        sides = np.abs(g.z[undecided]).mean(axis=0) * (upper - lower)
        j = int(sides.argmax())
        if top - bottom > sides[j]:
            middle = (bottom + top) / 2
            open_parts += [(box, (bottom, middle)), (box, (middle, top))]
        else:
            middle = (lower[j] + upper[j]) / 2
            below, above = upper.copy(), lower.copy()
            below[j] = above[j] = middle
            open_parts += [((lower, below), (bottom, top)), ((above, upper), (bottom, top))]
    return True


RUNS: dict[str, Callable[[Case], None]] = {
    "HiGHS, whole": whole_highs,
    "HiGHS, parts": parts_highs,
    "Gurobi, whole": whole_gurobi,
}
OURS = ("HiGHS, whole", "HiGHS, parts")
RIVAL = "Gurobi, whole"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="20 agents only")
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of one run of one case")
    chosen = parser.parse_args()
    names = [name for name in RUNS if name != RIVAL or installed("gurobi")]
    if RIVAL not in names:
        print(f"Gurobi is not installed ({PACKAGES['gurobi']}): no ratios, HiGHS alone.")
    sizes = list(product((2, 3, 4), (20,) if chosen.quick else (20, 40, 60)))
    for name in names:  # imports and licences, which the table is not about
        RUNS[name](Case("l1", 6, 2, FAMILIES[0], 10))
    rows, ratios = [], {name: [] for name in OURS}
    late = dict.fromkeys(names, 0)
    for norm, (i, (k, m)) in product(("l1", "linf"), enumerate(sizes)):
        runs = {}
        for name in names:
            runs[name] = run = Case(norm, m, k, FAMILIES[i % len(FAMILIES)], chosen.seconds)
            RUNS[name](run)
            run.seconds = run.seconds if run.closed else chosen.seconds
            late[name] += not run.closed
        case = str(runs[names[0]])
        say(f"{case}: {', '.join(f'{name} {run.time}' for name, run in runs.items())}")
        best = max(run.best for run in runs.values())
        for name, run in runs.items():
            if run.closed and run.best < best * (1 - 2 * GAP):
                print(f"\n**THE RUNS DISAGREE** on {case}: {name} {run.best}, another {best}")
        row = [case, f"{best:.6g}", *(run.time for run in runs.values()), runs[OURS[1]].calls]
        for name in OURS if RIVAL in runs else ():
            ours, rival = runs[name], runs[RIVAL]
            sign = ">" * (not rival.closed) + "<" * (not ours.closed)
            none = not (ours.closed or rival.closed)
            row.append("–" if none else sign + ratio(ours.seconds, rival.seconds))
            if not none:
                ratios[name].append((rival.seconds / ours.seconds, ours.closed, rival.closed))
        rows.append(row)
    head = ["case", "gain", *names, "LPs and MILPs of parts"]
    if RIVAL in names:
        head += [f"{name}: times as fast as Gurobi" for name in OURS]
    table("facets: time to a proved optimum", head, rows)
    print(f"\nAt the limit: {', '.join(f'{name} {number}' for name, number in late.items())}.")
    for name in OURS if RIVAL in names else ():
        print(summary(name, ratios[name]))


def summary(name: str, ratios: list[tuple[float, bool, bool]]) -> str:
    """Means of the ratios; one with a time at the limit is only a bound, and counted apart."""
    both = [value for value, ours, rival in ratios if ours and rival]
    ours_late = sum(not ours for _, ours, _ in ratios)
    rival_late = sum(not rival for _, _, rival in ratios)
    return (
        f"{name} is {geometric_mean(both):.2f} times as fast as Gurobi, whole, where both finished"
        f" (geometric mean of {len(both)} cases). With the limit as the time where one did not"
        f" ({name} {ours_late}, Gurobi {rival_late}):"
        f" {geometric_mean([value for value, _, _ in ratios]):.2f} ({len(ratios)} cases)."
    )


if __name__ == "__main__":
    main()
