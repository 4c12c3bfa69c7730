"""A rule as it is printed: few digits, in the user's units, and graded with just these digits.

An optimum is a corner: several agents are at the end of their reach at once, and rounding the
weights loses some of them. So the weights are rounded first, each as coarsely as what it multiplies
allows, and then the threshold is found again among the multiples of a power of ten. What is printed
is a rule in its own right, and its gain is the exact one. It keeps clear of the ends of all reaches
by more than plain arithmetic errs (`model.edge_of_reach`).

On a general view whose rows have few digits, the weights of the rows are rounded, so that the rule
printed is one that the planner can compute. Otherwise weights on features in few digits lie only
nearly in the row space: what is graded is the nearest rule on the view, and as many digits are
printed as make the difference harmless.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np

from mipmech.design.caveats import caveats
from mipmech.errors import InputError
from mipmech.model.edge_of_reach import Fragile, endangered, movers, plain_error
from mipmech.model.grading import ExactDirection, Recount
from mipmech.model.instance import Instance
from mipmech.model.requirements import Demands
from mipmech.model.thresholds import soft_profile
from mipmech.model.typed_rules import NEARLY, in_known_units, on_sight
from mipmech.rationals import clamped, round_down
from mipmech.tolerances import PRINTED_SHARE
from mipmech.validation import Floats, Numbers

Measure = Literal["gain", "density"]

# Digits that are tried in turn until the rule keeps its gain, and the most that may be asked for.
FEWEST, MOST = 3, 15
# Where a rule keeps no more of its gain, rounding is about as large as the reach (data at 1e15 with
# a reach of 1): no threshold keeps clear of all ends, and the rule is right in rationals only.
SWALLOWED = 0.9
# On a general view, plain arithmetic with the printed weights gives the gain up to this share.
MISSTATED = 1e-3
# Rows of a view with no more digits than this, when rounded to so many, are printed as they are.
SHORT, DIGITS = 6, 12
# Digits of a float, for a rule that is printed in full.
FULL = 17
# Thresholds that are graded exactly before one is taken, best first.
TRIED = 20
# Weights are moved by one in their last digit so often, if that costs fewer looks at agents; a
# rational product, of which a rule on a general view takes one for each number of the view, costs
# as much as so many.
SWEEPS, MOVES, PRODUCT = 8, 2_000_000, 50


@dataclass(frozen=True, eq=False)
class PrintedRule:
    """A rule in few digits, and what it does.

    Attributes
    ----------
    weights : mapping of str to Decimal
        By feature, in the user's units; only those that are not 0.
    threshold : Decimal
    recount : Recount
        The exact outcome with just these digits.
    original : Recount
        The rule that was rounded.
    digits : int
        It is rounded to about this many digits of the reach.
    measure : {"gain", "density"}
        What its threshold makes as large as possible.
    off : float
        On a general view, how far the weights are from those that were graded, as a share of their
        length.
    misstated : float
        On a general view, by what share the gain of plain arithmetic with these weights differs.
    met : bool
        Whether it meets what is demanded of rules, exactly; if nothing is, it does.
    """

    weights: Mapping[str, Decimal]
    threshold: Decimal
    recount: Recount
    original: Recount
    digits: int
    measure: Measure = "gain"
    off: float = 0.0
    misstated: float = 0.0
    met: bool = True

    @property
    def gain(self) -> Fraction:
        """Its exact gain."""
        return self.recount.gain

    @cached_property
    def share(self) -> Fraction:
        """Its part of what the rule that was rounded has; 1 if that has nothing.

        Where requirements leave only rules that do harm, the part of the harm that is unavoidable.
        """
        original: Fraction = getattr(self.original, self.measure)
        mine: Fraction = getattr(self.recount, self.measure)
        if original > 0:
            return mine / original
        return Fraction(1) if mine >= original else original / mine

    def __str__(self) -> str:
        terms = sorted(self.weights.items(), key=lambda term: -abs(term[1]))
        if len(terms) == 1 and terms[0][1] == 1 and not terms[0][0][:1].isdigit():
            score = terms[0][0]
        else:
            score = " ".join(f"{plain(value, '+')} {name}" for name, value in terms).lstrip("+")
        return f"{score} ≥ {plain(self.threshold)}"

    def to_dict(self) -> dict[str, Any]:
        """The object printed under ``--json``."""
        return {
            "text": str(self),
            "weights": {name: float(value) for name, value in self.weights.items()},
            "threshold": float(self.threshold),
            self.measure: round_down(getattr(self.recount, self.measure)),
            "share": round_down(self.share),
            "digits": self.digits,
        }


def facts(
    instance: Instance, found: Recount | None, rule: PrintedRule | None, edge: Fragile | None
) -> dict[str, Any]:
    """What is printed about the rule of a result, for ``--json``; None where there is no rule."""
    return {
        "digest": instance.digest,
        "features": list(instance.feature_names),
        "printed": None if rule is None else rule.to_dict(),
        "moving_share": None if found is None else float(found.share(movers(found))),
        "accepted_share": None if found is None else float(found.accepted_share),
        "fragile": None if edge is None else edge.to_dict(),
        "warnings": caveats(instance, found),
    }


def plain(value: Decimal, sign: str = "") -> str:
    """A decimal as it is typed: no power of ten unless it is very large or very small.

    >>> plain(Decimal("0.02500")), plain(Decimal("1E+3"), "+"), plain(Decimal("-1E-9"))
    ('0.025', '+1000', '-1e-9')
    """
    shown = value.normalize()
    if shown and not -7 <= shown.adjusted() <= 15:
        return f"{shown:{sign}e}"
    return f"{shown:{sign}f}"


def printed(
    found: Recount,
    digits: int | None = None,
    measure: Measure = "gain",
    demands: Demands | None = None,
) -> PrintedRule:
    """A rule rounded for people to type, its threshold found again.

    Parameters
    ----------
    found : Recount
        The rule.
    digits : int, optional
        Digits of the reach that weights and threshold resolve; by default as few as keep 99.9 % of
        the gain.
    measure : {"gain", "density"}
        What the threshold is to make as large as possible.
    demands : Demands, optional
        What is demanded of rules, and met by this one; the rule that is printed meets it, too, if
        need be in full.

    Examples
    --------
    >>> from mipmech.model import Instance, Mechanism, best_threshold
    >>> sample = Instance.from_arrays([[0.0], [1 / 3]], [1.0], visible=[0], cost=1.0)
    >>> rule = printed(best_threshold(sample, Mechanism((1.0,), 0.0)))
    >>> str(rule), rule.share >= 0.999
    ('x0 ≥ 0.9999', True)
    """
    check_digits(digits)
    press = _Press(found, measure, demands)
    numbers = range(FEWEST, MOST + 1) if digits is None else range(digits, MOST + 1)
    best = press.rule(numbers[0], clear=True)
    for number in numbers[1:]:
        if best.met and best.off <= NEARLY and (digits is not None or _good(best)):
            return best
        best = max(best, press.rule(number, clear=True), key=_merit)
    if best.share <= SWALLOWED or not best.met:
        tried = [press.rule(number, clear=False) for number in numbers]
        best = max(best, *tried, key=_merit)
    return best if best.met else press.in_full()


def _good(rule: PrintedRule) -> bool:
    return rule.share >= PRINTED_SHARE and rule.misstated <= MISSTATED


def _merit(rule: PrintedRule) -> tuple[bool, bool, bool, Fraction]:
    return rule.met, rule.off <= NEARLY, rule.misstated <= MISSTATED, rule.share


def _worth(rule: PrintedRule) -> tuple[bool, Fraction]:
    return rule.met, rule.share


def check_digits(digits: int | None) -> None:
    """Refuse what no rule can be printed in, before any work is done."""
    if digits is not None and not 1 <= digits <= MOST:
        raise InputError(f"is {digits}; give a number from 1 to {MOST}", field="digits")


class _Press:
    """Rounds one rule.

    reach : how far people move on average, or could if nobody does
    terms : what gets a rounded coefficient each: the features that the rule uses, or the rows of a
        view in few digits; by number of the feature, and in the user's units
    table : (t, n) array, the same as floats; None where terms are features
    columns : the numbers of those
    coefficients : (t,) array, one for each term
    spreads : (t,) array, how much each term varies, or moves
    """

    def __init__(self, found: Recount, measure: Measure, demands: Demands | None = None) -> None:
        self.found = found
        self.measure: Measure = measure
        self.demands = demands
        self.instance = instance = found.instance
        self.names = instance.feature_names
        units = instance.units
        self.scale = np.ones(instance.width) if units is None else np.array(units.scale)
        counts = instance.weights > 0
        movers = found.covered[counts[found.covered]]
        if len(movers):
            self.reach = found.soft_density / float(found.density)
        if not len(movers) or self.reach == 0:
            self.reach = float(np.median(instance.reach[counts]))
        view = instance.view
        self.rational = 0 if view.columns is not None else PRODUCT * view.matrix.size
        weights = np.array(found.mechanism.weights)
        self.table: Floats | None = None
        # No matrix of features by features: there may be thousands.
        self.columns = np.flatnonzero(weights)
        self.terms = [{j: Decimal(1)} for j in self.columns.tolist()]
        coefficients = (weights / self.scale)[self.columns]
        if view.columns is None and found.mechanism.view_weights is not None:
            rows = view.matrix[list(view.rows)]
            short = [[Decimal(f"{w:.{DIGITS}g}") for w in row] for row in rows / self.scale]
            if max(len(w.normalize().as_tuple().digits) for row in short for w in row) <= SHORT:
                self.terms = [{j: w for j, w in enumerate(row) if w} for row in short]
                self.table = np.array(short, dtype=np.float64)
                coefficients = np.array(found.mechanism.view_weights)[list(view.rows)]
        self.cone = None if demands is None else demands.cone
        if self.table is None:
            moved = instance.agents[np.ix_(counts, self.columns)] - instance.centre[self.columns]
            values = moved * self.scale[self.columns]
        else:
            values = (instance.agents[counts] - instance.centre) @ rows.T
        offsets = np.abs(values).mean(axis=0)
        self.spreads = np.maximum(2 * offsets, self.reach * self._lengths(len(offsets)))
        self.coefficients: Floats = coefficients

    def rule(self, digits: int, clear: bool) -> PrintedRule:
        """The best of the rules that were tried with so many digits.

        clear : whether its threshold keeps clear of the ends of reaches
        """
        self.room = 1.0 if clear else 0.0
        given, fine = self._leading(digits)
        places = self._places(fine)
        rounded = [_at(c, place) for c, place in zip(given, places, strict=True)]
        if self.instance.costs.norm == "linf":  # whatever has a weight is worked on
            for j, value in enumerate(self.coefficients):
                if value and not rounded[j]:
                    rounded[j] = Decimal(1).copy_sign(Decimal(float(value))).scaleb(places[j])
        if not any(rounded):  # one digit of many like coefficients: keep the largest
            largest = int(np.argmax(np.abs(given)))
            rounded[largest] = Decimal(1).copy_sign(Decimal(float(given[largest])))
        if self.cone is not None:
            self._put_inside(rounded, places)
        place = _place(fine)
        best = self._graded(rounded, place, digits)
        each = self.instance.size + self.instance.width + self.rational
        looks = 2 * each * sum(map(bool, rounded))
        for _ in range(min(SWEEPS, MOVES // looks)):
            if best.met and best.share >= PRINTED_SHARE:
                break
            tried = [(self._graded(near, place, digits), near)
                     for near in _neighbours(rounded, places)]  # fmt: skip
            better, near = max(tried, key=lambda pair: _worth(pair[0]), default=(best, rounded))
            if _worth(better) <= _worth(best):
                break
            best, rounded = better, near
        return best

    def _leading(self, digits: int) -> tuple[Floats, float]:
        """Coefficients of which the largest is 1, and what a score is rounded to."""
        given = self.coefficients.copy()
        for _ in range(2):  # once more without those that do not matter
            given /= np.abs(given).max()
            length = self.instance.costs.length(self._by_feature(given))
            fine = self.reach * length * 10.0**-digits
            given[np.abs(given) * self.spreads < fine / 2] = 0.0
        return given, fine

    def _by_feature(self, given: Floats) -> Floats:
        """What these coefficients weigh features with, (n,) array."""
        if self.table is not None:
            return np.asarray(given @ self.table * self.scale)
        weights = np.zeros(len(self.scale))
        weights[self.columns] = given * self.scale[self.columns]
        return weights

    def _lengths(self, terms: int) -> Floats:
        """How far each term goes by a move of length 1."""
        if self.table is None and self.instance.costs.plain:
            return self.scale[self.columns]
        one, found = np.zeros(terms), np.empty(terms)
        for i in range(terms):
            one[i] = 1.0
            found[i] = self.instance.costs.length(self._by_feature(one))
            one[i] = 0.0
        return found

    def _graded(self, rounded: list[Decimal], place: int, digits: int) -> PrintedRule:
        """These coefficients with the best threshold that is a multiple of 10^place."""
        step = Fraction(10) ** place
        weights = [Decimal(0)] * len(self.names)
        for c, term in zip(rounded, self.terms, strict=True):
            if c:
                for j, size in term.items():
                    weights[j] += c * size
        sight = on_sight(self.instance, [Fraction(float(w)) for w in weights])
        mechanism, moved = sight.mechanism, sight.shift
        direction = ExactDirection(self.instance, mechanism)
        room = self.room * plain_error(direction, sight.weights, self.instance.centre)
        # A level e is the threshold (first + rest + e)·step, in the user's units.
        start = (direction.centre_score / direction.line.factor + moved) / step
        first = math.floor(start)
        rest = float(start - first)
        height = float(step * direction.line.factor)
        ends = direction.scores + direction.limits - 2 * room
        multiples = np.unique(np.floor(rest + ends[self.instance.weights > 0] / height))
        if self.demands is not None:  # one above everybody may be all that is allowed
            multiples = np.append(multiples, multiples[-1] + 1)
        levels = (multiples - rest) * height
        soft, mass = soft_profile(direction, levels)
        values = soft if self.measure == "gain" else mass
        harm = self.measure == "gain" and direction.line.rise < 0
        values = -values if harm else values
        least = Fraction(float(values.min())) if harm else Fraction(0)
        best: tuple[tuple[bool, Fraction], Recount, Fraction, bool] | None = None
        for i in self._candidates(values, levels, ends):
            threshold = (first + int(multiples[i])) * step
            found = direction.recount(mechanism, clamped(Fraction(float(threshold)) - moved))
            value = found.moved if self.measure == "gain" else found.density
            value = -value if harm else value
            met = self.demands is None or self.demands.met(found)
            if best is None or (met, value) > best[0]:
                safe = len(endangered(direction, found, room)) == 0
                if safe or best is None or met > best[3]:
                    best = ((met, value if safe else least), found, threshold, met)
            elif best[3] and float(best[0][1]) >= values[i]:
                break
        assert best is not None
        shown = {name: w for name, w in zip(self.names, weights, strict=True) if w}
        numerator = best[2] / step
        decimal = Decimal(int(numerator)).scaleb(place)
        return PrintedRule(
            shown, decimal, best[1], self.found, digits, self.measure, sight.off,
            sight.misstated(self.instance), best[3],
        )  # fmt: skip

    def _candidates(self, values: Floats, levels: Floats, ends: Floats) -> Numbers:
        """Levels to look at exactly, the best first; with limits on who is accepted, few others.

        ends : (m,) array, where agents are lost
        """
        order = np.argsort(-values, kind="stable")
        shares = None if self.demands is None else self.demands.shares
        if shares is None:
            return order[:TRIED]
        counts = np.flatnonzero(shares.mass > 0)
        descending = counts[np.argsort(-ends[counts], kind="stable")]
        table = np.zeros((len(counts), len(shares.totals)))
        table[np.arange(len(counts)), shares.members[descending]] = shares.mass[descending]
        total = np.vstack([np.zeros(table.shape[1]), np.cumsum(table, axis=0)])
        above = np.searchsorted(-ends[descending], -levels, side="right")
        fits = shares.fitting(total[above])
        # Of those that seem to fail, some: floats may err by one agent.
        return np.concatenate([order[fits[order]][:TRIED], order[~fits[order]][: TRIED // 4]])

    def _places(self, fine: float) -> list[int]:
        """The last digit of each coefficient, as a power of ten.

        Those that are compared with one another have the same, and so keep their order.
        """
        places = [_place(fine / spread) for spread in self.spreads]
        if self.cone is not None:
            for one, other in self._compared():
                if one is not None and other is not None:
                    places[one] = places[other] = min(places[one], places[other])
        return places

    def _compared(self) -> Iterator[tuple[int | None, int | None]]:
        """The coefficients of each pair of the cone; None for the number 0, and for no term."""
        assert self.cone is not None
        where = {int(j): t for t, j in enumerate(self.columns)}
        if self.table is not None:
            where = {row: t for t, row in enumerate(self.instance.view.rows)}
        for _ in self.cone.pairs:  # until the finest digit has reached all
            for above, below in self.cone.pairs:
                yield where.get(above), where.get(below)

    def _put_inside(self, rounded: list[Decimal], places: list[int]) -> None:
        """Raise coefficients until each is at least those that it must be, by whole last digits.

        Exactly what is demanded is tested afterwards, on the rule that is graded.
        """
        scale = np.ones(len(rounded)) if self.table is not None else self.scale[self.columns]
        for one, other in self._compared():
            if one is None:
                continue
            least = Fraction(0)
            if other is not None:
                least = Fraction(rounded[other]) * Fraction(float(scale[other]))
            least /= Fraction(float(scale[one]))
            if Fraction(rounded[one]) < least:
                digit = Fraction(10) ** places[one]
                rounded[one] = Decimal(math.ceil(least / digit)).scaleb(places[one])

    def in_full(self) -> PrintedRule:
        """The rule that was to be rounded, with all digits of its floats."""
        mechanism = self.found.mechanism
        known = in_known_units(self.instance, mechanism)
        weights = {name: Decimal(repr(weight)) for name, weight in known.weights}
        threshold = Decimal(repr(known.threshold))
        return PrintedRule(
            weights, threshold, self.found, self.found, FULL, self.measure,
        )  # fmt: skip


def _place(value: float) -> int:
    """The power of ten that is nearest to a positive number."""
    return round(math.log10(value))


def _at(value: float, place: int) -> Decimal:
    """A number rounded to a multiple of 10^place."""
    return Decimal(round(Fraction(float(value)) / Fraction(10) ** place)).scaleb(place)


def _neighbours(rounded: list[Decimal], places: list[int]) -> Iterator[list[Decimal]]:
    """The same weights with one of them, but not the largest, moved by one in its last digit."""
    largest = max(range(len(rounded)), key=lambda j: abs(rounded[j]))
    for j, weight in enumerate(rounded):
        if weight and j != largest:
            for sign in (1, -1):
                changed = list(rounded)
                changed[j] = weight + Decimal(sign).scaleb(places[j])
                yield changed
