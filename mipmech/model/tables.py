"""Agents from CSV files, also as people have them."""

from __future__ import annotations

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from mipmech import files, untrusted
from mipmech.errors import InputError, did_you_mean, shorten
from mipmech.text import clean, short
from mipmech.tolerances import LARGEST_TABLE
from mipmech.validation import Floats, is_plain, remedy

FIELD = "agents"
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
# In a message; the middle of a longer list is left out.
LONGEST_LIST = 200
# What people and programs write where there is no number.
MISSING = frozenset({"", ".", "-", "?", "na", "n/a", "nan", "null", "none", "missing"})
# A number with a decimal comma, and one that may as well have a comma between its thousands.
WITH_COMMA = re.compile(r"[+-]?\d*(,\d+)?([eE][+-]?\d+)?")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}[,.]\d{3}")
# The line with which Excel says what separates the cells, and a line up to its end or a lone quote.
SEP = re.compile(r"\s*sep=([^\w\"\r\n]) *\r?\n", re.IGNORECASE)
FIRST_LINE = re.compile(r"\s*(?:\"[^\"]*\"|[^\"\r\n]+)*")
# Zero bytes near the beginning of a file are no text in UTF-8.
HEAD = 4096


def _fault(path: Path, message: str) -> InputError:
    return InputError(message, file=path, field=FIELD)


