"""An estimate of the remaining time of a run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from mipmech.studies.batch.jobs import Job

# Attempts at a job whose worker dies.
TRIES = 2
# The expected share of its limit that a job of an unknown kind takes.
AT_FIRST = 0.5


class Forecast:
    """The remaining time, from the share of its limits that each kind of job has used so far."""

    def __init__(self, jobs: Iterable[Job], workers: int) -> None:
        self.left = Counter((job.kind, job.limit) for job in jobs)
        self.workers = max(1, workers)
        self.used: defaultdict[str, float] = defaultdict(float)
        self.allowed: defaultdict[str, float] = defaultdict(float)

    def learn(self, job: Job, seconds: float) -> None:
        """Record the time of a job."""
        self.used[job.kind] += seconds
        self.allowed[job.kind] += job.limit

    def note(self, job: Job, seconds: float) -> None:
        """Record the end of one of the jobs."""
        self.left[job.kind, job.limit] -= 1
        self.learn(job, seconds)

    @property
    def seconds(self) -> float:
        """Expected seconds until the end."""
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
        """Seconds until the end if every job uses all its time."""
        limits = [(limit, count) for (_, limit), count in self.left.items() if count]
        total = sum(limit * count for limit, count in limits)
        return max(total / self.workers, max((limit for limit, _ in limits), default=0.0))
