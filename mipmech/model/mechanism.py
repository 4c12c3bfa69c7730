"""Threshold rules on what the planner sees, and their way to reduced coordinates and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mipmech import validation
from mipmech.errors import InputError
from mipmech.model.geometry import Geometry
from mipmech.model.instance import Instance
from mipmech.rationals import clamped, exact_dot, fractions, solve
from mipmech.tolerances import LARGEST_IN_RULES, OUT_OF_VIEW
from mipmech.validation import Flags, Floats


@dataclass(frozen=True)
class Mechanism:
    """Accept x iff weights·x ≥ threshold.

    Parameters
    ----------
    weights : (n,) array_like
        In the user's coordinates; any positive multiple is the same rule.
    threshold : float
    view_weights : array_like, optional
        On an instance with a general `view` B, numbers v (one per row of B) that give the weights
        their exact meaning Bᵀv, of which ``weights`` is the rounding (to six digits).

    Examples
    --------
    >>> Mechanism((0.0, 1.0), 0.5).accepts([[3.0, 0.5], [3.0, 0.4]]).tolist()
    [True, False]
    """

    weights: tuple[float, ...]
    threshold: float
    view_weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        # Arrays and lists are welcome; what is kept is plain floats, so that rules can be compared.
        largest = LARGEST_IN_RULES
        for field in ("weights", "view_weights"):
            value = getattr(self, field)
            if field == "weights" or value is not None:
                plain = validation.array(value, field, 1, largest).tolist()
                object.__setattr__(self, field, tuple(plain))
        threshold = validation.number(self.threshold, "threshold", largest)
        object.__setattr__(self, "threshold", threshold)
        if not any(self.weights):
            raise InputError("are all 0; a rule needs a direction", field="weights")

    def accepts(self, x: ArrayLike) -> Flags:
        """Whether the rule accepts agents with these features (in floats).

        Parameters
        ----------
        x : (..., n) array_like
            Features, one row per agent.
        """
        scores = np.asarray(x, dtype=np.float64) @ np.array(self.weights)
        return np.asarray(scores >= self.threshold)

    def at(self, threshold: float) -> Mechanism:
        """The same direction with another threshold.

        Parameters
        ----------
        threshold : float
            The new threshold.
        """
        return Mechanism(self.weights, threshold, self.view_weights)

    def to_dict(self) -> dict[str, Any]:
        """The object printed under ``--json``."""
        result: dict[str, Any] = {"weights": list(self.weights), "threshold": self.threshold}
        if self.view_weights is not None:
            result["view_weights"] = list(self.view_weights)
        return result

    @classmethod
    def from_dict(cls, value: dict[str, Any], instance: Instance) -> Mechanism:
        """A mechanism from the object printed under ``--json``, checked against the instance.

        Parameters
        ----------
        value : dict
            The object.
        instance : Instance
            The sample.
        """
        view_weights = value.get("view_weights")
        return cls.on(
            instance,
            validation.numbers(value.get("weights"), "weights"),
            value.get("threshold"),  # type: ignore[arg-type]
            None if view_weights is None else validation.numbers(view_weights, "view_weights"),
        )

    @classmethod
    def on(
        cls,
        instance: Instance,
        weights: ArrayLike | Mapping[str, float],
        threshold: float,
        view_weights: ArrayLike | None = None,
    ) -> Mechanism:
        """A rule that is checked to be one that the planner can apply: a function of Bx.

        Parameters
        ----------
        instance : Instance
            The sample.
        weights : (n,) array_like or mapping of str to float
            Numbers, or numbers by feature.
        threshold : float
            The new threshold.
        view_weights : array_like, optional
            As for `Mechanism`; computed if left out.

        Examples
        --------
        >>> sample = Instance.from_arrays([[0.0, 0.0]], [1.0, 1.0], visible=[0], cost=1.0)
        >>> Mechanism.on(sample, [1.0, 1.0], 0.0)
        Traceback (most recent call last):
        ...
        mipmech.errors.InputError: weights, row 1: gives x1 a weight, but the planner cannot see it
        """
        if isinstance(weights, Mapping):
            names = instance.feature_names
            for name in weights:
                if name not in names:
                    raise InputError(f"names {name!r}, which is not a feature", field="weights")
            weights = [weights.get(name, 0.0) for name in names]
        mechanism = cls(weights, threshold, view_weights)  # type: ignore[arg-type]
        if instance.view.columns is None and view_weights is None:
            w = np.array(mechanism.weights)
            validation.length(w, instance.width, "weights", "one per feature")
            v = _nearest_view_weights(instance, w)
            mechanism = replace(mechanism, view_weights=tuple(v.tolist()))
        mechanism.exact_weights(instance)
        return mechanism

    def exact_weights(self, instance: Instance) -> list[Fraction]:
        """The weights as rationals, after checking that this is a rule on what the planner sees.

        Parameters
        ----------
        instance : Instance
            The sample.
        """
        w = np.array(self.weights)
        validation.length(w, instance.width, "weights", "one per feature")
        given, view = fractions(w), instance.view
        if view.columns is not None:
            if self.view_weights is not None:
                raise InputError(
                    "are for general views; leave them out: this planner sees columns",
                    field="view_weights",
                )
            for row, weight in enumerate(given):
                if weight and row not in view.columns:
                    name = instance.feature_names[row]
                    said = f"gives {name} a weight, but the planner cannot see it"
                    raise InputError(said, field="weights", row=row)
            return given
        if self.view_weights is None:
            raise InputError(
                "are missing: on a general view they define the rule; make it with Mechanism.on or"
                " Mechanism.on_view",
                field="view_weights",
            )
        v = np.array(self.view_weights)
        validation.length(v, len(view.matrix), "view_weights", "one per row of the view")
        exact = view.combine(v)
        off = sum((a - b) ** 2 for a, b in zip(given, exact, strict=True))
        if off > Fraction(OUT_OF_VIEW) ** 2 * sum(w * w for w in given):
            raise InputError(
                "are not a combination of the view's rows (or not the one of view_weights), so the"
                " planner cannot compute the score",
                field="weights",
            )
        return exact

    @classmethod
    def on_view(cls, instance: Instance, view_weights: ArrayLike, threshold: float) -> Mechanism:
        """The rule v·(Bx) ≥ threshold, in terms of what the planner sees.

        Parameters
        ----------
        instance : Instance
            The sample.
        view_weights : array_like
            v, one number per row of B.
        threshold : float
            The new threshold.

        Examples
        --------
        >>> agents, w_f = [[1.0, 2.0, 0.0]], [1.0, 0.0, 0.0]
        >>> sums = Instance.from_arrays(agents, w_f, view=[[1, 1, 0]], cost=1.0)
        >>> Mechanism.on_view(sums, [0.5], 2.0).weights
        (0.5, 0.5, 0.0)
        """
        v = validation.array(view_weights, "view_weights", 1, LARGEST_IN_RULES)
        view = instance.view
        validation.length(v, len(view.matrix), "view_weights", "one per row of the view")
        weights = [clamped(w) for w in view.combine(v)]
        return cls.on(instance, weights, threshold, v if view.columns is None else None)

    def scaled(self) -> tuple[Floats, Fraction]:
        """Weights and threshold over a power of two, exactly: the largest weight is about 1."""
        weights = np.array(self.weights)
        exponent = int(np.frexp(np.abs(weights).max())[1])
        return np.ldexp(weights, -exponent), Fraction(self.threshold) * Fraction(2) ** -exponent


def _nearest_view_weights(instance: Instance, weights: Floats) -> Floats:
    """The v whose Bᵀv is nearest to the weights: normal equations in rationals, then rounded."""
    matrix, independent = instance.view.matrix, list(instance.view.rows)
    rows = matrix[independent]
    gram = [[exact_dot(a, b) for b in rows] for a in rows]
    solution = solve(gram, [exact_dot(row, weights) for row in rows])
    v = np.zeros(len(matrix))
    v[independent] = [clamped(value) for value in solution]
    return v


# ------------------------------------------------- reduced coordinates and back


def from_reduced(geometry: Geometry, u: ArrayLike, b: float) -> Mechanism:
    """The mechanism with direction u and threshold b in reduced coordinates.

    The direction is exact in the planner's view: for columns, the weights are the numbers of u;
    for a general view they are Bᵀv with v = L⁻ᵀu. The threshold is rounded once.

    Parameters
    ----------
    geometry : Geometry
        The sample in reduced coordinates.
    u, b : (k,) array_like, float
        A direction and a threshold, b in multiples of the unit.
    """
    direction, view = np.asarray(u, dtype=np.float64), geometry.instance.view
    if geometry.transfer is None:
        weights, view_weights = direction @ geometry.basis, None
    else:
        v = np.zeros(len(view.matrix))
        v[list(view.rows)] = np.linalg.solve(geometry.transfer.T, direction)
        weights = np.array([float(w) for w in view.combine(v)])
        view_weights = tuple(v.tolist())
    threshold = Fraction(float(b)) * Fraction(geometry.unit) + exact_dot(weights, geometry.centre)
    return Mechanism(tuple(weights.tolist()), clamped(threshold), view_weights)


def to_reduced(geometry: Geometry, mechanism: Mechanism) -> tuple[Floats, float]:
    """Unit direction u and threshold b (in multiples of the unit) of a mechanism, rounded.

    Parameters
    ----------
    geometry : Geometry
        The sample in reduced coordinates.
    mechanism : Mechanism
        The rule.

    Returns
    -------
    u : (k,) array
    b : float
    """
    weights, threshold = mechanism.scaled()
    u = geometry.inverse @ weights
    norm = geometry.length(u)
    level = clamped(threshold - exact_dot(weights, geometry.centre))
    return u / norm, level / norm / geometry.unit
