"""Algorithm 1: its guarantees against brute force, its options, its honesty when cut short."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mipmech import Budget, InputError, Instance, certify, make_instance, recount, solve, theory
from mipmech.budget import Event, Stop
from mipmech.design.algorithm1 import _most_moved
from mipmech.model import example1, reduce
from mipmech.oracles.milp.engine import Milp
from mipmech.oracles.registry import oracle_named
from tests import brute_force, referee
from tests.conftest import ROOT

TINY = sorted((ROOT / "instances" / "tiny").glob("*.json"))


def small(seed, equal=True):
    """A small random instance with two or three visible dimensions."""
    random = np.random.default_rng([seed, 31])
    rank, size = 2 + seed % 2, int(random.integers(4, 10))
    agents = random.standard_normal((size, rank + 1))
    if seed % 4 == 0:
        agents = agents.round()
    cost = 2.0 if equal else random.uniform(1.0, 5.0, size).tolist()
    weights = None if seed % 3 else random.choice([1.0, 2.0, 0.5], size).tolist()
    quality = random.standard_normal(rank + 1)
    return Instance.from_arrays(
        agents, quality, visible=list(range(rank)), cost=cost, weights=weights
    )


def best_gain(instance):
    """(lower, upper) of the best gain, by means that share nothing with the package."""
    if instance.view.rank <= 2:
        best = referee.best_gain(instance)
        return best * (1 - 1e-9), best * (1 + 1e-9)
    return brute_force.best_gain_bracket(instance)


def check(found, instance):
    """What every run owes: the gain is true, and what it proves holds."""
    low, high = best_gain(instance)
    if found.mechanism is not None:
        assert recount(instance, found.mechanism).gain == found.gain
    gain, bound = float(found.gain), found.bound
    assert bound.upper >= low
    assert gain >= bound.factor * low - bound.additive - 1e-12
    assert gain <= high + 1e-12
    assert bound.scope == "all"
    return low, high


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_a_quarter_of_the_optimum_for_equal_costs(seed):
    instance = small(seed)
    epsilon = 0.1 * theory.gain_ceiling(instance)
    found = solve(instance, epsilon=epsilon)
    _, high = check(found, instance)
    assert found.complete
    assert float(found.gain) >= high / 4 - epsilon
    assert found.bound.factor >= 0.25 * (1 - 1e-9)
    assert found.bound.additive <= found.bound.factor * 4 * epsilon * (1 + 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_unequal_costs(seed):
    instance = small(seed, equal=False)
    epsilon = 0.1 * theory.gain_ceiling(instance)
    found = solve(instance, epsilon=epsilon)
    _, high = check(found, instance)
    share = float(theory.quarter_factor(instance))
    assert float(found.gain) >= share * high - epsilon
    assert found.bound.factor >= share * (1 - 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("equal", [True, False])
def test_a_soft_oracle_gives_the_optimum_but_for_epsilon(seed, equal):
    instance = small(seed, equal)
    epsilon = 0.1 * theory.gain_ceiling(instance)
    found = solve(instance, epsilon=epsilon, oracle="milp-soft", skip="cones")
    _, high = check(found, instance)
    assert found.complete
    assert float(found.gain) >= high - epsilon * (1 + 1e-3)
    assert found.bound.factor == 1
    assert found.bound.additive <= epsilon * (1 + 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("path", TINY, ids=lambda path: path.stem)
def test_tiny_instances_with_known_optima(path):
    instance = Instance.load(path)
    epsilon = 0.05 * theory.gain_ceiling(instance) or 1.0
    skip = "cones" if instance.costs.norm == "l2" else "no"
    found = solve(instance, epsilon=epsilon, thresholds="best", skip=skip)
    assert found.complete
    gain = float(found.gain)
    assert gain <= instance.known.upper * (1 + 1e-9) + 1e-12
    assert found.bound.upper >= instance.known.lower * (1 - 1e-9)
    assert gain >= found.bound.factor * instance.known.lower - found.bound.additive - 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("skip", ["cones", "milp", "cells"])
@pytest.mark.parametrize("thresholds", ["two", "best"])
@pytest.mark.parametrize(
    ("family", "rank"), [("gaussian-mixture", 2), ("uniform-ball", 3), ("costs", 3), ("ties", 3)]
)
def test_skipping_changes_no_gain(family, rank, thresholds, skip):
    instance = make_instance(family, 25, rank, seed=4)
    epsilon = 0.1 * theory.gain_ceiling(instance)
    every = solve(instance, epsilon=epsilon, thresholds=thresholds)
    some = solve(instance, epsilon=epsilon, thresholds=thresholds, skip=skip)
    assert every.skipped == 0
    assert len(every.steps) == len(every.grid)
    assert some.gain == every.gain
    assert some.eta == every.eta
    assert len(some.steps) + some.skipped == len(some.grid)
    assert all(Fraction(s.upper) <= some.gain for s in some.skips)
    answered = {step.eta: step for step in every.steps}
    for block in some.skips:  # what was skipped could not have won
        inside = [s for e, s in answered.items() if block.low <= e <= block.high]
        assert len(inside) == block.count
        assert all(s.gain <= Fraction(block.upper) for s in inside)
    if thresholds == "best":
        assert some.skipped > 0


@pytest.mark.slow
def test_example1_with_the_paper_s_thresholds_and_the_best():
    sample = example1(agents=40)
    optimum = 0.25 / 3**0.5  # ℓ/√3
    two = solve(sample, epsilon=0.1 * optimum)
    best = solve(sample, epsilon=0.02 * optimum, thresholds="best")
    assert float(two.gain) >= optimum / 4
    assert float(best.gain) >= 0.99 * optimum


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ["cells-soft", "cells"])
def test_ten_thousand_values_of_eta(oracle):
    """The paper's own grid for ε = 0.1: every η answered, or skipped by proof."""
    instance = make_instance("gaussian-mixture", 60, 3, seed=2)
    found = solve(
        instance, epsilon=0.1, grid="paper", sigma=0.4, radius=1.0, oracle=oracle,
        thresholds="best", skip="cells",
    )  # fmt: skip
    assert len(found.grid) == 10_001
    assert found.complete
    assert len(found.steps) + found.skipped == len(found.grid)
    assert len(found.steps) < (10 if oracle == "cells-soft" else 2000)
    certified = certify(instance, gap=1e-5)
    assert found.gain <= Fraction(certified.upper)
    assert Fraction(found.bound.upper) >= certified.lower
    if oracle == "cells-soft":  # the grid is fine, so its best is nearly the best of all
        assert float(found.gain) >= float(certified.lower) * (1 - 1e-3)
    asked = oracle_named("cells-soft")
    for eta in found.grid.etas[::2000]:
        answer = asked(reduce(instance), float(eta), Budget())
        if oracle == "cells-soft":
            assert Fraction(float(eta)) * answer.lower <= found.gain * (1 + Fraction(1, 10**9))


