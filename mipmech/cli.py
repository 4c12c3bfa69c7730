"""The command line: a thin coat over the Python API.

Every command takes ``--json`` (one object on stdout and nothing else), ``--seconds`` (wall time of
the whole command) and ``--quiet`` (no progress). Exit status: 0 done, 1 a gap left open or a failed
check, 2 bad input. Bad input never shows a traceback.
"""

from __future__ import annotations

import io
import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from mipmech import __version__, algorithm1, certificate, families
from mipmech.budget import Budget, Event, Timer
from mipmech.certificate import DEFAULT_GAP, certify_density
from mipmech.check import check as check_certificate
from mipmech.description import describe
from mipmech.errors import InputError
from mipmech.files import reason
from mipmech.geometry import Geometry, reduce
from mipmech.instance import Instance
from mipmech.oracles import REGISTRY, Answer, Oracle, eta_of, infeasible, oracle_named
from mipmech.rivals import check_names, rivals
from mipmech.theory.projection import gain_ceiling
from mipmech.truth import Recount

app = typer.Typer(
    name="mipmech",
    help="Evaluation mechanisms for strategic agents: grade them exactly, design them well.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, nothing else.")]
Seconds = Annotated[
    float | None, typer.Option("--seconds", help="Wall time that the whole command may take.")
]
InstanceFile = Annotated[Path, typer.Argument(help="An instance file.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Save a picture (png, pdf, svg).")]
Work = Callable[[], int | None]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")]


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns (and, as a program, exits with) the status."""
    given = sys.argv[1:] if arguments is None else arguments
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
            print(f"error: the output cannot be written: {reason(error)}", file=sys.stderr)
    if arguments is None:
        sys.exit(status)
    return status


def _run(given: list[str]) -> int:
    try:
        # Typer only parses: a command returns its work, and Ctrl-C or a closed pipe come to us.
        work = app(given, standalone_mode=False)
        return (work() or 0) if callable(work) else int(work or 0)
    except InputError as error:
        _complain(error, "--json" in given)
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
            text = text if text.endswith((".", ")")) else f"{text}."
            _complain(InputError(f"{text} Try 'mipmech --help'."), "--json" in given)
        return 2


def _complain(error: InputError, as_json: bool) -> None:
    if as_json:
        print(json.dumps(error.to_dict()))
    else:
        print(f"error: {error}", file=sys.stderr)


@contextmanager
def _progress(what: str, quiet: bool) -> Iterator[None]:
    """A line on stderr while something may take a while, if somebody is looking."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console  # noqa: PLC0415  (slow to import)

    with Console(stderr=True).status(what):
        yield


@contextmanager
def _saying(what: str, quiet: bool) -> Iterator[Callable[[str], None] | None]:
    """A line on stderr to which something can be added, if somebody is looking."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415  (slow to import)

    with Console(stderr=True).status(f"{what} …") as line:
        yield lambda text: line.update(f"{what}: {text}")


@contextmanager
def _live(what: str, quiet: bool) -> Iterator[Callable[[Event], None] | None]:
    """A line on stderr that follows the events of a search, if somebody is looking."""

    def told(event: Event) -> str:
        upper = "?" if event.upper is None else f"{event.upper:.4g}"
        work = event.note or (f"{event.work:,} cones or nodes" if event.work else "starting")
        return f"at least {event.lower:.4g}, at most {upper}; {work}"

    with _saying(what, quiet) as say:
        yield None if say is None else lambda event: say(told(event))


@contextmanager
def _closing_in(what: str, quiet: bool) -> Iterator[Callable[[Event], None] | None]:
    """The same, with the gap and the speed."""

    def told(event: Event) -> str:
        upper = event.upper or 0.0
        gap = (upper - event.lower) / upper if upper else 0.0
        rate = event.work / event.seconds if event.seconds > 0 else 0.0
        work = event.note or f"{rate:,.0f} cells/s"  # all of it fits a line of 80 columns
        return f"lower {event.lower:.5g}, upper {upper:.5g}, gap {gap:.2g}, {work}"

    with _saying(what, quiet) as say:
        yield None if say is None else lambda event: say(told(event))


def _print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value, allow_nan=False))


def _version(asked: bool) -> None:
    if asked:
        print(f"mipmech {__version__}")
        raise typer.Exit


def _timer(seconds: float | None) -> Timer:
    return Budget(math.inf if seconds is None else seconds).start()


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Evaluation mechanisms for strategic agents: grade them exactly, design them well."""


