"""The exact oracles against the brute force, and what they owe in every odd case."""

from __future__ import annotations

import math
import signal
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from pyomo.environ import ConcreteModel

from formulations import Secant, add_eta, clique_cover, conflicts, naive_margin, support
from formulations.density import add_objective
from mipmech import Budget, InputError, Instance, make_instance, recount
from mipmech.budget import Event, Stop
from mipmech.model import densest_threshold, from_reduced, reduce
from mipmech.oracles.call import ask
from mipmech.oracles.milp.engine import Data, Milp, MilpSoft, _cutoff, model_of, soft_bound
from mipmech.oracles.milp.search import Search
from mipmech.oracles.shared.goals import Density, SoftDensity
from mipmech.oracles.shared.slices import slice_at
from mipmech.solver import Has, Program
from mipmech.tolerances import CLOSED, SOFT_CLOSED
from tests import brute_force
from tests.conftest import seeds

SHARES = (0.0, 0.3, 0.6, 0.9, 0.99, 1.0, -0.5)
TENSECONDS = Budget(seconds=10.0)


def random_instance(random, max_agents=14, max_rank=5):
    """Clouds and lattices, duplicates, offsets, scales; equal or unequal costs and weights."""
    rank, size = int(random.integers(1, max_rank + 1)), int(random.integers(2, max_agents + 1))
    lattice = random.random() < 0.3
    x = random.standard_normal((size, rank))
    if lattice:
        x = random.integers(-3, 4, (size, rank)).astype(float)
    if random.random() < 0.2:
        x[-1] = x[0]
    x = x * 10.0 ** random.integers(-3, 4) + random.choice([0.0, 0.0, 100.0])
    spread = float(np.abs(x - x.mean(axis=0)).max()) or 1.0
    quality = np.eye(rank)[0] if random.random() < 0.1 else random.standard_normal(rank)
    equal_costs, equal_weights = random.random(2) < 0.5
    reach = spread * random.uniform(0.05, 0.8, 1 if equal_costs else size)
    cost = float(1 / reach[0]) if equal_costs else (1 / reach).tolist()
    weights = None if equal_weights else random.choice([0.1, 0.3, 0.7, 1.0, 2.0], size).tolist()
    seen = list(range(rank))
    return Instance.from_arrays(x, quality, visible=seen, cost=cost, weights=weights)


def mass(instance, agents):
    weights = [Fraction(float(w)) for w in instance.weights]
    return sum((weights[i] for i in agents), Fraction(0)) / sum(weights)


def share_of(random, instance):
    return float(random.choice([1.0, -1.0] if instance.view.rank == 1 else SHARES))


def tolerance_of(share):
    """At η = ±‖p‖ the band is a cap of some 1e-6; elsewhere it moves scores by less than 1e-9."""
    return 4e-6 if abs(share) == 1 else 1e-9 if abs(share) < 0.99 else 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(3, 8))
