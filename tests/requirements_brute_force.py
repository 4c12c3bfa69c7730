"""The best gain of all rules that meet requirements, and whether there are any.

It shares no code with the package: only instances' raw arrays are read. Agents that weigh nothing
count for nothing, and those of one place and one reach respond alike: they are one class.

What is asked is a supremum, which no rule need attain: to reject an agent is a strict inequality.

**Which sets can be accepted.** A set A is accepted by (u, b) iff end_i ≥ b for i in A and b > end_j
for the others, where end_i = u·z_i + ℓ_i N(u). Where N is linear (a face of the dual unit sphere of
l1 or linf) or does not matter (l2, all reaches equal: it moves b) these are linear inequalities in
(u, b), some of them strict, and a small simplex in rationals decides (`possible`).

**l1 and linf.** u_j = w_j/e_j, z_j = e_j x_j, p_j = w_fj/e_j, and N is normal·u on each face. For
l1 N is max|u_j|, with a facet, and a rate, for each u_j = ±1; where facets meet the rate is the
greatest of theirs, so nothing is lost if each closed facet counts with its own. For linf N is
Σ|u_j|, and the rate Σ s_j p_j depends on all signs s_j of u_j, 0 included: every pattern of signs
is a face of its own, and signs are strict inequalities. (Without requirements some orthant beside a
rim is as good as the rim; a cone may have the rim alone.)

On a face, for a set A, soft density is convex in (u, b), so over the closure of what accepts A its
greatest value is at a vertex: k equalities among b = end_i and the rows of face and cone, one of
them of an end, which gives b. At each vertex, agents whose end is b may be accepted or not. A
choice is one of rules nearby iff there is a direction in which rows and ends that are equal there
part as chosen. `possible` decides that as well: all of it is exact.

**l2 with k = 2.** The order of all ends changes only where two are equal; who is covered by b =
end_i only where end_i is a score. These angles, and those of the rows of the cone, are found with
80 digits. On the arcs between them everything is constant but the gain, (u·p)(A·u + c), which is
greatest at an end of the arc or at a zero of its slope. Angles that agree to 30 digits are one: a
tie there accepts no set that its neighbours do not. A cone without interior has fewer dimensions:
it is reduced to its span first, so that arcs of the cone, and not rays, matter.

**l2 with k = 3.** `reached` is a rule found by search, with its exact gain. Caps of directions that
may hold more are halved, with a bound for each set that may be accepted (few agents, then). Whether
there is any rule is decided: `feasible`.

**l2 with k ≥ 4.** `reached`, and `feasible` for equal reaches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cmp_to_key
from itertools import combinations, pairwise, product

import numpy as np

from tests import referee
from tests import requirements_referee as truth
from tests.costs_brute_force import Bracket
from tests.referee import Root, dot

# Directions this near are one. Some 75 digits are right, half of them where circles touch.
SAME = Decimal("1e-30")
TOUCHING = Decimal("1e-40")  # circles whose radius has a square below this are points
ASIDE = Decimal("1e-25")  # a step off a circle that crosses no other
NARROW = Decimal("1e-12")  # arcs of circles below this are not looked into
GAP = 1e-3  # caps whose bound is this near (relatively) to what is reached are not halved
MOST_CAPS = 200_000  # with more of them the bracket is what it is then
MOST_CLASSES = 8  # whose sets are all tried in every cap
CLIMBERS = 120  # directions that the search follows
ROUNDING = 1e-11  # of the greatest gain on an arc, found in floats


@dataclass(frozen=True)
class Reached:
    """A rule that meets the requirements, by its own weights, and its exact gain."""

    gain: Fraction
    rule: tuple[float, ...]
    threshold: float


def best_gain(instance, requirements: dict, labels: Sequence | None = None) -> Bracket | None:
    """The supremum of the gain over all rules that meet the requirements; None if no rule does.

    For l2 in up to three dimensions, those of the span of the cone; for l1 and linf in any, though
    slowly beyond three. Exact but for rounding, except for l2 in three dimensions: there the
    bracket is about GAP wide, or more where ties are, and `surely` is −∞ if the search found no
    rule. Where even the supremum is negative, `at_most` may be 0.
    """
    if instance.costs.norm == "l2":
        problem = _Euclidean.of(instance, requirements, labels)
        size = len(problem.p)
        if size == 3:
            return _bracket_on_a_sphere(instance, requirements, labels, problem)
        assert size < 3
        found = [None, _best_on_a_line, _best_on_a_circle][size](problem) if size else None
        if found is None:
            return None
        off = ROUNDING * (abs(found) + 1e-3 * problem.ceiling)
        return Bracket(found - off, found + off)
    faces = _Faces.of(instance, requirements, labels)
    best = _best_on_faces(faces)
    if best is None:
        return None
    value = float(best)
    return Bracket(value - 1e-15 * abs(value), max(0.0, value * (1 + 1e-15)))


def feasible(instance, requirements: dict, labels: Sequence | None = None) -> bool | None:
    """Does any rule meet the requirements? None where this is not decided."""
    if instance.costs.norm != "l2":
        faces = _Faces.of(instance, requirements, labels)
        return any(
            faces.allowed(accepted)
            for face in faces.faces
            for accepted in _sets(faces.ends(face), face.closed, face.strict)
        )
    problem = _Euclidean.of(instance, requirements, labels)
    size, many = len(problem.p), len(problem.z)
    if size == 0 or problem.allowed([True] * many) or problem.allowed([False] * many):
        return size > 0
    if size <= 2:
        return best_gain(instance, requirements, labels) is not None
    if len(set(problem.reach)) == 1:
        return any(problem.allowed(s) for s in _sets(problem.z, problem.rows, []))
    if size == 3:
        return _feasible_on_a_sphere(problem)
    return (reached(instance, requirements, labels) is not None) or None


# ---- requirements ----


@dataclass(frozen=True)
class _Classes:
    """Agents that weigh something, by what the planner sees of them, x (c, rows), and reach.

    weight : shares of all weight
    parts : for parity, of each group that weighs something, the shares of its weight by class
    """

    x: list[list[Fraction]]
    reach: list[Fraction]
    weight: list[Fraction]
    parts: list[list[Fraction]]
    limits: tuple[Fraction, Fraction]
    within: Fraction | None

    @classmethod
    def of(cls, instance, requirements, labels):
        sample = referee.Sample.of(instance)
        if instance.view.columns is None:
            rows = [referee.exact(row) for row in instance.view.matrix]
            seen = [tuple(dot(row, x) for row in rows) for x in sample.x]
        else:
            seen = [tuple(x[j] for j in instance.view.columns) for x in sample.x]
        everyone = [i for i, w in enumerate(sample.weight) if w]
        keys = list(dict.fromkeys((seen[i], sample.reach[i]) for i in everyone))
        place = {key: number for number, key in enumerate(keys)}

        def by_class(members):
            total = sum(sample.weight[i] for i in members)
            shares = [Fraction(0)] * len(keys)
            for i in members:
                shares[place[seen[i], sample.reach[i]]] += sample.weight[i] / total
            return shares

        within, parts = None, []
        if "parity" in requirements:
            within = truth.as_written(requirements["parity"]["within"])
            for label in dict.fromkeys(labels[i] for i in everyone):
                parts.append(by_class([i for i in everyone if labels[i] == label]))
        low, high = requirements.get("accepted", (0, 1))
        return cls(
            [list(x) for x, _ in keys],
            [reach for _, reach in keys],
            by_class(everyone),
            parts,
            (truth.as_written(low), truth.as_written(high)),
            within,
        )

    def allowed(self, accepted: Sequence[bool]) -> bool:
        """May exactly these classes be accepted?"""
        share = _sum(self.weight, accepted)
        if not self.limits[0] <= share <= self.limits[1]:
            return False
        shares = [_sum(part, accepted) for part in self.parts]
        return self.within is None or max(shares) - min(shares) <= self.within


def _sum(values, which) -> Fraction:
    return sum((v for v, here in zip(values, which, strict=True) if here), Fraction(0))


# ---- linear inequalities, exactly ----


def possible(closed: Sequence[Sequence[Fraction]], strict: Sequence[Sequence[Fraction]]) -> bool:
    """Is there a y with a·y ≥ 0 for all closed rows and c·y > 0 for all strict ones?

    The simplex method for max t ≤ 1 with c·y ≥ t, by Bland's rule; y is a difference of two
    nonnegative vectors. It starts at 0, which is feasible: t gets above 0 or it does not.
    """
    if not strict:
        return True
    rows = [[*(-v for v in a), *a, Fraction(0)] for a in closed if any(a)]
    rows += [[*(-v for v in c), *c, Fraction(1)] for c in strict]
    width = 2 * len(strict[0]) + 1
    rows.append([Fraction(0)] * (width - 1) + [Fraction(1)])
    right = [Fraction(0)] * (len(rows) - 1) + [Fraction(1)]
    free = list(range(width))  # names of variables that are 0
    basic = list(range(width, width + len(rows)))
    gains = [Fraction(0)] * (width - 1) + [Fraction(1)]
    while True:
        entering = [j for j in range(width) if gains[j] > 0]
        if not entering:
            return False
        j = min(entering, key=lambda j: free[j])
        i = min(
            (i for i in range(len(rows)) if rows[i][j] > 0),
            key=lambda i: (right[i] / rows[i][j], basic[i]),
        )
        pivot = rows[i][j]
        if right[i] > 0:  # the first step that is not of length 0 raises t
            return True
        free[j], basic[i] = basic[i], free[j]
        rows[i] = [v / pivot for v in rows[i]]
        rows[i][j] = 1 / pivot
        for other in range(len(rows)):
            share = rows[other][j]
            if other != i and share:
                rows[other][j] = Fraction(0)
                rows[other] = [a - share * b for a, b in zip(rows[other], rows[i], strict=True)]
        share = gains[j]
        gains[j] = Fraction(0)
        gains = [a - share * b for a, b in zip(gains, rows[i], strict=True)]


def _sets(ends, closed, strict) -> Iterator[list[bool]]:
    """All sets that can be accepted where class i ends at ends_i·u, one class after the other."""
    closed = [[*row, Fraction(0)] for row in closed]
    strict = [[*row, Fraction(0)] for row in strict]

    def more(accepted: list[bool]) -> Iterator[list[bool]]:
        passing = [[*e, Fraction(-1)] for e, a in zip(ends, accepted, strict=False) if a]
        failing = [[*(-v for v in e), Fraction(1)] for e, a in zip(ends, accepted, strict=False)
                   if not a]  # fmt: skip
        if not possible(closed + passing, strict + failing):
            return
        if len(accepted) == len(ends):
            yield accepted
            return
        yield from more([*accepted, True])
        yield from more([*accepted, False])

    yield from more([])


# ---- l1 and linf: faces ----


@dataclass(frozen=True)
class _Face:
    """u with normal·u = 1, closed rows ≥ 0, strict rows > 0, over the coordinates that are not 0.

    normal, closed, strict : rows over `used`, as numbers of columns
    """

    used: list[int]
    normal: list[Fraction]
    closed: list[list[Fraction]]
    strict: list[list[Fraction]]
    rate: Fraction


@dataclass(frozen=True)
class _Faces(_Classes):
    """Classes with z_j = e_j x_j, and faces in decreasing order of their rates."""

    faces: list[_Face]

    @classmethod
    def of(cls, instance, requirements, labels):
        classes = _Classes.of(instance, requirements, labels)
        columns = list(instance.view.columns)
        sample = referee.Sample.of(instance)
        prices = [sample.prices[j] for j in columns]
        p = [sample.w_f[j] / e for j, e in zip(columns, prices, strict=True)]
        cone = [
            [row[j] * e for j, e in zip(columns, prices, strict=True)]
            for row in truth.cone(instance, requirements)
        ]
        faces = []
        everything = list(range(len(columns)))
        if sample.norm == "l1":
            for j, sign in product(everything, (1, -1)):
                normal = _unit(j, len(columns), sign)
                rim = [[a + side * b for a, b in zip(normal, _unit(i, len(columns)), strict=True)]
                       for i in everything if i != j for side in (1, -1)]  # fmt: skip
                faces.append(_Face(everything, normal, rim + cone, [normal], sign * p[j]))
        else:
            assert sample.norm == "linf"
            for signs in product((1, -1, 0), repeat=len(columns)):
                used = [j for j in everything if signs[j]]
                if used:
                    normal = [Fraction(signs[j]) for j in used]
                    strict = [_unit(i, len(used), signs[j]) for i, j in enumerate(used)]
                    closed = [[row[j] for j in used] for row in cone]
                    rate = dot(normal, [p[j] for j in used])
                    faces.append(_Face(used, normal, closed, strict, rate))
        return cls(
            [[v * e for v, e in zip(x, prices, strict=True)] for x in classes.x],
            classes.reach,
            classes.weight,
            classes.parts,
            classes.limits,
            classes.within,
            sorted(faces, key=lambda face: -face.rate),
        )

    def scores(self, face: _Face) -> list[list[Fraction]]:
        return [[x[j] for j in face.used] for x in self.x]

    def ends(self, face: _Face) -> list[list[Fraction]]:
        return [
            [v + reach * c for v, c in zip(z, face.normal, strict=True)]
            for z, reach in zip(self.scores(face), self.reach, strict=True)
        ]


def _unit(place: int, size: int, sign: int = 1) -> list[Fraction]:
    return [Fraction(sign * (i == place)) for i in range(size)]


def _best_on_faces(faces: _Faces) -> Fraction | None:
    """The supremum, or, where it is negative, something no greater; None if no rule is allowed."""
    best = None
    farthest = dot(faces.weight, faces.reach)
    extremes = [[True] * len(faces.x), [False] * len(faces.x)]
    if any(faces.allowed(extreme) for extreme in extremes) and any(
        possible(face.closed, face.strict) for face in faces.faces
    ):
        best = Fraction(0)
    for face in faces.faces:
        if best is not None and (face.rate <= 0 <= best or face.rate * farthest <= best):
            continue
        if possible(face.closed, face.strict):
            best = _best_on_face(faces, face, best)
    return best


def _best_on_face(faces: _Faces, face: _Face, best: Fraction | None) -> Fraction | None:
    size, everyone = len(face.used), range(len(faces.x))
    scores, ends = faces.scores(face), faces.ends(face)
    rows = [row for row in face.closed if any(row)]
    # Unknown are u and b.
    equal = [[*(-v for v in end), Fraction(1)] for end in ends]
    equal += [[*row, Fraction(0)] for row in rows + face.strict[: 0 if size == 1 else None]]
    seen = set()
    for chosen in combinations(range(len(equal)), size):
        if chosen[0] >= len(ends):
            break
        matrix = [[*face.normal, Fraction(0)], *(equal[i] for i in chosen)]
        vertex = referee.solve(matrix, [Fraction(1)] + [Fraction(0)] * size)
        if vertex is None or tuple(vertex) in seen:
            continue
        seen.add(tuple(vertex))
        u, b = vertex[:-1], vertex[-1]
        closed, strict = ([dot(row, u) for row in part] for part in (rows, face.strict))
        if min([*closed, *strict]) < 0:
            continue
        over = [dot(end, u) - b for end in ends]
        moves = [max(Fraction(0), b - dot(z, u)) * w
                 for z, w in zip(scores, faces.weight, strict=True)]  # fmt: skip
        tied = [i for i in everyone if over[i] == 0]
        active = [[*row, Fraction(0)] for row, v in zip(rows, closed, strict=True) if v == 0]
        rim = [[*row, Fraction(0)] for row, v in zip(face.strict, strict, strict=True) if v == 0]
        for passing in product((True, False), repeat=len(tied)):
            accepted = [o > 0 for o in over]
            for i, passes in zip(tied, passing, strict=True):
                accepted[i] = passes
            value = face.rate * _sum(moves, accepted)
            if (best is not None and value <= best) or not faces.allowed(accepted):
                continue
            inside = [[-v for v in equal[i]] for i in tied if accepted[i]]
            outside = [equal[i] for i in tied if not accepted[i]]
            if possible(active + inside, rim + outside):
                best = value
    return best


# ---- l2: coordinates in which costs are Euclidean ----


@dataclass(frozen=True)
class _Euclidean(_Classes):
    """Classes in the span of the cone: the rule's own weights are basis·y, N(y)² = y·gram·y.

    basis : rows over y, one per weight of the rule
    z, rows, p : over y; scores are z·y, rows·y ≥ 0, and the rate is p·y/N(y)²
    """

    basis: list[list[Fraction]]
    gram: list[list[Fraction]]
    z: list[list[Fraction]]
    rows: list[list[Fraction]]
    p: list[Fraction]

    @classmethod
    def of(cls, instance, requirements, labels):
        classes = _Classes.of(instance, requirements, labels)
        sample = referee.Sample.of(instance)
        columns, n = instance.view.columns, len(sample.w_f)
        cone = truth.cone(instance, requirements)
        if columns is None:
            view = [referee.exact(row) for row in instance.view.matrix]
            own = [_unit(i, len(view)) for i in range(len(view))]
        else:
            view = [_unit(j, n) for j in columns]
            own = [_unit(j, n) for j in columns]
            cone = [[row[j] for j in columns] for row in cone]
        cone = [row for row in cone if any(row)]
        flat = [row for row in cone if not possible(cone, [row])]
        basis = _null_space(flat, len(view))  # vectors
        view = [[dot(column, vector) for column in zip(*view, strict=True)] for vector in basis]
        if sample.matrix is None:
            lifted = [[v / e**2 for v, e in zip(row, sample.prices, strict=True)] for row in view]
        else:
            lifted = [referee.solve(sample.matrix, row) for row in view]
        gram = [[dot(a, b) for b in lifted] for a in view]
        assert referee.solve(gram, gram[0] if gram else []) is not None, "dependent rows of a view"
        rows = [[dot(row, vector) for vector in basis] for row in cone]
        return cls(
            classes.x,
            classes.reach,
            classes.weight,
            classes.parts,
            classes.limits,
            classes.within,
            [[sum((c * o[i] for c, o in zip(vector, own, strict=True)), Fraction(0))
              for vector in basis] for i in range(len(own[0]))],
            gram,
            [[dot(vector, x) for vector in basis] for x in classes.x],
            [row for row in rows if any(row)],
            [dot(sample.w_f, row) for row in lifted],
        )  # fmt: skip

    @property
    def ceiling(self) -> float:
        """‖p‖ Σ ω_i ℓ_i: nobody gains more."""
        lifted = referee.solve(self.gram, self.p)
        return math.sqrt(dot(self.p, lifted)) * float(dot(self.weight, self.reach))

    def plain(self) -> tuple[list, list, list]:
        """z, rows and p as decimals over u = Lᵀy, gram = LLᵀ, so that N is the length of u."""
        size = len(self.p)
        lower = [[Decimal(0)] * size for _ in range(size)]
        for i in range(size):
            for j in range(i + 1):
                rest = _decimal(self.gram[i][j]) - _dot(lower[i][:j], lower[j][:j])
                lower[i][j] = rest.sqrt() if i == j else rest / lower[j][j]

        def turned(vector):
            found: list[Decimal] = []
            for i in range(size):
                found.append((_decimal(vector[i]) - _dot(lower[i][:i], found)) / lower[i][i])
            return found

        # Scores only matter in comparison: differences are exact before they are rounded.
        z = [turned([a - b for a, b in zip(row, self.z[0], strict=True)]) for row in self.z]
        return z, [turned(row) for row in self.rows], turned(self.p)


def _null_space(rows, size: int) -> list[list[Fraction]]:
    """A basis of the y with row·y = 0 for all rows."""
    rows, pivots = [list(row) for row in rows], []
    for column in range(size):
        place = len(pivots)
        found = next((i for i in range(place, len(rows)) if rows[i][column]), None)
        if found is None:
            continue
        rows[place], rows[found] = rows[found], rows[place]
        rows[place] = [v / rows[place][column] for v in rows[place]]
        for i in range(len(rows)):
            if i != place and rows[i][column]:
                share = rows[i][column]
                rows[i] = [a - share * b for a, b in zip(rows[i], rows[place], strict=True)]
        pivots.append(column)
    basis = []
    for column in range(size):
        if column not in pivots:
            vector = _unit(column, size)
            for place, pivot in enumerate(pivots):
                vector[pivot] = -rows[place][column]
            basis.append(vector)
    return basis


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _dot(a, b) -> Decimal:
    return sum((x * y for x, y in zip(a, b, strict=True)), Decimal(0))


def _thresholds(problem: _Euclidean, y) -> Iterator[tuple[Decimal, list[bool]]]:
    """Suprema of the gain along y, in units of rate·N, of each set that may be accepted."""
    square = dot(y, [dot(row, y) for row in problem.gram])
    score = [dot(z, y) for z in problem.z]
    rate = dot(problem.p, y)
    ends = [Root(s, r, square) for s, r in zip(score, problem.reach, strict=True)]

    def above(a: Root, b: Root) -> int:
        return Root(a.a - b.a, a.c - b.c, square).sign()

    everyone = range(len(score))
    for accepted in (
        [False] * len(score),
        *([above(end, last) >= 0 for end in ends] for last in ends),
    ):
        if not problem.allowed(accepted):
            continue
        # For a negative rate b comes down to the greatest end of those who are rejected.
        among = [i for i in everyone if accepted[i] == (rate > 0)]
        if not any(accepted) or not among:
            yield Decimal(0), accepted
            continue
        last = among[0]
        for i in among:
            if above(ends[i], ends[last]) * (1 if rate > 0 else -1) < 0:
                last = i
        total = Root(Fraction(0), Fraction(0), square)
        for i in everyone:
            move = Root(ends[last].a - score[i], ends[last].c, square)
            if accepted[i] and move.sign() > 0:
                total = Root(
                    total.a + problem.weight[i] * move.a,
                    total.c + problem.weight[i] * move.c,
                    square,
                )
        yield total.decimal() * _decimal(rate / square), accepted


def _best_on_a_line(problem: _Euclidean) -> float | None:
    values = []
    for sign in (Fraction(1), Fraction(-1)):
        if all(sign * row[0] >= 0 for row in problem.rows):
            values += [value for value, _ in _thresholds(problem, [sign])]
    return float(max(values)) if values else None


# ---- l2 in two dimensions: arcs ----


def _crossings(line, level) -> list[tuple[Decimal, Decimal]]:
    """The two unit vectors v of the plane with line·v = level; none where the line touches."""
    square = _dot(line, line)
    rest = square - level * level
    if rest <= TOUCHING * square:
        return []
    root, (x, y) = rest.sqrt(), line
    return [((level * x - s * root * y) / square, (level * y + s * root * x) / square)
            for s in (1, -1)]  # fmt: skip


def _in_order(points) -> list[tuple[Decimal, Decimal]]:
    """Unit vectors counterclockwise, each once."""

    def half(v) -> bool:
        return v[1] < -SAME or (abs(v[1]) <= SAME and v[0] < 0)

    def cross(a, b) -> Decimal:
        return a[0] * b[1] - a[1] * b[0]

    def compare(a, b) -> int:
        if half(a) != half(b):
            return 1 if half(a) else -1
        turn = cross(a, b)
        return 0 if abs(turn) <= SAME else -1 if turn > 0 else 1

    ordered: list[tuple[Decimal, Decimal]] = []
    for point in sorted(points, key=cmp_to_key(compare)):
        if not ordered or compare(ordered[-1], point):
            ordered.append(point)
    return ordered


def _between(a, b) -> tuple[Decimal, Decimal]:
    """The unit vector in the middle of two less than a half turn apart."""
    middle = (a[0] + b[0], a[1] + b[1])
    size = _dot(middle, middle).sqrt()
    return middle[0] / size, middle[1] / size


AXES = [(Decimal(x), Decimal(y)) for x, y in ((1, 0), (0, 1), (-1, 0), (0, -1))]


def _best_on_a_circle(problem: _Euclidean) -> float | None:
    z, rows, p = problem.plain()
    reach = [_decimal(r) for r in problem.reach]
    weight = [_decimal(w) for w in problem.weight]
    everyone = range(len(z))
    # Whatever p is, its sign is the same on an arc.
    critical = list(AXES)
    for row in [*rows, p]:
        critical += _crossings(row, Decimal(0))
    for i, j in product(everyone, repeat=2):
        apart = [a - b for a, b in zip(z[i], z[j], strict=True)]
        if any(apart):
            critical += _crossings(apart, -reach[i])
            if i < j:
                critical += _crossings(apart, reach[j] - reach[i])
    ordered = _in_order(critical)
    best: float | None = None
    for left, right in pairwise([*ordered, ordered[0]]):
        u = _between(left, right)
        if any(_dot(row, u) < 0 for row in rows):
            continue
        rate = _dot(p, u)
        score = [_dot(row, u) for row in z]
        ends = [s + r for s, r in zip(score, reach, strict=True)]
        by_end = sorted(everyone, key=lambda i: -ends[i])
        for count in range(len(z) + 1):
            accepted = [False] * len(z)
            for i in by_end[:count]:
                accepted[i] = True
            if not problem.allowed(accepted):
                continue
            if count == 0 or (count == len(z) and rate <= 0) or not any(p):
                best = max(0.0, -math.inf if best is None else best)
                continue
            last = by_end[count - 1] if rate > 0 else by_end[count]
            moved = [i for i in everyone if accepted[i] and ends[last] >= score[i]]
            turning = [
                float(sum((weight[i] * (z[last][c] - z[i][c]) for i in moved), Decimal(0)))
                for c in range(2)
            ]
            level = float(reach[last] * sum((weight[i] for i in moved), Decimal(0)))
            best = _best_of_wave([float(c) for c in p], turning, level, left, right, best)
    return best


def _best_of_wave(p, turning, level, left, right, best: float | None) -> float:
    """The greatest of (u·p)(turning·u + level) from left to right, or what was best before."""
    begin = math.atan2(left[1], left[0])
    span = math.atan2(left[0] * right[1] - left[1] * right[0], _dot(left, right))

    def at(theta: float) -> float:
        c, s = math.cos(theta), math.sin(theta)
        return (p[0] * c + p[1] * s) * (turning[0] * c + turning[1] * s + level)

    found = max(at(begin), at(begin + span))
    size, tall = math.hypot(*p), math.hypot(*turning)
    most = found + size * (2 * tall + abs(level)) * span**2 / 8
    if best is not None and most <= best:
        return best
    # The slope is Re(f E² + g E) with E = exp(iθ): its zeros are those of a polynomial in E.
    a, q = complex(*turning).conjugate(), complex(*p).conjugate()
    f, g = 1j * a * q, 1j * q * level
    for root in np.roots([f, g, 0, g.conjugate(), f.conjugate()]) if span > 1e-9 else ():
        turn = (math.atan2(root.imag, root.real) - begin) % (2 * math.pi)
        if turn < span:
            found = max(found, at(begin + turn))
    return found if best is None else max(found, best)


# ---- l2 in three dimensions: is anything allowed? ----


def _feasible_on_a_sphere(problem: _Euclidean) -> bool | None:
    """Look into every region of the sphere that circles of equal ends and of the cone cut out.

    Acceptance is closed and rejection strict, so of a set that can be accepted one end is strictly
    above another: an open condition, and the cone has an interior. So regions are enough, and every
    region has an arc of some circle on its rim: both sides of each arc are tried.
    """
    z, rows, _ = problem.plain()
    reach = [_decimal(r) for r in problem.reach]
    everyone = range(len(z))
    circles = [(row, Decimal(0)) for row in rows]
    circles += [([Decimal(int(i == j)) for i in range(3)], Decimal(0)) for j in range(3)]
    for i, j in combinations(everyone, 2):
        apart = [a - b for a, b in zip(z[i], z[j], strict=True)]
        if _dot(apart, apart) * (1 - TOUCHING) > (reach[j] - reach[i]) ** 2:
            circles.append((apart, reach[j] - reach[i]))
    sure = True
    for line, level in circles:
        size = _dot(line, line).sqrt()
        pole, height = [c / size for c in line], level / size
        radius = (1 - height**2).sqrt()
        first, second = _across(pole)
        points = list(AXES)
        for other, at in circles:
            rest = (at - height * _dot(pole, other)) / radius
            cut = [_dot(first, other), _dot(second, other)]
            if _dot(cut, cut) > SAME**2:
                points += _crossings(cut, rest)
        ordered = _in_order(points)
        for left, right in pairwise([*ordered, ordered[0]]):
            sure = sure and abs(left[0] * right[1] - left[1] * right[0]) > NARROW
            v = _between(left, right)
            for side in (ASIDE, -ASIDE):
                u = [
                    (height + side) * pole[c] + radius * (v[0] * first[c] + v[1] * second[c])
                    for c in range(3)
                ]
                if all(_dot(row, u) > 0 for row in rows) and _any_prefix(problem, z, reach, u):
                    return True
    return False if sure else None


def _any_prefix(problem, z, reach, u) -> bool:
    """May anything be accepted along u, whose length is one to about ASIDE²?"""
    size = _dot(u, u).sqrt()
    ends = [_dot(row, u) / size + r for row, r in zip(z, reach, strict=True)]
    return any(problem.allowed([end >= last for end in ends]) for last in ends)


def _across(pole) -> tuple[list[Decimal], list[Decimal]]:
    """Two unit vectors that are orthogonal to this one and to each other."""
    least = min(range(3), key=lambda c: abs(pole[c]))
    first = [int(c == least) - pole[least] * pole[c] for c in range(3)]
    size = _dot(first, first).sqrt()
    first = [c / size for c in first]
    second = [pole[i - 2] * first[i - 1] - pole[i - 1] * first[i - 2] for i in range(3)]
    return first, second


# ---- l2 in three dimensions: caps ----


def _bracket_on_a_sphere(instance, requirements, labels, problem: _Euclidean) -> Bracket | None:
    """Between a rule that was found and the greatest bound of caps that cover the sphere.

    In a cap of chord δ about c, u·a ≤ c·a + ‖a‖δ for every vector a. A set A is accepted only if
    end_i ≥ end_j for i in A and j not; and whoever of A is covered is so at a distance b − u·z_j ≤
    end_i − u·z_j for every i in A, and at most at ℓ_j.
    """
    allowed = [
        np.array(s)
        for s in product((True, False), repeat=len(problem.z))
        if problem.allowed(list(s))
    ]
    assert len(problem.z) <= MOST_CLASSES
    if not feasible(instance, requirements, labels):
        return None
    found = reached(instance, requirements, labels)
    surely = -math.inf if found is None else float(found.gain)
    if not any(allowed[0]) or not all(allowed[-1]) or not any(problem.p):
        surely = max(surely, 0.0)
    z, rows, p = (np.array(part, dtype=float) for part in problem.plain())
    rows = rows.reshape(-1, 3)
    reach, weight = (np.array([float(v) for v in part]) for part in (problem.reach, problem.weight))
    apart = z[:, None] - z
    far, long = np.linalg.norm(apart, axis=2), np.linalg.norm(rows, axis=1)

    def bounds(u: np.ndarray, chord: np.ndarray) -> np.ndarray:
        above = np.einsum("nd,ijd->nij", u, apart) + far * chord[:, None, None] + reach[:, None]
        most = np.full(len(u), -math.inf)
        for accepted in allowed:
            inside = above[:, accepted]
            rejects = (inside[:, :, ~accepted] - reach[~accepted]).min(axis=(1, 2), initial=0) >= 0
            moves = inside[:, :, accepted].min(axis=1, initial=math.inf)
            soft = np.clip(moves, 0, reach[accepted]) @ weight[accepted]
            most = np.where(rejects, np.maximum(most, soft), most)
        rate = u @ p + np.linalg.norm(p) * chord
        met = (u @ rows.T + long * chord[:, None] >= 0).all(axis=1) & (most > -math.inf)
        return np.where(met, np.maximum(rate, 0) * np.maximum(most, 0), -math.inf)

    # Squares on the faces of a cube: face, its two coordinates, half the side.
    squares = np.array([(face, 0.0, 0.0, 1.0) for face in range(6)])
    at_most = max(surely, 0.0)
    while len(squares):
        face, x, y, half = squares.T
        middle = _on_cube(face, x, y)
        corners = [_on_cube(face, x + i * half, y + j * half) for i in (1, -1) for j in (1, -1)]
        chord = np.max([np.linalg.norm(c - middle, axis=1) for c in corners], axis=0)
        bound = bounds(middle, chord * (1 + 1e-9) + 1e-12)
        open_ = bound > max(surely, 0.0) * (1 + GAP) + 1e-6 * problem.ceiling
        at_most = max(at_most, float(bound[~open_].max(initial=0)))
        if open_.sum() > MOST_CAPS // 4 or half[0] < 1e-6:
            at_most = max(at_most, float(bound[open_].max(initial=0)))
            break
        face, x, y, half = np.repeat(squares[open_], 4, axis=0).T
        right, up = np.tile([[1, 1, -1, -1], [1, -1, 1, -1]], open_.sum()) * half / 2
        squares = np.column_stack([face, x + right, y + up, half / 2])
    return Bracket(surely, at_most * (1 + 1e-9))


def _on_cube(face: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Unit vectors towards points of the faces of the cube, (n, 3).

    A square's points u = Σ λ_i v_i/‖Σ λ_i v_i‖ are no farther from its middle c than its corners
    v_i: u·c ≥ min v_i·c, since λ ≥ 0 and ‖Σ λ_i v_i‖ ≤ Σ λ_i.
    """
    u = np.empty((len(face), 3))
    rows, axis = np.arange(len(face)), face.astype(int) // 2
    u[rows, axis] = 1 - 2 * (face.astype(int) % 2)
    u[rows, (axis + 1) % 3], u[rows, (axis + 2) % 3] = x, y
    return np.asarray(u / np.linalg.norm(u, axis=1, keepdims=True))


