"""Shares of groups in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from mipmech.text import clean, points, short

# Of more groups than this only some are named.
MOST_GROUPS = 8
# Longer names of groupings, and of groups, are cut short.
LONGEST_NAME, LONGEST_LABEL = 16, 40

Shares = Mapping[str, Mapping[str, Fraction]]


def size_entries(shares: Shares) -> dict[str, str]:
    """How large the groups are: the first ones, or, of many, the largest."""
    entries: dict[str, str] = {}
    for name, by_label in shares.items():
        shown = list(by_label.items())
        if len(shown) > MOST_GROUPS:
            shown = sorted(shown, key=lambda pair: -pair[1])[: MOST_GROUPS - 1]
        more = f"; {len(by_label) - len(shown)} more" * (len(shown) < len(by_label))
        entries[_key(name, entries)] = _listed(shown) + more
    return entries


def rate_entries(shares: Shares) -> dict[str, str]:
    """Which share of each group is accepted, and how far apart they are."""
    entries: dict[str, str] = {}
    for name, by_label in shares.items():
        shown = list(by_label.items())
        ends = [min(shown, key=lambda pair: pair[1]), max(shown, key=lambda pair: pair[1])]
        said = _listed(shown)
        if len(shown) > MOST_GROUPS:
            said = f"{_listed(ends)}; {len(shown) - 2} more between"
        apart = f"; {points(float(ends[1][1] - ends[0][1]))} points apart" * (len(shown) > 1)
        entries[_key(name, entries)] = said + apart
    return entries


def _key(name: str, taken: Mapping[str, str]) -> str:
    """What stands before the shares; names that are cut to the same text are numbered."""
    key = shown = f"by {short(clean(name), LONGEST_NAME)}"
    number = 1
    while shown in taken:
        number += 1
        shown = f"{key} ({number})"
    return shown


def _listed(shares: Iterable[tuple[str, Fraction]]) -> str:
    parts = [f"{short(clean(label), LONGEST_LABEL)}: {float(share):.1%}" for label, share in shares]
    return ("; " if any("," in part for part in parts) else ", ").join(parts)
