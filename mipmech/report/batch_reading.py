"""The folder of a batch, read so that it can be shown: also half written, also a stranger's.

`RunFolder` sees to it that records are whole and have their fields. Here numbers are seen to be
finite, texts are cleaned and cut, and what a record's result must have for its tables and pictures
is looked for. A record that does not stand up to this is passed over and counted; only a folder
without a readable plan is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from mipmech import files
from mipmech.errors import InputError, shorten
from mipmech.report.reading import check_bounds, check_number, checked, checked_run, cleaned, plain
from mipmech.report.writing import clean, harmless, short
from mipmech.studies.batch.comparisons import comparisons, reference_of, run_of
from mipmech.studies.batch.folder import LOCK, MARK, PLANS, RECORDS, Records, RunFolder
from mipmech.studies.batch.journal import Record
from mipmech.studies.comparison.results import Comparison

# Texts of strangers that are longer are cut.
LONGEST_NAME, LONGEST_REASON, LONGEST_PLAN = 400, 2000, 20_000
# No instance has more agents, and no job used more bytes.
MOST = 10**15

# Seconds, lower bound, upper bound if there is one.
Step = tuple[float, float, float | None]


@dataclass(frozen=True)
class Entry:
    """What became of a job.

    status : "done", "failed", "timeout", "memory" or "crashed"
    allowed : the seconds that it had
    what, outcome, lower, upper, level : its bounds, if it has any
    calls : of the oracle, that a "solve" job made and skipped
    mechanism : the rule that it found, unchecked
    events : the bounds over time
    record : the record itself, its texts cleaned
    """

    id: str
    task: str
    status: str
    reason: str
    name: str
    digest: str
    group: str
    agents: int
    rank: int
    options: dict[str, Any]
    repetition: int
    attempt: int
    allowed: float
    what: str
    outcome: str
    lower: float | None
    upper: float | None
    level: str
    seconds: float
    memory: int | None
    started: datetime | None
    ended: datetime
    worker: str
    made_by: dict[str, Any]
    calls: tuple[int, int] | None
    mechanism: Any
    events: tuple[Step, ...]
    record: Record

    @property
    def done(self) -> bool:
        """Whether it has a result."""
        return self.status == "done"

    @property
    def kind(self) -> str:
        """Its task, with the oracle or the engine that did it."""
        return kind_of(self.task, self.options)

    @property
    def oracle(self) -> str:
        """The oracle that it asked, if any."""
        return str(self.options.get("oracle") or "")

    @property
    def seed(self) -> int | None:
        """The seed of its random numbers, if it draws any."""
        found = self.options.get("seed", self.options.get("options", {}).get("seed"))
        return found if isinstance(found, int) else None

    @property
    def gap(self) -> float | None:
        """(upper − lower)/upper; None without bounds."""
        if self.lower is None or self.upper is None:
            return None
        return max(0.0, 1 - self.lower / self.upper) if self.upper > 0 else 0.0


@dataclass(frozen=True)
class Planned:
    """A job of the plan: its kind and its instance."""

    task: str
    kind: str
    digest: str


@dataclass(frozen=True)
class Batch:
    """A run of a plan, as far as it has come.

    jobs : id -> job of the plan; without a plan, of the records
    entries : what became of them, in the order of the plan
    odd : jobs whose record cannot be understood
    damaged : lines of the record of which not even that can be said whose they are
    others : records of jobs that the plan does not have
    busy : whether somebody is at work on it
    planned : whether there is a plan
    text : the plan as it was written
    comparisons : those of the plan, as far as they have come
    lost : why comparisons of the plan cannot be shown
    """

    name: str
    jobs: Mapping[str, Planned]
    entries: tuple[Entry, ...]
    odd: int
    damaged: int
    others: int
    busy: bool
    planned: bool
    text: str
    comparisons: tuple[Comparison, ...]
    lost: tuple[str, ...]

    def of(self, task: str) -> list[Entry]:
        """The jobs of a task that have a result."""
        return [entry for entry in self.entries if entry.task == task and entry.done]

    @cached_property
    def failed(self) -> list[Entry]:
        """The jobs that ended without a result."""
        return [entry for entry in self.entries if not entry.done]

    @property
    def missing(self) -> int:
        """How many jobs are not on the record."""
        return len(self.jobs) - len(self.entries) - self.odd

    @cached_property
    def newest(self) -> datetime | None:
        """When the newest record was written."""
        return max((entry.ended for entry in self.entries), default=None)

    @property
    def groups(self) -> list[str]:
        """The families or folders of its instances, in their order."""
        return list(dict.fromkeys(entry.group for entry in self.entries))


def read(path: Path) -> Batch:
    """The batch in a folder, as it stands at this moment."""
    try:
        return _read(opened(path))
    except InputError as error:
        raise error.located(path / MARK) from None


def _read(folder: RunFolder) -> Batch:
    # In this order: a run that ends meanwhile is one that goes on, with all its records.
    busy = folder.busy is not None
    plan = _plan(folder)
    records = _records(folder)
    jobs = {} if plan is None else _jobs(plan)
    found: dict[str, Entry] = {}
    others = odd = 0
    for key, record in records.last.items():
        if plan is not None and key not in jobs:
            others += 1
            continue
        entry = understood(record)
        if entry is None:
            odd += 1
        else:
            found[key] = entry
    if plan is None:
        jobs = {key: Planned(e.task, e.kind, e.digest) for key, e in found.items()}
        odd, damaged = 0, records.damaged + odd
    else:
        damaged = records.damaged
    shown, lost = _comparisons(folder, plan, {key: records.last[key] for key in found})
    return Batch(
        name="" if plan is None else _cut(plan.get("name"), LONGEST_NAME),
        jobs=jobs,
        entries=tuple(found[key] for key in jobs if key in found),
        odd=odd,
        damaged=damaged,
        others=others,
        busy=busy,
        planned=plan is not None,
        text="" if plan is None else _lines(plan.get("text")),
        comparisons=shown,
        lost=lost,
    )


def rows(path: Path) -> list[Entry | str]:
    """Every record of a folder for a table; of one that is not understood, the job's id."""
    last = _records(opened(path)).last
    return [understood(record) or cleaned(key, "id") for key, record in last.items()]


