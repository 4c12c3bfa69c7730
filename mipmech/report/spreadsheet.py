"""The report as CSV, for programs and spreadsheets: one line per call, or per job of a batch."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from mipmech.model.tables import guarded
from mipmech.report.batch_reading import Entry
from mipmech.report.tables import CALLS, calls
from mipmech.studies.batch.export import COLUMNS, row_of
from mipmech.studies.comparison.results import Comparison


def spreadsheet(comparison: Comparison) -> str:
    """The calls of a comparison."""
    return _text(CALLS, calls(comparison))


def jobs_spreadsheet(rows: Iterable[Entry | str]) -> str:
    """The records of a batch, as `mipmech bench export` gives them.

    rows : records, or the ids of jobs whose records are not understood
    """
    return _text(list(COLUMNS), map(_job, rows))


def _job(row: Entry | str) -> list[Any]:
    if isinstance(row, Entry):
        return list(row_of(row.record).values())
    told = {"id": row, "reason": "(this record could not be understood)"}
    return [told.get(name) for name in COLUMNS]


def _text(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows([guarded(entry) for entry in row] for row in rows)
    return stream.getvalue()
