"""A run's folder, read for a report: it may be incomplete, or come from an untrusted source.

Records come typed and cleaned (`studies.batch.records`). Each must answer the question of its job,
and hold what its tables and pictures need. Records that do not are skipped and counted; only a
folder without a readable plan is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from mipmech.errors import InputError
from mipmech.studies.batch.asking import ComparisonSettings, reference_of, run_of
from mipmech.studies.batch.folder import PlanRecord, RunFolder
from mipmech.studies.batch.jobs import Job
from mipmech.studies.batch.records import Figure, Options, Record, Size, Subject, kind_of, typed
from mipmech.studies.comparison.assembly import assemble
from mipmech.studies.comparison.results import Comparison
from mipmech.text import clean, short

# Pictures fail with numbers near the largest float.
LARGEST = 1e100
# Longer untrusted texts are cut.
LONGEST = 400
# Reasons, which may hold the last words of a program, are cut later.
LONGEST_REASON = 1000
# Errors caused by untrusted values; `InputError` is a ValueError.
FAULTS = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError)


class Planned(NamedTuple):
    """A job of the plan: its kind, the digest of its instance, and what its rules must meet."""

    kind: str
    digest: str
    requirements: Any = None


@dataclass(frozen=True)
class Batch:
    """The state of a run of a plan.

    text : the plan as it was written
    planned : whether there is a plan
    busy : whether it is running
    jobs : id -> job of the plan; without a plan, of the records
    records : id -> its record, in their order; None if it is not valid
    damaged : number of unreadable lines
    comparisons : those of the plan, with the results so far
    lost : why others cannot be shown
    alone : whether a comparison is all there is
    """

    name: str
    text: str
    planned: bool
    busy: bool
    jobs: Mapping[str, Planned]
    records: Mapping[str, Record | None]
    damaged: int
    comparisons: tuple[Comparison, ...]
    lost: tuple[str, ...]
    alone: bool

    @cached_property
    def entries(self) -> list[Record]:
        """The records of the jobs, in the order of the plan."""
        return [found for key in self.jobs if (found := self.records.get(key)) is not None]

    @property
    def odd(self) -> int:
        """Number of invalid records of the plan's jobs."""
        return sum(key in self.records and self.records[key] is None for key in self.jobs)

    @property
    def others(self) -> int:
        """Number of records of jobs that the plan does not have."""
        return sum(key not in self.jobs for key in self.records) if self.planned else 0

    @property
    def missing(self) -> int:
        """Number of jobs without a record."""
        return len(self.jobs) - len(self.entries) - self.odd

    @cached_property
    def failed(self) -> list[Record]:
        """The jobs that ended without a result."""
        return [entry for entry in self.entries if not entry.done]

    @property
    def groups(self) -> list[str]:
        """The families or folders of its instances, in their order."""
        return list(dict.fromkeys(entry.instance.group for entry in self.entries))

    @property
    def size(self) -> int:
        """How many instances there are."""
        return len({job.digest for job in self.jobs.values()})

    def of(self, task: str) -> list[Record]:
        """The jobs of a task that have a result."""
        return [entry for entry in self.entries if entry.task == task and entry.done]


def read(path: Path) -> Batch:
    """The run in a folder, as it stands at this moment."""
    folder = RunFolder.open(path)
    # In this order: a run that ends meanwhile is one that goes on, with all its records.
    busy, plan, found = folder.busy is not None, folder.plan(), folder.records()
    followed = plan or PlanRecord("", "", ())
    by_id = {job.id: job for job in followed.jobs}
    records = {key: understood(record, by_id.get(key)) for key, record in found.last.items()}
    known = {key: record for key, record in records.items() if record is not None}
    jobs = {
        key: Planned(kind_of(j.task, _cut(j.options)), j.subject, j.options.get("requirements"))
        for key, j in by_id.items()
    }
    if plan is None:
        jobs = {
            key: Planned(record.kind, record.instance.digest, record.requirements)
            for key, record in known.items()
        }
    comparisons, lost = _comparisons(followed, {k: known[k] for k in by_id if k in known})
    return Batch(
        name=short(followed.name, LONGEST),
        text=followed.text,
        planned=plan is not None,
        busy=busy,
        jobs=jobs,
        records=records,
        damaged=found.damaged + (len(records) - len(known) if plan is None else 0),
        comparisons=comparisons,
        lost=lost,
        alone=len(comparisons) == 1 and not lost and all(map(_part_of_comparison, followed.jobs)),
    )


def _part_of_comparison(job: Job) -> bool:
    return job.task in ("reference", "ask") and job.repetition == 0


