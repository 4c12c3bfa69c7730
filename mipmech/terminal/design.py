"""Descriptions, answers and solutions in words and tables, for people at a terminal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.text import Text

from mipmech.checker.verdict import Verdict
from mipmech.design.algorithm1 import Solution
from mipmech.design.baselines import Rival
from mipmech.design.certificate import Certificate
from mipmech.design.describe import Description
from mipmech.model.geometry import Geometry
from mipmech.model.grading import Recount
from mipmech.model.instance import Instance
from mipmech.model.known import Known
from mipmech.oracles.base import Answer
from mipmech.terminal.console import (
    MOST_TERMS,
    down,
    entry,
    in_one_piece,
    sum_of,
    table,
    tell_entries,
    tell_heading,
    tell_picture,
    up,
)
from mipmech.text import count
from mipmech.theory.projection import ProjectionRule

# More agents than this are cut short with an ellipsis.
MOST_AGENTS = 12


def tell(description: Description, plot: Path | None = None, no_picture: str | None = None) -> None:
    """Print a description on stdout."""
    with in_one_piece() as console:
        _tell(console, description)
        tell_picture(console, "the best threshold along P w_f", plot, no_picture)


def _tell(console: Console, description: Description) -> None:
    instance = description.instance
    tell_heading(console, instance.name)
    sees = f"the planner sees {count(description.geometry.rank, 'dimension')}"
    sizes = f"{count(instance.size, 'agent')}, {count(instance.width, 'feature')}"
    console.print(Text(f"{sizes}; {sees}"))
    console.print(_facts(description, console.width))
    if description.geometry.p_norm == 0:
        console.print(
            "The planner sees nothing that quality depends on (P w_f = 0): no rule on visible"
            " features changes it, and every gain is 0."
        )
        return
    _tell_linear(console, description)
    if description.best is not None:
        _tell_threshold(console, description, description.best)
    if not description.complete:
        console.print("Stopped at the time limit; what would come next was left out.")


def _facts(description: Description, width: int) -> Text:
    instance, geometry = description.instance, description.geometry
    reach = instance.reach[instance.weights > 0]
    low, high, median = reach.min(), reach.max(), np.median(reach)
    full = description.quality_norm
    facts = {
        "digest": instance.digest[:16],
        "sees": _sees(instance),
        "quality": _formula(description),
        "seen part": f"‖P w_f‖ = {geometry.p_norm:.4g}, {geometry.p_norm / full:.1%} of ‖w_f‖",
        "baseline": f"mean quality {description.baseline:.6g} before any rule",
        "reach": f"{low:.4g} for everyone"
        if low == high
        else f"{low:.4g} to {high:.4g}, median {median:.4g}",
        "ceiling": f"no rule gains more than {description.ceiling:.6g}",
    }
    if instance.known is not None:
        known = instance.known
        facts["known"] = f"best gain {_within(known.lower, known.upper)}, {known.how}"
        if known.densities:
            facts["densest"] = _densest(known)
    return Text("\n".join(entry(key, value, width) for key, value in facts.items()))


def _within(lower: float, upper: float) -> str:
    """An interval, or the one number that both ends are to six digits."""
    least, most = f"{lower:.6g}", f"{upper:.6g}"
    return least if least == most else f"in [{least}, {most}]"


def _densest(known: Known) -> str:
    """What is known of the greatest densities."""
    parts = [f"{_within(lower, upper)} at η = {at:g}" for at, lower, upper in known.densities]
    return f"greatest density {', '.join(parts)} of ‖P w_f‖"


def _sees(instance: Instance) -> str:
    """The columns that the planner sees, or the rows of its view."""
    names = instance.feature_names
    if instance.view.columns is not None:
        seen = [names[c] for c in instance.view.columns]
    else:
        seen = [sum_of(zip(names, row, strict=True)) for row in instance.view.matrix]
    return "; ".join(seen[:MOST_TERMS]) + "; …" * (len(seen) > MOST_TERMS)


def _formula(description: Description) -> str:
    instance = description.instance
    seen = (instance.view.matrix != 0).any(axis=0)
    names = [
        name + " (hidden)" * (not flag)
        for name, flag in zip(instance.feature_names, seen, strict=True)
    ]
    offset = f" {-instance.quality_offset:+.4g}" if instance.quality_offset else ""
    return "f = " + sum_of(zip(names, instance.quality, strict=True)) + offset


def _tell_linear(console: Console, description: Description) -> None:
    cost = description.instance.cost[description.instance.weights > 0]
    low, high = cost.min(), cost.max()
    tell_heading(console, "\nTheorem 1: a reward linear in the score along P w_f")
    if low == high:
        text = f"of length R moves nobody if R < {low:.4g}, else everybody, without bound."
    else:
        text = (
            f"of length R moves nobody if R < {low:.4g}, everybody without bound if R ≥ {high:.4g},"
            " and in between those whose cost is at most R."
        )
    console.print(text)


def _tell_threshold(console: Console, description: Description, best: ProjectionRule) -> None:
    instance = description.instance
    console.print(
        Text("\nTheorem 2: accept if the score along P w_f reaches a threshold", style="bold")
    )
    headings = ("best", "move", "gain", "quality", "pass", r"E\[f|pass]", "proved")
    made = table("thresholds", headings)
    for rule in (best, description.grid):
        if rule is None:
            continue
        found = rule.recount
        quality = found.accepted_quality
        made.add_row(
            "all" if rule.tried is None else f"grid of {rule.tried}",
            f"{found.mechanism.threshold:.5g}",
            f"{float(found.density):.1%}",
            f"{float(found.gain):.5g}",
            f"{float(found.value):.5g}",
            f"{float(found.accepted_share):.1%}",
            "nobody" if quality is None else f"{float(quality):.5g}",
            f"{rule.factor:.3g}",
        )
    console.print(made)
    rules = [rule for rule in (best, description.grid) if rule is not None]
    promised = " and ".join(f"{rule.promised:.3g}" for rule in rules)
    console.print(
        "proved: the gain is surely at least this share of the best gain of any rule; the"
    )
    console.print(f"true share is often far larger. The theorem alone promises {promised}.")
    known = instance.known
    if known is not None and known.lower > 0:
        share = float(best.gain) / known.upper
        console.print(
            f"Against the best gain known, the best of all thresholds has {share:.1%} of it."
        )
    console.print("The best of all thresholds:")
    _tell_rule(console, best.recount)


def _tell_rule(console: Console, found: Recount) -> None:
    """A rule in words: what it asks, who moves, and how."""
    movers = found.covered[found.instance.weights[found.covered] > 0]
    shown = ", ".join(str(i) for i in movers[:MOST_AGENTS])
    more = f" and {len(movers) - MOST_AGENTS} more" if len(movers) > MOST_AGENTS else ""
    entries = {
        "rule": f"accept if {_rule(found)}",
        "who moves": f"agent{'s' * (len(movers) != 1)} {shown}{more}" if len(movers) else "nobody",
    }
    if len(movers):
        entries["how"] = _changes(found)
    tell_entries(console, entries)


def _rule(found: Recount) -> str:
    mechanism = found.mechanism
    score = sum_of(zip(found.instance.feature_names, mechanism.weights, strict=True))
    return f"{score} ≥ {mechanism.threshold:.5g}"


def _changes(found: Recount) -> str:
    """What the movers do on average, feature by feature."""
    mean = found.soft_density / float(found.density)
    names = found.instance.feature_names
    terms = [(n, mean * w) for n, w in zip(names, found.mechanism.weights, strict=True) if w]
    terms.sort(key=lambda term: -abs(term[1]))
    parts = [f"{name} {change:+.3g}" for name, change in terms[:MOST_TERMS]]
    return "on average " + ", ".join(parts) + ", …" * (len(terms) > MOST_TERMS)


# ------------------------------------------------------------------ results


def tell_answer(
    answer: Answer,
    geometry: Geometry,
    status: str,
    plot: Path | None = None,
    no_picture: str | None = None,
    out: Path | None = None,
) -> None:
    """Print an oracle's answer on stdout."""
    with in_one_piece() as console:
        tell_heading(console, geometry.instance.name)
        share = f", {answer.eta / geometry.p_norm:.4g} of ‖P w_f‖" if geometry.p_norm else ""
        what = "soft density" if answer.soft else "density"
        entries = {"asked": f"greatest {what} at η = {answer.eta:.6g}{share}"}
        if status == "infeasible":
            entries["answer"] = "infeasible: no visible direction has this η"
        elif answer.recount is None:
            entries["answer"] = f"none: {answer.stop.value}"
        else:
            entries["answer"] = _bounds(answer, status)
            entries["gain"] = f"{float(answer.recount.gain):.6g} with this threshold"
        entries["work"] = ", ".join(
            [
                _name(answer.oracle),
                *(f"{n:,} {what.replace('_', ' ')}" for what, n in answer.work.items() if n),
                f"{answer.seconds:.2f} s; {answer.stop.value}",
            ]
        )
        tell_entries(console, entries)
        if answer.recount is not None:
            _tell_rule(console, answer.recount)
            _tell_file(console, out)
        tell_picture(console, "the rule", plot, no_picture)


