"""What a comparison asks: oracles at the same η within the same time, and references.

One set of answers serves twice: as densities, and inside Algorithm 1, whose gain on these η is the
best that the answers lead to (lines 3 to 6). Programs are loaded and loops compiled before the
clock of a call starts.
"""

from __future__ import annotations

import contextlib
import math
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cache
from importlib.metadata import version
from typing import Any

from mipmech.budget import Budget, Stop, Trace
from mipmech.design.certificate import Certificate, certify, certify_density
from mipmech.errors import InputError, shorten
from mipmech.model.costs.facets import facets_of
from mipmech.model.edge_of_reach import steady
from mipmech.model.families import make
from mipmech.model.geometry import Geometry, reduce
from mipmech.model.grading import Recount
from mipmech.model.instance import Instance
from mipmech.model.mechanism import Mechanism
from mipmech.model.requirements import Requirements, demands_of
from mipmech.model.requirements.feasible import best_feasible, steady_feasible
from mipmech.model.thresholds import best_threshold
from mipmech.oracles.base import Answer, Oracle, OracleFault, grade, infeasible
from mipmech.oracles.registry import as_oracle, options_of
from mipmech.rationals import round_down, round_up
from mipmech.studies.batch.records import (
    Duration,
    Figure,
    Level,
    Options,
    Record,
    Seed,
    Step,
    typed,
)
from mipmech.studies.batch.requiring import missed
from mipmech.theory.lemma4 import quarter
from mipmech.tolerances import ROUNDING
from mipmech.version import __version__
from mipmech.workers.processes import cores

# Values of η as fractions of ‖P w_f‖; their angles are some 12 degrees apart.
ETA_FRACTIONS = (1.0, 0.97, 0.9, 0.8, 0.6, 0.4, 0.2)
SEEDS = (0, 1, 2)
SECONDS_PER_CALL = 2.0
# A reference may take this many times as long as a call, and this long in any case.
REFERENCE_CALLS, REFERENCE_SECONDS = 5.0, 10.0
# The gap that a reference for the gain is to reach, and that at which any counts as known.
REFERENCE_GAP, CLOSED = 1e-3, 2e-3
# No call takes longer, in seconds: thirty years.
LONGEST = 1e9
PACKAGES = ("numpy", "scipy", "pyomo", "highspy", "numba")


@dataclass(frozen=True)
class ComparisonSettings:
    """The questions and limits of every oracle.

    oracles : their names
    eta_fractions : values of η, as fractions of ‖P w_f‖, the greatest rate; for l1 and linf the
        nearest rate of a facet is asked
    seeds : for the oracles that draw random numbers; the others are asked once
    seconds_per_call : the time of each call
    full_time : heuristics go on until that time is over, instead of stopping by their own rule
    reference_seconds : the time of each certificate; None for what the time of a call suggests
    requirements : what rules must meet, as a file has it; None if nothing is demanded
    """

    oracles: tuple[str, ...]
    eta_fractions: tuple[Figure, ...] = ETA_FRACTIONS
    seeds: tuple[Seed, ...] = SEEDS
    seconds_per_call: Duration = SECONDS_PER_CALL
    full_time: bool = False
    reference_seconds: Duration | None = None
    requirements: dict[str, Any] | None = None

    def checked(self) -> ComparisonSettings:
        """The same, validated, with the default time of a certificate filled in."""
        for field in ("oracles", "eta_fractions", "seeds"):
            values = getattr(self, field)
            if not values:
                raise InputError("is empty; give one or more", field=field)
            if len(set(values)) < len(values):
                raise InputError("has a value twice; give each once", field=field)
        for fraction in self.eta_fractions:
            if not -1 <= fraction <= 1:
                raise InputError(f"has {fraction}; give numbers from −1 to 1", field="etas")
        for seed in self.seeds:
            if not 0 <= seed < 2**63:
                said = f"has {shorten(seed)}; give whole numbers from 0, below 2^63"
                raise InputError(said, field="seeds")
        seconds, reference = self.seconds_per_call, self.reference_seconds
        if not 0 < seconds <= LONGEST:
            said = f"is {seconds}; give a number above 0, at most {LONGEST:g}"
            raise InputError(said, field="seconds_per_call")
        if reference is None:
            reference = max(REFERENCE_SECONDS, REFERENCE_CALLS * seconds)
        elif not 0 <= reference <= LONGEST:
            said = f"is {reference}; give a number from 0 to {LONGEST:g}"
            raise InputError(said, field="reference_seconds")
        return replace(self, reference_seconds=reference)

    def asked(self, oracle: Oracle) -> list[tuple[int | None, Options]]:
        """Seed and options of each run: one run per seed if the oracle is randomised."""
        if not oracle.randomised:
            return [(None, {})]
        endless = {"rounds": None} if self.full_time and "rounds" in options_of(oracle) else {}
        return [(seed, {"seed": seed, **endless}) for seed in self.seeds]

    def to_dict(self) -> dict[str, Any]:
        """For the record."""
        lists = {name: list(value) for name, value in asdict(self).items() if type(value) is tuple}
        content = {**asdict(self), **lists}
        if self.requirements is None:
            del content["requirements"]
        return content


