"""The dual unit spheres of l1 and linf costs: surfaces of polytopes, so these models are exact.

A rule w is normalised by N(w) = 1, N the dual norm of the costs. In reduced coordinates
u_j = w_j/e_j, with e_j the price of feature j,

    l1      N(w) = max_j |u_j|,   the surface of the cube             `CubeFacet`
    linf    N(w) = Σ_j |u_j|,     the surface of the cross-polytope   `CrossPolytopeFacet`, all of
                                                                      it at once: `CrossPolytope`

Here u is *not* a Euclidean unit vector, and wherever the other models say "unit", N(w) = 1 is
meant. There is nothing to approximate: N is 1 throughout, and no norm here can be refined.

With p_j = w_fj/e_j, the gain per unit of distance, the rate, is constant on a facet:
sign · p_axis for the cube, Σ p_j sign_j for the cross-polytope. So the best gain is the greatest
rate × soft density over the facets of positive rate, one model each. Facets are closed. On the
boundary of one, where weights are tied or 0, people may do better or worse than its rate says: for
l1 they do at least as well (the best of the ties), and for linf its gain is approached from within.

A *part* of a facet is the facet within a box, a pair of (k,) arrays, for branch and bound. Every
function that takes a box takes one of these; None stands for the whole facet.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from pyomo.environ import Binary, ConcreteModel, Constraint, Param, Var

from formulations.arrays import ROUNDING, Bounds, Floats, finite, whole_box
from formulations.direction import add_direction, checked_box, set_bounds
from formulations.rows import linear
from formulations.unit_norm import Size, UnitNorm

SIGNS = (1, -1)


@runtime_checkable
class Surface(UnitNorm, Protocol):
    """A `UnitNorm` that is exact, and that knows the scores over itself and over its parts.

    A facet of a dual unit sphere, or a union of some.
    """

    def box(self, k: int, within: Bounds | None = None) -> Bounds:
        """Bounds of the coordinates of u over the part within a box; refused if it is empty."""

    def ranges(self, z: Floats, box: Bounds | None = None) -> tuple[Floats, Floats]:
        """The range of u·z_i over the part; z : (m, k) array; lowest, highest, (m,) arrays."""

    def move(self, model: ConcreteModel, box: Bounds) -> None:
        """Move a model built with one of this kind to this one, or to a part of it."""


def all_facets(norm: Literal["l1", "linf"], k: int) -> list[CubeFacet] | list[CrossPolytopeFacet]:
    """All facets of the dual unit sphere: 2k for l1, 2^k for linf.

    `rate` of a facet takes p, a (k,) array that need not be normalised.

    >>> [facet.rate(np.array([3.0, 1.0])) for facet in all_facets("l1", 2)]
    [3.0, -3.0, 1.0, -1.0]
    >>> [facet.rate(np.array([3.0, 1.0])) for facet in all_facets("linf", 2)]
    [4.0, 2.0, -2.0, -4.0]
    """
    if norm == "l1":
        return [CubeFacet(axis, sign) for axis in range(k) for sign in SIGNS]
    if norm == "linf":
        return [CrossPolytopeFacet(signs) for signs in itertools.product(SIGNS, repeat=k)]
    raise ValueError(f"the norm with facets is 'l1' or 'linf', not {norm!r}")


def set_facet(model: ConcreteModel, facet: Surface, box: Bounds | None = None) -> None:
    """Move a model built with a facet to another of the same kind, or to a part of one.

    So moves a model built with a `CrossPolytope` to other limits of the rate.

    The ranges of the scores move by `set_margin`. Clique rows stay what they are: those of one
    facet hold on its parts, and on no other facet.
    """
    built = getattr(model.norm, "facet", None)
    if type(built) is not type(facet):
        raise ValueError(
            f"the model was built with a {type(built).__name__}, it cannot become a"
            f" {type(facet).__name__}"
        )
    facet.move(model, facet.box(len(model.u), box))


@dataclass(frozen=True)
class CubeFacet:
    """The facet u_axis = sign, −1 ≤ u_j ≤ 1 of the cube, for l1 costs.

    Exact, and bounds of variables only: no binaries and no rows. Over the part with
    lower_j ≤ u_j ≤ upper_j the scores fill

        sign · z_axis + [Σ min(z_j lower_j, z_j upper_j), Σ max(z_j lower_j, z_j upper_j)],

    sums over j ≠ axis; over the whole facet that is sign · z_axis ± Σ |z_j|. Rate: sign · p_axis,
    because with l1 people move along the one feature of greatest |u_j|.
    """

    axis: int
    sign: int

    def __post_init__(self) -> None:
        if self.sign not in SIGNS or self.axis < 0:
            raise ValueError(
                f"a facet of the cube has an axis from 0 and a sign, 1 or -1, not"
                f" {self.axis} and {self.sign}"
            )

    def add(self, model: ConcreteModel, k: int, box: Bounds) -> None:
        """Add ``model.u`` and an empty block ``model.norm``."""
        box = self.box(k, box)
        add_direction(model, k, box)
        self.move(model, box)

    def move(self, model: ConcreteModel, box: Bounds) -> None:
        """Move the bounds of u."""
        model.norm.facet = self
        set_bounds(model, box)

    def least_norm(self, k: int, box: Bounds | None = None) -> float:  # noqa: ARG002
        """1, and N(w) = 1 throughout."""
        return 1.0

    def size(self, k: int, box: Bounds | None = None) -> Size:  # noqa: ARG002
        """(k, 0, 0)."""
        return Size(k, 0, 0)

    def refined(self, at: Floats, box: Bounds | None = None) -> UnitNorm | None:  # noqa: ARG002
        """None: it is exact."""
        return None

    def box(self, k: int, within: Bounds | None = None) -> Bounds:
        """[−1, 1]^k with u_axis = sign, or what of it lies within the box."""
        if self.axis >= k:
            raise ValueError(f"there is no axis {self.axis} in {k} dimensions")
        lower, upper = _common(k, within)
        if not lower[self.axis] <= self.sign <= upper[self.axis]:
            raise ValueError(f"the box holds nothing of the facet u_{self.axis} = {self.sign}")
        lower[self.axis] = upper[self.axis] = self.sign
        return lower, upper

    def ranges(self, z: Floats, box: Bounds | None = None) -> tuple[Floats, Floats]:
        """Exact, to within rounding."""
        z = finite("z", z, np.shape(z))
        return _over_box(z, self.box(z.shape[1], box))

    def rate(self, p: Floats) -> float:
        """Gain per unit of distance: sign · p_axis."""
        return self.sign * float(p[self.axis])


@dataclass(frozen=True)
class CrossPolytopeFacet:
    """The facet s_j u_j ≥ 0, Σ s_j u_j = 1 of the cross-polytope, a simplex, for linf costs.

    Exact, with one row and no binaries. In x_j = s_j u_j, a part is Σ x_j = 1 in a box, and u·z is
    Σ (s_j z_j) x_j. So it is largest if x starts at the low ends and what is left of 1 is spent on
    the coordinates of largest s_j z_j first, each up to its high end; smallest, on those of
    smallest. Over the whole simplex the range is that of s_j z_j over j. Rate: Σ p_j s_j, because
    with linf people move along all features at once.

    signs : k numbers, 1 or −1
    """

    signs: Sequence[int]

    def __post_init__(self) -> None:
        signs = tuple(int(sign) for sign in self.signs)
        if not signs or any(sign not in SIGNS for sign in self.signs):
            raise ValueError(f"signs are 1 or -1, not {self.signs}")
        object.__setattr__(self, "signs", signs)

    def add(self, model: ConcreteModel, k: int, box: Bounds) -> None:
        """Add ``model.u`` and the block ``model.norm``, its signs mutable."""
        box = self.box(k, box)
        add_direction(model, k, box)
        block = model.norm
        block.sign = Param(range(k), mutable=True, initialize=dict(enumerate(self.signs)))
        signs = list(block.sign.values())
        block.length = Constraint(expr=(1, linear(signs, list(model.u.values())), 1))
        self.move(model, box)

    def move(self, model: ConcreteModel, box: Bounds) -> None:
        """Move the bounds of u and the signs of the row."""
        model.norm.facet = self
        set_bounds(model, box)
        for j, sign in enumerate(self.signs):
            model.norm.sign[j] = sign

    def least_norm(self, k: int, box: Bounds | None = None) -> float:  # noqa: ARG002
        """1, and N(w) = 1 throughout."""
        return 1.0

    def size(self, k: int, box: Bounds | None = None) -> Size:  # noqa: ARG002
        """(k, 0, 1)."""
        return Size(k, 0, 1)

    def refined(self, at: Floats, box: Bounds | None = None) -> UnitNorm | None:  # noqa: ARG002
        """None: it is exact."""
        return None

    def box(self, k: int, within: Bounds | None = None) -> Bounds:
        """0 ≤ s_j u_j ≤ 1, or what of it lies within the box.

        Ends that Σ s_j u_j = 1 excludes are moved in: x_j ≥ 1 − Σ of the others' upper ends, and
        x_j ≤ 1 − Σ of their lower ones.
        """
        if len(self.signs) != k:
            raise ValueError(f"the facet has {len(self.signs)} signs, not {k}")
        signs = np.array(self.signs)
        lower, upper = _common(k, within)
        if (signs * np.where(signs > 0, upper, lower) < 0).any():
            raise ValueError(f"the box holds nothing of the facet with the signs {self.signs}")
        low = np.maximum(0.0, np.where(signs > 0, lower, -upper))
        high = np.where(signs > 0, upper, -lower)
        least, most = math.fsum(low), math.fsum(high)
        if least > 1 + ROUNDING or most < 1 - ROUNDING:
            raise ValueError(f"the box holds nothing of the facet with the signs {self.signs}")
        # A hair wider, so that rounding excludes nothing; and never narrower than it was asked for.
        low, high = (
            np.minimum(high, np.maximum(low, 1 - (most - high) - ROUNDING)),
            np.maximum(low, np.minimum(high, 1 - (least - low) + ROUNDING)),
        )
        return np.where(signs > 0, low, -high) + 0.0, np.where(signs > 0, high, -low) + 0.0

    def ranges(self, z: Floats, box: Bounds | None = None) -> tuple[Floats, Floats]:
        """Exact, to within rounding, also over a part."""
        z = finite("z", z, np.shape(z))
        signs = np.array(self.signs)
        lower, upper = self.box(z.shape[1], box)
        low, high = np.where(signs > 0, lower, -upper), np.where(signs > 0, upper, -lower)
        return -_filled(-signs * z, low, high), _filled(signs * z, low, high)

    def rate(self, p: Floats) -> float:
        """Gain per unit of distance: Σ p_j s_j."""
        return math.fsum(sign * float(value) for sign, value in zip(self.signs, p, strict=True))


@dataclass(frozen=True)
class CrossPolytope:
    """The whole surface Σ |u_j| = 1, with a binary x_j for the sign of u_j.

        u_j = a_j − c_j,   0 ≤ a_j ≤ A_j x_j,   0 ≤ c_j ≤ C_j (1 − x_j),   Σ (a_j + c_j) = 1,

    A_j = max(0, upper_j) and C_j = max(0, −lower_j), both 1 without a smaller box. One of a_j and
    c_j is 0, so |u_j| = a_j + c_j: the surface exactly. With p and rate = (low, high), also

        low ≤ Σ p_j (2x_j − 1) ≤ high,

    so that one model covers all facets whose rate lies there. Where u_j = 0, x_j is free, as it is
    in the facets, which are closed. An interval of one number should leave room for rounding, and
    HiGHS drops coefficients 2p_j of at most 1e-9.

    p : (k,) array-like, kept as a tuple, not normalised; or None, as rate then
    """

    p: Sequence[float] | Floats | None = None
    limits: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if (self.p is None) != (self.limits is None):
            raise ValueError("p and the limits of the rate belong together: give both or neither")
        if self.p is None or self.limits is None:
            return
        p = finite("p", self.p, (len(self.p),))
        low, high = finite("limits", self.limits, (2,)).tolist()
        if low > high:
            raise ValueError(f"the limits of the rate are [{low}, {high}]: nothing lies between")
        object.__setattr__(self, "p", tuple(p.tolist()))
        object.__setattr__(self, "limits", (low, high))

    def add(self, model: ConcreteModel, k: int, box: Bounds) -> None:
        """Add ``model.u`` and the block ``model.norm``, every number in it a mutable Param."""
        box = self.box(k, box)
        add_direction(model, k, box)
        block, axes = model.norm, range(k)
        block.positive = Var(axes, domain=Binary)
        block.above = Var(axes, bounds=(0, 1))
        block.below = Var(axes, bounds=(0, 1))
        block.most_above = Param(axes, mutable=True, initialize=1.0)
        block.most_below = Param(axes, mutable=True, initialize=1.0)
        x, a, c = block.positive, block.above, block.below
        block.link = Constraint(
            axes, rule=lambda _, j: (0, linear([1, -1, 1], [model.u[j], a[j], c[j]]), 0)
        )
        block.up = Constraint(
            axes, rule=lambda b, j: (None, linear([1, -b.most_above[j]], [a[j], x[j]]), 0)
        )
        block.down = Constraint(
            axes,
            rule=lambda b, j: (None, linear([1, b.most_below[j]], [c[j], x[j]]), b.most_below[j]),
        )
        parts = [*a.values(), *c.values()]
        block.length = Constraint(expr=(1, linear([1] * len(parts), parts), 1))
        if self.p is not None:
            block.worth = Param(axes, mutable=True, initialize=0.0)
            block.low, block.high = (Param(mutable=True, initialize=0.0) for _ in range(2))
            worth = linear(list(block.worth.values()), list(x.values()))
            block.rate = Constraint(expr=(block.low, worth, block.high))
        block.facet = self
        self.move(model, box)

    def move(self, model: ConcreteModel, box: Bounds) -> None:
        """Move the bounds of u, and the rates allowed if the model was built with some."""
        block = model.norm
        if (self.p is None) != (block.component("rate") is None):
            raise ValueError("a model has a row for the rate if it was built with p, else none")
        block.facet = self
        set_bounds(model, box)
        for j, (low, high) in enumerate(zip(box[0].tolist(), box[1].tolist(), strict=True)):
            block.most_above[j] = max(0.0, high)
            block.most_below[j] = max(0.0, -low)
        if self.p is not None and self.limits is not None:
            total = math.fsum(self.p)
            for j, value in enumerate(self.p):
                block.worth[j] = 2 * value
            block.low.set_value(self.limits[0] + total)
            block.high.set_value(self.limits[1] + total)

    def least_norm(self, k: int, box: Bounds | None = None) -> float:  # noqa: ARG002
        """1, and N(w) = 1 throughout."""
        return 1.0

    def size(self, k: int, box: Bounds | None = None) -> Size:  # noqa: ARG002
        """(3k, k, 3k + 1), and one more row with p."""
        return Size(3 * k, k, 3 * k + 1 + (self.p is not None))

    def refined(self, at: Floats, box: Bounds | None = None) -> UnitNorm | None:  # noqa: ARG002
        """None: it is exact."""
        return None

    def box(self, k: int, within: Bounds | None = None) -> Bounds:
        """[−1, 1]^k, or [0, 1] and [−1, 0] where the rate leaves one sign; within the box."""
        lower, upper = _common(k, within)
        if self.p is not None and self.limits is not None:
            p = finite("p", self.p, (k,))
            rest = np.abs(p).sum() - np.abs(p)
            room = ROUNDING * np.abs(p).sum()
            low, high = self.limits[0] - room, self.limits[1] + room
            allowed = [(sign * p - rest <= high) & (sign * p + rest >= low) for sign in SIGNS]
            if not (allowed[0] | allowed[1]).all():
                raise ValueError("no facet has a rate within the limits")
            lower = np.where(allowed[1], lower, np.maximum(lower, 0.0))
            upper = np.where(allowed[0], upper, np.minimum(upper, 0.0))
        reached = math.fsum(np.maximum(np.abs(lower), np.abs(upper)))
        least = math.fsum(np.maximum(0.0, np.maximum(lower, -upper)))
        if (lower > upper).any() or reached < 1 - ROUNDING or least > 1 + ROUNDING:
            raise ValueError("the box holds nothing of the cross-polytope's surface")
        return lower, upper

    def ranges(self, z: Floats, box: Bounds | None = None) -> tuple[Floats, Floats]:
        """An outer bound, and ±max |z_j|, which is exact, over the whole surface.

        u is a mean of those ±e_j whose sign the box allows, and it is in the box. The better of
        these two bounds is taken.
        """
        z = finite("z", z, np.shape(z))
        lower, upper = box = self.box(z.shape[1], box)
        vertices = np.hstack([z[:, upper > 0], -z[:, lower < 0]])
        lowest, highest = _over_box(z, box)
        return (
            np.maximum(lowest, vertices.min(axis=1)),
            np.minimum(highest, vertices.max(axis=1)),
        )


def _common(k: int, within: Bounds | None) -> Bounds:
    """What of [−1, 1]^k lies within the box, in arrays that may be changed."""
    lower, upper = whole_box(k)
    if within is not None:
        least, most = checked_box(k, within)
        lower, upper = np.maximum(lower, least), np.minimum(upper, most)
    if (lower > upper).any():
        raise ValueError("the box of u holds nothing of [-1, 1]^k")
    return lower, upper


def _over_box(z: Floats, box: Bounds) -> tuple[Floats, Floats]:
    """The range of u·z_i over a box."""
    ends = z * box[0], z * box[1]
    return np.minimum(*ends).sum(axis=1), np.maximum(*ends).sum(axis=1)


def _filled(worth: Floats, low: Floats, high: Floats) -> Floats:
    """The largest worth_i·x over Σ x_j = 1, low ≤ x ≤ high, for every row: fill the best first."""
    order = np.argsort(-worth, axis=1, kind="stable")
    room = (high - low)[order]
    before = np.cumsum(room, axis=1) - room
    taken = np.clip(1 - low.sum() - before, 0.0, room)
    filled = (np.take_along_axis(worth, order, axis=1) * taken).sum(axis=1)
    return np.asarray(worth @ low + filled)
