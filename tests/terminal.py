"""A terminal for programs under test."""

from __future__ import annotations

import contextlib
import os
import threading


def read_on(terminal: int) -> None:
    """Go on reading what is written to a terminal: one that nobody reads stops the program."""

    def read() -> None:
        with contextlib.suppress(OSError):
            while os.read(terminal, 4096):
                pass

    threading.Thread(target=read, daemon=True).start()
