"""No rule in any leaf does better than claimed: the bounds of all leaves of the tree.

To save work, agents that are surely in or surely out all over a node are settled there once for
all the leaves below it, and a subtree is skipped if the first bound of its root is low enough.

The tree is walked in two steps. The first goes from the roots down to nodes with few leaves. Each
of those nodes, with everything below it, is a `Subtree`, which holds all that is needed to check it
and may be checked anywhere. How the tree is cut into parts depends on the tree and the agents
alone, and every part is computed in the same way everywhere, so the result is the same to the last
bit. The check of a part returns a bound, never what the part covers: parts are made one by one on
the way through the tree, and exactly one answer must come back for each.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipmech.checker.agents import Agents
from mipmech.checker.bounds import BATCH, AgentSet, Context, LeafBounds, all_of, context_of
from mipmech.checker.content import Look, Rejected, reject
from mipmech.checker.exact import up
from mipmech.checker.tree import Box, Levels, Symbols, Tree, hull

# Leaves times open agents of one part: some tenths of a second. A leaf takes the memory of a few
# agents in each dimension.
PART, WIDTH = 1 << 21, 4
# A tree with no more leaves times agents than this is gone through even if its claim is false: the
# verdict then tells what it does prove.
WHOLE = 1 << 24
# Seconds between two reports of progress.
OFTEN = 0.5

Floats = NDArray[np.float64]
# Places of agents, or a bit for each.
Places = NDArray[np.int32] | NDArray[np.uint8]

# Calls a function for each item and hands out the results in order, as the builtin map does.
Each = Callable[[Callable[["Subtree"], "Checked"], Iterable["Subtree"]], Iterable["Checked"]]


@dataclass(frozen=True, eq=False)
class Subtree:
    """A node of the tree, everything below it, and the agents that are open in it."""

    context: Context
    symbols: Symbols
    box: Box
    agents: AgentSet
    leaves: int


class Pending(NamedTuple):
    """The agents that are open in a node which waits, in a few bits each.

    On the way down a sibling waits at every level, and there may be thousands of levels.

    numbers : their places, or a bit for each of all agents if that takes less
    """

    numbers: Places
    sums: Floats

    @classmethod
    def of(cls, some: AgentSet, count: int) -> Pending:
        """These agents among ``count``."""
        if 32 * len(some) < count:
            return cls(some.numbers.astype(np.int32), some.sums)
        flags = np.zeros(count, np.bool_)
        flags[some.numbers] = True
        return cls(np.packbits(flags), some.sums)

    def agents(self, everyone: AgentSet) -> AgentSet:
        """The agents again, with all that belongs to them."""
        if self.numbers.dtype != np.uint8:
            return everyone.kept(self.numbers.astype(np.int64), self.sums)
        flags = np.unpackbits(self.numbers.view(np.uint8), count=len(everyone))
        return everyone.kept(np.flatnonzero(flags), self.sums)


@dataclass(frozen=True)
class Checked:
    """The result of a part: the highest bound, or why the proof is rejected."""

    leaves: int
    highest: float
    fault: str | None = None


def no_look() -> None:
    """Default: never interrupt."""


def check_part(part: Subtree, look: Look = no_look) -> Checked:
    """The highest bound of the leaves of a part, in the units of the sums."""
    bounds = LeafBounds(part.context, part.agents, look)
    try:
        below = Levels(part.symbols, look)
        boxes = below.boxes(part.box, look)
        everyone = part.agents
        pending = [(0, 0, 0, Pending.of(everyone, len(everyone)))]
        while pending:
            depth, place, first, waiting = pending.pop()
            some = waiting.agents(everyone)
            count = int(below.counts[depth][place])
            if count == 1 or count * max(1, len(some)) <= BATCH:
                centre, half, low, high = (values[first : first + count] for values in boxes)
                bounds.leaves((centre, half, low, high), some)
                continue
            inner = bounds.inner(hull(boxes, first, count), some)
            if inner is None:
                continue
            child = below.first_child(depth, place)
            second = first + int(below.counts[depth + 1][child])
            waiting = Pending.of(inner, len(everyone))
            pending.append((depth + 1, child + 1, second, waiting))
            pending.append((depth + 1, child, first, waiting))
        bounds.tilt()
    except Rejected as error:
        return Checked(part.leaves, math.inf, str(error))
    return Checked(below.leaves, bounds.highest)


def highest_bound(
    agents: Agents,
    tree: Tree,
    enough: float,
    watch: Callable[[str], None],
    look: Look = no_look,
    each: Each | None = None,
    strict: bool = False,
) -> float:
    """The highest bound of a leaf, in the user's units, rounded up.

    With ``strict``, a part with a leaf above ``enough`` ends the check of a large tree. A bound is
    improved only until it is ``enough``. ``each`` may check several parts at once.
    """
    walk = _Walk(agents, tree, enough, look)
    limit = walk.context.enough
    told = time.monotonic()
    watch(f"0 of {tree.leaves:,} leaves")
    answered = 0
    if each is None:
        answers: Iterable[Checked] = (check_part(part, look) for part in walk.parts())
    else:
        answers = each(check_part, walk.parts())
    for found in answers:
        if answered == len(walk.handed_out):
            reject("there are more answers than parts of the tree")
        wanted = walk.handed_out[answered]
        answered += 1
        look()
        if found.fault is not None:
            reject(found.fault)
        if found.leaves != wanted:
            reject(f"a part of {wanted} leaves came back as one of {found.leaves}")
        walk.above.note(np.array([found.highest]))
        walk.done += wanted
        if strict and tree.leaves * len(agents.weight) > WHOLE and walk.above.highest > limit:
            break
        if time.monotonic() - told > OFTEN:
            told = time.monotonic()
            watch(f"{walk.done:,} of {tree.leaves:,} leaves")
    look()
    highest = walk.in_user_units()
    if strict and highest > enough and walk.done != tree.leaves:
        reject(f"a leaf allows {highest!r}, more than the claimed upper bound {enough!r}")
    if answered != len(walk.handed_out) or walk.done != tree.leaves:
        reject("some leaves were not checked")
    return highest


class _Walk:
    """From the roots down to the parts.

    handed_out : the leaves of each part, in order
    done : leaves known to be low enough, or whose bound is recorded
    """

    def __init__(self, agents: Agents, tree: Tree, enough: float, look: Look) -> None:
        self.agents = agents
        self.tree = tree
        self.context = context_of(agents, enough)
        self.everyone = all_of(agents)
        self.above = LeafBounds(self.context, self.everyone, look)
        self.handed_out: list[int] = []
        self.done = 0

    def parts(self) -> Iterator[Subtree]:
        """The parts, left to right; what lies between them and the roots is settled here."""
        tree = self.tree
        roots = tree.roots(self.agents.low, self.agents.high)
        count = len(self.everyone)
        pending = [(node, Pending.of(self.everyone, count)) for node in reversed(roots)]
        least = WIDTH * (self.context.dimension + 1)
        while pending:
            node, waiting = pending.pop()
            some = waiting.agents(self.everyone)
            if node.leaves == 1 or node.leaves * max(least, len(some)) <= PART:
                self.handed_out.append(node.leaves)
                numbered = replace(some, numbers=np.arange(len(some)))
                yield Subtree(self.context, tree.below(node), node.box, numbered, node.leaves)
                continue
            inner = self.above.inner(node.box, some)
            if inner is None:
                self.done += node.leaves
                continue
            first, second = tree.children(node)
            waiting = Pending.of(inner, count)
            pending += [(second, waiting), (first, waiting)]

    def in_user_units(self) -> float:
        """The highest bound; below 0 if no rule at all is left."""
        highest = self.above.highest
        if highest < 0:
            return highest
        if self.context.p is not None:
            return up(Fraction(highest) * self.agents.gain_unit)
        share = self.agents.exact_weights.share
        return up(min(Fraction(1), Fraction(highest) * share))
