"""Changes to files, at random from a seed: of their bytes, and of the values that JSON holds."""

from __future__ import annotations

import copy
import json
import math
from random import Random
from typing import Any

# Texts that act on a terminal, mislead a reader, or break programs that print them.
HOSTILE = (
    "\x1b[2J\x1b[Haccepted, proved",
    "\x1b]0;title\x07",
    "\u202egnp.exe",
    "\u2066\u200b\ufeff",
    "two\nlines\r\nand\x85three\u2028",
    "[/bold] [red] :smile:",
    "\ud800",
    "\x00",
    "=cmd|' /C calc'!A0",
    "\x9b2J\x7f\x08",
    "x" * 10_000,
    "../../etc/passwd",
    "",
    " ",
    "NaN",
)
NUMBERS = (
    0, -0.0, 1, -1, 2**31, 2**53 + 1, 2**63, 2**64, 10**30, 10**400, -(10**400), 0.5, 1e-9, 1e100,
    1e200, 1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf,
)  # fmt: skip
OTHERS = (None, True, False, [], {}, [[]], [{}], {"": None}, [None, "a", 1])
FACTORS = (-1, 0, 2, 0.5, 10, 1 + 1e-15, 1 - 1e-9, 1e30, 1e-30)
# What JSON has between its values, and parts of it that are no JSON or too much of it.
TOKENS = (
    b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\n", b"\r", b"\t", b"\x00", b"\xff",
    b"\x1b[2J", b"-", b"1e999", b"NaN", b"null", b'"\\ud800"', b"9" * 5000, b"[" * 2000,
    b'{"a":' * 500,
)  # fmt: skip


def json_bytes(value: Any) -> bytes:
    """A value as JSON in ASCII, with NaN where there is any."""
    return json.dumps(value).encode()


def with_a_change(random: Random, value: Any) -> Any:
    """A copy of a JSON value with one to three changes in it."""
    found = copy.deepcopy(value)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        places = list(_places(found))
        if not places:
            return junk(random)
        # Short ways are as likely as long ones: numbers of tables do not crowd out the rest.
        depth = random.choice(sorted({depth for *_, depth in places}))
        holder, key, _ = random.choice([place for place in places if place[2] == depth])
        _change(random, holder, key)
    return found


def _places(value: Any, depth: int = 0) -> Any:
    """Whatever is held by something: the holder, the key there, and how deep it lies."""
    if isinstance(value, (dict, list)):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key, depth
            yield from _places(value[key], depth + 1)


def _change(random: Random, holder: Any, key: Any) -> None:
    kind, old = random.random(), holder[key]
    if kind < 0.1:
        del holder[key]
    elif kind < 0.15 and isinstance(holder, dict):
        holder[random.choice(HOSTILE)] = holder.pop(key)
    elif kind < 0.15:
        holder.insert(key, copy.deepcopy(old))
    elif kind < 0.2 and isinstance(holder, dict):
        holder[key] = copy.deepcopy(random.choice(list(holder.values())))
    elif kind < 0.25:
        holder[key] = [old]
    elif kind < 0.5 and isinstance(old, (int, float)) and not isinstance(old, bool):
        holder[key] = _scaled(old, random.choice(FACTORS))
    elif kind < 0.5 and isinstance(old, str):
        place = random.randrange(len(old) + 1)
        holder[key] = old[:place] + random.choice(HOSTILE) + old[place:]
    else:
        holder[key] = junk(random)


def _scaled(old: float, factor: float) -> float:
    try:
        return old * factor
    except OverflowError:
        return math.inf


def junk(random: Random) -> Any:
    """A value that hardly belongs anywhere."""
    kind = random.random()
    if kind < 0.05:
        return nested(random.choice((20, 200, 400)))
    return copy.deepcopy(random.choice(random.choice((HOSTILE, NUMBERS, OTHERS))))


def nested(depth: int) -> Any:
    """Lists in objects in lists."""
    found: Any = 1
    for level in range(depth):
        found = [found] if level % 2 else {"a": found}
    return found


def with_other_bytes(random: Random, data: bytes) -> bytes:
    """The same bytes with one to three changes: flipped, lost, repeated, put in, or cut off."""
    for _ in range(random.choice((1, 1, 2, 3))):
        start = random.randrange(len(data) + 1)
        end = min(len(data), start + random.choice((1, 1, 2, 8, 100)))
        kind = random.randrange(6)
        if kind == 0 and start < len(data):
            data = (
                data[:start] + bytes([data[start] ^ 1 << random.randrange(8)]) + data[start + 1 :]
            )
        elif kind == 1:
            data = data[:start] + data[end:]
        elif kind == 2:
            data = data[:end] + data[start:end] * random.choice((1, 3, 50)) + data[end:]
        elif kind == 3:
            data = data[:start] + random.choice(TOKENS) + data[start:]
        elif kind == 4:
            data = data[:start] + random.choice(TOKENS) + data[end:]
        elif random.random() < 0.3:
            data = data[:start]
    return data
