"""The best threshold of a direction among those with which the rule meets all requirements.

Between two consecutive ends score_i + reach_i the accepted agents stay, nobody leaves the margin,
and every move grows. So for a rate that is not negative some end is a best threshold, or one above
everybody (nobody accepted, gain 0). One sort gives the accepted mass at every end; floats rank the
ends, and rationals decide. Where the rate is negative, gain is lost with every move: a threshold
above or below everybody moves nobody, and else the end with the least movement is taken. Any rule
that meets the requirements is better than none.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from mipmech.model.edge_of_reach import steady
from mipmech.model.grading import ExactDirection, Recount
from mipmech.model.mechanism import Mechanism
from mipmech.model.requirements.acceptance import Shares
from mipmech.model.requirements.demands import Demands
from mipmech.model.thresholds import of_usual_length, soft_profile, step_inward
from mipmech.rationals import exact_sum
from mipmech.tolerances import EPSILON, STEADY_LOSS
from mipmech.validation import Flags, Floats

# Levels tried where rounding hides which agents are accepted; those that it does not hide follow.
LEVELS_TRIED = 60
# Ends below which a threshold is looked for, and how often the interval is halved.
BETWEEN, HALVINGS = 6, 50
# A threshold above everybody is this share of the largest reach above the last end.
ABOVE = 0.125


def best_feasible(demands: Demands, mechanism: Mechanism) -> Recount | None:
    """The threshold of greatest gain along a direction with which all requirements are met.

    A direction a little outside of the cone of allowed ones is put into it first.

    Parameters
    ----------
    demands : Demands
        What is demanded of rules.
    mechanism : Mechanism
        The direction; its threshold is ignored.

    Returns
    -------
    Recount or None
        None if no threshold will do.
    """
    return _best(demands, mechanism, dense=False)


def densest_feasible(demands: Demands, mechanism: Mechanism) -> Recount | None:
    """The threshold of greatest density along a direction with which all requirements are met.

    Parameters
    ----------
    demands : Demands
        What is demanded of rules.
    mechanism : Mechanism
        The direction; its threshold is ignored.
    """
    return _best(demands, mechanism, dense=True)


def softest_feasible(demands: Demands, mechanism: Mechanism) -> Recount | None:
    """The threshold of greatest soft density along a direction with which all requirements are met.

    Parameters
    ----------
    demands : Demands
        What is demanded of rules.
    mechanism : Mechanism
        The direction; its threshold is ignored.
    """
    return _best(demands, mechanism, dense=False, soft=True)


def best_between(
    demands: Demands, mechanism: Mechanism, dense: bool = False, near: bool = False
) -> Recount | None:
    """The best threshold found between two ends, for constraints on how far people move.

    Between two consecutive ends moves grow, so that a limit on them leaves the lower part. The ends
    worth most are tried, and what is below each of them is halved again and again.

    Parameters
    ----------
    demands : Demands
        What is demanded of rules, with constraints that a user wrote.
    mechanism : Mechanism
        The direction.
    dense : bool
        Whether the greatest density is wanted, not the greatest gain.
    near : bool
        Look only around the mechanism's own threshold.
    """
    inside = demands.repaired(of_usual_length(mechanism))
    if inside is None:
        return None
    direction = ExactDirection(demands.instance, inside)
    if direction.line.rise < 0 and not dense:
        return None
    levels = _Levels(direction, dense)
    order = np.argsort(levels.ends, kind="stable")
    ends = levels.ends[order]
    if near:
        here = int(np.searchsorted(ends, float(direction.level(inside.threshold))))
        places = [k for k in (here, here - 1, here + 1) if 0 <= k < len(ends)]
    else:
        places = np.argsort(-levels.sure[order], kind="stable")[:BETWEEN].tolist()
    best: Recount | None = None
    for k in places:
        below = ends[k - 1] if k else float(direction.scores.min()) - levels.doubt.max()
        room = levels.doubt[order[k]] + levels.doubt.max()
        if ends[k] - below <= 2 * room:
            continue
        low = direction.threshold(below + room)
        high = direction.right_end(int(order[k]))
        found = _highest(demands, direction, inside, low, high)
        if found is None:
            continue
        worth = found.density if dense else found.moved
        if best is None or worth > (best.density if dense else best.moved):
            best = found
    return best


def _highest(
    demands: Demands, direction: ExactDirection, rule: Mechanism, low: float, high: float
) -> Recount | None:
    """The highest threshold in [low, high] with which all is met, if it is met up to some point."""
    found = direction.recount(rule, high)
    if demands.met(found):
        return found
    found = direction.recount(rule, low)
    if not demands.met(found):
        return None
    for _ in range(HALVINGS):
        middle = low + (high - low) / 2
        tried = direction.recount(rule, middle)
        if demands.met(tried):
            low, found = middle, tried
        else:
            high = middle
    return found


def steady_feasible(demands: Demands, found: Recount, most_loss: float = STEADY_LOSS) -> Recount:
    """`steady`, unless that would fail a requirement.

    Parameters
    ----------
    demands : Demands
        What is demanded of rules.
    found : Recount
        A rule that meets it.
    most_loss : float
        As for `steady`.
    """
    stepped = steady(found, most_loss)
    return stepped if stepped is found or demands.met(stepped) else found


def _best(
    demands: Demands, mechanism: Mechanism, dense: bool, soft: bool = False
) -> Recount | None:
    inside = demands.repaired(of_usual_length(mechanism))
    if inside is None:
        return None
    direction = ExactDirection(demands.instance, inside)
    levels = _Levels(direction, dense)
    harmful = not dense and not soft and direction.line.rise < 0

    def value(found: Recount) -> Fraction:
        moved = found.density if dense else found.moved
        return -moved if harmful else moved

    best: Recount | None = None
    for threshold, most in levels.thresholds(demands.shares, harmful):
        if best is not None and value(best) >= most:
            break
        found = direction.recount(inside, threshold)
        if (best is None or value(found) > value(best)) and demands.met(found):
            best = found
    return best


class _Levels:
    """The ends along a direction, ranked by what they are worth.

    ends : (m,) array
    sure : (m,) array, what each is worth at least, were its agents as counted
    """

    def __init__(self, direction: ExactDirection, dense: bool) -> None:
        self.direction = direction
        self.ends: Floats = direction.scores + direction.limits
        self.doubt: Floats = 2 * direction.error
        moved, mass = soft_profile(direction, self.ends, self.doubt)
        if dense:
            self.sure: Floats = mass - 16 * EPSILON * mass
            return
        # At its own end, agent i alone brings ω_i ℓ_i, however small it is beside the others' sum.
        weights = direction.instance.weights / float(exact_sum(direction.instance.weights))
        worth = np.maximum(moved, weights * direction.limits)
        self.sure = worth - 16 * EPSILON * (np.abs(self.ends * mass) + np.abs(worth))

    def thresholds(self, shares: Shares | None, harmful: bool) -> Iterator[tuple[float, float]]:
        """Thresholds that may do, the best first, and what they and all after them have at most.

        If moves are harmful, the order is the other way round, and worth counts as a loss.
        """
        direction, ends = self.direction, self.ends
        if harmful:
            # Nobody moves if nobody can, nor if nobody need.
            yield self._above(), 0.0
            yield self._below(), 0.0
        worth = -self.sure if harmful else self.sure
        possible, clear = self._accepted(shares)
        chosen = np.flatnonzero(possible)
        # Of levels worth the same, the lowest.
        chosen = chosen[np.lexsort((ends[chosen], -worth[chosen]))]
        hidden = 0
        for i in chosen.tolist():
            hidden += not clear[i]
            if not clear[i] and hidden > LEVELS_TRIED:
                continue
            here = direction.right_end(i)
            near = np.flatnonzero(np.abs(ends - ends[i]) <= self.doubt + self.doubt[i])
            for threshold in dict.fromkeys((step_inward(direction, here, near), here)):
                yield threshold, float(worth[i])
        if not harmful:
            yield self._above(), 0.0

    def _above(self) -> float:
        """A threshold above everybody."""
        direction = self.direction
        room = ABOVE * float(direction.limits.max()) + 4 * float(self.doubt.max())
        return direction.threshold(float(self.ends.max()) + room)

    def _below(self) -> float:
        """A threshold below everybody."""
        direction = self.direction
        room = ABOVE * float(direction.limits.max()) + 4 * float(self.doubt.max())
        return direction.threshold(float(direction.scores.min()) - room)

    def _accepted(self, shares: Shares | None) -> tuple[Flags, Flags]:
        """At which ends the accepted may meet the limits, and where that is beyond doubt."""
        m = len(self.ends)
        if shares is None:
            return np.ones(m, bool), np.ones(m, bool)
        counts = np.flatnonzero(shares.mass > 0)
        ends, doubt = self.ends[counts], self.doubt[counts]
        table = np.zeros((len(counts), len(shares.totals)))
        table[np.arange(len(counts)), shares.members[counts]] = shares.mass[counts]
        order = np.argsort(-ends, kind="stable")
        total = np.vstack([np.zeros(table.shape[1]), np.cumsum(table[order], axis=0)])
        descending, widest = -ends[order], float(doubt.max())
        room = self.doubt + widest
        # As many as surely pass at this end, and as many as may.
        fewest = np.searchsorted(descending, -(self.ends + room), side="left")
        most = np.searchsorted(descending, -(self.ends - room), side="right")
        at_most = shares.fitting(total[most])
        clear = (most - fewest <= 1) & (shares.mass > 0)
        possible = at_most | ((most - fewest > 1) & (shares.mass > 0))
        return possible, clear & at_most
