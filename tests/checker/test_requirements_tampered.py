"""Certificates with requirements, tampered with: the checker says no, or the claim is true.

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
from tests.checker.test_check import both, changed, cut_back, lower_plus, put, scaled, tree

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
    every = {
        "as they are": GROUPS,
        "one moved": {**GROUPS, "region": ["south", *GROUPS["region"][1:]]},
        "labels swapped": {**GROUPS, "region": [*GROUPS["region"][1:], "north"]},
        "labels renamed": {**GROUPS, "region": ["east", "west"] * 6},
        "renamed": {"area": GROUPS["region"], "trade": GROUPS["trade"]},
        "exchanged": {"region": GROUPS["trade"], "trade": GROUPS["region"]},
        "none": None,
    }
    return Instance.from_arrays(
        agents, QUALITY[quality], visible=[0, 1], norm=norm, cost=1.0, groups=every[groups],
        features=["income", "debt", "luck"],
    )  # fmt: skip


def even(within, groups="region"):
    return {"parity": {"groups": groups, "within": within}}


# Rules accept 8 agents in 12, which three trades of 4 cannot share evenly: whole numbers tell, and
# every cell is closed as it is.
IMPOSSIBLE = {"accepted": [0.6, 0.7], **even(0.0, "trade"), "order": [["income", "debt"]]}
CERTIFIED = {
    "free": {},
    "few": {"accepted": [0.0, 0.3]},
    "some": {"accepted": [0.2, 0.3]},
    "even": even(0.1),
    "a sixth": even(0.16666666666666669),
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
    return _best_gain(instance.digest, json.dumps(requirements))


@functools.cache
def _best_gain(digest, requirements):
    instance, given = _by_digest()[digest], json.loads(requirements)
    return brute_force.best_gain(instance, given, labels_of(instance, given))


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


def assert_not_enough(content, instance, loose):
    """With requirements that are met by a rule above the bound, it is refused: by its leaves.

    With the witness, and without. Where nothing is demanded after all, a lower bound of 0 is then
    claimed, and else none.
    """
    assert_refused(changed(content, demand(loose)), instance, "a leaf allows|the witness")
    verdicts = [check(changed(content, demand(loose), bare(lower)), instance) for lower in LOWERS]
    assert not any(verdicts)
    assert sum("a leaf allows" in verdict.reason for verdict in verdicts) == 1


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


# ------------------------------------------------------------------ loosened: the bound is false

EQUAL = {"order": [["income", "debt"], ["debt", "income"]]}
# What was certified, and what is claimed instead, for which the bound is false. On "mixed" unless
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
    "accepted alone, of four": (CERTIFIED["all"], {"accepted": [0.1, 0.3]}),
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
    assert_not_enough(content, instance, loose)


@pytest.mark.parametrize("norm", NORMS)
def test_requirements_that_were_left_out_of_the_claim(norm):
    instance, content = named(norm, "all")
    copy = changed(content, lambda c: c["claim"].pop("requirements"))
    assert_refused(copy, instance, "a leaf allows")


# ------------------------------------------------------------------ tightened: the witness fails

TIGHTENED = {
    "accepted, lower": ("few", {"accepted": [0.0, 0.1]}, "outside of the limits"),
    "accepted, nobody": ("few", {"accepted": [0, 0]}, "outside of the limits"),
    "accepted, everybody": ("few", {"accepted": [1, 1]}, "outside of the limits"),
    "accepted, a hair lower": ("few", {"accepted": [0.0, 0.2499999]}, "outside of the limits"),
    "accepted, a hair higher": ("few", {"accepted": [0.2500001, 0.3]}, "outside of the limits"),
    "accepted, [high, low]": ("some", {"accepted": [0.3, 0.2]}, "outside of the limits"),
    "accepted added": ("positive", {"nonnegative": "all", "accepted": [0, 0.1]}, "outside of the"),
    "parity by trade": ("even", even(0.0, "trade"), "rates that differ"),
    "parity, a hair less": ("a sixth", even(0.16666666666666666), "rates that differ"),
    "parity added": ("few", {"accepted": [0.0, 0.3], **even(0.0)}, "rates that differ"),
    "nonpositive added": ("positive", {"nonnegative": "all", "nonpositive": [1, 0]}, "at 0"),
    "the other sign": ("positive", {"nonpositive": "all"}, "fails a requirement on its weights"),
    "the other order": ("positive", {"order": [["debt", "income"]]}, "on its weights"),
    "nonpositive, one added": ("even", {**even(0.1), "nonpositive": ["income"]}, "on its weights"),
    "all that the free one need not": ("free", CERTIFIED["all"], "fails a requirement"),
}


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("what", TIGHTENED)
def test_requirements_that_the_witness_fails(what, norm):
    """Without the witness, what is claimed is refused or true."""
    name, requirements, reason = TIGHTENED[what]
    instance, content = named(norm, name)
    assert not meets(instance, requirements, content["witness"])
    assert_refused(changed(content, demand(requirements)), instance, reason)
    alone = changed(content, demand(requirements), bare(None))
    verdict = check(alone, instance)
    if verdict:
        assert verdict.lower is None
        assert_true(alone, instance)


# ------------------------------------------------------------------ other witnesses


def fewer_or_more(norm, name, limit):
    """Two neighbouring thresholds of the witness's direction: with the second it fails a limit."""
    instance, content = named(norm, name)
    rule, good = content["witness"], content["witness"]["threshold"]
    bad = limit
    requirements = CERTIFIED[name]
    assert meets(instance, requirements, rule)
    assert not meets(instance, requirements, rule | {"threshold": bad})
    while math.nextafter(good, bad) != bad:
        middle = good + (bad - good) / 2
        if meets(instance, requirements, rule | {"threshold": middle}):
            good = middle
        else:
            bad = middle
    return instance, content, [witness(rule["weights"], threshold) for threshold in (good, bad)]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    ("name", "limit", "reason"),
    [
        ("few", -9.0, "outside of the limits"),
        ("some", 9.0, "outside of the limits"),
        ("some", -9.0, "outside of the limits"),
    ],
)
def test_a_threshold_that_accepts_just_one_more_or_less(name, limit, reason, norm):
    instance, content, (good, bad) = fewer_or_more(norm, name, limit)
    copy = changed(content, good)
    assert check(copy, instance)
    assert_true(copy, instance)
    assert_refused(changed(content, bad), instance, reason)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["even", "all"])