# ---- l2 in more dimensions: search ----


def reached(
    instance, requirements: dict, labels: Sequence | None = None, starts: int = 6000, seed: int = 0
) -> Reached | None:
    """A rule that meets the requirements and gains much, for l2; None if none was found.

    Random directions of the cone; the best of them climb, each by turns less and less; the best of
    all are rounded and graded in rationals, with the threshold stepped down to a float.
    """
    problem = _Euclidean.of(instance, requirements, labels)
    size = len(problem.p)
    if size == 0:
        return None
    rng = np.random.default_rng(seed)
    inside = _inside(problem, rng)
    value = _in_floats(problem)
    rows = np.array([[float(c) for c in row] for row in problem.rows]).reshape(-1, size)
    lower = np.linalg.cholesky(np.array([[float(c) for c in row] for row in problem.gram]))

    def into_cone(y: np.ndarray) -> np.ndarray:
        """Moved towards the inside where outside, onto the rim or a little further."""
        reaching, inner = rows @ y.T, rows @ inside
        needed = (-reaching / inner[:, None]).max(axis=0, initial=0)
        return y + (needed + (needed > 0) * rng.choice([0, 1e-9], len(y)))[:, None] * inside

    def turned(u: np.ndarray) -> np.ndarray:
        """Weights y, of length one, of directions u = Lᵀy."""
        y = np.linalg.solve(lower.T, u.T).T
        y /= np.linalg.norm(y @ lower, axis=1, keepdims=True)
        y = into_cone(y)
        length = np.linalg.norm(y @ lower, axis=1, keepdims=True)
        y = np.where(length > 1e-6, y, inside)  # what the cone's tip is nearest to
        return np.asarray(y / np.linalg.norm(y @ lower, axis=1, keepdims=True))

    some = rng.standard_normal((starts, size))
    kept = turned(np.concatenate([some, some @ np.diag(rng.choice([1.0, 0.1], size))]))
    values = value(kept)
    best = np.argsort(-values)[:CLIMBERS]
    kept, values = kept[best], values[best]
    chain = np.arange(len(kept))
    for turn in np.geomspace(0.7, 1e-7, 70):
        near = np.repeat(kept @ lower, 12, axis=0)
        moved = turned(near + turn * rng.standard_normal(near.shape))
        gained = value(moved).reshape(len(kept), 12)
        first = gained.argmax(axis=1)
        better = gained[chain, first] > values
        kept = np.where(better[:, None], moved.reshape(len(kept), 12, size)[chain, first], kept)
        values = np.maximum(values, gained[chain, first])
    found = None
    for place in np.argsort(-values)[:6]:
        if values[place] == -math.inf:
            break
        rule = _graded(instance, requirements, labels, problem, kept[place], inside)
        if rule is not None and (found is None or rule.gain > found.gain):
            found = rule
    return found


