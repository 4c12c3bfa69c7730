"""The rule as printed is the rule as graded: typed by hand, or taken from the JSON."""

from __future__ import annotations

import re
import tracemalloc
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mipmech import Budget, Instance, Mechanism, best_threshold, certify, recount, solve
from mipmech.design.grade import grade
from mipmech.design.printed import plain, printed
from mipmech.errors import InputError
from mipmech.model.edge_of_reach import fragile, movers, steady, unsteady
from mipmech.model.typed_rules import written_rule
from mipmech.model.units import Units
from mipmech.terminal.design import tell_certificate, tell_solution
from mipmech.tolerances import STEADY_LOSS
from tests.conftest import ROOT
from tests.plain import plain_gain, typed_rule
from tests.samples import instances, mechanisms

FILES = sorted(
    path
    for folder in ("tiny", "paper", "real", "small")
    for path in (ROOT / "instances" / folder).glob("*.json")
)


def keeps_its_promise(found, told: str) -> None:
    """The JSON's rule has all of the gain claimed; the text's what is printed beside it."""
    instance = found.instance
    content = found.to_dict()
    claimed = content["gain"] if "gain_two" in content else content["gain"]["lower"]
    rule = content["mechanism"]
    assert plain_gain(instance, rule["weights"], rule["threshold"]) >= claimed * (1 - 1e-9)
    weights, threshold = typed_rule(told, instance.feature_names)
    beside = float(re.search(r"as printed\s+gain (\S+)", told)[1])
    assert plain_gain(instance, weights, threshold, instance.units) >= 0.998 * beside
    assert beside >= 0.998 * claimed


def told_by(capsys, tell, *given) -> str:
    capsys.readouterr()
    tell(*given)
    return capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_on_every_shipped_instance(path, capsys):
    instance = Instance.load(path)
    found = certify(instance, budget=Budget(0.5))
    if found.recount is not None:
        keeps_its_promise(found, told_by(capsys, tell_certificate, found, found.printed, []))
    skip = "cells" if instance.costs.norm == "l2" else "no"
    for thresholds in ("best", "two"):
        run = solve(instance, oracle="cells", thresholds=thresholds, skip=skip, budget=Budget(0.5))
        if run.gain > 0:
            keeps_its_promise(run, told_by(capsys, tell_solution, run, run.printed))


def random_instance(seed: int) -> Instance:
    """Views, projections and columns; unequal costs, weights, ties and offsets."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, 25)), int(rng.integers(1, 5))
    x = rng.standard_normal((m, n)) * 10.0 ** rng.uniform(-3, 3) + rng.choice([0.0, 0.0, 1e3])
    if rng.random() < 0.3:
        x = np.round(x, 1)
    spread = float(np.abs(x - x.mean(axis=0)).mean()) or 1.0
    k = int(rng.integers(1, n + 1))
    rows = rng.standard_normal((k, n))
    basis = np.linalg.qr(rows.T)[0]
    seen = [{"view": rows}, {"projection": basis @ basis.T}, {"visible": list(range(k))}][seed % 3]
    cost = rng.uniform(0.3, 3.0, m) / spread
    return Instance.from_arrays(
        x, rng.standard_normal(n), cost=cost if rng.random() < 0.5 else float(cost[0]),
        weights=rng.integers(1, 4, m) if rng.random() < 0.3 else None, **seen,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_on_random_instances_with_views_and_projections(block, capsys):
    """300 of them."""
    for seed in range(30 * block, 30 * block + 30):
        instance = random_instance(seed)
        found = certify(instance, gap=1e-2, budget=Budget(0.5))
        if found.recount is not None:
            keeps_its_promise(found, told_by(capsys, tell_certificate, found, found.printed, []))
        thresholds = ("best", "two")[seed % 2]
        run = solve(
            instance, oracle="cells", thresholds=thresholds, skip="cells", budget=Budget(0.5)
        )
        if run.gain > 0:
            keeps_its_promise(run, told_by(capsys, tell_solution, run, run.printed))


@st.composite
def edges(draw):
    """A rule at the best threshold of its direction: at the end of somebody's reach."""
    instance = draw(instances())
    return best_threshold(instance, draw(mechanisms(instance)))


