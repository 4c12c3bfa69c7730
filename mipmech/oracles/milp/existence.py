"""Is there any rule that meets the requirements? Cones closed by counting, then by HiGHS.

A search over all directions for a rule that is allowed, whatever it gains. It ends with the first;
if all cones are closed without one, there is none (level "attested").
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mipmech.budget import Stop, Timer
from mipmech.model.costs.facets import facets_of
from mipmech.model.geometry import Geometry
from mipmech.model.grading import Recount
from mipmech.model.masses import masses
from mipmech.model.mechanism import Mechanism
from mipmech.model.requirements.feasible import best_feasible
from mipmech.oracles.milp.engine import COUNTING, TIED, Milp, Prover, worth_a_model
from mipmech.oracles.milp.search import Search
from mipmech.oracles.shared.facets import Part, facet_parts
from mipmech.oracles.shared.goals import Density
from mipmech.oracles.shared.slices import whole_sphere


@dataclass(frozen=True, eq=False)
class AnyRule(Density):
    """The density as a pretext: any rule that meets the requirements will do."""

    def enough(self, best: float) -> float:
        """Once there is a rule, everything is closed."""
        return best if best < 0 else math.inf

    def grade(self, direction: Mechanism) -> Recount | None:
        """The best threshold along a direction that is allowed."""
        demands = self.part.geometry.demands
        assert demands is not None
        return best_feasible(demands, direction)


@dataclass(frozen=True, eq=False)
class Existence:
    """What was found about whether any rule is allowed.

    found : a rule, if one was found
    infeasible : whether there is none
    """

    found: Recount | None
    infeasible: bool
    stop: Stop
    work: int
    models: int
    nodes: int


def existence(geometry: Geometry, timer: Timer, nodes: int = 0) -> Existence:
    """Look for any rule that is allowed; geometry has demands. nodes : used so far."""
    parts: list[Part] = [whole_sphere(geometry)]
    if geometry.norm != "l2":
        parts = [*facet_parts(geometry, facets_of(geometry.seen or geometry.instance))]
    allowed = timer.budget.nodes
    most = math.inf if allowed is None else max(0, allowed - nodes)
    searches: list[Search] = []
    stop = Stop.FINISHED
    for part in parts:
        goal = AnyRule(part, masses(geometry.instance.weights[part.agents]))
        search = Search(part, goal, timer)
        searches.append(search)
        prover = Prover(Milp(), timer.budget) if worth_a_model(part, goal) else None
        ended = search.run(prover, COUNTING, COUNTING, TIED, most)
        most -= search.nodes
        stop = ended if stop is Stop.FINISHED else stop
        if search.found is not None or timer.left == 0:
            break
    found = next((search.found for search in searches if search.found is not None), None)
    none = len(searches) == len(parts) and all(search.infeasible for search in searches)
    work, models = sum(s.work for s in searches), sum(s.models for s in searches)
    return Existence(found, none, stop, work, models, sum(s.nodes for s in searches))
