"""What a comparison comes to, in sentences that are read off it; no middle without its spread."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mipmech.report.writing import (
    THIN,
    WHOLE,
    count,
    duration,
    gap,
    listed,
    percent,
    points,
    short,
    spread,
)
from mipmech.studies.comparison.results import NEARLY, Bounds, Comparison, OracleSummary, Problem
from mipmech.studies.spread import Spread

Tone = Literal["plain", "bad", "note"]
# A heuristic that stays below this share of the optimum has failed.
ENOUGH = 0.8
# More names than this in a sentence are counted, not named.
MOST_NAMED = 6
LONGEST_DOUBT = 400


class Name(str):
    """A name out of the files, to be set apart (and escaped) by whoever prints it."""

    __slots__ = ()


@dataclass(frozen=True)
class Sentence:
    """A sentence of the summary.

    parts : our words, and names out of the files
    tone : "bad" for what must not be overlooked, "note" for what limits the rest
    """

    parts: tuple[str, ...]
    tone: Tone = "plain"

    def __str__(self) -> str:
        return "".join(self.parts)


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
    """An oracle among others: what it came to, its marks, and the median time of its calls."""

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
    found = [comparison.summary(name, problems) for name in oracles]
    asked = len(chosen_fractions(comparison))
    ranked = []
    for summary in found:
        if summary.density is not None:
            by_question = comparison.qualities(summary.oracle, problems).values()
            marks = _marks([q for values in by_question for q in values], summary.failures * asked)
            took = 0.0 if summary.seconds is None else summary.seconds.median
            ranked.append(Ranked(summary, marks, took))
    return sorted(ranked, key=lambda entry: ([-mark for mark in entry.marks], entry.took))


def _marks(shares: list[float], failures: int) -> tuple[int, ...]:
    """Median, lower quartile, share at `NEARLY`, and worst, in units below which nobody cares."""
    found = Spread.of([*shares, *[0.0] * failures])
    assert found is not None
    nearly = sum(share >= NEARLY for share in shares) / (len(shares) + failures)
    return tuple(round(mark / WHOLE) for mark in (found.median, found.q1, nearly, found.min))


def title(comparison: Comparison) -> str:
    """What was compared, for the head of the page."""
    oracles = count(len(comparison.oracles), "oracle")
    return f"{oracles} on {count(len(comparison.problems), 'instance')}"


def summary(comparison: Comparison) -> list[Sentence]:
    """The whole summary, the gravest first."""
    if not any(run.calls for run in comparison.runs):
        return [
            *_violated(comparison),
            *_doubted(comparison),
            Sentence(("Nothing was answered: there are no calls to compare.",), "note"),
            *_cut_short(comparison),
            *_failed(comparison),
        ]
    return [
        *_violated(comparison),
        *_doubted(comparison),
        *_cut_short(comparison),
        *_best(comparison),
        *_best_heuristic(comparison),
        *_hard_groups(comparison),
        *_gains(comparison),
        *_references(comparison),
        *_failed(comparison),
    ]


def chosen_fractions(comparison: Comparison) -> list[float]:
    """The values of η at which there is something to choose: at ±‖P w_f‖ there is one direction."""
    return [float(part) for part in comparison.settings["eta_fractions"] if abs(part) < 1]


def _violated(comparison: Comparison) -> list[Sentence]:
    number = len(comparison.violations)
    if not number:
        return []
    text = (
        f"{count(number, 'value')} {'lie' if number > 1 else 'lies'} above the upper bound of the"
        " reference: a bug in a bound or in the grader. Trust nothing below until it is found; the"
        " table of violations says where."
    )
    return [Sentence((text,), "bad")]


def _doubted(comparison: Comparison) -> list[Sentence]:
    if not comparison.doubts:
        return []
    told: list[str] = [
        "What instance files say of their optima is refuted by what was found here: "
    ]
    for number, said in enumerate(comparison.doubts[:MOST_NAMED]):
        told += ["; " if number else "", Name(short(said, LONGEST_DOUBT))]
    more = len(comparison.doubts) - MOST_NAMED
    told.append(f"; and {more} more." if more > 0 else ".")
    return [Sentence(tuple(told), "bad")]


def _cut_short(comparison: Comparison) -> list[Sentence]:
    if comparison.complete:
        return []
    text = (
        "The comparison was cut short, or goes on. What is here is valid, but the oracles may not"
        " all have been asked the same questions."
    )
    return [Sentence((text,), "note")]


def _best(comparison: Comparison) -> list[Sentence]:
    ranked = by_quality(comparison, comparison.oracles)
    if not ranked:
        asked = any(not call.soft and call.chosen for run in comparison.runs for call in run.calls)
        text = (
            "No quality can be told: the greatest density is not known at any of these η."
            if asked
            else "No oracle was asked for density where there is something to choose; only gains"
            " are compared."
        )
        return [Sentence((text,), "note")]
    first = ranked[0].summary
    assert first.density is not None
    told = [Name(first.oracle), " was best overall: ", spread(first.density), " of the optimum"]
    told.append(f"{_nearly_always(first)}{_took(first)}{_but_failed(comparison, first)}.")
    equal = [entry.summary for entry in ranked[1:] if entry.marks == ranked[0].marks]
    if equal:
        # Where all have to use all their time, nobody is slower.
        told.append(
            " As good: " if comparison.settings.get("full_time") else " As good, but slower: "
        )
        for number, other in enumerate(equal[:MOST_NAMED]):
            told += [", " if number else "", Name(other.oracle), _took(other, "")]
        more = len(equal) - MOST_NAMED
        told.append(f" and {more} more." if more > 0 else ".")
    return [Sentence(tuple(told))]


def _but_failed(comparison: Comparison, summary: OracleSummary) -> str:
    if not summary.failures:
        return ""
    runs = count(len(comparison.runs_of(summary.oracle)), "run")
    return f", though {summary.failures} of its {runs} gave no answer"


def _nearly_always(summary: OracleSummary) -> str:
    assert summary.density is not None
    if summary.density.min >= NEARLY:
        return ""
    share = f"{100 * NEARLY:g}{THIN}%"
    return f", {share} or more in {percent(summary.reached)}{THIN}% of its calls"


def _took(summary: OracleSummary, begin: str = ", at") -> str:
    seconds = summary.seconds
    if seconds is None:
        return ""
    text = f"{duration(seconds.median)} a call at the median and {duration(seconds.max)} at most"
    return f"{begin} {text}" if begin else f" ({text})"


def _best_heuristic(comparison: Comparison) -> list[Sentence]:
    names = heuristics(comparison)
    ranked = by_quality(comparison, names)
    overall = by_quality(comparison, comparison.oracles)
    if not ranked or len(overall) == len(ranked) == 1:
        return []
    best = ranked[0].summary
    assert best.density is not None
    of = f"Of {len(names)} heuristics, " if len(names) > 1 else "The one heuristic, "
    came = " came nearest: " if len(names) > 1 else ": "
    told = [of, Name(best.oracle), came, spread(best.density), _nearly_always(best), _took(best)]
    told.append(f"{_but_failed(comparison, best)}.")
    if best.seed_spread is not None:
        told.append(
            f" Its seeds differ by {points(best.seed_spread.median)} percentage points on the same"
            f" question at the median, by {points(best.seed_spread.max)} at most."
        )
    return [Sentence(tuple(told)), *_nearly(comparison, best.oracle)]


def _nearly(comparison: Comparison, oracle: str) -> list[Sentence]:
    """On how many instances an oracle nearly reaches the optimum, group by group."""
    near = all_ = 0
    parts: list[str] = []
    for group in comparison.groups:
        medians = []
        for problem in of_group(comparison, group):
            by_question = comparison.qualities(oracle, [problem]).values()
            qualities = [quality for values in by_question for quality in values]
            if qualities:
                medians.append(statistics.median(qualities))
        reached = sum(median >= NEARLY for median in medians)
        near, all_ = near + reached, all_ + len(medians)
        if medians:
            parts += [", " if parts else "", Name(group), f" {reached} of {len(medians)}"]
    if len(comparison.groups) < 2 or not all_:
        return []
    told = (
        Name(oracle), f" has {100 * NEARLY:g}{THIN}% or more of the optimum at the median on {near}"
        f" of {count(all_, 'instance')}: ", *parts, ".",
    )  # fmt: skip
    return [Sentence(told)]


@dataclass(frozen=True)
class HardGroup:
    """A group in which every heuristic failed, and the best of them there."""

    group: str
    best: OracleSummary


def hard_groups(comparison: Comparison) -> list[HardGroup]:
    """The groups where the median of every heuristic is below `ENOUGH`."""
    names = heuristics(comparison)
    found = []
    for group in comparison.groups:
        ranked = by_quality(comparison, names, of_group(comparison, group))
        if ranked and ranked[0].marks[0] * WHOLE < ENOUGH:
            found.append(HardGroup(group, ranked[0].summary))
    return found


def _known(comparison: Comparison, names: Sequence[str], group: str) -> int:
    """How many questions of a group have a known optimum and were asked of one of these."""
    problems = of_group(comparison, group)
    return len({q for name in names for q in comparison.qualities(name, problems)})


def of_group(comparison: Comparison, group: str) -> list[Problem]:
    """The problems of a group."""
    return [problem for problem in comparison.problems if problem.group == group]


def _hard_groups(comparison: Comparison) -> list[Sentence]:
    names = heuristics(comparison)
    if not names:
        return []
    hard = hard_groups(comparison)
    known = [g for g in comparison.groups if _known(comparison, names, g)]
    if not known:
        return []
    groups, share = len(known), f"{100 * ENOUGH:g}{THIN}%"
    told: list[str] = []
    if hard:
        told.append(
            f"Heuristics failed in {len(hard)} of {count(groups, 'group')}, where the median of"
            f" every one is below {share}: "
        )
        for number, entry in enumerate(hard[:MOST_NAMED]):
            best = entry.best.density
            assert best is not None
            there = sum(problem.group == entry.group for problem, _, _ in comparison.questions)
            told += [
                "; " if number else "",
                Name(entry.group),
                f" (on {_known(comparison, names, entry.group)} of {count(there, 'question')} whose"
                " optimum is known, at best ",
                Name(entry.best.oracle),
            ]
            told.append(f": {spread(best)})")
        more = len(hard) - MOST_NAMED
        told.append(f"; and {more} more." if more > 0 else ".")
    else:
        told.append(f"In every group the median of some heuristic is at least {share}.")
    best_seed: dict[tuple[str, float], float] = {}
    for name in names:
        for question, qualities in comparison.qualities(name).items():
            best_seed[question] = max(best_seed.get(question, 0.0), *qualities)
    lost = sum(quality < ENOUGH for quality in best_seed.values())
    asked = count(len(best_seed), "question")
    told.append(
        f" On {lost} of {asked} no heuristic reached {share} with any seed."
        if lost
        else f" On each of {asked} some heuristic reached {share} with some seed."
    )
    return [Sentence(tuple(told))]


def _gains(comparison: Comparison) -> list[Sentence]:
    ranked = []
    for name in comparison.oracles:
        found = comparison.summary(name)
        shares = [share for values in comparison.gains(name).values() for share in values]
        if found.calls and shares:
            ranked.append((_marks(shares, found.failures), found))
    if not ranked:
        return []
    first = max(ranked, key=lambda entry: entry[0])[1]
    assert first.gain is not None
    told = ["Inside Algorithm 1, ", Name(first.oracle), " ends with the most: "]
    told += [spread(first.gain), " of the greatest gain of any rule"]
    if first.gain_two is not None and first.gain_two != first.gain:
        told.append(f"; with the paper's two thresholds {spread(first.gain_two)}")
    return [Sentence((*told, f"{_but_failed(comparison, first)}."))]


def _references(comparison: Comparison) -> list[Sentence]:
    gains = [(problem, problem.gain) for problem in comparison.problems]
    densities = [(problem, bounds) for problem, _, bounds in comparison.questions]
    parts = [_closed("gain", gains)]
    parts += [_closed("density", densities, "densities")] if densities else []
    told = ["References: ", listed(parts)]
    open_ = [(b.gap, p.name, b) for p, b in (*gains, *densities) if not b.closed]
    told.append(".")
    if open_:
        _, name, widest = max(open_, key=lambda entry: entry[0])
        told += [f" The widest gap, {gap(widest)}{THIN}%, is on ", Name(name)]
        told.append(
            ". Where a reference is open nobody knows the quality, so those questions enter no"
            " figure of it; there, answers are held against the best that any oracle found."
        )
    if not comparison.violations and not comparison.doubts:
        told.append(" No value lies above the upper bound of its reference.")
    return [Sentence(tuple(told))]


def _closed(word: str, bounds: Sequence[tuple[Problem, Bounds]], many: str | None = None) -> str:
    closed = [b for _, b in bounds if b.closed]
    levels = {level: sum(b.level == level for b in closed) for level in LEVELS}
    by_level = listed([f"{number} {level}" for level, number in levels.items() if number])
    left = len(bounds) - len(closed)
    state = f"{len(closed)} are closed ({by_level})" if closed else "none is closed"
    name = word if len(bounds) == 1 else many or f"{word}s"
    return f"of {len(bounds)} {name} {state}" + (f", {left} open" if left else "")


LEVELS = ("proved", "attested", "stated")


def _failed(comparison: Comparison) -> list[Sentence]:
    failed = [run for run in comparison.runs if run.error is not None]
    if not failed:
        return []
    names = dict.fromkeys(run.oracle for run in failed)
    told: list[str] = [f"{count(len(failed), 'run')} gave no answer: "]
    for number, name in enumerate(list(names)[:MOST_NAMED]):
        mine = [run for run in failed if run.oracle == name]
        told += [", " if number else "", f"{len(mine)} of ", Name(name)]
    more = len(names) - MOST_NAMED
    told.append(f", and of {more} other oracles. " if more > 0 else ". ")
    told.append("They rank as 0 and enter no other figure; the table of failures says why.")
    return [Sentence(tuple(told), "note")]
