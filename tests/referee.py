"""Second opinions that share no code with the package: slow, plain, and exact where possible.

Only instances' raw arrays are read. `Root` is a number a + c√N with rational a, c, N; its sign is
decided in rationals, so thresholds s_i + ℓ_i√N along a direction can be compared exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, getcontext
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace

import numpy as np

getcontext().prec = 80


@dataclass(frozen=True)
class Sample:
    x: list[list[Fraction]]
    w_f: list[Fraction]
    b_f: Fraction
    cost: list[Fraction]
    weight: list[Fraction]

    @classmethod
    def of(cls, instance):
        weights = [Fraction(float(v)) for v in instance.weights]
        total = sum(weights)
        return cls(
            [[Fraction(float(v)) for v in row] for row in instance.agents],
            [Fraction(float(v)) for v in instance.quality],
            Fraction(instance.quality_offset),
            [Fraction(float(v)) for v in instance.cost],
            [w / total for w in weights],
        )


def dot(a, b):
    return sum((p * q for p, q in zip(a, b, strict=True)), Fraction(0))


def exact_weights(instance, mechanism):
    """The mechanism's weights as rationals: Bᵀv for a general view."""
    if mechanism.view_weights is None:
        return [Fraction(w) for w in mechanism.weights]
    v = [Fraction(w) for w in mechanism.view_weights]
    columns = instance.view.matrix.T
    return [dot([Fraction(float(c)) for c in column], v) for column in columns]


@dataclass(frozen=True)
class Truth:
    inside: list[bool]
    density: Fraction
    gain: Fraction
    value: Fraction
    accepted_quality: Fraction | None


def truth(instance, weights, threshold) -> Truth:
    """Lemma 1 agent by agent, in rationals."""
    s = Sample.of(instance)
    w, b = list(weights), Fraction(threshold)
    square = dot(w, w)
    distance = [b - dot(w, x) for x in s.x]
    inside = [d >= 0 and (d * c) ** 2 <= square for d, c in zip(distance, s.cost, strict=True)]
    quality = [dot(s.w_f, x) - s.b_f for x in s.x]
    after = []
    for d, i, x in zip(distance, inside, s.x, strict=True):
        moved = [v + (d * wj / square if i else 0) for v, wj in zip(x, w, strict=True)]
        after.append(dot(s.w_f, moved) - s.b_f)
    passed = [i or d < 0 for i, d in zip(inside, distance, strict=True)]
    mass = sum((o for o, p in zip(s.weight, passed, strict=True) if p), Fraction(0))
    accepted = sum(
        (o * q for o, q, p in zip(s.weight, after, passed, strict=True) if p), Fraction(0)
    )
    return Truth(
        inside,
        sum((o for o, i in zip(s.weight, inside, strict=True) if i), Fraction(0)),
        dot(s.weight, after) - dot(s.weight, quality),
        dot(s.weight, after),
        accepted / mass if mass else None,
    )


def in_floats(instance, mechanism):
    """The same and more in floats; ties are settled as floats happen to round."""
    w = np.array(mechanism.weights) / np.linalg.norm(mechanism.weights)
    distance = mechanism.threshold / np.linalg.norm(mechanism.weights) - instance.agents @ w
    moved = (distance >= 0) & (distance * instance.cost <= 1)
    accepted = moved | (distance < 0)
    weight = instance.weights / instance.weights.sum()
    before = instance.agents @ instance.quality - instance.quality_offset
    moves = np.where(moved, distance, 0.0)
    after = (instance.agents + moves[:, None] * w) @ instance.quality - instance.quality_offset
    share = float(weight @ accepted)
    return SimpleNamespace(
        moved=moved,
        accepted=accepted,
        density=float(weight @ moved),
        soft_density=float(weight @ moves),
        gain=float(weight @ (after - before)),
        baseline=float(weight @ before),
        value=float(weight @ after),
        accepted_share=share,
        accepted_quality=float(weight[accepted] @ after[accepted]) / share if share else None,
    )


@dataclass(frozen=True)
class Root:
    a: Fraction
    c: Fraction
    n: Fraction

    def sign(self) -> int:
        left, right = self.a, self.c
        if left >= 0 and right >= 0:
            return int(left > 0 or (right > 0 and self.n > 0))
        if left <= 0 and right <= 0:
            return -int(left < 0 or (right < 0 and self.n > 0))
        squares = left * left - right * right * self.n
        bigger_rational = (squares > 0) - (squares < 0)
        return bigger_rational if left > 0 else -bigger_rational

    def decimal(self) -> Decimal:
        def as_decimal(value: Fraction) -> Decimal:
            return Decimal(value.numerator) / Decimal(value.denominator)

        return as_decimal(self.a) + as_decimal(self.c) * as_decimal(self.n).sqrt()


