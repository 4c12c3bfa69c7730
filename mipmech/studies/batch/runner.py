"""Running the jobs of a plan: what is missing, nothing twice, and every end on the record.

A job that ended is written to the journal at once and counts as done when its record has reached
the disk, not before. A job whose worker died is tried once more; one that ran out of time or memory
or failed is a record too, with the reason, and is tried again only if that is asked for.

Ctrl-C once: no new jobs, and what runs is waited for. Twice, or a request to terminate, or the end
of the time: what runs is dropped. Everything that ended before is kept in all cases.
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
from mipmech.studies.batch.records import CERTIFICATES, Allowed, Record, Records, record_of
from mipmech.studies.batch.tasks import JobResult, perform, prepare
from mipmech.text import writable
from mipmech.workers.executor import Ended, Executor, ExecutorLost, How, Task

# How often the journal and the clock are looked at while workers work.
HEARTBEAT = 0.05
# What a record says of a job that ended in one of these ways.
STATUS: dict[How, str] = {
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

    done : jobs on the record, whatever became of them; ``failed`` of them without a result
    left : seconds that the rest is expected to take
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
    """What a run came to.

    done, before : jobs that this run has put on the record, and those that were there already
    failed : of all of them, those without a result, by what became of them
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

    retry : do those again that have no result
    part : (k, n), only the k-th of n parts of the jobs
    say : receives what a person should know at once
    """
    jobs = part_of(expansion.jobs, part)
    records = folder.records(whole=False)
    with folder.journal() as journal:
        loop = _JobLoop(expansion, jobs, folder, executor, timer, records, retry, clock or Clock())
        loop.watch, loop.say = watch, say
        stop = loop.run(journal)
    # The journal is closed: what was given to it has settled, or it has said why not.
    try:
        loop.settle(journal)
    except JournalFault as fault:
        stop = str(fault)
    return loop.summary(stop, expansion.broken)


def part_of(jobs: Sequence[Job], part: tuple[int, int]) -> list[Job]:
    """The k-th of n parts, in the same order: by id, so that each has some of all kinds."""
    k, n = part
    chosen = set(sorted(job.id for job in jobs)[k - 1 :: n])
    return [job for job in jobs if job.id in chosen]


def _check(line: dict[str, Any]) -> None:
    """Refuse to record what no reader would understand."""
    record = record_of(line)
    if record is None:
        raise ValueError("it cannot be read back")
    if record.task == "ask":
        run_of(record)
    elif record.task == "reference" and record.done:
        reference_of(record)


class _JobLoop:
    """The state of a run."""

    def __init__(
        self,
        expansion: Expansion,
        jobs: Sequence[Job],
        folder: RunFolder | MemoryRun,
        executor: Executor,
        timer: Timer,
        records: Records,
        retry: bool,
        clock: Clock,
    ) -> None:
        self.expansion = expansion
        self.jobs = {job.id: job for job in jobs}
        self.folder = folder
        self.executor = executor
        self.timer = timer
        self.clock = clock
        self.watch: Callable[[Progress], None] | None = None
        self.say: Callable[[str], None] = lambda _: None
        self.attempts = {
            key: record.attempt for key, record in records.last.items() if key in self.jobs
        }
        failed = records.failed
        again = {key for key in self.attempts if retry and key in failed}
        self.before = len(self.attempts) - len(again)
        self.failed = Counter(
            failed[key].status for key in self.attempts if key in failed and key not in again
        )
        todo = [job for job in jobs if job.id not in self.attempts or job.id in again]
        self.waiting = todo[::-1]
        self.given: dict[str, datetime] = {}
        self.ended: dict[str, Ended] = {}
        self.deaths: Counter[str] = Counter()
        self.done = 0
        self.ctrl_c = 0
        self.forecast = Forecast(todo, executor.slots)
        self._learn(records)
        self.pace: list[tuple[float, int]] = []

    def _learn(self, records: Records) -> None:
        """What earlier jobs took tells what others will."""
        for key, record in records.last.items():
            if key in self.jobs and record.done:
                self.forecast.learn(self.jobs[key], record.seconds)

    # ------------------------------------------------------------ the loop

    def run(self, journal: Journal | Tee) -> str:
        """Until all is done, or something ends it: why it ended."""
        with self._listening():
            try:
                told = False
                self._tell("starting")
                while self.waiting or self.executor.running or journal.pending:
                    if self.ctrl_c > 1:
                        return "interrupted"
                    if self.ctrl_c == 1 and not told:
                        told = True
                        count = self.executor.running
                        self.say(f"finishing {count} jobs that run; Ctrl-C again drops them")
                    if self.timer.left == 0:
                        return "time"
                    self._give(journal)
                    if not self.executor.running and not journal.pending:
                        break  # after Ctrl-C, when nothing runs any more
                    for end in self.executor.wait(HEARTBEAT):
                        self._take(end, journal)
                    if not self.executor.running and (self.ctrl_c or not self.waiting):
                        time.sleep(min(HEARTBEAT, journal.window))  # only the disk is waited for
                    self.settle(journal)
            except (ExecutorLost, JournalFault) as fault:
                return str(fault)
        return "interrupted" if self.waiting else "finished"

    def _give(self, journal: Journal | Tee) -> None:
        while self.waiting and self.executor.free and not self.ctrl_c:
            job = self.waiting.pop()
            if job.fault is not None:
                self._take(Ended(job.id, "error", reason=job.fault), journal)
                continue
            try:
                sample = self.folder.instance(job.subject)
            except InputError as error:
                self._take(Ended(job.id, "error", reason=str(error)), journal)
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

    def _take(self, end: Ended, journal: Journal | Tee) -> None:
        """A job has ended: put it on the record, or try it again."""
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
            journal.append(job.id, *self._record(job, end))
        except (TypeError, ValueError) as fault:  # a bug, but not one to lose a run to
            end = self.ended[job.id] = Ended(
                job.id, "error", None, f"its result cannot be recorded: {fault}", end.seconds,
                end.memory, end.worker,
            )  # fmt: skip
            journal.append(job.id, *self._record(job, end))

    def settle(self, journal: Journal | Tee) -> None:
        """Count what has reached the disk."""
        for key in journal.settled():
            end = self.ended.pop(key)
            self.done += 1
            self.forecast.note(self.jobs[key], end.seconds)
            if end.how != "done":
                self.failed[STATUS[end.how]] += 1
                self.say(f"{self.expansion.label(self.jobs[key])}: {STATUS[end.how]}: {end.reason}")
            self._tell(self.expansion.label(self.jobs[key]))

    def _record(self, job: Job, end: Ended) -> tuple[dict[str, Any], dict[Any, bytes]]:
        found: JobResult | None = end.result
        certificate = None if found is None else found.certificate
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
            bounds=None if found is None else found.bounds,
            seconds=end.seconds,
            memory=end.memory,
            started=self.given.get(job.id),
            ended=self.clock.now(),
            worker=end.worker,
            made_by=None if found is None else found.made_by,
            certificate=None if certificate is None else f"{CERTIFICATES}/{job.id}.json",
            result=None if found is None else found.result,
            events=() if found is None else found.events,
        )
        attached, line = self.folder.certificate(job.id), record.to_dict()
        _check(line)
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

    def summary(self, stop: str, broken: tuple[str, ...]) -> RunSummary:
        """What it came to."""
        missing = len(self.jobs) - self.before - self.done
        return RunSummary(
            str(self.folder.path), len(self.jobs), self.done, self.before, dict(self.failed),
            missing, stop, self.timer.seconds, broken,
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
