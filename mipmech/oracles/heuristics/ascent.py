"""The oracle `ascent`: gradient ascent of the smoothed density, annealed, from many starts.

The margin with Gaussian edges of width σ has the density

    D_σ(v, b) = Σ ω_i [Φ(d_i/σ) − Φ((d_i − ℓ_i)/σ)],      d_i = b − u·z_i,

Φ(x) = ½(1 + erf(x/√2)), which is that of the σ-smoothed sample (`model.population`). With
g_i = ω_i [φ(d_i/σ) − φ((d_i − ℓ_i)/σ)]/σ its gradient is Σ g_i along b and −sin θ Σ g_i Hᵀz_i
along v, projected on the tangent plane of the sphere. σ falls from the spread of the scores to a
small part of the reach (graduated optimisation, Blake and Zisserman 1987); at each level all starts
climb side by side, each with a step length of its own. What counts in the end is the true density
of every direction passed through.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from mipmech.oracles.heuristics.explore import Explorer, Heuristic
from mipmech.validation import Floats

# Starts of a round, fewer if the agents are many; drawn as the best of DRAWN times that number.
STARTS = 32
DRAWN = 4
# Levels of σ, and steps at each.
LEVELS = 9
STEPS = 10
# The last σ, as a share of the median reach.
SHARPEST = 0.03
# The best end points of a round that are improved by linear programs.
AUGMENTED = 2


@dataclass(frozen=True)
class Ascent(Heuristic):
    """Annealed multi-start ascent; a round is a batch of starts."""

    rounds: int | None = 6
    facets: ClassVar[bool] = True

    def round(self, explorer: Explorer, random: Generator, number: int) -> bool:
        """Climb from the best of some random directions, at a σ that falls."""
        part, goal = explorer.part, explorer.goal
        starts = min(STARTS, max(4, explorer.lot))
        v = explorer.directions(random, DRAWN * starts)
        counts = explorer.consider(v, ranked=True)
        v = v[np.argsort(-counts, kind="stable")[:starts]]
        scores = part.scores(v)
        reach = float(np.median(goal.reach))
        b = np.array([goal.threshold(row) for row in scores])
        # Half of the rounds start coarse, half fine: a sheet is seen from afar, a knot only near.
        spread = float(scores.std(axis=1).mean()) / (1 if number % 2 == 0 else 4)
        first, last = max(spread, reach / 2), SHARPEST * reach
        for sigma in np.geomspace(first, min(last, first), LEVELS):
            v, b = _climb(explorer, v, b, float(sigma))
            if explorer.over:
                break
            counts = explorer.consider(v, ranked=True)
        for place in np.argsort(-counts[: len(v)], kind="stable")[:AUGMENTED]:
            if not explorer.over:
                explorer.augment(v[place])
        return False


def smoothed_density(
    explorer: Explorer, v: Floats, b: Floats, sigma: float
) -> tuple[Floats, Floats, Floats]:
    """D_σ and its gradient along v (tangential) and b: (n,), (n, d) and (n,) arrays."""
    from scipy.special import ndtr  # noqa: PLC0415  (slow to import)

    part, reach = explorer.part, explorer.goal.reach
    near = (b[:, None] - part.scores(v)) / sigma
    far = near - reach / sigma
    value = (ndtr(near) - ndtr(far)) @ part.weight
    bell = np.exp(-0.5 * near**2) - np.exp(-0.5 * far**2)
    pull = bell * (part.weight / (sigma * math.sqrt(2 * math.pi)))
    along_v = part.tangential(v, -(pull @ part.y))
    return value, along_v, pull.sum(axis=1)


def _climb(explorer: Explorer, v: Floats, b: Floats, sigma: float) -> tuple[Floats, Floats]:
    """Steps uphill at one σ: longer after a success, shorter after a failure."""
    value, along_v, along_b = smoothed_density(explorer, v, b, sigma)
    step = np.full(len(v), sigma)  # scores lie within a ball of radius 1: this moves them by σ
    for _ in range(STEPS):
        if explorer.over:
            break
        length = np.sqrt((along_v**2).sum(axis=1) + along_b**2)
        scale = step / np.maximum(length, 1e-300)
        next_v = explorer.part.onto(v + scale[:, None] * along_v)
        next_b = b + scale * along_b
        there, slope_v, slope_b = smoothed_density(explorer, next_v, next_b, sigma)
        better = there > value
        v = np.where(better[:, None], next_v, v)
        along_v = np.where(better[:, None], slope_v, along_v)
        b, along_b = np.where(better, next_b, b), np.where(better, slope_b, along_b)
        value = np.where(better, there, value)
        step = np.where(better, 1.5 * step, 0.4 * step)
    return v, b
