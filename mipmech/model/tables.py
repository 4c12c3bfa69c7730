"""Agents from CSV and npy files.

Files beside an instance are not trusted: they are read as data only (never unpickled), from the
instance's folder only, and a header that promises more than the file holds is refused.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from mipmech import files
from mipmech.errors import InputError, did_you_mean, shorten
from mipmech.text import clean, short
from mipmech.validation import Floats

FIELD = "agents"
# A header of a plain array takes about a hundred bytes.
LONGEST_NPY_HEADER = 10_000
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
# In a message; the middle of a longer list is left out.
LONGEST_LIST = 200
# What people and programs write where there is no number.
MISSING = frozenset({"", ".", "-", "?", "na", "n/a", "nan", "null", "none", "missing"})
# A number with a decimal comma, and one that may as well have a comma between its thousands.
WITH_COMMA = re.compile(r"[+-]?\d*(,\d+)?([eE][+-]?\d+)?")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}[,.]\d{3}")


def _fault(path: Path, message: str, row: int | None = None, field: str = FIELD) -> InputError:
    return InputError(message, file=path, field=field, row=row)


def unknown_column(name: str, known: Sequence[str], field: str) -> InputError:
    """The error for a column that is not there."""
    said = f"there is no column {shorten(name)}; there are {listed_columns(known)}"
    return InputError(said + did_you_mean(name, known), field=field)


def listed_columns(names: Sequence[str]) -> str:
    """The names of columns in a message."""
    return short(clean(", ".join(names)), LONGEST_LIST)


@dataclass(frozen=True, eq=False, repr=False)
class CsvTable:
    """A CSV file as read: text, of which some columns are numbers.

    path : the file
    names : the header, without blanks around the names
    lines : the cells of every row, as many as there are names
    simple : whether no cell holds an underscore or a character outside ASCII
    mark : what separates the cells
    where : the line of the file on which each row ends, if known
    doubtful : columns whose points may stand between thousands
    """

    path: Path
    names: tuple[str, ...]
    lines: list[list[str]]
    simple: bool
    mark: str = ","
    where: Sequence[int] | None = None
    doubtful: frozenset[str] = frozenset()

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.lines)

    def place(self, name: str, field: str = FIELD) -> int:
        """Where a column stands; refused if there is none, or several."""
        found = [j for j, known in enumerate(self.names) if known == name]
        if not found:
            raise unknown_column(name, self.names, field).located(self.path)
        if len(found) > 1:
            said = f"names {shorten(name)}, but there are {len(found)} such columns; rename them"
            raise _fault(self.path, said, field=field)
        return found[0]

    def texts(self, name: str, field: str = FIELD) -> list[str]:
        """A column as it stands, without blanks around the cells."""
        return [cell.strip() for cell in map(itemgetter(self.place(name, field)), self.lines)]

    def numbers(self, names: Sequence[str], field: str = FIELD, hint: str = "") -> Floats:
        """Columns of numbers, one row per agent; the hint is for a column that is all text."""
        places = [self.place(name, field) for name in names]
        for name in self.doubtful.intersection(names):
            cell = next(cell for cell in self.texts(name) if "." in cell)
            said = (
                f"has {shorten(cell)} under {shorten(name)}, which may be read in two ways; write"
            )
            said += f" {cell.replace('.', '')} or {cell}0, and all of the column so"
            raise _fault(self.path, said, field=field)
        shape = (len(self.lines), len(places))
        if self.simple or _is_simple("".join(self._cells(places))):
            try:
                flat = np.fromiter(map(float, self._cells(places)), np.float64, shape[0] * shape[1])
                return flat.reshape(shape)
            except ValueError:
                pass
        raise self._first_fault(places, field, hint)

    def _cells(self, places: Sequence[int]) -> Iterator[str]:
        """The cells of some columns, row by row."""
        if list(places) == list(range(len(self.names))):
            return chain.from_iterable(self.lines)
        if len(places) == 1:
            return map(itemgetter(places[0]), self.lines)
        return chain.from_iterable(map(itemgetter(*places), self.lines))

    def _first_fault(self, places: Sequence[int], field: str, hint: str) -> InputError:
        for row, line in enumerate(self.lines):
            for place in places:
                name, cell = shorten(self.names[place]), line[place]
                if not is_number(cell):
                    said = f"has {shorten(cell)} under {name}; expected a plain number"
                    if not cell.strip():
                        said = f"has no number under {name}; fill it in or leave the row out"
                    said += self.line(row)
                    only_text = not any(is_number(other[place]) for other in self.lines)
                    return _fault(self.path, said + hint * only_text, row, field)
        raise AssertionError("float() refused a cell that is a plain number")

    def line(self, row: int) -> str:
        """The line of the file on which a row is, in brackets, if that is known."""
        if self.where is not None:
            return f" (line {self.where[row]})"
        # A quoted cell may span lines; then the number of the line is not known.
        broken = any("\n" in cell for line in self.lines for cell in line)
        return "" if broken else f" (line {row + 2})"

    @cached_property
    def numeric(self) -> tuple[str, ...]:
        """The columns that hold numbers, and at most a few gaps; those without a name excepted."""
        found = []
        for place, name in enumerate(self.names):
            cells = [line[place] for line in self.lines]
            held = [cell for cell in cells if not is_missing(cell)]
            if name and held and all(is_number(cell.strip()) for cell in held):
                found.append(name)
        found = [name for name in found if name not in self.doubtful]
        return tuple(found)

    def gaps(self, names: Iterable[str]) -> list[int]:
        """The rows without a number in one of these columns."""
        places = [self.place(name) for name in names]
        return [i for i, li in enumerate(self.lines) if any(is_missing(li[p]) for p in places)]

    def without(self, rows: Iterable[int]) -> CsvTable:
        """The table without some rows."""
        dropped = set(rows)
        kept = [i for i in range(self.size) if i not in dropped]
        where = None if self.where is None else [self.where[i] for i in kept]
        return replace(self, lines=[self.lines[i] for i in kept], where=where)


def read_csv(path: Path) -> CsvTable:
    """A table in the format of instance files: commas between cells, a row on every line."""
    text = files.read_text(path)
    # Leaving out the line numbers makes the usual case fast; a fault is looked up afterwards.
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, [])
        lines = list(reader)
    except csv.Error as error:
        raise _fault(path, f"line {reader.line_num} is not CSV: {error}") from None
    _check_header(header, path)
    for mark, name in SEPARATORS.items():
        if len(header) == 1 and mark in header[0]:
            raise _fault(
                path,
                f"is separated by {name}; save it with commas, and with points in the numbers,"
                f" or let 'mipmech new' read it",
            )
    while lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise _fault(path, "has a header but no agents; add a line per agent")
    body = re.split(r"[\r\n]", text, maxsplit=1)[-1]
    table = CsvTable(path, tuple(n.strip() for n in header), lines, _is_simple(body))
    if {len(line) for line in lines} != {len(header)}:
        _fail_at_an_odd_line(table)
    return table


def read_any_csv(path: Path) -> CsvTable:
    """A table as people have them.

    Commas, semicolons or tabs separate the cells, whichever the header has; with the latter two,
    commas may be decimal ones. Blank lines are passed over.
    """
    try:
        text = files.read_text(path)
    except OSError as error:
        raise InputError(f"cannot be read: {files.reason(error)}", file=path) from None
    first = text.lstrip("\r\n").partition("\n")[0]
    mark = max(SEPARATORS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=mark)
    lines, where = [], []
    try:
        for line in reader:
            if any(cell.strip() for cell in line):
                lines.append(line)
                where.append(reader.line_num)
    except csv.Error as error:
        raise _fault(path, f"line {reader.line_num} is not CSV: {error}") from None
    header = lines.pop(0) if lines else []
    _check_header(header, path)
    if not lines:
        raise _fault(path, "has a header but no agents; add a line per agent")
    names = tuple(n.strip() for n in header)
    table = CsvTable(path, names, lines, False, mark, where[1:])
    if {len(line) for line in lines} != {len(header)}:
        _fail_at_an_odd_line(table)
    return _with_points(table) if mark != "," or '"' in text else table


def _with_points(table: CsvTable) -> CsvTable:
    """The table with points for decimal commas, in columns where nothing else can be meant.

    Where semicolons separate cells, or a column has decimal commas, points in another may stand
    between thousands.
    """
    lines = [list(line) for line in table.lines]
    pointed, changed = set(), False
    for place, name in enumerate(table.names):
        cells = [line[place].strip() for line in lines]
        marked = [cell for cell in cells if "," in cell or "." in cell]
        grouped = all(THOUSANDS.fullmatch(cell) for cell in marked)
        if grouped and any("." in cell for cell in marked):
            pointed.add(name)
        plain = all(is_missing(cell) or WITH_COMMA.fullmatch(cell) for cell in cells)
        if plain and any("," in cell for cell in marked) and not grouped:
            changed = True
            for line, cell in zip(lines, cells, strict=True):
                line[place] = cell.replace(",", ".")
    return replace(
        table, lines=lines, doubtful=frozenset(pointed if changed or table.mark == ";" else ())
    )


def _check_header(header: list[str], path: Path) -> None:
    if not header:
        raise _fault(path, "is empty; start with a header line of feature names")
    if all(is_number(cell) for cell in header):
        raise _fault(
            path,
            "starts with numbers; the first line must name the features (a line of numbers there"
            " would be lost as an agent)",
        )


def check_names(table: CsvTable) -> None:
    """Refuse a first column without a name where every column counts."""
    if len(table.names) > 1 and not table.names[0]:
        counting = table.texts("") == [str(i) for i in range(table.size)]
        remedy = ", which counts the rows; write it with index=False" if counting else "; name it"
        said = f"has a first column without a name{remedy}, or list the others in 'features'"
        raise _fault(table.path, said)


def is_number(cell: str) -> bool:
    """Whether a cell is a plain number."""
    try:
        float(cell)
    except ValueError:
        return False
    # float() also takes 1_000 and digits of other scripts; a data file does not mean those.
    return _is_simple(cell)


def is_missing(cell: str) -> bool:
    """Whether a cell says that there is no number.

    >>> [is_missing(cell) for cell in ("", " NA ", "n/a", "0")]
    [True, True, True, False]
    """
    return cell.strip().casefold() in MISSING


def _is_simple(text: str) -> bool:
    return text.isascii() and "_" not in text


def _fail_at_an_odd_line(table: CsvTable) -> NoReturn:
    """Raise for the first line that is blank, or has too few or too many cells."""
    width = len(table.names)
    for row, line in enumerate(table.lines):
        if len(line) != width:
            said = f"has {len(line)} cells, the header has {width}; fill or remove it"
            if len(line) > width and table.mark == ",":
                said += ", or write points for decimal commas"
            if not line:
                said = "is a blank line; remove it"
            raise _fault(table.path, said + table.line(row), row)
    raise AssertionError("all lines are equally long")


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
