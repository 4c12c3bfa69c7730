"""An instance from a table with named columns, some of which matter: a data frame or a CSV file."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from mipmech import validation
from mipmech.errors import InputError, shorten
from mipmech.model import tables
from mipmech.model.tables import CsvTable
from mipmech.model.units import standardised
from mipmech.text import count
from mipmech.validation import Floats

# Headers of columns that name people rather than measure them.
NAMING = re.compile(
    r"(?i:id|ids|key|label|name|names)|.*[-_ ](?i:id|key|name|no|nr|number)|.*[a-z](ID|Id|Name)"
)


class Columns(Protocol):
    """What is asked of a table, wherever it is from."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""

    def numbers(self, names: Sequence[str], field: str) -> Floats:
        """Columns of numbers, an (m, len(names)) array."""

    def texts(self, name: str, field: str) -> list[str]:
        """A column as texts."""


@dataclass(frozen=True)
class Choice:
    """What the columns of a table are to an instance.

    quality : coefficients by column, per unit of the table; 0 for the rest
    cost : a number for everybody, or a column
    visible : the columns that the planner sees
    view : or the rows of B: coefficients by column, or an array over ``features``
    weights, ids : columns
    features : columns; by default those of quality, visible and view, in the table's order
    standardise : whether to measure features in standard deviations from their means
    quality_offset : b_f, for the units of the table
    """

    quality: Mapping[str, float]
    cost: float | str
    visible: Sequence[str] | None = None
    view: Sequence[Mapping[str, float]] | ArrayLike | None = None
    weights: str | None = None
    ids: str | None = None
    features: Sequence[str] | None = None
    standardise: bool = False
    quality_offset: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.visible, str):
            said = f"is the text {shorten(self.visible)}; give a list of names"
            raise InputError(said, field="visible")
        if isinstance(self.features, str):
            said = f"is the text {shorten(self.features)}; give a list of names"
            raise InputError(said, field="features")
        if not isinstance(self.quality, Mapping):
            raise InputError("must map column names to coefficients", field="quality")

    def columns(self, names: Sequence[str]) -> list[str]:
        """The features, of a table with these columns; unknown names are refused."""
        seen = [row for row in self._rows() if isinstance(row, Mapping)]
        asked = {
            "quality": self.quality, "visible": self.visible or (),
            "view": [name for row in seen for name in row], "features": self.features or (),
        }  # fmt: skip
        for field, wanted in asked.items():
            for name in wanted:
                if name not in names:
                    raise tables.unknown_column(name, names, field)
        if self.features is not None:
            return list(self.features)
        used = {name for wanted in asked.values() for name in wanted}
        return [name for name in names if name in used]

    def measured(self, names: Sequence[str]) -> list[str]:
        """All columns that must hold numbers."""
        single = [name for name in (self.cost, self.weights) if isinstance(name, str)]
        return [*self.columns(names), *single]

    def arguments(self, table: Columns) -> dict[str, Any]:
        """The arguments of `Instance.from_arrays`."""
        features = self.columns(table.names)
        agents = table.numbers(features, "agents")
        quality = validation.by_name(self.quality, features, "quality")
        offset = validation.number(self.quality_offset, "quality_offset")
        view = self._matrix(features)
        units = None
        if self.standardise:
            # f, and what the planner sees, stay the same functions of the person.
            agents, units = standardised(agents, features)
            offset -= math.fsum(quality * units.centre)
            quality = quality * units.scale
            view = None if view is None else view * units.scale

        def single(name: str, field: str) -> Floats:
            return table.numbers([name], field)[:, 0]

        return {
            "agents": agents,
            "quality": quality,
            "quality_offset": offset,
            "visible": None if self.visible is None else list(self.visible),
            "view": view,
            "cost": single(self.cost, "cost") if isinstance(self.cost, str) else self.cost,
            "weights": None if self.weights is None else single(self.weights, "weights"),
            "features": features,
            "ids": None if self.ids is None else table.texts(self.ids, "ids"),
            "units": units,
        }

    def _rows(self) -> Sequence[Any]:
        if self.view is None:
            return ()
        unfit = isinstance(self.view, (Mapping, str)) or not isinstance(self.view, Iterable)
        rows = [] if unfit else list(self.view)  # type: ignore[arg-type]
        named = [isinstance(row, Mapping) for row in rows]
        if not rows or any(named) != all(named):
            said = "must be a list of rows: mappings from names to numbers, or all of them numbers"
            raise InputError(said, field="view")
        return rows

    def _matrix(self, features: list[str]) -> Floats | None:
        """B as an array over the features."""
        rows = self._rows()
        if not rows:
            return None
        if isinstance(rows[0], Mapping):
            return np.array([validation.by_name(row, features, "view") for row in rows])
        if self.features is None:
            said = "is an array; give 'features' with it, which say what its columns are, or rows"
            raise InputError(f"{said} as mappings from names to numbers", field="view")
        matrix = validation.array(self.view, "view", 2)  # type: ignore[arg-type]
        if matrix.shape[1] != len(features):
            said = f"has rows of {matrix.shape[1]} numbers, {len(features)} expected"
            raise InputError(f"{said}: one per feature", field="view")
        return matrix


