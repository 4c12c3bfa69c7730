"""Ask oracles the same questions under the same limits, and compare the answers with proofs.

A comparison is a batch of one task (`studies.batch`), in memory or in a run's folder: for every
instance certificates of the greatest gain and of the greatest density at each η (the references);
then each oracle, once for each seed if it draws random numbers, at the same values of η with the
same time for each call.
"""

from __future__ import annotations

import operator
import os
import pickle
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from mipmech.budget import Budget
from mipmech.errors import InputError
from mipmech.model.families import named
from mipmech.model.instance import Instance
from mipmech.model.requirements.required import RequirementsLike
from mipmech.oracles.base import Oracle
from mipmech.oracles.registry import REGISTRY, as_oracle
from mipmech.studies.batch.asking import (
    ETA_FRACTIONS,
    SECONDS_PER_CALL,
    SEEDS,
    ComparisonSettings,
)
from mipmech.studies.batch.folder import RunFolder
from mipmech.studies.batch.jobs import expand
from mipmech.studies.batch.memory import MemoryRun
from mipmech.studies.batch.plan import Plan, Source, comparison_pieces
from mipmech.studies.batch.requiring import plain
from mipmech.studies.batch.runner import Progress, run
from mipmech.studies.comparison.assembly import assemble
from mipmech.studies.comparison.results import Comparison
from mipmech.workers.executor import Executor, InProcess
from mipmech.workers.processes import Processes, cores


