"""The kinds of files that are fuzzed: what a whole one is, and the commands that read it.

Each kind is a function of a folder and of a source of random numbers: it writes a changed file and
gives the command lines to be tried, with a further check of what they printed, if there is one.
"""

from __future__ import annotations

import functools
import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from mipmech import compare
from mipmech.checker.verdict import seal
from mipmech.studies.batch.folder import MARK, PLANS, RECORDS
from tests.checker.test_check import attested, best, changed, claim_nothing, made, refuted
from tests.conftest import ROOT
from tests.fuzz.mutations import json_bytes, with_a_change, with_other_bytes
from tests.report.runs import everything, line

TINY = ROOT / "instances" / "tiny"


class Case(NamedTuple):
    """Command lines, and what else must hold of what they print."""

    commands: list[list[str]]
    holds: Callable[[str], None] = lambda _: None


def changed_file(random: Random, value: Any, values: float = 0.75) -> bytes:
    """JSON with changed values, or with changed bytes."""
    if random.random() < values:
        return json_bytes(with_a_change(random, value))
    return with_other_bytes(random, json_bytes(value))


# ------------------------------------------------------------------ instances and their tables

TABLE = "name,a,b,c,g\nAnn,0.5,1,2,f\nBo,1.5,-1,3,m\nCy,0,2.25,1,f\nDi,1e-3,0.75,2,x\n"
SELECTED = {
    "format": "mipmech/instance@1", "name": "of a table", "agents": {"csv": "table.csv"},
    "features": ["a", "b"], "quality": {"a": 1, "b": 0.5}, "visible": ["a"],
    "cost": {"column": "c"}, "ids": {"column": "name"},
    "groups": {"g": {"column": "g"}},
}  # fmt: skip
ALL_FIELDS = {
    "format": "mipmech/instance@1", "name": "all fields", "source": "a test",
    "agents": [[0.0, 1.0], [1.0, 0.5], [0.25, 2.0], [3.0, -1.0]], "features": ["a", "b"],
    "quality": [1.0, 0.5], "quality_offset": 0.25, "visible": ["a", "b"],
    "cost": [1.0, 2.0, 0.5, 1.0], "weights": [1.0, 2.0, 0.0, 1.0], "ids": ["p", "q", "r", 7],
    "units": {"centre": [1.0, 2.0], "scale": [2.0, 0.5]},
    "groups": {"sex": ["f", "m", "m", "f"], "school": [7, 8, "7", 9]},
    "smoothing": {"sigma": 0.5, "radius": 10.0},
    "known": {"gain": [0.0, 5.0], "how": "by hand", "densities": [[0.5, 0.0, 1.0]]},
}  # fmt: skip


@functools.cache
def _whole_instances() -> list[Any]:
    files = [json.loads(path.read_text()) for path in sorted(TINY.glob("*.json"))]
    return [ALL_FIELDS, ALL_FIELDS, *files]


def _searched(random: Random, file: Path) -> list[list[str]]:
    """Show an instance; now and then, search for a rule on it as well."""
    commands = [["show", str(file), "--seconds", "2"]]
    if random.random() < 0.05:
        more = random.choice(
            [
                ["certify", str(file), "--gap", "0.1", "--threads", "1"],
                ["oracle", str(file), "--eta-fraction", "0.5", "--oracle", "cells"],
                ["solve", str(file), "--oracle", "projection"],
            ]
        )
        commands.append([*more, "--seconds", "2"])
    return commands


def instances(folder: Path, random: Random) -> Case:
    file = folder / "instance.json"
    file.write_bytes(changed_file(random, random.choice(_whole_instances())))
    return Case(_searched(random, file))


def csv(folder: Path, random: Random) -> Case:
    table, file = folder / "table.csv", folder / "instance.json"
    table.write_bytes(with_other_bytes(random, TABLE.encode()))
    file.write_bytes(json_bytes(SELECTED))
    new = ["new", str(table), "--quality", "a=1,b=0.5", "--visible", "a", "--cost", "c"]
    new += ["--groups", "g"]
    return Case([*_searched(random, file), [*new, "-o", str(folder / "new.json")]])


