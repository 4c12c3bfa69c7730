"""The fields of an instance: checked, and made into what the instance holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mipmech import validation
from mipmech.errors import InputError, shorten
from mipmech.model import view as views
from mipmech.model.named import by_name
from mipmech.model.view import View
from mipmech.text import writable
from mipmech.tolerances import LIGHTEST, MOST_ROWS, MOST_SEEN, MOST_VIEW
from mipmech.validation import Floats


@dataclass(frozen=True)
class Smoothing:
    """The sample is drawn from a σ-smoothed distribution whose base has this radius.

    Parameters
    ----------
    sigma, radius : float
    """

    sigma: float
    radius: float

    def to_dict(self) -> dict[str, float]:
        """The object in the file."""
        return {"sigma": self.sigma, "radius": self.radius}


def parse_quality(quality: ArrayLike | Mapping[str, float], names: Sequence[str] | None) -> Floats:
    """w_f, from numbers or from an object feature → number."""
    if isinstance(quality, Mapping):
        return by_name(quality, names, "quality")
    return validation.array(quality, "quality", 1)


def parse_ids(ids: Sequence[object], m: int) -> tuple[str, ...]:
    """Names of agents; numbers are welcome, since many tables have them."""
    given = validation.listed(ids, "ids")
    if len(given) != m:
        said = f"has {len(given)} names, {m} expected: one per agent"
        raise InputError(said, field="ids")
    for row, name in enumerate(given):
        whole = isinstance(name, (int, np.integer)) and not isinstance(name, bool)
        if not whole and not isinstance(name, str):
            said = f"is {validation.kind(name)}; expected text or a whole number"
            raise InputError(said, field="ids", row=row)
    return tuple(writable(str(name)) for name in given)


def parse_weights(weights: ArrayLike | None, m: int) -> Floats:
    """One weight per agent, 1 each if none are given."""
    if weights is None:
        return np.ones(m)
    array = validation.array(weights, "weights", 1)
    validation.length(array, m, "weights", "one per agent")
    for row in np.flatnonzero(array < 0)[:1]:
        said = f"is {array[row]:g}; a weight must be 0 or more"
        raise InputError(said, field="weights", row=int(row))
    if not (array > 0).any():
        raise InputError("are all 0; give at least one agent a weight", field="weights")
    for row in np.flatnonzero((array > 0) & (array < LIGHTEST * array.max()))[:1]:
        said = (
            f"is {array[row]:g}, less than {LIGHTEST:g} of the largest, which sums of floats would"
            " lose; set it to 0"
        )
        raise InputError(said, field="weights", row=int(row))
    return array


def parse_names(features: Sequence[object], width: int) -> tuple[str, ...]:
    """Distinct names, one per feature."""
    names: dict[str, int] = {}
    for row, feature in enumerate(validation.listed(features, "features")):
        try:
            name = validation.text(feature, "features")
            if name != name.strip():
                raise InputError(f"has spaces around {shorten(name)}; remove them")
            if name in names:
                raise InputError(f"has {shorten(name)} twice; names must be distinct")
        except InputError as error:
            raise InputError(error.message, field="features", row=row) from None
        names[name] = row
    if len(names) != width:
        said = f"has {len(names)} names, {width} expected: one per feature"
        raise InputError(said, field="features")
    return tuple(names)


def parse_rows(rows: object, names: Sequence[str] | None, field: str) -> Floats:
    """A matrix with a column per feature, of rows of numbers or of objects feature → number."""
    if isinstance(rows, Sequence) and rows and all(isinstance(row, Mapping) for row in rows):
        return np.array([by_name(row, names, field) for row in rows])
    if not isinstance(rows, np.ndarray) and any(
        isinstance(row, Mapping) for row in validation.listed(rows, field)
    ):
        raise InputError("has rows of two kinds; give all by name, or all as numbers", field=field)
    return validation.array(rows, field, 2)  # type: ignore[arg-type]


def parse_seen(
    visible: Sequence[str | int] | None,
    view: object,
    projection: ArrayLike | None,
    features: Sequence[str] | None,
    width: int,
) -> View:
    """The one of visible, projection and view that is given."""
    choices = {"visible": visible, "projection": projection, "view": view}
    given = [key for key, value in choices.items() if value is not None]
    if len(given) != 1:
        found = " and ".join(given) or "none"
        said = f"exactly one of visible, projection, view says what the planner sees; found {found}"
        raise InputError(said, field=given[1] if given else "visible")
    if visible is not None:
        names = None if features is None else tuple(features)
        numbers = views.column_numbers(visible, names, width)
        if len(numbers) * width > MOST_SEEN:
            said = f"has {len(numbers):,} of {width:,} features; at most {MOST_SEEN // width:,} can"
            raise InputError(f"{said} be seen of so many", field="visible")
        return views.from_visible(numbers, width)
    matrix = validation.frozen(parse_rows(choices[given[0]], features, given[0]))
    if matrix.shape[1] != width or not len(matrix):
        said = f"has rows of {matrix.shape[1]} numbers, {width} expected: one per feature"
        raise InputError(said, field=given[0])
    validation.check_not_tiny(matrix, given[0])
    if view is not None and len(matrix) > MOST_ROWS:
        said = f"has {len(matrix):,} rows, at most {MOST_ROWS} are read; more columns than that may"
        raise InputError(f"{said} be seen as 'visible'", field="view")
    if view is not None and matrix.size > MOST_VIEW:
        said = f"has {len(matrix):,} rows of {width:,} features; at most {MOST_VIEW // width:,} can"
        raise InputError(f"{said} be seen of so many; more columns as 'visible'", field="view")
    make = views.from_projection if projection is not None else views.from_view
    return make(matrix)


def parse_smoothing(value: object) -> Smoothing:
    """Smoothing from the object in the file."""
    if not isinstance(value, dict) or set(value) != {"sigma", "radius"}:
        raise InputError(
            f'is {validation.kind(value)}; give {{"sigma": s, "radius": r}}', field="smoothing"
        )
    figures = {
        key: validation.number(value[key], f"smoothing.{key}") for key in ("sigma", "radius")
    }
    for key, number in figures.items():
        if number <= 0:
            raise InputError(f"is {number:g}; it must be above 0", field=f"smoothing.{key}")
    return Smoothing(**figures)