@pytest.mark.parametrize(
    ("asked", "count"),
    [
        (Milp(), 45),
        (Milp(counting=0), 8),
        (Milp(norm="secant"), 8),
        (Milp(norm="secant", encoding="binary", segments=6, cliques=False), 4),
    ],
    ids=["cones", "cones without counting", "secant", "secant, binary"],
)
def test_the_interval_contains_the_optimum(seed, asked, count):
    """In all 520 instances, 195 of them in every run; those without ties close in ten seconds."""
    random = np.random.default_rng([seed, count])
    open_ = []
    for number in range(count):
        instance = random_instance(random)
        share = share_of(random, instance)
        geometry = reduce(instance)
        answer = asked(geometry, share * geometry.p_norm, TENSECONDS)
        truth = brute_force.best_density(instance, share * geometry.p_norm, tolerance_of(share))
        assert truth is not None
        assert answer.upper * (1 + Fraction(1, 10**12)) >= mass(instance, truth.sure_set)
        assert answer.density <= mass(instance, truth.most_set)
        if answer.status != "optimal" and not truth.tied:
            open_.append((number, answer))
    assert open_ == []  # the list of those that stay open


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(2, 4))
@pytest.mark.parametrize("counting", [400_000, 0])
def test_the_soft_interval_contains_the_optimum(seed, counting):
    random = np.random.default_rng([seed, 7])
    for _ in range(15 if counting else 6):
        instance = random_instance(random, max_agents=7, max_rank=4)
        share = share_of(random, instance)
        geometry = reduce(instance)
        eta = share * geometry.p_norm
        answer = MilpSoft(counting=counting)(geometry, eta, TENSECONDS)
        best = brute_force.best_soft_density(instance, eta)
        assert float(answer.upper) >= best * (1 - 1e-9)
        if abs(share) < 1:  # at the pole, the band reaches a little beyond η
            assert float(answer.lower) <= best * (1 + 1e-9)
        assert answer.status == "optimal"
        assert answer.gap <= SOFT_CLOSED


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(3, 6))
def test_lattices_with_ties(seed):
    """Reach equal to spacings: intervals hold; what is left open is a gap, not a wrong answer."""
    random = np.random.default_rng([seed, 11])
    for _ in range(8):
        rank, size = int(random.integers(2, 5)), int(random.integers(3, 11))
        x = random.integers(-2, 3, (size, rank)).astype(float)
        quality = np.eye(rank)[0] if random.random() < 0.5 else random.integers(-2, 3, rank) + 0.0
        if not quality.any():
            quality[0] = 1.0
        cost = float(random.choice([0.5, 1.0, 2.0, 5 / 3]))
        instance = Instance.from_arrays(x, quality, visible=list(range(rank)), cost=cost)
        geometry = reduce(instance)
        share = float(random.choice([0.0, 0.5, 0.6, 0.8]))
        eta = share * geometry.p_norm
        answer = Milp(most_cones=200_000)(geometry, eta, TENSECONDS)
        truth = brute_force.best_density(instance, eta)
        assert answer.upper >= mass(instance, truth.sure_set)
        assert answer.density <= mass(instance, truth.most_set)
        if not truth.tied:
            assert answer.status == "optimal"


def test_the_naive_model_lies_and_the_oracle_does_not():
    """40 agents, one constant M = 1e5, b free, the solver's default tolerances."""
    geometry = reduce(make_instance("uniform-ball", 40, 3, seed=1))
    eta = 0.6 * geometry.p_norm
    part = slice_at(geometry, eta)
    data = Data.of(part, Density.on(part))
    k = data.z.shape[1]
    model = ConcreteModel()
    Secant(6, "logarithmic").add(model, k, support(np.eye(k), data.p, *data.eta))
    add_eta(model, data.p, *data.eta)
    naive_margin(model, data.z, data.reach, window=(-1e5, 1e5), m=1e5)
    add_objective(model, model.s, data.weight, None)
    default = {"mip_feasibility_tolerance": 1e-6, "primal_feasibility_tolerance": 1e-6}
    claimed = Program(model, default).solve(Budget(30.0))
    answer = Milp()(geometry, eta, TENSECONDS)
    assert answer.density == answer.upper == Fraction(17, 40)
    assert claimed.has is Has.OPTIMUM
    assert claimed.objective > 17.5  # "optimal", and false


@pytest.mark.parametrize("asked", [Milp(), Milp(counting=0), Milp(norm="secant"), Milp(norm="box")])
def test_weights_are_never_floored(asked):
    """One agent of 0.5, or two of 0.3 + 0.21 = 0.51: flooring 0.51 agents would lose the two."""
    agents = [[0.0, 0.0, 0.0], [9.0, 0.0, 0.1], [9.0, 0.1, 0.0]]
    weights = [0.5, 0.3, 0.21]
    sample = Instance.from_arrays(
        agents, [1.0, 0.0, 0.0], visible=[0, 1, 2], cost=1.0, weights=weights
    )
    answer = asked(reduce(sample), 0.9, TENSECONDS)
    assert answer.recount.covered.tolist() == [1, 2]
    assert float(answer.density) == pytest.approx(0.51 / 1.01)
    assert answer.status == "optimal"
    assert answer.gap <= CLOSED


