"""The exact truth: density, gain and value of a mechanism in rationals. The only grader.

For a rule w·x ≥ b with any w ≠ 0, let d_i = b − w·x_i, N(w) the norm that is dual to that of the
costs (‖w‖ for Euclidean ones), and g the cheapest move that raises the score by 1 (`model.costs`).
Agent i moves iff d_i ≥ 0 and d_i² ≤ ℓ_i² N(w)² (Lemma 1 without the root; both ends closed), and

    Gain = (w_f·g) Σ ω_i d_i   over those who move;     w_f·g = (w·w_f)/‖w‖² for Euclidean costs.

The floats of the file are rationals, so all of this is exact. A float filter with an error bound
settles almost every agent; integers settle the rest; sums are exact (`rationals.exact_dot`), so
that a million agents take about a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipmech.model.costs.response import Sparse, product
from mipmech.model.instance import Instance
from mipmech.model.mechanism import Mechanism
from mipmech.rationals import (
    clamped,
    common_integers,
    exact_dot,
    exact_sum,
    fractions,
    round_down,
    round_up,
    sqrt_bounds,
)
from mipmech.tolerances import EPSILON, UNDERFLOW
from mipmech.validation import Flags, Floats, Numbers

Sides = NDArray[np.int8]

# Above this many undecided agents it pays to look for equal ones first.
WORTH_SORTING = 256


class Side(IntEnum):
    """The position of an agent before it moves."""

    ABOVE = -1  # passes already
    INSIDE = 0  # in the margin: moves (by 0 if exactly on the threshold)
    BEYOND = 1  # too far to move


@dataclass(frozen=True)
class Line:
    """A direction in the user's coordinates, exactly, scaled by a power of two to about 1.

    columns, weights : the features with a weight, and their weights
    factor : the power of two
    square : N(w)², scaled
    step : by feature, the cheapest move that raises the (scaled) score by 1
    rise : what that move does for quality, w_f·step
    ties : the same for other moves of the same cost (l1), which agents do not take
    """

    columns: tuple[int, ...]
    weights: tuple[Fraction, ...]
    factor: Fraction
    square: Fraction
    step: Sparse
    rise: Fraction
    ties: tuple[Fraction, ...] = ()

    @classmethod
    def of(cls, instance: Instance, mechanism: Mechanism) -> Line:
        """The line of a mechanism that fits the instance."""
        exact = mechanism.exact_weights(instance)
        largest = max(abs(w) for w in exact)
        exponent = largest.numerator.bit_length() - largest.denominator.bit_length()
        factor = Fraction(2) ** -exponent
        columns = tuple(j for j, weight in enumerate(exact) if weight)
        weights = tuple(exact[j] * factor for j in columns)
        scaled = dict(zip(columns, weights, strict=True))
        response = instance.costs.respond(scaled, instance.exact_quality)
        rise = product(response.step, instance.exact_quality)
        return cls(columns, weights, factor, response.square, response.step, rise, response.ties)

    def moved(self, agents: Floats, distances: Floats) -> Floats:
        """The features of agents after moves that raise their (scaled) scores by these distances.

        agents : (a, n) array; distances : (a,) array
        """
        after = np.array(agents)
        for column, by in self.step.items():
            after[:, column] += distances * float(by)
        return after


def _dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


class ExactDirection:
    """The scores of a sample along a direction, and the thresholds there.

    Scores and ends are floats in units of their own (weights scaled by a power of two, taken from
    a centre), each within ``error`` of the exact number in these units.

    line : the direction, exactly
    scores : (m,) array, w·(x_i − centre)
    limits : (m,) array, reach_i N(w): agent i is in the margin for b in [score, score + limit]
    error : (m,) array, bounds the rounding of scores and of scores + limits
    """

    def __init__(self, instance: Instance, mechanism: Mechanism) -> None:
        self.instance = instance
        self.line = line = Line.of(instance, mechanism)
        columns = list(line.columns)
        self.x = instance.agents[:, columns]
        centre = instance.centre[columns]
        self.centre_score = self._score(centre)
        rounded = np.array([float(w) for w in line.weights])
        offsets = self.x - centre
        self.scores: Floats = offsets @ rounded
        self.norm = float(sum(sqrt_bounds(line.square)) / 2)
        self.limits: Floats = self.norm * instance.reach
        # Subtraction, rounding of w, products and sums: fewer than n + 4 roundings on a path.
        np.abs(offsets, out=offsets)
        self.error: Floats = (len(columns) + 4) * EPSILON * (offsets @ np.abs(rounded))
        self.error += 8 * EPSILON * self.limits + UNDERFLOW

    def _score(self, x: Floats) -> Fraction:
        """w·x in rationals, scaled."""
        return _dot(self.line.weights, fractions(x))

    def level(self, threshold: float) -> Fraction:
        """A threshold in the units of the scores."""
        return Fraction(threshold) * self.line.factor - self.centre_score

    def threshold(self, level: float) -> float:
        """A level in the units of the scores as a threshold, rounded."""
        return clamped((Fraction(level) + self.centre_score) / self.line.factor)

    def left_end(self, agent: int) -> float:
        """The smallest threshold that agent does not pass already (or meets exactly)."""
        return round_up(self._score(self.x[agent]) / self.line.factor)

    def right_end(self, agent: int) -> float:
        """The largest threshold within the agent's reach."""
        reach = sqrt_bounds(self.line.square)[0] * self.instance.costs.reach_of(agent)
        return round_down((self._score(self.x[agent]) + reach) / self.line.factor)

    def recount(self, mechanism: Mechanism, threshold: float) -> Recount:
        """The outcome of the mechanism (of this direction) with this threshold."""
        return Recount(self.instance, mechanism.at(threshold), self.line, self.sides(threshold))

    def sides(self, threshold: float, agents: Numbers | None = None) -> Sides:
        """The `Side` of every agent (or of those listed), exactly."""
        scores, limits, error = self.scores, self.limits, self.error
        if agents is not None:
            scores, limits, error = scores[agents], limits[agents], error[agents]
        level = clamped(self.level(threshold))
        distance = level - scores
        doubt = error + 4 * EPSILON * (abs(level) + np.abs(distance))
        above = distance < -doubt
        beyond = distance - limits > doubt
        inside = (distance > doubt) & (limits - distance > doubt)
        result = beyond.astype(np.int8) - above.astype(np.int8)
        open_cases = np.flatnonzero(~(above | beyond | inside))
        if len(open_cases):
            numbers = open_cases if agents is None else agents[open_cases]
            result[open_cases] = self._settle(threshold, numbers)
        return result

    def _settle(self, threshold: float, agents: Numbers) -> Sides:
        """The sides of agents that floats cannot tell, in integers."""
        costs = self.instance.costs
        rows = np.column_stack([self.x[agents], costs.values[agents]])
        inverse: NDArray[np.intp] | slice = slice(None)
        if len(agents) > WORTH_SORTING:
            rows, inverse = np.unique(rows, axis=0, return_inverse=True)
            inverse = inverse.reshape(-1)
        x, x_shift = common_integers(rows[:, :-1])
        paid, paid_shift = common_integers(rows[:, -1])
        # All denominators are powers of two; bring everything to the largest of them.
        bound = Fraction(threshold) * self.line.factor
        w_shift = max(w.denominator for w in self.line.weights).bit_length() - 1
        shift = max(x_shift + w_shift, bound.denominator.bit_length() - 1)
        score = sum(
            x[:, j] * int(w * (1 << (shift - x_shift))) for j, w in enumerate(self.line.weights)
        )
        distance = int(bound * (1 << shift)) - score
        # c²d² ≤ N², or d² ≤ ℓ²N²: whole numbers on the left, so the right may be rounded down.
        square = self.line.square
        if costs.given == "cost":
            left, right = (paid * distance) ** 2, int(square * (1 << 2 * (shift + paid_shift)))
        else:
            left = (distance << paid_shift) ** 2
            scaled = square.numerator << 2 * shift
            right = paid**2 * scaled // square.denominator
        sides = np.where(distance < 0, Side.ABOVE, np.where(left <= right, 0, Side.BEYOND))
        return np.asarray(sides, dtype=np.int8)[inverse]


