"""The circle of directions: every place where the set of covered agents changes.

The basis of `sweep` (density) and of the tests' `sweep_gain`. O(m² log m), plain, and sharing no
code with the other exact oracles, which are tested against it.

One agent sets the threshold. If (u, b) covers a set of agents, b can be raised to the smallest
right end u·z_i + ℓ_i among them without losing any. So for every agent i in turn take that b;
then agent j is covered iff

    0 ≤ u·(z_i − z_j) + ℓ_i ≤ ℓ_j      (both ends closed).

On a circle u = fixed + turning·(cos φ, sin φ) and u·(z_i − z_j) = still + D cos(φ − φ₀), so j is
covered on at most two arcs, |φ − φ₀| ∈ [arccos(high/D), arccos(low/D)]. One sort of their ends per
i, and running sums, give every set that is ever covered together with i at its right end.

Rounding. For upper bounds the levels ``low`` and ``high`` are moved apart, not the angles: where
D cos hardly reaches a level, the angle is off by the root of the rounding, the level never by more
than D times the rounding of the angles. What moves them is the rounding of z, of p, of reach, of
the angles, and for density the width of the band of η. So every agent truly covered at φ is counted
at φ, and an agent that touches an end is counted on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mipmech.model.geometry import Geometry
from mipmech.rationals import common_integers
from mipmech.tolerances import EPSILON, SAFETY, UNDERFLOW
from mipmech.validation import Floats, Numbers

Number = TypeVar("Number", np.float64, np.int64)

CIRCLE = 2 * math.pi
# Angles up to 2π out of an arctangent, an arccosine (each good to four units in the last place) and
# a handful of additions are good to less than this; times a length, so are their levels.
ANGLE_ERROR = 128 * EPSILON
# Reach and differences of reach are good to this share of themselves.
REACH_ERROR = 8 * EPSILON
# A turn that no sweep reaches: where agents come and go that are never covered, or always.
NOWHERE = 100.0
# Comings and goings in one batch: few enough to stay in the cache, enough to make numpy fast.
EVENTS_AT_ONCE = 1 << 18
# Sums of whole weights stay below this, so that 64 bits hold them.
MOST_MASS = 1 << 61


# ------------------------------------------------------------------ the circle and its arcs


@dataclass(frozen=True, eq=False)
class Circle:
    """Agents whose scores turn: agent i has the score still_i + turning_i·(cos φ, sin φ).

    still, turning : (m,) and (m, 2) arrays
    reach : (m,) array, in multiples of the unit
    cost : (m,) array, of which reaches are the rounded inverses; None if reaches are given
    slack : (m,) array; a score at φ is off by no more, the rounding of φ included
    begin, span : the sweep takes φ from ``begin`` on, so far
    """

    still: Floats
    turning: Floats
    reach: Floats
    cost: Floats | None
    slack: Floats
    unit: float
    begin: float
    span: float

    def chunks(self, rows: Numbers, at_once: int) -> Iterator[Numbers]:
        """The rows in portions of about this many numbers, one per agent."""
        size = max(1, at_once // len(self.reach))
        return (rows[first : first + size] for first in range(0, len(rows), size))

    def pairs(self, rows: Numbers, widened: float) -> tuple[Floats, Floats, Floats, Floats]:
        """x, y, low, high, all (c, m): agent j is covered at the right end of agent i = rows[·] iff
        low ≤ x cos φ + y sin φ ≤ high, with both levels moved out ``widened`` times their rounding.
        """
        i = rows[:, None]
        x = self.turning[i, 0] - self.turning[:, 0]
        y = self.turning[i, 1] - self.turning[:, 1]
        apart = self.still[i] - self.still
        # ℓ_j − ℓ_i, accurate to a few units in its last place, however long both are.
        if self.cost is None:
            longer = self.reach - self.reach[i]
        else:
            longer = (self.cost[i] - self.cost) * self.reach[i] * (self.reach * self.unit)
        low = -self.reach[i] - apart
        high = longer - apart
        if widened:
            slack = self.slack[i] + self.slack
            low -= widened * (slack + REACH_ERROR * self.reach[i])
            high += widened * (slack + REACH_ERROR * np.abs(longer))
        return x, y, low, high


@dataclass(frozen=True, eq=False)
class Events:
    """Who comes and goes where, for each agent i of a chunk; agents covered always are in entered.

    turns : (c, 4m) array, ascending: how far after the beginning of the sweep
    order : (c, 4m) array, which event: j or m + j if j comes, 2m + j or 3m + j if it goes
    entered : (c, m) array, how many of j's arcs hold the beginning
    """

    turns: Floats
    order: Numbers
    entered: Numbers

    def running(self, values: NDArray[Number], count: int) -> NDArray[Number]:
        """Sums over the covered, (c, count + 1): at the beginning and after each of the events.

        values : (c, m) array
        """
        signed = np.concatenate([values, values, -values, -values], axis=1)
        changes = np.take_along_axis(signed, self.order[:, :count], axis=1)
        first = np.sum(values * self.entered, axis=1, keepdims=True, dtype=values.dtype)
        sums: NDArray[Number] = np.concatenate([first, first + np.cumsum(changes, axis=1)], axis=1)
        return sums


def events_of(circle: Circle, rows: Numbers, widened: float) -> Events:
    """All comings and goings with agent i = rows[·] at its right end."""
    x, y, low, high = circle.pairs(rows, widened)
    size = np.hypot(x, y)
    divisor = np.maximum(size, UNDERFLOW)
    near = np.where(high >= size, 0.0, np.arccos(np.clip(high, -size, size) / divisor))
    far = np.where(low <= -size, math.pi, np.arccos(np.clip(low, -size, size) / divisor))
    possible = (low <= high) & (high >= -size) & (low <= size)
    nearest, farthest = near == 0, far == math.pi
    always = possible & nearest & farthest
    two = possible & ~nearest & ~farthest
    one = possible & ~always  # the first arc of two, or the only one
    middle = np.arctan2(y, x) - circle.begin
    start = np.stack([np.where(nearest, -far, near), -far], axis=1)
    first = np.where(nearest, 2 * far, np.where(farthest, 2 * (math.pi - near), far - near))
    length = np.stack([first, far - near], axis=1)
    comes = np.mod(middle[:, None] + start, CIRCLE) + 0.0
    goes = comes + length
    wraps = goes >= CIRCLE
    goes -= np.where(wraps, CIRCLE, 0.0)
    exists = np.stack([one, two], axis=1)
    entered = (wraps & exists).sum(axis=1) + always
    comes[~exists] = NOWHERE
    goes[~exists] = NOWHERE
    # Both ends are closed: the last bit tells coming (0) from going (1), so that of two events at
    # the same place the coming is first. It makes an arc longer by a unit in the last place.
    coming, going = comes.view(np.int64), goes.view(np.int64)
    coming &= -2
    going |= 1
    m = x.shape[1]
    turns = np.concatenate([comes.reshape(-1, 2 * m), goes.reshape(-1, 2 * m)], axis=1)
    order = np.argsort(turns, axis=1)
    return Events(np.take_along_axis(turns, order, axis=1), order, entered)


# ------------------------------------------------------------------ from the geometry


def circle_of(
    geometry: Geometry, still: Floats, basis: Floats, tilt: float, begin: float, span: float
) -> Circle:
    """The agents that count, turning in the plane of the basis (2, k); directions are off by tilt.

    still : (m,) array, of those that count
    """
    counts = geometry.instance.weights > 0
    z = geometry.z[counts]
    lengths = np.hypot.reduce(np.abs(z), axis=1)
    # Products of k terms, twice, and the angles; on a line there is only a sign.
    turned = ANGLE_ERROR + 8 * (geometry.rank + 4) * EPSILON
    share = tilt + (turned if geometry.rank > 1 else 4 * EPSILON)
    costs = geometry.instance.costs
    return Circle(
        still=still, turning=z @ basis.T, reach=geometry.reach[counts],
        cost=costs.cost[counts] if costs.given == "cost" else None,
        slack=geometry.rounding.z[counts] + SAFETY * share * lengths, unit=geometry.unit,
        begin=begin, span=span,
    )  # fmt: skip


def unit_vector(vector: Floats) -> Floats:
    """The vector, which is neither tiny nor huge, made of length one."""
    return vector / np.linalg.norm(vector)


def off_of_p(geometry: Geometry) -> float:
    """How far p̂ may be from the exact one."""
    return min(2.0, 2 * geometry.rounding.p / geometry.p_norm)


def tilt_at(geometry: Geometry, eta: float) -> float:
    """How far a unit vector of the band may be from the nearest one at η, that is at acos(η/‖p‖).

    The rounding of η/‖p‖ is lost in what SAFETY adds to the band.
    """
    size = geometry.p_norm
    if size == 0:
        return 0.0
    share = max(-1.0, min(1.0, eta / size))
    angle, band = math.acos(share), geometry.band * SAFETY
    low = angle - math.acos(min(1.0, share + band))
    high = math.acos(max(-1.0, share - band)) - angle
    return max(low, high) + off_of_p(geometry) + 8 * EPSILON


def masses(weights: Floats) -> tuple[Numbers, Fraction]:
    """Positive weights as whole numbers, and the density of one.

    Exact, unless the weights span more than 64 bits; then they are rounded up.
    """
    if (weights == weights[0]).all():
        return np.ones(len(weights), np.int64), Fraction(1, len(weights))
    integers, _shift = common_integers(weights)
    total = int(integers.sum())
    common = math.gcd(*(int(n) for n in integers))
    if total // common < MOST_MASS:
        return np.array([int(n) // common for n in integers], np.int64), Fraction(common, total)
    whole = [-(-int(n) * MOST_MASS // total) for n in integers]
    return np.array(whole, np.int64), Fraction(1, MOST_MASS)
