"""The cells engine against the sweep, the MILP and the brute force: no interval may be false.

A certificate claims [lower, upper] for the greatest gain, an answer [density, upper] at η. Here
are random instances with every kind of trouble, odd cases on purpose, and what must not depend on
coordinates, threads or time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from mipmech import (
    Budget,
    InputError,
    Instance,
    Mechanism,
    best_threshold,
    certify,
    certify_density,
    make_instance,
)
from mipmech.budget import Event, Stop
from mipmech.model import from_reduced, reduce
from mipmech.oracles.cells.engine import density_search
from mipmech.oracles.cells.search import FIRST_BUDGET
from mipmech.oracles.milp.engine import soft_bound
from mipmech.oracles.registry import oracle_named
from tests import brute_force
from tests.conftest import ROOT, seeds
from tests.sweep_gain import sweep_gain

GAP = 1e-6
# Ordinary instances take far less; what takes longer is left with a gap, and noticed.
PATIENCE = Budget(seconds=15.0)


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """The first call compiles, which may take longer than anybody is patient here."""
    certify(make_instance("ties", 12, 2, seed=1), gap=0.5)


def test_the_last_blocks_end_with_the_time():
    """A block's budget shrinks as the deadline nears, at the pace seen; never without a limit."""
    geometry = reduce(make_instance("uniform-ball", 40, 4, seed=1))

    def search(seconds):
        return density_search(geometry, 0.5 * geometry.p_norm, Budget(seconds).start(), most=0)[0]

    endless, limited = search(math.inf), search(1000.0)
    for found in (endless, limited):
        assert found._in_time(3_000_000) == 3_000_000  # nothing seen yet
        found.seen = 10**6
        found._begun = found.timer.seconds - 100.0  # so 10⁴ agents a second
    assert endless._in_time(3_000_000_000) == 3_000_000_000
    assert limited._in_time(3_000_000) == 3_000_000
    assert 9_000_000 < limited._in_time(30_000_000) < 10**7
    limited._workers = 4
    assert 2_000_000 < limited._in_time(30_000_000) < 2_500_001
    over = search(0.0)
    over.seen = 10**6
    assert over._in_time(3_000_000) == FIRST_BUDGET


FAMILIES = ("gaussian-mixture", "uniform-ball", "heavy-tails", "clustered-lines", "ties", "costs")
ORDINARY = ("cloud", "tenths", "lattice", "duplicates", "sphere")
WILD = ("cloud", "tenths", "outlier", "heavy", "near a line", "few places")
SHARES = (-1.0, -0.5, 0.0, 0.3, 0.6, 0.9, 1.0)


# ------------------------------------------------------------------ random instances


def power(random, low, high, size=None):
    return 10.0 ** random.uniform(low, high, size)


