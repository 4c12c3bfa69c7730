"""The pictures of a comparison, each with its finding in words.

An oracle has one look in all of them: a colour of Okabe and Ito's, and a line and a mark that say
the same to those who do not see colours.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mipmech.report import svg
from mipmech.report.words import of_group
from mipmech.report.writing import (
    THIN,
    WHOLE,
    above,
    below,
    count,
    duration,
    listed,
    percent,
    short,
)
from mipmech.studies.comparison.results import NEARLY, Call, Comparison, Problem, Run
from mipmech.studies.spread import Spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (
    svg.BLUE, svg.VERMILLION, svg.GREEN, svg.PURPLE, svg.ORANGE, svg.INK, svg.SKY, svg.YELLOW,
)  # fmt: skip
MARKS = ("o", "s", "D", "^", "v", "P", "X", "*", "<", ">", "p")
DASHES: tuple[Any, ...] = (
    "-", (0, (5, 1.6)), (0, (1, 1.2)), (0, (6, 1.4, 1.2, 1.4)), (0, (2.6, 1.2)),
    (0, (5, 1.2, 1, 1.2, 1, 1.2)), (0, (8, 2)),
)  # fmt: skip

# Inches; a page shows two of the wide ones side by side, and four of the small ones.
WIDE = (4.3, 2.95)
SMALL = (3.0, 2.1)
# Moments of an axis of time.
MOMENTS = 64
# More groups than this have no pictures of their own over time, nor rows in the dot plot.
MOST_GROUPS = 12
MOST_ROWS = 20
# Calls whose bounds are drawn.
MOST_CALLS = 6
# The axis of the performance profile.
NARROWEST = 1e-4


@dataclass(frozen=True)
class Picture:
    """A picture for a page: its title, its SVG, and what it shows."""

    title: str
    svg: str
    caption: str
    group: str = ""


@dataclass(frozen=True)
class Look:
    """How an oracle is drawn."""

    colour: str
    dash: Any
    mark: str
    band: float

    @property
    def size(self) -> float:
        """Of its mark; pointed ones have less area."""
        return {"*": 7.5, "P": 5.5, "X": 5.5}.get(self.mark, 4.5)

    @property
    def line(self) -> dict[str, Any]:
        """Of its line and its marks."""
        return {
            "color": self.colour, "linestyle": self.dash, "linewidth": 1.6, "marker": self.mark,
            "markersize": self.size, "markeredgewidth": 0,
        }  # fmt: skip

    @property
    def area(self) -> dict[str, Any]:
        """Of a band around its line."""
        return {"color": self.colour, "alpha": self.band, "linewidth": 0, "step": "post"}


def looks(comparison: Comparison) -> dict[str, Look]:
    """The look of every oracle."""
    return looks_of(comparison.oracles)


def looks_of(names: Sequence[str]) -> dict[str, Look]:
    """The look of each of these; with more than colours, lines and marks go on to differ."""
    # Many bands on top of each other would hide the lines.
    band = min(0.14, 0.6 / max(1, len(names)))
    cycle = zip(itertools.cycle(COLOURS), itertools.cycle(DASHES), itertools.cycle(MARKS))
    return {name: Look(*look, band) for name, look in zip(names, cycle, strict=False)}


def legend(names: Sequence[str], prefix: str = "") -> list[tuple[str, str]]:
    """What is drawn, by name, and a sample of its look.

    prefix : here and below, sets identifiers apart from those of the rest of the page
    """
    return [
        (name, _sample(look, f"{prefix}k{number}"))
        for number, (name, look) in enumerate(looks_of(names).items())
    ]


def _sample(look: Look, key: str) -> str:
    def draw(figure: Figure) -> None:
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_axis_off()
        axes.plot([0, 1, 2], [0, 0, 0], markevery=[1], **{**look.line, "markersize": look.size + 1})
        axes.set_xlim(0, 2)

    return svg.drawn((0.5, 0.16), draw, key, "")


def graded(comparison: Comparison) -> list[str]:
    """The oracles that have densities to show."""
    return [name for name in comparison.oracles if comparison.qualities(name)]


# ------------------------------------------------------------------ over time


def over_time(comparison: Comparison, prefix: str = "") -> list[Picture]:
    """Quality against time: over all, then group by group unless they are too many."""
    names = graded(comparison)
    if not names:
        return []
    moments = _moments(comparison)
    title = "Quality against time"
    pictures = [_over_time(comparison, names, moments, None, title, f"{prefix}t0", WIDE)]
    if 1 < len(comparison.groups) <= MOST_GROUPS:
        pictures += [
            _over_time(comparison, names, moments[::2], group, group, f"{prefix}t{number}", SMALL)
            for number, group in enumerate(comparison.groups, 1)
        ]
    return pictures


def _moments(comparison: Comparison) -> list[float]:
    """Moments from the first thing that was found to the end of the longest call, by decades."""
    calls = [call for run in comparison.runs for call in run.calls]
    firsts = [call.trace[0][0] if call.trace else call.seconds for call in calls]
    lasts = [call.seconds for call in calls]
    # A few calls that are done at once must not stretch the axis.
    first = float(np.quantile(firsts, 0.05)) if firsts else 1e-3
    last = max([1e-3, *lasts])
    low = math.floor(math.log10(max(1e-6, first)))
    high = max(low + 1, math.ceil(math.log10(last)))
    return [float(moment) for moment in np.geomspace(10.0**low, 10.0**high, MOMENTS)]


def _over_time(
    comparison: Comparison, names: Sequence[str], moments: list[float], group: str | None,
    title: str, key: str, size: tuple[float, float],
) -> Picture:  # fmt: skip
    problems = None if group is None else of_group(comparison, group)
    found = {name: comparison.quality_over_time(name, moments, problems) for name in names}
    found = {name: spreads for name, spreads in found.items() if spreads}

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for number, (name, spreads) in enumerate(found.items()):
            look = looks(comparison)[name]
            # Before its first answer an oracle has nothing to show.
            begin = next((i for i, s in enumerate(spreads) if s.q3 > 0), 0)
            when, part = moments[max(0, begin - 1) :], spreads[max(0, begin - 1) :]
            low, high = [s.q1 for s in part], [s.q3 for s in part]
            axes.fill_between(when, low, high, **look.area)
            every = (1 + number % len(when), max(1, len(when) // 3))
            axes.plot(
                when, [s.median for s in part], drawstyle="steps-post", markevery=every, **look.line
            )
        axes.set_xscale("log")
        axes.set_xlim(moments[0], moments[-1])
        share_axis(axes.yaxis)
        axes.set_ylim(-0.02, 1.03)
        time_axis(axes, 3 if size is SMALL else 6)
        if size is not SMALL:
            axes.set_xlabel("time of a call")
            axes.set_ylabel("quality of the density")
        axes.grid(axis="y")

    caption = _when_solved(found, moments)
    return Picture(title, svg.drawn(size, draw, key, f"{title}. {caption}"), caption, group or "")


def _when_solved(found: dict[str, list[Spread]], moments: list[float]) -> str:
    """Who had a median of `NEARLY` when, and where the others ended."""
    solved, others = [], []
    for name, spreads in found.items():
        times = [m for m, s in zip(moments, spreads, strict=True) if s.median >= NEARLY]
        last = spreads[-1]
        if times:
            solved.append(f"{name} within {duration(float(above(times[0], 2)))}")
        else:
            ends = f"quartiles {percent(last.q1)} to {percent(last.q3)}"
            ends = ends if last.q1 < last.q3 else "both quartiles too"
            others.append(f"{name} at {percent(last.median)}{THIN}% ({ends})")
    share = f"{100 * NEARLY:g}{THIN}%"
    said = f"The median reaches {share} for {listed(solved)}." if solved else ""
    begin = " The others end: " if solved else "At the end: "
    return said + (f"{begin}{listed(others)}." if others else "")


def time_axis(axes: Axes, ticks: int, which: Literal["x", "y"] = "x") -> None:
    """Decades, in words that need no powers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: PLC0415

    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(LogLocator(numticks=ticks))
    axis.set_major_formatter(FuncFormatter(_decade))
    axis.set_minor_formatter(NullFormatter())


