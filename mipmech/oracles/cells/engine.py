"""The cells engine: geometric branch and bound over directions and thresholds.

It answers three questions: the greatest density at η (`Cells`), the greatest soft density at η
(`CellsSoft`), and the greatest gain over all directions (`GainSearch`). The tree that it leaves is
a proof that another program can check (`certificate`, `checker`, `docs/proof-format.md`).

**Nodes.** A node is a cell of directions times an interval [b0, b1] of thresholds. A cell is a box
on a facet of the cube: v = x/‖x‖ with |x_j − c_j| ≤ h_j, where h is 0 in the facet's own
coordinate. The facets cover the sphere; a node is cut in two across one side of its box or
across its thresholds.

**Scores over a cell.** Directions have length N(v) = 1, N dual to the norm of the costs; v = x/N(x)
for a point x of the box. Let a = c/N(c), and g a vector with g·a = 1 and g·x ≤ N(x) over the box:

    l2    g = a = c/‖c‖                            μ = (‖c‖² − Σ h_j|c_j|)/‖c‖
    l1    g = the facet's own axis, with its sign   μ = 1; N(x) = max|x_j| = 1, so that v = x
    linf  g_j = the sign of x_j over the box, or    μ = Σ (|c_j| − h_j) over the known signs
          0 if it has both (then c_j = 0)

with μ = min g·x over the box. Scaled to g·x = 1, a point of the cell is y = x/(g·x), and v = κy
with κ = (g·x)/N(x) ≤ 1. From below κ is at least cos α = 1/√(1 + Σ (h_j/μ)²) for l2, 1 for l1, and
μ/(μ + Σ h_j), the sum over open signs, for linf. For a vector z let t = a·z; then
y·z = t + x·(z − tg)/(g·x), and

    |y·z − t| ≤ e = Σ_j (h_j/μ) |z_j − t g_j|,

because c·(z − tg) = 0. So v·z is at most t + e (times the least κ if that is negative), and at
least t − e (times the least κ if that is positive).

**Rates.** What soft density is multiplied by is v·p for l2, and g·p for l1, the same all over a
facet. For linf it is g·p plus ±p_j for every open sign. On the edges between facets agents do what
is best for quality (l1), or leave features of weight 0 alone (linf); either way a rule there has no
more than the best of the facets that meet in it, of which some leaf is a part.

**Agents in a node.** With scores in [lo, hi], agent i's distance d = b − score lies in
[b0 − hi, b1 − lo] = [least, most]. If most < 0 or least > ℓ it is out of the margin all over the
node; if least ≥ 0 and most < ℓ it is in it, and its distance is linear in (v, b). Others are open.

**The best threshold is an end.** For every direction, density and soft density are greatest at
some b = score_i + ℓ_i (for density: the first end among those covered). A node where no agent can
have most ≥ ℓ ≥ least contains no such threshold and is closed.

**Bounds.** Density: the weight of those in, and of the open ones. Soft density: φ(d) = d on [0, ℓ],
else 0, is for an open agent at most top = min(most, ℓ); and, because it is convex up to ℓ, at most
the line through (base, 0) and (top, top), base = min(least, 0), wherever that is linear in (v, b)
too. Linear estimates of all agents are *added before* they are bounded over the node: deviations of
different agents cancel. Two sums are tried: top for every open agent, and a blend of line
and top with a weight that says how much of the agent's range of distances at b1 is within ℓ. Times
the greatest v·p: a bound of the gain.

**Tilted estimates.** An agent with most > ℓ may be estimated by any line through (ℓ, ℓ) with slope
between −ℓ/(most − ℓ) and that of the line above: such a line lies above φ on [least, most]. The
slopes are Lagrange multipliers: chosen well, they cancel the slopes of the sum, and what is left
over the node is of second order. Each is set in turn, twice, to the value that makes the sum of
|slope|·width over b and over the sides least (a weighted median). For the gain, the product
(v·p)(K + W b − v·S) is bounded around the centre, with its first-order terms added
before they are bounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from mipmech.budget import Stop, Timer
from mipmech.errors import InputError
from mipmech.model.costs.pricing import Norm
from mipmech.model.edge_of_reach import steady
from mipmech.model.geometry import Geometry, sizes
from mipmech.model.grading import Recount
from mipmech.model.mechanism import Mechanism, from_reduced, to_reduced
from mipmech.model.requirements import Demands
from mipmech.model.requirements.feasible import best_feasible, steady_feasible
from mipmech.model.thresholds import best_threshold
from mipmech.oracles.base import Answer, FeasibleOracle, grade
from mipmech.oracles.cells import kernel
from mipmech.oracles.cells.allowed import restricted
from mipmech.oracles.cells.blocks import CellProblem
from mipmech.oracles.cells.compiling import warm
from mipmech.oracles.cells.search import DIRECTIONS, CellSearch
from mipmech.oracles.shared.facets import Facet, Part, parts_at
from mipmech.oracles.shared.goals import RESIDUE, WHOLE, Density, Goal, SoftDensity
from mipmech.oracles.shared.restrictions import restrictions_of
from mipmech.oracles.shared.slices import Slice, slice_at
from mipmech.rationals import round_down
from mipmech.tolerances import EPSILON, STEADY_LOSS
from mipmech.validation import Floats, at_least
from mipmech.workers.executor import Executor
from mipmech.workers.ordered import ExecutorPool

# Density depends on ties; scores nearer than this are not told apart, and what stays open is
# reported as a gap.
FINEST_DENSITY = 1e-11
# The smallest relative gap that floats can be asked for.
LEAST_GAP = 1e-8
# Where an agent's end coincides with another's score all along a facet, cutting it does not help:
# such ties are left as a gap after so many nodes (some ten seconds).
TIED = 20_000_000
# The room that a search leaves for the checker, which rounds in another way.
ROOM = 2e-9
# Rounds of smaller and smaller steps along a side of the cone, and steps in each.
RIM_ROUNDS, RIM_TRIES, RIM_SHRINK = 30, 30, 0.6
# Scores computed for a first look at facets, and directions of each at least.
LOOK, LEAST_LOOK = 500_000, 20
# Products and roots of floats, many times over.
RELATIVE = 1 + Fraction(1, 10**12)


# The costs' norms as the compiled code knows them.
NORMS: dict[Norm, int] = {"l2": kernel.L2, "l1": kernel.L1, "linf": kernel.LINF}


def rounding_of_scores(y: Floats, reach: Floats, norm: Norm = "l2") -> Floats:
    """What computing scores over cells and comparing them with reaches may be off by, (m,) array.

    y : (d, m) array. A score takes a few sums of d products; a comparison one rounding. For linf
    each of the d products may be as large as the whole score.
    """
    lengths = sizes(y.T, norm)
    terms = len(y) + 2 if norm != "linf" else (len(y) + 2) * max(1, len(y))
    rounded: Floats = 64 * terms * EPSILON * lengths + 16 * EPSILON * reach
    return rounded


@dataclass(eq=False)
class Keeper:
    """The mechanism found that is best by an exact measure, as graded."""

    measure: Callable[[Recount], Fraction]
    recount: Recount | None = None

    def offer(self, found: Recount) -> None:
        """Keep the better one."""
        if self.recount is None or self.measure(found) > self.measure(self.recount):
            self.recount = found

    @property
    def mechanism(self) -> Mechanism | None:
        """The best mechanism found."""
        return None if self.recount is None else self.recount.mechanism


# ------------------------------------------------------------------ at a fixed η


@dataclass(frozen=True)
class Cells(FeasibleOracle):
    """The density oracle by cells: exact, up to ties that floats cannot tell.

    most_nodes : nodes after which it stops and leaves a gap
    """

    most_nodes: int = 1_000_000_000
    facets: ClassVar[bool] = True
    own: ClassVar[bool] = False

    def __post_init__(self) -> None:
        at_least(0, most_nodes=self.most_nodes)

    def goal(self, part: Part) -> Goal:
        """What is maximised."""
        return Density.on(part)

    def answer(self, geometry: Geometry, eta: float, timer: Timer) -> Answer:
        goals, nodes = [self.goal(part) for part in parts_at(geometry, eta)], timer.budget.nodes
        goal = goals[0]  # all facets have the same agents
        most = self.most_nodes if nodes is None else min(self.most_nodes, nodes)
        if geometry.norm != "l2":
            most = min(most, TIED)
        search, best, stop = _search_at(goals, eta, timer, most)
        if geometry.demands is not None and search.best < 0 and search.finished:
            stop = Stop.UNMET if search.closed < 0 else stop
        upper = max(Fraction(0), _upper(search, goal))
        return grade(
            self, geometry, eta, best.mechanism, stop=stop, timer=timer,
            upper=upper, work={"nodes": search.nodes},
        )  # fmt: skip


@dataclass(frozen=True)
class CellsSoft(Cells):
    """The soft-density oracle by cells; it stops at the relative gap ``gap``."""

    gap: float = 1e-5
    soft: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.gap < 1:
            raise InputError(f"is {self.gap}; give a number from 0 to below 1", field="gap")

    def goal(self, part: Part) -> Goal:
        return SoftDensity(part, self.gap)


def density_search(
    geometry: Geometry, eta: float, timer: Timer, most: float = math.inf, keep: bool = False
) -> tuple[CellSearch, Keeper, Stop]:
    """Search for the densest mechanism at η; values are whole weights (`masses.Masses`)."""
    return _search_at([Density.on(slice_at(geometry, eta))], eta, timer, most, keep)


def _search_at(
    goals: Sequence[Goal], eta: float, timer: Timer, most: float, keep: bool = False
) -> tuple[CellSearch, Keeper, Stop]:
    """A search of one slice, or of all facets at η."""
    goal = goals[0]
    part, geometry = goal.part, goal.part.geometry
    facets = [goal.part for goal in goals if isinstance(goal.part, Facet)]
    y, shift, boxes = np.ascontiguousarray(part.y.T), part.shift, None
    if facets:  # in the coordinates of u, which all facets share
        y, shift = np.ascontiguousarray(geometry.z[part.agents].T), np.zeros(len(part.agents))
        boxes = np.vstack([_boxes(facet) for facet in facets])
    reach = np.ascontiguousarray(goal.reach)
    slack = part.slack + rounding_of_scores(np.vstack([y, shift]), reach, geometry.norm)
    problem = CellProblem(
        kernel.SOFT, y, shift, slack, reach, part.weight.copy(), p=np.zeros(len(y)),
        norm=NORMS[geometry.norm], boxes=boxes,
    )  # fmt: skip
    factor, margin = 1.0, 0.0
    if isinstance(goal, Density):
        best = Keeper(lambda found: found.density)
        weight, margin = goal.mass.whole.astype(np.float64), float(goal.mass.excess)
        problem = replace(problem, kind=kernel.DENSITY, weight=weight, finest=FINEST_DENSITY)
        if geometry.demands is not None:  # bounds need not be whole numbers
            margin += WHOLE
    else:
        best = Keeper(lambda found: found.soft_density_below)
        # No cell is so small that its bound is off by less than the slack.
        problem = replace(problem, finest=max(problem.finest, float(part.weight @ slack)))
        factor = 1 / (1 - max(goal.gap, LEAST_GAP))
        if geometry.demands is not None:  # they may leave nothing to move for
            margin = RESIDUE * goal.most

    limits = goal.limits
    problem = restricted(problem, geometry, part.agents, part if isinstance(part, Slice) else None)

    def offer(v: Floats, _estimate: float) -> float:
        if limits is None or facets or not len(limits.rows):
            return graded(v)
        inside = limits.allowed(v[None, :])[0]
        on_sides = limits.on_sides(inside)
        value = graded(inside)
        return value if on_sides is None else max(value, graded(on_sides))

    def graded(v: Floats) -> float:
        u = v if facets else part.direction(v)
        found = goal.grade(from_reduced(geometry, u, 0.0))
        if found is None or not found.eta_within(eta, geometry.band * geometry.p_norm):
            return goal.nothing
        best.offer(found)
        return goal.value(found)

    def tell() -> None:
        above = max(Fraction(0), _upper(search, goal))
        timer.tell(goal.exactly(max(0.0, search.best)), above, search.nodes)

    in_cone = limits is not None and len(limits.rows) > 0 and not facets
    search = CellSearch(
        problem, offer, timer, factor=factor, margin=margin, keep=keep, tell=tell,
        put_right=limits.allowed if limits is not None and in_cone else None,
    )  # fmt: skip
    if facets:
        _look_on_facets(search, facets)
    else:
        search.look()
    some = [facet.middle for facet in facets] or _two(problem.dimension)
    _try_any(search, some)
    stop = search.run(timer.budget.threads, most)
    if best.recount is None:
        offer(some[0], 0.0)
    return search, best, stop


def _two(dimension: int) -> list[Floats]:
    """Two opposite directions."""
    first = np.eye(max(dimension, 1))[0, :dimension]
    return [first, -first]


def _try_any(search: CellSearch, some: Sequence[Floats]) -> None:
    """If no rule is known: perhaps nobody need be accepted, and any direction will do."""
    if search.best < 0:
        for v in some:
            search.try_direction(v, 0.0)


def _boxes(facet: Facet) -> Floats:
    """A facet as boxes of the cube: centres and half-widths of u, (r, 2k) array."""
    signs, k = facet.signs, len(facet.signs)
    if not facet.simplex:
        return np.concatenate([signs, 1.0 - np.abs(signs)])[None, :]
    axes = np.eye(k)
    centres = signs * (1 + axes) / 2
    return np.hstack([centres, (1 - axes) / 2])


def _look_on_facets(search: CellSearch, facets: Sequence[Facet]) -> None:
    """Offer the best of some random directions of each facet; fixed seed."""
    random = np.random.default_rng(0)
    count = LOOK // (len(facets) * search.problem.y.shape[1])
    count = min(max(count, LEAST_LOOK), DIRECTIONS[1] * search.problem.dimension // len(facets))
    for facet in facets:
        points = facet.points if facet.points is not None else facet.draw(random, count)
        limits = restrictions_of(facet)
        if limits is not None:
            points = limits.allowed(points)
        u = np.array([facet.direction(v) for v in points])
        values = search.problem.values(u)
        for place in np.argsort(-values, kind="stable")[:3]:
            search.try_direction(u[place], float(values[place]))
    search.tell()


def _upper(search: CellSearch, goal: Goal) -> Fraction:
    """No mechanism has more, in the user's terms; whole numbers are added without rounding."""
    if isinstance(goal, Density):
        demanded = goal.part.geometry.demands is not None
        return goal.exactly(math.floor(search.upper + WHOLE) if demanded else search.upper)
    return _above(search) * Fraction(goal.part.geometry.unit)


