"""What a move costs, and what is true of it, in words."""

from __future__ import annotations

from fractions import Fraction

from mipmech.design.worth import bought, median_reach, moved_along, seen_features, user_prices
from mipmech.model.costs.facets import facets_of
from mipmech.model.instance import Instance
from mipmech.terminal.console import MOST_TERMS
from mipmech.text import listed

# Rates of facets that are listed; there may be thousands.
MOST_RATES = 4


def greatest_rate(instance: Instance) -> str:
    """What η is a share of."""
    return "‖P w_f‖" if instance.costs.plain else "the greatest rate"


def blind(instance: Instance) -> str:
    """Said wherever no rule changes quality."""
    if instance.costs.plain:
        return (
            "The planner sees nothing that quality depends on (P w_f = 0): no rule on visible"
            " features changes it, and every gain is 0."
        )
    return (
        "No move that a rule on visible features calls for changes quality (the greatest rate is"
        " 0): every gain is 0."
    )


def cost_entries(instance: Instance) -> dict[str, str]:
    """The cost of a move and what passing buys, for costs that are not plain Euclidean."""
    if instance.costs.plain:
        return {}
    return {"cost": _cost(instance), "passing": _worth(instance), "theory": _theory(instance)}


def _cost(instance: Instance) -> str:
    costs = instance.costs
    if costs.matrix is not None:
        along = _names(instance, moved_along(instance))
        spills = f"; effort spills over: {along}, hidden, may move along" if along else ""
        return f"l2 with a matrix: a move Δ costs √(ΔᵀMΔ){spills}"
    said = {
        "l2": "l2: a move costs the root of the sum of the squares",
        "l1": "l1: moves in several features add up, so people work on the one that pays most",
        "linf": "linf: the dearest move counts, so people work on all features at once",
    }[costs.norm]
    own_units = costs.effort is None and instance.units is None
    return said if own_units else f"{said}; {_prices(instance)}"


def _prices(instance: Instance) -> str:
    seen, prices = seen_features(instance), user_prices(instance)
    parts = [f"{instance.feature_names[j]} {prices[j]:.4g}" for j in seen[:MOST_TERMS]]
    return f"a move of 1 costs {', '.join(parts)}" + ", …" * (len(seen) > MOST_TERMS)


def _names(instance: Instance, features: list[int]) -> str:
    names = [instance.feature_names[j] for j in features[:MOST_TERMS]]
    return listed(names + ["others"] * (len(features) > MOST_TERMS))


def _worth(instance: Instance) -> str:
    """What the value of passing buys at the median reach."""
    amounts = bought(instance)
    at_once = instance.costs.norm == "linf"
    parts = [f"{amount:.4g} {name}" for name, amount in list(amounts.items())[:MOST_TERMS]]
    rest = ["…"] * (len(amounts) > MOST_TERMS)
    if at_once and len(amounts) > 1:
        said = f"{listed(parts) if not rest else ', '.join(parts + rest)} at once"
    else:
        said = ", or ".join([f"{part} alone" for part in parts] + rest)
    return f"is worth a move of up to {said} (reach {median_reach(instance):.4g}, the median)"


def _theory(instance: Instance) -> str:
    """Which of the paper's statements hold."""
    smoothing = "the smoothing lemmas are for plain Euclidean costs"
    if instance.costs.norm == "l2":
        return (
            "Theorems 1 and 2, Lemma 4, the angular grid and the cones hold in the inner product"
            f" of these costs; {smoothing}"
        )
    return (
        "Theorems 1 and 2 and Lemma 4 hold, with the steepest direction for P w_f/‖P w_f‖;"
        " directions form facets with one rate each, so Algorithm 1 asks once for each rate and"
        f" loses nothing between them; {smoothing}"
    )


def no_direction(instance: Instance) -> str:
    """Why an η is infeasible; for l1 and linf, which rates there are."""
    if instance.costs.norm == "l2":
        return "infeasible: no visible direction has this η"
    rates = list(dict.fromkeys(facet.rate for facet in facets_of(instance)))
    shown = rates if len(rates) <= MOST_RATES + 1 else rates[:MOST_RATES]
    more = [f"{len(rates) - len(shown):,} lower ones"] if len(rates) > len(shown) else []
    named = listed([_rate(rate) for rate in shown] + more)
    return f"infeasible: no facet has this rate; those of {instance.costs.norm} here are {named}"


def _rate(rate: Fraction) -> str:
    """As many digits as --eta needs to name this rate, within reason."""
    value = float(rate)
    short = f"{value:.6g}"
    return short if float(short) == value else repr(value)
