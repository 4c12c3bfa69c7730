"""The command line: a thin coat over the Python API.

Every command takes ``--json`` (one object on stdout and nothing else), ``--seconds`` (wall time of
the whole command) and ``--quiet`` (no progress). Exit status: 0 done, 1 a gap left open or a failed
check, 2 bad input. Bad input never shows a traceback.
"""

from __future__ import annotations

import functools
import io
import json
import os
import re
import sys
from collections.abc import Callable
from typing import Any

import typer.main

from mipmech.cli import bench, design, frontier, grade, new, studies
from mipmech.cli.shell import app
from mipmech.errors import InputError
from mipmech.files import reason
from mipmech.text import printable

# The commands, in the order of `mipmech --help`; importing their modules has made them known.
COMMANDS = (new, design, frontier, grade, studies, bench)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns (and, as a program, exits with) the status."""
    given = sys.argv[1:] if arguments is None else arguments
    for name in ("stdout", "stderr"):  # closed, as by >&-
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
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
            _print_error(f"error: the output cannot be written: {reason(error)}")
    if arguments is None:
        sys.exit(status)
    return status


@functools.cache
def _parser() -> Any:
    """The parser of all commands; Typer would make it anew for every call in one process."""
    return typer.main.get_command(app)


def _run(given: list[str]) -> int:
    try:
        # Typer only parses: a command returns its work, and Ctrl-C or a closed pipe come to us.
        work = _parser()(given, prog_name="mipmech", standalone_mode=False)
        return (work() or 0) if callable(work) else int(work or 0)
    except InputError as error:
        _complain(error, "--json" in given)
        return 2
    except MemoryError:
        _complain(InputError("there is not enough memory for this"), "--json" in given)
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
            context = getattr(error, "ctx", None)
            names = [known.name for known in app.registered_commands]
            names += [group.name for group in app.registered_groups]
            program = " ".join(["mipmech", *(word for word in given[:1] if word in names)])
            program = program if context is None else context.command_path
            _complain(InputError(f"{_sentence(text)} Try '{program} --help'."), "--json" in given)
        return 2


# What the parser says, and what it means.
PLAIN = (
    (r"Value error, ", ""),
    (r"Input should be a valid integer.*", "give a whole number"),
    (r"Input should be a valid number.*", "give a number"),
    (r"Got unexpected extra arguments?(\(s\))? \((.*)\)", r"Too many arguments: \2"),
    (r" \(Possible options: (.*)\)", r". Did you mean \1?"),
    (r"\?\.$", "?"),
)


def _sentence(text: str) -> str:
    """A usage error of the parser as a sentence."""
    for said, meant in PLAIN:
        text = re.sub(said, meant, text)
    return text if text.endswith((".", "?")) else f"{text}."


def _complain(error: InputError, as_json: bool) -> None:
    if as_json:
        print(json.dumps(error.to_dict()))
    else:
        _print_error(printable(f"error: {error}"))


def _print_error(text: str) -> None:
    """A line on stderr; if nobody can have it, the status says it."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
