"""The variables u, and the box that they live in."""

from __future__ import annotations

from pyomo.environ import Block, ConcreteModel, Var

from formulations.arrays import Bounds, finite


def add_direction(model: ConcreteModel, k: int, box: Bounds) -> Bounds:
    """Add ``model.u``, k variables within the box, and an empty block ``model.norm``."""
    box = checked_box(k, box)
    model.u = Var(range(k))
    model.norm = Block()
    set_bounds(model, box)
    return box


def set_bounds(model: ConcreteModel, box: Bounds) -> None:
    """Move the bounds of ``model.u``."""
    for j, (low, high) in enumerate(zip(box[0].tolist(), box[1].tolist(), strict=True)):
        model.u[j].setlb(low)
        model.u[j].setub(high)


def checked_box(k: int, box: Bounds) -> Bounds:
    """The box as two (k,) arrays; refused if it is empty."""
    lower, upper = (finite("box", bound, (k,)) for bound in box)
    if (lower > upper).any():
        raise ValueError("the box of u is empty")
    return lower, upper