def test_thresholds_everywhere(name, norm):
    """A witness with its own gain passes if and only if it meets the requirements."""
    instance, content = named(norm, name)
    rule = content["witness"]
    passed = 0
    for threshold in [rule["threshold"], *np.linspace(-3.0, 3.0, 30).tolist()]:
        copy = changed(content, witness(rule["weights"], threshold))
        met = meets(instance, CERTIFIED[name], rule | {"threshold": threshold})
        verdict = check(copy, instance)
        assert bool(verdict) == met, verdict.reason
        assert met or "the witness accepts" in verdict.reason
        passed += met
    assert 0 < passed < 31


WEIGHTS = "fails a requirement on its weights"
# Weights of a witness that has its own gain; None for those of the best rule of all.
WITNESSES = {
    "the best of all, few": ("few", None, "outside of the limits"),
    "the best of all, even": ("even", None, "rates that differ"),
    "the best of all, positive": ("positive", None, WEIGHTS),
    "the best of all, order": ("order", None, WEIGHTS),
    "the best of all, all": ("all", None, WEIGHTS),
    "a little negative": ("positive", [1.0, -1e-9, 0.0], WEIGHTS),
    "hardly negative": ("positive", [1.0, -1e-300, 0.0], WEIGHTS),
    "the least negative": ("positive", [1.0, -5e-324, 0.0], WEIGHTS),
    "both negative": ("positive", [-1.0, -1.0, 0.0], WEIGHTS),
    "order, a little off": ("order", [1.0, 1.0 - 2.0**-53, 0.0], WEIGHTS),
    "order, below 0": ("order", [-1.0, -1.0 - 2.0**-52, 0.0], WEIGHTS),
    "on what is hidden": ("positive", [1.0, 0.0, 1e-9], "cannot see"),
    "no direction": ("positive", [0.0, 0.0, 0.0], "no direction"),
}


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("what", WITNESSES)
def test_witnesses_that_fail(what, norm):
    name, weights, reason = WITNESSES[what]
    instance, content = named(norm, name)
    if weights is None:
        free = named(norm, "free")[1]
        change = both(
            *(put(field, free[field]) for field in ("witness", "lower", "upper")), put("gap", 1.0)
        )
    elif not any(weights):
        change = put("witness.weights", weights)
    else:
        change = witness(weights, 0.25)
    assert_refused(changed(content, change), instance, reason)


