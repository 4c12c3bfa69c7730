"""Theorem 2: thresholds along P w_f, with the guarantees that are really proved.

Let s_i be the scores along the unit vector P w_f/‖P w_f‖, 2r their range, ℓ_i the reaches. No
mechanism gains more than ‖P w_f‖ Σ ω_i ℓ_i (`gain_ceiling`), since u·p ≤ ‖P w_f‖ and agent i moves
at most ℓ_i.

All thresholds. ∫ SDen(b) db = Σ ω_i ℓ_i²/2, over an interval of length 2r + ℓ_max; the best b is at
least as good as the average, so the best threshold has at least the share

    Σ ω ℓ² / (2 (2r + ℓ_max) Σ ω ℓ)         (equal costs: 1/(4rc + 2))

of the ceiling, hence of the best gain.

The grid b_j = s_min + jh, j = 1 … J, with h = ℓ_min/2. Let q_i = ⌊ℓ_i/h⌋ ≥ 2. The first grid point
at or above s_i is at distance t ∈ [0, h); the points at t, t + h, …, t + (q_i − 1)h are all within
reach, and their distances add up to at least h q_i(q_i − 1)/2. (A point at distance 0 adds nothing,
so b_0 is not needed.) The last point needed is j = J = ⌈2r/h⌉ + q_max − 1. The best of the J points
is at least as good as their average, so its share of the ceiling is at least

    h Σ ω q(q − 1)/2 / (J Σ ω ℓ)            (equal costs: 1/(2⌈4rc⌉ + 2) ≥ 1/(8rc + 4)).

None of this needs Euclidean costs: for others, read the greatest rate for ‖P w_f‖, a direction that
has it for P w_f (l1: the feature that pays most), and N(w) = 1 for unit length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from mipmech.errors import InputError
from mipmech.model.edge_of_reach import steady
from mipmech.model.geometry import Geometry, reduce, seen_square
from mipmech.model.grading import ExactDirection, Recount
from mipmech.model.instance import Instance
from mipmech.model.mechanism import Mechanism, from_reduced
from mipmech.model.thresholds import best_of_levels, best_threshold
from mipmech.rationals import exact_dot, exact_sum, round_down, round_up, sqrt_bounds
from mipmech.tolerances import EPSILON, ROUNDING
from mipmech.validation import Floats


@dataclass(frozen=True, eq=False, repr=False)
class ProjectionRule:
    """The rule of Theorem 2: a threshold along P w_f.

    Attributes
    ----------
    recount : Recount
    factor : float
        Its gain is at least this share of the best gain of any mechanism, because it is this share
        of the ceiling; rounded down.
    promised : float
        The share that Theorem 2 promises before the sample is looked at, for real thresholds;
        ``factor`` is at least as large unless the reach is lost in the rounding of the threshold
        (data at 1e16 with a reach of 1).
    tried : int or None
        The number of thresholds tried; None for all real ones.
    """

    recount: Recount
    factor: float
    promised: float
    tried: int | None

    def __repr__(self) -> str:
        return (
            f"ProjectionRule(gain={float(self.gain):.6g}, at least {self.factor:.4g} of the best;"
            f" {self.mechanism})"
        )

    @property
    def mechanism(self) -> Mechanism:
        """The rule itself."""
        return self.recount.mechanism

    @property
    def gain(self) -> Fraction:
        """Its exact gain."""
        return self.recount.gain

    def to_dict(self) -> dict[str, Any]:
        """The outcome and the guarantees."""
        return {
            **self.recount.to_dict(),
            "factor": self.factor,
            "promised": self.promised,
            "thresholds_tried": self.tried,
        }


def projection_rule(
    instance: Instance, thresholds: Literal["all", "grid"] = "all"
) -> ProjectionRule | None:
    """Theorem 2, corrected: the best threshold along P w_f, over all b or over a grid.

    Parameters
    ----------
    instance : Instance
        The sample.
    thresholds : {"all", "grid"}
        All real thresholds, or Theorem 2's grid.

    Returns
    -------
    ProjectionRule or None
        None if P w_f = 0: then no visible rule changes quality, and every gain is 0.

    Examples
    --------
    >>> sample = Instance.from_arrays([[0.0, 1.0], [0.5, 0.0]], [1.0, 2.0], visible=[0], cost=1.0)
    >>> rule = projection_rule(sample)
    >>> round(rule.recount.mechanism.threshold, 9), round(float(rule.recount.gain), 9)
    (1.0, 0.75)
    >>> round(rule.factor, 6), round(rule.promised, 6)
    (0.75, 0.333333)
    """
    if thresholds not in ("all", "grid"):
        raise InputError(f"is {thresholds!r}; give all or grid", field="thresholds")
    geometry = reduce(instance)
    if geometry.p_norm == 0:
        return None
    along = from_reduced(geometry, geometry.steepest, 0.0)
    range_ = _range(geometry)
    if thresholds == "all":
        promised, tried = best_threshold_factor(instance, range_), None
        found = best_threshold(instance, along)
    else:
        step, tried, promised = _grid(instance, range_)
        direction = ExactDirection(instance, along)
        levels = _worth_trying(direction, step, tried)
        slack = 4 * EPSILON * np.abs(levels)
        found = best_of_levels(
            direction, along, levels, slack, lambda i: direction.threshold(float(levels[i]))
        )
    found = steady(found)
    factor = round_down(found.gain / Fraction(gain_ceiling(instance)))
    return ProjectionRule(found, factor, promised, tried)


def _range(geometry: Geometry) -> float:
    """2r: the range of the scores along P w_f, in the user's units, agents that count only."""
    counts = geometry.weight > 0
    scores = geometry.z[counts] @ geometry.steepest
    error = geometry.rounding.z[counts]
    rounded = float((scores + error).max() - (scores - error).min())
    return rounded * geometry.unit * (1 + ROUNDING)


