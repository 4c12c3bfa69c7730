"""The outer loop of the cells engine: blocks of nodes, the most promising first, on all cores.

The tree of nodes is searched in blocks. A block is one open node with the agents that matter there;
`cell_kernel.search_block` searches below it depth-first until all is closed or its budget is spent,
and leaves the rest as new blocks. Blocks wait in a heap, highest bound first, and are taken in lots
of a fixed size, so that the result is the same whatever the number of threads: every block of a lot
is searched with the same incumbent, and what was found is compared in order afterwards.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipmech.budget import Stop, Timer
from mipmech.oracles import cell_kernel as kernel

Floats = NDArray[np.float64]
Symbols = NDArray[np.uint8]

# Blocks searched with the same incumbent; more would wait for news of each other too long.
LOT = 8
# Agents looked at within one block: few at first, so that good mechanisms are found early; then
# enough that handing out blocks costs nothing (some 50 ms).
FIRST_BUDGET, LAST_BUDGET = 50_000, 3_000_000
# A first look for good directions takes so many agents' scores at most, and so many directions.
FIRST_LOOK = 1_500_000
DIRECTIONS = (100, 600)
ISLANDS, ROUNDS, SHRINK = 10, 20, 0.6
# Whenever something better turns up, steps from there may look at so many agents, in each round.
POLISH, MOST_TRIES = 200_000, 30
# With more agents than this, the first look is at a sample of them.
SAMPLE = 2000


@dataclass(frozen=True, eq=False)
class Problem:
    """What is maximised, and over which directions v on the unit sphere of R^d.

    The score of agent i is shift_i + v·y_i, to within slack_i.

    kind : `cell_kernel.DENSITY`, SOFT or GAIN
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
        """An interval with every threshold that has anybody in its margin."""
        sizes = np.sqrt((self.y**2).sum(axis=0)) * (1 + 1e-12) + np.abs(self.shift) + self.slack
        low, high = -float(sizes.max()), float((sizes + self.reach).max())
        room = high / 1024  # for whoever rounds in another way, and for the band of η
        return low - room, high + room

    @property
    def most(self) -> float:
        """No mechanism has more: everybody in the margin, at the end of the reach, along p."""
        if self.kind == kernel.DENSITY:
            return float(self.weight.sum())
        rate = float(np.linalg.norm(self.p)) if self.kind == kernel.GAIN else 1.0
        return rate * float(self.weight @ self.reach) * (1 + 1e-9)

    @property
    def touch(self) -> float:
        """Ties nearer than this are broken the same way by everybody (`docs/proof-format.md`)."""
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
    """An open node, and what has become of it.

    code : its subtree in preorder (`cell_kernel`), None while it is open
    children : the blocks in it that were left for later, in order
    """

    centre: Floats
    half: Floats
    low: float
    high: float
    agents: NDArray[np.int32]
    sure: Floats
    bound: float
    code: Symbols | None = None
    children: list[Block] = field(default_factory=list)


def roots(problem: Problem) -> list[Block]:
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


# Grades a direction (with a float's estimate of its value) and returns what it is really worth.
Offer = Callable[[Floats, float], float]


