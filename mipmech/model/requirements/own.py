"""A requirement that a user writes: Pyomo rows for the model, and an exact test of the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mipmech.model.grading import Recount


@dataclass(frozen=True)
class Own:
    """A constraint of one's own, for `solve` and for `certify` with the engine ``milp``.

    Parameters
    ----------
    rows : callable
        Called with a Pyomo model, as often as one is built, to which it adds linear constraints:
        on the rule in the user's terms, ``weight`` (by feature's name or number; the rule is scaled
        to length 1 as its costs measure it) and ``threshold``; on the agents, ``s`` (in the
        margin), ``t`` (how far they move, in multiples of ``unit``) and ``accepted``, numbered 0,
        1, …, where ``agents[i]`` is the number in the instance; or on ``u`` and ``b``, the
        direction and the threshold in the coordinates of the search. They may only cut off rules
        for which ``holds`` is false; a solver meets them to within 1e-7.
    holds : callable
        Called with the exact outcome of a rule (`Recount`): whether it meets the constraint. A rule
        for which it does not is never handed out.
    name : str
        Shown in results.

    Examples
    --------
    The weight of the SAT is at most half of the GPA's::

        def rows(model):
            model.half = Constraint(expr=model.weight["SAT"] <= 0.5 * model.weight["GPA"])

        def holds(found):
            weight = dict(zip(found.instance.feature_names, found.mechanism.weights))
            return weight["SAT"] <= 0.5 * weight["GPA"]

        certify(sample, require=Requirements(own=Own(rows, holds)))
    """

    rows: Callable[[Any], None]
    holds: Callable[[Recount], bool]
    name: str = "own"
