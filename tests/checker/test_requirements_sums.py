"""Sums of shares in floats, of many leaves at once: a leaf's sums must not be blurred by others'.

Limits on shares have room for the rounding of one leaf's sums (4(m + 4)2⁻⁵³). A running sum that
goes through thousands of leaves is rounded by far more.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from mipmech import Budget, Instance, certify
from mipmech.checker import check
from mipmech.checker.together import NONE, Chains, Limits, together
from tests import requirements_referee as truth
from tests.checker.test_check import changed, packed
from tests.checker.test_requirements_ties import claims_infeasible, gain_of

# Of the part of the tree without rules.
DEPTH = 12


def one_of_two(norm):
    """Two agents; all rules with weights above 0 may accept the second alone, 4 parts of 13.

    Its share is not a whole number over a small one: 0.4 and 0.9 are floats of 53 bits.
    """
    share = Fraction(0.4) / (Fraction(0.4) + Fraction(0.9))
    limits = [math.nextafter(float(share), 0), math.nextafter(float(share), 1)]
    assert truth.as_written(limits[0]) <= share <= truth.as_written(limits[1])
    return Instance.from_arrays(
        [[0.0, 0.0], [0.0, 1.0]], [1.0, 1.0], visible=[0, 1], reach=1.0, weights=[0.9, 0.4],
        norm=norm,
    ), {"order": [[0, 1]], "accepted": limits}  # fmt: skip


def after_many_others(content):
    """A tree whose leaf with rules comes after thousands without any: −1 ≤ x_1 ≤ 0 cut finely."""
    symbols = [3, 0, 0, 0, 3, 0]
    for level in range(1, DEPTH):
        symbols += [3] * 2**level
    symbols += [0] * 2**DEPTH
    content["proof"].update(tree=packed(symbols), leaves=2**DEPTH + 4)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_no_proof_that_there_is_no_rule_by_leaves_before_it(norm):
    """The rule x_0 + x_1 ≥ 1.5 accepts the second agent alone."""
    instance, requirements = one_of_two(norm)
    threshold = {"l2": 2.0, "linf": 2.5}[norm]
    assert gain_of(instance, requirements, [1.0, 1.0], threshold) > 0.1
    honest = certify(
        instance, require=requirements, gap=1e-3, budget=Budget(30.0, nodes=20_000)
    ).content()
    assert check(honest, instance)
    assert not check(changed(honest, after_many_others, claims_infeasible), instance)


def side_by_side(leaves, agents, chained):
    """What agents bring in leaves that are all alike, with limits that the first half just fits."""
    weight = np.random.default_rng(0).random(agents)
    weight /= math.fsum(weight)
    share = math.fsum(weight[: agents // 2])
    room = 4 * (agents + 4) * 2.0**-53
    limits = Limits(np.array([1.0]), share - room, share + room, 1.0)
    values = np.where(np.arange(agents) < agents // 2, 2.0, 1.0) * weight
    chains = Chains(np.arange(leaves * agents), np.full(leaves, chained))
    brought, _ = together(
        limits, np.zeros((leaves, 1)), np.repeat(np.arange(leaves), agents),
        np.tile(values, leaves), np.tile(weight, leaves)[:, None], chains,
    )  # fmt: skip
    return brought, 2 * share


def test_one_leaf_alone():
    for agents, chained in ((12, True), (12, False), (6, False)):
        brought, fits = side_by_side(1, agents, chained)
        assert brought[0] >= fits * (1 - 1e-15)


def test_an_order_is_counted_leaf_by_leaf():
    brought, fits = side_by_side(2000, 12, True)
    assert (brought > NONE).all()
    assert (brought >= fits * (1 - 1e-15)).all()


def test_few_agents_are_counted_leaf_by_leaf():
    brought, fits = side_by_side(2000, 6, False)
    assert (brought >= fits * (1 - 1e-15)).all()


def test_parts_are_counted_leaf_by_leaf():
    """Rounding is allowed for in proportion to what is brought, not to the running sum."""
    brought, fits = side_by_side(5000, 12, False)
    assert (brought >= fits * (1 - 1e-15)).all()