def _decade(seconds: float, _place: int | None = None) -> str:
    for limit, unit, size in ((0.9e-3, "µs", 1e-6), (0.9, "ms", 1e-3)):
        if seconds < limit:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


def share_axis(axis: Any, step: float = 0.25) -> None:
    """An axis of shares, in percent."""
    from matplotlib.ticker import FuncFormatter, MultipleLocator  # noqa: PLC0415

    axis.set_major_locator(MultipleLocator(step))
    axis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.6g}{THIN}%"))


# -------------------------------------------------------- performance profile


def profile(comparison: Comparison, prefix: str = "") -> list[Picture]:
    """How many questions were left how far from the bound."""
    names = graded(comparison)
    if not names:
        return []
    gaps = {name: comparison.profile(name) for name in names}
    axis = np.geomspace(NARROWEST, 1, 121)

    def reached(values: Sequence[float], at: Any) -> Any:
        # A gap of rounding alone is none.
        return np.searchsorted(np.array(values), np.asarray(at) + 1e-12, side="right") / len(values)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for number, (name, found) in enumerate(gaps.items()):
            look = looks(comparison)[name]
            worst, best = reached(found["worst"], axis), reached(found["best"], axis)
            axes.fill_between(axis, worst, best, **look.area)
            axes.plot(
                axis, reached(found["median"], axis), drawstyle="steps-post",
                markevery=(5 + 4 * number, 30), **look.line,
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_xlim(NARROWEST, 1)
        axes.set_xticks(
            [1e-4, 1e-3, 1e-2, 1e-1, 1],
            [f"{text}{THIN}%" for text in ("0.01", "0.1", "1", "10", "100")],
        )
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
        ends = f", {percent(worst)} to {percent(best)} by seed" if worst < best else ""
        said.append(f"{name} on {percent(middle)}{THIN}%{ends}")
    caption = f"Within 1{THIN}% of the bound, of all questions: {listed(said)}."
    title = "Performance profile"
    return [Picture(title, svg.drawn(WIDE, draw, f"{prefix}p", f"{title}. {caption}"), caption)]


# ------------------------------------------------------------------ by group


def by_group(comparison: Comparison, prefix: str = "") -> list[Picture]:
    """Worst, median and best of every oracle in every group."""
    names = graded(comparison)
    table = {
        group: {
            name: found
            for name in names
            if (found := comparison.summary(name, of_group(comparison, group)).density)
        }
        for group in comparison.groups
    }
    table = {group: found for group, found in table.items() if found}
    if not table:
        return []
    # The groups in which most is lost are those to look at.
    lost = sorted(table, key=lambda group: min(s.median for s in table[group].values()))
    shown = [group for group in table if group in lost[:MOST_ROWS]]
    left_out = len(table) - len(shown)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for row, group in enumerate(shown):
            if row % 2:
                axes.axhspan(row - 0.5, row + 0.5, color=svg.GRID, alpha=0.35, linewidth=0)
            for place, name in enumerate(names):
                if name in table[group]:
                    at = row + 0.8 * ((place + 0.5) / len(names) - 0.5)
                    _whiskers(axes, at, table[group][name], looks(comparison)[name])
        axes.set_yticks(range(len(shown)), [short(group, 22) for group in shown])
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(shown) - 0.5, -0.5)
        # Marks, unlike bars, may begin where there is something to tell apart.
        least = min(found.min for group in shown for found in table[group].values())
        begin = max(0.0, math.floor(10 * least - 0.2) / 10)
        share_axis(axes.xaxis, 0.25 if begin < 0.4 else 0.1 if begin < 0.8 else 0.05)
        axes.set_xlim(begin - 0.02 * (1 - begin), 1 + 0.03 * (1 - begin))
        axes.set_xlabel("quality of the density: worst, median, best")
        axes.grid(axis="x")

    said = []
    for name in names:
        there = {group: found[name] for group, found in table.items() if name in found}
        if not there:
            continue
        if min(found.min for found in there.values()) >= 1 - WHOLE:
            said.append(f"{name}: 100{THIN}% everywhere")
            continue
        worst = min(there, key=lambda group: there[group].median)
        found = there[worst]
        ends = f"{percent(found.min)} to {percent(found.max)}{THIN}%"
        said.append(f"{name}: {worst} (median {percent(found.median)}, {ends})")
    caption = f"The worst group of each oracle. {'; '.join(said)}."
    caption += f" {count(left_out, 'group')} with less to lose not drawn." if left_out else ""
    height = max(1.6, 0.75 + sum(max(0.26, 0.085 * len(names) + 0.1) for _ in shown))
    title = "Quality by group"
    picture = svg.drawn((WIDE[0], height), draw, f"{prefix}g", f"{title}. {caption}")
    return [Picture(title, picture, caption)]


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


