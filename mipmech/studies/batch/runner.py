"""Running the jobs of a plan: each missing job once, with a record of every outcome.

A finished job is written to the journal at once and counts as done only when its record has reached
the disk. A job whose worker died is tried once more; one that failed or ran out of time or memory
is recorded with the reason, and is tried again only on request.

After one Ctrl-C no new jobs are started, and running jobs are completed. After a second one, a
request to terminate, or the end of the time, running jobs are dropped. Finished jobs are kept.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from types import FrameType
from typing import Any

from mipmech.budget import Timer
from mipmech.errors import InputError
from mipmech.studies.batch.asking import reference_of, run_of
from mipmech.studies.batch.folder import RunFolder
from mipmech.studies.batch.forecast import TRIES, Forecast
from mipmech.studies.batch.jobs import Expansion, Job
from mipmech.studies.batch.journal import Journal, JournalFault
from mipmech.studies.batch.memory import MemoryRun, Tee
from mipmech.studies.batch.records import CERTIFICATES, Allowed, Record, Records, Status, record_of
from mipmech.studies.batch.tasks import JobResult, perform, prepare
from mipmech.text import writable
from mipmech.workers.executor import Ended, Executor, ExecutorLost, How, Task

# Seconds between two looks at the journal and the clock while workers run.
HEARTBEAT = 0.05
# The status in the record of a job that ended in one of these ways.
STATUS: dict[How, Status] = {
    "done": "done",
    "error": "failed",
    "time": "timeout",
    "memory": "memory",
    "died": "crashed",
}


@dataclass(frozen=True)
class Clock:
    """The two clocks: one that only goes forward, for limits; and the wall's, for the record."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time

    def now(self) -> datetime:
        """The wall clock's time, in UTC, to the millisecond."""
        return datetime.fromtimestamp(round(self.wall(), 3), UTC)


@dataclass(frozen=True)
class Progress:
    """How far a run has come.

    done : recorded jobs, ``failed`` of them without a result
    left : expected seconds until the end
    rate : jobs per second, lately
    """

    done: int
    failed: int
    total: int
    running: int
    left: float
    rate: float
    note: str