ALLOWED = {
    "minus nothing": ("positive", [1.0, -0.0, 0.0]),
    "one of 0": ("positive", [0.0, 1.0, 0.0]),
    "hardly positive": ("positive", [1.0, 5e-324, 0.0]),
    "order, both the same": ("order", [0.1, 0.1, 0.0]),
    "order, a little more": ("order", [1.0, 1.0 + 2.0**-52, 0.0]),
    "order, below 0": ("order", [-1.0, -1.0, 0.0]),
}


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("what", ALLOWED)
def test_witnesses_just_within(what, norm):
    """They may gain less, or do harm; what is claimed of them is true."""
    name, weights = ALLOWED[what]
    instance, content = named(norm, name)
    copy = changed(content, witness(weights, 0.25))
    verdict = check(copy, instance)
    assert verdict, verdict.reason
    assert_true(copy, instance)


# ------------------------------------------------------------------ bounds, kinds of claim, proofs


def lower_of(value):
    return put("lower", {"value": float(value), "exact": str(value)})


def finer(factor):
    return lambda content: content.update(upper=factor * content["upper"])


DENSITY = both(put("claim.kind", "density"), put("claim.eta", 1.0), put("claim.band", 1e-12))
SOLVER = {"kind": "solver", "solver": "x", "regions": [{"eta": [0.0, 9.0], "at_most": 2.0}]}

CLAIMS = {
    "upper below the witness": (finer(0.9), "below the witness"),
    "upper lowered, no witness": (both(bare(None), finer(0.99)), "a leaf allows"),
    "upper 0, no witness": (both(bare(None), put("upper", 0.0)), "a leaf allows"),
    "upper negative": (both(bare(None), put("upper", -1.0)), "upper is negative"),
    "upper null": (both(bare(None), put("upper", None)), "upper is missing"),
    "lower raised": (lower_plus("1/1000000"), "the witness has"),
    "lower raised by a hair": (lower_plus(f"1/{10**60}"), "the witness has"),
    "lower lowered": (lower_plus("-1/1000000"), "the witness has|above the exact"),
    "lower value above the exact one": (put("lower.value", 9.0), "above the exact"),
    "lower null": (put("lower", None), "lower is missing"),
    "lower 0": (lower_of(0), "the witness has"),
    "lower below 0": (lower_of(-1), "the witness has"),
    "witness null": (put("witness", None), "no witness for the lower bound"),
    "witness null, lower 0": (bare(LOWERS[0]), "no witness for the lower bound"),
    "witness null, lower below 0": (both(bare(None), lower_of(-1)), "no witness for the lower"),
    "gap smaller": (put("gap", lambda v: 0.5 * v), "gap claimed is smaller"),
    "gap 0": (put("gap", 0.0), "gap claimed is smaller"),
    "gap null": (put("gap", None), "gap is missing"),
    "gap small, no witness": (both(bare(None), put("gap", 0.999)), "gap claimed is smaller"),
    "gap 0, no witness": (both(bare(None), put("gap", 0.0)), "gap claimed is smaller"),
    "gap above 1": (put("gap", 1.5), "not between 0 and 1"),
    "called density": (DENSITY, "density at η has no requirements"),
    "called something else": (put("claim.kind", "best"), "expected gain, density or infeasible"),
    "called nothing": (put("claim.kind", None), "claim.kind is missing"),
    "called infeasible, all kept": (put("claim.kind", "infeasible"), "nobody is accepted|is given"),
    "called infeasible": (there_is_none, "nobody is accepted|may have a rule"),
    "a word for a proof": (put("proof", SOLVER), "does not prove a bound"),
    "level unknown": (put("level", "certain"), "expected proved or attested"),
    "level null": (put("level", None), "level is missing"),
    "proof of another kind": (put("proof.kind", "cells@2"), "does not prove a bound"),
    "no proof": (put("proof", None), "proof is missing"),
    "cells cut off": (tree(lambda _: bytes(4)), "a leaf allows"),
    "a leaf dropped": (tree(lambda s: s[:-1]), "ends too soon"),
    "a node appended": (tree(lambda s: s + b"\0"), "continues after"),
    "frame scaled": (put("proof.frame", scaled(1.01)), "proof.frame"),
    "frame on what is hidden": (put("proof.frame.0.2", 0.25), "proof.frame"),
    "unit halved": (put("proof.unit", lambda v: v / 2), "thresholds|a leaf"),
    "thresholds shrunk": (put("proof.thresholds.1", lambda b: 0.5 * b), "thresholds|a leaf"),
    "for another sample": (put("instance.digest", "0" * 64), "another instance"),
}


