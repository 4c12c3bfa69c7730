"""What a rule gains from people that it was not designed for: K folds, graded exactly.

The best rule on a sample is chosen on that sample, so what it gains there is more than what it
gains from others like them. For each of K folds a rule is designed on everybody else, and what it
gains on the fold is recounted in rationals. The mean over the folds, each with its weight, stands
beside the gain of the rule designed on all.

>>> from mipmech import make_instance
>>> from mipmech.design.certificate import certify
>>> sample = make_instance("gaussian-mixture", agents=40, rank=2, seed=1)
>>> found = held_out(sample, lambda part, budget: certify(part, budget=budget), folds=4)
>>> len(found.folds), found.gain < certify(sample).lower
(4, True)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from mipmech.budget import Budget, Stop, noting
from mipmech.errors import InputError
from mipmech.model.geometry import Geometry, geometry_of
from mipmech.model.grading import recount
from mipmech.model.instance import Instance
from mipmech.model.mechanism import Mechanism
from mipmech.rationals import exact_sum
from mipmech.validation import Floats, Numbers, at_least

FOLDS = 5


class Designed(Protocol):
    """What a designer gives: a `Certificate`, a `Solution`, or anything that has as much."""

    @property
    def mechanism(self) -> Mechanism | None:
        """The rule; None if there is none that gains."""

    @property
    def stop(self) -> Stop:
        """Why the design stopped."""

    @property
    def status(self) -> str:
        """Whether it was completed; "gap" if it was not."""


Designer = Callable[[Instance, Budget], Designed]


@dataclass(frozen=True, eq=False)
class Fold:
    """Some of the agents, and the rule that was designed on all others.

    agents : their numbers in the sample
    weight : their share of the sample
    gain : what the rule gains on them, exactly
    designed : what it gains on those that it was designed on, exactly
    closed : whether its design was completed
    """

    agents: Numbers
    weight: Fraction
    gain: Fraction
    designed: Fraction
    mechanism: Mechanism | None
    closed: bool

    def to_dict(self) -> dict[str, Any]:
        """The figures as floats."""
        return {
            "agents": self.agents.tolist(),
            "weight": float(self.weight),
            "gain": float(self.gain),
            "designed": float(self.designed),
            "mechanism": None if self.mechanism is None else self.mechanism.to_dict(),
            "closed": self.closed,
        }


@dataclass(frozen=True, eq=False, repr=False)
class FoldResults:
    """What rules gain on the folds that they were not designed on.

    folds : those that are done, in their order
    asked : how many there are
    """

    folds: tuple[Fold, ...]
    asked: int
    seed: int
    stop: Stop
    seconds: float

    def __repr__(self) -> str:
        gain = "no gain" if self.gain is None else f"gain={float(self.gain):.6g}"
        return f"FoldResults({len(self.folds)} of {self.asked} folds: {gain}; {self.stop.value})"

    @property
    def complete(self) -> bool:
        """Whether all folds are done, each with a design that was completed."""
        return len(self.folds) == self.asked and all(fold.closed for fold in self.folds)

    @property
    def gain(self) -> Fraction | None:
        """The mean of the gains on the folds, each with the fold's weight; None without any."""
        return self._mean([fold.gain for fold in self.folds])

    @property
    def designed(self) -> Fraction | None:
        """The same mean of what the rules gain on those that they were designed on."""
        return self._mean([fold.designed for fold in self.folds])

    @property
    def least(self) -> Fraction | None:
        """The smallest gain on a fold."""
        return min((fold.gain for fold in self.folds), default=None)

    @property
    def most(self) -> Fraction | None:
        """The largest gain on a fold."""
        return max((fold.gain for fold in self.folds), default=None)

    @property
    def deviation(self) -> float | None:
        """Standard deviation of the gains on the folds; None for fewer than two."""
        if self.gain is None or len(self.folds) < 2:
            return None
        squares = sum((fold.gain - self.gain) ** 2 * fold.weight for fold in self.folds)
        return math.sqrt(squares / sum(fold.weight for fold in self.folds))

    def share(self, gain: Fraction) -> float | None:
        """The mean as a share of the gain of the rule designed on all; None if that is not > 0."""
        return None if self.gain is None or gain <= 0 else float(self.gain / gain)

    def _mean(self, values: list[Fraction]) -> Fraction | None:
        total = sum((fold.weight for fold in self.folds), Fraction(0))
        if not total:
            return None
        return sum(v * f.weight for v, f in zip(values, self.folds, strict=True)) / total

    def to_dict(self, gain: Fraction) -> dict[str, Any]:
        """The object printed under ``--json``, beside the gain of the rule designed on all."""
        mean, designed, least, most = (
            None if value is None else float(value)
            for value in (self.gain, self.designed, self.least, self.most)
        )
        return {
            "gain": mean,
            "share": self.share(gain),
            "min": least,
            "max": most,
            "deviation": self.deviation,
            "designed": designed,
            "asked": self.asked,
            "seed": self.seed,
            "complete": self.complete,
            "stop": self.stop.value,
            "seconds": self.seconds,
            "each": [fold.to_dict() for fold in self.folds],
        }


