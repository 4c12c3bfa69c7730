"""The records of a run as one table: a line for each job."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from mipmech import files
from mipmech.errors import InputError
from mipmech.model.tables import guarded
from mipmech.studies.batch.folder import RunFolder
from mipmech.studies.batch.records import Record

Format = Literal["csv", "parquet"]

# Column -> the type that it has in a parquet file.
COLUMNS: dict[str, str] = {
    "id": "string", "status": "string", "reason": "string", "attempt": "int64",
    "task": "string", "instance": "string", "digest": "string", "group": "string",
    "agents": "int64", "rank": "int64", "oracle": "string", "engine": "string",
    "eta": "float64", "eta_fraction": "float64", "seed": "int64", "repetition": "int64",
    "what": "string", "outcome": "string", "lower": "float64", "upper": "float64",
    "gap": "float64", "level": "string", "allowed_seconds": "float64", "seconds": "float64",
    "memory": "int64", "started": "string", "ended": "string", "worker": "string",
    "version": "string", "certificate": "string", "options": "string",
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
        _write(Path(output), _parquet(rows))
        return None
    if format != "csv":
        raise InputError(f"is {format!r}; give csv or parquet", field="format")
    text = _csv(rows)
    if output is not None:
        _write(Path(output), text.encode())
    return text


def row_of(record: Record) -> dict[str, Any]:
    """The columns of a record; None where it has nothing to say."""
    options, instance, bounds = record.options, record.instance, record.bounds
    return {
        "id": record.id,
        "status": record.status,
        "reason": record.reason,
        "attempt": record.attempt,
        "task": record.task,
        "instance": instance.name,
        "digest": instance.digest,
        "group": instance.group,
        "agents": instance.agents,
        "rank": instance.rank,
        "oracle": options.get("oracle"),
        "engine": options.get("engine"),
        "eta": options.get("eta"),
        "eta_fraction": options.get("eta_fraction"),
        "seed": record.seed,
        "repetition": record.repetition,
        "what": None if bounds is None else bounds.what,
        "outcome": None if bounds is None else bounds.status,
        "lower": record.lower,
        "upper": record.upper,
        "gap": record.gap,
        "level": None if bounds is None else bounds.level,
        "allowed_seconds": record.allowed.seconds,
        "seconds": record.seconds,
        "memory": record.memory,
        "started": None if record.started is None else record.started.isoformat(),
        "ended": record.ended.isoformat(),
        "worker": record.worker,
        "version": (record.made_by or {}).get("version"),
        "certificate": record.certificate,
        "options": json.dumps(options, ensure_ascii=False, sort_keys=True),
    }


def _csv(rows: Iterable[dict[str, Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: guarded(value) for name, value in row.items()})
    return buffer.getvalue()


def _parquet(rows: list[dict[str, Any]]) -> bytes:
    try:
        import pyarrow  # noqa: PLC0415  (an extra)
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError:
        said = "parquet needs pyarrow: pip install 'mipmech[parquet]'; or give csv"
        raise InputError(said, field="format") from None
    types = {"string": pyarrow.string(), "int64": pyarrow.int64(), "float64": pyarrow.float64()}
    schema = pyarrow.schema([(name, types[kind]) for name, kind in COLUMNS.items()])
    table = pyarrow.Table.from_pylist(rows, schema=schema)
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(table, buffer)
    return buffer.getvalue()


def _write(file: Path, content: bytes) -> None:
    try:
        files.write(file, content)
    except OSError as error:
        raise InputError(f"cannot be written: {files.reason(error)}", file=file) from None
