"""How fast the MILP oracle is: against other solvers, and with and without each of its parts.

    python benchmarks/milp.py [--quick] [--seconds LIMIT] [--only NAME]

One thread each. Times are compared within one run, because machines are shared and noisy; a time
with ">" reached the limit, and counts as the limit. η is 0.6‖p‖ unless a table says otherwise.
Values are numbers of agents (with unequal weights: in mean weights).
"""

from __future__ import annotations

import argparse
import math
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np
from asking import (
    PACKAGES,
    Question,
    Run,
    Settings,
    compared,
    geometric_mean,
    installed,
    questions,
    run_of,
    run_oracle,
    run_solver,
    say,
    table,
    warm_up,
)
from milp_parts import cliques, persistent, windows
from pyomo.environ import ConcreteModel

from formulations import (
    Secant,
    add_eta,
    density_model,
    naive_margin,
    support,
)
from formulations.density import add_objective
from mipmech import Budget
from mipmech.oracles.milp.engine import Milp
from mipmech.solver import Program, Solved

# ------------------------------------------------------------------ against other solvers


def aim(settings: Settings) -> None:
    """Every m with every k, the families in turn."""
    rivals = [name for name in PACKAGES if installed(name)]
    for name in PACKAGES.keys() - rivals:
        print(f"\n{name} is left out: {PACKAGES[name]} is not installed.")
    rows, results = [], []
    for question in settings.some(questions(list(product((30, 50, 80), (4, 5, 6, 8))))):
        runs = {"milp": run_oracle(question, Milp(), settings.limit)}
        runs["counting=0"] = run_oracle(question, Milp(counting=0), settings.limit)
        for name in rivals:
            runs[name] = run_solver(question, name, settings.limit)
        say(f"aim: {question}: {', '.join(f'{name} {run}' for name, run in runs.items())}")
        ours, models = runs["milp"], runs["counting=0"]
        faster = [compared(ours, runs[name]) for name in rivals]
        calls = f"{ours.highs.calls}, {models.highs.calls}"
        times = [ours, models, *(runs[name] for name in rivals)]
        rows.append([question, ours.bounds, *times, calls, *faster])
        results.append(runs)
        if not agree(runs):
            said = ", ".join(f"{name} {run.bounds}" for name, run in runs.items())
            print(f"\n**THE SOLVERS DISAGREE** on {question}: {said}")
    head = ["case", "optimum", "milp", "counting=0", *rivals, "calls of HiGHS"]
    table("aim: time to proved optimality", head + [f"times as fast as {n}" for n in rivals], rows)
    print()
    for name in rivals:
        print(summary(results, name))


def agree(runs: dict[str, Run]) -> bool:
    """Whether no run found more than another one's bound."""
    known = [run for run in runs.values() if not run.refused]
    best = max((run.found for run in known if not math.isnan(run.found)), default=-math.inf)
    return all(best <= run.bound + 1e-4 for run in known)


def summary(results: list[dict[str, Run]], name: str) -> str:
    """The geometric mean of the ratios of times, and who reached the limit how often."""
    pairs = [(runs["milp"], runs[name]) for runs in results if not runs[name].refused]
    late = [sum(not pair[i].done for pair in pairs) for i in (0, 1)]
    both = [b.seconds / a.seconds for a, b in pairs if a.done and b.done]
    every = geometric_mean([b.seconds / a.seconds for a, b in pairs])
    return (
        f"milp is {every:.2f} times as fast as {name} (geometric mean of {len(pairs)} cases; at the"
        f" limit: milp {late[0]}, {name} {late[1]}); {geometric_mean(both):.2f} times where both"
        f" finished ({len(both)} cases).  "
    )


# ------------------------------------------------------------------ the unit norm


