"""Folders of runs to report on, written as `mipmech bench` writes them, without the work."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

from mipmech import Instance
from mipmech.studies.batch.folder import FORMAT, MARK, PLANS, RECORDS
from mipmech.studies.batch.journal import line_of
from mipmech.studies.batch.tasks import instance_file
from mipmech.studies.comparison.compare import Settings, Subject
from tests.comparisons import HOSTILE, TINY

BEGIN = datetime(2026, 11, 18, 9, 0, 0, tzinfo=UTC)
MADE_BY = {"program": "mipmech", "version": "0.4.0", "cores": 2, "packages": {"numpy": "2.0"}}
SETTINGS = Settings(("sweep", "random"), (0.9, 0.5), (0, 1), 1.0, False, 10.0)


class MadeUp:
    """A run that nobody ran: jobs with records, which a test may change before they are written."""

    def __init__(self, name: str = "made up", comparisons: Sequence[Settings] = ()) -> None:
        self.plan = {
            "format": "mipmech/jobs@1", "name": name, "text": "[limits]\nseconds = 5\n",
            "subjects": [], "comparisons": [settings.to_dict() for settings in comparisons],
            "jobs": [],
        }  # fmt: skip
        self.records: list[dict] = []
        self.samples: list[Instance] = []
        self.shared: dict[tuple, dict] = {}

    def subject(self, sample: Instance | None, **changes) -> dict:
        """Add an instance; without a sample, one of which there is no copy."""
        if sample is None:
            number = len(self.plan["subjects"])
            digest = f"{number:064x}"
            found = Subject(f"problem-{number}", digest, "made", instance_file(digest), 40, 3)
        else:
            self.samples.append(sample)
            found = Subject.of(sample)
        entry = {**asdict(found), **changes}
        self.plan["subjects"].append(entry)
        return entry

    def job(self, subject: dict, task: str, options: dict, result: dict | None, bounds: dict | None,
            *, repetition: int = 0, seconds: float = 5.0, status: str = "done",
            reason: str | None = None, events: Sequence = ()) -> dict:  # fmt: skip
        """Add a job and its record; the record."""
        number = len(self.plan["jobs"])
        key = f"{number:020x}"
        same = (subject["digest"], task, json.dumps(options), repetition, seconds)
        if task in ("reference", "ask") and same in self.shared:
            return self.shared[same]  # jobs that several comparisons have are done once
        self.plan["jobs"].append({
            "id": key, "task": task, "options": options, "repetition": repetition,
            "seconds": seconds, "limit": seconds, "grace": 5.0, "memory": None,
            "subject": subject["digest"], "fault": None,
        })  # fmt: skip
        names = ("name", "digest", "group", "agents", "rank")
        started, ended = (BEGIN + timedelta(seconds=number + s) for s in (0, 1))
        record = {
            "id": key, "status": status, "reason": reason, "attempt": 1, "task": task,
            "instance": {name: subject[name] for name in names}, "options": options,
            "repetition": repetition,
            "allowed": {"seconds": seconds, "limit": seconds, "memory": None},
            "bounds": bounds, "seconds": 0.01 * (1 + number % 7), "memory": 200_000_000,
            "started": started.isoformat(), "ended": ended.isoformat(), "worker": "here/1",
            "made_by": MADE_BY if status == "done" else None, "certificate": None,
            "result": result, "events": list(events),
        }  # fmt: skip
        self.records.append(record)
        self.shared[same] = record
        return record

    def certify(self, subject: dict, rule: dict | None = None, upper: float = 0.2, **more) -> dict:
        status = "gap" if upper > 0.11 else "optimal"
        bounds = {"what": "gain", "status": status, "lower": 0.1, "upper": upper, "level": "proved"}
        options = {"gap": 1e-3, "engine": "auto", "keep": True}
        events = [[0.001, 0.0, 0.9, 1], [0.002, 0.05, None, 2], [0.004, 0.1, 0.3, 3]]
        result = {"mechanism": rule}
        return self.job(subject, "certify", options, result, bounds, events=events, **more)

    def oracle(self, subject: dict, oracle: str = "milp", seed: int | None = None, **more) -> dict:
        exact = seed is None
        own = {} if exact else {"seed": seed}
        options = {"oracle": oracle, "eta": None, "eta_fraction": 0.5, "options": own}
        bounds = {
            "what": "density", "status": "optimal" if exact else "feasible", "lower": 0.5,
            "upper": 0.5 if exact else None, "level": "attested" if exact else None,
        }  # fmt: skip
        return self.job(subject, "oracle", options, {"mechanism": None}, bounds, **more)

    def solve(self, subject: dict, **more) -> dict:
        options = {"oracle": "milp", "grid": "angular", "thresholds": "best", "options": {}}
        bounds = {
            "what": "gain", "status": "gap", "lower": 0.08, "upper": 0.5, "level": "attested",
        }  # fmt: skip
        result = {"oracle_calls": {"made": 1234, "skipped": 5}}
        return self.job(subject, "solve", options, result, bounds, **more)

    def failed(self, subject: dict, status: str = "timeout", reason: str = "too slow") -> dict:
        options = {"oracle": "milp", "eta": 0.25, "eta_fraction": None, "options": {}}
        return self.job(subject, "oracle", options, None, None, status=status, reason=reason)

    def compare(self, subject: dict, settings: Settings, repetition: int = 0) -> None:
        """All jobs of a comparison on an instance."""
        for fraction in (None, *settings.eta_fractions):
            what, value = ("gain", 0.1) if fraction is None else ("density", 0.5)
            known = {"lower": value, "upper": value, "level": "proved", "seconds": 0.1}
            bounds = {"what": what, "status": "optimal", "level": "proved"}
            self.job(
                subject, "reference", {"eta_fraction": fraction}, {"bounds": known, "best": None},
                {**bounds, "lower": value, "upper": value}, repetition=repetition,
                seconds=settings.for_references,
            )  # fmt: skip
        for name in settings.oracles:
            for seed, own in settings.asked(name):
                calls = [
                    {
                        "eta_fraction": f, "eta": f, "lower": 0.45, "soft": False, "upper": None,
                        "status": "feasible", "stop": "done", "seconds": 0.01, "gain": 0.1,
                        "gain_two": 0.05, "trace": [[0.001, 0.2, None], [0.01, 0.45, None]],
                    }
                    for f in settings.eta_fractions
                ]  # fmt: skip
                run = {
                    "instance": subject["digest"], "oracle": name, "record": f"{name}()",
                    "seed": seed, "calls": calls, "seconds": 0.02, "mechanism": None, "error": None,
                }  # fmt: skip
                options = {
                    "oracle": name, "seed": seed, "options": own,
                    "eta_fractions": list(settings.eta_fractions),
                }  # fmt: skip
                bounds = {"what": "gain", "status": "feasible", "lower": 0.1}
                self.job(
                    subject, "ask", options, run, {**bounds, "upper": None, "level": None},
                    repetition=repetition, seconds=settings.seconds_per_call,
                )  # fmt: skip

    def write(self, folder: Path) -> Path:
        """The folder of the run; JSON in plain ASCII, so that every text can be written."""
        (folder / PLANS).mkdir(parents=True, exist_ok=True)
        (folder / "instances").mkdir(exist_ok=True)
        for sample in self.samples:
            sample.save(folder / instance_file(sample.digest))
        (folder / MARK).write_text(json.dumps({"format": FORMAT, "plan": "p"}))
        (folder / PLANS / "p.json").write_text(json.dumps(self.plan))
        (folder / RECORDS).write_bytes(b"".join(line(record) for record in self.records))
        return folder


def line(record: dict) -> bytes:
    """A record as a line, also with NaN and halves of characters, as a stranger may write it."""
    try:
        return line_of(record)
    except ValueError:
        body = json.dumps(record, separators=(",", ":")).encode()[:-1]
        return body + b',"check":"%08x"}\n' % zlib.crc32(body)


def everything(comparisons: int = 1, instances: int = 4) -> MadeUp:
    """Every kind of job on up to four instances, with failures and repetitions."""
    chosen = [SETTINGS, Settings(("sweep", "random"), (0.9, 0.5), (0,), 1.0, True, 10.0)]
    made = MadeUp(comparisons=chosen[:comparisons])
    for number, path in enumerate(TINY[:instances]):
        sample = Instance.load(path)
        subject = made.subject(sample)
        rule = {"weights": [1.0, *[0.0] * (sample.agents.shape[1] - 1)], "threshold": 0.5}
        made.certify(subject, rule)
        made.certify(subject, rule, 0.1005, repetition=1)
        made.oracle(subject)
        made.oracle(subject, "ransac", seed=number)
        made.solve(subject)
        for settings in chosen[:comparisons]:
            made.compare(subject, settings)
    made.failed(subject)
    made.failed(subject, "memory", "it used 3 GB")
    made.failed(subject, "crashed", "the worker <died>")
    return made


def hostile() -> MadeUp:
    """The same with an attack for every text."""
    made = everything(1, 2)
    made.plan["name"] = HOSTILE[0]
    made.plan["text"] = "\n".join(HOSTILE)
    for number, subject in enumerate(made.plan["subjects"]):
        subject["name"] = subject["group"] = HOSTILE[number]
    names = {entry["digest"]: entry["name"] for entry in made.plan["subjects"]}
    for number, record in enumerate(made.records):
        name = names[record["instance"]["digest"]]
        record["instance"] = {**record["instance"], "name": name, "group": name}
        if record["status"] != "done":
            record["reason"] = HOSTILE[number % len(HOSTILE)]
            record["options"] = {**record["options"], "oracle": HOSTILE[1]}
        elif record["made_by"]:
            record["made_by"] = {**record["made_by"], HOSTILE[0]: HOSTILE[1]}
    return made
