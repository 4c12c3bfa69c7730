"""Some of an instance's agents as an instance of their own."""

from __future__ import annotations

from dataclasses import replace

from mipmech import validation
from mipmech.model.instance import Instance
from mipmech.validation import Numbers


def part(instance: Instance, rows: Numbers, name: str) -> Instance:
    """The agents of these rows, in this order; what is known of the whole does not hold for them.

    >>> import numpy as np
    >>> whole = Instance.from_arrays([[0.0], [1.0], [2.0]], [1.0], visible=[0], cost=1.0)
    >>> part(whole, np.array([0, 2]), "the ends").agents.tolist()
    [[0.0], [2.0]]
    """
    agents, cost, weights = (
        validation.frozen(values[rows])
        for values in (instance.agents, instance.cost, instance.weights)
    )
    ids = None if instance.ids is None else tuple(instance.ids[row] for row in rows)
    return replace(
        instance, name=name, agents=agents, cost=cost, weights=weights, ids=ids, known=None,
        path=None,
    )  # fmt: skip
