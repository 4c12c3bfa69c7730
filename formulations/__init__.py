"""The mathematics as Pyomo models, arrays in, model out; no solver is called here.

Every model, its symbols and its size stand in `formulations/README.md`. The package imports nothing
from mipmech, and Pyomo and networkx only when a name is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from formulations.accepted import add_accepted, add_share, set_accepted
    from formulations.cliques import add_cliques, clique_cover, conflicts
    from formulations.demanded import Demanded
    from formulations.density import density_model, set_cutoff
    from formulations.eta import add_eta, set_eta
    from formulations.facets import (
        CrossPolytope,
        CrossPolytopeFacet,
        CubeFacet,
        Surface,
        all_facets,
        set_facet,
    )
    from formulations.gain import gain_model, set_gain
    from formulations.halfspaces import add_halfspaces
    from formulations.margin import add_margin, big_m, naive_margin, set_margin, support
    from formulations.parity import add_parity
    from formulations.soft_density import soft_density_model
    from formulations.unit_norm import (
        Box,
        Cone,
        Cones,
        Exact,
        Secant,
        Size,
        UnitNorm,
        cell,
        cube,
        set_cone,
        tangents,
    )

__all__ = [
    "Box", "Cone", "Cones", "CrossPolytope", "CrossPolytopeFacet", "CubeFacet", "Demanded",
    "Exact", "Secant", "Size", "Surface", "UnitNorm", "add_accepted", "add_cliques", "add_eta",
    "add_halfspaces", "add_margin", "add_parity", "add_share", "all_facets", "big_m", "cell",
    "clique_cover", "conflicts", "cube", "density_model", "gain_model", "naive_margin",
    "set_accepted", "set_cone", "set_cutoff", "set_eta", "set_facet", "set_gain", "set_margin",
    "soft_density_model", "support", "tangents",
]  # fmt: skip

_HOME = {
    **dict.fromkeys(["add_accepted", "add_share", "set_accepted"], "accepted"),
    **dict.fromkeys(["add_cliques", "clique_cover", "conflicts"], "cliques"),
    **dict.fromkeys(["density_model", "set_cutoff"], "density"),
    **dict.fromkeys(["add_eta", "set_eta"], "eta"),
    **dict.fromkeys(
        ["CrossPolytope", "CrossPolytopeFacet", "CubeFacet", "Surface", "all_facets", "set_facet"],
        "facets",
    ),
    **dict.fromkeys(["gain_model", "set_gain"], "gain"),
    **dict.fromkeys(["add_margin", "big_m", "naive_margin", "set_margin", "support"], "margin"),
    "Demanded": "demanded",
    "add_halfspaces": "halfspaces",
    "add_parity": "parity",
    "soft_density_model": "soft_density",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME.get(name, 'unit_norm')}"), name)
