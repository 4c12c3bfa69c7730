"""Pictures of a page, each with its finding in words, and the sections that they stand in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from mipmech.plots.looks import GREY, Look, looks_of, time_axis
from mipmech.report.kit.svg import drawn
from mipmech.text import THIN, WHOLE, above, duration, ends, gap_percent, relative_gap

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Inches; a page shows two of the wide ones side by side, and four of the small ones.
WIDE = (4.3, 2.95)
SMALL = (3.0, 2.1)


@dataclass(frozen=True)
class Picture:
    """A picture for a page: its title, its SVG, and what it shows."""

    title: str
    svg: str
    caption: str
    group: str = ""


@dataclass(frozen=True)
class Pictures:
    """A section of pictures.

    shape : how large they are
    of, legend : what is drawn, and by name a sample of its look
    missing : (instance, why there is no picture of it)
    """

    key: str
    title: str
    pictures: Sequence[Picture]
    shape: Literal["pictures", "small", "gallery"] = "small"
    note: str = ""
    of: str = ""
    legend: Sequence[tuple[str, str]] = ()
    missing: Sequence[tuple[str, str]] = ()


def legend_of(names: Sequence[str], prefix: str = "") -> list[tuple[str, str]]:
    """What is drawn, by name, and a sample of its look.

    prefix : here and elsewhere, sets identifiers apart from those of the rest of the page
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

    return drawn((0.5, 0.16), draw, key, "")


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
        area: dict[str, Any] = {**look.area, "alpha": 0.14}
        axes.fill_between(seconds, lower, upper, **area)
        axes.step(seconds, upper, where="post", color=GREY, linewidth=1.5)
        axes.step(seconds, lower, where="post", color=look.colour, linewidth=1.6)
        axes.set_xscale("log")
        axes.set_xlim(min(seconds[0], seconds[-2] / 10), seconds[-1])
        axes.set_ylim(bottom=0, top=1.08 * max([*upper, 1e-12]))
        axes.set_ylabel(what)
        time_axis(axes, 4)
        axes.grid(axis="y")

    if relative_gap(lower[-1], upper[-1]) <= WHOLE:
        state = f"the bounds meet, {what} {upper[-1]:.5g}"
    else:
        at_least, at_most = ends(lower[-1], upper[-1])
        left = f"a gap of {gap_percent(lower[-1], upper[-1])}{THIN}% is left"
        state = f"{left}, {what} between {at_least} and {at_most}"
    caption = f"{who}: after {duration(took)} {state}."
    return Picture(title, drawn(SMALL, draw, key, caption), caption)


def within(seconds: float) -> str:
    """A time, rounded up."""
    return duration(float(above(seconds, 2)))
