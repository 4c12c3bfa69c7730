"""Algorithm 1 of the paper: ask a density oracle at many η, and keep the best gain.

For each η of a grid the oracle gives a dense mechanism (w, b). Lemma 4: of the two rules (w, b) and
(w, b + ℓ/2) the better has soft density at least (ℓ/4)·density. The result is the rule of greatest
gain among all of them (lines 3 to 6 of the algorithm); gains are recounted in rationals.

**What a run proves.** Let M_j be the greatest soft density at η_j. An oracle's bound a_j on density
gives M_j ≤ K(a_j), with K(a) the most that agents of total weight a can move, the ones with the
longest reach first (for equal costs ℓ·a); a soft oracle bounds M_j itself. So

    U = max_j η_j · (bound on M_j)

bounds every gain on the grid. Every direction can be turned towards p to the next angle of the
grid, at a loss of at most L (`Grid.loss`), so opt ≤ U + L, and with φ = gain/U

    gain = φ U ≥ φ·opt − φ L.

With exact answers φ is at least Lemma 4's ¼ (ℓ_min/(4 ℓ_max) for unequal costs), less what the step
off the end of a reach costs (`STEADY_LOSS` at most, 1e-14 on usual data), and often far more;
answers that are not exact, or never came, count with the bounds that they have. For a soft oracle
the same U + L is stated as gain ≥ opt − (U + L − gain).

**Other costs.** For l1 and linf the directions of length 1 are facets of a polytope, and the rate
is constant on each. Then the grid is the rates of the facets (`grids.facet_grid`), nothing lies
between its values, L = 0, and a soft oracle that answers exactly gives the optimum.

**Requirements.** Every answer, and every rule made of it, meets them. If only the direction must
lie in a cone (signs and order of weights), and p does, then turning towards p does not leave it,
and what is said above holds among the rules that are allowed. Otherwise a rule between two values
of η may be allowed where the turned one is not, and U bounds the gains on the grid alone: the scope
is "grid". On facets nothing lies between the values, but for linf, where weights of 0 have rates of
their own. An η without a rule that is allowed is no error; without any at all there is no rule.

**Skipping.** If η_b · (upper bound of soft density for all η in [η_a, η_b]) is not above the best
gain so far, no η of the block can beat it; blocks are bisected, the most promising first. The
result is the same with fewer calls. With ``skip="cells"`` the cells engine searches all directions
whose η is on the grid at once: a cell without one, or without a rule that gains more than the best
so far, is closed, and where a better rule shows up the oracle is asked at the nearest η. When
nothing is open, every η was answered or cannot win.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from mipmech.budget import Budget, Event, Stop, Timer
from mipmech.design.printed import PrintedRule, facts, printed
from mipmech.errors import InputError
from mipmech.model.edge_of_reach import Fragile, fragile, steady
from mipmech.model.geometry import Geometry, geometry_of
from mipmech.model.grading import Recount
from mipmech.model.instance import Instance
from mipmech.model.mechanism import Mechanism, from_reduced
from mipmech.model.requirements import Demands
from mipmech.model.requirements.directions import weights_of
from mipmech.model.requirements.feasible import best_feasible, steady_feasible
from mipmech.model.requirements.required import RequirementsLike
from mipmech.model.thresholds import best_threshold
from mipmech.oracles.base import Answer, Oracle
from mipmech.oracles.registry import as_oracle
from mipmech.rationals import exact_sum, relative_gap, round_down, round_up
from mipmech.theory.grids import Grid, angular_grid, facet_grid, grid_of, paper_grid
from mipmech.theory.lemma4 import quarter
from mipmech.theory.projection import gain_ceiling
from mipmech.tolerances import EPSILON, ROUNDING
from mipmech.validation import Floats

Thresholds = Literal["best", "two"]
Skipping = Literal["no", "cones", "milp", "cells"]
GridName = Literal["auto", "angular", "facets", "paper"]

# ε, unless it is given, as a share of the ceiling on the gain of any rule.
EPSILON_SHARE = 0.05
# Cones counted for the bound of a block before it is bisected instead.
BLOCK_CONES = 20_000
# Values of η where all agents are at one point, and P w_f may not be allowed.
AT_ONE_POINT = 65
# Nodes of the cells engine before the oracle is asked where it is stuck: at ties, mostly.
STUCK_NODES = 100_000
# Agents looked at in a block of cells; small, since an answer changes everything.
BLOCK_BUDGET = 400_000
# A call may use this part of the time that is left.
SHARES = 20
# Cells are closed if they are below the best gain by this share: more than sums in floats round.
SURELY_BELOW = 1e-9


@dataclass(frozen=True, eq=False)
class Step:
    """One η of the grid: the oracle's answer, and the best rule that was made of it.

    two : the gain with the better of the paper's two thresholds; None for soft oracles
    """

    answer: Answer
    rule: Recount | None
    two: Fraction | None = None

    @property
    def eta(self) -> float:
        """The η asked for."""
        return self.answer.eta

    @property
    def gain(self) -> Fraction:
        """The gain of the better rule; 0 without one."""
        return Fraction(0) if self.rule is None else self.rule.gain

    def to_dict(self) -> dict[str, Any]:
        """The figures of this call."""
        upper = self.answer.upper
        return {
            "eta": self.eta,
            "status": self.answer.status,
            "lower": round_down(self.answer.lower),
            "upper": None if upper is None else round_up(upper),
            "gain": round_down(self.gain),
            "gain_two": None if self.two is None else round_down(self.two),
            "stop": self.answer.stop.value,
            "seconds": self.answer.seconds,
        }


@dataclass(frozen=True)
class Skip:
    """A block of η that provably cannot beat the best gain.

    low, high : the least and the greatest η of the block
    count : the values of the grid in it
    upper : no rule with η in the block gains more
    how : what proved it
    """

    low: float
    high: float
    count: int
    upper: float
    how: str

    def to_dict(self) -> dict[str, Any]:
        """The figures of this block."""
        return asdict(self)


@dataclass(frozen=True)
class Guarantee:
    """Gain ≥ factor·opt − additive, and no rule gains more than ``upper``.

    scope : "all" rules, or only those on the "grid" of η
    """

    factor: float
    additive: float
    upper: float
    scope: Literal["grid", "all"]

    def to_dict(self) -> dict[str, Any]:
        """The figures."""
        return asdict(self)


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """What Algorithm 1 found, every call that it made, and what the run proves.

    Attributes
    ----------
    instance : Instance
    grid : Grid
    grid_name : str
    steps : tuple of Step
        The oracle calls, by descending η.
    skips : tuple of Skip
        The blocks of η that were pruned.
    best : Step or None
        The step with the greatest gain.
    bound : Guarantee
    epsilon : float
    stop : Stop
    seconds : float
    oracle : str
        The record of the oracle.
    thresholds : {"best", "two"}
        How the thresholds were chosen.
    demands : Demands or None
        What is demanded of rules; None if any rule is allowed.
    """

    instance: Instance
    grid: Grid
    grid_name: str
    steps: tuple[Step, ...]
    skips: tuple[Skip, ...]
    best: Step | None
    bound: Guarantee
    epsilon: float
    stop: Stop
    seconds: float
    oracle: str
    thresholds: Thresholds
    demands: Demands | None = None

    def __repr__(self) -> str:
        if self.unknown:
            return (
                f"Solution(no rule found that meets the requirements, {len(self.steps)} calls,"
                f" {self.skipped} skipped; {self.stop.value})"
            )
        return (
            f"Solution(gain={float(self.gain):.6g} at η = {self.eta}, {len(self.steps)} calls,"
            f" {self.skipped} skipped: at least {self.bound.factor:.4g}·opt −"
            f" {self.bound.additive:.4g}; {self.stop.value})"
        )

    @property
    def recount(self) -> Recount | None:
        """The exact outcome of the rule found."""
        return None if self.best is None else self.best.rule

    @property
    def mechanism(self) -> Mechanism | None:
        """The rule found."""
        return None if self.recount is None else self.recount.mechanism

    @property
    def unknown(self) -> bool:
        """Whether rules must meet requirements, and none that does was found."""
        return self.demands is not None and self.recount is None

    @property
    def gain(self) -> Fraction:
        """Its exact gain; 0 without a rule."""
        return Fraction(0) if self.best is None else self.best.gain

    @property
    def gain_two(self) -> Fraction | None:
        """The gain with the paper's two thresholds for every answer; None for soft oracles."""
        found = [step.two for step in self.steps if step.two is not None]
        return max(Fraction(0), *found) if found else None

    @cached_property
    def printed(self) -> PrintedRule | None:
        """The rule in few digits, in the user's units, and what it does with just these."""
        return None if self.recount is None else printed(self.recount)

    @cached_property
    def fragile(self) -> Fragile | None:
        """How much of the gain hangs on agents at the very end of their reach."""
        return None if self.recount is None else fragile(self.recount)

    @property
    def lower(self) -> Fraction:
        """The greatest gain is at least this: the gain of the rule found."""
        return self.gain

    @property
    def upper(self) -> float:
        """No rule gains more; with ``bound.scope`` "grid", none with an η of the grid."""
        return self.bound.upper

    @property
    def gap(self) -> float:
        """(upper − lower)/upper, rounded up; 0 if upper is 0, 1 if no allowed rule gains."""
        if self.unknown or self.lower < 0:
            return 1.0
        return relative_gap(self.lower, self.upper)

    @property
    def status(self) -> Literal["done", "gap"]:
        """Whether every η was answered to the end or pruned."""
        return "done" if self.complete else "gap"

    @property
    def eta(self) -> float | None:
        """The η of the grid where it was found."""
        return None if self.best is None else self.best.eta

    @property
    def skipped(self) -> int:
        """Values of the grid that were skipped by proof."""
        return sum(skip.count for skip in self.skips)

    @property
    def complete(self) -> bool:
        """Whether every η was answered to the end or skipped by proof."""
        answers = [step.answer for step in self.steps]
        open_ = [answer for answer in answers if answer.upper is not None and not answer.closed]
        # A gap left by ties does not count.
        cut_short = any(answer.stop not in (Stop.FINISHED, Stop.CLOSED) for answer in open_)
        unanswered = len(self.grid) - self.skipped - len(self.steps)
        return self.stop is Stop.FINISHED and unanswered == 0 and not cut_short

    def plot(self) -> Any:
        """A matplotlib figure of the run, and of the rule."""
        from mipmech.plots.solution import solution_picture  # noqa: PLC0415  (matplotlib is slow to import)

        return solution_picture(self)

    def to_dict(self) -> dict[str, Any]:
        """The object printed under ``--json``."""
        return {
            "gain": None if self.unknown else round_down(self.gain),
            "mechanism": None if self.mechanism is None else self.mechanism.to_dict(),
            **facts(self.instance, self.recount, self.printed, self.fragile),
            **({} if self.demands is None else self.demands.facts(self.recount)),
            "thresholds": self.thresholds,
            "gain_two": None if self.gain_two is None else round_down(self.gain_two),
            "eta": self.eta,
            "oracle_calls": {"made": len(self.steps), "skipped": self.skipped},
            "bound": self.bound.to_dict(),
            "epsilon": self.epsilon,
            "status": self.status,
            "stop": self.stop.value,
            "oracle": self.oracle,
            "grid": {"name": self.grid_name, "size": len(self.grid)},
            "steps": [step.to_dict() for step in self.steps],
            "skips": [skip.to_dict() for skip in self.skips],
            "seconds": self.seconds,
        }


