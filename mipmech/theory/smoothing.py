"""σ-smoothed distributions: Lemmas 3, 6, 7 and 8, corrected where needed.

D is σ-smoothed if x' = x + N(0, σ²I) with x from a distribution on the ball of radius r.
"""

from __future__ import annotations

import math

import numpy as np

from mipmech.errors import InputError
from mipmech.model.mechanism import Mechanism
from mipmech.model.population import Smoothed
from mipmech.theory.statement import Statement
from mipmech.validation import positive


def lipschitz_constant(sigma: float, reach: float) -> float:
    """How fast SDen of a σ-smoothed distribution can change with b: max(1, ℓ/(σ√(2π))).

    For one centre at distance t from the threshold, SDen is φ(t) = E[(t+σg) 1(0 ≤ t+σg ≤ ℓ)], and
    φ'(t) = P(0 ≤ t+σg ≤ ℓ) − ℓ·N_σ(ℓ − t), a difference of two numbers in [0, 1] and
    [0, ℓ/(σ√(2π))].

    Parameters
    ----------
    sigma, reach : float
        σ and ℓ.
    """
    positive(sigma=sigma, reach=reach)
    return max(1.0, reach / (sigma * math.sqrt(2 * math.pi)))


def soft_density_change(
    sigma: float, radius: float, reach: float, angle: float, shift: float
) -> float:
    """Lemma 3, sharper: |SDen(w1,b1) − SDen(w2,b2)| ≤ L(|b1 − b2| + 2r sin(θ/2)).

    L is `lipschitz_constant`. This holds for all angles, shifts, reaches and dimensions; the
    paper's O(ν + εR²) needs ε ≤ 1/(3R²) and a tail bound (Lemma 7) that fails in three dimensions
    or more. Relative to the threshold, each centre c of the base moves by at most |(w1 − w2)·c| ≤
    2r sin(θ/2), and the smoothed SDen is a mean of φ over the centres.

    Parameters
    ----------
    sigma, radius, reach : float
        σ, r and ℓ.
    angle, shift : float
        θ, the angle between w1 and w2, and b1 − b2.
    """
    move = abs(shift) + 2 * radius * math.sin(min(abs(angle), math.pi) / 2)
    return lipschitz_constant(sigma, reach) * move


def lemma3(smoothed: Smoothed, first: Mechanism, second: Mechanism) -> Statement:
    """Lemma 3 (sharper) for two rules on a smoothed population with equal costs.

    Parameters
    ----------
    smoothed : Smoothed
        The population.
    first, second : Mechanism
        The rules.
    """
    if not smoothed.base.costs.plain:
        said = "are not Euclidean; Lemma 3 compares angles, and noise that is the same all round"
        raise InputError(said, field="cost")
    costs = smoothed.base.cost
    if (costs != costs[0]).any():
        raise InputError("differs between agents; Lemma 3 is for equal costs", field="cost")
    units, levels = [], []
    for rule in (first, second):
        weights, threshold = rule.scaled()
        norm = float(np.linalg.norm(weights))
        units.append(weights / norm)
        levels.append(float(threshold) / norm)
    angle = 2 * math.asin(min(1.0, float(np.linalg.norm(units[0] - units[1])) / 2))
    bound = soft_density_change(
        smoothed.sigma, smoothed.radius, 1 / float(costs[0]), angle, levels[0] - levels[1]
    )
    change = abs(smoothed.soft_density(first) - smoothed.soft_density(second))
    return Statement("Lemma 3", bound, change)


def band_mass(sigma: float, width: float) -> float:
    """Lemma 6: a slab of this width has probability at most width/(σ√(2π)).

    Parameters
    ----------
    sigma, width : float
        σ, and the width of the slab.

    Examples
    --------
    >>> round(band_mass(1.0, 0.5), 6)
    0.199471
    """
    positive(sigma=sigma)
    return min(1.0, abs(width) / (sigma * math.sqrt(2 * math.pi)))


def tail_radius(dimension: int, sigma: float, radius: float, epsilon: float) -> float:
    """Lemma 7, corrected: P(‖x‖ ≥ H) ≤ ε for H = r + σ(√n + √(2 ln 1/ε)).

    ‖x − c‖ is a 1-Lipschitz function of the noise with mean at most σ√n, and Gaussian concentration
    gives the rest.

    Parameters
    ----------
    dimension : int
        n.
    sigma, radius, epsilon : float
        σ, r and ε.
    """
    positive(sigma=sigma)
    if not 0 < epsilon <= 1:
        raise InputError(f"is {epsilon}; give a probability above 0", field="epsilon")
    return radius + sigma * (math.sqrt(dimension) + math.sqrt(2 * math.log(1 / epsilon)))


def density_ratio(
    sigma: float, radius: float, distance: float, size: float, other_size: float
) -> float:
    """Lemma 8: p(x)/p(x') ≤ exp(D(2r + ‖x‖ + ‖x'‖)/(2σ²)) for ‖x − x'‖ ≤ D.

    Parameters
    ----------
    sigma, radius, distance : float
        σ, r and D.
    size, other_size : float
        ‖x‖ and ‖x'‖.
    """
    positive(sigma=sigma)
    exponent = distance * (2 * radius + size + other_size) / (2 * sigma**2)
    return math.exp(exponent) if exponent < 700 else math.inf
