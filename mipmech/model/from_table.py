"""An instance from a table with named columns, some of which matter: a data frame or a CSV file."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mipmech import validation
from mipmech.errors import InputError, did_you_mean, shorten
from mipmech.model import fields
from mipmech.model.costs.pricing import Norm
from mipmech.model.groups import FIELD
from mipmech.model.tables import CsvTable, unknown_column
from mipmech.model.units import standard_prices, standardised
from mipmech.text import count
from mipmech.validation import Floats

# Prices of 1/standard deviation.
STANDARD = "standard"
# Headers of columns that name people rather than measure them.
NAMING = re.compile(
    r"(?i:id|ids|key|label|name|names)|.*[-_ ](?i:id|key|name|no|nr|number)|.*[a-z](ID|Id|Name)"
)


@dataclass(frozen=True, eq=False)
class FrameColumns:
    """The columns of a pandas or polars frame.

    kept : the numbers that the rows have in the frame, if some are left out
    """

    frame: Any
    kept: Sequence[int] | None = None

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

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.frame) if self.kept is None else len(self.kept)

    def fault(self, message: str, field: str, row: int | None = None) -> InputError:
        """An error in this frame."""
        number = row if row is None or self.kept is None else self.kept[row]
        return InputError(message, field=field, row=number)

    def _column(self, name: str, field: str) -> Any:
        if name not in self._keys:
            raise unknown_column(name, self.names, field)
        if [str(key) for key in self.frame.columns].count(name) > 1:
            said = f"names {shorten(name)}, and several columns have that name; rename them"
            raise InputError(said, field=field)
        return self.frame[self._keys[name]]

    def _values(self, name: str, field: str) -> Any:
        values = np.asarray(self._column(name, field))
        return values if self.kept is None else values[list(self.kept)]

    def numbers(self, names: Sequence[str], field: str) -> Floats:
        """Columns of numbers, an (m, len(names)) array."""
        found = []
        for name in names:
            try:
                found.append(validation.array(_plain(self._values(name, field), field), field, 1))
            except InputError as error:
                said = f"column {shorten(name)}: {error.message}"
                raise InputError(said, field=field, row=error.row) from None
        if not found:
            raise InputError("has no features; name at least one", field="features")
        return np.column_stack(found)

    def texts(self, name: str, field: str) -> list[str]:
        """A column as texts."""
        return self._kept([str(value) for value in self._column(name, field)])

    def entries(self, name: str, field: str) -> list[Any]:
        """A column of labels; whole numbers that gaps have made floats are whole numbers again."""
        values = self._values(name, field)
        if values.dtype.kind == "f":
            return [int(v) if v.is_integer() else v for v in values.tolist()]
        # Dates would become the numbers of their nanoseconds.
        return list(values) if values.dtype.kind in "mM" else list(values.tolist())

    def _kept(self, entries: list[str]) -> list[str]:
        return entries if self.kept is None else [entries[row] for row in self.kept]

    def labels(self) -> list[str] | None:
        """The index of a pandas frame, unless it only counts the rows and none is left out."""
        index = getattr(self.frame, "index", range(len(self.frame)))
        values = np.asarray(index)
        if values.dtype.kind in "iu" and np.array_equal(values, np.arange(len(values))):
            return None if self.kept is None else [str(row) for row in self.kept]
        return self._kept(
            [", ".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in index]
        )

    def gaps(self, names: Sequence[str]) -> list[int]:
        """The rows without a number in one of these columns."""
        found: set[int] = set()
        for name in names:
            values = self._values(name, "agents")
            if values.dtype.kind == "f":
                found.update(np.flatnonzero(np.isnan(values)).tolist())
            elif values.dtype.kind == "O":
                found.update(i for i, value in enumerate(values.tolist()) if _is_blank(value))
        return sorted(found)

    def without(self, rows: Sequence[int]) -> FrameColumns:
        """The frame without some rows."""
        return replace(self, kept=sorted(set(range(self.size)) - set(rows)))


def _is_blank(value: Any) -> bool:
    """Whether an entry stands for no number: None, NaN, or the missing value of pandas."""
    absent = value is None or type(value).__name__ == "NAType"
    return absent or (isinstance(value, float) and math.isnan(value))


def _plain(values: Any, field: str) -> Any:
    """A column that may hold anything, as numbers; the first entry that is none is named."""
    if values.dtype.kind not in "OTU":
        return values
    for row, value in enumerate(values.tolist()):
        if not validation.is_number(value):
            said = f"holds {validation.kind(value)}; make it numbers, as by pandas.to_numeric"
            raise InputError(said, field=field, row=row)
    return np.array(values.tolist() or [], dtype=None if len(values) else float)


Table = CsvTable | FrameColumns


@dataclass(frozen=True)
class Choice:
    """What the columns of a table are to an instance; as the arguments of `Instance.from_frame`."""

    quality: Mapping[str, float]
    cost: ArrayLike | str | None = None
    reach: ArrayLike | str | None = None
    norm: Norm = "l2"
    effort: ArrayLike | Mapping[str, float] | str | None = None
    visible: Sequence[str] | None = None
    view: Sequence[Mapping[str, float]] | ArrayLike | None = None
    weights: ArrayLike | str | None = None
    ids: Sequence[str | int] | str | None = None
    groups: Sequence[str] | None = None
    features: Sequence[str] | None = None
    standardise: bool = False
    quality_offset: float = 0.0
    drop_blank: bool = False

    def columns(self, names: Sequence[str]) -> list[str]:
        """The features, of a table with these columns; unknown names are refused."""
        if not isinstance(self.quality, Mapping):
            raise InputError("must map column names to coefficients", field="quality")

        def listed(field: str) -> list[Any]:
            value = getattr(self, field)
            return [] if value is None else validation.listed(value, field)

        by_name = [row for row in listed("view") if isinstance(row, Mapping)]
        priced = self.effort if isinstance(self.effort, Mapping) else ()
        asked = {
            "quality": self.quality, "visible": listed("visible"),
            "view": [name for row in by_name for name in row], "features": listed("features"),
        }  # fmt: skip
        for field, wanted in asked.items():
            for name in wanted:
                if str(name) not in names:
                    raise unknown_column(str(name), names, field)
        for name in priced:
            if str(name) not in names:
                raise unknown_column(str(name), names, "effort")
        if self.features is not None:
            return [str(name) for name in self.features]
        used = {str(name) for wanted in asked.values() for name in wanted}
        arrays = {
            "view": (self.view is not None and not by_name, "or rows as mappings"),
            "effort": (
                np.iterable(self.effort) and not isinstance(self.effort, (str, Mapping)),
                "or a mapping",
            ),
        }
        for field, (given, instead) in arrays.items():
            if given:
                said = "is an array; give 'features' with it, which say what its columns are,"
                raise InputError(f"{said} {instead} from names to numbers", field=field)
        return [name for name in names if name in used]

    def groupings(self) -> list[str]:
        """The columns that say who belongs to which group."""
        names: list[str] = []
        for name in [] if self.groups is None else validation.listed(self.groups, FIELD):
            if str(name) in names:
                raise InputError(f"has {shorten(str(name))} twice; give it once", field=FIELD)
            names.append(str(name))
        return names

    def used(self, names: Sequence[str]) -> dict[str, str]:
        """All columns that must have no gaps, and the field that each is for."""
        single = {"cost": self.cost, "reach": self.reach, "weights": self.weights}
        found = dict.fromkeys(self.groupings(), FIELD)
        found |= {name: field for field, name in single.items() if isinstance(name, str)}
        for name, field in found.items():
            if name not in names:
                raise unknown_column(name, names, field)
        return found | dict.fromkeys(self.columns(names), "agents")

    def complete(self, table: Table) -> Table:
        """The table without gaps in what is used; they are refused unless ``drop_blank``."""
        validation.flag(self.drop_blank, "drop_blank")
        used = self.used(table.names)
        gaps = table.gaps(list(used))
        if not gaps:
            return table
        if not self.drop_blank:
            name = next(name for name in used if gaps[0] in table.gaps([name]))
            more = f", and {count(len(gaps) - 1, 'more row')} with gaps" * (len(gaps) > 1)
            what = "label" if used[name] == FIELD else "number"
            said = f"has no {what} under {shorten(name)}{more}; fill in what is missing, or leave"
            said += " such rows out (--drop-blank, in Python drop_blank=True)"
            raise table.fault(said, used[name], gaps[0])
        if len(gaps) == table.size:
            raise table.fault("has gaps in every row; choose columns with fewer gaps", "agents")
        return table.without(gaps)

    def _check_effort(self) -> None:
        """Refuse prices that cannot be meant."""
        if isinstance(self.effort, str) and self.effort != STANDARD:
            hint = did_you_mean(self.effort, [STANDARD])
            said = f'is the text {shorten(self.effort)}; give prices by column, or "{STANDARD}"'
            raise InputError(f"{said}: 1/standard deviation of each feature{hint}", field="effort")
        if self.effort is not None and self.standardise:
            said = "is for features in the units of the table, and standardise changes these; leave"
            raise InputError(f"{said} out one of the two", field="effort")

    def arguments(self, table: Table, size: int) -> dict[str, Any]:
        """The arguments of `Instance.from_arrays`, of a complete table that had so many rows."""
        validation.flag(self.standardise, "standardise")
        self._check_effort()
        features = self.columns(table.names)
        agents = table.numbers(features, "agents")
        quality = fields.parse_quality(self.quality, features)
        offset = validation.number(self.quality_offset, "quality_offset")
        view = None if self.view is None else fields.parse_rows(self.view, features, "view")
        effort = self.effort
        if isinstance(effort, str):
            effort = standard_prices(agents, features)
        units = None
        if self.standardise:
            # f, and what the planner sees, stay the same functions of the person.
            agents, units = standardised(agents, features)
            offset -= math.fsum(quality * units.centre)
            quality = quality * units.scale
            if view is not None and view.shape[1] == len(features):
                view = view * units.scale

        def per_agent(field: str) -> Any:
            value = getattr(self, field)
            if isinstance(value, str) and field == "ids":
                return table.texts(value, field)
            if isinstance(value, str):
                return table.numbers([value], field)[:, 0]
            if value is None or table.kept is None or np.ndim(value) == 0:
                return value
            given = validation.listed(value, field)
            if len(given) != size:
                said = f"has {len(given)} entries, {size} expected: one per row of the table"
                raise InputError(said, field=field)
            return [given[row] for row in table.kept]

        return {
            "agents": agents,
            "quality": quality,
            "quality_offset": offset,
            "visible": None if self.visible is None else [str(name) for name in self.visible],
            "view": view,
            "cost": per_agent("cost"),
            "reach": per_agent("reach"),
            "norm": self.norm,
            "effort": effort,
            "weights": per_agent("weights"),
            "features": features,
            "ids": table.labels() if self.ids is None else per_agent("ids"),
            "units": units,
            "groups": {name: table.entries(name, FIELD) for name in self.groupings()},
        }


def naming_column(table: CsvTable, taken: Container[str]) -> str | None:
    """The column that names the agents, as far as one can tell.

    That is one called id, one whose header is otherwise a name's, or one of text; each only if all
    of its entries differ.
    """
    free = [name for name in table.names if name and name not in taken]

    def tells_apart(name: str) -> bool:
        texts = table.texts(name, "ids")
        return all(texts) and len(set(texts)) == len(texts)

    by_header = [name for name in free if NAMING.fullmatch(name)]
    by_header.sort(key=lambda name: name.casefold() != "id")
    by_text = [name for name in free if name not in table.numeric]
    return next((name for name in [*by_header, *by_text] if tells_apart(name)), None)
