"""A picture of a comparison: the quality that every oracle had reached after so many seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mipmech.plots.looks import Look, looks_of, share_axis, time_axis
from mipmech.plots.rule import put_heading, styled
from mipmech.studies.comparison.results import Comparison, Problem
from mipmech.studies.spread import Spread
from mipmech.text import count, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Moments of an axis of time.
MOMENTS = 64


def comparison_picture(comparison: Comparison) -> Figure:
    """A matplotlib figure: medians as lines, quartiles as bands."""
    from matplotlib.figure import Figure  # noqa: PLC0415  (slow to import)

    moments = moments_of(comparison)
    found = over_time(comparison, moments)
    with styled():
        figure = Figure(figsize=(7.2, 4.2), dpi=150, layout="constrained")
        axes = figure.subplots()
        if found:
            draw_over_time(axes, looks_of(comparison.oracles), found, moments)
            label_over_time(axes)
            axes.grid(axis="y", color="#dddddd", linewidth=0.7)
            axes.legend(
                frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1.02),
                labelspacing=0.9, handlelength=2.6,
            )  # fmt: skip
        else:
            axes.set_axis_off()
            axes.text(0.0, 1.0, "No quality is known: no reference is closed.", va="top")
        oracles = count(len(comparison.oracles), "oracle")
        put_heading(figure, f"{oracles} on {count(len(comparison.problems), 'instance')}")
    return figure


def moments_of(comparison: Comparison) -> list[float]:
    """Moments from the first thing that was found to the end of the longest call, by decades."""
    calls = [call for run in comparison.runs for call in run.calls]
    firsts = [call.trace[0][0] if call.trace else call.seconds for call in calls]
    # A few calls that are done at once must not stretch the axis.
    first = float(np.quantile(firsts, 0.05)) if firsts else 1e-3
    last = max([1e-3, *(call.seconds for call in calls)])
    low = math.floor(math.log10(max(1e-6, first)))
    high = max(low + 1, math.ceil(math.log10(last)))
    return [float(moment) for moment in np.geomspace(10.0**low, 10.0**high, MOMENTS)]


def over_time(
    comparison: Comparison, moments: Sequence[float], problems: Sequence[Problem] | None = None
) -> dict[str, list[Spread]]:
    """Oracle -> the spread of its quality at each moment; those without any are left out."""
    found = {
        name: comparison.quality_over_time(name, moments, problems) for name in comparison.oracles
    }
    return {name: spreads for name, spreads in found.items() if spreads}


def draw_over_time(
    axes: Axes,
    looks: Mapping[str, Look],
    found: Mapping[str, Sequence[Spread]],
    moments: Sequence[float],
    ticks: int = 6,
) -> None:
    """Medians as lines, quartiles as bands, of every oracle in ``found``."""
    for number, (name, spreads) in enumerate(found.items()):
        look = looks[name]
        # Before its first answer an oracle has nothing to show.
        begin = max(0, next((i for i, s in enumerate(spreads) if s.q3 > 0), 0) - 1)
        when, part = moments[begin:], spreads[begin:]
        axes.fill_between(when, [s.q1 for s in part], [s.q3 for s in part], **look.area)
        axes.plot(
            when, [s.median for s in part], drawstyle="steps-post", label=short(name, 28),
            markevery=(1 + number % len(when), max(1, len(when) // 3)), **look.line,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlim(moments[0], moments[-1])
    share_axis(axes.yaxis)
    axes.set_ylim(-0.02, 1.03)
    time_axis(axes, ticks)


def label_over_time(axes: Axes) -> None:
    """What the axes of such a picture mean."""
    axes.set_xlabel("time of a call")
    axes.set_ylabel("quality of the density")
