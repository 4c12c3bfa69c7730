"""The densest rules of the sweep against the referee and the brute force, and in odd cases."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mipmech import Budget, InputError, Instance, make_instance, recount
from mipmech.budget import Event, Stop
from mipmech.model import densest_threshold, from_reduced, reduce
from mipmech.oracles.sweep.engine import Sweep
from tests import brute_force, referee
from tests.oracles.test_contract import check
from tests.samples import instances

ENDLESS = Budget()
FAMILIES = ("gaussian-mixture", "uniform-ball", "heavy-tails", "clustered-lines", "ties", "costs")
WEIGHTS = (0.0, 0.1, 0.3, 0.7, 1.0, 2.0)


def random_instance(random, max_agents, ranks, offsets=(0.0, 100.0)):
    """Clouds and lattices, duplicates, offsets, scales; equal or unequal costs and weights."""
    rank, size = int(random.choice(ranks)), int(random.integers(1, max_agents + 1))
    x = random.standard_normal((size, rank))
    if random.random() < 0.4:
        x = random.integers(-2, 3, (size, rank)).astype(float)
    if random.random() < 0.3:
        x[-1] = x[0]
    x += random.choice(offsets)
    scale = 10.0 ** random.integers(-9, 10) if random.random() < 0.5 else 1.0
    quality = np.eye(rank)[0] if random.random() < 0.3 else random.standard_normal(rank)
    cost = random.choice([0.25, 0.5, 5 / 3, 1.0, 2.0, 7.3], size) / scale
    if random.random() < 0.1:
        cost[0] *= random.choice([1e-40, 1e-9, 1e9])
    if random.random() < 0.5:
        cost[:] = cost[0]
    weights = None
    if random.random() < 0.5:
        weights = random.choice(WEIGHTS, size)
        weights[0] += not weights.any()
    return Instance.from_arrays(
        x * scale, quality, visible=list(range(rank)), cost=cost, weights=weights
    )


def mass(instance, agents):
    weights = [Fraction(float(w)) for w in instance.weights]
    return sum((weights[i] for i in agents), Fraction(0)) / sum(weights)


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
        for share in (0.3, 1.0):
            eta = share * good.p_norm
            one, other = Sweep()(good, eta, ENDLESS), Sweep()(poor, eta, ENDLESS)
            assert one.density <= other.upper


def tolerance_of(share):
    """At η = ±‖p‖ the band is a cap of some 1e-6; elsewhere it moves scores by less than 1e-9."""
    return 4e-6 if abs(share) == 1 else 1e-9 if abs(share) < 0.99 else 1e-8


def share_of(random, instance):
    shares = (1.0, -1.0) if instance.view.rank == 1 else (0.0, 0.3, 0.6, 0.9, 0.99, 1.0, -0.5)
    return float(random.choice(shares))


@pytest.mark.parametrize("seed", range(10))
def test_the_interval_contains_the_best_density(seed):
    """Lattices with ties among them: what is left open is a tie, and the bound is never loose."""
    random = np.random.default_rng([seed, 3])
    for _ in range(25):
        instance = random_instance(random, 13, (1, 2, 3), offsets=(0.0,))
        share = share_of(random, instance)
        geometry = reduce(instance)
        answer = Sweep()(geometry, share * geometry.p_norm, ENDLESS)
        truth = brute_force.best_density(instance, share * geometry.p_norm, tolerance_of(share))
        assert truth is not None
        check(geometry, share * geometry.p_norm, answer)
        surely, upper = mass(instance, truth.sure_set), mass(instance, truth.most_set)
        assert surely <= answer.upper <= upper
        assert answer.density >= surely or abs(share) == 1
        if not truth.tied:
            assert answer.density == answer.upper == surely
            assert answer.stop is Stop.CLOSED


@pytest.mark.parametrize("seed", range(3))
def test_more_agents(seed):
    random = np.random.default_rng([seed, 4])
    for family in FAMILIES:
        instance = make_instance(family, 24, 3, seed=seed)
        geometry = reduce(instance)
        eta = float(random.uniform(-0.9, 0.9)) * geometry.p_norm
        answer = Sweep()(geometry, eta, ENDLESS)
        truth = brute_force.best_density(instance, eta)
        assert not truth.tied
        assert answer.density == answer.upper == mass(instance, truth.sure_set)


@pytest.mark.parametrize("rank", [1, 2])
def test_without_a_visible_quality_every_direction_will_do(rank):
    random = np.random.default_rng(rank)
    for number in range(12):
        lattice = number % 2
        x = (
            random.integers(-2, 3, (9, rank + 1))
            if lattice
            else random.standard_normal((9, rank + 1))
        )
        quality = np.eye(rank + 1)[rank]
        cost = random.choice([0.5, 1.0, 2.0], 9)
        seen = list(range(rank))
        instance = Instance.from_arrays(x.astype(float), quality, visible=seen, cost=cost)
        answer = Sweep()(reduce(instance), 0.0, ENDLESS)
        truth = brute_force.best_density(instance, 0.0)
        assert mass(instance, truth.sure_set) <= answer.upper <= mass(instance, truth.most_set)
        assert truth.tied or answer.density == answer.upper
    assert Sweep()(reduce(instance), 0.1, ENDLESS).status == "infeasible"


@pytest.mark.parametrize("seed", range(4))
def test_bounds_see_ties_that_a_rotation_has_rounded_away(seed):
    """What a lattice attains by ties, the bound of the rotated lattice must allow."""
    random = np.random.default_rng([seed, 5])
    for _ in range(12):
        size = int(random.integers(3, 12))
        x = random.integers(-2, 3, (size, 3)).astype(float)
        cost = random.choice([0.5, 1.0, 2.0], size)
        turn = np.linalg.qr(random.standard_normal((3, 3)))[0]
        quality = np.array([1.0, 0.0, 0.0])
        plain = Instance.from_arrays(x, quality, visible=[0, 1, 2], cost=cost)
        turned = Instance.from_arrays(
            x @ turn.T, turn @ quality, visible=[0, 1, 2], cost=cost.tolist()
        )
        for share in (0.0, 0.6):
            before = Sweep()(reduce(plain), share, ENDLESS)
            geometry = reduce(turned)
            after = Sweep()(geometry, share * geometry.p_norm, ENDLESS)
            assert before.density <= after.upper
            assert before.upper == after.upper


def test_ties_along_the_axes_are_met():
    """The outer two are both in reach only for u exactly across: one float direction."""
    agents = [[0.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, -4.0, 0.0], [0.0, 0.0, 1.0]]
    for scale in (1.0, 1e-6, 1e6):
        sample = Instance.from_arrays(
            scale * np.array(agents),
            [1.0, 0.0, 0.0],
            visible=[0, 1, 2],
            cost=[1.0 / scale, 1e30, 1e30, 1.0 / scale],
        )
        answer = Sweep()(reduce(sample), 0.0, ENDLESS)
        assert answer.density == answer.upper == 1


def test_tangent_levels():
    """Reach equal to distances: arccosines of ±1, and one unit in the last place around."""
    for nudge in (0.0, 1e-16, -1e-16, 1e-15, -1e-15):
        for distance in (0.1, 1.0, 3.0, 1e-7):
            d = distance * (1 + nudge)
            agents = [[0.0, 0.0, 0.0], [0.0, d, 0.0], [0.0, 0.0, d], [0.0, -d, 0.0]]
            cost = [1 / distance, 0.5 / distance, 1 / distance, 1 / distance]
            instance = Instance.from_arrays(agents, [1.0, 0.0, 0.0], visible=[0, 1, 2], cost=cost)
            for share in (0.0, 0.6, 0.8):
                answer = Sweep()(reduce(instance), share, ENDLESS)
                truth = brute_force.best_density(instance, share)
                assert mass(instance, truth.sure_set) <= answer.upper
                assert answer.upper <= mass(instance, truth.most_set)


def test_the_bound_holds_on_the_whole_band():
    """At the rim of the band of η a direction sees agents that no direction at η sees."""
    far, cosine = 1e3, 0.6
    sine = math.sqrt(1 - cosine**2)
    band = 0.9e-12 / sine  # an angle within the band
    shift = 0.5 * band * far
    # u = (cos θ, sin θ v): both outer agents are in reach only if θ is a little smaller.
    agents = np.array([[-sine * far, cosine * far, 0.0], [sine * far, -cosine * far, 0.0]])
    agents[1] += (1.0 + shift) * np.array([cosine, sine, 0.0])
    agents = np.vstack([agents, [[0.0, 0.0, 1e6], [0.0, 0.0, -1e6]]])
    sample = Instance.from_arrays(agents, [1.0, 0.0, 0.0], visible=[0, 1, 2], cost=1.0)
    geometry = reduce(sample)
    answer = Sweep()(geometry, cosine, ENDLESS)
    theta = math.acos(cosine)
    best = max(
        densest_threshold(
            sample, from_reduced(geometry, [math.cos(t), math.sin(t), 0.0], 0.0)
        ).recount.density
        for t in (theta - band, theta, theta + band)
    )
    assert best <= answer.upper


def test_the_bound_holds_around_the_pole():
    far = 1e3
    shift = 1.2e-6 * far  # the band of 1e-12 is an angle of 1.4e-6
    agents = [[0.0, far, 0.0], [1.0 + shift, -far, 0.0], [0.0, 0.0, 0.0]]
    geometry = reduce(Instance.from_arrays(agents, [1.0, 0.0, 0.0], visible=[0, 1, 2], cost=1.0))
    for eta in (1.0, 1 - 2e-13, 1 - 9e-13):
        answer = Sweep()(geometry, eta, ENDLESS)
        check(geometry, eta, answer)
        assert answer.mechanism is not None
        assert answer.upper == 1


@settings(max_examples=60)
@given(geometry=instances().map(reduce), share=st.sampled_from([-1, 0, 0.3, 0.9, 1, 1.5]))
def test_answers_are_true(geometry, share):
    eta = share * geometry.p_norm
    circle = geometry.rank <= (2 if geometry.p_norm == 0 else 3)
    if not circle and (abs(share) < 1 or geometry.p_norm == 0):
        with pytest.raises(InputError, match=r"oracle: .* use milp or cells"):
            Sweep()(geometry, eta, ENDLESS)
        return
    check(geometry, eta, Sweep()(geometry, eta, ENDLESS))


@settings(max_examples=60)
@given(
    geometry=instances(max_agents=6, min_width=2).map(reduce),
    share=st.sampled_from([0, 0.3, 0.9, 1]),
    seed=st.integers(0, 10**6),
)
def test_no_direction_at_eta_is_denser(geometry, share, seed):
    assume(geometry.p_norm > 0 and 2 <= geometry.rank <= 3)
    eta = share * geometry.p_norm
    answer = Sweep()(geometry, eta, ENDLESS)
    towards = geometry.p / geometry.p_norm
    turn = np.linalg.svd(towards[None])[2][1:]
    for v in np.random.default_rng(seed).standard_normal((5, len(turn))):
        across = v / np.linalg.norm(v) @ turn
        u = share * towards + math.sqrt(1 - share**2) * across
        along = from_reduced(geometry, u, 0.0)
        exact = referee.exact_weights(geometry.instance, along)
        if recount(geometry.instance, along).eta_within(eta, geometry.band * geometry.p_norm):
            assert referee.best_density(geometry.instance, exact) <= answer.upper


def test_closed_values_do_not_depend_on_coordinates():
    random = np.random.default_rng(9)
    agents, quality = random.standard_normal((40, 3)), random.standard_normal(3)
    cost, weights = random.uniform(1, 4, 40), random.integers(0, 4, 40).astype(float)
    turn = np.linalg.qr(random.standard_normal((3, 3)))[0]
    order = random.permutation(40)
    rows = random.standard_normal((3, 5))
    basis = np.linalg.qr(rows.T)[0].T
    whole = {"visible": [0, 1, 2]}
    for share in (0.0, 0.4, -0.9, 0.999999):
        values = set()
        for x, q, c, w, seen in (
            (agents, quality, cost, weights, whole),
            ((agents @ turn.T + 100)[order], turn @ quality, cost[order], weights[order], whole),
            (1e-9 * agents, quality, 1e9 * cost, weights, whole),
            (1e9 * agents + 1e8, 1e-9 * quality, 1e-9 * cost, weights, whole),
            (agents @ basis, quality @ basis, cost, weights, {"view": rows}),
        ):
            geometry = reduce(Instance.from_arrays(x, q, cost=c, weights=w, **seen))
            answer = Sweep()(geometry, share * geometry.p_norm, ENDLESS)
            assert answer.status == "optimal"
            values |= {answer.density, answer.upper}
        assert len(values) == 1


def test_weights_of_any_span():
    """Sums of weights that 64 bits cannot hold are rounded up, never down."""
    random = np.random.default_rng(7)
    agents = random.standard_normal((8, 3))
    weights = 10.0 ** random.uniform(-20, 20, 8)
    instance = Instance.from_arrays(
        agents, [1.0, 0.0, 0.0], visible=[0, 1, 2], cost=1.0, weights=weights
    )
    answer = Sweep()(reduce(instance), 0.5, ENDLESS)
    truth = brute_force.best_density(instance, 0.5)
    assert mass(instance, truth.sure_set) <= answer.upper <= 1
    assert answer.density >= mass(instance, truth.sure_set) * (1 - Fraction(1, 10**12))
    assert answer.gap < 1e-15


class TestOddDensities:
    def ask(self, agents, quality, eta, seen=None, **more):
        seen = list(range(len(quality))) if seen is None else seen
        sample = Instance.from_arrays(agents, quality, visible=seen, **{"cost": 1.0, **more})
        return Sweep()(reduce(sample), eta, more.get("budget", ENDLESS))

    def test_one_dimension(self):
        answer = self.ask([[0.0], [0.5], [3.0]], [2.0], 2.0)
        assert answer.status == "optimal"
        assert answer.recount.covered.tolist() == [0, 1]
        assert self.ask([[0.0], [0.5], [3.0]], [2.0], 1.0).status == "infeasible"

    def test_two_dimensions_leave_two_directions(self):
        square = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
        answer = self.ask(square, [1.0, 0.0], 0.8)
        assert answer.status == "optimal"
        assert answer.work == {"directions": 2}
        assert abs(answer.mechanism.weights[1]) == pytest.approx(0.6)
        assert self.ask(square, [1.0, 0.0], 1.1).status == "infeasible"

    @pytest.mark.parametrize("eta", [0.0, 1.0, -1.0, 1 - 1e-13, 1 - 1e-9, 0.999999])
    def test_special_values_of_eta(self, eta):
        agents = np.random.default_rng(3).standard_normal((9, 3))
        answer = self.ask(agents, [1.0, 0.0, 0.0], eta)
        assert answer.recount.eta_within(eta, 1e-12)
        assert answer.status == "optimal"

    @pytest.mark.parametrize("size", [1, 4, 300])
    def test_all_agents_equal(self, size):
        answer = self.ask([[1.0, 2.0, 3.0]] * size, [1.0, 1.0, 0.0], 0.5)
        assert answer.density == answer.upper == 1

    def test_agents_without_weight_do_not_count(self):
        agents = [[0.0, 0.0, 0.0], [0.1, 0.0, 0.0], [5.0, 5.0, 5.0]]
        answer = self.ask(agents, [1.0, 0.0, 0.0], 0.5, weights=[1.0, 1.0, 0.0])
        assert answer.density == answer.upper == 1

    def test_weights_are_never_floored(self):
        """One agent of 0.5, or two of 0.3 + 0.21 = 0.51."""
        agents = [[0.0, 0.0, 0.0], [9.0, 0.0, 0.1], [9.0, 0.1, 0.0]]
        answer = self.ask(agents, [1.0, 0.0, 0.0], 0.9, weights=[0.5, 0.3, 0.21])
        assert answer.recount.covered.tolist() == [1, 2]
        assert answer.density == answer.upper

    @pytest.mark.parametrize("long", [1e3, 1e16, 1e50])
    def test_huge_reach_beside_small_ones(self, long):
        agents = np.random.default_rng(6).standard_normal((12, 3))
        cost = [1 / long, *[2.0] * 11]
        sample = Instance.from_arrays(agents, [1.0, 2.0, -1.0], visible=[0, 1, 2], cost=cost)
        geometry = reduce(sample)
        answer = Sweep()(geometry, 0.3 * geometry.p_norm, ENDLESS)
        truth = brute_force.best_density(sample, 0.3 * geometry.p_norm)
        assert answer.density == answer.upper == mass(sample, truth.sure_set)

    def test_more_dimensions_only_at_the_pole(self):
        geometry = reduce(make_instance("uniform-ball", 20, 4, seed=2))
        with pytest.raises(InputError, match="use milp or cells"):
            Sweep()(geometry, 0.5 * geometry.p_norm, ENDLESS)
        assert Sweep()(geometry, geometry.p_norm, ENDLESS).status == "optimal"
        hidden = Instance.from_arrays(np.eye(4), [0.0, 0, 0, 1], visible=[0, 1, 2], cost=1.0)
        with pytest.raises(InputError, match="use milp or cells"):
            Sweep()(reduce(hidden), 0.0, ENDLESS)

    def test_out_of_time(self):
        geometry = reduce(make_instance("uniform-ball", 60, 3, seed=2))
        answer = Sweep()(geometry, 0.5 * geometry.p_norm, Budget(0.0))
        assert answer.stop is Stop.TIME
        assert 0 < answer.density < answer.upper == 1

    def test_a_second_time_the_same(self):
        geometry = reduce(make_instance("ties", 60, 3, seed=2))
        first, second = (Sweep()(geometry, 0.5 * geometry.p_norm, ENDLESS) for _ in range(2))
        assert (first.mechanism, first.upper) == (second.mechanism, second.upper)
        assert first.oracle == "Sweep()"
        with pytest.raises(AttributeError):
            Sweep().anything = 1

    def test_events_close_in(self):
        events: list[Event] = []
        geometry = reduce(make_instance("uniform-ball", 300, 3, seed=2))
        answer = Sweep()(geometry, 0.5 * geometry.p_norm, Budget(watch=events.append))
        assert [e.lower for e in events] == sorted(e.lower for e in events)
        assert [e.upper for e in events] == sorted((e.upper for e in events), reverse=True)
        assert len(events) > 3
        assert events[-1].lower <= float(answer.density)


def test_a_thousand_agents_close():
    geometry = reduce(make_instance("gaussian-mixture", 1000, 3, seed=1))
    answer = Sweep()(geometry, 0.6 * geometry.p_norm, ENDLESS)
    assert answer.density == answer.upper
    assert answer.seconds < 10
