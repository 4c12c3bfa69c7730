"""The Pyomo models: true on true unit vectors, outer everywhere, of the size they claim."""

from __future__ import annotations

import itertools
import math

import networkx as nx
import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyomo.contrib.solver.common.factory import SolverFactory
from pyomo.repn import generate_standard_repn

import formulations
from formulations import (
    Box,
    Cone,
    Cones,
    Exact,
    Secant,
    Size,
    add_cliques,
    add_eta,
    add_margin,
    big_m,
    cell,
    clique_cover,
    conflicts,
    cube,
    density_model,
    naive_margin,
    set_cone,
    set_cutoff,
    set_eta,
    set_margin,
    soft_density_model,
    support,
    tangents,
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


# -- ranges of scores and big M ----------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize(
    ("low", "high"), [(-1.0, 1.0), (0.3, 0.3), (0.0, 1.0), (0.2, 0.8), (-0.9, -0.5), (1.0, 1.0)]
)
def test_support_is_the_exact_range(k, low, high):
    rng = np.random.default_rng(k)
    z, p = rng.normal(size=(20, k)), unit(rng, k)
    lowest, highest = support(z, p, low, high)
    scores = z @ directions(rng, 3000, p, low, high).T
    assert (scores <= highest[:, None] + 1e-12).all()
    assert (scores >= lowest[:, None] - 1e-12).all()
    # Reached: by the direction that the proof names.
    for row, least, most in zip(z, lowest, highest, strict=True):
        for sign, value in ((1, most), (-1, -least)):
            along = sign * row @ p
            rest = sign * row - along * p
            rest /= np.linalg.norm(rest)
            t = np.clip(along / np.linalg.norm(row), low, high)
            u = t * p + math.sqrt((1 - t) * (1 + t)) * rest
            assert u @ u == pytest.approx(1)
            assert sign * u @ row == pytest.approx(value, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 6), st.floats(-1, 1), st.floats(-1, 1), st.integers(0, 2**32 - 1))
def test_no_direction_leaves_its_support(k, one, other, seed):
    low, high = sorted((one, other))
    rng = np.random.default_rng(seed)
    z, p = rng.normal(size=(8, k)), unit(rng, k)
    scores = z @ directions(rng, 60, p, low, high).T
    lowest, highest = support(z, p, low, high)
    assert (lowest[:, None] - 1e-12 <= scores).all()
    assert (scores <= highest[:, None] + 1e-12).all()


def test_support_without_p_and_in_one_dimension():
    z = np.array([[3.0, 4.0], [0.0, 0.0]])
    assert [bound.tolist() for bound in support(z, None, *EVERYTHING)] == [[-5, 0], [5, 0]]
    line, p = np.array([[2.0], [-3.0]]), np.array([-1.0])
    assert [bound.tolist() for bound in support(line, p, 0.5, 1.0)] == [[-2, 3], [-2, 3]]
    assert [bound.tolist() for bound in support(line, p, *EVERYTHING)] == [[-2, -3], [2, 3]]
    with pytest.raises(ValueError, match="one dimension"):
        support(line, p, 0.0, 0.5)


def test_what_is_not_a_direction_is_refused():
    z = np.eye(2)
    with pytest.raises(ValueError, match="unit vector"):
        support(z, np.array([1.0, 1.0]), 0, 0)
    with pytest.raises(ValueError, match=r"\[-1, 1\]"):
        support(z, np.array([1.0, 0.0]), 0.5, 1.5)
    with pytest.raises(ValueError, match="z must be finite"):
        support(z * math.nan, None, -1, 1)
    with pytest.raises(ValueError, match="reach has shape"):
        density_model(z, np.ones(3), np.ones(2), None, EVERYTHING, norm=Box())


