"""The exact oracles: density (`milp`) and soft density (`milp-soft`) at η, as MILPs.

Coordinates are turned so that p̂ = e₁ (`slices`); the models are those of `formulations`.

*Norm "cones"* (the default): the sphere is cut into cones (`search`). Counting closes most of them
before any model is built; the open ones of a facet go to HiGHS as one MILP over their common hull,
with big-M from the scores over just these cones, a window on b, and a row that asks for more than
the best found. "Infeasible" closes them; a solution is put back on the true sphere (`recovery`)
and recounted; if that is no improvement, the hull was too loose and is cut in two.

Costs of the norm l1 and linf have facets for a sphere (`facets`), on which the models are exact;
cones are boxes there, and several facets with one rate are searched in turn.

*Norm "secant", "box", "exact"*: one model for the whole sphere. Its bound is a bound; its maximiser
is put back on the true sphere and recounted; where it is loose (‖u‖ < 1), the approximation gets
another breakpoint there, and the model is solved again.

**Why the upper bound holds.** A cone closed by counting depends on float arithmetic, with every
rounding added to the intervals (`cones`, `Slice.slack`). A model closed by HiGHS depends on HiGHS:
its tolerances are set to 1e-7 (with 1e-9 it gave false bounds on soft models, 4 of 80; with 1e-7
none), M is at most a few units because agents are scaled to ‖z‖ ≤ 1 (and the longest reach, for
soft density), and beyond `Slice.slack` the margin is widened on each side by 1e-6·(1 + largest M),
for soft density by a tenth of that. So every true mechanism is feasible with a clearance of ten
tolerances (one), and HiGHS would have to err by that much to lose it. Hence the level "attested",
never "proved". Other solvers work with their own tolerances, mostly 1e-6.

**Cutoffs.** Equal weights: Σ s ≥ best + 1, so "infeasible" proves that best is optimal. Unequal
ones: Σ ω s ≥ best + γ with γ = 1e-6 of the mean weight, which proves best + γ and is reported so.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, get_args
from weakref import WeakKeyDictionary

import numpy as np

from mipmech.budget import Budget, Stop, Timer
from mipmech.errors import InputError
from mipmech.model.geometry import Geometry
from mipmech.model.mechanism import to_reduced
from mipmech.oracles.base import Answer, FeasibleOracle, grade, infeasible
from mipmech.oracles.milp.demanding import add_own, by_share, demanded_of, has_own
from mipmech.oracles.milp.search import ROUNDS, Proof, Search
from mipmech.oracles.shared.cones import ConeSet, cover, ranges, stabbed_more
from mipmech.oracles.shared.facets import Facet, Part, parts_at
from mipmech.oracles.shared.goals import UP, Density, Gain, Goal, SoftDensity
from mipmech.oracles.shared.recovery import Held, clear, climb
from mipmech.oracles.shared.slices import slice_at
from mipmech.solver import Has, Program, Solved, solve
from mipmech.tolerances import EPSILON
from mipmech.validation import Flags, Floats, at_least

Norm = Literal["cones", "secant", "box", "exact"]
Encoding = Literal["logarithmic", "binary"]

# The margin is widened by this, times 1 + the largest M: ten tolerances of the solver.
WIDEN = 1e-6
# Soft density adds the widening to what everyone moves, so it must be smaller there.
SOFT_WIDEN = 1e-7
# For unequal weights, the least improvement that a cutoff asks for, in mean weights.
IMPROVEMENT = 1e-6
# HiGHS drops coefficients up to this size.
DROPPED = 1e-9
# With reaches beyond this many units the numbers of a soft model differ too much for tolerances.
TOO_LONG = 1e3
# A conflict graph of more agents than this costs more than its rows save.
MOST_IN_GRAPH = 300
# An agent's end may coincide with another's score all along a facet, where cutting does not help:
# after so many cones such ties are left as a gap.
TIED = 1_000_000
# Cones counted before HiGHS is asked, if there are limits on who is accepted.
COUNTING = 8_000
# Likewise with constraints of a user's own, of which it knows nothing.
COUNTING_OWN = 1000
# Nodes for one MILP over a hull; if they do not suffice, the hull is cut in two.
NODES = 3000


@dataclass(frozen=True)
class Milp(FeasibleOracle):
    """The density oracle.

    norm : how ‖u‖ = 1 is approximated
    segments, encoding : of the secant approximation
    cliques : add rows from the conflict graph of the directions at η
    counting : cones to count before HiGHS is asked; 0 asks it at once
    solver : highs, or another that Pyomo knows
    """

    norm: Norm = "cones"
    segments: int = 8
    encoding: Encoding = "logarithmic"
    cliques: bool = True
    counting: int = 400_000
    most_cones: int = 20_000_000
    solver: str = "highs"
    facets: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for field, known in (("norm", get_args(Norm)), ("encoding", get_args(Encoding))):
            if getattr(self, field) not in known:
                said = f"is {getattr(self, field)!r}; give {' or '.join(known)}"
                raise InputError(said, field=field)
        at_least(1, segments=self.segments, most_cones=self.most_cones)
        at_least(0, counting=self.counting)

    def goal(self, part: Part) -> Goal:
        """What is maximised."""
        return Density.on(part)

    def answer(self, geometry: Geometry, eta: float, timer: Timer) -> Answer:
        if geometry.norm != "l2" and self.norm in ("secant", "box"):
            said = f"is {self.norm}, which approximates a sphere; the facets of {geometry.norm} are"
            raise InputError(f"{said} exact: give exact, or leave it out", field="norm")
        searches: list[Search] = []
        parts, stop = parts_at(geometry, eta), Stop.FINISHED
        for part in parts:
            # What one facet has need not be found again on the next.
            before = max(searches, key=lambda search: search.best, default=None)
            search = Search(part, self.goal(part), timer, before.best if before else -math.inf)
            searches.append(search)
            ended = self.searched(search, timer.budget)
            stop = ended if stop is Stop.FINISHED else stop
            if before is None and search.found is None:
                search.look(1, thorough=False)
            if timer.left == 0:
                break
        if timer.interrupted:
            stop = Stop.INTERRUPTED
        best = max(searches, key=lambda search: (search.found is not None, search.best))
        upper = max(search.goal.exactly(search.upper) for search in searches)
        if len(searches) == len(parts) and all(search.infeasible for search in searches):
            stop = Stop.UNMET
        upper = max(Fraction(0), upper)
        if len(searches) < len(parts):  # the time is over, and these are open
            upper = max(upper, best.goal.exactly(best.goal.most))
        work = {
            "cones_counted": sum(search.work for search in searches),
            "models_solved": sum(search.models for search in searches),
            "nodes": sum(search.nodes for search in searches),
        }
        found = best.mechanism
        return grade(self, geometry, eta, found, stop=stop, timer=timer, upper=upper, work=work)

    def searched(self, search: Search, budget: Budget) -> Stop:
        """Search one slice or facet."""
        part = search.part
        worth = worth_a_model(part, search.goal)
        if self.norm == "cones" or part.points is not None or not worth:
            prover = Prover(self, budget) if worth else None
            later, first = max(self.counting // 10, 1), self.counting
            cones = counted_first(part.geometry)
            first, later = int(min(first, cones)), int(min(later, cones))
            nodes = math.inf if budget.nodes is None else budget.nodes
            tied = isinstance(part, Facet) or by_share(part.geometry)
            most = min(self.most_cones, TIED) if tied else self.most_cones
            return search.run(prover, first, later, most, nodes)
        return _in_one_model(self, search, budget)


@dataclass(frozen=True)
class MilpSoft(Milp):
    """The soft-density oracle; it stops at the relative gap ``gap``."""

    gap: float = 1e-5
    soft: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.gap < math.inf:
            raise InputError(f"is {self.gap}; give 0 or more", field="gap")

    def goal(self, part: Part) -> Goal:
        return SoftDensity(part, self.gap)


def soft_bound(
    geometry: Geometry,
    eta_low: float,
    eta_high: float,
    target: float,
    cones: int,
    budget: Budget,
    *,
    milp: bool = False,
) -> Fraction:
    """An upper bound of soft density over all directions with η in an interval, in user's units.

    The search ends when the bound is at most ``target``, when it cannot be, or after ``cones``
    cones; with ``milp``, HiGHS is asked about what is open then.
    """
    part = slice_at(geometry, eta_low, eta_high)
    goal = SoftDensity(part, 0.0)
    search = Search(part, goal, budget.start(), target / geometry.unit)
    if not search.refute(cones) and milp and not search.exceeded and part.dimension > 1:
        prover = Prover(Milp(), budget) if worth_a_model(part, goal) else None
        search.run(prover, cones, cones // 4, 4 * cones)
    return goal.exactly(search.upper) * (1 + 8 * Fraction(EPSILON))


def counted_first(geometry: Geometry) -> float:
    """Cones to count before HiGHS is asked, at most."""
    if has_own(geometry):
        return COUNTING_OWN
    return COUNTING if by_share(geometry) else math.inf


def worth_a_model(part: Part, goal: Goal) -> bool:
    """Whether the numbers are such that a solver's tolerances mean anything."""
    short = isinstance(goal, Density) and not by_share(part.geometry)
    return short or float(part.reach.max()) <= TOO_LONG


