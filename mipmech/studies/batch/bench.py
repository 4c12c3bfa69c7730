"""From a plan file to a run: what `mipmech bench` does."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from mipmech.budget import Budget
from mipmech.errors import InputError
from mipmech.studies.batch.folder import RunFolder
from mipmech.studies.batch.jobs import expand
from mipmech.studies.batch.plan import Plan
from mipmech.studies.batch.runner import Clock, Progress, RunSummary, run
from mipmech.workers.executor import Executor
from mipmech.workers.processes import Processes, cores


def run_plan(
    plan: Plan | str | Path,
    out: str | Path | None = None,
    *,
    workers: int | None = None,
    executor: Callable[[], AbstractContextManager[Executor | None]] | None = None,
    retry: bool = False,
    part: tuple[int, int] = (1, 1),
    budget: Budget | None = None,
    reading: Callable[[int, int], None] | None = None,
    watch: Callable[[Progress], None] | None = None,
    say: Callable[[str], None] = lambda _: None,
    clock: Clock | None = None,
) -> RunSummary:
    """Run the jobs of a plan that are not recorded in the folder.

    out : the run's folder; without one, the plan's name with the ending .run, beside it
    workers : processes of one thread each; None takes all cores
    executor : makes another executor instead, such as `workers.dask.Cluster`
    retry : repeat jobs that have no result
    part : (k, n), only the k-th of n parts of the jobs, for several machines without a cluster
    reading : receives the number of instances read, and of all
    watch, say : receive progress, and messages for the user
    """
    timer = (budget or Budget()).start()
    read = plan if isinstance(plan, Plan) else Plan.load(plan)
    if workers is not None and workers < 1:
        raise InputError(f"is {workers}; give 1 or more", field="workers")
    if not 1 <= part[0] <= part[1]:
        said = f"is {part[0]}/{part[1]}; give k/n with k from 1 to n"
        raise InputError(said, field="part")
    folder = RunFolder.make(default_folder(read) if out is None else out)
    with folder.locked():
        expansion = expand(read, folder.keep, reading, timer)
        folder.follow(expansion)
        for fault in expansion.broken:
            say(f"no instance: {fault}")
        with executor() if executor is not None else Processes(workers or cores()) as chosen:
            assert chosen is not None
            return run(
                expansion, folder, chosen, timer, retry=retry, part=part, watch=watch, say=say,
                clock=clock,
            )  # fmt: skip


def default_folder(plan: Plan) -> Path:
    """Beside the plan's file."""
    if plan.path is None:
        raise InputError("is missing; give a folder for the run", field="out")
    return plan.path.with_suffix(".run")
