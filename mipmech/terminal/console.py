"""What all that is printed at a terminal shares: entries, tables, rules in words."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from mipmech.text import above, below, printable

# More terms of a rule than this are cut short with an ellipsis.
MOST_TERMS = 6
# Terminals are taken to be at least as wide; some claim to have no columns at all.
NARROWEST = 20
# A column of text is not squeezed into less than this.
WORDS = 14


class PlainConsole(Console):
    """Shows texts as they are: no markup is read in them, and no line of them acts or is endless.

    Whatever commands print in words goes through `render`, also the cells of tables.
    """

    def __init__(self) -> None:
        super().__init__(highlight=False, markup=False, emoji=False)
        self.width = max(self.width, NARROWEST)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render an object; of texts, every line as `printable` gives it."""
        if isinstance(renderable, str):
            renderable = Text(renderable)
        if isinstance(renderable, Text):
            shown = "\n".join(map(printable, renderable.plain.split("\n")))
            if shown != renderable.plain:
                renderable = renderable.blank_copy(shown)
        return super().render(renderable, options)


@contextmanager
def in_one_piece() -> Iterator[Console]:
    """A console whose text goes out at once: a reader that leaves early is met where expected."""
    console = PlainConsole()
    with console.capture() as text:
        yield console
    sys.stdout.write(text.get())


def entry(key: str, value: str, width: int) -> str:
    """A key and its value, wrapped under itself: what a file says never begins a line."""
    return textwrap.fill(
        printable(value), width, initial_indent=f"  {printable(key):<10} ",
        subsequent_indent=" " * 13, break_on_hyphens=False,
    )  # fmt: skip


def tell_entries(console: Console, entries: dict[str, str]) -> None:
    """Keys and their values, one below the other."""
    for key, value in entries.items():
        console.print(Text(entry(key, value, console.width)))


def tell_warnings(console: Console, warnings: Sequence[str]) -> None:
    """Sentences that nobody should overlook."""
    for sentence in warnings:
        console.print()
        tell_line(console, f"Warning: {sentence}.")


def tell_heading(console: Console, text: str) -> None:
    """A heading."""
    console.print(Text(printable(text), style="bold"))


def tell_line(console: Console, text: str) -> None:
    """A sentence, on as many lines as the terminal needs."""
    console.print(Text(printable(text)))


def tell_picture(console: Console, what: str, plot: Path | None, no_picture: str | None) -> None:
    """Where the picture is, or why there is none."""
    if no_picture is not None:
        tell_line(console, f"No picture: {no_picture}.")
    elif plot is not None:
        tell_line(console, f"Picture of {what}: {plot}")


def tell_table(
    console: Console,
    first: str,
    groups: Sequence[Sequence[str]],
    rows: Sequence[Sequence[str]],
    words: str | None = None,
) -> None:
    """Print a table; where it is wider than the terminal, in several, one below the other.

    first : heading of the names of the rows
    groups : headings of columns of figures; those of one group stay together
    rows : a name and its figures; and its text, if there are ``words``
    words : heading of a last column of text, which belongs to the last group
    """
    columns = [heading for group in groups for heading in group]
    places = iter(range(1, 1 + len(columns)))
    wanted = [[next(places) for _ in group] for group in groups]
    if words is not None:
        wanted[-1].append(1 + len(columns))

    def made(chosen: Sequence[int], fixed: int | None = None) -> Table:
        part = Table(box=SIMPLE_HEAD, padding=(0, 1), collapse_padding=True, pad_edge=False)
        part.add_column(Text(first), no_wrap=True)
        for place in chosen:
            if place > len(columns):
                part.add_column(Text(words or ""), overflow="fold", width=fixed)
            else:
                part.add_column(Text(columns[place - 1]), justify="right", no_wrap=True)
        for row in rows:
            part.add_row(*(Text(printable(row[place])) for place in (0, *chosen)))
        return part

    def fits(chosen: Sequence[int]) -> bool:
        anywhere = console.options.update(max_width=sys.maxsize)
        return console.measure(made(chosen, WORDS), options=anywhere).maximum <= console.width

    # A group that is too wide by itself falls into its columns.
    waiting = [
        part for group in wanted for part in ([group] if fits(group) else [[c] for c in group])
    ]
    while waiting:
        chosen = waiting.pop(0)
        while waiting and fits([*chosen, *waiting[0]]):
            chosen = [*chosen, *waiting.pop(0)]
        console.print(made(chosen))


def sum_of(terms: Iterable[tuple[str, float]], digits: int = 4, most: int = MOST_TERMS) -> str:
    """A linear combination in words, largest terms first, and no more than so many."""
    parts = sorted(((n, float(v)) for n, v in terms if v), key=lambda part: -abs(part[1]))
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0]
    text = " ".join(f"{value:+.{digits}g} {name}" for name, value in parts[:most])
    return text.lstrip("+") + " + …" * (len(parts) > most)


def down(value: Fraction | float, digits: int = 6) -> str:
    """A lower bound to this many digits, rounded down from the exact value.

    >>> down(0.12345678), up(0.12345678), up(1.0), up(0.0)
    ('0.123456', '0.123457', '1', '0')
    """
    return below(Fraction(value), digits)


def up(value: Fraction | float, digits: int = 6) -> str:
    """An upper bound to this many digits, rounded up."""
    return above(Fraction(value), digits)
