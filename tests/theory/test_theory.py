"""The paper's closed forms hold on samples, as far as they are really proved."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mipmech import InputError, Instance, Mechanism, ask, best_threshold, describe, recount, theory
from mipmech.model import Smoothed, densest_threshold, example1, from_reduced, reduce
from mipmech.oracles.base import infeasible
from tests import referee
from tests.samples import instances, mechanisms


@st.composite
def two_seen(draw):
    """An instance of which the planner sees one or two columns (the referee can solve those)."""
    instance = draw(instances(max_agents=7, kinds=("visible",)))
    assume(instance.view.rank <= 2)
    return instance


# ---------------------------------------------------------------- Theorem 1


@given(instances(), st.floats(0.1, 20), st.integers(0, 10**6))
def test_theorem1_no_linear_rule_does_better(instance, norm, seed):
    """For every shorter visible w and any number of steps, P w_f raises h(f) at least as much."""
    rule = theory.linear_rule(instance, norm, h=np.arctan, h_limit=math.pi / 2)
    assert rule.value >= rule.baseline - 1e-12
    rng = np.random.default_rng(seed)
    geometry = reduce(instance)
    quality = instance.agents @ instance.quality - instance.quality_offset
    for _ in range(3):
        u = rng.standard_normal(geometry.rank)
        other = np.array(from_reduced(geometry, u / np.linalg.norm(u), 0.0).weights) * norm
        for steps in (0.1, 10.0):
            best = np.arctan(quality + steps * (instance.quality @ rule.weights))
            assert (np.arctan(quality + steps * (instance.quality @ other)) <= best + 1e-9).all()


def test_theorem1_values():
    instance = Instance.from_arrays([[0.0, 1.0], [2.0, 0.0]], [3.0, 4.0], visible=[0], cost=[1, 3])
    with pytest.raises(InputError, match="limit of h"):
        theory.linear_rule(instance, 2.0, h=np.tanh)
    with pytest.raises(InputError, match="nondecreasing"):
        theory.linear_rule(instance, 2.0, h=lambda q: q * np.nan, h_limit=1.0)
    still = theory.linear_rule(instance, 0.5)
    assert still.value == still.baseline == 5.0
    assert theory.linear_rule(instance, 2.0).value == math.inf
    bounded = theory.linear_rule(instance, 2.0, h=lambda q: np.minimum(q, 10.0), h_limit=10.0)
    assert bounded.value == (10.0 + 6.0) / 2
    assert bounded.weights.tolist() == [2.0, 0.0]
    hidden = Instance.from_arrays([[0.0, 1.0]], [0.0, 1.0], visible=[0], cost=1.0)
    assert theory.linear_rule(hidden, 5.0).value == 1.0
    with pytest.raises(InputError, match="nondecreasing"):
        theory.linear_rule(instance, 2.0, h=np.negative, h_limit=0.0)


# ---------------------------------------------------------------- Theorem 2


@settings(max_examples=150)
@given(instances())
def test_theorem2_guarantees_hold(instance):
    """Against the ceiling, which is stronger than against the best gain; unequal costs included."""
    ceiling = theory.gain_ceiling(instance)
    every = theory.projection_rule(instance)
    if every is None:
        assert ceiling == 0
        return
    grid = theory.projection_rule(instance, "grid")
    assert 0 < grid.promised <= 1
    assert 0 < every.promised <= 1
    # A threshold is one float: at an offset of 1e8 it is known to 1e-8, and the gain to as much.
    rounding = 1e-15 * np.abs(instance.agents).max() * np.abs(instance.quality).max() * 8
    assert float(every.recount.gain) >= every.promised * ceiling - rounding
    assert float(grid.recount.gain) >= grid.promised * ceiling - rounding
    for rule in (every, grid):
        assert Fraction(rule.factor) * Fraction(ceiling) <= rule.recount.gain
    assert float(every.recount.gain) >= float(grid.recount.gain) - rounding


@given(two_seen())
def test_theorem2_against_the_true_optimum(instance):
    best = referee.best_gain(instance)
    assert best <= theory.gain_ceiling(instance) * (1 + 1e-9)
    rule = theory.projection_rule(instance)
    gain = 0.0 if rule is None else float(rule.recount.gain)
    rounding = (
        1e-9 * (1 + best) + 1e-14 * np.abs(instance.agents).max() * np.abs(instance.quality).max()
    )
    assert gain <= best + rounding
    if rule is not None:
        assert gain >= rule.factor * best - rounding


def test_theorem2_factors_for_equal_costs():
    """1/(4rc + 2) and 1/(2⌈4rc⌉ + 2) ≥ 1/(8rc + 4), r half the range of scores."""
    x = np.linspace(-3.0, 3.0, 31)[:, None]
    for cost in (0.05, 0.3, 1.0, 7.0):
        instance = Instance.from_arrays(x, [2.0], visible=[0], cost=cost)
        rc = 3.0 * cost
        every, grid = (theory.projection_rule(instance, kind) for kind in ("all", "grid"))
        assert every.promised == pytest.approx(1 / (4 * rc + 2))
        assert grid.tried - math.ceil(4 * rc - 1e-9) in (1, 2)  # 2: rounding may ask for one more
        assert grid.promised == pytest.approx(1 / (2 * grid.tried))
        assert grid.promised >= 1 / (8 * rc + 4) * (1 - 1e-9)


def test_claims_hold_even_where_floats_cannot_write_the_threshold():
    """At 1e16 with a reach of 1 no float threshold moves the agent; then nothing is claimed."""
    lost = Instance.from_arrays([[1e16]], [1.0], visible=[0], cost=1.0)
    for kind in ("all", "grid"):
        rule = theory.projection_rule(lost, kind)
        assert Fraction(rule.factor) * Fraction(theory.gain_ceiling(lost)) <= rule.recount.gain


def test_one_agent_far_away_costs_the_others_nothing():
    """Of weight 0, or of weight 1: the bulk of the sample keeps its digits."""
    x = np.random.default_rng(0).standard_normal((2000, 1))
    plain = Instance.from_arrays(x, [1.0], visible=[0], cost=1.0)
    best = float(theory.projection_rule(plain).recount.gain)
    for weight in (0.0, 1.0):
        far = Instance.from_arrays(
            np.vstack([x, [[1e16]]]), [1.0], visible=[0], cost=1.0,
            weights=np.append(np.ones(2000), weight),
        )  # fmt: skip
        rule = theory.projection_rule(far)
        assert float(rule.recount.gain) == pytest.approx(best, rel=1e-3)
        assert rule.factor >= rule.promised


def test_a_fine_grid_over_a_wide_range_is_no_trouble():
    """Two hundred million thresholds, of which only those next to somebody's end can be best."""
    instance = Instance.from_arrays([[0.0], [0.3], [1e8]], [1.0], visible=[0], cost=1.0)
    rule = theory.projection_rule(instance, "grid")
    assert rule.tried > 2 * 10**8
    assert rule.gain >= Fraction(1, 3)


