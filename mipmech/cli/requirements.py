"""Options about what is demanded of rules: a file, and one option for each of its fields.

A command with a parameter ``require`` gets them all from `demanding`, and calls the function that
it is given with the sample once that is read.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
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


def demanding(work: Callable[..., int | None]) -> Callable[..., int | None]:
    """A command with the options of requirements in place of its parameter ``require``."""
    signature = inspect.signature(work, eval_str=True)
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in OPTIONS.items()
    ]
    others = [p for name, p in signature.parameters.items() if name != "require"]

    @functools.wraps(work)
    def wrapped(shell: Any, **given: Any) -> int | None:
        asked = {name: given.pop(name) for name in OPTIONS}
        typed_requirements(asked)  # what is wrong with them is said before any work
        return work(shell, **given, require=functools.partial(requirements_from, asked))

    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in others[1:]]
    wrapped.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[others[0], *parameters, *options]
    )
    return wrapped


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