def default_epsilon(instance: Instance, share: float = EPSILON_SHARE) -> float:
    """The ε of a run that was given none: a share of the gain's ceiling; 1 where that is 0."""
    return gain_ceiling(instance) * share or 1.0


def solve(
    sample: Instance | Geometry | str | Path,
    *,
    require: RequirementsLike | None = None,
    epsilon: float | None = None,
    oracle: str | Oracle = "milp",
    grid: GridName | ArrayLike = "auto",
    sigma: float | None = None,
    radius: float | None = None,
    thresholds: Thresholds = "best",
    skip: Skipping = "no",
    budget: Budget | None = None,
) -> Solution:
    """Run Algorithm 1.

    Parameters
    ----------
    sample : Instance, Geometry, str or Path
        The sample, or its file.
    require : Requirements, mapping, str or Path, optional
        What is demanded of rules, or the name of its file. If no rule is found that meets it, the
        solution has no mechanism.
    epsilon : float, optional
        The additive loss, in units of gain; by default 5 % of the gain's ceiling.
    oracle : str or Oracle
        An oracle, or the name of one.
    grid : {"auto", "angular", "facets", "paper"} or array_like
        "angular", proved on the sample without smoothness; "paper", for σ-smoothed populations; or
        values of η. For costs of the norm l1 or linf "facets", the rate of each facet. "auto" is
        the one that fits.
    sigma, radius : float, optional
        σ and r for the paper's grid; by default those of the instance's smoothing.
    thresholds : {"best", "two"}
        The best threshold for each direction, or the better of the paper's two candidates.
    skip : {"no", "cones", "milp", "cells"}
        How η values that provably cannot beat the incumbent are pruned: not at all, whole blocks by
        counting over cones, or by a MILP too, or all of them at once by cells.
    budget : Budget, optional
        Limits on time, threads and nodes.

    Examples
    --------
    >>> from mipmech import make_instance
    >>> sample = make_instance("gaussian-mixture", agents=30, rank=2, seed=1)
    >>> found = solve(sample)
    >>> found.complete, found.bound.factor >= 0.25
    (True, True)
    """
    geometry = geometry_of(sample, require)
    budget = budget or Budget()
    timer = budget.start()
    asked = as_oracle(oracle)
    if thresholds not in ("two", "best"):
        raise InputError(f"is {thresholds!r}; give best or two", field="thresholds")
    if skip not in get_args(Skipping):
        raise InputError(f"is {skip!r}; give {', '.join(get_args(Skipping))}", field="skip")
    if epsilon is None:
        epsilon = default_epsilon(geometry.instance)
    if isinstance(grid, str) and grid == "auto":
        grid = "angular" if geometry.norm == "l2" else "facets"
    if geometry.norm != "l2" and skip != "no":
        said = f"prunes directions of Euclidean costs; with {geometry.norm}, give no"
        raise InputError(said, field="skip")
    name = grid if isinstance(grid, str) else "given"
    values = _grid(geometry, grid, epsilon, sigma, radius, asked.soft)
    loop = _EtaLoop(geometry, asked, values, thresholds, timer)
    with timer.listening():
        stop = loop.run(skip)
    if timer.interrupted and loop.done < len(values):
        stop = Stop.INTERRUPTED
    elif stop is Stop.FINISHED and any(s.answer.stop is Stop.TIME for s in loop.steps):
        stop = Stop.TIME  # every η was asked, but not all had the time that they needed
    return Solution(
        instance=geometry.instance, grid=values, grid_name=name,
        steps=tuple(sorted(loop.steps, key=lambda step: -step.eta)), skips=tuple(loop.skips),
        best=loop.best, bound=loop.guarantee(), epsilon=epsilon, stop=stop, seconds=timer.seconds,
        oracle=repr(asked), thresholds=thresholds, demands=geometry.demands,
    )  # fmt: skip


