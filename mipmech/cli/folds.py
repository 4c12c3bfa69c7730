"""The options --folds and --fold-seed: the gain on people that a rule was not designed for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Any

import typer

from mipmech.budget import Budget, Event, Stop
from mipmech.cli.shell import Shell
from mipmech.design.folds import Designed, Designer, FoldResults, check_folds, held_out, split
from mipmech.errors import InputError
from mipmech.model.instance import Instance

Folds = Annotated[
    int | None,
    typer.Option("--folds", help="Also design without each of K folds of people, and grade there."),
]
FoldSeed = Annotated[
    int | None, typer.Option("--fold-seed", help="The same seed, the same folds [0].")
]


def check_options(folds: int | None, seed: int | None) -> None:
    """Refuse what no sample can be split into, before the work."""
    if folds is not None:
        check_folds(folds, seed or 0)
    elif seed is not None:
        raise InputError("says nothing without folds; add --folds 5", field="fold_seed")


def first_part(sample: Instance, folds: int | None, budget: Budget) -> Budget:
    """The budget of the design on all people: an equal part beside those of the folds."""
    if folds is None:
        return budget
    split(sample.weights, folds, 0)  # more folds than people: refused by now
    return replace(budget, seconds=budget.seconds / (1 + folds))


def on_folds(
    shell: Shell,
    sample: Instance,
    design: Designer,
    done: Designed,
    folds: int | None,
    seed: int | None,
    told: Callable[[Event], str],
    threads: int,
) -> FoldResults | None:
    """Design without each fold, unless the design on all people was stopped."""
    if folds is None:
        return None
    if done.stop in (Stop.INTERRUPTED, Stop.LOST):
        return FoldResults((), folds, seed or 0, done.stop, 0.0)
    with shell.following("folds", told) as watch:
        budget = shell.budget(threads, watch)
        return held_out(sample, design, folds=folds, seed=seed or 0, budget=budget)


def folded(found: FoldResults | None, gain: Fraction) -> dict[str, Any]:
    """What ``--json`` says of them; nothing if none were asked for."""
    return {} if found is None else {"folds": found.to_dict(gain)}