# ------------------------------------------------------------------ the models


@dataclass(frozen=True, eq=False)
class Data:
    """A slice as the arrays that `formulations` takes, in turned coordinates.

    z : (m, k) array; p : (k,) array e₁, or None if p = 0 or on a facet; eta : cosines
    weight : (m,) array, 1 each if all are equal, else with mean 1
    """

    z: Floats
    p: Floats | None
    eta: tuple[float, float]
    reach: Floats
    weight: Floats
    widen: float

    @classmethod
    def of(cls, part: Part, goal: Goal) -> Data:
        """The data of a goal on its slice or facet."""
        p, cosines = None, (-1.0, 1.0)
        if isinstance(part, Facet):
            z = part.geometry.z[part.agents]
        elif isinstance(goal, Gain):
            z, p, cosines = part.across, goal.p, (0.0, 1.0)  # nothing else gains
        elif part.whole:
            z, cosines = part.across, (math.cos(part.most), math.cos(part.least))
        else:
            z = np.column_stack([part.along, part.across])
            p, cosines = np.eye(z.shape[1])[0], (math.cos(part.most), math.cos(part.least))
        soft = not isinstance(goal, Density)
        reach = goal.reach
        far = soft or by_share(part.geometry)
        largest = 2 + (float(reach.max()) if far else 0.0)
        widen = float(part.slack.max()) + (SOFT_WIDEN if soft else WIDEN) * (1 + largest)
        # A power of two, so that η and η' share a model unless one is next to ‖p‖ (`Slice.slack`).
        widen = 2.0 ** math.ceil(math.log2(widen))
        equal = isinstance(goal, Density) and goal.mass.equal
        weight = np.ones(len(z)) if equal else part.weight * len(z)
        return cls(z, p, cosines, reach, weight, widen)


