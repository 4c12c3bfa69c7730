"""The best gain by a sweep against the referee and the brute force, and in every odd case."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mipmech import Budget, InputError, Instance, best_threshold, make_instance, recount
from mipmech.budget import Event, Stop
from mipmech.model import example1, from_reduced, reduce
from mipmech.oracles.sweep.circle import CIRCLE, circle_of
from tests import brute_force, referee
from tests.conftest import seeds
from tests.oracles.test_sweep import FAMILIES, random_instance
from tests.samples import instances
from tests.sweep_gain import BestGain, sweep_gain


def coarse(instance, found: BestGain):
    """What the rounding of a threshold to a float may cost, as a share of the gain."""
    if found.recount is None:  # no float is within anybody's reach
        return math.inf
    rule = found.recount.mechanism
    step = math.ulp(rule.threshold) / float(np.linalg.norm(rule.weights))
    return 4 * step * float(np.linalg.norm(instance.quality)) / float(found.gain)


def rounded(instance):
    """What the rounding of scores may add to a bound, as a share of the gain."""
    geometry = reduce(instance)
    return 2e-13 / float(geometry.reach[geometry.weight > 0].min())


def check_gain(instance, found: BestGain, best: float, rough: float = 1e-10):
    """The interval holds the referee's value and is as narrow as floats allow."""
    assert found.gain <= Fraction(found.upper)
    assert float(found.gain) <= best * (1 + rough)
    assert best * (1 - rough) <= found.upper <= best * (1 + rough + rounded(instance))
    assert float(found.gain) >= best * (1 - rough - coarse(instance, found))
    if found.recount is not None:
        assert found.recount.gain == recount(instance, found.recount.mechanism).gain


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(5, 10))
def test_the_gain_is_the_referee_s(seed):
    random = np.random.default_rng([seed, 1])
    for _ in range(30):
        instance = random_instance(random, 10, (1, 2))
        check_gain(instance, sweep_gain(instance), referee.best_gain(instance))


@pytest.mark.parametrize("seed", range(3))
def test_far_from_the_origin(seed):
    random = np.random.default_rng([seed, 2])
    for _ in range(12):
        instance = random_instance(random, 8, (1, 2), offsets=(1e8, -1e8))
        check_gain(instance, sweep_gain(instance), referee.best_gain(instance), 1e-9)


@given(instance=instances(max_agents=7, max_width=2, kinds=("visible",)))
def test_the_gain_of_any_instance_is_the_referee_s(instance):
    found, best = sweep_gain(instance), referee.best_gain(instance)
    assume(best > 0)
    # The referee centres in floats: data at 1e8 cost it eight digits.
    rough = 1e-9 + 1e-14 * float(np.abs(instance.agents).max() / instance.reach.min())
    assert float(found.gain) <= best * (1 + rough)
    assert best * (1 - rough) <= found.upper <= best * (1 + rough)
    assert found.gain <= Fraction(found.upper)


@given(instance=instances(), seed=st.integers(0, 10**6))
def test_no_direction_exceeds_the_bound(instance, seed):
    geometry = reduce(instance)
    if geometry.rank > 2:
        with pytest.raises(InputError, match=r"rank: is [34]"):
            sweep_gain(geometry)
        return
    found = sweep_gain(geometry)
    assert found.gain <= Fraction(found.upper)
    for u in np.random.default_rng(seed).standard_normal((5, geometry.rank)):
        other = best_threshold(instance, from_reduced(geometry, u / np.linalg.norm(u), 0.0))
        assert other.gain <= Fraction(found.upper)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_gain_is_inside_the_bracket_of_cells(family):
    for seed in range(2):
        instance = make_instance(family, 40, 2, seed=seed)
        found = sweep_gain(instance)
        low, high = brute_force.best_gain_bracket(instance, gap=1e-4)
        assert low <= found.upper
        assert found.gain <= high
        assert found.upper <= float(found.gain) * (1 + 1e-9)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_the_gain_does_not_depend_on_coordinates(scale, offset):
    """Rotation, translation, order, units, and a view of four features instead of two columns."""
    random = np.random.default_rng(8)
    agents, quality = random.standard_normal((15, 2)), random.standard_normal(2)
    cost, weights = random.uniform(1, 4, 15), random.integers(0, 4, 15).astype(float)
    plain = sweep_gain(
        Instance.from_arrays(agents, quality, visible=[0, 1], cost=cost, weights=weights)
    )
    turn = np.linalg.qr(random.standard_normal((2, 2)))[0]
    order = random.permutation(15)
    turned = sweep_gain(
        Instance.from_arrays(
            (scale * agents @ turn.T + scale * offset)[order],
            turn @ quality,
            visible=[0, 1],
            cost=cost[order] / scale,
            weights=weights[order],
        )
    )
    rows = random.standard_normal((2, 4))
    basis = np.linalg.qr(rows.T)[0].T
    viewed = sweep_gain(
        Instance.from_arrays(
            scale * agents @ basis + scale * offset,
            quality @ basis,
            view=rows,
            cost=cost / scale,
            weights=weights,
        )
    )
    tolerance = 1e-11 if offset == 0 else 1e-6
    for other in (turned, viewed):
        assert other.upper / scale == pytest.approx(plain.upper, rel=tolerance)
        assert float(other.gain) / scale == pytest.approx(float(plain.gain), rel=tolerance)