def test_big_m_is_right_and_tight():
    z, reach, _, p, rng = sample(1, m=30, equal=False)
    lowest, highest = support(z, p, 0.2, 0.7)
    window = (-0.2, 0.3)
    above, beyond = big_m(lowest, highest, reach, window)
    scores = directions(rng, 500, p, 0.2, 0.7) @ z.T
    for b in (*window, 0.1):
        assert (scores - b <= above + 1e-12).all()
        assert (b - scores - reach <= beyond + 1e-12).all()
    assert np.array_equal(above[above > 0], (highest - window[0])[above > 0])
    assert (above >= 0).all()
    assert (beyond >= 0).all()


def test_surely_in_and_surely_out_are_bounds():
    z = np.array([[0.0, 0.1], [0.0, 5.0], [0.0, -5.0], [0.0, 0.9]])
    reach = np.array([2.0, 0.1, 0.1, 1.0])
    model = only(Exact(), k=2)
    p = np.array([0.0, 1.0])
    lowest, highest = support(z, p, 1.0, 1.0)
    add_margin(model, z, reach, lowest=lowest, highest=highest, window=(0.5, 1.5))
    assert [(model.s[i].lb, model.s[i].ub) for i in range(4)] == [(1, 1), (0, 0), (0, 0), (0, 1)]
    assert not any(model.s[i].fixed for i in range(4))
    # Five beyond the window, but widened by as much as that.
    set_margin(model, lowest=lowest, highest=highest, window=(0.5, 4.95))
    assert model.s[1].ub == 0
    wide = only(Exact(), k=2)
    add_margin(wide, z, reach, lowest=lowest, highest=highest, window=(0.5, 4.95), widen=0.1)
    assert wide.s[1].ub == 1


def test_a_constant_m_relaxes_more_than_a_tolerance():
    z, reach, *_ = sample(2)
    model = only(Exact())
    naive_margin(model, z, reach, window=(-2, 2))
    fix(model, [1.0, 0.0, 0.0], b=float(z[0, 0] - 0.09))
    model.s[0].value = 1 - 1e-6
    assert pyo.value(model.near[0].body) <= pyo.value(model.near[0].upper)
    assert counted(model) == Size(3 + 1, 10, 1 + 2 * 10)


# -- the models are true on true unit vectors --------------------------------------------------


def clear(rng, z, reach, u):
    """A threshold at which no agent is within 1e-3 of a tie."""
    while True:
        b = rng.uniform(-0.5, 1.0)
        distance = b - z @ u
        if min(np.abs(distance).min(), np.abs(distance - reach).min()) > 1e-3:
            return b, distance


def around(u):
    """The cell of `cube(3, 2)` that contains u, alone."""
    cones = [c for c in cube(3, 2).cones if (np.array(c.rows) @ u >= 0).all()]
    return cones[0]


@pytest.mark.parametrize("norm", [*LINEAR, "cone", "one of one"], ids=[*NAMES, "cone", "single"])
@pytest.mark.parametrize("make", [density_model, soft_density_model])
@pytest.mark.parametrize("seed", range(3))
def test_indicators_tell_the_truth(norm, make, seed):
    z, reach, weight, p, rng = sample(seed, equal=seed == 0)
    u = directions(rng, 3, p, -0.5, 0.9)[seed]
    if isinstance(norm, str):
        norm = around(u) if norm == "cone" else Cones([around(u)])
    b, distance = clear(rng, z, reach, u)
    model = make(z, reach, weight, p, (-0.5, 0.9), norm=norm, window=(-0.5, 1.0))
    fix(model, u, b)
    best = solve(model)
    inside = (distance >= 0) & (distance <= reach)
    assert np.array_equal(values(model.s).round(), inside.astype(float))
    if make is density_model:
        assert best * model.scale == pytest.approx(weight @ inside)
    else:
        assert values(model.t) == pytest.approx(distance * inside, abs=1e-7)
        assert best * model.scale == pytest.approx(weight @ (distance * inside))


