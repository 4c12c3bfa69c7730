"""Compiling the engine, which happens once on a machine, before the first search.

The compiled code is kept on disk, in `__pycache__` beside `kernel` or where numba's
`NUMBA_CACHE_DIR` says. Code for one kind of processor is wrong for another, so none is shipped.
"""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba.core.event import Listener, install_listener

from mipmech.budget import Event, off_the_clock
from mipmech.oracles.cells import kernel
from mipmech.oracles.cells.blocks import CellProblem, Orders, roots, search

# One thread loads, the others wait for it.
_LOADING = threading.Lock()
_LOADED: list[bool] = []


def warm(watch: Callable[[Event], None] | None = None) -> None:
    """Load all compiled code; compile it where that was never done, which no clock counts.

    Ctrl-C ends it between two steps of the compiler, and leaves nothing half done.

    watch : receives an event if there is something to compile
    """
    with _LOADING:
        if _LOADED:
            return
        with off_the_clock(), _Compiling(watch).listening():
            one, none = np.ones(1), np.zeros(1)
            problem = CellProblem(kernel.GAIN, one[None, :], none, none, one, one, one)
            problem.values(one[None, :])
            search(problem, roots(problem)[0], Orders(math.inf, 0.0, none[:0], 0.0, 0))
        _LOADED.append(True)


class _Compiling(Listener):  # type: ignore[misc]  # numba has no types
    """Listens to the compiler, to say that it is at work, and to end it."""

    def __init__(self, watch: Callable[[Event], None] | None) -> None:
        self.watch = watch
        self.interrupted = False

    def on_start(self, event: object) -> None:
        """A step begins, so that no code was found on disk."""
        del event
        if self.interrupted:
            raise KeyboardInterrupt
        if self.watch is not None:
            self.watch(Event(0.0, 0.0, None, 0, "compiling the engine (once)"))
            self.watch = None

    def on_end(self, event: object) -> None:
        """A step ends."""

    @contextmanager
    def listening(self) -> Iterator[None]:
        """While inside, Ctrl-C waits for the next step.

        LLVM calls back into Python, where exceptions would be printed and forgotten.
        """
        usual = signal.getsignal(signal.SIGINT)
        here = threading.current_thread() is threading.main_thread() and callable(usual)

        def hear(*_: Any) -> None:
            self.interrupted = True

        if here:
            signal.signal(signal.SIGINT, hear)
        try:
            with install_listener("numba:run_pass", self):
                yield
        finally:
            if here:
                signal.signal(signal.SIGINT, usual)
        if self.interrupted:
            raise KeyboardInterrupt