# ------------------------------------------------------------------ files


def opened(path: Path) -> RunFolder:
    """The folder, with nothing in it that would keep a reader waiting, as a pipe does."""
    try:
        plans = list((path / PLANS).glob("*.json"))
    except OSError:
        plans = []
    for file in (path / MARK, path / RECORDS, path / LOCK, *plans):
        if file.exists() and not file.is_file():
            raise InputError("is not a plain file", file=file)
    try:
        return RunFolder.open(path)
    except RecursionError:
        raise InputError("is nested too deeply to be a run", file=path / MARK) from None


def _plan(folder: RunFolder) -> dict[str, Any] | None:
    try:
        return folder.plan()
    except RecursionError:
        raise InputError("its plan is nested too deeply", file=folder.path / MARK) from None


def _records(folder: RunFolder) -> Records:
    file = folder.path / RECORDS
    try:
        return folder.records()
    except OSError as error:
        raise InputError(f"cannot be read: {files.reason(error)}", file=file) from None
    except RecursionError:
        raise InputError("has a record that is nested too deeply", file=file) from None


# ------------------------------------------------------------------ the plan


def _jobs(plan: dict[str, Any]) -> dict[str, Planned]:
    """The jobs of a plan; those that are no jobs are none."""
    listed = plan.get("jobs")
    if not isinstance(listed, list):
        raise InputError("its plan has no list of jobs; run it again", field="jobs")
    jobs = {}
    for job in listed:
        if not isinstance(job, dict):
            continue
        key, task, options = job.get("id"), job.get("task"), job.get("options")
        if isinstance(key, str) and isinstance(task, str) and isinstance(options, dict):
            kind = kind_of(clean(task), plain(options))
            jobs[key] = Planned(clean(task), kind, str(job.get("subject")))
    return jobs


def kind_of(task: str, options: Mapping[str, Any]) -> str:
    """A task, with the oracle or the engine that does it."""
    who = options.get("oracle") or options.get("engine") or ""
    return short(f"{task} {who}".strip(), LONGEST_NAME)


def _comparisons(
    folder: RunFolder, plan: dict[str, Any] | None, records: Mapping[str, Record]
) -> tuple[tuple[Comparison, ...], tuple[str, ...]]:
    """The comparisons of a plan, each on its own: one that is faulty costs no other."""
    listed = [] if plan is None else plan.get("comparisons")
    found, lost = [], []
    for settings in listed if isinstance(listed, list) else []:
        try:
            (made,) = comparisons(folder, {**(plan or {}), "comparisons": [settings]}, records)
            found.append(checked(made))
        except InputError as error:
            lost.append(clean(str(error)))
        except FAULTS as error:
            lost.append(f"the plan is not whole ({type(error).__name__})")
    return tuple(found), tuple(lost)


# ------------------------------------------------------------------ a record

# What comes of taking a stranger's values for what they should be.
FAULTS = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError)


def understood(record: Record) -> Entry | None:
    """What became of a job; None if its record is not what it should be."""
    try:
        return _entry(record)
    except FAULTS:  # `InputError` is a ValueError
        return None


