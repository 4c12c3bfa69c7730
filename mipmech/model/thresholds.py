"""The best threshold for a fixed direction: one sort and one pass, then an exact step.

Along a direction, agent i is in the margin for b in the closed interval [s_i, e_i], with s_i its
score and e_i = s_i + reach_i. As b grows, soft density rises with slope equal to the density and
falls only when an interval ends, so its maximum sits at some right end e_i (`best_threshold`).
Density is a matter of stabbing the intervals (`densest_threshold`).

A right end computed in floats may lie just beyond the true one and lose agent i. So the pass counts
every agent whose end is within rounding of b, and the threshold then steps inward until those are
covered in rationals, which costs a few units in the last place. The exact recount picks the winner.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipmech.model.grading import ExactDirection, Recount, Side
from mipmech.model.instance import Instance
from mipmech.model.mechanism import Mechanism
from mipmech.rationals import common_integers, exact_sum, round_up
from mipmech.tolerances import EPSILON, LARGEST, ROUNDING
from mipmech.validation import Floats, Numbers

# Levels tried before the best is taken; more than two only where rounding hides the order.
LEVELS_TRIED = 50
# Each step inward looks at no more agents than this one by one; more steps follow if needed.
ENDS_AT_ONCE = 64
# How many of the best stabbing points are tried before a gap is left to the bound.
STABS_TRIED = 200


def best_threshold(instance: Instance, mechanism: Mechanism) -> Recount:
    """The threshold of greatest soft density (hence gain, if w·w_f > 0) along a direction.

    O(m log m); within a few rounding errors of the maximum over all real thresholds.

    Parameters
    ----------
    instance : Instance
        The sample.
    mechanism : Mechanism
        The direction; its threshold is ignored.

    Examples
    --------
    >>> sample = Instance.from_arrays([[0.0], [0.1], [0.9]], [1.0], visible=[0], cost=1.0)
    >>> found = best_threshold(sample, Mechanism((1.0,), 0.0))
    >>> found.mechanism.threshold, found.covered.tolist()
    (1.0, [0, 1, 2])
    """
    mechanism = of_usual_length(mechanism)
    direction = ExactDirection(instance, mechanism)
    ends = direction.scores + direction.limits
    # At its own end, agent i alone brings ω_i ℓ_i, however small it is beside the others' sum.
    alone = instance.weights / float(exact_sum(instance.weights)) * direction.limits
    slack = 2 * direction.error
    return best_of_levels(direction, mechanism, ends, slack, direction.right_end, alone)


def of_usual_length(mechanism: Mechanism) -> Mechanism:
    """The same direction, in weights whose thresholds floats can hold."""
    largest = max(map(abs, mechanism.weights))
    if 1 / LARGEST <= largest <= LARGEST:
        return mechanism
    exponent = -math.frexp(largest)[1]
    v = mechanism.view_weights
    return Mechanism(
        tuple(math.ldexp(w, exponent) for w in mechanism.weights),
        0.0,
        None if v is None else tuple(math.ldexp(w, exponent) for w in v),
    )


def best_of_levels(
    direction: ExactDirection,
    mechanism: Mechanism,
    levels: Floats,
    slack: Floats,
    start: Callable[[int], float],
    at_least: Floats | float = 0.0,
) -> Recount:
    """The best of these levels (in the direction's units), by exact recount; floats only rank them.

    Level i is known to within ``slack``; ``start(i)`` is its threshold as a float. Agents whose end
    is within rounding of the level count as covered in the first ranking, and the threshold steps
    inward to keep them if that is worth it. ``at_least`` bounds the value of each level from below.
    """
    ends = direction.scores + direction.limits
    doubt = 2 * direction.error
    hopeful, mass = soft_profile(direction, levels, slack)
    hopeful = np.maximum(hopeful, at_least)
    # What the level is worth at least, were its agents as counted. Ranking by this keeps a level
    # of great size and little worth, known only roughly, from hiding the others.
    rounding = 16 * EPSILON * (np.abs(levels * mass) + np.abs(hopeful))
    sure = hopeful - rounding
    best: Recount | None = None
    for _ in range(min(LEVELS_TRIED, len(levels))):
        i = int(np.argmax(sure))
        # Of levels that rounding cannot tell apart, the lowest: so that neither the order of the
        # agents nor the machine decides.
        tied = np.flatnonzero(sure >= sure[i] - 2 * rounding[i])
        i = int(tied[np.argmin(levels[tied])])
        if best is not None and best.moved >= sure[i]:
            break
        here = start(i)
        near = np.flatnonzero(np.abs(ends - levels[i]) <= doubt + slack[i])
        for threshold in {here, step_inward(direction, here, near)}:
            found = direction.recount(mechanism, threshold)
            if best is None or found.moved > best.moved:
                best = found
        sure[i] = -np.inf
    assert best is not None
    return best


def soft_profile(
    direction: ExactDirection, levels: Floats, slack: Floats | float = 0.0
) -> tuple[Floats, Floats]:
    """‖w‖·SDen and Den at each of these levels (in the direction's units), O((m + L) log m).

    ``slack`` (one per level) counts agents whose end is at most that much, and the rounding of
    their own end, below the level.
    """
    starts = direction.scores
    weights = direction.instance.weights / float(exact_sum(direction.instance.weights))
    latest = starts + direction.limits + 2 * direction.error
    by_start = np.argsort(starts, kind="stable")
    by_end = np.argsort(latest, kind="stable")
    # Looked up in ascending order, a million levels stay in the cache: twice as fast.
    order = np.argsort(levels, kind="stable")
    begun = np.searchsorted(starts[by_start], levels[order], side="right")
    ended = np.searchsorted(latest[by_end], (levels - slack)[order], side="left")
    moment = weights * starts
    soft, mass = np.empty(len(levels)), np.empty(len(levels))
    mass[order] = _between(weights[by_start], begun, weights[by_end], ended)
    soft[order] = _between(moment[by_start], begun, moment[by_end], ended)
    return levels * mass - soft, mass


def _between(plus: Floats, up_to: Numbers, minus: Floats, down_to: Numbers) -> Floats:
    """Σ plus[:up_to] − Σ minus[:down_to], as accurate as if summed with twice the digits.

    A plain difference of running sums would drown a thin margin in a large sample.
    """
    high_plus, low_plus = _running(plus)
    high_minus, low_minus = _running(minus)
    difference: Floats = high_plus[up_to] - high_minus[down_to]
    return difference + (low_plus[up_to] - low_minus[down_to])


def _running(values: Floats) -> tuple[Floats, Floats]:
    """Running sums from 0, and the running sum of their rounding errors (Knuth's two-sum)."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    before, after = total[:-1], total[1:]
    kept = after - before
    error = (before - (after - kept)) + (values - kept)
    return total, np.concatenate([[0.0], np.cumsum(error)])


def step_inward(direction: ExactDirection, threshold: float, agents: Numbers) -> float:
    """The largest float threshold, from this one down, that is within reach of all these agents."""
    while True:
        lost = agents[direction.sides(threshold, agents) == Side.BEYOND]
        if not len(lost):
            return threshold
        threshold = min(direction.right_end(int(i)) for i in lost[:ENDS_AT_ONCE])


@dataclass(frozen=True)
class Densest:
    """The densest threshold found along a direction, and a bound over all real thresholds.

    Attributes
    ----------
    recount : Recount
    upper : Fraction
    """

    recount: Recount
    upper: Fraction

    def to_dict(self) -> dict[str, Any]:
        """The outcome, and the bound rounded up."""
        return {**self.recount.to_dict(), "upper": round_up(self.upper)}


def densest_threshold(instance: Instance, mechanism: Mechanism, widen: float = 0.0) -> Densest:
    """The threshold of greatest density along a direction, with an upper bound.

    Where the bound is met only by a threshold that is not a float (an interval that ends exactly
    where another begins), a gap remains and is reported.

    Parameters
    ----------
    instance : Instance
        The sample.
    mechanism : Mechanism
        The direction; its threshold is ignored.
    widen : float
        The bound holds for all directions whose scores differ by at most this, in the user's units,
        for weights of length one.

    Examples
    --------
    >>> sample = Instance.from_arrays([[0.0], [0.1], [3.0]], [1.0], visible=[0], cost=1.0)
    >>> found = densest_threshold(sample, Mechanism((1.0,), 0.0))
    >>> found.recount.density == found.upper == Fraction(2, 3)
    True
    """
    mechanism = of_usual_length(mechanism)
    direction = ExactDirection(instance, mechanism)
    starts = direction.scores
    ends = starts + direction.limits
    slack = 2 * direction.error
    total = exact_sum(instance.weights)
    integers, shift = common_integers(instance.weights)
    margin = slack + widen * direction.norm * (1 + ROUNDING)
    counts, _points = _stabs(starts - margin, ends + margin, integers)
    upper = Fraction(int(counts.max()), 1 << shift) / total
    hopeful, points = _stabs(starts - slack, ends + slack, integers)
    best: Recount | None = None
    for place in np.argsort(-hopeful, kind="stable")[:STABS_TRIED]:
        promise = Fraction(int(hopeful[place]), 1 << shift) / total
        if best is not None and best.density >= promise:
            break
        point = points[place]
        hit = np.flatnonzero((starts - slack <= point) & (point <= ends + slack))
        for threshold in _through(direction, hit, starts, ends):
            found = direction.recount(mechanism, threshold)
            if best is None or found.density > best.density:
                best = found
    assert best is not None
    return Densest(best, upper)


def _stabs(starts: Floats, ends: Floats, weights: NDArray[np.object_]) -> tuple[Numbers, Floats]:
    """The weight of the closed intervals over each start, exact; and the starts, ascending."""
    by_start = np.argsort(starts, kind="stable")
    by_end = np.argsort(ends, kind="stable")
    points = starts[by_start]
    if int(weights.max()) * len(weights) < 1 << 62:
        weights = weights.astype(np.int64)
    begun = np.cumsum(weights[by_start])
    ended = np.concatenate([[0], np.cumsum(weights[by_end])])
    # Equal starts count together: look at the last of them.
    last = np.searchsorted(points, points, side="right") - 1
    return begun[last] - ended[np.searchsorted(ends[by_end], points, side="left")], points


def _through(direction: ExactDirection, hit: Numbers, starts: Floats, ends: Floats) -> list[float]:
    """Thresholds that may lie in all these intervals."""
    last_start, first_end = float(starts[hit].max()), float(ends[hit].min())
    slack = 4 * float(direction.error.max())
    if first_end - last_start > slack:  # room inside: the middle is farthest from rounding
        return [direction.threshold((last_start + first_end) / 2)]
    late = hit[starts[hit] >= last_start - slack][:ENDS_AT_ONCE]
    early = hit[ends[hit] <= first_end + slack][:ENDS_AT_ONCE]
    return [
        max(direction.left_end(int(i)) for i in late),
        min(direction.right_end(int(i)) for i in early),
    ]
