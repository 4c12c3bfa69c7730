"""The model: instances, rules and what they do to a sample, exactly and in reduced coordinates."""

from mipmech.model.families import FAMILIES, example1
from mipmech.model.families import make as make_instance
from mipmech.model.fields import Smoothing
from mipmech.model.geometry import Geometry, reduce
from mipmech.model.grading import Recount, Side, recount
from mipmech.model.instance import Instance
from mipmech.model.known import Known
from mipmech.model.mechanism import Mechanism, from_reduced, to_reduced
from mipmech.model.population import Smoothed
from mipmech.model.thresholds import Densest, best_threshold, densest_threshold
from mipmech.model.units import Units

__all__ = [
    "FAMILIES", "Densest", "Geometry", "Instance", "Known", "Mechanism", "Recount", "Side",
    "Smoothed", "Smoothing", "Units", "best_threshold", "densest_threshold", "example1",
    "from_reduced", "make_instance", "recount", "reduce", "to_reduced",
]  # fmt: skip
