"""The record of a comparison of oracles, and every figure that is read off it.

A comparison asks oracles the same questions: on each instance the same values of η, for each oracle
that draws random numbers the same seeds, and the same time for each call. What comes back is graded
by the recount alone and held against *references*: bounds on the greatest density at each η and on
the greatest gain of all rules, proved where there was time to.

**Quality** is value / upper bound of the reference: the call has *at least* this share of the
optimum. Where a reference is closed that is the share itself, and only those questions enter the
summaries. Where it is open nobody knows the share, so there the values are held against the best
that any oracle found. A value above a bound of ours is a violation: a bug in a bound or in the
grader, never tolerated. What an instance's file states of its optima serves where our own bounds
are open, unless anything that was found here refutes it: then it is a doubt about the file.

The record is one file, `comparison.json`, in a folder with copies of the instances, so that a
report can be made from the folder alone.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mipmech import files
from mipmech.errors import InputError
from mipmech.studies.spread import Spread
from mipmech.tolerances import ROUNDING

FORMAT = "mipmech/comparison@1"
FILE = "comparison.json"
# Reference bounds this near to each other count as one value.
CLOSED = 2e-3
# Whoever reaches this share of the optimum has nearly found it.
NEARLY = 0.99


@dataclass(frozen=True)
class Bounds:
    """What is known of an optimum: it lies in [lower, upper].

    level : "proved", "attested", or "stated" (the instance file says so)
    stated : what the instance's file says, [lower, upper], if it says anything
    """

    lower: float
    upper: float
    level: str
    seconds: float
    stated: tuple[float, float] | None = None

    @property
    def gap(self) -> float:
        """(upper − lower)/upper; 0 if upper is 0."""
        return 1 - self.lower / self.upper if self.upper > 0 else 0.0

    @property
    def closed(self) -> bool:
        """Whether the optimum is known, for the purposes of a comparison."""
        return self.gap <= CLOSED

    def settled(self, best: float) -> tuple[Bounds, str | None]:
        """These bounds, or what is stated where that is narrower and they are open.

        best : the best value that anybody found
        Also what is wrong with the statement, in words, if anything is.
        """
        if self.stated is None:
            return self, None
        lower, upper = self.stated
        best = max(best, self.lower)
        if best > upper * (1 + ROUNDING):
            return self, f"at most {upper:g}, but there is a rule with {best:g}"
        if lower * (1 - ROUNDING) > self.upper:
            return self, f"at least {lower:g}, but no rule has more than {self.upper:g}"
        if self.closed or upper >= self.upper:
            return self, None
        stated = replace(self, lower=max(self.lower, lower), upper=upper, level="stated")
        return stated, None

    def share(self, value: float) -> float:
        """At least this share of the optimum is reached by the value; 1 where nothing can be.

        Values are rounded down and bounds up, so what is equal differs in the last digit.
        """
        return value / self.upper if value < self.upper * (1 - ROUNDING) else 1.0


@dataclass(frozen=True)
class Problem:
    """An instance of the comparison and its references.

    group : its family, or the folder that it came from
    file : its copy in the comparison's folder
    gain : the greatest gain of all rules
    densities : the greatest density at each η of the comparison, in their order
    best : the best rule known, as `Mechanism.to_dict` gives it
    """

    name: str
    digest: str
    group: str
    file: str
    agents: int
    rank: int
    gain: Bounds
    densities: tuple[Bounds, ...]
    best: dict[str, Any] | None = None


@dataclass(frozen=True)
class Call:
    """One question to an oracle.

    eta_fraction, eta : what was asked
    lower : the density of the mechanism found, recounted (soft density, if ``soft``)
    upper : the oracle's own upper bound; None for heuristics
    gain, gain_two : of the rule with the best threshold, and with the better of the paper's two
    trace : (seconds, value so far, bound so far) whenever one of them changed
    """

    eta_fraction: float
    eta: float
    lower: float
    soft: bool
    upper: float | None
    status: str
    stop: str
    seconds: float
    gain: float
    gain_two: float
    trace: tuple[tuple[float, float, float | None], ...] = ()

    @property
    def chosen(self) -> bool:
        """Whether there was anything to choose: at ±‖P w_f‖ there is one direction, or none."""
        return abs(self.eta_fraction) < 1 and self.status != "infeasible"


@dataclass(frozen=True)
class Run:
    """An oracle inside Algorithm 1 on one instance, with one seed.

    instance : the digest of its problem
    oracle, record : its name, and its repr, which holds all options
    seed : None for oracles that draw nothing
    gain, gain_two : the best of its calls
    mechanism : the rule of that gain
    error : why there are no calls, if there are none
    """

    instance: str
    oracle: str
    record: str
    seed: int | None
    calls: tuple[Call, ...]
    seconds: float
    mechanism: dict[str, Any] | None = None
    error: str | None = None

    @property
    def gain(self) -> float:
        """The gain that Algorithm 1 ends with, taking the best threshold for every answer."""
        return max((call.gain for call in self.calls), default=0.0)

    @property
    def gain_two(self) -> float:
        """The same with the paper's two thresholds for every answer."""
        return max((call.gain_two for call in self.calls), default=0.0)


