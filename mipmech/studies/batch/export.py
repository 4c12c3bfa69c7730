"""The records of a run as one table: a line for each job."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from mipmech import files
from mipmech.errors import InputError
from mipmech.model.tables import guarded
from mipmech.studies.batch.folder import RunFolder
from mipmech.studies.batch.records import Record

Format = Literal["csv", "parquet"]

# Column -> its type in a parquet file, and what a record has there.
COLUMNS: dict[str, tuple[str, Callable[[Record], Any]]] = {
    **{name: ("string", attrgetter(name)) for name in ("id", "status", "reason")},
    "attempt": ("int64", attrgetter("attempt")),
    "task": ("string", attrgetter("task")),
    "instance": ("string", attrgetter("instance.name")),
    **{name: ("string", attrgetter(f"instance.{name}")) for name in ("digest", "group")},
    **{name: ("int64", attrgetter(f"instance.{name}")) for name in ("agents", "rank")},
    "oracle": ("string", lambda record: record.options.get("oracle")),
    "engine": ("string", lambda record: record.options.get("engine")),
    "eta": ("float64", lambda record: record.options.get("eta")),
    "eta_fraction": ("float64", lambda record: record.options.get("eta_fraction")),
    **{name: ("int64", attrgetter(name)) for name in ("seed", "repetition")},
    "what": ("string", lambda record: record.bounds and record.bounds.what),
    "outcome": ("string", lambda record: record.bounds and record.bounds.status),
    **{name: ("float64", attrgetter(name)) for name in ("lower", "upper", "gap")},
    "level": ("string", lambda record: record.bounds and record.bounds.level),
    "allowed_seconds": ("float64", attrgetter("allowed.seconds")),
    "seconds": ("float64", attrgetter("seconds")),
    "memory": ("int64", attrgetter("memory")),
    "started": ("string", lambda record: record.started and record.started.isoformat()),
    "ended": ("string", lambda record: record.ended.isoformat()),
    "worker": ("string", attrgetter("worker")),
    "version": ("string", lambda record: (record.made_by or {}).get("version")),
    "certificate": ("string", attrgetter("certificate")),
    "options": (
        "string", lambda record: json.dumps(record.options, ensure_ascii=False, sort_keys=True)
    ),
}  # fmt: skip


def export_run(path: str | Path, output: str | Path | None, format: Format = "csv") -> str | None:
    """Write the table of a run to a file; as csv without one, return its text.

    parquet needs pyarrow: ``pip install mipmech[parquet]``.
    """
    folder = RunFolder.open(path)
    rows = [row_of(record) for record in folder.records(whole=False).last.values()]
    if format == "parquet":
        if output is None:
            raise InputError("is missing: a parquet file needs a name, -o FILE", field="output")
        files.write(Path(output), _parquet(rows))
        return None
    if format != "csv":
        raise InputError(f"is {format!r}; give csv or parquet", field="format")
    text = csv_text(list(COLUMNS), [row.values() for row in rows])
    if output is not None:
        files.write(Path(output), text.encode())
    return text


def row_of(record: Record) -> dict[str, Any]:
    """The columns of a record; None where there is no value, or one of another type."""
    return {name: _fitting(get(record), kind) for name, (kind, get) in COLUMNS.items()}


def _fitting(value: Any, kind: str) -> Any:
    """A value as its column has it: options of a stranger's record may be anything."""
    if value is None or kind == "string":
        return None if value is None else str(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if kind == "float64" else value


def csv_text(heads: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table as CSV, for programs and spreadsheets."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows([guarded(entry) for entry in row] for row in rows)
    return buffer.getvalue()


def _parquet(rows: list[dict[str, Any]]) -> bytes:
    try:
        import pyarrow  # noqa: PLC0415  (an extra)
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError:
        said = "parquet needs pyarrow: pip install 'mipmech[parquet]'; or give csv"
        raise InputError(said, field="format") from None
    types = {"string": pyarrow.string(), "int64": pyarrow.int64(), "float64": pyarrow.float64()}
    schema = pyarrow.schema([(name, types[kind]) for name, (kind, _) in COLUMNS.items()])
    table = pyarrow.Table.from_pylist(rows, schema=schema)
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(table, buffer)
    return buffer.getvalue()
