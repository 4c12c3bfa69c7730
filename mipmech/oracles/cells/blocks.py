"""Blocks of the cells engine: units of work, searched in this process or by a worker.

A block is one open node with the agents that matter there; `kernel.search_block` searches
below it depth-first until all is closed or its budget is spent, and leaves the rest as new blocks.
The result depends on the block, the cut and the budget alone, so it may be computed anywhere:
a block searched in isolation (`alone`) needs only its own agents, of which there are fewer and
fewer down the tree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipmech.oracles.cells import kernel
from mipmech.validation import Floats, Numbers

# A search of a block leaves about so many open nodes at most, with so many agents in them, whatever
# its budget: the memory for them is bounded. Only blocks with far too many agents come to this.
MOST_LEFT, MOST_AGENTS_LEFT = 4096, 4_000_000

Agents = NDArray[np.int32]
Symbols = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Restriction:
    """Which rules are allowed, as the compiled code takes it.

    mass : (c, m) array of whole numbers, the mass of every agent in every class; c = 0 if it does
        not matter who is accepted
    totals : (c,) array, the mass of each class
    limits : (3,) array, the least and the greatest mass accepted, and by how much the accepted
        shares of classes may differ
    rows : (r, d) array; shift, room : (r,) arrays: for each row a·v + shift ≥ 0 is demanded, where
        the left side is known to within room
    strict : whether some direction meets all rows with room to spare
    exact : whether no difference of two agents has a coordinate of the wrong sign
    """

    mass: Floats
    totals: Floats
    limits: Floats
    rows: Floats
    shift: Floats
    room: Floats
    strict: bool
    exact: bool = False

    @classmethod
    def all(cls, dimension: int, agents: int) -> Restriction:
        """Every rule is."""
        none = np.empty(0)
        rows = np.empty((0, dimension))
        return cls(np.empty((0, agents)), none, np.zeros(3), rows, none, none, strict=False)

    def only(self, agents: Agents | Numbers) -> Restriction:
        """The same with only these agents."""
        return replace(self, mass=np.take(self.mass, agents, axis=1))

    def sampled(self, agents: Agents | Numbers) -> Restriction:
        """About the same for a sample of the agents: limits are as large a share of it."""
        if not len(self.totals):
            return self.only(agents)
        mass = np.take(self.mass, agents, axis=1)
        share = float(mass.sum() / self.totals.sum())
        low, high, within = self.limits
        limits = np.array([math.floor(low * share), math.ceil(high * share), within])
        return replace(self, mass=mass, totals=np.maximum(mass.sum(axis=1), 1.0), limits=limits)

    @property
    def demanding(self) -> bool:
        """Whether some rules may not be."""
        return len(self.totals) > 0 or len(self.rows) > 0


@dataclass(frozen=True, eq=False)
class CellProblem:
    """What is maximised, and over which directions v of length 1 in R^d.

    The score of agent i is shift_i + v·y_i, to within slack_i.

    kind : `kernel.DENSITY`, SOFT or GAIN
    y : (d, m) array; shift, slack, reach, weight : (m,) arrays
    p : (d,) array; gain is the rate (v·p for l2) times soft density
    rates : rates, ascending, if only those matter (to within band); empty if all do
    finest : scores that differ by less are not told apart
    norm : `kernel.L2`, L1 or LINF: that of the costs, to which the length of v is dual
    boxes : (r, 2d) array, centres and half-widths of the boxes to search, if not the whole cube
    allowed : which rules are
    """

    kind: int
    y: Floats
    shift: Floats
    slack: Floats
    reach: Floats
    weight: Floats
    p: Floats
    rates: Floats = field(default_factory=lambda: np.empty(0))
    band: float = 0.0
    finest: float = 2.0**-46
    norm: int = kernel.L2
    boxes: Floats | None = None
    allowed: Restriction = None  # type: ignore[assignment]  # every rule

    def __post_init__(self) -> None:
        if self.__dict__["allowed"] is None:
            object.__setattr__(self, "allowed", Restriction.all(*self.y.shape))

    @cached_property
    def lengths(self) -> Floats:
        """No score v·y_i is larger, (m,) array: the norms of the agents."""
        if self.norm == kernel.L2:
            return np.asarray(np.sqrt((self.y**2).sum(axis=0)))
        sizes = np.abs(self.y)
        l1 = self.norm == kernel.L1
        return np.asarray(sizes.sum(axis=0) if l1 else sizes.max(axis=0, initial=0.0))

    def unit(self, v: Floats) -> Floats:
        """These directions, (n, d), with length 1."""
        return np.asarray(v / np.linalg.norm(v, DUAL[self.norm], axis=1)[:, None])

    @property
    def steepest(self) -> float:
        """The greatest rate."""
        return float(np.linalg.norm(self.p, DUAL[self.norm]))

    @property
    def dimension(self) -> int:
        """The dimension d of the space of v."""
        return len(self.y)

    @property
    def thresholds(self) -> tuple[float, float]:
        """An interval with every threshold that has an agent in its margin."""
        sizes = self.lengths * (1 + 1e-12) + np.abs(self.shift) + self.slack
        low, high = -float(sizes.max()), float((sizes + self.reach).max())
        room = high / 1024  # for checkers that round in another way, and for the band of η
        return low - room, high + room

    @property
    def most(self) -> float:
        """No mechanism has more: all agents in the margin, at the end of the reach, along p."""
        if self.kind == kernel.DENSITY:
            return float(self.weight.sum())
        rate = self.steepest if self.kind == kernel.GAIN else 1.0
        return rate * float(self.weight @ self.reach) * (1 + 1e-9)

    @property
    def touch(self) -> float:
        """Ties nearer than this are broken in one fixed way (`docs/proof-format.md`)."""
        return TOUCH * min(1.0, float(self.reach.min()))

    def values(self, v: Floats) -> Floats:
        """The best value along each of these directions, (n, d), in floats."""
        return self.climb(v.copy(), np.empty((len(v), 0, self.dimension)))

    def climb(self, v: Floats, steps: Floats) -> Floats:
        """Improve directions in place: each step is taken if it leads to a better direction.

        v : (n, d) array; steps : (n, s, d) array, s of them for each direction, tried in turn
        Returns the values of the directions, (n,) array, as floats.
        """
        d, m = self.y.shape
        values, allowed = np.empty(len(v)), self.allowed
        classes = len(allowed.totals)
        kernel.climb(
            self.kind, self.norm, *map(_own, (
                self.y, self.shift, self.reach, self.weight, allowed.mass, self.p, allowed.totals,
                allowed.limits, allowed.rows, allowed.shift,
            )),
            allowed.strict, v, steps, values, np.empty(d), np.zeros((1, d + 2 + classes)),
            np.empty((3, classes)), *_sorting(m),
        )  # fmt: skip
        return values

    def only(self, agents: Agents | Numbers) -> CellProblem:
        """The problem with only these agents, renumbered."""
        return replace(
            self, y=np.take(self.y, agents, axis=1), shift=self.shift[agents],
            slack=self.slack[agents], reach=self.reach[agents], weight=self.weight[agents],
            allowed=self.allowed.only(agents),
        )  # fmt: skip

    def sampled(self, agents: Numbers) -> CellProblem:
        """The problem with a sample of the agents: about the same directions are good."""
        return replace(self.only(agents), allowed=self.allowed.sampled(agents))


TOUCH = 2.0**-30
# The order of the dual norm: of a direction's length, and of the greatest rate.
DUAL = {kernel.L2: 2, kernel.L1: np.inf, kernel.LINF: 1}


@dataclass(eq=False)
class Block:
    """An open node, and the result of its search.

    code : its subtree in preorder (`kernel`), None while it is open
    children : the blocks in it that were left for later, in order
    """

    centre: Floats
    half: Floats
    low: float
    high: float
    agents: Agents
    sure: Floats
    bound: float
    code: Symbols | None = None
    children: list[Block] = field(default_factory=list)


def roots(problem: CellProblem) -> list[Block]:
    """The facets of the cube, with all thresholds: facet j, first x_j = 1, then x_j = −1."""
    d = problem.dimension
    low, high = problem.thresholds
    agents = np.arange(problem.y.shape[1], dtype=np.int32)

    sums = d + 2 + len(problem.allowed.totals)

    def block(centre: Floats, half: Floats) -> Block:
        return Block(centre, half, low, high, agents, np.zeros(sums), math.inf)

    if d == 0:
        return [block(np.zeros(0), np.zeros(0))]
    if problem.boxes is not None:
        return [block(box[:d], box[d:]) for box in problem.boxes]
    axes = np.eye(d)
    return [block(sign * axes[j], 1.0 - axes[j]) for j in range(d) for sign in (1.0, -1.0)]


class Orders(NamedTuple):
    """The parameters of the search of a block.

    cut : a node whose bound is not above this is closed
    factor : so is one whose bound is not above this times what a centre within the block is worth
    rates : the values of v·p that still matter; empty if all do
    touch : that of the whole problem
    budget : agents to look at
    """

    cut: float
    factor: float
    rates: Floats
    touch: float
    budget: int


class Searched(NamedTuple):
    """The result of a block.

    code : its subtree in preorder
    left : the nodes in it that are left open, in order, a row for each: thresholds, bound, how many
        agents, box, sure sums
    agents : theirs, one after another
    closed : the highest bound of a closed leaf
    seen : agents looked at
    value, v : the best centre
    """

    code: Symbols
    left: Floats
    agents: Agents
    closed: float
    seen: int
    value: float
    v: Floats

    @property
    def nodes(self) -> int:
        """How many nodes were searched."""
        return len(self.code)

    def blocks(self) -> list[Block]:
        """The nodes that are left, as blocks."""
        d = len(self.v)
        found, begin = [], 0
        for low, high, bound, count, *rest in self.left:
            end = begin + int(count)
            box = np.array(rest)
            found.append(
                Block(box[:d], box[d : 2 * d], low, high, self.agents[begin:end].copy(),
                      box[2 * d :], bound)
            )  # fmt: skip
            begin = end
        return found


def search(problem: CellProblem, block: Block, orders: Orders) -> Searched:
    """Search a block."""
    d, m = problem.dimension, len(block.agents)
    # Agents that are still open in a node are written behind those of its parent.
    room = 6 * m + 4096
    allowed = problem.allowed
    classes, rows = len(allowed.totals), len(allowed.rows)
    y, mass, index = np.empty((d, room)), np.empty((classes, room)), np.empty(room, np.int32)
    shift, slack, reach, weight, lengths = (np.empty(room) for _ in range(5))
    y[:, :m] = np.take(problem.y, block.agents, axis=1)
    mass[:, :m] = np.take(allowed.mass, block.agents, axis=1)
    np.take(problem.lengths, block.agents, out=lengths[:m], mode="clip")
    for own, every in (
        (shift, problem.shift), (slack, problem.slack), (reach, problem.reach),
        (weight, problem.weight),
    ):  # fmt: skip
        np.take(every, block.agents, out=own[:m], mode="clip")
    index[:m] = block.agents
    # A frame per level: box, sure sums, thresholds, where its agents are, and what is to be done.
    levels = kernel.DEPTH + 1
    centres, halves = np.empty((levels, d)), np.empty((levels, d))
    sums = np.empty((levels, d + 2 + classes))
    lows, highs = np.empty(levels), np.empty(levels)
    begins, counts, cuts, done = (np.empty(levels, np.int64) for _ in range(4))
    centres[0], halves[0], sums[0] = block.centre, block.half, block.sure
    lows[0], highs[0] = block.low, block.high
    # Every node adds to what was seen, and once the budget is spent, no node is cut any more.
    code = np.empty(max(orders.budget, 0) // kernel.A_NODE + 2 * levels, np.uint8)
    left = np.empty((MOST_LEFT + 2 * levels, 3 * d + 6 + classes))
    agents = np.empty(min(max(orders.budget, 0), MOST_AGENTS_LEFT) + 2 * room, np.int32)
    best = np.zeros(d)
    few = kernel.MOST_TILTED
    length, opened, closed, seen, value = kernel.search_block(
        problem.kind, problem.norm, y, shift, slack, reach, weight, mass, lengths, index, m,
        centres, halves, sums, lows, highs, begins, counts, cuts, done,
        _own(problem.p), _own(orders.rates), problem.band,
        *map(_own, (allowed.totals, allowed.limits, allowed.rows, allowed.shift, allowed.room)),
        allowed.strict, orders.cut, orders.factor, problem.finest, orders.touch,
        orders.budget, MOST_LEFT, MOST_AGENTS_LEFT,
        np.empty(d), np.empty(d), np.empty(d), np.empty(d + 1), np.empty(d + 2), np.empty(d + 2),
        np.empty(d), np.empty(d + 1), np.empty(few), np.empty((few, 2)), np.empty((2, d + 1)),
        np.empty(m), *_sorting(m),
        np.empty(classes), np.empty(m, np.int64), np.empty(m), np.empty(m, np.int64),
        np.empty((3, classes)), np.empty(m), np.empty(rows, np.bool_), np.empty(rows),
        np.empty(m, np.int64), np.array([-1, int(allowed.exact)]),
        code, left, agents, best,
    )  # fmt: skip
    left = left[:opened].copy()
    whose = agents[: int(left[:, 3].sum())].copy()
    return Searched(code[:length].copy(), left, whose, closed, seen, value, best)


def _own(values: Floats) -> Floats:
    """An array as the compiled code takes it: for a read-only one, all would be compiled again."""
    return np.require(values, np.float64, ["C", "W"])


def _sorting(m: int) -> tuple[Floats, Floats, Numbers, Numbers, Numbers]:
    """Memory to sort m agents by their scores, and by the ends of their margins."""
    by_score, by_end, spare = np.empty((3, m), np.int64)
    return np.empty(m), np.empty(m), by_score, by_end, spare


def alone(problem: CellProblem, block: Block) -> tuple[CellProblem, Block]:
    """A problem with the agents of a block alone, renumbered: small enough to be sent."""
    small = problem.only(block.agents)
    return small, replace(block, agents=np.arange(len(block.agents), dtype=np.int32))


def renumbered(found: Searched, block: Block) -> Searched:
    """The result of a block searched in isolation, agents numbered as in the whole problem."""
    return found._replace(agents=block.agents[found.agents])


def in_levels(code: Symbols) -> Symbols:
    """A forest of trees in preorder, as one list level by level (left to right in each)."""
    inner = code != kernel.LEAF
    # How many nodes are due before each node, and at the end: an inner node brings one more, a leaf
    # is one less. So below an inner node more are due, until its second child is next; and a new
    # tree begins where for the first time less are due.
    due = np.concatenate([[0], np.cumsum(np.where(inner, 1, -1))])
    order = np.argsort(due, kind="stable")
    second = np.empty_like(order)
    second[order[:-1]] = order[1:]
    fewer = np.flatnonzero(due[1:] < np.minimum.accumulate(due)[:-1])[:-1]
    level, levels = np.concatenate([[0], fewer + 1]), []
    while len(level):
        levels.append(level)
        cut = level[inner[level]]
        level = np.stack([cut + 1, second[cut]], axis=1).ravel()
    symbols: Symbols = code[np.concatenate(levels)]
    return symbols
