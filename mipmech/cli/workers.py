"""Who does the work of a command: processes on this machine, or a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

import typer

from mipmech.errors import InputError
from mipmech.workers.dask import Cluster, local
from mipmech.workers.executor import Executor, ExecutorLost
from mipmech.workers.processes import Processes

Workers = Annotated[int | None, typer.Option("--workers", help="Processes of one thread each.")]
Scheduler = Annotated[
    str | None,
    typer.Option("--scheduler", help="A Dask scheduler instead: tcp://host:8786."),
]
LocalCluster = Annotated[
    int | None,
    typer.Option("--local-cluster", help="A Dask cluster with this many workers on this machine."),
]
Retry = Annotated[
    Literal["failed"] | None,
    typer.Option("--retry", help="failed: do those jobs again that have no result."),
]


def check_choice(
    workers: int | None, scheduler: str | None = None, local_cluster: int | None = None
) -> None:
    """Refuse options that do not go together, before anything starts."""
    given = {"workers": workers, "scheduler": scheduler, "local_cluster": local_cluster}
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        said = f"does not go together with {named[0].replace('_', '-')}; give one of them"
        raise InputError(said, field=named[1])
    for name, value in (("workers", workers), ("local_cluster", local_cluster)):
        if value is not None and value < 1:
            raise InputError(f"is {value}; give 1 or more", field=name)


@contextmanager
def chosen_executor(
    workers: int | None, scheduler: str | None = None, local_cluster: int | None = None
) -> Iterator[Executor | None]:
    """The executor that the options ask for; None if they ask for none."""
    check_choice(workers, scheduler, local_cluster)
    if scheduler is not None:
        try:
            cluster = Cluster(scheduler)
        except ExecutorLost as fault:  # one that was never there is a mistake in the address
            raise InputError(str(fault), field="scheduler") from None
        with cluster:
            yield cluster
    elif local_cluster is not None:
        with local(local_cluster) as cluster:
            yield cluster
    elif workers is not None:
        with Processes(workers) as processes:
            yield processes
    else:
        yield None
