"""Agents from a CSV or npy file that lies beside an instance file.

Such files are not trusted: they are read as data only (never unpickled), from the instance's folder
only, and a header that promises more than the file holds is refused.
"""

from __future__ import annotations

import csv
import io
import os
import re
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from mipmech import files
from mipmech.errors import InputError, shorten
from mipmech.validation import Floats

FIELD = "agents"
# A header of a plain array takes about a hundred bytes.
LONGEST_NPY_HEADER = 10_000


def _fault(path: Path, message: str, row: int | None = None) -> InputError:
    return InputError(message, file=path, field=FIELD, row=row)


def read_csv(path: Path) -> tuple[Floats, tuple[str, ...]]:
    """Agents and feature names: a header line, then a line of numbers per agent."""
    text = files.read_text(path)
    # Leaving out the line numbers makes the usual case fast; a fault is looked up afterwards.
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, [])
        lines = list(reader)
    except csv.Error as error:
        raise _fault(path, f"line {reader.line_num} is not CSV: {error}") from None
    _check_header(header, path)
    _check_separator(header, lines, path)
    while lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise _fault(path, "has a header but no agents; add a line per agent")
    width = len(header)
    body = re.split(r"[\r\n]", text, maxsplit=1)[-1]
    if {len(line) for line in lines} != {width} or not body.isascii() or "_" in body:
        _find_fault(lines, header, path)
    try:
        flat = np.fromiter(map(float, chain.from_iterable(lines)), np.float64)
    except ValueError:
        _find_fault(lines, header, path)
        raise  # a cell that float() refuses is always found above
    return flat.reshape(len(lines), width), tuple(name.strip() for name in header)


def _check_header(header: list[str], path: Path) -> None:
    if not header:
        raise _fault(path, "is empty; start with a header line of feature names")
    if all(is_number(cell) for cell in header):
        raise _fault(
            path,
            "starts with numbers; the first line must name the features (a line of numbers there"
            " would be lost as an agent)",
        )


def _check_separator(header: list[str], lines: list[list[str]], path: Path) -> None:
    """Recognise the tables that spreadsheets and pandas write by default."""
    for mark, name in ((";", "semicolons"), ("\t", "tabs")):
        if len(header) == 1 and mark in header[0]:
            said = f"is separated by {name}; save it with commas, and with points in the numbers"
            raise _fault(path, said)
    if len(header) > 1 and not header[0].strip():
        numbered = [line[0] for line in lines if line] == [str(i) for i in range(len(lines))]
        remedy = ", which counts the rows; write it with index=False" if numbered else "; name it"
        raise _fault(path, "has a first column without a name" + remedy)


def is_number(cell: str) -> bool:
    """Whether a cell is a plain number."""
    try:
        float(cell)
    except ValueError:
        return False
    # float() also takes 1_000 and digits of other scripts; a data file does not mean those.
    return cell.isascii() and "_" not in cell


def _find_fault(lines: list[list[str]], header: list[str], path: Path) -> None:
    """Raise for the first bad row, if there is one."""

    def fail(row: int, message: str) -> NoReturn:
        # A quoted cell may span lines; then the number of the line is not known.
        line = "" if any("\n" in cell for line in lines for cell in line) else f" (line {row + 2})"
        raise _fault(path, message + line, row)

    for row, line in enumerate(lines):
        if not line:
            fail(row, "is a blank line; remove it")
        if len(line) != len(header):
            fail(row, f"has {len(line)} cells, the header has {len(header)}; fill or remove it")
        for name, cell in zip(header, line, strict=True):
            if not cell.strip():
                fail(row, f"has no number under {shorten(name)}; fill it in or leave the row out")
            if not is_number(cell):
                fail(row, f"has {shorten(cell)} under {shorten(name)}; expected a plain number")


def read_npy(path: Path) -> NDArray[Any]:
    """Agents from a two-dimensional npy array of numbers."""

    def fail(message: str) -> NoReturn:
        raise _fault(path, message)

    with path.open("rb") as stream:
        try:
            version = np.lib.format.read_magic(stream)
            read_header = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }[version]
            shape, _fortran, dtype = read_header(stream, max_header_size=LONGEST_NPY_HEADER)
        except KeyError:
            fail("is an npy file of an unknown version; save it again with numpy.save")
        except (ValueError, OverflowError, MemoryError, RecursionError):
            fail("is not an npy file; write one with numpy.save(file, array)")
        if dtype.hasobject:
            fail("holds pickled Python objects, which are never loaded; save an array of float64")
        if dtype.kind not in "fiu" or dtype.itemsize > 8:
            fail(f"holds values of type {dtype}; save an array of float64")
        if len(shape) != 2:
            fail(f"has {len(shape)} dimensions; agents are rows and features columns")
        if min(shape) < 0:
            fail("has a shape with negative sizes; save it again with numpy.save")
        promised = dtype.itemsize * int(shape[0]) * int(shape[1])
        held = os.fstat(stream.fileno()).st_size - stream.tell()
        if promised > held:
            fail(f"is cut off: its header promises {promised} bytes of data, it has {held}")
        stream.seek(0)
        try:
            array = np.lib.format.read_array(stream, allow_pickle=False)
        except ValueError:
            fail("cannot be read; save it again with numpy.save")
    return array  # checked further with every other array


# Spreadsheets run text that begins with one of these as a formula (the wide forms by some, too).
FORMULAS = tuple("=+-@＝＋－＠")


def guarded(entry: Any) -> Any:
    """An entry of a table that no spreadsheet runs; numbers stay as they are.

    >>> guarded("=1+1"), guarded("cells"), guarded(-0.5)
    ("'=1+1", 'cells', -0.5)
    """
    if isinstance(entry, str) and entry.lstrip().startswith(FORMULAS):
        return "'" + entry
    return entry
