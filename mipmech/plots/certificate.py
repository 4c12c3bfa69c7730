"""A picture of a certificate: the bounds closing in, and the rule on the agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mipmech.design.certificate import Certificate
from mipmech.plots.rule import beside_rule

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOWER, UPPER, BETWEEN = "#D55E00", "#0072B2", "#DCEBF5"


def certificate_picture(found: Certificate) -> Figure:
    """A matplotlib figure; the rule found is on the right."""
    return beside_rule({_draw_bounds: 2, _draw_gap: 1}, found)


def _bounds_over_time(found: Certificate) -> tuple[list[float], list[float], list[float]]:
    """Seconds, lower and upper bounds; the last ones are the certificate's."""
    bounds = [
        (e.seconds, e.lower, e.upper) for e in found.events if e.upper is not None and not e.note
    ]
    # Time starts with the first bound: before that, programs are loaded.
    since = [seconds - bounds[0][0] for seconds, _, _ in bounds]
    lower = [*(low for _, low, _ in bounds), float(found.lower)]
    upper = [*(high for _, _, high in bounds), found.upper]
    return [*since, max([*since, 1e-3]) * 1.05], lower, upper


def _draw_bounds(axes: Axes, found: Certificate) -> None:
    seconds, lower, upper = _bounds_over_time(found)
    axes.fill_between(seconds, lower, upper, step="post", color=BETWEEN, linewidth=0)
    axes.step(seconds, upper, where="post", color=UPPER, label="no rule has more (upper bound)")
    if not found.unknown:
        axes.step(seconds, lower, where="post", color=LOWER, label="the best rule found, exactly")
    kind = "gain" if found.infeasible else found.claim["kind"]
    axes.set_ylabel(kind)
    # The first bounds are far off; what matters is where they meet.
    best = float(found.lower)
    top = min(max(upper), max(best * 1.6, found.upper * 1.1)) or 1.0
    axes.set_ylim(max(0.0, best * 0.6), top)
    if best < 0:  # requirements leave only rules that do harm
        axes.set_ylim(1.2 * best, max(0.6 * abs(best), found.upper * 1.1))
        axes.axhline(0, color="#8a8a8a", linewidth=0.8)
    axes.legend(frameon=False, fontsize=8, loc="best")
    title = f"{kind} between {best:.6g} and {found.upper:.6g} ({found.level})"
    if found.infeasible:
        title = f"no rule meets the requirements ({found.level})"
    elif found.unknown:
        title = f"no rule that meets the requirements gains more than {found.upper:.6g}"
    axes.set_title(title, fontsize=9)


def _draw_gap(axes: Axes, found: Certificate) -> None:
    seconds, lower, upper = _bounds_over_time(found)
    # Above 1 the gap of rules that do harm says nothing.
    gaps = [
        min(1.0, max(1 - a / b, 1e-16)) if b > 0 else 1e-16 if a >= 0 else 1.0
        for a, b in zip(lower, upper, strict=True)
    ]
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
