"""The facets of the unit sphere that is dual to l1 or linf: on each of them the rate is constant.

In u_j = w_j/e_j, for the features that the planner sees, the directions of length 1 are

    l1    the surface of the cube, max|u_j| = 1: a facet for each feature and sign, u_j = ±1, where
          agents work on that feature alone and the rate is ±w_fj/e_j;
    linf  the surface of the cross-polytope, Σ|u_j| = 1: a facet for each choice of signs, where
          agents work on all features at once and the rate is Σ ±w_fj/e_j.

They are what values of η are for l2: Algorithm 1 asks once for each. On edges, where facets meet,
nobody does better than on the best of these facets (l1: agents choose it; linf: a feature of weight
0 is left alone, which is between the rates of its two signs). So nothing is lost on closed facets.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from mipmech.errors import InputError
from mipmech.model.instance import Instance

# A run over more facets than these would never end; the cells engine does not list them.
MOST_SIGNS = 14


@dataclass(frozen=True)
class FacetRate:
    """A facet, and the rate there.

    Attributes
    ----------
    signs : tuple of int
        By feature seen: for l1 one of them is ±1 and the others are 0; for linf all are ±1.
    rate : Fraction
        Quality gained per unit of cost.
    """

    signs: tuple[int, ...]
    rate: Fraction


def facets_of(instance: Instance) -> list[FacetRate]:
    """All facets, those with the greatest rate first.

    Parameters
    ----------
    instance : Instance
        A sample with costs of the norm l1 or linf.

    Examples
    --------
    >>> sample = Instance.from_arrays(
    ...     [[0.0, 0.0]], [1.0, 3.0], visible=[0, 1], cost=1.0, norm="linf", effort=[2.0, 1.0]
    ... )
    >>> [(facet.signs, float(facet.rate)) for facet in facets_of(sample)][:2]
    [((1, 1), 3.5), ((-1, 1), 2.5)]
    """
    costs = instance.costs
    if costs.norm == "l2":
        raise InputError("is l2, whose unit sphere has no facets", field="norm")
    apart = costs.rates(instance.view, instance.quality)
    k = len(apart)
    if costs.norm == "l1":
        found = [
            FacetRate(tuple(sign * (i == j) for i in range(k)), sign * apart[j])
            for j in range(k)
            for sign in (1, -1)
        ]
    elif k > MOST_SIGNS:
        said = (
            f"is linf, and with {k} features seen there are 2^{k} facets to ask about, at most"
            f" 2^{MOST_SIGNS} are; mipmech certify searches all of them at once"
        )
        raise InputError(said, field="norm")
    else:
        found = [
            FacetRate(signs, sum((s * r for s, r in zip(signs, apart, strict=True)), Fraction(0)))
            for signs in product((1, -1), repeat=k)
        ]
    return sorted(found, key=lambda facet: -facet.rate)
