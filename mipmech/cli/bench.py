"""Commands about batches: bench, and what can be done with the folder of a run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from mipmech.cli.counting import counting
from mipmech.cli.shell import Shell, app, check_outputs, command
from mipmech.cli.workers import (
    LocalCluster,
    Retry,
    Scheduler,
    Workers,
    check_choice,
    chosen_executor,
)
from mipmech.errors import InputError
from mipmech.workers.processes import cores

if TYPE_CHECKING:  # batches are imported when they are first needed: help comes at once without
    from mipmech.studies.batch import Plan


class _PlanFirst(TyperGroup):
    """A group whose first word may be a plan: `mipmech bench plan.toml` runs it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["run", *args]
        parsed: list[str] = super().parse_args(ctx, args)
        return parsed


bench = typer.Typer(
    cls=_PlanFirst,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Batches: `mipmech bench PLAN.toml` runs a plan, or what is missing of it.",
)
app.add_typer(bench, name="bench")

RunPath = Annotated[Path, typer.Argument(help="The folder of a run.")]


@command(bench)
def run(
    shell: Shell,
    plan: Annotated[Path, typer.Argument(help="A plan file (docs/batches.md).")],
    out: Annotated[
        Path | None, typer.Option("--out", help="The run's folder [PLAN.run, beside the plan].")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the jobs and an estimate; do nothing.")
    ] = False,
    retry: Retry = None,
    part: Annotated[
        str, typer.Option("--part", help="K/N: only the K-th of N parts of the jobs.")
    ] = "1/1",
    workers: Workers = None,
    scheduler: Scheduler = None,
    local_cluster: LocalCluster = None,
) -> int:
    """Run a plan, or what is missing of it."""
    from mipmech.studies import batch  # noqa: PLC0415
    from mipmech.studies.batch.bench import default_folder  # noqa: PLC0415

    shown = re.fullmatch(r"([1-9]\d{0,8})/([1-9]\d{0,8})", part)
    if shown is None or int(shown[1]) > int(shown[2]):
        raise InputError(f"is {part!r}; give K/N such as 1/4", field="part")
    share = int(shown[1]), int(shown[2])
    read = batch.Plan.load(plan)
    folder = default_folder(read) if out is None else out
    check_choice(workers, scheduler, local_cluster)
    used = workers if scheduler or local_cluster else workers or cores()
    if dry_run:
        slots = used or local_cluster or cores()
        return _dry_run(shell, read, folder, share, retry is not None, slots)
    with counting(shell.quiet or shell.as_json) as bar:
        found = batch.run_plan(
            read,
            folder,
            executor=lambda: chosen_executor(used, scheduler, local_cluster),
            retry=retry is not None,
            part=share,
            budget=shell.budget(),
            reading=None if bar is None else bar.reading,
            watch=None if bar is None else bar.ran,
            say=(lambda _: None) if bar is None else bar.say,
        )
    shell.show(found.to_dict(), "batch.tell_summary", found)
    return 0 if found.complete else 1


def _dry_run(
    shell: Shell, plan: Plan, path: Path, part: tuple[int, int], retry: bool, workers: int
) -> int:
    from mipmech.studies import batch  # noqa: PLC0415
    from mipmech.studies.batch.forecast import Forecast  # noqa: PLC0415
    from mipmech.studies.batch.runner import part_of  # noqa: PLC0415

    with shell.saying("reading the instances") as say:
        watch = None if say is None else lambda done, total: say(f"{done} of {total}")
        expansion = batch.expand(plan, watch=watch, timer=shell.timer)
    jobs = part_of(expansion.jobs, part)
    known = (
        batch.RunFolder.open(path).records(whole=False).last if (path / "run.json").exists() else {}
    )
    states = {job.id: known[job.id].status for job in jobs if job.id in known}
    settled = {key for key, state in states.items() if state == "done" or not retry}
    left = [job for job in jobs if job.id not in settled]
    forecast = Forecast(left, workers)
    for job in jobs:
        if states.get(job.id) == "done":
            forecast.learn(job, known[job.id].seconds)
    listed = [
        {**job.to_dict(), "label": expansion.label(job), "status": states.get(job.id, "missing")}
        for job in jobs
    ]
    content = {
        "plan": plan.name,
        "folder": str(path),
        "jobs": listed,
        "left": len(left),
        "workers": workers,
        "seconds": {"expected": forecast.seconds, "most": forecast.most},
        "broken": list(expansion.broken),
    }
    shell.show(content, "batch.tell_jobs", expansion, jobs, states, len(left), path, forecast)
    return 0


@command(bench)
def status(shell: Shell, folder: RunPath) -> int:
    """How a run stands; also while it goes on."""
    from mipmech.studies import batch  # noqa: PLC0415

    with shell.saying(f"reading {folder}"):
        found = batch.status_of(folder)
    shell.show(found.to_dict(), "batch.tell_status", found)
    return 0


@command(bench)
def export(
    shell: Shell,
    folder: RunPath,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write [csv: stdout].")
    ] = None,
    kind: Annotated[
        Literal["csv", "parquet"], typer.Option("--format", help="parquet needs pyarrow.")
    ] = "csv",
) -> int:
    """The records of a run as one table, a line for each job."""
    from mipmech.studies import batch  # noqa: PLC0415

    if output is None and shell.as_json:
        raise InputError("is missing: say where the table goes, -o FILE", field="output")
    check_outputs([folder], output=output)
    with shell.saying(f"reading {folder}"):
        text = batch.export_run(folder, output, kind)
    if output is None:
        print(text, end="")
    else:
        shell.show({"file": str(output), "format": kind}, "lines.tell", f"wrote {output}")
    return 0


@command(bench)
def merge(
    shell: Shell,
    folders: Annotated[list[Path], typer.Argument(help="Folders of runs.")],
    out: Annotated[Path, typer.Option("--out", help="The folder to put them into.")],
) -> int:
    """Put the records of several runs into one folder; the others stay as they are."""
    from mipmech.studies import batch  # noqa: PLC0415

    with shell.saying(f"merging into {out}"):
        found = batch.merge_runs(folders, out)
    line = (
        f"{found.folder}: {found.records:,} records, {found.added:,} of them new;"
        f" {found.twice:,} were there more than once"
    )
    shell.show(found.to_dict(), "lines.tell", line)
    return 0
