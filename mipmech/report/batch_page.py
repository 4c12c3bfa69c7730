"""The report on a batch as one HTML page; its comparisons stand below it, each with its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mipmech.report import batch_figures, figures
from mipmech.report.batch_reading import Batch, Entry
from mipmech.report.batch_tables import tables
from mipmech.report.batch_words import contradictions, makers, summary, title
from mipmech.report.gallery import gallery
from mipmech.report.page import view
from mipmech.report.rendering import entries, rendered, tile
from mipmech.report.tables import capped
from mipmech.report.writing import count, duration, moment
from mipmech.studies.batch.tasks import instance_file
from mipmech.studies.comparison.results import Bounds, Problem

# Set-ups that are shown.
MOST_MAKERS = 20


def page(batch: Batch, folder: Path) -> str:
    """The whole page."""
    found = [capped(table) for table in tables(batch)]
    pictures = [
        *batch_figures.by_size(batch),
        *batch_figures.finished(batch),
        *batch_figures.gaps(batch),
    ]
    bounds = batch_figures.bounds(batch)
    rules = best_rules(batch)
    shown = [
        view(comparison, folder, f"c{number}-", 3)
        for number, comparison in enumerate(batch.comparisons, 1)
    ]
    contents = [("summary", "Summary"), *((table.key, table.title) for table in found)]
    contents += [("pictures", "Pictures")] if pictures else []
    contents += [("bounds", "Bounds")] if bounds else []
    contents += [("gallery", "Gallery")] if rules else []
    contents += [("versions", "Plan and versions")]
    contents += [(f"c{number}", f"Comparison {number}") for number in range(1, len(shown) + 1)]
    return rendered(
        "batch.html",
        title=title(batch),
        kind="a batch",
        brand="batch of jobs",
        figures=_tiles(batch),
        contents=[*contents, ("reading", "How to read this")],
        batch=batch,
        summary=summary(batch),
        tables=found,
        oracles=list(dict.fromkeys(e.oracle for e in batch.entries if _in_a_table(e))),
        groups=list(dict.fromkeys(e.group for e in batch.entries)),
        legend=figures.legend(batch_figures.kinds(batch)),
        pictures=pictures,
        bounds=bounds,
        gallery=gallery(rules, folder),
        as_of="" if batch.newest is None else moment(batch.newest),
        makers=_makers(batch),
        comparisons=shown,
    )


def _in_a_table(entry: Entry) -> bool:
    return bool(entry.oracle) and entry.task in ("oracle", "solve")


def _tiles(batch: Batch) -> list[dict[str, Any]]:
    """The figures that everybody asks for first."""
    done = len(batch.entries) - len(batch.failed)
    groups = count(len(batch.groups), "group")
    instances = len({job.digest for job in batch.jobs.values()})
    workers = len({entry.worker for entry in batch.entries if entry.worker})
    seconds = sum(entry.seconds for entry in batch.entries)
    strange, bugs = batch.odd + batch.damaged, len(contradictions(batch))
    found = [
        tile(f"{len(batch.jobs):,}", "jobs"),
        tile(f"{done:,}", "done"),
        tile(f"{len(batch.failed):,}", "without a result"),
        tile(f"{batch.missing:,}", "to come" if batch.busy else "missing"),
        tile(f"{instances:,}", f"instances in {groups}"),
        tile(duration(seconds), f"of work by {count(workers, 'worker')}"),
    ]
    found += [tile(f"{strange:,}", "records not understood", bad=True)] if strange else []
    found += [tile(f"{bugs:,}", "contradictions", bad=True)] if bugs else []
    return found


def best_rules(batch: Batch) -> list[Problem]:
    """The best rule that a certificate found on each instance, as the gallery takes them."""
    best: dict[str, Entry] = {}
    least: dict[str, Entry] = {}
    for entry in batch.of("certify"):
        assert entry.lower is not None
        assert entry.upper is not None
        digest = entry.digest
        if digest not in best or entry.lower > (best[digest].lower or 0.0):
            best[digest] = entry
        if digest not in least or entry.upper < (least[digest].upper or 0.0):
            least[digest] = entry
    return [_problem(entry, least[digest]) for digest, entry in best.items()]


def _problem(best: Entry, least: Entry) -> Problem:
    gain = Bounds(best.lower or 0.0, least.upper or 0.0, least.level, least.seconds)
    return Problem(
        best.name, best.digest, best.group, instance_file(best.digest), best.agents, best.rank,
        gain, (), best.mechanism,
    )  # fmt: skip


def _makers(batch: Batch) -> Sequence[tuple[str, list[tuple[str, str]]]]:
    """Versions and machines, the most used first."""
    found = sorted(makers(batch), key=lambda entry: -entry[1])
    return [(count(number, "job"), entries(made_by)) for made_by, number in found[:MOST_MAKERS]]
