"""What commands say: rules that can be typed, shares of both ends, no words that clash."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from mipmech import Instance
from mipmech.cli import main
from mipmech.model import Known
from mipmech.terminal.rule import share_known
from tests.conftest import ROOT
from tests.plain import plain_gain, typed_rule

MEDICAL = str(ROOT / "instances" / "real" / "medical.json")
HARD = str(ROOT / "instances" / "small" / "uniform-ball-m16-k8-s17.json")


def said(capsys, *arguments) -> str:
    main([str(a) for a in arguments])
    return capsys.readouterr().out


def as_json(capsys, *arguments):
    return json.loads(said(capsys, *arguments, "--json"))


@pytest.mark.parametrize("digits", [None, 1, 2])
@pytest.mark.parametrize("command", ["certify", "solve"])
def test_the_rule_in_so_many_digits(capsys, command, digits):
    more = () if digits is None else ("--digits", digits)
    options = (
        ("--gap", "0.01") if command == "certify" else ("--skip", "cells", "--oracle", "cells")
    )
    found = as_json(capsys, command, MEDICAL, *options, *more)["printed"]
    instance = Instance.load(MEDICAL)
    weights, threshold = typed_rule("accept if " + found["text"], instance.feature_names)
    assert {n: w for n, w in zip(instance.feature_names, weights, strict=True) if w} == found[
        "weights"
    ]
    assert threshold == found["threshold"]
    typed = plain_gain(instance, weights, threshold, instance.units)
    assert typed == pytest.approx(found["gain"], rel=1e-9)
    assert found["share"] > {None: 0.999, 1: 0.8, 2: 0.95}[digits]


def test_what_the_json_of_a_certificate_says_of_its_rule(capsys):
    found = as_json(capsys, "certify", MEDICAL, "--gap", "0.01")
    instance = Instance.load(MEDICAL)
    assert found["features"] == list(instance.feature_names)
    assert 0 < found["moving_share"] < found["accepted_share"] < 1
    assert 0 <= found["fragile"]["share"] <= 1
    assert found["fragile"]["agents"] < instance.size


def test_the_best_threshold_is_the_default_with_the_papers_two_beside_it(capsys):
    best = as_json(capsys, "solve", MEDICAL, "--skip", "cells", "--oracle", "cells")
    two = as_json(
        capsys, "solve", MEDICAL, "--skip", "cells", "--oracle", "cells", "--thresholds", "two"
    )
    assert (best["thresholds"], two["thresholds"]) == ("best", "two")
    assert best["gain_two"] <= best["gain"]
    assert two["gain_two"] == two["gain"] <= best["gain"]
    text = said(capsys, "solve", MEDICAL, "--skip", "cells", "--oracle", "cells")
    assert "with the paper's two thresholds" in text


@pytest.mark.parametrize(
    "arguments",
    [
        ("certify", MEDICAL, "--gap", "0.01"),
        ("certify", HARD, "--gap", "1e-9", "--seconds", "1"),
        ("certify", MEDICAL, "--engine", "milp", "--gap", "0.2"),
        ("solve", MEDICAL, "--skip", "cells"),
        ("oracle", MEDICAL, "--eta-fraction", "0.7"),
    ],
)
def test_words_that_clash_never_meet(capsys, monkeypatch, arguments):
    monkeypatch.setenv("COLUMNS", "200")
    text = said(capsys, *arguments)
    for line in text.splitlines():
        assert not ("proved" in line and "attested" in line), line
    if arguments[0] == "certify":
        assert "completed" not in text
        assert ("optimal" in text) != ("a gap is left open" in text)


@pytest.mark.parametrize(
    ("gain", "lower", "upper", "words"),
    [
        (Fraction(1, 2), 1.0, 1.0, "50.0%"),
        (Fraction(1, 2), 0.5, 1.0, "50.0% to 100.0%"),
        (Fraction(3, 4), 0.5, 1.0, "75.0% to 100.0%"),
        (Fraction(1, 4), 0.5, 1.0, "25.0% to 50.0%"),
        (Fraction(1, 3), 1.0, 1.0, "33.3%"),
        (Fraction(1, 4), 0.0, 1.0, "25.0% to 100.0%"),
    ],
)
def test_shares_are_stated_against_both_ends_of_what_is_known(gain, lower, upper, words):
    assert share_known(gain, Known(lower, upper, "by hand")) == words


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("certify", MEDICAL, "--engine", "foo"), "'--engine': 'foo' is not one of"),
        (("certify", MEDICAL, "extra"), "error: Too many arguments: extra. Try"),
        (("certify", MEDICAL, "--gap", "x"), "Invalid value for '--gap': "),
        (("certify", MEDICAL, "--gap"), "error: Option '--gap' requires an argument. Try"),
        (
            ("certify", MEDICAL, "--treads", "2"),
            "No such option: --treads. Did you mean --threads?",
        ),
        (("certify",), "error: Missing argument"),
    ],
)
def test_usage_errors_are_sentences_and_name_the_commands_help(capsys, arguments, message):
    assert main([str(a) for a in arguments]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Try 'mipmech certify --help'." in said
    assert "Value error" not in said
    assert "?." not in said


def test_a_word_that_is_no_command(capsys):
    assert main(["certfy", MEDICAL]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: No such command 'certfy'.")
    assert said.endswith(" Try 'mipmech --help'.\n")
    assert "?." not in said


def test_what_a_report_is_not_of(capsys, tmp_path):
    assert main(["report", str(tmp_path / "none"), "-o", str(tmp_path / "none" / "a.html")]) == 2
    assert "none: does not exist; give the folder of a run" in capsys.readouterr().err
    (tmp_path / "learning.json").write_text("{}")
    for place in (tmp_path, tmp_path / "learning.json"):
        assert main(["report", str(place), "-o", str(tmp_path / "a.html")]) == 2
        assert "is a learning curve, which has no report" in capsys.readouterr().err


def test_a_file_that_is_no_certificate(capsys, tmp_path):
    assert main(["check", MEDICAL]) == 2
    said = capsys.readouterr().err
    assert f"{MEDICAL}: format: is 'mipmech/instance@1', so this is no certificate" in said
    (tmp_path / "cut.json").write_text('{"format": "mipmech/certificate@1", "cla')
    assert main(["check", str(tmp_path / "cut.json")]) == 1
    assert "REJECTED" in capsys.readouterr().out


def test_as_near_as_floats_are(capsys):
    """A gap of 0 that no float can show is no gap that was left open."""
    text = said(capsys, "certify", MEDICAL, "--gap", "0")
    assert "as near as floating point allows" in " ".join(text.split())
    assert "a gap is left open" not in text


@pytest.mark.parametrize("command", ["certify", "solve"])
def test_advice_where_time_left_a_large_gap(capsys, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "200")
    text = said(capsys, command, HARD, "--seconds", "0")
    assert "advice     more --seconds" in text
    assert "advice" not in said(
        capsys, command, MEDICAL, *(("--gap", "0.01"),)[command == "solve" :]
    )


@pytest.mark.parametrize("command", ["show", "certify", "solve"])
def test_a_planner_who_sees_nothing_that_matters_is_told(capsys, tmp_path, command):
    Instance.from_arrays([[1.0, 2.0], [0.0, 1.0]], [0.0, 1.0], visible=[0], cost=1.0).save(
        tmp_path / "a.json"
    )
    text = " ".join(said(capsys, command, tmp_path / "a.json").split())
    assert "The planner sees nothing that quality depends on (P w_f = 0)" in text


def test_thresholds_are_on_the_scale_of_the_rule_that_is_printed(capsys):
    text = said(capsys, "show", MEDICAL)
    row = next(line.split() for line in text.splitlines() if line.startswith(" all"))
    rule = next(line for line in text.splitlines() if line.startswith("  rule"))
    assert float(row[1]) == pytest.approx(float(rule.rpartition("≥")[2]), rel=1e-2)
