"""Where the paper must not be followed to the letter: each entry of docs/errata.md, shown."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from mipmech import InputError, Instance, Mechanism, best_threshold, recount, theory
from mipmech.model import example1


def test_e1_theorem2_grid_covers_only_positive_thresholds():
    """Everybody at −3 … −2: the printed grid starts at b = 1/(2c) > 0 and moves nobody."""
    x = np.linspace(-3, -2, 11)[:, None]
    instance = Instance.from_arrays(x, [1.0], visible=[0], cost=2.0)
    radius, cost = 3.0, 2.0
    thresholds = [i / (2 * cost) for i in range(1, math.ceil(2 * radius * cost) + 2)]
    printed = [recount(instance, Mechanism((1.0,), b)).gain for b in thresholds]
    corrected = theory.projection_rule(instance, "grid")
    assert max(printed) == 0
    assert float(corrected.recount.gain) >= corrected.promised * theory.gain_ceiling(instance) > 0


def test_e2_theorem2_factor_exceeds_one():
    """1/(4rc) for rc < 1/4 would promise more than the optimum; 1/(4rc + 2) never does."""
    instance = Instance.from_arrays([[0.0], [0.2]], [1.0], visible=[0], cost=1.0)
    rc = 0.1
    assert 1 / (4 * rc) > 1
    rule = theory.projection_rule(instance)
    assert rule.promised == pytest.approx(1 / (4 * rc + 2))
    assert float(rule.recount.gain) < 1 / (4 * rc) * theory.gain_ceiling(instance)


def test_e3_lemma4_quarter_is_for_equal_costs():
    """The densest margin may hold only agents of little reach."""
    x = [[0.0], [10.0], [10.0]]
    instance = Instance.from_arrays(x, [1.0], visible=[0], cost=[0.1, 100.0, 100.0])
    densest = Mechanism((1.0,), 10.005)  # two of three agents
    better, statement = theory.quarter(instance, densest)
    best = recount(instance, Mechanism((1.0,), 9.999)).gain  # agent 0 alone, nearly its reach of 10
    assert recount(instance, densest).density == Fraction(2, 3)
    assert statement  # with the least reach it holds,
    assert better.gain < best / 4  # but it is no quarter of the best gain
    assert better.gain >= theory.quarter_factor(instance) * best


def test_e4_theorem3_counts_too_few_calls():
    """Halving σ multiplies the grid of Algorithm 1 by 16, not by 4 as r²/σ² would have it."""
    sizes = [len(theory.paper_etas(1.0, 0.5, sigma, 1.0)) for sigma in (0.2, 0.1, 0.05)]
    assert sizes[1] / sizes[0] == pytest.approx(16, rel=0.01)
    assert sizes[2] / sizes[1] == pytest.approx(16, rel=0.01)
    assert sizes[2] > 100 * (1 / 0.5**4 + 1 / (0.5 * 0.05) ** 2)


def test_e5_lemma7_uses_a_one_dimensional_tail():
    """n = 10, r = σ/2, ε = 0.05: the tail has 0.31, not 0.05. The corrected radius holds."""
    n, sigma, radius, epsilon = 10, 1.0, 0.5, 0.05

    def printed_radius(radius):
        return 2 * radius + sigma * math.sqrt(2 * math.log(1 / epsilon))

    def tail(distance):
        """P(‖x‖ ≥ distance) for a centre at distance r: a noncentral chi-square."""
        return float(stats.ncx2.sf((distance / sigma) ** 2, n, (radius / sigma) ** 2))

    assert tail(printed_radius(radius)) == pytest.approx(0.31, abs=0.005)
    assert tail(theory.tail_radius(n, sigma, radius, epsilon)) <= epsilon
    for n in (1, 2, 3, 30):
        assert tail(theory.tail_radius(n, sigma, radius, epsilon)) <= epsilon
    n, radius = 3, 0.0
    assert tail(printed_radius(0.0)) > epsilon


def test_e6_theorem1_needs_a_nondecreasing_h():
    """For h(t) = −t the rule along P w_f lowers everybody; the opposite one raises them."""
    quality = np.array([1.0, 2.0])
    w_f, w_g = np.array([1.0, 0.0]), np.array([2.0, 0.0])
    steps = 10.0
    along, against = quality + steps * (w_f @ w_g), quality - steps * (w_f @ w_g)
    assert (-along).mean() < (-against).mean()
    instance = Instance.from_arrays([[1.0, 0.0], [2.0, 0.0]], w_f, visible=[0], cost=1.0)
    with pytest.raises(InputError, match="nondecreasing"):
        theory.linear_rule(instance, 2.0, h=np.negative, h_limit=0.0)


def test_e7_theorem1_proof_has_the_wrong_norm():
    """w_f·w_g is ‖P w_f‖R, not ‖w_f‖R."""
    instance = Instance.from_arrays([[0.0, 0.0]], [3.0, 4.0], visible=[0], cost=1.0)
    rule = theory.linear_rule(instance, 2.0)
    assert instance.quality @ rule.weights == pytest.approx(3.0 * 2.0)
    assert np.linalg.norm(instance.quality) * 2.0 == pytest.approx(10.0)


def test_e8_lemma2_means_another_product():
    """w·w2 = w1·w2 + ε; the printed w·w2 = w·w1 + ε fails for the very same w."""
    w1, w2, epsilon = np.array([1.0, 0.0]), np.array([0.0, 1.0]), 0.25
    w = theory.rotate(w1, w2, epsilon)
    assert w @ w2 == pytest.approx(w1 @ w2 + epsilon)
    assert w @ w2 != pytest.approx(w @ w1 + epsilon)


def test_e9_lemma2_is_false_in_one_dimension():
    """Rank 1: the only unit vectors are ±w2, and −1 + ε is neither 1 nor −1."""
    w1, w2, epsilon = -1.0, 1.0, 0.25
    assert w1 * w2 <= 1 - 2 * epsilon
    assert all(w * w2 != w1 * w2 + epsilon for w in (-1.0, 1.0))
    with pytest.raises(InputError, match="no plane"):
        theory.rotate([w1], [w2], epsilon)


def test_e10_lemma2_proof_claims_a_monotone_function():
    """w·w1 as a function of ω = w1·w2 rises from 1 − ε at ω = −1, then falls; never below 1 − ε."""
    epsilon = 0.1
    omega = np.linspace(-1, 1 - 2 * epsilon, 1001)
    product = np.cos(np.arccos(omega) - np.arccos(omega + epsilon))
    assert product[0] == pytest.approx(1 - epsilon)
    assert product[450] > product[0]
    assert (np.diff(product) > 0).any()
    assert (product >= 1 - epsilon - 1e-12).all()


def test_e11_lemma5_second_function_lacks_a_factor():
    """gain = min(h1, h2) needs h2 = ℓ·(w·w_f)·1[d ≤ ℓ], and w·w_f ≥ 0."""
    reach = 2.0
    distance = np.linspace(-3, 5, 801)
    for rate in (0.5, -0.5):
        gain = np.where((distance >= 0) & (distance <= reach), distance, 0.0) * rate
        first = np.where(distance >= 0, distance, 0.0) * rate
        printed = np.where(distance <= reach, 1.0, 0.0) * rate
        mended = reach * printed
        assert not np.allclose(np.minimum(first, printed), gain)
        assert np.allclose(np.minimum(first, mended), gain) == (rate > 0)


def test_e12_theorem4_forgets_delta():
    """m = ε⁻² ln(1/ε) flips of a coin (H = 1, d = 0) miss by ε more often than δ = 10⁻⁶ allows."""
    epsilon, delta = 0.1, 1e-6
    printed = math.ceil(epsilon**-2 * math.log(1 / epsilon))
    corrected = theory.pollard_sample_size(epsilon, delta, 1.0, 0, constant=1.0)

    def failure(m):
        return 2 * float(stats.binom.sf(math.floor(m * (0.5 + epsilon)), m, 0.5))

    assert failure(printed) > 100 * delta
    assert failure(corrected) <= delta


def test_e13_lemma9_moves_are_unbounded():
    instance = Instance.from_arrays([[0.0]], [1.0], visible=[0], cost=1.0)
    assert theory.linear_response(instance, [1.0]).unbounded.tolist() == [True]
    assert "without bound" in str(theory.linear_response(instance, [1.0]))
    assert theory.linear_rule(instance, 1.0).value == math.inf


def test_e14_example1_is_optimal_only_for_small_reach():
    """For ℓ > r, turning x₂ ≥ ℓ towards x₃ gains more than ℓ/√3."""
    radius, reach = 1.0, 2.0
    instance = example1(400, radius, 1 / reach)
    upright = recount(instance, Mechanism((0.0, 1.0, 0.0), reach)).gain
    turn = 0.2
    lowest = float(instance.agents[:, 2].min())
    turned = Mechanism(
        (0.0, math.cos(turn), math.sin(turn)), lowest * math.sin(turn) + reach - 1e-9
    )
    assert recount(instance, turned).gain > upright
    small = example1(400, radius, 2.0)
    upright = recount(small, Mechanism((0.0, 1.0, 0.0), 0.5)).gain
    for angle in np.linspace(-1.5, 1.5, 31):
        w = Mechanism((0.0, math.cos(angle), math.sin(angle)), 0.0)
        assert best_threshold(small, w).gain <= upright


def test_e15_example1_value_is_the_continuum_s():
    """A finite sample may gain more than the printed bound ℓ²/(2r√3) along P w_f; by O(1/m)."""
    gains = {m: float(theory.projection_rule(example1(m)).recount.gain) for m in (5, 50, 5000)}
    limit = 0.25**2 / (2 * math.sqrt(3))
    assert gains[5] > limit
    assert all(abs(gain - limit) <= 2 * 0.25 / m for m, gain in gains.items())


def test_e16_oblique_projections():
    """w ∈ Img(P) is a function of Px only if P is orthogonal."""
    p = np.array([[1.0, 1.0], [0.0, 0.0]])
    assert (p @ p == p).all()
    w = np.array([1.0, 0.0])
    assert (p @ w == w).all()
    x, y = np.array([0.0, 0.0]), np.array([1.0, -1.0])
    assert (p @ x == p @ y).all()
    assert w @ x != w @ y
    with pytest.raises(InputError, match="oblique"):
        Instance.from_arrays([x, y], [1.0, 1.0], projection=p, cost=1.0)


def test_the_page_and_the_tests_list_the_same_entries(root):
    page = (root / "docs" / "errata.md").read_text()
    named = re.findall(r"`(test_e\d+\w*)`", page)
    here = [name for name in globals() if re.match(r"test_e\d+", name)]
    assert named == here
