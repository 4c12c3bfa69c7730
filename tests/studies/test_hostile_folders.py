"""Folders of runs that a stranger filled: going on in one changes nothing outside it."""

from __future__ import annotations

import json

import pytest

from mipmech.cli import main
from mipmech.studies.batch.folder import LOCK, MARK, PLANS, RECORDS
from tests.conftest import ROOT
from tests.report.runs import line

SQUARE = str(ROOT / "instances" / "tiny" / "square.json")
COMPARE = [
    "compare", SQUARE, "--oracles", "random", "--etas", "0.5", "--seeds", "0", "--workers", "1",
    "--seconds-per-call", "0.5", "--reference-seconds", "1", "--quiet", "--out", "run",
]  # fmt: skip

READERS = (
    ["bench", "status", "run"],
    ["bench", "export", "run", "-o", "table.csv"],
    ["bench", "merge", "run", "--out", "merged"],
    ["report", "run", "-o", "page.html"],
)


@pytest.mark.parametrize("name", [LOCK, MARK, RECORDS, PLANS, "instances", "certificates"])
def test_a_link_in_the_folder_is_not_written_through(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    assert main(COMPARE) == 0
    capsys.readouterr()
    place, outside = tmp_path / "run" / name, tmp_path / "outside"
    place.rename(outside)
    place.symlink_to(outside)
    before = _content(outside)
    for command in (COMPARE, *READERS):
        assert main(command) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"error: run/{name}: is a link")
        assert error.count("\n") == 1
    assert _content(outside) == before
    assert not (tmp_path / "merged").exists()


def test_endless_records_are_not_read(tmp_path, monkeypatch):
    """A plain file, to the system, which never ends."""
    monkeypatch.chdir(tmp_path)
    assert main(COMPARE) == 0
    (tmp_path / "run" / RECORDS).unlink()
    (tmp_path / "run" / RECORDS).symlink_to("/proc/self/pagemap")
    for command in (COMPARE, *READERS):
        assert main(command) == 2


def test_a_folder_where_a_half_written_file_may_be(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(COMPARE) == 0
    (tmp_path / "run" / PLANS / ".a.json.b").mkdir()
    capsys.readouterr()
    assert main(COMPARE) == 2
    assert capsys.readouterr().err.startswith(f"error: run/{PLANS}/.a.json.b: cannot be removed")


@pytest.mark.parametrize("folder", [PLANS, "instances", "certificates"])
def test_nor_is_one_in_a_folder_within_it(tmp_path, monkeypatch, capsys, folder):
    monkeypatch.chdir(tmp_path)
    assert main(COMPARE) == 0
    capsys.readouterr()
    outside = tmp_path / "outside"
    outside.write_text("mine")
    link = tmp_path / "run" / folder / "link.json"
    link.symlink_to(outside)
    assert main(COMPARE) == 2
    assert capsys.readouterr().err.startswith(f"error: run/{folder}/link.json: is a link")
    assert outside.read_text() == "mine"


def test_the_folder_itself_may_be_a_link(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").symlink_to("elsewhere")
    assert main(COMPARE) == 0
    assert (tmp_path / "elsewhere" / MARK).is_file()


def test_numbers_of_a_plan_are_finite(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(COMPARE) == 0
    (plan,) = (tmp_path / "run" / PLANS).iterdir()
    text = plan.read_text()
    assert '"jobs": [' in text
    plan.write_text(text.replace('"jobs": [', '"more": NaN, "jobs": [', 1))
    capsys.readouterr()
    assert main(["bench", "status", "run"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: run/{PLANS}/{plan.name}: has 'NaN' where a number")


def _content(place):
    if place.is_file():
        return place.read_bytes()
    return {path.name: path.read_bytes() for path in place.iterdir()}


def test_a_mark_with_half_a_character(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(COMPARE) == 0
    (tmp_path / "run" / MARK).write_text('{"format": "mipmech/run@1", "plan": "\\ud800p"}')
    capsys.readouterr()
    for command in READERS:
        assert main(command) in (0, 2)
        assert capsys.readouterr().err.count("\n") <= 1


def test_a_call_that_nobody_asked_for(tmp_path, monkeypatch, capsys):
    """A record of the comparison's own job may hold an η that the comparison has not."""
    monkeypatch.chdir(tmp_path)
    assert main(COMPARE) == 0
    records = tmp_path / "run" / RECORDS
    changed = []
    for text in records.read_text().splitlines():
        content = json.loads(text)
        del content["check"]
        for call in (content.get("result") or {}).get("calls", []):
            call["eta_fraction"] = 0.75
        changed.append(line(content))
    records.write_bytes(b"".join(changed))
    capsys.readouterr()
    assert main([*COMPARE, "--json"]) in (0, 1)
    assert json.loads(capsys.readouterr().out)["format"]
