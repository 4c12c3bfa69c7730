"""Commands about many instances or samples: compare, learn, report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from mipmech.cli.counting import counting
from mipmech.cli.requirements import Required, asked_for, demanding
from mipmech.cli.shell import (
    Plot,
    Shell,
    Threads,
    check_outputs,
    closing_in,
    command,
    written,
)
from mipmech.cli.workers import (
    LocalCluster,
    Retry,
    Scheduler,
    Workers,
    check_choice,
    chosen_executor,
)
from mipmech.errors import InputError, shorten
from mipmech.oracles.registry import REGISTRY
from mipmech.studies.batch.asking import ETA_FRACTIONS, SECONDS_PER_CALL, SEEDS
from mipmech.studies.comparison.compare import compare as compare_oracles
from mipmech.studies.learning.curve import learn as learn_from
from mipmech.studies.learning.results import FILE, make_folder
from mipmech.studies.learning.source import open_source
from mipmech.workers.processes import cores


def _numbers(text: str, kind: type, field: str) -> list[float]:
    """A comma-separated list of numbers."""
    found = []
    for part in text.split(","):
        try:
            found.append(kind(part))
        except ValueError:
            word = "whole numbers" if kind is int else "numbers"
            said = f"has {shorten(part)}; give {word} with commas between them"
            raise InputError(said, field=field) from None
    return found


def _listed(values: tuple[float, ...]) -> str:
    return ",".join(f"{value:g}" for value in values)


@command()
@demanding
def compare(
    shell: Shell,
    require: Required,
    instances: Annotated[
        list[str],
        typer.Argument(help="Instance files, folders of them, or names such as ties-m40-k3-s1."),
    ],
    oracles: Annotated[
        str, typer.Option("--oracles", help=f"With commas: {', '.join(REGISTRY)}.")
    ] = "milp,cells,ransac,ascent,random",
    etas: Annotated[
        str,
        typer.Option(
            "--etas", help="Values of η, as fractions of ‖P w_f‖; l1, linf: the nearest facets."
        ),
    ] = _listed(ETA_FRACTIONS),
    seeds: Annotated[
        str, typer.Option("--seeds", help="For the oracles that draw random numbers.")
    ] = _listed(SEEDS),
    seconds_per_call: Annotated[
        float, typer.Option("--seconds-per-call", help="The time of each call.")
    ] = SECONDS_PER_CALL,
    full_time: Annotated[
        bool, typer.Option("--full-time", help="Heuristics use all of it, content or not.")
    ] = False,
    reference_seconds: Annotated[
        float | None,
        typer.Option("--reference-seconds", help="The time of each certificate [5 calls, 10 s]."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="A run's folder; what is in it is not done again.")
    ] = None,
    retry: Retry = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    local_cluster: LocalCluster = None,
) -> int:
    """Ask oracles the same questions, and hold their answers against certified optima."""
    check_choice(workers, scheduler, local_cluster)
    used = workers if scheduler or local_cluster else workers or cores()
    required = asked_for(require(None))
    with counting(shell.quiet or shell.as_json) as bar:
        found = compare_oracles(
            instances,
            [name.strip() for name in oracles.split(",")],
            eta_fractions=_numbers(etas, float, "etas"),
            seeds=[int(seed) for seed in _numbers(seeds, int, "seeds")],
            seconds_per_call=seconds_per_call,
            full_time=full_time,
            reference_seconds=reference_seconds,
            executor=lambda: chosen_executor(used, scheduler, local_cluster),
            retry=retry is not None,
            out=out,
            budget=shell.budget(),
            watch=None if bar is None else bar.ran,
            say=(lambda _: None) if bar is None else bar.say,
            **required,
        )
    if found.unwritten is not None:
        shell.lost.append(InputError(found.unwritten, field="out"))
    content = {**found.to_dict(), "out": written(out)}
    shell.show(content, "comparison.tell_comparison", found, out)
    return 0 if found.complete and not (found.violations or found.doubts) else 1


@command()
def learn(
    shell: Shell,
    source: Annotated[
        str, typer.Argument(help="An instance file (rows are held out), or the name of a family.")
    ],
    rank: Annotated[
        int | None, typer.Option("--rank", help="Visible features of a family [2].")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="The same seed, the same samples.")] = 0,
    sigma: Annotated[
        float | None, typer.Option("--sigma", help="Smooth the population by so much.")
    ] = None,
    sizes: Annotated[
        str | None, typer.Option("--sizes", help="Sample sizes, with commas: 25,50,100.")
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", help="Samples of each size.")] = 10,
    gap: Annotated[float, typer.Option("--gap", help="The gap of each certificate.")] = 1e-3,
    delta: Annotated[
        float, typer.Option("--delta", help="Each bound holds with probability 1 − δ.")
    ] = 0.05,
    out: Annotated[
        Path | None, typer.Option("--out", help="A folder for all figures and rules.")
    ] = None,
    plot: Plot = None,
    threads: Threads = None,
) -> int:
    """The certified optimum on samples of growing size, and what it is worth beyond them."""
    check_outputs(plot=plot)
    file = None if out is None else make_folder(out) / FILE
    check_outputs([source], out=file, plot=plot)
    asked = None if sizes is None else [int(s) for s in _numbers(sizes, int, "sizes")]
    opened = open_source(source, rank=rank, seed=seed, sigma=sigma)
    with shell.following("learn", closing_in) as watch:
        curve = learn_from(
            opened,
            sizes=asked,
            repeats=repeats,
            gap=gap,
            delta=delta,
            seed=seed,
            budget=shell.budget(cores() if threads is None else threads, watch),
        )
    kept = shell.keep(file, "out", lambda file: curve.save(file.parent))
    picture = shell.draw(curve, plot)
    content = {**curve.to_dict(), "plot": written(picture.file), "file": written(kept)}
    shell.show(content, "learning.tell_learning", curve, picture, kept)
    return 0 if curve.complete else 1


@command()
def report(
    shell: Shell,
    folder: Annotated[
        Path, typer.Argument(help="A run's folder: of bench, or the --out of compare.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file to write [stdout; html: a file is needed]."),
    ] = None,
    kind: Annotated[
        Literal["html", "md", "csv"], typer.Option("--format", help="A page, Markdown, or a table.")
    ] = "html",
) -> int:
    """A page with tables and pictures that opens from disk, anywhere."""
    from mipmech.report import check_source  # noqa: PLC0415  (slow to import)
    from mipmech.report import report as make_report  # noqa: PLC0415

    check_source(folder)
    if output is None and (kind == "html" or shell.as_json):
        raise InputError("is missing: say where the report goes, -o FILE", field="output")
    check_outputs([folder], output=output)
    with shell.saying(f"writing {output}"):
        text = make_report(folder, output, kind)
    size = len(text.encode())
    if output is None:
        print(text, end="")
    else:
        content = {"file": str(output), "format": kind, "bytes": size}
        shell.show(content, "lines.tell", f"wrote {output}: {size / 1000:,.0f} kB")
    return 0
