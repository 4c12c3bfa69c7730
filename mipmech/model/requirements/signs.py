"""Weights that must be at least 0 (`nonnegative`), or at most 0 (`nonpositive`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from mipmech import validation
from mipmech.errors import InputError
from mipmech.model.grading import Recount
from mipmech.model.instance import Instance
from mipmech.model.requirements.directions import ZERO, Pair, places_of, weight_names
from mipmech.model.requirements.kind import (
    Failure,
    Feature,
    check_rows,
    feature,
    missed_pairs,
    place,
)

Chosen = Literal["all"] | tuple[Feature, ...]


@dataclass(frozen=True)
class Nonnegative:
    """The weights of these features are at least 0.

    features : "all", or some of those that the planner sees
    """

    features: Chosen
    field: ClassVar[str] = "nonnegative"
    side: ClassVar[str] = "below 0"

    @classmethod
    def parse(cls, value: object) -> Nonnegative:
        """From "all" or a list of features."""
        if value == "all":
            return cls("all")
        if isinstance(value, str):
            said = f'is {validation.kind(value)}; give "all", or a list of features'
            raise InputError(said, field=cls.field)
        names = [feature(entry, cls.field) for entry in validation.listed(value, cls.field)]
        if not names:
            said = 'is empty; give "all", or at least one feature, or leave it out'
            raise InputError(said, field=cls.field)
        return cls(tuple(names))

    def plain(self) -> Any:
        """What the file holds for it."""
        return "all" if self.features == "all" else list(self.features)

    def check(self, instance: Instance) -> None:
        """Refuse features that the instance does not have."""
        self.pairs(instance)

    def places(self, instance: Instance) -> list[int]:
        """The weights in question."""
        check_rows(instance, self.field)
        if self.features == "all":
            return list(places_of(instance))
        return list(dict.fromkeys(place(name, instance, self.field) for name in self.features))

    def pairs(self, instance: Instance) -> list[Pair]:
        """Each is at least 0."""
        return [(j, ZERO) for j in self.places(instance)]

    def failures(self, found: Recount) -> list[Failure]:
        """The weights on the wrong side."""
        names = weight_names(found.instance)
        words = [f"the weight of {names[j]} is {self.side}" for j in self.places(found.instance)]
        return missed_pairs(found, self.pairs(found.instance), words, self.field)


class Nonpositive(Nonnegative):
    """The weights of these features are at most 0."""

    field: ClassVar[str] = "nonpositive"
    side: ClassVar[str] = "above 0"

    def pairs(self, instance: Instance) -> list[Pair]:
        """Each is at most 0."""
        return [(ZERO, j) for j in self.places(instance)]