def test_the_paper_s_grid():
    instance = make_instance("gaussian-mixture", 30, 2, seed=1)
    assert instance.smoothing is not None
    found = solve(instance, epsilon=0.4, grid="paper", skip="cones")
    assert found.grid_name == "paper"
    assert found.complete
    assert len(found.steps) + found.skipped == len(found.grid)
    given = solve(instance, epsilon=0.4, grid="paper", sigma=2.0, radius=1.0, skip="cones")
    assert len(given.grid) == 41  # 1/ε⁴ = 39.06, and both ends
    check(given, instance)
    bare = Instance.from_arrays(instance.agents, instance.quality, visible=[0, 1], cost=2.0)
    with pytest.raises(InputError, match="sigma: is needed"):
        solve(bare, epsilon=0.4, grid="paper")
    with pytest.raises(InputError, match="radius: is needed"):
        solve(bare, epsilon=0.4, grid="paper", sigma=1.0)


def test_any_grid_and_any_oracle():
    instance = small(3)
    geometry = reduce(instance)
    two = np.array([0.5, 1.0]) * geometry.p_norm
    found = solve(geometry, epsilon=1.0, grid=two, oracle=Milp(norm="secant"))
    assert (found.grid_name, len(found.steps)) == ("given", 2)
    check(found, instance)
    worse = solve(geometry, epsilon=1.0, grid=[-0.5 * geometry.p_norm])
    assert worse.gain == 0  # a rule that lowers quality is worse than none
    assert worse.mechanism is None
    some = solve(geometry, epsilon=1.0, grid=[0.5 * geometry.p_norm])
    assert some.bound.scope == "grid"  # nothing is said of directions nearer to P w_f
    assert some.bound.upper >= float(some.gain)
    with pytest.raises(InputError, match="finite"):
        solve(geometry, epsilon=1.0, grid=[])
    along = solve(instance, epsilon=0.1, oracle="projection")
    check(along, instance)  # no bounds at most η: the guarantee falls back on what is sure
    assert along.bound.factor <= 1
    assert sum(step.rule is not None for step in along.steps) == 1


