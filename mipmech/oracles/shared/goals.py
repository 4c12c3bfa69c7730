"""What a search over directions maximises: density, soft density, or the gain.

A goal turns ranges of scores into upper bounds, directions into estimates, and a recount into the
exact value that is compared with them. Where requirements leave no rule, that is `NOTHING`, and a
grade is None. Values are in the goal's own units: whole weights for
density, multiples of the geometry's unit for soft density and, times ‖p‖, for the gain.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mipmech.model.edge_of_reach import steady
from mipmech.model.geometry import Geometry
from mipmech.model.grading import Recount
from mipmech.model.masses import Masses, masses
from mipmech.model.mechanism import Mechanism
from mipmech.model.requirements.feasible import (
    best_feasible,
    densest_feasible,
    softest_feasible,
    steady_feasible,
)
from mipmech.model.thresholds import best_threshold, densest_threshold
from mipmech.oracles.shared.cones import Ranges, soft_stab, soft_stabbed_more, stab
from mipmech.oracles.shared.facets import Part
from mipmech.oracles.shared.restrictions import NOTHING, Restrictions, restrictions_of
from mipmech.oracles.shared.slices import Slice, whole_sphere
from mipmech.oracles.shared.tangents import gain_together
from mipmech.rationals import round_down
from mipmech.tolerances import EPSILON, ROUNDING, SAFETY, STEADY_LOSS
from mipmech.validation import Floats

# Scores held in memory at once.
NUMBERS = 1 << 20


def _in_batches(part: Part, v: Floats, estimate: Callable[[Floats], Floats]) -> Floats:
    """Estimate directions in batches, so that many agents do not fill the memory."""
    size = max(1, NUMBERS // len(part.reach))
    starts = range(0, len(v), size)
    return np.concatenate([estimate(part.scores(v[i : i + size])) for i in starts])


def _between(
    scores: Floats, reach: Floats, b: Floats, amount: Floats | NDArray[np.int64]
) -> Floats:
    """The amounts of the agents in the margin of each threshold b, added up."""
    ends = scores + reach
    begun, ended = np.argsort(scores), np.argsort(ends)
    up_to = np.concatenate([[0], np.cumsum(amount[begun])])
    before = np.concatenate([[0], np.cumsum(amount[ended])])
    inside = up_to[np.searchsorted(scores[begun], b, side="right")]
    inside = inside - before[np.searchsorted(ends[ended], b, side="left")]
    return np.asarray(inside, dtype=np.float64)


# A reach beyond this many units never binds for density: b may be the largest score of those
# covered, and scores differ by little more than 2.
LONG = 4.0
# What is a share of a whole number short of the next one is that one.
WHOLE = 1e-6
# Less than this share of what all can move is rounding.
RESIDUE = 1e-12
# Reaches are rounded, and so is what is added to them; upwards, that is allowed for.
UP = 1 + 8 * EPSILON


@dataclass(frozen=True, eq=False)
class Demanding:
    """What all goals know about requirements."""

    part: Part

    @cached_property
    def limits(self) -> Restrictions | None:
        """What is demanded of the rules on the part."""
        return restrictions_of(self.part)

    @property
    def by_share(self) -> Restrictions | None:
        """The same, if something is demanded of who is accepted."""
        limits = self.limits
        return limits if limits is not None and limits.shares is not None else None

    @property
    def nothing(self) -> float:
        """What is known before any rule is."""
        return 0.0 if self.limits is None else NOTHING


@dataclass(frozen=True, eq=False)
class Density(Demanding):
    """The weight of the agents in the margin, in whole numbers (`masses.Masses`)."""

    mass: Masses

    @classmethod
    def on(cls, part: Part) -> Density:
        """Density on a slice."""
        return cls(part, masses(part.geometry.instance.weights[part.agents]))

    @property
    def reach(self) -> Floats:
        """Cut where they never bind; if it matters who is accepted, they do."""
        if self.by_share is not None:
            return self.part.reach
        return np.minimum(self.part.reach, LONG)

    def bounds(self, where: Ranges, floor: float) -> Floats:
        """Interval stabbing."""
        if self.by_share is not None:
            most = self.by_share.bounds(where, self.reach * UP, self.mass.whole, soft=False)
            return np.floor(most + WHOLE)
        ends = where.high + self.reach * UP
        return stab(where.low, ends, self.mass.whole, math.floor(floor))

    def estimates(self, v: Floats, floor: float = 0.0) -> Floats:
        """Interval stabbing at single directions; what is not above the floor counts as that."""

        def estimate(scores: Floats) -> Floats:
            if self.by_share is not None:
                return self.by_share.estimates(scores, self.reach, self.mass.whole, soft=False)
            return stab(scores, scores + self.reach, self.mass.whole, math.floor(floor))

        return _in_batches(self.part, v, estimate)

    def threshold(self, scores: Floats) -> float:
        """The densest threshold: the largest score of those covered."""
        mass = _between(scores, self.reach, scores, self.mass.whole)
        return float(scores[mass.argmax()])

    def grade(self, direction: Mechanism) -> Recount | None:
        """The densest threshold along a direction."""
        demands = self.part.geometry.demands
        if demands is not None:
            return densest_feasible(demands, direction)
        return densest_threshold(self.part.geometry.instance, direction).recount

    def value(self, found: Recount) -> float:
        """Whole weights in the margin."""
        return round_down(Fraction(math.floor(found.density / self.mass.unit)))

    @property
    def most(self) -> float:
        """All agents."""
        return float(self.mass.whole.sum())

    def enough(self, best: float) -> float:
        """Only what is above the best found is worth a look."""
        if best < 0:
            return best
        return best + self.mass.excess

    def exactly(self, value: float) -> Fraction:
        """As a density."""
        return min(Fraction(1), Fraction(value) * self.mass.unit)

    @property
    def grain(self) -> float:
        """One agent, or a hundredth of all."""
        return 1.0 if self.mass.equal else max(1.0, self.most / 100)


@dataclass(frozen=True, eq=False)
class SoftDensity(Demanding):
    """The weighted distance moved, in multiples of the geometry's unit.

    gap : bounds within this share of the best value count as closed
    """

    gap: float

    @property
    def reach(self) -> Floats:
        """As they are."""
        return self.part.reach

    def bounds(self, where: Ranges, floor: float) -> Floats:
        """Stabbing with what each interval can give at most."""
        reach = self.part.reach * UP
        if self.by_share is not None:
            return self.by_share.bounds(where, reach, self.part.weight, soft=True)
        most = soft_stab(where.low, where.high + reach, reach, self.part.weight)
        return np.maximum(most, floor)

    def estimates(self, v: Floats) -> Floats:
        """The best threshold at single directions."""
        reach, weight = self.part.reach, self.part.weight

        def estimate(scores: Floats) -> Floats:
            if self.by_share is not None:
                return self.by_share.estimates(scores, reach, weight, soft=True)
            return soft_stab(scores, scores + reach, reach, weight)

        return _in_batches(self.part, v, estimate)

    def threshold(self, scores: Floats) -> float:
        """The best threshold: the end of some agent's reach."""
        reach, weight = self.part.reach, self.part.weight
        ends = scores + reach
        soft = ends * _between(scores, reach, ends, weight)
        soft -= _between(scores, reach, ends, weight * scores)
        return float(ends[soft.argmax()])

    def grade(self, direction: Mechanism) -> Recount | None:
        """The best threshold along a direction, stepped off the edge."""
        demands = self.part.geometry.demands
        if demands is not None:
            met = softest_feasible(demands, direction)
            return None if met is None else steady_feasible(demands, met, self.gap / 4)
        return steady(best_threshold(self.part.geometry.instance, direction), self.gap / 4)

    def value(self, found: Recount) -> float:
        """Soft density in multiples of the unit, rounded down."""
        return round_down(found.soft_density_below / Fraction(self.part.geometry.unit))

    @property
    def most(self) -> float:
        """All agents move as far as possible."""
        return float(self.part.weight @ self.part.reach) * (1 + len(self.part.reach) * EPSILON) * UP

    def enough(self, best: float) -> float:
        """The best value and the gap."""
        if best < 0:
            return best
        if self.limits is not None:  # requirements may leave nothing to move for
            return max(best * (1 + self.gap), RESIDUE * self.most)
        return best * (1 + self.gap)

    def exactly(self, value: float) -> Fraction:
        """In the user's units."""
        return Fraction(value) * Fraction(self.part.geometry.unit)

    @property
    def grain(self) -> float:
        """A hundredth of what everyone can move at most."""
        return float(self.part.weight @ self.part.reach) / 100


