"""Approximations N of the unit sphere by linear rows and binaries.

Each one is an *outer* approximation: it contains every unit vector of the box that it is given, so
that a bound over N is a bound over the sphere. ``least_norm`` is τ ≤ min ‖u‖ over N: a margin found
in N has, after division by ‖u‖, a reach of ℓ/τ at worst.

    Box      some |u_j| ≥ 1/√k                          cheap, τ = 1/√k
    Secant   Σ_j (secant of u_j²) ≥ 1                   τ = √(1 − Σ_j Δ_j²/4)
    Cone     a polytope around a part of the sphere     τ = low/‖axis‖
    Cones    a union of them                            the least of them
    Exact    Σ_j u_j² = 1                               τ = 1; needs a nonconvex solver

All of this is about Euclidean length. The dual unit spheres of l1 and linf costs are in `facets`;
they follow the same protocol, with their own norm for ‖u‖.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
from pyomo.environ import Binary, ConcreteModel, Constraint, Param, Var

from formulations.arrays import APART, ROUNDING, Bounds, Floats, finite, whole_box
from formulations.direction import add_direction, checked_box, set_bounds
from formulations.rows import linear, row


@dataclass(frozen=True)
class Size:
    """How many variables and rows a unit norm adds, the k coordinates of u among them."""

    continuous: int
    binaries: int
    rows: int


class UnitNorm(Protocol):
    """What every approximation of the unit sphere can do.

    A box is a pair of (k,) arrays, lower and upper bounds of u; None stands for [−1, 1]^k.
    """

    def add(self, model: ConcreteModel, k: int, box: Bounds) -> None:
        """Add ``model.u``, k variables within the box, and a block ``model.norm``."""

    def least_norm(self, k: int, box: Bounds | None = None) -> float:
        """τ, a lower bound of ‖u‖ over N."""

    def size(self, k: int, box: Bounds | None = None) -> Size:
        """What `add` adds."""

    def refined(self, at: Floats, box: Bounds | None = None) -> UnitNorm | None:
        """A tighter one near the point, a (k,) array; None if there is none."""


def tangents(k: int) -> Floats:
    """Unit vectors g, one per row, with g·u ≤ 1 for every unit u: (±e_i ± e_j)/√2, i < j.

    Together with |u_j| ≤ 1 (the box) they keep ‖u‖ from growing far beyond 1: in two dimensions
    they are the regular octagon.

    returns : (2k(k − 1), k) array
    """
    planes = np.zeros((2 * k * (k - 1), k))
    pairs = itertools.product(
        itertools.combinations(range(k), 2), ((1, 1), (1, -1), (-1, 1), (-1, -1))
    )
    for plane, ((i, j), (first, second)) in zip(planes, pairs, strict=True):
        plane[i], plane[j] = first * math.sqrt(0.5), second * math.sqrt(0.5)
    return planes


@dataclass(frozen=True)
class Box:
    """Some coordinate is large: |u_j| ≥ 1/√k for at least one j, as Σ u_j² = 1 demands.

    One binary for each of the 2k faces ±u_j ≥ 1/√k, one of them chosen, and tangent planes. The
    rows of the others are relaxed to the box: u_j ≥ 1/√k − (1/√k − lower_j)(1 − β_j).
    """

    def add(self, model: ConcreteModel, k: int, box: Bounds) -> None:
        """Add ``model.u`` and the block ``model.norm``."""
        lower, upper = add_direction(model, k, box)
        block = model.norm
        least = self.least_norm(k)
        faces = list(itertools.product(range(k), (1, -1)))
        block.face = Var(faces, domain=Binary)
        block.one = Constraint(expr=(1, linear([1] * len(faces), list(block.face.values())), 1))

        def large(block: Any, j: int, sign: int) -> Any:
            gap = max(0.0, least - float(lower[j] if sign > 0 else -upper[j]))
            return least - gap, linear([sign, -gap], [model.u[j], block.face[j, sign]]), None

        block.large = Constraint(faces, rule=large)
        _add_planes(model, tangents(k))

    def least_norm(self, k: int, box: Bounds | None = None) -> float:  # noqa: ARG002
        """1/√k."""
        return 1 / math.sqrt(k)

    def size(self, k: int, box: Bounds | None = None) -> Size:  # noqa: ARG002
        """(k, 2k, 1 + 2k + 2k(k − 1))."""
        return Size(k, 2 * k, 1 + 2 * k + len(tangents(k)))

    def refined(self, at: Floats, box: Bounds | None = None) -> UnitNorm | None:
        """A `Secant` with a breakpoint at every coordinate of the point."""
        # Twice √k segments on [−1, 1] leave an error of 1/4; eight are enough up to k = 16.
        first = Secant(max(8, 2 * math.ceil(math.sqrt(len(at)))))
        return first.refined(at, box) or first


@dataclass(frozen=True)
class Secant:
    """Σ_j f_j(u_j) ≥ 1, with f_j the piecewise-linear secant of u_j², and tangent planes.

    On a segment [a, c] the secant exceeds the square by (u − a)(c − u) ≤ (c − a)²/4. So every unit
    vector is in, and ‖u‖² ≥ Σ f_j − Σ Δ_j²/4 ≥ 1 − Σ Δ_j²/4, with Δ_j the longest segment of
    coordinate j. On [−1, 1]^k with S equal segments the error is k/S².

    f_j is convex and stands on the larger side, so the segments need binaries. Both encodings are
    locally ideal (their relaxation is the convex hull for each coordinate, which is the chord):

    - ``binary``, the incremental form: u_j = a_0 + Σ_s Δ_s δ_s with 1 ≥ δ_1 ≥ y_1 ≥ δ_2 ≥ y_2 ≥ …,
      S − 1 binaries: y_s says that segment s is full. Branching on one y_s splits [−1, 1] in two.
    - ``logarithmic``: u_j = Σ_v a_v λ_v, Σ λ = 1, and ⌈log₂ S⌉ binaries that spell the segment in a
      Gray code: in each bit, vertices whose segments all have it set (or unset) exclude the
      other value (Vielma and Nemhauser, 2011).

    A coordinate with one segment, such as one whose box is a point, needs neither: its secant is
    linear in u_j.

    segments : equal segments of each coordinate's box
    extra : for each coordinate a tuple of additional breakpoints; or () for none
    planes : unit vectors g of additional tangent planes g·u ≤ 1
    """

    segments: int = 8
    encoding: Literal["binary", "logarithmic"] = "binary"
    extra: tuple[tuple[float, ...], ...] = ()
    planes: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        if self.segments < 1:
            raise ValueError(f"a secant has at least one segment, not {self.segments}")
        if self.encoding not in ("binary", "logarithmic"):
            raise ValueError(f"encoding is 'binary' or 'logarithmic', not {self.encoding!r}")

    def breakpoints(self, k: int, box: Bounds | None = None) -> list[Floats]:
        """For each coordinate its breakpoints in increasing order, the ends of its box included.

        Equal segments are at least `APART` long, and an extra breakpoint nearer than that to
        another one is left out.
        """
        if self.extra and len(self.extra) != k:
            raise ValueError(f"extra has breakpoints for {len(self.extra)} coordinates, not {k}")
        points = []
        for j, (low, high) in enumerate(zip(*(box or whole_box(k)), strict=True)):
            if low == high:
                points.append(np.array([low, high], dtype=np.float64))
                continue
            number = min(self.segments, max(1, math.floor((high - low) / APART)))
            chosen = np.linspace(low, high, number + 1).tolist()
            for point in self.extra[j] if self.extra else ():
                if low < point < high and _distance(point, chosen) >= APART:
                    chosen.append(point)
            points.append(np.array(sorted(chosen)))
        return points

    def error(self, k: int, box: Bounds | None = None) -> float:
        """Σ_j Δ_j²/4, by how much ‖u‖² may fall short of 1 in N."""
        return math.fsum(float(np.diff(a).max()) ** 2 / 4 for a in self.breakpoints(k, box))

    def least_norm(self, k: int, box: Bounds | None = None) -> float:
        """√(1 − error); refused if the error is 1 or more, because then N contains u = 0."""
        error = self.error(k, box)
        if error >= 1:
            raise ValueError(
                f"{self.segments} segments are too few in {k} dimensions: the secants are off by"
                f" {error:.3g} in ‖u‖², and only less than 1 keeps u away from 0; use more than"
                f" √k = {math.sqrt(k):.3g} segments"
            )
        return math.sqrt(1 - error)

    def add(self, model: ConcreteModel, k: int, box: Bounds) -> None:
        """Add ``model.u`` and the block ``model.norm``."""
        lower, upper = box = checked_box(k, box)
        self.least_norm(k, box)
        if math.fsum(np.maximum(lower**2, upper**2)) < 1 - ROUNDING:
            raise ValueError("the box of u contains no unit vector")
        add_direction(model, k, box)
        points = self.breakpoints(k, box)
        bent = [j for j in range(k) if len(points[j]) > 2]
        encode = _incremental if self.encoding == "binary" else _logarithmic
        coefficients, variables, constant = encode(model, bent, points)
        for j in [j for j in range(k) if j not in bent]:
            low, high = points[j].tolist()
            # The chord (low + high)(u_j − low) + low².
            if low + high:
                coefficients.append(low + high)
                variables.append(model.u[j])
            constant -= low * high
        model.norm.length = Constraint(expr=(1 - constant, linear(coefficients, variables), None))
        _add_planes(model, np.vstack([tangents(k), np.reshape(self.planes, (-1, k))]))

    def size(self, k: int, box: Bounds | None = None) -> Size:
        """With b coordinates bent, of S_j ≥ 2 segments each, and g planes in `planes`:

        binary       (k + ΣS_j,        Σ(S_j − 1),   b + 2Σ(S_j − 1) + 1 + 2k(k − 1) + g)
        logarithmic  (k + Σ(S_j + 1),  Σ⌈log₂ S_j⌉,  2b + 2Σ⌈log₂ S_j⌉ + 1 + 2k(k − 1) + g)
        """
        numbers = [len(a) - 1 for a in self.breakpoints(k, box) if len(a) > 2]
        planes = len(tangents(k)) + len(self.planes)
        if self.encoding == "binary":
            binaries = sum(number - 1 for number in numbers)
            rows = len(numbers) + 2 * binaries
            return Size(k + sum(numbers), binaries, rows + 1 + planes)
        binaries = sum(_bits(number) for number in numbers)
        rows = 2 * len(numbers) + 2 * binaries
        return Size(k + sum(numbers) + len(numbers), binaries, rows + 1 + planes)

    def refined(self, at: Floats, box: Bounds | None = None) -> Secant | None:
        """With the coordinates of the point as breakpoints, so that f_j = u_j² there.

        If the point is longer than 1, it also gets the tangent plane that cuts it off.
        """
        at = finite("at", at, (len(at),))
        points = self.breakpoints(len(at), box)
        extra = [list(known) for known in self.extra] or [[] for _ in at]
        planes = list(self.planes)
        added = False
        lower, upper = box or whole_box(len(at))
        for j, value in enumerate(at.tolist()):
            known = [*points[j].tolist(), *extra[j]]
            if lower[j] < value < upper[j] and _distance(value, known) >= APART:
                extra[j].append(value)
                added = True
        length = float(np.linalg.norm(at))
        if length > 1 + APART:
            planes.append(tuple((at / length).tolist()))
            added = True
        if not added:
            return None
        return replace(self, extra=tuple(map(tuple, extra)), planes=tuple(planes))


@dataclass(frozen=True)
class Cone:
    """One polytope around a part of the sphere: rows·u ≥ 0 and low ≤ axis·u ≤ high.

    Outer for the unit vectors of the cone {rows·u ≥ 0} if low ≤ axis·u ≤ high holds for all of
    them: low = min and high = max of axis·u, or anything wider. Because ‖axis‖‖u‖ ≥ axis·u ≥ low,
    τ = low/‖axis‖.

    rows : (r, k) array-like, kept as tuples; axis : (k,) array-like
    """

    rows: Sequence[Sequence[float]] | Floats
    axis: Sequence[float] | Floats
    low: float
    high: float

    def __post_init__(self) -> None:
        axis = finite("axis", self.axis, (len(self.axis),))
        rows = np.empty((0, len(axis)))
        if len(self.rows):
            rows = finite("rows", self.rows, (len(self.rows), len(axis)))
        low, high = finite("low and high", (self.low, self.high), (2,)).tolist()
        if low > high:
            raise ValueError(f"the cone is empty: low = {low} exceeds high = {high}")
        for name, value in (
            ("rows", tuple(map(tuple, rows.tolist()))),
            ("axis", tuple(axis.tolist())),
            ("low", low),
            ("high", high),
        ):
            object.__setattr__(self, name, value)

    def add(self, model: ConcreteModel, k: int, box: Bounds) -> None:
        """Add ``model.u`` and the block ``model.norm``, every number in it a mutable Param."""
        _check_cone(self, k)
        add_direction(model, k, box)
        block = model.norm
        sides, axes = range(len(self.rows)), range(k)
        block.entry = Param(sides, axes, mutable=True, initialize=0.0)
        block.axis_entry = Param(axes, mutable=True, initialize=0.0)
        block.low = Param(mutable=True, initialize=self.low)
        block.high = Param(mutable=True, initialize=self.high)
        u = list(model.u.values())

        def side(block: Any, r: int) -> Any:
            return 0, linear([block.entry[r, j] for j in axes], u), None

        block.sides = Constraint(sides, rule=side)
        along = linear([block.axis_entry[j] for j in axes], u)
        block.along = Constraint(expr=(block.low, along, block.high))
        set_cone(model, self)

    def least_norm(self, k: int, box: Bounds | None = None) -> float:  # noqa: ARG002
        """low/‖axis‖, or 0."""
        return max(0.0, self.low / math.hypot(*self.axis)) if any(self.axis) else 0.0

    def size(self, k: int, box: Bounds | None = None) -> Size:  # noqa: ARG002
        """(k, 0, r + 1)."""
        return Size(k, 0, len(self.rows) + 1)

    def refined(self, at: Floats, box: Bounds | None = None) -> UnitNorm | None:  # noqa: ARG002
        """None: a cone is refined by splitting it, which is the caller's business."""
        return None


