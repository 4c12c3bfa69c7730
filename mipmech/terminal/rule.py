"""A rule and what it does, in words: shared by all that print one."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from rich.console import Console

from mipmech.design.caveats import beyond_data
from mipmech.design.printed import FULL, PrintedRule
from mipmech.model.edge_of_reach import fragile, movers, standing
from mipmech.model.grading import Recount
from mipmech.model.instance import Instance
from mipmech.model.known import Known
from mipmech.terminal.console import MOST_TERMS, down, tell_entries
from mipmech.text import above, count
from mipmech.validation import Numbers

# More agents than this are cut short.
MOST_AGENTS = 12
# Weights nearer to what the planner can compute than this are not worth a line.
WORTH_SAYING = 1e-5


def tell_rule(console: Console, rule: PrintedRule) -> None:
    """A rule that can be typed by hand: what it asks, what it does, who moves, and how."""
    found = rule.recount
    value = rule.gain if rule.measure == "gain" else found.density
    entries = {
        "rule": f"accept if {rule}",
        "as printed": f"{rule.measure} {down(value)} {_of_full(rule)}",
    }
    tell_entries(console, entries | sight(rule.off) | moves(found))


def _of_full(rule: PrintedRule) -> str:
    """How near the rule as printed comes to the one in full."""
    if rule.digits == FULL:
        return "in full: with fewer digits it would not meet the requirements"
    if rule.gain < 0 and rule.measure == "gain":
        return "with just these digits"
    return f"with just these digits, {percent(rule.share)} of the rule in full"


def sight(off: float) -> dict[str, str]:
    """How far weights are from what the planner can compute, where that is worth a line."""
    if off <= WORTH_SAYING:
        return {}
    return {
        "sees": f"the planner can compute such a score up to {above(100 * off, 2)}% of its weights;"
        " graded is the nearest that it can"
    }


def moves(found: Recount, share: bool = False) -> dict[str, str]:
    """Who moves, how, how far out of the data, and what hangs on the last of them.

    share : whether to say how many they are
    """
    counts = found.instance.weights > 0
    agents = movers(found)
    agents = agents[counts[agents]]
    part = f"{float(found.share(agents)):.1%}: " if share and len(agents) else ""
    entries = {"who moves": part + names_of(found.instance, agents)}
    on = standing(found)
    if on:
        stand = "stands" if on == 1 else "stand"
        entries["who moves"] += f"; {on:,} {stand} on the threshold, and pass without moving"
    if len(agents):
        entries["how"] = changes(found, agents)
        entries |= outside(found, agents)
        edge = fragile(found)
        if edge.agents and found.gain > 0:
            entries["fragile"] = (
                f"{edge.share:.0%} of the gain hangs on {count(edge.agents, 'agent')} within 1% of"
                " the end of their reach"
            )
    return entries


def outside(found: Recount, agents: Numbers) -> dict[str, str]:
    """Who would have to go where the data have nobody."""
    beyond = beyond_data(found, agents)
    if beyond is None:
        return {}
    name = found.instance.feature_names[beyond.feature]
    end = beyond.high if beyond.reached > beyond.high else beyond.low
    others = f" (and {count(len(beyond.others), 'more feature')})" * bool(beyond.others)
    leave = "of them leaves" if beyond.agents == 1 else "of them leave"
    return {
        "outside": f"{beyond.agents:,} {leave} the data: {name} reaches {beyond.reached:.4g},"
        f" where the data end at {end:.4g}{others}"
    }


def names_of(instance: Instance, agents: Numbers) -> str:
    """The first of some agents, by name or number."""
    if not len(agents):
        return "nobody"
    names = [instance.agent_name(agent) for agent in agents[:MOST_AGENTS]]
    shown = ("; " if any("," in name for name in names) else ", ").join(names)
    more = f" and {len(agents) - MOST_AGENTS:,} more" if len(agents) > MOST_AGENTS else ""
    word = f"agent{'s' * (len(agents) != 1)} " if instance.ids is None else ""
    return f"{word}{shown}{more}"


def changes(found: Recount, agents: Numbers) -> str:
    """What those who move do on average, feature by feature, in the user's units."""
    instance = found.instance
    mean = float(found.moved / found.share(agents))
    scale = np.ones(instance.width) if instance.units is None else np.array(instance.units.scale)
    names, step = instance.feature_names, found.line.step
    terms = [(names[j], mean * float(by) * float(scale[j])) for j, by in step.items()]
    terms = [(name, change) for name, change in terms if change]
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
