"""The contract that every oracle goes through."""

from __future__ import annotations

import dataclasses
import math
import signal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mipmech import Answer, Budget, InputError, Instance, ask, make_instance, recount
from mipmech.budget import Event, Stop
from mipmech.model import densest_threshold, from_reduced, reduce
from mipmech.model.geometry import geometry_of
from mipmech.model.groups import parse_groups
from mipmech.oracles.base import OracleFault, grade, infeasible
from mipmech.oracles.registry import REGISTRY, oracle_named
from mipmech.tolerances import BAND, SOFT_CLOSED
from tests import referee
from tests import requirements_referee as truth
from tests.samples import instances, required, tied_instances

FAST = settings(max_examples=min(40, settings().max_examples))
# A short run of the optimiser owes what a long one owes.
SHORT = {"anneal": {"evaluations": 300}}


def asked(name, geometry, eta, **budget) -> Answer:
    try:
        oracle = oracle_named(name, **SHORT.get(name, {}))
        return oracle(geometry, eta, Budget(**{"seconds": 10.0, **budget}))
    except InputError as error:
        if error.field == "oracle":  # the sweep knows circles, no larger spheres, and says so
            assume(False)
        raise


def check(geometry, eta, answer):
    """What any answer of any oracle must satisfy."""
    if answer.stop is Stop.INFEASIBLE:
        assert infeasible(geometry, eta)
        assert answer.mechanism is None
        assert answer.status == "infeasible"
        return
    if answer.mechanism is not None:
        again = recount(geometry.instance, answer.mechanism)
        assert again.density == answer.density
        assert again.eta_within(eta, geometry.band * geometry.p_norm)
    if answer.upper is not None:
        assert answer.lower <= answer.upper
        assert answer.soft or answer.upper <= 1
        assert answer.level in ("proved", "attested")
        assert (answer.status == "optimal") == answer.closed
        assert not answer.closed or answer.gap <= SOFT_CLOSED
    else:
        assert answer.level is None
        assert answer.status == ("gap" if answer.mechanism is None else "feasible")
        assert answer.gap == 1
    shown = answer.to_dict()
    assert Fraction(shown["density"]["lower"]) <= answer.density
    wanted = shown["soft_density" if answer.soft else "density"]
    assert Fraction(wanted["lower"]) <= answer.lower
    if answer.upper is not None:
        assert Fraction(wanted["upper"]) >= answer.upper


@pytest.mark.parametrize("name", REGISTRY)
class TestContract:
    @FAST
    @given(geometry=instances().map(reduce), share=st.sampled_from([-1, 0, 0.3, 0.9, 1, 1.5]))
    def test_answers_are_true(self, name, geometry, share):
        eta = share * geometry.p_norm
        check(geometry, eta, asked(name, geometry, eta))

    @FAST
    @given(geometry=instances(max_agents=6).map(reduce))
    def test_the_bound_holds_where_only_one_direction_is_left(self, name, geometry):
        """At η = ‖p‖ that is P w_f itself; the referee finds its best density exactly."""
        if geometry.p_norm == 0:
            return
        answer = asked(name, geometry, geometry.p_norm)
        weights = from_reduced(geometry, geometry.p / geometry.p_norm, 0.0)
        exact = referee.exact_weights(geometry.instance, weights)
        best = referee.best_density(geometry.instance, exact)
        if answer.upper is not None and not answer.soft:
            assert best <= answer.upper

    @pytest.mark.parametrize(
        ("agents", "quality", "seen", "eta"),
        [
            ([[0.0, 0.0], [1.0, 0.0]], [1.0, 0.0], [0, 1], 1.1),  # beyond ‖P w_f‖
            ([[0.0], [1.0]], [1.0], [0], 0.5),  # k = 1: only ±‖P w_f‖
            ([[0.0, 0.0], [1.0, 0.0]], [0.0, 1.0], [0], 0.1),  # p = 0: only 0
        ],
    )
    def test_infeasible_eta(self, name, agents, quality, seen, eta):
        geometry = reduce(Instance.from_arrays(agents, quality, visible=seen, cost=1.0))
        answer = asked(name, geometry, eta)
        assert answer.stop is Stop.INFEASIBLE
        assert answer.to_dict()["mechanism"] is None

    def test_reproducible_and_recorded(self, name):
        geometry = reduce(make_instance("gaussian-mixture", 40, 3, seed=2))
        eta = geometry.p_norm
        first, second = (asked(name, geometry, eta) for _ in range(2))
        assert first.mechanism is not None  # every oracle knows the only direction at ‖P w_f‖
        assert (first.mechanism, first.upper) == (second.mechanism, second.upper)
        assert repr(oracle_named(name)) == repr(oracle_named(name))
        with pytest.raises(AttributeError):
            oracle_named(name).anything = 1

    def test_no_time_at_all_still_gives_an_answer(self, name):
        geometry = reduce(make_instance("heavy-tails", 60, 3, seed=2))
        check(geometry, geometry.p_norm, asked(name, geometry, geometry.p_norm, seconds=0.0))

    def test_events_close_in(self, name):
        events: list[Event] = []
        geometry = reduce(make_instance("uniform-ball", 30, 2, seed=2))
        answer = asked(name, geometry, geometry.p_norm, watch=events.append)
        lowers = [e.lower for e in events]
        uppers = [e.upper for e in events if e.upper is not None]
        assert lowers == sorted(lowers)
        assert uppers == sorted(uppers, reverse=True)
        assert [e.seconds for e in events] == sorted(e.seconds for e in events)
        if events:
            assert lowers[-1] <= float(answer.lower)


