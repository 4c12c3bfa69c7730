"""The pictures of a comparison; an oracle has one look in all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mipmech.plots.comparison import draw_over_time, label_over_time, moments_of, over_time
from mipmech.plots.looks import GREY, GRID, Look, looks_of, share_axis
from mipmech.report.comparison.summary import of_group
from mipmech.report.kit.drawing import SMALL, WIDE, Picture, closing_in, within
from mipmech.report.kit.sentence import shares
from mipmech.report.kit.svg import drawn
from mipmech.studies.batch.asking import Call, Run
from mipmech.studies.comparison.results import NEARLY, Comparison
from mipmech.studies.spread import Spread
from mipmech.text import THIN, WHOLE, count, listed, percent, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# More groups than this have no pictures of their own over time, nor rows in the dot plot.
MOST_GROUPS = 12
MOST_ROWS = 20
# Calls whose bounds are drawn.
MOST_CALLS = 6
# The axis of the performance profile.
NARROWEST = 1e-4


# ------------------------------------------------------------------ over time


def time_by_group(comparison: Comparison, prefix: str) -> list[Picture]:
    """Quality against time, group by group unless they are too many."""
    groups = comparison.groups if 1 < len(comparison.groups) <= MOST_GROUPS else []
    return [
        picture
        for number, group in enumerate(groups, 1)
        for picture in quality_in_time(comparison, group, f"{prefix}t{number}")
    ]


def quality_in_time(comparison: Comparison, group: str | None, key: str) -> list[Picture]:
    """Quality against time, in a group or over all."""
    moments = moments_of(comparison)[:: 1 if group is None else 2]
    problems = None if group is None else of_group(comparison, group)
    found = over_time(comparison, moments, problems)
    if not found:
        return []

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        looks = looks_of(comparison.oracles)
        draw_over_time(axes, looks, found, moments, 6 if group is None else 3)
        if group is None:
            label_over_time(axes)
        axes.grid(axis="y")

    title, caption = group or "Quality against time", _when_solved(found, moments)
    size = WIDE if group is None else SMALL
    return [Picture(title, drawn(size, draw, key, f"{title}. {caption}"), caption, group or "")]


def _when_solved(found: dict[str, list[Spread]], moments: Sequence[float]) -> str:
    """When each oracle reached a median of `NEARLY`; if none did, how the best ends."""
    share = f"{100 * NEARLY:g}{THIN}%"
    solved = []
    for name, spreads in found.items():
        times = [m for m, s in zip(moments, spreads, strict=True) if s.median >= NEARLY]
        solved += [f"{name} within {within(times[0])}"] if times else []
    if solved:
        return f"The median reaches {share} for {listed(solved)}."
    best = max(found, key=lambda name: found[name][-1].median)
    return f"No median reaches {share}; {best} ends with {shares(found[best][-1])}."


# -------------------------------------------------------- performance profile


def profile(comparison: Comparison, prefix: str) -> list[Picture]:
    """How many questions were left how far from the bound."""
    gaps = {name: comparison.profile(name) for name in comparison.oracles}
    gaps = {name: found for name, found in gaps.items() if found["median"]}
    if not gaps:
        return []
    axis = np.geomspace(NARROWEST, 1, 121)

    def reached(values: Sequence[float], at: Any) -> Any:
        # A gap of rounding alone is none.
        return np.searchsorted(np.array(values), np.asarray(at) + 1e-12, side="right") / len(values)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for number, (name, found) in enumerate(gaps.items()):
            look = looks_of(comparison.oracles)[name]
            worst, best = reached(found["worst"], axis), reached(found["best"], axis)
            axes.fill_between(axis, worst, best, **look.area)
            axes.plot(
                axis, reached(found["median"], axis), drawstyle="steps-post",
                markevery=(5 + 4 * number, 30), **look.line,
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_xlim(NARROWEST, 1)
        decades = [1e-4, 1e-3, 1e-2, 1e-1, 1]
        axes.set_xticks(decades, [f"{100 * decade:g}{THIN}%" for decade in decades])
        axes.set_xticks([], minor=True)
        share_axis(axes.yaxis)
        axes.set_ylim(-0.02, 1.03)
        axes.set_xlabel("gap to the certified bound, at most")
        axes.set_ylabel("share of the questions")
        axes.grid(axis="y")

    said = []
    for name, found in gaps.items():
        middle, worst, best = (
            float(reached(found[which], 0.01)) for which in ("median", "worst", "best")
        )
        ends = f" ({percent(worst)} to {percent(best)} by seed)" if worst < best else ""
        said.append(f"{name} on {percent(middle)}{THIN}%{ends}")
    caption = f"Within 1{THIN}% of the bound, of all questions: {listed(said)}."
    title = "Performance profile"
    return [Picture(title, drawn(WIDE, draw, f"{prefix}p", f"{title}. {caption}"), caption)]


# ------------------------------------------------------------------ by group


def by_group(comparison: Comparison, prefix: str) -> list[Picture]:
    """Worst, median and best of every oracle in every group."""
    table: dict[str, dict[str, Spread]] = {}
    for group in comparison.groups:
        for name in comparison.oracles:
            density = comparison.summary(name, of_group(comparison, group)).density
            if density is not None:
                table.setdefault(group, {})[name] = density
    if not table:
        return []
    names = [name for name in comparison.oracles if any(name in row for row in table.values())]
    # The groups in which most is lost are those to look at.
    lost = sorted(table, key=lambda group: min(s.median for s in table[group].values()))
    shown = [group for group in table if group in lost[:MOST_ROWS]]
    left_out = len(table) - len(shown)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for row, group in enumerate(shown):
            if row % 2:
                axes.axhspan(row - 0.5, row + 0.5, color=GRID, alpha=0.35, linewidth=0)
            for place, name in enumerate(names):
                if name in table[group]:
                    at = row + 0.8 * ((place + 0.5) / len(names) - 0.5)
                    _whiskers(axes, at, table[group][name], looks_of(comparison.oracles)[name])
        _rows(axes, [short(group, 22) for group in shown])
        # Marks, unlike bars, may begin where there is something to tell apart.
        least = min(found.min for group in shown for found in table[group].values())
        begin = max(0.0, math.floor(10 * least - 0.2) / 10)
        share_axis(axes.xaxis, 0.25 if begin < 0.4 else 0.1 if begin < 0.8 else 0.05)
        axes.set_xlim(begin - 0.02 * (1 - begin), 1 + 0.03 * (1 - begin))
        axes.set_xlabel("quality of the density: worst, median, best")
        axes.grid(axis="x")

    perfect, said = [], []
    for name in names:
        there = {group: row[name] for group, row in table.items() if name in row}
        if min(found.min for found in there.values()) >= 1 - WHOLE:
            perfect.append(name)
        else:
            worst = min(there, key=lambda group: (there[group].median, there[group].min))
            found = there[worst]
            ends = f"{percent(found.min)} to {percent(found.max)}{THIN}%"
            said.append(f"{name}: {worst} (median {percent(found.median)}, {ends})")
    said += [f"{listed(perfect)}: none, always 100{THIN}%"] if perfect else []
    hidden = f" ({count(left_out, 'group')} with less to lose not drawn)" if left_out else ""
    caption = f"The worst group of each oracle{hidden}: {'; '.join(said)}."
    height = max(1.6, 0.75 + len(shown) * max(0.26, 0.085 * len(names) + 0.1))
    title = "Quality by group"
    picture = drawn((WIDE[0], height), draw, f"{prefix}g", f"{title}. {caption}")
    return [Picture(title, picture, caption)]


def _rows(axes: Axes, names: Sequence[str]) -> None:
    """Names on the left, the first at the top."""
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.5, -0.5)


def _whiskers(axes: Axes, at: float, found: Spread, look: Look, hollow: bool = False) -> None:
    """A line from worst to best, a thicker one between the quartiles, a mark on the median."""
    colour = look.colour
    axes.plot([found.min, found.max], [at, at], color=colour, linewidth=0.9, alpha=0.7)
    axes.plot([found.q1, found.q3], [at, at], color=colour, linewidth=2.4, alpha=0.55)
    face = {"markerfacecolor": "none", "markeredgewidth": 1.2} if hollow else {"markeredgewidth": 0}
    axes.plot(
        [found.median], [at], look.mark, color=colour, markersize=look.size + 0.5, zorder=3,
        clip_on=False, **face,
    )  # fmt: skip


# ---------------------------------------------------------------------- gain


def gains(comparison: Comparison, prefix: str) -> list[Picture]:
    """The share of the greatest gain that Algorithm 1 ends with."""
    summaries = [comparison.summary(name) for name in comparison.oracles]
    found = [(s.oracle, s.gain, s.gain_two) for s in summaries if s.gain is not None and s.calls]
    if not found:
        return []

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for row, (name, gain, two) in enumerate(found):
            for spread, offset in ((gain, -0.16), (two, 0.16)):
                if spread is not None:
                    look = looks_of(comparison.oracles)[name]
                    _whiskers(axes, row + offset, spread, look, hollow=offset > 0)
        axes.axvline(0.25, color=GREY, linewidth=0.9, linestyle=(0, (3, 2)))
        axes.annotate(
            "¼", (0.25, 1), (0, 2), xycoords=("data", "axes fraction"),
            textcoords="offset points", ha="center", va="bottom",
        )  # fmt: skip
        _rows(axes, [short(name, 20) for name, _, _ in found])
        share_axis(axes.xaxis)
        axes.set_xlim(-0.02, 1.03)
        allowed = "" if comparison.settings.requirements is None else " that is allowed"
        axes.set_xlabel(f"share of the greatest gain of any rule{allowed}")
        axes.grid(axis="x")

    said = [
        f"{name} {percent(gain.median)}{THIN}% ({percent(gain.min)})" for name, gain, _ in found
    ]
    free = "" if comparison.settings.requirements is None else ", if nothing is required"
    caption = (
        "Full marks: the best threshold for every answer; hollow: the better of the paper's two;"
        f" dashed: the ¼ that Lemma 4 promises for exact answers and equal costs{free}."
    )
    title = "Gain inside Algorithm 1"
    alt = f"{title}. Medians (worst): {'; '.join(said)}. {caption}"
    height = max(1.7, 0.85 + 0.42 * len(found))
    return [Picture(title, drawn((WIDE[0], height), draw, f"{prefix}a", alt), caption)]


# -------------------------------------------------------------------- bounds


def bounds(comparison: Comparison, prefix: str) -> list[Picture]:
    """Lower and upper bounds over time of the longest calls of exact oracles, one per instance."""
    longest: dict[str, tuple[Run, Call]] = {}
    calls = [(run, call) for run in comparison.runs for call in run.calls]
    for run, call in sorted(calls, key=lambda entry: -entry[1].seconds):
        if sum(bound is not None for _, _, bound in call.trace) > 1:
            longest.setdefault(run.instance, (run, call))
    pictures = []
    for number, (run, call) in enumerate(list(longest.values())[:MOST_CALLS]):
        name = comparison.by_digest[run.instance].name
        steps = [(when, value, bound) for when, value, bound in call.trace if bound is not None]
        if call.upper is not None:
            steps.append((call.seconds, call.lower, call.upper))
        who = f"{run.oracle} on {name} at η = {call.eta_fraction:.3g}{THIN}‖P w_f‖"
        what = "soft density" if call.soft else "density"
        look, key = looks_of(comparison.oracles)[run.oracle], f"{prefix}b{number}"
        pictures.append(closing_in(steps, who, what, look, key, short(name, 34), call.seconds))
    return pictures
