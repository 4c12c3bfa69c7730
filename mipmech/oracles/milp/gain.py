"""The greatest gain over all directions: cones closed by counting, then by HiGHS.

Counting (`goals.Gain`) closes small cones; what it leaves open is handed to HiGHS, hull by hull, as
`formulations.gain`: the soft density's MILP with rate × soft density ≥ T by its tangents, for
T = what would make the gap too large. "Infeasible" closes the hull (level "attested", see
`engine`); a solution is climbed from, and recounted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mipmech.budget import Stop, Timer
from mipmech.model.geometry import Geometry
from mipmech.model.mechanism import to_reduced
from mipmech.oracles.milp.demanding import by_share
from mipmech.oracles.milp.engine import (
    DROPPED,
    IMPROVEMENT,
    TIED,
    TOWARDS,
    Data,
    Milp,
    Prover,
    counted_first,
    worth_a_model,
)
from mipmech.oracles.milp.search import Proof, Search
from mipmech.oracles.shared.cones import ConeSet, ranges
from mipmech.oracles.shared.goals import Gain
from mipmech.oracles.shared.recovery import Held, climb
from mipmech.oracles.shared.slices import unit
from mipmech.tolerances import ROUNDING

# Rates are widened by this beyond what counting says: ten tolerances of the solver.
RATE_ROOM = 1e-6
# The hull of more open cones than this is hardly ever infeasible: it is cut in two unasked.
MOST_IN_HULL = 15_000
# Cones counted before HiGHS is asked, in each hull that it leaves open, and in all.
FIRST, LATER, MOST = 1_000_000, 20_000, 20_000_000


@dataclass(frozen=True)
class GainProver(Prover):
    """HiGHS on the hull of some open cones, with the gain as goal.

    Requirements are rows of the model (`engine.model_of`).
    """

    def __call__(self, search: Search, cones: ConeSet) -> tuple[Proof, float]:
        """Only cones that are still open make the hull."""
        open_ = cones.bound > search.goal.enough(search.best)
        if not open_.any():
            return Proof.CLOSED, search.goal.enough(search.best)
        if open_.sum() > MOST_IN_HULL:
            return Proof.UNDECIDED, math.inf
        return super().__call__(search, cones[open_])

    def asked(self, search: Search, data: Data, cones: ConeSet) -> tuple[float, dict[str, Any]]:
        """T, and the range of rates: from what is needed if everybody moves, to the hull's."""
        goal = search.goal
        assert isinstance(goal, Gain)
        low, high = math.inf, 0.0
        for start in range(0, len(cones), search.batch):
            least, most = goal.rates(ranges(search.part, cones[start : start + search.batch]))
            low, high = min(low, float(least.min())), max(high, float(most.max()))
        enough = max(goal.enough(search.best), IMPROVEMENT * goal.most)
        # What a solver does not see: weights that it drops, and the rounding of p.
        unseen = np.where(data.weight <= DROPPED, data.weight, 0.0)
        lost = float(unseen @ (data.reach + data.widen)) / len(data.z) + goal.doubt * goal.most
        asked = max(enough * (1 - 2 * ROUNDING) - lost, enough / 2)
        low = max(low - RATE_ROOM, asked / goal.most * (1 - RATE_ROOM))
        rates = (low, max(low, min(1.0, high + RATE_ROOM)))
        return asked + lost, {"least_gain": asked * len(data.z), "rates": rates}

    def ask(self, model: Any, asked: dict[str, Any]) -> None:
        """Move a model to another T and other rates."""
        from formulations.gain import set_gain  # noqa: PLC0415

        set_gain(model, **asked)


class GainBound(Search):
    """A search for the greatest gain over all directions, to a relative gap."""

    def __init__(self, geometry: Geometry, gap: float, timer: Timer) -> None:
        goal = Gain.on(geometry, gap)
        super().__init__(goal.part, goal, timer)
        self.p = goal.p

    def look(self, rounds: int, thorough: bool) -> None:
        """Along p; as in every search; then climb from the best found."""
        self.offer(self.p)
        super().look(rounds, thorough)
        if self.part.points is None and self.found is not None:
            self.climb()

    def climb(self) -> None:
        """Improve the best rule, keeping those who move."""
        while self.found is not None and self.timer.left > 0:
            before, held = self.best, None
            u = unit(to_reduced(self.part.geometry, self.found.mechanism)[0])
            covered = np.flatnonzero(np.isin(self.part.agents, self.found.covered))
            if self.limits is not None:
                passing = self.found.accepted[self.part.agents]
                who = passing if by_share(self.part.geometry) else None
                held = Held(self.limits.rows, self.limits.shift, who)
            climbed = climb(self.part, u, covered, self.p, seconds=self.timer.left, held=held)
            self.offer(climbed)
            if held is not None:  # ties with those who must not pass are left on the way back
                for share in TOWARDS:
                    self.offer(unit((1 - share) * climbed + share * u))
            if self.best <= before * (1 + ROUNDING):
                break

    def close(self, counting: int, most: int = MOST) -> Stop:
        """Search; ``counting`` is the number of cones to count before HiGHS is asked."""
        budget = self.timer.budget
        prover = GainProver(Milp(), budget) if worth_a_model(self.part, self.goal) else None
        later = min(LATER, max(1, counting // 10))
        if by_share(self.part.geometry):  # counting knows little of who is accepted
            cones = int(counted_first(self.part.geometry))
            counting, later, most = min(counting, cones), min(later, cones), min(most, TIED)
        nodes = math.inf if budget.nodes is None else budget.nodes
        return self.run(prover, counting, later, most, nodes)
