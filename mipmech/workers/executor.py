"""The interface of everything that tasks can be given to.

An `Executor` takes tasks and reports how each of them ended: with a result, with an error, out
of time, out of memory, or with the death of its worker. `InProcess` does them itself, one by one;
`processes.Processes` has worker processes on this machine, and `dask.Cluster` those of many.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

from mipmech.budget import Budget

# Seconds between two looks at memory and clocks while workers run.
HEARTBEAT = 0.05

How = Literal["done", "error", "time", "memory", "died", "interrupted"]


@dataclass(frozen=True)
class Task:
    """Something to do elsewhere: a function that can be imported there, and its arguments.

    key : its name, which is returned with the result
    prepare : called first, before its clock starts
    seconds : the time after which the worker is killed, with all processes that it has started
    memory : bytes that the worker may use in all
    """

    key: str
    work: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    prepare: Callable[[], Any] | None = None
    seconds: float = math.inf
    memory: int | None = None


@dataclass(frozen=True)
class Ended:
    """How a task ended.

    reason : why there is no result, in words; None if there is one
    seconds : its running time, without the preparation
    memory : the most bytes that its worker used, if known
    worker : where it ran
    """

    key: str
    how: How
    result: Any = None
    reason: str | None = None
    seconds: float = 0.0
    memory: int | None = None
    worker: str = ""


class ExecutorLost(RuntimeError):
    """The executor can take no more tasks and will hand back no more results."""


class Executor(Protocol):
    """Anything that tasks can be given to; as a context manager, it is closed at the end."""

    @property
    def slots(self) -> int:
        """How many tasks run at once."""

    @property
    def running(self) -> int:
        """Tasks that were given and have not ended."""

    @property
    def free(self) -> int:
        """How many more tasks may be given now."""
        return self.slots - self.running

    def give(self, task: Task) -> None:
        """Start a task; only if `free`."""

    def wait(self, seconds: float) -> list[Ended]:
        """The tasks that ended, as soon as there are any; empty once the time is up.

        Raises `ExecutorLost` when no more results can arrive.
        """

    def close(self) -> None:
        """End all workers at once; what still runs is dropped."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class InProcess(Executor):
    """Does tasks in this process, when they are waited for.

    What runs here cannot be killed: a task must keep to its limits on time and memory by itself.
    """

    slots = 1

    def __init__(self) -> None:
        self._tasks: deque[Task] = deque()

    @property
    def running(self) -> int:
        return len(self._tasks)

    def give(self, task: Task) -> None:
        self._tasks.append(task)

    def wait(self, seconds: float) -> list[Ended]:  # noqa: ARG002  (it takes as long as it takes)
        """Do a task; empty if there is none."""
        if not self._tasks:
            return []
        task = self._tasks.popleft()
        timer = Budget().start()
        with timer.listening():
            ended = self._do(task)
        if timer.interrupted:  # work cut short by Ctrl-C is no result; the loop is told, too
            signal.raise_signal(signal.SIGINT)
            ended = Ended(task.key, "interrupted")
        return [ended]

    @staticmethod
    def _do(task: Task) -> Ended:
        began, name = time.monotonic(), f"{os.uname().nodename}/{os.getpid()}"
        how: How = "done"
        result = reason = None
        try:
            if task.prepare is not None:
                task.prepare()
            began = time.monotonic()
            result = task.work(*task.arguments)
        except (Exception, SystemExit) as fault:
            how = "memory" if isinstance(fault, MemoryError) else "error"
            reason = f"{type(fault).__name__}: {fault}"
        return Ended(task.key, how, result, reason, time.monotonic() - began, None, name)

    def close(self) -> None:
        self._tasks.clear()
