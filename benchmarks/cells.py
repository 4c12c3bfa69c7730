"""How fast the cells engine, its checker and Algorithm 1 on top of it are.

    python benchmarks/cells.py [--quick] [--seconds LIMIT] [--only NAME]

Times are compared within one run. The first call of a process loads the compiled code; that is what
the table "start" is about, and it is left out of the others.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from asking import PACKAGES, Settings, installed, ratio, say, table

from formulations import soft_density_model
from formulations.unit_norm import Exact
from mipmech import Budget, Instance, check, make_instance, solve, theory
from mipmech.design import certificate as certificates
from mipmech.design.certificate import Certificate
from mipmech.model import Geometry, reduce
from mipmech.oracles.registry import oracle_named
from mipmech.solver import _new_interface

# family, m, k, gap, and the seconds of the trial engine that the design quotes (two cores)
TRIAL = [
    ("gaussian-mixture", 1000, 2, 1e-6, 0.02),
    ("gaussian-mixture", 1000, 3, 1e-6, 0.8),
    ("gaussian-mixture", 50, 4, 1e-6, 0.4),
    ("gaussian-mixture", 10_000, 3, 1e-3, 36.0),
    ("gaussian-mixture", 50, 5, 1e-3, 19.0),
    ("gaussian-mixture", 200, 4, 1e-3, None),
    ("gaussian-mixture", 60, 5, 1e-3, None),
    ("uniform-ball", 1000, 3, 1e-6, 0.8),
    ("uniform-ball", 50, 4, 1e-6, 0.4),
    ("uniform-ball", 10_000, 3, 1e-3, 36.0),
    ("uniform-ball", 50, 5, 1e-3, 19.0),
    ("uniform-ball", 200, 4, 1e-3, None),
    ("uniform-ball", 60, 5, 1e-3, None),
]
# The same for density at η = 0.6‖p‖, exact.
DENSITY = [(1000, 3, 0.014), (100, 4, 0.014), (80, 5, 0.16), (50, 6, 1.0), (30, 8, None)]


def searched(geometry: Geometry, gap: float, threads: int) -> Certificate:
    """What the engine finds, not yet checked."""
    return certificates._by_cells(geometry, gap, Budget(math.inf, threads).start())


def checked(found: Certificate) -> tuple[float, Any]:
    content = replace(found, upper=found.upper * (1 + 1e-9)).content()
    start = perf_counter()
    verdict = check(content, found.instance)
    return perf_counter() - start, verdict


def gain(settings: Settings) -> None:
    """Search and check, one thread each and two; against the trial engine's figures."""
    rows = []
    for family, m, k, gap, before in settings.some(TRIAL, 3):
        geometry = reduce(make_instance(family, m, k, 1))
        times = []
        for threads in (1, 2):
            start = perf_counter()
            found = searched(geometry, gap, threads)
            times.append(perf_counter() - start)
        seconds, verdict = checked(found)
        assert verdict.accepted, verdict.reason
        size = len(str(found.proof["tree"])) / 1000
        say(f"gain: {family} {m} {k}: {times}, check {seconds}")
        rows.append([
            f"{family}, m = {m:,}, k = {k}, gap {gap:g}", f"{times[0]:.2f} s", f"{times[1]:.2f} s",
            f"{seconds:.2f} s", ratio(seconds, times[0]), f"{verdict.leaves:,}", f"{size:.0f} kB",
            "" if before is None else f"{before:g} s",
            "" if before is None else ratio(times[1], before),
        ])  # fmt: skip
    head = ["case", "search, 1 thread", "2 threads", "check, 1 thread",
            "check: times as fast as search", "leaves", "tree", "trial, 2 cores",
            "2 threads: times as fast as trial"]  # fmt: skip
    table("Gain: search and check", head, rows)


def density(settings: Settings) -> None:
    """Exact density at a fixed η: cells against the MILP oracle (counting included)."""
    rows = []
    for family in ("gaussian-mixture", "uniform-ball"):
        for m, k, before in settings.some(DENSITY, 2):
            geometry = reduce(make_instance(family, m, k, 1))
            eta = 0.6 * geometry.p_norm
            seconds, answers = {}, {}
            for name in ("cells", "milp"):
                start = perf_counter()
                answers[name] = oracle_named(name)(geometry, eta, Budget(settings.limit))
                seconds[name] = perf_counter() - start
            late = "" if answers["milp"].closed else ">"
            say(f"density: {family} {m} {k}: {seconds}")
            rows.append([
                f"{family}, m = {m:,}, k = {k}", f"{float(answers['cells'].density) * m:g}",
                answers["cells"].status, f"{seconds['cells']:.3f} s",
                f"{late}{seconds['milp']:.3f} s",
                late + ratio(seconds["cells"], seconds["milp"]),
                "" if before is None else f"{before:g} s",
            ])  # fmt: skip
    head = ["case", "optimum", "cells", "time", "milp", "times as fast as milp", "trial, 2 cores"]
    table("Density at η = 0.6‖p‖, one thread", head, rows)


