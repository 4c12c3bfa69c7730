"""Exact arithmetic on floats: sums of a million products as one rational, roots with sure bounds.

A float is a dyadic rational, so a sum of products of floats is one too. `exact_dot` finds it with
whole-array operations: it splits every product into two integers (Dekker's product, exact because
the mantissas are separated from the exponents first) and adds the integers up per exponent.
"""

from __future__ import annotations

import math
from fractions import Fraction
from operator import mul

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# 2^27 + 1 splits a 53-bit mantissa into two halves whose products are exact (Veltkamp).
SPLITTER = 134217729.0
# Halves of at most 27 bits, no more than 2^25 of them, so that each partial sum is below 2^53 and
# exact in a float; far fewer, so that a block and its temporaries stay in the cache.
CHUNK = 1 << 15
# Bits behind the point in `sqrt_bounds`: far more than any float comparison can resolve.
ROOT_BITS = 256
# Data are at most 1e100 in size, so a level of this size decides every comparison.
BEYOND = Fraction(10) ** 300


def exact_dot(a: Floats, b: Floats) -> Fraction:
    """Σ a_i b_i without any rounding.

    >>> exact_dot(np.array([0.1, 1e100, -1e100]), np.array([1.0, 1.0, 1.0])) == Fraction(0.1)
    True
    """
    if len(b) and (b == b[0]).all():  # equal weights, the usual case, are three times faster
        return Fraction(float(b[0])) * exact_sum(a)
    starts = range(0, len(a), CHUNK)
    return sum((_chunk_dot(a[s : s + CHUNK], b[s : s + CHUNK]) for s in starts), Fraction(0))


def exact_sum(a: Floats) -> Fraction:
    """Σ a_i without any rounding."""
    starts = range(0, len(a), CHUNK)
    return sum((_chunk_sum(a[s : s + CHUNK]) for s in starts), Fraction(0))


def _chunk_sum(a: Floats) -> Fraction:
    mantissa, exponent = np.frexp(a)
    lowest = int(exponent.min())
    sums = _integer_sums(mantissa * 2.0**53, exponent - lowest)
    return _dyadic(sum(head << offset for offset, head in enumerate(sums) if head), lowest - 53)


def _dyadic(integer: int, power: int) -> Fraction:
    return Fraction(integer << power) if power >= 0 else Fraction(integer, 1 << -power)


def _chunk_dot(a: Floats, b: Floats) -> Fraction:
    mantissa_a, exponent_a = np.frexp(a)
    mantissa_b, exponent_b = np.frexp(b)
    product = mantissa_a * mantissa_b
    high_a = mantissa_a * SPLITTER
    high_a -= high_a - mantissa_a
    high_b = mantissa_b * SPLITTER
    high_b -= high_b - mantissa_b
    low_a = mantissa_a - high_a
    low_b = mantissa_b - high_b
    error = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    exponent = exponent_a + exponent_b
    lowest = int(exponent.min())
    place = exponent - lowest
    # |product| < 1 is a multiple of 2^-54 and error of 2^-106, so both are integers when scaled.
    leading = _integer_sums(product * 2.0**54, place)
    trailing = _integer_sums(error * 2.0**106, place)
    total = sum(
        ((head << 52) + tail) << offset
        for offset, (head, tail) in enumerate(zip(leading, trailing, strict=True))
        if head or tail
    )
    return _dyadic(total, lowest - 106)


def _integer_sums(values: Floats, place: NDArray[np.int32]) -> list[int]:
    """Sum integer-valued floats of at most 2^54 in size per place, exactly."""
    high = np.floor(values * 2.0**-27)
    low = values - high * 2.0**27
    highs = np.bincount(place, weights=high)
    lows = np.bincount(place, weights=low)
    return [(int(h) << 27) + int(n) for h, n in zip(highs, lows, strict=True)]


def fractions(values: Floats) -> list[Fraction]:
    """The floats as the rationals that they are."""
    return [Fraction(float(v)) for v in values]


def common_integers(values: Floats) -> tuple[NDArray[np.object_], int]:
    """Integers N and a shift s ≥ 0 with values = N · 2^-s exactly.

    >>> integers, shift = common_integers(np.array([0.5, 3.0]))
    >>> integers.tolist(), shift
    ([1, 6], 1)
    """
    flat = values.ravel()
    mantissa, exponent = np.frexp(flat)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    # Trailing zero bits are dropped so that small integers stay small: (w & -w) is the lowest bit.
    nonzero = whole != 0
    lowest_bit = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    spare = np.where(nonzero, lowest_bit, 0).astype(np.int64)
    whole >>= spare
    power = np.where(nonzero, exponent.astype(np.int64) - 53 + spare, 0)
    lowest = min(int(power[nonzero].min()), 0) if nonzero.any() else 0
    shifts = np.where(nonzero, power - lowest, 0)
    integers = whole.astype(object) << shifts.astype(object)
    return integers.reshape(values.shape), -lowest


