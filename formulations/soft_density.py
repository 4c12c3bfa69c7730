"""The soft density as a mixed-integer program: most weighted distance moved within one margin."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from pyomo.environ import ConcreteModel, Constraint, Var

from formulations.arrays import Floats
from formulations.cliques import add_cliques
from formulations.density import Options, add_objective, compose
from formulations.rows import linear, row


def soft_density_model(
    z: Floats,
    reach: Floats,
    weight: Floats,
    p: Floats | None,
    eta: tuple[float, float],
    **options: Unpack[Options],
) -> ConcreteModel:
    """Maximise Σ ω_i t_i, t_i the distance that agent i moves; arguments as for `density_model`.

        0 ≤ t_i ≤ T_i s_i                                  (stay)
        t_i ≤ b − u·z_i + δ_i + M⁺_i (1 − s_i)             (distance)
        b − u·z_i − ℓ_i ≤ M⁻_i (1 − s_i) + δ_i             (far)

    If s_i = 1, then t_i is the distance b − u·z_i, up to δ_i; if s_i = 0, it is 0, and M⁺_i makes
    the second row idle. T_i = min(ℓ_i, max(0, b_high − lowest_i)) + δ_i is how far agent i can move
    at most: in a narrow window less than its reach, and then the relaxation is tighter. The near
    rows of the density are missing: t_i ≥ 0 and ``distance`` imply them. Objective, ``scale`` and
    ``cutoff`` are those of the density, with t for s.

    *Window.* For fixed u the soft density rises in b except where an agent falls off the far end,
    so some u·z_i + ℓ_i is a best threshold, and [min(lowest + ℓ), max(highest + ℓ)] the default,
    also with ``demanded``: the argument of `density_model` is about ends.
    """
    model = compose(z, reach, p, eta, options, soft=True)
    agents = range(len(z))
    z = np.asarray(z, dtype=np.float64)
    # The upper bounds follow from the rows, but without them, and without presolve, HiGHS 1.15.1
    # stopped at false optima in 28 of 120 small models.
    model.t = Var(agents, bounds=lambda model, i: (0, model.longest[i].value))

    def stay(model: ConcreteModel, i: int) -> Any:
        return None, linear([1, -model.longest[i]], [model.t[i], model.s[i]]), 0

    def distance(model: ConcreteModel, i: int) -> Any:
        coefficients, variables = row(z[i], model.u)
        body = linear(
            [1, *coefficients, -1, model.above[i]], [model.t[i], *variables, model.b, model.s[i]]
        )
        return None, body, model.near_limit[i]

    model.stay = Constraint(agents, rule=stay)
    model.distance = Constraint(agents, rule=distance)
    add_cliques(model, options.get("cliques", ()))
    add_objective(model, model.t, weight, options.get("at_least"))
    return model
