"""Oracles on the facets of l1 and linf costs, and on inner products other than the Euclidean."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mipmech import Budget, InputError, Instance, ask, make_instance, solve
from mipmech.budget import Stop
from mipmech.model import from_reduced, recount, reduce
from mipmech.model.costs.facets import facets_of
from mipmech.oracles.base import infeasible
from mipmech.oracles.registry import REGISTRY, oracle_class, oracle_named
from mipmech.oracles.shared.cones import cover, halves, joined, ranges
from mipmech.oracles.shared.facets import parts_at, rates_near
from tests import costs_brute_force
from tests.oracles.test_contract import check
from tests.samples import instances

ON_FACETS = [name for name in REGISTRY if oracle_class(name).facets]
FEW = settings(max_examples=min(25, settings().max_examples))
SHORT = Budget(seconds=1.0)

facet_samples = instances(max_agents=7, max_width=3, kinds=("visible",), norms=("l1", "linf"))


def best_at(instance, eta, soft):
    """A bracket of the best (soft) density over all facets with this rate, by brute force."""
    measure = costs_brute_force.best_soft_density if soft else costs_brute_force.best_density
    geometry = reduce(instance)
    near = geometry.band * geometry.p_norm
    found = [
        measure(instance, facet)
        for facet in costs_brute_force.facets(instance)
        if abs(facet.rate - eta) <= near + 1e-12 * geometry.p_norm
    ]
    return max(b.surely for b in found), max(b.at_most for b in found)


@pytest.mark.parametrize("name", ON_FACETS)
@FEW
@given(instance=facet_samples, which=st.integers(0, 7))
def test_answers_are_true(name, instance, which):
    geometry = reduce(instance)
    rates = [facet.rate for facet in facets_of(instance)]
    eta = float(rates[which % len(rates)])
    oracle = oracle_named(name)
    answer = oracle(geometry, eta, SHORT)
    check(geometry, eta, answer)
    surely, at_most = best_at(instance, eta, answer.soft)
    room = 1e-7 * (1 + at_most)
    assert float(answer.lower) <= at_most + room
    if answer.upper is not None:
        assert surely <= float(answer.upper) + room


@pytest.mark.parametrize("name", [name for name in REGISTRY if name not in ON_FACETS])
@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_oracles_of_spheres_refuse(name, norm):
    sample = make_instance("uniform-ball", 12, 2, seed=1, norm=norm)
    with pytest.raises(InputError, match=f"is for Euclidean costs.*these are {norm}"):
        ask(sample, eta_fraction=1.0, oracle=name)


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_exact_oracles_agree(norm):
    sample = make_instance("gaussian-mixture", 25, 3, seed=4, norm=norm)
    for facet in facets_of(sample)[:3]:
        eta = float(facet.rate)
        dense = [ask(sample, eta=eta, oracle=name) for name in ("milp", "cells")]
        assert dense[0].density == dense[1].density
        assert [answer.status for answer in dense] == ["optimal"] * 2
        soft = [ask(sample, eta=eta, oracle=f"{name}-soft") for name in ("milp", "cells")]
        assert soft[0].lower <= soft[1].upper
        assert soft[1].lower <= soft[0].upper


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("counting", [0, 10, 400_000])
def test_highs_and_counting_agree(norm, counting):
    """With no cone counted, HiGHS decides alone."""
    sample = make_instance("gaussian-mixture", 14, 2, seed=6, norm=norm)
    eta = float(facets_of(sample)[0].rate)
    for name in ("milp", "milp-soft"):
        one = ask(sample, eta=eta, oracle=oracle_named(name, counting=counting))
        other = ask(sample, eta=eta, oracle=oracle_named(name.replace("milp", "cells")))
        assert one.status == "optimal"
        assert one.lower <= other.upper
        assert other.lower <= one.upper
        whole = ask(sample, eta=eta, oracle=oracle_named(name, norm="exact"))
        assert whole.status == "optimal"
        assert whole.lower <= other.upper
        assert other.lower <= whole.upper


def test_approximations_of_a_sphere_are_refused():
    sample = make_instance("uniform-ball", 10, 2, seed=1, norm="l1")
    with pytest.raises(InputError, match="approximates a sphere; the facets of l1 are exact"):
        ask(sample, eta_fraction=1.0, oracle=oracle_named("milp", norm="secant"))


def test_rates_that_no_facet_has():
    sample = Instance.from_arrays([[0.0, 1.0]], [3.0, 1.0], visible=[0, 1], cost=1.0, norm="l1")
    geometry = reduce(sample)
    assert [float(f.rate) for f in facets_of(sample)] == [3.0, 1.0, -1.0, -3.0]
    for eta in (3.0, 1.0, -1.0, -3.0):
        assert not infeasible(geometry, eta)
    for eta in (2.0, 0.0, 3.1):
        assert infeasible(geometry, eta)
        assert ask(sample, eta=eta, oracle="cells").stop is Stop.INFEASIBLE


def test_several_facets_with_one_rate():
    """Equal rates: one question covers all facets that have it."""
    agents = [[0.0, 0.0], [0.0, 0.1], [0.0, 0.2], [5.0, 0.05], [9.0, -0.05]]
    sample = Instance.from_arrays(agents, [1.0, 1.0], visible=[0, 1], cost=1.0, norm="l1")
    assert len(rates_near(reduce(sample), 1.0)) == 2
    for name in ("milp", "cells"):
        answer = ask(sample, eta=1.0, oracle=name)
        assert answer.density == answer.upper == 1  # x1 ≥ 1 or so, on the second facet
    for name in ("random", "ransac", "ascent"):
        assert ask(sample, eta=1.0, oracle=name).density == 1


def test_a_feature_that_is_worth_nothing():
    """p_j = 0: linf has two facets with the same rate, and l1 two where nothing is gained."""
    agents = np.random.default_rng(0).standard_normal((9, 2))
    sample = Instance.from_arrays(agents, [1.0, 0.0], visible=[0, 1], cost=2.0, norm="linf")
    assert len(rates_near(reduce(sample), 1.0)) == 2
    found = solve(sample, oracle="milp-soft")
    assert found.complete
    assert len(found.grid) == 1


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_nothing_is_seen(norm):
    sample = Instance.from_arrays(
        [[0.0, 1.0, 2.0]] * 2, [0.0, 0.0, 1.0], visible=[0, 1], cost=1.0, norm=norm
    )
    assert ask(sample, eta=0.0, oracle="cells").density == 1
    assert solve(sample).gain == 0


def test_too_many_signs():
    sample = make_instance("uniform-ball", 5, 15, seed=1, norm="linf")
    with pytest.raises(InputError, match=r"at most 2\^14"):
        solve(sample)


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_ranges_over_cones_of_a_facet(norm, rank):
    """Scores of points of a cone lie in its range, and its points in the box of the model."""
    random = np.random.default_rng(rank)
    geometry = reduce(make_instance("heavy-tails", 10, rank, seed=rank, norm=norm))
    (part, *_) = parts_at(geometry, geometry.p_norm)
    cones = cover(part)
    for _ in range(6):
        if part.dimension:
            pieces = halves(cones)
            cones = joined([pieces[random.permutation(len(pieces))[:20]]])
        where = ranges(part, cones)
        lower, upper = part.bounds(cones.lower.min(axis=0), cones.upper.max(axis=0))
        for i in range(len(cones)):
            low, high = cones.lower[i], cones.upper[i]
            x = low + (high - low) * random.random((20, part.dimension))
            v = part.onto(x)
            scores = part.scores(v)
            assert (scores >= where.low[i] - 1e-12).all()
            assert (scores <= where.high[i] + 1e-12).all()
            u = part.fixed + v @ part.turn.T
            assert (u >= lower - 1e-12).all()
            assert (u <= upper + 1e-12).all()


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_directions_of_a_facet_have_its_rate(norm):
    random = np.random.default_rng(2)
    sample = make_instance("uniform-ball", 8, 3, seed=2, norm=norm)
    geometry = reduce(sample)
    for facet in facets_of(sample):
        for part in parts_at(geometry, float(facet.rate)):
            for v in part.draw(random, 30):
                found = recount(sample, from_reduced(geometry, part.direction(v), 0.0))
                assert found.eta_within(part.eta, geometry.band * geometry.p_norm)


# ------------------------------------------------------------------ other inner products


@FEW
@given(
    instance=instances(max_agents=7, max_width=3, kinds=("visible",), norms=("l2",)),
    share=st.sampled_from([0.3, 0.9, 1.0]),
)
def test_answers_with_prices_or_a_matrix_are_true(instance, share):
    one, two = reduce(instance), reduce(costs_brute_force.euclidean(instance))
    assert one.p_norm == pytest.approx(two.p_norm, rel=1e-6, abs=1e-300)
    if one.p_norm == 0 or one.rank == 1:
        share = 1.0
    for name in ("milp", "cells", "sweep", "random"):
        check(one, share * one.p_norm, oracle_named(name)(one, share * one.p_norm, SHORT))


@pytest.mark.parametrize("effort", [[0.001, 30.0, 2.0], [[2, 0.5, 0.2], [0.5, 1, 0], [0.2, 0, 1]]])
@pytest.mark.parametrize("name", ["milp", "cells", "sweep"])
def test_densities_agree_with_the_sample_transformed(name, effort):
    random = np.random.default_rng(9)
    prices = np.array(effort) if np.ndim(effort) == 1 else np.ones(3)
    sample = Instance.from_arrays(
        random.standard_normal((30, 3)) / prices, random.standard_normal(3) * prices,
        visible=[0, 1], cost=2.0, effort=effort,
    )  # fmt: skip
    other = costs_brute_force.euclidean(sample)
    for share in (1.0, 0.8, 0.3):
        found = [ask(i, eta_fraction=share, oracle=name) for i in (sample, other)]
        assert found[0].density == found[1].density
        assert [answer.status for answer in found] == ["optimal"] * 2


@pytest.mark.parametrize("effort", [[0.001, 30.0, 2.0], [[2, 0.5, 0.2], [0.5, 1, 0], [0.2, 0, 1]]])
def test_algorithm_1_agrees_with_the_sample_transformed(effort):
    random = np.random.default_rng(9)
    prices = np.array(effort) if np.ndim(effort) == 1 else np.ones(3)
    sample = Instance.from_arrays(
        random.standard_normal((25, 3)) / prices, random.standard_normal(3) * prices,
        visible=[0, 1], cost=random.uniform(1, 3, 25), effort=effort,
    )  # fmt: skip
    other = costs_brute_force.euclidean(sample)
    epsilon = 0.1 * reduce(sample).p_norm
    for skip in ("no", "cells"):
        one, two = (solve(i, epsilon=epsilon, skip=skip) for i in (sample, other))
        assert len(one.grid) == len(two.grid)
        assert float(one.gain) == pytest.approx(float(two.gain), rel=1e-9)
        assert one.bound.upper == pytest.approx(two.bound.upper, rel=1e-6)
