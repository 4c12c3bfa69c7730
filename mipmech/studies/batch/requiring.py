"""Requirements as jobs carry them: plain data that travels, is recorded, and enters a job's id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mipmech.errors import InputError
from mipmech.model.geometry import Geometry
from mipmech.model.grading import Recount
from mipmech.model.instance import Instance
from mipmech.model.requirements import Requirements, demands_of
from mipmech.model.requirements.required import RequirementsLike

# The option of a job that holds them; jobs without requirements have none.
OPTION = "requirements"


class RequirementsMissed(RuntimeError):
    """What was asked returned a rule that is not allowed: it does not know requirements."""


def plain(given: RequirementsLike | None) -> dict[str, Any] | None:
    """Requirements as the object of a file; None if nothing is demanded.

    Constraints of the user's own are Python, which no record can hold: they are refused.
    """
    requirements = Requirements.of(given)
    if requirements.own:
        said = "has constraints of your own, which records cannot hold; leave them to solve and"
        raise InputError(f"{said} certify, and give the others here", field="require")
    return requirements.to_dict() if requirements else None


def with_requirements(
    options: Mapping[str, Any], requirements: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Options of a job that must meet these requirements."""
    return {**options, **({} if requirements is None else {OPTION: dict(requirements)})}


def pairs_on(sample: Instance, requirements: Mapping[str, Any]) -> list[list[int]]:
    """Which weights of an instance are compared, by place; the check that all of it makes sense.

    Names of features are no part of an instance's digest, so the id of a job needs these.
    """
    demands = demands_of(sample, Requirements.from_dict(requirements))
    cone = None if demands is None else demands.cone
    return [] if cone is None else [list(pair) for pair in cone.pairs]


def missed(geometry: Geometry, found: Recount | None) -> str | None:
    """How a rule fails what is demanded, in words; None if it does not, or if there is none."""
    if geometry.demands is None or found is None:
        return None
    failures = geometry.demands.failures(found)
    return "; ".join(failure.what for failure in failures) if failures else None


def check_met(geometry: Geometry, found: Recount | None, who: str) -> None:
    """Refuse to record a rule that is not allowed as one that is."""
    why = missed(geometry, found)
    if why is not None:
        raise RequirementsMissed(f"the rule of {who} does not meet the requirements: {why}")
