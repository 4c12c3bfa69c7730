"""What is checked in rationals: the witness, what the planner sees of w_f, and the frame."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipmech.checker.content import Look, number_at, numbers, object_at, reject, text_at
from mipmech.checker.exact import (
    CHUNK,
    dot,
    eliminated,
    fractions,
    root,
    sum_of_products,
    up,
    whole,
)
from mipmech.model.instance import Instance

Floats = NDArray[np.float64]

# Weights on features are shown rounded; what counts are those on what the planner sees.
ROUNDED = 1e-6


class ExactInstance:
    """The instance in rationals: what the planner sees of w_f, and what a rule gains."""

    def __init__(self, instance: Instance, look: Look) -> None:
        self.instance = instance
        self.look = look
        self.quality = fractions(instance.quality)
        view = instance.view
        self.columns = None if view.columns is None else set(view.columns)
        # Independent rows that span what the planner sees; a common factor changes nothing.
        self.rows = [whole(view.matrix[row])[0].tolist() for row in view.rows]
        self.rank = len(self.rows) if view.columns is None else len(view.columns)
        self.seen = self._seen()
        self.seen_square = dot(self.seen, self.seen)

    def _seen(self) -> list[Fraction]:
        """P w_f, the orthogonal projection of w_f onto the row space of B."""
        if self.columns is not None:
            return [v if j in self.columns else Fraction(0) for j, v in enumerate(self.quality)]
        _, (x,) = self._normal(self.instance.quality[None])
        return [dot(x, [Fraction(row[j]) for row in self.rows]) for j in range(len(self.quality))]

    def _normal(self, vectors: Floats) -> tuple[list[list[Fraction]], list[list[Fraction]]]:
        """For each vector v (a row): B v, and the x with B Bᵀ x = B v."""
        given, shift = whole(vectors)
        right = [[sum(a * b for a, b in zip(row, v, strict=True)) for v in given.tolist()]
                 for row in self.rows]  # fmt: skip
        gram = [[sum(a * b for a, b in zip(row, other, strict=True)) for other in self.rows]
                for row in self.rows]  # fmt: skip
        solved, determinant = eliminated(gram, right, self.look)
        scale = 1 << shift
        return (
            [[Fraction(value, scale) for value in column] for column in zip(*right, strict=True)],
            [[Fraction(value, scale * determinant) for value in column]
             for column in zip(*solved, strict=True)],
        )  # fmt: skip

    def frame_error(self, frame: Floats) -> Fraction:
        """ε with ‖F − F*‖ ≤ ε for some exactly orthonormal basis F* of the row space of B.

        With Π the projection onto it, a = ‖F − ΠF‖ and G = ΠF·ΠFᵀ = FΠFᵀ, the rows of
        F* = G^(−1/2)·ΠF are such a basis, and ‖F* − ΠF‖ = ‖I − G^(1/2)‖ ≤ ‖I − G‖. By Pythagoras
        a² = ‖F‖² − tr G.
        """
        if self.columns is None:
            right, x = self._normal(frame)
        else:
            right = x = [fractions(row) for row in frame[:, sorted(self.columns)]]
        gram = []
        for a in right:
            self.look()
            gram.append([dot(a, b) for b in x])
        uneven = sum(
            ((value - (i == j)) ** 2 for i, row in enumerate(gram) for j, value in enumerate(row)),
            Fraction(0),
        )
        size = sum((dot(row, row) for row in map(fractions, frame)), Fraction(0))
        off = size - sum((gram[i][i] for i in range(len(gram))), Fraction(0))
        return root(off)[1] + root(uneven)[1]

    def rule(self, witness: dict[str, Any]) -> list[Fraction]:
        """The witness's weights, exactly: a rule on what the planner sees."""
        instance = self.instance
        if self.columns is None:
            size = len(instance.view.matrix)
            v = fractions(numbers(witness.get("view_weights"), (size,), "witness.view_weights"))
            matrix = [fractions(row) for row in instance.view.matrix]
            exact = [dot(v, [row[j] for row in matrix]) for j in range(instance.width)]
            shown = fractions(numbers(witness.get("weights"), (instance.width,), "witness.weights"))
            off = [a - b for a, b in zip(shown, exact, strict=True)]
            if dot(off, off) > dot(exact, exact) * Fraction(ROUNDED) ** 2:
                reject("the witness's weights are not those of its view_weights")
            return exact
        w = fractions(numbers(witness.get("weights"), (instance.width,), "witness.weights"))
        if any(value and j not in self.columns for j, value in enumerate(w)):
            reject("the witness gives weight to a feature that the planner cannot see")
        return w

    def outcome(self, w: list[Fraction], threshold: Fraction) -> tuple[Fraction, Fraction]:
        """Density and gain of the rule w·x ≥ threshold (Lemma 1, without roots)."""
        total = covered = moved = Fraction(0)
        for start in range(0, self.instance.size, CHUNK):
            self.look()
            some = self._moves(slice(start, start + CHUNK), w, threshold)
            total, covered, moved = total + some[0], covered + some[1], moved + some[2]
        return covered / total, dot(w, self.quality) * moved / (dot(w, w) * total)

    def _moves(
        self, some: slice, w: list[Fraction], threshold: Fraction
    ) -> tuple[Fraction, Fraction, Fraction]:
        """Of some agents: Σω; Σω and Σω(threshold − w·x) over those who move."""
        instance = self.instance
        used = [j for j, value in enumerate(w) if value]
        # Everything over one power of two (the denominators of floats, and of Bᵀv).
        bits = max(max((value.denominator for value in [*w, threshold]), default=1).bit_length(), 1)
        x, shift = whole(instance.agents[some, used])
        scale = shift + bits
        scores = sum(
            (x[:, place] * int(w[j] * (1 << bits)) for place, j in enumerate(used)),
            np.zeros(len(x), dtype=object),
        )
        distance = int(threshold * (1 << scale)) - scores
        cost, cost_shift = whole(instance.cost[some])
        limit = math.floor(dot(w, w) * (1 << 2 * (scale + cost_shift)))
        inside = (distance >= 0) & ((cost * distance) ** 2 <= limit)
        weight, weight_shift = whole(instance.weights[some])
        sums = int(weight.sum()), int(weight[inside].sum()), int((weight * distance)[inside].sum())
        powers = weight_shift, weight_shift, weight_shift + scale
        total, covered, moved = map(Fraction, sums, (1 << power for power in powers))
        return total, covered, moved

    def ceiling(self) -> float:
        """‖P w_f‖Σω_iℓ_i, rounded up: no rule gains more.

        An agent that moves raises quality by at most ‖P w_f‖ per unit of distance, and moves by at
        most ℓ_i.
        """
        counts = self.instance.weights > 0
        weight, cost = self.instance.weights[counts], self.instance.cost[counts]
        reach = 1 / cost
        if (reach == reach[0]).all():
            mean = 1 / Fraction(float(cost.min()))
        else:
            sums = [sum_of_products(weight, v, self.look) for v in (reach, np.ones(len(reach)))]
            # Each reach is rounded by at most 2^-53 of itself.
            mean = sums[0] / sums[1] * (1 + Fraction(1, 1 << 52))
        return up(root(self.seen_square)[1] * mean)


