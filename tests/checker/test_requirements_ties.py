"""Agents that differ by less than what the coordinates of a proof are rounded to.

Their coordinates, or their reaches, are one float. Rules may accept one of them alone all the same,
and which one depends on what was rounded: so no order of their ends may be taken for sure.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from mipmech import Budget, Instance, certify
from mipmech.checker import check
from tests import referee
from tests import requirements_referee as truth
from tests.checker.test_check import changed, packed


def claims_infeasible(content):
    """The same proof, for the claim that there is no rule."""
    content["claim"]["kind"] = "infeasible"
    content.update(witness=None, lower=None, upper=None, gap=None)


def gain_of(instance, requirements, weights, threshold):
    """What a rule gains, which meets the requirements."""
    assert truth.meets(instance, requirements, None, weights, threshold)
    return referee.truth(instance, [Fraction(w) for w in weights], threshold).gain


def nearly_alike():
    """Two agents 2⁻⁵³ apart, far from the centre: the second may be accepted without the first.

    With it come the other two: 4 parts of 9.
    """
    agents = [[-1.0, 0.0], [-1.0 + 2.0**-53, 0.0], [62.0, 64.0], [3.0, 0.0]]
    return Instance.from_arrays(
        agents, [0.5, 1.0], visible=[0, 1], reach=1.0, norm="l1", weights=[5.0, 2.0, 1.0, 1.0]
    ), {"accepted": [0.444, 0.445]}


def test_an_honest_bound_where_features_are_nearly_the_same():
    """The rule x_0 + x_1 ≥ 2⁻⁵³ gains 2/9; certify proved at most 1/6."""
    instance, requirements = nearly_alike()
    gain = gain_of(instance, requirements, [1.0, 1.0], 2.0**-53)
    assert gain == Fraction(2, 9)
    found = certify(instance, require=requirements, gap=1e-3, budget=Budget(30.0, nodes=20_000))
    assert not check(found.content(), instance) or gain <= found.upper


# Two agents at one place, whose costs differ, and whose reaches are one float.
DEARER = math.nextafter(1.9, 2.0)


@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
def test_no_proof_that_there_is_no_rule_where_costs_are_nearly_the_same(norm):
    """The second agent goes a little farther, and may be accepted alone."""
    assert 1 / DEARER == 1 / 1.9
    instance = Instance.from_arrays(
        [[0.0], [0.0]], [1.0], visible=[0], cost=[DEARER, 1.9], weights=[1.0, 2.0], norm=norm
    )
    requirements = {"accepted": [0.6, 0.7]}
    honest = certify(instance, require=requirements)
    rule = honest.mechanism.weights, honest.mechanism.threshold
    assert gain_of(instance, requirements, *rule) > 0.3
    assert not check(changed(honest.content(), claims_infeasible), instance)


def far_away(content):
    """The centre of the proof so far off that all agents have the same coordinates."""
    proof = content["proof"]
    proof.update(centre=[2.0**60], thresholds=[-(2.0**61), 2.0**61], leaves=2, tree=packed([0, 0]))


@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
def test_no_proof_that_there_is_no_rule_by_a_centre_far_away(norm):
    """The rule x ≥ 2 accepts the second agent alone. Centres are chosen by whoever makes proofs."""
    instance = Instance.from_arrays(
        [[0.0], [1.0]], [1.0], visible=[0], reach=1.0, weights=[1.0, 2.0], norm=norm
    )
    requirements = {"accepted": [0.6, 0.7]}
    assert gain_of(instance, requirements, [1.0], 2.0) == Fraction(2, 3)
    honest = certify(instance, require=requirements)
    assert float(honest.lower) == pytest.approx(2 / 3, rel=1e-9)
    assert not check(changed(honest.content(), far_away, claims_infeasible), instance)
