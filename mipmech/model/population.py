"""σ-smoothed distributions over a finite base: exact density, soft density and gain; samples.

x' = x + N(0, σ²I) with x drawn from the base by weight. Along a unit direction that is a mixture of
Gaussians on a line, so with t_i = b − u·z_i, α = −t/σ and β = (ℓ − t)/σ (for other costs than
Euclidean ones all in units of the score, whose noise is σ‖w‖, and reaches ℓN(w))

    Den  = Σ ω_i [Φ(β_i) − Φ(α_i)]
    SDen = Σ ω_i [t_i (Φ(β_i) − Φ(α_i)) + σ (φ(α_i) − φ(β_i))]

in closed form. This is the population of which `sample` draws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mipmech.model.fields import Smoothing
from mipmech.model.grading import ExactDirection
from mipmech.model.instance import Instance
from mipmech.model.mechanism import Mechanism
from mipmech.model.view import View
from mipmech.rationals import clamped
from mipmech.validation import Floats, positive

# Reaches shorter than SHORT·σ are integrated with this many nodes: the error is below 1e-16.
SHORT = 1.0
NODES = 16


@dataclass(frozen=True, eq=False)
class Smoothed:
    """The σ-smoothed distribution over the agents of ``base`` (each keeps its cost).

    Parameters
    ----------
    base : Instance
    sigma : float
    """

    base: Instance
    sigma: float

    def __post_init__(self) -> None:
        positive(sigma=self.sigma)

    @property
    def radius(self) -> float:
        """r: the base lies within this distance of the origin."""
        return float(np.sqrt((self.base.agents**2).sum(axis=1).max()))

    def _line(self, mechanism: Mechanism) -> tuple[Floats, Floats, Floats, float, ExactDirection]:
        """Distances and reaches in multiples of a score's noise, weights, that noise; the line."""
        direction = ExactDirection(self.base, mechanism)
        noise = self.sigma * math.hypot(*map(float, direction.line.weights))
        t = (clamped(direction.level(mechanism.threshold)) - direction.scores) / noise
        weight = self.base.weights / self.base.weights.sum()
        return t, direction.limits / noise, weight, noise, direction

    def density(self, mechanism: Mechanism) -> float:
        """Den of the smoothed distribution.

        Parameters
        ----------
        mechanism : Mechanism
            The rule.
        """
        t, reach, weight, _, _ = self._line(mechanism)
        return float(weight @ _moments(t, reach)[0])

    def soft_density(self, mechanism: Mechanism) -> float:
        """SDen of the smoothed distribution.

        Parameters
        ----------
        mechanism : Mechanism
            The rule.
        """
        moved, direction = self._moved(mechanism)
        return moved / direction.norm

    def gain(self, mechanism: Mechanism) -> float:
        """Gain of the smoothed distribution.

        Parameters
        ----------
        mechanism : Mechanism
            The rule.
        """
        moved, direction = self._moved(mechanism)
        return float(direction.line.rise) * moved

    def _moved(self, mechanism: Mechanism) -> tuple[float, ExactDirection]:
        """By how much scores rise on average, and the direction."""
        t, reach, weight, noise, direction = self._line(mechanism)
        return float(weight @ _moments(t, reach)[1]) * noise, direction

    def sample(self, size: int, seed: int, name: str | None = None) -> Instance:
        """Independent draws, as an instance.

        Parameters
        ----------
        size, seed : int
            How many draws, and the seed.
        name : str, optional
            By default made of the base's name and the seed.
        """
        rng = np.random.default_rng(seed)
        base = self.base
        chosen = rng.choice(base.size, size, p=base.weights / base.weights.sum())
        noise = self.sigma * rng.standard_normal((size, base.width))
        return Instance.from_arrays(
            base.agents[chosen] + noise, base.quality, **base.costs.of(chosen).to_dict(),
            **_seen(base.view),
            quality_offset=base.quality_offset, features=base.features, units=base.units,
            name=name or f"{base.name}, smoothed, seed {seed}",
            smoothing=Smoothing(self.sigma, max(self.radius, np.finfo(float).tiny)),
        )  # fmt: skip


def _seen(view: View) -> dict[str, Any]:
    """What is seen, as an argument: columns where possible, which costs may need."""
    return {"view": view.matrix} if view.columns is None else {"visible": view.columns}


def _moments(t: Floats, reach: Floats) -> tuple[Floats, Floats]:
    """∫ N(d − t) dd and ∫ d N(d − t) dd over [0, reach], for σ = 1."""
    from scipy.special import ndtr  # noqa: PLC0415  (slow to import, seldom needed)

    alpha, beta = -t, reach - t
    flip = alpha > 0  # differences of Φ keep their digits only in the lower tail
    low, high = np.where(flip, -beta, alpha), np.where(flip, -alpha, beta)
    mass: Floats = ndtr(high) - ndtr(low)
    soft = t * mass + (np.exp(-(alpha**2) / 2) - np.exp(-(beta**2) / 2)) / math.sqrt(2 * math.pi)
    # In a short interval both cancel; there the integrand is smooth, and Gauss's rule is exact to
    # the last digit.
    short = reach < SHORT
    if short.any():
        nodes, factors = np.polynomial.legendre.leggauss(NODES)
        half = reach[short, None] / 2
        d = half * (nodes + 1)
        bell = np.exp(-((d - t[short, None]) ** 2) / 2) * (half * factors / math.sqrt(2 * math.pi))
        mass[short], soft[short] = bell.sum(axis=1), (d * bell).sum(axis=1)
    return mass, soft
