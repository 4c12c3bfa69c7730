"""The agents in the frame of a proof, with a bound on everything that was rounded on the way."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipmech.checker.content import Look, number_at, numbers, reject
from mipmech.checker.demanded import ClaimedRequirements
from mipmech.checker.exact import dot, down, mantissas, root, sum_of_products, up
from mipmech.checker.together import Limits
from mipmech.checker.witness import ExactInstance

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

# Half the distance from 1 to the next float: the relative error of one operation.
EPSILON = 2.0**-53
# Relative errors of a few operations (weights, reaches, roots), many times over.
RELATIVE = 2.0**-40
# Ties nearer than this (in reaches) are broken in one fixed way: docs/proof-format.md.
TOUCH = 2.0**-30
# A reach of this many units never binds for density, if all agents are within a third of it.
LONG = 4.0
# Agents are within this many units of the centre, reaches not beyond that many.
LARGEST, LONGEST = 2.0**100, 2.0**210
# The same for features that have prices, which are at least 1e-30, before they count.
FARTHEST = 2.0**300
# More steps of tilting than there can be lines.
MOST_STEPS = 1 << 40
# What vanishes in a float, or in the square of one.
TINY = 1e-150


class Agents:
    """The agents that count, in the coordinates of the proof.

    The score of agent i, for a direction v of length 1 in R^d, is shift_i + v·y_i to within
    slack_i, whatever was rounded.

    norm : of the costs; the length of v is dual to it
    y : (d, m) array; shift, slack, reach, weight : (m,) arrays
    p : (d,) array for the gain, with which no rate (v·p for l2) is off by more than p_error, over a
        power of two such that the greatest rate is about 1; None for density
    wide : what more than m + 64 terms sums count as, for the rounding of ranges
    gain_unit : gains come in multiples of this
    steps : how many a round of tilting may take
    mass : (c, m) array, of each class, c = 0 if it does not matter who is accepted
    limits : on the mass accepted
    rows, row_room : (r, d), (r,) arrays: rows·v ≥ 0 is demanded, up to the room
    strict : whether some direction meets all rows with room to spare
    ranks : (d + 1, m) array, how agents are ordered, exactly, by the feature behind each coordinate
        and by their reach; (0, m) if coordinates mix features, or if it does not matter
    """

    def __init__(
        self,
        exact: ExactInstance,
        proof: dict[str, Any],
        eta: Fraction | None,
        band: Fraction,
        demanded: ClaimedRequirements | None = None,
        valued: bool = True,
    ) -> None:
        """``valued`` is False if a claim says nothing of what rules are worth."""
        instance = exact.instance
        k, n = exact.rank, instance.width
        self.norm = exact.norm
        self.wide = 0 if self.norm == "l2" else k * k
        frame = numbers(proof.get("frame"), (k, n), "proof.frame")
        centre = numbers(proof.get("centre"), (n,), "proof.centre")
        self.unit = _unit(proof)
        self.steps = _steps(proof)
        self.frame_error = _frame_error(exact, frame)
        counts = instance.weights > 0
        # Only columns that are seen: others, in other units perhaps, must not blur anything.
        used = (instance.view.matrix != 0).any(axis=0) | (frame != 0).any(axis=0)
        offsets = (instance.agents[counts][:, used] - centre[used]) / self.unit
        if not np.abs(offsets).max() <= (LARGEST if instance.costs.plain else FARTHEST):
            reject("proof.unit is far too small for these agents")
        exact.look()
        z = offsets @ frame[:, used].T
        lengths, slack = _rounded(exact, frame[:, used], offsets, used, z, self.frame_error)
        slack = slack + TINY
        exact.look()
        reach = exact.reach[counts] / self.unit
        if not lengths.max() <= 2 * math.sqrt(n) * LARGEST:
            reject("proof.unit is far too small for these agents")
        # Squares and products of such numbers neither overflow nor vanish.
        if not (max(lengths.max(), reach.max()) >= 1 / LARGEST and reach.max() <= LONGEST):
            reject("proof.unit is far from the size of this sample")
        self.gain_unit = Fraction(self.unit)
        self.p: Floats | None = None
        self.p_error = 0.0
        if eta is None:
            y, shift = z, np.zeros(len(z))
            if valued:
                self._take_quality(exact, frame)
        else:
            y, shift, tilt = self._slice(exact, frame, z, eta, band)
            slack = slack + tilt
        exact.look()
        length = sizes_of(y, self.norm) + np.abs(shift)
        # Scores differ by less than this, and b may be the greatest score of those covered.
        if eta is not None and float((length + slack).max()) <= LONG / 3:
            reach = np.minimum(reach, LONG)
        terms = (k + 2) * (1 if self.norm == "l2" else k)
        slack = slack + 64 * terms * EPSILON * length + 16 * EPSILON * reach
        self.y = np.ascontiguousarray(y.T)
        self.shift, self.slack, self.reach = shift, slack, reach
        self.length = length
        self.exact_weights = Weights(instance.weights[counts], self.p is None, exact.look)
        self.weight: Floats = self.exact_weights.floats
        self.touch = TOUCH * min(1.0, float(reach.min()))
        self.low, self.high = self._thresholds(proof)
        self._take_demands(exact, demanded, frame)

    def _take_quality(self, exact: ExactInstance, frame: Floats) -> None:
        """p, over a power of two, so that it never vanishes."""
        size = root(exact.seen_square)[1]
        scale = Fraction(2) ** (size.numerator.bit_length() - size.denominator.bit_length())
        self.p = np.array([float(value / scale) for value in exact.rates(frame)])
        self.p_error = up(size / scale) * (self.frame_error + 4 * exact.rank * EPSILON)
        self.gain_unit *= scale

    def _take_demands(
        self, exact: ExactInstance, demanded: ClaimedRequirements | None, frame: Floats
    ) -> None:
        demanded = ClaimedRequirements(None, exact) if demanded is None else demanded
        self.rows, self.row_room = demanded.rows(exact, frame, self.frame_error)
        # Where facets of l1 meet, agents do what is best on one of them: that one must stay.
        self.strict = demanded.strict and self.norm != "l1"
        self.mass = np.empty((0, len(self.reach)))
        self.ranks = np.empty((0, len(self.reach)), np.int64)
        self.limits = Limits(np.empty(0), 0.0, 0.0, 0.0)
        if demanded.limited:
            self._take_limits(exact, demanded)
            self._take_ranks(exact, frame)

    def _take_ranks(self, exact: ExactInstance, frame: Floats) -> None:
        """Only where each coordinate is one feature, times a number above 0."""
        if not ((frame != 0).sum(axis=1) == 1).all() or (frame < 0).any():
            return
        instance = exact.instance
        columns = (frame != 0).argmax(axis=1)
        counts = instance.weights > 0
        paid = instance.costs.values[counts][self.first]
        far = paid if instance.costs.given == "reach" else -paid
        features = instance.agents[counts][self.first][:, columns].T
        self.ranks = np.array(
            [np.unique(values, return_inverse=True)[1].reshape(-1) for values in [*features, far]]
        ).astype(np.int64)

    def _take_limits(self, exact: ExactInstance, demanded: ClaimedRequirements) -> None:
        """Masses, and one agent in the place of all that are alike: these are accepted together."""
        instance = exact.instance
        used = (instance.view.matrix != 0).any(axis=0)
        if exact.columns is not None:
            used = np.isin(np.arange(instance.width), sorted(exact.columns))
        counts = np.flatnonzero(instance.weights > 0)
        masses = Weights(instance.weights[counts], True, exact.look)
        members = demanded.members[counts]
        table = np.column_stack(
            [instance.agents[counts][:, used] + 0.0, instance.costs.values[counts]]
        )
        _, first, place = np.unique(table, axis=0, return_index=True, return_inverse=True)
        place = place.reshape(-1)
        exact.look()
        # In the order of the instance.
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        place, first = rank[place], np.sort(first)
        self.first = first
        number, size = len(first), int(members.max()) + 1
        self.mass = np.zeros((size, number))
        for c in range(size):
            own = members == c
            self.mass[c] = np.bincount(place[own], weights=masses.floats[own], minlength=number)
        together = np.bincount(place, weights=self.weight, minlength=number)
        # Upwards by more than the sums are rounded.
        many = np.bincount(place, minlength=number)
        self.weight = np.where(many > 1, together * (1 + 2 * many * EPSILON), together)
        self.y = np.ascontiguousarray(self.y[:, first])
        self.shift, self.slack, self.reach = self.shift[first], self.slack[first], self.reach[first]
        self.length = self.length[first]
        low, high = demanded.low / masses.share, demanded.high / masses.share
        within = 1.0 if demanded.within is None else up(demanded.within)
        if masses.whole:
            self.limits = Limits(self.mass.sum(axis=1), math.ceil(low), math.floor(high), within)
        else:  # sums of shares are rounded
            room = 4 * (len(counts) + 4) * EPSILON
            totals = self.mass.sum(axis=1)
            within += room / float(totals.min())
            self.limits = Limits(totals, down(low) - room, up(high) + room, within, whole=False)

    @property
    def dimension(self) -> int:
        """d, the dimension of the space of v."""
        return len(self.y)

    def _thresholds(self, proof: dict[str, Any]) -> tuple[float, float]:
        """All thresholds that matter, and not absurdly more."""
        low, high = numbers(proof.get("thresholds"), (2,), "proof.thresholds")
        if max(-low, high) > LARGEST * (1 + self.reach.max()):
            reject("proof.thresholds are far from the size of this sample")
        if low > -(self.length + self.slack).max() or high < (
            self.length + self.slack + self.reach
        ).max() * (1 + RELATIVE):
            reject("proof.thresholds leaves out thresholds that matter")
        return float(low), float(high)

    def _slice(
        self, exact: ExactInstance, frame: Floats, z: Floats, eta: Fraction, band: Fraction
    ) -> tuple[Floats, Floats, Floats]:
        """Scores of the directions at η: u = (c, s·v) with c = η/‖p‖ if the first axis is p's."""
        if exact.seen_square == 0:
            if eta != 0:
                reject("P w_f is 0, so only η = 0 has rules")
            return z, np.zeros(len(z)), np.zeros(len(z))
        low, high = root(exact.seen_square)
        p = exact.rates(frame)
        off = root((p[0] - high) ** 2 + dot(p[1:], p[1:]))[1] / low + 2 * Fraction(self.frame_error)
        ends = sorted((eta / low, eta / high))
        c0 = max(Fraction(-1), ends[0] - band - off)
        c1 = min(Fraction(1), ends[1] + band + off)
        if c0 > 1 or c1 < -1:
            reject("no direction has this η")
        if off > Fraction(1, 1000):
            reject("the first axis of proof.frame does not point along P w_f")
        nearest = Fraction(0) if c0 <= 0 <= c1 else min(abs(c0), abs(c1))
        s0 = root(max(Fraction(0), 1 - max(c0 * c0, c1 * c1)))[0]
        s1 = root(1 - nearest * nearest)[1]
        c, s = float((c0 + c1) / 2), float((s0 + s1) / 2)
        c_off = up(max(c1 - Fraction(c), Fraction(c) - c0))
        s_off = up(max(s1 - Fraction(s), Fraction(s) - s0))
        across = np.sqrt((z[:, 1:] ** 2).sum(axis=1))
        tilt = 1.01 * (c_off * np.abs(z[:, 0]) + s_off * across)
        return s * z[:, 1:], c * z[:, 0], tilt