@pytest.mark.parametrize(("name", "norm"), [("some", "l2"), ("order", "l1"), ("all", "linf")])
@pytest.mark.parametrize("what", CLAIMS)
def test_claims_and_proofs(what, name, norm):
    change, reason = CLAIMS[what]
    instance, content = named(norm, name)
    assert_refused(changed(content, change), instance, reason)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["few", "even", "positive", "order", "all"])
def test_every_subtree_removed(name, norm):
    """A leaf where cuts were: it allows more than is claimed, or the claim is true even so."""
    instance, content = named(norm, name)
    best = best_gain(instance, CERTIFIED[name])
    refused = 0
    for node in range(12):
        cut = tree(lambda s, node=node: cut_back(s, 4, node))
        for lower in ((), (bare(None), put("upper", 0.97 * best.surely))):
            verdict = check(changed(content, cut, *lower), instance)
            assert not (verdict and lower)
            assert verdict or "a leaf allows" in verdict.reason
            refused += not verdict and not lower
    assert refused


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", CERTIFIED)
@pytest.mark.parametrize("other", CERTIFIED)
def test_a_proof_for_other_requirements(name, other, norm):
    """All that is said of one problem, but with the proof of another."""
    instance, content = named(norm, name)
    proof = named(norm, other)[1]["proof"]
    copy = changed(content, put("proof", proof))
    verdict = check(copy, instance)
    if verdict:
        assert_true(copy, instance)
    else:
        assert any(part in verdict.reason for part in ("a leaf", "some leaf", "proof.")), verdict


# ------------------------------------------------------------------ that there is no rule


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["some", "all", "one way"])
def test_there_is_a_rule(name, norm):
    """That there is none is claimed with the tree of the best one, or with another claim's."""
    requirements = {"one way": {"accepted": [0.6, 0.7], "order": [["income", "debt"]]}}.get(
        name, CERTIFIED.get(name)
    )
    instance, content = certified(norm, requirements, "bright")
    assert content["witness"] is not None
    impossible = named(norm, "impossible")[1]["proof"]
    for change in (there_is_none, both(there_is_none, put("proof", impossible))):
        assert_refused(changed(content, change), instance, "may have a rule")


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("low", [0, -0.0])
@pytest.mark.parametrize("high", [0, 0.05])
def test_nobody_may_be_accepted(low, high, norm):
    """No threshold at an agent's end is allowed; those above everybody are, and gain nothing."""
    instance, content = named(norm, "few")
    demanded = demand({"accepted": [low, high]})
    assert best_gain(instance, {"accepted": [low, high]}).at_most >= 0
    assert_refused(changed(content, demanded, there_is_none), instance, "nobody is accepted")
    above = changed(content, demanded, bare(None), put("upper", 1e-9))
    assert check(above, instance)
    assert_true(above, instance)