@dataclass(frozen=True)
class RunSummary:
    """The outcome of a run.

    done, before : jobs that this run has recorded, and those that were recorded before
    failed : all jobs without a result, by status
    stop : why it ended: "finished", "interrupted", "time", or what was lost
    """

    folder: str
    total: int
    done: int
    before: int
    failed: dict[str, int]
    missing: int
    stop: str
    seconds: float
    broken: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every job has a result."""
        return self.missing == 0 and not self.failed

    def to_dict(self) -> dict[str, Any]:
        """The object printed under ``--json``."""
        return {**asdict(self), "complete": self.complete}


def run(
    expansion: Expansion,
    folder: RunFolder | MemoryRun,
    executor: Executor,
    timer: Timer,
    *,
    retry: bool = False,
    part: tuple[int, int] = (1, 1),
    watch: Callable[[Progress], None] | None = None,
    say: Callable[[str], None] = lambda _: None,
    clock: Clock | None = None,
) -> RunSummary:
    """Do the jobs that are not on the record.

    The folder must be locked by the caller (`RunFolder.locked`), the executor is closed by it.

    retry : repeat jobs that have no result
    part : (k, n), only the k-th of n parts of the jobs
    say : receives messages for the user
    """
    jobs = part_of(expansion.jobs, part)
    records = folder.records(whole=False)
    with folder.journal() as journal:
        loop = _JobLoop(
            expansion, jobs, folder, journal, executor, timer, records, retry, clock or Clock(),
            watch, say,
        )  # fmt: skip
        stop = loop.run()
    # The journal is closed: its records have settled, or it has raised its fault.
    try:
        loop.settle()
    except JournalFault as fault:
        stop = str(fault)
    return loop.summary(stop)


def part_of(jobs: Sequence[Job], part: tuple[int, int]) -> list[Job]:
    """The k-th of n parts, in the same order: by id, so that each has some of all kinds."""
    k, n = part
    chosen = set(sorted(job.id for job in jobs)[k - 1 :: n])
    return [job for job in jobs if job.id in chosen]


def _check(line: dict[str, Any]) -> None:
    """Refuse to record what cannot be read back."""
    record = record_of(line)
    if record is None:
        raise ValueError("it cannot be read back")
    if record.task == "ask":
        run_of(record)
    elif record.task == "reference" and record.done:
        reference_of(record)


@dataclass(eq=False)
class _JobLoop:
    """The state of a run."""

    expansion: Expansion
    chosen: list[Job]
    folder: RunFolder | MemoryRun
    journal: Journal | Tee
    executor: Executor
    timer: Timer
    records: Records
    retry: bool
    clock: Clock
    watch: Callable[[Progress], None] | None
    say: Callable[[str], None]

    def __post_init__(self) -> None:
        self.jobs = {job.id: job for job in self.chosen}
        known = {key: found for key, found in self.records.last.items() if key in self.jobs}
        self.attempts = {key: record.attempt for key, record in known.items()}
        kept = {key: found for key, found in known.items() if found.done or not self.retry}
        self.before = len(kept)
        self.failed: Counter[str] = Counter(
            record.status for record in kept.values() if not record.done
        )
        todo = [job for job in self.chosen if job.id not in kept]
        self.waiting = todo[::-1]
        self.given: dict[str, datetime] = {}
        self.ended: dict[str, Ended] = {}
        self.deaths: Counter[str] = Counter()
        self.done = 0
        self.ctrl_c = 0
        self.pace: list[tuple[float, int]] = []
        self.forecast = Forecast(todo, self.executor.slots)
        for key, record in known.items():
            if record.done:
                self.forecast.learn(self.jobs[key], record.seconds)

    # ------------------------------------------------------------ the loop

    def run(self) -> str:
        """Run until all is done or something ends it; returns why it ended."""
        with self._listening():
            try:
                told = False
                self._tell("starting")
                while self.waiting or self.executor.running or self.journal.pending:
                    if self.ctrl_c > 1:
                        return "interrupted"
                    if self.ctrl_c == 1 and not told:
                        told = True
                        count = self.executor.running
                        self.say(f"finishing {count} jobs that run; Ctrl-C again drops them")
                    if self.timer.left == 0:
                        return "time"
                    self._give()
                    if not self.executor.running and not self.journal.pending:
                        break  # after Ctrl-C, when nothing runs any more
                    for end in self.executor.wait(HEARTBEAT):
                        self._take(end)
                    if not self.executor.running and (self.ctrl_c or not self.waiting):
                        time.sleep(min(HEARTBEAT, self.journal.window))  # for the disk
                    self.settle()
            except (ExecutorLost, JournalFault) as fault:
                return str(fault)
        return "interrupted" if self.waiting else "finished"

    def _give(self) -> None:
        while self.waiting and self.executor.free and not self.ctrl_c:
            job = self.waiting.pop()
            try:
                if job.fault is not None:
                    raise InputError(job.fault)
                sample = self.folder.instance(job.subject)
            except InputError as error:
                self._take(Ended(job.id, "error", reason=str(error)))
                continue
            self.given[job.id] = self.clock.now()
            self.executor.give(
                Task(
                    job.id,
                    perform,
                    (sample, job.task, job.options, job.seconds, job.carried),
                    partial(prepare, job.task, job.options, job.carried),
                    job.limit + job.grace,
                    job.memory,
                )
            )

    def _take(self, end: Ended) -> None:
        """Record a job that has ended, or try it again."""
        job = self.jobs[end.key]
        if end.how == "interrupted":
            self.waiting.append(job)
            return
        if end.how == "died":
            self.deaths[job.id] += 1
            if self.deaths[job.id] < TRIES:
                self.say(f"{self.expansion.label(job)}: {end.reason}; it is tried once more")
                self.waiting.append(job)
                return
        self.ended[job.id] = end
        try:
            self.journal.append(job.id, *self._record(job, end))
        except (TypeError, ValueError) as fault:  # a bug, but not one to lose a run to
            end = self.ended[job.id] = Ended(
                job.id, "error", None, f"its result cannot be recorded: {fault}", end.seconds,
                end.memory, end.worker,
            )  # fmt: skip
            self.journal.append(job.id, *self._record(job, end))

    def settle(self) -> None:
        """Count what has reached the disk."""
        for key in self.journal.settled():
            end = self.ended.pop(key)
            self.done += 1
            self.forecast.note(self.jobs[key], end.seconds)
            if end.how != "done":
                self.failed[STATUS[end.how]] += 1
                self.say(f"{self.expansion.label(self.jobs[key])}: {STATUS[end.how]}: {end.reason}")
            self._tell(self.expansion.label(self.jobs[key]))

    def _record(self, job: Job, end: Ended) -> tuple[dict[str, Any], dict[Any, bytes]]:
        found: JobResult = end.result or JobResult()
        certificate = found.certificate
        record = Record(
            id=job.id,
            status=STATUS[end.how],
            reason=None if end.reason is None else writable(end.reason),
            attempt=self.attempts.get(job.id, 0) + 1,
            task=job.task,
            instance=self.expansion.by_digest[job.subject],
            options=job.options,
            repetition=job.repetition,
            allowed=Allowed(job.seconds, job.limit, job.memory),
            bounds=found.bounds,
            seconds=end.seconds,
            memory=end.memory,
            started=self.given.get(job.id),
            ended=self.clock.now(),
            worker=end.worker,
            made_by=found.made_by,
            certificate=None if certificate is None else f"{CERTIFICATES}/{job.id}.json",
            result=found.result,
            events=found.events,
        )
        line = record.to_dict()
        _check(line)
        attached = self.folder.certificate(job.id)
        return line, {} if certificate is None else {attached: certificate}

    # ------------------------------------------------------------ telling

    def _tell(self, note: str) -> None:
        if self.watch is None:
            return
        self.watch(
            Progress(
                self.before + self.done,
                sum(self.failed.values()),
                len(self.jobs),
                self.executor.running,
                self.forecast.seconds,
                self._rate(),
                note,
            )
        )

    def _rate(self) -> float:
        """Jobs per second over the last minute, or since the start."""
        now = self.clock.monotonic()
        self.pace.append((now, self.done))
        while len(self.pace) > 2 and now - self.pace[0][0] > 60:
            self.pace.pop(0)
        then, count = self.pace[0]
        return (self.done - count) / (now - then) if now > then else 0.0

    def summary(self, stop: str) -> RunSummary:
        """The outcome of the run."""
        missing = len(self.jobs) - self.before - self.done
        return RunSummary(
            str(self.folder.path), len(self.jobs), self.done, self.before, dict(self.failed),
            missing, stop, self.timer.seconds, self.expansion.broken,
        )  # fmt: skip

    # ------------------------------------------------------------ Ctrl-C

    @contextmanager
    def _listening(self) -> Iterator[None]:
        """Ctrl-C is counted; a request to terminate counts as two."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def hear(number: int, _frame: FrameType | None) -> None:
            # Only counted: whatever it interrupts may be printing, too.
            self.ctrl_c += 1 if number == signal.SIGINT else 2

        usual = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in usual.items():
                signal.signal(number, handler)
