"""Nothing is lost at the end: outputs are tried before the work, results printed in any case."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys

import pytest

from mipmech import Instance, certify, make_instance
from mipmech.cli import main
from mipmech.files import try_writing, write
from mipmech.studies.batch import RunFolder
from tests.conftest import ROOT

EXAMPLE = str(ROOT / "instances" / "paper" / "example1.json")
# Commands that write something; the instance (or folder) that they name is not there, so that
# whoever complains of the output has not even begun.
WRITERS = {
    "show --plot": ("show", "nowhere.json", "--plot", "a.png"),
    "oracle --plot": ("oracle", "nowhere.json", "--eta", "0.1", "--plot", "a.png"),
    "oracle --out": ("oracle", "nowhere.json", "--oracle", "cells", "--out", "a.json"),
    "oracle --write-model": ("oracle", "nowhere.json", "--eta", "0.1", "--write-model", "a.lp"),
    "solve --plot": ("solve", "nowhere.json", "--plot", "a.png"),
    "certify --plot": ("certify", "nowhere.json", "--plot", "a.png"),
    "certify --out": ("certify", "nowhere.json", "--out", "a.json"),
    "certify --movers": ("certify", "nowhere.json", "--movers", "a.csv"),
    "learn --plot": ("learn", "nowhere.json", "--plot", "a.png"),
    "make -o": ("make", "nothing", "--agents", "3", "-o", "a.json"),
    "report -o": ("report", "nowhere", "-o", "a.html"),
    "bench export -o": ("bench", "export", "nowhere", "-o", "a.csv"),
}  # fmt: skip


def run(capsys, *arguments):
    status = main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    return status, out, err


@pytest.mark.parametrize("place", ["missing folder", "folder", "read-only", "long name", "device"])
@pytest.mark.parametrize("writer", WRITERS)
def test_an_output_that_cannot_be_written_is_refused_before_the_work(
    capsys, tmp_path, monkeypatch, writer, place
):
    monkeypatch.chdir(tmp_path)
    if writer == "report -o":  # which names a missing folder first
        RunFolder.make(tmp_path / "nowhere")
        (tmp_path / "nowhere" / "run.json").write_text('{"format": "mipmech/run@1", "plan": null}')
    *command, name = WRITERS[writer]
    if place == "missing folder":
        target, message = f"missing/{name}", "there is no folder missing; make it first"
    elif place == "folder":
        (tmp_path / name).mkdir()
        target, message = name, "is a folder"
    elif place == "read-only":
        (tmp_path / name).write_text("mine")
        (tmp_path / name).chmod(0o444)
        target, message = name, "is read-only"
    elif place == "device":
        os.mkfifo(tmp_path / name)
        target, message = name, "is not a plain file"
    else:
        target, message = "x" * 300 + name, "too long"
    before = sorted(tmp_path.iterdir())
    status, out, err = run(capsys, *command, target)
    assert (status, out) == (2, "")
    assert message in err
    assert target in err
    assert "nowhere" not in err
    status, out, err = run(capsys, *command, target, "--json")
    assert (status, err) == (2, "")
    error = json.loads(out)["error"]
    fields = {"-o": "output", "--write-model": "write_model"}
    assert error["file"] == target
    assert error["field"] == fields.get(command[-1], command[-1].strip("-"))
    assert sorted(tmp_path.iterdir()) == before
    if place == "read-only":
        assert (tmp_path / name).read_text() == "mine"


def test_a_file_in_the_place_of_a_folder(capsys, tmp_path):
    (tmp_path / "there").write_text("mine")
    status, out, err = run(capsys, "learn", "nowhere.json", "--out", tmp_path / "there")
    assert (status, out) == (2, "")
    assert "cannot be made a folder" in err


def test_trying_leaves_things_as_they_are(tmp_path):
    (tmp_path / "old").write_text("old")
    os.symlink("old", tmp_path / "link")
    for name in ("old", "link", "new"):
        try_writing(tmp_path / name)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "old"]
    write(tmp_path / "link", b"new")
    assert (tmp_path / "old").read_text() == "new"
    assert (tmp_path / "link").is_symlink()


# ------------------------------------------------------------------ what is read is not replaced


@pytest.fixture
def tabled(tmp_path, monkeypatch):
    """An instance with its table, a link to either, and a run's folder."""
    monkeypatch.chdir(tmp_path)
    make_instance("gaussian-mixture", 20, 2, seed=3).save(tmp_path / "a.json", "csv")
    os.symlink("a.json", "to-a.json")
    os.link("a.csv", "also-a.csv")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ("certify", "a.json", "--out", "a.json"),
        ("certify", "a.json", "--out", "./a.csv"),
        ("certify", "a.json", "--out", "to-a.json"),
        ("certify", "to-a.json", "--out", "a.json"),
        ("certify", "a.json", "--out", "also-a.csv"),
        ("certify", "a.json", "--movers", "a.csv"),
        ("certify", "a.json", "--out", "new.png", "--plot", "new.png"),
        ("certify", "a.json", "--out", "a.csv/../new.json", "--movers", "new.json"),
        ("certify", "a.json", "--movers", "new.svg", "--plot", "./new.svg"),
        ("oracle", "a.json", "--eta", "0.1", "--oracle", "cells", "--out", "a.json"),
        ("oracle", "a.json", "--eta", "0.1", "--write-model", "a.csv"),
        ("learn", "learning.json", "--sizes", "5", "--out", "."),
        ("show", "picture.png", "--plot", "picture.png"),
        ("solve", "picture.png", "--plot", "picture.png"),
    ],
)
def test_an_output_never_replaces_what_is_read_or_another_output(capsys, tabled, words):
    for name in ("learning.json", "picture.png"):
        (tabled / name).write_bytes((tabled / "a.json").read_bytes())
    before = {path: path.read_bytes() for path in tabled.iterdir()}
    status, out, err = run(capsys, *words)
    assert (status, out) == (2, "")
    assert "choose another name" in err or "there is no folder" in err
    assert {path: path.read_bytes() for path in tabled.iterdir()} == before


