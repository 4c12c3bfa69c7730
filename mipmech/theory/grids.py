"""Grids over η: the paper's (Algorithm 1), and the angular grid that needs no smoothness.

The Lipschitz fact and the two grid theorems are stated here and proved in `docs/theory.md`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mipmech.errors import InputError
from mipmech.model.costs.facets import facets_of
from mipmech.model.geometry import Geometry, geometry_of
from mipmech.model.instance import Instance
from mipmech.theory.lemma4 import quarter_factor
from mipmech.tolerances import ANGLE_ROUNDING, PARALLEL, ROUNDING, UNIT
from mipmech.validation import Floats, positive

# More values of η than this are refused: no run could finish them.
MOST_ETAS = 100_000_000


def rotate(w1: ArrayLike, w2: ArrayLike, epsilon: float) -> Floats:
    """Lemma 2: a unit vector w in the plane of w1 and w2 with w·w2 = w1·w2 + ε and w·w1 ≥ 1 − ε.

    The paper prints w·w2 = w·w1 + ε. If w1 = −w2 the two span no plane, and in a space of one
    dimension the lemma is false.

    Parameters
    ----------
    w1, w2 : (k,) array_like
        Unit vectors that are not parallel.
    epsilon : float
        0 ≤ ε and w1·w2 ≤ 1 − 2ε.

    Examples
    --------
    >>> rotate([1.0, 0.0], [0.0, 1.0], 0.5).round(6).tolist()
    [0.866025, 0.5]
    """
    a, b = np.asarray(w1, dtype=np.float64), np.asarray(w2, dtype=np.float64)
    omega = float(a @ b)
    for name, vector in (("w1", a), ("w2", b)):
        if not abs(float(np.linalg.norm(vector)) - 1) <= UNIT:
            raise InputError("must be a unit vector", field=name)
    if not (epsilon >= 0 and omega <= 1 - 2 * epsilon):
        raise InputError("Lemma 2 needs 0 ≤ ε and w1·w2 ≤ 1 − 2ε", field="epsilon")
    across = a - omega * b
    across -= (across @ b) * b  # w1 and w2 may be nearly opposite: once would not be orthogonal
    length = float(np.linalg.norm(across))
    if length < PARALLEL:
        raise InputError("w1 and w2 are parallel, so they span no plane to rotate in", field="w1")
    # The proof's α w1 + β w2, written in the orthonormal basis of the plane, where nothing cancels.
    target = min(omega + epsilon, 1.0)
    result: Floats = target * b + math.sqrt(max(0.0, 1 - target**2)) * across / length
    return result


def soft_density_loss(radius: float, angle: float) -> float:
    """The Lipschitz fact: max_b SDen falls by at most 2·δ when u turns by ``angle``.

    δ = 2 R sin(angle/2) bounds |u·z_i − u'·z_i| for agents within R of the centre; under u' the
    threshold b − δ keeps every agent of the margin at a distance in [d_i − 2δ, d_i]. No smoothness
    is needed, because b is free to move.

    Parameters
    ----------
    radius, angle : float
        R, and the angle in radians.
    """
    return 4 * radius * math.sin(min(angle, math.pi) / 2)


@dataclass(frozen=True, eq=False, repr=False)
class Grid:
    """Values of η to ask an oracle for, and the guarantee of the best of the answers.

    Attributes
    ----------
    etas : array
        The values, from ‖p‖ down.
    factor : float
        Lemma 4's share, or 1 for a soft oracle; for thresholds in real numbers, since b + ℓ/2 may
        be no other float than b (a reach of 1 beside one of 1e20).
    loss : float
        The best rule at some η of the grid gains at least opt − loss.
    everywhere : bool
        Whether opt is that of all rules; if not, of the rules with η in the grid only.
    """

    etas: Floats
    factor: float
    loss: float
    everywhere: bool = True

    @property
    def additive(self) -> float:
        """Exact answers give Gain ≥ factor·opt − additive."""
        return self.factor * self.loss

    def __len__(self) -> int:
        return len(self.etas)

    def __iter__(self) -> Iterator[float]:
        return map(float, self.etas)

    def to_dict(self) -> dict[str, Any]:
        """The values and the promise."""
        promise = {"factor": self.factor, "additive": self.additive, "everywhere": self.everywhere}
        return {"etas": self.etas.tolist(), **promise}

    def __repr__(self) -> str:
        promise = f"Gain ≥ {self.factor:.4g}·opt − {self.additive:.4g}"
        promise += "" if self.everywhere else ", opt on the grid only"
        return f"Grid({len(self)} values of η from {self.etas[0]:.6g} down: {promise})"


def angular_grid(sample: Instance | Geometry, epsilon: float, soft: bool = False) -> Grid:
    """The grid η_j = ‖p‖ cos(jΔ) for all jΔ < π/2.

    With a density oracle and Lemma 4's two thresholds, Δ = ε/(2κR‖p‖) gives Gain ≥ κ·opt − ε, with
    κ the `quarter_factor`, ¼ for equal costs. With a soft-density oracle κ is 1, for any costs:
    opt − ε. On the sample itself; no smoothness needed. ``additive`` is ε and what the band of η
    may cost, some 1e-12.

    The best direction's angle to p is rounded *down* to a multiple of Δ, so u·p does not shrink and
    η = 0 need not be asked; max_b SDen falls by at most 2RΔ (`soft_density_loss`).

    Parameters
    ----------
    sample : Instance or Geometry
        The sample.
    epsilon : float
        ε, in units of gain.
    soft : bool
        Whether the oracle maximises soft density.

    Examples
    --------
    >>> square = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
    >>> sample = Instance.from_arrays(square, [1.0, 0.0], visible=[0, 1], cost=1.0)
    >>> angular_grid(sample, 0.1)  # against 10,001 values of the paper's
    Grid(8 values of η from 1 down: Gain ≥ 0.25·opt − 0.1)
    """
    geometry = geometry_of(sample)
    _need_sphere(geometry)
    positive(epsilon=epsilon)
    factor = 1.0 if soft else float(quarter_factor(geometry.instance))
    size = geometry.p_norm
    if size == 0:
        return Grid(np.zeros(1), 1.0, 0.0)
    if geometry.rank == 1 or geometry.radius == 0:
        # One direction, or all agents at one point: no direction beats P w_f.
        return Grid(np.array([size]), factor, 0.0)
    # The loss 2RΔ‖p‖ of opt is multiplied by the factor, and the result is to be ε.
    step = epsilon / (2 * factor * _radius(geometry) * size) * (1 - ANGLE_ROUNDING)
    if step < math.pi / MOST_ETAS:
        raise InputError(
            f"is {epsilon:g}, which makes a grid of more than {MOST_ETAS:,} values; choose a larger"
            " one",
            field="epsilon",
        )
    etas = size * np.cos(step * np.arange(math.ceil(math.pi / 2 / step)))
    return Grid(np.maximum(etas, 0.0), factor, _loss(geometry, step))


def facet_grid(sample: Instance | Geometry, soft: bool = False) -> Grid:
    """For l1 and linf: the rates of all facets that can gain, the greatest first.

    On a facet the rate is constant, so that the greatest gain is the greatest over facets of the
    rate times the greatest soft density there: nothing is lost between values. With a soft oracle
    the best answer is the optimum; with a density oracle Lemma 4's factor holds.

    Parameters
    ----------
    sample : Instance or Geometry
        A sample with costs of the norm l1 or linf.
    soft : bool
        Whether the oracle maximises soft density.

    Examples
    --------
    >>> sample = Instance.from_arrays(
    ...     [[0.0, 1.0], [1.0, 0.0]], [1.0, 3.0], visible=[0, 1], cost=1.0, norm="l1"
    ... )
    >>> facet_grid(sample)
    Grid(2 values of η from 3 down: Gain ≥ 0.25·opt − 0)
    """
    geometry = geometry_of(sample)
    factor = 1.0 if soft else float(quarter_factor(geometry.instance))
    if geometry.p_norm == 0:
        return Grid(np.zeros(1), 1.0, 0.0)
    rates = [
        float(facet.rate)
        for facet in facets_of(geometry.seen or geometry.instance)
        if facet.rate > 0
    ]
    # One question finds all facets whose rate is the same up to the band.
    kept = [rates[0]]
    for rate in rates[1:]:
        if kept[-1] - rate > geometry.band * geometry.p_norm / 2:
            kept.append(rate)
    return Grid(np.array(kept), factor, 0.0)


def _radius(geometry: Geometry) -> float:
    """R in the user's units, rounded up."""
    counts = geometry.weight > 0
    return (geometry.radius + 2 * float(geometry.rounding.z[counts].max())) * geometry.unit