def set_cone(model: ConcreteModel, cone: Cone, box: Bounds | None = None) -> None:
    """Move a model built with a `Cone` to another one with as many rows; bounds of u if given."""
    block = model.norm
    k = len(model.u)
    _check_cone(cone, k)
    if len(cone.rows) != len(block.sides):
        raise ValueError(f"the model has {len(block.sides)} rows, the cone {len(cone.rows)}")
    for r, entries in enumerate(cone.rows):
        for j, entry in enumerate(entries):
            block.entry[r, j] = entry
    for j, entry in enumerate(cone.axis):
        block.axis_entry[j] = entry
    block.low.set_value(cone.low)
    block.high.set_value(cone.high)
    if box is not None:
        set_bounds(model, checked_box(k, box))


@dataclass(frozen=True)
class Cones:
    """A union of cones: one binary each, one of them chosen; a single cone needs no binary.

    The rows of the others are relaxed by what they can fall short of in the box:
    row·u ≥ −M(1 − β), M = max(0, −Σ_j min(row_j lower_j, row_j upper_j)), and so on. Outer if the
    cones together contain every unit vector of the box (or of the part in question).
    """

    cones: Sequence[Cone]

    def __post_init__(self) -> None:
        if not self.cones:
            raise ValueError("a union of no cones is empty")
        object.__setattr__(self, "cones", tuple(self.cones))

    def add(self, model: ConcreteModel, k: int, box: Bounds) -> None:
        """Add ``model.u`` and the block ``model.norm``."""
        if len(self.cones) == 1:
            self.cones[0].add(model, k, box)
            return
        box = add_direction(model, k, box)
        block = model.norm
        block.chosen = Var(range(len(self.cones)), domain=Binary)
        block.one = Constraint(
            expr=(1, linear([1] * len(self.cones), list(block.chosen.values())), 1)
        )
        # Every condition as vector·u ≥ bound, with the number of its cone.
        conditions = [
            (c, vector, bound)
            for c, cone in enumerate(self.cones)
            for vector, bound in _conditions(cone, k)
        ]

        def side(block: Any, r: int) -> Any:
            c, vector, bound = conditions[r]
            gap = max(0.0, bound - _least(vector, box))
            coefficients, variables = row(vector, model.u)
            if gap:
                coefficients.append(-gap)
                variables.append(block.chosen[c])
            return bound - gap, linear(coefficients, variables), None

        block.sides = Constraint(range(len(conditions)), rule=side)

    def least_norm(self, k: int, box: Bounds | None = None) -> float:
        """The least of the cones' own."""
        return min(cone.least_norm(k, box) for cone in self.cones)

    def size(self, k: int, box: Bounds | None = None) -> Size:
        """(k, c, 1 + Σ(r + 2)) for c > 1 cones with r rows each."""
        if len(self.cones) == 1:
            return self.cones[0].size(k, box)
        return Size(k, len(self.cones), 1 + sum(len(cone.rows) + 2 for cone in self.cones))

    def refined(self, at: Floats, box: Bounds | None = None) -> UnitNorm | None:  # noqa: ARG002
        """None: as for one cone."""
        return None