@given(edges())
def test_a_step_off_the_edge_costs_next_to_nothing_and_survives_plain_arithmetic(found):
    stepped = steady(found)
    assert stepped.mechanism.weights == found.mechanism.weights
    assert stepped.mechanism.threshold <= found.mechanism.threshold
    assert stepped.moved >= found.moved * (1 - Fraction(STEADY_LOSS))
    size = float(np.abs(found.instance.agents).max())
    if stepped.gain > 0 and size < 1e6:
        mechanism = stepped.mechanism
        again = plain_gain(found.instance, mechanism.weights, mechanism.threshold)
        assert again >= float(stepped.gain) * (1 - 1e-9)


@given(edges(), st.sampled_from([None, 1, 2, 4]))
def test_a_printed_rule_is_graded_with_just_its_digits(found, digits):
    rule = printed(found, digits)
    weights, threshold = typed_rule(f"accept if {rule}", found.instance.feature_names)
    assert [w for w in weights if w] == [float(w) for w in _in_order(rule, found)]
    assert threshold == float(rule.threshold)
    typed = dict(zip(found.instance.feature_names, weights, strict=True))
    again = written_rule(found.instance, typed, threshold)
    assert recount(found.instance, again.mechanism).gain == rule.gain
    if found.instance.view.columns is not None:
        assert again.mechanism == Mechanism(tuple(weights), threshold)
    if digits is None and found.gain > 0:
        assert rule.share >= 0.998


