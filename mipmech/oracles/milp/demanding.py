"""What is demanded of rules, as rows of the models: requirements, and constraints of a user's own.

**Constraints of one's own** (`requirements.Own`) are written on the model that HiGHS is given, as
often as it is given one. Its agents are numbered 0, 1, … without those of weight 0;
``model.agents[i]`` is the number of agent i in the instance. All lengths are in multiples of
``model.unit``. What there is:

    model.weight[j]    the weight of feature j, by number or by name, as an expression; for a
                       general view, of its row j. The rule is scaled so that a move of cost 1
                       raises scores by at most 1 (for l2 with equal prices, ‖w‖ = 1)
    model.threshold    the threshold of this rule in the user's units, as an expression
    model.accepted[i]  1 if agent i passes after the move, else 0
    model.s[i]         1 if agent i is in the margin, else 0
    model.t[i]         how far agent i moves, at cost 1 per unit of length; · model.unit
    model.u, model.b   direction and threshold in the coordinates of the search

t is the true distance, to within the margin's widening: who is accepted and below the threshold
moves up to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mipmech.errors import InputError
from mipmech.model.geometry import Geometry
from mipmech.model.requirements.directions import places_of
from mipmech.oracles.shared.facets import Part
from mipmech.oracles.shared.restrictions import alike, cone_rows
from mipmech.oracles.shared.slices import Slice
from mipmech.tolerances import EPSILON
from mipmech.validation import Floats


def demanded_of(part: Part, widen: float) -> Any:
    """`formulations.demanded.Demanded` for a slice or facet; None if nothing is demanded.

    widen : what the margin is widened by; rows of the cone have that room, too
    """
    from formulations.demanded import Demanded  # noqa: PLC0415  (Pyomo is slow to import)

    demands = part.geometry.demands
    if demands is None:
        return None
    given: dict[str, Any] = {"indicators": bool(demands.requirements.own)}
    if demands.cone is not None:
        rows, room = cone_rows(part.geometry)
        sizes = np.linalg.norm(rows, axis=1)
        rounded = 64 * (part.geometry.rank + 4) * EPSILON * sizes
        given |= {"rows": _turned(part, rows), "room": room + rounded + widen}
    shares = demands.shares
    if shares is not None:
        mass = shares.mass[part.agents].astype(np.float64)
        total = int(shares.totals.sum())
        given["mass"] = mass
        if shares.low > 0 or shares.high < total:
            given["limits"] = (float(shares.low), float(shares.high))
        if shares.by_class:
            given |= {"within": float(shares.within), "members": shares.members[part.agents]}
    if shares is not None or given["indicators"]:
        given["alike"] = alike(part.geometry.seen or part.geometry.instance, part.agents)
    return Demanded(**given)


def by_share(geometry: Geometry) -> bool:
    """Whether models must know who is accepted."""
    demands = geometry.demands
    return demands is not None and (demands.shares is not None or bool(demands.requirements.own))


def has_own(geometry: Geometry) -> bool:
    """Whether there are constraints that a user wrote."""
    return geometry.demands is not None and bool(geometry.demands.requirements.own)


def _turned(part: Part, rows: Floats) -> Floats:
    """Rows over u as rows over the variables of a model."""
    if isinstance(part, Slice) and not part.whole:
        return np.column_stack([rows @ part.towards, rows @ part.turn])
    return rows


def add_own(model: Any, part: Part) -> None:
    """Add what a user's constraints may speak of, and the constraints."""
    demands = part.geometry.demands
    assert demands is not None
    if not demands.requirements.own:
        return
    _add_moves(model, part)
    _add_words(model, part)
    for own in demands.requirements.own:
        try:
            own.rows(model)
        except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
            said = f"{own.name}: rows(model) failed: {type(error).__name__}: {error}"
            raise InputError(said, field="own") from error


def _add_moves(model: Any, part: Part) -> None:
    """T, which soft models have, and rows that do not let it be less than it is.

    t_i ≥ b − u·z_i − δ_i − A_i (1 − a_i),   A_i = max(0, b_high − lowest_i)         (moving)
    """
    from pyomo.environ import Constraint, Var  # noqa: PLC0415  (slow to import)

    from formulations.rows import linear, row  # noqa: PLC0415

    z = _coordinates(part)
    agents = range(len(z))
    top = float(model.b.ub)
    widen = np.broadcast_to(model.margin_widen, (len(z),)).tolist()
    scores = [row(z[i], model.u) for i in agents]
    # The greatest distance: what is near the far end, or M of the row that lets go.
    lengths = np.linalg.norm(z, axis=1) if part.geometry.norm == "l2" else np.abs(z).sum(axis=1)
    most = (np.maximum(0.0, top + lengths) + 1e-9).tolist()
    if model.component("t") is None:
        model.t = Var(agents, bounds=lambda model, i: (0, model.longest[i].value))
        model.stay = Constraint(
            agents,
            rule=lambda model, i: (
                None, linear([1, -model.longest[i]], [model.t[i], model.s[i]]), 0,
            ),
        )  # fmt: skip

        def distance(model: Any, i: int) -> Any:
            coefficients, variables = scores[i]
            names = [model.t[i], *variables, model.b, model.s[i]]
            body = linear([1, *coefficients, -1, model.above[i]], names)
            return None, body, model.near_limit[i]

        model.distance = Constraint(agents, rule=distance)

    def moving(model: Any, i: int) -> Any:
        coefficients, variables = scores[i]
        names = [model.t[i], *variables, model.b, model.accepted[i]]
        body = linear([1, *coefficients, -1, -most[i]], names)
        return -widen[i] - most[i], body, None

    model.moving = Constraint(agents, rule=moving)


def _coordinates(part: Part) -> Floats:
    """The agents in the coordinates of the models."""
    if isinstance(part, Slice):
        return part.across if part.whole else np.column_stack([part.along, part.across])
    return np.asarray(part.geometry.z[part.agents])


def _add_words(model: Any, part: Part) -> None:
    """The rule in the user's terms."""
    from pyomo.environ import Expression  # noqa: PLC0415  (slow to import)

    geometry = part.geometry
    instance = geometry.instance
    # Rows of weights over u: for columns, w = Qᵀu; for a general view, v = L⁻ᵀu.
    if geometry.transfer is None:
        matrix = geometry.basis.T
    else:
        matrix = np.zeros((len(instance.view.matrix), geometry.rank))
        matrix[list(instance.view.rows)] = np.linalg.inv(geometry.transfer.T)
    matrix = _turned(part, matrix)
    columns = list(model.u)

    def combined(row: Floats) -> Any:
        return sum(float(a) * model.u[j] for a, j in zip(row, columns, strict=True) if a)

    seen = places_of(instance)
    by_name: dict[Any, Any] = {j: combined(matrix[j]) for j in range(len(matrix))}
    if instance.view.columns is not None:
        by_name |= {instance.feature_names[j]: by_name[j] for j in seen}
    model.weight = Expression(list(by_name), rule=lambda _, key: by_name[key])
    whole = geometry.basis.T if geometry.transfer is None else _turned_back(geometry)
    model.threshold = Expression(
        expr=geometry.unit * model.b + combined(_turned(part, geometry.centre[None] @ whole)[0])
    )
    model.unit = float(geometry.unit)
    model.agents = [int(i) for i in part.agents]


def _turned_back(geometry: Geometry) -> Floats:
    """W = Bᵀv over u, (n, k) array."""
    assert geometry.transfer is not None
    rows = geometry.instance.view.matrix[list(geometry.instance.view.rows)]
    return np.asarray(rows.T @ np.linalg.inv(geometry.transfer.T))
