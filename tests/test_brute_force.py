"""The enumeration against sampling, a sweep of the circle, hand-made cases and the referee."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mipmech import Instance

from . import brute_force, referee
from .samples import instances


def seeing_all(agents, quality, cost=1.0, weights=None):
    agents = np.array(agents, dtype=float)
    visible = range(agents.shape[1])
    return Instance.from_arrays(agents, quality, cost=cost, weights=weights, visible=visible)


def drawn(rng, m, k, costs=(0.5, 1.0, 2.0)):
    return seeing_all(
        rng.standard_normal((m, k)),
        rng.standard_normal(k),
        cost=rng.choice(costs, m),
        weights=rng.integers(1, 5, m).astype(float),
    )


def directions(rng, p, eta, count):
    """Random unit u with u·p = η."""
    v = rng.standard_normal((count, len(p)))
    size = np.linalg.norm(p)
    if size == 0:
        return v / np.linalg.norm(v, axis=1, keepdims=True)
    pole = p / size
    return at_eta(v, pole, eta / size)


def at_eta(v, pole, cosine):
    v = v - np.outer(v @ pole, pole)
    length = np.linalg.norm(v, axis=1, keepdims=True)
    return cosine * pole + math.sqrt(max(0, 1 - cosine**2)) * v / np.maximum(length, 1e-300)


def densities(instance, u, room=0.0):
    """The best density of each direction; room shortens (or lengthens) every margin's ends."""
    weight = instance.weights / instance.weights.sum()
    scores = (instance.agents - instance.agents.mean(axis=0)) @ u.T
    reach = 1 / instance.cost
    best = np.zeros(len(u))
    for i in range(len(reach)):
        distance = scores[i] + room - scores
        inside = (distance >= room - 1e-13) & (distance <= (reach - room + 1e-13)[:, None])
        best = np.maximum(best, weight @ inside)
    return best


def soft_densities(instance, u):
    weight = instance.weights / instance.weights.sum()
    scores = (instance.agents - instance.agents.mean(axis=0)) @ u.T
    reach = 1 / instance.cost
    best = np.zeros(len(u))
    for i in range(len(reach)):
        distance = scores[i] + reach[i] - scores
        inside = (distance >= 0) & (distance <= reach[:, None] + 1e-13)
        best = np.maximum(best, weight @ np.where(inside, distance, 0))
    return best


def check_witness(instance, eta, found):
    assert found.surely <= found.at_most
    assert found.tied == (found.surely != found.at_most)
    if not found.sure_set:
        return
    graded = referee.truth(instance, found.direction, found.threshold)
    assert all(graded.inside[i] for i in found.sure_set)
    assert found.surely <= float(graded.density) <= found.at_most
    u = np.array([float(c) for c in found.direction])
    p = np.where(np.isin(np.arange(len(u)), instance.view.columns), instance.quality, 0)
    assert u @ p == pytest.approx(eta, abs=1e-12 * np.linalg.norm(p))
    assert np.linalg.norm(u) == pytest.approx(1, abs=1e-14)


# ---- hand-made ----


def test_two_agents_at_exactly_the_reach_are_a_tie():
    found = brute_force.best_density(seeing_all([[0, 0], [0, 1]], [1, 0]), 0.0)
    assert (found.surely, found.at_most, found.tied) == (0.5, 1.0, True)
    assert found.most_set == (0, 1)
    assert len(found.sure_set) == 1


def test_two_agents_within_reach_and_out_of_it():
    within = brute_force.best_density(seeing_all([[0, 0], [0, 1]], [1, 0], cost=0.9), 0.0)
    assert (within.surely, within.at_most, within.tied) == (1.0, 1.0, False)
    outside = brute_force.best_density(seeing_all([[0, 0], [0, 1]], [1, 0], cost=1.1), 0.0)
    assert (outside.surely, outside.at_most, outside.tied) == (0.5, 0.5, False)


def test_a_tie_only_within_the_tolerance():
    for beyond, surely, at_most in (
        (1e-6, 0.5, 0.5),
        (1e-11, 0.5, 1),
        (-1e-11, 0.5, 1),
        (-1e-6, 1, 1),
    ):
        found = brute_force.best_density(seeing_all([[0, 0], [0, 1 + beyond]], [1, 0]), 0.0)
        assert (found.surely, found.at_most) == (surely, at_most)


