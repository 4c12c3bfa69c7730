"""A picture of a frontier: both bounds of the greatest gain, and who is accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mipmech.design.frontier import GainFrontier
from mipmech.plots.looks import BLUE, GREY, VERMILLION, looks_of
from mipmech.plots.rule import put_heading, styled
from mipmech.text import THIN, clean, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Of a grouping with more labels, only the least and the greatest share are drawn.
MOST_LABELS = 6
AREA = "#DCEBF5"
# A range that is this much wider than what is inside it is not shown from 0.
FLAT = 0.5


def frontier_picture(found: GainFrontier) -> Figure:
    """A matplotlib figure; nothing but axes if no row was done."""
    from matplotlib.figure import Figure  # noqa: PLC0415  (slow to import)
    from matplotlib.ticker import FuncFormatter  # noqa: PLC0415

    with styled():
        figure = Figure(figsize=(7.2, 6.0), dpi=150, layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1.5, 1.0])
        _draw_gain(above, found)
        _draw_shares(below, found)
        percent = FuncFormatter(lambda share, _: f"{100 * share:.6g}{THIN}%")
        for axis in (below.xaxis, below.yaxis):
            axis.set_major_formatter(percent)
        below.set_xlabel(_along(found))
        put_heading(figure, found.instance.name)
    return figure


def _along(found: GainFrontier) -> str:
    if found.over == "accepted":
        return "greatest share accepted that is allowed"
    groups = short(clean(found.groups or ""), 30)
    return f"accepted shares by {groups} may differ by"


def _draw_gain(axes: Axes, found: GainFrontier) -> None:
    """Both bounds: at the limits asked for, and, as steps, in between."""
    possible = [row for row in found.rows if not row.bounds.infeasible]
    known = [row for row in possible if row.bounds.lower is not None]
    none = [row.limit for row in found.rows if row.bounds.infeasible]
    if none:
        axes.axvspan(none[0], none[-1], color=GREY, alpha=0.25, linewidth=0)
        axes.plot(none, [0] * len(none), "x", color=GREY, label="no rule meets the requirements")
    x = [row.limit for row in known]
    lower = [float(row.bounds.lower or 0) for row in known]
    if len(known) > 1:
        # The optimum rises with the limit: bounded by the row before, and by the one after.
        after = [*(row.bounds.upper for row in known[1:]), known[-1].bounds.upper]
        high = np.array([0.0 if value is None else value for value in after])
        proved = all(row.bounds.level == "proved" for row in known)
        said = f"the greatest gain lies in here, {'proved' if proved else 'attested'}"
        axes.fill_between(x, lower, high, step="post", color=AREA, linewidth=0, label=said)
    axes.plot(
        [row.limit for row in possible], [row.bounds.upper or 0.0 for row in possible], "v",
        color=BLUE, markersize=5, label="no rule gains more",
    )  # fmt: skip
    axes.plot(x, lower, "^", color=VERMILLION, markersize=5, label="a rule gains this, exactly")
    if lower and min(lower) > 0 and max(lower) - min(lower) > FLAT * max(lower):
        axes.set_ylim(bottom=0)
    axes.set_ylabel("greatest gain")
    if found.rows:
        axes.legend(frameon=False, fontsize=8, loc="lower right")
    axes.set_title(_title(found), fontsize=9)


def _title(found: GainFrontier) -> str:
    others = [kind.field for kind in found.requirements if kind.field != found.over]
    also = f"; also required: {', '.join(others)}" * bool(others)
    left = found.asked - len(found.rows)
    return f"{len(found.rows)} limits{also}" + f"; {left} not done" * (left > 0)


def _draw_shares(axes: Axes, found: GainFrontier) -> None:
    """Who is accepted by the rule of each row."""
    known = [row for row in found.rows if row.bounds.recount is not None]
    x = [row.limit for row in known]
    series = {"everybody": [float(row.bounds.accepted or 0) for row in known]}
    chosen = found.groups or next(iter(found.instance.groups), None)
    if chosen is not None:
        rates = [row.bounds.rates[chosen] for row in known]
        labels = list(rates[0]) if rates else []
        name = short(clean(chosen), 16)
        if len(labels) <= MOST_LABELS:
            for label in labels:
                shown = f"{name} {short(clean(label), 20)}"
                series[shown] = [float(rate[label]) for rate in rates]
        else:
            series[f"{name}: least"] = [float(min(rate.values())) for rate in rates]
            series[f"{name}: greatest"] = [float(max(rate.values())) for rate in rates]
    for label, look in looks_of(list(series)).items():
        # The rule of a row stays allowed up to the next limit.
        axes.plot(x, series[label], label=label, drawstyle="steps-post", **look.line)
    if found.over == "accepted" and x:
        axes.plot(x, x, color=GREY, linewidth=0.8, linestyle=":", zorder=0, label="the limit")
    axes.set_ylim(0, 1.08 * max([0.01, *(share for rates in series.values() for share in rates)]))
    axes.set_ylabel("accepted by the rule")
    if x:
        axes.legend(frameon=False, fontsize=8, loc="best", ncols=2)