@dataclass(frozen=True)
class Violation:
    """A value above a bound that was proved: a bug to hunt down."""

    instance: str
    oracle: str
    what: str
    value: float
    upper: float


@dataclass(frozen=True)
class OracleSummary:
    """What an oracle came to over a set of problems.

    density, gain, gain_two : quality, over instances × η × seeds, and over instances × seeds
    seed_spread : greatest minus least quality over seeds for the same question; None for one seed
    reached : share of the calls with at least `NEARLY` of the optimum
    unknown : where the optimum is not known: the density as a share of the best that any oracle
        found, over instances × η × seeds
    seconds : of a call
    calls : how many were made
    failures : runs without an answer
    """

    oracle: str
    density: Spread | None
    gain: Spread | None
    gain_two: Spread | None
    seed_spread: Spread | None
    reached: float
    unknown: Spread | None
    seconds: Spread | None
    calls: int
    failures: int


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Everything that was asked and answered.

    settings : η's, seeds, limits, oracles: what was asked for
    made_by : versions and machine
    complete : false if it was cut short; what is here is valid all the same
    doubts : what instance files state and these results refute, in words
    """

    problems: tuple[Problem, ...]
    runs: tuple[Run, ...]
    settings: dict[str, Any]
    made_by: dict[str, Any]
    seconds: float
    complete: bool
    doubts: tuple[str, ...] = ()

    def __repr__(self) -> str:
        calls = sum(len(run.calls) for run in self.runs)
        return (
            f"Comparison({len(self.oracles)} oracles on {len(self.problems)} instances,"
            f" {calls} calls; {len(self.violations)} violations)"
        )

    @cached_property
    def by_digest(self) -> dict[str, Problem]:
        """The problems by the digest of their instance."""
        return {problem.digest: problem for problem in self.problems}

    @property
    def oracles(self) -> list[str]:
        """The oracles, in the order in which they were named."""
        return list(dict.fromkeys(self.settings["oracles"]))

    @property
    def groups(self) -> list[str]:
        """The families or folders, in the order of the problems."""
        return list(dict.fromkeys(problem.group for problem in self.problems))

    @cached_property
    def questions(self) -> list[tuple[Problem, float, Bounds]]:
        """The questions of density: instance, η as a fraction of ‖P w_f‖, and the reference.

        At ±‖P w_f‖ there is one direction only, and none beyond: nothing is asked there.
        """
        fractions = self.settings["eta_fractions"]
        return [
            (problem, fraction, bounds)
            for problem in self.problems
            for fraction, bounds in zip(fractions, problem.densities, strict=True)
            if abs(fraction) < 1 and bounds.upper > 0
        ]

    def runs_of(self, oracle: str, problems: Sequence[Problem] | None = None) -> list[Run]:
        """An oracle's runs, on these problems or on all."""
        chosen = None if problems is None else {problem.digest for problem in problems}
        return [
            run
            for run in self.runs
            if run.oracle == oracle and (chosen is None or run.instance in chosen)
        ]

    def qualities(
        self, oracle: str, problems: Sequence[Problem] | None = None, *, known: bool = True
    ) -> dict[tuple[str, float], list[float]]:
        """(instance, η as a fraction) -> quality of the density found, one per seed.

        known : only questions whose optimum is known
        """
        found: dict[tuple[str, float], list[float]] = {}
        for run, call, bounds in self._density_calls(oracle, problems):
            if bounds.closed or not known:
                question = run.instance, call.eta_fraction
                found.setdefault(question, []).append(bounds.share(call.lower))
        return found

    def gains(
        self,
        oracle: str,
        problems: Sequence[Problem] | None = None,
        *,
        two: bool = False,
        known: bool = True,
    ) -> dict[str, list[float]]:
        """Instance -> quality of the gain that Algorithm 1 ends with, one per seed.

        two : with the paper's two thresholds
        known : only instances whose greatest gain is known
        """
        found: dict[str, list[float]] = {}
        for run in self.runs_of(oracle, problems):
            bounds = self.by_digest[run.instance].gain
            if run.error is None and (bounds.closed or not known):
                value = run.gain_two if two else run.gain
                found.setdefault(run.instance, []).append(bounds.share(value))
        return found

    @cached_property
    def best_found(self) -> dict[tuple[str, float], float]:
        """(instance, η as a fraction) -> the greatest density that anybody found, proof or not."""
        found: dict[tuple[str, float], float] = {}
        for oracle in self.oracles:
            for run, call, bounds in self._density_calls(oracle):
                question = run.instance, call.eta_fraction
                found[question] = max(found.get(question, bounds.lower), call.lower)
        return found

    def _shares_of_best_found(
        self, oracle: str, problems: Sequence[Problem] | None
    ) -> Iterator[float]:
        """The answers where the optimum is not known, as shares of the best that was found."""
        for run, call, bounds in self._density_calls(oracle, problems):
            best = self.best_found[run.instance, call.eta_fraction]
            if not bounds.closed and best > 0:
                yield call.lower / best

    def summary(self, oracle: str, problems: Sequence[Problem] | None = None) -> OracleSummary:
        """What the oracle came to, on these problems or on all."""
        runs = self.runs_of(oracle, problems)
        by_question = self.qualities(oracle, problems)
        density = [q for qualities in by_question.values() for q in qualities]
        several = [q for q in by_question.values() if len(q) > 1]

        def flat(two: bool) -> list[float]:
            gains = self.gains(oracle, problems, two=two)
            return [q for values in gains.values() for q in values]

        return OracleSummary(
            oracle=oracle,
            density=Spread.of(density),
            gain=Spread.of(flat(False)),
            gain_two=Spread.of(flat(True)),
            seed_spread=Spread.of(max(q) - min(q) for q in several),
            reached=float(np.mean([q >= NEARLY for q in density])) if density else 0.0,
            unknown=Spread.of(self._shares_of_best_found(oracle, problems)),
            seconds=Spread.of(call.seconds for run in runs for call in run.calls),
            calls=sum(len(run.calls) for run in runs),
            failures=sum(run.error is not None for run in runs),
        )

    def profile(self, oracle: str) -> dict[str, list[float]]:
        """For a performance profile: how far from the bound each question was left, ascending.

        median, best, worst : over the seeds; one number per question in each list
        """
        questions = list(self.qualities(oracle).values())
        takes: dict[str, Callable[[list[float]], float]]
        takes = {"median": statistics.median, "best": max, "worst": min}
        return {
            name: sorted(1 - take(qualities) for qualities in questions)
            for name, take in takes.items()
        }

    def quality_over_time(
        self, oracle: str, seconds: Sequence[float], problems: Sequence[Problem] | None = None
    ) -> list[Spread]:
        """The quality that the calls of an oracle had reached after so many seconds each."""
        reached: list[list[float]] = [[] for _ in seconds]
        for _run, call, bounds in self._density_calls(oracle, problems):
            if not bounds.closed:
                continue
            steps = [(when, value) for when, value, _bound in call.trace]
            steps.append((call.seconds, call.lower))
            for place, moment in enumerate(seconds):
                had = max((value for when, value in steps if when <= moment), default=0.0)
                reached[place].append(bounds.share(had))
        return [spread for values in reached if (spread := Spread.of(values)) is not None]

    def _density_calls(
        self, oracle: str, problems: Sequence[Problem] | None = None
    ) -> Iterator[tuple[Run, Call, Bounds]]:
        """The calls that were asked for density, with what is known of the answer."""
        fractions = list(self.settings["eta_fractions"])
        for run in self.runs_of(oracle, problems):
            densities = self.by_digest[run.instance].densities
            for call in run.calls:
                if not call.soft and call.chosen:
                    yield run, call, densities[fractions.index(call.eta_fraction)]

    @cached_property
    def violations(self) -> list[Violation]:
        """Values above a bound of ours; there must be none."""
        found = []
        for oracle in self.oracles:
            for run, call, bounds in self._density_calls(oracle):
                if call.lower > bounds.upper and bounds.level != "stated":
                    what = f"density at η = {call.eta_fraction:g} ‖P w_f‖"
                    found.append(Violation(run.instance, oracle, what, call.lower, bounds.upper))
        for run in self.runs:
            bounds = self.by_digest[run.instance].gain
            for value in (run.gain, run.gain_two):
                if value > bounds.upper and bounds.level != "stated":
                    found.append(Violation(run.instance, run.oracle, "gain", value, bounds.upper))
        return found

    def to_dict(self) -> dict[str, Any]:
        """The object of the file, and the one printed under ``--json``."""
        return {
            "format": FORMAT,
            "made_by": self.made_by,
            "settings": self.settings,
            "seconds": self.seconds,
            "complete": self.complete,
            "problems": [asdict(problem) for problem in self.problems],
            "runs": [asdict(run) for run in self.runs],
            "violations": [asdict(violation) for violation in self.violations],
            "doubts": list(self.doubts),
        }

    def save(self, folder: str | Path) -> None:
        """Write `comparison.json`; an existing one is replaced whole or not at all."""
        file = Path(folder) / FILE
        text = json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)
        try:
            files.write(file, text.encode())
        except OSError as error:
            raise InputError(f"cannot be written: {files.reason(error)}", file=file) from None

    @classmethod
    def load(cls, folder: str | Path) -> Comparison:
        """Read what `save` wrote."""
        file = Path(folder) / FILE
        try:
            content = json.loads(files.read_text(file))
        except OSError as error:
            raise InputError(
                f"cannot be read: {files.reason(error)}; give the --out folder of a comparison",
                file=file,
            ) from None
        except ValueError as error:
            raise InputError(f"is not JSON: {error}", file=file) from None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise InputError(f"is not a comparison: its format is not {FORMAT!r}", file=file)
        try:
            return cls._from_dict(content)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            said = f"is not a whole comparison: {type(error).__name__} {error}"
            raise InputError(said, file=file) from None

    @classmethod
    def _from_dict(cls, content: dict[str, Any]) -> Comparison:
        problems = []
        for entry in content["problems"]:
            densities = tuple(_bounds(part) for part in entry["densities"])
            problem = Problem(**{**entry, "gain": _bounds(entry["gain"]), "densities": densities})
            problems.append(problem)
        runs = []
        for entry in content["runs"]:
            calls = (Call(**call) for call in entry["calls"])
            calls = (replace(c, trace=tuple((s, v, b) for s, v, b in c.trace)) for c in calls)
            runs.append(Run(**{**entry, "calls": tuple(calls)}))
        found = cls(
            tuple(problems), tuple(runs), dict(content["settings"]), dict(content["made_by"]),
            float(content["seconds"]), bool(content["complete"]),
            tuple(content.get("doubts", ())),
        )  # fmt: skip
        assert found.violations is not None  # every run has a problem and every call a reference
        return found


def _bounds(entry: dict[str, Any]) -> Bounds:
    bounds = Bounds(**entry)
    if bounds.stated is not None:
        lower, upper = bounds.stated
        bounds = replace(bounds, stated=(lower, upper))
    if not (math.isfinite(bounds.lower) and math.isfinite(bounds.upper)):
        raise ValueError("a bound is not finite")
    return bounds
