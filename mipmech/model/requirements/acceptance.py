"""Who is accepted, counted in whole numbers: the limits of `accepted` and `parity` together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

import numpy as np

from mipmech.model.instance import Instance
from mipmech.model.masses import masses
from mipmech.model.requirements.accepted import Accepted
from mipmech.model.requirements.kind import decimal
from mipmech.model.requirements.parity import Parity
from mipmech.validation import Flags, Floats, Numbers


@dataclass(frozen=True, eq=False)
class Shares:
    """Limits on the weight accepted, in all and by class, in whole numbers.

    mass : (m,) array of whole numbers, proportional to the weights; 0 for agents without weight
    members : (m,) array, the class of every agent
    totals : (c,) array, the mass of each class; none is 0
    low, high : the least and the greatest mass accepted in all
    within : the accepted shares of two classes differ by at most this; 1 if that does not matter
    exact : whether masses are proportional to weights exactly; if not, limits are a little wider
    """

    mass: Numbers
    members: Numbers
    totals: Numbers
    low: int
    high: int
    within: Fraction
    exact: bool

    @classmethod
    def of(
        cls, instance: Instance, accepted: Accepted | None, parity: Parity | None
    ) -> Shares | None:
        """What the two demand of a sample together; None if nothing is demanded."""
        if accepted is None and parity is None:
            return None
        counts = instance.weights > 0
        whole = masses(instance.weights[counts])
        mass = np.zeros(instance.size, np.int64)
        mass[counts] = whole.whole
        members, within = np.zeros(instance.size, np.int64), Fraction(1)
        if parity is not None:
            within = decimal(parity.within)
            given = instance.groups[parity.groups].members
            # Groups without weight have no share.
            kept = np.unique(given[counts])
            members = np.searchsorted(kept, given)
            members[~counts] = 0
        totals = np.bincount(members, weights=mass).astype(np.int64)
        low, high = 0, int(mass.sum())
        if accepted is not None:
            low = ceil(decimal(accepted.low) / whole.unit) - whole.excess
            high = floor(decimal(accepted.high) / whole.unit) + whole.excess
        if whole.excess:
            within += Fraction(4 * whole.excess, int(totals.min()))
        return cls(mass, members, totals, low, high, within, not whole.excess)

    @property
    def by_class(self) -> bool:
        """Whether it matters who is in which class."""
        return self.within < 1 and len(self.totals) > 1

    @property
    def nobody(self) -> bool:
        """Whether it is allowed to accept nobody."""
        return self.low <= 0

    def fits(self, accepted: Sequence[int] | Numbers) -> bool:
        """Whether these masses may be accepted, by class: exactly, up to what `exact` says."""
        held = [int(a) for a in accepted]
        if not self.low <= sum(held) <= self.high:
            return False
        shares = [Fraction(a, int(t)) for a, t in zip(held, self.totals, strict=True)]
        return max(shares) - min(shares) <= self.within

    def fitting(self, accepted: Floats) -> Flags:
        """Which rows of masses by class, (n, c), may be accepted; in floats, generous to rounding.

        Masses are whole numbers that floats hold.
        """
        total = accepted.sum(axis=1)
        shares = accepted / self.totals
        spread = shares.max(axis=1) - shares.min(axis=1)
        limits = (total >= self.low) & (total <= self.high)
        return np.asarray(limits & (spread <= float(self.within) + 1e-12))
