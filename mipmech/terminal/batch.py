"""What batches say to a terminal: the jobs of a plan, what a run came to, how it stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from mipmech.studies.batch import Expansion, Job, RunStatus, RunSummary
from mipmech.studies.batch.forecast import Forecast
from mipmech.terminal.console import in_one_piece, tell_entries, tell_heading, tell_table
from mipmech.text import estimate, printable

# Jobs, and failures, that are listed one by one; all of them stand in the --json object.
LISTED, FAILURES = 30, 10
# Columns of the table of a status, in their order.
STATES = ("done", "failed", "timeout", "memory", "crashed", "missing")


def tell_jobs(
    expansion: Expansion,
    jobs: Sequence[Job],
    states: Mapping[str, str],
    left: int,
    folder: Path,
    forecast: Forecast,
) -> None:
    """The jobs of a plan, and how long they would take.

    states : what has become of those that are on record
    left : how many are to be done
    """
    with in_one_piece() as console:
        tell_heading(console, expansion.name)
        table = Table(box=SIMPLE_HEAD, show_edge=False)
        table.add_column("id", no_wrap=True)
        table.add_column("job")
        table.add_column("", no_wrap=True)
        table.add_column("seconds", justify="right")
        for job in jobs[:LISTED]:
            state = states.get(job.id, "broken" if job.fault is not None else "")
            table.add_row(job.id[:8], printable(expansion.label(job)), state, f"{job.limit:g}")
        console.print(table)
        if len(jobs) > LISTED:
            console.print(f" … and {len(jobs) - LISTED:,} more (--json lists all)")
        tell_entries(
            console,
            {
                "jobs": f"{len(jobs):,} on {len(expansion.subjects):,} instances;"
                f" {left:,} to do in {folder}",
                "time": f"about {estimate(forecast.seconds)} on {forecast.workers} workers, at"
                f" most {estimate(forecast.most)} if every job uses all its time",
                **_broken(expansion.broken),
            },
        )


def _broken(errors: Sequence[str]) -> dict[str, str]:
    return {"broken": "; ".join(errors) + ": failures on the record"} if errors else {}


def tell_summary(found: RunSummary) -> None:
    """What a run came to."""
    with in_one_piece() as console:
        tell_heading(console, found.folder)
        left = f"{found.missing:,} not done" if found.missing else "all on record"
        entries = {
            "jobs": f"{found.total:,}: {found.before:,} were on record, {found.done:,} done now;"
            f" {left}",
            "time": f"{estimate(found.seconds)}; {found.stop}",
        }
        if found.failed:
            counts = ", ".join(f"{count:,} {state}" for state, count in found.failed.items())
            why = f"mipmech bench status {found.folder} says why, --retry failed tries again"
            entries["no result"] = f"{counts}; {why}"
        if found.missing:
            entries["go on"] = "run the same command again: it does what is missing"
        tell_entries(console, entries)


def tell_status(found: RunStatus) -> None:
    """How a run stands."""
    with in_one_piece() as console:
        tell_heading(console, found.plan or found.folder)
        _tell_kinds(console, found)
        done = found.total - found.counts.get("missing", 0)
        entries = {
            "jobs": f"{done:,} of {found.total:,} on record, {estimate(found.seconds)} of work",
            "at work": found.busy or "nobody",
        }
        if found.other:
            entries["besides"] = f"{found.other:,} records of jobs that are not in the plan"
        if found.damaged:
            entries["damaged"] = (
                f"{found.damaged:,} records cannot be read; their jobs count as not done"
            )
        tell_entries(console, entries)
        for label, reason in found.failures[:FAILURES]:
            tell_entries(console, {"no result": f"{label}: {reason}"})
        if len(found.failures) > FAILURES:
            more = len(found.failures) - FAILURES
            tell_entries(console, {"": f"… and {more:,} more (--json lists all)"})


def _tell_kinds(console: Console, found: RunStatus) -> None:
    states = [state for state in STATES if found.counts.get(state)]
    if not states:
        return
    rows = [
        [kind, *(f"{counts.get(state, 0):,}" for state in states)]
        for kind, counts in found.kinds.items()
    ]
    tell_table(console, "task", [states], rows)