def model_of(oracle: Milp, part: Part, goal: Goal, norm: Any, **more: Any) -> Any:
    """The Pyomo model of a goal on a slice or facet with this model of the unit norm."""
    from formulations.cliques import clique_cover, conflicts  # noqa: PLC0415  (slow to import)
    from formulations.density import density_model  # noqa: PLC0415
    from formulations.gain import gain_model  # noqa: PLC0415
    from formulations.soft_density import soft_density_model  # noqa: PLC0415

    data = Data.of(part, goal)
    if oracle.cliques and len(data.z) <= MOST_IN_GRAPH:
        over = norm if isinstance(part, Facet) else None
        graph = conflicts(data.z, data.reach, data.p, *data.eta, widen=data.widen, over=over)
        more = {**more, "cliques": clique_cover(graph)}
    demanded = demanded_of(part, data.widen)
    if demanded is not None:
        more = {**more, "demanded": demanded}
    if has_own(part.geometry) and "window" not in more:
        more = {**more, **_whole_window(part, data, norm, more)}
    models = {Density: density_model, SoftDensity: soft_density_model, Gain: gain_model}
    build: Any = next(model for kind, model in models.items() if isinstance(goal, kind))
    try:
        model = build(
            data.z, data.reach, data.weight, data.p, data.eta, norm=norm, widen=data.widen, **more
        )
    except ValueError as error:  # an approximation that contains 0 says so
        raise InputError(str(error), field="segments") from None
    if demanded is not None:
        add_own(model, part)
    return model


