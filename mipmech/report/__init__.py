"""Reports: what is in a folder of results, as a page, as markdown or as a spreadsheet.

The page is one HTML file that needs nothing else: no network, no fonts, no files beside it. What
kind of report it becomes depends on the record that the folder holds (`KINDS`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, get_args

from mipmech import files
from mipmech.errors import InputError, did_you_mean, shorten
from mipmech.studies.batch import folder as run_folder
from mipmech.studies.comparison import results as comparison

Format = Literal["html", "md", "csv"]


def report(folder: str | Path, output: str | Path | None = None, format: Format = "html") -> str:
    """The text of a report on a folder; also written to ``output``, if given.

    folder : of a comparison, or of the run of a batch, which may be going on
    format : "html", one page; "md", summary and tables; "csv", one line per call or per job

    Raises `InputError` if the folder holds no record, or one that cannot be understood.
    """
    if format not in get_args(Format):
        known = ", ".join(get_args(Format))
        hint = did_you_mean(str(format), get_args(Format))
        raise InputError(f"is {shorten(format)}; give one of {known}{hint}", field="format")
    source = Path(folder)
    record, make = _kind(source)
    file = None if output is None else Path(output)
    if file is not None:
        _check_output(file, source, record)
    text = make(source, format)
    if file is not None:
        try:
            files.write(file, text.encode())
        except OSError as error:
            raise InputError(f"cannot be written: {files.reason(error)}", file=file) from None
    return text


def _comparison(folder: Path, format: Format) -> str:
    # Imported here: pictures and templates are slow to load, and not every format needs them.
    from mipmech.report.reading import read  # noqa: PLC0415

    found = read(folder)
    if format == "csv":
        from mipmech.report.spreadsheet import spreadsheet  # noqa: PLC0415

        return spreadsheet(found)
    if format == "md":
        from mipmech.report.markdown import markdown  # noqa: PLC0415

        return markdown(found)
    from mipmech.report.page import page  # noqa: PLC0415

    return page(found, folder)


def _batch(folder: Path, format: Format) -> str:
    from mipmech.report import batch_reading  # noqa: PLC0415

    if format == "csv":
        from mipmech.report.spreadsheet import jobs_spreadsheet  # noqa: PLC0415

        return jobs_spreadsheet(batch_reading.rows(folder))
    found = batch_reading.read(folder)
    if format == "md":
        from mipmech.report.batch_markdown import markdown  # noqa: PLC0415

        return markdown(found)
    from mipmech.report.batch_page import page  # noqa: PLC0415

    return page(found, folder)


# The record in a folder -> who makes its report; the first one found counts.
KINDS: dict[str, Callable[[Path, Format], str]] = {
    comparison.FILE: _comparison,
    run_folder.MARK: _batch,
}
MADE_BY = "give the folder that `mipmech compare --out` or `mipmech bench` made"


def _kind(folder: Path) -> tuple[str, Callable[[Path, Format], str]]:
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise InputError(f"{what}; {MADE_BY}", file=folder)
    for name, make in KINDS.items():
        if (folder / name).exists():
            return name, make
    raise InputError(f"holds no {' or '.join(KINDS)}; {MADE_BY}", file=folder)


def _check_output(file: Path, folder: Path, record: str) -> None:
    """Refuse before the work what would fail after it, or destroy what the report is made from."""
    if not file.resolve().parent.is_dir():
        raise InputError("is in no folder; make it first", file=file)
    if file.is_dir():
        raise InputError("is a folder; give the name of a file", file=file)
    inside = file.resolve().is_relative_to(folder.resolve())
    part = file.suffix in (".json", ".jsonl", ".npy") or file.name == run_folder.LOCK
    if file.resolve() == (folder / record).resolve() or (inside and part):
        raise InputError("is part of what the report is made from; choose another name", file=file)
