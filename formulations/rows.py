"""How a row is put together, and the numbers in it that move."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from pyomo.core.expr.numeric_expr import LinearExpression
from pyomo.environ import Param

from formulations.arrays import DROPPED, Floats, finite

# Whole coefficients beyond this are scaled down: rows far from 1 are hard for solvers.
LARGE = 2.0**20


def row(z: Floats, u: Any) -> tuple[list[Any], list[Any]]:
    """Coefficients and variables of u·z, exact zeros left out.

    Everything else stays, however small: HiGHS drops |coefficient| ≤ 1e-9 itself.
    """
    used = np.flatnonzero(z).tolist()
    return [float(z[j]) for j in used], [u[j] for j in used]


def linear(coefficients: list[Any], variables: list[Any]) -> Any:
    """Σ coefficient · variable; twice as fast to build as a sum of products."""
    return LinearExpression(constant=0, linear_coefs=coefficients, linear_vars=variables)


def numbers(values: Floats) -> Any:
    """A mutable Param with a number for each agent."""
    return Param(range(len(values)), mutable=True, initialize=dict(enumerate(values.tolist())))


def store(param: Any, values: Floats) -> None:
    """Give a Param made by `numbers` other values."""
    for i, value in enumerate(values.tolist()):
        param[i] = value


def whole(name: str, values: Floats) -> tuple[Floats, float, float]:
    """Whole numbers ≥ 0 as coefficients of a row: the coefficients, their factor, what is lost.

    Numbers beyond 2²⁰ are scaled by a power of two, which rounds nothing. What a solver would drop
    after that is set to 0, and its sum is what Σ value_i · a_i, a ∈ [0, 1], loses at most.

    values : (m,) array, not all 0
    returns : (m,) array, factor, lost; both in units of the coefficients
    """
    values = finite(name, values, np.shape(values))
    if (values < 0).any() or not values.any() or (values != np.floor(values)).any():
        raise ValueError(f"{name} must be whole numbers, not negative and not all 0")
    part, power = math.frexp(float(values.max()) / LARGE)
    factor = math.ldexp(1.0, -max(0, power - (part == 0.5)))  # the least power of two that does
    coefficients = values * factor
    small = coefficients <= DROPPED
    return np.where(small, 0.0, coefficients), factor, math.fsum(coefficients[small])
