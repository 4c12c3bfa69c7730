"""Which rules meet which requirements, in rationals: shares no code with the package.

Only instances' raw arrays are read. A rule is given by its own weights, those that requirements
speak of: one per feature where the planner sees columns, otherwise one per row of the view, v with
w = Bᵀv. Requirements are the plain dict of the file format, groups a plain list of labels. Limits
are read as they are written: 3 of 10 agents are 0.3, though the float 0.3 is a little less.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tests import referee
from tests.referee import dot


def plain_weights(instance, rule) -> list[Fraction]:
    """w, for the rule's own weights."""
    own = [Fraction(c) for c in rule]
    if instance.view.columns is not None:
        return own
    return [dot(referee.exact(column), own) for column in instance.view.matrix.T]


def accepted(instance, rule, threshold) -> list[bool]:
    """Who passes, after moving or without: b − w·x_i ≤ N(w)·ℓ_i."""
    sample = referee.Sample.of(instance)
    w = plain_weights(instance, rule)
    square, _ = referee.response(sample, w)
    passes = []
    for x, reach in zip(sample.x, sample.reach, strict=True):
        missing = Fraction(threshold) - dot(w, x)
        passes.append(missing <= 0 or missing**2 <= reach**2 * square)
    return passes


def accepted_share(instance, rule, threshold) -> Fraction:
    """The share of all weight that passes."""
    return _share(instance, accepted(instance, rule, threshold), range(len(instance.weights)))


def shares_by_group(instance, labels, rule, threshold) -> dict[str | int, Fraction]:
    """The share of each group that passes; groups that weigh nothing are left out."""
    passes = accepted(instance, rule, threshold)
    shares = {}
    for label in dict.fromkeys(labels):
        members = [i for i, other in enumerate(labels) if other == label]
        if any(instance.weights[i] > 0 for i in members):
            shares[label] = _share(instance, passes, members)
    return shares


def failures(instance, requirements, labels, rule, threshold) -> dict[str, Fraction]:
    """By how much the rule fails each requirement, 0 where it meets it.

    For signs and orders this is the largest failure in units of the rule's weights, otherwise it is
    a share.
    """
    rule = [Fraction(c) for c in rule]
    found = {}
    for kind in requirements:
        if kind in ("nonnegative", "nonpositive", "order"):
            rows = cone(instance, {kind: requirements[kind]})
            found[kind] = max([Fraction(0), *(-dot(row, rule) for row in rows)])
        elif kind == "accepted":
            low, high = (as_written(limit) for limit in requirements["accepted"])
            share = accepted_share(instance, rule, threshold)
            found[kind] = max(Fraction(0), low - share, share - high)
        else:
            assert kind == "parity"
            shares = shares_by_group(instance, labels, rule, threshold).values()
            within = as_written(requirements["parity"]["within"])
            found[kind] = max(Fraction(0), max(shares) - min(shares) - within)
    return found


def as_written(limit) -> Fraction:
    """The number with the fewest digits that rounds to this float."""
    return Fraction(repr(float(limit)))


def meets(instance, requirements, labels, rule, threshold) -> bool:
    return not any(failures(instance, requirements, labels, rule, threshold).values())


def cone(instance, requirements) -> list[list[Fraction]]:
    """Rows over the rule's own weights which must not be negative."""
    view = instance.view
    size = instance.agents.shape[1] if view.columns is not None else len(view.matrix)

    def row(**terms: Sequence[str | int]) -> list[Fraction]:
        values = [Fraction(0)] * size
        for sign, features in terms.items():
            for feature in features:
                place = instance.features.index(feature) if isinstance(feature, str) else feature
                values[place] += 1 if sign == "plus" else -1
        return values

    def named(kind: str) -> Sequence[str | int]:
        listed = requirements.get(kind, ())
        return range(size) if listed == "all" else listed

    return [
        *(row(plus=[feature]) for feature in named("nonnegative")),
        *(row(minus=[feature]) for feature in named("nonpositive")),
        *(row(plus=[above], minus=[below]) for above, below in requirements.get("order", ())),
    ]


def _share(instance, passes, members) -> Fraction:
    weights = {i: Fraction(float(instance.weights[i])) for i in members}
    return sum((w for i, w in weights.items() if passes[i]), Fraction(0)) / sum(weights.values())
