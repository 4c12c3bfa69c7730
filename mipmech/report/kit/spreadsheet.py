"""A view as CSV, for programs and spreadsheets."""

from __future__ import annotations

import csv
import io

from mipmech.model.tables import guarded
from mipmech.report.kit.view import ReportView


def spreadsheet(view: ReportView) -> str:
    """One line per call of a comparison, or per job of a batch."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(view.heads)
    writer.writerows([guarded(entry) for entry in line] for line in view.lines())
    return stream.getvalue()
