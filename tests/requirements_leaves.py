"""What rules in a leaf of a certificate's tree gain: the truth that bounds of leaves must not miss.

Directions are points x of a leaf's box, in rationals, at random and where something happens: on the
rims of boxes and cones, where weights are 0, and where two agents end at the same score. Along a
direction every agent's end is a threshold; who passes there is decided exactly. Requirements are
read as `requirements_referee` reads them, and nothing is shared with the package but the leaf's
coordinates, which must be exact (`Agents.frame_error` is 0).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from mipmech import Instance
from mipmech.checker.agents import Agents
from mipmech.checker.bounds import LeafBounds, all_of, context_of
from mipmech.checker.demanded import ClaimedRequirements
from mipmech.checker.tree import NARROWEST, halves
from mipmech.checker.witness import ExactInstance
from mipmech.model.geometry import geometry_of
from mipmech.oracles.cells.engine import gain_problem
from tests import referee
from tests import requirements_referee as truth
from tests.referee import dot

# Roots are rational to so many bits; thresholds that agree to half of them are one.
BITS = 240
SAME = Fraction(1, 1 << 120)
# What sums in floats may be off by, relatively, in the comparison of two gains.
NEAR = 1e-12


# ------------------------------------------------------------------ samples and requirements


def drawn(rng, norm, k, m, effort=None) -> tuple[Instance, list]:
    """A sample with ties: agents on a lattice, some twice, weights of any kind; and labels."""
    hidden = int(rng.integers(0, 2))
    n = k + hidden
    if rng.random() < 0.6:
        agents = rng.integers(-3, 4, (m, n)).astype(float)
    else:
        agents = rng.standard_normal((m, n)).round(3)
    for _ in range(int(rng.integers(0, 3))):
        agents[rng.integers(m)] = agents[rng.integers(m)]
    if hidden and rng.random() < 0.5 and m > 1:
        agents[0, :k] = agents[1, :k]
    reach: Any = float(rng.choice([0.25, 0.5, 1.0, 2.0]))
    if rng.random() < 0.5:
        reach = rng.choice([0.25, 0.5, 1.0, 2.0], m)
    kind = rng.integers(5)
    weights = None
    if kind == 1:
        weights = rng.integers(0, 4, m).astype(float)
    elif kind == 2:
        weights = rng.choice([0.1, 0.3, 0.7, 1e-3], m)
    elif kind == 3:
        weights = rng.random(m) * rng.choice([1.0, 1e-9, 1e9], m)
    elif kind == 4:
        weights = rng.choice([0.0, 1.0, 2.0**60, 3e-20], m)
    if weights is not None:
        weights[rng.integers(m)] = 1.0
    quality = rng.integers(-3, 4, n) + (0.0 if rng.random() < 0.5 else rng.random(n).round(2))
    quality[0] = quality[0] or 1.0
    groups = [int(v) for v in rng.integers(0, int(rng.integers(1, 4)), m)]
    instance = Instance.from_arrays(
        agents, quality, visible=range(k), reach=reach, norm=norm, effort=effort, weights=weights,
        groups={"kind": groups},
    )  # fmt: skip
    return instance, groups


def demanded(rng, instance, k, kinds=None) -> dict[str, Any]:
    """One to three requirements, from loose to impossible."""
    every = ["nonnegative", "nonpositive", "order", "accepted", "parity"]
    chosen = kinds or rng.permutation(every)[: rng.integers(1, 4)]
    found: dict[str, Any] = {}
    positive = instance.weights > 0
    share = instance.weights[positive] / instance.weights[positive].sum()
    for kind in chosen:
        if kind in ("nonnegative", "nonpositive"):
            some = sorted(int(j) for j in rng.permutation(k)[: rng.integers(1, k + 1)])
            found[str(kind)] = "all" if rng.random() < 0.3 else some
        elif kind == "order" and k > 1:
            pairs = [[int(j) for j in rng.permutation(k)[:2]] for _ in range(rng.integers(1, 3))]
            found["order"] = pairs
        elif kind == "accepted":
            ends = [float(rng.choice([0, 1, rng.random(), rng.integers(0, 11) / 10]))
                    for _ in range(2)]  # fmt: skip
            if rng.random() < 0.5:
                some = rng.random((2, len(share))) < 0.5
                ends = [float(np.clip(share[row].sum(), 0, 1)) for row in some]
            found["accepted"] = sorted(ends)
        elif kind == "parity":
            within = float(rng.choice([0.0, 0.1, 0.25, 1 / 3, 0.5, 1.0]))
            found["parity"] = {"groups": "kind", "within": within}
    return found


# ------------------------------------------------------------------ the truth along a direction


@dataclass
class Rules:
    """What rules with weights on the columns seen do to a sample."""

    instance: Instance
    requirements: dict[str, Any]
    labels: list
    sample: referee.Sample = field(init=False)
    cone: list[list[Fraction]] = field(init=False)

    def __post_init__(self) -> None:
        self.sample = referee.Sample.of(self.instance)
        self.cone = truth.cone(self.instance, self.requirements)
        self.counts = [i for i, w in enumerate(self.sample.weight) if w]
        weights = [Fraction(float(w)) for w in self.instance.weights]
        self.groups = []
        self.limits, self.within = None, None
        if "accepted" in self.requirements:
            self.limits = [truth.as_written(v) for v in self.requirements["accepted"]]
        if "parity" in self.requirements:
            self.within = truth.as_written(self.requirements["parity"]["within"])
            for label in dict.fromkeys(self.labels):
                members = [i for i in self.counts if self.labels[i] == label]
                total = sum((weights[i] for i in members), Fraction(0))
                if members:
                    self.groups.append({i: weights[i] / total for i in members})

    def allowed(self, w) -> bool:
        """Whether weights, exactly, are in the cone."""
        return any(w) and all(dot(row, w) >= 0 for row in self.cone)

    def along(self, w) -> list[tuple[Fraction, float, float]]:
        """The thresholds of rules that are allowed, in units of N(w); soft density, and the gain.

        Only ends are thresholds. Everything but the root of N² is exact.
        """
        if not self.allowed(w):
            return []
        square, step = referee.response(self.sample, w)
        length = _root(square)
        rate = dot(self.sample.w_f, step)  # of quality, for each unit of score
        scores = {i: dot(w, self.sample.x[i]) for i in self.counts}
        reach = self.sample.reach
        found = []
        for i in self.counts:
            passing = [
                j for j in self.counts
                if _above(scores[j] - scores[i], reach[j] - reach[i], square)
            ]  # fmt: skip
            if not self._fits(passing):
                continue
            b = scores[i] + reach[i] * length
            moved = sum(
                (self.sample.weight[j] * max(b - scores[j], Fraction(0)) for j in passing),
                Fraction(0),
            )
            found.append((b / length, float(moved / length), float(moved * rate)))
        return found

    def _fits(self, passing) -> bool:
        share = sum((self.sample.weight[j] for j in passing), Fraction(0))
        if self.limits and not self.limits[0] <= share <= self.limits[1]:
            return False
        if self.within is None:
            return True
        shares = [
            sum((group[j] for j in passing if j in group), Fraction(0)) for group in self.groups
        ]
        return max(shares) - min(shares) <= self.within


def _root(square: Fraction) -> Fraction:
    scaled = square * (1 << 2 * BITS)
    return Fraction(math.isqrt(scaled.numerator // scaled.denominator), 1 << BITS)


def _above(a: Fraction, c: Fraction, square: Fraction) -> bool:
    """Is a + c√square ≥ 0?"""
    if a >= 0 and c >= 0:
        return True
    if a < 0 and c < 0:
        return False
    if a >= 0:
        return a * a >= c * c * square
    return c * c * square >= a * a


# ------------------------------------------------------------------ leaves


@dataclass
class Setting:
    """A sample with requirements, the checker's agents, and how to come to weights.

    frame : (k, n) array, exact
    """

    instance: Instance
    rules: Rules
    agents: Agents
    problem: Any
    frame: np.ndarray
    centre: list[Fraction]

    def weights(self, x) -> list[Fraction]:
        """w for the point x of a box."""
        return [
            sum((c * Fraction(float(v)) for c, v in zip(x, column, strict=True)), Fraction(0))
            for column in self.frame.T
        ]

    def threshold(self, w, b: Fraction) -> Fraction:
        """In the units of leaves, for a threshold in units of N(w)."""
        length = _root(referee.response(self.rules.sample, w)[0])
        return (b - dot(w, self.centre) / length) / Fraction(self.agents.unit)


def setting(instance: Instance, requirements: dict[str, Any], labels: list, valued=True) -> Setting:
    """Without any search: the frame, centre and thresholds that certificates have."""
    geometry = geometry_of(instance, requirements)
    problem = gain_problem(geometry)
    exact = ExactInstance(instance, lambda: None)
    proof = {
        "frame": geometry.basis.tolist(), "centre": geometry.centre.tolist(),
        "unit": geometry.unit, "thresholds": list(problem.thresholds),
    }  # fmt: skip
    demands = ClaimedRequirements(requirements, exact)
    exact = ExactInstance(instance, lambda: None, demands.zeros)
    agents = Agents(exact, proof, None, Fraction(0), demands, valued)
    centre = [Fraction(float(v)) for v in geometry.centre]
    rules = Rules(instance, requirements, labels)
    return Setting(instance, rules, agents, problem, geometry.basis, centre)


def leaf_bound(given: Setting, path: list, enough: float, settled: bool) -> float:
    """The checker's bound of the last box of a path from a root, in the units of the sums.

    settled : agents are settled on the way down, as the checker does
    """
    context = replace(context_of(given.agents, 0.0), enough=enough)
    bounds = LeafBounds(context, all_of(given.agents), lambda: None)
    some = all_of(given.agents)
    if settled:
        for box in path[:-1]:
            inner = bounds.inner(box, some)
            if inner is None:
                return bounds.highest
            some = inner
    bounds.leaves(path[-1], some)
    bounds.tilt()
    return bounds.highest


def random_tree(rng, given: Setting, cuts: int) -> list[list]:
    """The leaves of a random tree, each with the boxes above it."""
    d = given.agents.dimension
    axes = np.eye(d)
    leaves = []
    for j in range(d):
        for sign in (1.0, -1.0):
            box = (
                (sign * axes[j])[None], (1.0 - axes[j])[None],
                np.array([given.agents.low]), np.array([given.agents.high]),
            )  # fmt: skip
            leaves.append([box])
    deep = rng.random() < 0.5
    place = 0
    for _ in range(cuts):
        if not deep or rng.random() < 0.2:
            place = int(rng.integers(len(leaves)))
        path = leaves[place]
        box = path[-1]
        sides = [j for j in range(d) if box[1][0, j] > 2 * NARROWEST]
        symbol = 1 if not sides or rng.random() < 0.4 else 2 + int(rng.choice(sides))
        both = halves(np.array([symbol], np.uint8), box)
        children = [[*path, tuple(v[i : i + 1] for v in both)] for i in (0, 1)]
        order = int(rng.integers(2))
        leaves[place] = children[order]
        leaves.append(children[1 - order])
    return leaves


def points(rng, given: Setting, box, many: int) -> list[list[Fraction]]:
    """Points of a box: at random, and where rows, coordinates or ties are met."""
    centre = [Fraction(float(v)) for v in box[0][0]]
    half = [Fraction(float(v)) for v in box[1][0]]
    d = len(centre)
    planes = [row for row in given.agents.rows.tolist() if any(row)]
    planes = [[Fraction(v) for v in row] for row in planes]
    planes += [[Fraction(int(i == j)) for i in range(d)] for j in range(d)]
    planes += _ties(rng, given, box)
    found = []
    for _ in range(many):
        kind = rng.integers(5)
        if kind == 0:
            steps = [Fraction(int(rng.integers(-64, 65)), 64) for _ in range(d)]
        elif kind == 1:
            steps = [Fraction(int(rng.choice([-1, 1]))) for _ in range(d)]
        elif kind == 2:
            steps = [Fraction(int(rng.choice([-1, 0, 1]))) for _ in range(d)]
        else:
            steps = [Fraction(float(rng.uniform(-1, 1))) for _ in range(d)]
        x = [c + h * s for c, h, s in zip(centre, half, steps, strict=True)]
        free = [j for j in range(d) if half[j]]
        for _ in range(int(rng.integers(0, d)) if kind != 1 else 0):
            x = _onto(rng, x, planes, free, centre, half)
        if any(x):
            found.append(x)
    return found


def _onto(rng, x, planes, free, centre, half):
    """x moved along a free coordinate onto a plane, if it stays in the box; that one is taken."""
    plane = planes[int(rng.integers(len(planes)))]
    able = [j for j in free if plane[j]]
    if not able:
        return x
    j = able[int(rng.integers(len(able)))]
    rest = sum(
        (a * v for i, (a, v) in enumerate(zip(plane, x, strict=True)) if i != j), Fraction(0)
    )
    value = -rest / plane[j]
    if abs(value - centre[j]) > half[j]:
        return x
    free.remove(j)
    return [value if i == j else v for i, v in enumerate(x)]


def _ties(rng, given: Setting, box) -> list[list[Fraction]]:
    """Where two agents end at the same score, exactly: where N is linear, or reaches are equal."""
    sample, norm = given.rules.sample, given.agents.norm
    frame = [[Fraction(float(v)) for v in row] for row in given.frame]
    d = len(frame)
    found = []
    pairs = list(combinations(given.rules.counts, 2))
    for place in rng.permutation(len(pairs))[:12]:
        i, j = pairs[place]
        apart = [a - b for a, b in zip(sample.x[i], sample.x[j], strict=True)]
        plane = [dot(row, apart) for row in frame]
        more = sample.reach[i] - sample.reach[j]
        if more and norm == "l1":
            own = [k for k in range(d) if box[1][0, k] == 0]
            plane[own[0]] += more * (1 if box[0][0, own[0]] > 0 else -1)
        elif more and norm == "linf":
            plane = [v + more * int(np.sign(box[0][0, k])) for k, v in enumerate(plane)]
        elif more:
            continue
        if any(plane):
            found.append(plane)
    return found


def holds(box, x) -> bool:
    """Whether a point, scaled to the cube, is in a box."""
    size = max(abs(v) for v in x)
    return all(
        abs(v / size - Fraction(float(c))) <= Fraction(float(h))
        for v, c, h in zip(x, box[0][0], box[1][0], strict=True)
    )


def within(box, b: Fraction) -> bool:
    return Fraction(float(box[2][0])) - SAME <= b <= Fraction(float(box[3][0])) + SAME


def misses(rng, given: Setting, leaves: list, bounds: list[float], many: int) -> list[str]:
    """Rules that are in leaves (at least one each), none of whose bounds is as high as their gain.

    bounds : of the leaves, in the units of the sums
    """
    unit = float(given.agents.gain_unit)
    found = []
    for path in leaves:
        for x in points(rng, given, path[-1], many):
            w = given.weights(x)
            for b, _, gain in given.rules.along(w):
                place = given.threshold(w, b)
                if not within(path[-1], place):
                    continue
                top = max(
                    bound for other, bound in zip(leaves, bounds, strict=True)
                    if within(other[-1], place) and holds(other[-1], x)
                )  # fmt: skip
                if top < 0 or top * unit < gain * (1 - NEAR):
                    found.append(f"w = {[float(v) for v in w]}, b = {float(place)}: gains {gain},"
                                 f" bound {top * unit}, {x}")  # fmt: skip
    return found
