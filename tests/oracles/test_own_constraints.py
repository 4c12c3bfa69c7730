"""Constraints that a user writes, against a dense scan of directions and thresholds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pyomo.environ import Constraint

from mipmech import Budget, InputError, Instance, ask, certify, solve
from mipmech.model.geometry import geometry_of
from mipmech.model.requirements import Own, Requirements
from mipmech.oracles.milp.demanding import _coordinates
from mipmech.oracles.milp.engine import MilpSoft, model_at
from mipmech.oracles.shared.slices import slice_at

GAP = 2e-3


def applicants(seed, m=10):
    """SAT and GPA, a hidden feature, and two schools."""
    random = np.random.default_rng([seed, 5])
    return Instance.from_arrays(
        random.standard_normal((m, 3)), [1.0, 0.1, 0.3], visible=[0, 1],
        features=["sat", "gpa", "hidden"], reach=random.choice([0.5, 1.0], m),
        weights=random.integers(1, 4, m).astype(float),
        groups={"school": ["north" if i % 3 else "south" for i in range(m)]},
    )  # fmt: skip


def half_of_gpa():
    def rows(model):
        model.sat_at_most = Constraint(expr=model.weight["sat"] <= 0.5 * model.weight["gpa"])

    def holds(found):
        sat, gpa, _ = found.mechanism.weights
        return sat <= 0.5 * gpa

    return Own(rows, holds, "SAT at most half of GPA")


def little_effort(instance, limit):
    """The mean move in the south is at most a limit."""
    south = np.flatnonzero(np.arange(instance.size) % 3 == 0)
    weight = instance.weights / instance.weights[south].sum()

    def rows(model):
        moves = [
            float(weight[n]) * model.t[i] for i, n in enumerate(model.agents) if n in set(south)
        ]
        model.little_effort = Constraint(expr=model.unit * sum(moves) <= limit)

    def holds(found):
        w = np.array(found.mechanism.weights)
        distance = found.mechanism.threshold - instance.agents @ w
        moved = np.where(np.isin(np.arange(instance.size), found.covered), distance, 0.0)
        return float(weight[south] @ moved[south]) <= limit * float(np.linalg.norm(w))

    return Own(rows, holds, "little effort in the south")


def scanned(instance, allowed, count=1500):
    """The best gain of rules on a grid; allowed says which directions and moves are."""
    seen, weights = instance.agents[:, :2], instance.weights / instance.weights.sum()
    best = 0.0
    for angle in np.linspace(0.0, 2 * math.pi, count, endpoint=False):
        u = np.array([math.cos(angle), math.sin(angle)])
        rate = float(u @ instance.quality[:2])
        scores = seen @ u
        if rate <= 0:
            continue
        ends = scores + instance.reach
        levels = np.concatenate([ends, np.linspace(scores.min(), ends.max(), 300)])
        distance = levels[:, None] - scores
        moves = np.where((distance >= 0) & (distance <= instance.reach + 1e-12), distance, 0.0)
        gains = rate * moves @ weights
        for place in np.flatnonzero(gains > best):
            if gains[place] > best and allowed(u, moves[place]):
                best = float(gains[place])
    return best


def allowed_moves(instance, limit):
    south = np.flatnonzero(np.arange(instance.size) % 3 == 0)
    weight = instance.weights[south] / instance.weights[south].sum()
    return lambda _, moves: float(weight @ moves[south]) <= limit


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_weight_at_most_half_of_another(seed):
    instance = applicants(seed)
    require = Requirements(own=half_of_gpa())
    best = scanned(instance, lambda u, _: u[0] <= 0.5 * u[1])
    found = certify(instance, require=require, gap=GAP, budget=Budget(60.0))
    assert found.engine == "milp"
    assert found.demands.met(found.recount)
    assert best <= found.upper
    assert float(found.lower) >= best * (1 - GAP)
    assert float(found.lower) < float(certify(instance).lower)
    assert found.status == "optimal"
    solution = solve(instance, require=require, oracle="milp-soft", epsilon=0.1)
    assert solution.bound.scope == "grid"
    assert solution.demands.met(solution.recount)
    assert float(solution.gain) <= found.upper


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_limit_on_the_mean_move_of_a_group(seed):
    """The best threshold is no end: the limit is met between two of them."""
    instance = applicants(seed, m=8)
    free = certify(instance, gap=GAP)
    limit = 0.5 * scanned_moves(instance, free.recount)
    require = Requirements(own=little_effort(instance, limit))
    best = scanned(instance, allowed_moves(instance, limit))
    found = certify(instance, require=require, gap=GAP, budget=Budget(40.0))
    assert found.demands.met(found.recount)
    assert best <= found.upper
    assert float(found.lower) >= best * (1 - 2 * GAP)
    assert found.status == "optimal"


def scanned_moves(instance, found):
    south = np.flatnonzero(np.arange(instance.size) % 3 == 0)
    w = np.array(found.mechanism.weights)
    distance = (found.mechanism.threshold - instance.agents @ w) / np.linalg.norm(w)
    moved = np.where(np.isin(np.arange(instance.size), found.covered), distance, 0.0)
    return float(instance.weights[south] @ moved[south] / instance.weights[south].sum())


@pytest.mark.parametrize("oracle", ["milp", "milp-soft"])
def test_oracles_at_one_value(oracle):
    instance = applicants(1)
    require = Requirements(own=half_of_gpa())
    answer = ask(instance, eta_fraction=0.3, oracle=oracle, require=require)
    assert answer.recount is not None
    assert answer.demands.met(answer.recount)
    assert answer.to_dict()["own"] == ["SAT at most half of GPA"]


def test_who_cannot_says_so():
    instance = applicants(1)
    require = Requirements(own=half_of_gpa())
    with pytest.raises(InputError, match="the cells engine does not know constraints of your own"):
        certify(instance, require=require, engine="cells")
    with pytest.raises(InputError, match="choose milp"):
        ask(instance, eta_fraction=0.9, oracle="cells", require=require)
    found = certify(instance, require=require, gap=0.1, budget=Budget(20.0))
    with pytest.raises(InputError, match="constraints of your own"):
        found.content()


def test_a_mistake_in_the_rows_is_named():
    instance = applicants(1)
    own = Own(lambda model: model.weight["act"], lambda _: True, "a typo")
    geometry = geometry_of(instance, Requirements(own=own))
    with pytest.raises(InputError, match="a typo: rows"):
        model_at(MilpSoft(), geometry, 0.3 * geometry.p_norm)


def test_nobody_may_be_left_by_a_constraint():
    """Rows that contradict each other: no rule, and that is what is said."""

    instance = applicants(1, m=5)

    def never(model):
        model.never = Constraint(expr=model.b >= model.b.ub + 1)

    require = Requirements(own=Own(never, lambda _: False, "never"))
    answer = ask(instance, eta_fraction=0.3, oracle="milp", require=require)
    assert answer.status == "infeasible"
    assert answer.mechanism is None
    found = certify(instance, require=require, gap=GAP, budget=Budget(30.0))
    assert found.status == "infeasible"
    assert found.mechanism is None
    assert found.to_dict()["gain"] is None
    with pytest.raises(InputError, match="must be proved"):
        found.content()


def test_the_words_of_the_model_are_true():
    """Weights, threshold, moves and acceptance of a solution, in the user's units."""
    kept = []
    instance = applicants(2, m=6)
    own = Own(kept.append, lambda _: True)
    geometry = geometry_of(instance, Requirements(own=own))
    model = model_at(MilpSoft(norm="exact", cliques=False), geometry, 0.8 * geometry.p_norm)
    (asked,) = kept
    assert asked is model
    random = np.random.default_rng(0)
    for _ in range(5):
        for j in model.u:
            model.u[j].value = float(random.standard_normal())
        model.b.value = float(random.standard_normal())
        w = np.array([model.weight[j].expr() for j in range(3)])
        assert w[2] == 0
        assert model.weight["gpa"].expr() == w[1]
        scores = instance.agents @ w
        for i, n in enumerate(model.agents):
            left = model.threshold.expr() - scores[n]
            reduced = model.b.value - sum(
                a * model.u[j].value for a, j in zip(_row(geometry, i), model.u, strict=True)
            )
            assert left == pytest.approx(model.unit * reduced)


def _row(geometry, i):
    return _coordinates(slice_at(geometry, 0.8 * geometry.p_norm))[i]
