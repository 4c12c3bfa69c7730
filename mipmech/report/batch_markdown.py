"""The report on a batch as GitHub markdown: summary and tables, then those of its comparisons."""

from __future__ import annotations

from mipmech.report.batch_reading import Batch
from mipmech.report.batch_tables import tables
from mipmech.report.batch_words import summary, title
from mipmech.report.markdown import markdown as compared
from mipmech.report.markdown import written


def markdown(batch: Batch) -> str:
    """The whole text."""
    parts = [written(title(batch), summary(batch), tables(batch))]
    parts += [
        compared(comparison, 2, f"Comparison {number}: ")
        for number, comparison in enumerate(batch.comparisons, 1)
    ]
    return "\n".join(parts)
