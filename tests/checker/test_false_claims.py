"""Forged proofs that were once accepted: each is refused, and its claim is false in rationals."""

from __future__ import annotations

import json

import numpy as np

import mipmech
from mipmech import Instance, Mechanism
from tests.conftest import ROOT

FALSE_CLAIMS = ROOT / "tests" / "checker" / "false_claims"


def test_vectors_across_a_leaf_round_with_their_whole_length():
    """A forged proof with a bound that was 5e-10 too low: 100,000 equal agents, far out across.

    Their score at the centre of a leaf is small, but they are added to its sums in full.
    """
    content = json.loads((FALSE_CLAIMS / "perpendicular.json").read_bytes())
    m, far, slope, share = 100_000, 2.0**17, 0.7000000000000028, 1.0004051906844297e-06
    agents = np.vstack([[0.0, 0.0], np.tile([-slope * far, far], (m, 1)), [[slope * far, -far]]])
    weights = np.r_[1.0, np.full(m, share / m), share]
    instance = Instance.from_arrays(agents, [1.0, slope], visible=[0, 1], cost=1.0, weights=weights)
    rule = mipmech.recount(instance, Mechanism((1.0, slope), 1.2206555615733719))
    assert rule.gain > content["upper"]
    verdict = mipmech.checker.check(content, instance)
    assert not verdict.accepted
    assert verdict.reason.startswith("a leaf allows")
