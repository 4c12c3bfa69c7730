"""`mipmech bench` as people use it: what is printed, on a terminal and in a log."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess

import pytest

from mipmech.cli import main
from tests import batches
from tests.batches import HEAD, SMALL, write_plan
from tests.conftest import ROOT


def run(capsys, *words):
    status = main(["bench", *map(str, words)])
    return status, *capsys.readouterr()


@pytest.fixture
def plan(tmp_path):
    return write_plan(tmp_path, SMALL)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    batches.bench(write_plan(folder, SMALL), "--workers", "2")
    return folder


def test_a_dry_run_shows_the_jobs_and_does_nothing(plan, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    status, out, err = run(capsys, plan, "--dry-run", "--workers", "2")
    assert (status, err) == (0, "")
    assert "oracle sweep at η = 0.5 ‖P w_f‖ on gaussian-mixture-m15-k2-s1" in " ".join(out.split())
    assert "6 on 2 instances; 6 to do in" in out
    assert "about 1:30 on 2 workers, at most 3:00" in " ".join(out.split())
    assert not plan.with_suffix(".run").exists()


def test_a_dry_run_knows_what_is_done(finished, capsys):
    status, out, _ = run(capsys, finished / "plan.toml", "--dry-run", "--json")
    found = json.loads(out)
    assert status == 0
    assert found["left"] == 0
    assert all(job["status"] == "done" for job in found["jobs"])
    assert found["seconds"] == {"expected": 0.0, "most": 0.0}


def test_many_jobs_are_not_all_shown(tmp_path, capsys):
    plan = write_plan(tmp_path, batches.TWO_HUNDRED)
    _, out, _ = run(capsys, plan, "--dry-run")
    assert "… and 170 more (--json lists all)" in out
    _, out, _ = run(capsys, plan, "--dry-run", "--json")
    assert len(json.loads(out)["jobs"]) == 200
    _, out, _ = run(capsys, plan, "--dry-run", "--json", "--part", "2/3")
    assert len(json.loads(out)["jobs"]) == 67


@pytest.mark.slow
def test_a_log_gets_lines(plan):
    done = subprocess.run(
        batches.command(plan, "--workers", "2"), capture_output=True, text=True, check=True
    )
    first, *_, last = done.stderr.splitlines()
    assert first.startswith("0 of 6 done, about ")
    assert re.fullmatch(r"6 of 6 done, [\d.]+ jobs/(s|min)", last)
    assert "6: 0 were on record, 6 done now; all on record" in done.stdout


@pytest.mark.slow
def test_a_terminal_gets_a_bar(plan):
    """The bar is drawn on stderr, the result on stdout."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        batches.command(plan, "--workers", "1"), stdout=subprocess.PIPE, stderr=theirs, text=True,
        env=batches.environment(TERM="xterm", COLUMNS="120"),
    ) as process:  # fmt: skip
        os.close(theirs)
        drawn = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            drawn += part
        out = process.stdout.read()
    os.close(ours)
    assert process.returncode == 0
    text = drawn.decode(errors="replace")
    assert "6/6" in text
    assert "jobs/s" in text
    assert "done now" in out


def test_status(finished, capsys):
    status, out, _ = run(capsys, "status", finished / "plan.run")
    assert status == 0
    assert "6 of 6 on record" in out
    assert re.search(r"certify auto\s+2\b", out)
    assert re.search(r"at work\s+nobody", out)
    _, out, _ = run(capsys, "status", finished / "plan.run", "--json")
    assert json.loads(out)["counts"] == {"done": 6}


def test_export_and_merge(finished, tmp_path, capsys):
    status, out, _ = run(capsys, "export", finished / "plan.run")
    assert status == 0
    assert len(out.splitlines()) == 7
    status, out, _ = run(
        capsys, "export", finished / "plan.run", "-o", tmp_path / "t.parquet", "--format", "parquet"
    )
    assert out == f"wrote {tmp_path / 't.parquet'}\n"
    status, out, _ = run(capsys, "merge", finished / "plan.run", "--out", tmp_path / "all")
    assert status == 0
    assert "6 records, 6 of them new; 0 were there more than once" in out


@pytest.mark.slow
def test_a_reader_that_goes_away_does_not_end_the_run(plan):
    """Whoever read the log has closed the pipe: the work goes on, and its status is true."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        batches.command(plan, "--workers", "1"), stdout=subprocess.PIPE, stderr=writer, check=False
    )
    os.close(writer)
    assert done.returncode == 0
    assert b"6 done now; all on record" in done.stdout


@pytest.mark.slow
def test_retrying_shows_what_is_tried_again(tmp_path, capsys):
    (tmp_path / "broken.json").write_text("{}")
    text = SMALL + "[[instances]]\nfiles = 'broken.json'\n"
    plan = write_plan(tmp_path, text)
    batches.bench(plan, "--workers", "2", status=1)
    _, out, _ = run(capsys, plan, "--dry-run", "--json")
    found = json.loads(out)
    assert found["left"] == 0
    assert [job["status"] for job in found["jobs"]].count("failed") == 3
    _, out, _ = run(capsys, plan, "--dry-run", "--json", "--retry", "failed")
    assert json.loads(out)["left"] == 3


FAULTS = {
    "no plan": ([], None, "Missing"),
    "no such plan": (["none.toml"], None, "cannot be read"),
    "part": (["plan.toml", "--part", "3/2"], "part", "give K/N"),
    "no part": (["plan.toml", "--part", "half"], "part", "give K/N"),
    "two executors": (
        ["plan.toml", "--workers", "1", "--local-cluster", "1"], "local_cluster", "go together",
    ),
    "workers": (["plan.toml", "--workers", "0"], "workers", "give 1 or more"),
    "retry": (["plan.toml", "--retry", "all"], None, "failed"),
    "status of nothing": (["status", "none"], None, "does not exist"),
    "export to no folder": (
        ["export", "plan.run", "-o", "no/where.csv"], "output", "cannot be written",
    ),
    "merge of nothing": (["merge", "none", "--out", "x"], None, "does not exist"),
}  # fmt: skip


@pytest.mark.parametrize("what", FAULTS)
def test_faults(what, plan, capsys, monkeypatch):
    monkeypatch.chdir(plan.parent)
    words, field, message = FAULTS[what]
    status, out, err = run(capsys, *words, *(["--json"] if words else []))
    assert status == 2
    if not words:  # help is shown instead
        assert "Usage" in out
        return
    assert err == ""
    error = json.loads(out)["error"]
    assert message in error["message"]
    assert error["field"] == field or field is None


def test_a_plan_with_the_name_of_a_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "status").write_text(HEAD)
    status, _, err = run(capsys, "./status")
    assert status == 2
    assert "instances: is missing" in err


def test_the_shipped_plans_are_plans(capsys):
    plans = sorted((ROOT / "instances" / "plans").glob("*.toml"))
    assert plans
    for path in plans:
        status, out, err = run(capsys, path, "--dry-run", "--json")
        assert status == 0, err
        assert json.loads(out)["broken"] == []


@pytest.mark.parametrize("option", [["--dry-run"], []])
def test_a_plan_that_is_too_long_for_its_time(plan, capsys, monkeypatch, option):
    monkeypatch.setattr("mipmech.studies.batch.jobs.ANYHOW", 0)
    status, out, err = run(capsys, plan, *option, "--seconds", "0")
    assert (status, out) == (2, "")
    assert "0 of 2 instances were read or made in the time allowed" in " ".join(err.split())