def _whole_window(part: Part, data: Data, norm: Any, more: dict[str, Any]) -> dict[str, Any]:
    """All thresholds from the least score to the greatest end: rows of one's own may want any."""
    from formulations.margin import support  # noqa: PLC0415

    if isinstance(part, Facet):
        least, most = norm.ranges(data.z, more.get("box"))
    else:
        least, most = support(data.z, data.p, *data.eta)
    return {"window": (float(least.min()), float((most + data.reach).max()))}


def model_at(oracle: Milp, geometry: Geometry, eta: float) -> Any:
    """The Pyomo model of a question for the whole sphere, as `--write-model` hands it to others."""
    if infeasible(geometry, eta):
        raise InputError(f"is {eta}, but no direction has that η: there is no model", field="eta")
    part, *others = parts_at(geometry, eta)
    if others:
        said = f"is {eta}, the rate of {1 + len(others)} facets, and a model is of one of them"
        raise InputError(f"{said}: choose another", field="eta")
    return model_of(oracle, part, oracle.goal(part), _norm(oracle, part))


def _norm(oracle: Milp, part: Part) -> Any:
    """That of the whole sphere or facet; cones are one model each, so secants stand in."""
    from formulations.unit_norm import Box, Exact, Secant  # noqa: PLC0415

    if isinstance(part, Facet):
        return surface_of(part)
    if oracle.norm == "box":
        return Box()
    if oracle.norm == "exact":
        return Exact()
    return Secant(oracle.segments, oracle.encoding)


# ------------------------------------------------------------------ cones


class _Programs(threading.local):
    """One model per geometry, moved from cone to cone and, if it fits, from η to η.

    Per thread: a model that another thread moves before it is solved would prove something else.
    """

    def __init__(self) -> None:
        self.kept: WeakKeyDictionary[Geometry, dict[str, Program]] = WeakKeyDictionary()


_PROGRAMS = _Programs()
# Steps from a solution towards the point with most room: ties are left on the way.
TOWARDS = (1e-9, 1e-7, 1e-5, 1e-3, 0.1)
# One solution is enough to try; cuts below the root cost more than they bring (a fifth, measured).
FIRST_SOLUTION = {"mip_max_improving_sols": 1, "mip_allow_cut_separation_at_nodes": False}


