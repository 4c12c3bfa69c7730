"""ConeSet of directions: they cover the sphere, and what they promise holds for every direction."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mipmech import Instance, make_instance
from mipmech.model import reduce
from mipmech.model.masses import masses
from mipmech.oracles.shared.cones import ConeSet, Frontier, halves, ranges, soft_stab, sphere, stab
from mipmech.oracles.shared.slices import slice_at
from tests.samples import instances

SEEDS = st.integers(0, 10**6)


def some_cones(random, dimension, depth):
    cones = sphere(dimension)
    for _ in range(depth):
        cones = halves(cones)
        cones = cones[random.permutation(len(cones))[:8]]
    return cones


@given(seed=SEEDS)
def test_stabbing_is_what_every_point_sees(seed):
    random = np.random.default_rng(seed)
    n, m = 4, int(random.integers(1, 9))
    starts = random.integers(0, 6, (n, m)).astype(float)
    ends = starts + random.integers(0, 4, (n, m))
    for mass in (np.ones(m, np.int64), random.integers(1, 4, m)):
        over = (starts[:, :, None] <= starts[:, None, :]) & (starts[:, None, :] <= ends[:, :, None])
        expected = np.einsum("nij,i->nj", over, mass).max(axis=1)
        assert (stab(starts, ends, mass) == expected).all()
        assert (stab(starts, ends, mass, 3) == np.maximum(expected, 3)).all()


@given(seed=SEEDS)
def test_soft_stabbing_is_what_every_end_sees(seed):
    random = np.random.default_rng(seed)
    n, m = 3, int(random.integers(1, 8))
    starts = random.integers(0, 6, (n, m)).astype(float)
    reach, weight = random.random(m), random.random(m)
    ends = starts + reach + random.integers(0, 3, (n, m))
    for row in range(n):
        expected = max(
            sum(
                weight[i] * min(b - starts[row, i], reach[i])
                for i in range(m)
                if starts[row, i] <= b <= ends[row, i]
            )
            for b in ends[row]
        )
        assert soft_stab(starts, ends, reach, weight)[row] == pytest.approx(expected)


@pytest.mark.parametrize("dimension", [1, 2, 3, 5])
def test_facets_and_their_halves_cover_the_sphere(dimension):
    random = np.random.default_rng(dimension)
    v = random.standard_normal((200, dimension))
    v /= np.abs(v).max(axis=1)[:, None]  # where the ray meets the cube
    cones = sphere(dimension)
    for _ in range(0 if dimension == 1 else 5):
        cones = halves(cones)
    inside = (cones.lower[None] <= v[:, None]) & (v[:, None] <= cones.upper[None])
    assert inside.all(axis=2).any(axis=1).all()


@given(seed=SEEDS, depth=st.integers(0, 12), wide=st.booleans())
def test_scores_stay_in_their_ranges(seed, depth, wide):
    """Corners, edges and inner points of the boxes; one η, or a range of them."""
    random = np.random.default_rng(seed)
    rank = int(random.integers(2, 7))
    geometry = reduce(make_instance("gaussian-mixture", 9, rank, seed=seed % 50))
    size = geometry.p_norm
    low, high = sorted(random.uniform(-1, 1, 2) * size)
    part = slice_at(geometry, low, high if wide else None)
    cones = some_cones(random, part.dimension, 0 if part.dimension == 1 else depth)
    where = ranges(part, cones)
    for _ in range(20):
        share = random.choice([0.0, 1.0, random.random()], size=cones.lower.shape)
        v = cones.lower + share * (cones.upper - cones.lower)
        v /= np.linalg.norm(v, axis=1)[:, None]
        theta = random.uniform(part.least, part.most)
        scores = math.cos(theta) * part.along + math.sin(theta) * (v @ part.across.T)
        assert (scores >= where.low - 1e-15).all()
        assert (scores <= where.high + 1e-15).all()
        off = np.sqrt(np.maximum(0.0, 1 - np.einsum("nj,nj->n", v, where.centre) ** 2))
        assert (off <= where.sine + 1e-7).all()


def test_a_box_wider_than_a_right_angle():
    """Bounding boxes may be lopsided; in nine dimensions their corners are far from the centre."""
    lower, upper = np.full((1, 10), -0.5), np.ones((1, 10))
    lower[0, 0] = 1.0
    random = np.random.default_rng(1)
    quality = np.eye(11)[0]
    agents = random.standard_normal((6, 11))
    geometry = reduce(Instance.from_arrays(agents, quality, visible=list(range(11)), cost=1.0))
    part = slice_at(geometry, 0.3)
    where = ranges(part, ConeSet(lower, upper, np.zeros(1)))
    corner = np.where(random.random((500, 10)) < 0.5, lower, upper)
    scores = part.scores(corner / np.linalg.norm(corner, axis=1)[:, None])
    assert (scores >= where.low).all()
    assert (scores <= where.high).all()


@settings(max_examples=60)
@given(instance=instances(min_width=2), share=st.floats(-1, 1), seed=SEEDS)
def test_a_slice_has_the_eta_it_says(instance, share, seed):
    geometry = reduce(instance)
    if geometry.rank == 1 or geometry.p_norm == 0:
        return
    part = slice_at(geometry, share * geometry.p_norm)
    v = np.random.default_rng(seed).standard_normal(part.dimension)
    v /= np.linalg.norm(v)
    u = part.direction(v)
    assert np.linalg.norm(u) == pytest.approx(1)
    expected = share * geometry.p_norm
    assert u @ geometry.p == pytest.approx(expected, abs=1e-9 * geometry.p_norm)
    off = np.abs(part.scores(v[None, :])[0] - geometry.z[part.agents] @ u)
    assert (off <= part.slack + 1e-15).all()


def test_the_frontier_gives_the_highest_bound_first_and_forgets_nothing():
    random = np.random.default_rng(3)
    cones = some_cones(random, 4, 6)
    cones = ConeSet(cones.lower, cones.upper, random.integers(0, 9, len(cones)).astype(float))
    frontier = Frontier(cones, 1.0)
    assert len(frontier) == len(cones)
    assert frontier.bound == cones.bound.max()
    taken = []
    while frontier:
        lot = frontier.take(2)
        taken += lot.bound.tolist()
    assert taken == sorted(cones.bound.tolist(), reverse=True)
    assert frontier.bound == -math.inf
    frontier.add(cones)
    assert frontier.drop(4.0) <= 4
    assert sorted(frontier.everything().bound) == sorted(cones.bound[cones.bound > 4])


def test_masses_are_whole_and_never_too_small():
    equal = masses(np.array([0.1, 0.1, 0.1]))
    assert (equal.equal, equal.excess, float(equal.unit)) == (True, 0, 1 / 3)
    simple = masses(np.array([0.5, 1.5]))
    assert (simple.whole.tolist(), simple.excess) == ([1, 3], 0)
    for weights in ([0.1, 0.3, 7.0], [1e-30, 1.0], [1e100, 1e-100, 3.0]):
        rough = masses(np.array(weights))
        assert rough.excess == len(weights)
        for whole, weight in zip(rough.whole, weights, strict=True):
            share = weight / math.fsum(weights)
            assert float(whole * rough.unit) >= share * (1 - 1e-15)
            assert float((int(whole) - 1) * rough.unit) <= share * (1 + 1e-15)
