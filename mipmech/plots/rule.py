"""Pictures of a mechanism: the agents, the margin, and who moves where.

With two visible dimensions the picture is the plane that the planner sees, in units of cost: agents
go where it is cheapest, at a right angle to the boundary for Euclidean costs, along one axis for
l1, along both for linf, and obliquely for a matrix. Otherwise it is the line of scores, with the
true quality upwards: a mover goes right to the threshold and up by its gain.
Colours are Okabe and Ito's, which colour-blind readers can tell apart; shape says the same.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mipmech import files
from mipmech.design.worth import moved_along
from mipmech.errors import InputError
from mipmech.model.edge_of_reach import movers
from mipmech.model.geometry import Geometry, reduce
from mipmech.model.grading import Recount, Side, Sides
from mipmech.model.instance import Instance
from mipmech.model.mechanism import to_reduced
from mipmech.model.typed_rules import in_known_units
from mipmech.rationals import clamped
from mipmech.text import listed
from mipmech.validation import Flags, Floats, Numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from mipmech.design.algorithm1 import Solution
    from mipmech.design.certificate import Certificate


STYLE = {
    Side.BEYOND: ("#8a8a8a", "o", "stay"),
    Side.ABOVE: ("#0072B2", "s", "pass already"),
    Side.INSIDE: ("#D55E00", "D", "move"),
}
MARGIN = "#F0C27B"
ACCEPT = "#DCEBF5"
PAPER = "#FFFFFF"
# The rule above the picture: characters to a line, and lines.
LINE, MOST_LINES = 72, 3
# Characters of a legend that fit into one row.
IN_A_ROW = 62
# More arrows than this hide each other.
MOST_ARROWS = 120
# Width over height of the plane's picture.
WIDE = 1.5
# Beyond this ratio of the axes' ranges, equal scales would leave a line instead of a picture.
MIXED = 30.0


def picture(found: Recount, title: str | None = None, rule: str | None = None) -> Figure:
    """A matplotlib figure of a mechanism on its instance; a notebook shows it as it is."""
    from matplotlib.figure import Figure  # noqa: PLC0415  (slow to import)

    with styled():
        figure = Figure(figsize=(6.4, 4.8), dpi=160, layout="constrained")
        draw_rule(figure, found, rule)
        put_heading(figure, title or found.instance.name)
    return figure


def beside_rule(
    panels: Mapping[Callable[[Axes, Any], None], float], found: Certificate | Solution
) -> Figure:
    """Panels above one another, each drawn by a function, with its height; the rule beside them."""
    from matplotlib.figure import Figure  # noqa: PLC0415  (slow to import)

    with styled():
        figure = Figure(figsize=(11.0, 5.2), dpi=150, layout="constrained")
        left, right = figure.subfigures(1, 2, width_ratios=[1.0, 1.15], squeeze=False)[0]
        column = left.subplots(len(panels), 1, sharex=True, height_ratios=list(panels.values()))
        for draw, axes in zip(panels, column, strict=True):
            draw(axes, found)
        if found.recount is not None:
            draw_rule(right, found.recount, str(found.printed))
        put_heading(figure, found.instance.name)
    return figure


def styled() -> AbstractContextManager[None]:
    """The look of all pictures."""
    import matplotlib as mpl  # noqa: PLC0415  (slow to import)

    style: Any = {
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlelocation": "left",
        "svg.hashsalt": "mipmech",
        "text.parse_math": False,  # a feature called "$x" is a name, not mathematics
    }
    return mpl.rc_context(style)


def put_heading(figure: Figure, text: str) -> None:
    """The name of the instance above everything."""
    figure.suptitle(_short(text, 60), x=0.02, ha="left", fontsize=11, fontweight="bold")


def draw_rule(figure: Figure | SubFigure, found: Recount, rule: str | None = None) -> None:
    """The agents, the margin, and who moves where.

    rule : in words and in the user's units, where it is known in few digits
    """
    geometry = reduce(found.instance)
    plane = geometry.rank == 2
    axes = _draw_plane(figure, geometry, found) if plane else _draw_scores(figure, found)
    weights = found.instance.weights
    weighted = " (by weight)" if np.ptp(weights[weights > 0]) else ""
    said = f"accept if {rule or rule_in_words(found)}"
    gain = float(found.gain)
    change = f"mean quality {'rises' if gain > 0 else 'falls'} by {abs(gain):.4g} from"
    figures = f"{float(found.share(movers(found))):.1%}{weighted} move,"
    figures += f" {change if gain else 'mean quality stays at'} {float(found.baseline):.4g}"
    lines = textwrap.wrap(said, LINE, max_lines=MOST_LINES, placeholder=" …")
    axes.set_title("\n".join([*lines, figures]), fontsize=9)
    _legend(figure)


def rule_in_words(found: Recount) -> str:
    """A rule in the user's units.

    One of length 1 (in the dual norm) was made by a program: its largest weight becomes 1.
    """
    known = in_known_units(found.instance, found.mechanism)
    terms = sorted(known.weights, key=lambda term: -abs(term[1]))
    made = abs(found.direction.norm / float(found.line.factor) - 1) < 1e-9
    size = abs(terms[0][1]) if made else 1.0
    score = " ".join(f"{weight / size:+.5g} {name}" for name, weight in terms).removeprefix("+")
    return f"{score} ≥ {known.threshold / size:.5g}"


def save(figure: Figure, path: str | Path) -> None:
    """Save a figure under this name, whole or not at all; the ending says how."""
    file = Path(path)
    if not file.suffix:
        raise InputError("has no ending; add one, such as .png", file=file, field="plot")
    drawn = io.BytesIO()
    try:
        figure.savefig(drawn, format=file.suffix[1:])
    except ValueError:
        known = ", ".join(sorted(figure.canvas.get_supported_filetypes()))
        raise InputError(
            f"has an unknown ending; the known ones are {known}", file=file, field="plot"
        ) from None
    files.write(file, drawn.getvalue())


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def _window(points: Floats, movers: Floats, room: float) -> tuple[Floats, Floats]:
    """The part of the plane to show: the bulk of the points, all movers, and some room.

    A few agents very far away would shrink the rest to a dot; they are left outside, and counted.
    """
    low, high = np.percentile(points, [5, 95], axis=0)
    reach = high - low + room
    least = np.maximum(points.min(axis=0), low - reach)
    most = np.minimum(points.max(axis=0), high + reach)
    shown = np.vstack([least, most, movers])
    return shown.min(axis=0), shown.max(axis=0)


def _note_missing(axes: Axes, points: Floats, found: Recount) -> None:
    """Say how many agents the picture does not show, and which features."""
    counts = found.instance.weights > 0
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    x, y = points[counts].T
    outside = int(((x < left) | (x > right) | (y < bottom) | (y > top)).sum())
    weightless = int((~counts).sum())
    notes = [f"{outside} agent{'s' * (outside != 1)} outside the picture"] * bool(outside)
    notes += [f"{weightless} of weight 0 not shown"] * bool(weightless)
    along = set(moved_along(found.instance)) & set(found.line.step)
    if along:
        hidden = listed([_short(found.instance.feature_names[j], 20) for j in sorted(along)[:3]])
        notes.append(f"{hidden}, hidden, move{'s' * (len(along) == 1)} along")
    if notes:
        axes.annotate(
            ", ".join(notes), (1, 0), (-4, 4), xycoords="axes fraction", ha="right", va="bottom",
            textcoords="offset points", fontsize=8, style="italic", zorder=6,
            bbox={"facecolor": PAPER, "alpha": 0.8, "linewidth": 0, "pad": 1.5},
        )  # fmt: skip


class _Plane(NamedTuple):
    """The plane that the planner sees, in units of cost: there a move of 1 along an axis costs 1.

    at : (m, 2) array, the agents
    origin : (2,) array, the point that levels are measured from
    rows : (2, n) array, what takes features to the plane
    names : of the axes
    normal, level : the boundary is where normal·(x − origin) = level, and w·x is linear like this
    step : (2,) array, where agents go to raise their score by 1
    below : (m,) array, how far the scores are below the level
    """

    at: Floats
    origin: Floats
    rows: Floats
    names: list[str]
    normal: Floats
    level: float
    step: Floats
    below: Floats

    def band(self, reach: float, norm: float) -> Floats:
        """From the boundary to the far end of a margin, at a right angle."""
        return -reach * norm * self.normal / float(self.normal @ self.normal)


def _plane(geometry: Geometry, found: Recount) -> tuple[_Plane, float]:
    """The plane of a rule, and N of the normal."""
    instance, line = found.instance, found.line
    if instance.view.columns is None:
        # In reduced coordinates costs are Euclidean.
        origin = geometry.basis @ geometry.centre
        names = [_combination(row, instance) for row in geometry.basis]
        u, level = to_reduced(geometry, found.mechanism)
        at, level = geometry.z * geometry.unit + origin, level * geometry.unit
        below = level - (at - origin) @ u
        return _Plane(at, origin, geometry.basis, names, u, level, u, below), 1.0
    columns = list(instance.view.columns)
    prices = instance.costs.prices(instance.width)[columns]
    rows = np.zeros((2, instance.width))
    rows[[0, 1], columns] = prices
    weights, step = dict(zip(line.columns, line.weights, strict=True)), line.step
    normal = np.array([float(weights.get(j, 0)) for j in columns]) / prices
    move = np.array([float(step.get(j, 0)) for j in columns]) * prices
    direction = found.direction
    level = clamped(direction.level(found.mechanism.threshold))
    plane = _Plane(
        instance.agents[:, columns] * prices, geometry.centre[columns] * prices, rows,
        [instance.feature_names[c] for c in columns], normal, level, move,
        level - direction.scores,
    )  # fmt: skip
    return plane, direction.norm


def _draw_plane(figure: Figure | SubFigure, geometry: Geometry, found: Recount) -> Axes:
    instance = found.instance
    axes = figure.add_subplot()
    plane, norm = _plane(geometry, found)
    at, names = plane.at, plane.names
    u = plane.normal / float(np.linalg.norm(plane.normal))
    foot = plane.origin + plane.level * plane.normal / float(plane.normal @ plane.normal)
    after = at + plane.below[:, None] * plane.step
    margins, moving = _margins(instance), _movers(found)
    least, counts = margins[0][0], instance.weights > 0
    low, high = _window(at[counts], np.vstack([at[moving], after[moving]]), 2 * least)
    half = (high - low) / 2 * 1.06 + least / 2
    to_scale = max(half) <= MIXED * min(half)
    if to_scale:
        half = np.maximum(half, [half[1] * WIDE, half[0] / WIDE])
        axes.set_aspect("equal")  # or the arrows would not be perpendicular to the boundary
    middle = (low + high) / 2
    axes.set_xlim(middle[0] - half[0], middle[0] + half[0])
    axes.set_ylim(middle[1] - half[1], middle[1] + half[1])
    # The boundary from the point nearest to the middle, long enough to cross the picture.
    start = middle + (foot @ u - middle @ u) * u
    length = 4 * float(np.linalg.norm(half))
    line = start[:, None] + np.array([-u[1], u[0]])[:, None] * np.array([-length, length])
    _band(axes, line, 2 * length * u, color=ACCEPT, label="accepted")
    for reach, look in margins:
        _band(axes, line, plane.band(reach, norm), **look)
    axes.plot(*line, color="black", linewidth=1.1, scalex=False, scaley=False)
    _agents(axes, at, after, found)
    _note_missing(axes, at, found)
    label = _short(names[0], 70)
    if not to_scale:
        label = f"{_short(names[0], 40)}   (axes not to scale: the units differ greatly)"
    axes.set(xlabel=label, ylabel=_short(names[1], 45))
    _in_units(axes, instance, plane.rows)
    return axes


def _in_units(axes: Axes, instance: Instance, rows: Floats) -> None:
    """Ticks in the user's units on axes that are one feature: the picture itself stays to scale.

    rows : (2, n) array, what takes features to the axes
    """
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415  (slow to import)

    units = instance.units
    if units is None and instance.costs.effort is None:
        return
    for axis, row in zip((axes.xaxis, axes.yaxis), rows, strict=True):
        features = np.flatnonzero(row)
        if len(features) != 1:
            unit = "in units of cost" if instance.costs.effort is not None else ""
            unit = unit or "in standard deviations"
            axis.set_label_text(f"{axis.get_label_text()}, {unit}")
            continue
        feature, by = int(features[0]), float(row[features[0]])
        centre, scale = 0.0, 1 / by
        if units is not None:
            centre, scale = units.centre[feature], units.scale[feature] / by
        low, high = sorted(centre + scale * end for end in axis.get_view_interval())
        ticks = np.asarray(MaxNLocator(6).tick_values(low, high))
        ticks = ticks[(ticks >= low) & (ticks <= high)]
        axis.set_ticks(
            (ticks - centre) / scale, [f"{tick:.6g}".replace("-", "−") for tick in ticks]
        )


def _draw_scores(figure: Figure | SubFigure, found: Recount) -> Axes:
    instance = found.instance
    above: Axes
    above, axes = figure.subplots(2, 1, sharex=True, height_ratios=[1, 3.2])
    # Scores over N(w), so that the margin is as wide as people reach.
    direction, line = found.direction, found.line
    norm = direction.norm
    level = clamped(direction.level(found.mechanism.threshold))
    boundary = clamped(Fraction(found.mechanism.threshold) * line.factor) / norm
    below = level - direction.scores
    score = boundary - below / norm
    quality = instance.agents @ instance.quality - instance.quality_offset
    margins, moving = _margins(instance), _movers(found)
    least, counts = margins[0][0], instance.weights > 0
    at = np.column_stack([score, quality])
    risen = quality + float(line.rise) * below
    after = np.column_stack([np.full(len(score), boundary), risen])
    low, high = _window(at[counts], np.vstack([at[moving], after[moving]]), least)
    low[0], high[0] = min(low[0], boundary - least), max(high[0], boundary)
    pad = 0.05 * (high - low) + [least / 10, 1e-9 * (1 + abs(high[1]))]
    axes.set_ylim(low[1] - pad[1], high[1] + pad[1])
    right = float(high[0] + pad[0])
    for panel in (above, axes):
        panel.axvspan(boundary, right, color=ACCEPT, zorder=0, linewidth=0, label="accepted")
        for reach, look in margins:
            panel.axvspan(boundary - reach, boundary, zorder=0.5, linewidth=0, **look)
        panel.axvline(boundary, color="black", linewidth=1.1)
    axes.set_xlim(low[0] - pad[0], right)
    _agents(axes, at, after, found)
    shown = counts & (score >= low[0]) & (score <= high[0])
    _histogram(above, score, shown, found, _bins(low[0], high[0], boundary, least))
    _note_missing(axes, at, found)
    weights = np.zeros(instance.width)
    weights[list(line.columns)] = [float(w) for w in line.weights]
    rule = _combination(weights / norm, instance)
    unit = "" if instance.units is None else " in standard deviations"
    if not instance.costs.plain:
        unit = " in units of cost"
    axes.set(xlabel=_short(f"score{unit}: {rule}", 75), ylabel="true quality f(x)")
    return above


def _bins(low: float, high: float, boundary: float, reach: float) -> list[float]:
    """About forty bins, with an edge on the threshold and one at the least reach before it."""
    width = max((high - low) / 40, reach / 1000)
    if width < reach:
        width = reach / round(reach / width)
    first, last = np.floor((low - boundary) / width), np.ceil((high - boundary) / width)
    edges: list[float] = (boundary + width * np.arange(first, last + 1)).tolist()
    return edges


def _histogram(axes: Axes, score: Floats, shown: Flags, found: Recount, bins: list[float]) -> None:
    sides = _sides(found)
    groups = [(sides == side) & shown for side in STYLE]
    shares = found.instance.weights / found.instance.weights.sum()
    axes.hist(
        [score[g] for g in groups], bins=bins, weights=[shares[g] for g in groups], stacked=True,
        color=[colour for colour, _marker, _label in STYLE.values()], alpha=0.85,
    )  # fmt: skip
    axes.set_ylabel("share")


def _movers(found: Recount) -> Numbers:
    """The agents that count and move."""
    agents = movers(found)
    return agents[found.instance.weights[agents] > 0]


def _sides(found: Recount) -> Sides:
    """Where agents are, with those on the threshold among those who pass already."""
    sides = np.where(found.sides == Side.INSIDE, Side.ABOVE, found.sides)
    sides[movers(found)] = Side.INSIDE
    return sides


def _agents(axes: Axes, at: Floats, after: Floats, found: Recount) -> None:
    counts = found.instance.weights > 0
    m = int(counts.sum())
    size = float(np.clip(4000 / m, 2, 22))
    moving = _movers(found)
    every = max(1, -(-len(moving) // MOST_ARROWS))
    drawn = moving[::every]
    step = after[drawn] - at[drawn]
    axes.quiver(
        at[drawn, 0], at[drawn, 1], step[:, 0], step[:, 1],
        angles="xy", scale_units="xy", scale=1, width=0.0024, headwidth=4, headlength=5,
        color=STYLE[Side.INSIDE][0], alpha=0.75, zorder=3,
    )  # fmt: skip
    sides = _sides(found)
    for side, (colour, marker, label) in STYLE.items():
        chosen = (sides == side) & counts
        count = int(chosen.sum())
        if not count:
            continue
        arrows = ""
        if side == Side.INSIDE and every > 1:
            arrows = f"; arrows for {'half' if every == 2 else f'one in {every}'} of them"
        axes.scatter(
            at[chosen, 0], at[chosen, 1], s=size, c=colour, marker=marker,
            alpha=0.8 if m < 2000 else 0.4, linewidths=0, zorder=2 if side else 4,
            label=f"{label} ({count}{arrows})",
            rasterized=m > 5000,
        )  # fmt: skip


def _band(axes: Axes, line: Floats, depth: Floats, **look: Any) -> None:
    far = line + depth[:, None]
    axes.fill(*np.hstack([line, far[:, ::-1]]), linewidth=0, zorder=0.5, **look)


def _margins(instance: Instance) -> list[tuple[float, dict[str, Any]]]:
    """The least and, if it differs, the greatest reach; and how the margin looks up to there."""
    reach = instance.reach[instance.weights > 0]
    least, most = float(reach.min()), float(reach.max())
    near = {"color": MARGIN, "alpha": 0.55}
    if least == most:
        return [(least, {**near, "label": "margin"})]
    far = {"color": MARGIN, "alpha": 0.3, "label": "within the greatest"}
    return [(least, {**near, "label": "within the least reach"}), (most, far)]


def _legend(figure: Figure | SubFigure) -> None:
    from matplotlib.collections import PathCollection  # noqa: PLC0415  (slow to import)

    handles, labels = figure.axes[-1].get_legend_handles_labels()
    columns = len(labels) if len("".join(labels)) <= IN_A_ROW else 3
    legend = figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, frameon=False,
        columnspacing=1.2, handletextpad=0.4, handlelength=1.3, fontsize=8,
    )  # fmt: skip
    for handle in legend.legend_handles:
        if isinstance(handle, PathCollection):  # large enough to tell, whatever is drawn
            handle.set_sizes([24.0])
            handle.set_alpha(1.0)


def _combination(row: Floats, instance: Instance) -> str:
    """A direction of the plane in words, such as 0.71·verbal + 0.71·maths."""
    plain = instance.costs.plain  # else weights are per unit of each feature, of any size
    parts = [
        (value, name)
        for value, name in zip(row, instance.feature_names, strict=True)
        if abs(value) > (0.005 if plain else 0.0)
    ]
    if len(parts) == 1 and parts[0][0] > 0:
        return parts[0][1]
    parts.sort(key=lambda part: -abs(part[0]))
    text = " + ".join(f"{value:{'.2f' if plain else '.3g'}}·{name}" for value, name in parts[:4])
    text = re.sub("^-", "−", text.replace("+ -", "− "))
    return text + " + …" * (len(parts) > 4)