@dataclass(frozen=True)
class Prover:
    """HiGHS on the hull of some open cones (see the module's docstring)."""

    oracle: Milp
    budget: Budget

    def __call__(self, search: Search, cones: ConeSet) -> tuple[Proof, float]:
        data = Data.of(search.part, search.goal)
        bound, asked = self.asked(search, data, cones)
        limits = limits_of(search, cones)
        solved = self._solve(search, data, cones, limits, asked)
        search.solved(solved.nodes)
        if solved.stop is Stop.INTERRUPTED:
            search.timer.interrupted = True
        if solved.has is Has.INFEASIBLE:
            return Proof.CLOSED, bound
        if solved.values and recovered(search, solved):
            return Proof.BETTER, math.inf
        return Proof.UNDECIDED, math.inf

    def asked(
        self, search: Search, data: Data, cones: ConeSet,  # noqa: ARG002  (for the gain)
    ) -> tuple[float, dict[str, Any]]:  # fmt: skip
        """What a proof shows, in goal units, and the options of the model that ask for more."""
        units, bound, cutoff = _cutoff(search, data)
        return bound, {"at_least": cutoff / units}

    def ask(self, model: Any, asked: dict[str, Any]) -> None:
        """Move a model to what is asked now."""
        from formulations.density import set_cutoff  # noqa: PLC0415

        set_cutoff(model, asked["at_least"])

    def _solve(
        self, search: Search, data: Data, cones: ConeSet, limits: dict[str, Any],
        asked: dict[str, Any],
    ) -> Solved:  # fmt: skip
        from formulations.eta import set_eta  # noqa: PLC0415
        from formulations.margin import set_margin  # noqa: PLC0415

        part, goal = search.part, search.goal
        cone, box = hull_of(part, cones), box_of(part, cones)
        programs = _PROGRAMS.kept.setdefault(part.geometry, {})
        # Clique rows are those of one η; without them, one model serves every η.
        rows = self.oracle.cliques and len(data.z) <= MOST_IN_GRAPH
        where = data.eta if rows else data.eta[0] == data.eta[1]
        facet = tuple(part.signs) if isinstance(part, Facet) else None
        shape = f"{type(goal).__name__} {where} {data.widen} {facet}"
        program, allowed = programs.get(shape), self.budget.nodes
        if has_own(part.geometry):  # rows of a user's own know nothing of other cones
            program = None
        nodes = NODES if allowed is None else min(NODES, max(0, allowed - search.nodes))
        rest = Budget(search.timer.left, self.budget.threads, nodes)
        if program is None or self.oracle.solver != "highs":
            model = model_of(self.oracle, part, goal, cone, box=box, **asked, **limits)
            if self.oracle.solver != "highs":
                return solve(model, self.oracle.solver, rest)
            programs.clear()  # one at a time: a thousand values of η must not fill the memory
            program = programs[shape] = Program(model, FIRST_SOLUTION)
        else:
            model = program.model
            if data.p is not None:
                set_eta(model, *data.eta)
            move_to(model, part, cone, box)
            set_margin(model, **limits)
            self.ask(model, asked)
        return program.solve(rest)


def surface_of(facet: Facet) -> Any:
    """A facet as `formulations` knows it."""
    from formulations.facets import CrossPolytopeFacet, CubeFacet  # noqa: PLC0415

    signs = [int(sign) for sign in facet.signs]
    if facet.simplex:
        return CrossPolytopeFacet(signs)
    axis = next(j for j, sign in enumerate(signs) if sign)
    return CubeFacet(axis, signs[axis])


def move_to(model: Any, part: Part, cone: Any, box: tuple[Floats, Floats]) -> None:
    """Move a model to another hull of the same slice or facet."""
    from formulations.facets import set_facet  # noqa: PLC0415
    from formulations.unit_norm import set_cone  # noqa: PLC0415

    if isinstance(part, Facet):
        set_facet(model, cone, box)
    else:
        set_cone(model, cone, box)


def box_of(part: Part, cones: ConeSet | None = None) -> tuple[Floats, Floats]:
    """Bounds of the coordinates of u: over the slice, or over cones of a facet."""
    from formulations.margin import support  # noqa: PLC0415

    if isinstance(part, Facet):
        return part.bounds(*_hull(part, cones))
    axes = np.eye(part.geometry.rank)
    p = None if part.whole else axes[0]
    return support(axes, p, math.cos(part.most), math.cos(part.least))


def _hull(part: Facet, cones: ConeSet | None) -> tuple[Floats, Floats]:
    """The box around some cones, or around all."""
    cones = cover(part) if cones is None else cones
    return cones.lower.min(axis=0), cones.upper.max(axis=0)


