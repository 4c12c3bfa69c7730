"""The pictures of a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mipmech.plots import looks
from mipmech.plots.looks import COLOURS, DASHES, MARKS, looks_of, share_axis, time_axis
from mipmech.report.kit.drawing import WIDE, Picture, closing_in
from mipmech.report.kit.svg import drawn
from mipmech.report.reading import Batch
from mipmech.studies.batch.records import Record
from mipmech.studies.spread import Spread
from mipmech.text import THIN, count, duration, listed, moment, percent, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Certificates whose bounds are drawn over time.
MOST_CERTIFICATES = 8
# Kinds of jobs with a look of their own; the others share one.
MOST_KINDS = 8
OTHER = "other kinds"
# Columns of sizes.
MOST_CLASSES = 6
# More marks than this are drawn as an image inside the picture.
MOST_MARKS = 1500
# Steps of a line over time.
STEPS = 300
# Gaps that a certificate passes on its way.
GAPS = (0.1, 0.01, 0.001)
# Times are drawn from here on.
SHORTEST = 1e-4


def kinds(batch: Batch) -> list[str]:
    """The kinds of jobs that are told apart in pictures, the most frequent."""
    counts = Counter(entry.kind for entry in batch.entries)
    if len(counts) <= MOST_KINDS:
        return list(counts)
    chosen = {kind for kind, _ in counts.most_common(MOST_KINDS - 1)}
    return [*(kind for kind in counts if kind in chosen), OTHER]


# ------------------------------------------------------------------ seconds by size


def by_size(batch: Batch) -> list[Picture]:
    """The time of every job by the number of agents and by kind, side by side."""
    entries = [entry for entry in batch.entries if entry.instance.agents > 0]
    if not entries:
        return []
    names = kinds(batch)
    drawn_as, classes = looks_of(names), _classes([entry.instance.agents for entry in entries])
    groups: dict[str, list[Record]] = {name: [] for name in names}
    for entry in entries:
        groups[entry.kind if entry.kind in groups else OTHER].append(entry)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for number in range(1, len(classes), 2):
            axes.axvspan(number - 0.5, number + 0.5, color=looks.GRID, alpha=0.35, linewidth=0)
        for place, (name, found) in enumerate(groups.items()):
            offset = 0.84 * ((place + 0.5) / len(groups) - 0.5)
            look = drawn_as[name]
            for done in (True, False):
                part = [entry for entry in found if entry.done == done]
                face: dict[str, Any] = {} if done else {"markerfacecolor": "none"}
                axes.plot(
                    [_class(classes, entry.instance.agents) + offset for entry in part],
                    [max(SHORTEST, entry.seconds) for entry in part],
                    look.mark, color=look.colour, markersize=look.size - 0.5, alpha=0.75,
                    markeredgewidth=0 if done else 1.0,
                    rasterized=len(entries) > MOST_MARKS, **face,
                )  # fmt: skip
        axes.set_yscale("log")
        axes.set_xlim(-0.5, len(classes) - 0.5)
        axes.set_xticks(range(len(classes)), [_range(*ends) for ends in classes])
        axes.tick_params(axis="x", length=0)
        time_axis(axes, 6, "y")
        axes.set_xlabel("agents")
        axes.set_ylabel("time of a job")
        axes.grid(axis="y")

    said = []
    for name, found in groups.items():
        took = Spread.of(entry.seconds for entry in found)
        said += [f"{name} {duration(took.median)} ({duration(took.max)})"] if took else []
    hollow = ", hollow marks without a result" if batch.failed else ""
    caption = f"Median (longest) of each kind{hollow}: {'; '.join(said)}."
    title = "Time by kind and size"
    return [Picture(title, drawn(WIDE, draw, "s", f"{title}. {caption}"), caption)]


def _classes(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Least and greatest size of each column: each size its own, unless they are too many."""
    distinct = sorted(set(sizes))
    step = -(-len(distinct) // MOST_CLASSES)
    parts = [distinct[place : place + step] for place in range(0, len(distinct), step)]
    return [(part[0], part[-1]) for part in parts]


def _class(classes: Sequence[tuple[int, int]], size: int) -> int:
    return next(place for place, (_, most) in enumerate(classes) if size <= most)


def _range(least: int, most: int) -> str:
    shown = [f"{value:,}" if value < 100_000 else f"{value:.3g}" for value in (least, most)]
    return "–".join(dict.fromkeys(shown))


# ------------------------------------------------------------------ over the wall clock


def finished(batch: Batch) -> list[Picture]:
    """How many jobs had ended when, by the wall clock."""
    if len(batch.entries) < 2:
        return []
    entries = sorted(batch.entries, key=lambda entry: entry.ended)
    first = min([entries[0].ended, *(entry.started for entry in entries if entry.started)])
    ended = [(entry.ended - first).total_seconds() for entry in entries]
    failed = [when for when, entry in zip(ended, entries, strict=True) if not entry.done]
    unit, name = _unit(ended[-1])
    total = len(batch.jobs) if batch.missing > 0 else 0

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for values, colour, dash in (
            (ended, looks.BLUE, "-"),
            (failed, looks.VERMILLION, (0, (4, 1.5))),
        ):
            if values:
                when, number = _thinned(values)
                axes.step(
                    [0.0, *(w / unit for w in when), ended[-1] / unit],
                    [0, *number, len(values)], where="post", color=colour, linestyle=dash,
                    linewidth=1.7,
                )  # fmt: skip
        if total:
            axes.axhline(total, color=looks.GREY, linewidth=0.9, linestyle=(0, (3, 2)))
        axes.set_xlim(0, max(ended[-1] / unit, 1e-6))
        axes.set_ylim(0, 1.06 * (total or len(entries)))
        axes.set_xlabel(f"{name} since the first job began")
        axes.set_ylabel("jobs that have ended")
        axes.grid(axis="y")

    rate = len(entries) / ended[-1] if ended[-1] > 0 else 0.0
    pace = f"{60 * rate:,.3g} a minute" if rate < 10 else f"{rate:,.3g} a second"
    caption = f"{count(len(entries), 'job')} from {moment(first)} to {moment(entries[-1].ended)}"
    caption += f", {pace}"
    caption += f"; grey: the {total:,} of the plan" if total else ""
    caption += f"; dashed: {len(failed):,} without a result" if failed else ""
    title = "Jobs over time"
    return [Picture(title, drawn(WIDE, draw, "w", f"{title}. {caption}."), f"{caption}.")]


def _thinned(values: Sequence[float]) -> tuple[list[float], list[int]]:
    """Moments and how many there were by then, at most `STEPS` of them, the last included."""
    step = max(1, -(-len(values) // STEPS))
    places = sorted({*range(step - 1, len(values), step), len(values) - 1})
    return [values[place] for place in places], [place + 1 for place in places]


def _unit(seconds: float) -> tuple[float, str]:
    """A unit for an axis of so many seconds."""
    for limit, size, name in ((180, 1.0, "seconds"), (10800, 60.0, "minutes")):
        if seconds < limit:
            return size, name
    return (3600.0, "hours") if seconds < 259200 else (86400.0, "days")


# ------------------------------------------------------------------ certificates


def gaps(batch: Batch) -> list[Picture]:
    """How many certificates had come within a gap after so many seconds."""
    found = [_steps(entry) for entry in _bounded(batch)]
    if len(found) < 2:
        return []
    reached = {part: [_reached(steps, part) for steps in found] for part in GAPS}
    when = {part: sorted(t for t in times if t is not None) for part, times in reached.items()}
    when = {part: times for part, times in when.items() if times}
    if not when:
        return []
    begin = max(SHORTEST, min(times[0] for times in when.values()))
    end = max(begin * 10, *(entry.seconds for entry in _bounded(batch)))
    axis = np.geomspace(begin / 1.5, end, 160)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for place, (part, times) in enumerate(when.items()):
            share = np.searchsorted(np.array(times), axis, side="right") / len(found)
            axes.plot(
                axis, share, drawstyle="steps-post", color=COLOURS[place], linestyle=DASHES[place],
                linewidth=1.7, marker=MARKS[place], markevery=(20 + 12 * place, 48), markersize=4.5,
                label=f"{100 * part:g}{THIN}%",
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_xlim(axis[0], axis[-1])
        time_axis(axes, 6)
        share_axis(axes.yaxis)
        axes.set_ylim(-0.02, 1.03)
        axes.set_xlabel("time of a certificate")
        axes.set_ylabel("share of the certificates")
        axes.legend(title="gap at most", loc="lower right", frameon=False, fontsize=8)
        axes.grid(axis="y")

    said = [
        f"{percent(len(times) / len(found))}{THIN}% reached a gap of {100 * part:g}{THIN}%"
        for part, times in when.items()
    ]
    caption = f"Of {count(len(found), 'certificate')}, {listed(said)}."
    title = "Gaps closing"
    return [Picture(title, drawn(WIDE, draw, "c", f"{title}. {caption}"), caption)]


def _bounded(batch: Batch) -> list[Record]:
    """The certificates with bounds: not those that no rule meets the requirements."""
    certificates = batch.of("certify")
    return [entry for entry in certificates if None not in (entry.lower, entry.upper)]


def _steps(entry: Record) -> list[tuple[float, float, float]]:
    """The bounds of a certificate over time, and those that it ends with."""
    steps = [(s, low, high) for s, low, high, _ in entry.events if high is not None]
    assert entry.lower is not None
    assert entry.upper is not None
    last = max([entry.seconds, *(seconds for seconds, _, _ in steps)])
    return [*sorted(steps), (last, entry.lower, entry.upper)]


def _reached(steps: list[tuple[float, float, float]], part: float) -> float | None:
    for seconds, lower, upper in steps:
        if lower >= 0 and (upper <= 0 or lower >= (1 - part) * upper):
            return max(SHORTEST, seconds)
    return None


def bounds(batch: Batch) -> list[Picture]:
    """Lower and upper bounds over time of the longest certificates, one per instance."""
    longest: dict[str, Record] = {}
    for entry in sorted(_bounded(batch), key=lambda entry: -entry.seconds):
        if sum(high is not None for _, _, high, _ in entry.events) > 1:
            longest.setdefault(entry.instance.digest, entry)
    look = looks_of([""])[""]
    return [
        closing_in(
            _steps(entry), f"{entry.kind} on {entry.name}", "gain", look, f"b{number}",
            short(entry.name, 34), entry.seconds,
        )
        for number, entry in enumerate(list(longest.values())[:MOST_CERTIFICATES])
    ]  # fmt: skip
