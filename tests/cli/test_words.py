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
