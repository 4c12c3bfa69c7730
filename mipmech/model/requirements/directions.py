"""Which directions are allowed: weights that are at least others, or at least 0, or at most 0.

The weights in question are those of a rule on the features that the planner sees, or, for a general
view, on its rows (`weights_of`). Every requirement on them is of the form "one weight is at least
another", where 0 counts as a weight too, so together they are a directed graph on the weights and
0, and its geometry is read off the graph: a cycle forces weights to be equal, a cycle through 0
forces them to be 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from mipmech.errors import InputError
from mipmech.model.geometry import Geometry
from mipmech.model.instance import Instance
from mipmech.model.mechanism import Mechanism
from mipmech.tolerances import EPSILON
from mipmech.validation import Flags, Floats

# The place of the number 0 among the weights.
ZERO = -1
# A weight, by its place, is at least another one.
Pair = tuple[int, int]


def places_of(instance: Instance) -> tuple[int, ...]:
    """The weights that a rule may have: columns seen, or rows of the view."""
    columns = instance.view.columns
    return tuple(range(len(instance.view.matrix))) if columns is None else columns


def weights_of(instance: Instance, mechanism: Mechanism) -> list[Fraction]:
    """The weights that requirements are about, exactly, by place."""
    if instance.view.columns is None:
        return [Fraction(v) for v in mechanism.view_weights or ()]
    return [Fraction(w) for w in mechanism.weights]


def weight_names(instance: Instance) -> list[str]:
    """What to call the weights."""
    if instance.view.columns is None:
        return [f"row {row} of the view" for row in range(len(instance.view.matrix))]
    return list(instance.feature_names)


@dataclass(frozen=True)
class DirectionCone:
    """The directions with weight a ≥ weight b for all pairs (a, b).

    places : the weights that there are
    pairs : places, or `ZERO`, without repeats
    """

    places: tuple[int, ...]
    pairs: tuple[Pair, ...]

    @cached_property
    def _graph(self) -> Any:
        import networkx  # noqa: PLC0415  (slow to import)

        graph = networkx.DiGraph()
        graph.add_nodes_from((ZERO, *self.places))
        graph.add_edges_from(self.pairs)
        return graph

    @cached_property
    def _together(self) -> list[frozenset[int]]:
        """Weights that must be equal, in an order in which none is above one before it."""
        import networkx  # noqa: PLC0415  (slow to import)

        whole = networkx.condensation(self._graph)
        order = networkx.lexicographical_topological_sort(whole)
        return [frozenset(whole.nodes[node]["members"]) for node in order]

    @property
    def zeros(self) -> frozenset[int]:
        """The weights that must be 0."""
        return next(group for group in self._together if ZERO in group) - {ZERO}

    @property
    def open(self) -> bool:
        """Whether some direction meets strictly what is not met by weights that must be 0."""
        return all(len(group) == 1 or ZERO in group for group in self._together)

    def check(self) -> None:
        """Refuse a cone without any direction."""
        if self.zeros >= set(self.places):
            raise InputError(
                "leave every weight at 0, so no rule is left: nonnegative, nonpositive and order"
                " contradict each other; drop one of them",
                field="requirements",
            )

    def rows(self, width: int) -> Floats:
        """A row a for each pair, so that a·weights ≥ 0: (pairs, width) array of −1, 0 and 1."""
        table = np.zeros((len(self.pairs), width))
        for row, (above, below) in enumerate(self.pairs):
            if above != ZERO:
                table[row, above] += 1.0
            if below != ZERO:
                table[row, below] -= 1.0
        return table

    def missed(self, pair: Pair, weights: Sequence[Fraction]) -> Fraction:
        """By how much a rule's weights fail a pair, as a share of its largest; 0 if they do not."""
        above, below = (Fraction(0) if place == ZERO else weights[place] for place in pair)
        if above >= below:
            return Fraction(0)
        return (below - above) / max(abs(w) for w in weights)

    def allows(self, weights: Sequence[Fraction]) -> bool:
        """Whether weights meet all pairs, exactly."""
        return not any(self.missed(pair, weights) for pair in self.pairs)

    def repaired(self, weights: Sequence[float]) -> list[float]:
        """Weights in the cone, near the given ones: equal ones averaged, others raised or lowered.

        Weights above 0 are raised, from the lowest on, the others lowered, from the highest on; so
        nothing is rounded but averages, and what meets all pairs stays as it is.
        """
        result = list(weights)
        value: dict[frozenset[int], float] = {}
        where: dict[int, frozenset[int]] = {}
        for group in self._together:
            members = sorted(group - {ZERO})
            equal = len({result[j] for j in members}) <= 1
            middle = result[members[0]] if members and equal else _mean(result, members)
            value[group] = 0.0 if ZERO in group else middle
            where.update((j, group) for j in group)
        above = self._above_zero()
        for group in reversed(self._together):
            if group <= above:
                value[group] = max([value[group], *self._values(group, where, value, up=False)])
        for group in self._together:
            if not group <= above and ZERO not in group:
                value[group] = min([value[group], *self._values(group, where, value, up=True)])
        for j in self.places:
            result[j] = value[where[j]]
        return result

    def rim(self, weights: Sequence[float]) -> DirectionCone:
        """The side of the cone that some of its weights lie on: what is equal there stays so."""
        equal = [
            (below, above)
            for above, below in self.pairs
            if (0.0 if above == ZERO else weights[above])
            == (0.0 if below == ZERO else weights[below])
        ]
        return DirectionCone(self.places, tuple(dict.fromkeys((*self.pairs, *equal))))

    def tightened(self, weights: Sequence[float]) -> Iterator[list[float]]:
        """Weights in the cone with one more pair equal, for each pair that is not: on its rim.

        Where agents respond in another way there (l1, linf), rules on the rim may be the best.
        """
        for above, below in self.pairs:
            high, low = (0.0 if j == ZERO else weights[j] for j in (above, below))
            if high != low:
                yield DirectionCone(self.places, (*self.pairs, (below, above))).repaired(weights)

    def _above_zero(self) -> set[int]:
        """The weights that are at least 0, but for those that must be 0."""
        import networkx  # noqa: PLC0415  (slow to import)

        found = set(networkx.ancestors(self._graph, ZERO))
        return found - set(networkx.descendants(self._graph, ZERO))

    def _values(
        self, group: frozenset[int], where: dict[int, frozenset[int]],
        value: dict[frozenset[int], float], up: bool,
    ) -> Iterable[float]:  # fmt: skip
        """The values of those that are directly above a group, or below it."""
        for above, below in self.pairs:
            inside, other = (below, above) if up else (above, below)
            if inside in group and other not in group:
                yield value[where[other]]


