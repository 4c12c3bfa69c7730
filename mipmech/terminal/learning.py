"""Learning curves in words and a table, for people at a terminal."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from rich.console import Console

from mipmech.model.mechanism import Mechanism
from mipmech.plots.drawn import UNASKED, Drawn
from mipmech.studies.learning.results import LearningCurve
from mipmech.studies.spread import Spread
from mipmech.terminal.console import (
    in_one_piece,
    sum_of,
    tell_entries,
    tell_heading,
    tell_line,
    tell_picture,
    tell_table,
)
from mipmech.text import above, below, count

# Thresholds far from 0, on data that varies little, need more digits than are read.
RULE_DIGITS = 7


def tell_learning(curve: LearningCurve, picture: Drawn = UNASKED, out: Path | None = None) -> None:
    """Print a learning curve on stdout.

    out : the file that was written, if any
    """
    with in_one_piece() as console:
        tell_heading(console, curve.source.name)
        entries = {**_from_what(curve), **_work(curve)}
        sighted = curve.source.seen_quality > 0
        if curve.best is not None and sighted:
            entries["best known"] = _best(curve)
            if curve.best.mechanism is not None:
                entries["rule"] = f"accept if {_rule(curve, curve.best.mechanism)}"
        tell_entries(console, entries)
        if curve.points and sighted:
            _tell_table(console, curve)
            tell_entries(console, _meaning(curve))
        if not sighted:
            console.print(
                "The planner sees nothing that quality depends on (P w_f = 0): every gain is 0."
            )
        if out is not None:
            tell_line(console, f"All figures and rules: {out}")
        tell_picture(console, "the learning curve", *picture)


def _from_what(curve: LearningCurve) -> dict[str, str]:
    about = curve.source
    sees = f"the planner sees {count(about.rank, 'dimension')}"
    if about.sigma is not None:
        base = f"smoothed with σ = {about.sigma:.4g} over {count(about.agents, 'agent')}"
        return {"population": f"{base}; {sees}"}
    return {"data": f"{count(about.agents, 'agent')}; {sees}; rows not learned from do the grading"}


def _work(curve: LearningCurve) -> dict[str, str]:
    settings = curve.settings
    done, asked = len(curve.points), curve.asked
    samples = count(done, "sample") if done == asked else f"{done:,} of {count(asked, 'sample')}"
    time = f"{curve.seconds:.2f} s; {curve.stop.value}"
    if not done:
        return {"learned": f"from none of {count(asked, 'sample')}; {time}"}
    entries = {
        "learned": f"the best rule on each of {samples}, {settings.repeats} of each size, proved to"
        f" a gap of {settings.gap:g}; {time}"
    }
    still_open = [point for point in curve.points if not point.closed]
    if still_open:
        worst = max(point.gap for point in still_open)
        entries["open"] = (
            f"{count(len(still_open), 'certificate')} did not close, gap up to {above(worst, 2)}: a"
            " better rule on the sample may exist"
        )
    return entries


def _best(curve: LearningCurve) -> str:
    assert curve.best is not None
    how = "local search from the best learned rules" if curve.best.searched else "the learned rules"
    return (
        f"{curve.best.gain:.6g} on the population, by {how}; the population's optimum is at least"
        " that"
    )


def _rule(curve: LearningCurve, rule: Mechanism) -> str:
    """The rule in the user's units, its largest weight 1."""
    weights, threshold = np.array(rule.weights), rule.threshold
    if curve.source.units is not None:
        weights = weights / curve.source.units.scale
        threshold += float(weights @ curve.source.units.centre)
    largest = np.abs(weights).max()
    terms = zip(curve.source.features, weights / largest, strict=True)
    return f"{sum_of(terms, RULE_DIGITS, len(weights))} ≥ {threshold / largest:.{RULE_DIGITS}g}"


def _tell_table(console: Console, curve: LearningCurve) -> None:
    smoothed = curve.source.kind == "smoothed"
    rows = curve.summary()
    places = _places(max(row.sample.max for row in rows))
    longest = len(f"{rows[-1].size:,}")
    lines = []
    for row in rows:
        held_out = next(p.held_out.size for p in curve.points if p.size == row.size)
        share = row.gain.median / curve.best.gain if curve.best and curve.best.gain > 0 else 0.0
        lines.append(
            [
                f"{row.size:{longest},}",
                _range(row.sample, places),
                _range(row.gain, places),
                f"{share:.1%}" if smoothed else f"{held_out:,}",
                _at_least(row.at_least.median, places),
                _at_least(row.promised.median, places),
            ]
        )
    compared = ["sample", "population" if smoothed else "held out"]
    others = ["share" if smoothed else "rows", "sure", "theorem"]
    tell_table(console, "m", [compared, others], lines)


def _places(largest: float) -> int | None:
    """Digits behind the point that show three of the largest figure; None for odd sizes.

    >>> _places(0.0836), _places(12.3), _places(4321.0), _places(1e-9)
    (4, 1, 0, None)
    """
    size = math.floor(math.log10(largest)) if largest > 0 else 0
    return max(0, 2 - size) if -6 < size < 7 else None


def _range(spread: Spread, places: int | None) -> str:
    low, middle, high = (
        f"{value:.3g}" if places is None else f"{value:.{places}f}"
        for value in (spread.min, spread.median, spread.max)
    )
    return f"{middle} ({low}–{high})" if spread.min < spread.max else middle


def _at_least(value: float, places: int | None) -> str:
    """A lower bound, not rounded up; 0 is plain, since it says nothing."""
    if value == 0 or places is None:
        return below(value, 3)
    return f"{math.floor(value * 10**places) / 10**places:.{places}f}"


def _meaning(curve: LearningCurve) -> dict[str, str]:
    """What the columns mean, and how far the bounds carry."""
    sure = f"{1 - curve.settings.delta:.4g}"
    many = curve.settings.repeats
    last = curve.summary()[-1]
    fewer = "up to " * any(row.samples < many for row in curve.summary())
    ranges = f" (least–greatest of {fewer}{many})" if many > 1 else ""
    share = "; share: of the best known" if curve.best is not None else ""
    entries = {
        "table": f"median gain of the learned rule{ranges}{share}",
        "sure": f"at least this on the population, by the agents held out: with probability {sure}"
        " for each sample on its own",
        "theorem": "the same from the sample alone, by Theorem 5's uniform convergence: no rule's"
        f" gain is off by more than {above(last.deviation, 3)} at m = {last.size:,}",
    }
    start = curve.says_something_from
    if start is not None and start > last.size:
        entries["theorem"] += f"; it will say something from about m = {start:,} on"
    for note in curve.source.notes:
        entries["note"] = note
    return entries
