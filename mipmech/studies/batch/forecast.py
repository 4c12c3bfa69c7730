"""An honest estimate of the time that a run will still take."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from mipmech.studies.batch.jobs import Job

# How often a job is tried if its worker dies.
TRIES = 2
# Before anything is known of a kind of job, it is expected to take this share of its limit.
AT_FIRST = 0.5


class Forecast:
    """How long the rest will take: for each kind, the share of its limits that was used so far."""

    def __init__(self, jobs: Iterable[Job], workers: int) -> None:
        self.left = Counter((job.kind, job.limit) for job in jobs)
        self.workers = max(1, workers)
        self.used: defaultdict[str, float] = defaultdict(float)
        self.allowed: defaultdict[str, float] = defaultdict(float)

    def learn(self, job: Job, seconds: float) -> None:
        """A job of this kind took so long."""
        self.used[job.kind] += seconds
        self.allowed[job.kind] += job.limit

    def note(self, job: Job, seconds: float) -> None:
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