@pytest.mark.parametrize("reach", [1e-6, 1e-9, 1e-12])
def test_reach_far_below_the_spread(reach):
    """A rule across z_i − z_j moves both by ℓ: a direction that floats come near to at best."""
    random = np.random.default_rng(12)
    for _ in range(20):
        agents = random.uniform(-1, 1, (6, 2))
        sample = Instance.from_arrays(agents, [1.0, 0.0], visible=[0, 1], cost=1 / reach)
        found = sweep_gain(sample)
        apart = agents[:, None] - agents
        sines = np.abs(apart[..., 1]) / np.maximum(np.hypot(*np.moveaxis(apart, 2, 0)), 1e-300)
        best = sines.max() * 2 / 6 * float(sample.reach[0])
        assert found.upper >= best * (1 - 1e-14)
        assert found.upper <= best * (1 + 4e-13 / reach + 10 * reach)
        if reach >= 1e-9:  # else rounding decides which pair looks best
            assert float(found.gain) >= best * (1 - 2e-15 / reach)


def exact_gain(instance, weights) -> Fraction:
    """The best gain along a direction, over all real thresholds: to eighty digits."""
    exact = [Fraction(float(w)) for w in weights]
    rate = referee.dot(exact, [Fraction(float(q)) for q in instance.quality])
    soft = Fraction(referee.best_soft_density(instance, exact))
    return rate * soft / referee.dot(exact, exact)


@pytest.mark.slow
@pytest.mark.parametrize("reach", [0.3, 1e-5, 1e-9, 1e-13])
@pytest.mark.parametrize("rank", [1, 2])
def test_the_bound_holds_to_the_last_digit(rank, reach):
    """Around the best rule found, in steps of rounding, with thresholds that no float can be."""
    random = np.random.default_rng([rank, 13])
    for _ in range(12):
        agents = random.uniform(-1, 1, (5, rank))
        if random.random() < 0.5:
            agents = random.integers(-2, 3, (5, rank)) / 10
        instance = Instance.from_arrays(
            agents,
            random.uniform(0.5, 1, rank),
            visible=list(range(rank)),
            cost=random.choice([1.0, 3.0], 5) / reach,
        )
        found = sweep_gain(instance)
        weights = np.array(found.recount.mechanism.weights)
        for step in (0.0, 1e-16, 1e-15, 1e-14, 1e-13):
            for _ in range(3):
                near = weights * (1 + step * random.standard_normal(rank))
                assert exact_gain(instance, near) <= Fraction(found.upper)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_slack_is_never_negative(sign):
    """On a line too, where the length of z is not z itself: its one column has signs."""
    agents = sign * np.array([[-3.0], [-0.5], [0.0], [7.0]])
    geometry = reduce(Instance.from_arrays(agents, [1.0], visible=[0], cost=1.0))
    assert geometry.rank == 1
    assert geometry.z.min() < 0 < geometry.z.max()
    basis = np.array([[1.0], [0.0]])
    slack = circle_of(geometry, np.zeros(4), basis, 0.0, 0.0, CIRCLE).slack
    assert (slack >= geometry.rounding.z).all()
    assert (slack[geometry.z[:, 0] != 0] > 0).all()


