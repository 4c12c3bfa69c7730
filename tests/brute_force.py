"""Exact answers at a fixed η by trying every vertex: slow, plain, shares no code with the package.

Only instances' raw arrays are read, and only instances whose planner sees columns are understood.

At η a unit direction is u = (η/‖p‖) p̂ + ρ v with v on the unit sphere of R^d, d = k − 1 (p = 0 and
η = 0: u = v, d = k). Agent i is covered iff b − s_i(v) lies in [0, ℓ_i], where s_i is affine in v.

Why finitely many points are enough. Let S be a nonempty set of agents that some (v, b) covers. The
pairs that cover S form a compact set F, so a linear functional c attains its maximum on F, at x.

- If c's coefficient of b is not zero, then at x, where b is best for its v, some agent of S is at
  an end of its slab. So at least one equality b = s_i(v) or b = s_i(v) + ℓ_i holds at x.
- Let A be all equalities of S that hold at x, and L the affine space they cut out. Nearby, the
  other inequalities of S stay strict, so x is a local maximum of c on L ∩ {‖v‖ = 1}.
- On L one equality gives b, so L is an affine space of v's, and L ∩ {‖v‖ = 1} is a sphere: with v₀
  the point of L nearest to 0 and N an orthonormal basis of L's directions, v = v₀ + Ny where
  ‖y‖² = 1 − ‖v₀‖². On it c has two critical points, or is constant; where c is drawn at random it
  is constant only on single points.
- L is cut out by linearly independent equalities, of different agents, since both ends of one agent
  have the same gradient. d of them always suffice: d + 1 leave one point, and without one of them
  there is a line that meets the unit sphere in at most two points, one of which is x.

So the critical points for every choice of 1 to d agents, and of an end for each, contain a point
that covers S. For the best soft density take for c the sum Σ_{i∈S} ω_i (b − s_i(v)) itself. Where
it is constant on the sphere of A, all of F ∩ L has the best value, and a random functional, by the
same argument for F ∩ L, has a critical point there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, islice, product

import numpy as np

BATCH = 20_000  # vertices at a time
DEPENDENT = 1e-12  # singular values below this share of the largest row: fewer agents say the same
NEAR_POLE = 1e-15  # 1 − |η|/‖p‖ below this: η is ±‖p‖, rounded


@dataclass(frozen=True)
class Bracket:
    """The best density at η, between what keeps clear of every end and what ties may add.

    `surely` is the weight of `sure_set`, covered by (`direction`, `threshold`) with clearance; both
    are None if the set is empty. `at_most` is the weight of `most_set`. Weights are normalised and
    summed as rationals, then rounded; `tied` compares the rationals.
    """

    surely: float
    at_most: float
    tied: bool
    sure_set: tuple[int, ...]
    most_set: tuple[int, ...]
    direction: tuple[Fraction, ...] | None
    threshold: Fraction | None


@dataclass(frozen=True)
class _Sample:
    """Agents that weigh something, about their mean: z (m, k), in units of `scale`."""

    numbers: list[int]
    z: np.ndarray
    reach: np.ndarray
    weight: np.ndarray
    exact_weight: list[Fraction]
    p: np.ndarray
    centre: list[Fraction]
    scale: float


@dataclass(frozen=True)
class _Slice:
    """Scores at η: s_i(v) = start_i + slope_i·v, and u = fixed + turn @ v. slope : (m, d)."""

    start: np.ndarray
    slope: np.ndarray
    fixed: np.ndarray
    turn: np.ndarray


def best_density(instance, eta: float, tolerance: float = 1e-9) -> Bracket | None:
    """The best density over all unit u with u·p = η and all b; None if there is no such u.

    `tolerance` is a share of the largest distance of an agent from the mean (of the longest reach,
    if all agents are in one place). `surely` is at least what can be had with distances in
    [tol, ℓ_i − tol], and is had with half that clearance. `at_most` is at least what can be had
    in [−tol/2, ℓ_i + tol/2], and is had in [−tol, ℓ_i + tol].
    """
    sample = _sample(instance)
    at = _slice(sample, eta)
    if at is None:
        return None
    # Agents of a covered set are at most twice the largest norm apart, and b may be the last score.
    largest = float(np.linalg.norm(sample.z, axis=1).max())
    reach = np.minimum(sample.reach, 4 * largest) if largest > 0 else sample.reach
    sure, v, b = _most_covered(sample, at, reach, -tolerance, -tolerance / 2)
    most, _, _ = _most_covered(sample, at, reach, tolerance / 2, tolerance)
    share = dict(zip(sample.numbers, sample.exact_weight, strict=True))
    surely, at_most = (sum((share[i] for i in s), Fraction(0)) for s in (sure, most))
    direction, threshold = None, None
    if sure:
        u = [Fraction(float(c)) for c in at.fixed + at.turn @ v]
        shift = sum((c * x for c, x in zip(u, sample.centre, strict=True)), Fraction(0))
        seen = dict(zip(instance.view.columns, u, strict=True))
        direction = tuple(seen.get(j, Fraction(0)) for j in range(instance.agents.shape[1]))
        threshold = Fraction(b) * Fraction(sample.scale) + shift
    return Bracket(
        float(surely), float(at_most), surely != at_most, sure, most, direction, threshold
    )


def best_soft_density(instance, eta: float) -> float | None:
    """The best soft density over all unit u with u·p = η and all b; None if there is no such u.

    Every subset of agents is tried: for about seven agents. Every vertex is graded with its own
    best threshold, which changes by at most 2δ where scores change by δ: no tolerance is needed.
    """
    sample = _sample(instance)
    at = _slice(sample, eta)
    if at is None:
        return None
    everyone = range(len(sample.reach))
    ends = at.start[:, None] + np.column_stack([np.zeros_like(sample.reach), sample.reach])

    def best(agents: Sequence[int], functionals: np.ndarray) -> float:
        points = _vertices(at.slope, ends, agents, functionals)
        scores = (at.start + v @ at.slope.T for v, _ in points)
        return max(float(_soft(s, sample.reach, sample.weight).max(initial=0)) for s in scores)

    result = best(everyone, _random_functionals(at.slope.shape[1]))
    for size in everyone:
        for chosen in combinations(everyone, size + 1):
            weight = sample.weight[list(chosen)]
            total = np.append(-weight @ at.slope[list(chosen)], weight.sum())
            result = max(result, best(chosen, total[None]))
    return result * sample.scale


def best_gain_bracket(
    instance, steps: int = 8, gap: float = 1e-3, most_cells: int = 2_000_000
) -> tuple[float, float]:
    """(lower, upper) of the best gain of any mechanism where the planner sees up to three columns.

    u is at the angle θ from p, and for three columns at the longitude φ; `steps` cells per right
    angle to begin with. Cells that may beat the best centre by more than the share `gap` are
    halved. With more than `most_cells` of them the bracket is returned as it is then.
    """
    sample = _sample(instance)
    size = float(np.linalg.norm(sample.p))
    k = len(sample.p)
    assert k <= 3
    if size == 0:
        return 0.0, 0.0
    pole = sample.p / size
    around = np.linalg.svd(pole[None])[2][1:]
    unit = size * sample.scale
    if k == 1:
        gain = float(_soft((sample.z @ pole)[None], sample.reach, sample.weight)[0]) * unit
        return gain, gain
    half_theta, half_phi = math.pi / 4 / steps, math.pi / 4 / steps if k == 3 else 0.0
    thetas = (2 * np.arange(steps) + 1) * half_theta
    phis = (2 * np.arange(4 * steps) + 1) * half_phi if k == 3 else np.array([0.0, math.pi])
    cells = np.array([(t, f, half_theta, half_phi) for t in thetas for f in phis])
    lower, settled = 0.0, 0.0
    while True:
        theta, phi, half_theta, half_phi = cells.T
        across = np.stack([np.cos(phi), np.sin(phi)][: k - 1])
        u = np.outer(np.cos(theta), pole) + (np.sin(theta) * across).T @ around
        wide = half_phi * np.sin(np.minimum(theta + half_theta, math.pi / 2))
        soft, reachable = _soft_around(sample, u, np.hypot(half_theta, wide))
        lower = max(lower, float((np.cos(theta) * soft).max()))
        upper = np.cos(np.maximum(theta - half_theta, 0)) * reachable
        split = upper > lower * (1 + gap)
        settled = max(settled, float(upper[~split].max(initial=0)))
        if not split.any() or split.sum() > most_cells // 2:
            above = max(lower, settled, float(upper[split].max(initial=0)))
            return lower * (1 - 1e-12) * unit, above * (1 + 1e-12) * unit
        cells = _halves(cells[split], (half_theta >= wide)[split])


def _soft_around(
    sample: _Sample, u: np.ndarray, angle: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The best soft density of each direction, and a bound for all directions within the angle.

    There score i changes by at most δ_i = ‖z_i‖·angle. Two bounds, of which the lower counts:
    - the best soft density changes by at most 2δ, δ = max δ_i: with b − δ nobody falls off the far
      end, and distances are shorter by at most 2δ;
    - if b covers agent i anywhere, then b − s_i is in [−δ_i, ℓ_i + δ_i] in the middle, and i's
      distance is at most ℓ_i and at most b − s_i + δ_i.
    """
    norms = np.linalg.norm(sample.z, axis=1)
    middle, bound = [], []
    for i in range(0, len(u), BATCH):
        scores = u[i : i + BATCH] @ sample.z.T
        change = angle[i : i + BATCH, None] * norms
        reach, weight = sample.reach, sample.weight
        middle.append(_soft(scores, reach, weight))
        relaxed = _soft(scores - change, reach + 2 * change, weight, most=reach)
        bound.append(np.minimum(relaxed, middle[-1] + 2 * change.max(axis=1)))
    return np.concatenate(middle), np.concatenate(bound)


