"""Descriptions, answers and solutions in words and tables, for people at a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.text import Text

from mipmech.budget import Stop
from mipmech.checker.verdict import Verdict
from mipmech.design.algorithm1 import Solution
from mipmech.design.baselines import Rival
from mipmech.design.caveats import caveats
from mipmech.design.certificate import Certificate
from mipmech.design.describe import Description
from mipmech.design.folds import FoldResults
from mipmech.design.price import Prices
from mipmech.design.printed import Measure, PrintedRule, printed
from mipmech.model.edge_of_reach import movers
from mipmech.model.geometry import Geometry, seen_square
from mipmech.model.grading import Recount
from mipmech.model.instance import Instance
from mipmech.model.known import Known
from mipmech.model.typed_rules import in_known_units
from mipmech.model.units import Units
from mipmech.oracles.base import Answer, infeasible
from mipmech.plots.drawn import UNASKED, Drawn
from mipmech.terminal.console import (
    MOST_TERMS,
    down,
    entry,
    in_one_piece,
    sum_of,
    tell_entries,
    tell_heading,
    tell_line,
    tell_picture,
    tell_table,
    tell_warnings,
    up,
)
from mipmech.terminal.costs import blind, cost_entries, greatest_rate, no_direction
from mipmech.terminal.groups import size_entries
from mipmech.terminal.price import tell_prices
from mipmech.terminal.requirements import conflict, requirement_entries
from mipmech.terminal.rule import percent, share_known, tell_rule
from mipmech.text import NOT_VERIFIED, count, relative_gap
from mipmech.theory.projection import ProjectionRule

# Beyond this gap a search that ran out of time is told how to do better.
LARGE_GAP = 0.1
UNMET = "infeasible: no rule with this η meets the requirements"


def tell(description: Description, picture: Drawn = UNASKED) -> None:
    """Print a description on stdout."""
    with in_one_piece() as console:
        _tell(console, description)
        tell_warnings(console, description.warnings)
        tell_picture(console, f"the best threshold along {_along(description)}", *picture)


def _tell(console: Console, description: Description) -> None:
    instance = description.instance
    tell_heading(console, instance.name)
    sees = f"the planner sees {count(description.geometry.rank, 'dimension')}"
    sizes = f"{count(instance.size, 'agent')}, {count(instance.width, 'feature')}"
    tell_line(console, f"{sizes}; {sees}")
    console.print(_facts(description, console.width))
    if description.geometry.p_norm == 0:
        console.print(blind(instance))
        return
    _tell_linear(console, description)
    if description.best is not None:
        _tell_threshold(console, description, description.best)
    if not description.complete:
        console.print("Stopped at the time limit; what would come next was left out.")


def _facts(description: Description, width: int) -> Text:
    instance = description.instance
    reach = instance.reach[instance.weights > 0]
    low, high, median = reach.min(), reach.max(), np.median(reach)
    facts = {
        "digest": instance.digest[:16],
        "sees": _sees(instance),
        "quality": _formula(description),
        **size_entries(description.groups),
        **cost_entries(instance),
        **_steepness(description),
        "baseline": f"mean quality {description.baseline:.6g} before any rule",
        "reach": f"{low:.4g} for everyone"
        if low == high
        else f"{low:.4g} to {high:.4g}, median {median:.4g}",
        "ceiling": f"no rule gains more than {description.ceiling:.6g}",
    }
    if instance.units is not None and instance.costs.plain:
        facts["units"] = _distances(instance, instance.units)
    if instance.known is not None:
        known = instance.known
        facts["known"] = f"best gain {_within(known.lower, known.upper)}, {known.how}"
        if known.densities:
            facts["densest"] = _densest(known, greatest_rate(instance))
    return Text("\n".join(entry(key, value, width) for key, value in facts.items()))


def _within(lower: float, upper: float) -> str:
    """An interval, or the one number that both ends are to six digits."""
    least, most = f"{lower:.6g}", f"{upper:.6g}"
    return least if least == most else f"in [{least}, {most}]"


def _steepness(description: Description) -> dict[str, str]:
    """How much of quality rules can move: the greatest rate, and against full sight."""
    rate, full = description.geometry.p_norm, description.quality_norm
    if description.instance.costs.plain:
        return {"seen part": f"‖P w_f‖ = {rate:.4g}, {rate / full:.1%} of ‖w_f‖"}
    said = f"the greatest rate is {rate:.4g} of quality per unit of cost"
    return {"steepest": f"{said}, {rate / full:.1%} of what it were if all were seen"}


def _along(description: Description) -> str:
    """The direction of the paper's closed-form rules."""
    return "P w_f" if description.instance.costs.plain else "the steepest direction"


