"""The tables of a report as data, which the page, the markdown and the spreadsheet share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mipmech.report.words import by_quality, kind, of_group
from mipmech.report.writing import count, duration, ends, gap, percent, points
from mipmech.studies.comparison.results import Bounds, Call, Comparison, Problem, Run
from mipmech.studies.spread import Spread

NOTHING = "–"
# More rows than this make a page that no browser likes; the spreadsheet has all.
MOST_ROWS = 2000


@dataclass(frozen=True)
class Cell:
    """An entry.

    text, detail : what stands there; the detail is the spread around it
    value : what it is sorted by; None comes last
    share : a quality, drawn as a bar
    box : a spread of qualities, drawn as a box with whiskers
    """

    text: str
    value: float | str | None = None
    detail: str = ""
    share: float | None = None
    box: Spread | None = None

    @property
    def words(self) -> str:
        """The whole text."""
        return f"{self.text} ({self.detail})" if self.detail else self.text


@dataclass(frozen=True)
class Column:
    """A column.

    above : a heading over several columns
    number : whether it holds numbers
    oracle : the oracle that it tells of, if it is only one
    """

    name: str
    above: str = ""
    number: bool = True
    oracle: str = ""


@dataclass(frozen=True)
class Row:
    """A row, and what it can be chosen by."""

    cells: tuple[Cell, ...]
    group: str = ""
    oracle: str = ""


@dataclass(frozen=True)
class Table:
    """A table: its short name, its title, what it says, and its entries."""

    key: str
    title: str
    note: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...] = field(repr=False)


def tables(comparison: Comparison) -> list[Table]:
    """All tables that have anything in them, the gravest first."""
    found = [
        violations(comparison),
        oracles(comparison),
        groups(comparison),
        instances(comparison),
        questions(comparison),
        failures(comparison),
    ]
    return [table for table in found if table.rows]


def capped(table: Table) -> Table:
    """The table, or its beginning with a note if it is too long for a page."""
    if len(table.rows) <= MOST_ROWS:
        return table
    note = f"{table.note} Only the first {MOST_ROWS:,} of {len(table.rows):,} rows are shown here."
    return replace(table, note=note, rows=table.rows[:MOST_ROWS])


def text(value: str) -> Cell:
    """A text, sorted without regard to case."""
    return Cell(value, value.casefold())


def number(value: float | None, shown: str = "") -> Cell:
    """A number."""
    return Cell(NOTHING) if value is None else Cell(shown or f"{value:,}", value)


def quality(value: float | None) -> Cell:
    """A share of the optimum."""
    return Cell(NOTHING) if value is None else Cell(percent(value), value, share=value)


def _spread(found: Spread | None) -> Cell:
    """The median of some shares, with least and greatest."""
    if found is None:
        return Cell(NOTHING)
    reach = f"{percent(found.min)}–{percent(found.max)}"
    detail = reach if percent(found.min) != percent(found.max) else ""
    return Cell(percent(found.median), found.median, detail, share=found.median)


def _over_seeds(shares: list[float] | None) -> Cell:
    return _spread(Spread.of(shares or []))


def _differ(found: Spread | None) -> Cell:
    if found is None:
        return Cell(NOTHING)
    return Cell(points(found.median), found.median, f"≤ {points(found.max)}")


def _time(value: float | None) -> Cell:
    return Cell(NOTHING) if value is None else Cell(duration(value), value)


QUALITY = "Quality of density, %"
GAIN = "Gain, %"


def _qualities(density: Spread | None) -> list[Cell]:
    """Worst, quartiles, median and best, and a box for all five."""
    if density is None:
        return [Cell(NOTHING)] * 6
    parts = (density.min, density.q1, density.median, density.q3, density.max)
    boxed = Cell("", density.median, box=density)
    return [boxed, *(quality(part) for part in parts)]


FIVE = tuple(
    Column(name, QUALITY)
    for name in ("spread", "worst", "lower quartile", "median", "upper quartile", "best")
)


def oracles(comparison: Comparison) -> Table:
    """One row per oracle, best first."""
    ranked = [entry.summary.oracle for entry in by_quality(comparison, comparison.oracles)]
    order = [*ranked, *(name for name in comparison.oracles if name not in ranked)]
    rows = []
    for name in order:
        found = comparison.summary(name)
        gain, two, seeds, took = found.gain, found.gain_two, found.seed_spread, found.seconds
        cells = [
            text(name),
            text(kind(comparison, name)),
            *_qualities(found.density),
            quality(found.reached) if found.density else Cell(NOTHING),
            _spread(found.unknown),
            _spread(gain),
            _spread(two),
            _differ(seeds),
            _time(None if took is None else took.median),
            _time(None if took is None else took.max),
            number(found.calls),
            number(found.failures),
        ]
        rows.append(Row(tuple(cells), oracle=name))
    return Table(
        "oracles",
        "Oracles",
        "Over all instances, values of η and seeds whose optimum is known, best first. Where it is"
        " not, the best that any oracle found is taken instead. Gain: what Algorithm 1 ends with,"
        " median and worst to best. Seeds: by how many percentage points they differ on the same"
        " question, at the median and at most.",
        (
            Column("oracle", number=False), Column("kind", number=False), *FIVE,
            Column("calls ≥\u00a099", QUALITY), Column("optimum unknown, %"),
            Column("best threshold", GAIN), Column("the paper's two", GAIN),
            Column("seeds differ by"),
            Column("median", "Time of a call"), Column("worst", "Time of a call"),
            Column("calls"), Column("failures"),
        ),
        tuple(rows),
    )  # fmt: skip


def groups(comparison: Comparison) -> Table:
    """One row per group and oracle."""
    rows = []
    for group in comparison.groups:
        problems = of_group(comparison, group)
        for name in comparison.oracles:
            if not comparison.runs_of(name, problems):
                continue
            found = comparison.summary(name, problems)
            gain, took = found.gain, found.seconds
            cells = [
                text(group),
                text(name),
                number(len(problems)),
                *_qualities(found.density),
                quality(found.reached) if found.density else Cell(NOTHING),
                _spread(gain),
                _time(None if took is None else took.median),
                _time(None if took is None else took.max),
                number(found.failures),
            ]
            rows.append(Row(tuple(cells), group, name))
    return Table(
        "groups",
        "By group",
        "The same, group by group.",
        (
            Column("group", number=False), Column("oracle", number=False), Column("instances"),
            *FIVE, Column("calls ≥\u00a099", QUALITY),
            Column("gain, %"),
            Column("median", "Time of a call"), Column("worst", "Time of a call"),
            Column("failures"),
        ),
        tuple(rows),
    )  # fmt: skip


def _bounds(bounds: Bounds) -> list[Cell]:
    lower, upper = ends(bounds)
    return [
        number(bounds.lower, lower),
        number(bounds.upper, upper),
        text(bounds.level),
        number(bounds.gap, gap(bounds)),
    ]


def _reference(what: str) -> tuple[Column, ...]:
    return (
        Column("at least", what), Column("at most", what), Column("level", what, number=False),
        Column("gap, %", what),
    )  # fmt: skip


def instances(comparison: Comparison) -> Table:
    """One row per instance: the greatest gain of any rule, and each oracle's share of it."""
    shares = [comparison.gains(name, known=False) for name in comparison.oracles]
    rows = []
    for problem in comparison.problems:
        cells = [
            text(problem.name),
            text(problem.group),
            number(problem.agents),
            number(problem.rank),
            *_bounds(problem.gain),
            *(_over_seeds(found.get(problem.digest)) for found in shares),
        ]
        rows.append(Row(tuple(cells), problem.group))
    return Table(
        "instances",
        "By instance: gain",
        "The greatest gain of any rule, and the share of its upper bound with which each oracle"
        " ends inside Algorithm 1, taking the best threshold: median over the seeds, least to"
        " greatest.",
        (
            Column("instance", number=False), Column("group", number=False), Column("agents"),
            Column("dimensions seen"), *_reference("Greatest gain"),
            *(Column(name, "Share of it, %", oracle=name) for name in comparison.oracles),
        ),
        tuple(rows),
    )  # fmt: skip


