"""Limits hold in every phase of a check, and what is left then is true.

No clock is waited for: the check is ended after so many looks, or time is counted in looks.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import signal
import sys
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

import mipmech
from mipmech import Budget, certify, certify_density, make_instance
from mipmech.budget import Stop
from mipmech.checker import check, leaves, tree
from mipmech.checker import verdict as verdict_module
from mipmech.checker.agents import Agents
from mipmech.checker.verdict import seal
from mipmech.checker.witness import ExactInstance
from mipmech.design import certificate
from mipmech.oracles.cells.engine import GainSearch
from mipmech.theory.projection import gain_ceiling
from mipmech.workers.ordered import STOPPED, Serial, each

SAMPLE = make_instance("costs", 150, 3, seed=1)


@pytest.fixture(scope="module")
def content():
    """A certificate whose check takes every way there is: claims are tight enough for tilting."""
    return certify(SAMPLE, gap=1e-2).content()


def ending_after(looks):
    """A callback that ends a check after so many looks."""
    left = itertools.count(looks, -1)
    return lambda: next(left) > 0


def number_of_looks(content, instance):
    count = itertools.count()
    assert check(content, instance, go_on=lambda: next(count) >= 0).accepted
    return next(count)


def test_a_check_can_be_ended_at_every_look(content):
    looks = number_of_looks(content, SAMPLE)
    assert looks > 100
    for ended in [*range(20), *range(20, looks, 37), looks - 1]:
        verdict = check(content, SAMPLE, go_on=ending_after(ended))
        assert not verdict.accepted
        assert not verdict.finished
        assert "no fault so far" in verdict.reason
        assert verdict.leaf_bound is None
    assert check(content, SAMPLE, go_on=ending_after(looks)).accepted


def test_there_are_looks_in_every_phase(content, monkeypatch):
    """In those that go through all agents: one at least for so many agents."""
    monkeypatch.setattr("mipmech.checker.witness.CHUNK", 10)
    monkeypatch.setattr("mipmech.checker.exact.CHUNK", 10)
    monkeypatch.setattr("mipmech.checker.bounds.BATCH", 10)
    monkeypatch.setattr("mipmech.checker.tree.CHARACTERS", 50)
    seen = []

    def go_on():
        seen.append(sys._getframe(2).f_code.co_name)
        return True

    assert check(content, SAMPLE, go_on=go_on).accepted
    for phase in ("_check", "_parts", "sum_of_products", "_unpacked", "_settle", "_tilted"):
        assert phase in seen, phase
    assert seen.count("_parts") == 15
    assert seen.count("sum_of_products") >= 30
    assert seen.count("_settle") > 100
    assert seen.count("_unpacked") >= len(content["proof"]["tree"]) // 50


@pytest.mark.parametrize("seconds", [0, 3, 50])
def test_seconds_are_counted_in_every_phase(content, monkeypatch, seconds):
    """A clock that goes on by a second at each look."""
    ticks = itertools.count()
    monkeypatch.setattr(verdict_module.time, "monotonic", lambda: float(next(ticks)))
    verdict = check(content, SAMPLE, seconds=seconds)
    assert verdict.reason.startswith(f"not finished within {seconds} s: no fault so far")
    assert verdict.seconds < seconds + 10


def test_waiting_for_workers_can_be_ended(content):
    """No answer comes once there is no time: the check does not wait for it."""
    calls = []

    class Slow(Serial):
        def take(self, go_on):
            calls.append(go_on())
            return STOPPED if len(calls) > 2 else super().take(go_on)

    def over():
        return len(calls) <= 2

    verdict = check(
        content, SAMPLE, go_on=over, each=lambda *given: each(Slow(), 1, *given, go_on=over)
    )
    assert not verdict.finished
    assert len(calls) == 3


class Silent:
    """An executor whose workers never answer."""

    slots = free = 1

    def __init__(self):
        self.running = 0

    def give(self, _task):
        self.running += 1
        self.free = 0

    def wait(self, _seconds):
        return []


@pytest.mark.parametrize("limits", [{"seconds": 1e-9}, {"go_on": ending_after(60)}])
def test_workers_that_never_answer(content, limits):
    assert not certificate.check_on(Silent(), content, SAMPLE, **limits).finished


# ------------------------------------------------------------------ certify


def test_ctrl_c_while_checking(monkeypatch):
    """What was found is kept, and the file says why it is not proved."""
    monkeypatch.setattr(certificate, "MOMENT", 0.0)

    def watch(event):
        if event.note.startswith("checking"):
            signal.raise_signal(signal.SIGINT)

    found = certify(SAMPLE, gap=1e-2, budget=Budget(watch=watch))
    assert (found.level, found.stop, found.status) == ("attested", Stop.INTERRUPTED, "optimal")
    assert found.content()["stop"] == "interrupted"
    assert found.check().level == "proved"


def test_without_time_to_check_the_bound_is_attested(monkeypatch, tmp_path):
    """The file claims the search's word; a check with more time finds that it is proved."""
    sample = make_instance("gaussian-mixture", 60, 3, seed=2)
    sample.save(tmp_path / "sample.json")
    full = certify(mipmech.Instance.load(tmp_path / "sample.json"))
    for looks in (0, 1, 5, 20):
        monkeypatch.setattr(certificate, "_a_moment_longer", lambda _, n=looks: ending_after(n))
        found = certify(full.instance)
        assert (found.level, found.stop) == ("attested", Stop.TIME)
        assert found.lower == full.lower
        assert Fraction(found.upper) >= full.lower
        assert found.upper <= gain_ceiling(sample)
        found.save(tmp_path / "found.json")
        verdict = check(tmp_path / "found.json")
        assert (verdict.accepted, verdict.level) == (True, "proved")
        assert verdict.leaf_bound <= found.upper == verdict.upper
    eta = 0.5 * mipmech.model.reduce(sample).p_norm
    dense = certify_density(sample, eta)
    assert dense.level == "attested"
    assert (dense.check().accepted, dense.check().level) == (True, "proved")


