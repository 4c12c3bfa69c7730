"""The costs of an instance: who pays how much, for a move of which length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, NoReturn, get_args

import numpy as np
from numpy.typing import ArrayLike

from mipmech import validation
from mipmech.errors import InputError, did_you_mean, shorten
from mipmech.model.costs import chebyshev, euclidean, manhattan
from mipmech.model.costs.response import Response, Sparse
from mipmech.model.named import by_name
from mipmech.model.view import View
from mipmech.rationals import clamped, fractions, sqrt_bounds
from mipmech.text import listed
from mipmech.tolerances import DEAREST, DEPENDENT, LARGEST, MOST_ROWS, SMALLEST
from mipmech.validation import Flags, Floats, Numbers

Norm = Literal["l2", "l1", "linf"]
Given = Literal["cost", "reach"]

# What else the norms are called.
CALLED: dict[str, Norm] = {
    "euclidean": "l2", "2": "l2", "manhattan": "l1", "taxicab": "l1", "1": "l1",
    "chebyshev": "linf", "maximum": "linf", "max": "linf", "inf": "linf", "infinity": "linf",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Costs:
    """Agent i pays c_i·‖Δ‖ for a move Δ, and passing is worth 1: it goes as far as ℓ_i = 1/c_i.

    Attributes
    ----------
    values : (m,) array
        c_i, or ℓ_i.
    given : {"cost", "reach"}
        Which of the two.
    norm : {"l2", "l1", "linf"}
        ‖Δ‖ is √Σ(e_jΔ_j)², Σe_j|Δ_j|, or max e_j|Δ_j|.
    effort : (n,) array, (n, n) array or None
        The prices e; or, for l2, a matrix M with ‖Δ‖² = ΔᵀMΔ; None if all prices are 1.
    """

    values: Floats
    given: Given = "cost"
    norm: Norm = "l2"
    effort: Floats | None = None

    @property
    def plain(self) -> bool:
        """Whether ‖Δ‖ is the Euclidean length of Δ, as in the paper."""
        return self.norm == "l2" and self.effort is None

    @property
    def matrix(self) -> Floats | None:
        """M, if it was given."""
        return self.effort if self.effort is not None and self.effort.ndim == 2 else None

    def prices(self, width: int) -> Floats:
        """e, (n,) array; of a matrix, what a move in one feature alone costs."""
        if self.effort is None:
            return np.ones(width)
        return self.effort if self.matrix is None else np.sqrt(np.diag(self.matrix))

    @cached_property
    def reach(self) -> Floats:
        """ℓ_i, an (m,) array; rounded if costs were given."""
        return validation.frozen(1 / self.values) if self.given == "cost" else self.values

    @cached_property
    def cost(self) -> Floats:
        """c_i, an (m,) array; rounded if reaches were given."""
        return validation.frozen(1 / self.values) if self.given == "reach" else self.values

    def reach_of(self, agent: int) -> Fraction:
        """ℓ_i exactly."""
        value = Fraction(float(self.values[agent]))
        return 1 / value if self.given == "cost" else value

    @property
    def longest(self) -> Fraction:
        """The greatest ℓ_i exactly."""
        return self.reach_of(int(self.reach.argmax()))

    @property
    def shortest(self) -> Fraction:
        """The least ℓ_i exactly."""
        return self.reach_of(int(self.reach.argmin()))

    def of(self, agents: Numbers | Flags) -> Costs:
        """The same for some of the agents."""
        return replace(self, values=validation.frozen(self.values[agents]))

    @cached_property
    def _exact_prices(self) -> dict[int, Fraction] | None:
        if self.effort is None or self.effort.ndim == 2:
            return None
        return dict(enumerate(fractions(self.effort)))

    @cached_property
    def _inverse(self) -> euclidean.Inverse | None:
        return None if self.matrix is None else euclidean.inverse(self.matrix)

    def respond(self, weights: Sparse, quality: Sparse) -> Response:
        """How agents respond to a direction, exactly."""
        prices = self._exact_prices
        if self.norm == "l1":
            return manhattan.respond(weights, prices, quality)
        if self.norm == "linf":
            return chebyshev.respond(weights, prices)
        return euclidean.respond(weights, prices, self._inverse)

    def as_euclidean(self, weights: Floats) -> Floats:
        """Vectors whose Euclidean products are the dual ones of these weights, for l2.

        weights : (rows, n) array
        """
        if self.effort is None:
            return weights
        prices = self.prices(weights.shape[1])
        if self.matrix is None:
            return np.asarray(weights / prices)
        shares = np.linalg.cholesky(self.matrix / prices / prices[:, None])
        return np.linalg.solve(shares, (weights / prices).T).T

    def length(self, weights: Floats) -> float:
        """N(w) of weights on all features, in floats."""
        if self.plain:
            return float(np.linalg.norm(weights))
        exact = {int(j): Fraction(float(weights[j])) for j in np.flatnonzero(weights)}
        return clamped(sqrt_bounds(self.respond(exact, {}).square)[1]) if exact else 0.0

    def steepest_square(self, view: View, quality: Floats) -> Fraction:
        """The square of the greatest quality gained per unit of cost, ‖P w_f‖² for the paper's."""
        if self.plain:
            return view.seen_square(quality)
        exact = {int(j): Fraction(float(quality[j])) for j in np.flatnonzero(quality)}
        prices = self._exact_prices
        if self.matrix is not None and self._inverse is not None and view.columns is not None:
            return euclidean.steepest_square_of_columns(
                view.columns, exact, self.matrix, self._inverse
            )
        if self.norm == "l2":
            return euclidean.steepest_square(self.rows_of(view), exact, prices, self._inverse)
        rates = [abs(rate) for rate in self.rates(view, quality)]
        best = max(rates) if self.norm == "l1" else sum(rates, Fraction(0))
        return best * best

    def rates(self, view: View, quality: Floats) -> list[Fraction]:
        """w_fj/e_j of the columns seen: the quality gained per unit of cost in each feature."""
        prices = self._exact_prices
        return [
            Fraction(float(quality[j])) / (prices[j] if prices else 1) for j in view.columns or ()
        ]

    def lift(self, vector: Sparse) -> Sparse:
        """M⁻¹ times a vector, for l2."""
        return euclidean.lift(vector, self._exact_prices, self._inverse)

    @staticmethod
    def rows_of(view: View) -> list[Sparse]:
        """Independent rows that span what the planner sees."""
        if view.columns is not None:
            return [{j: Fraction(1)} for j in view.columns]
        rows = view.matrix[list(view.rows)]
        return [{int(j): Fraction(float(row[j])) for j in np.flatnonzero(row)} for row in rows]

    def to_dict(self) -> dict[str, Any]:
        """The fields of the file."""
        result: dict[str, Any] = {}
        if self.norm != "l2":
            result["norm"] = self.norm
        if self.effort is not None:
            result["effort"] = self.effort.tolist()
        same = (self.values == self.values[0]).all()
        result[self.given] = float(self.values[0]) if same else self.values.tolist()
        return result


