"""A comparison loses nothing: killed and started again, cut short, or on a disk that is full."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import subprocess
import sys

import pytest

from mipmech.studies.batch import RunFolder
from tests.batches import lines

# 3 × (5 references + 4 runs) jobs whose results depend on nothing but the instance.
ASKED = (
    "compare", "ties-m16-k2-s1", "uniform-ball-m14-k3-s1", "gaussian-mixture-m18-k2-s2",
    "--oracles", "cells,sweep,random", "--seeds", "0,1", "--etas", "0.9,0.7,0.5,0.3",
    "--seconds-per-call", "60", "--reference-seconds", "60",
)  # fmt: skip
JOBS = 3 * (5 + 4)


def program(*words, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "mipmech", *ASKED, *map(str, words)], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True, **options,
    )  # fmt: skip


def finished(*words, status=0, **options):
    """Run it to its end; what it printed."""
    process = program(*words, **options)
    out, err = process.communicate(timeout=300)
    assert process.returncode == status, out + err
    return out, err


def found(folder):
    """What every job found, without times and machines."""
    kept = {}
    for key, record in RunFolder.open(folder).records().last.items():
        kept[key] = json.loads(json.dumps(record.result), object_hook=_timeless)
    return kept


def _timeless(part):
    return {name: value for name, value in part.items() if name not in ("seconds", "trace")}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    finished("--out", folder, "--quiet", "--workers", "2")
    assert len(found(folder)) == JOBS
    return found(folder)


def on_record(folder):
    with contextlib.suppress(OSError):
        return (folder / "records.jsonl").read_bytes().count(b"\n")
    return 0


def disturbed(folder, undisturbed, kills, *who):
    """Kill it at random moments, start it again, and see that the record is the same."""
    moments = random.Random(20261119)
    for _ in range(kills):
        process = program("--out", folder, "--quiet", *who)
        wanted = on_record(folder) + moments.randint(0, 2)
        while process.poll() is None and on_record(folder) < wanted:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.002)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=moments.uniform(0.0, 0.05))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    out, _ = finished("--out", folder, "--json", *who)
    content = json.loads(out)
    assert (content["status"], content["stop"]) == ("complete", "finished")
    assert sorted(record["id"] for record in lines(folder)) == sorted(undisturbed)
    assert found(folder) == undisturbed


@pytest.mark.slow
def test_killed_at_three_random_moments(tmp_path, undisturbed):
    disturbed(tmp_path / "run", undisturbed, 3, "--workers", "2")


@pytest.mark.slow
def test_killed_on_a_cluster(tmp_path, undisturbed):
    disturbed(tmp_path / "run", undisturbed, 1, "--local-cluster", "2")


@pytest.mark.long
@pytest.mark.parametrize("who", [("--workers", "2"), ("--local-cluster", "2")])
def test_killed_at_ten_random_moments(tmp_path, undisturbed, who):
    disturbed(tmp_path / "run", undisturbed, 10, *who)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1000, 30_000])
def test_a_full_disk_costs_the_record_and_not_the_result(tmp_path, undisturbed, limit):
    """Files may not grow beyond this: too little for the plan, or for all records."""
    full = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))}
    folder = tmp_path / "run"
    out, err = finished("--out", folder, "--workers", "1", status=2, **full)
    assert "3 oracles on 3 instances" in out
    assert "greatest gain known for 3 of 3" in out
    assert "completed" in out
    assert "Record:" not in out
    assert "file too large" in err
    assert "are missing there" in err
    # With room again, the same command completes the record.
    finished("--out", folder, "--quiet", "--workers", "2")
    assert found(folder) == undisturbed


@pytest.mark.slow
def test_a_full_disk_as_json(tmp_path):
    full = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))}
    out, _ = finished("--out", tmp_path, "--workers", "1", "--json", status=2, **full)
    content = json.loads(out)
    assert len(content["runs"]) == 3 * 4
    assert "file too large" in content["error"]["message"]
