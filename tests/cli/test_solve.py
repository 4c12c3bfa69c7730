"""`mipmech oracle` and `mipmech solve`: what they print, what they exit with, what Ctrl-C keeps."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from fractions import Fraction

import pytest

from mipmech import Instance, Mechanism, make_instance, recount
from mipmech.cli import main
from tests.conftest import ROOT
from tests.terminal import read_on


@pytest.fixture
def sample(tmp_path):
    path = tmp_path / "sample.json"
    make_instance("gaussian-mixture", 30, 3, seed=3).save(path)
    return path


@pytest.fixture
def hard(tmp_path):
    path = tmp_path / "hard.json"
    make_instance("uniform-ball", 80, 8, seed=1).save(path)
    return path


def run(capsys, *arguments):
    status = main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_oracle_as_json_is_true(capsys, sample):
    status, out, err = run(capsys, "oracle", sample, "--eta-fraction", "0.6", "--json")
    assert (status, err) == (0, "")
    shown = json.loads(out)
    assert (shown["status"], shown["level"], shown["gap"]) == ("optimal", "attested", 0)
    instance = Instance.load(sample)
    found = recount(instance, Mechanism.from_dict(shown["mechanism"], instance))
    assert found.covered.tolist() == shown["covered"]
    assert Fraction(shown["density"]["lower"]) <= found.density
    assert Fraction(shown["density"]["upper"]) >= found.density
    assert shown["eta_achieved"] == pytest.approx(shown["eta"])
    assert shown["seconds"] > 0


def test_oracle_in_words(capsys, sample, tmp_path):
    picture = tmp_path / "a.png"
    status, out, _ = run(capsys, "oracle", sample, "--eta-fraction", "0.6", "--plot", picture)
    assert status == 0
    for phrase in ("greatest density at η", "optimal: ", "attested", "accept if", "Picture of"):
        assert phrase in out
    assert picture.stat().st_size > 5000
    assert max(map(len, out.splitlines())) <= 80
    status, out, _ = run(capsys, "oracle", sample, "--eta-fraction", "2")
    assert status == 0
    assert "infeasible" in out
    status, out, _ = run(capsys, "oracle", sample, "--eta", "0.2", "--oracle", "milp-soft")
    assert status == 0
    assert "greatest soft density" in out


@pytest.mark.parametrize("norm", ["cones", "secant", "box"])
def test_norms_by_name(capsys, sample, norm):
    arguments = ("oracle", sample, "--eta-fraction", "0.9", "--norm", norm, "--segments", "6")
    status, out, _ = run(capsys, *arguments, "--json", "--seconds", "20")
    shown = json.loads(out)
    assert status in (0, 1)
    assert shown["density"]["lower"] <= shown["density"]["upper"]
    assert f"norm='{norm}'" in shown["oracle"]


@pytest.mark.parametrize("suffix", ["mps", "lp"])
def test_models_are_handed_to_others(capsys, sample, tmp_path, suffix):
    file = tmp_path / f"model.{suffix}"
    arguments = ("oracle", sample, "--eta-fraction", "0.6", "--write-model", file)
    status, out, _ = run(capsys, *arguments)
    assert status == 0
    assert out.startswith(f"wrote {file}: ")
    assert file.stat().st_size > 1000
    status, out, _ = run(capsys, *arguments, "--json")
    assert json.loads(out)["file"] == str(file)


def test_solve_as_json_is_true(capsys, sample):
    status, out, err = run(capsys, "solve", sample, "--epsilon", "0.05", "--json")
    assert (status, err) == (0, "")
    shown = json.loads(out)
    instance = Instance.load(sample)
    found = recount(instance, Mechanism.from_dict(shown["mechanism"], instance))
    assert float(found.gain) == pytest.approx(shown["gain"])
    assert set(shown["bound"]) == {"factor", "additive", "upper", "scope"}
    assert shown["bound"]["factor"] >= 0.25
    assert shown["oracle_calls"]["made"] == shown["grid"]["size"] == len(shown["steps"])
    assert shown["eta"] in [step["eta"] for step in shown["steps"]]


@pytest.mark.slow
def test_solve_in_words(capsys, sample, tmp_path):
    picture = tmp_path / "a.png"
    arguments = ("solve", sample, "--skip", "cones", "--thresholds", "best", "--plot", picture)
    status, out, _ = run(capsys, *arguments)
    assert status == 0
    for phrase in ("angular grid for ε = ", "skipped by proof", "no rule gains more than", "Pict"):
        assert phrase in out
    assert picture.stat().st_size > 20_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "rank", "options"),
    [
        ("costs", 1, ()),
        ("ties", 2, ("--grid", "paper", "--sigma", "1", "--radius", "1", "--epsilon", "0.4")),
        ("uniform-ball", 4, ("--oracle", "milp-soft", "--skip", "cones", "--epsilon", "0.05")),
    ],
)
def test_pictures_of_runs(capsys, tmp_path, family, rank, options):
    path, picture = tmp_path / "a.json", tmp_path / "a.svg"
    make_instance(family, 15, rank, seed=1).save(path)
    status, out, _ = run(capsys, "solve", path, "--plot", picture, *options)
    assert status == 0, out
    assert picture.stat().st_size > 20_000


def test_nothing_to_solve(capsys, tmp_path):
    path = tmp_path / "a.json"
    Instance.from_arrays([[0.0, 1.0]], [0.0, 1.0], visible=[0], cost=1.0).save(path)
    status, out, _ = run(capsys, "solve", path)
    assert status == 0
    assert "gain" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("oracle", "--eta", "1", "--eta-fraction", "1"), "given in two ways"),
        (("oracle",), "--eta 0.3 or --eta-fraction 0.8"),
        (("solve", "--digits", "0"), "digits"),
        (("oracle", "--eta", "0.1", "--digits", "16"), "digits"),
        (("oracle", "--eta", "nan"), "finite"),
        (("oracle", "--eta", "0.1", "--oracle", "delphi"), "there is no oracle 'delphi'"),
        (("oracle", "--eta", "0.1", "--gap", "-1"), "gap"),
        (("oracle", "--eta", "0.1", "--oracle", "projection", "--norm", "box"), "does not take"),
        (("oracle", "--eta", "0.1", "--norm", "secant", "--segments", "0"), "segments"),
        (("oracle", "--eta", "0.1", "--norm", "secant", "--segments", "1"), "segments"),
        (("oracle", "--eta", "0.1", "--write-model", "a.LP"), ".lp or .mps"),
        (("oracle", "--eta", "0.1", "--norm", "secant", "--solver", "nosuch"), "not installed"),
        (("oracle", "--eta", "0.1", "--norm", "exact"), "not linear"),
        (("oracle", "--eta", "0.1", "--write-model", "a.txt"), ".lp or .mps"),
        (("oracle", "--eta", "0.1", "--threads", "0"), "threads"),
        (("solve", "--epsilon", "0"), "epsilon"),
        (("solve", "--epsilon", "-1"), "epsilon"),
        (("solve", "--grid", "square"), "square"),
        (("solve", "--seconds", "-1"), "seconds"),
    ],
)
@pytest.mark.parametrize("as_json", [True, False])
def test_bad_options(capsys, sample, arguments, message, as_json):
    command, *options = arguments
    status, out, err = run(capsys, command, sample, *options, *["--json"] * as_json)
    assert status == 2
    text = json.loads(out)["error"]["message"] if as_json else err
    field = json.loads(out)["error"]["field"] if as_json else ""
    assert message in f"{field} {text}"
    assert (out if not as_json else err) == ""


@pytest.mark.slow
def test_a_gap_of_ones_own(capsys, hard):
    status, out, _ = run(capsys, "oracle", hard, "--eta-fraction", "0.6", "--seconds", "1", "--gap",
                         "0.9", "--json")  # fmt: skip
    assert status == 0
    assert json.loads(out)["status"] == "optimal"


def test_a_gap_stricter_than_the_oracle_s(capsys, sample):
    arguments = ("oracle", sample, "--eta-fraction", "0.6", "--oracle", "milp-soft", "--json")
    status, out, _ = run(capsys, *arguments)
    assert (status, json.loads(out)["status"]) == (0, "optimal")
    status, out, _ = run(capsys, *arguments, "--gap", "1e-12")
    assert (status, json.loads(out)["status"]) == (1, "gap")


@pytest.mark.slow
@pytest.mark.parametrize("command", [("oracle", "--eta-fraction", "0.6"), ("solve",)])
def test_two_seconds_on_a_hard_instance(capsys, hard, command):
    status, out, _ = run(capsys, command[0], hard, *command[1:], "--seconds", "2", "--json")
    assert status == 1
    valid(json.loads(out), hard)


def valid(shown, path):
    """A mechanism whose figures hold, and bounds around them."""
    instance = Instance.load(path)
    found = recount(instance, Mechanism.from_dict(shown["mechanism"], instance))
    if "density" in shown:
        assert shown["status"] == "gap"
        assert Fraction(shown["density"]["lower"]) <= found.density
        assert 0 < shown["density"]["lower"] < shown["density"]["upper"] <= 1
    else:
        assert float(found.gain) == pytest.approx(shown["gain"])
        assert 0 < shown["gain"] < shown["bound"]["upper"]
    assert shown["seconds"] < 30


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("oracle", "--eta-fraction", "0.6"),
        ("oracle", "--eta-fraction", "0.6", "--norm", "secant"),
        ("solve",),
        ("solve", "--skip", "cones"),
    ],
    ids=["cones", "secant", "solve", "solve with skipping"],
)
def test_ctrl_c_keeps_what_was_found(hard, command):
    """On a terminal: the live line shows bounds, then Ctrl-C, then a valid result and status 1."""
    if "secant" in command:  # HiGHS hears nothing while it is at the root: one that is soon left
        make_instance("uniform-ball", 40, 6, seed=1).save(hard)
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "mipmech", command[0], str(hard), *command[1:]],
        stdout=subprocess.PIPE, stderr=end, cwd=ROOT, env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(end)
    seen = b""
    deadline = time.monotonic() + 60
    while b"at least 0." not in seen and time.monotonic() < deadline:
        seen += os.read(terminal, 4096)
    process.send_signal(signal.SIGINT)
    read_on(terminal)
    out, _ = process.communicate(timeout=60)
    text = out.decode()
    assert b"at least" in seen
    assert process.returncode == 1, text
    assert "accept if" in text
    assert "interrupted" in text
    assert "Traceback" not in text