# ------------------------------------------------------------------ from a file, or from arrays


def parse_costs(
    cost: ArrayLike | None,
    reach: ArrayLike | None,
    norm: object,
    effort: object,
    names: Sequence[str] | None,
    shape: tuple[int, int],
) -> Costs:
    """The costs of a sample of this shape, checked."""
    if cost is None and reach is None:
        said = "is missing; add it, or 'reach', how far agents go to pass (1/cost)"
        raise InputError(said, field="cost")
    if cost is not None and reach is not None:
        said = "is given beside 'cost', of which it is the inverse; leave out one of the two"
        raise InputError(said, field="reach")
    given: Given = "cost" if reach is None else "reach"
    kind = _parse_norm(norm)
    return Costs(
        validation.frozen(_per_agent(cost if reach is None else reach, given, shape[0])),
        given, kind, _parse_effort(effort, kind, names, shape[1]),
    )  # fmt: skip


def _parse_norm(norm: object) -> Norm:
    known = get_args(Norm)
    if not isinstance(norm, str) or norm not in known:
        called = CALLED.get(str(norm).casefold())
        hint = f" (did you mean {called!r}?)" if called else did_you_mean(str(norm), known)
        said = f'is {validation.kind(norm)}; give "l2", "l1" or "linf"{hint}'
        raise InputError(said, field="norm")
    return norm  # type: ignore[return-value]


