"""A description in words and tables, for people at a terminal."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mipmech.description import Description
from mipmech.instance import Instance
from mipmech.theory.projection import ProjectionRule

# More terms or agents than this are cut short with an ellipsis.
MOST_TERMS = 6
MOST_AGENTS = 12


def tell(description: Description, plot: Path | None = None, no_picture: str | None = None) -> None:
    """Print a description on stdout."""
    console = Console(highlight=False)
    # In one piece, so that a reader that leaves early is met where the command line expects it.
    with console.capture() as text:
        _tell(console, description)
        if no_picture is not None:
            console.print(Text(f"No picture: {no_picture}."))
        elif plot is not None:
            console.print(Text(f"Picture of the best threshold along P w_f: {plot}"))
    sys.stdout.write(text.get())


def _tell(console: Console, description: Description) -> None:
    instance = description.instance
    console.print(Text(instance.name, style="bold"))
    sizes = [
        f"{count} {word}{'s' * (count != 1)}"
        for count, word in (
            (instance.size, "agent"),
            (instance.width, "feature"),
            (description.geometry.rank, "dimension"),
        )
    ]
    console.print(Text(f"{sizes[0]}, {sizes[1]}; the planner sees {sizes[2]}"))
    console.print(_facts(description, console.width))
    if description.geometry.p_norm == 0:
        console.print(
            "The planner sees nothing that quality depends on (P w_f = 0): no rule on visible"
            " features changes it, and every gain is 0."
        )
        return
    _tell_linear(console, description)
    if description.best is not None:
        _tell_threshold(console, description, description.best)
    if not description.complete:
        console.print("Stopped at the time limit; what would come next was left out.")


def _facts(description: Description, width: int) -> Text:
    instance, geometry = description.instance, description.geometry
    reach = instance.reach[instance.weights > 0]
    low, high, median = reach.min(), reach.max(), np.median(reach)
    full = description.quality_norm
    facts = {
        "digest": instance.digest[:16],
        "sees": _sees(instance),
        "quality": _formula(description),
        "seen part": f"‖P w_f‖ = {geometry.p_norm:.4g}, {geometry.p_norm / full:.1%} of ‖w_f‖",
        "baseline": f"mean quality {description.baseline:.6g} before any rule",
        "reach": f"{low:.4g} for everyone"
        if low == high
        else f"{low:.4g} to {high:.4g}, median {median:.4g}",
        "ceiling": f"no rule gains more than {description.ceiling:.6g}",
    }
    if instance.known is not None:
        known = instance.known
        least, most = f"{known.lower:.6g}", f"{known.upper:.6g}"
        what = least if least == most else f"in [{least}, {most}]"
        facts["known"] = f"best gain {what}, {known.how}"
    return Text("\n".join(_entry(key, value, width) for key, value in facts.items()))


def _entry(key: str, value: str, width: int) -> str:
    """A key and its value, wrapped under itself."""
    return textwrap.fill(
        value, width, initial_indent=f"  {key:<10} ", subsequent_indent=" " * 13,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _sees(instance: Instance) -> str:
    """The columns that the planner sees, or the rows of its view."""
    names = instance.feature_names
    if instance.view.columns is not None:
        seen = [names[c] for c in instance.view.columns]
    else:
        seen = [_sum(zip(names, row, strict=True)) for row in instance.view.matrix]
    return "; ".join(seen[:MOST_TERMS]) + "; …" * (len(seen) > MOST_TERMS)


def _sum(terms: Iterable[tuple[str, float]]) -> str:
    """A linear combination in words, largest terms first."""
    parts = sorted(((n, float(v)) for n, v in terms if v), key=lambda part: -abs(part[1]))
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0]
    text = " ".join(f"{value:+.4g} {name}" for name, value in parts[:MOST_TERMS])
    return text.lstrip("+") + " + …" * (len(parts) > MOST_TERMS)


def _formula(description: Description) -> str:
    instance = description.instance
    seen = (instance.view.matrix != 0).any(axis=0)
    names = [
        name + " (hidden)" * (not flag)
        for name, flag in zip(instance.feature_names, seen, strict=True)
    ]
    offset = f" {-instance.quality_offset:+.4g}" if instance.quality_offset else ""
    return "f = " + _sum(zip(names, instance.quality, strict=True)) + offset


def _tell_linear(console: Console, description: Description) -> None:
    cost = description.instance.cost[description.instance.weights > 0]
    low, high = cost.min(), cost.max()
    console.print(Text("\nTheorem 1: a reward linear in the score along P w_f", style="bold"))
    if low == high:
        text = f"of length R moves nobody if R < {low:.4g}, else everybody, without bound."
    else:
        text = (
            f"of length R moves nobody if R < {low:.4g}, everybody without bound if R ≥ {high:.4g},"
            " and in between those whose cost is at most R."
        )
    console.print(text)


def _tell_threshold(console: Console, description: Description, best: ProjectionRule) -> None:
    instance = description.instance
    console.print(
        Text("\nTheorem 2: accept if the score along P w_f reaches a threshold", style="bold")
    )
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), collapse_padding=True, pad_edge=False)
    table.add_column("thresholds", no_wrap=True)
    for heading in ("best", "move", "gain", "quality", "pass", r"E\[f|pass]", "proved"):
        table.add_column(heading, justify="right", no_wrap=True)
    for rule in (best, description.grid):
        if rule is None:
            continue
        found = rule.recount
        quality = found.accepted_quality
        table.add_row(
            "all" if rule.tried is None else f"grid of {rule.tried}",
            f"{found.mechanism.threshold:.5g}",
            f"{float(found.density):.1%}",
            f"{float(found.gain):.5g}",
            f"{float(found.value):.5g}",
            f"{float(found.accepted_share):.1%}",
            "nobody" if quality is None else f"{float(quality):.5g}",
            f"{rule.factor:.3g}",
        )
    console.print(table)
    rules = [rule for rule in (best, description.grid) if rule is not None]
    promised = " and ".join(f"{rule.promised:.3g}" for rule in rules)
    console.print(
        "proved: the gain is surely at least this share of the best gain of any rule; the"
    )
    console.print(f"true share is often far larger. The theorem alone promises {promised}.")
    known = instance.known
    if known is not None and known.lower > 0:
        share = float(best.gain) / known.upper
        console.print(
            f"Against the best gain known, the best of all thresholds has {share:.1%} of it."
        )
    found = best.recount
    movers = found.covered[instance.weights[found.covered] > 0]
    shown = ", ".join(str(i) for i in movers[:MOST_AGENTS])
    more = f" and {len(movers) - MOST_AGENTS} more" if len(movers) > MOST_AGENTS else ""
    console.print("The best of all thresholds:")
    entries = {
        "rule": f"accept if {_rule(best)}",
        "who moves": f"agent{'s' * (len(movers) != 1)} {shown}{more}",
        "how": _changes(best),
    }
    for key, value in entries.items():
        console.print(Text(_entry(key, value, console.width)))


def _rule(best: ProjectionRule) -> str:
    names = best.recount.instance.feature_names
    score = _sum(zip(names, best.mechanism.weights, strict=True))
    return f"{score} ≥ {best.mechanism.threshold:.5g}"


def _changes(best: ProjectionRule) -> str:
    """What the movers do on average, feature by feature."""
    mean = best.recount.soft_density / float(best.recount.density)
    names = best.recount.instance.feature_names
    terms = [(n, mean * w) for n, w in zip(names, best.mechanism.weights, strict=True) if w]
    terms.sort(key=lambda term: -abs(term[1]))
    parts = [f"{name} {change:+.3g}" for name, change in terms[:MOST_TERMS]]
    return "on average " + ", ".join(parts) + ", …" * (len(terms) > MOST_TERMS)
