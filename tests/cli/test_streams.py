"""Streams that are closed or full, and terminals without columns: never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT

SQUARE = str(ROOT / "instances" / "tiny" / "square.json")


def run(shell_line, **variables):
    """The exit status, and what came on stderr."""
    line = shell_line.replace("mipmech", f"{sys.executable} -m mipmech").replace("FILE", SQUARE)
    done = subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, env={**os.environ, **variables},
        timeout=60, check=False,
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("mipmech show FILE >&-", 0),
        ("mipmech show FILE 2>&-", 0),
        ("mipmech show FILE | head -1", 0),
        ("mipmech show absent.json 2>&-", 2),
        ("mipmech show absent.json 2>/dev/full", 2),
        ("mipmech show FILE >/dev/full 2>/dev/full", 2),
    ],
)
def test_closed_and_full_streams(line, status):
    assert run(line) == (status, "")


@pytest.mark.slow
def test_a_closed_input_asks_nothing(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("a,b\n1,2\n")
    status, said = run(f"mipmech new {table} -o {tmp_path}/new.json <&-")
    assert status == 2
    assert said.startswith("error: ")
    assert said.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("columns", ["0", "1", "-3"])
def test_terminals_without_columns(columns):
    assert run("mipmech show FILE", COLUMNS=columns) == (0, "")