def questions(comparison: Comparison) -> Table:
    """One row per instance and η: the greatest density there, and each oracle's share of it."""
    names = [name for name in comparison.oracles if not kind(comparison, name).endswith("soft")]
    shares = [comparison.qualities(name, known=False) for name in names]
    rows = []
    for problem, fraction, bounds in comparison.questions if names else ():
        cells = [
            text(problem.name),
            text(problem.group),
            number(fraction, f"{fraction:.4g}"),
            *_bounds(bounds),
            *(_over_seeds(found.get((problem.digest, fraction))) for found in shares),
        ]
        rows.append(Row(tuple(cells), problem.group))
    return Table(
        "questions",
        "By question: density",
        "The greatest density at each η (as a fraction of ‖P w_f‖; at 1 there is nothing to"
        " choose), and the share of its upper bound that each oracle reached: median over the"
        " seeds, least to greatest.",
        (
            Column("instance", number=False), Column("group", number=False), Column("η, fraction"),
            *_reference("Greatest density"),
            *(Column(name, "Share of it, %", oracle=name) for name in names),
        ),
        tuple(rows),
    )  # fmt: skip


def violations(comparison: Comparison) -> Table:
    """Values above the upper bound of their reference."""
    rows = []
    for found in comparison.violations:
        problem = comparison.by_digest[found.instance]
        cells = (
            text(problem.name), text(found.oracle), text(found.what),
            number(found.value, f"{found.value:.9g}"), number(found.upper, f"{found.upper:.9g}"),
        )  # fmt: skip
        rows.append(Row(cells, problem.group, found.oracle))
    names = ("instance", "oracle", "what")
    return Table(
        "violations",
        "Violations",
        "Values above a bound that was taken as proved: each one is a bug.",
        (*(Column(name, number=False) for name in names), Column("value"), Column("at most")),
        tuple(rows),
    )


