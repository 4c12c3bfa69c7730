"""The Pyomo models: true on true unit vectors, moved without rebuilding, of the size they claim."""

from __future__ import annotations

import itertools
import math

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
    Cones,
    CrossPolytope,
    CrossPolytopeFacet,
    CubeFacet,
    Exact,
    Secant,
    Size,
    Surface,
    add_eta,
    add_margin,
    big_m,
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
)
from tests.modelling import (
    EVERYTHING,
    LINEAR,
    NAMES,
    counted,
    directions,
    fix,
    only,
    sample,
    satisfied,
    solve,
    standard,
    unit,
    values,
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


@pytest.mark.parametrize("p", [None, np.array([0.0, 0.6, 0.8])])
def test_sizes_of_the_models(p):
    z, reach, weight, _, _ = sample(0, m=9)
    surfaces = (CubeFacet(1, -1), CrossPolytopeFacet((1, -1, 1)), CrossPolytope())
    for norm in (Box(), Secant(4), Exact(), *(surfaces if p is None else ())):
        eta = EVERYTHING if isinstance(norm, Surface) else (0, 0.5)
        for cliques, at_least in (((), None), (((0, 1), (2, 3, 4)), 2)):
            for make, extra, rows in ((density_model, 0, 2), (soft_density_model, 9, 3)):
                model = make(
                    z, reach, weight, p, eta, norm=norm, cliques=cliques, at_least=at_least
                )
                own = norm.size(3, support(np.eye(3), p, *eta))
                assert counted(model) == Size(
                    own.continuous + 1 + extra,
                    own.binaries + 9,
                    own.rows + rows * 9 + (p is not None) + len(cliques) + (at_least is not None),
                )


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
