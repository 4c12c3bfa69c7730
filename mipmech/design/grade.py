"""Grade a user's rule exactly, and compare it with the best gain that is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from mipmech import files, untrusted, validation
from mipmech.checker.verdict import FORMAT, check
from mipmech.errors import InputError
from mipmech.model.edge_of_reach import movers, standing
from mipmech.model.grading import Recount, recount
from mipmech.model.instance import Instance
from mipmech.model.mechanism import Mechanism
from mipmech.model.requirements import Demands, Failure, Requirements, demands_of
from mipmech.model.requirements.feasible import best_feasible
from mipmech.model.requirements.required import RequirementsLike
from mipmech.model.thresholds import best_threshold
from mipmech.model.typed_rules import WrittenRule, in_known_units, written_rule
from mipmech.rationals import clamped, round_down, round_up
from mipmech.text import below
from mipmech.tolerances import LARGEST_CERTIFICATE, ROUNDING

# A threshold is shown with as few digits as keep the gain to within this share: a reader would not
# see the difference in a gain of six digits.
NEARLY = 1e-6
# Digits of the shortest threshold that is tried, and of a float.
FEWEST, MOST = 4, 17


@dataclass(frozen=True)
class Optimum:
    """The greatest gain of any rule lies in [lower, upper]; ``source`` says who says so."""

    lower: float
    upper: float
    source: str

    def to_dict(self) -> dict[str, Any]:
        """The interval, and whose it is."""
        return {"lower": self.lower, "upper": self.upper, "source": self.source}


@dataclass(frozen=True, eq=False, repr=False)
class Graded:
    """What a rule does, exactly.

    rule : as it was written
    recount : its outcome
    best : the same weights with the best threshold; None where no threshold gains
    optimum : what is known of the best rule of all, or of all that meet the requirements
    demands : what is demanded of rules; None for nothing
    """

    rule: WrittenRule
    recount: Recount
    best: tuple[WrittenRule, Recount] | None
    optimum: Optimum | None
    demands: Demands | None = None

    def __repr__(self) -> str:
        return f"Graded({self.recount!r})"

    @cached_property
    def failures(self) -> list[Failure]:
        """How the rule fails what is demanded; nothing if it does not."""
        return [] if self.demands is None else self.demands.failures(self.recount)

    @property
    def share(self) -> tuple[float, float] | None:
        """The gain as a share of the best, from and to; None without an optimum or a gain."""
        gain, optimum = self.recount.gain, self.optimum
        if (
            self.failures
            or optimum is None
            or gain <= 0
            or optimum.upper <= 0
            or not len(movers(self.recount))
        ):
            return None
        low = round_down(min(Fraction(1), gain / Fraction(optimum.upper)))
        high = 1.0 if optimum.lower <= gain else round_up(gain / Fraction(optimum.lower))
        return low, high

    @property
    def contradicted(self) -> bool:
        """Whether the rule gains more than the best is said to gain."""
        optimum = self.optimum
        # What a file states may be rounded to the nearest float.
        if optimum is None or self.failures:
            return False
        return self.recount.gain > Fraction(optimum.upper) * (1 + Fraction(ROUNDING))

    def to_dict(self) -> dict[str, Any]:
        """The object printed under ``--json``."""
        found = self.recount.to_dict()
        share = self.share
        return {
            "rule": self.rule.to_dict(),
            **found,
            **({} if self.demands is None else self._required()),
            "gain_exact": str(self.recount.gain),
            "baseline": float(self.recount.baseline),
            "moving_share": float(self.recount.share(movers(self.recount))),
            "on_threshold": standing(self.recount),
            "optimum": None if self.optimum is None else self.optimum.to_dict(),
            "share": None if share is None else {"lower": share[0], "upper": share[1]},
            "contradicted": self.contradicted,
            "best_threshold": None
            if self.best is None
            else {"threshold": self.best[0].threshold, "gain": float(self.best[1].gain)},
        }

    def _required(self) -> dict[str, Any]:
        assert self.demands is not None
        return {
            "requirements": self.demands.requirements.to_dict(),
            "met": not self.failures,
            "failures": [failure.to_dict() for failure in self.failures],
        }


def grade(
    sample: Instance,
    rule: WrittenRule | Mechanism | Mapping[str, Any],
    threshold: float | None = None,
    optimum: Optimum | None = None,
    require: RequirementsLike | None = None,
) -> Graded:
    """Grade a rule of your own exactly, and compare it with the best gain that is known.

    Parameters
    ----------
    sample : Instance
        The sample.
    rule : mapping or Mechanism
        Weights by feature, in the units in which the data came (`units` of the sample); or an
        object with "weights" and "threshold", such as a result's ``to_dict()``.
    threshold : float, optional
        The score to reach, in the same units; instead of the one in the object.
    optimum : Optimum, optional
        What is known of the best gain; by default what the instance's file says.
    require : Requirements, mapping, str or Path, optional
        What is demanded of rules: whether this one meets it, and by how much it fails.

    Examples
    --------
    >>> sample = Instance.from_arrays(
    ...     [[3.0, 500.0], [2.5, 600.0]], {"gpa": 1.0}, visible=["gpa", "sat"],
    ...     features=["gpa", "sat"], cost=2.0,
    ... )
    >>> float(grade(sample, {"gpa": 1}, threshold=3.0).recount.gain)
    0.25
    """
    if not isinstance(rule, WrittenRule):
        given: object = rule.to_dict() if isinstance(rule, Mechanism) else rule
        if not isinstance(given, Mapping):
            said = f"is {validation.kind(given)}; give weights by feature, or a mechanism"
            raise InputError(said, field="rule")
        rule = written_rule(sample, given, threshold)
    demands = demands_of(sample, Requirements.of(require))
    if optimum is None and sample.known is not None and demands is None:
        known = sample.known
        optimum = Optimum(known.lower, known.upper, f"the file: {known.how}")
    found = recount(sample, rule.mechanism)
    return Graded(rule, found, _best(sample, rule, found, demands), optimum, demands)


def _best(
    instance: Instance, rule: WrittenRule, found: Recount, demands: Demands | None
) -> tuple[WrittenRule, Recount] | None:
    """The best threshold for these weights, in as few digits as keep its gain."""
    if found.line.rise <= 0:
        return None
    if demands is None:
        best = best_threshold(found.instance, rule.mechanism)
    else:
        allowed = best_feasible(demands, rule.mechanism)
        # Other weights are another rule.
        if allowed is None or allowed.mechanism.weights != rule.mechanism.weights:
            return None
        best = allowed
    met = demands is None or demands.met(found)
    if met and best.gain * (1 - Fraction(NEARLY)) <= found.gain:
        return rule, found
    # Very long weights come back as another multiple of themselves.
    j = found.line.columns[0]
    multiple = Fraction(rule.mechanism.weights[j]) / Fraction(best.mechanism.weights[j])
    level = clamped(Fraction(best.mechanism.threshold) * multiple)
    exact = in_known_units(instance, rule.mechanism.at(level))
    enough = best.gain * (1 - Fraction(NEARLY))
    for digits in range(FEWEST, MOST + 1):
        # Rounded down: up would be beyond the reach of whoever decides where it is best.
        shown = float(below(Fraction(exact.threshold), digits))
        typed = written_rule(instance, dict(rule.weights), shown)
        graded = recount(found.instance, typed.mechanism)
        if graded.gain >= enough and (demands is None or demands.met(graded)):
            return typed, graded
    return exact, recount(found.instance, exact.mechanism)


def is_certificate(value: Mapping[str, Any]) -> bool:
    """Whether the object that holds a rule is a certificate of the greatest gain of all rules."""
    claim = value.get("claim")
    if value.get("format") != FORMAT or not isinstance(claim, dict):
        return False
    return claim.get("kind") == "gain" and "requirements" not in claim


def certified_optimum(
    file: Path,
    instance: Instance,
    seconds: float,
    watch: Callable[[str], None] | None = None,
    require: Requirements | None = None,
) -> Optimum:
    """What a certificate of this instance proves about the greatest gain, after checking it."""
    try:
        content = untrusted.json_object(file, LARGEST_CERTIFICATE)
        kind = content["claim"]["kind"]
    except OSError as error:
        said = f"cannot be read: {files.reason(error)}"
        raise InputError(said, file=file, field="certified") from None
    except InputError as error:
        said = error.message if error.field is None else f"{error.field!r} {error.message}"
        said = f"is not a certificate ({said})"
        raise InputError(said, file=file, field="certified") from None
    except (LookupError, TypeError):
        raise InputError("is not a certificate", file=file, field="certified") from None
    if kind != "gain":
        said = "is not about the greatest gain; give one that mipmech certify made"
        raise InputError(said, file=file, field="certified")
    demanded = content["claim"].get("requirements")
    if demanded is not None and (require is None or demanded != require.to_dict()):
        said = "is about rules that meet requirements; give the same ones, or one without"
        raise InputError(said, file=file, field="certified")
    verdict = check(content, instance, watch, seconds)
    if not verdict.finished:
        said = f"was not checked to the end ({verdict.reason}); give more time by --seconds"
        raise InputError(said, file=file, field="certified")
    if not verdict.accepted or verdict.lower is None or verdict.upper is None:
        raise InputError(f"is rejected: {verdict.reason}", file=file, field="certified")
    return Optimum(float(verdict.lower), verdict.upper, f"{file}, {verdict.level}")
