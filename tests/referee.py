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
    """An instance in rationals; prices are None where `effort` is a matrix, and the other way."""

    x: list[list[Fraction]]
    w_f: list[Fraction]
    b_f: Fraction
    reach: list[Fraction]
    weight: list[Fraction]
    norm: str
    prices: list[Fraction] | None
    matrix: list[list[Fraction]] | None

    @classmethod
    def of(cls, instance):
        weights = exact(instance.weights)
        total = sum(weights)
        costs = instance.costs
        paid = exact(costs.values)
        effort = np.ones(instance.agents.shape[1]) if costs.effort is None else costs.effort
        return cls(
            [exact(row) for row in instance.agents],
            exact(instance.quality),
            Fraction(instance.quality_offset),
            paid if costs.given == "reach" else [1 / c for c in paid],
            [w / total for w in weights],
            costs.norm,
            exact(effort) if effort.ndim == 1 else None,
            [exact(row) for row in effort] if effort.ndim == 2 else None,
        )


def exact(values):
    return [Fraction(float(v)) for v in values]


def dot(a, b):
    return sum((p * q for p, q in zip(a, b, strict=True)), Fraction(0))


def solve(matrix, right):
    """The x with matrix·x = right in rationals, or None if the matrix is singular."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for place in range(len(rows)):
        found = next((i for i in range(place, len(rows)) if rows[i][place]), None)
        if found is None:
            return None
        rows[place], rows[found] = rows[found], rows[place]
        for i in range(place + 1, len(rows)):
            share = rows[i][place] / rows[place][place]
            if share:
                rows[i] = [a - share * b for a, b in zip(rows[i], rows[place], strict=True)]
    x = [Fraction(0)] * len(rows)
    for place in reversed(range(len(rows))):
        known = dot(rows[place][place + 1 : -1], x[place + 1 :])
        x[place] = (rows[place][-1] - known) / rows[place][place]
    return x


def response(sample, weights):
    """N(w)², and the cheapest move that raises the score by 1: of those, the best for quality.

    Under linf a feature without weight may move or not at the same cost; it stays.
    """
    w, e = list(weights), sample.prices
    if sample.norm == "l2":
        if sample.matrix is not None:
            lifted = solve(sample.matrix, w)
        else:
            lifted = [wj / ej**2 for wj, ej in zip(w, e, strict=True)]
        square = dot(w, lifted)
        return square, [g / square for g in lifted]
    per_cost = [abs(wj) / ej for wj, ej in zip(w, e, strict=True)]
    if sample.norm == "l1":
        top = max(per_cost)
        moves = []
        for j, found in enumerate(per_cost):
            if found == top:
                moves.append([1 / w[j] if i == j else Fraction(0) for i in range(len(w))])
        return top**2, max(moves, key=lambda move: dot(sample.w_f, move))
    assert sample.norm == "linf"
    total = sum(per_cost)
    signs = [(wj > 0) - (wj < 0) for wj in w]
    return total**2, [sign / (ej * total) for sign, ej in zip(signs, e, strict=True)]


def response_in_floats(instance, weights):
    """N(w), and the move of `response`, in floats; features within 1e-12 of each other are equal.

    weights : (n,) array
    """
    w, costs, n = np.asarray(weights, dtype=float), instance.costs, instance.agents.shape[1]
    effort = np.ones(n) if costs.effort is None else costs.effort
    if costs.norm == "l2":
        lifted = w / effort**2 if effort.ndim == 1 else np.linalg.solve(effort, w)
        norm = math.sqrt(w @ lifted)
        return norm, lifted / norm / norm
    per_cost = np.abs(w) / effort
    if costs.norm == "l1":
        top = per_cost.max()
        equal = np.flatnonzero(per_cost >= top * (1 - 1e-12))
        best = max(equal, key=lambda j: instance.quality[j] / w[j])
        return float(top), np.where(np.arange(n) == best, 1 / w[best], 0.0)
    return float(per_cost.sum()), np.sign(w) / effort / per_cost.sum()


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
    """Lemma 1 agent by agent, in rationals, for any cost."""
    s = Sample.of(instance)
    w, b = list(weights), Fraction(threshold)
    square, step = response(s, w)
    distance = [b - dot(w, x) for x in s.x]
    inside = [d >= 0 and d**2 <= r**2 * square for d, r in zip(distance, s.reach, strict=True)]
    quality = [dot(s.w_f, x) - s.b_f for x in s.x]
    after = []
    for d, i, x in zip(distance, inside, s.x, strict=True):
        moved = [v + (d * by if i else 0) for v, by in zip(x, step, strict=True)]
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
    size = np.linalg.norm(mechanism.weights)
    norm, step = response_in_floats(instance, np.array(mechanism.weights) / size)
    w, step = np.array(mechanism.weights) / size / norm, step * norm
    distance = mechanism.threshold / size / norm - instance.agents @ w
    paid = instance.costs.values
    in_reach = distance <= paid if instance.costs.given == "reach" else distance * paid <= 1
    moved = (distance >= 0) & in_reach
    accepted = moved | (distance < 0)
    weight = instance.weights / instance.weights.sum()
    before = instance.agents @ instance.quality - instance.quality_offset
    moves = np.where(moved, distance, 0.0)
    after = (instance.agents + moves[:, None] * step) @ instance.quality - instance.quality_offset
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
    """max over all real b of Σ ω_i d_i (times N(w)), trying b = s_i + ℓ_i N(w) for every i."""
    s = Sample.of(instance)
    w = list(weights)
    n, _ = response(s, w)
    score = [dot(w, x) for x in s.x]
    best = Decimal(0)
    for si, ri in zip(score, s.reach, strict=True):
        total = Root(Fraction(0), Fraction(0), n)
        for sj, rj, oj in zip(score, s.reach, s.weight, strict=True):
            not_above = Root(si - sj, ri, n).sign() >= 0
            in_reach = Root(si - sj, ri - rj, n).sign() <= 0
            if not_above and in_reach:
                total = Root(total.a + oj * (si - sj), total.c + oj * ri, n)
        best = max(best, total.decimal())
    return best


def best_density(instance, weights, room=Fraction(0)) -> Fraction:
    """max over all real b of the density, trying every end of every interval.

    With room, margins are shortened at both ends by that share of their reach: what is still
    attained then can be attained with a float.
    """
    s = Sample.of(instance)
    w = list(weights)
    n, _ = response(s, w)
    score = [dot(w, x) for x in s.x]
    best = Fraction(0)
    ends = [(a, room * r) for a, r in zip(score, s.reach, strict=True)]
    ends += [(a, (1 - room) * r) for a, r in zip(score, s.reach, strict=True)]
    for a, c in ends:
        total = Fraction(0)
        for sj, rj, oj in zip(score, s.reach, s.weight, strict=True):
            after_start = Root(a - sj, c - room * rj, n).sign() >= 0
            if after_start and Root(a - sj, c - (1 - room) * rj, n).sign() <= 0:
                total += oj
        best = max(best, total)
    return best


def best_gain(instance) -> float:
    """The best gain of any mechanism where the planner sees one or two columns, to about 1e-12.

    One column: two directions. Two columns: for each agent i that may set the threshold
    b = u·z_i + ℓ_i, the covered set changes only at angles where u·(z_i − z_j) + ℓ_i is 0 or ℓ_j;
    on an arc between them the gain is ‖p‖ cos θ (A cos(θ − α) + c), whose stationary points are the
    zeros of A sin(2θ − α) + c sin θ. For Euclidean costs; `costs_brute_force` has the others.
    """
    assert instance.costs.norm == "l2"
    assert instance.costs.effort is None
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
