"""Plans and runs for the tests of batches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from mipmech.studies.batch import RunFolder
from mipmech.studies.batch.folder import RECORDS

HEAD = 'format = "mipmech/plan@1"\nname = "a test"\n'
# Two hundred small jobs with results that hang on nothing but the instance: 10 × 4 × 5.
TWO_HUNDRED = (
    HEAD
    + """
[limits]
seconds = 60
[[instances]]
family = ["gaussian-mixture", "ties"]
agents = [12, 14, 16, 18, 20]
rank = 2
seed = 7
[[tasks]]
task = "oracle"
oracle = ["cells", "sweep", "random", "pca"]
eta_fraction = [1, 0.8, 0.6, 0.4, 0.2]
"""
)
SMALL = (
    HEAD
    + """
[[instances]]
family = "gaussian-mixture"
agents = 15
seed = [1, 2]
[[tasks]]
task = "oracle"
oracle = "sweep"
eta_fraction = [0.5, 0.25]
[[tasks]]
task = "certify"
gap = 1e-2
"""
)


def write_plan(folder: Path, text: str, name: str = "plan.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def command(*words) -> list[str]:
    return [sys.executable, "-m", "mipmech", "bench", *map(str, words)]


def start(*words, **options) -> subprocess.Popen:
    """`mipmech bench` in a process group of its own."""
    return subprocess.Popen(
        command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, **options,
    )  # fmt: skip


def bench(*words, status=0, **options):
    """Run `mipmech bench … --json` to its end; what it printed."""
    done = subprocess.run(
        command(*words, "--json"), capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == status, done.stdout + done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def lines(folder: Path) -> list[dict]:
    """Every line of a run's record; all of them must be whole."""
    content = (folder / RECORDS).read_bytes()
    assert content.endswith(b"\n")
    return [json.loads(line) for line in content.splitlines()]


def results(folder: Path) -> dict[str, object]:
    """What every job found, without what differs from run to run."""
    found = {}
    for key, record in RunFolder.open(folder).records().last.items():
        result = dict(record.result or {})
        result.pop("seconds", None)
        found[key] = (record.status, record.reason, record.bounds, result)
    return found


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, **more}
