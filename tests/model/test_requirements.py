"""Requirements: read, refused, tested in rationals, and the best threshold that meets them."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mipmech import InputError, Instance, Mechanism, certify, recount
from mipmech.model.geometry import geometry_of
from mipmech.model.requirements import Own, Requirements, demands_of
from mipmech.model.requirements.directions import ZERO, DirectionCone, reduced_rows
from mipmech.model.requirements.feasible import best_feasible, densest_feasible, steady_feasible
from tests import requirements_referee as referee
from tests.samples import instances, required, tied_instances

FEATURES = ("gpa", "sat", "essay")
SAMPLE = Instance.from_arrays(
    [[1.0, 2.0, 0.0], [0.0, 1.0, 1.0], [2.0, 0.5, 0.0], [0.0, 0.0, 1.0]],
    [1.0, 1.0, 0.0],
    features=FEATURES,
    visible=["gpa", "sat"],
    cost=1.0,
    groups={"sex": ["f", "m", "f", "m"]},
)

# ------------------------------------------------------------------ reading


def test_a_file_reads_back_as_it_was_written(tmp_path):
    given_ = Requirements(
        nonnegative="all",
        nonpositive=["essay"],
        order=[["gpa", "sat"]],
        accepted=(0.1, 0.3),
        parity={"groups": "sex", "within": 0.05},
    )
    file = tmp_path / "rules.json"
    file.write_text(json.dumps(given_.to_dict()))
    assert Requirements.load(file) == given_
    assert Requirements.of(given_.to_dict()) == given_
    assert Requirements.of(None) == Requirements()
    assert not Requirements()


def test_toml_says_the_same(tmp_path):
    file = tmp_path / "rules.toml"
    file.write_text(
        'nonnegative = "all"\norder = [["gpa", "sat"]]\naccepted = [0, 0.3]\n'
        'parity = {groups = "sex", within = 0.05}\n'
    )
    assert Requirements.load(file) == Requirements(
        nonnegative="all",
        order=[("gpa", "sat")],
        accepted=[0, 0.3],
        parity={"groups": "sex", "within": 0.05},
    )


@pytest.mark.parametrize(
    ("content", "field", "said"),
    [
        ({"nonegative": "all"}, "nonegative", "did you mean 'nonnegative'"),
        ({"format": "mipmech/requirements@2"}, "format", "mipmech/requirements@1"),
        ({"nonnegative": "sat"}, "nonnegative", '"all", or a list'),
        ({"nonnegative": []}, "nonnegative", "at least one"),
        ({"nonnegative": [1.5]}, "nonnegative", "name or number"),
        ({"nonnegative": [True]}, "nonnegative", "name or number"),
        ({"nonpositive": None}, "nonpositive", "null"),
        ({"order": ["gpa"]}, "order", "pair"),
        ({"order": [["gpa", "sat", "x"]]}, "order", "pair"),
        ({"order": []}, "order", "empty"),
        ({"accepted": 0.3}, "accepted", "list"),
        ({"accepted": [0.3]}, "accepted", "[low, high]"),
        ({"accepted": [0.3, 0.1]}, "accepted", "swap"),
        ({"accepted": [0, 30]}, "accepted", "from 0 to 1"),
        ({"accepted": [0, "x"]}, "accepted", "number"),
        ({"accepted": [float("nan"), 1]}, "accepted", "number"),
        ({"parity": "sex"}, "parity", '"groups"'),
        ({"parity": {"groups": "sex"}}, "parity", '"within"'),
        ({"parity": {"groups": 3, "within": 0.1}}, "parity.groups", "text"),
        ({"parity": {"groups": "sex", "within": -1}}, "parity.within", "from 0 to 1"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(content, field, said):
    with pytest.raises(InputError) as caught:
        Requirements.from_dict(content)
    assert caught.value.field == field
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("content", "field", "said"),
    [
        ({"nonnegative": ["sta"]}, "nonnegative", "did you mean 'sat'"),
        ({"nonnegative": ["essay"]}, "nonnegative", "does not see"),
        ({"nonnegative": [2]}, "nonnegative", "does not see"),
        ({"nonnegative": [7]}, "nonnegative", "0 to 2"),
        ({"order": [["gpa", "gpa"]]}, "order", "itself"),
        ({"parity": {"groups": "race", "within": 0.1}}, "parity", "sex"),
        ({"nonnegative": "all", "nonpositive": "all"}, "requirements", "contradict"),
        (
            {"nonnegative": ["gpa"], "nonpositive": ["sat"], "order": [["sat", "gpa"]]},
            "requirements",
            "contradict",
        ),
    ],
)
def test_what_does_not_fit_an_instance_is_said(content, field, said):
    with pytest.raises(InputError) as caught:
        demands_of(SAMPLE, Requirements.from_dict(content))
    assert caught.value.field == field
    assert said in str(caught.value)


def test_an_instance_without_groups_says_so():
    bare = Instance.from_arrays([[1.0]], [1.0], visible=[0], cost=1.0)
    with pytest.raises(InputError, match="add them"):
        demands_of(bare, Requirements(parity={"groups": "sex", "within": 0.1}))


def test_rows_of_a_view_have_numbers_and_dependent_ones_have_no_weights():
    viewed = {"view": [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]], "cost": 1.0}
    sample = Instance.from_arrays(SAMPLE.agents, [1.0, 1.0, 0.0], **viewed)
    demands = demands_of(sample, Requirements(nonnegative=[1]))
    assert demands.cone.pairs == ((1, ZERO),)
    with pytest.raises(InputError, match="numbers of"):
        demands_of(sample, Requirements(nonnegative=["gpa"]))
    viewed["view"] = [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 2.0, 1.0]]
    sample = Instance.from_arrays(SAMPLE.agents, [1.0, 1.0, 0.0], **viewed)
    with pytest.raises(InputError, match="depend on the others"):
        demands_of(sample, Requirements(nonnegative=[1]))


def test_fields_are_dropped_and_updated():
    both = Requirements(nonnegative="all", accepted=[0, 0.3])
    assert both.given == ("nonnegative", "accepted")
    assert both.without("accepted") == Requirements(nonnegative="all")
    assert both.updated(Requirements(accepted=[0, 0.5])).accepted.high == 0.5
    own = Own(rows=lambda _: None, holds=lambda _: False, name="never")
    assert Requirements(own=own).given == ("own",)
    assert "never" in repr(Requirements(own=own))


# ------------------------------------------------------------------ the exact test


def test_limits_count_as_they_are_written():
    """0.3 is a float below 3/10; three of ten agents are not more than that."""
    sample = Instance.from_arrays(np.arange(10.0)[:, None], [1.0], visible=[0], cost=10.0)
    found = recount(sample, Mechanism((1.0,), 7.0))
    assert found.accepted_share == Fraction(3, 10)
    assert demands_of(sample, Requirements(accepted=[0.3, 0.3])).met(found)
    missed = demands_of(sample, Requirements(accepted=[0, 0.25])).failures(found)
    assert [(f.field, f.by) for f in missed] == [("accepted", Fraction(1, 20))]


@given(data=st.data())
def test_failures_are_those_of_the_referee(data):
    instance = data.draw(tied_instances())
    demanded, labels = data.draw(required(instance))
    grouped = with_groups(instance, labels)
    weights = data.draw(
        st.lists(st.integers(-2, 2), min_size=instance.width, max_size=instance.width)
    )
    columns = instance.view.columns
    weights = [w if columns is not None and j in columns else 0 for j, w in enumerate(weights)]
    if columns is None or not any(weights):
        return
    try:
        demands = demands_of(grouped, Requirements.of(demanded))
    except InputError:
        return
    rule = Mechanism(tuple(map(float, weights)), float(data.draw(st.integers(-6, 6))) / 2)
    missed = {failure.field for failure in demands.failures(recount(grouped, rule))}
    expected = referee.failures(instance, demanded, labels, rule.weights, rule.threshold)
    assert missed == {field for field, by in expected.items() if by}


def with_groups(instance, labels):
    if labels is None:
        return instance
    content = {**instance.to_dict(), "groups": {"kind": list(labels)}}
    content.pop("format")
    return Instance.from_arrays(**content)


# ------------------------------------------------------------------ directions

EDGES = st.lists(
    st.tuples(st.integers(-1, 3), st.integers(-1, 3)).filter(lambda e: e[0] != e[1]), max_size=6
)
WEIGHTS = st.lists(st.floats(-2, 2), min_size=4, max_size=4)


@given(pairs=EDGES, weights=WEIGHTS)
def test_repaired_weights_meet_every_pair_and_good_ones_stay(pairs, weights):
    cone = DirectionCone((0, 1, 2, 3), tuple(dict.fromkeys(pairs)))
    exact = [Fraction(w) for w in weights]
    repaired = cone.repaired(weights)
    if any(repaired):
        assert cone.allows([Fraction(w) for w in repaired])
    if any(exact) and cone.allows(exact):
        assert repaired == weights


@given(pairs=EDGES)
def test_an_open_cone_has_a_direction_with_room_to_spare(pairs):
    """Open, or not, by trying the orders of all weights and 0."""
    cone = DirectionCone((0, 1, 2, 3), tuple(dict.fromkeys(pairs)))
    free = [j for j in (0, 1, 2, 3) if j not in cone.zeros]
    left = [(a, b) for a, b in cone.pairs if a in free or b in free]
    values = np.array(np.meshgrid(*[np.arange(-4, 5)] * 4)).reshape(4, -1)
    strict = np.ones(values.shape[1], dtype=bool)
    for a, b in left:
        high = values[a] if a in free else 0
        low = values[b] if b in free else 0
        strict &= high > low
    assert cone.open == bool(strict.any())


@given(instance=instances(norms=("l2", "l1", "linf")), data=st.data())
def test_rows_in_reduced_coordinates_have_the_signs_of_the_pairs(instance, data):
    view = instance.view
    if view.columns is None and len(view.rows) < len(view.matrix):
        return
    try:
        demands = demands_of(instance, Requirements(nonnegative="all"))
    except InputError:
        return
    geometry = geometry_of(instance)
    rows, room = reduced_rows(geometry, demands.cone)
    u = np.array(
        data.draw(st.lists(st.floats(-1, 1), min_size=geometry.rank, max_size=geometry.rank))
    )
    if not geometry.length(u) > 1e-3:
        return
    from mipmech.model import from_reduced
    from mipmech.model.requirements.directions import weights_of

    weights = weights_of(instance, from_reduced(geometry, u, 0.0))
    for (place, _), row, doubt in zip(demands.cone.pairs, rows, room, strict=True):
        there = float(row @ u)
        if abs(there) > doubt + 1e-12:
            assert (there > 0) == (weights[place] > 0), (place, there, float(weights[place]))


# ------------------------------------------------------------------ thresholds


@given(data=st.data())
def test_no_threshold_that_meets_the_requirements_is_better(data):
    instance = data.draw(tied_instances())
    demanded, labels = data.draw(required(instance))
    grouped = with_groups(instance, labels)
    if instance.view.columns is None:
        return
    try:
        demands = demands_of(grouped, Requirements.of(demanded))
    except InputError:
        return
    weights = [0.0] * instance.width
    for column in instance.view.columns:
        weights[column] = float(data.draw(st.integers(-3, 3)))
    if not any(weights):
        return
    direction = Mechanism(tuple(weights), 0.0)
    inside = demands.repaired(direction)
    found = best_feasible(demands, direction)
    dense = densest_feasible(demands, direction)
    if inside is None:
        assert found is None
        return
    scan = [
        one
        for b in thresholds(grouped, inside)
        if demands.met(one := recount(grouped, inside.at(b)))
    ]
    assert (found is None) == (not scan) == (dense is None)
    if found is None:
        return
    assert demands.met(found)
    assert demands.met(steady_feasible(demands, found))
    assert float(dense.density) >= float(max(one.density for one in scan)) - 1e-12
    if found.line.rise >= 0:
        best = max(one.gain for one in scan)
        assert float(found.gain) >= float(best) * (1 - 1e-9) - 1e-12


def test_where_moves_do_harm_nobody_need_move():
    """Only rules on −x are allowed, and nearly everybody must be accepted."""
    sample = Instance.from_arrays([[0.0], [1.0]], [1.0], visible=[0], cost=1.0)
    found = certify(sample, require={"accepted": [0.9, 1.0], "nonpositive": "all"})
    assert (found.status, found.lower, found.upper) == ("optimal", 0, 0)
    assert found.recount.accepted_share == 1


def thresholds(instance, rule):
    """The end of everybody's reach, and one above all."""
    from mipmech.model.grading import ExactDirection

    direction = ExactDirection(instance, rule)
    ends = [direction.right_end(i) for i in range(instance.size)]
    return [*ends, max(ends) + 1.0 + abs(max(ends))]
