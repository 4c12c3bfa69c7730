"""The records of a run: a file that is only appended to, and that survives any crash.

A record is a line of JSON that ends with its own checksum. Lines are appended and brought to the
disk (fsync) in groups by a separate thread; a record counts as *settled* only after that. A line
left half written by a kill or a power cut has no end of line: readers ignore it, and the next
writer cuts it off. A line damaged later does not match its checksum; it is skipped and counted.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import stat
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mipmech import files, untrusted
from mipmech.errors import InputError
from mipmech.studies.batch.storage import sync_folder
from mipmech.tolerances import LARGEST_JOURNAL, LARGEST_RECORD

# A record waits at most this long for others to share its way to the disk.
WINDOW = 0.02
MOST_TOGETHER = 10_000
# Bytes looked at in one step when the end of a torn file is searched.
STEP = 1 << 16

Record = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """A record on its way to the disk, with the files that it names: path -> content."""

    key: str
    line: bytes
    attached: Mapping[Path, bytes]


class JournalFault(OSError):
    """Records can no longer be written; settled ones are safe."""

    def __str__(self) -> str:
        return str(self.strerror)


def line_of(record: Mapping[str, Any]) -> bytes:
    r"""A record as a line.

    >>> line_of({"id": "a"})
    b'{"id":"a","check":"143f85da"}\n'
    """
    text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    body = text.encode()[:-1]
    return body + b',"check":"%08x"}\n' % zlib.crc32(body)


def record_in(line: bytes) -> Record | None:
    """The record of a line; None if the line is not whole."""
    body, mark, rest = line.rpartition(b',"check":"')
    if not mark or rest[8:] != b'"}\n' or rest[:8] != b"%08x" % zlib.crc32(body):
        return None
    try:
        record = untrusted.json_value(line.decode())
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def read(path: Path) -> Iterator[Record | None]:
    """The records of a file in their order; None for a damaged one. A torn end is no record."""
    if not path.exists():
        return
    with files.faults("cannot be read", path), untrusted.opened(path, LARGEST_JOURNAL) as stream:
        while line := stream.readline(LARGEST_RECORD):
            whole = len(line) < LARGEST_RECORD
            while len(line) == LARGEST_RECORD and not line.endswith(b"\n"):
                line = stream.readline(LARGEST_RECORD)
            if not line.endswith(b"\n"):
                break  # it is just being written, or its writer was killed
            yield record_in(line) if whole else None


class Journal:
    """The writer of a journal; one at a time (`folder.RunFolder.locked`).

    window : seconds for which a record may wait for others
    """

    def __init__(self, path: Path, window: float = WINDOW) -> None:
        self.path = path
        self.window = window
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        if not stat.S_ISREG(os.fstat(self._file).st_mode):
            os.close(self._file)
            raise InputError("is not a plain file, so no records are kept in it", file=path)
        self._end = _cut_torn_end(self._file)
        sync_folder(path.parent)
        self._inbox: queue.SimpleQueue[Entry | None] = queue.SimpleQueue()
        self._settled: queue.SimpleQueue[Entry] = queue.SimpleQueue()
        self._fault: Exception | None = None
        self._given = self._taken = 0
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    def append(
        self, key: str, record: Mapping[str, Any], attached: Mapping[Path, bytes] | None = None
    ) -> None:
        """Queue a record, to be written after its files; safe once `settled` names its key."""
        entry = Entry(key, line_of(record), attached or {})
        self._given += 1
        self._inbox.put(entry)

    @property
    def pending(self) -> int:
        """Number of records not yet reported by `settled`."""
        return self._given - self._taken

    def settled(self) -> list[str]:
        """The keys of the records that have reached the disk since the last call.

        Raises `JournalFault` if the disk accepts no more.
        """
        found = []
        while not self._settled.empty():
            found.append(self._settled.get().key)
        self._taken += len(found)
        if self._fault is not None and not found:
            cause = self._fault.__cause__ or self._fault  # what the system said of a file
            number = getattr(cause, "errno", None)
            raise JournalFault(number, f"records cannot be written: {files.reason(cause)}")
        return found

    def close(self) -> None:
        """Write all pending records; afterwards `settled` names them."""
        if self._thread.is_alive():
            self._inbox.put(None)
            self._thread.join()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    # ------------------------------------------------------------ the thread

    def _work(self) -> None:
        open_ = True
        while open_:
            lot, open_ = self._lot()
            try:
                if lot:
                    self._write(lot)
            except Exception as error:  # whatever it is, nothing after it may count as written
                self._fault = error
                return
            for entry in lot:
                self._settled.put(entry)

    def _lot(self) -> tuple[list[Entry], bool]:
        """The next records to write together; whether more may come."""
        first = self._inbox.get()
        if first is None:
            return [], False
        lot = [first]
        until = time.monotonic() + self.window
        while len(lot) < MOST_TOGETHER:
            left = until - time.monotonic()
            try:  # after the window, only what is there already
                entry = self._inbox.get(block=left > 0, timeout=max(left, 0.0))
            except queue.Empty:
                break
            if entry is None:
                return lot, False
            lot.append(entry)
        return lot, True

    def _write(self, lot: list[Entry]) -> None:
        folders = set()
        for entry in lot:
            for path, content in entry.attached.items():
                files.write(path, content)
                folders.add(path.parent)
        for folder in folders:
            sync_folder(folder)
        data = memoryview(b"".join(entry.line for entry in lot))
        size = len(data)
        try:
            while data:
                data = data[os.write(self._file, data) :]
            os.fsync(self._file)
        except OSError:
            with contextlib.suppress(OSError):  # if it stays, the next writer cuts it off
                os.ftruncate(self._file, self._end)
            raise
        self._end += size


def _cut_torn_end(file: int) -> int:
    """Cut off what follows the last end of line; the size that is left."""
    size = end = os.fstat(file).st_size
    while end:
        start = max(0, end - STEP)
        found = os.pread(file, end - start, start).rfind(b"\n")
        if found >= 0:
            end = start + found + 1
            break
        end = start
    if end < size:
        os.ftruncate(file, end)
        os.fsync(file)
    return end
