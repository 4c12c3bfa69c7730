"""Small samples, and what to do with built Pyomo models in tests."""

from __future__ import annotations

import math

import numpy as np
import pyomo.environ as pyo
from pyomo.contrib.solver.common.factory import SolverFactory
from pyomo.repn import generate_standard_repn

from formulations import (
    Box,
    Secant,
    Size,
    cube,
)

LINEAR = [
    Box(),
    Secant(4),
    Secant(8),
    Secant(6, "logarithmic"),
    Secant(5, extra=((0.1,), (0.31, -0.7), ())),
    Secant(8, "logarithmic", planes=((0.6, 0.0, 0.8),)),
    cube(3),
    cube(3, 2),
]
NAMES = ["box", "4", "8", "6 bits", "extra", "8 bits", "cube", "cube 2"]
EVERYTHING = (-1.0, 1.0)


def unit(rng, *shape):
    vectors = rng.normal(size=shape)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def directions(rng, number, p, low, high):
    """Unit vectors with low ≤ u·p ≤ high, both ends among them."""
    t = rng.uniform(low, high, size=number)
    t[: number // 3], t[number // 3 : 2 * (number // 3)] = low, high
    rest = rng.normal(size=(number, len(p)))
    for _ in range(2):  # once more, because what is left may be short and mostly rounding
        rest -= np.outer(rest @ p, p)
        rest /= np.linalg.norm(rest, axis=1, keepdims=True)
    return t[:, None] * p + np.sqrt((1 - t) * (1 + t))[:, None] * rest


def sample(seed, m=10, k=3, equal=True):
    rng = np.random.default_rng(seed)
    z = rng.uniform(-1, 1, size=(m, k)) / math.sqrt(k)
    reach = np.full(m, 0.3) if equal else rng.uniform(0.1, 0.5, size=m)
    weight = np.full(m, 1 / m) if equal else rng.dirichlet(np.ones(m))
    return z, reach, weight, unit(rng, k), rng


def solve(model):
    """The optimum, or None if the model is infeasible.

    At the default tolerances: with mip_feasibility_tolerance = 1e-9, HiGHS 1.15.1 stopped at false
    optima in 4 of 80 small soft models.
    """
    found = SolverFactory("highs").solve(
        model,
        load_solutions=False,
        raise_exception_on_nonoptimal_result=False,
        solver_options={"mip_rel_gap": 0.0},
    )
    if found.incumbent_objective is None:
        assert "infeasible" in found.termination_condition.name.lower()
        return None
    found.solution_loader.load_vars()
    return found.incumbent_objective


def fix(model, u, b=None):
    for j, value in enumerate(u):
        model.u[j].fix(value)
    if b is not None:
        model.b.fix(b)


def values(variables):
    return np.array([pyo.value(variable) for variable in variables.values()])


def counted(model):
    variables = list(model.component_data_objects(pyo.Var))
    binaries = sum(variable.is_binary() for variable in variables)
    rows = len(list(model.component_data_objects(pyo.Constraint)))
    return Size(len(variables) - binaries, binaries, rows)


def standard(model):
    """Everything that a solver is told, by name."""
    bounds = {v.name: (v.lb, v.ub, v.is_binary()) for v in model.component_data_objects(pyo.Var)}
    rows = {}
    for row in model.component_data_objects((pyo.Constraint, pyo.Objective)):
        found = generate_standard_repn(row.expr if row.ctype is pyo.Objective else row.body)
        assert found.is_linear()
        terms = zip(found.linear_vars, found.linear_coefs, strict=True)
        ends = () if row.ctype is pyo.Objective else (row.lb, row.ub)
        rows[row.name] = (found.constant, {v.name: c for v, c in terms if c}, ends)
    return bounds, rows


def only(norm, k=3, box=None):
    model = pyo.ConcreteModel()
    norm.add(model, k, box or (-np.ones(k), np.ones(k)))
    return model


def satisfied(model, tolerance=1e-9):
    return all(
        (row.lb is None or pyo.value(row.body) >= row.lb - tolerance)
        and (row.ub is None or pyo.value(row.body) <= row.ub + tolerance)
        for row in model.component_data_objects(pyo.Constraint)
    )
