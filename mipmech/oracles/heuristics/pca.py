"""The oracle `pca`: directions along which the agents, or most of them, are least spread out.

A thin sheet of agents shows as a direction of small variance. On the slice the scores are
cos θ z·p̂ + sin θ v·(Hᵀz), so with C the covariance of Hᵀz and c that of Hᵀz with z·p̂ the variance
is, up to a constant and the factor sin²θ,

    vᵀC v + 2 cot θ c·v        over ‖v‖ = 1.

Its minimum solves (C + λI) v = −cot θ c with ‖v‖ = 1 and λ ≥ −λ_min: a secular equation in λ,
solved by bisection. The variance of all agents is spoilt by those far from the sheet. So, as in the
fast algorithms for least trimmed squares and minimum covariance (Rousseeuw and Van Driessen 1999,
2006), *concentration steps* follow: keep the agents nearest to the densest margin, fit again, until
the density no longer rises; from the whole sample, and from small random subsets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from mipmech.oracles.heuristics.explore import Explorer, Heuristic
from mipmech.oracles.shared.slices import Slice, unit
from mipmech.validation import Floats, Numbers

# Bisections of the secular equation: more would be below rounding.
BISECTIONS = 60
# Concentration steps from each start at most.
STEPS = 12
# The share of the agents that is kept by a concentration step, in turn.
KEPT = (0.5, 0.25, 0.75, 0.1)
STARTS = 8


@dataclass(frozen=True)
class Pca(Heuristic):
    """Least spread, concentrated; a round is a handful of starts."""

    def round(self, explorer: Explorer, random: Generator, number: int) -> bool:
        """The whole sample and its principal axes first, then small random subsets."""
        part = explorer.slice
        m, d = part.across.shape
        if number == 0:
            all_agents = np.arange(m)[None, :]
            axes = np.linalg.eigh(np.cov(part.across.T, aweights=part.weight, ddof=0))[1].T
            starts = np.vstack([least_spread(part, all_agents), axes, -axes])
        else:
            size = min(m, d + 1)
            subsets = np.array([random.choice(m, size, replace=False) for _ in range(STARTS)])
            starts = least_spread(part, subsets)
        explorer.consider(starts)
        for place, start in enumerate(starts):
            if explorer.over:
                return False
            _concentrate(explorer, start, KEPT[(number + place) % len(KEPT)])
        return False


def _concentrate(explorer: Explorer, start: Floats, kept: float) -> None:
    """Keep the agents nearest to the margin, fit, and again."""
    part = explorer.slice
    m = len(part.reach)
    before = -math.inf
    v = start
    for _ in range(STEPS):
        scores = part.scores(v[None, :])[0]
        middle = explorer.goal.threshold(scores) - explorer.goal.reach / 2
        inside = len(explorer.covered(v))
        # No fewer than are inside: those are to stay. No more than the share that is wanted.
        count = min(m, max(part.dimension + 1, inside, round(kept * m)))
        kept = max(kept / 1.5, 1.2 * inside / m)
        nearest = np.argpartition(np.abs(scores - middle), count - 1)[:count]
        v = least_spread(part, nearest[None, :])[0]
        now = explorer.consider(v[None, :], ranked=True)[0]
        if explorer.over or (now <= before and count <= 1.3 * inside):
            return
        before = max(before, now)


def least_spread(part: Slice, subsets: Numbers) -> Floats:
    """The directions of least variance for (n, s) subsets of agents: an (n, d) array."""
    across, along, weight = part.across[subsets], part.along[subsets], part.weight[subsets]
    weight = weight / weight.sum(axis=1, keepdims=True)
    across = across - np.einsum("ns,nsd->nd", weight, across)[:, None, :]
    along = along - np.einsum("ns,ns->n", weight, along)[:, None]
    weighted = weight[:, :, None] * across
    spread, axes = np.linalg.eigh(np.einsum("nsd,nse->nde", weighted, across))
    pull = np.einsum("nsd,ns->nd", weighted, along) / math.tan(part.angle)
    return _on_the_sphere(spread, axes, pull)


def _on_the_sphere(spread: Floats, axes: Floats, pull: Floats) -> Floats:
    """The minimum of vᵀCv + 2 pull·v over the unit sphere, C = Σ spread_j axis_j axis_jᵀ."""
    target = -np.einsum("nde,nd->ne", axes, pull)  # in the basis of the axes
    size = np.linalg.norm(target, axis=1)
    scale = np.maximum(spread[:, -1] + size, 1e-300)
    low = -spread[:, 0]
    high = low + np.maximum(size, 1e-12 * scale)  # there, every component is divided by ≥ ‖target‖
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        shifted = np.maximum(spread + middle[:, None], 1e-14 * scale[:, None])
        long = np.linalg.norm(target / shifted, axis=1) > 1
        low, high = np.where(long, middle, low), np.where(long, high, middle)
    shifted = np.maximum(spread + high[:, None], 1e-14 * scale[:, None])
    y = target / shifted
    # The hard case: nothing pulls along the flattest axis, which then makes up what is missing.
    missing = np.sqrt(np.maximum(0.0, 1 - (y**2).sum(axis=1)))
    y[:, 0] += np.where(y[:, 0] < 0, -missing, missing)
    return unit(np.einsum("nde,ne->nd", axes, y))
