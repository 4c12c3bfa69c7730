"""A comparison in words and tables, for people at a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mipmech.studies.comparison.results import Comparison, OracleSummary
from mipmech.studies.spread import Spread
from mipmech.terminal.design import _in_one_piece, _tell_entries

# A table of more groups, or one that is wider than the terminal, is left to the report.
MOST_GROUPS = 12
GROUP_WIDTH, ORACLE_WIDTH = 33, 14


def tell_comparison(found: Comparison, out: Path | None = None) -> None:
    """Print a comparison on stdout."""
    with _in_one_piece() as console:
        settings = found.settings
        calls = sum(len(run.calls) for run in found.runs)
        oracles, instances = (
            f"{number} {word}{'s' * (number != 1)}"
            for number, word in ((len(found.oracles), "oracle"), (len(found.problems), "instance"))
        )
        console.print(Text(f"{oracles} on {instances}", style="bold"))
        etas = ", ".join(f"{fraction:g}" for fraction in settings["eta_fractions"])
        seeds = len(settings["seeds"])
        whole = ", all of it for heuristics" if settings["full_time"] else ""
        entries = {
            "asked": f"at η = {etas} of ‖P w_f‖, with {seeds} seed{'s' * (seeds != 1)} for those"
            f" that draw, {settings['seconds_per_call']:g} s a call{whole}",
            "references": _references(found),
            "work": f"{calls:,} calls; {found.seconds:.2f} s on {settings['workers']} worker"
            f"{'s' * (settings['workers'] != 1)}; "
            + ("did all it set out to do" if found.complete else "cut short: not all was asked"),
        }
        if settings.get("left_out"):
            entries["left out"] = "; ".join(map(str, settings["left_out"]))
        if found.violations:
            entries["VIOLATED"] = (
                f"{len(found.violations)} values are above a proved bound: a bug in mipmech, please"
                " report it with the instance"
            )
        if found.doubts:
            entries["wrong"] = "; ".join(found.doubts)
        _tell_entries(console, entries)
        if not found.problems:
            return
        _tell_oracles(console, found)
        width = GROUP_WIDTH + ORACLE_WIDTH * len(found.oracles)
        if 1 < len(found.groups) <= MOST_GROUPS and width <= console.width:
            _tell_groups(console, found)
        _tell_entries(
            console,
            {
                "density": "as a share of the upper bound of its reference, over all questions and"
                " seeds; ≥ 0.99: how many calls reach so much; seeds: the largest difference"
                " between two seeds on one question; seconds: median and most of a call",
                "gain": "that Algorithm 1 ends with on these η, as a share of the upper bound for"
                " all rules: with the best threshold for each answer, and with the paper's two",
            },
        )
        if out is not None:
            said = f"Record: {out}; mipmech report {out} -o report.html makes a page of it"
            console.print(Text(said))


def _references(found: Comparison) -> str:
    """How many optima are known, and on whose word."""
    densities = [bounds for _, _, bounds in found.questions]
    gains = [p.gain for p in found.problems]
    parts = []
    for name, bounds in (("gain", gains), ("density", densities)):
        closed = sum(b.closed for b in bounds)
        parts.append(f"greatest {name} known for {closed} of {len(bounds)}")
    stated = sum(b.level == "stated" and b.closed for b in (*gains, *densities))
    known = sum(b.closed for b in (*gains, *densities))
    how = ", proved" if known else ""
    return "; ".join(parts) + (f"; {stated} as the files state it" if stated else how)


def _table(first: str, headings: Iterable[str]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), collapse_padding=True, pad_edge=False)
    table.add_column(first, no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


THREE = ("worst", "median", "best")


def _tell_oracles(console: Console, found: Comparison) -> None:
    """Density and time for each oracle; then what its answers are worth inside Algorithm 1."""
    density = _table("density", [*THREE, "≥ 0.99", "seeds", "seconds", "most", "calls"])
    gain = _table("gain", [*THREE, "two thresholds:", *THREE])
    for oracle in found.oracles:
        summary = found.summary(oracle)
        density.add_row(*_density(summary))
        gain.add_row(oracle, *_three(summary.gain), "", *_three(summary.gain_two))
    console.print(density)
    console.print(gain)


def _density(summary: OracleSummary) -> list[str]:
    seconds = summary.seconds
    failed = f" ({summary.failures} failed)" if summary.failures else ""
    return [
        summary.oracle,
        *_three(summary.density),
        "–" if summary.density is None else f"{summary.reached:.0%}",
        "–" if summary.seed_spread is None else f"{summary.seed_spread.max:.2f}",
        *(("–", "–") if seconds is None else (f"{seconds.median:.3f} s", f"{seconds.max:.2f} s")),
        f"{summary.calls:,}{failed}",
    ]


def _share(value: float) -> str:
    """A share to three decimals, not rounded up: 1.000 is reached, not nearly so."""
    return f"{math.floor(value * 1000) / 1000:.3f}"


def _three(spread: Spread | None) -> tuple[str, str, str]:
    if spread is None:
        return "–", "–", "–"
    return _share(spread.min), _share(spread.median), _share(spread.max)


def _tell_groups(console: Console, found: Comparison) -> None:
    """The worst and the median for each group of instances."""
    table = _table("density by group: worst, median", found.oracles)
    for group in found.groups:
        problems = [problem for problem in found.problems if problem.group == group]
        cells = []
        for oracle in found.oracles:
            worst, median, _ = _three(found.summary(oracle, problems).density)
            cells.append(worst if worst == "–" else f"{worst}, {median}")
        table.add_row(Text(group), *cells)
    console.print(table)
