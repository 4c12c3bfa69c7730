"""Comparisons to report on: real ones in small loops, and made-up ones with every kind of trouble.

The loops here are the plainest that fill the record; `mipmech.compare` is tested elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mipmech import Budget, Instance, certify, recount
from mipmech.budget import Stop, Timer
from mipmech.model import from_reduced, reduce
from mipmech.model.thresholds import best_threshold, densest_threshold
from mipmech.oracles.base import Answer, answer_infeasible, grade, infeasible
from mipmech.oracles.registry import oracle_named
from mipmech.studies.comparison.results import FILE, Bounds, Call, Comparison, Problem, Run
from tests.conftest import ROOT

HOSTILE = (
    "<script>window.hacked = true; alert(1)</script>",
    '"><img src=x onerror="window.hacked = true">',
    "$x$ and \\frac{1}{2} {{ 7*7 }} {% raw %}",
    "=cmd|' /C calc'!A0",
    "a very long name " * 20,
    "مثال \u202e 例題 пример 👩\u200d🔬",
    "two\nlines\tand\x00a zero\ud800",
    "a|b `c` *d* _e_ [f](https://example.org) <b>g</b> &amp; ~h~",
)


@dataclass(frozen=True)
class Draws:
    """A poor heuristic: a few random directions at η, the densest threshold of each."""

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
    oracles: Sequence[str] = ("sweep", "projection", "draws"),
    fractions: Sequence[float] = (0.3, 0.7, 1.0),
    seeds: Sequence[int] = (0, 1, 2),
) -> Comparison:
    """Ask oracles on instance files, and leave the record in a folder."""
    (folder / "instances").mkdir(parents=True, exist_ok=True)
    problems, runs = [], []
    for path in files:
        instance = Instance.load(path)
        geometry = reduce(instance)
        copy = f"instances/{path.parent.name}-{path.stem}.json"
        instance.save(folder / copy)
        proof = certify(instance, gap=1e-3, budget=Budget(seconds=5))
        densities = []
        for fraction in fractions:
            answer = oracle_named("cells")(geometry, fraction * geometry.p_norm, Budget(seconds=5))
            upper = float(answer.upper if answer.upper is not None else 1)
            densities.append(Bounds(float(answer.density), upper, "attested", answer.seconds))
        best = None if proof.recount is None else proof.recount.mechanism.to_dict()
        problems.append(
            Problem(
                name=instance.name,
                digest=instance.digest,
                file=copy,
                agents=instance.size,
                group=path.stem.split("-m")[0] if "-m" in path.stem else path.parent.name,
                rank=geometry.rank,
                densities=tuple(densities),
                best=best,
                gain=Bounds(float(proof.lower), proof.upper, proof.level, proof.seconds),
            )
        )
        for name in oracles:
            for seed in seeds if name == "draws" else [None]:
                asked = Draws(seed=seed) if name == "draws" else oracle_named(name)
                runs.append(_run(instance, geometry, name, asked, seed, fractions))
    found = Comparison(
        tuple(problems), tuple(runs), seconds=12.5, complete=True,
        settings={
            "oracles": list(oracles), "eta_fractions": list(fractions), "seeds": list(seeds),
            "seconds": 5.0,
        },
        made_by={"mipmech": "0.3.0", "python": "3.11", "machine": "2 cores"},
    )  # fmt: skip
    found.save(folder)
    return found


def _run(instance, geometry, name, asked, seed, fractions) -> Run:
    calls, rules = [], []
    for fraction in fractions:
        events = []
        eta = fraction * geometry.p_norm
        try:
            answer = asked(geometry, eta, Budget(seconds=5, watch=events.append))
        except ValueError as error:  # the sweep knows two dimensions only
            return Run(instance.digest, name, repr(asked), seed, (), 0.0, None, str(error))
        gain = gain_two = 0.0
        if answer.mechanism is not None:
            rule = best_threshold(instance, answer.mechanism)
            if rule.gain > 0:
                gain = float(rule.gain)
                rules.append(rule)
            reach = float(1 / instance.cost.min())
            for step in (0.0, reach / 2):
                moved = answer.mechanism.at(answer.mechanism.threshold + step)
                gain_two = max(gain_two, float(recount(instance, moved).gain))
        trace = tuple((e.seconds, e.lower, e.upper) for e in events)
        calls.append(
            Call(
                fraction,
                eta,
                float(answer.lower),
                answer.soft,
                None if answer.upper is None else float(answer.upper),
                answer.status,
                answer.stop.value,
                answer.seconds,
                gain,
                min(gain, gain_two),
                trace,
            )
        )
    best = max(rules, key=lambda rule: rule.gain, default=None)
    rule = None if best is None else best.mechanism.to_dict()
    total = sum(call.seconds for call in calls)
    return Run(instance.digest, name, repr(asked), seed, tuple(calls), total, rule)


def keep(comparison: Comparison, folder: Path) -> Path:
    """Write a record as a stranger might: whatever the names are, the file is plain ASCII."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(json.dumps(comparison.to_dict()))
    return folder


SHIPPED = ROOT / "instances"
TINY = [SHIPPED / "tiny" / f"{n}.json" for n in ("cloud", "square", "hidden-quality", "weights")]


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
        densities = tuple(Bounds(d, d, "attested", 0.1) for d in rng.uniform(0.2, 0.9, 3).tolist())
        densities = tuple(densities[i % 3] for i in range(len(fractions)))
        group = names[number % groups] if names else f"group-{number % groups}"
        digest = f"{number:064x}"
        level = ("proved", "attested", "stated")[number % 3]
        gain = Bounds(optimum, upper, level, 1.0)
        file = f"instances/{number}.json"
        problem = Problem(name, digest, group, file, 40, 2 + number % 4, gain, densities)
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
        settings={
            "oracles": list(oracles), "eta_fractions": list(fractions), "seeds": list(range(seeds))
        },
        made_by={"mipmech": "0.3.0", "python": "3.11"},
    )  # fmt: skip
