"""The edge: agents at the very end of their reach, and rules that step off it.

The best threshold of a direction is the end of somebody's reach (`thresholds`). There the exact
recount knows that this agent moves; whoever computes w·x in floats may find it out of reach, and at
an optimum one agent can carry a tenth of the gain. `steady` moves a threshold inward until no agent
that moves is nearer to its end than plain arithmetic can err: then the rule's weights and
threshold, as the floats that they are, have the gain that is claimed, also on a general view, whose
float weights lie only nearly in the row space.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mipmech.model.grading import ExactDirection, Recount, Side
from mipmech.rationals import clamped
from mipmech.tolerances import EDGE, EPSILON, SAFETY, STEADY_LOSS
from mipmech.validation import Floats, Numbers

# Steps inward: each passes the ends of agents that the step before has brought within reach.
MOST_STEPS = 64
# Plain arithmetic errs by this many times less than what thresholds keep away from ends.
ROOM = 4.0


def steady(found: Recount, most_loss: float = STEADY_LOSS) -> Recount:
    """The same direction with a threshold that keeps its gain in plain float arithmetic.

    Parameters
    ----------
    found : Recount
        A rule that moves agents to the end of their reach.
    most_loss : float
        The share of soft density that the step may cost. Where rounding is larger than that (data
        at 1e16 with a reach of 1), the rule stays as it is.

    Examples
    --------
    >>> from mipmech.model import Instance, Mechanism, recount
    >>> sample = Instance.from_arrays([[0.0]], [1.0], visible=[0], cost=1.0)
    >>> inside = steady(recount(sample, Mechanism((1.0,), 1.0)))
    >>> inside.mechanism.threshold < 1, round(inside.mechanism.threshold, 12)
    (True, 1.0)
    """
    if not found.moved > 0:
        return found
    direction = ExactDirection(found.instance, found.mechanism)
    room = plain_error(direction, found.mechanism.weights)
    ends = direction.scores + direction.limits
    stepped = found
    for _ in range(MOST_STEPS):
        near = endangered(direction, stepped, room)
        if not len(near):
            return stepped
        threshold = stepped.mechanism.threshold
        lower = direction.threshold(float((ends[near] - 2 * room[near]).min()))
        threshold = min(lower, float(np.nextafter(threshold, -np.inf)))
        stepped = direction.recount(found.mechanism, threshold)
        if stepped.moved < found.moved * (1 - Fraction(most_loss)):
            return found
    return stepped


def endangered(direction: ExactDirection, found: Recount, room: Floats) -> Numbers:
    """The agents that count, move, and are nearer to the end of their reach than the room."""
    level = clamped(direction.level(found.mechanism.threshold))
    inside = (found.sides == Side.INSIDE) & (direction.instance.weights > 0)
    left = direction.scores + direction.limits - level
    return np.flatnonzero(inside & (left <= room))


def unsteady(found: Recount) -> int:
    """How many agents move that plain arithmetic with the rule's floats may find out of reach.

    Parameters
    ----------
    found : Recount
        The rule.
    """
    return len(endangered(found.direction, found, _room(found)))


def plain_error(
    direction: ExactDirection, weights: Sequence[float | Fraction], about: Floats | float = 0.0
) -> Floats:
    """Several times what b − w·x and reach·‖w‖ may be off by in floats, (m,) array.

    In the units of the direction's scores, for data in the instance's units or the user's, and for
    any threshold that somebody meets.

    weights : those that somebody computes with; they differ a little from the direction's
    about : (n,) array, where the two scores agree
    """
    line, instance = direction.line, direction.instance
    columns = list(line.columns)
    exact = np.array([abs(float(w)) for w in line.weights])
    given = [Fraction(weights[j]) * line.factor for j in columns]
    off = np.array([float(g - w) for g, w in zip(given, line.weights, strict=True)])
    missed = np.abs((direction.x - np.broadcast_to(about, instance.width)[columns]) @ off)
    size = np.abs(direction.x)
    if instance.units is not None:
        units = instance.units
        size = size + np.abs(np.array(units.centre)[columns] / np.array(units.scale)[columns])
    score = size @ exact
    # Sums of products in any order, twice (score and threshold), the root, and the comparison.
    rounded = (len(columns) + 4) * EPSILON * (2 * score + 4 * direction.limits)
    return np.asarray(ROOM * rounded + SAFETY * missed + direction.error)


def _room(found: Recount) -> Floats:
    """What plain arithmetic with the rule's own floats may be off by, (m,) array."""
    return plain_error(found.direction, found.mechanism.weights)


def _distances(found: Recount) -> Floats:
    """How far each agent is below the threshold, in the units of the direction's scores."""
    level = clamped(found.direction.level(found.mechanism.threshold))
    return level - found.direction.scores


def movers(found: Recount) -> Numbers:
    """The agents that move, without those on the threshold, who pass as they are.

    The margin is closed, so density counts them; floats of standardised data put them a hair's
    breadth above or below.

    Parameters
    ----------
    found : Recount
        The rule.

    Examples
    --------
    >>> from mipmech.model import Instance, Mechanism, recount
    >>> sample = Instance.from_arrays([[1.0], [0.5]], [1.0], visible=[0], cost=1.0)
    >>> movers(recount(sample, Mechanism((1.0,), 1.0))).tolist()
    [1]
    """
    return found.covered[(_distances(found) > _room(found))[found.covered]]


def standing(found: Recount) -> int:
    """How many of the agents that count are on the threshold, as far as plain arithmetic can tell.

    Parameters
    ----------
    found : Recount
        The rule.
    """
    near = np.abs(_distances(found)) <= _room(found)
    return int((near & (found.instance.weights > 0)).sum())


@dataclass(frozen=True)
class Fragile:
    """How much hangs on agents within one per cent of the end of their reach.

    Attributes
    ----------
    share : float
        The part of the gain that is theirs.
    agents : int
        How many they are.
    """

    share: float
    agents: int

    def to_dict(self) -> dict[str, float | int]:
        """The figures."""
        return {"share": self.share, "agents": self.agents}


def fragile(found: Recount) -> Fragile:
    """How much of a rule's gain hangs on agents at the very end of their reach.

    Parameters
    ----------
    found : Recount
        The rule.
    """
    weights = found.instance.weights / found.instance.weights.max()
    inside = (found.sides == Side.INSIDE) & (weights > 0)
    moves = np.where(inside, np.maximum(_distances(found), 0.0), 0.0)
    late = inside & (moves >= (1 - EDGE) * found.direction.limits)
    total = float(weights @ moves)
    share = float(weights[late] @ moves[late]) / total if total > 0 else 0.0
    return Fragile(min(1.0, share), int(late.sum()))
