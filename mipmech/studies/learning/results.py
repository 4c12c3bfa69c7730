"""What a learning curve holds, and the file that keeps it: `mipmech/learning@2`.

The file is the object of `LearningCurve.to_dict`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mipmech import files
from mipmech.budget import Stop
from mipmech.errors import InputError, shorten
from mipmech.frames import frame
from mipmech.model.geometry import reduce
from mipmech.model.mechanism import Mechanism
from mipmech.model.population import Smoothed
from mipmech.model.units import Units
from mipmech.studies.learning.source import Source, base_of
from mipmech.studies.spread import Spread
from mipmech.theory.learning import HeldOut, uniform_deviation

Kind = Literal["smoothed", "data"]

FORMAT = "mipmech/learning@2"
FILE = "learning.json"
# Columns of the table of all samples.
COLUMNS = (
    "size", "repeat", "lower", "upper", "gap", "gain", "at_least", "promised", "seconds",
)  # fmt: skip


@dataclass(frozen=True, repr=False)
class LearnedPoint:
    """A rule learned from one sample, and how it does elsewhere.

    lower, upper : the greatest gain on the sample lies between them; ``lower`` is the rule's own
    gap : (upper − lower)/upper
    closed : whether the gap is as small as was asked for
    gain : the rule's gain on the population or, of data, on the rows held out
    held_out : the same from the held-out agents, with the confidence bound
    deviation : with probability 1 − δ, no rule's sample gain is farther from its population gain
    mechanism : None if no rule gains anything on the sample
    """

    size: int
    repeat: int
    lower: float
    upper: float
    gap: float
    closed: bool
    gain: float
    held_out: HeldOut
    deviation: float
    mechanism: Mechanism | None
    seconds: float

    def __repr__(self) -> str:
        return (
            f"LearnedPoint({self.size} agents, repeat {self.repeat}: sample gain {self.lower:.6g},"
            f" gain {self.gain:.6g}, at least {self.at_least:.6g})"
        )

    @property
    def at_least(self) -> float:
        """What the held-out agents promise of the rule's population gain."""
        return self.held_out.lower

    @property
    def promised(self) -> float:
        """What uniform convergence promises of it, from the sample alone; no gain is below 0."""
        return max(0.0, self.lower - self.deviation)

    @property
    def error(self) -> float:
        """How far the sample gain is from the gain elsewhere."""
        return abs(self.lower - self.gain)

    def to_dict(self) -> dict[str, Any]:
        """The figures."""
        rule = None if self.mechanism is None else self.mechanism.to_dict()
        return {**asdict(self), "promised": self.promised, "mechanism": rule}


def _spread(values: Iterable[float]) -> Spread:
    found = Spread.of(values)
    assert found is not None  # there is at least one figure
    return found


@dataclass(frozen=True)
class SizeSummary:
    """What the samples of one size gave.

    samples, still_open : how many there are, and how many certificates did not close
    sample, gain, at_least, promised, error : as in `LearnedPoint`
    at_most : no rule's population gain is above this, each with probability 1 − δ
    """

    size: int
    samples: int
    still_open: int
    sample: Spread
    gain: Spread
    at_least: Spread
    promised: Spread
    at_most: Spread
    error: Spread
    deviation: float


@dataclass(frozen=True, repr=False)
class BestKnown:
    """The best rule known on a smoothed population: a lower bound of its optimum.

    searched : whether a local search went through; otherwise it is the best of the learned rules
    """

    gain: float
    mechanism: Mechanism | None
    searched: bool

    def __repr__(self) -> str:
        return f"BestKnown(gain ≥ {self.gain:.6g}{', local search' * self.searched})"

    def to_dict(self) -> dict[str, Any]:
        """The figures."""
        rule = None if self.mechanism is None else self.mechanism.to_dict()
        return {"gain": self.gain, "mechanism": rule, "searched": self.searched}


@dataclass(frozen=True)
class LearningSettings:
    """What was asked for."""

    sizes: tuple[int, ...]
    repeats: int
    gap: float
    delta: float
    seed: int


@dataclass(frozen=True)
class About:
    """What the samples were drawn from.

    name, digest, agents : of the data, or of the base of the smoothed distribution
    sigma : σ; None for data
    seen_quality : ‖P w_f‖
    largest_reach : no agent's reach is above this; of data, the largest one there
    """

    name: str
    kind: Kind
    digest: str
    agents: int
    rank: int
    features: tuple[str, ...]
    sigma: float | None
    seen_quality: float
    largest_reach: float
    equal_costs: bool
    units: Units | None = None

    @classmethod
    def of(cls, source: Source) -> About:
        """A description of the source."""
        base = base_of(source)
        geometry = reduce(base)
        counts = base.weights > 0
        cost = base.cost[counts]
        return cls(
            name=base.name,
            kind="smoothed" if isinstance(source, Smoothed) else "data",
            digest=base.digest,
            agents=base.size,
            rank=geometry.rank,
            features=base.feature_names,
            sigma=source.sigma if isinstance(source, Smoothed) else None,
            seen_quality=geometry.p_norm_bounds[1],
            largest_reach=float(base.reach[counts].max()),
            equal_costs=bool((cost == cost[0]).all()),
            units=base.units,
        )

    @property
    def largest_gain(self) -> float:
        """H = ‖P w_f‖·ℓ_max: no rule raises an agent's quality by more."""
        return self.seen_quality * self.largest_reach

    @property
    def notes(self) -> tuple[str, ...]:
        """What the bounds rest on beyond independent draws."""
        if self.kind == "data" and not self.equal_costs:
            return (
                f"costs differ: the bounds take the largest reach in the data,"
                f" {self.largest_reach:.4g}, for the population's",
            )
        return ()

    def deviation(self, size: int, delta: float) -> float:
        """`theory.uniform_deviation` for a sample of this size."""
        return uniform_deviation(size, self.rank, self.largest_gain, delta, self.equal_costs)

    def to_dict(self) -> dict[str, Any]:
        """The description, with the largest gain and the notes."""
        return {
            **asdict(self),
            "largest_gain": self.largest_gain,
            "notes": list(self.notes),
        }


