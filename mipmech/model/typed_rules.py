"""Rules as people write them: weights by the names of features, in the units that people know.

Weights given by name, {"gpa": 2, "sat": 3}, are in the instance's `units` if it has any. A list of
weights is what this program prints and keeps in certificates, so it is in the instance's own
numbers. Both may stand under "weights" beside a "threshold", and inside the object of a result or a
certificate.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from mipmech import files, untrusted, validation
from mipmech.errors import InputError, did_you_mean, shorten
from mipmech.model.costs.response import product
from mipmech.model.instance import Instance
from mipmech.model.mechanism import Mechanism
from mipmech.rationals import clamped
from mipmech.tolerances import LARGEST_CERTIFICATE, LARGEST_IN_RULES, OUT_OF_VIEW

# On a general view, weights that are this near to what the planner can compute, as a share of their
# length, are such a rule in few digits; farther off they are another rule.
NEARLY = 1e-3
EXAMPLE = '{"gpa": 2, "sat": 3}'
# Where the objects of this program keep their rule: results, and certificates.
KEPT = ("mechanism", "witness")
PARTS = ("weights", "threshold", "view_weights")
# What else stands beside them in a rule as it is printed.
PRINTED = ("text", "gain", "density", "share", "digits")


@dataclass(frozen=True)
class WrittenRule:
    """A rule in the units that people know, and in the instance's numbers.

    Attributes
    ----------
    weights : tuple of (str, float)
        The features that have a weight.
    threshold : float
    mechanism : Mechanism
        What is graded: without units the same numbers, with units each rounded once, and on a
        general view the nearest rule on it.
    off : float
        How far the weights are from those of the mechanism, as a share of their length; 0 unless
        the view is a general one.
    """

    weights: tuple[tuple[str, float], ...]
    threshold: float
    mechanism: Mechanism
    off: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """The rule in the units that people know."""
        return {"weights": dict(self.weights), "threshold": self.threshold}


def load_rule(text: str) -> dict[str, Any]:
    """The object in a text, or in the file that it names.

    Parameters
    ----------
    text : str
        A JSON object, weights such as ``gpa=2,sat=3``, or the name of a file that holds an object.
    """
    if text.lstrip().startswith("{"):
        return _object(text, None)
    if "=" in text and not os.path.exists(text):
        return dict(validation.coefficients(text, "rule", "gpa=2,sat=3"))
    file = Path(text)
    try:
        return _object(untrusted.read_text(file, LARGEST_CERTIFICATE), file)
    except OSError as error:
        said = f"cannot be read: {files.reason(error)}; give a file, or a rule such as '{EXAMPLE}'"
        raise InputError(said, file=shorten(text).strip("'\""), field="rule") from None


def _object(text: str, file: Path | None) -> dict[str, Any]:
    try:
        found = untrusted.json_value(text, finite=False)
    except untrusted.NotJson as error:
        said = f"{error.message}; give a rule such as '{EXAMPLE}'"
        raise InputError(said, file=file, field="rule") from None
    except InputError as error:
        said = error.message if error.field is None else f"{error.field!r} {error.message}"
        raise InputError(said, file=file, field="rule") from None
    if not isinstance(found, dict):
        said = f"is {validation.kind(found)}; give an object such as '{EXAMPLE}'"
        raise InputError(said, file=file, field="rule")
    return found


def written_rule(
    instance: Instance, value: Mapping[str, Any], threshold: float | None = None
) -> WrittenRule:
    """A rule from an object, checked against the instance.

    Parameters
    ----------
    instance : Instance
        The sample.
    value : mapping
        Feature → weight; or "weights" and "threshold"; or a result or certificate that has a rule.
    threshold : float, optional
        In the place of the one in the object; in the same units.

    Examples
    --------
    >>> agents = [[3.0, 500.0]]
    >>> sample = Instance.from_arrays(
    ...     agents, [1.0, 0.0], visible=["sat"], features=["gpa", "sat"], cost=1.0
    ... )
    >>> written_rule(sample, {"sat": 0.5}, 300.0).mechanism
    Mechanism(weights=(0.0, 0.5), threshold=300.0, view_weights=None)
    """
    names = instance.feature_names
    _check_origin(instance, value)
    if not value:
        raise InputError(f"is empty; give weights such as '{EXAMPLE}'", field="rule")
    parts = isinstance(value.get("weights"), (dict, list))  # a feature may have that name
    if parts or not set(value) <= set(names):
        for key in KEPT:
            if isinstance(value.get(key), dict):
                return written_rule(instance, value[key], threshold)
            if key in value:
                raise InputError(
                    f"holds no rule: {key!r} is {validation.kind(value[key])}", field="rule"
                )
        if "weights" in value:
            return _with_parts(instance, value, threshold)
    return _by_name(instance, value, threshold, None)


def _check_origin(instance: Instance, value: Mapping[str, Any]) -> None:
    """Refuse what holds no rule, or one for another instance."""
    kind = value.get("format")
    if kind is not None and "format" not in instance.feature_names and not set(KEPT) & set(value):
        said = f"is in a file of the format {shorten(kind)}, which holds no rule; give weights"
        raise InputError(said, field="rule")
    origin = value.get("instance")
    digest = origin.get("digest") if isinstance(origin, dict) else value.get("digest")
    if isinstance(digest, str) and digest != instance.digest:
        said = "is for another instance (its digest differs): weights and units may not be the same"
        raise InputError(said, field="rule")


def _with_parts(
    instance: Instance, value: Mapping[str, Any], threshold: float | None
) -> WrittenRule:
    for key in value:
        if key not in PARTS + PRINTED:
            said = f"has {shorten(key)}{did_you_mean(key, PARTS)}; a rule has {', '.join(PARTS)}"
            raise InputError(said, field="rule")
    weights, kept = value["weights"], value.get("threshold")
    at = _threshold(threshold, kept)
    if isinstance(weights, dict):
        return _by_name(instance, weights, at, value.get("view_weights"))
    given = {**value, "threshold": at}
    if threshold is not None and instance.units is not None:
        # Weights in a list are in the instance's numbers; a threshold that is typed is not.
        kept_rule = in_known_units(instance, Mechanism.from_dict(given, instance))
        return _by_name(instance, dict(kept_rule.weights), at, None)
    return in_known_units(instance, Mechanism.from_dict(given, instance))


def _threshold(threshold: float | None, kept: object) -> float:
    if threshold is None and kept is None:
        said = "is missing; add --threshold NUMBER, the score to reach"
        raise InputError(said, field="threshold")
    return validation.number(
        kept if threshold is None else threshold, "threshold", LARGEST_IN_RULES
    )


def _by_name(
    instance: Instance, value: Mapping[str, Any], threshold: float | None, view_weights: Any
) -> WrittenRule:
    if view_weights is not None:
        said = "are for weights that are a list; leave them out beside weights by name"
        raise InputError(said, field="view_weights")
    names = instance.feature_names
    seen = names if instance.view.columns is None else [names[j] for j in instance.view.columns]
    for name, weight in value.items():
        if name not in names:
            hint = did_you_mean(name, names)
            said = f"names {shorten(name)}, which is not a feature{hint}; {_sees(seen)}"
            raise InputError(said, field="rule")
        validation.number(weight, f"rule.{name}", LARGEST_IN_RULES)
        if weight and name not in seen:
            said = f"gives {name!r} a weight, but the planner cannot see it; {_sees(seen)}"
            raise InputError(said, field="rule")
    if not any(value.values()):
        raise InputError("has only weights of 0; a rule needs a direction", field="rule")
    at = _threshold(threshold, None)
    direction = on_sight(instance, [Fraction(value.get(name, 0)) for name in names])
    if direction.off > NEARLY:
        said = (
            f"has weights that are no combination of what the planner sees (off by"
            f" {direction.off:.2g} of their length), so it cannot compute the score; mipmech show"
            " says what it sees"
        )
        raise InputError(said, field="rule")
    written = tuple((name, float(weight)) for name, weight in value.items() if weight)
    mechanism = direction.mechanism.at(clamped(Fraction(at) - direction.shift))
    return WrittenRule(written, at, mechanism, direction.off)


@dataclass(frozen=True)
class OnSight:
    """Weights in the units that people know, as the planner can apply them.

    Attributes
    ----------
    mechanism : Mechanism
        The direction, with threshold 0.
    shift : Fraction
        What a threshold in the units that people know is lowered by.
    weights : tuple of Fraction
        The weights in the instance's numbers, before they are rounded or brought onto the view.
    off : float
        As in `WrittenRule`.
    """

    mechanism: Mechanism
    shift: Fraction
    weights: tuple[Fraction, ...]
    off: float = 0.0

    def misstated(self, instance: Instance) -> float:
        """By what share the gain per unit of score differs if somebody computes with the weights.

        Parameters
        ----------
        instance : Instance
            The sample.
        """
        if not self.off:
            return 0.0
        rates = []
        for weights in (self.weights, self.mechanism.exact_weights(instance)):
            given = {j: w for j, w in enumerate(weights) if w}
            step = instance.costs.respond(given, instance.exact_quality).step
            rates.append(product(step, instance.exact_quality))
        return abs(float(rates[0] / rates[1] - 1)) if rates[1] else math.inf


def on_sight(instance: Instance, given: Sequence[Fraction]) -> OnSight:
    """The rule that a planner applies who is told these weights.

    On a general view the planner can compute nearly such a score: the nearest one on the view,
    which agrees with the weights at the centre of the data.

    Parameters
    ----------
    instance : Instance
        The sample.
    given : sequence of Fraction
        A weight for each feature, in the units that people know.
    """
    centre, scale = _units(instance)
    weights = tuple(w * s for w, s in zip(given, scale, strict=True))
    shift = sum((w * c for w, c in zip(given, centre, strict=True)), Fraction(0))
    rounded = np.array([clamped(w) for w in weights])
    if instance.view.columns is not None:
        return OnSight(Mechanism.on(instance, rounded, 0.0), shift, weights)
    # Near is enough: what counts is Bᵀv, exactly.
    v = np.zeros(len(instance.view.matrix))
    rows = list(instance.view.rows)
    matrix = instance.view.matrix[rows]
    sizes = np.abs(matrix).max(axis=1)
    costs = instance.costs
    scaled = costs.as_euclidean(matrix / sizes[:, None])
    v[rows] = np.linalg.lstsq(scaled.T, costs.as_euclidean(rounded[None])[0])[0] / sizes
    if not v.any():
        return OnSight(Mechanism(tuple(rounded), 0.0), shift, weights, 1.0)
    mechanism = Mechanism.on_view(instance, v, 0.0)
    missed = [w - e for w, e in zip(weights, mechanism.exact_weights(instance), strict=True)]
    shift += sum((d * Fraction(float(c)) for d, c in zip(missed, instance.centre, strict=True)))
    off = math.sqrt(_square(instance, missed) / _square(instance, weights))
    return OnSight(mechanism, shift, weights, off if off > OUT_OF_VIEW else 0.0)


def _square(instance: Instance, weights: Sequence[Fraction]) -> Fraction:
    """N(w)², by which weights are near to each other or not."""
    given = {j: w for j, w in enumerate(weights) if w}
    return instance.costs.respond(given, {}).square if given else Fraction(0)


def _sees(seen: list[str] | tuple[str, ...]) -> str:
    return f"the planner sees {shorten(', '.join(seen), 200)[1:-1]}"


def in_known_units(instance: Instance, mechanism: Mechanism) -> WrittenRule:
    """A rule in the instance's numbers, and the same in the units that people know, rounded.

    Parameters
    ----------
    instance : Instance
        The sample.
    mechanism : Mechanism
        A rule that fits it.
    """
    centre, scale = _units(instance)
    given = [Fraction(w) / s for w, s in zip(mechanism.weights, scale, strict=True)]
    level = Fraction(mechanism.threshold) + sum(w * c for w, c in zip(given, centre, strict=True))
    names = instance.feature_names
    weights = tuple((n, clamped(w)) for n, w in zip(names, given, strict=True) if w)
    return WrittenRule(weights, clamped(level), mechanism)


def _units(instance: Instance) -> tuple[list[Fraction], list[Fraction]]:
    """Centre and scale of every feature."""
    units = instance.units
    if units is None:
        return [Fraction(0)] * instance.width, [Fraction(1)] * instance.width
    return [Fraction(c) for c in units.centre], [Fraction(s) for s in units.scale]