@dataclass(frozen=True)
class Exact:
    """Σ u_j² = 1, for nonconvex solvers: a referee."""

    def add(self, model: ConcreteModel, k: int, box: Bounds) -> None:
        """Add ``model.u`` and the block ``model.norm``."""
        add_direction(model, k, box)
        model.norm.length = Constraint(expr=sum(model.u[j] ** 2 for j in range(k)) == 1)

    def least_norm(self, k: int, box: Bounds | None = None) -> float:  # noqa: ARG002
        """1."""
        return 1.0

    def size(self, k: int, box: Bounds | None = None) -> Size:  # noqa: ARG002
        """(k, 0, 1)."""
        return Size(k, 0, 1)

    def refined(self, at: Floats, box: Bounds | None = None) -> UnitNorm | None:  # noqa: ARG002
        """None: there is nothing to refine."""
        return None


def cell(face: int, sign: int, lower: Iterable[float], upper: Iterable[float]) -> Cone:
    """The cone over a box on a face of the cube: directions (y, sign) with lower ≤ y ≤ upper.

    The face is coordinate ``face`` = ±1, and y are the other k − 1 coordinates in their order. Its
    rows are y_i ∓ bound · u_face ≥ 0; its axis is the direction c of the middle of the box. On the
    half-space c·x > 0 the cosine c·x/‖x‖ is quasi-concave (a linear function over a convex one), so
    its least value over the box is reached at a corner: that is ``low``. ``high`` is 1, at c.
    """
    low_y, high_y = (np.array(list(bound), dtype=np.float64) for bound in (lower, upper))
    k = len(low_y) + 1
    others = [j for j in range(k) if j != face]
    rows = np.zeros((2 * (k - 1), k))
    for i, j in enumerate(others):
        rows[2 * i, [j, face]] = 1, -sign * low_y[i]
        rows[2 * i + 1, [j, face]] = -1, sign * high_y[i]
    ends = zip(low_y, high_y, strict=True)
    corners = np.array(list(itertools.product(*ends))).reshape(2 ** (k - 1), k - 1)
    directions = np.insert(np.vstack([low_y / 2 + high_y / 2, corners]), face, sign, axis=1)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    least = float((directions[1:] @ directions[0]).min())
    if least <= 0:
        raise ValueError(
            "the box is too wide: a corner is at a right angle to its middle or beyond"
        )
    return Cone(rows + 0.0, directions[0], least - ROUNDING, 1.0)  # no −0 in what is printed


