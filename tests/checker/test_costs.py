"""Certificates for other costs than Euclidean ones: honest ones pass, changed ones are refused."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

from mipmech import Instance, certify
from mipmech.checker import check
from mipmech.checker.agents import Agents
from mipmech.checker.bounds import _cells, _range
from mipmech.checker.witness import ExactInstance
from mipmech.model.geometry import reduce
from tests import costs_brute_force
from tests.checker.test_check import (
    attested,
    both,
    changed,
    claim_nothing,
    cut_back,
    lower_plus,
    put,
    scaled,
    tree,
)

PRICES = [0.02, 3.0, 0.5, 1.5]
MATRIX = [[2.0, 0.5, 0.0, 0.5], [0.5, 1.0, 0.25, 0.0], [0.0, 0.25, 1.5, 0.0], [0.5, 0, 0, 1.0]]


def sample(norm="l1", effort=PRICES, cost=2.0, quality=(1.0, 2.0, -1.0, 0.5), **more):
    """A small sample in units of very different size."""
    random = np.random.default_rng(5)
    agents = random.standard_normal((12, 4)).round(3) / PRICES
    w_f = np.array(quality) * PRICES
    reach = {} if "reach" in more else {"cost": cost}
    return Instance.from_arrays(
        agents, w_f, visible=[0, 1, 2], norm=norm, effort=effort, **reach, **more
    )


SAMPLES = {
    "l1": sample,
    "linf": functools.partial(sample, "linf"),
    "prices": functools.partial(sample, "l2"),
    "matrix": functools.partial(sample, "l2", MATRIX),
}


@functools.cache
def made(name):
    """A sample, the content of its certificate, and what its best gain surely is."""
    instance = SAMPLES[name]()
    found = certify(instance)
    assert found.status == "optimal"
    if instance.costs.norm != "l2":
        best = costs_brute_force.best_gain(instance)
        assert float(found.lower) <= best.at_most
        assert best.surely <= found.upper
        sure = best.surely
    else:
        sure = float(found.lower)
    return instance, found.content(), sure


@pytest.mark.parametrize("name", SAMPLES)
def test_honest_certificates_pass(name):
    instance, content, _ = made(name)
    verdict = check(content, instance)
    assert verdict
    assert verdict.level == "proved"


def for_another(**other):
    """The certificate as one for a sample that differs in this."""

    def change(name, content):
        options = {"norm": "l2", "effort": MATRIX} if name == "matrix" else {}
        options |= {"norm": "l2"} if name == "prices" else {}
        options |= {"norm": "linf"} if name == "linf" else {}
        instance = sample(**(options | other))
        content["instance"]["digest"] = instance.digest
        return instance

    return change


def dearer(j, factor):
    prices = list(PRICES)
    prices[j] *= factor
    return prices


def stiffer(entry):
    matrix = np.array(MATRIX)
    matrix[0, 1] = matrix[1, 0] = entry
    return matrix.tolist()


# What is certified -> what it is passed off for. In each of these some rule gains more than the
# upper bound of the certificate, or its witness has another gain.
OTHERS = {
    "l1 for linf": ("l1", for_another(norm="linf")),
    "l1 for l2": ("l1", for_another(norm="l2")),
    "linf for l1": ("linf", for_another(norm="l1")),
    "linf for l2": ("linf", for_another(norm="l2")),
    "l2 for l1": ("prices", for_another(norm="l1")),
    "l2 for linf": ("prices", for_another(norm="linf")),
    "a price halved, l1": ("l1", for_another(effort=dearer(1, 0.5))),
    "a price halved, linf": ("linf", for_another(effort=dearer(0, 0.5))),
    "a price halved, l2": ("prices", for_another(effort=dearer(2, 0.5))),
    "a price a little lower": ("l1", for_another(effort=dearer(1, 1 - 2.0**-30))),
    "no prices, l1": ("l1", for_another(effort=None)),
    "no prices, linf": ("linf", for_another(effort=None)),
    "no prices, l2": ("prices", for_another(effort=None)),
    "prices for a matrix": ("prices", for_another(effort=MATRIX)),
    "a matrix for prices": ("matrix", for_another(effort=PRICES)),
    "an entry of the matrix": ("matrix", for_another(effort=stiffer(0.6))),
    "no spilling over": ("matrix", for_another(effort=np.diag(np.diag(MATRIX)).tolist())),
    "costs read as reaches": ("l1", for_another(reach=2.0)),
    "cheaper moves": ("linf", for_another(cost=1.9)),
    "rate raised": ("l1", for_another(quality=(1.0, 2.1, -1.0, 0.5))),
    "rate raised, linf": ("linf", for_another(quality=(1.1, 2.0, -1.0, 0.5))),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_certificate_is_not_one_for_other_costs(what):
    name, swap = OTHERS[what]
    _, content, _ = made(name)
    copy = changed(content)
    instance = swap(name, copy)
    verdict = check(changed(copy), instance)
    assert not verdict
    reasons = ("the witness has", "a leaf allows", "proof.frame", "proof.thresholds")
    assert any(reason in verdict.reason for reason in reasons), verdict.reason


@pytest.mark.parametrize("what", OTHERS)
def test_nor_is_it_without_its_witness(what):
    """What remains is an upper bound; it is refused unless it is true."""
    name, swap = OTHERS[what]
    _, content, _ = made(name)
    copy = changed(content, claim_nothing(content["upper"]))
    instance = swap(name, copy)
    verdict = check(changed(copy), instance)
    if verdict and instance.costs.norm != "l2":
        assert costs_brute_force.best_gain(instance).surely <= verdict.upper
    elif verdict:
        assert float(certify(instance).lower) <= verdict.upper


def row_of(values):
    return put("proof.frame.1", values)


TAMPERINGS = {
    "a facet dropped": (tree(lambda s: s[1:]), "proof.tree"),
    "all below the facets dropped": (tree(lambda _: bytes(6)), "a leaf allows"),
    "a leaf dropped": (tree(lambda s: s[:-1]), "ends too soon"),
    "upper lowered, no witness": (lambda c: claim_nothing(0.995 * c["upper"])(c), "a leaf allows"),
    "upper 0, no witness": (claim_nothing(0.0), "a leaf allows"),
    "upper below the witness": (lambda c: c.update(upper=0.9 * c["upper"]), "below the witness"),
    "lower raised": (lower_plus("1/1000000000"), "the witness has"),
    "witness turned round": (put("witness.weights", scaled(-1)), "the witness has"),
    "witness of another facet": (put("witness.weights.0", lambda v: -v), "the witness has"),
    "witness on a hidden feature": (put("witness.weights.3", 1e-200), "cannot see"),
    "witness moved": (put("witness.threshold", lambda b: b * (1 + 1e-9)), "the witness has"),
    "frame scaled": (put("proof.frame", scaled(1.01)), "proof.frame"),
    "frame without prices": (row_of([0.0, 1.0, 0.0, 0.0]), "proof.frame"),
    "frame with a row twice": (row_of([0.02, 0.0, 0.0, 0.0]), "proof.frame"),
    "frame on a hidden feature": (put("proof.frame.1.3", 0.25), "proof.frame"),
    "frame of zeros": (put("proof.frame", scaled(0)), "proof.frame"),
    "unit halved": (put("proof.unit", lambda v: v / 2), "thresholds|a leaf"),
    "thresholds shrunk": (put("proof.thresholds.1", lambda b: 0.9 * b), "thresholds"),
    "centre far away": (put("proof.centre.1", 1e6), "thresholds|a leaf"),
    "a word for a proof": (both(attested, put("level", "proved")), "does not prove a bound"),
    "regions with a hole": (both(attested, put("proof.regions.1.eta.0", 1.01)), "region covers"),
    "called density": (put("claim", {"kind": "density", "eta": 1.0, "band": 1e-12}), ""),
    "the gap claimed smaller": (put("gap", lambda v: 0.5 * v), "gap"),
}


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("what", TAMPERINGS)
def test_tampering(what, name):
    change, reason = TAMPERINGS[what]
    instance, content, _ = made(name)
    verdict = check(changed(content, change), instance)
    assert not verdict
    assert not reason or any(part in verdict.reason for part in reason.split("|")), verdict.reason


@pytest.mark.parametrize("name", SAMPLES)
def test_a_facet_that_was_not_searched(name):
    """Without what is below a facet, its leaf allows too much, unless nothing is there."""
    instance, content, best = made(name)
    refused = 0
    for facet in range(6):
        verdict = check(changed(content, tree(lambda s, f=facet: cut_back(s, 6, f))), instance)
        assert not verdict or best <= verdict.upper
        refused += not verdict
    assert refused >= 1


@pytest.mark.parametrize("name", ["l1", "linf"])
def test_density_at_a_facet_is_not_certified(name):
    instance, content, _ = made(name)
    claim = put("claim", {"kind": "density", "eta": 1.0, "band": 1e-12})
    assert "norm l2" in check(changed(content, claim), instance).reason


# ------------------------------------------------------------------ leaves


@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_the_range_of_a_vector_over_a_cell(norm, d):
    """Points of a box, made directions of length 1, have their products within the range."""
    random = np.random.default_rng(d)
    for _ in range(60):
        facet, sign = random.integers(d), random.choice([-1.0, 1.0])
        centre, half = np.zeros(d), np.ones(d)
        for _ in range(random.integers(0, 12)):
            j = random.integers(d)
            half[j] /= 2
            centre[j] += half[j] * random.choice([-1.0, 1.0])
        centre[facet], half[facet] = sign, 0.0
        box = (centre[None], half[None], np.zeros(1), np.ones(1))
        cells = _cells(norm, *box)
        vector = random.standard_normal(d) * 10.0 ** random.uniform(-3, 3, d)
        low, high = _range(cells, vector[None])
        corner = random.choice([-1.0, 1.0], (200, d))
        inside = random.uniform(-1.0, 1.0, (200, d))
        x = centre + half * np.vstack([corner, inside])
        order = {"l2": 2, "l1": math.inf, "linf": 1}[norm]
        values = (x / np.linalg.norm(x, order, axis=1)[:, None]) @ vector
        room = 1e-12 * np.abs(vector).sum()
        assert low[0] - room <= values.min()
        assert values.max() <= high[0] + room


@pytest.mark.parametrize("name", SAMPLES)
def test_the_agents_of_a_proof_have_the_scores_that_rules_have(name):
    """N(w) = 1 in rationals, and scores in the frame, for random directions."""
    instance, content, _ = made(name)
    exact = ExactInstance(instance, lambda: None)
    agents = Agents(exact, content["proof"], None, exact_float(0))
    geometry = reduce(instance)
    random = np.random.default_rng(3)
    for _ in range(20):
        u = random.standard_normal(3)
        u /= geometry.length(u)
        w = np.array(content["proof"]["frame"]).T @ u
        square, rise = exact.response([exact_float(v) for v in w])
        assert float(square) == pytest.approx(1.0, rel=1e-9)
        scores = (instance.agents - np.array(content["proof"]["centre"])) @ w / agents.unit
        assert np.abs(agents.y.T @ u + agents.shift - scores).max() <= agents.slack.max() + 1e-12
        rate = float(rise) * math.sqrt(float(square)) / float(agents.gain_unit / agents.unit)
        if name in ("prices", "matrix"):
            assert rate == pytest.approx(float(agents.p @ u), abs=1e-9)


def exact_float(value):
    from fractions import Fraction

    return Fraction(float(value))
