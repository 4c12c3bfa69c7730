"""Folders of runs to report on, written as a run writes them, without the work."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from mipmech import Instance
from mipmech.oracles.registry import oracle_named
from mipmech.studies.batch.asking import ComparisonSettings
from mipmech.studies.batch.folder import FORMAT, MARK, PLANS, RECORDS
from mipmech.studies.batch.journal import line_of
from mipmech.studies.batch.records import Subject, instance_file, subject_of
from mipmech.studies.comparison.results import Comparison
from tests.conftest import ROOT

BEGIN = datetime(2026, 11, 18, 9, 0, 0, tzinfo=UTC)
MADE_BY = {"program": "mipmech", "version": "0.4.0", "cores": 2, "packages": {"numpy": "2.0"}}
SETTINGS = ComparisonSettings(("sweep", "random"), (0.9, 0.5), (0, 1), 1.0, False, 10.0)
ENDLESS = ComparisonSettings(("sweep", "random"), (0.9, 0.5), (0,), 1.0, True, 10.0)
TINY = [
    ROOT / "instances" / "tiny" / f"{name}.json"
    for name in ("cloud", "square", "hidden-quality", "weights")
]
HOSTILE = (
    "<script>window.hacked = true; alert(1)</script>",
    '"><img src=x onerror="window.hacked = true">',
    "$x$ and \\frac{1}{2} {{ 7*7 }} {% raw %}",
    "=cmd|' /C calc'!A0",
    "a very long name " * 20,
    "مثال \u202e 例題 пример 👩\u200d🔬",
    "two\nlines\tand\x00a zero\ud800",
    "a|b `c` *d* _e_ [f](https://example.org) <b>g</b> &amp; ~h~",
)


class MadeUp:
    """A run that nobody ran: jobs with records, which a test may change before they are written."""

    def __init__(
        self, name: str = "made up", comparisons: Sequence[ComparisonSettings] = ()
    ) -> None:
        self.plan = {
            "format": "mipmech/jobs@2", "name": name, "text": "[limits]\nseconds = 5\n",
            "subjects": [], "comparisons": [settings.to_dict() for settings in comparisons],
            "jobs": [], "left_out": [], "broken": [],
        }  # fmt: skip
        self.records: list[dict] = []
        self.samples: list[Instance] = []
        self.shared: dict[tuple, dict] = {}

    def subject(self, found: Instance | Subject | None, **changes) -> dict:
        """Add an instance; without a sample, one of which there is no copy."""
        if found is None:
            number = len(self.plan["subjects"])
            found = Subject(f"problem-{number}", f"{number:064x}", "made", 40, 3)
        elif isinstance(found, Instance):
            self.samples.append(found)
            # What its file states of its optima is not what these records make up.
            found = replace(subject_of(found, found.path.parent.name), known_gain=None)
        names = Subject.__dataclass_fields__
        entry = {**{name: getattr(found, name) for name in names}, **changes}
        self.plan["subjects"].append(entry)
        return entry

    def planned(self, subject: dict, task: str, options: dict, repetition: int = 0,
                seconds: float = 5.0) -> str:  # fmt: skip
        """Add a job without a record; its id."""
        key = f"{len(self.plan['jobs']):020x}"
        self.plan["jobs"].append({
            "id": key, "task": task, "options": options, "repetition": repetition,
            "seconds": seconds, "limit": seconds, "grace": 5.0, "memory": None,
            "subject": subject["digest"], "fault": None,
        })  # fmt: skip
        return key

    def job(self, subject: dict, task: str, options: dict, result: dict | None, bounds: dict | None,
            *, repetition: int = 0, seconds: float = 5.0, status: str = "done",
            reason: str | None = None, events: Sequence = ()) -> dict:  # fmt: skip
        """Add a job and its record; the record."""
        number = len(self.plan["jobs"])
        same = (subject["digest"], task, json.dumps(options), repetition, seconds)
        if task in ("reference", "ask") and same in self.shared:
            return self.shared[same]  # jobs that several comparisons have are done once
        key = self.planned(subject, task, options, repetition, seconds)
        started, ended = (BEGIN + timedelta(seconds=number + s) for s in (0, 1))
        record = {
            "id": key, "status": status, "reason": reason, "attempt": 1, "task": task,
            "instance": subject, "options": options,
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

    def failed(self, subject: dict, status: str = "timeout", reason: str = "too slow",
               oracle: str = "milp") -> dict:  # fmt: skip
        options = {"oracle": oracle, "eta": 0.25, "eta_fraction": None, "options": {}}
        return self.job(subject, "oracle", options, None, None, status=status, reason=reason)

    def reference(self, subject: dict, settings: ComparisonSettings, fraction: float | None,
                  known: dict, repetition: int = 0) -> dict:  # fmt: skip
        what = "gain" if fraction is None else "density"
        bounds = {name: known[name] for name in ("lower", "upper", "level")}
        return self.job(
            subject, "reference", {"eta_fraction": fraction}, known,
            {"what": what, "status": "optimal", **bounds}, repetition=repetition,
            seconds=settings.reference_seconds,
        )  # fmt: skip

    def ask(self, subject: dict, settings: ComparisonSettings, run: dict, own: dict,
            repetition: int = 0) -> dict:  # fmt: skip
        """An oracle asked in a comparison; a run with an error has no result."""
        options = {
            "oracle": run["oracle"], "seed": run["seed"], "options": own,
            "eta_fractions": list(settings.eta_fractions),
        }  # fmt: skip
        if run["seed"] is not None:
            options["full_time"] = settings.full_time
        gain = max((call["gain"] for call in run["calls"]), default=0.0)
        bounds = {"what": "gain", "status": "feasible", "lower": gain, "upper": None, "level": None}
        lost = run["error"] is not None
        return self.job(
            subject, "ask", options, None if lost else run, None if lost else bounds,
            repetition=repetition, seconds=settings.seconds_per_call,
            status="failed" if lost else "done", reason=run["error"],
        )  # fmt: skip

    def compare(self, subject: dict, settings: ComparisonSettings, repetition: int = 0) -> None:
        """All jobs of a comparison on an instance."""
        for fraction in (None, *settings.eta_fractions):
            value = 0.1 if fraction is None else 0.5
            known = {"lower": value, "upper": value, "level": "proved", "seconds": 0.1}
            self.reference(subject, settings, fraction, {**known, "best": None}, repetition)
        for name in settings.oracles:
            for seed, own in settings.asked(oracle_named(name)):
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
                self.ask(subject, settings, run, own, repetition)

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


def keep(comparison: Comparison, folder: Path) -> Path:
    """The folder of a run that came to this comparison."""
    settings = comparison.settings
    made = MadeUp("comparison", [settings])
    made.plan["text"] = ""
    for problem in comparison.problems:
        subject = made.subject(problem)
        references = (problem.gain, *problem.densities)
        for fraction, bounds in zip((None, *settings.eta_fractions), references, strict=True):
            made.reference(subject, settings, fraction, asdict(bounds))
        for run in comparison.runs:
            if run.instance == problem.digest:
                own = {} if run.seed is None else {"seed": run.seed}
                made.ask(subject, settings, asdict(run), own)
        if not comparison.complete:
            options = {"oracle": settings.oracles[0], "seed": None, "options": {},
                       "eta_fractions": list(settings.eta_fractions)}  # fmt: skip
            made.planned(subject, "ask", options, 0, settings.seconds_per_call)
    return made.write(folder)


def everything(comparisons: int = 1, instances: int = 4) -> MadeUp:
    """Every kind of job on up to four instances, with failures and repetitions."""
    chosen = [SETTINGS, ENDLESS][:comparisons]
    made = MadeUp(comparisons=chosen)
    for number, path in enumerate(TINY[:instances]):
        sample = Instance.load(path)
        subject = made.subject(sample)
        rule = {"weights": [1.0, *[0.0] * (sample.agents.shape[1] - 1)], "threshold": 0.5}
        made.certify(subject, rule)
        made.certify(subject, rule, 0.1005, repetition=1)
        made.oracle(subject)
        made.oracle(subject, "ransac", seed=number)
        made.solve(subject)
        for settings in chosen:
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
    for number in range(3):
        made.failed(subject, "timeout", HOSTILE[number], oracle=HOSTILE[1])
    for number, record in enumerate(made.records):
        if record["status"] != "done":
            record["reason"] = HOSTILE[number % len(HOSTILE)]
        else:
            record["made_by"] = {**record["made_by"], HOSTILE[0]: HOSTILE[1]}
    return made
