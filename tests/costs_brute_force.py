"""The best gain of any rule under l1 and linf by trying every vertex; l2 costs made Euclidean.

It shares no code with the package: only instances' raw arrays are read, and for l1 and linf only
instances whose planner sees columns are understood.

With u_j = w_j/e_j, z_j = e_j x_j and p_j = w_fj/e_j, a rule of N(w) = 1 is a point u of the surface
of the cube (l1, max|u_j| = 1) or of the cross-polytope (linf, Σ|u_j| = 1). On a facet of it the
gain is a constant rate times soft density:

- l1, the facet u_j = s: agents work on feature j, so the rate is s p_j. Where several |u_j| are 1,
  u is in several facets, and agents do what the one of greatest rate says. So the best gain is the
  greatest product, over facets, of the rate and the best soft density on the closed facet.
- linf, the orthant of signs s: agents work on all features, so the rate is Σ s_j p_j. On its rim,
  where some u_j = 0, the features j stay and the rate is another one: the mean of those of the two
  orthants that meet there, so at most the greater of the two. Soft density (with its best b) is
  Lipschitz in u. So no rule on the rim beats the greater rate times its soft density, and rules
  inside that orthant come as near to this product as one likes: the supremum of the gain over all
  rules is the maximum over closed orthants, each with its own rate. It need not be attained.

Why vertices are enough. Let S be the agents that the best (u, b) of a facet covers. The (u, b) of
the facet that cover S form a polytope, since u and b are bounded there, on which Σ_{i∈S} ω_i(b −
u·z_i) is linear: it is best at a vertex, where k linearly independent equalities hold, among those
of the agents of S, b − u·z_i = 0 or ℓ_i, and those of the facet's rim. No b is best for its u
unless some agent of S is at ℓ_i. So every choice of such an agent i, which gives b, and of k − 1
other equalities contains the best vertex. The same is true of density, with i at either end.

Rounding. Equalities are solved with rows of length one, in units in which the coordinates of the
agents are at most 1. A system whose inverse is larger than 1/DEPENDENT is left out: one of its
equalities holds, up to a few DEPENDENT, wherever the others do. The others are solved to about the
rounding of their rows times their inverse. A vertex's slack covers both, so what the best vertex
covers is covered, with ends that much longer, at a point that is tried: `at_most` counts that. For
`surely`, b is lowered by the slack, which keeps all agents at the far ends of their reach.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product

import numpy as np

from mipmech import Instance
from tests import referee

DEPENDENT = 1e-10  # rows and singular values below this share of the largest
EPSILON = 2.0**-52
BATCH = 100_000  # vertices at a time


@dataclass(frozen=True)
class Bracket:
    """`surely` ≤ what is asked ≤ `at_most`."""

    surely: float
    at_most: float


@dataclass(frozen=True)
class Facet:
    """The u with normal·u = 1 and low ≤ u ≤ high.

    normal, low, high : (k,) arrays
    rate : gain per unit of cost
    rim : the equalities u_j = value that bound it
    """

    normal: np.ndarray
    low: np.ndarray
    high: np.ndarray
    rate: float
    rim: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class _Sample:
    """Agents that weigh something, about their middle: z (m, k), weights that sum to 1.

    largest : the largest score of a direction of the dual length one
    slack : the least slack of distances at a vertex
    unit : a power of two; z, reach, largest and slack are in multiples of it
    """

    z: np.ndarray
    reach: np.ndarray
    weight: np.ndarray
    largest: float
    slack: float
    unit: float


def facets(instance) -> list[Facet]:
    """All facets of the dual unit sphere, those of positive rate first."""
    p = _seen(instance, instance.quality) / _prices(instance)
    k = len(p)
    found = []
    if instance.costs.norm == "l1":
        for j in range(k):
            for sign in (1.0, -1.0):
                normal = np.where(np.arange(k) == j, sign, 0.0)
                rim = tuple((i, end) for i in range(k) if i != j for end in (-1.0, 1.0))
                found.append(Facet(normal, -np.ones(k), np.ones(k), float(sign * p[j]), rim))
    else:
        assert instance.costs.norm == "linf"
        for signs in product((1.0, -1.0), repeat=k):
            normal = np.array(signs)
            low, high = np.minimum(normal, 0.0), np.maximum(normal, 0.0)
            rim = tuple((j, 0.0) for j in range(k))
            found.append(Facet(normal, low, high, float(normal @ p), rim))
    return sorted(found, key=lambda facet: -facet.rate)


def best_gain(instance) -> Bracket:
    """The supremum of the gain over all rules."""
    sides = [Bracket(0.0, 0.0)]
    for facet in facets(instance):
        if facet.rate > 0:
            soft = best_soft_density(instance, facet)
            sides.append(Bracket(facet.rate * soft.surely, facet.rate * soft.at_most))
    return Bracket(
        max(side.surely for side in sides) * (1 - 1e-12),
        max(side.at_most for side in sides) * (1 + 1e-12),
    )


def best_soft_density(instance, facet: Facet) -> Bracket:
    """The best soft density over the closed facet and all b, in units of cost."""
    sample = _sample(instance)
    reach = sample.reach[:, None]
    surely, at_most = 0.0, 0.0
    anchors = [(i, float(far)) for i, far in enumerate(sample.reach)]
    for distance, slack in _distances(sample, facet, 0.0, sample.reach, anchors):
        lower = distance - slack  # b is lowered, so that nobody is lost at the far end
        kept = (lower >= 0) & (lower <= reach - slack / 2)
        surely = max(surely, float((sample.weight @ np.where(kept, lower, 0)).max(initial=0)))
        near = (distance >= -slack) & (distance <= reach + slack)
        most = np.where(near, np.clip(distance + slack, 0, reach), 0)
        at_most = max(at_most, float((sample.weight @ most).max(initial=0)))
    return Bracket(surely * sample.unit, at_most * sample.unit)


def best_density(instance, facet: Facet) -> Bracket:
    """The best density over the closed facet and all b.

    `surely` keeps clear of both ends of all margins; `at_most` lengthens them.
    """
    sample = _sample(instance)
    found = []
    for room, widest in ((-2 * sample.slack, sample.slack), (sample.slack, np.inf)):
        near, far = -room, sample.reach + room
        anchors = [(i, end) for i, last in enumerate(far) for end in (near, float(last))]
        best = 0.0
        for distance, slack in _distances(sample, facet, near, far, anchors):
            taken = np.minimum(slack, widest)
            inside = (distance >= near - taken) & (distance <= far[:, None] + taken)
            best = max(best, float((sample.weight @ inside).max(initial=0)))
        found.append(best)
    return Bracket(found[0] * (1 - 1e-14), found[1] * (1 + 1e-14))


def best_gain_exactly(instance) -> Fraction:
    """The supremum of the gain over all rules in rationals, one vertex at a time: for tiny ones."""
    sample = referee.Sample.of(instance)
    columns = list(instance.view.columns)
    z = [[x[j] * sample.prices[j] for j in columns] for x in sample.x]
    p = [sample.w_f[j] / sample.prices[j] for j in columns]
    k, everyone = len(columns), range(len(z))
    best = Fraction(0)
    for facet in facets(instance):
        normal = referee.exact(facet.normal)
        rate = referee.dot(normal, p)
        if rate <= 0:
            continue
        rim = [([Fraction(int(i == j)) for i in range(k)], Fraction(v)) for j, v in facet.rim]
        for anchor in everyone:
            apart = [[a - b for a, b in zip(z[anchor], row, strict=True)] for row in z]
            reach = sample.reach[anchor]
            ends = [(row, -reach) for row in apart]
            ends += [(row, far - reach) for row, far in zip(apart, sample.reach, strict=True)]
            for chosen in combinations(ends + rim, k - 1):
                u = referee.solve(
                    [normal, *(row for row, _ in chosen)], [Fraction(1), *(v for _, v in chosen)]
                )
                sides = zip(facet.low, [] if u is None else u, facet.high, strict=False)
                if u is None or any(not low <= c <= high for low, c, high in sides):
                    continue
                distance = [referee.dot(row, u) + reach for row in apart]
                total = sum(
                    (o * d for o, d, far in zip(sample.weight, distance, sample.reach, strict=True)
                     if 0 <= d <= far), Fraction(0)
                )  # fmt: skip
                best = max(best, rate * total)
    return best


def euclidean(instance) -> Instance:
    """The same problem with Euclidean costs, for l2 with prices or a matrix: y = Lᵀx, M = LLᵀ.

    ‖Δ‖² = |LᵀΔ|², the score is w·x = (L⁻¹w)·y, and quality is (L⁻¹w_f)·y. With prices L is their
    diagonal, and the planner sees the same columns; otherwise what she sees becomes a `view`.
    """
    costs = instance.costs
    assert costs.norm == "l2"
    effort = np.ones(instance.agents.shape[1]) if costs.effort is None else costs.effort
    root = np.diag(effort) if effort.ndim == 1 else np.linalg.cholesky(effort)
    if effort.ndim == 1 and instance.view.columns is not None:
        seen = {"visible": list(instance.view.columns)}
    else:
        seen = {"view": np.linalg.solve(root, instance.view.matrix.T).T}
    return Instance.from_arrays(
        instance.agents @ root,
        np.linalg.solve(root, instance.quality),
        weights=instance.weights,
        quality_offset=instance.quality_offset,
        **{costs.given: costs.values},
        **seen,
    )


def _distances(
    sample: _Sample, facet: Facet, near: float, far: np.ndarray, anchors: list[tuple[int, float]]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Distances b − u·z_j of all agents, (m, vertices), and slacks, at every vertex of the facet.

    An anchor (i, d) gives b = u·z_i + d; other equalities are those of distance near or far_j.
    """
    m, k = sample.z.shape
    columns = np.abs(sample.z).max(axis=0)
    columns = np.where(columns > 0, columns, columns.max() or 1.0)
    scaled = sample.z / columns
    rim = np.zeros((len(facet.rim), k))
    for row, (j, _) in zip(rim, facet.rim, strict=True):
        row[j] = 1 / columns[j]
    # Both ends of one agent, or of the facet in one coordinate, are parallel: never both.
    number = np.array([*range(m), *range(m), *(m + j for j, _ in facet.rim)])
    choices = np.array(list(combinations(range(len(number)), k - 1)), dtype=np.intp)
    same = np.sort(number[choices], axis=1)
    choices = choices[(same[:, 1:] != same[:, :-1]).all(axis=1)]
    normal = facet.normal / columns
    length = float(np.linalg.norm(normal))
    for i, level in anchors:
        apart = scaled[i] - scaled
        rows = np.concatenate([apart, apart, rim])
        right = np.concatenate([np.full(m, near - level), far - level, [v for _, v in facet.rim]])
        lengths = np.linalg.norm(rows, axis=1)
        usable = lengths > DEPENDENT
        tried = choices[usable[choices].all(axis=1)]
        lengths[~usable] = 1.0
        rows, right = rows / lengths[:, None], right / lengths
        # Differences of coordinates are known to EPSILON; those of the facet's rim exactly.
        unsure = 4 * EPSILON / np.where(np.arange(len(rows)) < 2 * m, np.minimum(lengths, 1), 1)
        for start in range(0, len(tried), BATCH):
            part = tried[start : start + BATCH]
            matrix = np.empty((len(part), k, k))
            values = np.empty((len(part), k))
            matrix[:, 0], values[:, 0] = normal / length, 1 / length
            matrix[:, 1:], values[:, 1:] = rows[part], right[part]
            error = unsure[part].max(axis=1, initial=4 * EPSILON)
            scaled_u, error = _solutions(matrix, values, error)
            u, slack = scaled_u / columns, sample.slack + sample.largest * (1 + k) * error
            room = slack[:, None] / columns
            fits = ((u >= facet.low - room) & (u <= facet.high + room)).all(axis=1)
            u, slack = u[fits], slack[fits]
            # Onto the facet: what rounding took it off by is within the slack.
            u = np.clip(u / (u @ facet.normal)[:, None], facet.low, facet.high)
            u /= (u @ facet.normal)[:, None]
            yield (sample.z[i] - sample.z) @ u.T + level, slack


