"""The oracle `ransac`: margins through minimal sets of agents, improved locally.

A densest margin can be turned and shifted until d agents lie on its two faces, d = k − 1: on the
front (b = score) or at the back (b = score + reach). So a hypothesis is a random set of d agents,
each on a random face. With a_i = sin θ Hᵀz_i and r_i = −(its reach, at the back) − cos θ z_i·p̂, the
equations a_i·v − b = r_i leave, b eliminated, d − 1 linear equations in v: a line, which meets the
unit sphere in two directions, or misses it, where the nearest one is taken. Each is judged with its
densest threshold, not only with the one that the set gives.

*Local optimisation* (Chum, Matas and Kittler 2003): from the best hypothesis of a lot, minimal sets
among the agents in and near its margin, fits of least spread to those inside, and small random
turns, as long as that helps; linear programs draw in agents that miss the margin by little.

*Stopping* (Fischler and Bolles 1981): if a share ε of the agents lies in the best margin, a set is
all inside it with probability ε^d, so after ln(1 − confidence)/ln(1 − ε^d) hypotheses a margin as
good as that would have been met. A better one may still be missed: it is a rule for stopping, not a
bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from mipmech.errors import InputError
from mipmech.oracles.heuristics.explore import Explorer, Heuristic
from mipmech.oracles.heuristics.pca import least_spread
from mipmech.oracles.shared.facets import Facet
from mipmech.oracles.shared.slices import Slice
from mipmech.validation import Floats, Numbers

# Singular values below this share of the largest mean that agents coincide, or nearly so.
COINCIDE = 1e-9
# Local optimisation: rounds without success before it gives up.
PATIENCE = 2
# How far, in reaches, an agent may miss the margin and still be drawn for a local set.
NEAR = 0.5
# Fewer rounds than this are never enough, however dense the margin.
LEAST_ROUNDS = 4


@dataclass(frozen=True)
class Ransac(Heuristic):
    """Random minimal sets with local optimisation; a round is one lot of hypotheses.

    confidence : of the stopping rule
    """

    rounds: int | None = 100
    facets: ClassVar[bool] = True
    confidence: float = 0.999

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.confidence < 1:
            raise InputError(f"is {self.confidence}; give one between 0 and 1", field="confidence")

    def round(self, explorer: Explorer, random: Generator, number: int) -> bool:
        """Draw one lot of hypotheses and improve the best; returns whether enough were tried."""
        agents = np.arange(len(explorer.part.reach))
        v = hypotheses(explorer, random, agents, explorer.lot // 2)
        # Counts matter below the best so far too: they say where to improve.
        counts = explorer.consider(v, ranked=True)
        _improve(explorer, random, v[counts.argmax()])
        done = (number + 1) * (explorer.lot // 2)
        return number + 1 >= LEAST_ROUNDS and done >= self.enough(explorer)

    def enough(self, explorer: Explorer) -> float:
        """The number of hypotheses that the stopping rule requires."""
        share = max(0.0, explorer.best) / explorer.goal.most
        inside = share**explorer.part.dimension
        if inside >= 1 - 1e-12:
            return 1.0
        return math.log(1 - self.confidence) / math.log1p(-inside) if inside > 0 else math.inf


def hypotheses(explorer: Explorer, random: Generator, agents: Numbers, count: int) -> Floats:
    """Directions with d of these agents on the two faces of a margin: count to 2·count rows."""
    part, reach = explorer.part, explorer.goal.reach
    d = part.dimension
    # Distinct agents in each row: the d smallest of random keys, or, among many, whatever comes.
    if len(agents) <= 64 and (len(agents) >= d or isinstance(part, Slice)):
        keys = random.random((count, len(agents)))
        size = min(d, len(agents))
        chosen = agents[np.argpartition(keys, size - 1, axis=1)[:, :size]]
    else:
        chosen = agents[random.integers(len(agents), size=(count, d))]
    back = random.integers(0, 2, chosen.shape)
    a, r = part.y[chosen], -back * reach[chosen] - part.shift[chosen]
    if isinstance(part, Facet):
        return _on_facet(part, random, a, r)
    lines, right = a[:, 1:] - a[:, :1], r[:, 1:] - r[:, :1]
    _, values, vectors = np.linalg.svd(lines, full_matrices=True)
    # The least solution of the equations that are independent, and a direction that they leave.
    largest = values[:, :1] if values.shape[1] else np.ones((len(lines), 1))
    use = values > COINCIDE * largest
    left = np.einsum("nij,nj->ni", np.swapaxes(lines, 1, 2), right)
    inverse = np.where(use, 1 / np.where(use, values, 1.0) ** 2, 0.0)
    rows = vectors[:, : values.shape[1]]
    foot = np.einsum("nij,ni->nj", rows, inverse * np.einsum("nij,nj->ni", rows, left))
    free = vectors[:, -1]
    rest = 1 - (foot**2).sum(axis=1)
    meets = rest >= 0
    step = np.sqrt(rest[meets])[:, None] * free[meets]
    # Near P w_f scores hardly depend on v, and most lines miss the sphere: the nearest point then.
    return part.onto(np.vstack([foot[meets] + step, foot[meets] - step, foot[~meets]]))


def _on_facet(part: Facet, random: Generator, a: Floats, r: Floats) -> Floats:
    """Directions with agents on the two faces of a margin, and on some edges of the facet.

    The best rules are corners: of d + 1 equations (one is Σv_j = 1 on a simplex), some are
    a_i·v − b = r_i, and some fix a coordinate of v at its limits.

    a, r : (n, d, d) and (n, d) arrays
    """
    n, d = r.shape
    fixed = random.random((n, d)) < random.random((n, 1)) * 0.9
    axes = np.argsort(random.random((n, d)), axis=1)
    rows = np.zeros((n, d + 1, d + 1))
    right = np.zeros((n, d + 1))
    rows[:, :d, :d] = np.where(fixed[:, :, None], np.eye(d)[axes], a)
    rows[:, :d, d] = np.where(fixed, 0.0, -1.0)
    limit = 0.0 if part.simplex else np.where(random.random((n, d)) < 0.5, -1.0, 1.0)
    right[:, :d] = np.where(fixed, limit, r)
    if part.simplex:
        rows[:, d, :d], right[:, d] = 1.0, 1.0
    else:  # one agent more
        rows[:, d, :d], rows[:, d, d] = a[np.arange(n), -1], -1.0
        right[:, d] = r[np.arange(n), -1]
    found = np.einsum("nij,nj->ni", np.linalg.pinv(rows, rcond=COINCIDE), right)
    return part.onto(found[:, :d])


def _improve(explorer: Explorer, random: Generator, start: Floats) -> None:
    """Local optimisation from a direction, and linear programs if it leads to a new best."""
    before = explorer.best
    here, value = start, -math.inf
    failed = 0
    turn = 0.3
    while failed < PATIENCE and not explorer.over:
        near = explorer.covered(here, NEAR)
        inside = explorer.covered(here)
        tries = [_turned(explorer, random, here, turn, 0.35)]
        if len(near) > explorer.part.dimension:
            tries.append(hypotheses(explorer, random, near, max(8, explorer.lot // 6)))
        if isinstance(explorer.part, Slice) and len(inside) > explorer.part.dimension:
            tries.append(least_spread(explorer.slice, inside[None, :]))
        v = np.vstack(tries)
        counts = explorer.consider(v, ranked=True)
        top = int(counts.argmax())
        if counts[top] > value:
            here, value, failed = v[top], counts[top], 0
        else:
            failed += 1
        turn /= 1.6
    if explorer.best > before and not explorer.over:
        explorer.augment(here)


def _turned(explorer: Explorer, random: Generator, v: Floats, turn: float, share: float) -> Floats:
    """Directions at random angles up to about ``turn`` from v, on all scales below it."""
    count = max(8, int(share * explorer.lot))
    scale = turn * 10.0 ** -random.uniform(0, 2, (count, 1))
    turned = v + scale * random.standard_normal((count, len(v))) / math.sqrt(len(v))
    return explorer.part.onto(turned)