@dataclass(frozen=True)
class Call:
    """One question to an oracle.

    eta_fraction, eta : what was asked
    lower : the density of the mechanism found, recounted (soft density, if ``soft``)
    upper : the oracle's own upper bound; None for heuristics
    gain, gain_two : of the rule with the best threshold, and with the better of the paper's two;
        None if that rule does not meet the requirements, or no threshold does
    trace : (seconds, lower, upper) whenever one of the bounds changed
    missed : how the mechanism fails the requirements, if it does; it counts as none then
    """

    eta_fraction: Figure
    eta: Figure
    lower: Figure
    soft: bool
    upper: Figure | None
    status: str
    stop: str
    seconds: Duration
    gain: Figure | None
    gain_two: Figure | None
    trace: tuple[tuple[Figure, Figure, Figure | None], ...] = ()
    missed: str | None = None

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
    gain, gain_two : the best of its calls; None if none led to a rule that meets the requirements
    mechanism : the rule of that gain
    error : why there are no calls, if there are none
    """

    instance: str
    oracle: str
    record: str
    seed: Seed | None
    calls: tuple[Call, ...]
    seconds: Duration
    mechanism: dict[str, Any] | None = None
    error: str | None = None

    @property
    def gain(self) -> float | None:
        """The gain that Algorithm 1 ends with, taking the best threshold for every answer."""
        return self._best([call.gain for call in self.calls])

    @property
    def gain_two(self) -> float | None:
        """The same with the paper's two thresholds for every answer."""
        return self._best([call.gain_two for call in self.calls])

    def _best(self, gains: Sequence[float | None]) -> float | None:
        known = [gain for gain in gains if gain is not None]
        return max(known, default=None if gains else 0.0)


@dataclass(frozen=True)
class Reference:
    """Bounds on an optimum, to compare answers with: it lies in [lower, upper].

    lower : None if rules must meet requirements, and none that does is known
    upper : None if no rule meets the requirements
    best : the rule that has ``lower``, as `Mechanism.to_dict` gives it
    accepted, rates : the share that it accepts, in all and by group, if requirements ask for it
    """

    lower: Figure | None
    upper: Figure | None
    level: Level
    seconds: Duration
    best: dict[str, Any] | None = None
    accepted: Figure | None = None
    rates: dict[str, Figure] | None = None

    @property
    def infeasible(self) -> bool:
        """Whether no rule meets the requirements."""
        return self.upper is None

    @property
    def gap(self) -> float:
        """(upper − lower)/upper; 0 if upper is 0, 1 if the best rule known does harm."""
        if self.upper is None:
            return 0.0
        if self.lower is None or self.lower < 0:
            return 1.0
        return 1 - self.lower / self.upper if self.upper > 0 else 0.0

    @property
    def closed(self) -> bool:
        """Whether the optimum is known, for the purposes of a comparison."""
        return self.gap <= CLOSED

    def settled(
        self, found: float, stated: tuple[float, float] | None
    ) -> tuple[Reference, str | None]:
        """These bounds, or the stated ones where those are narrower and these are open.

        found : the best value that any run found
        stated : the bounds in the instance's file
        The second result says why the statement is wrong, if it is.
        """
        if stated is None:
            return self, None
        lower, upper = stated
        assert self.lower is not None  # what files state is about all rules
        assert self.upper is not None
        found = max(found, self.lower)
        if found > upper * (1 + ROUNDING):
            return self, f"at most {upper:g}, but there is a rule with {found:g}"
        if lower * (1 - ROUNDING) > self.upper:
            return self, f"at least {lower:g}, but no rule has more than {self.upper:g}"
        if self.closed or upper >= self.upper:
            return self, None
        return replace(self, lower=max(self.lower, lower), upper=upper, level="stated"), None

    def share(self, value: float | None) -> float:
        """At least this share of the optimum is reached by the value; 1 where nothing can be.

        Values are rounded down and bounds up, so what is equal differs in the last digit. A rule
        that does harm, or none, has nothing of it.
        """
        if value is None or self.upper is None or value < 0:
            return 0.0
        return value / self.upper if value < self.upper * (1 - ROUNDING) else 1.0


