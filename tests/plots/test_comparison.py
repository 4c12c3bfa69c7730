"""The picture of a comparison."""

from __future__ import annotations

from dataclasses import replace

from matplotlib.colors import to_hex

from mipmech.plots.looks import COLOURS
from tests.report.comparisons import made_up

BASE = made_up()


def test_a_line_for_every_oracle():
    figure = BASE.plot()
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == BASE.oracles
    assert [to_hex(line.get_color()) for line in axes.lines] == list(COLOURS[:3])
    assert (axes.get_xscale(), axes.get_xlabel()) == ("log", "time of a call")
    for line, name in zip(axes.lines, BASE.oracles, strict=True):
        found = BASE.summary(name).density
        assert line.get_ydata()[-1] == found.median  # of all calls, when all are over
    figure.canvas.draw()


def test_nothing_known_is_said():
    unknown = [
        replace(p, densities=tuple(replace(b, lower=0.0) for b in p.densities))
        for p in BASE.problems
    ]
    (axes,) = replace(BASE, problems=tuple(unknown)).plot().axes
    assert not axes.lines
    assert "No quality is known" in axes.texts[0].get_text()
