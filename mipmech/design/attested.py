"""The proof that the engine `milp` leaves: whose word the bound is, and for which rates."""

from __future__ import annotations

from typing import Any

from mipmech.budget import Timer
from mipmech.design.facet_cover import FacetCover
from mipmech.design.gain_cover import GainCover
from mipmech.model.geometry import Geometry
from mipmech.solver import PROVING

# Any of both has `run`, `found`, `lower`, `upper`, `work` and `regions`.
Cover = GainCover | FacetCover


def cover_of(geometry: Geometry, gap: float, timer: Timer) -> Cover:
    """The search that fits the costs."""
    if geometry.norm == "l2":
        return GainCover(geometry, gap, timer)
    return FacetCover(geometry, gap, timer)


def proof_of(cover: Cover) -> dict[str, Any]:
    """The object in the certificate (`docs/proof-format.md`, section 7)."""
    tolerance = PROVING["mip_feasibility_tolerance"]
    said = f"norm cones, tolerances {tolerance:g}, margins widened (mipmech.oracles.milp)"
    return {
        "kind": "solver",
        "solver": solver_name(),
        "options": said,
        "cones_counted": cover.work["cones"],
        "models_solved": cover.work["models"],
        "regions": cover.regions(),
    }


def solver_name() -> str:
    """The solver that the bounds come from."""
    import highspy  # noqa: PLC0415  (only its version is wanted)

    return f"HiGHS {highspy.Highs().version()}"
