"""The checker against certificates that were tampered with: it says no, or the claim is true.

Every change is sealed again, so that the checksum never gives it away. What is done to a *proof* is
also tried under a false claim (`assert_sound`): nothing below what a rule attains may come out.
"""

from __future__ import annotations

import ast
import base64
import copy
import functools
import json
import lzma
import math
import os
import re
import sys
import time
from fractions import Fraction

import numpy as np
import pytest

import mipmech
from mipmech import Budget, InputError, Instance, Mechanism, certify, certify_density
from mipmech.checker import bounds as checker_bounds
from mipmech.checker import check, leaves
from mipmech.checker.agents import Agents
from mipmech.checker.leaves import highest_bound, no_look
from mipmech.checker.tree import Node
from mipmech.checker.verdict import InstanceNotFound, Verdict, seal
from mipmech.checker.witness import ExactInstance
from mipmech.design import checking
from tests import costs_brute_force, referee
from tests.conftest import ROOT, seeds
from tests.sweep_gain import sweep_gain

TINY = ROOT / "instances" / "tiny"
# What a certificate tells beside its claim and proof; nobody vouches for it.
REMARKS = (
    "instance.name", "instance.path", "scope", "made_by", "work", "stop", "proof.leaves",
    "proof.solver", "proof.steps", "seal",
)  # fmt: skip
MISSING = object()
NAMES = ("square", "touching", "cloud", "hidden-quality", "costs", "view", "density")


# ------------------------------------------------------------------ certificates, and changing them


@functools.cache
def made(name):
    """An instance and the content of its certificate, not to be changed."""
    if name == "costs":
        instance = mipmech.make_instance("costs", 12, 2, seed=2)
    elif name == "view":
        rng = np.random.default_rng(8)
        agents, rows = rng.standard_normal((12, 3)), rng.standard_normal((2, 3))
        instance = Instance.from_arrays(agents, [1.0, 0.5, -0.5], view=rows, cost=2.0)
    elif name == "density":
        instance = mipmech.make_instance("gaussian-mixture", 20, 3, seed=4)
        return instance, certify_density(
            instance, 0.5 * mipmech.model.reduce(instance).p_norm
        ).content()
    else:
        instance = Instance.load(TINY / f"{name}.json")
    return instance, certify(instance).content()


def attained(instance, claim):
    """A gain (density) that some rule has; the greatest, but for rounding."""
    if claim["kind"] == "density":
        return float(mipmech.ask(instance, claim["eta"], oracle="sweep").density)
    if instance.costs.norm != "l2":
        return costs_brute_force.best_gain(instance).surely
    if not instance.costs.plain:
        return float(sweep_gain(costs_brute_force.euclidean(instance)).gain) * (1 - 1e-9)
    known = float(sweep_gain(instance).gain)
    if instance.view.columns is None:
        return known
    return max(known, referee.best_gain(instance) * (1 - 1e-9))


@functools.cache
def best(name):
    instance, content = made(name)
    return attained(instance, content["claim"])


def changed(content, *changes):
    """A sealed copy with changes made to it."""
    result = copy.deepcopy(content)
    for change in changes:
        change(result)
    result["seal"] = seal(result)
    return result


def put(path, value):
    """Set the field at a dotted path; a function is given the old value."""

    def change(content):
        *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
        for part in way:
            content = content[part]
        content[last] = value(content[last]) if callable(value) else value
        if value is MISSING:
            del content[last]

    return change


def both(*changes):
    return lambda content: [change(content) for change in changes]


def unpacked(text):
    return bytearray(lzma.decompress(base64.b85decode(text)))


def packed(symbols):
    return base64.b85encode(lzma.compress(bytes(symbols))).decode()


def tree(change):
    """Change the symbols of the tree."""
    return put("proof.tree", lambda text: packed(change(unpacked(text))))


def just_above_the_witness(content):
    """The next float above the exact lower bound."""
    put("upper", math.nextafter(content["lower"]["value"], math.inf))(content)


def claim_nothing(upper):
    """No witness, lower bound 0, and this upper bound."""
    lower = put("lower", {"value": 0.0, "exact": "0"})
    return both(put("witness", None), lower, put("upper", upper), put("gap", 1.0))


def examined(content, instance=None):
    """The verdict, which comes without a warning of numpy's."""
    verdict = check(content, instance)
    assert isinstance(verdict, Verdict)
    assert verdict.accepted == (verdict.reason is None) == bool(verdict)
    json.dumps(verdict.to_dict(), allow_nan=False)
    return verdict


def refuted(content, instance):
    """Why an accepted claim is false, by other programs than those that made or checked it."""
    upper, lower = content["upper"], Fraction(content["lower"]["exact"])
    if lower > Fraction(upper) or content["lower"]["value"] > lower or content["gap"] < 0:
        return "bounds in the wrong order"
    if content["witness"] is not None:
        try:
            rule = Mechanism.from_dict(content["witness"], instance)
        except InputError as error:
            return f"the witness is no rule: {error}"
        weights = referee.exact_weights(instance, rule)
        found = referee.truth(instance, weights, rule.threshold)
        if lower != (found.gain if content["claim"]["kind"] == "gain" else found.density):
            return "the witness has something else"
    known = attained(instance, content["claim"])
    return f"{known} is attained" if upper < known else None


def assert_rejected_or_true(content, instance):
    verdict = examined(content, instance)
    if verdict and verdict.level == "proved":
        assert refuted(content, instance) is None, verdict
    return verdict


def assert_sound(content, instance, known, share=0.5):
    """The proof carries nothing below what some rule attains, however hard it is looked at."""
    verdict = examined(changed(content, claim_nothing(known * share)), instance)
    assert not verdict
    assert verdict.leaf_bound is None or verdict.leaf_bound >= known
    return verdict


# ------------------------------------------------------------------ honest ones


