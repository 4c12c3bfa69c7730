"""Folds: a rule is graded on people that it was not designed for, exactly."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mipmech import Budget, InputError, Instance, Mechanism, certify, make_instance, recount
from mipmech.budget import Stop
from mipmech.cli import main
from mipmech.design.folds import held_out, split
from mipmech.model.units import Units
from mipmech.rationals import exact_sum
from mipmech.terminal.design import held_out_entry
from tests.conftest import ROOT
from tests.samples import instances, mechanisms


@dataclass
class Given:
    """A design that is known beforehand."""

    mechanism: Mechanism | None
    stop: Stop = Stop.FINISHED
    status: str = "done"


WEIGHTS = st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=2, max_size=40)


@given(WEIGHTS, st.integers(2, 6), st.integers(0, 99))
def test_folds_are_a_partition_into_even_parts_that_count(weights, folds, seed):
    weights = np.array(weights)
    assume((weights > 0).sum() >= folds)
    parts = split(weights, folds, seed)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(weights)))
    sizes = [int((weights[inside] > 0).sum()) for inside in parts]
    assert min(sizes) >= 1
    assert max(sizes) - min(sizes) <= 1
    again = split(weights, folds, seed)
    assert all(np.array_equal(a, b) for a, b in zip(parts, again, strict=True))


def test_another_seed_deals_otherwise():
    parts = {tuple(split(np.ones(20), 2, seed)[0].tolist()) for seed in range(5)}
    assert len(parts) == 5


@given(st.data())
def test_a_rule_that_never_changes_gains_on_all_folds_what_it_gains_in_all(data):
    """The mean over the folds, each with its weight, is then the gain on the sample itself."""
    sample = data.draw(instances(max_agents=9))
    counting = int((sample.weights > 0).sum())
    assume(counting >= 2)
    rule = data.draw(mechanisms(sample))
    folds = data.draw(st.integers(2, counting))
    found = held_out(sample, lambda *_: Given(rule), folds=folds, seed=data.draw(st.integers(0, 9)))
    assert found.gain == recount(sample, rule).gain
    assert sum(fold.weight for fold in found.folds) == 1
    assert found.least <= found.gain <= found.most
    assert found.complete


def test_nobody_is_graded_by_a_rule_that_was_designed_on_them():
    sample = replace(make_instance("costs", 23, 2, seed=4), ids=tuple(f"p{i}" for i in range(23)))
    sample = replace(sample, units=Units((1.0, 2.0, 3.0), (4.0, 5.0, 6.0)))
    seen = []

    def design(people, _):
        seen.append(people)
        return Given(None)

    found = held_out(sample, design, folds=4)
    for learned, fold in zip(seen, found.folds, strict=True):
        assert not {f"p{i}" for i in fold.agents} & set(learned.ids)
        assert len(learned.ids) + len(fold.agents) == learned.size + len(fold.agents) == 23
        row = int(learned.ids[0][1:])
        assert learned.agents[0].tolist() == sample.agents[row].tolist()
        assert learned.cost[0] == sample.cost[row]
        assert learned.units == sample.units
        assert learned.known is None
    assert found.gain == 0  # no rule, no gain


def test_certified_rules_by_hand():
    sample = make_instance("heavy-tails", 24, 2, seed=2)
    found = held_out(sample, lambda people, budget: certify(people, budget=budget), folds=3, seed=1)
    total = Fraction(0)
    for inside in split(sample.weights, 3, 1):
        rest = np.setdiff1d(np.arange(24), inside)
        rule = certify(sample.part(rest, "rest")).mechanism
        gain = recount(sample.part(inside, "fold"), rule).gain
        total += gain * exact_sum(sample.weights[inside])
    assert found.gain == total / exact_sum(sample.weights)
    assert found.designed > found.gain  # the best rule is best where it was chosen


def test_what_was_done_before_an_interrupt_is_kept():
    sample = make_instance("ties", 20, 2, seed=1)
    rule = certify(sample).mechanism
    answers = iter([Given(rule), Given(rule, status="gap"), Given(rule, Stop.INTERRUPTED)])
    found = held_out(sample, lambda *_: next(answers), folds=5)
    assert (len(found.folds), found.stop, found.complete) == (2, Stop.INTERRUPTED, False)
    words = held_out_entry(found, Fraction(1))["held out"]
    assert "2 of 5 folds (interrupted)" in words
    assert "1 fold with a gap left open" in words


def test_no_time_no_folds():
    sample = make_instance("ties", 20, 2, seed=1)
    found = held_out(sample, lambda *_: Given(None), budget=Budget(0))
    assert (found.folds, found.stop, found.gain, found.deviation) == ((), Stop.TIME, None, None)
    words = held_out_entry(found, Fraction(1))
    assert words == {"held out": "none of 5 folds was finished: time limit"}


def test_the_time_is_shared():
    limits = []

    def design(_, budget):
        limits.append(budget.seconds)
        return Given(None)

    held_out(make_instance("ties", 20, 2, seed=1), design, folds=4, budget=Budget(100))
    assert limits == sorted(limits)  # what a fold leaves goes to the next ones
    assert 20 < limits[0] <= 25
    assert limits[-1] <= 100


def test_spread_by_hand():
    sample = Instance.from_arrays(
        [[0.0], [0.0], [9.0]], [1.0], visible=[0], cost=1, weights=[1, 1, 2]
    )
    found = held_out(sample, lambda *_: Given(Mechanism((1.0,), 0.5)), folds=3)
    assert sorted(fold.gain for fold in found.folds) == [0, 0.5, 0.5]
    assert (found.least, found.most, found.gain) == (0, 0.5, 0.25)
    assert found.deviation == 0.25
    assert found.share(Fraction(1, 2)) == 0.5
    assert found.share(Fraction(0)) is None


@pytest.mark.parametrize(
    ("folds", "seed", "field"), [(1, 0, "folds"), (4, 0, "folds"), (2, -1, "fold_seed")]
)
def test_folds_that_cannot_be(folds, seed, field):
    with pytest.raises(InputError) as caught:
        split(np.array([1.0, 1.0, 1.0, 0.0]), folds, seed)
    assert caught.value.field == field


# ------------------------------------------------------------------ at the command line

EXAMPLE = str(ROOT / "instances" / "real" / "first-year.json")


@pytest.mark.parametrize(
    "command", [("certify",), ("solve", "--oracle", "projection", "--epsilon", "0.01")]
)
def test_folds_stand_beside_the_gain(capsys, tmp_path, command):
    path = tmp_path / "sample.json"
    make_instance("gaussian-mixture", 40, 2, seed=1).save(path)
    arguments = [command[0], str(path), *command[1:], "--folds", "3", "--fold-seed", "2"]
    assert main(arguments) == 0
    assert "on average over 3 folds" in " ".join(capsys.readouterr().out.split())
    assert main([*arguments, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    folds, gain = shown["folds"], shown["gain"]
    whole = gain["lower"] if isinstance(gain, dict) else gain
    assert folds["share"] == pytest.approx(folds["gain"] / whole)
    assert folds["min"] <= folds["gain"] <= folds["max"]
    assert (folds["asked"], folds["seed"], folds["complete"]) == (3, 2, True)
    assert sorted(i for fold in folds["each"] for i in fold["agents"]) == list(range(40))
    weighed = sum(fold["weight"] * fold["gain"] for fold in folds["each"])
    assert weighed == pytest.approx(folds["gain"])


def test_no_folds_unless_they_are_asked_for(capsys):
    assert main(["certify", EXAMPLE, "--gap", "0.1", "--json"]) == 0
    assert "folds" not in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--folds", "1"], "folds: is 1; give 2 or more"),
        (["--folds", "9999"], "there are only 219 agents; give fewer"),
        (["--fold-seed", "1"], "add --folds 5"),
        (["--folds", "2", "--fold-seed", "-1"], "fold_seed: is -1"),
    ],
)
def test_bad_folds_are_refused_before_the_work(capsys, monkeypatch, options, message):
    monkeypatch.setattr("mipmech.design.certificate.certify", None)  # not even called
    assert main(["certify", EXAMPLE, *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
