"""A run as a report shows it; of one comparison and nothing else, as that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

from mipmech.report.batch import pictures
from mipmech.report.batch.summary import (
    contradictions,
    labels,
    makers,
    notes,
    summary,
    title,
    without_result,
)
from mipmech.report.batch.tables import details, tables
from mipmech.report.comparison import view as comparison
from mipmech.report.kit.drawing import Pictures, legend_of
from mipmech.report.kit.gallery import gallery
from mipmech.report.kit.phrases import key_of
from mipmech.report.kit.view import ReportView, Tile, facts
from mipmech.report.reading import Batch
from mipmech.studies.batch.asking import Reference
from mipmech.studies.batch.export import COLUMNS, row_of
from mipmech.studies.batch.records import Record
from mipmech.studies.comparison.results import Problem
from mipmech.text import count, duration

# Set-ups that are shown.
MOST_MAKERS = 20


def view_of(batch: Batch, folder: Path) -> ReportView:
    """What is shown of a run."""
    if batch.alone:
        lost = [entry for entry in batch.failed if entry.task == "reference"]
        said = [*notes(batch), *without_result(lost)]
        return replace(comparison.view_of(batch.comparisons[0], folder, said), plan=batch.text)
    asked = [entry for entry in batch.entries if entry.task in ("oracle", "solve")]
    return ReportView(
        kind="batch of jobs",
        title=title(batch),
        summary=summary(batch),
        tiles=_tiles(batch),
        tables=tables(batch),
        details=details(batch),
        oracles=list(dict.fromkeys(entry.oracle for entry in asked if entry.oracle)),
        groups=batch.groups,
        counted="",
        pictures=lambda prefix: _pictures(batch, folder, prefix),
        facts=[
            facts(f"Made by, {count(number, 'job')}", made_by)
            for made_by, number in makers(batch)[:MOST_MAKERS]
        ],
        heads=list(COLUMNS),
        lines=lambda: _lines(batch),
        plan=batch.text,
        parts=[comparison.view_of(found, folder) for found in batch.comparisons],
        required=any(job.requirements is not None for job in batch.jobs.values()),
    )


def _lines(batch: Batch) -> Iterable[Sequence[Any]]:
    """Every record as `mipmech bench export` gives it; of one not understood, the job's id."""
    for key, record in batch.records.items():
        strange = {"id": key, "reason": "(this record could not be understood)"}
        found = strange if record is None else row_of(record)
        yield [found.get(name) for name in COLUMNS]


def _pictures(batch: Batch, folder: Path, prefix: str) -> list[Pictures]:
    wide = [*pictures.by_size(batch), *pictures.finished(batch), *pictures.gaps(batch)]
    found = [
        Pictures(
            "pictures", "Pictures", wide, "pictures", of="Kinds of jobs",
            legend=legend_of(pictures.kinds(batch), prefix),
        ),
        Pictures(
            "bounds", "Bounds: the longest certificates", pictures.bounds(batch),
            note="Coloured: the gain found; grey: the upper bound. One certificate per instance.",
        ),
    ]  # fmt: skip
    rules = best_rules(batch)
    shown = [section for section in found if section.pictures]
    required = any(entry.requirements is not None for entry in batch.of("certify"))
    return [*shown, gallery(rules, folder, prefix, required)] if rules else shown


def _tiles(batch: Batch) -> list[Tile]:
    done = len(batch.entries) - len(batch.failed)
    workers = len({entry.worker for entry in batch.entries if entry.worker})
    seconds = sum(entry.seconds for entry in batch.entries)
    infeasible = sum(entry.infeasible for entry in batch.of("certify"))
    strange, bugs = batch.odd + batch.damaged, len(contradictions(batch))
    found = [
        Tile(f"{len(batch.jobs):,}", "jobs"),
        Tile(f"{done:,}", "done"),
        Tile(f"{len(batch.failed):,}", "without a result"),
        Tile(f"{batch.missing:,}", "to come" if batch.busy else "missing"),
        Tile(f"{batch.size:,}", f"instances in {count(len(batch.groups), 'group')}"),
        Tile(duration(seconds), f"of work by {count(workers, 'worker')}"),
    ]
    found += [Tile(f"{infeasible:,}", "infeasible: no rule is allowed")] if infeasible else []
    found += [Tile(f"{strange:,}", "records not understood", bad=True)] if strange else []
    return found + ([Tile(f"{bugs:,}", "contradictions", bad=True)] if bugs else [])


def best_rules(batch: Batch) -> list[Problem]:
    """The best rule that a certificate found on each instance, with the least upper bound.

    Where jobs differ in requirements, one for each of those, told by their name.
    """
    found: dict[tuple[str, str], list[Record]] = {}
    for entry in batch.of("certify"):
        key = entry.instance.digest, key_of(entry.requirements)
        found.setdefault(key, []).append(entry)
    problems, names = [], labels(batch)
    for (_, required), entries in found.items():
        best = max(entries, key=lambda entry: -inf if entry.lower is None else entry.lower)
        least = min(entries, key=lambda entry: -inf if entry.upper is None else entry.upper)
        level = "attested" if least.bounds is None else least.bounds.level
        rule = (best.result or {}).get("mechanism")
        gain = Reference(best.lower, least.upper, level or "attested", 0.0, rule)
        subject = best.instance
        if required in names:
            subject = replace(subject, name=f"{subject.name} ({names[required]})")
        problems.append(Problem(**vars(subject), gain=gain, densities=()))
    return problems
