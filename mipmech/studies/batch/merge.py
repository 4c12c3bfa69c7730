"""Joining the folders of runs: the parts of one plan, done on several machines."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mipmech import files, untrusted
from mipmech.errors import InputError
from mipmech.studies.batch.folder import PLANS, RunFolder
from mipmech.studies.batch.journal import Journal, JournalFault
from mipmech.studies.batch.records import INSTANCES, Record
from mipmech.tolerances import LARGEST_CERTIFICATE, LARGEST_TABLE


@dataclass(frozen=True)
class Merged:
    """The outcome of a merge.

    records : jobs on record in the merged folder
    added : of them, those that were missing before, or had no result
    twice : jobs with a result in several folders; the first one is kept
    """

    folder: str
    records: int
    added: int
    twice: int

    def to_dict(self) -> dict[str, Any]:
        """The object printed under ``--json``."""
        return asdict(self)


def merge_runs(sources: Sequence[str | Path], out: str | Path) -> Merged:
    """Put the records of several folders into one, which may exist already.

    Of records of one job, one with a result counts before one without. The folders that are
    merged stay as they are. Merging again adds nothing.
    """
    opened = [RunFolder.open(source) for source in sources]
    if not opened:
        raise InputError("there are none; name one or more", field="folders")
    for source in opened:
        if source.path.resolve() == Path(out).resolve():
            raise InputError("is among the folders to be merged; choose another", file=Path(out))
    target = RunFolder.make(out)
    added = twice = 0
    with target.locked():
        had = target.records(whole=False).last
        with target.journal() as journal:
            for source in opened:
                for name in (PLANS, INSTANCES):
                    _copy_files(source.path / name, target.path / name)
                target.follow_as(source)
                for key, record in source.records().last.items():
                    before = had.get(key)
                    if before is not None and before.done:
                        twice += record.done
                        continue
                    if before is not None and not record.done:
                        continue
                    journal.append(key, record.to_dict(), _certificate(source, target, record))
                    had[key] = record
                    added += 1
            _finish(journal)
    return Merged(str(target.path), len(had), added, twice)


def _certificate(source: RunFolder, target: RunFolder, record: Record) -> dict[Path, bytes]:
    if record.certificate is None:
        return {}
    file = source.certificate(record.id)
    with files.faults("cannot be read", file):
        content = untrusted.read_bytes(file, LARGEST_CERTIFICATE)
    return {target.certificate(record.id): content}


def _finish(journal: Journal) -> None:
    journal.close()
    try:
        journal.settled()
        journal.settled()
    except JournalFault as fault:
        raise InputError(str(fault), file=journal.path) from None


def _copy_files(source: Path, target: Path) -> None:
    """Files that are not there yet; each appears whole."""
    for file in sorted(source.glob("*")):
        goal = target / file.name
        if file.is_file() and not file.name.startswith(".") and not goal.exists():
            with files.faults("cannot be written", goal):
                temporary = target / f".{file.name}.json.merging"
                with untrusted.opened(file, LARGEST_TABLE) as stream, temporary.open("wb") as copy:
                    shutil.copyfileobj(stream, copy)
                temporary.replace(goal)