@given(instances(max_agents=6, kinds=("visible",)))
def test_the_grid_rule_is_the_best_of_its_grid(instance):
    rule = theory.projection_rule(instance, "grid")
    assume(rule is not None and rule.tried < 300 and np.abs(instance.agents).max() < 1e6)
    geometry = reduce(instance)
    counts = instance.weights > 0
    scores = instance.agents[counts] @ np.array(rule.mechanism.weights)
    step = float(instance.reach[counts].min()) / 2
    grid = scores.min() + step * np.arange(1, rule.tried + 1)
    best = max(recount(instance, rule.mechanism.at(float(b))).gain for b in grid)
    size = 1 + np.abs(scores).max() + float(instance.reach.max())
    assert float(rule.gain) >= float(best) - 1e-12 * size * geometry.p_norm


def test_the_ceiling_holds_for_many_agents():
    """A float sum of a million terms would fall short of it."""
    for cost in (0.3, 3.0):
        many = Instance.from_arrays(np.zeros((300_000, 1)), [1.0], visible=[0], cost=cost)
        top = recount(many, Mechanism((cost,), 1.0))
        assert top.density == 1
        assert top.gain <= Fraction(theory.gain_ceiling(many))
    costs = np.random.default_rng(1).random(1000) + 0.1
    mixed = Instance.from_arrays(np.zeros((1000, 1)), [1.0], visible=[0], cost=costs)
    exact = sum(1 / Fraction(float(c)) for c in costs) / 1000
    assert exact <= Fraction(theory.gain_ceiling(mixed)) <= exact * (1 + Fraction(1, 10**14))


