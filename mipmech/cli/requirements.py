"""Options about what is demanded of rules: a file, and one option for each of its fields.

A command with a parameter ``require`` gets them all from `demanding`, and calls the function that
it is given with the sample once that is read.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mipmech.errors import InputError, shorten
from mipmech.model.instance import Instance
from mipmech.model.requirements import Requirements, demands_of
from mipmech.validation import cells, is_plain

HEADING = "Requirements on rules"


def _option(name: str, said: str) -> Any:
    return typer.Option(f"--{name}", help=said, rich_help_panel=HEADING)


# The options, in the order of the help page.
OPTIONS: dict[str, Any] = {
    "require": Annotated[
        Path | None,
        _option("require", "A file of requirements (.toml, .json); options take precedence."),
    ],
    "nonnegative": Annotated[
        str | None, _option("nonnegative", 'Features with weights of at least 0: "all", or "a,b".')
    ],
    "nonpositive": Annotated[
        str | None, _option("nonpositive", 'Features with weights of at most 0: "all", or "a,b".')
    ],
    "order": Annotated[
        str | None, _option("order", '"a:b,c:d": the weight of a is at least that of b.')
    ],
    "accepted": Annotated[
        str | None, _option("accepted", '"0.1,0.3": least and greatest share of agents accepted.')
    ],
    "parity": Annotated[
        str | None,
        _option("parity", '"race:0.05": accepted shares of two groups differ by at most 0.05.'),
    ],
}

# What a command calls, once with its sample, or without one if there are several.
Required = Callable[[Instance | None], Requirements | None]


@dataclass(frozen=True)
class Range:
    """Limits of a requirement, one after the other.

    groups : of parity; None for the share accepted
    """

    groups: str | None
    values: list[float]


RANGED: dict[str, Any] = {
    **OPTIONS,
    "accepted": Annotated[
        str | None,
        _option(
            "accepted",
            '"0.05:0.95:19": 19 limits from 0.05 to 0.95; or, as a requirement, "0.1,0.3".',
        ),
    ],
    "parity": Annotated[
        str | None,
        _option("parity", '"sex:0:0.3:7": 7 limits; or, as a requirement, "sex:0.05".'),
    ],
}
# More limits than this come from a typing error.
MOST_LIMITS = 1000


def demanding(work: Callable[..., int | None]) -> Callable[..., int | None]:
    """A command with the options of requirements in place of its parameter ``require``."""

    def called(asked: dict[str, str | None]) -> dict[str, Any]:
        typed_requirements(asked)  # what is wrong with them is said before any work
        return {"require": functools.partial(requirements_from, asked)}

    return _with_options(work, OPTIONS, called)


def ranging(work: Callable[..., int | None]) -> Callable[..., int | None]:
    """The same for one that also has a parameter ``limits``: the range of one requirement."""

    def called(asked: dict[str, str | None]) -> dict[str, Any]:
        limits = [
            found
            for field, read in (("accepted", _range), ("parity", _range_of_groups))
            if (found := read(asked[field], field)) is not None
        ]
        if len(limits) != 1:
            said = "needs one range: --accepted 0.05:0.95:19 or --parity sex:0:0.3:7"
            raise InputError(said + "; not both" * (len(limits) > 1), field="frontier")
        ranged = "accepted" if limits[0].groups is None else "parity"
        rest = {**asked, ranged: None}
        typed_requirements(rest)
        return {"require": functools.partial(requirements_from, rest), "limits": limits[0]}

    return _with_options(work, RANGED, called)


def _with_options(
    work: Callable[..., int | None],
    kinds: Mapping[str, Any],
    called: Callable[[dict[str, Any]], dict[str, Any]],
) -> Callable[..., int | None]:
    """A command with options in place of what is called with what they are given."""
    signature = inspect.signature(work, eval_str=True)
    usual = dict.fromkeys(("require", "limits"))
    first, *others = (p for name, p in signature.parameters.items() if name not in usual)
    keyword = inspect.Parameter.KEYWORD_ONLY
    options = [
        inspect.Parameter(name, keyword, default=None, annotation=kind)
        for name, kind in kinds.items()
    ]

    @functools.wraps(work)
    def wrapped(shell: Any, **given: Any) -> int | None:
        asked = {name: given.pop(name) for name in kinds}
        return work(shell, **given, **called(asked))

    wrapped.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[first, *(p.replace(kind=keyword) for p in others), *options]
    )
    return wrapped


def _range(text: str | None, field: str) -> Range | None:
    """The limits of from:to:how many; None if that is not what is given."""
    if text is None or ":" not in text:
        return None
    return Range(None, _steps(text.split(":"), text, field))


def _range_of_groups(text: str | None, field: str) -> Range | None:
    """The same after the name of groups, which may have colons of its own."""
    if text is None:
        return None
    *name, low, high, many = ["", "", *text.split(":")]
    groups = ":".join(name[2:] if len(name) > 2 else [])
    if not groups.strip():
        return None
    return Range(groups.strip(), _steps([low, high, many], text, field))


def _steps(parts: Sequence[str], text: str, field: str) -> list[float]:
    """So many limits, evenly from one to another."""
    said = f"has {shorten(text)}; give from:to:how many, shares and a whole number"
    if len(parts) != 3 or not all(map(is_plain, parts)) or not parts[2].strip().isdigit():
        raise InputError(f"{said}, as in 0:0.3:7", field=field)
    low, high, many = float(parts[0]), float(parts[1]), int(parts[2])
    if not (0 <= low <= high <= 1 and 1 <= many <= MOST_LIMITS and (many > 1 or low == high)):
        more = f", from the smaller to the larger, and 2 to {MOST_LIMITS:,} limits"
        raise InputError(said + more, field=field)
    # Limits count as they are written, so there are no digits of rounding.
    step = (high - low) / max(1, many - 1)
    return [round(low + step * place, 9) for place in range(many)]


def asked_for(required: Requirements | None) -> dict[str, Any]:
    """The keyword of a function of the Python API; none if nothing is demanded."""
    return {} if required is None else {"require": required}


def requirements_from(
    given: Mapping[str, Any], sample: Instance | None = None
) -> Requirements | None:
    """What a file and options demand together; None if nothing.

    Parameters
    ----------
    given : mapping
        The options by name, None where one is not given.
    sample : Instance, optional
        Whose features may be named by digits; what does not fit it is refused, with the file's
        name.
    """
    file = given["require"]
    typed = typed_requirements(given, () if sample is None else sample.feature_names)
    held = Requirements() if file is None else Requirements.load(file)
    found = held.updated(typed)
    if sample is not None:
        try:
            demands_of(sample, found)
        except InputError as error:
            field = (error.field or "").partition(".")[0]
            if file is None or field in typed.given:
                raise
            raise error.located(file) from None
    return found or None


def typed_requirements(given: Mapping[str, Any], names: Sequence[str] = ()) -> Requirements:
    """The requirements of the options alone; the file's are not among them.

    names : features that are not numbers although they may look like some
    """

    def feature(name: str) -> str | int:
        number = name.isascii() and name.isdigit() and name not in names
        return int(name) if number else name

    readers: dict[str, Callable[[str, str], Any]] = {
        "nonnegative": functools.partial(_features, feature),
        "nonpositive": functools.partial(_features, feature),
        "order": functools.partial(_pairs, feature),
        "accepted": _limits,
        "parity": _groups,
    }
    texts = {field: given[field] for field in readers if given[field] is not None}
    return Requirements(**{field: readers[field](text, field) for field, text in texts.items()})


def _features(feature: Callable[[str], str | int], text: str, field: str) -> Any:
    names = cells(text)
    if not names:
        raise InputError('is empty; give "all", or features between commas', field=field)
    return "all" if names == ["all"] else [feature(name) for name in names]


def _pairs(feature: Callable[[str], str | int], text: str, field: str) -> Any:
    pairs = []
    for row, cell in enumerate(cells(text)):
        parts = [part.strip() for part in cell.split(":")]
        if len(parts) != 2 or not all(parts):
            said = f"has {shorten(cell)}; give pairs a:b between commas, for weight of a ≥ weight"
            raise InputError(f"{said} of b; names with colons go into a file", field=field, row=row)
        pairs.append([feature(part) for part in parts])
    return pairs


def _limits(text: str, field: str) -> Any:
    limits = [_number(cell, field) for cell in cells(text)]
    if len(limits) == 1:
        said = f"has only one number, {limits[0]:g}; give the least and the greatest share, as in"
        raise InputError(f"{said} 0,{limits[0]:g}", field=field)
    return limits


def _groups(text: str, field: str) -> Any:
    name, mark, within = text.rpartition(":")
    if not mark or not name.strip():
        said = f"has {shorten(text)}; give groups and a share, as in race:0.05"
        raise InputError(said, field=field)
    return {"groups": name.strip(), "within": _number(within.strip(), field)}


def _number(cell: str, field: str) -> float:
    if not is_plain(cell):
        said = f"has {shorten(cell)}; give a share from 0 to 1, such as 0.3 for 30 %"
        raise InputError(said, field=field)
    return float(cell)
