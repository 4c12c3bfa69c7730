"""Groups of agents: the field `groups` of an instance, a name and a label for each agent."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipmech import validation
from mipmech.errors import InputError, did_you_mean, shorten
from mipmech.text import clean, short
from mipmech.validation import Flags, Numbers

FIELD = "groups"
# A column with more labels than this tells people apart rather than groups of them.
MOST_LABELS = 1000
# In a message; the middle of a longer list is left out.
LONGEST_LIST = 200


@dataclass(frozen=True, eq=False)
class Grouping:
    """The agents of a sample, each in one group.

    Attributes
    ----------
    labels : tuple of str
        The names of the groups, distinct, each with a member, in the order of their characters.
    members : (m,) array of int
        The place in ``labels`` of every agent; read-only.

    Examples
    --------
    >>> grouping = parse_grouping("sex", ["m", "f", "m"], 3)
    >>> grouping.labels, grouping.members.tolist()
    (('f', 'm'), [1, 0, 1])
    """

    labels: tuple[str, ...]
    members: Numbers

    def parts(self) -> Iterator[tuple[str, Numbers]]:
        """Every label with the numbers of its agents, ascending."""
        order = np.argsort(self.members, kind="stable")
        ends = np.searchsorted(self.members[order], np.arange(1, len(self.labels)))
        yield from zip(self.labels, np.split(order, ends), strict=True)

    def of(self, agents: Numbers | Flags) -> Grouping:
        """The same for some of the agents; labels that none of them has are dropped."""
        used, members = np.unique(self.members[agents], return_inverse=True)
        labels = tuple(self.labels[place] for place in used)
        return Grouping(labels, _frozen(members))

    def of_each(self) -> list[str]:
        """The label of every agent."""
        return [self.labels[place] for place in self.members.tolist()]


@dataclass(frozen=True, eq=False)
class Groups(Mapping[str, Grouping]):
    """The groupings of an instance by name, in the order in which they were given."""

    entries: tuple[tuple[str, Grouping], ...] = ()

    def __getitem__(self, name: str) -> Grouping:
        for known, grouping in self.entries:
            if known == name:
                return grouping
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def named(self, name: str, field: str = FIELD) -> Grouping:
        """The grouping of this name; one that is not there is refused."""
        if name in self:
            return self[name]
        said = f"names {shorten(name)}, and the instance has no groups; add 'groups' to it"
        if self:
            known = short(clean(", ".join(self)), LONGEST_LIST)
            said = f"names {shorten(name)}, which is no grouping; there are {known}"
        raise InputError(said + did_you_mean(name, list(self)), field=field)

    def of(self, agents: Numbers | Flags) -> Groups:
        """The same for some of the agents."""
        return Groups(tuple((name, grouping.of(agents)) for name, grouping in self.entries))

    def to_dict(self) -> dict[str, list[str]]:
        """The object in the file."""
        return {name: grouping.of_each() for name, grouping in self.entries}

    def digest_into(self, total: hashlib._Hash) -> None:
        """Add all names and labels, groupings by name, to a digest; nothing if there are none.

        Texts are in UTF-8, each after its number of bytes, so that no two lists of texts look the
        same.
        """
        if not self.entries:
            return

        def add_text(text: str) -> None:
            data = text.encode()
            total.update(np.array(len(data), dtype="<i8").tobytes() + data)

        total.update(b"groups" + np.array(len(self), dtype="<i8").tobytes())
        for name in sorted(self):
            grouping = self[name]
            add_text(name)
            total.update(np.array(len(grouping.labels), dtype="<i8").tobytes())
            for label in grouping.labels:
                add_text(label)
            total.update(grouping.members.astype("<i8").tobytes())


Labels = Grouping | Sequence[str] | Sequence[int] | Sequence[str | int] | NDArray[Any]


def parse_groups(value: object, m: int) -> Groups:
    """Groupings from a mapping name → one label per agent.

    Parameters
    ----------
    value : mapping of str to Grouping or sequence of str or int
        The labels by name; text or whole numbers, of which only the text counts.
    m : int
        The number of agents.

    Raises
    ------
    InputError
        With the name of the grouping and, if one label is at fault, the row.

    Examples
    --------
    >>> parse_groups({"school": [1, "1", 2]}, 3)["school"].labels
    ('1', '2')
    """
    if not isinstance(value, Mapping):
        said = f'is {validation.kind(value)}; give an object, as in {{"sex": ["f", "m", …]}}'
        raise InputError(said, field=FIELD)
    return Groups(tuple((check_name(name), parse_grouping(name, value[name], m)) for name in value))


def check_name(name: object) -> str:
    """The name of a grouping; refused unless it can be one."""
    try:
        return _plain(name)
    except InputError as error:
        raise InputError(f"has a name that {error.message}", field=FIELD) from None


def parse_grouping(name: str, labels: object, m: int) -> Grouping:
    """One grouping, from a label per agent."""
    called = shorten(name)
    if isinstance(labels, Grouping):
        labels = labels.of_each()
    try:
        given = validation.listed(labels, FIELD)
    except InputError as error:
        raise InputError(f"{called} {error.message} of labels", field=FIELD) from None
    if len(given) != m:
        said = f"{called} has {len(given):,} labels, {m:,} expected: one per agent"
        raise InputError(said, field=FIELD)
    places: dict[str, int] = {}
    found = np.empty(m, dtype=np.int64)
    for row, label in enumerate(given):
        text = label if type(label) is str else _text(label)
        place = None if text is None else places.get(text)
        if place is None:
            try:
                text = _plain(label if text is None else text)
            except InputError as error:
                said = error.message
                if not isinstance(label, str):
                    said = f"is {validation.kind(label)}; expected text or a whole number"
                said = f"a label of {called} {said}"
                raise InputError(said, field=FIELD, row=row) from None
            place = places[text] = len(places)
            if len(places) > MOST_LABELS:
                said = f"{called} has more than {MOST_LABELS:,} labels; give fewer, larger groups"
                raise InputError(said, field=FIELD)
        found[row] = place
    ranks = np.empty(len(places), dtype=np.int64)
    in_order = sorted(places)
    for rank, text in enumerate(in_order):
        ranks[places[text]] = rank
    return Grouping(tuple(in_order), _frozen(ranks[found]))


def _text(label: object) -> str | None:
    """The text of a label that may be one: text or a whole number."""
    if isinstance(label, str):
        return str(label)
    # A span of time is an integer to numpy.
    whole = isinstance(label, (int, np.integer)) and not isinstance(label, (bool, np.timedelta64))
    return str(label) if whole else None


def _plain(text: object) -> str:
    """A text that can be shown, and typed without doubt."""
    result = validation.text(text, FIELD)
    if result != result.strip():
        raise InputError(f"has spaces around it: {shorten(result)}; remove them")
    return result


def _frozen(members: NDArray[Any]) -> Numbers:
    members = members.reshape(-1).astype(np.int64, copy=False)
    members.setflags(write=False)
    return members