def _halves(cells: np.ndarray, along_theta: np.ndarray) -> np.ndarray:
    step = np.where(along_theta, 0, 1)
    rows = np.arange(len(cells))
    smaller = cells.copy()
    smaller[rows, step + 2] /= 2
    move = np.zeros_like(cells)
    move[rows, step] = smaller[rows, step + 2]
    return np.concatenate([smaller - move, smaller + move])


def _sample(instance) -> _Sample:
    columns = instance.view.columns
    assert columns is not None
    numbers = [i for i, w in enumerate(instance.weights) if w > 0]
    rows = [[Fraction(float(instance.agents[i, j])) for j in columns] for i in numbers]
    # Rational, so that what is left after the centre is as precise as what was given.
    centre = [sum(column, Fraction(0)) / len(rows) for column in zip(*rows, strict=True)]
    z = np.array([[float(x - c) for x, c in zip(row, centre, strict=True)] for row in rows])
    reach = 1 / np.asarray(instance.cost, dtype=float)[numbers]
    exact = [Fraction(float(instance.weights[i])) for i in numbers]
    share = [w / sum(exact) for w in exact]
    scale = float(np.linalg.norm(z, axis=1).max()) or float(reach.max())
    return _Sample(
        numbers,
        z / scale,
        reach / scale,
        np.array([float(w) for w in share]),
        share,
        np.array([float(instance.quality[j]) for j in columns]),
        centre,
        scale,
    )


