"""Learning from samples: Theorems 4 and 5, and what a sample says about the population.

`sample_size` and `pollard_sample_size` carry the unknown constants of the O(·) as parameters;
`uniform_deviation` and the held-out bounds have none: they hold as they stand.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from mipmech.errors import InputError
from mipmech.model.grading import ExactDirection, Side
from mipmech.model.instance import Instance
from mipmech.model.mechanism import Mechanism
from mipmech.tolerances import ROUNDING
from mipmech.validation import positive


def _check(epsilon: float, delta: float) -> None:
    positive(epsilon=epsilon)
    if not 0 < delta < 1:
        raise InputError(f"is {delta}; give a probability between 0 and 1", field="delta")


def pollard_sample_size(
    epsilon: float, delta: float, largest: float, pseudo_dimension: float, *, constant: float
) -> int:
    """Theorem 4 (uniform convergence): m = C ε⁻² H² (d + ln(1/δ)).

    The paper prints ln(1/ε) for ln(1/δ) and no constant C, although one is needed. It must be given
    here, so that the number is not mistaken for a guarantee.

    Parameters
    ----------
    epsilon, delta : float
        The deviation ε, and the probability δ of a larger one.
    largest : float
        H, the largest gain of an agent.
    pseudo_dimension : float
        d.
    constant : float
        C.

    Examples
    --------
    >>> pollard_sample_size(0.1, 0.05, 1.0, 3, constant=1.0)
    600
    """
    _check(epsilon, delta)
    ratio = largest / epsilon
    if not ratio < 1e100:
        raise InputError(f"is {epsilon}, too small beside the largest gain", field="epsilon")
    return math.ceil(constant * ratio**2 * (pseudo_dimension + math.log(1 / delta)))


def sample_size(
    epsilon: float,
    delta: float,
    rank: int,
    cost: float,
    *,
    constant: float,
    dimension_constant: float,
    quality_norm: float = 1.0,
) -> int:
    """Theorem 5: m = C/(c²ε²) (rank(P) + ln(1/δ)) samples for a gain within ε of the best.

    An agent's gain lies in [0, ‖P w_f‖/c] (Lemma 5 needs w·w_f ≥ 0).

    Parameters
    ----------
    epsilon, delta : float
        The deviation ε, and the probability δ of a larger one.
    rank : int
        The dimension k of what the planner sees.
    cost : float
        c, the same for all agents.
    constant, dimension_constant : float
        The C of the O(·), and that of Lemma 5's pseudo-dimension O(rank(P)).
    quality_norm : float
        ‖P w_f‖.
    """
    return pollard_sample_size(
        epsilon, delta, quality_norm / cost, dimension_constant * rank, constant=constant
    )


def uniform_deviation(
    size: int, rank: int, largest_gain: float, delta: float, equal_costs: bool = True
) -> float:
    """With probability 1 − δ, no mechanism's sample gain is farther from its population gain.

    H √(8/m · ln(4 S(2m)/δ)), with S the growth function below. An agent gains at least t > 0 iff
    t/η ≤ b − u·z ≤ ℓ: a set cut out by two halfspaces of R^k (of R^(k+1) for the second if ℓ varies
    with the agent). Halfspaces of R^d cut n points in at most (en/(d+1))^(d+1) ways, so two of them
    do in at most the product: S(n). The inequality of Vapnik and Chervonenkis, P(deviation > ε) ≤
    4 S(2m) exp(−mε²/8), bounds all these sets at once, and the gain is the integral of their
    probabilities over t ∈ [0, H]. Mechanisms with w·w_f < 0 lose quality and are left out.

    Parameters
    ----------
    size, rank : int
        m and k.
    largest_gain, delta : float
        H and δ.
    equal_costs : bool
        Whether all agents have the same cost.
    """
    _check(1.0, delta)
    if size < 1:
        raise InputError(f"is {size}; a sample needs at least one agent", field="size")
    points = 2 * size
    logarithm = math.log(4 / delta)
    for dimension in (rank, rank if equal_costs else rank + 1):
        parameters = dimension + 1
        if points > parameters:
            logarithm += parameters * math.log(math.e * points / parameters)
        else:
            logarithm += points * math.log(2)
    return largest_gain * min(1.0, math.sqrt(8 / size * logarithm))


@dataclass(frozen=True)
class HeldOut:
    """A mechanism's gain on a held-out sample, and a bound on its population gain.

    Attributes
    ----------
    mean : float
    lower : float
        With probability 1 − δ over the held-out sample, the population gain is at least this.
    size : int
    delta : float
    method : str
    """

    mean: float
    lower: float
    size: int
    delta: float
    method: str

    def to_dict(self) -> dict[str, Any]:
        """The figures."""
        return asdict(self)


def held_out_bound(
    held_out: Instance,
    mechanism: Mechanism,
    delta: float = 0.05,
    method: Literal["hoeffding", "bernstein"] = "bernstein",
    largest_reach: float | None = None,
) -> HeldOut:
    """A lower confidence bound on the gain of a mechanism that was chosen without this sample.

    An agent's gain lies between 0 and H = (w·w_f/‖w‖)·ℓ_max (or between −H and 0).

    hoeffding: mean − H√(ln(1/δ)/2m). bernstein (Maurer and Pontil 2009, Theorem 4):
    mean − √(2V ln(2/δ)/m) − 7H ln(2/δ)/(3(m−1)), V the sample variance; better if few move.

    Parameters
    ----------
    held_out : Instance
        Independent draws of equal weight.
    mechanism : Mechanism
        The rule.
    delta : float
        The probability that the bound fails.
    method : {"hoeffding", "bernstein"}
        The inequality.
    largest_reach : float, optional
        No agent of the population has a longer reach; needed if costs differ between agents, since
        the sample cannot tell.
    """
    _check(1.0, delta)
    if (held_out.weights != held_out.weights[0]).any():
        raise InputError(
            "differ, but the bound is for independent draws of equal weight", field="weights"
        )
    reach = held_out.reach
    if largest_reach is None:
        if (reach != reach[0]).any():
            raise InputError(
                "differs between agents; give largest_reach, which no agent exceeds", field="cost"
            )
        largest_reach = float(reach[0])
    if not math.isfinite(largest_reach) or (reach > largest_reach * (1 + ROUNDING)).any():
        raise InputError(
            "must be finite and at least the reach of every agent in the sample",
            field="largest_reach",
        )
    if method not in ("hoeffding", "bernstein"):
        raise InputError(f"is {method!r}; give hoeffding or bernstein", field="method")
    direction = ExactDirection(held_out, mechanism)
    found = direction.recount(mechanism, mechanism.threshold)
    level = float(direction.level(mechanism.threshold))
    distance = np.where(found.sides == Side.INSIDE, level - direction.scores, 0.0)
    gains = distance * float(found.line.rise)
    m = len(gains)
    mean = float(found.gain)
    largest = abs(found.eta) * largest_reach
    if method == "hoeffding":
        width = largest * math.sqrt(math.log(1 / delta) / (2 * m))
    elif m < 2:
        width = math.inf
    else:
        logarithm = math.log(2 / delta)
        variance = float(np.var(gains, ddof=1))
        width = math.sqrt(2 * variance * logarithm / m)
        width += 7 * largest * logarithm / (3 * (m - 1))
    floor = min(0.0, found.eta * largest_reach)  # no gain lies below this, sample or not
    return HeldOut(mean, max(mean - width, floor), m, delta, method)
