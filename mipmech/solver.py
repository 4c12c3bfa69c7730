"""Solving Pyomo models: by HiGHS, kept in memory and updated, or by any solver by name.

The only module that names a solver. HiGHS gets the model as arrays (`Program`), compiled from Pyomo
once; a changed parameter costs the evaluation of the coefficients that contain it, not a new model.
Why a run stopped and what it has are kept apart (`Stop`, `Has`), and at a limit or Ctrl-C the
incumbent and the bound are kept.

Solvers are not trusted blindly: data must be finite, options must exist, the gap asked for is 0,
the bound of an infeasible model is −∞ and not what the solver prints, and a status that is neither
"infeasible" nor "optimal" proves nothing but its bound.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from mipmech.budget import Budget, Event, Stop, Timer
from mipmech.errors import InputError
from mipmech.validation import Floats

# Seconds after which a waiting main thread wakes up, so that Ctrl-C is noticed.
HEARTBEAT = 0.05

# What an exact oracle asks of HiGHS. Solutions come from recovery and bounds from search, so its
# own heuristics only cost time (2 to 4 times, measured). Tolerances: see `oracles.milp`.
PROVING = {
    "mip_rel_gap": 0.0,
    "mip_abs_gap": 0.0,
    "mip_feasibility_tolerance": 1e-7,
    "primal_feasibility_tolerance": 1e-7,
    "mip_heuristic_effort": 0.0,
    "mip_heuristic_run_root_reduced_cost": False,
    "mip_heuristic_run_feasibility_jump": False,
    "mip_heuristic_run_zi_round": False,
    "mip_heuristic_run_rens": False,
    "mip_heuristic_run_rins": False,
    "mip_detect_symmetry": False,
}


class Has(Enum):
    """What a run has found; `Stop` says why it stopped."""

    OPTIMUM = "a solution that it says is optimal"
    SOLUTION = "a solution, and a bound"
    INFEASIBLE = "infeasible, it says"
    NOTHING = "no solution"


@dataclass(frozen=True, eq=False)
class Solved:
    """What a run found.

    objective : of the solution; None without one
    bound : no solution is better, according to the solver: from above for a maximum
    values : value of every variable by its Pyomo name; empty without a solution
    """

    has: Has
    stop: Stop
    objective: float | None
    bound: float
    values: Mapping[str, float]
    nodes: int
    seconds: float
    solver: str

    def array(self, variable: str) -> Floats:
        """The values of an indexed variable, in the order of its indices."""
        prefix = f"{variable}["
        return np.array([value for name, value in self.values.items() if name.startswith(prefix)])


class Program:
    """A linear Pyomo model as arrays, kept in step with its mutable parameters.

    >>> from pyomo.environ import ConcreteModel, Constraint, Objective, Param, Var, maximize
    >>> m = ConcreteModel()
    >>> m.x = Var(bounds=(0, 9)); m.most = Param(mutable=True, initialize=2.0)
    >>> m.row = Constraint(expr=2 * m.x <= m.most); m.goal = Objective(expr=m.x, sense=maximize)
    >>> program = Program(m)
    >>> program.solve().objective
    1.0
    >>> m.most = 3.0
    >>> program.solve().objective
    1.5
    """

    def __init__(
        self, model: Any, options: Mapping[str, Any] | None = None, *, relaxed: bool = False
    ) -> None:
        self.model = model
        self.options = {**PROVING, **(options or {})}
        self._compile()
        if relaxed:  # the linear programming relaxation
            self.integer[:] = False
        self.highs: Any = None

    def _compile(self) -> None:
        from pyomo.core import Constraint, Objective, Var, maximize  # noqa: PLC0415  (slow)
        from pyomo.core.expr.numvalue import value  # noqa: PLC0415
        from pyomo.repn import generate_standard_repn  # noqa: PLC0415

        self._value = value
        self.variables = list(self.model.component_data_objects(Var, active=True))
        column = {id(v): j for j, v in enumerate(self.variables)}
        self.names = [v.name for v in self.variables]
        start: list[int] = [0]
        index: list[int] = []
        coefficients: list[Any] = []
        self._sides: list[tuple[Any, Any, Any]] = []
        for row in self.model.component_data_objects(Constraint, active=True):
            form = generate_standard_repn(row.body, compute_values=False)
            if not form.is_linear():
                raise InputError(
                    f"{row.name} is not linear, and HiGHS needs linear models; choose another norm"
                    " or another solver (scip, gurobi)",
                    field="solver",
                )
            index.extend(column[id(v)] for v in form.linear_vars)
            coefficients.extend(form.linear_coefs)
            start.append(len(index))
            self._sides.append((row.lower, row.upper, form.constant))
        goal = next(self.model.component_data_objects(Objective, active=True))
        form = generate_standard_repn(goal.expr, compute_values=False)
        self.sense = -1 if goal.sense == maximize else 1
        self._cost = [
            (column[id(v)], c) for v, c in zip(form.linear_vars, form.linear_coefs, strict=True)
        ]
        self._offset = form.constant
        self.start, self.index = np.array(start, np.int32), np.array(index, np.int32)
        self.matrix = np.array([value(c) for c in coefficients], dtype=np.float64)
        # Only these entries can change: the others are plain numbers.
        self._changing = [(place, c) for place, c in enumerate(coefficients) if not _is_number(c)]
        self.integer = np.array([not v.is_continuous() for v in self.variables])

    def refresh(self) -> dict[str, Floats]:
        """The arrays of the model as its parameters stand now, checked to be finite."""
        value = self._value
        for place, coefficient in self._changing:
            self.matrix[place] = value(coefficient)
        cost = np.zeros(len(self.variables))
        for place, coefficient in self._cost:
            cost[place] += value(coefficient)
        lower, upper = np.empty(len(self._sides)), np.empty(len(self._sides))
        for i, (low, high, constant) in enumerate(self._sides):
            shift = value(constant)
            lower[i] = -math.inf if low is None else value(low) - shift
            upper[i] = math.inf if high is None else value(high) - shift
        least = np.array([-math.inf if v.lb is None else v.lb for v in self.variables])
        most = np.array([math.inf if v.ub is None else v.ub for v in self.variables])
        coefficients = {"cost": cost, "matrix": self.matrix}
        limits = {"lower": lower, "upper": upper, "least": least, "most": most}
        for name, array in coefficients.items():
            if not np.isfinite(array).all():
                raise ArithmeticError(f"the model has a coefficient that is not finite ({name})")
        for name, array in limits.items():
            if np.isnan(array).any():
                raise ArithmeticError(f"the model has a limit that is not a number ({name})")
        return coefficients | limits

    def _pass(self, threads: int) -> Any:
        import highspy  # noqa: PLC0415  (slow to import)

        arrays = self.refresh()
        lp = _highs_lp(**arrays, start=self.start, index=self.index)
        if self.sense > 0:
            lp.sense_ = highspy.ObjSense.kMinimize
        lp.offset_ = float(self._value(self._offset))
        kinds = highspy.HighsVarType
        lp.integrality_ = [kinds.kInteger if flag else kinds.kContinuous for flag in self.integer]
        if self.highs is None:
            self.highs = highspy.Highs()
            self.highs.silent()
            self.highs.HandleUserInterrupt = True
            set_options(self.highs, {"threads": threads, **self.options})
        if self.highs.passModel(lp) == highspy.HighsStatus.kError:
            raise ArithmeticError("HiGHS rejects the model")
        return self.highs

    def solve(
        self, budget: Budget | None = None, watch: Callable[[Event], None] | None = None
    ) -> Solved:
        """Solve the model as its parameters stand now."""
        budget = budget or Budget()
        timer = budget.start()
        highs = self._pass(budget.threads)
        nodes = 2**31 - 1 if budget.nodes is None else budget.nodes
        set_options(highs, {"time_limit": min(timer.left, 1e9), "mip_max_nodes": nodes})
        report = _Reporter(timer, watch)
        if watch is not None:
            highs.cbMipInterrupt += report
        try:
            with timer.listening():
                _run_in_thread(highs, timer)
        finally:
            if watch is not None:
                highs.cbMipInterrupt -= report
        solved = self._read(highs, timer)
        if timer.interrupted or report.fault is not None:
            self.highs = None  # once told to stop, a HiGHS stops at once every time
        if report.fault is not None:
            raise report.fault
        return solved

    def _read(self, highs: Any, timer: Timer) -> Solved:
        import highspy  # noqa: PLC0415

        state = highspy.HighsModelStatus
        status = highs.getModelStatus()
        info = highs.getInfo()
        found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        mixed = bool(self.integer.any())
        nothing_known = -self.sense * math.inf
        nodes = max(0, int(info.mip_node_count)) if mixed else 0
        if status == state.kInfeasible or (
            # Every variable of our models is bounded, so this can only mean infeasible.
            status == state.kUnboundedOrInfeasible
            and all(v.lb is not None and v.ub is not None for v in self.variables)
        ):
            has, stop, bound, found = Has.INFEASIBLE, Stop.FINISHED, -nothing_known, False
        elif status == state.kOptimal:
            has, stop = Has.OPTIMUM, Stop.FINISHED
            bound = info.mip_dual_bound if mixed else info.objective_function_value
        else:
            stop = {
                state.kTimeLimit: Stop.TIME,
                state.kInterrupt: Stop.INTERRUPTED,
                state.kSolutionLimit: Stop.NODES,
                state.kIterationLimit: Stop.NODES,
            }.get(status, Stop.FAILED)
            has = Has.SOLUTION if found else Has.NOTHING
            bound = info.mip_dual_bound
            if not mixed or stop is Stop.FAILED or not math.isfinite(bound):
                bound = nothing_known
        if timer.interrupted:
            stop = Stop.INTERRUPTED
        solution = highs.getSolution().col_value if found else []
        values = dict(zip(self.names, solution, strict=found))
        objective = float(info.objective_function_value) if found else None
        version = f"HiGHS {highs.version()}"
        return Solved(has, stop, objective, float(bound), values, nodes, timer.seconds, version)


@dataclass(eq=False)
class _Reporter:
    """Passes the progress of HiGHS on, a few times a second.

    HiGHS asks often whether to go on, and tells where it is (its log events come only if it
    prints). An exception in there would break it, so a watcher's fault is kept for later.
    """

    timer: Timer
    watch: Callable[[Event], None] | None
    told: float = -math.inf
    fault: Exception | None = None

    def __call__(self, event: Any) -> None:
        now, out = self.timer.seconds, event.data_out
        if self.watch is None or now - self.told < HEARTBEAT or self.fault is not None:
            return
        self.told = now
        nodes = int(out.mip_node_count)
        try:
            self.watch(Event(now, out.mip_primal_bound, out.mip_dual_bound, nodes))
        except Exception as fault:
            self.fault = fault
            event.interrupt()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.floating | np.integer)


def set_options(highs: Any, options: Mapping[str, Any]) -> None:
    """Set options of HiGHS; one that it does not know or accept is an error, not ignored."""
    import highspy  # noqa: PLC0415

    for name, setting in options.items():
        if highs.setOptionValue(name, setting) != highspy.HighsStatus.kOk:
            raise InputError(f"HiGHS rejects the option {name} = {setting!r}", field="options")


def _run_in_thread(highs: Any, timer: Timer) -> None:
    """Run HiGHS so that Ctrl-C stops it, with what it has kept.

    Off the main thread no signal arrives, and the call may run as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        highs.run()
        return
    thread = highs.startSolve()
    while not highs.wait(HEARTBEAT)[0]:
        if timer.interrupted:
            highs.cancelSolve()
    thread.join()


