"""The agents in the frame of a proof, with a bound on everything that was rounded on the way."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipmech.checker.content import Look, number_at, numbers, reject
from mipmech.checker.exact import dot, fractions, mantissas, root, sum_of_products, up
from mipmech.checker.witness import ExactInstance

Floats = NDArray[np.float64]

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
# More steps of tilting than there can be lines.
MOST_STEPS = 1 << 40
# What vanishes in a float, or in the square of one.
TINY = 1e-150


class Agents:
    """The agents that count, in the coordinates of the proof.

    The score of agent i, for a direction v on the unit sphere of R^d, is shift_i + v·y_i to within
    slack_i, whatever was rounded.

    y : (d, m) array; shift, slack, reach, weight : (m,) arrays
    p : (d,) array with |v·p − exact| ≤ p_error for the gain, over a power of two such that ‖p‖ is
        about 1; None for density
    gain_unit : gains come in multiples of this
    steps : how many a round of tilting may take
    """

    def __init__(
        self, exact: ExactInstance, proof: dict[str, Any], eta: Fraction | None, band: Fraction
    ) -> None:
        instance = exact.instance
        k, n = exact.rank, instance.width
        frame = numbers(proof.get("frame"), (k, n), "proof.frame")
        centre = numbers(proof.get("centre"), (n,), "proof.centre")
        self.unit = number_at(proof, "unit", "proof.")
        if not (self.unit > 0 and math.frexp(self.unit)[0] == 0.5 and 1e-250 < self.unit < 1e250):
            reject("proof.unit is not a power of two")
        self.steps = _steps(proof)
        error = exact.frame_error(frame)
        if error > Fraction(1, 1000):
            reject("proof.frame is not an orthonormal basis of what the planner sees")
        self.frame_error = up(error)
        counts = instance.weights > 0
        # Only columns that are seen: others, in other units perhaps, must not blur anything.
        used = (instance.view.matrix != 0).any(axis=0) | (frame != 0).any(axis=0)
        offsets = (instance.agents[counts][:, used] - centre[used]) / self.unit
        if not np.abs(offsets).max() <= LARGEST:
            reject("proof.unit is far too small for these agents")
        lengths = np.sqrt((offsets**2).sum(axis=1))
        exact.look()
        z = offsets @ frame[:, used].T
        # One rounding in the subtraction, n + 1 in a sum of products, k such sums; the frame.
        rough = self.frame_error + 2 * (n + 4) * math.sqrt(k) * EPSILON
        slack = 1.01 * rough * lengths + TINY
        cost = instance.cost[counts]
        reach = 1 / cost / self.unit
        # Squares and products of such numbers neither overflow nor vanish.
        if not (max(lengths.max(), reach.max()) >= 1 / LARGEST and reach.max() <= LONGEST):
            reject("proof.unit is far from the size of this sample")
        self.gain_unit = Fraction(self.unit)
        self.p: Floats | None = None
        self.p_error = 0.0
        if eta is None:
            y, shift = z, np.zeros(len(z))
            self._take_quality(exact, frame)
        else:
            y, shift, tilt = self._slice(exact, frame, z, eta, band)
            slack = slack + tilt
        exact.look()
        length = np.sqrt((y**2).sum(axis=1)) + np.abs(shift)
        # Scores differ by less than this, and b may be the greatest score of those covered.
        if eta is not None and float((length + slack).max()) <= LONG / 3:
            reach = np.minimum(reach, LONG)
        slack = slack + 64 * (k + 2) * EPSILON * length + 16 * EPSILON * reach
        self.y = np.ascontiguousarray(y.T)
        self.shift, self.slack, self.reach = shift, slack, reach
        self.length = length
        self.exact_weights = Weights(instance.weights[counts], eta is not None, exact.look)
        self.weight = self.exact_weights.floats
        self.touch = TOUCH * min(1.0, float(reach.min()))
        self.low, self.high = self._thresholds(proof)

    def _take_quality(self, exact: ExactInstance, frame: Floats) -> None:
        """p, over a power of two, so that it never vanishes."""
        size = root(exact.seen_square)[1]
        scale = Fraction(2) ** (size.numerator.bit_length() - size.denominator.bit_length())
        self.p = np.array([float(dot(fractions(row), exact.seen) / scale) for row in frame])
        self.p_error = up(size / scale) * (self.frame_error + 4 * exact.rank * EPSILON)
        self.gain_unit *= scale

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
        p = [dot(fractions(row), exact.seen) for row in frame]
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
