"""What requirements leave of a slice or facet: directions in a cone, and thresholds that may do.

A row a·u ≥ 0 over u is shift + a·v ≥ 0 over v (`Slice`, `Facet`). A cone of directions in which
some row is negative throughout is closed; other directions are moved onto near ones that are
allowed.

Over a cone of directions, agent i is surely accepted for b up to its least score plus its reach,
and surely rejected beyond its greatest score plus its reach. Between two such ends nothing changes
but the distances moved, which grow with b; so it is enough to look at ends, at those only where the
limits on who is accepted may be met.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from mipmech.model.geometry import Geometry
from mipmech.model.instance import Instance
from mipmech.model.requirements.acceptance import Shares
from mipmech.model.requirements.directions import reduced_rows
from mipmech.oracles.shared.cones import ConeSet, Ranges
from mipmech.oracles.shared.facets import Part
from mipmech.oracles.shared.slices import Slice
from mipmech.tolerances import EPSILON, SAFETY
from mipmech.validation import Flags, Floats, Numbers

# Rounds of steps onto the cone's sides, and back onto the sphere or facet.
SWEEPS = 40
# Sides nearer than this are met exactly: solvers come as near as that.
NEAR = 1e-6
# Ends nearer than this are one where rules are only estimated.
TIED = 1e-12
# With more agents than this, nothing is said of pairs that cannot be accepted together.
MOST_COUPLED = 64
# Nothing that is allowed is known, or is there.
NOTHING = -1.0
# Reaches, rounded down.
DOWN = 1 - 16 * EPSILON


@dataclass(frozen=True, eq=False)
class Restrictions:
    """What is demanded of the rules on a part; make it with `restrictions_of`.

    part : a slice or a facet
    rows, shift, room : (r, d), (r,) and (r,) arrays: shift + rows·v ≥ 0, but for the room
    strict : whether cones of directions that only touch may be closed
    mass, shares : (c, m) array, the mass of each agent in each class, and the limits; or None
    """

    part: Part
    rows: Floats
    shift: Floats
    room: Floats
    strict: bool
    mass: Floats | None
    shares: Shares | None

    # ------------------------------------------------------------ directions

    def outside(self, cones: ConeSet, where: Ranges) -> Flags:
        """In which cones no direction is allowed, (n,) array."""
        found = np.zeros(len(cones), bool)
        if not len(self.rows):
            return found
        if isinstance(self.part, Slice) and not self.part.whole:
            sizes: Floats = np.linalg.norm(self.rows, axis=1)
            t = where.centre @ self.rows.T
            sine = np.minimum(1.0, where.sine)[:, None]
            cosine = np.sqrt(np.maximum(0.0, 1 - sine**2))
            across = np.sqrt(np.maximum(0.0, sizes**2 - t**2) + 64 * EPSILON * sizes**2) * sine
            most = np.where((t >= cosine * sizes) | (sine >= 1), sizes, t * cosine + across)
            most = most + self.shift + 64 * EPSILON * sizes
            return np.asarray((most < -self.room).any(axis=1))
        # Rows are linear in the points of the box; a direction is such a point, made shorter or not
        # by a factor that is the same for all rows.
        middle, half = (cones.lower + cones.upper) / 2, (cones.upper - cones.lower) / 2
        most = middle @ self.rows.T + half @ np.abs(self.rows).T + self.shift
        longest = math.sqrt(max(1, self.part.dimension)) * max(1, self.part.dimension)
        rounded = 8 * EPSILON * (np.abs(middle) + half) @ np.abs(self.rows).T
        found = np.asarray((most < -self.room * longest - rounded).any(axis=1))
        if self.strict:
            found |= ((most <= 0) & (self.room == 0) & self._simple).any(axis=1)
        return np.asarray(found)

    @cached_property
    def _simple(self) -> Flags:
        """Rows over a box that floats add up without rounding: those of one coordinate."""
        return np.asarray((self.rows != 0).sum(axis=1) == 1)

    def allowed(self, v: Floats) -> Floats:
        """Directions, (n, d), moved onto ones that are allowed, as far as that succeeds."""
        if not len(self.rows) or not len(v) or self.part.dimension == 0:
            return v
        v = self.part.onto(np.array(v, dtype=np.float64))
        squares = np.maximum((self.rows**2).sum(axis=1), 1e-300)
        for _ in range(SWEEPS):
            missed = False
            for row, shift, square in zip(self.rows, self.shift, squares, strict=True):
                below = np.minimum(0.0, v @ row + shift)
                if below.any():
                    missed = missed or bool(below.min() < -1e-15 * math.sqrt(square))
                    v = v - (below / square)[:, None] * row
            v = self.part.onto(v)
            if not missed:
                break
        return v

    def on_sides(self, v: Floats) -> Floats | None:
        """A direction, (d,), put exactly on the sides that it nearly meets; None if it meets none.

        On a slice, a point of a circle where these sides cut the sphere.
        """
        part = self.part
        if not len(self.rows) or not isinstance(part, Slice) or part.dimension == 0:
            return None
        sizes = np.linalg.norm(self.rows, axis=1)
        near = np.abs(self.rows @ v + self.shift) <= NEAR * np.maximum(sizes, 1e-300)
        near &= sizes > 0
        if not near.any():
            return None
        _, values, axes = np.linalg.svd(self.rows[near])
        rank = int((values > 1e-9 * values[0]).sum())
        foot = np.linalg.lstsq(self.rows[near], -self.shift[near], rcond=1e-9)[0]
        free = axes[rank:]
        rest = 1 - float(foot @ foot)
        along = free.T @ (free @ v)
        length = float(np.linalg.norm(along))
        if rest <= 0 or length == 0:
            return None if rest < -NEAR or not foot.any() else foot / np.linalg.norm(foot)
        return np.asarray(foot + math.sqrt(rest) * along / length)

    # ------------------------------------------------------------ who is accepted

    def bounds(self, where: Ranges, reach: Floats, amount: Floats | Numbers, soft: bool) -> Floats:
        """The most of (soft) density in each cone at thresholds that may be allowed there, (n,).

        `NOTHING` if there are none. amount : (m,) array of weights, or of whole numbers
        """
        assert self.mass is not None
        assert self.shares is not None
        starts, (n, m) = where.low, where.low.shape
        full = starts + reach if soft else starts
        ends = np.nextafter(where.high + reach, np.inf)  # as in `cones.stab`
        points = np.concatenate([starts, full, starts + reach * DOWN, ends], axis=1)
        order = np.argsort(points, axis=1)
        at, zero = np.take_along_axis(points, order, axis=1), np.zeros(m)

        def summed(*parts: Floats | Numbers) -> Floats:
            return np.asarray(np.cumsum(np.concatenate(parts)[order], axis=1), dtype=np.float64)

        if soft:
            value = summed(amount, -amount, zero, zero) * at
            constant = np.concatenate(
                [-amount * starts, amount * full, np.zeros((n, m)),
                 np.broadcast_to(-amount * reach, (n, m))], axis=1,
            )  # fmt: skip
            value += np.cumsum(np.take_along_axis(constant, order, axis=1), axis=1)
            own = np.concatenate([zero, zero, zero, amount * reach])
            size = np.abs(points).max(axis=1) + reach.max()
            rounding = 32 * m * EPSILON * size * float(amount.sum())
        else:
            value = summed(amount, zero, zero, -amount)
            own, rounding = np.concatenate([zero, zero, zero, amount]), np.zeros(n)
        value += own[order] + rounding[:, None]
        if m <= MOST_COUPLED:
            each = amount * reach if soft else np.asarray(amount, dtype=np.float64)
            fits, lost = self._together(at, starts + reach * DOWN, ends, each)
            value -= lost
        else:
            fits = self._may_fit(order)
        found = np.where(fits, value, NOTHING).max(axis=1, initial=NOTHING)
        return np.asarray(np.maximum(found, 0.0 if self.nobody else NOTHING))

    def _may_fit(self, order: Numbers) -> Flags:
        """At which of the points the limits may be met, (n, 4m) array."""
        assert self.mass is not None
        zero = np.zeros(self.mass.shape[1])
        least, most = [], []
        for mass in self.mass:
            sure = np.concatenate([zero, zero, mass, zero])[order]
            may = np.concatenate([zero, zero, zero, mass])[order]
            least.append(float(mass.sum()) - np.cumsum(sure, axis=1))
            most.append(float(mass.sum()) - (np.cumsum(may, axis=1) - may))
        return self._fits(least, most)[0]

    def _fits(self, least: Sequence[Floats], most: Sequence[Floats]) -> tuple[Flags, Floats]:
        """Whether the limits may be met with masses by class in a range, and the least share."""
        assert self.mass is not None
        assert self.shares is not None
        totals = self.mass.sum(axis=1)
        high = np.max([held / total for held, total in zip(least, totals, strict=True)], axis=0)
        low = np.min([held / total for held, total in zip(most, totals, strict=True)], axis=0)
        within = float(self.shares.within) + 1e-12
        fits = (sum(least) <= self.shares.high) & (sum(most) >= self.shares.low)
        return np.asarray(fits & (high - low <= within)), low

    def _together(
        self, at: Floats, sure: Floats, ends: Floats, each: Floats
    ) -> tuple[Flags, Floats]:
        """At which points the limits may be met, and what some agents cannot add there, (n, p).

        Agents who may pass or not add nothing where too many would be accepted with them.

        at : (n, p) array of thresholds; sure, ends : (n, m) arrays, up to where agents surely pass,
            and from where on they surely do not; each : (m,) array, what each may add
        """
        assert self.mass is not None
        assert self.shares is not None
        kept, place = self._alike
        mass = np.array([np.bincount(place, weights=row) for row in self.mass])
        each = np.asarray(np.bincount(place, weights=each), dtype=np.float64)
        surely = [at <= sure[:, i : i + 1] for i in kept]
        open_ = [~s & (at <= ends[:, i : i + 1]) for s, i in zip(surely, kept, strict=True)]
        least, room, lost = [], [], np.zeros_like(at)
        most = []
        for row in mass:
            used = np.flatnonzero(row)
            least.append(sum((row[i] * surely[i] for i in used), np.zeros_like(at)))
            most.append(least[-1] + sum((row[i] * open_[i] for i in used), np.zeros_like(at)))
        fits, low = self._fits(least, most)
        within, total = float(self.shares.within) + 1e-12, sum(least)
        for row, held in zip(mass, least, strict=True):
            room.append(np.minimum(self.shares.high - total, (low + within) * row.sum() - held))
        added = [np.zeros_like(at) for _ in mass]
        for i, flags in enumerate(open_):
            fit = np.all([row[i] <= left for row, left in zip(mass, room, strict=True)], axis=0)
            lost += each[i] * (flags & ~fit)
            if np.count_nonzero(mass[:, i]) == 1:
                added[int(mass[:, i].argmax())] += each[i] * (flags & fit)
        for row, left, sum_ in zip(mass, room, added, strict=True):
            used = row > 0
            best = float((each[used] / row[used]).max())
            lost += np.maximum(0.0, sum_ * (1 - 1e-12) - np.maximum(left, 0.0) * best)
        return fits, lost

    @cached_property
    def _alike(self) -> tuple[Numbers, Numbers]:
        """One agent in the place of all that respond alike, and each agent's place among them."""
        geometry = self.part.geometry
        first = alike(geometry.seen or geometry.instance, self.part.agents)
        kept, place = np.unique(first, return_inverse=True)
        return kept, place

    @property
    def nobody(self) -> bool:
        """Whether nobody need be accepted."""
        return self.shares is None or self.shares.nobody

    def estimates(
        self, scores: Floats, reach: Floats, amount: Floats | Numbers, soft: bool
    ) -> Floats:
        """The best (soft) density of directions, (n, m) scores, over allowed thresholds, (n,).

        In floats, to within ties; `NOTHING` where no threshold seems to do.
        """
        assert self.mass is not None
        assert self.shares is not None
        n, m = scores.shape
        ends = scores + reach
        falling = np.argsort(-ends, axis=1, kind="stable")
        b = np.take_along_axis(ends, falling, axis=1)
        last = np.ones((n, m), bool)
        last[:, :-1] = b[:, :-1] - b[:, 1:] > TIED * (1 + np.abs(b[:, 1:]))
        held = np.stack([np.cumsum(mass[falling], axis=1) for mass in self.mass], axis=-1)
        fits = self.shares.fitting(held.reshape(n * m, -1)).reshape(n, m) & last
        rising = np.argsort(np.concatenate([scores, ends], axis=1), axis=1, kind="stable")
        place = np.empty_like(rising)
        np.put_along_axis(place, rising, np.broadcast_to(np.arange(2 * m), (n, 2 * m)), axis=1)
        at_end = np.take_along_axis(place[:, m:], falling, axis=1)

        def inside(values: Floats) -> Floats:
            """Σ of (n, m) values over those in the margin of each end."""
            begun = np.concatenate([values, np.zeros((n, m))], axis=1)
            begun = np.cumsum(np.take_along_axis(begun, rising, axis=1), axis=1)
            ended = np.cumsum(np.take_along_axis(values, falling, axis=1), axis=1)
            gone = values.sum(axis=1, keepdims=True) - ended
            return np.asarray(np.take_along_axis(begun, at_end, axis=1) - gone)

        amounts = np.broadcast_to(amount, (n, m)).astype(np.float64)
        value = inside(amounts)
        if soft:
            value = b * value - inside(amounts * scores)
        found = np.where(fits, np.maximum(value, 0.0), NOTHING).max(axis=1, initial=NOTHING)
        return np.asarray(np.maximum(found, 0.0 if self.nobody else NOTHING))


