"""The work of a job: one call of an oracle, Algorithm 1, a certificate, or a part of a comparison.

`perform` runs inside a worker, which needs no files: the instance comes with the call, and all
results, a certificate included, are returned.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mipmech.budget import Budget, Trace
from mipmech.design import algorithm1
from mipmech.design.certificate import Certificate, certify
from mipmech.model.geometry import Geometry
from mipmech.model.grading import Recount
from mipmech.model.instance import Instance
from mipmech.oracles.base import Oracle
from mipmech.oracles.call import eta_of
from mipmech.oracles.registry import oracle_named
from mipmech.rationals import round_down
from mipmech.studies.batch.asking import (
    certify_reference,
    made_by,
    reduced,
    run_oracle,
    steps_of,
    warm,
)
from mipmech.studies.batch.records import CERTIFICATES, Bounds, Options, Step, instance_file
from mipmech.studies.batch.requiring import OPTION, RequirementsMissed, check_met


@dataclass(frozen=True)
class JobResult:
    """The result of a job.

    result : the object that the command of the same name prints under ``--json``
    events : the bounds over time
    certificate : the text of a certificate file, if there is one
    made_by : versions and machine
    """

    result: dict[str, Any] | None = None
    bounds: Bounds | None = None
    events: tuple[Step, ...] = ()
    certificate: bytes | None = None
    made_by: dict[str, Any] | None = None


def perform(
    sample: Instance, task: str, options: Options, seconds: float, carried: Oracle | None = None
) -> JobResult:
    """Do a job; called in a worker.

    carried : the oracle itself, if workers cannot make it from its name and options
    """
    if carried is None and "oracle" in options:
        carried = oracle_named(options["oracle"], **options["options"])
    found = KINDS[task].perform(sample, options, seconds, carried)
    return replace(found, made_by=made_by())


def prepare(task: str, options: Options, carried: Oracle | None = None) -> None:
    """Load programs and compile loops, before the clock of a job starts."""
    for name in KINDS[task].warmed(options):
        warm(name if carried is None or name != options.get("oracle") else carried)


# ------------------------------------------------------------------ one kind each


def _oracle(sample: Instance, options: Options, seconds: float, asked: Oracle | None) -> JobResult:
    assert asked is not None
    geometry, trace = reduced(sample, options.get(OPTION)), Trace()
    eta = eta_of(geometry, options["eta"], options["eta_fraction"])
    answer = asked(geometry, eta, Budget(seconds, watch=trace))
    check_met(geometry, answer.recount, options["oracle"])
    result = {**answer.to_dict(), **_required(geometry, answer.recount)}
    what = "soft density" if answer.soft else "density"
    values = result["soft_density" if answer.soft else "density"]
    bounds = Bounds(what, answer.status, values["lower"], values["upper"], answer.level)
    return JobResult(result, bounds, steps_of(trace))


def _solve(sample: Instance, options: Options, seconds: float, asked: Oracle | None) -> JobResult:
    assert asked is not None
    epsilon, trace = options["epsilon"], Trace()
    if epsilon is None:
        epsilon = algorithm1.default_epsilon(sample, options["epsilon_share"])
    geometry = reduced(sample, options.get(OPTION))
    found = algorithm1.solve(
        geometry,
        epsilon=epsilon,
        oracle=asked,
        grid=options["grid"],
        sigma=options["sigma"],
        radius=options["radius"],
        thresholds=options["thresholds"],
        skip=options["skip"],
        budget=Budget(seconds, watch=trace),
    )
    check_met(geometry, found.recount, f"Algorithm 1 with {options['oracle']}")
    everywhere = found.bound.scope == "all"
    none = geometry.demands is not None and found.recount is None
    lower = None if none else round_down(found.gain)
    bounds = Bounds("gain", "gap" if lower is None else "feasible", lower, None, None)
    if everywhere:
        bounds = Bounds("gain", "gap", lower, found.upper, "attested")
    result = {**found.to_dict(), **_required(geometry, found.recount)}
    return JobResult(result, bounds, steps_of(trace))


def _required(geometry: Geometry, found: Recount | None) -> dict[str, Any]:
    """What is demanded of the rule of a result, and the figures that it speaks of."""
    return {} if geometry.demands is None else geometry.demands.facts(found)


def _certify(sample: Instance, options: Options, seconds: float, _: Oracle | None) -> JobResult:
    trace, geometry = Trace(), reduced(sample, options.get(OPTION))
    found = certify(
        geometry,
        gap=options["gap"],
        engine=options["engine"],
        budget=Budget(seconds, watch=trace),
    )
    if geometry.demands is not None and found.demands is None:
        # A bound on rules of which nothing is demanded, and a rule that may not be allowed.
        said = f"the engine {found.engine} does not know requirements; give cells or auto"
        raise RequirementsMissed(said)
    result = found.to_dict()
    gain = result["gain"] or {"lower": None, "upper": None}
    bounds = Bounds("gain", found.status, gain["lower"], gain["upper"], found.level)
    # That there is no rule is certified by a proof, not by a solver's word.
    certified = not found.infeasible or found.level == "proved"
    kept = _certificate_file(found) if options["keep"] and certified else None
    return JobResult(result, bounds, steps_of(trace), kept)


def _certificate_file(found: Certificate) -> bytes:
    """The certificate file as stored in the run's folder, beside the folder of instances."""
    # A worker does not know that folder: only the relative place of the two files matters.
    root = Path("/folder")
    named = replace(found.instance, path=root / instance_file(found.instance.digest))
    content = replace(found, instance=named).content(root / CERTIFICATES)
    return json.dumps(content, indent=1, ensure_ascii=False).encode()


def _reference(sample: Instance, options: Options, seconds: float, _: Oracle | None) -> JobResult:
    fraction = options["eta_fraction"]
    found = certify_reference(sample, fraction, seconds, options.get(OPTION))
    what, status = "gain" if fraction is None else "density", "optimal" if found.closed else "gap"
    status = "infeasible" if found.infeasible else status
    return JobResult(asdict(found), Bounds(what, status, found.lower, found.upper, found.level))


def _ask(sample: Instance, options: Options, seconds: float, asked: Oracle | None) -> JobResult:
    assert asked is not None
    fractions = options["eta_fractions"]
    run = run_oracle(
        sample, options["oracle"], options["seed"], asked, fractions, seconds, options.get(OPTION)
    )
    status = "gap" if run.gain is None else "feasible"
    return JobResult(asdict(run), Bounds("gain", status, run.gain, None, None))


@dataclass(frozen=True)
class TaskKind:
    """A kind of job: what it does, and what it needs loaded."""

    perform: Callable[[Instance, Options, float, Oracle | None], JobResult]
    warmed: Callable[[Options], list[str]]


def _engine(options: Options) -> list[str]:
    return ["milp" if options["engine"] == "milp" else "cells"]


def _solving(options: Options) -> list[str]:
    skip = options["skip"]
    return [options["oracle"], *({"no": [], "cells": ["cells"]}.get(skip, ["milp"]))]


KINDS: dict[str, TaskKind] = {
    "oracle": TaskKind(_oracle, lambda options: [options["oracle"]]),
    "solve": TaskKind(_solve, _solving),
    "certify": TaskKind(_certify, _engine),
    "reference": TaskKind(_reference, lambda _: ["cells"]),
    "ask": TaskKind(_ask, lambda options: [options["oracle"]]),
}
