"""The command new: an instance file from a CSV file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from mipmech.cli.shell import Shell, can_be_written, command
from mipmech.design.caveats import caveats
from mipmech.errors import InputError, did_you_mean, shorten
from mipmech.model.from_table import NAMING, STANDARD, Choice, naming_column
from mipmech.model.instance import Instance
from mipmech.model.instance_from_csv import UNSEEN, instance_from_csv
from mipmech.model.tables import CsvTable, listed_columns, quoted, read_csv
from mipmech.text import clean, count, printable
from mipmech.validation import cells, coefficients, is_plain


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
    reach: Annotated[
        str | None,
        typer.Option(
            "--reach", help="Instead of --cost, how far people move to pass; or a column."
        ),
    ] = None,
    norm: Annotated[
        Literal["l2", "l1", "linf"],
        typer.Option("--norm", help="How moves in several features add up."),
    ] = "l2",
    effort: Annotated[
        str | None,
        typer.Option(
            "--effort",
            help='Prices of a move of 1, by column: "gpa=10,sat=0.02"; or "standard",'
            " 1/standard deviation each. Implies --as-is.",
        ),
    ] = None,
    weights: Annotated[str | None, typer.Option("--weights", help="A column of weights.")] = None,
    ids: Annotated[
        str | None,
        typer.Option("--id", help='The column that names the agents [guessed; "" for none].'),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option("--groups", help='Columns that say who is in which group: "sex,race".'),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option("--features", help="Features [the columns of quality and visible]."),
    ] = None,
    standardise: Annotated[
        bool | None,
        typer.Option(
            "--standardise/--as-is",
            help="Features in standard deviations, and --cost per standard deviation [yes].",
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
        table = read_csv(data)
    asking = sys.stdin is not None and sys.stdin.isatty() and not shell.as_json
    if asking:
        _tell_columns(table)
    else:
        _check_complete(table, quality, visible, view, reach if cost is None else cost)
    chosen = None if features is None else cells(features)
    for column in chosen or ():
        table.place(column, "features")
        table.without(table.gaps([column])).numbers([column], "features")
    example = _example(table)
    choice = Choice(
        {}, 1.0 if reach is None else None, norm=norm, weights=weights, quality_offset=offset,
        reach=None if reach is None else _amount(reach, table, "reach"),
        effort=None if effort is None else _effort(effort, table, example),
        features=chosen, groups=_grouped(groups, table), drop_blank=drop_blank,
        standardise=not asking and effort is None if standardise is None else standardise,
    )  # fmt: skip

    def settled(
        field: str, option: str | None, question: str, read: Callable[[str], Any], default: str = ""
    ) -> Choice:
        """The choice with an option, or with an answer that fits what is known so far."""

        def fitting(text: str) -> Choice:
            changed = replace(choice, **{field: read(text)})
            tried = _tried(table, changed)
            if field == "visible" and not tried.view.shows(tried.quality):
                print(f"  Warning: {UNSEEN}.", file=sys.stderr)
            return changed

        if option is not None:
            return replace(choice, **{field: read(option)})
        answered: Choice = _asked(field, question, fitting, default)
        return answered

    def weighted(text: str) -> dict[str, float]:
        return coefficients(text, "quality", example)

    choice = settled("quality", quality, _QUALITY.format(example), weighted)
    if view is not None:
        rows = [coefficients(row, "view", example) for row in view.split(";")]
        choice = replace(choice, view=rows)
    if view is None or visible is not None:
        offered = ",".join(map(quoted, choice.quality)) if len(choice.quality) > 1 else ""
        choice = settled("visible", visible, _VISIBLE, cells, offered)
    if standardise is None and effort is None and asking:
        choice = settled("standardise", None, _STANDARDISE, _yes, "yes")
    if reach is None or cost is not None:
        spread = choice.standardise or choice.effort == STANDARD
        unit = (
            "one standard deviation" if spread else "1" + " at the price 1" * (effort is not None)
        )
        read = partial(_amount, table=table, field="cost")
        choice = settled("cost", cost, _COST.format(unit), read, "2")
    if ids != "":
        choice = replace(choice, ids=ids or naming_column(table, choice.used(table.names)))
    gaps = len(table.gaps(choice.used(table.names)))
    if gaps and asking and not drop_blank:
        question = f"{count(gaps, 'row')} of {table.size} have gaps. Leave them out?"
        choice = replace(choice, drop_blank=_asked("drop_blank", question, _agreed, "yes"))

    made = instance_from_csv(table, choice, file, name or clean(data.stem))
    made.save(file)
    warnings = [*made.warnings, *caveats(made.instance)]
    content = {
        "file": str(file),
        "name": made.instance.name,
        "digest": made.instance.digest,
        "agents": made.instance.size,
        "features": list(made.instance.feature_names),
        "groups": list(made.instance.groups),
        "rank": made.instance.view.rank,
        "table": table.path.name if made.refers else None,
        "ids": choice.ids,
        "standardised": choice.standardise,
        "cost": made.cost,
        "left_out": made.left_out,
        "warnings": warnings,
    }
    shell.show(content, "new.tell", made, choice, file, warnings)
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


def _amount(text: str, table: CsvTable, field: str) -> float | str:
    """A cost or a reach: a number, or a column."""
    answer = text.strip()
    if not is_plain(answer):
        table.place(answer, field)
        return answer
    if answer in table.names:
        said = f"is {answer}, and a column has that name; write {answer}.0 for the number, or"
        raise InputError(f"{said} rename the column", field=field)
    return float(answer)


def _grouped(text: str | None, table: CsvTable) -> list[str] | None:
    """The columns that say who is in which group."""
    columns = None if text is None else cells(text)
    for column in columns or ():
        table.place(column, "groups")
    return columns


def _effort(text: str, table: CsvTable, example: str) -> dict[str, float] | str:
    """Prices by column, or the word that stands for 1/standard deviation."""
    answer = text.strip()
    if answer == STANDARD:
        return answer
    if not set(answer) & set("=:"):
        hint = did_you_mean(answer, [STANDARD])
        said = f"is {shorten(answer)}; give prices by column, as in {example}, or {STANDARD}{hint}"
        raise InputError(said, field="effort")
    prices = coefficients(answer, "effort", example)
    for column in prices:
        table.place(column, "effort")
    return prices


def _yes(text: str) -> bool:
    answer = text.strip().casefold()
    if answer not in ("y", "yes", "n", "no"):
        raise InputError(f"is {shorten(text)}; answer yes or no")
    return answer.startswith("y")


def _agreed(text: str) -> bool:
    if not _yes(text):
        said = "agents with gaps cannot be used: answer yes; or leave by Ctrl-C, and fill them in"
        raise InputError(f"{said} or choose other columns")
    return True


def _measured(table: CsvTable) -> list[str]:
    """Two columns to show how they are named."""
    found = [name for name in table.numeric if not NAMING.fullmatch(name)] or ["gpa", "sat"]
    return list(map(clean, found[:2]))


def _example(table: CsvTable) -> str:
    """Coefficients for columns of this table, to show how they are written."""
    parts = (f"{name}=0.{3 - j}" for j, name in enumerate(_measured(table)))
    return f'"{",".join(parts)}"'


def _check_complete(
    table: CsvTable, quality: str | None, visible: str | None, view: str | None, cost: str | None
) -> None:
    """Name everything that is missing at once, where nobody can be asked."""
    missing = []
    if quality is None:
        missing.append(f"--quality {_example(table)}")
    if visible is None and view is None:
        missing.append(f'--visible "{",".join(_measured(table))}"')
    if cost is None:
        missing.append("--cost 2")
    if missing:
        has = listed_columns(table.numeric) or "missing"
        said = f"more must be known: give {' '.join(missing)}; columns with numbers are {has}"
        raise InputError(said, file=table.path)


# ------------------------------------------------------------------ questions

_QUALITY = (
    "True quality is a weighted sum of columns. A coefficient says by how much quality rises with a"
    " column's unit;\nthey come from a regression done beforehand, for instance. Give columns with"
    " coefficients, as in {}"
)
_VISIBLE = "Which columns does the planner see (what people can change, not the outcome)?"
_STANDARDISE = "Measure features in standard deviations? Rules are shown in your units all the same"
_COST = "What does a move of {} cost, if passing is worth 1? A number, or a column"


def _tried(table: CsvTable, choice: Choice) -> Instance:
    """The instance so far; the planner sees all quality if nobody has said yet what is seen.

    Prices wait until all features are known.
    """
    unsaid = choice.visible is None and choice.view is None
    seen = list(choice.quality) if unsaid else choice.visible
    tried = replace(choice, visible=seen, drop_blank=True, effort=None)
    return Instance.from_frame(table, **vars(tried))


def _asked(field: str, question: str, read: Callable[[str], Any], default: str = "") -> Any:
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
            if error.field in ("weights", "quality_offset", "norm", "reach", "groups"):
                # Options, which no answer mends.
                raise
            at = "" if error.line is None else f" (line {error.line})"
            print(printable(f"  {error.message}{at}"), file=sys.stderr)


def _tell_columns(table: CsvTable) -> None:
    """What the table holds, before the questions."""
    others = [name for name in table.names if name and name not in table.numeric]
    held = f"{count(table.size, 'row')}; numbers: {', '.join(map(clean, table.numeric)) or 'none'}"
    held += f"; text: {', '.join(map(clean, others))}" * bool(others)
    print(printable(held), file=sys.stderr)
