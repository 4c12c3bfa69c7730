"""Norms, prices, matrices and reaches: the truth against the referee and a convex solver."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mipmech import Instance, Mechanism, best_threshold, certify, grade, recount
from mipmech.errors import InputError
from mipmech.model import Side, densest_threshold, from_reduced, reduce, to_reduced
from mipmech.model.geometry import seen_square
from tests import referee
from tests.samples import AT_ENDS, BETWEEN, NORMS, instances, mechanisms


@st.composite
def graded(draw, places=AT_ENDS, norms=NORMS, **options):
    instance = draw(instances(norms=norms, **options))
    return instance, draw(mechanisms(instance, places))


@st.composite
def with_direction(draw, norms=NORMS, **options):
    """An instance, its geometry, and a direction u of length one; often with equal |u_j|, or 0."""
    instance = draw(instances(norms=norms, **options))
    geometry = reduce(instance)
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    u = rng.standard_normal(geometry.rank)
    kind = draw(st.sampled_from(["any", "any", "equal", "one"]))
    if kind == "equal":
        u = np.sign(u)
    elif kind == "one":
        u = np.where(np.arange(len(u)) == 0, u, 0.0)
    return instance, geometry, u / geometry.length(u)


def rebuilt(instance, **changes):
    costs = instance.costs
    paid = {} if {"cost", "reach"} & set(changes) else {costs.given: costs.values}
    parts = {
        "agents": instance.agents,
        "quality": instance.quality,
        "quality_offset": instance.quality_offset,
        "weights": instance.weights,
        "view": instance.view.matrix,
        "norm": costs.norm,
        "effort": costs.effort,
    }
    return Instance.from_arrays(**{**parts, **paid, **changes})


def as_decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def root(value: Fraction) -> Decimal:
    return as_decimal(value).sqrt()


# ---- the truth ----


@given(graded())
def test_recount_equals_the_referee(case):
    instance, mechanism = case
    found = recount(instance, mechanism)
    exact = referee.exact_weights(instance, mechanism)
    truth = referee.truth(instance, exact, mechanism.threshold)
    assert (found.sides == Side.INSIDE).tolist() == truth.inside
    assert found.density == truth.density
    assert found.gain == truth.gain
    assert found.value == truth.value
    assert found.accepted_quality == truth.accepted_quality


@given(graded())
def test_soft_density_and_eta_are_those_of_the_referee(case):
    """Gain is η times soft density; η is the rate per unit of cost, w_f·step N(w)."""
    instance, mechanism = case
    found = recount(instance, mechanism)
    sample = referee.Sample.of(instance)
    w = referee.exact_weights(instance, mechanism)
    square, step = referee.response(sample, w)
    threshold = Fraction(mechanism.threshold)
    distance = [threshold - referee.dot(w, x) for x in sample.x]
    inside = [d >= 0 and d**2 <= r**2 * square for d, r in zip(distance, sample.reach, strict=True)]
    terms = zip(sample.weight, distance, inside, strict=True)
    total = sum((o * d for o, d, i in terms if i), Fraction(0))
    soft = as_decimal(total) / root(square)
    assert found.soft_density == pytest.approx(float(soft), rel=1e-15, abs=0)
    assert abs(as_decimal(found.soft_density_below) - soft) <= soft * Decimal(10) ** -55
    assert as_decimal(found.soft_density_below) <= soft * (1 + Decimal(10) ** -75)
    eta = as_decimal(referee.dot(step, sample.w_f)) * root(square)
    assert found.eta == pytest.approx(float(eta), rel=1e-15, abs=0)
    assert found.eta_within(found.eta, 1e-15 * abs(found.eta))
    assert not found.eta_within(found.eta + 1e-3 * (1 + abs(found.eta)), 1e-15)


@given(graded(BETWEEN))
def test_floats_agree_with_rationals_away_from_ties(case):
    instance, mechanism = case
    weights, threshold = mechanism.scaled()
    norm, step = referee.response_in_floats(instance, weights)
    distance = (float(threshold) - instance.agents @ weights) / norm
    size = 1 + (np.abs(instance.agents) @ np.abs(weights)).max() / norm
    clear = np.minimum(np.abs(distance), np.abs(distance - instance.reach)) > 1e-9 * size
    assume(clear.all())
    exact, floats = recount(instance, mechanism), referee.in_floats(instance, mechanism)
    assert floats.moved.tolist() == (exact.sides == Side.INSIDE).tolist()
    assert floats.accepted.tolist() == exact.accepted.tolist()
    worth = 1 + (np.abs(instance.agents) @ np.abs(instance.quality)).max()
    worth += size * norm * (np.abs(step) @ np.abs(instance.quality))
    for name in ("density", "gain", "value", "baseline", "accepted_share"):
        found = getattr(floats, name)
        assert float(getattr(exact, name)) == pytest.approx(found, abs=1e-9 * worth)
    assert exact.soft_density == pytest.approx(floats.soft_density, abs=1e-9 * size)
    if exact.accepted_quality is None:
        assert floats.accepted_quality is None
    else:
        found = floats.accepted_quality
        assert float(exact.accepted_quality) == pytest.approx(found, abs=1e-8 * worth)


@given(graded())
def test_moves_lead_to_the_threshold(case):
    """`Line.moved` moves features as the referee does: scores rise by the distances asked for."""
    instance, mechanism = case
    line = recount(instance, mechanism).line
    w = [weight * line.factor for weight in referee.exact_weights(instance, mechanism)]
    square, step = referee.response(referee.Sample.of(instance), w)
    assert line.square == square
    assert [line.step.get(j, 0) for j in range(instance.width)] == step
    assert sum(a * line.step.get(j, 0) for j, a in enumerate(w)) == 1
    moved = line.moved(np.zeros((2, instance.width)), np.array([1.0, 0.0]))
    assert moved[0].tolist() == [float(v) for v in step]
    assert not moved[1].any()


@given(graded())
def test_best_threshold_equals_brute_force(case):
    instance, mechanism = case
    found = best_threshold(instance, mechanism)
    best = referee.best_soft_density(instance, referee.exact_weights(instance, mechanism))
    achieved = as_decimal(found.moved / found.line.factor)
    assert achieved <= best + Decimal(10) ** -55
    weights = np.abs(np.array(mechanism.weights))
    norm, _ = referee.response_in_floats(instance, np.array(mechanism.weights))
    scale = float((np.abs(instance.agents) @ weights).max()) + norm * instance.reach.max()
    assert float(best - achieved) <= 1e-14 * scale
    again = recount(instance, found.mechanism)
    assert (again.gain, again.density) == (found.gain, found.density)


@given(graded())
def test_densest_threshold_equals_brute_force(case):
    instance, mechanism = case
    found = densest_threshold(instance, mechanism)
    exact = referee.exact_weights(instance, mechanism)
    best = referee.best_density(instance, exact)
    assert found.recount.density <= best <= found.upper
    assert recount(instance, found.recount.mechanism).density == found.recount.density
    if referee.best_density(instance, exact, room=Fraction(1, 10**5)) == best:
        assert found.recount.density == best


@given(graded())
def test_scaling_the_rule_changes_nothing(case):
    instance, mechanism = case
    v = mechanism.view_weights
    larger = Mechanism(
        tuple(1024 * w for w in mechanism.weights),
        1024 * mechanism.threshold,
        None if v is None else tuple(1024 * w for w in v),
    )
    one, other = recount(instance, mechanism), recount(instance, larger)
    assert (one.gain, one.density, one.eta) == (other.gain, other.density, other.eta)


@given(graded(), st.integers(-20, 20))
def test_dearer_features_and_cheaper_moves_cancel(case, power):
    """Prices t times as high, and costs per unit of length 1/t: every move costs the same."""
    instance, mechanism = case
    costs, t = instance.costs, 2.0**power
    effort = np.ones(instance.width) if costs.effort is None else costs.effort
    times = t if effort.ndim == 1 else t * t
    values = costs.values / t if costs.given == "cost" else costs.values * t
    scaled = rebuilt(instance, effort=effort * times, **{costs.given: values})
    one, other = recount(instance, mechanism), recount(scaled, mechanism)
    assert one.sides.tolist() == other.sides.tolist()
    assert (one.density, one.gain, one.value) == (other.density, other.gain, other.value)
    assert other.soft_density == one.soft_density * t
    assert other.eta == one.eta / t


@given(graded(), st.lists(st.integers(-8, 8), min_size=9, max_size=9))
def test_a_reach_is_the_inverse_of_a_cost(case, powers):
    """Powers of two, so that both are floats."""
    instance, mechanism = case
    cost = 2.0 ** np.array(powers[: instance.size])
    by_cost, by_reach = rebuilt(instance, cost=cost), rebuilt(instance, reach=1 / cost)
    one, other = recount(by_cost, mechanism), recount(by_reach, mechanism)
    assert one.sides.tolist() == other.sides.tolist()
    assert (one.gain, one.soft_density) == (other.gain, other.soft_density)
    best, again = best_threshold(by_cost, mechanism), best_threshold(by_reach, mechanism)
    assert (best.mechanism, best.gain) == (again.mechanism, again.gain)
    assert reduce(by_cost).reach.tolist() == reduce(by_reach).reach.tolist()
    assert by_cost.digest != by_reach.digest


@given(graded())
def test_order_of_features_does_not_matter(case):
    instance, mechanism = case
    assume(instance.view.columns is not None)
    back = np.arange(instance.width)[::-1]
    effort = instance.costs.effort
    if effort is not None:
        effort = effort[back] if effort.ndim == 1 else effort[np.ix_(back, back)]
    turned = rebuilt(
        instance,
        agents=instance.agents[:, back],
        quality=instance.quality[back],
        view=instance.view.matrix[:, back],
        effort=effort,
    )
    rule = Mechanism(mechanism.weights[::-1], mechanism.threshold)
    one, other = recount(instance, mechanism), recount(turned, rule)
    assert (one.density, one.gain, one.eta) == (other.density, other.gain, other.eta)


@given(graded(kinds=("visible",)), st.lists(st.integers(-9, 9), min_size=4, max_size=4))
def test_units_of_features_do_not_matter(case, powers):
    """A feature in other units: its price, its quality and its weight change with it."""
    instance, mechanism = case
    units = 2.0 ** np.array(powers[: instance.width])
    effort = np.ones(instance.width) if instance.costs.effort is None else instance.costs.effort
    effort = effort / units if effort.ndim == 1 else effort / units / units[:, None]
    scaled = rebuilt(
        instance,
        agents=instance.agents * units,
        quality=instance.quality / units,
        effort=effort,
    )
    rule = Mechanism(np.array(mechanism.weights) / units, mechanism.threshold)
    one, other = recount(instance, mechanism), recount(scaled, rule)
    assert (one.density, one.gain, one.eta) == (other.density, other.gain, other.eta)


@given(graded())
def test_a_diagonal_matrix_is_squared_prices(case):
    instance, mechanism = case
    assume(instance.costs.norm == "l2")
    prices = 2.0 ** np.arange(-1, instance.width - 1)
    one = recount(rebuilt(instance, effort=prices), mechanism)
    other = recount(rebuilt(instance, effort=np.diag(prices**2)), mechanism)
    assert (one.density, one.gain, one.eta) == (other.density, other.gain, other.eta)


@given(graded(kinds=("visible",)))
def test_one_feature_is_the_same_in_every_norm(case):
    instance, mechanism = case
    assume(sum(w != 0 for w in mechanism.weights) == 1 and instance.costs.matrix is None)
    found = [recount(rebuilt(instance, norm=norm), mechanism) for norm in NORMS]
    assert len({(f.density, f.gain, f.value) for f in found}) == 1


@given(graded(), st.integers(1, 3))
def test_parts_keep_their_costs(case, step):
    instance, mechanism = case
    rows = np.arange(0, instance.size, step)
    assume(instance.weights[rows].any())
    part = instance.part(rows, "some")
    assert (
        recount(part, mechanism).sides.tolist() == recount(instance, mechanism).sides[rows].tolist()
    )


# ---- by hand ----


def test_moves_by_hand():
    """Scores x + 2y ≥ 4 from (0, 0), with prices 1 and 4 and reach 10; quality 3x + 8y."""

    def after(norm, effort):
        sample = Instance.from_arrays(
            [[0.0, 0.0]], [3.0, 8.0], norm=norm, effort=effort, visible=[0, 1], reach=10.0
        )
        found = recount(sample, Mechanism((1.0, 2.0), 4.0))
        return found.line.moved(np.zeros((1, 2)), np.array([4.0 * found.line.factor]))[
            0
        ], found.gain

    for norm, effort, move, gain in [
        ("l2", None, (0.8, 1.6), Fraction(76, 5)),
        ("l2", [1, 4], (3.2, 0.4), Fraction(64, 5)),  # E⁻²w = (1, 1/8), N² = 5/4
        # M⁻¹ = [[1, −1], [−1, 2]], M⁻¹w = (−1, 3), N² = 5: the first feature is let go.
        ("l2", [[2, 1], [1, 1]], (-0.8, 2.4), Fraction(84, 5)),
        ("l1", None, (0.0, 2.0), 16),
        ("l1", [1, 4], (4.0, 0.0), 12),
        ("l1", [1, 2], (0.0, 2.0), 16),  # equal per unit of cost: the better for quality
        ("linf", None, (4 / 3, 4 / 3), Fraction(44, 3)),
        ("linf", [1, 4], (8 / 3, 2 / 3), Fraction(40, 3)),
    ]:
        found = after(norm, effort)
        assert found[0].tolist() == pytest.approx(move)
        assert found[1] == gain


def test_effort_spills_over_to_hidden_features():
    """Quality is hidden; with entries off the diagonal it moves along with what is seen."""
    arguments = {"agents": [[0.0, 0.0]], "quality": [0.0, 1.0], "visible": [0], "cost": 1.0}
    rule = Mechanism((1.0, 0.0), 0.5)
    plain = Instance.from_arrays(**arguments)
    assert recount(plain, rule).gain == 0
    assert reduce(plain).p_norm == 0
    linked = Instance.from_arrays(**arguments, effort=[[2.0, -1.0], [-1.0, 2.0]])
    assert recount(linked, rule).gain == Fraction(1, 4)
    assert reduce(linked).p_norm > 0


def test_features_of_weight_0_stay_in_linf():
    sample = Instance.from_arrays([[0.0, 0.0]], [1.0, 9.0], norm="linf", visible=[0, 1], cost=1.0)
    assert recount(sample, Mechanism((1.0, 0.0), 1.0)).gain == 1
    assert recount(sample, Mechanism((1.0, 1.0), 2.0)).gain == 10
    assert recount(sample, Mechanism((1.0, -1.0), 2.0)).gain == -8


def test_ties_in_l1_that_floats_hide():
    """0.1/0.3 and 1/3 differ by less than a float: only the greater one is worked on."""
    sample = Instance.from_arrays(
        [[0.0, 0.0]], [1.0, 5.0], norm="l1", effort=[0.3, 3.0], visible=[0, 1], reach=1.0
    )
    first = Fraction(0.1) / Fraction(0.3) > Fraction(1, 3)
    assert Fraction(0.1) / Fraction(0.3) != Fraction(1, 3)
    step = recount(sample, Mechanism((0.1, 1.0), 0.25)).line.step
    assert list(step) == [0 if first else 1]


# ---- against a convex solver ----


def priced(cvxpy, move, norm, effort):
    if norm == "l1":
        return effort @ cvxpy.abs(move)
    if norm == "linf":
        return cvxpy.max(cvxpy.multiply(effort, cvxpy.abs(move)))
    matrix = np.diag(effort**2) if effort.ndim == 1 else effort
    return cvxpy.norm(np.linalg.cholesky(matrix).T @ move)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("norm", "kind"),
    [(norm, kind) for norm in NORMS for kind in ("none", "prices")] + [("l2", "matrix")],
)
def test_best_responses_are_those_of_a_convex_solver(norm, kind):
    """The cheapest move that passes: its cost, the move if there is only one, its quality in l1."""
    import cvxpy

    rng = np.random.default_rng([ord(letter) for letter in norm + kind])
    for case in range(12):
        n = 2 + case % 4
        effort = rng.choice([0.5, 1.0, 2.0, 4.0], n) if kind == "prices" else np.ones(n)
        if kind == "matrix":
            half = rng.integers(-2, 3, (n, n)).astype(float)
            effort = half @ half.T + np.diag(rng.choice([0.5, 1.0, 2.0], n))
        w = rng.choice([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 3.0], n) * rng.choice([0.0, 1.0, 1.0], n)
        w[0] = w[0] or 1.0
        if case % 2:
            w = w + 0.1 * rng.random(n) * (w != 0)
        quality, distance = rng.standard_normal(n), float(rng.uniform(0.5, 3))
        sample = Instance.from_arrays(
            np.zeros((1, n)), quality, norm=norm, effort=effort, visible=range(n), reach=1e3
        )
        response = sample.costs.respond(
            {j: Fraction(float(v)) for j, v in enumerate(w) if v}, sample.exact_quality
        )
        step = np.array([float(response.step.get(j, 0)) for j in range(n)])
        move = cvxpy.Variable(n)
        cost = priced(cvxpy, move, norm, effort)
        cheapest = cvxpy.Problem(cvxpy.Minimize(cost), [w @ move >= distance])
        found = cheapest.solve(solver=cvxpy.CLARABEL)
        assert distance / math.sqrt(response.square) == pytest.approx(found, rel=1e-6)
        chosen = move.value
        move.value = step * distance
        assert float(cost.value) == pytest.approx(found, rel=1e-6)
        assert w @ step == pytest.approx(1)
        if norm == "l2" or (norm == "linf" and w.all()):
            assert chosen == pytest.approx(step * distance, abs=2e-4)
        if norm == "l1":
            # Of the cheapest moves, the best for quality; there may be several best ones.
            within = [w @ move >= distance, cost <= found * (1 + 1e-8)]
            best = cvxpy.Problem(cvxpy.Maximize(quality @ move), within)
            assert best.solve(solver=cvxpy.CLARABEL) == pytest.approx(
                distance * (quality @ step), rel=1e-4, abs=1e-5
            )


# ---- geometry ----


@given(with_direction(), st.floats(-2, 2))
def test_there_and_back(case, b):
    instance, geometry, u = case
    mechanism = from_reduced(geometry, u, b)
    square, _ = referee.response(
        referee.Sample.of(instance), referee.exact_weights(instance, mechanism)
    )
    assert math.sqrt(square) == pytest.approx(geometry.length(u), abs=1e-9)
    again, level = to_reduced(geometry, mechanism)
    assert again == pytest.approx(u, abs=1e-9)
    # The threshold is one float in the user's coordinates: offsets cost it digits, and that is all.
    lost = np.abs(instance.agents) @ np.abs(mechanism.weights) / geometry.unit
    assert level == pytest.approx(b, abs=1e-9 + 1e-15 * lost.max())


@given(with_direction(), st.floats(-2, 2))
def test_reduced_truth_is_the_truth(case, b):
    """Margins, soft density and the rate in reduced coordinates, as `geometry` describes them."""
    instance, geometry, u = case
    mechanism = from_reduced(geometry, u, b)
    _, level = to_reduced(geometry, mechanism)
    distance = level - geometry.z @ u
    scores = (np.abs(instance.agents) @ np.abs(mechanism.weights)).max() / geometry.unit
    lost = 1e-9 * (1 + np.abs(geometry.z).max() + scores)
    assume((np.minimum(np.abs(distance), np.abs(distance - geometry.reach)) > lost).all())
    found = recount(instance, mechanism)
    inside = (distance >= 0) & (distance <= geometry.reach)
    soft_density = geometry.weight[inside] @ distance[inside] * geometry.unit
    assert float(found.density) == pytest.approx(geometry.weight[inside].sum())
    scale = geometry.unit * (1 + geometry.reach.max()) * lost
    assert found.soft_density == pytest.approx(soft_density, abs=scale)
    sizes, p = np.abs(u), geometry.p
    if geometry.norm == "l2":
        rate = u @ p
    elif geometry.norm == "linf":
        rate = np.sign(u) @ p
    else:
        rate = (np.sign(u) * p)[sizes >= sizes.max() * (1 - 1e-12)].max()
        weights = [Fraction(w) for w in mechanism.weights]
        prices = referee.exact(instance.costs.prices(instance.width))
        exact = sorted(abs(w) / e for w, e in zip(weights, prices, strict=True))
        near = [v for v in exact if v > exact[-1] * (1 - Fraction(1, 10**9))]
        assume(len(set(near)) == 1)  # prices may round a tie away, on one side only
    size = 1e-9 * np.abs(p).sum()
    assert found.eta == pytest.approx(rate, abs=size)
    assert float(found.gain) == pytest.approx(
        rate * soft_density, abs=size * geometry.unit + scale * np.abs(p).sum()
    )


@given(instances(norms=NORMS))
def test_the_steepest_rate(instance):
    """In rationals; no rule has a greater η."""
    geometry = reduce(instance)
    sample = referee.Sample.of(instance)
    if instance.costs.norm == "l2":
        effort = np.ones(instance.width) if instance.costs.effort is None else instance.costs.effort
        matrix = sample.matrix or [referee.exact(row) for row in np.diag(effort)]
        if sample.matrix is None:
            matrix = [[v * v for v in row] for row in matrix]
        rows = [referee.exact(row) for row in instance.view.matrix[list(instance.view.rows)]]
        if instance.view.columns is not None:
            rows = [referee.exact(np.eye(instance.width)[j]) for j in instance.view.columns]
        lifted = [referee.solve(matrix, row) for row in rows]
        seen = [referee.dot(row, sample.w_f) for row in lifted]
        gram = [[referee.dot(a, b) for b in lifted] for a in rows]
        expected = referee.dot(seen, referee.solve(gram, seen))
    else:
        rates = [abs(sample.w_f[j]) / sample.prices[j] for j in instance.view.columns]
        expected = (max(rates) if instance.costs.norm == "l1" else sum(rates)) ** 2
    assert seen_square(instance) == expected
    low, high = geometry.p_norm_bounds
    assert Fraction(low) ** 2 <= expected <= Fraction(high) ** 2
    assert low <= geometry.p_norm <= high


@given(graded())
def test_no_rule_is_steeper(case):
    instance, mechanism = case
    found = recount(instance, mechanism)
    assert found.line.rise**2 * found.line.square <= seen_square(instance)


@given(with_direction(kinds=("visible",)))
def test_the_rounding_of_columns(case):
    instance, geometry, u = case
    assume(instance.costs.matrix is None)
    check_rounding(instance, geometry, u)


@pytest.mark.parametrize("norm", NORMS)
def test_the_rounding_of_many_columns(norm):
    """In l1 the roundings of all coordinates add up, to more than their Euclidean length."""
    rng = np.random.default_rng(3)
    for case in range(100):
        agents = rng.standard_normal((3, 6)) * 10.0 ** rng.uniform(-3, 3) + rng.choice([0, 1, 100])
        effort = rng.uniform(0.5, 4, 6) if case % 2 else None
        quality = rng.standard_normal(6)
        instance = Instance.from_arrays(
            agents, quality, norm=norm, effort=effort, visible=range(6), cost=1.0
        )
        geometry = reduce(instance)
        u = rng.standard_normal(6)
        check_rounding(instance, geometry, u / geometry.length(u))


def check_rounding(instance, geometry, u):
    """z, p and w against e(x − centre)/unit, w_f/e and e u in rationals; each in its norm."""
    sample, columns = referee.Sample.of(instance), list(instance.view.columns)
    prices = [sample.prices[j] for j in columns]
    centre, unit = referee.exact(geometry.centre), Fraction(geometry.unit)
    for x, z, bound in zip(sample.x, geometry.z, geometry.rounding.z, strict=True):
        off = [
            Fraction(float(found)) - e * (x[j] - centre[j]) / unit
            for j, e, found in zip(columns, prices, z, strict=True)
        ]
        # u·off is at most this for a direction of length one.
        if geometry.norm == "l1":
            assert sum(map(abs, off)) <= Fraction(float(bound))
        elif geometry.norm == "linf":
            assert max(map(abs, off)) <= Fraction(float(bound))
        else:
            assert referee.dot(off, off) <= Fraction(float(bound)) ** 2
    off = [
        Fraction(float(found)) - sample.w_f[j] / e
        for j, e, found in zip(columns, prices, geometry.p, strict=True)
    ]
    # Nor is any rate: one of p's entries in l1, the sum of all with any signs in linf.
    if geometry.norm == "linf":
        assert sum(map(abs, off)) <= Fraction(geometry.rounding.p)
    else:
        assert referee.dot(off, off) <= Fraction(geometry.rounding.p) ** 2
    weights = from_reduced(geometry, u, 0.0).weights
    off = [Fraction(0)] * instance.width
    for j, e, along in zip(columns, prices, u, strict=True):
        off[j] = Fraction(weights[j]) - e * Fraction(float(along))
    if any(off):
        square, _ = referee.response(sample, off)
        assert square <= (Fraction(geometry.rounding.back) * Fraction(1.0000001)) ** 2


@given(with_direction(norms=("l2",)))
def test_the_rounding_of_bases(case):
    """For an exactly orthonormal Q* near Q, u·z_i, u·p and N(w) are what the bounds allow."""
    instance, geometry, u = case
    sample, rounding = referee.Sample.of(instance), geometry.rounding
    n, width = instance.width, Decimal(1) + Decimal(10) ** -60

    def lift(vector):
        if sample.matrix is not None:
            return referee.solve(sample.matrix, vector)
        return [v / e**2 for v, e in zip(vector, sample.prices, strict=True)]

    def cost(move):
        if sample.matrix is None:
            return root(
                sum((v * v * e * e for v, e in zip(move, sample.prices, strict=True)), Fraction(0))
            )
        return root(referee.dot(move, [referee.dot(row, move) for row in sample.matrix]))

    # Rows of Q have dual products near those of Q*, which are 0 and 1.
    basis = [referee.exact(row) for row in geometry.basis]
    near = 2 * Fraction(rounding.basis) + Fraction(rounding.basis) ** 2
    if instance.view.columns is not None and sample.matrix is None:
        near = Fraction(0)
    for i, row in enumerate(basis):
        for j, other in enumerate(basis):
            assert abs(referee.dot(row, lift(other)) - (i == j)) <= near
    exact_u = referee.exact(u)
    length = root(referee.dot(exact_u, exact_u))
    w = referee.exact_weights(instance, from_reduced(geometry, u, 0.0))
    back = Decimal(rounding.back) * length
    # N(w) is within `back` of the length of u = Q*'s coordinates of Q*ᵀu.
    norm = root(referee.dot(w, lift(w)))
    assert abs(norm - length) <= back * width + Decimal(10) ** -60
    # The rate.
    rate = referee.dot(exact_u, referee.exact(geometry.p))
    steepest = root(seen_square(instance))
    off = abs(as_decimal(referee.dot(w, lift(sample.w_f)) - rate))
    assert off <= (Decimal(rounding.p) * length + back * steepest) * width
    # The scores.
    used = (instance.view.matrix != 0).any(axis=0)
    centre = referee.exact(geometry.centre)
    for x, z, bound in zip(sample.x, geometry.z, rounding.z, strict=True):
        offset = [x[j] - centre[j] if used[j] else Fraction(0) for j in range(n)]
        score = referee.dot(exact_u, referee.exact(z)) * Fraction(geometry.unit)
        allowed = Decimal(float(bound)) * Decimal(geometry.unit) * length + back * cost(offset)
        assert abs(as_decimal(referee.dot(w, offset) - score)) <= allowed * width


@given(with_direction(norms=("l2",)))
def test_bases_and_their_inverses(case):
    _, geometry, _ = case
    assert geometry.inverse @ geometry.basis.T == pytest.approx(np.eye(geometry.rank), abs=1e-9)
    for array in (geometry.z, geometry.p, geometry.basis, geometry.inverse):
        assert not array.flags.writeable


# ---- files and digests ----

AGENTS, QUALITY = [[0.0, 1.0], [2.0, -1.0], [0.5, 0.5]], [1.0, 2.0]


def simple(**arguments):
    costs = {} if "reach" in arguments else {"cost": 1.0}
    return Instance.from_arrays(AGENTS, QUALITY, **{**costs, "visible": [0, 1], **arguments})


@given(graded())
def test_files_keep_costs(case):
    from mipmech.model.instance_file import parse

    instance, mechanism = case
    content = json.loads(json.dumps(instance.to_dict()))
    again = parse(content, None)
    assert again.digest == instance.digest
    assert recount(again, mechanism).gain == recount(instance, mechanism).gain
    assert Mechanism.from_dict(mechanism.to_dict(), again) == mechanism


def test_what_a_digest_tells_apart():
    different = [
        simple(),
        simple(reach=1.0),
        simple(cost=2.0),
        simple(norm="l1"),
        simple(norm="linf"),
        simple(norm="l1", reach=1.0),
        simple(effort=[1.0, 2.0]),
        simple(effort=[2.0, 1.0]),
        simple(norm="l1", effort=[1.0, 2.0]),
        simple(norm="linf", effort=[1.0, 2.0]),
        simple(effort=[[1.0, 0.0], [0.0, 4.0]]),
        simple(effort=[[1.0, 0.5], [0.5, 4.0]]),
        simple(effort=[[1.0, 0.25], [0.25, 4.0]]),
        simple(effort=[[1.0, math.nextafter(0.25, 1)], [math.nextafter(0.25, 1), 4.0]]),
    ]
    assert len({instance.digest for instance in different}) == len(different)


def test_what_a_digest_does_not_tell_apart():
    for norm in NORMS:
        plain = simple(norm=norm)
        assert simple(norm=norm, effort=[1.0, 1.0]).digest == plain.digest
        named = simple(norm=norm, features=["a", "b"], visible=["a", "b"], effort={"a": 1})
        assert named.digest == plain.digest
    assert simple(effort=np.eye(2)).digest == simple(norm="l2").digest == simple().digest
    assert simple(cost=[2.0] * 3).digest == simple(cost=2.0).digest
    matrix = simple(effort=[[2.0, 0.0], [-0.0, 4.0]])
    assert matrix.digest == simple(effort=[[2.0, 0.0], [0.0, 4.0]]).digest


@pytest.mark.parametrize(
    ("arguments", "field", "said"),
    [
        ({"cost": None}, "cost", "is missing"),
        ({"reach": 1.0, "cost": 1.0}, "reach", "beside 'cost'"),
        ({"reach": 0.0}, "reach", "must be above 0"),
        ({"reach": [1.0, -1.0, 1.0]}, "reach", "must be above 0"),
        ({"reach": [1.0, 1.0]}, "reach", "one for all agents, or one per agent"),
        ({"cost": 1e-200}, "cost", "at least"),
        ({"cost": [1.0, math.nan, 1.0]}, "cost", ""),
        ({"reach": math.inf}, "reach", ""),
        ({"reach": "far"}, "reach", ""),
        ({"norm": "L1"}, "norm", 'give "l2", "l1" or "linf"'),
        ({"norm": "l3"}, "norm", 'give "l2", "l1" or "linf"'),
        ({"norm": None}, "norm", "give"),
        ({"norm": 1}, "norm", "give"),
        ({"norm": ["l1"]}, "norm", "give"),
        ({"norm": "l1", "visible": None, "view": [[1.0, 2.0]]}, "norm", "give 'visible'"),
        ({"norm": "linf", "visible": None, "view": [[1.0, 2.0]]}, "norm", "or the norm l2"),
        ({"effort": 2.0}, "effort", "one per feature"),
        ({"effort": "dear"}, "effort", "one per feature"),
        ({"effort": True}, "effort", "one per feature"),
        ({"effort": [1.0]}, "effort", "one price per feature"),
        ({"effort": [1.0, 2.0, 3.0]}, "effort", "one price per feature"),
        ({"effort": [1.0, 0.0]}, "effort", "'x1'; it must be above 0"),
        ({"effort": [-1.0, 1.0]}, "effort", "'x0'; it must be above 0"),
        ({"effort": [1.0, 1e40]}, "effort", "other units"),
        ({"effort": [1.0, math.nan]}, "effort", ""),
        ({"effort": [1.0, math.inf]}, "effort", ""),
        ({"effort": {"x9": 2.0}, "features": ["a", "b"]}, "effort", "x9"),
        ({"effort": {"a": 0.0}, "features": ["a", "b"]}, "effort", "'a'; it must be above 0"),
        ({"effort": {"a": 2.0}}, "effort", ""),
        ({"effort": np.eye(2) * 2, "norm": "l1"}, "effort", "norm l2 alone"),
        ({"effort": np.eye(3)}, "effort", "expected 2 by 2"),
        ({"effort": np.ones((2, 3))}, "effort", "expected 2 by 2"),
        ({"effort": [[1.0, 0.5], [0.25, 1.0]]}, "effort", "not symmetric"),
        ({"effort": [[1.0, 2.0], [2.0, 1.0]]}, "effort", "not positive definite"),
        ({"effort": [[1.0, 1.0], [1.0, 1.0]]}, "effort", "not positive definite"),
        ({"effort": [[0.0, 0.0], [0.0, 1.0]]}, "effort", "must be above 0"),
        ({"effort": [[-1.0, 0.0], [0.0, 1.0]]}, "effort", "must be above 0"),
        ({"effort": [[1.0, 1.0], [1.0, 1 + 1e-12]]}, "effort", "nearly singular"),
        ({"effort": np.zeros((2, 2, 2))}, "effort", ""),
    ],
)
def test_what_is_refused(arguments, field, said):
    with pytest.raises(InputError) as caught:
        simple(**arguments)
    assert caught.value.field == field
    assert said in str(caught.value)


@pytest.mark.parametrize("price", [1e-12, 1e-20, 1e-30])
def test_views_whose_rows_prices_hide_are_refused(price):
    """Agents move in the first feature only, whatever the rule: one row is as good as the other."""
    agents, quality, rows = [[1.0, 2.0, 3.0]], [1.0, 2.0, 3.0], [[1.0, 2.0, 3.0], [1.0, 1.0, 1.0]]
    prices = np.array([price, 1.0, 1.0])
    for effort in (prices, np.diag(prices**2)):
        with pytest.raises(InputError, match="differ less") as caught:
            Instance.from_arrays(agents, quality, effort=effort, view=rows, cost=1.0)
        assert caught.value.field == "effort"
    fine = Instance.from_arrays(agents, quality, effort=[1e-6, 1, 1], view=rows, cost=1.0)
    assert reduce(fine).rounding.back < 1e-8
    seen = Instance.from_arrays(agents, quality, effort=prices, visible=[0, 1], cost=1.0)
    assert reduce(seen).rounding.back < 1e-15
    # Rows that prices hide in opposite ways.
    apart = [[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]]
    both = Instance.from_arrays(agents, quality, effort=prices, view=apart, cost=1.0)
    again, _ = to_reduced(reduce(both), from_reduced(reduce(both), [0.6, 0.8], 0.0))
    assert again == pytest.approx([0.6, 0.8], abs=1e-9)


def test_a_matrix_of_features_in_very_unequal_units():
    """The factor and its inverse are found for features of like price."""
    small, large = 1e-14, 1e11
    matrix = [[small**2, 0.1 * small * large], [0.1 * small * large, large**2]]
    sample = Instance.from_arrays(
        [[0.0, 0.0], [1 / small, 1 / large]], [small, large], view=[[small, -large]], cost=1.0,
        effort=np.array(matrix),
    )  # fmt: skip
    assert reduce(sample).rounding.basis < 1e-14


@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
@pytest.mark.parametrize("price", [1e-30, 1e-3, 1.0, 1e3, 1e16, 1e25])
def test_rules_are_printed_in_the_digits_that_prices_ask_for(norm, price):
    sample = Instance.from_arrays(
        [[0, 0.3 / price], [1 / 3 / price, 0.1 / price]], [price, price], visible=[0, 1], cost=1.0,
        norm=norm, effort=[price, price],
    )  # fmt: skip
    rule = certify(sample).printed
    assert rule.share >= 0.999
    assert max(len(w.normalize().as_tuple().digits) for w in rule.weights.values()) <= 4


def test_typed_rules_of_a_view_are_near_in_units_of_cost():
    """A cheap feature's weight is small beside a dear one's, and counts all the same."""
    sample = Instance.from_arrays(
        [[0, 0, 0], [1e-8, -0.5, 0], [0, 0.7, 0]], [1e8, 1, 0], view=[[1e8, 1, 0]], cost=1.0,
        effort=[1e8, 1, 1], features=["a", "b", "c"],
    )  # fmt: skip
    assert float(grade(sample, {"a": 1e8, "b": 1}, threshold=1).recount.gain) > 0
    with pytest.raises(InputError, match="no combination of what the planner sees"):
        grade(sample, {"a": 1e8, "b": -1}, threshold=1)
