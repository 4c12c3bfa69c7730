"""The oracle contract: what a density oracle is given, what it owes, and who grades it.

An oracle is asked for a mechanism of greatest density among those with u·p = η:

    oracle(geometry, eta, budget) -> Answer

It is a small frozen dataclass whose repr is its record. It proposes; `grade` recounts the proposal
in rationals, tests the η band in rationals, and makes the `Answer`. A heuristic is an oracle that
promises no upper bound (``at_most`` is None).

u·p = η has in general no solution in floats, so an answer at η is an answer for the band
|u·p/‖u‖ − η| ≤ band·‖p‖ (`Geometry.band`, 1e-12), and an upper bound holds on the whole band.

>>> from mipmech import make_instance
>>> sample = make_instance("gaussian-mixture", agents=60, rank=2, seed=1)
>>> answer = oracle(sample, eta_fraction=1.0, oracle="projection")
>>> answer.status, answer.density == answer.at_most
('optimal', True)
"""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from typing import Any, Literal, Protocol, cast

from mipmech.errors import InputError
from mipmech.exact import round_down, round_up
from mipmech.geometry import Geometry, reduce
from mipmech.instance import Instance
from mipmech.mechanism import Mechanism
from mipmech.truth import Recount, recount

Level = Literal["proved", "attested"]


class Stop(Enum):
    """Why an oracle stopped; what it has is another matter and stands in the answer."""

    CLOSED = "the bounds meet"
    FINISHED = "did all it set out to do"
    INFEASIBLE = "no direction has this η"
    NO_ANSWER = "this oracle knows no direction with this η"
    TIME = "time limit"
    FAILED = "the solver failed"
    NODES = "node limit"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Event:
    """A moment of progress: the best density found, the bound (if any), and the work so far."""

    seconds: float
    lower: float
    upper: float | None
    work: int


@dataclass(frozen=True)
class Budget:
    """How much an oracle may spend; ``watch`` receives its events."""

    seconds: float = math.inf
    threads: int = 1
    nodes: int | None = None
    watch: Callable[[Event], None] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.seconds >= 0:
            raise InputError(f"is {self.seconds}; give 0 or more", field="seconds")
        if self.threads < 1:
            raise InputError(f"is {self.threads}; give 1 or more", field="threads")
        if self.nodes is not None and self.nodes < 0:
            raise InputError(f"is {self.nodes}; give 0 or more", field="nodes")

    def start(self) -> Timer:
        """Start the clock."""
        return Timer(self)

    def rest(self, timer: Timer) -> Budget:
        """What is left of it, for a part of the work."""
        return replace(self, seconds=timer.left)