def _slice(sample: _Sample, eta: float) -> _Slice | None:
    k = len(sample.p)
    size = float(np.linalg.norm(sample.p))
    if size == 0:
        if eta != 0:
            return None
        fixed, turn = np.zeros(k), np.eye(k)
    else:
        ratio = eta / size
        off_pole = 1 - abs(ratio)
        if off_pole < -1e-12 or (k == 1 and off_pole > 1e-12):
            return None
        pole = sample.p / size
        if k == 1 or off_pole <= NEAR_POLE:
            fixed, turn = math.copysign(1.0, ratio) * pole, np.zeros((k, 0))
        else:
            fixed = ratio * pole
            turn = math.sqrt(off_pole * (1 + abs(ratio))) * np.linalg.svd(pole[None])[2][1:].T
    return _Slice(sample.z @ fixed, sample.z @ turn, fixed, turn)


def _random_functionals(d: int) -> np.ndarray:
    """Two, fixed: the second is for sets whose point for the first is badly conditioned."""
    return np.random.default_rng(20).uniform(0.5, 1.5, (2, d + 1)) * (-1.0) ** np.arange(d + 1)


def _vertices(
    slope: np.ndarray, ends: np.ndarray, agents: Sequence[int], functionals: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Batches of critical points (v, b) of functionals (·, d+1), for any choice of 1 to d agents.

    ends : (m, 2) array, agent i is at an end of its slab where b − slope_i·v is one of ends_i
    """
    d = slope.shape[1]
    if d == 0:
        b = ends[list(agents)].ravel()
        yield np.zeros((len(b), 0)), b
        return
    longest = float(np.linalg.norm(slope, axis=1).max())
    for size in range(1, min(d, len(agents)) + 1):
        sides = np.array(list(product((0, 1), repeat=size)))
        choices = combinations(agents, size)
        while batch := list(islice(choices, BATCH // len(sides))):
            chosen = np.array(batch)
            first = slope[chosen[:, 0]]
            independent, solve, null = _solver(slope[chosen[:, 1:]] - first[:, None], longest)
            chosen, first = chosen[independent], first[independent]
            level = ends[chosen[:, None, :], sides]
            nearest = np.einsum("cde,cse->csd", solve, level[..., :1] - level[..., 1:])
            square = 1 - (nearest**2).sum(axis=-1)
            radius = np.sqrt(np.maximum(square, 0))
            real = square >= -1e-12
            # With d agents the sphere is two points, the same for all functionals.
            for functional in functionals[: 1 if size == d else None]:
                gradient = functional[:-1] + functional[-1] * first
                toward = np.einsum("cnd,cd->cn", null, gradient)
                length = np.linalg.norm(toward, axis=1, keepdims=True)
                # Where constant, any point will do: random functionals find those that matter.
                toward = np.where(length > 0, toward, 1.0)
                toward /= np.linalg.norm(toward, axis=1, keepdims=True)
                step = radius[..., None] * np.einsum("cnd,cn->cd", null, toward)[:, None]
                for v in (nearest + step, nearest - step):
                    unit = v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-300)
                    b = level[..., 0] + np.einsum("csd,cd->cs", unit, first)
                    yield unit[real], b[real]


def _solver(rows: np.ndarray, longest: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each of the systems (c, e, d): is its rank e; if so its pseudo-inverse and null space."""
    c, e, d = rows.shape
    if e == 0:
        return np.ones(c, dtype=bool), np.zeros((c, d, 0)), np.tile(np.eye(d), (c, 1, 1))
    left, values, right = np.linalg.svd(rows, full_matrices=True)
    good = values[:, -1] > DEPENDENT * longest
    left, values, right = left[good], values[good], right[good]
    solve = np.einsum("ced,ce,cfe->cdf", right[:, :e], 1 / values, left)
    return good, solve, right[:, e:]


def _most_covered(
    sample: _Sample, at: _Slice, reach: np.ndarray, made_wider: float, counted_wider: float
) -> tuple[tuple[int, ...], np.ndarray, float]:
    """The heaviest set at any vertex of slabs made wider at both ends, and one point for it."""
    ends = at.start[:, None] + np.column_stack(
        [np.full_like(reach, -made_wider), reach + made_wider]
    )
    heaviest = 0.0
    kept: list[tuple[float, np.ndarray, np.ndarray, float]] = []
    functionals = _random_functionals(at.slope.shape[1])
    for v, b in _vertices(at.slope, ends, range(len(reach)), functionals):
        distance = b[:, None] - (at.start + v @ at.slope.T)
        inside = (distance >= -counted_wider) & (distance <= reach + counted_wider)
        weight = inside @ sample.weight
        heaviest = max(heaviest, float(weight.max(initial=0)))
        # Float sums only sort out; the few that are left are compared as rationals.
        rows = np.flatnonzero((weight >= heaviest - 1e-12) & (weight > 0))
        if len(rows):
            _, first = np.unique(inside[rows], axis=0, return_index=True)
            kept += [(float(weight[r]), inside[r], v[r], float(b[r])) for r in rows[first]]
    best: tuple[tuple[int, ...], np.ndarray, float] = ((), np.zeros(at.slope.shape[1]), 0.0)
    record = Fraction(0)
    for weight, inside, v, b in kept:
        if weight >= heaviest - 1e-12:
            covered = np.flatnonzero(inside)
            total = sum((sample.exact_weight[i] for i in covered), Fraction(0))
            if total > record:
                record, best = total, (tuple(sample.numbers[i] for i in covered), v, b)
    return best


def _soft(
    scores: np.ndarray, reach: np.ndarray, weight: np.ndarray, most: np.ndarray | float = math.inf
) -> np.ndarray:
    """For each row of scores (·, m) the best soft density: b is the end of some agent's slab.

    A distance counts for no more than `most`.
    """
    ends = scores + reach
    distance = ends[:, :, None] - scores[:, None, :]
    # Ends are compared as rounded: whichever of two equal ones is lower covers both agents.
    inside = (distance >= 0) & (ends[:, :, None] <= ends[:, None, :])
    return (np.where(inside, np.minimum(distance, most), 0.0) @ weight).max(axis=1)