@dataclass(frozen=True, eq=False)
class Inequalities:
    """left ≤ rows·x ≤ right, a small linear program's constraints.

    rows : an array, or a sparse matrix of scipy's
    left : None for no limits on that side
    """

    rows: Any
    right: Floats
    left: Floats | None = None


def linear_program(
    cost: Floats, constraints: Inequalities, least: Floats, most: Floats, seconds: float = math.inf
) -> Floats | None:
    """The maximiser of cost·x: a small linear program; None if none was found in time."""
    import highspy  # noqa: PLC0415
    from scipy.sparse import csr_array  # noqa: PLC0415  (slow to import)

    highs = highspy.Highs()
    highs.silent()
    set_options(highs, {"threads": 1, "time_limit": min(seconds, 1e9)})
    right, left = constraints.right, constraints.left
    lower = np.full(len(right), -math.inf) if left is None else left
    matrix = csr_array(constraints.rows)
    start, index = matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)
    highs.passModel(_highs_lp(cost, matrix.data, start, index, lower, right, least, most))
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return np.array(highs.getSolution().col_value)


def _highs_lp(
    cost: Floats, matrix: Floats, start: Any, index: Any, lower: Floats, upper: Floats,
    least: Floats, most: Floats,
) -> Any:  # fmt: skip
    """HiGHS's own form of: maximise cost·x with lower ≤ Ax ≤ upper, A by rows, least ≤ x ≤ most."""
    import highspy  # noqa: PLC0415

    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(cost), len(upper)
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, least, most
    lp.row_lower_, lp.row_upper_ = lower, upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = start, index, matrix
    return lp