def limits_of(search: Search, cones: ConeSet) -> dict[str, Any]:
    """The range of every agent's score over these cones, and the thresholds worth a look there.

    For density: where, in some cone, more than the best found can be in the margin; moreover b may
    be the largest score of those covered. For the gain: where agents can move far enough. The best
    threshold for soft density, and for the gain, is some agent's score plus its reach.
    """
    part, goal = search.part, search.goal
    lowest, highest = np.full(len(part.reach), np.inf), np.full(len(part.reach), -np.inf)
    low, high = math.inf, -math.inf
    for start in range(0, len(cones), search.batch):
        where = ranges(part, cones[start : start + search.batch])
        np.minimum(lowest, where.low.min(axis=0), out=lowest)
        np.maximum(highest, where.high.max(axis=0), out=highest)
        hit = None
        if isinstance(goal, Density):
            ends = where.high + goal.reach * UP
            hit = (
                None
                if search.best < 0
                else stabbed_more(where.low, ends, goal.mass.whole, goal.enough(search.best))
            )
        elif isinstance(goal, Gain):
            hit = goal.window(where, search.best)
        low, high = (low, high) if hit is None else (min(low, hit[0]), max(high, hit[1]))
    least, most = float((lowest + part.reach).min()), float((highest + part.reach).max())
    if by_share(part.geometry):
        if has_own(part.geometry):  # the best threshold need not be an end
            least = min(least, float(lowest.min()))
        if search.best >= 0 and low <= high:
            least, most = max(least, min(low, most)), max(least, min(high, most))
        return {"lowest": lowest, "highest": highest, "window": (least, max(least, most))}
    if isinstance(goal, SoftDensity) or (isinstance(goal, Gain) and low > high):
        low, high = least, most
    elif isinstance(goal, Gain):
        low, high = max(low, least), max(low, least, min(high, most))
    elif low > high:  # nothing of it is open any more: any window will do
        low, high = float(lowest.min()), float(highest.max())
    else:
        high = max(low, min(high, float(highest.max())))
    return {"lowest": lowest, "highest": highest, "window": (low, high)}


def hull_of(part: Part, cones: ConeSet) -> Any:
    """The common hull of cones of one facet, as a polytope in the coordinates of the model.

    For l1 and linf that is the facet, in the box that `box_of` gives. Else, with x_f = s = ±1 on
    the facet, the box low_j ≤ x_j ≤ high_j is the cone low_j s v_f ≤ v_j ≤ high_j s v_f; along its
    middle c the unit vectors have c·v ≥ cos α.
    """
    from formulations.unit_norm import Cone  # noqa: PLC0415

    if isinstance(part, Facet):
        return surface_of(part)
    low, high = cones.lower.min(axis=0), cones.upper.max(axis=0)
    d = part.dimension
    facet = int(np.flatnonzero(low == high)[np.abs(low[low == high]).argmax()])
    sign = low[facet]
    rows = []
    for j in range(d):
        if j != facet:
            above, below = np.zeros(d), np.zeros(d)
            above[j], above[facet] = 1.0, -low[j] * sign
            below[j], below[facet] = -1.0, high[j] * sign
            rows += [above, below]
    where = ranges(part, ConeSet(low[None, :], high[None, :], np.zeros(1)))
    cosine = math.sqrt(max(0.0, 1 - float(where.sine[0]) ** 2))
    sines = sorted(math.sin(t) for t in (part.least, part.most))
    longest = 1.0 if part.least < math.pi / 2 < part.most else sines[1]
    matrix, axis = np.array(rows).reshape(-1, d), where.centre[0]
    if not part.whole:
        matrix = np.column_stack([np.zeros(len(matrix)), matrix])
        axis = np.concatenate([[0.0], axis])
    room = 1e-9  # beyond rounding
    return Cone(matrix, axis, max(0.0, sines[0] * cosine - room), longest + room)


def _cutoff(search: Search, data: Data) -> tuple[float, float, float]:
    """Goal units per unit of the objective; what a proof shows; the cutoff (in goal units)."""
    goal, best = search.goal, search.best
    unseen = np.where(data.weight <= DROPPED, data.weight, 0.0)  # missing in the row of the cutoff
    if isinstance(goal, SoftDensity):
        # The objective is Σ t for equal weights, else Σ ω t with mean weight 1.
        units = 1 / len(data.z)
        if best < 0:  # any rule is worth a look
            return units, best, best
        enough = goal.enough(best)
        return units, enough + float(unseen @ (data.reach + data.widen)) * units, enough
    assert isinstance(goal, Density)
    units = 1.0 if goal.mass.equal else float(goal.mass.whole.sum()) / len(data.z)
    if best < 0:
        return units, best, best
    if goal.mass.equal:
        return units, best, best + 1
    more = best + IMPROVEMENT * units
    return units, max(more + float(unseen.sum()) * units, goal.enough(best)), more


