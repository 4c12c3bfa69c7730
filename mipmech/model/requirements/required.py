"""What a user demands of a rule, in a file (`mipmech/requirements@1`), in Python, or by options."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from mipmech import untrusted, validation
from mipmech.errors import InputError, did_you_mean, shorten
from mipmech.model import tables
from mipmech.model.requirements.accepted import Accepted
from mipmech.model.requirements.kind import RequirementKind
from mipmech.model.requirements.order import Order
from mipmech.model.requirements.own import Own
from mipmech.model.requirements.parity import Parity
from mipmech.model.requirements.signs import Nonnegative, Nonpositive
from mipmech.tolerances import DEEPEST_KEY, LARGEST_PLAN

FORMAT = "mipmech/requirements@1"
KINDS: dict[str, Any] = {
    kind.field: kind for kind in (Nonnegative, Nonpositive, Order, Accepted, Parity)
}


@dataclass(frozen=True)
class Requirements:
    """What the planner demands of a rule w·x ≥ b; whatever is left out is not demanded.

    Parameters
    ----------
    nonnegative, nonpositive : "all" or list of str or int, optional
        The features whose weights are at least 0, or at most 0. Features are named or numbered; for
        a general view, numbers of its rows.
    order : list of pairs, optional
        Pairs [a, b]: the weight of a is at least that of b.
    accepted : pair of float, optional
        [low, high]: the share of agents, by weight, who are accepted after they have moved. Limits
        count as they are written: 0.3 is 3/10.
    parity : mapping, optional
        ``{"groups": name, "within": t}``: accepted shares of any two groups differ by at most t.
    own : Own or sequence of Own, optional
        Constraints of one's own.

    Examples
    --------
    >>> Requirements(nonnegative="all", accepted=(0.1, 0.3))
    Requirements(nonnegative='all', accepted=[0.1, 0.3])
    """

    nonnegative: Any = None
    nonpositive: Any = None
    order: Any = None
    accepted: Any = None
    parity: Any = None
    own: Any = ()

    def __post_init__(self) -> None:
        for field, kind in KINDS.items():
            value = getattr(self, field)
            if value is not None and not isinstance(value, kind):
                object.__setattr__(self, field, kind.parse(value))
        own = (self.own,) if isinstance(self.own, Own) else tuple(self.own)
        for entry in own:
            if not isinstance(entry, Own):
                said = f"has {validation.kind(entry)}; give Own(rows=…, holds=…)"
                raise InputError(said, field="own")
        object.__setattr__(self, "own", own)

    def __repr__(self) -> str:
        given = [f"{kind.field}={kind.plain()!r}" for kind in self]
        given += [f"own={[own.name for own in self.own]!r}"] if self.own else []
        return f"Requirements({', '.join(given)})"

    def __iter__(self) -> Iterator[RequirementKind]:
        """Those that are given, without those of the user's own."""
        return iter([value for field in KINDS if (value := getattr(self, field)) is not None])

    def __bool__(self) -> bool:
        return bool(self.given)

    @property
    def given(self) -> tuple[str, ...]:
        """The fields that are given."""
        return (*(kind.field for kind in self), *(("own",) if self.own else ()))

    def without(self, *dropped: str) -> Requirements:
        """The same without some fields.

        Parameters
        ----------
        *dropped : str
            Their names.
        """
        nothing: dict[str, Any] = {field: () if field == "own" else None for field in dropped}
        return replace(self, **nothing)

    def updated(self, other: Requirements) -> Requirements:
        """The same with the fields that another one gives in place of these.

        Parameters
        ----------
        other : Requirements
            What takes precedence.
        """
        return replace(self, **{field: getattr(other, field) for field in other.given})

    def to_dict(self) -> dict[str, Any]:
        """The object of a file; requirements of one's own cannot be written, and are left out."""
        return {"format": FORMAT, **{kind.field: kind.plain() for kind in self}}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Requirements:
        """From the object of a file.

        Parameters
        ----------
        content : mapping
            The object.
        """
        known = ("format", *KINDS)
        if content.get("format", FORMAT) != FORMAT:
            said = f'is {validation.kind(content["format"])}; this program reads "{FORMAT}"'
            raise InputError(said, field="format")
        for key, value in content.items():
            if key not in known:
                listed = ", ".join(known) + did_you_mean(key, known)
                raise InputError(
                    f"is not a field of the format; the fields are {listed}",
                    field=shorten(key).strip("'\""),
                )
            if value is None:
                raise InputError("is null; leave it out, or give it", field=key)
        return cls(**{key: value for key, value in content.items() if key != "format"})

    @classmethod
    def load(cls, path: str | Path) -> Requirements:
        """Read a file, ``.toml`` or JSON.

        Parameters
        ----------
        path : str or Path
            The file.

        Raises
        ------
        InputError
            With the file, the field and the remedy.
        """
        file = Path(path)
        try:
            return cls.from_dict(_content(file))
        except InputError as error:
            raise error.located(file) from None
        except OSError as error:
            raise tables.unreadable(file, error) from None

    @classmethod
    def of(cls, given: Any) -> Requirements:
        """Requirements, however they are given; None demands nothing.

        Parameters
        ----------
        given : Requirements, mapping, str, Path or None
            Themselves, the object of a file, or a file's name.
        """
        if given is None:
            return cls()
        if isinstance(given, Requirements):
            return given
        if isinstance(given, (str, Path)):
            return cls.load(given)
        if isinstance(given, Mapping):
            return cls.from_dict(given)
        said = f"is of the type {type(given).__name__}; give Requirements, a mapping, or a file"
        raise InputError(said, field="require")


RequirementsLike = Requirements | Mapping[str, Any] | str | Path


def _content(file: Path) -> dict[str, Any]:
    if file.suffix.lower() != ".toml":
        return untrusted.json_object(file, LARGEST_PLAN)
    text = untrusted.read_text(file, LARGEST_PLAN)
    if any(line.count(".") > DEEPEST_KEY for line in text.splitlines()):
        raise InputError("is nested too deeply")
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"is not TOML: {error}") from None


def fields_of_files() -> Sequence[str]:
    """The fields that a file may have, in order."""
    return [field.name for field in fields(Requirements) if field.name in KINDS]