def test_the_heavier_set_wins_not_the_larger():
    agents = [[0, 0], [0, 5], [0, 5.2]]
    pair = brute_force.best_density(seeing_all(agents, [1, 0], weights=[0.5, 0.3, 0.21]), 0.0)
    assert pair.sure_set == pair.most_set == (1, 2)
    assert pair.surely == pytest.approx(0.51 / 1.01)
    single = brute_force.best_density(seeing_all(agents, [1, 0], weights=[0.5, 0.3, 0.19]), 0.0)
    assert single.sure_set == single.most_set == (0,)


def test_agents_without_weight_keep_their_neighbours_numbers():
    agents = [[0, 9], [0, 0], [0, 9.5], [0, 0.5], [0, 0.7]]
    found = brute_force.best_density(seeing_all(agents, [1, 0], weights=[1, 0, 1, 0, 1]), 0.0)
    assert found.sure_set == (0, 2)


def test_a_lattice_of_nine():
    """Two full rows are exactly one reach wide; the two middle diagonals fit with room."""
    grid = [[0, i, j] for i in range(3) for j in range(3)]
    found = brute_force.best_density(seeing_all(grid, [1, 0, 0]), 0.0)
    assert (found.surely, found.at_most) == (5 / 9, 6 / 9)
    flat = brute_force.best_density(seeing_all([[i, j] for _, i, j in grid], [1, 0]), 0.0)
    assert (flat.surely, flat.at_most) == (3 / 9, 6 / 9)


def test_a_cube_of_eight():
    """Along an axis the cube is exactly one reach wide, otherwise wider."""
    cube = [[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)]
    found = brute_force.best_density(seeing_all(cube, [1, 0, 0]), 0.0)
    assert found.at_most == 1
    # η = 0 sees a square of four double corners; at 45° three of them are √½ wide.
    assert found.surely == 6 / 8


def test_one_column():
    instance = seeing_all([[0], [1], [3]], [-2], cost=[1, 0.4, 0.4])
    up = brute_force.best_density(instance, -2.0)  # u = 1
    assert (up.surely, up.at_most, up.most_set) == (2 / 3, 2 / 3, (1, 2))
    down = brute_force.best_density(instance, 2.0)  # u = −1: 3 and 1 are covered up to −0.5
    assert (down.surely, down.sure_set) == (2 / 3, (1, 2))
    assert brute_force.best_density(instance, 0.5) is None
    assert brute_force.best_soft_density(instance, 0.5) is None
    # u = 1: b = 3.5 leaves the second agent at 2.5 and the third at 0.5.
    assert brute_force.best_soft_density(instance, -2.0) == pytest.approx((2.5 + 0.5) / 3)


def test_quality_unseen():
    """p = 0: every direction is at η = 0, and none elsewhere."""

    def unseen(agents, cost=1.0):
        agents = np.column_stack([np.arange(len(agents)), agents])
        seen = range(1, agents.shape[1])
        return Instance.from_arrays(agents, [1] + [0] * len(seen), cost=cost, visible=seen)

    one = unseen([0, 1.0, 1.5], cost=[2, 2, 0.5])
    # u = −1: scores 0, −1, −1.5 with reach ½, ½, 2: all but the first.
    assert brute_force.best_density(one, 0.0).sure_set == (1, 2)
    assert brute_force.best_density(one, 0.1) is None
    assert brute_force.best_gain_bracket(one) == (0, 0)
    plane = unseen([[0, 0], [3, 4], [6, 8]])
    assert brute_force.best_density(plane, 0.0).surely == 1
    assert brute_force.best_soft_density(plane, 0.0) == pytest.approx(1)


def test_infeasible_and_extreme_angles():
    instance = seeing_all([[0, 0], [0.5, 9], [3, 0]], [3, 4])
    assert brute_force.best_density(instance, 5.001) is None
    assert brute_force.best_soft_density(instance, -5.001) is None
    at_pole = brute_force.best_density(instance, 5.0)  # scores 0, 7.5, 1.8
    assert (at_pole.surely, at_pole.at_most) == (1 / 3, 1 / 3)
    assert [float(c) for c in at_pole.direction] == pytest.approx([0.6, 0.8])


