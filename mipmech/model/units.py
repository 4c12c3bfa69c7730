"""The units that people know their features in, where the instance holds standardised numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mipmech import validation
from mipmech.errors import InputError


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
        numbers = np.asarray(validation.numbers(value[key], f"units.{key}"), dtype=np.float64)
        validation.length(numbers, width, f"units.{key}", "one per feature")
        found[key] = tuple(map(float, numbers))
    for row, scale in enumerate(found["scale"]):
        if scale <= 0:
            raise InputError(f"is {scale:g}; it must be above 0", field="units.scale", row=row)
    return Units(**found)
