"""Requirements in words: what is demanded, the figure that it speaks of, and conflicts."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from mipmech.model.grading import Recount
from mipmech.model.requirements import Demands
from mipmech.model.requirements.directions import weight_names, weights_of
from mipmech.model.requirements.signs import Nonnegative
from mipmech.terminal.groups import rate_entries
from mipmech.text import clean, count, listed, short

# More features, or pairs of them, than this are not named one by one.
MOST_NAMED = 4
LONGEST_NAME = 30


def requirement_entries(demands: Demands | None, found: Recount | None = None) -> dict[str, str]:
    """A line for each requirement, with the figure of a rule that it speaks of.

    Parameters
    ----------
    demands : Demands or None
        What is demanded; None for nothing.
    found : Recount, optional
        The rule, if there is one.
    """
    if demands is None:
        return {}
    required = demands.requirements
    entries: dict[str, str] = {}
    signs = [
        _signs(demands, kind, found)
        for kind in (required.nonnegative, required.nonpositive)
        if kind is not None
    ]
    if signs:
        entries["signs"] = "; ".join(signs)
    if required.order is not None:
        entries["order"] = _order(demands, found)
    if required.accepted is not None:
        limits = _limits(required.accepted.low, required.accepted.high)
        shown = "" if found is None else f"{float(found.accepted_share):.1%}, of "
        entries["accepted"] = shown + limits
    if required.parity is not None:
        entries |= _parity(demands, found)
    if required.own:
        entries["own"] = listed([own.name for own in required.own])
    return entries


def _signs(demands: Demands, kind: Nonnegative, found: Recount | None) -> str:
    """The weights with a sign, and the one that is nearest to the other side."""
    names, places = weight_names(demands.instance), kind.places(demands.instance)
    up = kind.field == "nonnegative"
    which = "all weights" if kind.features == "all" else _named([names[j] for j in places])
    said = f"{which} at {'least' if up else 'most'} 0"
    if found is None:
        return said
    own = _relative(demands, found)
    nearest = (min if up else max)(places, key=lambda j: own[j])
    zeros = sum(own[j] == 0 for j in places)
    if zeros > 1:
        return f"{said}; {zeros} of them are 0"
    end = "least" if up else "greatest"
    return f"{said}; the {end} is {_weight(own[nearest])} ({_name(names[nearest])})"


def _order(demands: Demands, found: Recount | None) -> str:
    assert demands.requirements.order is not None
    names, pairs = (
        weight_names(demands.instance),
        demands.requirements.order.pairs(demands.instance),
    )
    own = None if found is None else _relative(demands, found)
    parts = []
    for above, below in pairs[:MOST_NAMED]:
        part = f"{_name(names[above])} ≥ {_name(names[below])}"
        if own is not None:
            part += f" ({_weight(own[above])} and {_weight(own[below])})"
        parts.append(part)
    more = f" and {count(len(pairs) - MOST_NAMED, 'more pair')}" * (len(pairs) > MOST_NAMED)
    units = ", weights per standard deviation" * (demands.instance.units is not None)
    return ", ".join(parts) + more + units


def _relative(demands: Demands, found: Recount) -> dict[int, Fraction]:
    """The rule's own weights; the largest is 1 in size."""
    own = weights_of(demands.instance, found.mechanism)
    largest = max(abs(w) for w in own)
    return {j: w / largest for j, w in enumerate(own)}


def _weight(value: Fraction) -> str:
    return f"{float(value):.3g}"


def _parity(demands: Demands, found: Recount | None) -> dict[str, str]:
    parity = demands.requirements.parity
    assert parity is not None
    most = f"at most {100 * parity.within:g} points"
    if found is None:
        return {f"by {_name(parity.groups)}": f"accepted shares {most} apart"}
    entries = rate_entries({parity.groups: found.accepted_by(parity.groups)})
    return {key: f"{said}, of {most}" for key, said in entries.items()}


def _limits(low: float, high: float) -> str:
    """Both limits of a share."""
    parts = [f"at least {100 * low:g}%"] * (low > 0 or high == 1)
    parts += [f"at most {100 * high:g}%"] * (high < 1)
    return " and ".join(parts)


def _named(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"weight of {_name(names[0])}"
    if len(names) > MOST_NAMED:
        return f"{len(names)} weights"
    return f"weights of {listed([_name(name) for name in names])}"


def _name(name: str) -> str:
    return short(clean(name), LONGEST_NAME)


def conflict(demands: Demands, without: Sequence[str]) -> str:
    """Which requirement, dropped, leaves rules that meet the others; there are none with all.

    Parameters
    ----------
    demands : Demands
        What no rule meets.
    without : sequence of str
        The requirements each of which, dropped alone, makes it feasible.
    """
    given = demands.requirements.given
    if len(given) == 1:
        return f"drop {given[0]}, or choose another limit"
    if not without:
        return "dropping one requirement alone is not known to help; drop or loosen several"
    which = f"{', '.join(without[:-1])} or {without[-1]}" if len(without) > 1 else without[0]
    return (
        f"drop {which}: without {'it' if len(without) == 1 else 'one of them'}, some rule meets"
        " the others"
    )
