"""The densest mechanism at a fixed η where at most a circle is left: a second opinion, by a sweep.

u = cos θ·p̂ + sin θ·H v with cos θ = η/‖p‖ and v on the unit sphere of R^(k−1), so that k = 3 leaves
a circle, and k = 2 two directions; p = 0 leaves the sphere of R^k, a circle for k = 2. `circle`
tells which agents are covered where on the circle; the running sums are of whole numbers.

Rounding, and the width of the band of η, move the levels apart, so the bound holds on the whole
band; a tie that floats cannot meet leaves a gap, which is reported.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from mipmech.budget import Stop, Timer
from mipmech.errors import InputError
from mipmech.model.geometry import Geometry
from mipmech.model.grading import Recount
from mipmech.model.mechanism import from_reduced
from mipmech.model.thresholds import densest_threshold
from mipmech.oracles.base import Answer, FeasibleOracle, grade
from mipmech.oracles.sweep.circle import (
    CIRCLE,
    EVENTS_AT_ONCE,
    NOWHERE,
    circle_of,
    events_of,
    masses,
    tilt_at,
    unit_vector,
)
from mipmech.tolerances import EPSILON, SAFETY
from mipmech.validation import Floats, Numbers

# Directions whose density is graded before a gap is left to the bound.
TRIED = 48
# Of them, from one batch of arcs.
TRIED_AT_ONCE = 8
# On an arc this long rounding does not decide who is covered in its middle.
CLEAR = 1e-9
# Directions rounded to this step meet ties along the axes; far below the band of η.
STEP = 2.0**-44


@dataclass(frozen=True)
class Sweep(FeasibleOracle):
    """The densest mechanism at η where a circle of directions, or less, is left: k ≤ 3.

    For p = 0 (every direction has η = 0) that is k ≤ 2; at η = ±‖p‖ any k will do.
    """

    demanding: ClassVar[bool] = False

    def answer(self, geometry: Geometry, eta: float, timer: Timer) -> Answer:
        """The best density at η, exact but for ties that floats cannot meet."""
        size, rank = geometry.p_norm, geometry.rank
        if size == 0:
            towards, turn, angle = np.zeros(rank), np.eye(rank), math.pi / 2
        else:
            towards = unit_vector(geometry.p / size)
            turn = np.linalg.svd(towards[None, :])[2][1:]
            angle = math.acos(max(-1.0, min(1.0, eta / size)))
        off = tilt_at(geometry, eta)
        if size > 0 and (rank == 1 or abs(eta) >= size * (1 - geometry.band / 2)):
            off += min(angle, math.pi - angle)
            return self._among(geometry, eta, [math.copysign(1.0, eta) * towards], off, timer)
        if len(turn) == 1:
            sides = (math.sin(angle) * turn[0], -math.sin(angle) * turn[0])
            directions = [unit_vector(math.cos(angle) * towards + side) for side in sides]
            return self._among(geometry, eta, directions, off, timer)
        if len(turn) > 2:
            raise InputError(
                f"is sweep, which turns a circle of directions; {rank} dimensions leave more than"
                f" that at η = {eta:.6g}: use milp or cells",
                field="oracle",
            )
        return _Density(self, geometry, eta, timer, towards, turn, angle).solve()

    def _among(
        self, geometry: Geometry, eta: float, directions: list[Floats], off: float, timer: Timer
    ) -> Answer:
        """The answer where every direction of the band is within ``off`` of one of these."""
        off += 2 * geometry.rounding.back + 16 * EPSILON
        spread = SAFETY * geometry.radius * (off if geometry.rank > 1 else 0.0)
        best: Recount | None = None
        upper = Fraction(0)
        for u in directions:
            along = from_reduced(geometry, u, 0.0)
            found = densest_threshold(geometry.instance, along, widen=spread * geometry.unit)
            upper = max(upper, found.upper)
            best = _denser(geometry, eta, best, found.recount)
        density = Fraction(0) if best is None else best.density
        timer.tell(density, upper, len(directions))
        return grade(
            self, geometry, eta, None if best is None else best.mechanism, stop=Stop.FINISHED,
            timer=timer, upper=upper, work={"directions": len(directions)},
        )  # fmt: skip


@dataclass(eq=False)
class _Density:
    """One call of `Sweep` on a circle: u = cos θ·p̂ + sin θ·(cos φ, sin φ)H.

    towards, turn : (k,) array p̂ (zeros if p = 0) and (2, k) array H
    circle : the agents that count, as seen from the circle at this angle from p
    mass, unit : (m,) array of whole numbers and the density of one
    best : the densest rule found in the band
    tried : how many directions were graded
    """

    oracle: Sweep
    geometry: Geometry
    eta: float
    timer: Timer
    towards: Floats
    turn: Floats
    angle: float
    best: Recount | None = None
    tried: int = 0

    def __post_init__(self) -> None:
        counts = self.geometry.instance.weights > 0
        still = math.cos(self.angle) * (self.geometry.z[counts] @ self.towards)
        basis, tilt = math.sin(self.angle) * self.turn, tilt_at(self.geometry, self.eta)
        self.circle = circle_of(self.geometry, still, basis, tilt, 0.0, CIRCLE)
        self.mass, self.unit = masses(self.geometry.instance.weights[counts])

    @property
    def density(self) -> Fraction:
        """The best density found."""
        return Fraction(0) if self.best is None else self.best.density

    def solve(self) -> Answer:
        """The bound first, then rules that attain it."""
        self.attempt(0.0)
        self.timer.tell(self.density, 1, 0)
        most = self.row_bounds()
        upper = Fraction(1)
        if most is not None:
            upper = min(upper, int(most.max()) * self.unit)
            self.timer.tell(self.density, upper, len(most))
            self.search(most, upper)
            self.timer.tell(self.density, upper, len(most))
        stop = Stop.FINISHED
        if self.timer.left == 0 and (most is None or self.density < upper):
            stop = Stop.TIME
        mechanism = None if self.best is None else self.best.mechanism
        return grade(
            self.oracle, self.geometry, self.eta, mechanism, stop=stop, timer=self.timer,
            upper=upper, work={"agents": len(self.mass), "directions": self.tried},
        )  # fmt: skip

    def row_bounds(self) -> Numbers | None:
        """For each agent, what is covered at most when it sets the threshold; None: out of time."""
        most = []
        for rows in self.circle.chunks(np.arange(len(self.mass)), EVENTS_AT_ONCE // 4):
            if self.timer.left == 0:
                return None
            counts, _turns = self.counts(rows, 1.0)
            most.append(counts.max(axis=1))
            self.timer.tell(self.density, 1, int(rows[-1]) + 1)
        return np.concatenate(most)

    def counts(self, rows: Numbers, widened: float) -> tuple[Numbers, Floats]:
        """What is covered from each event to the next, (c, 4m + 1), −1 where nothing happens.

        And the places, (c, 4m + 2), from the beginning of the circle to its end.
        """
        events = events_of(self.circle, rows, widened)
        number = events.turns.shape[1]
        counts = events.running(np.tile(self.mass, (len(rows), 1)), number)
        counts[:, 1:][events.turns >= NOWHERE / 2] = -1
        first = np.zeros((len(rows), 1))
        turns = np.minimum(events.turns, CIRCLE)
        return counts, np.concatenate([first, turns, first + CIRCLE], axis=1)

    def search(self, most: Numbers, upper: Fraction) -> None:
        """Grade directions in the middle of the best arcs, until the bound is attained.

        The arcs are those of the levels as they are. Of the arcs long enough to be clear of
        rounding the best are tried first, then those where ties may add something.
        """
        by_most = np.argsort(-most, kind="stable")
        for rows in self.circle.chunks(by_most, EVENTS_AT_ONCE // 4):
            if int(most[rows[0]]) * self.unit <= self.density or self.timer.left == 0:
                return
            counts, turns = self.counts(rows, 0.0)
            length = np.diff(turns, axis=1)
            middle = turns[:, :-1] + length / 2
            for which in (length >= CLEAR, length < CLEAR):
                count, place = counts[which], middle[which]
                for n in np.lexsort((-length[which], -count))[:TRIED_AT_ONCE]:
                    if int(count[n]) * self.unit <= self.density:
                        break
                    self.attempt(float(place[n]))
                    if self.density >= upper or self.tried >= TRIED or self.timer.left == 0:
                        return

    def attempt(self, phi: float) -> None:
        """Grade the direction at φ, as it is and rounded to a step that ties like."""
        across = math.cos(phi) * self.turn[0] + math.sin(phi) * self.turn[1]
        u = unit_vector(math.cos(self.angle) * self.towards + math.sin(self.angle) * across)
        for direction in (u, np.round(u / STEP) * STEP):
            along = from_reduced(self.geometry, direction, 0.0)
            found = densest_threshold(self.geometry.instance, along).recount
            self.best = _denser(self.geometry, self.eta, self.best, found)
        self.tried += 1


def _denser(geometry: Geometry, eta: float, best: Recount | None, found: Recount) -> Recount | None:
    """The denser of two rules, if the second is in the band at all."""
    if best is not None and best.density >= found.density:
        return best
    return found if found.eta_within(eta, geometry.band * geometry.p_norm) else best
