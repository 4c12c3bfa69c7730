"""An instance file made from a CSV file: what `mipmech new` writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mipmech import files
from mipmech.errors import InputError
from mipmech.model.columns import Choice, complete
from mipmech.model.instance import Instance, parse, pretty
from mipmech.model.tables import CsvTable
from mipmech.text import clean, count


@dataclass(frozen=True, eq=False)
class Draft:
    """An instance, and the object that its file will hold.

    instance, content : the two
    refers : whether the numbers stay in the CSV file
    left_out : how many rows had gaps
    unused : columns that play no part
    """

    instance: Instance
    content: dict[str, Any]
    refers: bool
    left_out: int
    unused: tuple[str, ...]

    def save(self, file: Path) -> None:
        """Write the instance file; the CSV file stays as it is."""
        try:
            files.write(file, pretty(self.content).encode())
        except OSError as error:
            raise InputError(f"cannot be written: {files.reason(error)}", file=file) from None


def draft(
    table: CsvTable, choice: Choice, file: Path, *, name: str, drop_blank: bool = False
) -> Draft:
    """What this file should hold.

    The numbers stay in the CSV file if the instance file lies beside it and they can be read from
    it as they are: not if they are standardised, if rows were left out, or if its cells are
    separated by semicolons.
    """
    try:
        kept, left_out = complete(table, choice, drop_blank)
        source = _source(table, choice, left_out)
        instance = Instance.from_arrays(**choice.arguments(kept), name=name, source=source)
    except InputError as error:
        raise error.located(table.path) from None
    by_reference = _by_reference(instance, table, choice)
    refers = _says(by_reference, instance, file, table.path)
    single = {choice.ids, choice.cost, choice.weights, *instance.feature_names}
    unused = tuple(name for name in table.names if name and name not in single)
    content = by_reference if refers else instance.to_dict()
    return Draft(instance, content, refers, left_out, unused)


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