def gains(comparison: Comparison, prefix: str = "") -> list[Picture]:
    """The share of the greatest gain that Algorithm 1 ends with."""
    found = [comparison.summary(name) for name in comparison.oracles]
    found = [summary for summary in found if summary.gain is not None and summary.calls]
    if not found:
        return []

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for row, summary in enumerate(found):
            look = looks(comparison)[summary.oracle]
            for spread, offset in ((summary.gain, -0.16), (summary.gain_two, 0.16)):
                if spread is not None:
                    _whiskers(axes, row + offset, spread, look, hollow=offset > 0)
        axes.axvline(0.25, color=svg.GREY, linewidth=0.9, linestyle=(0, (3, 2)))
        axes.annotate(
            "¼", (0.25, 1), (0, 2), xycoords=("data", "axes fraction"),
            textcoords="offset points", ha="center", va="bottom",
        )  # fmt: skip
        axes.set_yticks(range(len(found)), [short(s.oracle, 20) for s in found])
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(found) - 0.5, -0.5)
        share_axis(axes.xaxis)
        axes.set_xlim(-0.02, 1.03)
        axes.set_xlabel("share of the greatest gain of any rule")
        axes.grid(axis="x")

    said = []
    for summary in found:
        gain, two = summary.gain, summary.gain_two
        assert gain is not None
        text = f"{summary.oracle} {percent(gain.median)}{THIN}% ({percent(gain.min)})"
        if two is not None and two != gain:
            text += f", with two thresholds {percent(two.median)} ({percent(two.min)})"
        said.append(text)
    caption = (
        f"Medians (worst): {'; '.join(said)}. Full marks: the best threshold for every answer;"
        " hollow marks: the better of the paper's two. Dashed: the ¼ that Lemma 4 promises for"
        " exact answers and equal costs."
    )
    title = "Gain inside Algorithm 1"
    height = max(1.7, 0.85 + 0.42 * len(found))
    picture = svg.drawn((WIDE[0], height), draw, f"{prefix}a", f"{title}. {caption}")
    return [Picture(title, picture, caption)]


