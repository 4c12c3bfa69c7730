"""The best mechanism that a search has found so far: proposed in floats, kept by recount alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mipmech.budget import Timer
from mipmech.model.grading import Recount
from mipmech.model.mechanism import Mechanism, from_reduced
from mipmech.oracles.shared.facets import Part
from mipmech.oracles.shared.goals import Goal
from mipmech.oracles.shared.recovery import augment
from mipmech.validation import Floats

# Directions recounted per batch at most: recounts are exact, and slower than estimates.
GRADED = 3
# Rounds of linear programs that improve a direction.
AUGMENTING = 5


@dataclass(eq=False)
class Incumbent:
    """Keeps the best of the directions that it is offered.

    best : its value, in the goal's units; only recounts change it
    """

    part: Part
    goal: Goal
    timer: Timer
    best: float = 0.0
    found: Recount | None = None

    @property
    def mechanism(self) -> Mechanism | None:
        """The best mechanism found."""
        return None if self.found is None else self.found.mechanism

    def offer(self, v: Floats) -> bool:
        """Recount a direction; whether it is better than all before."""
        part, geometry = self.part, self.part.geometry
        recount = self.goal.grade(from_reduced(geometry, part.direction(v), 0.0))
        value = self.goal.value(recount)
        if self.found is not None and value <= self.best:
            return False
        width = geometry.band * geometry.p_norm
        if part.eta is not None and not recount.eta_within(part.eta, width):
            return False
        self.found = recount
        self.best = max(self.best, value)
        return True

    def offer_best(self, v: Floats, estimates: Floats) -> None:
        """Recount the most promising of these directions."""
        for place in np.argsort(-estimates, kind="stable")[:GRADED]:
            if self.found is None or estimates[place] > self.best:
                self.offer(v[place])

    def augment(self, start: Floats) -> None:
        """Draw more agents into the margin of a direction, by linear programs."""
        here, step = start, 0.3
        for _ in range(AUGMENTING):
            b = self.goal.threshold(self.part.scores(here[None, :])[0])
            moved = augment(self.part, here, b, step, self.timer.left)
            if moved is None or self.timer.left == 0:
                break
            now, then = self.goal.estimates(np.vstack([moved, here]))
            if now > self.best:
                self.offer(moved)
            if now <= then:
                step /= 2
            if now >= then:
                here = moved
