"""Requirements: what the planner demands of a rule.

`Requirements` is what a user gives, in a file or by name. On an instance it becomes `Demands`,
which tests graded rules in rationals and tells every search what it needs. A kind of requirement is
one file: about the direction (`signs`, `order`, by way of `directions`) or about who is accepted
(`accepted`, `parity`, by way of `acceptance`); `own` is for constraints that a user writes.
"""

from mipmech.model.requirements.demands import Demands, demands_of
from mipmech.model.requirements.kind import Failure
from mipmech.model.requirements.own import Own
from mipmech.model.requirements.required import Requirements

__all__ = ["Demands", "Failure", "Own", "Requirements", "demands_of"]
