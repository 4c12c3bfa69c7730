"""Estimates of the time that is left are honest."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from mipmech.studies.batch.forecast import Forecast
from mipmech.text import estimate
from mipmech.workers.processes import cores


def double(x):
    return 2 * x


def fail(x):
    raise ValueError(f"no {x}")


@dataclass(frozen=True)
class Job:
    kind: str
    limit: float


def jobs(work, values, limit=1.0):
    return [Job(work.__name__, limit) for _ in values]


def test_the_forecast_learns_from_each_kind():
    quick, slow = jobs(double, range(10), limit=2.0), jobs(fail, range(10), limit=4.0)
    forecast = Forecast([*quick, *slow], workers=2)
    assert forecast.seconds == pytest.approx((10 * 2.0 + 10 * 4.0) * 0.5 / 2)
    assert forecast.most == pytest.approx((10 * 2.0 + 10 * 4.0) / 2)
    for one, other in zip(quick[:9], slow[:9], strict=True):
        forecast.note(one, 0.0)
        forecast.note(other, 4.0)
    # One of each kind is left: the first kind takes nearly nothing, the second nearly all.
    assert forecast.seconds == pytest.approx(4.0 * 9.5 / 10)  # one worker will be idle
    assert forecast.most == 4.0
    forecast.note(quick[9], 0.0)
    forecast.note(slow[9], 4.0)
    assert forecast.seconds == 0


def test_a_forecast_learns_from_what_was_done_before():
    todo = jobs(double, range(4), limit=10.0)
    forecast = Forecast(todo, workers=1)
    for _ in range(99):
        forecast.learn(todo[0], 1.0)
    assert forecast.seconds == pytest.approx(4 * 10 * (99 * 1.0 + 5.0) / 1000)


def test_a_job_without_time_takes_none():
    assert Forecast(jobs(double, range(3), limit=0.0), workers=2).seconds == 0


def test_durations_are_as_exact_as_an_estimate():
    assert [estimate(s) for s in (0.2, 59.4, 61, 3599, 3700, 90_000)] == [
        "0 s", "59 s", "1:01", "59:59", "1 h 1 min", "25 h 0 min",
    ]  # fmt: skip


def test_cores():
    assert cores() >= 1
