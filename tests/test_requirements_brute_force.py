"""The referee for requirements, against scans, dense sampling, rationals and cases by hand."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import linprog

from mipmech import Instance
from tests import costs_brute_force, referee
from tests import requirements_brute_force as brute_force
from tests import requirements_referee as truth
from tests.conftest import seeds
from tests.samples import instances, mechanisms, required, tied_instances

CONE = ("nonnegative", "nonpositive", "order")


def seeing_all(agents, quality, **given):
    agents = np.array(agents, dtype=float)
    given = given if "reach" in given else {"cost": 1.0, **given}
    return Instance.from_arrays(agents, quality, visible=range(agents.shape[1]), **given)


def drawn(rng, m, k, lattice=False, **given):
    """Unequal reaches and weights; coordinates of one digit, or none that are alike."""
    agents = rng.integers(-4, 5, (m, k)) if lattice else rng.standard_normal((m, k))
    weights = rng.integers(0, 4, m).astype(float)
    weights[0] = 1.0
    quality = rng.standard_normal(k)
    return seeing_all(
        agents, quality, reach=rng.choice([0.5, 1.0, 2.0], m), weights=weights, **given
    )


def demanded(rng, m, k):
    """One or two requirements, and labels; a cone has an interior."""
    kinds = rng.permutation(["signs", "order", "accepted", "parity"])[: rng.integers(1, 3)]
    requirements, labels = {}, None
    for kind in kinds:
        if kind == "signs":
            name = rng.choice(["nonnegative", "nonpositive"])
            requirements[str(name)] = "all" if rng.random() < 0.5 else [int(rng.integers(k))]
        elif kind == "order" and k > 1:
            requirements["order"] = [[int(j) for j in rng.permutation(k)[:2]]]
        elif kind == "accepted":
            requirements["accepted"] = sorted(float(v) for v in rng.choice(9, 2) / 8)
        elif kind == "parity":
            labels = [int(v) for v in rng.integers(0, 3, m)]
            within = float(rng.choice([0.1, 0.25, 0.5]))
            requirements["parity"] = {"groups": "kind", "within": within}
    return requirements, labels


# ---- the truth ----


def test_the_truth_by_hand():
    """w = (1, 0), b = 2: scores 0, 1, 3 with reach 1; the second just passes."""
    instance = Instance.from_arrays(
        [[0.0, 1.0], [1.0, 1.0], [3.0, 0.0]], [1.0, 1.0], visible=[0], reach=1.0,
        weights=[1.0, 1.0, 2.0], features=["a", "b"],
    )  # fmt: skip
    rule, b = (1.0, 0.0), 2.0
    assert truth.accepted(instance, rule, b) == [False, True, True]
    assert truth.accepted_share(instance, rule, b) == Fraction(3, 4)
    assert truth.shares_by_group(instance, ["x", "x", "y"], rule, b) == {
        "x": Fraction(1, 2),
        "y": 1,
    }
    requirements = {
        "nonnegative": "all",
        "nonpositive": ["a"],
        "order": [["b", 0], [0, 1]],
        "accepted": [0.0, 0.5],
        "parity": {"groups": "kind", "within": 0.25},
    }
    assert truth.failures(instance, requirements, ["x", "x", "y"], rule, b) == {
        "nonnegative": 0,
        "nonpositive": 1,
        "order": 1,
        "accepted": Fraction(1, 4),
        "parity": Fraction(1, 4),
    }
    met = {"nonnegative": "all", "order": [["a", "b"]], "accepted": [0.75, 0.75]}
    assert truth.meets(instance, met, None, rule, b)
    assert not truth.meets(instance, met, None, rule, math.nextafter(b, 3))
    assert not truth.meets(instance, met, None, rule, 1.0)


def test_limits_are_read_as_they_are_written():
    """The float 0.3 is a little less than 3/10, and 0.1 a little more than 1/10."""
    instance = seeing_all([[float(i)] for i in range(10)], [1.0], reach=0.5)
    assert truth.accepted_share(instance, (1.0,), 7.25) == Fraction(3, 10)
    assert truth.meets(instance, {"accepted": [0.3, 0.3]}, None, (1.0,), 7.25)
    assert truth.meets(instance, {"accepted": [0.1, 0.1]}, None, (1.0,), 9.25)
    assert not truth.meets(instance, {"accepted": [0.0, 0.29999]}, None, (1.0,), 7.25)
    found = brute_force.best_gain(instance, {"accepted": [0.3, 0.3]})
    assert found.surely <= 0.05 <= found.at_most  # the third moves by ½
    labels = ["a"] * 5 + ["b"] * 5
    apart = {"parity": {"groups": "kind", "within": 0.6}}  # 3/5 of one group, none of the other
    assert truth.meets(instance, apart, labels, (1.0,), 7.25)


def test_groups_that_weigh_nothing_are_left_out():
    instance = seeing_all([[0.0], [5.0], [5.0]], [1.0], weights=[1.0, 1.0, 0.0])
    labels = ["a", "b", "c"]
    assert truth.shares_by_group(instance, labels, (1.0,), 5.5) == {"a": 0, "b": 1}
    within = {"parity": {"groups": "kind", "within": 0.5}}
    assert truth.failures(instance, within, labels, (1.0,), 5.5) == {"parity": Fraction(1, 2)}


@given(instances(max_agents=6, norms=("l2", "l1", "linf")), st.data())
def test_the_truth_agrees_with_floats_away_from_ends(instance, data):
    mechanism = data.draw(mechanisms(instance, places=(0.1234, 0.5678, 1.3456)))
    found = referee.in_floats(instance, mechanism)
    rule = mechanism.view_weights or mechanism.weights
    assume(np.isfinite(found.accepted_share))
    size = np.linalg.norm(mechanism.weights)
    ends = (
        instance.agents @ mechanism.weights / size
        + instance.reach
        * (referee.response_in_floats(instance, np.array(mechanism.weights) / size)[0])
    )
    assume((np.abs(ends - mechanism.threshold / size) > 1e-6 * (1 + np.abs(ends))).all())
    assert truth.accepted(instance, rule, mechanism.threshold) == found.accepted.tolist()


# ---- by hand ----


def test_a_negative_weight_is_forbidden_by_hand():
    """p = (1, −1) and one agent, who gains the greatest rate: with w ≥ 0 that of (1, 0)."""
    for norm, free in (("l2", math.sqrt(2)), ("l1", 1.0), ("linf", 2.0)):
        instance = seeing_all([[0, 0]], [1, -1], norm=norm)
        found = brute_force.best_gain(instance, {})
        assert found.surely == pytest.approx(free)
        for requirements in ({"nonnegative": "all"}, {"nonnegative": [1]}):
            found = brute_force.best_gain(instance, requirements)
            assert found.surely <= 1 <= found.at_most
            assert found.at_most == pytest.approx(1)
    # For linf any positive weight of the second feature costs 1 at once: only the rim has rate 1.


def test_a_limit_on_who_is_accepted_by_hand():
    """Scores 0, 1, 3 with reach 2: ends 2, 3, 5.

    b = 2 moves two, by 2 and 1, and accepts all; at most two of them: b = 3, which moves the second
    by 2; at most one: b = 5, the third by 2. At least one and at most none is impossible.
    """
    for norm in ("l2", "l1", "linf"):
        instance = seeing_all([[0], [1], [3]], [3], reach=2.0, norm=norm)
        for limits, best in (((0, 1), 3), ((0, 0.75), 2), ((0, 0.5), 2), ((0, 0.25), 0)):
            found = brute_force.best_gain(instance, {"accepted": list(limits)})
            assert found.surely <= best <= found.at_most
            assert found.at_most == pytest.approx(best, abs=1e-9)
        assert brute_force.best_gain(instance, {"accepted": [0.4, 0.6]}) is None
        assert brute_force.feasible(instance, {"accepted": [0.4, 0.6]}) is False
        assert brute_force.best_gain(instance, {"accepted": [0.6, 0.67]}).surely > 1.99


def test_no_direction_is_left():
    """All weights at least and at most 0."""
    for norm in ("l2", "l1", "linf"):
        instance = seeing_all([[0, 0], [1, 2]], [1, 1], norm=norm)
        nothing = {"nonnegative": "all", "nonpositive": "all"}
        assert brute_force.best_gain(instance, nothing) is None
        assert brute_force.feasible(instance, nothing) is False
        one = {"nonnegative": "all", "nonpositive": [0]}
        assert brute_force.best_gain(instance, one).surely == pytest.approx(0.5)  # w = (0, 1)


def test_equal_weights_leave_one_line():
    """Orders both ways: w₁ = w₂; one agent at reach 1 gains w_f·g."""
    for norm, best in (("l2", 3 / math.sqrt(2)), ("l1", 2), ("linf", 3)):
        instance = seeing_all([[0, 0]], [2, 1], norm=norm)
        found = brute_force.best_gain(instance, {"order": [[0, 1], [1, 0]]})
        assert found.surely == pytest.approx(best)


def test_a_best_rule_that_loses():
    """Quality falls along all that is allowed, and somebody must pass, but not all.

    w ≥ 0 and p = −1: scores 0 and 1 with reach 2, ends 2 and 3. Exactly one passes with b in
    (2, 3], which moves the second by more than 1, for −½: a supremum that no rule attains.
    """
    instance = seeing_all([[0], [1]], [-1], reach=2.0)
    requirements = {"nonnegative": "all", "accepted": [0.5, 0.5]}
    found = brute_force.best_gain(instance, requirements)
    assert found.surely <= -0.5 <= found.at_most
    assert found.at_most == pytest.approx(-0.5)
    two = seeing_all([[0, 0], [1, 0]], [-1, 0], reach=2.0)
    requirements["order"] = [[0, 1], [1, 0]]
    found = brute_force.best_gain(
        two, requirements
    )  # w = (1, 1)/√2 is one line: −½ of (2 − 1/√2)/√2
    assert found.at_most == pytest.approx(-(2 - math.sqrt(0.5)) / 2 / math.sqrt(2))
    for norm in ("l1", "linf"):
        instance = seeing_all([[0], [1]], [-1], reach=2.0, norm=norm)
        found = brute_force.best_gain(instance, {"nonnegative": "all", "accepted": [0.5, 0.5]})
        assert found.surely < 0 == found.at_most


def test_a_supremum_that_no_rule_attains():
    """Twins of equal reach, (0, 1) and (0, −1), of which exactly one must pass, and p = (1, 0).

    They part along every direction but (1, 0), which is the best: rules near it gain almost ½.
    """
    for norm in ("l2", "l1", "linf"):
        instance = seeing_all([[0, 1], [0, -1]], [1, 0], norm=norm)
        found = brute_force.best_gain(instance, {"accepted": [0.5, 0.5]})
        assert found.surely == pytest.approx(0.5)
        assert found.at_most == pytest.approx(0.5)
        # The second has weight 0: the twins are accepted together, or not.
        alone = {"accepted": [0.5, 0.5], "nonnegative": [1], "nonpositive": [1]}
        assert brute_force.best_gain(instance, alone) is None


# ---- against what is known without requirements ----


@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
def test_without_requirements(norm):
    rng = np.random.default_rng(3)
    for n in range(12):
        k = 1 + n % (2 if norm == "l2" else 3)
        instance = drawn(rng, 6, k, lattice=n % 4 < 2, norm=norm)
        found = brute_force.best_gain(instance, {})
        if norm == "l2":
            other = referee.best_gain(seeing_all(
                instance.agents, instance.quality, cost=1 / instance.reach,
                weights=instance.weights,
            ))  # fmt: skip
            assert found.surely - 1e-9 <= other <= found.at_most + 1e-9
        else:
            other = costs_brute_force.best_gain(instance)
            assert found.surely <= other.at_most
            assert other.surely <= found.at_most


# ---- one dimension: every threshold ----


@given(tied_instances(widths=(1,)), st.data())
def test_one_dimension_against_every_threshold(instance, data):
    """A scan of both directions, with thresholds at all ends, between them and beyond."""
    requirements, labels = data.draw(required(instance))
    found = brute_force.best_gain(instance, requirements, labels)
    best = None
    for sign in (1.0, -1.0):
        rule = np.zeros(instance.width)
        rule[0] = sign
        norm = referee.response_in_floats(instance, rule)[0]  # a power of two: ends are exact
        ends = np.unique(instance.agents @ rule + instance.reach * norm)
        ends = np.concatenate([ends, ends + 1e-10, ends[:1] - 100])
        for b in ends:
            if truth.meets(instance, requirements, labels, rule, float(b)):
                weights = truth.plain_weights(instance, rule)
                gain = referee.truth(instance, weights, float(b)).gain
                best = gain if best is None else max(gain, best)
    assert (found is None) == (best is None)
    if best is not None:
        assert found.surely - 1e-8 <= best <= found.at_most
        assert brute_force.feasible(instance, requirements, labels)


# ---- two dimensions: dense angles ----


def along(instance, requirements, labels, u):
    """The best gain along each u (n, k), NaN where no threshold is allowed, in plain floats.

    Only sets count whose last accepted end is above the first rejected one by more than rounding;
    for negative rates the threshold is just above the latter.
    """
    effort = np.ones(instance.width) if instance.costs.effort is None else instance.costs.effort
    w = u * effort
    norm = {
        "l2": np.linalg.norm(u, axis=1),
        "l1": np.abs(u).max(axis=1),
        "linf": np.abs(u).sum(axis=1),
    }[instance.costs.norm]
    p = instance.quality / effort
    # For l1 agents work on the feature of the greatest |u_j|, on the better one of two.
    each = np.where(np.abs(u) == np.abs(u).max(axis=1, keepdims=True), np.sign(u) * p, -np.inf)
    rate = {
        "l2": u @ p / norm,
        "l1": each.max(axis=1),
        "linf": np.sign(u) @ p,
    }[instance.costs.norm] / norm
    counts = instance.weights > 0
    weight = instance.weights[counts] / instance.weights[counts].sum()
    score = (w @ instance.agents.T)[:, counts]
    end = score + norm[:, None] * instance.reach[counts]
    inside = np.ones(len(u), dtype=bool)
    for row in truth.cone(instance, requirements):
        inside &= w @ np.array([float(c) for c in row]) >= 0
    low, high = requirements.get("accepted", (0, 1))
    best = np.full(len(u), np.nan)

    def fits(passing):
        share = passing @ weight
        good = (share >= low - 1e-12) & (share <= high + 1e-12)
        if "parity" in requirements:
            kept = np.array(labels)[counts]
            shares = np.stack([
                passing[:, kept == label] @ weight[kept == label] / weight[kept == label].sum()
                for label in set(kept.tolist())
            ])  # fmt: skip
            good &= np.ptp(shares, axis=0) <= requirements["parity"]["within"] + 1e-12
        return good & inside

    for place in range(end.shape[1] + 1):
        last = end[:, place, None] if place < end.shape[1] else np.full((len(u), 1), np.inf)
        passing = end >= last
        rejected = np.where(passing, -np.inf, end).max(axis=1)
        clear = np.abs(rejected - np.where(passing, end, np.inf).min(axis=1)) > 1e-9
        b = np.where(rate >= 0, last[:, 0], np.where(np.isfinite(rejected), rejected + 1e-11, -1e9))
        moved = np.where(passing, np.clip(b[:, None] - score, 0, None), 0)
        gain = rate * (np.where(np.isfinite(moved), moved, 0) @ weight)
        best = np.where(fits(passing) & clear, np.fmax(best, gain), best)
    return best


# Where l1 and linf have rates of their own, and cones their rims.
RAYS = np.array([[1, 0], [1, 1], [0, 1], [-1, 1], [-1, 0], [-1, -1], [0, -1], [1, -1]])


@pytest.mark.parametrize("seed", seeds(40, 200))
def test_two_dimensions_against_dense_angles(seed):
    rng = np.random.default_rng(seed)
    norm = ("l2", "l2", "l1", "linf")[seed % 4]
    instance = drawn(rng, 4 + seed % 5, 2, lattice=seed % 3 == 0, norm=norm)
    requirements, labels = demanded(rng, instance.size, 2)
    found = brute_force.best_gain(instance, requirements, labels)
    angles = (np.arange(20_000) + rng.random()) * (2 * math.pi / 20_000)
    u = np.concatenate([np.column_stack([np.cos(angles), np.sin(angles)]), RAYS])
    values = along(instance, requirements, labels, u)
    assert (found is None) == bool(np.isnan(values).all())
    assert brute_force.feasible(instance, requirements, labels) == (found is not None)
    if found is None:
        return
    best = np.nanmax(values)
    assert best <= found.at_most + 1e-9
    assert best >= found.surely - 1e-3


# ---- all norms: rules in rationals ----


@given(tied_instances(), st.data())
def test_no_rule_that_meets_them_gains_more(instance, data):
    """Random rules, with thresholds at ends and between, graded in rationals."""
    requirements, labels = data.draw(required(instance))
    found = brute_force.best_gain(instance, requirements, labels)
    for _ in range(10):
        mechanism = data.draw(mechanisms(instance))
        for b in (mechanism.threshold, math.nextafter(mechanism.threshold, -math.inf)):
            if truth.meets(instance, requirements, labels, mechanism.weights, b):
                exact = [Fraction(w) for w in mechanism.weights]
                assert found is not None
                assert referee.truth(instance, exact, b).gain <= found.at_most
                assert brute_force.feasible(instance, requirements, labels)


@given(tied_instances(max_agents=6), st.data())
def test_an_answer_iff_there_is_a_rule(instance, data):
    """Two ways to decide it for l1 and linf; for l2, the search finds a rule iff there is one."""
    requirements, labels = data.draw(required(instance))
    found = brute_force.best_gain(instance, requirements, labels)
    assert brute_force.feasible(instance, requirements, labels) == (found is not None)
    if instance.costs.norm == "l2":
        rule = brute_force.reached(instance, requirements, labels, starts=500)
        assert (rule is None) == (found is None)


@given(instances(max_agents=6, max_width=3, norms=("l2",)), st.data())
def test_views_prices_and_matrices(instance, data):
    """A rule that the search finds in a general view is nowhere above what is claimed."""
    view = instance.view
    assume(view.columns is not None or len(view.matrix) == view.rank)  # no dependent rows
    requirements, labels = data.draw(required(instance))
    if view.rank == 3:
        assume(len(np.unique(instance.agents, axis=0)) <= brute_force.MOST_CLASSES)
    found = brute_force.best_gain(instance, requirements, labels)
    rule = brute_force.reached(instance, requirements, labels, starts=300)
    if rule is not None:
        assert truth.meets(instance, requirements, labels, rule.rule, rule.threshold)
        assert found is not None
        assert rule.gain <= found.at_most


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("seed", seeds(6, 60))
def test_faces_in_three_dimensions_against_a_search(norm, seed):
    """Random directions, many on the rims of faces, turned less and less where they are best."""
    rng = np.random.default_rng(seed)
    instance = drawn(rng, 5 + seed % 3, 3, lattice=seed % 2 == 0, norm=norm)
    requirements, labels = demanded(rng, instance.size, 3)
    found = brute_force.best_gain(instance, requirements, labels)
    corners = np.array([c for c in product((-1, 0, 1), repeat=3) if any(c)])
    u = rng.standard_normal((20_000, 3))
    u = np.where(rng.random(u.shape) < 0.2, 0.0, u)
    most = np.abs(u).max(axis=1, keepdims=True)
    u = np.where(rng.random(u.shape) < 0.2, np.sign(u) * most, u)
    u = np.concatenate([corners, u[u.any(axis=1)]])
    u[:, 1] = np.where(rng.random(len(u)) < 0.2, u[:, 0], u[:, 1])
    u = u[u.any(axis=1)]
    values = np.nan_to_num(along(instance, requirements, labels, u), nan=-np.inf)
    for turn in np.geomspace(0.5, 1e-6, 30):
        best = np.argsort(-values)[:40]
        u, values = u[best], values[best]
        moved = np.repeat(u, 30, axis=0)
        # Coordinates of 0 stay, and those that are alike stay so, half of the time.
        step = turn * rng.standard_normal(moved.shape)
        step *= (moved != 0) | (rng.random((len(moved), 1)) < 0.5)
        one = (np.abs(moved) == np.abs(moved).max(axis=1, keepdims=True)) & (
            rng.random((len(moved), 1)) < 0.5
        )
        moved = np.where(one, moved, moved + step * np.abs(moved).max(axis=1, keepdims=True))
        more = np.nan_to_num(along(instance, requirements, labels, moved), nan=-np.inf)
        u, values = np.concatenate([u, moved]), np.append(values, more)
    if found is None:
        assert values.max() == -np.inf
    else:
        assert found.surely - 0.01 <= values.max() <= found.at_most + 1e-9


# ---- what does not matter, and what does ----


@given(tied_instances(max_agents=6), st.data())
def test_without_one_of_them_the_best_is_no_worse(instance, data):
    requirements, labels = data.draw(required(instance, most=3))
    found = brute_force.best_gain(instance, requirements, labels)
    for kind in requirements:
        fewer = {name: value for name, value in requirements.items() if name != kind}
        other = brute_force.best_gain(instance, fewer, labels)
        if found is not None:
            assert other is not None
            assert found.surely <= other.at_most


@given(tied_instances(max_agents=6), st.data())
def test_order_names_and_units_do_not_matter(instance, data):
    """Agents in another order, groups by other names, all coordinates and reaches doubled."""
    requirements, labels = data.draw(required(instance))
    found = brute_force.best_gain(instance, requirements, labels)
    order = data.draw(st.permutations(range(instance.size)))
    other = Instance.from_arrays(
        2 * instance.agents[order],
        instance.quality,
        reach=2 * instance.reach[order],
        norm=instance.costs.norm,
        effort=instance.costs.effort,
        visible=instance.view.columns,
        weights=instance.weights[order],
    )
    renamed = None if labels is None else [f"group {labels[i]}" for i in order]
    again = brute_force.best_gain(other, requirements, renamed)
    assert (again is None) == (found is None)
    if found is not None:
        assert 2 * found.surely <= again.at_most + 1e-9
        assert again.surely <= 2 * found.at_most + 1e-9


@given(tied_instances(max_agents=6, widths=(1, 2), norms=("l2",)), st.data())
def test_twins_are_one_agent_that_counts_twice(instance, data):
    requirements, labels = data.draw(required(instance))
    found = brute_force.best_gain(instance, requirements, labels)
    twice = [*range(instance.size), 0]
    weights = instance.weights[twice].copy()
    weights[[0, -1]] /= 2
    other = Instance.from_arrays(
        instance.agents[twice],
        instance.quality,
        reach=instance.reach[twice],
        effort=instance.costs.effort,
        visible=instance.view.columns,
        weights=weights,
    )
    again = brute_force.best_gain(other, requirements, labels and [*labels, labels[0]])
    assert again == found


# ---- l2 in three and four dimensions ----


@pytest.mark.parametrize("seed", seeds(9, 100))
def test_the_bracket_in_three_dimensions_is_tight(seed):
    rng = np.random.default_rng(seed)
    instance = drawn(rng, 4 + seed % 4, 3, lattice=seed % 3 == 0)
    requirements, labels = demanded(rng, instance.size, 3)
    found = brute_force.best_gain(instance, requirements, labels)
    rule = brute_force.reached(instance, requirements, labels)
    assert (rule is None) == (found is None)
    if found is not None:
        assert truth.meets(instance, requirements, labels, rule.rule, rule.threshold)
        weights = truth.plain_weights(instance, rule.rule)
        assert rule.gain == referee.truth(instance, weights, rule.threshold).gain
        assert found.surely <= found.at_most <= max(0, found.surely) * 1.002 + 1e-5


@pytest.mark.parametrize("seed", range(10))
def test_three_dimensions_of_which_two_matter(seed):
    """A third feature at 0 for all, of no quality: two dimensions, and no rule needs it."""
    rng = np.random.default_rng(seed)
    flat = drawn(rng, 5, 2, lattice=seed % 2 == 0)
    requirements, labels = demanded(rng, 5, 2)
    deep = seeing_all(
        np.column_stack([flat.agents, np.zeros(5)]),
        [*flat.quality, 0],
        reach=flat.reach,
        weights=flat.weights,
    )
    two = brute_force.best_gain(flat, requirements, labels)
    # The third weight lengthens N(w), so more may be feasible, but not where it must be 0.
    for third in ("nonnegative", "nonpositive"):
        listed = requirements.get(third, [])
        listed = [0, 1, 2] if listed == "all" else [*listed, 2]
        other = "nonpositive" if third == "nonnegative" else "nonnegative"
        listed_too = requirements.get(other, [])
        listed_too = [0, 1, 2] if listed_too == "all" else [*listed_too, 2]
        both = {**requirements, third: listed, other: listed_too}
        same = brute_force.best_gain(deep, both, labels)
        assert same == two or same.surely == pytest.approx(two.surely, abs=1e-9)
    three = brute_force.best_gain(deep, requirements, labels)
    assert two is None or three.at_most >= two.surely


@pytest.mark.parametrize("seed", seeds(16, 200))
def test_deciding_in_three_dimensions(seed):
    """Exactly one share, to be met at ties: circles, sets one by one, and the search agree."""
    rng = np.random.default_rng(seed)
    m, equal = 3 + seed % 5, seed % 2 == 0
    agents = rng.integers(-2, 3, (m, 3)) if seed % 3 else rng.standard_normal((m, 3))
    reach = 1.0 if equal else rng.choice([0.5, 1, 2], m)
    instance = seeing_all(agents, rng.standard_normal(3), reach=reach)
    share = float(rng.integers(1, m)) / m
    requirements = {
        "accepted": [share - 1e-9, share + 1e-9],
        "parity": {"groups": "kind", "within": float(rng.choice([0, 0.2, 0.34]))},
    }
    if rng.random() < 0.5:
        requirements["order"] = [[0, 1], [1, 2]]
    if rng.random() < 0.5:
        requirements["nonnegative"] = "all"
    labels = [int(v) for v in rng.integers(0, 2, m)]
    problem = brute_force._Euclidean.of(instance, requirements, labels)
    decided = brute_force._feasible_on_a_sphere(problem)
    assert decided == brute_force.feasible(instance, requirements, labels)
    found = brute_force.reached(instance, requirements, labels, starts=500)
    assert decided == (found is not None)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("price", [1, 3, 7])
def test_ends_that_only_touch(k, price):
    """The end of the second is never above that of the first, and as high along (1, 0) alone.

    With prices of 3 and 7 coordinates have endless digits.
    """
    instance = seeing_all(
        [[0] * k, [1] + [0] * (k - 1)],
        [1] * k,
        reach=[price + 1.0, 1.0],
        effort=[price] * k,
        weights=[1.0, 3.0],
    )
    assert brute_force.feasible(instance, {"accepted": [0.75, 0.75]}) is False
    assert brute_force.best_gain(instance, {"accepted": [0.75, 0.75]}) is None
    assert brute_force.best_gain(instance, {"accepted": [0.25, 0.25]}).surely > 0
    assert brute_force.best_gain(instance, {"accepted": [1.0, 1.0]}).surely > 0


@pytest.mark.parametrize("seed", range(5))
def test_four_dimensions(seed):
    rng = np.random.default_rng(seed)
    instance = drawn(rng, 8, 4, lattice=seed % 2 == 0)
    requirements, labels = demanded(rng, 8, 4)
    found = brute_force.reached(instance, requirements, labels)
    again = brute_force.reached(instance, requirements, labels, seed=1)
    assert (found is None) == (again is None)
    if found is not None:
        assert brute_force.feasible(instance, requirements, labels)
        assert truth.meets(instance, requirements, labels, found.rule, found.threshold)
        assert float(again.gain) == pytest.approx(float(found.gain), rel=2e-3, abs=1e-9)


def test_with_orders_two_dimensions_of_four_are_left():
    """w₁ = w₂ and w₃ = w₄: exactly solved, and the search comes as near as it should."""
    rng = np.random.default_rng(4)
    for _ in range(5):
        instance = drawn(rng, 7, 4)
        requirements = {"order": [[0, 1], [1, 0], [2, 3], [3, 2]], "accepted": [0.0, 0.5]}
        found = brute_force.best_gain(instance, requirements)
        rule = brute_force.reached(instance, requirements)
        assert found.surely - 1e-6 <= rule.gain <= found.at_most
        assert rule.rule[0] == rule.rule[1]


# ---- linear inequalities ----


@given(st.data())
def test_possible_against_a_solver(data):
    """Whole numbers up to 3, in which a solver's margin is 0 or clear of its tolerances."""
    size = data.draw(st.integers(1, 4))
    row = st.lists(st.integers(-3, 3).map(Fraction), min_size=size, max_size=size)
    closed = data.draw(st.lists(row, max_size=7))
    strict = data.draw(st.lists(row, min_size=1, max_size=4))
    left = [[*(-float(v) for v in a), 0.0] for a in closed]
    left += [[*(-float(v) for v in c), 1.0] for c in strict]
    cost = [0.0] * size + [-1.0]
    best = linprog(cost, left, np.zeros(len(left)), bounds=[(-1, 1)] * (size + 1))
    assert brute_force.possible(closed, strict) == (-best.fun > 1e-6)
