"""The η row: how much of the direction points where quality grows.

With p̂ a unit vector, η is given relative to ‖p‖:

    u·p̂ = η        or        η_low ≤ u·p̂ ≤ η_high.
"""

from __future__ import annotations

from pyomo.environ import ConcreteModel, Constraint, Param

from formulations.arrays import Floats
from formulations.margin import allowed, unit_vector
from formulations.rows import linear, row


def add_eta(model: ConcreteModel, p: Floats | None, low: float, high: float) -> None:
    """Add the row ``eta``, an equality if low == high; nothing if p is None.

    p : (k,) array p̂, a unit vector; low, high : within [−1, 1]. ``model.u`` must exist.
    """
    if p is None:
        return
    p = unit_vector(p, len(model.u))
    allowed(low, high)
    body = linear(*row(p, model.u))
    model.eta_low = Param(mutable=True, initialize=float(low))
    if low == high:
        model.eta = Constraint(expr=body == model.eta_low)
    else:
        model.eta_high = Param(mutable=True, initialize=float(high))
        model.eta = Constraint(expr=(model.eta_low, body, model.eta_high))


def set_eta(model: ConcreteModel, low: float, high: float) -> None:
    """Move the η row; an equality stays one.

    The ranges of scores, the bounds of u and the conflicts of agents depend on η too: what was
    built for a band of η stays valid inside it, and only there.
    """
    allowed(low, high)
    if model.component("eta") is None:
        raise ValueError("the model was built without p: there is no η to set")
    if model.component("eta_high") is None:
        if low != high:
            raise ValueError(f"the η row is an equality, it cannot become [{low}, {high}]")
    else:
        model.eta_high.set_value(float(high))
    model.eta_low.set_value(float(low))
