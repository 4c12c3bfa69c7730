"""Oracles by name: those of the package, and those that were registered."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, cast

from mipmech.errors import InputError, did_you_mean, shorten
from mipmech.oracles.base import Oracle

# Name -> module and class; imported when first asked for, since some of them are heavy.
REGISTRY: dict[str, str] = {
    "projection": "mipmech.oracles.projection:Projection",
    "cells": "mipmech.oracles.cells.engine:Cells",
    "cells-soft": "mipmech.oracles.cells.engine:CellsSoft",
    "sweep": "mipmech.oracles.sweep.engine:Sweep",
    "milp": "mipmech.oracles.milp.engine:Milp",
    "milp-soft": "mipmech.oracles.milp.engine:MilpSoft",
    "random": "mipmech.oracles.heuristics.random:Random",
    "pca": "mipmech.oracles.heuristics.pca:Pca",
    "ransac": "mipmech.oracles.heuristics.ransac:Ransac",
    "ascent": "mipmech.oracles.heuristics.ascent:Ascent",
    "anneal": "mipmech.oracles.heuristics.anneal:Anneal",
    "rounding": "mipmech.oracles.heuristics.rounding:Rounding",
}
_ADDED: dict[str, Callable[..., Oracle]] = {}


def register_oracle(name: str, factory: Callable[..., Oracle]) -> None:
    """Make an oracle known by a name to `ask`, `solve` and `compare`, in this process.

    A second registration of a name replaces the first.

    Parameters
    ----------
    name : str
        Letters, digits and hyphens; not the name of an oracle of the package.
    factory : callable
        The oracle's class, or a function that takes its options and returns one.

    Examples
    --------
    >>> from mipmech.oracles.projection import Projection
    >>> register_oracle("along-p", Projection)
    >>> oracle_named("along-p")
    Projection()
    """
    if re.fullmatch(r"[a-z][a-z0-9-]{0,39}", str(name)) is None:
        said = f"is {shorten(name)}; give letters a to z, digits and hyphens"
        raise InputError(said, field="oracle")
    if name in REGISTRY:
        raise InputError(f"{name} is an oracle of mipmech; choose another name", field="oracle")
    if not callable(factory):
        raise InputError(f"{name}: expected a class or a function", field="oracle")
    _ADDED[name] = factory


def oracle_names() -> list[str]:
    """All names that are known."""
    return [*REGISTRY, *_ADDED]


def oracle_class(name: str) -> Callable[..., Oracle]:
    """What makes the oracle of this name: its class, or the function that was registered."""
    if name in _ADDED:
        return _ADDED[name]
    if name not in REGISTRY:
        hint = did_you_mean(name, oracle_names())
        known = ", ".join(sorted(oracle_names()))
        said = f"there is no oracle {shorten(name)}{hint}; there are: {known}"
        raise InputError(said, field="oracle")
    module, _, attribute = REGISTRY[name].partition(":")
    return cast("Callable[..., Oracle]", getattr(importlib.import_module(module), attribute))


def oracle_named(name: str, /, **options: Any) -> Oracle:
    """The oracle of this name.

    >>> oracle_named("projection")
    Projection()
    """
    make = oracle_class(name)
    try:
        return as_oracle(make(**options))
    except TypeError as error:
        raise InputError(f"{name} does not take these options: {error}", field="oracle") from None


def options_of(oracle: Oracle) -> dict[str, Any]:
    """The options that an oracle has, with their values; none if it is no dataclass."""
    kind: Any = type(oracle)
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else []
    return {name: getattr(oracle, name) for name in names}


def as_oracle(oracle: str | Oracle) -> Oracle:
    """The oracle that is meant by a name or by itself; anything else is refused."""
    if isinstance(oracle, str):
        return oracle_named(oracle)
    for flag in ("soft", "randomised"):
        if not isinstance(getattr(oracle, flag, None), bool):
            said = (
                f"{shorten(oracle)} does not say whether it is {flag}; derive it from"
                f" mipmech.Oracle, or set {flag} = True or False in its class"
            )
            raise InputError(said, field="oracle")
    if not callable(oracle) or isinstance(oracle, type):
        said = f"{shorten(oracle)} cannot be called with (geometry, eta, budget)"
        raise InputError(said, field="oracle")
    if oracle.randomised and "seed" not in options_of(oracle):
        said = f"{shorten(oracle)} is randomised; make it a dataclass with a field seed"
        raise InputError(said, field="oracle")
    return oracle