def test_theorem2_needs_a_visible_quality():
    instance = Instance.from_arrays([[1.0, 2.0]], [0.0, 1.0], visible=[0], cost=1.0)
    assert theory.projection_rule(instance) is None
    assert theory.gain_ceiling(instance) == 0


def test_agents_without_weight_do_not_count():
    x = [[0.0], [0.1], [1e6]]
    with_ghost = Instance.from_arrays(x, [1.0], visible=[0], cost=[1, 1, 1e-6], weights=[1, 1, 0])
    without = Instance.from_arrays(x[:2], [1.0], visible=[0], cost=1.0)
    a, b = theory.projection_rule(with_ghost), theory.projection_rule(without)
    assert a.recount.gain == b.recount.gain
    assert a.factor == pytest.approx(b.factor)
    assert a.promised == pytest.approx(b.promised)
    assert theory.gain_ceiling(with_ghost) == theory.gain_ceiling(without)


# ---------------------------------------------------------------- Example 1


@pytest.mark.parametrize("m", [1, 2, 7, 100, 1001])
@pytest.mark.parametrize(("radius", "reach"), [(1.0, 0.25), (2.0, 2.0), (8.0, 0.125)])
def test_example1(m, radius, reach):
    """ℓ/√3 exactly for x₂ ≥ ℓ; ℓ²/(2r√3) within O(1/m) along P w_f; for ℓ ≤ r."""
    instance = example1(m, radius, 1 / reach)
    root = instance.quality[1]
    everybody = recount(instance, Mechanism((0.0, 1.0, 0.0), reach))
    assert everybody.density == 1
    assert everybody.gain == Fraction(reach) * Fraction(float(root))
    along = theory.projection_rule(instance)
    assert abs(float(along.recount.gain) - reach**2 / (2 * radius * math.sqrt(3))) <= 2 * reach / m


# ------------------------------------------------------- Lemma 2, Lemma 4


@given(st.integers(2, 6), st.floats(0, 0.6), st.integers(0, 10**6))
def test_lemma2(dimension, epsilon, seed):
    rng = np.random.default_rng(seed)
    w1, w2 = rng.standard_normal((2, dimension))
    w1, w2 = w1 / np.linalg.norm(w1), w2 / np.linalg.norm(w2)
    assume(w1 @ w2 <= 1 - 2 * epsilon)
    assume(np.linalg.norm(w1 + w2) > 1e-6)
    w = theory.rotate(w1, w2, epsilon)
    assert np.linalg.norm(w) == pytest.approx(1)
    assert w @ w2 == pytest.approx(w1 @ w2 + epsilon, abs=1e-12)
    assert w @ w1 >= 1 - epsilon - 1e-12
    assert np.linalg.matrix_rank(np.array([w, w1, w2]), tol=1e-9) <= 2


def test_lemma2_refuses_what_it_cannot_do():
    with pytest.raises(InputError, match="1 − 2ε"):
        theory.rotate([1.0, 0.0], [1.0, 0.0], 0.1)
    with pytest.raises(InputError, match="no plane"):
        theory.rotate([1.0, 0.0], [-1.0, 0.0], 0.1)
    with pytest.raises(InputError, match="unit vector"):
        theory.rotate([2.0, 0.0], [0.0, 1.0], 0.1)
    with pytest.raises(InputError, match="Lemma 2 needs"):
        theory.rotate([1.0, 0.0], [0.0, 1.0], math.nan)


def test_lemma2_for_nearly_opposite_vectors():
    for angle in (1e-3, 1e-8, 1e-11):
        w1 = [-math.cos(angle), math.sin(angle)]
        w = theory.rotate(w1, [1.0, 0.0], 0.3)
        assert np.linalg.norm(w) == pytest.approx(1, abs=1e-15)
        assert w[0] == pytest.approx(-math.cos(angle) + 0.3, abs=1e-15)


