"""The tables of a batch."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from mipmech.report.batch.summary import ENDS, ceilings, contradictions, labels, share
from mipmech.report.kit import tabular as kit
from mipmech.report.kit.phrases import key_of, rates_of
from mipmech.report.kit.tabular import Cell, Column, Table, number, table, words
from mipmech.report.reading import Batch, calls_of
from mipmech.studies.batch.records import Record
from mipmech.studies.spread import Spread
from mipmech.text import THIN, clean, count, short

# Cells of options that are longer are cut.
LONGEST = 80
LONGEST_RULE = 300


def tables(batch: Batch) -> list[Table]:
    """The tables that sum up."""
    return kit.only(contradicted(batch), kinds(batch))


def details(batch: Batch) -> list[Table]:
    """The tables to look things up in."""
    return kit.only(
        failures(batch), certificates(batch), questions(batch), solutions(batch), rules(batch)
    )


# ------------------------------------------------------------------ columns


def _option(name: str, words: str = "", numeric: bool = False) -> Column:
    return Column(
        words or name, lambda entry: _value(entry.options.get(name)), number=numeric, optional=True
    )


def _value(value: Any) -> Cell:
    """An option, whatever it is."""
    if value is None or value in ("", {}):
        return Cell()
    if isinstance(value, bool):
        return kit.text("yes" if value else "no")
    if isinstance(value, int | float):
        return Cell(f"{value:.6g}" if isinstance(value, float) else str(value), value)
    return kit.text(short(str(value), LONGEST))


def _eta(entry: Record) -> Cell:
    fraction, eta = entry.options.get("eta_fraction"), entry.options.get("eta")
    if fraction is not None:
        return Cell(f"{fraction:.4g}{THIN}‖P w_f‖", fraction)
    return number(eta, "" if eta is None else f"{eta:.4g}")


def _chosen_by(entry: Record) -> tuple[str, str]:
    return entry.instance.group, entry.oracle


SUBJECT = kit.subject(lambda entry: entry.instance)
GREATEST = kit.bounds(lambda entry: entry.bounds, "Greatest gain")
DENSITY = kit.bounds(lambda entry: entry.bounds, "Density")[:2]
ORACLE = words("oracle", lambda entry: entry.oracle)
STATUS = words("status", lambda entry: entry.bounds.status)
SEED = Column("seed", lambda entry: kit.whole(entry.seed))
REPETITION = Column("repetition", lambda entry: number(entry.repetition + 1), optional=True)
USED = [
    Column("time", lambda entry: kit.time(entry.seconds)),
    Column("memory", lambda entry: kit.memory(entry.memory)),
]


# ------------------------------------------------------------------ the tables


class Kind(NamedTuple):
    """A kind of job: how many the plan has, and what became of them."""

    name: str
    planned: int
    entries: list[Record]
    took: Spread | None

    @property
    def done(self) -> int:
        """How many have a result."""
        return sum(entry.done for entry in self.entries)


def kinds(batch: Batch) -> Table:
    """One row per kind of job: how many, what became of them, how long they took."""
    planned = Counter(job.kind for job in batch.jobs.values())
    found: dict[str, list[Record]] = {kind: [] for kind in planned}
    for entry in batch.entries:
        found.setdefault(entry.kind, []).append(entry)
    return table(
        "kinds",
        "Kinds of jobs",
        "Tasks, with the oracle or the engine that does them.",
        (
            Kind(name, planned[name], entries, Spread.of(entry.seconds for entry in entries))
            for name, entries in found.items()
        ),
        [
            words("kind", lambda kind: kind.name),
            Column("jobs", lambda kind: number(kind.planned)),
            Column("done", lambda kind: number(kind.done)),
            Column("no result", lambda kind: number(len(kind.entries) - kind.done)),
            Column("missing", lambda kind: number(max(0, kind.planned - len(kind.entries)))),
            *kit.times(lambda kind: kind.took, "Time"),
            Column("in all", lambda kind: kit.time(sum(e.seconds for e in kind.entries)), "Time"),
            Column(
                "memory, most",
                lambda kind: kit.memory(max((e.memory or 0 for e in kind.entries), default=None)),
            ),
        ],
    )


def _required(batch: Batch) -> Column:
    """Which requirements: only if jobs differ in them."""
    names = labels(batch)
    return words("requirements", lambda entry: names.get(key_of(entry.requirements)), optional=True)


def certificates(batch: Batch) -> Table:
    """One row per certificate of the greatest gain."""
    extra = [_option("engine"), _option("gap", "gap asked for", True), REPETITION]
    extra.append(_required(batch))
    return table(
        "certify",
        "Certificates",
        "The greatest gain of any rule lies between these bounds."
        + (
            " Where no rule meets the requirements, there are none: infeasible."
            if any(entry.infeasible for entry in batch.of("certify"))
            else ""
        ),
        batch.of("certify"),
        [*SUBJECT, *extra, *GREATEST, STATUS, *USED],
        _chosen_by,
    )


def questions(batch: Batch) -> Table:
    """One row per question to an oracle."""
    what = words("of", lambda entry: entry.bounds.what, optional=True)
    return table(
        "oracle",
        "Questions to oracles",
        "The greatest density at a given η; heuristics leave no upper bound.",
        batch.of("oracle"),
        [
            *SUBJECT,
            ORACLE,
            Column("η", _eta),
            SEED,
            what,
            REPETITION,
            _required(batch),
            *DENSITY,
            STATUS,
            *USED,
        ],
        _chosen_by,
    )


def solutions(batch: Batch) -> Table:
    """One row per run of Algorithm 1."""
    least = ceilings(batch)
    choices = [_option(name) for name in ("grid", "thresholds", "skip")]
    choices += [
        _option("epsilon", "ε", True),
        _option("epsilon_share", "ε, share of the ceiling", True),
        Column("seed", SEED.cell, optional=True),
        REPETITION,
        _required(batch),
    ]
    return table(
        "solve",
        "Algorithm 1",
        "The gain of the rule that it ends with, its own upper bound for all rules, and at least"
        " which share of the greatest gain that is.",
        batch.of("solve"),
        [
            *SUBJECT,
            ORACLE,
            *choices,
            Column("gain", GREATEST[0].cell),
            Column("at most", GREATEST[1].cell),
            Column("share, %", lambda entry: kit.quality(share(entry, least))),
            Column("made", lambda entry: number(calls_of(entry)["made"]), "Calls"),
            Column("skipped", lambda entry: number(calls_of(entry)["skipped"]), "Calls"),
            *USED,
        ],
        _chosen_by,
    )


def rules(batch: Batch) -> Table:
    """One row per rule that a certificate or Algorithm 1 ended with, and what it does."""
    entries = [entry for entry in batch.entries if entry.done and rule_of(entry)]
    return table(
        "rules",
        "Rules",
        "Who scores so much is accepted: in the units that people know, and in few digits. How many"
        " move for the rule, and how many are accepted in the end.",
        entries,
        [
            *SUBJECT[:2],
            words("job", lambda entry: entry.kind),
            REPETITION,
            _required(batch),
            Column("gain", GREATEST[0].cell),
            Column("move, %", lambda entry: _part(entry, "moving_share")),
            Column("accepted, %", lambda entry: _part(entry, "accepted_share")),
            *kit.rates(entries, _rates),
            words("accept if", rule_of),
        ],
        _chosen_by,
    )


def rule_of(entry: Record) -> str | None:
    """The rule as it was printed; None where there is none, or something else."""
    printed = (entry.result or {}).get("printed")
    found = printed.get("text") if isinstance(printed, dict) else None
    return short(clean(found), LONGEST_RULE) if isinstance(found, str) else None


def _part(entry: Record, name: str) -> Cell:
    """A share of the people, in percent."""
    return kit.part((entry.result or {}).get(name))


def _rates(entry: Record) -> dict[tuple[str, str], float]:
    """The share accepted in each group, if requirements speak of it."""
    return rates_of(entry.requirements, (entry.result or {}).get("rates"))


def failures(batch: Batch) -> Table:
    """Jobs that ended without a result, and why."""
    return table(
        "no-result",
        "Without a result",
        f"{count(len(batch.failed), 'job')} without a result; --retry failed does them again.",
        batch.failed,
        [
            words("instance", lambda entry: entry.name),
            words("job", lambda entry: entry.kind),
            Column("η", _eta, optional=True),
            Column("seed", SEED.cell, optional=True),
            REPETITION,
            Column("attempts", lambda entry: number(entry.attempt), optional=True),
            *USED,
            words("what became of it", lambda entry: ENDS.get(entry.status, entry.status)),
            words("why", lambda entry: entry.reason),
        ],
        _chosen_by,
    )


def contradicted(batch: Batch) -> Table:
    """Lower bounds above upper bounds on the same optimum."""
    return table(
        "contradictions",
        "Contradictions",
        "More was found than there should be: each one is a bug.",
        contradictions(batch),
        [
            words("instance", lambda pair: pair[0].name),
            words("of", lambda pair: pair[0].bounds.what),
            Column("η", lambda pair: _eta(pair[0])),
            Column("at least", lambda pair: kit.exact(pair[0].lower), "Found"),
            words("by", lambda pair: pair[0].kind, above="Found"),
            Column("at most", lambda pair: kit.exact(pair[1].upper), "Excluded"),
            words("by", lambda pair: pair[1].kind, above="Excluded"),
        ],
        lambda pair: (pair[0].instance.group, ""),
    )
