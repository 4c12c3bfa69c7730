"""The engine milp for Euclidean costs: it agrees with cells, whose bounds it does not share.

The cells engine's bounds are verified by the independent checker, so they are the truth here.
"""

from __future__ import annotations

import signal
from fractions import Fraction

import numpy as np
import pytest

from mipmech import Budget, Instance, certify, make_instance
from mipmech.budget import Stop
from mipmech.checker import check
from mipmech.design.gain_cover import GainCover
from mipmech.model import best_threshold, from_reduced, reduce
from mipmech.oracles.shared.cones import ConeSet, cover, halves, ranges
from mipmech.oracles.shared.goals import Gain
from mipmech.oracles.shared.tangents import gain_together
from tests.conftest import seeds

GAP = 1e-3
LOT = 12


def random_sample(seed, most_agents=30, most_rank=4):
    """Ties and duplicates, weights (also 0), a reach each over a decade, views, prices."""
    random = np.random.default_rng([seed, 41])
    k = int(random.integers(1, most_rank + 1))
    m = int(random.integers(1, most_agents + 1))
    n = k + int(random.integers(0, 3))
    x = random.standard_normal((m, n))
    quality = random.standard_normal(n)
    if random.random() < 0.4:
        x = np.round(x * 2) / 2
        quality = np.round(quality * 2) / 2
        quality[0] = quality[0] or 1.0
    x = x * 10.0 ** random.integers(-3, 4) + random.choice([0.0, 0.0, 1e4])
    spread = float(np.abs(x - x.mean(axis=0)).max()) or 1.0
    reach = spread * 10.0 ** random.uniform(-1.2, 0.3, m)
    given = {"reach": float(reach[0]) if random.random() < 0.5 else reach}
    given["weights"] = random.integers(0, 4, m) + (np.arange(m) == 0)
    if random.random() < 0.3:
        given["view"] = random.standard_normal((k, n))
    else:
        given["visible"] = list(range(k))
        if random.random() < 0.3:
            given["effort"] = 10.0 ** random.uniform(-1, 1, n)
    return Instance.from_arrays(x, quality, **given)


def covered_by(instance, counting, seconds=30.0, gap=GAP):
    found = GainCover(reduce(instance), gap, Budget(seconds).start(), counting)
    return found, found.run()


def agrees(found, truth):
    """Intervals that both hold meet, to within the solver's tolerances."""
    room = 1 + Fraction(1, 10**7)
    return found.lower <= Fraction(truth.upper) * room and truth.lower <= found.upper * room


@pytest.mark.slow
@pytest.mark.parametrize("lot", seeds(3, 40))
def test_both_engines_agree(lot):
    for seed in range(lot * LOT, (lot + 1) * LOT):
        instance = random_sample(seed)
        truth = certify(instance, gap=GAP, budget=Budget(60.0))
        found = certify(instance, gap=GAP, engine="milp", budget=Budget(60.0))
        assert (found.status, found.level) == ("optimal", "attested"), (seed, found)
        assert agrees(found_as(found), truth), (seed, found, truth)
        verdict = check(found.content(), instance)
        assert verdict, (seed, verdict)
        assert verdict.level == "attested"


def found_as(found):
    """A certificate, with its upper bound as a rational."""

    class Bounds:
        lower, upper = found.lower, Fraction(found.upper)

    return Bounds


@pytest.mark.slow
@pytest.mark.parametrize("lot", seeds(3, 40))
@pytest.mark.parametrize("counting", [0, 200])
def test_highs_alone_agrees(lot, counting):
    """Without counting, HiGHS closes what is closed: false bounds of the models would show."""
    models = 0
    for seed in range(lot * LOT, (lot + 1) * LOT):
        instance = random_sample(1000 + seed, most_agents=9, most_rank=3)
        truth = certify(instance, gap=1e-5, budget=Budget(60.0))
        found, stop = covered_by(instance, counting)
        assert agrees(found, truth), (seed, found.lower, found.upper, truth)
        if stop is Stop.FINISHED and truth.lower > 0:
            assert found.lower >= found.upper * (1 - Fraction(11, 10**4)), seed
        models += found.search.models
    if counting == 0:
        assert models > 0


