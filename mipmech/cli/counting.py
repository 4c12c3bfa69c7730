"""Progress over many jobs: a bar on a terminal, a line now and then in a log."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mipmech.text import estimate, printable

if TYPE_CHECKING:
    from mipmech.studies.batch.runner import Progress

# A log gets a line at every tenth of the jobs, and at least this often while anything ends.
EVERY = 60.0


class Counting:
    """Shows progress, and says what has to be said in between."""

    def __init__(
        self,
        show: Callable[[int, int, float, list[str], str], None],
        say: Callable[[str], None],
        first: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._show = _harmless(show)
        self.say = _harmless(say)
        self._first = _harmless(first)

    def reading(self, done: int, total: int) -> None:
        """Instances are read before anything runs."""
        self._first(f"reading the instances: {done} of {total}")

    def ran(self, now: Progress) -> None:
        """A batch has come so far."""
        rate = f"{now.rate:.3g} jobs/s" if now.rate >= 1 else f"{60 * now.rate:.3g} jobs/min"
        parts = [f"{now.failed} without result"] * bool(now.failed) + [rate] * bool(now.rate)
        self._show(now.done, now.total, now.left, parts, now.note)


def _harmless(tell: Callable[..., None]) -> Callable[..., None]:
    """A closed pipe on stderr must not end the work."""

    def told(*words: Any) -> None:
        try:
            tell(*words)
        except OSError:
            # What is left in the buffer goes nowhere, and does not spoil the exit status either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())

    return told


@contextmanager
def counting(quiet: bool) -> Iterator[Counting | None]:
    """A progress bar on stderr; in a log, a line now and then."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _bar() as counting:
            yield counting
    else:
        yield _log()


def _log() -> Counting:
    told = -1
    when = time.monotonic()

    def show(done: int, total: int, left: float, rest: list[str], _note: str) -> None:
        nonlocal told, when
        tenth = 10 * done // max(total, 1)
        if tenth > told or time.monotonic() - when > EVERY:
            told, when = tenth, time.monotonic()
            ahead = [f"about {estimate(left)} left"] * (done < total)
            say(", ".join([f"{done} of {total} done", *rest, *ahead]))

    def say(text: str) -> None:
        print(printable(text), file=sys.stderr, flush=True)

    return Counting(show, say)


@contextmanager
def _bar() -> Iterator[Counting]:
    from rich.console import Console  # noqa: PLC0415  (slow to import)
    from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn  # noqa: PLC0415
    from rich.progress import Progress as Bar  # noqa: PLC0415
    from rich.progress import Task as Row  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console(stderr=True)

    class Left(ProgressColumn):
        """The time that is left: counted down between two ends of jobs."""

        def render(self, task: Row) -> Text:
            fields = task.fields
            if fields["until"] is None:
                return Text(fields["note"])
            left = max(0.0, fields["until"] - time.monotonic())
            ahead = [f"about {estimate(left)} left"] * (not task.finished)
            return Text("; ".join([", ".join([*fields["rest"], *ahead]), fields["note"]]))

    with Bar(
        BarColumn(bar_width=20), MofNCompleteColumn(), Left(), console=console, transient=True
    ) as bar:
        task = bar.add_task("", total=None, rest=[], until=None, note="starting the workers")

        def show(done: int, total: int, left: float, rest: list[str], note: str) -> None:
            until = time.monotonic() + left
            bar.update(task, completed=done, total=total, rest=rest, until=until, note=note)

        def first(text: str) -> None:
            bar.update(task, note=printable(text))

        yield Counting(show, lambda text: console.print(Text(printable(text))), first)
