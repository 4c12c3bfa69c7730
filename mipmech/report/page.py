"""The report on a comparison as one HTML page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mipmech.report import figures
from mipmech.report.figures import Picture
from mipmech.report.gallery import Gallery, gallery
from mipmech.report.rendering import LONGEST, entries, rendered, tile
from mipmech.report.tables import Table, capped, tables
from mipmech.report.words import Sentence, summary, title
from mipmech.report.writing import count, duration
from mipmech.studies.comparison.results import Comparison

# Records of one oracle (they differ by seed).
MOST_RECORDS = 12


@dataclass(frozen=True)
class View:
    """A comparison as a page shows it, on its own or among others.

    prefix : sets its identifiers apart from those of the rest of the page
    level : of its headings
    """

    prefix: str
    level: int
    title: str
    summary: list[Sentence]
    tiles: list[dict[str, Any]]
    tables: list[Table]
    oracles: list[str]
    groups: list[str]
    legend: list[tuple[str, str]]
    pictures: list[Picture]
    group_pictures: list[Picture]
    bounds: list[Picture]
    gallery: Gallery
    settings: list[tuple[str, str]]
    made_by: list[tuple[str, str]]
    records: list[tuple[str, list[str]]]

    @property
    def contents(self) -> list[tuple[str, str]]:
        """Its sections, to be linked to: identifier and name."""
        named = [(table.key, table.title) for table in self.tables]
        found = [("summary", "Summary"), *named]
        found += [("pictures", "Pictures")] if self.pictures else []
        found += [("bounds", "Bounds")] if self.bounds else []
        found += [("gallery", "Gallery"), ("settings", "Settings")]
        return [(self.prefix + key, words) for key, words in found]


def view(comparison: Comparison, folder: Path, prefix: str = "", level: int = 2) -> View:
    """What a page shows of a comparison."""
    over_time = figures.over_time(comparison, prefix)
    return View(
        prefix=prefix,
        level=level,
        title=title(comparison),
        summary=summary(comparison),
        tiles=_tiles(comparison),
        tables=[capped(table) for table in tables(comparison)],
        oracles=comparison.oracles,
        groups=comparison.groups,
        legend=figures.legend(comparison.oracles, prefix),
        pictures=[
            *over_time[:1],
            *figures.profile(comparison, prefix),
            *figures.gains(comparison, prefix),
            *figures.by_group(comparison, prefix),
        ],
        group_pictures=over_time[1:],
        bounds=figures.bounds(comparison, prefix),
        gallery=gallery(comparison.problems, folder, prefix),
        settings=entries(comparison.settings),
        made_by=entries(comparison.made_by),
        records=_records(comparison),
    )


def page(comparison: Comparison, folder: Path) -> str:
    """The whole page."""
    shown = view(comparison, folder)
    return rendered(
        "comparison.html",
        title=shown.title,
        kind="a comparison",
        brand="comparison of oracles",
        figures=shown.tiles,
        contents=[*shown.contents, ("reading", "How to read this")],
        view=shown,
    )


def _tiles(comparison: Comparison) -> list[dict[str, Any]]:
    """The figures that everybody asks for first."""
    references = [problem.gain for problem in comparison.problems]
    references += [bounds for _, _, bounds in comparison.questions]
    closed = sum(bounds.closed for bounds in references)
    calls = sum(len(run.calls) for run in comparison.runs)
    failures = sum(run.error is not None for run in comparison.runs)
    violations = len(comparison.violations)
    groups = count(len(comparison.groups), "group")
    return [
        tile(f"{len(comparison.oracles):,}", "oracles"),
        tile(f"{len(comparison.problems):,}", f"instances in {groups}"),
        tile(f"{len(comparison.questions):,}", "questions of density"),
        tile(f"{calls:,}", f"calls, {duration(comparison.seconds)} in all"),
        tile(f"{closed:,} of {len(references):,}", "references closed"),
        tile(f"{failures:,}", "failures"),
        tile(f"{violations:,}", "violations", bad=violations > 0),
    ]


def _records(comparison: Comparison) -> list[tuple[str, list[str]]]:
    """Every oracle with the records of its runs, each once."""
    found = []
    for name in comparison.oracles:
        records = list(dict.fromkeys(run.record for run in comparison.runs_of(name)))
        shown = [record[:LONGEST] for record in records[:MOST_RECORDS]]
        more = len(records) - len(shown)
        found.append((name, shown + [f"… and {more:,} more"] * (more > 0)))
    return found