def npy(folder: Path, random: Random) -> Case:
    buffer = io.BytesIO()
    kind = random.choice(("<f8", ">f4", "<i4", "<u2"))
    np.save(buffer, np.array(ALL_FIELDS["agents"]).astype(kind))
    (folder / "table.npy").write_bytes(with_other_bytes(random, buffer.getvalue()))
    (folder / "instance.json").write_bytes(
        json_bytes({**ALL_FIELDS, "agents": {"npy": "table.npy"}})
    )
    return Case(_searched(random, folder / "instance.json"))


# ------------------------------------------------------------------ rules

RULE = {"weights": {"a": 2.0, "b": 1.0}, "threshold": 3.5}


def rules(folder: Path, random: Random) -> Case:
    sample, rule = folder / "instance.json", folder / "rule.json"
    sample.write_bytes(json_bytes(ALL_FIELDS))
    whole = random.choice(
        [RULE, RULE["weights"], {"mechanism": {"weights": [1.0, 0.5], "threshold": 1.0}}]
    )
    rule.write_bytes(changed_file(random, whole))
    command = ["grade", str(sample), "--rule", str(rule)]
    return Case([command if random.random() < 0.5 else [*command, "--threshold", "3"]])


# ------------------------------------------------------------------ plans

PLAN = """format = "mipmech/plan@1"
name = "a plan"
[limits]
seconds = 2
memory = "1 GB"
[[instances]]
files = ["square.json"]
[[instances]]
family = ["gaussian-mixture", "ties"]
agents = [12, 14]
rank = 2
seed = 7
[[tasks]]
task = "oracle"
oracle = ["cells", "random"]
eta_fraction = [1, 0.5]
[[tasks]]
task = "solve"
skip = "cells"
[[tasks]]
task = "certify"
gap = 1e-2
[[tasks]]
task = "compare"
oracles = ["cells", "random"]
seeds = [0, 1]
"""


def plans(folder: Path, random: Random) -> Case:
    (folder / "square.json").write_bytes((TINY / "square.json").read_bytes())
    plan = folder / "plan.toml"
    plan.write_bytes(with_other_bytes(random, PLAN.encode()))
    return Case([["bench", str(plan), "--dry-run"]])


# ------------------------------------------------------------------ certificates

CERTIFIED = (
    "square", "touching", "cloud", "hidden-quality", "costs", "view",
    "l1-prices", "linf", "prices", "spill-over",
)  # fmt: skip


def certificates(folder: Path, random: Random) -> Case:
    """Sealed again, so that the checksum never gives a change away; half of them claim too much."""
    name = random.choice(CERTIFIED)
    instance, content = made(name)
    if random.random() < 0.5:
        content = changed(content, claim_nothing(random.choice((0.5, 0.9, 0.999)) * best(name)))
    elif random.random() < 0.2:
        content = changed(content, attested)
    found = with_a_change(random, content)
    if isinstance(found, dict) and random.random() < 0.95:
        found["seal"] = seal(found)
    instance.save(folder / "instance.json")
    file = folder / "certificate.json"
    data = json_bytes(found)
    file.write_bytes(data if random.random() < 0.9 else with_other_bytes(random, data))
    level = random.choice(("any", "proved"))
    check = ["check", str(file), "--instance", str(folder / "instance.json"), "--seconds", "2"]

    def proved_is_true(printed: str) -> None:
        if printed.startswith("accepted, proved: "):
            claimed = {"witness": None, **json.loads(file.read_bytes())}
            assert refuted(claimed, instance) is None

    return Case([[*check, "--level", level]], proved_is_true)


# ------------------------------------------------------------------ records and folders of runs


@functools.cache
def _run() -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, bytes]]:
    """The plan of a run, its records, and its other files by their names."""
    whole = everything(1, 2)
    with tempfile.TemporaryDirectory() as name:
        whole.write(Path(name))
        kept = {path.name: path.read_bytes() for path in Path(name).glob("instances/*")}
    return whole.plan, whole.records, kept


