"""The truth: invariances, floats against rationals, ties."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mipmech import Instance, Mechanism, recount
from mipmech.errors import InputError
from mipmech.model import Side, from_reduced, reduce
from mipmech.theory import linear_response
from tests import referee
from tests.samples import AT_ENDS, BETWEEN, instances, mechanisms


@st.composite
def graded(draw, places=AT_ENDS, **options):
    instance = draw(instances(**options))
    return instance, draw(mechanisms(instance, places))


def rebuilt(instance, **changes):
    parts = {
        "agents": instance.agents,
        "quality": instance.quality,
        "quality_offset": instance.quality_offset,
        "cost": instance.cost,
        "weights": instance.weights,
        "view": instance.view.matrix,
    }
    return Instance.from_arrays(**{**parts, **changes})


@given(graded())
def test_recount_equals_the_referee(case):
    instance, mechanism = case
    found = recount(instance, mechanism)
    truth = referee.truth(instance, referee.exact_weights(instance, mechanism), mechanism.threshold)
    assert (found.sides == Side.INSIDE).tolist() == truth.inside
    assert found.density == truth.density
    assert found.gain == truth.gain
    assert found.value == truth.value
    assert found.accepted_quality == truth.accepted_quality


@given(graded(BETWEEN))
def test_floats_agree_with_rationals_away_from_ties(case):
    instance, mechanism = case
    weights, threshold = mechanism.scaled()
    norm = np.linalg.norm(weights)
    distance = (float(threshold) - instance.agents @ weights) / norm
    size = 1 + np.abs(instance.agents).max()
    clear = np.minimum(np.abs(distance), np.abs(distance - 1 / instance.cost)) > 1e-9 * size
    assume(clear.all())
    exact, floats = recount(instance, mechanism), referee.in_floats(instance, mechanism)
    assert floats.moved.tolist() == (exact.sides == Side.INSIDE).tolist()
    assert floats.accepted.tolist() == exact.accepted.tolist()
    scale = 1e-9 * size * (1 + np.abs(instance.quality).max())
    for name in ("density", "gain", "value", "soft_density", "baseline", "accepted_share"):
        assert float(getattr(exact, name)) == pytest.approx(getattr(floats, name), abs=scale)
    if exact.accepted_quality is None:
        assert floats.accepted_quality is None
    else:
        assert float(exact.accepted_quality) == pytest.approx(floats.accepted_quality, abs=scale)


@given(graded())
def test_scaling_the_rule_changes_nothing(case):
    instance, mechanism = case
    v = mechanism.view_weights
    larger = Mechanism(
        tuple(1024 * w for w in mechanism.weights),
        1024 * mechanism.threshold,
        None if v is None else tuple(1024 * w for w in v),
    )
    assert recount(instance, larger).gain == recount(instance, mechanism).gain
    assert recount(instance, larger).density == recount(instance, mechanism).density


@given(graded(), st.randoms(use_true_random=False))
def test_order_of_agents_does_not_matter(case, random):
    instance, mechanism = case
    order = list(range(instance.size))
    random.shuffle(order)
    shuffled = rebuilt(
        instance,
        agents=instance.agents[order],
        cost=instance.cost[order],
        weights=instance.weights[order],
    )
    a, b = recount(instance, mechanism), recount(shuffled, mechanism)
    assert (a.density, a.gain, a.value) == (b.density, b.gain, b.value)


@given(graded())
def test_splitting_an_agent_changes_nothing(case):
    instance, mechanism = case
    weights = instance.weights.copy()
    weights[0] /= 2
    split = rebuilt(
        instance,
        agents=np.vstack([instance.agents, instance.agents[:1]]),
        cost=np.append(instance.cost, instance.cost[0]),
        weights=np.append(weights, weights[0]),
    )
    a, b = recount(instance, mechanism), recount(split, mechanism)
    assert (a.density, a.gain, a.value) == (b.density, b.gain, b.value)


@given(graded(kinds=("visible",)), st.integers(-30, 30), st.integers(-30, 30))
def test_units_do_not_matter(case, length, quality):
    """Lengths in other units scale thresholds and reach; quality in other units scales the gain."""
    instance, mechanism = case
    unit, worth = 2.0**length, 2.0**quality
    scaled = rebuilt(
        instance,
        agents=instance.agents * unit,
        cost=instance.cost / unit,
        quality=instance.quality * worth,
        quality_offset=0.0,
    )
    a, b = recount(instance, mechanism), recount(scaled, mechanism.at(mechanism.threshold * unit))
    assert a.density == b.density
    assert a.gain * Fraction(unit) * Fraction(worth) == b.gain


@given(graded(kinds=("visible",)), st.integers(-1000, 1000))
def test_translation_does_not_matter(case, shift):
    """Exactly, as long as no coordinate is rounded by it."""
    instance, mechanism = case
    moved = instance.agents + float(shift)
    assume((moved - float(shift) == instance.agents).all())
    exact_shift = shift * sum(Fraction(w) for w in mechanism.weights)
    threshold = Fraction(mechanism.threshold) + exact_shift
    assume(Fraction(float(threshold)) == threshold)
    a = recount(instance, mechanism)
    b = recount(rebuilt(instance, agents=moved), mechanism.at(float(threshold)))
    assert (a.density, a.gain) == (b.density, b.gain)


def pythagorean_rotation(n, i, j, k):
    """A rotation by (3/5, 4/5) or (5/13, 12/13) and so on in the plane of two axes."""
    a, b, c = [(3, 4, 5), (5, 12, 13), (8, 15, 17)][k]
    matrix = np.eye(n)
    matrix[i, i] = matrix[j, j] = a / c
    matrix[i, j], matrix[j, i] = -b / c, b / c
    return matrix


@given(
    graded(BETWEEN, kinds=("view", "projection"), min_width=2),
    st.integers(0, 2),
    st.integers(0, 3),
    st.integers(1, 3),
)
def test_rotation_of_the_whole_space_does_not_matter(case, which, i, step):
    instance, mechanism = case
    n = instance.width
    i, j = i % n, (i + 1 + (step - 1) % (n - 1)) % n
    rotation = pythagorean_rotation(n, i, j, which)
    rotated = rebuilt(
        instance,
        agents=instance.agents @ rotation.T,
        quality=rotation @ instance.quality,
        view=instance.view.matrix @ rotation.T,
    )
    weights, threshold = mechanism.scaled()
    norm = float(np.linalg.norm(weights))
    distance = (float(threshold) - instance.agents @ weights) / norm
    size = 1 + np.abs(instance.agents).max()
    assume((np.minimum(np.abs(distance), np.abs(distance - 1 / instance.cost)) > 1e-8 * size).all())
    turned = Mechanism(
        tuple((rotation @ np.array(mechanism.weights)).tolist()),
        mechanism.threshold,
        mechanism.view_weights if rotated.view.columns is None else None,
    )
    a, b = recount(instance, mechanism), recount(rotated, turned)
    assert a.density == b.density
    worth = np.abs(instance.quality).max()
    assert float(a.gain) == pytest.approx(float(b.gain), abs=1e-8 * size * worth)


def test_the_rational_truth_decides_at_ties():
    """Cost 10 is a reach of exactly 1/10; the float 0.1 is a little more."""
    at_tenths = Instance.from_arrays([[0.0], [-0.1], [1.0]], [1.0], visible=[0], cost=10.0)
    rule = Mechanism((1.0,), 0.0)
    # The agent at −0.1 is at distance 0.1000000000000000055 > 1/10: out, although 0.1 · 10 == 1.
    assert 0.1 * 10 == 1.0
    assert recount(at_tenths, rule).covered.tolist() == [0]
    # In tenths as units the same agent is at exactly the reach: in.
    exact = Instance.from_arrays([[0.0], [-1.0], [10.0]], [1.0], visible=[0], cost=1.0)
    assert recount(exact, rule).covered.tolist() == [0, 1]
    # A threshold of exactly one tenth is no float for w = 1, but can be written down for w = 10.
    assert recount(at_tenths, Mechanism((1.0,), 0.1)).density == 0
    assert recount(at_tenths, Mechanism((10.0,), 1.0)).covered.tolist() == [0]


def test_both_ends_of_the_margin_are_closed():
    ends = Instance.from_arrays([[0.0], [2.0], [-1.0], [3.0]], [1.0], visible=[0], cost=0.5)
    found = recount(ends, Mechanism((1.0,), 2.0))
    assert found.sides.tolist() == [Side.INSIDE, Side.INSIDE, Side.BEYOND, Side.ABOVE]
    assert found.gain == Fraction(2, 4)
    assert found.accepted_share == Fraction(3, 4)


def test_a_pythagorean_direction_meets_its_reach_exactly():
    """w = (3, 4) has length 5, so a distance of exactly 1 = ℓ can be written down."""
    instance = Instance.from_arrays([[0.0, 0.0]], [3.0, 4.0], visible=[0, 1], cost=1.0)
    assert recount(instance, Mechanism((3.0, 4.0), 5.0)).gain == 5
    beyond = math.nextafter(5.0, 6.0)
    assert recount(instance, Mechanism((3.0, 4.0), beyond)).gain == 0


def test_many_exact_ties_are_settled_at_once():
    """Ten thousand agents on both ends, all undecided for floats, few of them different."""
    x = np.tile([[0.0, 7.0], [0.1, 7.0], [0.2, 7.0]], (4000, 1))
    instance = Instance.from_arrays(x, [1.0, 1.0], visible=[0], cost=10.0)
    found = recount(instance, Mechanism((1.0, 0.0), 0.1))
    assert found.sides[:3].tolist() == [Side.BEYOND, Side.INSIDE, Side.ABOVE]
    assert found.density == Fraction(1, 3)


def test_nobody_accepted():
    instance = Instance.from_arrays([[0.0]], [1.0], visible=[0], cost=1.0)
    assert recount(instance, Mechanism((1.0,), 9.0)).accepted_quality is None


@pytest.mark.parametrize(("norm", "who"), [(0.5, []), (1.0, [0]), (2.0, [0, 1]), (9.0, [0, 1])])
def test_linear_mechanisms_move_nobody_or_without_bound(norm, who):
    instance = Instance.from_arrays([[0.0], [0.0]], [1.0], visible=[0], cost=[1.0, 2.0])
    response = linear_response(instance, [norm])
    assert np.flatnonzero(response.unbounded).tolist() == who
    assert ("without bound" in str(response)) == bool(who)


def test_a_rule_on_hidden_features_is_refused():
    instance = Instance.from_arrays([[0.0, 0.0, 0.0]], [1.0, 1.0, 1.0], view=[[1, 1, 0]], cost=1.0)
    assert Mechanism.on(instance, [2.0, 2.0, 0.0], 1.0).view_weights == pytest.approx((2.0,))
    with pytest.raises(InputError, match="not a combination"):
        Mechanism.on(instance, [1.0, 2.0, 0.0], 1.0)
    with pytest.raises(InputError, match="all 0"):
        Mechanism.on(instance, [0.0, 0.0, 0.0], 1.0)


def test_only_rules_that_fit_the_instance_are_graded():
    columns = Instance.from_arrays([[0.0, 1.0]], [1.0, 1.0], visible=[0], cost=1.0)
    view = Instance.from_arrays([[0.0, 1.0]], [1.0, 1.0], view=[[1.0, 1.5]], cost=1.0)
    for instance, rule, message in [
        (columns, Mechanism((1.0,), 0.5), "2 expected"),
        (columns, Mechanism((1.0, 1.0), 0.5), "cannot see it"),
        (columns, Mechanism((1.0, 0.0), 0.5, (1.0,)), "leave them out"),
        (view, Mechanism((1.0, 1.5), 0.5), "are missing"),
        (view, Mechanism((1.0, 1.5), 0.5, (1.0, 1.0)), "1 expected"),
        (view, Mechanism((1.0, 1.0), 0.5, (1.0,)), "not a combination"),
    ]:
        with pytest.raises(InputError, match=message):
            recount(instance, rule)
    for bad in (math.nan, math.inf, "1", None, True):
        with pytest.raises(InputError, match="threshold"):
            Mechanism.on(columns, [1.0, 0.0], bad)
    with pytest.raises(InputError, match="not a combination"):
        Mechanism.on(view, [1e-200, -5e-200], 0.0)  # squares underflow; the answer must not


def test_rules_are_checked_at_the_door():
    from_array = Mechanism(np.array([1, 1, 0]), np.float32(0.5))
    assert from_array == Mechanism((1.0, 1.0, 0.0), 0.5)
    assert all(type(w) is float for w in from_array.weights)
    for weights in ((math.nan, 0.0), (0.0, 0.0), ("a", 1.0), (True, False), {"a": 1.0}, 3.0, None):
        with pytest.raises(InputError, match="weights"):
            Mechanism(weights, 0.5)
    for threshold in (math.nan, math.inf, None, "1", True):
        with pytest.raises(InputError, match="threshold"):
            Mechanism((1.0,), threshold)
    named = Instance.from_arrays(
        [[0.0, 1.0]], [1.0, 1.0], visible=["a"], features=["a", "b"], cost=1.0
    )
    assert Mechanism.on(named, {"a": 2.0}, 1.0).weights == (2.0, 0.0)
    with pytest.raises(InputError, match="not a feature"):
        Mechanism.on(named, {"A": 2.0}, 1.0)


def test_rules_on_awkward_views_are_accepted():
    """Nearly dependent rows, rows of very different sizes: our own rules pass our own check."""
    agents, w_f = [[0.0, 1.0, 2.0]], [1.0, 1.0, 1.0]
    rows = [[1.0, 0.7, 0.3], [1.0, 0.7 + 1e-8, 0.3 - 1e-8 / 3]]
    near = Instance.from_arrays(agents, w_f, view=rows, cost=1.0)
    mechanism = from_reduced(reduce(near), [math.cos(0.5), math.sin(0.5)], 0.0)
    assert Mechanism.from_dict(mechanism.to_dict(), near) == mechanism
    assert Mechanism.on(near, mechanism.weights, 0.0).weights == mechanism.weights
    rows = [[1e20, 2e20, 3e20], [1.0, -1.0, 1.0]]
    sizes = Instance.from_arrays(agents, w_f, view=rows, cost=1.0)
    assert Mechanism.on(sizes, [1.0, -1.0, 1.0], 0.0).view_weights == pytest.approx((0.0, 1.0))


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-250, 1e250, 1e300])
def test_rules_and_thresholds_in_any_scale(scale):
    instance = Instance.from_arrays([[0.0], [0.5]], [1.0], visible=[0], cost=1.0)
    for threshold in (0.0, 1e90, -1e90, 1e300):
        rule = Mechanism.on(instance, [scale], threshold)
        truth = referee.truth(instance, [Fraction(scale)], threshold)
        assert recount(instance, rule).gain == truth.gain


@given(graded())
def test_mechanisms_survive_json(case):
    instance, mechanism = case
    assert Mechanism.from_dict(mechanism.to_dict(), instance) == mechanism
