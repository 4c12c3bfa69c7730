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
        Called with a Pyomo model, to which it adds constraints on the documented variables: ``u``,
        ``b``, ``s`` (in the margin), ``t`` (the distance moved) and ``accepted``. See
        `formulations`. They may only cut off rules for which ``holds`` is false.
    holds : callable
        Called with the exact outcome of a rule (`Recount`): whether it meets the constraint. A rule
        for which it does not is never handed out.
    name : str
        Shown in results.
    """

    rows: Callable[[Any], None]
    holds: Callable[[Recount], bool]
    name: str = "own"