def _write_run(folder: Path, mark: bytes, plan: bytes, records: bytes) -> list[list[str]]:
    """A run's folder; the commands that read one, or a few of them."""
    run, others = folder / "run", _run()[2]
    for part in (PLANS, "instances"):
        (run / part).mkdir(parents=True, exist_ok=True)
    for name, data in others.items():
        (run / "instances" / name).write_bytes(data)
    (run / MARK).write_bytes(mark)
    (run / PLANS / "p.json").write_bytes(plan)
    (run / RECORDS).write_bytes(records)
    return [
        ["bench", "status", str(run)],
        ["bench", "export", str(run), "-o", str(folder / "table.csv")],
        ["bench", "merge", str(run), "--out", str(folder / "merged")],
        ["report", str(run), "--format", "md", "-o", str(folder / "report.md")],
        ["report", str(run), "--format", "csv", "-o", str(folder / "report.csv")],
    ]


MARKED = {"format": "mipmech/run@1", "plan": "p"}


def records(folder: Path, random: Random) -> Case:
    plan, whole, _ = _run()
    lines = [line(record) for record in whole]
    for _ in range(random.choice((1, 2, 5))):
        place = random.randrange(len(whole))
        found = with_a_change(random, whole[place])
        lines[place] = line(found) if isinstance(found, dict) else json_bytes(found) + b"\n"
    data = b"".join(lines)
    data = data if random.random() < 0.9 else with_other_bytes(random, data)
    commands = _write_run(folder, json_bytes(MARKED), json_bytes(plan), data)
    rare = [
        ["report", str(folder / "run"), "-o", str(folder / "report.html")],
        ["bench", "export", str(folder / "run"), "--format", "parquet", "-o", str(folder / "t")],
    ]
    return Case([*commands, *(rare if random.random() < 0.1 else [])])


COMPARED = ["--oracles", "sweep,random", "--etas", "0.9,0.5", "--seeds", "0,1", "--workers", "1"]
LIMITED = ["--seconds-per-call", "1", "--reference-seconds", "1", "--quiet"]


@functools.cache
def _comparison() -> dict[str, bytes]:
    """The files of a run that `compare` left, by their places in its folder."""
    with tempfile.TemporaryDirectory() as name:
        run = Path(name) / "run"
        settings = {"seconds_per_call": 1, "reference_seconds": 1, "workers": 1, "out": run}
        compare(
            TINY / "square.json", ["sweep", "random"], eta_fractions=[0.9, 0.5], seeds=[0, 1],
            **settings,
        )  # fmt: skip
        return {
            str(path.relative_to(run)): path.read_bytes()
            for path in run.rglob("*")
            if path.is_file()
        }


def resumed(folder: Path, random: Random) -> Case:
    """A comparison that goes on in a folder whose files are not what they were."""
    whole = _comparison()
    which = random.choice([RECORDS, RECORDS, RECORDS, *whole])
    for name, data in whole.items():
        file = folder / "run" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if name == which == RECORDS:
            lines = data.splitlines()
            place = random.randrange(len(lines))
            found = with_a_change(random, {**json.loads(lines[place])})
            found.pop("check", None)
            lines[place] = line(found)[:-1]
            file.write_bytes(b"".join(row + b"\n" for row in lines))
        else:
            file.write_bytes(with_other_bytes(random, data) if name == which else data)
    command = ["compare", str(TINY / "square.json"), *COMPARED, *LIMITED, "--seconds", "2"]
    return Case(
        [[*command, "--out", str(folder / "run")], ["bench", "status", str(folder / "run")]]
    )


def folders(folder: Path, random: Random) -> Case:
    plan, whole, _ = _run()
    mark, written = json_bytes(MARKED), json_bytes(plan)
    data = b"".join(line(record) for record in whole)
    which = random.random()
    if which < 0.1:
        mark = changed_file(random, MARKED)
    elif which < 0.9:
        written = changed_file(random, plan)
    else:
        data = with_other_bytes(random, data)
    return Case(_write_run(folder, mark, written, data))


# Each with what one of its cases costs, in those of the cheapest.
KINDS: dict[str, tuple[Callable[[Path, Random], Case], int]] = {
    "instances": (instances, 4),
    "csv": (csv, 8),
    "npy": (npy, 4),
    "rules": (rules, 2),
    "plans": (plans, 4),
    "certificates": (certificates, 1),
    "records": (records, 20),
    "folders": (folders, 20),
    "resumed": (resumed, 40),
}
