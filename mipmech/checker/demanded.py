"""Requirements, read and tested apart from the rest of the package: `docs/proof-format.md`.

A requirement on weights is a pair (a, b): the weight at place a is at least the one at place b,
where the place −1 stands for the number 0.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipmech.checker.content import finite, reject
from mipmech.checker.exact import dot, eliminated, fractions, root, up
from mipmech.checker.witness import ExactInstance

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

ZERO = -1
FIELDS = {"format", "nonnegative", "nonpositive", "order", "accepted", "parity"}
FORMAT = "mipmech/requirements@1"
EPSILON = 2.0**-53


class ClaimedRequirements:
    """What a claim demands of rules.

    pairs : of places of weights
    low, high : Fraction, the share accepted; 0 and 1 if that is not limited
    members : (m,) array, the class of each agent; all 0 without parity
    within : Fraction or None, by how much accepted shares of classes may differ
    limited : whether it matters who is accepted
    """

    def __init__(self, content: Any, exact: ExactInstance) -> None:
        self.exact = exact
        instance = exact.instance
        content = _object(content)
        self.places = sorted(exact.columns) if exact.columns is not None else [
            *range(len(instance.view.matrix))
        ]  # fmt: skip
        self.names = list(instance.feature_names) if exact.columns is not None else []
        self.pairs: list[tuple[int, int]] = []
        self._take_pairs(content)
        self.low, self.high = Fraction(0), Fraction(1)
        if "accepted" in content:
            two = _listed(content["accepted"], "accepted")
            if len(two) != 2:
                reject("claim.requirements.accepted is not [low, high]")
            self.low, self.high = (_share(value, "accepted") for value in two)
        self.members = np.zeros(instance.size, np.int64)
        self.within: Fraction | None = None
        if "parity" in content:
            self._take_parity(content["parity"])
        self.limited = "accepted" in content or self.within is not None
        self.given = bool(self.pairs) or self.limited
        self.zeros = self._reaching(True) & self._reaching(False)
        if exact.columns is not None and self.zeros >= exact.columns:
            reject("the requirements leave every weight at 0")
        self.strict = self._acyclic()

    def _take_pairs(self, content: dict[str, Any]) -> None:
        exact = self.exact
        for field in ("nonnegative", "nonpositive"):
            if field in content:
                for place in self._chosen(content[field], field):
                    above = field == "nonnegative"
                    self.pairs.append((place, ZERO) if above else (ZERO, place))
        if "order" in content:
            for pair in _listed(content["order"], "order"):
                if not isinstance(pair, list) or len(pair) != 2:
                    reject("claim.requirements.order is not a list of pairs")
                first, second = (self._place(name, "order") for name in pair)
                self.pairs.append((first, second))
        dependent = exact.columns is None and exact.rank < len(exact.instance.view.matrix)
        if self.pairs and dependent:
            reject("requirements on the rows of a view need independent rows")

    def _take_parity(self, value: Any) -> None:
        instance = self.exact.instance
        if not isinstance(value, dict) or set(value) != {"groups", "within"}:
            reject("claim.requirements.parity is not an object with groups and within")
        name = value["groups"]
        if not isinstance(name, str) or name not in instance.groups:
            reject("claim.requirements.parity names groups that the instance does not have")
        self.within = _share(value["within"], "parity")
        given = np.asarray(instance.groups[name].members, dtype=np.int64)
        counts = instance.weights > 0
        # Groups without weight have no share.
        for number, label in enumerate(np.unique(given[counts]).tolist()):
            self.members[(given == label) & counts] = number

    def _chosen(self, value: Any, field: str) -> list[int]:
        if value == "all":
            return self.places
        return [self._place(name, field) for name in _listed(value, field)]

    def _place(self, value: Any, field: str) -> int:
        if isinstance(value, str) and value in self.names:
            value = self.names.index(value)
        if isinstance(value, bool) or not isinstance(value, int) or value not in self.places:
            reject(f"claim.requirements.{field} names a feature that the planner does not see")
        return value

    def _reaching(self, up: bool) -> frozenset[int]:
        """The places that must be at least 0, or at most."""
        found: set[int] = set()
        waiting = [ZERO]
        while waiting:
            here = waiting.pop()
            for first, second in self.pairs:
                inside, other = (second, first) if up else (first, second)
                if inside == here and other not in found | {ZERO}:
                    found.add(other)
                    waiting.append(other)
        return frozenset(found)

    def _acyclic(self) -> bool:
        """Whether some direction meets all pairs with room to spare: no weights must be equal.

        Those that must be 0 do not count.
        """
        named = {place: ZERO if place in self.zeros else place for place in [ZERO, *self.places]}
        above: dict[int, set[int]] = {place: set() for place in named.values()}
        for first, second in self.pairs:
            if not self.zeros >= {first, second} - {ZERO}:
                above[named[first]].add(named[second])
        while above:
            last = [place for place, others in above.items() if not others & above.keys()]
            if not last:
                return False
            for place in last:
                del above[place]
        return True

    # ------------------------------------------------------------ the witness

    def test(self, witness: list[Fraction], accepted: dict[int, tuple[Fraction, Fraction]]) -> None:
        """Refuse a rule that fails something.

        witness : its weights, by place; accepted : of each class, the weight accepted and the whole
        """
        for first, second in self.pairs:
            high, low = (Fraction(0) if j == ZERO else witness[j] for j in (first, second))
            if high < low:
                reject("the witness fails a requirement on its weights")
        if not self.limited:
            return
        whole = sum((total for _, total in accepted.values()), Fraction(0))
        share = sum((held for held, _ in accepted.values()), Fraction(0)) / whole
        if not self.low <= share <= self.high:
            reject(f"the witness accepts {float(share):.6g} of the agents, outside of the limits")
        if self.within is not None:
            shares = [held / total for held, total in accepted.values()]
            if max(shares) - min(shares) > self.within:
                reject("the witness accepts groups at rates that differ too much")

    # ------------------------------------------------------------ in the frame

    def rows(
        self, exact: ExactInstance, frame: Floats, frame_error: float
    ) -> tuple[Floats, Floats]:
        """Rows a with a·u ≥ 0, (r, k), in the coordinates of the proof, and their rounding.

        It is 0 for rows of −1, 0 and 1 that are exact: what they have over a box is then exact too.
        """
        rows, rooms = [], []
        for pair in self.pairs:
            g = [Fraction(0)] * exact.instance.width
            for place, sign in zip(pair, (1, -1), strict=True):
                if place != ZERO:
                    g = [a + sign * b for a, b in zip(g, self._reads(place), strict=True)]
            exactly = [dot(fractions(row), g) for row in frame]
            nonzero = [value for value in exactly if value]
            if not nonzero and exact.columns is not None:
                continue  # of weights that are 0 by themselves
            if len(nonzero) == 1:  # a multiple of a row is as good
                exactly = [value / abs(nonzero[0]) for value in exactly]
            row = np.array([float(value) for value in exactly])
            plain = all(value in (-1, 0, 1) for value in exactly) and len(nonzero) <= 2
            if plain and frame_error == 0:
                rooms.append(0.0)
            else:
                size = up(root(dot(g, self._dual(g)))[1])
                scale = float(1 / abs(nonzero[0])) if len(nonzero) == 1 else 1.0
                rounded = 8 * (len(row) + 4) * EPSILON * float(np.abs(row).sum())
                # Points of the cube are at most √k long.
                longest = 1.01 * math.sqrt(len(row))
                rooms.append(longest * frame_error * size * scale + rounded)
            rows.append(row)
        k = exact.rank
        return np.array(rows).reshape(len(rows), k), np.array(rooms)

    def _reads(self, place: int) -> list[Fraction]:
        """The g with g·w the weight at a place, for the weights w of any rule.

        For a view w = Bᵀv, so v = (BBᵀ)⁻¹Bw.
        """
        exact, width = self.exact, self.exact.instance.width
        if exact.columns is not None:
            return [Fraction(int(j == place)) for j in range(width)]
        rows = [fractions(row) for row in exact.instance.view.matrix]
        gram = [[dot(a, b) for b in rows] for a in rows]
        scale = 1
        for line in gram:
            for value in line:
                scale = max(scale, value.denominator)
        whole = [[int(value * scale) for value in line] for line in gram]
        right = [[int(i == place)] for i in range(len(rows))]
        solved, determinant = eliminated(whole, right, exact.look)
        x = [Fraction(line[0] * scale, determinant) for line in solved]
        return [dot(x, [row[j] for row in rows]) for j in range(width)]

    def _dual(self, g: list[Fraction]) -> list[Fraction]:
        """M g, M that of the costs."""
        effort = self.exact.instance.costs.effort
        if effort is None:
            return g
        given = np.asarray(effort)
        if given.ndim == 1:
            return [e * e * value for e, value in zip(fractions(given), g, strict=True)]
        return [dot(fractions(row), g) for row in given]


def _object(content: Any) -> dict[str, Any]:
    if content is None:
        return {}
    if not isinstance(content, dict) or not set(content) <= FIELDS:
        reject("claim.requirements is not an object of the format mipmech/requirements@1")
    if content.get("format", FORMAT) != FORMAT:
        reject("claim.requirements has another format")
    return content


def _listed(value: Any, field: str) -> list[Any]:
    if not isinstance(value, list):
        reject(f"claim.requirements.{field} is not a list")
    return value


def _share(value: Any, field: str) -> Fraction:
    """A share as it is written: 0.3 is 3/10."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not finite(value):
        reject(f"claim.requirements.{field} has no number where a share was expected")
    share = Fraction(repr(float(value)))
    if not 0 <= share <= 1:
        reject(f"claim.requirements.{field} has a share that is not between 0 and 1")
    return share
