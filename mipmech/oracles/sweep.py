"""The second opinion for few dimensions: every place where the set of covered agents changes.

Exact where the directions left are a circle, or single ones: the best gain for k ≤ 2 (`sweep_gain`)
and the best density at a fixed η for k ≤ 3 (`Sweep`). O(m² log m), plain, and sharing no code with
the other exact oracles, which are tested against it.

One agent sets the threshold. If (u, b) covers a set of agents, b can be raised to the smallest
right end u·z_i + ℓ_i among them without losing any. So for every agent i in turn take that b;
then agent j is covered iff

    0 ≤ u·(z_i − z_j) + ℓ_i ≤ ℓ_j      (both ends closed).

On a circle u = fixed + turning·(cos φ, sin φ) and u·(z_i − z_j) = still + D cos(φ − φ₀), so j is
covered on at most two arcs, |φ − φ₀| ∈ [arccos(high/D), arccos(low/D)]. One sort of their ends per
i, and running sums, give every set that is ever covered together with i at its right end.

Density at η: u = cos θ·p̂ + sin θ·H v with v on the unit sphere of R^(k−1), so k = 3 leaves a
circle; p = 0 leaves the sphere of R^k, a circle for k = 2. The running sums are of whole numbers.

Gain, k = 2: with θ measured from p and A = Σ ω_j (z_i − z_j), c = ℓ_i Σ ω_j over the covered, it is
‖p‖ g(θ) on an arc, with

    g(θ) = cos θ (A·(cos θ, sin θ) + c),      |g''| ≤ 2‖A‖ + c,

so that g ≤ max(g(left), g(right)) + (2‖A‖ + c)(right − left)²/8 on it. Arcs which may beat the best
value so far are halved until this bound and the values at their ends agree: that finds the interior
stationary points, the zeros of ‖A‖ sin(2θ − α) + c sin θ, and proves that none was missed.

Rounding. For upper bounds the levels ``low`` and ``high`` are moved apart, not the angles: where
D cos hardly reaches a level, the angle is off by the root of the rounding, the level never by more
than D times the rounding of the angles. What moves them is the rounding of z, of p, of reach, of
the angles, and for density the width of the band of η. So every agent truly covered at φ is counted
at φ, and whoever touches an end is counted on both sides. For gain that costs no more than the
moved levels themselves (the best soft density is Lipschitz); for density a tie that floats cannot
meet leaves a gap, which is reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mipmech.budget import Budget, Stop, Timer
from mipmech.errors import InputError
from mipmech.exact import common_integers, exact_dot, exact_sum
from mipmech.geometry import Geometry, reduce
from mipmech.instance import Instance
from mipmech.mechanism import from_reduced
from mipmech.oracles import Answer, OracleFault, answer_infeasible, grade, infeasible
from mipmech.threshold import best_threshold, densest_threshold
from mipmech.tolerances import EPSILON, ROUNDING, SAFETY, UNDERFLOW
from mipmech.truth import Recount

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
Number = TypeVar("Number", np.float64, np.int64)

CIRCLE = 2 * math.pi
# Angles up to 2π out of an arctangent, an arccosine (each good to four units in the last place) and
# a handful of additions are good to less than this; times a length, so are their levels.
ANGLE_ERROR = 128 * EPSILON
# Reach and differences of reach are good to this share of themselves.
REACH_ERROR = 8 * EPSILON
# The half circle around p is swept with this much to spare at both ends.
SPARE = 1e-15
# A turn that no sweep arrives at: where agents come and go that are never covered, or always.
NOWHERE = 100.0
# Comings and goings in one batch: few enough to stay in the cache, enough to make numpy fast.
EVENTS_AT_ONCE = 1 << 18
# Pairs of agents in one batch of sums.
PAIRS_AT_ONCE = 1 << 18
# Arcs of gain are halved until their bound is this near (relatively) to the value at their ends,
SETTLED = 1e-13
# or until floats cannot halve them any more.
SHORTEST = 1e-14
# Directions whose gain is graded, the best by floats; the first is the best but for rounding.
GRADED = 4
# Directions this near to each other are the same peak of the gain.
SAME_PEAK = 1e-7
# Directions whose density is graded before a gap is left to the bound.
TRIED = 48
# Of them, from one batch of arcs.
TRIED_AT_ONCE = 8
# On an arc this long rounding does not decide who is covered in its middle.
CLEAR = 1e-9
# Directions rounded to this step meet ties along the axes; far below the band of η.
STEP = 2.0**-44
# Sums of whole weights stay below this, so that 64 bits hold them.
MOST_MASS = 1 << 61


# ------------------------------------------------------------------ the circle and its arcs


@dataclass(frozen=True, eq=False)
class _Circle:
    """Agents whose scores turn: agent i has the score still_i + turning_i·(cos φ, sin φ).

    still, turning : (m,) and (m, 2) arrays
    reach, cost : (m,) arrays, reach in multiples of the unit
    slack : (m,) array; a score at φ is off by no more, the rounding of φ included
    begin, span : the sweep takes φ from ``begin`` on, so far
    """

    still: Floats
    turning: Floats
    reach: Floats
    cost: Floats
    slack: Floats
    unit: float
    begin: float
    span: float

    def chunks(self, rows: Numbers, at_once: int) -> Iterator[Numbers]:
        """The rows in portions of so many numbers altogether, one per agent."""
        size = max(1, at_once // len(self.reach))
        return (rows[first : first + size] for first in range(0, len(rows), size))

    def pairs(self, rows: Numbers, widened: float) -> tuple[Floats, Floats, Floats, Floats]:
        """x, y, low, high, all (c, m): agent j is covered at the right end of agent i = rows[·] iff
        low ≤ x cos φ + y sin φ ≤ high, with both levels moved out ``widened`` times their rounding.
        """
        i = rows[:, None]
        x = self.turning[i, 0] - self.turning[:, 0]
        y = self.turning[i, 1] - self.turning[:, 1]
        apart = self.still[i] - self.still
        # ℓ_j − ℓ_i, good to a few units of itself however long both are.
        longer = (self.cost[i] - self.cost) * self.reach[i] * (self.reach * self.unit)
        low = -self.reach[i] - apart
        high = longer - apart
        if widened:
            slack = self.slack[i] + self.slack
            low -= widened * (slack + REACH_ERROR * self.reach[i])
            high += widened * (slack + REACH_ERROR * np.abs(longer))
        return x, y, low, high


@dataclass(frozen=True, eq=False)
class _Events:
    """Who comes and goes where, for each agent i of a chunk; agents covered always are in entered.

    turns : (c, 4m) array, ascending: how far after the beginning of the sweep
    order : (c, 4m) array, which event: j or m + j if j comes, 2m + j or 3m + j if it goes
    entered : (c, m) array, how many of j's arcs hold the beginning
    """

    turns: Floats
    order: Numbers
    entered: Numbers

    def running(self, values: NDArray[Number], count: int) -> NDArray[Number]:
        """Sums over the covered, (c, count + 1): at the beginning and after each of the events.

        values : (c, m) array
        """
        signed = np.concatenate([values, values, -values, -values], axis=1)
        changes = np.take_along_axis(signed, self.order[:, :count], axis=1)
        first = np.sum(values * self.entered, axis=1, keepdims=True, dtype=values.dtype)
        sums: NDArray[Number] = np.concatenate([first, first + np.cumsum(changes, axis=1)], axis=1)
        return sums


def _events(circle: _Circle, rows: Numbers, widened: float) -> _Events:
    """All comings and goings with agent i = rows[·] at its right end."""
    x, y, low, high = circle.pairs(rows, widened)
    size = np.hypot(x, y)
    divisor = np.maximum(size, UNDERFLOW)
    near = np.where(high >= size, 0.0, np.arccos(np.clip(high, -size, size) / divisor))
    far = np.where(low <= -size, math.pi, np.arccos(np.clip(low, -size, size) / divisor))
    possible = (low <= high) & (high >= -size) & (low <= size)
    nearest, farthest = near == 0, far == math.pi
    always = possible & nearest & farthest
    two = possible & ~nearest & ~farthest
    one = possible & ~always  # the first arc of two, or the only one
    middle = np.arctan2(y, x) - circle.begin
    start = np.stack([np.where(nearest, -far, near), -far], axis=1)
    length = np.stack(
        [
            np.where(nearest, 2 * far, np.where(farthest, 2 * (math.pi - near), far - near)),
            far - near,
        ],
        axis=1,
    )
    comes = np.mod(middle[:, None] + start, CIRCLE) + 0.0
    goes = comes + length
    wraps = goes >= CIRCLE
    goes -= np.where(wraps, CIRCLE, 0.0)
    exists = np.stack([one, two], axis=1)
    entered = (wraps & exists).sum(axis=1) + always
    comes[~exists] = NOWHERE
    goes[~exists] = NOWHERE
    # Both ends are closed: the last bit tells coming (0) from going (1), so that of two events at
    # the same place the coming is first. It makes an arc longer by a unit in the last place.
    coming, going = comes.view(np.int64), goes.view(np.int64)
    coming &= -2
    going |= 1
    m = x.shape[1]
    turns = np.concatenate([comes.reshape(-1, 2 * m), goes.reshape(-1, 2 * m)], axis=1)
    order = np.argsort(turns, axis=1)
    return _Events(np.take_along_axis(turns, order, axis=1), order, entered)


# ------------------------------------------------------------------ gain


@dataclass(frozen=True, eq=False)
class BestGain:
    """The best gain of any mechanism, between what a rule attains and what none exceeds.

    recount : the exact outcome of the best rule found; None if no rule gains anything
    at_most : no mechanism gains more, in the user's units
    stop : why the sweep ended; if it ran out of time, ``at_most`` is what holds for every sample
    """

    recount: Recount | None
    at_most: float
    stop: Stop
    seconds: float

    @property
    def gain(self) -> Fraction:
        """The exact gain of the rule found; 0 without one."""
        return Fraction(0) if self.recount is None else self.recount.gain

    def __repr__(self) -> str:
        return f"BestGain({float(self.gain):.9g}, at most {self.at_most:.9g}; {self.stop.value})"


def sweep_gain(sample: Instance | Geometry, budget: Budget | None = None) -> BestGain:
    """The best gain over all mechanisms, where the planner sees one or two dimensions.

    >>> sample = Instance.from_arrays([[0.0], [0.5]], [1.0], visible=[0], cost=1.0)
    >>> best = sweep_gain(sample)
    >>> best.gain, best.at_most
    (Fraction(3, 4), 0.7500000000000...)
    """
    geometry = sample if isinstance(sample, Geometry) else reduce(sample)
    timer = (budget or Budget()).start()
    if geometry.rank > 2:
        raise InputError(
            f"is {geometry.rank}; the sweep finds the best gain where the planner sees one or two"
            " dimensions",
            field="rank",
        )
    if geometry.p_norm == 0:
        return BestGain(None, 0.0, Stop.FINISHED, timer.seconds)
    with timer.listening():
        return _Gain.on(geometry, timer).solve()


@dataclass(frozen=True, eq=False)
class _Arcs:
    """Arcs [left, right] of angles from p on which agent ``row`` sets the threshold: (a,) arrays.

    bound : g is at most this there
    """

    row: Numbers
    left: Floats
    right: Floats
    bound: Floats

    def only(self, which: NDArray[np.bool_] | Numbers | slice) -> _Arcs:
        """Some of them."""
        return _Arcs(self.row[which], self.left[which], self.right[which], self.bound[which])

    def and_also(self, more: _Arcs) -> _Arcs:
        """These and those."""
        return _Arcs(
            np.concatenate([self.row, more.row]),
            np.concatenate([self.left, more.left]),
            np.concatenate([self.right, more.right]),
            np.concatenate([self.bound, more.bound]),
        )


NO_ARCS = _Arcs(np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(0))


@dataclass(frozen=True, eq=False)
class _Waves:
    """g(θ) = cos θ (x cos θ + y sin θ + constant), one per element: arrays of the same shape."""

    x: Floats
    y: Floats
    constant: Floats

    @property
    def curvature(self) -> Floats:
        """A bound of |g''|, hence of |g| as well."""
        return 2 * (np.abs(self.x) + np.abs(self.y)) + np.abs(self.constant)

    def at(self, theta: Floats) -> Floats:
        """g(θ)."""
        cosine = np.cos(theta)
        value: Floats = cosine * (self.x * cosine + self.y * np.sin(theta) + self.constant)
        return value

    def of(self, which: Numbers) -> _Waves:
        """The waves of these elements."""
        return _Waves(self.x[which], self.y[which], self.constant[which])


@dataclass(frozen=True, eq=False)
class _Gain:
    """The gain of a sample of rank 1 or 2: angles are measured from p, lengths in units.

    basis : (2, k) array, p̂ and (for k = 2) a unit vector across
    ceiling : ‖p‖ Σ ω_i ℓ_i in the user's units, rounded up: nobody moves farther than it can
    """

    geometry: Geometry
    timer: Timer
    circle: _Circle
    weight: Floats
    basis: Floats
    ceiling: float

    @classmethod
    def on(cls, geometry: Geometry, timer: Timer) -> _Gain:
        """The sample as seen along p."""
        instance = geometry.instance
        size = geometry.p_norm
        towards = _unit(geometry.p / size)
        across = np.zeros(1) if geometry.rank == 1 else np.array([-towards[1], towards[0]])
        basis = np.stack([towards, across])
        # p̂ is rounded; a turn by the difference makes it right and moves every score by this share.
        tilt = 0.0 if geometry.rank == 1 else _off(geometry)
        mean = float(exact_dot(instance.weights, instance.reach) / exact_sum(instance.weights))
        counts = geometry.instance.weights > 0
        begin, span = -math.pi / 2 - SPARE, math.pi + 2 * SPARE
        return cls(
            geometry=geometry,
            timer=timer,
            circle=_circle(geometry, np.zeros(counts.sum()), basis, tilt, begin, span),
            weight=geometry.weight[counts],
            basis=basis,
            ceiling=mean * geometry.p_norm_bounds[1] * (1 + ROUNDING),
        )

    def solve(self) -> BestGain:
        """Sweep, then halve the arcs that are left, then grade the best directions."""
        best = self.grade(0.0)
        self.tell(best, self.ceiling, 0)
        at_most, peaks = self.settle(*self.sweep(best), 1.0)
        for theta in [*peaks.left, *self.sharpened(peaks)]:
            found = self.grade(theta)
            best = found if found.gain > best.gain else best
        stop = Stop.FINISHED
        if at_most == math.inf:
            stop = Stop.INTERRUPTED if self.timer.interrupted else Stop.TIME
        # Sums of positive terms and a few products: the share covers them.
        high = self.geometry.p_norm_bounds[1]
        upper = min(at_most * self.geometry.unit * high * (1 + 64 * EPSILON), self.ceiling)
        if best.gain > Fraction(upper):
            raise OracleFault(f"gained {float(best.gain)!r}, above its own bound {upper!r}")
        self.tell(best, upper, len(self.weight))
        return BestGain(best if best.gain > 0 else None, upper, stop, self.timer.seconds)

    def tell(self, best: Recount, upper: float, work: int) -> None:
        """Report progress; no rule at all gains 0."""
        self.timer.tell(max(best.gain, Fraction(0)), upper, work)

    def sharpened(self, peaks: _Arcs) -> Floats:
        """The angles of peaks with the same agents at the threshold, and levels as they are.

        Levels moved apart move a peak, which matters where reach is hardly more than that.
        """
        if self.geometry.rank == 1 or self.timer.left == 0:
            return np.zeros(0)
        arcs, floor = self.arcs(np.unique(peaks.row), 0.0)
        return self.settle(arcs.only(arcs.bound > floor), floor, 0.0)[1].left

    def grade(self, theta: float) -> Recount:
        """The best threshold along the direction at this angle, exactly."""
        u = _unit(math.cos(theta) * self.basis[0] + math.sin(theta) * self.basis[1])
        return best_threshold(self.geometry.instance, from_reduced(self.geometry, u, 0.0))

    def sweep(self, known: Recount) -> tuple[_Arcs, float]:
        """The arcs that may hold the best gain, and a value that is no more than its bound.

        Out of time, that value is infinite.
        """
        rows = np.arange(len(self.weight))
        if self.geometry.rank == 1:
            still = np.zeros(len(rows))
            return _Arcs(rows, still, still, self.line()), 0.0
        arcs, floor = NO_ARCS, 0.0
        for chunk in self.circle.chunks(rows, EVENTS_AT_ONCE // 4):
            if self.timer.left == 0:
                return arcs, math.inf
            more, values = self.arcs(chunk, 1.0)
            floor = max(floor, values)
            arcs = arcs.only(arcs.bound > floor).and_also(more.only(more.bound > floor))
            self.tell(known, self.ceiling, int(chunk[-1]) + 1)
        return arcs, floor

    def line(self) -> Floats:
        """For one dimension, where θ = 0: a bound of g with each agent at the threshold, (m,).

        Running sums over all scores and all right ends, who is nearly covered included.
        """
        circle, weight = self.circle, self.weight
        scores = circle.turning[:, 0]
        ends = scores + circle.reach
        off = circle.slack + REACH_ERROR * circle.reach
        starts, latest = scores - off, ends + off
        by_start, by_end = np.argsort(starts), np.argsort(latest)
        begun = np.searchsorted(starts[by_start], latest, side="right")
        ended = np.searchsorted(latest[by_end], ends - off, side="left")

        def between(values: Floats) -> Floats:
            up, down = (np.append(0.0, np.cumsum(values[order])) for order in (by_start, by_end))
            return np.asarray(up[begun] - down[ended])

        steps = (4 * len(weight) + 8) * EPSILON * SAFETY
        doubt = steps * (np.abs(ends) + np.abs(scores).max()) + 4 * (off + weight @ off)
        bound: Floats = ends * between(weight) - between(weight * scores) + doubt
        return bound

    def arcs(self, rows: Numbers, widened: float) -> tuple[_Arcs, float]:
        """All arcs with these agents at the threshold, bounded by running sums; and a value of g.

        Running sums round at every event; ``doubt`` is that, and what moving the levels may add.
        """
        circle, weight = self.circle, self.weight
        events = _events(circle, rows, widened)
        count = int((events.turns <= circle.span).sum(axis=1).max(initial=0))
        ends = np.minimum(events.turns[:, :count], circle.span)
        first = np.zeros((len(rows), 1))
        ends = np.concatenate([first, ends, first + circle.span], axis=1)
        offsets = weight * (circle.turning[rows, :, None] - circle.turning.T)
        mass = events.running(np.tile(weight, (len(rows), 1)), count)
        waves = _Waves(
            events.running(offsets[:, 0], count),
            events.running(offsets[:, 1], count),
            mass * circle.reach[rows, None],
        )
        steps = (4 * len(weight) + 8) * EPSILON * SAFETY
        doubt = 4 * steps * (np.abs(offsets).sum(axis=(1, 2)) + circle.reach[rows])
        doubt += 4 * (circle.slack[rows] + weight @ circle.slack)
        theta = ends + circle.begin
        left, right = theta[:, :-1], theta[:, 1:]
        value = np.maximum(waves.at(left), waves.at(right))
        bound = value + waves.curvature * (right - left) ** 2 / 8 + doubt[:, None]
        inside = left < theta[:, -1:]
        bound[~inside] = -math.inf
        value -= doubt[:, None]
        row = np.broadcast_to(rows[:, None], left.shape)
        found = _Arcs(row.ravel(), left.ravel(), right.ravel(), bound.ravel())
        return found, float(value[inside].max(initial=0.0))

    def settle(self, arcs: _Arcs, floor: float, widened: float) -> tuple[float, _Arcs]:
        """The largest value of g on these arcs, from above, and its highest peaks as short arcs."""
        arcs = arcs.only(np.argsort(-arcs.bound, kind="stable"))
        top, upper = 0.0, floor
        peaks = NO_ARCS
        for chunk in self.circle.chunks(np.arange(len(arcs.row)), PAIRS_AT_ONCE):
            part = arcs.only(chunk)
            if part.bound[0] <= top:
                break
            if self.timer.left == 0:
                upper = math.inf
                break
            part = part.only(part.bound > top)
            found, top = _settled(self.waves(part, widened), part, top)
            upper = max(upper, float(found.bound.max(initial=0.0)))
            peaks = _highest(peaks.and_also(found))
        return upper, peaks

    def waves(self, arcs: _Arcs, widened: float) -> _Waves:
        """The waves of these arcs, (a,), summed afresh, with all rounding in the constant.

        Who is covered is settled in the middle of the arc, with levels twice as far out as in the
        sort, so that nobody is lost whom the sort has; the constant makes up for those who count
        though they are beyond their ends.
        """
        circle, weight = self.circle, self.weight
        theta = (arcs.left + arcs.right)[:, None] / 2
        x, y, low, high = circle.pairs(arcs.row, 2 * widened)
        level = x * np.cos(theta) + y * np.sin(theta)
        covered = np.where((level >= low) & (level <= high), weight, 0.0)
        mass = covered.sum(axis=1)
        reach, slack = circle.reach[arcs.row], circle.slack[arcs.row]
        x *= covered
        y *= covered
        doubt = 4 * (slack * mass + covered @ circle.slack + 2 * REACH_ERROR * reach * mass)
        summed = (np.abs(x) + np.abs(y)).sum(axis=1) + reach * mass
        doubt += (len(weight) + 32) * EPSILON * SAFETY * summed
        return _Waves(x.sum(axis=1), y.sum(axis=1), reach * mass + widened * doubt)


def _settled(waves: _Waves, arcs: _Arcs, top: float) -> tuple[_Arcs, float]:
    """What is left of arcs that are halved until bound and value agree; and the highest value.

    Only arcs that may hold more than ``top``, and more than any value seen, are followed. Of what
    is returned, both ends are the better end.
    """
    row, left, right = arcs.row, arcs.left, arcs.right
    at_left, at_right = waves.at(left), waves.at(right)
    settled = NO_ARCS
    while len(row):
        value = np.maximum(at_left, at_right)
        top = max(top, float(value.max()))
        # The values themselves are rounded.
        error = waves.curvature * ((right - left) ** 2 / 8 + 64 * EPSILON)
        bound = value + error
        keep = bound >= top
        done = keep & ((error <= SETTLED * top) | (right - left <= SHORTEST))
        better = np.where(at_left >= at_right, left, right)
        settled = settled.and_also(_Arcs(row, better, better, bound).only(done))
        split = np.flatnonzero(keep & ~done)
        middle = (left[split] + right[split]) / 2
        at_middle = waves.of(split).at(middle)
        left, right = np.append(left[split], middle), np.append(middle, right[split])
        at_left = np.append(at_left[split], at_middle)
        at_right = np.append(at_middle, at_right[split])
        split = np.append(split, split)
        row, waves = row[split], waves.of(split)
    return settled, top


def _highest(arcs: _Arcs) -> _Arcs:
    """The few highest of these short arcs, one of each peak."""
    chosen: list[int] = []
    for n in np.argsort(-arcs.bound, kind="stable"):
        if all(abs(arcs.left[n] - arcs.left[other]) > SAME_PEAK for other in chosen):
            chosen.append(int(n))
            if len(chosen) == GRADED:
                break
    return arcs.only(np.array(chosen, dtype=np.int64))


# ------------------------------------------------------------------ density at η


@dataclass(frozen=True)
class Sweep:
    """The densest mechanism at η where a circle of directions, or less, is left: k ≤ 3.

    For p = 0 (every direction has η = 0) that is k ≤ 2; at η = ±‖p‖ any k will do.
    """

    def __call__(self, geometry: Geometry, eta: float, budget: Budget) -> Answer:
        """The best density at η, exact but for ties that floats cannot meet."""
        timer = budget.start()
        if infeasible(geometry, eta):
            return answer_infeasible(self, eta, timer)
        size, rank = geometry.p_norm, geometry.rank
        if size == 0:
            towards, turn, angle = np.zeros(rank), np.eye(rank), math.pi / 2
        else:
            towards = _unit(geometry.p / size)
            turn = np.linalg.svd(towards[None, :])[2][1:]
            angle = math.acos(max(-1.0, min(1.0, eta / size)))
        off = _tilt(geometry, eta)
        if size > 0 and (rank == 1 or abs(eta) >= size * (1 - geometry.band / 2)):
            off += min(angle, math.pi - angle)
            return self._among(geometry, eta, [math.copysign(1.0, eta) * towards], off, timer)
        if len(turn) == 1:
            sides = (math.sin(angle) * turn[0], -math.sin(angle) * turn[0])
            directions = [_unit(math.cos(angle) * towards + side) for side in sides]
            return self._among(geometry, eta, directions, off, timer)
        if len(turn) > 2:
            raise InputError(
                f"is sweep, which turns a circle of directions; {rank} dimensions leave more than"
                f" that at η = {eta:.6g}: use milp or cells",
                field="oracle",
            )
        with timer.listening():
            return _Density.on(self, geometry, eta, timer, towards, turn, angle).solve()

    def _among(
        self, geometry: Geometry, eta: float, directions: list[Floats], off: float, timer: Timer
    ) -> Answer:
        """The answer where every direction of the band is within ``off`` of one of these."""
        off += 2 * geometry.rounding.back + 16 * EPSILON
        spread = SAFETY * geometry.radius * (off if geometry.rank > 1 else 0.0)
        best: Recount | None = None
        at_most = Fraction(0)
        for u in directions:
            along = from_reduced(geometry, u, 0.0)
            found = densest_threshold(geometry.instance, along, widen=spread * geometry.unit)
            at_most = max(at_most, found.at_most)
            best = _denser(geometry, eta, best, found.recount)
        density = Fraction(0) if best is None else best.density
        timer.tell(density, at_most, len(directions))
        return grade(
            self,
            geometry,
            eta,
            None if best is None else best.mechanism,
            stop=Stop.FINISHED,
            timer=timer,
            at_most=at_most,
            level="attested",
            work={"directions": len(directions)},
        )


@dataclass(eq=False)
class _Density:
    """One call of `Sweep` on a circle: u = cos θ·p̂ + sin θ·(cos φ, sin φ)H.

    towards, turn : (k,) array p̂ (zeros if p = 0) and (2, k) array H
    mass, unit : (m,) array of whole numbers and the density of one
    best : the densest rule found in the band
    tried : how many directions were graded
    """

    oracle: Sweep
    geometry: Geometry
    eta: float
    timer: Timer
    towards: Floats
    turn: Floats
    angle: float
    circle: _Circle
    mass: Numbers
    unit: Fraction
    best: Recount | None = None
    tried: int = 0

    @classmethod
    def on(
        cls,
        oracle: Sweep,
        geometry: Geometry,
        eta: float,
        timer: Timer,
        towards: Floats,
        turn: Floats,
        angle: float,
    ) -> _Density:
        """The agents that count, as seen from the circle at this angle from p."""
        counts = geometry.instance.weights > 0
        still = math.cos(angle) * (geometry.z[counts] @ towards)
        basis = math.sin(angle) * turn
        circle = _circle(geometry, still, basis, _tilt(geometry, eta), 0.0, CIRCLE)
        mass, unit = _masses(geometry.instance.weights[counts])
        return cls(oracle, geometry, eta, timer, towards, turn, angle, circle, mass, unit)

    @property
    def density(self) -> Fraction:
        """The best density found."""
        return Fraction(0) if self.best is None else self.best.density

    def solve(self) -> Answer:
        """The bound first, then rules that attain it."""
        self.attempt(0.0)
        self.timer.tell(self.density, 1, 0)
        most = self.row_bounds()
        at_most = Fraction(1)
        if most is not None:
            at_most = min(at_most, int(most.max()) * self.unit)
            self.timer.tell(self.density, at_most, len(most))
            self.search(most, at_most)
            self.timer.tell(self.density, at_most, len(most))
        stop = Stop.FINISHED
        if self.timer.left == 0 and (most is None or self.density < at_most):
            stop = Stop.INTERRUPTED if self.timer.interrupted else Stop.TIME
        return grade(
            self.oracle,
            self.geometry,
            self.eta,
            None if self.best is None else self.best.mechanism,
            stop=stop,
            timer=self.timer,
            at_most=at_most,
            level="attested",
            work={"agents": len(self.mass), "directions": self.tried},
        )

    def row_bounds(self) -> Numbers | None:
        """For each agent, what is covered at most when it sets the threshold; None: out of time."""
        most = []
        for rows in self.circle.chunks(np.arange(len(self.mass)), EVENTS_AT_ONCE // 4):
            if self.timer.left == 0:
                return None
            counts, _turns = self.counts(rows, 1.0)
            most.append(counts.max(axis=1))
            self.timer.tell(self.density, 1, int(rows[-1]) + 1)
        return np.concatenate(most)

    def counts(self, rows: Numbers, widened: float) -> tuple[Numbers, Floats]:
        """What is covered from each event to the next, (c, 4m + 1), −1 where nothing happens.

        And the places, (c, 4m + 2), from the beginning of the circle to its end.
        """
        events = _events(self.circle, rows, widened)
        number = events.turns.shape[1]
        counts = events.running(np.tile(self.mass, (len(rows), 1)), number)
        counts[:, 1:][events.turns >= NOWHERE / 2] = -1
        first = np.zeros((len(rows), 1))
        turns = np.minimum(events.turns, CIRCLE)
        return counts, np.concatenate([first, turns, first + CIRCLE], axis=1)

    def search(self, most: Numbers, at_most: Fraction) -> None:
        """Grade directions in the middle of the best arcs, until the bound is attained.

        The arcs are those of the levels as they are. Of the arcs long enough to be clear of
        rounding the best are tried first, then those where ties may add something.
        """
        by_most = np.argsort(-most, kind="stable")
        for rows in self.circle.chunks(by_most, EVENTS_AT_ONCE // 4):
            if int(most[rows[0]]) * self.unit <= self.density or self.timer.left == 0:
                return
            counts, turns = self.counts(rows, 0.0)
            length = np.diff(turns, axis=1)
            middle = turns[:, :-1] + length / 2
            for which in (length >= CLEAR, length < CLEAR):
                count, place = counts[which], middle[which]
                for n in np.lexsort((-length[which], -count))[:TRIED_AT_ONCE]:
                    if int(count[n]) * self.unit <= self.density:
                        break
                    self.attempt(float(place[n]))
                    if self.density >= at_most or self.tried >= TRIED or self.timer.left == 0:
                        return

    def attempt(self, phi: float) -> None:
        """Grade the direction at φ, as it is and rounded to a step that ties like."""
        across = math.cos(phi) * self.turn[0] + math.sin(phi) * self.turn[1]
        u = _unit(math.cos(self.angle) * self.towards + math.sin(self.angle) * across)
        for direction in (u, np.round(u / STEP) * STEP):
            along = from_reduced(self.geometry, direction, 0.0)
            found = densest_threshold(self.geometry.instance, along).recount
            self.best = _denser(self.geometry, self.eta, self.best, found)
        self.tried += 1


def _denser(geometry: Geometry, eta: float, best: Recount | None, found: Recount) -> Recount | None:
    """The denser of two rules, if the second is in the band at all."""
    if best is not None and best.density >= found.density:
        return best
    return found if found.eta_within(eta, geometry.band * geometry.p_norm) else best


# ------------------------------------------------------------------ from the geometry


def _circle(
    geometry: Geometry, still: Floats, basis: Floats, tilt: float, begin: float, span: float
) -> _Circle:
    """The agents that count, turning in the plane of the basis (2, k); directions are off by tilt.

    still : (m,) array, of those that count
    """
    counts = geometry.instance.weights > 0
    z = geometry.z[counts]
    lengths = np.hypot.reduce(np.abs(z), axis=1)
    # Products of k terms, twice, and the angles; on a line there is only a sign.
    turned = ANGLE_ERROR + 8 * (geometry.rank + 4) * EPSILON
    share = tilt + (turned if geometry.rank > 1 else 4 * EPSILON)
    return _Circle(
        still=still,
        turning=z @ basis.T,
        reach=geometry.reach[counts],
        cost=geometry.instance.cost[counts],
        slack=geometry.rounding.z[counts] + SAFETY * share * lengths,
        unit=geometry.unit,
        begin=begin,
        span=span,
    )


def _unit(vector: Floats) -> Floats:
    """The vector, which is neither tiny nor huge, made of length one."""
    return vector / np.linalg.norm(vector)


def _off(geometry: Geometry) -> float:
    """How far p̂ may be from where it is."""
    return min(2.0, 2 * geometry.rounding.p / geometry.p_norm)


def _tilt(geometry: Geometry, eta: float) -> float:
    """How far a unit vector of the band may be from the nearest one at η, that is at acos(η/‖p‖).

    The rounding of η/‖p‖ is lost in what SAFETY adds to the band.
    """
    size = geometry.p_norm
    if size == 0:
        return 0.0
    share = max(-1.0, min(1.0, eta / size))
    angle, band = math.acos(share), geometry.band * SAFETY
    low = angle - math.acos(min(1.0, share + band))
    high = math.acos(max(-1.0, share - band)) - angle
    return max(low, high) + _off(geometry) + 8 * EPSILON


def _masses(weights: Floats) -> tuple[Numbers, Fraction]:
    """Positive weights as whole numbers, and the density of one.

    Exact, unless the weights span more than 64 bits; then they are rounded up.
    """
    if (weights == weights[0]).all():
        return np.ones(len(weights), np.int64), Fraction(1, len(weights))
    integers, _shift = common_integers(weights)
    total = int(integers.sum())
    common = math.gcd(*(int(n) for n in integers))
    if total // common < MOST_MASS:
        return np.array([int(n) // common for n in integers], np.int64), Fraction(common, total)
    whole = [-(-int(n) * MOST_MASS // total) for n in integers]
    return np.array(whole, np.int64), Fraction(1, MOST_MASS)
