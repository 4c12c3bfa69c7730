"""Blocks of the cells engine: the units of work, searched here or by a worker.

A block is one open node with the agents that matter there; `kernel.search_block` searches
below it depth-first until all is closed or its budget is spent, and leaves the rest as new blocks.
The result depends on the block, the cut and the budget alone, so it may be computed anywhere:
a block that is `alone` needs no more of the problem than its own agents, which become fewer and
fewer down the tree.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipmech.oracles.cells import kernel
from mipmech.validation import Floats, Numbers

Agents = NDArray[np.int32]
Symbols = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class CellProblem:
    """What is maximised, and over which directions v on the unit sphere of R^d.

    The score of agent i is shift_i + v·y_i, to within slack_i.

    kind : `kernel.DENSITY`, SOFT or GAIN
    y : (d, m) array; shift, slack, reach, weight : (m,) arrays
    p : (d,) array; gain is (v·p) times soft density
    rates : values of v·p, ascending, if only those matter (to within band); empty if all do
    finest : scores that differ by less are not told apart
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

    @property
    def dimension(self) -> int:
        """The dimension d of the space of v."""
        return len(self.y)

    @property
    def thresholds(self) -> tuple[float, float]:
        """An interval with every threshold that has an agent in its margin."""
        sizes = np.sqrt((self.y**2).sum(axis=0)) * (1 + 1e-12) + np.abs(self.shift) + self.slack
        low, high = -float(sizes.max()), float((sizes + self.reach).max())
        room = high / 1024  # for checkers that round in another way, and for the band of η
        return low - room, high + room

    @property
    def most(self) -> float:
        """No mechanism has more: all agents in the margin, at the end of the reach, along p."""
        if self.kind == kernel.DENSITY:
            return float(self.weight.sum())
        rate = float(np.linalg.norm(self.p)) if self.kind == kernel.GAIN else 1.0
        return rate * float(self.weight @ self.reach) * (1 + 1e-9)

    @property
    def touch(self) -> float:
        """Ties nearer than this are broken in one fixed way (`docs/proof-format.md`)."""
        return TOUCH * min(1.0, float(self.reach.min()))

    def values(self, v: Floats) -> Floats:
        """The best value along each of these directions, (n, d), in floats."""
        found: Floats = kernel.best_along(
            self.kind, self.y, self.shift, self.reach, self.weight, v, self.p
        )
        return found


TOUCH = 2.0**-30


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

    def block(centre: Floats, half: Floats) -> Block:
        return Block(centre, half, low, high, agents, np.zeros(d + 2), math.inf)

    if d == 0:
        return [block(np.zeros(0), np.zeros(0))]
    axes = np.eye(d)
    return [block(sign * axes[j], 1.0 - axes[j]) for j in range(d) for sign in (1.0, -1.0)]


class Orders(NamedTuple):
    """How a block is to be searched.

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
    centres, halves, lows, highs, sums, bounds : of the blocks that are left, in order
    agents, offsets : theirs are agents[offsets[i] : offsets[i + 1]]
    closed : the highest bound of a closed leaf
    nodes, seen : nodes and agents looked at
    value, v : the best centre
    """

    code: Symbols
    centres: Floats
    halves: Floats
    lows: Floats
    highs: Floats
    sums: Floats
    bounds: Floats
    agents: Agents
    offsets: Numbers
    closed: float
    nodes: int
    seen: int
    value: float
    v: Floats

    def blocks(self) -> list[Block]:
        """The blocks that are left."""
        return [
            Block(
                self.centres[i], self.halves[i], self.lows[i], self.highs[i],
                self.agents[self.offsets[i] : self.offsets[i + 1]].copy(), self.sums[i],
                self.bounds[i],
            )
            for i in range(len(self.lows))
        ]  # fmt: skip


def search(problem: CellProblem, block: Block, orders: Orders) -> Searched:
    """Search a block."""
    found = kernel.search_block(
        problem.kind, problem.y, problem.shift, problem.slack, problem.reach, problem.weight,
        problem.p, orders.rates, problem.band, block.centre, block.half, block.low, block.high,
        block.agents, block.sure, orders.cut, orders.factor, problem.finest, orders.touch,
        orders.budget,
    )  # fmt: skip
    searched = Searched(*found[:14])
    return searched._replace(agents=searched.agents[: searched.offsets[-1]])


def alone(problem: CellProblem, block: Block) -> tuple[CellProblem, Block]:
    """A problem with only the agents of a block, renumbered: small enough to be sent."""
    chosen = block.agents
    small = replace(
        problem, y=np.take(problem.y, chosen, axis=1), shift=problem.shift[chosen],
        slack=problem.slack[chosen], reach=problem.reach[chosen], weight=problem.weight[chosen],
    )  # fmt: skip
    return small, replace(block, agents=np.arange(len(chosen), dtype=np.int32))


def at_home(found: Searched, block: Block) -> Searched:
    """What was found of a block that was alone, with agents numbered as in the whole problem."""
    return found._replace(agents=block.agents[found.agents])


@functools.cache
def warm() -> None:
    """Load the compiled code."""
    y, one, none = np.ones((1, 1)), np.ones(1), np.zeros(1)
    problem = CellProblem(kernel.GAIN, y, none, none, one, one, one)
    search(problem, roots(problem)[0], Orders(math.inf, 0.0, np.empty(0), 0.0, 0))
