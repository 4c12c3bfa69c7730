"""Smoothed distributions: closed forms against Monte Carlo and quadrature."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from mipmech import InputError, Instance, Mechanism, recount
from mipmech.model import Smoothed
from tests.samples import instances, mechanisms


@st.composite
def cases(draw):
    instance = draw(instances(kinds=("visible", "view")))
    return instance, draw(mechanisms(instance)), draw(st.sampled_from([0.05, 0.7, 3.0]))


def test_closed_forms_against_monte_carlo():
    rng = np.random.default_rng(8)
    base = Instance.from_arrays(
        rng.standard_normal((6, 3)),
        [1.0, -0.5, 2.0],
        view=[[1.0, 1.0, 0.0], [0.0, 0.0, 2.0]],
        cost=[0.5, 1, 1, 2, 2, 4],
        weights=[1, 2, 3, 0, 1, 1],
    )
    smooth = Smoothed(base, 0.4)
    sample = smooth.sample(400_000, seed=1)
    for weights, threshold in (((1.0, 1.0, 0.0), 0.5), ((1.0, 1.0, 4.0), 1.0)):
        rule = Mechanism.on(base, weights, threshold)
        drawn = recount(sample, rule)
        assert smooth.density(rule) == pytest.approx(float(drawn.density), abs=4e-3)
        assert smooth.soft_density(rule) == pytest.approx(drawn.soft_density, abs=4e-3)
        assert smooth.gain(rule) == pytest.approx(float(drawn.gain), abs=8e-3)


@settings(max_examples=40)
@given(cases())
def test_closed_forms_against_quadrature(case):
    instance, mechanism, sigma = case
    smooth = Smoothed(instance, sigma)
    weights, threshold = mechanism.scaled()
    norm = float(np.linalg.norm(weights))
    distance = (float(threshold) - instance.agents @ weights) / norm
    share = instance.weights / instance.weights.sum()
    density = soft = 0.0
    for t, cost, weight in zip(distance, instance.cost, share, strict=True):
        bell = stats.norm(t, sigma).pdf
        # The bell may be a needle in a long interval: integrate where it lives.
        low, high = max(0.0, t - 9 * sigma), min(1 / cost, t + 9 * sigma)
        if weight and high > low:
            density += weight * integrate.quad(bell, low, high)[0]
            soft += weight * integrate.quad(lambda d, bell=bell: d * bell(d), low, high)[0]
    offset = np.abs(instance.agents).max() * 1e-12 / sigma
    assert smooth.density(mechanism) == pytest.approx(density, abs=1e-7 + offset)
    assert smooth.soft_density(mechanism) == pytest.approx(soft, abs=1e-6 + 10 * offset)


def test_far_tails_keep_their_digits():
    """An agent ten σ above the threshold: 1 − Φ would cancel to nothing."""
    one = Instance.from_arrays([[10.0]], [1.0], visible=[0], cost=1.0)
    exact = stats.norm.sf(10) - stats.norm.sf(11)
    assert Smoothed(one, 1.0).density(Mechanism((1.0,), 0.0)) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("cost", [1.5, 1e3, 1e9, 1e15])
def test_short_reaches_keep_their_digits(cost):
    """For ℓ ≪ σ the closed forms cancel: Den ≈ ℓ N(t), SDen ≈ ℓ²/2 N(t)."""
    one = Instance.from_arrays([[0.0]], [1.0], visible=[0], cost=cost)
    rule = Mechanism((1.0,), 0.3)
    bell = stats.norm(0.3, 1.0).pdf
    exact = integrate.quad(lambda s: s * bell(s / cost), 0, 1, epsrel=1e-12)[0] / cost**2
    assert Smoothed(one, 1.0).soft_density(rule) == pytest.approx(exact, rel=1e-10)
    exact = integrate.quad(lambda s: bell(s / cost), 0, 1, epsrel=1e-12)[0] / cost
    assert Smoothed(one, 1.0).density(rule) == pytest.approx(exact, rel=1e-10)


def test_little_smoothing_is_no_smoothing():
    one = Instance.from_arrays([[0.0], [0.5]], [1.0], visible=[0], cost=1.0)
    rule = Mechanism((1.0,), 0.75)
    assert Smoothed(one, 1e-9).soft_density(rule) == pytest.approx(recount(one, rule).soft_density)


def test_samples_carry_their_smoothing():
    base = Instance.from_arrays([[3.0, 4.0], [0.0, 0.0]], [1.0, 0.0], visible=[0], cost=[1.0, 2.0])
    smooth = Smoothed(base, 0.5)
    assert smooth.radius == 5.0
    sample = smooth.sample(100, seed=3)
    assert (sample.smoothing.sigma, sample.smoothing.radius) == (0.5, 5.0)
    assert set(sample.cost) == {1.0, 2.0}
    assert sample.digest == smooth.sample(100, seed=3).digest != smooth.sample(100, seed=4).digest
    with pytest.raises(InputError, match="sigma"):
        Smoothed(base, 0.0)
    assert math.isfinite(smooth.gain(Mechanism((1.0, 0.0), 3.5)))
