"""Tables as data, which the page and the markdown share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mipmech.studies.batch.records import Subject
from mipmech.studies.spread import Spread
from mipmech.text import above as above_of
from mipmech.text import duration, ends, gap_percent, percent, relative_gap, size

NOTHING = "–"
# A heuristic that stays below this share of the optimum has failed.
ENOUGH = 0.8
# More rows than this make a page that no browser likes; the spreadsheet has all.
MOST_ROWS = 2000
# Groups of agents with a column of their own.
MOST_RATES = 8


@dataclass(frozen=True)
class Cell:
    """An entry.

    text, detail : what stands there; the detail is the spread around it
    value : what it is sorted by; None comes last
    share : a quality, drawn as a bar
    box : a spread of qualities, drawn as a box with whiskers
    """

    text: str = NOTHING
    value: float | str | None = None
    detail: str = ""
    share: float | None = None
    box: Spread | None = None

    @property
    def words(self) -> str:
        """Text and detail."""
        return f"{self.text} ({self.detail})" if self.detail else self.text


@dataclass(frozen=True)
class Column:
    """A column.

    cell : its entry for the object of a row
    above : a heading over several columns
    number : whether it holds numbers
    oracle : the only oracle that it is about, if so
    optional : left out where all rows have the same
    """

    name: str
    cell: Callable[[Any], Cell] = field(repr=False)
    above: str = ""
    number: bool = True
    oracle: str = ""
    optional: bool = False


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


def table(
    key: str,
    title: str,
    note: str,
    things: Iterable[Any],
    columns: Iterable[Column],
    chosen_by: Callable[[Any], tuple[str, str]] = lambda _: ("", ""),
) -> Table:
    """A table with a row for each thing, or its beginning if it is too long for a page.

    Columns in which nothing stands are left out.

    chosen_by : the group and the oracle of a thing
    """
    told = list(things)

    def told_by(column: Column) -> bool:
        found = {column.cell(thing).text for thing in told}
        return len(found) > 1 if column.optional else found != {NOTHING}

    kept = tuple(filter(told_by, columns))
    if len(told) > MOST_ROWS:
        note += f" Only the first {MOST_ROWS:,} of {len(told):,} rows are shown here."
    rows = (
        Row(tuple(column.cell(thing) for column in kept), *chosen_by(thing))
        for thing in told[:MOST_ROWS]
    )
    return Table(key, title, note.strip(), kept, tuple(rows))


# ------------------------------------------------------------------ cells


def text(value: str | None) -> Cell:
    """A text, sorted without regard to case."""
    return Cell(value, value.casefold()) if value else Cell()


def number(value: float | None, shown: str = "") -> Cell:
    """A number."""
    return Cell() if value is None else Cell(shown or f"{value:,}", value)


def whole(value: int | None) -> Cell:
    """A number that is a name, such as a seed."""
    return number(value, str(value))


def exact(value: float | None) -> Cell:
    """A number whose last digits matter."""
    return number(value, "" if value is None else f"{value:.9g}")


def quality(value: float | None) -> Cell:
    """A share of the optimum."""
    return Cell() if value is None else Cell(percent(value), value, share=value)


def time(value: float | None) -> Cell:
    """A time."""
    return Cell() if value is None else Cell(duration(value), value)


def memory(value: int | None) -> Cell:
    """An amount of memory."""
    return Cell() if value is None else Cell(size(value), value)


def spread(found: Spread | None) -> Cell:
    """The median of some shares, with least and greatest."""
    if found is None:
        return Cell()
    least, most = percent(found.min), percent(found.max)
    detail = f"{least}–{most}" if least != most else ""
    return Cell(percent(found.median), found.median, detail, share=found.median)


# ------------------------------------------------------------------ columns


def words(name: str, get: Callable[[Any], str | None], **more: Any) -> Column:
    """A column of texts."""
    return Column(name, lambda thing: text(get(thing)), number=False, **more)


def subject(get: Callable[[Any], Subject]) -> list[Column]:
    """The columns that say which instance it is."""
    return [
        words("instance", lambda thing: get(thing).name),
        words("group", lambda thing: get(thing).group),
        Column("agents", lambda thing: number(get(thing).agents)),
        Column("dimensions seen", lambda thing: number(get(thing).rank)),
    ]


def bounds(get: Callable[[Any], Any], above: str) -> list[Column]:
    """Lower and upper bound, rounded outward unless they are one number; gap and level.

    get : something with ``lower`` and ``upper`` (each may be None) and ``level``
    """

    def shown(thing: Any) -> tuple[str, str]:
        lower, upper = get(thing).lower, get(thing).upper
        if lower is None:
            return "", "" if upper is None else above_of(upper)
        return (f"{lower:.5g}", "") if upper is None else ends(lower, upper)

    def gap(thing: Any) -> Cell:
        lower, upper = get(thing).lower, get(thing).upper
        if lower is None or upper is None:
            return Cell()
        if lower < 0:  # a rule that does harm is as far from the optimum as none
            return number(1.0, "100")
        return number(relative_gap(lower, upper), gap_percent(lower, upper))

    return [
        Column("at least", lambda thing: number(get(thing).lower, shown(thing)[0]), above),
        Column("at most", lambda thing: number(get(thing).upper, shown(thing)[1]), above),
        Column("gap, %", gap, above),
        words("level", lambda thing: get(thing).level, above=above),
    ]


def five(get: Callable[[Any], Spread | None], above: str) -> list[Column]:
    """A box, and worst, quartiles, median and best."""

    def box(thing: Any) -> Cell:
        found = get(thing)
        return Cell() if found is None else Cell("", found.median, box=found)

    def part(name: str) -> Callable[[Any], Cell]:
        return lambda thing: quality(getattr(get(thing), name, None))

    parts = {
        "worst": "min", "lower quartile": "q1", "median": "median", "upper quartile": "q3",
        "best": "max",
    }  # fmt: skip
    figures = [Column(name, part(which), above) for name, which in parts.items()]
    return [Column("spread", box, above), *figures]


def part(value: Any) -> Cell:
    """A share of the people, in percent; nothing for what is no share."""
    if not isinstance(value, float) or not 0 <= value <= 1:
        return Cell()
    return number(value, f"{100 * value:.1f}")


def rates(
    things: Iterable[Any], get: Callable[[Any], Mapping[tuple[str, str], float]]
) -> list[Column]:
    """The shares accepted by group: a column for each, or least and greatest if they are many.

    get : grouping and group -> share
    """
    told = list(things)
    groups = list(dict.fromkeys(key for thing in told for key in get(thing)))

    def one(key: tuple[str, str]) -> Column:
        name, label = key
        return Column(label, lambda thing: part(get(thing).get(key)), f"Accepted by {name}, %")

    if len(groups) <= MOST_RATES:
        return [one(key) for key in groups]

    def end(choose: Callable[[Iterable[float]], float]) -> Callable[[Any], Cell]:
        return lambda thing: part(choose(get(thing).values())) if get(thing) else Cell()

    over = "Accepted by group, %"
    return [Column("least", end(min), over), Column("most", end(max), over)]


def times(get: Callable[[Any], Spread | None], above: str) -> list[Column]:
    """Median and longest."""
    return [
        Column("median", lambda thing: time(getattr(get(thing), "median", None)), above),
        Column("longest", lambda thing: time(getattr(get(thing), "max", None)), above),
    ]


def only(*tables: Table) -> list[Table]:
    """Those that have anything in them."""
    return [entry for entry in tables if entry.rows]