def sqrt_bounds(value: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals lo ≤ √value ≤ hi that differ by less than 2^-200 of √value.

    >>> lo, hi = sqrt_bounds(Fraction(4))
    >>> lo == hi == 2
    True
    """
    if value < 0:
        raise ValueError("the root of a negative number")
    # Scale by an even power of two so that the integer root has about ROOT_BITS bits.
    shift = ROOT_BITS - (value.numerator.bit_length() - value.denominator.bit_length()) // 2
    scaled = value * Fraction(4) ** shift
    floor = scaled.numerator // scaled.denominator
    root = math.isqrt(floor)
    exact = root * root == scaled
    unit = Fraction(2) ** -shift
    return root * unit, (root if exact else root + 1) * unit


def solve(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    """X with matrix·x = right, for a positive definite matrix, by elimination in rationals.

    >>> solve([[Fraction(2), Fraction(1)], [Fraction(1), Fraction(1)]], [Fraction(3), Fraction(2)])
    [Fraction(1, 1), Fraction(1, 1)]
    """
    table = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for pivot in range(len(table)):
        chosen = table[pivot]
        for i, row in enumerate(table):
            if i != pivot and row[pivot]:
                factor = row[pivot] / chosen[pivot]
                table[i] = [a - factor * b for a, b in zip(row, chosen, strict=True)]
    return [row[-1] / row[i] for i, row in enumerate(table)]


def solve_all(matrix: list[list[Fraction]], rights: list[list[Fraction]]) -> list[list[Fraction]]:
    """For each right the x with matrix·x = right, for a positive definite matrix.

    One elimination for all, in whole numbers and without fractions (Bareiss: every division leaves
    no rest), so that numbers stay short.

    >>> solve_all([[Fraction(1, 2), Fraction(0)], [Fraction(0), Fraction(2)]], [[Fraction(1)] * 2])
    [[Fraction(2, 1), Fraction(1, 2)]]
    """
    scale = math.lcm(*(value.denominator for row in matrix for value in row))
    scales = [math.lcm(*(value.denominator for value in right)) for right in rights]
    table = [
        [int(v * scale) for v in row] + [int(r[i] * s) for r, s in zip(rights, scales, strict=True)]
        for i, row in enumerate(matrix)
    ]
    size, previous = len(matrix), 1
    for pivot in range(size):
        chosen = table[pivot]
        for i in range(size):
            if i != pivot:
                factor, by = chosen[pivot], table[i][pivot]
                pairs = zip(table[i], chosen, strict=True)
                table[i] = [(factor * a - by * b) // previous for a, b in pairs]
        previous = chosen[pivot]
    return [
        [Fraction(row[size + j] * scale, previous * s) for row in table]
        for j, s in enumerate(scales)
    ]


def solve_whole(
    matrix: list[list[int]], right: list[int], prime: int
) -> tuple[list[int], int] | None:
    """Whole N and d > 0 with matrix·N = d·right; None if the matrix is singular modulo the prime.

    Digit by digit in base of the prime (Dixon), and verified: numbers stay as short as those given,
    and a short solution is found at once. By Cramer's rule no solution is longer than Hadamard's
    bound of the determinant, so twice as many digits always do.

    >>> solve_whole([[2, 1], [1, 1]], [3, 2], 7), solve_whole([[2, 1], [1, 4]], [3, 2], 7)
    (([1, 1], 1), None)
    """
    inverse = _inverse_modulo(matrix, prime)
    if inverse is None:
        return None
    lengths = [math.isqrt(sum(v * v for v in row)) + 1 for row in [*matrix, right]]
    most = 2 * math.prod(lengths) ** 2
    rest, found, modulus, check = right, [0] * len(right), 1, prime**2
    while True:
        short = [v % prime for v in rest]
        digits = [sum(map(mul, row, short)) % prime for row in inverse]
        found = [v + modulus * digit for v, digit in zip(found, digits, strict=True)]
        rest = [
            (v - sum(map(mul, row, digits))) // prime for v, row in zip(rest, matrix, strict=True)
        ]
        modulus *= prime
        if modulus >= check:
            check = min(modulus**2, prime * most) if modulus <= most else prime * modulus
            whole = _reconstructed(found, modulus)
            if whole is not None and all(
                sum(map(mul, row, whole[0])) == whole[1] * v
                for row, v in zip(matrix, right, strict=True)
            ):
                return whole


def _inverse_modulo(matrix: list[list[int]], prime: int) -> list[list[int]] | None:
    size = len(matrix)
    table = [
        [v % prime for v in row] + [int(i == j) for j in range(size)]
        for i, row in enumerate(matrix)
    ]
    for column in range(size):
        pivot = next((i for i in range(column, size) if table[i][column]), None)
        if pivot is None:
            return None
        table[column], table[pivot] = table[pivot], table[column]
        by = pow(table[column][column], -1, prime)
        chosen = table[column] = [v * by % prime for v in table[column]]
        for i, row in enumerate(table):
            if i != column and row[column]:
                factor = row[column]
                table[i] = [(a - factor * b) % prime for a, b in zip(row, chosen, strict=True)]
    return [row[size:] for row in table]


def _reconstructed(values: list[int], modulus: int) -> tuple[list[int], int] | None:
    """Short whole N and d with N = d·values modulo the modulus, if there are any."""
    bound = math.isqrt(modulus // 2)
    found: list[int] = []
    denominator = 1
    for value in values:
        # Euclid's algorithm, until the rest is short.
        old, new = modulus, value * denominator % modulus
        before, factor = 0, 1
        if modulus - new <= bound:
            new -= modulus
        while abs(new) > bound:
            quotient = old // new
            old, new = new, old - quotient * new
            before, factor = factor, before - quotient * factor
        if factor < 0:
            new, factor = -new, -factor
        found = [v * factor for v in found] if factor > 1 else found
        found.append(new)
        denominator *= factor
        if denominator > bound:
            return None
    return found, denominator


def clamped(value: Fraction) -> float:
    """The nearest float, or ±1e300 for what is beyond: still farther away than any datum."""
    return float(min(max(value, -BEYOND), BEYOND))


def round_down(value: Fraction) -> float:
    """The largest float that is not above the rational (which must be within their range)."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def round_up(value: Fraction) -> float:
    """The smallest float that is not below the rational."""
    return -round_down(-value) + 0.0  # no −0


def relative_gap(lower: Fraction, upper: Fraction | float) -> float:
    """(upper − lower)/upper, rounded up; 0 if upper is 0."""
    return round_up(1 - lower / Fraction(upper)) if upper else 0.0
