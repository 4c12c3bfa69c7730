"""The jobs of a plan. The same plan gives the same jobs with the same ids, everywhere.

The id of a job is a digest of what its result depends on: the instance's digest, the task with all
its options, its time, which repetition it is, and the versions that matter. What it does not depend
on (names, memory, how long a hanging worker is waited for) does not count, so that a job may be
tried again with more memory.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

from mipmech.errors import InputError
from mipmech.model.instance import Instance
from mipmech.studies.batch.plan import Options, Plan, Source
from mipmech.studies.batch.tasks import KINDS, instance_file
from mipmech.studies.comparison.compare import Subject
from mipmech.version import __version__

# A plan of more jobs is a slip of the pen.
MOST_JOBS = 1_000_000
# Whatever one of these oracles (or engines) says, HiGHS has had a hand in it, called by Pyomo.
SOLVED = ("milp", "milp-soft", "rounding")


@dataclass(frozen=True)
class Job:
    """One job.

    seconds : the time that the work itself keeps to: of a call, if it makes several
    limit : the time of all calls; the worker is killed ``grace`` seconds later
    memory : bytes that the worker may use
    fault : why it cannot be done, if its instance is broken
    """

    id: str
    task: str
    options: Options
    repetition: int
    seconds: float
    limit: float
    grace: float
    memory: int | None
    subject: Subject
    fault: str | None = None

    @property
    def kind(self) -> str:
        """Jobs of one kind take a similar share of their time."""
        return kind_of(self.task, self.options)

    @property
    def label(self) -> str:
        """What it is, in a line."""
        options = self.options
        words = [self.kind]
        if options.get("eta") is not None:
            words.append(f"at η = {options['eta']:g}")
        if options.get("eta_fraction") is not None:
            words.append(f"at η = {options['eta_fraction']:g} ‖P w_f‖")
        seed = options.get("seed", options.get("options", {}).get("seed"))
        if seed is not None:
            words.append(f"seed {seed}")
        if self.repetition:
            words.append(f"again ({self.repetition + 1})")
        return f"{' '.join(words)} on {self.subject.name}"

    def to_dict(self) -> dict[str, Any]:
        """For the plan's record; the subject by its digest."""
        return {**asdict(self), "subject": self.subject.digest}


def kind_of(task: str, options: Options) -> str:
    """A task with whoever does it: "oracle milp", "certify cells"."""
    return f"{task} {options.get('oracle') or options.get('engine') or ''}".strip()


@dataclass(frozen=True)
class Expansion:
    """A plan with its jobs.

    broken : files that are no instances, with what is wrong with them
    """

    plan: Plan
    subjects: tuple[Subject, ...]
    jobs: tuple[Job, ...]
    broken: tuple[InputError, ...]

    def to_dict(self) -> dict[str, Any]:
        """The record of the plan in a run's folder."""
        return {
            "format": "mipmech/jobs@1",
            "name": self.plan.name,
            "text": self.plan.text,
            "subjects": [asdict(subject) for subject in self.subjects],
            "comparisons": [settings.to_dict() for settings in self.plan.comparisons],
            "jobs": [job.to_dict() for job in self.jobs],
        }


def expand(
    plan: Plan,
    keep: Callable[[Instance], None] | None = None,
    watch: Callable[[int, int], None] | None = None,
) -> Expansion:
    """The jobs of a plan, instance by instance.

    keep : called with every instance once, since the jobs remember only its digest
    watch : called with how many sources were looked at, and how many there are
    """
    if len(plan.sources) * len(plan.pieces) > MOST_JOBS:
        count = len(plan.sources) * len(plan.pieces)
        said = f"{len(plan.sources):,} instances and {len(plan.pieces):,} tasks make {count:,} jobs"
        raise InputError(f"{said}; {MOST_JOBS:,} are the most", file=plan.path)
    subjects: dict[str, Subject] = {}
    broken: dict[str, InputError] = {}
    for place, source in enumerate(plan.sources):
        if watch is not None:
            watch(place, len(plan.sources))
        try:
            sample = source.load()
        except InputError as error:
            if source.file is None:  # a family without such a member: the plan's own fault
                raise InputError(error.message, file=plan.path, field="instances") from None
            subject = _broken_subject(source)
            broken.setdefault(subject.digest, error)
        else:
            subject = Subject.of(sample)
            if keep is not None and subject.digest not in subjects:
                keep(sample)
        subjects.setdefault(subject.digest, subject)
    if len(broken) == len(subjects):
        raise next(iter(broken.values()))
    jobs = [
        _job(plan, place, subject, broken.get(subject.digest))
        for subject in subjects.values()
        for place in range(len(plan.pieces))
    ]
    distinct = {job.id: job for job in jobs}
    return Expansion(
        plan, tuple(subjects.values()), tuple(distinct.values()), tuple(broken.values())
    )


def _job(plan: Plan, place: int, subject: Subject, error: InputError | None) -> Job:
    piece = plan.pieces[place]
    told = {
        "task": piece.task,
        "options": piece.options,
        "instance": subject.digest,
        "repetition": piece.repetition,
        "seconds": piece.seconds,
        "versions": versions_that_matter(piece.task, piece.options),
    }
    return Job(
        id=_digest(told),
        task=piece.task,
        options=piece.options,
        repetition=piece.repetition,
        seconds=piece.seconds,
        limit=piece.limit,
        grace=piece.grace,
        memory=piece.memory,
        subject=subject,
        fault=None if error is None else plain(str(error)),
    )


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _broken_subject(source: Source) -> Subject:
    """A stand-in for an instance that cannot be read: another one as soon as the file changes."""
    assert source.file is not None
    try:
        content = source.file.read_bytes()
    except OSError:
        content = b""
    name = os.fsencode(source.file.name)
    digest = "broken-" + hashlib.sha256(name + content).hexdigest()[:32]
    group = plain(source.file.resolve().parent.name)
    return Subject(plain(source.file.name), digest, group, instance_file(digest), 0, 0)


def plain(text: str) -> str:
    """A text that can be written as UTF-8: names of files may be anything."""
    return text.encode(errors="replace").decode()


def versions_that_matter(task: str, options: Options) -> dict[str, str]:
    """The versions that a job's result hangs on: ours, and the solver's where one is asked."""
    names = {options.get("oracle"), options.get("engine"), options.get("skip")}
    solver = ("highspy", "pyomo") if names & set(SOLVED) else ()
    assert task in KINDS
    return {name: _version(name) for name in ("mipmech", *solver)}


@cache
def _version(name: str) -> str:
    return __version__ if name == "mipmech" else version(name)
