"""Heuristic oracles: never above a proved bound, the same for the same seed, and good ones."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mipmech import Budget, InputError, Instance, make_instance
from mipmech.budget import Stop
from mipmech.model import reduce
from mipmech.model.population import Smoothed
from mipmech.oracles.heuristics import rounding
from mipmech.oracles.heuristics.anneal import Method, on_sphere
from mipmech.oracles.heuristics.ascent import smoothed_density
from mipmech.oracles.heuristics.explore import Explorer
from mipmech.oracles.heuristics.pca import least_spread
from mipmech.oracles.heuristics.ransac import Ransac, hypotheses
from mipmech.oracles.registry import REGISTRY, oracle_class, oracle_named
from mipmech.oracles.shared.recovery import _rows, augment
from mipmech.oracles.shared.slices import slice_at
from tests.samples import instances

HEURISTICS = [name for name in REGISTRY if getattr(oracle_class(name), "randomised", False)]
FAST = settings(max_examples=40)
# A short run of the optimiser owes what a long one owes, but for how near it comes to the optimum.
SHORT = {"anneal": {"evaluations": 500}}


def short(name, **options):
    return oracle_named(name, **SHORT.get(name, {}), **options)


def explorer(instance, share=0.6, seconds=math.inf):
    geometry = reduce(instance)
    part = slice_at(geometry, share * geometry.p_norm)
    return Explorer(part, Budget(seconds).start())


def test_all_six_are_there():
    assert HEURISTICS == ["random", "pca", "ransac", "ascent", "anneal", "rounding"]


@pytest.mark.parametrize("name", HEURISTICS)
class TestEach:
    @pytest.mark.slow
    @FAST
    @given(instance=instances(max_agents=8), share=st.sampled_from([-0.7, 0.0, 0.3, 0.8, 1.0]))
    def test_never_above_a_bound(self, name, instance, share):
        geometry = reduce(instance)
        eta = share * geometry.p_norm
        found = short(name, rounds=1)(geometry, eta, Budget(5.0))
        exact = oracle_named("cells")(geometry, eta, Budget(20.0))
        assert found.density <= exact.upper
        assert found.upper is None or found.stop is Stop.INFEASIBLE

    @pytest.mark.slow
    def test_the_seed_decides(self, name):
        geometry = reduce(make_instance("clustered-lines", 40, 5, seed=8))
        eta = 0.9 * geometry.p_norm

        def ask(seed):
            return short(name, seed=seed, rounds=2)(geometry, eta, Budget(60.0))

        first, again, other = ask(1), ask(1), ask(2)
        assert first.mechanism == again.mechanism
        assert first.work == again.work
        assert f"seed={1}" in first.oracle
        assert other.mechanism != first.mechanism or other.work != first.work

    @pytest.mark.slow
    def test_more_rounds_are_never_worse(self, name):
        geometry = reduce(make_instance("clustered-lines", 30, 5, seed=8))
        eta = 0.6 * geometry.p_norm
        few, many = (short(name, rounds=n)(geometry, eta, Budget(60.0)).density for n in (1, 3))
        assert few <= many

    @pytest.mark.slow
    def test_finds_the_optimum_where_that_is_easy(self, name):
        geometry = reduce(make_instance("gaussian-mixture", 30, 3, seed=2))
        for share in (0.3, 0.8):
            eta = share * geometry.p_norm
            best = oracle_named("cells")(geometry, eta, Budget(20.0))
            found = oracle_named(name)(geometry, eta, Budget(20.0))
            assert found.density >= best.density * 9 / 10

    @pytest.mark.slow
    def test_limits_are_kept(self, name):
        geometry = reduce(make_instance("uniform-ball", 60, 5, seed=1))
        eta = 0.5 * geometry.p_norm
        stopped = oracle_named(name, rounds=None)(geometry, eta, Budget(0.2))
        assert stopped.stop is Stop.TIME
        assert stopped.mechanism is not None
        counted = oracle_named(name, rounds=None)(geometry, eta, Budget(60.0, nodes=200))
        assert counted.stop is Stop.NODES
        assert counted.work["directions"] < 4000

    def test_endless_without_a_limit_is_refused(self, name):
        geometry = reduce(make_instance("uniform-ball", 20, 3, seed=1))
        with pytest.raises(InputError, match="never ends"):
            oracle_named(name, rounds=None)(geometry, 0.5 * geometry.p_norm, Budget())

    @pytest.mark.parametrize("bad", [{"seed": -1}, {"rounds": 0}])
    def test_options_are_checked(self, name, bad):
        with pytest.raises(InputError, match=next(iter(bad))):
            oracle_named(name, **bad)

    @pytest.mark.slow
    def test_trouble(self, name):
        """All agents at one point; two agents; duplicates; reach beyond everything."""
        ones = np.ones((6, 3))
        two = np.array([[0.0, 0.0, 0.0], [5.0, 5.0, 5.0]])
        line = np.outer(np.arange(7.0), [1.0, 2.0, 3.0])
        for agents, cost in ((ones, 1.0), (two, 1.0), (line, 1.0), (line, 1e-6), (line, 1e9)):
            sample = Instance.from_arrays(agents, [1.0, 2.0, 2.0], visible=[0, 1, 2], cost=cost)
            geometry = reduce(sample)
            found = short(name, rounds=2)(geometry, 0.5 * geometry.p_norm, Budget(20.0))
            assert found.density >= 1 / len(agents)
            if agents is ones or cost == 1e-6:
                assert found.density == 1


class TestDrawingAgentsIn:
    @pytest.mark.parametrize("seed", range(6))
    def test_who_is_inside_stays(self, seed):
        """To first order: a small step along the tangent plane keeps them, but for its bend."""
        asked = explorer(make_instance("costs", 60, 4, seed=seed), share=0.4)
        v = asked.directions(np.random.default_rng(seed), 1)[0]
        b = asked.goal.threshold(asked.part.scores(v[None, :])[0])
        step = 1e-4
        moved = augment(asked.part, v, b, step)
        assert np.linalg.norm(moved) == pytest.approx(1)
        before, after = asked.part.scores(np.vstack([v, moved]))
        inside = (before <= b) & (b <= before + asked.part.reach)
        # Some threshold has all of them still, if the margin is widened by the sphere's bend.
        ends = after[inside] + asked.part.reach[inside]
        assert after[inside].max() <= ends.min() + 20 * step**2

    def test_of_those_outside_more_come_in(self):
        drawn = []
        for seed in range(12):
            asked = explorer(make_instance("uniform-ball", 300, 4, seed=seed), share=0.4)
            v = asked.directions(np.random.default_rng(seed), 1)[0]
            b = asked.goal.threshold(asked.part.scores(v[None, :])[0])
            moved = augment(asked.part, v, b, 0.3)
            now, then = asked.goal.estimates(np.vstack([moved, v]))
            drawn.append(now - then)
        assert sum(drawn) > 0
        assert np.median(drawn) > 0

    def test_the_rows_are_those_of_the_dense_program(self):
        random = np.random.default_rng(1)
        stay, near = random.standard_normal((5, 3)), random.standard_normal((4, 3))
        dense = np.zeros((9, 3 + 8))
        dense[:5, :3], dense[5:, :3] = stay, near
        dense[5:, 3:7], dense[5:, 7:] = -np.eye(4), np.eye(4)
        assert (_rows(stay, near).toarray() == dense).all()


@pytest.mark.slow
def test_rounding_models_a_part_of_many_agents(monkeypatch):
    monkeypatch.setattr(rounding, "MOST_AGENTS", 100)
    geometry = reduce(make_instance("clustered-lines", 300, 3, seed=1))
    eta = 0.6 * geometry.p_norm
    one, again, other = (
        oracle_named("rounding", seed=seed, rounds=1)(geometry, eta, Budget(60.0))
        for seed in (1, 1, 2)
    )
    assert one.mechanism == again.mechanism != other.mechanism
    best = oracle_named("cells")(geometry, eta, Budget(60.0)).density
    assert min(one.density, other.density) > 0.9 * best


def test_a_seeded_direction_is_not_drawn_by_accident():
    """The needle of seed s must not be the first direction that a heuristic of seed s draws."""
    geometry = reduce(make_instance("needle", 1000, 4, seed=1))
    found = oracle_named("random", seed=1, rounds=10)(geometry, 0.6 * geometry.p_norm, Budget(60.0))
    assert found.density * 1000 < 14


class TestMinimalSets:
    @pytest.mark.parametrize("rank", [3, 4, 6])
    def test_agents_lie_on_the_faces(self, rank):
        sample = make_instance("costs", rank - 1, rank, seed=rank)
        asked = explorer(sample, share=0.3)
        v = hypotheses(asked, np.random.default_rng(0), np.arange(rank - 1), 200)
        assert np.linalg.norm(v, axis=1) == pytest.approx(1)
        ends = np.stack([asked.part.scores(v), asked.part.scores(v) + asked.goal.reach])
        # Some b is the score or the far end of every agent.
        apart = np.abs(ends[:, None, :, :, None] - ends[None, :, :, None, :]).min(axis=(0, 1))
        exact = apart.max(axis=(1, 2)) < 1e-9
        assert exact.mean() > 0.3  # the others' lines miss the sphere

    def test_the_stopping_rule(self):
        asked = explorer(make_instance("uniform-ball", 100, 3, seed=1))
        asked.best = 50.0
        share = 0.5**2
        assert Ransac(confidence=0.9).enough(asked) == pytest.approx(
            math.log(0.1) / math.log(1 - share)
        )
        asked.best = 100.0
        assert Ransac().enough(asked) == 1
        asked.best = 0.0
        assert Ransac().enough(asked) == math.inf

    @pytest.mark.parametrize("bad", [0.0, 1.0, math.nan])
    def test_confidence_is_checked(self, bad):
        with pytest.raises(InputError, match="confidence"):
            Ransac(confidence=bad)


@pytest.mark.parametrize("share", [0.0, 0.4, 0.95])
@pytest.mark.parametrize("family", ["uniform-ball", "costs", "ties"])
def test_least_spread_is_least(family, share):
    asked = explorer(make_instance(family, 60, 4, seed=2), share=share)
    part = asked.part
    random = np.random.default_rng(0)
    subsets = np.array([random.choice(len(part.reach), 20, replace=False) for _ in range(5)])
    v = least_spread(part, subsets)
    others = asked.directions(random, 5000)
    for subset, mine in zip(subsets, v, strict=True):
        weight = part.weight[subset] / part.weight[subset].sum()

        def variance(directions, subset=subset, weight=weight):
            scores = part.scores(directions)[:, subset]
            middle = scores @ weight
            return (scores**2) @ weight - middle**2

        assert variance(mine[None, :])[0] <= variance(others).min() + 1e-12


def test_the_smoothed_density_is_that_of_the_smoothed_sample_and_its_gradient_is_right():
    sample = make_instance("costs", 30, 4, seed=5)
    asked = explorer(sample, share=0.4)
    part = asked.part
    random = np.random.default_rng(1)
    v, b, sigma = asked.directions(random, 3), random.uniform(-0.3, 0.3, 3), 0.2
    value, along_v, along_b = smoothed_density(asked, v, b, sigma)
    from mipmech.model import from_reduced

    geometry = part.geometry
    population = Smoothed(sample, sigma * geometry.unit)
    for place in range(3):
        rule = from_reduced(geometry, part.direction(v[place]), b[place])
        assert value[place] == pytest.approx(population.density(rule), rel=1e-9)
    step = 1e-6
    assert along_b == pytest.approx(
        (smoothed_density(asked, v, b + step, sigma)[0] - value) / step, abs=1e-5
    )
    tangent = np.cross(v, asked.directions(random, 3))
    turned = v + step * tangent
    turned /= np.linalg.norm(turned, axis=1)[:, None]
    slope = (smoothed_density(asked, turned, b, sigma)[0] - value) / step
    assert (along_v * tangent).sum(axis=1) == pytest.approx(slope, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("method", get_args(Method))
def test_every_optimiser_of_scipy(method):
    geometry = reduce(make_instance("gaussian-mixture", 30, 4, seed=2))
    eta = 0.5 * geometry.p_norm
    best = oracle_named("cells")(geometry, eta, Budget(20.0)).density
    asked = oracle_named("anneal", method=method, evaluations=1500)
    found = asked(geometry, eta, Budget(30.0))
    assert found.stop is Stop.FINISHED
    assert best * 8 / 10 <= found.density <= best
    assert 100 < found.work["directions"] <= 1501


def test_unknown_optimisers_are_refused():
    with pytest.raises(InputError, match="method"):
        oracle_named("anneal", method="magic")
    with pytest.raises(InputError, match="evaluations"):
        oracle_named("anneal", evaluations=0)


def test_angles_cover_the_sphere():
    random = np.random.default_rng(0)
    for d in (2, 3, 6):
        v = random.standard_normal(d)
        v /= np.linalg.norm(v)
        angles = [math.atan2(np.linalg.norm(v[j + 1 :]), v[j]) for j in range(d - 2)]
        angles.append(math.atan2(v[-1], v[-2]))
        assert on_sphere(np.array(angles)) == pytest.approx(v)
