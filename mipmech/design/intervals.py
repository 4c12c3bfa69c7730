"""The gain, covered by intervals of η, each with a bound from a solver: the engine `milp`.

For directions with η in [η₀, η₁] the gain is at most η₁ times the greatest soft density there,
which the soft-density MILP bounds (`oracles.milp.soft_bound`: cones closed by counting first, then
HiGHS on the hull of what is open). Intervals of angle arccos(η/‖p‖) are halved, the most promising
first, until none allows more than the gap. Every interval and its bound go into the certificate.

For l1 and linf the rate is constant on each facet, and intervals are not needed: the soft-density
MILP is asked once for every rate (`FacetCover`).
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mipmech.budget import Budget, Stop, Timer
from mipmech.model.edge_of_reach import steady
from mipmech.model.geometry import Geometry
from mipmech.model.grading import Recount
from mipmech.model.thresholds import best_threshold
from mipmech.oracles.milp.engine import MilpSoft, soft_bound
from mipmech.oracles.milp.search import ROUNDS, Search
from mipmech.oracles.shared.goals import SoftDensity
from mipmech.oracles.shared.slices import slice_at
from mipmech.rationals import round_up
from mipmech.theory.grids import facet_grid
from mipmech.theory.projection import gain_ceiling
from mipmech.tolerances import EPSILON

# Cones counted for an interval before HiGHS is asked.
CONES = 20_000
# Angles looked at first, for something to beat.
FIRST_ANGLES = 8
# An interval of angles is not halved below this.
FINEST = 1e-9


@dataclass(order=True)
class Interval:
    """Directions at angles [least, most] to p, and what they gain at most; highest first."""

    key: float
    least: float
    most: float
    upper: Fraction


class Cover:
    """Intervals of η that cover [0, ‖p‖], and the best rule found."""

    def __init__(self, geometry: Geometry, gap: float, timer: Timer) -> None:
        self.geometry = geometry
        self.timer = timer
        self.factor = 1 / (1 - Fraction(max(gap, 1e-6)))
        self.found: Recount | None = None
        ceiling = Fraction(gain_ceiling(geometry.instance))
        self.waiting = [Interval(-float(ceiling), 0.0, math.pi / 2, ceiling)]
        self.closed: list[Interval] = []
        self.asked = 0

    @property
    def lower(self) -> Fraction:
        """The gain of the best rule found; 0 without one."""
        return Fraction(0) if self.found is None else max(Fraction(0), self.found.gain)

    @property
    def upper(self) -> Fraction:
        """No rule gains more, according to the solver."""
        every = [interval.upper for interval in (*self.waiting, *self.closed)]
        return max(self.lower, *every)

    def eta(self, angle: float) -> float:
        return self.geometry.p_norm * math.cos(angle)

    def look(self, angle: float, thorough: bool) -> None:
        """Good rules at one angle."""
        part = slice_at(self.geometry, self.eta(angle))
        search = Search(part, SoftDensity(part, 0.0), Budget(self.timer.left).start())
        search.look(ROUNDS[thorough], thorough)
        if search.found is not None:
            graded = steady(best_threshold(self.geometry.instance, search.found.mechanism))
            if self.found is None or graded.gain > self.found.gain:
                self.found = graded

    def bound(self, interval: Interval) -> Fraction:
        """No rule in the interval gains more."""
        geometry = self.geometry
        low, high = self.eta(interval.most), self.eta(interval.least)
        top = Fraction(high) + Fraction(geometry.band) * Fraction(geometry.p_norm_bounds[1])
        rate = top * (1 + 8 * Fraction(EPSILON))
        target = float(self.lower * self.factor / rate) * (1 - 1e-12)
        budget = Budget(self.timer.left, self.timer.budget.threads)
        self.asked += 1
        moved = soft_bound(geometry, max(low, 0.0), high, target, CONES, budget, milp=True)
        return min(interval.upper, rate * moved)

    def run(self) -> Stop:
        """Halve the most promising interval until all are closed."""
        for place in range(FIRST_ANGLES):
            if self.timer.left == 0:
                return Stop.TIME
            self.look(place / FIRST_ANGLES * math.pi / 2, thorough=True)
        self.tell()
        while self.waiting:
            if self.timer.left == 0:
                return Stop.TIME
            interval = heapq.heappop(self.waiting)
            bound = self.bound(interval)
            interval = Interval(-float(bound), interval.least, interval.most, bound)
            if bound <= self.lower * self.factor or interval.most - interval.least < FINEST:
                self.closed.append(interval)
            else:
                middle = (interval.least + interval.most) / 2
                for least, most in ((interval.least, middle), (middle, interval.most)):
                    heapq.heappush(self.waiting, Interval(interval.key, least, most, bound))
                self.look(middle, thorough=False)
            self.tell()
        return Stop.FINISHED

    def tell(self) -> None:
        self.timer.tell(self.lower, self.upper, self.asked)

    def regions(self) -> list[dict[str, Any]]:
        """The intervals for the certificate, by ascending η; each a little wider than it was."""
        room = 1e-13 * self.geometry.p_norm_bounds[1]
        regions = []
        for i in sorted((*self.waiting, *self.closed), key=lambda interval: -interval.least):
            eta = [max(0.0, self.eta(i.most) - room), self.eta(i.least) + room]
            # HiGHS may be a hair below what was found, by its tolerances.
            regions.append({"eta": eta, "at_most": round_up(max(i.upper, self.lower))})
        return regions


class FacetCover:
    """The rates of all facets that can gain, each with a bound from a solver, and the best rule.

    Facets are asked in the order of what they allow at most; those that cannot win are not asked.
    """

    def __init__(self, geometry: Geometry, gap: float, timer: Timer) -> None:
        self.geometry = geometry
        self.timer = timer
        self.gap = gap
        self.factor = 1 / (1 - Fraction(max(gap, 1e-6)))
        self.found: Recount | None = None
        self.asked = 0
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
        """The gain of the best rule found; 0 without one."""
        return Fraction(0) if self.found is None else max(Fraction(0), self.found.gain)

    @property
    def upper(self) -> Fraction:
        """No rule gains more, according to the solver."""
        return max(self.lower, *self.uppers.values())

    def run(self) -> Stop:
        """Ask for each rate, the greatest first."""
        for eta in list(self.uppers):
            if self.uppers[eta] <= self.lower * self.factor:
                continue
            if self.timer.left == 0:
                return Stop.TIME
            oracle = MilpSoft(gap=max(self.gap / 4, 1e-6))
            limits = self.timer.budget
            answer = oracle(self.geometry, eta, Budget(self.timer.left, limits.threads))
            self.asked += 1
            assert answer.upper is not None
            if answer.recount is not None:
                graded = steady(best_threshold(self.geometry.instance, answer.recount.mechanism))
                if self.found is None or graded.gain > self.found.gain:
                    self.found = graded
            moved = answer.upper * (1 + 8 * Fraction(EPSILON))
            self.uppers[eta] = min(self.uppers[eta], self._rate(eta) * moved)
            self.tell()
        return Stop.FINISHED

    def tell(self) -> None:
        self.timer.tell(self.lower, self.upper, self.asked)

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


def solver_name() -> str:
    """The solver that the bounds come from."""
    import highspy  # noqa: PLC0415  (only its version is wanted)

    return f"HiGHS {highspy.Highs().version()}"
