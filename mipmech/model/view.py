"""What the planner sees: `visible`, `projection` or `view`, as one matrix of exact meaning.

The planner sees Bx. All three fields become the rows of B (`View.matrix`, the numbers of the file)
and a choice of independent rows that span the same space *exactly*. That matters because a
mechanism is graded in rationals: w = Bᵀv must lie in the row space, not near it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from operator import mul
from typing import NoReturn

import numpy as np

from mipmech import validation
from mipmech.errors import InputError, did_you_mean, shorten
from mipmech.rationals import common_integers, exact_dot, solve_whole
from mipmech.tolerances import DEPENDENT, MOST_ROWS, MOST_VIEW, PROJECTION_TOLERANCE, SMALLEST
from mipmech.validation import Floats

# Any primes do; a large one is seldom wrong about a rank, and the first is fast. What is found
# modulo one is verified, and where none helps, whole numbers are eliminated.
PRIMES = (2**61 - 1, 2**89 - 1, 2**64 - 59)


@dataclass(frozen=True, eq=False)
class View:
    """The planner sees ``matrix @ x``.

    matrix : (rows, n) array, the numbers as given
    columns : the columns that span the row space if it is a coordinate subspace, else None
    rows : the numbers of independent rows that span the row space exactly, when columns is None
    """

    matrix: Floats
    columns: tuple[int, ...] | None
    rows: tuple[int, ...]
    # Of `seen_square`, which takes seconds for large views of wide range.
    _squares: dict[bytes, Fraction] = field(default_factory=dict, init=False, repr=False)

    def combine(self, v: Floats) -> list[Fraction]:
        """Bᵀv in rationals: the weights on x of a rule with weights v on what is seen."""
        return [exact_dot(column, v) for column in self.matrix.T]

    def shows(self, direction: Floats) -> bool:
        """Whether what is seen says anything about direction·x: whether B·direction is not 0."""
        return any(exact_dot(row, direction) for row in self.matrix)

    def seen_square(self, vector: Floats) -> Fraction:
        """‖P vector‖² in rationals: (Bf)ᵀ(BBᵀ)⁻¹(Bf) for independent rows of B."""
        if self.columns is not None:
            p = vector[list(self.columns)]
            return exact_dot(p, p)
        key = np.asarray(vector, dtype=np.float64).tobytes()
        if key not in self._squares:
            self._squares[key] = self._seen_square(vector)
        return self._squares[key]

    def _seen_square(self, vector: Floats) -> Fraction:
        # Whole numbers throughout; a row's scale cancels.
        rows = [common_integers(self.matrix[row])[0].tolist() for row in self.rows]
        whole, shift = common_integers(vector)
        bordered = [*rows, whole.tolist()]
        table = [[0] * len(bordered) for _ in bordered]
        for i, a in enumerate(rows):
            for j, b in enumerate(bordered[i:], i):
                table[i][j] = table[j][i] = sum(map(mul, a, b))
        gram, right = [row[:-1] for row in table[:-1]], table[-1][:-1]
        for prime in PRIMES:
            solved = solve_whole(gram, right, prime)
            if solved is not None:
                return Fraction(sum(map(mul, solved[0], right)), solved[1] << 2 * shift)
        # Elimination without fractions (Bareiss): the last two pivots are the determinants of the
        # Gram matrix, plain and bordered by B f.
        previous = 1
        for pivot in range(len(rows)):
            chosen = table[pivot]
            for row in table[pivot + 1 :]:
                factor = row[pivot]
                for column in range(pivot, len(row)):
                    row[column] = (
                        row[column] * chosen[pivot] - factor * chosen[column]
                    ) // previous
            previous = chosen[pivot]
        return Fraction(-table[-1][-1], previous << 2 * shift)

    def check_quality(self, quality: Floats) -> None:
        """Refuse quality of which so little is seen, but not nothing, that floats would lose it."""
        if self.columns is not None:
            return  # no coefficient is so small
        for row in self.matrix:
            if abs(float(exact_dot(row, quality))) >= 2 * SMALLEST * float(np.linalg.norm(row)):
                return
        if self.shows(quality) and self.seen_square(quality) < Fraction(SMALLEST) ** 2:
            said = (
                f"is seen to less than {SMALLEST:g}, but not to 0, which floats would lose: choose"
                " other units, or rows of the view that see exactly nothing of it"
            )
            raise InputError(said, field="quality")

    @property
    def rank(self) -> int:
        """k, the dimension of what the planner sees."""
        return len(self.rows) if self.columns is None else len(self.columns)


def from_visible(visible: Sequence[int], width: int) -> View:
    """Selected columns, in ascending order: which comes first does not change what is seen."""
    columns = tuple(sorted(visible))
    matrix = np.zeros((len(columns), width))
    matrix[np.arange(len(columns)), columns] = 1.0
    return View(matrix, columns, ())


def from_projection(projection: Floats) -> View:
    """An orthogonal projection; its exact meaning is the span of k pivoted columns."""
    size = projection.shape[0]
    if projection.shape != (size, size):
        raise InputError("must be a square matrix, n×n", field="projection")
    if np.abs(projection @ projection - projection).max() > PROJECTION_TOLERANCE:
        raise InputError(
            "is not a projection: P² differs from P; give the rows that the planner sees as 'view'",
            field="projection",
        )
    if np.abs(projection - projection.T).max() > PROJECTION_TOLERANCE:
        raise InputError(
            "is an oblique projection (P differs from its transpose): a rule in its image is not a"
            " function of what is seen; give the rows that the planner sees as 'view'",
            field="projection",
        )
    rank = round(float(np.trace(projection)))
    if rank == 0:
        said = "shows nothing (rank 0); at least one feature must be seen"
        raise InputError(said, field="projection")
    if rank > MOST_ROWS:
        said = f"shows {rank} dimensions, at most {MOST_ROWS} are read; more columns than that may"
        raise InputError(f"{said} be seen as 'visible'", field="projection")
    if rank * size > MOST_VIEW:
        said = f"shows {rank} dimensions of {size:,} features; at most {MOST_VIEW // size:,} can"
        raise InputError(f"{said} be seen of so many", field="projection")
    # A projection's columns are well conditioned, so plain pivoting finds good ones.
    pivots = _pivots(projection.T, rank)
    return _classify(projection[:, pivots].T, tuple(range(rank)))


def from_view(matrix: Floats) -> View:
    """Any rows. Exactly dependent ones are dropped; nearly dependent ones are refused."""
    lengths = np.abs(matrix).max(axis=1)
    for row in np.flatnonzero(lengths == 0):
        raise InputError("is all zeros; leave the row out", field="view", row=int(row))
    unit = matrix / lengths[:, None]
    unit /= np.linalg.norm(unit, axis=1)[:, None]
    values = np.linalg.svd(unit, compute_uv=False)
    near = int((values > DEPENDENT * values[0]).sum())
    if near == len(matrix):
        return _classify(matrix, tuple(range(near)))
    if exact_rank(matrix, enough=near) > near:
        kept = set(_pivots(unit, near))
        extra = next(i for i in range(len(matrix)) if i not in kept)
        said = "depends on the other rows up to rounding, but not exactly; leave it out"
        raise InputError(said, field="view", row=extra)
    return _classify(matrix, tuple(sorted(_pivots(unit, near))))


def _classify(matrix: Floats, rows: tuple[int, ...]) -> View:
    # As many rows as columns that occur: the row space is all of those coordinates, and the
    # columns themselves are an orthonormal basis without rounding. This covers k = n.
    occurring = np.flatnonzero((matrix != 0).any(axis=0))
    if len(occurring) == len(rows):
        return View(matrix, tuple(int(c) for c in occurring), ())
    return View(matrix, None, rows)


def _pivots(rows: Floats, count: int) -> list[int]:
    """The numbers of ``count`` rows, each the farthest from the span of those before it."""
    rest = rows.copy()
    chosen: list[int] = []
    for _ in range(count):
        best = int(np.argmax((rest**2).sum(axis=1)))
        chosen.append(best)
        direction = rest[best] / np.linalg.norm(rest[best])
        for _twice in range(2):  # once loses orthogonality, twice is enough
            rest = rest - np.outer(rest @ direction, direction)
    return chosen


def exact_rank(matrix: Floats, enough: int | None = None) -> int:
    """The rank of a matrix of floats, read as rationals; or some number above ``enough``, if it is.

    >>> exact_rank(np.array([[0.1, 0.2], [0.2, 0.4]]))
    1
    >>> exact_rank(np.array([[0.1, 0.3], [0.3, 0.9]]))  # 3 · 0.1 is not 0.3 in floats
    2
    """
    rows = [common_integers(row)[0].tolist() for row in matrix]
    for prime in PRIMES:
        # Modulo a prime the rank is never more, and numbers stay small.
        chosen, columns = _eliminate(rows, partial(_modulo, prime))
        found = len(chosen)
        if enough is not None and found > enough:
            return found
        basis = [rows[i] for i in chosen]
        square = [[row[j] for row in basis] for j in columns]
        if all(_spanned(rows[i], basis, square, columns, prime)
               for i in range(len(rows)) if i not in chosen):  # fmt: skip
            return found
    return len(_eliminate(rows, _without_common_factor)[0])


def _spanned(
    row: list[int], basis: list[list[int]], square: list[list[int]], columns: list[int], prime: int
) -> bool:
    """Whether a row is exactly a combination of independent ones.

    square : the transpose of these columns of the basis, of which the prime divides no determinant
    """
    if not basis:
        return not any(row)
    solved = solve_whole(square, [row[j] for j in columns], prime)
    if solved is None:
        return False
    x, scale = solved
    used = [(factor, other) for factor, other in zip(x, basis, strict=True) if factor]
    return all(
        sum(factor * other[j] for factor, other in used) == scale * value
        for j, value in enumerate(row)
    )


def _eliminate(
    given: list[list[int]], reduced: Callable[[list[int]], list[int]]
) -> tuple[list[int], list[int]]:
    """Independent rows and columns of whole numbers; each new row is replaced by one as good."""
    rows = [reduced(row) for row in given]
    places, columns = list(range(len(rows))), []
    rank = 0
    for column in range(len(rows[0])):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        places[rank], places[pivot] = places[pivot], places[rank]
        columns.append(column)
        for i in range(rank + 1, len(rows)):
            if rows[i][column]:
                factor, by = rows[i][column], rows[rank][column]
                rows[i] = reduced(
                    [by * a - factor * b for a, b in zip(rows[i], rows[rank], strict=True)]
                )
        rank += 1
        if rank == len(rows):
            break
    return places[:rank], columns


def _modulo(prime: int, row: list[int]) -> list[int]:
    return [value % prime for value in row]


def _without_common_factor(row: list[int]) -> list[int]:
    common = math.gcd(*row) or 1
    return [value // common for value in row]


def unknown_feature(name: str, features: Sequence[str], field: str) -> InputError:
    """The error for a name that no feature has."""
    said = f"names {shorten(name)}, which is not among the features"
    said += f" {shorten(', '.join(features), 200)}{did_you_mean(name, features)}"
    return InputError(said, field=field)


def column_numbers(visible: object, features: tuple[str, ...] | None, width: int) -> list[int]:
    """Names or 0-based numbers of columns as numbers; no repeats, nothing unknown."""

    def refuse(message: str) -> NoReturn:
        raise InputError(message, field="visible")

    numbers: dict[int, None] = {}
    places = {name: place for place, name in enumerate(features or ())}
    for entry in validation.listed(visible, "visible"):
        if isinstance(entry, str):
            if features is None:
                refuse(
                    f"names {shorten(entry)}, but the file has no 'features'; add them, or use"
                    " column numbers"
                )
            if entry not in places:
                raise unknown_feature(entry, features, "visible")
            number = places[entry]
        elif isinstance(entry, (int, np.integer)) and not isinstance(entry, bool):
            number = int(entry)
            if not 0 <= number < width:
                refuse(f"has column number {number}; columns are numbered 0 to {width - 1}")
        else:
            refuse(f"has {shorten(entry)}; give feature names or 0-based column numbers")
        if number in numbers:
            refuse(f"has column {shorten(entry)} twice; list it once")
        numbers[number] = None
    if not numbers:
        refuse("is empty; name at least one column that the planner sees")
    return list(numbers)
