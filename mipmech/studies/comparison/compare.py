"""Ask oracles the same questions under the same limits, and hold the answers against proofs.

For every instance: certificates of the greatest gain and of the greatest density at each η (the
references); then each oracle, for each seed if it draws random numbers, at the same values of η
with the same time for each call. One set of answers serves twice: as densities, and inside
Algorithm 1, whose gain on these η is the best that the answers lead to (lines 3 to 6).

Programs are loaded and loops compiled before the clock of a call starts.
"""

from __future__ import annotations

import platform
import random
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mipmech.budget import Budget, Event, Timer
from mipmech.design.certificate import certify, certify_density
from mipmech.errors import InputError
from mipmech.model.families import make, named
from mipmech.model.geometry import Geometry, reduce
from mipmech.model.grading import Recount
from mipmech.model.instance import Instance
from mipmech.model.thresholds import best_threshold
from mipmech.oracles.base import Oracle, infeasible
from mipmech.oracles.registry import oracle_class, oracle_named
from mipmech.rationals import round_down, round_up
from mipmech.studies.comparison.results import Bounds, Call, Comparison, Problem, Run
from mipmech.studies.forecast import Done, Forecast, Job, run
from mipmech.theory.lemma4 import quarter
from mipmech.version import __version__
from mipmech.workers.processes import cores

# Values of η as fractions of ‖P w_f‖; their angles are some 12 degrees apart.
ETA_FRACTIONS = (1.0, 0.97, 0.9, 0.8, 0.6, 0.4, 0.2)
SEEDS = (0, 1, 2)
SECONDS_PER_CALL = 2.0
# A reference may take this many times as long as a call, and this long in any case.
REFERENCE_CALLS, REFERENCE_SECONDS = 5.0, 10.0
# The gap at which a reference gain counts as known.
REFERENCE_GAP = 1e-3
# Steps of a trace that are kept at most: the last ones, and every second one before.
LONGEST_TRACE = 200
PACKAGES = ("numpy", "scipy", "pyomo", "highspy", "numba")


@dataclass(frozen=True)
class Progress:
    """How far a comparison has come.

    left : seconds that the rest is expected to take
    """

    done: int
    total: int
    left: float
    note: str


@dataclass(frozen=True)
class Settings:
    """What is asked of every oracle.

    eta_fractions : values of η, as fractions of ‖P w_f‖
    seeds : for the oracles that draw random numbers; the others are asked once
    seconds_per_call : the time of each call
    full_time : heuristics go on until that time is over, instead of stopping when they are content
    reference_seconds : the time of each certificate
    """

    oracles: tuple[str, ...]
    eta_fractions: tuple[float, ...] = ETA_FRACTIONS
    seeds: tuple[int, ...] = SEEDS
    seconds_per_call: float = SECONDS_PER_CALL
    full_time: bool = False
    reference_seconds: float | None = None

    def __post_init__(self) -> None:
        if not self.oracles:
            raise InputError("none are named; give one or more", field="oracles")
        for name in self.oracles:
            oracle_class(name)
        for field in ("oracles", "eta_fractions", "seeds"):
            values = getattr(self, field)
            if not values:
                raise InputError("is empty; give one or more", field=field)
            if len(set(values)) < len(values):
                raise InputError("has a value twice; give each once", field=field)
        for fraction in self.eta_fractions:
            if not -1 <= fraction <= 1:
                raise InputError(f"has {fraction}; give numbers from −1 to 1", field="etas")
        if min(self.seeds) < 0:
            raise InputError(f"has {min(self.seeds)}; give whole numbers from 0", field="seeds")
        if not 0 < self.seconds_per_call < float("inf"):
            said = f"is {self.seconds_per_call}; give a number above 0"
            raise InputError(said, field="seconds_per_call")
        if self.reference_seconds is not None and not 0 <= self.reference_seconds < float("inf"):
            said = f"is {self.reference_seconds}; give a number from 0"
            raise InputError(said, field="reference_seconds")

    @property
    def for_references(self) -> float:
        """Seconds for each certificate."""
        if self.reference_seconds is not None:
            return self.reference_seconds
        return max(REFERENCE_SECONDS, REFERENCE_CALLS * self.seconds_per_call)

    def asked(self, name: str) -> list[tuple[int | None, dict[str, Any]]]:
        """The seed and the options of an oracle of this name, once for each seed if it has one."""
        if not getattr(oracle_class(name), "randomised", False):
            return [(None, {})]
        endless = {"rounds": None} if self.full_time else {}
        return [(seed, {"seed": seed, **endless}) for seed in self.seeds]

    def to_dict(self) -> dict[str, Any]:
        """For the record; the time of a certificate as it is meant."""
        return {
            "oracles": list(self.oracles),
            "eta_fractions": list(self.eta_fractions),
            "seeds": list(self.seeds),
            "seconds_per_call": self.seconds_per_call,
            "full_time": self.full_time,
            "reference_seconds": self.for_references,
        }