@dataclass(frozen=True, eq=False)
class Recount:
    """A mechanism's exact outcome on an instance; every figure is a Fraction.

    Attributes
    ----------
    instance : Instance
    mechanism : Mechanism
    line : Line
        The mechanism's direction, exactly.
    sides : (m,) array of Side
    """

    instance: Instance
    mechanism: Mechanism
    line: Line
    sides: Sides

    def __repr__(self) -> str:
        count = len(self.covered)
        return (
            f"Recount({count} of {len(self.sides)} in the margin:"
            f" density={float(self.density):.6g}, gain={float(self.gain):.6g}; {self.mechanism})"
        )

    @property
    def covered(self) -> Numbers:
        """The numbers of the agents in the margin."""
        return np.flatnonzero(self.sides == Side.INSIDE)

    @property
    def accepted(self) -> Flags:
        """Who passes in the end."""
        return self.sides <= Side.INSIDE

    @cached_property
    def density(self) -> Fraction:
        """Den: the share of agents in the margin."""
        return _mass(self.instance, self.sides == Side.INSIDE)

    @cached_property
    def direction(self) -> ExactDirection:
        """The scores of its direction, for questions that are asked of one rule."""
        return ExactDirection(self.instance, self.mechanism)

    @cached_property
    def moves(self) -> Floats:
        """How far each agent moves, an (m,) array in the measure of its costs; rounded."""
        direction = self.direction
        distances = float(direction.level(self.mechanism.threshold)) - direction.scores
        inside = self.sides == Side.INSIDE
        return np.where(inside, np.maximum(distances, 0.0) / direction.norm, 0.0)

    def share(self, agents: Numbers) -> Fraction:
        """The share of some agents, by weight.

        Parameters
        ----------
        agents : array of int
            Their numbers.
        """
        flags = np.zeros(len(self.sides), dtype=bool)
        flags[agents] = True
        return _mass(self.instance, flags)

    @cached_property
    def moved(self) -> Fraction:
        """Σ ω_i d_i over those who move, for the direction's scaled weights: N(w) times SDen."""
        inside = self.sides == Side.INSIDE
        line = self.line
        bound = Fraction(self.mechanism.threshold) * line.factor
        scores = _mean(self.instance, inside, line.columns, line.weights)
        return bound * self.density - scores

    @cached_property
    def gain(self) -> Fraction:
        """How much the mechanism raises mean quality."""
        return self.line.rise * self.moved

    @cached_property
    def baseline(self) -> Fraction:
        """E[f(x)]: the mean quality before any mechanism."""
        return baseline(self.instance)

    @property
    def value(self) -> Fraction:
        """Val: the mean quality after everyone has responded."""
        return self.baseline + self.gain

    @cached_property
    def accepted_share(self) -> Fraction:
        """The share of agents who pass in the end."""
        return _mass(self.instance, self.accepted)

    def accepted_by(self, name: str) -> dict[str, Fraction]:
        """The share of each group that passes in the end, by weight; exact.

        Groups whose weights are all 0 are left out.

        Parameters
        ----------
        name : str
            The grouping, one of the instance's ``groups``.

        Examples
        --------
        >>> sample = Instance.from_arrays(
        ...     [[0.0], [0.5], [1.0]], [1.0], visible=[0], cost=1.0, groups={"sex": ["f", "m", "f"]}
        ... )
        >>> recount(sample, Mechanism((1.0,), 1.5)).accepted_by("sex")
        {'f': Fraction(1, 2), 'm': Fraction(1, 1)}
        """
        weights, accepted = self.instance.weights, self.accepted
        found = {}
        for label, agents in self.instance.groups.named(name).parts():
            total = exact_sum(weights[agents])
            if total:
                found[label] = exact_sum(weights[agents[accepted[agents]]]) / total
        return found

    @cached_property
    def accepted_quality(self) -> Fraction | None:
        """E[f | accepted] after the moves (the paper's Discussion); None if nobody passes."""
        if not self.accepted_share:
            return None
        return (_quality(self.instance, self.accepted) + self.gain) / self.accepted_share

    @cached_property
    def soft_density(self) -> float:
        """SDen in the user's units; the only figure with a root in it, hence a float."""
        return float(self.moved / sqrt_bounds(self.line.square)[0])

    @cached_property
    def soft_density_below(self) -> Fraction:
        """SDen in the user's units, from below by less than 2^-200 of itself."""
        low, high = sqrt_bounds(self.line.square)
        return self.moved / (high if self.moved > 0 else low)

    def eta_within(self, eta: float, tolerance: float) -> bool:
        """Whether η, the quality gained per unit of cost, is within the tolerance: up to 2^-200.

        On an edge between facets of an l1 sphere, a rule is on all of them.

        Parameters
        ----------
        eta, tolerance : float
            η, and how much it may be missed by.
        """
        center, width = Fraction(eta), Fraction(tolerance)
        roots = sqrt_bounds(self.line.square)
        for rise in (self.line.rise, *self.line.ties):
            ends = sorted(rise * root for root in roots)
            if center - width <= ends[0] and ends[1] <= center + width:
                return True
        return False

    @property
    def eta(self) -> float:
        """Quality gained per unit of distance moved, w·w_f/‖w‖ for Euclidean costs; rounded."""
        return float(self.line.rise * sqrt_bounds(self.line.square)[0])

    def plot(self, rule: str | None = None) -> Any:
        """A matplotlib figure of the rule, and of who moves.

        Parameters
        ----------
        rule : str, optional
            The rule in words, if it is known in few digits.
        """
        from mipmech.plots.rule import picture  # noqa: PLC0415  (matplotlib is slow to import)

        return picture(self, rule=rule)

    def to_dict(self) -> dict[str, Any]:
        """The figures as floats."""
        quality, groups = self.accepted_quality, self.instance.groups
        rates = {
            name: {label: float(share) for label, share in self.accepted_by(name).items()}
            for name in groups
        }
        return {
            "mechanism": self.mechanism.to_dict(),
            "density": float(self.density),
            "gain": float(self.gain),
            "value": float(self.value),
            "accepted_share": float(self.accepted_share),
            "accepted_quality": None if quality is None else float(quality),
            "covered": self.covered.tolist(),
            **({"groups": rates} if groups else {}),
        }