def recovered(search: Search, solved: Solved) -> bool:
    """Put a solution on the true sphere and recount it; whether it is better than all before."""
    part = search.part
    u = solved.array("u")
    if isinstance(part, Facet):
        v = part.onto(part.turn.T @ u)
    else:
        v = u[part.geometry.rank - part.dimension :]  # without that along p
        length = float(np.linalg.norm(v))
        if length < 1e-9:
            return False
        v = v / length
    covered = np.flatnonzero(solved.array("s") > 0.5)
    before, known = search.best, search.found
    search.offer(v)
    held = None
    if search.limits is not None:
        accepted = _accepted(search, solved)
        held = Held(search.limits.rows, search.limits.shift, accepted)
        if has_own(part.geometry):
            _offer_own(search, v, solved.values["b"])
    cleared = clear(part, v, covered, held=held)
    if held is not None:  # between the two: as near to the first as rounding allows
        for share in TOWARDS:
            search.offer(part.onto((1 - share) * v + share * cleared))
    if not isinstance(search.goal, Density):
        pull = search.goal.p if isinstance(search.goal, Gain) else None
        search.offer(cleared)
        climbed = climb(part, cleared, covered, pull, held=held)
        if held is not None:
            for share in TOWARDS:
                search.offer(part.onto((1 - share) * climbed + share * cleared))
        cleared = climbed
    search.offer(cleared)
    return search.best > before or (known is None and search.found is not None)


def _offer_own(search: Search, v: Floats, b: float) -> None:
    """A solution, and rules near it: it may fail a user's constraint by the solver's tolerance."""
    part, found = search.part, search.found
    search.offer_near(v, b)
    if found is not None:  # towards a rule that meets it
        u = to_reduced(part.geometry, found.mechanism)[0]
        known = part.onto(part.turn.T @ u)
        for share in TOWARDS:
            search.offer_near(part.onto((1 - share) * v + share * known), b)
        return
    for share in TOWARDS[1:]:
        for axis in np.vstack([np.eye(len(v)), -np.eye(len(v))]):
            search.offer_near(part.onto(v + share * axis), b)
        if search.found is not None:
            return


def _accepted(search: Search, solved: Solved) -> Flags | None:
    """Who is accepted according to a solution, (m,) array; None if nobody asks."""
    if not by_share(search.part.geometry):
        return None
    chosen = np.zeros(len(search.part.reach), dtype=bool)
    for name, value in solved.values.items():
        if name.startswith("accepted["):
            chosen[int(name[9:-1])] = value > 0.5
    return chosen


# ------------------------------------------------------- one model for the whole sphere or facet


def _in_one_model(oracle: Milp, search: Search, budget: Budget) -> Stop:
    """Solve, recover, refine where the maximiser is loose, and again; a facet is exact at once."""
    part, goal = search.part, search.goal
    data = Data.of(part, goal)
    box = box_of(part)
    norm = _norm(oracle, part)
    search.start()
    search.look(ROUNDS[1], thorough=True)
    search.tell()
    while True:
        units, bound, cutoff = _cutoff(search, data)
        model = model_of(oracle, part, goal, norm, at_least=cutoff / units)

        def in_goal(found: float, least: float = bound, each: float = units) -> float:
            # The model knows only what reaches the cutoff; below it, nothing is said.
            return max(least, _rounded_bound(goal, found, each))

        nodes = None if budget.nodes is None else max(0, budget.nodes - search.nodes)
        rest = Budget(search.timer.left, budget.threads, nodes, search.follow(in_goal))
        solved = solve(model, oracle.solver, rest)
        search.solved(solved.nodes)
        if solved.has is Has.INFEASIBLE:
            search.note_ceiling(bound)
            return Stop.FINISHED
        search.note_ceiling(in_goal(solved.bound))
        if solved.values:
            recovered(search, solved)
        if solved.stop is not Stop.FINISHED or search.closed:
            return solved.stop
        norm = norm.refined(solved.array("u"), box)
        if norm is None:
            return Stop.FINISHED


def _rounded_bound(goal: Goal, bound: float, units: float) -> float:
    """A solver's bound in the goal's units, with room for its tolerances."""
    if isinstance(goal, Density) and goal.mass.equal:
        return float(math.floor(bound + 1e-6)) if math.isfinite(bound) else bound
    return bound * units * (1 + 1e-9) + IMPROVEMENT * units
