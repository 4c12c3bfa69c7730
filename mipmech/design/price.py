"""What requirements cost: the greatest gain with all of them, without each, and without any.

>>> from mipmech import Instance
>>> sample = Instance.from_arrays([[0.0], [0.4], [0.7]], [1.0], visible=[0], cost=1.0)
>>> found = prices(sample, {"nonnegative": "all", "accepted": [0.0, 0.4]})
>>> [list(row.dropped) for row in found.rows]
[[], ['nonnegative'], ['accepted'], ['nonnegative', 'accepted']]
>>> [round(cost, 6) for cost in found.price(found.rows[1])]
[0.0, 0.0]
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from mipmech.budget import Budget, Stop, noting
from mipmech.design.certificate import DEFAULT_GAP, Certificate, certify
from mipmech.design.gain_bounds import GainBounds
from mipmech.errors import InputError
from mipmech.frames import frame
from mipmech.model.geometry import Geometry, geometry_of
from mipmech.model.instance import Instance
from mipmech.model.requirements.required import Requirements, RequirementsLike
from mipmech.rationals import round_down, round_up
from mipmech.workers.executor import Executor


@dataclass(frozen=True, eq=False)
class PricedRule:
    """The greatest gain once some requirements are dropped.

    Attributes
    ----------
    dropped : tuple of str
        The fields that are dropped.
    bounds : GainBounds
        What is known of the greatest gain without them.
    """

    dropped: tuple[str, ...]
    bounds: GainBounds


@dataclass(frozen=True, eq=False, repr=False)
class Prices:
    """What requirements cost, row by row.

    Attributes
    ----------
    instance : Instance
    requirements : Requirements
    rows : tuple of PricedRule
        With all requirements, without each of them, and without any; those that are done.
    asked : int
        How many there are.
    stop : Stop
    seconds : float
    """

    instance: Instance
    requirements: Requirements
    rows: tuple[PricedRule, ...]
    asked: int
    stop: Stop
    seconds: float

    def __repr__(self) -> str:
        lines = [f"Prices({len(self.rows)} of {self.asked} rows; {self.stop.value})"]
        for row in self.rows:
            price = self.price(row)
            said = "" if not row.dropped or price is None else f", {price[0]:.4g} to {price[1]:.4g}"
            lines.append(f"  {self.name(row)}: {row.bounds.in_words()}{said}")
        return "\n".join(lines)

    @property
    def complete(self) -> bool:
        """Whether all rows are there, and none has a gap left open."""
        closed = all(row.bounds.status != "gap" for row in self.rows)
        return len(self.rows) == self.asked and closed

    @property
    def required(self) -> GainBounds | None:
        """With all requirements."""
        return self.rows[0].bounds if self.rows else None

    @property
    def free(self) -> GainBounds | None:
        """Without any; None if that was not done."""
        rows = [row for row in self.rows if set(row.dropped) == set(self.requirements.given)]
        return rows[0].bounds if rows else None

    def name(self, row: PricedRule) -> str:
        """A row in words.

        Parameters
        ----------
        row : PricedRule
            One of the rows.
        """
        if not row.dropped:
            return "all required"
        if set(row.dropped) == set(self.requirements.given):
            return "none required"
        return f"without {', '.join(row.dropped)}"

    def price(self, row: PricedRule) -> tuple[float, float] | None:
        """How much less can be gained with all requirements than in a row: at least, at most.

        None if no rule that meets all of them is known, or none that meets those of the row.

        Parameters
        ----------
        row : PricedRule
            One of the rows.
        """
        mine, other = self.required, row.bounds
        if mine is None or mine.lower is None or mine.upper is None:
            return None
        if other.lower is None or other.upper is None:
            return None
        if not row.dropped:
            return 0.0, 0.0
        least = max(Fraction(0), other.lower - Fraction(mine.upper))
        most = max(Fraction(0), Fraction(other.upper) - mine.lower)
        return round_down(least), round_up(most)

    def to_dict(self) -> dict[str, Any]:
        """The object under ``prices`` of ``mipmech certify --price --json``."""
        rows = []
        for row in self.rows:
            price = self.price(row)
            shown = None if price is None else {"lower": price[0], "upper": price[1]}
            rows.append({"dropped": list(row.dropped), "price": shown, **row.bounds.to_dict()})
        return {
            "requirements": self.requirements.to_dict(),
            "rows": rows,
            "asked": self.asked,
            "complete": self.complete,
            "stop": self.stop.value,
            "seconds": self.seconds,
        }

    def to_frame(self) -> Any:
        """A row for each set of requirements, as a data frame of pandas, or polars."""
        names = ("dropped", "status", "lower", "upper", "price_lower", "price_upper", "accepted")
        rows = []
        for row in self.rows:
            found, price = row.bounds.to_dict(), self.price(row) or (None, None)
            gain = found["gain"] or {"lower": None, "upper": None}
            ends = (gain["lower"], gain["upper"], *price)
            rows.append((",".join(row.dropped), found["status"], *ends, found["accepted"]))
        return frame(names, rows)

    def plot(self) -> Any:
        """A matplotlib figure: both rules, and the gains side by side."""
        from mipmech.plots.price import prices_picture  # noqa: PLC0415  (matplotlib is slow to import)

        return prices_picture(self)


def prices(
    sample: Instance | Geometry | str | Path,
    require: RequirementsLike,
    *,
    gap: float = DEFAULT_GAP,
    budget: Budget | None = None,
    executor: Executor | None = None,
    known: Certificate | None = None,
) -> Prices:
    """What requirements cost: the certified optimum with all, without each, and without any.

    Parameters
    ----------
    sample : Instance, Geometry, str or Path
        The sample, or its file.
    require : Requirements, mapping, str or Path
        What is demanded of rules, or its file.
    gap : float
        The relative gap at which each search stops.
    budget : Budget, optional
        Limits on time and threads; the searches share the time. The limit and Ctrl-C keep the rows
        that are done.
    executor : Executor, optional
        Its workers search in place of threads.
    known : Certificate, optional
        With all requirements, if it is there already.
    """
    required = Requirements.of(require)
    if not required:
        said = "demands nothing, so it costs nothing; give accepted, nonnegative or another one"
        raise InputError(said, field="require")
    geometry = geometry_of(sample)
    free = replace(geometry, demands=None)
    drops = dropped_sets(required)
    timer = (budget or Budget()).start()
    rows: list[PricedRule] = []
    stop = Stop.FINISHED
    with timer.listening():
        for place, dropped in enumerate(drops):
            rest = required.without(*dropped)
            found = known if not dropped else None
            if found is None:
                if timer.left == 0:
                    stop = Stop.INTERRUPTED if timer.interrupted else Stop.TIME
                    break
                seconds = timer.left / (len(drops) - place)
                watch = noting(timer.budget.watch, f"search {place + 1} of {len(drops)}")
                limit = replace(timer.budget, seconds=seconds, watch=watch)
                found = certify(
                    free, require=rest or None, gap=gap, budget=limit, executor=executor
                )
                if found.stop in (Stop.INTERRUPTED, Stop.LOST):
                    stop = found.stop
            if stop is Stop.FINISHED or not rows:
                rows.append(PricedRule(dropped, GainBounds.of(found, rest)))
            if stop is not Stop.FINISHED:
                break
    return Prices(
        geometry.instance, required, _consistent(rows), len(drops), stop, timer.seconds
    )  # fmt: skip


def dropped_sets(required: Requirements) -> list[tuple[str, ...]]:
    """What is dropped in each row: nothing, each requirement, and all."""
    given = required.given
    each = [(field,) for field in given] if len(given) > 1 else []
    return [(), *each, given]


def _consistent(rows: list[PricedRule]) -> tuple[PricedRule, ...]:
    """Rules handed on to looser requirements, upper bounds to stricter ones."""
    result = []
    for row in rows:
        bounds = row.bounds
        for other in rows:
            if set(other.dropped) < set(row.dropped):
                bounds = bounds.looser_than(other.bounds)
            if set(other.dropped) > set(row.dropped):
                bounds = bounds.stricter_than(other.bounds)
        result.append(replace(row, bounds=bounds))
    return tuple(result)
