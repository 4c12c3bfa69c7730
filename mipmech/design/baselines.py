"""Simpler methods against the certified optimum, and what theory promises them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, get_args

from mipmech.budget import Budget
from mipmech.design.algorithm1 import Skipping, Thresholds, solve
from mipmech.design.certificate import Certificate
from mipmech.errors import InputError
from mipmech.model.costs.pricing import Norm
from mipmech.model.instance import Instance
from mipmech.model.requirements import Demands
from mipmech.model.requirements.feasible import best_feasible
from mipmech.oracles.registry import REGISTRY, oracle_named
from mipmech.rationals import round_down
from mipmech.theory.lemma4 import quarter_factor
from mipmech.theory.projection import projection_rule

# Theorem 2 and Algorithm 1 are about all rules.
NO_PROMISE = "nothing is promised with requirements"
WORDS = {"two": "two thresholds", "best": "best threshold"}


@dataclass(frozen=True)
class Rival:
    """A simpler method, and how near its rule comes to the best.

    gain : exact; None if its rule cannot meet what is demanded of rules
    share : at least this share of the best gain of any rule, by the certificate
    promised : the share that theory promises before the sample is looked at
    why : where that promise comes from
    """

    name: str
    gain: Fraction | None
    share: float | None
    promised: float
    why: str
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The figures."""
        return {**asdict(self), "gain": None if self.gain is None else round_down(self.gain)}


def rivals(certificate: Certificate, names: Sequence[str], budget: Budget) -> list[Rival]:
    """The rule along P w_f ("projection"), and Algorithm 1 with each of these oracles.

    ε is a twentieth of the ceiling. Algorithm 1 takes the better of the paper's two thresholds for
    each answer; once more, it takes the best of all thresholds.
    """
    check_names(names)
    timer = budget.start()
    found = []
    for name in names:
        one = name.endswith("-soft") or name == "projection"
        ways: tuple[Thresholds, ...] = ("best",) if one else get_args(Thresholds)
        for thresholds in ways:
            begun = timer.seconds
            gain, promised, why = _run(certificate, name, thresholds, budget.rest(timer))
            share = _share(gain, certificate.upper)
            title = name if one else f"{name}, {WORDS[thresholds]}"
            found.append(Rival(title, gain, share, promised, why, timer.seconds - begun))
    return found


def _share(gain: Fraction | None, upper: float) -> float | None:
    """Which part of the best gain a gain is; None for one that is no part of it."""
    if gain is None or gain < 0:
        return None
    return round_down(gain / Fraction(upper)) if upper else 1.0


def check_names(names: Sequence[str]) -> None:
    """Refuse unknown oracles, before hours are spent."""
    for name in names:
        if name not in REGISTRY:
            known = ", ".join(REGISTRY)
            raise InputError(f"there is no oracle {name!r}; there are: {known}", field="against")


def check_costs(names: Sequence[str], instance: Instance) -> None:
    """Refuse oracles that do not know these costs, before hours are spent."""
    norm = instance.costs.norm
    known = [name for name in REGISTRY if _fits(name, norm)]
    for name in names:
        if not _fits(name, norm):
            said = f"{name} is for Euclidean costs (l2), and these are {norm}; there are"
            raise InputError(f"{said}: {', '.join(known)}", field="against")


def _fits(name: str, norm: Norm) -> bool:
    """Whether a rule of this name can be made: Theorem 2's for every cost."""
    return norm == "l2" or name == "projection" or getattr(oracle_named(name), "facets", True)


def _run(
    certificate: Certificate, name: str, thresholds: Thresholds, budget: Budget
) -> tuple[Fraction | None, float, str]:
    instance, demands = certificate.instance, certificate.demands
    if name == "projection":
        return _projected(instance, demands)
    asked = oracle_named(name)
    skip: Skipping = "cells" if instance.costs.norm == "l2" else "no"
    required: dict[str, Any] = {} if demands is None else {"require": demands.requirements}
    found = solve(
        instance, oracle=asked, thresholds=thresholds, skip=skip, budget=budget, **required
    )
    if demands is not None:
        gain = None if found.recount is None else found.gain
        return gain, 0.0, NO_PROMISE
    promised = 1.0 if asked.soft else float(quarter_factor(instance))
    what = "the optimum" if asked.soft else "Algorithm 1"
    facets = found.grid_name == "facets"
    where = (
        ", facet by facet" if facets else f"{',' * (not asked.soft)} up to ε = {found.epsilon:.3g}"
    )
    return found.gain, promised, what + where


def _projected(instance: Instance, demands: Demands | None) -> tuple[Fraction | None, float, str]:
    """Theorem 2's rule; with requirements, the best threshold of its direction that meets them."""
    rule = projection_rule(instance)
    if rule is None:
        return Fraction(0), 1.0, "nothing is seen"
    if demands is None:
        return rule.gain, rule.promised, "Theorem 2, 1/(4rc + 2) for equal costs"
    found = best_feasible(demands, rule.recount.mechanism)
    return None if found is None else found.gain, 0.0, NO_PROMISE
