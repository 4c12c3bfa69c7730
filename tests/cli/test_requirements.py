"""Requirements on the command line: options, words, conflicts, prices, frontiers."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace

import pytest

from mipmech import Instance, make_instance
from mipmech.cli import main
from mipmech.model.groups import parse_groups
from tests.plain import typed_rule


@pytest.fixture
def people(tmp_path):
    """A file of 60 people of two groups."""
    sample = make_instance("gaussian-mixture", agents=60, rank=2, seed=3)
    groups = parse_groups({"sex": ["f", "m", "m", "f", "m"] * 12}, 60)
    sample = replace(sample, groups=groups, features=("gpa", "sat", "2020"))
    file = tmp_path / "people.json"
    sample.save(file)
    return file


def run(capsys, *arguments) -> tuple[int, str, str]:
    status = main([str(a) for a in arguments])
    shown = capsys.readouterr()
    return status, shown.out, shown.err


def as_json(capsys, *arguments):
    status, out, err = run(capsys, *arguments, "--json")
    assert err == ""
    return status, json.loads(out)


# ------------------------------------------------------------------ options


def test_every_field_has_an_option(capsys, people):
    status, found = as_json(
        capsys, "certify", people, "--nonnegative", "gpa", "--nonpositive", "1", "--order",
        "gpa:sat", "--accepted", "0.1,0.9", "--parity", "sex:0.5",
    )  # fmt: skip
    assert status in (0, 1)
    assert found["requirements"] == {
        "format": "mipmech/requirements@1",
        "nonnegative": ["gpa"],
        "nonpositive": [1],
        "order": [["gpa", "sat"]],
        "accepted": [0.1, 0.9],
        "parity": {"groups": "sex", "within": 0.5},
    }


@pytest.mark.parametrize("ending", ["toml", "json"])
def test_options_take_precedence_over_the_file_field_by_field(capsys, people, tmp_path, ending):
    file = tmp_path / f"require.{ending}"
    file.write_text(
        'accepted = [0.1, 0.2]\nnonnegative = "all"\n'
        if ending == "toml"
        else '{"accepted": [0.1, 0.2], "nonnegative": "all"}'
    )
    _, found = as_json(capsys, "certify", people, "--require", file, "--accepted", "0,0.4")
    assert found["requirements"] == {
        "format": "mipmech/requirements@1", "nonnegative": "all", "accepted": [0.0, 0.4],
    }  # fmt: skip


def test_without_requirements_nothing_is_said_of_any(capsys, people):
    _, found = as_json(capsys, "certify", people)
    assert not {"requirements", "rates", "feasible_without", "prices"} & set(found)


def test_a_feature_whose_name_is_a_number_is_named_by_it(capsys, people, tmp_path):
    sample = replace(Instance.load(people), features=("2020", "sat", "gpa"))
    file = tmp_path / "years.json"
    sample.save(file)
    status, found = as_json(capsys, "certify", file, "--nonnegative", "2020")
    assert (status, found["requirements"]["nonnegative"]) == (0, ["2020"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--accepted", "30%"], "accepted: has '30%'; give a share from 0 to 1, such as 0.3"),
        (["--accepted", "0.3"], "accepted: has only one number, 0.3; give the least and the"),
        (["--accepted", "0.4,0.3"], "accepted: has the lower limit 0.4 above the upper one 0.3"),
        (["--accepted", "0.1,0.2,0.3"], "accepted: has 3 numbers; give [low, high]"),
        (["--nonnegative", "gap"], "which is not a feature that the planner sees: 'gpa, sat'"),
        (["--nonnegative", ""], "nonnegative: is empty"),
        (["--nonnegative", "2"], "nonnegative: has 2020, which the planner does not see"),
        (["--order", "gpa"], "order, row 0: has 'gpa'; give pairs a:b between commas"),
        (["--order", "gpa:gpa"], "order, row 0: compares a feature with itself"),
        (["--parity", "sex"], "parity: has 'sex'; give groups and a share, as in race:0.05"),
        (["--parity", "race:0.1"], "parity: names the groups 'race'; the instance has 'sex'"),
        (["--nonnegative", "all", "--nonpositive", "all"], "contradict each other"),
        (["--require", "nowhere.toml"], "nowhere.toml: cannot be read"),
        (["--price"], "price: says nothing without requirements"),
    ],
)
def test_errors_name_the_option_and_the_remedy(capsys, people, options, said):
    status, out, err = run(capsys, "certify", people, *options)
    assert (status, out) == (2, "")
    assert said in err


def test_errors_in_a_file_name_it_also_if_they_show_only_on_the_instance(capsys, people, tmp_path):
    file = tmp_path / "require.json"
    for content, said in (
        ('{"acepted": [0, 1]}', "acepted: is not a field of the format"),
        ('{"nonnegative": ["gap"]}', "nonnegative: names 'gap'"),
        ('{"parity": {"groups": "race", "within": 0.1}}', "parity: names the groups 'race'"),
    ):
        file.write_text(content)
        status, _, err = run(capsys, "certify", people, "--require", file)
        assert status == 2
        assert err.startswith(f"error: {file}: {said}")
    # What an option says instead is not the file's fault.
    status, _, err = run(capsys, "certify", people, "--require", file, "--parity", "rice:0.1")
    assert err.startswith("error: parity: names the groups 'rice'")


@pytest.mark.parametrize("command", ["solve", "oracle", "compare", "frontier"])
def test_other_commands_read_the_same_options(capsys, people, command):
    status, out, err = run(capsys, command, people, "--order", "gpa", "--accepted", "0:1:3")
    assert (status, out) == (2, "")
    assert err.startswith(("error: order, row 0: has 'gpa'", "error: accepted: has '0:1:3'"))
    _, out, _ = run(capsys, command, "--help")
    assert "--parity" in out.partition("\nRequirements on rules:\n")[2]


def test_a_certificate_at_one_eta_does_not_know_requirements(capsys, people, tmp_path):
    options = ("--eta-fraction", "0.9", "--oracle", "cells", "--out", tmp_path / "proof.json")
    status, _, err = run(capsys, "oracle", people, *options, "--accepted", "0,0.3")
    assert status == 2
    assert "out: is of all rules with this η, and does not know requirements" in err


def test_help_puts_them_under_a_heading(capsys):
    _, out, _ = run(capsys, "certify", "--help")
    usual, _, section = out.partition("\nRequirements on rules:\n")
    names = ("--require", "--nonnegative", "--nonpositive", "--order", "--accepted", "--parity")
    for name in names:
        assert name in section
        assert f"  {name} " not in usual
    assert "--json" in usual


# ------------------------------------------------------------------ words


def test_each_requirement_has_a_line_with_its_figure(capsys, people):
    status, out, _ = run(
        capsys, "certify", people, "--order", "gpa:sat", "--nonnegative", "all", "--accepted",
        "0.1,0.3", "--parity", "sex:0.2",
    )  # fmt: skip
    assert status == 0
    said = " ".join(out.split())
    assert " signs all weights at least 0; the least is " in said
    assert re.search(r" order gpa ≥ sat \(1 and [\d.]+\) ", said)
    assert re.search(r" accepted [\d.]+%, of at least 10% and at most 30% ", said)
    assert re.search(r" by sex f: [\d.]+%, m: .* points apart, of at most 20 points ", said)
    assert "all threshold rules on what the planner sees that meet the requirements" in said


def test_the_rule_in_the_terminal_meets_the_requirements(capsys, people):
    """Whoever types it into a spreadsheet accepts no more than is allowed."""
    sample = Instance.load(people)
    for high in ("0.05", "0.3"):
        _, out, _ = run(capsys, "certify", people, "--accepted", f"0,{high}", "--digits", "3")
        weights, threshold = typed_rule(out, sample.feature_names)
        reach = sample.reach * (weights @ weights) ** 0.5
        accepted = (threshold - sample.agents @ weights <= reach).mean()
        assert 0 < accepted <= float(high)


def test_no_rule_and_what_to_drop(capsys, people):
    options = ("--nonnegative", "all", "--accepted", "0.101,0.102")
    status, out, _ = run(capsys, "certify", people, *options)
    assert status == 0
    assert "best gain  none: no rule meets the requirements" in out
    assert "drop accepted: without it, some rule meets the others" in out
    status, found = as_json(capsys, "certify", people, *options)
    assert (status, found["status"]) == (0, "infeasible")
    assert found["feasible_without"] == ["accepted"]
    status, out, _ = run(capsys, "certify", people, "--accepted", "0.101,0.102")
    assert "drop accepted, or choose another limit" in out


def test_a_rule_that_does_harm_is_called_so(capsys, people):
    sample = Instance.load(people)
    signs = ["--accepted", "0.3,0.4"]
    for sign, option in ((1, "--nonpositive"), (-1, "--nonnegative")):
        names = [n for n, q in zip(("gpa", "sat"), sample.quality, strict=False) if sign * q > 0]
        signs += [option, ",".join(names)] if names else []
    status, out, _ = run(capsys, "certify", people, *signs)
    assert status == 1
    said = " ".join(out.split())
    assert "does harm; none of them gains more than" in said
    assert "mean quality falls from" in said
    assert "fragile" not in out
    status, out, _ = run(capsys, "certify", people, *signs[2:])
    assert "no rule that meets the requirements gains anything" in " ".join(out.split())


def test_nothing_known_yet(capsys, people):
    """Two groups of 24 and 36: no rule accepts as much of both, and 1 in 60; no cell shows it."""
    options = ("--accepted", "0.01,0.02", "--parity", "sex:0", "--seconds", "0.2")
    status, found = as_json(capsys, "certify", people, *options)
    if found["status"] == "infeasible":
        return
    assert (status, found["gain"]["lower"], found["mechanism"]) == (1, None, None)
    _, out, _ = run(capsys, "certify", people, *options)
    assert "no rule that meets the requirements gains more than" in " ".join(out.split())
    assert "none is known that meets the requirements; there may be one" in out


# ------------------------------------------------------------------ prices and frontiers


def test_prices(capsys, people, tmp_path):
    picture = tmp_path / "prices.png"
    options = ("--accepted", "0.1,0.3", "--parity", "sex:0.05", "--price")
    status, out, _ = run(capsys, "certify", people, *options, "--plot", picture)
    assert status == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    for name in ("all required", "without accepted", "without parity", "none required"):
        assert f" {name} " in out
    assert "sex f" in out
    status, found = as_json(capsys, "certify", people, *options)
    priced = found["prices"]
    assert priced["complete"]
    assert priced["rows"][0]["gain"] == found["gain"]
    assert [row["dropped"] for row in priced["rows"]] == [
        [], ["accepted"], ["parity"], ["accepted", "parity"],
    ]  # fmt: skip


def test_a_frontier(capsys, people, tmp_path):
    table, picture = tmp_path / "rows.csv", tmp_path / "frontier.png"
    options = ("--accepted", "0.1:0.5:5", "--parity", "sex:0.3", "--csv", table, "--plot", picture)
    status, out, _ = run(capsys, "frontier", people, *options)
    assert status == 0
    assert "the greatest gain if at most so many are accepted" in out
    assert "accepted shares at most 30 points apart" in out
    assert picture.read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert [row["limit"] for row in rows] == ["0.1", "0.2", "0.3", "0.4", "0.5"]
    status, found = as_json(capsys, "frontier", people, *options[:4])
    assert (status, found["over"], found["complete"]) == (0, "accepted", True)
    assert found["requirements"]["parity"] == {"groups": "sex", "within": 0.3}
    assert [row["gain"]["upper"] for row in found["rows"]] == [float(row["upper"]) for row in rows]


def test_a_frontier_of_parity(capsys, people):
    status, found = as_json(
        capsys, "frontier", people, "--parity", "sex:0.1:0.3:3", "--accepted", "0.2,0.9"
    )
    assert (status, found["over"], found["by"]) == (0, "parity", "sex")
    assert [row["limit"] for row in found["rows"]] == [0.1, 0.2, 0.3]
    assert found["requirements"]["accepted"] == [0.2, 0.9]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "frontier: needs one range: --accepted 0.05:0.95:19 or --parity sex:0:0.3:7"),
        (["--accepted", "0.1,0.3"], "needs one range"),
        (["--accepted", "0:1:3", "--parity", "sex:0:1:3"], "not both"),
        (["--accepted", "0:1:x"], "accepted: has '0:1:x'; give from:to:how many"),
        (["--accepted", "0.5:0.1:3"], "from the smaller to the larger"),
        (["--accepted", "0:1:100000"], "2 to 1,000 limits"),
        (["--parity", "race:0:1:3"], "parity: names the groups 'race'"),
        (["--accepted", "0:1:3", "--nonnegative", "gap"], "nonnegative: names 'gap'"),
        (["--accepted", "0:1:3", "--threads", "1", "--workers", "1"], "one of the two"),
    ],
)
def test_wrong_ranges(capsys, people, options, said):
    status, out, err = run(capsys, "frontier", people, *options)
    assert (status, out) == (2, "")
    assert said in err
