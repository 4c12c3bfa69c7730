"""The outcome of jobs: the one record of all studies, and its typed reading.

Records and plans are read by msgspec into the dataclasses that they were written from: a wrong
type, range or field makes a record unreadable, and causes no failure later.
Texts are cleaned first, since a folder may come from an untrusted source.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar, cast

import msgspec

from mipmech.errors import InputError
from mipmech.model.instance import Instance
from mipmech.text import clean

# Larger numbers, and NaN, are faults.
Figure = Annotated[float, msgspec.Meta(ge=-1e290, le=1e290)]
Duration = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
# No instance has more agents, and no job used more bytes.
Size = Annotated[int, msgspec.Meta(ge=0, le=10**15)]
LARGEST_SEED = 2**63 - 1
Seed = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_SEED)]
Key = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{20}$")]
Options = dict[str, Any]
Level = Literal["proved", "attested", "stated"]
Status = Literal["done", "failed", "timeout", "memory", "crashed"]
# Seconds, lower bound, upper bound if there is one, work.
Step = tuple[Figure, Figure, Figure | None, Size]

Typed = TypeVar("Typed")

# Where certificates and instances lie in a run's folder.
CERTIFICATES, INSTANCES = "certificates", "instances"
# Untrusted objects nested deeper than this are shown as an ellipsis.
DEEPEST = 12
# Longer untrusted texts are cut.
LONGEST = 20_000


@dataclass(frozen=True)
class Subject:
    """The facts about an instance that are needed without reading it.

    group : the family of a seeded instance; of others, the folder that they lie in
    ceiling : no rule gains more than this
    known_gain, known_densities : the optima that its file states (`model.known`)
    """

    name: str
    digest: str
    group: str
    agents: Size
    rank: Size
    ceiling: Figure = 0.0
    known_gain: tuple[Figure, Figure] | None = None
    known_densities: tuple[tuple[Figure, Figure, Figure], ...] = ()

    @property
    def file(self) -> str:
        """Its copy in a run's folder."""
        return instance_file(self.digest)

    def stated(self, fraction: float | None) -> tuple[float, float] | None:
        """What its file says of the greatest gain, or of the greatest density at η."""
        if fraction is None:
            return self.known_gain
        return {at: (lower, upper) for at, lower, upper in self.known_densities}.get(fraction)


def instance_file(digest: str) -> str:
    """Where the copy of an instance lies in a run's folder."""
    return f"{INSTANCES}/{digest[:16]}.json"


@dataclass(frozen=True)
class Bounds:
    """The bounds that a job found on an optimum.

    what : "gain", "density" or "soft density"
    status : "optimal", "gap", "feasible" (no upper bound) or "infeasible"
    lower : None if rules must meet requirements, and none that does is known
    level : who vouches for the upper bound, or that no rule meets the requirements; None without
    """

    what: str
    status: str
    lower: Figure | None
    upper: Figure | None
    level: Level | None


@dataclass(frozen=True)
class Allowed:
    """The limits that a job had: seconds of a call, of the whole, and bytes."""

    seconds: Duration
    limit: Duration = 0.0
    memory: Size | None = None


@dataclass(frozen=True)
class Record:
    """The outcome of a job.

    status : "done" if there is a result, else why there is none
    reason : why there is no result; None if there is one
    attempt : how often it was tried, over all runs
    seconds, memory : of the work itself, and the most bytes that its process used
    result : the object that the command of the same name prints under ``--json``
    events : the bounds over time
    """

    id: Key
    status: Status
    reason: str | None
    attempt: Size
    task: str
    instance: Subject
    options: Options
    repetition: Size
    allowed: Allowed
    bounds: Bounds | None
    seconds: Duration
    memory: Size | None
    started: datetime | None
    ended: datetime
    worker: str
    made_by: dict[str, Any] | None
    certificate: str | None
    result: dict[str, Any] | None
    events: tuple[Step, ...]

    @property
    def done(self) -> bool:
        """Whether it has a result."""
        return self.status == "done"

    @property
    def kind(self) -> str:
        """Its task, with the oracle or the engine that did it."""
        return kind_of(self.task, self.options)

    @property
    def name(self) -> str:
        """Of its instance."""
        return self.instance.name

    @property
    def oracle(self) -> str:
        """The oracle that it asked, if any."""
        return str(self.options.get("oracle") or "")

    @property
    def seed(self) -> int | None:
        """The seed of its random numbers, if it draws any."""
        own = self.options.get("options")
        found = self.options.get("seed", own.get("seed") if isinstance(own, dict) else None)
        return found if isinstance(found, int) and 0 <= found <= LARGEST_SEED else None

    @property
    def lower(self) -> float | None:
        """Its lower bound, if it has any."""
        return None if self.bounds is None else self.bounds.lower

    @property
    def upper(self) -> float | None:
        """Its upper bound, if it has any."""
        return None if self.bounds is None else self.bounds.upper

    @property
    def gap(self) -> float | None:
        """(upper − lower)/upper; None without bounds, 1 if the rule found does harm."""
        if self.lower is None or self.upper is None:
            return None
        if self.lower < 0:
            return 1.0
        return max(0.0, 1 - self.lower / self.upper) if self.upper > 0 else 0.0

    @property
    def infeasible(self) -> bool:
        """Whether its result is that no rule meets the requirements."""
        found = self.bounds
        if not self.done or found is None or found.status != "infeasible":
            return False
        return found.lower is None and found.upper is None

    @property
    def requirements(self) -> Any:
        """What its rules must meet, as a file has it; None if nothing is demanded."""
        return self.options.get("requirements")

    def to_dict(self) -> dict[str, Any]:
        """The object in its line of the journal."""
        return cast("dict[str, Any]", msgspec.to_builtins(self))


