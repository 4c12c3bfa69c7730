"""A real Dask cluster: jobs travel, records and certificates come back, deaths cost little."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import time
from functools import partial
from types import SimpleNamespace

import pytest

pytest.importorskip("distributed")

import mipmech.cli.workers
from mipmech import InputError, certify, check, make_instance
from mipmech.cli import main
from mipmech.cli.workers import check_choice
from mipmech.studies.batch import RunFolder, run_plan, status_of
from mipmech.studies.batch.folder import RECORDS
from mipmech.workers import dask
from mipmech.workers.dask import Cluster, local, on_worker
from mipmech.workers.executor import Ended, ExecutorLost, Task
from tests import batches
from tests.batches import SMALL, lines, results, write_plan
from tests.studies.test_batch import LONG
from tests.workers import test_processes

pytestmark = pytest.mark.slow
PATIENT = 120.0


def start(module, *words):
    return subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.{module}", *map(str, words)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


@pytest.fixture
def machines(tmp_path):
    """A scheduler and two workers, each a process of its own, on loopback."""
    file = tmp_path / "scheduler.json"
    started = [start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
                     "--scheduler-file", file)]  # fmt: skip
    while not file.exists() or not file.read_text().endswith("}"):
        assert started[0].poll() is None
    address = json.loads(file.read_text())["address"]
    for number in range(2):
        home = tmp_path / f"home-{number}"
        started.append(
            start("dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard",
                  "--local-directory", home)
        )  # fmt: skip
    yield address, started
    for process in started:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for_a_record(folder, process):
    file = folder / RECORDS
    while not file.exists() or file.stat().st_size == 0:
        assert process.poll() is None, process.communicate()


def test_the_same_as_on_this_machine_alone(tmp_path):
    plan = write_plan(tmp_path, SMALL)
    summary = run_plan(plan, tmp_path / "cluster", executor=lambda: local(2))
    assert summary.complete
    assert run_plan(plan, tmp_path / "here", workers=1).complete
    assert results(tmp_path / "cluster") == results(tmp_path / "here")
    proofs = list((tmp_path / "cluster" / "certificates").iterdir())
    assert len(proofs) == 2
    assert all(check(proof).accepted for proof in proofs)


def test_one_instance_on_a_cluster(machines):
    """The certificate is the one that is made in one process, to the last bit."""
    sample = make_instance("uniform-ball", 40, 3, seed=3)
    with Cluster(machines[0]) as cluster:
        found = certify(sample, executor=cluster)
    alone = certify(sample)
    assert (found.lower, found.upper, found.status) == (alone.lower, alone.upper, "optimal")
    assert found.proof == alone.proof
    assert found.check().accepted


def test_limits_hold_there_too(machines):
    with Cluster(machines[0]) as cluster:
        ended = test_processes.all_of(
            cluster,
            [
                Task("hang", test_processes.hang, seconds=0.3),
                Task("eat", test_processes.eat, memory=200 << 20),
                Task("crash", test_processes.crash),
                Task("fine", max, (1, 2)),
                Task("error", int, ("x",)),
            ],
        )
    how = {key: end.how for key, end in ended.items()}
    assert how == {
        "hang": "time", "eat": "memory", "crash": "died", "fine": "done", "error": "error",
    }  # fmt: skip
    assert ended["fine"].result == 2
    assert all(process.poll() is None for process in machines[1])  # no Dask worker was lost


def test_a_worker_killed_in_the_middle_costs_only_a_repetition(tmp_path, machines):
    address, (_, worker, _) = machines
    plan = write_plan(tmp_path, LONG.replace("to = 29", "to = 9"))
    run = batches.start(plan, "--out", tmp_path / "run", "--scheduler", address, "--json")
    wait_for_a_record(tmp_path / "run", run)
    os.killpg(worker.pid, signal.SIGKILL)
    out, err = run.communicate(timeout=PATIENT)
    assert run.returncode == 0, err
    assert json.loads(out)["complete"]
    ids = [record["id"] for record in lines(tmp_path / "run")]
    assert len(ids) == len(set(ids)) == 10


def test_the_scheduler_is_lost(tmp_path, machines):
    address, (scheduler, *_) = machines
    run = batches.start(
        write_plan(tmp_path, LONG), "--out", tmp_path / "run", "--scheduler", address, "--json"
    )
    wait_for_a_record(tmp_path / "run", run)
    os.killpg(scheduler.pid, signal.SIGKILL)
    out, err = run.communicate(timeout=PATIENT)
    assert run.returncode == 1, err
    summary = json.loads(out)
    assert summary["stop"] == f"the scheduler {address} is lost"
    assert 0 < summary["done"] < 30
    assert len(lines(tmp_path / "run")) == summary["done"]
    assert err == ""
    # What is missing can be done elsewhere.
    assert status_of(tmp_path / "run").counts["missing"] == summary["missing"]


def test_ctrl_c_gives_the_cluster_back(tmp_path, machines):
    address, _ = machines
    run = batches.start(
        write_plan(tmp_path, LONG), "--out", tmp_path / "run", "--scheduler", address, "--json"
    )
    wait_for_a_record(tmp_path / "run", run)
    os.killpg(run.pid, signal.SIGINT)
    out, _ = run.communicate(timeout=PATIENT)
    assert run.returncode == 1
    assert json.loads(out)["stop"] == "interrupted"
    with Cluster(address) as cluster:
        assert test_processes.all_of(cluster, [Task("next", max, (1, 2))])["next"].result == 2


def test_ctrl_c_on_a_local_cluster_finishes_what_runs(tmp_path):
    """A terminal sends it to the Dask workers too, which must not mind."""
    run = batches.start(
        write_plan(tmp_path, LONG), "--out", tmp_path / "run", "--local-cluster", "2", "--json"
    )
    wait_for_a_record(tmp_path / "run", run)
    os.killpg(run.pid, signal.SIGINT)
    out, err = run.communicate(timeout=PATIENT)
    assert (run.returncode, err) == (1, "")
    summary = json.loads(out)
    assert summary["stop"] == "interrupted"
    assert summary["done"] >= 3


class Future:
    """A stand-in for one of Dask's."""

    def __init__(self, status, ended=None):
        self.status, self.ended = status, ended

    def result(self, timeout):
        assert timeout > 0
        return self.ended

    def release(self):
        pass


