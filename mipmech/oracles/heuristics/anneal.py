"""The oracle `anneal`: SciPy's global optimisers on the sphere, any of them by name.

The sphere of v is laid out in d − 1 angles: v₁ = cos φ₁, v₂ = sin φ₁ cos φ₂, … The optimisers see
the density of the densest threshold, which is constant almost everywhere; to give them a slope,
a little of the density of a margin half as wide again is added, less than one agent in all.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.random import Generator

from mipmech.errors import InputError
from mipmech.oracles.heuristics.explore import Explorer, Heuristic
from mipmech.oracles.shared.cones import stab
from mipmech.validation import Floats, at_least

Method = Literal["dual_annealing", "differential_evolution", "basinhopping", "shgo", "direct"]

# How much wider the second margin is, and how much it counts (times the lightest agent).
WIDER, LITTLE = 1.5, 0.5


class _Over(Exception):
    """The time is over: the one way to stop every optimiser."""


@dataclass(frozen=True)
class Anneal(Heuristic):
    """A global optimiser of SciPy; a round is one run of it.

    method : which one
    evaluations : of a run, at most (for optimisers that count them)
    """

    rounds: int | None = 1
    method: Method = "dual_annealing"
    evaluations: int = 4000

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method not in get_args(Method):
            known = ", ".join(get_args(Method))
            raise InputError(f"is {self.method!r}; give one of {known}", field="method")
        at_least(1, evaluations=self.evaluations)

    def round(self, explorer: Explorer, random: Generator, number: int) -> bool:
        """One run, with a seed drawn for it."""
        angles = explorer.part.dimension - 1
        bounds = [(0.0, math.pi)] * (angles - 1) + [(-math.pi, math.pi)]
        goal = _objective(explorer, self.evaluations)
        try:
            with warnings.catch_warnings():  # they warn that the objective is flat, which it is
                warnings.simplefilter("ignore")
                self._run(goal, bounds, random)
        except _Over:
            pass
        # The deterministic ones would do the same again.
        return self.method in ("shgo", "direct") and number == 0

    def _run(self, goal: Callable[[Floats], float], bounds: Any, random: Generator) -> None:
        from scipy import optimize  # noqa: PLC0415  (slow to import)

        seed = int(random.integers(2**31))
        most = self.evaluations
        local: Any = {"method": "Nelder-Mead", "options": {"maxfev": 100}}
        if self.method == "dual_annealing":
            # Its local search wants gradients, which there are none of.
            optimize.dual_annealing(
                goal, bounds, rng=seed, maxfun=most, maxiter=most, no_local_search=True
            )
        elif self.method == "differential_evolution":
            each = 15 * len(bounds)
            optimize.differential_evolution(
                goal, bounds, rng=seed, maxiter=max(1, most // each), tol=0.0, polish=False
            )
        elif self.method == "basinhopping":
            start = np.array([random.uniform(low, high) for low, high in bounds])
            optimize.basinhopping(
                goal, start, niter=max(1, most // 100), rng=seed, minimizer_kwargs=local
            )
        elif self.method == "shgo":
            optimize.shgo(
                goal, bounds, n=64, sampling_method="sobol", minimizer_kwargs=local,
                options={"maxfev": most},
            )  # fmt: skip
        else:
            optimize.direct(goal, bounds, maxfun=most, maxiter=most, locally_biased=False)


def _objective(explorer: Explorer, most: int) -> Callable[[Floats], float]:
    part, goal = explorer.part, explorer.goal
    whole, reach = goal.mass.whole, goal.reach
    little = LITTLE * float(whole.min()) / goal.most
    asked = 0

    def value(angles: Floats) -> float:
        nonlocal asked
        if explorer.over or asked >= most:
            raise _Over
        asked += 1
        v = on_sphere(angles)[None, :]
        scores = part.scores(v)
        wide = float(stab(scores, scores + WIDER * reach, whole)[0])
        return -float(explorer.consider(v, ranked=True)[0]) - little * wide

    return value


def on_sphere(angles: Floats) -> Floats:
    """The unit vector with these angles.

    >>> on_sphere(np.array([0.0, 0.0])).tolist()
    [1.0, 0.0, 0.0]
    """
    sines = np.concatenate([[1.0], np.cumprod(np.sin(angles))])
    return np.asarray(sines * np.concatenate([np.cos(angles), [1.0]]))