@pytest.mark.slow
def test_no_printed_rule_is_above_what_was_proved():
    """On general views, where weights in few digits leave what the planner can compute."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, m = int(rng.integers(3, 6)), int(rng.integers(4, 30))
        instance = Instance.from_arrays(
            rng.standard_normal((m, n)), rng.standard_normal(n),
            view=rng.standard_normal((2, n)), cost=rng.uniform(0.5, 2.0, m),
        )  # fmt: skip
        best = certify(instance, gap=1e-6, budget=Budget(5))
        assert best.recount is not None
        for digits in (None, 1, 2, 3):
            rule = printed(best.recount, digits)
            assert rule.gain <= best.upper
            weights, threshold = typed_rule(f"accept if {rule}", instance.feature_names)
            typed = dict(zip(instance.feature_names, weights, strict=True))
            again = grade(instance, written_rule(instance, typed, threshold))
            assert again.recount.gain == rule.gain
            if digits is None:
                assert plain_gain(instance, weights, threshold) >= 0.998 * rule.gain
                assert rule.share >= 0.998


def _in_order(rule, found):
    return [rule.weights[name] for name in found.instance.feature_names if name in rule.weights]


def test_a_rule_is_printed_in_the_users_units():
    """SAT points and grades: typed on the data as people know them, it does the same."""
    rng = np.random.default_rng(3)
    raw = np.column_stack([rng.normal(520, 90, 60).round(), rng.normal(2.9, 0.6, 60).round(1)])
    centre, scale = raw.mean(axis=0), raw.std(axis=0)
    x = (raw - centre) / scale
    plain_units = Instance.from_arrays(
        x, [0.2, 0.5], cost=2.0, visible=["sat", "grade"], features=["sat", "grade"]
    )
    object.__setattr__(plain_units, "units", Units(tuple(centre), tuple(scale)))
    found = best_threshold(plain_units, Mechanism((0.3, 0.8), 0.0))
    rule = printed(steady(found))
    weights, threshold = typed_rule(f"accept if {rule}", ("sat", "grade"))
    assert rule.share >= 0.999
    accepted = raw @ weights >= threshold
    assert (accepted == (rule.recount.sides == -1)).all()
    moves = (threshold - raw @ weights) / np.linalg.norm(weights * scale)
    assert ((moves >= 0) & (moves <= 0.5)).sum() == len(rule.recount.covered)


def test_fewer_digits_make_a_shorter_rule_and_say_what_they_cost():
    instance = Instance.load(ROOT / "instances/real/medical.json")
    best = certify(instance, gap=1e-2).recount
    short, long = printed(best, 1), printed(best, 6)
    assert len(str(short)) < len(str(long))
    assert short.share < long.share
    assert long.share >= Fraction(99_999, 100_000)
    with pytest.raises(InputError, match="digits"):
        printed(best, 0)


def test_what_hangs_on_the_edge():
    """Two agents at the very end of their reach, one in the middle of it: 2 of 2.5."""
    instance = Instance.from_arrays([[0.0], [0.001], [0.5]], [1.0], visible=[0], cost=1.0)
    rule = recount(instance, Mechanism((1.0,), 1.0))
    assert fragile(rule).agents == 2
    assert fragile(rule).share == pytest.approx(1.999 / 2.499)
    assert fragile(recount(instance, Mechanism((1.0,), 0.9))).agents == 0


@pytest.mark.parametrize("standardise", [False, True])
def test_whoever_stands_on_the_threshold_does_not_move(standardise):
    """Round thresholds on round data, as people type them first."""
    rng = np.random.default_rng(5)
    essay, sat = rng.integers(1, 7, 300).astype(float), rng.integers(20, 80, 300) * 10.0
    columns = {"essay": essay, "sat": sat}
    sample = Instance.from_frame(
        pd.DataFrame(columns), quality={"essay": 1.0}, visible=["essay", "sat"], cost=2.0,
        standardise=standardise,
    )  # fmt: skip
    spread = {"essay": essay.std(), "sat": sat.std()} if standardise else {"essay": 1, "sat": 1}
    for name, values in columns.items():
        for threshold in np.unique(values):
            found = recount(sample, written_rule(sample, {name: 1}, float(threshold)).mechanism)
            distance = (threshold - values) / spread[name]
            moving = np.flatnonzero((distance > 0) & (distance <= 0.5))
            assert movers(found).tolist() == moving.tolist()
            assert float(found.share(movers(found))) == pytest.approx(len(moving) / 300)
            assert float(found.accepted_share) == (distance <= 0.5).mean()


def test_a_rule_on_a_knife_edge_is_known():
    instance = Instance.from_arrays([[0.0], [0.5]], [1.0], visible=[0], cost=1.0)
    found = best_threshold(instance, Mechanism((1.0,), 0.0))
    assert unsteady(found) == 1
    assert unsteady(steady(found)) == 0


@pytest.mark.parametrize("offset", [1e7, 1e8, 1e9, 1e10])
def test_rules_survive_plain_arithmetic_far_from_zero(offset):
    rng = np.random.default_rng(1)
    for _ in range(5):
        sample = Instance.from_arrays(
            offset + rng.standard_normal((25, 3)), rng.standard_normal(3), visible=[0, 1], cost=1.0
        )
        found = certify(sample, gap=1e-2)
        rule = found.mechanism
        plain = plain_gain(sample, rule.weights, rule.threshold)
        assert plain >= found.lower * (1 - 1e-15 * offset)


def test_a_rule_that_rounding_would_ruin_stays_where_it_is():
    """At 1e16 floats are 2 apart: a step off the edge would cost the whole reach."""
    instance = Instance.from_arrays([[1e16], [1e16 + 4]], [1.0], visible=[0], cost=0.25)
    found = best_threshold(instance, Mechanism((1.0,), 0.0))
    assert steady(found) is found


def test_decimals_are_typed_as_people_do():
    assert plain(Decimal("1300")) == "1300"
    assert plain(Decimal("0.00010"), "+") == "+0.0001"
    assert plain(Decimal("-3E+20")) == "-3e+20"
    assert plain(Decimal("0.000")) == "0"


@pytest.mark.parametrize("seen", [2, 1200])
def test_no_memory_for_features_by_features(seen):
    """A table of those took 11 GB for 9,000 features, of which the planner saw two."""
    count = 1200
    agents = np.zeros((2, count))
    agents[1] = 1.0
    instance = Instance.from_arrays(agents, np.ones(count), visible=range(seen), cost=1.0)
    weights = np.zeros(count)
    weights[:seen] = 1.0
    found = best_threshold(instance, Mechanism(tuple(weights), 0.0))
    tracemalloc.start()
    rule = printed(found)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(rule.weights) == seen
    assert rule.share > 0.99
    assert peak < 4 * count * count