def eta_near(geometry: Geometry, fraction: float) -> float:
    """The η that a fraction of the greatest one stands for: on facets (l1, linf), the nearest rate.

    geometry : of the instance that is asked about
    """
    eta = fraction * geometry.p_norm
    if geometry.norm == "l2":
        return eta
    rates = [float(facet.rate) for facet in facets_of(geometry.seen or geometry.instance)]
    return min(rates, key=lambda rate: abs(rate - eta))


def certify_reference(
    sample: Instance,
    fraction: float | None,
    seconds: float,
    requirements: Options | None = None,
) -> Reference:
    """Bounds on the greatest gain (no fraction), or on the greatest density at η.

    requirements : what rules must meet, as a file has it
    """
    geometry = reduced(sample, requirements)
    budget = Budget(seconds)
    if fraction is None:
        found = certify(geometry, gap=REFERENCE_GAP, budget=budget)
        if geometry.demands is not None:
            return _required_gain(found)
    else:
        eta = eta_near(geometry, fraction)
        if infeasible(geometry, eta):
            return Reference(0.0, 0.0, "proved", 0.0)
        # Certificates at η are for l2, and for all rules.
        if geometry.norm != "l2" or geometry.demands is not None:
            answer = as_oracle("cells")(geometry, eta, budget)
            upper = Fraction(1) if answer.upper is None else answer.upper
            lower = Fraction(0) if missed(geometry, answer.recount) else answer.lower
            return Reference(round_down(lower), round_up(upper), "attested", answer.seconds)
        found = certify_density(geometry, eta, budget)
    best = None if found.mechanism is None else found.mechanism.to_dict()
    return Reference(round_down(found.lower), found.upper, found.level, found.seconds, best)


def _required_gain(found: Certificate) -> Reference:
    """A certificate of the greatest gain of the rules that meet requirements."""
    facts = {} if found.demands is None else found.demands.facts(found.recount)
    best = None if found.mechanism is None else found.mechanism.to_dict()
    lower = None if found.unknown else round_down(found.lower)
    upper = None if found.infeasible else found.upper
    return Reference(
        lower, upper, found.level, found.seconds, best, facts.get("accepted"), facts.get("rates")
    )


def run_oracle(
    sample: Instance,
    name: str,
    seed: int | None,
    oracle: Oracle,
    fractions: Sequence[float],
    seconds: float,
    requirements: Options | None = None,
) -> Run:
    """An oracle at every η, and the rules that Algorithm 1 makes of its answers.

    requirements : what rules must meet, as a file has it
    """
    geometry = reduced(sample, requirements)
    calls: list[Call] = []
    best: Recount | None = None
    for fraction in fractions:
        call, rule = _call(geometry, oracle, fraction, seconds)
        calls.append(call)
        if rule is None or (rule.gain <= 0 and geometry.demands is None):
            continue
        if best is None or rule.gain > best.gain:
            best = rule
    mechanism = None if best is None else best.mechanism.to_dict()
    spent = sum(call.seconds for call in calls)
    return Run(sample.digest, name, repr(oracle), seed, tuple(calls), spent, mechanism)


def _call(
    geometry: Geometry, oracle: Oracle, fraction: float, seconds: float
) -> tuple[Call, Recount | None]:
    eta, trace = eta_near(geometry, fraction), Trace()
    budget = Budget(seconds, watch=trace)
    answer = _graded(oracle, geometry, eta, oracle(geometry, eta, budget), budget)
    fails = missed(geometry, answer.recount)
    best, found = None, 0.0 if fails else round_down(answer.lower)
    gain, two = (0.0, 0.0) if geometry.demands is None else (None, None)
    if answer.mechanism is not None:
        best = _best_rule(geometry, answer.mechanism)
        better = quarter(geometry.instance, answer.mechanism)[0]
        if geometry.demands is None:
            assert best is not None
            gain, two = max(0.0, round_down(best.gain)), max(0.0, round_down(better.gain))
        else:
            gain = None if best is None else round_down(best.gain)
            two = None if missed(geometry, better) else round_down(better.gain)
    call = Call(
        eta_fraction=fraction,
        eta=eta,
        lower=found,
        soft=answer.soft,
        upper=None if answer.upper is None else round_up(answer.upper),
        status=answer.status,
        stop=answer.stop.value,
        seconds=answer.seconds,
        gain=gain,
        gain_two=two,
        trace=tuple((when, min(low, found), up) for when, low, up, _ in steps_of(trace)),
        missed=fails,
    )
    return call, best