def best_threshold_factor(instance: Instance, range_: float) -> float:
    """The share of the best gain that the best of all thresholds along P w_f surely has.

    Parameters
    ----------
    instance : Instance
        The sample.
    range_ : float
        2r, the range of the scores along P w_f/‖P w_f‖.
    """
    weight, reach = _counting(instance)
    longest = float(reach.max())
    relative = reach / longest  # squares of reaches might overflow
    top, mean = (float(exact_dot(weight, r)) for r in (relative**2, relative))
    return top / (2 * (range_ / longest + 1) * mean) * (1 - ROUNDING)


def _grid(instance: Instance, range_: float) -> tuple[float, int, float]:
    """The step h and number J of grid points of Theorem 2, and the share that they promise."""
    weight, reach = _counting(instance)
    step = float(reach.min()) / 2
    # Any whole q_i with q_i h ≤ ℓ_i will do in the proof; rounded down, to be on the safe side.
    steps = np.maximum(2.0, np.floor(reach / step * (1 - ROUNDING)))
    most = float(steps.max())
    count = math.ceil(range_ / step) + int(most) - 1
    # Σω_i q_i (q_i − 1) h/2 over J Σω_i ℓ_i; squares of q_i might overflow.
    sums = float(exact_dot(weight, steps / most * (steps - 1)) / exact_dot(weight, reach))
    promised = step / 2 * sums * (most / count) * (1 - ROUNDING)
    return step, count, promised


def _worth_trying(direction: ExactDirection, step: float, count: int) -> Floats:
    """The grid points next to some agent's end, as levels: between ends, soft density only rises.

    There are at most three per agent, however fine the grid.
    """
    counts = direction.instance.weights > 0
    lowest = float(direction.scores[counts].min())
    height = step * direction.norm
    ends = (direction.scores + direction.limits)[counts]
    near = np.floor((ends - lowest) / height)
    numbers = np.unique(np.clip(np.concatenate([near - 1, near, near + 1]), 1, count))
    return np.asarray(lowest + height * numbers)


def _counting(instance: Instance) -> tuple[Floats, Floats]:
    """Weights (not normalised) and reaches of the agents that count."""
    counts = instance.weights > 0
    return instance.weights[counts], instance.reach[counts]


def gain_ceiling(instance: Instance) -> float:
    """The ceiling ‖P w_f‖ Σ ω_i ℓ_i, rounded up: no mechanism gains more.

    Parameters
    ----------
    instance : Instance
        The sample.

    Examples
    --------
    >>> gain_ceiling(Instance.from_arrays([[0.0], [9.0]], [2.0], visible=[0], cost=4.0))
    0.5
    """
    weight, reach = _counting(instance)
    if (reach == reach[0]).all():
        mean = instance.costs.of(instance.weights > 0).longest
    else:  # each reach is rounded by less than EPSILON of itself
        mean = exact_dot(weight, reach) / exact_sum(weight) * (1 + 2 * Fraction(EPSILON))
    return round_up(sqrt_bounds(seen_square(instance))[1] * mean)
