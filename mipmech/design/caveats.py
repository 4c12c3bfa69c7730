"""What to doubt about a rule although its proof is right: units that do not compare, wild moves."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mipmech.model.edge_of_reach import unsteady
from mipmech.model.grading import Recount
from mipmech.model.instance import Instance
from mipmech.rationals import clamped
from mipmech.text import clean, count, short
from mipmech.tolerances import ROUNDING
from mipmech.validation import Flags, Numbers

# One cost per unit of distance makes sense for features of similar spread. Hours beside school
# grades differ by about 10, which may be meant; test scores beside grades by 100, which is not.
SPREADS = 30.0
# People who move may well end a little outside the data: up to this share of the data's width
# passes without a word.
FAR = 0.5
LONGEST_NAME = 40
STANDARDISE = "standardise (mipmech new --standardise, or from_frame with standardise=True)"
PRICE = "price features by their spread (--effort standard)"


def caveats(instance: Instance, found: Recount | None = None) -> list[str]:
    """What a reader should be warned of, in sentences that say what to do.

    Parameters
    ----------
    instance : Instance
        The sample.
    found : Recount, optional
        A rule on it, if there is one.

    Examples
    --------
    >>> students = [[500.0, 2.0], [700.0, 4.0], [600.0, 3.0]]
    >>> sample = Instance.from_arrays(
    ...     students, [1, 1], visible=[0, 1], cost=2.0, features=["sat", "gpa"]
    ... )
    >>> caveats(sample)[0][:70]
    'sat (standard deviation 81.6) varies 100 times as much as gpa (0.816),'
    """
    counted = instance.weights > 0
    said = [_spreads(instance, counted)]
    if found is not None:
        said += [_moves(instance, found), _knife_edge(found)]
    return [sentence for sentence in said if sentence is not None]


def _name(instance: Instance, feature: int) -> str:
    return short(clean(instance.feature_names[feature]), LONGEST_NAME)


def _spreads(instance: Instance, counted: Flags) -> str | None:
    """Whether features that the planner sees do not compare: in units of cost, if they have prices.

    Features that merely move along (a matrix) are left out: no rule asks for them.
    """
    seen = np.flatnonzero((instance.view.matrix != 0).any(axis=0))
    agents = instance.agents[np.ix_(counted, seen)]
    spread = agents.std(axis=0) * instance.costs.prices(instance.width)[seen]
    varied = (agents.min(axis=0) < agents.max(axis=0)) & (spread > 0)
    if varied.sum() < 2:
        return None
    seen, spread = seen[varied], spread[varied]
    least, most = int(np.argmin(spread)), int(np.argmax(spread))
    if spread[most] <= SPREADS * spread[least]:
        return None
    wide, narrow = _name(instance, int(seen[most])), _name(instance, int(seen[least]))
    times = f"varies {spread[most] / spread[least]:.3g} times as much as {narrow}"
    if instance.costs.effort is not None:
        return (
            f"{wide} {times} for what its moves cost: a standard deviation costs {spread[most]:.3g}"
            f" beside {spread[least]:.3g}; choose other prices, or {PRICE}"
        )
    return (
        f"{wide} (standard deviation {spread[most]:.3g}) {times} ({spread[least]:.3g}), but"
        f" a move of 1 costs the same in both; {STANDARDISE}, {PRICE}, or choose units that compare"
    )


@dataclass(frozen=True)
class Beyond:
    """Where people who move end outside the data, in the feature where it is worst.

    Attributes
    ----------
    feature : int
    agents : int
        How many leave the range of this feature.
    reached, low, high : float
        The farthest that somebody gets, and the range of the data, in the user's units.
    share : float
        How far that is outside, in widths of the range.
    others : tuple of float
        The same shares for the other features that somebody leaves.
    """

    feature: int
    agents: int
    reached: float
    low: float
    high: float
    share: float
    others: tuple[float, ...]


def beyond_data(found: Recount, agents: Numbers) -> Beyond | None:
    """Whether people who move end outside the data; None if nobody does.

    Parameters
    ----------
    found : Recount
        The rule.
    agents : array of int
        Those who move.
    """
    instance, line = found.instance, found.line
    columns = list(line.step)
    counted = instance.agents[instance.weights > 0][:, columns]
    low, high = counted.min(axis=0), counted.max(axis=0)
    width = high - low
    if not len(agents) or not width.any():
        return None
    level = clamped(Fraction(found.mechanism.threshold) * line.factor)
    weights = np.array([float(w) for w in line.weights])
    x = instance.agents[agents]
    after = line.moved(x, level - x[:, list(line.columns)] @ weights)[:, columns]
    outside = np.maximum(after - high, low - after)
    with np.errstate(over="ignore"):  # of a width next to nothing
        share = np.divide(outside.max(axis=0), width, out=np.zeros(len(columns)), where=width > 0)
    left = np.flatnonzero(share > ROUNDING)
    if not len(left):
        return None
    worst = int(np.argmax(share))
    farthest = int(np.argmax(outside[:, worst]))
    reached, least, most = after[farthest, worst], low[worst], high[worst]
    if instance.units is not None:
        centre, scale = instance.units.centre[columns[worst]], instance.units.scale[columns[worst]]
        reached, least, most = (centre + scale * value for value in (reached, least, most))
    number = int((outside[:, worst] > ROUNDING * width[worst]).sum())
    others = tuple(float(share[j]) for j in left if j != worst)
    return Beyond(
        columns[worst], number, float(reached), float(least), float(most), float(share[worst]),
        others,
    )  # fmt: skip


def _moves(instance: Instance, found: Recount) -> str | None:
    """Whether people who move end far outside the data."""
    beyond = beyond_data(found, found.covered[instance.weights[found.covered] > 0])
    if beyond is None or beyond.share <= FAR:
        return None
    unscaled = instance.units is None and instance.costs.effort is None
    remedy = "raise the cost" + f", {STANDARDISE}, or {PRICE}" * unscaled
    if instance.costs.effort is not None:
        remedy += ", or what a move of this feature costs (effort)"
    others = sum(share > FAR for share in beyond.others)
    more = f", and beyond {count(others, 'other feature')} as well" * (others > 0)
    return (
        f"people who respond move to {_name(instance, beyond.feature)} = {beyond.reached:.4g}, far"
        f" outside the data ({beyond.low:.4g} to {beyond.high:.4g}){more}; if nobody can go that"
        f" far, {remedy}"
    )


def _knife_edge(found: Recount) -> str | None:
    """Whether the rule has its gain in exact arithmetic only."""
    number = unsteady(found)
    if not number:
        return None
    return (
        f"{count(number, 'agent')} of those who move {'is' if number == 1 else 'are'} nearer to the"
        " end of reach than floats can tell; the rule has its gain in exact arithmetic only:"
        " subtract a constant from features whose values are large and vary little"
    )