@pytest.mark.parametrize("make", [density_model, soft_density_model])
def test_exact_says_the_same_without_a_solver(make):
    z, reach, weight, p, rng = sample(7, equal=False)
    u = directions(rng, 3, p, 0.1, 0.6)[2]
    b, distance = clear(rng, z, reach, u)
    model = make(z, reach, weight, p, (0.1, 0.6), norm=Exact(), window=(-0.5, 1.0))
    inside = (distance >= 0) & (distance <= reach)
    fix(model, u, b)
    for i, covered in enumerate(inside):
        model.s[i].value = int(covered)
        if make is soft_density_model:
            model.t[i].value = distance[i] if covered else 0
    assert satisfied(model)
    for i in np.flatnonzero(~inside):
        model.s[i].value = 1
        assert not satisfied(model)
        model.s[i].value = 0
    model.u[0].value *= 1.1
    assert not satisfied(model)


def test_distances_are_bounded():
    """HiGHS without presolve stops at false optima if they are not."""
    z, reach, weight, p, _ = sample(0)
    model = soft_density_model(z, reach, weight, p, (0.2, 0.2), norm=Exact(), widen=0.1)
    assert [model.t[i].ub for i in range(10)] == pytest.approx(reach + 0.1)
    assert all(v.lb is not None and v.ub is not None for v in model.component_data_objects(pyo.Var))


