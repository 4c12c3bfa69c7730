"""The best mechanism that a search has found so far: proposed in floats, kept by recount alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mipmech.budget import Timer
from mipmech.model.grading import Recount
from mipmech.model.mechanism import Mechanism, from_reduced
from mipmech.model.requirements.feasible import best_between
from mipmech.oracles.shared.facets import Part
from mipmech.oracles.shared.goals import Density, Goal
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
    best: float = -math.inf  # at first, what the goal says
    found: Recount | None = None

    def __post_init__(self) -> None:
        if self.best == -math.inf:
            self.best = self.goal.nothing

    @property
    def mechanism(self) -> Mechanism | None:
        """The best mechanism found."""
        return None if self.found is None else self.found.mechanism

    def offer(self, v: Floats) -> bool:
        """Recount a direction; whether it is better than all before.

        Where directions must lie in a cone, a near one that does is taken, and one on its rim.
        """
        limits = self.goal.limits
        if limits is None or not len(limits.rows):
            return self._offer(v)
        inside = limits.allowed(v[None, :])[0]
        better = self._offer(inside)
        on_sides = limits.on_sides(inside)
        return (on_sides is not None and self._offer(on_sides)) or better

    def _offer(self, v: Floats) -> bool:
        part, geometry = self.part, self.part.geometry
        along = from_reduced(geometry, part.direction(v), 0.0)
        recount = self.goal.grade(along)
        better = recount is not None and self._keep(recount)
        demands = geometry.demands
        if demands is not None and demands.requirements.own:
            between = best_between(demands, along, isinstance(self.goal, Density))
            better = (between is not None and self._keep(between)) or better
        return better

    def _keep(self, recount: Recount) -> bool:
        part, geometry = self.part, self.part.geometry
        value = self.goal.value(recount)
        if self.found is not None and value <= self.best:
            # Of rules that do harm, the one that does least.
            less = geometry.demands is not None and value == self.best == 0
            if not (less and recount.gain > self.found.gain):
                return False
        width = geometry.band * geometry.p_norm
        if part.eta is not None and not recount.eta_within(part.eta, width):
            return False
        self.found = recount
        self.best = max(self.best, value)
        return True

    def offer_near(self, v: Floats, b: float) -> bool:
        """Recount a rule, its threshold included, and others with thresholds below it.

        For requirements with which the best threshold need not be an end: constraints that a user
        wrote.
        """
        part, geometry = self.part, self.part.geometry
        assert geometry.demands is not None
        limits = self.goal.limits
        if limits is not None:
            v = limits.allowed(v[None, :])[0]
        rule = from_reduced(geometry, part.direction(v), b)
        dense = isinstance(self.goal, Density)
        found = best_between(geometry.demands, rule, dense, near=True)
        return found is not None and self._keep(found)

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
