"""The state of a run, read from its folder, also while it is running."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mipmech.studies.batch.folder import RunFolder


@dataclass(frozen=True)
class RunStatus:
    """The state of a run.

    counts : jobs of its plan by status; "missing" are those without a record
    kinds : the same for each kind of task
    other : records of jobs of an earlier plan, or of a merged run
    damaged : number of unreadable records; their jobs will be repeated
    busy : the process that is writing in the folder
    failures : label and reason of the jobs that have no result
    """

    folder: str
    plan: str | None
    total: int
    counts: dict[str, int]
    kinds: dict[str, dict[str, int]]
    other: int
    damaged: int
    seconds: float
    busy: str | None
    failures: tuple[tuple[str, str], ...]

    def to_dict(self) -> dict[str, Any]:
        """The object printed under ``--json``."""
        return asdict(self)


def status_of(path: str | Path) -> RunStatus:
    """The state of the run in a folder."""
    folder = RunFolder.open(path)
    busy = folder.busy
    plan = folder.plan()
    records = folder.records(whole=False)
    counts: Counter[str] = Counter()
    kinds: dict[str, Counter[str]] = {}
    failures = []
    jobs = {} if plan is None else {job.id: job for job in plan.jobs}
    for key, job in jobs.items():
        record = records.last.get(key)
        state = "missing" if record is None else record.status
        counts[state] += 1
        kinds.setdefault(job.kind, Counter())[state] += 1
        if record is not None and state != "done":
            failures.append((f"{job.kind} on {record.name}", f"{state}: {record.reason}"))
    return RunStatus(
        str(folder.path),
        None if plan is None else plan.name,
        len(jobs),
        dict(counts),
        {kind: dict(states) for kind, states in sorted(kinds.items())},
        sum(key not in jobs for key in records.last),
        records.damaged,
        sum(record.seconds for record in records.last.values()),
        busy,
        tuple(failures),
    )
