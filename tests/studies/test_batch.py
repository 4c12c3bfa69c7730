"""Runs: every end on the record, what is missing and nothing else, folders that merge."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import resource
import signal
import subprocess
import threading
from dataclasses import replace

import pytest

import mipmech
from mipmech import Budget, InputError, Instance
from mipmech.studies.batch import (
    Plan,
    RunFolder,
    expand,
    export_run,
    merge_runs,
    run_plan,
    status_of,
)
from mipmech.studies.batch.folder import RECORDS
from mipmech.studies.batch.journal import line_of
from mipmech.studies.batch.records import Bounds
from mipmech.studies.batch.runner import Clock
from mipmech.studies.batch.tasks import JobResult
from mipmech.workers.processes import Processes
from tests import batches
from tests.batches import HEAD, SMALL, TWO_HUNDRED, lines, results, write_plan
from tests.conftest import ROOT
from tests.workers import test_processes

PATIENT = 120.0
ETAS = (
    HEAD
    + """
[limits]
seconds = 5
grace = 0
memory = "300 MB"
[[instances]]
family = "ties"
agents = 12
[[tasks]]
task = "oracle"
oracle = "sweep"
eta_fraction = [0.9, 0.7, 0.5, 0.3]
"""
)


class Sabotage(Processes):
    """Processes that do something else instead of some tasks."""

    def __init__(self, instead, workers=1, **options):
        super().__init__(workers, **options)
        self.instead = dict(instead)
        self.given = []

    def give(self, task):
        eta = task.arguments[2].get("eta_fraction")
        self.given.append(eta)
        if eta in self.instead:
            work, *changes = self.instead[eta]
            task = replace(task, **{"work": work, "arguments": (), **dict(changes)})
        super().give(task)


def by_eta(folder):
    records = (record.to_dict() for record in RunFolder.open(folder).records().last.values())
    return {record["options"]["eta_fraction"]: record for record in records}


def test_what_is_on_record_is_what_the_functions_find(tmp_path):
    path = ROOT / "instances" / "small" / "ties-m30-k4-s10.json"
    text = HEAD + (
        f"[limits]\nseconds = 60\n[[instances]]\nfiles = ['{path}']\n"
        "[[tasks]]\ntask = 'oracle'\noracle = 'milp'\neta_fraction = 0.6\n"
        "[[tasks]]\ntask = 'solve'\noracle = 'cells'\nepsilon = 0.05\nthresholds = 'best'\n"
        "[[tasks]]\ntask = 'certify'\n"
        "[[tasks]]\ntask = 'oracle'\noracle = 'cells-soft'\neta = 0.1\n"
    )
    summary = run_plan(write_plan(tmp_path, text), workers=2)
    assert summary.complete
    assert (summary.stop, summary.total, summary.done) == ("finished", 4, 4)
    records = [r.to_dict() for r in RunFolder.open(tmp_path / "plan.run").records().last.values()]
    found = {(r["task"], r["options"].get("oracle")): r for r in records}
    sample = Instance.load(path)

    answer = mipmech.ask(sample, eta_fraction=0.6, oracle="milp")
    asked = found["oracle", "milp"]
    assert asked["result"]["density"] == answer.to_dict()["density"]
    assert asked["bounds"]["status"] == "optimal"
    assert asked["bounds"]["what"] == "density"
    assert asked["made_by"]["packages"]["highspy"]

    soft = found["oracle", "cells-soft"]["bounds"]
    assert soft["what"] == "soft density"
    assert 0 < soft["lower"] <= soft["upper"]

    solution = mipmech.solve(sample, epsilon=0.05, oracle="cells", thresholds="best")
    assert found["solve", "cells"]["result"]["gain"] == pytest.approx(float(solution.gain))
    assert found["solve", "cells"]["bounds"]["upper"] == solution.bound.upper

    proof = mipmech.certify(sample)
    certified = found["certify", None]
    assert certified["result"]["lower_exact"] == str(proof.lower)
    assert certified["bounds"]["upper"] == proof.upper
    assert certified["events"]
    assert certified["memory"] > 1 << 20
    # The certificate finds its instance in the folder, wherever that lies.
    (tmp_path / "plan.run").rename(tmp_path / "moved")
    verdict = mipmech.check(tmp_path / "moved" / certified["certificate"])
    assert verdict.accepted, verdict.reason


def test_nothing_is_done_twice(tmp_path):
    plan = write_plan(tmp_path, SMALL)
    assert run_plan(plan, tmp_path / "run", workers=2).done == 6
    before = (tmp_path / "run" / RECORDS).read_bytes()
    again = run_plan(plan, tmp_path / "run", workers=2)
    assert (again.done, again.before, again.complete) == (0, 6, True)
    assert (tmp_path / "run" / RECORDS).read_bytes() == before
    # A plan that has grown does only what is new.
    grown = write_plan(tmp_path, SMALL.replace("[0.5, 0.25]", "[0.5, 0.25, 0.75]"))
    more = run_plan(grown, tmp_path / "run", workers=1)
    assert (more.done, more.before) == (2, 6)
    # One that has shrunk leaves the rest alone, and says so.
    run_plan(write_plan(tmp_path, SMALL), tmp_path / "run", workers=1)
    assert status_of(tmp_path / "run").other == 2
    assert len(list((tmp_path / "run" / "plans").iterdir())) == 2


def test_every_kind_of_end_is_a_record(tmp_path):
    instead = {
        0.9: (test_processes.hang, ("seconds", 0.3)),
        0.7: (test_processes.eat,),
        0.5: (test_processes.crash,),
    }
    plan = write_plan(tmp_path, ETAS)
    said = []
    made = Sabotage(instead)
    summary = run_plan(plan, tmp_path / "run", executor=lambda: made, say=said.append)
    assert summary.stop == "finished"
    assert summary.failed == {"timeout": 1, "memory": 1, "crashed": 1}
    assert not summary.complete
    assert made.given.count(0.5) == 2  # a crash is tried again, the others are not
    found = by_eta(tmp_path / "run")
    assert found[0.9]["status"] == "timeout"
    assert found[0.9]["reason"] == "it did not end within 0.3 s; the worker was killed"
    assert found[0.7]["status"] == "memory"
    assert found[0.7]["memory"] > 300_000_000
    assert found[0.5]["status"] == "crashed"
    assert "SIGSEGV" in found[0.5]["reason"]
    assert found[0.3]["status"] == "done"
    assert len(said) == 4
    shown = status_of(tmp_path / "run")
    assert shown.counts == {"timeout": 1, "memory": 1, "crashed": 1, "done": 1}
    assert len(shown.failures) == 3

    # Started again, failures are done; asked to, they are tried again, and the last try counts.
    assert run_plan(plan, tmp_path / "run", workers=1).done == 0
    again = run_plan(plan, tmp_path / "run", workers=1, retry=True)
    assert (again.done, again.before, again.complete) == (3, 1, True)
    assert len(lines(tmp_path / "run")) == 7
    assert {record["attempt"] for record in by_eta(tmp_path / "run").values()} == {1, 2}
    assert status_of(tmp_path / "run").counts == {"done": 4}


def test_a_worker_that_dies_once_costs_only_a_repetition(tmp_path):
    mark = str(tmp_path / "mark")
    made = Sabotage({0.5: (_die_once_and_tell, ("arguments", (mark,)))})
    run_plan(write_plan(tmp_path, ETAS), tmp_path / "run", executor=lambda: made)
    assert by_eta(tmp_path / "run")[0.5]["reason"] == "RuntimeError: alive"
    assert made.given.count(0.5) == 2


def _die_once_and_tell(mark):
    test_processes.die_once(mark)
    raise RuntimeError("alive")


def test_a_broken_instance_among_good_ones(tmp_path):
    good = mipmech.make_instance("ties", 12, 2, 0)
    good.save(tmp_path / "good.json")
    (tmp_path / "broken.json").write_text('{"format": "mipmech/instance@1", "name": "x"}')
    task = "[[instances]]\nfiles = ['*.json']\n[[tasks]]\ntask = 'oracle'\noracle = 'sweep'\n"
    plan = write_plan(tmp_path, HEAD + task + "eta_fraction = [0.5, 0.6]\n")
    said = []
    summary = run_plan(plan, workers=1, say=said.append)
    assert (summary.total, summary.done, summary.failed) == (4, 4, {"failed": 2})
    assert "broken.json: agents: is missing" in said[0]
    records = RunFolder.open(tmp_path / "plan.run").records()
    assert {record.name for record in records.failed.values()} == {"broken.json"}
    assert all("agents: is missing" in r.reason for r in records.failed.values())
    # Mended, it is another instance, and its jobs are new.
    mipmech.make_instance("ties", 13, 2, 0).save(tmp_path / "broken.json")
    mended = run_plan(plan, workers=1)
    assert (mended.total, mended.done, mended.before, mended.complete) == (4, 2, 2, True)
    assert status_of(tmp_path / "plan.run").other == 2


def test_a_result_that_is_no_json_does_not_end_the_run(tmp_path):
    made = Sabotage({0.5: (_not_a_number,)})
    summary = run_plan(write_plan(tmp_path, ETAS), tmp_path / "run", executor=lambda: made)
    assert (summary.done, summary.failed) == (4, {"failed": 1})
    assert "cannot be recorded" in by_eta(tmp_path / "run")[0.5]["reason"]


def _not_a_number():
    return JobResult({"value": math.nan}, Bounds("gain", "gap", 0.0, math.inf, None))


def test_only_broken_instances_are_bad_input(tmp_path):
    (tmp_path / "broken.json").write_text("{}")
    task = "[[instances]]\nfiles = ['*.json']\n[[tasks]]\ntask = 'certify'\n"
    with pytest.raises(InputError, match="format"):
        run_plan(write_plan(tmp_path, HEAD + task), workers=1)


def test_a_clock_that_jumps(tmp_path):
    """The wall clock may go back a day or forward a year: limits and records do not care."""
    jumps = iter([0.0, 86_400.0, -1e9, 1e9, -5.0] * 100)
    clock = Clock(wall=lambda: 1.7e9 + next(jumps))
    summary = run_plan(write_plan(tmp_path, ETAS), tmp_path / "run", workers=2, clock=clock)
    assert summary.complete
    assert {record["status"] for record in by_eta(tmp_path / "run").values()} == {"done"}
    undisturbed = run_plan(write_plan(tmp_path, ETAS), tmp_path / "other", workers=1)
    assert undisturbed.complete
    assert results(tmp_path / "run") == results(tmp_path / "other")


def test_a_machine_that_was_asleep(tmp_path):
    """The monotonic clock leaps by an hour in the middle of a job: the job is not killed for it."""
    hours = [0.0]
    base = Clock().monotonic

    class Sleepy(Processes):
        def wait(self, seconds):
            found = super().wait(seconds)
            hours[0] += 3600.0
            return found

    made = Sleepy(1, clock=lambda: base() + hours[0])
    clock = Clock(monotonic=lambda: base() + hours[0])
    plan = write_plan(tmp_path, ETAS)
    summary = run_plan(plan, tmp_path / "run", executor=lambda: made, clock=clock)
    assert summary.complete


def test_a_damaged_record_is_done_again(tmp_path):
    plan = write_plan(tmp_path, ETAS)
    run_plan(plan, tmp_path / "run", workers=1)
    file = tmp_path / "run" / RECORDS
    content = file.read_bytes().splitlines(keepends=True)
    content[1] = content[1].replace(b'"done"', b'"gone"')
    file.write_bytes(b"".join(content))
    assert status_of(tmp_path / "run").damaged == 1
    assert status_of(tmp_path / "run").counts == {"done": 3, "missing": 1}
    assert run_plan(plan, tmp_path / "run", workers=1).done == 1
    assert status_of(tmp_path / "run").counts == {"done": 4}


def test_records_of_another_shape_are_no_records(tmp_path):
    plan = write_plan(tmp_path, ETAS)
    run_plan(plan, tmp_path / "run", workers=1)
    first = lines(tmp_path / "run")[0]
    with (tmp_path / "run" / RECORDS).open("ab") as stream:
        stream.write(line_of({"id": 3}) + line_of({"id": "x"}) + line_of({"what": "?"}))
        whole = dict(first)
        del whole["check"]
        wrong = [
            whole | {"id": "../../../run"}, whole | {"seconds": None}, whole | {"memory": True},
            whole | {"instance": {}}, whole | {"allowed": {}}, whole | {"bounds": {"lower": "x"}},
        ]  # fmt: skip
        wrong += [{k: v for k, v in whole.items() if k != name} for name in whole]
        stream.writelines(map(line_of, wrong))
        stream.write(b"[" * 100_000 + b"\n")
    assert status_of(tmp_path / "run").damaged == 4 + len(wrong)
    assert run_plan(plan, tmp_path / "run", workers=1).before == 4
    export_run(tmp_path / "run", None)


# ------------------------------------------------------------------ limits of the run


def test_no_time(tmp_path):
    summary = run_plan(write_plan(tmp_path, ETAS), tmp_path / "run", workers=1, budget=Budget(0.0))
    assert (summary.stop, summary.done, summary.missing) == ("time", 0, 4)
    assert run_plan(write_plan(tmp_path, ETAS), tmp_path / "run", workers=1).complete


@pytest.mark.parametrize("wrong", ["[]", "{", "{}", '{"name": 1, "jobs": []}',
                                   '{"name": "x", "jobs": [{}]}', "[" * 100_000],
                         ids=range(6))  # fmt: skip
def test_a_damaged_plan_is_said(tmp_path, wrong):
    plan = write_plan(tmp_path, ETAS)
    run_plan(plan, tmp_path / "run", workers=1, budget=Budget(0.0))
    (file,) = (tmp_path / "run" / "plans").iterdir()
    file.write_text(wrong)
    with pytest.raises(InputError) as caught:
        status_of(tmp_path / "run")
    assert caught.value.file == str(file)


def test_no_record_leads_outside(tmp_path):
    """A stranger's folder: an id that is a path, and a certificate to go with it."""
    run_plan(write_plan(tmp_path, ETAS), tmp_path / "run", workers=1)
    record = lines(tmp_path / "run")[0]
    del record["check"]
    record |= {"id": "../run", "certificate": "certificates/x.json"}
    with (tmp_path / "run" / RECORDS).open("ab") as stream:
        stream.write(line_of(record))
    merge_runs([tmp_path / "run"], tmp_path / "all")
    assert status_of(tmp_path / "all").counts == {"done": 4}


