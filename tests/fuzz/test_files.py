"""Damaged and hostile files, by the thousand: every command ends with a result or with one error.

`make test` tries a few of each kind, `make test-long` as many as FUZZ_CASES says (20,000, divided
by what a case of the kind costs), and tells how many there were. A case is a kind and a number, and
the same everywhere; a failure names both.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import unicodedata
from pathlib import Path
from random import Random

import pytest

from mipmech.cli import main
from mipmech.text import LONGEST_LINE
from tests.fuzz.kinds import KINDS

CASES = int(os.environ.get("FUZZ_CASES", "20000"))
# In `make test`, of each kind: so many, divided by the root of what one costs.
FEW = 120
# The long campaign goes in so many parts, which run side by side.
PARTS = 8


def few(kind: str) -> int:
    return round(FEW / KINDS[kind][1] ** 0.5)


def run(arguments: list[str], encoding: str = "utf-8") -> tuple[int, str, str]:
    """A command in this process, on streams like those of a terminal."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2)]
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = streams
    try:
        status = main(arguments)
    finally:
        sys.stdout, sys.stderr = before
    out, err = (stream.buffer.getvalue() for stream in _flushed(streams))
    return status, out.decode(encoding), err.decode(encoding)


def _flushed(streams: list[io.TextIOWrapper]) -> list[io.TextIOWrapper]:
    for stream in streams:
        stream.flush()
    return streams


def assert_harmless(text: str) -> None:
    """Nothing in it acts on a terminal, and no line of it is endless."""
    for character in set(text) - set("\n\u200c\u200d"):
        assert unicodedata.category(character) not in ("Cc", "Cf", "Cs"), repr(character)
    assert max(map(len, text.split("\n"))) <= LONGEST_LINE


def assert_well_behaved(status: int, out: str, err: str) -> None:
    assert status in (0, 1, 2)
    assert_harmless(out)
    assert_harmless(err)
    assert err.count("\n") <= 1
    assert (status == 2) == err.startswith("error: ")


def try_case(kind: str, number: int, folder: Path) -> None:
    """One case; a failure says which, and leaves its files in the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    random = Random(f"{kind} {number}")
    commands, holds = KINDS[kind][0](folder, random)
    for arguments in commands:
        try:
            as_json = random.random() < 0.2
            status, out, err = run([*arguments, *["--json"] * as_json])
            if as_json:
                assert (status in (0, 1, 2), err) == (True, "")
                assert (status == 2) == ("error" in json.loads(out))
            else:
                assert_well_behaved(status, out, err)
                holds(out)
        except BaseException as error:
            error.add_note(f"fuzz: {kind}, case {number}: {' '.join(arguments)}")
            raise


@pytest.mark.parametrize("kind", KINDS)
def test_a_few(kind, tmp_path, record_property):
    for number in range(few(kind)):
        try_case(kind, number, tmp_path / "case")
    record_property("fuzzed", [kind, few(kind)])


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", KINDS)
def test_many(kind, part, tmp_path, record_property):
    numbers = range(few(kind) + part, few(kind) + CASES // KINDS[kind][1], PARTS)
    for number in numbers:
        try_case(kind, number, tmp_path / "case")
    record_property("fuzzed", [kind, len(numbers)])
