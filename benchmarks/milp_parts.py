"""The parts of the MILP oracle: tables of `milp.py`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import product
from time import perf_counter
from typing import Any
from unittest import mock

import numpy as np
from asking import (
    Question,
    Run,
    Settings,
    Tally,
    compared,
    ratio,
    say,
    table,
    tally,
)
from ground import seconds
from networkx import Graph

import mipmech
from formulations import (
    Secant,
    add_cliques,
    clique_cover,
    conflicts,
    set_cone,
    set_cutoff,
    set_eta,
    set_margin,
    support,
)
from mipmech import Budget
from mipmech.oracles.milp.engine import FIRST_SOLUTION, Milp, box_of, hull_of, limits_of, model_of
from mipmech.oracles.milp.search import ROUNDS, Search, _by_facet
from mipmech.oracles.shared.cones import ConeSet, joined, ranges
from mipmech.solver import Has, Program

# ------------------------------------------------------------------ cliques, windows


@dataclass(frozen=True, eq=False)
class Hull:
    """Open cones of one facet, as the oracle hands them to HiGHS.

    cone : their common hull; limits : ranges of the scores, and the window of b
    """

    cones: ConeSet
    cone: Any
    limits: dict[str, Any]

    @classmethod
    def of(cls, search: Search, cones: ConeSet) -> Hull:
        return cls(cones, hull_of(search.part, cones), limits_of(search, cones))


def open_hulls(question: Question, cones: int) -> tuple[list[Hull], float]:
    """What is open after so many cones, facet by facet, and the best value found."""
    search = Search(question.part, question.goal, Budget().start())
    search.start()
    search.look(ROUNDS[1], thorough=True)
    search._count(0, cones)
    hulls = []
    for group in _by_facet(search.groups[0]):
        lot = joined([group.cones, group.fine])
        lot = lot[lot.bound > search.goal.enough(search.best)]
        if len(lot):
            hulls.append(Hull.of(search, lot))
    return hulls, search.best


def hull_model(
    question: Question, hull: Hull, more_than: float | None, rows: bool = True, **other: Any
) -> Any:
    """The oracle's model of a hull, with or without its cutoff and its clique rows.

    other : what to change in its limits
    """
    more = {**hull.limits, "box": box_of(question.part), **other}
    more["at_least"] = None if more_than is None else more_than + 1
    return model_of(Milp(cliques=rows), question.part, question.goal, hull.cone, **more)


def relaxation(model: Any) -> float:
    """The optimum of the linear relaxation."""
    return Program(model, relaxed=True).solve().bound


def solve_all(models: list[Any], limit: float) -> Run:
    """One model after the other, with one limit for all."""
    timer, done, nodes, worst = Budget(limit).start(), True, 0, -math.inf
    for model in models:
        solved = Program(model).solve(Budget(timer.left))
        done &= solved.has in (Has.OPTIMUM, Has.INFEASIBLE)
        nodes += solved.nodes
        worst = max(worst, solved.bound)
    return Run(min(limit, timer.seconds), worst, worst, done, Tally(len(models), nodes))


def cliques(settings: Settings) -> None:
    """Clique rows: one model for the whole sphere, and models of the hulls of open cones."""
    rows = []
    cases = [("gaussian-mixture", 40, 4), ("uniform-ball", 40, 4), ("clustered-lines", 40, 4)]
    for case, fraction in product(settings.some(cases, 1), (0.9, 0.97)):
        question = Question(*case, fraction=fraction)
        bare, with_ = (
            [model_of(Milp(cliques=flag), question.part, question.goal, Secant(8))]
            for flag in (False, True)
        )
        columns = with_and_without(settings, [at_eta(question)], (bare, bare), (with_, with_))
        rows.append([f"{question}, {fraction}", "sphere", "at η", *columns])
    for question in hull_questions(settings):
        hulls, best = open_hulls(question, HULL_CONES)
        kinds = {
            "at η": [at_eta(question) for _ in hulls],
            "in the hull": [conflicts_within(question, hull) for hull in hulls],
        }
        for name, graphs in kinds.items():
            bare, with_ = (
                [
                    [clique_model(question, hull, cutoff, graph if flag else Graph())
                     for hull, graph in zip(hulls, graphs, strict=True)]
                    for cutoff in (None, best)
                ]
                for flag in (False, True)
            )  # fmt: skip
            columns = with_and_without(settings, graphs, bare, with_)
            rows.append([f"{question}, 0.6", f"{len(hulls)} hulls", name, *columns])
    head = ["case, η/‖p‖", "where", "conflicts", "pairs", "LP bound without", "with"]
    head += ["time without", "with", "nodes without", "with", "with: times as fast as without"]
    table("cliques: rows from the conflict graph", head, rows)


def at_eta(question: Question) -> Graph:
    """The conflicts over all directions at η."""
    data = question.data
    return conflicts(data.z, data.reach, data.p, *data.eta, widen=data.widen)


def clique_model(question: Question, hull: Hull, cutoff: float | None, graph: Graph) -> Any:
    """The model of a hull with the rows of this graph."""
    model = hull_model(question, hull, cutoff, rows=False)
    add_cliques(model, clique_cover(graph))
    return model


def with_and_without(
    settings: Settings, graphs: list[Graph], without: Any, with_: Any
) -> list[object]:
    """The columns of the table; each side is a list of models to relax, and one to solve."""
    bounds = [f"{max(map(relaxation, models)):.2f}" for models, _ in (without, with_)]
    bare, rows = (solve_all(models, settings.limit) for _, models in (without, with_))
    say(f"cliques: without {bare}, with {rows}")
    pairs = f"{np.mean([graph.number_of_edges() for graph in graphs]):.0f}"
    nodes = [bare.highs.nodes, rows.highs.nodes]
    return [pairs, *bounds, bare, rows, *nodes, compared(rows, bare)]


# Cones counted before the open ones are handed to HiGHS.
HULL_CONES = 4000


def hull_questions(settings: Settings) -> list[Question]:
    """Cases that counting so many cones does not close, small enough for one model per facet."""
    cases = [("heavy-tails", 30, 6), ("uniform-ball", 40, 6), ("clustered-lines", 25, 6)]
    return [Question(*case) for case in settings.some(cases, 1)]


def conflicts_within(question: Question, hull: Hull) -> Graph:
    """The conflicts over a hull: as `formulations.conflicts`, with the range over these cones."""
    part = question.part
    first, second = np.triu_indices(len(part.reach), 1)
    differences = replace(
        part,
        along=part.along[first] - part.along[second],
        across=part.across[first] - part.across[second],
        slack=part.slack[first] + part.slack[second],
    )
    where = ranges(differences, hull.cones)
    lowest, highest = where.low.min(axis=0), where.high.max(axis=0)
    room = 2 * question.data.widen
    apart = (lowest > part.reach[second] + room) | (highest < -part.reach[first] - room)
    return Graph(zip(first[apart].tolist(), second[apart].tolist(), strict=True))


def windows(settings: Settings) -> None:
    """The range of b: all scores of the sphere, those of the open cones, or where more can be."""
    rows = []
    for question in hull_questions(settings):
        hulls, best = open_hulls(question, HULL_CONES)
        z, _, _, p, eta = question.arrays
        everywhere = range_of(*support(z, p, *eta))
        choices = {
            "all scores": [everywhere for _ in hulls],
            "scores in the cones": [
                range_of(h.limits["lowest"], h.limits["highest"]) for h in hulls
            ],
            "where more than the best can be": [h.limits["window"] for h in hulls],
        }
        reference = None
        for name, chosen in choices.items():
            models = [
                hull_model(question, hull, best, window=window)
                for hull, window in zip(hulls, chosen, strict=True)
            ]
            run = solve_all(models, settings.limit)
            reference = reference or run
            say(f"windows: {question}: {name} {run}")
            width = f"{np.diff(chosen).mean():.3f}"
            facts = [len(hulls), width, run, run.highs.nodes, compared(run, reference)]
            rows.append([question, name, *facts])
    head = ["case", "window of b from", "hulls", "mean width", "time", "nodes"]
    table("windows: the range of b", [*head, "times as fast as all scores"], rows)


def range_of(lowest: Any, highest: Any) -> tuple[float, float]:
    return float(lowest.min()), float(highest.max())


# ------------------------------------------------------------------ persistent models


def persistent(settings: Settings) -> None:
    """Handling of models beside the solving: moved or rebuilt, and what Pyomo takes of a solve."""
    rows = []
    for agents, same in product(settings.some([50, 200, 1000]), (False, True)):
        here = Question("uniform-ball", agents, 4)
        there = here if same else replace(here, fraction=0.5)
        places = [(here, some_hull(here, 1.0)), (there, some_hull(there, -1.0))]
        moved, rebuilt = moving(places, same), rebuilding(places, same)
        say(f"persistent: m = {agents}")
        what = "another cone, with clique rows" if same else "another η, without clique rows"
        times = [f"{1000 * rebuilt:.1f} ms", f"{1000 * moved:.1f} ms"]
        rows.append([f"m = {agents}, to {what}", *times, ratio(moved, rebuilt)])
    head = ["model of a cone, k = 4", "rebuilt", "moved", "times as fast as rebuilt"]
    table("persistent: model handling, without solving", head, rows)
    pyomo_share(settings)


def moving(places: list[tuple[Question, Hull]], cliques: bool) -> float:
    """Seconds to move a compiled model and to pass it to HiGHS."""
    program = Program(hull_model(*places[0], 3, cliques), FIRST_SOLUTION)
    program._pass(1)
    model = program.model

    def move() -> None:
        places.reverse()
        question, hull = places[0]
        set_eta(model, *question.data.eta)
        set_cone(model, hull.cone, box_of(question.part))
        set_margin(model, **hull.limits)
        set_cutoff(model, 4)
        program._pass(1)

    return seconds(move, 10)


def rebuilding(places: list[tuple[Question, Hull]], cliques: bool) -> float:
    """Seconds to build the same model and the solver anew."""
    return seconds(lambda: Program(hull_model(*places[1], 3, cliques), FIRST_SOLUTION)._pass(1), 3)


def some_hull(question: Question, sign: float) -> Hull:
    """A part of a facet: what a model of the oracle is about, whatever is open in it."""
    d = question.part.dimension
    low, high = np.zeros((1, d)), np.ones((1, d))
    low[0, 0] = high[0, 0] = sign
    search = Search(question.part, question.goal, Budget().start())
    return Hull.of(search, ConeSet(low, high, np.full(1, np.inf)))


def pyomo_share(settings: Settings) -> None:
    """Where the time of Algorithm 1 goes: HiGHS with its models, and Pyomo in that."""
    cases = [
        (Question("heavy-tails", 20, 6), 1.0, Milp(counting=0), "counting=0"),
        (Question("gaussian-mixture", 50, 5), 0.2, Milp(counting=0), "counting=0"),
        (Question("gaussian-mixture", 50, 4), 0.05, Milp(), "default"),
    ]
    rows = []
    for question, epsilon, oracle, name in settings.some(cases):
        with tally() as highs, pyomo_clock() as clock:
            found = mipmech.solve(
                question.geometry, epsilon=epsilon, oracle=oracle, budget=Budget(settings.limit)
            )
        say(f"persistent: {question}: {found.seconds:.1f} s, {highs.calls} models")
        shares = [f"{100 * part / found.seconds:.2f} %" for part in (highs.seconds, clock.seconds)]
        facts = [len(found.steps), highs.calls, f"{found.seconds:.2f} s"]
        rows.append([f"{question}, ε = {epsilon:g}, {name}", *facts, *shares])
    head = ["`mipmech.solve`", "values of η", "models solved", "time"]
    table("persistent: Pyomo's share", [*head, "in HiGHS (with passing)", "in Pyomo"], rows)


@contextmanager
def pyomo_clock() -> Iterator[Tally]:
    """Time spent in building, compiling and moving Pyomo models meanwhile."""
    clock, inside = Tally(), []

    def timed(work: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any, **more: Any) -> Any:
            if inside:  # one builder calls another: count the outer one
                return work(*arguments, **more)
            inside.append(work)
            start = perf_counter()
            try:
                return work(*arguments, **more)
            finally:
                inside.clear()
                clock.seconds += perf_counter() - start

        return wrapper

    places = ["formulations.density.density_model", "formulations.density.set_cutoff"]
    places += ["formulations.eta.set_eta", "formulations.margin.set_margin"]
    places += ["formulations.unit_norm.set_cone"]
    with ExitStack() as stack:
        for place in places:
            original = mock.patch(place).get_original()[0]
            stack.enter_context(mock.patch(place, timed(original)))
        for name in ("_compile", "refresh"):
            method = getattr(Program, name)
            stack.enter_context(mock.patch.object(Program, name, timed(method)))
        yield clock
