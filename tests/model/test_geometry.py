"""The reduction and the way back; rounding bounds; the odd cases, each on purpose."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mipmech import Instance, recount
from mipmech.model import from_reduced, reduce, to_reduced
from mipmech.model.geometry import seen_square
from mipmech.model.grading import ExactDirection
from tests import referee
from tests.samples import instances


@st.composite
def with_direction(draw, **options):
    instance = draw(instances(**options))
    geometry = reduce(instance)
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    u = rng.standard_normal(geometry.rank)
    return instance, geometry, u / np.linalg.norm(u)


@given(with_direction())
def test_scores_are_within_the_rounding_bound(case):
    """For any unit u: |u·z_i·unit − exact score of i from the centre| ≤ the bound."""
    instance, geometry, u = case
    mechanism = from_reduced(geometry, u, 0.0)
    weights = referee.exact_weights(instance, mechanism)
    length = math.sqrt(referee.dot(weights, weights))
    assert length == pytest.approx(1, abs=1e-9)
    centre = [Fraction(float(c)) for c in geometry.centre]
    for i, x in enumerate(instance.agents):
        offset = [Fraction(float(v)) - c for v, c in zip(x, centre, strict=True)]
        exact = float(referee.dot(weights, offset)) / length
        size = np.linalg.norm([float(o) for o in offset])
        # Besides z, u itself is rounded here: by a few 1e-16, and by the basis error for a view.
        allowed = (
            geometry.rounding.z[i] * geometry.unit + (4e-15 + 2 * geometry.rounding.basis) * size
        )
        assert abs(geometry.z[i] @ u * geometry.unit - exact) <= allowed + 1e-300


@given(with_direction(), st.floats(-2, 2))
def test_there_and_back(case, b):
    instance, geometry, u = case
    again, level = to_reduced(geometry, from_reduced(geometry, u, b))
    assert again == pytest.approx(u, abs=1e-12)
    # The threshold is one float in the user's coordinates: offsets cost it digits, and that is all.
    lost = np.abs(instance.agents).max() / geometry.unit
    assert level == pytest.approx(b, abs=1e-12 + 1e-15 * lost)


@given(with_direction(), st.floats(-2, 2))
def test_reduced_truth_is_the_truth(case, b):
    instance, geometry, u = case
    mechanism = from_reduced(geometry, u, b)
    _, level = to_reduced(geometry, mechanism)
    distance = level - geometry.z @ u
    lost = 1e-9 * (1 + np.abs(instance.agents).max() / geometry.unit)
    assume((np.minimum(np.abs(distance), np.abs(distance - geometry.reach)) > lost).all())
    found = recount(instance, mechanism)
    inside = (distance >= 0) & (distance <= geometry.reach)
    soft_density = geometry.weight[inside] @ distance[inside] * geometry.unit
    assert float(found.density) == pytest.approx(geometry.weight[inside].sum())
    scale = geometry.unit * (1 + geometry.reach.max()) * lost
    assert found.soft_density == pytest.approx(soft_density, abs=scale)
    scale *= 1 + np.abs(instance.quality).max()
    assert float(found.gain) == pytest.approx(u @ geometry.p * soft_density, abs=scale)


@given(instances())
def test_size_of_the_seen_part(instance):
    """‖P w_f‖² in rationals equals the squared length of the projection, by least squares."""
    geometry = reduce(instance)
    rows = instance.view.matrix
    projected = rows.T @ np.linalg.lstsq(rows.T, instance.quality, rcond=None)[0]
    size = np.linalg.norm(instance.quality)
    assert math.sqrt(seen_square(instance)) == pytest.approx(
        np.linalg.norm(projected), abs=1e-9 * size
    )
    low, high = geometry.p_norm_bounds
    assert Fraction(low) ** 2 <= seen_square(instance) <= Fraction(high) ** 2
    assert low <= geometry.p_norm <= high
    assert np.linalg.norm(geometry.p) == pytest.approx(geometry.p_norm, rel=1e-9)
    assert abs(np.linalg.norm(geometry.p) - geometry.p_norm) <= geometry.rounding.p + 1e-15 * size


@given(instances())
def test_reduced_data_is_centred_and_scaled(instance):
    geometry = reduce(instance)
    assert np.linalg.norm(geometry.z[instance.weights > 0], axis=1).max() <= 1 + 1e-15
    assert geometry.radius <= 1
    assert math.frexp(geometry.unit)[0] == 0.5
    assert geometry.weight.sum() == pytest.approx(1)
    assert geometry.reach * geometry.unit * instance.cost == pytest.approx(1)
    assert geometry.basis @ geometry.basis.T == pytest.approx(np.eye(geometry.rank), abs=1e-12)
    for array in (geometry.z, geometry.p, geometry.reach, geometry.weight):
        assert not array.flags.writeable


def test_offsets_cancel():
    """Data at 3e7 with spread 1 is as good as data at 0."""
    x = np.array([[0.0, 1.0], [0.5, -1.0], [1.0, 0.25]])
    near = reduce(Instance.from_arrays(x, [1.0, 1.0], visible=[0, 1], cost=1.0))
    far = reduce(Instance.from_arrays(x + 3e7, [1.0, 1.0], visible=[0, 1], cost=1.0))
    assert near.z * near.unit == pytest.approx(far.z * far.unit, abs=4e-9)  # 3e7 + x is rounded


def simple(agents, quality, cost=1.0, **seen):
    return reduce(Instance.from_arrays(agents, quality, cost=cost, **seen))


def test_one_agent():
    geometry = simple([[5.0, 6.0]], [1.0, 0.0], visible=[0], cost=4.0)
    assert geometry.z.tolist() == [[0.0]]
    assert geometry.radius == 0
    assert geometry.unit == 0.25
    assert geometry.reach.tolist() == [1.0]


def test_all_agents_equal():
    geometry = simple([[0.1, 7.0]] * 5, [1.0, 1.0], view=[[1.0, 2.0]])
    assert not geometry.z.any()
    assert (geometry.rounding.z < 1e-12).all()


def test_p_is_zero_exactly():
    """w_f at right angles to what is seen: zero, not 1e-17."""
    geometry = simple([[1.0, 2.0, 3.0], [0.0, 0.0, 1.0]], [0.1, 0.1, 5.0], view=[[0.3, -0.3, 0.0]])
    assert geometry.p_norm == 0
    assert geometry.p.tolist() == [0.0]
    assert simple([[1.0, 2.0]], [0.0, 1.0], visible=[0]).p_norm == 0


def test_p_is_tiny_but_not_zero():
    """0.1 + 0.2 − 0.3 is 2^-54 or so in exact arithmetic; the seen part has that size."""
    geometry = simple([[1.0, 2.0, 3.0]], [1.0, 1.0, -1.0], view=[[0.1, 0.2, 0.3]])
    exact = Fraction(0.1) + Fraction(0.2) - Fraction(0.3)
    square = sum(Fraction(v) ** 2 for v in (0.1, 0.2, 0.3))
    assert geometry.p_norm == pytest.approx(float(exact) / math.sqrt(square), rel=1e-14)
    assert geometry.rounding.p < 1e-12 * geometry.p_norm


def test_everything_is_seen():
    """k = n by any invertible view: the same as seeing all columns, without rounding."""
    x = [[1.0, 2.0], [3.0, 5.0]]
    turned = simple(x, [1.0, 1.0], view=[[1.0, 2.0], [3.0, -1.0]])
    plain = simple(x, [1.0, 1.0], visible=[0, 1])
    assert np.array_equal(turned.z, plain.z)
    assert turned.rounding.basis == 0


def test_a_view_of_columns_is_a_selection():
    geometry = simple(
        [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]], [1.0, 2.0, 3.0], view=[[0, 0, 5], [2, 0, 0]]
    )
    assert geometry.instance.view.columns == (0, 2)
    assert geometry.p.tolist() == [1.0, 3.0]


def test_dependent_rows_are_dropped_exactly():
    rows = [[1.0, 2.0, 0.5], [2.0, 4.0, 1.0], [0.0, 1.0, 1.0]]
    geometry = simple([[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]], [1.0, 2.0, 3.0], view=rows)
    assert geometry.rank == 2
    mechanism = from_reduced(geometry, [0.6, 0.8], 0.0)
    assert len(mechanism.view_weights) == 3
    exact = referee.exact_weights(geometry.instance, mechanism)
    assert [float(w) for w in exact] == list(mechanism.weights)


def test_repeated_columns():
    """Two equal features, both visible: fewer dimensions in the data than in the view."""
    x = np.array([[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]])
    geometry = simple(x, [1.0, 0.0], visible=[0, 1])
    assert geometry.rank == 2
    assert np.linalg.matrix_rank(geometry.z) == 1


def test_ill_conditioned_views_say_so():
    rows = [[1.0, 0.0, 0.0], [1.0, 1e-7, 0.0], [0.0, 0.0, 1.0]]
    fine = simple([[1.0, 2.0, 3.0]], [1.0, 1.0, 1.0], view=rows)
    assert fine.rounding.basis == 0  # all columns occur: everything is seen
    rows = [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0 + 1e-7]]
    shaky = simple([[1.0, 2.0, 3.0], [0.0, 0.0, 1.0]], [1.0, 1.0, 1.0], view=rows)
    assert 1e-12 < shaky.rounding.basis < 1e-5


def test_rows_of_very_different_lengths():
    rows = [[1e60, 2e60, 0.0], [0.0, 1e-60, 1e-60]]
    x = [[1.0, 2.0, 3.0], [0.0, 0.0, 1.0]]
    geometry = simple(x, [1.0, 1.0, 1.0], view=rows)
    plain = simple(x, [1.0, 1.0, 1.0], view=[[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]])
    assert np.abs(geometry.z) == pytest.approx(np.abs(plain.z))
    found = recount(geometry.instance, from_reduced(geometry, [0.6, 0.8], 0.1))
    assert math.isfinite(float(found.gain))


@pytest.mark.parametrize("scale", [1e-90, 1e-9, 1e9, 1e90])
def test_extreme_units(scale):
    x = np.array([[0.0, 1.0], [0.5, -1.0], [1.0, 0.25]])
    geometry = simple(x * scale, [scale, 1.0], visible=[0, 1], cost=1 / scale)
    assert np.isfinite(geometry.z).all()
    assert geometry.radius > 0.1
    plain = simple(x, [1.0, 1.0], visible=[0, 1])
    assert geometry.z * geometry.unit / scale == pytest.approx(plain.z * plain.unit)


def test_the_exact_direction_knows_its_rounding():
    """Scores and ends of the float filter lie within the error that it states."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((50, 3)) * 1e3 + 1e6
    instance = Instance.from_arrays(x, [1.0, 1.0, 1.0], view=[[1, 2, 3]], cost=rng.random(50) + 0.1)
    geometry = reduce(instance)
    direction = ExactDirection(instance, from_reduced(geometry, [1.0], 0.0))
    weights = direction.line.weights
    for i in range(50):
        exact = referee.dot(weights, [Fraction(float(v)) for v in x[i]]) - direction.centre_score
        assert abs(Fraction(float(direction.scores[i])) - exact) <= direction.error[i]
