"""Lemma 4: two thresholds, of which the better moves its agents far enough."""

from __future__ import annotations

import math
from fractions import Fraction

from mipmech.model.grading import Recount, recount
from mipmech.model.instance import Instance
from mipmech.model.mechanism import Mechanism
from mipmech.theory.statement import Statement


def quarter(instance: Instance, mechanism: Mechanism) -> tuple[Recount, Statement]:
    """Lemma 4: the better of b and b + ℓ_min/2 has soft density ≥ (ℓ_min/4) · density at b.

    For equal costs this is the paper's 1/4. For unequal ones ℓ_min is the least reach among the
    agents that count: of the agents in the margin, half are at distance at least ℓ_min/2, or half
    are nearer and stay within reach after the shift.

    Parameters
    ----------
    instance, mechanism : Instance, Mechanism
        The sample and the rule.

    Returns
    -------
    better : Recount
    lemma : Statement
    """
    counts = instance.weights > 0
    shortest = 1 / float(instance.cost[counts].max())
    norm = math.hypot(*mechanism.weights)
    shifted = mechanism.at(mechanism.threshold + shortest / 2 * norm)
    both = [recount(instance, mechanism), recount(instance, shifted)]
    better = max(both, key=lambda r: r.moved)
    promise = shortest / 4 * float(both[0].density)
    return better, Statement("Lemma 4", better.soft_density, promise)


def quarter_factor(instance: Instance) -> Fraction:
    """The factor of Lemma 4 against soft density: ℓ_min/(4 ℓ_max), 1/4 for equal costs.

    Parameters
    ----------
    instance : Instance
        The sample.
    """
    cost = instance.cost[instance.weights > 0]
    return Fraction(float(cost.min())) / Fraction(float(cost.max())) / 4
