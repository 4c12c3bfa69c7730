"""A comparison of oracles, and every figure that is read off it.

A comparison asks oracles the same questions: on each instance the same values of η, for each oracle
that draws random numbers the same seeds, and the same time for each call. What comes back is graded
by the recount alone and held against *references*: bounds on the greatest density at each η and on
the greatest gain of all rules, proved where there was time to.

**Quality** is lower bound / upper bound of the reference: the call has *at least* this share of the
optimum. Where a reference is closed that is the share itself, and only those questions enter the
summaries. Where it is open the share is unknown, and values are held against the best that any
oracle found. A value above a bound of ours is a violation: a bug in a bound or in the grader, never
tolerated. What an instance's file states of its optima serves where our own bounds are open, unless
anything found here refutes it: then it is a doubt about the file.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from mipmech.errors import InputError
from mipmech.frames import frame
from mipmech.studies.batch.asking import Call, ComparisonSettings, Reference, Run
from mipmech.studies.batch.records import Subject
from mipmech.studies.spread import Spread
from mipmech.text import count
from mipmech.tolerances import ROUNDING

FORMAT = "mipmech/comparison@2"
# A value of at least this share of the optimum nearly attains it.
NEARLY = 0.99
# Columns of the table of all calls.
CALLS = (
    "instance", "group", "agents", "rank", "oracle", "seed", "eta_fraction", "eta", "soft",
    "chosen", "lower", "reference_lower", "reference_upper", "level", "quality", "upper", "status",
    "stop", "seconds", "gain", "gain_two", "gain_share", "digest", "missed",
)  # fmt: skip
Entry = str | int | float | None


@dataclass(frozen=True, kw_only=True)
class Problem(Subject):
    """An instance of the comparison and its references.

    gain : bounds on the greatest gain of all rules, and the best rule known
    densities : bounds on the greatest density at each η of the comparison, in their order
    """

    gain: Reference
    densities: tuple[Reference, ...]

    @property
    def best(self) -> dict[str, Any] | None:
        """The best rule known, as `Mechanism.to_dict` gives it."""
        return self.gain.best


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
    """The results of an oracle on a set of problems.

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
    """All questions and answers of a comparison.

    Attributes
    ----------
    problems : tuple of Problem
        The instances with their references.
    runs : tuple of Run
        The oracles on them, with every call.
    settings : ComparisonSettings
        What was asked for: oracles, values of η, seeds, limits.
    made_by : dict
        Versions and machine.
    seconds : float
        Of work by all workers.
    complete : bool
        Whether everything was asked; if not, the results so far are valid all the same.
    doubts : tuple of str
        Statements of instance files that these results refute.
    left_out : tuple of str
        Duplicates of other instances under another name.
    stop : str
        Why the run ended; empty if it was read from a folder.
    unwritten : str, optional
        What could not be written to the folder, and why.
    """

    problems: tuple[Problem, ...]
    runs: tuple[Run, ...]
    settings: ComparisonSettings
    made_by: dict[str, Any]
    seconds: float
    complete: bool
    doubts: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    stop: str = ""
    unwritten: str | None = None

    def __repr__(self) -> str:
        calls = sum(len(run.calls) for run in self.runs)
        failed = sum(run.error is not None for run in self.runs)
        return (
            f"Comparison({len(self.oracles)} oracles on {len(self.problems)} instances,"
            f" {calls} calls; {len(self.violations)} violations"
            + (f", {count(failed, 'run')} failed)" if failed else ")")
        )

    @property
    def status(self) -> Literal["complete", "partial"]:
        """Whether everything was asked."""
        return "complete" if self.complete else "partial"

    @cached_property
    def by_digest(self) -> dict[str, Problem]:
        """The problems by the digest of their instance."""
        return {problem.digest: problem for problem in self.problems}

    @property
    def oracles(self) -> list[str]:
        """The oracles, in the order in which they were named."""
        return list(self.settings.oracles)

    @property
    def groups(self) -> list[str]:
        """The families or folders, in the order of the problems."""
        return list(dict.fromkeys(problem.group for problem in self.problems))

    @cached_property
    def questions(self) -> list[tuple[Problem, float, Reference]]:
        """The questions of density: instance, η as a fraction of ‖P w_f‖, and the reference.

        At ±‖P w_f‖ there is one direction only, and none beyond: nothing is asked there.
        """
        fractions = self.settings.eta_fractions
        return [
            (problem, fraction, bounds)
            for problem in self.problems
            for fraction, bounds in zip(fractions, problem.densities, strict=True)
            if abs(fraction) < 1 and bounds.upper
        ]

    @cached_property
    def on_facets(self) -> bool:
        """Whether some questions went to the nearest facet (l1, linf) in place of the η itself."""
        for run in self.runs:
            whole = [c.eta / c.eta_fraction for c in run.calls if c.eta_fraction]
            if whole and max(whole) - min(whole) > ROUNDING * max(map(abs, whole)):
                return True
        return False

    def runs_of(self, oracle: str, problems: Sequence[Problem] | None = None) -> list[Run]:
        """The runs of an oracle.

        Parameters
        ----------
        oracle : str
            Its name.
        problems : sequence of Problem, optional
            On these; by default on all.
        """
        if oracle not in self.oracles:
            known = ", ".join(self.oracles)
            raise InputError(f"there is no {oracle!r} here; there are: {known}", field="oracle")
        chosen = None if problems is None else {problem.digest for problem in problems}
        return [
            run
            for run in self.runs
            if run.oracle == oracle and (chosen is None or run.instance in chosen)
        ]

    def qualities(
        self, oracle: str, problems: Sequence[Problem] | None = None, *, known: bool = True
    ) -> dict[tuple[str, float], list[float]]:
        """Quality of the densities found: by instance and η as a fraction, one per seed.

        Parameters
        ----------
        oracle : str
            Its name.
        problems : sequence of Problem, optional
            On these; by default on all.
        known : bool
            Only questions whose optimum is known.
        """
        found: dict[tuple[str, float], list[float]] = {}
        for run, call, bounds in self._density_calls(oracle, problems):
            # Where no rule with this η meets the requirements, there was nothing to find.
            if bounds.upper and (bounds.closed or not known):
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
        """Quality of the gain that Algorithm 1 ends with: by instance, one per seed.

        Parameters
        ----------
        oracle : str
            Its name.
        problems : sequence of Problem, optional
            On these; by default on all.
        two : bool
            With the paper's two thresholds.
        known : bool
            Only instances whose greatest gain is known.
        """
        found: dict[str, list[float]] = {}
        for run in self.runs_of(oracle, problems):
            bounds = self.by_digest[run.instance].gain
            if run.error is None and not bounds.infeasible and (bounds.closed or not known):
                value = run.gain_two if two else run.gain
                found.setdefault(run.instance, []).append(bounds.share(value))
        return found

    @cached_property
    def best_found(self) -> dict[tuple[str, float], float]:
        """(instance, η as a fraction) -> the greatest density known, found here or stated."""
        return self._greatest(stated=True)

    def _greatest(self, stated: bool) -> dict[tuple[str, float], float]:
        """The greatest density that an oracle or a reference has; with or without stated ones."""
        found: dict[tuple[str, float], float] = {}
        for oracle in self.oracles:
            for run, call, bounds in self._density_calls(oracle):
                question = run.instance, call.eta_fraction
                known = (bounds.lower or 0.0) if stated or bounds.level != "stated" else 0.0
                found[question] = max(found.get(question, known), call.lower)
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
        """The results of an oracle.

        Parameters
        ----------
        oracle : str
            Its name.
        problems : sequence of Problem, optional
            On these; by default on all.
        """
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
        """How far from the bound each question was left, ascending: for a performance profile.

        Parameters
        ----------
        oracle : str
            Its name.

        Returns
        -------
        dict
            Lists with one number per question: "median", "best" and "worst" of the seeds.
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
        """Quality that the calls of an oracle had reached at these moments.

        Parameters
        ----------
        oracle : str
            Its name.
        seconds : sequence of float
            Moments.
        problems : sequence of Problem, optional
            On these; by default on all.
        """
        reached: list[list[float]] = [[] for _ in seconds]
        for _run, call, bounds in self._density_calls(oracle, problems):
            if not bounds.closed or not bounds.upper:
                continue
            steps = [(when, value) for when, value, _bound in call.trace]
            steps.append((call.seconds, call.lower))
            for place, moment in enumerate(seconds):
                had = max((value for when, value in steps if when <= moment), default=0.0)
                reached[place].append(bounds.share(had))
        return [spread for values in reached if (spread := Spread.of(values)) is not None]

    def _density_calls(
        self, oracle: str, problems: Sequence[Problem] | None = None
    ) -> Iterator[tuple[Run, Call, Reference]]:
        """The calls that were asked for density, with what is known of the answer."""
        fractions = list(self.settings.eta_fractions)
        for run in self.runs_of(oracle, problems):
            densities = self.by_digest[run.instance].densities
            for call in run.calls:
                if not call.soft and call.chosen:
                    yield run, call, densities[fractions.index(call.eta_fraction)]

    @cached_property
    def violations(self) -> list[Violation]:
        """Values above a bound of ours, or above an oracle's own; there must be none."""
        found = []

        def check(run: Run, what: str, value: float | None, upper: float | None) -> None:
            if value is not None and upper is not None and value > upper:
                found.append(Violation(run.instance, run.oracle, what, value, upper))

        reached = self._greatest(stated=False)
        for oracle in self.oracles:
            for run, call, bounds in self._density_calls(oracle):
                what = f"density at η = {call.eta_fraction:g} ‖P w_f‖"
                if bounds.level != "stated":
                    check(run, what, call.lower, bounds.upper)
                if call.upper is not None:
                    best = reached[run.instance, call.eta_fraction]
                    check(run, f"bound of {what}", best, call.upper)
        for run in self.runs:
            bounds = self.by_digest[run.instance].gain
            for call in run.calls:
                # With requirements, that there is no rule at an η is a claim like a bound of 0.
                if call.status == "infeasible" and not call.soft:
                    best = reached.get((run.instance, call.eta_fraction), 0.0)
                    check(run, f"bound at η = {call.eta_fraction:g} ‖P w_f‖", best, call.upper)
            if bounds.infeasible and run.gain is not None and run.calls:
                what = "gain, where no rule should meet the requirements"
                found.append(Violation(run.instance, run.oracle, what, run.gain, 0.0))
            if bounds.level != "stated":
                check(run, "gain", run.gain, bounds.upper)
                check(run, "gain", run.gain_two, bounds.upper)
        return found

    def rows(self) -> list[tuple[Entry, ...]]:
        """One row per call, with the columns of `CALLS`; a run without calls has one that says so.

        Soft density has no reference, so its reference and quality are empty. Where there was
        nothing to choose (``chosen`` is 0), the quality enters no summary.
        """
        return [self._row(run, call) for run in self.runs for call in (run.calls or (None,))]

    def _row(self, run: Run, call: Call | None) -> tuple[Entry, ...]:
        problem = self.by_digest[run.instance]
        head = (problem.name, problem.group, problem.agents, problem.rank, run.oracle, run.seed)
        if call is None:
            empty = (None,) * (len(CALLS) - len(head) - 8)
            why = run.error or "no calls"
            failed = ("failed", why, run.seconds, None, None, None, problem.digest, None)
            return (*head, *empty, *failed)
        reference: tuple[Entry, ...] = (None, None, None, None)
        if not call.soft:
            bounds = problem.densities[self.settings.eta_fractions.index(call.eta_fraction)]
            reference = (bounds.lower, bounds.upper, bounds.level, bounds.share(call.lower))
        return (
            *head, call.eta_fraction, call.eta, int(call.soft), int(call.chosen), call.lower,
            *reference, call.upper, call.status, call.stop, call.seconds, call.gain, call.gain_two,
            None if problem.gain.infeasible else problem.gain.share(call.gain), problem.digest,
            call.missed,
        )  # fmt: skip

    def to_frame(self) -> Any:
        """All calls as a data frame of pandas, or of polars where there is no pandas."""
        return frame(CALLS, self.rows())

    def plot(self) -> Any:
        """A matplotlib figure: quality of the density against time, for every oracle."""
        from mipmech.plots.comparison import comparison_picture  # noqa: PLC0415  (matplotlib is slow)

        return comparison_picture(self)

    def to_dict(self) -> dict[str, Any]:
        """The object printed under ``--json``."""
        return {
            "format": FORMAT,
            "made_by": self.made_by,
            "settings": self.settings.to_dict(),
            "seconds": self.seconds,
            "status": self.status,
            "complete": self.complete,
            "stop": self.stop,
            "problems": [asdict(problem) for problem in self.problems],
            "runs": [asdict(run) for run in self.runs],
            "violations": [asdict(violation) for violation in self.violations],
            "doubts": list(self.doubts),
            "left_out": list(self.left_out),
            "unwritten": self.unwritten,
        }
