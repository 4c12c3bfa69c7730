"""Requirements that no rule meets: which of them, dropped alone, leaves some rule."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mipmech.budget import Budget
from mipmech.design.certificate import certify
from mipmech.errors import InputError
from mipmech.model.geometry import Geometry, geometry_of
from mipmech.model.instance import Instance
from mipmech.model.requirements.required import Requirements, RequirementsLike

# A search for any rule that will do, first a short one: whether there is one shows soon or late.
NODES = (300, 10_000, 200_000)
# Seconds for each requirement, if nothing else is said.
QUICK = 5.0


def feasible_without(
    sample: Instance | Geometry | str | Path,
    require: RequirementsLike,
    budget: Budget | None = None,
) -> list[str]:
    """The requirements each of which, dropped alone, makes the others feasible.

    Parameters
    ----------
    sample : Instance, Geometry, str or Path
        The sample, or its file.
    require : Requirements, mapping, str or Path
        Requirements that no rule meets.
    budget : Budget, optional
        Limits on the time of all together, and threads; by default 5 seconds for each. A
        requirement that was not decided by then is not in the list.

    Returns
    -------
    list of str
        Their fields, in order.

    Examples
    --------
    >>> sample = Instance.from_arrays([[0.0], [4.0]], [1.0], visible=[0], cost=1.0)
    >>> feasible_without(sample, {"nonnegative": "all", "accepted": [0.6, 0.9]})
    ['accepted']
    """
    required = Requirements.of(require)
    geometry = geometry_of(sample)
    timer = (budget or Budget(QUICK * max(1, len(required.given)))).start()
    found = []
    with timer.listening():
        for place, field in enumerate(required.given):
            rest = required.without(field)
            seconds = timer.left / (len(required.given) - place)
            limit = replace(timer.budget, seconds=seconds, watch=None)
            if not rest or _feasible(geometry, rest, limit):
                found.append(field)
    return found


def _feasible(geometry: Geometry, required: Requirements, budget: Budget) -> bool:
    """Whether some rule is known that meets requirements."""
    timer = budget.start()
    for nodes in NODES:
        if timer.left == 0:
            return False
        try:
            limit = replace(budget, seconds=timer.left, nodes=nodes)
            found = certify(geometry, require=required, gap=0.999, budget=limit)
        except InputError:  # what is left contradicts itself
            return False
        if found.recount is not None or found.infeasible:
            return found.recount is not None
    return False
