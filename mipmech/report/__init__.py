"""Reports: what is in a run's folder, as a page, as markdown or as a spreadsheet.

The page is one HTML file that needs nothing else: no network, no fonts, no files beside it.

    reading      a run's folder, also half written, also a stranger's
    comparison   what is shown of a comparison
    batch        what is shown of any other run; its comparisons stand below
    kit          page, table, sentence, picture: what both are made of
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from mipmech import files
from mipmech.errors import InputError, did_you_mean, shorten
from mipmech.studies.batch.export import csv_text
from mipmech.studies.batch.folder import LOCK, MARK, RunFolder
from mipmech.studies.learning.results import FILE as LEARNED

if TYPE_CHECKING:
    from mipmech.report.kit.view import ReportView

Format = Literal["html", "md", "csv"]


def report(folder: str | Path, output: str | Path | None = None, format: Format = "html") -> str:
    """The text of a report on a run's folder; also written to ``output``, if given.

    The run, of a comparison or a batch, may be going on. "html" is one page, "md" the summary and
    the tables, "csv" a line for each call of a comparison, or for each job of a batch.
    """
    # Imported here: pictures and templates are slow to load.
    from mipmech.report.batch.view import view_of  # noqa: PLC0415
    from mipmech.report.kit.markdown import markdown  # noqa: PLC0415
    from mipmech.report.kit.page import page  # noqa: PLC0415
    from mipmech.report.reading import read  # noqa: PLC0415

    makers: dict[Format, Callable[[ReportView], str]] = {
        "html": page,
        "md": markdown,
        "csv": lambda view: csv_text(view.heads, view.lines()),
    }
    if format not in makers:
        hint = did_you_mean(str(format), get_args(Format))
        known = ", ".join(get_args(Format))
        raise InputError(f"is {shorten(format)}; give one of {known}{hint}", field="format")
    source = Path(folder)
    check_source(source)
    file = None if output is None else Path(output)
    if file is not None:
        _check_output(file, source)
    text = makers[format](view_of(read(source), source))
    if file is not None:
        files.write(file, text.encode())
    return text


def check_source(folder: Path) -> None:
    """Refuse what holds no run, before the work."""
    if folder.name == LEARNED or (
        os.path.exists(folder / LEARNED) and not os.path.exists(folder / MARK)
    ):
        said = "is a learning curve, which has no report: mipmech learn --plot draws it; a report"
        said += " takes the folder of a run, the --out of bench or compare"
        raise InputError(said, file=folder)
    RunFolder.open(folder)


def _check_output(file: Path, folder: Path) -> None:
    """Refuse before the work what would fail after it, or destroy what the report is made from."""
    if not file.resolve().parent.is_dir():
        raise InputError("is in no folder; make it first", file=file)
    if file.is_dir():
        raise InputError("is a folder; give the name of a file", file=file)
    inside = file.resolve().is_relative_to(folder.resolve())
    part = file.suffix in (".json", ".jsonl", ".npy") or file.name in (LOCK, MARK)
    if inside and part:
        raise InputError("is part of what the report is made from; choose another name", file=file)
