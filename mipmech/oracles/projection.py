"""The oracle that knows one direction: w ∝ P w_f, with its densest threshold.

At η = ±‖P w_f‖ it is the only direction there is, so the answer is exact up to the band; at any
other η this oracle has no answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from mipmech.budget import Stop, Timer
from mipmech.model.geometry import Geometry
from mipmech.model.mechanism import Mechanism, from_reduced
from mipmech.model.requirements.feasible import densest_feasible
from mipmech.model.thresholds import densest_threshold
from mipmech.oracles.base import Answer, FeasibleOracle, grade
from mipmech.tolerances import SAFETY


@dataclass(frozen=True)
class Projection(FeasibleOracle):
    """w ∝ P w_f (or its opposite for η < 0), densest threshold."""

    def answer(self, geometry: Geometry, eta: float, timer: Timer) -> Answer:
        """The densest threshold along P w_f if that direction has this η."""
        size = geometry.p_norm
        band = geometry.band
        if size == 0 or abs(abs(eta) - size) > band * size / 2:
            return grade(self, geometry, eta, None, stop=Stop.NO_ANSWER, timer=timer)
        u = math.copysign(1.0, eta) * geometry.p / size
        # cos of the angle between P w_f and any direction of the band is at least 1 − 2·band.
        angle = 2 * math.sqrt(band) * SAFETY
        angle += 2 * geometry.rounding.back + geometry.rounding.p / size
        spread = geometry.radius * (angle if geometry.rank > 1 else 0.0)
        direction = from_reduced(geometry, u, 0.0)
        found = densest_threshold(geometry.instance, direction, widen=spread * geometry.unit)
        mechanism: Mechanism | None = found.recount.mechanism
        density, upper = found.recount.density, found.upper
        if geometry.demands is not None:
            met = densest_feasible(geometry.demands, direction)
            if met is not None and not met.eta_within(eta, band * size):
                met = None  # moved into the cone of allowed directions, which is elsewhere
            mechanism = None if met is None else met.mechanism
            density = Fraction(0) if met is None else met.density
        timer.tell(density, upper, 1)
        return grade(self, geometry, eta, mechanism, stop=Stop.FINISHED, timer=timer, upper=upper)
