"""Rules that meet requirements: both engines and Algorithm 1 against the referee."""

from __future__ import annotations

import numpy as np
import pytest

from mipmech import Budget, InputError, Instance, ask, certify, make_instance, solve
from mipmech.budget import Stop
from mipmech.checker import check
from mipmech.model.geometry import geometry_of
from mipmech.oracles.cells.allowed import restricted
from mipmech.oracles.milp.gain import GainBound
from mipmech.oracles.shared.cones import cover, halves, ranges
from tests import requirements_brute_force as brute_force
from tests import requirements_referee as truth
from tests.conftest import seeds

GAP, LOT = 1e-3, 20
CONE = {"nonnegative", "nonpositive", "order"}


def drawn(seed, norm="l2", most_rank=3, most_agents=7):
    """A small sample, lattices and clouds, with requirements and labels."""
    random = np.random.default_rng([seed, 77])
    k, m = int(random.integers(1, most_rank + 1)), int(random.integers(1, most_agents + 1))
    lattice = random.random() < 0.3
    x = random.integers(-3, 4, (m, k)).astype(float) if lattice else random.standard_normal((m, k))
    weights = random.integers(0, 4, m).astype(float)
    weights[0] = 1.0
    alike = random.random() < 0.5
    labels = [int(v) for v in random.integers(0, 3, m)]
    instance = Instance.from_arrays(
        x, random.standard_normal(k), visible=list(range(k)), weights=weights, norm=norm,
        reach=float(random.choice([0.5, 1.0])) if alike else random.choice([0.5, 1.0, 2.0], m),
        groups={"kind": labels},
    )  # fmt: skip
    requirements = {}
    kinds = random.permutation(["signs", "order", "accepted", "parity"])[: random.integers(1, 3)]
    for kind in kinds:
        if kind == "signs":
            name = str(random.choice(["nonnegative", "nonpositive"]))
            requirements[name] = "all" if random.random() < 0.5 else [int(random.integers(k))]
        elif kind == "order" and k > 1:
            requirements["order"] = [[int(j) for j in random.permutation(k)[:2]]]
        elif kind == "accepted":
            requirements["accepted"] = sorted(float(v) for v in random.choice(9, 2) / 8)
        elif kind == "parity":
            within = float(random.choice([0.1, 0.25, 0.5]))
            requirements["parity"] = {"groups": "kind", "within": within}
    requirements = requirements or {"accepted": [0.0, 0.5]}
    return instance, requirements, labels if "parity" in requirements else None


def holds(best, found, seed):
    """An interval contains the referee's supremum, and a rule found meets what is demanded."""
    if best is None:
        assert found.recount is None, seed
        return
    assert found.status != "infeasible", seed
    assert found.upper >= best.surely - 1e-6 * (1 + abs(best.surely)), (seed, best, found)
    if found.recount is not None:
        assert float(found.lower) <= best.at_most + 1e-9 * (1 + abs(best.at_most)), (seed, best)


def meets(instance, requirements, labels, mechanism):
    rule = mechanism.view_weights or mechanism.weights
    return truth.meets(instance, requirements, labels, rule, mechanism.threshold)


@pytest.mark.slow
@pytest.mark.parametrize("lot", seeds(8, 40))
def test_engines_agree_with_the_referee(lot):
    """160 samples in every run: l2, and a few of l1 and linf."""
    closed = 0
    for seed in range(lot * LOT, (lot + 1) * LOT):
        norm = ("l2", "l2", "l2", "l1", "linf")[seed % 5]
        instance, requirements, labels = drawn(seed, norm)
        if norm == "linf" and CONE & set(requirements):
            with pytest.raises(InputError, match="use engine='cells'"):
                certify(instance, require=requirements, engine="milp")
            continue
        best = brute_force.best_gain(instance, requirements, labels)
        both = [
            certify(instance, require=requirements, gap=GAP, engine=engine, budget=Budget(10.0))
            for engine in ("cells", "milp")
        ]
        for found in both:
            holds(best, found, seed)
            if found.recount is not None:
                assert meets(instance, requirements, labels, found.mechanism), seed
        found = both[1]
        closed += found.status in ("optimal", "infeasible")
        if found.status != "infeasible":
            assert check(found.content(), instance), seed
        if best is None:
            assert found.status in ("infeasible", "gap"), seed
    assert closed >= LOT // 2


@pytest.mark.slow
@pytest.mark.parametrize("lot", seeds(2, 20))
def test_algorithm_1_finds_rules_that_meet_requirements(lot):
    for seed in range(500 + lot * LOT, 500 + (lot + 1) * LOT):
        norm = ("l2", "l2", "l1")[seed % 3]
        instance, requirements, labels = drawn(seed, norm, most_agents=6)
        best = brute_force.best_gain(instance, requirements, labels)
        step = 0.3 if norm == "l2" else None
        found = solve(
            instance, require=requirements, oracle="milp-soft", epsilon=step, budget=Budget(10.0)
        )
        if found.recount is None:
            assert found.mechanism is None
            assert found.to_dict()["gain"] is None
        else:
            assert best is not None
            assert meets(instance, requirements, labels, found.mechanism), seed
            assert float(found.gain) <= best.at_most + 1e-9 * (1 + abs(best.at_most)), seed
        if best is not None and found.bound.scope == "all":
            assert found.upper >= best.surely - 1e-6 * (1 + abs(best.surely)), (seed, best, found)
            if found.complete and best.surely > 0:
                assert best.surely - float(found.gain) <= found.bound.additive + 1e-6, seed


