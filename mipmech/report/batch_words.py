"""What a batch comes to, in sentences that are read off its records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from mipmech.report.batch_reading import Batch, Entry
from mipmech.report.words import MOST_NAMED, Name, Sentence
from mipmech.report.writing import THIN, above, count, duration, listed, moment, spread
from mipmech.studies.spread import Spread

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
    instances = len({job.digest for job in batch.jobs.values()})
    jobs = f"{count(len(batch.jobs), 'job')} on {count(instances, 'instance')}"
    return f"{batch.name}: {jobs}" if batch.name else jobs


def summary(batch: Batch) -> list[Sentence]:
    """The whole summary, the gravest first."""
    return [
        *_contradicted(batch),
        *_standing(batch),
        *_unreadable(batch),
        *_without_result(batch),
        *_certified(batch),
        *_answered(batch),
        *_solved(batch),
        *_compared(batch),
        *_mixed(batch),
        *_others(batch),
    ]


# ------------------------------------------------------------------ how it stands


def _standing(batch: Batch) -> list[Sentence]:
    ended, total = len(batch.entries) + batch.odd, len(batch.jobs)
    when = "" if batch.newest is None else f", as of {moment(batch.newest)} (the newest record)"
    if batch.busy and not batch.planned:
        return [Sentence(("The run has just begun: there is no plan yet.",), "note")]
    if batch.busy:
        return [Sentence((f"The run goes on: {ended:,} of {total:,} jobs so far{when}.",), "note")]
    if not batch.planned:
        text = f"There is no plan here, only {count(len(batch.entries), 'record')}{when}."
        return [Sentence((text,), "note")]
    if batch.missing:
        text = (
            f"The run is not complete: {batch.missing:,} of {count(total, 'job')} have not been"
            f" done{when}. Nobody is at work on it; running the plan again does what is missing."
        )
        return [Sentence((text,), "note")]
    done = len(batch.entries) - len(batch.failed)
    what = "with a result" if done == total else f"{done:,} with a result"
    seconds = sum(entry.seconds for entry in batch.entries)
    text = f"All {count(total, 'job')} have ended, {what}, after {duration(seconds)} of work{when}."
    return [Sentence((text,))]


def _unreadable(batch: Batch) -> list[Sentence]:
    number = batch.odd + batch.damaged
    lost = [Sentence((f"A comparison cannot be shown: {why}.",), "note") for why in batch.lost]
    if not number:
        return lost
    were = "is" if number == 1 else "are"
    text = f"{count(number, 'record')} could not be understood and {were} left out of all figures."
    return [Sentence((text,), "note"), *lost]


def _others(batch: Batch) -> list[Sentence]:
    if not batch.others:
        return []
    text = (
        f"{count(batch.others, 'record')} of jobs that the plan does not have (it was another one"
        " before, or the versions were) stand in the table of --format csv only."
    )
    return [Sentence((text,))]


def by_end(entries: Iterable[Entry]) -> dict[str, int]:
    """Jobs without a result by what became of them, the known ends first."""
    counts = Counter(entry.status for entry in entries if not entry.done)
    known = [status for status in ENDS if status in counts]
    return {status: counts[status] for status in (*known, *sorted(set(counts) - set(known)))}


def _without_result(batch: Batch) -> list[Sentence]:
    ends = by_end(batch.failed)
    if not ends:
        return []
    total = sum(ends.values())
    parts = [f"{number:,} {ENDS.get(status, status)}" for status, number in list(ends.items())[:8]]
    has = "has" if total == 1 else "have"
    text = f"{count(total, 'job')} {has} no result: {listed(parts)}. The table says why."
    unread = [entry for entry in batch.failed if entry.digest.startswith("broken-")]
    if unread:
        names = len({entry.digest for entry in unread})
        text += f" {count(len(unread), 'failure')} because {_no_instance(names)}."
    return [Sentence((text,), "note")]


def _no_instance(files: int) -> str:
    return "1 file is no instance" if files == 1 else f"{files:,} files are no instances"


# ------------------------------------------------------------------ what was found


def _certified(batch: Batch) -> list[Sentence]:
    found = batch.of("certify")
    if not found:
        return []
    optimal = [entry for entry in found if entry.outcome == "optimal"]
    levels = Counter(entry.level for entry in optimal)
    by_level = listed([f"{number:,} {level}" for level, number in levels.items() if level])
    told: list[str] = [
        f"Of {count(len(found), 'certificate')} of the greatest gain, {len(optimal):,} reached the"
        f" gap that was asked for" + (f" ({by_level})" if by_level else "")
    ]
    open_ = [entry for entry in found if entry.outcome != "optimal"]
    if open_:
        widest = max(open_, key=lambda entry: entry.gap or 0.0)
        told += [f". The widest gap left, {above(100 * (widest.gap or 0.0), 2)}{THIN}%, is on "]
        told += [Name(widest.name), f", after {duration(widest.seconds)}"]
    return [Sentence((*told, "."))]


def _answered(batch: Batch) -> list[Sentence]:
    found = batch.of("oracle")
    if not found:
        return []
    told: list[str] = [f"{count(len(found), 'question')} to oracles: "]
    names = list(dict.fromkeys(entry.oracle for entry in found))
    for number, name in enumerate(names[:MOST_NAMED]):
        mine = [entry for entry in found if entry.oracle == name]
        told += ["; " if number else "", Name(name), f" {_closed(mine)}"]
    more = len(names) - MOST_NAMED
    told.append(f"; and {more} more oracles." if more > 0 else ".")
    return [Sentence(tuple(told))]


def _closed(entries: list[Entry]) -> str:
    """How many answers of an oracle are proved, and the median time."""
    bounded = [entry for entry in entries if entry.upper is not None]
    optimal = sum(entry.outcome in ("optimal", "infeasible") for entry in bounded)
    took = Spread.of(entry.seconds for entry in entries)
    assert took is not None
    time = f"{duration(took.median)} at the median, {duration(took.max)} at most"
    if not bounded:
        return f"gave {count(len(entries), 'answer')} without a bound ({time})"
    return f"closed {optimal:,} of {len(entries):,} ({time})"


def ceilings(batch: Batch) -> dict[str, float]:
    """Digest -> the least upper bound on the greatest gain that any job has left."""
    found: dict[str, float] = {}
    for entry in batch.entries:
        if entry.done and entry.what == "gain" and entry.upper is not None:
            found[entry.digest] = min(entry.upper, found.get(entry.digest, entry.upper))
    return found


def share(entry: Entry, least: dict[str, float]) -> float | None:
    """The share of the greatest gain that a rule surely has."""
    upper = least.get(entry.digest)
    if upper is None or entry.lower is None:
        return None
    return min(1.0, max(0.0, entry.lower / upper)) if upper > 0 else 1.0


def _solved(batch: Batch) -> list[Sentence]:
    found, least = batch.of("solve"), ceilings(batch)
    shares = Spread.of(part for entry in found if (part := share(entry, least)) is not None)
    if not found:
        return []
    runs = f"{count(len(found), 'run')} of Algorithm 1"
    if shares is None:
        return [Sentence((f"{runs}, without an upper bound to hold them against.",))]
    return [Sentence((f"{runs}: {spread(shares)} of the least upper bound known.",))]


def _compared(batch: Batch) -> list[Sentence]:
    if not batch.comparisons:
        return []
    number = len(batch.comparisons)
    text = f"{count(number, 'comparison')} of oracles {'stand' if number > 1 else 'stands'} below."
    return [Sentence((text,))]


def _mixed(batch: Batch) -> list[Sentence]:
    number = len(makers(batch))
    if number < 2:
        return []
    text = (
        f"The records were made by {number} set-ups (versions and machines, below): compare times"
        " with care."
    )
    return [Sentence((text,), "note")]


def makers(batch: Batch) -> list[tuple[dict[str, object], int]]:
    """Versions and machines that records were made by, with the number of their records."""
    found: list[tuple[dict[str, object], int]] = []
    keys: dict[str, int] = {}
    for entry in batch.entries:
        if entry.made_by:
            key = repr(sorted(entry.made_by.items(), key=lambda item: item[0]))
            place = keys.setdefault(key, len(found))
            if place == len(found):
                found.append((entry.made_by, 0))
            found[place] = (found[place][0], found[place][1] + 1)
    return found


# ------------------------------------------------------------------ contradictions


@dataclass(frozen=True)
class Contradiction:
    """Bounds of one optimum that exclude each other: a bug."""

    lower: Entry
    upper: Entry


def contradictions(batch: Batch) -> list[Contradiction]:
    """Where a job found more than another (or itself) says there is."""
    best: dict[tuple[object, ...], Entry] = {}
    least: dict[tuple[object, ...], Entry] = {}
    for entry in batch.entries:
        if not entry.done or entry.lower is None:
            continue
        asked = (entry.options.get("eta"), entry.options.get("eta_fraction"))
        key = (entry.digest, entry.what, *(asked if entry.what != "gain" else ()))
        if key not in best or entry.lower > (best[key].lower or 0.0):
            best[key] = entry
        if entry.upper is not None and (
            key not in least or entry.upper < (least[key].upper or 0.0)
        ):
            least[key] = entry
    found = []
    for key, entry in best.items():
        other = least.get(key)
        if other is None or other.upper is None or entry.lower is None:
            continue
        if entry.lower > other.upper + ROUNDED * abs(other.upper):
            found.append(Contradiction(entry, other))
    return found


def _contradicted(batch: Batch) -> list[Sentence]:
    number = len(contradictions(batch))
    if not number:
        return []
    text = (
        f"{count(number, 'lower bound')} {'lie' if number > 1 else 'lies'} above an upper bound on"
        " the same optimum: a bug in a bound or in the grader. Trust nothing below until it is"
        " found; the table of contradictions says where."
    )
    return [Sentence((text,), "bad")]