# What is claimed of rules when it is said that there is none.
NO_RULE = {
    "accepted dropped": {**even(0.0, "trade"), "order": [["income", "debt"]]},
    "parity dropped": {"accepted": [0.6, 0.7], "order": [["income", "debt"]]},
    "accepted, lower": IMPOSSIBLE | {"accepted": [0.5, 0.7]},
    "accepted, higher": IMPOSSIBLE | {"accepted": [0.6, 1]},
    "accepted, low 0": IMPOSSIBLE | {"accepted": [0, 0.7]},
    "accepted, low -0": IMPOSSIBLE | {"accepted": [-0.0, 0.7]},
    "within raised": IMPOSSIBLE | even(0.25, "trade"),
    "within 1": IMPOSSIBLE | even(1, "trade"),
    "another grouping": IMPOSSIBLE | even(0.0) | {"accepted": [0.4, 0.7]},
    "nothing": {},
    "null": None,
}


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("what", NO_RULE)
def test_impossible_requirements_that_were_loosened(what, norm):
    instance, content = named(norm, "impossible")
    requirements = NO_RULE[what]
    assert best_gain(instance, requirements or {}) is not None
    reason = "may have a rule|nobody is accepted"
    assert_refused(changed(content, demand(requirements)), instance, reason)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    "loose",
    [
        IMPOSSIBLE | {"order": []},
        IMPOSSIBLE | {"order": [["debt", "income"]]},
        IMPOSSIBLE | {"accepted": [0.7, 0.6]},
        IMPOSSIBLE | even(0.0),
        IMPOSSIBLE | even(0.2, "trade"),
    ],
    ids=str,
)
def test_impossible_requirements_that_may_stay_so(loose, norm):
    instance, content = named(norm, "impossible")
    copy = changed(content, demand(loose))
    verdict = check(copy, instance)
    if verdict:
        assert_true(copy, instance)
    else:
        assert "may have a rule" in verdict.reason


RULE = {"weights": [1.0, 1.0, 0.0], "threshold": 0.0}
NOTHING = {
    "attested": (put("level", "attested"), "is proved, or not claimed"),
    "level null": (put("level", None), "level is missing"),
    "with a witness": (put("witness", RULE), "witness is given"),
    "with a lower bound": (put("lower", LOWERS[0]), "lower is given"),
    "with an upper bound": (put("upper", 0.0), "upper is given"),
    "with a gap": (put("gap", 1.0), "gap is given"),
    "with an empty text": (put("lower", ""), "lower is given"),
    "with false": (put("gap", False), "gap is given"),
    "a leaf dropped": (tree(lambda s: s[:-1]), "ends too soon"),
    "an empty tree": (tree(lambda _: b""), "ends too soon"),
    "a word for a proof": (put("proof", SOLVER), "does not prove a bound"),
    "thresholds shrunk": (put("proof.thresholds", [0.0, 0.1]), "thresholds"),
    "thresholds the other way": (put("proof.thresholds", lambda two: two[::-1]), "thresholds"),
    "called a gain": (put("claim.kind", "gain"), "upper is missing"),
    "called density": (DENSITY, "density at η has no requirements"),
    "a gain of a rule": (
        both(put("claim.kind", "gain"), put("upper", 1.0), put("gap", 1.0), put("witness", RULE),
             put("lower", LOWERS[0])),
        "the witness accepts",
    ),
    "a gain with a small gap": (
        both(put("claim.kind", "gain"), put("upper", 1.0), put("gap", 0.5)), "gap claimed",
    ),
}  # fmt: skip


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("what", NOTHING)
def test_claims_that_there_is_no_rule(what, norm):
    change, reason = NOTHING[what]
    instance, content = named(norm, "impossible")
    assert_refused(changed(content, change), instance, reason)


