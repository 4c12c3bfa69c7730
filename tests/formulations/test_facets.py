"""The facets of the dual unit spheres of l1 and linf costs: exact, moved, and never too small."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyomo.contrib.solver.common.factory import SolverFactory

from formulations import (
    Box,
    CrossPolytope,
    CrossPolytopeFacet,
    CubeFacet,
    Size,
    Surface,
    all_facets,
    clique_cover,
    conflicts,
    density_model,
    set_cutoff,
    set_facet,
    set_margin,
    soft_density_model,
)
from tests.modelling import EVERYTHING, counted, only, sample, satisfied, solve, standard, values

NORMS = ("l1", "linf")
# What the solver may be off by, at its default tolerances.
WIDEN = 1e-5
LENGTH = {"l1": np.inf, "linf": 1}


def parts_of(facet, k, rng):
    """The whole facet, and boxes around points of it, one of which touches its boundary."""
    yield None
    for _ in range(3):
        u, radius = points(facet, k, 1, rng)[0], rng.uniform(0.05, 0.5, size=k)
        yield u - radius, u + radius * rng.uniform(0, 1, size=k)


def points(facet, k, number, rng, box=None):
    """Points of a facet that lie within a box, by sampling alone."""
    if isinstance(facet, CubeFacet):
        lower, upper = (-np.ones(k), np.ones(k)) if box is None else box
        found = rng.uniform(np.maximum(lower, -1), np.minimum(upper, 1), size=(number, k))
        found[:, facet.axis] = facet.sign
        return found
    found = rng.dirichlet(np.full(k, 0.6), size=number if box is None else 30 * number)
    found = found * facet.signs
    if box is None:
        return found
    return found[((found >= box[0]) & (found <= box[1])).all(axis=1)]


def corners(facet, k, box=None):
    """Vertices of a part: all but one (or k) of the coordinates at an end of the box."""
    lower, upper = (-np.ones(k), np.ones(k)) if box is None else box
    if isinstance(facet, CubeFacet):
        lower, upper = np.maximum(lower, -1), np.minimum(upper, 1)
        lower[facet.axis] = upper[facet.axis] = facet.sign
        return np.array(list(itertools.product(*zip(lower, upper, strict=True))))
    signs = np.array(facet.signs)
    lower = np.maximum(lower, np.where(signs > 0, 0.0, -1.0))
    upper = np.minimum(upper, np.where(signs > 0, 1.0, 0.0))
    found = []
    for free in range(k):
        others = [j for j in range(k) if j != free]
        for ends in itertools.product(*((lower[j], upper[j]) for j in others)):
            u = np.zeros(k)
            u[others] = ends
            u[free] = signs[free] * (1 - signs[others] @ u[others])
            if lower[free] - 1e-12 <= u[free] <= upper[free] + 1e-12:
                found.append(u)
    return np.array(found)


# -- the facets themselves ---------------------------------------------------------------------


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_facets_cover_the_sphere_and_know_their_rate(norm, k):
    rng = np.random.default_rng(k)
    p = rng.normal(size=k)
    every = all_facets(norm, k)
    assert len(every) == (2 * k if norm == "l1" else 2**k)
    for u in rng.normal(size=(50, k)):
        u /= np.linalg.norm(u, LENGTH[norm])  # noqa: PLW2901
        inside = [f for f in every if ((f.box(k)[0] <= u) & (u <= f.box(k)[1])).all()]
        assert len(inside) == 1
        if norm == "l1":
            axis = int(np.abs(u).argmax())
            assert inside[0].rate(p) == np.sign(u[axis]) * p[axis]
        else:
            assert inside[0].rate(p) == pytest.approx(p @ np.sign(u))


def test_sizes():
    for k in (1, 2, 3, 5):
        stated = {
            CubeFacet(k - 1, -1): Size(k, 0, 0),
            CrossPolytopeFacet((-1,) * k): Size(k, 0, 1),
            CrossPolytope(): Size(3 * k, k, 3 * k + 1),
            CrossPolytope((1.0,) * k, (0, k)): Size(3 * k, k, 3 * k + 2),
        }
        for norm, size in stated.items():
            assert norm.size(k) == size
            assert counted(only(norm, k)) == size
            assert isinstance(norm, Surface)
            assert norm.least_norm(k) == 1
            assert norm.refined(np.ones(k)) is None
    assert not isinstance(Box(), Surface)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("k", [2, 3, 4])
def test_ranges_are_exact_also_over_parts(norm, k):
    rng = np.random.default_rng(k)
    z = rng.normal(size=(20, k))
    for facet in all_facets(norm, k):
        for box in parts_of(facet, k, rng):
            lowest, highest = facet.ranges(z, box)
            ends = z @ corners(facet, k, box).T
            assert lowest == pytest.approx(ends.min(axis=1), abs=1e-9)
            assert highest == pytest.approx(ends.max(axis=1), abs=1e-9)
            scores = z @ points(facet, k, 200, rng, box).T
            assert (scores >= lowest[:, None] - 1e-12).all()
            assert (scores <= highest[:, None] + 1e-12).all()
            low, high = facet.box(k, box)
            u = points(facet, k, 200, rng, box)
            assert ((low - 1e-12 <= u) & (u <= high + 1e-12)).all()


def test_ranges_of_whole_facets_by_their_formulas():
    z = np.array([[3.0, -4.0, 1.0], [0.0, 0.0, 2.0]])
    assert [end.tolist() for end in CubeFacet(1, -1).ranges(z)] == [[0, -2], [8, 2]]
    assert [end.tolist() for end in CrossPolytopeFacet((1, -1, -1)).ranges(z)] == [[-1, -2], [4, 0]]
    assert [end.tolist() for end in CrossPolytope().ranges(z)] == [[-4, -2], [4, 2]]
    # The rate leaves u_0 ≥ 0 and u_1 ≤ 0.
    some = CrossPolytope((5.0, -3.0, 1.0), (6.5, 9.0))
    assert [bound.tolist() for bound in some.box(3)] == [[0, -1, -1], [1, 0, 1]]
    assert [end.tolist() for end in some.ranges(z)] == [[-1, -2], [4, 2]]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_no_point_of_the_surface_leaves_its_ranges(k, seed):
    rng = np.random.default_rng(seed)
    z, p = rng.normal(size=(10, k)), rng.normal(size=k)
    u = rng.dirichlet(np.ones(k)) * rng.choice([-1, 1], size=k)
    rate = float(p @ np.where(u < 0, -1, 1))
    radius = rng.uniform(0, 0.6, size=k)
    for surface in (CrossPolytope(), CrossPolytope(p, (rate - 0.1, rate + 0.1))):
        for box in (None, (u - radius, u + radius)):
            lowest, highest = surface.ranges(z, box)
            assert (lowest <= z @ u + 1e-12).all()
            assert (z @ u <= highest + 1e-12).all()
            low, high = surface.box(k, box)
            assert ((low <= u) & (u <= high)).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.sampled_from(NORMS), st.integers(0, 2**32 - 1))
def test_the_model_is_the_facet(k, norm, seed):
    """Points of a part satisfy bounds and rows, and points beyond do not."""
    rng = np.random.default_rng(seed)
    facet = all_facets(norm, k)[rng.integers(len(all_facets(norm, k)))]
    centre = points(facet, k, 1, rng)[0]
    radius = rng.uniform(0, 0.5, size=k)
    model = only(facet, k, (centre - radius, centre + radius))

    def holds(u):
        for j in range(k):
            model.u[j].value = u[j]
        within = all(v.lb - 1e-12 <= v.value <= v.ub + 1e-12 for v in model.u.values())
        return within and satisfied(model)

    assert holds(centre)
    for u in points(facet, k, 20, rng):
        assert holds(u) == bool((np.abs(u - centre) <= radius).all())
    for u in rng.uniform(-1, 1, size=(20, k)):
        assert not holds(u) or np.linalg.norm(u, LENGTH[norm]) == pytest.approx(1)


def test_the_surface_has_no_inside():
    """Also in its relaxed boxes: every solution has Σ|u_j| = 1, and the sign of every u_j."""
    rng = np.random.default_rng(1)
    p = np.array([1.0, -2.0, 0.5])
    for limits in ((-4.0, 4.0), (0.4, 0.6), (2.4, 4.0)):
        for box in (
            (-np.ones(3), np.ones(3)),
            (np.array([-1, -0.2, 0.1]), np.array([0.3, 1, 0.6])),
        ):
            try:
                model = only(CrossPolytope(p, limits), 3, box)
            except ValueError:
                continue
            worth = rng.normal(size=3)
            model.goal = pyo.Objective(expr=sum(worth[j] * model.u[j] for j in range(3)))
            if solve(model) is None:
                continue
            u, x = values(model.u), values(model.norm.positive).round()
            assert np.abs(u).sum() == pytest.approx(1, abs=1e-6)
            assert (u * (2 * x - 1) >= -1e-6).all()
            assert limits[0] - 1e-6 <= p @ (2 * x - 1) <= limits[1] + 1e-6


# -- optima against enumeration ----------------------------------------------------------------


def enumerated(z, reach, weight, facet, soft, box=None):
    """The best over a part, by the vertices of an arrangement.

    For a given set of agents in the margin, the objective is linear in (u, b) on the polytope where
    they are, and it is the largest of finitely many such: some vertex of the arrangement of all
    {b − u·z_i ∈ {0, ℓ_i}} and the bounds of u is a maximiser. Independent of the models: the bounds
    of the part are written down here again.
    """
    m, k = z.shape
    lower, upper = (-np.ones(k), np.ones(k)) if box is None else box
    lower, upper = np.maximum(lower, -1.0), np.minimum(upper, 1.0)
    fixed, value = np.zeros(k + 1), 1.0
    if isinstance(facet, CubeFacet):
        fixed[facet.axis], value = 1.0, float(facet.sign)
    else:
        signs = np.array(facet.signs)
        fixed[:k] = signs
        lower = np.where(signs > 0, np.maximum(lower, 0), lower)
        upper = np.where(signs < 0, np.minimum(upper, 0), upper)
    planes = [(np.append(-z[i], 1.0), end) for i in range(m) for end in (0.0, reach[i])]
    planes += [(np.eye(k + 1)[j], end) for j in range(k) for end in {lower[j], upper[j]}]
    chosen = np.array(list(itertools.combinations(range(len(planes)), k)))
    rows, ends = (np.array(part) for part in zip(*planes, strict=True))
    matrices = np.concatenate(
        [np.broadcast_to(fixed, (len(chosen), 1, k + 1)), rows[chosen]], axis=1
    )
    right = np.column_stack([np.full(len(chosen), value), ends[chosen]])
    regular = np.abs(np.linalg.det(matrices)) > 1e-9
    found = np.linalg.solve(matrices[regular], right[regular][:, :, None])[:, :, 0]
    u, b = found[:, :k], found[:, k]
    inside = ((u >= lower - 1e-9) & (u <= upper + 1e-9)).all(axis=1)
    distance = b[inside, None] - u[inside] @ z.T
    covered = (distance >= -1e-9) & (distance <= reach + 1e-9)
    worth = (covered * distance if soft else covered) @ weight
    return float(worth.max())


MAKERS = {False: density_model, True: soft_density_model}


@pytest.mark.slow
@pytest.mark.parametrize("soft", [False, True], ids=["density", "soft"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("m", "k", "equal"), [(6, 2, True), (8, 2, False), (6, 3, False)])
def test_optima_are_those_of_the_enumeration(soft, norm, m, k, equal):
    """On whole facets and on parts; with cliques and a cutoff; widened a little or not at all."""
    z, reach, weight, _, rng = sample(m + k, m=m, k=k, equal=equal)
    reach = reach / 2
    edges = 0
    for facet in all_facets(norm, k):
        box = list(parts_of(facet, k, rng))[1]
        for part in ({}, {"box": box}):
            truth = enumerated(z, reach, weight, facet, soft, **part)
            model = MAKERS[soft](z, reach, weight, None, EVERYTHING, norm=facet, **part)
            assert solve(model) * model.scale == pytest.approx(truth, abs=1e-5)
            graph = conflicts(z, reach, None, *EVERYTHING, widen=WIDEN, over=facet, **part)
            edges += graph.number_of_edges()
            model = MAKERS[soft](
                z, reach, weight, None, EVERYTHING, norm=facet, widen=WIDEN,
                cliques=clique_cover(graph), at_least=truth / 2, **part,
            )  # fmt: skip
            found = solve(model) * model.scale
            assert found >= truth - 1e-6
            assert found <= truth + (3 * WIDEN if soft else 1e-6) or not soft
            set_cutoff(model, (truth - 1e-4) / model.scale)
            assert solve(model) is not None
            if soft:
                set_cutoff(model, (truth + 1e-3) / model.scale)
                assert solve(model) is None
    assert edges


@pytest.mark.slow
@pytest.mark.parametrize("soft", [False, True], ids=["density", "soft"])
@pytest.mark.parametrize("seed", range(3))
def test_the_surface_is_the_best_of_its_facets(soft, seed):
    z, reach, weight, _, rng = sample(seed, m=7, equal=seed == 0)
    reach = reach / 2
    p = np.array([1.0, 0.4, -0.2]) * rng.choice([-1, 1], size=3)
    truth = {f: enumerated(z, reach, weight, f, soft) for f in all_facets("linf", 3)}
    solved = 0
    for limits in ((-2.0, 2.0), (0.1, 2.0), (0.7, 1.3), (1.5, 1.7)):
        inside = [f for f in truth if limits[0] <= f.rate(p) <= limits[1]]
        model = MAKERS[soft](
            z, reach, weight, None, EVERYTHING, norm=CrossPolytope(p, limits), widen=1e-7
        )
        best = max(truth[facet] for facet in inside)
        assert solve(model) * model.scale == pytest.approx(best, abs=1e-5)
        solved += len(inside)
        if len(inside) == len(truth):
            whole = MAKERS[soft](z, reach, weight, None, EVERYTHING, norm=CrossPolytope())
            assert solve(whole) * whole.scale == pytest.approx(best, abs=1e-5)
    assert solved > 8


def test_a_small_case_by_hand():
    """Two people at 0 and 1, the second costs twice as much: u = 1, and b = 0.4 or 1.2."""
    z, reach, weight = np.array([[0.0], [1.0]]), np.array([0.4, 0.2]), np.array([0.5, 0.5])
    for facet in (CubeFacet(0, 1), CrossPolytopeFacet((1,)), CrossPolytope((1.0,), (0.5, 1.0))):
        model = soft_density_model(z, reach, weight, None, EVERYTHING, norm=facet)
        assert solve(model) * model.scale == pytest.approx(0.2)
        assert pyo.value(model.u[0]) == pytest.approx(1)
        assert pyo.value(model.b) == pytest.approx(0.4)


def test_windows_bound_how_far_people_move():
    """No further than the window and the scores allow; and windows together lose nothing."""
    z, reach, weight, _, _ = sample(2, m=8)
    facet = CubeFacet(1, -1)
    lowest, highest = facet.ranges(z)
    bottom, top = float((lowest + reach).min()), float((highest + reach).max())
    model = soft_density_model(z, reach, weight, None, EVERYTHING, norm=facet, widen=WIDEN)
    assert solve(model) * model.scale == pytest.approx(
        enumerated(z, reach, weight, facet, True), abs=1e-3
    )
    whole, best, shorter = solve(model), 0.0, 0
    cuts = np.linspace(bottom, top, 9)
    for window in itertools.pairwise(cuts.tolist()):
        set_margin(model, lowest=lowest, highest=highest, window=window)
        longest = [model.t[i].ub for i in range(8)]
        expected = np.minimum(reach, np.maximum(0, window[1] - lowest)) + WIDEN
        assert longest == pytest.approx(expected)
        shorter += sum(expected < reach)
        best = max(best, solve(model))
    assert best == pytest.approx(whole, abs=1e-5)
    assert shorter


# -- conflicts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_conflicts_over_a_facet_are_those_that_it_does_not_resolve(norm, k):
    rng = np.random.default_rng(k)
    z, reach = rng.uniform(-1, 1, size=(30, k)), rng.uniform(0.05, 0.3, size=30)
    edges = 0
    for facet in all_facets(norm, k):
        for box in parts_of(facet, k, rng):
            graph = conflicts(z, reach, None, *EVERYTHING, over=facet, box=box)
            u = np.vstack([points(facet, k, 300, rng, box), corners(facet, k, box)])
            scores = u @ z.T
            begins_in_time = scores[:, :, None] <= scores[:, None, :] + reach[None, None, :] - 1e-9
            together = (begins_in_time & begins_in_time.transpose(0, 2, 1)).any(axis=0)
            assert not any(together[i, j] for i, j in graph.edges)
            edges += graph.number_of_edges()
            # A facet is connected: two corners on different sides, and some u in between serves.
            low, high = (scores[:, :, None] - scores[:, None, :] for _ in range(2))
            low, high = low.min(axis=0), high.max(axis=0)
            for i, j in itertools.combinations(range(30), 2):
                if low[i, j] <= reach[j] - 1e-9 and high[i, j] >= -reach[i] + 1e-9:
                    assert not graph.has_edge(i, j)
                elif low[i, j] > reach[j] + 1e-9 or high[i, j] < -reach[i] - 1e-9:
                    assert graph.has_edge(i, j)
    assert edges


# -- moving a built model ----------------------------------------------------------------------


def family(name):
    if name == "surface":
        p = (1.0, -0.5, 0.3)
        return [CrossPolytope(p, limits) for limits in ((-1.8, 1.8), (1.0, 1.4), (-1.8, -1.7))]
    return all_facets(name, 3)


@pytest.mark.parametrize("name", [*NORMS, "surface"])
@pytest.mark.parametrize("soft", [False, True])
def test_a_moved_model_is_the_fresh_one(name, soft):
    z, reach, weight, _, rng = sample(6, m=8, equal=False)
    every = family(name)
    model = MAKERS[soft](z, reach, weight, None, EVERYTHING, norm=every[0], widen=1e-3)
    moved = 0
    for facet in [*every[1:], every[0]]:
        boxes = [None] if name == "surface" else parts_of(facet, 3, rng)
        for box in boxes:
            fresh = MAKERS[soft](
                z, reach, weight, None, EVERYTHING, norm=facet, widen=1e-3, box=box
            )
            moved += standard(model) != standard(fresh)
            lowest, highest = facet.ranges(z, box)
            ends = reach if soft else 0.0
            window = float((lowest + ends).min()), float((highest + ends).max())
            set_facet(model, facet, box)
            set_margin(model, lowest=lowest, highest=highest, window=window)
            assert standard(model) == standard(fresh)
    assert moved >= len(every) - 1


@pytest.mark.parametrize("name", [*NORMS, "surface"])
def test_a_persistent_solver_sees_every_move(name):
    z, reach, weight, _, rng = sample(8, m=10)
    every = family(name)
    model = soft_density_model(z, reach, weight, None, EVERYTHING, norm=every[0], widen=1e-6)
    solver = SolverFactory("highs")
    optima = set()
    for facet in every:
        for box in [None] if name == "surface" else list(parts_of(facet, 3, rng))[:2]:
            lowest, highest = facet.ranges(z, box)
            window = float((lowest + reach).min()), float((highest + reach).max())
            set_facet(model, facet, box)
            set_margin(model, lowest=lowest, highest=highest, window=window)
            found = solver.solve(model, solver_options={"mip_rel_gap": 0.0}).incumbent_objective
            fresh = soft_density_model(
                z, reach, weight, None, EVERYTHING, norm=facet, widen=1e-6, box=box
            )
            assert found == pytest.approx(solve(fresh), abs=1e-5)
            optima.add(round(found, 6))
    assert len(optima) > 1


# -- what is refused ---------------------------------------------------------------------------


def test_what_is_no_facet_is_refused():
    z, reach, weight, p, _ = sample(0)
    cube, simplex = CubeFacet(0, 1), CrossPolytopeFacet((1, 1, -1))
    near = np.full(3, 0.1)
    for bad, message in (
        (lambda: CubeFacet(0, 0), "a sign, 1 or -1"),
        (lambda: CrossPolytopeFacet((1, 0)), "signs are 1 or -1"),
        (lambda: CrossPolytopeFacet(()), "signs are 1 or -1"),
        (lambda: CrossPolytope((1.0,)), "both or neither"),
        (lambda: CrossPolytope((1.0,), (2.0, 1.0)), "nothing lies between"),
        (lambda: CrossPolytope((1.0, 1.0), (5.0, 6.0)).box(2), "no facet has a rate"),
        (lambda: CrossPolytope((1.0, math.nan), (0.0, 1.0)), "p must be finite"),
        (lambda: CrossPolytope().box(3, (-near, near)), "holds nothing"),
        (lambda: CrossPolytope().box(3, (6 * near, 9 * near)), "holds nothing"),
        (lambda: cube.box(3, (-near, near)), "holds nothing"),
        (lambda: simplex.box(3, (-near, near)), "holds nothing"),
        (lambda: simplex.box(3, (near, 9 * near)), "holds nothing"),
        (lambda: cube.box(3, (2 + near, 3 + near)), "holds nothing"),
        (lambda: CubeFacet(3, 1).box(3), "no axis 3"),
        (lambda: simplex.box(2), "3 signs, not 2"),
        (lambda: all_facets("l2", 2), "l1"),
        (lambda: set_facet(only(cube), simplex), "cannot become"),
        (lambda: set_facet(only(Box()), simplex), "cannot become"),
        (lambda: set_facet(only(CrossPolytope()), CrossPolytope(p, (-9, 9))), "built with p"),
        (lambda: conflicts(z, reach, p, 0, 1, over=cube), "no η"),
        (lambda: conflicts(z, reach, p, 0, 1, box=(near, near)), "part of a facet"),
        (lambda: density_model(z, reach, weight, p, EVERYTHING, norm=cube), "cosine"),
        (lambda: density_model(z, reach, weight, None, (0.5, 1.0), norm=cube), "cosine"),
    ):
        with pytest.raises(ValueError, match=message):
            bad()
