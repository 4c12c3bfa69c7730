"""What is known of the greatest gain under some requirements, and what that says of others.

A rule that meets requirements also meets looser ones, so it may be handed on; and no rule gains
more under stricter requirements than under these, so an upper bound may be handed on as well, in
the other direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from mipmech.design.certificate import NOTHING, Certificate, Status
from mipmech.design.printed import PrintedRule, printed
from mipmech.model.grading import Recount
from mipmech.model.instance import Instance
from mipmech.model.requirements import Demands, Requirements, demands_of
from mipmech.oracles.base import Level
from mipmech.rationals import relative_gap, round_down
from mipmech.theory.projection import gain_ceiling


@dataclass(frozen=True, eq=False, repr=False)
class GainBounds:
    """Certified bounds of the greatest gain under some requirements, and a rule.

    Attributes
    ----------
    instance : Instance
    requirements : Requirements
        What rules must meet; possibly nothing.
    recount : Recount or None
        The exact outcome of the best rule known; None if none is known that gains, or meets them.
    lower : Fraction or None
        The greatest gain is at least this; None if no rule is known that meets the requirements.
    upper : float or None
        It is at most this; None if no rule meets the requirements.
    level : {"proved", "attested"}
        Of the upper bound.
    wanted : float
        The relative gap asked for.
    """

    instance: Instance
    requirements: Requirements
    recount: Recount | None
    lower: Fraction | None
    upper: float | None
    level: Level
    wanted: float

    @classmethod
    def of(cls, found: Certificate, required: Requirements) -> GainBounds:
        """What a certificate says.

        Parameters
        ----------
        found : Certificate
            The certificate.
        required : Requirements
            What it was made for.
        """
        return cls(
            found.instance, required, found.recount,
            None if found.infeasible or found.unknown else found.lower,
            None if found.infeasible else found.upper, found.level, found.wanted,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"GainBounds({self.status}, {self.in_words()}; {self.requirements})"

    def in_words(self) -> str:
        """Both bounds."""
        if self.infeasible:
            return "no rule"
        least = "?" if self.lower is None else f"{round_down(self.lower):.6g}"
        return f"gain in [{least}, {self.upper:.6g}]"

    @property
    def infeasible(self) -> bool:
        """Whether no rule meets the requirements."""
        return self.upper is None

    @property
    def status(self) -> Status:
        """As that of a certificate."""
        if self.upper is None:
            return "infeasible"
        if self.lower is None or self.lower < 0:
            return "gap"
        met = relative_gap(self.lower, self.upper) <= self.wanted
        return "optimal" if met or self._nothing else "gap"

    @property
    def _nothing(self) -> bool:
        """Whether requirements leave nothing to gain, but for rounding."""
        most = NOTHING * gain_ceiling(self.instance)
        return bool(self.requirements) and self.upper is not None and self.upper <= most

    @cached_property
    def demands(self) -> Demands | None:
        """The requirements on the instance."""
        return demands_of(self.instance, self.requirements)

    @cached_property
    def printed(self) -> PrintedRule | None:
        """The rule in few digits."""
        return None if self.recount is None else printed(self.recount, demands=self.demands)

    @property
    def accepted(self) -> Fraction | None:
        """The share accepted by the rule; None without one."""
        return None if self.recount is None else self.recount.accepted_share

    @cached_property
    def rates(self) -> Mapping[str, Mapping[str, Fraction]]:
        """The accepted share of each group, by grouping and label; empty without a rule."""
        if self.recount is None:
            return {}
        return {name: self.recount.accepted_by(name) for name in self.instance.groups}

    def looser_than(self, strict: GainBounds) -> GainBounds:
        """The same with what follows from stricter requirements: their rule will do here.

        Parameters
        ----------
        strict : GainBounds
            Of requirements that imply these.
        """
        better = strict.lower is not None and (self.lower is None or strict.lower > self.lower)
        if strict.recount is None or not better:
            return self
        return replace(self, recount=strict.recount, lower=strict.lower)

    def stricter_than(self, loose: GainBounds) -> GainBounds:
        """The same with what follows from looser requirements: no rule gains more here than there.

        Parameters
        ----------
        loose : GainBounds
            Of requirements that these imply.
        """
        if self.infeasible:
            return self
        if loose.upper is None:  # not even those can be met
            return replace(self, recount=None, lower=None, upper=None, level=loose.level)
        assert self.upper is not None
        if loose.upper >= self.upper:
            return self
        return replace(self, upper=loose.upper, level=loose.level)

    def to_dict(self) -> dict[str, Any]:
        """The figures; bounds are rounded outward."""
        gain = None
        if not self.infeasible:
            least = None if self.lower is None else round_down(self.lower)
            gain = {"lower": least, "upper": self.upper}
        return {
            "status": self.status,
            "gain": gain,
            "level": self.level,
            "accepted": None if self.accepted is None else float(self.accepted),
            "groups": {
                name: {label: float(rate) for label, rate in rates.items()}
                for name, rates in self.rates.items()
            },
            "mechanism": None if self.recount is None else self.recount.mechanism.to_dict(),
            "rule": None if self.printed is None else str(self.printed),
        }
