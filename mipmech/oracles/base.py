"""The oracle contract: what a density oracle receives and returns, and how it is graded.

An oracle is asked for a mechanism of greatest density among those with u·p = η:

    oracle(geometry, eta, budget) -> Answer

It is a small frozen dataclass whose repr is its record. It proposes a rule; `grade` recounts the
rule and tests the η band in rationals, and makes the `Answer`. A heuristic is an oracle that
promises no upper bound (``upper`` is None).

u·p = η has in general no solution in floats, so an answer at η is an answer for the band
|u·p/‖u‖ − η| ≤ band·‖p‖ (`Geometry.band`, 1e-12), and an upper bound holds on the whole band.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, Protocol

from mipmech.budget import Budget, Stop, Timer
from mipmech.errors import InputError
from mipmech.model.geometry import Geometry
from mipmech.model.grading import Recount, recount
from mipmech.model.mechanism import Mechanism
from mipmech.model.requirements import Demands
from mipmech.oracles.shared.facets import rates_near
from mipmech.rationals import relative_gap, round_down, round_up
from mipmech.tolerances import CLOSED, SOFT_CLOSED

Level = Literal["proved", "attested"]
Status = Literal["optimal", "gap", "feasible", "infeasible"]


@dataclass(frozen=True, repr=False)
class Answer:
    """What an oracle found at η, graded.

    Attributes
    ----------
    eta : float
    recount : Recount or None
        The exact outcome of the mechanism found; None if there is none.
    upper : Fraction or None
        No mechanism in the band has a greater density (soft density, if ``soft``); None if the
        oracle promises nothing.
    level : {"proved", "attested"} or None
        Whether ``upper`` is proved or a solver's claim; None without one.
    stop : Stop
        Why the oracle stopped.
    seconds : float
    oracle : str
        The record of the oracle that answered.
    soft : bool
        Whether soft density was asked for.
    work : mapping of str to int
        Cones, nodes, models and so on.
    demands : Demands or None
        What was demanded of rules; None if any rule is allowed.
    """

    eta: float
    recount: Recount | None
    upper: Fraction | None
    level: Level | None
    stop: Stop
    seconds: float
    oracle: str
    soft: bool = False
    work: Mapping[str, int] = field(default_factory=dict)
    demands: Demands | None = None

    def __repr__(self) -> str:
        upper = "none" if self.upper is None else f"{float(self.upper):.6g}"
        what = "soft density" if self.soft else "density"
        return (
            f"Answer({self.status} at η = {self.eta:.6g}: {what} {float(self.lower):.6g},"
            f" bound {upper}; {self.stop.value})"
        )

    @property
    def mechanism(self) -> Mechanism | None:
        """The mechanism found."""
        return None if self.recount is None else self.recount.mechanism

    @property
    def density(self) -> Fraction:
        """Its exact density; 0 without a mechanism."""
        return Fraction(0) if self.recount is None else self.recount.density

    @property
    def lower(self) -> Fraction:
        """What was asked for: density, or soft density from below; 0 without a mechanism."""
        if not self.soft or self.recount is None:
            return self.density
        return self.recount.soft_density_below

    @property
    def gap(self) -> float:
        """(upper − lower)/upper, rounded up; 0 if upper is 0, 1 without a bound."""
        if self.upper is None:
            return 1.0
        return relative_gap(self.lower, self.upper)

    @property
    def closed(self) -> bool:
        """Whether the bounds meet, to within what a solver can tell apart (`tolerances.CLOSED`)."""
        return self.upper is not None and self.gap <= (SOFT_CLOSED if self.soft else CLOSED)

    @property
    def status(self) -> Status:
        """Optimal, gap, feasible (no bound) or infeasible."""
        return self.status_at(None)

    def status_at(self, gap: float | None) -> Status:
        """The status if a relative gap up to this counts as optimal.

        "gap" also if nothing was found and nothing proved.

        Parameters
        ----------
        gap : float or None
            None: optimal only if the bounds meet.
        """
        if self.stop in (Stop.INFEASIBLE, Stop.UNMET):
            return "infeasible"
        if self.upper is None:
            return "gap" if self.recount is None else "feasible"
        met = self.closed if gap is None else self.gap <= gap
        return "optimal" if met else "gap"

    def plot(self) -> Any:
        """A matplotlib figure of the rule found."""
        if self.recount is None:
            raise InputError("has no rule to draw", field="answer")
        return self.recount.plot()

    def to_dict(self) -> dict[str, Any]:
        """The object printed under ``--json``; bounds are rounded outward."""
        found = self.recount
        upper = None if self.upper is None else round_up(self.upper)
        wanted = {"lower": round_down(self.lower), "upper": upper}
        return {
            "status": self.status,
            **({"soft_density": wanted} if self.soft else {}),
            "density": {"lower": round_down(self.density), "upper": None if self.soft else upper},
            "level": self.level,
            "covered": [] if found is None else found.covered.tolist(),
            "mechanism": None if found is None else found.mechanism.to_dict(),
            "eta": self.eta,
            "eta_achieved": None if found is None else found.eta,
            **({} if self.demands is None else self.demands.facts(found)),
            "gap": self.gap,
            "stop": self.stop.value,
            "oracle": self.oracle,
            "work": dict(self.work),
            "seconds": self.seconds,
        }


class Oracle(Protocol):
    """Anything that can be asked for a dense mechanism at η.

    A class that names this one as its base inherits the two flags below; others state them.

    Attributes
    ----------
    soft : bool
        Whether it maximises soft density instead of density.
    randomised : bool
        Whether it draws random numbers; then it is a dataclass with a field ``seed``.
    """

    soft: ClassVar[bool] = False
    randomised: ClassVar[bool] = False

    def __call__(self, geometry: Geometry, eta: float, budget: Budget) -> Answer:
        """The best mechanism found with u·p = η."""


class OracleFault(RuntimeError):
    """An oracle broke its promise: a bug in it, never a property of the instance."""


def infeasible(geometry: Geometry, eta: float) -> bool:
    """Whether no direction at all has this η (up to the band), decided in rationals.

    For l1 and linf, whether no facet has this rate.
    """
    if not math.isfinite(eta):
        raise InputError(f"is {eta}; give a finite number", field="eta")
    if geometry.norm != "l2":
        return not rates_near(geometry, eta)
    low, high = map(Fraction, geometry.p_norm_bounds)
    size, band = abs(Fraction(eta)), Fraction(geometry.band)
    if high == 0 or geometry.rank > 1:
        return size > high * (1 + band)
    return not low * (1 - band) <= size <= high * (1 + band)


def grade(
    oracle: Oracle,
    geometry: Geometry,
    eta: float,
    mechanism: Mechanism | None,
    *,
    stop: Stop,
    timer: Timer,
    upper: Fraction | None = None,
    level: Level = "attested",
    work: Mapping[str, int] | None = None,
) -> Answer:
    """Recount a proposal and make it an answer; raise `OracleFault` for a broken promise."""
    found = None if mechanism is None else recount(geometry.instance, mechanism)
    if found is not None and not found.eta_within(eta, geometry.band * geometry.p_norm):
        raise OracleFault(f"asked for η = {eta!r}, got a mechanism with η = {found.eta!r}")
    if timer.interrupted and stop is Stop.TIME:
        stop = Stop.INTERRUPTED
    answer = Answer(
        eta, found, upper, None if upper is None else level, stop, timer.seconds, repr(oracle),
        oracle.soft, work or {}, geometry.demands,
    )  # fmt: skip
    if found is not None and geometry.demands is not None:
        missed = geometry.demands.failures(found)
        if missed:
            raise OracleFault(f"got a rule that does not meet what is demanded: {missed[0].what}")
    if upper is not None and answer.lower > upper:
        raise OracleFault(
            f"found {float(answer.lower)!r}, which is above its own bound {float(upper)!r}; a bound"
            " is a Fraction, or rounded up"
        )
    return replace(answer, stop=Stop.CLOSED) if found is not None and answer.closed else answer


def answer_infeasible(oracle: Oracle, eta: float, timer: Timer) -> Answer:
    """The answer if no direction has this η."""
    none, stop = Fraction(0), Stop.INFEASIBLE
    return Answer(eta, None, none, "proved", stop, timer.seconds, repr(oracle), oracle.soft)


class FeasibleOracle(Oracle, ABC):
    """An oracle of the package: `answer` is called only for an η that some direction has.

    Attributes
    ----------
    facets : bool
        Whether it knows the facets of l1 and linf, too; else those costs are refused.
    demanding : bool
        Whether it knows requirements; else they are refused.
    own : bool
        Whether it knows constraints that a user wrote; else they are refused.
    """

    facets: ClassVar[bool] = False
    demanding: ClassVar[bool] = True
    own: ClassVar[bool] = True

    def __call__(self, geometry: Geometry, eta: float, budget: Budget) -> Answer:
        """The best mechanism found with u·p = η, and a bound if the oracle promises one."""
        timer = budget.start()
        if geometry.norm != "l2" and not self.facets:
            said = (
                f"{type(self).__name__.lower()} is for Euclidean costs (l2), and these are"
                f" {geometry.norm}; choose milp, milp-soft, cells, cells-soft, random, ransac or"
                " ascent"
            )
            raise InputError(said, field="oracle")
        self._refuse_requirements(geometry)
        if infeasible(geometry, eta):
            return replace(answer_infeasible(self, eta, timer), demands=geometry.demands)
        with timer.listening():
            return self.answer(geometry, eta, timer)

    def _refuse_requirements(self, geometry: Geometry) -> None:
        demands, name = geometry.demands, type(self).__name__.lower()
        if demands is None:
            return
        if not self.demanding:
            said = f"{name} does not know requirements; choose milp, cells or a heuristic oracle"
            raise InputError(said, field="oracle")
        if demands.requirements.own and not self.own:
            said = f"{name} does not know constraints of your own; choose milp or milp-soft"
            raise InputError(said, field="oracle")

    @abstractmethod
    def answer(self, geometry: Geometry, eta: float, timer: Timer) -> Answer:
        """The answer at an η that is feasible; the timer has the budget."""