def test_parts_merge(tmp_path):
    plan = write_plan(tmp_path, SMALL)
    for k in (1, 2, 3):
        assert run_plan(plan, tmp_path / str(k), workers=1, part=(k, 3)).total == 2
    whole = run_plan(plan, tmp_path / "whole", workers=2)
    assert whole.total == 6
    found = merge_runs([tmp_path / "1", tmp_path / "2", tmp_path / "3"], tmp_path / "all")
    assert (found.records, found.added, found.twice) == (6, 6, 0)
    assert results(tmp_path / "all") == results(tmp_path / "whole")
    assert status_of(tmp_path / "all").counts == {"done": 6}
    again = merge_runs([tmp_path / "2", tmp_path / "whole"], tmp_path / "all")
    assert (again.records, again.added, again.twice) == (6, 0, 8)
    for proof in (tmp_path / "all" / "certificates").iterdir():
        assert mipmech.check(proof).accepted
    assert len(list((tmp_path / "all" / "certificates").iterdir())) == 2
    assert run_plan(plan, tmp_path / "all", workers=1).done == 0
    with pytest.raises(InputError, match="give k/n"):
        run_plan(plan, tmp_path / "x", part=(4, 3))


def test_a_result_counts_before_a_failure(tmp_path):
    plan = write_plan(tmp_path, ETAS)
    run_plan(plan, tmp_path / "bad", executor=lambda: Sabotage({0.5: (math.sqrt,)}))
    run_plan(plan, tmp_path / "good", workers=1)
    assert by_eta(tmp_path / "bad")[0.5]["status"] == "failed"
    merge_runs([tmp_path / "bad", tmp_path / "good"], tmp_path / "all")
    assert status_of(tmp_path / "all").counts == {"done": 4}
    merge_runs([tmp_path / "good", tmp_path / "bad"], tmp_path / "other")
    assert status_of(tmp_path / "other").counts == {"done": 4}