def _densest(known: Known, whole: str) -> str:
    """What is known of the greatest densities; η are shares of the whole."""
    parts = [f"{_within(lower, upper)} at η = {at:g}" for at, lower, upper in known.densities]
    return f"greatest density {', '.join(parts)} of {whole}"


def _sees(instance: Instance) -> str:
    """The columns that the planner sees, or the rows of its view."""
    names = instance.feature_names
    if instance.view.columns is not None:
        seen = [names[c] for c in instance.view.columns]
    else:
        rows = instance.view.matrix / _units(instance).scale
        seen = [sum_of(zip(names, row, strict=True)) for row in rows]
    return "; ".join(seen[:MOST_TERMS]) + "; …" * (len(seen) > MOST_TERMS)


def _formula(description: Description) -> str:
    instance = description.instance
    seen = (instance.view.matrix != 0).any(axis=0)
    names = [
        name + " (hidden)" * (not flag)
        for name, flag in zip(instance.feature_names, seen, strict=True)
    ]
    units = _units(instance)
    weights = instance.quality / units.scale
    constant = -instance.quality_offset - float(weights @ units.centre)
    offset = f" {constant:+.4g}" if constant else ""
    return "f = " + sum_of(zip(names, weights, strict=True)) + offset


def _units(instance: Instance) -> Units:
    """The units in which people know the features."""
    return instance.units or Units((0.0,) * instance.width, (1.0,) * instance.width)


def _distances(instance: Instance, units: Units) -> str:
    """What a move of length 1 is, in each feature that can move."""
    seen = np.flatnonzero((instance.view.matrix != 0).any(axis=0))
    parts = [f"{instance.feature_names[j]} {units.scale[j]:.4g}" for j in seen[:MOST_TERMS]]
    return f"a move of 1 is {', '.join(parts)}" + ", …" * (len(seen) > MOST_TERMS)


def _tell_linear(console: Console, description: Description) -> None:
    cost = description.instance.cost[description.instance.weights > 0]
    low, high = cost.min(), cost.max()
    console.print()
    tell_heading(console, f"Theorem 1: a reward linear in the score along {_along(description)}")
    length = "length R" if description.instance.costs.plain else "dual norm N(w) = R"
    if low == high:
        text = f"of {length} moves nobody if R < {low:.4g}, else everybody, without bound."
    else:
        text = (
            f"of {length} moves nobody if R < {low:.4g}, everybody without bound if R ≥ {high:.4g},"
            " and in between those whose cost is at most R."
        )
    console.print(text)


def _tell_threshold(console: Console, description: Description, best: ProjectionRule) -> None:
    instance = description.instance
    console.print()
    along = _along(description)
    tell_heading(console, f"Theorem 2: accept if the score along {along} reaches a threshold")
    rules = [rule for rule in (best, description.grid) if rule is not None]
    shown = printed(best.recount)
    tell_table(
        console,
        "tried",
        [["threshold", "move", "gain", "quality"], ["pass", "E[f|pass]", "proved"]],
        [_figures(rule, shown) for rule in rules],
    )
    promised = " and ".join(f"{rule.promised:.3g}" for rule in rules)
    console.print(
        "proved: the gain is surely at least this share of the best gain of any rule; the true"
        f" share is often far larger. The theorem alone promises {promised}."
    )
    if instance.known is not None and instance.known.lower > 0:
        share = share_known(best.gain, instance.known)
        console.print(f"The best of all thresholds has {share} of the best gain known:")
    else:
        console.print("The best of all thresholds:")
    tell_rule(console, shown)


