"""Commands about one instance: show, oracle, solve, certify, check, make."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from mipmech.budget import Budget
from mipmech.checker.verdict import InstanceNotFound
from mipmech.cli.shell import (
    InstanceFile,
    Plot,
    Shell,
    Threads,
    answering,
    can_be_written,
    closing_in,
    command,
    draw,
    written,
)
from mipmech.cli.workers import (
    LocalCluster,
    Scheduler,
    Workers,
    check_choice,
    chosen_executor,
)
from mipmech.design import algorithm1, certificate
from mipmech.design.baselines import Rival, check_names, rivals
from mipmech.design.certificate import DEFAULT_GAP, certify_density, check_on
from mipmech.design.describe import describe
from mipmech.errors import InputError
from mipmech.files import reason
from mipmech.model import families
from mipmech.model.geometry import Geometry, reduce
from mipmech.model.instance import Instance
from mipmech.oracles.base import Answer, Oracle, infeasible
from mipmech.oracles.call import eta_of
from mipmech.oracles.registry import REGISTRY, oracle_named
from mipmech.workers.processes import cores


@command()
def show(
    shell: Shell,
    instance: InstanceFile,
    plot: Plot = None,
) -> int:
    """What is in an instance, and what the paper's closed-form rules would do on it."""
    with shell.saying(f"reading {instance}"):
        sample = Instance.load(instance)
    with shell.saying("grading the closed-form rules"):
        description = describe(sample, shell.timer)
    rule = None if description.best is None else description.best.recount
    no_picture = None
    if plot is not None and rule is not None and shell.timer.left == 0:
        no_picture = "the time limit came first"
    else:
        no_picture = draw(rule, plot)
    content = {**description.to_dict(), "plot": None if no_picture else written(plot)}
    shell.show(content, "design.tell", description, plot, no_picture)
    return 0 if description.complete else 1


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
SolverThreads = Annotated[int, typer.Option("--threads", help="Threads for the solver.")]


def _oracle(name: str, **options: Any) -> Oracle:
    """The oracle of this name with the options that were given."""
    return oracle_named(name, **{k: v for k, v in options.items() if v is not None})


@command()
def oracle(
    shell: Shell,
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
    threads: SolverThreads = 1,
) -> int:
    """Ask an oracle once: the densest mechanism with u·p = η, with a bound."""
    asked = _oracle(name, norm=norm, segments=segments, solver=solver)
    if gap is not None and not gap >= 0:
        raise InputError(f"is {gap}; give 0 or more", field="gap")
    with shell.saying(f"reading {instance}"):
        geometry = reduce(Instance.load(instance))
    value = eta_of(geometry, eta, eta_fraction)
    if write_model is not None:
        return _write_model(shell, asked, geometry, value, write_model)
    if out is not None and name != "cells":
        raise InputError(f"{name} leaves no proof; choose cells", field="oracle")
    with shell.following(name, answering) as watch:
        budget = shell.budget(threads, watch)
        if out is None:
            answer = asked(geometry, value, budget)
        else:
            answer = _certified_answer(asked, geometry, value, budget, out)
    no_picture = draw(answer.recount, plot)
    status = answer.status_at(gap)
    content = {
        **answer.to_dict(),
        "status": status,
        "plot": None if no_picture else written(plot),
        "certificate": None if answer.recount is None else written(out),
    }
    shell.show(content, "design.tell_answer", answer, geometry, status, plot, no_picture, out)
    return 1 if status == "gap" else 0


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


def _write_model(shell: Shell, asked: Oracle, geometry: Geometry, eta: float, path: Path) -> int:
    from mipmech.oracles.milp.engine import Milp, model_at  # noqa: PLC0415  (slow to import)
    from mipmech.solver import write_model  # noqa: PLC0415

    if not isinstance(asked, Milp):
        raise InputError("only the MILP oracles have a model; choose milp", field="oracle")
    model = model_at(asked, geometry, eta)
    write_model(model, path)
    variables, rows = model.nvariables(), model.nconstraints()
    content = {"file": str(path), "variables": variables, "rows": rows}
    shell.show(content, "lines.tell", f"wrote {path}: {variables} variables, {rows} rows")
    return 0