def test_looking_at_a_folder_does_not_keep_others_from_working(tmp_path):
    folder = RunFolder.make(tmp_path / "run")
    over = threading.Event()

    def look():
        while not over.is_set():
            folder.busy  # noqa: B018

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for _ in range(100):
            with folder.locked():
                pass
    finally:
        over.set()
        watcher.join()


def test_merging_into_itself_is_refused(tmp_path):
    run_plan(write_plan(tmp_path, ETAS), tmp_path / "run", workers=1)
    with pytest.raises(InputError, match="among the folders"):
        merge_runs([tmp_path / "run"], tmp_path / "run")


# ------------------------------------------------------------------ folders


def test_two_runs_at_once(tmp_path):
    plan = write_plan(tmp_path, LONG)
    folder = tmp_path / "run"
    first = batches.start(plan, "--out", folder, "--workers", "1", "--quiet")
    try:
        while not (folder / RECORDS).exists():
            assert first.poll() is None, first.communicate()
        second = batches.bench(plan, "--out", folder, status=2)
        assert "another run is at work here (process " in second["error"]["message"]
        assert f"process {first.pid} on " in second["error"]["message"]
        assert status_of(folder).busy.startswith(f"process {first.pid} on ")
        with pytest.raises(InputError, match="another run is at work"):
            merge_runs([folder], folder.parent / "new") and merge_runs(
                [folder.parent / "new"], folder
            )
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.communicate()
    assert status_of(folder).busy is None  # a lock does not outlive its holder