def norms(settings: Settings) -> None:
    """Approximations of the unit norm: one model for the whole sphere, or cones."""
    oracles = {"cones": Milp(), "cones, counting=0": Milp(counting=0), "Box": Milp(norm="box")}
    for encoding, segments in product(("binary", "logarithmic"), (4, 8, 16)):
        name = f"Secant({segments}), {encoding}"
        oracles[name] = Milp(norm="secant", segments=segments, encoding=encoding)
    rows = []
    for question in settings.some(questions([(20, 3), (40, 3), (30, 4), (20, 5), (40, 6)])):
        runs = {}
        for name, oracle in oracles.items():
            runs[name] = run = run_oracle(question, oracle, settings.limit)
            say(f"norms: {question}: {name} {run}")
            how = [run.highs.calls, run.highs.nodes, "yes" if run.done else "no", run.bounds]
            rows.append([question, name, run, *how, compared(run, runs["cones"])])
    head = [
        "case",
        "norm",
        "time",
        "models",
        "nodes",
        "bounds met",
        "found",
        "times as fast as cones",
    ]
    table("norms: approximations of ‖u‖ = 1", head, rows)


# ------------------------------------------------------------------ big M


def big_m(settings: Settings) -> None:
    """A constant M against the tight one, on the same secant model at HiGHS's own tolerances."""
    options = {"mip_feasibility_tolerance": 1e-6, "primal_feasibility_tolerance": 1e-6}
    variants: list[tuple[str, float | None, bool]] = [("tight", None, False)]
    variants += [(f"{m:g}", m, False) for m in (1e2, 1e3)]
    variants += [(f"{m:g}, b within ±M", m, True) for m in (1e2, 1e3, 1e5)]
    rows = []
    for question in settings.some(questions([(20, 3), (30, 4), (40, 3), (40, 4)])):
        truth = run_oracle(question, Milp(), settings.limit)
        reference = None
        for name, constant, free in variants:
            model = secant_model(question, constant, free)
            solved = Program(model, options).solve(Budget(settings.limit))
            run = run_of(solved, settings.limit)
            reference = reference or run
            say(f"big-m: {question}: M = {name} {run}")
            inside = really_in(question, solved)
            false = inside < run.found - 1e-4
            faster = "false claim" if false else compared(run, reference)
            claim = [run.bounds, f"{inside:g}", truth.bounds]
            rows.append([question, name, run, solved.nodes, *claim, faster])
    head = ["case", "M", "time", "nodes", "claimed", "of them in its own margin"]
    head += ["optimum on the sphere", "times as fast as tight"]
    table("big-m: Secant(8), constant M against tight M", head, rows)


def secant_model(question: Question, constant: float | None, free: bool) -> Any:
    """The density model with `Secant` and tight M, or with one constant M for all.

    free : b is bounded by ±M only, instead of by the scores
    """
    z, reach, weight, p, eta = question.arrays
    if constant is None:
        return density_model(z, reach, weight, p, eta, norm=Secant(8))
    lowest, highest = support(z, p, *eta)
    window = (-constant, constant) if free else (float(lowest.min()), float(highest.max()))
    model = ConcreteModel()
    Secant(8).add(model, z.shape[1], support(np.eye(z.shape[1]), p, *eta))
    add_eta(model, p, *eta)
    naive_margin(model, z, reach, window=window, m=constant)
    add_objective(model, model.s, weight, None)
    return model


def really_in(question: Question, solved: Solved) -> float:
    """What of a solution lies in the margin of its own u and b, to within ten tolerances."""
    if not solved.values:
        return math.nan
    z, reach, weight, _, _ = question.arrays
    u = np.array([solved.values[f"u[{j}]"] for j in range(z.shape[1])])
    chosen = np.array([solved.values[f"s[{i}]"] > 0.5 for i in range(len(z))])
    distance = solved.values["b"] - z @ u
    inside = (distance >= -1e-5) & (distance <= reach + 1e-5)
    return float(weight[chosen & inside].sum())


SECTIONS = {
    "aim": aim,
    "norms": norms,
    "big-m": big_m,
    "cliques": cliques,
    "windows": windows,
    "persistent": persistent,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few small cases only")
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of one solve")
    parser.add_argument("--only", choices=SECTIONS, help="one table")
    chosen = parser.parse_args()
    warm_up()
    for name, section in SECTIONS.items():
        if chosen.only in (None, name):
            start = perf_counter()
            section(Settings(chosen.seconds, chosen.quick))
            say(f"{name}: {perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
