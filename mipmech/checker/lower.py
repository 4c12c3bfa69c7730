"""The lower bound of a certificate: what its witness has, recounted in rationals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from mipmech.checker.content import number_at, object_at, reject, text_at
from mipmech.checker.demanded import ClaimedRequirements
from mipmech.checker.exact import fractions, root
from mipmech.checker.witness import ExactInstance


def witness_value(
    content: dict[str, Any],
    exact: ExactInstance,
    demanded: ClaimedRequirements,
    eta: Fraction | None,
    band: Fraction,
) -> Fraction | None:
    """What the witness has, exactly as claimed; None if no rule that is allowed is known."""
    if content.get("witness") is None and demanded.given:
        if content.get("lower") is not None:
            reject("there is no witness for the lower bound")
        return None
    claimed = object_at(content, "lower")
    lower = _fraction(text_at(claimed, "exact", "lower."))
    if Fraction(number_at(claimed, "value", "lower.")) > lower:
        reject("lower.value is above the exact lower bound")
    if content.get("witness") is None:
        if lower != 0:
            reject("there is no witness for the lower bound")
        return lower
    witness = object_at(content, "witness")
    w = exact.rule(witness)
    if not any(w):
        reject("the witness has no direction: its weights are all 0")
    threshold = Fraction(number_at(witness, "threshold", "witness."))
    density, gain = exact.outcome(w, threshold)
    accepted = exact.accepted(w, threshold, demanded.members) if demanded.limited else {}
    weights = w
    if demanded.pairs and exact.columns is None:
        weights = fractions(witness["view_weights"])
    demanded.test(weights, accepted)
    found = gain if eta is None else density
    if found != lower:
        reject(f"the witness has {float(found)!r}, not the claimed lower bound")
    if eta is not None:
        square, rise = exact.response(w)
        ends = sorted(rise * length for length in root(square))
        width = band * root(exact.seen_square)[0]
        if ends[1] > eta + width or ends[0] < eta - width:
            reject("the witness is not at the η claimed")
    return lower


def _fraction(text: str) -> Fraction:
    if len(text) > 1_000_000:
        reject("lower.exact is too long to be a gain")
    numerator, slash, denominator = text.partition("/")
    digits = all(
        part.isascii() and part.removeprefix("-").isdigit() and len(part) < 4000
        for part in ([numerator, denominator] if slash else [numerator])
    )
    if not digits or (slash and int(denominator) <= 0):
        reject("lower.exact is not a fraction")
    return Fraction(int(numerator), int(denominator) if slash else 1)
