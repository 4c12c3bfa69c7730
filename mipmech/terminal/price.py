"""What requirements cost, as a table."""

from __future__ import annotations

from rich.console import Console

from mipmech.budget import Stop
from mipmech.design.gain_bounds import GainBounds
from mipmech.design.price import PricedRule, Prices
from mipmech.model.instance import Instance
from mipmech.terminal.console import down, tell_line, tell_table, up
from mipmech.text import clean, points, short

# Groupings with more labels than this have one column: how far apart the shares are.
MOST_LABELS = 5
LONGEST_NAME = 16


def tell_prices(console: Console, found: Prices) -> None:
    """Print what requirements cost."""
    tell_table(
        console,
        "what is required",
        [
            ["gain ≥", "gain ≤"],
            ["costs ≥", "costs ≤"],
            ["accepted"],
            *group_headings(found.instance),
        ],
        [_row(found, row) for row in found.rows],
    )
    required = found.required
    if required is not None and required.lower is not None:
        tell_line(
            console,
            "costs: how much less can be gained with all requirements than with those of the row",
        )
    if found.stop is not Stop.FINISHED:
        left = found.asked - len(found.rows)
        tell_line(console, f"{found.stop.value}: {left} of {found.asked} rows were not done.")
    elif not found.complete:
        tell_line(console, "Some gaps are left open; more --seconds narrow them.")


def _row(found: Prices, row: PricedRule) -> list[str]:
    price = found.price(row)
    costs = ["–", "–"] if price is None or not row.dropped else [down(price[0], 4), up(price[1], 4)]
    name = short(clean(found.name(row)), 40)
    return [name, *gain_cells(row.bounds), *costs, *group_cells(row.bounds)]


def gain_cells(bounds: GainBounds) -> list[str]:
    """Both bounds of the greatest gain."""
    if bounds.upper is None:
        return ["no rule", "–"]
    least = "?" if bounds.lower is None else down(bounds.lower)
    return [least, up(bounds.upper)]


def group_headings(instance: Instance) -> list[list[str]]:
    """A column for each label of groupings with few, and one for how far apart the shares are."""
    headings = []
    for name, grouping in instance.groups.items():
        shown = short(clean(name), LONGEST_NAME)
        labels = (
            [label for label, _ in grouping.parts()] if len(grouping.labels) <= MOST_LABELS else []
        )
        headings.append(
            [
                *(f"{shown} {short(clean(label), LONGEST_NAME)}" for label in labels),
                f"{shown} apart",
            ]
        )
    return headings


def group_cells(bounds: GainBounds) -> list[str]:
    """The share accepted, in all and in each group, and how far apart those are in points."""
    cells = ["–" if bounds.accepted is None else f"{float(bounds.accepted):.1%}"]
    for name, grouping in bounds.instance.groups.items():
        rates = bounds.rates.get(name)
        if len(grouping.labels) <= MOST_LABELS:
            for label, _ in grouping.parts():
                rate = None if rates is None else rates.get(label)
                cells.append("–" if rate is None else f"{float(rate):.1%}")
        apart = None if not rates else float(max(rates.values()) - min(rates.values()))
        cells.append("–" if apart is None else points(apart))
    return cells
