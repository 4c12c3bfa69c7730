"""A comparison read from a folder, fit to be shown: every number finite, every text harmless.

The folder may come from a stranger. `Comparison.load` sees to it that everything has its place;
here texts are seen to be texts and numbers numbers, so that nothing fails later, in a picture.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from mipmech.errors import InputError, shorten
from mipmech.report.writing import clean
from mipmech.studies.comparison.results import FILE, Bounds, Call, Comparison, Problem, Run

# Deeper than this, settings are shown as an ellipsis.
DEEPEST = 6
# Pictures fail with numbers near the largest float.
LARGEST = 1e100


def read(folder: Path) -> Comparison:
    """The comparison in a folder, checked."""
    file = folder / FILE
    try:
        return checked(Comparison.load(folder))
    except InputError as error:
        raise error.located(file) from None
    except RecursionError:
        raise InputError("is nested too deeply to be a comparison", file=file) from None
    except (LookupError, TypeError, ArithmeticError) as error:
        said = f"is not a whole comparison: {type(error).__name__} {error}; make it again"
        raise InputError(said, file=file) from None


def checked(found: Comparison) -> Comparison:
    """The same comparison, fit to be shown; raises `InputError`, naming the field, if it is not."""
    settings = plain(found.settings)
    oracles, fractions = settings.get("oracles"), settings.get("eta_fractions")
    if not isinstance(oracles, list) or not all(isinstance(name, str) for name in oracles):
        raise InputError("is not a list of names", field="settings.oracles")
    if not isinstance(fractions, list):
        raise InputError("is not a list of numbers", field="settings.eta_fractions")
    for fraction in fractions:
        check_number(fraction, "settings.eta_fractions")
    problems = tuple(_problem(problem, len(fractions)) for problem in found.problems)
    known = {problem.digest for problem in problems}
    if len(known) < len(problems):
        raise InputError("holds the same instance twice; keep one", field="problems")
    runs = tuple(checked_run(run, fractions) for run in found.runs)
    for run in runs:
        if run.instance not in known:
            raise InputError("names an instance that is not among the problems", field="runs")
    check_number(found.seconds, "seconds")
    return replace(
        found,
        problems=problems,
        runs=runs,
        settings=settings,
        made_by=plain(found.made_by),
        doubts=tuple(cleaned(doubt, "doubts") for doubt in found.doubts),
    )


def _problem(problem: Problem, questions: int) -> Problem:
    if len(problem.densities) != questions:
        raise InputError(
            f"has {len(problem.densities)} densities for {questions} values of η", field="problems"
        )
    for bounds in (problem.gain, *problem.densities):
        check_bounds(bounds)
    for size in (problem.agents, problem.rank):
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise InputError(f"has {shorten(size)} for a size", field="problems")
    if not isinstance(problem.digest, str) or not isinstance(problem.file, str):
        raise InputError("has a digest or a file that is no text", field="problems")
    return replace(
        problem, name=cleaned(problem.name, "problems"), group=cleaned(problem.group, "problems")
    )


def check_bounds(bounds: Bounds) -> None:
    """Refuse bounds that are none."""
    for value in (bounds.lower, bounds.upper, bounds.seconds):
        check_number(value, "problems")
    if not 0 <= bounds.lower <= bounds.upper:
        raise InputError(f"has bounds {bounds.lower} and {bounds.upper}", field="problems")
    if bounds.stated is not None:
        if not isinstance(bounds.stated, (list, tuple)) or len(bounds.stated) != 2:
            raise InputError(f"has {shorten(bounds.stated)} for what is stated", field="problems")
        for value in bounds.stated:
            check_number(value, "problems")
    if bounds.level not in ("proved", "attested", "stated"):
        raise InputError(f"has a bound of level {shorten(bounds.level)}", field="problems")


def checked_run(run: Run, fractions: list[float]) -> Run:
    """The same run, fit to be shown."""
    if run.seed is not None and (not isinstance(run.seed, int) or isinstance(run.seed, bool)):
        raise InputError(f"has {shorten(run.seed)} for a seed", field="runs")
    return replace(
        run,
        oracle=cleaned(run.oracle, "runs"),
        record=cleaned(run.record, "runs"),
        error=None if run.error is None else cleaned(run.error, "runs"),
        calls=tuple(_call(call, fractions) for call in run.calls),
    )


def _call(call: Call, fractions: list[float]) -> Call:
    if call.eta_fraction not in fractions:
        raise InputError(
            f"asks at η = {shorten(call.eta_fraction)}, which is no setting", field="runs"
        )
    numbers = [call.eta_fraction, call.eta, call.lower, call.seconds, call.gain, call.gain_two]
    numbers += [] if call.upper is None else [call.upper]
    for seconds, value, bound in call.trace:
        numbers += [seconds, value] if bound is None else [seconds, value, bound]
    for number in numbers:
        check_number(number, "runs")
    return replace(
        call,
        soft=call.soft is True,
        status=cleaned(call.status, "runs"),
        stop=cleaned(call.stop, "runs"),
    )


def check_number(value: object, field: str) -> None:
    """Refuse what is no number, or none that can be drawn."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"has {shorten(value)} where a number belongs", field=field)
    if not abs(value) <= LARGEST:  # nor NaN
        raise InputError(f"has {shorten(value)}, which nobody can have measured", field=field)


def cleaned(value: object, field: str) -> str:
    """A stranger's text, cleaned."""
    if not isinstance(value, str):
        raise InputError(f"has {shorten(value)} where a text belongs", field=field)
    return clean(value)


def plain(value: Any, depth: int = 0) -> Any:
    """The same value with all texts in it cleaned."""
    if isinstance(value, str):
        return clean(value) if value else value
    if depth > DEEPEST:
        return "…"
    if isinstance(value, dict):
        return {clean(str(key)): plain(entry, depth + 1) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry, depth + 1) for entry in value]
    return value
