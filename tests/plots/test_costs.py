"""Pictures for every cost: arrows go where people go, and the margin holds those who move."""

from __future__ import annotations

import numpy as np
import pytest

from mipmech import Instance, Mechanism, best_threshold, solve
from mipmech.model.grading import Side
from mipmech.plots.rule import picture

MATRIX = [[1.0, 0.5, -0.3], [0.5, 2.0, 0.0], [-0.3, 0.0, 1.0]]
COSTS = {
    "plain": {},
    "l2 prices": {"effort": [0.02, 3.0, 1.0]},
    "matrix": {"effort": MATRIX},
    "l1": {"norm": "l1"},
    "l1 prices": {"norm": "l1", "effort": [0.02, 3.0, 1.0]},
    "linf": {"norm": "linf"},
    "linf prices": {"norm": "linf", "effort": [0.02, 3.0, 1.0]},
}


def rule_for(costs, weights, seed=0, visible=(0, 1), **more):
    """The best threshold for weights that are given in units of cost."""
    effort = np.asarray(costs.get("effort", [1.0, 1.0, 1.0]))
    prices = effort if effort.ndim == 1 else np.ones(3)
    agents = np.random.default_rng(seed).normal(size=(60, 3)) / prices
    sample = Instance.from_arrays(
        agents, [1.0, 0.5, 1.0] * prices, visible=list(visible), cost=1.5, **costs, **more
    )
    w = np.array(weights) * prices
    return best_threshold(sample, Mechanism(tuple(w), 0.0)), prices


def margin_of(axes):
    """The patch of the margin; its corners are in the axes' coordinates."""
    (band,) = [patch for patch in axes.patches if patch.get_label() == "margin"]
    return band


@pytest.mark.parametrize("name", COSTS)
@pytest.mark.parametrize("weights", [(1.0, 0.4, 0.0), (-0.3, 1.0, 0.0), (0.0, 1.0, 0.0)])
def test_the_margin_holds_those_who_move_and_arrows_lead_to_its_edge(name, weights):
    found, _ = rule_for(COSTS[name], weights)
    axes = picture(found).axes[0]
    scale = found.instance.costs.prices(3)[:2]
    inside = found.sides == Side.INSIDE
    drawn = margin_of(axes).get_path().contains_points(found.instance.agents[:, :2] * scale)
    line = found.line
    level = float(found.mechanism.threshold * line.factor)
    w = np.zeros(3)
    w[list(line.columns)] = [float(v) for v in line.weights]
    below = level - found.instance.agents @ w
    reach = found.instance.reach * found.direction.norm
    sure = np.minimum(np.abs(below), np.abs(reach - below)) > 1e-6 * reach
    assert (drawn == inside)[sure].all()
    (arrows,) = [made for made in axes.collections if hasattr(made, "U")]
    starts = arrows.get_offsets() / scale
    ends = starts + np.column_stack([arrows.U, arrows.V]) / scale
    assert len(ends) == inside.sum() > 3
    assert ends @ w[:2] == pytest.approx(level, abs=1e-9 * (1 + abs(level)))
    step = np.array([float(line.step.get(j, 0)) for j in range(3)])
    moved = below[inside][:, None] * step[:2]
    assert ends - starts == pytest.approx(moved, abs=1e-9)


def test_the_arrows_of_each_norm():
    def directions(costs, weights=(1.0, 0.4, 0.0)):
        axes = picture(rule_for(costs, weights)[0]).axes[0]
        (arrows,) = [made for made in axes.collections if hasattr(made, "U")]
        return arrows.U, arrows.V

    u, v = directions(COSTS["plain"])
    assert v == pytest.approx(0.4 * u)
    u, v = directions(COSTS["l1"])
    assert (np.abs(u) > 0).all()
    assert not v.any()
    u, v = directions(COSTS["linf"])
    assert v == pytest.approx(u)
    u, v = directions(COSTS["linf prices"])  # in units of cost
    assert v == pytest.approx(u)


def test_a_hidden_feature_that_moves_along_is_named_and_raises_quality():
    found, _ = rule_for(COSTS["matrix"], (1.0, 0.4, 0.0), features=["a", "b", "secret"])
    assert any("secret, hidden, moves along" in t.get_text() for t in picture(found).axes[0].texts)
    alone, _ = rule_for(
        COSTS["matrix"], (1.0, 0.0, 0.0), visible=(0,), features=["a", "b", "secret"]
    )
    axes = picture(alone).axes[-1]
    (arrows,) = [made for made in axes.collections if hasattr(made, "U")]
    below = arrows.U * float(alone.direction.norm)
    assert pytest.approx(below * float(alone.line.rise), abs=1e-9) == arrows.V


@pytest.mark.parametrize("name", COSTS)
def test_the_line_of_scores_is_in_units_of_cost(name):
    """With one feature or three, the margin is as wide as people reach."""
    found, _ = rule_for(COSTS[name], (1.0, 0.4, -0.2), visible=(0, 1, 2))
    axes = picture(found).axes[-1]
    (band,) = [patch for patch in axes.patches if patch.get_label() == "margin"]
    assert band.get_width() == pytest.approx(1 / 1.5)
    assert ("units of cost" in axes.get_xlabel()) == (name != "plain")


def test_axes_with_prices_have_ticks_in_the_users_units():
    found, _ = rule_for(COSTS["l1 prices"], (1.0, 0.4, 0.0))
    axes = picture(found).axes[0]
    shown = {
        float(t.get_text().replace("−", "-")): t.get_position()[0] for t in axes.get_xticklabels()
    }
    assert len(shown) > 2
    for value, place in shown.items():
        assert place == pytest.approx(0.02 * value, abs=1e-6)


def test_a_run_on_facets_draws_no_line_between_them():
    found, _ = rule_for(COSTS["l1"], (1.0, 0.4, 0.0))
    figure = solve(found.instance).plot()
    calls = [axes for axes in figure.axes if "one for each facet" in axes.get_xlabel()]
    assert len(calls) == 1
    assert "rates of facets" in calls[0].get_yticklabels()[0].get_text()
    assert "paper" not in calls[0].get_yticklabels()[0].get_text()