@app.command()
def show(
    instance: InstanceFile,
    plot: Plot = None,
    as_json: Json = False,
    seconds: Seconds = None,
    quiet: Quiet = False,
) -> Work:
    """What is in an instance, and what the paper's closed-form rules would do on it."""

    def work() -> int:
        timer = _timer(seconds)
        with _progress(f"reading {instance}", quiet or as_json):
            sample = Instance.load(instance)
        with _progress("grading the closed-form rules", quiet or as_json):
            description = describe(sample, timer)
        no_picture = None
        if plot is not None and description.best is None:
            no_picture = "there is no rule to draw"
        elif plot is not None and timer.left == 0:
            no_picture = "the time limit came first"
        elif plot is not None and description.best is not None:
            from mipmech.plot import save_picture  # noqa: PLC0415  (matplotlib is slow to import)

            with _progress(f"drawing {plot}", quiet or as_json):
                save_picture(description.best.recount, plot)
        if as_json:
            picture = None if no_picture or plot is None else str(plot)
            _print_json({**description.to_dict(), "plot": picture})
        else:
            from mipmech.tell import tell  # noqa: PLC0415  (rich is slow to import)

            tell(description, plot, no_picture)
        return 0 if description.complete else 1

    return work


OracleName = Annotated[str, typer.Option("--oracle", help=f"One of: {', '.join(REGISTRY)}.")]
NormName = Annotated[
    Literal["cones", "secant", "box", "exact"] | None,
    typer.Option("--norm", help="How the MILP oracles approximate ‖u‖ = 1."),
]
Segments = Annotated[
    int | None, typer.Option("--segments", help="Segments of --norm secant, per coordinate.")
]
SolverName = Annotated[
    str | None,
    typer.Option("--solver", help="highs, or another that Pyomo knows: scip, gurobi, cbc, …"),
]
Threads = Annotated[int, typer.Option("--threads", help="Threads for the solver.")]


def _oracle(name: str, **options: Any) -> Oracle:
    """The oracle of this name with the options that were given."""
    return oracle_named(name, **{k: v for k, v in options.items() if v is not None})


