"""A picture of a learning curve: what samples say, what the learned rules are worth, what is sure.

Above, gains over the size of the sample; below, how far the sample's figure is from the truth, on
logarithmic scales, where a law like 1/√m is a straight line. Shaded: from the least to the greatest
of the repeats. Shapes and dashes say the same as the colours.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mipmech.plots.rule import put_heading, styled
from mipmech.studies.learning.results import LearningCurve, SizeSummary
from mipmech.studies.spread import Spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Look = dict[str, Any]

SAMPLE: Look = {"color": "#0072B2", "marker": "o", "linestyle": "-"}
GAIN: Look = {"color": "#D55E00", "marker": "s", "linestyle": "-"}
HELD_OUT: Look = {"color": "#009E73", "marker": "^", "linestyle": "--"}
THEOREM: Look = {"color": "#CC79A7", "marker": "v", "linestyle": ":"}
LINE: Look = {"markersize": 4.5, "linewidth": 1.4}
# More sizes than this, or sizes nearer to each other than this ratio, get the usual ticks.
MOST_TICKS = 12
NEAR = 1.4


def learning_picture(curve: LearningCurve) -> Figure:
    """A matplotlib figure of a learning curve; a notebook shows it as it is."""
    from matplotlib.figure import Figure  # noqa: PLC0415  (slow to import)

    with styled():
        figure = Figure(figsize=(9.6, 6.0), dpi=150, layout="constrained")
        rows = curve.summary()
        nothing = _nothing(curve)
        if nothing is None:
            gains, errors = figure.subplots(2, 1, sharex=True, height_ratios=[1.5, 1])
            _draw_gains(gains, curve, rows)
            _draw_errors(errors, curve, rows)
            _draw_sizes(errors, [row.size for row in rows])
            for axes in (gains, errors):
                if axes.get_legend_handles_labels()[0]:
                    axes.legend(
                        frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1.02),
                        labelspacing=0.9, handlelength=2.6,
                    )  # fmt: skip
        else:
            axes = figure.subplots()
            axes.set_axis_off()
            axes.text(0.0, 1.0, nothing, va="top")
        put_heading(figure, curve.source.name)
    return figure


def _nothing(curve: LearningCurve) -> str | None:
    """Why there is nothing to draw, if so."""
    if not curve.points:
        return f"No sample was learned from: {curve.stop.value}."
    if curve.source.seen_quality == 0:
        return "The planner sees nothing that quality depends on: every gain is 0."
    return None


def _draw_gains(axes: Axes, curve: LearningCurve, rows: Sequence[SizeSummary]) -> None:
    """The sample's figure, the gain elsewhere, and the bounds on it."""
    top = 1.08 * max(max(row.sample.max, row.gain.max) for row in rows) or 1.0
    smoothed = curve.source.kind == "smoothed"
    where = "the population (exact)" if smoothed else "the rows held out"
    sure = f"{1 - curve.settings.delta:.4g}"
    _series(axes, {row.size: row.sample for row in rows}, SAMPLE, "best rule on its sample")
    _series(axes, {row.size: row.gain for row in rows}, GAIN, f"the same rule on\n{where}")
    label = f"… at least, by held-out\nagents (probability {sure})"
    _series(axes, {row.size: row.at_least for row in rows}, HELD_OUT, label)
    _draw_theorem(axes, rows, top, sure)
    if curve.best is not None:
        axes.axhline(
            curve.best.gain, color="black", linewidth=0.9, linestyle=(0, (6, 3)), zorder=1,
            label=f"best rule known on the\npopulation: {curve.best.gain:.4g}",
        )  # fmt: skip
    low = min(0.0, *(row.gain.min for row in rows), *(row.at_least.min for row in rows))
    axes.set_ylim(low * 1.05 - 0.02 * top, top)
    axes.set_ylabel("gain")
    axes.set_title(_heading(curve), fontsize=9)


