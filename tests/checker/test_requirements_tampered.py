"""Certificates with requirements that were tampered with: the checker says no, or the claim is true.

Every change is sealed again. Where requirements are loosened, the independent referee first shows
that some rule now gains more than is claimed, so that nothing but a refusal is right.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

from mipmech import Instance, certify
from mipmech.checker import check
from tests import referee
from tests import requirements_brute_force as brute_force
from tests import requirements_referee as truth
from tests.checker.test_check import (
    changed,
    put,
)

NORMS = ("l2", "l1", "linf")
GROUPS = {"region": ["north", "south"] * 6, "trade": list("aabbccabcabc")}
# Quality by income, debt and luck, which is hidden. Without requirements the best rules of "mixed"
# have a negative weight of debt.
QUALITY = {"mixed": [1.0, -0.6, -0.5], "bright": [1.0, 0.6, -0.5]}
# What is claimed as the lower bound without a witness.
LOWERS = ({"exact": "0", "value": 0.0}, None)


@functools.cache
def sample(norm, quality="mixed", groups="as they are"):
    """Twelve agents of two features seen, in two groupings."""
    agents = np.random.default_rng(5).standard_normal((12, 3)).round(2)
    named = {
        "as they are": GROUPS,
        "one moved": {**GROUPS, "region": ["south", *GROUPS["region"][1:]]},
        "labels swapped": {**GROUPS, "region": GROUPS["region"][1:] + ["north"]},
        "labels renamed": {**GROUPS, "region": ["east", "west"] * 6},
        "renamed": {"area": GROUPS["region"], "trade": GROUPS["trade"]},
        "exchanged": {"region": GROUPS["trade"], "trade": GROUPS["region"]},
        "none": None,
    }
    return Instance.from_arrays(
        agents, QUALITY[quality], visible=[0, 1], norm=norm, cost=1.0, groups=named[groups],
        features=["income", "debt", "luck"],
    )  # fmt: skip


def even(within, groups="region"):
    return {"parity": {"groups": groups, "within": within}}


# Rules accept 8 agents in 12, of each trade as many. None of them gives income more than debt.
IMPOSSIBLE = {"accepted": [0.6, 0.7], **even(0.0, "trade"), "order": [["income", "debt"]]}
CERTIFIED = {
    "free": {},
    "few": {"accepted": [0.0, 0.3]},
    "some": {"accepted": [0.2, 0.3]},
    "even": even(0.1),
    "positive": {"nonnegative": "all"},
    "order": {"order": [["debt", "income"]]},
    "all": {
        "nonnegative": "all", "order": [["debt", "income"]], "accepted": [0.1, 0.3], **even(0.2),
    },
    "impossible": IMPOSSIBLE,
}  # fmt: skip


def certified(norm, requirements, quality="mixed"):
    """An instance and the content of the certificate with requirements, not to be changed."""
    return sample(norm, quality), _certified(norm, json.dumps(requirements), quality)


@functools.cache
def _certified(norm, requirements, quality):
    found = certify(sample(norm, quality), require=json.loads(requirements) or None, gap=1e-3)
    assert found.status in ("optimal", "infeasible", "gap")
    return found.content()


def named(norm, name):
    """The one of `CERTIFIED`; the impossible ones are of the bright sample."""
    return certified(norm, CERTIFIED[name], "bright" if name == "impossible" else "mixed")


def labels_of(instance, requirements):
    if "parity" not in requirements:
        return None
    grouping = instance.groups[requirements["parity"]["groups"]]
    return [grouping.labels[place] for place in grouping.members]


def best_gain(instance, requirements):
    """By the independent referee; None if no rule meets the requirements."""
    return brute_force.best_gain(instance, requirements, labels_of(instance, requirements))


def meets(instance, requirements, witness):
    labels = labels_of(instance, requirements)
    return truth.meets(instance, requirements, labels, witness["weights"], witness["threshold"])


def assert_true(content, instance):
    """What was accepted is so: its witness is a rule that is allowed, and no rule gains more."""
    requirements = dict(content["claim"].get("requirements") or {})
    requirements.pop("format", None)
    best = best_gain(instance, requirements)
    if content["claim"]["kind"] == "infeasible":
        assert best is None
        return
    if content["witness"] is not None:
        assert meets(instance, requirements, content["witness"])
        weights = [Fraction(w) for w in content["witness"]["weights"]]
        gain = referee.truth(instance, weights, content["witness"]["threshold"]).gain
        assert gain == Fraction(content["lower"]["exact"])
        assert content["gap"] >= min(1, 1 - gain / Fraction(content["upper"]))
    assert best is None or best.surely <= content["upper"]


def assert_refused(content, instance, reason):
    verdict = check(content, instance)
    assert not verdict
    assert verdict.finished
    assert any(words in verdict.reason for words in reason.split("|")), verdict.reason


# ------------------------------------------------------------------ changes


def demand(requirements):
    return put("claim.requirements", requirements)


def bare(lower):
    """Only the upper bound is claimed."""
    return lambda content: content.update(witness=None, lower=lower, gap=1.0)


def there_is_none(content):
    """The same proof, for the claim that there is no rule."""
    content["claim"]["kind"] = "infeasible"
    content.update(level="proved", witness=None, lower=None, upper=None, gap=None)


def witness(weights, threshold):
    """Another rule with its own gain, below a bound that is high enough."""

    def change(content):
        content["witness"] = {"weights": list(weights), "threshold": threshold}
        gain = referee.truth(
            sample_of(content), [Fraction(w) for w in weights], Fraction(threshold)
        ).gain
        content["lower"] = {
            "value": math.nextafter(float(gain), -math.inf), "exact": str(gain)
        }  # fmt: skip
        content["gap"] = 1.0

    return change


@functools.cache
def _by_digest():
    every = (sample(*key) for key in itertools.product(NORMS, QUALITY))
    return {instance.digest: instance for instance in every}


def sample_of(content):
    return _by_digest()[content["instance"]["digest"]]


# ------------------------------------------------------------------ honest ones


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", CERTIFIED)
def test_honest_certificates_pass(name, norm):
    instance, content = named(norm, name)
    verdict = check(content, instance)
    assert verdict, verdict.reason
    assert verdict.level == "proved"
    assert_true(content, instance)
    assert (content["claim"]["kind"] == "infeasible") == (name == "impossible")
    if name == "impossible":
        assert content["proof"]["leaves"] > 4


# ------------------------------------------------------------------ loosened: the bound is false

EQUAL = {"order": [["income", "debt"], ["debt", "income"]]}
# What was certified, and what is claimed instead; for which the bound is false. On "mixed" unless
# another sample is named in brackets.
LOOSENED = {
    "accepted dropped": ({"accepted": [0.0, 0.3]}, {}),
    "accepted null": ({"accepted": [0.0, 0.3]}, None),
    "accepted, higher limit": ({"accepted": [0.0, 0.3]}, {"accepted": [0.0, 0.5]}),
    "accepted, a hair higher": ({"accepted": [0.0, 0.2499999]}, {"accepted": [0.0, 0.25]}),
    "accepted, lower limit": ({"accepted": [0.9, 1.0]}, {"accepted": [0.5, 1.0]}),
    "accepted, all": ({"accepted": [0.9, 1.0]}, {"accepted": [0, 1]}),
    "parity dropped": (even(0.0), {}),
    "parity, within raised": (even(0.1), even(0.4)),
    "parity, within a hair higher": (even(0.1666), even(0.1667)),
    "parity, any": (even(0.0), even(1)),
    "parity, another grouping": (even(0.0, "trade"), even(0.0)),
    "parity for accepted": (even(0.0, "trade"), {"accepted": [0.0, 1.0]}),
    "order dropped": ({"order": [["debt", "income"]]}, {}),
    "order empty": ({"order": [["debt", "income"]]}, {"order": []}),
    "order reversed": ({"order": [["debt", "income"]]}, {"order": [["income", "debt"]]}),
    "order renumbered": ({"order": [[1, 0]]}, {"order": [[0, 1]]}),
    "a pair dropped": (EQUAL, {"order": [["income", "debt"]]}),
    "order of one with itself": ({"order": [[1, 0]]}, {"order": [[0, 0], [1, 1]]}),
    "nonnegative dropped": ({"nonnegative": "all"}, {}),
    "nonnegative, one for all": ({"nonnegative": "all"}, {"nonnegative": ["income"]}),
    "nonnegative, one of two": ({"nonnegative": [0, 1]}, {"nonnegative": [0]}),
    "nonnegative, none": ({"nonnegative": "all"}, {"nonnegative": []}),
    "nonnegative renamed": ({"nonnegative": ["debt"]}, {"nonnegative": ["income"]}),
    "nonnegative renumbered": ({"nonnegative": [1]}, {"nonnegative": [0]}),
    "nonpositive for nonnegative": ({"nonnegative": ["debt"]}, {"nonpositive": ["debt"]}),
    "nonpositive, one for all": ({"nonpositive": "all"}, {"nonpositive": ["debt"]}),
    "nonpositive renamed": ({"nonpositive": ["income"]}, {"nonpositive": ["debt"]}),
    "nonpositive, other one [bright]": ({"nonpositive": "all"}, {"nonpositive": ["income"]}),
    "no signs, no order": (CERTIFIED["all"], {"accepted": [0.1, 0.3], **even(0.2)}),
    "accepted, one of four": (CERTIFIED["all"], CERTIFIED["all"] | {"accepted": [0, 1]}),
    "empty": (CERTIFIED["all"], {}),
    "format alone": (CERTIFIED["all"], {"format": "mipmech/requirements@1"}),
}


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("what", LOOSENED)
def test_requirements_that_were_loosened(what, norm):
    """With the witness and without; some rule gains more than is claimed."""
    certified_for, loose = LOOSENED[what]
    instance, content = certified(norm, certified_for, "bright" if "[bright]" in what else "mixed")
    plain = {kind: value for kind, value in (loose or {}).items() if kind != "format"}
    assert best_gain(instance, plain).surely > content["upper"]
    assert_refused(changed(content, demand(loose)), instance, "a leaf allows|the witness")
    # Where nothing is demanded after all, a lower bound of 0 is claimed, and else none.
    verdicts = [check(changed(content, demand(loose), bare(lower)), instance) for lower in LOWERS]
    assert not any(verdicts)
    assert sum("a leaf allows" in verdict.reason for verdict in verdicts) == 1


@pytest.mark.parametrize("norm", NORMS)
def test_requirements_that_were_left_out_of_the_claim(norm):
    instance, content = named(norm, "all")
    copy = changed(content, lambda c: c["claim"].pop("requirements"))
    assert_refused(copy, instance, "a leaf allows")
