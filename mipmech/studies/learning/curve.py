"""Learning curves: how well the best rule on a sample does on the population (Theorem 5).

`learn` draws samples of growing size, certifies the best rule on each, and grades that rule where
it was not learned. Of a σ-smoothed population the gain is known in closed form; of data, some rows
are learned from and the others grade. Beside what is seen stand two bounds on the population gain
of the learned rule, each with probability 1 − δ and each on its own, not all of them at once:

- from the held-out agents, for this one rule (`theory.held_out_bound`, empirical Bernstein);
- from the sample alone, for all rules at once: sample gain − `theory.uniform_deviation`. It is
  Theorem 5 with every constant written out; the paper gives none.

>>> from mipmech.studies.learning.source import population
>>> curve = learn(population("gaussian-mixture", rank=2, seed=1), sizes=[20, 40], repeats=2)
>>> curve.complete, [point.size for point in curve.points]
(True, [20, 20, 40, 40])
>>> all(point.gain <= curve.best.gain for point in curve.points)
True
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mipmech.budget import Budget, Event, Stop, Timer
from mipmech.design.certificate import DEFAULT_GAP, certify
from mipmech.errors import InputError
from mipmech.model.geometry import reduce
from mipmech.model.instance import Instance
from mipmech.model.mechanism import Mechanism, from_reduced, to_reduced
from mipmech.model.population import Smoothed
from mipmech.rationals import round_down
from mipmech.studies.learning.results import (
    About,
    BestKnown,
    LearnedPoint,
    LearningCurve,
    LearningSettings,
    whole,
)
from mipmech.studies.learning.source import (
    Source,
    base_of,
    check_memory,
    default_sizes,
    draw,
    largest_size,
)
from mipmech.theory.learning import HeldOut, held_out_bound

Floats = NDArray[np.float64]

# The local search for the population's best rule starts from this many of the learned ones.
STARTS = 3
SEARCH_STEPS = 200
# The method of the held-out bound: few agents move, so their gains vary little.
METHOD: Literal["bernstein"] = "bernstein"


def learn(
    source: Source,
    *,
    sizes: Iterable[int] | None = None,
    repeats: int = 10,
    gap: float = DEFAULT_GAP,
    delta: float = 0.05,
    seed: int = 0,
    budget: Budget | None = None,
) -> LearningCurve:
    """Learn the certified optimum from samples of growing size, and grade it elsewhere.

    Small sizes come first. At the limit, or after Ctrl-C, the result holds what was learned up to
    then; a certificate that did not close by then is there with its gap.

    Parameters
    ----------
    source : Smoothed or Instance
        A population, or data: rows that are independent draws of equal weight.
    sizes : iterable of int, optional
        How many agents to learn from; `default_sizes` by default.
    repeats : int
        Samples per size.
    gap : float
        The relative gap of each certificate.
    delta : float
        Each bound holds with probability 1 − δ.
    seed : int
        The same seed, the same samples.
    budget : Budget, optional
        Seconds for all of it; nodes for each certificate.
    """
    settings = _settings(source, sizes, repeats, gap, delta, seed)
    timer = (budget or Budget()).start()
    about = About.of(source)
    points: list[LearnedPoint] = []
    with timer.listening():
        stop = Stop.FINISHED
        for size, repeat in _plan(settings):
            if timer.left == 0:
                stop = Stop.TIME
                break
            point, ended = _learn_one(source, about, settings, size, repeat, timer, len(points))
            points.append(point)
            if ended in (Stop.TIME, Stop.INTERRUPTED):  # what is left would only do worse
                stop = ended
                break
        best = _best(source, points, timer) if isinstance(source, Smoothed) and points else None
        if timer.interrupted and stop is Stop.TIME:
            stop = Stop.INTERRUPTED
    return LearningCurve(about, settings, tuple(points), best, stop, timer.seconds)


def _settings(
    source: Source,
    sizes: Iterable[int] | None,
    repeats: int,
    gap: float,
    delta: float,
    seed: int,
) -> LearningSettings:
    """Everything that was asked for, checked before any work."""
    _check_source(source)
    for field, value, least in (("repeats", repeats, 1), ("seed", seed, 0)):
        if whole(value, field) < least:
            raise InputError(f"is {value}; give {least} or more", field=field)
    if not 0 <= gap < 1:
        raise InputError(f"is {gap}; give a number from 0 to below 1", field="gap")
    if not 0 < delta < 1:
        raise InputError(f"is {delta}; give a probability between 0 and 1", field="delta")
    wanted = default_sizes(source) if sizes is None else tuple(whole(s, "sizes") for s in sizes)
    _check_sizes(source, wanted)
    return LearningSettings(
        tuple(sorted(wanted)), int(repeats), float(gap), float(delta), int(seed)
    )


def _check_source(source: object) -> None:
    if not isinstance(source, (Smoothed, Instance)):
        raise InputError("is neither a Smoothed population nor an Instance", field="source")
    if isinstance(source, Smoothed):
        return
    if (source.weights != source.weights[0]).any():
        raise InputError(
            "differ, but a learning curve is for independent draws of equal weight; leave the"
            " weights out, or give sigma: a smoothed population takes them as probabilities",
            file=source.path,
            field="weights",
        )
    if source.size < 3:
        raise InputError(
            f"has {source.size} rows; give 3 or more: one to learn from and two held out",
            file=source.path,
            field="agents",
        )


def _check_sizes(source: Source, sizes: Sequence[int]) -> None:
    if not sizes:
        raise InputError("is empty; give at least one size", field="sizes")
    most = largest_size(source)
    for size in sizes:
        if size < 1:
            raise InputError(f"has {size}; a sample needs at least one agent", field="sizes")
        if most is not None and size > most:
            raise InputError(
                f"has {size}, but of {base_of(source).size} agents at most {most} may be learned"
                " from: a quarter, and two at least, stay held out",
                field="sizes",
            )
        check_memory(size, base_of(source).width, "sizes")
    if len(set(sizes)) < len(sizes):
        raise InputError("has a size twice; repeats are for that", field="sizes")


def _plan(settings: LearningSettings) -> Iterator[tuple[int, int]]:
    for size in settings.sizes:
        for repeat in range(settings.repeats):
            yield size, repeat


def _learn_one(
    source: Source,
    about: About,
    settings: LearningSettings,
    size: int,
    repeat: int,
    timer: Timer,
    done: int,
) -> tuple[LearnedPoint, Stop]:
    """The rule learned from one sample, and why its certificate stopped."""
    began = timer.seconds
    watch = timer.budget.watch
    total = len(settings.sizes) * settings.repeats

    def tell(lower: float, upper: float | None, done: int) -> None:
        if watch is not None:
            note = f"{done} of {total} samples, m = {size}"
            watch(Event(timer.seconds, lower, upper, done, note))

    def follow(event: Event) -> None:
        tell(event.lower, event.upper, done)

    drawn = draw(source, size, repeat, settings.seed)
    part = replace(timer.budget.rest(timer), watch=None if watch is None else follow)
    found = certify(drawn.sample, gap=settings.gap, engine="cells", budget=part)
    rule = found.mechanism
    if rule is None:  # accept nobody: gains 0 wherever it is graded
        held_out = HeldOut(0.0, 0.0, drawn.held_out.size, settings.delta, METHOD)
        gain = 0.0
    else:
        held_out = held_out_bound(drawn.held_out, rule, settings.delta, METHOD, about.largest_reach)
        gain = source.gain(rule) if isinstance(source, Smoothed) else held_out.mean
    point = LearnedPoint(
        size, repeat, round_down(found.lower), found.upper, found.gap, found.status == "optimal",
        gain, held_out, about.deviation(size, settings.delta), rule, timer.seconds - began,
    )  # fmt: skip
    tell(point.lower, point.upper, done + 1)
    return point, found.stop


def _best(population: Smoothed, points: Sequence[LearnedPoint], timer: Timer) -> BestKnown:
    """The best of the learned rules, improved by a local search of the exact population gain."""
    leading = sorted(points, key=lambda point: -point.gain)[:STARTS]
    best = BestKnown(leading[0].gain, leading[0].mechanism, False)
    finished = timer.left > 0
    for point in leading:
        if point.mechanism is None or point.gain <= 0 or not finished:
            continue
        rule = _climb(population, point.mechanism, point.gain, timer)
        gain = population.gain(rule)
        if gain > best.gain:
            best = BestKnown(gain, rule, False)
        finished = timer.left > 0
    return replace(best, searched=finished)


def _climb(population: Smoothed, start: Mechanism, gain: float, timer: Timer) -> Mechanism:
    """A rule near this one that gains about the most: BFGS on the direction and the threshold.

    The direction is u₀ plus a step at right angles to it, brought back to length one; the
    threshold moves in multiples of the largest reach.
    """
    from scipy.optimize import minimize  # noqa: PLC0415  (slow to import)

    geometry = reduce(population.base)
    u, b = to_reduced(geometry, start)
    across = np.linalg.qr(np.column_stack([u, np.eye(len(u))]))[0][:, 1:]
    reach = float(geometry.reach[geometry.weight > 0].max())

    def rule(step: Floats) -> Mechanism:
        turned = u + across @ step[:-1]
        turned /= geometry.length(turned)
        return from_reduced(geometry, turned, b + float(step[-1]) * reach)

    def loss(step: Floats) -> float:
        return -population.gain(rule(step)) / gain

    def go_on(intermediate_result: object) -> None:  # noqa: ARG001  (scipy wants this name)
        if timer.left == 0:
            raise StopIteration

    found = minimize(
        loss, np.zeros(len(u)), method="BFGS", callback=go_on, options={"maxiter": SEARCH_STEPS}
    )
    return rule(found.x)
