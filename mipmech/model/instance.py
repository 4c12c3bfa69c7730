"""Instances: the sample, the quality, what moves cost, and what the planner sees.

The floats that are given are the data, exactly; nothing here rounds or scales them (see
`geometry`). Files are read and written by way of `instance_file`.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from mipmech import files, validation
from mipmech.errors import InputError, shorten
from mipmech.model import fields, tables
from mipmech.model import view as views
from mipmech.model.costs.pricing import Costs, Norm, check_seen, parse_costs
from mipmech.model.fields import Smoothing
from mipmech.model.from_table import Choice, FrameColumns
from mipmech.model.groups import FIELD, Groups, Labels, parse_groups
from mipmech.model.known import Known, parse_known
from mipmech.model.tables import CsvTable
from mipmech.model.units import Units, parse_units
from mipmech.model.view import View
from mipmech.text import clean, short
from mipmech.tolerances import LARGEST, MOST_FEATURES
from mipmech.validation import Floats, Numbers, is_plain

FORMAT = "mipmech/instance@1"

PER_AGENT = ("agents", "cost", "reach", "weights", "ids")
# Longer names of agents are cut short where they are shown.
LONGEST_ID = 40


@dataclass(frozen=True, eq=False, repr=False)
class Instance:
    """A sample of agents, their quality, their costs, and what the planner sees of them.

    Make one with `load`, `from_arrays`, `from_frame` or `from_csv`, which validate; the arrays are
    read-only.

    Attributes
    ----------
    name : str
    agents : (m, n) array
        The features x_i.
    quality : (n,) array
        w_f, so that f(x) = w_f·x − b_f.
    quality_offset : float
        b_f.
    view : View
        What the planner sees of x.
    costs : Costs
        What a move costs each agent; passing is worth 1.
    weights : (m,) array
        Not normalised.
    features : tuple of str or None
    smoothing : Smoothing or None
    source : str
    known : Known or None
    path : Path or None
        The file that the instance was read from.
    ids : tuple of str or None
        Names of the agents, one each, for people to read.
    units : Units or None
        The user's units, if the features are standardised.
    groups : Mapping of str to Grouping
        Groups of the agents by name, such as "sex"; empty if none are given.
    """

    name: str
    agents: Floats
    quality: Floats
    quality_offset: float
    view: View
    costs: Costs
    weights: Floats
    features: tuple[str, ...] | None = None
    smoothing: Smoothing | None = None
    source: str = ""
    known: Known | None = None
    path: Path | None = None
    ids: tuple[str, ...] | None = None
    units: Units | None = None
    groups: Groups = field(default_factory=Groups)

    @classmethod
    def load(cls, path: str | Path) -> Instance:
        """Read and validate an instance file.

        Parameters
        ----------
        path : str or Path
            The file.

        Raises
        ------
        InputError
            With the file, the field, the row and the remedy.
        """
        from mipmech.model import instance_file  # noqa: PLC0415  (it makes instances)

        file = Path(path)
        try:
            return instance_file.read(file)
        except InputError as error:
            raise error.located(file) from None
        except OSError as error:
            raise tables.unreadable(file, error) from None

    @classmethod
    def from_arrays(
        cls,
        agents: ArrayLike,
        quality: ArrayLike | Mapping[str, float],
        *,
        cost: ArrayLike | None = None,
        reach: ArrayLike | None = None,
        norm: Norm = "l2",
        effort: ArrayLike | Mapping[str, float] | None = None,
        visible: Sequence[str | int] | None = None,
        view: ArrayLike | Sequence[Mapping[str, float]] | None = None,
        projection: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        quality_offset: float = 0.0,
        features: Sequence[str] | None = None,
        name: str = "unnamed",
        smoothing: Smoothing | Mapping[str, Any] | None = None,
        source: str = "",
        known: Known | Mapping[str, Any] | None = None,
        ids: Sequence[str | int] | None = None,
        units: Units | Mapping[str, Any] | None = None,
        groups: Mapping[str, Labels] | None = None,
    ) -> Instance:
        """An instance from arrays.

        Exactly one of ``visible``, ``view``, ``projection``, and one of ``cost``, ``reach``.

        Parameters
        ----------
        agents : (m, n) array_like
            The features.
        quality : (n,) array_like or mapping of str to float
            w_f, or coefficients by feature, 0 for the rest.
        cost : float or (m,) array_like, optional
            The cost per unit of distance moved.
        reach : float or (m,) array_like, optional
            Or how far agents go to pass: 1/cost.
        norm : {"l2", "l1", "linf"}
            How distances in single features add up: √Σ(e_jΔ_j)², Σe_j|Δ_j|, or max e_j|Δ_j|.
        effort : (n,) array_like, (n, n) array_like or mapping of str to float, optional
            The prices e_j of a move by 1 in each feature, by default 1; as a mapping, 1 for those
            left out. With l2 also a matrix M: the distance is √(ΔᵀMΔ).
        visible : sequence of str or int, optional
            The columns that the planner sees, by name or number from 0.
        view : (rows, n) array_like or sequence of mapping, optional
            B: the planner sees Bx. A row may map features to numbers.
        projection : (n, n) array_like, optional
            P: the planner sees Px.
        weights : (m,) array_like, optional
            One per agent, not normalised; by default all 1.
        quality_offset : float
            b_f.
        features : sequence of str, optional
            Names of the columns.
        name : str
            Shown in tables and pictures.
        smoothing : Smoothing or mapping, optional
            If the sample comes from a σ-smoothed distribution.
        source : str
            Where the data are from.
        known : Known or mapping, optional
            What is known of the optimum.
        ids : sequence of str or int, optional
            Names of the agents, for people to read.
        units : Units or mapping, optional
            The user's units, if the features are standardised. A mapping here, as for ``smoothing``
            and ``known``, is the object of an instance file.
        groups : mapping of str to sequence of str or int, optional
            Groups of the agents: a name and a label for each agent, of which only the text counts.

        Examples
        --------
        >>> Instance.from_arrays([[0.0, 1.0], [2.0, 0.5]], [1.0, 1.0], visible=[1], cost=2.0)
        Instance('unnamed': 2 agents, 2 features, 1 seen)
        """
        x = validation.array(agents, "agents", 2)
        m, n = x.shape
        if m == 0:
            raise InputError("is empty; a sample needs at least one agent", field="agents")
        if n == 0:
            raise InputError("has no features; give every agent at least one", field="agents")
        if n > MOST_FEATURES:
            said = f"has {n:,} features; at most {MOST_FEATURES:,} are read: leave out those that"
            raise InputError(f"{said} neither quality nor rules need", field="agents")
        names = None if features is None else fields.parse_names(features, n)
        w_f = fields.parse_quality(quality, names)
        validation.length(w_f, n, "quality", "one per feature")
        if np.abs(w_f).max() < 1 / LARGEST:
            raise InputError(
                "is zero, so no rule can raise it; give at least one feature a coefficient",
                field="quality",
            )
        validation.check_not_tiny(w_f, "quality")
        seen = fields.parse_seen(visible, view, projection, names, n)
        costs = parse_costs(cost, reach, norm, effort, names, (m, n))
        check_seen(costs, seen, w_f)
        return cls(
            name=validation.text(name, "name"),
            agents=validation.frozen(x),
            quality=validation.frozen(w_f),
            quality_offset=validation.number(quality_offset, "quality_offset"),
            view=seen,
            costs=costs,
            weights=validation.frozen(fields.parse_weights(weights, m)),
            features=names,
            smoothing=None if smoothing is None else fields.parse_smoothing(_content(smoothing)),
            source=validation.text(source, "source", lines=True),
            known=None if known is None else parse_known(_content(known)),
            ids=None if ids is None else fields.parse_ids(ids, m),
            units=None if units is None else parse_units(_content(units), n),
            groups=Groups() if groups is None else parse_groups(groups, m),
        )

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        quality: Mapping[str, float],
        cost: ArrayLike | str | None = None,
        reach: ArrayLike | str | None = None,
        norm: Norm = "l2",
        effort: ArrayLike | Mapping[str, float] | str | None = None,
        visible: Sequence[str] | None = None,
        view: Sequence[Mapping[str, float]] | ArrayLike | None = None,
        projection: ArrayLike | None = None,
        weights: ArrayLike | str | None = None,
        features: Sequence[str] | None = None,
        ids: Sequence[str | int] | str | None = None,
        groups: Sequence[str] | None = None,
        standardise: bool = False,
        quality_offset: float = 0.0,
        drop_blank: bool = False,
        name: str = "unnamed",
        source: str = "",
        smoothing: Smoothing | None = None,
        known: Known | None = None,
    ) -> Instance:
        """An instance from a pandas or polars data frame.

        Columns that are not named here may hold anything. One of ``cost``, ``reach`` is given. With
        ``standardise``, features become (x − mean)/deviation, and a cost of 2 then means 2 per
        standard deviation moved; the quality stays the same function of a person, and rules are
        shown in the frame's units. ``effort="standard"`` makes the same problem of features that
        stay as they are: prices do what a change of units would.

        Parameters
        ----------
        frame : DataFrame
            One row per agent.
        quality : mapping of str to float
            Coefficients by column, per unit of the frame.
        cost : float, str or (m,) array_like, optional
            A number, a column, or a list; per standard deviation with ``standardise``.
        reach : float, str or (m,) array_like, optional
            Or how far agents go to pass, 1/cost: a number, a column, or a list.
        norm : {"l2", "l1", "linf"}
            How moves in several features add up, as for `from_arrays`.
        effort : mapping of str to float, array_like or "standard", optional
            The prices of a move by 1, by column (1 for those left out); prices, or for l2 a matrix,
            over ``features``; or "standard", 1/standard deviation of each feature, so that costs
            are per standard deviation. Not with ``standardise``.
        visible : sequence of str, optional
            The columns that the planner sees.
        view : sequence of mapping or array_like, optional
            Instead of ``visible``, B: each row maps columns to numbers, as in
            ``[{"verbal": 1, "maths": 1}, {"gpa": 1}]``; or an array over ``features``.
        projection : (n, n) array_like, optional
            Or P, over ``features``; not with ``standardise``.
        weights : str or (m,) array_like, optional
            A column, or a list.
        features : sequence of str, optional
            By default the columns of ``quality`` and ``visible`` or ``view``, in the frame's order.
        ids : str or sequence, optional
            The column that names the agents, or a list; by default the index of a pandas frame,
            unless it only counts the rows and none is left out.
        groups : sequence of str, optional
            Columns of text or whole numbers that say to which group an agent belongs, such as
            ``["sex", "race"]``; no features, unless they are named as such, too.
        standardise : bool
            Whether to measure features in standard deviations from their means (every agent counts
            once, divided by m).
        quality_offset : float
            b_f, for the units of the frame.
        drop_blank : bool
            Whether to leave out rows with gaps in a column that is used, instead of refusing them.
            Agents that nothing names are then called by the numbers of their rows, from 0.
        name, source, smoothing, known : optional
            As for `from_arrays`.

        Examples
        --------
        >>> import pandas
        >>> frame = pandas.DataFrame({"sat": [500.0, 700.0], "gpa": [2.0, 4.0]}, ["Ann", "Bob"])
        >>> quality = {"sat": 0.001, "gpa": 0.5}
        >>> sample = Instance.from_frame(
        ...     frame, quality=quality, visible=["sat"], cost=2.0, standardise=True
        ... )
        >>> sample.agents.tolist(), sample.quality.tolist()
        ([[-1.0, -1.0], [1.0, 1.0]], [0.1, 0.5])
        >>> sample.units
        Units(centre=(600.0, 3.0), scale=(100.0, 1.0))
        >>> sample.agent_name(1)
        'Bob'
        >>> priced = Instance.from_frame(
        ...     frame, quality=quality, visible=["sat"], cost=2.0, effort="standard"
        ... )
        >>> priced.agents.tolist(), priced.costs.effort.tolist()
        ([[500.0, 2.0], [700.0, 4.0]], [0.01, 1.0])
        """
        choice = Choice(
            quality=quality, cost=cost, reach=reach, norm=norm, effort=effort, visible=visible,
            view=view, weights=weights, ids=ids, groups=groups, features=features,
            standardise=standardise, quality_offset=quality_offset, drop_blank=drop_blank,
        )  # fmt: skip
        if standardise and projection is not None:
            said = "is orthogonal in one set of units only; with standardise, give 'view'"
            raise InputError(said, field="projection")
        table = frame if isinstance(frame, CsvTable) else FrameColumns(frame)
        kept = choice.complete(table)
        try:
            return cls.from_arrays(
                **choice.arguments(kept, table.size), projection=projection, name=name,
                source=source, smoothing=smoothing, known=known,
            )  # fmt: skip
        except InputError as error:
            if error.row is None or error.line or error.field not in (*PER_AGENT, FIELD):
                raise
            raise kept.fault(error.message, error.field, error.row) from None

    @classmethod
    def from_csv(cls, path: str | Path, **arguments: Any) -> Instance:
        """An instance from a CSV file, without pandas.

        Cells may be separated by commas, semicolons or tabs; with the latter two, commas may be
        decimal ones. Columns that are not named may hold anything.

        Parameters
        ----------
        path : str or Path
            The file: a header, then one row per agent.
        **arguments
            As for `from_frame`; by default the instance has the name of the file, and its agents
            have none, unless rows are left out.

        Examples
        --------
        >>> given = {"quality": {"hs_gpa": 0.6, "sat_v": 0.02}, "visible": ["sat_v"], "cost": 2}
        >>> Instance.from_csv("instances/real/raw/satgpa.csv", **given)
        Instance('satgpa': 1000 agents, 2 features, 1 seen)
        """
        file = Path(path)
        try:
            return cls.from_frame(tables.read_csv(file), **{"name": clean(file.stem), **arguments})
        except InputError as error:
            raise error.located(file) from None

    def part(self, rows: Numbers, name: str) -> Instance:
        """The agents of some rows; what is known of the whole does not hold for them.

        Parameters
        ----------
        rows : array of int
            The agents, in the order that they will have.
        name : str
            What to call them.

        Examples
        --------
        >>> whole = Instance.from_arrays([[0.0], [1.0], [2.0]], [1.0], visible=[0], cost=1.0)
        >>> whole.part(np.array([0, 2]), "the ends").agents.tolist()
        [[0.0], [2.0]]
        """
        agents, weights = (validation.frozen(v[rows]) for v in (self.agents, self.weights))
        ids = None if self.ids is None else tuple(self.ids[row] for row in rows)
        return replace(
            self, name=name, agents=agents, costs=self.costs.of(rows), weights=weights, ids=ids,
            groups=self.groups.of(rows), known=None, path=None,
        )  # fmt: skip

    def __repr__(self) -> str:
        return (
            f"Instance({self.name!r}: {self.size} agents, {self.width} features,"
            f" {self.view.rank} seen)"
        )

    def __len__(self) -> int:
        return self.size

    @property
    def cost(self) -> Floats:
        """c_i, an (m,) array: what agent i pays per unit of distance; rounded from reaches."""
        return self.costs.cost

    @property
    def reach(self) -> Floats:
        """ℓ_i = 1/c_i, an (m,) array: how far each agent moves to pass; rounded from costs."""
        return self.costs.reach

    @property
    def size(self) -> int:
        """m, the number of agents."""
        return int(self.agents.shape[0])

    @property
    def width(self) -> int:
        """n, the number of features, seen or not."""
        return int(self.agents.shape[1])

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names in the file, or x0, x1, …"""
        return self.features or tuple(f"x{j}" for j in range(self.width))

    def agent_name(self, number: int) -> str:
        """What an agent is called: its id, made fit to print, or else its number.

        Parameters
        ----------
        number : int
            The agent, from 0.
        """
        return str(number) if self.ids is None else short(clean(self.ids[number]), LONGEST_ID)

    @cached_property
    def exact_quality(self) -> dict[int, Fraction]:
        """w_f in rationals, by feature, without zeros."""
        return {int(j): Fraction(float(self.quality[j])) for j in np.flatnonzero(self.quality)}

    @cached_property
    def centre(self) -> Floats:
        """The median of the agents that count, an (n,) array: where float work starts from.

        Any point would do, since thresholds are free; the median keeps most agents near it, so that
        one agent far away costs only itself its digits.
        """
        return validation.frozen(np.median(self.agents[self.weights > 0], axis=0))

    @cached_property
    def digest(self) -> str:
        """What makes two instances the same problem, as 64 hexadecimal digits.

        sha256 over the format's name, m, n, the number of rows of B and whether there is smoothing
        (four little-endian int64), then agents, quality, offset, cost and weights (one per agent),
        B, σ and radius, all little-endian float64, row by row, with −0 written as 0. Where reaches
        are given, they stand in the place of the costs, and the text "reach" follows. Unless the
        length of a move is Euclidean, there follow the norm's name, the numbers of rows and of
        columns of ``effort`` (two int64; 0, 0 if all prices are 1; prices are one row) and its
        entries. Where groups are given, there follow the text "groups" and the number of groupings
        (int64), then for each grouping, by name: its name, its number of labels (int64), the labels
        in the order of their characters, and every agent's place among them (int64). Names and
        labels are in UTF-8, each after its number of bytes (int64).
        """
        smoothed = list(self.smoothing.to_dict().values()) if self.smoothing else []
        sizes = [self.size, self.width, len(self.view.matrix), int(bool(smoothed))]
        total = hashlib.sha256(FORMAT.encode())
        total.update(np.array(sizes, dtype="<i8").tobytes())
        parts: list[ArrayLike] = [self.agents, self.quality, [self.quality_offset]]
        parts += [self.costs.values, self.weights, self.view.matrix, smoothed]
        for part in parts:
            total.update((np.asarray(part, dtype="<f8") + 0.0).tobytes())
        if self.costs.given == "reach":
            total.update(b"reach")
        if not self.costs.plain:
            effort = np.empty((0, 0)) if self.costs.effort is None else self.costs.effort
            total.update(self.costs.norm.encode())
            total.update(np.array(np.atleast_2d(effort).shape, dtype="<i8").tobytes())
            total.update((np.asarray(effort, dtype="<f8") + 0.0).tobytes())
        self.groups.digest_into(total)
        return total.hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """The object in the file, agents inline."""
        result: dict[str, Any] = {"format": FORMAT, "name": self.name}
        if self.source:
            result["source"] = self.source
        if self.features is not None:
            result["features"] = list(self.features)
        result["quality"] = self.quality.tolist()
        if self.quality_offset:
            result["quality_offset"] = self.quality_offset
        if self.view.columns is not None and _selects(self.view):
            names = self.features or range(self.width)
            result["visible"] = [names[c] for c in self.view.columns]
        else:
            result["view"] = self.view.matrix.tolist()
        result.update(self.costs.to_dict())
        if (self.weights != 1).any():
            result["weights"] = self.weights.tolist()
        if self.smoothing is not None:
            result["smoothing"] = self.smoothing.to_dict()
        if self.known is not None:
            result["known"] = self.known.to_dict()
        if self.units is not None:
            result["units"] = self.units.to_dict()
        if self.ids is not None:
            result["ids"] = list(self.ids)
        if self.groups:
            result["groups"] = self.groups.to_dict()
        result["agents"] = self.agents.tolist()
        return result

    def save(
        self,
        path: str | Path,
        agents: Literal["inline", "csv", "npy"] = "inline",
        table: str | None = None,
    ) -> None:
        """Write the instance file, whole or not at all; every float reads back the same.

        Parameters
        ----------
        path : str or Path
            The file.
        agents : {"inline", "csv", "npy"}
            Where the agents go: into the file, or into a file beside it.
        table : str, optional
            The name of the file beside it; by default the instance's with another ending.
        """
        from mipmech.model import instance_file  # noqa: PLC0415  (it makes instances)

        file = Path(path)
        content = self.to_dict()
        if agents not in ("inline", "csv", "npy"):
            said = f"is {validation.kind(agents)}; give 'inline', 'csv' or 'npy'"
            raise InputError(said, field="agents")
        if table is not None and Path(table).name != table:
            said = f"is {shorten(table)}; give a file's name alone: it lies beside the instance"
            raise InputError(said, field="table")
        if agents != "inline" and file.name == (table or f"{file.stem}.{agents}"):
            raise InputError(
                f"would hold both the instance and its {agents} table; give it another ending",
                file=file,
            )
        if agents == "csv":
            if all(is_plain(name) for name in self.feature_names):
                raise InputError(
                    "are all numbers, which no CSV header can be; save inline or as npy",
                    file=file,
                    field="features",
                )
            rows = [",".join(map(repr, row)) for row in self.agents.tolist()]
            header = ",".join(tables.quoted(name) for name in self.feature_names)
            held = "\n".join([header, *rows, ""]).encode()
            content.pop("features", None)
        elif agents == "npy":
            buffer = io.BytesIO()
            np.save(buffer, self.agents, allow_pickle=False)
            held = buffer.getvalue()
        if agents != "inline":
            beside = file.with_name(table or f"{file.stem}.{agents}")
            files.write(beside, held)
            content["agents"] = {agents: beside.name}
        files.write(file, instance_file.pretty(content).encode())


def _content(value: Any) -> Any:
    """The object that a file holds for a field, or may hold."""
    return value.to_dict() if isinstance(value, (Smoothing, Known, Units)) else value


def _selects(view: View) -> bool:
    """Whether the rows of B are exactly the selected coordinates, so that `visible` says it all."""
    columns = view.columns or ()
    return np.array_equal(view.matrix, views.from_visible(columns, view.matrix.shape[1]).matrix)