def agents_of(random, kind, size, width):
    x = random.standard_normal((size, width))
    if kind == "tenths":
        return np.round(x, 1)
    if kind == "lattice":
        return random.integers(-3, 4, (size, width)).astype(float)
    if kind in ("duplicates", "few places"):
        places = max(size // 2, 1) if kind == "duplicates" else min(size, 3)
        return x[random.integers(0, places, size)]
    if kind == "outlier":
        x[random.integers(size)] *= power(random, 1, 5)
    if kind == "heavy":
        x /= random.random((size, 1)) ** 1.5 + 1e-6
    if kind == "near a line":
        x = np.outer(x[:, 0], random.standard_normal(width)) + 1e-2 * x
    if kind == "sphere":
        x /= np.linalg.norm(x, axis=1)[:, None]
    return x


def reaches_of(random, typical, size, wild):
    choice = random.random()
    if choice < 0.4:
        return typical * random.uniform(0.05, 2.0, size)
    if choice < 0.6:
        return np.full(size, random.choice([0.25, 0.5, 1.0, 2.0]))
    reach = np.full(size, typical * random.uniform(0.1, 1.5))
    if wild and choice < 0.7:
        reach *= power(random, -2, 2, size)
    elif wild and choice < 0.75:
        reach[random.integers(size)] *= 1e20
    return reach


def weights_of(random, size):
    choice = random.random()
    if choice < 0.5:
        return None
    weights = random.choice([0.1, 0.3, 0.7, 1.0, 2.0], size)
    if choice < 0.65:
        weights = random.integers(0, 4, size).astype(float)
    elif choice < 0.8:
        weights = power(random, -9, 3, size)
    elif choice < 0.85:
        weights = power(random, -20, 0, size)
    weights[random.integers(size)] += 1
    return weights


def seen_of(random, rank, width, columns_only):
    choice = 1.0 if columns_only else random.random()
    if choice > 0.35:
        return {"visible": random.permutation(width)[:rank].tolist()}
    rows = random.standard_normal((rank, width))
    if choice < 0.15:
        return {"view": rows * power(random, -6, 6, (rank, 1))}
    if choice < 0.25:
        return {"view": rows}
    basis = np.linalg.qr(rows.T)[0]
    return {"projection": basis @ basis.T}


def random_instance(random, rank, most_agents, *, wild=False, columns_only=False):
    """Clouds, lattices, duplicates; costs, weights, views, scales; if wild, extremes of each."""
    size = int(random.integers(1, most_agents + 1))
    if random.random() < 0.1:
        family = str(random.choice(FAMILIES))
        return make_instance(family, max(size, 4), rank, seed=int(random.integers(10**6)))
    width = rank + int(random.integers(0, 3))
    x = agents_of(random, str(random.choice(WILD if wild else ORDINARY)), size, width)
    apart = np.abs(x - x.mean(axis=0))
    typical = float(np.median(apart))
    reach = reaches_of(random, typical if typical > 1e-9 else 1.0, size, wild)
    if random.random() < (0.4 if wild else 0.1):
        column = np.arange(width) == random.integers(width)
        x = x + random.choice([1e8, -1e8, 3e7] if wild else [100.0, -1e4]) * column
    scale = power(random, -9, 9) if random.random() < 0.3 else 1.0
    quality = random.standard_normal(width)
    if random.random() < 0.3:
        quality = np.eye(width)[random.integers(width)]
    if random.random() < 0.2:
        quality *= power(random, -9, 9)
    return Instance.from_arrays(
        x * scale,
        quality,
        cost=1 / (reach * scale),
        weights=weights_of(random, size),
        quality_offset=float(random.standard_normal()),
        **seen_of(random, rank, width, columns_only),
    )


def mass(instance, agents):
    weights = [Fraction(float(w)) for w in instance.weights]
    return sum((weights[i] for i in agents), Fraction(0)) / sum(weights)


def described(seed, number, found):
    return f"seed {seed}, number {number}: {found!r}, {found.stop}"


def certified(instance, gap=GAP):
    """A certificate, checked."""
    found = certify(instance, gap=gap, budget=PATIENCE)
    assert found.lower <= Fraction(found.upper)
    verdict = found.check()
    assert verdict, verdict.reason
    assert found.level == "proved"
    return found


def directions(random, geometry, found, count=8):
    """Along p, at random, and ever nearer to the direction found."""
    yield geometry.p / np.linalg.norm(geometry.p)
    for _ in range(count):
        u = random.standard_normal(geometry.rank)
        yield math.copysign(1.0, u @ geometry.p) * u / np.linalg.norm(u)
    if found.mechanism is not None:
        start = geometry.basis @ np.array(found.mechanism.weights)
        start /= np.linalg.norm(start)
        for step in (0.1, 0.01, 1e-3, 1e-5, 1e-7):
            u = start + step * random.standard_normal(geometry.rank)
            yield u / np.linalg.norm(u)


# ------------------------------------------------------------------ gain


def compare_with_the_sweep(seed, count, wild):
    random = np.random.default_rng([seed, 1, wild])
    open_ = []
    for number in range(count):
        rank = 1 + int(random.random() < 0.8)
        try:
            instance = random_instance(random, rank, 60, wild=wild)
        except InputError:  # rows of a view that are nearly dependent; families with one feature
            continue
        found = certified(instance)
        best = sweep_gain(instance)
        assert best.gain <= Fraction(found.upper), described(seed, number, found)
        assert found.lower <= Fraction(best.upper), described(seed, number, found)
        if found.status != "optimal":
            open_.append(described(seed, number, found))
        else:
            assert float(found.lower) >= float(best.gain) * (1 - 2 * GAP)
    return open_


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(4, 10))
def test_up_to_two_dimensions_agree_with_the_sweep(seed):
    assert compare_with_the_sweep(seed, 30, wild=False) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(3, 5))
def test_up_to_two_dimensions_wild(seed):
    """Outliers, offsets of 1e8, enormous reaches: rounding may leave a gap, never a false bound."""
    compare_with_the_sweep(seed, 30, wild=True)


