"""What all commands share: the program itself, common options, progress on stderr."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from mipmech.budget import Budget, Event, Timer
from mipmech.errors import InputError
from mipmech.version import __version__

app = typer.Typer(
    name="mipmech",
    help="Evaluation mechanisms for strategic agents: grade them exactly, design them well.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, nothing else.")]
Seconds = Annotated[
    float | None, typer.Option("--seconds", help="Wall time that the whole command may take.")
]
InstanceFile = Annotated[Path, typer.Argument(help="An instance file.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Save a picture (png, pdf, svg).")]
PICTURES = (".png", ".pdf", ".svg", ".eps", ".ps", ".jpg", ".jpeg", ".webp", ".tif", ".tiff")
Work = Callable[[], int | None]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")]


@contextmanager
def progress(what: str, quiet: bool) -> Iterator[None]:
    """A line on stderr while something may take a while, if somebody is looking."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console  # noqa: PLC0415  (slow to import)
    from rich.markup import escape  # noqa: PLC0415

    with Console(stderr=True).status(escape(what)):
        yield


@contextmanager
def saying(what: str, quiet: bool) -> Iterator[Callable[[str], None] | None]:
    """A line on stderr to which something can be added, if somebody is looking."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415  (slow to import)
    from rich.markup import escape  # noqa: PLC0415

    with Console(stderr=True).status(escape(f"{what} …")) as line:
        yield lambda text: line.update(escape(f"{what}: {text}"))


@contextmanager
def live(what: str, quiet: bool) -> Iterator[Callable[[Event], None] | None]:
    """A line on stderr that follows the events of a search, if somebody is looking."""

    def told(event: Event) -> str:
        upper = "?" if event.upper is None else f"{event.upper:.4g}"
        work = event.note or (f"{event.work:,} cones or nodes" if event.work else "starting")
        return f"at least {event.lower:.4g}, at most {upper}; {work}"

    with saying(what, quiet) as say:
        yield None if say is None else lambda event: say(told(event))


@contextmanager
def closing_in(what: str, quiet: bool) -> Iterator[Callable[[Event], None] | None]:
    """The same, with the gap and the speed."""

    def told(event: Event) -> str:
        upper = event.upper or 0.0
        gap = (upper - event.lower) / upper if upper else 0.0
        rate = event.work / event.seconds if event.seconds > 0 else 0.0
        work = event.note or f"{rate:,.0f} cells/s"  # all of it fits a line of 80 columns
        return f"lower {event.lower:.5g}, upper {upper:.5g}, gap {gap:.2g}, {work}"

    with saying(what, quiet) as say:
        yield None if say is None else lambda event: say(told(event))


def print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value, allow_nan=False))


def _version(asked: bool) -> None:
    if asked:
        print(f"mipmech {__version__}")
        raise typer.Exit


def timer_of(seconds: float | None) -> Timer:
    return Budget(math.inf if seconds is None else seconds).start()


def can_be_written(file: Path | None, field: str) -> None:
    """Refuse a file in no folder before the work is done, not after it."""
    if file is None:
        return
    if not os.access(file.parent, os.W_OK):
        said = f"cannot be written: there is no folder {file.parent}, or it is not writable"
        raise InputError(said, file=file, field=field)
    if field == "plot" and file.suffix.lower() not in PICTURES:
        said = f"has no ending that says what it is; give one of {', '.join(PICTURES)}"
        raise InputError(said, file=file, field=field)


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Evaluation mechanisms for strategic agents: grade them exactly, design them well."""
