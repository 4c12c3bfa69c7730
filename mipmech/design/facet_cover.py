"""The gain under l1 and linf costs, bounded by a solver: the engine `milp` on facets.

There the rate is constant on each facet, so the greatest gain is the greatest rate × soft density:
the soft-density MILP is asked once for every rate.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from mipmech.budget import Budget, Stop, Timer
from mipmech.errors import InputError
from mipmech.model.edge_of_reach import steady
from mipmech.model.geometry import Geometry
from mipmech.model.grading import Recount
from mipmech.model.requirements.feasible import best_feasible, steady_feasible
from mipmech.model.thresholds import best_threshold
from mipmech.oracles.milp.engine import MilpSoft
from mipmech.oracles.milp.existence import Existence, existence
from mipmech.rationals import round_up
from mipmech.theory.grids import facet_grid
from mipmech.theory.projection import gain_ceiling
from mipmech.tolerances import EPSILON


class FacetCover:
    """The rates of all facets that can gain, each with a bound from a solver, and the best rule.

    Facets are asked in the order of what they allow at most; those that cannot win are not asked.
    """

    def __init__(self, geometry: Geometry, gap: float, timer: Timer) -> None:
        demands = geometry.demands
        if geometry.norm == "linf" and demands is not None and demands.cone is not None:
            raise InputError(
                "are about weights, and with costs of the norm linf a weight of exactly 0 changes"
                " how people respond: the engine milp, which goes by facets, does not know these"
                " rules; use engine='cells'",
                field="requirements",
            )
        self.geometry = geometry
        self.timer = timer
        self.gap = gap
        self.factor = 1 / (1 - Fraction(max(gap, 1e-6)))
        self.found: Recount | None = None
        self.asked = self.cones = self.models = self.nodes = 0
        self.any_rule: Existence | None = None
        if not geometry.p_norm:
            self.uppers = {0.0: Fraction(0)}
            return
        ceiling = Fraction(gain_ceiling(geometry.instance))
        moved = ceiling / Fraction(geometry.p_norm_bounds[0])
        # What everybody can move at most, times the rate; with room for the band of a rate.
        self.uppers = {eta: min(ceiling, self._rate(eta) * moved) for eta in facet_grid(geometry)}

    def _rate(self, eta: float) -> Fraction:
        return Fraction(eta) + Fraction(self.geometry.band) * Fraction(
            self.geometry.p_norm_bounds[1]
        )

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
    def infeasible(self) -> bool:
        """Whether no rule meets the requirements, according to the solver."""
        return self.any_rule is not None and self.any_rule.infeasible and self.found is None

    @property
    def upper(self) -> Fraction:
        """No rule gains more, according to the solver."""
        return max(self.lower, *self.uppers.values())

    def run(self) -> Stop:
        """Ask for each rate, the greatest first."""
        for eta in list(self.uppers):
            if self.uppers[eta] <= max(Fraction(0), self.lower) * self.factor:
                continue
            if self.timer.left == 0:
                return Stop.TIME
            oracle = MilpSoft(gap=max(self.gap / 4, 1e-6))
            limits = self.timer.budget
            answer = oracle(self.geometry, eta, Budget(self.timer.left, limits.threads))
            self.asked += 1
            self.cones += answer.work["cones_counted"]
            self.models += answer.work["models_solved"]
            self.nodes += answer.work["nodes"]
            assert answer.upper is not None
            if answer.recount is not None:
                graded = self.graded(answer.recount)
                if self.found is None or graded.gain > self.found.gain:
                    self.found = graded
            moved = answer.upper * (1 + 8 * Fraction(EPSILON))
            self.uppers[eta] = min(self.uppers[eta], self._rate(eta) * moved)
            self.tell()
        if self.geometry.demands is None or self.found is not None or self.timer.left == 0:
            return Stop.FINISHED
        self.any_rule = existence(self.geometry, self.timer, self.nodes)
        self.found = self.any_rule.found
        self.cones += self.any_rule.work
        self.models += self.any_rule.models
        self.nodes += self.any_rule.nodes
        return self.any_rule.stop

    def graded(self, found: Recount) -> Recount:
        """The best rule along the direction of another one, stepped off the edge."""
        demands = self.geometry.demands
        if demands is None:
            return steady(best_threshold(self.geometry.instance, found.mechanism))
        best = best_feasible(demands, found.mechanism)
        if best is None or best.gain < found.gain:
            best = found
        return steady_feasible(demands, best)

    def tell(self) -> None:
        self.timer.tell(self.lower, self.upper, self.asked)

    @property
    def work(self) -> dict[str, int]:
        """Rates asked for, cones counted, models solved by the solver, and their nodes."""
        return {
            "rates": self.asked, "cones": self.cones, "models": self.models, "nodes": self.nodes,
        }  # fmt: skip

    def regions(self) -> list[dict[str, Any]]:
        """For the certificate: each rate, and those below it that no facet has, ascending.

        Rules with weights of 0 have rates between those of facets (linf), and gain no more than on
        the best facet they are on an edge of: one with a greater rate.
        """
        regions: list[dict[str, Any]] = []
        most = Fraction(0)
        rates = sorted(self.uppers)
        for eta, below in zip(reversed(rates), [*reversed(rates[:-1]), None], strict=True):
            most = max(most, self.uppers[eta])
            low = 0.0 if below is None else round_up(self._rate(below))
            ends = [min(low, eta), round_up(self._rate(eta))]
            regions.insert(0, {"eta": ends, "at_most": round_up(max(most, self.lower))})
        return regions
