"""Requirements in words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from mipmech.errors import InputError
from mipmech.model.requirements import Requirements
from mipmech.model.requirements.parity import Parity
from mipmech.report.kit.sentence import Name, named
from mipmech.studies.batch.records import Figure, typed
from mipmech.text import THIN, clean, short

# Names of features, and pairs of them, that are listed; longer names are cut.
MOST_PAIRS = 6
LONGEST_NAME, LONGEST_STRANGE = 60, 300


def required(given: Any) -> tuple[str, ...]:
    """What rules must meet, as parts of a sentence; whatever it is, if it came from a stranger."""
    try:
        requirements = Requirements.from_dict(typed(given, dict[str, Any], "requirements"))
        phrases = list(_phrases(requirements))
    except (InputError, TypeError, ValueError, AttributeError, RecursionError):
        shown = json.dumps(given, ensure_ascii=False, default=str)
        return ("requirements that cannot be read, ", Name(short(clean(shown), LONGEST_STRANGE)))
    if not phrases:
        return ("nothing",)
    parts = list(phrases[0])
    for phrase in phrases[1:]:
        parts += ["; ", *phrase]
    return tuple(parts)


def _phrases(requirements: Requirements) -> Iterable[list[str]]:
    for given, side in ((requirements.nonnegative, "least"), (requirements.nonpositive, "most")):
        if given is not None:
            features = given.plain()
            if features == "all":
                yield [f"all weights are at {side} 0"]
            else:
                whose = ["the weight of " if len(features) == 1 else "the weights of "]
                are = "is" if len(features) == 1 else "are"
                yield [*whose, *named([_name(f) for f in features]), f" {are} at {side} 0"]
    if requirements.order is not None:
        pairs = requirements.order.plain()
        for above, below in pairs[:MOST_PAIRS]:
            more = ["the weight of ", Name(_name(above)), " is at least that of "]
            yield [*more, Name(_name(below))]
        if len(pairs) > MOST_PAIRS:
            yield [f"{len(pairs) - MOST_PAIRS} more such pairs"]
    if requirements.accepted is not None:
        yield [_limits(requirements.accepted.low, requirements.accepted.high)]
    if requirements.parity is not None:
        groups = Name(short(requirements.parity.groups, LONGEST_NAME))
        yield ["the shares accepted in any two groups of ", groups, _apart(requirements.parity)]


def _apart(parity: Parity) -> str:
    points = f"{100 * parity.within:.4g}"
    words = "percentage point" if points == "1" else "percentage points"
    return f" differ by at most {points} {words}" if parity.within > 0 else " are equal"


def _name(feature: str | int) -> str:
    if isinstance(feature, int):
        return f"number {feature}"
    return short(feature, LONGEST_NAME)


def _limits(low: float, high: float) -> str:
    least, most = (f"{100 * share:.4g}{THIN}%" for share in (low, high))
    if low == high:
        return f"exactly {least} of the agents are accepted"
    if low <= 0:
        return f"at most {most} of the agents are accepted"
    if high >= 1:
        return f"at least {least} of the agents are accepted"
    return f"{least} to {most} of the agents are accepted"


def key_of(given: Any) -> str:
    """Tells requirements apart; empty for none."""
    if given is None:
        return ""
    return json.dumps(given, sort_keys=True, ensure_ascii=False, default=str)


def rates_of(given: Any, rates: Any) -> dict[tuple[str, str], float]:
    """The accepted shares by grouping and group, where requirements speak of them.

    given : the requirements, as a file has them
    rates : of a result; whatever it is, if it came from a stranger
    """
    parity = given.get("parity") if isinstance(given, Mapping) else None
    groups = parity.get("groups") if isinstance(parity, Mapping) else None
    if not isinstance(groups, str):
        return {}
    try:
        found = typed(rates, dict[str, Figure], "accepted shares")
    except InputError:
        return {}
    name = short(clean(groups), LONGEST_NAME)
    return {
        (name, short(label, LONGEST_NAME)): share
        for label, share in found.items()
        if 0 <= share <= 1
    }
