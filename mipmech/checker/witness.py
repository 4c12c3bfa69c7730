"""What is checked in rationals: the witness, what the planner sees of w_f, and the frame."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipmech.checker.content import Look, numbers, reject
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

# Numbers of agents in rationals at a time, in the columns that a rule uses: some megabytes.
NUMBERS = 1 << 16
# Weights on features are shown rounded; what counts are those on what the planner sees.
ROUNDED = 1e-6


# Some agents: ω, times 2^shift, and shift; threshold − w·x, times 2^scale; who moves; and scale.
Some = tuple[
    slice, NDArray[np.object_], int, NDArray[np.object_], NDArray[np.bool_], int
]  # fmt: skip


class ExactInstance:
    """The instance in rationals: its costs, what the planner sees of w_f, and what a rule gains.

    norm : of the costs
    rank : k
    seen : for l2 P w_f, the projection of w_f onto what is seen (in the dual product)
    seen_square : the square of the greatest rate, the quality gained per unit of cost
    reach : (m,) array, ℓ_i, rounded once if costs are given
    """

    def __init__(self, instance: Instance, look: Look, zeros: frozenset[int] = frozenset()) -> None:
        """``zeros`` : columns that count as hidden."""
        self.instance = instance
        self.look = look
        costs = instance.costs
        self.norm: str = costs.norm
        self.quality = fractions(instance.quality)
        view = instance.view
        self.columns = None if view.columns is None else set(view.columns) - zeros
        given = costs.effort
        self.prices = fractions(given) if given is not None and given.ndim == 1 else None
        self.inverse = _inverse(given, look) if given is not None and given.ndim == 2 else None
        # Independent rows that span what the planner sees; a common factor changes nothing.
        self.rows = [whole(view.matrix[row])[0].tolist() for row in view.rows]
        self.rank = len(view.rows) if self.columns is None else len(self.columns)
        self.reach = costs.values if costs.given == "reach" else 1 / costs.values
        if self.norm != "l2":
            rates = [abs(rate) for rate in self._prices_apart()]
            steepest = max(rates) if self.norm == "l1" else sum(rates, Fraction(0))
            self.seen_square = steepest * steepest
            return
        self.seen = self._seen()
        self.seen_square = dot(self.seen, self.lift(self.seen))

    @property
    def greatest(self) -> str:
        """The greatest rate, in words."""
        return "‖P w_f‖" if self.norm == "l2" else "the greatest rate"

    def lift(self, vector: list[Fraction]) -> list[Fraction]:
        """M⁻¹ times a vector, M that of the costs: for l2 products of weights are wᵀM⁻¹w'."""
        if self.inverse is not None:
            rows, scale = self.inverse
            shared = math.lcm(*(value.denominator for value in vector))
            given = [int(value * shared) for value in vector]
            return [
                scale * sum(a * b for a, b in zip(row, given, strict=True) if b) / shared
                for row in rows
            ]
        if self.prices is not None:
            return [v / e**2 if v else v for v, e in zip(vector, self.prices, strict=True)]
        return vector

    def _prices_apart(self) -> list[Fraction]:
        """w_fj/e_j of the columns seen, in ascending order."""
        return [
            self.quality[j] / (self.prices[j] if self.prices else 1)
            for j in sorted(self.columns or ())
        ]

    def rates(self, frame: Floats) -> list[Fraction]:
        """What makes up the rate of a direction: p, for the rows of a frame."""
        if self.norm != "l2":
            return self._prices_apart()
        lifted = self.lift(self.seen)
        return [self._dot(fractions(row), lifted) for row in frame]

    def _dot(self, a: list[Fraction], b: list[Fraction]) -> Fraction:
        """Σ a_j b_j, after a look: thousands of long fractions take some hundredths of a second."""
        self.look()
        return dot(a, b)

    def _seen(self) -> list[Fraction]:
        """The projection of w_f onto the row space of B."""
        if self.columns is not None:
            return self._seen_columns(self.columns)
        _, (x,) = self._normal([self.quality])
        return [self._dot(x, [Fraction(row[j]) for row in self.rows])
                for j in range(len(self.quality))]  # fmt: skip

    def _seen_columns(self, columns: set[int]) -> list[Fraction]:
        """Where columns are seen, w_f less a combination of the M e_h for hidden h.

        These are orthogonal to all weights on the columns, and M_HH x = w_H leaves no weight on H.
        """
        hidden = [j for j in range(len(self.quality)) if j not in columns]
        if self.inverse is None or not hidden:
            return [v if j in columns else Fraction(0) for j, v in enumerate(self.quality)]
        matrix, shift = whole(np.asarray(self.instance.costs.effort))
        given, scale = _integers([[self.quality[j]] for j in hidden], self.look)
        block = [[int(matrix[i, j]) for j in hidden] for i in hidden]
        solved, determinant = eliminated(block, given, self.look)
        x = [Fraction(row[0] << shift, scale * determinant) for row in solved]
        return [
            v - sum((Fraction(int(matrix[j, h]), 1 << shift) * a
                     for h, a in zip(hidden, x, strict=True)), Fraction(0))
            if j in columns else Fraction(0)
            for j, v in enumerate(self.quality)
        ]  # fmt: skip

    def _normal(
        self, vectors: list[list[Fraction]]
    ) -> tuple[list[list[Fraction]], list[list[Fraction]]]:
        """For each vector v: B M⁻¹ v, and the x with B M⁻¹ Bᵀ x = B M⁻¹ v."""
        lifted, scale = self.rows, 1
        if self.prices is not None or self.inverse is not None:
            lifted, scale = _integers(
                [self.lift(list(map(Fraction, row))) for row in self.rows], self.look
            )
        given, shift = _integers(vectors, self.look)
        gram = _products(self.rows, lifted, self.look)
        right = _products(lifted, given, self.look)
        solved, determinant = eliminated(gram, right, self.look)
        return (
            [[Fraction(value, scale * shift) for value in column]
             for column in zip(*right, strict=True)],
            [[Fraction(value, shift * determinant) for value in column]
             for column in zip(*solved, strict=True)],
        )  # fmt: skip

    def frame_error(self, frame: Floats) -> Fraction:
        """ε with ‖F − F*‖ ≤ ε for some exactly orthonormal basis F* of the row space of B.

        With Π the projection onto it, a = ‖F − ΠF‖ and G = ΠF·ΠFᵀ = FΠFᵀ, the rows of
        F* = G^(−1/2)·ΠF are such a basis, and ‖F* − ΠF‖ = ‖I − G^(1/2)‖ ≤ ‖I − G‖. By Pythagoras
        a² = ‖F‖² − tr G. Products and lengths are those of wᵀM⁻¹w'.
        """
        given, lifted = [], []
        for numbers_of_row in frame:
            self.look()
            given.append(fractions(numbers_of_row))
            lifted.append(self.lift(given[-1]))
        if self.columns is None:
            right, x = self._normal(given)
        else:
            columns = sorted(self.columns)
            hidden = [j for j in range(len(frame.T)) if j not in self.columns]
            if self.inverse is not None and frame[:, hidden].any():
                # Columns are orthogonal to the others only without a matrix.
                reject("proof.frame is no orthonormal basis: it has weights on hidden features")
            right = [[row[j] for j in columns] for row in given]
            x = [[row[j] for j in columns] for row in lifted]
        gram = [[self._dot(a, b) for b in x] for a in right]
        uneven = Fraction(0)
        for i, row in enumerate(gram):
            self.look()
            uneven += sum((value - (i == j)) ** 2 for j, value in enumerate(row))
        size = sum((self._dot(a, b) for a, b in zip(given, lifted, strict=True)), Fraction(0))
        off = size - sum((gram[i][i] for i in range(len(gram))), Fraction(0))
        return root(off)[1] + root(uneven)[1]

    def response(self, w: list[Fraction]) -> tuple[Fraction, Fraction]:
        """N(w)², and what the cheapest move that raises the score by 1 does for quality."""
        if self.norm == "l2":
            lifted = self.lift(w)
            square = dot(w, lifted)
            return square, dot(self.quality, lifted) / square
        size = [abs(v) / (self.prices[j] if self.prices else 1) for j, v in enumerate(w)]
        if self.norm == "l1":
            norm = max(size)
            rise = max(
                self.quality[j] / v for j, v in enumerate(w) if v and size[j] == norm
            )  # of equal moves, the one that is best for quality
            return norm * norm, rise
        norm = sum(size, Fraction(0))
        moves = [
            Fraction(int(v > 0) - int(v < 0)) / (self.prices[j] if self.prices else 1)
            for j, v in enumerate(w)
        ]
        return norm * norm, dot(self.quality, moves) / norm

    def rule(self, witness: dict[str, Any]) -> list[Fraction]:
        """The witness's weights, exactly: a rule on what the planner sees."""
        instance = self.instance
        if self.columns is None:
            size = len(instance.view.matrix)
            v = fractions(numbers(witness.get("view_weights"), (size,), "witness.view_weights"))
            exact = [self._dot(v, fractions(column)) for column in instance.view.matrix.T]
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
        for _, weight, shift, distance, inside, scale in self._parts(w, threshold):
            total += Fraction(int(weight.sum()), 1 << shift)
            covered += Fraction(int(weight[inside].sum()), 1 << shift)
            moved += Fraction(int((weight * distance)[inside].sum()), 1 << shift + scale)
        return covered / total, self.response(w)[1] * moved / total

    def accepted(
        self, w: list[Fraction], threshold: Fraction, members: NDArray[np.int64]
    ) -> dict[int, tuple[Fraction, Fraction]]:
        """Of each class with weight, the weight that is accepted in the end, and the whole weight.

        members : (m,) array, the class of each agent
        """
        passed: dict[int, tuple[Fraction, Fraction]] = {}
        for part, weight, shift, distance, inside, _ in self._parts(w, threshold):
            for number in np.unique(members[part]).tolist():
                own = members[part] == number
                held, whole_of_it = passed.get(number, (Fraction(0), Fraction(0)))
                through = own & (inside | (distance < 0))
                held += Fraction(int(weight[through].sum()), 1 << shift)
                whole_of_it += Fraction(int(weight[own].sum()), 1 << shift)
                passed[number] = held, whole_of_it
        return {number: sums for number, sums in passed.items() if sums[1]}

    def _parts(self, w: list[Fraction], threshold: Fraction) -> Iterator[Some]:
        """All agents, some at a time."""
        square, _ = self.response(w)
        # Everything over one power of two (the denominators of floats, and of Bᵀv).
        bits = max(value.denominator for value in [*w, threshold]).bit_length()
        weights = {j: int(value * (1 << bits)) for j, value in enumerate(w) if value}
        step = max(1, min(CHUNK, NUMBERS // max(1, len(weights))))
        for start in range(0, self.instance.size, step):
            self.look()
            part = slice(start, start + step)
            yield part, *self._moves(part, weights, bits, threshold, square)

    def _moves(
        self, some: slice, weights: dict[int, int], bits: int, threshold: Fraction, square: Fraction
    ) -> tuple[NDArray[np.object_], int, NDArray[np.object_], NDArray[np.bool_], int]:
        """Of some agents: ω, times 2^shift; threshold − w·x, times 2^scale; and who moves.

        weights : those that are not 0, by column, times 2^bits
        """
        instance = self.instance
        x, shift = whole(instance.agents[some, list(weights)])
        scale = shift + bits
        scores = sum(
            (x[:, place] * weight for place, weight in enumerate(weights.values())),
            np.zeros(len(x), dtype=object),
        )
        distance = int(threshold * (1 << scale)) - scores
        value, shift = whole(instance.costs.values[some])
        if instance.costs.given == "cost":  # c²d² ≤ N²
            limit = math.floor(square * (1 << 2 * (scale + shift)))
            inside = (distance >= 0) & ((value * distance) ** 2 <= limit)
        else:  # d² ≤ ℓ²N², both sides over the same power of two
            limits = value**2 * (square.numerator << 2 * scale) // square.denominator
            inside = (distance >= 0) & ((distance << shift) ** 2 <= limits)
        weight, weight_shift = whole(instance.weights[some])
        return weight, weight_shift, distance, np.asarray(inside, dtype=bool), scale

    def ceiling(self) -> float:
        """The greatest rate (‖P w_f‖ for the paper's costs) times Σω_iℓ_i, rounded up.

        No rule gains more: an agent that moves raises quality by at most that rate per unit of
        cost, and goes to the length of at most ℓ_i.
        """
        counts = self.instance.weights > 0
        weight, value = self.instance.weights[counts], self.instance.costs.values[counts]
        reach, exact = self.reach[counts], self.instance.costs.given == "reach"
        if (value == value[0]).all():
            mean = Fraction(float(value[0]))
            mean = mean if exact else 1 / mean
        else:
            sums = [sum_of_products(weight, v, self.look) for v in (reach, np.ones(len(reach)))]
            # Each reach is rounded by at most 2^-53 of itself.
            mean = sums[0] / sums[1] * (1 + Fraction(1, 1 << 52))
        return up(root(self.seen_square)[1] * mean)


def _inverse(matrix: Floats, look: Look) -> tuple[list[list[int]], Fraction]:
    """M⁻¹, as whole numbers and what they are to be multiplied by."""
    given, shift = whole(matrix)
    size = len(matrix)
    identity = [[int(i == j) for j in range(size)] for i in range(size)]
    solved, determinant = eliminated(given.tolist(), identity, look)
    return solved, Fraction(1 << shift, determinant)


def _products(a: list[list[int]], b: list[list[int]], look: Look) -> list[list[int]]:
    """The product of every row of one table with every row of the other."""

    def product(row: list[int], other: list[int]) -> int:
        look()
        return sum(map(operator.mul, row, other))

    return [[product(row, other) for other in b] for row in a]


def _integers(table: list[list[Fraction]], look: Look) -> tuple[list[list[int]], int]:
    """Whole numbers N and d with the table N/d."""
    scale = 1
    for row in table:
        look()
        scale = math.lcm(scale, *(value.denominator for value in row))
    found = []
    for row in table:
        look()
        found.append([value.numerator * (scale // value.denominator) for value in row])
    return found, scale
