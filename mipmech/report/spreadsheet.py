"""The report as CSV: one line per call, for programs and spreadsheets."""

from __future__ import annotations

import csv
import io

from mipmech.comparison import Comparison
from mipmech.report.tables import CALLS, calls
from mipmech.tables import guarded


def spreadsheet(comparison: Comparison) -> str:
    """The whole text."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(CALLS)
    writer.writerows([guarded(entry) for entry in row] for row in calls(comparison))
    return stream.getvalue()