def test_widening_widens():
    z, reach, weight = np.array([[0.0], [0.52]]), np.array([0.5, 0.5]), np.array([0.5, 0.5])
    p = np.array([1.0])
    for make, narrow, wide in ((density_model, 1, 2), (soft_density_model, 0.5, 0.51)):
        for widen, best in ((0.0, narrow), (0.01, wide)):
            model = make(z, reach, weight, p, (1.0, 1.0), norm=Secant(), widen=widen)
            assert solve(model) == pytest.approx(best, abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("norm", [Box(), Secant(6, "logarithmic"), Secant(4), cube(3)], ids=type)
@pytest.mark.parametrize("equal", [True, False])
def test_optima_are_upper_bounds(norm, equal):
    """Also with clique rows, and a cutoff just below the optimum keeps it."""
    z, reach, weight, p, rng = sample(3, m=8, equal=equal)
    reach = reach / 2
    eta = (0.4, 0.4)
    graph = conflicts(z, reach, p, *eta)
    scores = directions(rng, 600, p, *eta) @ z.T
    for make in (density_model, soft_density_model):
        truth = 0.0
        for end in (scores, scores + reach):
            distance = end[:, :, None] - scores[:, None, :]
            inside = (distance >= -1e-12) & (distance <= reach + 1e-12)
            worth = inside if make is density_model else inside * distance
            truth = max(truth, float((worth @ weight).max()))
        # Widened by what the solver may be off by.
        parts = {"norm": norm, "widen": 1e-6}
        plain = make(z, reach, weight, p, eta, **parts)
        best = solve(plain)
        assert best * plain.scale >= truth - 1e-6
        model = make(
            z, reach, weight, p, eta, **parts, cliques=clique_cover(graph), at_least=best / 2
        )
        found = solve(model)
        assert truth - 1e-6 <= found * model.scale <= best * plain.scale + 1e-6
        set_cutoff(model, best + (1 if make is density_model else 0.1))
        assert solve(model) is None
        set_cutoff(model, found - 1e-3)
        assert solve(model) == pytest.approx(found, abs=1e-6)


def test_objective_counts_agents_that_count():
    z, reach, *_ = sample(5, m=4)
    model = density_model(
        z, reach, np.array([0.5, 0.0, 0.25, 0.25]), None, EVERYTHING, norm=Exact()
    )
    repn = generate_standard_repn(model.objective.expr)
    assert model.scale == 1
    assert list(repn.linear_coefs) == [0.5, 0.25, 0.25]
    half = np.array([0.5, 0.0, 0.5, 0.0])
    model = density_model(z, reach, half, None, EVERYTHING, norm=Exact(), at_least=2)
    assert model.scale == 0.5
    assert list(generate_standard_repn(model.objective.expr).linear_coefs) == [1, 1]
    assert list(generate_standard_repn(model.cutoff.body).linear_coefs) == [1, 1]
    with pytest.raises(ValueError, match="weights"):
        density_model(z, reach, np.zeros(4), None, EVERYTHING, norm=Exact())


# -- unit norms --------------------------------------------------------------------------------


def bands(k):
    """Boxes of the directions in a band of η, with p and the band."""
    rng = np.random.default_rng(k)
    first = np.eye(k)[0]
    for p, low, high in ((unit(rng, k), -1.0, 1.0), (unit(rng, k), 0.5, 0.9), (first, 0.6, 0.6)):
        yield p, low, high, support(np.eye(k), p, low, high)


def norms(k):
    extra = ((0.1, 0.7), *[(-0.3,)] * (k - 1))
    return [
        Box(),
        Secant(3),
        Secant(8),
        Secant(5, "logarithmic"),
        Secant(8, "logarithmic"),
        Secant(4, extra=extra),
        Secant(4, "logarithmic", extra=extra, planes=((1.0, *[0.0] * (k - 1)),)),
        cube(k),
        cube(k, 2),
    ]


@pytest.mark.parametrize("k", [2, 3, 4])
def test_every_unit_vector_is_in(k):
    rng = np.random.default_rng(k)
    for p, low, high, box in bands(k):
        units = directions(rng, 4, p, low, high)
        for norm in norms(k):
            model = only(norm, k, box)
            model.objective = pyo.Objective(expr=0 * model.u[0])
            for u in units:
                for j in range(k):  # a box may exclude a rounded coordinate by one unit
                    u[j] = np.clip(u[j], model.u[j].lb, model.u[j].ub)
                fix(model, u)
                assert solve(model) is not None, (norm, u)
        exact = only(Exact(), k, box)
        fix(exact, units[0])
        assert satisfied(exact)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_nothing_is_shorter_than_the_least_norm(k):
    """Short vectors are sought in random orthants, by random weights on the |u_j|."""
    rng = np.random.default_rng(k)
    for norm in norms(k):
        least = norm.least_norm(k)
        shortest = math.inf
        for _ in range(5):
            sign = rng.choice([-1, 1], size=k)
            box = np.minimum(sign, 0.0), np.maximum(sign, 0.0)
            model = only(norm, k)
            for j in range(k):
                model.u[j].setlb(box[0][j])
                model.u[j].setub(box[1][j])
            worth = sign * rng.uniform(0.5, 1, size=k)
            model.objective = pyo.Objective(expr=sum(worth[j] * model.u[j] for j in range(k)))
            if solve(model) is not None:
                shortest = min(shortest, float(np.linalg.norm(values(model.u))))
        assert least - 1e-6 <= shortest <= 1 + 1e-6, norm


def test_least_norms_of_secants_are_reached():
    """In the middle of all segments at once Σ f_j = Σ (u_j² + Δ²/4)."""
    for norm, k in ((Secant(3), 3), (Secant(4, "logarithmic"), 4)):
        assert norm.least_norm(k) == pytest.approx(math.sqrt(1 - k / norm.segments**2))
        assert norm.error(k) == pytest.approx(k / norm.segments**2)
        direction = np.full(k, 1.0)
        direction[0] = 1.1
        model = only(norm, k)
        model.along = pyo.Constraint(range(1, k), rule=lambda m, j: m.u[0] == 1.1 * m.u[j])
        model.u[0].setlb(0)
        model.objective = pyo.Objective(expr=model.u[0])
        solve(model)
        assert norm.least_norm(k) - 1e-7 <= np.linalg.norm(values(model.u)) < 1
    # One segment left on one coordinate: the point is in the middle of it, and τ is exact.
    box = (np.array([0.6, 0.0]), np.array([0.6, 0.9]))
    norm = Secant(1)
    model = only(norm, 2, box)
    assert counted(model) == norm.size(2, box) == Size(2, 0, 1 + 4)
    model.objective = pyo.Objective(expr=model.u[1])
    solve(model)
    assert 0.9 * pyo.value(model.u[1]) == pytest.approx(1 - 0.36)


def test_both_encodings_are_the_same_set():
    rng = np.random.default_rng(0)
    for segments in (2, 3, 5, 8):
        for _ in range(4):
            worth = rng.normal(size=2)
            best = []
            for encoding in ("binary", "logarithmic"):
                model = only(Secant(segments, encoding), 2)
                model.u[0].setlb(-0.4)
                model.u[0].setub(0.7)
                model.shift = pyo.Constraint(expr=worth @ [model.u[0], model.u[1]] >= -0.1)
                model.objective = pyo.Objective(expr=worth[0] * model.u[0] + worth[1] * model.u[1])
                best.append(solve(model))
            assert best[0] == pytest.approx(best[1], abs=1e-6)


def test_secants_that_would_contain_zero_are_refused():
    with pytest.raises(ValueError, match="too few in 4 dimensions"):
        Secant(2).least_norm(4)
    with pytest.raises(ValueError, match="too few"):
        only(Secant(2), 4)
    with pytest.raises(ValueError, match="no unit vector"):
        only(Secant(4), 2, (np.zeros(2), np.full(2, 0.5)))
    with pytest.raises(ValueError, match="encoding"):
        Secant(4, "unary")
    with pytest.raises(ValueError, match="at least one"):
        Secant(0)
    with pytest.raises(ValueError, match="extra"):
        Secant(4, extra=((0.1,),)).size(2)


def test_breakpoints_follow_the_box():
    point = np.array([0.5, 0.5])
    tiny = (np.array([0.5, -1.0]), np.array([0.5 + 1e-7, 1.0]))
    norm = Secant(4, extra=((0.1, 0.6), (0.5 + 1e-8, 0.3)))
    assert [a.tolist() for a in norm.breakpoints(2, (point, point))] == [[0.5, 0.5], [0.5, 0.5]]
    first, second = norm.breakpoints(2, tiny)
    assert len(first) == 2
    assert second.tolist() == [-1, -0.5, 0, 0.3, 0.5, 1]
    assert norm.error(2, tiny) == pytest.approx(0.0625, abs=1e-13)


def test_refining_adds_what_is_missing():
    at = np.array([0.2, -0.5, 0.25 + 1e-9])
    finer = Secant(8).refined(at)
    assert finer == Secant(8, extra=((0.2,), (), ()))
    assert finer.refined(at) is None
    assert Secant(8).refined(np.array([0.25, -0.5, 2.0 - 1.25])) is None
    outside = np.array([0.75, 0.75, 0.75])
    finer = Secant(8).refined(outside)
    assert np.array(finer.planes) @ outside == pytest.approx([np.linalg.norm(outside)])
    assert finer.extra == ((), (), ())
    # f_j is exact at a breakpoint, so a point that was too short is cut off.
    short = np.array([0.55, 0.55, 0.56])
    assert np.linalg.norm(short) < 1
    for norm in (Secant(3, "logarithmic"), Box()):
        model = only(norm)
        model.objective = pyo.Objective(expr=0 * model.u[0])
        fix(model, short)
        if norm != Box():
            assert solve(model) is not None
        model = only(norm.refined(short))
        model.objective = pyo.Objective(expr=0 * model.u[0])
        fix(model, short)
        assert solve(model) is None
    assert Cone([], [1.0, 0], 0.5, 1).refined(at) is None
    assert cube(2).refined(at) is None
    assert Exact().refined(at) is None


def test_cells_partition_the_sphere():
    rng = np.random.default_rng(0)
    for k, parts in ((1, 1), (2, 3), (3, 2), (4, 1)):
        cones = cube(k, parts).cones
        assert len(cones) == 2 * k * parts ** (k - 1)
        for u in unit(rng, 50, k):
            inside = [
                c
                for c in cones
                if (np.array(c.rows).reshape(-1, k) @ u >= 0).all() and np.array(c.axis) @ u > 0
            ]
            assert len(inside) == 1
            assert inside[0].low <= np.array(inside[0].axis) @ u <= inside[0].high + 1e-12
    with pytest.raises(ValueError, match="too wide"):
        cell(0, 1, [-1.0], [9.0])


def test_cones_are_checked_and_compare_by_value():
    one = Cone(np.eye(2), np.array([1.0, 0.0]), 0.5, 1.0)
    assert one == Cone([[1, 0], [0, 1]], (1, 0), 0.5, 1)
    assert hash(Cones([one])) == hash(Cones((one,)))
    assert one.least_norm(2) == 0.5
    assert Cone([], [2.0, 0.0], -1, 1).least_norm(2) == 0
    for bad, message in (
        (lambda: Cone([[1.0]], [1.0], 1.0, 0.5), "empty"),
        (lambda: Cone([[math.nan]], [1.0], 0.0, 0.5), "finite"),
        (lambda: Cones([]), "no cones"),
        (lambda: only(one, 3), "coordinates"),
        (lambda: set_cone(only(one, 2), Cone([], [1.0, 0], 0, 1)), "rows"),
        (lambda: only(one, 2, (np.ones(2), np.zeros(2))), "empty"),
    ):
        with pytest.raises(ValueError, match=message):
            bad()


def test_tangents_touch_the_sphere():
    for k in (1, 2, 3, 5):
        planes = tangents(k)
        assert planes.shape == (2 * k * (k - 1), k)
        assert np.linalg.norm(planes, axis=1) == pytest.approx(np.ones(len(planes)))
        assert len(np.unique(planes.round(6), axis=0)) == len(planes)


# -- sizes, as the README states them ----------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("segments", [3, 4, 7, 8])
def test_sizes_of_unit_norms(k, segments):
    planes, bits = 2 * k * (k - 1), math.ceil(math.log2(segments))
    s = segments
    stated = {
        Box(): Size(k, 2 * k, 1 + 2 * k + planes),
        Secant(s): Size(k + k * s, k * (s - 1), k + 2 * k * (s - 1) + 1 + planes),
        Secant(s, "logarithmic"): Size(
            k + k * (s + 1), k * bits, 2 * k + 2 * k * bits + 1 + planes
        ),
        cube(k).cones[0]: Size(k, 0, 2 * (k - 1) + 1),
        cube(k): Size(k, 2 * k, 1 + 2 * k * (2 * (k - 1) + 2)),
        Exact(): Size(k, 0, 1),
    }
    for norm, size in stated.items():
        assert norm.size(k) == size
        assert counted(only(norm, k)) == size
    assert Cones(cube(k).cones[:1]).size(k) == Size(k, 0, 2 * (k - 1) + 1)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_sizes_in_a_box(k):
    for *_, box in bands(k):
        for norm in norms(k):
            assert counted(only(norm, k, box)) == norm.size(k, box), norm


@pytest.mark.parametrize("p", [None, np.array([0.0, 0.6, 0.8])])
def test_sizes_of_the_models(p):
    z, reach, weight, _, _ = sample(0, m=9)
    for norm in (Box(), Secant(4), Exact()):
        for cliques, at_least in (((), None), (((0, 1), (2, 3, 4)), 2)):
            for make, extra, rows in ((density_model, 0, 2), (soft_density_model, 9, 3)):
                model = make(
                    z, reach, weight, p, (0, 0.5), norm=norm, cliques=cliques, at_least=at_least
                )
                box = support(np.eye(3), p, 0, 0.5)
                own = norm.size(3, box)
                assert counted(model) == Size(
                    own.continuous + 1 + extra,
                    own.binaries + 9,
                    own.rows + rows * 9 + (p is not None) + len(cliques) + (at_least is not None),
                )


# -- conflicts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("band", [(0.5, 0.5), (0.3, 0.9), EVERYTHING])
def test_conflicts_are_those_that_no_direction_resolves(k, band):
    rng = np.random.default_rng(k)
    m = 40
    z, reach = rng.uniform(-1, 1, size=(m, k)), rng.uniform(0.05, 0.4, size=m)
    p = unit(rng, k)
    if k == 1:
        band = (1.0, 1.0) if band[0] > 0 else band
        allowed = np.array([[t * p[0]] for t in (-1.0, 1.0) if band[0] <= t <= band[1]])
    else:
        allowed = directions(rng, 2000, p, *band)
    graph = conflicts(z, reach, p, *band)
    scores = allowed @ z.T
    # u·z_i ≤ u·z_j + ℓ_j both ways, without the formula that `conflicts` uses.
    begins_in_time = scores[:, :, None] <= scores[:, None, :] + reach[None, None, :]
    together = (begins_in_time & begins_in_time.transpose(0, 2, 1)).any(axis=0)
    assert not any(together[i, j] for i, j in graph.edges)
    if k >= 3 or k == 1:
        pairs = np.triu_indices(m, 1)
        difference = z[pairs[0]] - z[pairs[1]]
        lowest, highest = support(difference, p, *band)
        sure = (lowest < reach[pairs[1]] - 0.1) & (highest > -reach[pairs[0]] + 0.1)
        for i, j, clearly in zip(*pairs, sure, strict=True):
            # Sampling misses pairs that only just meet.
            if clearly and k == 3:
                assert together[i, j], (i, j)
            if k == 1 and band[0] == 1:
                assert together[i, j] != graph.has_edge(i, j)


def test_conflicts_know_who_reaches_whom():
    z, p = np.array([[0.0], [1.0]]), np.array([1.0])
    # u·z rises: agent 0 must reach to where agent 1 begins.
    for reach, edge in (((1.1, 0.1), False), ((0.1, 1.1), True), ((1.0, 0.0), False)):
        assert conflicts(z, np.array(reach), p, 1, 1).has_edge(0, 1) is edge
        assert conflicts(z, np.array(reach[::-1]), p, -1, -1).has_edge(0, 1) is edge
    reach = np.array([0.9, 0.1])
    assert conflicts(z, reach, p, 1, 1, widen=0.049).has_edge(0, 1)
    assert not conflicts(z, reach, p, 1, 1, widen=0.051).has_edge(0, 1)
    assert not conflicts(z, reach, p, 1, 1, widen=np.array([0.0, 0.11])).has_edge(0, 1)


def test_conflicts_of_chosen_pairs():
    z, reach, _, p, _ = sample(4, m=20)
    every = conflicts(z, reach / 3, p, 0.5, 0.5)
    assert every.number_of_edges()
    pairs = np.array([(i, j) for i, j in itertools.combinations(range(20), 2) if (i + j) % 2])
    some = conflicts(z, reach / 3, p, 0.5, 0.5, pairs=pairs)
    assert set(some.edges) == {(i, j) for i, j in every.edges if (i + j) % 2}
    assert len(some) == 20


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 25), st.floats(0, 1), st.integers(0, 10**6))
def test_cliques_cover_every_edge(m, density, seed):
    graph = nx.gnp_random_graph(m, density, seed=seed)
    cover = clique_cover(graph)
    assert cover == clique_cover(graph)
    covered = set()
    for clique in cover:
        assert len(clique) >= 2
        pairs = set(itertools.combinations(clique, 2))
        assert all(graph.has_edge(*pair) for pair in pairs)
        assert not set.intersection(*(set(graph[i]) for i in clique))  # maximal
        assert pairs - covered
        covered |= pairs
    assert covered == {tuple(sorted(edge)) for edge in graph.edges}


