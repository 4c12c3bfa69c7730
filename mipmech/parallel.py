"""Independent jobs on worker processes, with an honest estimate of the time that is left.

Workers are spawned, never forked, and use one thread each: HiGHS hangs after a fork, and timings
mean nothing if libraries fight over cores. A worker that dies takes its job along; the job is tried
once more on a new one. Ctrl-C ends the workers at once; what was finished is kept.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mipmech.budget import Timer

Result = TypeVar("Result")

# Thread pools of numerical libraries, as their documentation names them.
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
# How often a job is tried if its worker dies.
TRIES = 2
# Before anything is known of a kind of job, it is expected to take this share of its limit.
AT_FIRST = 0.5
# How often the clock is looked at while workers work.
HEARTBEAT = 0.2


@dataclass(frozen=True)
class Job(Generic[Result]):
    """Something to do: a function that can be pickled, and its arguments.

    kind : jobs of one kind take a similar share of their limit
    limit : seconds that it may take, more or less
    """

    work: Callable[..., Result]
    arguments: tuple[Any, ...]
    kind: str
    limit: float


@dataclass(frozen=True)
class Done(Generic[Result]):
    """A job that ended: with a result, or with the reason why there is none."""

    place: int
    result: Result | None
    error: str | None
    seconds: float


class Forecast:
    """How long the rest will take: for each kind, the share of its limits that was used so far."""

    def __init__(self, jobs: Sequence[Job[Any]], workers: int) -> None:
        self.left = dict(enumerate(jobs))
        self.workers = max(1, workers)
        self.used: dict[str, float] = {}
        self.allowed: dict[str, float] = {}

    def note(self, place: int, seconds: float) -> None:
        """A job has ended."""
        job = self.left.pop(place)
        self.used[job.kind] = self.used.get(job.kind, 0.0) + seconds
        self.allowed[job.kind] = self.allowed.get(job.kind, 0.0) + job.limit

    @property
    def seconds(self) -> float:
        """Expected until the end."""
        total = 0.0
        for job in self.left.values():
            allowed = self.allowed.get(job.kind, 0.0)
            # As if one job at half its limit had been seen before all others.
            share = (self.used.get(job.kind, 0.0) + AT_FIRST * job.limit) / (allowed + job.limit)
            total += share * job.limit
        return total / self.workers


def run(jobs: Sequence[Job[Result]], workers: int, timer: Timer) -> Iterator[Done[Result]]:
    """Do the jobs and hand out each as it ends, until all are done or the time is over.

    With one worker they are done here, one after the other, in this process.
    """
    if workers <= 1:
        yield from _run_here(jobs, timer)
        return
    waiting = list(range(len(jobs)))[::-1]
    tries = [0] * len(jobs)
    while waiting and timer.left > 0:
        with _single_threads(), _pool(workers) as pool:
            # A broken pool has put back what it was doing, and a new one goes on with it.
            yield from _run_in(pool, jobs, waiting, tries, workers, timer)


def _run_here(jobs: Sequence[Job[Result]], timer: Timer) -> Iterator[Done[Result]]:
    for place, job in enumerate(jobs):
        if timer.left == 0:
            return
        ended = _timed(job)
        if timer.interrupted:
            return  # Ctrl-C has cut this job short as well
        yield _done(place, *ended)


def _timed(job: Job[Result]) -> tuple[Result | None, str | None, float]:
    begun = time.monotonic()
    try:
        result, error = job.work(*job.arguments), None
    except Exception as fault:
        result, error = None, f"{type(fault).__name__}: {fault}"
    return result, error, time.monotonic() - begun


def _done(place: int, result: Result | None, error: str | None, seconds: float) -> Done[Result]:
    return Done(place, result, error, seconds)


def _run_in(
    pool: ProcessPoolExecutor,
    jobs: Sequence[Job[Result]],
    waiting: list[int],
    tries: list[int],
    workers: int,
    timer: Timer,
) -> Iterator[Done[Result]]:
    """Keep the pool busy; on a dead worker, put back what it may have been doing."""
    running: dict[Future[Any], int] = {}
    while (waiting or running) and timer.left > 0:
        while waiting and len(running) < workers:
            place = waiting.pop()
            running[pool.submit(_timed, jobs[place])] = place
        ended, _ = wait(running, timeout=min(HEARTBEAT, timer.left), return_when=FIRST_COMPLETED)
        broken = [future for future in ended if isinstance(future.exception(), BrokenProcessPool)]
        for future in ended:
            if future not in broken:
                yield _done(running.pop(future), *future.result())
        if broken:
            # Nobody knows whose job it was, so each that was running has used up a try.
            for place in sorted(running.values(), reverse=True):
                tries[place] += 1
                if tries[place] < TRIES:
                    waiting.append(place)
                else:
                    yield _done(place, None, "the worker process died", 0.0)
            return


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_deaf_to_ctrl_c)
    try:
        yield pool
    finally:
        # What still runs is not waited for: its time is over, or somebody pressed Ctrl-C.
        if pool._pending_work_items:
            for process in list((pool._processes or {}).values()):
                process.terminate()
        pool.shutdown(wait=True, cancel_futures=True)


def _deaf_to_ctrl_c() -> None:
    """A terminal sends Ctrl-C to every process; only the first one decides what it means."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _single_threads() -> Iterator[None]:
    """Spawned processes inherit these settings; libraries read them when they are loaded."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def cores() -> int:
    """The cores that this process may use."""
    count = getattr(os, "sched_getaffinity", None)
    return len(count(0)) if count is not None else (os.cpu_count() or 1)
