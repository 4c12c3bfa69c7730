"""A rule and what it does, in words: shared by all that print one."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from rich.console import Console

from mipmech.design.printed import PrintedRule
from mipmech.model.edge import fragile
from mipmech.model.grading import Recount
from mipmech.model.known import Known
from mipmech.terminal.console import MOST_TERMS, down, tell_entries
from mipmech.text import count

# More agents than this are cut short with an ellipsis.
MOST_AGENTS = 12


def tell_rule(console: Console, rule: PrintedRule) -> None:
    """A rule that can be typed by hand: what it asks, what it does, who moves, and how."""
    found = rule.recount
    value = rule.gain if rule.measure == "gain" else found.density
    entries = {
        "rule": f"accept if {rule}",
        "as printed": f"{rule.measure} {down(value)} with just these digits, {percent(rule.share)}"
        " of the rule in full",
        "who moves": who_moves(found),
    }
    if found.density:
        entries["how"] = changes(found)
        edge = fragile(found)
        if edge.agents:
            entries["fragile"] = (
                f"{edge.share:.0%} of the gain hangs on {count(edge.agents, 'agent')} within 1% of"
                " the end of their reach"
            )
    tell_entries(console, entries)


def who_moves(found: Recount) -> str:
    """The first of those who move, by name or number."""
    instance = found.instance
    movers = found.covered[instance.weights[found.covered] > 0]
    if not len(movers):
        return "nobody"
    shown = ", ".join(map(instance.agent_name, movers[:MOST_AGENTS]))
    more = f" and {len(movers) - MOST_AGENTS:,} more" if len(movers) > MOST_AGENTS else ""
    word = f"agent{'s' * (len(movers) != 1)} " if instance.ids is None else ""
    return f"{word}{shown}{more}"


def changes(found: Recount) -> str:
    """What the movers do on average, feature by feature, in the user's units."""
    instance = found.instance
    mean = found.soft_density / float(found.density)
    scale = np.ones(instance.width) if instance.units is None else np.array(instance.units.scale)
    weights = np.array(found.mechanism.weights)
    moves = mean * weights * scale / np.linalg.norm(weights)
    terms = [(n, c) for n, c in zip(instance.feature_names, moves, strict=True) if c]
    terms.sort(key=lambda term: -abs(term[1]))
    parts = [f"{name} {change:+.3g}" for name, change in terms[:MOST_TERMS]]
    return "on average " + ", ".join(parts) + ", …" * (len(terms) > MOST_TERMS)


def percent(share: Fraction) -> str:
    """A share, rounded down; two digits behind the point tell 99.9 % from all."""
    return f"{math.floor(share * 10_000) / 10_000:.2%}"


def share_known(gain: Fraction, known: Known) -> str:
    """The part of the best gain known that a gain is, against both ends of what is known."""
    least = float(gain) / known.upper
    most = min(1.0, float(gain) / known.lower) if known.lower > 0 else 1.0
    low, high = math.floor(least * 1000), math.ceil(most * 1000 - 1e-9)
    return f"{low / 10}%" if high <= low + 1 else f"{low / 10}% to {high / 10}%"