# ------------------------------------------------------------------ solvers by name

# Where Pyomo finds a solver of this name: first the interface to a Python package, then a program.
INTERFACES = {"scip": ("scip_direct", "scip"), "gurobi": ("gurobi_persistent", "gurobi")}

# What Pyomo's conditions mean, in its newer interface and in the older one.
INFEASIBLE = ("provenInfeasible", "infeasible", "infeasibleOrUnbounded")
STOPS = {
    "convergenceCriteriaSatisfied": Stop.FINISHED,
    "optimal": Stop.FINISHED,
    "maxTimeLimit": Stop.TIME,
    "interrupted": Stop.INTERRUPTED,
}
QUIET: dict[str, dict[str, Any]] = {"scip": {"display/verblevel": 0}, "gurobi": {"OutputFlag": 0}}


def solve(model: Any, name: str = "highs", budget: Budget | None = None) -> Solved:
    """Solve a model with HiGHS, or with any solver that Pyomo knows by this name.

    Other solvers get the time limit, and where Pyomo can tell them the threads and a gap of 0; not
    the limit on nodes, no watcher, and no Ctrl-C before they return.
    """
    budget = budget or Budget()
    if name == "highs":
        return Program(model).solve(budget, budget.watch)
    new_style = _new_interface(name)
    if new_style is not None:
        return _solve_new(new_style, name, model, budget)
    return _solve_program(name, model, budget)


