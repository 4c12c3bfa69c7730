"""From an instance to the problem in reduced coordinates, and how much rounding that took.

`reduce` gives z (the agents as the planner sees them), p (what is seen of w_f), reach and weight; a
mechanism there is a direction u ∈ R^k and a number b. Its rows w = Qᵀu have the dual norm of u in
R^k: for l2 the rows of Q are a basis of those of B, orthonormal for the inner product ⟨w, w'⟩ =
wᵀM⁻¹w' that is dual to the costs (M = I for the paper's), and N(w) = ‖u‖; for l1 and linf
u_j = w_j/e_j for each feature seen, N(w) is max|u_j| or Σ|u_j|, and p_j = w_fj/e_j. The z are
centred and divided by a power of two, so that data at 3e7 with spread 1e6 is as good as data at 0
with spread 1. The way back to the user's coordinates is `mechanism.from_reduced`.

Rounding. If the planner sees columns, z differs from the exact coordinates only by the subtraction
of the centre (and the prices). For a general `view` the basis itself is rounded. With Q the float
basis (k×n), L = B Qᵀ and the residual E = B − LQ, the rows of L⁻¹B = Q + L⁻¹E span the exact row
space, and an exactly orthonormal basis Q* lies within

    ‖Q − Q*‖ ≤ a + g,   a = ‖L⁻¹‖‖E‖,   g = ‖QQᵀ − I‖ + 2a‖Q‖ + a²

of Q (a to reach the row space, g for the inverse root of the Gram matrix there). With prices or a
matrix, the same is found in rationals (`distance_from_basis`). `RoundingBound` holds these bounds,
with the rounding of their own computation added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mipmech.errors import InputError
from mipmech.model.costs.pricing import Norm
from mipmech.model.costs.response import product, products
from mipmech.model.instance import Instance
from mipmech.rationals import (
    exact_dot,
    exact_sum,
    round_down,
    round_up,
    solve_all,
    sqrt_bounds,
)
from mipmech.tolerances import BAND, EPSILON, NOISE, SAFETY, SMALLEST_SPREAD, UNDERFLOW
from mipmech.validation import Floats, frozen

if TYPE_CHECKING:
    from mipmech.model.requirements import Demands
    from mipmech.model.requirements.required import RequirementsLike

# The order of each norm, and of the one that is dual to it.
ORDER: dict[Norm, float] = {"l2": 2, "l1": 1, "linf": np.inf}
DUAL: dict[Norm, float] = {"l2": 2, "l1": np.inf, "linf": 1}


@dataclass(frozen=True)
class RoundingBound:
    """What the reduction's rounding may have done.

    z : (m,) array, ‖z_i − exact z_i‖ in multiples of the unit, in the costs' own norm (for l1 the
        sum of all errors); so no score u·z_i is off by more, for any u of dual norm 1
    basis : ‖Q − Q*‖, the distance of the basis from an exact orthonormal one
    p : ‖p − exact p‖ in the dual norm (for linf the sum); so no rate is off by more
    back : N(w − Q*ᵀu) for the weights w of `mechanism.from_reduced` and any u of dual norm 1
    """

    z: Floats
    basis: float
    p: float
    back: float


@dataclass(frozen=True, eq=False, repr=False)
class Geometry:
    """The problem in reduced coordinates; lengths are in multiples of ``unit``.

    Attributes
    ----------
    instance : Instance
    z : (m, k) array
        The agents; ‖z_i‖ ≤ 1 for those that count, ‖·‖ the norm of the costs.
    p : (k,) array
        What is seen of w_f, in quality per unit of cost: of a direction u the rate is u·p for l2.
    reach, weight : (m,) array
        1/cost, and weights that sum to 1.
    basis : (k, n) array
        Q, so that z_i ≈ Q(x_i − centre)/unit.
    inverse : (k, n) array
        QM⁻¹, so that u = QM⁻¹w for the weights w = Qᵀu; Q itself for Euclidean costs.
    transfer : (k, k) array or None
        L with B ≈ L Q for the independent rows of B; None if the planner sees columns (Q selects
        them).
    unit : float
        A power of two.
    rounding : RoundingBound
        Bounds on the rounding of the reduction.
    demands : Demands or None
        What is demanded of rules; None if any rule is allowed. Features whose weights must be 0
        then count as hidden.
    seen : Instance or None
        The instance without these; None if it is the same.
    """

    instance: Instance
    z: Floats
    p: Floats
    reach: Floats
    weight: Floats
    basis: Floats
    inverse: Floats
    transfer: Floats | None
    unit: float
    rounding: RoundingBound
    demands: Demands | None = None
    seen: Instance | None = None

    @property
    def centre(self) -> Floats:
        """The point of Rⁿ whose z is 0."""
        return self.instance.centre

    def __repr__(self) -> str:
        return (
            f"Geometry({self.instance.name!r}: {len(self.z)} agents, rank {self.rank},"
            f" ‖p‖ = {self.p_norm:.6g}, unit = {self.unit:g})"
        )

    @property
    def rank(self) -> int:
        """k, the number of dimensions that the planner sees."""
        return int(self.z.shape[1])

    @property
    def norm(self) -> Norm:
        """That of the costs."""
        return self.instance.costs.norm

    def length(self, u: Floats) -> float:
        """N(w) for the weights of a direction, in floats.

        Parameters
        ----------
        u : (k,) array
            The direction.
        """
        return float(np.linalg.norm(u, DUAL[self.norm]))

    @property
    def steepest(self) -> Floats:
        """A direction of the greatest rate, (k,) array of length 1; for l2 p/‖p‖. Only if p ≠ 0."""
        if self.norm == "l2":
            return self.p / float(np.linalg.norm(self.p))
        if self.norm == "l1":
            chosen = np.arange(self.rank) == np.abs(self.p).argmax()
            return np.where(chosen, np.sign(self.p), 0.0)
        return np.sign(self.p) / np.count_nonzero(self.p)

    @cached_property
    def p_norm(self) -> float:
        """The greatest quality per unit of cost, ‖P w_f‖ for Euclidean ones; correctly rounded.

        0 means, exactly, that no visible rule changes quality.
        """
        low, high = sqrt_bounds(seen_square(self.seen or self.instance))
        return float((low + high) / 2)

    @cached_property
    def p_norm_bounds(self) -> tuple[float, float]:
        """Neighbouring floats around `p_norm` (the same one twice if it is a float)."""
        low, high = sqrt_bounds(seen_square(self.seen or self.instance))
        return round_down(low), round_up(high)

    @property
    def band(self) -> float:
        """Half-width of the band of η in which an answer at η lies, as a share of ‖p‖.

        BAND, or more where the rows of a view are so nearly dependent that weights v in floats
        cannot come nearer.
        """
        return max(BAND, 4 * self.rounding.back)

    @cached_property
    def radius(self) -> float:
        """R: the agents that count lie within this distance of a point, in multiples of unit.

        b is free, so any point will do: the centre (their median) or the middle of their box.
        """
        z = self.z[self.weight > 0]
        middle = z.min(axis=0) / 2 + z.max(axis=0) / 2
        return min(float(sizes(z, self.norm).max()), float(sizes(z - middle, self.norm).max()))


def reduce(instance: Instance) -> Geometry:
    """The instance in reduced coordinates.

    Parameters
    ----------
    instance : Instance
        The sample.

    Examples
    --------
    >>> sample = Instance.from_arrays([[3.0, 7.0], [5.0, 7.0]], [1.0, 1.0], visible=[0], cost=1.0)
    >>> g = reduce(sample)
    >>> g.z.ravel().tolist(), g.p.tolist(), g.unit
    ([-1.0, 1.0], [1.0], 1.0)
    """
    costs = instance.costs
    if costs.matrix is not None or (instance.view.columns is None and not costs.plain):
        make = _orthonormalise_dual
    else:
        make = _orthonormalise if instance.view.columns is None else _select_columns
    basis, inverse, transfer, z, p, rounding = make(instance)
    reach = instance.reach
    counts = instance.weights > 0
    longest = float(sizes(z[counts], costs.norm).max())
    if longest <= NOISE * float(rounding.z[counts].max()):
        longest = 0.0  # all agents are at one point, up to rounding
    furthest = float(reach[counts].max())
    unit = _power_of_two(max(longest, furthest * SMALLEST_SPREAD) if longest else furthest)
    relative = instance.weights / instance.weights.max()  # a sum of huge weights might overflow
    return Geometry(
        instance=instance, z=frozen(z / unit), p=frozen(p), reach=frozen(reach / unit),
        weight=frozen(relative / float(exact_sum(relative))), basis=frozen(basis),
        inverse=frozen(inverse), transfer=transfer, unit=unit,
        rounding=replace(rounding, z=frozen(rounding.z / unit + UNDERFLOW)),
    )  # fmt: skip


def geometry_of(sample: object, require: RequirementsLike | None = None) -> Geometry:
    """A sample in reduced coordinates, however it is given, with what is demanded of rules.

    Parameters
    ----------
    sample : Instance, Geometry, str or Path
        The sample, or the name of its file.
    require : Requirements, mapping, str or Path, optional
        What is demanded of rules, or the name of its file; by default what a geometry already has.

    Raises
    ------
    InputError
        If it is something else, or a file that holds no instance; or if the requirements do not fit
        the instance.
    """
    if require is not None:
        from mipmech.model.requirements import Requirements, demands_of  # noqa: PLC0415  (it builds on this)

        geometry = geometry_of(sample)
        instance = geometry.instance
        demands = demands_of(instance, Requirements.of(require))
        if demands is None or demands.cone is None or not demands.cone.zeros:
            return replace(geometry, demands=demands)
        seen = demands.seen(instance)
        return replace(reduce(seen), instance=instance, demands=demands, seen=seen)
    if isinstance(sample, Geometry):
        return sample
    if isinstance(sample, (str, Path)):
        sample = Instance.load(sample)
    if not isinstance(sample, Instance):
        said = "give an Instance, its Geometry, or the name of an instance file"
        raise InputError(f"is of the type {type(sample).__name__}; {said}", field="sample")
    return reduce(sample)


def seen_square(instance: Instance) -> Fraction:
    """The square of the greatest quality per unit of cost, in rationals: ‖P w_f‖² for the paper."""
    return instance.costs.steepest_square(instance.view, instance.quality)


# Q, QM⁻¹, L, the agents about the centre, p, and what was rounded.
Reduction = tuple[Floats, Floats, Floats | None, Floats, Floats, RoundingBound]


def _select_columns(instance: Instance) -> Reduction:
    columns = list(instance.view.columns or ())
    z = instance.agents[:, columns] - instance.centre[columns]
    p = instance.quality[columns]
    basis, inverse = np.zeros((2, len(columns), instance.width))
    places = np.arange(len(columns)), columns
    basis[places] = inverse[places] = 1.0
    norm = instance.costs.norm
    if instance.costs.effort is None:
        rounding = RoundingBound(EPSILON * SAFETY * sizes(z, norm), 0.0, 0.0, 0.0)
        return basis, inverse, None, z, p, rounding
    prices = instance.costs.prices(instance.width)[columns]
    basis[places], inverse[places] = prices, 1 / prices
    z, p = z * prices, p / prices
    # One rounding each in z (and one before), p, and w_j = e_j u_j.
    rounding = RoundingBound(
        2 * EPSILON * SAFETY * sizes(z, norm), 0.0, EPSILON * SAFETY * float(np.abs(p).sum()),
        2 * EPSILON,
    )  # fmt: skip
    return basis, inverse, None, z, p, rounding


def _orthonormalise(instance: Instance) -> Reduction:
    rows = instance.view.matrix[list(instance.view.rows)]
    # Rows of very different lengths would spoil the factorisation; powers of two are exact
    # (nothing underflows: `tolerances.SMALLEST`).
    scale = 2.0 ** np.frexp(np.abs(rows).max(axis=1))[1]
    rows = rows / scale[:, None]
    basis = np.linalg.qr(rows.T)[0].T.copy()
    # The sign is free; make the largest entry positive, so that axes point the expected way.
    basis *= np.sign(basis[np.arange(len(basis)), np.abs(basis).argmax(axis=1)])[:, None]
    transfer = rows @ basis.T
    # The computed inverse is good to 1e-7 at worst (`tolerances.DEPENDENT`): SAFETY covers it.
    inverse = SAFETY * float(np.linalg.norm(np.linalg.inv(transfer)))
    basis_error = _basis_error(rows, basis, transfer, inverse)
    offsets = instance.agents - instance.centre
    z = offsets @ basis.T
    z_error = basis_error + _gamma(instance.width + 2) * math.sqrt(len(rows))
    # B w_f is exact before it is rounded once: it may cancel to almost nothing.
    seen = np.array([float(exact_dot(row, instance.quality)) for row in rows])
    p = np.linalg.solve(transfer, seen)
    residual = np.abs(transfer @ p - seen) + _gamma(len(p) + 2) * (
        np.abs(transfer) @ np.abs(p) + np.abs(seen)
    )
    p_error = basis_error * _length(p) + inverse * _length(residual)
    # v = L⁻ᵀu is computed and rounded: a small multiple of the condition of L.
    norm = float(np.linalg.norm(transfer))
    back = SAFETY * (basis_error + _gamma((len(rows) + 2) ** 2) * norm * inverse)
    z_errors = SAFETY * z_error * _lengths(offsets)
    rounding = RoundingBound(z_errors, basis_error, SAFETY * p_error, back)
    return basis, basis, frozen(transfer * scale[:, None]), z, p, rounding


def _orthonormalise_dual(instance: Instance) -> Reduction:
    """The same for ⟨w, w'⟩ = wᵀM⁻¹w', M a matrix or the squares of prices.

    With M = RRᵀ, the rows of BR⁻ᵀ have Euclidean products where those of B have dual ones.
    """
    view, costs, n = instance.view, instance.costs, instance.width
    rows = np.eye(n)[list(view.columns or ())]
    scale = np.ones(len(rows))
    if view.columns is None:
        rows = view.matrix[list(view.rows)]
        scale = 2.0 ** np.frexp(np.abs(rows).max(axis=1))[1]
        rows = rows / scale[:, None]
    prices = costs.prices(n)
    root, over_root = np.diag(prices), np.diag(1 / prices)
    if costs.matrix is not None:
        # Prices apart, so that features in units of all sizes spoil neither factor nor inverse.
        shares = np.linalg.cholesky(costs.matrix / prices / prices[:, None])
        root, over_root = prices[:, None] * shares, np.linalg.inv(shares) / prices
    dual = rows @ over_root.T
    turned = np.linalg.qr((dual / np.linalg.norm(dual, axis=1)[:, None]).T)[0].T.copy()
    turned *= np.sign(turned[np.arange(len(turned)), np.abs(turned).argmax(axis=1)])[:, None]
    used = (rows != 0).any(axis=0)
    basis = np.where(used, turned @ root.T, 0.0)  # 0 elsewhere exactly, but for rounding
    inverse = turned @ over_root
    transfer = rows @ inverse.T
    basis_error = distance_from_basis(instance, basis)
    offsets = instance.agents - instance.centre
    z = offsets @ basis.T
    # ‖x‖_M over the features that count. It is rounded by a share of it that is far below SAFETY,
    # since the instance bounds the condition of M.
    lengths = _lengths(np.where(used, offsets, 0.0) @ root) * SAFETY
    products = _lengths(np.abs(offsets) @ np.abs(basis).T)
    p = np.array([float(value) for value in _exact_p(instance, basis)])
    size = float(sqrt_bounds(seen_square(instance))[1])
    p_error = (basis_error + 2 * EPSILON * math.sqrt(len(p))) * size
    # Rounding of w = Qᵀu in the dual norm, feature by feature; and of v = L⁻ᵀu.
    back = float(np.abs(basis).sum(axis=0) @ np.linalg.norm(over_root, axis=0))
    if view.columns is None:
        back = float(np.linalg.cond(transfer))
    back = SAFETY * (basis_error + _gamma((len(rows) + 2) ** 2) * back)
    z_errors = SAFETY * (basis_error * lengths + _gamma(n + 2) * products)
    rounding = RoundingBound(z_errors, basis_error, SAFETY * p_error, back)
    whole = None if view.columns is not None else frozen(transfer * scale[:, None])
    return basis, inverse, whole, z, p, rounding


def distance_from_basis(instance: Instance, basis: Floats) -> float:
    """ε with ‖Q − Q*‖ ≤ ε for an exactly orthonormal basis Q* of the rows, in the dual norm.

    With Π the projection onto the row space, a = ‖Q − ΠQ‖ and G = ΠQ(ΠQ)ᵀ (dual products), the rows
    of Q* = G^(−1/2)ΠQ are such a basis, and ‖Q* − ΠQ‖ ≤ ‖I − G‖. Where columns are seen, ΠQ = Q.
    """
    costs = instance.costs
    given = [{int(j): Fraction(float(row[j])) for j in np.flatnonzero(row)} for row in basis]
    raised = [costs.lift(q) for q in given]
    if instance.view.columns is not None:
        projected = products(given, raised)
    else:
        rows = costs.rows_of(instance.view)
        lifted = [costs.lift(row) for row in rows]
        right = products(given, lifted)
        inside = solve_all(products(rows, lifted), right)
        projected = [[_dot(a, b) for b in inside] for a in right]
    uneven = sum(
        ((v - (i == j)) ** 2 for i, row in enumerate(projected) for j, v in enumerate(row)),
        Fraction(0),
    )
    size = sum((product(a, b) for a, b in zip(given, raised, strict=True)), Fraction(0))
    off = size - sum((projected[i][i] for i in range(len(given))), Fraction(0))
    return round_up(sqrt_bounds(off)[1] + sqrt_bounds(uneven)[1])


def _exact_p(instance: Instance, basis: Floats) -> list[Fraction]:
    """The dual products of the basis with P w_f, exactly."""
    given = [{int(j): Fraction(float(q[j])) for j in np.flatnonzero(q)} for q in basis]
    if instance.view.columns is not None:
        whole = instance.costs.lift(instance.exact_quality)
        return [row[0] for row in products(given, [whole])]
    rows = instance.costs.rows_of(instance.view)
    lifted = [instance.costs.lift(row) for row in rows]
    gram = [[product(a, b) for b in lifted] for a in rows]
    (seen,) = solve_all(gram, [[product(row, instance.exact_quality) for row in lifted]])
    return [
        sum((v * product(row, q) for v, row in zip(seen, lifted, strict=True)), Fraction(0))
        for q in given
    ]


def _dot(a: list[Fraction], b: list[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def _basis_error(rows: Floats, basis: Floats, transfer: Floats, inverse: float) -> float:
    """‖Q − Q*‖ as in the module's docstring; Frobenius norms throughout."""
    k, n = rows.shape
    off_space = np.abs(rows - transfer @ basis) + _gamma(k + 2) * (
        np.abs(rows) + np.abs(transfer) @ np.abs(basis)
    )
    gram = np.abs(basis @ basis.T - np.eye(k)) + _gamma(n + 2) * (
        np.abs(basis) @ np.abs(basis).T + np.eye(k)
    )
    a = inverse * float(np.linalg.norm(off_space))
    g = float(np.linalg.norm(gram)) + 2 * a * float(np.linalg.norm(basis)) + a * a
    return SAFETY * (a + g)


def _gamma(operations: int) -> float:
    """The usual bound on the relative error of a sum of products, by the number of operations."""
    return operations * EPSILON / (1 - operations * EPSILON)


def _lengths(vectors: Floats) -> Floats:
    """The lengths of the rows; scaled first, so that no square underflows or overflows."""
    largest = float(np.abs(vectors).max(initial=0.0))
    if largest == 0:
        return np.zeros(len(vectors))
    scaled = vectors / largest
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", scaled, scaled)) * largest)


def sizes(vectors: Floats, norm: Norm) -> Floats:
    """The norms of the rows, as moves are measured: no score of a direction of length 1 is larger.

    vectors : (n, k) array, in reduced coordinates
    """
    if norm == "l2":
        return _lengths(vectors)
    return np.asarray(np.linalg.norm(vectors, ORDER[norm], axis=1))


def _length(vector: Floats) -> float:
    return float(_lengths(vector[None, :])[0])


def _power_of_two(value: float) -> float:
    """The smallest power of two that is not below the value (up to a rounding of its size)."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(1.0, exponent - (mantissa == 0.5))
