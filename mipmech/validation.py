"""Untrusted values: turned into numbers, arrays and text, or refused with a clear message.

Every check raises `InputError` with the field and the row; booleans are not numbers.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mipmech.errors import InputError, shorten
from mipmech.tolerances import LARGEST, SMALLEST

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]

# Names appear in tables and pictures.
LONGEST_NAME = 200


def kind(value: object) -> str:
    """A JSON value in words, never long."""
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, str):
        return f"the text {shorten(value)}"
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else shorten(value)


def is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def number(value: object, field: str, largest: float = LARGEST) -> float:
    """A finite number of reasonable size."""
    if not is_number(value):
        raise InputError(f"is {kind(value)}; expected a number", field=field)
    try:
        result = float(value)  # type: ignore[arg-type]
    except OverflowError:
        result = math.inf
    check_size(np.array([result]), field, by_row=False, largest=largest)
    return result


def positive(**values: float) -> None:
    """Refuse values, by name, that are not above 0 and finite."""
    for field, value in values.items():
        if not 0 < value < math.inf:
            raise InputError(f"is {value}; give a number above 0", field=field)


def at_least(least: int, **values: float) -> None:
    """Refuse values, by name, that are below a bound."""
    for field, value in values.items():
        if not value >= least:
            raise InputError(f"is {value}; give {least} or more", field=field)


def numbers(value: object, field: str) -> Floats:
    if not isinstance(value, list):
        raise InputError(f"is {kind(value)}; expected a list of numbers", field=field)
    for row, entry in enumerate(value):
        if type(entry) is not float and not is_number(entry):
            raise InputError(f"is {kind(entry)}; expected a number", field=field, row=row)
    return _floats(value, field)


def listed(value: object, field: str) -> list[Any]:
    """A sequence as a list; a text is not taken for its letters."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise InputError(f"is {kind(value)}; give a list", field=field)
    return list(value)


def flag(value: object, field: str) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"is {kind(value)}; give True or False", field=field)


def rows(value: object, field: str) -> Floats:
    if not isinstance(value, list) or not value:
        raise InputError(f"is {kind(value)}; expected rows of numbers", field=field)
    plain = {int, float}
    for row, entry in enumerate(value):
        if not isinstance(entry, list):
            raise InputError(f"is {kind(entry)}; expected a list of numbers", field=field, row=row)
        if len(entry) != len(value[0]):
            raise InputError(
                f"has {len(entry)} numbers, row 0 has {len(value[0])}; make all rows equally long",
                field=field,
                row=row,
            )
        if not plain.issuperset(map(type, entry)):
            wrong = next(v for v in entry if type(v) not in plain)
            raise InputError(f"has {kind(wrong)}; expected a number", field=field, row=row)
    return _floats(value, field)


def array(value: ArrayLike, field: str, dimensions: int, largest: float = LARGEST) -> Floats:
    """A float array of the right dimension, every entry finite and of reasonable size."""
    if np.ma.is_masked(value):
        raise InputError("has masked entries; fill them in or leave the agents out", field=field)
    try:
        raw = np.asarray(value)
    except (ValueError, OverflowError):
        raise InputError(
            "is not a table of numbers, or its rows differ in length", field=field
        ) from None
    if raw.ndim != dimensions:
        shape = "a table, agents as rows" if dimensions == 2 else "a list"
        raise InputError(f"has {raw.ndim} dimensions; give {shape}", field=field)
    if raw.dtype.kind not in "fiu":
        raise InputError(f"holds values of type {raw.dtype}; give plain numbers", field=field)
    with np.errstate(invalid="ignore"):  # a NaN that signals; it is refused below
        result = raw.astype(np.float64)
    if raw.dtype.kind in "iu" and not (np.abs(result) < 2.0**53).all():
        raise InputError(
            "holds integers beyond 2^53, which floats cannot tell apart; give floats", field=field
        )
    check_size(result, field, largest=largest)
    return result


def check_size(values: Floats, field: str, by_row: bool = True, largest: float = LARGEST) -> None:
    """Refuse NaN, infinity and numbers beyond the largest size allowed."""
    if not values.size or np.abs(values).max() <= largest:  # false for NaN too
        return
    place = np.argwhere(~(np.abs(values) <= largest))[0]
    value = float(values[tuple(place)])
    if math.isnan(value):
        what = "is not a number (NaN); "
        what += "leave the agent out or fill the value in" if by_row else "give a number"
    elif math.isinf(value):
        what = "is infinite or too large for a float; give a finite number"
    else:
        what = f"is {value:g}, beyond {largest:g} in size; choose other units"
    column = f"column {place[1]} " if len(place) == 2 else ""
    raise InputError(column + what, field=field, row=int(place[0]) if by_row else None)


def check_not_tiny(values: Floats, field: str) -> None:
    """Refuse coefficients that are almost, but not, zero."""
    for place in np.argwhere((values != 0) & (np.abs(values) < SMALLEST))[:1]:
        value = values[tuple(place)]
        raise InputError(
            f"has {value:g}, nearer to 0 than {SMALLEST:g}; write 0, or choose other units",
            field=field,
            row=int(place[0]),
        )