def sizes_of(vectors: Floats, norm: str) -> Floats:
    """No score of a direction of length 1 is larger, (n,) array: the norms of the rows."""
    if norm == "l2":
        return np.asarray(np.sqrt((vectors**2).sum(axis=1)))
    absolute = np.abs(vectors)
    return np.asarray(absolute.sum(axis=1) if norm == "l1" else absolute.max(axis=1, initial=0.0))


def _frame_error(exact: ExactInstance, frame: Floats) -> float:
    """How far the frame is from an exact one."""
    if exact.norm != "l2":
        # Coordinates are features times their prices, in the order of the columns seen.
        wanted = np.zeros_like(frame)
        columns, prices = sorted(exact.columns or ()), exact.instance.costs.prices(len(frame.T))
        wanted[np.arange(len(columns)), columns] = prices[columns]
        if not np.array_equal(frame, wanted):
            reject("proof.frame does not multiply what the planner sees by the prices")
        return 0.0
    error = exact.frame_error(frame)
    if error > Fraction(1, 1000):
        reject("proof.frame is not an orthonormal basis of what the planner sees")
    return up(error)


def _rounded(
    exact: ExactInstance, frame: Floats, offsets: Floats, used: Flags, z: Floats, error: float
) -> tuple[Floats, Floats]:
    """The sizes of agents about the centre, and by how much their scores may be off.

    frame, offsets : (k, u), (m, u) arrays, the columns that are used; z : (m, k) array
    """
    if exact.norm != "l2":
        # One number of the frame in each row: three roundings of each coordinate.
        return sizes_of(z, exact.norm), 4 * EPSILON * sizes_of(z, exact.norm)
    k, n = frame.shape[0], exact.instance.width
    if exact.instance.costs.plain:
        lengths = np.sqrt((offsets**2).sum(axis=1))
        # One rounding in the subtraction, n + 1 in a sum of products, k such sums; the frame.
        return lengths, 1.01 * (error + 2 * (n + 4) * math.sqrt(k) * EPSILON) * lengths
    effort = np.asarray(exact.instance.costs.effort)
    if effort.ndim == 1:
        lengths = 1.01 * np.sqrt(((offsets * effort[used]) ** 2).sum(axis=1))
    else:
        # The rounding of Δᵀ M Δ, whose terms may cancel.
        matrix = effort[np.ix_(used, used)]
        terms = (np.abs(offsets) @ np.abs(matrix) * np.abs(offsets)).sum(axis=1)
        squares = ((offsets @ matrix) * offsets).sum(axis=1) + 4 * (n + 4) * EPSILON * terms
        lengths = 1.01 * np.sqrt(np.maximum(squares, 0.0))
    # The same for products with the frame, which M may make large.
    products = np.abs(offsets) @ np.abs(frame).T
    rounded = 2 * (n + 4) * EPSILON * np.sqrt((products**2).sum(axis=1))
    return lengths, 1.01 * (error * lengths + rounded)


