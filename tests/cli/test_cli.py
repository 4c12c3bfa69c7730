"""The command line: output, JSON, pictures, exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from mipmech import Instance, Mechanism, __version__, make_instance, recount
from mipmech.cli import main


@pytest.fixture
def sample(tmp_path):
    path = tmp_path / "sample.json"
    make_instance("gaussian-mixture", 60, 2, seed=3).save(path)
    return path


def run(capsys, *arguments):
    status = main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_show_in_words(capsys, sample):
    status, out, err = run(capsys, "show", sample)
    assert status == 0
    assert err == ""
    for phrase in ("60 agents, 3 features", "‖P w_f‖ = ", "Theorem 1", "Theorem 2", "E[f|pass]"):
        assert phrase in out
    assert max(map(len, out.splitlines())) <= 80


def test_show_as_json_is_true(capsys, sample):
    status, out, _ = run(capsys, "show", sample, "--json")
    assert status == 0
    shown = json.loads(out)
    instance = Instance.load(sample)
    assert shown["digest"] == instance.digest
    assert (shown["agents"], shown["rank"], shown["complete"]) == (60, 2, True)
    rule = shown["theorem2"]
    found = recount(instance, Mechanism.from_dict(rule["mechanism"], instance))
    assert Fraction(rule["gain"]) == pytest.approx(found.gain)
    assert rule["covered"] == found.covered.tolist()
    assert rule["accepted_quality"] == pytest.approx(float(found.accepted_quality))
    assert rule["gain"] >= rule["factor"] * shown["ceiling"]
    assert shown["theorem2_grid"]["thresholds_tried"] > 1
    assert shown["quality"]["baseline"] == pytest.approx(float(found.baseline))


@pytest.mark.parametrize(
    ("family", "rank"), [("gaussian-mixture", 1), ("ties", 2), ("costs", 2), ("costs", 4)]
)
@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_pictures(capsys, tmp_path, family, rank, kind):
    path, picture = tmp_path / "a.json", tmp_path / f"a.{kind}"
    make_instance(family, 30, rank, seed=1).save(path)
    status, out, _ = run(capsys, "show", path, "--plot", picture)
    assert status == 0
    assert "Picture" in out
    assert picture.stat().st_size > 5000


@pytest.mark.parametrize("seen", [{"view": [[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]]}, {"visible": [1]}])
def test_pictures_of_odd_instances(capsys, tmp_path, seen):
    """General views, one agent, all equal, names that look like markup or mathematics."""
    names = ["$x^2$", "[bold]y[/]", "z_1%"]
    for agents in ([[1.0, 2.0, 3.0]], [[1.0, 2.0, 3.0]] * 4, np.eye(3) * 1e6):
        instance = Instance.from_arrays(
            agents, [1.0, 2.0, 3.0], cost=2.0, features=names, name="[red]$odd$", **seen
        )
        instance.save(tmp_path / "a.json")
        status, out, _ = run(capsys, "show", tmp_path / "a.json", "--plot", tmp_path / "a.png")
        assert status == 0
        assert out.startswith("[red]$odd$\n")
        assert "[bold]y[/]" in out


def test_nothing_to_draw(capsys, tmp_path):
    hidden = Instance.from_arrays([[1.0, 2.0]], [0.0, 1.0], visible=[0], cost=1.0)
    hidden.save(tmp_path / "a.json")
    status, out, _ = run(capsys, "show", tmp_path / "a.json")
    assert status == 0
    assert "every gain is 0" in out
    status, out, _ = run(capsys, "show", tmp_path / "a.json", "--plot", tmp_path / "a.png")
    assert status == 0
    assert "every gain is 0" in out
    assert "No picture: there is no rule to draw." in out
    status, out, _ = run(
        capsys, "show", tmp_path / "a.json", "--plot", tmp_path / "a.png", "--json"
    )
    assert status == 0
    assert json.loads(out)["plot"] is None


@pytest.mark.parametrize("picture", ["a.unknown", "missing/a.png", "."])
def test_a_picture_that_cannot_be_written(capsys, sample, tmp_path, picture):
    status, out, err = run(capsys, "show", sample, "--plot", tmp_path / picture)
    assert status == 2
    assert out == ""
    assert err.count("\n") == 1


def test_a_time_limit_leaves_the_rest_out(capsys, sample):
    status, out, _ = run(capsys, "show", sample, "--seconds", "0", "--json")
    assert status == 1
    shown = json.loads(out)
    assert not shown["complete"]
    assert shown["theorem2"] is None
    status, out, _ = run(capsys, "show", sample, "--seconds", "0", "--plot", "never.png")
    assert "Stopped at the time limit" in out
    assert "No picture" in out


@pytest.mark.parametrize("table", ["inline", "csv", "npy"])
def test_make(capsys, tmp_path, table):
    arguments = ["uniform-ball", "--agents", 20, "--rank", 3, "--seed", 5, "--table", table]
    status, out, _ = run(capsys, "make", *arguments, "-o", tmp_path / "a.json", "--json")
    assert status == 0
    made = json.loads(out)
    assert made["digest"] == Instance.load(tmp_path / "a.json").digest
    assert made["digest"] == make_instance("uniform-ball", 20, 3, 5).digest
    status, out, _ = run(capsys, "make", *arguments, "-o", tmp_path / "a.json")
    assert out.startswith(f"wrote {tmp_path / 'a.json'}: 20 agents, 4 features, 3 seen")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["make", "nothing", "--agents", "3", "-o", "a.json"], "there are: example1,"),
        (["make", "ties", "--agents", "0", "-o", "a.json"], "agents: is 0"),
        (["make", "ties", "--agents", "x", "-o", "a.json"], "--agents"),
        (["make", "ties", "--agents", "3"], "Missing option"),
        (["make", "ties", "--agents", "3", "-o", "missing/a.json"], "cannot be written"),
        (["make", "ties", "--agents", "3", "--cost", "-1", "-o", "a.json"], "cost: is -1"),
        (
            ["make", "ties", "--agents", "3", "--cost", "nan", "-o", "a.json"],
            "cost: is not a number",
        ),
        (["make", "example1", "--agents", "3", "--cost", "0", "-o", "a.json"], "cost: is 0"),
        (
            ["make", "ties", "--agents", "3", "--rank", "99999999999", "-o", "a.json"],
            "agents: is 3",
        ),
        (["make", "ties", "--agents", "3", "--seconds", "nan", "-o", "a.json"], "seconds: is nan"),
        (["make", "ties", "--agents", "3", "--table", "csv", "-o", "a.csv"], "another ending"),
        (["show", "a.json", "--seconds", "nan"], "seconds: is nan"),
        (["unknown"], "No such command"),
    ],
)
def test_bad_arguments(capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(capsys, *arguments)
    assert status == 2
    assert out == ""
    assert message in err
    status, out, err = run(capsys, *arguments, "--json")
    assert status == 2
    assert err == ""
    shown = json.loads(out)["error"]
    assert message.split(": ")[-1] in shown["message"] or message == shown["field"]


def test_help_and_version(capsys):
    assert run(capsys, "--version")[1] == f"mipmech {__version__}\n"
    assert "clustered-lines" in run(capsys, "make", "--help")[1]
    status, out, _ = run(capsys, "--help")
    assert status == 0
    assert "show" in out
    assert "make" in out


def test_a_reader_that_leaves(sample):
    """`mipmech show … | head -1`: no traceback, no complaint."""
    program = [sys.executable, "-m", "mipmech", "show", str(sample)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


def test_an_interrupt_is_quiet(capsys, sample, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("mipmech.cli.design.describe", interrupted)
    status, out, err = run(capsys, "show", sample)
    assert (status, out) == (1, "")
    assert err == "error: interrupted before there was a result\n"
    status, out, err = run(capsys, "show", sample, "--json")
    assert (status, err) == (1, "")
    assert "interrupted" in json.loads(out)["error"]["message"]


def test_a_full_disk_is_one_line(sample):
    with open("/dev/full", "w") as full:
        program = [sys.executable, "-m", "mipmech", "show", str(sample)]
        done = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "error: the output cannot be written: no space left on device\n"


def test_devices_are_not_replaced(capsys, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    status, _, err = run(capsys, "make", "ties", "--agents", 3, "-o", tmp_path / "pipe")
    assert status == 2
    assert "not a plain file" in err
    assert (tmp_path / "pipe").is_fifo()


def test_no_command_at_all(capsys):
    status, out, err = run(capsys)
    assert status == 2
    assert out.startswith("Usage:")
    assert err == ""
