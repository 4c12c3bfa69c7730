"""The command grade: what a rule of one's own does, exactly."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from mipmech.cli.requirements import Required, demanding
from mipmech.cli.shell import InstanceFile, Movers, Plot, Shell, check_outputs, command, written
from mipmech.design.movers import save_movers
from mipmech.errors import InputError
from mipmech.model.instance import Instance


@command()
@demanding
def grade(
    shell: Shell,
    require: Required,
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
    movers: Movers = None,
    plot: Plot = None,
) -> int:
    """What a rule of your own does: exact gain, who moves, share of the best."""
    # Imported here: help comes at once without.
    from mipmech.design import grade as grading  # noqa: PLC0415
    from mipmech.model.typed_rules import load_rule, written_rule  # noqa: PLC0415

    check_outputs([instance, Path(rule), certified], plot=plot, movers=movers)
    value = load_rule(rule)
    with shell.saying(f"reading {instance}"):
        sample = Instance.load(instance)
    required = require(sample)
    try:
        given = written_rule(sample, value, threshold)
    except InputError as error:
        raise error if rule.lstrip().startswith("{") else error.located(rule) from None
    optimum = None
    if certified is None and grading.is_certificate(value):
        certified = Path(rule)
    if certified is not None:
        with shell.saying(f"checking {certified}") as watch:
            optimum = grading.certified_optimum(
                certified, sample, shell.timer.left, watch, required
            )
    with shell.saying("grading"):
        found = grading.grade(sample, given, optimum=optimum, require=required)
    kept = shell.keep(movers, "movers", partial(save_movers, found.recount))
    picture = shell.draw(found.recount, plot)
    content = {**found.to_dict(), "plot": written(picture.file), "movers": written(kept)}
    shell.show(content, "grade.tell_grade", found, *picture)
    return 1 if found.contradicted else 0
