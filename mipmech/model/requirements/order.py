"""Weights that must be at least others: `order`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from mipmech import validation
from mipmech.errors import InputError
from mipmech.model.grading import Recount
from mipmech.model.instance import Instance
from mipmech.model.requirements.directions import Pair, weight_names
from mipmech.model.requirements.kind import (
    Failure,
    Feature,
    check_rows,
    feature,
    missed_pairs,
    place,
)


@dataclass(frozen=True)
class Order:
    """For each pair, the weight of the first is at least that of the second."""

    chosen: tuple[tuple[Feature, Feature], ...]
    field: ClassVar[str] = "order"

    @classmethod
    def parse(cls, value: object) -> Order:
        """From a list of pairs."""
        pairs = []
        for row, entry in enumerate(validation.listed(value, cls.field)):
            two = validation.listed(entry, cls.field) if not isinstance(entry, str) else [entry]
            if len(two) != 2:
                said = "is not a pair; give [a, b] for weight of a ≥ weight of b"
                raise InputError(said, field=cls.field, row=row)
            first, second = (feature(name, cls.field) for name in two)
            pairs.append((first, second))
        if not pairs:
            raise InputError("is empty; give pairs [a, b], or leave it out", field=cls.field)
        return cls(tuple(pairs))

    def plain(self) -> Any:
        """What the file holds for it."""
        return [list(pair) for pair in self.chosen]

    def check(self, instance: Instance) -> None:
        """Refuse features that the instance does not have, and pairs of one feature."""
        for row, (above, below) in enumerate(self.pairs(instance)):
            if above == below:
                said = "compares a feature with itself; give two features"
                raise InputError(said, field=self.field, row=row)

    def pairs(self, instance: Instance) -> list[Pair]:
        """The weights in question."""
        check_rows(instance, self.field)
        return [
            (place(above, instance, self.field), place(below, instance, self.field))
            for above, below in self.chosen
        ]

    def failures(self, found: Recount) -> list[Failure]:
        """The pairs in the wrong order."""
        names, pairs = weight_names(found.instance), self.pairs(found.instance)
        words = [f"the weight of {names[a]} is below that of {names[b]}" for a, b in pairs]
        return missed_pairs(found, pairs, words, self.field)
