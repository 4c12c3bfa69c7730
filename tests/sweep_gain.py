"""The best gain where the planner sees one or two dimensions: a second opinion, by a sweep.

Arcs of directions on which the same agents are covered come from `circle`. With θ measured from p
and A = Σ ω_j (z_i − z_j), c = ℓ_i Σ ω_j over the covered, the gain for k = 2 is ‖p‖ g(θ) on an arc,
with

    g(θ) = cos θ (A·(cos θ, sin θ) + c),      |g''| ≤ 2‖A‖ + c,

so that g ≤ max(g(left), g(right)) + (2‖A‖ + c)(right − left)²/8 on it. Arcs which may beat the best
value so far are halved until this bound and the values at their ends agree: that finds the interior
stationary points, the zeros of ‖A‖ sin(2θ − α) + c sin θ, and proves that none was missed. For
k = 1 only θ = 0 gains, and one sort of all scores and right ends does.

Rounding moves the levels apart, which costs no more than the moved levels themselves: the best soft
density is Lipschitz.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mipmech.budget import Budget, Stop, Timer
from mipmech.errors import InputError
from mipmech.model.geometry import Geometry, reduce
from mipmech.model.grading import Recount
from mipmech.model.instance import Instance
from mipmech.model.mechanism import from_reduced
from mipmech.model.thresholds import best_threshold
from mipmech.oracles.base import OracleFault
from mipmech.oracles.sweep.circle import (
    EVENTS_AT_ONCE,
    REACH_ERROR,
    Circle,
    circle_of,
    events_of,
    off_of_p,
    unit_vector,
)
from mipmech.rationals import exact_dot, exact_sum
from mipmech.tolerances import EPSILON, ROUNDING, SAFETY

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

# The half circle around p is swept with this much to spare at both ends.
SPARE = 1e-15
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


@dataclass(frozen=True, eq=False)
class BestGain:
    """The best gain of any mechanism, between what a rule attains and what none exceeds.

    recount : the exact outcome of the best rule found; None if no rule gains anything
    upper : no mechanism gains more, in the user's units
    stop : why the sweep ended; if it ran out of time, ``upper`` is what holds for every sample
    """

    recount: Recount | None
    upper: float
    stop: Stop
    seconds: float

    @property
    def gain(self) -> Fraction:
        """The exact gain of the rule found; 0 without one."""
        return Fraction(0) if self.recount is None else self.recount.gain

    def __repr__(self) -> str:
        return f"BestGain({float(self.gain):.9g}, at most {self.upper:.9g}; {self.stop.value})"


def sweep_gain(sample: Instance | Geometry, budget: Budget | None = None) -> BestGain:
    """The best gain over all mechanisms, where the planner sees one or two dimensions.

    >>> sample = Instance.from_arrays([[0.0], [0.5]], [1.0], visible=[0], cost=1.0)
    >>> best = sweep_gain(sample)
    >>> best.gain, best.upper
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
    circle: Circle
    weight: Floats
    basis: Floats
    ceiling: float

    @classmethod
    def on(cls, geometry: Geometry, timer: Timer) -> _Gain:
        """The sample as seen along p."""
        instance = geometry.instance
        size = geometry.p_norm
        towards = unit_vector(geometry.p / size)
        across = np.zeros(1) if geometry.rank == 1 else np.array([-towards[1], towards[0]])
        basis = np.stack([towards, across])
        # p̂ is rounded; a turn by the difference makes it right and moves every score by this share.
        tilt = 0.0 if geometry.rank == 1 else off_of_p(geometry)
        mean = float(exact_dot(instance.weights, instance.reach) / exact_sum(instance.weights))
        counts = geometry.instance.weights > 0
        begin, span = -math.pi / 2 - SPARE, math.pi + 2 * SPARE
        return cls(
            geometry=geometry,
            timer=timer,
            circle=circle_of(geometry, np.zeros(counts.sum()), basis, tilt, begin, span),
            weight=geometry.weight[counts],
            basis=basis,
            ceiling=mean * geometry.p_norm_bounds[1] * (1 + ROUNDING),
        )

    def solve(self) -> BestGain:
        """Sweep, then halve the arcs that are left, then grade the best directions."""
        best = self.grade(0.0)
        self.tell(best, self.ceiling, 0)
        upper, peaks = self.settle(*self.sweep(best), 1.0)
        for theta in [*peaks.left, *self.sharpened(peaks)]:
            found = self.grade(theta)
            best = found if found.gain > best.gain else best
        stop = Stop.FINISHED
        if upper == math.inf:
            stop = Stop.INTERRUPTED if self.timer.interrupted else Stop.TIME
        # Sums of positive terms and a few products: the share covers them.
        high = self.geometry.p_norm_bounds[1]
        upper = min(upper * self.geometry.unit * high * (1 + 64 * EPSILON), self.ceiling)
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
        u = unit_vector(math.cos(theta) * self.basis[0] + math.sin(theta) * self.basis[1])
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
        events = events_of(circle, rows, widened)
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
