"""A view as GitHub markdown: the summary and the tables."""

from __future__ import annotations

from mipmech.report.kit.sentence import Name, Sentence
from mipmech.report.kit.tabular import Table
from mipmech.report.kit.view import ReportView

# What would become a link, an image, emphasis, a formula, code or another cell.
ACTIVE = "\\`*_[]|~$#!@"


def markdown(view: ReportView, level: int = 1, before: str = "") -> str:
    """The whole text.

    level, before : of its heading, and what stands before it there
    """
    parts = [f"{'#' * level} {escaped(before + view.title)}", *map(_sentence, view.summary)]
    for table in (*view.tables, *view.details):
        parts += [f"{'#' * level}# {table.title}", escaped(table.note), _table(table)]
    below = [
        markdown(part, level + 1, f"Comparison {number}: ")
        for number, part in enumerate(view.parts, 1)
    ]
    return "\n".join(["\n\n".join(filter(None, parts)) + "\n", *below])


def escaped(text: str) -> str:
    r"""Text that stays text.

    >>> print(escaped("a|b <script> [x](y) https://z"))
    a\|b &lt;script&gt; \[x\](y) https&#58;//z
    """
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    plain = "".join("\\" + c if c in ACTIVE else c for c in plain)
    # An address alone would become a link.
    return plain.replace("://", "&#58;//").replace("www.", "www&#46;")


def _sentence(sentence: Sentence) -> str:
    text = "".join(
        f"**{escaped(part)}**" if isinstance(part, Name) else escaped(part)
        for part in sentence.parts
    )
    return f"> **Attention.** {text}" if sentence.tone == "bad" else text


def _table(table: Table) -> str:
    # A drawn spread has no text; the figures stand beside it.
    kept = [i for i, column in enumerate(table.columns) if column.name != "spread"]
    columns = [table.columns[i] for i in kept]
    heads = [f"{c.above}: {c.name}" if c.above else c.name for c in columns]
    rows = [[row.cells[i].words for i in kept] for row in table.rows]
    lines = [_line(heads), "|" + "|".join("--:" if c.number else ":--" for c in columns) + "|"]
    return "\n".join([*lines, *(_line(row) for row in rows)])


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(escaped(cell) for cell in cells) + " |"
