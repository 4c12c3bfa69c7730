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
from mipmech.oracles.milp.existence import Existence, existence
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
        self.timer = timer
        self.search = GainBound(geometry, max(gap, LEAST_GAP), timer) if geometry.p_norm else None
        self.any_rule: Existence | None = None

    @property
    def found(self) -> Recount | None:
        """The best rule found."""
        found = None if self.search is None else self.search.found
        return self.any_rule.found if found is None and self.any_rule is not None else found

    @property
    def infeasible(self) -> bool:
        """Whether no rule meets the requirements, according to the solver."""
        return self.any_rule is not None and self.any_rule.infeasible and self.found is None

    @property
    def lower(self) -> Fraction:
        """The gain of the best rule found; 0 without one.

        Below 0 only if rules must meet requirements, and the best that is known does harm.
        """
        if self.found is None:
            return Fraction(0)
        harm = self.geometry.demands is not None
        return self.found.gain if harm else max(Fraction(0), self.found.gain)

    @property
    def upper(self) -> Fraction:
        """No rule gains more, by counting and according to the solver."""
        upper = Fraction(0)
        if self.search is not None:
            upper = self.search.goal.exactly(self.search.upper)
        return max(self.lower, upper)

    def run(self) -> Stop:
        """Search until all cones are closed, or the time is over.

        If rules must meet requirements, and none that does was found, any such rule is looked for.
        """
        stop, nodes = Stop.FINISHED, 0
        if self.search is not None:
            stop, nodes = self.search.close(self.counting), self.search.nodes
        if self.geometry.demands is None or self.found is not None or self.timer.left == 0:
            return stop
        self.any_rule = existence(self.geometry, self.timer, nodes)
        return self.any_rule.stop if stop is Stop.FINISHED or self.infeasible else stop

    @property
    def work(self) -> dict[str, int]:
        """Cones counted, models solved by the solver, and their nodes."""
        done = [search for search in (self.search, self.any_rule) if search is not None]
        return {
            "cones": sum(search.work for search in done),
            "models": sum(search.models for search in done),
            "nodes": sum(search.nodes for search in done),
        }

    def regions(self) -> list[dict[str, Any]]:
        """For the certificate: one region, all rates from 0 on."""
        top = self.geometry.p_norm_bounds[1] * (1 + BEYOND)
        return [{"eta": [0.0, top], "at_most": round_up(self.upper)}]
