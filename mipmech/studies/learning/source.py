"""Where a learning curve's samples come from: smoothed populations of the families, or data.

Samples are drawn by (size, repeat) from streams of their own, so that each is the same whatever
else is asked for.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from mipmech.errors import InputError, did_you_mean, shorten
from mipmech.model import families
from mipmech.model.instance import Instance
from mipmech.model.population import Smoothed

Numbers = NDArray[np.int64]
Source = Smoothed | Instance

# Sizes start here and double.
FIRST = 25
# The largest size by default, by rank: ten certificates of each size take a minute or less in all.
LARGEST_BY_RANK = {1: 12_800, 2: 12_800, 3: 3200, 4: 400, 5: 100}
LARGEST_BEYOND = 50
# A family's population: this many base agents, each blurred by this share of the median reach. The
# reach is the length that matters: much more would wash out the sheets and ties of a family, and
# the spread of a heavy-tailed one is no length at all.
BASE_AGENTS = 50
BLUR = 0.25


def population(
    name: str,
    rank: int = 2,
    seed: int = 0,
    sigma: float | None = None,
    base_agents: int | None = None,
    hidden: int = 1,
    cost: float | None = None,
) -> Smoothed:
    """The smoothed population of a named family.

    gaussian-mixture is one by itself: four centres, σ = 0.3. Of every other family it is the
    σ-smoothed distribution over a member with ``base_agents`` agents (50), weights taken as
    probabilities; σ is a quarter of the median reach unless given.

    >>> population("uniform-ball", rank=3, seed=7).sigma
    0.0625
    """
    if name not in families.NAMES:
        hint = did_you_mean(name, families.NAMES)
        raise InputError(
            f"there is no family {shorten(name)}{hint}; there are: {', '.join(families.NAMES)}",
            field="family",
        )
    for field, value, least in (("rank", rank, 1), ("hidden", hidden, 0), ("seed", seed, 0)):
        if value < least:
            raise InputError(f"is {value}; give {least} or more", field=field)
    if name == "gaussian-mixture":
        if base_agents is not None:
            raise InputError(
                "is for other families; gaussian-mixture has its own four centres",
                field="base_agents",
            )
        check_memory(4, rank + hidden, "rank")
        mixture = families.gaussian_mixture(rank, seed, hidden, 2.0 if cost is None else cost)
        return mixture if sigma is None else Smoothed(mixture.base, sigma)
    count = BASE_AGENTS if base_agents is None else base_agents
    base = families.make(name, count, rank, seed, hidden=hidden, cost=cost)
    reach = base.reach[base.weights > 0]
    return Smoothed(base, BLUR * float(np.median(reach)) if sigma is None else sigma)


def open_source(
    text: str,
    *,
    rank: int | None = None,
    seed: int = 0,
    sigma: float | None = None,
    hidden: int | None = None,
    cost: float | None = None,
) -> Source:
    """A family's population, or the instance file of this name: data, or with ``sigma`` its base.

    A file that is called like a family is meant by a path, such as ./ties.
    """
    if text in families.NAMES:
        return population(
            text, 2 if rank is None else rank, seed, sigma,
            hidden=1 if hidden is None else hidden, cost=cost,
        )  # fmt: skip
    for field, value in (("rank", rank), ("hidden", hidden), ("cost", cost)):
        if value is not None:
            raise InputError("is for families; an instance file has its own", field=field)
    if "/" not in text and not text.endswith(".json") and not os.path.exists(text):
        raise InputError(
            f"there is neither a family nor a file {shorten(text)}"
            f"{did_you_mean(text, families.NAMES)}; families are: {', '.join(families.NAMES)}",
            field="source",
        )
    instance = Instance.load(text)
    return instance if sigma is None else Smoothed(instance, sigma)


def check_memory(agents: int, width: int, field: str) -> None:
    if agents * width > families.MOST_NUMBERS:
        raise InputError(
            f"asks for {agents} agents with {width} features: over {families.MOST_NUMBERS:,}"
            " numbers in all",
            field=field,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Draw:
    """What a rule is learned from, and what grades it.

    rows : of data, the rows that are learned from and those that are held out; disjoint
    """

    sample: Instance
    held_out: Instance
    rows: tuple[Numbers, Numbers] | None = None

    def __repr__(self) -> str:
        return f"Draw({self.sample.size} agents to learn from, {self.held_out.size} held out)"


def draw(source: Source, size: int, repeat: int, seed: int = 0) -> Draw:
    """The sample of this size and number, and its held-out agents; always the same for a seed.

    Each (size, repeat) has a stream of its own, so what else is asked for does not matter. Of a
    smoothed population both are independent draws of the same size; of data, a random split.
    """
    stream = SeedSequence(seed, spawn_key=(size, repeat))
    if isinstance(source, Smoothed):
        first, second = (int(number) for number in stream.generate_state(2, np.uint64))
        return Draw(
            source.sample(size, first, name=f"sample {repeat} of {size}"),
            source.sample(size, second, name=f"held out beside sample {repeat} of {size}"),
        )
    order = np.random.default_rng(stream).permutation(source.size)
    learned, rest = np.sort(order[:size]), np.sort(order[size:])
    return Draw(
        source.part(learned, f"sample {repeat} of {size}"),
        source.part(rest, f"held out beside sample {repeat} of {size}"),
        (learned, rest),
    )


def largest_size(source: Source) -> int | None:
    """The most agents that may be learned from; None if there is no limit.

    Of data, a quarter stays held out, and two rows at least: one alone says nothing of the spread.
    """
    if isinstance(source, Smoothed):
        return None
    return source.size - max(-(-source.size // 4), 2)


def default_sizes(source: Source) -> tuple[int, ...]:
    """25, 50, 100, … up to what takes a minute or less, or leaves enough of the data held out.

    >>> default_sizes(population("gaussian-mixture", rank=4))
    (25, 50, 100, 200, 400)
    """
    rank = base_of(source).view.rank
    top = LARGEST_BY_RANK.get(rank, LARGEST_BEYOND)
    most = largest_size(source)
    top = top if most is None else min(top, most)
    size = FIRST if top >= 2 * FIRST else max(1, top // 4)
    sizes = []
    while size * 1.4 < top:  # a size just below the last one would add a row and nothing else
        sizes.append(size)
        size *= 2
    return (*sizes, top)


def base_of(source: Source) -> Instance:
    return source.base if isinstance(source, Smoothed) else source