@command()
def solve(
    shell: Shell,
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
    threads: SolverThreads = 1,
) -> int:
    """Algorithm 1: ask an oracle at many η, and keep the rule of greatest gain."""
    asked = _oracle(name, norm=norm, segments=segments, solver=solver)
    with shell.saying(f"reading {instance}"):
        sample = Instance.load(instance)
    with shell.following(name, answering) as watch:
        found = algorithm1.solve(
            sample,
            epsilon=epsilon,
            oracle=asked,
            grid=grid,
            sigma=sigma,
            radius=radius,
            thresholds=thresholds,
            skip=skip,
            budget=shell.budget(threads, watch),
        )
    no_picture = draw(None if found.recount is None else found, plot)
    content = {**found.to_dict(), "plot": None if no_picture else written(plot)}
    shell.show(content, "design.tell_solution", found, plot, no_picture)
    return 0 if found.complete else 1


@command()
def certify(
    shell: Shell,
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
    threads: Threads = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    local_cluster: LocalCluster = None,
) -> int:
    """The best rule of all, with a proof that none gains more."""
    names = [] if against is None else [name.strip() for name in against.split(",")]
    check_names(names)
    check_choice(workers, scheduler, local_cluster)
    helped = any(given is not None for given in (workers, scheduler, local_cluster))
    if threads is not None and helped:
        said = "is given together with --threads; workers have one thread each, so give one"
        raise InputError(f"{said} of the two", field="workers")
    for file, field in ((out, "out"), (plot, "plot")):
        can_be_written(file, field)
    with shell.saying(f"reading {instance}"):
        sample = Instance.load(instance)
    used = (1 if helped else cores()) if threads is None else threads
    helpers = chosen_executor(workers, scheduler, local_cluster)
    with helpers as executor, shell.following("certify", closing_in) as watch:
        found = certificate.certify(
            sample, gap=gap, engine=engine, budget=shell.budget(used, watch), executor=executor
        )
    if out is not None:
        found.save(out)
    others: list[Rival] = []
    if names:
        with shell.saying(f"comparing with {against}"):
            others = rivals(found, names, shell.budget(used))
    draw(found, plot)
    compared = {"against": [rival.to_dict() for rival in others]} if names else {}
    content = {**found.to_dict(), **compared, "plot": written(plot), "certificate": written(out)}
    shell.show(content, "design.tell_certificate", found, others, out, plot)
    return 0 if found.status == "optimal" else 1


@command()
def check(
    shell: Shell,
    certificate: Annotated[Path, typer.Argument(help="A certificate file.")],
    instance: Annotated[
        Path | None,
        typer.Option("--instance", help="The instance file, if not where the certificate says."),
    ] = None,
    workers: Workers = None,
) -> int:
    """Check a certificate with a program that shares only the instance reader with its maker."""
    limit = math.inf if shell.seconds is None else shell.seconds
    with chosen_executor(workers) as executor, shell.saying(f"checking {certificate}") as watch:
        try:
            verdict = check_on(executor, certificate, instance, watch, limit)
        except InstanceNotFound as error:
            raise InputError(str(error), file=certificate) from None
        except OSError as error:
            raise InputError(f"cannot be read: {reason(error)}", file=certificate) from None
    shell.show(verdict.to_dict(), "design.tell_verdict", verdict, certificate)
    return 0 if verdict.accepted else 1


@command()
def make(
    shell: Shell,
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
) -> int:
    """Make an instance of a named family."""
    with shell.saying(f"making {output}"):
        sample = families.make(family, agents, rank, seed, hidden=hidden, cost=cost)
        sample.save(output, table)
    content = {
        "file": str(output),
        "name": sample.name,
        "digest": sample.digest,
        "agents": sample.size,
        "features": list(sample.feature_names),
        "rank": sample.view.rank,
    }
    sizes = f"{sample.size} agents, {sample.width} features, {sample.view.rank} seen"
    line = f"wrote {output}: {sizes}; digest {sample.digest[:12]}"
    shell.show(content, "lines.tell", line)
    return 0