def _best_rule(geometry: Geometry, mechanism: Mechanism) -> Recount | None:
    """The best threshold along a direction among those that are allowed; None if none is."""
    if geometry.demands is None:
        return steady(best_threshold(geometry.instance, mechanism))
    found = best_feasible(geometry.demands, mechanism)
    return None if found is None else steady_feasible(geometry.demands, found)


def _graded(
    oracle: Oracle, geometry: Geometry, eta: float, answer: Answer, budget: Budget
) -> Answer:
    """The answer, graded again: a user's oracle may have made it without `grade`.

    Whether it meets requirements is told by `missed`: a rule that does not is no fault, but counts
    as none.
    """
    if answer.stop is Stop.INFEASIBLE:
        # With requirements there may be no rule at an η that some directions have.
        if geometry.demands is None and not infeasible(geometry, eta):
            raise OracleFault(f"said that η = {eta!r} is infeasible, which it is not")
        return answer
    again = grade(
        oracle, replace(geometry, demands=None), eta, answer.mechanism, stop=answer.stop,
        timer=budget.start(), upper=answer.upper, level=answer.level or "attested",
        work=answer.work,
    )  # fmt: skip
    return replace(again, stop=answer.stop, seconds=answer.seconds)


# ------------------------------------------------------------------ from records


def run_of(record: Record) -> Run:
    """The run of an "ask" record; one without a result says why."""
    options = record.options
    if record.done:
        return typed(record.result, Run, "a run")
    own = ", ".join(f"{name}={value!r}" for name, value in options["options"].items())
    return Run(
        record.instance.digest, options["oracle"],
        str(options.get("record", f"{options['oracle']}({own})")), options["seed"], (),
        record.seconds, error=f"{record.status}: {record.reason}",
    )  # fmt: skip


def reference_of(record: Record) -> Reference:
    """The bounds of a "reference" record with a result."""
    return typed(record.result, Reference, "a reference")


# ------------------------------------------------------------------ in a worker


def steps_of(trace: Trace) -> tuple[Step, ...]:
    """The events of a trace as a record keeps them: a bound that is infinite is none."""
    return tuple(
        (
            event.seconds,
            event.lower,
            None if event.upper is None or math.isinf(event.upper) else event.upper,
            event.work,
        )
        for event in trace.events
    )


@cache
def made_by() -> dict[str, Any]:
    """Versions and machine, for the record."""
    return {
        "program": "mipmech",
        "version": __version__,
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "cores": cores(),
        "packages": {name: version(name) for name in PACKAGES},
    }


_REDUCED: list[Geometry] = []


def reduced(sample: Instance, requirements: Options | None = None) -> Geometry:
    """The instance in reduced coordinates; the last one is kept, since jobs come in its order.

    requirements : what rules must meet, as a file has it
    """
    if not _REDUCED or not _alike(_REDUCED[0].instance, sample):
        _REDUCED[:] = [reduce(replace(sample))]
    geometry = _REDUCED[0]
    if requirements is None:
        return geometry
    demands = demands_of(geometry.instance, Requirements.from_dict(requirements))
    return replace(geometry, demands=demands)


def _alike(one: Instance, other: Instance) -> bool:
    """Whether they have the same numbers, and the same names for features to be called by."""
    return one.digest == other.digest and one.features == other.features


_WARM: set[type[Any]] = set()


def warm(oracle: str | Oracle) -> None:
    """Load what an oracle needs and compile its loops, before any clock runs.

    Errors are ignored here: they occur again where the oracle is asked.
    """
    named = isinstance(oracle, str)
    asked = as_oracle(oracle)
    if type(asked) not in _WARM:
        _WARM.add(type(asked))
        geometry = reduce(make("gaussian-mixture", agents=12, rank=3, seed=0))
        with contextlib.suppress(Exception):
            asked(geometry, 0.6 * geometry.p_norm, Budget(60.0 if named else 1.0))
