"""The gallery: the best rule known on each instance, drawn on its agents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mipmech import files
from mipmech.errors import InputError
from mipmech.model.grading import Recount, recount
from mipmech.model.instance import Instance
from mipmech.model.mechanism import Mechanism
from mipmech.plots.rule import draw_rule
from mipmech.report.kit.drawing import Picture, Pictures
from mipmech.report.kit.svg import drawn
from mipmech.studies.comparison.results import Problem
from mipmech.text import THIN, clean, count, ends

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE = (4.2, 3.0)
MOST = 24
# More agents than this are drawn as an image inside the picture, or the page would grow too large.
MOST_MARKS = 1000


def gallery(
    problems: Sequence[Problem], folder: Path, prefix: str = "", required: bool = False
) -> Pictures:
    """Draw the best rules known; a faulty instance affects its own picture alone.

    required : whether rules must meet requirements
    """
    pictures, missing = [], []
    chosen = choose(problems)
    for number, problem in enumerate(chosen):
        try:
            pictures.append(_picture(problem, folder, f"{prefix}r{number}", required))
        except InputError as error:
            missing.append((problem.name, clean(error.message)))
        except Exception as error:  # an untrusted file must not stop the report
            missing.append((problem.name, f"cannot be drawn: {type(error).__name__}"))
    left_out = len(problems) - len(chosen)
    note = "With two dimensions seen, their plane; otherwise the line of scores, quality upwards."
    if left_out:
        note += f" {left_out} more instances are not drawn; all groups are represented."
    return Pictures(
        "gallery", "Gallery: the best rules known", pictures, "gallery",
        note if pictures else "There is nothing to draw.", missing=missing,
    )  # fmt: skip


def choose(problems: Iterable[Problem]) -> list[Problem]:
    """At most `MOST` problems, taken from the groups in turn, in their own order."""
    everything = list(problems)
    groups: dict[str, list[Problem]] = {}
    for problem in everything:
        groups.setdefault(problem.group, []).append(problem)
    rounds = max(map(len, groups.values()), default=0)
    turns = [group[i] for i in range(rounds) for group in groups.values() if i < len(group)]
    chosen = {problem.digest for problem in turns[:MOST]}
    return [problem for problem in everything if problem.digest in chosen]


def _picture(problem: Problem, folder: Path, key: str, required: bool) -> Picture:
    if problem.gain.infeasible:
        raise InputError("no rule meets the requirements")
    if problem.best is None:
        what = "meets the requirements" if required else "gains anything"
        raise InputError(f"no rule that {what} is known")
    instance = _load(problem, folder)
    try:
        rule = Mechanism.from_dict(problem.best, instance)
    except InputError as error:
        raise InputError(f"its best rule is faulty: {error}") from None
    found = recount(instance, rule)

    def draw(figure: Figure) -> None:
        draw_rule(figure, found)
        # What they say stands in the caption and in the key of the page.
        figure.legends.clear()
        for axes in figure.axes:
            axes.set_title("")
            for marks in axes.collections:
                marks.set_rasterized(instance.size > MOST_MARKS)

    caption = _caption(problem, found, required)
    alt = f"The best rule known on {problem.name}. {caption}"
    return Picture(problem.name, drawn(SIZE, draw, key, alt), caption, problem.group)


def _load(problem: Problem, folder: Path) -> Instance:
    """The copy of an instance; its untrusted name must not lead out of the folder."""
    try:
        path = files.beside(folder, problem.file)
    except InputError:
        raise InputError("its copy is missing from the folder, or its name leads outside") from None
    try:
        instance = Instance.load(path)
    except InputError as error:
        # Without the path, which a report must not reveal.
        raise InputError(
            f"its copy cannot be read: {error.field or 'it'} {error.message}"
        ) from None
    if instance.digest != problem.digest:
        raise InputError("its copy is not the instance that was asked about")
    return instance


def _caption(problem: Problem, found: Recount, required: bool) -> str:
    movers = found.covered[found.instance.weights[found.covered] > 0]
    seen = f"{count(problem.rank, 'dimension')} seen"
    gain = problem.gain
    if gain.upper is None:
        raise InputError("no rule meets the requirements")
    lower, upper = ends(float(found.gain) if gain.lower is None else gain.lower, gain.upper)
    most = f"is {lower}" if lower == upper else f"lies in [{lower}, {upper}]"
    who = f"{len(movers):,} of {count(found.instance.size, 'agent')} move, {seen}"
    rule = "rule"
    if required:
        rule, accepted = "rule that is allowed", 100 * float(found.accepted_share)
        who += f", {accepted:.1f}{THIN}% are accepted"
    return (
        f"{who}: mean quality {'rises' if found.gain >= 0 else 'falls'} by"
        f" {abs(float(found.gain)):.4g}; the greatest gain of any {rule} {most} ({gain.level})."
    )