@st.composite
def demanding(draw):
    """An instance with groups, requirements, and the labels of the groups."""
    instance = draw(tied_instances(max_agents=6))
    requirements, labels = draw(required(instance))
    if labels is not None:
        instance = with_groups(instance, labels)
    return instance, requirements, labels


def with_groups(instance, labels):
    return dataclasses.replace(instance, groups=parse_groups({"kind": labels}, instance.size))


@pytest.mark.parametrize("name", [name for name in REGISTRY if name != "sweep"])
class TestRequirements:
    @FAST
    @given(demanded=demanding(), share=st.sampled_from([0, 0.6, 1, -1]))
    def test_answers_meet_what_is_demanded(self, name, demanded, share):
        instance, requirements, labels = demanded
        try:
            geometry = geometry_of(instance, requirements)
        except InputError:  # features that are not seen; or every weight must be 0
            assume(False)
        eta = share * geometry.p_norm
        answer = asked(name, geometry, eta, seconds=2.0)
        if answer.stop is Stop.UNMET:
            assert answer.mechanism is None
            assert answer.status == "infeasible"
            assert answer.upper == 0
            if geometry.norm == "l2" or has_facets(name):
                assert asked("random", geometry, eta, seconds=1.0).mechanism is None
            return
        check(geometry, eta, answer)
        if answer.mechanism is None:
            return
        rule = answer.mechanism
        own = rule.view_weights or rule.weights
        assert truth.meets(instance, requirements, labels, own, rule.threshold)
        shown = answer.to_dict()
        assert "requirements" in shown
        assert shown["accepted"] == pytest.approx(float(answer.recount.accepted_share))

    def test_a_good_rule_is_found(self, name):
        """p is in the cone, and half may be accepted: along p there is such a rule."""
        sample = make_instance("gaussian-mixture", 30, 3, seed=2)
        along = from_reduced(reduce(sample), reduce(sample).steepest, 0.0).weights
        signs = {
            "nonnegative": [j for j, w in enumerate(along) if w > 0],
            "nonpositive": [j for j, w in enumerate(along) if w < 0],
        }
        require = {sign: some for sign, some in signs.items() if some}
        require |= {"accepted": [0.1, 0.5]}
        geometry = geometry_of(sample, require)
        answer = asked(name, geometry, geometry.p_norm)
        assert answer.mechanism is not None
        assert geometry.demands.met(answer.recount)


def has_facets(name):
    return getattr(oracle_named(name), "facets", False)


def test_the_sweep_refuses_requirements():
    sample = make_instance("gaussian-mixture", 30, 2, seed=2)
    with pytest.raises(InputError, match="sweep does not know requirements"):
        ask(sample, eta_fraction=1.0, oracle="sweep", require={"nonnegative": "all"})


def test_a_rule_that_fails_is_no_answer():
    """An oracle that ignores requirements is caught."""
    sample = make_instance("uniform-ball", 30, 2, seed=2)
    geometry = geometry_of(sample, {"accepted": [0.0, 0.0]})
    along = from_reduced(geometry, geometry.steepest, -2.0)
    named, timer = oracle_named("projection"), Budget().start()
    with pytest.raises(OracleFault, match="does not meet what is demanded"):
        grade(named, geometry, geometry.p_norm, along, stop=Stop.FINISHED, timer=timer)


def test_projection_closes_at_its_own_eta():
    geometry = reduce(make_instance("gaussian-mixture", 60, 3, seed=5))
    for sign in (1, -1):
        answer = asked("projection", geometry, sign * geometry.p_norm)
        assert answer.stop is Stop.CLOSED
        assert answer.recount.eta == pytest.approx(sign * geometry.p_norm)
    assert asked("projection", geometry, geometry.p_norm / 2).stop is Stop.NO_ANSWER


def test_the_projection_s_bound_holds_on_the_whole_band():
    """Directions at the rim of the band see agents that P w_f itself just misses."""
    far = 1e3
    shift = 1.2e-6 * far  # the band of 1e-12 is an angle of 1.4e-6
    agents = [[0.0, far], [1.0 + shift, -far], [0.0, 0.0]]
    geometry = reduce(Instance.from_arrays(agents, [1.0, 0.0], visible=[0, 1], cost=1.0))
    answer = asked("projection", geometry, 1.0)
    angle = 1.3e-6
    rim = from_reduced(geometry, [math.cos(angle), math.sin(angle)], 0.0)
    best = densest_threshold(geometry.instance, rim).recount
    assert best.eta_within(1.0, BAND)
    assert best.density == 1
    assert answer.density < best.density <= answer.upper


