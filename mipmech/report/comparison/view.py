"""A comparison as a report shows it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mipmech.report.comparison import pictures
from mipmech.report.comparison.summary import summary, title
from mipmech.report.comparison.tables import details, tables
from mipmech.report.kit.drawing import Pictures, legend_of
from mipmech.report.kit.gallery import gallery
from mipmech.report.kit.sentence import Sentence
from mipmech.report.kit.view import LONGEST, Facts, ReportView, Tile, facts
from mipmech.studies.comparison.results import CALLS, Comparison
from mipmech.text import count, duration

# Records of one oracle (they differ by seed).
MOST_RECORDS = 12


def view_of(comparison: Comparison, folder: Path, notes: Sequence[Sentence] = ()) -> ReportView:
    """What is shown of a comparison.

    notes : what is to be said before anything else
    """
    return ReportView(
        kind="comparison of oracles",
        title=title(comparison),
        summary=[*notes, *summary(comparison)],
        tiles=_tiles(comparison),
        tables=tables(comparison),
        details=details(comparison),
        oracles=comparison.oracles,
        groups=comparison.groups,
        counted="instances",
        pictures=lambda prefix: _pictures(comparison, folder, prefix),
        facts=[
            facts("Asked for", comparison.settings.to_dict()),
            facts("Made by", comparison.made_by),
            _records(comparison),
        ],
        heads=CALLS,
        lines=comparison.rows,
        required=comparison.settings.requirements is not None,
    )


def _pictures(comparison: Comparison, folder: Path, prefix: str) -> list[Pictures]:
    wide = [
        *pictures.quality_in_time(comparison, None, f"{prefix}t0"),
        *pictures.profile(comparison, prefix),
        *pictures.gains(comparison, prefix),
        *pictures.by_group(comparison, prefix),
    ]
    found = [
        Pictures(
            "pictures", "Pictures", wide, "pictures", of="Oracles",
            legend=legend_of(comparison.oracles, prefix),
        ),
        Pictures(
            "over-time", "Groups: quality against time",
            pictures.time_by_group(comparison, prefix),
        ),
        Pictures(
            "bounds", "Bounds: the longest calls", pictures.bounds(comparison, prefix),
            note="Coloured: what was found; grey: the upper bound. One call per instance.",
        ),
    ]  # fmt: skip
    shown = [section for section in found if section.pictures]
    required = comparison.settings.requirements is not None
    return [*shown, gallery(comparison.problems, folder, prefix, required)]


def _tiles(comparison: Comparison) -> list[Tile]:
    references = [problem.gain for problem in comparison.problems]
    references += [bounds for _, _, bounds in comparison.questions]
    closed = sum(bounds.closed for bounds in references)
    calls = sum(len(run.calls) for run in comparison.runs)
    failures = sum(run.error is not None for run in comparison.runs)
    violations = len(comparison.violations)
    groups = count(len(comparison.groups), "group")
    return [
        Tile(f"{len(comparison.oracles):,}", "oracles"),
        Tile(f"{len(comparison.problems):,}", f"instances in {groups}"),
        Tile(f"{len(comparison.questions):,}", "questions of density"),
        Tile(f"{calls:,}", f"calls, {duration(comparison.seconds)} in all"),
        Tile(f"{closed:,} of {len(references):,}", "references closed"),
        Tile(f"{failures:,}", "failures"),
        Tile(f"{violations:,}", "violations", bad=violations > 0),
    ]


def _records(comparison: Comparison) -> Facts:
    """Every oracle with the records of its runs, each once."""
    found = []
    for name in comparison.oracles:
        records = list(dict.fromkeys(run.record for run in comparison.runs_of(name)))
        shown = [record[:LONGEST] for record in records[:MOST_RECORDS]]
        more = len(records) - len(shown)
        found.append((name, shown + [f"… and {more:,} more"] * (more > 0)))
    return Facts("Records of the oracles", found, code=True)