def _heading(curve: LearningCurve) -> str:
    about = curve.source
    what = f"smoothed with σ = {about.sigma:.4g}" if about.sigma is not None else "data"
    many = curve.settings.repeats
    parts = [f"{what}, rank {about.rank}", f"{many} sample{'s' * (many != 1)} of each size"]
    missing = curve.asked - len(curve.points)
    parts += [f"{missing} not reached"] * bool(missing)
    still_open = sum(not point.closed for point in curve.points)
    parts += [f"{still_open} certificate{'s' * (still_open != 1)} not closed"] * bool(still_open)
    return "; ".join(parts)


def _draw_theorem(axes: Axes, rows: Sequence[SizeSummary], top: float, sure: str) -> None:
    """What uniform convergence promises, as far as it fits into the picture."""
    empty = [row.size for row in rows if row.promised.max == 0]
    if len(empty) == len(rows):
        said = "vacuous at all these sizes"
    elif empty:
        said = f"vacuous up to m = {empty[-1]:,}"
    else:
        said = f"probability {sure}"
    label = f"… at least, by Theorem 5's\nuniform convergence\n({said})"
    _series(axes, {row.size: row.promised for row in rows}, THEOREM, label)
    inside = {row.size: row.at_most for row in rows if row.at_most.median <= top}
    outside = "" if len(inside) == len(rows) else "\n(else above the picture)"
    above = {**THEOREM, "marker": "x", "linestyle": "-."}
    _series(axes, inside, above, f"no rule has more, by the same{outside}")


def _draw_errors(axes: Axes, curve: LearningCurve, rows: Sequence[SizeSummary]) -> None:
    """How far the sample's figure is off, how much the rule misses, and what Theorem 5 allows."""
    sure = f"{1 - curve.settings.delta:.4g}"
    allowed = {row.size: row.deviation for row in rows if row.deviation > 0}
    if allowed:
        label = f"no rule's error is more, by\nTheorem 5 (probability {sure})"
        axes.plot(list(allowed), list(allowed.values()), label=label, **THEOREM, **LINE)
    where = "population" if curve.source.kind == "smoothed" else "held-out"
    errors = {row.size: row.error for row in rows if row.error.median > 0}
    _series(axes, errors, SAMPLE, f"error: |sample gain −\n{where} gain|")
    missed: dict[int, Spread] = {}
    if curve.best is not None:
        best = curve.best.gain
        missed = {row.size: _missed(best, row.gain) for row in rows if best > row.gain.median}
    _series(axes, missed, GAIN, "missed: best known −\npopulation gain")
    medians = [spread.median for spread in (*errors.values(), *missed.values())]
    figures = [*medians, *allowed.values()]
    if figures:
        axes.set_yscale("log")
        # One repeat that happens to hit the truth must not stretch the scale by decades.
        axes.set_ylim(min(figures) / 3, max(figures) * 2)
    axes.set_ylabel("difference in gain")


def _series(axes: Axes, by_size: dict[int, Spread], look: Look, label: str) -> None:
    """Medians as a line, with the range of the repeats."""
    if not by_size:
        return
    sizes, spreads, colour = list(by_size), by_size.values(), look["color"]
    low, high = [spread.min for spread in spreads], [spread.max for spread in spreads]
    medians = [spread.median for spread in spreads]
    axes.plot(sizes, medians, label=label, zorder=3, **look, **LINE)
    if len(sizes) > 1:
        axes.fill_between(sizes, low, high, color=colour, alpha=0.16, linewidth=0, zorder=1)
    else:
        axes.vlines(sizes, low, high, color=colour, linewidth=1.0)


def _draw_sizes(axes: Axes, sizes: list[int]) -> None:
    axes.set_xscale("log")
    axes.set_xlabel("m, agents in the sample")
    if len(sizes) == 1:
        axes.set_xlim(sizes[0] / 2, sizes[0] * 2)
    if len(sizes) <= MOST_TICKS and all(b >= NEAR * a for a, b in pairwise(sizes)):
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axes.minorticks_off()


def _missed(best: float, gain: Spread) -> Spread:
    """What is missing to the best known gain."""
    ends = (gain.max, gain.q3, gain.median, gain.q1, gain.min)
    least, q1, median, q3, most = (best - end for end in ends)
    return Spread(least, q1, median, q3, most, gain.count)