def _new_interface(name: str) -> Any:
    """Pyomo's newer interface to the solver, if it has one that works here."""
    from pyomo.contrib.solver.common.factory import SolverFactory  # noqa: PLC0415

    for alias in INTERFACES.get(name, (name,)):
        if alias in SolverFactory:
            solver = SolverFactory(alias)
            if solver.available():
                return solver
    return None


def _solve_new(solver: Any, name: str, model: Any, budget: Budget) -> Solved:
    from pyomo.contrib.solver.common.results import SolutionStatus  # noqa: PLC0415

    timer = budget.start()
    if math.isfinite(budget.seconds):
        solver.config.time_limit = budget.seconds
    solver.config.threads = budget.threads
    solver.config.rel_gap = 0
    solver.config.load_solutions = False
    # Pyomo reads what a solver prints in a thread of its own; SCIP prints without letting other
    # threads run, and both wait forever once the pipe between them is full.
    for option, setting in QUIET.get(name, {}).items():
        solver.config.solver_options[option] = setting
    solver.config.raise_exception_on_nonoptimal_result = False
    try:
        results = solver.solve(model)
    except Exception as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{name} failed: {said}", field="solver") from error
    found = results.solution_status in (SolutionStatus.feasible, SolutionStatus.optimal)
    if found:
        results.solution_loader.load_vars()
    why, objective = results.termination_condition.name, results.incumbent_objective
    solver_name = f"{name}, through {type(solver).__name__}"
    values = _values(model) if found else {}
    return _solved(why, objective, results.objective_bound, values, timer, solver_name)


def _solve_program(name: str, model: Any, budget: Budget) -> Solved:
    """A solver that Pyomo runs as a program."""
    from pyomo.environ import SolverFactory  # noqa: PLC0415

    timer = budget.start()
    quiet = logging.getLogger("pyomo")
    level, quiet.level = quiet.level, logging.CRITICAL
    try:
        solver = SolverFactory(name)
        available = solver is not None and solver.available(exception_flag=False)
    except Exception:
        available = False
    finally:
        quiet.setLevel(level)
    if not available:
        raise InputError(
            f"the solver {name!r} is not installed (or Pyomo does not know it); highs comes with"
            " mipmech, scip with `pip install pyscipopt`, gurobi with `pip install gurobipy`",
            field="solver",
        )
    limit = {} if math.isinf(budget.seconds) else {"timelimit": max(1, math.ceil(budget.seconds))}
    results = solver.solve(model, load_solutions=False, **limit)
    why = results.solver.termination_condition.name
    values: dict[str, float] = {}
    objective = None
    if len(results.solution) > 0 and why not in INFEASIBLE:
        model.solutions.load_from(results)
        values, objective = _values(model), float(model.objective())
    return _solved(why, objective, results.problem.upper_bound, values, timer, name)


def _solved(
    why: str, objective: float | None, bound: float | None, values: dict[str, float],
    timer: Timer, solver: str,
) -> Solved:  # fmt: skip
    """The result of a solver by name, which ended with this condition of Pyomo's."""
    stop = STOPS.get(why, Stop.FAILED)
    if why in INFEASIBLE:
        has, stop, bound = Has.INFEASIBLE, Stop.FINISHED, -math.inf
    elif values:
        has = Has.OPTIMUM if stop is Stop.FINISHED else Has.SOLUTION
    else:
        has = Has.NOTHING
    if bound is None or stop is Stop.FAILED:
        bound = math.inf
    return Solved(has, stop, objective, float(bound), values, 0, timer.seconds, solver)


def _values(model: Any) -> dict[str, float]:
    from pyomo.core import Var  # noqa: PLC0415

    return {
        v.name: float(v.value)
        for v in model.component_data_objects(Var, active=True)
        if v.value is not None
    }


def write_model(model: Any, path: str | Path) -> None:
    """Write a model to a file that other solvers read: .lp or .mps, by the ending."""
    suffix = Path(path).suffix
    if suffix not in (".lp", ".mps"):
        raise InputError("must end in .lp or .mps", file=path, field="write-model")
    try:
        model.write(str(path), io_options={"symbolic_solver_labels": True})
    except OSError as error:
        text = (error.strerror or str(error)).lower()
        raise InputError(f"cannot be written: {text}", file=path, field="write-model") from None