def compare(
    instances: Iterable[Instance | str | Path],
    oracles: Sequence[str],
    *,
    eta_fractions: Sequence[float] = ETA_FRACTIONS,
    seeds: Sequence[int] = SEEDS,
    seconds_per_call: float = SECONDS_PER_CALL,
    full_time: bool = False,
    reference_seconds: float | None = None,
    workers: int | None = None,
    out: str | Path | None = None,
    budget: Budget | None = None,
    watch: Callable[[Progress], None] | None = None,
) -> Comparison:
    """Compare oracles on instances: files, folders of files, names of seeded ones, or themselves.

    workers : processes; None takes all cores
    out : a folder for the record and copies of the instances, from which a report can be made
    budget : seconds of the whole; what is finished by then is kept

    >>> sample = make("gaussian-mixture", agents=30, rank=2, seed=1)
    >>> found = compare([sample], ["random", "projection"], seeds=[0], workers=1)
    >>> found
    Comparison(2 oracles on 1 instances, 14 calls; 0 violations)
    """
    settings = Settings(
        tuple(oracles), tuple(float(f) for f in eta_fractions), tuple(seeds), seconds_per_call,
        full_time, reference_seconds,
    )  # fmt: skip
    samples, again = _distinct(instances)
    workers = cores() if workers is None else workers
    if workers < 1:
        raise InputError(f"is {workers}; give 1 or more", field="workers")
    folder = None if out is None else _folder(Path(out))
    timer = (budget or Budget()).start()
    with timer.listening():
        found = _Work(samples, settings, workers, again).run(timer, watch)
    if folder is not None:
        for sample in samples:
            sample.save(folder / Subject.of(sample).file)
        found.save(folder)
    return found


def _folder(folder: Path) -> Path:
    """The folder, made before any work is done, and found to be writable."""
    try:
        (folder / "instances").mkdir(parents=True, exist_ok=True)
        for place in (folder, folder / "instances"):
            with tempfile.TemporaryFile(dir=place):
                pass
    except OSError as error:
        said = f"cannot be made: {(error.strerror or str(error)).lower()}"
        raise InputError(said, file=folder, field="out") from None
    return folder


def _distinct(instances: Iterable[Instance | str | Path]) -> tuple[list[Instance], list[str]]:
    """The instances that are meant, each once; and who else is the same under another name."""
    found: dict[str, Instance] = {}
    again = []
    for given in instances:
        for sample in [given] if isinstance(given, Instance) else open_instances(given):
            first = found.setdefault(sample.digest, sample)
            if first.known is None and sample.known is not None:
                found[sample.digest] = replace(first, known=sample.known)
            if first.name != sample.name:
                again.append(f"{sample.name} is {first.name} under another name")
    if not found:
        raise InputError("there are none; name files, folders or seeded ones", field="instances")
    return list(found.values()), again


def open_instances(given: str | Path) -> list[Instance]:
    """The instance of a file, those of a folder, or a seeded one by its name.

    >>> open_instances("uniform-ball-m50-k3-s7")
    [Instance('uniform-ball-m50-k3-s7': 50 agents, 4 features, 3 seen)]
    """
    path = Path(given)
    if path.is_dir():
        files = sorted(path.glob("*.json"))
        if not files:
            raise InputError("has no instance files (*.json) in it", file=path)
        return [Instance.load(file) for file in files]
    if not path.exists():
        seeded = named(str(given))
        if seeded is not None:
            return [seeded]
    return [Instance.load(path)]


