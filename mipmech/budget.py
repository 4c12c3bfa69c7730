"""How much a piece of work may spend, why it stopped, and how it tells of its progress."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from numbers import Integral, Real
from types import FrameType

from mipmech.errors import InputError, shorten
from mipmech.rationals import round_down, round_up


class Stop(Enum):
    """Why an oracle stopped; what it has is another matter and stands in the answer."""

    CLOSED = "the bounds meet"
    FINISHED = "completed"
    INFEASIBLE = "no direction has this η"
    UNMET = "no rule with this η meets the requirements"
    NO_ANSWER = "this oracle knows no direction with this η"
    TIME = "time limit"
    FAILED = "the solver failed"
    NODES = "node limit"
    INTERRUPTED = "interrupted"
    LOST = "the workers were lost"


@dataclass(frozen=True)
class Event:
    """A moment of progress: the best value found, the bound (if any), and the work so far.

    note : what is being done, in words
    """

    seconds: float
    lower: float
    upper: float | None
    work: int
    note: str = ""


class Trace:
    """Keeps the events in which a bound changed, ``most`` at most, and passes all of them on.

    Of a long run the last events are kept, and every second one before, again and again.
    """

    def __init__(self, watch: Callable[[Event], None] | None = None, most: int = 200) -> None:
        self.watch = watch
        self.most = most
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        if self.watch is not None:
            self.watch(event)
        last = (self.events[-1].lower, self.events[-1].upper) if self.events else (0.0, None)
        if last != (event.lower, event.upper):
            self.events.append(event)
            if len(self.events) > self.most:
                half = len(self.events) // 2
                self.events[:half] = self.events[:half:2]


@dataclass(frozen=True)
class Budget:
    """How much a piece of work may spend.

    Parameters
    ----------
    seconds : float
        Wall time, without compiling the engine, which happens once.
    threads : int
        Threads; results do not depend on them.
    nodes : int, optional
        Nodes of a branch and bound.
    watch : callable, optional
        Receives an `Event` whenever there is progress to tell.
    """

    seconds: float = math.inf
    threads: int = 1
    nodes: int | None = None
    watch: Callable[[Event], None] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check("seconds", self.seconds, 0, Real)
        _check("threads", self.threads, 1, Integral)
        if self.nodes is not None:
            _check("nodes", self.nodes, 0, Integral)

    def start(self) -> Timer:
        """Start the clock."""
        return Timer(self)

    def rest(self, timer: Timer) -> Budget:
        """What is left of it, for a part of the work.

        Parameters
        ----------
        timer : Timer
            The clock that has run so far.
        """
        return replace(self, seconds=timer.left)


def noting(watch: Callable[[Event], None] | None, note: str) -> Callable[[Event], None] | None:
    """A watch that says of which part of the work it hears."""
    if watch is None:
        return None
    return lambda event: watch(replace(event, note=f"{note}; {event.note}".rstrip("; ")))


def _check(field: str, value: object, least: int, kind: type) -> None:
    """Refuse what is no number, or one that is too small; booleans are no numbers."""
    if not isinstance(value, kind) or isinstance(value, bool):
        number = "a whole number" if kind is Integral else "a number"
        said = f"is {shorten(value)}; give {number}, {least} or more, or leave it out"
        raise InputError(said, field=field)
    if not value >= least:  # type: ignore[operator]
        raise InputError(f"is {value}; give {least} or more", field=field)


class _Clock:
    """The time that all clocks count; it stands still while anything is off the clock."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._stopped_by = 0
        self._stopped_at = 0.0
        self._uncounted = 0.0

    def now(self) -> float:
        with self._lock:
            moment = self._stopped_at if self._stopped_by else time.monotonic()
            return moment - self._uncounted

    def stop(self) -> None:
        with self._lock:
            if not self._stopped_by:
                self._stopped_at = time.monotonic()
            self._stopped_by += 1

    def go_on(self) -> None:
        with self._lock:
            self._stopped_by -= 1
            if not self._stopped_by:
                self._uncounted += time.monotonic() - self._stopped_at


_CLOCK = _Clock()
_now = _CLOCK.now


@contextmanager
def off_the_clock() -> Iterator[None]:
    """All clocks stand still while this goes on, in whatever thread."""
    _CLOCK.stop()
    try:
        yield
    finally:
        _CLOCK.go_on()


# The clocks that Ctrl-C stops; only the main thread, where signals arrive, has any.
_LISTENING: list[Timer] = []


class Timer:
    """The clock of one call."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.began = _now()
        self.interrupted = False

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return _now() - self.began

    @property
    def left(self) -> float:
        """Time until the limit, never negative; 0 after Ctrl-C."""
        return 0.0 if self.interrupted else max(0.0, self.budget.seconds - self.seconds)

    def allow(self, seconds: float) -> None:
        """Give it so much time, from now on."""
        self.budget = replace(self.budget, seconds=self.seconds + seconds)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """While inside, Ctrl-C ends the time of this clock; a second one interrupts as usual.

        An exception at any moment could catch a search between two states that are both right; a
        clock that has run out is looked at only where it is safe.
        """
        here = threading.current_thread() is threading.main_thread()
        usual = signal.getsignal(signal.SIGINT)
        if not here or not callable(usual):
            yield
            return

        def hear(number: int, frame: FrameType | None) -> None:
            if all(timer.interrupted for timer in _LISTENING):
                usual(number, frame)
            for timer in _LISTENING:
                timer.interrupted = True

        outermost = not _LISTENING
        if any(timer.interrupted for timer in _LISTENING):
            self.interrupted = True  # it came just before this clock began to listen
        _LISTENING.append(self)
        if outermost:  # clocks inside one another all hear the same signal
            signal.signal(signal.SIGINT, hear)
        try:
            yield
        finally:
            _LISTENING.remove(self)
            if outermost:
                signal.signal(signal.SIGINT, usual)

    def tell(self, lower: Fraction | float, upper: Fraction | float | None, work: int) -> None:
        """Report progress to the budget's ``watch``."""
        if self.budget.watch is not None:
            above = None if upper is None else round_up(Fraction(upper))
            self.budget.watch(Event(self.seconds, round_down(Fraction(lower)), above, work))
