"""Parity: the accepted shares of any two classes of agents are close to each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from pyomo.environ import ConcreteModel, Constraint, Var

from formulations.accepted import Whole, accepted_terms
from formulations.arrays import Floats, finite
from formulations.rows import linear, whole

# Shares such as 1/3 are no floats: the least and the greatest may be this much further apart.
SHARE_ROOM = 1e-9


def add_parity(model: ConcreteModel, mass: Floats, members: Whole | None, within: float) -> None:
    """Add ``least`` and ``greatest``, and rows that put every class's accepted share between them.

        M_g least ≤ Σ_{i∈g} mass_i a_i ≤ M_g greatest,   M_g = Σ_{i∈g} mass_i,   (lagging, leading)
        greatest − least ≤ within + room,   0 ≤ least, greatest ≤ 1              (parity)

    Two variables and two rows for a class stand for all pairs of classes: shares differ by at most
    ``within`` iff they all lie in some interval of that length. A class without mass is ignored.
    The room is 10⁻⁹ for rounding (and what a solver would drop if masses differ 10¹⁵-fold).

    mass : (m,) array of whole numbers ≥ 0, not all 0; members : (m,) array, the agents' classes.
    Or members None and mass a (classes, m) array: so an agent of the model may stand for people of
    several classes who respond alike
    """
    within = float(finite("within", within, ()))
    if within < 0:
        raise ValueError(f"shares differ by 0 or more, never by {within}")
    by_class = [masses for masses in class_masses(mass, members) if masses.any()]
    if not by_class:
        raise ValueError("mass must not be all 0")
    scaled = [whole("mass", masses) for masses in by_class]
    totals = [float(masses.sum() * part[1]) for masses, part in zip(by_class, scaled, strict=True)]
    terms = [accepted_terms(model, part[0]) for part in scaled]
    room = SHARE_ROOM + 2 * max(part[2] / total for part, total in zip(scaled, totals, strict=True))
    model.least, model.greatest = Var(bounds=(0, 1)), Var(bounds=(0, 1))

    def between(variable: Any, g: int) -> Any:
        coefficients, variables = terms[g]
        return linear([*coefficients, -totals[g]], [*variables, variable])

    classes = range(len(terms))
    model.lagging = Constraint(classes, rule=lambda m, g: (0, between(m.least, g), None))
    model.leading = Constraint(classes, rule=lambda m, g: (None, between(m.greatest, g), 0))
    apart = linear([1, -1], [model.greatest, model.least])
    model.parity = Constraint(expr=(None, apart, within + room))


def class_masses(mass: Floats, members: Whole | None) -> Floats:
    """Mass of each agent in each class, a (classes, m) array; arguments as for `add_parity`."""
    mass = finite("mass", mass, np.shape(mass))
    if members is None:
        if mass.ndim != 2:
            raise ValueError("without members, mass has a row for each class")
        return mass
    members = np.asarray(members)
    if members.shape != mass.shape or mass.ndim != 1:
        raise ValueError(f"members have shape {members.shape}, mass {mass.shape}: one per agent")
    return np.array([np.where(members == g, mass, 0.0) for g in np.unique(members)])