def cube(k: int, parts: int = 1) -> Cones:
    """The whole sphere: every face of the cube [−1, 1]^k cut into parts^(k−1) equal boxes."""
    cuts = np.linspace(-1, 1, parts + 1)
    sides = list(itertools.pairwise(cuts.tolist()))
    return Cones(
        [
            cell(face, sign, [low for low, _ in box], [high for _, high in box])
            for face in range(k)
            for sign in (1, -1)
            for box in itertools.product(sides, repeat=k - 1)
        ]
    )


def _add_planes(model: ConcreteModel, planes: Floats) -> None:
    def touch(_: Any, r: int) -> Any:
        return None, linear(*row(planes[r], model.u)), 1

    model.norm.planes = Constraint(range(len(planes)), rule=touch)


def _incremental(
    model: ConcreteModel, bent: list[int], points: list[Floats]
) -> tuple[list[Any], list[Any], float]:
    """The incremental encoding; returns Σ f_j, bent j: coefficients, variables, constant."""
    block = model.norm
    parts = [(j, s) for j in bent for s in range(len(points[j]) - 1)]
    filled = [(j, s) for j in bent for s in range(len(points[j]) - 2)]
    block.part = Var(parts, bounds=(0, 1))
    block.full = Var(filled, domain=Binary)

    def link(block: Any, j: int) -> Any:
        steps = np.diff(points[j]).tolist()
        variables = [block.part[j, s] for s in range(len(steps))]
        body = linear([1, *(-step for step in steps)], [model.u[j], *variables])
        start = float(points[j][0])
        return start, body, start

    block.link = Constraint(bent, rule=link)
    block.before = Constraint(
        filled, rule=lambda b, j, s: (0, linear([1, -1], [b.part[j, s], b.full[j, s]]), None)
    )
    block.after = Constraint(
        filled, rule=lambda b, j, s: (0, linear([1, -1], [b.full[j, s], b.part[j, s + 1]]), None)
    )
    # Differences of squares as products, so that symmetric segments give an exact 0.
    rises = {
        (j, s): float((points[j][s + 1] - points[j][s]) * (points[j][s + 1] + points[j][s]))
        for j, s in parts
    }
    used = [index for index in parts if rises[index]]
    constant = math.fsum(float(points[j][0]) ** 2 for j in bent)
    return [rises[index] for index in used], [block.part[index] for index in used], constant


