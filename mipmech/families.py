"""Named, seeded families of instances, each with a reason to exist.

The same name, sizes and seed give the same instance. Coordinates are rounded to six decimals, so
that files are readable and do not hang on the last bit of a library's logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from mipmech.errors import InputError
from mipmech.instance import Instance, Smoothing

Floats = NDArray[np.float64]
Parts = dict[str, Any]

DECIMALS = 6
MOST_AGENTS = 10_000_000


@dataclass(frozen=True)
class Family:
    """A family: what it looks like, and the arrays of one member."""

    what: str
    build: Callable[[Generator, int, int], Parts]


def make(
    family: str,
    agents: int,
    rank: int,
    seed: int,
    *,
    hidden: int = 1,
    cost: float | None = None,
) -> Instance:
    """An instance of a family: ``agents`` agents, ``rank`` visible features, ``hidden`` others.

    >>> make("uniform-ball", agents=50, rank=3, seed=7)
    Instance('uniform-ball-m50-k3-s7': 50 agents, 4 features, 3 seen)
    """
    if family not in FAMILIES and family != "example1":
        names = ", ".join(["example1", *FAMILIES])
        raise InputError(f"there is no family {family!r}; there are: {names}", field="family")
    for name, value, least in (("agents", agents, 1), ("rank", rank, 1), ("hidden", hidden, 0)):
        if value < least:
            raise InputError(f"is {value}; give {least} or more", field=name)
    if agents > MOST_AGENTS:
        raise InputError(f"is {agents}; {MOST_AGENTS} are the most", field="agents")
    if seed < 0:
        raise InputError(f"is {seed}; give 0 or more", field="seed")
    if family == "example1":
        if (rank, hidden) != (2, 1):
            raise InputError("must be 2 in Example 1, with one hidden feature", field="rank")
        return example1(agents, reach=0.25 if cost is None else 1 / cost)
    rng = np.random.default_rng(seed)
    parts = FAMILIES[family].build(rng, agents, rank)
    seen = np.asarray(parts.pop("seen"), dtype=np.float64).round(DECIMALS)
    width = seen.shape[1] + hidden
    if "quality" not in parts:
        parts["quality"] = _unit(rng.standard_normal(width))
    elif len(parts["quality"]) < width:
        parts["quality"] = np.append(parts["quality"], np.full(width - rank, 0.5))
    # What is hidden follows what is seen, loosely, as in life.
    unseen = 0.5 * seen[:, :1] + rng.standard_normal((agents, hidden))
    if cost is not None:
        parts["cost"] = cost
    options = f" --hidden {hidden}" * (hidden != 1) + f" --cost {cost}" * (cost is not None)
    command = f"mipmech make {family} --agents {agents} --rank {rank} --seed {seed}{options}"
    parts.setdefault("visible", list(range(rank)))
    return Instance.from_arrays(
        np.round(np.hstack([seen, unseen]), DECIMALS),
        np.round(parts.pop("quality"), DECIMALS),
        name=f"{family}-m{agents}-k{rank}-s{seed}",
        source=f"{FAMILIES[family].what}; made by `{command}`",
        **parts,
    )


def _unit(vector: Floats) -> Floats:
    return np.asarray(vector / np.linalg.norm(vector))


def _sphere(rng: Generator, count: int, rank: int) -> Floats:
    directions = rng.standard_normal((count, rank))
    return np.asarray(directions / np.linalg.norm(directions, axis=1)[:, None])


def example1(agents: int, radius: float = 1.0, reach: float = 0.25) -> Instance:
    """Example 1 of the paper: x = (0, 0, x₃) with x₃ spread evenly over [−r, r].

    The planner sees x₂ and x₃; w_f = (1, 1, 1)/√3. For ℓ ≤ r the best rule is x₂ ≥ ℓ with gain
    ℓ/√3, while w ∝ P w_f gains only about ℓ²/(2r√3).
    """
    x = np.zeros((agents, 3))
    x[:, 2] = radius * (2 * np.arange(agents) + 1 - agents) / agents
    return Instance.from_arrays(
        x,
        np.full(3, 1 / math.sqrt(3)),
        visible=["x2", "x3"],
        features=["x1", "x2", "x3"],
        cost=1 / reach,
        name=f"example1-m{agents}",
        source="Example 1 of Haghtalab, Immorlica, Lucier, Wang (IJCAI 2020), on an even grid",
    )


def _gaussian_mixture(rng: Generator, m: int, k: int) -> Parts:
    sigma = 0.3
    centres = _sphere(rng, 4, k) * np.sqrt(rng.random((4, 1)))
    seen = centres[rng.integers(4, size=m)] + sigma * rng.standard_normal((m, k))
    return {"seen": seen, "cost": 2.0, "smoothing": Smoothing(sigma, 1.0)}


def _uniform_ball(rng: Generator, m: int, k: int) -> Parts:
    return {"seen": _sphere(rng, m, k) * rng.random((m, 1)) ** (1 / k), "cost": 4.0}


def _heavy_tails(rng: Generator, m: int, k: int) -> Parts:
    # Student's t with two degrees of freedom: no variance, a few agents very far away.
    scale = np.sqrt(rng.chisquare(2, (m, 1)) / 2)
    return {"seen": rng.standard_normal((m, k)) / scale, "cost": 2.0}


def _clustered_lines(rng: Generator, m: int, k: int) -> Parts:
    # Three thin sheets; a rule gains most along the normal of a crowded one.
    normals = _sphere(rng, 3, k)
    which = rng.choice(3, size=m, p=[0.5, 0.3, 0.2])
    seen = 2 * rng.standard_normal((m, k))
    normal = normals[which]
    seen -= (seen * normal).sum(axis=1, keepdims=True) * normal
    return {"seen": seen + 0.05 * rng.standard_normal((m, 1)) * normal, "cost": 5.0}


def _ties(rng: Generator, m: int, k: int) -> Parts:
    # Tenths, duplicates, and a reach of exactly one tenth or two: every comparison is a tie.
    return {
        "seen": rng.integers(-3, 4, (m, k)) / 10,
        "cost": rng.choice([5.0, 10.0], m),
        "weights": rng.integers(0, 4, m) + (np.arange(m) == 0),
    }


def _adversarial(rng: Generator, m: int, k: int) -> Parts:
    # Everybody lies on a thin sheet whose normal makes a wide angle with P w_f: along P w_f the
    # sample is spread out and few move; along the normal everybody does (Example 1, generalised).
    if k == 1:
        raise InputError("is 1, but P w_f is then the only direction; give 2 or more", field="rank")
    normal = np.append([0.6, 0.8], np.zeros(k - 2))
    seen = 4 * (rng.random((m, k)) - 0.5)
    seen -= np.outer(seen @ normal, normal)
    quality = np.append([1.0], np.zeros(k - 1))
    return {
        "seen": seen + 0.005 * rng.standard_normal((m, 1)) * normal,
        "cost": 10.0,
        "quality": quality,
    }


def _costs(rng: Generator, m: int, k: int) -> Parts:
    # Those who are worse off pay more for every step; weights as in a survey.
    seen = rng.standard_normal((m, k))
    cost = np.round(3 * np.exp(0.6 * rng.standard_normal(m) - 0.4 * seen[:, 0]), 3)
    return {"seen": seen, "cost": np.maximum(cost, 0.1), "weights": rng.integers(1, 10, m)}


FAMILIES: dict[str, Family] = {
    "gaussian-mixture": Family("four Gaussian clusters, smoothed with σ = 0.3", _gaussian_mixture),
    "uniform-ball": Family("uniform in the unit ball", _uniform_ball),
    "heavy-tails": Family("Student's t with two degrees of freedom", _heavy_tails),
    "clustered-lines": Family("three thin sheets of unequal size", _clustered_lines),
    "ties": Family("tenths and duplicates, reach one or two tenths: ties everywhere", _ties),
    "adversarial": Family("a thin sheet at a wide angle to P w_f", _adversarial),
    "costs": Family("unequal costs, higher for the worse off, with weights", _costs),
}
