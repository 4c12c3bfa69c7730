"""The best threshold for a direction equals brute force over all thresholds."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mipmech import Instance, Mechanism, best_threshold, make_instance, recount
from mipmech.model import densest_threshold, example1
from mipmech.model.grading import ExactDirection
from tests import referee
from tests.samples import instances, mechanisms


@st.composite
def directions(draw, **options):
    instance = draw(instances(**options))
    return instance, draw(mechanisms(instance))


def as_decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def rounding(instance, mechanism) -> float:
    """What one float threshold more or less costs: a few units in its last place."""
    weights = np.abs(np.array(mechanism.weights))
    scale = float((np.abs(instance.agents) @ weights).max())
    scale += float(np.linalg.norm(weights) / instance.cost.min())
    return 1e-14 * scale


@given(directions())
def test_best_threshold_equals_brute_force(case):
    instance, mechanism = case
    found = best_threshold(instance, mechanism)
    best = referee.best_soft_density(instance, referee.exact_weights(instance, mechanism))
    achieved = as_decimal(found.moved / found.line.factor)
    assert achieved <= best + Decimal(10) ** -60
    assert float(best - achieved) <= rounding(instance, mechanism)
    again = recount(instance, found.mechanism)
    assert (again.gain, again.density) == (found.gain, found.density)


@given(directions())
def test_densest_threshold_equals_brute_force(case):
    """Lower ≤ truth ≤ upper always; both equal the truth unless it sits on a single real number."""
    instance, mechanism = case
    found = densest_threshold(instance, mechanism)
    exact = referee.exact_weights(instance, mechanism)
    best = referee.best_density(instance, exact)
    assert found.recount.density <= best <= found.upper
    assert recount(instance, found.recount.mechanism).density == found.recount.density
    if referee.best_density(instance, exact, room=Fraction(1, 10**6)) == best:
        assert found.recount.density == best


@given(directions(), st.integers(0, 10**6))
def test_no_float_threshold_is_denser_than_the_bound(case, seed):
    instance, mechanism = case
    found = densest_threshold(instance, mechanism)
    rng = np.random.default_rng(seed)
    scores = instance.agents @ np.array(mechanism.weights)
    reach = np.linalg.norm(mechanism.weights) / instance.cost
    for b in rng.uniform(scores.min() - 0.1, (scores + reach).max() + 0.1, 20):
        assert recount(instance, mechanism.at(float(b))).density <= found.upper


def test_an_agent_at_the_end_of_its_reach_is_kept():
    """The float 0 + 0.1 lies beyond 1/10; the threshold must step inward to keep the agent."""
    instance = Instance.from_arrays([[0.0]], [1.0], visible=[0], cost=10.0)
    found = best_threshold(instance, Mechanism((1.0,), 0.0))
    assert found.density == 1
    assert found.mechanism.threshold == np.nextafter(0.1, 0)


def test_ties_that_are_representable_are_met_exactly():
    """Closed intervals [0, 1] and [1, 2] share only the point 1."""
    instance = Instance.from_arrays([[0.0], [1.0]], [1.0], visible=[0], cost=1.0)
    found = densest_threshold(instance, Mechanism((1.0,), 0.0))
    assert found.recount.density == found.upper == 1
    assert found.recount.mechanism.threshold == 1.0


def test_stabbing_points_that_cannot_be_met_are_passed_over():
    """Margins that meet in no float promise more than those with room, but cannot keep it."""
    tenths = [[0.0], [0.1], [0.1]] + [[5.0 + i / 8] for i in range(2)]
    instance = Instance.from_arrays(tenths, [1.0], visible=[0], cost=[10.0, 10.0, 10.0, 1.0, 1.0])
    found = densest_threshold(instance, Mechanism((1.0,), 0.0))
    assert found.recount.density == Fraction(2, 5)
    assert found.upper == Fraction(3, 5)


def test_a_tie_on_no_float_leaves_an_honest_gap():
    """[0, 1/10] and [1/10, …] meet at 1/10 only, for scores 10x and threshold b: not for w = 1."""
    instance = Instance.from_arrays([[0.0], [0.1]], [1.0], visible=[0], cost=[10.0, 10.0])
    # 0.1 as a float is above 1/10: the two closed intervals are disjoint by 5.6e-18.
    found = densest_threshold(instance, Mechanism((1.0,), 0.0))
    assert found.recount.density == Fraction(1, 2)
    assert found.upper == 1  # floats cannot rule it out, so the bound does not claim to


def test_a_thin_margin_in_a_large_sample_is_not_drowned():
    """Running sums over the whole sample must not swamp a margin of a millionth of its width."""
    rng = np.random.default_rng(5)
    x = np.sort(rng.random(20_000))[:, None]
    x[100:103, 0] = 0.75 + np.array([0.0, 1e-9, 2e-9])
    instance = Instance.from_arrays(x, [1.0], visible=[0], cost=1e6)
    found = best_threshold(instance, Mechanism((1.0,), 0.0))
    step = 20_000
    direction = ExactDirection(instance, found.mechanism)
    tried = [direction.right_end(i) for i in range(0, step, 97)]
    assert all(recount(instance, found.mechanism.at(b)).gain <= found.gain for b in tried)
    assert {100, 101, 102} <= set(found.covered.tolist()) or len(found.covered) >= 3


def test_the_best_of_many_thin_margins_is_the_best():
    """A reach of a ten-millionth of the range: what is at stake is tiny beside the scores."""
    rng = np.random.default_rng(11)
    x = rng.random((3000, 1))
    x[7, 0], x[8, 0] = 0.5, 0.5 + 3e-8  # two of them share a margin
    instance = Instance.from_arrays(x, [1.0], visible=[0], cost=1e7)
    found = best_threshold(instance, Mechanism((1.0,), 0.0))
    ends = ExactDirection(instance, found.mechanism)
    every = [recount(instance, found.mechanism.at(ends.right_end(i))) for i in range(3000)]
    best = max(r.moved for r in every)
    assert found.moved >= best * (1 - Fraction(1, 10**7))


def test_an_agent_of_enormous_reach_does_not_blur_the_others():
    """Its end is known only to ±1e3, the other ends to 1e-16; the others must still be met."""
    instance = Instance.from_arrays(
        [[0.0], [0.0], [0.3]], [1.0], visible=[0], cost=[1e-18, 1.0, 1.0], weights=[1e-30, 1, 1]
    )
    found = best_threshold(instance, Mechanism((1.0,), 0.0))
    assert found.mechanism.threshold == 1.0
    assert found.covered.tolist() == [0, 1, 2]


def test_a_level_known_only_roughly_does_not_hide_the_others():
    """Wild seed 3713, made small: an outlier's huge, light end must not stop the search early."""
    from tests.design.test_wild import wild_instance, wild_rule

    rng = np.random.default_rng(3713)
    instance = wild_instance(rng)
    rule = wild_rule(rng, instance)
    found = best_threshold(instance, rule)
    every = [ExactDirection(instance, rule).right_end(i) for i in range(instance.size)]
    best = max(recount(instance, rule.at(b)).moved for b in every)
    assert found.moved >= best * (1 - Fraction(1, 10**9))