def test_nothing_visible_and_one_dimension():
    hidden = Instance.from_arrays([[0.0, 1.0]], [0.0, 1.0], visible=[0], cost=1.0)
    found = solve(hidden, epsilon=0.1)
    assert found.gain == 0
    assert found.bound.upper == 0
    line = Instance.from_arrays([[0.0], [0.5], [0.6]], [1.0], visible=[0], cost=1.0)
    found = solve(line, epsilon=0.1, thresholds="best")
    assert len(found.steps) == 1
    assert float(found.gain) == pytest.approx(referee.best_gain(line))


@pytest.mark.slow
def test_a_time_limit_leaves_a_valid_statement():
    instance = make_instance("uniform-ball", 60, 6, seed=1)
    events: list[Event] = []
    found = solve(instance, epsilon=1e-3, budget=Budget(1.5, watch=events.append))
    assert found.stop is Stop.TIME
    assert not found.complete
    assert found.mechanism is not None
    assert found.bound.upper >= float(found.gain)
    assert found.bound.upper <= theory.gain_ceiling(instance) * (1 + 1e-12)
    assert [e.lower for e in events] == sorted(e.lower for e in events)
    assert found.seconds < 10
    none = solve(instance, epsilon=1e-3, budget=Budget(0.0))
    assert none.mechanism is None
    assert none.to_dict()["gain"] == 0


def test_the_result_tells_everything():
    instance = make_instance("costs", 20, 3, seed=2)
    found = solve(instance, epsilon=0.05, skip="cones", thresholds="best")
    shown = found.to_dict()
    assert shown["oracle_calls"] == {"made": len(found.steps), "skipped": found.skipped}
    assert set(shown["bound"]) == {"factor", "additive", "upper", "scope"}
    assert len(shown["steps"]) == len(found.steps)
    assert shown["mechanism"] == found.mechanism.to_dict()
    assert shown["seconds"] > 0
    assert "skipped" in repr(found)
    assert found.recount.gain == found.gain


@pytest.mark.parametrize(
    "bad",
    [
        {"epsilon": 0.0},
        {"epsilon": 0.1, "grid": "square"},
        {"epsilon": 0.1, "thresholds": "three"},
        {"epsilon": 0.1, "skip": "all"},
        {"epsilon": 0.1, "oracle": "delphi"},
    ],
)
def test_options_are_checked(bad):
    with pytest.raises(InputError):
        solve(small(1), **bad)


def test_the_most_that_a_share_of_the_agents_can_move():
    """Against every set of agents: no set of at most that weight moves more."""
    random = np.random.default_rng(9)
    cost, weights = random.uniform(0.5, 4.0, 8), random.integers(0, 4, 8) + 0.5
    weights[3] = 0.0
    agents = random.standard_normal((8, 1))
    sample = Instance.from_arrays(agents, [1.0], visible=[0], cost=cost.tolist(), weights=weights)
    most = _most_moved(sample)
    share = weights / weights.sum()
    chosen = (np.arange(256)[:, None] >> np.arange(8)) & 1
    mass, moved = chosen @ share, chosen @ (share / cost)
    for m, d in zip(mass, moved, strict=True):
        assert float(most(Fraction(m))) >= d * (1 - 1e-15)
    assert float(most(Fraction(1))) == pytest.approx(float(share @ (1 / cost)))
