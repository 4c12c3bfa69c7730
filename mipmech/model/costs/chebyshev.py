"""linf: a move Δ costs max e_j|Δ_j|, so people work on all features at once.

N(w) = Σ |w_j|/e_j. Features of weight 0 stay where they are.
"""

from __future__ import annotations

from fractions import Fraction

from mipmech.model.costs.response import Response, Sparse


def respond(weights: Sparse, prices: Sparse | None) -> Response:
    """The response to a direction."""
    price = {j: prices[j] if prices else Fraction(1) for j in weights}
    norm = sum((abs(w) / price[j] for j, w in weights.items()), Fraction(0))
    step = {j: (1 if w > 0 else -1) / (price[j] * norm) for j, w in weights.items()}
    return Response(norm * norm, step)
