"""Requirements in the Pyomo models, against all rules of small samples: never too small, and exact.

The referee here enumerates directions and, for each, all ends of reach as thresholds, and the
threshold above everybody. On facets in two dimensions and in one dimension it misses nothing.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.contrib.solver.common.factory import SolverFactory

from formulations import (
    Box,
    CrossPolytope,
    CrossPolytopeFacet,
    CubeFacet,
    Demanded,
    Exact,
    Secant,
    Size,
    add_accepted,
    add_halfspaces,
    add_margin,
    add_parity,
    add_share,
    clique_cover,
    conflicts,
    cube,
    density_model,
    set_margin,
    soft_density_model,
    support,
)
from formulations.parity import SHARE_ROOM, class_masses
from formulations.rows import LARGE, whole
from tests.modelling import (
    EVERYTHING,
    counted,
    directions,
    fix,
    only,
    sample,
    satisfied,
    solve,
    standard,
    values,
)

MODELS = [density_model, soft_density_model]
# What the solver may be off by at its default tolerances, in scores; soft density moves with it.
WIDEN = 2e-7
PEOPLE = 9


# -- the referee -------------------------------------------------------------------------------


def outcomes(z, reach, u):
    """For every threshold worth a look: b, who is accepted, and how far those who move move."""
    scores = z @ u
    ends = scores + reach
    for b in [*ends, math.inf]:
        passed = b <= ends
        moving = passed & (scores <= b)
        yield b, passed, moving, np.where(moving, np.minimum(b, ends) - scores, 0.0)


def meets(demanded, passed):
    """Whether the accepted shares are as demanded, in whole numbers."""
    if demanded.limits is not None:
        low, high = demanded.limits
        if not low <= demanded.mass @ passed <= high:
            return False
    if demanded.within is not None:
        masses = class_masses(
            demanded.mass if demanded.class_mass is None else demanded.class_mass, demanded.members
        )
        shares = [row @ passed / row.sum() for row in masses if row.any()]
        return max(shares) - min(shares) <= demanded.within
    return True


def truth(make, z, reach, weight, us, demanded, own=lambda u, b, passed: True):  # noqa: ARG005
    """The greatest (soft) density over the rules that do as demanded; None if there are none."""
    best = None
    for u in us:
        if demanded.rows is not None and (demanded.rows @ u < 0).any():
            continue
        for b, passed, moving, moves in outcomes(z, reach, u):
            if meets(demanded, passed) and own(u, b, passed):
                worth = float(weight @ (moving if make is density_model else moves))
                best = worth if best is None else max(best, worth)
    return best


def circle(number=3000):
    angles = np.linspace(0, 2 * math.pi, number, endpoint=False)
    return np.column_stack([np.cos(angles), np.sin(angles)])


def on_facet(facet, z, reach, rows=None):
    """Directions of a facet in two dimensions: all places where anything changes, and between."""
    if isinstance(facet, CubeFacet):
        ends = np.array([[-1.0, -1.0], [1.0, 1.0]])
        ends[:, facet.axis] = facet.sign
    else:
        ends = np.diag(np.array(facet.signs, dtype=float))
    start, step = ends[0], ends[1] - ends[0]
    # Lines over x in [0, 1]: scores and ends; and 0 = row·u.
    lines = [(z @ start + r, z @ step) for r in (0.0, reach)]
    height, slope = (np.concatenate(parts) for parts in zip(*lines, strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        meet = -(height[:, None] - height) / (slope[:, None] - slope)
        edge = np.array([]) if rows is None else -(rows @ start) / (rows @ step)
    places = np.concatenate([meet.ravel(), edge])
    places = np.sort(np.append(places[(places > 0) & (places < 1)], [0.0, 1.0]))
    near = [places + hair for hair in (0, -1e-10, 1e-10)]
    every = np.concatenate([*near, (places[1:] + places[:-1]) / 2])
    return [start + x * step for x in every if 0 <= x <= 1]


def demands(rng, m, k, kind):
    """Requirements of a kind that some samples can meet, and some cannot."""
    mass = rng.integers(1, 6, size=m).astype(float)
    total = mass.sum()
    low = rng.uniform(0, 0.7)
    high = low + rng.choice([0.05, 0.4])
    share = {"mass": mass, "limits": (math.ceil(low * total), math.floor(high * total))}
    classes = {"mass": mass, "members": rng.integers(0, 3, size=m), "within": rng.uniform(0, 0.6)}
    cone = {"rows": rng.normal(size=(1, k))}
    chosen = {
        "share": share,
        "parity": classes,
        "cone": cone,
        "share and cone": share | cone,
        "all": share | classes | cone,
    }
    return Demanded(**chosen[kind])


KINDS = ["share", "parity", "cone", "share and cone", "all"]


# -- bounds, and exact optima --------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("norm", [Box(), Secant(8), cube(2, 2)], ids=["box", "secant", "cube"])
def test_optima_are_never_below_a_rule_that_does_as_demanded(kind, make, norm):
    met = 0
    for seed, eta in ((0, EVERYTHING), (1, (0.1, 0.95)), (2, (-0.6, 0.3))):
        z, reach, weight, p, rng = sample(seed, m=PEOPLE, k=2, equal=seed == 0)
        demanded = demands(rng, PEOPLE, 2, kind)
        us = circle()
        us = us[(eta[0] <= us @ p) & (us @ p <= eta[1])]
        best = truth(make, z, reach, weight, us, demanded)
        graph = conflicts(z, reach, p, *eta, widen=WIDEN)
        more = {"norm": norm, "widen": WIDEN, "cliques": clique_cover(graph)}
        model = make(z, reach, weight, p, eta, **more, demanded=demanded)
        found = solve(model)
        if best is not None:
            met += 1
            assert found is not None
            assert found * model.scale >= best - 1e-6
            # What is demanded takes away, it never adds.
            assert found <= solve(make(z, reach, weight, p, eta, **more)) + 1e-6
    assert met


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", MODELS)
def test_optima_on_a_line_are_exact(kind, make):
    met = missed = 0
    for seed, eta in itertools.product(range(6), (None, (1.0, 1.0), (-1.0, -1.0))):
        z, reach, weight, _, rng = sample(seed, m=PEOPLE, k=1, equal=seed % 2 == 0)
        demanded = demands(rng, PEOPLE, 1, kind)
        p = None if eta is None else np.ones(1)
        us = np.array([[1.0], [-1.0]]) if eta is None else np.array([[eta[0]]])
        model = make(
            z,
            reach,
            weight,
            p,
            eta or EVERYTHING,
            norm=Secant(),
            widen=WIDEN,
            demanded=demanded,
        )
        found, best = solve(model), truth(make, z, reach, weight, us, demanded)
        assert (found is None) == (best is None)
        if best is None:
            missed += 1
        else:
            met += 1
            assert found * model.scale == pytest.approx(best, abs=1e-6)
    assert met
    assert missed or kind in ("parity", "cone")  # nobody accepted; one of two directions


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize(
    "facet",
    [CubeFacet(0, 1), CubeFacet(1, -1), CrossPolytopeFacet((1, 1)), CrossPolytopeFacet((-1, 1))],
    ids=str,
)
def test_optima_on_facets_are_exact(kind, make, facet):
    met = 0
    for seed in range(8):
        z, reach, weight, _, rng = sample(seed, m=6, k=2, equal=seed % 2 == 0)
        demanded = demands(rng, 6, 2, kind)
        us = on_facet(facet, z, reach, demanded.rows)
        model = make(z, reach, weight, None, EVERYTHING, norm=facet, widen=WIDEN, demanded=demanded)
        found, best = solve(model), truth(make, z, reach, weight, us, demanded)
        assert (found is None) == (best is None)
        if best is not None:
            met += 1
            assert found * model.scale == pytest.approx(best, abs=1e-6)
    assert met


@pytest.mark.slow
@pytest.mark.parametrize("make", MODELS)
def test_the_whole_surface_is_as_good_as_its_best_facet(make):
    for seed in range(3):
        z, reach, weight, _, rng = sample(seed, m=6, k=2, equal=False)
        demanded = demands(rng, 6, 2, "share and cone")
        facets = [CrossPolytopeFacet(signs) for signs in itertools.product((1, -1), repeat=2)]
        every = [u for facet in facets for u in on_facet(facet, z, reach, demanded.rows)]
        best = truth(make, z, reach, weight, every, demanded)
        found = solve(
            make(
                z,
                reach,
                weight,
                None,
                EVERYTHING,
                norm=CrossPolytope(),
                widen=WIDEN,
                demanded=demanded,
            )
        )
        assert found == (None if best is None else pytest.approx(best, abs=1e-6))


# -- who is accepted -----------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [Secant(8), cube(3, 2), Box()], ids=["secant", "cube", "box"])
@pytest.mark.parametrize("make", MODELS)
def test_accepted_tells_the_truth_in_both_directions(norm, make):
    z, reach, weight, p, rng = sample(4, m=12, equal=False)
    for u in directions(rng, 3, p, -0.5, 0.9):
        b = rng.uniform(-0.4, 0.9)
        truly = b <= z @ u + reach
        assert np.abs(b - z @ u - reach).min() > 1e-4
        model = make(
            z,
            reach,
            weight,
            p,
            (-0.5, 0.9),
            norm=norm,
            window=(-0.5, 1.0),
            demanded=Demanded(indicators=True),
        )
        fix(model, u, b)
        number = sum(model.accepted.values())
        for sense in (pyo.maximize, pyo.minimize):
            model.del_component("objective")
            model.objective = pyo.Objective(expr=number, sense=sense)
            assert solve(model) == pytest.approx(truly.sum())
            assert np.array_equal(values(model.accepted).round(), truly.astype(float))


def test_every_true_rule_is_in_the_model_without_a_solver():
    """Indicators of the rule, rows and bounds: all of them hold, over the default window."""
    for seed in range(5):
        z, reach, weight, p, rng = sample(seed, m=8, k=2, equal=False)
        eta = (-0.7, 0.9)
        members = rng.integers(0, 2, size=8)
        every = Demanded(
            mass=np.ones(8), limits=(0, 8), members=members, within=1.0, rows=np.eye(2), room=2.0
        )
        model = density_model(z, reach, weight, p, eta, norm=Exact(), demanded=every, widen=1e-9)
        for u in directions(rng, 20, p, *eta):
            last = float((z @ u + reach).max())
            for b, passed, moving, _ in outcomes(z, reach, u):
                # Above everybody is, in the model, the last end with its agent rejected.
                fix(model, u, min(b, last))
                for i in range(8):
                    model.s[i].value, model.accepted[i].value = int(moving[i]), int(passed[i])
                shares = [passed[members == g].mean() for g in np.unique(members)]
                model.least.value, model.greatest.value = min(shares), max(shares)
                assert satisfied(model)
                for variable in model.component_data_objects(pyo.Var):
                    assert variable.lb - 1e-9 <= variable.value <= variable.ub + 1e-9, variable


def test_thresholds_between_ends_need_a_window_of_ends():
    """Two agents with one score; only a threshold above it accepts just one of them."""
    z, reach, weight = np.zeros((2, 1)), np.array([0.1, 0.5]), np.array([0.5, 0.5])
    demanded = Demanded(mass=np.ones(2), limits=(1, 1))
    for make, best in ((density_model, 1), (soft_density_model, 0.5)):
        args = (z, reach, weight, np.ones(1), (1.0, 1.0))
        found = solve(make(*args, norm=Secant(), demanded=demanded))
        assert found == pytest.approx(best)
        narrow = make(*args, norm=Secant(), demanded=demanded, window=(0.0, 0.0))
        assert solve(narrow) is None


@pytest.mark.parametrize("make", MODELS)
def test_nobody_need_be_accepted(make):
    """Not even whoever is surely in the margin, or alone at the end of the window."""
    for z in (np.zeros((1, 1)), np.array([[0.3], [0.4]])):
        m = len(z)
        demanded = Demanded(mass=np.ones(m), limits=(0, 0))
        args = (z, np.full(m, 0.2), np.ones(m) / m, np.ones(1), (1.0, 1.0))
        model = make(*args, norm=Secant(), demanded=demanded)
        assert solve(model) == pytest.approx(0)
        assert not values(model.accepted).any()


def test_sure_agents_have_bounds_not_fixings():
    z = np.array([[0.0, 0.1], [0.0, 5.0], [0.0, -5.0], [0.0, 0.9]])
    reach = np.array([2.0, 0.1, 0.1, 0.6])
    model = only(Exact(), k=2)
    lowest, highest = support(z, np.array([0.0, 1.0]), 1.0, 1.0)
    with_window = {"lowest": lowest, "highest": highest, "window": (0.5, 1.5)}
    add_margin(model, z, reach, **with_window)
    add_accepted(model, z, reach, **with_window)
    bounds = [(model.accepted[i].lb, model.accepted[i].ub) for i in range(4)]
    # The last one's end is the end of the window, and the model has thresholds just above, too.
    assert bounds == [(1, 1), (1, 1), (0, 0), (0, 1)]
    # The first one is surely in the margin, but rows of a user's own may leave it out.
    assert [model.s[i].lb for i in range(4)] == [0, 0, 0, 0]
    assert not any(variable.fixed for variable in model.accepted.values())
    set_margin(model, lowest=lowest, highest=highest, window=(1.6, 2.2))
    bounds = [(model.accepted[i].lb, model.accepted[i].ub) for i in range(4)]
    assert bounds == [(0, 1), (1, 1), (0, 0), (0, 0)]
    assert model.s[0].lb == 0


@pytest.mark.parametrize("make", MODELS)
def test_a_moved_model_is_the_fresh_one(make):
    z, reach, weight, p, rng = sample(6, m=12, equal=False)
    demanded = demands(rng, 12, 3, "all")
    options = {"norm": Secant(), "demanded": demanded, "widen": 1e-3}
    ranges = [
        dict(zip(("lowest", "highest"), support(z, p, *eta), strict=True), window=window)
        for eta, window in (((0.1, 0.9), (-1.0, 1.0)), ((0.7, 0.8), (0.45, 0.5)))
    ]
    model, fresh = (make(z, reach, weight, p, (0.1, 0.9), **options, **some) for some in ranges)
    assert standard(model) != standard(fresh)
    set_margin(model, **ranges[1])
    assert standard(model) == standard(fresh)
    assert any(variable.ub == 0 for variable in model.accepted.values())


def test_a_persistent_solver_sees_every_move():
    z, reach, weight, p, rng = sample(8, m=10)
    demanded = Demanded(mass=np.ones(10), limits=(2, 5), rows=rng.normal(size=(1, 3)))
    solver = SolverFactory("highs")

    def build(window):
        return density_model(
            z, reach, weight, p, (0.3, 0.3), norm=cube(3), window=window, widen=1e-6,
            demanded=demanded,
        )  # fmt: skip

    model, lowest_highest = build((-0.2, 0.2)), support(z, p, 0.3, 0.3)
    solved = 0
    for bottom in (-0.4, -0.1, 0.2, 0.5, 0.9):
        window = (bottom, bottom + 0.3)
        set_margin(model, lowest=lowest_highest[0], highest=lowest_highest[1], window=window)
        found = solver.solve(
            model, load_solutions=False, raise_exception_on_nonoptimal_result=False
        ).incumbent_objective
        expected = solve(build(window))
        assert found == (None if expected is None else pytest.approx(expected))
        solved += expected is not None
    assert 0 < solved < 5


# -- shares, parity and cones ----------------------------------------------------------------------


def test_alike_agents_are_accepted_together():
    """At one point: all or nobody, but a closed row says "some" on the tie."""
    z, reach, weight = np.zeros((4, 1)), np.full(4, 0.5), np.full(4, 0.25)
    half = {"mass": np.ones(4), "limits": (2, 2)}
    for make in MODELS:
        args = (z, reach, weight, None, EVERYTHING)
        assert solve(make(*args, norm=Secant(), demanded=Demanded(**half))) is not None
        alike = Demanded(**half, alike=np.zeros(4, dtype=int))
        assert solve(make(*args, norm=Secant(), demanded=alike)) is None
        pairs = Demanded(**half, alike=np.array([7, 3, 3, 7]))
        model = make(*args, norm=Secant(), demanded=pairs)
        assert solve(model) is not None
        assert values(model.accepted).round().tolist() in ([1, 0, 0, 1], [0, 1, 1, 0])


def test_what_nobody_can_meet_is_infeasible():
    z, reach, weight, p, _ = sample(1, m=6, k=2)
    mass = np.ones(6)
    odd = np.array([0, 0, 1, 1, 1, 1])
    impossible = [
        (Demanded(mass=mass, limits=(4, 3)), Secant()),
        (Demanded(mass=2 * mass, limits=(5, 5)), Secant()),
        (Demanded(mass=mass, limits=(1, 1), members=odd, within=0.2), Secant()),
        (Demanded(rows=np.array([[1.0, 0], [0, 1], [-1, -1]])), Secant()),
        (Demanded(rows=np.array([[1.0, 0.0]])), CubeFacet(0, -1)),
        (Demanded(rows=np.array([[1.0, 0.0], [0.0, 1.0]]), room=1e-3), CubeFacet(0, -1)),
        (Demanded(rows=-np.eye(2)), CrossPolytopeFacet((1, 1))),
    ]
    for make, (demanded, norm) in itertools.product(MODELS, impossible):
        args = (z, reach, weight, None, EVERYTHING)
        assert solve(make(*args, norm=norm, demanded=demanded)) is None
        assert solve(make(*args, norm=norm)) is not None
    away = Demanded(rows=p[None, :])
    assert (
        solve(density_model(z, reach, weight, p, (-1, -0.5), norm=Secant(), demanded=away)) is None
    )


def test_whole_numbers_stay_whole():
    mass = np.array([3.0, 0.0, 2.0**20, 1.0])
    coefficients, factor, lost = whole("mass", mass)
    assert (coefficients == mass).all()
    assert (factor, lost) == (1, 0)
    large = np.array([2.0**60, 2.0**53 + 2, 3.0])
    coefficients, factor, lost = whole("mass", large)
    assert LARGE / 2 <= coefficients.max() <= LARGE
    assert (coefficients[:2] / factor == large[:2]).all()
    assert coefficients[2] == 2.0**-40 * 3 or (coefficients[2] == 0 and lost == 3 * factor)
    for wrong in ([0.5, 1.0], [-1.0, 1.0], [0.0, 0.0]):
        with pytest.raises(ValueError, match="whole numbers"):
            whole("mass", np.array(wrong))


def test_large_masses_mean_the_same():
    """Weights such as 0.1 are huge whole numbers; tiny ones beside them exclude no rule."""
    z, reach, weight, _, _ = sample(3, m=7, k=1, equal=False)
    small = np.array([1.0, 2, 3, 1, 2, 1, 4])
    for limits in ((3, 6), (7, 8), (14, 14), (1, 1)):
        optima = [
            solve(
                density_model(
                    z,
                    reach,
                    weight,
                    None,
                    EVERYTHING,
                    norm=Secant(),
                    widen=WIDEN,
                    demanded=Demanded(mass=small * unit, limits=tuple(unit * x for x in limits)),
                )
            )
            for unit in (1.0, 3 * 2.0**55)
        ]
        assert optima[0] == (None if optima[1] is None else pytest.approx(optima[1]))
    dust = np.array([2.0**60, 1.0])
    model = only(Secant(), k=1)
    ranges = {"lowest": -np.ones(2), "highest": np.ones(2), "window": (-1.0, 1.0)}
    add_margin(model, np.ones((2, 1)), np.ones(2), **ranges)
    add_accepted(model, np.ones((2, 1)), np.ones(2), **ranges)
    add_share(model, dust, 2.0**60 + 1, 2.0**60 + 1)
    assert model.share_least.lb <= 2.0**20 <= model.share_most.ub


def test_parity_is_about_all_pairs():
    rng = np.random.default_rng(5)
    m, within = 9, 0.25
    mass, members = rng.integers(0, 4, size=m).astype(float), rng.integers(0, 4, size=m)
    model = only(Exact(), k=1)
    model.s = pyo.Var(range(m), domain=pyo.Binary)
    model.accepted = pyo.Var(range(m), domain=pyo.Binary)
    add_parity(model, mass, members, within)
    masses = [row for row in class_masses(mass, members) if row.any()]
    seen = set()
    for _ in range(400):
        a = rng.integers(0, 2, size=m)
        shares = [row @ a / row.sum() for row in masses]
        close = all(abs(x - y) <= within for x, y in itertools.combinations(shares, 2))
        fix(model, [1.0])
        for i in range(m):
            model.accepted[i].value = int(a[i])
        model.least.value, model.greatest.value = min(shares), max(shares)
        assert satisfied(model, 1e-12) == close
        seen.add(close)
    assert seen == {True, False}
    assert model.parity.ub == within + SHARE_ROOM
    assert len(model.lagging) == len(masses)


def test_an_agent_may_stand_for_several_classes():
    z, reach, weight, _, rng = sample(2, m=6, k=1, equal=False)
    first, second = rng.integers(0, 4, size=(2, 6)).astype(float)
    one = Demanded(class_mass=np.array([first, second]), within=0.1)
    # The same people, one by one.
    apart = Demanded(
        mass=np.concatenate([first, second]), members=np.repeat([0, 1], 6), within=0.1,
        alike=np.tile(np.arange(6), 2),
    )  # fmt: skip
    for make in MODELS:
        merged = solve(
            make(z, reach, weight, None, EVERYTHING, norm=Secant(), widen=WIDEN, demanded=one)
        )
        twice = solve(
            make(
                np.tile(z, (2, 1)),
                np.tile(reach, 2),
                np.tile(weight / 2, 2),
                None,
                EVERYTHING,
                norm=Secant(),
                widen=WIDEN,
                demanded=apart,
            )
        )
        assert merged == pytest.approx(twice, abs=1e-6)
        us = np.array([[1.0], [-1.0]])
        assert merged == pytest.approx(truth(make, z, reach, weight, us, one), abs=1e-6)


def test_a_cone_has_room_and_a_scale():
    model = only(Exact(), k=3)
    rows = np.array([[2.0**70, -(2.0**70), 0], [0, 0, 0], [0, 1e-12, 1.0], [0, 0, -1e-30]])
    add_halfspaces(model, rows, np.array([2.0**60, 0, 0, 0]))
    assert list(model.halfspaces) == [0, 2, 3]
    assert model.halfspaces[0].lb == -(2.0**-11)
    fix(model, [0.5, 0.5 + 2.0**-10, 0.0])
    assert pyo.value(model.halfspaces[0].body) == -(2.0**-11)
    fix(model, [0.0, -1.0, 1e-12])  # what is dropped is in the room
    assert pyo.value(model.halfspaces[2].body) >= model.halfspaces[2].lb
    assert pyo.value(model.halfspaces[3].body) < 0
    with pytest.raises(ValueError, match="negative"):
        add_halfspaces(only(Exact(), k=3), rows, -1.0)


@pytest.mark.parametrize("make", MODELS)
def test_sizes(make):
    z, reach, weight, _, _ = sample(0, m=9)
    plain = counted(make(z, reach, weight, None, EVERYTHING, norm=Secant()))
    classes, ones = np.arange(9) % 3, np.ones(9)
    few = np.where(classes == 0, ones, 0)
    for demanded, more in (
        (Demanded(), Size(0, 0, 0)),
        (Demanded(indicators=True), Size(0, 9, 27)),
        (Demanded(indicators=True, agents=[1, 4]), Size(0, 2, 6)),
        (Demanded(indicators=True, alike=classes), Size(0, 9, 27 + 6)),
        (Demanded(mass=np.ones(9), limits=(1, 2)), Size(0, 9, 27 + 2)),
        (Demanded(mass=few, limits=(1, 2)), Size(0, 3, 9 + 2)),
        (Demanded(mass=few, limits=(1, 2), indicators=True), Size(0, 9, 27 + 2)),
        (Demanded(class_mass=few[None], within=0.1), Size(2, 3, 9 + 3)),
        (Demanded(mass=ones, limits=(1, 2), class_mass=few[None], within=0), Size(2, 9, 27 + 5)),
        (Demanded(mass=np.ones(9), members=classes, within=0.1), Size(2, 9, 27 + 7)),
        (Demanded(rows=np.eye(3)), Size(0, 0, 3)),
    ):
        size = counted(make(z, reach, weight, None, EVERYTHING, norm=Secant(), demanded=demanded))
        assert size == Size(
            plain.continuous + more.continuous,
            plain.binaries + more.binaries,
            plain.rows + more.rows,
        )


def test_what_does_not_fit_together_is_refused():
    z, reach, weight, _, _ = sample(0, m=4)
    ones, members = np.ones(4), np.zeros(4, dtype=int)
    for wrong, said in (
        ({"limits": (0, 1)}, "give mass"),
        ({"mass": ones, "members": members}, "give within"),
        ({"mass": ones, "within": 0.1}, "give class_mass, or mass and members"),
        ({"members": members, "class_mass": ones[None], "within": 0.1}, "not both"),
    ):
        with pytest.raises(ValueError, match=said):
            Demanded(**wrong)
    for wrong, said in (
        ({"mass": ones, "limits": (0, 1), "agents": [0, 1]}, "agent 2 has mass"),
        ({"mass": ones, "limits": (0, math.inf)}, "finite"),
        ({"mass": ones[:3], "limits": (0, 1)}, "3 numbers for 4 agents"),
        ({"mass": ones, "members": members[:2], "within": 0.1}, "one per agent"),
        ({"mass": ones, "members": members, "within": -0.1}, "0 or more"),
        ({"class_mass": ones, "within": 0.1}, "a row for each class"),
        ({"rows": np.eye(2)}, "rows has shape"),
    ):
        with pytest.raises(ValueError, match=said):
            density_model(
                z, reach, weight, None, EVERYTHING, norm=Secant(), demanded=Demanded(**wrong)
            )


# -- rows of one's own -----------------------------------------------------------------------------


@pytest.mark.parametrize("make", MODELS)
def test_constraints_of_ones_own_are_respected(make):
    """On every documented variable, added to the model after it was built."""
    z, reach, weight, _, _ = sample(11, m=6, k=2, equal=False)
    facet = CubeFacet(0, 1)
    us = on_facet(facet, z, reach, np.array([[0.25, -1.0]]))
    demanded = Demanded(indicators=True)

    def build(**more):
        return make(
            z, reach, weight, None, EVERYTHING, norm=facet, widen=WIDEN, demanded=demanded, **more
        )

    plain = truth(make, z, reach, weight, us, demanded)
    assert solve(build()) == pytest.approx(plain, abs=1e-6)

    def one_of_two(_u, _b, passed):
        return bool(passed[0]) != bool(passed[1])

    def few(_u, _b, passed):
        return passed.sum() <= 2

    def turned(u, _b, _passed):
        return u[1] <= 0.25 * u[0]

    for rule, row in (
        (one_of_two, lambda m: m.accepted[0] + m.accepted[1] == 1),
        (few, lambda m: sum(m.accepted.values()) <= 2),
        (turned, lambda m: m.u[1] <= 0.25 * m.u[0]),
    ):
        model = build()
        model.own = pyo.Constraint(expr=row(model))
        best = truth(make, z, reach, weight, us, demanded, rule)
        assert solve(model) == pytest.approx(best, abs=1e-6)
        assert best < plain - 1e-3
    # b is another matter: the best threshold under a limit is no end, so the window must hold it.
    model = build(window=(-2.0, 2.0))
    model.own = pyo.Constraint(expr=model.b <= -0.2)
    found = solve(model)
    assert found is not None
    assert pyo.value(model.b) <= -0.2 + 1e-6
    assert found < plain - 1e-3
    # Nobody in the margin, also where somebody surely is; or nobody moves far.
    for sure in (np.full((1, 2), 0.0), np.array([[0.0, 0.01], [0.01, 0.0]])):
        m = len(sure)
        model = make(sure, np.ones(m), np.ones(m), None, EVERYTHING, norm=facet, demanded=demanded)
        assert solve(model) > m - 0.1
        model.own = pyo.Constraint(expr=sum(model.s.values()) <= 0)
        assert solve(model) == pytest.approx(0, abs=1e-6)
    model = build()
    model.own = pyo.Constraint(expr=sum(model.s.values()) <= 0)
    assert solve(model) == pytest.approx(0, abs=1e-6)
    if make is soft_density_model:
        model = build()
        model.own = pyo.Constraint(range(6), rule=lambda m, i: m.t[i] <= 0.1)
        assert 0 < solve(model) <= 0.1 + 1e-6
