"""Exact sums and roots against Python's own fractions."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mipmech import rationals
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


@pytest.mark.parametrize("size", [1, 2, 5, 9])
@pytest.mark.parametrize("wide", [3, 400])
def test_whole_solutions_are_those_of_elimination(size, wide):
    """Short ones and long ones; where the prime divides the determinant there is none."""
    rng = random.Random(size)
    for prime in (2**61 - 1, 101):
        for _ in range(5):
            table = [[rng.randrange(-(2**wide), 2**wide) for _ in range(size)] for _ in range(size)]
            gram = [[sum(a * b for a, b in zip(u, v, strict=True)) for v in table] for u in table]
            for i in range(size):
                gram[i][i] += 1
            right = [rng.randrange(-(2**wide), 2**wide) for _ in range(size)]
            found = rationals.solve_whole(gram, right, prime)
            if found is None:
                assert prime == 101
                continue
            fractions = [[Fraction(v) for v in row] for row in gram]
            expected = rationals.solve(fractions, [Fraction(v) for v in right])
            assert [Fraction(v, found[1]) for v in found[0]] == expected
    assert rationals.solve_whole([[101, 0], [0, 1]], [1, 1], 101) is None
    assert rationals.solve_whole([[0, 1], [1, 0]], [5, 6], 101) == ([6, 5], 1)
