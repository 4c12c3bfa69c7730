"""The command new: an instance file from a CSV file."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from mipmech.cli.shell import Shell, can_be_written, command
from mipmech.design.describe import describe
from mipmech.errors import InputError, shorten
from mipmech.model import tables
from mipmech.model.columns import Choice, naming_column
from mipmech.model.draft import draft
from mipmech.model.tables import CsvTable
from mipmech.text import clean, count

T = TypeVar("T")


@command()
def new(
    shell: Shell,
    data: Annotated[Path, typer.Argument(help="A CSV file: a header, then a row per agent.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The instance file to write [the data's, with .json]."),
    ] = None,
    quality: Annotated[
        str | None, typer.Option("--quality", help='True quality by column: "gpa=0.3,sat=0.1".')
    ] = None,
    visible: Annotated[
        str | None, typer.Option("--visible", help='Columns that the planner sees: "gpa,sat".')
    ] = None,
    view: Annotated[
        str | None,
        typer.Option("--view", help='Or sums that the planner sees: "verbal=1,maths=1;gpa=1".'),
    ] = None,
    cost: Annotated[
        str | None,
        typer.Option("--cost", help="Cost of a move of 1, if passing is worth 1; or a column."),
    ] = None,
    weights: Annotated[str | None, typer.Option("--weights", help="A column of weights.")] = None,
    ids: Annotated[
        str | None,
        typer.Option("--id", help='The column that names the agents [guessed; "" for none].'),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option("--features", help="Features [the columns of quality and visible]."),
    ] = None,
    standardise: Annotated[
        bool | None,
        typer.Option(
            "--standardise/--as-is",
            help="Features in standard deviations; --cost is then per standard deviation [as is].",
        ),
    ] = None,
    drop_blank: Annotated[
        bool, typer.Option("--drop-blank", help="Leave out rows with gaps where numbers are used.")
    ] = False,
    offset: Annotated[
        float, typer.Option("--offset", help="b_f: quality is the weighted sum minus this.")
    ] = 0.0,
    name: Annotated[str | None, typer.Option("--name", help="Its name [the data's].")] = None,
) -> int:
    """Make an instance of a table of one's own; asks for what is missing."""
    file = _output(data, output)
    with shell.saying(f"reading {data}"):
        table = tables.read_any_csv(data)
    asking = sys.stdin.isatty() and not shell.as_json
    if not asking:
        _check_complete(table, quality, visible, view, cost)
    else:
        _tell_columns(table)

    coefficients = _given("quality", quality, _coefficients, table, _QUALITY)
    seen = rows = None
    if view is not None:
        rows = [_coefficients(row, "view", table) for row in view.split(";")]
    if view is None or visible is not None:
        seen = _given("visible", visible, _names, table, _VISIBLE, ",".join(coefficients))
    if standardise is None and asking:
        standardise = _asked("standardise", _STANDARDISE, _yes, "yes")
    unit = "one standard deviation" if standardise else "1"
    price = _given("cost", cost, _cost, table, _COST.format(unit), "2")
    columns = None if features is None else _names(features, "features", table)
    choice = Choice(
        coefficients, price, seen, rows, weights, ids or None, columns, bool(standardise), offset
    )
    if ids is None:
        choice = replace(choice, ids=naming_column(table, choice.measured(table.names)))
    gaps = len(table.gaps(choice.measured(table.names)))
    if gaps and asking and not drop_blank:
        question = f"{count(gaps, 'row')} of {table.size} have gaps. Leave them out?"
        drop_blank = _asked("drop_blank", question, _yes, "yes")

    made = draft(table, choice, file, name=name or clean(data.stem), drop_blank=drop_blank)
    made.save(file)
    warnings = describe(made.instance, shell.timer).warnings
    content = {
        "file": str(file),
        "name": made.instance.name,
        "digest": made.instance.digest,
        "agents": made.instance.size,
        "features": list(made.instance.feature_names),
        "rank": made.instance.view.rank,
        "table": table.path.name if made.refers else None,
        "ids": choice.ids,
        "standardised": choice.standardise,
        "left_out": made.left_out,
        "warnings": list(warnings),
    }
    shell.show(content, "draft.tell", made, choice, file, warnings)
    return 0


# ------------------------------------------------------------------ files


