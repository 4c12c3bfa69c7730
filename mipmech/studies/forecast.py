"""Independent jobs on workers, with an honest estimate of the time that is left.

A worker that dies takes its job along; the job is tried once more. Ctrl-C ends the workers at once;
what was finished is kept.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from mipmech.budget import Timer
from mipmech.workers.executor import Task
from mipmech.workers.processes import Processes

Result = TypeVar("Result")

# How often a job is tried if its worker dies.
TRIES = 2
# Before anything is known of a kind of job, it is expected to take this share of its limit.
AT_FIRST = 0.5
# How often the clock is looked at while workers work.
LOOKING = 0.2


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


class Foreseen(Protocol):
    """What a forecast has to know of a job."""

    @property
    def kind(self) -> str:
        """Jobs of one kind take a similar share of their limit."""

    @property
    def limit(self) -> float:
        """Seconds that it may take, more or less."""


class Forecast:
    """How long the rest will take: for each kind, the share of its limits that was used so far."""

    def __init__(self, jobs: Iterable[Foreseen], workers: int) -> None:
        self.left = Counter((job.kind, job.limit) for job in jobs)
        self.workers = max(1, workers)
        self.used: defaultdict[str, float] = defaultdict(float)
        self.allowed: defaultdict[str, float] = defaultdict(float)

    def learn(self, job: Foreseen, seconds: float) -> None:
        """A job of this kind took so long."""
        self.used[job.kind] += seconds
        self.allowed[job.kind] += job.limit

    def note(self, job: Foreseen, seconds: float) -> None:
        """One of the jobs has ended."""
        self.left[job.kind, job.limit] -= 1
        self.learn(job, seconds)

    @property
    def seconds(self) -> float:
        """Expected until the end."""
        total = longest = 0.0
        for (kind, limit), count in self.left.items():
            if not count or not limit:
                continue
            # As if one job at half its limit had been seen before all others.
            share = (self.used[kind] + AT_FIRST * limit) / (self.allowed[kind] + limit)
            total += count * share * limit
            longest = max(longest, share * limit)
        return max(total / self.workers, longest)

    @property
    def most(self) -> float:
        """Until the end, if every job uses all its time."""
        limits = [(limit, count) for (_, limit), count in self.left.items() if count]
        total = sum(limit * count for limit, count in limits)
        return max(total / self.workers, max((limit for limit, _ in limits), default=0.0))


def duration(seconds: float) -> str:
    """A time, as exact as an estimate can be.

    >>> duration(42), duration(200), duration(7300)
    ('42 s', '3:20', '2 h 1 min')
    """
    if seconds < 60:
        return f"{round(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d}"
    return f"{minutes // 60} h {minutes % 60} min"


def run(jobs: Sequence[Job[Result]], workers: int, timer: Timer) -> Iterator[Done[Result]]:
    """Do the jobs and hand out each as it ends, until all are done or the time is over.

    With one worker they are done here, one after the other, in this process.
    """
    if workers <= 1:
        yield from _run_here(jobs, timer)
        return
    waiting = list(range(len(jobs)))[::-1]
    tries = [0] * len(jobs)
    with Processes(workers) as executor:
        while (waiting or executor.running) and timer.left > 0:
            while waiting and executor.free:
                place = waiting.pop()
                job = jobs[place]
                executor.give(Task(str(place), job.work, job.arguments))
            for end in executor.wait(min(timer.left, LOOKING)):
                place = int(end.key)
                tries[place] += 1
                if end.how == "died" and tries[place] < TRIES:
                    waiting.append(place)
                else:
                    yield Done(place, end.result, end.reason, end.seconds)


def _run_here(jobs: Sequence[Job[Result]], timer: Timer) -> Iterator[Done[Result]]:
    for place, job in enumerate(jobs):
        if timer.left == 0:
            return
        begun = time.monotonic()
        result, error = None, None
        try:
            result = job.work(*job.arguments)
        except Exception as fault:
            error = f"{type(fault).__name__}: {fault}"
        if timer.interrupted:
            return  # Ctrl-C has cut this job short as well
        yield Done(place, result, error, time.monotonic() - begun)
