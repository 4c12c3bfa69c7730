"""A picture of what requirements cost: the best rules with and without them, and their gains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mipmech.design.gain_bounds import GainBounds
from mipmech.design.price import Prices
from mipmech.plots.looks import BLUE, GREY, VERMILLION
from mipmech.plots.rule import draw_rule, put_heading, styled
from mipmech.text import clean, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# Inches for each row of gains, and for the axis below.
ROW, BELOW = 0.26, 0.75


def prices_picture(found: Prices) -> Figure:
    """A matplotlib figure: the rule without requirements, the one with all, and all gains."""
    from matplotlib.figure import Figure  # noqa: PLC0415  (slow to import)

    bars = ROW * len(found.rows) + BELOW
    with styled():
        figure = Figure(figsize=(11.0, 5.0 + bars), dpi=150, layout="constrained")
        above, below = figure.subfigures(2, 1, height_ratios=[5.0, bars], squeeze=False)[:, 0]
        left, right = above.subfigures(1, 2, squeeze=False)[0]
        _draw(left, "without requirements", found.free)
        _draw(right, "with all requirements", found.required)
        _draw_gains(below.subplots(), found)
        put_heading(figure, found.instance.name)
    return figure


def _draw(part: SubFigure, heading: str, bounds: GainBounds | None) -> None:
    """One of the rules, under its heading."""
    part.suptitle(heading, x=0.5, ha="center", fontsize=10)
    if bounds is not None and bounds.recount is not None:
        draw_rule(part, bounds.recount, str(bounds.printed))
        return
    said = "not done"
    if bounds is not None:
        said = "no rule meets them" if bounds.infeasible else "no rule is known"
    axes = part.subplots()
    axes.set_axis_off()
    axes.text(0.5, 0.5, said, ha="center", va="center", color=GREY)


def _draw_gains(axes: Axes, found: Prices) -> None:
    """A row for each set of requirements: the gain found, and how far a better one is possible."""
    names = [short(clean(found.name(row)), 30) for row in found.rows]
    for height, row in enumerate(found.rows):
        bounds, colour = row.bounds, BLUE if row.dropped else VERMILLION
        if bounds.upper is None or bounds.lower is None:
            said = "no rule" if bounds.upper is None else f"at most {bounds.upper:.4g}"
            axes.annotate(
                said, (0, height), (4, 0), textcoords="offset points", va="center", fontsize=8
            )
            if bounds.upper:
                axes.barh(height, bounds.upper, color=colour, alpha=0.2, height=0.62)
            continue
        lower = float(bounds.lower)
        rest = bounds.upper - lower
        axes.barh(height, max(0.0, lower), color=colour, height=0.62, alpha=0.9)
        axes.barh(height, rest, left=lower, color=colour, alpha=0.3, height=0.62)
        said = _said(found, lower, bounds.upper, row.dropped)
        at = max(bounds.upper, 0.0)
        axes.annotate(
            said, (at, height), (5, 0), textcoords="offset points", va="center", fontsize=8
        )
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.invert_yaxis()
    axes.margins(x=0.32)
    if all(row.bounds.lower is None or row.bounds.lower >= 0 for row in found.rows):
        axes.set_xlim(left=0)
    axes.set_xlabel("gain of the best rule, certified; lighter: as far as a better one is possible")


def _said(found: Prices, lower: float, upper: float, dropped: tuple[str, ...]) -> str:
    """The gain, and what all requirements cost against it."""
    required = found.required
    if lower < 0:
        return f"between {lower:.4g} and {upper:.4g}"
    if not dropped or required is None or not (required.lower or 0) > 0:
        return f"{lower:.4g}"
    assert required.lower is not None
    less = 1 - float(required.lower) / upper
    return (
        f"{lower:.4g}   (all required: at most {less:.1%} less)" if less > 5e-4 else f"{lower:.4g}"
    )