@st.composite
def graded(draw):
    instance = draw(instances(kinds=("visible",)))
    return instance, draw(mechanisms(instance))


@given(graded())
def test_lemma4(case):
    instance, mechanism = case
    better, statement = theory.quarter(instance, mechanism)
    # The shifted threshold is a float: it may lose its last digits, and agents at the very end.
    size = np.abs(instance.agents).max() * np.abs(mechanism.weights).max()
    assume(size < 1e6)
    assert statement.larger >= statement.smaller - 1e-12 * (1 + size)
    assert better.mechanism.weights == mechanism.weights


# --------------------------------------------- the Lipschitz fact and the grids


@given(instances(kinds=("visible",)), st.integers(0, 10**6), st.floats(0, 1))
def test_best_soft_density_is_lipschitz_on_every_sample(instance, seed, turn):
    geometry = reduce(instance)
    rng = np.random.default_rng(seed)
    u = rng.standard_normal(geometry.rank)
    u /= np.linalg.norm(u)
    v = u + turn * rng.standard_normal(geometry.rank)
    v /= np.linalg.norm(v)
    angle = 2 * math.asin(min(1.0, np.linalg.norm(u - v) / 2))
    loss = theory.soft_density_loss(geometry.radius * geometry.unit, angle)
    a, b = (best_threshold(instance, from_reduced(geometry, w, 0.0)).soft_density for w in (u, v))
    assert b >= a - loss - 1e-12 * (1 + np.abs(instance.agents).max())


def directions_at(geometry, eta):
    """The one or two unit vectors with u·p = η in the plane (or on the line)."""
    p = geometry.p / geometry.p_norm
    cosine = min(1.0, eta / geometry.p_norm)
    if geometry.rank == 1:
        return [p]
    across = np.array([-p[1], p[0]]) * math.sqrt(1 - cosine**2)
    return [cosine * p + across, cosine * p - across]


@settings(max_examples=60)
@given(two_seen(), st.sampled_from([0.05, 0.3]))
def test_the_angular_grid_gives_opt_minus_epsilon_with_a_soft_oracle(instance, share):
    geometry = reduce(instance)
    assume(geometry.p_norm > 0)
    best = referee.best_gain(instance)
    assume(best > 0)
    epsilon = share * best
    grid = theory.angular_grid(geometry, epsilon, soft=True)
    assume(len(grid) < 2000)
    assert grid.additive <= epsilon * (1 + 1e-9)
    found = max(
        float(best_threshold(instance, from_reduced(geometry, u, 0.0)).gain)
        for eta in grid.etas
        for u in directions_at(geometry, eta)
    )
    rounding = 1e-14 * np.abs(instance.agents).max() * np.abs(instance.quality).max()
    assert found >= best - epsilon - 1e-9 * best - rounding


@pytest.mark.slow
@settings(max_examples=60)
@given(two_seen(), st.sampled_from([0.05, 0.3]))
def test_the_angular_grid_gives_a_quarter_with_a_density_oracle(instance, share):
    """Lemma 4's two thresholds at each η's densest direction; the factor for unequal costs."""
    geometry = reduce(instance)
    assume(geometry.p_norm > 0)
    best = referee.best_gain(instance)
    assume(best > 0)
    grid = theory.angular_grid(geometry, share * best)
    assume(len(grid) < 500)
    found = 0.0
    for eta in grid.etas:
        options = [
            densest_threshold(instance, from_reduced(geometry, u, 0.0)).recount
            for u in directions_at(geometry, eta)
        ]
        densest = max(options, key=lambda r: r.density)
        found = max(found, float(theory.quarter(instance, densest.mechanism)[0].gain))
    rounding = 1e-14 * np.abs(instance.agents).max() * np.abs(instance.quality).max()
    assert found >= grid.factor * best - grid.additive - 1e-9 * best - rounding


