"""The compiled code: made once, told of, off every clock; and its parts against plain ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mipmech import Budget, ask, certify, certify_density, make_instance
from mipmech.budget import Event, Trace, off_the_clock
from mipmech.model import reduce
from mipmech.oracles.cells import blocks, kernel
from mipmech.oracles.cells.blocks import CellProblem, in_levels
from mipmech.oracles.cells.engine import gain_problem
from tests.conftest import ROOT

# ------------------------------------------------------------------ once


def test_nothing_is_compiled_for_other_types_of_arguments():
    """All that uses the engine calls the code that `warm` has loaded."""
    sample = make_instance("costs", 30, 3, seed=2)
    geometry = reduce(sample)
    eta = 0.6 * geometry.p_norm
    certify(sample, gap=1e-2)
    certify_density(sample, eta)
    for name in ("cells", "cells-soft"):
        ask(sample, eta=eta, oracle=name)
    frozen = gain_problem(geometry)
    for values in (frozen.y, frozen.reach, frozen.weight, frozen.p):
        values.setflags(write=False)
    frozen.values(np.eye(3))
    for entry in (kernel.search_block, kernel.climb):
        assert len(entry.signatures) == 1


FIRST = """
import json, os, signal, sys
from mipmech import Budget, certify, make_instance
told, interrupt = [], sys.argv[1] == "interrupt"
def watch(event):
    if event.note.startswith("compiling"):
        told.append(event.note)
        if interrupt:
            os.kill(os.getpid(), signal.SIGINT)
try:
    budget = Budget(seconds=1.5, watch=watch)
    found = certify(make_instance("ties", 12, 2, seed=1), gap=0.5, budget=budget)
    print(json.dumps([told, found.status, found.seconds, [e.upper for e in found.events]]))
except KeyboardInterrupt:
    print(json.dumps([told, "interrupted"]))
"""


@pytest.mark.slow
def test_compiling_is_told_once_counts_for_no_clock_and_can_be_interrupted(tmp_path):
    def first(how):
        known = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        command = [sys.executable, "-c", FIRST, how]
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, cwd=ROOT, env=known
        )
        assert done.stderr == ""
        return json.loads(done.stdout)

    note = "compiling the engine (once)"
    assert first("interrupt") == [[note], "interrupted"]
    told, status, seconds, uppers = first("go on")
    assert (told, status) == ([note], "optimal")
    assert seconds < 1.5  # compiling alone takes longer
    assert None not in uppers  # pictures begin with the search
    assert first("again")[:2] == [[], "optimal"]


# ------------------------------------------------------------------ clocks and events


def test_clocks_leave_out_what_is_off_the_clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    timer = Budget(10.0).start()
    now[0] += 2.0
    with off_the_clock():
        now[0] += 50.0
    assert (timer.seconds, timer.left) == (2.0, 8.0)
    later = Budget(10.0).start()
    now[0] += 1.0
    assert (timer.seconds, later.seconds) == (3.0, 1.0)


def test_a_note_before_anything_is_known_is_passed_on_and_not_kept():
    passed: list[Event] = []
    trace = Trace(passed.append)
    note, found = Event(0.0, 0.0, None, 0, "compiling"), Event(0.1, 0.0, 1.0, 5)
    trace(note)
    trace(found)
    assert passed == [note, found]
    assert trace.events == [found]


# ------------------------------------------------------------------ the parts


@given(
    arrays.arrays(float, st.integers(0, 70), elements=st.integers(-5, 5).map(float)),
    st.randoms(use_true_random=False),
)
def test_sorting_is_stable(keys, random):
    order = list(range(len(keys)))
    random.shuffle(order)
    expected = sorted(order, key=lambda i: keys[i])
    sorted_ = np.array(order, np.int64)
    kernel._sort.py_func(sorted_, keys, np.empty(len(keys), np.int64), len(keys))
    assert sorted_.tolist() == expected


trees = st.recursive(
    st.just(()), lambda below: st.tuples(st.integers(1, 5), below, below), max_leaves=30
)


def preorder(tree):
    return [tree[0], *preorder(tree[1]), *preorder(tree[2])] if tree else [kernel.LEAF]


@given(st.lists(trees, min_size=1, max_size=6))
def test_levels_of_a_forest(forest):
    code = np.array([symbol for tree in forest for symbol in preorder(tree)], np.uint8)
    expected, level = [], forest
    while level:
        expected += [tree[0] if tree else kernel.LEAF for tree in level]
        level = [child for tree in level if tree for child in tree[1:]]
    assert in_levels(code).tolist() == expected


@pytest.mark.parametrize("kind", [kernel.DENSITY, kernel.SOFT, kernel.GAIN])
def test_the_value_of_a_direction_is_that_of_its_best_threshold(kind):
    random = np.random.default_rng(3)
    y, shift = np.round(random.standard_normal((3, 40)), 1), np.round(random.random(40), 1)
    reach, weight = random.integers(1, 4, 40) / 4, random.random(40)
    p = random.standard_normal(3)
    problem = CellProblem(kind, y, shift, np.zeros(40), reach, weight, p)
    v = random.standard_normal((20, 3))
    v /= np.linalg.norm(v, axis=1)[:, None]
    expected = []
    for one in v:
        score = shift + one @ y
        away = (score + reach)[:, None] - score  # thresholds by agents
        inside = (away >= 0) & (away <= reach)
        inside |= np.eye(40, dtype=bool)  # an agent's own end, whatever the rounding
        worth = inside if kind == kernel.DENSITY else inside * away
        rate = max(0.0, float(one @ p)) if kind == kernel.GAIN else 1.0
        expected.append(rate * (worth @ weight).max())
    np.testing.assert_allclose(problem.values(v), expected, rtol=1e-12)
    climbed = v.copy()
    values = problem.climb(climbed, 0.1 * random.standard_normal((20, 30, 3)))
    assert (values >= problem.values(v)).all()
    assert (values > problem.values(v)).any()
    np.testing.assert_allclose(problem.values(climbed), values, rtol=1e-12)


def test_a_block_that_leaves_too_much_open_ends_early_and_loses_nothing(monkeypatch):
    sample = make_instance("uniform-ball", 40, 4, seed=3)
    whole = certify(sample, gap=1e-3)
    for name in ("MOST_LEFT", "MOST_AGENTS_LEFT"):
        with monkeypatch.context() as patch:
            patch.setattr(blocks, name, 0)  # every block is one node and its halves
            ended = certify(sample, gap=1e-3)  # checks its own proof
        assert ended.status == whole.status == "optimal"
        assert ended.lower <= whole.upper
        assert whole.lower <= ended.upper
