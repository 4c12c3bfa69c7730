"""Printed rules, prices, frontiers and conflicts of requirements, against the referee."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mipmech import Budget, InputError, Instance, certify, make_instance, recount
from mipmech.budget import Stop
from mipmech.design.frontier import frontier
from mipmech.design.price import prices
from mipmech.design.printed import FULL, printed
from mipmech.design.relaxing import feasible_without
from mipmech.model.geometry import geometry_of
from mipmech.model.groups import parse_groups
from mipmech.model.requirements import Own, Requirements, demands_of
from mipmech.model.requirements.directions import weights_of
from mipmech.model.requirements.feasible import best_feasible
from tests import requirements_referee as referee
from tests.requirements_brute_force import best_gain, feasible
from tests.samples import instances, mechanisms, required, tied_instances

SEXES = ["f", "m", "m", "f", "m"] * 12


def people(seed=3, rank=2, groups=SEXES) -> Instance:
    """60 people of two groups."""
    sample = make_instance("gaussian-mixture", agents=60, rank=rank, seed=seed)
    return replace(sample, groups=parse_groups({"sex": groups}, 60))


def own_rule(found) -> list[Fraction]:
    return weights_of(found.instance, found.mechanism)


# ------------------------------------------------------------------ printed rules


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_rule_as_printed_meets_the_requirements(data):
    """As the referee sees it, which shares no code: weights, shares and groups."""
    kinds = st.one_of(tied_instances(), instances(max_agents=7))
    sample = data.draw(kinds)
    wanted, labels = data.draw(required(sample))
    if labels is not None:
        groups = parse_groups({"kind": [str(label) for label in labels]}, sample.size)
        sample = replace(sample, groups=groups)
    try:
        demands = geometry_of(sample, wanted).demands
    except InputError:  # they contradict each other
        return
    rule = data.draw(mechanisms(sample))
    found = recount(sample, rule) if demands is None else best_feasible(demands, rule)
    if found is None:
        return
    shown = printed(found, data.draw(st.sampled_from([None, 1, 2])), demands=demands)
    assert shown.met
    threshold = shown.recount.mechanism.threshold
    assert referee.meets(sample, wanted, labels, own_rule(shown.recount), threshold)
    assert shown.recount.gain <= found.gain or shown.digits != FULL


def test_equal_weights_stay_equal_when_they_are_rounded():
    sample = people()
    both = {"order": [["x0", "x1"], ["x1", "x0"]]}
    found = certify(sample, require=both)
    first, second = found.printed.weights["x0"], found.printed.weights["x1"]
    assert first == second
    assert found.printed.digits < FULL


def test_weights_that_are_equal_in_standard_deviations_take_many_digits():
    """In the units of the table they are not, and only a float's digits make them so again."""
    table = np.random.default_rng(0).standard_normal((30, 2)) * [1 / 3, 700 / 11]
    pandas = pytest.importorskip("pandas")
    sample = Instance.from_frame(
        pandas.DataFrame({"a": table[:, 0], "b": table[:, 1]}),
        quality={"a": 1.0, "b": 0.01}, visible=["a", "b"], cost=2.0, standardise=True,
    )  # fmt: skip
    found = certify(sample, require={"order": [["a", "b"], ["b", "a"]]})
    assert found.printed.digits >= 12
    assert found.demands.met(found.printed.recount)


def test_a_rule_that_no_digits_can_say_is_printed_in_full():
    sample = people()
    found = certify(sample)
    only = Own(rows=print, holds=lambda rule: rule.mechanism == found.mechanism)
    shown = printed(found.recount, demands=demands_of(sample, Requirements(own=only)))
    assert shown.digits == FULL
    assert shown.recount is found.recount
    assert [float(w) for w in shown.weights.values()] == list(found.mechanism.weights[:2])
    assert float(shown.threshold) == found.mechanism.threshold


def test_a_limit_that_is_met_exactly_is_still_met_by_the_rule_as_printed():
    sample = people()
    for high in (0.05, 0.1, 0.35):
        found = certify(sample, require={"accepted": [high, high]})
        assert found.recount.accepted_share == Fraction(str(high))
        assert found.printed.recount.accepted_share == Fraction(str(high))
        assert found.printed.digits < FULL


def test_a_rule_that_does_harm_is_printed_with_as_little_harm_as_digits_allow():
    sample = people()
    against = {"accepted": [0.3, 0.4]}
    for sign, field in ((1, "nonpositive"), (-1, "nonnegative")):
        against[field] = [j for j in sample.view.columns if sign * sample.quality[j] > 0]
    found = certify(sample, require={key: value for key, value in against.items() if value})
    assert found.lower < 0
    shown = found.printed
    assert found.demands.met(shown.recount)
    assert 0 < shown.share <= 1 or shown.gain > found.lower
    assert float(shown.gain) == pytest.approx(float(found.lower), rel=0.05)