def test_an_attested_bound_that_the_tree_does_not_carry(content):
    """It is not verified, and the verdict says so; nothing is rejected that is not claimed."""
    word = {**content, "level": "attested", "upper": content["lower"]["value"] * 1.001}
    word["seal"] = verdict_module.seal(word)
    verdict = check(word, SAMPLE)
    assert (verdict.accepted, verdict.level) == (True, "attested")
    assert verdict.leaf_bound > verdict.upper
    assert any(said.startswith("NOT verified") for said in verdict.verified)
    proved = {**word, "level": "proved"}
    proved["seal"] = verdict_module.seal(proved)
    assert not check(proved, SAMPLE)


def test_what_was_checked_before_is_kept(monkeypatch):
    """The second check is cut off: the bound is that of the first, with the better rule."""
    sample = make_instance("gaussian-mixture", 60, 3, seed=2)
    geometry = mipmech.model.reduce(sample)
    timer, clock = Budget(seconds=1e6).start(), Budget(seconds=1e6).start()
    search = GainSearch(geometry, clock, gap=1e-3, keep=True)
    search.run(most=200)
    made_at = []

    def made(stop):
        proof = certificate.cells_proof(geometry, geometry.basis, search.search)
        made_at.append(float(search.upper))
        return certificate.Certificate(
            sample, {"kind": "gain"}, search.best.recount, search.lower, float(search.upper), 1e-3,
            "proved", "cells", stop, 0.0, {"nodes": search.search.nodes}, proof,
        )  # fmt: skip

    ends = iter([lambda: True, ending_after(5)])
    monkeypatch.setattr(certificate, "_a_moment_longer", lambda _: next(ends))
    found = certificate._in_time(timer, clock, Stop.TIME, search.search.run, made)
    assert len(made_at) == 2
    assert made_at[1] < found.upper <= made_at[0]
    assert found.level == "proved"
    assert found.lower == search.lower
    assert found.check().accepted


