"""A picture of a run of Algorithm 1.

What was found at each η, how far it may be from the best, how few values of η that took, and the
rule itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mipmech.design.algorithm1 import Solution
from mipmech.plots.rule import beside_rule
from mipmech.theory.grids import paper_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FOUND, BOUND, GAIN, SKIPPED = "#0072B2", "#8a8a8a", "#D55E00", "#CC79A7"
LINE: dict[str, Any] = {"markersize": 3.5, "linewidth": 1.0}
# More values of η than this are drawn as a line, not as marks.
MOST_MARKS = 60


def solution_picture(found: Solution) -> Figure:
    """A matplotlib figure of a run; the rule found is on the right."""
    return beside_rule({_draw_density: 3, _draw_gain: 3, _draw_calls: 1.2}, found)


def _look(found: Solution) -> str:
    # A line would cross what was skipped, or what no facet has.
    if found.skips or found.grid_name == "facets":
        return "o"
    return "o-" if len(found.steps) <= MOST_MARKS else "-"


def _draw_density(axes: Axes, found: Solution) -> None:
    """What the oracle found at each η, and its bound."""
    soft = any(step.answer.soft for step in found.steps)
    steps = [step for step in found.steps if step.answer.stop.name != "INFEASIBLE"]
    eta = [step.eta for step in steps]
    value = [float(step.answer.lower) for step in steps]
    upper = [np.nan if step.answer.upper is None else float(step.answer.upper) for step in steps]
    open_ = sum(step.answer.upper is not None and not step.answer.closed for step in steps)
    state = "all of them exact" if not open_ else f"{open_} of them not exact"
    if all(step.answer.upper is None for step in steps):
        state = "without bounds"
    elif open_:
        axes.plot(eta, upper, _look(found), color=BOUND, label="at most", zorder=1, **LINE)
    axes.plot(eta, value, _look(found), color=FOUND, label="found", zorder=2, **LINE)
    axes.set_ylabel("soft density" if soft else "density")
    axes.set_ylim(0, 1.15 * max([1e-300, *value, *(u for u in upper if not np.isnan(u))]))
    if open_:
        axes.legend(frameon=False, fontsize=8, ncols=2, loc="best")
    axes.set_title(f"{len(found.steps)} oracle calls, {state}", fontsize=9)


def _draw_gain(axes: Axes, found: Solution) -> None:
    """The gain of the better rule at each η, and the best of all."""
    eta = [step.eta for step in found.steps]
    gain = [float(step.gain) for step in found.steps]
    axes.plot(eta, gain, _look(found), color=GAIN, label="each answer's rule", **LINE)
    for number, skip in enumerate(found.skips):
        axes.axvspan(
            skip.low, skip.high, color=SKIPPED, alpha=0.18, linewidth=0,
            label=f"{found.skipped} values of η skipped by proof" if number == 0 else None,
        )  # fmt: skip
    best = float(found.gain)
    if found.best is not None:
        axes.plot([found.best.eta], [best], "*", color=GAIN, markersize=11, label="the best")
    axes.set_ylabel("gain")
    axes.set_ylim(bottom=0, top=best * 1.4 or 1.0)
    axes.legend(frameon=False, fontsize=8, loc="best")
    title = f"best gain {best:.4g}; no rule gains more than {found.bound.upper:.4g}"
    axes.set_title(title, fontsize=9)


def _power(count: float) -> str:
    """A large number to one digit, as people write it."""
    digits, exponent = f"{count:.0e}".split("e")
    raised = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
    return f"{digits}·10" + exponent.lstrip("+0").translate(raised)


def _many(count: float) -> str:
    return f"{count:,.0f}" if count < 1e7 else _power(count)


def _eta_in_words(found: Solution) -> str:
    costs = found.instance.costs
    if costs.plain:
        return "η = u·P w_f, quality gained per unit of distance moved"
    facet = ", one for each facet" * (costs.norm != "l2")
    return f"η, quality gained per unit of cost{facet}"


def _draw_calls(axes: Axes, found: Solution) -> None:
    """The values of η that were asked for, against those of the paper's grid."""
    smoothing = found.instance.smoothing
    sigma, radius = (1.0, 1.0) if smoothing is None else (smoothing.sigma, smoothing.radius)
    count = paper_count(found.epsilon, sigma, radius)
    least = "" if smoothing is not None else "at least "
    top = float(found.grid.etas.max())
    dense = np.linspace(0, top, int(min(count, 400)))
    rows = [("the paper's grid", BOUND, dense), (f"{found.grid_name} grid", FOUND, found.grid.etas)]
    if found.grid_name == "paper":
        rows = rows[:1]
    sizes: tuple[str, ...] = (f"{least}{_many(count)}", f"{len(found.grid):,}")
    if found.grid_name == "facets":
        rows, sizes = [("rates of facets", FOUND, found.grid.etas)], sizes[1:]
    for height, (_, colour, values) in enumerate(rows):
        axes.vlines(values, height - 0.3, height + 0.3, color=colour, linewidth=0.7)
    labels = [f"{name}\n{size} values" for (name, _, _), size in zip(rows, sizes, strict=False)]
    axes.set_yticks(range(len(rows)), labels, fontsize=7)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlabel(_eta_in_words(found))
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
