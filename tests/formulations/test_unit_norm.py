"""The unit-norm approximations: outer, no shorter than they say, of the size they claim."""

from __future__ import annotations

import math

import numpy as np
import pyomo.environ as pyo
import pytest

from formulations import (
    Box,
    Cone,
    Cones,
    Exact,
    Secant,
    Size,
    cell,
    cube,
    set_cone,
    support,
    tangents,
)
from tests.modelling import (
    counted,
    directions,
    fix,
    only,
    satisfied,
    solve,
    unit,
    values,
)


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


@pytest.mark.slow
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


@pytest.mark.slow
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
