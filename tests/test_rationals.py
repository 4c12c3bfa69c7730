"""Exact sums and roots against Python's own fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mipmech.rationals import (
    CHUNK,
    common_integers,
    exact_dot,
    exact_sum,
    round_down,
    round_up,
    sqrt_bounds,
)

FLOATS = st.floats(-1e100, 1e100)
VECTORS = st.integers(0, 40).flatmap(lambda n: st.tuples(*[arrays(float, n, elements=FLOATS)] * 2))


@given(VECTORS)
def test_dot_and_sum(pair):
    a, b = pair
    exact = sum((Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True)), Fraction(0))
    assert exact_dot(a, b) == exact
    assert exact_sum(a) == sum((Fraction(x) for x in a), Fraction(0))


def test_more_than_one_chunk():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 2 * CHUNK + 7)) * 10.0 ** rng.integers(-50, 50, 2 * CHUNK + 7)
    assert exact_dot(a, b) == sum(Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True))
    assert exact_sum(a) == sum(map(Fraction, a))


def test_the_worst_case_of_a_chunk_does_not_overflow():
    largest = np.full(CHUNK, np.nextafter(1.0, 0))
    assert exact_sum(largest) == CHUNK * Fraction(largest[0])
    mixed = np.where(np.arange(CHUNK) % 2, largest, np.nextafter(largest, 0))
    assert exact_dot(mixed, largest[::-1].copy() * mixed) == sum(
        Fraction(x) * Fraction(y) for x, y in zip(mixed, largest[::-1] * mixed, strict=True)
    )


@given(arrays(float, (3, 4), elements=FLOATS))
def test_common_integers(values):
    integers, shift = common_integers(values)
    assert shift >= 0
    for whole, value in zip(integers.ravel(), values.ravel(), strict=True):
        assert isinstance(whole, int)
        assert Fraction(whole, 2**shift) == Fraction(value)


@given(st.fractions(min_value=0), st.integers(-300, 300))
def test_roots(value, power):
    value *= Fraction(2) ** power
    low, high = sqrt_bounds(value)
    assert low**2 <= value <= high**2
    assert high - low <= Fraction(2) ** -200 * high
    low, high = sqrt_bounds(value**2)
    assert low <= value <= high


def test_roots_of_squares_are_exact():
    assert sqrt_bounds(Fraction(9, 4)) == (Fraction(3, 2), Fraction(3, 2))
    assert sqrt_bounds(Fraction(0)) == (0, 0)


@given(st.fractions(min_value=-(10**30), max_value=10**30))
def test_rounding_outward(value):
    low, high = round_down(value), round_up(value)
    assert Fraction(low) <= value <= Fraction(high)
    assert high in (low, math.nextafter(low, math.inf))
