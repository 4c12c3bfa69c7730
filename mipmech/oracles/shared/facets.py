"""The directions at η for costs of the norm l1 or linf: facets of a polytope (`costs.facets`).

A facet is to l1 and linf what a slice is to l2 (`slices`), and has the same methods:

    l1    u = s e_j + Hv, v in the box [−1, 1]^(k−1), H the axes other than j;
    linf  u = Sv, v in the simplex {v ≥ 0, Σ v_j = 1}, S the diagonal of the signs.

Scores are linear in v, so that linear programs along a facet are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.random import Generator

from mipmech.errors import InputError
from mipmech.model.costs.facets import FacetRate, facets_of
from mipmech.model.geometry import Geometry, sizes
from mipmech.oracles.shared.slices import Slice, slice_at
from mipmech.tolerances import EPSILON, SAFETY
from mipmech.validation import Floats, Numbers

# Rules on a simplex have weights of at least this share, so that agents work on every feature: far
# above rounding, far below any use.
LEAST_WEIGHT = 2.0**-30


@dataclass(frozen=True, eq=False)
class Facet:
    """The directions on a facet, and the agents that count as seen from them.

    signs : (k,) array; for l1 one of them is ±1 and the others 0, for linf all are ±1
    eta : the rate there, rounded
    reach, weight : (m,) arrays; weights sum to 1
    slack : (m,) array; no score u·z_i is off by more
    agents : (m,) array, the numbers of these agents in the instance
    """

    geometry: Geometry
    signs: Floats
    eta: float
    reach: Floats
    weight: Floats
    slack: Floats
    agents: Numbers

    @property
    def simplex(self) -> bool:
        """Whether v lies in a simplex (linf); else in a box (l1)."""
        return self.geometry.norm == "linf"

    @cached_property
    def turn(self) -> Floats:
        """What takes v to u, (k, d) array: S, or H."""
        if self.simplex:
            return np.diag(self.signs)
        return np.eye(len(self.signs))[:, self.signs == 0]

    @property
    def fixed(self) -> Floats:
        """What all directions share, (k,) array."""
        return np.zeros(len(self.signs)) if self.simplex else self.signs

    @property
    def dimension(self) -> int:
        """The dimension d of the space of v."""
        return int(self.turn.shape[1])

    @cached_property
    def y(self) -> Floats:
        """Scores are shift + y·v, (m, d) array."""
        return np.ascontiguousarray(self.geometry.z[self.agents] @ self.turn)

    @cached_property
    def shift(self) -> Floats:
        """What all directions share of the scores, (m,) array."""
        return np.asarray(self.geometry.z[self.agents] @ self.fixed)

    @property
    def middle(self) -> Floats:
        """The u in the middle of the facet."""
        d = self.dimension
        return self.direction(np.full(d, 1 / d) if self.simplex else np.zeros(d))

    @property
    def points(self) -> Floats | None:
        """All v, (n, d) array, if there is only one."""
        if self.dimension == (1 if self.simplex else 0):
            return np.ones((1, self.dimension))
        return None

    @cached_property
    def extent(self) -> float:
        """By how much scores may differ on the facet: the greatest size of an agent."""
        return float(sizes(self.geometry.z[self.agents], self.geometry.norm).max())

    @property
    def blur(self) -> float:
        """There is no range of angles."""
        return 0.0

    def draw(self, random: Generator, count: int) -> Floats:
        """Uniform on the facet, and on its edges, where the best rules often are: (count, d)."""
        shape = (count, self.dimension)
        edge = random.random(shape) < random.random((count, 1)) / 2
        if self.simplex:
            v = random.standard_exponential(shape)
            return self.onto(np.where(edge & ~edge.all(axis=1, keepdims=True), 0.0, v))
        v = random.uniform(-1.0, 1.0, shape)
        return np.where(edge, np.where(v < 0, -1.0, 1.0), v)

    def onto(self, v: Floats) -> Floats:
        """Rows on the facet."""
        if not self.simplex:
            return np.clip(v, -1.0, 1.0)
        v = np.maximum(v, 0.0)
        total = v.sum(axis=-1, keepdims=True)
        even = np.full(v.shape[-1], 1 / v.shape[-1])
        return np.where(total > 0, v / np.where(total > 0, total, 1.0), even)

    def tangential(self, v: Floats, slope: Floats) -> Floats:
        """The part of slopes at v that leads along the facet: (n, d) arrays."""
        if self.simplex:
            return np.asarray(slope - slope.mean(axis=1, keepdims=True))
        outward = (np.abs(v) >= 1) & (slope * v > 0)
        return np.where(outward, 0.0, slope)

    def steps(self, v: Floats, step: float) -> tuple[Floats, Floats, Floats]:
        """Vectors that lead along the facet from v, (r, d), and how far each may be followed."""
        axes = np.eye(self.dimension)
        if not self.simplex:
            return axes, np.maximum(-step, -1 - v), np.minimum(step, 1 - v)
        largest = int(v.argmax())
        others = np.flatnonzero(np.arange(len(v)) != largest)
        room = v[largest] / max(1, len(others))
        least, most = np.maximum(-step, -v[others]), np.full(len(others), min(step, room))
        return axes[others] - axes[largest], least, most

    def scores(self, v: Floats) -> Floats:
        """u·z_i for (n, d) directions v: an (n, m) array."""
        return np.asarray(v @ self.y.T + self.shift)

    def bounds(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """Bounds of u, (k,) arrays, over a box of points x: v = x, or x/Σx_j on a simplex."""
        if self.simplex:
            rest_low, rest_high = lower.sum() - lower, upper.sum() - upper
            room = 1e-12  # beyond rounding
            low = np.maximum(0.0, lower / (lower + rest_high) - room)
            high = np.minimum(1.0, upper / (upper + rest_low) + room)
            return np.minimum(self.signs * low, self.signs * high), np.maximum(
                self.signs * low, self.signs * high
            )
        return self.fixed + self.turn @ lower, self.fixed + self.turn @ upper

    def direction(self, v: Floats) -> Floats:
        """U for this v, away from the edges of a simplex by more than nothing."""
        if self.simplex:
            v = (1 - LEAST_WEIGHT * len(v)) * self.onto(v) + LEAST_WEIGHT
        return np.asarray(self.fixed + self.turn @ v)


Part = Slice | Facet


def rates_near(geometry: Geometry, eta: float) -> list[FacetRate]:
    """The facets whose rate is η, up to the band."""
    width = Fraction(geometry.band) * Fraction(geometry.p_norm_bounds[1])
    wanted = Fraction(eta)
    return [
        f for f in facets_of(geometry.seen or geometry.instance) if abs(f.rate - wanted) <= width
    ]


def parts_at(geometry: Geometry, eta: float) -> list[Part]:
    """The directions at η: one slice for l2, else the facets with this rate.

    geometry : of an instance that has directions with this η
    """
    if geometry.norm == "l2":
        return [slice_at(geometry, eta)]
    return [*facet_parts(geometry, rates_near(geometry, eta))]


def facet_parts(geometry: Geometry, facets: Sequence[FacetRate]) -> list[Facet]:
    """Facets as parts to be searched."""
    counts = geometry.weight > 0
    z = geometry.z[counts]
    rounded = SAFETY * 8 * (geometry.rank + 4) * geometry.rank * EPSILON
    slack = geometry.rounding.z[counts] + rounded * sizes(z, geometry.norm)
    return [
        Facet(
            geometry, np.array(found.signs, dtype=np.float64), float(found.rate),
            geometry.reach[counts], geometry.weight[counts], slack, np.flatnonzero(counts),
        )
        for found in facets
    ]  # fmt: skip


def only_slices(geometry: Geometry, what: str) -> None:
    """Refuse costs whose directions are no slices of a sphere."""
    if geometry.norm != "l2":
        said = f"is {geometry.norm}, but {what} is for Euclidean costs (l2)"
        raise InputError(said, field="norm")
