"""What passing is worth in moves: how far people go, feature by feature, at these costs."""

from __future__ import annotations

from typing import Any

import numpy as np

from mipmech.model.instance import Instance
from mipmech.validation import Floats


def seen_features(instance: Instance) -> list[int]:
    """The features that the planner's view depends on.

    Parameters
    ----------
    instance : Instance
        The sample.
    """
    return [int(j) for j in np.flatnonzero((instance.view.matrix != 0).any(axis=0))]


def moved_along(instance: Instance) -> list[int]:
    """The hidden features that move along with what is seen: effort that spills over (a matrix).

    Parameters
    ----------
    instance : Instance
        The sample.

    Examples
    --------
    >>> sample = Instance.from_arrays(
    ...     [[0.0, 3.0]], [0.0, 1.0], visible=[0], cost=2.0, effort=[[2.0, -1.0], [-1.0, 1.0]]
    ... )
    >>> moved_along(sample)
    [1]
    """
    costs = instance.costs
    if costs.matrix is None:
        return []
    seen = set(seen_features(instance))
    lifted = [costs.lift(row) for row in costs.rows_of(instance.view)]
    return sorted({j for row in lifted for j, value in row.items() if value and j not in seen})


def median_reach(instance: Instance) -> float:
    """The median ℓ_i of the agents that count.

    Parameters
    ----------
    instance : Instance
        The sample.
    """
    return float(np.median(instance.reach[instance.weights > 0]))


def user_prices(instance: Instance) -> Floats:
    """What a move of 1 in each feature alone costs, in the user's units: (n,) array.

    Parameters
    ----------
    instance : Instance
        The sample.
    """
    prices = instance.costs.prices(instance.width)
    return prices if instance.units is None else prices / np.array(instance.units.scale)


def bought(instance: Instance) -> dict[str, float]:
    """How far the value of passing carries somebody in each feature seen, if it moves alone.

    At the median reach, in the user's units.

    Parameters
    ----------
    instance : Instance
        The sample.

    Examples
    --------
    >>> sample = Instance.from_arrays(
    ...     [[0.0, 0.0]], [1.0, 1.0], visible=[0, 1], reach=6.0, effort=[1.0, 3.0], norm="l1"
    ... )
    >>> bought(sample)
    {'x0': 6.0, 'x1': 2.0}
    """
    reach, prices = median_reach(instance), user_prices(instance)
    return {instance.feature_names[j]: float(reach / prices[j]) for j in seen_features(instance)}


def costs_to_dict(instance: Instance) -> dict[str, Any]:
    """The costs, for JSON.

    Parameters
    ----------
    instance : Instance
        The sample.
    """
    costs = instance.costs
    return {
        "norm": costs.norm,
        "effort": None if costs.effort is None else costs.effort.tolist(),
        "given": costs.given,
        "buys": bought(instance),
        "moves_along": [instance.feature_names[j] for j in moved_along(instance)],
    }