@pytest.mark.parametrize("over", [0.0, 1.0, math.inf])
def test_a_moment_longer(over, monkeypatch):
    """Until the limit, and a moment after it or after Ctrl-C."""
    timer = Budget(seconds=over).start()
    now = [0.0]
    monkeypatch.setattr(mipmech.budget, "_now", lambda: timer.began + now[0])
    go_on = certificate._a_moment_longer(timer)
    if over == math.inf:
        now[0] = 1e9
        assert go_on()
        timer.interrupted, over = True, 1e9
    now[0] = over
    assert go_on()
    now[0] = over + certificate.MOMENT * 0.9
    assert go_on()
    now[0] = over + certificate.MOMENT * 1.1
    assert not go_on()


@pytest.mark.parametrize("family", ["gaussian-mixture", "costs", "ties"])
@pytest.mark.parametrize("seconds", [0.0, 0.01])
def test_stopped_early_no_bound_is_above_the_ceiling(family, seconds):
    """The ceiling is what `mipmech show` has."""
    sample = make_instance(family, 80, 4, seed=3)
    found = certify(sample, gap=1e-6, budget=Budget(seconds=seconds))
    assert found.upper <= gain_ceiling(sample)
    assert found.check().accepted


def test_the_ceiling_needs_no_leaves(content):
    """A claim no lower than the ceiling holds whatever the tree; one below it does not."""
    top = gain_ceiling(SAMPLE)
    roots = certificate.base64.b85encode(certificate.lzma.compress(bytes(6))).decode()
    proof = {**content["proof"], "tree": roots}
    for upper, accepted in ((top, True), (math.nextafter(top, 0.0), False)):
        claim = {**content, "proof": proof, "upper": upper, "gap": 1.0}
        claim["seal"] = verdict_module.seal(claim)
        verdict = check(claim, SAMPLE)
        assert verdict.accepted == accepted
        assert verdict.leaf_bound == top


def test_a_false_claim_ends_the_check_of_a_large_tree(monkeypatch):
    """Forged to nearly the lower bound: what is above it shows in one of the first parts."""
    monkeypatch.setattr(leaves, "WHOLE", 0)
    monkeypatch.setattr(leaves, "PART", 1 << 10)
    instance = make_instance("gaussian-mixture", 60, 3, seed=1)
    content = certify(instance, gap=0.05).content()
    least = math.nextafter(content["lower"]["value"], math.inf)
    forged = {**content, "upper": least, "gap": 1.0}
    forged["seal"] = seal(forged)
    verdict = check(forged, instance)
    assert not verdict.accepted
    assert verdict.reason.startswith("a leaf allows")
    assert verdict.leaf_bound is None
    assert check(content, instance).accepted


# ------------------------------------------------------------------ memory


def with_tree(content, depth, dimension):
    """Below each facet, thresholds cut so many times: a large tree in a few bytes."""
    roots = 2 * dimension
    symbols = np.repeat(np.array([1, 0], np.uint8), [roots * (2**depth - 1), roots * 2**depth])
    packed = certificate.lzma.compress(symbols.tobytes(), preset=0)
    text = certificate.base64.b85encode(packed).decode()
    found = {**content, "proof": {**content["proof"], "tree": text}}
    found["seal"] = seal(found)
    return found, len(symbols)


def test_memory_does_not_grow_with_the_tree(content, monkeypatch):
    """A byte and a half for each node, and what a part takes, however small the file is."""
    monkeypatch.setattr(leaves, "PART", 1 << 14)
    peaks = {}
    for depth in (16, 19):
        found, nodes = with_tree(content, depth, 3)
        looks = itertools.count()
        tracemalloc.start()
        verdict = check(found, SAMPLE, go_on=lambda looks=looks: next(looks) < 3000)
        peaks[nodes] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert not verdict.accepted
        assert verdict.leaves == (nodes + 6) // 2
    (few, low), (many, high) = peaks.items()
    assert high - low < 3 * (many - few)