def test_grid_sizes():
    """9 calls (8, since η = 0 need not be asked) against the paper's 10,001."""
    square = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
    geometry = reduce(Instance.from_arrays(square, [0.0, 1.0], visible=[0, 1], cost=1.0))
    assert geometry.radius * geometry.unit == geometry.p_norm == 1
    assert len(theory.angular_grid(geometry, 0.1)) == math.ceil(math.pi / 0.4) == 8
    assert len(theory.paper_etas(1.0, 0.1, 1.0, 1.0)) == 10_001
    etas = theory.paper_etas(0.7, 0.5, 0.3, 1.0)
    assert etas[0] == 0
    assert etas[-1] == 0.7
    assert (np.diff(etas) > 0).all()


def test_grids_of_the_odd_cases():
    one = reduce(Instance.from_arrays([[1.0], [2.0]], [1.0], visible=[0], cost=1.0))
    assert theory.angular_grid(one, 0.1).etas.tolist() == [1.0]
    same = reduce(Instance.from_arrays([[1.0, 2.0]] * 3, [3.0, 4.0], visible=[0, 1], cost=1.0))
    assert theory.angular_grid(same, 0.1).etas.tolist() == [5.0]
    hidden = reduce(Instance.from_arrays([[1.0, 2.0]], [0.0, 1.0], visible=[0], cost=1.0))
    assert theory.angular_grid(hidden, 0.1).etas.tolist() == [0.0]
    assert not infeasible(hidden, 0.0)
    with pytest.raises(InputError):
        theory.angular_grid(one, 0.0)
    with pytest.raises(InputError, match="choose a larger one"):
        theory.paper_etas(1.0, 1e-3, 1.0, 1.0)
    wide = reduce(Instance.from_arrays(np.eye(2) * 1e90, [1.0, 1.0], visible=[0, 1], cost=1.0))
    for call in (
        lambda: theory.angular_grid(wide, 1e-3),
        lambda: theory.paper_etas(1.0, 1e-90, 1.0, 1.0),
    ):
        with pytest.raises(InputError, match="choose a larger one"):
            call()
    assert theory.paper_etas(1.0, 0.5, 1e100, 1.0).shape == (17,)
    assert theory.paper_etas(1.0, 7.0, 1.0, 1.0).tolist() == [0.0, 1.0]


# ------------------------------------------------------------- smoothing


@settings(max_examples=60)
@given(instances(kinds=("visible",)), st.floats(0.05, 3), st.integers(0, 10**6))
def test_lemma3_sharper(instance, sigma, seed):
    """|SDen(w1,b1) − SDen(w2,b2)| ≤ L(|b1 − b2| + 2r sin(θ/2)) for equal costs."""
    instance = Instance.from_arrays(
        instance.agents - instance.agents.mean(axis=0),
        instance.quality,
        visible=list(instance.view.columns),
        cost=float(instance.cost[0]),
    )
    smooth = Smoothed(instance, sigma)
    rng = np.random.default_rng(seed)
    w = np.zeros((2, instance.width))
    w[:, list(instance.view.columns)] = rng.standard_normal((2, instance.view.rank))
    w[1] = w[0] + 0.3 * w[1]
    w /= np.linalg.norm(w, axis=1)[:, None]
    b = rng.standard_normal(2)
    statement = theory.lemma3(
        smooth, *(Mechanism(tuple(w[i].tolist()), float(b[i])) for i in (0, 1))
    )
    assert statement.larger >= statement.smaller - 1e-9


def test_lemma3_is_for_equal_costs():
    base = Instance.from_arrays([[0.0], [1.0]], [1.0], visible=[0], cost=[1.0, 2.0])
    with pytest.raises(InputError, match="equal costs"):
        theory.lemma3(Smoothed(base, 1.0), Mechanism((1.0,), 0.0), Mechanism((1.0,), 1.0))


def test_lemma3_constant_is_attained():
    """For one centre exactly at reach and small σ the slope is −ℓ/(σ√2π) + ½, nearly."""
    sigma, reach = 0.01, 1.0
    one = Instance.from_arrays([[0.0]], [1.0], visible=[0], cost=1 / reach)
    smooth = Smoothed(one, sigma)
    step = 1e-6
    slope = (
        smooth.soft_density(Mechanism((1.0,), reach + step))
        - smooth.soft_density(Mechanism((1.0,), reach - step))
    ) / (2 * step)
    constant = theory.lipschitz_constant(sigma, reach)
    assert 0.98 * constant <= -slope <= constant