def best_soft_density(instance, weights) -> Decimal:
    """max over all real b of Σ ω_i d_i (times ‖w‖), trying b = s_i + ℓ_i‖w‖ for every i."""
    s = Sample.of(instance)
    w = list(weights)
    n = dot(w, w)
    score = [dot(w, x) for x in s.x]
    best = Decimal(0)
    for si, ci in zip(score, s.cost, strict=True):
        total = Root(Fraction(0), Fraction(0), n)
        for sj, cj, oj in zip(score, s.cost, s.weight, strict=True):
            not_above = Root(si - sj, 1 / ci, n).sign() >= 0
            in_reach = Root(si - sj, 1 / ci - 1 / cj, n).sign() <= 0
            if not_above and in_reach:
                total = Root(total.a + oj * (si - sj), total.c + oj / ci, n)
        best = max(best, total.decimal())
    return best


def best_density(instance, weights, room=Fraction(0)) -> Fraction:
    """max over all real b of the density, trying every end of every interval.

    With room, margins are shortened at both ends by that share of their reach: what is still
    attained then can be attained with a float.
    """
    s = Sample.of(instance)
    w = list(weights)
    n = dot(w, w)
    score = [dot(w, x) for x in s.x]
    best = Fraction(0)
    ends = [(a, room / c) for a, c in zip(score, s.cost, strict=True)]
    ends += [(a, (1 - room) / c) for a, c in zip(score, s.cost, strict=True)]
    for a, c in ends:
        total = Fraction(0)
        for sj, cj, oj in zip(score, s.cost, s.weight, strict=True):
            after_start = Root(a - sj, c - room / cj, n).sign() >= 0
            if after_start and Root(a - sj, c - (1 - room) / cj, n).sign() <= 0:
                total += oj
        best = max(best, total)
    return best


def best_gain(instance) -> float:
    """The best gain of any mechanism where the planner sees one or two columns, to about 1e-12.

    One column: two directions. Two columns: for each agent i that may set the threshold
    b = u·z_i + ℓ_i, the covered set changes only at angles where u·(z_i − z_j) + ℓ_i is 0 or ℓ_j;
    on an arc between them the gain is ‖p‖ cos θ (A cos(θ − α) + c), whose stationary points are the
    zeros of A sin(2θ − α) + c sin θ.
    """
    columns = list(instance.view.columns)
    z = instance.agents[:, columns]
    z = z - z.mean(axis=0)
    p = instance.quality[columns]
    counts = instance.weights > 0
    z, reach = z[counts], 1 / instance.cost[counts]
    weight = instance.weights[counts] / instance.weights[counts].sum()
    if not p.any():
        return 0.0
    if len(columns) == 1:
        u = np.sign(p)
        return float(max((_gain_at(z, p, reach, weight, u, i) for i in range(len(z))), default=0))
    assert len(columns) == 2
    base = math.atan2(p[1], p[0])
    best = 0.0
    for i in range(len(z)):
        angles = {base - math.pi / 2, base + math.pi / 2}
        for j in range(len(z)):
            difference = z[i] - z[j]
            size, phase = math.hypot(*difference), math.atan2(difference[1], difference[0])
            for level in (-reach[i], reach[j] - reach[i]):
                if size > 0 and abs(level) <= size:
                    turn = math.acos(level / size)
                    for angle in (phase + turn, phase - turn):
                        inside = (angle - base + math.pi) % (2 * math.pi) - math.pi
                        if abs(inside) < math.pi / 2:
                            angles.add(base + inside)
        ordered = sorted(angles)
        for low, high in pairwise(ordered):
            best = max(best, _best_on_arc(z, p, reach, weight, i, low, high, base))
    return best


def _covered(z, reach, u, i):
    distance = (z[i] - z) @ u + reach[i]
    slack = 1e-12 * (1 + np.abs(z).max() + reach)
    return (distance >= -slack) & (distance <= reach + slack)


def _gain_at(z, p, reach, weight, u, i):
    inside = _covered(z, reach, u, i)
    distance = (z[i] - z) @ u + reach[i]
    return float(u @ p * (weight[inside] @ distance[inside]))


def _best_on_arc(z, p, reach, weight, i, low, high, base):
    middle = (low + high) / 2
    u = np.array([math.cos(middle), math.sin(middle)])
    inside = _covered(z, reach, u, i)
    a = weight[inside] @ (z[i] - z[inside])
    c = float(weight[inside].sum()) * reach[i]
    size, alpha = math.hypot(*a), math.atan2(a[1], a[0]) - base

    def gain(theta):
        return math.hypot(*p) * math.cos(theta) * (size * math.cos(theta - alpha) + c)

    def slope(theta):
        return size * math.sin(2 * theta - alpha) + c * math.sin(theta)

    grid = np.linspace(low - base, high - base, 33)
    best = max(gain(grid[0]), gain(grid[-1]))
    for ends in pairwise(grid):
        left, right = ends
        if slope(left) * slope(right) <= 0:
            for _ in range(60):
                mid = (left + right) / 2
                left, right = (mid, right) if slope(left) * slope(mid) > 0 else (left, mid)
            best = max(best, gain(left))
    return best
