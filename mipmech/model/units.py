"""The units that people know their features in, where the instance holds standardised numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mipmech import validation
from mipmech.errors import InputError, shorten
from mipmech.tolerances import LARGEST
from mipmech.validation import Floats


@dataclass(frozen=True)
class Units:
    """The way back to the user's units: centre + scale · x, feature by feature.

    Parameters
    ----------
    centre, scale : (n,) tuple of float
        Each scale is above 0.

    Examples
    --------
    >>> Units((500.0,), (100.0,)).to_dict()
    {'centre': [500.0], 'scale': [100.0]}
    """

    centre: tuple[float, ...]
    scale: tuple[float, ...]

    def to_dict(self) -> dict[str, list[float]]:
        """The object in the file."""
        return {"centre": list(self.centre), "scale": list(self.scale)}


def parse_units(value: Any, width: int) -> Units:
    """Units from the object in the file, checked: one centre and one scale per feature."""
    if not isinstance(value, dict) or set(value) != {"centre", "scale"}:
        said = f'is {validation.kind(value)}; give {{"centre": [...], "scale": [...]}}'
        raise InputError(said, field="units")
    found = {}
    for key in ("centre", "scale"):
        numbers = validation.numbers(value[key], f"units.{key}")
        validation.check_size(numbers, f"units.{key}")
        validation.length(numbers, width, f"units.{key}", "one per feature")
        found[key] = tuple(map(float, numbers))
    for row, scale in enumerate(found["scale"]):
        if scale < 1 / LARGEST:
            what = "must be above 0" if scale <= 0 else f"must be at least {1 / LARGEST:g}"
            raise InputError(f"is {scale:g}; it {what}", field="units.scale", row=row)
    return Units(**found)


def deviations(agents: Floats, names: Sequence[str]) -> Units:
    """The mean and the standard deviation of each feature.

    Agents count once each, whatever their weights, and the deviation is the sample's own (divided
    by m): the unit describes the table, and does not change with what is done with it.
    """
    if not len(agents):
        raise InputError("is empty; a sample needs at least one agent", field="agents")
    for name, low, high in zip(names, agents.min(axis=0), agents.max(axis=0), strict=True):
        if low == high:
            said = f"has {shorten(name)} = {low:g} for everyone, so it has no standard deviation"
            raise InputError(f"{said} to be measured in; leave the feature out", field="features")
    # Exact sums: how a machine orders a sum must not change the digest of what is made.
    centre = [math.fsum(column) / len(agents) for column in agents.T]
    with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is refused below
        away = agents - np.array(centre)
        scale = [math.sqrt(math.fsum(column) / len(agents)) for column in (away**2).T]
    return parse_units({"centre": centre, "scale": scale}, len(names))


def standardised(agents: Floats, names: Sequence[str]) -> tuple[Floats, Units]:
    """Agents in standard deviations from the mean, and the way back."""
    units = deviations(agents, names)
    return (agents - np.array(units.centre)) / np.array(units.scale), units


def standard_prices(agents: Floats, names: Sequence[str]) -> Floats:
    """Prices with which a move by one standard deviation costs the same in every feature."""
    return 1 / np.array(deviations(agents, names).scale)