def test_lemma6_and_lemma8():
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((20, 3))
    centres /= np.maximum(1, np.linalg.norm(centres, axis=1))[:, None]
    base = Instance.from_arrays(centres, [1.0, 0.0, 0.0], visible=[0, 1, 2], cost=2.0)
    for sigma in (0.1, 1.0):
        smooth = Smoothed(base, sigma)
        for _ in range(50):
            w = rng.standard_normal(3)
            rule = Mechanism(tuple((w / np.linalg.norm(w)).tolist()), float(rng.standard_normal()))
            assert smooth.density(rule) <= theory.band_mass(sigma, 0.5)  # a slab of width ℓ

        def density_at(x, sigma=sigma):
            gaps = ((x - centres) ** 2).sum(axis=1) / (2 * sigma**2)
            return np.exp(-gaps).mean()

        for _ in range(200):
            x, y = rng.standard_normal((2, 3))
            y = x + 0.1 * sigma * y
            bound = theory.density_ratio(
                sigma, 1.0, *(float(np.linalg.norm(v)) for v in (x - y, x, y))
            )
            assert density_at(x) <= density_at(y) * bound * (1 + 1e-9)


# -------------------------------------------------------------- learning


def test_sample_sizes():
    assert theory.pollard_sample_size(0.1, math.exp(-1), 2.0, 3.0, constant=1.0) == 1600
    ones = {"constant": 1.0, "dimension_constant": 1.0}
    assert theory.sample_size(0.1, math.exp(-1), 3, cost=0.5, **ones) == 1600
    assert theory.sample_size(0.1, math.exp(-1), 3, cost=0.5, quality_norm=2.0, **ones) == 6400
    assert theory.sample_size(0.1, math.exp(-1), 3, 0.5, constant=2.0, dimension_constant=1) == 3200
    with pytest.raises(InputError, match="delta"):
        theory.sample_size(0.1, 1.5, 3, cost=1.0, **ones)


def test_uniform_deviation_shrinks_and_is_never_trivial_nonsense():
    sizes = [10, 10**4, 10**6, 10**8]
    bounds = [theory.uniform_deviation(m, 3, 2.0, 0.05) for m in sizes]
    assert bounds[0] == 2.0  # a gain in [0, 2] is never farther off than that
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] < 0.01
    assert theory.uniform_deviation(10**4, 3, 2.0, 0.05, equal_costs=False) >= bounds[1]


def test_the_population_is_within_the_uniform_deviation():
    """The sample's best rules, on the population that they were drawn from."""
    base = Instance.from_arrays(np.eye(3), [1.0, 1.0, 0.0], visible=[0, 1], cost=2.0)
    smooth = Smoothed(base, 0.3)
    largest = math.sqrt(2) / 2
    for seed in range(5):
        sample = smooth.sample(20_000, seed)
        rule = theory.projection_rule(sample).recount
        off = abs(float(rule.gain) - smooth.gain(rule.mechanism))
        assert off <= theory.uniform_deviation(20_000, 2, largest, 0.01)


@pytest.mark.parametrize("method", ["hoeffding", "bernstein"])
def test_held_out_bounds_cover(method):
    """At δ = 0.1 the bound fails in at most 10 % of 400 samples, and is not vacuous on average."""
    base = Instance.from_arrays([[0.0], [1.0], [3.0]], [1.0], visible=[0], cost=1.0)
    smooth = Smoothed(base, 0.2)
    rule = Mechanism((1.0,), 1.1)
    truth = smooth.gain(rule)
    bounds = [
        theory.held_out_bound(smooth.sample(300, seed), rule, 0.1, method) for seed in range(400)
    ]
    failures = sum(b.lower > truth for b in bounds)
    assert failures <= 40
    assert np.mean([b.lower for b in bounds]) > 0.5 * truth
    assert np.mean([b.mean for b in bounds]) == pytest.approx(truth, rel=0.02)