def _loss(geometry: Geometry, step: float) -> float:
    """What turning by an angle may lose, and the band by which an exact answer may miss its η."""
    cost = geometry.instance.cost[geometry.weight > 0]
    in_band = 2 * geometry.band * geometry.p_norm / float(cost.min())
    return 2 * _radius(geometry) * step * geometry.p_norm + in_band


def paper_grid(
    sample: Instance | Geometry, epsilon: float, sigma: float, radius: float, soft: bool = False
) -> Grid:
    """Algorithm 1's grid: η = 0, ε'‖p‖, 2ε'‖p‖, …, ‖p‖ with ε' = min(ε⁴, ε²σ⁴/r⁴).

    Theorem 3 counts r²/σ² where this ε' gives r⁴/σ⁴ calls. Its guarantee ¼·opt − O(ε) is for the
    σ-smoothed population, with a constant that the paper does not give. On the sample itself, the
    argument of the angular grid holds for any grid, with the largest difference of neighbouring
    angles as Δ: here arccos(1 − ε'), the one next to P w_f.

    Parameters
    ----------
    sample : Instance or Geometry
        The sample.
    epsilon, sigma, radius : float
        The paper's ε, σ and r.
    soft : bool
        Whether the oracle maximises soft density.
    """
    geometry = geometry_of(sample)
    _need_sphere(geometry)
    return grid_of(geometry, paper_etas(geometry.p_norm, epsilon, sigma, radius), soft)