def _output(data: Path, output: Path | None) -> Path:
    """The file to write; never the data, and never by surprise what is there already."""
    if not data.name:
        raise InputError("is a folder; name a CSV file", file=data)
    file = data.with_suffix(".json") if output is None else output
    if file.resolve() == data.resolve():
        raise InputError("is the data; name another file by -o", file=file, field="output")
    if output is None and file.exists():
        said = "exists already; name the file to write by -o (it is then replaced)"
        raise InputError(said, file=file, field="output")
    can_be_written(file, "output")
    return file


# ------------------------------------------------------------------ options


def _cells(text: str) -> list[str]:
    """The parts between commas; a name with a comma stands in double quotes."""
    line = next(csv.reader([text], skipinitialspace=True), [])
    return [cell.strip() for cell in line if cell.strip()]


def _names(text: str, field: str, table: CsvTable) -> list[str]:
    names = _cells(text)
    if not names:
        raise InputError("is empty; name at least one column", field=field)
    for name in names:
        table.place(name, field)
    return names


def _coefficients(text: str, field: str, table: CsvTable) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in _cells(text):
        column, mark, value = part.rpartition("=")
        column = column.strip()
        if not mark or not tables.is_number(value.strip()):
            said = f"has {shorten(part)}; give names and numbers, as in {_example(table)}"
            raise InputError(said, field=field)
        table.place(column, field)
        if column in found:
            raise InputError(f"has {shorten(column)} twice; give it once", field=field)
        found[column] = float(value)
    if not found:
        said = f"is empty; give names and numbers, as in {_example(table)}"
        raise InputError(said, field=field)
    return found


def _cost(text: str, field: str, table: CsvTable) -> float | str:
    if tables.is_number(text.strip()):
        return float(text)
    table.place(text.strip(), field)
    return text.strip()


def _yes(text: str) -> bool:
    answer = text.strip().casefold()
    if answer not in ("y", "yes", "n", "no"):
        raise InputError(f"is {shorten(text)}; answer yes or no")
    return answer.startswith("y")


def _example(table: CsvTable) -> str:
    """Coefficients for columns of this table, to show how they are written."""
    names = (table.numeric or ("gpa", "sat"))[:2]
    return '"' + ",".join(f"{clean(name)}=0.{3 - j}" for j, name in enumerate(names)) + '"'


def _check_complete(
    table: CsvTable, quality: str | None, visible: str | None, view: str | None, cost: str | None
) -> None:
    """Name everything that is missing at once, where nobody can be asked."""
    missing = []
    if quality is None:
        missing.append(f"--quality {_example(table)}")
    if visible is None and view is None:
        missing.append(f'--visible "{",".join(map(clean, table.numeric[:2]))}"')
    if cost is None:
        missing.append("--cost 2")
    if missing:
        has = tables.listed_columns(table.numeric) or "missing"
        said = f"more must be known: give {' '.join(missing)}; columns with numbers are {has}"
        raise InputError(said, file=table.path)


# ------------------------------------------------------------------ questions

_QUALITY = "What is true quality? Columns with coefficients, as in {}"
_VISIBLE = "Which columns does the planner see?"
_STANDARDISE = "Measure features in standard deviations? Rules are shown in your units all the same"
_COST = "What does a move of {} cost, if passing is worth 1? A number, or a column"


def _given(
    field: str,
    option: str | None,
    read: Callable[[str, str, CsvTable], T],
    table: CsvTable,
    question: str,
    default: str = "",
) -> T:
    """An option, or the answer to a question."""
    if option is not None:
        return read(option, field, table)
    return _asked(
        field, question.format(_example(table)), lambda text: read(text, field, table), default
    )


def _asked(field: str, question: str, read: Callable[[str], T], default: str = "") -> T:
    """Ask on the terminal until there is an answer that can be understood."""
    shown = f" [{default}]" if default else ""
    while True:
        print(f"{question}{shown}: ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            raise InputError("was asked for and not answered", field=field)
        try:
            return read(line.strip() or default)
        except InputError as error:
            print(f"  {error.message}", file=sys.stderr)


def _tell_columns(table: CsvTable) -> None:
    """What the table holds, before the questions."""
    others = [name for name in table.names if name and name not in table.numeric]
    held = f"{count(table.size, 'row')}; numbers: {', '.join(map(clean, table.numeric)) or 'none'}"
    held += f"; text: {', '.join(map(clean, others))}" * bool(others)
    print(held, file=sys.stderr)