@pytest.mark.parametrize("norm", NORMS)
def test_where_there_is_no_rule_none_gains(norm):
    """The same tree shows that the gain is 0 at most: true, of no rule at all."""
    instance, content = named(norm, "impossible")
    copy = changed(content, put("claim.kind", "gain"), bare(None), put("upper", 0.0))
    assert check(copy, instance)
    assert_true(copy, instance)


# ------------------------------------------------------------------ what is no requirement

SIGNS = ("nonnegative", "nonpositive")
SHARES = (
    ("accepted", lambda share: {"accepted": [0.2, share]}),
    ("accepted", lambda share: {"accepted": [share, 0.3]}),
    ("parity", even),
)
MALFORMED = [
    ([], "not an object"),
    ("all", "not an object"),
    ("nonnegative", "not an object"),
    (True, "not an object"),
    (False, "not an object"),
    (0, "not an object"),
    ([{"accepted": [0.2, 0.3]}], "not an object"),
    ({"acepted": [0.2, 0.3]}, "not an object of the format"),
    ({"accepted": [0.2, 0.3], "least": 1}, "not an object of the format"),
    ({"Accepted": [0.2, 0.3]}, "not an object of the format"),
    ({"": []}, "not an object of the format"),
    ({"format": "mipmech/requirements@2"}, "another format"),
    ({"format": None, "accepted": [0.2, 0.3]}, "another format"),
    ({"format": True}, "another format"),
    ({"format": ["mipmech/requirements@1"]}, "another format"),
    *(({"accepted": value}, "accepted is not a list") for value in (None, "all", 0.3, True, {})),
    *(({"accepted": value}, r"not [low, high]") for value in ([], [0.2], [0.2, 0.3, 0.3])),
    ({"accepted": [[0.2, 0.3]]}, "not [low, high]"),
    ({"accepted": [[0.2], [0.3]]}, "accepted has no number"),
    *(
        (demanded(share), f"{field} has no number")
        for field, demanded in SHARES
        for share in (None, "0.3", True, False, [], {}, math.inf, math.nan, 1e308, 10**400)
    ),
    *(
        (demanded(share), f"{field} has a share that is not between 0 and 1")
        for field, demanded in SHARES
        for share in (-0.1, -5e-324, 1.0000000000000002, 2, 30, 10**300)
    ),
    *(({"parity": value}, "not an object with groups and within")
      for value in (None, [], "region", 0.1, True, {}, {"within": 0.1}, {"groups": "region"},
                    {"groups": "region", "within": 0.1, "least": 0}, ["region", 0.1])),
    *(({"parity": {"groups": value, "within": 0.1}}, "groups that the instance does not have")
      for value in (None, "", "Region", "region ", "north", 0, True, ["region"], {"region": 1})),
    *(({sign: value}, f"{sign} is not a list")
      for sign in SIGNS for value in (None, True, 0, "income", "All", "", {}, {"income": 1})),
    *(({sign: [value]}, f"{sign} names a feature that the planner does not see")
      for sign in SIGNS
      for value in ("luck", 2, -1, 3, 10**400, "all", "", "Income", "0", 0.0, True, False, None,
                    [0], {}, math.nan)),
    *(({"order": value}, "order is not a list") for value in (None, "all", True, 1, {"debt": 0})),
    *(({"order": value}, "order is not a list of pairs")
      for value in ([0, 1], ["debt", "income"], ["01"], [[0]], [[0, 1, 0]], [[]], [None])),
    *(({"order": [[0, value]]}, "order names a feature that the planner does not see")
      for value in ("luck", 2, -1, 10**400, "all", 1.0, True, None, [1])),
    ({"nonnegative": "all", "nonpositive": "all"}, "leave every weight at 0"),
    ({"nonnegative": [0], "order": [[1, 0]], "nonpositive": [1]}, "leave every weight at 0"),
]  # fmt: skip


@pytest.mark.parametrize("name", ["some", "impossible"])
@pytest.mark.parametrize(("requirements", "reason"), MALFORMED, ids=lambda value: str(value)[:60])
def test_what_is_no_requirement(requirements, reason, name):
    """Refused, and by no other word than that about requirements; never an error of Python's."""
    instance, content = named("l2", name)
    assert_refused(changed(content, demand(requirements)), instance, reason)