def grid_of(sample: Instance | Geometry, etas: ArrayLike, soft: bool = False) -> Grid:
    """Any values of η as a grid, with what they lose.

    The argument of `angular_grid` holds with the largest difference of neighbouring angles as Δ, if
    ‖P w_f‖ is among the values; otherwise directions nearer to P w_f are left out.

    Parameters
    ----------
    sample : Instance or Geometry
        The sample.
    etas : array_like
        The values, in any order.
    soft : bool
        Whether the oracle maximises soft density.

    Examples
    --------
    >>> agents, w_f = [[1.0, 0.0], [0.0, 1.0]], [1.0, 0.0]
    >>> sample = Instance.from_arrays(agents, w_f, visible=[0, 1], cost=1.0)
    >>> grid_of(sample, [1.0, 0.5, 0.0])
    Grid(3 values of η from 1 down: Gain ≥ 0.25·opt − 0.3702)
    """
    geometry = geometry_of(sample)
    _need_sphere(geometry)
    values = np.unique(np.asarray(etas, dtype=np.float64))[::-1]
    if not len(values) or not np.isfinite(values).all():
        raise InputError("give one finite number or more", field="etas")
    factor = 1.0 if soft else float(quarter_factor(geometry.instance))
    size = geometry.p_norm
    if size == 0:
        return Grid(values, 1.0, 0.0)
    everywhere = bool((np.abs(values - size) <= geometry.band * size / 2).any())
    if geometry.rank == 1 or geometry.radius == 0 or not everywhere:
        return Grid(values, factor, 0.0, everywhere)
    angles = np.arccos(np.clip(values[values > 0] / size, -1.0, 1.0))
    step = float(np.diff(np.append(angles, math.pi / 2)).max()) + ANGLE_ROUNDING
    return Grid(values, factor, _loss(geometry, step))


def _need_sphere(geometry: Geometry) -> None:
    if geometry.norm != "l2":
        said = f"is for Euclidean costs (l2); with {geometry.norm} there is one η for each facet"
        raise InputError(f"{said}, so leave it out", field="grid")


def paper_count(epsilon: float, sigma: float, radius: float) -> float:
    """How many values the paper's grid has, roughly: 1/ε' + 1.

    >>> round(paper_count(0.1, 0.4, 1.0))
    10001
    """
    return 1 / _paper_step(epsilon, sigma, radius) + 1


def _paper_step(epsilon: float, sigma: float, radius: float) -> float:
    """ε' = min(ε⁴, ε²σ⁴/r⁴)."""
    small, ratio = min(epsilon, 1.0), min(sigma / radius, 1.0)  # beyond 1 they change nothing
    return small**2 * min(small, ratio**2) ** 2


def paper_etas(p_norm: float, epsilon: float, sigma: float, radius: float) -> Floats:
    """The values of the paper's grid, ascending.

    Parameters
    ----------
    p_norm, epsilon, sigma, radius : float
        ‖P w_f‖ and the paper's ε, σ and r.

    Examples
    --------
    >>> len(paper_etas(1.0, 0.1, 0.4, 1.0))
    10001
    """
    positive(epsilon=epsilon, sigma=sigma, radius=radius)
    step = _paper_step(epsilon, sigma, radius)
    if step < 1 / MOST_ETAS:
        raise InputError(
            f"is {epsilon:g}, which makes a grid of more than {MOST_ETAS:,} values; choose a larger"
            " one, or use the angular grid",
            field="epsilon",
        )
    count = math.floor(1 / step * (1 + ROUNDING))
    etas = np.minimum(np.arange(count + 1) * (step * p_norm), p_norm)
    return etas if etas[-1] == p_norm else np.append(etas, p_norm)