@pytest.mark.parametrize("soft", [False, True])
def test_weights_that_the_solver_drops_are_in_the_bound(soft):
    """HiGHS leaves coefficients up to 1e-9 out of a row: a proof by cutoff must allow for them."""
    size = 2000
    agents = np.random.default_rng(2).standard_normal((size, 3))
    weights = np.full(size, 1e-13)
    weights[0] = 1.0
    sample = Instance.from_arrays(
        agents, [1.0, 0.0, 0.0], visible=[0, 1, 2], cost=1.0, weights=weights
    )
    part = slice_at(reduce(sample), 0.5)
    goal = SoftDensity(part, 1e-5) if soft else Density.on(part)
    search = Search(part, goal, Budget().start(), 0.3 if soft else float(goal.mass.whole[0]))
    _units, proved, cutoff = _cutoff(search, Data.of(part, goal))
    light = part.weight[1:] @ (goal.reach[1:] if soft else np.ones(size - 1))
    assert light > 0
    assert proved - cutoff >= light / (1.0 if soft else float(goal.mass.unit)) * (1 - 1e-6)


SQUARE = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]


@pytest.mark.parametrize("asked", [Milp(), MilpSoft(), Milp(norm="secant"), Milp(norm="box")])
class TestOddCases:
    def ask(self, asked, agents, quality, eta, seen=None, **more):
        seen = list(range(len(quality))) if seen is None else seen
        sample = Instance.from_arrays(agents, quality, visible=seen, **{"cost": 1.0, **more})
        return asked(reduce(sample), eta, TENSECONDS)

    def test_one_dimension(self, asked):
        answer = self.ask(asked, [[0.0], [0.5], [3.0]], [2.0], 2.0)
        assert answer.status == "optimal"
        assert answer.recount.covered.tolist() == [0, 1]
        assert self.ask(asked, [[0.0], [0.5], [3.0]], [2.0], 1.0).status == "infeasible"

    def test_two_dimensions_leave_two_directions(self, asked):
        answer = self.ask(asked, SQUARE, [1.0, 0.0], 0.8)
        assert answer.status == "optimal"
        assert abs(answer.mechanism.weights[1]) == pytest.approx(0.6)

    @pytest.mark.parametrize("eta", [0.0, 1.0, -1.0, 1 - 1e-13, 1 - 1e-9, 0.999999])
    def test_special_values_of_eta(self, asked, eta):
        agents = np.random.default_rng(3).standard_normal((9, 3))
        answer = self.ask(asked, agents, [1.0, 0.0, 0.0], eta)
        assert answer.mechanism is not None
        assert answer.recount.eta_within(eta, 1e-12)
        assert answer.lower <= answer.upper

    def test_beyond_the_seen_quality(self, asked):
        assert self.ask(asked, SQUARE, [1.0, 0.0], 1.1).status == "infeasible"

    def test_no_visible_quality(self, asked):
        """P = 0: every direction has η = 0."""
        agents = np.random.default_rng(4).standard_normal((8, 3))
        answer = self.ask(asked, agents, [0.0, 0.0, 1.0], 0.0, seen=[0, 1])
        assert answer.status == "optimal"
        assert answer.recount.gain == 0
        assert self.ask(asked, agents, [0.0, 0.0, 1.0], 0.1, seen=[0, 1]).status == "infeasible"

    def test_fewer_agents_than_dimensions(self, asked):
        agents = np.random.default_rng(5).standard_normal((3, 5))
        answer = self.ask(asked, agents, [1.0, 2.0, 0.0, 0.0, 1.0], 0.7)
        assert answer.status == "optimal"
        assert len(answer.recount.covered) == 3

    def test_all_agents_equal(self, asked):
        answer = self.ask(asked, [[1.0, 2.0, 3.0]] * 4, [1.0, 1.0, 0.0], 0.5)
        assert answer.status == "optimal"
        assert answer.density == 1

    def test_agents_without_weight_do_not_count(self, asked):
        agents = [[0.0, 0.0, 0.0], [0.1, 0.0, 0.0], [5.0, 5.0, 5.0]]
        answer = self.ask(asked, agents, [1.0, 0.0, 0.0], 0.5, weights=[1.0, 1.0, 0.0])
        assert answer.status == "optimal"
        assert answer.density == 1

    def test_huge_reach_beside_a_small_one(self, asked):
        agents = np.random.default_rng(6).standard_normal((6, 3))
        cost = [1e-9, 1.0, 2.0, 1e9, 1e-4, 1.0]
        answer = self.ask(asked, agents, [1.0, 0.0, 0.0], 0.5, cost=cost)
        assert answer.mechanism is not None
        assert answer.lower <= answer.upper

    @pytest.mark.slow
    def test_no_time_and_no_nodes(self, asked):
        geometry = reduce(make_instance("uniform-ball", 25, 6, seed=1))
        for budget in (Budget(0.0), Budget(0.05), Budget(5.0, nodes=0)):
            answer = asked(geometry, 0.6 * geometry.p_norm, budget)
            assert answer.mechanism is not None
            assert answer.lower <= answer.upper


