"""A picture of a certificate: the bounds closing in, and the rule on the agents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mipmech.design.certificate import Certificate
from mipmech.plots.rule import draw_rule, put_heading, save, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOWER, UPPER, BETWEEN = "#D55E00", "#0072B2", "#DCEBF5"


def certificate_picture(found: Certificate) -> Figure:
    """A matplotlib figure; the rule found is on the right."""
    from matplotlib.figure import Figure  # noqa: PLC0415  (slow to import)

    with styled():
        figure = Figure(figsize=(11.0, 5.2), dpi=150, layout="constrained")
        left, right = figure.subfigures(1, 2, width_ratios=[1.0, 1.15], squeeze=False)[0]
        bounds, gap = left.subplots(2, 1, sharex=True, height_ratios=[2, 1])
        _draw_bounds(bounds, found)
        _draw_gap(gap, found)
        if found.recount is not None:
            draw_rule(right, found.recount)
        put_heading(figure, found.instance.name)
    return figure


def save_certificate_picture(found: Certificate, path: str | Path) -> None:
    """Draw a certificate and save the picture (png, pdf, svg, …)."""
    save(certificate_picture(found), path)


def _bounds_over_time(found: Certificate) -> tuple[list[float], list[float], list[float]]:
    """Seconds, lower and upper bounds; the last ones are the certificate's."""
    events = [e for e in found.events if e.upper is not None and not e.note]
    seconds = [e.seconds for e in events]
    lower = [e.lower for e in events]
    upper = [float(e.upper) for e in events if e.upper is not None]
    # Time starts with the first bound: before that, programs are loaded.
    begun = seconds[0] if seconds else 0.0
    since = [s - begun for s in seconds]
    end = max([*since, 1e-3]) * 1.05
    return [*since, end], [*lower, float(found.lower)], [*upper, found.upper]


def _draw_bounds(axes: Axes, found: Certificate) -> None:
    seconds, lower, upper = _bounds_over_time(found)
    axes.fill_between(seconds, lower, upper, step="post", color=BETWEEN, linewidth=0)
    axes.step(seconds, upper, where="post", color=UPPER, label="no rule has more (upper bound)")
    axes.step(seconds, lower, where="post", color=LOWER, label="the best rule found, exactly")
    axes.set_ylabel(f"{found.claim['kind']}")
    # The first bounds are far off; what matters is where they meet.
    best = float(found.lower)
    axes.set_ylim(max(0.0, best * 0.6), min(max(upper), max(best * 1.6, found.upper * 1.1)) or 1.0)
    axes.legend(frameon=False, fontsize=8, loc="best")
    axes.set_title(
        f"{found.claim['kind']} between {best:.6g} and {found.upper:.6g} ({found.level})",
        fontsize=9,
    )


def _draw_gap(axes: Axes, found: Certificate) -> None:
    seconds, lower, upper = _bounds_over_time(found)
    gaps = [max(1 - a / b, 1e-16) if b > 0 else 1e-16 for a, b in zip(lower, upper, strict=True)]
    axes.step(seconds, gaps, where="post", color="#444444")
    axes.set_yscale("log")
    if found.wanted > 0:
        axes.axhline(found.wanted, color="#8a8a8a", linewidth=0.8, linestyle="--")
        axes.annotate(
            f"asked for: {found.wanted:g}", (0.01, found.wanted), fontsize=7, color="#555555",
            xycoords=("axes fraction", "data"), ha="left", va="bottom",
        )  # fmt: skip
    axes.set_ylabel("relative gap")
    axes.set_xlabel("seconds since the first bound")
    axes.set_xlim(0, float(np.max(seconds)))
