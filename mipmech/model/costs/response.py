"""How agents respond to a direction: the same few figures for every cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

# Weights or moves by feature, exactly; features that are left out have 0.
Sparse = Mapping[int, Fraction]


@dataclass(frozen=True)
class Response:
    """How agents respond to a rule w·x ≥ b, exactly.

    With N(w) the dual norm, an agent at distance d = b − w·x ≥ 0 can pass at a cost of c·d/N(w), by
    moving d·step: the cheapest way to raise the score by 1 is ``step``, of cost 1/N(w).

    Attributes
    ----------
    square : Fraction
        N(w)².
    step : mapping of int to Fraction
        By feature; w·step = 1.
    ties : tuple of Fraction
        What other moves of the same cost do for quality, if there are any (l1).
    """

    square: Fraction
    step: Sparse
    ties: tuple[Fraction, ...] = ()


def products(rows: Sequence[Sparse], others: Sequence[Sparse]) -> list[list[Fraction]]:
    """The product of every row with every other one; whole numbers are faster than fractions."""
    first, second = [_whole(row) for row in rows], [_whole(row) for row in others]
    return [
        [
            Fraction(sum(value * b[j] for j, value in a.items() if j in b), scale_a * scale_b)
            for b, scale_b in second
        ]
        for a, scale_a in first
    ]


def _whole(row: Sparse) -> tuple[dict[int, int], int]:
    """Whole numbers over one denominator."""
    scale = math.lcm(*(value.denominator for value in row.values()))
    return {j: int(value * scale) for j, value in row.items()}, scale


def product(a: Sparse, b: Sparse) -> Fraction:
    """Σ a_j b_j."""
    return sum((value * b[j] for j, value in a.items() if j in b), Fraction(0))