def kind_of(task: str, options: Options) -> str:
    """A task with the oracle or engine that does it: "oracle milp", "certify cells"."""
    return f"{task} {options.get('oracle') or options.get('engine') or ''}".strip()


def subject_of(sample: Instance, group: str) -> Subject:
    """What a record keeps of an instance."""
    from mipmech.theory.projection import gain_ceiling  # noqa: PLC0415  (scipy is slow to import)

    known = sample.known
    return Subject(
        name=sample.name,
        digest=sample.digest,
        group=group,
        agents=sample.size,
        rank=sample.view.rank,
        ceiling=gain_ceiling(sample),
        known_gain=None if known is None else (known.lower, known.upper),
        known_densities=() if known is None else known.densities,
    )


# ------------------------------------------------------------------ reading


def typed(value: Any, kind: type[Typed], what: str) -> Typed:
    """Read a value back; an `InputError` names the place that does not fit.

    what : what the value should be, for the message
    """
    try:
        return msgspec.convert(cleaned(value), kind)
    except msgspec.ValidationError as error:
        raise InputError(f"is not {what}: {error}") from None
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(f"is not {what}: {type(error).__name__} {error}") from None


def record_of(line: dict[str, Any]) -> Record | None:
    """A line of a journal as a record; None if it is none."""
    try:
        record = typed(line, Record, "a record")
    except InputError:
        return None
    if record.done and record.bounds is None:
        return None
    return record if _within_floats([record.options, record.made_by, record.result]) else None


def cleaned(value: Any, depth: int = 0) -> Any:
    """The same value; invisible and modifying characters are removed from all its texts."""
    if isinstance(value, str):
        text = value[:LONGEST]
        return text if text.isprintable() else clean(text)
    if isinstance(value, (list, tuple)):
        return [cleaned(entry, depth + 1) for entry in value] if depth < DEEPEST else "…"
    if isinstance(value, dict):
        if depth >= DEEPEST:
            return "…"
        return {cleaned(str(key)): cleaned(entry, depth + 1) for key, entry in value.items()}
    return value


def _within_floats(value: Any) -> bool:
    """Whether no number in it is beyond all floats, so that it can be written again."""
    if isinstance(value, dict):
        return all(map(_within_floats, value.values()))
    if isinstance(value, list):
        return all(map(_within_floats, value))
    return not isinstance(value, (int, float)) or abs(value) <= sys.float_info.max


@dataclass(frozen=True)
class Records:
    """The records of a run.

    last : the last record of each job, which is the one that counts
    lines : their number, including repeated attempts
    damaged : number of unreadable lines; their jobs count as not done
    """

    last: dict[str, Record]
    lines: int
    damaged: int

    @classmethod
    def of(cls, lines: Iterable[dict[str, Any] | None], whole: bool = True) -> Records:
        """The last record of each job; if not ``whole``, without the parts that use much memory."""
        last: dict[str, Record] = {}
        count = damaged = 0
        for line in lines:
            count += 1
            record = None if line is None else record_of(line)
            if record is None:
                damaged += 1
            else:
                last[record.id] = record if whole else replace(record, result=None, events=())
        return cls(last, count, damaged)

    @property
    def failed(self) -> dict[str, Record]:
        """The jobs that have no result."""
        return {key: record for key, record in self.last.items() if not record.done}
