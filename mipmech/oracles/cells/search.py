"""The outer loop of the cells engine: blocks of nodes, the most promising first, on all cores.

The tree of nodes is searched in blocks (`blocks`). Blocks wait in a heap, highest bound first, and
are taken in lots of a fixed size. All blocks of a lot are searched with the incumbent of the moment
at which the lot was formed; results are processed lot by lot, in order. At first, one lot is under
way. In a long search improvements are rare and waiting for the last block of a lot is wasteful:
then several lots are under way at once, and blocks are larger. All of this depends on what was
found so far and never on the clock or the number of workers, so that threads and workers, few or
many, find the same. Only the last blocks before a time limit are smaller, so that they end with it.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from mipmech.budget import Stop, Timer
from mipmech.oracles.cells import kernel
from mipmech.oracles.cells.blocks import (
    Block,
    CellProblem,
    Orders,
    Searched,
    Symbols,
    alone,
    in_levels,
    renumbered,
    roots,
    search,
)
from mipmech.oracles.cells.compiling import warm
from mipmech.validation import Floats
from mipmech.workers.executor import Executor, ExecutorLost
from mipmech.workers.ordered import STOPPED, ExecutorPool, Pool, open_pool

# Blocks searched with the same incumbent; with more, improvements would spread too slowly.
LOT = 8
# Agents looked at within one block: few at first, so that good mechanisms are found early; then
# enough that handing out blocks costs nothing (some 50 ms).
FIRST_BUDGET, LAST_BUDGET = 50_000, 3_000_000
# In a long search, a block may look at this share of the agents seen so far, up to some 0.3 s: the
# time between two looks at the clock, and plenty for a worker at the end of a slow line.
LONG_SHARE, LONG_BUDGET = 1 / 256, 20_000_000
# Lots under way at once: one more per LONG_SEARCH nodes (some seconds), until there are enough to
# keep sixteen workers busy. Any earlier costs up to 4 % more work (measured).
LOTS, LONG_SEARCH = 4, 1_000_000
# The first look for good directions computes at most this many scores, for this many directions.
FIRST_LOOK = 1_500_000
DIRECTIONS = (100, 600)
ISLANDS, ROUNDS, SHRINK = 10, 20, 0.6
# So many times more of them where not all rules are allowed.
DEMANDING = 6
# After an improvement, each round of local steps may compute this many scores.
POLISH, MOST_TRIES = 200_000, 30
# With more agents than this, the first look is at a sample of them.
SAMPLE = 2000


# Grades a direction (with a float's estimate of its value) and returns what it is really worth.
Offer = Callable[[Floats, float], float]


@dataclass(frozen=True, eq=False)
class Lot:
    """Blocks that are searched with the same orders."""

    blocks: list[Block]
    orders: Orders


@dataclass(eq=False)
class CellSearch:
    """The state of a search.

    best : the value of the best mechanism found, as graded; −1 if rules must meet requirements and
        none that does is known
    factor, margin : a node is closed if its bound is not above factor·best + margin
    keep : remember the tree
    tell : called to report progress
    largest : the largest budget of a block, if it is not to grow with the search
    rates : the values of v·p that still matter; ``offer`` may remove some
    put_right : makes directions, (n, d), ones that are allowed
    """

    problem: CellProblem
    offer: Offer
    timer: Timer
    _: KW_ONLY
    factor: float = 1.0
    margin: float = 0.0
    best: float = field(default=0.0, init=False)
    keep: bool = False
    tell: Callable[[], None] = lambda: None
    largest: int | None = None
    put_right: Callable[[Floats], Floats] | None = None

    def __post_init__(self) -> None:
        warm(self.timer.budget.watch)
        self.rates = self.problem.rates
        self.nodes = 0
        self.seen = 0
        self.nothing = -1.0 if self.problem.allowed.demanding else 0.0
        self.best = self.nothing
        self.closed = self.nothing
        self.lost: str | None = None
        self.roots = roots(self.problem)
        self._waiting: list[tuple[float, int, Block]] = []
        self._under_way: deque[Lot] = deque()
        self._serial = 0
        self._shown = self.problem.most
        self._budget = FIRST_BUDGET
        self._begun = 0.0
        self._workers = 1
        for root in self.roots:
            self._push(root)

    # ------------------------------------------------------------ the best found

    def look(self, seeds: Floats | None = None) -> None:
        """Random directions, the best of them improved by smaller and smaller steps; fixed seed."""
        problem, d = self.problem, self.problem.dimension
        m = problem.y.shape[1]
        random = np.random.default_rng(0)
        chosen = np.arange(m) if m <= SAMPLE else np.sort(random.permutation(m)[:SAMPLE])
        part = problem.only(chosen) if m <= SAMPLE else problem.sampled(chosen)
        most = DIRECTIONS[1] * d if d > 2 else DIRECTIONS[0]  # a circle needs few
        islands = ISLANDS
        if problem.allowed.demanding:  # what is allowed may be in scattered places
            most, islands = DEMANDING * most, DEMANDING * islands
        tries = int(min(max(FIRST_LOOK / len(chosen), DIRECTIONS[0]), most))
        v = random.standard_normal((1 if d == 0 else max(2, tries // 4), d))
        if problem.kind == kernel.GAIN:
            v *= np.where(v @ problem.p < 0, -1.0, 1.0)[:, None]
        if d:
            v = problem.unit(v)
        if seeds is not None:
            v = np.vstack([seeds, v])
        if self.put_right is not None:
            v = self.put_right(v)
        top = v[np.argsort(-part.values(v), kind="stable")[:islands]]
        each = max(1, tries * 3 // 4 // (len(top) * ROUNDS))
        values = part.climb(top, _steps(1, 0.5, len(top), each if d > 1 else 0, d))
        for place in np.argsort(-values, kind="stable")[:3]:
            self.try_direction(top[place], float(problem.values(top[place : place + 1])[0]))
        self.tell()

    def try_direction(self, v: Floats, estimate: float) -> None:
        """Have a direction graded, if its estimate is better than the best so far."""
        if estimate > self.best:
            self.best = max(self.best, self.offer(v, estimate))

    # ------------------------------------------------------------ bounds

    @property
    def cut(self) -> float:
        """A node whose bound is not above this is closed."""
        if self.best < 0:
            return self.best
        return self.best * self.factor + self.margin

    @property
    def upper(self) -> float:
        """No mechanism has more than this, in floats."""
        waiting = -self._waiting[0][0] if self._waiting else self.nothing
        for lot in self._under_way:
            waiting = max([waiting, *(block.bound for block in lot.blocks)])
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
        return not self._under_way and self._nothing_to_give

    @property
    def _nothing_to_give(self) -> bool:
        return not self._waiting or -self._waiting[0][0] <= self.cut

    # ------------------------------------------------------------ the search

    def _push(self, block: Block) -> None:
        self._serial += 1
        heapq.heappush(self._waiting, (-block.bound, self._serial, block))

    def run(
        self, threads: int = 1, most: float = math.inf, executor: Executor | None = None
    ) -> Stop:
        """Search until everything is closed, the time is over, or ``most`` nodes were searched.

        With an executor, its workers search. If it is lost, its results so far are kept, and
        ``lost`` says why.
        """
        with open_pool(threads, executor, warm) as pool:
            self._begun = self._begun or self.timer.seconds
            self._workers = pool.slots if isinstance(pool, ExecutorPool) else threads
            try:
                stop = self._run(pool, most)
            except ExecutorLost as error:
                self.lost = str(error)
                stop = Stop.LOST
            # Which results have arrived depends on time: they count only if time ended the search.
            self._give_back(pool, pool.drop(), stop in (Stop.TIME, Stop.LOST))
        return stop

    def _run(self, pool: Pool, most: float) -> Stop:
        while not self.finished:
            if self.timer.left == 0:
                return Stop.TIME
            if self.nodes >= most:
                return Stop.NODES
            while len(self._under_way) < self._lots and not self._nothing_to_give:
                self._give(pool)
            results = []
            lot = self._under_way[0]
            while lot.blocks:
                found = pool.take(lambda: self.timer.left > 0)
                if found is STOPPED:
                    break
                results.append(self._taken(pool, lot.blocks.pop(0), found))
            self._take_best(results)
            if not lot.blocks:
                self._under_way.popleft()
            self.tell()
        return Stop.FINISHED

    def _give_back(self, pool: Pool, answers: list[Any], counts: bool) -> None:
        """Reopen all blocks under way, except those with a result, if results count."""
        blocks = [block for lot in self._under_way for block in lot.blocks]
        results = []
        for block, found in zip(blocks, answers, strict=True):
            if found is STOPPED or not counts:
                self._push(block)
            else:
                results.append(self._taken(pool, block, found))
        self._under_way.clear()
        self._take_best(results)

    @property
    def _lots(self) -> int:
        # Where only some values of v·p matter, each one settled is an improvement: never rare.
        return 1 if len(self.rates) else min(LOTS, 1 + self.nodes // LONG_SEARCH)

    def _give(self, pool: Pool) -> None:
        """Form a lot."""
        lot = Lot([], self._orders())
        self._under_way.append(lot)
        while len(lot.blocks) < LOT and not self._nothing_to_give:
            block = heapq.heappop(self._waiting)[2]
            lot.blocks.append(block)
            sent = isinstance(pool, ExecutorPool)
            given = alone(self.problem, block) if sent else (self.problem, block)
            pool.put(search, *given, lot.orders)

    def _orders(self) -> Orders:
        problem = self.problem
        # Within a block, the float value of a centre closes nodes only if gaps are allowed: for
        # counts, a tie may turn out not to be met; and where only some values of v·p matter, the
        # centre may have another one.
        uncertain = problem.kind == kernel.DENSITY or len(self.rates) > 0
        # Or it may be of a direction that is not allowed.
        uncertain = uncertain or (len(problem.allowed.rows) > 0 and not problem.allowed.strict)
        factor = 0.0 if uncertain else self.factor * (1 - 1e-9)
        budget, largest = self._budget, self.largest
        if largest is None:
            largest = max(LAST_BUDGET, int(min(self.seen * LONG_SHARE, LONG_BUDGET)))
        self._budget = min(2 * budget, largest)
        return Orders(self.cut, factor, self.rates, problem.touch, self._in_time(budget))

    def _in_time(self, budget: int) -> int:
        """The part of a block's budget that fits in the time left."""
        if math.isinf(self.timer.left) or not self.seen:
            return budget
        # Few agents in many dimensions are slower to look at than many in few: by up to ten times.
        pace = self.seen / max(self.timer.seconds - self._begun, 1e-3)
        workers = min(self._workers, LOT * self._lots)
        return int(max(min(budget, pace * self.timer.left / workers), FIRST_BUDGET))

    def _taken(self, pool: Pool, block: Block, found: Searched) -> Searched:
        """Process the result of a block: closed leaves, and new blocks."""
        if isinstance(pool, ExecutorPool):
            found = renumbered(found, block)
        self.closed = max(self.closed, found.closed)
        self.nodes += found.nodes
        self.seen += found.seen
        children = found.blocks()
        for child in children:
            self._push(child)
        if self.keep:
            block.code, block.children = found.code.copy(), children
        block.agents = block.agents[:0]
        return found

    def _take_best(self, results: list[Searched]) -> None:
        """Grade the best centres of a lot, the most promising first."""
        for found in sorted(results, key=lambda found: -found.value)[:2]:
            if found.value > self.best:
                self.try_direction(found.v, float(found.value))
                self._polish(found.v)

    def _polish(self, v: Floats) -> None:
        """Local steps from an improved direction, if they are cheap."""
        problem = self.problem
        tries = POLISH // (problem.y.shape[1] * ROUNDS)
        # Steps might lead off the boxes, if they are not everything.
        if problem.dimension < 2 or tries < 1 or problem.boxes is not None:
            return
        near = v[None, :].copy()
        values = problem.climb(near, _steps(2, 0.05, 1, min(tries, MOST_TRIES), len(v)))
        self.try_direction(near[0], float(values[0]))

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
                places = np.flatnonzero(item.code == kernel.BLOCK)
                for place, child in zip(places, item.children, strict=True):
                    pieces += [item.code[start:place], child]
                    start = int(place) + 1
                waiting += reversed([*pieces, item.code[start:]])
        return in_levels(np.concatenate(parts))


def _steps(seed: int, first: float, islands: int, tries: int, d: int) -> Floats:
    """Random steps for `CellProblem.climb`: so many tries in each round, every round smaller."""
    sizes = np.multiply.accumulate([first, *[SHRINK] * (ROUNDS - 1)])
    steps = np.random.RandomState(seed).standard_normal((islands, ROUNDS, tries, d))
    return (sizes[:, None, None] * steps).reshape(islands, ROUNDS * tries, d)
