"""A frontier as a table."""

from __future__ import annotations

from pathlib import Path

from mipmech.budget import Stop
from mipmech.design.frontier import GainFrontier
from mipmech.design.gain_bounds import GainBounds
from mipmech.model.requirements import demands_of
from mipmech.plots.drawn import UNASKED, Drawn
from mipmech.terminal.console import (
    in_one_piece,
    tell_entries,
    tell_heading,
    tell_line,
    tell_picture,
    tell_table,
)
from mipmech.terminal.price import gain_cells, group_cells, group_headings
from mipmech.terminal.requirements import requirement_entries
from mipmech.text import clean, short

WORDS = {
    "proved": "proved: each bound by a tree of cells that an independent checker has gone through",
    "attested": "attested: not all bounds were checked",
}


def tell_frontier(found: GainFrontier, out: Path | None = None, picture: Drawn = UNASKED) -> None:
    """Print a frontier on stdout."""
    with in_one_piece() as console:
        tell_heading(console, found.instance.name)
        proved = all(row.bounds.level == "proved" for row in found.rows)
        entries = {
            "frontier": f"the greatest gain if {_limit(found)}",
            "level": WORDS["proved" if proved else "attested"],
            **requirement_entries(
                demands_of(found.instance, found.requirements.without(found.over))
            ),
            "work": f"{len(found.rows)} of {found.asked} rows, {found.seconds:.2f} s;"
            f" {found.stop.value}",
        }
        if not found.rows:
            entries.pop("level")
        tell_entries(console, entries)
        if found.rows:
            tell_table(
                console,
                "at most",
                [["gain ≥", "gain ≤"], ["accepted"], *group_headings(found.instance)],
                [
                    [
                        f"{100 * row.limit:.6g}%",
                        *gain_cells(row.bounds),
                        *group_cells(row.bounds),
                        _rule(row.bounds),
                    ]
                    for row in found.rows
                ],
                words="rule",
            )
        if found.stop is Stop.FINISHED and not found.complete:
            tell_line(console, "Some gaps are left open; more --seconds narrow them.")
        if out is not None:
            tell_line(console, f"Table: {out}")
        tell_picture(console, "the frontier", *picture)


def _limit(found: GainFrontier) -> str:
    """What is limited, in words."""
    if found.over == "accepted":
        kept = found.requirements.accepted
        low = f"at least {100 * kept.low:g}% and " if kept is not None and kept.low > 0 else ""
        return f"{low}at most so many are accepted"
    groups = short(clean(found.groups or ""), 30)
    return f"accepted shares by {groups} differ by at most so much"


def _rule(bounds: GainBounds) -> str:
    return "–" if bounds.printed is None else str(bounds.printed)