class CellSearch:
    """The state of a search.

    best : the value of the best mechanism found, as graded
    factor, margin : a node is closed if its bound is not above factor·best + margin
    largest : the largest budget of a block
    rates : the values of v·p that still matter; whoever offers mechanisms may take some away
    """

    def __init__(
        self,
        problem: Problem,
        offer: Offer,
        timer: Timer,
        *,
        factor: float = 1.0,
        margin: float = 0.0,
        best: float = 0.0,
        keep: bool = False,
        tell: Callable[[], None] | None = None,
        largest: int = LAST_BUDGET,
    ) -> None:
        self.problem = problem
        self.offer = offer
        self.timer = timer
        self.factor = factor
        self.margin = margin
        self.best = best
        self.keep = keep
        self.rates = problem.rates
        self.nodes = 0
        self.closed = 0.0
        self.roots = roots(problem)
        self._tell = tell
        self._largest = largest
        self._waiting: list[tuple[float, int, Block]] = []
        self._serial = 0
        self._shown = problem.most
        self._budget = FIRST_BUDGET
        for root in self.roots:
            self._push(root)

    # ------------------------------------------------------------ the best found

    def look(self, seeds: Floats | None = None) -> None:
        """Random directions, the best of them improved by smaller and smaller steps; fixed seed."""
        problem, d = self.problem, self.problem.dimension
        m = problem.y.shape[1]
        random = np.random.default_rng(0)
        chosen = np.arange(m) if m <= SAMPLE else np.sort(random.permutation(m)[:SAMPLE])
        part = (
            np.ascontiguousarray(problem.y[:, chosen]), problem.shift[chosen],
            problem.reach[chosen], problem.weight[chosen],
        )  # fmt: skip
        most = DIRECTIONS[1] * d if d > 2 else DIRECTIONS[0]  # a circle is searched in no time
        tries = int(min(max(FIRST_LOOK / len(chosen), DIRECTIONS[0]), most))
        v = random.standard_normal((1 if d == 0 else max(2, tries // 4), d))
        if problem.kind == kernel.GAIN:
            v *= np.where(v @ problem.p < 0, -1.0, 1.0)[:, None]
        if d:
            v /= np.linalg.norm(v, axis=1)[:, None]
        if seeds is not None:
            v = np.vstack([seeds, v])
        values = kernel.best_along(problem.kind, *part, v, problem.p)
        top = np.ascontiguousarray(v[np.argsort(-values, kind="stable")[:ISLANDS]])
        each = max(1, tries * 3 // 4 // (len(top) * ROUNDS))
        if d > 1:
            values = kernel.climb(problem.kind, *part, top, problem.p, 0.5, ROUNDS, each, SHRINK, 1)
        else:
            values = kernel.best_along(problem.kind, *part, top, problem.p)
        for place in np.argsort(-values, kind="stable")[:3]:
            self._offer(top[place], float(problem.values(top[place : place + 1])[0]))
        self.tell()

    def _offer(self, v: Floats, estimate: float) -> None:
        if estimate > self.best:
            self.best = max(self.best, self.offer(v, estimate))

    # ------------------------------------------------------------ bounds

    @property
    def cut(self) -> float:
        """A node whose bound is not above this is closed."""
        return self.best * self.factor + self.margin

    @property
    def upper(self) -> float:
        """No mechanism has more than this, in floats."""
        waiting = -self._waiting[0][0] if self._waiting else 0.0
        # A half may have a higher bound of its own than the whole, but what was shown stays true.
        self._shown = min(self._shown, max(self.closed, waiting))
        return max(self.best, self._shown)

    @property
    def most_promising(self) -> Block | None:
        """The open node with the highest bound."""
        return self._waiting[0][2] if self._waiting else None

    @property
    def finished(self) -> bool:
        """Whether nothing is open that is above the cut."""
        return not self._waiting or -self._waiting[0][0] <= self.cut

    def tell(self) -> None:
        """Report progress."""
        if self._tell is not None:
            self._tell()

    # ------------------------------------------------------------ the search

    def _push(self, block: Block) -> None:
        self._serial += 1
        heapq.heappush(self._waiting, (-block.bound, self._serial, block))

    def run(self, threads: int = 1, most: float = math.inf) -> Stop:
        """Search until everything is closed, the time is over, or so many nodes were looked at."""
        with ThreadPoolExecutor(threads) as pool:
            each = map if threads == 1 else pool.map
            while not self.finished:
                if self.timer.left == 0:
                    return Stop.TIME
                if self.nodes >= most:
                    return Stop.NODES
                lot: list[Block] = []
                while self._waiting and len(lot) < LOT and not self.finished:
                    lot.append(heapq.heappop(self._waiting)[2])
                cut, budget = self.cut, self._budget
                results = list(each(lambda block: self._search(block, cut, budget), lot))  # noqa: B023
                for block, result in zip(lot, results, strict=True):
                    self._take(block, result)
                self._take_best(results)
                self._budget = min(2 * self._budget, self._largest)
                self.tell()
        return Stop.FINISHED

    def _search(self, block: Block, cut: float, budget: int) -> Any:
        problem = self.problem
        # Within a block, what a centre is worth in floats closes nodes only if gaps are allowed:
        # where it is a matter of counting, a tie may turn out not to be met; and where only some
        # values of v·p matter, the centre may have another one.
        uncertain = problem.kind == kernel.DENSITY or len(self.rates) > 0
        factor = 0.0 if uncertain else self.factor * (1 - 1e-9)
        return kernel.search_block(
            problem.kind, problem.y, problem.shift, problem.slack, problem.reach, problem.weight,
            problem.p, self.rates, problem.band, block.centre, block.half, block.low, block.high,
            block.agents, block.sure, cut, factor, problem.finest, problem.touch,
            budget,
        )  # fmt: skip

    def _take(self, block: Block, result: Any) -> None:
        """What a block has become: closed leaves, and new blocks."""
        code, centres, halves, lows, highs, sums, bounds, agents, offsets, closed, nodes = result[
            :11
        ]
        self.closed = max(self.closed, closed)
        self.nodes += nodes
        children = [
            Block(
                centres[i], halves[i], lows[i], highs[i],
                agents[offsets[i] : offsets[i + 1]].copy(), sums[i], bounds[i],
            )
            for i in range(len(lows))
        ]  # fmt: skip
        for child in children:
            self._push(child)
        if self.keep:
            block.code, block.children = code.copy(), children
        block.agents = block.agents[:0]

    def _take_best(self, results: list[Any]) -> None:
        """Grade the best centres of a lot, the most promising first."""
        order = sorted(range(len(results)), key=lambda i: -results[i][12])
        for i in order[:2]:
            estimate, v = float(results[i][12]), results[i][13]
            if estimate > self.best:
                self._offer(v, estimate)
                self._polish(v)

    def _polish(self, v: Floats) -> None:
        """Small steps from a direction that is better than all before, if they are cheap."""
        problem = self.problem
        tries = POLISH // (problem.y.shape[1] * ROUNDS)
        if problem.dimension < 2 or tries < 1:
            return
        near = v[None, :].copy()
        values = kernel.climb(
            problem.kind, problem.y, problem.shift, problem.reach, problem.weight, near, problem.p,
            0.05, ROUNDS, min(tries, MOST_TRIES), SHRINK, 2,
        )  # fmt: skip
        self._offer(near[0], float(values[0]))

    # ------------------------------------------------------------ the proof

    def tree(self) -> Symbols:
        """All nodes in level order, roots first: 0 a leaf, 1 thresholds cut, 2 + j side j cut."""
        parts: list[Symbols] = []
        leaf = np.zeros(1, np.uint8)
        # Preorder with what was left for later put in its place.
        waiting: list[Block | Symbols] = list(reversed(self.roots))
        while waiting:
            item = waiting.pop()
            if isinstance(item, np.ndarray):
                parts.append(item)
            elif item.code is None:
                parts.append(leaf)
            else:
                pieces: list[Block | Symbols] = []
                start = 0
                for place, child in zip(
                    np.flatnonzero(item.code == kernel.BLOCK), item.children, strict=True
                ):
                    pieces += [item.code[start:place], child]
                    start = int(place) + 1
                pieces.append(item.code[start:])
                waiting += reversed(pieces)
        symbols: Symbols = kernel.in_levels(np.concatenate(parts))
        return symbols
