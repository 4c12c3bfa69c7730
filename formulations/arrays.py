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
