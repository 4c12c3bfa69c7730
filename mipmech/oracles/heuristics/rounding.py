"""The oracle `rounding`: linear relaxations of the MILP, rounded and polished.

The sphere is cut into cones (the facets of a cube). For each, HiGHS solves the relaxation of the
MILP of `formulations` (0 ≤ s_i ≤ 1, M from the ranges of the scores over the cone). Its u is put on
the sphere, the agents with s_i > ½ are given as much room as there is, and linear programs draw in
those that miss it by little. The most promising cones are cut in two and relaxed again (diving). A
further round does the same with the cube turned at random. Of many agents, the model has a random
part, another in each round: a relaxation says roughly where to look, and rounding, polishing and
counting use all agents.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from mipmech.budget import Budget
from mipmech.oracles.heuristics.explore import Explorer, Heuristic
from mipmech.oracles.milp.engine import Milp, box_of, hull_of, model_of
from mipmech.oracles.shared.cones import ConeSet, halves, ranges, sphere
from mipmech.oracles.shared.goals import Density
from mipmech.oracles.shared.recovery import clear
from mipmech.oracles.shared.slices import Slice, unit
from mipmech.solver import Program, Solved
from mipmech.validation import Floats, Numbers

# Relaxations of a round: the facets, and this many cones below them.
DIVES = 16
# Agents of a model, at most.
MOST_AGENTS = 400


@dataclass(frozen=True)
class Rounding(Heuristic):
    """Relaxed, rounded, polished; a round is one cube, turned at random after the first."""

    rounds: int | None = 2

    def round(self, explorer: Explorer, random: Generator, number: int) -> bool:
        """Facets first, then the halves of the cones whose relaxation promises most."""
        part = explorer.slice
        d, m = part.dimension, len(part.reach)
        turn = np.eye(d) if number == 0 else np.linalg.qr(random.standard_normal((d, d)))[0]
        some = np.arange(m)
        if m > MOST_AGENTS:
            some = np.sort(random.choice(m, MOST_AGENTS, replace=False))
        relaxation = _Relaxation(_of_some(part, some, turn))
        facets = sphere(d)
        todo = [facets[i : i + 1] for i in range(len(facets))]
        waiting: list[tuple[float, int, ConeSet]] = []
        for solved_so_far in range(len(facets) + 2 * DIVES):
            if not todo and waiting:
                both = halves(heapq.heappop(waiting)[2])
                todo = [both[:1], both[1:]]
            if explorer.over or not todo:
                break
            cone = todo.pop()
            solved = relaxation.solve(cone, Budget(explorer.timer.left))
            if solved.objective is not None:
                _round_off(explorer, solved, turn, some)
                heapq.heappush(waiting, (-solved.objective, solved_so_far, cone))
        return False


def _of_some(part: Slice, some: Numbers, turn: Floats) -> Slice:
    """A slice with these agents alone, its sphere turned."""
    weight = part.weight[some]
    return replace(
        part, turn=part.turn @ turn, across=part.across[some] @ turn, along=part.along[some],
        reach=part.reach[some], weight=weight / weight.sum(), slack=part.slack[some],
        agents=part.agents[some],
    )  # fmt: skip


def _round_off(explorer: Explorer, solved: Solved, turn: Floats, some: Numbers) -> None:
    """The direction of a relaxed solution, and the one that suits its nearly chosen agents."""
    v = unit(solved.array("u")[None, -len(turn) :] @ turn.T)
    chosen = some[solved.array("s") > 0.5]
    if len(chosen) > 1:
        v = np.vstack([v, clear(explorer.part, v[0], chosen, 3, explorer.timer.left)])
    counts = explorer.consider(v, ranked=True)
    if not explorer.over:
        explorer.augment(v[counts.argmax()])


class _Relaxation:
    """The relaxed model of a slice, moved from cone to cone."""

    def __init__(self, part: Slice) -> None:
        self.part = part
        self.goal = Density.on(part)
        self.program: Program | None = None

    def solve(self, cone: ConeSet, budget: Budget) -> Solved:
        """Solve the relaxation over one cone."""
        from formulations.margin import set_margin  # noqa: PLC0415  (slow to import)
        from formulations.unit_norm import set_cone  # noqa: PLC0415

        hull, box = hull_of(self.part, cone), box_of(self.part)
        where = ranges(self.part, cone)
        low, high = where.low[0], where.high[0]
        window = (float(low.min()), float(high.max()))  # the thresholds worth a look
        limits: dict[str, Any] = {"lowest": low, "highest": high, "window": window}
        if self.program is None:
            oracle = Milp(cliques=False)
            model = model_of(oracle, self.part, self.goal, hull, box=box, **limits)
            self.program = Program(model, relaxed=True)
        else:
            set_cone(self.program.model, hull, box)
            set_margin(self.program.model, **limits)
        return self.program.solve(budget)
