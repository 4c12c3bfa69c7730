"""The gain as a mixed-integer linear program: which rules have rate × soft density ≥ T.

{(r, S): r S ≥ T, r > 0} is convex. It is what its tangents leave:

    S + (T/q²) r ≥ 2T/q        for every q > 0,

with equality on the hyperbola at r = q. A few of them, at q in the range of the rates in question,
say r S ≥ T up to a term of second order, without a product.
"""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from pyomo.environ import ConcreteModel, Constraint, Objective, Param, Var, maximize

from formulations.arrays import Floats, finite
from formulations.density import Options
from formulations.eta import set_eta
from formulations.rows import linear, row
from formulations.soft_density import soft_density_model

# With rates in [q₀, q₁] and three tangents in geometric progression, r S is at least T but for a
# share of ((y − 1)/(y + 1))², y = √(q₁/q₀): 0.4 % for q₁ = 1.3 q₀.
TANGENTS = 3


def gain_model(
    z: Floats,
    reach: Floats,
    weight: Floats,
    p: Floats,
    eta: tuple[float, float],
    *,
    least_gain: float,
    rates: tuple[float, float],
    **options: Unpack[Options],
) -> ConcreteModel:
    """The soft density's model, with (u·p̂) Σ ω_i t_i ≥ T by its tangents; arguments as there.

        r ≤ u·p̂ + δ                                        (steep)
        Σ ω_i t_i + (T/q²) r ≥ 2T/q       for a few q      (tangents)

    The objective is the left side of the tangent in the middle, so that a solution that is not
    perfect leads to better ones. δ, the largest of ``widen``, absorbs the solver's tolerance.

    p : (k,) array p̂, a unit vector; eta : range of u·p̂ for which ranges, box and cliques hold
    least_gain : T > 0, in units of Σ ω_i t_i
    rates : range of u·p̂ over the directions in question, within eta and above 0
    """
    if options.get("at_least") is not None:
        raise ValueError("give least_gain; a cutoff for the soft density alone is not the gain's")
    model = soft_density_model(z, reach, weight, p, eta, **options)
    p = finite("p", p, (len(model.u),))
    widen = float(np.max(options.get("widen", 0.0)))
    model.rate = Var(bounds=(0, 1 + widen))
    coefficients, variables = row(p, model.u)
    steep = linear([1, *[-c for c in coefficients]], [model.rate, *variables])
    model.steep = Constraint(expr=(None, steep, widen))
    model.tilt = Param(range(TANGENTS), mutable=True, initialize=1.0)
    model.least_side = Param(range(TANGENTS), mutable=True, initialize=0.0)
    # Equal weights count 1 each in the model, as in its objective.
    weight = finite("weight", weight, (len(z),)) / model.scale
    moves = [model.t[i] for i in np.flatnonzero(weight).tolist()]
    shares = [float(share) for share in weight[weight > 0]]

    def side(model: ConcreteModel, q: int) -> Any:
        return linear([*shares, model.tilt[q]], [*moves, model.rate])

    model.tangents = Constraint(
        range(TANGENTS), rule=lambda model, q: (model.least_side[q], side(model, q), None)
    )
    model.objective.deactivate()
    model.towards = Objective(expr=side(model, TANGENTS // 2), sense=maximize)
    set_gain(model, least_gain=least_gain, rates=rates)
    return model


def set_gain(model: ConcreteModel, *, least_gain: float, rates: tuple[float, float]) -> None:
    """Move a model to another T and another range of rates."""
    low, high = rates
    if not (least_gain > 0 and 0 < low <= high):
        raise ValueError("least_gain and rates must be above 0, and the rates in order")
    set_eta(model, max(-1.0, low), min(1.0, high))
    least = least_gain / model.scale
    for place, q in enumerate(np.geomspace(low, high, TANGENTS).tolist()):
        model.tilt[place] = least / q**2
        model.least_side[place] = 2 * least / q
