"""The command line: a thin coat over the Python API.

Every command takes ``--json`` (one object on stdout and nothing else), ``--seconds`` (wall time of
the whole command) and ``--quiet`` (no progress). Exit status: 0 done, 1 a gap left open or a failed
check, 2 bad input. Bad input never shows a traceback.
"""

from __future__ import annotations

import io
import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from mipmech import __version__, families
from mipmech.description import describe
from mipmech.errors import InputError
from mipmech.files import reason
from mipmech.instance import Instance
from mipmech.oracles import Budget, Timer

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
Work = Callable[[], int | None]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")]


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns (and, as a program, exits with) the status."""
    given = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):  # a terminal without ‖ or η shows ? and goes on
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        status = _run(given)
        sys.stdout.flush()
    except OSError as error:
        # The reader of our output has gone, as with `| head`; or its disk is full.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0 if isinstance(error, BrokenPipeError) else 2
        if status:
            print(f"error: the output cannot be written: {reason(error)}", file=sys.stderr)
    if arguments is None:
        sys.exit(status)
    return status


def _run(given: list[str]) -> int:
    try:
        # Typer only parses: a command returns its work, and Ctrl-C or a closed pipe come to us.
        work = app(given, standalone_mode=False)
        return (work() or 0) if callable(work) else int(work or 0)
    except InputError as error:
        _complain(error, "--json" in given)
        return 2
    except KeyboardInterrupt:
        _complain(InputError("interrupted before there was a result"), "--json" in given)
        return 1
    except Exception as error:
        # Typer carries its parser inside, so its usage errors are known by what they can do.
        explain: Callable[[], str] | None = getattr(error, "format_message", None)
        if explain is None:
            raise
        text = explain().strip()
        if text.startswith("Usage:"):  # a command was wanted and none was given
            print(text)
        else:
            text = text if text.endswith((".", ")")) else f"{text}."
            _complain(InputError(f"{text} Try 'mipmech --help'."), "--json" in given)
        return 2


def _complain(error: InputError, as_json: bool) -> None:
    if as_json:
        print(json.dumps(error.to_dict()))
    else:
        print(f"error: {error}", file=sys.stderr)


@contextmanager
def _progress(what: str, quiet: bool) -> Iterator[None]:
    """A line on stderr while something may take a while, if somebody is looking."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console  # noqa: PLC0415  (slow to import)

    with Console(stderr=True).status(what):
        yield


def _print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value, allow_nan=False))


def _version(asked: bool) -> None:
    if asked:
        print(f"mipmech {__version__}")
        raise typer.Exit


def _timer(seconds: float | None) -> Timer:
    return Budget(math.inf if seconds is None else seconds).start()


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Evaluation mechanisms for strategic agents: grade them exactly, design them well."""


@app.command()
def show(
    instance: Annotated[Path, typer.Argument(help="An instance file.")],
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Save a picture (png, pdf, svg).")
    ] = None,
    as_json: Json = False,
    seconds: Seconds = None,
    quiet: Quiet = False,
) -> Work:
    """What is in an instance, and what the paper's closed-form rules would do on it."""

    def work() -> int:
        timer = _timer(seconds)
        with _progress(f"reading {instance}", quiet or as_json):
            sample = Instance.load(instance)
        with _progress("grading the closed-form rules", quiet or as_json):
            description = describe(sample, timer)
        no_picture = None
        if plot is not None and description.best is None:
            no_picture = "there is no rule to draw"
        elif plot is not None and timer.left == 0:
            no_picture = "the time limit came first"
        elif plot is not None and description.best is not None:
            from mipmech.plot import save_picture  # noqa: PLC0415  (matplotlib is slow to import)

            with _progress(f"drawing {plot}", quiet or as_json):
                save_picture(description.best.recount, plot)
        if as_json:
            picture = None if no_picture or plot is None else str(plot)
            _print_json({**description.to_dict(), "plot": picture})
        else:
            from mipmech.tell import tell  # noqa: PLC0415  (rich is slow to import)

            tell(description, plot, no_picture)
        return 0 if description.complete else 1

    return work


@app.command()
def make(
    family: Annotated[str, typer.Argument(help=f"One of: {', '.join(families.NAMES)}.")],
    agents: Annotated[int, typer.Option("--agents", help="m, the number of agents.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The instance file to write.")],
    rank: Annotated[int, typer.Option("--rank", help="k, the number of visible features.")] = 2,
    seed: Annotated[int, typer.Option("--seed", help="The same seed, the same instance.")] = 0,
    hidden: Annotated[int, typer.Option("--hidden", help="Further features, not seen.")] = 1,
    cost: Annotated[
        float | None, typer.Option("--cost", help="One cost for all instead of the family's.")
    ] = None,
    table: Annotated[
        Literal["inline", "csv", "npy"],
        typer.Option("--table", help="Where the agents go: into the file or beside it."),
    ] = "inline",
    as_json: Json = False,
    seconds: Seconds = None,
    quiet: Quiet = False,
) -> Work:
    """Make an instance of a named family."""

    def work() -> None:
        _timer(seconds)
        with _progress(f"making {output}", quiet or as_json):
            sample = families.make(family, agents, rank, seed, hidden=hidden, cost=cost)
            sample.save(output, table)
        made = {
            "file": str(output),
            "name": sample.name,
            "digest": sample.digest,
            "agents": sample.size,
            "features": list(sample.feature_names),
            "rank": sample.view.rank,
        }
        if as_json:
            _print_json(made)
        else:
            sizes = f"{sample.size} agents, {sample.width} features, {sample.view.rank} seen"
            print(f"wrote {output}: {sizes}; digest {sample.digest[:12]}")

    return work


if __name__ == "__main__":
    main()