def _grid(
    geometry: Geometry, grid: GridName | ArrayLike, epsilon: float, sigma: float | None,
    radius: float | None, soft: bool,
) -> Grid:  # fmt: skip
    if not isinstance(grid, str):
        return grid_of(geometry, grid, soft)
    if grid == "angular":
        alone = geometry.rank > 1 and geometry.radius == 0 and geometry.p_norm > 0
        if geometry.demands is not None and alone:
            # All agents are at one point, so that P w_f would be best, were it allowed.
            turns = np.linspace(0.0, np.pi / 2, AT_ONE_POINT)
            return grid_of(geometry, np.maximum(0.0, geometry.p_norm * np.cos(turns)), soft)
        return angular_grid(geometry, epsilon, soft)
    if grid == "facets":
        return facet_grid(geometry, soft)
    if grid != "paper":
        raise InputError(f"is {grid!r}; give auto, angular, facets or paper", field="grid")
    smoothing = geometry.instance.smoothing
    if smoothing is not None:
        sigma = smoothing.sigma if sigma is None else sigma
        radius = smoothing.radius if radius is None else radius
    if sigma is None or radius is None:
        raise InputError(
            "is needed for the paper's grid: the instance has no smoothing; give it, or use"
            " the angular grid, which needs none",
            field="sigma" if sigma is None else "radius",
        )
    return paper_grid(geometry, epsilon, sigma, radius, soft)