# ------------------------------------------------------------------ the work


class _Work:
    """The jobs of a comparison, and what has come of them."""

    def __init__(
        self, samples: list[Instance], settings: Settings, workers: int, left_out: Sequence[str]
    ) -> None:
        self.samples = samples
        self.settings = settings
        self.workers = workers
        self.left_out = list(left_out)
        self.references: dict[tuple[str, float | None], tuple[Bounds, Any]] = {}
        self.runs: list[Run] = []
        self.jobs: list[Job[Any]] = []
        # What each job is about: an instance, and an η (None: the gain) or an oracle and a seed.
        self.about: list[tuple[Instance, float | None, str | None, int | None, str]] = []
        for sample in samples:
            for fraction in (None, *settings.eta_fractions):
                self._plan(sample, fraction)
            for name in settings.oracles:
                for seed, options in settings.asked(name):
                    self._plan_run(sample, name, seed, oracle_named(name, **options))

    def _plan(self, sample: Instance, fraction: float | None) -> None:
        seconds = self.settings.for_references
        kind = "gain" if fraction is None else "density"
        self.jobs.append(Job(reference, (sample, fraction, seconds), f"{kind} bounds", seconds))
        self.about.append((sample, fraction, None, None, ""))

    def _plan_run(self, sample: Instance, name: str, seed: int | None, oracle: Oracle) -> None:
        settings = self.settings
        limit = settings.seconds_per_call * len(settings.eta_fractions)
        arguments = (sample, name, seed, oracle, settings.eta_fractions, settings.seconds_per_call)
        self.jobs.append(Job(answer_all, arguments, name, limit))
        self.about.append((sample, None, name, seed, repr(oracle)))

    def run(self, timer: Timer, watch: Callable[[Progress], None] | None) -> Comparison:
        """All jobs, or as many as there was time for."""
        forecast = Forecast(self.jobs, self.workers)
        # In a random order, so that what was seen so far tells of what is left.
        order = random.Random(0).sample(range(len(self.jobs)), len(self.jobs))
        done = 0
        for ended in run([self.jobs[place] for place in order], self.workers, timer):
            done += 1
            job = replace(ended, place=order[ended.place])
            forecast.note(self.jobs[job.place], job.seconds)
            self._take(job)
            if watch is not None:
                sample, _, name, _, _ = self.about[job.place]
                note = f"{name or 'references'} on {sample.name}"
                watch(Progress(done, len(self.jobs), forecast.seconds, note))
        return self._comparison(timer, complete=done == len(self.jobs))

    def _take(self, done: Done[Any]) -> None:
        sample, fraction, name, seed, record = self.about[done.place]
        if name is None:
            # A reference that failed leaves what is true without it.
            found = done.result or (no_bounds(sample, fraction, done.seconds), None)
            self.references[sample.digest, fraction] = found
        elif done.result is not None:
            self.runs.append(done.result)
        else:
            lost = Run(sample.digest, name, record, seed, (), done.seconds, error=done.error)
            self.runs.append(lost)

    def _comparison(self, timer: Timer, complete: bool) -> Comparison:
        subjects = [Subject.of(sample) for sample in self.samples]
        settings = {**self.settings.to_dict(), "workers": self.workers}
        settings |= {"left_out": self.left_out} if self.left_out else {}
        references = {**self._without_work(), **self.references}
        return assemble(
            subjects, settings, references, self.runs, made_by(), timer.seconds, complete
        )

    def _without_work(self) -> dict[tuple[str, float | None], tuple[Bounds, Any]]:
        """For instances with runs: what is true, or stated, if their certificates did not come."""
        asked = {run.instance for run in self.runs}
        return {
            (sample.digest, fraction): (no_bounds(sample, fraction, 0.0), None)
            for sample in self.samples
            if sample.digest in asked
            for fraction in (None, *self.settings.eta_fractions)
        }


