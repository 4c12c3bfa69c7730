"""Conflicts and cliques: all that no direction resolves, and nothing else."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations import (
    Exact,
    add_cliques,
    clique_cover,
    conflicts,
    support,
)
from tests.modelling import (
    EVERYTHING,
    directions,
    only,
    sample,
    unit,
)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("band", [(0.5, 0.5), (0.3, 0.9), EVERYTHING])
def test_conflicts_are_those_that_no_direction_resolves(k, band):
    rng = np.random.default_rng(k)
    m = 40
    z, reach = rng.uniform(-1, 1, size=(m, k)), rng.uniform(0.05, 0.4, size=m)
    p = unit(rng, k)
    if k == 1:
        band = (1.0, 1.0) if band[0] > 0 else band
        allowed = np.array([[t * p[0]] for t in (-1.0, 1.0) if band[0] <= t <= band[1]])
    else:
        allowed = directions(rng, 2000, p, *band)
    graph = conflicts(z, reach, p, *band)
    scores = allowed @ z.T
    # u·z_i ≤ u·z_j + ℓ_j both ways, without the formula that `conflicts` uses.
    begins_in_time = scores[:, :, None] <= scores[:, None, :] + reach[None, None, :]
    together = (begins_in_time & begins_in_time.transpose(0, 2, 1)).any(axis=0)
    assert not any(together[i, j] for i, j in graph.edges)
    if k >= 3 or k == 1:
        pairs = np.triu_indices(m, 1)
        difference = z[pairs[0]] - z[pairs[1]]
        lowest, highest = support(difference, p, *band)
        sure = (lowest < reach[pairs[1]] - 0.1) & (highest > -reach[pairs[0]] + 0.1)
        for i, j, clearly in zip(*pairs, sure, strict=True):
            # Sampling misses pairs that only just meet.
            if clearly and k == 3:
                assert together[i, j], (i, j)
            if k == 1 and band[0] == 1:
                assert together[i, j] != graph.has_edge(i, j)


def test_conflicts_know_who_reaches_whom():
    z, p = np.array([[0.0], [1.0]]), np.array([1.0])
    # u·z rises: agent 0 must reach to where agent 1 begins.
    for reach, edge in (((1.1, 0.1), False), ((0.1, 1.1), True), ((1.0, 0.0), False)):
        assert conflicts(z, np.array(reach), p, 1, 1).has_edge(0, 1) is edge
        assert conflicts(z, np.array(reach[::-1]), p, -1, -1).has_edge(0, 1) is edge
    reach = np.array([0.9, 0.1])
    assert conflicts(z, reach, p, 1, 1, widen=0.049).has_edge(0, 1)
    assert not conflicts(z, reach, p, 1, 1, widen=0.051).has_edge(0, 1)
    assert not conflicts(z, reach, p, 1, 1, widen=np.array([0.0, 0.11])).has_edge(0, 1)


def test_conflicts_of_chosen_pairs():
    z, reach, _, p, _ = sample(4, m=20)
    every = conflicts(z, reach / 3, p, 0.5, 0.5)
    assert every.number_of_edges()
    pairs = np.array([(i, j) for i, j in itertools.combinations(range(20), 2) if (i + j) % 2])
    some = conflicts(z, reach / 3, p, 0.5, 0.5, pairs=pairs)
    assert set(some.edges) == {(i, j) for i, j in every.edges if (i + j) % 2}
    assert len(some) == 20


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 25), st.floats(0, 1), st.integers(0, 10**6))
def test_cliques_cover_every_edge(m, density, seed):
    graph = nx.gnp_random_graph(m, density, seed=seed)
    cover = clique_cover(graph)
    assert cover == clique_cover(graph)
    covered = set()
    for clique in cover:
        assert len(clique) >= 2
        pairs = set(itertools.combinations(clique, 2))
        assert all(graph.has_edge(*pair) for pair in pairs)
        assert not set.intersection(*(set(graph[i]) for i in clique))  # maximal
        assert pairs - covered
        covered |= pairs
    assert covered == {tuple(sorted(edge)) for edge in graph.edges}


def test_no_cliques_no_rows():
    model = only(Exact())
    add_cliques(model, [])
    assert model.component("cliques") is None