def test_a_limit_on_nodes():
    geometry = reduce(make_instance("uniform-ball", 30, 6, seed=4))
    answer = Milp(counting=0)(geometry, 0.6 * geometry.p_norm, Budget(20.0, nodes=100))
    assert answer.stop is Stop.NODES
    assert answer.lower < answer.upper
    assert 100 <= answer.work["nodes"] <= 200


@pytest.mark.slow
def test_a_short_limit_on_a_hard_instance():
    geometry = reduce(make_instance("uniform-ball", 80, 8, seed=1))
    answer = Milp()(geometry, 0.6 * geometry.p_norm, Budget(1.0))
    assert answer.stop is Stop.TIME
    assert answer.status == "gap"
    assert 0 < answer.density < answer.upper <= 1
    assert recount(geometry.instance, answer.mechanism).density == answer.density
    assert answer.seconds < 5


def thirty():
    geometry = reduce(make_instance("uniform-ball", 30, 6, seed=4))
    return geometry, 0.6 * geometry.p_norm


@cache
def uninterrupted(soft):
    return (MilpSoft() if soft else Milp())(*thirty(), TENSECONDS)


@pytest.mark.slow
@pytest.mark.parametrize("moment", [1, 2, 3, 5])
@pytest.mark.parametrize("asked", [Milp(), Milp(counting=0), Milp(norm="secant"), MilpSoft()])
def test_bounds_hold_whenever_ctrl_c_comes(asked, moment):
    geometry, eta = thirty()
    seen: list[Event] = []

    def watch(event):
        seen.append(event)
        if len(seen) == moment:
            signal.raise_signal(signal.SIGINT)

    answer = asked(geometry, eta, Budget(30.0, watch=watch))
    best = uninterrupted(answer.soft)
    assert answer.mechanism is not None
    assert answer.lower <= best.upper
    assert best.lower <= answer.upper
    if len(seen) >= moment:
        assert answer.stop in (Stop.INTERRUPTED, Stop.CLOSED)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_is_not_kept_waiting():
    timer = Budget().start()
    with timer.listening():
        signal.raise_signal(signal.SIGINT)
        assert timer.left == 0
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("asked", [Milp(), Milp(counting=0), MilpSoft()])
def test_closed_values_do_not_depend_on_coordinates(asked):
    """Rotation, translation and the order of agents; weights and costs differ."""
    random = np.random.default_rng(8)
    agents, quality = random.standard_normal((12, 4)), random.standard_normal(4)
    cost, weights = random.uniform(1, 4, 12), random.integers(1, 4, 12).astype(float)
    turn = np.linalg.qr(random.standard_normal((4, 4)))[0]
    order = random.permutation(12)
    turned = (agents @ turn.T + 100.0)[order]
    values = []
    for x, q, c, w in (
        (agents, quality, cost, weights),
        (turned, turn @ quality, cost[order], weights[order]),
    ):
        sample = Instance.from_arrays(x, q, visible=[0, 1, 2, 3], cost=c.tolist(), weights=w)
        geometry = reduce(sample)
        values.append(asked(geometry, 0.6 * geometry.p_norm, TENSECONDS))
    assert all(answer.status == "optimal" for answer in values)
    assert float(values[0].lower) == pytest.approx(float(values[1].lower), rel=3e-5)


