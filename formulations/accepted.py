"""Who is accepted after the move, and how much of the sample that may be.

Agent i is accepted by (u, b) iff b ≤ u·z_i + ℓ_i, its *end*: it passes as it stands, or it moves.
Limits on the accepted share bound the agents from both sides, so the binary a_i (``accepted``) says
it in both directions:

    b − u·z_i − ℓ_i ≤ B_i (1 − a_i) + δ_i       (passing:  who is accepted can pass)
    u·z_i + ℓ_i − b ≤ A_i a_i + δ_i             (failing:  who is not cannot)
    s_i ≤ a_i                                   (counted:  who moves is accepted)

    B_i = max(0, b_high − lowest_i − ℓ_i),   A_i = max(0, highest_i + ℓ_i − b_low)

In truth who fails has b > end. A program cannot say so, and the row is closed (and widened): on a
tie, b = end, a_i may be 0 or 1. So the model contains every true rule, and more: its optimum is an
upper bound. So a threshold *just above* an end is in the model, too: as b = end, a_i = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyomo.environ import Binary, ConcreteModel, Constraint, Var

from formulations.arrays import ROUNDING, Floats, checked_agents, finite, ordered
from formulations.rows import linear, numbers, row, store, whole

Whole = NDArray[np.integer[Any]]


def add_accepted(
    model: ConcreteModel,
    z: Floats,
    reach: Floats,
    *,
    lowest: Floats,
    highest: Floats,
    window: tuple[float, float],
    widen: float | Floats = 0.0,
    agents: Sequence[int] | None = None,
    alike: Whole | None = None,
) -> None:
    """Add the indicators ``accepted`` and the rows ``passing``, ``failing`` and ``counted``.

    The margin (`add_margin`) must be there, with the same ranges and window. An agent that every
    score and every b in the window accept has a_i ≥ 1, one that none of them accepts a_i ≤ 0. These
    are bounds of variables, not fixings, and `set_margin` moves them.

    z : (m, k) array; reach, lowest, highest, window, widen as in `add_margin`
    agents : who gets an indicator, all if None; the others may be in no share
    alike : (m,) whole numbers: agents of one class have the same features and the same reach to the
        last digit, so that they respond alike: rows ``alike``, a_i = a_j, also on a tie
    """
    m = len(z)
    reach, lowest, highest, widen = checked_agents(m, reach, lowest, highest, widen)
    z = finite("z", z, (m, len(model.u)))
    who = list(range(m)) if agents is None else [int(i) for i in agents]
    beyond, before = _limits(lowest, highest, reach, ordered(window))
    model.accepted_reach, model.accepted_widen = reach, widen
    model.accepted = Var(who, domain=Binary)
    model.beyond_end, model.before_end = numbers(beyond), numbers(before)
    model.passing_limit = numbers(beyond + reach + widen)
    failing_limit = (widen - reach).tolist()

    def passing_row(model: ConcreteModel, i: int) -> Any:
        coefficients, variables = row(-z[i], model.u)
        ends = [model.b, model.accepted[i]]
        body = linear([*coefficients, 1, model.beyond_end[i]], [*variables, *ends])
        return None, body, model.passing_limit[i]

    def failing_row(model: ConcreteModel, i: int) -> Any:
        coefficients, variables = row(z[i], model.u)
        ends = [model.b, model.accepted[i]]
        body = linear([*coefficients, -1, -model.before_end[i]], [*variables, *ends])
        return None, body, failing_limit[i]

    def counted_row(model: ConcreteModel, i: int) -> Any:
        return None, linear([1, -1], [model.s[i], model.accepted[i]]), 0

    model.passing = Constraint(who, rule=passing_row)
    model.failing = Constraint(who, rule=failing_row)
    model.counted = Constraint(who, rule=counted_row)
    if alike is not None:
        _add_alike(model, np.broadcast_to(alike, (m,)), who)
    set_accepted(model, lowest=lowest, highest=highest, window=window)


def set_accepted(
    model: ConcreteModel, *, lowest: Floats, highest: Floats, window: tuple[float, float]
) -> None:
    """Move what `add_accepted` built to other ranges and another window; `set_margin` calls it.

    Nobody has s_i ≥ 1 here, however sure to be in the margin: at the upper end of the window the
    model has the thresholds just above it, and rows of a user's own may ask for s_i = 0.
    """
    reach, widen = model.accepted_reach, model.accepted_widen
    reach, lowest, highest, widen = checked_agents(len(reach), reach, lowest, highest, widen)
    bottom, top = ordered(window)
    beyond, before = _limits(lowest, highest, reach, (bottom, top))
    store(model.beyond_end, beyond)
    store(model.before_end, before)
    store(model.passing_limit, beyond + reach + widen)
    never = highest + reach + widen < bottom - ROUNDING
    surely = lowest + reach - widen > top + ROUNDING
    for i in model.accepted:
        model.accepted[i].setlb(1 if surely[i] else 0)
        model.accepted[i].setub(0 if never[i] else 1)
    for i in model.s:
        model.s[i].setlb(0)


def add_share(model: ConcreteModel, mass: Floats, low: float, high: float) -> None:
    """Add the rows ``share_least`` and ``share_most``: low ≤ Σ mass_i a_i ≤ high.

    Whole numbers, so that nothing is rounded: a true rule meets the rows exactly. Masses above 2²⁰
    are scaled down by a power of two, with the limits (`whole`).

    mass : (m,) array of whole numbers ≥ 0, not all 0; low, high : in the same units. low > high is
    a demand that nobody can meet, and makes the model infeasible.
    """
    low, high = finite("low and high", (low, high), (2,)).tolist()
    coefficients, factor, lost = whole("mass", mass)
    body = linear(*accepted_terms(model, coefficients))
    model.share_least = Constraint(expr=(low * factor - lost, body, None))
    model.share_most = Constraint(expr=(None, body, high * factor))


def accepted_terms(model: ConcreteModel, coefficients: Floats) -> tuple[list[float], list[Any]]:
    """Coefficients and variables of Σ coefficient_i a_i, zeros left out."""
    if len(coefficients) != len(model.s):
        raise ValueError(f"mass has {len(coefficients)} numbers for {len(model.s)} agents")
    used = np.flatnonzero(coefficients).tolist()
    missing = [i for i in used if i not in model.accepted]
    if missing:
        raise ValueError(f"agent {missing[0]} has mass, but no indicator: name it in agents")
    return [float(coefficients[i]) for i in used], [model.accepted[i] for i in used]


def _limits(
    lowest: Floats, highest: Floats, reach: Floats, window: tuple[float, float]
) -> tuple[Floats, Floats]:
    """B and A, the least values that are right for scores in [lowest, highest] and b in window."""
    bottom, top = window
    return np.maximum(0.0, top - lowest - reach), np.maximum(0.0, highest + reach - bottom)


def _add_alike(model: ConcreteModel, alike: Whole, who: list[int]) -> None:
    first: dict[int, int] = {}
    pairs = {i: first.setdefault(int(alike[i]), i) for i in who}
    twins = [i for i in who if pairs[i] != i]

    def same(model: ConcreteModel, i: int) -> Any:
        return 0, linear([1, -1], [model.accepted[i], model.accepted[pairs[i]]]), 0

    model.alike = Constraint(twins, rule=same)