def test_a_loss_is_not_forgotten():
    """What came back before the scheduler was lost is handed out first, then the loss is told."""
    ended = Ended("a", "done", 1)
    cluster = Cluster.__new__(Cluster)
    stream = SimpleNamespace(comm=SimpleNamespace(closed=lambda: False))
    cluster._client = SimpleNamespace(status="running", scheduler_comm=stream)
    cluster.scheduler, cluster._fault = "tcp://a:1", None
    cluster._running = {Future("finished", ended): "a", Future("cancelled"): "b"}
    cluster._ended = queue.SimpleQueue()
    for future in cluster._running:
        cluster._ended.put(future)
    assert cluster.wait(1.0) == [ended]
    with pytest.raises(ExecutorLost, match="is lost"):
        cluster.wait(1.0)


def test_no_scheduler(tmp_path, monkeypatch, capsys):
    with pytest.raises(ExecutorLost, match="cannot be reached within"):
        Cluster("tcp://127.0.0.1:1", patience=0.5)
    done = batches.bench(
        write_plan(tmp_path, SMALL), "--out", tmp_path / "run", "--scheduler", "nowhere", status=2
    )
    assert done["error"]["message"] == "is 'nowhere'; give an address such as tcp://host:8786"
    monkeypatch.setattr(mipmech.cli.workers, "Cluster", partial(Cluster, patience=0.5))
    words = ["bench", str(tmp_path / "plan.toml"), "--out", str(tmp_path / "run"), "--json"]
    assert main([*words, "--scheduler", "127.0.0.1:1"]) == 2
    said = json.loads(capsys.readouterr().out)["error"]["message"]
    assert said == "the scheduler 127.0.0.1:1 cannot be reached within 0.5 s"
    assert RunFolder.open(tmp_path / "run").records().lines == 0


def test_other_versions_are_refused(machines, monkeypatch):
    Cluster(machines[0]).close()
    monkeypatch.setattr(dask, "__version__", "0.0.0")
    with pytest.raises(InputError, match=r"has mipmech 0\.[5-9].*, and 0\.0\.0 asks"):
        wait_for_workers(machines[0])


def wait_for_workers(address):
    deadline = time.monotonic() + PATIENT
    while time.monotonic() < deadline:  # those that are not there yet cannot be asked
        Cluster(address).close()


def test_another_version_is_refused():
    with pytest.raises(RuntimeError, match="install the same version everywhere"):
        on_worker(b"", "0.0.0")


def test_one_kind_of_executor_at_a_time():
    with pytest.raises(InputError, match="does not go together with workers"):
        check_choice(2, "tcp://a:1", None)
    with pytest.raises(InputError, match="give 1 or more"):
        check_choice(None, None, 0)