# ------------------------------------------------------------------ conflicts


def test_which_requirement_to_drop():
    sample = people()
    one_in_sixty = {"nonnegative": "all", "accepted": [0.101, 0.102]}
    assert certify(sample, require=one_in_sixty).infeasible
    assert feasible_without(sample, one_in_sixty) == ["accepted"]
    assert feasible_without(sample, {"accepted": [0.101, 0.102]}) == ["accepted"]
    # f are 24, m are 36: with 5 accepted, shares differ by 1/36 at least.
    uneven = {"accepted": [0.08, 0.09], "parity": {"groups": "sex", "within": 0.01}}
    assert set(feasible_without(sample, uneven)) == {"accepted", "parity"}


def test_two_conflicts_are_not_solved_by_dropping_one():
    sample = people(groups=["a"] + ["b"] * 59)
    twice = {
        "accepted": [0.101, 0.102],
        "parity": {"groups": "sex", "within": 0.0},
        "order": [["x0", "x1"]],
    }
    assert feasible_without(sample, twice, Budget(seconds=4)) in ([], ["accepted"])
    assert "parity" not in feasible_without(sample, twice, Budget(seconds=4))


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_what_is_feasible_without_one_is_so_by_brute_force(data):
    sample = data.draw(tied_instances(max_agents=5, widths=(1, 2)))
    wanted, labels = data.draw(required(sample, most=3))
    if labels is not None:
        groups = parse_groups({"kind": [str(label) for label in labels]}, sample.size)
        sample = replace(sample, groups=groups)
    try:
        if not demands_of(sample, Requirements.of(wanted)):
            return
    except InputError:
        return
    for field in feasible_without(sample, wanted, Budget(seconds=3)):
        rest = {key: value for key, value in wanted.items() if key != field}
        if rest:
            assert feasible(sample, rest, labels) is not False


# ------------------------------------------------------------------ prices


def test_prices_are_differences_of_certified_gains():
    sample = people()
    wanted = {
        "nonnegative": ["x1"],
        "accepted": [0.1, 0.3],
        "parity": {"groups": "sex", "within": 0.05},
    }
    found = prices(sample, wanted, gap=1e-3)
    assert found.complete
    assert [row.dropped for row in found.rows] == [
        (), ("nonnegative",), ("accepted",), ("parity",), ("nonnegative", "accepted", "parity"),
    ]  # fmt: skip
    assert found.required is found.rows[0].bounds
    assert found.free is found.rows[-1].bounds
    mine = certify(sample, require=wanted)
    free = certify(sample)
    assert found.required.lower == mine.lower
    low, high = found.price(found.rows[-1])
    assert 0 <= low <= float(free.upper) - float(mine.lower)
    assert high >= float(free.lower) - mine.upper
    for row in found.rows[1:]:
        rest = Requirements.of(wanted).without(*row.dropped)
        demands = demands_of(sample, rest)
        assert demands is None or demands.met(row.bounds.recount)
        assert row.bounds.lower >= found.required.lower
        assert found.required.upper <= row.bounds.upper
    assert set(found.required.rates["sex"]) == {"f", "m"}


def test_prices_as_data():
    sample = people()
    found = prices(sample, {"accepted": [0.0, 0.2]})
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [row["dropped"] for row in content["rows"]] == [[], ["accepted"]]
    assert content["rows"][0]["price"] == {"lower": 0.0, "upper": 0.0}
    assert content["rows"][1]["price"]["lower"] <= content["rows"][1]["price"]["upper"]
    assert set(content["rows"][0]["groups"]["sex"]) == {"f", "m"}
    assert repr(found).splitlines()[0] == "Prices(2 of 2 rows; completed)"
    assert "none required" in repr(found)
    pytest.importorskip("pandas")
    assert found.to_frame().shape == (2, 7)


def test_what_cannot_be_met_has_no_price():
    found = prices(people(), {"accepted": [0.101, 0.102], "nonnegative": "all"})
    assert found.required.infeasible
    assert [found.price(row) for row in found.rows] == [None] * 4
    assert [row.bounds.status for row in found.rows] == [
        "infeasible", "infeasible", "optimal", "optimal",
    ]  # fmt: skip


def test_nothing_demanded_has_no_price():
    with pytest.raises(InputError, match="demands nothing"):
        prices(people(), {})


def test_without_time_only_what_is_known_is_told():
    sample = people()
    wanted = {"accepted": [0.0, 0.2]}
    known = certify(sample, require=wanted)
    found = prices(sample, wanted, budget=Budget(seconds=0), known=known)
    assert (len(found.rows), found.asked, found.stop) == (1, 2, Stop.TIME)
    assert not found.complete
    assert found.free is None


# ------------------------------------------------------------------ frontiers


