"""Killed at random moments and started again, a run loses nothing and does nothing twice."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess

import pytest

from mipmech.studies.batch.folder import RECORDS
from tests.batches import TWO_HUNDRED, bench, lines, results, start, write_plan


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The same plan, run without disturbance."""
    folder = tmp_path_factory.mktemp("undisturbed")
    plan = write_plan(folder, TWO_HUNDRED)
    summary = bench(plan, "--out", folder / "run", "--workers", "2")
    assert (summary["total"], summary["done"], summary["missing"]) == (200, 200, 0)
    return folder / "run"


def on_record(folder):
    file = folder / RECORDS
    return file.read_bytes().count(b"\n") if file.exists() else 0


def killed(plan, folder, moments):
    """Start a run and kill its whole process group; whether it was still at work.

    Some moments lie in the first seconds, where folders are made and workers start; the others
    soon after some records were written, and so between any two steps of writing the next.
    """
    process = start(plan, "--out", folder, "--workers", "2", "--quiet")
    try:
        if moments.random() < 0.3:
            process.communicate(timeout=moments.uniform(0.0, 2.0))
        else:
            wanted = on_record(folder) + moments.randint(1, 4)
            while process.poll() is None and on_record(folder) < wanted:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=0.002)
            process.communicate(timeout=moments.uniform(0.0, 0.03))
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return True
    assert process.returncode == 0
    return False


def disturbed(tmp_path, undisturbed, kills):
    """Kill a run as often as is asked for; one that is done is looked at, and another begun."""
    plan = write_plan(tmp_path, TWO_HUNDRED)
    moments = random.Random(20261118)
    folder = tmp_path / "run-0"
    folders = [folder]
    while kills:
        if killed(plan, folder, moments):
            kills -= 1
        else:
            folder = tmp_path / f"run-{len(folders)}"
            folders.append(folder)
    for folder in folders:
        summary = bench(plan, "--out", folder, "--workers", "2")
        assert summary["total"] == 200
        assert summary["complete"]
        ids = [record["id"] for record in lines(folder)]
        assert len(ids) == 200, "a record is lost, or there twice"
        assert len(set(ids)) == 200
        assert results(folder) == results(undisturbed)


@pytest.mark.slow
def test_killed_at_three_random_moments(tmp_path, undisturbed):
    disturbed(tmp_path, undisturbed, 3)


@pytest.mark.long
def test_killed_at_sixty_random_moments(tmp_path, undisturbed):
    disturbed(tmp_path, undisturbed, 60)