def _entry(record: Record) -> Entry:
    instance, options = record["instance"], plain(record["options"])
    if not isinstance(options.get("options", {}), dict):
        raise InputError("is not an object", field="options.options")
    for name in ("eta", "eta_fraction"):
        _number_or_none(options.get(name))
    check_number(record["seconds"], "seconds")
    check_number(record["allowed"]["seconds"], "allowed")
    told = _bounds(record)
    tidy: Record = {
        "id": clean(record["id"]),
        "status": clean(record["status"]),
        "reason": None if record["reason"] is None else _cut(record["reason"], LONGEST_REASON),
        "attempt": _size(record["attempt"]),
        "task": clean(record["task"]),
        "instance": {
            "name": _cut(instance["name"], LONGEST_NAME),
            "digest": clean(instance["digest"]),
            "group": _cut(instance["group"], LONGEST_NAME),
            "agents": _size(instance["agents"]),
            "rank": _size(instance["rank"]),
        },
        "options": options,
        "repetition": _size(record["repetition"]),
        "allowed": {"seconds": record["allowed"]["seconds"]},
        "bounds": told,
        "seconds": record["seconds"],
        "memory": None if record["memory"] is None else _size(record["memory"]),
        "started": None if record["started"] is None else clean(record["started"]),
        "ended": clean(record["ended"]),
        "worker": clean(record["worker"]) if record["worker"] else "",
        "made_by": plain(record["made_by"] or {}),
        "certificate": None if record["certificate"] is None else clean(record["certificate"]),
    }
    done = tidy["status"] == "done"
    result = record["result"] or {}
    _check_result(record, done)
    bounds = told or {}
    return Entry(
        id=tidy["id"],
        task=tidy["task"],
        status=tidy["status"],
        reason=tidy["reason"] or "",
        **tidy["instance"],
        options=options,
        repetition=tidy["repetition"],
        attempt=tidy["attempt"],
        allowed=float(tidy["allowed"]["seconds"]),
        what=bounds.get("what") or "",
        outcome=bounds.get("status") or "",
        lower=bounds.get("lower"),
        upper=bounds.get("upper"),
        level=bounds.get("level") or "",
        seconds=max(0.0, float(tidy["seconds"])),
        memory=tidy["memory"],
        started=None if tidy["started"] is None else _moment(tidy["started"]),
        ended=_moment(tidy["ended"]),
        worker=tidy["worker"],
        made_by=tidy["made_by"],
        calls=_calls(result) if done and tidy["task"] == "solve" else None,
        mechanism=result.get("mechanism"),
        events=_events(record["events"]),
        record=tidy,
    )


def _bounds(record: Record) -> dict[str, Any] | None:
    given = record["bounds"]
    if given is None:
        return None
    check_number(given["lower"], "bounds")
    _number_or_none(given["upper"])
    if given["upper"] is None and record["task"] in ("certify", "reference"):
        raise InputError("has no upper bound", field="bounds")
    words = {name: given[name] for name in ("what", "status", "level")}
    return {
        **{name: None if word is None else cleaned(word, "bounds") for name, word in words.items()},
        "lower": given["lower"],
        "upper": given["upper"],
    }


def _check_result(record: Record, done: bool) -> None:
    """Refuse a record without what its kind of task is shown by."""
    options = record["options"]
    if done and record["bounds"] is None:
        raise InputError("has no bounds", field="bounds")
    if record["task"] == "ask":
        run = checked_run(run_of(record), options["eta_fractions"])
        mine = (record["instance"]["digest"], options["oracle"], options["seed"])
        if (run.instance, run.oracle, run.seed) != mine:
            raise InputError("answers another question", field="result")
    if record["task"] == "reference" and done:
        check_bounds(reference_of(record)[0])


def _calls(result: dict[str, Any]) -> tuple[int, int]:
    """How many calls of its oracle Algorithm 1 made, and how many it could skip."""
    told = result["oracle_calls"]
    return _size(told["made"]), _size(told["skipped"])


def _events(steps: list[Any]) -> tuple[Step, ...]:
    found = []
    for seconds, lower, upper, _work in steps:
        for value in (seconds, lower):
            check_number(value, "events")
        _number_or_none(upper)
        found.append((float(seconds), float(lower), None if upper is None else float(upper)))
    return tuple(found)


def _number_or_none(value: Any) -> None:
    if value is not None:
        check_number(value, "options")


def _size(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST:
        raise InputError(f"has {shorten(value)} for a size")
    return value


def _moment(text: str) -> datetime:
    """A time of the wall clock; without a zone, in UTC."""
    found = datetime.fromisoformat(text)
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    if not 2000 <= found.year < 3000:
        raise InputError(f"has the year {found.year}", field="ended")
    return found


def _cut(value: Any, longest: int) -> str:
    """A stranger's text, cleaned and not too long."""
    return short(cleaned(value, "record"), longest)


def _lines(value: Any) -> str:
    """A stranger's text of many lines."""
    if not isinstance(value, str):
        return ""
    shown = value[:LONGEST_PLAN] + ("\n…" if len(value) > LONGEST_PLAN else "")
    return "\n".join(harmless(line.expandtabs(4)).rstrip() for line in shown.splitlines())
