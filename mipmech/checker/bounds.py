"""The bounds of leaves, as `docs/proof-format.md` has them: many leaves at a time, in numpy.

A leaf is a box on a facet of the cube (a cell of directions) times an interval [b0, b1] of
thresholds. The norm of the costs says which point of a ray has length 1 (`_cells`). Three bounds
are tried, the cheapest first: every open agent for itself, the blend of lines, and tilted lines.
`leaves` walks the tree and says which leaves, and which agents.

Wherever these sums are computed, they must come out the same to the last bit. BLAS cuts long
products of a matrix and a vector into one piece per thread, so those are left to `einsum`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mipmech.checker.agents import EPSILON, RELATIVE, Agents, sizes_of
from mipmech.checker.content import Look, reject
from mipmech.checker.exact import down
from mipmech.checker.together import ALIKE, ALWAYS, NEVER, NONE, Chains, Limits, together
from mipmech.checker.tree import Box

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]

# The steepest slope of a tilted line, in multiples of the total weight, and rounds of tilting.
STEEPEST, SWEEPS = 64.0, 2
# A rate v·p below this part of ‖p‖ counts as that when slopes are chosen.
SLOWEST = 1024.0
# What underflows, and is multiplied by a threshold or a reach afterwards, loses less than this: see
# docs/proof-format.md, section 6.
VANISHED = 2.0**-650
# Leaves that are tilted together, and the lines that may be waiting for that.
TOGETHER, WAITING = 2048, 1 << 20
# Numbers in one array when agents are settled: a few such arrays stay in the cache.
BATCH = 1 << 16


@dataclass(frozen=True, eq=False)
class Context:
    """What is the same for all leaves of a proof.

    dimension : d
    norm : of the costs
    p, p_error : as in `Agents`; p is None for density
    whole : density is counted in whole numbers
    touch : ties nearer than this are broken in one fixed way
    rounding : the relative error of sums over all agents
    mean_length : Σω(size of y + |shift|) over all agents
    enough : a bound is improved only until it is at most this; in the units of the sums
    steps : a round of tilting takes at most this many
    limits : on the mass accepted
    rows, row_room, strict, exact : as in `Agents`
    nothing : the bound of a leaf without any rule of interest: −1 if rules must meet requirements
    """

    dimension: int
    norm: str
    p: Floats | None
    p_error: float
    whole: bool
    touch: float
    rounding: float
    mean_length: float
    enough: float
    steps: int
    limits: Limits
    rows: Floats
    row_room: Floats
    strict: bool
    exact: bool
    nothing: float

    @property
    def classes(self) -> int:
        """How many there are of which it matters how many are accepted."""
        return len(self.limits.totals)


def context_of(agents: Agents, enough: float) -> Context:
    """What is common to all leaves; ``enough`` is in the user's units, or −1: no rule at all."""
    weights = agents.exact_weights
    if enough < 0:
        limit = enough
    elif agents.p is None:
        # An exact count is compared exactly.
        ratio = Fraction(enough) / weights.share
        limit = float(math.floor(ratio)) if weights.whole else down(ratio)
    else:
        limit = down(Fraction(enough) / agents.gain_unit)
    mean_length = float(np.einsum("a,a->", agents.weight, agents.length))
    return Context(
        agents.dimension, agents.norm, agents.p, agents.p_error, weights.whole, agents.touch,
        8 * (len(agents.weight) + 64 + agents.wide) * EPSILON, mean_length, limit,
        agents.steps, agents.limits, agents.rows, agents.row_room, agents.strict, agents.exact,
        -1.0 if len(agents.limits.totals) or len(agents.rows) else 0.0,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class AgentSet:
    """Agents, and the sums of those already known to be in: Σω(b − score) = W b − C − v·S.

    numbers : (a,) array, their places among the agents of the `LeafBounds` that they are for
    y : (d, a) array; shift, slack, reach, weight : (a,) arrays
    mass : (c, a) array
    sums : (d + 2 + c,) array W, C, S, and the masses of those known to be accepted
    """

    numbers: Numbers
    y: Floats
    shift: Floats
    slack: Floats
    reach: Floats
    weight: Floats
    mass: Floats
    sums: Floats

    def __len__(self) -> int:
        return len(self.weight)

    def kept(self, kept: Numbers, sums: Floats) -> AgentSet:
        """These agents alone, and the sums with those surely in."""
        if len(kept) == len(self):
            return replace(self, sums=sums)
        return AgentSet(
            self.numbers[kept], np.ascontiguousarray(self.y[:, kept]), self.shift[kept],
            self.slack[kept], self.reach[kept], self.weight[kept],
            np.ascontiguousarray(self.mass[:, kept]), sums,
        )  # fmt: skip

    @cached_property
    def below(self) -> Floats:
        """By how much the least score exceeds that of y."""
        return self.shift - self.slack

    @cached_property
    def above(self) -> Floats:
        """The same for the greatest."""
        return self.shift + self.slack

    @cached_property
    def table(self) -> Floats:
        """What each agent that is in adds to W, C and S, (a, d + 2) array."""
        return np.column_stack([self.weight, self.weight * self.below, (self.weight * self.y).T])


def all_of(agents: Agents) -> AgentSet:
    """All agents, none of them settled."""
    return AgentSet(
        np.arange(len(agents.weight)), agents.y, agents.shift, agents.slack, agents.reach,
        agents.weight, agents.mass, np.zeros(agents.dimension + 2 + len(agents.mass)),
    )  # fmt: skip


class _Cells(NamedTuple):
    """Cells: a, g and h/μ, (n, d) arrays, κ from below, and thresholds, (n, 1) arrays.

    rim : (n, d) array, which x_j may be 0; side: 1 or −1 if x_j never has the other sign, else 0
    """

    unit: Floats
    dual: Floats
    widths: Floats
    rim: Flags
    side: Floats
    cosine: Floats
    low: Floats
    high: Floats


class _Leaves(NamedTuple):
    """What is known of leaves, (n,) arrays; sums is an (n, d + 2) array.

    rate : the greatest v·p
    second : the bound with blended lines (or the first, if that is lower)
    sums, constant : W, C, S of those surely in and of the lines that are not tilted; the rest
    doubt : the rounding of such sums
    passed : (n, c) array, the masses of those surely accepted
    brought : what those bring at most who may be accepted or not
    """

    rate: Floats
    second: Floats
    sums: Floats
    constant: Floats
    doubt: Floats
    passed: Floats
    brought: Floats


class _Lines(NamedTuple):
    """Lines that may be tilted, (pairs,) arrays: their leaf and agent, slopes and a first slope.

    Rows of the cone have numbers behind those of the agents. Of agents that may be accepted or not
    (``unsure``), the least and the greatest distance follow.
    """

    leaf: Numbers
    agent: Numbers
    least: Floats
    most: Floats
    start: Floats
    unsure: Flags
    nearest: Floats
    farthest: Floats


Arrays = TypeVar("Arrays", _Cells, _Leaves, _Lines)


def _at(arrays: Arrays, rows: Numbers | Flags) -> Arrays:
    """These rows of all arrays."""
    chosen: list[Any] = [values[rows] for values in arrays]
    return type(arrays)(*chosen)


def _joined(parts: list[Arrays]) -> Arrays:
    """The arrays of several parts, one after another."""
    whole: list[Any] = [np.concatenate(values) for values in zip(*parts, strict=True)]
    return type(parts[0])(*whole)


def _cells(norm: str, centre: Floats, half: Floats, low: Floats, high: Floats) -> _Cells:
    """For l2 a = g = c/‖c‖, μ = (‖c‖² − Σ h|c|)/‖c‖ and κ = 1/√(1 + Σ (h/μ)²), the cosine.

    For l1 a = c, g the facet's own axis, μ = κ = 1. For linf g has the signs of c, 0 where a sign
    is open (c_j = 0); a = c/Σ|c|, μ = Σ(|c_j| − h_j) over known signs, κ = μ/(μ + Σ h_j) over open
    ones.
    """
    low, high = low[:, None], high[:, None]
    rim = np.abs(centre) <= half
    side = (centre >= half).astype(np.float64) - (centre <= -half)
    if centre.shape[1] == 0:
        return _Cells(centre, centre, half, rim, side, np.ones((len(centre), 1)), low, high)
    if norm == "l1":
        own = np.where(half == 0, centre, 0.0)
        return _Cells(centre, own, half, rim, side, np.ones((len(centre), 1)), low, high)
    if norm == "linf":
        known = centre != 0
        size = np.abs(centre)
        nearest = np.where(known, size - half, 0.0).sum(axis=1, keepdims=True)
        loose = np.where(known, 0.0, half).sum(axis=1, keepdims=True)
        widths = half / nearest * (1 + 16 * EPSILON)
        ratio = (1 - 16 * EPSILON) * nearest / (nearest + loose)
        ratio = np.where(loose > 0, ratio, 1.0)
        unit = centre / size.sum(axis=1, keepdims=True)
        return _Cells(unit, np.sign(centre), widths, rim, side, ratio, low, high)
    square = (centre**2).sum(axis=1, keepdims=True)
    length = np.sqrt(square)
    nearest = (square - (half * np.abs(centre)).sum(axis=1, keepdims=True)) / length
    widths = half / nearest * (1 + 16 * EPSILON)
    cosine = (1 - 16 * EPSILON) / np.sqrt(1 + (widths**2).sum(axis=1, keepdims=True))
    unit = centre / length
    return _Cells(unit, unit, widths, rim, side, cosine, low, high)


def _range(cells: _Cells, vectors: Floats) -> tuple[Floats, Floats]:
    """The least and the greatest v·s over each cell, for one vector s per cell: (n,) arrays."""
    t = (cells.unit * vectors).sum(axis=1)
    e = (cells.widths * np.abs(vectors - t[:, None] * cells.dual)).sum(axis=1)
    cosine = cells.cosine[:, 0]
    low, high = t - e, t + e
    return np.minimum(low, low * cosine), np.maximum(high, high * cosine)


def _sides(
    cells: _Cells, some: AgentSet, part: slice, low: Floats, high: Floats, open_: Flags
) -> tuple[Flags, Flags, Flags, Flags]:
    """Which of a part of the agents are surely in, and the leaves with an end of an open one.

    low, high, open_ : (n, a) arrays, filled as `_Found` has them

    Which are surely accepted, and of which that is not known, follow.
    """
    y = some.y[:, part]
    t = cells.unit @ y
    e = np.zeros_like(t)
    term = np.empty_like(t)
    for j in range(len(y)):
        np.multiply(t, cells.dual[:, j : j + 1], out=term)
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
    ended, accepted = e <= cells.high, e >= cells.high
    sure = (high <= cells.low) & ~ended
    np.add(high, some.reach[part], out=term)  # the greatest end
    np.logical_and(low <= cells.high, term >= cells.low, out=open_)
    open_ &= ~sure
    unsure = ~accepted & (term >= cells.low)
    return sure, np.asarray((open_ & ended).any(axis=1)), accepted, unsure


@dataclass(frozen=True, eq=False)
class _Found:
    """Scores of agents over cells, (n, a) arrays, and what follows at once.

    open : neither surely in nor surely out
    sums : (n, d + 2) array W, C, S of those surely in
    first : (n,) array, the bound with every open agent for itself; 0 where no end is in the leaf
    ends : (n,) array, whether an end may be in the leaf, and anything that is allowed
    doubt : (n,) array, the rounding of sums of that size
    unsure : (n, a) array, who may be accepted or not; no columns if that does not matter
    passed : (n, c) array, the masses of those surely accepted
    brought : (n,) array, what the unsure ones bring at most
    """

    low: Floats
    high: Floats
    open: Flags
    sums: Floats
    first: Floats
    ends: Flags
    doubt: Floats
    unsure: Flags
    passed: Floats
    brought: Floats


class _Lined(NamedTuple):
    """Lines a·(ones·b − start − v·y): y is (d, l), mass (c, l), and all others are (l,) arrays."""

    y: Floats
    ones: Floats
    slack: Floats
    start: Floats
    weight: Floats
    reach: Floats
    mass: Floats


class LeafBounds:
    """The bounds of leaves and of nodes above them; ``highest`` is the highest of all that count.

    Bounds are in the units of the sums. ``agents`` are all that may be open somewhere.
    """

    def __init__(self, context: Context, agents: AgentSet, look: Look) -> None:
        self.context = context
        self.agents = agents
        self.look = look
        self.density = context.p is None
        self.highest = context.nothing
        self._waiting: list[_Tilting] = []

    @cached_property
    def lined(self) -> _Lined:
        """Whatever lines there may be: one for each agent, then one for each row of the cone."""
        agents, rows = self.agents, self.context.rows
        number = len(rows)
        none = np.zeros(number)
        return _Lined(
            np.hstack([agents.y, -rows.T]), np.concatenate([np.ones(len(agents)), none]),
            np.concatenate([agents.slack, none]),
            np.concatenate([agents.below + agents.reach, -self.context.row_room]),
            np.concatenate([agents.weight, none]), np.concatenate([agents.reach, none]),
            np.hstack([agents.mass, np.zeros((len(agents.mass), number))]),
        )  # fmt: skip

    def note(self, bounds: Floats) -> None:
        """Record these bounds."""
        highest = float(bounds.max(initial=self.context.nothing))
        if not highest < math.inf:
            reject("a leaf's bound is not a finite number")
        self.highest = max(self.highest, highest)

    # ------------------------------------------------------------ agents over cells

    def inner(self, box: Box, some: AgentSet) -> AgentSet | None:
        """What is left to settle below a node; None if all below it is low enough."""
        cells = _cells(self.context.norm, *box)
        if len(self.context.rows) and self._outside(box)[0]:
            return None
        found = self._settle(cells, some)
        bound = self._finish(found.first, found.ends, found.doubt, self._rate(cells))
        if bound[0] <= self.context.enough:
            self.note(bound)
            return None
        return some.kept(np.flatnonzero(found.open[0]), found.sums[0])

    def _settle(self, cells: _Cells, some: AgentSet) -> _Found:
        """Which agents are surely in, surely out, or open; and the first bound."""
        n = len(cells.unit)
        low, high = np.empty((n, len(some))), np.empty((n, len(some)))
        open_ = np.empty((n, len(some)), np.bool_)
        ends, alone = np.zeros(n, np.bool_), np.zeros(n)
        d, classes = self.context.dimension, self.context.classes
        sums, passed = np.zeros((n, d + 2)), np.zeros((n, classes))
        dropped = np.zeros((n, classes))  # of the passed, those that are settled here
        unsure = np.zeros((n, len(some) if classes else 0), np.bool_)
        step = max(1, BATCH // n)
        for start in range(0, len(some), step):
            self.look()
            part = slice(start, start + step)
            sure, ended, accepted, doubtful = _sides(
                cells, some, part, low[:, part], high[:, part], open_[:, part]
            )
            ends |= ended
            counted = open_[:, part]
            if classes:
                unsure[:, part] = doubtful
                counted = counted & ~doubtful
                mass = some.mass[:, part].T
                passed += accepted.astype(np.float64) @ mass
                dropped += (accepted & ~open_[:, part]).astype(np.float64) @ mass
            inside, table = sure.astype(np.float64), some.table[part]
            sums += np.einsum("na,aj->nj", inside, table) if n == 1 else inside @ table
            if self.density:
                top = counted.astype(np.float64)
            else:
                top = cells.high - low[:, part]
                np.minimum(top, some.reach[part], out=top)
                top *= counted
            alone += np.einsum("na,a->n", top, some.weight[part])
        sums += some.sums[: d + 2]
        passed += some.sums[d + 2 :]
        brought = np.zeros(n)
        if classes:
            brought = self._brought(cells, some, unsure, passed)
            ends &= brought > NONE
            brought = np.maximum(brought, 0.0)
            alone += brought
            sums = np.column_stack([sums, some.sums[d + 2 :] + dropped])
        nothing = self.context.nothing
        if self.density:
            mass = np.where(ends, sums[:, 0] + alone, nothing)
            return _Found(low, high, open_, sums, mass, ends, np.zeros(n), unsure, passed, brought)
        least, _ = _range(cells, sums[:, 2 : d + 2])
        b1 = cells.high[:, 0]
        first = sums[:, 0] * b1 - sums[:, 1] - least + alone
        size = sums[:, 0] * np.maximum(np.abs(b1), np.abs(cells.low[:, 0])) + alone
        doubt = np.where(ends, self.context.rounding * (size + self.context.mean_length), 0.0)
        first = np.where(ends, np.maximum(first, 0.0), 0.0)
        return _Found(low, high, open_, sums, first, ends, doubt, unsure, passed, brought)

    def _brought(self, cells: _Cells, some: AgentSet, unsure: Flags, passed: Floats) -> Floats:
        """What unsure agents bring at most, each of them at the end of its reach."""
        leaf, agent = np.nonzero(unsure)
        worth = some.weight if self.density else some.weight * some.reach
        limits, chains = self.context.limits, self.chains(cells, leaf, some.numbers[agent])
        return together(limits, passed, leaf, worth[agent], some.mass[:, agent].T, chains)[0]

    def chains(self, cells: _Cells, leaf: Numbers, agent: Numbers) -> Chains:
        """Where the ends of unsure agents are in one order all over a leaf.

        leaf, agent : (pairs,) arrays, by ascending leaf
        """
        agents = self.agents
        y = agents.y[:, agent].T
        ends = (cells.unit[leaf] * y).sum(axis=1) + agents.shift[agent] + agents.reach[agent]
        order = np.lexsort((-ends, leaf))
        first, second = order[:-1], order[1:]
        same = leaf[first] == leaf[second]
        first, second = first[same], second[same]
        where = leaf[first]
        apart = y[first] - y[second]
        reach, slack = agents.reach[agent], agents.slack[agent]
        ahead = (apart * cells.side[where] >= 0) & ((cells.side[where] != 0) | (apart == 0))
        surely = ahead.all(axis=1) & (reach[first] >= reach[second]) & self.context.exact
        t = (cells.unit[where] * apart).sum(axis=1)
        e = (cells.widths[where] * np.abs(apart - t[:, None] * cells.dual[where])).sum(axis=1)
        least = np.minimum(t - e, (t - e) * cells.cosine[where, 0])
        least += (agents.shift[agent] + reach)[first] - (agents.shift[agent] + reach)[second]
        surely |= least >= 2 * (slack[first] + slack[second])
        loose = np.bincount(where[~surely], minlength=len(cells.unit))
        return Chains(order, loose == 0)

    def _outside(self, box: Box) -> Flags:
        """Which boxes have no direction that is allowed, up to the rounding of the rows.

        A box that only touches the directions allowed may be left out if some of these meet every
        row with room to spare: another box has what it shares with them.
        """
        centre, half = box[0], box[1]
        rows, room = self.context.rows, self.context.row_room
        most = centre @ rows.T + half @ np.abs(rows).T
        touching = (most <= 0) & (room == 0) & self.context.strict
        return np.asarray(((most < -room) | touching).any(axis=1))

    def _rate(self, cells: _Cells) -> Floats:
        """The greatest rate over each cell, or 0; 1 for density."""
        p = self.context.p
        if p is None:
            return np.ones(len(cells.unit))
        if self.context.norm != "l2":
            # Constant but for the signs that are open.
            most = cells.dual * p
            if self.context.norm == "linf":
                most = np.where(cells.dual == 0, np.abs(p), most)
                if len(self.context.rows):
                    # Cells beside rules with weights of 0 may be left out: these count here, too.
                    most = np.where(cells.rim, np.maximum(most, 0.0), most)
            high = most.sum(axis=1)
            return np.asarray(np.maximum(high + self.context.p_error, 0.0))
        _, high = _range(cells, np.broadcast_to(p, cells.unit.shape))
        return np.maximum(high + self.context.p_error, 0.0)

    def _finish(self, moved: Floats, ends: Flags, doubt: Floats, rate: Floats) -> Floats:
        """From soft density to gain, with every rounding added; an exact count as it is."""
        if self.density and self.context.whole:
            return moved
        if self.density:
            return np.where(ends, moved * (1 + self.context.rounding), self.context.nothing)
        # No gain where v·p ≤ 0, or without an end; elsewhere products may have vanished.
        vanished = np.where((rate > 0) & ends, VANISHED, 0.0)
        bound = np.asarray(rate * (moved + doubt) * (1 + RELATIVE) + vanished)
        return np.where(ends, bound, self.context.nothing)

    # ------------------------------------------------------------ leaves

    def leaves(self, boxes: Box, some: AgentSet) -> None:
        """The bounds of leaves with their open agents among these; some may wait for `tilt`."""
        if len(self.context.rows):
            kept = np.flatnonzero(~self._outside(boxes))
            boxes = boxes[0][kept], boxes[1][kept], boxes[2][kept], boxes[3][kept]
            if not len(kept):
                return
        cells = _cells(self.context.norm, *boxes)
        found = self._settle(cells, some)
        rate = self._rate(cells)
        bounds = self._finish(found.first, found.ends, found.doubt, rate)
        left = np.flatnonzero(~(bounds <= self.context.enough))
        if self.density or not len(left):
            self.note(bounds)
            return
        self.note(np.delete(bounds, left))
        straddling = self._straddling(boxes, left)
        given = _to_tilt(self, _at(cells, left), rate[left], some, found, left, straddling)
        second = given.leaves.second
        rest = np.flatnonzero(~(second <= self.context.enough))
        self.note(np.delete(second, rest))
        if len(rest):
            self._waiting.append(given.kept(rest))
        held = sum(len(part.lines.leaf) for part in self._waiting)
        if held > WAITING or sum(len(part.leaves.rate) for part in self._waiting) > TOGETHER:
            self.tilt()

    def _straddling(self, boxes: Box, left: Numbers) -> Flags:
        """Which rows cut which of these boxes, (n, r) array."""
        rows = self.context.rows
        least = boxes[0][left] @ rows.T - boxes[1][left] @ np.abs(rows).T
        return np.asarray(least < self.context.row_room)

    def tilt(self) -> None:
        """Tilt the lines of all leaves that wait for it."""
        if self._waiting:
            given = _together(self._waiting)
            # Any slopes will do; the second round is for those that need it.
            for rounds in range(1, SWEEPS + 1):
                bounds = _tilted(self, given, rounds)
                left = np.flatnonzero(~(bounds <= self.context.enough))
                if rounds == SWEEPS or not len(left):
                    self.note(bounds)
                    break
                self.note(np.delete(bounds, left))
                given = given.kept(left)
        self._waiting = []


@dataclass(frozen=True, eq=False)
class _Tilting:
    """Leaves that are still too high after the first bounds, and the lines of their open agents."""

    cells: _Cells
    leaves: _Leaves
    lines: _Lines

    def kept(self, rows: Numbers) -> _Tilting:
        """Restrict to these leaves, in this order."""
        places = np.full(len(self.leaves.rate), -1)
        places[rows] = np.arange(len(rows))
        leaf = places[self.lines.leaf]
        lines = _at(self.lines._replace(leaf=leaf), leaf >= 0)
        return _Tilting(_at(self.cells, rows), _at(self.leaves, rows), lines)


def _together(parts: list[_Tilting]) -> _Tilting:
    """All leaves, those with more lines first, and their lines, leaf by leaf.

    So the leaves that have an i-th line come first, whatever i.
    """
    starts = np.cumsum([0, *(len(part.leaves.rate) for part in parts)])
    lines = [
        part.lines._replace(leaf=part.lines.leaf + start)
        for part, start in zip(parts, starts[:-1], strict=True)
    ]
    cells, leaves = _joined([p.cells for p in parts]), _joined([p.leaves for p in parts])
    given = _Tilting(cells, leaves, _joined(lines))
    counts = np.bincount(given.lines.leaf, minlength=len(given.leaves.rate))
    given = given.kept(np.argsort(-counts, kind="stable"))
    return replace(given, lines=_at(given.lines, np.argsort(given.lines.leaf, kind="stable")))


def _to_tilt(
    bounds: LeafBounds, cells: _Cells, rate: Floats, some: AgentSet, found: _Found, rows: Numbers,
    straddling: Flags,
) -> _Tilting:  # fmt: skip
    """The bound with blended lines for these rows of what was found, and the lines to tilt."""
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
    # With limits, what unsure agents bring at the end of their reach is counted together.
    unsure = np.zeros(len(leaf), np.bool_)
    if bounds.context.classes:
        unsure = found.unsure[rows[leaf], agent]
    alone, pivot = ~unsure, np.where(unsure, reach, base)
    bounds.look()

    def total(values: Floats) -> Floats:
        return np.asarray(np.bincount(leaf, weights=values, minlength=n), dtype=np.float64)

    def sums_of(a: Floats, start: Floats) -> Floats:
        """W, C, S of lines a·(d − start)."""
        parts = [a, a * (some.below[agent] + start)]
        parts += [a * some.y[j, agent] for j in range(d)]
        return np.column_stack([total(values) for values in parts])

    sums, doubt, brought = found.sums[rows, : d + 2], found.doubt[rows], found.brought[rows]
    blended = sums + sums_of(line * share, pivot)
    bounds.look()
    moved = _moved(cells, blended) + total(weight * (1 - share) * top * alone) + brought
    ends = found.ends[rows]
    second = bounds._finish(np.maximum(moved, 0.0), ends, doubt, rate)
    second = np.minimum(second, bounds._finish(found.first[rows], ends, doubt, rate))
    far = (most > reach + bounds.context.touch) & (top > 0)
    fixed = np.where(far | unsure, 0.0, line)
    sums = sums + sums_of(fixed, base)
    constant = total(np.where(far & alone, weight * reach, 0.0))
    steep = np.where(far, weight * reach / np.where(far, most - reach, 1.0), 0.0)
    least_slope = np.where(far, np.maximum(-steep, -STEEPEST), line)
    most_slope, start = line.copy(), np.where(far, line * share, line)
    passed = found.passed[rows]
    if unsure.any():
        chains = bounds.chains(cells, leaf[unsure], some.numbers[agent[unsure]])
        open_to = _open_to(bounds.context.limits, passed, leaf[unsure], (weight * reach)[unsure],
                           some.mass[:, agent[unsure]].T, chains)  # fmt: skip
        for slopes, given in zip((least_slope, most_slope), open_to, strict=True):
            slopes[unsure] = np.where(far[unsure] & ~np.isnan(given), given, slopes[unsure])
    kept = far | unsure
    lines = _Lines(
        leaf[kept], some.numbers[agent[kept]], least_slope[kept], most_slope[kept], start[kept],
        unsure[kept], least[kept], most[kept],
    )  # fmt: skip
    if len(bounds.context.rows):
        lines = _joined([lines, _row_lines(straddling, len(bounds.agents))])
    leaves = _Leaves(rate, second, sums, constant, doubt, passed, brought)
    return _Tilting(cells, leaves, lines)


def _open_to(
    limits: Limits, passed: Floats, leaf: Numbers, values: Floats, mass: Floats, chains: Chains
) -> tuple[Floats, Floats]:
    """The least and the greatest slope for lines of unsure agents; nan where nothing is special.

    Who is accepted in any case must not be beyond its reach: its line may fall as steeply as any.
    Who is not accepted in any case is beyond it: the line may rise. Where some must be left out,
    nobody is worth more than what takes the place, and no line falls.
    """
    brought, fate = together(limits, passed, leaf, values, mass, chains)
    counted = np.bincount(leaf, weights=np.where(fate == NEVER, 0.0, values), minlength=len(passed))
    crowded = (brought < counted * (1 - ALIKE))[leaf]
    least = np.where(crowded | (fate == NEVER), 0.0, np.nan)
    least = np.where(fate == ALWAYS, -STEEPEST, least)
    return least, np.where(fate == NEVER, STEEPEST, np.nan)


def _row_lines(straddling: Flags, agents: int) -> _Lines:
    """Where a·v ≥ 0 is demanded, any multiple of it may be added: a line for each row and leaf."""
    leaf, row = np.nonzero(straddling)
    zero = np.zeros(len(leaf))
    return _Lines(
        leaf, agents + row, zero, np.full(len(leaf), STEEPEST), zero, np.zeros(len(leaf), np.bool_),
        zero, zero,
    )  # fmt: skip


def _moved(cells: _Cells, sums: Floats) -> Floats:
    """The greatest W b − C − v·S over each leaf, for W ≥ 0."""
    least, _ = _range(cells, sums[:, 2:])
    return sums[:, 0] * cells.high[:, 0] - sums[:, 1] - least


def _tilted(bounds: LeafBounds, given: _Tilting, rounds: int) -> Floats:
    """The bound with tilted lines, for each leaf."""
    bounds.look()
    slopes = _Slopes(bounds, given)
    for _ in range(rounds):
        slopes.improve()
    bounds.look()
    return np.minimum(slopes.bound(), given.leaves.second)


class _Slopes:
    """The slopes of lines, which are tilted to make the bound of each leaf small.

    slope : (pairs,) array, in the order of the lines
    residual : (n, d + 1) array, what varies over each leaf, with b and across each side
    """

    def __init__(self, bounds: LeafBounds, given: _Tilting) -> None:
        context, look = bounds.context, bounds.look
        assert context.p is not None
        self.context, self.look = context, look
        self.cells, self.leaves, self.lines = given.cells, given.leaves, given.lines
        self.p = p = context.p
        unit, dual, widths, _, _, _, b0, b1 = given.cells
        leaf, agent = given.lines.leaf, given.lines.agent
        self.middle = 0.5 * (b0 + b1)[:, 0]
        self.room = 0.5 * (b1 - b0)[:, 0] * (1 + 4 * EPSILON)
        self.rate = (unit * p).sum(axis=1)
        self.slope = given.lines.start.copy()
        lined = bounds.lined
        y, ones = lined.y[:, agent].T, lined.ones[agent]
        self.slack, self.start = lined.slack[agent], lined.start[agent]
        self.weight, self.reach = lined.weight[agent], lined.reach[agent]
        self.mass = lined.mass[:, agent[given.lines.unsure]].T
        self.chains = bounds.chains(
            given.cells, leaf[given.lines.unsure], agent[given.lines.unsure]
        )
        self.length = sizes_of(y, context.norm)
        self.t = (unit[leaf] * y).sum(axis=1)
        across = y - self.t[:, None] * dual[leaf]
        look()
        # How the residual changes with a slope, and how heavily that counts.
        self.turns = np.column_stack([ones, -across])
        self.width = np.column_stack([self.room, widths])
        self.heavy = self.width[leaf] * np.abs(self.turns)
        self.pulled = ones * self.middle[leaf] - self.t - self.start
        self.derivative = self.pulled - self.heavy.sum(axis=1)
        self.table = np.column_stack([ones, self.start, y])
        look()
        total, value = self._sums(given.leaves.constant + given.leaves.brought)
        pull = -total[:, 2:]
        if context.norm == "l2":  # else the rate is the same throughout
            slowest = float(np.sqrt(p @ p)) / SLOWEST
            scale = np.maximum(value, 0.0) / np.maximum(self.rate, slowest)
            pull = scale[:, None] * p - total[:, 2:]
        pull -= (unit * pull).sum(axis=1)[:, None] * dual
        self.residual = np.column_stack([total[:, 0], pull])

    def _by_leaf(self, values: Floats) -> Floats:
        """Sums of the lines' values for each leaf: (pairs, c) to (n, c)."""
        leaf, n = self.lines.leaf, len(self.rate)
        columns = [np.bincount(leaf, weights=column, minlength=n) for column in values.T]
        return np.column_stack(columns)

    def _sums(self, constant: Floats) -> tuple[Floats, Floats]:
        """W, C, S of all lines, and the constant + W b − C − v·S at the centre of each leaf."""
        total = self.leaves.sums + self._by_leaf(self.slope[:, None] * self.table)
        value = constant + total[:, 0] * self.middle - total[:, 1]
        return total, value - (self.cells.unit * total[:, 2:]).sum(axis=1)

    def improve(self) -> None:
        """A round: each slope is set in turn to the best value, or several at a time."""
        counts = np.bincount(self.lines.leaf, minlength=len(self.rate))
        starts = np.cumsum(counts) - counts
        most_lines = int(counts.max(initial=0))
        size = max(1, -(-most_lines // self.context.steps))  # lines of each leaf in one step
        for first in range(0, most_lines, size):
            self.look()
            # The leaves with more lines than that, and the next lines of each.
            leaves = int(np.searchsorted(-counts, -first))
            if size == 1:
                self._set_one(leaves, starts[:leaves] + first)
            else:
                lengths = np.minimum(counts[:leaves] - first, size)
                self._set_several(leaves, starts[:leaves] + first, lengths)

    def _change(self, leaf: Numbers | slice, here: Numbers) -> Floats:
        """How the slopes of these lines should change, each for itself."""
        new = _best_slope(
            self.slope[here], self.residual[leaf], self.turns[here], self.heavy[here],
            self.derivative[here], self.context.touch,
        )  # fmt: skip
        least, most = self.lines.least[here], self.lines.most[here]
        new = np.minimum(most, np.maximum(least, new))
        return np.where(least < most, new - self.slope[here], 0.0)

    def _set_one(self, leaves: int, here: Numbers) -> None:
        change = self._change(slice(0, leaves), here)
        self.slope[here] += change
        self.residual[:leaves] += change[:, None] * self.turns[here]

    def _set_several(self, leaves: int, begin: Numbers, lengths: Numbers) -> None:
        offsets = np.cumsum(lengths) - lengths
        leaf = np.repeat(np.arange(leaves), lengths)
        here = (begin - offsets)[leaf] + np.arange(int(lengths.sum()))
        change = self._change(leaf, here)
        # Each change for itself is right; all together may be too much.
        turned = np.add.reduceat(change[:, None] * self.turns[here], offsets)
        sides = self.width[:leaves] * np.abs(turned)
        at_first = np.add.reduceat(change * self.pulled[here], offsets) - sides.sum(axis=1)
        share = _best_slope(np.zeros(leaves), self.residual[:leaves], turned, sides, at_first, 0.0)
        share = np.clip(share, 0.0, 1.0)
        self.slope[here] += change * share[leaf]
        self.residual[:leaves] += turned * share[:, None]

    def bound(self) -> Floats:
        """The bound with these slopes; everything else is computed from them afresh."""
        cells, leaves, p, rate = self.cells, self.leaves, self.p, self.rate
        unit = cells.unit
        self.slope = np.minimum(self.lines.most, np.maximum(self.lines.least, self.slope))
        # Lines were drawn with the least score, hence the greatest distance, that rounding allows;
        # for a falling line the least distance counts.
        falling = np.maximum(-self.slope, 0.0) * 2 * self.slack
        constant = leaves.constant + self._by_leaf(falling[:, None])[:, 0] + self._brought()
        # Gain = (v·p)(K + W b − C − v·S), around the centre of the leaf.
        total, value = self._sums(constant)
        spread = np.abs(total[:, 0]) * self.room
        low, high = _range(cells, total[:, 2:])
        centre = (unit * total[:, 2:]).sum(axis=1)
        over, under = spread + centre - low, -spread + centre - high
        if self.context.norm != "l2":
            doubt = self._doubt(value, over, np.ones(len(value)))
            moved = np.maximum(value + over + doubt, 0.0)
            return np.asarray(leaves.rate * moved * (1 + RELATIVE) + VANISHED)
        pull = value[:, None] * p - rate[:, None] * total[:, 2:]
        _, top = _range(cells, pull)
        linear = np.abs(rate) * spread + top - (unit * pull).sum(axis=1)
        low, high = _range(cells, np.broadcast_to(p, unit.shape))
        low, high = low - rate, high - rate
        product = np.max([low * under, low * over, high * under, high * over], axis=0)
        fastest = np.abs(rate) + np.maximum(np.abs(low), np.abs(high))
        bound = rate * value + linear + product + self._doubt(value, over, fastest)
        bound += self.context.p_error * np.maximum(value + over, 0.0)
        return np.asarray(np.maximum(bound, 0.0) * (1 + RELATIVE) + VANISHED)

    def _brought(self) -> Floats:
        """What unsure agents have above their lines at most, whoever of them is accepted."""
        lines, unsure = self.lines, self.lines.unsure
        if not unsure.any():
            return np.zeros(len(self.rate))
        weight, reach, slope = self.weight[unsure], self.reach[unsure], self.slope[unsure]
        nearest, farthest = lines.nearest[unsure], lines.farthest[unsure]
        accepted = np.maximum(nearest, 0.0) * weight + slope * (reach - nearest)
        accepted = np.maximum(accepted, weight * reach)
        rejected = np.maximum(-slope * (farthest - reach), 0.0)
        leaf = lines.leaf[unsure]
        brought, _ = together(
            self.context.limits, self.leaves.passed, leaf, accepted - rejected, self.mass,
            self.chains,
        )  # fmt: skip
        others = np.bincount(leaf, weights=rejected, minlength=len(self.rate))
        return np.asarray(brought + others)

    def _doubt(self, value: Floats, over: Floats, fastest: Floats) -> Floats:
        """The rounding of the sums, times the greatest rate: (n,) arrays."""
        cells, leaves = self.cells, self.leaves
        bound_b = np.maximum(np.abs(cells.low), np.abs(cells.high))[self.lines.leaf, 0]
        steep = np.abs(self.slope)
        sizes = np.column_stack([
            steep * (bound_b + np.abs(self.t) + np.abs(self.start)), steep * self.length,
            np.ones(len(steep)),
        ])  # fmt: skip
        size, lengths, count = self._by_leaf(sizes).T
        size = size + leaves.constant + leaves.brought + np.abs(value) + np.abs(over)
        doubt = 4 * (leaves.doubt + self.context.rounding * size) * fastest
        # S is summed coordinate by coordinate, and rounds with the whole length of the vectors, not
        # just with what they add to the score at the centre. Half of the doubt covers the rest.
        vectors = 4 * (count + 64) * EPSILON * lengths * fastest
        return np.asarray(np.maximum(doubt, doubt / 2 + vectors))


def _best_slope(
    slope: Floats, residual: Floats, turns: Floats, heavy: Floats, derivative: Floats, touch: float
) -> Floats:
    """The slope that makes a·(d − ℓ) + Σ width·|residual| least, without limits: (n,) array.

    The sum is convex and piecewise linear; its breakpoints are where a residual vanishes, and its
    derivative, at first the one given, rises by twice the weight at each.
    """
    counts = heavy > 0
    points = np.full(heavy.shape, -np.inf)
    # An agent right in the direction of a cell hardly turns the residual; its breakpoint is then
    # beyond floats, where infinity has the right order among the others.
    with np.errstate(over="ignore"):
        np.divide(residual, turns, out=points, where=counts)
    np.subtract(slope[:, None], points, out=points)
    order = np.argsort(points, axis=1, kind="stable")
    order += heavy.shape[1] * np.arange(len(slope))[:, None]  # places in all of them
    points = points.take(order)
    risen = derivative[:, None] + 2 * np.cumsum(heavy.take(order), axis=1)
    reached = risen >= -touch
    rows, first = np.arange(len(slope)), reached.argmax(axis=1)
    return np.asarray(np.where(reached[rows, first], points[rows, first], np.inf))