def failures(comparison: Comparison) -> Table:
    """Runs without an answer, and why."""
    rows = []
    for run in comparison.runs:
        if run.error is not None:
            problem = comparison.by_digest[run.instance]
            cells = (text(problem.name), text(run.oracle), _seed(run.seed), text(run.error))
            rows.append(Row(cells, problem.group, run.oracle))
    return Table(
        "failures",
        "Failures",
        f"{count(len(rows), 'run')} without an answer.",
        (
            Column("instance", number=False), Column("oracle", number=False), Column("seed"),
            Column("why", number=False),
        ),
        tuple(rows),
    )  # fmt: skip


def _seed(seed: int | None) -> Cell:
    return Cell(NOTHING) if seed is None else Cell(str(seed), seed)


# ------------------------------------------------------------------- every call

CALLS = (
    "instance", "group", "agents", "rank", "oracle", "seed", "eta_fraction", "eta", "soft",
    "chosen", "lower",
    "reference_lower", "reference_upper", "level", "quality", "upper", "status", "stop",
    "seconds", "gain", "gain_two", "gain_share", "digest",
)  # fmt: skip
Entry = str | int | float | None


def calls(comparison: Comparison) -> list[tuple[Entry, ...]]:
    """One row per call, with the columns of `CALLS`; a run without calls has one row that says so.

    Soft density has no reference, so its reference and quality are empty. Where nothing was there
    to choose (``chosen`` is 0), the quality enters no summary.
    """
    rows = []
    for run in comparison.runs:
        problem = comparison.by_digest[run.instance]
        asked: Sequence[Call | None] = run.calls or (None,)
        rows += [_call(comparison, problem, run, call) for call in asked]
    return rows


def _call(
    comparison: Comparison, problem: Problem, run: Run, call: Call | None
) -> tuple[Entry, ...]:
    head = (problem.name, problem.group, problem.agents, problem.rank, run.oracle, run.seed)
    if call is None:
        empty = (None,) * (len(CALLS) - len(head) - 7)
        why = run.error or "no calls"
        return (*head, *empty, "failed", why, run.seconds, None, None, None, problem.digest)
    place = list(comparison.settings["eta_fractions"]).index(call.eta_fraction)
    reference: tuple[Entry, ...] = (None, None, None, None)
    if not call.soft:
        bounds = problem.densities[place]
        reference = (bounds.lower, bounds.upper, bounds.level, bounds.share(call.lower))
    return (
        *head, call.eta_fraction, call.eta, int(call.soft), int(call.chosen), call.lower,
        *reference, call.upper, call.status, call.stop,
        call.seconds, call.gain, call.gain_two, problem.gain.share(call.gain), problem.digest,
    )  # fmt: skip
