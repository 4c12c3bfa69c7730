"""Reading what strangers wrote: plain files, no more than a limit of them, and JSON without traps.

Every file that is named on the command line, or in another file, is read through here.
"""

from __future__ import annotations

import errno
import json
import math
import os
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from mipmech.errors import InputError, shorten

# Digits of an integer that a float can hold, whatever they are.
FLOAT_DIGITS = 308


class NotJson(InputError):
    """A text that is no JSON."""


@contextmanager
def opened(path: Path, most: int) -> Iterator[BinaryIO]:
    """A plain file, or a link to one, open for reading.

    Pipes, devices, sockets and folders are refused at once, and files of more than ``most`` bytes.
    What else the system says is raised as `OSError`.
    """
    try:
        _check_plain(os.stat(path), path)  # opening a device may already do something
        # Whatever takes the file's place now, opening does not wait for it.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except InputError:
        raise
    except ValueError:  # a zero byte, or half a character
        raise OSError(errno.EINVAL, "no file has such a name") from None
    with os.fdopen(handle, "rb") as stream:
        found = os.fstat(handle)
        _check_plain(found, path)
        if found.st_size > most:
            said = f"has {found.st_size:,} bytes; of such files, at most {most:,} are read"
            raise InputError(said, file=path)
        yield stream


def _check_plain(found: os.stat_result, path: Path) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise InputError("cannot be read: it is a folder", file=path)
    if not stat.S_ISREG(found.st_mode):
        raise InputError("cannot be read: it is not a plain file", file=path)


def read_bytes(path: Path, most: int) -> bytes:
    """All of a plain file of at most so many bytes."""
    with opened(path, most) as stream:
        return stream.read(os.fstat(stream.fileno()).st_size)


def read_text(path: Path, most: int) -> str:
    """The text of a UTF-8 file, with or without a byte-order mark."""
    return decoded(read_bytes(path, most), path)


def decoded(data: bytes, path: Path) -> str:
    """The text of a UTF-8 file that holds these bytes."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"is not UTF-8 text (byte {error.start}); save it as UTF-8", file=path
        ) from None


def json_value(text: str, finite: bool = True) -> Any:
    """The value of a JSON text; objects that have a key twice are refused.

    Parameters
    ----------
    text : str
        The text.
    finite : bool
        Whether NaN, infinity and what a float cannot hold are refused here. Where they are not,
        numbers are checked where they are used, and errors name the field.
    """
    try:
        if not finite:
            return json.loads(text, parse_int=_whole_or_infinite, object_pairs_hook=_distinct)
        return json.loads(
            text, parse_int=_whole, parse_float=_real, parse_constant=_no_number,
            object_pairs_hook=_distinct,
        )  # fmt: skip
    except json.JSONDecodeError as error:
        said = f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        raise NotJson(said) from None
    except RecursionError:
        raise InputError("is nested too deeply") from None


def json_object(path: Path, most: int, finite: bool = True) -> dict[str, Any]:
    """The object in a JSON file; errors name the file."""
    text = read_text(path, most)
    try:
        content = json_value(text, finite)
    except InputError as error:
        raise error.located(path) from None
    if not isinstance(content, dict):
        raise InputError("is not one JSON object", file=path)
    return content


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise InputError("appears twice; keep one", field=shorten(twice).strip("'\""))
    return found


def _whole_or_infinite(digits: str) -> int | float:
    # Python refuses to parse integers of thousands of digits; as a float such a one is infinite
    # and is reported as too large, with its field.
    return int(digits) if len(digits) <= FLOAT_DIGITS else float(digits)


def _whole(digits: str) -> int:
    if len(digits) > FLOAT_DIGITS:
        _no_number(digits)
    return int(digits)


def _real(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        _no_number(digits)
    return value


def _no_number(digits: str) -> NoReturn:
    raise InputError(f"has {shorten(digits)} where a number that a float can hold was expected")
