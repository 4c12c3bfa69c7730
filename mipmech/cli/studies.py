"""Commands about many runs: compare, learn, report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from mipmech.budget import Budget
from mipmech.cli.app import (
    Json,
    Plot,
    Quiet,
    Seconds,
    Work,
    app,
    can_be_written,
    closing_in,
    print_json,
    progress,
    timer_of,
)
from mipmech.cli.counting import counting
from mipmech.errors import InputError, shorten
from mipmech.oracles.registry import REGISTRY
from mipmech.studies.comparison.compare import ETA_FRACTIONS, SECONDS_PER_CALL, SEEDS
from mipmech.studies.comparison.compare import compare as compare_oracles
from mipmech.studies.learning.curve import learn as learn_from
from mipmech.studies.learning.results import make_folder
from mipmech.studies.learning.source import open_source
from mipmech.workers.processes import cores

Out = Annotated[Path | None, typer.Option("--out", help="A folder for the record of it all.")]


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


@app.command()
def compare(
    instances: Annotated[
        list[str],
        typer.Argument(help="Instance files, folders of them, or names such as ties-m40-k3-s1."),
    ],
    oracles: Annotated[
        str, typer.Option("--oracles", help=f"With commas: {', '.join(REGISTRY)}.")
    ] = "milp,cells,ransac,ascent,random",
    etas: Annotated[
        str, typer.Option("--etas", help="Values of η, as fractions of ‖P w_f‖.")
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
    workers: Annotated[
        int | None, typer.Option("--workers", help="Processes of one thread each [all cores].")
    ] = None,
    out: Out = None,
    as_json: Json = False,
    seconds: Seconds = None,
    quiet: Quiet = False,
) -> Work:
    """Ask oracles the same questions, and hold their answers against certified optima."""

    def work() -> int:
        timer = timer_of(seconds)
        with counting(quiet or as_json) as bar:
            found = compare_oracles(
                instances,
                [name.strip() for name in oracles.split(",")],
                eta_fractions=_numbers(etas, float, "etas"),
                seeds=[int(seed) for seed in _numbers(seeds, int, "seeds")],
                seconds_per_call=seconds_per_call,
                full_time=full_time,
                reference_seconds=reference_seconds,
                workers=workers,
                out=out,
                budget=Budget(timer.left),
                watch=None if bar is None else bar.compared,
            )
        if as_json:
            print_json({**found.to_dict(), "out": None if out is None else str(out)})
        else:
            from mipmech.terminal.comparison import tell_comparison  # noqa: PLC0415  (rich is slow)

            tell_comparison(found, out)
        return 0 if found.complete and not (found.violations or found.doubts) else 1

    return work


@app.command()
def learn(
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
    out: Out = None,
    plot: Plot = None,
    threads: Annotated[
        int | None, typer.Option("--threads", help="Threads; the result is the same [all cores].")
    ] = None,
    as_json: Json = False,
    seconds: Seconds = None,
    quiet: Quiet = False,
) -> Work:
    """The certified optimum on samples of growing size, and what it is worth beyond them."""

    def work() -> int:
        timer = timer_of(seconds)
        can_be_written(plot, "plot")
        if out is not None:
            make_folder(out)
        asked = None if sizes is None else [int(s) for s in _numbers(sizes, int, "sizes")]
        opened = open_source(source, rank=rank, seed=seed, sigma=sigma)
        used = cores() if threads is None else threads
        with closing_in("learn", quiet or as_json) as watch:
            curve = learn_from(
                opened,
                sizes=asked,
                repeats=repeats,
                gap=gap,
                delta=delta,
                seed=seed,
                budget=Budget(timer.left, used, watch=watch),
            )
        file = None if out is None else curve.save(out)
        if plot is not None:
            from mipmech.plots.learning import save_learning_picture  # noqa: PLC0415

            save_learning_picture(curve, plot)
        if as_json:
            files = {"plot": plot, "file": file}
            written = {key: None if name is None else str(name) for key, name in files.items()}
            print_json({**curve.to_dict(), **written})
        else:
            from mipmech.terminal.learning import tell_learning  # noqa: PLC0415  (rich is slow)

            tell_learning(curve, plot, file)
        return 0 if curve.complete else 1

    return work


@app.command()
def report(
    folder: Annotated[
        Path, typer.Argument(help="The --out folder of a comparison, or a run's folder (bench).")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file to write [stdout; html: a file is needed]."),
    ] = None,
    kind: Annotated[
        Literal["html", "md", "csv"], typer.Option("--format", help="A page, Markdown, or a table.")
    ] = "html",
    as_json: Json = False,
    seconds: Seconds = None,
    quiet: Quiet = False,
) -> Work:
    """A page with tables and pictures that opens from disk, anywhere."""

    def work() -> int:
        from mipmech.report import report as make_report  # noqa: PLC0415  (slow to import)

        timer_of(seconds)
        if output is None and (kind == "html" or as_json):
            raise InputError("is missing: say where the report goes, -o FILE", field="output")
        can_be_written(output, "output")
        with progress(f"writing {output}", quiet or as_json):
            text = make_report(folder, output, kind)
        if as_json:
            print_json({"file": str(output), "format": kind, "bytes": len(text.encode())})
        elif output is None:
            print(text, end="")
        else:
            print(f"wrote {output}: {len(text.encode()) / 1000:,.0f} kB")
        return 0

    return work
