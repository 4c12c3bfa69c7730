"""What agents bring together if not all of them may be accepted: `docs/proof-format.md`, section 5.

In a leaf, some agents are accepted for sure, and some may be accepted or not. What the latter bring
if accepted may be counted only as far as limits on the accepted mass allow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]

# Agents that may go either way are accepted in any case, in none, or it is open.
FREE, ALWAYS, NEVER = 0, 1, 2
# What they bring if no set of them may be accepted.
NONE = -1e300
# All sets of at most so many agents are tried.
FEW = 8
# Half the distance from 1 to the next float.
EPSILON = 2.0**-53
# Leaves with so many agents are summed side by side.
SHORT = 64
# Whole numbers are tried for each class if there are no more of them than this.
MOST_COUNTS = 4096
# Leaves whose sets are tried at once: some megabytes.
LEAVES = 512
# Accepted shares of classes are compared with this much room, for rounding.
ALIKE = 1e-12


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits on the mass accepted.

    totals : (c,) array, the mass of each class; c = 0 without limits
    low, high : in all
    within : the accepted shares of two classes differ by at most this
    whole : whether masses are whole numbers
    """

    totals: Floats
    low: float
    high: float
    within: float
    whole: bool = True

    def fit(self, masses: Floats) -> Flags:
        """Whether masses, (…, c), may be accepted."""
        total, shares = masses.sum(axis=-1), masses / self.totals
        apart = shares.max(axis=-1) - shares.min(axis=-1)
        return np.asarray(
            (total >= self.low) & (total <= self.high) & (apart <= self.within + ALIKE)
        )


@dataclass(frozen=True, eq=False)
class Chains:
    """Leaves where the ends of unsure agents are in one order throughout.

    order : (pairs,) array, the pairs leaf by leaf, in each those with the farthest ends first
    chained : (n,) array, whether that is the order all over the leaf
    """

    order: Numbers
    chained: Flags


def together(
    limits: Limits, passed: Floats, leaf: Numbers, values: Floats, mass: Floats, chains: Chains
) -> tuple[Floats, Numbers]:
    """What unsure agents bring at most in each leaf, NONE if none fit; and the fate of each agent.

    passed : (n, c) array, the masses accepted for sure in each leaf
    leaf, values : (pairs,) arrays, an agent's leaf, ascending, and what it brings if accepted
    mass : (pairs, c) array
    """
    n, classes = passed.shape

    def by_leaf(column: Floats) -> Floats:
        return np.asarray(np.bincount(leaf, weights=column, minlength=n), dtype=np.float64)

    most = passed + np.column_stack([by_leaf(mass[:, g]) for g in range(classes)])
    least_sum, most_sum = passed.sum(axis=1), most.sum(axis=1)
    # No class may be above the one that can have least, nor below the one that has most.
    floor = (passed / limits.totals).max(axis=1)
    ceiling = (most / limits.totals).min(axis=1)
    barred_at = limits.totals * (ceiling + limits.within + ALIKE)[:, None]
    needed_at = limits.totals * (floor - limits.within - ALIKE)[:, None]
    none = (least_sum > limits.high) | (most_sum < limits.low) | (limits.low > limits.high)
    none |= floor - ceiling > limits.within + ALIKE
    own, part = mass.sum(axis=1), mass > 0
    needed = (part & (most[leaf] - mass < needed_at[leaf])).any(axis=1)
    needed |= most_sum[leaf] - own < limits.low
    barred = (part & (passed[leaf] + mass > barred_at[leaf])).any(axis=1)
    barred |= least_sum[leaf] + own > limits.high
    none |= by_leaf((needed & barred).astype(np.float64)) > 0
    fate = np.where(needed, ALWAYS, np.where(barred, NEVER, FREE))
    values = np.where(barred, 0.0, values)
    brought = by_leaf(values)
    fits = (most_sum <= limits.high) & (most <= barred_at).all(axis=1)
    counts = np.bincount(leaf, minlength=n)
    hard = ~none & ~fits
    # Nobody is unsure, and rounding alone says that the others do not fit.
    hard &= counts > 0
    if (hard & chains.chained).any():
        best = _best_starts(
            limits, passed, leaf, values, mass, chains.order, fate, hard & chains.chained
        )
        brought = np.where(hard & chains.chained, best, brought)
        hard &= ~chains.chained
    few = np.flatnonzero(hard & (counts <= FEW))
    for start in range(0, len(few), LEAVES):
        some = few[start : start + LEAVES]
        brought[some] = _best_sets(limits, passed, some, counts, values, mass, fate)
    many = hard & (counts > FEW)
    if limits.whole and classes > 1:
        for one in np.flatnonzero(many & (most_sum - least_sum <= MOST_COUNTS)).tolist():
            none[one] |= not _counts_fit(limits, passed[one], most[one])
    if many.any():
        room = limits.high - least_sum
        in_all = _parts(leaf, values / own, own, room)
        by_class = np.zeros(n)
        for g in range(classes):
            by_class += _parts(leaf, values / own, mass[:, g], barred_at[:, g] - passed[:, g])
        # Rounding of the sums, many times over.
        least = np.minimum(in_all, by_class)
        least += np.abs(least) * 2.0**-40
        brought = np.where(many, np.minimum(brought, least), brought)
    return np.where(none, NONE, brought), fate