@dataclass(frozen=True, repr=False)
class LearningCurve:
    """Rules learned from samples of growing size.

    Attributes
    ----------
    source : About
        What the samples were drawn from.
    settings : LearningSettings
    points : tuple of LearnedPoint
        By size, then by repeat.
    best : BestKnown, optional
        The best rule known on a smoothed population; None for data, or if nothing was learned.
    stop : Stop
        Why it ended.
    seconds : float
    """

    source: About
    settings: LearningSettings
    points: tuple[LearnedPoint, ...]
    best: BestKnown | None
    stop: Stop
    seconds: float

    def __repr__(self) -> str:
        rows = self.summary()
        told = f"{len(self.points)} of {self.asked} samples"
        if rows:
            sizes = f"{rows[0].size} to {rows[-1].size}" if len(rows) > 1 else f"{rows[0].size}"
            told += f" of {sizes}; median gain {rows[-1].gain.median:.6g}"
        best = "" if self.best is None else f", best known {self.best.gain:.6g}"
        return f"LearningCurve({self.source.name!r}: {told}{best})"

    @property
    def asked(self) -> int:
        """How many samples were to be learned from."""
        return len(self.settings.sizes) * self.settings.repeats

    @property
    def complete(self) -> bool:
        """Whether every sample was learned from, to the gap asked for."""
        return len(self.points) == self.asked and all(point.closed for point in self.points)

    @property
    def status(self) -> Literal["complete", "partial"]:
        """The same in a word."""
        return "complete" if self.complete else "partial"

    def summary(self) -> tuple[SizeSummary, ...]:
        """One row per size that was reached."""
        by_size = ([p for p in self.points if p.size == size] for size in self.settings.sizes)
        return tuple(self._row(points) for points in by_size if points)

    def _row(self, points: Sequence[LearnedPoint]) -> SizeSummary:
        return SizeSummary(
            size=points[0].size,
            samples=len(points),
            still_open=sum(not point.closed for point in points),
            sample=_spread(point.lower for point in points),
            gain=_spread(point.gain for point in points),
            at_least=_spread(point.at_least for point in points),
            promised=_spread(point.promised for point in points),
            at_most=_spread(self.at_most(point) for point in points),
            error=_spread(point.error for point in points),
            deviation=points[0].deviation,
        )

    def at_most(self, point: LearnedPoint) -> float:
        """With probability 1 − δ no rule's population gain is above this, by this sample.

        Parameters
        ----------
        point : LearnedPoint
            One of ``points``.
        """
        return min(self.source.largest_gain, point.upper + point.deviation)

    @property
    def says_something_from(self) -> int | None:
        """The size from which uniform convergence alone promises a gain above 0, by what is known.

        The deviation must be below the best gain known or, of data, the median gain at the largest
        size. None if nothing gains.
        """
        if self.best is not None:
            gain = self.best.gain
        else:
            rows = self.summary()
            gain = rows[-1].gain.median if rows else 0.0
        if gain <= 0:
            return None
        high = 1
        while self.source.deviation(high, self.settings.delta) >= gain:
            if high > 1e15:
                return None
            high *= 2
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            enough = self.source.deviation(middle, self.settings.delta) < gain
            low, high = (low, middle) if enough else (middle, high)
        return high

    def to_frame(self) -> Any:
        """All samples as a data frame of pandas, or of polars where there is no pandas."""
        rows = [
            (
                point.size, point.repeat, point.lower, point.upper, point.gap, point.gain,
                point.at_least, point.promised, point.seconds,
            )
            for point in self.points
        ]  # fmt: skip
        return frame(COLUMNS, rows)

    def plot(self) -> Any:
        """A matplotlib figure of the curve."""
        from mipmech.plots.learning import learning_picture  # noqa: PLC0415  (matplotlib is slow)

        return learning_picture(self)

    def to_dict(self) -> dict[str, Any]:
        """The object printed under ``--json``, and the content of the file."""
        return {
            "format": FORMAT,
            "status": self.status,
            "source": self.source.to_dict(),
            "settings": asdict(self.settings),
            "summary": [asdict(row) for row in self.summary()],
            "best": None if self.best is None else self.best.to_dict(),
            "says_something_from": self.says_something_from,
            "stop": self.stop.value,
            "seconds": self.seconds,
            "points": [point.to_dict() for point in self.points],
        }

    def save(self, folder: str | Path) -> Path:
        """Write learning.json into a folder.

        Parameters
        ----------
        folder : str or Path
            Made if needed.

        Returns
        -------
        Path
            The file.
        """
        file = make_folder(folder) / FILE
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
        files.write(file, text.encode())
        return file


def make_folder(folder: str | Path) -> Path:
    """Make a folder for results, or raise `InputError`: better before the work than after it."""
    path = Path(folder)
    with files.faults("cannot be made a folder", path, "out"):
        path.mkdir(parents=True, exist_ok=True)
    return path


def whole(value: object, field: str) -> int:
    """A whole number, whatever its type says; booleans are none."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InputError(f"has {shorten(value)}; give whole numbers", field=field)
    return int(value)