@dataclass(frozen=True, eq=False)
class FrameColumns:
    """The columns of a pandas or polars frame."""

    frame: Any

    def __post_init__(self) -> None:
        if not hasattr(self.frame, "columns"):
            raise InputError("is not a pandas or polars data frame", field="frame")

    @cached_property
    def _keys(self) -> dict[str, Any]:
        return {str(key): key for key in self.frame.columns}

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, as text."""
        return tuple(self._keys)

    def _column(self, name: str, field: str) -> Any:
        if name not in self._keys:
            raise tables.unknown_column(name, self.names, field)
        if [str(key) for key in self.frame.columns].count(name) > 1:
            said = f"names {shorten(name)}, and several columns have that name; rename them"
            raise InputError(said, field=field)
        return self.frame[self._keys[name]]

    def numbers(self, names: Sequence[str], field: str) -> Floats:
        """Columns of numbers, an (m, len(names)) array."""
        found = []
        for name in names:
            column = self._column(name, field)
            try:
                _refuse_text(column, field)
                found.append(validation.array(column, field, 1))
            except InputError as error:
                said = f"column {shorten(name)}: {error.message}"
                raise InputError(said, field=field, row=error.row) from None
        if not found:
            raise InputError("has no features; name at least one", field="features")
        return np.column_stack(found)

    def texts(self, name: str, field: str) -> list[str]:
        """A column as texts."""
        return [str(value) for value in self._column(name, field)]

    def labels(self) -> list[str] | None:
        """The index of a pandas frame, unless it only counts the rows."""
        index = getattr(self.frame, "index", None)
        if index is None:
            return None
        values = np.asarray(index)
        if values.dtype.kind in "iu" and np.array_equal(values, np.arange(len(values))):
            return None
        return [", ".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in index]


def _refuse_text(column: Any, field: str) -> None:
    """Name the first entry of a column of text, or of all sorts, that is no number."""
    values = np.asarray(column)
    if values.ndim != 1 or values.dtype.kind in "fiub":
        return
    for row, value in enumerate(values.tolist()):
        if not validation.is_number(value):
            said = f"holds {validation.kind(value)}; make it numbers, as by pandas.to_numeric"
            raise InputError(said, field=field, row=row)


# ------------------------------------------------------------------ tables as people have them


def complete(table: CsvTable, choice: Choice, drop_blank: bool) -> tuple[CsvTable, int]:
    """The table without gaps in what is used, and how many rows were left out for that.

    Gaps are refused unless ``drop_blank``.
    """
    used = choice.measured(table.names)
    rows = table.gaps(used)
    if not rows:
        return table, 0
    if not drop_blank:
        first = rows[0]
        name = next(n for n in used if tables.is_missing(table.texts(n)[first]))
        more = f", and {count(len(rows) - 1, 'more row')} have gaps" * (len(rows) > 1)
        said = f"has no number under {shorten(name)}{table.line(first)}{more}; fill them in, or"
        said += " leave such rows out (--drop-blank, in Python drop_blank=True)"
        raise InputError(said, file=table.path, field="agents", row=first)
    if len(rows) == table.size:
        said = "has gaps in every row; choose columns with fewer gaps"
        raise InputError(said, file=table.path, field="agents")
    return table.without(rows), len(rows)


def naming_column(table: CsvTable, taken: Sequence[str] = ()) -> str | None:
    """The column that names the agents, as far as one can tell: by its header, or as text."""
    free = [name for name in table.names if name and name not in taken]

    def tells_apart(name: str) -> bool:
        texts = table.texts(name)
        return all(texts) and len(set(texts)) == len(texts)

    by_header = [name for name in free if NAMING.fullmatch(name)]
    by_text = [name for name in free if name not in table.numeric]
    return next((name for name in [*by_header, *by_text] if tells_apart(name)), None)
