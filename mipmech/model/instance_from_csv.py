"""An instance file made from a CSV file: what `mipmech new` writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mipmech import files
from mipmech.errors import InputError
from mipmech.model.from_table import Choice
from mipmech.model.instance import Instance, parse, pretty
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
    refers : whether the numbers stay in the CSV file
    left_out : how many rows had gaps
    unused : columns that play no part
    warnings : sentences on what was probably not meant
    """

    instance: Instance
    content: dict[str, Any]
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
    single = {choice.ids, choice.cost, choice.weights, *instance.feature_names}
    unused = tuple(name for name in table.names if name and name not in single)
    said = list(_doubts(instance, choice.ids))
    if left_out:
        columns = listed([f"{clean(name)} has {n}" for name, n in gaps.items() if n])
        said.append(f"{count(left_out, 'row')} of {table.size:,} left out for gaps: {columns}")
    content = by_reference if refers else instance.to_dict()
    return InstanceFromCsv(instance, content, refers, left_out, unused, tuple(said))


def _doubts(instance: Instance, ids: Any) -> Iterator[str]:
    """What was probably not meant, in sentences."""
    if not instance.view.shows(instance.quality):
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
    if left_out:
        said.append(f"{count(left_out, 'row')} with gaps left out.")
    return " ".join(said)


def _by_reference(instance: Instance, table: CsvTable, choice: Choice) -> dict[str, Any]:
    content = {**instance.to_dict(), "agents": {"csv": table.path.name}}
    content["quality"] = {name: float(value) for name, value in choice.quality.items()}
    for field in ("cost", "weights", "ids"):
        column = getattr(choice, field)
        if isinstance(column, str):
            content[field] = {"column": column}
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