@pytest.mark.parametrize("power", [3, 20, 26])
def test_rows_that_are_nearly_dependent(power):
    """[a, a + 2^-n b] and [a, b] show the same plane, exactly; what one attains, both allow."""
    random = np.random.default_rng(power)
    a, b = np.array([[1.0, 2.0, 0.0, 3.0], [1.0, -1.0, 2.0, 0.0]])
    for _ in range(15):
        agents = random.integers(-3, 4, (8, 4)).astype(float)
        quality = random.integers(-2, 3, 4) + 0.5
        rows = ([a, b], [a, a + 2.0**-power * b])
        good, poor = (
            reduce(Instance.from_arrays(agents, quality, view=view, cost=0.5)) for view in rows
        )
        one, other = sweep_gain(good), sweep_gain(poor)
        assert one.gain <= Fraction(other.upper)
        assert other.gain <= Fraction(one.upper)
        assert one.upper == pytest.approx(other.upper, rel=2e-12 * 2**power)


@pytest.mark.parametrize("seed", range(4))
def test_bounds_see_ties_that_a_rotation_has_rounded_away(seed):
    """The bound of a lattice in the plane is that of the rotated lattice, ties and all."""
    random = np.random.default_rng([seed, 5])
    for _ in range(12):
        size = int(random.integers(3, 12))
        x = random.integers(-2, 3, (size, 3)).astype(float)
        cost = random.choice([0.5, 1.0, 2.0], size)
        turn = np.linalg.qr(random.standard_normal((3, 3)))[0]
        before, after = sweep_gain_in_the_plane(x, cost, turn), sweep_gain_in_the_plane(x, cost)
        assert before.upper == pytest.approx(after.upper, rel=1e-11)


def sweep_gain_in_the_plane(x, cost, turn=None):
    turn = np.eye(2) if turn is None else np.linalg.qr(turn[:2, :2])[0]
    quality = turn @ np.array([1.0, 2.0])
    return sweep_gain(Instance.from_arrays(x[:, :2] @ turn.T, quality, visible=[0, 1], cost=cost))


def test_tangent_levels():
    """Reach equal to distances: arccosines of ±1, and one unit in the last place around."""
    for nudge in (0.0, 1e-16, -1e-16, 1e-15, -1e-15):
        for distance in (0.1, 1.0, 3.0, 1e-7):
            d = distance * (1 + nudge)
            agents = [[0.0, 0.0], [d, 0.0], [0.0, d], [-d, 0.0]]
            cost = [1 / distance, 0.5 / distance, 1 / distance, 1 / distance]
            plane = Instance.from_arrays(agents, [1.0, 1.0], visible=[0, 1], cost=cost)
            check_gain(plane, sweep_gain(plane), referee.best_gain(plane))


@pytest.mark.slow
def test_known_gains_of_shipped_instances(root):
    seen = 0
    for path in sorted((root / "instances").glob("*/*.json")):
        instance = Instance.load(path)
        rank = instance.view.rank
        if instance.known is None or rank > 2 or instance.size > 1000 or not instance.costs.plain:
            continue
        found = sweep_gain(instance)
        assert float(found.gain) <= instance.known.upper
        assert found.upper >= instance.known.lower
        if found.gain:
            slack = 1e-10 + coarse(instance, found)
            assert found.upper <= float(found.gain) * (1 + slack)
        seen += 1
    assert seen >= 15


@pytest.mark.parametrize("agents", [1, 2, 40, 300])
def test_example_1_of_the_paper(agents):
    """All agents on a line: ℓ/√3 is reached in one direction only, where all right ends tie."""
    cost = 4.0
    found = sweep_gain(example1(agents, cost=cost))
    best = 1 / cost / math.sqrt(3)
    if agents == 1:  # moves along P w_f itself
        best *= math.sqrt(2)
    if agents == 2:  # ℓ ≤ r(m − 1)/m = 1/2 still
        best = max(best, referee.best_gain(example1(agents, cost=cost)))
    assert float(found.gain) == pytest.approx(best, rel=1e-12)
    assert found.upper == pytest.approx(best, rel=1e-11)


