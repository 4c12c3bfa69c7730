"""The oracle `random`: uniform directions on the slice or facet, each with its densest threshold.

The baseline that the others have to beat. A set of good directions of probability q is hit with
probability 1 − (1 − q)^n by n of them, and q shrinks like (reach/spread)^(d−1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from numpy.random import Generator

from mipmech.oracles.heuristics.explore import Explorer, Heuristic


@dataclass(frozen=True)
class Random(Heuristic):
    """Uniform directions; each round draws one lot."""

    rounds: int | None = 40
    facets: ClassVar[bool] = True

    def round(self, explorer: Explorer, random: Generator, number: int) -> bool:  # noqa: ARG002
        """Draw one lot of directions."""
        explorer.consider(explorer.directions(random, explorer.lot))
        return False