def test_a_folder_that_is_something_else(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="not empty and not a run's folder"):
        run_plan(write_plan(tmp_path, ETAS), tmp_path)
    for wrong in (tmp_path / "thesis.tex", tmp_path / "thesis.tex" / "below", "/proc/here"):
        with pytest.raises(InputError, match="cannot be used for a run"):
            run_plan(write_plan(tmp_path, ETAS), wrong)
    for reader in (status_of, lambda path: export_run(path, None), RunFolder.open):
        with pytest.raises(InputError, match="holds no run"):
            reader(tmp_path)
        with pytest.raises(InputError, match="does not exist"):
            reader(tmp_path / "none")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(tmp_path):
    (tmp_path / "run").mkdir(mode=0o500)
    with pytest.raises(InputError, match="cannot be used for a run: permission denied"):
        run_plan(write_plan(tmp_path, ETAS), tmp_path / "run")


def test_what_a_kill_left_half_written_is_swept_away(tmp_path):
    plan = write_plan(tmp_path, SMALL)
    run_plan(plan, tmp_path / "run", workers=1)
    for name in (".run.json.abc", "instances/.x.json.abc", "certificates/.y.json.abc"):
        (tmp_path / "run" / name).write_text("{")
    run_plan(plan, tmp_path / "run", workers=1)
    assert not list((tmp_path / "run").rglob(".*.abc"))