# -------------------------------------------------------------------- bounds


def bounds(comparison: Comparison, prefix: str = "") -> list[Picture]:
    """Lower and upper bounds over time of the longest calls of exact oracles, one per instance."""
    found: list[tuple[Run, Call]] = []
    taken: set[str] = set()
    calls = [(run, call) for run in comparison.runs for call in run.calls if _has_bounds(call)]
    for run, call in sorted(calls, key=lambda entry: -entry[1].seconds):
        if run.instance not in taken and len(found) < MOST_CALLS:
            taken.add(run.instance)
            found.append((run, call))
    return [
        _bounds(comparison, comparison.by_digest[run.instance], run, call, f"{prefix}b{number}")
        for number, (run, call) in enumerate(found)
    ]


def _has_bounds(call: Call) -> bool:
    return sum(bound is not None for _, _, bound in call.trace) > 1


def _bounds(comparison: Comparison, problem: Problem, run: Run, call: Call, key: str) -> Picture:
    steps = [(when, value, bound) for when, value, bound in call.trace if bound is not None]
    if call.upper is not None:
        steps.append((call.seconds, call.lower, call.upper))
    who = f"{run.oracle} on {problem.name} at η = {call.eta_fraction:.3g}{THIN}‖P w_f‖"
    what = "soft density" if call.soft else "density"
    look = looks(comparison)[run.oracle]
    return closing_in(steps, who, what, look, key, short(problem.name, 34), call.seconds)


def closing_in(
    steps: Sequence[tuple[float, float, float]], who: str, what: str, look: Look, key: str,
    title: str, took: float,
) -> Picture:  # fmt: skip
    """Lower and upper bounds over time.

    steps : seconds, lower and upper bound
    who, what : whose bounds, and on what
    took : seconds in all
    """
    seconds = [max(when, 1e-6) for when, _, _ in steps]
    lower, upper = [value for _, value, _ in steps], [bound for _, _, bound in steps]
    # A little beyond the end, so that what it ends with is seen.
    seconds, lower, upper = [*seconds, seconds[-1] * 1.2], [*lower, lower[-1]], [*upper, upper[-1]]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.fill_between(seconds, lower, upper, **{**look.area, "alpha": 0.14})
        axes.step(seconds, upper, where="post", color=svg.GREY, linewidth=1.5)
        axes.step(seconds, lower, where="post", color=look.colour, linewidth=1.6)
        axes.set_xscale("log")
        axes.set_xlim(min(seconds[0], seconds[-2] / 10), seconds[-1])
        axes.set_ylim(bottom=0, top=1.08 * max([*upper, 1e-12]))
        axes.set_ylabel(what)
        time_axis(axes, 4)
        axes.grid(axis="y")

    wide = 1 - lower[-1] / upper[-1] if upper[-1] > 0 else 0.0
    if wide <= WHOLE:
        state = f"the bounds meet, {what} {upper[-1]:.5g}"
    else:
        between = f"{what} between {below(lower[-1])} and {above(upper[-1])}"
        state = f"a gap of {above(100 * wide, 2)}{THIN}% is left, {between}"
    caption = f"{who}: after {duration(took)} {state}."
    return Picture(title, svg.drawn(SMALL, draw, key, caption), caption)
