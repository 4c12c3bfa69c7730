"""What heuristic oracles have in common: a seed, rounds of work, and a truthful record.

A heuristic looks for v on the unit sphere of R^d that η leaves (`slices`), or on the facets with
this rate (`facets`), and takes the densest threshold for it. It proposes directions in lots;
counting in floats ranks them; the recount keeps the best. It promises no upper bound. On spheres of
at most two points it tries them all.

Stopped by its own rule (``rounds``), it gives the same answer every time (on one kind of processor:
linear algebra differs in its last bits, and later draws depend on them); stopped by the
clock, it gives the best so far. With ``rounds=None`` it runs until the clock stops it, as a
comparison at equal time requires.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from mipmech.budget import Stop, Timer
from mipmech.errors import InputError
from mipmech.model.geometry import Geometry
from mipmech.oracles.base import Answer, FeasibleOracle, grade
from mipmech.oracles.shared.facets import Part, parts_at
from mipmech.oracles.shared.goals import Density
from mipmech.oracles.shared.incumbent import Incumbent
from mipmech.oracles.shared.recovery import clear
from mipmech.oracles.shared.slices import Slice
from mipmech.validation import Floats, Numbers, at_least

# Scores computed for one lot of directions: they stay in the processor's cache.
SCORES = 100_000
SMALLEST_LOT, LARGEST_LOT = 16, 512
# Heuristics draw from a stream of their own: with the bare seed, a planted direction of a family
# that was made with the same one would be among the first that are drawn.
STREAM = 1
# At η = ±‖p‖ all v give one direction; nearer to it than this, floats do not tell them apart.
ONE_DIRECTION = 1e-8


class Explorer(Incumbent):
    """A question at η as a heuristic sees it; values are whole weights (`masses.Masses`).

    tried : the directions counted so far
    lot : the best number of directions to try at once
    """

    goal: Density

    def __init__(self, part: Part, timer: Timer) -> None:
        super().__init__(part, Density.on(part), timer)
        self.tried = 0
        self.most = math.inf if timer.budget.nodes is None else timer.budget.nodes
        self.lot = min(max(SCORES // len(part.reach), SMALLEST_LOT), LARGEST_LOT)

    @property
    def over(self) -> bool:
        """Whether the time or the number of directions allowed is used up."""
        return self.timer.left == 0 or self.tried >= self.most

    def offer(self, v: Floats) -> bool:
        """Recount a direction, and report it if it is better than all before."""
        better = super().offer(v)
        if better:
            self.timer.tell(self.goal.exactly(self.best), None, self.tried)
        return better

    def consider(self, v: Floats, ranked: bool = False) -> Floats:
        """Count (n, d) directions, recount the most promising, and return the counts.

        ranked : counts below the best so far are wanted too; else they are not told apart, which
            is several times faster
        """
        self.tried += len(v)
        if self.goal.limits is not None:
            v = self.goal.limits.allowed(v)
        counts = self.goal.estimates(v, 0.0 if ranked else max(0.0, self.best))
        self.offer_best(v, counts)
        top = counts.argmax()
        if counts[top] > self.best:  # rounding pushed an agent out; make room
            covered = self.covered(v[top])
            self.offer(clear(self.part, v[top], covered, seconds=self.timer.left))
        return counts

    def covered(self, v: Floats, room: float = 0.0) -> Numbers:
        """The agents in the densest margin of a direction; ``room`` widens it, in reaches."""
        scores = self.part.scores(v[None, :])[0]
        distance = self.goal.threshold(scores) - scores
        reach = self.goal.reach
        slack = self.part.slack + room * reach
        return np.flatnonzero((distance >= -slack) & (distance <= reach + slack))

    def directions(self, random: Generator, count: int) -> Floats:
        """Random directions: (count, d) array."""
        return self.part.draw(random, count)

    @property
    def slice(self) -> Slice:
        """The part, for heuristics that know Euclidean costs only."""
        assert isinstance(self.part, Slice)
        return self.part

    @property
    def all_directions(self) -> Floats | None:
        """All directions, if they are one or two, or too near to each other for floats."""
        part = self.part
        if part.points is None and isinstance(part, Slice):
            alike = math.sin(part.angle) < ONE_DIRECTION
            return np.eye(part.dimension)[:1] if alike else None
        return part.points


@dataclass(frozen=True)
class Heuristic(FeasibleOracle):
    """A heuristic oracle: rounds of work until its own rule stops it.

    seed : the same seed, the same answer
    rounds : rounds of work at most; None goes on until the time is over
    """

    seed: int = 0
    rounds: int | None = 20
    randomised: ClassVar[bool] = True

    def __post_init__(self) -> None:
        at_least(0, seed=self.seed)
        if self.rounds is not None and self.rounds < 1:
            raise InputError(f"is {self.rounds}; give 1 or more, or None", field="rounds")

    @abstractmethod
    def round(self, explorer: Explorer, random: Generator, number: int) -> bool:
        """One round of work, the first has number 0; returns whether further ones seem useless."""

    def answer(self, geometry: Geometry, eta: float, timer: Timer) -> Answer:
        budget = timer.budget
        if self.rounds is None and math.isinf(budget.seconds) and budget.nodes is None:
            raise InputError("is None, so the search never ends; limit the seconds", field="rounds")
        stop, tried = Stop.FINISHED, 0
        best: Explorer | None = None
        for part in parts_at(geometry, eta):
            explorer = Explorer(part, timer)
            explorer.most -= tried
            stop = self._search(explorer)
            tried += explorer.tried
            if best is None or explorer.best > best.best:
                best = explorer
        mechanism = None if best is None else best.mechanism
        work = {"directions": tried}
        return grade(self, geometry, eta, mechanism, stop=stop, timer=timer, work=work)

    def _search(self, explorer: Explorer) -> Stop:
        timer, everything = explorer.timer, explorer.all_directions
        if everything is not None:
            for v in everything:
                explorer.offer(v)
                explorer.tried += 1
            return Stop.FINISHED
        random = np.random.default_rng([self.seed, STREAM])
        explorer.consider(explorer.directions(random, 1))  # so that no time still gives an answer
        for number in count() if self.rounds is None else range(self.rounds):
            if explorer.over:
                break
            useless = self.round(explorer, random, number)
            if useless and self.rounds is not None:
                break
        if timer.interrupted:
            return Stop.INTERRUPTED
        if timer.left == 0:
            return Stop.TIME
        return Stop.NODES if explorer.tried >= explorer.most else Stop.FINISHED
