"""What passing buys, which hidden features move along, and warnings that count prices."""

from __future__ import annotations

import numpy as np
import pytest

from mipmech import Instance, best_threshold, describe
from mipmech.design.caveats import caveats
from mipmech.design.worth import bought, costs_to_dict, moved_along
from mipmech.model import Mechanism, Units
from tests.conftest import ROOT
from tests.design.test_caveats import admissions

TINY = ROOT / "instances" / "tiny"


@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
def test_an_agent_that_goes_so_far_alone_has_reached_its_end(norm):
    """A rule on one feature moves people in it, for these norms, up to what passing buys."""
    sample = Instance.from_arrays(
        np.zeros((1, 3)), [1.0, 1.0, 1.0], visible=[0, 2], reach=6.0, norm=norm,
        effort=[2.0, 5.0, 0.5], features=["a", "b", "c"],
    )  # fmt: skip
    assert bought(sample) == {"a": 3.0, "c": 12.0}
    for j, name in ((0, "a"), (2, "c")):
        weights = tuple(float(i == j) for i in range(3))
        best = best_threshold(sample, Mechanism(weights, 0.0))
        assert best.mechanism.threshold == pytest.approx(bought(sample)[name])


def test_it_is_the_median_of_those_who_count_in_the_users_units():
    sample = Instance.from_arrays(
        np.zeros((4, 1)), [1.0], visible=[0], reach=[1.0, 2.0, 9.0, 99.0], weights=[1, 1, 1, 0],
        features=["sat"], units=Units((500.0,), (100.0,)),
    )  # fmt: skip
    assert bought(sample) == {"sat": 200.0}


def test_what_moves_along_does_move():
    spilling = Instance.load(TINY / "spill-over.json")
    assert moved_along(spilling) == [1]
    found = best_threshold(spilling, Mechanism((1.0, 0.0), 0.0))
    assert set(found.line.step) == {0, 1}
    diagonal = Instance.from_arrays(
        [[0.0, 3.0]], [0.0, 1.0], visible=[0], cost=2.0, effort=[[2.0, 0.0], [0.0, 1.0]]
    )
    assert moved_along(diagonal) == []
    assert moved_along(Instance.load(TINY / "l1-prices.json")) == []


def test_show_as_json_has_the_costs():
    given = describe(TINY / "spill-over.json").to_dict()
    assert given["costs"] == {
        "norm": "l2", "effort": [[2.0, -1.0], [-1.0, 1.0]], "given": "cost",
        "buys": {"x0": pytest.approx(0.5 / 2**0.5)}, "moves_along": ["x1"],
    }  # fmt: skip
    assert given["quality"]["seen_norm"] == pytest.approx(1.0)
    assert given["quality"]["norm"] == pytest.approx(2**0.5)  # if everything were seen
    plain = costs_to_dict(Instance.load(TINY / "square.json"))
    assert (plain["norm"], plain["effort"], plain["moves_along"]) == ("l2", None, [])
    assert costs_to_dict(Instance.load(TINY / "reach.json"))["given"] == "reach"


@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
def test_prices_by_spread_need_no_warning(norm):
    plain = admissions(norm=norm)
    (said,) = caveats(plain)
    assert "--effort standard" in said
    priced = admissions(norm=norm, effort=1 / plain.agents.std(axis=0), cost=2.0)
    assert caveats(priced) == []
    both = np.diag(priced.costs.prices(2) ** 2) if norm == "l2" else priced.costs.prices(2)
    assert caveats(admissions(norm=norm, effort=both, cost=2.0)) == []


def test_wrong_prices_are_warned_of_in_units_of_cost():
    spread = admissions().agents.std(axis=0)
    (said,) = caveats(admissions(effort=[1 / spread[0], 100 / spread[1]]))
    assert said.startswith("gpa varies 100 times as much as sat for what its moves cost")
    assert "a move of 1 costs the same" not in said
