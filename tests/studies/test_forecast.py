"""Jobs on worker processes: nothing is lost, dead workers are replaced, estimates are honest."""

from __future__ import annotations

import os
import time

import pytest

from mipmech import Budget
from mipmech.studies.forecast import Forecast, Job, duration, run
from mipmech.workers.processes import ONE_THREAD, cores


def double(x):
    return 2 * x


def fail(x):
    raise ValueError(f"no {x}")


def die(_x):
    os._exit(3)


def threads(_x):
    return [os.environ.get(name) for name in ONE_THREAD]


def sleepy(x):
    time.sleep(x)
    return x


def jobs(work, values, limit=1.0):
    return [Job(work, (value,), work.__name__, limit) for value in values]


@pytest.mark.parametrize("workers", [1, 2])
def test_every_job_ends_once(workers):
    todo = [*jobs(double, range(7)), *jobs(fail, [7])]
    ended = list(run(todo, workers, Budget().start()))
    assert sorted(done.place for done in ended) == list(range(8))
    for done in ended:
        if done.place == 7:
            assert done.result is None
            assert done.error == "ValueError: no 7"
        else:
            assert (done.result, done.error) == (2 * done.place, None)


def test_a_dead_worker_costs_only_its_job():
    todo = [*jobs(double, range(3)), *jobs(die, [0]), *jobs(double, range(5))]
    ended = {done.place: done for done in run(todo, 2, Budget().start())}
    assert sorted(ended) == list(range(9))
    assert ended[3].error == "the worker process ended with status 3"
    assert [place for place, done in ended.items() if done.error is not None] == [3]


def test_workers_use_one_thread_and_leave_the_environment_alone():
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    (done,) = run(jobs(threads, [0]), 2, Budget().start())
    assert done.result == ["1"] * len(ONE_THREAD)
    assert {name: os.environ.get(name) for name in ONE_THREAD} == before


def test_the_time_limit_ends_workers():
    begun = time.monotonic()
    assert list(run(jobs(sleepy, [60.0, 60.0]), 2, Budget(1.0).start())) == []
    assert time.monotonic() - begun < 30


def test_no_time_no_job():
    for workers in (1, 2):
        assert list(run(jobs(double, range(3)), workers, Budget(0.0).start())) == []


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
    assert [duration(s) for s in (0.2, 59.4, 61, 3599, 3700, 90_000)] == [
        "0 s", "59 s", "1:01", "59:59", "1 h 1 min", "25 h 0 min",
    ]  # fmt: skip


def test_cores():
    assert cores() >= 1
