"""The inner loops of the cells engine, compiled by numba.

A node is a cell of directions (a box on a facet of the cube) times an interval [b0, b1] of
thresholds. `engine` has the mathematics, `search` the outer loop; here a node is bounded
(`_bound`), and a block of nodes is searched depth-first (`search_block`). Agents that are surely in
the margin all over a node are summed once, agents that are surely out of it are dropped, so the
cost of a node is proportional to the number of the remaining agents.

Arrays of agents are stored coordinate by coordinate, (d, m): what is used together is adjacent.

All of it is in one file on purpose: numba keeps compiled functions as long as *their* file is
unchanged, whatever happens to files of functions that they call.

Nobody has a compiled copy at first, so what numba compiles is kept small. Loops over single numbers
are compiled ten times faster than expressions of arrays, slices, sorts and new arrays, which bring
along numpy's broadcasting, error messages and memory management. So all memory is handed in
(`blocks`), and what is done once per block is done by numpy.
"""

from __future__ import annotations

from typing import Any, cast

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

DENSITY, SOFT, GAIN = 0, 1, 2
# The norms of the costs; what is dual to each says which directions have length 1.
L2, L1, LINF = 0, 1, 2
# Symbols of the tree, in preorder: a leaf, a cut of the thresholds, a block that follows elsewhere;
# 2 + j is a cut across side j.
LEAF, CUT_THRESHOLDS, CUT_SIDE, BLOCK = 0, 1, 2, 255
# The deepest path within a block.
DEPTH = 96
# The steepest slope of a tilted estimate, in multiples of the total weight: steeper ones would
# drown in rounding.
STEEPEST = 64.0
# A rate v·p below this part of ‖p‖ counts as that when slopes are chosen: next to 0 its rounding
# would decide.
SLOWEST = 1024.0
# What a sum of lines may be off by, as a share of their sizes: those of a node are few.
ROUNDED = 2.0**-43
# A range that may stick out of another by this many lengths is never inside for good.
EVERYTHING = 2.0**10
# Rounds of tilting, and the most open agents for which it is tried.
SWEEPS = 2
EVERY = 3
FEW = 128
# The overhead of a node, in agents (some 1 µs; measured for k = 4 to 8).
A_NODE = 60
MOST_TILTED = 64
# A side this short (the whole has 2), or a window of this share of the scale, is not cut again:
# rounding would take over.
SHORTEST = 2.0**-44
# Sets of open agents are tried one by one if there are no more of them than this.
FEW_SETS = 8
# An open agent may go either way, is accepted in any case, or is not accepted in any case.
FREE, ALWAYS, NEVER = 0, 1, 2
# What agents bring together if no set of them may be accepted.
NONE = -1e300
# Whole numbers of agents are tried for each class if there are no more of them than this.
MOST_COUNTS = 4096.0
# Accepted shares of classes are compared with this much room, for rounding.
ALIKE = 1e-12
# Neither is a side over which u·p changes by a smaller share, if no agent's score changes either.
FINEST_RATE = 2.0**-34

# Sums may be associated in another order, but nan and inf keep their meaning.
_options: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": {"contract", "reassoc", "nsz", "arcp"},
    "_nrt": False,  # no memory is managed here
    "no_rewrites": True,
}


