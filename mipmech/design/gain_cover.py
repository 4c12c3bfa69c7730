"""The gain under Euclidean costs, bounded by counting and by a solver: the engine `milp`.

All directions at once, in cones (`oracles.milp.gain`). The certificate has one region, all rates,
with the bound of the search; it tells how much of the work was counting, and how many models HiGHS
solved.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from mipmech.budget import Stop, Timer
from mipmech.model.geometry import Geometry
from mipmech.model.grading import Recount
from mipmech.oracles.milp.gain import FIRST, GainBound
from mipmech.rationals import round_up

# The smallest relative gap that tolerances of a solver can be asked for.
LEAST_GAP = 1e-6
# The region ends beyond ‖P w_f‖ by this share, whatever a checker rounds.
BEYOND = 1e-13


class GainCover:
    """Cones that cover all directions of positive rate, and the best rule found.

    geometry : with p ≠ 0 and Euclidean costs
    counting : cones to count before HiGHS is asked; 0 leaves the work to HiGHS
    """

    def __init__(self, geometry: Geometry, gap: float, timer: Timer, counting: int = FIRST) -> None:
        self.geometry = geometry
        self.counting = counting
        self.search = GainBound(geometry, max(gap, LEAST_GAP), timer)

    @property
    def found(self) -> Recount | None:
        """The best rule found."""
        return self.search.found

    @property
    def lower(self) -> Fraction:
        """The gain of the best rule found; 0 without one."""
        return Fraction(0) if self.found is None else max(Fraction(0), self.found.gain)

    @property
    def upper(self) -> Fraction:
        """No rule gains more, by counting and according to the solver."""
        return max(self.lower, self.search.goal.exactly(self.search.upper))

    def run(self) -> Stop:
        """Search until all cones are closed, or the time is over."""
        return self.search.close(self.counting)

    @property
    def work(self) -> dict[str, int]:
        """Cones counted, models solved by the solver, and their nodes."""
        search = self.search
        return {"cones": search.work, "models": search.models, "nodes": search.nodes}

    def regions(self) -> list[dict[str, Any]]:
        """For the certificate: one region, all rates from 0 on."""
        top = self.geometry.p_norm_bounds[1] * (1 + BEYOND)
        return [{"eta": [0.0, top], "at_most": round_up(self.upper)}]