@dataclass(frozen=True)
class Subject:
    """What a comparison has to know of an instance.

    group : the family of a seeded instance; of others, the folder that they lie in
    file : its copy in the folder of the comparison
    """

    name: str
    digest: str
    group: str
    file: str
    agents: int
    rank: int

    @classmethod
    def of(cls, sample: Instance) -> Subject:
        """The subject that an instance is."""
        file = f"instances/{sample.digest[:16]}.json"
        group = _group(sample).encode(errors="replace").decode()  # a folder may be called anything
        return cls(sample.name, sample.digest, group, file, sample.size, sample.view.rank)


def assemble(
    subjects: Sequence[Subject],
    settings: Mapping[str, Any],
    references: Mapping[tuple[str, float | None], tuple[Bounds, Any]],
    runs: Iterable[Run],
    made_by: Mapping[str, Any],
    seconds: float,
    complete: bool,
) -> Comparison:
    """A comparison of what there is: instances with all their references, and the runs on them.

    settings : as `Settings.to_dict` gives them
    references : (digest, η as a fraction, or None for the gain) -> bounds, and the best rule known
    """
    fractions = settings["eta_fractions"]
    by_instance: dict[str, list[Run]] = {}
    for one in runs:
        by_instance.setdefault(one.instance, []).append(one)
    problems = []
    doubts: list[str] = []
    for subject in subjects:
        if not all((subject.digest, f) in references for f in (None, *fractions)):
            continue  # without references there is nothing to hold answers against
        mine = by_instance.get(subject.digest, ())
        best = references[subject.digest, None][1]
        settled = {}
        for fraction in (None, *fractions):
            bounds, doubt = references[subject.digest, fraction][0].settled(_best(mine, fraction))
            settled[fraction] = bounds
            if doubt is not None:
                what = "gain" if fraction is None else f"density at η = {fraction:g} ‖P w_f‖"
                doubts.append(f"{subject.name}, known: the greatest {what} is said to be {doubt}")
        gain, densities = settled[None], tuple(settled[fraction] for fraction in fractions)
        # The best rule known may be an oracle's, where the certificate ran out of time.
        better = max(mine, key=lambda run: run.gain, default=None)
        if better is not None and better.gain > references[subject.digest, None][0].lower:
            best = better.mechanism or best
        problems.append(Problem(**asdict(subject), gain=gain, densities=densities, best=best))
    order = {name: place for place, name in enumerate(settings["oracles"])}
    places = {problem.digest: place for place, problem in enumerate(problems)}
    held = [run for digest in places for run in by_instance.get(digest, ())]
    held.sort(key=lambda run: (places[run.instance], order[run.oracle], run.seed or 0))
    return Comparison(
        problems=tuple(problems),
        runs=tuple(held),
        settings=dict(settings),
        made_by=dict(made_by),
        seconds=seconds,
        complete=complete,
        doubts=tuple(doubts),
    )


def _best(runs: Iterable[Run], fraction: float | None) -> float:
    """The greatest gain, or the greatest density at η, that any of these runs found."""
    if fraction is None:
        return max((max(run.gain, run.gain_two) for run in runs), default=0.0)
    calls = (call for run in runs for call in run.calls if not call.soft)
    return max((call.lower for call in calls if call.eta_fraction == fraction), default=0.0)


def _group(sample: Instance) -> str:
    """The family of a seeded instance; of others, the folder that they lie in."""
    from mipmech.model.families import NAMES  # noqa: PLC0415

    for family in NAMES:
        if re.match(rf"{family}-m\d", sample.name):
            return family
    return "given" if sample.path is None else sample.path.resolve().parent.name


@cache
def made_by() -> dict[str, Any]:
    """Versions and machine, for the record."""
    return {
        "program": "mipmech",
        "version": __version__,
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "cores": cores(),
        "packages": {name: version(name) for name in PACKAGES},
    }


# ------------------------------------------------------------------ what workers do


