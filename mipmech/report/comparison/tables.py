"""The tables of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mipmech.report.comparison.summary import by_quality, kind, of_group
from mipmech.report.kit import tabular as kit
from mipmech.report.kit.phrases import rates_of
from mipmech.report.kit.tabular import Cell, Column, Table, number, table, words
from mipmech.studies.batch.asking import Reference
from mipmech.studies.comparison.results import Comparison, OracleSummary, Problem
from mipmech.studies.spread import Spread
from mipmech.text import count, points

QUALITY = "Quality of density, %"
GAIN = "Gain, %"


def tables(comparison: Comparison) -> list[Table]:
    """The tables that sum up."""
    return kit.only(violations(comparison), oracles(comparison), groups(comparison))


def details(comparison: Comparison) -> list[Table]:
    """The tables to look things up in."""
    return kit.only(instances(comparison), questions(comparison), failures(comparison))


class Standing(NamedTuple):
    """The results of an oracle in a group, or over all."""

    summary: OracleSummary
    group: str = ""
    instances: int = 0


SUMMED = [
    *kit.five(lambda row: row.summary.density, QUALITY),
    Column(
        "calls ≥\u00a099",
        lambda row: kit.quality(row.summary.reached if row.summary.density else None),
        QUALITY,
    ),
]
SPENT = kit.times(lambda row: row.summary.seconds, "Time of a call")
FAILED = Column("failures", lambda row: number(row.summary.failures))


def oracles(comparison: Comparison) -> Table:
    """One row per oracle, best first."""
    ranked = [entry.summary.oracle for entry in by_quality(comparison, comparison.oracles)]
    order = [*ranked, *(name for name in comparison.oracles if name not in ranked)]

    def seeds(row: Standing) -> Cell:
        found = row.summary.seed_spread
        if found is None:
            return Cell()
        return Cell(points(found.median), found.median, f"≤ {points(found.max)}")

    return table(
        "oracles",
        "Oracles",
        "Over all questions whose optimum is known, best first. Optimum unknown: held against the"
        " best answer found. Seeds: percentage points on the same question.",
        (Standing(comparison.summary(name)) for name in order),
        [
            words("oracle", lambda row: row.summary.oracle),
            words("kind", lambda row: kind(comparison, row.summary.oracle)),
            *SUMMED,
            Column("optimum unknown, %", lambda row: kit.spread(row.summary.unknown)),
            Column("best threshold", lambda row: kit.spread(row.summary.gain), GAIN),
            Column("the paper's two", lambda row: kit.spread(row.summary.gain_two), GAIN),
            Column("seeds differ by", seeds),
            *SPENT,
            Column("calls", lambda row: number(row.summary.calls)),
            FAILED,
        ],
        lambda row: ("", row.summary.oracle),
    )


def groups(comparison: Comparison) -> Table:
    """One row per group and oracle."""
    parts = {group: of_group(comparison, group) for group in comparison.groups}
    rows = [
        Standing(comparison.summary(name, problems), group, len(problems))
        for group, problems in parts.items()
        for name in comparison.oracles
        if comparison.runs_of(name, problems)
    ]
    return table(
        "groups",
        "By group",
        "",
        rows,
        [
            words("group", lambda row: row.group),
            words("oracle", lambda row: row.summary.oracle),
            Column("instances", lambda row: number(row.instances)),
            *SUMMED,
            Column("gain, %", lambda row: kit.spread(row.summary.gain)),
            *SPENT,
            FAILED,
        ],
        lambda row: (row.group, row.summary.oracle),
    )


def _over_seeds(name: str, shares: dict[Any, list[float]], of: Any) -> Column:
    """The shares of an oracle, question by question."""
    return Column(
        name,
        lambda row: kit.spread(Spread.of(shares.get(of(row), []))),
        "Share of it, %",
        oracle=name,
    )


def instances(comparison: Comparison) -> Table:
    """One row per instance: the greatest gain of any rule, and each oracle's share of it."""
    given = comparison.settings.requirements

    def rates(problem: Problem) -> dict[tuple[str, str], float]:
        return rates_of(given, problem.gain.rates)

    return table(
        "instances",
        "By instance: gain",
        "The greatest gain of any rule, and the share of its upper bound that each oracle ends"
        " with inside Algorithm 1: median over the seeds, least to greatest."
        + ("" if given is None else " Of rules that meet the requirements; infeasible: none does."),
        comparison.problems,
        [
            *kit.subject(lambda problem: problem),
            *kit.bounds(lambda problem: problem.gain, "Greatest gain"),
            words("outcome", lambda problem: "infeasible" if problem.gain.infeasible else None),
            Column(
                "accepted, %", lambda problem: kit.part(problem.gain.accepted), "Best rule known"
            ),
            *kit.rates(comparison.problems, rates),
            *(
                _over_seeds(name, comparison.gains(name, known=False), lambda row: row.digest)
                for name in comparison.oracles
            ),
        ],
        lambda problem: (problem.group, ""),
    )


class Question(NamedTuple):
    """An instance, η as a fraction of ‖P w_f‖, and what is known of the greatest density there."""

    problem: Problem
    fraction: float
    reference: Reference


def questions(comparison: Comparison) -> Table:
    """One row per instance and η: the greatest density there, and each oracle's share of it."""
    names = [name for name in comparison.oracles if not kind(comparison, name).endswith("soft")]
    asked: Sequence[Any] = comparison.questions if names else ()
    return table(
        "questions",
        "By question: density",
        "The greatest density at each η (a fraction of ‖P w_f‖), and the share of its upper bound"
        " that each oracle reached: median over the seeds, least to greatest.",
        (Question(*question) for question in asked),
        [
            words("instance", lambda row: row.problem.name),
            words("group", lambda row: row.problem.group),
            Column("η, fraction", lambda row: number(row.fraction, f"{row.fraction:.4g}")),
            *kit.bounds(lambda row: row.reference, "Greatest density"),
            *(
                _over_seeds(
                    name,
                    comparison.qualities(name, known=False),
                    lambda row: (row.problem.digest, row.fraction),
                )
                for name in names
            ),
        ],
        lambda row: (row.problem.group, ""),
    )


def violations(comparison: Comparison) -> Table:
    """Values above the upper bound of their reference."""
    of = comparison.by_digest
    return table(
        "violations",
        "Violations",
        "Values above a proved bound: each one is a bug.",
        comparison.violations,
        [
            words("instance", lambda found: of[found.instance].name),
            words("oracle", lambda found: found.oracle),
            words("what", lambda found: found.what),
            Column("value", lambda found: kit.exact(found.value)),
            Column("at most", lambda found: kit.exact(found.upper)),
        ],
        lambda found: (of[found.instance].group, found.oracle),
    )


def failures(comparison: Comparison) -> Table:
    """Runs without an answer, and why."""
    of = comparison.by_digest
    failed = [run for run in comparison.runs if run.error is not None]
    return table(
        "failures",
        "Failures",
        f"{count(len(failed), 'run')} without an answer.",
        failed,
        [
            words("instance", lambda run: of[run.instance].name),
            words("oracle", lambda run: run.oracle),
            Column("seed", lambda run: kit.whole(run.seed)),
            words("why", lambda run: run.error),
        ],
        lambda run: (of[run.instance].group, run.oracle),
    )