@pytest.mark.parametrize("path", sorted(TINY.glob("*.json")), ids=lambda path: path.stem)
def test_certificates_of_the_tiny_instances_pass(path, tmp_path):
    """By content, by file with the instance named in it, and with the instance given."""
    instance = Instance.load(path)
    found = certify(instance)
    assert found.check()
    found.save(tmp_path / "gain.json")
    for verdict in (check(tmp_path / "gain.json"), check(tmp_path / "gain.json", path)):
        assert verdict, verdict
        assert (verdict.level, verdict.lower, verdict.upper) == ("proved", found.lower, found.upper)
        assert verdict.leaf_bound <= found.upper
    if instance.known is not None:
        assert float(found.lower) <= instance.known.upper
        assert found.upper >= instance.known.lower
    p_norm = mipmech.model.reduce(instance).p_norm
    if instance.costs.norm != "l2":
        with pytest.raises(InputError, match="a certificate at η is for Euclidean costs"):
            certify_density(instance, p_norm)
        return
    for eta in {0.0, p_norm} if instance.view.rank > 1 else {p_norm}:
        assert certify_density(instance, eta).check(), eta


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
@pytest.mark.parametrize("family", ["gaussian-mixture", "ties", "costs"])
def test_certificates_of_families_pass(family, rank):
    """Weights and unequal costs are in "costs"; each is also seen through other rows."""
    sample = mipmech.make_instance(family, 24 if rank < 4 else 12, rank, seed=rank)
    rows = np.linalg.qr(np.random.default_rng(rank).standard_normal((sample.width,) * 2))[0][:rank]
    for instance in (sample, rebuilt(sample, visible=None, view=rows)):
        found = certify(instance, gap=1e-2)
        assert found.check(), found
        if rank <= 2:
            known = sweep_gain(instance)
            assert found.lower <= Fraction(known.upper)
            assert Fraction(found.upper) >= known.gain
        share = 0.6 if rank > 1 else 1.0
        dense = certify_density(instance, share * mipmech.model.reduce(instance).p_norm)
        assert dense.check(), dense


@pytest.mark.parametrize("spread", [1.0, 1e6, 1e9])
def test_certificates_with_large_hidden_features_pass(spread):
    rng = np.random.default_rng(3)
    agents = np.column_stack([rng.standard_normal((15, 2)), spread * rng.standard_normal(15)])
    instance = Instance.from_arrays(agents, [1.0, 0.5, 1.0], visible=[0, 1], cost=1.0)
    assert certify(instance).check()
    assert certify_density(instance, 0.5).check()


# ------------------------------------------------------------------ tamperings


def scaled(factor):
    return lambda values: (factor * np.array(values)).tolist()


def turned(angle):
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    return lambda frame: (turn @ np.array(frame)).tolist()


def attested(content):
    """A solver's word instead of a proof."""
    regions = [{"eta": [0.0, 1.0], "at_most": 0.1}, {"eta": [1.0, 99.0], "at_most": 1.9}]
    content.update(level="attested", upper=2.0, gap=1.0)
    content["proof"] = {"kind": "solver", "solver": "x", "regions": regions}


def lower_plus(share):
    def change(content):
        lower = Fraction(content["lower"]["exact"]) + Fraction(share)
        content["lower"] = {"value": float(lower) * (1 - 1e-12), "exact": str(lower)}
        content["gap"] = 1.0

    return change


def swapped(symbols):
    """Two neighbours that differ, exchanged."""
    place = next(i for i in range(4, len(symbols)) if symbols[i] != symbols[i + 1])
    symbols[place], symbols[place + 1] = symbols[place + 1], symbols[place]
    return symbols


def cut_back(symbols, roots, target):
    """The node at this place, in level order, becomes a leaf."""
    alive, result = [True] * roots, bytearray()
    for place, symbol in enumerate(symbols):
        if alive[place]:
            result.append(0 if place == target else symbol)
        if symbol:
            alive += [alive[place] and place != target] * 2
    return result


def full_tree(roots, depth, cut):
    """All nodes cut; cut(level, facet) is how."""
    symbols = [cut(level, i >> level) for level in range(depth) for i in range(roots << level)]
    return packed(bytes(symbols) + bytes(roots << depth))


def tree_of(name):
    return put("proof.tree", lambda _: made(name)[1]["proof"]["tree"])


density_at_1 = {"kind": "density", "eta": 1.0, "band": 1e-12}

