"""What all commands share: the program itself, common options, progress on stderr, output."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from mipmech import untrusted
from mipmech.budget import Budget, Event, Timer
from mipmech.cli.sections import SectionedCommand
from mipmech.design.printed import Measure, printed
from mipmech.errors import InputError
from mipmech.files import try_writing
from mipmech.model.requirements import Demands
from mipmech.plots.drawn import Drawn
from mipmech.text import printable, relative_gap
from mipmech.tolerances import LARGEST_TABLE
from mipmech.version import __version__

app = typer.Typer(
    name="mipmech",
    help="Finds, and certifies, the acceptance rule that most improves true quality.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

InstanceFile = Annotated[Path, typer.Argument(help="An instance file.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Save a picture (png, pdf, svg).")]
Threads = Annotated[
    int | None, typer.Option("--threads", help="Threads; the result is the same [all cores].")
]
Movers = Annotated[
    Path | None, typer.Option("--movers", help="Write who moves, from where to where (csv).")
]
PICTURES = (".png", ".pdf", ".svg", ".eps", ".ps", ".jpg", ".jpeg", ".webp", ".tif", ".tiff")
# What the files of a run end with.
KEPT = (".json", ".jsonl", ".npy")
# The options that every command has.
SHARED: dict[str, tuple[Any, Any]] = {
    "as_json": (
        Annotated[bool, typer.Option("--json", help="One JSON object on stdout, nothing else.")],
        False,
    ),
    "seconds": (
        Annotated[
            float | None,
            typer.Option(
                "--seconds", help="Wall time of the whole command; compiling, once, is not counted."
            ),
        ],
        None,
    ),
    "quiet": (Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")], False),
}


@dataclass
class Shell:
    """What a command knows of the one who called it.

    silent : whether no progress is wanted, or it would disturb
    timer : the wall clock of the whole command
    lost : what went wrong with files of the result, which is printed all the same
    """

    as_json: bool
    seconds: float | None
    quiet: bool
    timer: Timer = field(init=False)
    lost: list[Exception] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.timer = Budget(math.inf if self.seconds is None else self.seconds).start()

    @property
    def silent(self) -> bool:
        """Whether no progress is wanted, or stderr is no terminal."""
        return self.quiet or self.as_json or not sys.stderr.isatty()

    def budget(self, threads: int = 1, watch: Callable[[Event], None] | None = None) -> Budget:
        """What is left of the time."""
        return Budget(self.timer.left, threads, watch=watch)

    def show(self, content: dict[str, Any], teller: str, *words: Any) -> None:
        """Print a result: as JSON, or by a function of `mipmech.terminal`: "design.tell_answer"."""
        if self.as_json:
            told = self.lost_files()
            print(json.dumps(content | (told.to_dict() if told else {}), allow_nan=False))
            return
        module, _, name = teller.partition(".")  # imported now: rich is slow to import
        getattr(importlib.import_module(f"mipmech.terminal.{module}"), name)(*words)

    def keep(self, file: Path | None, field: str, write: Callable[[Path], object]) -> Path | None:
        """Write a file of the result; the file, if it is there now.

        Hours of work are not thrown away for a picture: what goes wrong here is told after the
        result (`ended`).
        """
        if file is None:
            return None
        try:
            write(file)
        except InputError as error:
            found = error.located(file)
            self.lost.append(InputError(found.message, file=found.file, field=found.field or field))
        except KeyboardInterrupt:
            said = "was not written: interrupted"
            self.lost.append(InputError(said, file=file, field=field))
        except Exception as error:  # a bug, which is not hidden, only told last
            self.lost.append(error)
        else:
            return file
        return None

    def draw(
        self,
        found: Any,
        plot: Path | None,
        measure: Measure | None = None,
        demands: Demands | None = None,
    ) -> Drawn:
        """Save the picture of a result, if one is wanted.

        measure, demands : for a bare rule, what it was printed for, and what it must meet
        """
        if plot is None or found is None:
            return Drawn(missing=None if plot is None else "there is no rule to draw")

        def save_picture(file: Path) -> None:
            from mipmech.plots.rule import save  # noqa: PLC0415  (matplotlib is slow to import)

            words = []
            if measure is not None:
                words.append(str(printed(found, measure=measure, demands=demands)))
            save(found.plot(*words), file)

        kept = self.keep(plot, "plot", save_picture)
        return Drawn(kept) if kept else Drawn(missing="it could not be saved")

    def lost_files(self) -> InputError | None:
        """All that went wrong with files, as one error; None if nothing did."""
        faults = [error for error in self.lost if isinstance(error, InputError)]
        if not faults:
            return None
        first, *others = faults
        message = "; ".join([first.message, *map(str, others)])
        return InputError(message, file=first.file, field=first.field)

    def ended(self, status: int | None) -> int | None:
        """The exit status, after the result was printed; or what went wrong with its files."""
        for error in self.lost:
            if not isinstance(error, InputError):
                raise error
        told = self.lost_files()
        if told is None:
            return status
        if not self.as_json:
            raise told
        return 2

    @contextmanager
    def saying(self, what: str) -> Iterator[Callable[[str], None] | None]:
        """A line on stderr while something may take a while, to which words can be added."""
        if self.silent:
            yield None
            return
        from rich.console import Console  # noqa: PLC0415  (slow to import)
        from rich.markup import escape  # noqa: PLC0415

        with Console(stderr=True).status(escape(printable(f"{what} …"))) as line:
            yield lambda text: line.update(escape(printable(f"{what}: {text}")))

    @contextmanager
    def following(
        self, what: str, told: Callable[[Event], str]
    ) -> Iterator[Callable[[Event], None] | None]:
        """A line on stderr that follows the events of a search."""

        def words(event: Event) -> str:
            nothing_yet = event.upper is None and not event.work
            return event.note if event.note and nothing_yet else told(event)

        with self.saying(what) as say:
            yield None if say is None else lambda event: say(words(event))


def answering(event: Event) -> str:
    """How an oracle is doing."""
    upper = "?" if event.upper is None else f"{event.upper:.4g}"
    work = event.note or (f"{event.work:,} cones or nodes" if event.work else "starting")
    return f"at least {event.lower:.4g}, at most {upper}; {work}"


def closing_in(event: Event) -> str:
    """How a certificate is doing, in a line of 80 columns."""
    upper = event.upper or 0.0
    rate = event.work / event.seconds if event.seconds > 0 else 0.0
    gap = relative_gap(event.lower, upper)
    work = event.note or f"{rate:,.0f} cells/s"
    return f"lower {event.lower:.5g}, upper {upper:.5g}, gap {gap:.2g}, {work}"


def command(
    group: typer.Typer = app, name: str | None = None
) -> Callable[[Callable[..., int | None]], Callable[..., int | None]]:
    """Make a function a command: it gets a `Shell`, and the command the options that all have.

    Typer only parses. The work is done afterwards, where Ctrl-C and closed pipes come to us.
    """

    def decorate(work: Callable[..., int | None]) -> Callable[..., int | None]:
        signature = inspect.signature(work, eval_str=True)
        own = list(signature.parameters.values())[1:]
        shared = [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=value, annotation=kind)
            for key, (kind, value) in SHARED.items()
        ]

        @functools.wraps(work)
        def parsed(*, as_json: bool, seconds: float | None, quiet: bool, **given: Any) -> Any:
            def run() -> int | None:
                shell = Shell(as_json, seconds, quiet)
                return shell.ended(work(shell, **given))

            return run

        parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own] + shared
        parsed.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        parsed.__annotations__ = {p.name: p.annotation for p in parameters}
        group.command(name or work.__name__, cls=SectionedCommand)(parsed)
        return work

    return decorate


def _version(asked: bool) -> None:
    if asked:
        print(f"mipmech {__version__}")
        raise typer.Exit


def can_be_written(file: Path | None, field: str) -> None:
    """Try an output before the work is done, not after it."""
    if file is None:
        return
    if field == "plot" and file.suffix.lower() not in PICTURES:
        said = f"has no ending that says what it is; give one of {', '.join(PICTURES)}"
        raise InputError(said, file=file, field=field)
    if not file.parent.is_dir():
        said = f"cannot be written: there is no folder {file.parent}; make it first"
        raise InputError(said, file=file, field=field)
    try:
        try_writing(file)
    except InputError as error:
        raise InputError(error.message, file=file, field=field) from None


def check_outputs(inputs: Iterable[str | Path | None] = (), **outputs: Path | None) -> None:
    """Try outputs before the work, and refuse one that would replace what is read, or another.

    Parameters
    ----------
    inputs : iterable of str or Path
        Files that are read (tables of instances need not be named), and folders of runs.
    **outputs : Path
        The file of each option that writes one.
    """
    given = {name: file for name, file in outputs.items() if file is not None}
    for name, file in given.items():
        can_be_written(file, name)
    read = [Path(path) for path in inputs if path is not None and os.path.exists(path)]
    if any(file.exists() for file in given.values()):
        read += [table for path in read if (table := _table_of(path)) is not None]
    seen: dict[str, Path] = {}
    for name, file in given.items():
        for other, path in seen.items():
            if _same(file, path):
                said = f"is what --{other} writes too; choose another name"
                raise InputError(said, file=file, field=name)
        if any(_same(file, path) or _part_of(file, path) for path in read):
            said = "is read by this command, so it is not replaced; choose another name"
            raise InputError(said, file=file, field=name)
        seen[name.replace("_", "-")] = file


def _same(one: Path, other: Path) -> bool:
    """Whether two names lead to one file, there or to be written."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()


def _table_of(file: Path) -> Path | None:
    """The table that an instance file names."""
    try:
        (name,) = untrusted.json_object(file, LARGEST_TABLE)["agents"].values()
        return (file.parent / str(name)).resolve()
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError):
        return None


def _part_of(file: Path, folder: Path) -> bool:
    """Whether a file is one of those that a run keeps in its folder; a report may lie there."""
    kept = file.suffix in KEPT or file.name == "lock"
    return kept and folder.is_dir() and file.resolve().is_relative_to(folder.resolve())


def written(file: Path | None) -> str | None:
    """The name of a file, for JSON."""
    return None if file is None else str(file)


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Finds, and certifies, the acceptance rule that most improves true quality."""
