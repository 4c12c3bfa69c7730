"""Requirements on one instance: the exact test of a rule, and what searches need to know."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from mipmech.model.grading import Recount
from mipmech.model.instance import Instance
from mipmech.model.mechanism import Mechanism
from mipmech.model.requirements.acceptance import Shares
from mipmech.model.requirements.directions import DirectionCone, places_of, weights_of
from mipmech.model.requirements.kind import Failure
from mipmech.model.requirements.required import Requirements
from mipmech.model.view import from_visible


@dataclass(frozen=True, eq=False)
class Demands:
    """What is demanded of rules on an instance; make it with `demands_of`.

    Attributes
    ----------
    instance : Instance
    requirements : Requirements
    cone : DirectionCone or None
        The directions that are allowed; None if all are.
    shares : Shares or None
        Limits on who is accepted; None if there are none.
    """

    instance: Instance
    requirements: Requirements
    cone: DirectionCone | None
    shares: Shares | None

    def failures(self, found: Recount) -> list[Failure]:
        """How a rule fails, in rationals; nothing if it meets all requirements.

        Parameters
        ----------
        found : Recount
            The exact outcome of the rule.
        """
        missed = [failure for kind in self.requirements for failure in kind.failures(found)]
        for own in self.requirements.own:
            if not own.holds(found):
                missed.append(Failure("own", Fraction(0), f"{own.name} does not hold"))
        return missed

    def met(self, found: Recount) -> bool:
        """Whether a rule meets all requirements, exactly.

        Parameters
        ----------
        found : Recount
            The exact outcome of the rule.
        """
        return not self.failures(found)

    def seen(self, instance: Instance) -> Instance:
        """The instance without the features whose weights must be 0, if the planner sees features.

        Parameters
        ----------
        instance : Instance
            The sample.
        """
        columns = instance.view.columns
        if self.cone is None or columns is None:
            return instance
        kept = [column for column in columns if column not in self.cone.zeros]
        return replace(instance, view=from_visible(kept, instance.width))

    def facts(self, found: Recount | None) -> dict[str, Any]:
        """What is demanded, and the figures of a rule that it speaks of, for ``--json``.

        Parameters
        ----------
        found : Recount or None
            The exact outcome of the rule, if there is one.
        """
        result: dict[str, Any] = {"requirements": self.requirements.to_dict()}
        if self.requirements.own:
            result["own"] = [own.name for own in self.requirements.own]
        if found is not None:
            result["accepted"] = float(found.accepted_share)
            parity = self.requirements.parity
            if parity is not None:
                rates = found.accepted_by(parity.groups)
                result["rates"] = {label: float(rate) for label, rate in rates.items()}
        return result

    def repaired(self, mechanism: Mechanism) -> Mechanism | None:
        """The rule with its weights put into the cone; None if none is left but 0.

        Parameters
        ----------
        mechanism : Mechanism
            A rule whose weights may be a little outside.
        """
        if self.cone is None:
            return mechanism
        columns = self.instance.view.columns is not None
        weights = mechanism.weights if columns else mechanism.view_weights
        assert weights is not None
        if self.cone.allows(weights_of(self.instance, mechanism)):
            return mechanism
        inside = self.cone.repaired(weights)
        return self._with_weights(mechanism, inside)

    def rims(self, mechanism: Mechanism) -> list[Mechanism]:
        """Rules near a rule in the cone, each on one more of the cone's sides.

        Parameters
        ----------
        mechanism : Mechanism
            A rule in the cone.
        """
        if self.cone is None:
            return []
        columns = self.instance.view.columns is not None
        weights = mechanism.weights if columns else mechanism.view_weights
        assert weights is not None
        found = [self._with_weights(mechanism, w) for w in self.cone.tightened(weights)]
        return [rim for rim in found if rim is not None]

    def _with_weights(self, mechanism: Mechanism, weights: list[float]) -> Mechanism | None:
        if not any(weights):
            return None
        if self.instance.view.columns is not None:
            return replace(mechanism, weights=tuple(weights))
        return Mechanism.on_view(self.instance, weights, mechanism.threshold)


def demands_of(instance: Instance, requirements: Requirements | None) -> Demands | None:
    """Requirements resolved against an instance; None if nothing is demanded.

    Parameters
    ----------
    instance : Instance
        The sample.
    requirements : Requirements or None
        What is demanded of rules.

    Raises
    ------
    InputError
        If they name features or groups that the instance does not have, or contradict each other.
    """
    if not requirements:
        return None
    for kind in requirements:
        kind.check(instance)
    pairs = list(dict.fromkeys(pair for kind in requirements for pair in kind.pairs(instance)))
    cone = DirectionCone(places_of(instance), tuple(pairs)) if pairs else None
    if cone is not None:
        cone.check()
    shares = Shares.of(instance, requirements.accepted, requirements.parity)
    return Demands(instance, requirements, cone, shares)
