"""The JSON file of an instance, `mipmech/instance@1`; `instances/README.md` describes the format.

Whatever is wrong with a file is an `InputError` that names the field, the row and the remedy.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from mipmech import files, untrusted, validation
from mipmech.errors import InputError, did_you_mean, shorten
from mipmech.model import fields, tables
from mipmech.model.groups import FIELD, Labels, check_name, parse_grouping
from mipmech.model.instance import FORMAT, PER_AGENT, Instance
from mipmech.model.npy import read_npy
from mipmech.model.tables import CsvTable
from mipmech.text import clean
from mipmech.tolerances import LARGEST_TABLE

REQUIRED = ("format", "name", "agents", "quality")
REACHES = ("cost", "reach")
SEEN = ("visible", "projection", "view")
OPTIONAL = (
    "features", "quality_offset", "weights", "norm", "effort", "smoothing", "source", "known",
    "ids", "units", "groups",
)  # fmt: skip
FIELDS = (*REQUIRED, *REACHES, *SEEN, *OPTIONAL)
TABLES = (".csv", ".tsv", ".txt")


def read(file: Path) -> Instance:
    """The instance in a file."""
    return parse(_read_json(file), file)


def _read_json(file: Path) -> dict[str, Any]:
    text = untrusted.read_text(file, LARGEST_TABLE)
    try:
        content = untrusted.json_value(text, finite=False)
    except untrusted.NotJson:
        if file.suffix.lower() not in TABLES:
            raise
        said = f"is a table; 'mipmech new {clean(file.name)}' makes an instance of it"
        raise InputError(said) from None
    if not isinstance(content, dict):
        raise InputError(f"holds {validation.kind(content)}; an instance file is one JSON object")
    return content


def parse(content: dict[str, Any], file: Path) -> Instance:
    """The instance of an object that is, or could be, in this file."""
    if "format" not in content:
        raise InputError(f'is missing; add "format": "{FORMAT}"', field="format")
    if content["format"] != FORMAT:
        said = f'is {validation.kind(content["format"])}; this program reads "{FORMAT}"'
        if str(content["format"]).startswith("mipmech/certificate"):
            said = "is that of a certificate, which mipmech check reads; give the instance's file"
        raise InputError(said, field="format")
    for key in content:
        if key not in FIELDS:
            raise InputError(
                "is not a field of the format; the fields are "
                + ", ".join(FIELDS)
                + did_you_mean(key, FIELDS),
                field=shorten(key).strip("'\""),
            )
    for key in REQUIRED:
        if key not in content:
            raise InputError(f"is missing; add {key!r} to the file", field=key)
    for key in (*REACHES, *SEEN, *OPTIONAL):
        if key in content and content[key] is None:
            raise InputError("is null; leave it out, or give it", field=key)
    agents, features, table = _agents(content, file)
    tables_of_view = ("projection", "view")
    seen = {key: validation.rows(content[key], key) for key in tables_of_view if key in content}
    quality = content["quality"]
    try:
        instance = Instance.from_arrays(
            agents,
            quality if isinstance(quality, dict) else validation.numbers(quality, "quality"),
            cost=_per_agent(content, "cost", table),
            reach=_per_agent(content, "reach", table),
            norm=content.get("norm", "l2"),
            effort=_effort(content.get("effort")),
            visible=content.get("visible"),
            **seen,
            weights=_per_agent(content, "weights", table),
            quality_offset=content.get("quality_offset", 0.0),
            features=features,
            name=content["name"],
            smoothing=content.get("smoothing"),
            source=content.get("source", ""),
            known=content.get("known"),
            ids=_per_agent(content, "ids", table),
            units=content.get("units"),
            groups=_groups(content, len(agents), table),
        )
    except InputError as error:
        field = error.field if error.field in PER_AGENT else None
        if table is None or error.row is None or field is None or isinstance(content[field], list):
            raise
        raise table.fault(error.message, field, error.row) from None
    object.__setattr__(instance, "path", file)
    return instance


def _agents(
    content: dict[str, Any], file: Path
) -> tuple[NDArray[Any], Sequence[str] | None, CsvTable | None]:
    agents = content["agents"]
    features = content.get("features")
    features = None if features is None else validation.listed(features, "features")
    if isinstance(agents, list):
        return validation.rows(agents, "agents"), features, None
    if not isinstance(agents, dict) or len(agents) != 1 or not {"csv", "npy"} & set(agents):
        raise InputError(
            f'is {validation.kind(agents)}; give rows of numbers, or {{"csv": "file.csv"}}, or'
            ' {"npy": "file.npy"}',
            field="agents",
        )
    ((kind, name),) = agents.items()
    if not isinstance(name, str):
        raise InputError(f"{kind!r} is {validation.kind(name)}; give a file's name", field="agents")
    path = files.beside(file.parent, name)
    if kind == "npy":
        return read_npy(path, tables.FIELD), features, None
    table = tables.read_csv(path, strict=True)
    if features is not None:
        chosen = fields.parse_names(features, len(features))
        for column in chosen:
            table.place(column, "features")
        return table.numbers(chosen), chosen, table
    tables.check_names(table)
    named = {_column(content.get(field), field, table) for field in PER_AGENT[1:]}
    named |= {_column(value, FIELD, table) for value in _groupings(content).values()}
    others = [name for name in table.names if name not in named]
    chosen = fields.parse_names(others, len(others))
    hint = "; if that is no feature, list those that are in 'features'"
    return table.numbers(chosen, hint=hint), chosen, table


def _column(value: Any, field: str, table: CsvTable | None) -> str | None:
    """The column of the CSV file that the value of a field names, if it does."""
    if not isinstance(value, dict):
        return None
    name = value.get("column")
    if set(value) != {"column"} or not isinstance(name, str):
        said = 'is an object; one that names a column is written {"column": "name"}'
        raise InputError(said, field=field)
    if table is None:
        said = f"names the column {shorten(name)}, but the agents are in no CSV file; give a list"
        raise InputError(said, field=field)
    table.place(name, field)
    return name


def _effort(value: Any) -> Any:
    """Prices by feature, a list of them, or the rows of a matrix."""
    if not isinstance(value, list):
        return value
    read = validation.rows if any(isinstance(row, list) for row in value) else validation.numbers
    return read(value, "effort")


def _per_agent(content: dict[str, Any], field: str, table: CsvTable | None) -> Any:
    """Costs, reaches, weights or ids: a list, a column of the CSV file, or one number for all."""
    column = _column(content.get(field), field, table)
    if column is not None and table is not None:
        return (
            table.texts(column, field) if field == "ids" else table.numbers([column], field)[:, 0]
        )
    value = content.get(field)
    as_it_is = field == "ids" or (field in REACHES and not isinstance(value, list))
    return value if value is None or as_it_is else validation.numbers(value, field)


def _groupings(content: dict[str, Any]) -> dict[str, Any]:
    """The object of groups; empty only if there is none."""
    value = content.get(FIELD, {})
    if not isinstance(value, dict) or (FIELD in content and not value):
        said = "is empty" if value == {} else f"is {validation.kind(value)}"
        remedy = 'give labels by name, as in {"sex": ["f", "m", "f"]}, or leave it out'
        raise InputError(f"{said}; {remedy}", field=FIELD)
    return value


def _groups(content: dict[str, Any], size: int, table: CsvTable | None) -> dict[str, Labels] | None:
    """Labels by name: lists, or columns of the CSV file."""
    found: dict[str, Labels] = {}
    for name, value in _groupings(content).items():
        column = _column(value, FIELD, table)
        if column is None or table is None:
            found[name] = value
            continue
        try:
            found[name] = parse_grouping(check_name(name), table.texts(column, FIELD), size)
        except InputError as error:
            raise table.fault(error.message, FIELD, error.row) from None
    return found or None


def pretty(content: dict[str, Any]) -> str:
    """JSON with a line per field, and a line per row of a table."""
    lines = []
    for key, value in content.items():
        if isinstance(value, list) and value and isinstance(value[0], list):
            rows = ",\n    ".join(json.dumps(row) for row in value)
            text = f"[\n    {rows}\n  ]"
        else:
            text = json.dumps(value, ensure_ascii=False)
        lines.append(f'  "{key}": {text}')
    return "{\n" + ",\n".join(lines) + "\n}\n"
