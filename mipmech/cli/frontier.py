"""The command frontier: the certified optimum for a range of limits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mipmech.cli.requirements import Range, Required, ranging
from mipmech.cli.shell import (
    InstanceFile,
    Plot,
    Shell,
    Threads,
    check_outputs,
    closing_in,
    command,
    written,
)
from mipmech.cli.workers import LocalCluster, Scheduler, Workers, check_choice, chosen_executor
from mipmech.design.certificate import DEFAULT_GAP
from mipmech.design.frontier import frontier as tightened
from mipmech.errors import InputError
from mipmech.model.instance import Instance
from mipmech.workers.processes import cores


@command()
@ranging
def frontier(
    shell: Shell,
    instance: InstanceFile,
    require: Required,
    limits: Range,
    gap: Annotated[
        float, typer.Option("--gap", help="The relative gap (upper − lower)/upper of each row.")
    ] = DEFAULT_GAP,
    table: Annotated[
        Path | None, typer.Option("--csv", help="Write the rows, with shares of groups (csv).")
    ] = None,
    plot: Plot = None,
    threads: Threads = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    local_cluster: LocalCluster = None,
) -> int:
    """The certified optimum for a range of capacities, or of differences between groups."""
    check_choice(workers, scheduler, local_cluster)
    helped = any(given is not None for given in (workers, scheduler, local_cluster))
    if threads is not None and helped:
        said = "is given together with --threads; workers have one thread each, so give one"
        raise InputError(f"{said} of the two", field="workers")
    check_outputs([instance], csv=table, plot=plot)
    with shell.saying(f"reading {instance}"):
        sample = Instance.load(instance)
        required = require(sample)
    used = (1 if helped else cores()) if threads is None else threads
    with (
        chosen_executor(workers, scheduler, local_cluster) as executor,
        shell.following("frontier", closing_in) as watch,
    ):
        found = tightened(
            sample,
            accepted=limits.values if limits.groups is None else None,
            parity=None if limits.groups is None else (limits.groups, limits.values),
            require=required,
            gap=gap,
            budget=shell.budget(used, watch),
            executor=executor,
        )
    kept = shell.keep(table, "csv", found.save)
    picture = shell.draw(found if found.rows else None, plot)
    content = {**found.to_dict(), "csv": written(kept), "plot": written(picture.file)}
    shell.show(content, "frontier.tell_frontier", found, kept, picture)
    return 0 if found.complete else 1
