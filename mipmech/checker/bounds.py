"""The bounds of leaves, as `docs/proof-format.md` has them: many leaves at a time, in numpy.

A leaf is a box on a facet of the cube (a cell of directions) times an interval [b0, b1] of
thresholds. Three bounds are tried, the cheapest first: every open agent for itself, the blend of
lines, and tilted lines. `leaves` walks the tree and says which leaves, and which agents.

Wherever these sums are computed, they must come out the same to the last bit. BLAS cuts long
products of a matrix and a vector into one piece per thread, so those are left to `einsum`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mipmech.checker.agents import EPSILON, RELATIVE, Agents
from mipmech.checker.content import Look, reject
from mipmech.checker.tree import Box

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]

# The steepest slope of a tilted line, in multiples of the total weight, and rounds of tilting.
STEEPEST, SWEEPS = 64.0, 2
# A rate v·p below this part of ‖p‖ counts as that when slopes are chosen.
SLOWEST = 1024.0
# Products that underflow lose less than this.
VANISHED = 1e-290
# Leaves that are tilted together, and the numbers that may be waiting for that.
TOGETHER, WAITING = 2048, 1 << 20
# Numbers in one array when agents are settled: a few such arrays stay in the cache.
LOT = 1 << 16


@dataclass(frozen=True, eq=False)
class Scene:
    """What is the same for all leaves of a proof.

    dimension : d
    p, p_error : as in `Agents`; p is None for density
    whole : density is counted in whole numbers
    touch : ties nearer than this are broken in one fixed way
    rounding : the relative error of sums over all agents
    mean_length : Σω(‖y‖ + |shift|) over all agents
    enough : a bound is made better only until it is at most this; in the units of the sums
    steps : a round of tilting takes at most this many
    """

    dimension: int
    p: Floats | None
    p_error: float
    whole: bool
    touch: float
    rounding: float
    mean_length: float
    enough: float
    steps: int


def scene(agents: Agents, enough: float) -> Scene:
    """What is common to all leaves; ``enough`` is in the user's units."""
    weights = agents.exact_weights
    if agents.p is None:
        # An exact count is compared exactly.
        ratio = Fraction(enough) / weights.share
        limit = float(math.floor(ratio)) if weights.whole else float(ratio)
    else:
        limit = enough / agents.unit  # a power of two: exact
    mean_length = float(np.einsum("a,a->", agents.weight, agents.length))
    return Scene(
        agents.dimension, agents.p, agents.p_error, weights.whole, agents.touch,
        8 * (len(agents.weight) + 64) * EPSILON, mean_length, limit,
        agents.steps,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Some:
    """Some agents, and the sums of those already known to be in: Σω(b − score) = W b − C − v·S.

    numbers : (a,) array, their places among the agents of the `LeafBounds` that they are for
    y : (d, a) array; shift, slack, reach, weight : (a,) arrays
    sums : (d + 2,) array W, C, S
    """

    numbers: Numbers
    y: Floats
    shift: Floats
    slack: Floats
    reach: Floats
    weight: Floats
    sums: Floats

    def __len__(self) -> int:
        return len(self.weight)

    def without(self, kept: Numbers, sums: Floats) -> Some:
        """Only these agents, and the sums with those surely in."""
        return Some(
            self.numbers[kept], np.ascontiguousarray(self.y[:, kept]), self.shift[kept],
            self.slack[kept], self.reach[kept], self.weight[kept], sums,
        )  # fmt: skip

    @cached_property
    def below(self) -> Floats:
        """What the least score exceeds that of y by."""
        return self.shift - self.slack

    @cached_property
    def above(self) -> Floats:
        """The same for the greatest."""
        return self.shift + self.slack

    @cached_property
    def table(self) -> Floats:
        """What each agent would add to the sums, (a, d + 2) array."""
        return np.column_stack([self.weight, self.weight * self.below, (self.weight * self.y).T])


def all_of(agents: Agents) -> Some:
    """All agents, none of them settled."""
    return Some(
        np.arange(len(agents.weight)), agents.y, agents.shift, agents.slack, agents.reach,
        agents.weight, np.zeros(agents.dimension + 2),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Cells:
    """Some cells: ĉ and g, (n, d) arrays, cos α from below, and thresholds, (n, 1) arrays."""

    unit: Floats
    widths: Floats
    cosine: Floats
    low: Floats
    high: Floats

    def __getitem__(self, rows: Numbers) -> _Cells:
        return _Cells(
            self.unit[rows], self.widths[rows], self.cosine[rows], self.low[rows], self.high[rows]
        )


def _cells(centre: Floats, half: Floats, low: Floats, high: Floats) -> _Cells:
    """ĉ = c/‖c‖, μ = (‖c‖² − Σ h|c|)/‖c‖, g = h/μ, cos α = 1/√(1 + Σ g²)."""
    low, high = low[:, None], high[:, None]
    if centre.shape[1] == 0:
        return _Cells(centre, half, np.ones((len(centre), 1)), low, high)
    square = (centre**2).sum(axis=1, keepdims=True)
    length = np.sqrt(square)
    nearest = (square - (half * np.abs(centre)).sum(axis=1, keepdims=True)) / length
    widths = half / nearest * (1 + 16 * EPSILON)
    cosine = (1 - 16 * EPSILON) / np.sqrt(1 + (widths**2).sum(axis=1, keepdims=True))
    return _Cells(centre / length, widths, cosine, low, high)


def _range(cells: _Cells, vectors: Floats) -> tuple[Floats, Floats]:
    """The least and the greatest v·s over each cell, for one vector s per cell: (n,) arrays."""
    t = (cells.unit * vectors).sum(axis=1)
    e = (cells.widths * np.abs(vectors - t[:, None] * cells.unit)).sum(axis=1)
    cosine = cells.cosine[:, 0]
    low, high = t - e, t + e
    return np.minimum(low, low * cosine), np.maximum(high, high * cosine)


def _sides(
    cells: _Cells, some: Some, part: slice, low: Floats, high: Floats, open_: Flags
) -> tuple[Flags, Flags]:
    """Which of a part of the agents are surely in, and whether an open one has an end in the leaf.

    low, high, open_ : (n, a) arrays, filled as `_Found` has them
    """
    y = some.y[:, part]
    t = cells.unit @ y
    e = np.zeros_like(t)
    term = np.empty_like(t)
    for j in range(len(y)):
        np.multiply(t, cells.unit[:, j : j + 1], out=term)
        np.subtract(y[j], term, out=term)
        np.abs(term, out=term)
        term *= cells.widths[:, j : j + 1]
        e += term
    np.subtract(t, e, out=low)
    np.multiply(low, cells.cosine, out=term)
    np.minimum(low, term, out=low)
    low += some.below[part]
    np.add(t, e, out=high)
    np.multiply(high, cells.cosine, out=term)
    np.maximum(high, term, out=high)
    high += some.above[part]
    np.add(low, some.reach[part], out=e)  # the least end
    ended = e <= cells.high
    sure = (high <= cells.low) & ~ended
    np.add(high, some.reach[part], out=term)  # the greatest end
    np.logical_and(low <= cells.high, term >= cells.low, out=open_)
    open_ &= ~sure
    return sure, np.asarray((open_ & ended).any(axis=1))


@dataclass(frozen=True, eq=False)
class _Found:
    """Scores of agents over cells, (n, a) arrays, and what follows at once.

    open : neither surely in nor surely out
    sums : (n, d + 2) array W, C, S of those surely in
    first : (n,) array, the bound with every open agent for itself; 0 where no end is in the leaf
    doubt : (n,) array, the rounding of sums of that size
    """

    low: Floats
    high: Floats
    open: Flags
    sums: Floats
    first: Floats
    doubt: Floats


class LeafBounds:
    """The bounds of leaves and of nodes above them; ``highest`` is the highest of all that count.

    Bounds are in the units of the sums. ``agents`` are all that may be open somewhere.
    """

    def __init__(self, scene: Scene, agents: Some, look: Look) -> None:
        self.scene = scene
        self.agents = agents
        self.look = look
        self.density = scene.p is None
        self.highest = 0.0
        self._waiting: list[_Tilting] = []
        self._held = 0

    def note(self, bounds: Floats) -> None:
        """These count."""
        highest = float(bounds.max(initial=0.0))
        if not highest < math.inf:
            reject("a leaf's bound is not a finite number")
        self.highest = max(self.highest, highest)

    # ------------------------------------------------------------ agents over cells

    def inner(self, box: Box, some: Some) -> Some | None:
        """What is left to settle below a node; None if all below it is low enough."""
        cells = _cells(*box)
        found = self._settle(cells, some)
        bound = self._finish(found.first, found.doubt, self._rate(cells))
        if bound[0] <= self.scene.enough:
            self.note(bound)
            return None
        return some.without(np.flatnonzero(found.open[0]), found.sums[0])

    def _settle(self, cells: _Cells, some: Some) -> _Found:
        """Which agents are surely in, surely out, or open; and the first bound."""
        n = len(cells.unit)
        low, high = np.empty((n, len(some))), np.empty((n, len(some)))
        open_ = np.empty((n, len(some)), np.bool_)
        ends, alone = np.zeros(n, np.bool_), np.zeros(n)
        sums = np.zeros((n, len(some.sums)))
        step = max(1, LOT // n)
        for start in range(0, len(some), step):
            self.look()
            part = slice(start, start + step)
            sure, ended = _sides(cells, some, part, low[:, part], high[:, part], open_[:, part])
            ends |= ended
            inside, table = sure.astype(np.float64), some.table[part]
            sums += np.einsum("na,aj->nj", inside, table) if n == 1 else inside @ table
            if self.density:
                top = open_[:, part].astype(np.float64)
            else:
                top = cells.high - low[:, part]
                np.minimum(top, some.reach[part], out=top)
                top *= open_[:, part]
            alone += np.einsum("na,a->n", top, some.weight[part])
        sums += some.sums
        if self.density:
            mass = np.where(ends, sums[:, 0] + alone, 0.0)
            return _Found(low, high, open_, sums, mass, np.zeros(n))
        least, _ = _range(cells, sums[:, 2:])
        b1 = cells.high[:, 0]
        first = sums[:, 0] * b1 - sums[:, 1] - least + alone
        size = sums[:, 0] * np.maximum(np.abs(b1), np.abs(cells.low[:, 0])) + alone
        doubt = np.where(ends, self.scene.rounding * (size + self.scene.mean_length), 0.0)
        first = np.where(ends, np.maximum(first, 0.0), 0.0)
        return _Found(low, high, open_, sums, first, doubt)

    def _rate(self, cells: _Cells) -> Floats:
        """The greatest v·p over each cell, or 0; 1 for density."""
        p = self.scene.p
        if p is None:
            return np.ones(len(cells.unit))
        _, high = _range(cells, np.broadcast_to(p, cells.unit.shape))
        return np.maximum(high + self.scene.p_error, 0.0)

    def _finish(self, moved: Floats, doubt: Floats, rate: Floats) -> Floats:
        """From soft density to gain, with every rounding added; an exact count as it is."""
        if self.density and self.scene.whole:
            return moved
        if self.density:
            return moved * (1 + self.scene.rounding)
        # A cell with v·p ≤ 0 has no gain; elsewhere products may have vanished.
        vanished = np.where(rate > 0, VANISHED, 0.0)
        return np.asarray(rate * (moved + doubt) * (1 + RELATIVE) + vanished)

    # ------------------------------------------------------------ leaves

    def leaves(self, boxes: Box, some: Some) -> None:
        """The bounds of leaves with their open agents among these; some may wait for `tilt`."""
        cells = _cells(*boxes)
        found = self._settle(cells, some)
        rate = self._rate(cells)
        bounds = self._finish(found.first, found.doubt, rate)
        left = np.flatnonzero(~(bounds <= self.scene.enough))
        self.note(np.delete(bounds, left) if len(left) else bounds)
        if not len(left):
            return
        if self.density:
            self.note(bounds[left])
            return
        lines = _Tilting(self, cells[left], rate[left], some, found, left)
        rest = np.flatnonzero(~(lines.second <= self.scene.enough))
        self.note(np.delete(lines.second, rest))
        if len(rest):
            lines.keep(rest)
            self._waiting.append(lines)
            self._held += len(lines.far_leaf)
        if self._held > WAITING or sum(len(w.rate) for w in self._waiting) > TOGETHER:
            self.tilt()

    def tilt(self) -> None:
        """The leaves that need it, together."""
        if self._waiting:
            given = _joined(self._waiting)
            # Any slopes will do; the second round is for those that need it.
            for rounds in range(1, SWEEPS + 1):
                bounds = _tilted(self, given, rounds)
                left = np.flatnonzero(~(bounds <= self.scene.enough))
                if rounds == SWEEPS or not len(left):
                    self.note(bounds)
                    break
                self.note(np.delete(bounds, left))
                given.keep(left)
        self._waiting, self._held = [], 0


class _Tilting:
    """Leaves that are still too high after the first bound: open agents as pairs (leaf, agent).

    second : (n,) array, the bound with blended lines (or the first, if that is lower)
    sums, constant : W, C, S of those surely in and of the lines that are not tilted; (n,) array
    far_* : the pairs whose lines may be tilted
    """

    def __init__(
        self,
        bounds: LeafBounds,
        cells: _Cells,
        rate: Floats,
        some: Some,
        found: _Found,
        rows: Numbers,
    ) -> None:
        self.cells, self.rate = cells, rate
        n, d = cells.unit.shape
        leaf, agent = np.nonzero(found.open[rows])
        low, high = found.low[rows[leaf], agent], found.high[rows[leaf], agent]
        b0, b1 = cells.low[leaf, 0], cells.high[leaf, 0]
        weight, reach = some.weight[agent], some.reach[agent]
        least, most = b0 - high, b1 - low
        top, base = np.minimum(most, reach), np.minimum(least, 0.0)
        slope = np.divide(top, top - base, out=np.zeros_like(top), where=top > 0)
        wide = high > low
        inside = np.divide(reach - (b1 - high), high - low, out=np.zeros_like(top), where=wide)
        share = np.where(most > reach, np.clip(inside, 0.0, 1.0), 1.0)
        line = weight * slope
        bounds.look()

        def total(values: Floats) -> Floats:
            return np.asarray(np.bincount(leaf, weights=values, minlength=n), dtype=np.float64)

        def lines(a: Floats, start: Floats) -> Floats:
            """W, C, S of lines a·(d − start)."""
            parts = [a, a * (some.below[agent] + start)]
            parts += [a * some.y[j, agent] for j in range(d)]
            return np.column_stack([total(values) for values in parts])

        sums = found.sums[rows]
        blended = sums + lines(line * share, base)
        bounds.look()
        moved = _moved(cells, blended) + total(weight * (1 - share) * top)
        second = bounds._finish(np.maximum(moved, 0.0), found.doubt[rows], rate)
        first = bounds._finish(found.first[rows], found.doubt[rows], rate)
        self.second = np.minimum(first, second)
        far = (most > reach + bounds.scene.touch) & (top > 0)
        self.sums = sums + lines(np.where(far, 0.0, line), base)
        self.constant = total(np.where(far, weight * reach, 0.0))
        self.doubt = found.doubt[rows]
        self.far_leaf, self.far_agent = leaf[far], some.numbers[agent[far]]
        steep = weight[far] * reach[far] / (most[far] - reach[far])
        self.far_least = np.maximum(-steep, -STEEPEST)
        self.far_most = line[far]
        self.far_start = (line * share)[far]

    def keep(self, rows: Numbers) -> None:
        """Only these leaves."""
        new = np.full(len(self.rate), -1)
        new[rows] = np.arange(len(rows))
        pairs = new[self.far_leaf] >= 0
        self.cells, self.rate, self.second = self.cells[rows], self.rate[rows], self.second[rows]
        self.sums, self.constant = self.sums[rows], self.constant[rows]
        self.doubt = self.doubt[rows]
        self.far_leaf = new[self.far_leaf[pairs]]
        self.far_agent = self.far_agent[pairs]
        self.far_least, self.far_most = self.far_least[pairs], self.far_most[pairs]
        self.far_start = self.far_start[pairs]


def _moved(cells: _Cells, sums: Floats) -> Floats:
    """The greatest W b − C − v·S over each leaf, for W ≥ 0."""
    least, _ = _range(cells, sums[:, 2:])
    return sums[:, 0] * cells.high[:, 0] - sums[:, 1] - least


def _joined(parts: list[_Tilting]) -> _Tilting:
    """Several batches of leaves as one."""
    if len(parts) == 1:
        return parts[0]
    result = object.__new__(_Tilting)
    starts = np.cumsum([0, *(len(part.rate) for part in parts)])
    for name in ("rate", "second", "sums", "constant", "doubt", "far_agent", "far_least",
                 "far_most", "far_start"):  # fmt: skip
        setattr(result, name, np.concatenate([getattr(part, name) for part in parts]))
    result.far_leaf = np.concatenate(
        [part.far_leaf + start for part, start in zip(parts, starts[:-1], strict=True)]
    )
    fields = ("unit", "widths", "cosine", "low", "high")
    result.cells = _Cells(
        *(np.concatenate([getattr(part.cells, name) for part in parts]) for name in fields)
    )
    return result


def _tilted(bounds: LeafBounds, given: _Tilting, rounds: int) -> Floats:
    """The bound with tilted lines, for each leaf.

    The leaves are put in order of how many lines they have, so that all with an i-th line come
    first.
    """
    agents, scene = bounds.agents, bounds.scene
    n = len(given.rate)
    counts = np.bincount(given.far_leaf, minlength=n)
    order = np.argsort(-counts, kind="stable")
    given.keep(order)
    counts = counts[order]
    by_leaf = np.argsort(given.far_leaf, kind="stable")
    starts = np.cumsum(counts) - counts
    cells, p = given.cells, scene.p
    assert p is not None
    unit, widths = cells.unit, cells.widths
    middle = 0.5 * (cells.low + cells.high)[:, 0]
    room = 0.5 * (cells.high - cells.low)[:, 0] * (1 + 4 * EPSILON)
    bound_b = np.maximum(np.abs(cells.low), np.abs(cells.high))[:, 0]

    bounds.look()
    # Per line: (pairs,) arrays in the order leaf by leaf.
    leaf, agent = given.far_leaf[by_leaf], given.far_agent[by_leaf]
    slope = given.far_start[by_leaf].copy()
    least, most = given.far_least[by_leaf], given.far_most[by_leaf]
    y = agents.y[:, agent].T
    t = (unit[leaf] * y).sum(axis=1)
    across = y - t[:, None] * unit[leaf]
    start = agents.shift[agent] - agents.slack[agent] + agents.reach[agent]
    bounds.look()
    # How the residual changes with a slope, and how heavily that counts.
    turns = np.column_stack([np.ones(len(leaf)), -across])
    width = np.column_stack([room, widths])
    heavy = width[leaf] * np.abs(turns)
    pulled = middle[leaf] - t - start
    derivative = pulled - heavy.sum(axis=1)
    table = np.column_stack([np.ones(len(leaf)), start, y])
    bounds.look()
    total = given.sums + _by_leaf(slope[:, None] * table, leaf, n)
    rate = (unit * p).sum(axis=1)

    value = given.constant + total[:, 0] * middle - total[:, 1] - (unit * total[:, 2:]).sum(axis=1)
    scale = np.maximum(value, 0.0) / np.maximum(rate, float(np.sqrt(p @ p)) / SLOWEST)
    pull = scale[:, None] * p - total[:, 2:]
    residual = np.column_stack([total[:, 0], pull - (unit * pull).sum(axis=1)[:, None] * unit])
    most_lines = int(counts.max(initial=0))
    size = max(1, -(-most_lines // scene.steps))  # lines of each leaf that one step sets
    for _ in range(rounds):
        for first in range(0, most_lines, size):
            bounds.look()
            # The leaves with more lines than that, and the next lines of each.
            rows = slice(0, int(np.searchsorted(-counts, -first)))
            row: slice | Numbers = rows  # the leaf of each line
            if size == 1:
                here = starts[rows] + first
            else:
                lengths = np.minimum(counts[rows] - first, size)
                offsets = np.cumsum(lengths) - lengths
                row = np.repeat(np.arange(len(lengths)), lengths)
                here = (starts[rows] + first - offsets)[row] + np.arange(int(lengths.sum()))
            new = _best_slope(
                slope[here], residual[row], turns[here], heavy[here], derivative[here], scene.touch
            )
            new = np.minimum(most[here], np.maximum(least[here], new))
            change = np.where(least[here] < most[here], new - slope[here], 0.0)
            turned = change[:, None] * turns[here]
            if size > 1:  # each for itself is right, all together may be too much
                turned = np.add.reduceat(turned, offsets)
                sides = width[rows] * np.abs(turned)
                at_first = np.add.reduceat(change * pulled[here], offsets) - sides.sum(axis=1)
                share = _best_slope(
                    np.zeros(len(sides)), residual[rows], turned, sides, at_first, 0.0
                )
                share = np.clip(share, 0.0, 1.0)
                change *= share[row]
                turned *= share[:, None]
            slope[here] += change
            residual[rows] += turned
    bounds.look()
    # The slopes are what they are; everything else is computed from them afresh.
    slope = np.minimum(most, np.maximum(least, slope))
    total = given.sums + _by_leaf(slope[:, None] * table, leaf, n)
    # Lines were drawn with the least score, hence the greatest distance, that rounding allows; for
    # a falling line the least distance counts.
    falling = np.maximum(-slope, 0.0) * 2 * agents.slack[agent]
    constant = given.constant + _by_leaf(falling[:, None], leaf, n)[:, 0]
    # Gain = (v·p)(K + W b − C − v·S), around the centre of the leaf.
    value = constant + total[:, 0] * middle - total[:, 1] - (unit * total[:, 2:]).sum(axis=1)
    spread = np.abs(total[:, 0]) * room
    low, high = _range(cells, total[:, 2:])
    centre = (unit * total[:, 2:]).sum(axis=1)
    over, under = spread + centre - low, -spread + centre - high
    pull = value[:, None] * p - rate[:, None] * total[:, 2:]
    _, top = _range(cells, pull)
    linear = np.abs(rate) * spread + top - (unit * pull).sum(axis=1)
    low, high = _range(cells, np.broadcast_to(p, unit.shape))
    low, high = low - rate, high - rate
    product = np.max([low * under, low * over, high * under, high * over], axis=0)
    bound = rate * value + linear + product
    # Rounding: sums of terms of these sizes, times what v·p can be.
    sizes = np.abs(slope) * (bound_b[leaf] + np.abs(t) + np.abs(start))
    size = _by_leaf(sizes[:, None], leaf, n)[:, 0] + given.constant + np.abs(value) + np.abs(over)
    fastest = np.abs(rate) + np.maximum(np.abs(low), np.abs(high))
    doubt = 4 * (given.doubt + scene.rounding * size) * fastest
    bound = bound + doubt + scene.p_error * np.maximum(value + over, 0.0)
    bound = np.maximum(bound, 0.0) * (1 + RELATIVE) + VANISHED
    return np.asarray(np.minimum(bound, given.second))


def _by_leaf(values: Floats, leaf: Numbers, n: int) -> Floats:
    """Sums of the pairs' values for each leaf; (pairs, c) to (n, c)."""
    columns = [np.bincount(leaf, weights=column, minlength=n) for column in values.T]
    return np.column_stack(columns)


def _best_slope(
    slope: Floats, residual: Floats, turns: Floats, heavy: Floats, derivative: Floats, touch: float
) -> Floats:
    """The slope that makes a·(d − ℓ) + Σ width·|residual| least, without limits: (n,) array.

    The sum is convex and piecewise linear; its breakpoints are where a residual vanishes, and its
    derivative, at first the one given, rises by twice the weight at each.
    """
    counts = heavy > 0
    points = np.full(heavy.shape, -np.inf)
    np.divide(residual, turns, out=points, where=counts)
    np.subtract(slope[:, None], points, out=points)
    order = np.argsort(points, axis=1, kind="stable")
    order += heavy.shape[1] * np.arange(len(slope))[:, None]  # places in all of them
    points = points.take(order)
    risen = derivative[:, None] + 2 * np.cumsum(heavy.take(order), axis=1)
    reached = risen >= -touch
    rows, first = np.arange(len(slope)), reached.argmax(axis=1)
    return np.asarray(np.where(reached[rows, first], points[rows, first], np.inf))