def compare_with_directions(seed, count, rank, most_agents, gap, wild):
    random = np.random.default_rng([seed, rank, 3, wild])
    open_ = []
    for number in range(count):
        try:
            instance = random_instance(random, rank, most_agents, wild=wild)
        except InputError:
            continue
        geometry = reduce(instance)
        found = certified(instance, gap)
        if found.status != "optimal":
            open_.append(described(seed, number, found))
        if geometry.p_norm > 0:
            for u in directions(random, geometry, found):
                other = best_threshold(instance, from_reduced(geometry, u, 0.0))
                assert other.gain <= Fraction(found.upper), described(seed, number, found)
    return open_


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(2, 5))
@pytest.mark.parametrize(
    ("rank", "count", "most_agents", "gap"), [(3, 18, 40, GAP), (4, 12, 25, 1e-3)]
)
def test_no_direction_gains_more(seed, rank, count, most_agents, gap):
    assert compare_with_directions(seed, count, rank, most_agents, gap, wild=False) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(2, 4))
def test_no_direction_gains_more_wild(seed):
    compare_with_directions(seed, 10, 3, 20, 1e-3, wild=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_three_dimensions_agree_with_the_brute_force(seed):
    """A branch and bound over spherical coordinates that shares nothing with the package."""
    random = np.random.default_rng([seed, 5])
    for number in range(5):
        instance = random_instance(random, 3, 10, columns_only=True)
        found = certified(instance)
        low, high = brute_force.best_gain_bracket(instance, gap=1e-2, most_cells=100_000)
        assert low * (1 - 1e-9) <= found.upper, described(seed, number, found)
        assert float(found.lower) <= high * (1 + 1e-9), described(seed, number, found)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(2, 4))
def test_soft_densities_at_any_eta_gain_no_more(seed):
    """The best soft density at η by trying every vertex, times η, is a gain."""
    random = np.random.default_rng([seed, 6])
    for number in range(8):
        rank = int(random.integers(2, 5))
        instance = random_instance(random, rank, 5, columns_only=True)
        geometry = reduce(instance)
        found = certified(instance, GAP if rank < 4 else 1e-3)
        for share in (0.2, 0.5, 0.7, 0.9, 0.97, 1.0):
            eta = share * geometry.p_norm
            soft = brute_force.best_soft_density(instance, eta)
            gain = 0.0 if soft is None else eta * soft
            assert gain * (1 - 1e-9) <= found.upper, described(seed, number, found)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(2, 4))
def test_the_milp_agrees(seed):
    """Its soft densities at η gain no more; its bounds on intervals of η allow no less."""
    random = np.random.default_rng([seed, 7])
    asked = oracle_named("milp-soft")
    for number in range(4):
        rank = int(random.integers(2, 5))
        instance = random_instance(random, rank, 15)
        geometry = reduce(instance)
        size = geometry.p_norm
        found = certified(instance, GAP if rank < 4 else 1e-3)
        for share in (0.5, 0.8, 0.95):
            answer = asked(geometry, share * size, Budget(seconds=2.0))
            gain = answer.lower * Fraction(share * size) * (1 - Fraction(1, 10**9))
            assert gain <= Fraction(found.upper), described(seed, number, found)
        etas = size * np.linspace(0, 1, 11)
        bounds = [
            Fraction(float(high))
            * soft_bound(geometry, float(low), float(high), 0.0, 200, Budget(seconds=1.0))
            for low, high in pairwise(etas)
        ]
        assert found.lower <= max(bounds) * (1 + Fraction(1, 10**9)), described(seed, number, found)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 160))
def test_a_larger_campaign(seed):
    wild = bool(seed % 2)
    compare_with_the_sweep(seed, 40, wild)
    compare_with_directions(seed, 12, 3, 60, 1e-4, wild)
    compare_with_directions(seed, 5, 4, 30, 1e-2, wild)


# ------------------------------------------------------------------ density and soft density at η


@dataclass(frozen=True)
class Interval:
    low: Fraction
    high: Fraction
    closed: bool


def interval(answer):
    return Interval(answer.density, answer.upper, answer.status == "optimal")


def eta_share(random, geometry):
    if geometry.p_norm == 0:
        return 0.0
    return float(random.choice([1.0, -1.0] if geometry.rank == 1 else SHARES))


def tolerance_of(share):
    """At η = ±‖p‖ the band is a cap of some 1e-6; elsewhere it moves scores by less than 1e-9."""
    return 4e-6 if abs(share) == 1 else 1e-9


