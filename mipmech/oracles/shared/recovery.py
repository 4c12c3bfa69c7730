"""From a set of agents to a true direction that covers them: a few linear programs along tangents.

A solver's maximiser is right only to within its tolerances, and its u is a unit vector only
approximately. Given the agents that it covers, `clear` looks for the direction on the true sphere
that has them inside the margin with the most room to spare, and `climb` for the one with the
greatest soft density. At v the sphere is replaced by its tangent plane, a linear program gives a
step, and the result is put back on the sphere. A facet is its own tangent plane.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from mipmech.oracles.shared.facets import Part
from mipmech.solver import Inequalities, linear_program
from mipmech.validation import Flags, Floats, Numbers

# Steps are taken until they are shorter than this share of the first.
LEAST_STEP = 1e-6
# More agents than this are not drawn in at once: each has a row and two columns.
MOST_NEAR = 300


@dataclass(frozen=True, eq=False)
class Held:
    """What stays on the way, because requirements are met so.

    rows, shift : (r, d) and (r,) arrays: shift + rows·v ≥ 0
    accepted : (m,) array, who is accepted; None if that may change
    """

    rows: Floats
    shift: Floats
    accepted: Flags | None

    def sets(self, covered: Numbers) -> tuple[Numbers, Numbers]:
        """Those who must pass, whether they move or not, and those who must not."""
        if self.accepted is None:
            return covered, covered[:0]
        passing = self.accepted.copy()
        passing[covered] = True
        return np.flatnonzero(passing), np.flatnonzero(~passing)


def clear(
    part: Part, v: Floats, covered: Numbers, rounds: int = 8, seconds: float = math.inf,
    held: Held | None = None,
) -> Floats:  # fmt: skip
    """A direction near v that has the covered agents in its margin, with room to spare."""
    begun = time.monotonic()
    best, room = v, -math.inf
    step = 0.5
    for _ in range(rounds):
        left = seconds - (time.monotonic() - begun)
        moved = _step(part, best, covered, step, None, left, held=held) if left > 0 else None
        if moved is None:
            break
        now = _room(part, moved, covered, held)
        if now > room + 1e-15:
            best, room = moved, now
        else:
            step /= 4
    return best


def climb(
    part: Part, v: Floats, covered: Numbers, pull: Floats | None = None, rounds: int = 40,
    seconds: float = math.inf, held: Held | None = None,
) -> Floats:  # fmt: skip
    """A direction near v that keeps the covered agents, with greater soft density.

    pull : p̂, for a greater gain instead: soft density times pull·v
    """
    begun = time.monotonic()
    best, height = v, _height(part, v, covered, pull, held)
    step = 0.25
    for _ in range(rounds):
        left = seconds - (time.monotonic() - begun)
        if left <= 0:
            break
        moved = _step(part, best, covered, step, part.weight[covered], left, pull, held)
        if moved is None:
            break
        now = _height(part, moved, covered, pull, held)
        if now > height:
            best, height = moved, now
        elif (step := step / 4) < LEAST_STEP:
            break
    return best


def augment(
    part: Part, v: Floats, b: float, step: float, seconds: float = math.inf
) -> Floats | None:
    """A direction near v that keeps the agents in the margin of b and draws others into it.

    One linear program on the tangent plane: the margin's agents stay, and the weighted distances by
    which the others miss it are made least in sum. That sum is small where few miss it by
    much, so it tends to bring in many that miss it by little. Of many, only the nearest are used.
    """
    scores = part.scores(v[None, :])[0]
    distance = b - scores
    inside = (distance >= -part.slack) & (distance <= part.reach + part.slack)
    miss = np.maximum(-distance, distance - part.reach)
    near = np.flatnonzero(~inside & (miss <= part.reach))
    near = np.sort(near[np.argsort(miss[near], kind="stable")[:MOST_NEAR]])
    stay = np.flatnonzero(inside)
    if part.points is not None or not len(near) or not len(stay):
        return None
    tangent, backward, forward = part.steps(v, step)
    slopes = part.y @ tangent.T
    # Variables: the step x, the change of b, and for each agent that is near the distances by which
    # it misses the front and the back. A row for each agent: how its score changes, seen from b.
    change = np.hstack([slopes, -np.ones((len(slopes), 1))])
    agents = np.concatenate([stay, near])
    rows = _rows(change[stay], change[near])
    span = float(part.reach.max()) + 4.0
    cost = np.concatenate([np.zeros(len(tangent) + 1), -part.weight[near], -part.weight[near]])
    least = np.concatenate([backward, [-span], np.zeros(2 * len(near))])
    most = np.concatenate([forward, [span], np.full(2 * len(near), 2 * span)])
    constraints = Inequalities(rows, distance[agents], (distance - part.reach)[agents])
    return _moved(part, v, tangent, linear_program(cost, constraints, least, most, seconds))


def _rows(stay: Floats, near: Floats) -> Any:
    """A row for each agent; those near the margin also have two columns, to miss it."""
    from scipy.sparse import csr_array  # noqa: PLC0415  (slow to import)

    (m, d), n = stay.shape, len(near)
    every = np.arange(n)[:, None]
    ones = np.ones((n, 1))
    columns = np.hstack([np.tile(np.arange(d), (n, 1)), d + every, d + n + every])
    values = np.concatenate([stay.ravel(), np.hstack([near, -ones, ones]).ravel()])
    indices = np.concatenate([np.tile(np.arange(d), m), columns.ravel()])
    starts = np.concatenate([np.arange(m) * d, m * d + np.arange(n + 1) * (d + 2)])
    return csr_array((values, indices, starts), shape=(m + n, d + 2 * n))


def _room(part: Part, v: Floats, covered: Numbers, held: Held | None = None) -> float:
    """How much the agents can spare at the best threshold for that."""
    scores = part.scores(v[None, :])[0]
    passing, failing = (covered, covered[:0]) if held is None else held.sets(covered)
    ends = scores + part.reach
    most = ends[passing].min(initial=math.inf)
    least = max(scores[covered].max(initial=-math.inf), ends[failing].max(initial=-math.inf))
    return float(most - least) / 2


def _height(
    part: Part, v: Floats, covered: Numbers, pull: Floats | None = None, held: Held | None = None
) -> float:
    """Soft density of the covered agents, at the largest threshold that keeps them; −∞ if none.

    pull : for the gain
    """
    scores = part.scores(v[None, :])[0]
    passing, failing = (covered, covered[:0]) if held is None else held.sets(covered)
    if not len(covered):
        return -math.inf
    ends = scores + part.reach
    b = float(ends[passing].min())
    if b < scores[covered].max() or b < ends[failing].max(initial=-math.inf):
        return -math.inf
    soft = float(part.weight[covered] @ (b - scores[covered]))
    return soft if pull is None else soft * float(pull @ v)


def _step(
    part: Part, v: Floats, covered: Numbers, step: float, weight: Floats | None,
    seconds: float = math.inf, pull: Floats | None = None, held: Held | None = None,
) -> Floats | None:  # fmt: skip
    """One linear program on the tangent plane at v: most room, or greatest weighted distance.

    pull : distance times rate, to first order
    """
    passing, failing = (covered, covered[:0]) if held is None else held.sets(covered)
    if part.points is not None or not len(passing):
        return None
    if weight is not None and not len(covered):
        return None
    tangent, backward, forward = part.steps(v, step)
    every = part.scores(v[None, :])[0]
    scores, ends = every[covered], every + part.reach
    slopes = part.y[covered] @ tangent.T
    # Variables: the step x, b − the largest score now, the room c.
    top = float(scores.max()) if len(covered) else float(ends[passing].min())
    room = 1.0 if weight is None else 0.0

    def side(agents: Numbers, sign: float) -> Floats:
        ones = np.ones((len(agents), 1))
        turned = slopes if agents is covered else part.y[agents] @ tangent.T
        return np.hstack([sign * turned, -sign * ones, room * ones])

    parts = [side(covered, 1.0), side(passing, -1.0)]
    right = [top - scores, every[passing] - top + part.reach[passing]]
    if held is not None:
        turned = held.rows @ tangent.T
        parts += [side(failing, 1.0), np.hstack([-turned, np.zeros((len(turned), 2))])]
        right += [top - ends[failing], np.maximum(0.0, held.shift + held.rows @ v)]
    if weight is None:
        cost = np.append(np.zeros(len(tangent) + 1), 1.0)
    else:
        cost = np.append(-(weight @ slopes), [float(weight.sum()), 0.0])
        if pull is not None:
            rate, height = float(pull @ v), _height(part, v, covered, held=held)
            cost *= rate
            cost[: len(tangent)] += max(0.0, height) * (tangent @ pull)
    span = float(part.reach[passing].max()) + 4.0
    least, most = np.append(backward, [-span, -span]), np.append(forward, [span, span])
    rows = Inequalities(np.vstack(parts), np.concatenate(right))
    return _moved(part, v, tangent, linear_program(cost, rows, least, most, seconds))


def _moved(part: Part, v: Floats, tangent: Floats, solution: Floats | None) -> Floats | None:
    """The direction after the step that a linear program begins with, back on the sphere."""
    if solution is None:
        return None
    return part.onto(v + solution[: len(tangent)] @ tangent)