@pytest.mark.parametrize("norm", ["cones", "secant"])
def test_general_views(norm):
    sample = make_instance("gaussian-mixture", 20, 4, seed=3)
    rows = np.random.default_rng(1).standard_normal((3, sample.width))
    seen = Instance.from_arrays(sample.agents, sample.quality, view=rows, cost=2.0)
    geometry = reduce(seen)
    answer = Milp(norm=norm)(geometry, 0.5 * geometry.p_norm, TENSECONDS)
    assert answer.status == "optimal"
    assert answer.mechanism.view_weights is not None


@pytest.mark.slow
def test_events_tell_of_the_bounds():
    events: list[Event] = []
    geometry = reduce(make_instance("uniform-ball", 30, 6, seed=4))
    for asked in (Milp(), Milp(norm="secant")):
        events.clear()
        answer = asked(geometry, 0.6 * geometry.p_norm, Budget(1.0, watch=events.append))
        assert len(events) >= 2
        assert all(e.lower <= float(answer.density) + 1e-12 for e in events)
        assert all(e.upper >= float(answer.density) - 1e-12 for e in events)


def test_the_oracle_is_recorded():
    assert repr(Milp()).startswith("Milp(norm='cones', segments=8")
    assert "gap=1e-05" in repr(MilpSoft())
    with pytest.raises(InputError, match="norm"):
        Milp(norm="sphere")
    with pytest.raises(InputError, match="gap"):
        MilpSoft(gap=math.nan)
    with pytest.raises(InputError, match="segments"):
        Milp(norm="secant", segments=0)


# ------------------------------------------------------------------ cliques


def cliques_of(geometry, eta):
    part = slice_at(geometry, eta)
    data = Data.of(part, Density.on(part))
    graph = conflicts(data.z, data.reach, data.p, *data.eta, widen=data.widen)
    return part, clique_cover(graph)


@pytest.mark.parametrize("seed", range(10))
def test_cliques_cut_off_no_attainable_set(seed):
    """Every vertex of the brute force, unequal reach included: at most one agent of a clique."""
    random = np.random.default_rng([seed, 21])
    size = 9
    agents = random.standard_normal((size, 3)) * [3.0, 1.0, 1.0]
    cost = random.uniform(0.8, 4.0, size).tolist()
    sample = Instance.from_arrays(agents, [1.0, 0.0, 0.0], visible=[0, 1, 2], cost=cost)
    geometry = reduce(sample)
    for eta in (0.9, 0.97):
        part, cliques = cliques_of(geometry, eta)
        truth = brute_force.best_density(sample, eta)
        best = set(truth.sure_set)
        assert all(len(best & {int(part.agents[i]) for i in c}) <= 1 for c in cliques)
        v = random.standard_normal((4000, 2))
        scores = part.scores(v / np.linalg.norm(v, axis=1)[:, None])
        for i in range(size):  # thresholds at which agent i is just in
            for b in (scores[:, i], scores[:, i] + part.reach[i]):
                inside = (scores <= b[:, None]) & (b[:, None] <= scores + part.reach)
                for clique in cliques:
                    assert inside[:, list(clique)].sum(axis=1).max() <= 1


