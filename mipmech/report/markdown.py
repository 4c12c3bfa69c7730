"""The report as GitHub markdown: the summary and the tables."""

from __future__ import annotations

from collections.abc import Iterable

from mipmech.report.tables import Table, capped, tables
from mipmech.report.words import Name, Sentence, summary, title
from mipmech.studies.comparison.results import Comparison

# What would become a link, an image, emphasis, a formula, code or another cell.
ACTIVE = "\\`*_[]|~$#!@"


def markdown(comparison: Comparison, level: int = 1, before: str = "") -> str:
    """The whole text.

    level, before : of its heading, and what stands before it there
    """
    return written(before + title(comparison), summary(comparison), tables(comparison), level)


def written(
    heading: str, sentences: Iterable[Sentence], entries: Iterable[Table], level: int = 1
) -> str:
    """A heading, a summary and tables."""
    parts = [f"{'#' * level} {escaped(heading)}"]
    parts += [_sentence(sentence) for sentence in sentences]
    for entry in entries:
        table = capped(entry)
        parts += [f"{'#' * level}# {table.title}", escaped(table.note), _table(table)]
    return "\n\n".join(parts) + "\n"


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
