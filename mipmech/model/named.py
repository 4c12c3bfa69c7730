"""Numbers by feature, as objects of a file or mappings in Python have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mipmech import validation
from mipmech.errors import InputError, shorten
from mipmech.model import view as views
from mipmech.validation import Floats


def by_name(
    value: Mapping[Any, object], names: Sequence[str] | None, field: str, rest: float = 0.0
) -> Floats:
    """Numbers by name as an array over the features, ``rest`` for those that are left out."""
    if names is None:
        said = "names features, but the instance has no 'features'; add them, or list the numbers"
        raise InputError(said, field=field)
    result = np.full(len(names), rest)
    places = {name: place for place, name in enumerate(names)}
    for key, entry in value.items():
        name = str(key)
        if name not in places:
            raise views.unknown_feature(name, names, field)
        if not validation.is_number(entry):
            said = f"has {validation.kind(entry)} for {shorten(name)}; expected a number"
            raise InputError(said, field=field)
        result[places[name]] = validation.number(entry, field)
    return result