@app.command()
def oracle(
    instance: InstanceFile,
    eta: Annotated[float | None, typer.Option("--eta", help="η = u·P w_f, absolute.")] = None,
    eta_fraction: Annotated[
        float | None, typer.Option("--eta-fraction", help="η as a fraction of ‖P w_f‖.")
    ] = None,
    name: OracleName = "milp",
    norm: NormName = None,
    segments: Segments = None,
    solver: SolverName = None,
    gap: Annotated[
        float | None,
        typer.Option(
            "--gap", help="A relative gap up to this counts as optimal [1e-6; soft 2e-5]."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write a certificate (--oracle cells).")
    ] = None,
    write_model: Annotated[
        Path | None,
        typer.Option("--write-model", help="Write the model (.mps, .lp) and do not solve it."),
    ] = None,
    plot: Plot = None,
    threads: Threads = 1,
    as_json: Json = False,
    seconds: Seconds = None,
    quiet: Quiet = False,
) -> Work:
    """Ask an oracle once: the densest mechanism with u·p = η, with a bound."""

    def work() -> int:
        timer = _timer(seconds)
        asked = _oracle(name, norm=norm, segments=segments, solver=solver)
        if gap is not None and not gap >= 0:
            raise InputError(f"is {gap}; give 0 or more", field="gap")
        with _progress(f"reading {instance}", quiet or as_json):
            geometry = reduce(Instance.load(instance))
        value = eta_of(geometry, eta, eta_fraction)
        if write_model is not None:
            return _write_model(asked, geometry, value, write_model, as_json)
        if out is not None and name != "cells":
            raise InputError(f"{name} leaves no proof; choose cells", field="oracle")
        with _live(name, quiet or as_json) as watch:
            budget = Budget(timer.left, threads, watch=watch)
            if out is None:
                answer = asked(geometry, value, budget)
            else:
                answer = _certified_answer(asked, geometry, value, budget, out)
        no_picture = _draw_rule(answer.recount, plot)
        status = answer.status_at(gap)
        if as_json:
            picture = None if no_picture or plot is None else str(plot)
            written = None if out is None or answer.recount is None else str(out)
            _print_json(
                {**answer.to_dict(), "status": status, "plot": picture, "certificate": written}
            )
        else:
            from mipmech.tell import tell_answer  # noqa: PLC0415  (rich is slow to import)

            tell_answer(answer, geometry, status, plot, no_picture, out)
        return 1 if status == "gap" else 0

    return work


def _certified_answer(
    asked: Oracle, geometry: Geometry, eta: float, budget: Budget, out: Path
) -> Answer:
    """The answer at η with a certificate; nothing to certify where no direction has this η."""
    if infeasible(geometry, eta):
        return asked(geometry, eta, budget)
    certificate = certify_density(geometry, eta, budget)
    certificate.save(out)
    upper = Fraction(certificate.upper)
    return Answer(
        eta, certificate.recount, upper, certificate.level, certificate.stop, certificate.seconds,
        repr(asked), work=certificate.work,
    )  # fmt: skip


def _write_model(asked: Oracle, geometry: Geometry, eta: float, path: Path, as_json: bool) -> int:
    from mipmech.oracles.milp import Milp, model_at  # noqa: PLC0415  (slow to import)
    from mipmech.solver import write_model  # noqa: PLC0415

    if not isinstance(asked, Milp):
        raise InputError("only the MILP oracles have a model; choose milp", field="oracle")
    model = model_at(asked, geometry, eta)
    write_model(model, path)
    variables, rows = model.nvariables(), model.nconstraints()
    if as_json:
        _print_json({"file": str(path), "variables": variables, "rows": rows})
    else:
        print(f"wrote {path}: {variables} variables, {rows} rows")
    return 0


def _draw_rule(found: Recount | None, plot: Path | None) -> str | None:
    """Draw a rule; why not, if there is nothing to draw."""
    if plot is None:
        return None
    if found is None:
        return "there is no rule to draw"
    from mipmech.plot import save_picture  # noqa: PLC0415  (matplotlib is slow to import)

    save_picture(found, plot)
    return None


@app.command()
def solve(
    instance: InstanceFile,
    epsilon: Annotated[
        float | None,
        typer.Option("--epsilon", help="Additive loss in units of gain [5 % of the ceiling]."),
    ] = None,
    name: OracleName = "milp",
    grid: Annotated[
        Literal["angular", "paper"], typer.Option("--grid", help="Which values of η to ask for.")
    ] = "angular",
    sigma: Annotated[
        float | None, typer.Option("--sigma", help="For --grid paper; else the instance's.")
    ] = None,
    radius: Annotated[
        float | None, typer.Option("--radius", help="For --grid paper; else the instance's.")
    ] = None,
    thresholds: Annotated[
        Literal["two", "best"],
        typer.Option("--thresholds", help="The paper's two candidates, or the best of all."),
    ] = "two",
    skip: Annotated[
        Literal["no", "cones", "milp", "cells"],
        typer.Option("--skip", help="Prove blocks of η useless, and skip them."),
    ] = "no",
    norm: NormName = None,
    segments: Segments = None,
    solver: SolverName = None,
    plot: Plot = None,
    threads: Threads = 1,
    as_json: Json = False,
    seconds: Seconds = None,
    quiet: Quiet = False,
) -> Work:
    """Algorithm 1: ask an oracle at many η, and keep the rule of greatest gain."""

    def work() -> int:
        timer = _timer(seconds)
        asked = _oracle(name, norm=norm, segments=segments, solver=solver)
        with _progress(f"reading {instance}", quiet or as_json):
            sample = Instance.load(instance)
        loss = gain_ceiling(sample) / 20 or 1.0 if epsilon is None else epsilon
        with _live(name, quiet or as_json) as watch:
            found = algorithm1.solve(
                sample,
                epsilon=loss,
                oracle=asked,
                grid=grid,
                sigma=sigma,
                radius=radius,
                thresholds=thresholds,
                skip=skip,
                budget=Budget(timer.left, threads, watch=watch),
            )
        no_picture = None
        if plot is not None and found.recount is None:
            no_picture = "there is no rule to draw"
        elif plot is not None:
            from mipmech.plot_solution import save_solution  # noqa: PLC0415  (matplotlib is slow)

            save_solution(found, plot, loss)
        if as_json:
            picture = None if no_picture or plot is None else str(plot)
            _print_json({**found.to_dict(), "epsilon": loss, "plot": picture})
        else:
            from mipmech.tell import tell_solution  # noqa: PLC0415  (rich is slow to import)

            tell_solution(found, loss, plot, no_picture)
        return 0 if found.complete else 1

    return work


def _can_be_written(file: Path | None, field: str) -> None:
    """Refuse a file in no folder before the work is done, not after it."""
    if file is None:
        return
    if not os.access(file.parent, os.W_OK):
        said = f"cannot be written: there is no folder {file.parent}, or it is not writable"
        raise InputError(said, file=file, field=field)
    if field == "plot" and not file.suffix:
        raise InputError("has no ending; give one such as .png", file=file, field=field)


def _cores() -> int:
    """The cores that this process may use."""
    count = getattr(os, "sched_getaffinity", None)
    return len(count(0)) if count is not None else (os.cpu_count() or 1)


@app.command()
def certify(
    instance: InstanceFile,
    gap: Annotated[
        float, typer.Option("--gap", help="The relative gap (upper − lower)/upper to reach.")
    ] = DEFAULT_GAP,
    engine: Annotated[
        Literal["auto", "cells", "milp"],
        typer.Option("--engine", help="cells: proved; milp: attested by HiGHS."),
    ] = "auto",
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the certificate, for mipmech check.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option("--against", help="Compare with the rules of these oracles: milp,projection"),
    ] = None,
    plot: Plot = None,
    threads: Annotated[
        int | None, typer.Option("--threads", help="Threads; the result is the same [all cores].")
    ] = None,
    as_json: Json = False,
    seconds: Seconds = None,
    quiet: Quiet = False,
) -> Work:
    """The best rule of all, with a proof that none gains more."""

    def work() -> int:
        timer = _timer(seconds)
        names = [] if against is None else [name.strip() for name in against.split(",")]
        check_names(names)
        for file, field in ((out, "out"), (plot, "plot")):
            _can_be_written(file, field)
        with _progress(f"reading {instance}", quiet or as_json):
            sample = Instance.load(instance)
        used = _cores() if threads is None else threads
        with _closing_in("certify", quiet or as_json) as watch:
            found = certificate.certify(
                sample, gap=gap, engine=engine, budget=Budget(timer.left, used, watch=watch)
            )
        if out is not None:
            found.save(out)
        with _progress(f"comparing with {against}", quiet or as_json or not names):
            others = rivals(found, names, Budget(timer.left, used))
        if plot is not None:
            from mipmech.plot_certificate import save_certificate_picture  # noqa: PLC0415

            save_certificate_picture(found, plot)
        if as_json:
            picture = None if plot is None else str(plot)
            shown = {"against": [rival.to_dict() for rival in others]} if names else {}
            written = None if out is None else str(out)
            _print_json({**found.to_dict(), **shown, "plot": picture, "certificate": written})
        else:
            from mipmech.tell import tell_certificate  # noqa: PLC0415  (rich is slow to import)

            tell_certificate(found, others, out, plot)
        return 0 if found.status == "optimal" else 1

    return work


