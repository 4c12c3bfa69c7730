"""The report as one HTML page.

Nothing in it comes from elsewhere and nothing in it leaves: the page forbids itself the network and
all scripts but its own, so that a name out of a stranger's file is inert twice, by escaping and by
that rule.
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from mipmech.comparison import Comparison
from mipmech.report import figures
from mipmech.report.gallery import gallery
from mipmech.report.tables import tables
from mipmech.report.words import ENOUGH, Name, questions, summary, title
from mipmech.report.writing import count, duration

FOLDER = Path(__file__).parent
# Settings and records longer than this are cut.
LONGEST = 2000
# Records of one oracle (they differ by seed).
MOST_RECORDS = 12


def page(comparison: Comparison, folder: Path) -> str:
    """The whole page."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415  (slow)
    from markupsafe import Markup  # noqa: PLC0415

    environment = Environment(
        loader=FileSystemLoader(FOLDER), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    # Our own files and our own drawings: the only things on the page that are not escaped.
    environment.filters["drawing"] = Markup
    environment.filters["is_name"] = lambda part: isinstance(part, Name)
    script = (FOLDER / "page.js").read_text(encoding="utf-8")
    over_time = figures.over_time(comparison)
    return environment.get_template("page.html").render(
        title=title(comparison),
        summary=summary(comparison),
        tiles=_tiles(comparison),
        tables=tables(comparison),
        oracles=comparison.oracles,
        groups=comparison.groups,
        legend=figures.legend(comparison),
        pictures=[
            *over_time[:1],
            *figures.profile(comparison),
            *figures.by_group(comparison),
            *figures.gains(comparison),
        ],
        group_pictures=over_time[1:],
        bounds=figures.bounds(comparison),
        gallery=gallery(comparison, folder),
        settings=_entries(comparison.settings),
        made_by=_entries(comparison.made_by),
        records=_records(comparison),
        enough=ENOUGH,
        style=Markup((FOLDER / "page.css").read_text(encoding="utf-8")),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _tiles(comparison: Comparison) -> list[dict[str, Any]]:
    """The figures that everybody asks for first."""
    references = [b for p in comparison.problems for b in (p.gain, *p.densities)]
    closed = sum(bounds.closed for bounds in references)
    calls = sum(len(run.calls) for run in comparison.runs)
    failures = sum(run.error is not None for run in comparison.runs)
    violations = len(comparison.violations)
    groups = count(len(comparison.groups), "group")
    return [
        _tile(f"{len(comparison.oracles):,}", "oracles"),
        _tile(f"{len(comparison.problems):,}", f"instances in {groups}"),
        _tile(f"{questions(comparison):,}", "questions of density"),
        _tile(f"{calls:,}", f"calls, {duration(comparison.seconds)} in all"),
        _tile(f"{closed:,} of {len(references):,}", "references closed"),
        _tile(f"{failures:,}", "failures"),
        _tile(f"{violations:,}", "violations", bad=violations > 0),
    ]  # fmt: skip


def _tile(figure: str, words: str, bad: bool = False) -> dict[str, Any]:
    return {"figure": figure, "words": words, "bad": bad}


def _entries(values: dict[str, Any]) -> list[tuple[str, str]]:
    return [(name.replace("_", " "), _shown(value)) for name, value in values.items()]


def _shown(value: Any) -> str:
    """A setting in words: lists plainly, objects as JSON."""
    if isinstance(value, list) and all(isinstance(entry, str | int | float) for entry in value):
        text = ", ".join(map(str, value))
    elif isinstance(value, str):
        text = value
    else:
        text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def _records(comparison: Comparison) -> list[tuple[str, list[str]]]:
    """Every oracle with the records of its runs, each once."""
    found = []
    for name in comparison.oracles:
        records = list(dict.fromkeys(run.record for run in comparison.runs_of(name)))
        shown = [record[:LONGEST] for record in records[:MOST_RECORDS]]
        more = len(records) - len(shown)
        found.append((name, shown + [f"… and {more:,} more"] * (more > 0)))
    return found
