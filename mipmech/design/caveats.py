"""What to doubt about a rule although its proof is right: units that do not compare, wild moves."""

from __future__ import annotations

import numpy as np

from mipmech.model.grading import Recount
from mipmech.model.instance import Instance
from mipmech.text import clean, count, short
from mipmech.validation import Flags

# One cost per unit of distance makes sense for features of similar spread. Hours beside school
# grades differ by about 10, which may be meant; test scores beside grades by 100, which is not.
SPREADS = 30.0
# People who move may well end a little outside the data: up to this share of the data's width
# passes without a word.
BEYOND = 0.5
LONGEST_NAME = 40
STANDARDISE = "standardise (mipmech new --standardise, or from_frame with standardise=True)"


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
        said.append(_moves(instance, counted, found))
    return [sentence for sentence in said if sentence is not None]


def _name(instance: Instance, feature: int) -> str:
    return short(clean(instance.feature_names[feature]), LONGEST_NAME)


def _spreads(instance: Instance, counted: Flags) -> str | None:
    """Whether features that can move, which are those that the planner sees, do not compare."""
    seen = np.flatnonzero((instance.view.matrix != 0).any(axis=0))
    agents = instance.agents[np.ix_(counted, seen)]
    varied = agents.min(axis=0) < agents.max(axis=0)
    if varied.sum() < 2:
        return None
    seen, spread = seen[varied], agents[:, varied].std(axis=0)
    least, most = int(np.argmin(spread)), int(np.argmax(spread))
    if spread[most] <= SPREADS * spread[least]:
        return None
    wide, narrow = _name(instance, int(seen[most])), _name(instance, int(seen[least]))
    return (
        f"{wide} (standard deviation {spread[most]:.3g}) varies"
        f" {spread[most] / spread[least]:.3g} times as much as {narrow} ({spread[least]:.3g}), but"
        f" a move of 1 costs the same in both; {STANDARDISE}, or choose units that compare"
    )


def _moves(instance: Instance, counted: Flags, found: Recount) -> str | None:
    """Whether people who move end far outside the data, in the feature where it is worst."""
    movers = found.covered[counted[found.covered]]
    if not len(movers):
        return None
    line = found.line
    columns, weights = list(line.columns), np.array([float(w) for w in line.weights])
    agents = instance.agents[:, columns]
    low, high = agents[counted].min(axis=0), agents[counted].max(axis=0)
    distance = float(found.mechanism.threshold * line.factor) - agents[movers] @ weights
    after = agents[movers] + np.outer(distance, weights) / float(line.square)
    least, most = after.min(axis=0), after.max(axis=0)
    width = high - low
    beyond = np.divide(
        np.maximum(most - high, low - least), width, out=np.zeros(len(columns)), where=width > 0
    )
    if not (beyond > BEYOND).any():
        return None
    worst = int(np.argmax(beyond))
    feature = columns[worst]
    reached = most[worst] if most[worst] - high[worst] > low[worst] - least[worst] else least[worst]
    values = np.array([reached, low[worst], high[worst]])
    remedy = f"raise the cost, or {STANDARDISE}"
    if instance.units is not None:
        values = instance.units.centre[feature] + instance.units.scale[feature] * values
        remedy = "raise the cost"
    others = int((beyond > BEYOND).sum()) - 1
    more = f", and {count(others, 'more feature')} leave theirs" * (others > 0)
    return (
        f"with this rule people move to {_name(instance, feature)} = {values[0]:.4g}, far outside"
        f" the data ({values[1]:.4g} to {values[2]:.4g}){more}; if nobody can go that far, {remedy}"
    )
