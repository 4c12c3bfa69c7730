"""What `milp.py` asks and how it prints: questions, timed runs, tables."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np

from formulations import density_model
from formulations.unit_norm import Exact
from mipmech import Budget, InputError, make_instance
from mipmech.budget import Stop
from mipmech.model import Geometry, reduce
from mipmech.oracles.milp.engine import Data, Milp
from mipmech.oracles.shared.goals import Density
from mipmech.oracles.shared.slices import Slice, slice_at
from mipmech.solver import Has, Program, Solved, solve

# The package behind each solver that Pyomo reaches by name.
PACKAGES = {"gurobi": "gurobipy", "scip": "pyscipopt"}
FAMILIES = ("gaussian-mixture", "uniform-ball", "heavy-tails", "clustered-lines", "costs")


@dataclass(frozen=True)
class Settings:
    """limit : seconds for one solve; quick : fewer and smaller cases"""

    limit: float
    quick: bool

    def some(self, cases: list[Any], count: int = 2) -> list[Any]:
        return cases[:count] if self.quick else cases


@dataclass(frozen=True)
class Question:
    """The densest mechanism of a made instance at a fraction of the largest η."""

    family: str
    agents: int
    rank: int
    seed: int = 1
    fraction: float = 0.6

    def __str__(self) -> str:
        return f"{self.family}, m = {self.agents}, k = {self.rank}"

    @property
    def geometry(self) -> Geometry:
        """A new one every time: the oracle keeps compiled models with the geometry."""
        return reduce(make_instance(self.family, self.agents, self.rank, self.seed))

    @cached_property
    def part(self) -> Slice:
        geometry = self.geometry
        return slice_at(geometry, self.fraction * geometry.p_norm)

    @cached_property
    def goal(self) -> Density:
        return Density.on(self.part)

    @cached_property
    def data(self) -> Data:
        return Data.of(self.part, self.goal)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What every model of `formulations` begins with."""
        data = self.data
        return data.z, data.reach, data.weight, data.p, data.eta


def questions(sizes: Sequence[tuple[int, int]]) -> list[Question]:
    """One question for each (m, k), with the families in turn and seed 1."""
    return [Question(FAMILIES[i % len(FAMILIES)], m, k) for i, (m, k) in enumerate(sizes)]


@dataclass
class Tally:
    """Calls of HiGHS, their nodes and seconds."""

    calls: int = 0
    nodes: int = 0
    seconds: float = 0.0


@contextmanager
def tally() -> Iterator[Tally]:
    """Count what HiGHS is asked meanwhile."""
    counted, original = Tally(), Program.solve

    def counting(self: Program, *arguments: Any, **more: Any) -> Solved:
        start = time.perf_counter()
        solved = original(self, *arguments, **more)
        counted.calls += 1
        counted.nodes += solved.nodes
        counted.seconds += time.perf_counter() - start
        return solved

    Program.solve = counting  # type: ignore[method-assign]
    try:
        yield counted
    finally:
        Program.solve = original  # type: ignore[method-assign]


@dataclass(frozen=True)
class Run:
    """One timed run: what it found and what it proved, in mean weights of an agent.

    done : whether found and bound met within the limit; seconds : the limit if it was reached
    """

    seconds: float
    found: float = math.nan
    bound: float = math.inf
    done: bool = False
    highs: Tally = field(default_factory=Tally)
    refused: str = ""

    def __str__(self) -> str:
        return self.refused or f"{'' if self.done else '>'}{self.seconds:.2f} s"

    @property
    def bounds(self) -> str:
        return f"{self.found:g}" if self.done else f"{self.found:.6g} to {self.bound:.6g}"


def run_oracle(question: Question, oracle: Milp, limit: float) -> Run:
    """The oracle from scratch, all its work included."""
    geometry = question.geometry
    with tally() as highs:
        answer = oracle(geometry, question.fraction * geometry.p_norm, Budget(limit))
    assert answer.upper is not None
    m = len(geometry.z)
    found, bound = float(answer.lower) * m, float(answer.upper) * m
    done = met(found, bound)
    stopped = answer.stop is Stop.TIME
    return Run(limit if stopped else answer.seconds, found, bound, done, highs)


def run_solver(question: Question, name: str, limit: float) -> Run:
    """A nonconvex solver on the model with ‖u‖² = 1; the time to build the model is a gift."""
    model = density_model(*question.arrays, norm=Exact())
    try:
        solved = solve(model, name, Budget(limit))
    except InputError as error:
        if "license" in str(error).lower() or "licence" in str(error).lower():
            return Run(limit, refused="too large for the free licence")
        raise
    found = math.nan if solved.objective is None else solved.objective
    done = solved.has is Has.OPTIMUM and met(found, solved.bound)
    return Run(min(solved.seconds, limit), found, solved.bound, done)


def run_of(solved: Solved, limit: float) -> Run:
    """A run of one model."""
    found = math.nan if solved.objective is None else solved.objective
    done = solved.has in (Has.OPTIMUM, Has.INFEASIBLE)
    return Run(min(solved.seconds, limit), round(found, 6), round(solved.bound, 6), done)


def met(found: float, bound: float) -> bool:
    """Whether the bounds meet, up to what the cutoff leaves open with unequal weights."""
    return bound <= found + 1e-5


def installed(name: str) -> bool:
    return find_spec(PACKAGES[name]) is not None


def warm_up() -> None:
    """Imports and licences, which no table is about."""
    small = Question("uniform-ball", 8, 2)
    run_oracle(small, Milp(norm="secant"), 10)
    for name in filter(installed, PACKAGES):
        run_solver(small, name, 10)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def ratio(time_: float, reference: float) -> str:
    """How many times as fast as a reference."""
    times = reference / time_
    return f"{times:.0f} ×" if times >= 100 else f"{times:.3g} ×"


def compared(run: Run, reference: Run) -> str:
    """`ratio` of two runs; a bound of it if one reached the limit, nothing if both did."""
    if run.refused or reference.refused or not (run.done or reference.done):
        return "–"
    sign = ">" * (not reference.done) + "<" * (not run.done)
    return f"{sign}{ratio(run.seconds, reference.seconds)}"


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(float(np.mean(np.log(values)))) if values else math.nan


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a markdown table: the first column to the left, the others to the right."""
    cells = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(row[j]) for row in cells) for j in range(len(header))]
    print(f"\n## {title}\n")
    for i, row in enumerate(cells):
        first, *others = (
            cell.rjust(w) if j else cell.ljust(w)
            for j, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        print(f"| {' | '.join([first, *others])} |")
        if i == 0:
            left, *right = ("-" * (w + 2) for w in widths)
            print(f"|{'|'.join([left, *(line[:-1] + ':' for line in right)])}|")
    sys.stdout.flush()
