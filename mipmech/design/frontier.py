"""The greatest gain as a requirement is tightened: for a range of capacities, or of disparities.

A rule that meets a limit also meets every looser one, and no rule gains more under a stricter one.
So the loosest limit is asked first, stricter ones are skipped where the rule found meets them
already, and what is found is handed on. Between the limits of two rows the greatest gain lies
between the lower bound of the stricter and the upper bound of the looser.

>>> from mipmech import Instance
>>> sample = Instance.from_arrays([[0.0], [0.4], [0.7]], [1.0], visible=[0], cost=1.0)
>>> found = frontier(sample, accepted=[0.2, 0.4, 0.7, 1.0])
>>> [round(float(row.bounds.lower), 6) for row in found.rows]
[0.0, 0.333333, 0.566667, 0.633333]
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from mipmech import files
from mipmech.budget import Budget, Stop, noting
from mipmech.design.certificate import DEFAULT_GAP, certify
from mipmech.design.gain_bounds import GainBounds
from mipmech.errors import InputError
from mipmech.frames import frame
from mipmech.model.geometry import Geometry, geometry_of
from mipmech.model.instance import Instance
from mipmech.model.requirements import Requirements, demands_of
from mipmech.model.requirements.required import RequirementsLike
from mipmech.model.tables import guarded
from mipmech.validation import listed, number
from mipmech.workers.executor import Executor

Over = Literal["accepted", "parity"]
# More rows than this nobody reads, and a typing error asks for.
MOST_ROWS = 1000


@dataclass(frozen=True, eq=False)
class FrontierRow:
    """The greatest gain under one limit.

    Attributes
    ----------
    limit : float
        The greatest share accepted, or how far apart shares of groups may be.
    bounds : GainBounds
    """

    limit: float
    bounds: GainBounds


@dataclass(frozen=True, eq=False, repr=False)
class GainFrontier:
    """The greatest gain for a range of limits.

    Attributes
    ----------
    instance : Instance
    over : {"accepted", "parity"}
        Which requirement is tightened.
    groups : str or None
        Of parity, which groups.
    requirements : Requirements
        What else is demanded in every row.
    rows : tuple of FrontierRow
        Those that are done, by limit, ascending.
    asked : int
        How many there are.
    stop : Stop
    seconds : float
    """

    instance: Instance
    over: Over
    groups: str | None
    requirements: Requirements
    rows: tuple[FrontierRow, ...]
    asked: int
    stop: Stop
    seconds: float

    def __repr__(self) -> str:
        head = f"GainFrontier({len(self.rows)} of {self.asked} rows over {self.over}"
        rows = [f"  {row.limit:g}: {row.bounds.in_words()}" for row in self.rows]
        return "\n".join([f"{head}; {self.stop.value})", *rows])

    @property
    def complete(self) -> bool:
        """Whether all rows are there, and none has a gap left open."""
        closed = all(row.bounds.status != "gap" for row in self.rows)
        return len(self.rows) == self.asked and closed

    def to_dict(self) -> dict[str, Any]:
        """The object printed by ``mipmech frontier --json``."""
        return {
            "name": self.instance.name,
            "digest": self.instance.digest,
            "over": self.over,
            "by": self.groups,
            "requirements": self.requirements.to_dict(),
            "rows": [{"limit": row.limit, **row.bounds.to_dict()} for row in self.rows],
            "asked": self.asked,
            "complete": self.complete,
            "stop": self.stop.value,
            "seconds": self.seconds,
        }

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """A heading, and a row of figures for each limit; shares of groups have a column each."""
        labels = [
            (name, label)
            for name, grouping in self.instance.groups.items()
            for label, _ in grouping.parts()
        ]
        heading = ["limit", "status", "lower", "upper", "level", "accepted"]
        heading += [f"{name}={label}" for name, label in labels] + ["rule"]
        rows = []
        for row in self.rows:
            found = row.bounds.to_dict()
            gain = found["gain"] or {"lower": None, "upper": None}
            line = [row.limit, found["status"], gain["lower"], gain["upper"], found["level"]]
            rates = [found["groups"].get(name, {}).get(label) for name, label in labels]
            rows.append([*line, found["accepted"], *rates, found["rule"]])
        return heading, rows

    def to_frame(self) -> Any:
        """The rows as a data frame of pandas, or polars."""
        return frame(*self.table())

    def save(self, path: str | Path) -> None:
        """Write the rows to a CSV file.

        Parameters
        ----------
        path : str or Path
            The file.
        """
        heading, rows = self.table()
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(map(guarded, heading))
        for *figures, rule in rows:
            shown = ["" if value is None else value for value in figures]
            writer.writerow([*shown, "" if rule is None else guarded(rule)])
        files.write(Path(path), text.getvalue().encode())

    def plot(self) -> Any:
        """A matplotlib figure of both bounds, and of who is accepted."""
        from mipmech.plots.frontier import frontier_picture  # noqa: PLC0415  (matplotlib is slow to import)

        return frontier_picture(self)


def frontier(
    sample: Instance | Geometry | str | Path,
    *,
    accepted: Sequence[float] | None = None,
    parity: Mapping[str, Any] | tuple[str, Sequence[float]] | None = None,
    require: RequirementsLike | None = None,
    gap: float = DEFAULT_GAP,
    budget: Budget | None = None,
    executor: Executor | None = None,
) -> GainFrontier:
    """The certified optimum for a range of capacities, or of differences between groups.

    Parameters
    ----------
    sample : Instance, Geometry, str or Path
        The sample, or its file.
    accepted : sequence of float, optional
        For each, the share accepted is at most this (and at least what `require` says).
    parity : mapping or pair, optional
        ``{"groups": name, "within": [t, …]}``, or the name and the list.
    require : Requirements, mapping, str or Path, optional
        What else is demanded, or its file.
    gap : float
        The relative gap at which each search stops.
    budget : Budget, optional
        Limits on time and threads; the searches share the time. The limit and Ctrl-C keep the rows
        that are done.
    executor : Executor, optional
        Its workers search in place of threads.
    """
    if (accepted is None) == (parity is None):
        said = "needs one range: give accepted=[…] or parity=(groups, […])"
        raise InputError(said, field="frontier")
    required = Requirements.of(require)
    over: Over = "parity" if accepted is None else "accepted"
    groups, given = (None, accepted) if accepted is not None else _of_parity(parity)
    limits = _limits(given, over)
    geometry = geometry_of(sample)
    settings = [_with_limit(required, over, groups, limit) for limit in limits]
    for setting in settings:  # what does not fit is refused before any work
        demands_of(geometry.instance, setting)
    timer = (budget or Budget()).start()
    done: list[FrontierRow] = []
    stop = Stop.FINISHED
    with timer.listening():
        for place in reversed(range(len(limits))):
            bounds = _handed_on(done[-1].bounds, settings[place]) if done else None
            if bounds is None:
                if timer.left == 0:
                    stop = Stop.INTERRUPTED if timer.interrupted else Stop.TIME
                    break
                number_of = f"row {len(limits) - place} of {len(limits)}"
                watch = noting(timer.budget.watch, number_of)
                limit = replace(timer.budget, seconds=timer.left / (place + 1), watch=watch)
                found = certify(
                    geometry, require=settings[place], gap=gap, budget=limit, executor=executor
                )
                if found.stop in (Stop.INTERRUPTED, Stop.LOST):
                    stop = found.stop
                    break
                bounds = GainBounds.of(found, settings[place])
            if done:
                bounds = bounds.stricter_than(done[-1].bounds)
            done.append(FrontierRow(limits[place], bounds))
    rows = _raised(done[::-1])
    return GainFrontier(
        geometry.instance, over, groups, required, rows, len(limits), stop, timer.seconds
    )


def _of_parity(given: Any) -> tuple[str, Any]:
    """The groups and the limits."""
    if isinstance(given, Mapping) and set(given) == {"groups", "within"}:
        return given["groups"], given["within"]
    if isinstance(given, Sequence) and not isinstance(given, str) and len(given) == 2:
        return given[0], given[1]
    said = 'is not a range; give (groups, [0, 0.1, …]), or {"groups": …, "within": […]}'
    raise InputError(said, field="parity")


def _limits(given: Any, over: Over) -> list[float]:
    """The limits, ascending and without repeats."""
    limits = sorted({number(value, over) for value in listed(given, over)})
    if not limits:
        raise InputError("is empty; give at least one share", field=over)
    if len(limits) > MOST_ROWS:
        said = f"has {len(limits):,} limits; give at most {MOST_ROWS:,}"
        raise InputError(said, field=over)
    return limits


def _with_limit(
    required: Requirements, over: Over, groups: str | None, limit: float
) -> Requirements:
    """The requirements with this limit; what they say of it otherwise is replaced."""
    if over == "parity":
        return required.updated(Requirements(parity={"groups": groups, "within": limit}))
    low = 0.0 if required.accepted is None else required.accepted.low
    if limit < low:
        said = f"has {limit:g}, below the least share {low:g} that is required; start higher"
        raise InputError(said, field=over)
    return required.updated(Requirements(accepted=[low, limit]))


def _handed_on(loose: GainBounds, required: Requirements) -> GainBounds | None:
    """What looser requirements say of these, if that settles them; else None."""
    if loose.infeasible:
        return replace(loose, requirements=required)
    if loose.status != "optimal" or loose.recount is None:
        return None
    demands = demands_of(loose.instance, required)
    if demands is not None and not demands.met(loose.recount):
        return None
    return replace(loose, requirements=required)


def _raised(rows: list[FrontierRow]) -> tuple[FrontierRow, ...]:
    """Rows by limit, ascending, with rules handed on to looser limits."""
    result: list[FrontierRow] = []
    for row in rows:
        bounds = row.bounds
        if result:
            bounds = bounds.looser_than(result[-1].bounds)
        result.append(replace(row, bounds=bounds))
    return tuple(result)
