"""Records that no run wrote: they are counted, and every command goes on or says what is wrong."""

from __future__ import annotations

import copy
import json
import math
import zlib

import pytest

from mipmech.cli import main
from mipmech.studies.batch import RunFolder, status_of
from mipmech.studies.batch.folder import RECORDS
from mipmech.text import LONGEST_LINE
from tests.fuzz.mutations import nested
from tests.report.runs import everything, line

HUGE = 10**400


def changed(record, path, value):
    """A copy of a record with another value at a dotted path."""
    found = copy.deepcopy(record)
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    place = found
    for part in way:
        place = place[part]
    place[last] = value
    return line(found)


def of_task(record, task):
    return record["task"] == task and record["status"] == "done"


# What is done to a record of a task, and whether it can still be read.
FAULTS = {
    "a whole number of 30 digits in a trace": ("ask", "result.calls.0.trace.0.0", 10**30, True),
    "a number beyond floats in a trace": ("ask", "result.calls.0.trace.0.0", HUGE, False),
    "half a character in a result": ("certify", "result.mechanism", {"\ud800": "\ud800"}, True),
    "half a character in a reason": ("oracle", "reason", "\ud800\x1b[2J", True),
    "NaN in a result": ("certify", "result.mechanism", {"weights": [math.nan]}, False),
    "infinity in a result": ("certify", "result.mechanism", {"weights": [math.inf]}, False),
    "a number beyond floats in options": ("oracle", "options.eta", HUGE, False),
    "a seed beyond 64 bits": ("oracle", "options.options", {"seed": 10**30}, True),
    "a negative count": ("solve", "result.oracle_calls", {"made": -1, "skipped": 0}, True),
    "a negative attempt": ("solve", "attempt", -1, False),
    "negative seconds": ("solve", "seconds", -1.0, False),
    "no such status": ("solve", "status", "[/red]", False),
    "nested deeply": ("certify", "result.mechanism", nested(300), True),
    "ten megabytes": ("certify", "result.mechanism", "x" * 10**7, True),
    "ten megabytes of keys": ("solve", "options.options", {"k" * 10**7: 1}, True),
}
COMMANDS = (
    ("bench", "status", "run"),
    ("bench", "export", "run", "-o", "table.csv"),
    ("bench", "export", "run", "--format", "parquet", "-o", "table.parquet"),
    ("bench", "merge", "run", "--out", "merged"),
    ("report", "run", "--format", "md", "-o", "page.md"),
    ("report", "run", "--format", "csv", "-o", "page.csv"),
    ("report", "run", "-o", "page.html"),
)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_every_command_goes_on(tmp_path, monkeypatch, capsys, fault):
    monkeypatch.chdir(tmp_path)
    task, path, value, readable = FAULTS[fault]
    made = everything(1, 1)
    folder = made.write(tmp_path / "run")
    place = next(n for n, record in enumerate(made.records) if of_task(record, task))
    rows = [line(record) for record in made.records]
    rows[place] = changed(made.records[place], path, value)
    (folder / RECORDS).write_bytes(b"".join(rows))
    assert status_of(folder).damaged == (not readable)
    for arguments in COMMANDS:
        assert main(list(arguments)) == 0
        out, err = capsys.readouterr()
        assert err == ""
        assert max(map(len, out.splitlines()), default=0) <= LONGEST_LINE
    merged = RunFolder.open(tmp_path / "merged").records()
    assert (len(merged.last), merged.damaged) == (len(rows) - (not readable), 0)
    assert merged.last == RunFolder.open(folder).records().last


def test_a_damaged_record_is_named_and_done_again(tmp_path, capsys):
    sample = str(tmp_path / "a.json")
    main(["make", "ties", "--agents", "12", "-o", sample])
    command = [
        "compare", sample, "--oracles", "random", "--etas", "0.5", "--seeds", "0", "--workers", "1",
        "--seconds-per-call", "0.5", "--reference-seconds", "1", "--quiet",
        "--out", str(tmp_path / "run"),
    ]  # fmt: skip
    assert main(command) == 0
    file = tmp_path / "run" / RECORDS
    rows = file.read_bytes().splitlines(keepends=True)
    place = next(n for n, row in enumerate(rows) if json.loads(row)["task"] == "ask")
    body = rows[place].rpartition(b',"check"')[0].replace(b'"trace":[[', b'"trace":[[1e999,0,0],[')
    assert body != rows[place].rpartition(b',"check"')[0]
    rows[place] = body + b',"check":"%08x"}\n' % zlib.crc32(body)
    file.write_bytes(b"".join(rows))
    capsys.readouterr()
    assert main(["bench", "status", str(tmp_path / "run")]) == 0
    assert "1 records cannot be read" in capsys.readouterr().out
    assert main(command) == 0
    assert status_of(tmp_path / "run").counts == {"done": 3}
