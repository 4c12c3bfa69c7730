"""Hypothesis strategies: small instances with every kind of trouble."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from mipmech import Instance, Mechanism
from tests.referee import response_in_floats

TENTHS = st.integers(-20, 20).map(lambda i: i / 10)
WHOLE = st.integers(-5, 5).map(float)
ANY = st.floats(-100, 100, allow_subnormal=False).map(lambda v: v if abs(v) > 1e-6 else 0.0)
NUMBERS = st.sampled_from([TENTHS, WHOLE, ANY])
COSTS = st.sampled_from([0.1, 0.3, 0.5, 1.0, 2.0, 3.0, 7.0, 10.0])
PRICES = st.sampled_from([1e-3, 0.1, 0.5, 1.0, 1.0, 2.0, 3.0, 1e3])
NORMS = ("l2", "l1", "linf")
OFFSETS = st.sampled_from([0.0, 0.0, 1.0, 3e7, -1e8])


@st.composite
def instances(
    draw,
    max_agents=9,
    min_width=1,
    max_width=4,
    kinds=("visible", "view", "projection"),
    norms=(),
):
    """An instance: ties, duplicates, zero weights, unequal costs, offsets, all kinds of view.

    With norms, moves cost what one of them says, with prices or a matrix or without, and reaches
    may be given instead of costs; otherwise costs are Euclidean.
    """
    n = draw(st.integers(min_width, max_width))
    m = draw(st.integers(1, max_agents))
    number = draw(NUMBERS)
    rows = draw(st.lists(st.lists(number, min_size=n, max_size=n), min_size=m, max_size=m))
    agents = np.array(rows) + draw(OFFSETS)
    if draw(st.booleans()):
        agents[-1] = agents[0]
    quality = draw(st.lists(number, min_size=n, max_size=n).filter(any))
    cost = draw(st.one_of(COSTS, st.lists(COSTS, min_size=m, max_size=m)))
    weights = draw(
        st.one_of(
            st.none(),
            st.lists(st.sampled_from([0.0, 0.1, 1.0, 3.0]), min_size=m, max_size=m).filter(any),
        )
    )
    costs = draw(moves(n, norms)) if norms else {}
    paid = draw(st.sampled_from(["cost", "reach"])) if norms else "cost"
    return Instance.from_arrays(
        agents,
        quality,
        **{paid: cost},
        **costs,
        weights=weights,
        quality_offset=draw(TENTHS),
        **draw(seen(n, kinds if costs.get("norm", "l2") == "l2" else ("visible",))),
    )


@st.composite
def moves(draw, n, norms=NORMS):
    """What moves cost, as arguments of `Instance.from_arrays`: a norm, and prices or a matrix."""
    norm = draw(st.sampled_from(norms))
    kind = draw(
        st.sampled_from(["none", "prices", "matrix"] if norm == "l2" else ["none", "prices"])
    )
    effort = None
    if kind == "prices":
        effort = draw(st.lists(PRICES, min_size=n, max_size=n))
    elif kind == "matrix":
        whole = st.integers(-2, 2).map(float)
        root = np.array(
            draw(st.lists(st.lists(whole, min_size=n, max_size=n), min_size=n, max_size=n))
        )
        sizes = np.diag(draw(st.lists(st.sampled_from([0.125, 1.0, 8.0]), min_size=n, max_size=n)))
        own = np.diag(draw(st.lists(st.sampled_from([0.25, 1.0, 3.0]), min_size=n, max_size=n)))
        effort = sizes @ (root.T @ root + own) @ sizes
    return {"norm": norm, "effort": effort}


@st.composite
def seen(draw, n, kinds=("visible", "view", "projection")):
    """What the planner sees, as the argument of `Instance.from_arrays`."""
    kind = draw(st.sampled_from(kinds))
    k = draw(st.integers(1, n))
    if kind == "visible":
        return {"visible": draw(st.permutations(range(n)))[:k]}
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    rows = rng.standard_normal((k, n))
    if kind == "view":
        if draw(st.booleans()):
            rows = np.vstack([rows, rows[0]])  # an exactly dependent row
        return {"view": rows}
    basis = np.linalg.qr(rows.T)[0]
    return {"projection": basis @ basis.T}


@st.composite
def tied_instances(draw, max_agents=7, widths=(1, 2, 3), norms=NORMS, unequal=None):
    """Agents on a small lattice, some of them twice, whole weights, dyadic reaches: ties abound.

    Shares of weight that are limits of requirements are often met exactly. The planner sees all
    columns but perhaps the last.
    """
    n = draw(st.sampled_from(widths))
    m = draw(st.integers(1, max_agents))
    hidden = draw(st.booleans())
    place = st.lists(st.integers(-3, 3).map(float), min_size=n + hidden, max_size=n + hidden)
    agents = np.array(draw(st.lists(place, min_size=m, max_size=m)))
    if draw(st.booleans()):
        agents[-1] = agents[0]
    reaches = st.sampled_from([0.25, 0.5, 1.0, 2.0])
    alike = not draw(st.booleans()) if unequal is None else not unequal
    weights = st.lists(st.sampled_from([0.0, 1.0, 1.0, 2.0]), min_size=m, max_size=m).filter(any)
    norm = draw(st.sampled_from(norms))
    prices = st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=n + hidden, max_size=n + hidden)
    return Instance.from_arrays(
        agents,
        draw(place.filter(any)),
        reach=draw(reaches if alike else st.lists(reaches, min_size=m, max_size=m)),
        norm=norm,
        effort=draw(st.one_of(st.none(), prices)),
        visible=range(n),
        weights=draw(st.one_of(st.none(), weights)),
    )


REQUIREMENTS = ("nonnegative", "nonpositive", "order", "accepted", "parity")
WITHIN = st.sampled_from([0.0, 0.05, 0.125, 0.25, 0.3, 0.5, 1.0])


@st.composite
def required(draw, instance, kinds=REQUIREMENTS, most=2):
    """Requirements as a file has them, and the labels of the group that parity is about.

    Up to `most` of the kinds at once, from loose to impossible; labels are None without parity.
    """
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=most, unique=True))
    view = instance.view
    size = instance.width if view.columns is not None else len(view.matrix)
    features = st.integers(0, size - 1)
    if instance.features is not None and view.columns is not None:
        features = st.one_of(features, features.map(lambda j: instance.features[j]))
    some = st.lists(st.integers(0, size - 1), min_size=1, max_size=size, unique=True)
    requirements: dict = {}
    labels = None
    for kind in chosen:
        if kind in ("nonnegative", "nonpositive"):
            requirements[kind] = draw(st.one_of(st.just("all"), some))
        elif kind == "order":
            if size > 1:
                pairs = st.tuples(features, features).map(list)
                requirements[kind] = draw(
                    st.lists(pairs.filter(lambda p: p[0] != p[1]), min_size=1, max_size=3)
                )
        elif kind == "accepted":
            requirements[kind] = draw(shares(instance.size))
        else:
            names = draw(st.sampled_from([("a", "b"), ("a", "b", "c"), (1, 2), ("a",)]))
            label = st.sampled_from(names)
            labels = draw(st.lists(label, min_size=instance.size, max_size=instance.size))
            requirements[kind] = {"groups": "kind", "within": draw(WITHIN)}
    return requirements, labels


@st.composite
def shares(draw, size):
    """[low, high] in [0, 1]: a share of so many agents, an eighth or a tenth, or the same twice."""
    share = st.one_of(
        st.integers(0, size).map(lambda i: i / size),
        st.integers(0, 8).map(lambda i: i / 8),
        st.integers(0, 10).map(lambda i: i / 10),
        st.sampled_from([0.0, 1.0]),
    )
    return sorted([draw(share), draw(share)])


# Where the threshold lies between an agent's score (0) and the end of its reach (1).
AT_ENDS = (0.0, 0.25, 0.5, 1.0, 1.5)
BETWEEN = (0.1234, 0.5678, 0.9012, 1.3456)


@st.composite
def mechanisms(draw, instance, places=AT_ENDS):
    """A mechanism on the instance: nice or ugly direction, threshold relative to some agent."""
    view = instance.view
    size = len(view.matrix) if view.columns is None else view.rank
    number = draw(NUMBERS)
    v = np.array(draw(st.lists(number, min_size=size, max_size=size).filter(any)))
    if view.columns is None:
        # Dependent rows may cancel: keep to the first of them.
        v = v if np.abs(view.matrix.T @ v).max() > 1e-9 else np.eye(size)[0]
        weights, view_weights = view.matrix.T @ v, tuple(v.tolist())
    else:
        weights, view_weights = np.zeros(instance.width), None
        weights[list(view.columns)] = v
    agent = draw(st.integers(0, instance.size - 1))
    if instance.costs.plain:
        reach = np.linalg.norm(weights) / instance.cost[agent]
    else:
        reach = response_in_floats(instance, weights)[0] * instance.reach[agent]
    score = float(instance.agents[agent] @ weights)
    threshold = score + draw(st.sampled_from(places)) * float(reach)
    return Mechanism(tuple(weights.tolist()), threshold, view_weights)