@dataclass(eq=False)
class _EtaLoop:
    """The loop over η, and its state."""

    geometry: Geometry
    oracle: Oracle
    grid: Grid
    thresholds: Thresholds
    timer: Timer
    steps: list[Step] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)
    best: Step | None = None
    answered: Fraction = Fraction(0)  # no rule at an answered η gains more

    def __post_init__(self) -> None:
        self.ceiling = Fraction(gain_ceiling(self.geometry.instance))
        self.most_moved = _most_moved(self.geometry.instance)

    @property
    def gain(self) -> Fraction:
        """The best gain so far."""
        return Fraction(0) if self.best is None else self.best.gain

    @property
    def done(self) -> int:
        """Values of the grid that were answered or skipped."""
        return len(self.steps) + sum(skip.count for skip in self.skips)

    def run(self, skip: Skipping) -> Stop:
        """All values of the grid, answered or skipped."""
        if skip == "no":
            return self.one_by_one()
        if skip == "cells" and self.geometry.p_norm > 0:
            return self.by_cells()
        return self.by_blocks("cones" if skip == "cells" else skip)

    # ------------------------------------------------------------ lines 2 to 6

    def one_by_one(self) -> Stop:
        """Every η of the grid."""
        for place, eta in enumerate(self.grid):
            stop = self.ask(eta, len(self.grid) - place)
            if stop is not None:
                return stop
        return Stop.FINISHED

    def ask(self, eta: float, calls_left: int) -> Stop | None:
        """One call, and the better of its rules; why the loop must stop, if it must."""
        if self.timer.left == 0:
            return Stop.TIME
        # What is left of the time is shared by the calls that are left; unused time is passed on.
        share = self.timer.left / calls_left
        limits = self.timer.budget
        watch = None if limits.watch is None else self.follow(eta)
        answer = self.oracle(self.geometry, eta, Budget(share, limits.threads, limits.nodes, watch))
        step = self.step(answer)
        self.steps.append(step)
        self.answered = max(self.answered, self.gain_bound(answer))
        # A rule that lowers quality is worse than none, unless some rule is demanded.
        demanded = self.geometry.demands is not None
        if step.rule is not None and (step.gain >= 0 or demanded):
            self.best = step if self.best is None or step.gain > self.best.gain else self.best
        self.tell()
        return Stop.INTERRUPTED if answer.stop is Stop.INTERRUPTED else None

    def gain_bound(self, answer: Answer) -> Fraction:
        """No rule at this η gains more, by what the oracle has proved."""
        moved = self.most_moved(Fraction(1))
        if answer.upper is not None:
            moved = min(moved, answer.upper if answer.soft else self.most_moved(answer.upper))
        band = Fraction(self.geometry.band) * Fraction(self.geometry.p_norm)
        return max(Fraction(0), Fraction(answer.eta) + band) * moved

    def step(self, answer: Answer) -> Step:
        """Lines 4 and 5: the better of b and b + ℓ/2, or the best threshold of all."""
        if answer.mechanism is None:
            return Step(answer, None)
        instance = self.geometry.instance
        if self.geometry.demands is not None:
            return self.step_allowed(answer, self.geometry.demands)
        best = two = None
        if self.thresholds == "best" or self.oracle.soft:
            best = steady(best_threshold(instance, answer.mechanism))
        if not self.oracle.soft:
            two = steady(quarter(instance, answer.mechanism)[0])
        return Step(answer, best or two, None if two is None else two.gain)

    def step_allowed(self, answer: Answer, demands: Demands) -> Step:
        """The same among thresholds with which all requirements are met."""
        found = answer.recount
        assert found is not None
        tried: list[Recount] = []
        two: Recount | None = None
        if not self.oracle.soft:
            two = steady(quarter(self.geometry.instance, found.mechanism)[0])
            two = two if demands.met(two) else None
            tried += [] if two is None else [two]
        if self.thresholds == "best" or self.oracle.soft:
            best = best_feasible(demands, found.mechanism)
            tried += [] if best is None else [steady_feasible(demands, best)]
        tried.append(steady_feasible(demands, found))  # it meets them, whatever its threshold
        rule = max(tried, key=lambda rule: rule.gain)
        return Step(answer, rule, None if two is None else two.gain)

    def tell(self, note: str = "") -> None:
        """Report progress: the best gain, and the values of η that are done."""
        watch = self.timer.budget.watch
        if watch is not None:
            lower, upper = round_down(self.gain), self.guarantee().upper
            note = f"{self.done} of {len(self.grid)} values of η done" + note
            watch(Event(self.timer.seconds, lower, upper, self.done, note))

    def follow(self, eta: float) -> Callable[[Event], None]:
        """Pass on how the call at η is doing."""

        def watch(event: Event) -> None:
            upper = "?" if event.upper is None else f"{event.upper:.4g}"
            self.tell(f"; at η = {eta:.4g} between {event.lower:.4g} and {upper}")

        return watch

    # ------------------------------------------------------------ skipping

    def by_blocks(self, skip: Skipping) -> Stop:
        """The most promising block first; useless ones are skipped, others bisected."""
        etas = list(self.grid)
        # P w_f itself first: one direction, and something to beat.
        stop = self.ask(etas[0], len(etas))
        waiting: list[tuple[float, int, int]] = []
        if len(etas) > 1:
            waiting.append((-round_up(self.ceiling), 1, len(etas)))
        while waiting and stop is None:
            negative, first, end = heapq.heappop(waiting)
            block = etas[first:end]
            if self.skip(block, -negative, skip):
                continue
            if self.timer.left == 0:
                return Stop.TIME
            self.tell(f"; bounding η from {block[-1]:.4g} to {block[0]:.4g}")
            bound = self.block_bound(block[-1], block[0], -negative, skip)
            if self.skip(block, bound, skip):
                continue
            if end - first == 1:
                stop = self.ask(etas[first], sum(e - f for _, f, e in waiting) + 1)
            else:
                middle = (first + end) // 2
                heapq.heappush(waiting, (-bound, first, middle))
                heapq.heappush(waiting, (-bound, middle, end))
        return Stop.FINISHED if stop is None else stop

    def skip(self, etas: list[float], upper: float, how: Skipping) -> bool:
        """Skip a block if it cannot beat the best gain."""
        if self.best is None or Fraction(upper) > self.best.gain or self.best.gain < 0:
            return False
        named = {"cones": "counting over cones", "milp": "counting over cones, and HiGHS"}[how]
        self.skips.append(Skip(etas[-1], etas[0], len(etas), upper, named))
        self.tell()
        return True

    def block_bound(self, low: float, high: float, known: float, how: Skipping) -> float:
        """No rule with η in [low, high] gains more than this."""
        from mipmech.oracles.milp.engine import soft_bound  # noqa: PLC0415  (not every oracle needs it)

        band = self.geometry.band * self.geometry.p_norm
        rate = (high + band) * (1 + 4 * EPSILON)
        if rate <= 0:
            return 0.0
        # Below what is needed by more than rounding, so that a target that is met means a skip.
        target = max(0.0, float(self.gain)) / rate * (1 - ROUNDING)
        budget, milp = Budget(self.timer.left, self.timer.budget.threads), how == "milp"
        moved = soft_bound(self.geometry, low, high, target, BLOCK_CONES, budget, milp=milp)
        return min(known, round_up(Fraction(rate) * moved))

    def by_cells(self) -> Stop:
        """Ask where the cells engine sees something better, until it sees nothing any more."""
        from mipmech.oracles.cells.engine import gain_problem  # noqa: PLC0415
        from mipmech.oracles.cells.search import CellSearch  # noqa: PLC0415  (numba is slow)

        unit = Fraction(self.geometry.unit)
        etas = np.array(list(self.grid))
        left = np.sort(etas[etas > 0])  # η ≤ 0 gains nothing
        stop: Stop | None = None

        def best() -> float:
            if self.geometry.demands is not None and (self.best is None or self.gain < 0):
                return -1.0  # only what no rule is allowed in is closed
            return round_down(self.gain / unit)

        def ask(place: int) -> None:
            nonlocal left, stop
            # Most values will be skipped, so that a call may have more than an equal share.
            stop = self.ask(float(left[place]), min(len(left), SHARES))
            left = np.delete(left, place)
            # Without any value left, one that no direction has.
            search.rates = left if len(left) else np.array([np.inf])

        def offer(v: Floats, _estimate: float) -> float:
            # The nearest η; then its neighbours, as long as the direction turned there is better
            # than what was found, because those will have to be asked in any case.
            u, start = v, float(v @ p)
            for up in (False, True):
                while stop is None and len(left) and search.timer.left > 0:
                    above = int(np.searchsorted(left, start))
                    place = above if up else above - 1
                    if not 0 <= place < len(left):
                        break
                    u = _turned(v, p, float(left[place]))
                    if float(problem.values(u[None, :])[0]) <= best():
                        break
                    ask(place)
            return best()

        def ask_near(eta: float) -> float:
            if stop is None and len(left):
                ask(int(np.abs(left - eta).argmin()))
            return best()

        p = self.geometry.p
        problem = gain_problem(self.geometry, left)
        search = CellSearch(
            problem, offer, self.timer, factor=1 - SURELY_BELOW, tell=self.tell,
            largest=BLOCK_BUDGET,
        )  # fmt: skip
        search.best = ask_near(float(left[-1]))
        search.look((p / np.linalg.norm(p))[None, :])
        while stop is None:
            ended = search.run(self.timer.budget.threads, search.nodes + STUCK_NODES)
            if ended is not Stop.NODES:
                stop = ended
            elif (stuck := search.most_promising) is not None:
                centre = stuck.centre / np.linalg.norm(stuck.centre)
                search.best = max(search.best, ask_near(float(centre @ p)))
        if stop is Stop.FINISHED:
            self._skip_the_rest(etas, Fraction(search.closed) * unit)
        return stop

    def _skip_the_rest(self, etas: Floats, closed: Fraction) -> None:
        """Runs of neighbouring η that were not asked: no rule there gains more than the best."""
        answered = {step.eta for step in self.steps}
        gain = self.gain
        # Cells were closed well below the gain, so that rounding does not matter; unless they were
        # too fine to be cut.
        below = closed <= gain * (1 - Fraction(SURELY_BELOW) / 2)
        most = round_down(gain) if below else round_up(closed * (1 + Fraction(SURELY_BELOW)))
        most = max(0.0, most)  # a rule that does harm, or none at all
        for asked, run in groupby(map(float, etas), answered.__contains__):
            block = list(run)
            if not asked:
                skip = Skip(block[-1], block[0], len(block), most, "cells of directions")
                self.skips.append(skip)
        self.tell()

    # ------------------------------------------------------------ what the run proves

    def guarantee(self) -> Guarantee:
        """From the calls that were exact, those that were not, and those not made."""
        gain, ceiling = self.gain, self.ceiling
        demands = self.geometry.demands
        if demands is not None:
            gain = max(Fraction(0), gain)
        everything = self.done == len(self.grid)
        skipped = Fraction(max((skip.upper for skip in self.skips), default=0.0))
        grid_upper = min(ceiling, max(gain, self.answered, skipped)) if everything else ceiling
        upper = min(ceiling, grid_upper + Fraction(self.grid.loss))
        if self.oracle.soft:
            factor, additive = Fraction(1), upper - gain
        else:
            factor = gain / grid_upper if grid_upper else Fraction(1)
            additive = factor * max(Fraction(0), upper - grid_upper)
        if demands is not None and self.gain < 0:
            additive = upper - self.gain
        everywhere = self.grid.everywhere and (demands is None or self.turns(demands))
        if demands is not None and (self.best is None or self.gain < 0):
            factor = Fraction(0)
        scope: Literal["grid", "all"] = "all" if everywhere else "grid"
        return Guarantee(round_down(factor), round_up(additive), round_up(upper), scope)

    def turns(self, demands: Demands) -> bool:
        """Whether allowed rules between the values of η are no better than those at them."""
        geometry = self.geometry
        if geometry.norm == "l1":
            return True
        if geometry.norm == "linf":  # weights of exactly 0 have rates of their own
            return demands.cone is None and not demands.requirements.own
        if demands.shares is not None or demands.requirements.own or demands.cone is None:
            return False
        if not geometry.p_norm:
            return True  # nothing gains
        towards = from_reduced(geometry, geometry.steepest, 0.0)
        return demands.cone.allows(weights_of(geometry.instance, towards))


