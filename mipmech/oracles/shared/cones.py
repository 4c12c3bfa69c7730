"""A partition of the sphere into cones, and upper bounds over the directions of a cone.

A cone is a box in R^d that misses the origin: the directions v = x/‖x‖ with x in the box. The 2d
facets of the cube [−1, 1]^d cover the sphere, and halving the longest side refines a cone.

Let c be the centre of a box, h its half-widths, n = ‖c‖, H = ‖h‖², T = Σ h_j|c_j|. The cosine of
the angle of x = c + δ and c is (n² + s)/(n √(n² + 2s + ‖δ‖²)) with s = δ·c ∈ [−T, T]. It falls as
‖δ‖ grows (to at most √H) and, with ‖δ‖² = H, is least at s = −H, or at s = −T if that is nearer:

    sin² α = H/n²  if T ≥ H,   else (n²H − T²)/(n²(n² − 2T + H)).

For an agent y (its part across p), t = y·c/n and q² = ‖y‖² − t², the scores y·v over the cone are
at most t cos α + q sin α (‖y‖ if y lies in the cap itself), and at most
max(t, t cos α) + Σ_j |y_j − t c_j/n| h_j / min‖x‖, because y − t c/n is orthogonal to c. The better
of the two counts; likewise from below. An angle θ to p between two values widens them as in
`slices`.

Agent i can be in the margin only for b between its least score and its greatest plus its reach.
So no direction of the cone has a greater density than the weight of the intervals over one point
(`stab`), nor a greater soft density than the sum over such intervals of min(b − least score,
reach) (`soft_stab`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from mipmech.oracles.shared.facets import Facet, Part
from mipmech.oracles.shared.slices import Slice
from mipmech.tolerances import EPSILON
from mipmech.validation import Flags, Floats, Numbers


@dataclass(frozen=True, eq=False)
class ConeSet:
    """Some cones.

    lower, upper : (n, d) arrays, the boxes
    bound : (n,) array, what a direction in the cone can have at most; infinite if not known yet
    """

    lower: Floats
    upper: Floats
    bound: Floats

    def __len__(self) -> int:
        return len(self.bound)

    def __getitem__(self, chosen: Flags | Numbers | slice) -> ConeSet:
        return ConeSet(self.lower[chosen], self.upper[chosen], self.bound[chosen])


def joined(parts: Iterable[ConeSet]) -> ConeSet:
    """Several sets of cones as one."""
    arrays = zip(*((c.lower, c.upper, c.bound) for c in parts), strict=True)
    return ConeSet(*map(np.concatenate, arrays))


def sphere(dimension: int) -> ConeSet:
    """The 2d facets of the cube: they cover the sphere. A single point for d = 0.

    >>> sphere(1).lower.tolist()
    [[1.0], [-1.0]]
    """
    if dimension == 0:
        return ConeSet(np.zeros((1, 0)), np.zeros((1, 0)), np.full(1, np.inf))
    signs = np.concatenate([np.eye(dimension), -np.eye(dimension)])
    lower, upper = (np.where(signs == 0, end, signs) for end in (-1.0, 1.0))
    return ConeSet(lower, upper, np.full(2 * dimension, np.inf))


def cover(part: Part) -> ConeSet:
    """Cones that cover all directions of a part: those of a sphere, or of a facet.

    A facet of l1 costs is a box, and one cone. On a simplex, v = x/Σx_j for points x of the facets
    x_j = 1 of a cube.
    """
    d = part.dimension
    if isinstance(part, Slice):
        return sphere(d)
    if not part.simplex:
        return ConeSet(np.full((1, d), -1.0), np.ones((1, d)), np.full(1, np.inf))
    return ConeSet(np.eye(d), np.ones((d, d)), np.full(d, np.inf))


def halves(cones: ConeSet) -> ConeSet:
    """Each cone cut in two across its longest side."""
    side = np.arange(len(cones)), (cones.upper - cones.lower).argmax(axis=1)
    upper, lower = cones.upper.copy(), cones.lower.copy()
    upper[side] = lower[side] = cones.lower[side] / 2 + cones.upper[side] / 2
    return joined([replace(cones, upper=upper), replace(cones, lower=lower)])


@dataclass(frozen=True, eq=False)
class Ranges:
    """Where the agents' scores lie over each cone.

    centre : (n, d) array of unit vectors
    sine : (n,) array, sin α; on a facet, how far scores range as a share of the largest
    low, high : (n, m) arrays, slack included
    steps : (n, d) array, h_j / min‖x‖: how far coordinates differ from those of the centre
    """

    centre: Floats
    sine: Floats
    low: Floats
    high: Floats
    steps: Floats

    def __getitem__(self, chosen: Flags | slice) -> Ranges:
        parts = (self.centre, self.sine, self.low, self.high, self.steps)
        return Ranges(*(part[chosen] for part in parts))


def ranges(part: Part, cones: ConeSet) -> Ranges:
    """The range of every agent's score u·z_i over each cone and over the slice's angles θ."""
    if isinstance(part, Facet):
        return _over_facet(part, cones)
    centre, sine, low, high = _across_in_lots(part.across, cones)
    steps = _steps(cones)
    if part.least == part.most:
        angle = part.angle
        low *= math.sin(angle)
        high *= math.sin(angle)
        shift = math.cos(angle) * part.along
        low += shift - part.slack
        high += shift + part.slack
        return Ranges(centre, sine, low, high, steps)
    low = -_turned(part, -part.along, -low) - part.slack
    high = _turned(part, part.along, high) + part.slack
    return Ranges(centre, sine, low, high, steps)


def _over_facet(part: Facet, cones: ConeSet) -> Ranges:
    """On a box scores are linear; on a simplex v = x/Σx, and with t the score at the centre

    |v·y − t| ≤ Σ h_j |y_j − t| / min Σx_j, because x·(y − t) = (x − c)·(y − t).
    """
    centre, half = (cones.lower + cones.upper) / 2, (cones.upper - cones.lower) / 2
    least = np.ones(len(cones))
    if part.simplex:
        centre, least = centre / centre.sum(axis=1, keepdims=True), cones.lower.sum(axis=1)
    t = centre @ part.y.T
    off, term = np.zeros_like(t), np.empty_like(t)
    for j in range(part.dimension):
        np.subtract(part.y[:, j], t if part.simplex else 0.0, out=term)
        np.abs(term, out=term)
        term *= half[:, j : j + 1]
        off += term
    off /= least[:, None]
    low, high = t - off, t + off
    low += part.shift - part.slack
    high += part.shift + part.slack
    spread = half.sum(axis=1) if part.simplex else half.max(axis=1, initial=0.0)
    return Ranges(part.onto(centre), spread / least, low, high, half / least[:, None])


def _steps(cones: ConeSet) -> Floats:
    """h_j / min‖x‖ over the box of each cone."""
    half = (cones.upper - cones.lower) / 2
    nearest = np.maximum(np.maximum(cones.lower, -cones.upper), 0.0)
    shortest = np.sqrt(np.einsum("nj,nj->n", nearest, nearest))[:, None]
    return np.asarray(half / np.where(shortest > 0, shortest, 1.0))


def _turned(part: Slice, along: Floats, across: Floats) -> Floats:
    """The maximum of cos θ · along + sin θ · across over the allowed θ (within [0, π])."""
    ends = [math.cos(t) * along + math.sin(t) * across for t in (part.least, part.most)]
    slopes = [math.cos(t) * across - math.sin(t) * along for t in (part.least, part.most)]
    top: Floats = np.maximum(ends[0], ends[1])
    peak = (slopes[0] > 0) & (slopes[1] < 0)
    return np.where(peak, np.hypot(along, across), top)


# Numbers in one array of a batch: a dozen such arrays stay in the cache, which halves the time.
LOT = 1 << 14


def _across_in_lots(y: Floats, cones: ConeSet) -> tuple[Floats, Floats, Floats, Floats]:
    """`_across`, a batch of cones at a time."""
    n, size = len(cones), max(1, LOT // len(y))
    if n <= size:
        return _across(y, cones)
    centre, sine = np.empty(cones.lower.shape), np.empty(n)
    low, high = np.empty((n, len(y))), np.empty((n, len(y)))
    for start in range(0, n, size):
        lot = slice(start, start + size)
        centre[lot], sine[lot], low[lot], high[lot] = _across(y, cones[lot])
    return centre, sine, low, high


def _across(y: Floats, cones: ConeSet) -> tuple[Floats, Floats, Floats, Floats]:
    """Centres, sin α, and the range of y_i·v over each cone."""
    centre, half = (cones.lower + cones.upper) / 2, (cones.upper - cones.lower) / 2
    if centre.shape[1] == 0:
        nothing = np.zeros((len(cones), len(y)))
        return centre, np.zeros(len(cones)), nothing, nothing.copy()
    square = np.einsum("nj,nj->n", centre, centre)
    width = np.einsum("nj,nj->n", half, half)
    tilt = np.einsum("nj,nj->n", half, np.abs(centre))
    # Upwards by more than rounding can take away: sines and roots near 0 lose half their digits.
    up = 1 + 64 * EPSILON
    nearer = (square * width * up - tilt**2) / (square * (square - 2 * tilt + width))
    sine_square = np.where(tilt >= width, width / square, nearer)
    sine_square = np.clip(sine_square * up, 0.0, 1.0)
    sine, cosine = np.sqrt(sine_square)[:, None], np.sqrt(1 - sine_square)[:, None]
    nearest = np.maximum(np.abs(centre) - half, 0.0)
    shortest = np.sqrt(np.einsum("nj,nj->n", nearest, nearest))[:, None]
    centre = centre / np.sqrt(square)[:, None]
    length_square = np.einsum("ij,ij->i", y, y)
    length = np.sqrt(length_square)
    t = centre @ y.T
    q = np.sqrt(np.maximum(length_square - t**2, 0.0) + 64 * EPSILON * length_square)
    middle = t * cosine
    q *= sine
    high, low = middle + q, middle - q
    inside = cosine * length
    np.copyto(high, length, where=t >= inside)
    np.copyto(low, -length, where=-t >= inside)
    off, term = np.zeros_like(t), np.empty_like(t)
    for j in range(centre.shape[1]):
        np.multiply(t, centre[:, j : j + 1], out=term)
        np.subtract(y[:, j], term, out=term)
        np.abs(term, out=term)
        term *= half[:, j : j + 1]
        off += term
    off /= shortest
    np.minimum(high, np.maximum(t, middle) + off, out=high)
    np.maximum(low, np.minimum(t, middle) - off, out=low)
    # A box so wide that some of its directions may be beyond a right angle from its centre.
    wide = tilt >= square
    if wide.any():
        sine[wide], low[wide], high[wide] = 1.0, -length, length
    return centre, sine[:, 0], low, high


# A range of counts that is passed through one by one rather than halved.
LITTLE = 48


def stab(starts: Floats, ends: Floats, mass: Numbers, floor: int = 0) -> Floats:
    """The greatest mass of closed intervals over one point, for each row; at least ``floor``.

    starts, ends : (n, m) arrays; mass : (m,) array of whole numbers

    >>> stab(np.array([[0.0, 1.0, 3.0]]), np.array([[1.0, 2.0, 4.0]]), np.array([1, 1, 1]))
    array([2.])
    """
    if (mass == 1).all():
        return _stab_equal(np.sort(starts, axis=1), np.sort(ends, axis=1), floor)
    _, over = _sweep(starts, ends, mass)
    return np.asarray(over.max(axis=1, initial=floor), dtype=np.float64)


def _sweep(starts: Floats, ends: Floats, mass: Numbers) -> tuple[Floats, Numbers]:
    """The starts and ends of each row in order, and the mass over each of them and up to the next.

    One float later, an end comes after every start that it touches, however the sort breaks ties
    (a stable sort would be five times slower).
    """
    points = np.concatenate([starts, np.nextafter(ends, np.inf)], axis=1)
    order = np.argsort(points, axis=1)
    change = np.concatenate([mass, -mass])
    return np.take_along_axis(points, order, axis=1), np.cumsum(change[order], axis=1)


def stabbed_more(
    starts: Floats, ends: Floats, mass: Numbers, than: float
) -> tuple[float, float] | None:
    """The range of all points over which some row has more mass than this; None if there are none.

    >>> one = np.array([1, 1, 1])
    >>> stabbed_more(np.array([[0.0, 1.0, 3.0]]), np.array([[2.0, 2.5, 4.0]]), one, 1)
    (1.0, 2.0000000000000004)
    """
    points, over = _sweep(starts, ends, mass)
    more = over > than
    if not more.any():
        return None
    # The last event of a row leaves nothing over it, so there is always a next one.
    after = points[:, 1:][more[:, :-1]]
    return float(points[more].min()), float(after.max())


def _stab_equal(starts: Floats, ends: Floats, floor: int) -> Floats:
    """Counting with sorted starts and ends, at least ``floor``.

    c intervals share a point iff for some j the start of rank j is not beyond the end of rank
    j − c + 1 (ranks from 0): then j + 1 have begun there and at most j − c + 1 have ended.
    """
    n, m = starts.shape
    most = np.full(n, float(floor))
    waiting = [(np.arange(n), floor, m)] if floor < m else []
    while waiting:
        rows, low, high = waiting.pop()  # the counts of these rows lie in [low, high]
        # Few are above the floor, and those by little; without a floor, halve.
        count = low + 1 if floor and high - floor <= LITTLE else (low + high + 1) // 2
        shared = (starts[rows, count - 1 :] <= ends[rows, : m - count + 1]).any(axis=1)
        for part, least, greatest in ((rows[shared], count, high), (rows[~shared], low, count - 1)):
            if len(part) and least < greatest:
                waiting.append((part, least, greatest))
            elif len(part):
                most[part] = least
    return most


def soft_stab(starts: Floats, ends: Floats, reach: Floats, weight: Floats) -> Floats:
    """The maximum over b of Σ ω_i min(b − start_i, reach_i) over the intervals that contain b.

    The sum rises with b between ends and falls only after one, so only ends are looked at.
    """
    _, value, rounding = _soft_sweep(starts, ends, reach, weight)
    return np.asarray(value.max(axis=1, initial=0.0) + rounding)


def _soft_sweep(
    starts: Floats, ends: Floats, reach: Floats, weight: Floats
) -> tuple[Floats, Floats, Floats]:
    """The points of each row in order, the sum of `soft_stab` there, and what it may be off by."""
    n, m = starts.shape
    full = starts + reach
    points = np.concatenate([starts, full, np.nextafter(ends, np.inf)], axis=1)  # as in `stab`
    order = np.argsort(points, axis=1)
    zero = np.zeros(m)
    slope = np.concatenate([weight, -weight, zero])
    constant = np.concatenate(
        [-weight * starts, weight * full, np.broadcast_to(-weight * reach, (n, m))], axis=1
    )
    own = np.concatenate([zero, zero, weight * reach])  # what ends here still counts here
    at = np.take_along_axis(points, order, axis=1)
    value = np.cumsum(slope[order], axis=1) * at
    value += np.cumsum(np.take_along_axis(constant, order, axis=1), axis=1)
    value += own[order]
    # Sums of 3m terms of size at most the largest end.
    size = np.abs(points).max(axis=1) + reach.max()
    return at, value, np.asarray(16 * m * EPSILON * size)


def soft_stabbed_more(
    starts: Floats, ends: Floats, reach: Floats, weight: Floats, than: Floats
) -> tuple[float, float] | None:
    """The range of all b at which the sum of `soft_stab` is above ``than``, (n,), in some row.

    >>> one, two = np.array([[0.0]]), np.array([[3.0]])
    >>> soft_stabbed_more(one, two, np.array([2.0]), np.array([1.0]), np.array([1.5]))
    (0.0, 3.0000000000000004)
    """
    at, value, rounding = _soft_sweep(starts, ends, reach, weight)
    more = value + rounding[:, None] > than[:, None]
    if not more.any():
        return None
    # Between two points the sum rises to what it is at the second one.
    before = np.concatenate([at[:, :1], at[:, :-1]], axis=1)
    return float(before[more].min()), float(at[more].max())


class Frontier:
    """The open cones, the most promising first.

    ConeSet with nearly the same bound are kept together, so that taking the best is cheap.
    """

    def __init__(self, cones: ConeSet, grain: float) -> None:
        self.grain = grain
        self.dropped = -math.inf
        self.lots: dict[float, list[ConeSet]] = {}
        self.add(cones)

    def add(self, cones: ConeSet) -> None:
        """Put cones back."""
        keys = np.ceil(cones.bound / self.grain)
        for key in np.unique(keys):
            self.lots.setdefault(float(key), []).append(cones[keys == key])

    def take(self, most: int) -> ConeSet:
        """Remove and return some of the cones with the highest bound."""
        key = max(self.lots)
        lot = joined(self.lots.pop(key))
        if len(lot) > most:
            self.lots[key] = [lot[most:]]
        return lot[:most]

    def drop(self, bound: float) -> float:
        """Close every cone whose bound is not above this; the highest bound closed, or −∞."""
        highest = -math.inf
        if bound <= self.dropped:  # nothing has changed since
            return highest
        self.dropped = bound
        for key in [k for k in self.lots if (k - 1) * self.grain <= bound]:
            lot = joined(self.lots.pop(key))
            closed = lot.bound <= bound
            highest = max(highest, float(lot.bound[closed].max(initial=-math.inf)))
            self.add(lot[~closed])
        return highest

    def __len__(self) -> int:
        return sum(len(lot) for lots in self.lots.values() for lot in lots)

    def __bool__(self) -> bool:
        return bool(self.lots)

    @property
    def bound(self) -> float:
        """The highest bound of an open cone; −∞ if there is none."""
        highest = self.lots[max(self.lots)] if self.lots else []
        return max((float(lot.bound.max()) for lot in highest), default=-math.inf)

    def everything(self) -> ConeSet:
        """All open cones."""
        return joined(lot for lots in self.lots.values() for lot in lots)
