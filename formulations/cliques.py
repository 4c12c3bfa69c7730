"""Agents that no allowed direction puts into one margin: the conflict graph and its clique rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from pyomo.environ import ConcreteModel, Constraint

from formulations.arrays import ROUNDING, Bounds, Floats, finite
from formulations.facets import Surface
from formulations.margin import support
from formulations.rows import linear


def conflicts(
    z: Floats,
    reach: Floats,
    p: Floats | None,
    low: float,
    high: float,
    widen: float | Floats = 0.0,
    pairs: NDArray[np.integer[Any]] | None = None,
    over: Surface | None = None,
    box: Bounds | None = None,
) -> nx.Graph:
    """The graph of agents that are never in the margin together.

    Agent i is in the margin of (u, b) iff b ∈ [u·z_i, u·z_i + ℓ_i]. For a given u, some b serves
    both i and j iff their intervals meet, that is, iff each begins before the other ends:

        u·z_i ≤ u·z_j + ℓ_j  and  u·z_j ≤ u·z_i + ℓ_i,    or    −ℓ_i ≤ u·(z_i − z_j) ≤ ℓ_j.

    With margins widened by δ on each side, ℓ_i and ℓ_j grow by δ_i + δ_j here. Let [lo, hi] be the
    exact range of u·(z_i − z_j) over the allowed directions. If lo > ℓ_j + δ_i + δ_j or
    hi < −(ℓ_i + δ_i + δ_j), no allowed u serves both: an edge. In three and more dimensions the
    allowed directions are connected, every value in [lo, hi] occurs, and "if" is "iff". In one or
    two dimensions they may be two arcs, and some conflicts are not seen.

    ``over`` a facet, the allowed directions are those of the facet, or of its part in the box; they
    are no Euclidean unit vectors, and p must be None. A facet is convex, so "if" is "iff" in every
    dimension, as long as the facet knows its exact ranges.

    z : (m, k) array; reach : (m,) array; p, low, high as in `support`; widen : δ, a number or
    (m,) array; pairs : (r, 2) array of the pairs to look at, all if None
    """
    if over is not None and (p is not None or (low, high) != (-1, 1)):
        raise ValueError("over a facet there is no η: p None, low -1, high 1")
    if over is None and box is not None:
        raise ValueError("a box is a part of a facet: say which, with over")
    m = len(z)
    reach, widen = finite("reach", reach, (m,)), finite("widen", widen, (m,))
    first, second = np.triu_indices(m, 1) if pairs is None else np.asarray(pairs, dtype=int).T
    apart = z[first] - z[second]
    lowest, highest = over.ranges(apart, box) if over else support(apart, p, low, high)
    slack = widen[first] + widen[second] + ROUNDING
    never = (lowest > reach[second] + slack) | (highest < -(reach[first] + slack))
    graph = nx.Graph()
    graph.add_nodes_from(range(m))
    graph.add_edges_from(zip(first[never].tolist(), second[never].tolist(), strict=True))
    return graph


def clique_cover(graph: nx.Graph) -> list[tuple[int, ...]]:
    """Maximal cliques that together contain every edge; the same ones every time.

    Greedy: begin at the agent with the most edges not yet covered, and add the common neighbour
    that covers most new edges (then the one of largest degree, then the first), until there is no
    common neighbour left.

    >>> clique_cover(nx.Graph([(0, 1), (1, 2), (0, 2), (2, 3)]))
    [(0, 1, 2), (2, 3)]
    """
    nodes = sorted(graph.nodes)
    if not graph.number_of_edges():
        return []
    adjacent = nx.to_numpy_array(graph, nodelist=nodes, dtype=np.int64, weight=None) > 0
    np.fill_diagonal(adjacent, False)
    uncovered = adjacent.copy()
    # New edges decide, degrees (less than the number of agents) break ties.
    degree = adjacent.sum(axis=1)
    left = degree.copy()
    cover = []
    while left.any():
        clique = [int(np.argmax(left))]
        common = adjacent[clique[0]].copy()
        new = uncovered[clique[0]].astype(np.int64)
        while common.any():
            best = int(np.argmax(np.where(common, new * len(nodes) + degree, -1)))
            clique.append(best)
            common &= adjacent[best]
            new += uncovered[best]
        uncovered[np.ix_(clique, clique)] = False
        left[clique] = uncovered[clique].sum(axis=1)
        cover.append(tuple(nodes[i] for i in sorted(clique)))
    return cover


def add_cliques(model: ConcreteModel, cliques: Sequence[Sequence[int]]) -> None:
    """Add the rows ``cliques``: Σ_{i∈C} s_i ≤ 1 for each clique C; nothing if there are none.

    They are stronger than the pairs they imply, and much stronger than what big-M says about them.
    """
    if not cliques:
        return

    def at_most_one(model: ConcreteModel, c: int) -> Any:
        return None, linear([1] * len(cliques[c]), [model.s[i] for i in cliques[c]]), 1

    model.cliques = Constraint(range(len(cliques)), rule=at_most_one)
