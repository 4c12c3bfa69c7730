"""l1: a move Δ costs Σ e_j|Δ_j|, so people work on one feature only: where it pays most.

N(w) = max |w_j|/e_j. Where several features attain it, moves of equal cost do the same for the
score, and agents take the one that is best for quality.
"""

from __future__ import annotations

from fractions import Fraction

from mipmech.model.costs.response import Response, Sparse


def respond(weights: Sparse, prices: Sparse | None, quality: Sparse) -> Response:
    """The response to a direction; features of equal price are told apart by quality."""
    sizes = {j: abs(w) / (prices[j] if prices else 1) for j, w in weights.items()}
    norm = max(sizes.values())
    rises = {
        j: quality.get(j, Fraction(0)) / weights[j] for j, size in sizes.items() if size == norm
    }
    best = max(rises, key=lambda j: rises[j])
    ties = tuple(rise for j, rise in rises.items() if j != best)
    return Response(norm * norm, {best: 1 / weights[best]}, ties)
