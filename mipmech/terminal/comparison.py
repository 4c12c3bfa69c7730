"""A comparison in words and tables, for people at a terminal."""

from __future__ import annotations

import math
from pathlib import Path

from rich.console import Console

from mipmech.report.kit.phrases import required
from mipmech.studies.comparison.results import Comparison, OracleSummary
from mipmech.studies.spread import Spread
from mipmech.terminal.console import in_one_piece, tell_entries, tell_heading, tell_line, tell_table
from mipmech.text import count, listed

# A table of more groups, or one that is wider than the terminal, is left to the report.
MOST_GROUPS = 12
GROUP_WIDTH, ORACLE_WIDTH = 33, 14


def tell_comparison(found: Comparison, out: Path | None = None) -> None:
    """Print a comparison on stdout."""
    with in_one_piece() as console:
        oracles = count(len(found.oracles), "oracle")
        tell_heading(console, f"{oracles} on {count(len(found.problems), 'instance')}")
        tell_entries(console, _what_was_done(found))
        if not found.problems:
            return
        _tell_oracles(console, found)
        width = GROUP_WIDTH + ORACLE_WIDTH * len(found.oracles)
        if 1 < len(found.groups) <= MOST_GROUPS and width <= console.width:
            _tell_groups(console, found)
        notes = {
            "density": "share of the reference's upper bound, over all questions and seeds; ≥ 0.99:"
            " calls that reach it; seeds: largest difference between two seeds on one question;"
            " seconds: median and most of a call",
            "gain": "share of the upper bound for all rules that Algorithm 1 ends with on these η:"
            " best threshold for each answer, and the paper's two",
        }
        tell_entries(console, notes)
        if out is not None and found.unwritten is None:
            said = f"Record: {out}; mipmech report {out} -o report.html makes a page of it"
            tell_line(console, said)


def _what_was_done(found: Comparison) -> dict[str, str]:
    settings = found.settings
    etas = ", ".join(f"{fraction:g}" for fraction in settings.eta_fractions)
    whole = ", all of it for heuristics" if settings.full_time else ""
    calls = sum(len(run.calls) for run in found.runs)
    failed = sum(run.error is not None for run in found.runs)
    ended = "completed" if found.complete else f"cut short ({found.stop}): not all was asked"
    whole_rate = "‖P w_f‖"
    if found.on_facets:
        whole_rate = "the greatest rate (l1, linf: at the nearest rate of a facet)"
    entries = {
        "asked": f"η = {etas} of {whole_rate}; {count(len(settings.seeds), 'seed')} for randomised"
        f" oracles; {settings.seconds_per_call:g} s a call{whole}",
        "references": _references(found),
        "work": f"{count(calls, 'call')}, {found.seconds:.2f} s in all; {ended}",
    }
    if settings.requirements:
        entries["required"] = "".join(required(settings.requirements))
    if not found.complete:
        entries["go on"] = "the same command with the same --out does what is missing"
    if failed:
        reasons = list(dict.fromkeys(run.error for run in found.runs if run.error is not None))
        more = f"; and {len(reasons) - 1} other reasons" if len(reasons) > 1 else ""
        entries["no answer"] = f"{count(failed, 'run')}: {reasons[0]}{more}"
    if found.left_out:
        entries["left out"] = listed(list(found.left_out))
    if found.violations:
        entries["VIOLATED"] = (
            f"{len(found.violations)} values are above a proved bound: a bug in mipmech, please"
            " report it with the instance"
        )
    if found.doubts:
        entries["wrong"] = "; ".join(found.doubts)
    return entries


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
    attested = sum(b.level == "attested" and b.closed for b in (*gains, *densities))
    how = ", proved" if known > attested else ""
    if attested:
        how += f"; {attested} attested"
    return "; ".join(parts) + (f"; {stated} as the files state it" if stated else how)


THREE = ("min", "median", "max")


def _tell_oracles(console: Console, found: Comparison) -> None:
    """Density and time for each oracle; then what its answers are worth inside Algorithm 1."""
    summaries = [found.summary(oracle) for oracle in found.oracles]
    tell_table(
        console,
        "density",
        [THREE, ["≥ 0.99", "seeds"], ["seconds", "most", "calls"]],
        [_density(summary) for summary in summaries],
    )
    tell_table(
        console,
        "gain",
        [THREE, ["two thresholds:", *THREE]],
        [[s.oracle, *_three(s.gain), "", *_three(s.gain_two)] for s in summaries],
    )


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
    rows = []
    for group in found.groups:
        problems = [problem for problem in found.problems if problem.group == group]
        cells = []
        for oracle in found.oracles:
            worst, median, _ = _three(found.summary(oracle, problems).density)
            cells.append(worst if worst == "–" else f"{worst}, {median}")
        rows.append([group, *cells])
    tell_table(console, "density by group: worst, median", [[name] for name in found.oracles], rows)
