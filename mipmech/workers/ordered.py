"""Calls that are answered in the order in which they are made, wherever the work is done.

A `Pool` takes calls and returns their answers, the oldest first. The answers do not depend on the
number of workers, as long as the answer to a call does not depend on where it is computed. There
are three: `Serial` makes a call when its answer is asked for, `ThreadPool` has threads, and
`ExecutorPool` an executor. If a worker dies or fails, its call is made again.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol

from mipmech.workers.executor import HEARTBEAT, Executor, ExecutorLost, Task

# Attempts at a call whose workers die or fail.
TRIES = 3
# Calls per worker made ahead of a long list: one that runs, and the next one.
AHEAD = 2


# Stands for an answer where the wait was stopped.
STOPPED = object()
GoOn = Callable[[], bool]


class Pool(Protocol):
    """Runs calls and returns their results in order."""

    def put(self, work: Callable[..., Any], *arguments: Any) -> None:
        """Make a call."""

    def take(self, go_on: GoOn) -> Any:
        """The answer to the oldest call; `STOPPED`, without any change, if ``go_on`` says no."""

    def drop(self) -> list[Any]:
        """Discard all calls; the answers known already, and `STOPPED` for the others."""


class Serial(Pool):
    """Makes each call in this thread, when its answer is asked for."""

    def __init__(self) -> None:
        self._calls: deque[tuple[Callable[..., Any], tuple[Any, ...]]] = deque()

    def put(self, work: Callable[..., Any], *arguments: Any) -> None:
        self._calls.append((work, arguments))

    def take(self, go_on: GoOn) -> Any:
        if not go_on():
            return STOPPED
        work, arguments = self._calls.popleft()
        return work(*arguments)

    def drop(self) -> list[Any]:
        dropped = [STOPPED] * len(self._calls)
        self._calls.clear()
        return dropped


class ThreadPool(Pool):
    """Threads, for work that releases Python's lock."""

    def __init__(self, workers: ThreadPoolExecutor) -> None:
        self._workers = workers
        self._calls: deque[Future[Any]] = deque()

    def put(self, work: Callable[..., Any], *arguments: Any) -> None:
        self._calls.append(self._workers.submit(work, *arguments))

    def take(self, go_on: GoOn) -> Any:
        if not go_on():
            return STOPPED
        return self._calls.popleft().result()

    def drop(self) -> list[Any]:
        dropped = [
            STOPPED if call.cancel() or not call.done() else call.result() for call in self._calls
        ]
        self._calls.clear()
        return dropped


_serials = itertools.count()


class ExecutorPool(Pool):
    """The workers of an executor.

    The executor may still be busy with earlier calls, which were dropped: their results are
    discarded. Raises `ExecutorLost` when no answer can arrive.

    prepare : called on a worker before its clock starts
    """

    def __init__(self, executor: Executor, prepare: Callable[[], Any] | None = None) -> None:
        self._executor = executor
        self._prepare = prepare
        self._calls: deque[Task] = deque()  # in the order of the answers
        self._waiting: deque[Task] = deque()  # not given yet
        self._running: dict[str, Task] = {}
        self._answers: dict[str, Any] = {}
        self._failures: dict[str, int] = {}

    @property
    def slots(self) -> int:
        """Number of calls in progress at once."""
        return max(1, self._executor.slots)

    def wake(self) -> None:
        """Start and prepare the workers before there are calls for them."""
        if self._prepare is not None:
            for _ in range(self._executor.free):
                self._executor.give(Task(self._key(), self._prepare, (), self._prepare))

    def put(self, work: Callable[..., Any], *arguments: Any) -> None:
        task = Task(self._key(), work, arguments, self._prepare)
        self._calls.append(task)
        self._waiting.append(task)
        self._hear(0.0)  # workers that have finished should not have to wait

    def take(self, go_on: GoOn) -> Any:
        oldest = self._calls[0].key
        self._hear(0.0)
        while oldest not in self._answers:
            if not go_on():
                return STOPPED
            self._hear(HEARTBEAT)
        self._calls.popleft()
        return self._answers.pop(oldest)

    def drop(self) -> list[Any]:
        """Discard all calls; results of running calls are discarded when they arrive."""
        dropped = [self._answers.get(task.key, STOPPED) for task in self._calls]
        for known in (self._calls, self._waiting, self._running, self._answers, self._failures):
            known.clear()
        return dropped

    @staticmethod
    def _key() -> str:
        return f"call {next(_serials)}"  # no two in one program: an executor may outlive a pool

    def _give(self) -> None:
        while self._waiting and self._executor.free > 0:
            task = self._waiting.popleft()
            self._executor.give(task)
            self._running[task.key] = task

    def _hear(self, seconds: float) -> None:
        self._give()
        ends = self._executor.wait(seconds)
        if not ends and not self._executor.running and self._running:
            raise ExecutorLost("the executor has forgotten what it was given")
        for end in ends:
            task = self._running.pop(end.key, None)
            if task is None:
                continue  # a dropped call
            if end.how == "done":
                self._answers[end.key] = end.result
                continue
            failed = self._failures[end.key] = self._failures.get(end.key, 0) + 1
            if failed >= TRIES:
                raise ExecutorLost(f"a call failed {failed} times, in the end: {end.reason}")
            self._waiting.appendleft(task)
        self._give()


@contextmanager
def open_pool(
    threads: int = 1, executor: Executor | None = None, prepare: Callable[[], Any] | None = None
) -> Iterator[Serial | ThreadPool | ExecutorPool]:
    """An executor's workers, if there is one; otherwise this many threads."""
    if executor is not None:
        yield ExecutorPool(executor, prepare)
    elif threads == 1:
        yield Serial()
    else:
        with ThreadPoolExecutor(threads) as workers:
            pool = ThreadPool(workers)
            try:
                yield pool
            finally:
                pool.drop()


def each(
    pool: Pool,
    at_once: int,
    work: Callable[[Any], Any],
    items: Iterable[Any],
    go_on: GoOn = lambda: True,
) -> Iterator[Any]:
    """As the builtin map, with some calls made ahead; it ends early once ``go_on`` says no."""
    made = 0
    for item in items:
        pool.put(work, item)
        made += 1
        if made > AHEAD * at_once:
            answer = pool.take(go_on)
            if answer is STOPPED:
                return
            yield answer
            made -= 1
    for _ in range(made):
        answer = pool.take(go_on)
        if answer is STOPPED:
            return
        yield answer
