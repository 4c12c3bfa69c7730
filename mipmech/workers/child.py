"""The inside of a worker process: takes tasks from its parent, one by one, and sends back results.

A worker is a plain Python program started by `workers.Processes` with one end of a pipe, in a
separate process group. It ignores Ctrl-C, which its parent handles. When its parent is gone, it
ends itself and all that it has started: a thread reads the pipe all the time, and notices when the
other end is closed. (It has to wait for native code that keeps Python's lock; HiGHS and the
compiled loops do not.)
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pickle
import queue
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

# A task's memory is measured from outside, some twenty times a second; faster growth is stopped by
# a limit on private memory: this share of the task's limit, plus these bytes.
FENCE_SHARE, FENCE_BYTES = 1.25, 256 << 20


def main(descriptor: int) -> None:
    """Serve the parent at the other end of this pipe, until it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    faulthandler.enable(all_threads=False)  # a crash in a solver leaves a trace in the output
    pipe: Connection[Any, Any] = Connection(descriptor)
    inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, inbox), daemon=True).start()
    while True:
        message = inbox.get()
        pipe.send_bytes(_serve(message, lambda: pipe.send_bytes(BEGAN)))


BEGAN = pickle.dumps(("began",))


def _listen(pipe: Connection[Any, Any], inbox: queue.SimpleQueue[bytes]) -> None:
    try:
        while True:
            inbox.put(pipe.recv_bytes())
    except (EOFError, OSError):
        os.killpg(0, signal.SIGKILL)  # the main thread may be deep inside a solver


def _serve(message: bytes, began: Callable[[], None]) -> bytes:
    """Do one task; the answer is ("ended", result, error, seconds, peak memory)."""
    result, error, seconds = None, None, 0.0
    try:
        prepare, work, arguments, memory = pickle.loads(message)
        _fence(memory)
        if prepare is not None:
            prepare()
        began()
        _forget_peak()
        start = time.monotonic()
        try:
            result = work(*arguments)
        finally:
            seconds = time.monotonic() - start
        return pickle.dumps(("ended", result, None, seconds, peak_memory()))
    except MemoryError as fault:
        error = ("memory", f"out of memory: {fault}" if str(fault) else "out of memory")
    except BaseException as fault:
        error = ("error", f"{type(fault).__name__}: {fault}")
    return pickle.dumps(("ended", None, error, seconds, peak_memory()))


def _fence(memory: int | None) -> None:
    """A limit on private memory, so that a request for far too much fails at once."""
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    most = resource.RLIM_INFINITY if memory is None else int(memory * FENCE_SHARE + FENCE_BYTES)
    if hard != resource.RLIM_INFINITY:
        most = hard if most == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def _forget_peak() -> None:
    """Let the kernel's record of the most memory used begin again (Linux)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory() -> int:
    """The most bytes that this process has used: since `_forget_peak`, or else since its start."""
    with contextlib.suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/self/status").read_text().splitlines()
        peak = next(line for line in lines if line.startswith("VmHWM:"))
        return int(peak.split()[1]) << 10
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used << 10