def test_large_instances_keep_their_agents_in_a_table(tmp_path):
    text = (
        HEAD
        + "[[instances]]\nfamily = 'uniform-ball'\nagents = 2000\n"
        + ("[[tasks]]\ntask = 'oracle'\noracle = 'projection'\neta_fraction = 1\n")
    )
    assert run_plan(write_plan(tmp_path, text), tmp_path / "run", workers=1).complete
    names = sorted(file.suffix for file in (tmp_path / "run" / "instances").iterdir())
    assert names == [".json", ".npy"]


def test_a_copy_that_was_changed_is_noticed(tmp_path):
    plan = write_plan(tmp_path, ETAS)
    folder = RunFolder.make(tmp_path / "run")
    with folder.locked():
        expand(Plan.load(plan), folder.keep)
    (file,) = (tmp_path / "run" / "instances").iterdir()
    (digest,) = (subject.digest for subject in expand(Plan.load(plan)).subjects)
    for other in ("{", mipmech.make_instance("ties", 13, 2, 0)):
        file.write_text(other) if isinstance(other, str) else other.save(file)
        with pytest.raises(InputError):
            RunFolder(tmp_path / "run").instance(digest)
        with folder.locked():  # the original is at hand, and makes it good
            expand(Plan.load(plan), folder.keep)
        assert Instance.load(file).digest == digest
    assert run_plan(plan, tmp_path / "run", workers=1).complete


