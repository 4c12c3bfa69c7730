"""The driver of HiGHS: persistent models, limits, honest statuses, other solvers."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from pyomo.environ import (
    Binary,
    ConcreteModel,
    Constraint,
    Objective,
    Param,
    Var,
    maximize,
    minimize,
    value,
)
from scipy.optimize import linprog
from scipy.sparse import csr_array

from formulations import Exact, Secant, set_cone, set_cutoff, set_eta, set_margin
from mipmech import Budget, InputError, make_instance
from mipmech.budget import Event, Stop
from mipmech.model import reduce
from mipmech.oracles.milp.engine import Data, Milp, box_of, hull_of, model_of
from mipmech.oracles.shared.cones import sphere
from mipmech.oracles.shared.goals import Density
from mipmech.oracles.shared.slices import slice_at
from mipmech.solver import Has, Inequalities, Program, linear_program, solve, write_model


def knapsack(seed=0, items=12, sense=maximize):
    random = np.random.default_rng(seed)
    model = ConcreteModel()
    model.x = Var(range(items), domain=Binary)
    model.room = Param(mutable=True, initialize=3.0)
    size, worth = random.random(items), random.random(items)
    model.fits = Constraint(expr=sum(size[i] * model.x[i] for i in range(items)) <= model.room)
    model.goal = Objective(expr=sum(worth[i] * model.x[i] for i in range(items)), sense=sense)
    return model


def hard():
    """A model that HiGHS does not finish in a second."""
    geometry = reduce(make_instance("uniform-ball", 80, 6, seed=1))
    part = slice_at(geometry, 0.6 * geometry.p_norm)
    return model_of(Milp(), part, Density.on(part), Secant(8, "logarithmic"))


def brute(model):
    """The optimum of a small knapsack by trying everything."""
    size = [value(model.fits.body.args[i].args[0]) for i in range(len(model.x))]
    worth = [value(model.goal.expr.args[i].args[0]) for i in range(len(model.x))]
    chosen = (np.arange(1 << len(size))[:, None] >> np.arange(len(size))) & 1
    return (chosen @ worth)[chosen @ size <= value(model.room)].max()


@pytest.mark.parametrize("seed", range(5))
def test_a_changed_parameter_is_seen(seed):
    model = knapsack(seed)
    program = Program(model)
    for room in (3.0, 1.0, 2.5, 0.1):
        model.room = room
        solved = program.solve()
        assert solved.has is Has.OPTIMUM
        assert solved.stop is Stop.FINISHED
        assert solved.objective == pytest.approx(brute(model)) == pytest.approx(solved.bound)
        assert solved.array("x").round().sum() == pytest.approx(solved.array("x").sum())


@pytest.mark.parametrize("soft", [False, True])
def test_a_persistent_model_is_the_model_built_anew(soft):
    """Moved from cone to cone, window to window and η to η: the same arrays as a fresh one."""
    from mipmech.oracles.shared.goals import SoftDensity

    geometry = reduce(make_instance("costs", 12, 4, seed=3))
    program = None
    for share, facet in ((0.3, 0), (0.6, 3), (0.8, 5), (-0.2, 1)):
        part = slice_at(geometry, share * geometry.p_norm)
        goal = SoftDensity(part, 1e-5) if soft else Density.on(part)
        data, box = Data.of(part, goal), box_of(part)
        cone = hull_of(part, sphere(part.dimension)[facet : facet + 1])
        spread = np.abs(data.z).sum(axis=1)
        limits = {"lowest": -spread, "highest": spread, "window": (-share, 1.0)}
        oracle = Milp(cliques=False)
        fresh = model_of(oracle, part, goal, cone, at_least=2.0 + share, box=box, **limits)
        if program is None:
            program = Program(fresh)
            continue
        model = program.model
        set_eta(model, *data.eta)
        set_cone(model, cone, box)
        set_margin(model, **limits)
        set_cutoff(model, 2.0 + share)
        moved, built = program.refresh(), Program(fresh).refresh()
        for name, array in built.items():
            assert np.allclose(moved[name], array, rtol=1e-12, atol=1e-12), name


def test_infeasible_is_no_bound():
    model = knapsack()
    model.least = Constraint(expr=model.x[0] + model.x[1] >= 3)
    solved = Program(model).solve()
    assert solved.has is Has.INFEASIBLE
    assert solved.bound == -math.inf
    assert solved.objective is None
    assert not solved.values


def test_minimising_bounds_from_below():
    solved = Program(knapsack(sense=minimize)).solve()
    assert solved.objective == pytest.approx(0)
    assert solved.bound <= 1e-9


@pytest.mark.slow
def test_a_limit_keeps_what_there_is():
    """Why it stopped and what it has are two things."""
    events: list[Event] = []
    program = Program(hard())
    solved = program.solve(Budget(1.5), events.append)
    assert solved.stop is Stop.TIME
    assert solved.has in (Has.SOLUTION, Has.NOTHING)
    assert math.isfinite(solved.bound)
    assert (solved.objective is None) == (not solved.values)
    assert events
    assert all(e.upper >= solved.bound - 1e-6 for e in events)
    few = program.solve(Budget(20.0, nodes=1))
    assert few.stop is Stop.NODES
    assert few.nodes <= 2


def test_a_watcher_s_fault_stops_the_run_and_is_told():
    def watch(_event):
        raise RuntimeError("the watcher fell asleep")

    program = Program(hard())
    with pytest.raises(RuntimeError, match="fell asleep"):
        program.solve(Budget(30.0), watch)
    assert program.solve(Budget(0.5)).stop is Stop.TIME  # HiGHS is none the worse for it


def test_off_the_main_thread():
    results = []
    model = knapsack()
    worker = threading.Thread(target=lambda: results.append(Program(model).solve()))
    worker.start()
    worker.join()
    assert results[0].objective == pytest.approx(brute(model))


def test_misspelt_options_are_refused():
    with pytest.raises(InputError, match="the option mip_gap"):
        Program(knapsack(), {"mip_gap": 0.1}).solve()
    with pytest.raises(InputError, match="the option presolve"):
        Program(knapsack(), {"presolve": "perhaps"}).solve()


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_is_refused(bad):
    model = ConcreteModel()
    model.x = Var(bounds=(0, 1))
    model.scale = Param(mutable=True, initialize=1.0)
    model.row = Constraint(expr=model.scale * model.x <= 1)
    model.goal = Objective(expr=model.x, sense=maximize)
    program = Program(model)
    model.scale = bad
    with pytest.raises(ArithmeticError, match="not finite"):
        program.solve()


def test_highs_cannot_take_the_exact_norm():
    geometry = reduce(make_instance("uniform-ball", 10, 3, seed=1))
    part = slice_at(geometry, 0.5 * geometry.p_norm)
    model = model_of(Milp(), part, Density.on(part), Exact())
    with pytest.raises(InputError, match="not linear"):
        solve(model)
    with pytest.raises(InputError, match="not linear"):
        Milp(norm="exact")(geometry, 0.5 * geometry.p_norm, Budget(5.0))


@pytest.mark.parametrize("name", ["cplex-of-my-own", "glpk"])
def test_a_solver_that_is_not_installed(name):
    if name == "glpk" and any(
        os.access(f"{folder}/glpsol", os.X_OK) for folder in os.environ["PATH"].split(":")
    ):
        return
    with pytest.raises(InputError, match="is not installed"):
        solve(knapsack(), name)


@pytest.mark.parametrize(("name", "package"), [("scip", "pyscipopt"), ("gurobi", "gurobipy")])
def test_other_solvers_agree(name, package):
    """Where they are installed: the secant model, and the exact one, of the same question."""
    pytest.importorskip(package)
    geometry = reduce(make_instance("uniform-ball", 12, 3, seed=1))
    eta = 0.5 * geometry.p_norm
    mine = Milp()(geometry, eta, Budget(20.0))
    for norm in ("secant", "exact"):
        other = Milp(norm=norm, solver=name)(geometry, eta, Budget(20.0))
        assert other.density == mine.density
        assert other.upper == mine.upper


def test_small_linear_programs():
    box = Inequalities(np.array([[1.0, 1.0]]), np.array([1.5]))
    x = linear_program(np.array([1.0, 2.0]), box, np.zeros(2), np.ones(2))
    assert x == pytest.approx([0.5, 1.0])
    empty = Inequalities(np.array([[1.0, 1.0]]), np.array([-1.0]))
    assert linear_program(np.ones(2), empty, np.zeros(2), np.ones(2)) is None


@pytest.mark.parametrize("seed", range(5))
def test_small_linear_programs_with_limits_on_both_sides(seed):
    """Sparse or not, against scipy's own interface."""
    random = np.random.default_rng(seed)
    rows = random.standard_normal((12, 4)) * (random.random((12, 4)) < 0.5)
    left, right = -random.random(12), random.random(12)
    cost = random.standard_normal(4)
    expected = linprog(
        -cost, A_ub=np.vstack([rows, -rows]), b_ub=np.concatenate([right, -left]), bounds=(-2, 2)
    )
    for given in (rows, csr_array(rows)):
        x = linear_program(cost, Inequalities(given, right, left), np.full(4, -2.0), np.full(4, 2))
        assert cost @ x == pytest.approx(-expected.fun)


