"""Proposition 1: if everything is visible and f is binary, g = f is optimal; if not, it may not be.

Stated on a finite world: agents stand at points, may move to any point, and the planner rewards
points. There the proposition can be checked for every g.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mipmech.theory.statement import Statement
from mipmech.tolerances import TIE
from mipmech.validation import Floats


@dataclass(frozen=True, eq=False)
class FiniteWorld:
    """Agents at points; moving costs ``cost`` per unit of distance.

    Parameters
    ----------
    points : (N, d) array
    mass : (N,) array
        The share of the agents at each point.
    cost : float
    """

    points: Floats
    mass: Floats
    cost: float

    def respond(self, f: ArrayLike, g: ArrayLike) -> NDArray[np.intp]:
        """The point that the agent at each point goes to: δ_g.

        Parameters
        ----------
        f, g : (N,) array_like
            Quality and reward.
        """
        gaps = self.points[:, None, :] - self.points[None, :, :]
        payoff = np.asarray(g) - self.cost * np.sqrt((gaps**2).sum(axis=2))
        best = payoff >= payoff.max(axis=1, keepdims=True) - TIE
        chosen: NDArray[np.intp] = np.argmax(np.where(best, np.asarray(f), -np.inf), axis=1)
        return chosen

    def value(self, f: ArrayLike, g: ArrayLike) -> float:
        """Val(g) = E[f(δ_g(x))].

        Parameters
        ----------
        f, g : (N,) array_like
            Quality and reward.
        """
        return float(self.mass @ np.asarray(f, dtype=np.float64)[self.respond(f, g)])


def proposition1(world: FiniteWorld, f: ArrayLike, g: ArrayLike) -> Statement:
    """Val(f) ≥ Val(g): true for every binary f and every g into [0, 1]; not for every other f.

    Parameters
    ----------
    world : FiniteWorld
        Where agents stand and what a move costs.
    f, g : (N,) array_like
        Quality and reward.
    """
    return Statement("Proposition 1", world.value(f, f), world.value(f, g))


def counterexample(points: int = 2001) -> tuple[FiniteWorld, Floats, Floats]:
    """The paper's f = 0.1·1[x ≥ 0] with c = 1 on [−1, 1], and the g = 1[x ≥ 0] that beats g = f.

    Parameters
    ----------
    points : int
        How many points stand for [−1, 1].

    Returns
    -------
    world : FiniteWorld
    f, g : (points,) array

    Examples
    --------
    >>> world, f, g = counterexample()
    >>> bool(proposition1(world, f, g)), bool(proposition1(world, 10 * f, g))
    (False, True)
    """
    x = np.linspace(-1.0, 1.0, points)
    world = FiniteWorld(x[:, None], np.full(points, 1 / points), 1.0)
    g = (x >= 0).astype(np.float64)
    return world, 0.1 * g, g