def test_bernstein_wins_where_few_move():
    x = np.full((20_000, 1), -50.0)
    x[:400, 0] = 0.0
    sample = Instance.from_arrays(x, [1.0], visible=[0], cost=1.0)
    rule = Mechanism((1.0,), 1.0)
    hoeffding, bernstein = (
        theory.held_out_bound(sample, rule, method=m) for m in ("hoeffding", "bernstein")
    )
    assert hoeffding.mean == bernstein.mean == pytest.approx(0.02)
    assert 0 < hoeffding.lower < bernstein.lower < 0.02


def test_held_out_bounds_refuse_what_they_do_not_cover():
    weighted = Instance.from_arrays([[0.0], [1.0]], [1.0], visible=[0], cost=1.0, weights=[1, 2])
    costly = Instance.from_arrays([[0.0], [1.0]], [1.0], visible=[0], cost=[1.0, 2.0])
    rule = Mechanism((1.0,), 1.0)
    with pytest.raises(InputError, match="weights"):
        theory.held_out_bound(weighted, rule)
    with pytest.raises(InputError, match="largest_reach"):
        theory.held_out_bound(costly, rule)
    with pytest.raises(InputError, match="largest_reach"):
        theory.held_out_bound(costly, rule, largest_reach=0.5)
    assert theory.held_out_bound(costly, rule, largest_reach=2.0).lower == 0
    with pytest.raises(InputError, match="largest_reach"):
        theory.held_out_bound(costly, rule, largest_reach=math.nan)
    with pytest.raises(InputError, match="method"):
        theory.held_out_bound(costly, rule, method="hoefding", largest_reach=2.0)


def test_results_can_be_written_as_json():
    instance = example1(6)
    geometry = reduce(instance)
    rule = theory.projection_rule(instance)
    results = [
        rule,
        rule.recount,
        densest_threshold(instance, rule.mechanism),
        theory.linear_rule(instance, 9.0),
        theory.angular_grid(instance, 0.1),
        theory.held_out_bound(instance, rule.mechanism),
        theory.quarter(instance, rule.mechanism)[1],
        describe(instance),
        ask(geometry, geometry.p_norm),
    ]
    for result in results:
        assert json.loads(json.dumps(result.to_dict(), allow_nan=False))
        assert len(repr(result)) < 600


def test_other_arguments_are_checked():
    for call in (
        lambda: theory.tail_radius(3, 1.0, 1.0, 1.5),
        lambda: theory.tail_radius(3, 1.0, 1.0, 0.0),
        lambda: theory.uniform_deviation(0, 2, 1.0, 0.1),
        lambda: theory.pollard_sample_size(1e-200, 0.1, 1.0, 2, constant=1.0),
        lambda: theory.lipschitz_constant(-1.0, 1.0),
        lambda: theory.projection_rule(example1(5), "grdi"),
    ):
        with pytest.raises(InputError):
            call()
    assert theory.density_ratio(1e-3, 1.0, 1.0, 1.0, 1.0) == math.inf


# --------------------------------------------------------- Proposition 1


@given(st.integers(1, 12), st.integers(0, 10**6), st.floats(0.1, 5))
def test_proposition1_for_binary_quality(size, seed, cost):
    rng = np.random.default_rng(seed)
    world = theory.FiniteWorld(rng.random((size, 2)), rng.dirichlet(np.ones(size)), cost)
    f = (rng.random(size) < 0.4).astype(float)
    for g in (rng.random(size), (rng.random(size) < 0.5).astype(float), 1 - f, np.zeros(size)):
        assert theory.proposition1(world, f, g)


def test_proposition1_counterexample_for_other_quality():
    """f = 0.1·1[x ≥ 0]: g = f moves a tenth, g = 1[x ≥ 0] everybody."""
    world, f, g = theory.counterexample()
    statement = theory.proposition1(world, f, g)
    assert not statement
    assert statement.larger == pytest.approx(0.1 * 0.55, abs=1e-3)
    assert statement.smaller == pytest.approx(0.1)
    assert "fails" in str(statement)