def test_rows_are_what_certify_says_of_each_limit():
    sample = people()
    limits = [0.05, 0.15, 0.3, 0.6, 1.0]
    found = frontier(sample, accepted=limits)
    assert found.complete
    assert [row.limit for row in found.rows] == limits
    for row in found.rows:
        alone = certify(sample, require={"accepted": [0, row.limit]})
        assert row.bounds.lower <= Fraction(alone.upper)
        assert alone.lower <= Fraction(row.bounds.upper)
        assert row.bounds.recount.accepted_share <= Fraction(str(row.limit))
        assert row.bounds.recount.gain == row.bounds.lower
    for one, other in zip(found.rows, found.rows[1:], strict=False):
        assert one.bounds.lower <= other.bounds.lower
        assert one.bounds.upper <= other.bounds.upper


def test_a_frontier_of_parity_keeps_the_other_requirements():
    sample = people()
    wanted = {
        "accepted": [0.2, 0.4],
        "nonnegative": ["x0"],
        "parity": {"groups": "sex", "within": 1},
    }
    found = frontier(sample, parity=("sex", [0.0, 0.02, 0.1, 0.5]), require=wanted)
    assert (found.over, found.groups) == ("parity", "sex")
    for row in found.rows:
        if row.bounds.recount is None:
            continue
        rates = row.bounds.recount.accepted_by("sex")
        assert max(rates.values()) - min(rates.values()) <= Fraction(str(row.limit))
        assert Fraction("0.2") <= row.bounds.accepted <= Fraction("0.4")
        assert row.bounds.recount.mechanism.weights[0] >= 0
    same = frontier(
        sample, parity={"groups": "sex", "within": [0.0, 0.02, 0.1, 0.5]}, require=wanted
    )
    assert [r.bounds.upper for r in same.rows] == [r.bounds.upper for r in found.rows]


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_frontiers_agree_with_brute_force(data):
    sample = data.draw(tied_instances(max_agents=5, widths=(1, 2)))
    limits = sorted(set(data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=3))))
    found = frontier(sample, accepted=[i / 5 for i in limits], gap=1e-3, budget=Budget(nodes=3000))
    for row in found.rows:
        true = best_gain(sample, {"accepted": [0.0, row.limit]})
        if true is None:
            assert row.bounds.recount is None
            continue
        assert row.bounds.upper is not None
        assert row.bounds.upper >= true.surely - 1e-12
        if row.bounds.lower is not None:
            assert float(row.bounds.lower) <= true.at_most + 1e-12


def test_limits_that_cannot_be_met_are_rows_without_a_rule():
    sample = people()
    found = frontier(
        sample, parity=("sex", [0.0, 1.0]), require={"accepted": [1 / 60, 1 / 60]},
        budget=Budget(nodes=2000),
    )  # fmt: skip
    assert found.rows[0].bounds.recount is None
    # What even looser limits do not allow is not asked again.
    nobody = frontier(sample, parity=("sex", [0.0, 0.5, 1.0]), require={"accepted": [0.101, 0.102]})
    assert [row.bounds.status for row in nobody.rows] == ["infeasible"] * 3
    assert nobody.complete


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "needs one range"),
        ({"accepted": [0.1], "parity": ("sex", [0.1])}, "needs one range"),
        ({"accepted": []}, "is empty"),
        ({"accepted": [0.1, 2.0]}, "expected a share from 0 to 1"),
        ({"accepted": [0.1], "require": {"accepted": [0.2, 0.3]}}, "below the least share 0.2"),
        ({"parity": ("race", [0.1])}, "names the groups 'race'"),
        ({"parity": 3}, "is not a range"),
        ({"accepted": [i / 2000 for i in range(1001)]}, "give at most 1,000"),
    ],
)
def test_wrong_ranges_are_refused_before_any_work(given, said):
    with pytest.raises(InputError, match=said):
        frontier(people(), **given)


def test_ctrl_c_keeps_the_rows_that_are_done():
    told = []

    def watch(event):
        if event.note.startswith("row 3") and not told:
            told.append(signal.raise_signal(signal.SIGINT))

    limits = [0.05, 0.1, 0.15, 0.2]
    found = frontier(people(), accepted=limits, gap=1e-6, budget=Budget(watch=watch))
    assert told
    assert found.stop is Stop.INTERRUPTED
    assert 0 < len(found.rows) < 4
    assert [row.limit for row in found.rows] == limits[-len(found.rows) :]
    assert not found.complete


def test_a_frontier_as_data(tmp_path):
    found = frontier(people(), accepted=[0.1, 0.5])
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [row["limit"] for row in content["rows"]] == [0.1, 0.5]
    assert content["complete"]
    found.save(tmp_path / "rows.csv")
    heading, *rows = (tmp_path / "rows.csv").read_text().splitlines()
    assert heading == "limit,status,lower,upper,level,accepted,sex=f,sex=m,rule"
    assert len(rows) == 2
    assert "0.1: gain in [" in repr(found)
    pytest.importorskip("pandas")
    assert found.to_frame().shape == (2, 9)