@pytest.mark.parametrize("norm", NORMS)
def test_shares_may_be_whole_numbers_and_features_may_be_named_twice(norm):
    """The same in other words, which passes as it did."""
    instance, content = named(norm, "positive")
    for same in ({"nonnegative": [0, "debt", 0]}, {"nonnegative": "all", "accepted": [0, 1]}):
        verdict = check(changed(content, demand(same)), instance)
        assert verdict, verdict.reason


# ------------------------------------------------------------------ groups


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("groups", ["one moved", "labels swapped", "labels renamed", "renamed"])
def test_groups_are_part_of_the_sample(groups, norm):
    _, content = named(norm, "even")
    assert_refused(content, sample(norm, groups=groups), "the digests differ")


# Other groups under the digest of their sample, and what the checker says then; None where the
# claim is the same in other words.
REGROUPED = {
    "labels swapped": None,
    "labels renamed": None,
    "one moved": "the witness accepts groups at rates|a leaf allows",
    "renamed": "groups that the instance does not have",
    "exchanged": "the witness accepts groups at rates|a leaf allows",
    "none": "groups that the instance does not have",
}


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("groups", REGROUPED)
def test_certificates_for_other_groups(groups, norm):
    reason = REGROUPED[groups]
    _, content = named(norm, "even")
    instance = sample(norm, groups=groups)
    copy = changed(content, put("instance.digest", instance.digest))
    if reason is None:
        assert check(copy, instance)
    else:
        assert_refused(copy, instance, reason)


# ------------------------------------------------------------------ rows of a view


@functools.cache
def viewed(rows=2):
    """A sample of which two sums are seen, whose weights must not be negative."""
    agents = np.random.default_rng(7).standard_normal((12, 3)).round(2)
    view = [[1.0, 0.5, 0.0], [0.0, -0.5, 1.0], [1.0, 0.0, 1.0]][:rows]
    instance = Instance.from_arrays(
        agents, [1.0, 0.5, -0.5], view=view, cost=1.0, features=["income", "debt", "luck"]
    )
    demanded = {"nonnegative": "all"} if rows == 2 else {"accepted": [0.1, 0.3]}
    return instance, certify(instance, require=demanded, gap=1e-3).content()


VIEWED = {
    "view weights negative": (put("witness.view_weights", [1.0, -1e-9]), "not those of its view"),
    "both negative": (
        both(put("witness.view_weights", [-1.0, 0.0]), put("witness.weights", [-1.0, -0.5, 0.0])),
        "fails a requirement on its weights",
    ),
    "the least negative": (
        both(put("witness.view_weights", [1.0, -5e-324]), put("witness.weights", [1.0, 0.5, 0.0])),
        "fails a requirement on its weights",
    ),
    "no view weights": (put("witness.view_weights", None), "view_weights is missing"),
    "features of a view": (demand({"nonnegative": ["income"]}), "does not see"),
    "a row that is not there": (demand({"nonnegative": [2]}), "does not see"),
}


@pytest.mark.parametrize("what", VIEWED)
def test_rows_of_a_view(what):
    change, reason = VIEWED[what]
    instance, content = viewed()
    assert check(content, instance)
    assert_refused(changed(content, change), instance, reason)


@pytest.mark.parametrize(
    "loose", [{}, {"nonnegative": [0]}, {"nonpositive": [1]}, {"order": [[0, 1]]}], ids=str
)
def test_rows_of_a_view_that_were_loosened(loose):
    instance, content = viewed()
    assert brute_force.best_gain(instance, loose).surely > content["upper"]
    assert_not_enough(content, instance, loose)


@pytest.mark.parametrize("requirements", [{"nonnegative": [0]}, {"order": [[0, 2]]}], ids=str)
def test_rows_that_depend_on_each_other_have_no_signs(requirements):
    instance, content = viewed(3)
    assert check(content, instance)
    more = demand({"accepted": [0.1, 0.3], **requirements})
    assert_refused(changed(content, more), instance, "need independent rows")
