"""A comparison in sentences; no median without its spread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mipmech.report.kit.phrases import required
from mipmech.report.kit.sentence import Name, Sentence, bad, bug, named, note, shares
from mipmech.report.kit.tabular import ENOUGH
from mipmech.studies.comparison.results import NEARLY, Comparison, OracleSummary, Problem
from mipmech.studies.spread import Spread
from mipmech.text import THIN, WHOLE, count, duration, listed, short

LONGEST_DOUBT = 400


def kind(comparison: Comparison, oracle: str) -> str:
    """What an oracle promises: exact ones give upper bounds, heuristics none."""
    calls = [call for run in comparison.runs_of(oracle) for call in run.calls]
    asked = [call for call in calls if call.chosen] or calls
    if not asked:
        return "no answers"
    bounded = sum(call.upper is not None for call in asked)
    name = "heuristic" if not bounded else "exact" if bounded == len(asked) else "exact in part"
    return f"{name}, soft" if all(call.soft for call in calls) else name


def heuristics(comparison: Comparison) -> list[str]:
    """The oracles that promise no upper bound and were asked for density."""
    return [name for name in comparison.oracles if kind(comparison, name) == "heuristic"]


@dataclass(frozen=True)
class Ranked:
    """An oracle in a ranking: its results, its marks, and the median time of its calls."""

    summary: OracleSummary
    marks: tuple[int, ...]
    took: float


def by_quality(
    comparison: Comparison, oracles: Sequence[str], problems: Sequence[Problem] | None = None
) -> list[Ranked]:
    """The summaries of these oracles, best first; those without a density are left out.

    By median, then lower quartile, then how many calls nearly reach the optimum, then worst, a
    failed run counting as 0 in all its questions; among equals the faster one.
    """
    asked = sum(abs(fraction) < 1 for fraction in comparison.settings.eta_fractions)
    ranked = []
    for name in oracles:
        summary = comparison.summary(name, problems)
        if summary.density is not None:
            by_question = comparison.qualities(name, problems).values()
            marks = _marks([q for values in by_question for q in values], summary.failures * asked)
            took = 0.0 if summary.seconds is None else summary.seconds.median
            ranked.append(Ranked(summary, marks, took))
    return sorted(ranked, key=lambda entry: ([-mark for mark in entry.marks], entry.took))


def _marks(found: list[float], failures: int) -> tuple[int, ...]:
    """Median, lower quartile, share at `NEARLY`, and worst, in the smallest units that matter."""
    spread = Spread.of([*found, *[0.0] * failures])
    assert spread is not None
    nearly = sum(share >= NEARLY for share in found) / spread.count
    return tuple(round(mark / WHOLE) for mark in (spread.median, spread.q1, nearly, spread.min))


def of_group(comparison: Comparison, group: str) -> list[Problem]:
    """The problems of a group."""
    return [problem for problem in comparison.problems if problem.group == group]


def title(comparison: Comparison) -> str:
    """What was compared, for the head of the page."""
    oracles = count(len(comparison.oracles), "oracle")
    return f"{oracles} on {count(len(comparison.problems), 'instance')}"


def summary(comparison: Comparison) -> list[Sentence]:
    """The whole summary, the gravest first."""
    grave = [*_wrong(comparison), *_required(comparison), *_left_open(comparison)]
    if not any(run.calls for run in comparison.runs):
        return [*grave, note("Nothing was answered: there are no calls to compare.")]
    found = (_best(comparison), *_best_heuristic(comparison), *_gains(comparison))
    return [*grave, *found, _references(comparison)]


def _wrong(comparison: Comparison) -> Iterator[Sentence]:
    if comparison.violations:
        yield bug(len(comparison.violations), "value", "an upper bound")
    if comparison.doubts:
        doubts = [short(doubt, LONGEST_DOUBT) for doubt in comparison.doubts]
        yield bad("Instance files state optima that are refuted here: ", *named(doubts), ".")


def _required(comparison: Comparison) -> Iterator[Sentence]:
    """What rules must meet, where none does, and which answers do not."""
    given = comparison.settings.requirements
    if given is None:
        return
    yield Sentence(("Every rule must meet requirements: ", *required(given), "."))
    none = [problem.name for problem in comparison.problems if problem.gain.infeasible]
    if none:
        instances = count(len(none), "instance")
        yield Sentence((f"On {instances} no rule meets them: ", *named(none), "."))
    answers = [call for run in comparison.runs for call in run.calls]
    wrong = sum(call.missed is not None for call in answers)
    if wrong:
        names = [r.oracle for r in comparison.runs if any(call.missed for call in r.calls)]
        told = f"{wrong:,} of {count(len(answers), 'answer')} did not meet them and count as none: "
        yield note(told, *named(list(dict.fromkeys(names))), ".")


def _left_open(comparison: Comparison) -> Iterator[Sentence]:
    if not comparison.complete:
        yield note("The comparison was cut short, or goes on: not all questions were asked.")
    failed = [run.oracle for run in comparison.runs if run.error is not None]
    if failed:
        names = named(list(dict.fromkeys(failed)))
        runs = count(len(failed), "run")
        yield note(f"{runs} gave no answer and rank as 0: see the failures of ", *names, ".")


def _best(comparison: Comparison) -> Sentence:
    ranked = by_quality(comparison, comparison.oracles)
    if not ranked:
        calls = [call for run in comparison.runs for call in run.calls]
        if comparison.questions and any(not call.soft and call.chosen for call in calls):
            return note("No quality is known: the greatest density is open at every η.")
        return note("No oracle had a choice of dense rules; only gains are compared.")
    first = ranked[0].summary
    assert first.density is not None
    told = [Name(first.oracle), " was best overall: ", shares(first.density), " of the optimum"]
    told.append(f"{_took(first)}{_but_failed(comparison, first)}.")
    equal = [entry.summary.oracle for entry in ranked[1:] if entry.marks == ranked[0].marks]
    if equal:
        # Where all must use all their time, none is slower.
        slower = "" if comparison.settings.full_time else " but slower"
        told += [f" As good{slower}: ", *named(equal), "."]
    return Sentence(tuple(told))


def _took(found: OracleSummary) -> str:
    if found.seconds is None:
        return ""
    median, most = duration(found.seconds.median), duration(found.seconds.max)
    return f", in {median} a call at the median and {most} at most"


def _but_failed(comparison: Comparison, found: OracleSummary) -> str:
    if not found.failures:
        return ""
    runs = count(len(comparison.runs_of(found.oracle)), "run")
    return f", though {found.failures} of its {runs} gave no answer"


def best_heuristics(comparison: Comparison) -> dict[str, Ranked]:
    """Group -> the best heuristic there; groups in which no quality is known are left out."""
    names = heuristics(comparison)
    ranked = {
        group: by_quality(comparison, names, of_group(comparison, group))
        for group in comparison.groups
    }
    return {group: found[0] for group, found in ranked.items() if found}


def hard_groups(comparison: Comparison) -> list[str]:
    """The groups where the median of every heuristic is below `ENOUGH`."""
    found = best_heuristics(comparison)
    return [group for group, best in found.items() if best.marks[0] * WHOLE < ENOUGH]


def _best_heuristic(comparison: Comparison) -> Iterator[Sentence]:
    """The best heuristic, unless it was named as the best of all, and where all of them failed."""
    ranked = by_quality(comparison, heuristics(comparison))
    if not ranked:
        return
    best, told = ranked[0].summary, list[str]()
    assert best.density is not None
    if by_quality(comparison, comparison.oracles)[0].summary.oracle != best.oracle:
        told = ["The best heuristic was ", Name(best.oracle), f": {shares(best.density)}"]
        told.append(f"{_took(best)}{_but_failed(comparison, best)}. ")
    share, hard = f"{100 * ENOUGH:g}{THIN}%", hard_groups(comparison)
    groups = count(len(best_heuristics(comparison)), "group")
    if hard:
        failed = f"Heuristics failed in {len(hard)} of {groups}"
        told += [f"{failed}, where the median of each is below {share}: ", *named(hard), "."]
    else:
        told.append(f"In every group some heuristic has a median of at least {share}.")
    yield Sentence(tuple(told))


def _gains(comparison: Comparison) -> Iterator[Sentence]:
    ranked = []
    for name in comparison.oracles:
        found = comparison.summary(name)
        gains = [share for values in comparison.gains(name).values() for share in values]
        if found.gain and found.calls:
            ranked.append((_marks(gains, found.failures), found, found.gain))
    if ranked:
        _, first, gain = max(ranked, key=lambda entry: entry[0])
        allowed = "" if comparison.settings.requirements is None else " that is allowed"
        most = f" of the greatest gain of any rule{allowed}{_but_failed(comparison, first)}."
        yield Sentence(
            ("Inside Algorithm 1, ", Name(first.oracle), " gains most: ", shares(gain), most)
        )


def _references(comparison: Comparison) -> Sentence:
    gains = [problem.gain for problem in comparison.problems]
    densities = [bounds for _, _, bounds in comparison.questions]
    parts = [
        f"{sum(bounds.closed for bounds in found):,} of {len(found):,} {what}"
        for found, what in ((gains, "gains"), (densities, "densities"))
        if found
    ]
    closed = all(bounds.closed for bounds in (*gains, *densities))
    rest = "." if closed else "; where they are open, quality is unknown and left out."
    return Sentence((f"References are closed for {listed(parts)}{rest}",))
