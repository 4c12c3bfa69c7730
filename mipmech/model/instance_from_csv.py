"""An instance file made from a CSV file: what `mipmech new` writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mipmech import files
from mipmech.errors import InputError
from mipmech.model.from_table import STANDARD, Choice
from mipmech.model.instance import Instance
from mipmech.model.instance_file import parse, pretty
from mipmech.model.tables import CsvTable
from mipmech.text import clean, count, listed

UNSEEN = (
    "nothing that the planner sees carries quality, so no rule gains anything; let the planner see"
    " columns that quality depends on, or give a coefficient to what is seen"
)


@dataclass(frozen=True, eq=False)
class InstanceFromCsv:
    """An instance, and the object that its file will hold.

    instance, content : the two
    cost : what a move costs, in words
    refers : whether the numbers stay in the CSV file
    left_out : how many rows had gaps
    unused : columns that play no part
    warnings : sentences on what was probably not meant
    """

    instance: Instance
    content: dict[str, Any]
    cost: str
    refers: bool
    left_out: int
    unused: tuple[str, ...]
    warnings: tuple[str, ...]

    def save(self, file: Path) -> None:
        """Write the instance file; the CSV file stays as it is."""
        files.write(file, pretty(self.content).encode())


def instance_from_csv(table: CsvTable, choice: Choice, file: Path, name: str) -> InstanceFromCsv:
    """What this file should hold.

    The numbers stay in the CSV file if the instance file lies beside it and they can be read from
    it as they are: not if they are standardised, if rows were left out, or if its cells are
    separated by semicolons.
    """
    try:
        gaps = {column: len(table.gaps([column])) for column in choice.used(table.names)}
        left_out = len(table.gaps(list(gaps)))
        source = _source(table, choice, left_out)
        instance = Instance.from_frame(table, **vars(choice), name=name, source=source)
    except InputError as error:
        raise error.located(table.path) from None
    by_reference = _by_reference(instance, table, choice)
    refers = _says(by_reference, instance, file, table.path)
    single = {choice.ids, choice.cost, choice.reach, choice.weights, *instance.feature_names}
    single |= set(choice.groupings())
    unused = tuple(name for name in table.names if name and name not in single)
    said = list(_doubts(instance, choice.ids))
    if left_out:
        columns = listed([f"{clean(name)} has {n}" for name, n in gaps.items() if n])
        said.append(f"{count(left_out, 'row')} of {table.size:,} left out for gaps: {columns}")
    content = by_reference if refers else instance.to_dict()
    seen = np.flatnonzero((instance.view.matrix != 0).any(axis=0))
    cost = cost_in_words(choice, [instance.feature_names[j] for j in seen])
    return InstanceFromCsv(instance, content, cost, refers, left_out, unused, tuple(said))


# What the norms make of moves in several features.
TOGETHER = {
    "l1": "; the costs of moves in several features add up",
    "linf": "; a move in several features costs as much as its dearest part",
}
MOST_PRICES = 6


def cost_in_words(choice: Choice, features: Sequence[str]) -> str:
    """What a move costs, or how far people go, in a sentence.

    >>> cost_in_words(Choice({}, cost=2.0, standardise=True), ["gpa"])
    'a move of 1 standard deviation in one feature costs 2'
    >>> cost_in_words(Choice({}, cost=2.0, effort={"gpa": 10}, norm="l1"), ["gpa", "sat"])
    'a move of 1 costs 20 in gpa, 2 in sat; the costs of moves in several features add up'
    >>> cost_in_words(Choice({}, reach="far", effort="standard"), ["gpa"])
    'people move in one feature by up to far standard deviations to pass (far is a column)'
    """
    spread = choice.standardise or choice.effort == STANDARD
    given = choice.cost if choice.reach is None else choice.reach
    named = clean(given) if isinstance(given, str) else ""
    prices = choice.effort if isinstance(choice.effort, Mapping) else None

    def figure(price: float) -> str:
        if isinstance(given, str):
            factor = price if choice.reach is None else 1 / price
            return named if factor == 1 else f"{factor:g} times {named}"
        value = float(given)  # type: ignore[arg-type]
        return f"{value * price if choice.reach is None else value / price:g}"

    if prices is None:
        unit = " standard deviation" if spread else ""
        said = f"a move of 1{unit} in one feature costs {figure(1)}"
        if choice.reach is not None:
            unit = unit and f"{unit}{'s' * (figure(1) != '1')}"
            said = f"people move in one feature by up to {figure(1)}{unit} to pass"
    else:
        shown = [f"{figure(prices.get(name, 1.0))} in {clean(name)}" for name in features]
        if len(shown) > MOST_PRICES:
            shown[MOST_PRICES - 1 :] = ["and so on"]
        said = f"a move of 1 costs {', '.join(shown)}"
        if choice.reach is not None:
            said = f"people move by up to {', '.join(shown)} to pass"
    column = f" ({named} is a column)" * bool(named)
    return said + column + TOGETHER.get(choice.norm, "")


def _doubts(instance: Instance, ids: Any) -> Iterator[str]:
    """What was probably not meant, in sentences."""
    # With a matrix, what the planner sees may carry quality that other features have.
    if not instance.costs.steepest_square(instance.view, instance.quality):
        yield UNSEEN
    for feature in np.flatnonzero(instance.agents.min(axis=0) == instance.agents.max(axis=0)):
        called = clean(instance.feature_names[feature])
        yield f"{called} is {instance.agents[0, feature]:g} for everyone; leave it out"
    if ids is not None and instance.ids is not None:
        repeated = instance.size - len(set(instance.ids))
        if repeated:
            yield f"{count(repeated, 'id')} repeat{'s' * (repeated == 1)} in {clean(ids)}"


def _source(table: CsvTable, choice: Choice, left_out: int) -> str:
    """How the instance was made, in words."""
    said = [f"Made from {clean(table.path.name)} by mipmech new."]
    if choice.standardise:
        said.append(
            "Features are in standard deviations from their means, and the cost is per standard"
            " deviation; 'units' leads back to the units of the table."
        )
    else:
        said.append("Features, quality and cost are in the units of the table.")
    if choice.effort == STANDARD:
        said[-1] = (
            "Features and quality are in the units of the table; prices are 1/standard deviation,"
            " so the cost is per standard deviation."
        )
    if left_out:
        said.append(f"{count(left_out, 'row')} with gaps left out.")
    return " ".join(said)


def _by_reference(instance: Instance, table: CsvTable, choice: Choice) -> dict[str, Any]:
    content = {**instance.to_dict(), "agents": {"csv": table.path.name}}
    content["quality"] = {name: float(value) for name, value in choice.quality.items()}
    if isinstance(choice.effort, Mapping) and "effort" in content:
        content["effort"] = {name: float(price) for name, price in choice.effort.items()}
    for field in ("cost", "reach", "weights", "ids"):
        column = getattr(choice, field)
        if isinstance(column, str):
            content[field] = {"column": column}
    if "groups" in content:
        content["groups"] = {name: {"column": name} for name in choice.groupings()}
    return content


def _says(content: dict[str, Any], instance: Instance, file: Path, data: Path) -> bool:
    """Whether the object, in this file, is read as the instance."""
    if data.resolve().parent != file.resolve().parent:
        return False
    try:
        again = parse(content, file)
    except InputError:
        return False
    return again.digest == instance.digest and again.ids == instance.ids