def _above(search: CellSearch) -> Fraction:
    """The search's upper bound for sums in floats, with their rounding added."""
    return Fraction(search.upper) * RELATIVE + Fraction(_doubt(search.problem))


def _doubt(problem: CellProblem) -> float:
    """What sums over all agents may be off by."""
    m = problem.y.shape[1]
    size = problem.lengths + np.abs(problem.shift) + problem.reach
    return float(8 * (m + 64) * EPSILON * (problem.weight @ size))


# ------------------------------------------------------------------ the gain over all directions


def gain_problem(geometry: Geometry, etas: Floats | None = None) -> CellProblem:
    """The gain over all directions, or over those with one of these values of η."""
    counts = geometry.weight > 0
    z = np.ascontiguousarray(geometry.z[counts].T)
    reach = np.ascontiguousarray(geometry.reach[counts])
    slack = geometry.rounding.z[counts] + rounding_of_scores(z, reach, geometry.norm)
    rates = np.empty(0) if etas is None else np.sort(etas)
    # What v·p may be off by, and the band within which η counts as met.
    band = geometry.rounding.p + (2 * geometry.band + 64 * EPSILON) * geometry.p_norm
    problem = CellProblem(
        kernel.GAIN, z, np.zeros(z.shape[1]), slack, reach, geometry.weight[counts].copy(),
        geometry.p.copy(), rates, band, norm=NORMS[geometry.norm],
    )  # fmt: skip
    return restricted(problem, geometry, np.flatnonzero(counts))


