"""Data frames of pandas or polars, neither of which is a dependency."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterable, Sequence
from typing import Any

from mipmech.errors import InputError


def frame(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Any:
    """A data frame of pandas, or of polars where there is no pandas.

    >>> frame(["a", "b"], [(1, 2), (3, 4)]).shape
    (2, 2)
    """
    lines = list(rows)
    table = {name: [line[place] for line in lines] for place, name in enumerate(columns)}
    for module in ("pandas", "polars"):
        with contextlib.suppress(ImportError):
            return importlib.import_module(module).DataFrame(table)
    raise InputError("needs pandas or polars: pip install pandas", field="to_frame")
