"""The directions at η, or between two values of η, as angles and a smaller sphere.

With p̂ = p/‖p‖ and H an orthonormal basis of what is orthogonal to it,

    u = cos θ · p̂ + sin θ · H v,      ‖v‖ = 1,      cos θ = u·p/‖p‖,

so η fixes θ, and v runs over the unit sphere of R^d with d = k − 1. If p = 0 there is nothing to
fix, nor if all directions are meant (`whole_sphere`): H = I, θ = π/2 and d = k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator

from mipmech.model.geometry import Geometry
from mipmech.tolerances import EPSILON, SAFETY
from mipmech.validation import Floats, Numbers


@dataclass(frozen=True, eq=False)
class Slice:
    """The allowed directions, and the agents that count as seen from them.

    least, most : the allowed angles θ; equal for a single η
    towards : (k,) array p̂; zeros if p = 0 or if all directions are meant
    turn : (k, d) array H
    along, across : (m,) array z·p̂ and (m, d) array z H
    reach, weight : (m,) arrays; weights sum to 1
    slack : (m,) array; no score u·z_i is off by more, for rounding and for the band of η together
    agents : (m,) array, the numbers of these agents in the instance
    """

    geometry: Geometry
    least: float
    most: float
    towards: Floats
    turn: Floats
    along: Floats
    across: Floats
    reach: Floats
    weight: Floats
    slack: Floats
    agents: Numbers

    @property
    def dimension(self) -> int:
        """The dimension d of the space of v."""
        return int(self.across.shape[1])

    @property
    def angle(self) -> float:
        """The middle of the allowed angles."""
        return (self.least + self.most) / 2

    @property
    def whole(self) -> bool:
        """Whether these are all directions: then u = v."""
        return self.dimension == self.geometry.rank

    @property
    def eta(self) -> float | None:
        """η, if it is fixed."""
        size = self.geometry.p_norm
        fixed = self.least == self.most and (size == 0 or not self.whole)
        return math.cos(self.angle) * size if fixed else None

    @cached_property
    def shift(self) -> Floats:
        """What all directions at the middle angle share of the scores, (m,) array."""
        return math.cos(self.angle) * self.along

    @cached_property
    def y(self) -> Floats:
        """Scores at the middle angle are shift + y·v, (m, d) array."""
        return math.sin(self.angle) * self.across

    @property
    def points(self) -> Floats | None:
        """All v, (n, d) array, if they are one or two."""
        if self.dimension > 1:
            return None
        return np.zeros((1, 0)) if self.dimension == 0 else np.array([[1.0], [-1.0]])

    @cached_property
    def extent(self) -> float:
        """By how much scores may differ on the slice: the greatest length of y."""
        return math.sin(self.angle) * float(np.linalg.norm(self.across, axis=1).max())

    @property
    def blur(self) -> float:
        """By how much the range of angles lets scores differ."""
        return (self.most - self.least) * float(np.linalg.norm(self.across, axis=1).max())

    def draw(self, random: Generator, count: int) -> Floats:
        """Uniform on the sphere: (count, d) array."""
        return self.onto(random.standard_normal((count, self.dimension)))

    def onto(self, v: Floats) -> Floats:
        """Rows of length 1; a row of zeros becomes the first axis."""
        return unit(v)

    def tangential(self, v: Floats, slope: Floats) -> Floats:
        """The part of slopes at v that leads along the sphere: (n, d) arrays."""
        return np.asarray(slope - (slope * v).sum(axis=1, keepdims=True) * v)

    def steps(self, v: Floats, step: float) -> tuple[Floats, Floats, Floats]:
        """Vectors that lead along the sphere from v, (r, d), and how far each may be followed."""
        tangent = np.asarray(np.linalg.svd(v[None, :])[2][1:])
        room = np.full(len(tangent), step)
        return tangent, -room, room

    def direction(self, v: Floats) -> Floats:
        """The unit vector u with this v, at the middle angle."""
        u: Floats = math.cos(self.angle) * self.towards + math.sin(self.angle) * (self.turn @ v)
        return u / np.linalg.norm(u)

    def scores(self, v: Floats) -> Floats:
        """u·z_i for (n, d) directions v at the middle angle: an (n, m) array."""
        turned: Floats = v @ self.across.T
        turned *= math.sin(self.angle)
        turned += math.cos(self.angle) * self.along
        return turned


def slice_at(geometry: Geometry, eta_low: float, eta_high: float | None = None) -> Slice:
    """The directions with u·p = η, or with η between two values; the caller knows it is feasible.

    Distances along the scores are off by no more than ``slack``: rounding of z, of the turned
    coordinates (a product of k terms, twice), and the width of the band in which an answer may lie.
    """
    counts = geometry.weight > 0
    z = geometry.z[counts]
    size = geometry.p_norm
    k = geometry.rank
    if size == 0:
        towards, turn = np.zeros(k), np.eye(k)
        least = most = math.pi / 2
        tilt = 0.0
    else:
        towards = geometry.p / np.linalg.norm(geometry.p)
        turn = _complement(towards)
        high = eta_low if eta_high is None else eta_high
        most, least = (math.acos(max(-1.0, min(1.0, eta / size))) for eta in (eta_low, high))
        band = geometry.band * SAFETY
        tilt = max(
            math.acos(max(-1.0, math.cos(most) - band)) - most,
            least - math.acos(min(1.0, math.cos(least) + band)),
        )
        tilt += 2 * geometry.rounding.back + geometry.rounding.p / size
    lengths = np.linalg.norm(z, axis=1)
    slack = geometry.rounding.z[counts] + SAFETY * lengths * (tilt + 8 * (k + 4) * EPSILON)
    return Slice(
        geometry=geometry, least=least, most=most, towards=towards, turn=turn, along=z @ towards,
        across=z @ turn, reach=geometry.reach[counts], weight=geometry.weight[counts], slack=slack,
        agents=np.flatnonzero(counts),
    )  # fmt: skip


def whole_sphere(geometry: Geometry) -> Slice:
    """All directions, in the geometry's own coordinates: nothing is turned.

    The exact coordinates of every rule are some unit vector, so the slack is the rounding of z, and
    of the products that make a score.
    """
    counts = geometry.weight > 0
    z, k = geometry.z[counts], geometry.rank
    rounded = SAFETY * 8 * (k + 4) * EPSILON * np.linalg.norm(z, axis=1)
    return Slice(
        geometry=geometry, least=math.pi / 2, most=math.pi / 2, towards=np.zeros(k),
        turn=np.eye(k), along=np.zeros(len(z)), across=z, reach=geometry.reach[counts],
        weight=geometry.weight[counts], slack=geometry.rounding.z[counts] + rounded,
        agents=np.flatnonzero(counts),
    )  # fmt: skip


def unit(v: Floats) -> Floats:
    """Rows of length 1; a row of zeros becomes the first axis."""
    length = np.linalg.norm(v, axis=-1, keepdims=True)
    first = np.eye(v.shape[-1])[0]
    return np.where(length > 0, v / np.where(length > 0, length, 1.0), first)


def _complement(unit: Floats) -> Floats:
    """An orthonormal basis of what is orthogonal to a unit vector, by one reflection."""
    k = len(unit)
    mirror = unit.copy()
    mirror[0] += math.copysign(1.0, unit[0])
    reflection = np.eye(k) - 2 * np.outer(mirror, mirror) / (mirror @ mirror)
    return np.ascontiguousarray(reflection[:, 1:])
