"""Rules as a reader takes them: from the text of the terminal, or from the JSON, in plain numpy.

Shares no code with the package, and nothing is exact: whoever copies a rule into a spreadsheet
computes like this.
"""

from __future__ import annotations

import re

import numpy as np

from tests.referee import response_in_floats

NUMBER = r"[+−-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?"


def typed_rule(text: str, names: tuple[str, ...]) -> tuple[np.ndarray, float]:
    """Weights and threshold of "accept if 2 gpa −0.5 sat ≥ 9" somewhere in a text."""
    text = " ".join(text.split())
    rule = text.partition("accept if ")[2]
    score, _, rest = rule.partition("≥")
    weights = np.zeros(len(names))
    place = score = score.strip()
    longest_first = sorted(names, key=len, reverse=True)
    while place:
        number = re.match(NUMBER + " ", place)
        value = 1.0
        if number is not None:
            value = float(number[0].replace("−", "-"))
            place = place[number.end() :]
        name = next(n for n in longest_first if place.startswith(n))
        weights[names.index(name)] = value
        place = place[len(name) :].strip()
    threshold = re.match(r"\s*(" + NUMBER + ")", rest)
    return weights, float(threshold[1].replace("−", "-"))


def plain_gain(instance, weights, threshold, units=None) -> float:
    """What a rule gains on an instance, in floats.

    With the user's units, weights and threshold are for features as people know them; what a move
    costs is still measured in the instance's.
    """
    w, x = np.asarray(weights, dtype=float), instance.agents
    if units is not None:
        x = np.array(units.centre) + np.array(units.scale) * x
    distance = threshold - x @ w
    if units is not None:
        w = w * np.array(units.scale)
    length, step = response_in_floats(instance, w)
    moves = (distance >= 0) & (distance <= length / instance.cost)
    moved = np.average(np.where(moves, distance, 0.0), weights=instance.weights)
    return float((step @ instance.quality) * moved)