def _name(record: str) -> str:
    """The name of an oracle, from its record."""
    return record.partition("(")[0]


def _bounds(answer: Answer, status: str) -> str:
    lower = down(answer.lower)
    if answer.upper is None:
        return f"{status}: {lower}, with no bound promised"
    upper = up(answer.upper)
    if status == "optimal":
        return f"optimal: {float(answer.lower):.6g} ({answer.level})"
    return f"gap of {answer.gap:.2%}: between {lower} and {upper} ({answer.level})"


def tell_solution(
    found: Solution,
    plot: Path | None = None,
    no_picture: str | None = None,
) -> None:
    """Print what Algorithm 1 found on stdout."""
    with in_one_piece() as console:
        instance = found.instance
        tell_heading(console, instance.name)
        calls = f"{len(found.steps)} oracle calls of {len(found.grid)}"
        calls += f", {found.skipped} skipped by proof" if found.skipped else ""
        inexact = sum(s.answer.upper is not None and not s.answer.closed for s in found.steps)
        calls += f", {inexact} not exact" if inexact else ""
        entries = {
            "algorithm": f"1 with oracle {_name(found.oracle)}, {found.grid_name} grid for"
            f" ε = {found.epsilon:.4g}",
            "calls": f"{calls}; {found.seconds:.2f} s; {found.stop.value}",
        }
        if found.recount is None:
            entries["gain"] = "0: no rule was found"
        else:
            rule = found.recount
            entries["gain"] = (
                f"{float(found.gain):.6g}: mean quality rises from {float(rule.baseline):.6g} to"
                f" {float(rule.value):.6g}; {float(rule.density):.1%} move"
            )
            entries["η"] = f"{found.eta:.6g}"
        bound = found.bound
        on_grid = "" if bound.scope == "all" else " with these η"
        entries["proved"] = (
            f"gain ≥ {down(bound.factor, 4)}·opt − {up(bound.additive, 4)}, and no rule gains"
            f" more than {up(bound.upper)} (attested, over all rules{on_grid})"
        )
        if instance.known is not None and instance.known.lower > 0:
            share = float(found.gain) / instance.known.upper
            within = _within(instance.known.lower, instance.known.upper)
            entries["known"] = f"best gain {within}; this is at least {share:.1%} of it"
        tell_entries(console, entries)
        if found.recount is not None:
            _tell_rule(console, found.recount)
        tell_picture(console, "the run and the rule", plot, no_picture)


