"""The comparisons of a plan, put together from the records that are there so far.

A plan with a task "compare" has jobs of two kinds for it: certificates to hold answers against
("reference"), and oracles asked at every η ("ask"). Jobs that several comparisons share are done
once. Of repetitions only the first counts: a comparison has no place for more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mipmech import files
from mipmech.errors import InputError
from mipmech.model.instance import Instance
from mipmech.studies.batch.folder import RunFolder
from mipmech.studies.batch.journal import Record
from mipmech.studies.batch.tasks import instance_file
from mipmech.studies.comparison.compare import Subject, assemble, no_bounds
from mipmech.studies.comparison.results import Bounds, Call, Comparison, Run

Reference = tuple[Bounds, dict[str, Any] | None]


def comparisons(
    folder: RunFolder, plan: Mapping[str, Any], records: Mapping[str, Record]
) -> list[Comparison]:
    """The comparisons of a plan, in its order.

    plan : as `RunFolder.plan` gives it
    records : job -> what became of it (`Records.last`); may lack any
    """
    subjects = [Subject(**entry) for entry in plan["subjects"]]
    return [
        _comparison(folder, plan, settings, subjects, records) for settings in plan["comparisons"]
    ]


def _comparison(
    folder: RunFolder,
    plan: Mapping[str, Any],
    settings: dict[str, Any],
    subjects: list[Subject],
    records: Mapping[str, Record],
) -> Comparison:
    references: dict[tuple[str, float | None], Reference] = {}
    runs: list[Run] = []
    found: list[Record] = []
    missing = 0
    for job in plan["jobs"]:
        if not _belongs(job, settings) or job["fault"] is not None:
            continue  # of an instance that cannot be read, nothing can be compared
        record = records.get(job["id"])
        if record is None:
            missing += 1
            continue
        found.append(record)
        digest = job["subject"]
        if job["task"] == "ask":
            runs.append(run_of(record))
        else:
            reference = _reference(folder, record)
            if reference is not None:
                references[digest, job["options"]["eta_fraction"]] = reference
    return assemble(
        subjects,
        settings,
        references,
        runs,
        _made_by(found),
        sum(float(record["seconds"]) for record in found),
        missing == 0,
    )


def _belongs(job: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Whether a job is part of the comparison with these settings."""
    if job["repetition"] != 0:
        return False
    options, fractions = job["options"], settings["eta_fractions"]
    if job["task"] == "reference":
        asked = options["eta_fraction"] is None or options["eta_fraction"] in fractions
        return asked and job["seconds"] == settings["reference_seconds"]
    if job["task"] != "ask":
        return False
    seed = options["seed"]
    # Heuristics that go on to the end of their time have no number of rounds.
    endless = seed is not None and options["options"].get("rounds", 0) is None
    return (
        options["oracle"] in settings["oracles"]
        and list(options["eta_fractions"]) == list(fractions)
        and job["seconds"] == settings["seconds_per_call"]
        and (seed is None or (seed in settings["seeds"] and endless == settings["full_time"]))
    )


def run_of(record: Record) -> Run:
    """The run of an "ask" record; one without a result says why."""
    options = record["options"]
    if record["status"] != "done":
        own = ", ".join(f"{name}={value!r}" for name, value in options["options"].items())
        why = f"{record['status']}: {record['reason']}"
        return Run(
            record["instance"]["digest"], options["oracle"], f"{options['oracle']}({own})",
            options["seed"], (), float(record["seconds"]), error=why,
        )  # fmt: skip
    content = record["result"]
    calls = (Call(**call) for call in content["calls"])
    calls = (replace(c, trace=tuple((s, v, b) for s, v, b in c.trace)) for c in calls)
    return Run(**{**content, "calls": tuple(calls)})


def reference_of(record: Record) -> Reference:
    """The bounds of a "reference" record with a result, and the best rule known."""
    return Bounds(**record["result"]["bounds"]), record["result"]["best"]


def _reference(folder: RunFolder, record: Record) -> Reference | None:
    """A reference that failed leaves what is true without it; None if nobody knows what that is."""
    if record["status"] == "done":
        return reference_of(record)
    fraction, seconds = record["options"]["eta_fraction"], float(record["seconds"])
    digest = record["instance"]["digest"]
    try:
        sample = Instance.load(files.beside(folder.path, instance_file(digest)))
    except InputError:
        return None
    return (no_bounds(sample, fraction, seconds), None) if sample.digest == digest else None


def _made_by(records: Iterable[Record]) -> dict[str, Any]:
    """Versions and machine of the first record that tells of them."""
    return next((dict(record["made_by"]) for record in records if record["made_by"]), {})
