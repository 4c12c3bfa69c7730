"""Exact arithmetic of the checker: whatever the floats, the result is that of fractions."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mipmech
from mipmech import Instance
from mipmech.checker import exact
from mipmech.checker.agents import Weights
from mipmech.checker.content import Rejected
from mipmech.checker.exact import eliminated
from mipmech.checker.leaves import no_look
from mipmech.checker.witness import ExactInstance
from mipmech.theory.projection import gain_ceiling

# As large and as small as instances may be, and whatever is in between.
NUMBERS = st.one_of(
    st.floats(-1e100, 1e100), st.floats(-10, 10), st.sampled_from([0.0, 1.0, 0.1, 1e100, -1e-150]),
    st.integers(-(2**53), 2**53).map(float),
)  # fmt: skip
POSITIVE = st.one_of(
    st.floats(1e-150, 1e100), st.integers(1, 9).map(float), st.sampled_from([0.1, 0.3, 2.0**-400])
)
PAIRS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=40)


@given(PAIRS)
def test_sums_of_products(pairs):
    a, b = (np.array(side) for side in zip(*pairs, strict=True))
    expected = sum((Fraction(x) * Fraction(y) for x, y in pairs), Fraction(0))
    assert exact.sum_of_products(a, b, no_look) == expected


@given(PAIRS, st.integers(1, 7))
def test_sums_do_not_depend_on_how_they_are_cut(pairs, chunk):
    a, b = (np.array(side) for side in zip(*pairs, strict=True))
    whole = exact.sum_of_products(a, b, no_look)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "CHUNK", chunk)
        assert exact.sum_of_products(a, b, no_look) == whole


@pytest.mark.parametrize("value", [np.nextafter(1.0, 0.0), np.nextafter(2.0, 0.0), -1.0])
def test_sums_of_the_largest_mantissas(value):
    """The most that limbs have to hold, in a full chunk and a little more."""
    many = np.full(exact.CHUNK + 3, value)
    square = Fraction(float(value)) ** 2
    assert exact.sum_of_products(many, many, no_look) == square * len(many)
    assert exact.sum_of_products(many, -many, no_look) == -square * len(many)


@given(st.lists(POSITIVE, min_size=1, max_size=30), st.booleans())
def test_weights(values, counted):
    weights = Weights(np.array(values), counted, no_look)
    rational = [Fraction(value) for value in values]
    total = sum(rational)
    if weights.whole:
        assert [Fraction(v) * weights.share for v in weights.floats] == [
            r / total for r in rational
        ]
        assert math.gcd(*map(int, weights.floats)) == 1
        assert weights.floats.sum() < 2**52
    else:
        assert weights.share == 1
        for v, r in zip(weights.floats, rational, strict=True):
            assert abs(Fraction(v) - r / total) <= r / total / 2**50 + Fraction(1, 10**300)
        scale = math.lcm(*(r.denominator for r in rational))
        integers = [int(r * scale) for r in rational]
        assert not counted or sum(integers) // math.gcd(*integers) >= 2**52


@given(st.fractions(min_value=0, max_value=10**30))
def test_roots(value):
    low, high = exact.root(value)
    assert low**2 <= value <= high**2
    assert high - low <= high / 2**190
    assert exact.root(value**2) == (value, value) or value.denominator & (value.denominator - 1)


@given(st.fractions())
def test_rounding_outward(value):
    low, high = exact.down(value), exact.up(value)
    assert Fraction(low) <= value <= Fraction(high)
    assert high == low or high == math.nextafter(low, math.inf)


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 30), st.sampled_from(["equal", "unequal", "close"]))
def test_the_ceiling_is_that_of_show(seed, size, kind):
    rng = np.random.default_rng(seed)
    cost = {
        "equal": np.full(size, float(rng.uniform(0.1, 9))),
        "unequal": rng.uniform(0.1, 9, size),
        "close": 3.0 + rng.integers(0, 2, size) * 2.0**-51,  # reaches are equal as floats
    }[kind]
    sample = mipmech.Instance.from_arrays(
        rng.standard_normal((size, 3)), rng.standard_normal(3), cost=cost,
        view=rng.standard_normal((2, 3)), weights=rng.uniform(0, 1, size) + 1e-3,
    )  # fmt: skip
    found = ExactInstance(sample, no_look)
    assert found.ceiling() == gain_ceiling(sample)
    weights = [Fraction(w) for w in sample.weights]
    reach = sum(w / Fraction(c) for w, c in zip(weights, sample.cost, strict=True)) / sum(weights)
    assert Fraction(found.ceiling()) ** 2 >= found.seen_square * reach**2
    assert found.ceiling() <= math.sqrt(found.seen_square) * float(reach) * (1 + 1e-14)


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(1, 9))
def test_outcomes_do_not_depend_on_how_agents_are_cut(seed, chunk):
    sample = mipmech.make_instance("costs", 25, 2, seed=seed)
    rng = np.random.default_rng(seed)
    w = [Fraction(float(v)) for v in rng.standard_normal(2)] + [Fraction(0)]
    threshold = Fraction(float(rng.standard_normal()))
    found = ExactInstance(sample, no_look)
    outcome = found.outcome(w, threshold)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mipmech.checker.witness.CHUNK", chunk)
        assert found.outcome(w, threshold) == outcome


@pytest.mark.parametrize("seed", range(10))
def test_elimination_solves(seed):
    """matrix · X = d · right, against products in whole numbers."""
    rng = np.random.default_rng(seed)
    size, count = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    rows = rng.integers(-50, 50, (size, size + 2)).astype(object)
    matrix = (rows @ rows.T).tolist()
    right = rng.integers(-50, 50, (size, count)).astype(object)
    x, d = eliminated(matrix, right.tolist(), lambda: None)
    assert d > 0
    assert (np.array(matrix, object) @ np.array(x, object) == d * right).all()


def test_dependent_rows_are_rejected():
    with pytest.raises(Rejected, match="dependent"):
        eliminated([[1, 2], [2, 4]], [[1], [1]], lambda: None)


@pytest.mark.parametrize("kind", ["view", "visible"])
def test_the_error_of_a_frame_is_that_of_its_definition(kind):
    """‖F − ΠF‖ + ‖I − ΠF·ΠFᵀ‖, with a projection computed in floats, and far from rounding."""
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((3, 5)) if kind == "view" else np.eye(5)[[0, 2, 3]]
    seen = {"view": rows} if kind == "view" else {"visible": [0, 2, 3]}
    sample = Instance.from_arrays(rng.standard_normal((4, 5)), np.ones(5), cost=1.0, **seen)
    inside = ExactInstance(sample, lambda: None)
    basis = np.linalg.qr(rows.T)[0].T
    frame = basis + 1e-3 * rng.standard_normal((3, 5))
    projected = frame @ basis.T @ basis
    expected = np.linalg.norm(frame - projected)
    expected += np.linalg.norm(projected @ projected.T - np.eye(3))
    assert float(inside.frame_error(frame)) == pytest.approx(expected, rel=1e-9)


def test_outcomes_take_memory_for_few_numbers_at_a_time(monkeypatch):
    """For all agents in all columns of a rule that was half a gigabyte in 1.6 MB of data."""
    monkeypatch.setattr("mipmech.checker.witness.NUMBERS", 1 << 10, raising=False)
    rng = np.random.default_rng(0)
    agents = rng.integers(-100, 100, (400, 100)).astype(float)
    sample = Instance.from_arrays(agents, np.ones(100), visible=range(100), cost=1.0)
    looks: list[int] = []
    inside = ExactInstance(sample, lambda: looks.append(1))
    looks.clear()
    tracemalloc.start()
    density, _ = inside.outcome([Fraction(1, 4)] * 50 + [Fraction(0)] * 50, Fraction(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    scores = agents[:, :50].sum(axis=1) / 4
    assert float(density) == ((scores <= 0) & (-scores <= math.sqrt(50) / 4)).mean()
    assert len(looks) == 20
    assert peak < 50 * 400 * 30


def test_a_view_of_many_dimensions_looks_at_the_clock():
    """Its frame took minutes without one: no limit held."""
    rng = np.random.default_rng(4)
    rows = np.linalg.qr(rng.standard_normal((20, 10)))[0].T
    sample = Instance.from_arrays(rng.standard_normal((4, 20)), np.ones(20), cost=1.0, view=rows)
    looks: list[int] = []
    ExactInstance(sample, lambda: looks.append(1)).frame_error(rows)
    assert len(looks) >= 200


@pytest.mark.parametrize("kind", ["view", "visible"])
def test_there_is_a_look_for_each_product_of_rows(kind):
    """With thousands of columns and long fractions one row of products took seconds."""
    count, width = 12, 20
    rng = np.random.default_rng(4)
    rows = np.eye(count, width)
    if kind == "view":
        rows = np.linalg.qr(rng.standard_normal((width, count)))[0].T
    seen = {"view": rows} if kind == "view" else {"visible": range(count)}
    sample = Instance.from_arrays(rng.standard_normal((4, width)), np.ones(width), cost=1.0, **seen)
    looks: list[int] = []
    inside = ExactInstance(sample, lambda: looks.append(1))
    assert kind == "visible" or len(looks) >= count**2 + width
    looks.clear()
    inside.frame_error(rows)
    assert len(looks) >= (count + 1) * count * (2 if kind == "view" else 1)
    looks.clear()
    inside.rates(rows)
    assert len(looks) >= count
    looks.clear()
    if kind == "view":
        weights = rows.T @ np.ones(count)
        inside.rule({"weights": weights.tolist(), "view_weights": [1.0] * count})
        assert len(looks) >= width
