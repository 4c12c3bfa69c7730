"""Reading what a certificate holds: typed values, or the reason why it is rejected."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Larger files are not read: a byte of the file holds two nodes of a tree or more.
LARGEST = 200_000_000
# Any integer of so many digits is a float's to hold.
LONGEST_INTEGER = 308
# How JSON writes half of a character; two of them may be a whole one.
HALF = re.compile(r"\\u[dD][89a-fA-F]")


class Rejected(Exception):
    """The certificate does not hold, and why."""


class Unfinished(Exception):
    """The check was interrupted, and why; nothing is refuted."""


# Called wherever a check may be interrupted, by raising `Unfinished`: every few tenths of a second
# at least, however many agents and leaves there are.
Look = Callable[[], None]


def reject(reason: str) -> NoReturn:
    """The certificate does not hold."""
    raise Rejected(reason)


def read(file: Path) -> object:
    """What a certificate's file holds; raises `OSError` if it cannot be read."""
    data = _bytes_of(file)
    try:
        text = data.decode("utf-8-sig")
        content = json.loads(
            text, object_pairs_hook=_distinct, parse_int=_whole, parse_float=_real,
            parse_constant=_no_number,
        )  # fmt: skip
    except ValueError:  # also if it is not UTF-8
        reject("the file is not JSON; it may have been cut short")
    if HALF.search(text):
        try:
            json.dumps(content, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            reject("the file has half a character in a text")
    return content


def _bytes_of(file: Path) -> bytes:
    """All of a plain file; nothing else is waited for, and nothing endless is read."""
    try:
        _check_plain(os.stat(file))
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except ValueError:  # a zero byte, or half a character
        raise OSError(errno.EINVAL, "no file has such a name") from None
    with os.fdopen(handle, "rb") as stream:
        found = os.fstat(handle)
        _check_plain(found)
        if found.st_size > LARGEST:
            said = f"{found.st_size:,} bytes are more than the {LARGEST:,} of any certificate"
            raise OSError(errno.EFBIG, said)
        return stream.read(found.st_size)


def _check_plain(found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is not a plain file")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        reject("an object in the file has a key twice")
    return found


def _whole(digits: str) -> int:
    if len(digits) > LONGEST_INTEGER:
        _no_number(digits)
    return int(digits)


def _real(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        _no_number(digits)
    return value


def _no_number(_: str) -> NoReturn:
    reject("the file is not plain JSON: it has NaN, or a number that is too large for a float")


def object_at(content: dict[str, Any], key: str, where: str = "") -> dict[str, Any]:
    value = content.get(key)
    if not isinstance(value, dict):
        reject(f"{where}{key} is missing or not an object")
    return value


def text_at(content: dict[str, Any], key: str, where: str = "") -> str:
    value = content.get(key)
    if not isinstance(value, str):
        reject(f"{where}{key} is missing or not text")
    return value


def number_at(content: dict[str, Any], key: str, where: str = "") -> float:
    value = content.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not finite(value):
        reject(f"{where}{key} is missing or not a finite number")
    if float(value) != value:
        reject(f"{where}{key} is a whole number that no float holds")
    return float(value)


def finite(value: float) -> bool:
    return abs(value) < 1e308  # false for NaN, and safe for integers of any size


def numbers(value: Any, shape: tuple[int, ...], name: str) -> Floats:
    """An array of floats of just this shape."""

    def plain(entry: Any, depth: int) -> bool:
        if depth == len(shape):
            is_number = isinstance(entry, (int, float)) and not isinstance(entry, bool)
            return is_number and finite(entry) and float(entry) == entry
        lists = isinstance(entry, list) and len(entry) == shape[depth]
        return lists and all(plain(part, depth + 1) for part in entry)

    if not plain(value, 0):
        reject(f"{name} is missing or not {'×'.join(map(str, shape))} numbers that floats hold")
    return np.array(value, dtype=np.float64).reshape(shape)
