"""A run kept in memory, and in a folder too, if there is one, until its disk fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from mipmech.errors import InputError
from mipmech.model.instance import Instance
from mipmech.studies.batch.folder import RunFolder
from mipmech.studies.batch.jobs import Expansion
from mipmech.studies.batch.journal import Journal, JournalFault, line_of
from mipmech.studies.batch.records import Records

AGAIN = "run the same command again with room to add them"


class MemoryRun:
    """The records and instances of a run.

    unwritten : why not everything is in the folder, if it is not
    """

    def __init__(self, folder: RunFolder | None = None) -> None:
        self.folder = folder
        self.unwritten: str | None = None
        self._samples: dict[str, Instance] = {}
        self._before = Records({}, 0, 0) if folder is None else folder.records()
        self._lines: dict[str, dict[str, Any]] = {}

    @property
    def path(self) -> Path:
        """The folder; a path that does not exist for a run in memory alone."""
        return Path("memory") if self.folder is None else self.folder.path

    def keep(self, sample: Instance) -> None:
        """Keep an instance."""
        self._samples[sample.digest] = sample
        self._on_disk(sample.name, lambda folder: folder.keep(sample))

    def follow(self, expansion: Expansion) -> None:
        """Keep the plan."""
        self._on_disk("the plan", lambda folder: folder.follow(expansion))

    def _on_disk(self, what: str, write: Callable[[RunFolder], None]) -> None:
        if self.folder is not None and self.unwritten is None:
            try:
                write(self.folder)
            except InputError as error:
                self.unwritten = f"{error}: {what} and all records are missing there; {AGAIN}"

    def instance(self, digest: str) -> Instance:
        return self._samples[digest]

    def records(self, whole: bool = True) -> Records:
        found = Records.of(self._lines.values(), whole)
        lines = self._before.lines + found.lines
        return Records({**self._before.last, **found.last}, lines, self._before.damaged)

    def certificate(self, job: str) -> Path:
        return self.path / "certificates" / f"{job}.json"

    @contextmanager
    def journal(self) -> Iterator[Tee]:
        with ExitStack() as stack:
            disk = None
            if self.folder is not None and self.unwritten is None:
                disk = stack.enter_context(self.folder.journal())
            yield Tee(self, disk, self._lines)


class Tee:
    """Keeps records in memory, and passes them to a journal until that fails."""

    def __init__(
        self, run: MemoryRun, disk: Journal | None, lines: dict[str, dict[str, Any]]
    ) -> None:
        self._run = run
        self._disk = disk
        self.window = 0.0 if disk is None else disk.window
        self._lines = lines
        self._given: list[str] = []

    def append(
        self, key: str, record: Mapping[str, Any], attached: Mapping[Path, bytes] | None = None
    ) -> None:
        """Keep a record, exactly as a reader of its line would see it."""
        self._lines[key] = json.loads(line_of(record))
        self._given.append(key)
        if self._disk is not None:
            self._disk.append(key, record, attached)

    @property
    def pending(self) -> int:
        """Number of records not yet reported by `settled`."""
        return len(self._given)

    def settled(self) -> list[str]:
        """The keys of the records that became safe since the last call."""
        if self._disk is not None:
            try:
                found = self._disk.settled()
            except JournalFault as fault:
                count = len(self._given)
                said = f"{fault}; {count} or more records are missing there; {AGAIN}"
                self._run.unwritten = f"{self._run.path}: {said}"
                self._disk = None
            else:
                safe = set(found)
                self._given = [key for key in self._given if key not in safe]
                return found
        found, self._given = self._given, []
        return found
