"""Named, seeded families of instances, each with a reason to exist.

The same name, sizes and seed give the same instance. Coordinates are rounded to six decimals, so
that files are readable and do not depend on the last bit of a library's logarithm.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.random import Generator

from mipmech.errors import InputError, did_you_mean, shorten
from mipmech.model.costs.pricing import Norm
from mipmech.model.instance import Instance
from mipmech.model.population import Smoothed
from mipmech.validation import Floats, array, at_least, length

Parts = dict[str, Any]

DECIMALS = 6
MOST_NUMBERS = 100_000_000
# Prices that are drawn from the seed.
SPREAD: Final = "spread"
PRICES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
# The needle: its share of the agents, and the reach of all.
NEEDLE_SHARE, NEEDLE_REACH = 0.02, 1 / 2500


@dataclass(frozen=True)
class Family:
    """A family: what it looks like, and the arrays of one member."""

    what: str
    build: Callable[[Generator, int, int, int], Parts]


def make(
    family: str,
    agents: int,
    rank: int,
    seed: int,
    *,
    hidden: int = 1,
    cost: float | None = None,
    norm: Norm = "l2",
    effort: Sequence[float] | Literal["spread"] | None = None,
) -> Instance:
    """An instance of a family of instances, reproducible from its seed.

    Its name ends in the norm, unless that is l2, and in "priced" for ``effort="spread"``, "prices"
    for a list of prices.

    Parameters
    ----------
    family : str
        One of ``mipmech.model.FAMILIES``, or "example1".
    agents, rank, seed : int
        The number of agents, the number of visible features, and the seed.
    hidden : int
        The number of hidden features.
    cost : float, optional
        The cost of all agents, in place of the family's own.
    norm : {"l2", "l1", "linf"}
        How moves in several features add up.
    effort : sequence of float or "spread", optional
        Prices of the visible features (1 for hidden ones); or "spread", round prices between 0.01
        and 100, drawn from the seed, for features that come in units as different: divided by their
        prices, and their quality multiplied, so that it is the same sample in units of cost.

    Examples
    --------
    >>> make("uniform-ball", agents=50, rank=3, seed=7)
    Instance('uniform-ball-m50-k3-s7': 50 agents, 4 features, 3 seen)
    >>> priced = make("ties", agents=9, rank=2, seed=1, norm="l1", effort="spread")
    >>> priced, priced.costs.effort.tolist()
    (Instance('ties-m9-k2-s1-l1-priced': 9 agents, 3 features, 2 seen), [100.0, 0.01, 1.0])
    """
    if family not in NAMES:
        said = f"there is no family {family!r}; there are: {', '.join(NAMES)}"
        raise InputError(said, field="family")
    at_least(1, agents=agents, rank=rank)
    at_least(0, hidden=hidden, seed=seed)
    if agents * (rank + hidden) > MOST_NUMBERS:
        said = f"is {agents}, with {rank + hidden} features: more than {MOST_NUMBERS:,} numbers"
        raise InputError(said, field="agents")
    if family == "example1":
        if (rank, hidden) != (2, 1):
            raise InputError("must be 2 for Example 1, with one hidden feature", field="rank")
        for field, other in (("norm", norm != "l2"), ("effort", effort is not None)):
            if other:
                said = "is for families that are drawn from a seed; Example 1 has Euclidean costs"
                raise InputError(said, field=field)
        return example1(agents, cost=4.0 if cost is None else cost)
    prices, text = _prices(effort, rank, hidden, seed)
    options = f" --hidden {hidden}" * (hidden != 1) + f" --cost {cost}" * (cost is not None)
    options += f" --norm {norm}" * (norm != "l2") + f" --effort {text}" * bool(text)
    suffix = f"-{norm}" * (norm != "l2")
    suffix += "" if prices is None else "-priced" if text == SPREAD else "-prices"
    command = f"mipmech make {family} --agents {agents} --rank {rank} --seed {seed}{options}"
    name = f"{family}-m{agents}-k{rank}-s{seed}{suffix}"
    source = f"{FAMILIES[family].what}; made by `{command}`"
    parts = FAMILIES[family].build(np.random.default_rng(seed), agents, rank, hidden)
    if cost is not None:
        parts["cost"] = cost
    parts["agents"] = np.asarray(parts["agents"]).round(DECIMALS)
    parts["quality"] = np.asarray(parts["quality"]).round(DECIMALS)
    if prices is not None and text == SPREAD:
        # Round prices make round quotients: two more decimals hold them.
        parts["agents"] = (parts["agents"] / prices).round(DECIMALS + 2)
        parts["quality"] = (parts["quality"] * prices).round(DECIMALS + 2)
        parts.pop("smoothing", None)  # which speaks of noise that is alike in all features
    return Instance.from_arrays(
        **parts, visible=list(range(rank)), norm=norm, effort=prices, name=name, source=source
    )


def _prices(effort: object, rank: int, hidden: int, seed: int) -> tuple[Floats | None, str]:
    """The price of every feature, and the option that says so."""
    if effort is None:
        return None, ""
    if isinstance(effort, str):
        if effort != SPREAD:
            said = f"is {shorten(effort)}; give a list of prices, one per visible feature, or"
            raise InputError(f"{said} {SPREAD}{did_you_mean(effort, [SPREAD])}", field="effort")
        # Of its own stream, so that the sample is that without prices.
        rng = np.random.default_rng([seed, 1])
        drawn = rng.integers(len(PRICES), size=rank)
        drawn[:2] = (0, len(PRICES) - 1)[:rank]
        given, text = np.array(PRICES)[rng.permutation(drawn)], SPREAD
    else:
        given = array(effort, "effort", 1)  # type: ignore[arg-type]
        length(given, rank, "effort", "a price per visible feature")
        text = ",".join(repr(float(price)).removesuffix(".0") for price in given)
    return np.append(given, np.ones(hidden)), text


def named(name: str) -> Instance | None:
    """The instance that `make` would give this name; None if the name is not of that form.

    A list of prices is in no name.

    >>> named("ties-m12-k2-s3")
    Instance('ties-m12-k2-s3': 12 agents, 3 features, 2 seen)
    >>> named("ties-m12-k2-s3-linf-priced").costs.norm
    'linf'
    >>> named("ties.json")
    """
    parts = re.fullmatch(r"(.+)-m(\d+)-k(\d+)-s(\d+)(?:-(l1|linf))?(-priced)?", name)
    if parts is None or parts[1] not in FAMILIES:
        return None
    norm: Norm = parts[5] or "l2"  # type: ignore[assignment]
    effort: Literal["spread"] | None = SPREAD if parts[6] else None
    sizes = (int(part) for part in parts.group(2, 3, 4))
    return make(parts[1], *sizes, norm=norm, effort=effort)


def gaussian_mixture(rank: int, seed: int, hidden: int = 1, cost: float = 2.0) -> Smoothed:
    """The population of the family gaussian-mixture: four centres in the unit ball, σ = 0.3.

    `make` draws its instances from it (and rounds them to six decimals).
    """
    rng = np.random.default_rng(seed)
    width = rank + hidden
    centres = _sphere(rng, 4, width) * np.sqrt(rng.random((4, 1)))
    quality = _unit(rng.standard_normal(width))
    base = Instance.from_arrays(
        centres.round(DECIMALS),
        quality.round(DECIMALS),
        visible=list(range(rank)),
        cost=cost,
        name=f"gaussian-mixture-k{rank}-s{seed}",
    )
    return Smoothed(base, 0.3)


def _unit(vector: Floats) -> Floats:
    return np.asarray(vector / np.linalg.norm(vector))


def _sphere(rng: Generator, count: int, rank: int) -> Floats:
    directions = rng.standard_normal((count, rank))
    return np.asarray(directions / np.linalg.norm(directions, axis=1)[:, None])


def example1(agents: int, radius: float = 1.0, cost: float = 4.0) -> Instance:
    """Example 1 of the paper: x = (0, 0, x₃) with x₃ spread evenly over [−r, r].

    The planner sees x₂ and x₃; w_f = (1, 1, 1)/√3. For ℓ = 1/cost ≤ r(m − 1)/m the best rule is
    x₂ ≥ ℓ with gain ℓ/√3, while w ∝ P w_f gains only about ℓ²/(2r√3).

    Parameters
    ----------
    agents : int
        The number of agents.
    radius, cost : float
        The paper's r and c.
    """
    x = np.zeros((agents, 3))
    x[:, 2] = radius * (2 * np.arange(agents) + 1 - agents) / agents
    return Instance.from_arrays(
        x,
        np.full(3, 1 / math.sqrt(3)),
        visible=["x2", "x3"],
        features=["x1", "x2", "x3"],
        cost=cost,
        name=f"example1-m{agents}",
        source="Example 1 of Haghtalab, Immorlica, Lucier, Wang (IJCAI 2020), on an even grid",
    )


def _with_hidden(
    rng: Generator, seen: Floats, hidden: int, quality: Floats | None = None, **parts: Any
) -> Parts:
    """Add hidden features, which follow what is seen loosely, as in life; and a quality."""
    unseen = 0.5 * seen[:, :1] + rng.standard_normal((len(seen), hidden))
    if quality is None:
        quality = _unit(rng.standard_normal(seen.shape[1] + hidden))
    return {"agents": np.hstack([seen, unseen]), "quality": quality, **parts}


def _gaussian_mixture(rng: Generator, m: int, k: int, hidden: int) -> Parts:
    population = gaussian_mixture(k, int(rng.integers(2**32)), hidden)
    sample = population.sample(m, int(rng.integers(2**32)))
    parts = {"agents": sample.agents, "quality": sample.quality, "smoothing": sample.smoothing}
    return {**parts, "cost": float(sample.cost[0])}


def _uniform_ball(rng: Generator, m: int, k: int, hidden: int) -> Parts:
    seen = _sphere(rng, m, k) * rng.random((m, 1)) ** (1 / k)
    return _with_hidden(rng, seen, hidden, cost=4.0)


def _heavy_tails(rng: Generator, m: int, k: int, hidden: int) -> Parts:
    # Student's t with two degrees of freedom: no variance, a few agents very far away.
    scale = np.sqrt(rng.chisquare(2, (m, 1)) / 2)
    return _with_hidden(rng, rng.standard_normal((m, k)) / scale, hidden, cost=2.0)


def _clustered_lines(rng: Generator, m: int, k: int, hidden: int) -> Parts:
    # Three thin sheets; a rule gains most along the normal of a crowded one.
    normals = _sphere(rng, 3, k)
    which = rng.choice(3, size=m, p=[0.5, 0.3, 0.2])
    seen = 2 * rng.standard_normal((m, k))
    normal = normals[which]
    seen -= (seen * normal).sum(axis=1, keepdims=True) * normal
    seen += 0.05 * rng.standard_normal((m, 1)) * normal
    return _with_hidden(rng, seen, hidden, cost=5.0)


def _ties(rng: Generator, m: int, k: int, hidden: int) -> Parts:
    # Tenths, duplicates, and a reach of exactly one tenth or two: every comparison is a tie.
    seen = rng.integers(-3, 4, (m, k)) / 10
    cost = rng.choice([5.0, 10.0], m)
    weights = rng.integers(0, 4, m) + (np.arange(m) == 0)
    return _with_hidden(rng, seen, hidden, cost=cost, weights=weights)


def _adversarial(rng: Generator, m: int, k: int, hidden: int) -> Parts:
    # All agents lie on a thin sheet whose normal makes a wide angle with P w_f: along P w_f the
    # sample is spread out and few move; along the normal all do (Example 1, generalised).
    if k == 1:
        raise InputError("is 1, where P w_f is the only direction; give 2 or more", field="rank")
    normal = np.append([0.6, 0.8], np.zeros(k - 2))
    seen = 4 * (rng.random((m, k)) - 0.5)
    seen -= np.outer(seen @ normal, normal)
    seen += 0.005 * rng.standard_normal((m, 1)) * normal
    quality = np.concatenate([[1.0], np.zeros(k - 1), np.full(hidden, 0.5)])
    return _with_hidden(rng, seen, hidden, quality, cost=10.0)


def _needle(rng: Generator, m: int, k: int, hidden: int) -> Parts:
    # A few agents share a margin that is far thinner than the others are apart, at 0.6 of ‖P w_f‖.
    # From anywhere else nothing points to it, and a random set of agents hardly ever lies in it.
    if k == 1:
        raise InputError("is 1, but the needle is not along P w_f; give 2 or more", field="rank")
    seen = _sphere(rng, m, k) * rng.random((m, 1)) ** (1 / k)
    normal = np.concatenate([[0.6], 0.8 * _unit(rng.standard_normal(k - 1))])
    planted = rng.permutation(m)[: min(m, max(2 * k, round(NEEDLE_SHARE * m)))]
    depth = NEEDLE_REACH * rng.uniform(0.75, 0.98, len(planted))
    seen[planted] -= np.outer(seen[planted] @ normal + depth, normal)
    quality = np.concatenate([[1.0], np.zeros(k - 1), np.full(hidden, 0.5)])
    return _with_hidden(rng, seen, hidden, quality, cost=1 / NEEDLE_REACH)


def _costs(rng: Generator, m: int, k: int, hidden: int) -> Parts:
    # Those who are worse off pay more for every step; weights as in a survey.
    seen = rng.standard_normal((m, k))
    cost = np.round(3 * np.exp(0.6 * rng.standard_normal(m) - 0.4 * seen[:, 0]), 3)
    weights = rng.integers(1, 10, m)
    return _with_hidden(rng, seen, hidden, cost=np.maximum(cost, 0.1), weights=weights)


FAMILIES: dict[str, Family] = {
    "gaussian-mixture": Family("four Gaussian clusters, smoothed with σ = 0.3", _gaussian_mixture),
    "uniform-ball": Family("uniform in the unit ball", _uniform_ball),
    "heavy-tails": Family("Student's t with two degrees of freedom", _heavy_tails),
    "clustered-lines": Family("three thin sheets of unequal size", _clustered_lines),
    "ties": Family("tenths and duplicates, reach one or two tenths: ties everywhere", _ties),
    "adversarial": Family("a thin sheet at a wide angle to P w_f", _adversarial),
    "needle": Family("uniform in the ball, but 2 % share a margin as thin as a needle", _needle),
    "costs": Family("unequal costs, higher for the worse off, with weights", _costs),
}
NAMES = ("example1", *FAMILIES)