def _logarithmic(
    model: ConcreteModel, bent: list[int], points: list[Floats]
) -> tuple[list[Any], list[Any], float]:
    """The Gray-code encoding; returns as `_incremental`."""
    block = model.norm
    vertices = [(j, v) for j in bent for v in range(len(points[j]))]
    digits = [(j, bit) for j in bent for bit in range(_bits(len(points[j]) - 1))]
    block.share = Var(vertices, bounds=(0, 1))
    block.digit = Var(digits, domain=Binary)

    def shares(block: Any, j: int) -> list[Any]:
        return [block.share[j, v] for v in range(len(points[j]))]

    def link(block: Any, j: int) -> Any:
        used = np.flatnonzero(points[j]).tolist()
        variables = [block.share[j, v] for v in used]
        coefficients = [-float(points[j][v]) for v in used]
        return 0, linear([1, *coefficients], [model.u[j], *variables]), 0

    def excluded(j: int, bit: int, value: int) -> list[Any]:
        codes = [(s ^ (s >> 1)) >> bit & 1 for s in range(len(points[j]) - 1)]
        return [
            block.share[j, v]
            for v in range(len(points[j]))
            if all(code == value for code in codes[max(0, v - 1) : v + 1])
        ]

    def when_set(block: Any, j: int, bit: int) -> Any:
        chosen = excluded(j, bit, 1)
        return None, linear([*([1] * len(chosen)), -1], [*chosen, block.digit[j, bit]]), 0

    def when_unset(block: Any, j: int, bit: int) -> Any:
        chosen = excluded(j, bit, 0)
        return None, linear([1] * (len(chosen) + 1), [*chosen, block.digit[j, bit]]), 1

    block.link = Constraint(bent, rule=link)
    block.whole = Constraint(
        bent, rule=lambda b, j: (1, linear([1] * len(points[j]), shares(b, j)), 1)
    )
    block.set_digit = Constraint(digits, rule=when_set)
    block.unset_digit = Constraint(digits, rule=when_unset)
    used = [(j, v) for j, v in vertices if points[j][v]]
    squares = [float(points[j][v]) ** 2 for j, v in used]
    return squares, [block.share[index] for index in used], 0.0


def _bits(segments: int) -> int:
    return (segments - 1).bit_length()


def _distance(point: float, others: Iterable[float]) -> float:
    return min((abs(point - other) for other in others), default=math.inf)


def _check_cone(cone: Cone, k: int) -> None:
    if len(cone.axis) != k:
        raise ValueError(f"the cone has {len(cone.axis)} coordinates, not {k}")


def _conditions(cone: Cone, k: int) -> list[tuple[Floats, float]]:
    _check_cone(cone, k)
    axis = np.array(cone.axis)
    sides = [(np.array(entries, dtype=np.float64), 0.0) for entries in cone.rows]
    return [*sides, (axis, cone.low), (-axis, -cone.high)]


def _least(vector: Floats, box: Bounds) -> float:
    return math.fsum(np.minimum(vector * box[0], vector * box[1]))
