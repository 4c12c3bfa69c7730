"""Cells, MILP and brute force agree on random samples with every cost; every certificate passes."""

from __future__ import annotations

import numpy as np
import pytest

from mipmech import Budget, Instance, certify, recount, solve
from mipmech.checker import check
from mipmech.model import best_threshold, from_reduced, reduce
from tests import costs_brute_force
from tests.conftest import seeds
from tests.sweep_gain import sweep_gain

GAP = 1e-3


def random_sample(seed):
    """k = 1 … 4, m ≤ 40, ties, weights, a cost or a reach each, prices over six decades."""
    random = np.random.default_rng([seed, 17])
    norm = ("l1", "linf", "l2")[seed % 3]
    k = int(random.integers(1, 5))
    m = int(random.integers(1, 41 if k < 4 else 15))
    n = k + int(random.integers(0, 3))
    agents = random.standard_normal((m, n))
    quality = random.standard_normal(n)
    if random.random() < 0.35:  # ties and duplicates
        agents = np.round(agents * 2) / 2
        quality = np.round(quality * 2) / 2
        quality[0] = quality[0] or 1.0
    effort = None
    if random.random() < 0.75:
        effort = 10.0 ** random.uniform(-3, 3, n)
        agents, quality = agents / effort, quality * effort
    if norm == "l2" and random.random() < 0.5:
        root = random.standard_normal((n, n))
        effort = root @ root.T + 0.2 * np.eye(n)
        effort = (effort + effort.T) / 2
    spread = 10.0 ** random.uniform(-0.5, 1.0, m)
    paid = float(spread[0]) if random.random() < 0.5 else spread
    given = {"cost": paid} if random.random() < 0.6 else {"reach": paid}
    weights = random.integers(0, 4, m) + (np.arange(m) == 0)
    return Instance.from_arrays(
        agents, quality, visible=list(range(k)), norm=norm, effort=effort, weights=weights, **given
    )


def bracket(instance):
    """What the best gain is, by other programs; for l2 by transforming the sample by hand."""
    if instance.costs.norm != "l2":
        return costs_brute_force.best_gain(instance)
    other = certify(costs_brute_force.euclidean(instance), gap=GAP)
    return costs_brute_force.Bracket(float(other.lower), other.upper)


# Many in one test: most take some hundredths of a second.
LOT = 20


@pytest.mark.slow
@pytest.mark.parametrize("lot", seeds(5, 40))
def test_all_agree(lot):
    for seed in range(lot * LOT, (lot + 1) * LOT):
        instance = random_sample(seed)
        found = certify(instance, gap=GAP, budget=Budget(60.0))
        verdict = check(found.content(), instance)
        assert verdict, (seed, verdict)
        assert (found.status, found.level) == ("optimal", "proved"), (seed, found)
        best = bracket(instance)
        room = 1e-9 * best.at_most
        assert float(found.lower) <= best.at_most + room, seed
        assert best.surely <= found.upper + room, seed
        if instance.costs.norm == "l2":
            check_on_a_sphere(instance, found, seed)
            continue
        solved = solve(instance, oracle="milp-soft", budget=Budget(60.0))
        assert solved.complete, (seed, solved)
        assert float(solved.gain) <= best.at_most + room, seed
        assert best.surely <= solved.upper * (1 + 1e-7) + room, seed
        assert solved.gap <= 1e-4, (seed, solved)
        attested = certify(instance, gap=GAP, engine="milp", budget=Budget(60.0))
        assert check(attested.content(), instance), seed
        assert best.surely <= attested.upper * (1 + 1e-7) + room, seed
        dense = solve(instance, oracle="milp", budget=Budget(60.0))
        assert dense.gain <= solved.upper * (1 + 1e-7), seed
        assert best.surely * dense.bound.factor <= float(dense.gain) + 1e-6 * best.at_most, seed


def check_on_a_sphere(instance, found, seed):
    """For l2: an exact sweep of the sample transformed by hand, and rules found by MILPs."""
    if instance.view.rank <= 2:
        exact = sweep_gain(costs_brute_force.euclidean(instance))
        room = 1e-9 * exact.upper
        assert float(found.lower) <= exact.upper + room, seed
        assert float(exact.gain) <= found.upper + room, seed
    size = reduce(instance).p_norm
    etas = size * np.array([1.0, 0.9, 0.7, 0.4] if instance.view.rank > 1 else [1.0])
    one = solve(instance, oracle="milp", grid=etas)
    assert one.complete
    assert float(one.gain) <= found.upper * (1 + 1e-9), seed


@pytest.mark.parametrize("seed", range(40))
def test_prices_are_the_sample_rescaled_by_hand(seed):
    """The same optimum to the last digit that floats allow, rule in the user's units included."""
    random = np.random.default_rng([seed, 29])
    k, m = int(random.integers(1, 4)), int(random.integers(2, 20))
    # Powers of two scale without rounding.
    prices = 2.0 ** random.integers(-12, 12, k + 1)
    agents, quality = random.standard_normal((m, k + 1)), random.standard_normal(k + 1)
    priced = Instance.from_arrays(
        agents / prices, quality * prices, visible=list(range(k)), cost=2.0, effort=prices
    )
    plain = Instance.from_arrays(agents, quality, visible=list(range(k)), cost=2.0)
    one, other = certify(priced, gap=1e-4), certify(plain, gap=1e-4)
    assert float(one.lower) == pytest.approx(float(other.lower), rel=1e-13)
    assert one.upper == pytest.approx(other.upper, rel=1e-13)
    assert one.work == other.work
    weights = np.array(one.mechanism.weights) / prices
    assert weights == pytest.approx(np.array(other.mechanism.weights), abs=1e-13)
    assert one.mechanism.threshold == pytest.approx(other.mechanism.threshold, rel=1e-12, abs=1e-12)
    assert recount(priced, one.mechanism).gain == one.lower


@pytest.mark.parametrize("seed", range(30))
def test_a_matrix_is_the_sample_transformed_by_hand(seed):
    random = np.random.default_rng([seed, 31])
    k, m = int(random.integers(1, 4)), int(random.integers(2, 20))
    n = k + 1
    root = random.standard_normal((n, n))
    matrix = root @ root.T + np.eye(n)
    instance = Instance.from_arrays(
        random.standard_normal((m, n)), random.standard_normal(n), visible=list(range(k)),
        cost=random.uniform(1, 3, m), effort=(matrix + matrix.T) / 2,
    )  # fmt: skip
    one, other = certify(instance), certify(costs_brute_force.euclidean(instance))
    assert one.status == other.status == "optimal"
    assert float(one.lower) <= other.upper * (1 + 1e-9)
    assert float(other.lower) <= one.upper * (1 + 1e-9)


@pytest.mark.parametrize("norm", ["l1", "linf", "l2"])
def test_nothing_beats_the_upper_bound_at_random(norm):
    random = np.random.default_rng(8)
    effort = [0.5, 4.0, 1.0, 2.0]
    instance = Instance.from_arrays(
        random.standard_normal((25, 4)), [1.0, -1.0, 2.0, 0.5], visible=[0, 1, 2], cost=1.5,
        norm=norm, effort=effort,
    )  # fmt: skip
    found, geometry = certify(instance), reduce(instance)
    directions = random.standard_normal((400, 3)) * (random.random((400, 3)) < 0.7)
    for u in directions[np.abs(directions).max(axis=1) > 0]:
        assert best_threshold(instance, from_reduced(geometry, u, 0.0)).gain <= found.upper
