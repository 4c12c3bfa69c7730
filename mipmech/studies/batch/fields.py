"""Reading the tables of a plan: every field known, of its type, within its limits.

A field that may be swept over holds one value, a list of them, or, for whole numbers, a range
``{from = 0, to = 9, step = 3}``, both ends included. Errors name the field as it stands in the
file: ``tasks[2].oracle``, counted from 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from mipmech import validation
from mipmech.errors import InputError, did_you_mean, shorten

# A list or range with more values is a mistake.
MOST_VALUES = 1_000_000

Check = Callable[[Any, str], Any]


@dataclass(frozen=True)
class Field:
    """A field of a table: how one value is checked, and what it is if it is not given.

    swept : whether it may have many values
    """

    check: Check
    default: Any = None
    swept: bool = False


def read_table(table: Any, fields: dict[str, Field], where: str) -> dict[str, Any]:
    """Checked values of all fields; of those that are swept, lists."""
    if not isinstance(table, dict):
        raise InputError(f"is {validation.kind(table)}; give a table", field=where)
    for name in table:
        if name not in fields:
            hint = did_you_mean(name, fields)
            known = ", ".join(fields)
            said = f"is not a field here{hint}; the fields are {known}"
            raise InputError(said, field=f"{where}.{shorten(name)[1:-1]}".lstrip("."))
    found = {}
    for name, field in fields.items():
        place = f"{where}.{name}".lstrip(".")
        if name not in table:
            found[name] = [field.default] if field.swept else field.default
        elif field.swept:
            found[name] = [field.check(value, place) for value in _many(table[name], place)]
        else:
            found[name] = field.check(table[name], place)
    return found


def _many(value: Any, where: str) -> list[Any]:
    """All values of a field that may be swept over."""
    if isinstance(value, dict):
        return list(_range(value, where))
    values = value if isinstance(value, list) else [value]
    if not values:
        raise InputError("is empty; give one value or more", field=where)
    if len({repr(entry) for entry in values}) < len(values):
        raise InputError("has a value twice; give each once", field=where)
    return values


def _range(table: dict[str, Any], where: str) -> range:
    known = {"from": Field(whole(None)), "to": Field(whole(None)), "step": Field(whole(1), 1)}
    ends = read_table(table, known, where)
    if ends["from"] is None or ends["to"] is None:
        raise InputError("is a range without its ends; give {from = 0, to = 9}", field=where)
    values = range(ends["from"], ends["to"] + 1, ends["step"])
    if not values:
        said = f"goes from {ends['from']} to {ends['to']}: there is nothing between"
        raise InputError(said, field=where)
    if len(values) > MOST_VALUES:
        raise InputError(f"has {len(values):,} values; give at most {MOST_VALUES:,}", field=where)
    return values


# ------------------------------------------------------------------ one value


def whole(least: int | None, most: int = 2**63 - 1) -> Check:
    """A whole number, at least so large, and no larger than others can store."""

    def check(value: Any, where: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputError(f"is {validation.kind(value)}; give a whole number", field=where)
        if least is not None and value < least:
            raise InputError(f"is {value}; give {least} or more", field=where)
        if not -most <= value <= most:
            raise InputError(f"is {shorten(value)}; give at most {most:,}", field=where)
        return value

    return check


def real(low: float = -math.inf, high: float = math.inf, *, above: bool = False) -> Check:
    """A number in [low, high]; if ``above``, not low itself."""

    def check(value: Any, where: str) -> float:
        number = validation.number(value, where)
        if not low <= number <= high or (above and number == low):
            least = f"above {low:g}" if above else f"from {low:g}"
            upto = "" if high == math.inf else f" to {high:g}"
            raise InputError(f"is {number:g}; give a number {least}{upto}", field=where)
        return number + 0.0  # −0 is 0

    return check


def one_of(known: Collection[str]) -> Check:
    """One of these words."""

    def check(value: Any, where: str) -> str:
        if not isinstance(value, str) or value not in known:
            hint = did_you_mean(value, known) if isinstance(value, str) else ""
            said = f"is {shorten(value)}; give one of {', '.join(known)}{hint}"
            raise InputError(said, field=where)
        return value

    return check


def yes_or_no(value: Any, where: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise InputError(f"is {validation.kind(value)}; give true or false", field=where)
    return value


def list_of(check: Check) -> Check:
    """A list, or one value that stands for a list of one."""

    def check_all(value: Any, where: str) -> list[Any]:
        return [check(entry, where) for entry in _many(value, where)]

    return check_all


UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def memory(value: Any, where: str) -> int:
    """An amount of memory: bytes, or a text such as "2 GB" or "500 MiB"."""
    if isinstance(value, str):
        parts = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) *([A-Za-z]+)", value.strip())
        if parts is not None and parts[2].upper() in UNITS and len(parts[1]) < 20:
            value = int(float(parts[1]) * UNITS[parts[2].upper()])
    if isinstance(value, bool) or not isinstance(value, int):
        said = f'is {shorten(value)}; give an amount such as "2 GB" or "500 MiB"'
        raise InputError(said, field=where)
    if value < LEAST_MEMORY:
        said = f"is {value:,} bytes; a worker alone needs some {LEAST_MEMORY:,}"
        raise InputError(said, field=where)
    if value > MOST_MEMORY:
        raise InputError(f"is {shorten(value)} bytes; give at most {MOST_MEMORY:,}", field=where)
    return value


MOST_MEMORY = 2**50
# What a worker uses before it has done anything: Python, numpy, scipy, numba.
LEAST_MEMORY = 300_000_000


def like(usual: Any) -> Check:
    """A value of the same type as the usual one; where that is nothing, a whole number."""
    if isinstance(usual, bool):
        return yes_or_no
    if isinstance(usual, str):
        return validation.text
    return real() if isinstance(usual, float) else whole(None)


def any_table(value: Any, where: str) -> dict[str, Any]:
    """A table of options, passed on as it is."""
    if not isinstance(value, dict):
        raise InputError(f"is {validation.kind(value)}; give a table", field=where)
    return value