def _per_agent(value: Any, field: Given, m: int) -> Floats:
    """One number per agent, each above 0."""
    single = np.ndim(value) == 0
    array = (
        np.full(m, validation.number(value, field)) if single else validation.array(value, field, 1)
    )
    validation.length(array, m, field, "one for all agents, or one per agent")
    for row in np.flatnonzero(array < 1 / LARGEST)[:1]:
        found = float(array[row])
        what = "must be above 0" if found <= 0 else f"must be at least {1 / LARGEST:g}"
        why = "the reach 1/cost is" if field == "cost" else "it says"
        said = f"is {found:g}; it {what}: {why} how far an agent moves to pass"
        raise InputError(said, field=field, row=None if single else int(row))
    return array


def _parse_effort(effort: object, norm: Norm, names: Sequence[str] | None, n: int) -> Floats | None:
    """Prices, or a matrix; None if all prices are 1."""
    if effort is None:
        return None
    if isinstance(effort, Mapping):
        prices = by_name(effort, names, "effort", rest=1.0)
    elif isinstance(effort, str) or not np.iterable(effort):
        said = "give prices by feature, a list with one per feature, or a matrix"
        if validation.is_number(effort):
            said = f"{said}; what is the same for all features belongs into 'cost'"
        raise InputError(f"is {validation.kind(effort)}; {said}", field="effort")
    else:
        array = _numbers(effort, names)
        if array.ndim == 2:
            return _parse_matrix(array, norm, names, n)
        prices = validation.length(array, n, "effort", "one price per feature")
    for row in np.flatnonzero(~((prices >= 1 / DEAREST) & (prices <= DEAREST)))[:1]:
        said = f"has the price {prices[row]:g} for {_feature(names, row)}; it must be above 0"
        if prices[row] > 0:
            said = f"{said}, from {1 / DEAREST:g} to {DEAREST:g}: choose other units"
        _refuse(said, int(row))
    return None if (prices == 1).all() else validation.frozen(prices)


def _refuse(said: str, row: int | None = None) -> NoReturn:
    raise InputError(said, field="effort", row=row)


def _feature(names: Sequence[str] | None, number: int) -> str:
    """The name of a feature, in a message."""
    return shorten(names[number] if names is not None and number < len(names) else f"x{number}")


def _numbers(effort: Any, names: Sequence[str] | None) -> Floats:
    """Prices or a matrix as an array; what is not finite is named by its features."""
    try:
        raw = np.asarray(effort)
    except ValueError:  # rows of different lengths, which are refused below
        raw = np.empty(0)
    if raw.dtype.kind == "f" and raw.ndim in (1, 2) and not np.isfinite(raw).all():
        place = tuple(int(j) for j in np.argwhere(~np.isfinite(raw))[0])
        where = " and ".join(_feature(names, j) for j in dict.fromkeys(place))
        _refuse(f"has {raw[place]:g} for {where}; give finite numbers", place[0])
    return validation.array(effort, "effort", 2 if raw.ndim == 2 else 1)


