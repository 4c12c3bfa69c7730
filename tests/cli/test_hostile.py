"""Files that are none, wherever one can be named: one line at once, and exit status 2."""

from __future__ import annotations

import json
import os
import signal
import socket

import numpy as np
import pytest

from mipmech import certify, make_instance
from mipmech.cli import main
from mipmech.studies.batch import Plan, run_plan
from tests.batches import HEAD, write_plan

RULE = ("--rule", '{"x": 1}', "--threshold", "1")
# What each command reads; @ stands for the file that is none.
READERS = {
    "show": ["show", "@"],
    "certify": ["certify", "@"],
    "certify over a picture": ["certify", "@", "--plot", "old.png"],
    "solve": ["solve", "@"],
    "oracle": ["oracle", "@", "--eta", "0.5"],
    "compare": ["compare", "@", "--oracles", "pca"],
    "grade": ["grade", "@", *RULE],
    "a rule": ["grade", "good.json", "--rule", "@"],
    "a certified optimum": [
        "grade",
        "good.json",
        "--rule",
        '{"x0": 1}',
        "--threshold",
        "1",
        "--certified",
        "@",
    ],
    "check": ["check", "@"],
    "check --instance": ["check", "good.cert.json", "--instance", "@"],
    "bench run": ["bench", "run", "@"],
    "bench status": ["bench", "status", "@"],
    "bench export": ["bench", "export", "@"],
    "bench merge": ["bench", "merge", "@", "--out", "merged"],
    "report": ["report", "@", "-o", "page.html"],
    "learn": ["learn", "@"],
    "new": ["new", "@", "--quality", "a=1", "--visible", "a", "--cost", "1", "-o", "new.json"],
}
KINDS = ("pipe", "device", "socket", "link to a pipe")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with good files; nobody waits for longer than a few seconds in it."""
    monkeypatch.chdir(tmp_path)
    sample = make_instance("gaussian-mixture", 20, 2, seed=1)
    sample.save("good.json")
    certify(sample).save("good.cert.json")
    (tmp_path / "old.png").write_bytes(b"")
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it waits"))
    signal.alarm(20)
    yield tmp_path
    signal.alarm(0)


def put(place, kind):
    if kind == "device":
        place.symlink_to("/dev/zero")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(place.name if place.parent == place.cwd() else str(place))
    elif kind == "link to a pipe":
        os.mkfifo(place.with_name("pipe"))
        place.symlink_to("pipe")
    else:
        os.mkfifo(place)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", READERS)
def test_what_is_no_file_is_refused_at_once(capsys, here, what, kind):
    put(here / "evil.json", kind)
    status = main(["evil.json" if word == "@" else word for word in READERS[what]])
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert "evil.json: " in err
    folder = what.startswith("bench ") and what != "bench run"
    assert ("plain file" in err) or folder or what == "report"


@pytest.mark.parametrize("kind", KINDS)
def test_instances_of_a_plan(capsys, here, kind):
    put(here / "evil.json", kind)
    text = f'{HEAD}[[instances]]\nfiles = ["*.json"]\n[[tasks]]\ntask = "certify"\n'
    (here / "plan.toml").write_text(text)
    assert main(["bench", "run", "plan.toml", "--dry-run", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["broken"]
    assert any("evil.json: cannot be read: it is not a plain file" in line for line in told)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["run.json", "records.jsonl", "plans"])
def test_parts_of_a_run(capsys, here, name, kind):
    text = HEAD + '[[instances]]\nfamily = "ties"\nagents = 12\n[[tasks]]\ntask = "certify"\n'
    run_plan(Plan.load(write_plan(here, text)), here / "run")
    part = here / "run" / name
    if name == "plans":
        (part,) = part.iterdir()
    part.unlink()
    put(part, kind)
    commands = [["bench", "status", "run"], ["report", "run", "--format", "md"]]
    if name != "plans":  # which the others do not need
        commands += [["bench", "export", "run"], ["bench", "merge", "run", "--out", "merged"]]
    for command in commands:
        assert main(command) == 2, command
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert ("is a link" if "link" in kind or kind == "device" else "not a plain file") in err


@pytest.mark.parametrize("word", ["x" * 300, "x=1," * 100, "{" + "x" * 5000])
@pytest.mark.usefixtures("here")
def test_words_that_are_too_long_for_the_name_of_a_file(capsys, word):
    for arguments in (
        ["show", word], ["check", word], ["compare", word, "--oracles", "pca"], ["learn", word],
        ["grade", "good.json", "--rule", word], ["bench", "run", word], ["report", word],
        ["bench", "status", word],
    ):  # fmt: skip
        assert main(arguments) == 2, arguments
        assert capsys.readouterr().err.startswith("error: ")


# ------------------------------------------------------------------ small files that ask for much


def wide(agents, **fields):
    """An instance file with many features."""
    n = len(agents[0])
    given = {
        "format": "mipmech/instance@1", "name": "wide", "agents": agents, "quality": [1.0] * n,
        "visible": [0], "cost": 1, **fields,
    }  # fmt: skip
    return json.dumps(given)


def rows_of(count, n):
    """Rows that depend on each other, with numbers of all sizes."""
    random = np.random.default_rng(0)
    rows = random.standard_normal((count, n)) * 10.0 ** random.integers(-100, 90, (count, n))
    return [*rows.tolist(), (rows[0] * 2).tolist()]


LARGE = {
    "features": (wide([[0.0] * 10_001]), "agents: has 10,001 features; at most 10,000"),
    "seen": (wide([[0.0] * 9000], visible=list(range(9000))), "visible: has 9,000 of 9,000"),
    "rows of a view": (
        wide([[0.0] * 120], view=rows_of(119, 120), visible=None).replace('"visible": null, ', ""),
        "view: has 120 rows, at most 50",
    ),
    "dimensions of a projection": (
        wide([[0.0] * 60], projection=np.eye(60).tolist(), visible=None).replace(
            '"visible": null, ', ""
        ),
        "projection: shows 60 dimensions, at most 50",
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_instances_that_are_too_wide(here, capsys, name):
    text, said = LARGE[name]
    (here / "wide.json").write_text(text)
    assert main(["show", "wide.json"]) == 2
    assert said in capsys.readouterr().err


def test_wide_instances_are_read_at_once(here):
    """Names are looked up, not searched for: 10,000 of them in quality, features and a header."""
    names = [f"f{j}" for j in range(10_000)]
    quality = dict.fromkeys(names, 1.0)
    text = wide([[0.0] * 10_000], features=names, quality=quality, visible=names[:300])
    (here / "wide.json").write_text(text)
    assert main(["show", "wide.json", "--json"]) == 0
    header, row = ",".join(names), ",".join(["1"] * 10_000)
    (here / "wide.csv").write_text(f"{header}\n{row}\n")
    content = {**json.loads(text), "agents": {"csv": "wide.csv"}, "features": names}
    (here / "table.json").write_text(json.dumps(content))
    assert main(["show", "table.json", "--json"]) == 0
    (here / "view.json").write_text(
        wide([[0.0] * 60], view=rows_of(49, 60), visible=None).replace('"visible": null, ', "")
    )
    main(["show", "view.json", "--json"])


@pytest.mark.usefixtures("here")
def test_without_memory_there_is_one_line(capsys, monkeypatch):
    def no_memory(*_, **__):
        raise MemoryError

    monkeypatch.setattr("mipmech.model.instance_file.parse", no_memory)
    assert main(["show", "good.json"]) == 2
    assert capsys.readouterr().err == "error: there is not enough memory for this\n"