@app.command()
def check(
    certificate: Annotated[Path, typer.Argument(help="A certificate file.")],
    instance: Annotated[
        Path | None,
        typer.Option("--instance", help="The instance file, if not where the certificate says."),
    ] = None,
    as_json: Json = False,
    seconds: Seconds = None,
    quiet: Quiet = False,
) -> Work:
    """Check a certificate with a program that shares no code with the one that made it."""

    def work() -> int:
        limit = math.inf if seconds is None else seconds
        with _saying(f"checking {certificate}", quiet or as_json) as watch:
            try:
                verdict = check_certificate(certificate, instance, watch, limit)
            except OSError as error:
                said = f"cannot be read: {reason(error)}"
                raise InputError(said, file=certificate) from None
        if as_json:
            _print_json(verdict.to_dict())
        else:
            from mipmech.tell import tell_verdict  # noqa: PLC0415  (rich is slow to import)

            tell_verdict(verdict, certificate)
        return 0 if verdict.accepted else 1

    return work


@app.command()
def make(
    family: Annotated[str, typer.Argument(help=f"One of: {', '.join(families.NAMES)}.")],
    agents: Annotated[int, typer.Option("--agents", help="m, the number of agents.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The instance file to write.")],
    rank: Annotated[int, typer.Option("--rank", help="k, the number of visible features.")] = 2,
    seed: Annotated[int, typer.Option("--seed", help="The same seed, the same instance.")] = 0,
    hidden: Annotated[int, typer.Option("--hidden", help="Further features, not seen.")] = 1,
    cost: Annotated[
        float | None, typer.Option("--cost", help="One cost for all instead of the family's.")
    ] = None,
    table: Annotated[
        Literal["inline", "csv", "npy"],
        typer.Option("--table", help="Where the agents go: into the file or beside it."),
    ] = "inline",
    as_json: Json = False,
    seconds: Seconds = None,
    quiet: Quiet = False,
) -> Work:
    """Make an instance of a named family."""

    def work() -> None:
        _timer(seconds)
        with _progress(f"making {output}", quiet or as_json):
            sample = families.make(family, agents, rank, seed, hidden=hidden, cost=cost)
            sample.save(output, table)
        made = {
            "file": str(output),
            "name": sample.name,
            "digest": sample.digest,
            "agents": sample.size,
            "features": list(sample.feature_names),
            "rank": sample.view.rank,
        }
        if as_json:
            _print_json(made)
        else:
            sizes = f"{sample.size} agents, {sample.width} features, {sample.view.rank} seen"
            print(f"wrote {output}: {sizes}; digest {sample.digest[:12]}")

    return work


if __name__ == "__main__":
    main()