@pytest.mark.parametrize("seed", range(12))
def test_bounds_of_cones_hold(seed):
    """Rules in the cones of a random descent have no more than the cones' bounds."""
    random = np.random.default_rng([seed, 43])
    instance, requirements, _ = drawn(900 + seed)
    geometry = geometry_of(instance, requirements)
    search = GainBound(geometry, GAP, Budget().start())
    goal, part, limits = search.goal, search.part, search.limits
    cones = cover(part)
    for _ in range(10):
        where = ranges(part, cones)
        bounds, outside = goal.bounds(where, 0.0), limits.outside(cones, where)
        for place in range(len(cones)):
            x = random.uniform(cones.lower[place], cones.upper[place])
            u = x / np.linalg.norm(x)
            if (limits.rows @ u < 0).any():
                continue
            assert not outside[place]
            from_here = goal.grade(_mechanism(geometry, u))
            if from_here is not None:
                assert goal.value(from_here) <= bounds[place] * (1 + 1e-9) + 1e-12, seed
        if part.points is not None:
            return
        cones = halves(cones)
        cones = cones[random.permutation(len(cones))[:6]]


def _mechanism(geometry, u):
    from mipmech.model import from_reduced

    return from_reduced(geometry, u, 0.0)


def test_nobody_can_be_accepted_in_part():
    """Two who respond alike are accepted together: half is impossible."""
    instance = Instance.from_arrays(
        [[0.0, 1.0], [0.0, 1.0]], [1.0, 0.5], visible=[0, 1], reach=1.0, groups={"kind": [0, 1]}
    )
    require = {"accepted": [0.4, 0.6]}
    for engine in ("cells", "milp"):
        found = certify(instance, require=require, engine=engine)
        assert found.status == "infeasible"
        assert found.mechanism is None
        assert found.to_dict()["gain"] is None
    assert found.level == "attested"
    with pytest.raises(InputError, match="must be proved"):
        found.content()
    answer = ask(instance, eta_fraction=0.5, require=require)
    assert (answer.status, answer.stop) == ("infeasible", Stop.UNMET)
    solution = solve(instance, require=require)
    assert solution.mechanism is None
    assert "no rule found" in repr(solution)
    assert solution.to_dict()["gain"] is None


def test_nothing_visible_helps():
    """p = 0: no rule gains, but one that meets the requirements is found."""
    instance = Instance.from_arrays(
        [[0.0, 1.0], [3.0, 2.0], [5.0, 1.0]], [0.0, 1.0], visible=[0], reach=1.0
    )
    found = certify(instance, require={"accepted": [0.5, 0.7]}, engine="milp")
    assert found.recount is not None
    assert (found.lower, found.upper) == (0, 0)
    assert float(found.recount.accepted_share) == pytest.approx(2 / 3)


def test_the_scope_of_algorithm_1():
    sample = make_instance("gaussian-mixture", 30, 2, seed=1)
    signs = ["nonnegative" if q > 0 else "nonpositive" for q in sample.quality]
    inside = {sign: [j for j in (0, 1) if signs[j] == sign] for sign in set(signs[:2])}
    scopes = {
        "all": solve(sample, require=inside).bound.scope,
        "cone without p": solve(sample, require={_other(signs[0]): [0]}).bound.scope,
        "shares": solve(sample, require={**inside, "accepted": [0.0, 0.5]}).bound.scope,
    }
    assert scopes == {"all": "all", "cone without p": "grid", "shares": "grid"}


def _other(sign):
    return {"nonnegative": "nonpositive", "nonpositive": "nonnegative"}[sign]


@pytest.mark.parametrize("skip", ["cones", "milp", "cells"])
def test_pruning_changes_nothing(skip):
    sample = make_instance("gaussian-mixture", 20, 2, seed=4)
    require = {"accepted": [0.1, 0.4]}
    plain = solve(sample, require=require, oracle="cells-soft")
    pruned = solve(sample, require=require, oracle="cells-soft", skip=skip)
    assert pruned.complete
    assert float(pruned.gain) >= float(plain.gain) * (1 - 1e-4)
    assert len(pruned.steps) <= len(plain.steps)


def test_without_requirements_nothing_is_restricted():
    sample = make_instance("gaussian-mixture", 20, 2, seed=4)
    geometry = geometry_of(sample)
    problem = object()
    assert restricted(problem, geometry, np.arange(20)) is problem
    assert geometry_of(sample, {}).demands is None
