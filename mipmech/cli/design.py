"""Commands about one instance: show, oracle, solve, certify, check, make."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from mipmech.budget import Budget
from mipmech.cli.folds import Folds, FoldSeed, check_options, first_part, folded, on_folds
from mipmech.cli.requirements import Required, asked_for, demanding
from mipmech.cli.shell import (
    InstanceFile,
    Movers,
    Plot,
    Shell,
    Threads,
    answering,
    check_outputs,
    closing_in,
    command,
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
from mipmech.design.baselines import Rival, check_costs, check_names, rivals
from mipmech.design.certificate import DEFAULT_GAP, certify_density
from mipmech.design.checking import check as check_certificate
from mipmech.design.describe import describe
from mipmech.design.movers import save_movers
from mipmech.design.price import dropped_sets, prices
from mipmech.design.printed import Measure, PrintedRule, check_digits, printed
from mipmech.design.relaxing import QUICK, feasible_without
from mipmech.errors import InputError, shorten
from mipmech.model import families
from mipmech.model.geometry import Geometry, geometry_of
from mipmech.model.instance import Instance
from mipmech.oracles.base import Answer, Oracle, infeasible
from mipmech.oracles.call import eta_of
from mipmech.oracles.registry import REGISTRY, oracle_named
from mipmech.plots.drawn import Drawn
from mipmech.text import NOT_VERIFIED
from mipmech.validation import cells, is_plain, remedy
from mipmech.workers.processes import cores


@command()
def show(
    shell: Shell,
    instance: InstanceFile,
    plot: Plot = None,
) -> int:
    """What is in an instance, and what the paper's closed-form rules would do on it."""
    check_outputs([instance], plot=plot)
    with shell.saying(f"reading {instance}"):
        sample = Instance.load(instance)
    with shell.saying("grading the closed-form rules"):
        description = describe(sample, shell.timer)
    rule = None if description.best is None else description.best.recount
    if plot is not None and rule is not None and shell.timer.left == 0:
        picture = Drawn(missing="the time limit came first")
    else:
        picture = shell.draw(rule, plot, "gain")
    content = {**description.to_dict(), "plot": written(picture.file)}
    shell.show(content, "design.tell", description, picture)
    return 0 if description.complete else 1


OracleName = Annotated[
    str,
    typer.Option(
        "--oracle", help=f"One of: {', '.join(REGISTRY)}.", autocompletion=lambda: list(REGISTRY)
    ),
]
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
Digits = Annotated[
    int | None,
    typer.Option("--digits", help="Digits of the printed rule [as few as keep 99.9 % of it]."),
]


def _printed(found: Any, digits: int | None) -> PrintedRule | None:
    """The rule of a result, in so many digits."""
    demands = getattr(found, "demands", None)
    if found.recount is None or (digits is None and demands is None):
        return found.printed  # type: ignore[no-any-return]
    return printed(found.recount, digits, demands=demands)


def _oracle(name: str, **options: Any) -> Oracle:
    """The oracle of this name with the options that were given."""
    return oracle_named(name, **{k: v for k, v in options.items() if v is not None})


def _digits(rule: PrintedRule | None) -> dict[str, Any]:
    """The printed rule, for JSON."""
    return {"printed": None if rule is None else rule.to_dict()}


