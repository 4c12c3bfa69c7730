"""Search over cones of directions: closed by counting, then by a MILP, else cut into smaller ones.

The sphere of directions is cut into cones (`cones`). A cone is closed if its upper bound is not
above the best mechanism found; most are, by counting alone. Where counting does not suffice, the
open cones of a facet are handed to a prover (a MILP over their common hull), and if that neither
closes them nor finds anything better, they are cut in two groups and tried again. The order is the
same on every machine: budgets are counted in cones and nodes, not in seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from mipmech.budget import Event, Stop, Timer
from mipmech.oracles.shared.cones import ConeSet, Frontier, Ranges, cover, halves, joined, ranges
from mipmech.oracles.shared.facets import Part
from mipmech.oracles.shared.goals import NUMBERS, Goal
from mipmech.oracles.shared.incumbent import Incumbent
from mipmech.oracles.shared.restrictions import NOTHING
from mipmech.oracles.shared.slices import Slice
from mipmech.validation import Flags, Floats, Numbers

# Cones bounded at once: enough to keep numpy busy; fewer if the agents are many.
BATCH = 4096
LEAST_BATCH = 32
# Number of the most promising centres of a batch that are tried as directions.
CENTRES = 64
# The first look: islands of random directions (fewer on small spheres), then rounds of smaller and
# smaller changes to the best of each.
ISLANDS = 10
DIRECTIONS = 120
ROUNDS = (8, 30)
SURVIVORS = 4
OFFSPRING = 12
SHRINK = 0.85
# Groups of cones that cannot be cut, about which the prover is asked in the end.
FINE_GROUPS = 32
# If this many cones do not close everything, a second, thorough search for rules pays.
AT_FIRST = 20_000
# A cone is not cut further once its directions differ by less than this: what is open there is a
# tie that floats can hardly meet, and is reported as a gap.
FINEST = 1e-10


class Proof(Enum):
    """The verdict of a prover on some open cones."""

    CLOSED = "nothing better in them"
    BETTER = "something better was found"
    UNDECIDED = "neither"


@dataclass(frozen=True, eq=False)
class Group:
    """Open cones of one facet, and those of them too fine to cut."""

    cones: ConeSet
    fine: ConeSet

    @property
    def bound(self) -> float:
        """An upper bound for their directions."""
        return max(
            (float(c.bound.max()) for c in (self.cones, self.fine) if len(c)), default=NOTHING
        )


Prover = Callable[["Search", ConeSet], tuple[Proof, float]]


class Search(Incumbent):
    """The state of a search: the best mechanism found, and what is still open.

    proved : closed groups have no more than this (above ``best`` only by a prover's tolerance);
        before the start, no direction has more
    """

    def __init__(self, part: Part, goal: Goal, timer: Timer, best: float = -math.inf) -> None:
        super().__init__(part, goal, timer, best)
        self.proved = goal.most
        self.limits = goal.limits
        self.groups: list[Group] = []
        self.active: Frontier | None = None
        self.hand: ConeSet | None = None
        self.ceiling = math.inf
        self.exceeded = False
        self.work = 0
        self.models = 0
        self.nodes = 0
        self._running = 0  # nodes of the model that is being solved
        self._told = 0.0
        self.batch = max(LEAST_BATCH, min(BATCH, NUMBERS // len(part.reach)))

    # ------------------------------------------------------------ the best found

    def look(self, rounds: int, thorough: bool) -> None:
        """Random directions, then small changes to the best of them; always the same ones."""
        part, d = self.part, self.part.dimension
        if part.points is not None:
            for v in part.points:
                self.offer(v)
            return
        random = np.random.default_rng(0)
        # Several populations, because one soon consists of neighbours.
        islands, directions = min(ISLANDS, 2 * d - 1), min(DIRECTIONS, 30 * d)
        v = self._in_cone(part.draw(random, islands * directions))
        v = v.reshape(islands, directions, d)
        step = 0.5
        for _ in range(rounds):
            estimates = self.goal.estimates(v.reshape(-1, d)).reshape(islands, -1)
            order = np.argsort(-estimates, axis=1, kind="stable")[:, :SURVIVORS]
            v = np.take_along_axis(v, order[:, :, None], axis=1)
            best = np.take_along_axis(estimates, order[:, :1], axis=1)[:, 0]
            self.offer_best(v[:, 0], best)
            if self.timer.left == 0:
                return
            near = np.repeat(v, OFFSPRING, axis=1)
            near = part.onto(near + step * random.standard_normal(near.shape))
            near = self._in_cone(near.reshape(-1, d)).reshape(near.shape)
            v = np.concatenate([v, near], axis=1)
            step *= SHRINK
        if thorough:
            for start in v[:, 0]:
                self.augment(start)

    def _in_cone(self, v: Floats) -> Floats:
        """Directions, (n, d), moved into the cone that is demanded."""
        return v if self.limits is None else self.limits.allowed(v)

    # ------------------------------------------------------------ bounds

    @property
    def upper(self) -> float:
        """No direction has more than this."""
        bounds = [self.proved, *(group.bound for group in self.groups)]
        if self.active is not None and self.hand is not None:
            bounds += [self.active.bound, *self.hand.bound]
        return max(self.best, min(self.ceiling, max(bounds)))

    @property
    def infeasible(self) -> bool:
        """Whether no rule is allowed, as far as was proved."""
        return self.upper < 0

    @property
    def closed(self) -> bool:
        """Whether the bounds meet."""
        return self.upper <= self.goal.enough(self.best)

    def note_ceiling(self, ceiling: float) -> None:
        """Record a bound on all directions."""
        self.ceiling = min(self.ceiling, ceiling)
        self.tell()

    def solved(self, nodes: int) -> None:
        """Record a model that was solved."""
        self.models += 1
        self.nodes += nodes
        self._running = 0

    def follow(self, in_goal: Callable[[float], float]) -> Callable[[Event], None] | None:
        """Pass a solver's events on; ``in_goal`` makes its bounds safe, in the goal's units."""
        if self.timer.budget.watch is None:
            return None

        def watch(event: Event) -> None:
            if event.upper is not None and math.isfinite(event.upper):
                self.ceiling = min(self.ceiling, in_goal(event.upper))
            self._running = event.work
            self.tell(often=True)

        return watch

    def tell(self, often: bool = False) -> None:
        """Report progress, at most a few times a second."""
        if often and self.timer.seconds - self._told < 0.1:
            return
        self._told = self.timer.seconds
        exactly = self.goal.exactly
        work = self.work + self.nodes + self._running
        self.timer.tell(exactly(max(0.0, self.best)), exactly(max(0.0, self.upper)), work)

    # ------------------------------------------------------------ the search

    def start(self) -> None:
        """Begin with everything open."""
        self.groups = [self._bounded(cover(self.part))]
        self.proved = self.goal.nothing

    def run(
        self, prove: Prover | None, first: int, later: int, most: int, nodes: float = math.inf
    ) -> Stop:
        """Search until everything is closed, or the time, cones or nodes are used up.

        first, later, most : cones to count before the prover is asked, then in each group, and in
            all
        nodes : of the prover, at most
        """
        self.start()
        self.look(ROUNDS[0], thorough=False)
        self.tell()
        self._count(0, min(AT_FIRST, first))
        if self.groups[0].bound > self.goal.enough(self.best):
            self.look(ROUNDS[1], thorough=True)
            self._count(0, max(0, first - self.work))
        if self.groups and len(self.groups[0].cones):
            self.groups = _by_facet(self.groups[0])
        while True:
            self._drop_closed()
            open_ = [i for i, group in enumerate(self.groups) if len(group.cones)]
            if not open_:
                self._try_fine()
                self._drop_closed()
                if self.limits is not None and prove is not None:
                    self._prove_fine(prove)
                self.tell()
                return Stop.FINISHED
            if self.timer.left == 0:
                return Stop.TIME
            if self.work >= most:
                return Stop.NODES
            place = max(open_, key=lambda i: self.groups[i].bound)
            self._count(place, min(later, most - self.work))
            if self.timer.left > 0 and self.groups[place].bound > self.goal.enough(self.best):
                if self.nodes >= nodes:
                    return Stop.NODES
                self._prove(place, prove)
            self.tell(often=True)

    def refute(self, most: int) -> bool:
        """Whether counting alone shows that no direction has more than ``best`` (a given target).

        Gives up when a direction with more is seen, or after ``cones`` cones.
        """
        self.start()
        limit = self.work + most
        while self.groups and len(self.groups[0].cones) and self.work < limit:
            self._count(0, min(self.batch, limit - self.work), offers=False)
            self._drop_closed()
            if self.exceeded or self.timer.left == 0:
                return False
        return not self.groups

    def _drop_closed(self) -> None:
        enough = self.goal.enough(self.best)
        self.proved = max([self.proved, *(g.bound for g in self.groups if g.bound <= enough)])
        self.groups = [group for group in self.groups if group.bound > enough]

    def _bounded(self, cones: ConeSet) -> Group:
        """A group of cones that have no bounds yet."""
        where = ranges(self.part, cones)
        bounds = self._allowed(cones, where, self.goal.bounds(where, self.best))
        cones = ConeSet(cones.lower, cones.upper, bounds)
        fine = self._too_fine(where)
        return Group(cones[~fine], cones[fine])

    def _count(self, place: int, most: int, offers: bool = True) -> None:
        """Cut and bound the cones of a group, the most promising first, until it is closed."""
        group = self.groups[place]
        fine = [group.fine]
        limit = self.work + most
        self.hand = group.cones[:0]
        open_ = self.active = Frontier(group.cones, self.goal.grain)
        try:
            self.groups[place] = Group(group.cones[:0], group.fine)
            while self.work < limit and self.timer.left > 0 and not self.exceeded:
                self.proved = max(self.proved, open_.drop(self.goal.enough(self.best)))
                if not open_:
                    break
                self.hand = open_.take(self.batch)
                children, stuck = self._cut(self.hand, offers)
                self.work += 2 * len(self.hand)
                open_.add(children)
                fine.append(stuck)
                if len(stuck):
                    self.groups[place] = Group(group.cones[:0], joined(fine))
                self.hand = self.hand[:0]
                self.tell(often=True)
        finally:
            open_.add(self.hand)  # what was being cut if something went wrong
            rest = open_.everything() if open_ else self.hand[:0]
            self.groups[place] = Group(rest, joined(fine))
            self.active = None

    def _cut(self, cones: ConeSet, offers: bool) -> tuple[ConeSet, ConeSet]:
        """The halves of these cones that are still open, and those too fine to be cut again."""
        children = halves(cones)
        where = ranges(self.part, children)
        bounds = np.minimum(self.goal.bounds(where, self.best), children.bound)
        bounds = self._allowed(children, where, bounds)
        top = np.argsort(-bounds, kind="stable")[:CENTRES]
        estimates = self.goal.estimates(where.centre[top])
        if offers:
            self.offer_best(where.centre[top], estimates)
        else:
            self.exceeded = bool(estimates.max() > self.goal.enough(self.best))
        open_ = bounds > self.goal.enough(self.best)
        least = self.goal.nothing
        self.proved = max(self.proved, float(bounds[~open_].max(initial=least)))
        fine = self._too_fine(where)
        children = ConeSet(children.lower, children.upper, bounds)
        return children[open_ & ~fine], children[open_ & fine]

    def _allowed(self, cones: ConeSet, where: Ranges, bounds: Floats) -> Floats:
        """The bounds of cones, of those too in which no direction is allowed."""
        if self.limits is None:
            return bounds
        return np.where(self.limits.outside(cones, where), self.goal.nothing, bounds)

    def _too_fine(self, where: Ranges) -> Flags:
        part = self.part
        if part.dimension == 0:
            return np.ones(len(where.centre), dtype=bool)
        effect = where.sine * part.extent
        # With a range of angles, cutting the sphere finer than that range gains nothing.
        resolution = max(FINEST * part.extent, part.blur / 8)
        return np.asarray(effect <= max(float(part.slack.max()), resolution))

    def _try_fine(self) -> None:
        """Look for a mechanism in cones that cannot be refined: ties are met there or never."""
        if not self.groups:
            return
        fine = joined(group.fine for group in self.groups)
        for place in np.argsort(-fine.bound, kind="stable")[:CENTRES]:
            if fine.bound[place] > self.goal.enough(self.best):
                middle = (fine.lower[place] + fine.upper[place]) / 2
                self.offer(self.part.onto(middle) if len(middle) else middle)

    def _prove_fine(self, prove: Prover) -> None:
        """Ask about cones that cannot be cut, some groups of them."""
        if self.part.dimension == 0:
            return
        if isinstance(self.part, Slice):
            self.groups = [part for group in self.groups for part in _by_facet(group)]
        for place in reversed(range(min(len(self.groups), FINE_GROUPS))):
            if self.timer.left == 0:
                return
            verdict, bound = prove(self, self.groups[place].fine)
            if verdict is Proof.CLOSED:
                self.proved = max(self.proved, bound)
                del self.groups[place]
        self._drop_closed()

    def _prove(self, place: int, prove: Prover | None) -> None:
        group = self.groups[place]
        verdict, bound = Proof.UNDECIDED, math.inf
        if prove is not None:
            verdict, bound = prove(self, joined([group.cones, group.fine]))
        if verdict is Proof.CLOSED:
            self.proved = max(self.proved, bound)
            del self.groups[place]
        elif verdict is Proof.UNDECIDED and self.timer.left > 0:
            self.groups[place : place + 1] = _in_two(group)


def _by_facet(group: Group) -> list[Group]:
    """The cones of each facet of the cube."""

    def facet(cones: ConeSet) -> Numbers:
        same = (cones.lower == cones.upper) & (np.abs(cones.lower) == 1)
        which = same.argmax(axis=1)
        sign = cones.lower[np.arange(len(cones)), which]
        return np.asarray(2 * which + (sign > 0))

    wide, fine = facet(group.cones), facet(group.fine)
    return [Group(group.cones[wide == f], group.fine[fine == f]) for f in np.union1d(wide, fine)]


def _in_two(group: Group) -> list[Group]:
    """Cut across the longest side of the hull of the cones."""
    cones = joined([group.cones, group.fine])
    low, high = cones.lower.min(axis=0), cones.upper.max(axis=0)
    side = int((high - low).argmax())
    middle = (low[side] + high[side]) / 2

    def left(lot: ConeSet) -> Flags:
        return np.asarray(lot.lower[:, side] + lot.upper[:, side] < 2 * middle)

    a, b = left(group.cones), left(group.fine)
    parts = [Group(group.cones[a], group.fine[b]), Group(group.cones[~a], group.fine[~b])]
    return [g for g in parts if len(g.cones) or len(g.fine)]