def _inside(problem: _Euclidean, rng) -> np.ndarray:
    """A y of whole numbers with all rows positive: the cone has an interior."""
    rows = np.array([[float(c) for c in row] for row in problem.rows]).reshape(-1, len(problem.p))
    for _ in range(100):
        tried = rng.integers(-9, 10, (10_000, len(problem.p))).astype(float)
        room = (tried @ rows.T).min(axis=1, initial=math.inf)
        good = (room > 0) & tried.any(axis=1)
        if good.any():
            return np.asarray(tried[np.argmax(np.where(good, room, -math.inf))])
    raise AssertionError("the cone is too narrow to search")


def _in_floats(problem: _Euclidean) -> Callable[[np.ndarray], np.ndarray]:
    """The best gain along each y of length one, (n, k) to (n,): −∞ if no threshold is allowed."""
    z = np.array([[float(c) for c in row] for row in problem.z])
    z = z - z.mean(axis=0)
    reach, weight = (np.array([float(v) for v in part]) for part in (problem.reach, problem.weight))
    parts = np.array([[float(v) for v in part] for part in problem.parts]).reshape(-1, len(z))
    p = np.array([float(c) for c in problem.p])
    low, high = (float(limit) for limit in problem.limits)
    tiny = 1e-12  # of shares; what is left is graded in rationals

    def value(y: np.ndarray) -> np.ndarray:
        found = []
        for start in range(0, len(y), 500):
            u = y[start : start + 500]
            score, rate = u @ z.T, u @ p
            end = score + reach
            passing = end[:, None, :] >= end[:, :, None]  # the threshold is the second one's end
            share = passing @ weight
            fits = (share >= low - tiny) & (share <= high + tiny)
            if problem.within is not None:
                shares = passing @ parts.T
                fits &= np.ptp(shares, axis=2) <= float(problem.within) + tiny
            move = np.where(passing, np.maximum(end[:, :, None] - score[:, None, :], 0), 0)
            gain = rate[:, None] * (move @ weight)
            best = np.where(fits, gain, -math.inf).max(axis=1)
            nobody = problem.allowed([False] * len(z))
            found.append(np.maximum(best, 0) if nobody else best)
        return np.concatenate(found)

    return value


