"""Pictures of prices and frontiers: every row is there, also where no rule is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mipmech import Budget, certify, make_instance
from mipmech.design.frontier import frontier
from mipmech.design.price import prices
from mipmech.model.groups import parse_groups

WORDS = {
    (0.1, 0.3): [],
    (0.101, 0.102): ["no rule meets them", "no rule"],
}


def people():
    sample = make_instance("gaussian-mixture", agents=60, rank=2, seed=3)
    return replace(sample, groups=parse_groups({"sex": ["f", "m", "m", "f", "m"] * 12}, 60))


def texts(figure):
    found = [text.get_text() for axes in figure.axes for text in axes.texts]
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    return [*found, *titles]


@pytest.mark.parametrize("limits", WORDS)
def test_prices_show_both_rules_and_a_bar_for_each_row(limits):
    figure = prices(people(), {"accepted": list(limits), "nonnegative": ["x0"]}).plot()
    figure.canvas.draw()
    bars = next(axes for axes in figure.axes if axes.get_xlabel().startswith("gain of the best"))
    assert [label.get_text() for label in bars.get_yticklabels()] == [
        "all required", "without nonnegative", "without accepted", "none required",
    ]  # fmt: skip
    said = texts(figure)
    for words in WORDS[limits]:
        assert words in said
    rules = [text for text in said if text.startswith("accept if")]
    assert len(rules) == (2 if limits == (0.1, 0.3) else 1)


def test_prices_of_a_rule_that_does_harm():
    sample = people()
    signs = {
        "nonpositive": [j for j in sample.view.columns if sample.quality[j] > 0],
        "nonnegative": [j for j in sample.view.columns if sample.quality[j] < 0],
    }
    wanted = {key: value for key, value in signs.items() if value} | {"accepted": [0.3, 0.4]}
    figure = prices(sample, wanted).plot()
    figure.canvas.draw()
    assert any(text.startswith("between -") for text in texts(figure))
    assert any("mean quality falls by" in text for text in texts(figure))


def test_a_frontier_has_both_bounds_at_every_limit():
    limits = [0.1, 0.2, 0.5, 0.9]
    found = frontier(people(), accepted=limits)
    figure = found.plot()
    figure.canvas.draw()
    above, below = figure.axes
    upper, lower = above.lines
    assert list(upper.get_xdata()) == list(lower.get_xdata()) == limits
    assert list(upper.get_ydata()) == [row.bounds.upper for row in found.rows]
    assert list(lower.get_ydata()) == [float(row.bounds.lower) for row in found.rows]
    assert below.get_xlabel() == "greatest share accepted that is allowed"
    shown = [text.get_text() for text in below.get_legend().get_texts()]
    assert shown == ["everybody", "sex f", "sex m", "the limit"]
    # Nothing of the rules is outside.
    assert below.get_ylim()[1] > max(max(line.get_ydata()) for line in below.lines[:-1])


def test_the_area_between_two_limits_holds_the_greatest_gain_there():
    limits = [0.1, 0.3, 0.6]
    found = frontier(people(), accepted=limits)
    (area,) = found.plot().axes[0].collections
    corners = area.get_paths()[0].vertices
    for between in (0.17, 0.25, 0.42):
        inside = certify(people(), require={"accepted": [0, between]})
        row = max(place for place, limit in enumerate(limits) if limit <= between)
        low, high = found.rows[row].bounds.lower, found.rows[row + 1].bounds.upper
        assert {float(low), high} <= set(corners[:, 1].tolist())
        assert low <= inside.upper
        assert inside.lower <= high


def test_frontiers_without_any_rule_are_drawn():
    sample = people()
    nobody = frontier(sample, parity=("sex", [0.0, 1.0]), require={"accepted": [0.101, 0.102]})
    nobody.plot().canvas.draw()
    nothing = frontier(sample, accepted=[0.1], budget=Budget(seconds=0))
    assert nothing.rows == ()
    nothing.plot().canvas.draw()


@pytest.mark.parametrize(
    ("limits", "said"),
    [((0.101, 0.102), "no rule meets the requirements"), ((0.1, 0.3), "gain between ")],
)
def test_certificates_with_requirements_are_drawn(limits, said):
    figure = certify(people(), require={"accepted": list(limits)}).plot()
    figure.canvas.draw()
    assert figure.axes[0].get_title(loc="left").startswith(said)
