"""The folder of a run, which holds its whole state.

    run.json           marks the folder, and names the plan that was followed last
    plans/*.json       the plans that were followed, with all their jobs
    records.jsonl      the outcome of every job (`journal`)
    instances/*.json   copies of the instances (agents of large ones beside them, as .npy)
    certificates/*.json
    lock               held by the program that is writing

One program writes at a time. Readers need no lock: files are replaced whole, and records are only
appended.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from mipmech import files
from mipmech.errors import InputError
from mipmech.model.instance import Instance
from mipmech.studies.batch import journal, storage
from mipmech.studies.batch.jobs import JOBS, Expansion, Job
from mipmech.studies.batch.journal import Journal
from mipmech.studies.batch.records import (
    CERTIFICATES,
    INSTANCES,
    LONGEST,
    Records,
    instance_file,
    typed,
)
from mipmech.text import harmless, writable

FORMAT = "mipmech/run@1"
MARK, PLANS, RECORDS, LOCK = "run.json", "plans", "records.jsonl", "lock"
# Instances with more numbers than this keep their agents in a table of their own.
LARGE = 5000
# Attempts to get the lock, and the seconds between them.
LOOKS, LOOK = 10, 0.05
# Instances that are kept in memory while their jobs are handed out.
AT_HAND = 8


@dataclass(frozen=True)
class PlanRecord:
    """The plan that a run follows.

    subjects, comparisons : validated where they are needed (`comparison.assembly`), so that a fault
        in them affects nothing else
    """

    name: str
    text: str
    jobs: tuple[Job, ...]
    left_out: tuple[str, ...] = ()
    subjects: Any = ()
    comparisons: Any = ()


@dataclass(frozen=True)
class RunFolder:
    """A run's folder."""

    path: Path

    @classmethod
    def make(cls, path: str | Path) -> RunFolder:
        """The folder, created if necessary; a folder with other contents is refused."""
        folder = Path(path)
        with files.faults("cannot be used for a run", folder, "out"):
            folder.mkdir(parents=True, exist_ok=True)
            storage.sync_folder(folder.parent)
            inside = [name for name in os.listdir(folder) if name != LOCK and name[0] != "."]
        if inside and MARK not in inside:
            raise InputError(
                "is not empty and not a run's folder; choose another with --out", file=folder
            )
        found = cls(folder)
        found._refuse_links()
        return found

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """An existing folder."""
        folder = Path(path)
        if not os.path.isdir(folder):
            what = "is a file" if os.path.exists(folder) else "does not exist"
            raise InputError(f"{what}; give the folder of a run, of bench or compare", file=folder)
        found = cls(folder)
        if not (folder / MARK).exists():
            raise InputError(f"holds no {MARK}; give the folder of a run", file=folder)
        found._refuse_links()
        found._marked()
        return found

    # ------------------------------------------------------------ plans

    def _mark(self, plan: str | None) -> None:
        storage.write_json(self.path / MARK, {"format": FORMAT, "plan": plan})

    def _marked(self) -> str | None:
        content = storage.read_json(self.path / MARK)
        if content.get("format") != FORMAT:
            raise InputError(f"its format is not {FORMAT!r}", file=self.path / MARK)
        plan = content.get("plan")
        return writable(plan) if isinstance(plan, str) else None

    def follow(self, expansion: Expansion) -> None:
        """Store a plan, which the run follows from now on."""
        content = expansion.to_dict()
        name = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
        file = self.path / PLANS / f"{name}.json"
        if not file.exists():
            storage.write_json(file, content)
        if self._marked() != name:
            self._mark(name)

    def follow_as(self, other: RunFolder) -> None:
        """Follow the plan that another folder follows, unless this one has its own."""
        if self._marked() is None:
            self._mark(other._marked())

    def plan(self) -> PlanRecord | None:
        """The plan that was followed last."""
        name = self._marked()
        if name is None:
            return None
        if Path(name).name != name:
            raise InputError(f"names a plan {name!r} elsewhere", file=self.path / MARK)
        file = self.path / PLANS / f"{name}.json"
        content = storage.read_json(file)
        if content.get("format", JOBS) != JOBS:
            raise InputError(f"its format is not {JOBS!r}; run its plan file again", file=file)
        try:
            found = typed(content, PlanRecord, "a whole plan")
            return replace(found, text=_lines(content["text"]))
        except InputError as error:
            said = f"{error.message}; run its plan file again"
            raise InputError(said, file=file) from None

    # ------------------------------------------------------------ instances

    def keep(self, sample: Instance) -> None:
        """Store a copy of an instance, unless there is a valid one."""
        file = self.path / instance_file(sample.digest)
        with contextlib.suppress(InputError):
            # Names of features are no part of the digest, and requirements may be about them.
            if file.exists() and _same(Instance.load(file), sample):
                return
        sample.save(file, "npy" if sample.agents.size > LARGE else "inline")

    def instance(self, digest: str) -> Instance:
        """The copy of an instance."""
        return _instance(self.path / instance_file(digest), digest)

    # ------------------------------------------------------------ records

    def records(self, whole: bool = True) -> Records:
        """The records so far, also while a run is writing.

        whole : with results and events, which are most of a record
        """
        return Records.of(journal.read(self.path / RECORDS), whole)

    def certificate(self, job: str) -> Path:
        """Where the certificate of a job lies."""
        return self.path / CERTIFICATES / f"{job}.json"

    @contextmanager
    def journal(self) -> Iterator[Journal]:
        """The journal, open for writing; pending records are written at the end."""
        with files.faults("cannot be written", self.path / RECORDS):
            writer = Journal(self.path / RECORDS)
        try:
            yield writer
        finally:
            writer.close()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder's lock; a second writer is refused with a clear message."""
        file = self.path / LOCK
        with files.faults("cannot be written", file):
            handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            self._lock(handle)
            self._furnish()
            yield
        finally:
            os.close(handle)  # and with it the lock, as it also goes if the program is killed

    def _refuse_links(self) -> None:
        """What a link leads to is outside of the folder: it is neither read nor written."""
        folders = [PLANS, INSTANCES, CERTIFICATES]
        found = [self.path / name for name in (LOCK, MARK, RECORDS, *folders)]
        for folder in found[3:]:
            if folder.is_dir() and not folder.is_symlink():
                with files.faults("cannot be read", folder), os.scandir(folder) as inside:
                    found += [Path(entry.path) for entry in inside if entry.is_symlink()]
        for file in found:
            if file.is_symlink():
                said = "is a link, and a run's folder holds its files itself; put what it leads to"
                raise InputError(f"{said} in its place", file=file)

    def _lock(self, handle: int) -> None:
        try:
            for _ in range(LOOKS):
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:  # perhaps only by a reader of `busy`
                    time.sleep(LOOK)
            else:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 1000, 0).decode(errors="replace").strip()
            raise InputError(
                f"another run is at work here ({holder or 'just started'}); wait until it has"
                " ended, or choose another folder with --out",
                file=self.path,
            ) from None
        except OSError as error:
            said = f"cannot be locked: {files.reason(error)}; choose a folder on another disk"
            raise InputError(said, file=self.path) from None
        now = datetime.now(UTC).isoformat(timespec="seconds")
        who = f"process {os.getpid()} on {os.uname().nodename}, since {now}"
        os.ftruncate(handle, 0)
        os.pwrite(handle, who.encode(), 0)

    def _furnish(self) -> None:
        """Create the parts of a run's folder; remove half-written files of a killed program."""
        if not (self.path / MARK).exists():
            self._mark(None)
        folders = [self.path / name for name in (PLANS, INSTANCES, CERTIFICATES)]
        with files.faults("cannot be written", self.path):
            for folder in folders:
                folder.mkdir(exist_ok=True)
        for folder in (self.path, *folders):
            for file in folder.glob(".*.json.*"):
                with files.faults("cannot be removed", file):
                    file.unlink(missing_ok=True)

    @property
    def busy(self) -> str | None:
        """The process that is writing here, if any."""
        try:
            handle = os.open(self.path / LOCK, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.pread(handle, 1000, 0).decode(errors="replace").strip() or "unknown"
        except OSError:
            return None
        finally:
            os.close(handle)
        return None


def _same(kept: Instance, sample: Instance) -> bool:
    return kept.digest == sample.digest and kept.features == sample.features


@lru_cache(maxsize=AT_HAND)
def _instance(file: Path, digest: str) -> Instance:
    found = Instance.load(file)
    if found.digest != digest:
        raise InputError("is not what it was when the run began: its digest differs", file=file)
    return found


def _lines(text: str) -> str:
    """An untrusted text of several lines, made safe to show."""
    shown = text[:LONGEST] + ("\n…" if len(text) > LONGEST else "")
    return "\n".join(harmless(line.expandtabs(4)).rstrip() for line in shown.splitlines())