def reference(
    sample: Instance, fraction: float | None, seconds: float
) -> tuple[Bounds, dict[str, Any] | None]:
    """Bounds on the greatest gain, or on the greatest density at η; and the best rule known."""
    geometry = reduced(sample)
    warm("cells")
    budget = Budget(seconds)
    if fraction is None:
        found = certify(geometry, gap=REFERENCE_GAP, budget=budget)
    else:
        eta = fraction * geometry.p_norm
        if infeasible(geometry, eta):
            return Bounds(0.0, 0.0, "proved", 0.0), None
        found = certify_density(geometry, eta, budget)
    said = stated(sample, fraction)
    bounds = Bounds(round_down(found.lower), found.upper, found.level, found.seconds, said)
    return bounds, None if found.mechanism is None else found.mechanism.to_dict()


def stated(sample: Instance, fraction: float | None) -> tuple[float, float] | None:
    """What the instance's file says of the greatest gain, or of the greatest density at η."""
    known = sample.known
    if known is None:
        return None
    return (known.lower, known.upper) if fraction is None else known.density(fraction)


def no_bounds(sample: Instance, fraction: float | None, seconds: float) -> Bounds:
    """What is true without any work."""
    from mipmech.theory.projection import gain_ceiling  # noqa: PLC0415

    upper = gain_ceiling(sample) if fraction is None else 1.0
    return Bounds(0.0, upper, "proved", seconds, stated(sample, fraction))


def answer_all(
    sample: Instance,
    name: str,
    seed: int | None,
    oracle: Oracle,
    fractions: Sequence[float],
    seconds: float,
) -> Run:
    """An oracle at every η, and the rules that Algorithm 1 makes of its answers."""
    geometry = reduced(sample)
    warm(name)
    calls: list[Call] = []
    best: Recount | None = None
    spent = 0.0
    for fraction in fractions:
        call, rule = _call(geometry, oracle, fraction, seconds)
        calls.append(call)
        spent += call.seconds
        if rule is not None and rule.gain > 0 and (best is None or rule.gain > best.gain):
            best = rule
    mechanism = None if best is None else best.mechanism.to_dict()
    return Run(sample.digest, name, repr(oracle), seed, tuple(calls), spent, mechanism)


def _call(
    geometry: Geometry, oracle: Oracle, fraction: float, seconds: float
) -> tuple[Call, Recount | None]:
    trace: list[tuple[float, float, float | None]] = []

    def watch(event: Event) -> None:
        step = (event.seconds, event.lower, event.upper)
        if not trace or trace[-1][1:] != step[1:]:
            trace.append(step)

    eta = fraction * geometry.p_norm
    answer = oracle(geometry, eta, Budget(seconds, watch=watch))
    while len(trace) > LONGEST_TRACE:
        half = len(trace) // 2
        trace[:half] = trace[:half:2]
    best = None
    gain = two = 0.0
    if answer.mechanism is not None:
        best = best_threshold(geometry.instance, answer.mechanism)
        gain = max(0.0, round_down(best.gain))
        two = max(0.0, round_down(quarter(geometry.instance, answer.mechanism)[0].gain))
    call = Call(
        eta_fraction=fraction,
        eta=eta,
        lower=round_down(answer.lower),
        soft=answer.soft,
        upper=None if answer.upper is None else round_up(answer.upper),
        status=answer.status,
        stop=answer.stop.value,
        seconds=answer.seconds,
        gain=gain,
        gain_two=two,
        trace=tuple(trace),
    )
    return call, best


_REDUCED: list[Geometry] = []


def reduced(sample: Instance) -> Geometry:
    """The instance in reduced coordinates; the last one is kept, since jobs come in its order."""
    if not _REDUCED or _REDUCED[0].instance.digest != sample.digest:
        _REDUCED[:] = [reduce(replace(sample))]
    return _REDUCED[0]


@cache
def warm(name: str) -> None:
    """Load what an oracle needs and compile its loops, before any clock runs."""
    geometry = reduce(make("gaussian-mixture", agents=12, rank=3, seed=0))
    try:
        oracle_named(name)(geometry, 0.6 * geometry.p_norm, Budget(60.0))
    except InputError:
        return  # one that cannot answer here will say so where it is asked