def _figures(rule: ProjectionRule, shown: PrintedRule) -> list[str]:
    """What a rule does; its threshold is on the scale of the rule that is printed."""
    found = rule.recount
    quality = found.accepted_quality
    known = in_known_units(found.instance, found.mechanism)
    name, weight = max(known.weights, key=lambda term: abs(term[1]))
    threshold = known.threshold * float(shown.weights[name]) / weight
    return [
        "all" if rule.tried is None else f"grid of {rule.tried}",
        f"{threshold:.5g}",
        f"{float(found.density):.1%}",
        f"{float(found.gain):.5g}",
        f"{float(found.value):.5g}",
        f"{float(found.accepted_share):.1%}",
        "nobody" if quality is None else f"{float(quality):.5g}",
        f"{rule.factor:.3g}",
    ]


# ------------------------------------------------------------------ results


def tell_answer(
    answer: Answer,
    geometry: Geometry,
    status: str,
    picture: Drawn = UNASKED,
    out: Path | None = None,
    digits: int | None = None,
) -> None:
    """Print an oracle's answer on stdout."""
    with in_one_piece() as console:
        tell_heading(console, geometry.instance.name)
        instance = geometry.instance
        of = greatest_rate(instance)
        share = f", {answer.eta / geometry.p_norm:.4g} of {of}" if geometry.p_norm else ""
        what = "soft density" if answer.soft else "density"
        entries = {"asked": f"greatest {what} at η = {answer.eta:.6g}{share}"}
        if status == "infeasible":
            missing = infeasible(geometry, answer.eta)
            entries["answer"] = no_direction(instance) if missing else UNMET
        elif answer.recount is None:
            entries["answer"] = f"none: {answer.stop.value}"
        else:
            entries["answer"] = _bounds(answer, status)
            entries["gain"] = f"{float(answer.recount.gain):.6g} with this threshold"
        entries |= requirement_entries(geometry.demands, answer.recount)
        entries["work"] = ", ".join(
            [
                _name(answer.oracle),
                *(f"{n:,} {what.replace('_', ' ')}" for what, n in answer.work.items() if n),
                f"{answer.seconds:.2f} s; {answer.stop.value}",
            ]
        )
        tell_entries(console, entries)
        if answer.recount is not None:
            measure: Measure = "gain" if answer.soft else "density"
            tell_rule(console, printed(answer.recount, digits, measure, geometry.demands))
            tell_warnings(console, caveats(geometry.instance, answer.recount))
            _tell_file(console, out)
        tell_picture(console, "the rule", *picture)


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
    rule: PrintedRule | None,
    picture: Drawn = UNASKED,
    folds: FoldResults | None = None,
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
            "algorithm": f"1 with oracle {_name(found.oracle)}, {_grid_asked(found)}",
            "calls": f"{calls}; {found.seconds:.2f} s; {found.stop.value}",
        }
        demands = getattr(found, "demands", None)
        if found.recount is None and demands is not None:
            entries["gain"] = "none: no rule that meets the requirements was found"
        elif found.recount is None:
            entries["gain"] = "0: no rule was found"
        else:
            entries["gain"] = f"{down(found.gain)}: {_effect(found.recount)}"
            on_facet = ", the rate on this facet" * (found.grid_name == "facets")
            entries["η"] = f"{found.eta:.6g}{on_facet}"
            if found.thresholds == "best" and found.gain_two is not None:
                share = percent(found.gain_two / found.gain) if found.gain else "all"
                entries["Lemma 4"] = (
                    f"gain {down(found.gain_two)} with the paper's two thresholds, {share} of it"
                )
        entries |= requirement_entries(demands, found.recount)
        entries |= held_out_entry(folds, found.gain)
        bound = found.bound
        on_grid = "" if bound.scope == "all" else " with these η"
        on_grid += " that meets the requirements" * (demands is not None)
        entries["attested"] = (
            f"gain ≥ {down(bound.factor, 4)}·opt − {up(bound.additive, 4)}, and no rule{on_grid}"
            f" gains more than {up(bound.upper)}"
        )
        if instance.known is not None and instance.known.lower > 0:
            within = _within(instance.known.lower, instance.known.upper)
            entries["known"] = (
                f"best gain {within}; this is {share_known(found.gain, instance.known)} of it"
            )
        if found.stop is Stop.TIME and relative_gap(float(found.gain), bound.upper) > LARGE_GAP:
            entries["advice"] = "more --seconds or fewer visible features bring these nearer"
        tell_entries(console, entries)
        _tell_blind(console, instance)
        if rule is not None:
            tell_rule(console, rule)
        tell_warnings(console, caveats(instance, found.recount))
        tell_picture(console, "the run and the rule", *picture)


