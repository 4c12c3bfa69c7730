"""Demands on the direction alone, signs and order of weights: half-spaces that touch 0."""

from __future__ import annotations

from typing import Any

import numpy as np
from pyomo.environ import ConcreteModel, Constraint

from formulations.arrays import DROPPED, Floats, finite
from formulations.rows import linear, row


def add_halfspaces(model: ConcreteModel, rows: Floats, room: float | Floats = 0.0) -> None:
    """Add the rows ``halfspaces``: row·u ≥ −room, so that u lies in a cone.

    A cone does not ask how long u is, so what N says about length does no harm: row·u ≥ 0 holds for
    u iff it does for u/‖u‖. The room is for rows that were rounded: if every true rule has
    true row·u ≥ 0, and |(row − true row)·u| ≤ room for unit u, then the model has every true rule.

    Rows are scaled by powers of two to entries of about 1, the room with them. Entries that a
    solver would drop after that are left out, and the room grows by them, |u_j| ≤ 1.

    rows : (r, k) array; room : ≥ 0, a number or (r,) array
    """
    rows = finite("rows", rows, (len(rows), len(model.u)))
    room = finite("room", room, (len(rows),))
    if (room < 0).any():
        raise ValueError("room must not be negative")
    # 0·u ≥ −room says nothing, and Pyomo refuses rows without variables.
    used = np.flatnonzero(rows.any(axis=1)).tolist()

    def side(model: ConcreteModel, r: int) -> Any:
        power = -int(np.frexp(np.abs(rows[r]).max())[1])
        entries, slack = np.ldexp(rows[r], power), float(np.ldexp(room[r], power))
        small = np.abs(entries) <= DROPPED
        slack += float(np.abs(entries[small]).sum())
        return -slack, linear(*row(np.where(small, 0.0, entries), model.u)), None

    model.halfspaces = Constraint(used, rule=side)
