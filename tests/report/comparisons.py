"""Comparisons to report on: real ones, and made-up ones with every kind of trouble."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mipmech import Comparison, Oracle, compare
from mipmech.studies.batch.asking import Call, ComparisonSettings, Reference, Run
from mipmech.studies.comparison.results import Problem
from tests.own_oracles import Draws


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