# Adding rate and distances before they are bounded takes longer than counting: it is tried for
# cones that counting leaves open by no more than this factor, and whose centre has at least this
# share of the greatest rate.
NEARLY, LEAST_RATE = 1.5, 0.02


@dataclass(frozen=True, eq=False)
class Gain(Demanding):
    """The gain over all directions (Euclidean costs), in multiples of the geometry's unit × ‖p‖.

    part : `slices.whole_sphere`
    gap : bounds within this share of themselves of the best value count as closed
    p : (k,) array p̂
    together : whether rate and distances are added before they are bounded (`tangents`)
    """

    part: Slice
    gap: float
    p: Floats
    together: bool = True

    @classmethod
    def on(cls, geometry: Geometry, gap: float, together: bool = True) -> Gain:
        """The gain on an instance with p ≠ 0."""
        return cls(whole_sphere(geometry), gap, geometry.p / np.linalg.norm(geometry.p), together)

    @property
    def reach(self) -> Floats:
        """As they are."""
        return self.part.reach

    @cached_property
    def doubt(self) -> float:
        """What u·p̂ may be off by, seen from the exact p in multiples of the greatest ‖p‖."""
        geometry = self.part.geometry
        rounded = 64 * (geometry.rank + 4) * EPSILON
        return 2 * SAFETY * geometry.rounding.p / geometry.p_norm_bounds[1] + rounded

    def rates(self, where: Ranges) -> tuple[Floats, Floats]:
        """The range of u·p̂ over each cone, (n,) arrays: cap or box, as in `cones`."""
        t = np.clip(where.centre @ self.p, -1.0, 1.0)
        cosine = np.sqrt(np.maximum(0.0, 1 - where.sine**2))
        rest = np.abs(self.p - t[:, None] * where.centre)
        off = np.einsum("nj,nj->n", rest, where.steps)
        across = np.sqrt(np.maximum(0.0, 1 - t**2) + 64 * EPSILON) * where.sine
        wide = where.sine >= 1
        high = np.minimum(t * cosine + across, np.maximum(t, t * cosine) + off)
        low = np.maximum(t * cosine - across, np.minimum(t, t * cosine) - off)
        high = np.where(wide | (t >= cosine), 1.0, high)
        low = np.where(wide | (-t >= cosine), -1.0, low)
        return np.maximum(-1.0, low) - self.doubt, np.minimum(1.0, high) + self.doubt

    def bounds(self, where: Ranges, floor: float) -> Floats:
        """Soft stabbing times the greatest rate; where that nearly suffices, both together."""
        part, reach = self.part, self.part.reach * UP
        rate = self.rates(where)[1]
        most, up = np.zeros(len(rate)), rate > 0
        if up.any():
            low, high = where.low[up], where.high[up]
            if self.by_share is not None:
                soft = self.by_share.bounds(where[up], reach, part.weight, soft=True)
                soft = np.maximum(soft, 0.0)  # a rule that is not allowed gains nothing
            else:
                soft = soft_stab(low, high + reach, reach, part.weight)
            most[up] = soft * rate[up] * (1 + 4 * EPSILON)
        enough = self.enough(floor)
        near = (most > enough) & (most <= NEARLY * enough) & (where.sine < 1)
        near &= where.centre @ self.p >= LEAST_RATE
        if self.together and near.any():
            doubt = self.doubt + float(part.weight @ part.slack)
            better = gain_together(where[near], part.across, reach, part.weight, self.p, doubt)
            most[near] = np.minimum(most[near], better)
        return np.maximum(most, floor)

    def window(self, where: Ranges, best: float) -> tuple[float, float] | None:
        """The range of the thresholds at which more than the best may be gained in some cone."""
        up = self.rates(where)[1] > 0
        where = where[up]
        if not up.any():
            return None
        reach, enough = self.part.reach * UP, self.enough(best)
        than = enough / self.rates(where)[1] * (1 - 4 * EPSILON)
        return soft_stabbed_more(where.low, where.high + reach, reach, self.part.weight, than)

    def estimates(self, v: Floats) -> Floats:
        """The best threshold at single directions."""
        reach, weight = self.part.reach, self.part.weight

        def estimate(scores: Floats) -> Floats:
            if self.by_share is not None:
                return self.by_share.estimates(scores, reach, weight, soft=True)
            return soft_stab(scores, scores + reach, reach, weight)

        return np.maximum(0.0, v @ self.p) * _in_batches(self.part, v, estimate)

    @property
    def nothing(self) -> float:
        """Only rules that gain are looked for."""
        return 0.0

    def threshold(self, scores: Floats) -> float:
        """The best threshold: the end of some agent's reach."""
        return SoftDensity(self.part, 0.0).threshold(scores)

    def grade(self, direction: Mechanism) -> Recount | None:
        """The best threshold along a direction, stepped off the edge."""
        demands, most_loss = self.part.geometry.demands, min(STEADY_LOSS, self.gap / 4)
        if demands is not None:
            met = best_feasible(demands, direction)
            return None if met is None else steady_feasible(demands, met, most_loss)
        found = best_threshold(self.part.geometry.instance, direction)
        return steady(found, most_loss)

    def value(self, found: Recount) -> float:
        """The gain in the goal's units, rounded down; 0 for a loss."""
        return max(0.0, round_down(found.gain / self._one))

    @cached_property
    def _one(self) -> Fraction:
        geometry = self.part.geometry
        return Fraction(geometry.unit) * Fraction(geometry.p_norm_bounds[1])

    @property
    def most(self) -> float:
        """All agents move as far as possible along p."""
        return SoftDensity(self.part, 0.0).most * (1 + self.doubt) * UP

    def enough(self, best: float) -> float:
        """What leaves the gap asked for, and a hair less, for sums in rationals."""
        return max(best, best / (1 - self.gap) * (1 - ROUNDING))

    def exactly(self, value: float) -> Fraction:
        """In the user's units."""
        return Fraction(value) * self._one

    @property
    def grain(self) -> float:
        """A five-hundredth of what everyone can move at most."""
        return float(self.part.weight @ self.part.reach) / 500


Goal = Density | SoftDensity | Gain
