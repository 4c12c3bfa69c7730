"""The density oracle as a mixed-integer program: most weight in one margin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Required, TypedDict, Unpack

import numpy as np
from pyomo.environ import ConcreteModel, Constraint, Objective, Param, maximize

from formulations.arrays import Bounds, Floats, finite
from formulations.cliques import add_cliques
from formulations.demanded import Demanded, add_demanded
from formulations.eta import add_eta
from formulations.facets import Surface
from formulations.margin import add_margin, support
from formulations.rows import linear
from formulations.unit_norm import UnitNorm


class Options(TypedDict, total=False):
    """Further arguments of both densities; only the norm must be given.

    norm : the approximation N of the unit sphere; or a `Surface`, a facet of the dual unit sphere
        of l1 or linf costs, with p None and eta (−1, 1): u is no Euclidean unit vector then
    lowest, highest : (m,) arrays, range of u·z_i over the directions in question, by default
        `support`, of a surface its own `ranges`; pass smaller ones if N is a part of the sphere
    window : the range of b; give one that holds every threshold in question if you add rows of your
        own on ``b``: the default is right for what is maximised, and for rows on the direction
        and on who is accepted
    widen : δ of `margin`, a number or (m,) array
    cliques : agents of which at most one is covered
    at_least : adds the row ``cutoff``: objective ≥ at_least, which `set_cutoff` moves
    box : bounds of the coordinates of u, by default their range over the allowed directions; of a
        surface, any box, and the part of it in there is meant
    demanded : requirements on the rule, `Demanded`
    """

    norm: Required[UnitNorm]
    lowest: Floats
    highest: Floats
    window: tuple[float, float]
    widen: float | Floats
    cliques: Sequence[Sequence[int]]
    at_least: float
    box: Bounds
    demanded: Demanded


def density_model(
    z: Floats,
    reach: Floats,
    weight: Floats,
    p: Floats | None,
    eta: tuple[float, float],
    **options: Unpack[Options],
) -> ConcreteModel:
    """Maximise Σ ω_i s_i over u ∈ N, b in the window, η_low ≤ u·p̂ ≤ η_high, in the margin.

    On a `Surface` this is the density over all its directions: no η, and the rate does the rest.

    *Window.* Let C be the agents covered by (u, b). All their intervals [u·z_i, u·z_i + ℓ_i]
    contain b. The largest left end, b' = max_C u·z_i, is ≤ b, so it is below every right end, and
    it is above every left end: (u, b') covers C too. So b may be taken as the score of an agent,
    and it lies in [min lowest, max highest], the default. The window is that of the margin proper;
    widening the margin only adds to what the model allows.

    *Window with ``accepted``.* Going down to b' may accept more agents, so shares need another
    argument. Fix u, and let b rise to the next *end* e = u·z_i + ℓ_i: b is above the end of those
    who are not accepted, e is not below it, and nobody's end is passed. So (u, e) accepts whom
    (u, b) accepts, and covers whom it covers and more; in the soft density they move further. If b
    is above all ends, nobody is accepted or covered; the model has that at b = greatest end,
    because its rows are closed (`accepted`). So b may be taken as an end, and it lies in
    [min(lowest + ℓ), max(highest + ℓ)], the default then. A demand on the direction alone changes
    nothing: u was fixed. Nor do clique rows, which say what no (u, b) covers.

    *Objective.* If all weights other than 0 are equal, it is the integer Σ s_i, and ``model.scale``
    is the weight of one agent; otherwise it is Σ ω_i s_i and ``model.scale`` is 1. Density is
    scale · objective in either case; the cutoff is in units of the objective.

    z : (m, k) array; reach, weight : (m,) arrays; p : (k,) array p̂, a unit vector, or None
    eta : (low, high), relative to ‖p‖
    """
    model = compose(z, reach, p, eta, options)
    add_cliques(model, options.get("cliques", ()))
    add_objective(model, model.s, weight, options.get("at_least"))
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
    options: Options,
    soft: bool = False,
) -> ConcreteModel:
    """The parts that both densities share."""
    z = finite("z", z, np.shape(z))
    m, k = z.shape
    reach = finite("reach", reach, (m,))
    widen = options.get("widen", 0.0)
    lowest, highest = options.get("lowest"), options.get("highest")
    norm, within = options["norm"], options.get("box")
    surface = norm if isinstance(norm, Surface) else None
    if surface is not None and (p is not None or tuple(eta) != (-1, 1)):
        raise ValueError("η is a cosine, and u is no unit vector on a facet: p None, eta (-1, 1)")
    if lowest is None or highest is None:
        least, most = surface.ranges(z, within) if surface else support(z, p, *eta)
        lowest = least if lowest is None else lowest
        highest = most if highest is None else highest
    demanded = options.get("demanded")
    # The best threshold is the end of some reach, or some score if nobody asks who is accepted.
    at_ends = soft or (demanded is not None and demanded.acceptance)
    ends = reach if at_ends else 0.0
    window = options.get("window") or (float(np.min(lowest + ends)), float(np.max(highest + ends)))
    if within is None:
        within = surface.box(k) if surface else support(np.eye(k), p, *eta)
    model = ConcreteModel()
    norm.add(model, k, within)
    add_eta(model, p, *eta)
    add_margin(
        model, z, reach, lowest=lowest, highest=highest, window=window, widen=widen, near=not soft
    )
    if demanded is not None:
        add_demanded(
            model,
            demanded,
            z,
            reach,
            lowest=lowest,
            highest=highest,
            window=window,
            widen=widen,
        )
    return model


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