def test_one_place():
    found = brute_force.best_density(seeing_all([[0.1, 0.7, 0.3]] * 4, [1, 2, 3], cost=7.0), 1.0)
    assert (found.surely, found.at_most) == (1, 1)
    soft = brute_force.best_soft_density(
        seeing_all([[0.1, 0.7, 0.3]] * 4, [1, 2, 3], cost=7.0), 1.0
    )
    assert soft == pytest.approx(1 / 7)


# ---- density ----


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "count", "hits"), [(2, 10, 8), (3, 2000, 8), (4, 40_000, 8), (5, 200_000, 6)]
)
def test_density_against_sampling(k, count, hits):
    rng = np.random.default_rng(k)
    reached = 0
    for _ in range(8):
        instance = drawn(rng, 8, k)
        eta = rng.uniform(-0.9, 0.9) * np.linalg.norm(instance.quality)
        found = brute_force.best_density(instance, eta)
        check_witness(instance, eta, found)
        sampled = densities(instance, directions(rng, instance.quality, eta, count)).max()
        assert sampled <= found.at_most + 1e-12
        reached += sampled >= found.surely - 1e-12
    assert reached >= hits


def test_density_against_a_sweep_of_the_circle():
    """Three columns: the best set changes only where two ends meet, and one angle between tells."""
    rng = np.random.default_rng(3)
    for _ in range(15):
        instance = drawn(rng, 9, 3)
        p = instance.quality
        cosine = rng.uniform(-0.9, 0.9)
        pole = p / np.linalg.norm(p)
        basis = np.linalg.svd(pole[None])[2][1:]
        z = instance.agents
        start, slope = cosine * z @ pole, math.sqrt(1 - cosine**2) * z @ basis.T
        angles = [0.0, 2 * math.pi]
        for i in range(len(z)):
            for j in range(i):
                x, y = slope[i] - slope[j]
                for e in (0, 1 / instance.cost[i]):
                    for f in (0, 1 / instance.cost[j]):
                        level = (start[j] + f - start[i] - e) / math.hypot(x, y)
                        if abs(level) <= 1:
                            turn, phase = math.acos(level), math.atan2(y, x)
                            angles += [(phase + turn) % math.tau, (phase - turn) % math.tau]
        angles = np.sort(angles)
        middle = (angles[1:] + angles[:-1]) / 2
        v = np.column_stack([np.cos(middle), np.sin(middle)]) @ basis
        swept = densities(instance, at_eta(v, pole, cosine)).max()
        found = brute_force.best_density(instance, cosine * np.linalg.norm(p))
        assert not found.tied
        assert found.surely == pytest.approx(swept, abs=1e-12)


@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_planted_sets_are_found(k):
    """Agents on both ends of their slabs, at one direction: more than d + 1 of them meet there."""
    rng = np.random.default_rng(10 + k)
    for _ in range(5):
        p = rng.standard_normal(k)
        u = rng.standard_normal(k)
        u /= np.linalg.norm(u)
        agents = 3 * rng.standard_normal((12, k))
        reach = rng.choice([0.25, 0.5], 12)
        place = np.where(np.arange(12) % 2, 0, reach)
        planted = agents - np.outer(agents @ u + place, u)
        planted[8:] = agents[8:]
        instance = seeing_all(planted, p, cost=1 / reach)
        found = brute_force.best_density(instance, u @ p)
        check_witness(instance, u @ p, found)
        assert found.at_most >= 8 / 12
        inward = np.where(np.arange(12) % 2, 1e-5, reach - 1e-5)
        planted[:8] = (agents - np.outer(agents @ u + inward, u))[:8]
        assert (
            brute_force.best_density(seeing_all(planted, p, cost=1 / reach), u @ p).surely >= 8 / 12
        )