def _grid_asked(found: Solution) -> str:
    """Which values of η were to be asked for."""
    if found.grid_name == "facets":
        return "once for each rate of a facet"
    return f"{found.grid_name} grid for ε = {found.epsilon:.4g}"


def held_out_entry(found: FoldResults | None, gain: Fraction) -> dict[str, str]:
    """The entry about people that a rule was not designed for; none if there are no folds.

    gain : of the rule designed on all
    """
    if found is None:
        return {}
    if found.gain is None or found.least is None or found.most is None:
        return {"held out": f"none of {found.asked} folds was finished: {found.stop.value}"}
    done, asked = len(found.folds), found.asked
    over = f"{done} folds" if done == asked else f"{done} of {asked} folds ({found.stop.value})"
    words = f"{float(found.gain):.4g} on average over {over}"
    if done > 1:
        words += f", {float(found.least):.3g} to {float(found.most):.3g}"
        words += f" (standard deviation {found.deviation:.2g})"
    share = found.share(gain)
    if share is not None:
        words += f": {share:.0%} of the gain on the people it was designed for"
    still_open = sum(not fold.closed for fold in found.folds)
    if still_open:
        words += f"; {count(still_open, 'fold')} with a gap left open in the design"
    return {"held out": words}


def _effect(found: Recount) -> str:
    """What a rule does to mean quality, and to how many."""
    moving = float(found.share(movers(found)))
    before, after = f"{float(found.baseline):.6g}", f"{float(found.value):.6g}"
    change = f"{'rises' if found.gain > 0 else 'falls'} from {before} to {after}"
    return (
        f"mean quality {change if found.gain else f'stays at {before}'};"
        f" {moving:.1%} move, {float(found.accepted_share):.1%} are accepted"
    )


def tell_certificate(
    found: Certificate,
    rule: PrintedRule | None,
    others: list[Rival],
    out: Path | None = None,
    movers: Path | None = None,
    picture: Drawn = UNASKED,
    folds: FoldResults | None = None,
    without: Sequence[str] = (),
    priced: Prices | None = None,
) -> None:
    """Print what was certified on stdout.

    without : if no rule meets the requirements, those each of which, dropped alone, leaves some
    priced : what the requirements cost, if that was asked for
    """
    with in_one_piece() as console:
        tell_heading(console, found.instance.name)
        why = f"; {found.stop.value}" * (found.status == "gap" and found.stop is not Stop.FINISHED)
        work = ", ".join(f"{n:,} {what}" for what, n in found.work.items())
        entries = {
            "best gain": _best_gain(found),
            **held_out_entry(folds, found.lower),
            "level": _LEVELS[found.level, found.engine],
            "scope": found.scope,
            "work": f"{found.engine}, {work}; {found.seconds:.2f} s{why}",
        }
        if found.infeasible and found.demands is not None:
            entries["remedy"] = conflict(found.demands, without)
        elif found.unknown:
            entries["rule"] = "none is known that meets the requirements; there may be one"
        elif found.recount is None:
            entries["rule"] = "none: no rule on what the planner sees gains anything"
        else:
            entries["effect"] = _effect(found.recount)
        entries |= requirement_entries(found.demands, found.recount)
        if found.stop is Stop.TIME and found.gap > LARGE_GAP:
            entries["advice"] = "more --seconds, --workers or fewer visible features close the gap"
        tell_entries(console, entries)
        _tell_blind(console, found.instance)
        if rule is not None:
            tell_rule(console, rule)
        tell_warnings(console, caveats(found.instance, found.recount))
        if others:
            _tell_rivals(console, others)
        if priced is not None:
            tell_prices(console, priced)
        _tell_file(console, out)
        if movers is not None:
            tell_line(console, f"Movers: {movers}")
        what = "the bounds and the rule" if priced is None else "the rules and their gains"
        tell_picture(console, what, *picture)