def compare_densities(seed, count, *, wild, milp):
    random = np.random.default_rng([seed, 11, wild, milp])
    room = 1 + Fraction(1, 10**12)
    open_ = []
    for number in range(count):
        rank = int(random.integers(1, 5))
        most_agents = 12 if milp else int(random.choice([12, 60]))
        try:
            instance = random_instance(random, rank, most_agents, wild=wild)
        except InputError:
            continue
        geometry = reduce(instance)
        share = eta_share(random, geometry)
        eta = share * geometry.p_norm
        where = f"seed {seed}, number {number}, share {share}"
        found = {"cells": interval(oracle_named("cells")(geometry, eta, PATIENCE))}
        certificate = certify_density(instance, eta, PATIENCE)
        verdict = certificate.check()
        assert verdict, (where, verdict.reason)
        closed = certificate.status == "optimal"
        found["proof"] = Interval(certificate.lower, Fraction(certificate.upper), closed)
        if geometry.p_norm > 0 and (geometry.rank <= 3 or abs(share) == 1):
            found["sweep"] = interval(oracle_named("sweep")(geometry, eta, PATIENCE))
        if milp:
            found["milp"] = interval(oracle_named("milp")(geometry, eta, Budget(seconds=3.0)))
        equal = len(set(instance.weights[instance.weights > 0])) == 1
        for one in found.values():
            for other in found.values():
                assert one.low <= other.high * room, (where, found)
                if equal and one.closed and other.closed:
                    assert one.low == other.low, (where, found)
        tied = True
        if instance.view.columns is not None and instance.size <= 12 and geometry.rank <= 4:
            truth = brute_force.best_density(instance, eta, tolerance_of(share))
            tied = truth.tied
            for one in found.values():
                assert one.high * room >= mass(instance, truth.sure_set), (where, found, truth)
                assert one.low <= mass(instance, truth.most_set), (where, found, truth)
        others_closed = any(found[name].closed for name in ("sweep", "milp") if name in found)
        if not found["cells"].closed and (others_closed or not tied):
            open_.append((where, found))
    return open_


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(3, 6))
def test_densities_agree(seed):
    assert compare_densities(seed, 20, wild=False, milp=False) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(2, 3))
def test_densities_agree_wild(seed):
    compare_densities(seed, 20, wild=True, milp=False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_densities_agree_with_the_milp(seed):
    compare_densities(seed, 6, wild=False, milp=True)


@pytest.mark.parametrize("oracle", ["cells-soft", "milp-soft"])
@pytest.mark.parametrize("share", [1.0, 0.999999, 0.7])
@pytest.mark.parametrize("seed", range(8))
def test_no_soft_bound_is_below_a_rule_in_its_band(oracle, share, seed):
    """Near η = ‖p‖ the band is wide in angle: its rules differ by 1e-6, and bounds hold for all."""
    rng = np.random.default_rng(seed)
    k = 1 + seed % 3
    instance = Instance.from_arrays(
        rng.standard_normal((int(rng.integers(2, 20)), k + 1)), rng.standard_normal(k + 1),
        visible=list(range(k)), cost=float(10 ** rng.uniform(-0.5, 3)),
    )  # fmt: skip
    geometry = reduce(instance)
    if k == 1 and share < 1:
        return
    answer = oracle_named(oracle)(geometry, share * geometry.p_norm, PATIENCE)
    assert answer.gap < 0.01
    p, found = geometry.p / np.linalg.norm(geometry.p), 0
    for _ in range(60):
        along = min(1.0, share - rng.uniform(0.0, 0.99) * geometry.band)
        across = rng.standard_normal(k)
        across -= (across @ p) * p
        if k > 1:
            across *= math.sqrt(1 - along**2) / np.linalg.norm(across)
        rule = best_threshold(instance, from_reduced(geometry, along * p + across, 0.0))
        if rule.eta_within(answer.eta, geometry.band * geometry.p_norm):
            found += 1
            assert rule.soft_density_below <= answer.upper
    assert found > 0


def test_the_soft_bound_that_was_false():
    """Falling lines were drawn with the least score instead of the greatest: 5e-5 too low."""
    agents = [[-0.2, 0.4], [-0.5, 1.7], [-0.6, -2.7]]
    instance = Instance.from_arrays(agents, [1.0, 0.0], cost=10.0, visible=[0, 1])
    geometry = reduce(instance)
    answer = oracle_named("cells-soft")(geometry, geometry.p_norm, PATIENCE)
    rule = best_threshold(instance, Mechanism((1.0, -1.38e-6), 0.0))
    assert rule.eta_within(answer.eta, geometry.band * geometry.p_norm)
    assert answer.upper >= rule.soft_density_below


@pytest.mark.parametrize("oracle", ["cells-soft", "milp-soft", "cells", "milp"])
def test_answers_keep_their_value_in_plain_arithmetic(oracle):
    instance = Instance.load(ROOT / "instances/small/adversarial-m60-k2-s11.json")
    answer = oracle_named(oracle)(reduce(instance), 0.9 * reduce(instance).p_norm, PATIENCE)
    w, b = np.array(answer.mechanism.weights), answer.mechanism.threshold
    distance = b - instance.agents @ w
    inside = (distance >= 0) & (distance <= np.linalg.norm(w) / instance.cost)
    value = distance / np.linalg.norm(w) if answer.soft else np.ones(len(inside))
    plain = np.average(np.where(inside, value, 0.0), weights=instance.weights)
    assert plain >= float(answer.lower) * (1 - 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(3, 6))
def test_soft_densities_agree(seed):
    random = np.random.default_rng([seed, 13])
    cells, milp = oracle_named("cells-soft"), oracle_named("milp-soft")
    room = 1 + Fraction(1, 10**9)
    for number in range(12):
        rank = int(random.integers(1, 5))
        instance = random_instance(random, rank, 6, columns_only=True)
        geometry = reduce(instance)
        share = eta_share(random, geometry)
        eta = share * geometry.p_norm
        answer = cells(geometry, eta, PATIENCE)
        where = (seed, number, share, answer)
        assert answer.status == "optimal", where
        best = brute_force.best_soft_density(instance, eta)
        assert best is not None
        assert float(answer.upper) >= best * (1 - 1e-9), where
        if abs(share) < 1:  # at the pole, the band reaches a little beyond η
            assert float(answer.lower) <= best * (1 + 1e-8), where
        if number % 4 == 0:
            other = milp(geometry, eta, Budget(seconds=3.0))
            assert answer.lower <= other.upper * room, (where, other)
            assert other.lower <= answer.upper * room, (where, other)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 140))
