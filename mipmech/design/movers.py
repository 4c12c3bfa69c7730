"""Who is accepted by a rule, who moves for it, and from where to where: a row for each agent."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np

from mipmech import files
from mipmech.model.edge_of_reach import movers
from mipmech.model.grading import Recount
from mipmech.model.tables import guarded
from mipmech.validation import Floats

# Features that were standardised do not come back to the last digit; these many do.
DIGITS = 12


def movers_of(found: Recount) -> tuple[list[str], list[list[Any]]]:
    """A heading, and a row for each agent of the sample, in its order.

    An agent is named by its id, or else by its number. Features are in the user's units.

    Parameters
    ----------
    found : Recount
        What the rule does.
    """
    instance = found.instance
    steps = _steps(found)
    moves = steps > 0
    after = found.line.moved(instance.agents, steps)
    heading = ["agent", "accepted before", "accepted after", "moves"]
    columns: list[Any] = [
        range(instance.size) if instance.ids is None else instance.ids,
        *(np.where(flags, "true", "false") for flags in (found.accepted & ~moves, found.accepted)),
        np.where(moves, "true", "false"),
    ]
    units = instance.units
    for j, name in enumerate(instance.feature_names):
        heading += [f"{name} from", f"{name} to"]
        centre, scale = (0.0, 1.0) if units is None else (units.centre[j], units.scale[j])
        for values in (instance.agents[:, j], after[:, j]):
            columns.append([f"{value:.{DIGITS}g}" for value in centre + scale * values])
    return heading, [list(row) for row in zip(*columns, strict=True)]


def _steps(found: Recount) -> Floats:
    """How much the score of each agent rises, in the units of the line; 0 for those who stay."""
    direction = found.direction
    steps, agents = np.zeros(found.instance.size), movers(found)
    level = float(direction.level(found.mechanism.threshold))
    steps[agents] = level - direction.scores[agents]
    return steps


def save_movers(found: Recount, path: str | Path) -> None:
    """Write the rows of `movers_of` to a CSV file.

    Parameters
    ----------
    found : Recount
        What the rule does.
    path : str or Path
        The file.
    """
    heading, rows = movers_of(found)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(guarded, heading))
    writer.writerows([guarded(row[0]), *row[1:]] for row in rows)
    files.write(Path(path), text.getvalue().encode())