def _floats(value: list[Any], field: str) -> Floats:
    try:
        return np.array(value, dtype=np.float64)
    except OverflowError:
        said = "has a number too large for a float; give finite numbers"
        raise InputError(said, field=field) from None


def length(values: Floats, expected: int, field: str, why: str) -> Floats:
    if len(values) != expected:
        raise InputError(f"has {len(values)} numbers, {expected} expected: {why}", field=field)
    return values


def text(value: object, field: str, lines: bool = False) -> str:
    """Text that may be printed on a terminal: no control characters, no broken Unicode."""
    if not isinstance(value, str):
        raise InputError(f"is {kind(value)}; expected text", field=field)
    if not lines and not value.strip():
        raise InputError("is empty; give it a name", field=field)
    if not lines and len(value) > LONGEST_NAME:
        raise InputError(f"has {len(value)} characters; the limit is {LONGEST_NAME}", field=field)
    if not all(c.isprintable() or (lines and c in "\n\t") for c in value):
        raise InputError(f"has a character that cannot be printed: {shorten(value)}", field=field)
    return value


# ------------------------------------------------------------------ numbers as people write them

CURRENCIES = "$€£¥"
THOUSANDS = re.compile(r"(?a)[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")
DECIMAL_COMMA = re.compile(r"(?a)[+-]?(\d{1,3}(\.\d{3})+,\d+|\d{1,3}(\.\d{3}){2,}|\d*,\d+)")


def is_plain(text: str) -> bool:
    """Whether a text is a plain number.

    >>> [is_plain(text) for text in ("-1.5e3", "1,5", "1_000", "٣")]
    [True, False, False, False]
    """
    try:
        float(text)
    except ValueError:
        return False
    # float() also takes 1_000 and digits of other scripts; a data file does not mean those.
    return text.isascii() and "_" not in text


def remedy(text: str) -> str:
    """How to write a number plainly, to be put behind a message; empty if it is none.

    >>> [remedy(text) for text in ("25.735,92", "$2000", "2 %", "45,000", "Ann")]
    ['; write 25735.92', '; write 2000', '; write 2', '; write 45000 (or 45.000)', '']
    """
    bare = re.sub(r"[\s'_]", "", text).strip(CURRENCIES + "%")
    if THOUSANDS.fullmatch(bare):
        decimal = f" (or {bare.replace(',', '.')})" if len(re.split("[,.]", bare)) == 2 else ""
        return f"; write {bare.replace(',', '')}{decimal}"
    if DECIMAL_COMMA.fullmatch(bare):
        return f"; write {bare.replace('.', '').replace(',', '.')}"
    return f"; write {bare}" if is_plain(bare) and bare[-1].isdigit() else ""


def cells(text: str, mark: str = ",") -> list[str]:
    """The parts between marks; a part with a mark in it stands in double quotes."""
    line = " ".join(text.splitlines())
    parts = next(csv.reader([line], skipinitialspace=True, delimiter=mark), [])
    return [cell.strip() for cell in parts if cell.strip()]


def coefficients(text: str, field: str, example: str = "sat=0.001,gpa=0.4") -> dict[str, float]:
    """Numbers by name as people type them, or as a JSON object.

    A colon may stand for "=", and semicolons for the commas.

    >>> coefficients("sat=0.001, gpa: 0.4", "quality")
    {'sat': 0.001, 'gpa': 0.4}
    >>> coefficients('{"sat": 0.001}', "quality")
    {'sat': 0.001}
    """
    if text.lstrip().startswith("{"):
        try:
            pairs = json.loads(text, object_pairs_hook=list)
        except (ValueError, RecursionError):
            said = f"is not JSON; give names and numbers, as in {example}"
            raise InputError(said, field=field) from None
    else:
        pairs = list(_pairs(text, field, example))
    if not pairs:
        raise InputError(f"is empty; give names and numbers, as in {example}", field=field)
    found: dict[str, float] = {}
    for name, value in pairs:
        if name in found:
            raise InputError(f"has {shorten(name)} twice; give it once", field=field)
        found[name] = number(value, field)
    return found


def _pairs(text: str, field: str, example: str) -> Iterator[tuple[str, float]]:
    by_semicolon = cells(text, ";")
    several = len(by_semicolon) > 1 and all("=" in part or ":" in part for part in by_semicolon)
    before = ""
    for part in by_semicolon if several else cells(text):
        named = [part.rpartition(mark)[::2] for mark in "=:" if mark in part]
        plain = [(name.strip(), float(value)) for name, value in named if is_plain(value)]
        if not plain:
            wrong, value = part, named[0][1] if named else ""
            if part.isdigit() and before:  # what a decimal comma has cut in two
                wrong, value = f"{before},{part}", f"{re.split('[=:]', before)[-1]},{part}"
            hint = remedy(value) or "; give names and numbers"
            raise InputError(f"has {shorten(wrong)}{hint}, as in {example}", field=field)
        yield plain[0]
        before = part


def frozen(values: Floats) -> Floats:
    """The array, made read-only."""
    values.setflags(write=False)
    return values
