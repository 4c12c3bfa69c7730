"""From a matplotlib figure to SVG that can stand inside a page, in light and in dark.

Text stays text. What is drawn in ink takes the colour of the page's text, and the colours of Okabe
and Ito become variables of the page's style, which has a shade of each for either background.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from mipmech.plots import looks
from mipmech.plots.rule import ACCEPT, MARGIN, PAPER, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Colour of a picture -> that of the page.
OWN = ("GRID", "BLUE", "VERMILLION", "GREEN", "PURPLE", "ORANGE", "SKY", "YELLOW", "GREY")
PAGE = {
    **{getattr(looks, name): f"var(--{name.lower()})" for name in OWN},
    looks.INK: "currentColor",
    "#000000": "currentColor",
    MARGIN.lower(): "var(--margin)",
    ACCEPT.lower(): "var(--accept)",
    PAPER.lower(): "var(--card)",
}
# What is drawn in ink.
INKED = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
# Pixels per inch of what is drawn as an image.
SHARP = 220

XLINK = "{http://www.w3.org/1999/xlink}href"


def drawn(size: tuple[float, float], draw: Callable[[Figure], None], key: str, alt: str) -> str:
    """The SVG of a figure.

    size : width and height in inches; the page scales it
    key : sets the figure's identifiers apart from those of all other figures of the page
    alt : what there is to see, for those who cannot
    """
    import matplotlib as mpl  # noqa: PLC0415  (slow to import)
    from matplotlib.figure import Figure  # noqa: PLC0415

    style: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": key,
        **dict.fromkeys(INKED, looks.INK),
        "axes.linewidth": 0.7,
        "grid.color": looks.GRID,
        "grid.linewidth": 0.7,
        **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none"),
        "axes.unicode_minus": True,
    }
    stream = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with styled(), mpl.rc_context(style), warnings.catch_warnings():
        # Glyphs that matplotlib's font lacks are the browser's to find.
        warnings.simplefilter("ignore", UserWarning)
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        figure.savefig(stream, format="svg", metadata=nothing, dpi=SHARP)
    return tidy(stream.getvalue(), key, alt)


def tidy(text: str, key: str, alt: str) -> str:
    """The same picture, fit to stand in a page: no styles, no identifiers but its own."""
    # It was written a moment ago, by matplotlib, which escapes what it is given.
    root = ElementTree.fromstring(text)
    used = dict.fromkeys(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    short = {name: f"{key}-{number}" for number, name in enumerate(used)}
    for parent in list(root.iter()):
        for child in list(parent):
            if _local(child.tag) in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter():
        element.tag = _local(element.tag)
        element.text = (element.text or "") if element.tag == "text" else None
        element.tail = None
        element.attrib = _attributes(element.attrib, short)
    for element in root.iter("g"):
        _share_style(element)
    said = {"role": "img", "aria-label": alt} if alt else {"aria-hidden": "true"}
    root.attrib = {"viewBox": root.attrib["viewBox"], **said}
    return ElementTree.tostring(root, encoding="unicode")


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _share_style(group: ElementTree.Element) -> None:
    """One style for a thousand marks that all have the same."""
    styles = {child.attrib.get("style") for child in group}
    marks = len(group) > 1 and all(child.tag == "use" for child in group)
    if marks and len(styles) == 1 and None not in styles:
        group.attrib["style"] = styles.pop() or ""
        for child in group:
            del child.attrib["style"]


def _attributes(given: dict[str, str], short: dict[str, str]) -> dict[str, str]:
    """What is kept of an element's attributes.

    short : its identifiers that are referred to -> what they are called in the page
    """
    kept = {}
    for name, value in given.items():
        if name == "id":
            if value in short:
                kept["id"] = short[value]
        elif name == XLINK:
            kept["href"] = f"#{short[value[1:]]}" if value.startswith("#") else value
        elif name == "clip-path":
            kept[name] = f"url(#{short[value[5:-1]]})"
        elif name == "style":
            kept[name] = _style(value)
        elif name in ("d", "x", "y"):
            kept[name] = re.sub(r"-?\d+\.\d{3,}", _rounded, value).replace("\n", "")
        elif not (name == "transform" and value.startswith("rotate(-0 ")):
            kept[name] = value
    return kept


def _rounded(match: re.Match[str]) -> str:
    return f"{float(match[0]):.2f}".rstrip("0").rstrip(".")


def _style(value: str) -> str:
    parts = []
    for part in value.split("; "):
        name, _, what = part.partition(": ")
        if name == "font":  # older matplotlib: style, size and families in one
            size = re.search(r"[\d.]+px", what)
            parts += ["font-style:italic"] if "italic" in what else []
            parts += [f"font-size:{size[0]}"] if size else []
        elif name in ("fill", "stroke"):
            parts.append(f"{name}:{PAGE.get(what, what)}")
        elif name != "font-family":  # the page's
            parts.append(f"{name}:{what}")
    return ";".join(parts)