@pytest.mark.parametrize("seed", range(12))
def test_bounds_of_cones_hold(seed):
    """Random directions, in the cones of a random descent, gain no more than either bound."""
    random = np.random.default_rng([seed, 42])
    instance = random_sample(2000 + seed)
    geometry = reduce(instance)
    if geometry.p_norm == 0:
        return
    goal = Gain.on(geometry, GAP, together=False)
    part = goal.part
    doubt = goal.doubt + float(part.weight @ part.slack)
    cones = cover(part)
    for _ in range(12):
        where = ranges(part, cones)
        bounds = goal.bounds(where, 0.0)
        small = (where.sine < 1) & (where.centre @ goal.p > 1e-3)
        reach = part.reach * (1 + 1e-15)
        bounds[small] = np.minimum(
            bounds[small],
            gain_together(where[small], part.across, reach, part.weight, goal.p, doubt),
        )
        least, most = goal.rates(where)
        for place in range(len(cones)):
            x = random.uniform(cones.lower[place], cones.upper[place])
            u = x / np.linalg.norm(x)
            exact = best_threshold(instance, from_reduced(geometry, u, 0.0))
            assert goal.value(exact) <= bounds[place] * (1 + 1e-12)
            assert least[place] <= u @ goal.p <= most[place]
        if part.points is not None:
            return
        cones = halves(cones)
        cones = cones[random.permutation(len(cones))[:6]]


def test_both_kinds_of_bounds():
    """Adding rate and distances before they are bounded gives better bounds in small cones."""
    geometry = reduce(make_instance("uniform-ball", 40, 3, seed=2))
    plain, together = (Gain.on(geometry, GAP, flag) for flag in (False, True))
    v = np.array([1.0, 0.6, 0.3]) if plain.p[0] > 0 else np.array([-1.0, 0.6, 0.3])
    half = np.array([0.0, 0.005, 0.005])
    where = ranges(plain.part, ConeSet((v - half)[None], (v + half)[None], np.ones(1)))
    if where.centre[0] @ plain.p <= 0:
        where = ranges(plain.part, ConeSet((-v - half)[None], (half - v)[None], np.ones(1)))
    most = plain.bounds(where, 0.0)[0]
    floor = most / 1.2
    assert plain.bounds(where, floor)[0] == most
    assert together.bounds(where, floor)[0] < most


@pytest.mark.slow
def test_time_limits_keep_valid_bounds():
    instance = make_instance("gaussian-mixture", 60, 6, seed=1)
    truth = certify(instance, gap=0.02, budget=Budget(60.0))
    for seconds in (0.0, 0.05, 0.5):
        found = certify(instance, engine="milp", gap=1e-5, budget=Budget(seconds))
        assert found.stop is Stop.TIME
        assert found.lower <= Fraction(truth.upper)
        assert truth.lower <= Fraction(found.upper)
        assert check(found.content(), instance)


@pytest.mark.parametrize("counting", [0, 10**6])
def test_an_interrupt_keeps_valid_bounds(counting):
    instance = make_instance("gaussian-mixture", 60, 6, seed=1)
    told = []

    def interrupt(event):
        if not told and event.lower > 0:
            told.append(event)
            signal.raise_signal(signal.SIGINT)

    timer = Budget(60.0, watch=interrupt).start()
    with timer.listening():
        found = GainCover(reduce(instance), 1e-5, timer, counting)
        assert found.run() is Stop.TIME
    assert timer.interrupted
    truth = certify(instance, gap=0.05, budget=Budget(60.0))
    assert agrees(found, truth)


def test_nodes_are_limited():
    """A budget of nodes of the solver: it stops, and says so."""
    instance = make_instance("gaussian-mixture", 20, 4, seed=3)
    timer = Budget(60.0, nodes=5).start()
    found = GainCover(reduce(instance), GAP, timer, counting=0)
    assert found.run() is Stop.NODES
    assert agrees(found, certify(instance))


def test_the_certificate_tells_what_was_counted_and_solved():
    instance = make_instance("uniform-ball", 25, 3, seed=4)
    found = certify(instance, engine="milp")
    assert found.status == "optimal"
    assert found.proof["cones_counted"] == found.work["cones"] > 0
    assert found.proof["models_solved"] == found.work["models"]
    assert found.proof["solver"].startswith("HiGHS ")
    (region,) = found.proof["regions"]
    assert region["eta"][0] == 0
    assert region["at_most"] >= found.upper


def test_one_agent_and_one_dimension():
    alone = Instance.from_arrays([[0.0]], [2.0], visible=[0], reach=0.5)
    found = certify(alone, engine="milp")
    assert (float(found.lower), found.status) == (pytest.approx(1.0, rel=1e-6), "optimal")
    away = Instance.from_arrays([[0.0, 1.0], [5.0, 2.0]], [-1.0, 0.0], visible=[0], reach=0.5)
    found = certify(away, engine="milp")
    assert (float(found.lower), found.status) == (pytest.approx(0.25, rel=1e-6), "optimal")
