"""Who moves, and how far: against plain numpy, in the user's units."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from mipmech import Instance, Mechanism, best_threshold, certify, make_instance, recount
from mipmech.cli import main
from mipmech.design.caveats import beyond_data
from mipmech.design.movers import movers_of, save_movers
from tests.conftest import ROOT

REAL = ROOT / "instances" / "real" / "medical.json"


def read(file):
    with open(file, newline="") as stream:
        return list(csv.DictReader(stream))


def numbers(rows, column):
    return np.array([float(row[column]) for row in rows])


def flags(rows, column):
    assert {row[column] for row in rows} <= {"true", "false"}
    return np.array([row[column] == "true" for row in rows])


@pytest.mark.parametrize("family", ["gaussian-mixture", "costs", "ties"])
def test_against_plain_numpy(family, tmp_path):
    sample = make_instance(family, 60, 2, seed=3)
    rule = certify(sample, gap=0.01).recount
    save_movers(rule, tmp_path / "movers.csv")
    rows = read(tmp_path / "movers.csv")
    assert [row["agent"] for row in rows] == [str(i) for i in range(60)]
    weights = np.array(rule.mechanism.weights)
    unit = weights / np.linalg.norm(weights)
    away = rule.mechanism.threshold / np.linalg.norm(weights) - sample.agents @ unit
    tiny = 1e-9
    moves = flags(rows, "moves")
    assert (moves <= ((away > -tiny) & (away * sample.cost <= 1 + tiny))).all()
    assert (moves >= ((away > tiny) & (away * sample.cost <= 1 - tiny))).all()
    before, after = flags(rows, "accepted before"), flags(rows, "accepted after")
    assert ((away < -tiny) <= before).all()
    assert (before <= (away < tiny)).all()
    assert (after == (before | moves)).all()
    assert not (before & moves).any()
    assert (np.flatnonzero(moves & (away > tiny)) == rule.covered[away[rule.covered] > tiny]).all()
    for j, name in enumerate(sample.feature_names):
        step = np.where(moves, away * unit[j], 0.0)
        assert np.allclose(numbers(rows, f"{name} from"), sample.agents[:, j], atol=1e-9)
        assert np.allclose(numbers(rows, f"{name} to"), sample.agents[:, j] + step, atol=1e-9)


def test_in_the_users_units(tmp_path):
    """Values before are those of the table; whoever moves meets the rule that is printed."""
    sample = Instance.load(REAL)
    found = certify(sample, gap=0.05).printed
    save_movers(found.recount, tmp_path / "movers.csv")
    rows = read(tmp_path / "movers.csv")
    score = sum(float(w) * numbers(rows, f"{name} to") for name, w in found.weights.items())
    at = float(found.threshold)
    moves = flags(rows, "moves")
    assert moves.any()
    assert score[moves] == pytest.approx(at, rel=1e-7)
    assert (score[flags(rows, "accepted before")] >= at * (1 - 1e-9)).all()


def test_who_is_exactly_on_the_threshold_is_accepted_and_stays():
    sample = Instance.from_arrays([[1.0], [0.25], [-3.0]], [1.0], visible=[0], cost=1.0)
    found = recount(sample, Mechanism((3.0,), 3.0))
    assert found.covered.tolist() == [0, 1]
    heading, rows = movers_of(found)
    assert heading == ["agent", "accepted before", "accepted after", "moves", "x0 from", "x0 to"]
    assert rows == [
        [0, "true", "true", "false", "1", "1"],
        [1, "false", "true", "true", "0.25", "1"],
        [2, "false", "false", "false", "-3", "-3"],
    ]


def test_names_that_a_spreadsheet_would_run_are_guarded(tmp_path):
    sample = Instance.from_arrays(
        [[1.0], [0.5]], [1.0], visible=[0], cost=1.0, features=["=x"], ids=["=1+1", "b"]
    )
    save_movers(recount(sample, Mechanism((1.0,), 1.0)), tmp_path / "movers.csv")
    assert (tmp_path / "movers.csv").read_text().splitlines() == [
        "agent,accepted before,accepted after,moves,'=x from,'=x to",
        "'=1+1,true,true,false,1,1",
        "b,false,true,true,0.5,1",
    ]


def test_certify_writes_them(capsys, tmp_path):
    file = tmp_path / "movers.csv"
    assert (
        main(["certify", str(REAL), "--gap", "0.05", "--movers", str(file), "--seconds", "60"]) == 0
    )
    assert str(file) in capsys.readouterr().out.replace("\n", "")
    assert len(read(file)) == Instance.load(REAL).size


COSTS = {
    "l2 prices": {"effort": [0.5, 3.0, 1.0]},
    "matrix": {"effort": [[1.0, 0.5, -0.3], [0.5, 2.0, 0.0], [-0.3, 0.0, 1.0]]},
    "l1": {"norm": "l1", "effort": [0.5, 3.0, 1.0]},
    "linf": {"norm": "linf", "effort": [0.5, 3.0, 1.0]},
}


@pytest.mark.parametrize("name", COSTS)
def test_moves_cost_at_most_what_passing_is_worth_and_lead_to_the_threshold(name):
    """The table against the costs as the format of files defines them; hidden features too."""
    costs = COSTS[name]
    x = np.random.default_rng(2).normal(size=(40, 3))
    sample = Instance.from_arrays(x, [1.0, 0.5, 1.0], visible=[0, 1], cost=1.5, **costs)
    w, effort = np.array([1.0, -0.7, 0.0]), np.array(costs["effort"])
    found = best_threshold(sample, Mechanism(tuple(w), 0.0))
    heading, rows = movers_of(found)
    start, end = heading.index("x0 from"), heading.index("x0 to")
    moved, risen = 0, 0.0
    for row in rows:
        before, after = np.array(row[start::2], float), np.array(row[end::2], float)
        step = after - before
        if row[3] == "false":
            assert not step.any()
            continue
        moved += 1
        risen += float(step @ sample.quality) / sample.size
        length = {
            "l2 prices": lambda d: np.linalg.norm(effort * d),
            "matrix": lambda d: np.sqrt(d @ effort @ d),
            "l1": lambda d: np.abs(effort * d).sum(),
            "linf": lambda d: np.abs(effort * d).max(),
        }[name](step)
        assert 1.5 * length <= 1 + 1e-9
        assert after @ w == pytest.approx(found.mechanism.threshold, abs=1e-9)
        assert bool(step[2]) == (name == "matrix")
    assert moved > 3
    assert risen == pytest.approx(float(found.gain))
    known = beyond_data(found, found.covered)
    ends = np.array([row[end::2] for row in rows if row[3] == "true"], float)
    out = np.maximum(ends - x.max(axis=0), x.min(axis=0) - ends).max(axis=0)
    assert (known is None) == (out <= 1e-9).all()