def _mass(instance: Instance, agents: Flags | slice) -> Fraction:
    """Σ ω_i over some agents, ω normalised."""
    return exact_sum(instance.weights[agents]) / exact_sum(instance.weights)


def _mean(
    instance: Instance,
    agents: Flags | slice,
    columns: Sequence[int],
    coefficients: Sequence[Fraction],
) -> Fraction:
    """Σ ω_i (coefficients · x_i) over some agents, ω normalised."""
    weights = instance.weights[agents]
    sums = [exact_dot(instance.agents[agents, j], weights) for j in columns]
    return _dot(coefficients, sums) / exact_sum(instance.weights)


def _quality(instance: Instance, agents: Flags | slice) -> Fraction:
    """Σ ω_i f(x_i) over some agents, before they move."""
    columns = [int(j) for j in np.flatnonzero(instance.quality)]
    mean = _mean(instance, agents, columns, fractions(instance.quality[columns]))
    return mean - Fraction(instance.quality_offset) * _mass(instance, agents)


def baseline(instance: Instance) -> Fraction:
    """E[f(x)]: the mean quality before any mechanism."""
    return _quality(instance, slice(None))


def recount(instance: Instance, mechanism: Mechanism) -> Recount:
    """Grade a mechanism in rationals.

    Ties are settled exactly. The float 0.1 is above 1/10, so a threshold of 0.1 is beyond a reach
    of 1/10; the rule 10x ≥ 1 is not (see the examples).

    Parameters
    ----------
    instance, mechanism : Instance, Mechanism
        The sample and the rule.

    Examples
    --------
    >>> sample = Instance.from_arrays([[0.0], [1.0]], [1.0], visible=[0], cost=[10.0, 1.0])
    >>> recount(sample, Mechanism((1.0,), 0.1)).density
    Fraction(0, 1)
    >>> recount(sample, Mechanism((10.0,), 1.0)).gain
    Fraction(1, 20)
    """
    direction = ExactDirection(instance, mechanism)
    return direction.recount(mechanism, mechanism.threshold)