def held_out(
    sample: Instance | Geometry | str | Path,
    design: Designer,
    *,
    folds: int = FOLDS,
    seed: int = 0,
    budget: Budget | None = None,
) -> FoldResults:
    """Design a rule without each fold in turn, and grade it on that fold.

    The folds share the time: each has an equal part of what is left. Ctrl-C and the limit keep the
    folds that are done.

    Parameters
    ----------
    sample : Instance, Geometry, str or Path
        The sample, or the file that holds it.
    design : callable
        Gives a result with a rule for an instance and a budget: ``certify``, ``solve`` or another.
    folds : int
        How many, from 2 to the number of agents that have a weight.
    seed : int
        The same seed, the same folds.
    budget : Budget, optional
        Limits on time and threads.
    """
    instance = geometry_of(sample).instance
    parts = split(instance.weights, folds, seed)
    timer = (budget or Budget()).start()
    total = exact_sum(instance.weights)
    done: list[Fold] = []
    stop = Stop.FINISHED
    with timer.listening():
        for place, inside in enumerate(parts):
            if timer.left == 0:
                stop = Stop.INTERRUPTED if timer.interrupted else Stop.TIME
                break
            rest = np.setdiff1d(np.arange(instance.size), inside)
            learned = instance.part(rest, f"{instance.name} without fold {place}")
            graded = instance.part(inside, f"{instance.name}, fold {place}")
            limit = replace(
                timer.budget,
                seconds=timer.left / (folds - place),
                watch=noting(timer.budget.watch, f"fold {place + 1} of {folds}"),
            )
            found = design(learned, limit)
            if found.stop in (Stop.INTERRUPTED, Stop.LOST):
                stop = found.stop
                break
            rule = found.mechanism
            gain, designed = (
                Fraction(0) if rule is None else recount(people, rule).gain
                for people in (graded, learned)
            )
            weight = exact_sum(instance.weights[inside]) / total
            done.append(Fold(inside, weight, gain, designed, rule, found.status != "gap"))
    return FoldResults(tuple(done), folds, seed, stop, timer.seconds)


def split(weights: Floats, folds: int, seed: int) -> list[Numbers]:
    """The agents of each fold, ascending; those that count are dealt out evenly.

    >>> [fold.tolist() for fold in split(np.array([1.0, 2.0, 0.0, 1.0, 1.0]), 2, seed=0)]
    [[1, 2, 3], [0, 4]]
    """
    check_folds(folds, seed)
    counts, idle = np.flatnonzero(weights > 0), np.flatnonzero(weights == 0)
    if folds > len(counts):
        counted = " with a weight above 0" * bool(len(idle))
        said = f"is {folds}, but there are only {len(counts)} agents{counted}; give fewer folds"
        raise InputError(said, field="folds")
    rng = np.random.default_rng(seed)
    order = np.concatenate([rng.permutation(counts), rng.permutation(idle)])
    return [np.sort(order[place::folds]) for place in range(folds)]


def check_folds(folds: int, seed: int) -> None:
    """Refuse what no sample can be split into, before the work."""
    at_least(2, folds=folds)
    at_least(0, fold_seed=seed)