def test_no_cliques_no_rows():
    model = only(Exact())
    add_cliques(model, [])
    assert model.component("cliques") is None


# -- moving a built model ----------------------------------------------------------------------


@pytest.mark.parametrize("make", [density_model, soft_density_model])
def test_a_moved_model_is_the_fresh_one(make):
    z, reach, weight, p, _ = sample(6, m=12, equal=False)
    cones = cube(3, 2).cones
    built, wanted = (
        {
            "eta": eta,
            "norm": cone,
            "lowest": support(z, p, *eta)[0],
            "highest": support(z, p, *eta)[1],
            "window": window,
            "box": support(np.eye(3), p, *eta),
            "at_least": cut,
        }
        for eta, cone, window, cut in (
            ((0.1, 0.2), cones[0], (-1.0, 1.0), 0.1),
            ((0.7, 0.9), cones[13], (0.45, 0.5), 0.2),
        )
    )
    model = make(z, reach, weight, p, **built, widen=1e-3)
    fresh = make(z, reach, weight, p, **wanted, widen=1e-3)
    assert standard(model) != standard(fresh)
    ranges = {name: wanted[name] for name in ("lowest", "highest", "window")}
    set_margin(model, **ranges)
    set_eta(model, *wanted["eta"])
    set_cone(model, wanted["norm"], wanted["box"])
    set_cutoff(model, wanted["at_least"])
    assert standard(model) == standard(fresh)
    assert any(model.s[i].ub == 0 for i in range(12))