@pytest.mark.parametrize("k", [3, 4, 5])
def test_density_does_not_see_rotation_translation_or_scale(k):
    rng = np.random.default_rng(20 + k)
    for _ in range(4):
        instance = drawn(rng, 9, k)
        p = instance.quality
        eta = 0.4 * np.linalg.norm(p)
        found = brute_force.best_density(instance, eta)
        turn = np.linalg.qr(rng.standard_normal((k, k)))[0]
        others = [
            seeing_all(instance.agents @ turn, p @ turn, instance.cost, instance.weights),
            seeing_all(instance.agents + 1e4, p, instance.cost, instance.weights),
            seeing_all(instance.agents * 1e6, p, instance.cost / 1e6, instance.weights),
            seeing_all(instance.agents * 1e-6, p, instance.cost * 1e6, instance.weights),
        ]
        for other in others:
            again = brute_force.best_density(other, eta)
            assert (again.surely, again.at_most) == (found.surely, found.at_most)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.data())
def test_density_on_troublesome_instances(data):
    instance = data.draw(instances(max_agents=8, max_width=4, kinds=("visible",)))
    columns = list(instance.view.columns)
    p = instance.quality[columns]
    size = float(np.linalg.norm(p))
    share = data.draw(st.sampled_from([0.0, 0.0, 0.5, -0.3, 1.0]))
    found = brute_force.best_density(instance, share * size)
    if len(columns) == 1 and size > 0 and share < 1:
        assert found is None
        return
    check_witness(instance, share * size, found)
    for u in directions(np.random.default_rng(0), p, share * size, 5):
        w = [Fraction(0)] * len(instance.quality)
        for j, c in zip(columns, u, strict=True):
            w[j] = Fraction(float(c))
        assert float(referee.best_density(instance, w)) <= found.at_most
    if len(instance) <= 5:
        soft = brute_force.best_soft_density(instance, share * size)
        spread = np.abs(instance.agents - instance.agents.mean(axis=0)).max()
        slack = 1e-12 * (1 + spread)
        assert soft <= found.at_most / float(instance.cost.min()) + slack
        for u in directions(np.random.default_rng(1), p, share * size, 3):
            w = [Fraction(0)] * len(instance.quality)
            for j, c in zip(columns, u, strict=True):
                w[j] = Fraction(float(c))
            length = math.sqrt(float(referee.dot(w, w)))
            assert float(referee.best_soft_density(instance, w)) / length <= soft + slack


# ---- soft density ----


def polished(instance, rng, eta, count):
    """The best of random directions, then smaller and smaller random turns of the ten best."""
    p = instance.quality
    pole, size = p / np.linalg.norm(p), np.linalg.norm(p)
    u = directions(rng, p, eta, count)
    values = soft_densities(instance, u)
    sampled = values.max()
    u = u[np.argsort(values)[-10:]]
    for turn in np.geomspace(0.3, 1e-7, 60):
        tried = np.repeat(u, 40, axis=0)
        tried = at_eta(tried + turn * rng.standard_normal(tried.shape), pole, eta / size)
        u = np.concatenate([u, tried])
        u = u[np.argsort(soft_densities(instance, u))[-10:]]
    return sampled, soft_densities(instance, u).max()


@pytest.mark.parametrize("k", [2, 3, 4])
def test_soft_density_against_a_local_search(k):
    rng = np.random.default_rng(30 + k)
    for _ in range(6):
        instance = drawn(rng, 6, k)
        eta = rng.uniform(-0.9, 0.9) * np.linalg.norm(instance.quality)
        exact = brute_force.best_soft_density(instance, eta)
        sampled, local = polished(instance, rng, eta, 4000)
        assert sampled <= local <= exact + 1e-9
        assert local >= exact * (1 - 1e-4)


def test_soft_density_by_hand():
    """Scores 0 and t with t in [−1, 1]: both at the far end of their reach needs t = 1 − ½."""
    instance = seeing_all([[0, 0, 0], [0, 1, 0]], [1, 0, 0], cost=[1, 2])
    assert brute_force.best_soft_density(instance, 0.0) == pytest.approx(0.75, abs=1e-12)
    # At the ends of what v can do: reach 2 and 1 ask for t = 1, at one v only.
    tangent = seeing_all([[0, 0, 0], [0, 1, 0]], [1, 0, 0], cost=[0.5, 1])
    assert brute_force.best_soft_density(tangent, 0.0) == pytest.approx(1.5, abs=1e-12)
    # Out of what v can do: reach 3 and 1 with t ≤ 1 leave b = 2, distances 2 and 1.
    beyond = seeing_all([[0, 0, 0], [0, 1, 0]], [1, 0, 0], cost=[1 / 3, 1])
    assert brute_force.best_soft_density(beyond, 0.0) == pytest.approx(1.5, abs=1e-12)