def test_the_order_of_agents_does_not_matter():
    """Example 1 is symmetric, so many thresholds are equally good: the same one must be chosen."""
    rng = np.random.default_rng(4)
    for instance in (example1(40), make_instance("ties", 40, 2, seed=1)):
        weights = np.zeros(instance.width)
        weights[list(instance.view.columns)] = 1.0
        along = Mechanism(weights, 0.0)
        chosen = best_threshold(instance, along)
        for _ in range(5):
            order = rng.permutation(instance.size)
            shuffled = Instance.from_arrays(
                instance.agents[order],
                instance.quality,
                view=instance.view.matrix,
                cost=instance.cost[order],
                weights=instance.weights[order],
            )
            again = best_threshold(shuffled, along)
            assert again.mechanism.threshold == chosen.mechanism.threshold
            assert again.gain == chosen.gain


def test_a_tiny_share_with_an_enormous_reach_is_found():
    """A share of 1e-33 with a reach of 1e40 is worth more than all the others."""
    instance = Instance.from_arrays(
        [[0.0], [0.1], [0.2]], [1.0], visible=[0], cost=[1e-40, 7, 3], weights=[1e-33, 0.3, 0.6]
    )
    found = best_threshold(instance, Mechanism((1.0,), 0.0))
    assert float(found.gain) == pytest.approx(1e7 / 0.9)


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e-250, 1e250, 1e300])
def test_rules_in_any_scale(size):
    instance = Instance.from_arrays([[1e90], [2e90]], [1.0], visible=[0], cost=1e-90)
    found = best_threshold(instance, Mechanism((size,), 0.0))
    assert float(found.gain) == pytest.approx(0.5e90)
    assert densest_threshold(instance, Mechanism((size,), 0.0)).upper == 1


@pytest.mark.parametrize("offset", [0.0, 3e7, -1e8])
def test_offsets_do_not_hurt(offset):
    rng = np.random.default_rng(3)
    x = np.round(rng.standard_normal((200, 2)), 6)
    shifted = Instance.from_arrays(x + offset, [1.0, 2.0], visible=[0, 1], cost=3.0)
    plain = Instance.from_arrays(x, [1.0, 2.0], visible=[0, 1], cost=3.0)
    a, b = (best_threshold(i, Mechanism((0.6, 0.8), 0.0)) for i in (shifted, plain))
    assert float(a.gain) == pytest.approx(float(b.gain), rel=1e-6)
