"""About the same share accepted in every group: `parity`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from mipmech import validation
from mipmech.errors import InputError, did_you_mean, shorten
from mipmech.model.grading import Recount
from mipmech.model.instance import Instance
from mipmech.model.requirements.directions import Pair
from mipmech.model.requirements.kind import Failure, decimal, share


@dataclass(frozen=True)
class Parity:
    """The shares accepted in any two groups differ by at most ``within``.

    groups : the name of a grouping of the instance; groups without weight do not count
    """

    groups: str
    within: float
    field: ClassVar[str] = "parity"

    @classmethod
    def parse(cls, value: object) -> Parity:
        """From {"groups": name, "within": t}."""
        if not isinstance(value, dict) or set(value) != {"groups", "within"}:
            said = f'is {validation.kind(value)}; give {{"groups": name, "within": share}}'
            raise InputError(said, field=cls.field)
        name = validation.text(value["groups"], "parity.groups")
        return cls(name, share(value["within"], "parity.within"))

    def plain(self) -> Any:
        """What the file holds for it."""
        return {"groups": self.groups, "within": self.within}

    def check(self, instance: Instance) -> None:
        """Refuse groups that the instance does not have."""
        if self.groups in instance.groups:
            return
        if not instance.groups:
            said = f"needs the groups {shorten(self.groups)}, but the instance has no 'groups'"
            raise InputError(f"{said}; add them to it", field=self.field)
        names = list(instance.groups)
        said = f"names the groups {shorten(self.groups)}; the instance has"
        said += f" {shorten(', '.join(names), 200)}{did_you_mean(self.groups, names)}"
        raise InputError(said, field=self.field)

    def pairs(self, instance: Instance) -> list[Pair]:
        """It is not about weights."""
        del instance
        return []

    def failures(self, found: Recount) -> list[Failure]:
        """By how much the shares of two groups differ too much."""
        rates = found.accepted_by(self.groups)
        most, least = max(rates, key=rates.__getitem__), min(rates, key=rates.__getitem__)
        over = rates[most] - rates[least] - decimal(self.within)
        if over <= 0:
            return []
        said = (
            f"{float(rates[most]):.4g} of {shorten(most)} are accepted and"
            f" {float(rates[least]):.4g} of {shorten(least)}, more than {self.within:g} apart"
        )
        return [Failure(self.field, over, said)]
