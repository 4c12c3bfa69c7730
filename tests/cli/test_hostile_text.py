"""Texts of files on the terminal: they are shown, and neither act on it nor fill it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from mipmech.text import LONGEST_LINE, printable
from tests.checker.test_check import attested, changed, made, put
from tests.conftest import ROOT
from tests.fuzz.kinds import ALL_FIELDS, PLAN, RULE
from tests.fuzz.mutations import HOSTILE
from tests.fuzz.test_files import assert_harmless, run
from tests.report.runs import MadeUp, everything

TEXTS = [*HOSTILE, "y" * 10**6, "\x1b" * 10**6, "word " * 10**5]
RUN_COMMANDS = (
    ("bench", "status"),
    ("bench", "export"),
    ("bench", "merge", "--out", "merged"),
    ("report", "--format", "md"),
    ("report", "--format", "csv"),
    ("report", "-o", "report.html"),
)


def assert_plain(*arguments, statuses=(0, 1, 2)) -> str:
    """Run a command in words and as JSON; what it said in words."""
    status, out, err = run([str(a) for a in arguments])
    assert status in statuses, err
    assert_harmless(out + err)
    assert err.count("\n") == (status == 2)
    assert len(out.splitlines()) < 400
    status, json_, err = run([*(str(a) for a in arguments), "--json"])
    assert json_.isascii()
    assert json_.count("\n") == 1
    assert err == ""
    json.loads(json_)
    return out


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: repr(text[:12]))
def test_the_name_of_a_solver(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    instance, content = made("square")
    instance.save("instance.json")
    content = changed(content, attested, put("proof.solver", text))
    (tmp_path / "proof.json").write_text(json.dumps(content))
    whole = not any(0xD800 <= ord(character) < 0xE000 for character in text)
    out = assert_plain(
        "check", "proof.json", "--instance", "instance.json", statuses=(int(not whole),)
    )
    assert out.startswith("accepted, attested: proof.json\n" if whole else "REJECTED: proof.json\n")
    # What goes on below itself is indented: no line can be taken for a verdict.
    assert all(line.startswith("  ") for line in out.splitlines()[1:])
    assert "NOT verified" not in out


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: repr(text[:12]))
@pytest.mark.parametrize("field", ["claim.kind", "level", "proof.kind", "instance.path", "format"])
def test_texts_of_a_certificate(tmp_path, monkeypatch, field, text):
    monkeypatch.chdir(tmp_path)
    instance, content = made("square")
    instance.save("instance.json")
    key = field.split(".")[0]
    assert key in content
    content = changed(content, put(field, text))
    (tmp_path / "proof.json").write_text(json.dumps(content))
    assert_plain("check", "proof.json", statuses=(1, 2))


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: repr(text[:12]))
@pytest.mark.parametrize(
    "place",
    [
        "name",
        "source",
        "features",
        "ids",
        "how",
        "key",
        "csv",
        "grouping",
        "group",
        "unknown field",
    ],
)
def test_texts_of_an_instance(tmp_path, monkeypatch, place, text):
    monkeypatch.chdir(tmp_path)
    content = json.loads(json.dumps(ALL_FIELDS))
    if place in ("name", "source"):
        content[place] = text
    elif place == "features":
        content["features"], content["visible"] = [text, "b"], [0, 1]
    elif place == "ids":
        content["ids"][0] = text
    elif place == "grouping":
        content["groups"] = {text: ["f", "m", "m", "f"]}
    elif place == "group":
        content["groups"]["sex"][0] = text
    elif place == "how":
        content["known"]["how"] = text
    elif place == "key":
        content["quality"] = {text: 1.0}
    elif place == "csv":
        content["agents"] = {"csv": text}
    else:
        content[text] = 1
    (tmp_path / "a.json").write_text(json.dumps(content))
    assert_plain("show", "a.json")
    assert_plain("grade", "a.json", "--rule", '{"b": 1}', "--threshold", "2")


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: repr(text[:12]))
def test_texts_of_a_rule_and_a_plan(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.json").write_text(json.dumps(ALL_FIELDS))
    for rule in ({"weights": {text: 1.0}, "threshold": 1.0}, {**RULE, text: 1}):
        (tmp_path / "rule.json").write_text(json.dumps(rule))
        assert_plain("grade", "a.json", "--rule", "rule.json")
    (tmp_path / "square.json").write_bytes((ROOT / "instances/tiny/square.json").read_bytes())
    quoted = json.dumps(text).replace("\x7f", "\\u007f")
    for old in ('"a plan"', '"square.json"', '"mipmech/plan@1"', '"certify"', '"ties"', '"1 GB"'):
        (tmp_path / "plan.toml").write_text(PLAN.replace(old, quoted))
        out = assert_plain("bench", "plan.toml", "--dry-run")
        assert not out or out.count("\n") > 20


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS, ids=lambda text: repr(text[:12]))
def test_texts_of_a_run(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    made_up = stuffed(text)
    made_up.write(tmp_path / "run")
    for group, *words in RUN_COMMANDS:
        name = [words.pop(0)] if group == "bench" else []
        status, out, err = run([group, *name, "run", *words])
        assert status == 0, err
        for line in (out + err).split("\n"):
            # Fields of a table may be long, as in a file.
            assert_harmless(line if name != ["export"] and "csv" not in words else line[:100])
    (tmp_path / "run" / "run.json").write_text(json.dumps({"format": text, "plan": text}))
    assert_plain("bench", "status", "run", statuses=(2,))


def stuffed(text: str) -> MadeUp:
    """A run whose texts are all this one."""
    made_up = everything(1, 1)
    made_up.plan["name"] = made_up.plan["text"] = text
    made_up.plan["left_out"] = made_up.plan["broken"] = [text]
    for subject in made_up.plan["subjects"]:
        subject["name"] = subject["group"] = text
    for record in made_up.records:
        record["worker"] = text
        if record["status"] != "done":
            record["reason"] = text
        else:
            record["made_by"] = {**record["made_by"], text: text}
    return made_up


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_terminals_that_know_few_characters(tmp_path, encoding):
    stuffed("η \ud800 \x1b[2J 例").write(tmp_path / "run")
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONPATH": str(ROOT)}
    sample = str(ROOT / "instances" / "tiny" / "square.json")
    for arguments in (
        ["--help"],
        ["show", sample],
        ["show", "no-\udcff-é.json"],
        ["bench", "status", "run"],
        ["bench", "export", "run"],
        ["report", "run", "--format", "md"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "mipmech", *arguments],
            cwd=tmp_path, env=environment, capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == (2 if "no-" in arguments[-1] else 0)
        assert b"Traceback" not in done.stderr
        assert b"\x1b" not in done.stdout + done.stderr


def test_a_line_is_cut_in_the_middle():
    assert printable("short") == "short"
    assert len(printable("x" * 10**6)) == LONGEST_LINE
    assert printable("a\r\nb\u2028c\x9b") == "a  b c\ufffd"