def _inner(function: Any) -> Any:
    """Compile a function that only compiled functions call."""
    return cast(
        Any, numba.njit(**_options, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
    )


def _entry(function: Any) -> Any:
    """Compile a function that Python calls, without holding its lock, and keep it on disk."""
    return cast(
        Any, numba.njit(**_options, no_cfunc_wrapper=True, nogil=True, cache=True)(function)
    )


@_inner
def _cell(norm, centres, halves, level, unit, dual, widths):  # type: ignore[no-untyped-def]
    """The centre's direction a into ``unit``, g into ``dual``, h_j/μ into ``widths`` (`engine`).

    Returns κ from below, and by how much the range of scores that is computed for a smaller
    cell within this one may stick out of this one's: in lengths, and in widths of the range.
    """
    d = unit.shape[0]
    if d == 0:
        return 1.0, 0.0, 0.0
    if norm == L1:
        for j in range(d):
            unit[j], widths[j] = centres[level, j], halves[level, j]
            dual[j] = centres[level, j] if halves[level, j] == 0.0 else 0.0
        return 1.0, ROUNDED, 0.0
    square = 0.0
    inner = 0.0
    if norm == LINF:
        loose = 0.0
        for j in range(d):
            dual[j] = 0.0
            if centres[level, j] == 0.0:
                loose += halves[level, j]
                continue
            dual[j] = 1.0 if centres[level, j] > 0.0 else -1.0
            square += abs(centres[level, j])
            inner += halves[level, j]
        shortest = square - inner
        for j in range(d):
            unit[j] = centres[level, j] / square
            widths[j] = halves[level, j] / shortest
        ratio = (square + inner + loose) / shortest
        # Where signs are open, scores of smaller cells are measured on another scale: none of that
        # is for good.
        return shortest / (shortest + loose), EVERYTHING if loose > 0.0 else ROUNDED, ratio - 1.0
    for j in range(d):
        square += centres[level, j] * centres[level, j]
        inner += halves[level, j] * abs(centres[level, j])
    length = np.sqrt(square)
    shortest = (square - inner) / length
    spread = 0.0
    for j in range(d):
        unit[j] = centres[level, j] / length
        dual[j] = unit[j]
        widths[j] = halves[level, j] / shortest
        spread += widths[j] * widths[j]
    longest = np.sqrt(1.0 + spread)
    ratio = (square + inner) / (square - inner)
    return 1.0 / longest, ratio * (longest - 1.0), ratio - 1.0


@_inner
def _range(y, unit, dual, widths, cosine):  # type: ignore[no-untyped-def]
    """The least and the greatest y·v over a cell, for the vector in the last d numbers of y."""
    d = unit.shape[0]
    first = y.shape[0] - d
    t = 0.0
    for j in range(d):
        t += unit[j] * y[first + j]
    e = 0.0
    for j in range(d):
        e += widths[j] * abs(y[first + j] - t * dual[j])
    low, high = t - e, t + e
    if low > 0.0:
        low *= cosine
    if high < 0.0:
        high *= cosine
    return low, high


@_inner
def _rates(norm, p, unit, dual, widths, cosine, centres, halves, level, rims):  # type: ignore[no-untyped-def]
    """The least and the greatest rate over a cell.

    rims : whether rules with weights of 0 count by themselves (linf): cells beside them may be ones
        that are not allowed
    """
    if norm == L2:
        return _range(p, unit, dual, widths, cosine)
    low, high = 0.0, 0.0
    for j in range(unit.shape[0]):
        loose = abs(p[j]) if norm == LINF and dual[j] == 0.0 else 0.0
        least, most = dual[j] * p[j] - loose, dual[j] * p[j] + loose
        if rims and norm == LINF and abs(centres[level, j]) <= halves[level, j]:
            least, most = min(least, 0.0), max(most, 0.0)
        low += least
        high += most
    return low, high


@_inner
def _rate_at(norm, p, unit):  # type: ignore[no-untyped-def]
    """The rate of a direction of length 1."""
    rate, greatest = 0.0, 0.0
    for j in range(unit.shape[0]):
        if norm == L2:
            rate += unit[j] * p[j]
            continue
        sign = 1.0 if unit[j] > 0.0 else -1.0
        size = sign * unit[j]
        if norm == LINF:
            rate += sign * p[j] if size > 0.0 else 0.0
        elif size > greatest or (size == greatest and sign * p[j] > rate):
            rate, greatest = sign * p[j], size
    return rate


@_inner
def _normalise(norm, unit):  # type: ignore[no-untyped-def]
    """Make the length of a direction 1."""
    total = 0.0
    for j in range(unit.shape[0]):
        if norm == L2:
            total += unit[j] * unit[j]
        elif norm == LINF:
            total += abs(unit[j])
        else:
            total = max(total, abs(unit[j]))
    if norm == L2:
        total = np.sqrt(total)
    for j in range(unit.shape[0]):
        unit[j] /= total


@_inner
def _ranges(y, shift, slack, start, count, unit, dual, widths, cosine, t, low, high):  # type: ignore[no-untyped-def]
    """The score at the centre, and the range of scores, of ``count`` agents from ``start`` on.

    Loops over agents inside loops over coordinates: that is what compilers can vectorise.
    """
    d = unit.shape[0]
    for i in range(count):
        t[i] = 0.0
        high[i] = 0.0
    for j in range(d):
        c = unit[j]
        for i in range(count):
            t[i] += c * y[j, start + i]
    for j in range(d):
        c, h = dual[j], widths[j]
        if h > 0.0:
            for i in range(count):
                high[i] += h * abs(y[j, start + i] - t[i] * c)
    for i in range(count):
        least, most = t[i] - high[i], t[i] + high[i]
        moved, doubt = shift[start + i], slack[start + i]
        low[i] = (least * cosine if least > 0.0 else least) + moved - doubt
        high[i] = (most * cosine if most < 0.0 else most) + moved + doubt


@_inner
def _together(  # type: ignore[no-untyped-def]  # noqa: PLR0911
    values, unsure, unknown, out, mass, passed, totals, limits, fate, memory, keys, order, spare,
    y, reach, slack, ranks, centre, unit, dual, widths, cosine, centres, halves, level, chain,
    state,
):  # fmt: skip
    """The most that unsure agents bring together, accepted within the limits; NONE if none fit.

    values : what each brings if accepted; ``passed``: the masses surely accepted, by class
    limits : the least and the greatest mass accepted in all, and by how much shares may differ
    fate : receives whether each is accepted `ALWAYS`, `NEVER`, or is `FREE`
    """
    classes = totals.shape[0]
    low, high, within = limits[0], limits[1], limits[2]
    least, most, floor, ceiling, total = 0.0, 0.0, 0.0, 1.0, 0.0
    for g in range(classes):
        memory[0, g] = passed[g]
    for i in range(unknown):
        total += values[i]
        for g in range(classes):
            memory[0, g] += mass[g, out + unsure[i]]
    for g in range(classes):
        least += passed[g]
        most += memory[0, g]
        floor = max(floor, passed[g] / totals[g])
        ceiling = min(ceiling, memory[0, g] / totals[g])
    if low > high or least > high or most < low or floor - ceiling > within + ALIKE:
        return NONE
    # No class may be above the one that can have least, nor below the one that has most.
    fits = most <= high
    for g in range(classes):
        memory[1, g] = totals[g] * (ceiling + within + ALIKE)
        memory[2, g] = totals[g] * (floor - within - ALIKE)
        if memory[0, g] > memory[1, g]:
            fits = False
    for i in range(unknown):
        own = 0.0
        needed, barred = False, False
        for g in range(classes):
            share = mass[g, out + unsure[i]]
            own += share
            if share > 0.0:
                needed = needed or memory[0, g] - share < memory[2, g]
                barred = barred or passed[g] + share > memory[1, g]
        needed = needed or most - own < low
        barred = barred or least + own > high
        if needed and barred:
            return NONE
        fate[i] = ALWAYS if needed else (NEVER if barred else FREE)
        if barred:
            total -= values[i]
            values[i] = 0.0
    if fits:
        return total
    if state[0] < 0:
        state[0] = _chained(
            unsure, unknown, out, y, reach, slack, ranks, centre, unit, dual, widths, cosine,
            centres, halves, level, keys, chain, spare,
        )  # fmt: skip
    if state[0] == 1:
        return _best_start(
            values, unsure, unknown, out, mass, passed, totals, limits, fate, memory, chain
        )
    if unknown <= FEW_SETS:
        return _best_set(values, unsure, unknown, out, mass, passed, totals, limits, fate, memory)
    if (
        classes > 1
        and most - least <= MOST_COUNTS
        and not _counts_fit(passed, memory, totals, low, high, within)
    ):
        return NONE
    for i in range(unknown):
        own = 0.0
        for g in range(classes):
            own += mass[g, out + unsure[i]]
        keys[i] = -values[i] / own
        order[i] = i
    _sort(order, keys, spare, unknown)
    # In all, and class by class: parts of agents count.
    room, in_all = high - least, 0.0
    for g in range(classes):
        memory[1, g] -= passed[g]
    by_class = 0.0
    for place in range(unknown):
        i = order[place]
        own = 0.0
        for g in range(classes):
            share = mass[g, out + unsure[i]]
            own += share
            by_class -= keys[i] * max(0.0, min(share, memory[1, g]))
            memory[1, g] -= share
        in_all -= keys[i] * max(0.0, min(own, room))
        room -= own
    return min(total, in_all, by_class)


@_inner
def _counts_fit(passed, memory, totals, low, high, within):  # type: ignore[no-untyped-def]
    """Whether whole numbers between the least and the greatest mass of each class may fit.

    passed, and row 0 of ``memory``: those masses
    """
    classes = totals.shape[0]
    for first in range(classes):
        count = passed[first]
        while count <= memory[0, first]:
            # This class has the least share of all.
            share = count / totals[first]
            least, most = 0.0, 0.0
            for g in range(classes):
                fewest = max(passed[g], np.ceil((share - ALIKE) * totals[g]))
                greatest = np.floor((share + within + ALIKE) * totals[g])
                greatest = min(memory[0, g], greatest)
                if fewest > greatest:
                    least = high + 1.0
                    break
                least += fewest
                most += greatest
            if least <= high and most >= low:
                return True
            count += 1.0
    return False


@_inner
def _chained(  # type: ignore[no-untyped-def]
    unsure, unknown, out, y, reach, slack, ranks, centre, unit, dual, widths, cosine, centres,
    halves, level, keys, chain, spare,
):  # fmt: skip
    """Whether the ends of unsure agents are in one order all over the cell; it goes to ``chain``.

    ranks : how agents are ordered, exactly, by the feature behind each coordinate, and by reach
    """
    d = unit.shape[0]
    for i in range(unknown):
        chain[i] = i
        keys[i] = -(centre[unsure[i]] + reach[out + unsure[i]])
    _sort(chain, keys, spare, unknown)
    for place in range(1, unknown):
        first, second = out + unsure[chain[place - 1]], out + unsure[chain[place]]
        ahead = ranks.shape[0] > 0 and ranks[d, first] >= ranks[d, second]
        t = 0.0
        for j in range(d):
            t += unit[j] * (y[j, first] - y[j, second])
            if ahead:
                more, less = ranks[j, first], ranks[j, second]
                positive = more >= less and centres[level, j] >= halves[level, j]
                negative = more <= less and centres[level, j] <= -halves[level, j]
                ahead = more == less or positive or negative
        if ahead:
            continue
        e = 0.0
        for j in range(d):
            e += widths[j] * abs(y[j, first] - y[j, second] - t * dual[j])
        least = t - e
        if least > 0.0:
            least *= cosine
        least += reach[first] - reach[second]
        # Shifts are part of the scores at the centre.
        least += centre[unsure[chain[place - 1]]] - centre[unsure[chain[place]]] - t
        if least < 2.0 * (slack[first] + slack[second]):
            return 0
    return 1


@_inner
def _best_start(values, unsure, unknown, out, mass, passed, totals, limits, fate, memory, chain):  # type: ignore[no-untyped-def]
    """`_together`, if agents are accepted in one order: so many from the start of the chain."""
    classes = totals.shape[0]
    best, value = NONE, 0.0
    fewest, most = unknown + 1, -1
    for g in range(classes):
        memory[2, g] = passed[g]
    for held in range(unknown + 1):
        if held > 0:
            value += values[chain[held - 1]]
            for g in range(classes):
                memory[2, g] += mass[g, out + unsure[chain[held - 1]]]
        if _fits(memory, 2, totals, limits):
            best = max(best, value)
            fewest, most = min(fewest, held), held
    for place in range(unknown):
        if place < fewest:
            fate[chain[place]] = ALWAYS
        elif place >= most:
            fate[chain[place]] = NEVER
    return best


@_inner
def _best_set(values, unsure, unknown, out, mass, passed, totals, limits, fate, memory):  # type: ignore[no-untyped-def]
    """`_together`, by trying all sets; each differs from the one before in one agent."""
    classes = totals.shape[0]
    best = NONE
    held, ever, always = 0, 0, (1 << unknown) - 1
    value = 0.0
    for g in range(classes):
        memory[2, g] = passed[g]
    for step in range(1 << unknown):
        if step > 0:
            i = 0
            while not (step >> i) & 1:
                i += 1
            held ^= 1 << i
            sign = 1.0 if (held >> i) & 1 else -1.0
            value += sign * values[i]
            for g in range(classes):
                memory[2, g] += sign * mass[g, out + unsure[i]]
        if not _fits(memory, 2, totals, limits):
            continue
        ever |= held
        always &= held
        best = max(best, value)
    for i in range(unknown):
        if (always >> i) & 1:
            fate[i] = ALWAYS
        elif not (ever >> i) & 1:
            fate[i] = NEVER
    return best


@_inner
def _fits(masses, row, totals, limits):  # type: ignore[no-untyped-def]
    """Whether these masses, a row of a table, may be accepted."""
    total, least, most = 0.0, 1.0, 0.0
    for g in range(totals.shape[0]):
        total += masses[row, g]
        least = min(least, masses[row, g] / totals[g])
        most = max(most, masses[row, g] / totals[g])
    return limits[0] <= total <= limits[1] and most - least <= limits[2] + ALIKE


@_inner
def _bound(  # type: ignore[no-untyped-def]
    kind, norm, y, shift, slack, reach, weight, mass, ranks, index, start, count, out,
    unit, dual, widths, cosine, out_by, out_share, b0, b1, p, sums, level, inside, effects, work,
    centre, lows, highs, lengths, finest, fastest, totals, limits, passed, unsure, values, fate,
    memory, keys, order, spare, centres, halves, chain, state,
):  # fmt: skip
    """Bound a node.

    The agents at [start, start + count) are those of the parent; the ones not settled for good are
    written to [out, …). ``sums`` holds W, C and S of those surely in and dropped from the list:
    Σω(b − score) = W b − C − v·S; and the masses, by class, of those dropped that are accepted. It
    is updated. An agent is dropped only if it is settled in every
    smaller cell as well, *as computed there*: a checker may look at the leaf alone. ``inside`` and
    ``work`` are for sums. ``effects`` receives what a cut of the thresholds (0) or of side j
    (1 + j) is about; centre, lows and highs the scores of the open agents; ``passed`` the masses of
    those surely accepted, and ``unsure`` the open agents that may be accepted or not.
    Returns the bound (−1 if none that fit can be accepted), how many agents are open, whether some
    agent's end may be in [b0, b1], whether some open agent's scores (or u·p) differ by more than
    rounding, and how many agents are unsure.
    """
    d = unit.shape[0]
    classes = totals.shape[0]
    unknown = 0
    state[0] = -1
    for g in range(classes):
        passed[g] = 0.0
    _ranges(y, shift, slack, start, count, unit, dual, widths, cosine, centre, lows, highs)
    mixed = work  # W, C, S of the open agents' linear estimates
    for j in range(d + 2):
        mixed[j] = 0.0
        if j < d + 1:
            effects[j] = 0.0
    constant = 0.0  # of the blended estimates
    alone = 0.0  # every open agent for itself
    heavy = 0.0
    along = 0.0
    kept = 0
    ends, rough = False, False
    for j in range(d + 2):
        inside[j] = 0.0
    for i in range(count):
        low, high = lows[i], highs[i]
        least, most = b0 - high, b1 - low
        place = start + i
        far = reach[place]
        t = centre[i]
        margin = out_by * lengths[place] + out_share * (high - low)
        if most < 0.0 or least > far:
            passes = most < 0.0
            if most < -margin or least > far + margin:
                if passes:
                    for g in range(classes):
                        sums[level, d + 2 + g] += mass[g, place]
                continue
            if passes:
                for g in range(classes):
                    passed[g] += mass[g, place]
        elif least >= 0.0 and most < far:
            w = weight[place]
            if least >= margin and most < far - margin:
                for g in range(classes):
                    sums[level, d + 2 + g] += mass[g, place]
                sums[level, 0] += w
                sums[level, 1] += w * (shift[place] - slack[place])
                for j in range(d):
                    sums[level, 2 + j] += w * y[j, place]
                continue
            for g in range(classes):
                passed[g] += mass[g, place]
            inside[0] += w
            inside[1] += w * (shift[place] - slack[place])
            for j in range(d):
                inside[2 + j] += w * y[j, place]
        else:
            w = weight[place]
            if most >= far:
                ends = True
            if high - low > finest + 4.0 * slack[place]:
                rough = True
            heavy += w
            # With limits, what agents bring that may be accepted or not is counted together.
            common = classes > 0 and most > far
            if common:
                unsure[unknown] = kept
                values[unknown] = w if kind == DENSITY else w * far
                unknown += 1
            else:
                for g in range(classes):
                    passed[g] += mass[g, place]
            along += w * abs(t)
            for j in range(d):
                effects[1 + j] += w * abs(y[j, place] - t * dual[j])
            if kind == DENSITY:
                if not common:
                    alone += w
            else:
                top = min(most, far)
                base = min(least, 0.0)
                if not common:
                    alone += w * top
                if top > 0.0:
                    share = 1.0
                    if most > far:
                        share = 0.0
                        if high > low:
                            share = min(1.0, max(0.0, (far - (b1 - high)) / (high - low)))
                    a = w * share * top / (top - base)
                    mixed[0] += a
                    mixed[1] += a * (shift[place] - slack[place] + (far if common else base))
                    for j in range(d):
                        mixed[2 + j] += a * y[j, place]
                    if not common:
                        constant += w * (1.0 - share) * top
        to = out + kept
        if to != place:
            for j in range(d):
                y[j, to] = y[j, place]
            for g in range(classes):
                mass[g, to] = mass[g, place]
            for j in range(ranks.shape[0]):
                ranks[j, to] = ranks[j, place]
            shift[to] = shift[place]
            slack[to] = slack[place]
            reach[to] = far
            weight[to] = weight[place]
            lengths[to] = lengths[place]
            index[to] = index[place]
        centre[kept], lows[kept], highs[kept] = t, low, high
        kept += 1
    for j in range(d + 2):
        inside[j] += sums[level, j]
    for g in range(classes):
        passed[g] += sums[level, d + 2 + g]
    brought = 0.0
    if classes > 0:
        brought = _together(
            values, unsure, unknown, out, mass, passed, totals, limits, fate, memory, keys, order,
            spare, y, reach, slack, ranks, centre, unit, dual, widths, cosine, centres, halves,
            level, chain, state,
        )  # fmt: skip
        if brought == NONE:
            return -1.0, kept, ends, rough, unknown, brought
        alone += brought
        constant += brought
    if kind == DENSITY:
        bound = inside[0] + alone
        effects[0] = (b1 - b0) * heavy
        for j in range(d):
            effects[1 + j] = (2.0 * effects[1 + j] + widths[j] * along) * widths[j]
        return bound, kept, ends, rough, unknown, brought
    low, _ = _range(inside, unit, dual, widths, cosine)
    first = inside[0] * b1 - inside[1] - low + alone
    for j in range(d + 2):
        mixed[j] += inside[j]
    low, _ = _range(mixed, unit, dual, widths, cosine)
    second = mixed[0] * b1 - mixed[1] - low + constant
    bound = max(0.0, min(first, second))
    effects[0] = (b1 - b0) * (inside[0] + heavy)
    t = 0.0
    for j in range(d):
        t += unit[j] * inside[2 + j]
    # Open agents may all be at one point while the sum of those inside still varies.
    spread = 0.0
    for j in range(d):
        spread += widths[j] * abs(inside[2 + j] - t * dual[j])
    if spread > FINEST_RATE * bound:
        rough = True
    # Of second order: what lies along the centre's direction, and p.
    along += abs(t) + bound
    for j in range(d):
        first_order = effects[1 + j] + abs(inside[2 + j] - t * dual[j])
        effects[1 + j] = (2.0 * first_order + widths[j] * along) * widths[j]
    if kind == GAIN:
        rate = fastest
        if rate <= 0.0:
            return 0.0, kept, ends, rough, unknown, brought
        t = 0.0
        for j in range(d):
            t += unit[j] * p[j]
        for j in range(d):
            change = 0.0
            if norm == L2:
                change = widths[j] * abs(p[j] - t * unit[j])
            elif norm == LINF and dual[j] == 0.0:  # a sign that is open
                change = abs(p[j]) + rate * widths[j]
            effects[1 + j] += 2.0 * change * bound / rate
            if change > FINEST_RATE * rate:
                rough = True
        bound *= rate
    return bound, kept, ends, rough, unknown, brought


@_inner
def _tilted_bound(  # type: ignore[no-untyped-def]
    kind, norm, y, shift, slack, reach, weight, mass, ranks, lengths, out, kept, unit, dual, widths,
    cosine, b0, b1, p, sums, level, total, pull, residual, slopes, offers, places,
    centre, lows, highs, touch, slowest_rate, fastest, totals, limits, passed, unsure, unknown,
    brought, values, fate, memory, keys, order, spare, rows, row_shift, row_room, straddling,
    multipliers, centres, halves, chain, state,
):  # fmt: skip
    """The bound with tilted estimates (see `engine`).

    straddling : for each row of the cone, whether it cuts the cell
    """
    d = unit.shape[0]
    classes = totals.shape[0]
    most_brought = 0.0
    if classes > 0:
        for i in range(unknown):
            if fate[i] != NEVER:
                most_brought += values[i]
    # Where some must be left out, nobody is worth more than what takes the place.
    crowded = brought < most_brought * (1.0 - ALIKE)
    following = 0
    bent = kind == GAIN and norm == L2  # else the rate is no matter of the lines
    middle, room = 0.5 * (b0 + b1), 0.5 * (b1 - b0)
    rate = 1.0
    for j in range(d):
        pull[j] = 0.0
    for j in range(d + 2):
        total[j] = sums[level, j]
    constant = 0.0
    for r in range(rows.shape[0]):
        multipliers[r] = 0.0
    for place in range(out, out + kept):
        low, high = lows[place - out], highs[place - out]
        moved = shift[place] - slack[place]
        least, most = b0 - high, b1 - low
        far = reach[place]
        top = min(most, far)
        base = min(least, 0.0)
        offers[place - out, 0] = 0.0
        offers[place - out, 1] = 0.0
        slopes[place - out] = 0.0
        common = following < unknown and unsure[following] == place - out
        following += common
        if top <= 0.0 or least > far:
            continue
        w = weight[place]
        slope = top / (top - base)
        if most <= far + touch:
            a = w * slope
            total[0] += a
            total[1] += a * (moved + (far if common else base))
            for j in range(d):
                total[2 + j] += a * y[j, place]
            if common:
                slopes[place - out] = a
            continue
        share = 0.0
        if high > low:
            share = min(1.0, max(0.0, (far - (b1 - high)) / (high - low)))
        offers[place - out, 0] = max(-w * far / (most - far), -STEEPEST)
        offers[place - out, 1] = w * slope
        if common:
            fated = fate[following - 1]
            if fated == ALWAYS:
                offers[place - out, 0] = -STEEPEST
            elif fated == NEVER:
                offers[place - out, 0], offers[place - out, 1] = 0.0, STEEPEST
            elif crowded:
                offers[place - out, 0] = 0.0
        a = w * slope * share
        slopes[place - out] = a
        total[0] += a
        total[1] += a * (moved + far)
        for j in range(d):
            total[2 + j] += a * y[j, place]
        if not common:
            constant += w * far
    if bent:
        rate, square = 0.0, 0.0
        along = total[0] * middle - total[1] + constant + brought
        for j in range(d):
            rate += unit[j] * p[j]
            square += p[j] * p[j]
            along -= unit[j] * total[2 + j]
        slowest = np.sqrt(square) / SLOWEST
        for j in range(d):
            pull[j] = p[j] * max(along, 0.0) / max(rate, slowest)
    # What varies over the node: residual[0] with b, residual[1 + j] across side j.
    residual[0] = total[0]
    t = 0.0
    for j in range(d):
        t += unit[j] * (pull[j] - total[2 + j])
    for j in range(d):
        residual[1 + j] = pull[j] - total[2 + j] - t * dual[j]
    for _ in range(SWEEPS):
        for place in range(out, out + kept):
            i = place - out
            if offers[i, 0] >= offers[i, 1]:
                continue
            t = centre[i]
            a = slopes[i]
            derivative = middle - t - shift[place] + slack[place] - reach[place]
            # Breakpoints in order, with their weights.
            number = 0
            for j in range(d + 1):
                if j == 0:
                    point, heavy = a - residual[0], room
                else:
                    r = y[j - 1, place] - t * dual[j - 1]
                    heavy = widths[j - 1] * abs(r)
                    if heavy == 0.0:
                        continue
                    point = a + residual[j] / r
                derivative -= heavy
                at = number
                while at > 0 and places[0, at - 1] > point:
                    places[0, at], places[1, at] = places[0, at - 1], places[1, at - 1]
                    at -= 1
                places[0, at], places[1, at] = point, heavy
                number += 1
            new = offers[i, 1]
            for at in range(number):
                derivative += 2.0 * places[1, at]
                if derivative >= -touch:
                    new = places[0, at]
                    break
            new = min(offers[i, 1], max(offers[i, 0], new))
            change = new - a
            if change == 0.0:
                continue
            slopes[i] = new
            residual[0] += change
            total[0] += change
            total[1] += change * (shift[place] - slack[place] + reach[place])
            for j in range(d):
                total[2 + j] += change * y[j, place]
                residual[1 + j] -= change * (y[j, place] - t * dual[j])
        # Where a·v ≥ 0 is demanded, any multiple of it may be added.
        for r in range(rows.shape[0]):
            if not straddling[r]:
                continue
            t = 0.0
            for j in range(d):
                t += unit[j] * rows[r, j]
            derivative = t + row_shift[r] + row_room[r]
            number = 0
            for j in range(d):
                turn = rows[r, j] - t * dual[j]
                heavy = widths[j] * abs(turn)
                if heavy == 0.0:
                    continue
                derivative -= heavy
                point = multipliers[r] - residual[1 + j] / turn
                at = number
                while at > 0 and places[0, at - 1] > point:
                    places[0, at], places[1, at] = places[0, at - 1], places[1, at - 1]
                    at -= 1
                places[0, at], places[1, at] = point, heavy
                number += 1
            new = STEEPEST
            for at in range(number):
                derivative += 2.0 * places[1, at]
                if derivative >= -touch:
                    new = places[0, at]
                    break
            new = min(STEEPEST, max(0.0, new))
            change = new - multipliers[r]
            if change == 0.0:
                continue
            multipliers[r] = new
            constant += change * (row_shift[r] + row_room[r])
            for j in range(d):
                total[2 + j] -= change * rows[r, j]
                residual[1 + j] += change * (rows[r, j] - t * dual[j])
    # Lines were drawn with the least score that rounding allows; on a falling line the greatest
    # counts. A steep one adds a multiple of a whole vector to the sums, which rounds accordingly.
    for place in range(out, out + kept):
        a = slopes[place - out]
        if a < 0.0:
            constant -= 2.0 * a * slack[place]
        size = lengths[place] + abs(shift[place]) + reach[place] + abs(b0) + abs(b1)
        constant += ROUNDED * abs(a) * size
    if classes > 0:
        # What a line is exceeded by at most: if the agent is accepted, and if it is not.
        for i in range(unknown):
            place = out + unsure[i]
            least, most = b0 - highs[unsure[i]], b1 - lows[unsure[i]]
            w, far, a = weight[place], reach[place], slopes[unsure[i]]
            accepted = max(w * far, w * max(least, 0.0) + a * (far - least))
            rejected = max(0.0, -a * (most - far))
            constant += rejected
            values[i] = accepted - rejected
        brought = _together(
            values, unsure, unknown, out, mass, passed, totals, limits, fate, memory, keys, order,
            spare, y, reach, slack, ranks, centre, unit, dual, widths, cosine, centres, halves,
            level, chain, state,
        )  # fmt: skip
        if brought == NONE:
            return -1.0
        constant += brought
    # Gain = (u·p)(K + W b − C − u·S), around the centre.
    value = constant + total[0] * middle - total[1]
    spread = abs(total[0]) * room
    t = 0.0
    for j in range(d):
        t += unit[j] * total[2 + j]
    value -= t
    low, high = _range(total, unit, dual, widths, cosine)
    up, down = spread + t - low, -spread + t - high
    if kind != GAIN:
        return value + up
    if norm != L2:
        return fastest * (value + up)
    for j in range(d):
        pull[j] = value * p[j] - rate * total[2 + j]
    t = 0.0
    for j in range(d):
        t += unit[j] * pull[j]
    _, high = _range(pull, unit, dual, widths, cosine)
    first = abs(rate) * spread + high - t
    low, high = slowest_rate - rate, fastest - rate
    return rate * value + first + max(low * down, high * up, low * up, high * down)


@_inner
def _no_value(rates, low, high, band):  # type: ignore[no-untyped-def]
    """Whether none of these rates, ascending, is taken in a cell with rates from low to high."""
    if rates.shape[0] == 0:
        return False
    # The first that is not below the range.
    place, beyond = 0, rates.shape[0]
    while place < beyond:
        middle = (place + beyond) // 2
        if rates[middle] < low - band:
            place = middle + 1
        else:
            beyond = middle
    return place == rates.shape[0] or rates[place] > high + band


@_inner
def _sort(order, keys, spare, count):  # type: ignore[no-untyped-def]
    """Put the first ``count`` of ``order`` in the order of their keys, by merging; stable.

    What is in order already is not moved.
    """
    width = 1
    while width < count:
        for begin in range(0, count - width, 2 * width):
            middle = begin + width
            if keys[order[middle - 1]] <= keys[order[middle]]:
                continue
            end = middle + width
            end = min(end, count)
            for i in range(width):
                spare[i] = order[begin + i]
            left, right = 0, middle
            for to in range(begin, end):
                if right == end or (left < width and keys[spare[left]] <= keys[order[right]]):
                    order[to] = spare[left]
                    left += 1
                else:
                    order[to] = order[right]
                    right += 1
                if left == width:
                    break
        width *= 2


@_inner
def _outside(  # type: ignore[no-untyped-def]
    rows, row_shift, row_room, strict, centres, halves, level, unit, dual, widths, cosine,
    straddling,
):  # fmt: skip
    """Whether no direction of a cell is in the cone a·v + shift ≥ 0, up to the rows' rounding.

    strict : whether a cell may be closed that only touches the cone: other cells have what it
        shares with them
    straddling : receives which rows cut the cell
    """
    found = False
    for r in range(rows.shape[0]):
        least, most = row_shift[r], row_shift[r]
        if row_shift[r] == 0.0:
            for j in range(rows.shape[1]):
                middle, wide = rows[r, j] * centres[level, j], abs(rows[r, j]) * halves[level, j]
                least += middle - wide
                most += middle + wide
        else:
            low, high = _range(rows[r], unit, dual, widths, cosine)
            least += low
            most += high
        straddling[r] = least < row_room[r]
        found = found or most < -row_room[r]
        found = found or (strict and row_room[r] == 0.0 and most <= 0.0)
    return found


@_inner
def _at_centre(  # type: ignore[no-untyped-def]
    kind, norm, y, shift, reach, weight, mass, start, count, unit, b0, b1, p, sums, level,
    totals, limits, rows, row_shift, strict, memory, scores, ends, by_score, by_end, spare,
):  # fmt: skip
    """The best threshold in [b0, b1] along the centre's direction: its value, and itself.

    The value is −1 if something is demanded and no threshold there meets it.
    """
    d = unit.shape[0]
    classes = totals.shape[0]
    demanding = classes > 0 or rows.shape[0] > 0
    best, where = -1.0 if demanding else 0.0, b1
    if strict:
        for r in range(rows.shape[0]):
            t = row_shift[r]
            for j in range(d):
                t += unit[j] * rows[r, j]
            if t < 0.0:
                return best, where
    for i in range(count):
        t = shift[start + i]
        for j in range(d):
            t += unit[j] * y[j, start + i]
        scores[i] = t
        ends[i] = t + reach[start + i]
        by_score[i] = i
    rate = 1.0
    if kind == GAIN:
        rate = _rate_at(norm, p, unit)
        if rate <= 0.0:
            if not demanding:
                return best, where
            rate = 0.0
    _sort(by_score, scores, spare, count)
    for i in range(count):  # with equal reaches, the ends are in order now
        by_end[i] = by_score[i]
    _sort(by_end, ends, spare, count)
    base = sums[level, 1]
    for j in range(d):
        base += unit[j] * sums[level, 2 + j]
    for g in range(classes):
        memory[0, g] = sums[level, d + 2 + g]
        for i in range(count):
            memory[0, g] += mass[g, start + i]
    held, moment = 0.0, 0.0
    begun, gone = 0, 0
    for place in range(count):
        last = by_end[place]
        b = ends[last]
        while begun < count and scores[by_score[begun]] <= b:
            i = by_score[begun]
            held += weight[start + i]
            moment += weight[start + i] * scores[i]
            begun += 1
        while classes > 0 and ends[by_end[gone]] < b:
            for g in range(classes):
                memory[0, g] -= mass[g, start + by_end[gone]]
            gone += 1
        if b0 <= b <= b1 and (classes == 0 or _fits(memory, 0, totals, limits)):
            value = sums[level, 0] + held
            if kind != DENSITY:
                value = rate * (value * b - base - moment)
            if value > best:
                best, where = value, b
        held -= weight[start + last]
        moment -= weight[start + last] * scores[last]
    return best, where


@_entry
def climb(  # type: ignore[no-untyped-def]
    kind, norm, y, shift, reach, weight, mass, p, totals, limits, rows, row_shift, strict, v, steps,
    values, unit, sums, memory, scores, ends, by_score, by_end, spare,
):  # fmt: skip
    """The best value along each direction, (n, d), over all thresholds, into ``values``.

    steps : (n, s, d) array. Each is taken from the best direction so far, if it leads to a better
    one; that replaces the direction.
    """
    d = v.shape[1]
    level = np.int64(0)
    for i in range(v.shape[0]):
        for step in range(-1, steps.shape[1]):
            for j in range(d):
                unit[j] = v[i, j]
            if step >= 0:
                for j in range(d):
                    unit[j] += steps[i, step, j]
                _normalise(norm, unit)
            value, _ = _at_centre(
                kind, norm, y, shift, reach, weight, mass, 0, shift.shape[0], unit, -np.inf, np.inf,
                p, sums, level, totals, limits, rows, row_shift, strict, memory, scores, ends,
                by_score, by_end, spare,
            )  # fmt: skip
            if step < 0 or value > values[i]:
                values[i] = value
                for j in range(d):
                    v[i, j] = unit[j]


@_entry
def search_block(  # type: ignore[no-untyped-def]
    kind, norm, y, shift, slack, reach, weight, mass, ranks, lengths, index, count,
    centres, halves, sums, lows, highs, begins, counts, cuts, done,
    p, rates, band, totals, limits, rows, row_shift, row_room, strict,
    cut, factor, finest, touch, budget, most_left, most_agents_left,
    unit, dual, widths, effects, work, inside, pull, residual, slopes, offers, places,
    mid_scores, low_scores, high_scores, by_score, by_end, spare,
    passed, unsure, values, fate, memory, keys, straddling, multipliers, chain, state,
    code, left, left_agents, best_v,
):  # fmt: skip
    """Search a block depth-first until everything is closed or the budget (agents seen) is spent.

    It counts as spent, too, when so many nodes are left, or so many agents in them. The block's
    are the first ``count``. Level 0 of the frames has its box, its thresholds and its sure sums.

    Writes the tree in preorder to ``code``; the open nodes that are left, in order, to ``left``
    (thresholds, bound, how many agents, box, sure sums) and their agents, one after another, to
    ``left_agents``; and the direction of the best centre to ``best_v``. Returns how many symbols
    and how many open nodes; the highest bound of a closed leaf; agents seen; and the value of the
    best centre.
    """
    d = y.shape[0]
    room = shift.shape[0]
    classes = totals.shape[0]
    # What a node has in which nothing is of interest: less than 0, which rules may have, if some
    # rules are not allowed.
    nothing = -1.0 if classes > 0 or rows.shape[0] > 0 else 0.0
    length = 0
    opened, first = 0, 0
    closed = nothing
    seen = 0
    best = nothing

    level = np.int64(0)  # a literal 0 would be a type of its own, compiled for itself
    start, out = 0, 0
    fresh = True  # the node at ``level`` has not been bounded yet
    while level >= 0:
        if fresh:
            fresh = False
            if level > 0:
                start, count = begins[level - 1], counts[level - 1]
                out = start + count
            cosine, out_by, out_share = _cell(norm, centres, halves, level, unit, dual, widths)
            outside = _outside(
                rows, row_shift, row_room, strict, centres, halves, level, unit, dual, widths,
                cosine, straddling,
            )  # fmt: skip
            slowest, fastest = _rates(
                norm, p, unit, dual, widths, cosine, centres, halves, level, rows.shape[0] > 0
            )
            value, kept, ends, rough, unknown, brought = _bound(
                kind, norm, y, shift, slack, reach, weight, mass, ranks, index, start, count, out,
                unit, dual, widths, cosine, out_by, out_share, lows[level], highs[level], p,
                sums, level, inside, effects, work, mid_scores, low_scores, high_scores, lengths,
                finest, fastest, totals, limits, passed, unsure, values, fate, memory, keys,
                by_score, spare, centres, halves, chain, state,
            )  # fmt: skip
            if outside:
                ends = False
            seen += count + A_NODE + 4 * unknown
            if kind != DENSITY and ends and value > cut and kept <= MOST_TILTED:
                other = _tilted_bound(
                    kind, norm, y, shift, slack, reach, weight, mass, ranks, lengths, out, kept,
                    unit, dual, widths, cosine, lows[level], highs[level], p, sums, level,
                    work, pull, residual, slopes, offers, places,
                    mid_scores, low_scores, high_scores, touch, slowest, fastest,
                    totals, limits, passed, unsure, unknown, brought, values, fate, memory, keys,
                    by_score, spare, rows, row_shift, row_room, straddling, multipliers,
                    centres, halves, chain, state,
                )  # fmt: skip
                seen += 3 * kept
                if other < value:
                    value = other if other > 0.0 else 0.0
            begins[level], counts[level] = out, kept
            chosen = LEAF
            if not ends:
                # The best threshold of every direction is some agent's end: not in here. Or no
                # direction in here is allowed.
                value = nothing
            elif value > cut and not _no_value(rates, slowest, fastest, band):
                most = 0.0
                middle = 0.5 * (lows[level] + highs[level])
                if highs[level] - lows[level] > finest and lows[level] < middle < highs[level]:
                    most, chosen = effects[0], CUT_THRESHOLDS
                for j in range(d):
                    if rough and effects[1 + j] > most and halves[level, j] > SHORTEST:
                        most, chosen = effects[1 + j], CUT_SIDE + j
                if chosen == LEAF and value > closed:  # too fine to be cut
                    closed = value
            else:
                if value > cut:
                    value = nothing  # no value of u·p that counts is in here
                closed = max(closed, value)
            code[length] = chosen
            length += 1
            if chosen == LEAF:
                level -= 1
                continue
            spent = seen >= budget or opened >= most_left or first >= most_agents_left
            full = level == DEPTH or out + 2 * kept > room
            if length == 1 or (level % EVERY == 0 and kept <= FEW) or spent or full:
                found, _ = _at_centre(
                    kind, norm, y, shift, reach, weight, mass, out, kept, unit,
                    lows[level], highs[level], p, sums, level,
                    totals, limits, rows, row_shift, strict, memory,
                    low_scores, high_scores, by_score, by_end, spare,
                )  # fmt: skip
                seen += 4 * kept
                if found > cut and rates.shape[0] > 0:
                    budget = 0  # the oracle must be asked near here before it makes sense to go on
                if found > best:
                    best = found
                    for j in range(d):
                        best_v[j] = unit[j]
                    cut = max(cut, best * factor)
            if (spent and length > 1) or full:
                code[length - 1] = BLOCK
                left[opened, 0], left[opened, 1] = lows[level], highs[level]
                left[opened, 2], left[opened, 3] = value, kept
                for j in range(d):
                    left[opened, 4 + j] = centres[level, j]
                    left[opened, 4 + d + j] = halves[level, j]
                for j in range(d + 2 + classes):
                    left[opened, 4 + 2 * d + j] = sums[level, j]
                opened += 1
                for i in range(kept):
                    left_agents[first + i] = index[out + i]
                first += kept
                level -= 1
                continue
            cuts[level], done[level] = chosen, 0
        # Go to the next half of the node at this level, or back.
        if done[level] == 2:
            level -= 1
            continue
        second = done[level] == 1
        done[level] += 1
        new = level + 1
        for j in range(d):
            centres[new, j], halves[new, j] = centres[level, j], halves[level, j]
        for j in range(d + 2 + classes):
            sums[new, j] = sums[level, j]
        lows[new], highs[new] = lows[level], highs[level]
        if cuts[level] == CUT_THRESHOLDS:
            middle = 0.5 * (lows[level] + highs[level])
            if second:
                lows[new] = middle
            else:
                highs[new] = middle
        else:
            j = cuts[level] - CUT_SIDE
            halves[new, j] = 0.5 * halves[level, j]
            if second:
                centres[new, j] = centres[level, j] + halves[new, j]
            else:
                centres[new, j] = centres[level, j] - halves[new, j]
        level = new
        fresh = True
    return length, opened, closed, seen, best