def chain(instance, depth, target):
    """A claim that nothing gains, with the thresholds around one cut over and over."""
    content = certify(instance, gap=0.5).content()
    low, high = content["proof"]["thresholds"]
    symbols = [1, 0, 0, 0]
    for level in range(1, depth + 1):
        middle = 0.5 * (low + high)
        below = target <= middle
        low, high = (low, middle) if below else (middle, high)
        on = int(level < depth)
        symbols += [on, 0] if below else [0, on]
    packed = certificate.base64.b85encode(certificate.lzma.compress(bytes(symbols))).decode()
    found = {**content, "proof": {**content["proof"], "tree": packed}, "level": "attested"}
    found.update(upper=0.0, lower={"exact": "0", "value": 0.0}, witness=None, gap=1.0)
    found["seal"] = seal(found)
    return found


@pytest.mark.parametrize("part", [1 << 12, leaves.PART])
def test_memory_does_not_grow_with_the_depth(part, monkeypatch):
    """A bit for each level and open agent; 658 bytes of certificate took gigabytes."""
    monkeypatch.setattr(leaves, "PART", part)
    monkeypatch.setattr(leaves, "BATCH", 1 << 10)
    # What leaves take that are tilted together is limited elsewhere.
    monkeypatch.setattr(leaves.LeafBounds, "leaves", lambda *_: None)
    count = 2000
    rng = np.random.default_rng(0)
    agents = rng.integers(-5, 6, (count, 2)).astype(float)
    instance = mipmech.Instance.from_arrays(agents, [1.0, 1.0], visible=[0, 1], cost=1.0)
    peaks = []
    for depth in (50, 250):
        content = chain(instance, depth, 1e-300)
        tracemalloc.start()
        assert check(content, instance).leaves == 4 + depth
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 200 * count


@pytest.mark.parametrize("target", [1e-320, 0.3])
def test_thresholds_are_not_cut_where_floats_end(target):
    instance = mipmech.Instance.from_arrays(
        [[0.0, 0.0], [1.0, 2.0]], [1.0, 1.0], visible=[0, 1], cost=1.0
    )
    enough = 1200 if target < 1e-300 else 80
    verdict = check(chain(instance, enough, target), instance)
    assert verdict.reason == "proof.tree cuts finer than floats resolve"
    assert verdict.leaves == 4 + enough
    assert check(chain(instance, 40, target), instance).accepted


def test_agents_that_wait_are_the_same_again(content):
    """Whether they are kept as numbers or as bits."""
    exact = ExactInstance(SAMPLE, lambda: None)
    everyone = leaves.all_of(Agents(exact, content["proof"], None, Fraction(0)))
    rng = np.random.default_rng(2)
    for share in (0.0, 0.01, 0.5, 1.0):
        kept = np.flatnonzero(rng.uniform(size=len(everyone)) < share)
        some = everyone.kept(kept, rng.standard_normal(5))
        again = leaves.Pending.of(some, len(everyone)).agents(everyone)
        for field in dataclasses.fields(some):
            one, other = getattr(some, field.name), getattr(again, field.name)
            assert one.tobytes() == other.tobytes()
            assert (one.dtype, one.strides) == (other.dtype, other.strides)


def test_a_tree_too_large_to_read_is_said_so(content, monkeypatch):
    monkeypatch.setattr(tree, "MOST_NODES", 1000)
    monkeypatch.setattr(tree, "UNPACKED", 100)
    found, _ = with_tree(content, 10, 3)
    verdict = check(found, SAMPLE)
    assert verdict.reason == "proof.tree has more than 1,000 nodes, the most that are read"


def test_parts_of_many_dimensions_are_small(content, monkeypatch):
    """Boxes take memory in each dimension, also where no agent is open."""
    sizes = []

    def each(function, parts):
        for part in parts:
            sizes.append(part.leaves)
            yield function(part)

    monkeypatch.setattr(leaves, "PART", 1 << 10)
    assert check(content, SAMPLE, each=each).accepted
    assert max(sizes) <= (1 << 10) // (4 * leaves.WIDTH)


def test_a_large_frame_can_be_ended():
    """Its errors are found in rationals, row by row."""
    count = 60
    sample = mipmech.Instance.from_arrays(
        np.zeros((2, count)), np.ones(count), visible=range(count), cost=1.0
    )
    exact = ExactInstance(sample, lambda: seen.append(None))
    seen = []
    exact.frame_error(np.eye(count))
    assert len(seen) >= count
