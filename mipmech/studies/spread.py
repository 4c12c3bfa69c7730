"""The spread of several figures of one kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Spread:
    """Least, quartiles, median and greatest of several figures."""

    min: float
    q1: float
    median: float
    q3: float
    max: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread | None:
        """The spread of these figures; None if there are none.

        >>> Spread.of([3.0, 1.0, 2.0])
        Spread(min=1.0, q1=1.5, median=2.0, q3=2.5, max=3.0, count=3)
        """
        array = np.array(list(values), dtype=np.float64)
        if not len(array):
            return None
        least, q1, median, q3, greatest = map(float, np.quantile(array, [0, 0.25, 0.5, 0.75, 1]))
        return cls(least, q1, median, q3, greatest, len(array))
