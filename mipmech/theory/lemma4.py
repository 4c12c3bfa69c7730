"""Lemma 4: two thresholds, of which the better moves its agents far enough."""

from __future__ import annotations

from fractions import Fraction

from mipmech.model.grading import Line, Recount, recount
from mipmech.model.instance import Instance
from mipmech.model.mechanism import Mechanism
from mipmech.rationals import clamped, sqrt_bounds
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
    shortest = float(instance.reach[counts].min())
    line = Line.of(instance, mechanism)
    norm = clamped(sqrt_bounds(line.square)[0] / line.factor)
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
    costs = instance.costs.of(instance.weights > 0)
    return costs.shortest / costs.longest / 4
