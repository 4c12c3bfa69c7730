"""Oracles that are not the package's, as somebody might bring them along."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mipmech import Answer, Budget, Oracle, recount
from mipmech.budget import Stop
from mipmech.model import densest_threshold, from_reduced
from mipmech.oracles.base import answer_infeasible, grade, infeasible


@dataclass(frozen=True)
class Draws(Oracle):
    """A poor heuristic: a few random directions at η, the densest threshold of each."""

    number: int = 20
    seed: int = 0
    randomised: ClassVar[bool] = True

    def __call__(self, geometry, eta, budget: Budget) -> Answer:
        timer = budget.start()
        if infeasible(geometry, eta):
            return answer_infeasible(self, eta, timer)
        rng = np.random.default_rng(self.seed)
        size, best = geometry.p_norm, None
        along = geometry.p / size if size else np.eye(geometry.rank)[0]
        cosine = min(1.0, eta / size) if size else 0.0
        for number in range(self.number):
            across = rng.standard_normal(geometry.rank)
            across -= (across @ along) * along
            across /= np.linalg.norm(across) or 1.0
            u = cosine * along + np.sqrt(1 - cosine**2) * across
            found = densest_threshold(geometry.instance, from_reduced(geometry, u, 0.0)).recount
            if best is None or found.density > best.density:
                best = found
                timer.tell(found.density, None, number)
        return grade(self, geometry, eta, best.mechanism, stop=Stop.FINISHED, timer=timer)


@dataclass(frozen=True)
class Silent(Oracle):
    """Has no answer, and says so."""

    def __call__(self, geometry, eta, budget: Budget) -> Answer:
        return grade(self, geometry, eta, None, stop=Stop.NO_ANSWER, timer=budget.start())


@dataclass(frozen=True)
class NoRounds(Draws):
    """Draws, but has no rounds that could go on to the end of the time."""


@dataclass(frozen=True)
class Boaster(Oracle):
    """Makes its answers itself: with a wrong bound, a wrong density, or a false word."""

    how: str

    def __call__(self, geometry, eta, budget: Budget) -> Answer:
        answer = Draws(3)(geometry, eta, budget)
        budget.start().tell(99.0, None, 1)
        if self.how == "a low bound":
            return replace(answer, upper=answer.lower, level="attested")
        if self.how == "infeasible":
            return replace(answer, stop=Stop.INFEASIBLE, recount=None)
        if self.how == "another rule":
            turned = from_reduced(geometry, -geometry.p / geometry.p_norm, 0.0)
            return replace(answer, recount=recount(geometry.instance, turned))
        return answer