def _parse_matrix(matrix: Floats, norm: Norm, names: Sequence[str] | None, n: int) -> Floats | None:
    if norm != "l2":
        _refuse(
            f"is a matrix, which goes with the norm l2 alone; give a list of prices, or leave out"
            f" 'norm' ({norm})"
        )
    if matrix.shape != (n, n):
        rows, columns = matrix.shape
        _refuse(f"is {rows} by {columns}; expected {n} by {n}, a row and a column per feature")
    if n > MOST_ROWS:
        _refuse(f"is a matrix for {n:,} features, at most {MOST_ROWS} may have one; give prices")
    for row, column in np.argwhere(matrix != matrix.T)[:1]:
        one, other = matrix[row, column], matrix[column, row]
        _refuse(
            f"is not symmetric: row {row} has {one:g} in column {column}, but row {column} has"
            f" {other:g} in column {row}; give both the same",
            int(row),
        )
    diagonal = np.diag(matrix)
    for row in np.flatnonzero(~((diagonal >= DEAREST**-2) & (diagonal <= DEAREST**2)))[:1]:
        _refuse(
            f"has {diagonal[row]:g} on its diagonal for {_feature(names, row)}, which is the square"
            f" of a price; it must be above 0, from {DEAREST**-2:g} to {DEAREST**2:g}",
            int(row),
        )
    euclidean.inverse(matrix)
    scale = 1 / np.sqrt(diagonal)
    values, moves = np.linalg.eigh(matrix * scale * scale[:, None])
    if values[0] <= DEPENDENT * values[-1]:
        involved = np.flatnonzero(np.abs(moves[:, 0]) >= 0.5 * np.abs(moves[:, 0]).max())
        found = listed([_feature(names, j) for j in involved[:4]])
        _refuse(
            f"is nearly singular: some move of {found} together costs almost nothing beside the"
            " others; give entries off the diagonal that are smaller"
        )
    return None if np.array_equal(matrix, np.eye(n)) else validation.frozen(matrix)


def check_seen(costs: Costs, view: View, quality: Floats) -> None:
    """Refuse what costs and a view do not allow together, and quality that floats would lose."""
    if costs.norm != "l2" and view.columns is None:
        said = (
            f"is {costs.norm}, which needs a planner who sees single features; give 'visible'"
            " instead of 'view' or 'projection', or the norm l2"
        )
        raise InputError(said, field="norm")
    if costs.plain:
        view.check_quality(quality)
        return
    if view.columns is None and (view.matrix != 0).any(axis=0).sum() > MOST_ROWS:
        said = f"and a view of more than {MOST_ROWS} features do not go together; give 'visible'"
        raise InputError(said, field="effort")
    if view.columns is None:
        _check_rows(costs, view)
    if 0 < costs.steepest_square(view, quality) < Fraction(SMALLEST) ** 2:
        said = (
            f"is seen to less than {SMALLEST:g} per unit of cost, but not to 0, which floats would"
            " lose: choose other units"
        )
        raise InputError(said, field="quality")


def _check_rows(costs: Costs, view: View) -> None:
    """Refuse prices so unequal that the rows of a view are nearly dependent in the dual norm."""
    rows = view.matrix[list(view.rows)]
    rows = rows / np.abs(rows).max(axis=1)[:, None]
    prices = costs.prices(rows.shape[1])
    dual = rows / prices
    if costs.matrix is not None:  # prices apart, as in `geometry`: M = RRᵀ, and the rows are BR⁻ᵀ
        shares = costs.matrix / prices / prices[:, None]
        dual = np.linalg.solve(np.linalg.cholesky(shares), dual.T).T
    dual /= np.abs(dual).max(axis=1)[:, None]
    dual /= np.linalg.norm(dual, axis=1)[:, None]
    values = np.linalg.svd(dual, compute_uv=False)
    if values[-1] <= DEPENDENT * values[0]:
        said = (
            "makes some features so cheap beside others that the rows of the view can hardly be"
            " told apart by what agents do; give prices that differ less, or 'visible'"
        )
        raise InputError(said, field="effort")