def _best_sets(
    limits: Limits, passed: Floats, leaves: Numbers, counts: Numbers, values: Floats, mass: Floats,
    fate: Numbers,
) -> Floats:  # fmt: skip
    """The best sets in leaves with few agents, NONE if none fit; writes what all sets share."""
    starts = np.cumsum(counts) - counts
    place = starts[leaves][:, None] + np.arange(FEW)
    there = np.arange(FEW) < counts[leaves][:, None]
    place = np.where(there, place, 0)
    sets = (np.arange(1 << FEW)[:, None] >> np.arange(FEW)) & 1
    held = np.where(there[:, :, None], mass[place], 0.0)
    masses = passed[leaves][:, None, :] + np.einsum("sf,nfc->nsc", sets.astype(np.float64), held)
    allowed = limits.fit(masses)
    # Sets with agents that are not there are as good as those without.
    worth = np.where(there, values[place], 0.0) @ sets.T
    best = np.where(allowed, worth, NONE).max(axis=1)
    real = (sets[None, :, :] <= there[:, None, :]).all(axis=2)
    chosen = allowed & real
    always = (chosen[:, :, None] <= (sets == 1)[None, :, :]).all(axis=1)
    ever = (chosen[:, :, None] & (sets == 1)[None, :, :]).any(axis=1)
    fate[place[there]] = np.where(
        always[there], ALWAYS, np.where(ever[there], fate[place[there]], NEVER)
    )
    return np.asarray(best)


def _counts_fit(limits: Limits, least: Floats, most: Floats) -> bool:
    """Whether whole numbers between the least and the greatest mass of each class may fit."""
    for first in range(len(least)):
        # This class has the least share of all.
        share = np.arange(least[first], most[first] + 1) / limits.totals[first]
        fewest = np.ceil((share - ALIKE)[:, None] * limits.totals)
        greatest = np.floor((share + limits.within + ALIKE)[:, None] * limits.totals)
        fewest, greatest = np.maximum(fewest, least), np.minimum(greatest, most)
        some = (fewest <= greatest).all(axis=1)
        some &= (fewest.sum(axis=1) <= limits.high) & (greatest.sum(axis=1) >= limits.low)
        if some.any():
            return True
    return False


def _best_starts(
    limits: Limits, passed: Floats, leaf: Numbers, values: Floats, mass: Floats, order: Numbers,
    fate: Numbers, which: Flags,
) -> Floats:  # fmt: skip
    """The best sets in these leaves, where agents are accepted in one order; NONE if none fits."""
    n = len(passed)
    kept = order[which[leaf[order]]]
    where = leaf[kept]
    counts = np.bincount(where, minlength=n)
    starts = np.cumsum(counts) - counts
    held = np.arange(len(kept)) - starts[where] + 1
    masses = passed[where] + _running(mass[kept], counts)
    fits, worth = limits.fit(masses), _running(values[kept][:, None], counts)[:, 0]
    size = np.bincount(where, weights=np.abs(values[kept]), minlength=n)
    worth = worth + (size * (counts + 4) * EPSILON)[where]  # their rounding
    best = np.where(limits.fit(passed), 0.0, NONE)
    np.maximum.at(best, where[fits], worth[fits])
    fewest = np.where(limits.fit(passed), 0, len(leaf) + 1)
    np.minimum.at(fewest, where[fits], held[fits])
    most = np.where(limits.fit(passed), 0, -1)
    np.maximum.at(most, where[fits], held[fits])
    always, never = held <= fewest[where], held > most[where]
    fate[kept] = np.where(always, ALWAYS, np.where(never, NEVER, fate[kept]))
    return np.asarray(best)


def _parts(leaf: Numbers, ratio: Floats, mass: Floats, room: Floats) -> Floats:
    """What fits into the room of each leaf, the most valuable first; parts of agents count."""
    order = np.lexsort((-ratio, leaf))
    sorted_leaf, sorted_mass = leaf[order], mass[order]
    n = len(room)
    counts = np.bincount(leaf, minlength=n)
    before = _running(sorted_mass[:, None], counts)[:, 0] - sorted_mass
    # Upwards by what such sums are rounded.
    whole = np.bincount(leaf, weights=mass, minlength=n)
    room = room + 2 * (counts + 4) * EPSILON * whole
    taken = np.clip(room[sorted_leaf] - before, 0.0, sorted_mass)
    return np.asarray(np.bincount(sorted_leaf, weights=ratio[order] * taken, minlength=n))


def _running(columns: Floats, counts: Numbers) -> Floats:
    """Running sums of the rows of each leaf, which follow each other: so many for each leaf.

    Each leaf is summed for itself: over many, sums would be rounded at the size of all of them.
    """
    found = np.empty_like(columns)
    starts = np.cumsum(counts) - counts
    small = (counts > 0) & (counts <= SHORT)
    place = np.arange(int(counts[small].max(initial=0)))
    places, there = starts[small][:, None] + place, place < counts[small][:, None]
    grid = np.where(there[:, :, None], columns[np.where(there, places, 0)], 0.0)
    found[places[there]] = np.cumsum(grid, axis=1)[there]
    for leaf in np.flatnonzero(counts > SHORT).tolist():
        rows = slice(int(starts[leaf]), int(starts[leaf] + counts[leaf]))
        found[rows] = np.cumsum(columns[rows], axis=0)
    return found
