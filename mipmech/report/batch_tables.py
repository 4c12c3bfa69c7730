"""The tables of a batch as data, which the page and the markdown share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mipmech.report.batch_reading import Batch, Entry
from mipmech.report.batch_words import ENDS, ceilings, contradictions, share
from mipmech.report.tables import NOTHING, Cell, Column, Row, Table, number, quality, text
from mipmech.report.writing import THIN, count, duration, ends, gap, short, size
from mipmech.studies.comparison.results import Bounds
from mipmech.studies.spread import Spread

# Cells of options that are longer are cut.
LONGEST = 80


def tables(batch: Batch) -> list[Table]:
    """All tables that have anything in them, the gravest first."""
    found = [
        contradicted(batch),
        kinds(batch),
        certificates(batch),
        questions(batch),
        solutions(batch),
        failures(batch),
    ]
    return [table for table in found if table.rows]


# ------------------------------------------------------------------ cells


def _time(value: float | None) -> Cell:
    return Cell(NOTHING) if value is None else Cell(duration(value), value)


def _memory(value: int | None) -> Cell:
    return Cell(NOTHING) if value is None else Cell(size(value), value)


def _words(value: str) -> Cell:
    return text(value) if value else Cell(NOTHING)


def _bounds(entry: Entry) -> tuple[Cell, Cell]:
    """Both bounds, rounded outward unless they are one number."""
    lower, upper = entry.lower, entry.upper
    if lower is None:
        return Cell(NOTHING), Cell(NOTHING)
    if upper is None:
        return number(lower, f"{lower:.5g}"), Cell(NOTHING)
    shown = ends(Bounds(lower, upper, "", 0.0))
    return number(lower, shown[0]), number(upper, shown[1])


def _gap(entry: Entry) -> Cell:
    if entry.gap is None or entry.lower is None or entry.upper is None:
        return Cell(NOTHING)
    return number(entry.gap, gap(Bounds(min(entry.lower, entry.upper), entry.upper, "", 0.0)))


SUBJECT = (
    Column("instance", number=False), Column("group", number=False), Column("agents"),
    Column("dimensions seen"),
)  # fmt: skip
USED = (Column("time"), Column("memory"))


def _subject(entry: Entry) -> tuple[Cell, ...]:
    return (text(entry.name), text(entry.group), number(entry.agents), number(entry.rank))


def _used(entry: Entry) -> tuple[Cell, ...]:
    return (_time(entry.seconds), _memory(entry.memory))


# An option: its column, and what an entry has there.
Option = tuple[Column, Callable[[Entry], Cell]]


def _option(name: str, words: str | None = None, *, numeric: bool = False) -> Option:
    return (
        Column(words or name.replace("_", " "), number=numeric),
        lambda entry: _value(entry.options.get(name)),
    )


def _value(value: Any) -> Cell:
    """An option, whatever it is."""
    if value is None or value in ("", {}):
        return Cell(NOTHING)
    if isinstance(value, bool):
        return text("yes" if value else "no")
    if isinstance(value, int | float):
        return Cell(f"{value:.6g}" if isinstance(value, float) else str(value), value)
    return text(short(str(value), LONGEST))


REPETITION: Option = (
    Column("repetition"),
    lambda entry: number(entry.repetition + 1),
)


def _varying(entries: Sequence[Entry], options: Iterable[Option]) -> list[Option]:
    """The options that tell jobs apart; those that are the same for all need no column."""
    return [option for option in options if len({option[1](entry).text for entry in entries}) > 1]


# ------------------------------------------------------------------ the tables


def kinds(batch: Batch) -> Table:
    """One row per kind of job: how many, what became of them, how long they took."""
    planned = Counter(job.kind for job in batch.jobs.values())
    found: dict[str, list[Entry]] = {kind: [] for kind in planned}
    for key_entry in batch.entries:
        found.setdefault(key_entry.kind, []).append(key_entry)
    rows = []
    for kind, entries in found.items():
        done = [entry for entry in entries if entry.done]
        took = Spread.of(entry.seconds for entry in entries)
        memory = max((entry.memory or 0 for entry in entries), default=0)
        cells = (
            text(kind),
            number(planned[kind]),
            number(len(done)),
            number(len(entries) - len(done)),
            number(max(0, planned[kind] - len(entries))),
            _time(None if took is None else took.median),
            _time(None if took is None else took.max),
            _time(sum(entry.seconds for entry in entries) if entries else None),
            _memory(memory or None),
        )
        rows.append(Row(cells))
    return Table(
        "kinds",
        "Kinds of jobs",
        "Tasks, with the oracle or the engine that does them. References and asked oracles are the"
        " jobs of comparisons.",
        (
            Column("kind", number=False), Column("jobs"), Column("done"), Column("no result"),
            Column("missing"), Column("median", "Time"), Column("most", "Time"),
            Column("in all", "Time"), Column("memory, most"),
        ),
        tuple(rows),
    )  # fmt: skip


def certificates(batch: Batch) -> Table:
    """One row per certificate of the greatest gain."""
    entries = batch.of("certify")
    extra = _varying(
        entries,
        [_option("engine"), _option("gap", "gap asked for", numeric=True), REPETITION],
    )
    rows = []
    for entry in entries:
        cells = (
            *_subject(entry),
            *(cell(entry) for _, cell in extra),
            *_bounds(entry),
            _gap(entry),
            _words(entry.level),
            _words(entry.outcome),
            *_used(entry),
        )
        rows.append(Row(cells, entry.group))
    return Table(
        "certify",
        "Certificates",
        "The greatest gain of any rule on each instance: it lies between these bounds.",
        (
            *SUBJECT, *(column for column, _ in extra), Column("at least", "Greatest gain"),
            Column("at most", "Greatest gain"), Column("gap, %", "Greatest gain"),
            Column("level", "Greatest gain", number=False), Column("status", number=False), *USED,
        ),
        tuple(rows),
    )  # fmt: skip


def _eta(entry: Entry) -> Cell:
    fraction, eta = entry.options.get("eta_fraction"), entry.options.get("eta")
    if fraction is not None:
        return Cell(f"{fraction:.4g}{THIN}‖P w_f‖", fraction)
    return Cell(NOTHING) if eta is None else Cell(f"{eta:.4g}", eta)


def _seed(entry: Entry) -> Cell:
    return Cell(NOTHING) if entry.seed is None else Cell(str(entry.seed), entry.seed)


def questions(batch: Batch) -> Table:
    """One row per question to an oracle."""
    entries = batch.of("oracle")
    what: Option = (Column("of", number=False), lambda entry: _words(entry.what))
    extra = _varying(entries, [what, REPETITION])
    rows = []
    for entry in entries:
        cells = (
            *_subject(entry),
            text(entry.oracle),
            _eta(entry),
            _seed(entry),
            *(cell(entry) for _, cell in extra),
            *_bounds(entry),
            _words(entry.outcome),
            *_used(entry),
        )
        rows.append(Row(cells, entry.group, entry.oracle))
    return Table(
        "oracle",
        "Questions to oracles",
        "The greatest density at a given η. Heuristics leave no upper bound.",
        (
            *SUBJECT, Column("oracle", number=False), Column("η"), Column("seed"),
            *(column for column, _ in extra), Column("at least", "Density"),
            Column("at most", "Density"), Column("status", number=False), *USED,
        ),
        tuple(rows),
    )  # fmt: skip


def solutions(batch: Batch) -> Table:
    """One row per run of Algorithm 1."""
    entries, least = batch.of("solve"), ceilings(batch)
    choices = [_option(name) for name in ("grid", "thresholds", "skip")]
    choices += [
        _option("epsilon", "ε", numeric=True),
        _option("epsilon_share", "ε, share of the ceiling", numeric=True),
        (Column("seed"), _seed),
        REPETITION,
    ]
    extra = _varying(entries, choices)
    rows = []
    for entry in entries:
        made, skipped = entry.calls or (0, 0)
        cells = (
            *_subject(entry),
            text(entry.oracle),
            *(cell(entry) for _, cell in extra),
            *_bounds(entry),
            quality(share(entry, least)),
            number(made),
            number(skipped),
            *_used(entry),
        )
        rows.append(Row(cells, entry.group, entry.oracle))
    return Table(
        "solve",
        "Algorithm 1",
        "The gain of the rule that it ends with, its own upper bound for all rules, and the share"
        " of the least upper bound that any job has left: the rule has at least so much of the"
        " greatest gain.",
        (
            *SUBJECT, Column("oracle", number=False), *(column for column, _ in extra),
            Column("gain"), Column("at most"), Column("share, %"), Column("made", "Calls"),
            Column("skipped", "Calls"), *USED,
        ),
        tuple(rows),
    )  # fmt: skip


def failures(batch: Batch) -> Table:
    """Jobs that ended without a result, and why."""
    attempts: Option = (Column("attempts"), lambda entry: number(entry.attempt))
    extra = _varying(
        batch.failed, [(Column("η"), _eta), (Column("seed"), _seed), REPETITION, attempts]
    )
    rows = []
    for entry in batch.failed:
        cells = (
            text(entry.name),
            text(entry.kind),
            *(cell(entry) for _, cell in extra),
            *_used(entry),
            text(ENDS.get(entry.status, entry.status)),
            _words(entry.reason),
        )
        rows.append(Row(cells, entry.group, entry.oracle))
    return Table(
        "no-result",
        "Without a result",
        f"{count(len(rows), 'job')} that ended without a result; --retry failed does them again.",
        (
            Column("instance", number=False), Column("job", number=False),
            *(column for column, _ in extra), *USED,
            Column("what became of it", number=False), Column("why", number=False),
        ),
        tuple(rows),
    )  # fmt: skip


def contradicted(batch: Batch) -> Table:
    """Lower bounds above upper bounds on the same optimum."""
    rows = []
    for found in contradictions(batch):
        lower, upper = found.lower, found.upper
        assert lower.lower is not None
        assert upper.upper is not None
        cells = (
            text(lower.name),
            _words(lower.what),
            _eta(lower),
            number(lower.lower, f"{lower.lower:.9g}"),
            text(lower.kind),
            number(upper.upper, f"{upper.upper:.9g}"),
            text(upper.kind),
        )
        rows.append(Row(cells, lower.group))
    return Table(
        "contradictions",
        "Contradictions",
        "More was found than there should be: each one is a bug.",
        (
            Column("instance", number=False), Column("of", number=False), Column("η"),
            Column("at least", "Found"), Column("by", "Found", number=False),
            Column("at most", "Excluded"), Column("by", "Excluded", number=False),
        ),
        tuple(rows),
    )  # fmt: skip