def test_a_persistent_solver_sees_every_move():
    z, reach, weight, p, _ = sample(8, m=12)
    solver = SolverFactory("highs")
    cones = cube(3).cones

    def build(cone, eta, window):
        return density_model(z, reach, weight, p, (eta, eta), norm=cone, window=window, widen=1e-6)

    model = build(cones[0], 0.3, (-0.2, 0.2))
    solved = 0
    for cone, eta, bottom in itertools.product(cones, (0.0, 0.5), (-0.4, 0.1)):
        window = (bottom, bottom + 0.4)
        lowest, highest = support(z, p, eta, eta)
        set_margin(model, lowest=lowest, highest=highest, window=window)
        set_eta(model, eta, eta)
        set_cone(model, cone, support(np.eye(3), p, eta, eta))
        found = solver.solve(
            model, load_solutions=False, raise_exception_on_nonoptimal_result=False
        ).incumbent_objective
        expected = solve(build(cone, eta, window))
        assert (found is None) == (expected is None)
        if expected is not None:
            assert found == pytest.approx(expected)
            solved += 1
    assert solved > 5


def test_eta_is_an_equality_or_a_band():
    p = np.array([0.6, 0.0, 0.8])
    model = only(Exact())
    add_eta(model, None, 0, 0)
    assert model.component("eta") is None
    with pytest.raises(ValueError, match="without p"):
        set_eta(model, 0, 0)
    add_eta(model, p, 0.5, 0.5)
    assert model.eta.equality
    assert len(generate_standard_repn(model.eta.body).linear_vars) == 2
    set_eta(model, 0.25, 0.25)
    assert (model.eta.lb, model.eta.ub) == (0.25, 0.25)
    with pytest.raises(ValueError, match="equality"):
        set_eta(model, 0.2, 0.3)
    band = only(Exact())
    add_eta(band, p, 0.1, 0.5)
    set_eta(band, -0.5, 0.25)
    assert (band.eta.lb, band.eta.ub) == (-0.5, 0.25)
    with pytest.raises(ValueError, match="within"):
        set_eta(band, -2, 0)


def test_cutoff_needs_a_row():
    z, reach, weight, p, _ = sample(0)
    model = density_model(z, reach, weight, p, (0, 0), norm=Exact())
    with pytest.raises(ValueError, match="without at_least"):
        set_cutoff(model, 1)


def test_windows_are_checked():
    z, reach, weight, p, _ = sample(0)
    with pytest.raises(ValueError, match="window of b is empty"):
        density_model(z, reach, weight, p, (0, 0), norm=Exact(), window=(1, 0))
    with pytest.raises(ValueError, match="negative"):
        density_model(z, -reach, weight, p, (0, 0), norm=Exact())
    with pytest.raises(ValueError, match="lowest exceeds"):
        density_model(z, reach, weight, p, (0, 0), norm=Exact(), lowest=np.ones(10))


def test_every_name_is_found_and_documented():
    for name in formulations.__all__:
        assert getattr(formulations, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute"):
        formulations.nothing  # noqa: B018
