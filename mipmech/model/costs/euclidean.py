"""l2: a move Δ has the length √Σ(e_jΔ_j)², or √(ΔᵀMΔ).

Both are inner products, and so is what is dual to them: N(w)² = wᵀM⁻¹w with M = diag(e²) for
prices. The cheapest way to raise a score by 1 is M⁻¹w/N(w)². With entries of M off the diagonal,
features of weight 0, hidden ones too, move along with others: effort spills over.
"""

from __future__ import annotations

from fractions import Fraction

from mipmech.errors import InputError
from mipmech.model.costs.response import Response, Sparse, product
from mipmech.rationals import common_integers, solve_all
from mipmech.validation import Floats

Matrix = list[list[Fraction]]


def respond(weights: Sparse, prices: Sparse | None, inverse: Matrix | None) -> Response:
    """The response to a direction, by prices (None: all 1), or by the inverse of M."""
    lifted = lift(weights, prices, inverse)
    square = product(weights, lifted)
    return Response(square, {j: value / square for j, value in lifted.items()})


def lift(vector: Sparse, prices: Sparse | None, inverse: Matrix | None) -> dict[int, Fraction]:
    """M⁻¹ times a vector."""
    if inverse is not None:
        entries = (
            sum((row[j] * value for j, value in vector.items()), Fraction(0)) for row in inverse
        )
        return {j: value for j, value in enumerate(entries) if value}
    if prices is None:
        return dict(vector)
    return {j: value / prices[j] ** 2 for j, value in vector.items()}


def inverse(matrix: Floats) -> Matrix:
    """M⁻¹ in rationals; a matrix that is not positive definite is refused.

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
    scale = Fraction(1 << shift, previous)
    return [[value * scale for value in row[size:]] for row in table]


def steepest_square(
    rows: list[Sparse], quality: Sparse, prices: Sparse | None, inverse: Matrix | None
) -> Fraction:
    """The square of the greatest quality per unit of cost, over rules that combine these rows.

    A rule w has w·M⁻¹w_f/N(w), which is greatest for the projection of w_f: with B the rows and
    r = BM⁻¹w_f, the square is rᵀ(BM⁻¹Bᵀ)⁻¹r.
    """
    lifted = [lift(row, prices, inverse) for row in rows]
    seen = [product(row, quality) for row in lifted]
    gram = [[product(a, b) for b in lifted] for a in rows]
    (solved,) = solve_all(gram, [seen])
    return sum((a * b for a, b in zip(seen, solved, strict=True)), Fraction(0))
