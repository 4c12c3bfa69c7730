"""The worked leaf of docs/proof-format.md: computed from the text alone, and by the checker."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import mipmech
from mipmech.checker.agents import Agents
from mipmech.checker.bounds import LeafBounds, all_of, context_of
from mipmech.checker.leaves import no_look
from mipmech.checker.witness import ExactInstance
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "proof-format.md"

# Four agents of equal weight, all seen, reach 1; p = w_f; frame the identity, centre 0, unit 1.
AGENTS = {"A": (0.0, 0.0), "B": (0.5, -0.5), "C": (-0.4, 0.3), "D": (-2.0, 0.0)}
P = (1.0, 0.5)
REACH, WEIGHT = 1.0, 0.25
# The leaf: a box on the facet x_1 = 1, times thresholds.
CENTRE, HALF, LOW, HIGH = (1.0, 0.25), (0.0, 0.25), 0.5, 0.75


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


class Cell:
    """ĉ, μ, g and cos α, and the range of v·z."""

    def __init__(self):
        self.length = math.sqrt(dot(CENTRE, CENTRE))
        self.unit = [c / self.length for c in CENTRE]
        inner = dot(CENTRE, CENTRE) - sum(h * abs(c) for h, c in zip(HALF, CENTRE, strict=True))
        self.nearest = inner / self.length
        self.widths = [h / self.nearest for h in HALF]
        self.cosine = 1 / math.sqrt(1 + dot(self.widths, self.widths))

    def across(self, z):
        t = dot(self.unit, z)
        return t, [a - t * c for a, c in zip(z, self.unit, strict=True)]

    def range(self, z):
        t, across = self.across(z)
        e = sum(g * abs(a) for g, a in zip(self.widths, across, strict=True))
        low, high = t - e, t + e
        return min(low, low * self.cosine), max(high, high * self.cosine)


def bounded(cell, total_w, total_c, total_s, constant):
    """max(v·p) · (W b₁ − C − min(v·S) + constant)."""
    least = cell.range(total_s)[0]
    return cell.range(P)[1] * (total_w * HIGH - total_c - least + constant)


def tilted(cell, fixed, agent, slope, most, steepest):
    """Bound 3 for one agent with a line through (ℓ, ℓ): its slope, and the bound."""
    middle, room = (LOW + HIGH) / 2, (HIGH - LOW) / 2
    t, across = cell.across(agent)

    def totals(a):
        """W, C, S with the line a·(d − ℓ) drawn in."""
        vector = [s + a * y for s, y in zip(fixed[2], agent, strict=True)]
        return fixed[0] + a, fixed[1] + a * REACH, vector

    w, c, s = totals(slope)
    rate, size = dot(cell.unit, P), math.sqrt(dot(P, P))
    value = WEIGHT * REACH + w * middle - c - dot(cell.unit, s)
    scale = max(value, 0.0) / max(rate, size / 1024)
    pull = [scale * p - part for p, part in zip(P, s, strict=True)]
    left = cell.across(pull)[1]
    for _ in range(2):
        turns = [slope - w, *(slope + r / x for r, x in zip(left, across, strict=True) if x)]
        costs = []
        for a in [*turns, -64.0, 64.0]:
            rest = [r - (a - slope) * x for r, x in zip(left, across, strict=True)]
            sides = sum(g * abs(r) for g, r in zip(cell.widths, rest, strict=True))
            costs.append(a * (middle - t - REACH) + room * abs(w + a - slope) + sides)
        best = min(zip(costs, [*turns, -64.0, 64.0], strict=True))[1]
        best = min(most, max(steepest, best))
        w, c, s = totals(best)
        left = [r - (best - slope) * x for r, x in zip(left, across, strict=True)]
        slope = best
    value = WEIGHT * REACH + w * middle - c - dot(cell.unit, s)
    spread, centre = abs(w) * room, dot(cell.unit, s)
    low, high = cell.range(s)
    over, under = spread + centre - low, -spread + centre - high
    q = [value * p - rate * part for p, part in zip(P, s, strict=True)]
    bracket = abs(rate) * spread + cell.range(q)[1] - dot(cell.unit, q)
    ends = [end - rate for end in cell.range(P)]
    product = max(x * y for x in ends for y in (over, under))
    return slope, value, bracket, product, rate * value + bracket + product


def lines():
    """The block of numbers in the page."""
    cell = Cell()
    unit = f"({cell.unit[0]:.6f}, {cell.unit[1]:.6f})"
    yield f"‖c‖ = {cell.length:.6f}  ĉ = {unit}  μ = {cell.nearest:.6f}"
    yield f"g = ({cell.widths[0]:.6f}, {cell.widths[1]:.6f})  cos α = {cell.cosine:.6f}"
    total = [0.0, 0.0, [0.0, 0.0]]
    constant, blended, level = 0.0, [0.0, 0.0, [0.0, 0.0]], 0.0
    fixed, far = [0.0, 0.0, [0.0, 0.0]], None

    def add(to, a, start, y):
        to[0] += a
        to[1] += a * start
        to[2] = [s + a * v for s, v in zip(to[2], y, strict=True)]

    for name, y in AGENTS.items():
        lo, hi = cell.range(y)
        least, most = LOW - hi, HIGH - lo
        text = f"{name}  v·y in [{lo:.6f}, {hi:.6f}]  d in [{least:.6f}, {most:.6f}]"
        if most < 0 or least > REACH:
            yield f"{text}  out"
            continue
        if least >= 0 and most < REACH:
            for to in (total, blended, fixed):
                add(to, WEIGHT, 0.0, y)
            yield f"{text}  in"
            continue
        top, base = min(most, REACH), min(least, 0.0)
        share = min(1.0, max(0.0, (REACH - (HIGH - hi)) / (hi - lo))) if most > REACH else 1.0
        a = WEIGHT * top / (top - base)
        constant += WEIGHT * top
        add(blended, a * share, base, y)
        level += WEIGHT * (1 - share) * top
        if most > REACH:
            assert far is None
            steepest = max(-WEIGHT * REACH / (most - REACH), -64.0)
            far = (y, a * share, a, steepest)
            limits = f", slope from {steepest:.6f} to {a:.6f}"
        else:
            add(fixed, a, base, y)
            limits = ""
        yield f"{text}  open: top {top:.6f}, base {base:.6f}, share {share:.6f}{limits}"
    first = bounded(cell, *total, constant)
    second = bounded(cell, *blended, level)
    yield f"v·p at most {cell.range(P)[1]:.6f}"
    yield f"separately  {first:.6f}"
    yield f"blended     {second:.6f}"
    slope, value, bracket, product, third = tilted(cell, fixed, far[0], far[1], far[2], far[3])
    parts = f"{third - bracket - product:.6f} + {bracket:.6f} + {product:.6f}"
    yield f"tilted      {third:.6f} = {parts}  with slope {slope:.6f}, V = {value:.6f}"


def three(text):
    """The three bounds that the block ends with."""
    names = ("separately", "blended", "tilted")
    return [float(line.split()[1]) for line in text if line.startswith(names)]


def test_the_page_shows_these_numbers():
    assert "\n".join(lines()) in PAGE.read_text()


@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_checker_has_the_same_three_bounds(number):
    """It goes on to the next one until a bound is low enough."""
    instance = mipmech.Instance.from_arrays(list(AGENTS.values()), P, visible=[0, 1], cost=1.0)
    proof = {
        "frame": [[1.0, 0.0], [0.0, 1.0]], "centre": [0.0, 0.0], "unit": 1.0,
        "thresholds": [-9.0, 9.0],
    }  # fmt: skip
    agents = Agents(ExactInstance(instance, no_look), proof, None, Fraction(0))
    expected = three(lines())
    leaf = LeafBounds(context_of(agents, expected[number] + 1e-5), all_of(agents), no_look)
    box = np.array([CENTRE]), np.array([HALF]), np.array([LOW]), np.array([HIGH])
    leaf.leaves(box, all_of(agents))
    leaf.tilt()
    assert leaf.highest == pytest.approx(expected[number], abs=1e-6)


def test_the_bounds_hold_in_the_leaf():
    """Directions and thresholds all over it, in floats."""
    cell, worst = Cell(), 0.0
    for x in np.linspace(CENTRE[1] - HALF[1], CENTRE[1] + HALF[1], 101):
        v = np.array([1.0, x]) / math.hypot(1.0, x)
        for b in np.linspace(LOW, HIGH, 101):
            d = b - np.array(list(AGENTS.values())) @ v
            moved = WEIGHT * d[(d >= 0) & (d <= REACH)].sum()
            worst = max(worst, float(v @ P) * moved)
    assert 0.5 < worst <= min(three(lines()))
    assert cell.range(P)[1] >= 1.0
