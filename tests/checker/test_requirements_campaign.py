"""Bounds of leaves under requirements, on random trees of random samples with ties.

The bound of some leaf must be at least the gain of every allowed rule in it (`requirements_leaves`
finds them), with the first bounds, with tilted lines, and with agents settled on the way down.
"""

from __future__ import annotations

import numpy as np
import pytest

from mipmech.errors import InputError
from tests import requirements_leaves as truth
from tests.conftest import seeds


def case(seed):
    """A sample with requirements and a random tree; None if no direction is allowed."""
    rng = np.random.default_rng(seed)
    norm = str(rng.choice(["l2", "l1", "linf"]))
    k, m = int(rng.choice([1, 2, 2, 3, 3, 4])), int(rng.integers(1, 12))
    instance, labels = truth.drawn(rng, norm, k, m)
    requirements = truth.demanded(rng, instance, k)
    try:
        given = truth.setting(instance, requirements, labels)
    except InputError:
        return None
    if not requirements or given.agents.frame_error:
        return None
    return given, truth.random_tree(rng, given, int(rng.choice([5, 20, 40])))


@pytest.mark.parametrize("seed", seeds(25, 2000))
def test_no_rule_gains_more_than_the_bound_of_its_leaf(seed):
    found = case(seed)
    if found is None:
        return
    given, leaves = found
    for enough, settled in ((np.inf, False), (-2.0, False), (-2.0, True)):
        bounds = [truth.leaf_bound(given, path, enough, settled) for path in leaves]
        assert not truth.misses(np.random.default_rng(seed), given, leaves, bounds, 3)


def test_the_campaign_finds_bounds_that_are_too_low():
    """Rules are in the leaves, and near their bounds: lowered ones are found out."""
    caught = 0
    for seed in range(25):
        found = case(seed)
        if found is None:
            continue
        given, leaves = found
        bounds = [0.5 * truth.leaf_bound(given, path, -2.0, False) for path in leaves]
        caught += bool(truth.misses(np.random.default_rng(seed), given, leaves, bounds, 3))
    assert caught >= 5
