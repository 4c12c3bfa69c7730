"""Finds, and certifies, the acceptance rule that most improves true quality.

Agents respond strategically: they move to pass a threshold rule if the move costs less than passing
is worth. The planner sees only some features. Which rule raises mean true quality most?

>>> import mipmech
>>> sample = mipmech.make_instance("gaussian-mixture", agents=100, rank=2, seed=1)
>>> best = mipmech.certify(sample)
>>> best.status, best.level
('optimal', 'proved')

Grading is exact: the floats of an instance are read as the rationals that they are.

>>> type(mipmech.recount(sample, best.mechanism).gain).__name__
'Fraction'

The names here are those that most people need. `mipmech.model` holds the model with its reduced
coordinates, `mipmech.theory` the paper's statements, `mipmech.studies` batches.
"""

from mipmech import model, theory
from mipmech.budget import Budget
from mipmech.checker.verdict import Verdict
from mipmech.design.algorithm1 import Solution, solve
from mipmech.design.certificate import Certificate, certify, certify_density
from mipmech.design.checking import check
from mipmech.design.describe import describe
from mipmech.design.frontier import frontier
from mipmech.design.grade import grade
from mipmech.design.price import prices
from mipmech.errors import InputError
from mipmech.model.families import make as make_instance
from mipmech.model.grading import Recount, recount
from mipmech.model.instance import Instance
from mipmech.model.mechanism import Mechanism
from mipmech.model.requirements import Own, Requirements
from mipmech.model.thresholds import best_threshold
from mipmech.oracles.base import Answer, Oracle
from mipmech.oracles.call import ask
from mipmech.oracles.registry import register_oracle
from mipmech.studies.comparison.compare import compare
from mipmech.studies.comparison.results import Comparison
from mipmech.studies.learning.curve import learn
from mipmech.studies.learning.results import LearningCurve
from mipmech.version import __version__

__all__ = [
    "Answer",
    "Budget",
    "Certificate",
    "Comparison",
    "InputError",
    "Instance",
    "LearningCurve",
    "Mechanism",
    "Oracle",
    "Own",
    "Recount",
    "Requirements",
    "Solution",
    "Verdict",
    "__version__",
    "ask",
    "best_threshold",
    "certify",
    "certify_density",
    "check",
    "compare",
    "describe",
    "frontier",
    "grade",
    "learn",
    "make_instance",
    "model",
    "prices",
    "recount",
    "register_oracle",
    "solve",
    "theory",
]
