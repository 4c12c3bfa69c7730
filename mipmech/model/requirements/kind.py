"""What every kind of requirement has in common.

Adding a kind means: a file here with a class of this shape, its field in `required.Requirements`,
and, unless it is about weights by way of `directions`, its rows in `formulations` and its bound
over a cell in the engine and in the checker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NoReturn, Protocol

import numpy as np

from mipmech import validation
from mipmech.errors import InputError, did_you_mean, shorten
from mipmech.model.grading import Recount
from mipmech.model.instance import Instance
from mipmech.model.requirements.directions import (
    DirectionCone,
    Pair,
    places_of,
    weight_names,
    weights_of,
)

# A feature by name or number, or the number of a row of the view.
Feature = str | int


@dataclass(frozen=True)
class Failure:
    """A requirement that a rule fails.

    Attributes
    ----------
    field : str
        The requirement.
    by : Fraction
        By how much: a share of the agents, or of the rule's largest weight.
    what : str
        In words.
    """

    field: str
    by: Fraction
    what: str

    def to_dict(self) -> dict[str, Any]:
        """The object printed under ``--json``."""
        return {"requirement": self.field, "by": float(self.by), "what": self.what}


class RequirementKind(Protocol):
    """A requirement of some kind.

    Attributes
    ----------
    field : str
        Its name in a file.
    """

    field: ClassVar[str]

    def plain(self) -> Any:
        """What the file holds for it."""

    def check(self, instance: Instance) -> None:
        """Refuse what the instance does not have."""

    def pairs(self, instance: Instance) -> list[Pair]:
        """What it demands of the weights (`directions`), if it is about them."""

    def failures(self, found: Recount) -> list[Failure]:
        """How a rule fails it, exactly; nothing if it does not."""


def decimal(value: float) -> Fraction:
    """A limit as it is written: 0.3 is 3/10, although the float is a little less.

    >>> decimal(0.3)
    Fraction(3, 10)
    """
    return Fraction(repr(float(value)))


def share(value: object, field: str) -> float:
    """A share of the agents, from 0 to 1."""
    number = validation.number(value, field)
    if not 0 <= number <= 1:
        percent = f": {number:g} % is {number / 100:g}" if 1 < number <= 100 else ""
        said = f"has {number:g}; expected a share from 0 to 1{percent}"
        raise InputError(said, field=field)
    return number


def feature(value: object, field: str) -> Feature:
    """A feature, by name or number."""
    if isinstance(value, str):
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    raise InputError(
        f"has {validation.kind(value)}; expected a feature's name or number", field=field
    )


def place(value: Feature, instance: Instance, field: str) -> int:
    """The place of a feature among the weights."""

    def refuse(said: str) -> NoReturn:
        raise InputError(said, field=field)

    places, names = places_of(instance), weight_names(instance)
    if instance.view.columns is None:
        if isinstance(value, str):
            refuse(
                f"names {shorten(value)}, but this planner sees a general view: give the numbers of"
                f" its rows, 0 to {len(names) - 1}"
            )
    elif isinstance(value, str):
        if value not in names:
            known = [names[j] for j in places]
            listed = shorten(", ".join(known), 200)
            refuse(
                f"names {shorten(value)}, which is not a feature that the planner sees: {listed}"
                + did_you_mean(value, known)
            )
        value = names.index(value)
    if not 0 <= value < len(names):
        refuse(f"has number {value}; they are numbered 0 to {len(names) - 1}")
    if value not in places:
        refuse(f"has {names[value]}, which the planner does not see: its weight is always 0")
    return value


def check_rows(instance: Instance, field: str) -> None:
    """Refuse views with rows that depend on others: their weights are no facts about a rule."""
    view = instance.view
    if view.columns is None and len(view.rows) < len(view.matrix):
        raise InputError(
            "is about the weights of the view's rows, but some of these depend on the others, so"
            " that one rule has many weights; leave the dependent rows out of 'view'",
            field=field,
        )


def missed_pairs(
    found: Recount, pairs: Sequence[Pair], words: Sequence[str], field: str
) -> list[Failure]:
    """The pairs of weights that a rule fails, each with its words."""
    weights = weights_of(found.instance, found.mechanism)
    cone = DirectionCone(places_of(found.instance), tuple(pairs))
    missed = [(cone.missed(pair, weights), text) for pair, text in zip(pairs, words, strict=True)]
    return [Failure(field, by, text) for by, text in missed if by]