def test_a_copy_that_goes_bad_while_jobs_run_costs_only_its_jobs(tmp_path):
    """Between reading the plan and handing out its jobs."""

    class Vandal(Processes):
        def __enter__(self):
            (file,) = (tmp_path / "run" / "instances").glob("*.json")
            file.write_text("{")
            return super().__enter__()

    plan = write_plan(tmp_path, ETAS.replace("agents = 12", "agents = 21"))
    summary = run_plan(plan, tmp_path / "run", executor=lambda: Vandal(1))
    assert (summary.stop, summary.failed) == ("finished", {"failed": 4})
    assert run_plan(plan, tmp_path / "run", workers=1, retry=True).complete


# ------------------------------------------------------------------ disks


def test_a_disk_that_is_full_in_the_middle(tmp_path):
    """Files may not grow beyond some kilobytes: what was done stays, and the run goes on later."""
    plan = write_plan(tmp_path, TWO_HUNDRED)
    folder = tmp_path / "run"
    limit = 160_000
    done = batches.bench(
        plan, "--out", folder, "--workers", "2", status=1,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )  # fmt: skip
    assert done["stop"] == "records cannot be written: file too large"
    kept = len(lines(folder))
    assert 0 < kept < 200
    assert done["done"] == kept
    assert (folder / RECORDS).stat().st_size <= limit
    rest = batches.bench(plan, "--out", folder, "--workers", "2")
    assert (rest["before"], rest["done"], rest["complete"]) == (kept, 200 - kept, True)
    assert len(lines(folder)) == 200


def test_an_output_that_is_full(tmp_path):
    plan = write_plan(tmp_path, ETAS)
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            batches.command(plan, "--out", tmp_path / "run", "--quiet"),
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "error: the output cannot be written: no space left on device\n"
    assert len(lines(tmp_path / "run")) == 4


# ------------------------------------------------------------------ Ctrl-C

# Two jobs that would take a minute each, and others behind them.
LONG = (
    HEAD
    + """
[limits]
seconds = 60
[[instances]]
family = "gaussian-mixture"
agents = 12
rank = 4
seed = {from = 0, to = 29}
[[tasks]]
task = "oracle"
oracle = "random"
options = {rounds = 10_000_000}
eta_fraction = 0.5
seconds = 0.8
"""
)


