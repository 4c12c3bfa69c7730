"""The density oracle as a mixed-integer program: most weight in one margin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from pyomo.environ import ConcreteModel, Constraint, Objective, Param, maximize

from formulations.arrays import Bounds, Floats, finite
from formulations.cliques import add_cliques
from formulations.eta import add_eta
from formulations.margin import add_margin, support
from formulations.rows import linear
from formulations.unit_norm import UnitNorm

Window = tuple[float, float]


def density_model(
    z: Floats,
    reach: Floats,
    weight: Floats,
    p: Floats | None,
    eta: tuple[float, float],
    *,
    norm: UnitNorm,
    lowest: Floats | None = None,
    highest: Floats | None = None,
    window: Window | None = None,
    widen: float | Floats = 0.0,
    cliques: Sequence[Sequence[int]] = (),
    at_least: float | None = None,
    box: Bounds | None = None,
) -> ConcreteModel:
    """Maximise Σ ω_i s_i over u ∈ N, b in the window, η_low ≤ u·p̂ ≤ η_high, in the margin.

    *Window.* Let C be the agents covered by (u, b). All their intervals [u·z_i, u·z_i + ℓ_i]
    contain b. The largest left end, b' = max_C u·z_i, is ≤ b, so it is below every right end, and
    it is above every left end: (u, b') covers C too. So b may be taken as the score of an agent,
    and it lies in [min lowest, max highest], the default. The window is that of the margin proper;
    widening the margin only adds to what the model allows.

    *Objective.* If all weights other than 0 are equal, it is the integer Σ s_i, and ``model.scale``
    is the weight of one agent; otherwise it is Σ ω_i s_i and ``model.scale`` is 1. Density is
    scale · objective in either case.

    *Cutoff.* With ``at_least`` there is a row ``cutoff``: objective ≥ at_least, in units of the
    objective, which `set_cutoff` moves.

    z : (m, k) array; reach, weight : (m,) arrays; p : (k,) array p̂, a unit vector, or None
    eta : (low, high), relative to ‖p‖
    norm : the approximation N of the unit sphere
    lowest, highest : (m,) arrays, range of u·z_i over the directions in question, by default
        `support`; pass smaller ones if N is a part of the sphere
    widen : δ of `margin`; cliques : agents of which at most one is covered
    box : bounds of the coordinates of u, by default their range over the allowed directions
    """
    model, _ = compose(
        z, reach, p, eta, norm, lowest, highest, window, widen, box, window_of=_scores
    )
    add_cliques(model, cliques)
    add_objective(model, model.s, weight, at_least)
    return model


def set_cutoff(model: ConcreteModel, value: float) -> None:
    """Move the cutoff row of a model that was built with one; in units of the objective."""
    if model.component("at_least") is None:
        raise ValueError("the model was built without at_least: there is no cutoff to set")
    model.at_least.set_value(float(value))


def compose(
    z: Floats,
    reach: Floats,
    p: Floats | None,
    eta: tuple[float, float],
    norm: UnitNorm,
    lowest: Floats | None,
    highest: Floats | None,
    window: Window | None,
    widen: float | Floats,
    box: Bounds | None,
    *,
    window_of: Callable[[Floats, Floats, Floats], Window],
    near: bool = True,
) -> tuple[ConcreteModel, Floats]:
    """The parts that both densities share; returns the model and ℓ + δ, an (m,) array."""
    z = finite("z", z, np.shape(z))
    m, k = z.shape
    reach = finite("reach", reach, (m,))
    low, high = eta
    if lowest is None or highest is None:
        least, most = support(z, p, low, high)
        lowest = least if lowest is None else lowest
        highest = most if highest is None else highest
    if window is None:
        window = window_of(lowest, highest, reach)
    if box is None:
        box = support(np.eye(k), p, low, high)
    model = ConcreteModel()
    norm.add(model, k, box)
    add_eta(model, p, low, high)
    add_margin(
        model, z, reach, lowest=lowest, highest=highest, window=window, widen=widen, near=near
    )
    return model, reach + finite("widen", widen, (m,))


def add_objective(
    model: ConcreteModel, variables: Any, weight: Floats, at_least: float | None
) -> None:
    """Maximise Σ ω_i · variable_i, in units of ``model.scale``; add the cutoff if asked for."""
    weight = finite("weight", weight, (len(variables),))
    if (weight < 0).any() or not weight.any():
        raise ValueError("weights must not be negative, nor all 0")
    counts = np.flatnonzero(weight).tolist()
    equal = bool((weight[counts] == weight[counts[0]]).all())
    model.scale = float(weight[counts[0]]) if equal else 1.0
    coefficients = [1 if equal else float(weight[i]) for i in counts]
    chosen = [variables[i] for i in counts]
    model.objective = Objective(expr=linear(coefficients, chosen), sense=maximize)
    if at_least is not None:
        model.at_least = Param(mutable=True, initialize=float(at_least))
        model.cutoff = Constraint(expr=(model.at_least, linear(coefficients, chosen), None))


def _scores(lowest: Floats, highest: Floats, reach: Floats) -> Window:  # noqa: ARG001
    return float(np.min(lowest)), float(np.max(highest))