@dataclass(eq=False)
class GainSearch:
    """A search for the greatest gain; bounds in the user's units.

    gap : the relative gap at which it stops
    keep : remember the tree, for a certificate
    tell : called to report progress
    """

    geometry: Geometry
    timer: Timer
    _: KW_ONLY
    gap: float
    keep: bool = False
    tell: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.best = Keeper(lambda found: found.gain)
        self.problem = gain_problem(self.geometry)
        gap = max(self.gap, LEAST_GAP)
        # A step off the edge that costs more would keep the gap from closing.
        self.most_loss = min(STEADY_LOSS, gap / 4)
        factor = 1 / (1 - gap) * (1 - ROOM)
        demands = self.geometry.demands
        in_cone = demands is not None and demands.cone is not None
        self.search = CellSearch(
            self.problem, self._offer, self.timer, factor=factor, keep=self.keep, tell=self.tell,
            put_right=self._put_right if in_cone else None,
        )  # fmt: skip

    def _offer(self, v: Floats, _estimate: float) -> float:
        geometry, demands = self.geometry, self.geometry.demands
        along = from_reduced(geometry, v, 0.0)
        if demands is None:
            found = steady(best_threshold(geometry.instance, along), self.most_loss)
        else:
            met = best_feasible(demands, along)
            if met is None:
                return self.search.nothing
            found = steady_feasible(demands, met, self.most_loss)
            if self.best.recount is None or found.gain > self.best.recount.gain:
                found = self._on_rims(demands, found)
                if geometry.norm != "l2":
                    found = self._along_rim(demands, found)
        self.best.offer(found)
        return max(0.0, round_down(found.gain / Fraction(geometry.unit)))

    def _on_rims(self, demands: Demands, found: Recount) -> Recount:
        """The rule, or a better one on the rim of the cone."""
        for _ in demands.cone.pairs if demands.cone is not None else ():
            graded = [best_feasible(demands, rim) for rim in demands.rims(found.mechanism)]
            better = max((g for g in graded if g is not None), key=lambda g: g.gain, default=found)
            if better.gain <= found.gain:
                break
            found = steady_feasible(demands, better, self.most_loss)
        return found

    def _along_rim(self, demands: Demands, found: Recount) -> Recount:
        """The rule, or a better one on the same side of the cone; fixed seed.

        The rates of l1 and linf jump there, so nothing inside tells where on it to look.
        """
        geometry, cone = self.geometry, demands.cone
        rim = None if cone is None else cone.rim(found.mechanism.weights)
        if rim is None or rim == cone:
            return found
        random = np.random.default_rng(0)
        weights = np.array(found.mechanism.weights)
        free = np.zeros(len(weights))
        free[list(rim.places)] = np.abs(weights).max()
        best, step = 0.0, 0.5
        for _ in range(RIM_ROUNDS):
            tries = weights + step * free * random.standard_normal((RIM_TRIES, len(weights)))
            inside = np.array([weights, *(rim.repaired(w) for w in tries.tolist())])
            inside = inside[inside.any(axis=1)]
            v = self.problem.unit(inside @ geometry.inverse.T)
            values = self.problem.values(v)
            best, weights = float(values.max()), inside[int(values.argmax())]
            step *= RIM_SHRINK
        if best <= self.search.best:
            return found
        weights = weights / geometry.length(geometry.inverse @ weights)
        graded = best_feasible(demands, Mechanism(tuple(weights.tolist()), 0.0))
        if graded is None or graded.gain <= found.gain:
            return found
        return steady_feasible(demands, graded, self.most_loss)

    def _put_right(self, v: Floats) -> Floats:
        """Directions, (n, k), as near ones in the cone that is demanded."""
        demands = self.geometry.demands
        assert demands is not None
        inside = [demands.repaired(from_reduced(self.geometry, u, 0.0)) for u in v]
        kept = [to_reduced(self.geometry, found)[0] for found in inside if found is not None]
        return np.array(kept or v[:1])

    def run(self, most: float = math.inf, executor: Executor | None = None) -> Stop:
        """Search until the gap is reached, the time is over, or ``most`` nodes were searched.

        With an executor, its workers search; what is found is the same.
        """
        if executor is not None:
            ExecutorPool(executor, warm).wake()
        seeds = self.geometry.steepest[None, :] if self.geometry.p_norm else None
        self.search.look(seeds)
        if self.search.best < 0 and seeds is not None:
            # Perhaps nobody need be accepted: then any direction will do.
            self.search.try_direction(
                (self._put_right(seeds) if self.search.put_right else seeds)[0], 0.0
            )
        return self.search.run(self.timer.budget.threads, most, executor)

    @property
    def lower(self) -> Fraction:
        """The exact gain of the best mechanism found; 0 without one.

        Below 0 only if rules must meet requirements, and the best that is known does harm.
        """
        found = self.best.recount
        if found is None:
            return Fraction(0)
        return found.gain if self.geometry.demands is not None else max(Fraction(0), found.gain)

    @property
    def infeasible(self) -> bool:
        """Whether no rule meets the requirements, according to the search."""
        return self.search.best < 0 and self.search.finished and self.search.closed < 0

    @property
    def upper(self) -> Fraction:
        """No mechanism gains more."""
        return max(self.lower, gain_above(self.search, self.geometry))


def gain_above(search: CellSearch, geometry: Geometry) -> Fraction:
    """The upper bound of a search for the gain, with the rounding of sums and of p added."""
    problem = search.problem
    moved = float(problem.weight @ problem.reach) * (1 + 1e-9)
    doubt = _doubt(problem) * geometry.p_norm_bounds[1] + geometry.rounding.p * moved
    upper = Fraction(max(0.0, search.upper)) * RELATIVE + Fraction(doubt)
    return upper * Fraction(geometry.unit)
