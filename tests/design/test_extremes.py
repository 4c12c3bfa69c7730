"""Numbers at the limits of what is read: no bound is lost where products vanish or overflow."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from mipmech import Budget, InputError, Instance, certify, describe
from mipmech.checker import check
from mipmech.checker.verdict import seal


def extreme_instance(seed: int) -> Instance:
    """Weights, costs, offsets, views and qualities of sizes that have nothing in common."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, 8)), int(rng.integers(1, 4))
    k = int(rng.integers(1, n + 1))
    x = rng.standard_normal((m, n)) * 10.0 ** rng.integers(-95, 95)
    if rng.random() < 0.3:
        x += 10.0 ** rng.integers(-90, 90)
    costs = 10.0 ** rng.uniform(-99, 99, m)
    sizes = 10.0 ** rng.integers(-140, 99, (k, 1 if rng.random() < 0.7 else n))
    rows = rng.standard_normal((k, n)) * sizes
    quality = rng.standard_normal(n) * 10.0 ** rng.integers(-140, 99, n)
    seen = {"view": rows} if rng.random() < 0.5 else {"visible": list(range(k))}
    cost = costs if rng.random() < 0.5 else float(costs[0])
    return Instance.from_arrays(
        x, quality, cost=cost, weights=10.0 ** rng.uniform(-149, 0, m), **seen
    )


@pytest.mark.parametrize("block", range(4))
def test_extremes_are_certified_or_refused(block):
    """No traceback, no warning, and no bound below a rule that is known."""
    certified = 0
    for seed in range(100 * block, 100 * block + 100):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                instance = extreme_instance(seed)
            except InputError:
                continue
            found = certify(instance, budget=Budget(0.2))
            assert found.check().accepted
            best = describe(instance).best
            assert best is None or best.recount.gain <= found.upper
            certified += 1
    assert certified > 50


@pytest.mark.parametrize("seen", [(1e-150, 1e100, 0.0), (1e-150, 1.4e24, 0.0)])
def test_quality_that_floats_would_lose_is_refused(seen):
    """‖P w_f‖ was 1e-400 here, and an upper bound of 0 was accepted."""
    with pytest.raises(InputError, match="is seen to less than 1e-150, but not to 0"):
        Instance.from_arrays([[0.0] * 3] * 2, [1e-150, 0.0, 1.0], view=[list(seen)], cost=1e-100)


def test_quality_that_is_not_seen_at_all_is_fine():
    found = certify(Instance.from_arrays([[0.0] * 2], [0.0, 1.0], view=[[1.0, 0.0]], cost=1.0))
    assert (found.lower, found.upper) == (0, 0)


def test_weights_that_sums_would_lose_are_refused():
    with pytest.raises(InputError, match=r"row 1: is 4\.94066e-324, less than 1e-150"):
        Instance.from_arrays([[0.0], [1.0]], [1.0], visible=[0], cost=1.0, weights=[2.0, 5e-324])


@pytest.mark.parametrize("size", [1e-99, 1e-50, 1.0, 1e90])
@pytest.mark.parametrize("cost", [1e-100, 1e-60, 1.0, 1e100])
def test_no_bound_below_the_gain_is_accepted_whatever_the_units(size, cost):
    """Gains may be too small for floats: then no upper bound but one above them holds."""
    agents = np.array([[0.0, 0.0], [0.4, 0.1], [0.1, 0.8]]) / cost
    if np.abs(agents).max() > 1e100:
        agents = agents / np.abs(agents).max() * 1e99
    instance = Instance.from_arrays(agents, [size, size / 3], visible=[0, 1], cost=cost)
    found = certify(instance, gap=1e-3)
    assert found.check().accepted
    assert 0 < found.lower <= found.upper
    content = found.content()
    nothing = {"lower": {"value": 0.0, "exact": "0"}, "witness": None, "gap": 1.0}
    for share in (0.0, 0.5, 0.99):
        forged = {**content, **nothing, "upper": float(found.lower) * share}
        forged["seal"] = seal(forged)
        verdict = check(forged, instance)
        assert not (verdict.accepted and verdict.level == "proved")