def tell_certificate(
    found: Certificate,
    others: list[Rival],
    out: Path | None = None,
    plot: Path | None = None,
) -> None:
    """Print what was certified on stdout."""
    with in_one_piece() as console:
        tell_heading(console, found.instance.name)
        lower, upper = down(found.lower, 9), up(found.upper, 9)
        state = "optimal" if found.status == "optimal" else "a gap is left open"
        work = ", ".join(f"{n:,} {what}" for what, n in found.work.items())
        entries = {
            "best gain": f"at least {lower}, at most {upper}: {state}, gap {up(found.gap, 2)}",
            "level": _LEVELS[found.level, found.engine],
            "scope": found.scope,
            "work": f"{found.engine}, {work}; {found.seconds:.2f} s; {found.stop.value}",
        }
        if found.recount is None:
            entries["rule"] = "none: no rule on what the planner sees gains anything"
        else:
            rule = found.recount
            entries["quality"] = (
                f"rises from {float(rule.baseline):.6g} to {float(rule.value):.6g} on average;"
                f" {float(rule.density):.1%} move"
            )
        tell_entries(console, entries)
        if found.recount is not None:
            _tell_rule(console, found.recount)
        if others:
            _tell_rivals(console, others)
        _tell_file(console, out)
        tell_picture(console, "the bounds and the rule", plot, None)


_LEVELS = {
    ("proved", "cells"): "proved: by a tree of cells that an independent checker has gone through",
    ("attested", "cells"): "attested: the search's own upper bound; there was no time to check it",
    ("attested", "milp"): "attested: the upper bound is the solver's word, region by region",
    ("proved", "milp"): "proved: no rule on what the planner sees changes quality",
}


def _tell_rivals(console: Console, others: list[Rival]) -> None:
    made = table("rule of", ("gain", "share of the best", "promised"))
    made.add_column("by", overflow="fold")
    for other in others:
        made.add_row(
            other.name,
            f"{float(other.gain):.6g}",
            f"≥ {down(other.share, 4)}",
            f"{other.promised:.3g}",
            other.why,
        )
    console.print(made)


def _tell_file(console: Console, out: Path | None) -> None:
    if out is not None:
        size = out.stat().st_size / 1000
        console.print(Text(f"Certificate ({size:.1f} kB): {out}; mipmech check {out} verifies it"))


def tell_verdict(verdict: Verdict, path: Path) -> None:
    """Print what a check found on stdout."""
    with in_one_piece() as console:
        if verdict.accepted:
            tell_heading(console, f"accepted, {verdict.level}: {path}")
        else:
            status = "REJECTED" if verdict.finished else "NOT FINISHED"
            tell_heading(console, f"{status}: {path}")
            console.print(Text(entry("because", str(verdict.reason), console.width)))
        if verdict.claim is not None and verdict.lower is not None and verdict.upper is not None:
            claimed = (
                f"{verdict.claim}: at least {down(verdict.lower, 9)}, at most"
                f" {up(verdict.upper, 9)}"
            )
            console.print(Text(entry("claim", claimed, console.width)))
        for said in verdict.verified:
            console.print(Text(entry("verified", said, console.width)))
        console.print(Text(entry("took", f"{verdict.seconds:.2f} s", console.width)))
