"""Calls that are answered in the order in which they are made, wherever the work is done.

A `Crew` takes calls and hands back their answers, the oldest first. What comes out cannot depend on
how many work at it, as long as the answer to a call does not depend on where it is computed. There
are three: `Here` does the work itself when it is asked for an answer, `Threads` has threads for it,
and `Workers` an executor. Workers may die or fail: a call is then made again.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol

from mipmech.workers.executor import HEARTBEAT, Executor, ExecutorLost, Task

# How often a call is made whose workers die or fail.
TRIES = 3
# Calls per worker made ahead of a long list: one that runs, and one to go on with.
AHEAD = 2


class _Stopped:
    """No answer: the wait was stopped."""

    def __repr__(self) -> str:
        return "STOPPED"


STOPPED = _Stopped()
GoOn = Callable[[], bool]


class Crew(Protocol):
    """Whoever does the work."""

    def put(self, work: Callable[..., Any], *arguments: Any) -> None:
        """Make a call."""

    def take(self, go_on: GoOn) -> Any:
        """The answer to the oldest call; `STOPPED`, and nothing has changed, if told to stop."""

    def drop(self) -> list[Any]:
        """Forget all calls; the answers that are there already, and `STOPPED` for the others."""


class Here(Crew):
    """Does everything itself, when it is asked for."""

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


class Threads(Crew):
    """Has threads, for work that lets go of Python's lock."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self._calls: deque[Future[Any]] = deque()

    def put(self, work: Callable[..., Any], *arguments: Any) -> None:
        self._calls.append(self._pool.submit(work, *arguments))

    def take(self, go_on: GoOn) -> Any:
        if not go_on():
            return STOPPED
        return self._calls.popleft().result()

    def drop(self) -> list[Any]:
        dropped = [STOPPED if call.cancel() or not call.done() else call.result()
                   for call in self._calls]  # fmt: skip
        self._calls.clear()
        return dropped


_serials = itertools.count()


class Workers(Crew):
    """Has an executor.

    The executor may still be busy with calls of before, which were dropped; what becomes of those
    is not looked at. Raises `ExecutorLost` when there is no hope of an answer.

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
        """How many calls are worked at at once."""
        return max(1, self._executor.slots)

    def wake(self) -> None:
        """Let workers start and prepare themselves while there is nothing to do for them yet."""
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
        """Forget all calls; what still runs ends sometime and is not heard of again."""
        dropped = [self._answers.get(task.key, STOPPED) for task in self._calls]
        for known in (self._calls, self._waiting, self._running, self._answers, self._failures):
            known.clear()
        return dropped

    @staticmethod
    def _key() -> str:
        return f"call {next(_serials)}"  # no two in one program: an executor may outlive a crew

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
                continue  # a call that was dropped
            if end.how == "done":
                self._answers[end.key] = end.result
                continue
            failed = self._failures[end.key] = self._failures.get(end.key, 0) + 1
            if failed >= TRIES:
                raise ExecutorLost(f"a call failed {failed} times, in the end: {end.reason}")
            self._waiting.appendleft(task)
        self._give()


@contextmanager
def crew(
    threads: int = 1, executor: Executor | None = None, prepare: Callable[[], Any] | None = None
) -> Iterator[Here | Threads | Workers]:
    """An executor's workers, if there is one; or else this many threads."""
    if executor is not None:
        yield Workers(executor, prepare)
    elif threads == 1:
        yield Here()
    else:
        with ThreadPoolExecutor(threads) as pool:
            team = Threads(pool)
            try:
                yield team
            finally:
                team.drop()


def _always() -> bool:
    return True


def each(
    team: Crew,
    at_once: int,
    work: Callable[[Any], Any],
    items: Iterable[Any],
    go_on: GoOn = _always,
) -> Iterator[Any]:
    """As the builtin map, with some calls made ahead; it ends early when told to stop."""
    made = 0
    for item in items:
        team.put(work, item)
        made += 1
        if made > AHEAD * at_once:
            answer = team.take(go_on)
            if answer is STOPPED:
                return
            yield answer
            made -= 1
    for _ in range(made):
        answer = team.take(go_on)
        if answer is STOPPED:
            return
        yield answer
