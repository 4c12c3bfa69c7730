"""The jobs of a plan. The same plan gives the same jobs with the same ids, everywhere.

The id of a job is a digest of what its result depends on: the instance's digest, the task with all
its options (requirements among them), its time, its repetition, and the relevant versions. Names,
memory and the grace period of a hanging worker do not enter, so that a job may be tried again with
more memory.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from importlib.metadata import version
from typing import Any

from mipmech import untrusted
from mipmech.budget import Timer
from mipmech.errors import InputError
from mipmech.model.families import NAMES
from mipmech.model.instance import Instance
from mipmech.studies.batch.asking import ComparisonSettings
from mipmech.studies.batch.plan import Piece, Plan, Source
from mipmech.studies.batch.records import Options, Subject, kind_of, subject_of
from mipmech.studies.batch.requiring import OPTION, pairs_on
from mipmech.text import writable
from mipmech.tolerances import LARGEST_TABLE
from mipmech.version import __version__

JOBS = "mipmech/jobs@2"
# A plan of more jobs is a mistake, and one that makes more numbers (agents times features).
MOST_JOBS, MOST_MADE = 1_000_000, 1_000_000_000
# So many instances are read whatever the time, so that a run without any still tells what it lacks.
ANYHOW = 20
# Requirements, by a digest -> which weights they compare on an instance (`requiring.pairs_on`).
Compared = dict[str, list[list[int]]]
# The answers of these oracles (or engines) depend on HiGHS, called through Pyomo.
SOLVED = ("milp", "milp-soft", "rounding")


@dataclass(frozen=True)
class Job:
    """One job.

    seconds : the time that the work itself keeps to: of a call, if it makes several
    limit : the time of all calls; the worker is killed ``grace`` seconds later
    memory : bytes that the worker may use
    subject : the digest of its instance
    fault : why it cannot be done, if its instance is broken
    carried : the oracle itself, if workers cannot make it from its name; not in the record
    """

    id: str
    task: str
    options: Options
    repetition: int
    seconds: float
    limit: float
    grace: float
    memory: int | None
    subject: str
    fault: str | None = None
    carried: Any = None

    @property
    def kind(self) -> str:
        """Jobs of one kind take a similar share of their time."""
        return kind_of(self.task, self.options)

    @property
    def label(self) -> str:
        """A description in one line, without the instance."""
        options = self.options
        words = [self.kind]
        if options.get("eta") is not None:
            words.append(f"at η = {options['eta']:g}")
        if options.get("eta_fraction") is not None:
            words.append(f"at η = {options['eta_fraction']:g} ‖P w_f‖")
        seed = options.get("seed", options.get("options", {}).get("seed"))
        if seed is not None:
            words.append(f"seed {seed}")
        if OPTION in options:
            words.append("with requirements")
        if self.repetition:
            words.append(f"again ({self.repetition + 1})")
        return " ".join(words)

    def to_dict(self) -> dict[str, Any]:
        """For the plan's record."""
        content = asdict(replace(self, carried=None))
        del content["carried"]
        return content


@dataclass(frozen=True)
class Expansion:
    """A plan with its jobs.

    left_out : duplicates of other instances under another name, in words
    broken : faults of files that are no instances
    """

    name: str
    text: str
    subjects: tuple[Subject, ...]
    comparisons: tuple[ComparisonSettings, ...]
    jobs: tuple[Job, ...]
    left_out: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()

    @cached_property
    def by_digest(self) -> dict[str, Subject]:
        """The instances by their digests."""
        return {subject.digest: subject for subject in self.subjects}

    def label(self, job: Job) -> str:
        """A description of a job in one line."""
        return f"{job.label} on {self.by_digest[job.subject].name}"

    def to_dict(self) -> dict[str, Any]:
        """The record of the plan in a run's folder."""
        return {
            "format": JOBS,
            **asdict(replace(self, jobs=(), comparisons=())),
            "comparisons": [settings.to_dict() for settings in self.comparisons],
            "jobs": [job.to_dict() for job in self.jobs],
        }


