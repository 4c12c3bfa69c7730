"""Theorem 1: the best linear mechanism is the longest vector along P w_f. Lemma 9: who moves.

Both hold for every cost, with N(w), the norm that is dual to that of the costs, for ‖w‖, and the
direction of the greatest rate for P w_f/‖P w_f‖.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mipmech import validation
from mipmech.errors import InputError
from mipmech.model.geometry import reduce
from mipmech.model.instance import Instance
from mipmech.model.mechanism import from_reduced
from mipmech.tolerances import ROUNDING
from mipmech.validation import Flags, Floats


@dataclass(frozen=True, eq=False, repr=False)
class LinearResponse:
    """How agents respond to a linear mechanism g(x) = w·x − b (Lemma 9).

    Attributes
    ----------
    unbounded : (m,) array of bool
        These agents gain by every further step along w and never stop.
    """

    unbounded: Flags

    def __repr__(self) -> str:
        return f"LinearResponse({self})"

    def __str__(self) -> str:
        count = int(self.unbounded.sum())
        if count == 0:
            return "no agent moves: a step costs more than the score it brings"
        if count == len(self.unbounded):
            return "every agent would move along the weights without bound"
        return f"{count} agents would move along the weights without bound; the others stay"


def linear_response(instance: Instance, weights: ArrayLike) -> LinearResponse:
    """Lemma 9: agents with cost above N(w) stay; all others move without bound.

    N(w) is ‖w‖ for Euclidean costs. At cost = N(w) the agent is indifferent; as in the paper, it
    counts as moving.

    Parameters
    ----------
    instance : Instance
        The sample.
    weights : (n,) array_like
        In the user's coordinates.

    Examples
    --------
    >>> sample = Instance.from_arrays([[0.0], [0.0]], [1.0], visible=[0], cost=[1.0, 2.0])
    >>> linear_response(sample, [1.0]).unbounded.tolist()
    [True, False]
    """
    w = validation.array(weights, "weights", 1)
    validation.length(w, instance.width, "weights", "one per feature")
    exact = {int(j): Fraction(float(w[j])) for j in np.flatnonzero(w)}
    if not exact:
        return LinearResponse(np.zeros(instance.size, dtype=np.bool_))
    square = instance.costs.respond(exact, instance.exact_quality).square
    return LinearResponse(_reached_by(instance, square))


def _reached_by(instance: Instance, norm_squared: Fraction) -> Flags:
    """Whose cost is at most the norm; settled in rationals where floats are too close to tell."""
    costs = instance.costs
    low, high = (float(norm_squared) ** 0.5 * factor for factor in (1 - ROUNDING, 1 + ROUNDING))
    result: Flags = instance.cost <= low
    for i in np.flatnonzero((instance.cost > low) & (instance.cost < high)):
        result[i] = costs.reach_of(int(i)) ** 2 * norm_squared >= 1
    return result


@dataclass(frozen=True, eq=False, repr=False)
class LinearRule:
    """The linear mechanism of Theorem 1 and what it does.

    Attributes
    ----------
    weights : (n,) array
        R · P w_f/‖P w_f‖ (all 0 if P w_f = 0).
    response : LinearResponse
        Who moves without bound (Lemma 9).
    value, baseline : float
        E[h(f)] afterwards, which may be infinite, and before.
    """

    weights: Floats
    response: LinearResponse
    value: float
    baseline: float

    def to_dict(self) -> dict[str, Any]:
        """The rule and what it does; an infinite value is None."""
        return {
            "weights": self.weights.tolist(),
            "unbounded": np.flatnonzero(self.response.unbounded).tolist(),
            "value": self.value if math.isfinite(self.value) else None,
            "baseline": self.baseline,
        }

    def __repr__(self) -> str:
        weights = np.array2string(self.weights, precision=4, threshold=8)
        return f"LinearRule(weights={weights}, value={self.value:.6g}; {self.response})"


def linear_rule(
    instance: Instance,
    norm: float,
    h: Callable[[Floats], Floats] | None = None,
    h_limit: float | None = None,
) -> LinearRule:
    """Theorem 1: among linear rules of length at most ``norm``, R·P w_f/‖P w_f‖ has the best gain.

    For other costs than Euclidean ones, the length is N(w), and the direction the steepest. The
    paper says that h is monotonic; for a decreasing h the theorem is false, and such an h is
    refused where the sample shows it.

    Parameters
    ----------
    instance : Instance
        The sample.
    norm : float
        R.
    h : callable, optional
        A *nondecreasing* function of an array of qualities; by default the quality itself.
    h_limit : float, optional
        The limit of h at infinity, which agents who move without bound reach; needed with ``h``.

    Examples
    --------
    >>> sample = Instance.from_arrays([[0.0], [1.0]], [1.0], visible=[0], cost=[1.0, 3.0])
    >>> linear_rule(sample, 2.0, h=np.tanh, h_limit=1.0).value  # agent 0 moves without bound
    0.8807970779778824
    """
    if not norm >= 0 or math.isinf(norm):
        raise InputError(f"is {norm}; give a length of 0 or more", field="norm")
    quality = instance.agents @ instance.quality - instance.quality_offset
    levels = quality if h is None else np.asarray(h(quality), dtype=np.float64)
    if h is None:
        h_limit = math.inf
    if h_limit is None:
        raise InputError("is missing: give the limit of h at infinity", field="h_limit")
    in_order = levels[np.argsort(quality, kind="stable")]
    if not ((np.diff(in_order) >= 0).all() and in_order[-1] <= h_limit):
        said = "must be nondecreasing with limit h_limit; Theorem 1 needs that"
        raise InputError(said, field="h")
    geometry = reduce(instance)
    share = instance.weights / instance.weights.sum()
    baseline = float(share @ levels)
    if geometry.p_norm == 0 or norm == 0:
        # No visible direction changes quality: all moves are orthogonal to w_f.
        still = LinearResponse(np.zeros(instance.size, dtype=np.bool_))
        return LinearRule(np.zeros(instance.width), still, baseline, baseline)
    unit = from_reduced(geometry, geometry.steepest, 0.0).weights
    response = LinearResponse(_reached_by(instance, Fraction(norm) ** 2))
    after = np.where(response.unbounded, h_limit, levels)
    counts = share > 0  # 0 · inf would be NaN
    value = float(share[counts] @ after[counts])
    return LinearRule(norm * np.array(unit), response, value, baseline)