def unreadable(path: Path, error: OSError) -> InputError:
    """The error for a file that cannot be read, with the name of one that is there."""
    near = ""
    if isinstance(error, FileNotFoundError) and path.parent.is_dir():
        near = did_you_mean(path.name, os.listdir(path.parent))
    return InputError(f"cannot be read: {files.reason(error)}{near}", file=path)


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
    kept : the numbers that the rows had before some were left out
    """

    path: Path
    names: tuple[str, ...]
    lines: list[list[str]]
    simple: bool
    mark: str = ","
    where: Sequence[int] | None = None
    doubtful: frozenset[str] = frozenset()
    kept: Sequence[int] | None = None

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.lines)

    def fault(self, message: str, field: str, row: int | None = None) -> InputError:
        """An error in this table; of a row, with its line in the file if that is known."""
        if row is None:
            return InputError(message, file=self.path, field=field)
        line = None if self.where is None else self.where[row]
        # A quoted cell may span lines; then the number of the line is not known.
        if self.where is None and not any("\n" in cell for cells in self.lines for cell in cells):
            line = row + 2
        number = row if self.kept is None else self.kept[row]
        return InputError(message, file=self.path, field=field, row=number, line=line)

    def place(self, name: str, field: str = FIELD) -> int:
        """Where a column stands; refused if there is none, or several."""
        if name not in self._places:
            raise unknown_column(name, self.names, field).located(self.path)
        found = self._places[name]
        if found < 0:
            said = f"names {shorten(name)}, but there are {-found} such columns; rename them"
            raise self.fault(said, field)
        return found

    @cached_property
    def _places(self) -> dict[str, int]:
        """Where each column stands; of a name that several have, minus their number."""
        counts = Counter(self.names)
        return {
            name: -counts[name] if counts[name] > 1 else place
            for place, name in enumerate(self.names)
        }

    def texts(self, name: str, field: str = FIELD) -> list[str]:
        """A column as it stands, without blanks around the cells."""
        return [cell.strip() for cell in map(itemgetter(self.place(name, field)), self.lines)]

    def entries(self, name: str, field: str = FIELD) -> list[str]:
        """A column of labels."""
        return self.texts(name, field)

    def numbers(self, names: Sequence[str], field: str = FIELD, hint: str = "") -> Floats:
        """Columns of numbers, one row per agent; the hint is for a column that is all text."""
        places = [self.place(name, field) for name in names]
        for name in self.doubtful.intersection(names):
            cell = next(cell for cell in self.texts(name) if "." in cell)
            said = f"has {shorten(cell)} under {shorten(name)}, which may be read in two ways"
            said += f"; write {cell.replace('.', '')} or {cell}0, and all of the column so"
            raise self.fault(said, field)
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
                if not is_plain(cell):
                    said = f"has {shorten(cell)} under {name}; expected a plain number"
                    said += remedy(cell)
                    if not cell.strip():
                        said = f"has no number under {name}; fill it in or leave the row out"
                    elif not remedy(cell) and not any(is_plain(li[place]) for li in self.lines):
                        said = f"{name} holds text, such as {shorten(cell)}; expected plain numbers"
                        said += hint
                    return self.fault(said, field, row)
        raise AssertionError("float() refused a cell that is a plain number")

    @cached_property
    def numeric(self) -> tuple[str, ...]:
        """The columns that hold numbers, and at most a few gaps; those without a name excepted."""
        found = []
        for place, name in enumerate(self.names):
            cells = [line[place] for line in self.lines]
            held = [cell for cell in cells if not is_missing(cell)]
            if name and held and all(is_plain(cell) for cell in held):
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
        return replace(self, lines=[self.lines[i] for i in kept], where=where, kept=kept)

    def labels(self) -> list[str] | None:
        """What the rows are called where no column says it: by number, if some were left out."""
        return None if self.kept is None else [str(row) for row in self.kept]


def read_csv(path: Path, strict: bool = False) -> CsvTable:
    """A table as people have them, or, ``strict``, in the format of instance files.

    That format has commas between cells and a row on every line. People also separate cells by
    semicolons or tabs, whichever the header has, use decimal commas, and leave lines blank.
    """
    try:
        data = untrusted.read_bytes(path, LARGEST_TABLE)
    except OSError as error:
        raise unreadable(path, error) from None
    try:
        text = untrusted.decoded(data, path)
    except InputError:
        if b"\0" not in data[:HEAD]:
            raise
        said = "is not text but a file of some program, such as a workbook; save it as CSV (UTF-8)"
        raise InputError(said, file=path) from None
    del data
    told = None if strict else SEP.match(text)
    mark = told[1] if told else _mark(text)
    comma = "," if strict else mark
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=comma)
    lines, where = [], []
    try:
        if strict:
            # Leaving out the line numbers makes the usual case fast.
            lines = list(reader)
        else:
            for line in reader:
                if any(cell.strip() for cell in line):
                    lines.append(line)
                    where.append(reader.line_num)
    except csv.Error as error:
        raise _fault(path, f"line {reader.line_num} is not CSV: {error}") from None
    while lines and not lines[-1]:
        lines.pop()
    del lines[: int(told is not None)], where[: int(told is not None)]
    header = lines.pop(0) if lines else []
    _check_header(header, path)
    if strict and len(header) == 1 and mark != ",":
        said = f"is separated by {SEPARATORS[mark]}; save it with commas, and with points in the"
        raise _fault(path, f"{said} numbers, or let 'mipmech new' read it")
    if not lines:
        raise _fault(path, "has a header but no agents; add a line per agent")
    simple = strict and _is_simple(re.split(r"[\r\n]", text, maxsplit=1)[-1])
    names = tuple(name.strip() for name in header)
    table = CsvTable(path, names, lines, simple, mark, None if strict else where[1:])
    if {len(line) for line in lines} != {len(header)}:
        _fail_at_an_odd_line(table)
    return _with_points(table) if not strict and (mark != "," or '"' in text) else table


def _mark(text: str) -> str:
    """What separates the cells of the header; marks in quotes do not."""
    found = FIRST_LINE.match(text)
    header = re.sub(r"\"[^\"]*\"", "", found[0] if found else "")
    return max(SEPARATORS, key=header.count)


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
    if all(is_plain(cell) for cell in header):
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
            raise table.fault(said, FIELD, row)
    raise AssertionError("all lines are equally long")


def quoted(name: str) -> str:
    """A cell of a CSV file.

    >>> quoted("sat"), quoted('a "b",c')
    ('sat', '"a ""b"",c"')
    """
    return '"' + name.replace('"', '""') + '"' if set(name) & set(',;"') else name


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