def test_a_larger_campaign_of_densities(seed):
    compare_densities(seed, 60, wild=bool(seed % 2), milp=False)


# ------------------------------------------------------------------ odd cases


def sample(agents, quality, seen=None, **more):
    seen = list(range(len(quality))) if seen is None else seen
    return Instance.from_arrays(agents, quality, visible=seen, **{"cost": 1.0, **more})


KNOWN = [
    path
    for path in sorted((ROOT / "instances").glob("*/*.json"))
    if path.parent.name in ("tiny", "paper") and Instance.load(path).known is not None
]


@pytest.mark.parametrize("path", KNOWN, ids=lambda path: path.stem)
def test_known_gains(path):
    instance = Instance.load(path)
    found = certified(instance)
    assert found.status == "optimal"
    known = instance.known
    room = 1e-14 * max(1.0, float(np.abs(instance.agents).max()))
    assert found.upper >= known.lower - room
    assert float(found.lower) <= known.upper + room
    assert known.lower * (1 - 2 * GAP) <= float(found.lower) <= known.upper * (1 + 2 * GAP)


class TestOddCases:
    def test_one_dimension(self):
        found = certified(sample([[0.0], [0.5], [3.0]], [2.0]))
        assert 1 - Fraction(1, 10**11) <= found.lower < 1  # a step off the edge
        assert found.status == "optimal"
        assert certified(sample([[0.0], [0.5], [3.0]], [-2.0])).status == "optimal"

    def test_nothing_seen(self):
        found = certified(sample([[0.0, 1.0], [1.0, 0.0]], [0.0, 1.0], seen=[0]))
        assert (found.lower, found.upper, found.gap) == (0, 0.0, 0.0)
        assert found.status == "optimal"
        assert found.mechanism is None

    @pytest.mark.parametrize("rank", [1, 2, 3, 4])
    @pytest.mark.parametrize("size", [1, 5])
    def test_all_in_one_place(self, rank, size):
        """Everybody moves the whole reach along p; the place may not be representable."""
        quality = np.arange(1.0, rank + 1)
        found = certified(sample(np.full((size, rank), 0.1), quality, cost=2.0))
        assert found.status == "optimal"
        best = float(np.linalg.norm(quality)) / 2
        assert float(found.lower) == pytest.approx(best, rel=2 * GAP)
        assert found.upper >= best * (1 - 1e-14)

    @pytest.mark.parametrize("rank", [1, 2, 3])
    def test_what_is_seen_is_equal_but_not_what_is_hidden(self, rank):
        agents = np.hstack([np.full((3, rank), 3.0), [[0.0], [1.0], [5.0]]])
        instance = sample(agents, np.ones(rank + 1), seen=list(range(rank)))
        found = certified(instance)
        assert float(found.lower) == pytest.approx(math.sqrt(rank), rel=2 * GAP)
        eta = reduce(instance).p_norm
        assert certify_density(instance, eta, PATIENCE).lower == 1

    @pytest.mark.parametrize("spread", [1e3, 1e6, 1e9, 1e12])
    def test_hidden_features_in_other_units(self, spread):
        """What nobody sees does not blur what is seen."""
        random = np.random.default_rng(1)
        seen, hidden = random.standard_normal((9, 2)), random.standard_normal((9, 1))
        instance = sample(np.hstack([seen, spread * hidden]), [1.0, 1.0, 1.0], seen=[0, 1])
        found = certified(instance)
        assert found.status == "optimal"
        assert found.lower <= Fraction(sweep_gain(instance).upper)
        assert sweep_gain(instance).gain <= Fraction(found.upper)

    def test_reach_beyond_everything(self):
        agents = np.random.default_rng(2).standard_normal((9, 3))
        found = certified(sample(agents, [1.0, 2.0, 2.0], cost=1e-3))
        assert found.status == "optimal"
        # Everybody is covered with the end of the one who is ahead: nearly the whole reach.
        assert 2900 < found.lower < 3000

    @pytest.mark.parametrize("rank", [1, 2, 3])
    def test_one_enormous_reach(self, rank):
        """The one agent gains 1e20 times its share; the others hardly count."""
        agents = np.random.default_rng(3).standard_normal((6, rank))
        cost = np.ones(6)
        cost[2] = 1e-20
        found = certified(sample(agents, np.eye(rank)[0], cost=cost))
        assert found.status == "optimal"
        assert float(found.lower) == pytest.approx(1e20 / 6, rel=2 * GAP)
        assert float(oracle_named("cells")(reduce(found.instance), 1.0, PATIENCE).density) > 0

    def test_agents_exactly_a_reach_apart(self):
        """Both ends are closed: at b = 1 the first moves 1, the second 0."""
        instance = sample([[0.0, 0.0], [1.0, 0.0]], [1.0, 0.0])
        found = certified(instance)
        best = sweep_gain(instance)
        assert best.gain <= Fraction(found.upper)
        assert found.lower <= Fraction(best.upper)
        assert certify_density(instance, 1.0, PATIENCE).lower == 1
        answer = oracle_named("cells")(reduce(instance), 1.0, PATIENCE)
        assert answer.density == answer.upper == 1

    def test_a_place_opposite_to_p_with_many_reaches(self):
        """Agents on the axis of p: in a cell around it their scores change to second order only."""
        reach = [0.25, 0.5, 0.75, 1.0, 1.25]
        agents = [[0.0, -1.0]] * 5 + [[1.0, 2.0]] * 2 + [[-1.0, 3.0]] * 3
        cost = [1 / r for r in reach] * 2
        instance = sample(agents, [0.0, 1.0], cost=cost)
        found = certify(instance, gap=GAP, budget=PATIENCE)
        assert found.status == "optimal"
        assert sweep_gain(instance).gain <= Fraction(found.upper)

    def test_the_bound_established_is_established_again(self):
        """Checked with the upper bound that it arrived at itself, the checker arrives there."""
        instance = Instance.from_arrays(
            [[1.142606763078287, 1.2301027128125548, -1.3359802973329469]] * 3,
            [-0.8766389764666638, -0.8590811727880844, -1.8941685172657776],
            view=[
                [-0.06391219615314114, -0.028139986558944535, 0.15226640182823875],
                [877.9089159431531, -593.0729060088352, -451.97768968951874],
            ],
            cost=0.7697045273997911,
            weights=[1.0, 2.3032325148711243e-09, 1.3868472133690386e-11],
        )
        certified(instance)

    def test_long_reaches_and_much_that_is_not_seen(self):
        """Agents far apart in what the planner does not see; scores near, reaches beyond them."""
        random = np.random.default_rng(11)
        far = 100 * random.standard_normal((12, 1))
        agents = np.hstack([far, random.standard_normal((12, 2)) - far])
        instance = Instance.from_arrays(
            agents, [1.0, 2.0, 0.5], view=[[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]],
            cost=random.uniform(0.01, 0.5, 12),
        )  # fmt: skip
        size = reduce(instance).p_norm
        for share in (0.9, 0.5):
            found = certify_density(instance, share * size, PATIENCE)
            assert found.status == "optimal"
            assert found.check()

    @pytest.mark.parametrize("rank", [2, 3])
    def test_few_places_and_many_reaches(self, rank):
        random = np.random.default_rng(10)
        places = random.standard_normal((3, rank))
        instance = sample(
            places[np.arange(10) % 3], np.eye(rank)[1], cost=1 / random.uniform(0.05, 0.8, 10)
        )
        assert certify(instance, gap=GAP, budget=PATIENCE).status == "optimal"

    @pytest.mark.parametrize("size", [1e-30, 1e-9, 1e-3, 1.0, 1e3, 1e6, 1e9, 1e30])
    @pytest.mark.parametrize("length", [1e-9, 1.0, 1e9])
    def test_units_do_not_matter(self, size, length):
        """The gap is reached whatever the units of quality and of features."""
        random = np.random.default_rng(4)
        instance = sample(
            length * random.standard_normal((20, 2)), size * np.array([1.0, 2.0]), cost=2 / length
        )
        found = certified(instance)
        assert found.status == "optimal"
        assert sweep_gain(instance).gain <= Fraction(found.upper)

    def test_agents_without_weight_do_not_count(self):
        agents = np.random.default_rng(5).standard_normal((12, 2))
        weights = np.array([1.0] * 8 + [0.0] * 4)
        everybody = sample(agents, [1.0, 1.0], weights=weights)
        found, other = certified(everybody), certified(sample(agents[:8], [1.0, 1.0]))
        assert found.lower <= Fraction(other.upper)
        assert other.lower <= Fraction(found.upper)
        far = agents.copy()
        far[8:] *= 1e30
        third = certified(sample(far, [1.0, 1.0], weights=weights))
        assert third.status == "optimal"
        assert third.lower <= Fraction(found.upper)
        assert found.lower <= Fraction(third.upper)

    @pytest.mark.parametrize("rank", [2, 3, 4])
    @pytest.mark.parametrize("share", [1.0, -1.0, 0.0, -0.5, 1 - 1e-13, 1 - 1e-9, 0.999999])
    def test_special_values_of_eta(self, rank, share):
        agents = np.random.default_rng(6).standard_normal((9, rank))
        instance = sample(agents, np.eye(rank)[0])
        found = certify_density(instance, share, PATIENCE)
        assert found.check()
        assert found.status == "optimal"
        answer = oracle_named("cells")(reduce(instance), share, PATIENCE)
        assert answer.density <= Fraction(found.upper)
        assert found.lower <= answer.upper
        truth = brute_force.best_density(instance, share, 4e-6)
        assert truth.surely <= found.upper
        assert found.lower <= mass(instance, truth.most_set)
        assert oracle_named("cells-soft")(reduce(instance), share, PATIENCE).status == "optimal"

    @pytest.mark.parametrize("eta", [1.1, -1.1])
    def test_no_direction_has_this_eta(self, eta):
        instance = sample([[0.0, 0.0], [1.0, 0.0]], [1.0, 0.0])
        assert oracle_named("cells")(reduce(instance), eta, PATIENCE).status == "infeasible"
        assert oracle_named("cells-soft")(reduce(instance), eta, PATIENCE).status == "infeasible"
        with pytest.raises(InputError):
            certify_density(instance, eta)

    def test_nothing_seen_density(self):
        """P w_f = 0: every direction has η = 0."""
        agents = np.random.default_rng(7).standard_normal((9, 3))
        instance = sample(agents, [0.0, 0.0, 1.0], seen=[0, 1])
        found = certify_density(instance, 0.0, PATIENCE)
        other = oracle_named("sweep")(reduce(instance), 0.0, PATIENCE)
        assert found.check()
        assert found.lower == other.density
        assert found.status == "optimal"

    @pytest.mark.parametrize(
        ("agents", "quality", "cost", "norm"),
        [
            ([[0, 0, 0], [0, 0, -2], [0, 0, 0]], [0, -0.5, -0.5], [1.1, 0.7, 0.77], "linf"),
            ([[0, 1], [0, 1], [0, 1], [1, -1]], [0, -0.5], [0.8, 0.83, 0.6, 0.43], "l1"),
            ([[-1, -1], [-1, 0], [-1, 1]], [0.5, -1], [0.63, 0.57, 0.93], "l2"),
        ],
    )
    def test_open_agents_at_one_point(self, agents, quality, cost, norm):
        """Only the sum of those inside varies over the cell, and it must be cut all the same."""
        instance = Instance.from_arrays(
            np.array(agents, float),
            quality,
            visible=list(range(len(quality))),
            cost=cost,
            norm=norm,
        )
        assert certified(instance).status == "optimal"

    @pytest.mark.parametrize("gap", [-0.1, 1.0, math.nan])
    def test_gaps_that_make_no_sense(self, gap):
        with pytest.raises(InputError):
            certify(sample([[0.0]], [1.0]), gap=gap)


