"""Warnings: units that do not compare and moves out of this world are named, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mipmech import Instance, Mechanism, certify, recount
from mipmech.cli import main
from mipmech.design.caveats import beyond_data, caveats
from mipmech.model import Units
from mipmech.terminal.rule import outside
from tests.conftest import ROOT
from tests.samples import instances, mechanisms


def admissions(**changes):
    """SAT from 200 to 800 beside grades from 0 to 4, at a cost of 0.01."""
    rng = np.random.default_rng(3)
    skill = rng.random((200, 1))
    agents = np.hstack([200 + 600 * skill, 4 * np.clip(skill + rng.normal(0, 0.2, (200, 1)), 0, 1)])
    given = {"cost": 0.01, "visible": [0, 1], "features": ["sat", "gpa"], **changes}
    return Instance.from_arrays(np.round(agents, 2), [0.001, 0.5], **given)


def test_the_example_of_scores_beside_grades():
    sample = admissions()
    spread, move = caveats(sample, certify(sample, gap=0.01).recount)
    assert spread.startswith("sat (standard deviation 1")
    assert "times as much as gpa (1." in spread
    assert "standardise" in spread
    assert "people who respond move to gpa = 1" in move  # a hundred or so
    assert "far outside the data (0 to 4)" in move
    assert "raise the cost" in move
    assert caveats(sample) == [spread]


def test_one_visible_feature_compares_with_nothing():
    assert caveats(admissions(visible=["gpa"])) == []


def test_people_who_do_not_count_do_not_warn():
    agents = [[0.0, 0.0], [1.0, 1.0], [9000.0, 1.0]]
    given = {"visible": [0, 1], "cost": 1.0}
    assert caveats(Instance.from_arrays(agents, [1, 1], weights=[1, 1, 0], **given)) == []
    assert len(caveats(Instance.from_arrays(agents, [1, 1], **given))) == 1


def test_far_is_more_than_half_the_width_of_the_data():
    """The mover goes from 0 to the threshold, on data from 0 to 2, both ways."""
    sample = Instance.from_arrays([[0.0], [2.0]], [1.0], visible=[0], cost=0.1, features=["x"])
    for sign in (1, -1):
        start = Instance.from_arrays(
            sign * sample.agents, [1.0], visible=[0], cost=0.1, features=["x"]
        )
        assert caveats(start, recount(start, Mechanism((sign,), 3.0))) == []
        (said,) = caveats(start, recount(start, Mechanism((sign,), 3.1)))
        assert f"x = {3.1 * sign:g}, far outside" in said


def test_numbers_are_in_the_units_of_the_user():
    units = Units((500.0,), (100.0,))
    sample = Instance.from_arrays([[-1.0], [1.0]], [1.0], visible=[0], cost=0.1, units=units)
    (said,) = caveats(sample, recount(sample, Mechanism((1.0,), 4.0)))
    assert "x0 = 900, far outside the data (400 to 600)" in said
    assert "standardise" not in said


def test_who_ends_outside_the_data_is_told():
    """Two of three who move end below the least, in the user's units."""
    units = Units((500.0,), (100.0,))
    sample = Instance.from_arrays(
        [[0.0], [0.1], [1.0]], [-1.0], visible=[0], cost=1.0, units=units, features=["late"]
    )
    rule = recount(sample, Mechanism((-1.0,), 0.5))
    beyond = beyond_data(rule, rule.covered)
    assert (beyond.agents, beyond.low, beyond.high, beyond.others) == (2, 500.0, 600.0, ())
    assert beyond.reached == pytest.approx(450)
    said = " ".join(outside(rule, rule.covered)["outside"].split())
    assert said == "2 of them leave the data: late reaches 450, where the data end at 500"
    inside = recount(sample, Mechanism((-1.0,), -0.05))
    assert len(inside.covered) == 2
    assert beyond_data(inside, inside.covered) is None


def test_nobody_moves_and_nobody_warns():
    sample = admissions(visible=["gpa"])
    assert caveats(sample, recount(sample, Mechanism((0.0, 1.0), -50.0))) == []
    flat = Instance.from_arrays([[1.0], [1.0]], [1.0], visible=[0], cost=0.1)
    assert caveats(flat, recount(flat, Mechanism((1.0,), 9.0))) == []


@settings(max_examples=60)
@given(st.data())
def test_standardised_data_never_differ_in_spread(data):
    sample = data.draw(instances())
    graded = recount(sample, data.draw(mechanisms(sample)))
    assert all(sentence.isprintable() for sentence in caveats(sample, graded))
    varied = np.ptp(sample.agents, axis=0) > 1e-3
    columns = np.flatnonzero(varied)
    if len(columns):
        x = sample.agents[:, columns]
        again = Instance.from_arrays(
            (x - x.mean(axis=0)) / x.std(axis=0), np.ones(len(columns)),
            visible=range(len(columns)), cost=1.0,
        )  # fmt: skip
        assert caveats(again) == []


def test_show_warns(tmp_path, capsys):
    path = tmp_path / "a.json"
    admissions().save(path)
    assert main(["show", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.count("\nWarning: ") == 2
    assert main(["show", str(path), "--json"]) == 0
    assert [s[:3] for s in json.loads(capsys.readouterr().out)["warnings"]] == ["sat", "peo"]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "instances/real").glob("*.json")), ids=lambda p: p.stem
)
def test_the_real_samples_are_sound(path: Path, capsys):
    assert main(["show", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["warnings"] == []