def test_asking_in_one_line():
    sample = make_instance("gaussian-mixture", 60, 3, seed=5)
    answer = ask(sample, eta_fraction=1.0, oracle="projection")
    assert answer.status == "optimal"
    assert answer.gap == 0
    assert answer.oracle == "Projection()"
    assert "optimal" in repr(answer)
    geometry = reduce(sample)
    again = ask(geometry, geometry.p_norm, oracle=oracle_named("projection"), budget=Budget(9.0))
    assert again.mechanism == answer.mechanism
    for bad in ({}, {"eta": 1.0, "eta_fraction": 1.0}):
        with pytest.raises(InputError, match="eta"):
            ask(sample, **bad)


@pytest.mark.parametrize("near", [0.5, 1e-2, 1e-5, 1e-8])
def test_the_band_can_be_met_on_nearly_dependent_views(near):
    """Weights v in floats come no nearer to η than the condition of the view allows."""
    rows = [[1.0, 0.7, 0.3, 0.2], [1.0, 0.7 + near, 0.3 - near / 3, 0.2]]
    agents = np.random.default_rng(0).standard_normal((5, 4))
    geometry = reduce(Instance.from_arrays(agents, [1.0, 2.0, 3.0, 4.0], view=rows, cost=1.0))
    p = geometry.p / np.linalg.norm(geometry.p)
    across = np.array([-p[1], p[0]])
    for share in (0.3, 0.9):
        for sign in (1, -1):
            u = share * p + sign * math.sqrt(1 - share**2) * across
            found = recount(geometry.instance, from_reduced(geometry, u, 0.0))
            assert found.eta_within(share * geometry.p_norm, geometry.band * geometry.p_norm)
    assert (geometry.band == BAND) == (near == 0.5)


def test_what_is_left_of_a_budget():
    budget = Budget(seconds=5.0, threads=2)
    rest = budget.rest(budget.start())
    assert rest.seconds <= 5.0
    assert rest.threads == 2


def test_projection_without_a_visible_quality():
    hidden = reduce(Instance.from_arrays([[0.0, 1.0]], [0.0, 1.0], visible=[0], cost=1.0))
    assert asked("projection", hidden, 0.0).stop is Stop.NO_ANSWER


def test_a_broken_oracle_is_caught():
    geometry = reduce(make_instance("uniform-ball", 30, 2, seed=2))
    timer = Budget().start()
    named = oracle_named("projection")
    along = from_reduced(geometry, geometry.p / geometry.p_norm, 0.2)
    with pytest.raises(OracleFault, match="asked for η"):
        grade(named, geometry, 0.1, along, stop=Stop.FINISHED, timer=timer)
    size, none = geometry.p_norm, Fraction(0)
    with pytest.raises(OracleFault, match="above its own bound"):
        grade(named, geometry, size, along, stop=Stop.FINISHED, timer=timer, upper=none)


def test_feasibility_is_decided_in_rationals():
    """‖(0.1, 0.2)‖ is irrational; both floats around it are feasible, η beyond the band is not."""
    geometry = reduce(Instance.from_arrays([[0.0, 1.0]], [0.1, 0.2], visible=[0, 1], cost=1.0))
    low, high = geometry.p_norm_bounds
    assert low < high
    assert not infeasible(geometry, low)
    assert not infeasible(geometry, high)
    assert infeasible(geometry, high * (1 + 2 * BAND))
    assert not infeasible(geometry, -low)
    assert infeasible(geometry, -high * (1 + 2 * BAND))


@pytest.mark.parametrize("eta", [math.nan, math.inf])
def test_eta_must_be_finite(eta):
    geometry = reduce(make_instance("uniform-ball", 5, 2, seed=2))
    with pytest.raises(InputError, match="eta"):
        asked("projection", geometry, eta)


def test_names_and_options():
    with pytest.raises(InputError, match="there is no oracle 'best'"):
        oracle_named("best")
    with pytest.raises(InputError, match="does not take these options"):
        oracle_named("projection", seed=1)


@pytest.mark.parametrize(
    "bad", [{"seconds": -1.0}, {"seconds": math.nan}, {"threads": 0}, {"nodes": -1}]
)
def test_budgets_are_checked(bad):
    with pytest.raises(InputError):
        Budget(**bad)


def test_a_clock_inside_an_interrupted_one_is_interrupted():
    """Ctrl-C may come between the start of a clock and its listening."""
    outer, inner = Budget().start(), Budget().start()
    with outer.listening():
        signal.raise_signal(signal.SIGINT)
        assert outer.left == 0
        assert inner.left > 0
        with inner.listening():
            assert inner.left == 0
    with Budget().start().listening():
        pass
    fresh = Budget().start()
    with fresh.listening():
        assert fresh.left > 0


def test_timers_count_down():
    timer = Budget(seconds=1e9).start()
    assert 0 <= timer.seconds < 1e6
    assert 0 < timer.left <= 1e9
    assert Budget(seconds=0.0).start().left == 0
    assert np.isinf(Budget().start().left)