def _mean(values: Sequence[float], places: Sequence[int]) -> float:
    return sum(values[j] for j in places) / len(places) if places else 0.0


def reduced_rows(geometry: Geometry, cone: DirectionCone) -> tuple[Floats, Floats]:
    """The cone in reduced coordinates: a·u ≥ 0 for rows a, (r, k), each off by at most its room.

    The room, (r,), is 0 where a row is exact: a multiple of one coordinate, or a difference of two.

    Parameters
    ----------
    geometry : Geometry
        The sample in reduced coordinates.
    cone : DirectionCone
        Of the same instance.
    """
    if geometry.transfer is None:
        back = geometry.basis
        size = np.asarray(np.linalg.norm(back, axis=0))
    else:  # v = L⁻ᵀu
        back = np.asarray(np.linalg.inv(geometry.transfer))
        size = np.full(back.shape[1], float(np.linalg.norm(back)))
    table = cone.rows(back.shape[1])
    if geometry.transfer is None:  # weights that are 0 by themselves demand nothing
        table = table[(table @ back.T).any(axis=1)]
    rows = table @ back.T
    exact = geometry.rounding.basis == 0 and bool(((back != 0).sum(axis=1) == 1).all())
    # Points of a cube are at most √k long.
    longest = np.sqrt(geometry.rank)
    room = longest * (geometry.rounding.back + 64 * EPSILON) * (np.abs(table) @ size)
    single: Flags = (rows != 0).sum(axis=1) == 1
    rows[single] = np.sign(rows[single])
    whole = np.isin(rows, (-1.0, 0.0, 1.0)).all(axis=1)
    return rows, np.where(whole & exact, 0.0, room)