def restrictions_of(part: Part) -> Restrictions | None:
    """What is demanded of the rules on a slice or facet; None if nothing is."""
    geometry = part.geometry
    demands = geometry.demands
    if demands is None:
        return None
    rows, shift = np.zeros((0, part.dimension)), np.zeros(0)
    room, strict = np.zeros(0), False
    if demands.cone is not None:
        full, room = cone_rows(geometry)
        if isinstance(part, Slice):
            wide = 0.0 if part.whole else part.most - part.least + 4 * geometry.band + 64 * EPSILON
            sizes = np.linalg.norm(full, axis=1)
            rows = math.sin(part.angle) * (full @ part.turn)
            shift = math.cos(part.angle) * (full @ part.towards)
            if part.whole:
                rows, shift = full @ part.turn, np.zeros(len(full))
            room = room + SAFETY * wide * sizes
            strict = part.whole and demands.cone.open
        else:
            rows, shift = full @ part.turn, full @ part.fixed
    shares, mass = demands.shares, None
    if shares is not None:
        classes = shares.members[part.agents] if shares.by_class else 0
        count = len(shares.totals) if shares.by_class else 1
        mass = np.zeros((count, len(part.agents)))
        mass[classes, np.arange(len(part.agents))] = shares.mass[part.agents]
        if not shares.by_class and len(shares.totals) > 1:
            shares = _as_one(shares)
    return Restrictions(part, rows, shift, room, strict, mass, shares)


def _as_one(shares: Shares) -> Shares:
    """The same limits where it does not matter who is in which class."""
    members = np.zeros_like(shares.members)
    total = shares.totals.sum(keepdims=True)
    return Shares(shares.mass, members, total, shares.low, shares.high, Fraction(1), shares.exact)


def cone_rows(geometry: Geometry) -> tuple[Floats, Floats]:
    """The rows of the demanded cone over u, and their room for directions of length 1."""
    assert geometry.demands is not None
    assert geometry.demands.cone is not None
    rows, room = reduced_rows(geometry, geometry.demands.cone)
    if geometry.norm != "l2":  # where a direction of length 1 may be longer
        room = room * math.sqrt(geometry.rank)
    return rows, room


def alike(instance: Instance, agents: Numbers) -> Numbers:
    """For each of these agents, the first one of whom all that matters is the same: its place."""
    used = (instance.view.matrix != 0).any(axis=0)
    table = np.column_stack([instance.agents[agents][:, used], instance.costs.values[agents]])
    _, first, inverse = np.unique(table + 0.0, axis=0, return_index=True, return_inverse=True)
    return np.asarray(first[inverse.reshape(-1)])