def _best_gain(found: Certificate) -> str:
    """Both bounds of the greatest gain, and how near they are."""
    if found.infeasible:
        return "none: no rule meets the requirements"
    upper = up(found.upper, 9)
    if found.unknown:
        return f"no rule that meets the requirements gains more than {upper}"
    state = "optimal"
    if found.status != "optimal" and found.stop is Stop.FINISHED:
        state = "as near as floating point allows"
    elif found.status != "optimal":
        state = "a gap is left open"
    lower = down(found.lower, 9)
    if found.lower < 0:  # a relative gap says nothing
        said = f"at least {lower}: the best rule known that meets the requirements does harm; none"
        return f"{said} of them gains more than {upper}"
    if found.demands is not None and not found.lower and found.status == "optimal":
        return f"at least 0, at most {upper}: no rule that meets the requirements gains anything"
    return f"at least {lower}, at most {upper}: {state}, gap {up(found.gap, 2)}"


def _tell_blind(console: Console, instance: Instance) -> None:
    if not seen_square(instance):
        console.print(blind(instance))


_LEVELS = {
    ("proved", "cells"): "proved: by a tree of cells that an independent checker has gone through",
    ("attested", "cells"): "attested: the search's own upper bound; there was no time to check it",
    ("attested", "milp"): "attested: the upper bound is the solver's word, region by region",
    ("proved", "milp"): "proved: no rule on what the planner sees changes quality",
}


def _tell_rivals(console: Console, others: list[Rival]) -> None:
    tell_table(
        console,
        "rule of",
        [["gain", "share of the best"], ["promised"]],
        [
            [
                other.name,
                "no rule" if other.gain is None else f"{float(other.gain):.6g}",
                "–" if other.share is None else f"≥ {down(other.share, 4)}",
                f"{other.promised:.3g}" if other.promised else "–",
                other.why,
            ]
            for other in others
        ],
        words="by",
    )


def _tell_file(console: Console, out: Path | None) -> None:
    if out is not None:
        size = out.stat().st_size / 1000
        said = f"Certificate ({size:.1f} kB): {out}; mipmech check {out} verifies it"
        tell_line(console, said)


def tell_verdict(verdict: Verdict, path: Path, enough: bool = True) -> None:
    """Print what a check found on stdout.

    enough : whether an accepted certificate has the level that was wanted
    """
    with in_one_piece() as console:
        if verdict.accepted and enough:
            tell_heading(console, f"accepted, {verdict.level}: {path}")
        elif verdict.accepted:
            tell_heading(console, f"NOT ENOUGH: {path}")
            said = f"accepted, {verdict.level}; --level proved wants a bound that was verified"
            tell_entries(console, {"because": said})
        else:
            status = "REJECTED" if verdict.finished else "NOT FINISHED"
            tell_heading(console, f"{status}: {path}")
            tell_entries(console, {"because": str(verdict.reason)})
        if verdict.claim is not None and verdict.lower is not None and verdict.upper is not None:
            claimed = (
                f"{verdict.claim}: at least {down(verdict.lower, 9)}, at most"
                f" {up(verdict.upper, 9)}"
            )
            tell_entries(console, {"claim": claimed})
        for said in verdict.verified:
            verified = not said.startswith(NOT_VERIFIED)
            label = "verified" if verified else "unchecked"
            tell_entries(console, {label: said.removeprefix(NOT_VERIFIED)})
        tell_entries(console, {"took": f"{verdict.seconds:.2f} s"})