def test_an_earlier_result_is_replaced(capsys, tabled):
    for _ in range(2):
        words = ("certify", "a.json", "--out", "proof.json", "--movers", "movers.csv")
        assert run(capsys, *words)[0] == 0
    assert (tabled / "proof.json").exists()


@pytest.mark.parametrize(
    "words", [("bench", "export", "run", "-o", "run/records.jsonl"),
              ("report", "run", "-o", "run/run.json")],
)  # fmt: skip
def test_the_files_of_a_run_are_not_replaced(capsys, tabled, words):
    (tabled / "run").mkdir()
    (tabled / "run" / "run.json").write_text('{"format": "mipmech/run@1", "plan": null}')
    (tabled / "run" / "records.jsonl").write_text("")
    status, _, err = run(capsys, *words)
    assert status == 2
    assert "is read by this command" in err


# ------------------------------------------------------------------ a disk that is full at the end


@pytest.fixture
def sample(tmp_path):
    path = tmp_path / "sample.json"
    make_instance("gaussian-mixture", 20, 2, seed=3).save(path)
    return path


@pytest.fixture
def full(sample, monkeypatch):
    """Outputs can be tried, but there is no room for what is written."""
    assert sample.exists()

    def failing(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", failing)


RESULTS = {
    "show": (("show", "--plot", "a.png"), "theorem2", "Theorem 2"),
    "oracle": (
        ("oracle", "--eta", "0.2", "--oracle", "cells", "--out", "a.json", "--plot", "a.png"),
        "density", "accept if",
    ),
    "solve": (("solve", "--oracle", "projection", "--plot", "a.png"), "bound", "accept if"),
    "certify": (("certify", "--out", "a.json", "--plot", "a.png"), "lower_exact", "accept if"),
    "learn": (
        ("learn", "--sizes", "5", "--repeats", "1", "--out", "folder", "--plot", "a.png"),
        "points", "theorem",
    ),
}  # fmt: skip


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize("kind", RESULTS)
def test_the_result_is_printed_though_its_files_are_lost(
    capsys, sample, monkeypatch, tmp_path, kind
):
    monkeypatch.chdir(tmp_path)
    (command, *options), key, words = RESULTS[kind]
    status, out, err = run(capsys, command, sample, *options)
    assert status == 2
    assert words in out
    assert "Picture of" not in out
    assert "Certificate (" not in out
    assert err.startswith("error: ")
    assert err.count("no space left on device") == sum(o in ("--plot", "--out") for o in options)
    assert err.count("\n") == 1
    status, out, err = run(capsys, command, sample, *options, "--json")
    assert (status, err) == (2, "")
    shown = json.loads(out)
    assert key in shown
    assert shown["plot"] is None
    assert shown.get("certificate") is None
    assert shown.get("file") is None
    assert "no space left on device" in shown["error"]["message"]


def test_ctrl_c_while_drawing_keeps_the_result(capsys, sample, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("mipmech.plots.rule.save", interrupted)
    status, out, err = run(capsys, "show", sample, "--plot", tmp_path / "a.png")
    assert status == 2
    assert "accept if" in out
    assert "plot: was not written: interrupted" in err


def test_a_bug_in_a_picture_is_not_hidden_but_comes_after_the_result(
    capsys, sample, tmp_path, monkeypatch
):
    def broken(*_):
        raise ZeroDivisionError

    monkeypatch.setattr("mipmech.plots.rule.save", broken)
    with pytest.raises(ZeroDivisionError):
        main(["show", str(sample), "--plot", str(tmp_path / "a.png")])
    assert "accept if" in capsys.readouterr().out


@pytest.mark.slow
def test_a_disk_that_is_full_in_truth(sample, tmp_path):
    """As a process: no file may become longer than 1,000 bytes."""
    for options, key in ((("--json",), "lower_exact"), ((), "best gain")):
        files = [tmp_path / "proof.json", tmp_path / "proof.png"]
        done = subprocess.run(
            [sys.executable, "-m", "mipmech", "certify", str(sample), "--out", files[0],
             "--plot", files[1], *options],
            cwd=ROOT, capture_output=True, text=True, check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
        )  # fmt: skip
        assert done.returncode == 2, done.stderr
        assert key in done.stdout
        said = json.loads(done.stdout)["error"]["message"] if options else done.stderr
        assert said.count("file too large") == 2
        assert "Traceback" not in done.stderr
        assert sorted(tmp_path.iterdir()) == [sample]  # nothing half written


def test_what_could_be_written_is_there(capsys, sample, tmp_path):
    proof, picture = tmp_path / "proof.json", tmp_path / "proof.png"
    assert run(capsys, "certify", sample, "--out", proof, "--plot", picture)[0] == 0
    lower = certify(Instance.load(sample)).lower
    assert json.loads(proof.read_text())["lower"]["exact"] == str(lower)
    assert picture.read_bytes().startswith(b"\x89PNG")