class Timer:
    """The clock of one call."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return time.monotonic() - self.began

    @property
    def left(self) -> float:
        """Time until the limit, never negative."""
        return max(0.0, self.budget.seconds - self.seconds)

    def tell(self, lower: Fraction | float, upper: Fraction | float | None, work: int) -> None:
        """Report progress to whoever watches."""
        if self.budget.watch is not None:
            above = None if upper is None else round_up(Fraction(upper))
            self.budget.watch(Event(self.seconds, round_down(Fraction(lower)), above, work))


@dataclass(frozen=True, repr=False)
class Answer:
    """What an oracle found at η, graded.

    recount : the exact outcome of the mechanism found; None if there is none
    at_most : no mechanism in the band has a greater density; None if the oracle promises nothing
    level : on whose word ``at_most`` stands; None without one
    oracle : the record of the oracle that answered
    """

    eta: float
    recount: Recount | None
    at_most: Fraction | None
    level: Level | None
    stop: Stop
    seconds: float
    oracle: str

    def __repr__(self) -> str:
        upper = "none" if self.at_most is None else f"{float(self.at_most):.6g}"
        return (
            f"Answer({self.status} at η = {self.eta:.6g}: density {float(self.density):.6g},"
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
    def gap(self) -> float:
        """(upper − lower)/upper, rounded up; 0 if upper is 0, 1 without a bound."""
        if self.at_most is None:
            return 1.0
        return round_up(1 - self.density / self.at_most) if self.at_most else 0.0

    @property
    def status(self) -> Literal["optimal", "gap", "feasible", "infeasible"]:
        """What the answer amounts to; "gap" also if nothing was found and nothing proved."""
        if self.stop is Stop.INFEASIBLE:
            return "infeasible"
        if self.at_most is None:
            return "gap" if self.recount is None else "feasible"
        return "optimal" if self.density == self.at_most else "gap"

    def to_dict(self) -> dict[str, Any]:
        """The object printed under ``--json``; bounds are rounded outward."""
        found = self.recount
        upper = None if self.at_most is None else round_up(self.at_most)
        return {
            "status": self.status,
            "density": {"lower": round_down(self.density), "upper": upper},
            "level": self.level,
            "covered": [] if found is None else found.covered.tolist(),
            "mechanism": None if found is None else found.mechanism.to_dict(),
            "eta": self.eta,
            "eta_achieved": None if found is None else found.eta,
            "gap": self.gap,
            "stop": self.stop.value,
            "oracle": self.oracle,
            "seconds": self.seconds,
        }


class Oracle(Protocol):
    """Anything that can be asked for a dense mechanism at η."""

    def __call__(self, geometry: Geometry, eta: float, budget: Budget) -> Answer:
        """The best mechanism found with u·p = η."""


class OracleFault(RuntimeError):
    """An oracle broke its promise: a bug in it, never a property of the instance."""


def infeasible(geometry: Geometry, eta: float) -> bool:
    """Whether no direction at all has this η (up to the band), decided in rationals."""
    if not math.isfinite(eta):
        raise InputError(f"is {eta}; give a finite number", field="eta")
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
    at_most: Fraction | None = None,
    level: Level | None = None,
) -> Answer:
    """Recount a proposal and make it an answer; an oracle that broke its promise is told so."""
    record = repr(oracle)
    if mechanism is None:
        return Answer(eta, None, at_most, level, stop, timer.seconds, record)
    found = recount(geometry.instance, mechanism)
    if not found.eta_within(eta, geometry.band * geometry.p_norm):
        raise OracleFault(f"asked for η = {eta!r}, got a mechanism with η = {found.eta!r}")
    if at_most is not None and found.density > at_most:
        raise OracleFault(
            f"found density {float(found.density)!r} above its own bound {float(at_most)!r}"
        )
    if found.density == at_most:
        stop = Stop.CLOSED
    return Answer(eta, found, at_most, level, stop, timer.seconds, record)


def answer_infeasible(oracle: Oracle, eta: float, timer: Timer) -> Answer:
    """The answer where no direction has this η."""
    return Answer(eta, None, Fraction(0), "proved", Stop.INFEASIBLE, timer.seconds, repr(oracle))


def oracle(
    sample: Instance | Geometry,
    eta: float | None = None,
    *,
    eta_fraction: float | None = None,
    oracle: str | Oracle = "projection",
    budget: Budget | None = None,
) -> Answer:
    """Ask an oracle, by name or itself, once: at η, or at a fraction of ‖P w_f‖."""
    geometry = sample if isinstance(sample, Geometry) else reduce(sample)
    if (eta is None) == (eta_fraction is None):
        raise InputError("give either eta or eta_fraction", field="eta")
    if eta is None:
        eta = float(eta_fraction or 0.0) * geometry.p_norm
    asked = oracle_named(oracle) if isinstance(oracle, str) else oracle
    return asked(geometry, eta, budget or Budget())


# Name -> module and class; imported when first asked for, since some of them are heavy.
REGISTRY: dict[str, str] = {
    "projection": "mipmech.oracles.projection:Projection",
}


def oracle_named(name: str, **options: Any) -> Oracle:
    """The oracle of this name.

    >>> oracle_named("projection")
    Projection()
    """
    if name not in REGISTRY:
        known = ", ".join(sorted(REGISTRY))
        raise InputError(f"there is no oracle {name!r}; there are: {known}", field="oracle")
    module, _, attribute = REGISTRY[name].partition(":")
    make = getattr(importlib.import_module(module), attribute)
    try:
        return cast(Oracle, make(**options))
    except TypeError as error:
        raise InputError(f"{name} does not take these options: {error}", field="oracle") from None
