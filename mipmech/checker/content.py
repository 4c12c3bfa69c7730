"""Reading what a certificate holds: typed values, or the reason why it is rejected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


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
    return float(value)


def finite(value: float) -> bool:
    return abs(value) < 1e308  # false for NaN, and safe for integers of any size


def numbers(value: Any, shape: tuple[int, ...], name: str) -> Floats:
    """An array of floats of just this shape."""

    def plain(entry: Any, depth: int) -> bool:
        if depth == len(shape):
            is_number = isinstance(entry, (int, float)) and not isinstance(entry, bool)
            return is_number and finite(entry)
        lists = isinstance(entry, list) and len(entry) == shape[depth]
        return lists and all(plain(part, depth + 1) for part in entry)

    if not plain(value, 0):
        reject(f"{name} is missing or not {'×'.join(map(str, shape))} finite numbers")
    return np.array(value, dtype=np.float64).reshape(shape)