def _solutions(
    matrix: np.ndarray, values: np.ndarray, error: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The solutions of many small systems, without the nearly singular ones, and their errors.

    Rows have the length one, and are off by up to ``error``.
    """
    large = np.abs(np.linalg.det(matrix)) > DEPENDENT ** len(matrix.T)
    matrix, values, error = matrix[large], values[large], error[large]
    inverse = np.linalg.inv(matrix)
    size = np.linalg.norm(inverse, axis=(1, 2))
    sound = size < 1 / DEPENDENT
    inverse, matrix, values = inverse[sound], matrix[sound], values[sound]
    x = (inverse @ values[:, :, None])[:, :, 0]
    rest = values - (matrix @ x[:, :, None])[:, :, 0]
    return x + (inverse @ rest[:, :, None])[:, :, 0], error[sound] * size[sound]


def _sample(instance) -> _Sample:
    counts = instance.weights > 0
    z = _seen(instance, instance.agents[counts])
    z = (z - (z.min(axis=0) / 2 + z.max(axis=0) / 2)) * _prices(instance)
    values = instance.costs.values[counts]
    reach = values if instance.costs.given == "reach" else 1 / values
    weight = instance.weights[counts] / instance.weights[counts].sum()
    # The largest score of a unit direction.
    largest = np.abs(z).sum(axis=1).max() if instance.costs.norm == "l1" else np.abs(z).max()
    unit = 2.0 ** np.frexp(largest or reach.max())[1]  # thresholds below are for data of size 1
    z, reach, largest = z / unit, reach / unit, largest / unit
    slack = 2 * (1 + z.shape[1]) * DEPENDENT * float(largest) + 1e-15 * float(reach.max())
    return _Sample(z, reach, weight, float(largest), slack, float(unit))


def _seen(instance, vectors: np.ndarray) -> np.ndarray:
    return vectors[..., list(instance.view.columns)]


def _prices(instance) -> np.ndarray:
    effort = instance.costs.effort
    return _seen(instance, np.ones(instance.agents.shape[1]) if effort is None else effort)