def _turned(v: Floats, p: Floats, eta: float) -> Floats:
    """The unit vector in the plane of v and p, on v's side, with this product with p."""
    size = float(np.linalg.norm(p))
    along = p / size
    across = v - (v @ along) * along
    length = float(np.linalg.norm(across))
    if length == 0.0:
        return along
    cosine = min(1.0, eta / size)
    turned: Floats = cosine * along + np.sqrt(1 - cosine**2) * across / length
    return turned


def _most_moved(instance: Instance) -> Callable[[Fraction], Fraction]:
    """K(a): the most that agents of total weight a can move, the longest reaches first; rounded up.

    The last agent counts in part, so K is an upper bound for every set of weight at most a.
    """
    counts = np.flatnonzero(instance.weights > 0)
    order = counts[np.argsort(-instance.reach[counts], kind="stable")]
    reach = instance.reach[order]
    weight = instance.weights[order] / float(exact_sum(instance.weights[counts]))
    # Running sums in floats, raised by more than their error.
    up = 1 + 4 * (len(order) + 4) * EPSILON
    mass = np.concatenate([[0.0], np.cumsum(weight)])
    moved = np.concatenate([[0.0], np.cumsum(weight * reach)])

    def most(share: Fraction) -> Fraction:
        wanted = float(share) * up
        place = min(int(np.searchsorted(mass, wanted, side="right")) - 1, len(reach) - 1)
        rest = max(0.0, wanted - float(mass[place]))
        return Fraction((float(moved[place]) + rest * float(reach[place])) * up)

    return most
