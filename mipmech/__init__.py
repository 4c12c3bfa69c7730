"""Evaluation mechanisms for strategic agents.

A planner accepts agents whose score on *visible* features reaches a threshold; agents move to pass
if the move costs less than passing is worth. Which rule raises their true quality most?

>>> import mipmech
>>> sample = mipmech.make_instance("gaussian-mixture", agents=100, rank=2, seed=1)
>>> rule = mipmech.theory.projection_rule(sample)
>>> float(rule.recount.gain) <= mipmech.theory.gain_ceiling(sample)
True

Grading is exact: the floats of an instance are read as the rationals that they are.

>>> found = mipmech.recount(sample, rule.recount.mechanism)
>>> type(found.gain).__name__
'Fraction'
"""

from mipmech import theory
from mipmech.budget import Budget, Event, Stop
from mipmech.checker.check import Verdict, check
from mipmech.design.algorithm1 import Guarantee, Solution, Step, solve
from mipmech.design.certificate import Certificate, certify, certify_density
from mipmech.design.describe import Description, describe
from mipmech.errors import InputError
from mipmech.model.families import FAMILIES, example1
from mipmech.model.families import make as make_instance
from mipmech.model.geometry import Geometry, reduce
from mipmech.model.grading import Recount, Side, recount
from mipmech.model.instance import Instance, Smoothing
from mipmech.model.known import Known
from mipmech.model.mechanism import (
    LinearResponse,
    Mechanism,
    Outcome,
    best_response,
    density,
    evaluate,
    from_reduced,
    gain,
    linear_response,
    soft_density,
    to_reduced,
)
from mipmech.model.population import Smoothed
from mipmech.model.thresholds import Densest, best_threshold, densest_threshold
from mipmech.oracles.base import Answer, oracle, oracle_named
from mipmech.studies.comparison.compare import compare
from mipmech.studies.comparison.results import Comparison
from mipmech.studies.learning.curve import LearningCurve, learn
from mipmech.version import __version__

__all__ = [
    "FAMILIES",
    "Answer",
    "Budget",
    "Certificate",
    "Comparison",
    "Densest",
    "Description",
    "Event",
    "Geometry",
    "Guarantee",
    "InputError",
    "Instance",
    "Known",
    "LearningCurve",
    "LinearResponse",
    "Mechanism",
    "Outcome",
    "Recount",
    "Side",
    "Smoothed",
    "Smoothing",
    "Solution",
    "Step",
    "Stop",
    "Verdict",
    "__version__",
    "best_response",
    "best_threshold",
    "certify",
    "certify_density",
    "check",
    "compare",
    "densest_threshold",
    "density",
    "describe",
    "evaluate",
    "example1",
    "from_reduced",
    "gain",
    "learn",
    "linear_response",
    "make_instance",
    "oracle",
    "oracle_named",
    "recount",
    "reduce",
    "soft_density",
    "solve",
    "theory",
    "to_reduced",
]
