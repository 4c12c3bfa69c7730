"""`mipmech certify`, `mipmech check` and `mipmech oracle --out`, as people and programs do."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from fractions import Fraction

import pytest

from mipmech import make_instance
from mipmech.cli import main
from tests.conftest import ROOT
from tests.terminal import read_on

EXAMPLE = str(ROOT / "instances" / "paper" / "example1.json")
BALL = str(ROOT / "instances" / "small" / "uniform-ball-m50-k3-s3.json")


def run(capsys, *arguments) -> tuple[int, str, str]:
    status = main([str(a) for a in arguments])
    shown = capsys.readouterr()
    return status, shown.out, shown.err


def as_json(capsys, *arguments):
    status, out, err = run(capsys, *arguments, "--json")
    assert err == ""
    return status, json.loads(out)


def test_certify_then_check(capsys, tmp_path):
    proof, picture = tmp_path / "proof.json", tmp_path / "proof.png"
    status, found = as_json(
        capsys, "certify", EXAMPLE, "--gap", 1e-6, "--out", proof, "--plot", picture
    )
    assert status == 0
    assert found["status"] == "optimal"
    assert found["level"] == "proved"
    assert found["engine"] == "cells"
    assert found["gain"]["lower"] <= 0.25 / 3**0.5 * (1 + 1e-9) <= found["gain"]["upper"]
    assert found["gap"] <= 1e-6
    assert Fraction(found["lower_exact"]) >= Fraction(found["gain"]["lower"])
    assert len(found["mechanism"]["weights"]) == 3
    assert {"scope", "work", "seconds"} <= found.keys()
    assert picture.read_bytes().startswith(b"\x89PNG")
    status, verdict = as_json(capsys, "check", proof)
    assert (status, verdict["status"], verdict["level"]) == (0, "accepted", "proved")
    assert verdict["reason"] is None
    assert len(verdict["verified"]) == 5


def test_the_instance_is_found_beside_the_certificate_or_given(capsys, tmp_path):
    sample = make_instance("gaussian-mixture", 20, 2, seed=1)
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    sample.save(tmp_path / "here" / "sample.json")
    proof = tmp_path / "there" / "proof.json"
    assert run(capsys, "certify", tmp_path / "here" / "sample.json", "--out", proof)[0] == 0
    assert json.loads(proof.read_text())["instance"]["path"] == "../here/sample.json"
    assert run(capsys, "check", proof)[0] == 0
    (tmp_path / "here" / "sample.json").rename(tmp_path / "moved.json")
    status, out, err = run(capsys, "check", proof)
    assert (status, out) == (2, "")
    assert f"{proof.parent}/../here/sample.json" in err
    assert f"mipmech check {proof} --instance FILE" in err
    assert run(capsys, "check", proof, "--instance", tmp_path / "moved.json")[0] == 0
    status, out, _ = run(capsys, "check", proof, "--instance", BALL)
    assert status == 1
    assert "REJECTED" in out
    assert "another instance" in out


def test_a_damaged_certificate_is_rejected(capsys, tmp_path):
    proof = tmp_path / "proof.json"
    assert run(capsys, "certify", EXAMPLE, "--out", proof, "--quiet")[0] == 0
    text = proof.read_text()
    proof.write_text(text[: len(text) // 2])
    status, verdict = as_json(capsys, "check", proof)
    assert (status, verdict["status"]) == (1, "rejected")
    assert "cut short" in verdict["reason"]
    status, out, err = run(capsys, "check", tmp_path / "nowhere.json")
    assert (status, out) == (2, "")
    assert "nowhere.json" in err


def test_a_limit_leaves_a_valid_certificate_of_the_gap(capsys, tmp_path):
    sample, proof = tmp_path / "hard.json", tmp_path / "proof.json"
    make_instance("uniform-ball", 60, 6, seed=1).save(sample)
    status, found = as_json(
        capsys, "certify", sample, "--gap", 1e-6, "--seconds", 0.5, "--out", proof
    )
    assert (status, found["status"]) == (1, "gap")
    assert 1e-6 < found["gap"] < 1
    assert as_json(capsys, "check", proof)[1]["upper"] == found["gain"]["upper"]
    status, verdict = as_json(capsys, "check", proof, "--seconds", 0)
    assert (status, verdict["status"]) == (1, "rejected")
    assert "not finished" in verdict["reason"]
    assert verdict["finished"] is False
    assert "NOT FINISHED" in run(capsys, "check", proof, "--seconds", 0)[1]


def test_against_simpler_rules(capsys):
    status, out, _ = run(capsys, "certify", BALL, "--against", "projection,milp,cells-soft")
    assert status == 0
    assert re.search(r"projection +[\d.]+ +≥ 0\.\d+ +0\.\d+ +Theorem 2", out)
    assert re.search(r"milp, two thresholds +[\d.]+ +≥ 0\.\d+ +0\.25", out)
    shown = as_json(capsys, "certify", BALL, "--against", "projection,milp,cells-soft")[1]
    shares = {rival["name"]: rival["share"] for rival in shown["against"]}
    assert all(0 < share <= 1 for share in shares.values())
    for rival in shown["against"]:
        assert rival["gain"] <= shown["gain"]["upper"]
    assert shares["milp, two thresholds"] <= shares["milp, best threshold"]
    assert shares["cells-soft"] > 0.9


def test_words_for_people(capsys, tmp_path):
    proof = tmp_path / "proof.json"
    status, out, _ = run(capsys, "certify", EXAMPLE, "--out", proof)
    assert status == 0
    assert "optimal" in out
    assert "proved" in out
    assert "all threshold rules" in out
    status, out, _ = run(capsys, "check", proof)
    assert "accepted, proved" in out
    assert "recomputed in rationals" in out


def test_nothing_seen_is_proved(capsys, tmp_path):
    hidden = ROOT / "instances" / "tiny" / "hidden-quality.json"
    proof = tmp_path / "proof.json"
    status, found = as_json(capsys, "certify", hidden, "--out", proof, "--plot", tmp_path / "a.png")
    assert (status, found["gain"], found["gap"]) == (0, {"lower": 0.0, "upper": 0.0}, 0.0)
    assert found["mechanism"] is None
    status, out, _ = run(capsys, "check", proof)
    assert status == 0
    assert "exactly 0" in out


@pytest.mark.slow
def test_attested_by_the_solver(capsys, tmp_path):
    sample, proof = tmp_path / "sample.json", tmp_path / "proof.json"
    make_instance("gaussian-mixture", 15, 3, seed=1).save(sample)
    cells = as_json(capsys, "certify", sample, "--gap", 1e-4)[1]
    status, found = as_json(
        capsys, "certify", sample, "--engine", "milp", "--gap", 0.01, "--out", proof
    )
    assert (status, found["level"], found["engine"]) == (0, "attested", "milp")
    assert found["gain"]["lower"] <= cells["gain"]["upper"]
    assert cells["gain"]["lower"] <= found["gain"]["upper"]
    status, out, _ = run(capsys, "check", proof)
    assert status == 0
    assert "  unchecked  that no rule in them gains more" in out
    assert "verified" in out
    assert "NOT verified" not in out
    status, out, _ = run(capsys, "check", proof, "--level", "proved")
    assert status == 1
    assert out.startswith("NOT ENOUGH: ")
    assert "accepted, attested; --level proved wants a bound that was verified" in " ".join(
        out.split()
    )
    status, found = as_json(capsys, "check", proof, "--level", "proved")
    assert (status, found["status"], found["level"], found["enough"]) == (
        1, "accepted", "attested", False,
    )  # fmt: skip
    assert [said.split(";")[0] for said in found["unchecked"]] == [
        "that no rule in them gains more"
    ]


def test_a_density_certificate(capsys, tmp_path):
    proof = tmp_path / "proof.json"
    options = ("oracle", BALL, "--eta-fraction", 0.6, "--oracle", "cells", "--out", proof)
    status, answer = as_json(capsys, *options)
    assert (status, answer["status"], answer["level"]) == (0, "optimal", "proved")
    assert answer["certificate"] == str(proof)
    status, verdict = as_json(capsys, "check", proof)
    assert (status, verdict["status"]) == (0, "accepted")
    assert verdict["upper"] == answer["density"]["upper"]
    assert "density" in verdict["claim"]
    status, out, err = run(
        capsys, "oracle", BALL, "--eta-fraction", 0.6, "--out", proof, "--oracle", "milp"
    )
    assert (status, out) == (2, "")
    assert "leaves no proof" in err
    status, answer = as_json(capsys, *options[:3], 2.0, *options[4:])
    assert (status, answer["status"], answer["certificate"]) == (0, "infeasible", None)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--gap", "1.5"], "gap"),
        (["--gap", "nan"], "gap"),
        (["--against", "best"], "against"),
        (["--engine", "magic"], "engine"),
        (["--threads", "0"], "threads"),
        (["--plot", "picture"], "plot"),
        (["--out", "/nowhere/at/all.json"], "cannot be written"),
    ],
)
def test_bad_arguments(capsys, arguments, named):
    status, out, err = run(capsys, "certify", EXAMPLE, *arguments)
    assert (status, out) == (2, "")
    assert named in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_interrupting_keeps_the_result(tmp_path):
    """On a terminal: a live line, then Ctrl-C, then a certificate that holds."""
    sample, proof = tmp_path / "hard.json", tmp_path / "proof.json"
    make_instance("uniform-ball", 60, 7, seed=1).save(sample)
    leader, follower = pty.openpty()
    program = subprocess.Popen(
        [sys.executable, "-m", "mipmech", "certify", sample, "--gap", "1e-9", "--out", proof],
        stdout=subprocess.PIPE, stderr=follower,
    )  # fmt: skip
    os.close(follower)
    line, deadline = b"", time.monotonic() + 120
    while b"cells/s" not in line and time.monotonic() < deadline:
        line += os.read(leader, 4096)
    assert b"cells/s" in line
    assert b"lower" in line
    assert b"gap" in line
    program.send_signal(signal.SIGINT)
    read_on(leader)
    out, _ = program.communicate(timeout=120)
    assert program.returncode == 1
    assert b"interrupted" in out
    assert main(["check", str(proof), "--quiet"]) == 0
