"""What is in an instance, and what the paper's closed-form rules would do on it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from mipmech.budget import Timer
from mipmech.design.caveats import caveats
from mipmech.design.worth import costs_to_dict
from mipmech.model.geometry import Geometry, geometry_of
from mipmech.model.grading import baseline
from mipmech.model.instance import Instance
from mipmech.model.mechanism import from_reduced
from mipmech.rationals import exact_sum, sqrt_bounds
from mipmech.theory.projection import ProjectionRule, gain_ceiling, projection_rule


@dataclass(frozen=True, eq=False, repr=False)
class Description:
    """An instance in figures.

    ceiling : no mechanism gains more than this
    best, grid : Theorem 2's rule over all thresholds and over its (corrected) grid; None if
        P w_f = 0 or, with ``complete`` false, if the time limit came first
    warnings : what to doubt (`caveats`), about the instance and its ``best`` rule
    """

    instance: Instance
    geometry: Geometry
    baseline: float
    ceiling: float
    best: ProjectionRule | None
    grid: ProjectionRule | None
    complete: bool
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Description({self.instance!r}, baseline={self.baseline:.6g}, best={self.best!r})"

    @property
    def quality_norm(self) -> float:
        """The rate of the steepest rule if everything were seen; ‖w_f‖ for the paper's costs."""
        instance = self.instance
        if instance.costs.plain:
            return float(np.linalg.norm(instance.quality))
        exact = instance.exact_quality
        return float(sqrt_bounds(instance.costs.respond(exact, exact).square)[0])

    @property
    def groups(self) -> dict[str, dict[str, Fraction]]:
        """The share of each group by weight, by grouping and label; exact."""
        weights = self.instance.weights
        total = exact_sum(weights)
        return {
            name: {label: exact_sum(weights[agents]) / total for label, agents in grouping.parts()}
            for name, grouping in self.instance.groups.items()
        }

    @property
    def seen_direction(self) -> tuple[float, ...] | None:
        """P w_f/‖P w_f‖ (for l1, linf: the steepest) in user's coordinates: Theorem 1's rule."""
        g = self.geometry
        return from_reduced(g, g.steepest, 0.0).weights if g.p_norm else None

    def to_dict(self) -> dict[str, Any]:
        """The object printed by ``mipmech show --json``."""
        instance, geometry = self.instance, self.geometry
        counts = instance.weights > 0
        reach, cost = instance.reach[counts], instance.cost[counts]
        direction = self.seen_direction
        groups = {
            name: {label: float(share) for label, share in shares.items()}
            for name, shares in self.groups.items()
        }
        return {
            "name": instance.name,
            "digest": instance.digest,
            "agents": instance.size,
            "features": list(instance.feature_names),
            "rank": geometry.rank,
            "quality": {
                "weights": instance.quality.tolist(),
                "offset": instance.quality_offset,
                "norm": self.quality_norm,
                "seen_norm": geometry.p_norm,
                "baseline": self.baseline,
            },
            "reach": {
                "least": float(reach.min()),
                "median": float(np.median(reach)),
                "greatest": float(reach.max()),
            },
            "costs": costs_to_dict(instance),
            **({"groups": groups} if groups else {}),
            "radius": geometry.radius * geometry.unit,
            "ceiling": self.ceiling,
            "theorem1": {
                "direction": None if direction is None else list(direction),
                "nobody_moves_below_norm": float(cost.min()),
                "everybody_unbounded_from_norm": float(cost.max()),
            },
            "theorem2": None if self.best is None else self.best.to_dict(),
            "theorem2_grid": None if self.grid is None else self.grid.to_dict(),
            "known": None if instance.known is None else instance.known.to_dict(),
            "warnings": list(self.warnings),
            "complete": self.complete,
        }


def describe(sample: Instance | Geometry | str | Path, timer: Timer | None = None) -> Description:
    """The figures of an instance, and what the paper's closed-form rules do on it.

    Parameters
    ----------
    sample : Instance, Geometry, str or Path
        The sample, or the file that holds it.
    timer : Timer, optional
        Once its time is over, later parts are left out.

    Examples
    --------
    >>> sample = Instance.from_arrays([[0.0], [0.5]], [1.0], visible=[0], cost=1.0)
    >>> round(float(describe(sample).best.recount.gain), 9)
    0.75
    """

    def late() -> bool:
        return timer is not None and timer.left == 0

    geometry = geometry_of(sample)
    instance = geometry.instance
    best = None if late() else projection_rule(instance)
    skipped = late()
    grid = None if skipped else projection_rule(instance, "grid")
    return Description(
        instance=instance, geometry=geometry, baseline=float(baseline(instance)),
        ceiling=gain_ceiling(instance), best=best, grid=grid, complete=not skipped,
        warnings=tuple(caveats(instance, None if best is None else best.recount)),
    )  # fmt: skip