# ------------------------------------------------------------------ what must not matter


def rotation(random, rank):
    return np.linalg.qr(random.standard_normal((rank, rank)))[0]


@pytest.mark.slow
@pytest.mark.parametrize("rank", [2, 3, 4])
@pytest.mark.parametrize("seed", range(3))
def test_coordinates_do_not_matter(rank, seed):
    """Rotated, moved, in another order: intervals intersect, to within the rounding of the data."""
    random = np.random.default_rng([seed, rank, 17])
    agents = random.standard_normal((14, rank))
    quality = random.standard_normal(rank)
    reach = random.uniform(0.3, 1.2, 14)
    weights = random.choice([0.5, 1.0, 2.0], 14)
    turn, order = rotation(random, rank), random.permutation(14)
    gap = GAP if rank < 4 else 1e-4
    instances = [
        sample(agents, quality, cost=1 / reach, weights=weights),
        sample(agents @ turn.T, turn @ quality, cost=1 / reach, weights=weights),
        sample(agents + 1e3, quality, cost=1 / reach, weights=weights),
        sample(agents[order], quality, cost=1 / reach[order], weights=weights[order]),
    ]
    found = [certified(instance, gap) for instance in instances]
    assert all(one.status == "optimal" for one in found)
    assert max(float(f.lower) for f in found) <= min(f.upper for f in found) * (1 + 1e-10)
    eta = 0.6 * float(np.linalg.norm(quality))
    dense = [oracle_named("cells")(reduce(i), eta, PATIENCE) for i in instances]
    assert len({answer.density for answer in dense}) == 1
    assert all(answer.status == "optimal" for answer in dense)
    soft = [oracle_named("cells-soft")(reduce(i), eta, PATIENCE) for i in instances]
    most, least = max(float(a.lower) for a in soft), min(float(a.upper) for a in soft)
    assert most <= least * (1 + 1e-10)


