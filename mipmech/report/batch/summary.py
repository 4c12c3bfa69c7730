"""What a batch comes to, in sentences that are read off its records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import inf, isfinite
from typing import Any

from mipmech.report.kit.phrases import key_of, required
from mipmech.report.kit.sentence import Name, Sentence, bug, named, note
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
# Lists of requirements that are told.
MOST_REQUIREMENTS = 6


def title(batch: Batch) -> str:
    """What was done, for the head of the page."""
    jobs = f"{count(len(batch.jobs), 'job')} on {count(batch.size, 'instance')}"
    return f"{batch.name}: {jobs}" if batch.name else jobs


def summary(batch: Batch) -> list[Sentence]:
    """The whole summary, the gravest first."""
    wrong = contradictions(batch)
    return [
        *([bug(len(wrong), "lower bound", "an upper bound on the same optimum")] if wrong else []),
        *_required(batch),
        *notes(batch),
        *_ended(batch),
        *without_result(batch.failed),
        *_certified(batch),
    ]


def labels(batch: Batch) -> dict[str, str]:
    """The requirements of the jobs, by `key_of` -> a short name; empty if all jobs have the same.

    Jobs without any have no name.
    """
    keys = list(dict.fromkeys(key_of(job.requirements) for job in batch.jobs.values()))
    return {key: f"R{place}" for place, key in enumerate(filter(None, keys), 1)} if keys[1:] else {}


def _required(batch: Batch) -> Iterator[Sentence]:
    """What rules must meet: of all jobs, or of some."""
    first = {key_of(job.requirements): job.requirements for job in batch.jobs.values()}
    counts = Counter(key_of(job.requirements) for job in batch.jobs.values())
    names = labels(batch)
    told = [key for key in first if key]
    for key in told[:MOST_REQUIREMENTS]:
        head = "Every rule must meet requirements: "
        if key in names:
            head = f"Requirements {names[key]}, for {count(counts[key], 'job')}: "
        yield Sentence((head, *required(first[key]), "."))
    if len(told) > MOST_REQUIREMENTS:
        yield Sentence((f"{len(told) - MOST_REQUIREMENTS} more lists of requirements.",))
    if told and "" in counts:
        have = "has" if counts[""] == 1 else "have"
        yield Sentence((f"{count(counts[''], 'job')} {have} no requirements.",))


def notes(batch: Batch) -> Iterator[Sentence]:
    """What limits whatever else is said, of a comparison alone too."""
    total, when = len(batch.jobs), _as_of(batch)
    if not batch.planned and batch.busy:
        yield note("The run has just begun: there is no plan yet.")
    elif not batch.planned:
        yield note(f"There is no plan here, only {count(len(batch.entries), 'record')}{when}.")
    elif batch.busy:
        yield note(f"The run goes on: {total - batch.missing:,} of {total:,} jobs so far{when}.")
    elif batch.missing:
        yield note(
            f"The run is not complete: {batch.missing:,} of {count(total, 'job')} have not been"
            f" done{when}. Run the plan again to do the rest."
        )
    number = batch.odd + batch.damaged
    if number:
        were = "is" if number == 1 else "are"
        yield note(f"{count(number, 'record')} could not be understood and {were} left out.")
    yield from (note(f"A comparison cannot be shown: {why}.") for why in batch.lost)
    if len(makers(batch)) > 1:
        set_ups = f"{len(makers(batch))} set-ups (below)"
        yield note(f"The records were made by {set_ups}: compare times with care.")
    if batch.others:
        said = f"{count(batch.others, 'record')} of jobs that the plan does not have"
        yield Sentence((f"{said} are left out; bench export has them.",))


def _as_of(batch: Batch) -> str:
    newest = max((entry.ended for entry in batch.entries), default=None)
    return "" if newest is None else f", as of {moment(newest)}"


def _ended(batch: Batch) -> Iterator[Sentence]:
    total, done = len(batch.jobs), len(batch.entries) - len(batch.failed)
    what = "with a result" if done == total else f"{done:,} with a result"
    work = f"{duration(sum(entry.seconds for entry in batch.entries))} of work{_as_of(batch)}"
    if batch.planned and not batch.busy and not batch.missing:
        yield Sentence((f"All {count(total, 'job')} have ended, {what}, after {work}.",))


def makers(batch: Batch) -> list[tuple[dict[str, Any], int]]:
    """Versions and machines that records were made by, the most frequent first."""
    made = [(repr(sorted(e.made_by.items())), e.made_by) for e in batch.entries if e.made_by]
    first, counts = dict(reversed(made)), Counter(key for key, _ in made)
    return [(first[key], number) for key, number in counts.most_common()]


def without_result(failed: Sequence[Record]) -> Iterator[Sentence]:
    """What became of jobs without a result, the known ends first."""
    counts: Counter[str] = Counter(entry.status for entry in failed)
    ends = [end for end in ENDS if end in counts] + sorted(set(counts) - set(ENDS))
    said = listed([f"{counts[end]:,} {ENDS.get(end, end)}" for end in ends[:8]])
    broken = {e.instance.digest for e in failed if e.instance.digest.startswith("broken-")}
    are = "is no instance" if len(broken) == 1 else "are no instances"
    files = f" {count(len(broken), 'file')} {are}." if broken else ""
    has = "has" if len(failed) == 1 else "have"
    if failed:
        yield note(f"{count(len(failed), 'job')} {has} no result: {said}.{files}")


def _certified(batch: Batch) -> Iterator[Sentence]:
    everything = batch.of("certify")
    found = [entry for entry in everything if not entry.infeasible]
    open_ = [entry for entry in found if entry.bounds and entry.bounds.status != "optimal"]
    certificates = count(len(found), "certificate")
    told = [f"{len(found) - len(open_):,} of {certificates} reached the gap asked for"]
    if open_:
        widest = max(open_, key=lambda entry: entry.gap or 0.0)
        gap = "100"
        if widest.upper and widest.lower is not None and widest.lower >= 0:
            gap = gap_percent(widest.lower, widest.upper)
        told += [f"; the widest gap left is {gap}{THIN}%, on ", Name(widest.name)]
    if found:
        yield Sentence((*told, "."))
    none = [entry for entry in everything if entry.infeasible]
    if none:
        names = list(dict.fromkeys(entry.name for entry in none))
        jobs = count(len(none), "certificate")
        proves = "proves" if len(none) == 1 else "prove"
        told = [f"{jobs} {proves} that no rule meets the requirements: on ", *named(names), "."]
        yield Sentence(tuple(told))


Ceilings = dict[tuple[str, str], float]


def ceilings(batch: Batch) -> Ceilings:
    """Digest and requirements -> the least upper bound on the greatest gain that any job left."""
    found: Ceilings = {}
    for entry in batch.entries:
        if entry.done and entry.bounds and entry.bounds.what == "gain" and entry.upper is not None:
            key = entry.instance.digest, key_of(entry.requirements)
            found[key] = min(entry.upper, found.get(key, entry.upper))
    return found


def share(entry: Record, least: Ceilings) -> float | None:
    """The share of the greatest gain that a rule surely has."""
    upper = least.get((entry.instance.digest, key_of(entry.requirements)))
    if upper is None or entry.lower is None:
        return None
    return min(1.0, max(0.0, entry.lower / upper)) if upper > 0 else 1.0


def contradictions(batch: Batch) -> list[tuple[Record, Record]]:
    """Jobs that found more than another (or itself) says there is, and those others: bugs."""
    asked: dict[tuple[object, ...], list[Record]] = {}
    for entry in batch.entries:
        if entry.done and entry.bounds:
            what, options = entry.bounds.what, entry.options
            at = (options.get("eta"), options.get("eta_fraction")) if what != "gain" else ()
            of = key_of(entry.requirements)
            asked.setdefault((entry.instance.digest, of, what, *at), []).append(entry)
    found = []
    for entries in asked.values():
        best = max(entries, key=lambda entry: -inf if entry.lower is None else entry.lower)
        least = min(entries, key=_most)
        lower, upper = best.lower, _most(least)
        room = ROUNDED * abs(upper) if isfinite(upper) else 0.0
        if lower is not None and lower > upper + room:
            found.append((best, least))
    return found


def _most(entry: Record) -> float:
    """No rule has more than this, by the word of a job; −∞ if there is no rule."""
    if entry.upper is None:
        return -inf if entry.infeasible else inf
    return entry.upper