class TestOddGains:
    def best(self, agents, quality, seen=None, **more):
        seen = list(range(len(quality))) if seen is None else seen
        sample = Instance.from_arrays(agents, quality, visible=seen, **{"cost": 1.0, **more})
        return sweep_gain(sample)

    def test_one_agent(self):
        found = self.best([[2.0, 7.0]], [3.0, 4.0], cost=0.5)
        assert float(found.gain) == pytest.approx(10.0)
        assert found.upper == pytest.approx(10.0)

    @pytest.mark.parametrize("size", [2, 200])
    def test_all_agents_equal(self, size):
        found = self.best([[1.0, 2.0]] * size, [3.0, 4.0])
        assert float(found.gain) == pytest.approx(5.0)
        assert found.upper == pytest.approx(5.0)

    def test_no_visible_quality(self):
        found = self.best([[0.0, 3.0, 1.0], [0.5, 1.0, 0.0]], [0.0, 0.0, 1.0], seen=[0, 1])
        assert (found.recount, found.gain, found.upper) == (None, 0, 0.0)

    def test_agents_without_weight_do_not_count(self):
        agents, weights = [[0.0, 0.0], [0.1, 0.0], [1e9, 5.0]], [1.0, 1.0, 0.0]
        with_it = self.best(agents, [1.0, 1.0], weights=weights)
        assert with_it.gain == self.best(agents[:2], [1.0, 1.0]).gain

    def test_weights_are_as_good_as_copies(self):
        random = np.random.default_rng(5)
        agents, copies = random.standard_normal((8, 2)), random.integers(1, 4, 8)
        weighted = self.best(agents, [1.0, -2.0], weights=copies.astype(float))
        copied = self.best(np.repeat(agents, copies, axis=0), [1.0, -2.0])
        assert float(weighted.gain) == pytest.approx(float(copied.gain), rel=1e-13)

    @pytest.mark.parametrize("long", [1e3, 1e16, 1e90])
    def test_one_very_long_reach(self, long):
        """It moves alone along p; or, if it weighs next to nothing, the others decide."""
        agents = np.random.default_rng(0).standard_normal((9, 2))
        cost = [1 / long, *[2.0] * 8]
        found = self.best(agents, [1.0, 0.0], cost=cost)
        assert float(found.gain) >= long / 9 * (1 - 1e-12)
        assert found.upper <= float(found.gain) * (1 + 1e-9)
        weights = [1e-9 / long, *[1.0] * 8]
        found = self.best(agents, [1.0, 0.0], cost=cost, weights=weights)
        others = self.best(agents[1:], [1.0, 0.0], cost=2.0)
        assert float(found.gain) == pytest.approx(float(others.gain), rel=1e-8)
        assert found.upper <= float(found.gain) * (1 + 1e-9)

    def test_a_light_agent_with_a_long_reach_beats_heavy_ones(self):
        """Its weight is lost in a running sum of the others; its gain must not be."""
        agents = np.random.default_rng(1).standard_normal((6, 2))
        found = self.best(agents, [1.0, 0.0], cost=[1e-40, *[1.0] * 5], weights=[1e-30, *[1.0] * 5])
        assert float(found.gain) == pytest.approx(1e10 / 5, rel=1e-12)
        assert found.upper == pytest.approx(1e10 / 5, rel=1e-9)

    def test_more_dimensions_are_refused(self):
        geometry = reduce(make_instance("uniform-ball", 5, 3, seed=1))
        with pytest.raises(InputError, match="one or two dimensions") as caught:
            sweep_gain(geometry)
        assert caught.value.field == "rank"

    def test_out_of_time(self):
        geometry = reduce(make_instance("uniform-ball", 60, 2, seed=1))
        short, full = sweep_gain(geometry, Budget(0.0)), sweep_gain(geometry)
        assert (short.stop, full.stop) == (Stop.TIME, Stop.FINISHED)
        assert 0 < short.gain <= full.gain <= Fraction(short.upper)
        assert "at most" in repr(full)

    def test_events(self):
        events: list[Event] = []
        geometry = reduce(make_instance("uniform-ball", 600, 2, seed=1))
        found = sweep_gain(geometry, Budget(watch=events.append))
        assert len(events) > 4
        assert [e.lower for e in events] == sorted(e.lower for e in events)
        assert [e.upper for e in events] == sorted((e.upper for e in events), reverse=True)
        assert events[-1].upper == found.upper


def test_a_thousand_agents_close():
    found = sweep_gain(make_instance("gaussian-mixture", 1000, 2, seed=1))
    assert found.upper <= float(found.gain) * (1 + 1e-9)
    assert found.seconds < 10
