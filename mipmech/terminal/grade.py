"""A graded rule in words, for people at a terminal."""

from __future__ import annotations

from pathlib import Path

from mipmech.design.grade import Graded
from mipmech.model.edge_of_reach import movers
from mipmech.model.grading import Recount
from mipmech.model.typed_rules import WrittenRule
from mipmech.terminal.console import (
    in_one_piece,
    tell_entries,
    tell_heading,
    tell_picture,
)
from mipmech.terminal.groups import rate_entries
from mipmech.terminal.rule import moves, sight
from mipmech.text import above, below


def tell_grade(found: Graded, plot: Path | None = None, no_picture: str | None = None) -> None:
    """Print what a rule does on stdout."""
    graded, rule = found.recount, found.rule
    with in_one_piece() as console:
        tell_heading(console, graded.instance.name)
        entries = {"rule": f"accept if {_terms(rule)} ≥ {_number(rule.threshold)}"}
        entries |= sight(rule.off)
        entries["gain"] = _gain(graded)
        entries["accepted"] = _accepted(graded)
        names = graded.instance.groups
        entries |= rate_entries({name: graded.accepted_by(name) for name in names})
        entries |= moves(graded, share=True)
        entries |= _required(found)
        entries |= _against(found)
        entries["threshold"] = _best(found)
        tell_entries(console, entries)
        tell_picture(console, "the rule", plot, no_picture)


def _required(found: Graded) -> dict[str, str]:
    """Whether the rule meets the requirements, and how it fails."""
    if found.demands is None:
        return {}
    if not found.failures:
        return {"required": "all requirements are met"}
    return {"fails": "; ".join(failure.what for failure in found.failures)}


def _terms(rule: WrittenRule) -> str:
    """The score with all its digits: what is graded is what was typed."""
    if len(rule.weights) == 1 and rule.weights[0][1] == 1:
        return rule.weights[0][0]
    parts = [f"{'+' * (weight > 0)}{_number(weight)} {name}" for name, weight in rule.weights]
    return " ".join(parts).removeprefix("+")


def _number(value: float) -> str:
    """As few digits as say exactly this."""
    return f"{value:.15g}" if float(f"{value:.15g}") == value else repr(value)


def _gain(graded: Recount) -> str:
    gain = graded.gain
    verb = "rises" if gain > 0 else "falls"
    if not gain or not len(movers(graded)):
        return f"0: mean quality stays at {float(graded.baseline):.6g}"
    return (
        f"{float(gain):.6g}: mean quality {verb} from {float(graded.baseline):.6g} to"
        f" {float(graded.value):.6g}"
    )


def _accepted(graded: Recount) -> str:
    share, quality = graded.accepted_share, graded.accepted_quality
    if quality is None:
        return "nobody: the threshold is beyond everyone's reach"
    return (
        f"{float(share):.1%} of all, {float(share - graded.share(movers(graded))):.1%} without"
        f" moving; their mean quality is then {float(quality):.6g}"
    )


def _against(found: Graded) -> dict[str, str]:
    """What is known of the best gain, and how much of it this is."""
    optimum, share = found.optimum, found.share
    if optimum is None:
        words = "not known; mipmech certify FILE --out proof.json finds it, --certified takes it"
        return {"best gain": words}
    low, high = below(optimum.lower, 6), above(optimum.upper, 6)
    interval = low if low == high else f"in [{low}, {high}]"
    if found.contradicted:
        said = f"said to be {interval} ({optimum.source}); contradicted: this rule gains more"
        return {"best gain": said}
    if share is None:
        return {"best gain": f"{interval} ({optimum.source})"}
    least, most = below(100 * share[0], 3), above(100 * share[1], 3)
    of = f"{least}%" if share[0] == share[1] else f"between {least}% and {most}%"
    return {"best gain": f"{interval} ({optimum.source}); this is {of} of it"}


def _best(found: Graded) -> str:
    """The threshold against the best one for these weights."""
    gain = found.recount.gain
    if found.best is None and found.demands is not None:
        return "no threshold meets the requirements and gains with these weights"
    if found.best is None:
        return "no threshold gains with these weights: raising this score does not raise quality"
    rule, best = found.best
    if best.gain <= gain:
        return "no other is better for these weights"
    share = ""
    if gain > 0 and len(movers(found.recount)):
        share = f": this one has {below(100 * gain / best.gain, 3)}% of that"
    return (
        f"the best for these weights is {_number(rule.threshold)}, with a gain of"
        f" {float(best.gain):.6g}{share}"
    )