def _comparisons(
    plan: PlanRecord, records: Mapping[str, Record]
) -> tuple[tuple[Comparison, ...], tuple[str, ...]]:
    """The comparisons of a plan, each on its own: a faulty one does not affect the others."""
    found, lost, listed = [], [], plan.comparisons or []
    for given in listed if isinstance(listed, list) else [listed]:
        try:
            settings = typed(given, ComparisonSettings, "the settings of a comparison")
            subjects = typed(plan.subjects, tuple[Subject, ...], "a list of instances")
            once = {subject.digest: _named(subject) for subject in subjects}.values()
            left_out = [short(said, LONGEST) for said in plan.left_out]
            found.append(assemble(settings, once, plan.jobs, records, left_out))
        except InputError as error:
            lost.append(clean(str(error)))
        except FAULTS as error:
            lost.append(f"the plan is not whole ({type(error).__name__})")
    return tuple(found), tuple(lost)


# ------------------------------------------------------------------ a record


def understood(record: Record, job: Job | None) -> Record | None:
    """The record, ready to be shown; None if it is not valid."""
    try:
        if job is not None:
            _agree((record.task, record.options), (job.task, job.options))
            _agree(record.instance.digest, job.subject)
        etas = [record.options.get(name) for name in ("eta", "eta_fraction")]
        asked = typed(etas, tuple[Figure | None, ...], "values of η")
        typed(record.options.get("options", {}), Options, "options")
        numbers = (record.seconds, record.allowed, record.bounds, record.events, asked)
        if not _can_be_drawn((*numbers, _result(record))):
            raise InputError("has a number that cannot be drawn")
        subject = record.instance
        return replace(
            record,
            options=_cut(record.options),
            instance=_named(subject),
            reason=None if record.reason is None else short(record.reason, LONGEST_REASON),
            started=None if record.started is None else _in_utc(record.started),
            ended=_in_utc(record.ended),
        )
    except FAULTS:
        return None


def _agree(one: object, other: object) -> None:
    if one != other:
        raise InputError("answers another question")


def _result(record: Record) -> Any:
    """The part of a record that is shown beside its bounds; raises if it is missing."""
    if record.task == "ask":
        run, options = run_of(record), record.options
        asked = (record.instance.digest, options["oracle"], options["seed"])
        _agree((run.instance, run.oracle, run.seed), asked)
        _agree({call.eta_fraction for call in run.calls} - set(options["eta_fractions"]), set())
        return run
    if record.done and record.task in ("certify", "reference"):
        _check_bounds(record, record.lower, record.upper)
        if record.task == "reference":
            found = reference_of(record)
            _check_bounds(record, found.lower, found.upper)
            least = 0.0 if found.lower is None else found.lower
            if found.upper is not None and least > found.upper:
                raise InputError("has bounds that exclude each other")
            return found
    return calls_of(record) if record.done and record.task == "solve" else None


def _check_bounds(record: Record, lower: float | None, upper: float | None) -> None:
    """Without requirements some rule is always known, gain is never below 0, and has a bound."""
    if record.requirements is None:
        if upper is None:
            raise InputError("has no upper bound")
        if lower is None or (record.task == "reference" and lower < 0):
            raise InputError("has no lower bound")
    elif upper is None and not (lower is None and record.infeasible):
        raise InputError("has neither an upper bound nor a proof that there is no rule")


def calls_of(record: Record) -> dict[str, int]:
    """The calls of its oracle that Algorithm 1 made, and those that it could skip."""
    found = typed((record.result or {})["oracle_calls"], dict[str, Size], "numbers of calls")
    return {name: found[name] for name in ("made", "skipped")}


def _can_be_drawn(value: Any) -> bool:
    """Whether all numbers in it can be drawn; other objects are not inspected."""
    if isinstance(value, (int, float)):
        return abs(value) <= LARGEST
    if isinstance(value, tuple):
        return all(map(_can_be_drawn, value))
    return not is_dataclass(value) or all(map(_can_be_drawn, vars(value).values()))


def _cut(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same with shorter texts."""
    return {
        name: short(value, LONGEST) if isinstance(value, str) else value
        for name, value in values.items()
    }


def _named(subject: Subject) -> Subject:
    """The same with shorter names."""
    return replace(subject, name=short(subject.name, LONGEST), group=short(subject.group, LONGEST))


def _in_utc(when: datetime) -> datetime:
    """The same moment; without a zone, it is taken for UTC."""
    if not 2000 <= when.year < 3000:
        raise InputError(f"has the year {when.year}")
    return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
