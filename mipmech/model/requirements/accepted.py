"""How many are accepted after they have moved: `accepted`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from mipmech import validation
from mipmech.errors import InputError
from mipmech.model.grading import Recount
from mipmech.model.instance import Instance
from mipmech.model.requirements.directions import Pair
from mipmech.model.requirements.kind import Failure, decimal, share


@dataclass(frozen=True)
class Accepted:
    """The share of agents accepted, by weight, lies between these limits, both included."""

    low: float
    high: float
    field: ClassVar[str] = "accepted"

    @classmethod
    def parse(cls, value: object) -> Accepted:
        """From [low, high]."""
        two = validation.listed(value, cls.field)
        if len(two) != 2:
            said = f"has {len(two)} numbers; give [low, high], shares from 0 to 1"
            raise InputError(said, field=cls.field)
        low, high = (share(limit, cls.field) for limit in two)
        if low > high:
            said = f"has the lower limit {low:g} above the upper one {high:g}; swap them"
            raise InputError(said, field=cls.field)
        return cls(low, high)

    def plain(self) -> Any:
        """What the file holds for it."""
        return [self.low, self.high]

    def check(self, instance: Instance) -> None:
        """It fits every instance."""

    def pairs(self, instance: Instance) -> list[Pair]:
        """It is not about weights."""
        del instance
        return []

    def failures(self, found: Recount) -> list[Failure]:
        """How far the share is from the limits."""
        now, low, high = found.accepted_share, decimal(self.low), decimal(self.high)
        said = f"{float(now):.4g} of the agents are accepted"
        if now < low:
            return [Failure(self.field, low - now, f"{said}, fewer than {self.low:g}")]
        if now > high:
            return [Failure(self.field, now - high, f"{said}, more than {self.high:g}")]
        return []
