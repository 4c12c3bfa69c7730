"""No rule in any leaf does better than claimed: the bounds of `docs/proof-format.md`, recomputed.

A leaf is a box on a facet of the cube (a cell of directions) times an interval [b0, b1] of
thresholds. Three bounds are tried, the cheapest first: every open agent for itself, the blend of
lines, and tilted lines. To save work, agents that are surely in or surely out all over some
node are settled there once for all the leaves below it, and a whole subtree is passed over if the
first bound of its root is low enough.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mipmech.check.agents import EPSILON, RELATIVE, Agents
from mipmech.check.content import reject
from mipmech.check.exact import up
from mipmech.check.tree import Tree

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]

# The steepest slope of a tilted line, in multiples of everybody's weight, and rounds of tilting.
STEEPEST, SWEEPS = 64.0, 2
# A rate v·p below this part of ‖p‖ counts as that when slopes are chosen.
SLOWEST = 1024.0
# Products that underflow lose less than this.
VANISHED = 1e-290
# Numbers in one array: a few such arrays stay in the cache.
LOT = 1 << 16
# Leaves that are tilted together, and the numbers that may be waiting for that.
TOGETHER, WAITING = 2048, 1 << 20


def highest_bound(agents: Agents, tree: Tree, enough: float, watch: Callable[[str], None]) -> float:
    """The highest bound of a leaf, in the user's units, rounded up.

    A bound is made better only until it is ``enough``.
    """
    return _Leaves(agents, tree, enough, watch).run()


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


@dataclass(frozen=True, eq=False)
class _Part:
    """Some agents, and the sums of those already known to be in: Σω(b − score) = W b − C − v·S.

    sums : (d + 2,) array W, C, S
    table : (a, d + 2) array, what each agent would add to the sums
    """

    numbers: Numbers
    y: Floats
    below: Floats  # shift − slack
    above: Floats  # shift + slack
    reach: Floats
    weight: Floats
    table: Floats
    sums: Floats

    def without(self, kept: Numbers, sums: Floats) -> _Part:
        """Only these agents, and the sums with those surely in."""
        return _Part(
            self.numbers[kept], np.ascontiguousarray(self.y[:, kept]), self.below[kept],
            self.above[kept], self.reach[kept], self.weight[kept], self.table[kept], sums,
        )  # fmt: skip


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


class _Leaves:
    """The check of all leaves."""

    def __init__(
        self, agents: Agents, tree: Tree, enough: float, watch: Callable[[str], None]
    ) -> None:
        self.agents = agents
        self.tree = tree
        self.watch = watch
        self.density = agents.p is None
        m = len(agents.weight)
        self.rounding = 8 * (m + 64) * EPSILON
        self.mean_length = float(agents.weight @ agents.length)
        # In the units of the sums; an exact count is compared exactly.
        if self.density:
            share = agents.exact_weights.share
            ratio = Fraction(enough) / share
            self.enough = float(math.floor(ratio)) if agents.exact_weights.whole else float(ratio)
        else:
            self.enough = enough / agents.unit
        self.highest = 0.0
        self.waiting: list[_Tilting] = []
        self.held = 0
        self.done = 0
        self.told = time.monotonic()

    def run(self) -> float:
        agents, tree = self.agents, self.tree
        self.watch(f"0 of {tree.leaves:,} leaves")
        self.centre, self.half, self.low, self.high = tree.boxes(agents.low, agents.high)
        table = np.column_stack(
            [agents.weight, agents.weight * (agents.shift - agents.slack),
             (agents.weight * agents.y).T]
        )  # fmt: skip
        everybody = _Part(
            np.arange(len(agents.weight)), agents.y, agents.shift - agents.slack,
            agents.shift + agents.slack, agents.reach, agents.weight, table,
            np.zeros(agents.dimension + 2),
        )  # fmt: skip
        first = 0
        roots = []
        for place, count in enumerate(tree.counts[0]):
            roots.append((0, place, first, everybody))
            first += int(count)
        pending = roots[::-1]
        while pending:
            depth, place, first, part = pending.pop()
            count = int(tree.counts[depth][place])
            if count == 1 or count * len(part.numbers) <= LOT:
                self._leaves(first, count, part)
                continue
            inner = self._inner(first, count, part)
            if inner is None:
                self.done += count
                continue
            child = tree.first_child(depth, place)
            second = first + int(tree.counts[depth + 1][child])
            pending.append((depth + 1, child + 1, second, inner))
            pending.append((depth + 1, child, first, inner))
        self._tilt()
        return self._in_user_units()

    def _in_user_units(self) -> float:
        if not self.density:
            return self.highest * self.agents.unit  # a power of two: exact
        share = self.agents.exact_weights.share
        return up(min(Fraction(1), Fraction(self.highest) * share))

    def _note(self, bounds: Floats) -> None:
        highest = float(bounds.max(initial=0.0))
        if not highest < math.inf:
            reject("a leaf's bound is no finite number")
        self.highest = max(self.highest, highest)

    # ------------------------------------------------------------ agents over cells

    def _inner(self, first: int, count: int, part: _Part) -> _Part | None:
        """What is left to settle below a node; None if all below it is low enough."""
        centre, half, low, high = self.tree.hull(
            self.centre, self.half, self.low, self.high, first, count
        )
        cells = _cells(centre, half, low, high)
        found = self._settle(cells, part)
        bound = self._finish(found.first, found.doubt, self._rate(cells))
        if bound[0] <= self.enough:
            self._note(bound)
            return None
        return part.without(np.flatnonzero(found.open[0]), found.sums[0])

    def _settle(self, cells: _Cells, part: _Part) -> _Found:
        """Who is surely in, who is surely out, who is open; and the first bound."""
        t = cells.unit @ part.y
        e = np.zeros_like(t)
        term = np.empty_like(t)
        for j in range(len(part.y)):
            np.multiply(t, cells.unit[:, j : j + 1], out=term)
            np.subtract(part.y[j], term, out=term)
            np.abs(term, out=term)
            term *= cells.widths[:, j : j + 1]
            e += term
        low = t - e
        np.multiply(low, cells.cosine, out=term)
        np.minimum(low, term, out=low)
        low += part.below
        high = t
        high += e
        np.multiply(high, cells.cosine, out=term)
        np.maximum(high, term, out=high)
        high += part.above
        np.add(low, part.reach, out=e)  # the least end
        ended = e <= cells.high
        sure = (high <= cells.low) & ~ended
        np.add(high, part.reach, out=term)  # the greatest end
        open_ = (low <= cells.high) & (term >= cells.low) & ~sure
        ends = (open_ & ended).any(axis=1)
        sums = sure.astype(np.float64) @ part.table + part.sums
        if self.density:
            mass = sums[:, 0] + open_ @ part.weight
            return _Found(low, high, open_, sums, np.where(ends, mass, 0.0), np.zeros(len(mass)))
        np.subtract(cells.high, low, out=e)
        np.minimum(e, part.reach, out=e)
        e *= open_
        alone = e @ part.weight
        least, _ = _range(cells, sums[:, 2:])
        b1 = cells.high[:, 0]
        first = sums[:, 0] * b1 - sums[:, 1] - least + alone
        size = sums[:, 0] * np.maximum(np.abs(b1), np.abs(cells.low[:, 0])) + alone
        doubt = np.where(ends, self.rounding * (size + self.mean_length), 0.0)
        first = np.where(ends, np.maximum(first, 0.0), 0.0)
        return _Found(low, high, open_, sums, first, doubt)

    def _rate(self, cells: _Cells) -> Floats:
        """The greatest v·p over each cell, or 0; 1 for density."""
        agents = self.agents
        if agents.p is None:
            return np.ones(len(cells.unit))
        _, high = _range(cells, np.broadcast_to(agents.p, cells.unit.shape))
        return np.maximum(high + agents.p_error, 0.0)

    def _finish(self, moved: Floats, doubt: Floats, rate: Floats) -> Floats:
        """From soft density to gain, with every rounding added; an exact count as it is."""
        if self.density and self.agents.exact_weights.whole:
            return moved
        if self.density:
            return moved * (1 + self.rounding)
        # A cell with v·p ≤ 0 has no gain; elsewhere products may have vanished.
        vanished = np.where(rate > 0, VANISHED, 0.0)
        return np.asarray(rate * (moved + doubt) * (1 + RELATIVE) + vanished)

    # ------------------------------------------------------------ leaves

    def _leaves(self, first: int, count: int, part: _Part) -> None:
        """The bounds of leaves that have their open agents among these."""
        rows = slice(first, first + count)
        cells = _cells(self.centre[rows], self.half[rows], self.low[rows], self.high[rows])
        found = self._settle(cells, part)
        rate = self._rate(cells)
        bounds = self._finish(found.first, found.doubt, rate)
        self.done += count
        if time.monotonic() - self.told > 0.5:
            self.told = time.monotonic()
            self.watch(f"{self.done:,} of {self.tree.leaves:,} leaves")
        left = np.flatnonzero(~(bounds <= self.enough))
        self._note(np.delete(bounds, left) if len(left) else bounds)
        if not len(left):
            return
        if self.density:
            self._note(bounds[left])
            return
        some = _Tilting(self, cells[left], rate[left], part, found, left)
        rest = np.flatnonzero(~(some.second <= self.enough))
        self._note(np.delete(some.second, rest))
        if len(rest):
            some.keep(rest)
            self.waiting.append(some)
            self.held += len(some.far_leaf)
        if self.held > WAITING or sum(len(w.rate) for w in self.waiting) > TOGETHER:
            self._tilt()

    def _tilt(self) -> None:
        """The leaves that need it, together."""
        if self.waiting:
            given = _joined(self.waiting)
            # Any slopes will do; the second round is for those that need it.
            for rounds in range(1, SWEEPS + 1):
                bounds = _tilted(self, given, rounds)
                left = np.flatnonzero(~(bounds <= self.enough))
                if rounds == SWEEPS or not len(left):
                    self._note(bounds)
                    break
                self._note(np.delete(bounds, left))
                given.keep(left)
        self.waiting, self.held = [], 0


class _Tilting:
    """Leaves that are still too high after the first bound: open agents as pairs (leaf, agent).

    second : (n,) array, the bound with blended lines (or the first, if that is lower)
    sums, constant : W, C, S of those surely in and of the lines that are not tilted; (n,) array
    far_* : the pairs whose lines may be tilted
    """

    def __init__(
        self,
        leaves: _Leaves,
        cells: _Cells,
        rate: Floats,
        part: _Part,
        found: _Found,
        rows: Numbers,
    ) -> None:
        self.cells, self.rate = cells, rate
        n, d = cells.unit.shape
        leaf, agent = np.nonzero(found.open[rows])
        low, high = found.low[rows[leaf], agent], found.high[rows[leaf], agent]
        b0, b1 = cells.low[leaf, 0], cells.high[leaf, 0]
        weight, reach = part.weight[agent], part.reach[agent]
        least, most = b0 - high, b1 - low
        top, base = np.minimum(most, reach), np.minimum(least, 0.0)
        slope = np.divide(top, top - base, out=np.zeros_like(top), where=top > 0)
        wide = high > low
        inside = np.divide(reach - (b1 - high), high - low, out=np.zeros_like(top), where=wide)
        share = np.where(most > reach, np.clip(inside, 0.0, 1.0), 1.0)
        line = weight * slope

        def total(values: Floats) -> Floats:
            return np.asarray(np.bincount(leaf, weights=values, minlength=n), dtype=np.float64)

        def lines(a: Floats, start: Floats) -> Floats:
            """W, C, S of lines a·(d − start)."""
            parts = [a, a * (part.below[agent] + start)]
            parts += [a * part.y[j, agent] for j in range(d)]
            return np.column_stack([total(values) for values in parts])

        sums = found.sums[rows]
        blended = sums + lines(line * share, base)
        moved = _moved(cells, blended) + total(weight * (1 - share) * top)
        second = leaves._finish(np.maximum(moved, 0.0), found.doubt[rows], rate)
        first = leaves._finish(found.first[rows], found.doubt[rows], rate)
        self.second = np.minimum(first, second)
        far = (most > reach + leaves.agents.touch) & (top > 0)
        self.sums = sums + lines(np.where(far, 0.0, line), base)
        self.constant = total(np.where(far, weight * reach, 0.0))
        self.doubt = found.doubt[rows]
        self.far_leaf, self.far_agent = leaf[far], part.numbers[agent[far]]
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
    """Several lots of leaves as one."""
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


def _tilted(leaves: _Leaves, given: _Tilting, rounds: int) -> Floats:
    """The bound with tilted lines, for each leaf.

    The leaves are put in order of how many lines they have, so that all with an i-th line come
    first.
    """
    agents = leaves.agents
    n = len(given.rate)
    counts = np.bincount(given.far_leaf, minlength=n)
    order = np.argsort(-counts, kind="stable")
    given.keep(order)
    counts = counts[order]
    by_leaf = np.argsort(given.far_leaf, kind="stable")
    starts = np.cumsum(counts) - counts
    cells, p = given.cells, agents.p
    assert p is not None
    unit, widths = cells.unit, cells.widths
    middle = 0.5 * (cells.low + cells.high)[:, 0]
    room = 0.5 * (cells.high - cells.low)[:, 0] * (1 + 4 * EPSILON)
    bound_b = np.maximum(np.abs(cells.low), np.abs(cells.high))[:, 0]

    # Per line: (pairs,) arrays in the order leaf by leaf.
    leaf, agent = given.far_leaf[by_leaf], given.far_agent[by_leaf]
    slope = given.far_start[by_leaf].copy()
    least, most = given.far_least[by_leaf], given.far_most[by_leaf]
    y = agents.y[:, agent].T
    t = (unit[leaf] * y).sum(axis=1)
    across = y - t[:, None] * unit[leaf]
    start = agents.shift[agent] - agents.slack[agent] + agents.reach[agent]
    heavy = np.column_stack([room[leaf], widths[leaf] * np.abs(across)])
    derivative = middle[leaf] - t - start - heavy.sum(axis=1)
    table = np.column_stack([np.ones(len(leaf)), start, y])
    total = given.sums + _by_leaf(slope[:, None] * table, leaf, n)
    rate = unit @ p

    value = given.constant + total[:, 0] * middle - total[:, 1] - (unit * total[:, 2:]).sum(axis=1)
    scale = np.maximum(value, 0.0) / np.maximum(rate, float(np.sqrt(p @ p)) / SLOWEST)
    pull = scale[:, None] * p - total[:, 2:]
    residual = np.column_stack([total[:, 0], pull - (unit * pull).sum(axis=1)[:, None] * unit])
    for _ in range(rounds):
        for i in range(int(counts.max(initial=0))):
            rows = slice(0, int(np.searchsorted(-counts, -i)))  # leaves with more than i lines
            here = starts[rows] + i
            new = _best_slope(
                slope[here], residual[rows], across[here], heavy[here], derivative[here],
                agents.touch,
            )  # fmt: skip
            new = np.minimum(most[here], np.maximum(least[here], new))
            change = np.where(least[here] < most[here], new - slope[here], 0.0)
            slope[here] += change
            residual[rows, 0] += change
            residual[rows, 1:] -= change[:, None] * across[here]
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
    doubt = 4 * (given.doubt + leaves.rounding * size) * fastest
    bound = bound + doubt + agents.p_error * np.maximum(value + over, 0.0)
    bound = np.maximum(bound, 0.0) * (1 + RELATIVE) + VANISHED
    return np.asarray(np.minimum(bound, given.second))


def _by_leaf(values: Floats, leaf: Numbers, n: int) -> Floats:
    """Sums of the pairs' values for each leaf; (pairs, c) to (n, c)."""
    columns = [np.bincount(leaf, weights=column, minlength=n) for column in values.T]
    return np.column_stack(columns)


def _best_slope(
    slope: Floats, residual: Floats, across: Floats, heavy: Floats, derivative: Floats, touch: float
) -> Floats:
    """The slope that makes a·(d − ℓ) + Σ width·|residual| least, without limits: (n,) array.

    The sum is convex and piecewise linear; its breakpoints are where a residual vanishes, and its
    derivative rises by twice the weight at each.
    """
    n = len(slope)
    points = np.full(heavy.shape, np.inf)
    points[:, 0] = slope - residual[:, 0]
    np.divide(residual[:, 1:], across, out=points[:, 1:], where=heavy[:, 1:] > 0)
    points[:, 1:] += slope[:, None]
    points[heavy == 0] = np.inf
    order = np.argsort(points, axis=1, kind="stable")
    points = np.take_along_axis(points, order, axis=1)
    risen = derivative[:, None] + 2 * np.cumsum(np.take_along_axis(heavy, order, axis=1), axis=1)
    reached = risen >= -touch
    place = reached.argmax(axis=1)
    found = points[np.arange(n), place]
    return np.asarray(np.where(reached.any(axis=1), found, np.inf))