# What is done to the certificate of "square" (or another, named in brackets), and words of the
# reason; "" if it may pass as far as it is true, None if it must.
# fmt: off
TAMPERINGS = {
    "nothing": (lambda _: None, None),
    "weaker claim": (claim_nothing(2.0), None),
    "gap larger": (put("gap", 0.5), None),
    "witness in another scale":
        (both(put("witness.weights", scaled(2)), put("witness.threshold", lambda b: 2 * b)), None),
    "words for people": (put("scope", "everything, everywhere"), None),
    "word of a solver": (attested, None),
    "upper just above the witness": (just_above_the_witness, "a leaf allows|gap"),
    "upper just below the optimum, no witness": (claim_nothing(1.0133249), "a leaf allows"),
    "upper far below, no witness": (claim_nothing(1e-3), "a leaf allows"),
    "upper 0, no witness": (claim_nothing(0.0), "a leaf allows|gap"),
    "upper below the witness": (put("upper", 0.5), "below the witness"),
    "upper a little lower [cloud]": (put("upper", lambda v: math.nextafter(v, 0)), ""),
    "above 1 [density]": (put("upper", 1.5), "above 1"),
    "one agent less [density]": (lambda c: claim_nothing(c["upper"] - 0.05)(c), "a leaf allows"),
    "lower raised": (lower_plus("1/1000000"), "the witness has"),
    "lower raised by a hair": (lower_plus(f"1/{10**60}"), "the witness has"),
    "lower astronomical": (put("lower.exact", "1" + "0" * 3000), "witness has|above|a fraction"),
    "lower value above the exact one": (put("lower.value", lambda v: v * 1.001), "above the exact"),
    "lower no fraction": (put("lower.exact", "1e3"), "not a fraction"),
    "lower of a million digits": (put("lower.exact", "9" * 10**6), "not a fraction|too long"),
    "gap smaller": (put("gap", lambda v: v * 0.99), "gap"),
    "gap negative [hidden-quality]": (put("gap", -5.0), "gap"),
    "leaf dropped": (tree(lambda s: s[:-1]), "ends too soon"),
    "node appended": (tree(lambda s: s + b"\0"), "continues after"),
    "cut to another side": (tree(lambda s: s.replace(b"\2", b"\3", 1)), ""),
    "cut to thresholds": (tree(lambda s: s.replace(b"\3", b"\1", 1)), ""),
    "thresholds to a side": (tree(lambda s: s.replace(b"\1", b"\3", 1)), ""),
    "cut of the facet's own side": (tree(lambda _: b"\2\0\0\0\0\0"), "finer than floats"),
    "side that is not there": (tree(lambda s: s.replace(b"\3", b"\4", 1)), "unknown symbol"),
    "two symbols swapped": (tree(swapped), ""),
    "subtree cut off": (tree(lambda s: cut_back(s, 4, 0)), "a leaf allows"),
    "roots only": (tree(lambda _: bytes(4)), "a leaf allows"),
    "one facet only": (tree(lambda _: b"\0"), "ends too soon"),
    "tree of another instance": (tree_of("cloud"), ""),
    "tree of another dimension": (tree_of("touching"), "proof.tree"),
    "tree empty": (tree(lambda _: b""), "ends too soon"),
    "tree cut short": (put("proof.tree", lambda t: t[:-10]), "proof.tree"),
    "tree followed by more": (put("proof.tree", lambda t: t + t), "followed|unpacked"),
    "bomb of leaves": (tree(lambda _: bytes(1 << 24)), "continues after"),
    "bomb of cuts": (put("proof.tree", lambda _: full_tree(4, 14, lambda *_: 1)), ""),
    "tree too deep": (tree(lambda _: b"\1\0\0\0" + b"\1\0" * 5000 + b"\0\0"), "too deep"),
    "witness weights changed": (put("witness.weights.0", lambda v: v + 1e-9), "the witness has"),
    "witness threshold changed": (put("witness.threshold", lambda v: v - 1e-9), "the witness has"),
    "witness turned round": (put("witness.weights", scaled(-1)), "the witness has"),
    "witness on an unseen feature [cloud]": (put("witness.weights.2", 1e-300), "cannot see"),
    "witness zero": (put("witness.weights", [0, 0]), "no direction"),
    "witness missing": (put("witness", None), "no witness"),
    "witness changed [view]": (put("witness.view_weights.0", lambda v: v + 1e-9), "witness has"),
    "witness in other words [view]": (put("witness.weights", scaled(-1)), "witness"),
    "frame scaled": (put("proof.frame", scaled(1.01)), "orthonormal"),
    "frame scaled a little": (put("proof.frame", scaled(1 - 4e-4)), ""),
    "frame turned": (put("proof.frame", turned(0.5)), ""),
    "frame mirrored": (put("proof.frame", lambda f: f[::-1]), ""),
    "frame on an unseen feature [cloud]": (put("proof.frame.1", [0, 0, 1]), "orthonormal"),
    "frame with a row twice [cloud]": (put("proof.frame.1", [1, 0, 0]), "orthonormal"),
    "frame of zeros": (put("proof.frame", scaled(0)), "orthonormal"),
    "frame turned [density]": (put("proof.frame", lambda f: f[1:] + f[:1]), "first axis"),
    "centre moved": (put("proof.centre.0", 1e-3), ""),
    "centre far away": (put("proof.centre.0", 1e3), "thresholds"),
    "centre beyond floats": (put("proof.centre", [9e307, -9e307]), "proof"),
    "unit doubled": (put("proof.unit", lambda v: 2 * v), ""),
    "unit halved": (put("proof.unit", lambda v: v / 2), "thresholds"),
    "unit huge": (put("proof.unit", 2.0**820), ""),
    "unit tiny": (put("proof.unit", 2.0**-820), "proof.unit"),
    "unit 3": (put("proof.unit", 3.0), "power of two"),
    "unit 0": (put("proof.unit", 0.0), "power of two"),
    "thresholds shrunk below": (put("proof.thresholds.0", lambda b: 0.99 * b), "thresholds"),
    "thresholds shrunk above": (put("proof.thresholds.1", lambda b: 0.99 * b), "thresholds"),
    "thresholds widened": (put("proof.thresholds", scaled(1.5)), ""),
    "thresholds endless": (put("proof.thresholds", [-9e307, 9e307]), ""),
    "thresholds reversed": (put("proof.thresholds", lambda t: t[::-1]), "thresholds"),
    "η changed [density]": (put("claim.eta", lambda v: v * (1 + 1e-9)), "not at the η"),
    "η changed, no witness [density]":
        (both(claim_nothing(0.2), put("claim.eta", lambda v: v * 0.99)), "a leaf|thresholds"),
    "η negated [density]": (put("claim.eta", lambda v: -v), "not at the η"),
    "η beyond [density]": (both(claim_nothing(0.5), put("claim.eta", 99.0)), "no direction has"),
    "band wide [density]": (put("claim.band", 0.5), "band"),
    "band wider [density]": (put("claim.band", 1e-4), ""),
    "called gain [density]": (put("claim", {"kind": "gain"}), "the witness has"),
    "called gain, no witness [density]":
        (both(claim_nothing(0.01), put("claim", {"kind": "gain"})), "proof|a leaf"),
    "called density": (put("claim", density_at_1), "the witness has|above 1"),
    "called density, no witness": (both(claim_nothing(0.1), put("claim", density_at_1)), "axis"),
    "called welfare": (put("claim.kind", "welfare"), "claim.kind"),
    "attested called proved": (both(attested, put("level", "proved")), "does not prove a bound"),
    "proved called attested": (put("level", "attested"), None),
    "regions with a hole": (both(attested, put("proof.regions.1.eta.0", 1.01)), "region covers"),
    "regions that end": (both(attested, put("proof.regions.1.eta.1", 1.01)), "region covers"),
    "no regions": (both(attested, put("proof.regions", [])), "region covers"),
    "region above": (both(attested, put("proof.regions.0.at_most", 2.5)), "region allows more"),
    "proof of another kind": (put("proof.kind", "cells@2"), "kind"),
    "another digest": (put("instance.digest", "0" * 64), "another instance"),
}
# fmt: on


@pytest.mark.parametrize("what", TAMPERINGS)
def test_tampering(what):
    change, reason = TAMPERINGS[what]
    name = what[what.index("[") + 1 : -1] if "[" in what else "square"
    instance, content = made(name)
    found = changed(content, change)
    verdict = assert_rejected_or_true(found, instance)
    assert bool(reason) <= (not verdict)
    assert (reason is None) <= bool(verdict)
    assert verdict or re.search(reason, verdict.reason), verdict.reason
    if verdict.level == "attested":
        assert bool(verdict) == any(said.startswith("NOT verified") for said in verdict.verified)
    if found["claim"] == content["claim"] and found["level"] == "proved" and best(name):
        assert_sound(found, instance, best(name))


# ------------------------------------------------------------------ attacks on the arithmetic


def forged(instance, **proof):
    """A certificate made by hand."""
    geometry = mipmech.model.reduce(instance)
    frame, centre, unit = geometry.basis.tolist(), geometry.centre.tolist(), geometry.unit
    roots = packed(bytes(2 * geometry.rank))
    return {
        "format": "mipmech/certificate@1",
        "claim": {"kind": "gain"},
        "instance": {"digest": instance.digest},
        "level": "proved",
        "proof": {"kind": "cells@1", "frame": frame, "centre": centre, "unit": unit, "tree": roots}
        | proof,
    }


