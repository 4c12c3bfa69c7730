"""Pictures of a mechanism: the agents, the margin, and who moves where.

With two visible dimensions the picture is the plane that the planner sees. Otherwise it is the line
of scores, with the true quality upwards: a mover goes right to the threshold and up by its gain.
Colours are Okabe and Ito's, which colour-blind readers can tell apart; shape says the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mipmech.errors import InputError
from mipmech.files import reason
from mipmech.geometry import Geometry, reduce
from mipmech.instance import Instance
from mipmech.mechanism import to_reduced
from mipmech.truth import Recount, Side

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

STYLE = {
    Side.BEYOND: ("#8a8a8a", "o", "stay"),
    Side.ABOVE: ("#0072B2", "s", "pass already"),
    Side.INSIDE: ("#D55E00", "D", "move"),
}
MARGIN = "#F0C27B"
ACCEPT = "#DCEBF5"
# More arrows than this hide each other.
MOST_ARROWS = 120
# Width over height of the plane's picture.
WIDE = 1.5


def save_picture(found: Recount, path: str | Path, title: str | None = None) -> None:
    """Draw a mechanism on its instance and save the picture (png, pdf, svg, …)."""
    if not Path(path).suffix:
        raise InputError("has no ending; give one such as .png", file=path, field="plot")
    import matplotlib as mpl  # noqa: PLC0415  (slow to import)
    from matplotlib.figure import Figure  # noqa: PLC0415

    style: Any = {
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlelocation": "left",
        "svg.hashsalt": "mipmech",
        "text.parse_math": False,  # a feature called "$x" is a name, not mathematics
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=(6.4, 4.8), dpi=160, layout="constrained")
        geometry = reduce(found.instance)
        if geometry.rank == 2:
            _draw_plane(figure, geometry, found)
        else:
            _draw_scores(figure, found)
        figure.suptitle(
            title or found.instance.name, x=0.02, ha="left", fontsize=11, fontweight="bold"
        )
        try:
            figure.savefig(path)
        except OSError as error:
            raise InputError(
                f"cannot be written: {reason(error)}", file=path, field="plot"
            ) from None
        except ValueError as error:
            known = ", ".join(sorted(figure.canvas.get_supported_filetypes()))
            raise InputError(
                f"has an unknown kind of file; known are {known}", file=path, field="plot"
            ) from error


def _summary(found: Recount) -> str:
    moved, gain = float(found.density), float(found.gain)
    before, after = float(found.baseline), float(found.value)
    return f"{moved:.1%} move; mean quality {before:.4g} → {after:.4g} (gain {gain:.4g})"


def _draw_plane(figure: Figure, geometry: Geometry, found: Recount) -> None:
    instance = found.instance
    axes = figure.add_subplot()
    columns = instance.view.columns
    if columns is not None:
        at = instance.agents[:, list(columns)]
        names = [instance.feature_names[c] for c in columns]
        origin = geometry.centre[list(columns)]
    else:
        origin = geometry.basis @ geometry.centre
        at = geometry.z * geometry.unit + origin
        names = [_combination(row, instance) for row in geometry.basis]
    u, level = to_reduced(geometry, found.mechanism)
    foot = origin + u * level * geometry.unit  # the point of the boundary nearest to the centre
    along = np.array([-u[1], u[0]])
    reaches = _reaches(instance)
    span = float(np.ptp(at, axis=0).max()) + 4 * reaches[-1]
    line = foot[:, None] + along[:, None] * np.array([-3 * span, 3 * span])
    _band(axes, line, 4 * span * u, color=ACCEPT, label="accepted")
    for reach, look in zip(reaches, _margins(reaches), strict=True):
        _band(axes, line, -reach * u, **look)
    axes.plot(*line, color="black", linewidth=1.1)
    moves = foot @ u - at @ u
    _agents(axes, at, at + moves[:, None] * u, found)
    pad = 0.06 * float(np.ptp(at, axis=0).max()) + reaches[0] / 2
    ends = np.vstack([at, (at + moves[:, None] * u)[found.covered]])
    middle = (ends.min(axis=0) + ends.max(axis=0)) / 2
    half = (ends.max(axis=0) - ends.min(axis=0)) / 2 + pad
    half = np.maximum(half, [half[1] * WIDE, half[0] / WIDE])
    axes.set_xlim(middle[0] - half[0], middle[0] + half[0])
    axes.set_ylim(middle[1] - half[1], middle[1] + half[1])
    axes.set_aspect("equal")  # or the arrows would not be perpendicular to the boundary
    axes.set(xlabel=names[0], ylabel=names[1])
    axes.set_title(_summary(found), fontsize=9)
    _legend(figure)


def _draw_scores(figure: Figure, found: Recount) -> None:
    instance = found.instance
    above, axes = figure.subplots(2, 1, sharex=True, height_ratios=[1, 3.2])
    weights, threshold = found.mechanism.scaled()
    norm = float(np.linalg.norm(weights))
    score = instance.agents @ (weights / norm)
    boundary = float(threshold) / norm
    quality = instance.agents @ instance.quality - instance.quality_offset
    reaches = _reaches(instance)
    start = np.column_stack([score, quality])
    finish = np.column_stack(
        [np.full(len(score), boundary), quality + found.eta * (boundary - score)]
    )
    used = np.flatnonzero(weights)
    pad = 0.04 * float(np.ptp(score)) + reaches[0] / 10
    right = max(float(score.max()), boundary) + pad
    for panel in (above, axes):
        panel.axvspan(boundary, right, color=ACCEPT, zorder=0, linewidth=0, label="accepted")
        for reach, look in zip(reaches, _margins(reaches), strict=True):
            panel.axvspan(boundary - reach, boundary, zorder=0.5, linewidth=0, **look)
        panel.axvline(boundary, color="black", linewidth=1.1)
    _agents(axes, start, finish, found)
    _histogram(above, score, found, _bins(score, boundary, reaches[0]))
    single = len(used) == 1 and weights[used[0]] > 0
    name = instance.feature_names[used[0]] if single else "score"
    axes.set(xlabel=name if single else "score w·x (w of length one)", ylabel="true quality f(x)")
    axes.set_xlim(float(score.min()) - pad, right)
    above.set_title(_summary(found), fontsize=9)
    _legend(figure)


def _bins(score: Floats, boundary: float, reach: float) -> list[float]:
    """About forty bins, with an edge on the threshold and one at the least reach before it."""
    low, high = min(float(score.min()), boundary - reach), max(float(score.max()), boundary)
    width = max((high - low) / 40, reach / 1000)
    if width < reach:
        width = reach / round(reach / width)
    first, last = np.floor((low - boundary) / width), np.ceil((high - boundary) / width)
    edges: list[float] = (boundary + width * np.arange(first, last + 1)).tolist()
    return edges


def _histogram(axes: Axes, score: Floats, found: Recount, bins: list[float]) -> None:
    groups = [found.sides == side for side in STYLE]
    axes.hist(
        [score[g] for g in groups],
        bins=bins,
        weights=[found.instance.weights[g] for g in groups],
        stacked=True,
        color=[STYLE[side][0] for side in STYLE],
        alpha=0.85,
    )
    axes.set(yticks=[], ylabel="agents")
    axes.spines["left"].set_visible(False)


def _agents(axes: Axes, start: Floats, finish: Floats, found: Recount) -> None:
    m = len(start)
    size = float(np.clip(4000 / m, 3, 22))
    counts = found.instance.weights > 0
    movers = found.covered[counts[found.covered]]
    shown = movers[:: max(1, -(-len(movers) // MOST_ARROWS))]
    step = finish[shown] - start[shown]
    axes.quiver(
        start[shown, 0], start[shown, 1], step[:, 0], step[:, 1],
        angles="xy", scale_units="xy", scale=1, width=0.0024, headwidth=4, headlength=5,
        color=STYLE[Side.INSIDE][0], alpha=0.75, zorder=3,
    )  # fmt: skip
    for side, (colour, marker, label) in STYLE.items():
        chosen = (found.sides == side) & counts
        axes.scatter(
            start[chosen, 0], start[chosen, 1], s=size, c=colour, marker=marker,
            alpha=0.8 if m < 2000 else 0.4, linewidths=0, zorder=2 if side else 4,
            label=f"{label} ({int(chosen.sum())})", rasterized=m > 5000,
        )  # fmt: skip


def _band(axes: Axes, line: Floats, depth: Floats, **look: Any) -> None:
    far = line + depth[:, None]
    axes.fill(*np.hstack([line, far[:, ::-1]]), linewidth=0, zorder=0.5, **look)


def _margins(reaches: list[float]) -> list[dict[str, Any]]:
    """How the margin looks, for each of the reaches."""
    if len(reaches) == 1:
        return [{"color": MARGIN, "alpha": 0.55, "label": "margin"}]
    return [
        {"color": MARGIN, "alpha": 0.55, "label": "least reach"},
        {"color": MARGIN, "alpha": 0.3, "label": "greatest"},
    ]


def _reaches(instance: Instance) -> list[float]:
    """The least and, if it differs, the greatest reach."""
    reach = 1 / instance.cost[instance.weights > 0]
    return sorted({float(reach.min()), float(reach.max())})


def _legend(figure: Figure) -> None:
    handles, labels = figure.axes[-1].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=len(labels), frameon=False,
        columnspacing=1.2, handletextpad=0.4, handlelength=1.3, fontsize=8,
    )  # fmt: skip


def _combination(row: Floats, instance: Instance) -> str:
    """A direction of the plane in words, such as 0.71·verbal + 0.71·maths."""
    parts = [
        (value, name)
        for value, name in zip(row, instance.feature_names, strict=True)
        if abs(value) > 0.005
    ]
    if len(parts) == 1 and parts[0][0] > 0:
        return parts[0][1]
    text = " + ".join(f"{value:.2f}·{name}" for value, name in parts[:4])
    return text.replace("+ -", "− ") + (" + …" if len(parts) > 4 else "")
