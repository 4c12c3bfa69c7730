"""One oracle call."""

from __future__ import annotations

from pathlib import Path

from mipmech.budget import Budget
from mipmech.errors import InputError
from mipmech.model.geometry import Geometry, geometry_of
from mipmech.model.instance import Instance
from mipmech.model.requirements.required import RequirementsLike
from mipmech.oracles.base import Answer, Oracle
from mipmech.oracles.registry import as_oracle


def ask(
    sample: Instance | Geometry | str | Path,
    eta: float | None = None,
    *,
    eta_fraction: float | None = None,
    oracle: str | Oracle = "milp",
    require: RequirementsLike | None = None,
    budget: Budget | None = None,
) -> Answer:
    """Ask an oracle once for the rule with w·w_f = η that has the most agents in its margin.

    Parameters
    ----------
    sample : Instance, Geometry, str or Path
        The agents, or the file that holds them.
    eta : float, optional
        η, the quality gained per unit of distance moved; give this or ``eta_fraction``.
    eta_fraction : float, optional
        The same as a fraction of ‖P w_f‖.
    oracle : str or Oracle
        The name of an oracle (`mipmech.oracles.registry.REGISTRY`), or an oracle itself.
    require : Requirements, mapping, str or Path, optional
        What is demanded of rules, or the name of its file. Without a rule that meets it, the answer
        has none.
    budget : Budget, optional
        Limits on time and threads; without limits by default.

    Returns
    -------
    Answer
        The rule found, recounted in rationals, with ``lower``, ``upper``, ``gap``, ``status``
        and ``stop``.

    Examples
    --------
    >>> from mipmech import make_instance
    >>> sample = make_instance("gaussian-mixture", agents=60, rank=2, seed=1)
    >>> answer = ask(sample, eta_fraction=0.8)
    >>> answer.status, answer.lower == answer.upper
    ('optimal', True)
    """
    geometry = geometry_of(sample, require)
    asked = as_oracle(oracle)
    return asked(geometry, eta_of(geometry, eta, eta_fraction), budget or Budget())


def eta_of(geometry: Geometry, eta: float | None, eta_fraction: float | None) -> float:
    """The η that is meant: given, or as a fraction of ‖P w_f‖."""
    if (eta is None) == (eta_fraction is None):
        what = "is missing" if eta is None else "is given in two ways"
        raise InputError(
            f"{what}: give one of eta (absolute) and eta_fraction (a share of ‖P w_f‖); at the"
            " command line --eta 0.3 or --eta-fraction 0.8",
            field="eta",
        )
    return float(eta_fraction or 0.0) * geometry.p_norm if eta is None else eta
