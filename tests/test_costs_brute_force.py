"""The enumeration for l1 and linf against rationals, random search and cases by hand."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mipmech import Instance
from tests import brute_force, costs_brute_force, referee
from tests.samples import instances

NORMS = ("l1", "linf")


def seeing_all(agents, quality, norm, **costs):
    agents = np.array(agents, dtype=float)
    costs = costs if "reach" in costs else {"cost": 1.0, **costs}
    visible = range(agents.shape[1])
    return Instance.from_arrays(agents, quality, norm=norm, visible=visible, **costs)


def drawn(rng, norm, m, k, spread=1.0):
    """Unequal costs, some agents without weight, a hidden feature, prices of this many decades."""
    weights = rng.integers(0, 4, m).astype(float)
    weights[0] = 1.0
    return Instance.from_arrays(
        rng.standard_normal((m, k + 1)),
        rng.standard_normal(k + 1),
        norm=norm,
        effort=10.0 ** rng.uniform(-spread / 2, spread / 2, k + 1),
        visible=range(k),
        cost=rng.choice([0.5, 1.0, 3.0], m),
        weights=weights,
    )


def gains(instance, rules):
    """The best gain along each of these weights w (count, n), over all b; a plain loop over b.

    Rules are graded by the response to them, ties included.
    """
    weight = instance.weights / instance.weights.sum()
    reach = instance.reach
    best = []
    for w in rules:
        norm, step = referee.response_in_floats(instance, w)
        score = (instance.agents - instance.agents.mean(axis=0)) @ w
        distance = score[:, None] + norm * reach[:, None] - score
        tiny = 1e-13 * (np.abs(score).max() + norm * reach.max())
        inside = (distance >= 0) & (distance <= norm * reach + tiny)
        soft = (np.where(inside, distance, 0.0) @ weight).max()
        best.append(max(0.0, float(instance.quality @ step) * soft))
    return np.array(best)


def random_rules(instance, rng, count):
    """Directions of all kinds: many with equal |w_j|/e_j, or with a weight of 0."""
    columns = list(instance.view.columns)
    effort = instance.costs.effort
    prices = (np.ones(instance.width) if effort is None else effort)[columns]
    u = rng.standard_normal((count, len(columns)))
    some = rng.random(u.shape) < 0.3
    u = np.where(some & (rng.random((count, 1)) < 0.3), np.sign(u) * np.abs(u).max(), u)
    u = np.where(some & (rng.random((count, 1)) < 0.2), 0.0, u)
    u = u[u.any(axis=1)]
    weights = np.zeros((len(u), instance.width))
    weights[:, columns] = u * prices
    return weights


# ---- by hand ----


def test_two_agents_in_l1_by_hand():
    """Agents at (0, 0) and (1, 1), reach 1, p = (1, 2).

    On u₂ = 1 both are at the same score where u₁ = −1: both go as far as 1, the gain is 2.
    """
    instance = seeing_all([[0, 0], [1, 1]], [1, 2], "l1")
    assert costs_brute_force.best_gain_exactly(instance) == 2
    found = costs_brute_force.best_gain(instance)
    assert found.surely <= 2 <= found.at_most <= 2 + 1e-8
    # A price of 4 leaves the second feature a rate of ½; the first has 1, and on its facet both
    # have one score at u = (1, −¼): 0, and 1 − ¼·4.
    dear = seeing_all([[0, 0], [1, 1]], [1, 2], "l1", effort=[1, 4])
    assert costs_brute_force.best_gain_exactly(dear) == 1


def test_one_feature_by_hand():
    """Quality falls in x, so u = −1: scores 0, −1 and −3 with reach 2.

    b = 2 moves the first by 2, b = 1 the first two by 1 and 2, b = −1 the last two by 0 and 2.
    """
    for norm in NORMS:
        instance = seeing_all([[0], [1], [3]], [-1], norm, reach=2.0)
        assert costs_brute_force.best_gain_exactly(instance) == 1
        found = costs_brute_force.best_gain(instance)
        assert found.surely <= 1 <= found.at_most <= 1 + 1e-8


def test_a_supremum_in_linf_that_no_rule_attains():
    """Agents at (0, 0) and (0, 1), p = (2, 1): u = (1, 0) brings both together, at a rate of 3.

    Rules (1 − ε, ε) gain almost 3; (1, 0) itself leaves the second feature where it is, for 2.
    """
    instance = seeing_all([[0, 0], [0, 1]], [2, 1], "linf")
    assert costs_brute_force.best_gain_exactly(instance) == 3
    near, there = gains(instance, np.array([[1 - 1e-9, 1e-9], [1.0, 0.0]]))
    assert near == pytest.approx(3, abs=1e-8)
    assert there == 2


def test_a_tie_in_l1_is_for_the_better_feature():
    """At u = (1, 1) agents may work on either: they take the second, of rate 5."""
    instance = seeing_all([[0, 0], [1, -1]], [1, 5], "l1")
    (tied,) = gains(instance, np.array([[1.0, 1.0]]))
    assert tied == 5 == costs_brute_force.best_gain_exactly(instance)


def test_nothing_to_gain():
    instance = Instance.from_arrays([[0.0, 1.0]], [0.0, 1.0], norm="l1", visible=[0], cost=1.0)
    assert costs_brute_force.best_gain(instance).at_most == 0
    assert costs_brute_force.best_gain_exactly(instance) == 0


@pytest.mark.parametrize("norm", NORMS)
def test_one_place(norm):
    """All agents are equal: everybody goes to the end of the reach, at the best rate."""
    instance = seeing_all([[0.1, 0.7]] * 5, [3, 4], norm, cost=0.5)
    best = {"l1": 4, "linf": 7}[norm] * 2
    found = costs_brute_force.best_gain(instance)
    assert found.surely <= best <= found.at_most
    assert found.surely == pytest.approx(found.at_most, rel=1e-11)


@pytest.mark.parametrize("norm", NORMS)
def test_the_rates_of_facets(norm):
    instance = seeing_all([[0, 0]], [3, -4], norm, effort=[2, 0.5])
    rates = [facet.rate for facet in costs_brute_force.facets(instance)]
    # p = (3/2, −8): for l1 each alone, for linf with all signs.
    assert rates == {"l1": [8, 1.5, -1.5, -8], "linf": [9.5, 6.5, -6.5, -9.5]}[norm]


def test_density_on_one_facet():
    """Three agents on a line of slope 1: only u = (1, −1) has all of them at one score."""
    instance = seeing_all([[0, 0], [4, 4], [8, 8]], [1, 1], "l1")
    first = next(f for f in costs_brute_force.facets(instance) if f.normal.tolist() == [1, 0])
    found = costs_brute_force.best_density(instance, first)
    assert (found.surely, found.at_most) == pytest.approx((1, 1))
    # linf: in the orthant (1, −1) they meet at (½, −½), in the orthant (1, 1) scores are apart.
    instance = seeing_all([[0, 0], [4, 4], [8, 8]], [1, 1], "linf")
    sides = {tuple(f.normal): f for f in costs_brute_force.facets(instance)}
    assert costs_brute_force.best_density(instance, sides[1, -1]).surely == pytest.approx(1)
    assert costs_brute_force.best_density(instance, sides[1, 1]).at_most == pytest.approx(1 / 3)
    # Margins that only touch, at u = (1, 0): one reach apart, which clearance rules out.
    apart = seeing_all([[0, 0], [1, 0], [1, 9]], [1, 1], "l1")
    first = next(f for f in costs_brute_force.facets(apart) if f.normal.tolist() == [1, 0])
    found = costs_brute_force.best_density(apart, first)
    assert found.surely == pytest.approx(2 / 3)
    assert found.at_most == pytest.approx(1)


# ---- rationals ----


@settings(max_examples=60)
@given(instances(max_agents=4, max_width=3, kinds=("visible",), norms=NORMS))
def test_the_bracket_holds_the_exact_gain(instance):
    """Ties, duplicates, agents without weight, offsets of 3e7, prices over six decades."""
    exact = costs_brute_force.best_gain_exactly(instance)
    found = costs_brute_force.best_gain(instance)
    # Coordinates about the middle are rounded once; the bracket is of the rounded ones.
    rounding = Fraction(1e-12) * exact
    assert found.surely <= exact + rounding
    assert exact <= found.at_most + rounding


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("m", "k"), [(8, 1), (6, 2), (4, 3), (2, 4)])
def test_the_bracket_is_tight(norm, m, k):
    rng = np.random.default_rng(10 * m + k)
    for _ in range(3):
        instance = drawn(rng, norm, m, k)
        exact = costs_brute_force.best_gain_exactly(instance)
        found = costs_brute_force.best_gain(instance)
        assert found.surely <= exact <= found.at_most
        assert found.at_most <= found.surely * (1 + 1e-6)


# ---- search ----


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    ("m", "k", "count"), [(40, 1, 4), (40, 2, 1000), (25, 3, 2000), (12, 4, 2000)]
)
def test_no_random_rule_is_better(norm, m, k, count):
    rng = np.random.default_rng(m + k)
    for spread in (0.0, 1.0, 6.0):
        instance = drawn(rng, norm, m, k, spread)
        found = costs_brute_force.best_gain(instance)
        assert found.surely <= found.at_most <= found.surely * (1 + 1e-5)
        assert gains(instance, random_rules(instance, rng, count)).max() <= found.at_most


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("k", [2, 3])
def test_a_local_search_comes_near(norm, k):
    rng = np.random.default_rng(70 + k)
    for _ in range(3):
        instance = drawn(rng, norm, 8, k)
        found = costs_brute_force.best_gain(instance)
        rules = random_rules(instance, rng, 2000)
        values = gains(instance, rules)
        for turn in np.geomspace(0.3, 1e-5, 25):
            kept = rules[np.argsort(values)[-40:]]
            size = np.abs(kept).max(axis=0) * (kept != 0).any(axis=0)
            moved = np.repeat(kept, 10, axis=0)
            moved = moved + turn * size * rng.standard_normal(moved.shape)
            rules = np.concatenate([kept, moved])
            values = gains(instance, rules)
        assert 0.99 * found.surely <= values.max() <= found.at_most


@pytest.mark.parametrize("norm", NORMS)
def test_units_and_order_do_not_matter(norm):
    """A feature in other units has another price; translation and order change nothing."""
    rng = np.random.default_rng(5)
    instance = drawn(rng, norm, 10, 3)
    found = costs_brute_force.best_gain(instance)
    units = 2.0 ** rng.integers(-10, 10, 4)
    order = rng.permutation(10)
    other = Instance.from_arrays(
        (instance.agents * units + 3.0)[order],
        instance.quality / units,
        norm=norm,
        effort=instance.costs.effort / units,
        visible=range(3),
        cost=instance.cost[order],
        weights=instance.weights[order],
    )
    again = costs_brute_force.best_gain(other)
    assert again.surely == pytest.approx(found.surely, rel=1e-8)
    assert again.at_most == pytest.approx(found.at_most, rel=1e-8)


@pytest.mark.parametrize("norm", NORMS)
def test_lattices(norm):
    """Ties everywhere: exact for a small one; agents that count twice are two agents."""
    square = [[i, j] for i in range(2) for j in range(3)]
    small = seeing_all(square, [2, 1], norm)
    exact = costs_brute_force.best_gain_exactly(small)
    found = costs_brute_force.best_gain(small)
    assert found.surely <= exact <= found.at_most <= found.surely * (1 + 1e-7)
    cube = [[i, j, k] for i in range(3) for j in range(3) for k in range(3)]
    twice = seeing_all(cube, [3, 2, 1], norm, weights=[2.0] * 13 + [1.0] * 14)
    found = costs_brute_force.best_gain(twice)
    again = costs_brute_force.best_gain(seeing_all(cube + cube[:13], [3, 2, 1], norm))
    assert again.surely == pytest.approx(found.surely, rel=1e-9)
    assert again.at_most == pytest.approx(found.at_most, rel=1e-9)
    assert found.at_most <= found.surely * (1 + 1e-7)
    rules = random_rules(twice, np.random.default_rng(1), 2000)
    assert gains(twice, rules).max() <= found.at_most


def test_densities_are_in_brackets():
    rng = np.random.default_rng(6)
    for norm in NORMS:
        instance = drawn(rng, norm, 12, 3)
        weight = instance.weights / instance.weights.sum()
        columns = list(instance.view.columns)
        z = instance.agents[:, columns] * instance.costs.effort[columns]
        for facet in costs_brute_force.facets(instance):
            found = costs_brute_force.best_density(instance, facet)
            soft = costs_brute_force.best_soft_density(instance, facet)
            assert found.surely <= found.at_most <= 1 + 1e-12
            for _ in range(200):
                u = rng.uniform(facet.low, facet.high)
                if norm == "l1":
                    u = np.where(facet.normal != 0, facet.normal, u)
                u = u / (u @ facet.normal)
                apart = (z @ u)[:, None] - z @ u
                distance = apart + instance.reach[:, None]
                inside = (distance >= 0) & (distance <= instance.reach)
                assert (inside @ weight).max() <= found.at_most
                assert (np.where(inside, distance, 0) @ weight).max() <= soft.at_most


# ---- l2 made Euclidean ----


@given(instances(max_agents=6, max_width=3, norms=("l2",)), st.integers(0, 10**6))
def test_euclidean_costs_in_other_coordinates(instance, seed):
    """Any rule has the same gain there: w becomes L⁻¹w, and moves become Lᵀ times them."""
    other = costs_brute_force.euclidean(instance)
    assert other.costs.effort is None
    effort = np.ones(instance.width) if instance.costs.effort is None else instance.costs.effort
    root = np.diag(effort) if effort.ndim == 1 else np.linalg.cholesky(effort)
    rng = np.random.default_rng(seed)
    w = instance.view.matrix.T @ rng.standard_normal(len(instance.view.matrix))
    norm, step = referee.response_in_floats(instance, w)
    there = np.linalg.solve(root, w)
    assert np.linalg.norm(there) == pytest.approx(norm)
    assert root.T @ step == pytest.approx(there / norm**2, abs=1e-9 / norm)
    assert other.quality @ there / norm**2 == pytest.approx(
        instance.quality @ step, abs=1e-9 * np.abs(instance.quality @ np.diag(step)).sum() + 1e-300
    )
    assert other.agents @ there == pytest.approx(
        instance.agents @ w, rel=1e-9, abs=1e-9 * norm * np.abs(instance.agents @ root).max()
    )
    rows, seen = np.linalg.solve(root, instance.view.matrix.T).T, other.view.matrix
    assert np.linalg.matrix_rank(np.vstack([rows, seen])) == other.view.rank


def test_prices_keep_columns_and_a_matrix_becomes_a_view():
    agents = [[1.0, 2.0, 3.0]]
    priced = Instance.from_arrays(agents, [1, 2, 3], effort=[2, 4, 8], visible=[0, 2], reach=2.0)
    other = costs_brute_force.euclidean(priced)
    assert other.agents.tolist() == [[2, 8, 24]]
    assert other.quality.tolist() == [0.5, 0.5, 0.375]
    assert other.view.columns == (0, 2)
    assert other.reach.tolist() == [2]
    matrix = Instance.from_arrays(
        agents, [1, 2, 3], effort=[[4, 2, 0], [2, 2, 0], [0, 0, 1]], visible=[1], cost=1.0
    )
    other = costs_brute_force.euclidean(matrix)  # L = [[2, 0, 0], [1, 1, 0], [0, 0, 1]]
    assert other.agents.tolist() == [[4, 2, 3]]
    assert other.quality.tolist() == [0.5, 1.5, 3]
    assert other.view.matrix.tolist() == [[0, 1, 0]]


def test_priced_gain_in_two_columns():
    """The best gain after the change of coordinates, found by a sweep and by a grid of brackets."""
    rng = np.random.default_rng(8)
    instance = Instance.from_arrays(
        rng.standard_normal((8, 2)), [1.0, 2.0], effort=[3.0, 0.5], visible=[0, 1], cost=1.0
    )
    best = referee.best_gain(costs_brute_force.euclidean(instance))
    lower, upper = brute_force.best_gain_bracket(costs_brute_force.euclidean(instance))
    assert lower <= best <= upper
    angles = np.linspace(0, 2 * math.pi, 4000)
    rules = np.column_stack([3 * np.cos(angles), 0.5 * np.sin(angles)])
    assert 0.99 * best <= gains(instance, rules).max() <= best * (1 + 1e-9)


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("size", [1e-20, 1e20])
def test_the_size_of_the_data_does_not_matter(norm, size):
    random = np.random.default_rng(7)
    agents = random.standard_normal((9, 2))
    given = {"quality": [1.0, -0.5], "visible": [0, 1], "norm": norm}
    one = costs_brute_force.best_gain(Instance.from_arrays(agents, cost=2.0, **given))
    other = costs_brute_force.best_gain(
        Instance.from_arrays(agents * size, cost=2.0 / size, **given)
    )
    assert other.surely == pytest.approx(one.surely * size, rel=1e-7)
    assert other.at_most == pytest.approx(one.at_most * size, rel=1e-7)
