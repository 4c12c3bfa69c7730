"""Budgets: what is refused, and clocks that stand still for what is done once on a machine."""

from __future__ import annotations

import time

import numpy as np
import pytest

from mipmech import Budget
from mipmech.budget import off_the_clock
from mipmech.errors import InputError


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"seconds": None}, "seconds"),
        ({"seconds": "10"}, "seconds"),
        ({"seconds": True}, "seconds"),
        ({"seconds": float("nan")}, "seconds"),
        ({"seconds": -1.0}, "seconds"),
        ({"threads": 1.5}, "threads"),
        ({"threads": 0}, "threads"),
        ({"threads": None}, "threads"),
        ({"nodes": 10.0}, "nodes"),
        ({"nodes": False}, "nodes"),
        ({"nodes": -1}, "nodes"),
    ],
)
def test_what_is_no_budget_is_refused(given, field):
    with pytest.raises(InputError) as fault:
        Budget(**given)
    assert fault.value.field == field


def test_numbers_of_any_kind_are_taken():
    assert Budget(np.float32(2), np.int64(3), nodes=None).threads == 3


@pytest.fixture
def moments(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_all_clocks_stand_still_meanwhile(moments):
    """Those that ran before, and those that are started meanwhile, as in another thread."""
    before = Budget(10.0).start()
    moments[0] += 1.0
    with off_the_clock():
        moments[0] += 50.0
        assert before.seconds == 1.0
        between = Budget(10.0).start()
        moments[0] += 50.0
        assert (before.left, between.seconds) == (9.0, 0.0)
    assert (before.seconds, between.seconds) == (1.0, 0.0)
    moments[0] += 2.0
    assert (before.seconds, between.seconds) == (3.0, 2.0)


def test_off_the_clock_twice_at_once(moments):
    timer = Budget().start()
    with off_the_clock():
        moments[0] += 5.0
        with off_the_clock():
            moments[0] += 5.0
        moments[0] += 5.0
        assert timer.seconds == 0.0
    moments[0] += 1.0
    assert timer.seconds == 1.0