def test_cliques_lower_the_relaxation_of_a_shipped_instance(root):
    geometry = reduce(Instance.load(root / "instances/small/clustered-lines-m40-k5-s8.json"))
    part = slice_at(geometry, 0.97 * geometry.p_norm)
    bounds = {}
    for cliques in (True, False):
        model = model_of(Milp(cliques=cliques), part, Density.on(part), Secant(8))
        bounds[cliques] = Program(model, relaxed=True).solve().bound
    assert bounds[True] == pytest.approx(14.82, abs=0.01)  # the figures of formulations/README.md
    assert bounds[False] == pytest.approx(34.62, abs=0.01)
    answer = Milp()(geometry, 0.97 * geometry.p_norm, TENSECONDS)
    assert answer.density == answer.upper == Fraction(10, 40)


# ------------------------------------------------------------------ bounds on blocks of η


@pytest.mark.parametrize("milp", [False, True])
def test_block_bounds_hold_for_every_direction_in_the_block(milp):
    geometry = reduce(make_instance("costs", 15, 4, seed=2))
    size = geometry.p_norm
    random = np.random.default_rng(5)
    low, high = 0.5 * size, 0.6 * size
    bound = float(soft_bound(geometry, low, high, 0.0, 3000, Budget(20.0), milp=milp))
    part = slice_at(geometry, low, high)
    for _ in range(300):
        theta = random.uniform(part.least, part.most)
        v = random.standard_normal(part.dimension)
        v /= np.linalg.norm(v)
        u = math.cos(theta) * part.towards + math.sin(theta) * (part.turn @ v)
        found = densest_threshold(geometry.instance, from_reduced(geometry, u, 0.0)).recount
        assert found.soft_density <= bound * (1 + 1e-12)
    best = MilpSoft()(geometry, 0.55 * size, TENSECONDS)
    assert float(best.lower) <= bound


def test_threads_do_not_move_each_other_s_models():
    """The same geometry from two threads: the answers of one after the other."""
    geometry = reduce(make_instance("gaussian-mixture", 12, 4, seed=3))
    etas = [share * geometry.p_norm for share in (0.1, 0.5, 0.3, 0.7)]
    asked = Milp(counting=0, cliques=False)
    one_by_one = [asked(geometry, eta, TENSECONDS) for eta in etas]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda eta: asked(geometry, eta, TENSECONDS), etas))
    assert all(answer.work["models_solved"] > 0 for answer in together)
    assert [a.upper for a in together] == [a.upper for a in one_by_one]


@pytest.mark.parametrize("long", [1e3, 1e16, 1e50])
@pytest.mark.parametrize("asked", [Milp(), Milp(norm="secant"), MilpSoft(norm="secant")])
def test_one_agent_with_a_very_long_reach(asked, long):
    agents = np.random.default_rng(0).standard_normal((12, 3))
    cost = [1 / long, *[2.0] * 11]
    sample = Instance.from_arrays(agents, [1.0, 2.0, -1.0], visible=[0, 1, 2], cost=cost)
    geometry = reduce(sample)
    answer = asked(geometry, 0.3 * geometry.p_norm, TENSECONDS)
    assert answer.mechanism is not None
    assert answer.lower <= answer.upper
    if not answer.soft:
        truth = brute_force.best_density(sample, 0.3 * geometry.p_norm)
        assert answer.density == answer.upper == mass(sample, truth.sure_set)


def test_asking_by_name():
    sample = make_instance("gaussian-mixture", 30, 4, seed=1)
    answer = ask(sample, eta_fraction=0.6, oracle="milp")
    assert (answer.status, answer.level) == ("optimal", "attested")
    assert ask(sample, eta_fraction=0.6, oracle="milp-soft").soft
