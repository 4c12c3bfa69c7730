"""A run kept in memory; in a folder too, if there is one, for as long as its disk takes it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
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
        """The folder; of a run in memory alone, one that is not there."""
        return Path("memory") if self.folder is None else self.folder.path

    def keep(self, sample: Instance) -> None:
        """Keep an instance."""
        self._samples[sample.digest] = sample
        if self.folder is not None and self.unwritten is None:
            try:
                self.folder.keep(sample)
            except InputError as error:
                lost = f"{sample.name} and all records are missing there"
                self.unwritten = f"{error}: {lost}; {AGAIN}"

    def follow(self, expansion: Expansion) -> None:
        """Keep the plan."""
        if self.folder is not None and self.unwritten is None:
            try:
                self.folder.follow(expansion)
            except InputError as error:
                self.unwritten = f"{error}: the plan and all records are missing there; {AGAIN}"

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
    """Keeps records in memory, and gives them to a journal as long as that takes them."""

    def __init__(
        self, run: MemoryRun, disk: Journal | None, lines: dict[str, dict[str, Any]]
    ) -> None:
        self._run = run
        self._disk = disk
        self.window = 0.0 if disk is None else disk.window
        self._lines = lines
        self._given: dict[str, None] = {}

    def append(
        self, key: str, record: Mapping[str, Any], attached: Mapping[Path, bytes] | None = None
    ) -> None:
        """Keep a record, exactly as a reader of its line would see it."""
        line = json.loads(line_of(record))
        self._lines[key] = line
        self._given[key] = None
        if self._disk is not None:
            self._disk.append(key, record, attached)

    @property
    def pending(self) -> int:
        """Records that were given and have not been seen to be settled."""
        return len(self._given)

    def settled(self) -> list[str]:
        """The keys of the records that are safe since the last call: on the disk, if it is used."""
        if self._disk is not None:
            try:
                found = self._disk.settled()
            except JournalFault as fault:
                count = len(self._given)
                said = f"{fault}; {count} or more records are missing there; {AGAIN}"
                self._run.unwritten = f"{self._run.path}: {said}"
                self._disk = None
            else:
                for key in found:
                    del self._given[key]
                return found
        found = list(self._given)
        self._given.clear()
        return found
