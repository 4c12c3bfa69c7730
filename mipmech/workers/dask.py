"""Tasks on a Dask cluster: the same interface as `workers.Processes`, for many machines.

A Dask worker hands each task to a separate worker process (`workers.Processes`), so that limits
on time and memory hold there too, and a solver that crashes does not end its Dask worker. Only the
network is shared: a task is sent with its data, and its result is sent back.

If a Dask worker dies, Dask repeats its tasks. If the scheduler is lost, no more results can arrive:
`ExecutorLost`.
"""

from __future__ import annotations

import atexit
import logging
import math
import pickle
import queue
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mipmech.errors import InputError, shorten
from mipmech.version import __version__
from mipmech.workers.executor import Ended, Executor, ExecutorLost, How, Task
from mipmech.workers.processes import Processes

# Seconds until a scheduler that does not answer counts as lost.
PATIENCE = 10.0
# Seconds between two counts of the workers.
CENSUS = 2.0
# Tasks for each slot that are in transit or queued there, so that no worker has to wait.
AHEAD = 2


class Cluster(Executor):
    """A Dask cluster, reached through its scheduler.

    scheduler : its address, such as tcp://host:8786
    """

    def __init__(self, scheduler: str, patience: float = PATIENCE) -> None:
        if re.fullmatch(r"([a-z]+://)?[^\s/]+:\d+", scheduler) is None:
            said = f"is {shorten(scheduler)}; give an address such as tcp://host:8786"
            raise InputError(said, field="scheduler")
        distributed = _distributed()
        self.scheduler = scheduler
        _silence()
        try:
            client = distributed.Client(scheduler, timeout=patience, set_as_default=False)
        except (OSError, ValueError, TypeError):
            said = f"the scheduler {scheduler} cannot be reached within {patience:g} s"
            raise ExecutorLost(said) from None
        self._client: Any = client
        self._running: dict[Any, str] = {}
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._fault: ExecutorLost | None = None
        self._number = 0
        self._slots, self._counted = 0, -math.inf
        self._census()
        self._see_that_versions_agree()

    @property
    def slots(self) -> int:
        """The threads of all workers at the last census."""
        return max(1, self._slots)

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def free(self) -> int:
        self._census()
        return max(0, AHEAD * self.slots - self.running)

    def give(self, task: Task) -> None:
        """Send a task to the scheduler."""
        self._number += 1
        future = self._client.submit(
            on_worker, pickle.dumps(task), version_here(),
            key=f"mipmech-{self._client.id}-{self._number}", pure=False,
        )  # fmt: skip
        self._running[future] = task.key
        future.add_done_callback(self._ended.put)

    def wait(self, seconds: float) -> list[Ended]:
        found: list[Ended] = []
        until = time.monotonic() + seconds
        while not found and self._running and self._fault is None:
            if not self._lives:
                raise ExecutorLost(self._lost)
            try:
                found.append(self._end(self._ended.get(timeout=max(0.0, until - time.monotonic()))))
                while not self._ended.empty():
                    found.append(self._end(self._ended.get()))
            except queue.Empty:
                break
            except ExecutorLost as fault:
                self._fault = fault  # what came back before it is handed out first
                break
        if self._fault is not None and not found:
            raise self._fault
        return found

    def _end(self, future: Any) -> Ended:
        key = self._running[future]
        if future.status == "cancelled":
            raise ExecutorLost(self._lost)
        try:
            ended = future.result(timeout=PATIENCE)
        except Exception as error:
            if not self._lives:
                raise ExecutorLost(self._lost) from None
            # KilledWorker: every worker that tried it died. Anything else is a fault in a worker.
            how: How = "died" if type(error).__name__ == "KilledWorker" else "error"
            ended = Ended(key, how, reason=f"{type(error).__name__}: {error}")
        del self._running[future]
        future.release()
        assert isinstance(ended, Ended)
        return ended

    @property
    def _lost(self) -> str:
        return f"the scheduler {self.scheduler} is lost"

    @property
    def _lives(self) -> bool:
        stream = self._client.scheduler_comm
        return self._client.status == "running" and stream is not None and not stream.comm.closed()

    def _see_that_versions_agree(self) -> None:
        """Another version may give other results; a worker that joins later checks it, too."""
        here = version_here()
        try:
            found = self._client.run(version_here)
        except Exception as error:
            self.close()
            said = f"the workers of {self.scheduler} cannot load mipmech: {error}"
            raise InputError(said, field="scheduler") from None
        others = {address: there for address, there in found.items() if there != here}
        if others:
            self.close()
            address, there = next(iter(others.items()))
            said = f"worker {address} has mipmech {there}, and {here} asks; install the same"
            raise InputError(said, field="scheduler")

    def _census(self) -> None:
        """Count the workers, now and then; there may be none yet."""
        now = time.monotonic()
        if now - self._counted < CENSUS or not self._lives:
            return
        self._counted = now
        try:
            self._slots = sum(self._client.nthreads().values())
        except (OSError, TimeoutError):
            return  # `wait` will notice if the scheduler is lost

    def close(self) -> None:
        """Cancel running tasks, and leave the cluster."""
        try:
            if self._lives and self._running:
                self._client.cancel(list(self._running), force=True)
            self._client.close(timeout=PATIENCE)
        except (OSError, TimeoutError):
            pass  # the scheduler is gone already


def _silence() -> None:
    """Silence Dask's logs: a `Cluster` reports a lost connection itself."""
    for name in list(logging.root.manager.loggerDict):
        if name.split(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL)


@contextmanager
def local(workers: int) -> Iterator[Cluster]:
    """A cluster of this machine alone: Dask workers of one thread each."""
    distributed = _distributed()
    with _ctrl_c_ignored():
        machines = distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
            preload=[__name__],
        )
    try:
        with Cluster(machines.scheduler_address) as cluster:
            yield cluster
    finally:
        machines.close(timeout=PATIENCE)


@contextmanager
def _ctrl_c_ignored() -> Iterator[None]:
    """Ignore Ctrl-C while inside, in new processes too: a terminal sends it to all of them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


def dask_setup(_worker: Any) -> None:
    """Dask calls this in a new worker (``preload``), also in one that is started again later."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _distributed() -> Any:
    try:
        import distributed  # noqa: PLC0415  (an extra, and slow to import)
    except ImportError:
        said = "a cluster needs Dask: pip install 'mipmech[cluster]'"
        raise InputError(said, field="scheduler") from None
    return distributed


# ------------------------------------------------------------------ on a Dask worker

# Idle worker processes of this Dask worker; one for each of its threads.
_IDLE: queue.SimpleQueue[Processes] = queue.SimpleQueue()


def version_here() -> str:
    """The version of mipmech in this process."""
    return __version__


def on_worker(message: bytes, version: str) -> Ended:
    """Do a task in a process beside this Dask worker."""
    if version != version_here():
        raise RuntimeError(
            f"this worker has mipmech {version_here()}, the one who asks has {version}; install the"
            " same version everywhere"
        )
    task: Task = pickle.loads(message)
    try:
        executor = _IDLE.get_nowait()
    except queue.Empty:
        executor = Processes(1)
        atexit.register(executor.close)
    try:
        executor.give(task)
        while not (ended := executor.wait(1.0)):
            pass
        return ended[0]
    finally:
        _IDLE.put(executor)
