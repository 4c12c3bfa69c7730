"""Sentences of a summary: words, and names from the files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mipmech.studies.spread import Spread
from mipmech.text import THIN, count, percent

Tone = Literal["plain", "bad", "note"]
# More names than this in a sentence are counted, not named.
MOST_NAMED = 6


class Name(str):
    """A name from the files, to be marked and escaped where it is printed."""

    __slots__ = ()


@dataclass(frozen=True)
class Sentence:
    """A sentence of the summary.

    parts : words, and names from the files
    tone : "bad" for what must not be overlooked, "note" for what limits the rest
    """

    parts: tuple[str, ...]
    tone: Tone = "plain"

    def __str__(self) -> str:
        return "".join(self.parts)


def bad(*parts: str) -> Sentence:
    """A sentence that must not be overlooked."""
    return Sentence(parts, "bad")


def note(*parts: str) -> Sentence:
    """A sentence that limits the rest."""
    return Sentence(parts, "note")


def bug(number: int, what: str, bound: str) -> Sentence:
    """That values lie above what bounds them."""
    lie = "lie" if number > 1 else "lies"
    return bad(
        f"{count(number, what)} {lie} above {bound}: a bug in a bound or in the grader, so trust"
        " nothing below until it is found."
    )


def named(names: Sequence[str]) -> list[str]:
    """Names with commas and an "and", as parts of a sentence; too many are counted.

    >>> "".join(named(["a", "b", "c"])), "".join(named(list("abcdefgh")))
    ('a, b and c', 'a, b, c, d, e, f and 2 more')
    """
    shown: list[str] = [Name(name) for name in names[:MOST_NAMED]]
    if len(names) > MOST_NAMED:
        shown.append(f"{len(names) - MOST_NAMED} more")
    joints = [", "] * (len(shown) - 2) + [" and "] * (len(shown) > 1)
    return [part for pair in zip(shown, [*joints, ""], strict=True) for part in pair if part]


def shares(found: Spread) -> str:
    """Shares in words: the middle with its quartiles and the worst."""
    if percent(found.min) == percent(found.max):
        return f"always {percent(found.median)}{THIN}%"
    return (
        f"median {percent(found.median)}{THIN}%, quartiles {percent(found.q1)} to"
        f" {percent(found.q3)}{THIN}%, worst {percent(found.min)}{THIN}%"
    )
