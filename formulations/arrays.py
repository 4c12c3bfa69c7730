"""What the models agree on: types, the three small numbers, and that data are finite."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# Lower and upper bounds of the coordinates of u, two (k,) arrays.
Bounds = tuple[Floats, Floats]

# Ranges of scores are computed to within this in scaled units (‖z‖ about 1). An agent is ruled out,
# and two agents are called incompatible, only by more than it.
ROUNDING = 1e-12
# Breakpoints nearer than this are one: a segment of this width has a secant error of 2.5e-13, and
# coefficients below 1e-9, which a much shorter one would have, are dropped by HiGHS.
APART = 1e-6
# HiGHS drops coefficients of at most this.
DROPPED = 1e-9
# p̂ is taken for a unit vector if its length is 1 to within this.
UNIT = 1e-9


def finite(name: str, values: Any, shape: tuple[int, ...]) -> Floats:
    """The values as floats of this shape; scalars are spread.

    A solver given NaN answers "optimal" or "infeasible", so nothing that is not finite may pass.
    """
    array = np.asarray(values, dtype=np.float64)
    try:
        array = np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(f"{name} has shape {array.shape}, not {shape}") from None
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite")
    return array


def whole_box(k: int) -> Bounds:
    """[−1, 1]^k, which holds every unit vector."""
    return -np.ones(k), np.ones(k)


def ordered(window: tuple[float, float]) -> tuple[float, float]:
    """The window of b as two floats; refused if it is empty."""
    bottom, top = finite("window", window, (2,)).tolist()
    if bottom > top:
        raise ValueError(f"the window of b is empty: [{bottom}, {top}]")
    return bottom, top


def checked_agents(
    m: int, reach: Floats, lowest: Floats, highest: Floats, widen: float | Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Reach, ranges of scores and widening as (m,) arrays; refused if they cannot be."""
    reach = finite("reach", reach, (m,))
    lowest = finite("lowest", lowest, (m,))
    highest = finite("highest", highest, (m,))
    widen = finite("widen", widen, (m,))
    if (lowest > highest).any():
        raise ValueError("lowest exceeds highest")
    if (reach < 0).any() or (widen < 0).any():
        raise ValueError("reach and widen must not be negative")
    return reach, lowest, highest, widen
