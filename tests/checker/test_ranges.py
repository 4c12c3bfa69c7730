"""Scores and rates over a cell, for every norm: the page's formulas, the checker's, and the truth.

Boxes are made as a tree makes them, by cutting facets of the cube at their middles; directions are
drawn from them, also on edges, where agents do what is best for quality (l1) or leave features of
weight 0 alone (linf).
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from mipmech import Instance, Mechanism, best_threshold, certify
from mipmech.checker.bounds import _cells, _range

DUAL = {"l2": 2, "l1": np.inf, "linf": 1}


def boxes(random, d, count=60):
    """Centres and half-widths of boxes that cuts lead to."""
    for _ in range(count):
        axis, sign = int(random.integers(d)), float(random.choice([-1.0, 1.0]))
        centre, half = np.zeros(d), np.ones(d)
        centre[axis], half[axis] = sign, 0.0
        for _cut in range(int(random.integers(0, 4 * d))):
            j = int(random.integers(d))
            if half[j] > 0:
                half[j] /= 2
                centre[j] += half[j] * random.choice([-1.0, 1.0])
        yield centre, half


def of_the_page(norm, c, h):
    """ĉ, ν, μ and κ as docs/proof-format.md has them."""
    size = np.abs(c)
    if norm == "l2":
        length = math.sqrt(c @ c)
        mu = (c @ c - h @ size) / length
        return c / length, c / length, mu, 1 / math.sqrt(1 + ((h / mu) ** 2).sum())
    if norm == "l1":
        return c, np.where(h == 0, np.sign(c), 0.0), 1.0, 1.0
    mu = (size - h)[c != 0].sum()
    return c / size.sum(), np.sign(c), mu, mu / (mu + h[c == 0].sum())


def drawn(random, c, h):
    """A point of the box, now and then on its sides, its corners, and where a coordinate is 0."""
    x = c + h * random.uniform(-1, 1, len(c))
    ends = c + h * random.choice([-1.0, 1.0], len(c))
    x = np.where(random.random(len(c)) < 0.3, ends, x)
    crosses = (np.abs(c) <= h) & (random.random(len(c)) < 0.3)
    return np.where(crosses, 0.0, x)


@pytest.mark.parametrize("d", [2, 3, 5])
@pytest.mark.parametrize("norm", DUAL)
def test_scores_lie_in_the_range_of_the_page(norm, d):
    random = np.random.default_rng(d)
    for c, h in boxes(random, d):
        unit, nu, mu, kappa = of_the_page(norm, c, h)
        z = random.normal(size=d)
        t = unit @ z
        e = (h / mu) @ np.abs(z - t * nu)
        low, high = min(t - e, (t - e) * kappa), max(t + e, (t + e) * kappa)
        cells = _cells(norm, c[None], h[None], np.zeros(1), np.ones(1))
        assert [side.item() for side in _range(cells, z[None])] == pytest.approx([low, high])
        for _ in range(20):
            x = drawn(random, c, h)
            length = np.linalg.norm(x, DUAL[norm])
            assert kappa - 1e-12 <= nu @ x / length <= 1 + 1e-12
            assert nu @ x >= mu - 1e-12
            assert low - 1e-12 <= x @ z / length <= high + 1e-12


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_rates_on_edges_are_below_those_of_a_leaf_that_holds_them(norm):
    """Each direction, however it was reached, against all leaves of one level that hold it."""
    random, d = np.random.default_rng(4), 3
    p = np.array([1.0, -2.0, 0.5])
    sample = Instance.from_arrays(np.zeros((1, d)), p, visible=range(d), cost=1.0, norm=norm)
    leaves = [
        (np.where(np.arange(d) == axis, sign, middle), np.where(np.arange(d) == axis, 0.0, half))
        for axis in range(d)
        for sign in (-1.0, 1.0)
        for half, middles in ((1.0, [0.0]), (0.5, [-0.5, 0.5]))
        for middle in (
            np.array(m) for m in np.stack(np.meshgrid(*[middles] * d), -1).reshape(-1, d)
        )
    ]
    for _ in range(200):
        w = random.choice([-1.0, -0.5, 0.0, 0.5, 1.0], d)
        if not w.any():
            continue
        rate = best_threshold(sample, Mechanism(tuple(w), 0.0)).eta
        x = w / np.abs(w).max()
        holding = [(c, h) for c, h in leaves if (np.abs(x - c) <= h).all()]
        allowed = []
        for c, h in holding:
            _, nu, _, _ = of_the_page(norm, c, h)
            allowed.append(nu @ p + (np.abs(p)[nu == 0].sum() if norm == "linf" else 0.0))
        assert rate <= max(allowed) + 1e-12


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_no_rule_on_an_edge_gains_more_than_is_proved(norm):
    random = np.random.default_rng(5)
    for seed in range(6):
        agents = np.random.default_rng(seed).integers(-2, 3, (14, 3)) / 2
        prices = np.array([1.0, 2.0, 0.5])
        sample = Instance.from_arrays(
            agents, [1.0, 2.0, -0.25], visible=[0, 1, 2], reach=0.75, norm=norm, effort=prices
        )
        found = certify(sample, gap=0.01)
        assert found.level == "proved"
        assert found.check().accepted
        for _ in range(60):
            w = random.choice([-1.0, 0.0, 0.5, 1.0], 3) * prices
            if w.any():
                assert best_threshold(sample, Mechanism(tuple(w), 0.0)).gain <= found.upper