def copies(times: int) -> Instance:
    """A sample of 1,000, every agent so many times, a little apart: the same landscape."""
    base = make_instance("gaussian-mixture", 1000, 3, 1)
    agents = np.repeat(base.agents, times, axis=0)
    apart = 1e-3 * np.random.default_rng(0).standard_normal(agents.shape)
    return Instance.from_arrays(
        agents + apart * (times > 1), base.quality, visible=[0, 1, 2], cost=float(base.cost[0])
    )


def growth(settings: Settings) -> None:
    """Time against the number of agents: larger samples, and copies of one sample."""
    rows, sizes = [], settings.some([1000, 3000, 10_000, 30_000, 100_000], 3)
    times: dict[str, list[float]] = {"larger samples": [], "copies of one": []}
    for m in sizes:
        row = [f"{m:,}"]
        samples = make_instance("gaussian-mixture", m, 3, 1), copies(m // 1000)
        for what, sample in zip(times, samples, strict=True):
            geometry = reduce(sample)
            start = perf_counter()
            found = searched(geometry, 1e-3, 2)
            seconds = perf_counter() - start
            say(f"growth: {what}, {m}: {seconds:.2f} s")
            times[what].append(seconds)
            row += [f"{seconds:.2f} s", f"{found.work['nodes']:,}", f"{seconds / m * 1e6:.0f} µs"]
        rows.append(row)
    head = ["agents"]
    for what in times:
        head += [f"{what}: time", "nodes", "per agent"]
    table("Growth: gaussian-mixture, k = 3, gap 1e-3, two threads", head, rows)
    for what, seconds in times.items():
        power = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
        print(f"\n{what}: time grows like m^{power:.2f} (least squares on the logarithms).")


def gain_model(geometry: Geometry) -> Any:
    """The gain as a nonconvex model: ‖u‖² = 1, and the objective (u·p)·Σω t."""
    from pyomo.environ import Objective, maximize

    p = geometry.p / geometry.p_norm
    arrays = (geometry.z, geometry.reach, geometry.weight, p, (0.0, 1.0))
    model = soft_density_model(*arrays, norm=Exact())
    model.objective.deactivate()
    rate = sum(float(c) * model.u[j] for j, c in enumerate(p))
    moved = sum(float(w) * model.t[i] for i, w in enumerate(geometry.weight))
    model.gain = Objective(expr=rate * moved, sense=maximize)
    return model


def rivals(settings: Settings) -> None:
    """Cells against nonconvex solvers on the same gain problem, to the same gap."""
    rows = []
    for family, m, k in settings.some([("gaussian-mixture", 50, 3), ("uniform-ball", 50, 3)], 1):
        geometry = reduce(make_instance(family, m, k, 1))
        start = perf_counter()
        found = searched(geometry, 1e-3, 1)
        ours = perf_counter() - start
        scale = geometry.p_norm * geometry.unit
        for name in PACKAGES:
            if not installed(name):
                print(f"\n{name} is left out: {PACKAGES[name]} is not installed.")
                continue
            solver = _new_interface(name)
            solver.config.time_limit, solver.config.threads = settings.limit, 1
            solver.config.rel_gap = 1e-3
            solver.config.load_solutions = False
            solver.config.raise_exception_on_nonoptimal_result = False
            if name == "scip":
                solver.config.solver_options["display/verblevel"] = 0
            start = perf_counter()
            results = solver.solve(gain_model(geometry))
            seconds = perf_counter() - start
            lower, upper = results.incumbent_objective, results.objective_bound
            gap = 1 - lower / upper if lower is not None and upper else 1.0
            late = ">" if gap > 1e-3 * 1.01 else ""
            say(f"rivals: {family} {m} {k} {name}: {seconds:.1f} s, gap {gap:.3g}")
            rows.append([
                f"{family}, m = {m}, k = {k}", f"{ours * 1e3:.0f} ms", f"{float(found.lower):.6g}",
                name, f"{late}{seconds:.1f} s", f"{(lower or 0) * scale:.6g}", f"{gap:.2%}",
                late + ratio(ours, seconds),
            ])  # fmt: skip
    head = ["case", "cells", "gain", "rival", "time", "its gain", "its gap",
            "cells: times as fast"]  # fmt: skip
    table("Gain to 1e-3, one thread each, against nonconvex solvers", head, rows)


def engines(settings: Settings) -> None:
    """Which engine for which (m, k): what `auto` rests on."""
    rows = []
    for m, k in settings.some([(30, 3), (60, 4), (20, 6), (15, 7), (20, 8)], 2):
        sample = make_instance("gaussian-mixture", m, k, 1)
        cells = []
        for engine in ("cells", "milp"):
            budget = Budget(settings.limit)
            found = certificates.certify(sample, gap=1e-3, engine=engine, budget=budget)
            late = "" if found.status == "optimal" else ">"
            cells += [f"{late}{found.seconds:.2f} s", f"{found.gap:.2g}"]
            say(f"engines: {m} {k} {engine}: {found}")
        rows.append([f"m = {m}, k = {k}", *cells])
    table("Engines of certify: gap 1e-3, check included, one thread",
          ["gaussian-mixture", "cells", "gap", "milp", "gap"], rows)  # fmt: skip


def grid(settings: Settings) -> None:
    """Algorithm 1 on the paper's grid: 10,001 values of η, answered or skipped by proof."""
    rows = []
    sample = make_instance("gaussian-mixture", 200, 3, 1)
    geometry = reduce(sample)
    etas = theory.paper_grid(geometry, 0.1, 0.4, 1.0).etas
    for name, thresholds in (("cells-soft", "best"), ("milp-soft", "best"), ("cells", "best"),
                             ("cells", "two")):  # fmt: skip
        asked = oracle_named(name)
        some = etas[:: 500 if settings.quick else 200]
        start = perf_counter()
        for eta in some:
            asked(geometry, float(eta), Budget())
        each = (perf_counter() - start) / len(some) * len(etas)
        start = perf_counter()
        found = solve(sample, epsilon=0.1, oracle=asked, grid="paper", sigma=0.4, radius=1.0,
                      thresholds=thresholds, skip="cells")  # fmt: skip
        seconds = perf_counter() - start
        assert found.complete
        say(f"grid: {name}: {seconds:.2f} s against {each:.0f} s")
        rows.append([f"{name}, {thresholds}", f"{len(found.steps)}", f"{found.skipped:,}",
                     f"{seconds:.2f} s", f"{each:.0f} s", ratio(seconds, each)])  # fmt: skip
    head = ["oracle, thresholds", "asked", "skipped", "time", "each asked (extrapolated)",
            "times as fast"]  # fmt: skip
    table("Algorithm 1 on the paper's grid, ε = 0.1, m = 200, k = 3", head, rows)


def start(settings: Settings) -> None:
    """A new process, with the compiled code in the cache."""
    del settings
    code = (
        "import time; t = time.perf_counter(); import mipmech;"
        "a = time.perf_counter() - t; s = mipmech.make_instance('gaussian-mixture', 30, 2, 1);"
        "mipmech.certify(s); print(a, time.perf_counter() - t)"
    )
    rows = []
    for what in ("first in this run", "again", "once more"):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        imported, whole = map(float, done.stdout.split())
        rows.append([what, f"{imported:.2f} s", f"{whole:.2f} s"])
    table("Start: a new process", ["", "import mipmech", "and certify 30 agents"], rows)


SECTIONS = {
    "gain": gain,
    "density": density,
    "growth": growth,
    "rivals": rivals,
    "engines": engines,
    "grid": grid,
    "start": start,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few small cases only")
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of one solve")
    parser.add_argument("--only", choices=SECTIONS, help="one table")
    chosen = parser.parse_args()
    small: Instance = make_instance("gaussian-mixture", 20, 2, 1)
    certificates.certify(small)
    for name in ("cells", "cells-soft", "milp"):
        oracle_named(name)(reduce(small), 0.5, Budget(10.0))
    for name, section in SECTIONS.items():
        if chosen.only in (None, name):
            begun = perf_counter()
            section(Settings(chosen.seconds, chosen.quick))
            say(f"{name}: {perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
