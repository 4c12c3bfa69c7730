"""How numbers, times and strangers' texts are written, the same in words, tables and pictures."""

from __future__ import annotations

import math
from datetime import datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

# A share this near to 1 is 1: bounds are rounded outward, so that 1 itself is never reached.
WHOLE = 1e-9
# Joiners without which some scripts cannot be written; the other invisible characters only deceive.
JOINERS = "\u200c\u200d"
# Between a number and its unit: narrow, and no line ends there.
THIN = "\u202f"
# Numbers with more digits before the point are written as powers of ten.
WHOLE_DIGITS = 7
# How a verdict on a certificate begins a sentence about what it did not verify.
NOT_VERIFIED = "NOT verified: "
# Nothing that is printed as one line is longer than this.
LONGEST_LINE = 2000


# ------------------------------------------------------------------ strangers' texts


def clean(text: str) -> str:
    r"""A stranger's text on one line, without characters that are invisible or change others.

    >>> clean("two\nlines \u202eand\x00more ")
    'two lines �and�more'
    """
    return " ".join(harmless(text).split()) or "(no name)"


def harmless(text: str) -> str:
    """The same text, with stand-ins for what is invisible or changes others."""
    if text.isprintable():  # nearly all are
        return text
    return "".join(c if c.isprintable() or c in JOINERS else _stand_in(c) for c in text)


def printable(text: str) -> str:
    r"""A text from anywhere, as one line that can be shown on a terminal, and is not endless.

    >>> printable("two\nlines \x1b[2J")
    'two lines �[2J'
    """
    return short(harmless(text), LONGEST_LINE)


def _stand_in(character: str) -> str:
    return " " if character.isspace() else "\ufffd"


def writable(text: str) -> str:
    """A text that can be written as UTF-8: names of files may be anything."""
    return text.encode(errors="replace").decode()


def short(text: str, width: int) -> str:
    """Cut in the middle: names often differ at their ends.

    >>> short("milp with norm=secant, segments=8", 20)
    'milp with…segments=8'
    """
    if len(text) <= width:
        return text
    head = width // 2 - 1
    return text[:head].rstrip() + "…" + text[len(text) - (width - head - 1) :].lstrip()


# ------------------------------------------------------------------ words


def count(number: int, word: str) -> str:
    """A number of things.

    >>> count(1, "oracle"), count(1200, "call")
    ('1 oracle', '1,200 calls')
    """
    return f"{number:,} {word}{'s' * (number != 1)}"


def listed(parts: list[str]) -> str:
    """Parts of a sentence, with an "and" before the last.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)


# ------------------------------------------------------------------ numbers


def percent(share: float) -> str:
    """A share in percent, without the sign; never rounded up, because a quality is a lower bound.

    >>> percent(0.99999), percent(1.0), percent(0.5)
    ('99.9', '100', '50.0')
    """
    if abs(share - 1) <= WHOLE:
        return "100"
    return f"{math.floor(share * 1000 + WHOLE) / 10:.1f}"


def points(difference: float) -> str:
    """A difference of shares, in percentage points.

    >>> points(0.0), points(0.1234)
    ('0', '12.3')
    """
    return "0" if difference <= WHOLE else f"{100 * difference:.1f}"


def below(value: Fraction | float, digits: int = 5) -> str:
    """A number to so many digits, not rounded up: a lower bound stays one."""
    return _digits(value, digits, ROUND_FLOOR)


def above(value: Fraction | float, digits: int = 5) -> str:
    """A number to so many digits, not rounded down: an upper bound stays one.

    A Fraction is rounded exactly. A float such as 0.35, which is just below 0.35, counts as the
    decimal that it was written as.

    >>> below(0.1234567), above(0.1234567), above(2.0), above(99.7, 2)
    ('0.12345', '0.12346', '2', '100')
    >>> below(Fraction(1, 3), 6), above(Fraction(1, 3), 6), above(Fraction(0))
    ('0.333333', '0.333334', '0')
    """
    return _digits(value, digits, ROUND_CEILING)


def _digits(value: Fraction | float, digits: int, rounding: str) -> str:
    context = Context(prec=digits, rounding=rounding)
    if isinstance(value, Fraction):
        rounded = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    else:
        rounded = context.create_decimal(Decimal(f"{value:.12g}"))
    # Whole digits are never left to a power of ten: 100, not 1e+02.
    shown = max(digits, rounded.adjusted() + 1) if rounded.adjusted() < WHOLE_DIGITS else digits
    return f"{float(rounded):.{shown}g}"


def relative_gap(lower: float, upper: float) -> float:
    """(upper − lower)/upper, never negative; 0 if upper is 0."""
    return max(0.0, 1 - lower / upper) if upper > 0 else 0.0


def ends(lower: float, upper: float) -> tuple[str, str]:
    """Both bounds, rounded outward unless they are one number.

    >>> ends(0.35, 0.35), ends(1 / 3, 0.4)
    (('0.35', '0.35'), ('0.33333', '0.4'))
    """
    if relative_gap(lower, upper) <= WHOLE:
        return f"{lower:.5g}", f"{upper:.5g}"
    return below(lower), above(upper)


def gap_percent(lower: float, upper: float) -> str:
    """A relative gap in percent, rounded up.

    >>> gap_percent(1.0, 1.0), gap_percent(0.5, 0.6)
    ('0', '17')
    """
    gap = relative_gap(lower, upper)
    return "0" if gap <= WHOLE else above(100 * gap, 2)


def size(bytes_: float) -> str:
    """An amount of memory.

    >>> [size(b).replace(THIN, " ") for b in (999, 48_783_360, 2e9)]
    ['0.999 kB', '48.8 MB', '2 GB']
    """
    for limit, unit, whole in ((0.9995e6, "kB", 1e3), (0.9995e9, "MB", 1e6)):
        if bytes_ < limit:
            return f"{bytes_ / whole:.3g}{THIN}{unit}"
    return f"{bytes_ / 1e9:,.3g}{THIN}GB"


# ------------------------------------------------------------------ times


def duration(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> [duration(s).replace(THIN, " ") for s in (0.0000123, 0.0123, 1.5, 150, 9000)]
    ['12.3 µs', '12.3 ms', '1.5 s', '2.5 min', '2.5 h']
    """
    if not seconds:
        return f"0{THIN}s"
    units = ((0.9995e-3, "µs", 1e-6), (0.9995, "ms", 1e-3), (99.95, "s", 1.0), (5400, "min", 60.0))
    for limit, unit, size in units:
        if seconds < limit:
            return f"{seconds / size:.3g}{THIN}{unit}"
    return f"{seconds / 3600:,.1f}{THIN}h"


def estimate(seconds: float) -> str:
    """A time as exact as an estimate can be.

    >>> estimate(42), estimate(200), estimate(7300)
    ('42 s', '3:20', '2 h 1 min')
    """
    if seconds < 60:
        return f"{round(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d}"
    return f"{minutes // 60} h {minutes % 60} min"


def moment(when: datetime) -> str:
    """A moment of the wall clock, in UTC.

    >>> moment(datetime(2026, 11, 18, 9, 5, 1, 999))
    '2026-11-18 09:05:01 UTC'
    """
    return f"{when:%Y-%m-%d %H:%M:%S} UTC"