def _unit(proof: dict[str, Any]) -> float:
    unit = number_at(proof, "unit", "proof.")
    if not (unit > 0 and math.frexp(unit)[0] == 0.5 and 1e-250 < unit < 1e250):
        reject("proof.unit is not a power of two")
    return unit


def _steps(proof: dict[str, Any]) -> int:
    """How many steps a round of tilting may take; one for each line if the proof does not say."""
    steps = number_at(proof, "steps", "proof.") if "steps" in proof else MOST_STEPS
    if not 1 <= steps <= MOST_STEPS:
        reject("proof.steps is not a number of steps")
    return int(steps)


class Weights:
    """Weights for sums in floats, and the way back to shares of all.

    For density they are whole numbers if those are small enough, so that sums are exact.
    """

    def __init__(self, weights: Floats, exact: bool, look: Look) -> None:
        integers, power = mantissas(weights)
        # Without their factors of two (the lowest bit of i is i & -i), greatest common divisors
        # stay small.
        twos = np.frexp((integers & -integers).astype(np.float64))[1].astype(np.int64) - 1
        odd, power = integers >> twos, power + twos
        common, lowest = int(np.gcd.reduce(odd)), int(power.min())
        unit = common * Fraction(2) ** lowest
        total = sum_of_products(weights, np.ones(len(weights)), look)
        self.whole = exact and total // unit < 1 << 52
        if self.whole:
            self.floats = np.ldexp((odd // common).astype(np.float64), power - lowest)
            self.share = unit / total
        else:
            self.floats = weights / weights.max()
            self.floats /= math.fsum(self.floats)
            self.share = Fraction(1)