def _graded(instance, requirements, labels, problem, y, inside) -> Reached | None:
    """The best rule near y in rationals: as it is, or a little further inside the cone."""
    scale = 2.0 ** (40 - math.frexp(float(np.abs(y).max()))[1])
    found = None
    for nudge in (0.0, 1e-10, 1e-7):
        # Few digits, so that sums of weights are exact.
        rounded = [Fraction(float(np.rint(c * scale))) for c in y + nudge * inside]
        rule = tuple(float(dot(row, rounded)) for row in problem.basis)
        if any(dot(row, rounded) < 0 for row in problem.rows) or not any(rule):
            continue
        for threshold in _floats_below_ends(instance, rule):
            if truth.meets(instance, requirements, labels, rule, threshold):
                gain = referee.truth(instance, truth.plain_weights(instance, rule), threshold).gain
                if found is None or gain > found.gain:
                    found = Reached(gain, rule, threshold)
    return found


def _floats_below_ends(instance, rule) -> Iterator[float]:
    """For each agent a float just below its end, and one above all of them."""
    sample = referee.Sample.of(instance)
    w = truth.plain_weights(instance, rule)
    square = _decimal(referee.response(sample, w)[0])
    ends = [
        _decimal(dot(w, x)) + _decimal(r) * square.sqrt()
        for x, r in zip(sample.x, sample.reach, strict=True)
    ]
    for end in dict.fromkeys(ends):
        near = float(end)
        yield math.nextafter(near, -math.inf) if Decimal(near) > end else near
    yield math.nextafter(float(max(ends)), math.inf)
