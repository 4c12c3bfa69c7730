"""Comparisons to report on: real ones, and made-up ones with every kind of trouble."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from mipmech import Budget, Comparison, Oracle, compare
from mipmech.budget import Stop, Timer
from mipmech.model import from_reduced
from mipmech.model.thresholds import densest_threshold
from mipmech.oracles.base import Answer, answer_infeasible, grade, infeasible
from mipmech.studies.batch.asking import Call, ComparisonSettings, Reference, Run
from mipmech.studies.comparison.results import Problem


@dataclass(frozen=True)
class Draws(Oracle):
    """A poor heuristic: a few random directions at η, the densest threshold of each."""

    randomised: ClassVar[bool] = True
    number: int = 20
    seed: int = 0

    def __call__(self, geometry, eta, budget: Budget) -> Answer:
        timer = Timer(budget)
        if infeasible(geometry, eta):
            return answer_infeasible(self, eta, timer)
        rng = np.random.default_rng(self.seed)
        size, best = geometry.p_norm, None
        along = geometry.p / size if size else np.eye(geometry.rank)[0]
        cosine = min(1.0, eta / size) if size else 0.0
        for number in range(self.number):
            across = rng.standard_normal(geometry.rank)
            across -= (across @ along) * along
            across /= np.linalg.norm(across) or 1.0
            u = cosine * along + np.sqrt(1 - cosine**2) * across
            found = densest_threshold(geometry.instance, from_reduced(geometry, u, 0.0)).recount
            if best is None or found.density > best.density:
                best = found
                timer.tell(found.density, None, number)
        return grade(self, geometry, eta, best.mechanism, stop=Stop.FINISHED, timer=timer)


def real(
    folder: Path,
    files: Sequence[Path],
    oracles: Sequence[str | Oracle] = ("sweep", "projection", Draws()),
    fractions: Sequence[float] = (0.3, 0.7, 1.0),
    seeds: Sequence[int] = (0, 1, 2),
) -> Comparison:
    """Ask oracles on instance files, and leave the run in a folder."""
    return compare(
        files, oracles, eta_fractions=fractions, seeds=seeds, seconds_per_call=5,
        reference_seconds=5, workers=1, out=folder,
    )  # fmt: skip


def made_up(
    problems: int = 6,
    oracles: Sequence[str] = ("exact", "slow", "luck"),
    names: Sequence[str] = (),
    groups: int = 3,
    seeds: int = 3,
    fractions: Sequence[float] = (0.25, 0.5, 0.75),
    seed: int = 1,
) -> Comparison:
    """A comparison nobody ran: oracles that get worse by their place, with traces and bounds."""
    rng = np.random.default_rng(seed)
    listed, runs = [], []
    for number in range(problems):
        name = names[number % len(names)] if names else f"problem-{number}"
        # An optimum of 0 (nothing visible matters), an open one, and closed ones.
        optimum = 0.0 if number == 1 else float(rng.uniform(0.01, 2))
        upper = optimum * (1.05 if number == 2 else 1.0)
        densities = tuple(
            Reference(d, d, "attested", 0.1) for d in rng.uniform(0.2, 0.9, 3).tolist()
        )
        densities = tuple(densities[i % 3] for i in range(len(fractions)))
        group = names[number % groups] if names else f"group-{number % groups}"
        digest = f"{number:064x}"
        level = ("proved", "attested", "stated")[number % 3]
        gain = Reference(optimum, upper, level, 1.0)
        problem = Problem(
            name=name, digest=digest, group=group, agents=40, rank=2 + number % 4, gain=gain,
            densities=densities,
        )  # fmt: skip
        listed.append(problem)
        for place, oracle in enumerate(oracles):
            exact = place < 2
            for draw in [None] if exact else range(seeds):
                quality = 1.0 if exact else float(rng.uniform(0.5, 1) ** (number % groups + 0.3))
                calls = []
                for fraction, bounds in zip(fractions, densities, strict=True):
                    value = bounds.lower * min(1.0, quality * rng.uniform(0.9, 1.1))
                    seconds = float(10 ** rng.uniform(-3, -1) * (1 + 9 * place))
                    trace = tuple(
                        (
                            seconds * part,
                            value * part,
                            None if not exact else bounds.upper + (1 - part) * (1 - bounds.upper),
                        )
                        for part in (0.1, 0.4, 0.8, 1.0)
                    )
                    won = optimum * quality * float(rng.uniform(0.95, 1))
                    calls.append(
                        Call(
                            fraction,
                            fraction * 2,
                            value,
                            False,
                            bounds.upper if exact else None,
                            "optimal" if exact else "feasible",
                            "completed",
                            seconds,
                            won,
                            won * 0.8,
                            trace,
                        )
                    )
                record = f"{oracle.title()}(seed={draw})"
                runs.append(Run(digest, oracle, record, draw, tuple(calls), 0.5))
    return Comparison(
        tuple(listed), tuple(runs), seconds=60.0, complete=True,
        settings=ComparisonSettings(
            tuple(oracles), tuple(fractions), tuple(range(seeds)), 1.0, False, 10.0
        ),
        made_by={"mipmech": "0.3.0", "python": "3.11"},
    )  # fmt: skip
