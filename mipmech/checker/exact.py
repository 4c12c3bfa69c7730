"""Exact arithmetic: floats as the rationals that they are, roots, and sums of a million products.

A float is an integer times a power of two, so a sum of products of floats is one, too.
"""

from __future__ import annotations

import math
import sys
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mipmech.checker.content import Look, reject

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Agents between two looks at the clock. With LIMB, it also keeps sums of limbs exact: a float holds
# any sum of 2^14 numbers below 2^38.
CHUNK = 1 << 14
# Beyond what floats hold.
LARGEST = Fraction(2) ** 1023
# A mantissa of 53 bits is three limbs; three products of two limbs are below 2^38 together.
LIMB = 18


def fractions(values: Floats) -> list[Fraction]:
    """Floats, exactly."""
    return [Fraction(float(v)) for v in values]


def dot(a: list[Fraction], b: list[Fraction]) -> Fraction:
    """Σ a_i b_i."""
    return sum((x * y for x, y in zip(a, b, strict=True) if x and y), Fraction(0))


def eliminated(
    matrix: list[list[int]], right: list[list[int]], look: Look
) -> tuple[list[list[int]], int]:
    """X and d with matrix·X = d·right, for a symmetric positive definite matrix of whole numbers.

    Bareiss' elimination: every division leaves no rest, so numbers stay short.
    """
    size, previous = len(matrix), 1
    table = [[*a, *b] for a, b in zip(matrix, right, strict=True)]
    for pivot in range(size):
        chosen = table[pivot]
        if not chosen[pivot]:
            reject("the rows of the view are dependent")
        for i in range(size):
            look()
            if i != pivot:
                factor, by = chosen[pivot], table[i][pivot]
                pairs = zip(table[i], chosen, strict=True)
                table[i] = [(factor * a - by * b) // previous for a, b in pairs]
        previous = chosen[pivot]
    return [row[size:] for row in table], previous


def root(value: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals around √value, within 2^-200 of it (relatively); equal if floats hold the root."""
    if value == 0:
        return Fraction(0), Fraction(0)
    shift = 256 + max(0, value.denominator.bit_length() - value.numerator.bit_length())
    scaled, rest = divmod(value.numerator << 2 * shift, value.denominator)
    root = math.isqrt(scaled)
    exact = rest == 0 and root * root == scaled
    return Fraction(root, 1 << shift), Fraction(root if exact else root + 1, 1 << shift)


def up(value: Fraction) -> float:
    """The least float that is not below the rational."""
    if abs(value) >= LARGEST:
        return math.inf if value > 0 else -sys.float_info.max
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def down(value: Fraction) -> float:
    """The greatest float that is not above the rational."""
    return -up(-value) + 0.0  # no −0


def at_most(value: Fraction | float, digits: int = 9, form: str = "g") -> str:
    """A number in so many digits, not rounded down: nothing above it is said of a bound.

    >>> at_most(1 / 3), at_most(0.5), at_most(-1 / 3), at_most(1.01e-16, 2, "e")
    ('0.333333334', '0.5', '-0.333333333', '1.1e-16')
    """
    if isinstance(value, float) and math.isinf(value):
        return f"{value:g}"
    given = Fraction(value)
    context = Context(prec=digits, rounding=ROUND_CEILING)
    nearest = context.divide(Decimal(given.numerator), Decimal(given.denominator))
    text = f"{float(nearest):.{digits - (form == 'e')}{form}}"
    # Where floats have few digits or none (below 1e-307, above 1e308), the decimal as it is.
    return text if text != "inf" and Fraction(text) >= given else str(nearest)


def at_least(value: Fraction | float) -> str:
    """The same, not rounded up."""
    text = at_most(-value)
    return text.removeprefix("-") if text.startswith("-") or value == 0 else f"-{text}"


def whole(values: Floats) -> tuple[NDArray[np.object_], int]:
    """Integers N and s with values = N·2^-s exactly (an array of Python's integers)."""
    integers, power = mantissas(values)
    lowest = min(int(power.min()), 0)
    return integers.astype(object) << (power - lowest).astype(object), -lowest


def mantissas(values: Floats) -> tuple[Integers, Integers]:
    """Integers below 2^53 in size, and powers of two: values = integers·2^powers exactly."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(mantissa, 53).astype(np.int64), exponent.astype(np.int64) - 53


def sum_of_products(a: Floats, b: Floats, look: Look) -> Fraction:
    """Σ a_i b_i without any rounding."""
    total = Fraction(0)
    for start in range(0, len(a), CHUNK):
        look()
        total += _sum_of_some(a[start : start + CHUNK], b[start : start + CHUNK])
    return total


def _sum_of_some(a: Floats, b: Floats) -> Fraction:
    """The same for at most CHUNK terms: products of limbs, added up for each power of two."""
    (first, power_a), (second, power_b) = mantissas(a), mantissas(b)
    power = power_a + power_b
    lowest = int(power.min())
    place = power - lowest
    x, y = _limbs(first), _limbs(second)
    total = 0
    for order in range(5):
        terms = sum(x[i] * y[order - i] for i in range(3) if 0 <= order - i < 3)
        sums = np.bincount(place, weights=terms)  # whole numbers below 2^52: exact
        for at in np.flatnonzero(sums):
            total += int(sums[at]) << (LIMB * order + int(at))
    return Fraction(total << lowest) if lowest >= 0 else Fraction(total, 1 << -lowest)


def _limbs(integers: Integers) -> list[Integers]:
    """Integers in base 2^LIMB, the lowest limb first; the last one has the sign."""
    mask = (1 << LIMB) - 1
    return [integers & mask, (integers >> LIMB) & mask, integers >> 2 * LIMB]