def without_seconds(certificate):
    content = certificate.content()
    return {key: value for key, value in content.items() if key != "seconds"}


@pytest.mark.parametrize(("rank", "size", "gap"), [(2, 60, GAP), (3, 30, GAP), (4, 12, 1e-3)])
def test_threads_do_not_matter(rank, size, gap):
    instance = make_instance("gaussian-mixture", size, rank, seed=3)
    runs = [certify(instance, gap=gap, budget=Budget(threads=threads)) for threads in (1, 2, 1, 2)]
    first = without_seconds(runs[0])
    assert all(without_seconds(run) == first for run in runs[1:])
    eta = 0.6 * reduce(instance).p_norm
    dense = [certify_density(instance, eta, Budget(threads=threads)) for threads in (1, 2, 1)]
    assert all(without_seconds(run) == without_seconds(dense[0]) for run in dense[1:])
    asked = oracle_named("cells-soft")
    soft = [asked(reduce(instance), eta, Budget(threads=threads)) for threads in (1, 2)]
    assert soft[0].upper == soft[1].upper
    assert soft[0].mechanism == soft[1].mechanism
    assert soft[0].work == soft[1].work


@pytest.mark.parametrize(("rank", "size"), [(2, 60), (3, 40), (4, 15)])
def test_bounds_close_in(rank, size):
    """Every interval on the way is inside the one before it, and holds the one at the end."""
    instance = make_instance("uniform-ball", size, rank, seed=5)
    events: list[Event] = []
    found = certify(instance, gap=GAP if rank < 4 else 1e-3, budget=Budget(watch=events.append))
    assert events
    close_in(events, float(found.lower), found.upper)
    eta = 0.6 * reduce(instance).p_norm
    for ask in (oracle_named("cells"), oracle_named("cells-soft")):
        events.clear()
        answer = ask(reduce(instance), eta, Budget(watch=events.append))
        assert events
        close_in(events, float(answer.lower), float(answer.upper))


def close_in(events, low, high):
    lower, upper = [e.lower for e in events], [e.upper for e in events]
    assert lower == sorted(lower)
    assert upper == sorted(upper, reverse=True)
    assert all(a <= low * (1 + 1e-12) for a in lower)
    assert all(b >= high * (1 - 2e-9) for b in upper)  # the checker rounds for itself
    works = [e.work for e in events]
    assert works == sorted(works)


@cache
def roughly():
    """A hard instance, certified as far as that is quick."""
    return certify(make_instance("uniform-ball", 60, 7, seed=1), gap=0.6)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 0.2, 1.0])
def test_stopped_early(seconds):
    """A gap is left, a true one, and the certificate of it is as valid."""
    instance = make_instance("uniform-ball", 60, 7, seed=1)
    found = certify(instance, gap=GAP, budget=Budget(seconds=seconds))
    assert found.status == "gap"
    assert found.stop is Stop.TIME
    assert found.check()
    better = roughly()
    assert found.lower <= Fraction(better.upper)
    assert better.lower <= Fraction(found.upper)
