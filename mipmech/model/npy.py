"""Tables in npy files, as `numpy.save` writes them; read here, byte by byte, as data only.

The header is a Python literal. It is taken apart by a pattern, never by an interpreter, and what it
promises is held against the size of the file before there is any memory for it.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from mipmech import untrusted
from mipmech.errors import InputError, shorten
from mipmech.tolerances import LARGEST_TABLE

MAGIC = b"\x93NUMPY"
# The bytes in which each version states the length of its header.
LENGTHS = {b"\x01\x00": 2, b"\x02\x00": 4}
# A header of a plain array takes about a hundred bytes.
LONGEST_HEADER = 10_000
# What follows the name of an entry: a text, a truth value, a tuple. No part can match in two ways.
VALUES = {"descr": r"'([^']*)'", "fortran_order": r"(True|False)", "shape": r"\(([^()]*)\)"}
ENTRIES = {name: re.compile(rf"'{name}'\s*:\s*{v}\s*(?:,|$)") for name, v in VALUES.items()}
# A size, also as Python 2 wrote it.
SIZE = re.compile(r"(-?\d{1,18})L?")
TYPES = frozenset(f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)) | {"f2", "f4", "f8"}
# Types that are no numbers, as people call them.
CALLED = {"b1": "bool", "c8": "complex64", "c16": "complex128"}

Fail = Callable[[str], NoReturn]


def read_npy(path: Path, field: str) -> NDArray[Any]:
    """The numbers of a two-dimensional array; errors name the field and the file."""

    def fail(message: str) -> NoReturn:
        raise InputError(message, file=path, field=field)

    with untrusted.opened(path, LARGEST_TABLE) as stream:
        entries = _entries(stream, fail)
        dtype = _dtype(entries["descr"], fail)
        shape = _shape(entries["shape"], fail)
        promised = dtype.itemsize * math.prod(shape)
        held = os.fstat(stream.fileno()).st_size - stream.tell()
        if promised > held:
            fail(f"is cut off: its header promises {promised} bytes of data, it has {held}")
        if promised < held:
            fail(f"has {held} bytes of data, its header promises {promised}; save it again")
        data = stream.read(promised)
    if len(data) < promised:
        fail("was changed while it was read")
    array = np.frombuffer(data, dtype)
    rows, columns = shape
    by_column = entries["fortran_order"] == "True"
    return array.reshape(columns, rows).T if by_column else array.reshape(rows, columns)


def _entries(stream: BinaryIO, fail: Fail) -> dict[str, str]:
    """The header, as text by name."""
    if stream.read(len(MAGIC)) != MAGIC:
        fail("is not an npy file; write one with numpy.save(file, array)")
    width = LENGTHS.get(stream.read(2))
    if width is None:
        fail("is an npy file of an unknown version; save it again with numpy.save")
    length = int.from_bytes(stream.read(width), "little")
    header = stream.read(min(length, LONGEST_HEADER)).decode("latin-1")
    if len(header) < length:
        fail("has a header that is too long, or cut off; save it again with numpy.save")
    inner = re.fullmatch(r"\s*\{([^{}]*)\}\s*", header)
    if inner is None:
        fail("has a damaged header; save it again with numpy.save")
    rest, found = inner[1].strip(), {}
    while rest:
        name, entry = next(
            ((name, match) for name in ENTRIES if (match := ENTRIES[name].match(rest))), ("", None)
        )
        if entry is None or name in found:
            break
        found[name] = entry[1]
        rest = rest[entry.end() :].strip()
    if rest or set(found) != set(ENTRIES):
        fail("has a header that is damaged, or not of a plain array; save an array of float64")
    return found


def _dtype(text: str, fail: Fail) -> np.dtype[Any]:
    bare = text.lstrip("<>=|")
    if bare[:1] == "O":
        fail("holds pickled Python objects, which are never loaded; save an array of float64")
    if bare not in TYPES or len(text) - len(bare) > 1:
        fail(f"holds values of type {CALLED.get(bare) or shorten(text)}; save an array of float64")
    return np.dtype(text)


def _shape(text: str, fail: Fail) -> tuple[int, int]:
    parts = [part.strip() for part in text.split(",")]
    sizes = [SIZE.fullmatch(part) for part in (parts if parts[-1] else parts[:-1])]
    shape = tuple(int(size[1]) for size in sizes if size)
    if len(shape) < len(sizes):
        fail("has a damaged shape in its header; save it again with numpy.save")
    if len(shape) != 2:
        fail(f"has {len(shape)} dimensions; agents are rows and features columns")
    if min(shape) < 0:
        fail("has a shape with negative sizes; save it again with numpy.save")
    if min(shape) == 0:
        fail("is empty; a sample needs at least one agent, and one feature")
    return shape[0], shape[1]