def expand(
    plan: Plan,
    keep: Callable[[Instance], None] | None = None,
    watch: Callable[[int, int], None] | None = None,
    timer: Timer | None = None,
) -> Expansion:
    """The jobs of a plan, instance by instance.

    keep : called with every instance once; jobs keep only its digest
    watch : called with the number of sources read, and of all
    timer : looked at before each source but the first few; a plan that is not read to its end has
        no jobs
    """
    if len(plan.sources) * len(plan.pieces) > MOST_JOBS:
        count = len(plan.sources) * len(plan.pieces)
        said = f"{len(plan.sources):,} instances and {len(plan.pieces):,} tasks make {count:,} jobs"
        raise InputError(f"{said}; at most {MOST_JOBS:,} are allowed", file=plan.path)
    made = sum(source.numbers for source in plan.sources)
    if made > MOST_MADE:
        said = f"makes {made:,} numbers (agents times features); at most {MOST_MADE:,} are allowed"
        raise InputError(said, file=plan.path, field="instances")
    subjects: dict[str, Subject] = {}
    required = _distinct(plan)
    compared: dict[str, Compared] = {}
    broken: dict[str, InputError] = {}
    left_out = []
    for place, source in enumerate(plan.sources):
        if watch is not None:
            watch(place, len(plan.sources))
        _in_time(timer, place, plan)
        try:
            sample = source.load()
        except InputError as error:
            if source.file is None:  # a family without such a member: the plan's own fault
                raise InputError(error.message, file=plan.path, field="instances") from None
            subject = _broken_subject(source)
            broken.setdefault(subject.digest, error)
            subjects.setdefault(subject.digest, subject)
            continue
        subject = subject_of(sample, writable(_group(sample)))
        first = subjects.setdefault(subject.digest, subject)
        pairs = _pairs_on(sample, required, plan)
        if compared.setdefault(subject.digest, pairs) != pairs:
            said = f"are about other features on {sample.name} than on {first.name}, which has the"
            said += " same numbers under other names of features; leave one of them out"
            raise InputError(said, file=plan.path, field="requirements")
        if keep is not None and first is subject:
            keep(sample)
        elif first.known_gain is None and sample.known is not None:
            subjects[subject.digest] = replace(subject, name=first.name, group=first.group)
        if first.name != sample.name:
            left_out.append(f"{sample.name} is {first.name} under another name")
    if len(broken) == len(subjects):
        raise next(iter(broken.values()))
    jobs = []
    for subject in subjects.values():
        _in_time(timer, len(plan.sources), plan)
        fault, pairs = broken.get(subject.digest), compared.get(subject.digest, {})
        jobs += [_job(piece, subject, fault, pairs) for piece in plan.pieces]
    distinct = {job.id: job for job in jobs}
    return Expansion(
        plan.name, plan.text, tuple(subjects.values()), plan.comparisons, tuple(distinct.values()),
        tuple(left_out), tuple(writable(str(error)) for error in broken.values()),
    )  # fmt: skip


def _in_time(timer: Timer | None, read: int, plan: Plan) -> None:
    if read >= ANYHOW and timer is not None and timer.left == 0:
        said = f"{read:,} of {len(plan.sources):,} instances were read or made in the time allowed,"
        said += " and no job was begun; give more time by --seconds"
        raise InputError(said, file=plan.path)


def _distinct(plan: Plan) -> dict[str, Options]:
    """The requirements of a plan's tasks, each once."""
    given = [piece.options[OPTION] for piece in plan.pieces if OPTION in piece.options]
    return {_digest(one): one for one in given}


def _pairs_on(sample: Instance, required: dict[str, Options], plan: Plan) -> Compared:
    """Which weights requirements compare on an instance; an error if they make no sense there."""
    try:
        return {key: pairs_on(sample, one) for key, one in required.items()}
    except InputError as error:
        field = "requirements" if error.field in (None, OPTION) else f"requirements.{error.field}"
        said = f"{error.message} (on the instance {sample.name})"
        raise InputError(said, file=plan.path, field=field, row=error.row) from None


def _group(sample: Instance) -> str:
    """The family of a seeded instance; of others, the folder that they lie in."""
    for family in NAMES:
        if re.match(rf"{family}-m[0-9]+(-|$)", sample.name):
            return family
    return "given" if sample.path is None else sample.path.resolve().parent.name


def _job(piece: Piece, subject: Subject, error: InputError | None, compared: Compared) -> Job:
    told = {
        "task": piece.task,
        "options": piece.options,
        "instance": subject.digest,
        "repetition": piece.repetition,
        "seconds": piece.seconds,
        "versions": versions_that_matter(piece.options),
    }
    if OPTION in piece.options:
        told["weights"] = compared.get(_digest(piece.options[OPTION]))
    fault = None if error is None else writable(str(error))
    return Job(id=_digest(told), subject=subject.digest, fault=fault, **vars(piece))


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _broken_subject(source: Source) -> Subject:
    """A stand-in for an instance that cannot be read; it changes with the file."""
    assert source.file is not None
    try:
        content = untrusted.read_bytes(source.file, LARGEST_TABLE)
    except (OSError, InputError):
        content = b""
    name = os.fsencode(source.file.name)
    digest = "broken-" + hashlib.sha256(name + content).hexdigest()[:32]
    group = writable(source.file.resolve().parent.name)
    return Subject(writable(source.file.name), digest, group, 0, 0)


def versions_that_matter(options: Options) -> dict[str, str]:
    """The versions that a job's result depends on: ours, and the solver's where one is asked."""
    names = {options.get("oracle"), options.get("engine"), options.get("skip")}
    # An oracle that is not the package's may ask the solver, too.
    solver = ("highspy", "pyomo") if names & set(SOLVED) or "source" in options else ()
    return {name: _version(name) for name in ("mipmech", *solver)}


@cache
def _version(name: str) -> str:
    return __version__ if name == "mipmech" else version(name)