def test_lengths_that_vanish_do_not_hide_thresholds():
    """In a huge unit, squares of distances are 0 in floats; the centre is far from everybody."""
    instance = made("cloud")[0]
    geometry = mipmech.model.reduce(instance)
    unit, reach = 2.0**820, 1 / instance.cost.min()
    centre = geometry.centre - 1e4 * geometry.basis.T @ geometry.p / geometry.p_norm
    thresholds = [-1e-3 * reach / unit, 1.01 * reach / unit]
    content = forged(
        instance, unit=unit, centre=centre.tolist(), thresholds=thresholds,
        tree=full_tree(4, 12, lambda _, facet: 3 - facet // 2),
    )  # fmt: skip
    assert_sound(content, instance, best("cloud"))


@pytest.mark.parametrize("unit", [1.0, 2.0**100, 2.0**300])
@pytest.mark.parametrize("far", [8e307, 9.5e307])
def test_thresholds_beyond_floats(unit, far):
    """Their difference is infinite; 0 times that is not a number, and above nothing."""
    instance = made("cloud")[0]
    content = forged(instance, unit=unit, thresholds=[-far, far])
    assert_sound(content, instance, best("cloud"))


@pytest.mark.parametrize(
    ("size", "power"), [(1.0, 0), (1e90, -700), (1e90, -760), (1e90, -800), (1e-99, 800)]
)
def test_gains_beyond_floats(size, power):
    """In a tiny unit, distances times w_f overflow; in a huge one, they vanish."""
    instance = Instance.from_arrays([[0.0, 0.0]], [size, size], visible=[0, 1], cost=1.0)
    far = 1.01 / 2.0**power
    content = forged(instance, unit=2.0**power, thresholds=[-far, far])
    assert_sound(content, instance, float(sweep_gain(instance).gain), 1e-60)


@pytest.mark.parametrize("power", range(280, 450, 20))
def test_gains_that_vanish(power):
    """Weights, reaches and what is seen of w_f, each as small as instances allow."""
    instance = Instance.from_arrays(
        np.zeros((2, 3)), [1e-149, 1e-149, 1.0], visible=[0, 1], cost=[1e100, 1e-100],
        weights=[1.0, 1e-149],
    )  # fmt: skip
    far = 1.01e100 / 2.0**power
    content = forged(instance, unit=2.0**power, thresholds=[-far, far])
    assert_sound(content, instance, float(sweep_gain(instance).gain), 1e-9)


@pytest.mark.parametrize("factor", [1 - 4e-4, 1 + 4e-4])
def test_a_rough_frame_does_not_shift_agents(factor):
    """The first agent is far away in a hidden feature, so its score is known to 0.8 reaches only.

    A falling line must not start at the low end of that.
    """
    others = np.column_stack([np.linspace(0.002, 0.016, 100), np.zeros(100)])
    instance = Instance.from_arrays(
        np.vstack([[0.0, 10.0], others]), [1.0, 0.0], visible=[0], cost=100.0,
        weights=[0.3] + [0.007] * 100,
    )  # fmt: skip
    level, symbols = [(-10.2, 10.3)] * 2, bytearray()
    while level:
        cut = [b > -0.03 and a < 0.04 and b - a > 1e-4 for a, b in level]
        symbols += bytes(cut)
        halves = [(a, b, 0.5 * (a + b)) for (a, b), c in zip(level, cut, strict=True) if c]
        level = [part for a, b, middle in halves for part in ((a, middle), (middle, b))]
    content = forged(
        instance, frame=[[factor, 1e-12]], centre=[0.0, 0.0], unit=1.0, thresholds=[-10.2, 10.3],
        tree=packed(symbols),
    )  # fmt: skip
    assert_sound(content, instance, referee.best_gain(instance))


class Leaf:
    """A tree of one leaf, and some of its directions, rather at its corners."""

    def __init__(self, rng, dimension):
        axis = rng.integers(dimension)
        self.half = 2.0 ** -rng.integers(0, 6, dimension)
        self.centre = self.half * (2 * np.floor(rng.random(dimension) / self.half) + 1) - 1
        self.half[axis], self.centre[axis] = 0.0, rng.choice([-1.0, 1.0])
        corners = rng.choice([-1.0, 1.0, 0.3], (16, dimension))
        x = self.centre + self.half * corners
        self.directions = x / np.linalg.norm(x, axis=1)[:, None]
        self.leaves = 1

    def roots(self, _low, _high):
        return [Node(0, 0, 1, (self.centre[None], self.half[None], self.low, self.high))]

    def below(self, _node):
        return np.zeros(1, np.uint8)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gain", "density"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_bounds_of_single_leaves(rank, kind):
    """Rules in a leaf, with the threshold at an end, against the bound of the leaf alone."""
    rng = np.random.default_rng(rank)
    tried = 0
    for _ in range(500 if kind == "gain" or rank > 1 else 0):
        m = int(rng.integers(1, 7))
        agents = rng.standard_normal((m, rank + 1)) * ([1.0] * rank + [float(rng.choice([0, 9]))])
        instance = Instance.from_arrays(
            agents, rng.standard_normal(rank + 1), visible=list(range(rank)),
            cost=rng.uniform(0.3, 5, m), weights=rng.uniform(0.1, 1, m),
        )  # fmt: skip
        p, p_norm = instance.quality[:rank], mipmech.model.reduce(instance).p_norm
        axes = np.linalg.qr(np.column_stack([p, rng.standard_normal((rank, rank - 1))]))[0].T
        axes[0] = p / p_norm
        seen = axes * (1 + rng.choice([0, 1e-4]) * rng.uniform(-1, 1, (rank, rank)))
        values, vectors = np.linalg.eigh(seen @ seen.T)
        orthonormal = vectors / np.sqrt(values) @ vectors.T @ seen
        centre = 0.3 * rng.standard_normal(rank + 1)
        frame = np.column_stack([seen, np.full(rank, 1e-12)])  # what is hidden counts
        proof = {
            "frame": frame.tolist(), "centre": centre.tolist(), "unit": 1.0,
            "thresholds": [-99.0, 99.0],
        }  # fmt: skip
        leaf = Leaf(rng, rank if kind == "gain" else rank - 1)
        u, eta, band = leaf.directions, None, 1e-3
        if kind == "density":
            share = rng.uniform(-1, 1)
            eta = Fraction(share * p_norm)
            c = np.clip(share + rng.choice([-1, 0, 1], 16) * 0.999 * band, -1, 1)[:, None]
            u = np.hstack([c, np.sqrt(1 - c**2) * u])
        w = u @ orthonormal
        if kind == "density":
            w = w[np.abs(w @ p / p_norm - share) <= band]
        scores = w @ (agents - centre)[:, :rank].T
        ends = scores + 1 / instance.cost
        width = 2.0 ** -rng.integers(0, 7)
        leaf.low = rng.choice(ends.ravel(), 1) - width * rng.choice([0, 0.5, 1]) if len(w) else 0
        leaf.high = leaf.low + width
        bound = highest_bound(
            Agents(ExactInstance(instance, no_look), proof, eta, Fraction(band)),
            leaf,
            0.0,
            lambda _: None,
        )
        share_of = instance.weights / instance.weights.sum()
        for direction, score, end in zip(w, scores, ends, strict=True):
            for b in end[(end >= leaf.low) & (end <= leaf.high)]:
                d = b - score
                inside = (d >= 0) & (d <= 1 / instance.cost * (1 + 1e-14))
                value = share_of[inside].sum()
                if kind == "gain":
                    value = direction @ p * (share_of[inside] @ d[inside])
                assert value <= bound + 1e-12
                tried += 1
    assert tried > 1000 or (rank, kind) == (1, "density")


@pytest.mark.parametrize("steps", [1, 2, 3, 7])
@pytest.mark.parametrize("name", ["square", "cloud", "costs", "view"])
def test_lines_tilted_several_at_a_time(name, steps):
    """Bounds hold whatever the number of steps; with many, they are those of one for each line."""
    instance, content = made(name)
    for number in (steps, 1 << 20):
        assert_sound(changed(content, put("proof.steps", number)), instance, best(name), 0.97)
        tight = changed(content, put("proof.steps", number), claim_nothing(best(name)))
        plain = examined(changed(content, claim_nothing(best(name))), instance)
        bound = examined(tight, instance).leaf_bound
        assert best(name) * (1 - 1e-12) <= bound
        assert bound == plain.leaf_bound or number == steps
    for wrong in (0, -1, 0.5, 1e300, "1", None, True):
        assert "steps" in examined(changed(content, put("proof.steps", wrong)), instance).reason


def test_all_lines_in_one_step_are_better_than_none():
    """Together they go no farther than it pays, so the bound is not above that of blended lines."""
    instance = mipmech.make_instance("gaussian-mixture", 400, 3, seed=3)
    found = certify(instance, gap=1e-2, budget=Budget(nodes=3000))
    bounds = []
    for steps in (1, 4, 16, 1 << 20):
        bounds.append([])

        def recorded(leaves, given, rounds, into=bounds[-1], original=checker_bounds._tilted):
            result = original(leaves, given, rounds)
            into.append(float((result / given.leaves.second).mean()))
            return result

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(checker_bounds, "_tilted", recorded)
            content = changed(found.content(), put("proof.steps", steps), claim_nothing(1e-3))
            examined(content, instance)
    means = [sum(values) / len(values) for values in bounds]
    assert all(ratio <= 1 for ratio in means)
    assert means[3] <= means[2] <= means[1] < 1


# ------------------------------------------------------------------ the instance behind the proof


def rebuilt(instance, **other):
    fields = {
        "agents": instance.agents, "quality": instance.quality, "cost": instance.cost,
        "weights": instance.weights, "visible": list(instance.view.columns), **other,
    }  # fmt: skip
    return Instance.from_arrays(fields.pop("agents"), fields.pop("quality"), **fields)


BUMP = np.eye(12)[3]
OTHERS = {
    "an agent moved": lambda i: {"agents": i.agents + 0.2 * BUMP[:, None]},
    "an agent far away": lambda i: {"agents": i.agents + 50.0 * BUMP[:, None]},
    "all agents moved": lambda i: {"agents": i.agents + 1.0},
    "weights of two exchanged": lambda i: {"weights": i.weights[[1, 0, *range(2, 12)]]},
    "everybody's cost": lambda i: {"cost": i.cost * 0.5},
    "one cost": lambda i: {"cost": i.cost + BUMP},
    "quality": lambda i: {"quality": i.quality * [1.0, 2.0, 1.0]},
    "quality doubled": lambda i: {"quality": i.quality * 2},
    "less is seen": lambda _: {"visible": [0]},
    "other columns are seen": lambda _: {"visible": [0, 2]},
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_proof_for_another_instance(other):
    """The digest tells; forged, the witness or the leaves do, or the claim happens to be true."""
    instance, content = made("costs")
    target = rebuilt(instance, **OTHERS[other](instance))
    verdict = examined(content, target)
    assert not verdict
    assert "another instance" in verdict.reason
    moved = changed(content, put("instance.digest", target.digest))
    assert_rejected_or_true(moved, target)
    assert_rejected_or_true(changed(moved, claim_nothing(content["upper"])), target)
    assert_sound(moved, target, attained(target, content["claim"]))
    columns, threshold = target.view.columns, content["witness"]["threshold"]
    weights = [w if j in columns else 0.0 for j, w in enumerate(content["witness"]["weights"])]
    gain = referee.truth(target, [Fraction(w) for w in weights], threshold).gain
    lower = put("lower", {"value": float(gain) - 1e-9, "exact": str(gain)})
    repaired = both(put("witness.weights", weights), put("gap", 1.0), lower)
    assert_rejected_or_true(changed(moved, repaired), target)


@pytest.mark.parametrize("other", ["square", "touching", "cloud", "costs", "view"])
@pytest.mark.parametrize("name", NAMES)
def test_certificates_do_not_vouch_for_each_other(name, other):
    content, target = made(name)[1], made(other)[0]
    assert bool(examined(content, target)) == (name == other)
    moved = changed(content, put("instance.digest", target.digest))
    if name != "density":
        assert_rejected_or_true(moved, target)
        assert_sound(moved, target, best(other))


# ------------------------------------------------------------------ every bit, field and length


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["touching", "density", pytest.param("square", marks=pytest.mark.long)]
)
def test_every_bit_of_the_tree(name):
    """Every bit flipped, every symbol changed to every other, every inner node made a leaf."""
    instance, content = made(name)
    symbols = unpacked(content["proof"]["tree"])
    roots = 2 if name == "touching" else 4
    trees = [
        symbols[:place] + bytes([value]) + symbols[place + 1 :]
        for place, symbol in enumerate(symbols)
        for value in {*range(roots // 2 + 2), *(symbol ^ (1 << bit) for bit in range(8))} - {symbol}
    ]
    trees += [cut_back(symbols, roots, place) for place, symbol in enumerate(symbols) if symbol]
    for altered in [symbols, *trees]:
        found = changed(content, put("proof.tree", packed(altered)))
        assert_sound(found, instance, best(name), 0.97)


@pytest.mark.slow
def test_every_bit_of_the_packed_tree():
    instance, content = made("square")
    text = content["proof"]["tree"]
    data = base64.b85decode(text)
    flips = [
        base64.b85encode(data[:i] + bytes([data[i] ^ (1 << bit)]) + data[i + 1 :]).decode()
        for i in range(len(data))
        for bit in range(8)
    ]
    letters = [text[:i] + letter + text[i + 1 :] for i in range(len(text)) for letter in "0z~ é"]
    for altered in flips + letters:
        found = changed(content, put("proof.tree", altered))
        if examined(found, instance):  # the same tree in other words
            assert unpacked(altered) == unpacked(text)
        assert_sound(found, instance, best("square"), 0.97)


def fields_of(value, path=""):
    """Paths of everything that the object holds, and whether it is a list or an object."""
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in parts:
        here = f"{path}.{key}" if path else str(key)
        yield here, isinstance(part, (dict, list))
        if isinstance(part, (dict, list)):
            yield from fields_of(part, here)


JUNK = (
    math.nan,
    math.inf,
    -math.inf,
    True,
    False,
    "1",
    "",
    None,
    10**400,
    -(10**400),
    [],
    {},
    [1.0],
)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["square", "density", "view", "attested"])
def test_junk_in_every_field(name):
    """Also missing, or one level too deep."""
    instance, content = made("square" if name == "attested" else name)
    content = changed(content, attested) if name == "attested" else content
    for path, _ in fields_of(content):
        changes = [put(path, junk) for junk in JUNK]
        changes += [put(path, lambda value: [value]), put(path, lambda value: {"value": value})]
        changes += [put(path, MISSING)]
        for number, change in enumerate(changes if path != "seal" else []):
            verdict = examined(changed(content, change), instance)
            assert not verdict or path.startswith(REMARKS), (path, number)
            assert verdict or verdict.reason


def test_damaged_files(tmp_path):
    """Cut short anywhere, a bit changed anywhere, not sealed, not JSON, too deep."""
    instance, content = made("cloud")
    file = tmp_path / "certificate.json"
    data = json.dumps(content, indent=1).encode()

    def verdict_on(written):
        file.write_bytes(written)
        return examined(file, instance)

    assert verdict_on(data)
    for length in [*range(0, len(data), 7), len(data) - 1]:
        assert not verdict_on(data[:length])
    rng = np.random.default_rng(1)
    for place in rng.integers(0, len(data), 400):
        flipped = bytes([data[place] ^ (1 << int(rng.integers(8)))])
        altered = data[:place] + flipped + data[place + 1 :]
        assert not verdict_on(altered) or json.loads(altered) == content
    for junk in (b"", b"[]", b"1", b"\xff\xfe", b"{" * 9, b"[" * 10**5, b'{"a":' * 10**5, b"NaN"):
        assert re.search("JSON|nested", verdict_on(junk).reason)
    for key in ("upper", "seal"):
        assert "seal" in examined({**content, key: 1.0}, instance).reason
    assert not examined({**content, 5: 1}, instance)


def test_a_certificate_that_was_moved(tmp_path):
    """One message: where the instance was looked for, and what to type."""
    file = tmp_path / "proof.json"
    file.write_text(json.dumps(changed(made("square")[1], put("instance.path", "../a/b.json"))))
    with pytest.raises(FileNotFoundError) as error:
        check(file)
    assert str(tmp_path / "../a/b.json") in str(error.value)
    assert f"mipmech check {file} --instance FILE" in str(error.value)
    assert check(file, TINY / "square.json").accepted


def test_json_rounds_outward():
    """1/3 is no float; what is printed is below the lower bound and above the others."""
    instance = Instance.from_arrays([[0.0], [1.0], [5.0]], [1.0], visible=[0], cost=4.0)
    found = certify_density(instance, 1.0)
    assert found.lower == Fraction(1, 3)
    shown = found.check().to_dict()
    assert Fraction(shown["lower"]) < Fraction(1, 3) < Fraction(shown["upper"])
    assert Fraction(1, 3) < Fraction(shown["leaf_bound"]) <= Fraction(shown["upper"])
    assert shown["finished"] is True


def test_claims_about_different_etas_are_told_apart():
    """With nine digits of η, one sentence had two contradicting densities."""
    far = 2.0**34
    instance = Instance.from_arrays(
        [[0.0, 0.0], [0.8 * far, -0.6 * far]], [1.0, 0.0], visible=[0, 1], cost=1.0
    )
    both = []
    for eta in (0.6, 0.6 + 4e-10):
        verdict = certify_density(instance, eta).check()
        assert verdict.accepted
        assert (verdict.eta, verdict.to_dict()["eta"]) == (eta, eta)
        assert 0 < verdict.band == verdict.to_dict()["band"] <= 1e-3
        assert f"η = {eta!r} (to within {verdict.band!r} of" in verdict.claim
        both.append(verdict)
    assert both[0].lower > both[1].upper
    assert both[0].claim != both[1].claim


def test_agents_that_turn_nothing_are_tilted_without_a_warning():
    """Right at the centre but for 1e-308: the breakpoints of their lines are beyond floats."""
    rng = np.random.default_rng(3)
    agents = rng.uniform(-1e6, 1e6, (40, 2))
    agents[::2] = [1e-308, -2.7e-308]
    instance = Instance.from_arrays(agents, [1.0, 0.5], visible=[0, 1], cost=1e-6)
    content = certify(instance, gap=0.5).content()
    proof = {
        "centre": [0.0, 0.0], "unit": 1.0, "thresholds": [-4e6, 4e6], "frame": np.eye(2).tolist(),
        "tree": full_tree(4, 8, lambda level, facet: 1 if level % 2 else 3 - facet // 2),
    }  # fmt: skip
    change = both(*(put(f"proof.{key}", value) for key, value in proof.items()))
    word = changed(content, claim_nothing(7e5), change, put("level", "attested"))
    assert examined(word, instance).accepted


def test_a_gain_has_no_eta():
    shown = examined(*reversed(made("square"))).to_dict()
    assert (shown["eta"], shown["band"]) == (None, None)


def numbers_in(sentence):
    return [Fraction(number) for number in re.findall(r"-?\d+\.\d+(?:e[+-]\d+)?", sentence)]


def test_what_is_said_in_words_is_true_as_it_is_printed():
    """1/3 has more digits than are printed: bounds are rounded up, the witness down."""
    instance = Instance.from_arrays([[0.0], [10.0], [20.0]], [1.0], visible=[0], cost=1.0)
    content = certify_density(instance, 1.0).content()
    verdict = examined(content, instance)
    assert verdict.lower == Fraction(1, 3)
    (above,) = [said for said in verdict.verified if "no rule in any leaf" in said]
    (witness,) = [said for said in verdict.verified if "the witness has" in said]
    assert numbers_in(above)[0] >= Fraction(1, 3) >= numbers_in(witness)[0]


def test_the_ceiling_in_words_is_rounded_up():
    """The mean reach is 1/3; with one leaf for each facet only the ceiling tells anything."""
    instance = Instance.from_arrays([[0.0], [10.0], [20.0]], [1.0], visible=[0], cost=3.0)
    content = certify(instance).content()
    content["proof"]["tree"] = packed(bytes(2))
    verdict = examined(changed(content, claim_nothing(0.5)), instance)
    (said,) = [said for said in verdict.verified if "mean reach" in said]
    assert numbers_in(said)[0] >= Fraction(1, 3)
    assert verdict.leaf_bound >= Fraction(1, 3)


def test_what_is_not_verified_is_rounded_up():
    instance, content = made("square")
    claim = claim_nothing(1 / 3 * 2**-10)
    verdict = examined(changed(content, claim, put("level", "attested")), instance)
    (said,) = [said for said in verdict.verified if said.startswith("NOT verified")]
    assert numbers_in(said)[0] >= Fraction(verdict.upper)


def test_the_word_of_a_solver_is_no_bound_of_leaves():
    """It was shown as what the check had established, even where the witness refuted it."""
    instance = Instance.from_arrays([[0.0, 0.0], [1, 1]], [1.0, 0.0], visible=[0, 1], cost=1.0)
    content = certify(instance).content()
    lower = Fraction(content["lower"]["exact"])
    for most, accepted in ((-7.0, False), (float(lower) * 0.99, False), (float(lower) + 1, True)):
        region = {"eta": [0.0, 5.0], "at_most": most}
        word = changed(
            content, attested, put("proof.regions", [region]), put("upper", float(lower) + 2)
        )
        verdict = examined(word, instance)
        assert verdict.accepted == accepted
        assert accepted or verdict.reason == "the regions allow less than the witness gains"
        assert verdict.leaf_bound is None


@pytest.mark.parametrize("path", ["nowhere.json", "", "a\0b", "\ud800", 5, None])
def test_instances_that_cannot_be_read(tmp_path, path):
    """A file that is not there is the reader's matter; a path that is none, the certificate's."""
    file = tmp_path / "certificate.json"
    file.write_text(json.dumps(changed(made("square")[1], put("instance.path", path))))
    try:
        assert not examined(file)
    except (InputError, OSError):
        assert path in ("nowhere.json", "", "a\0b", "\ud800")


# Certificates that are JSON of a kind that other programs might read in another way.
TRAPS = {
    "claim twice": ('{"claim"', '{"claim": {"kind": "density"}, "claim"', "a key twice"),
    "a key twice within": ('"stop":', '"x": {"y": 1, "y": 1}, "stop":', "a key twice"),
    "infinite": ('"stop":', '"x": 1e999, "stop":', "too large for a float"),
    "a name of infinity": ('"stop":', '"x": -Infinity, "stop":', "too large for a float"),
    "a huge integer": ('"stop":', f'"x": 1{"0" * 400}, "stop":', "too large for a float"),
    "thousands of digits": ('"stop":', f'"x": {"1" * 9999}, "stop":', "too large for a float"),
    "half a character": ('"stop":', '"x": "\\ud800", "stop":', "half a character"),
    "half a character as a key": ('"stop":', '"\\udfff": 1, "stop":', "half a character"),
    "a whole one": ('"stop":', '"x": "\\ud83d\\ude00", "stop":', "seal"),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_json_that_may_be_read_in_two_ways(tmp_path, trap):
    was, put_there, said = TRAPS[trap]
    instance, content = made("square")
    text = json.dumps({"claim": content["claim"], **content})
    assert text.count(was) == 1
    (tmp_path / "a.json").write_text(text.replace(was, put_there))
    assert said in examined(tmp_path / "a.json", instance).reason


FOREIGN = {
    "a secret": b"password: hunter2",
    "JSON": b'{"hunter2": 1}',
    "JSON with a key twice": b'{"hunter2": 1, "hunter2": 2}',
    "an instance in part": b'{"format": "mipmech/instance@1", "hunter2": 1}',
    "no text": b"hunter2\xff",
    "a folder": None,
}


@pytest.mark.parametrize("foreign", [*FOREIGN, "another instance", "a device", "a pipe"])
def test_nothing_is_said_of_a_file_that_a_certificate_names(tmp_path, foreign):
    """Whoever checks a stranger's certificate does not show what is in files of their own."""
    there, inside = tmp_path / "hunter2.json", tmp_path / "certificates"
    if foreign == "another instance":
        mipmech.make_instance("ties", 12, 2, seed=1).save(there)
    elif foreign == "a device":
        there.symlink_to("/dev/zero")
    elif foreign == "a pipe":
        os.mkfifo(there)
    elif FOREIGN[foreign] is None:
        there.mkdir()
    else:
        there.write_bytes(FOREIGN[foreign])
    inside.mkdir()
    content = changed(made("square")[1], put("instance.path", "../hunter2.json"))
    (inside / "a.json").write_text(json.dumps(content))
    verdict = examined(inside / "a.json")
    assert verdict.reason == (
        "the certificate is for another instance: the file that it names does not hold one with"
        " the digest claimed; if another file does, give it by --instance"
    )
    assert "hunter2" not in json.dumps(verdict.to_dict())


def test_an_instance_by_an_absolute_path_is_not_opened(tmp_path):
    instance, content = made("square")
    for path in (instance.path, "/dev/zero"):
        file = tmp_path / "a.json"
        file.write_text(json.dumps(changed(content, put("instance.path", str(path)))))
        with pytest.raises(InstanceNotFound, match=f"mipmech check {file} --instance FILE"):
            check(file)
        assert check(file, instance)


def test_certificates_that_are_no_plain_files(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for file in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(OSError, match="not a plain file"):
            check(file)
        with pytest.raises(InputError, match=f"{file}: cannot be read: it is not a plain file"):
            checking.check(file)
    with pytest.raises(OSError, match=r"[Ii]s a directory"):
        check(tmp_path)
    with (tmp_path / "huge").open("wb") as stream:
        stream.truncate(10**12)  # takes no room on the disk
    with pytest.raises(InputError, match=r"huge: .*200,000,000 of any certificate"):
        checking.check(tmp_path / "huge")


# ------------------------------------------------------------------ at random


def mutation(rng, content):
    """A change of one field, at random; long arrays do not crowd out the rest."""
    paths = [path for path, inner in fields_of(content) if not inner]
    rare = [path for path in paths if rng.random() < (0.3 if path[-1].isdigit() else 1)]
    path = str(rng.choice(rare or paths))
    donor = made(str(rng.choice(NAMES)))[1]
    factor = float(rng.choice([2.0, 0.5, -1.0, 1 + 1e-15, 1 - 1e-9, 1.001, 0.9, 0.0, 1e30, 1e-30]))

    def new(value):
        if rng.random() < 0.15:
            return JUNK[rng.integers(len(JUNK))]
        if rng.random() < 0.2 and path in donor:
            return donor[path]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return value * factor if rng.random() < 0.7 else value + float(rng.normal()) * factor
        if path == "proof.tree" and isinstance(value, str):
            symbols = unpacked(value)
            symbols[rng.integers(len(symbols))] = rng.integers(5)
            return packed(symbols)
        return str(Fraction(float(rng.random()))) if path == "lower.exact" else value

    return put(path, new)


@pytest.mark.slow
@pytest.mark.parametrize("block", seeds(1, 4))
@pytest.mark.parametrize("name", ["square", "touching", "cloud", "costs", "view", "density"])
def test_random_mutations(name, block):
    """Never an exception, never a false claim; half of the time, a false one is to be proved."""
    rng = np.random.default_rng([sum(map(ord, name)), block])
    instance, content = made(name)
    for trial in range(100):
        found = changed(content, claim_nothing(0.9 * best(name))) if trial % 2 else content
        for _ in range(int(rng.integers(1, 4))):
            try:
                found = changed(found, mutation(rng, found))
            except (KeyError, TypeError, IndexError, ValueError, OverflowError, lzma.LZMAError):
                break  # a field that an earlier mutation made unfit for another
        assert_rejected_or_true(found, instance)


# ------------------------------------------------------------------ independence, interruption


@pytest.mark.parametrize(
    "path", sorted((ROOT / "mipmech/checker").glob("*.py")), ids=lambda p: p.stem
)
def test_the_checker_shares_no_code(path):
    """Numpy, the standard library, itself, and the reader of instances."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names.add(node.module)
        elif isinstance(node, ast.Name):
            assert node.id not in ("__import__", "eval", "exec", "importlib")
    allowed = sys.stdlib_module_names | {"numpy"}
    for name in names:
        own = name == "mipmech.model.instance" or name.startswith("mipmech.checker.")
        assert own or name.split(".")[0] in allowed, name


@functools.cache
def hard():
    instance = mipmech.make_instance("uniform-ball", 60, 4, 1)
    return instance, certify(instance, gap=1e-6)


@pytest.mark.parametrize("seconds", [0.0, 0.001, 0.005, 0.02, 0.05, 0.3])
def test_interrupted_runs_leave_true_certificates(seconds):
    instance, full = hard()
    began = time.monotonic()
    found = certify(instance, gap=1e-6, budget=Budget(seconds=seconds))
    assert time.monotonic() - began < seconds + 5
    assert found.check(), found
    assert 0 <= found.lower <= Fraction(full.upper)
    assert Fraction(found.upper) >= full.lower
    assert found.status == ("optimal" if found.gap <= 1e-6 else "gap")


def test_threads_do_not_change_the_certificate():
    for sample in (mipmech.make_instance("gaussian-mixture", 40, 3, seed=1), made("costs")[0]):
        eta = 0.5 * mipmech.model.reduce(sample).p_norm
        gains, densities = [], []
        for budget in (Budget(threads=1), Budget(threads=2)):
            gains.append(certify(sample, budget=budget).content())
            densities.append(certify_density(sample, eta, budget).content())
        assert gains[0] == gains[1]
        assert densities[0] == densities[1]


def test_whole_numbers_that_no_float_holds_are_refused():
    instance = mipmech.make_instance("ties", 12, 2, seed=1)
    content = certify(instance, gap=0.5).content()
    content["upper"] = 2**53 + 3
    content["seal"] = seal(content)
    verdict = mipmech.checker.check(content, instance)
    assert verdict.reason == "upper is a whole number that no float holds"


def test_a_tree_of_empty_leaves_is_checked_in_parts(monkeypatch):
    """Without open agents a node costs little, but millions of them at once took gigabytes."""
    instance = Instance.from_arrays([[0.0]], [1.0], visible=[0], cost=1.0)
    content = certify(instance).content()
    tree = b"".join(b"\1" * (2 << depth) for depth in range(12)) + b"\0" * (2 << 12)
    packed = base64.b85encode(lzma.compress(tree)).decode()
    content["proof"] = {**content["proof"], "tree": packed, "thresholds": [-1e20, 1e20]}
    content["upper"] = content["lower"]["value"] = 0.0
    content["lower"]["exact"], content["witness"] = "0", None
    content["gap"] = 1.0
    content["seal"] = seal(content)
    monkeypatch.setattr(leaves, "PART", 64)
    sizes = []

    def each(function, parts):
        for part in parts:
            sizes.append(part.leaves)
            yield function(part)

    assert not mipmech.checker.check(content, instance, each=each).accepted
    assert max(sizes) <= 64


def test_whole_numbers_that_no_float_holds_anywhere():
    """A rule is what its numbers say: they are not rounded before it is graded."""
    instance = Instance.from_arrays([[0.0]], [1.0], visible=[0], cost=1.0)
    content = certify(instance).content()
    for weight in (2**53 + 1, 10**30 + 1):
        found = changed(content, lambda c, weight=weight: c["witness"].update(weights=[weight]))
        verdict = check(found, instance)
        assert not verdict.accepted
        assert verdict.reason == "witness.weights is missing or not 1 numbers that floats hold"