def witness_value(
    content: dict[str, Any], exact: ExactInstance, eta: Fraction | None, band: Fraction
) -> Fraction:
    """The lower bound: what the witness has, exactly as claimed."""
    claimed = object_at(content, "lower")
    text = text_at(claimed, "exact", "lower.")
    if len(text) > 1_000_000:
        reject("lower.exact is too long to be a gain")
    numerator, slash, denominator = text.partition("/")
    digits = all(
        part.isascii() and part.removeprefix("-").isdigit() and len(part) < 4000
        for part in ([numerator, denominator] if slash else [numerator])
    )
    if not digits or (slash and int(denominator) <= 0):
        reject("lower.exact is not a fraction")
    lower = Fraction(int(numerator), int(denominator) if slash else 1)
    if Fraction(number_at(claimed, "value", "lower.")) > lower:
        reject("lower.value is above the exact lower bound")
    if content.get("witness") is None:
        if lower != 0:
            reject("there is no witness for the lower bound")
        return lower
    witness = object_at(content, "witness")
    w = exact.rule(witness)
    if not any(w):
        reject("the witness has no direction: its weights are all 0")
    density, gain = exact.outcome(w, Fraction(number_at(witness, "threshold", "witness.")))
    found = gain if eta is None else density
    if found != lower:
        reject(f"the witness has {float(found)!r}, not the claimed lower bound")
    if eta is not None:
        low, high = root(dot(w, w))
        ends = sorted(dot(w, exact.quality) / length for length in (low, high))
        width = band * root(exact.seen_square)[0]
        if ends[1] > eta + width or ends[0] < eta - width:
            reject("the witness is not at the η claimed")
    return lower
