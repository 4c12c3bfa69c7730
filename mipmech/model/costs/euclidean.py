"""l2: a move Δ has the length √Σ(e_jΔ_j)², or √(ΔᵀMΔ).

Both are inner products, and so is what is dual to them: N(w)² = wᵀM⁻¹w with M = diag(e²) for
prices. The cheapest way to raise a score by 1 is M⁻¹w/N(w)². With entries of M off the diagonal,
features of weight 0, hidden ones too, move along with others: effort spills over.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mipmech.errors import InputError
from mipmech.model.costs.response import Response, Sparse, product, products
from mipmech.rationals import common_integers, solve_all
from mipmech.validation import Floats


@dataclass(frozen=True)
class Inverse:
    """M⁻¹ as whole numbers times a scale, so that sums need no common denominators."""

    rows: list[list[int]]
    scale: Fraction


def respond(weights: Sparse, prices: Sparse | None, inverse: Inverse | None) -> Response:
    """The response to a direction, by prices (None: all 1), or by the inverse of M."""
    lifted = lift(weights, prices, inverse)
    square = product(weights, lifted)
    return Response(square, {j: value / square for j, value in lifted.items()})


def lift(vector: Sparse, prices: Sparse | None, inverse: Inverse | None) -> dict[int, Fraction]:
    """M⁻¹ times a vector."""
    if inverse is not None:
        shared = math.lcm(*(value.denominator for value in vector.values()))
        whole = {j: int(value * shared) for j, value in vector.items()}
        entries = (sum(row[j] * value for j, value in whole.items()) for row in inverse.rows)
        return {j: entry * inverse.scale / shared for j, entry in enumerate(entries) if entry}
    if prices is None:
        return dict(vector)
    return {j: value / prices[j] ** 2 for j, value in vector.items()}


def inverse(matrix: Floats) -> Inverse:
    """M⁻¹ exactly; a matrix that is not positive definite is refused.

    Bareiss' elimination: the pivots are the leading minors, all positive if and only if M is
    positive definite, and every division leaves no rest.
    """
    size = len(matrix)
    integers, shift = common_integers(matrix)
    table = [
        [int(v) for v in row] + [int(i == j) for j in range(size)] for i, row in enumerate(integers)
    ]
    previous = 1
    for pivot in range(size):
        chosen = table[pivot]
        if chosen[pivot] <= 0:
            raise InputError(
                "is not positive definite: some move would cost nothing, or less; give a matrix"
                " whose eigenvalues are all above 0",
                field="effort",
            )
        for i in range(size):
            if i != pivot:
                factor = table[i][pivot]
                pairs = zip(table[i], chosen, strict=True)
                table[i] = [(chosen[pivot] * a - factor * b) // previous for a, b in pairs]
        previous = chosen[pivot]
    return Inverse([row[size:] for row in table], Fraction(1 << shift, previous))


def steepest_square_of_columns(
    columns: Sequence[int], quality: Sparse, matrix: Floats, inverse: Inverse
) -> Fraction:
    """The same where columns are seen, by way of the hidden ones, H.

    What is orthogonal to the columns is spanned by the M e_h, whose products are M_HH. So the
    square is w_fᵀM⁻¹w_f − w_Hᵀ M_HH⁻¹ w_H, and M is shorter than its inverse.
    """
    everything = product(quality, lift(quality, None, inverse))
    hidden = [j for j in range(len(matrix)) if j not in columns]
    if not hidden:
        return everything
    given = [quality.get(j, Fraction(0)) for j in hidden]
    block = [[Fraction(float(matrix[i, j])) for j in hidden] for i in hidden]
    (solved,) = solve_all(block, [given])
    return everything - sum((a * b for a, b in zip(given, solved, strict=True)), Fraction(0))


def steepest_square(
    rows: list[Sparse], quality: Sparse, prices: Sparse | None, inverse: Inverse | None
) -> Fraction:
    """The square of the greatest quality per unit of cost, over rules that combine these rows.

    A rule w has w·M⁻¹w_f/N(w), which is greatest for the projection of w_f: with B the rows and
    r = BM⁻¹w_f, the square is rᵀ(BM⁻¹Bᵀ)⁻¹r.
    """
    lifted = [lift(row, prices, inverse) for row in rows]
    seen = [product(row, quality) for row in lifted]
    gram = products(rows, lifted)
    (solved,) = solve_all(gram, [seen])
    return sum((a * b for a, b in zip(seen, solved, strict=True)), Fraction(0))