@pytest.mark.parametrize("suffix", [".mps", ".lp"])
def test_written_models_are_the_same_model(tmp_path, suffix):
    import highspy

    geometry = reduce(make_instance("uniform-ball", 12, 3, seed=1))
    part = slice_at(geometry, 0.5 * geometry.p_norm)
    model = model_of(Milp(), part, Density.on(part), Secant(8))
    file = tmp_path / f"model{suffix}"
    write_model(model, file)
    highs = highspy.Highs()
    highs.silent()
    assert highs.readModel(str(file)) == highspy.HighsStatus.kOk
    highs.run()
    assert abs(highs.getObjectiveValue()) == pytest.approx(solve(model).objective)
    with pytest.raises(InputError, match=r"\.lp or \.mps"):
        write_model(model, tmp_path / "model.txt")
    with pytest.raises(InputError, match="cannot be written"):
        write_model(model, tmp_path / "nowhere" / f"model{suffix}")


INTERRUPT = """
import os, signal, sys, threading
from mipmech import Budget
from mipmech.solver import Program
from tests.test_solver import hard
program = Program(hard())
sent = []
def watch(event):
    if event.upper < 1e9 and not sent:
        sent.append(os.kill(os.getpid(), signal.SIGINT))
solved = program.solve(Budget(60.0), watch)
print(solved.stop.name, solved.bound < 80.5, solved.seconds < 30)
"""


@pytest.mark.slow
def test_ctrl_c_keeps_bound_and_incumbent(root):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPT], cwd=root, capture_output=True, text=True, check=True,
        timeout=120,
    )  # fmt: skip
    assert done.stdout.split() == ["INTERRUPTED", "True", "True"]
