"""What is demanded of rules, made ready for the compiled code.

Where it matters who is accepted, agents of whom the planner sees the same, and whose moves cost the
same, are one: they are accepted together, and a bound that counted some of them alone would stay
too high however small the cell.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mipmech.model.geometry import Geometry
from mipmech.model.requirements.directions import reduced_rows
from mipmech.oracles.cells.blocks import CellProblem
from mipmech.oracles.shared.restrictions import alike
from mipmech.oracles.shared.slices import Slice
from mipmech.tolerances import EPSILON, SAFETY
from mipmech.validation import Floats, Numbers

# A room that no row of the cone is within.
NEVER_EXACT = 1e-14


def restricted(
    problem: CellProblem, geometry: Geometry, agents: Numbers, part: Slice | None = None
) -> CellProblem:
    """The problem with only the rules that are allowed.

    agents : (m,) array, the numbers of the problem's agents in the instance
    part : the slice whose v the problem is about; None if v is u itself
    """
    demands = geometry.demands
    if demands is None:
        return problem
    allowed, shares = problem.allowed, demands.shares
    if demands.cone is not None:
        rows, room = reduced_rows(geometry, demands.cone)
        shift = np.zeros(len(rows))
        if part is not None:
            rows, shift, room = _on_slice(part, rows, room)
        if geometry.norm == "l1":
            # Where facets meet, agents do what is best on one of them: that one must stay.
            room = np.maximum(room, NEVER_EXACT)
        strict = demands.cone.open
        allowed = replace(allowed, rows=rows, shift=shift, room=room, strict=strict)
    if shares is not None:
        classes = shares.members[agents] if shares.by_class else np.zeros(len(agents), np.int64)
        totals = shares.totals if shares.by_class else shares.totals.sum(keepdims=True)
        mass = np.zeros((len(totals), len(agents)))
        mass[classes, np.arange(len(agents))] = shares.mass[agents]
        limits = np.array([shares.low, shares.high, float(shares.within)])
        ranks = allowed.ranks
        # A feature less the centre, times a price, over a power of two: sums would mix features.
        if part is None and geometry.transfer is None and geometry.rounding.basis == 0:
            ranks = _ranks(geometry, agents)
        allowed = replace(
            allowed, mass=mass, totals=totals.astype(np.float64), limits=limits, ranks=ranks
        )
        seen = geometry.seen or geometry.instance
        return _merged(replace(problem, allowed=allowed), alike(seen, agents))
    return replace(problem, allowed=allowed)


def _on_slice(part: Slice, rows: Floats, room: Floats) -> tuple[Floats, Floats, Floats]:
    """The rows in terms of v, u = cos θ · p̂ + sin θ · H v; the width of the band of η is room."""
    sizes = np.linalg.norm(rows, axis=1)
    wide = part.most - part.least + 4 * part.geometry.band + 64 * EPSILON
    shift = np.cos(part.angle) * (rows @ part.towards)
    return np.sin(part.angle) * (rows @ part.turn), shift, room + SAFETY * wide * sizes


def _ranks(geometry: Geometry, agents: Numbers) -> NDArray[np.int32]:
    """How agents are ordered by the feature behind each coordinate, and by how far they go."""
    costs = geometry.instance.costs
    columns = (geometry.basis != 0).argmax(axis=1)
    paid = costs.values[agents]
    features = geometry.instance.agents[agents][:, columns].T
    ordered = [*features, paid if costs.given == "reach" else -paid]
    return np.array(
        [np.unique(values, return_inverse=True)[1].reshape(-1) for values in ordered], np.int32
    )


def _merged(problem: CellProblem, first: Numbers) -> CellProblem:
    """One agent in the place of all that are alike, with their weights and masses."""
    kept, place = np.unique(first, return_inverse=True)
    weight: Floats = np.bincount(place, weights=problem.weight).astype(np.float64)
    mass = np.zeros((len(problem.allowed.totals), len(kept)))
    for row, values in enumerate(problem.allowed.mass):
        mass[row] = np.bincount(place, weights=values)
    small = problem.only(kept)
    return replace(small, weight=weight, allowed=replace(small.allowed, mass=mass))
