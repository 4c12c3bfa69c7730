"""The command grade: what a rule of one's own does, exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mipmech.cli.shell import InstanceFile, Plot, Shell, can_be_written, command, draw, written
from mipmech.errors import InputError
from mipmech.model.instance import Instance


@command()
def grade(
    shell: Shell,
    instance: InstanceFile,
    rule: Annotated[
        str,
        typer.Option("--rule", help='Weights such as \'{"gpa": 2, "sat": 3}\', or a JSON file.'),
    ],
    threshold: Annotated[
        float | None,
        typer.Option("--threshold", help="The score to reach; instead of the one in the file."),
    ] = None,
    certified: Annotated[
        Path | None,
        typer.Option("--certified", help="A certificate of the best gain, to be held against."),
    ] = None,
    plot: Plot = None,
) -> int:
    """What a rule of your own does: exact gain, who moves, share of the best."""
    # Imported here: help comes at once without.
    from mipmech.design import grade as grading  # noqa: PLC0415
    from mipmech.model.written import load_rule, written_rule  # noqa: PLC0415

    can_be_written(plot, "plot")
    value = load_rule(rule)
    with shell.saying(f"reading {instance}"):
        sample = Instance.load(instance)
    try:
        given = written_rule(sample, value, threshold)
    except InputError as error:
        raise error if rule.lstrip().startswith("{") else error.located(rule) from None
    optimum = None
    if certified is None and grading.is_certificate(value):
        certified = Path(rule)
    if certified is not None:
        with shell.saying(f"checking {certified}") as watch:
            optimum = grading.certified_optimum(certified, sample, shell.timer.left, watch)
    with shell.saying("grading"):
        found = grading.grade(sample, given, optimum=optimum)
    no_picture = draw(shell, found.recount, plot)
    content = {**found.to_dict(), "plot": None if no_picture else written(plot)}
    shell.show(content, "grade.tell_grade", found, plot, no_picture)
    return 1 if found.contradicted else 0
