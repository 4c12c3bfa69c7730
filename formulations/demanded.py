"""What may be demanded of a rule, as arrays, and the parts of a model that say so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pyomo.environ import ConcreteModel

from formulations.accepted import Whole, add_accepted, add_share
from formulations.arrays import Floats
from formulations.halfspaces import add_halfspaces
from formulations.parity import add_parity


@dataclass(frozen=True, eq=False)
class Demanded:
    """Requirements on a rule; all of them optional.

    Parameters
    ----------
    mass : (m,) array
        Mass of each agent in whole numbers, for `limits`, and for `within` with `members`.
    limits : (low, high)
        Of the mass accepted, in the same units (`add_share`).
    within : float
        By how much the accepted shares of two classes may differ (`add_parity`).
    members : (m,) array of whole numbers
        The class of each agent.
    class_mass : (classes, m) array
        In place of `members`: mass of each agent in each class.
    rows, room : (r, k) array, number or (r,) array
        Directions with rows·u ≥ −room (`add_halfspaces`).
    agents, alike : sequence, (m,) array
        Who gets an indicator ``accepted``, and who responds alike (`add_accepted`). By default
        whoever has mass.
    indicators : bool
        Everybody gets one, even if no share is demanded, for rows of one's own.
    """

    mass: Floats | None = None
    limits: tuple[float, float] | None = None
    within: float | None = None
    members: Whole | None = None
    class_mass: Floats | None = None
    rows: Floats | None = None
    room: float | Floats = 0.0
    agents: Sequence[int] | None = None
    alike: Whole | None = None
    indicators: bool = False

    def __post_init__(self) -> None:
        if self.limits is not None and self.mass is None:
            raise ValueError("limits are of a mass: give mass")
        if self.within is None:
            if self.members is not None or self.class_mass is not None:
                raise ValueError("classes are compared within some difference: give within")
        elif self.class_mass is None and (self.mass is None or self.members is None):
            raise ValueError("parity needs classes: give class_mass, or mass and members")
        elif self.class_mass is not None and self.members is not None:
            raise ValueError("give members or class_mass, not both")

    def counted(self) -> Sequence[int] | None:
        """Who needs an indicator: those named, or everybody (None), or those with mass."""
        if self.agents is not None or self.indicators:
            return self.agents
        masses = [self.mass] if self.limits is not None or self.class_mass is None else []
        masses += [] if self.class_mass is None else [self.class_mass]
        known = [np.atleast_2d(mass) for mass in masses if mass is not None]
        return np.flatnonzero(np.vstack(known).any(axis=0)).tolist()

    @property
    def acceptance(self) -> bool:
        """Whether the model needs to know who is accepted."""
        return self.indicators or self.limits is not None or self.within is not None


def add_demanded(
    model: ConcreteModel,
    demanded: Demanded,
    z: Floats,
    reach: Floats,
    *,
    lowest: Floats,
    highest: Floats,
    window: tuple[float, float],
    widen: float | Floats,
) -> None:
    """Add everything demanded to a model with ``u`` and a margin; arguments as for `add_margin`."""
    if demanded.rows is not None:
        add_halfspaces(model, demanded.rows, demanded.room)
    if not demanded.acceptance:
        return
    add_accepted(
        model,
        z,
        reach,
        lowest=lowest,
        highest=highest,
        window=window,
        widen=widen,
        agents=demanded.counted(),
        alike=demanded.alike,
    )
    if demanded.limits is not None and demanded.mass is not None:
        add_share(model, demanded.mass, *demanded.limits)
    if demanded.within is None:
        return
    if demanded.class_mass is not None:
        add_parity(model, demanded.class_mass, None, demanded.within)
    elif demanded.mass is not None:
        add_parity(model, demanded.mass, demanded.members, demanded.within)
