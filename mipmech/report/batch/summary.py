"""What a batch comes to, in sentences that are read off its records."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from mipmech.report.kit.sentence import Name, Sentence, bad, note
from mipmech.report.reading import Batch
from mipmech.studies.batch.records import Record
from mipmech.text import THIN, count, duration, gap_percent, listed, moment

# What became of a job, in words; in the order in which they are told.
ENDS = {
    "timeout": "ran out of time",
    "memory": "ran out of memory",
    "crashed": "lost the worker",
    "failed": "failed",
}
# Bounds of two jobs may overlap by so much: they are rounded.
ROUNDED = 1e-9


def title(batch: Batch) -> str:
    """What was done, for the head of the page."""
    jobs = f"{count(len(batch.jobs), 'job')} on {count(batch.size, 'instance')}"
    return f"{batch.name}: {jobs}" if batch.name else jobs


def summary(batch: Batch) -> list[Sentence]:
    """The whole summary, the gravest first."""
    standing = [] if _open(batch) else [_ended(batch)]
    return [
        *_contradicted(batch), *notes(batch), *standing, *_without_result(batch),
        *_certified(batch),
    ]  # fmt: skip


def notes(batch: Batch) -> list[Sentence]:
    """What limits whatever else is said, of a comparison alone too."""
    return [*_open(batch), *_unreadable(batch), *_mixed(batch), *_others(batch)]


# ------------------------------------------------------------------ how it stands


def _as_of(batch: Batch) -> str:
    return "" if batch.newest is None else f", as of {moment(batch.newest)}"


def _open(batch: Batch) -> list[Sentence]:
    """What is to come, if anything is."""
    ended, total = len(batch.entries) + batch.odd, len(batch.jobs)
    when = _as_of(batch)
    if not batch.planned:
        if batch.busy:
            return [note("The run has just begun: there is no plan yet.")]
        return [note(f"There is no plan here, only {count(len(batch.entries), 'record')}{when}.")]
    if batch.busy:
        return [note(f"The run goes on: {ended:,} of {total:,} jobs so far{when}.")]
    if batch.missing:
        jobs = f"{batch.missing:,} of {count(total, 'job')}"
        said = f"The run is not complete: {jobs} have not been done{when}."
        return [note(f"{said} Run the plan again to do the rest.")]
    return []


def _ended(batch: Batch) -> Sentence:
    total, done = len(batch.jobs), len(batch.entries) - len(batch.failed)
    what = "with a result" if done == total else f"{done:,} with a result"
    work = duration(sum(entry.seconds for entry in batch.entries))
    text = f"All {count(total, 'job')} have ended, {what}, after {work} of work{_as_of(batch)}."
    return Sentence((text,))


def _unreadable(batch: Batch) -> list[Sentence]:
    lost = [note(f"A comparison cannot be shown: {why}.") for why in batch.lost]
    number = batch.odd + batch.damaged
    if not number:
        return lost
    were = "is" if number == 1 else "are"
    said = f"{count(number, 'record')} could not be understood and {were} left out."
    return [note(said), *lost]


def _others(batch: Batch) -> list[Sentence]:
    if not batch.others:
        return []
    said = f"{count(batch.others, 'record')} of jobs that the plan does not have"
    return [Sentence((f"{said} are left out; bench export has them.",))]


def _mixed(batch: Batch) -> list[Sentence]:
    number = len(makers(batch))
    if number < 2:
        return []
    said = f"The records were made by {number} set-ups (below): compare times with care."
    return [note(said)]


def makers(batch: Batch) -> list[tuple[dict[str, Any], int]]:
    """Versions and machines that records were made by, the most frequent first."""
    made = [(repr(sorted(e.made_by.items())), e.made_by) for e in batch.entries if e.made_by]
    first, counts = dict(reversed(made)), Counter(key for key, _ in made)
    return [(first[key], number) for key, number in counts.most_common()]


# ------------------------------------------------------------------ what was found


def by_end(batch: Batch) -> dict[str, int]:
    """Jobs without a result by what became of them, the known ends first."""
    counts = Counter(entry.status for entry in batch.failed)
    known = [status for status in ENDS if status in counts]
    return {status: counts[status] for status in (*known, *sorted(set(counts) - set(known)))}


def _without_result(batch: Batch) -> list[Sentence]:
    if not batch.failed:
        return []
    ends = [f"{number:,} {ENDS.get(end, end)}" for end, number in by_end(batch).items()]
    has = "has" if len(batch.failed) == 1 else "have"
    text = f"{count(len(batch.failed), 'job')} {has} no result: {listed(ends[:8])}."
    broken = {e.instance.digest for e in batch.failed if e.instance.digest.startswith("broken-")}
    if broken:
        are = "is no instance" if len(broken) == 1 else "are no instances"
        text += f" {count(len(broken), 'file')} {are}."
    return [note(text)]


def _certified(batch: Batch) -> list[Sentence]:
    found = batch.of("certify")
    if not found:
        return []
    open_ = [entry for entry in found if entry.bounds and entry.bounds.status != "optimal"]
    certificates = count(len(found), "certificate")
    told = [f"{len(found) - len(open_):,} of {certificates} reached the gap asked for"]
    if open_:
        widest = max(open_, key=lambda entry: entry.gap or 0.0)
        gap = gap_percent(widest.lower or 0.0, widest.upper or 0.0)
        told += [f"; the widest gap left is {gap}{THIN}%, on ", Name(widest.name)]
    return [Sentence((*told, "."))]


def ceilings(batch: Batch) -> dict[str, float]:
    """Digest -> the least upper bound on the greatest gain that any job has left."""
    found: dict[str, float] = {}
    for entry in batch.entries:
        if entry.done and entry.bounds and entry.bounds.what == "gain" and entry.upper is not None:
            digest = entry.instance.digest
            found[digest] = min(entry.upper, found.get(digest, entry.upper))
    return found


def share(entry: Record, least: dict[str, float]) -> float | None:
    """The share of the greatest gain that a rule surely has."""
    upper = least.get(entry.instance.digest)
    if upper is None or entry.lower is None:
        return None
    return min(1.0, max(0.0, entry.lower / upper)) if upper > 0 else 1.0


# ------------------------------------------------------------------ contradictions


@dataclass(frozen=True)
class Contradiction:
    """Bounds of one optimum that exclude each other: a bug."""

    lower: Record
    upper: Record


def contradictions(batch: Batch) -> list[Contradiction]:
    """Where a job found more than another (or itself) says there is."""
    asked: dict[tuple[object, ...], list[Record]] = {}
    for entry in batch.entries:
        if entry.done and entry.bounds:
            what, options = entry.bounds.what, entry.options
            at = (options.get("eta"), options.get("eta_fraction")) if what != "gain" else ()
            asked.setdefault((entry.instance.digest, what, *at), []).append(entry)
    found = []
    for entries in asked.values():
        best = max(entries, key=lambda entry: entry.lower or 0.0)
        bounded = [entry for entry in entries if entry.upper is not None]
        least = min(bounded, key=lambda entry: entry.upper or 0.0, default=None)
        if least is None or best.lower is None or least.upper is None:
            continue
        if best.lower > least.upper + ROUNDED * abs(least.upper):
            found.append(Contradiction(best, least))
    return found


def _contradicted(batch: Batch) -> list[Sentence]:
    number = len(contradictions(batch))
    if not number:
        return []
    lie = "lie" if number > 1 else "lies"
    return [
        bad(
            f"{count(number, 'lower bound')} {lie} above an upper bound on the same optimum: a bug"
            " in a bound or in the grader, so trust nothing below until it is found."
        )
    ]
