"""The report as CSV: one line per call, for programs and spreadsheets."""

from __future__ import annotations

import csv
import io

from mipmech.comparison import Comparison
from mipmech.report.tables import CALLS, Entry, calls

# A text that begins so is run as a formula by spreadsheets (the wide forms by some, too).
FORMULAS = tuple("=+-@＝＋－＠")


def spreadsheet(comparison: Comparison) -> str:
    """The whole text."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(CALLS)
    writer.writerows([guarded(entry) for entry in row] for row in calls(comparison))
    return stream.getvalue()


def guarded(entry: Entry) -> Entry:
    """An entry that no spreadsheet runs; numbers stay as they are.

    >>> guarded("=1+1"), guarded("cells"), guarded(-0.5)
    ("'=1+1", 'cells', -0.5)
    """
    if isinstance(entry, str) and entry.lstrip().startswith(FORMULAS):
        return "'" + entry
    return entry
