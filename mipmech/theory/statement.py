"""A statement of the paper as two numbers that can be compared."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Statement:
    """A statement ``larger ≥ smaller`` of the paper; true or false on the data at hand.

    Parameters
    ----------
    name : str
    larger, smaller : Fraction or float

    Examples
    --------
    >>> bool(Statement("Lemma 4", larger=0.5, smaller=0.25))
    True
    """

    name: str
    larger: Fraction | float
    smaller: Fraction | float

    def __bool__(self) -> bool:
        return self.larger >= self.smaller

    def to_dict(self) -> dict[str, str | float | bool]:
        """The statement and its verdict."""
        sides = {"larger": float(self.larger), "smaller": float(self.smaller)}
        return {"name": self.name, **sides, "holds": bool(self)}

    def __str__(self) -> str:
        verdict, relation = ("holds", "≥") if self else ("fails", "<")
        larger, smaller = float(self.larger), float(self.smaller)
        return f"{self.name} {verdict}: {larger:.6g} {relation} {smaller:.6g}"