def started(tmp_path, *words):
    """A run with two workers that has some records."""
    process = batches.start(
        write_plan(tmp_path, LONG), "--out", tmp_path / "run", "--workers", "2", *words
    )
    file = tmp_path / "run" / RECORDS
    while not file.exists() or file.stat().st_size == 0:
        assert process.poll() is None, process.communicate()
    return process


@pytest.mark.slow
def test_ctrl_c_once_finishes_what_runs(tmp_path):
    process = started(tmp_path, "--json")
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process of the group
    out, err = process.communicate(timeout=PATIENT)
    assert process.returncode == 1, err
    summary = json.loads(out)
    assert summary["stop"] == "interrupted"
    assert summary["done"] + summary["missing"] == 30
    assert summary["missing"] >= 20
    records = lines(tmp_path / "run")
    assert len(records) == summary["done"] >= 3  # the first, and what ran
    assert {record["status"] for record in records} == {"done"}


@pytest.mark.slow
@pytest.mark.parametrize("signals", [(signal.SIGINT, signal.SIGINT), (signal.SIGTERM,)])
def test_ctrl_c_twice_and_a_request_to_end_stop_now(tmp_path, signals):
    process = started(tmp_path)
    for number in signals:
        # Two signals of a kind that come at once would count as one.
        threading.Event().wait(0.2)
        os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    out, err = process.communicate(timeout=PATIENT)
    assert process.returncode == 1
    if len(signals) == 2:
        assert "Ctrl-C again drops them" in err
    assert "interrupted" in out
    assert "run the same command again" in out
    kept = {record["status"] for record in lines(tmp_path / "run")}
    assert kept == {"done"}


@pytest.mark.slow
def test_a_time_limit_keeps_what_ended(tmp_path):
    plan = write_plan(tmp_path, LONG)
    done = batches.bench(plan, "--out", tmp_path / "run", "--seconds", "6", status=1)
    assert done["stop"] == "time"
    assert done["missing"] > 0
    assert len(lines(tmp_path / "run")) == done["done"] if done["done"] else True


# ------------------------------------------------------------------ tables


def test_export(tmp_path):
    run_plan(write_plan(tmp_path, SMALL), tmp_path / "run", workers=2)
    rows = list(csv.DictReader(io.StringIO(export_run(tmp_path / "run", None))))
    assert len(rows) == 6
    certified = [row for row in rows if row["task"] == "certify"]
    assert len(certified) == 2
    for row in certified:
        assert float(row["lower"]) <= float(row["upper"])
        assert float(row["gap"]) <= 1e-2
        assert (row["status"], row["outcome"], row["level"]) == ("done", "optimal", "proved")
        assert (tmp_path / "run" / row["certificate"]).exists()

    parquet = pytest.importorskip("pyarrow.parquet")
    export_run(tmp_path / "run", tmp_path / "t.parquet", "parquet")
    table = parquet.read_table(tmp_path / "t.parquet").to_pylist()
    assert [row["id"] for row in table] == [row["id"] for row in rows]
    assert {type(row["lower"]) for row in table} == {float}
    with pytest.raises(InputError, match="needs a name"):
        export_run(tmp_path / "run", None, "parquet")


def test_a_name_that_looks_like_a_formula_is_inert(tmp_path):
    replace(mipmech.make_instance("ties", 12, 2, 0), name="=cmd()").save(tmp_path / "x.json")
    task = "[[instances]]\nfiles = ['x.json']\n[[tasks]]\ntask = 'oracle'\noracle = 'sweep'\n"
    run_plan(
        write_plan(tmp_path, HEAD + task + "eta_fraction = 0.5\n"), tmp_path / "run", workers=1
    )
    (row,) = csv.DictReader(io.StringIO(export_run(tmp_path / "run", None)))
    assert row["instance"] == "'=cmd()"
