"""Who is in the margin: big-M indicators, with M from the range of each agent's score.

Agent i is in the margin of (u, b) iff 0 ≤ b − u·z_i ≤ ℓ_i. The model says so with a binary s_i:

    u·z_i − b       ≤ M⁺_i (1 − s_i) + δ_i        (near:  not beyond the threshold)
    b − u·z_i − ℓ_i ≤ M⁻_i (1 − s_i) + δ_i        (far:   not out of reach)

u is of length 1 in the norm that measures rules: Euclidean, or the dual norm of l1 or linf costs
(`facets`). δ_i ≥ 0 (``widen``) is what the slab is widened by on each side to cover the solver's
tolerance. M is never a constant: it is what the left side can be at most, over the directions in
question and the window of b.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pyomo.environ import Binary, ConcreteModel, Constraint, Var

from formulations.accepted import set_accepted
from formulations.arrays import ROUNDING, UNIT, Floats, checked_agents, finite, ordered
from formulations.rows import linear, numbers, row, store

# The constant M of `naive_margin`: large enough for any data, and for a solver to cheat.
NAIVE_M = 1e5


def support(z: Floats, p: Floats | None, low: float, high: float) -> tuple[Floats, Floats]:
    """The exact range of u·z_i over Euclidean unit vectors u with low ≤ u·p̂ ≤ high.

    Over a facet of the dual unit sphere of l1 or linf costs, ask the facet (`Surface.ranges`).

    Split z = (z·p̂) p̂ + rest, q = ‖rest‖, and u likewise with u·p̂ = cos θ, so that the rest of u has
    length sin θ ≥ 0 and any direction. For fixed θ the scores fill

        [cos θ (z·p̂) − sin θ q,  cos θ (z·p̂) + sin θ q].

    The right end is ‖z‖ cos(θ − θ*), θ* = atan2(q, z·p̂): largest at θ* if cos θ* = z·p̂/‖z‖ is
    allowed, otherwise at an end of the interval of θ. The left end is the same for −z. In one
    dimension there are only u = ±p̂.

    z : (m, k) array; p : (k,) array p̂, a unit vector, or None: every unit vector is allowed
    returns : lowest, highest, (m,) arrays, to within rounding (`ROUNDING`)

    >>> support(np.array([[3.0, 4.0]]), np.array([1.0, 0.0]), 0.0, 0.0)
    (array([-4.]), array([4.]))
    """
    z = finite("z", z, np.shape(z))
    length: Floats = np.linalg.norm(z, axis=1)
    if p is None:
        return -length, length
    p = unit_vector(p, z.shape[1])
    allowed(low, high)
    along = z @ p
    if z.shape[1] == 1:
        signs = [sign for sign in (-1.0, 1.0) if low <= sign <= high]
        if not signs:
            raise ValueError(f"in one dimension u·p̂ is −1 or 1, never in [{low}, {high}]")
        scores = np.array([sign * along for sign in signs])
        return scores.min(axis=0), scores.max(axis=0)
    across: Floats = np.linalg.norm(z - np.outer(along, p), axis=1)
    # sin θ from the product, not from 1 − cos²: at |cos θ| near 1 all its digits matter.
    ends = [(end, np.sqrt((1 - end) * (1 + end))) for end in (low, high)]
    highest = np.max([cos * along + sin * across for cos, sin in ends], axis=0)
    lowest = np.min([cos * along - sin * across for cos, sin in ends], axis=0)
    towards = (low * length <= along) & (along <= high * length)
    away = (low * length <= -along) & (-along <= high * length)
    return np.where(away, -length, lowest), np.where(towards, length, highest)


def big_m(
    lowest: Floats, highest: Floats, reach: Floats, window: tuple[float, float]
) -> tuple[Floats, Floats]:
    """M⁺ and M⁻, the least values that are right for scores in [lowest, highest] and b in window.

        M⁺_i = max(0, highest_i − b_low),    M⁻_i = max(0, b_high − lowest_i − ℓ_i)

    The score u·z_i − b is at most highest_i − b_low, and b − u·z_i − ℓ_i at most
    b_high − lowest_i − ℓ_i; both are reached if score and threshold are free of each other. The
    range need only hold for *unit* vectors u (on a facet: for all of it): what a small M cuts off
    elsewhere is not a mechanism.
    """
    return np.maximum(0.0, highest - window[0]), np.maximum(0.0, window[1] - lowest - reach)


def add_margin(
    model: ConcreteModel,
    z: Floats,
    reach: Floats,
    *,
    lowest: Floats,
    highest: Floats,
    window: tuple[float, float],
    widen: float | Floats = 0.0,
    near: bool = True,
) -> None:
    """Add the threshold ``b``, the indicators ``s`` and the rows ``near`` and ``far``.

    ``model.u`` must exist. An agent whose scores and window cannot meet is out (s_i ≤ 0), one that
    is in the margin for every score and every b in the window is in (s_i ≥ 1). Both are bounds of
    variables, not fixings, so that `set_margin` can move the window of a persistent model without
    changing its shape.

    z : (m, k) array; reach, lowest, highest : (m,) arrays; widen : δ, a number or (m,) array
    near : leave the near rows out if something else implies them (as in the soft density)
    """
    m, _ = np.shape(z)
    reach, lowest, highest, widen = checked_agents(m, reach, lowest, highest, widen)
    above, beyond = big_m(lowest, highest, reach, ordered(window))
    _add(model, z, reach, above, beyond, widen, near)
    set_margin(model, lowest=lowest, highest=highest, window=window)


def set_margin(
    model: ConcreteModel, *, lowest: Floats, highest: Floats, window: tuple[float, float]
) -> None:
    """Move a model built by `add_margin` to other ranges of the scores and another window of b.

    ``model.longest`` is T_i, how far agent i can move at most; the soft density has it as bound.
    A model with `add_accepted` moves along (`set_accepted`).
    """
    reach, widen = model.margin_reach, model.margin_widen
    reach, lowest, highest, widen = checked_agents(len(reach), reach, lowest, highest, widen)
    bottom, top = window = ordered(window)
    above, beyond = big_m(lowest, highest, reach, window)
    store(model.above, above)
    store(model.beyond, beyond)
    store(model.near_limit, above + widen)
    store(model.far_limit, beyond + reach + widen)
    longest = np.minimum(reach, np.maximum(0.0, top - lowest)) + widen
    store(model.longest, longest)
    moves = model.component("t")
    if moves is not None:  # the soft density
        for i, most in enumerate(longest.tolist()):
            moves[i].setub(most)
    model.b.setlb(bottom)
    model.b.setub(top)
    out = (lowest - widen > top + ROUNDING) | (highest + reach + widen < bottom - ROUNDING)
    surely = (highest <= bottom) & (lowest + reach >= top) & ~out
    for i in range(len(reach)):
        model.s[i].setlb(1 if surely[i] else 0)
        model.s[i].setub(0 if out[i] else 1)
    if model.component("accepted") is not None:
        set_accepted(model, lowest=lowest, highest=highest, window=window)


def naive_margin(
    model: ConcreteModel,
    z: Floats,
    reach: Floats,
    *,
    window: tuple[float, float],
    m: float = NAIVE_M,
) -> None:
    """`add_margin` with one constant M for all: an example of what not to do.

    Measured with HiGHS 1.15.1 at its default tolerances, 40 agents, b free: M = 1e5 was reported
    "optimal, 13" where the truth is 5, because an indicator at 0.999999 relaxes its rows by 0.1;
    M = 1e7 reported all 40.
    """
    reach = finite("reach", reach, (len(z),))
    constant = np.full(len(z), float(m))
    _add(model, z, reach, constant, constant, np.zeros(len(z)), near=True)
    bottom, top = ordered(window)
    model.b.setlb(bottom)
    model.b.setub(top)


def unit_vector(p: Floats, k: int) -> Floats:
    """p̂, checked: k numbers, of length 1 to within `UNIT`."""
    p = finite("p", p, (k,))
    if abs(float(np.linalg.norm(p)) - 1) > UNIT:
        raise ValueError(f"p must be a unit vector, its length is {np.linalg.norm(p)}")
    return p


def allowed(low: float, high: float) -> None:
    """Refuse bounds of u·p̂ that no unit vector can meet."""
    if not -1 <= low <= high <= 1:
        raise ValueError(f"u·p̂ must be bounded within [-1, 1], not by [{low}, {high}]")


def _add(
    model: ConcreteModel,
    z: Floats,
    reach: Floats,
    above: Floats,
    beyond: Floats,
    widen: Floats,
    near: bool,
) -> None:
    agents = range(len(z))
    z = finite("z", z, (len(z), len(model.u)))
    model.margin_reach, model.margin_widen = reach, widen
    model.b = Var()
    model.s = Var(agents, domain=Binary)
    model.above = numbers(above)
    model.beyond = numbers(beyond)
    model.near_limit = numbers(above + widen)
    model.far_limit = numbers(beyond + reach + widen)
    model.longest = numbers(reach + widen)
    scores = [row(z[i], model.u) for i in agents]

    def near_row(model: ConcreteModel, i: int) -> Any:
        coefficients, variables = scores[i]
        body = linear([*coefficients, -1, model.above[i]], [*variables, model.b, model.s[i]])
        return None, body, model.near_limit[i]

    def far_row(model: ConcreteModel, i: int) -> Any:
        coefficients, variables = scores[i]
        minus = [-c for c in coefficients]
        body = linear([*minus, 1, model.beyond[i]], [*variables, model.b, model.s[i]])
        return None, body, model.far_limit[i]

    if near:
        model.near = Constraint(agents, rule=near_row)
    model.far = Constraint(agents, rule=far_row)
