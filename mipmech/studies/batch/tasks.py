"""What a job does: one call of an oracle, Algorithm 1, a certificate, or a part of a comparison.

`perform` runs inside a worker, which needs no files: the instance comes with the call, and all that
it found goes back with the answer, a certificate included.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from mipmech.budget import Budget, Event
from mipmech.design import algorithm1
from mipmech.design.certificate import Certificate, certify
from mipmech.model.instance import Instance
from mipmech.oracles.ask import eta_of
from mipmech.oracles.registry import oracle_named
from mipmech.rationals import round_down
from mipmech.studies.comparison.compare import answer_all, made_by, reduced, reference, warm

# Steps of the bounds over time that are kept at most: the last ones, and every second one before.
LONGEST_TRACE = 200
# Where certificates and instances lie in a run's folder.
CERTIFICATES, INSTANCES = "certificates", "instances"

Options = dict[str, Any]
# Seconds, lower bound, upper bound if there is one, work.
Step = tuple[float, float, float | None, int]


@dataclass(frozen=True)
class Bounds:
    """What a job says of an optimum.

    what : "gain", "density" or "soft density"
    status : "optimal", "gap", "feasible" (nothing is promised) or "infeasible"
    level : on whose word the upper bound stands; None without one
    """

    what: str
    status: str
    lower: float
    upper: float | None
    level: str | None


@dataclass(frozen=True)
class Outcome:
    """What a job found.

    result : the object that the command of the same name prints under ``--json``
    events : the bounds over time
    certificate : the text of a certificate file, if it left one
    made_by : versions and machine
    """

    result: dict[str, Any]
    bounds: Bounds
    events: tuple[Step, ...] = ()
    certificate: bytes | None = None
    made_by: dict[str, Any] = field(default_factory=dict)


def perform(sample: Instance, task: str, options: Options, seconds: float) -> Outcome:
    """Do a job; called in a worker."""
    found = KINDS[task].perform(sample, options, seconds)
    return replace(found, made_by=made_by())


def prepare(task: str, options: Options) -> None:
    """Load programs and compile loops, before the clock of a job starts."""
    for name in KINDS[task].warmed(options):
        warm(name)


class _Trace:
    """Keeps the events in which something changed."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def __call__(self, event: Event) -> None:
        upper = event.upper
        if upper is not None and not math.isfinite(upper):
            upper = None  # nothing is known yet
        step = (event.seconds, event.lower, upper, event.work)
        if not self.steps or self.steps[-1][1:3] != step[1:3]:
            self.steps.append(step)
            if len(self.steps) > LONGEST_TRACE:
                half = len(self.steps) // 2
                self.steps[:half] = self.steps[:half:2]


# ------------------------------------------------------------------ one kind each


def _oracle(sample: Instance, options: Options, seconds: float) -> Outcome:
    geometry = reduced(sample)
    asked = oracle_named(options["oracle"], **options["options"])
    eta = eta_of(geometry, options["eta"], options["eta_fraction"])
    trace = _Trace()
    answer = asked(geometry, eta, Budget(seconds, watch=trace))
    result = answer.to_dict()
    what = "soft density" if answer.soft else "density"
    values = result["soft_density" if answer.soft else "density"]
    bounds = Bounds(what, answer.status, values["lower"], values["upper"], answer.level)
    return Outcome(result, bounds, tuple(trace.steps))


def _solve(sample: Instance, options: Options, seconds: float) -> Outcome:
    geometry = reduced(sample)
    epsilon = options["epsilon"]
    if epsilon is None:
        epsilon = algorithm1.default_epsilon(sample, options["epsilon_share"])
    trace = _Trace()
    found = algorithm1.solve(
        geometry,
        epsilon=epsilon,
        oracle=oracle_named(options["oracle"], **options["options"]),
        grid=options["grid"],
        sigma=options["sigma"],
        radius=options["radius"],
        thresholds=options["thresholds"],
        skip=options["skip"],
        budget=Budget(seconds, watch=trace),
    )
    everywhere = found.bound.scope == "all"
    upper = found.bound.upper if everywhere else None
    status = "gap" if everywhere else "feasible"
    lower = round_down(found.gain)
    bounds = Bounds("gain", status, lower, upper, "attested" if everywhere else None)
    return Outcome(found.to_dict(), bounds, tuple(trace.steps))


def _certify(sample: Instance, options: Options, seconds: float) -> Outcome:
    trace = _Trace()
    found = certify(
        reduced(sample),
        gap=options["gap"],
        engine=options["engine"],
        budget=Budget(seconds, watch=trace),
    )
    result = found.to_dict()
    gain = result["gain"]
    bounds = Bounds("gain", found.status, gain["lower"], gain["upper"], found.level)
    kept = _certificate_file(found) if options["keep"] else None
    return Outcome(result, bounds, tuple(trace.steps), kept)


def _certificate_file(found: Certificate) -> bytes:
    """The file as it will lie in the run's folder, beside the folder of instances."""
    # A worker knows no such folder: what counts is where the two files lie to each other.
    root = Path("/folder")
    named = replace(found.instance, path=root / instance_file(found.instance.digest))
    content = replace(found, instance=named).content(root / CERTIFICATES)
    return json.dumps(content, indent=1, ensure_ascii=False).encode()


def instance_file(digest: str) -> str:
    """Where the copy of an instance lies in a run's folder."""
    return f"{INSTANCES}/{digest[:16]}.json"


def _reference(sample: Instance, options: Options, seconds: float) -> Outcome:
    found, best = reference(sample, options["eta_fraction"], seconds)
    what = "gain" if options["eta_fraction"] is None else "density"
    status = "optimal" if found.closed else "gap"
    bounds = Bounds(what, status, found.lower, found.upper, found.level)
    return Outcome({"bounds": asdict(found), "best": best}, bounds)


def _ask(sample: Instance, options: Options, seconds: float) -> Outcome:
    fractions = options["eta_fractions"]
    asked = oracle_named(options["oracle"], **options["options"])
    run = answer_all(sample, options["oracle"], options["seed"], asked, fractions, seconds)
    return Outcome(asdict(run), Bounds("gain", "feasible", run.gain, None, None))


@dataclass(frozen=True)
class Kind:
    """A kind of job: what it does, and what it needs loaded."""

    perform: Callable[[Instance, Options, float], Outcome]
    warmed: Callable[[Options], list[str]]


def _engine(options: Options) -> list[str]:
    return ["milp" if options["engine"] == "milp" else "cells"]


def _solving(options: Options) -> list[str]:
    skip = options["skip"]
    return [options["oracle"], *({"no": [], "cells": ["cells"]}.get(skip, ["milp"]))]


KINDS: dict[str, Kind] = {
    "oracle": Kind(_oracle, lambda options: [options["oracle"]]),
    "solve": Kind(_solve, _solving),
    "certify": Kind(_certify, _engine),
    "reference": Kind(_reference, lambda _: ["cells"]),
    "ask": Kind(_ask, lambda options: [options["oracle"]]),
}
