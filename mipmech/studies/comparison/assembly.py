"""A comparison, assembled from the records so far.

Jobs that several comparisons of a plan share are done once. Of repetitions only the first counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from mipmech.studies.batch.asking import (
    ComparisonSettings,
    Reference,
    Run,
    reference_of,
    run_of,
)
from mipmech.studies.batch.jobs import Job
from mipmech.studies.batch.records import Record, Subject
from mipmech.studies.batch.requiring import OPTION
from mipmech.studies.comparison.results import Comparison, Problem

# The digest of an instance, and η as a fraction of ‖P w_f‖; None for the gain.
Question = tuple[str, float | None]


def assemble(
    settings: ComparisonSettings,
    subjects: Iterable[Subject],
    jobs: Iterable[Job],
    records: Mapping[str, Record],
    left_out: Sequence[str] = (),
) -> Comparison:
    """The comparison that these records hold.

    jobs : of its plan
    records : job -> its record (`Records.last`); may lack any
    left_out : instances that are others under another name, in words
    """
    mine = [job for job in jobs if job.fault is None and _belongs(job, settings)]
    found = [records[job.id] for job in mine if job.id in records]
    runs = [
        _asked(run_of(record), settings.eta_fractions) for record in found if record.task == "ask"
    ]
    certified = {
        (record.instance.digest, record.options["eta_fraction"]): reference_of(record)
        for record in found
        if record.task == "reference" and record.done
    }
    touched = {record.instance.digest for record in found}
    problems, doubts = [], []
    for subject in subjects:
        if subject.digest in touched:
            mine_here = [run for run in runs if run.instance == subject.digest]
            problem, doubted = _problem(subject, settings, certified, mine_here)
            problems.append(problem)
            doubts += doubted
    places = {problem.digest: place for place, problem in enumerate(problems)}
    order = {name: place for place, name in enumerate(settings.oracles)}
    runs.sort(key=lambda run: (places[run.instance], order[run.oracle], run.seed or 0))
    return Comparison(
        problems=tuple(problems),
        runs=tuple(runs),
        settings=settings,
        made_by=next((record.made_by for record in found if record.made_by), {}),
        seconds=sum(record.seconds for record in found),
        complete=len(found) == len(mine),
        doubts=tuple(doubts),
        left_out=tuple(left_out),
    )


def _asked(run: Run, fractions: Sequence[float]) -> Run:
    """A run without calls that nobody asked for: a folder of strangers may hold some."""
    return replace(run, calls=tuple(c for c in run.calls if c.eta_fraction in fractions))


def _belongs(job: Job, settings: ComparisonSettings) -> bool:
    """Whether a job is part of the comparison with these settings."""
    options, fractions = job.options, settings.eta_fractions
    if job.repetition != 0 or job.task not in ("reference", "ask"):
        return False
    if options.get(OPTION) != settings.requirements:
        return False
    if job.task == "reference":
        asked = options["eta_fraction"] is None or options["eta_fraction"] in fractions
        return asked and job.seconds == settings.reference_seconds
    return (
        options["oracle"] in settings.oracles
        and tuple(options["eta_fractions"]) == fractions
        and job.seconds == settings.seconds_per_call
        and (options["seed"] is None or options["seed"] in settings.seeds)
        and options.get("full_time", settings.full_time) == settings.full_time
    )


def _problem(
    subject: Subject,
    settings: ComparisonSettings,
    certified: Mapping[Question, Reference],
    runs: Sequence[Run],
) -> tuple[Problem, list[str]]:
    """An instance with its references, and the doubts about the statements of its file.

    A missing certificate is replaced by trivial bounds.
    """
    settled, doubts = [], []
    required = settings.requirements is not None
    for fraction in (None, *settings.eta_fractions):
        trivial = Reference(0.0, 1.0, "proved", 0.0)
        if fraction is None:  # perhaps no rule meets requirements
            trivial = replace(trivial, lower=None if required else 0.0, upper=subject.ceiling)
        bounds = certified.get((subject.digest, fraction), trivial)
        # What files state is about all rules.
        stated = None if required else subject.stated(fraction)
        bounds, doubt = bounds.settled(_best(runs, fraction), stated)
        settled.append(bounds)
        if doubt is not None:
            what = "gain" if fraction is None else f"density at η = {fraction:g} ‖P w_f‖"
            doubts.append(f"{subject.name}, known: the greatest {what} is said to be {doubt}")
    gain, *densities = settled
    # The best rule known may be an oracle's, where the certificate ran out of time.
    better = max(runs, key=lambda run: -math.inf if run.gain is None else run.gain, default=None)
    found = certified.get((subject.digest, None))
    least = 0.0 if found is None else found.lower
    if least is None or (found is None and required):
        least = -math.inf
    if better is not None and better.mechanism and (better.gain or 0.0) > least:
        gain = replace(gain, best=better.mechanism, accepted=None, rates=None)
    return Problem(**vars(subject), gain=gain, densities=tuple(densities)), doubts


def _best(runs: Iterable[Run], fraction: float | None) -> float:
    """The greatest gain, or the greatest density at η, that any of these runs found."""
    if fraction is None:
        return max((max(run.gain or 0.0, run.gain_two or 0.0) for run in runs), default=0.0)
    calls = (call for run in runs for call in run.calls if not call.soft)
    return max((call.lower for call in calls if call.eta_fraction == fraction), default=0.0)
