"""The options --folds and --fold-seed: the gain on people that a rule was not designed for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mipmech.budget import Budget, Event, Stop
from mipmech.cli.shell import Shell
from mipmech.errors import InputError
from mipmech.model.instance import Instance

if TYPE_CHECKING:  # imported when folds are asked for: help comes at once without
    from mipmech.design.folds import Designed, Designer, FoldResults

Folds = Annotated[
    int | None,
    typer.Option("--folds", help="Also design without each of K folds of people, and grade there."),
]
FoldSeed = Annotated[
    int | None, typer.Option("--fold-seed", help="The same seed, the same folds [0].")
]


@dataclass(frozen=True)
class Folding:
    """How many folds are wanted, if any; and their share of the time."""

    folds: int | None
    seed: int

    @classmethod
    def asked(cls, folds: int | None, seed: int | None) -> Folding:
        """What the options say, checked before the work."""
        if folds is None and seed is not None:
            raise InputError("says nothing without folds; add --folds 5", field="fold_seed")
        if folds is not None:
            from mipmech.design.folds import check_folds  # noqa: PLC0415

            check_folds(folds, seed or 0)
        return cls(folds, seed or 0)

    def first(self, sample: Instance, budget: Budget) -> Budget:
        """The budget of the design on all people: an equal part beside those of the folds."""
        if self.folds is None:
            return budget
        from mipmech.design.folds import split  # noqa: PLC0415

        split(sample.weights, self.folds, self.seed)  # more folds than people: refused by now
        return replace(budget, seconds=budget.seconds / (1 + self.folds))

    def run(
        self,
        shell: Shell,
        sample: Instance,
        design: Designer,
        done: Designed,
        told: Callable[[Event], str],
        threads: int,
    ) -> FoldResults | None:
        """Design without each fold, unless the design on all people was stopped."""
        if self.folds is None:
            return None
        from mipmech.design.folds import FoldResults, held_out  # noqa: PLC0415

        if done.stop in (Stop.INTERRUPTED, Stop.LOST):
            return FoldResults((), self.folds, self.seed, done.stop, 0.0)
        with shell.following("folds", told) as watch:
            budget = shell.budget(threads, watch)
            return held_out(sample, design, folds=self.folds, seed=self.seed, budget=budget)


def folded(found: FoldResults | None, gain: Fraction) -> dict[str, Any]:
    """What ``--json`` says of them; nothing if none were asked for."""
    return {} if found is None else {"folds": found.to_dict(gain)}