@command()
@demanding
def oracle(
    shell: Shell,
    instance: InstanceFile,
    require: Required,
    eta: Annotated[float | None, typer.Option("--eta", help="η = u·P w_f, absolute.")] = None,
    eta_fraction: Annotated[
        float | None,
        typer.Option("--eta-fraction", help="η as a fraction of ‖P w_f‖, the greatest rate."),
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
    digits: Digits = None,
    plot: Plot = None,
    threads: SolverThreads = 1,
) -> int:
    """Ask an oracle once: the densest mechanism with u·p = η, with a bound."""
    check_digits(digits)
    asked = _oracle(name, norm=norm, segments=segments, solver=solver)
    if gap is not None and not gap >= 0:
        raise InputError(f"is {gap}; give 0 or more", field="gap")
    check_outputs([instance], out=out, write_model=write_model, plot=plot)
    with shell.saying(f"reading {instance}"):
        sample = Instance.load(instance)
        geometry = geometry_of(sample, require(sample))
    if out is not None and geometry.demands is not None:
        said = "is of all rules with this η, and does not know requirements; leave one of them out"
        raise InputError(said, file=out, field="out")
    value = eta_of(geometry, eta, eta_fraction)
    if write_model is not None:
        return _write_model(shell, asked, geometry, value, write_model)
    if out is not None and name != "cells":
        raise InputError(f"{name} leaves no proof; choose cells", field="oracle")
    with shell.following(name, answering) as watch:
        budget, proof = shell.budget(threads, watch), None
        if out is None or infeasible(geometry, value):  # with nothing to certify
            answer = asked(geometry, value, budget)
        else:
            proof = certify_density(geometry, value, budget)
            answer = _answer_of(proof, asked, value)
    kept = None if proof is None else shell.keep(out, "out", proof.save)
    measure: Measure = "gain" if answer.soft else "density"
    picture = shell.draw(answer.recount, plot, measure, geometry.demands)
    status = answer.status_at(gap)
    content = {
        **answer.to_dict(),
        "status": status,
        "plot": written(picture.file),
        "certificate": written(kept),
    }
    telling = (answer, geometry, status, picture, kept, digits)
    shell.show(content, "design.tell_answer", *telling)
    return 1 if status == "gap" else 0


def _answer_of(proof: certificate.Certificate, asked: Oracle, eta: float) -> Answer:
    """The answer that a certificate at η gives."""
    return Answer(
        eta, proof.recount, Fraction(proof.upper), proof.level, proof.stop, proof.seconds,
        repr(asked), work=proof.work,
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
@demanding
def solve(
    shell: Shell,
    instance: InstanceFile,
    require: Required,
    epsilon: Annotated[
        float | None,
        typer.Option("--epsilon", help="Additive loss in units of gain [5 % of the ceiling]."),
    ] = None,
    name: OracleName = "milp",
    grid: Annotated[
        Literal["angular", "facets", "paper"] | None,
        typer.Option(
            "--grid", help="Which values of η to ask for [angular; for l1 and linf, facets]."
        ),
    ] = None,
    sigma: Annotated[
        float | None, typer.Option("--sigma", help="For --grid paper; else the instance's.")
    ] = None,
    radius: Annotated[
        float | None, typer.Option("--radius", help="For --grid paper; else the instance's.")
    ] = None,
    thresholds: Annotated[
        Literal["best", "two"],
        typer.Option("--thresholds", help="The best of all, or the paper's two candidates."),
    ] = "best",
    skip: Annotated[
        Literal["no", "cones", "milp", "cells"],
        typer.Option("--skip", help="Prove blocks of η useless, and skip them."),
    ] = "no",
    norm: NormName = None,
    segments: Segments = None,
    solver: SolverName = None,
    digits: Digits = None,
    folds: Folds = None,
    fold_seed: FoldSeed = None,
    plot: Plot = None,
    threads: SolverThreads = 1,
) -> int:
    """Algorithm 1: ask an oracle at many η, and keep the rule of greatest gain."""
    check_digits(digits)
    check_options(folds, fold_seed)
    check_outputs([instance], plot=plot)
    asked = _oracle(name, norm=norm, segments=segments, solver=solver)
    with shell.saying(f"reading {instance}"):
        sample = Instance.load(instance)
        required = asked_for(require(sample))

    def design(part: Instance, budget: Budget) -> algorithm1.Solution:
        return algorithm1.solve(
            part,
            epsilon=epsilon,
            oracle=asked,
            grid="auto" if grid is None else grid,
            sigma=sigma,
            radius=radius,
            thresholds=thresholds,
            skip=skip,
            budget=budget,
            **required,
        )

    with shell.following(name, answering) as watch:
        found = design(sample, first_part(sample, folds, shell.budget(threads, watch)))
    others = on_folds(shell, sample, design, found, folds, fold_seed, answering, threads)
    picture = shell.draw(None if found.recount is None else found, plot)
    rule = _printed(found, digits)
    content = {
        **found.to_dict(),
        **_digits(rule),
        **folded(others, found.gain),
        "plot": written(picture.file),
    }
    shell.show(content, "design.tell_solution", found, rule, picture, others)
    return 0 if found.complete and (others is None or others.complete) else 1


@command()
@demanding
def certify(
    shell: Shell,
    instance: InstanceFile,
    require: Required,
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
    priced: Annotated[
        bool,
        typer.Option("--price", help="What the requirements cost: without each, and without any."),
    ] = False,
    movers: Movers = None,
    digits: Digits = None,
    folds: Folds = None,
    fold_seed: FoldSeed = None,
    plot: Plot = None,
    threads: Threads = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    local_cluster: LocalCluster = None,
) -> int:
    """The best rule of all, with a proof that none gains more."""
    check_digits(digits)
    check_options(folds, fold_seed)
    names = [] if against is None else [name.strip() for name in against.split(",")]
    check_names(names)
    check_choice(workers, scheduler, local_cluster)
    helped = any(given is not None for given in (workers, scheduler, local_cluster))
    if threads is not None and helped:
        said = "is given together with --threads; workers have one thread each, so give one"
        raise InputError(f"{said} of the two", field="workers")
    check_outputs([instance], out=out, movers=movers, plot=plot)
    with shell.saying(f"reading {instance}"):
        sample = Instance.load(instance)
        required = require(sample)
    if priced and required is None:
        raise InputError("says nothing without requirements; add --accepted 0,0.3", field="price")
    searches = 1 if required is None or not priced else len(dropped_sets(required))
    check_costs(names, sample)
    used = (1 if helped else cores()) if threads is None else threads
    with chosen_executor(workers, scheduler, local_cluster) as executor:
        design = partial(_certified, require=required, gap=gap, engine=engine, executor=executor)
        with shell.following("certify", closing_in) as watch:
            budget = first_part(sample, folds, shell.budget(used, watch))
            found = design(sample, replace(budget, seconds=budget.seconds / searches))
        kept = shell.keep(out, "out", found.save)
        costs = None
        if priced and required is not None:
            with shell.following("prices", closing_in) as watch:
                costs = prices(
                    sample, required, gap=gap, budget=shell.budget(used, watch),
                    executor=executor, known=found,
                )  # fmt: skip
        elsewhere = on_folds(shell, sample, design, found, folds, fold_seed, closing_in, used)
    others: list[Rival] = []
    if names and not found.infeasible:
        with shell.saying(f"comparing with {against}"):
            others = rivals(found, names, shell.budget(used))
    without: list[str] = []
    if found.infeasible and required is not None:
        with shell.saying("looking for a requirement to drop"):
            quick = min(shell.timer.left, QUICK * len(required.given))
            without = feasible_without(sample, required, replace(shell.budget(used), seconds=quick))
    if costs is None:
        picture = shell.draw(None if found.infeasible else found, plot)
    else:
        picture = shell.draw(costs, plot)
    compared = {"against": [rival.to_dict() for rival in others]} if names else {}
    rule = _printed(found, digits)
    rows = (
        None if rule is None else shell.keep(movers, "movers", partial(save_movers, rule.recount))
    )
    content = {
        **found.to_dict(),
        **_digits(rule),
        **compared,
        **({"feasible_without": without} if found.infeasible else {}),
        **({} if costs is None else {"prices": costs.to_dict()}),
        **folded(elsewhere, found.lower),
        "plot": written(picture.file),
        "certificate": written(kept),
        "movers": written(rows),
    }
    telling = (found, rule, others, kept, rows, picture, elsewhere, without, costs)
    shell.show(content, "design.tell_certificate", *telling)
    parts = [part.complete for part in (elsewhere, costs) if part is not None]
    return 0 if found.status != "gap" and all(parts) else 1


def _certified(sample: Instance, budget: Budget, **options: Any) -> certificate.Certificate:
    return certificate.certify(sample, budget=budget, **options)


@command()
def check(
    shell: Shell,
    certificate: Annotated[Path, typer.Argument(help="A certificate file.")],
    instance: Annotated[
        Path | None,
        typer.Option("--instance", help="The instance file, if not where the certificate says."),
    ] = None,
    level: Annotated[
        Literal["any", "proved"],
        typer.Option("--level", help="proved: nothing less will do; else the exit status is 1."),
    ] = "any",
    workers: Workers = None,
) -> int:
    """Check a certificate with a program that shares only the instance reader with its maker."""
    limit = math.inf if shell.seconds is None else shell.seconds
    with chosen_executor(workers) as executor, shell.saying(f"checking {certificate}") as watch:
        verdict = check_certificate(certificate, instance, watch, limit, executor)
    enough = verdict.accepted and level in ("any", verdict.level)
    unchecked = [
        said.removeprefix(NOT_VERIFIED)
        for said in verdict.verified
        if said.startswith(NOT_VERIFIED)
    ]
    content = {**verdict.to_dict(), "unchecked": unchecked, "enough": enough}
    shell.show(content, "design.tell_verdict", verdict, certificate, enough)
    return 0 if enough else 1


def _prices(text: str | None) -> list[float] | Any:
    """Prices as they are typed; a word is left to the families, which know one."""
    if text is None or not any(map(str.isdigit, text)):
        return text
    prices = []
    for row, cell in enumerate(cells(text)):
        if not is_plain(cell):
            said = f"has {shorten(cell)}{remedy(cell)}; give numbers between commas, as in 1,2,0.5"
            raise InputError(said, field="effort", row=row)
        prices.append(float(cell))
    return prices


@command()
def make(
    shell: Shell,
    family: Annotated[
        str,
        typer.Argument(
            help=f"One of: {', '.join(families.NAMES)}.",
            autocompletion=lambda: list(families.NAMES),
        ),
    ],
    agents: Annotated[int, typer.Option("--agents", help="m, the number of agents.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The instance file to write.")],
    rank: Annotated[int, typer.Option("--rank", help="k, the number of visible features.")] = 2,
    seed: Annotated[int, typer.Option("--seed", help="The same seed, the same instance.")] = 0,
    hidden: Annotated[int, typer.Option("--hidden", help="Further features, not seen.")] = 1,
    cost: Annotated[
        float | None, typer.Option("--cost", help="One cost for all instead of the family's.")
    ] = None,
    norm: Annotated[
        Literal["l2", "l1", "linf"],
        typer.Option("--norm", help="How moves in several features add up."),
    ] = "l2",
    effort: Annotated[
        str | None,
        typer.Option(
            "--effort",
            help='Prices of the visible features: "1,2,0.5"; or "spread": from 0.01 to 100, and'
            " units as different.",
        ),
    ] = None,
    table: Annotated[
        Literal["inline", "csv", "npy"],
        typer.Option("--table", help="Where the agents go: into the file or beside it."),
    ] = "inline",
) -> int:
    """Make an instance of a named family."""
    check_outputs(output=output)
    with shell.saying(f"making {output}"):
        sample = families.make(
            family, agents, rank, seed, hidden=hidden, cost=cost, norm=norm, effort=_prices(effort)
        )
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