def compare(
    instances: Iterable[Instance | str | Path] | Instance | str | Path,
    oracles: Sequence[str | Oracle],
    *,
    eta_fractions: Sequence[float] = ETA_FRACTIONS,
    seeds: Sequence[int] = SEEDS,
    seconds_per_call: float = SECONDS_PER_CALL,
    full_time: bool = False,
    reference_seconds: float | None = None,
    require: RequirementsLike | None = None,
    workers: int | None = None,
    executor: Callable[[], AbstractContextManager[Executor | None]] | None = None,
    retry: bool = False,
    out: str | Path | None = None,
    budget: Budget | None = None,
    watch: Callable[[Progress], None] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Comparison:
    """Compare oracles on instances.

    Parameters
    ----------
    instances : iterable of Instance, str or Path
        Instances, files, folders of files, or names of seeded ones (``ties-m50-k3-s1``).
    oracles : sequence of str or Oracle
        Names of oracles, or oracles themselves.
    eta_fractions : sequence of float
        Values of η, as fractions of ‖P w_f‖, the greatest rate; for costs of the norm l1 or linf
        the rate of a facet that is nearest is asked for.
    seeds : sequence of int
        For the oracles that draw random numbers; the others are asked once.
    seconds_per_call : float
        The time of each call.
    full_time : bool
        Heuristics use all of that time, instead of stopping by their own rule.
    reference_seconds : float, optional
        The time of each certificate; five calls, and at least 10 s, by default.
    require : Requirements, mapping, str or Path, optional
        What is demanded of rules, or the name of its file: references are certified under the same
        requirements, and a rule that fails them counts as none. They must make sense on all
        instances.
    workers : int, optional
        Processes; 1 works in this process. By default all cores, or this process if an oracle
        cannot be sent to another one.
    executor : callable, optional
        Makes another executor, such as `mipmech.workers.dask.Cluster`, instead.
    retry : bool
        Repeat jobs of the folder that have no result.
    out : str or Path, optional
        A run's folder. Jobs recorded there are not repeated.
    budget : Budget, optional
        Limits the whole comparison; results finished by then are kept.
    watch, say : callable, optional
        Receive progress, and messages for the user.

    Returns
    -------
    Comparison
        Every call, recounted, with its reference.

    Examples
    --------
    >>> from mipmech import make_instance
    >>> sample = make_instance("gaussian-mixture", agents=30, rank=2, seed=1)
    >>> compare([sample], ["random", "projection"], seeds=[0], workers=1)
    Comparison(2 oracles on 1 instances, 14 calls; 0 violations)
    """
    if isinstance(instances, (Instance, str, Path)):
        instances = [instances]
    chosen = _named(oracles)
    try:
        settings = ComparisonSettings(
            tuple(chosen), tuple(map(float, eta_fractions)), tuple(map(operator.index, seeds)),
            float(seconds_per_call), full_time,
            None if reference_seconds is None else float(reference_seconds), plain(require),
        ).checked()  # fmt: skip
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        said = f"expected numbers, and lists of numbers for η and seeds: {error}"
        raise InputError(said, field="settings") from None
    if executor is None and workers is None and any(map(_stays_here, chosen.values())):
        workers = 1
    for name, oracle in chosen.items():
        if workers != 1 and (why := _stays_here(oracle)) is not None:
            said = f"{name} {why}; define it in a module that can be imported, or give workers=1"
            raise InputError(said, field="oracles")
    sources = tuple(source for given in instances for source in sources_of(given))
    if not sources:
        raise InputError("there are none; name files, folders or seeded ones", field="instances")
    if workers is not None and workers < 1:
        raise InputError(f"is {workers}; give 1 or more", field="workers")
    timer = (budget or Budget()).start()
    pieces = tuple(comparison_pieces(settings, chosen))
    plan = Plan("comparison", "", sources, pieces, (settings,))
    folder = None if out is None else RunFolder.make(out)
    with nullcontext() if folder is None else folder.locked():
        store = MemoryRun(folder)
        expansion = expand(plan, store.keep)
        store.follow(expansion)
        if store.unwritten is not None:
            say(f"{store.unwritten}; going on in memory")
        with _executor(workers, executor) as helpers:
            assert helpers is not None
            ended = run(expansion, store, helpers, timer, retry=retry, watch=watch, say=say)
    found = assemble(
        settings, expansion.subjects, expansion.jobs, store.records().last, expansion.left_out
    )
    return replace(found, stop=ended.stop, unwritten=store.unwritten)


def _named(oracles: Sequence[str | Oracle]) -> dict[str, Oracle]:
    """The oracles by their names: those of the registry, or of their classes."""
    if isinstance(oracles, str):
        raise InputError(f"is the text {oracles!r}; give a list of oracles", field="oracles")
    found: dict[str, Oracle] = {}
    for given in oracles:
        oracle = as_oracle(given)
        name = given if isinstance(given, str) else type(oracle).__name__
        if name in REGISTRY and not isinstance(given, str):
            said = f"has a class {name}, which is the name of an oracle of mipmech; rename it"
            raise InputError(said, field="oracles")
        if type(oracle).__repr__ is object.__repr__:
            said = f"{name} has no repr, which is what records keep; make it a frozen dataclass"
            raise InputError(said, field="oracles")
        if name in found:
            same = f"{name} twice" if isinstance(given, str) else f"two of the class {name}"
            raise InputError(f"has {same}; give each once, or another class", field="oracles")
        found[name] = oracle
    return found


def _stays_here(oracle: Oracle) -> str | None:
    """Why an oracle cannot be sent to another process, if so."""
    if type(oracle).__module__ == "__main__":
        return "is defined in the script itself, which worker processes cannot import"
    try:
        pickle.dumps(oracle)
    except Exception as fault:
        return f"cannot be pickled ({fault})"
    return None


def _executor(
    workers: int | None, executor: Callable[[], AbstractContextManager[Executor | None]] | None
) -> AbstractContextManager[Executor | None]:
    if executor is not None:
        return executor()
    return InProcess() if workers == 1 else Processes(workers or cores())


def sources_of(given: Instance | str | Path) -> list[Source]:
    """An instance itself, the one of a file, those of a folder, or a seeded one by its name.

    >>> [source.load() for source in sources_of("uniform-ball-m50-k3-s7")]
    [Instance('uniform-ball-m50-k3-s7': 50 agents, 4 features, 3 seen)]
    """
    if isinstance(given, Instance):
        return [Source(sample=given)]
    path = Path(given)
    if os.path.isdir(path):
        files = sorted(path.glob("*.json"))
        if not files:
            raise InputError("has no instance files (*.json) in it", file=path)
        return [Source(sample=Instance.load(file)) for file in files]
    seeded = None if os.path.exists(path) else named(str(given))
    return [Source(sample=Instance.load(path) if seeded is None else seeded)]
