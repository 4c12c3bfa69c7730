"""Pictures of a rule say which one it is, in the user's units."""

from __future__ import annotations

import numpy as np
import pytest

from mipmech import Instance, Mechanism, certify, recount, solve
from mipmech.model.typed_rules import written_rule
from mipmech.plots.rule import picture, rule_in_words, save
from tests.conftest import ROOT
from tests.plain import typed_rule

REAL = ROOT / "instances" / "real"


def titles(figure):
    inner = [axes.get_title("left") for axes in figure.axes]
    return [" ".join(title.split()) for title in inner if "accept if" in title]


@pytest.mark.parametrize("name", ["medical", "satgpa-tests", "satgpa-view"])
def test_the_printed_rule_is_above_the_picture(name):
    sample = Instance.load(REAL / f"{name}.json")
    for found in (certify(sample, gap=0.1), solve(sample, oracle="projection")):
        (title,) = titles(found.plot())
        assert title.startswith(f"accept if {found.printed} ")


def test_a_rule_of_ones_own_is_shown_as_it_was_typed():
    sample = Instance.load(REAL / "medical.json")
    found = recount(sample, written_rule(sample, {"GPA": 2.0, "BS": -0.25}, 6.0).mechanism)
    assert rule_in_words(found) == "2 GPA -0.25 BS ≥ 6"
    (title,) = titles(picture(found))
    assert title.startswith("accept if 2 GPA -0.25 BS ≥ 6 ")


def test_a_rule_of_length_one_has_a_largest_weight_of_one():
    sample = Instance.load(REAL / "medical.json")
    rule = certify(sample, gap=0.1).recount
    text = rule_in_words(rule)
    weights, threshold = typed_rule(f"accept if {text}", sample.feature_names)
    assert np.abs(weights).max() == 1.0
    away = np.array(rule.mechanism.weights) / np.array(sample.units.scale)
    assert weights == pytest.approx(away / np.abs(away).max(), rel=1e-4)
    level = rule.mechanism.threshold + float(away @ sample.units.centre)
    assert threshold == pytest.approx(level / np.abs(away).max(), rel=1e-4)


def test_minus_signs_are_minus_signs():
    sample = Instance.from_arrays(
        [[0.0, 0.0], [1.0, 2.0], [0.5, 3.0]], [1.0, -1.0], visible=[0, 1], cost=1.0,
        features=["x", "late"],
    )  # fmt: skip
    three = Instance.from_arrays(
        np.eye(3), [-1.0, 0.0, -0.5], visible=[0, 1, 2], cost=1.0, features=["late", "b", "c"]
    )
    assert picture(recount(sample, Mechanism((0.6, -0.8), 0.0)))
    for weights, shown in (
        ((-1.0, 0.0, 0.0), "−1.00·late"),
        ((-0.8, 0.0, 0.6), "−0.80·late + 0.60·c"),
        ((0.8, 0.0, -0.6), "0.80·late − 0.60·c"),
    ):
        axes = picture(recount(three, Mechanism(weights, 0.0))).axes[-1]
        assert axes.get_xlabel() == f"score: {shown}"


def test_the_legend_stays_inside(tmp_path):
    """The longest there is: one in so many has an arrow, beside the smaller picture of a run."""
    figure = certify(Instance.load(REAL / "satgpa-view.json"), gap=0.1).plot()
    save(figure, tmp_path / "a.png")
    (legend,) = [part.legends[0] for part in figure.subfigs if part.legends]
    box, whole = legend.get_window_extent(), figure.bbox
    assert whole.x0 <= box.x0 < box.x1 <= whole.x1


@pytest.mark.parametrize(("agents", "words"), [(100, ""), (230, "half of them"), (350, "one in 3")])
def test_how_many_have_an_arrow(agents, words):
    x = np.linspace(0.0, 0.5, agents)[:, None]
    sample = Instance.from_arrays(x, [1.0], visible=[0], cost=1.0)
    figure = picture(recount(sample, Mechanism((1.0,), 0.6)))
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    (moving,) = [label for label in labels if label.startswith("move (")]
    expected = f"move ({agents}; arrows for {words}" if words else f"move ({agents})"
    assert moving.startswith(expected)
