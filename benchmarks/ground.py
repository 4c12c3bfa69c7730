"""How fast the ground is: files, grading, thresholds. `make bench`.

Times are ratios within one run, against a plain reference on the same data, because machines are
shared and noisy; seconds are printed for orientation only.
"""

from __future__ import annotations

import csv
import hashlib
import json
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np

from mipmech import Instance, Mechanism, best_threshold, make_instance, recount
from mipmech.model import densest_threshold, reduce


def seconds(work: Callable[[], object], repeat: int = 3) -> float:
    """The best of a few runs."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def plain_csv(path: Path) -> list[list[float]]:
    with path.open(newline="") as stream:
        rows = csv.reader(stream)
        next(rows)
        return [[float(cell) for cell in row] for row in rows]


def plain_gain(instance: Instance, mechanism: Mechanism, agents: range) -> Fraction:
    """Lemma 1 agent by agent in Python's fractions, without a float filter."""
    w = [Fraction(v) for v in mechanism.weights]
    square = sum(v * v for v in w)
    moved = Fraction(0)
    for i in agents:
        score = sum(a * Fraction(float(x)) for a, x in zip(w, instance.agents[i], strict=True))
        distance = Fraction(mechanism.threshold) - score
        if distance >= 0 and (distance * Fraction(float(instance.cost[i]))) ** 2 <= square:
            moved += Fraction(float(instance.weights[i])) * distance
    return moved


def gain_in_floats(instance: Instance, mechanism: Mechanism) -> float:
    """The same in floats, which settle ties as they happen to round."""
    w = np.array(mechanism.weights) / np.linalg.norm(mechanism.weights)
    level = mechanism.threshold / np.linalg.norm(mechanism.weights)
    distance = level - instance.agents @ w
    moved = (distance >= 0) & (distance * instance.cost <= 1)
    weight = instance.weights / instance.weights.sum()
    return float(w @ instance.quality * (weight[moved] @ distance[moved]))


def line(what: str, time_: float, reference: float, against: str) -> None:
    ratio = f"{reference / time_:9.2f} ×  {against}"
    print(f"| {what:<50} | {time_:7.3f} s | {ratio:<46} |")


def main() -> None:
    rng = np.random.default_rng(0)
    print(f"| {'what':<50} | {'seconds':>9} | {'times as fast as':<46} |")
    print(f"|{'-' * 52}|{'-' * 11}|{'-' * 48}|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.json"
        sample = make_instance("gaussian-mixture", 100_000, 5, seed=1, hidden=5)
        sample.save(path, "csv")
        load = seconds(lambda: Instance.load(path))
        reference = seconds(lambda: plain_csv(Path(folder) / "a.csv"))
        line(
            "load and validate CSV, 100,000 × 10",
            load,
            reference,
            "csv.reader and float(), unchecked",
        )
        sample.save(path, "npy")
        line(
            "load and validate npy, 100,000 × 10", seconds(lambda: Instance.load(path)), load, "CSV"
        )
        sample.save(path)
        reference = seconds(lambda: json.loads(path.read_text()))
        inline = seconds(lambda: Instance.load(path))
        line("load and validate inline, 100,000 × 10", inline, reference, "json.loads alone")
    raw = seconds(lambda: hashlib.sha256(sample.agents.tobytes()).digest())
    line("digest, 100,000 × 10", seconds(lambda: fresh(sample).digest), raw, "sha256 of the agents")

    for weighted in (False, True):
        big = Instance.from_arrays(
            rng.standard_normal((1_000_000, 10)),
            rng.standard_normal(10),
            visible=range(5),
            cost=rng.choice([1.0, 2.0, 4.0], 1_000_000) if weighted else 2.0,
            weights=rng.random(1_000_000) if weighted else None,
        )
        kind = "weights, costs" if weighted else "equal"
        rule = Mechanism((*rng.standard_normal(5).tolist(), *[0.0] * 5), 0.3)
        product = seconds(lambda b=big: b.agents @ b.quality)
        floats = seconds(lambda b=big, r=rule: gain_in_floats(b, r))
        line(f"gain in floats, a million × 10, {kind}", floats, product, "one product x·w")
        exact = seconds(lambda b=big, r=rule: recount(b, r).value)
        hundredth = seconds(lambda b=big, r=rule: plain_gain(b, r, range(10_000)), 1)
        line(
            f"recount (exact value), {kind}", exact, 100 * hundredth, "plain fractions (1 % of it)"
        )
        line(f"recount (exact value), {kind}", exact, floats, "gain in floats")
        sort = seconds(lambda b=big: np.argsort(b.agents[:, 0], kind="stable"))
        best = seconds(lambda b=big, r=rule: best_threshold(b, r))
        line(f"best threshold, {kind}", best, sort, "one sort")
        densest = seconds(lambda b=big, r=rule: densest_threshold(b, r))
        line(f"densest threshold, {kind}", densest, sort, "one sort")
        line(f"reduce, {kind}", seconds(lambda b=big: reduce(b)), product, "one product x·w")

    ties = Instance.from_arrays(
        np.round(rng.integers(-9, 10, (1_000_000, 3)) / 10, 1),
        [1.0, 1.0, 1.0],
        visible=[0, 1],
        cost=10.0,
    )
    rule = Mechanism((1.0, 1.0, 0.0), 0.1)
    floats = seconds(lambda: gain_in_floats(ties, rule))
    undecided = seconds(lambda: recount(ties, rule).value)
    line("recount, a million agents on a grid of ties", undecided, floats, "gain in floats")


def fresh(instance: Instance) -> Instance:
    """A copy without the cached digest."""
    return Instance.from_arrays(
        instance.agents, instance.quality, cost=instance.cost, view=instance.view.matrix
    )


if __name__ == "__main__":
    main()