def test_soft_density_where_rounding_decides():
    """Both agents at the ends of their reach: 2 and ½. The two ends differ only by rounding."""
    instance = seeing_all([[2, 2, 0], [-2, 2, -2]], [1, 0, 1], cost=[0.5, 2])
    for eta in np.linspace(-0.85, -0.15, 50):
        assert brute_force.best_soft_density(instance, eta) == pytest.approx(1.25, rel=1e-12)


def test_soft_density_of_two_columns_against_the_referee():
    rng = np.random.default_rng(40)
    for _ in range(10):
        instance = drawn(rng, 6, 2)
        p = instance.quality
        cosine = rng.uniform(-0.9, 0.9)
        pole = p / np.linalg.norm(p)
        across = math.sqrt(1 - cosine**2) * np.array([-pole[1], pole[0]])
        both = [[Fraction(float(c)) for c in cosine * pole + s * across] for s in (1, -1)]
        expected = max(float(referee.best_soft_density(instance, w)) for w in both)
        found = brute_force.best_soft_density(instance, cosine * np.linalg.norm(p))
        assert found == pytest.approx(expected, rel=1e-12)


# ---- gain ----


@pytest.mark.parametrize("k", [1, 2])
def test_gain_against_the_referee(k):
    rng = np.random.default_rng(50 + k)
    for _ in range(8):
        instance = drawn(rng, 10, k)
        lower, upper = brute_force.best_gain_bracket(instance, gap=1e-5)
        assert upper <= lower * (1 + 1.1e-5)
        assert lower - 1e-12 <= referee.best_gain(instance) <= upper + 1e-12


def test_coarse_brackets_contain_the_gain():
    """Nothing is split: the bound for a whole cell has to hold."""
    rng = np.random.default_rng(55)
    for _ in range(60):
        instance = drawn(rng, 3, 2, costs=(0.5, 1.0, 5.0))
        gain = referee.best_gain(instance)
        for steps in (1, 3, 10):
            lower, upper = brute_force.best_gain_bracket(instance, steps, gap=1e9)
            assert lower <= gain * (1 + 1e-9)
            assert upper >= gain * (1 - 1e-9)


def test_gain_does_not_depend_on_the_first_grid():
    rng = np.random.default_rng(60)
    for _ in range(4):
        instance = drawn(rng, 12, 3, costs=(1.0, 3.0))
        brackets = [brute_force.best_gain_bracket(instance, steps) for steps in (1, 5, 16)]
        assert all(upper <= lower * 1.0011 for lower, upper in brackets)
        assert max(lower for lower, _ in brackets) <= min(upper for _, upper in brackets)
        # Cut short, it is wider but true.
        lower, upper = brute_force.best_gain_bracket(instance, 2, most_cells=10)
        assert lower <= brackets[0][1]
        assert upper >= brackets[0][0]


def test_flat_gains_are_bounded_too():
    """Two agents far apart for their reach, the heavier alone is best: flat around u = p̂."""
    instance = seeing_all([[0, -2, 1], [-1, 0, 1]], [0, 1, 1], cost=10.0, weights=[9, 1])
    lower, upper = brute_force.best_gain_bracket(instance)
    assert lower <= math.sqrt(2) * 0.09 <= upper <= lower * 1.0011


@pytest.mark.slow
def test_gain_against_soft_densities():
    """Gain is η times the best soft density at η, at the best η."""
    rng = np.random.default_rng(70)
    for _ in range(2):
        instance = drawn(rng, 5, 3)
        size = np.linalg.norm(instance.quality)
        lower, upper = brute_force.best_gain_bracket(instance)
        etas = size * np.cos(np.linspace(0, math.pi / 2, 60))
        gains = [eta * brute_force.best_soft_density(instance, eta) for eta in etas]
        assert 0.97 * lower <= max(gains) <= upper
