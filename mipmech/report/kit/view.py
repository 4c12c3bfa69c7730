"""What is shown of a run, before it becomes a page, markdown or a spreadsheet."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mipmech.report.kit.drawing import Pictures
from mipmech.report.kit.sentence import Sentence
from mipmech.report.kit.tabular import Table

# Settings and records longer than this are cut.
LONGEST = 2000


class Tile(NamedTuple):
    """A headline figure."""

    figure: str
    words: str
    bad: bool = False


class Facts(NamedTuple):
    """Settings, versions and the like: a heading, and names with their values.

    code : whether they are code
    """

    heading: str
    entries: list[tuple[str, list[str]]]
    code: bool = False


@dataclass(frozen=True)
class ReportView:
    """What is shown of a run, or of a comparison in it.

    kind : "comparison of oracles" or "batch of jobs"
    tables, details : above and below its pictures
    oracles, groups : what its tables and pictures can be chosen by
    counted : the table whose rows are counted when a group is chosen
    pictures : its pictures, with identifiers that begin with what it is given
    plan : the plan as it was written
    parts : views that stand below
    required : whether rules must meet requirements
    heads, lines : of its spreadsheet
    """

    kind: str
    title: str
    summary: list[Sentence]
    tiles: list[Tile]
    tables: list[Table]
    details: list[Table]
    oracles: list[str]
    groups: list[str]
    counted: str
    pictures: Callable[[str], list[Pictures]]
    facts: list[Facts]
    heads: Sequence[str]
    lines: Callable[[], Iterable[Sequence[Any]]]
    plan: str = ""
    parts: list[ReportView] = field(default_factory=list)
    required: bool = False


def facts(heading: str, values: Mapping[str, Any]) -> Facts:
    """Settings or versions, in words."""
    return Facts(
        heading, [(name.replace("_", " "), [_shown(value)]) for name, value in values.items()]
    )


def _shown(value: Any) -> str:
    """A setting in words: lists and names with their values plainly, other objects as JSON."""
    simple = str | int | float
    if isinstance(value, list) and all(isinstance(entry, simple) for entry in value):
        text = ", ".join(map(str, value))
    elif isinstance(value, dict) and all(isinstance(entry, simple) for entry in value.values()):
        text = ", ".join(f"{name} {entry}" for name, entry in value.items())
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"
