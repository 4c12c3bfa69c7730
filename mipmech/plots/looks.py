"""How things are told apart in one picture, and axes of time and of shares.

Colours are Okabe and Ito's; a line and a mark say the same to those who do not see colours.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from mipmech.text import THIN

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Nothing else is drawn in these two; a page puts its own in their place.
INK, GRID = "#010203", "#020304"
BLUE, VERMILLION, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
ORANGE, SKY, YELLOW, GREY = "#e69f00", "#56b4e9", "#f0e442", "#8a8a8a"
COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, INK, SKY, YELLOW)
MARKS = ("o", "s", "D", "^", "v", "P", "X", "*", "<", ">", "p")
DASHES: tuple[Any, ...] = (
    "-", (0, (5, 1.6)), (0, (1, 1.2)), (0, (6, 1.4, 1.2, 1.4)), (0, (2.6, 1.2)),
    (0, (5, 1.2, 1, 1.2, 1, 1.2)), (0, (8, 2)),
)  # fmt: skip


@dataclass(frozen=True)
class Look:
    """How an oracle, or a kind of job, is drawn."""

    colour: str
    dash: Any
    mark: str
    band: float

    @property
    def size(self) -> float:
        """Of its mark; pointed ones have less area."""
        return {"*": 7.5, "P": 5.5, "X": 5.5}.get(self.mark, 4.5)

    @property
    def line(self) -> dict[str, Any]:
        """Of its line and its marks."""
        return {
            "color": self.colour, "linestyle": self.dash, "linewidth": 1.6, "marker": self.mark,
            "markersize": self.size, "markeredgewidth": 0,
        }  # fmt: skip

    @property
    def area(self) -> dict[str, Any]:
        """Of a band around its line."""
        return {"color": self.colour, "alpha": self.band, "linewidth": 0, "step": "post"}


def looks_of(names: Sequence[str]) -> dict[str, Look]:
    """The look of each of these; with more than colours, lines and marks go on to differ."""
    # Many bands on top of each other would hide the lines.
    band = min(0.14, 0.6 / max(1, len(names)))
    cycle = zip(itertools.cycle(COLOURS), itertools.cycle(DASHES), itertools.cycle(MARKS))
    return {name: Look(*look, band) for name, look in zip(names, cycle, strict=False)}


def time_axis(axes: Axes, ticks: int, which: Literal["x", "y"] = "x") -> None:
    """Decades, and steps between them if they are few, in words that need no powers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: PLC0415

    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
    subs = (1.0,) if high > 30 * low else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(subs=subs, numticks=ticks))
    axis.set_major_formatter(FuncFormatter(_decade))
    axis.set_minor_formatter(NullFormatter())


def _decade(seconds: float, _place: int | None = None) -> str:
    for limit, unit, size in ((0.9e-3, "µs", 1e-6), (0.9, "ms", 1e-3)):
        if seconds < limit:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


def share_axis(axis: Any, step: float = 0.25) -> None:
    """An axis of shares, in percent."""
    from matplotlib.ticker import FuncFormatter, MultipleLocator  # noqa: PLC0415

    axis.set_major_locator(MultipleLocator(step))
    axis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.6g}{THIN}%"))
