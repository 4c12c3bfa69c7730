"""Weights as whole numbers, so that sums of them are exact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mipmech.rationals import common_integers
from mipmech.validation import Floats, Numbers


@dataclass(frozen=True, eq=False)
class Masses:
    """Weights as whole numbers: (m,) array of int64, so that sums of them are exact.

    unit : the density of one
    excess : the whole numbers of all agents together are too large by at most this; 0 unless the
        weights span more than 52 bits
    """

    whole: Numbers
    unit: Fraction
    excess: int

    @property
    def equal(self) -> bool:
        """Whether counting is enough."""
        return bool((self.whole == 1).all())


# Sums of whole weights stay below this, so that floats hold them exactly.
MOST_MASS = 1 << 52


def masses(weights: Floats) -> Masses:
    """Positive weights as whole numbers.

    >>> masses(np.array([0.5, 0.5])).unit
    Fraction(1, 2)
    """
    if (weights == weights[0]).all():
        return Masses(np.ones(len(weights), np.int64), Fraction(1, len(weights)), 0)
    integers, _shift = common_integers(weights)
    total = int(integers.sum())
    common = math.gcd(*(int(i) for i in integers))
    if total // common < MOST_MASS:
        whole = np.array([int(i) // common for i in integers], dtype=np.int64)
        return Masses(whole, Fraction(common, total), 0)
    whole = np.array([-(-int(i) * MOST_MASS // total) for i in integers], dtype=np.int64)
    return Masses(whole, Fraction(1, MOST_MASS), len(weights))
