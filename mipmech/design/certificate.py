"""Certified optimal mechanisms: a rule, what it gains exactly, and a proof that none gains more.

`certify` searches with one of two engines. `cells` leaves a tree of cells as the proof; the
independent checker verifies it before the certificate is returned, and the upper bound is the one
that the *checker* computes: level "proved". `milp` covers all directions by cones, closed by
counting or by HiGHS: level "attested". Stopped early, either gives a certificate of the gap
reached, just as valid. The file is described in `docs/proof-format.md`.

>>> from mipmech import make_instance
>>> found = certify(make_instance("gaussian-mixture", agents=30, rank=2, seed=1))
>>> found.status, found.level, found.gap <= 1e-3
('optimal', 'proved', True)
"""

from __future__ import annotations

import base64
import json
import lzma
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mipmech import files
from mipmech.budget import Budget, Event, Stop, Timer, Trace
from mipmech.checker.verdict import FORMAT, Verdict, seal
from mipmech.checker.verdict import check as check_certificate
from mipmech.design.printed import PrintedRule, facts, printed
from mipmech.errors import InputError
from mipmech.model.edge_of_reach import Fragile, fragile
from mipmech.model.geometry import Geometry, geometry_of
from mipmech.model.grading import Recount
from mipmech.model.instance import Instance
from mipmech.model.masses import masses
from mipmech.model.mechanism import Mechanism
from mipmech.model.requirements import Demands
from mipmech.model.requirements.required import RequirementsLike
from mipmech.oracles.base import Level, infeasible
from mipmech.rationals import relative_gap, round_down, round_up
from mipmech.theory.projection import gain_ceiling
from mipmech.validation import Floats
from mipmech.version import __version__
from mipmech.workers.executor import Executor, ExecutorLost
from mipmech.workers.ordered import ExecutorPool, each

EngineName = Literal["auto", "cells", "milp"]
Status = Literal["optimal", "gap", "infeasible"]

DEFAULT_GAP = 1e-3
# Less than this share of what any rule could gain is rounding.
NOTHING = 1e-12
# Events that a certificate keeps of its search, for the picture.
MOST_EVENTS = 1000
# The checker, on one thread, takes about as long as the search per thread, at times a half more.
CHECKING = 1.5
# Checking goes on for so long after a limit or Ctrl-C, in seconds: most proofs need no more, and
# then the bound is proved.
MOMENT = 0.5
# Other processors add in another order: what one of them checked, others should accept.
ELSEWHERE = 1 + Fraction(1, 1 << 40)
# A later check is expected to take this much longer than the first one tells.
UNSURE = 1.3
# Searching goes on after a check if it can become longer by this share.
WORTH_MORE = 0.25
# The checker refuses trees of more than 2^27 nodes (the last lots of blocks may be large); it takes
# some 30 bytes of memory a node.
MOST_NODES = 80_000_000
# Where a leaf has more lines to tilt, the checker sets several in each step. With more steps than
# that, bounds get hardly better (measured), and checking takes longer than searching.
TILTING_STEPS = 1 << 9
# Packing a larger tree well would take longer than a tenth of the search: a faster preset takes a
# seventh of the time and a sixth more bytes (measured).
LARGE_TREE = 1 << 20


@dataclass(frozen=True, eq=False, repr=False)
class Certificate:
    """A claim about the greatest gain (or density at η) of an instance, with its proof.

    Attributes
    ----------
    instance : Instance
    claim : mapping
        As in the file.
    recount : Recount or None
        The exact outcome of the witness, the mechanism found; None if no rule gains.
    lower : Fraction
    upper : float
        The greatest gain (density) lies between them.
    wanted : float
        The relative gap asked for.
    level : {"proved", "attested"}
    engine : str
    stop : Stop
    seconds : float
    work : mapping of str to int
    proof : mapping
        The proof of the upper bound, as in the file.
    events : tuple of Event
        The bounds over time.
    demands : Demands or None
        What is demanded of rules; None if any rule is allowed.
    """

    instance: Instance
    claim: Mapping[str, Any]
    recount: Recount | None
    lower: Fraction
    upper: float
    wanted: float
    level: Level
    engine: str
    stop: Stop
    seconds: float
    work: Mapping[str, int]
    proof: Mapping[str, Any] = field(repr=False)
    events: tuple[Event, ...] = ()
    demands: Demands | None = None

    def __repr__(self) -> str:
        if self.infeasible:
            return f"Certificate(infeasible, {self.level}; {self.engine}, {self.seconds:.2f} s)"
        return (
            f"Certificate({self.status}, {self.level}: {self.claim['kind']} in"
            f" [{round_down(self.lower):.9g}, {self.upper:.9g}], gap {self.gap:.2g};"
            f" {self.engine}, {self.seconds:.2f} s)"
        )

    @property
    def mechanism(self) -> Mechanism | None:
        """The rule found."""
        return None if self.recount is None else self.recount.mechanism

    @property
    def infeasible(self) -> bool:
        """Whether no rule meets the requirements."""
        return bool(self.claim["kind"] == "infeasible")

    @property
    def unknown(self) -> bool:
        """Whether rules must meet requirements, and none that does is known."""
        return self.demands is not None and self.recount is None

    @property
    def gap(self) -> float:
        """(upper − lower)/upper, rounded up; 0 if upper is 0, 1 if no allowed rule gains."""
        if self.infeasible:
            return 0.0
        if self.unknown or self.lower < 0:
            return 1.0
        return relative_gap(self.lower, self.upper)

    @property
    def status(self) -> Status:
        """Whether the gap is as small as was asked for, or no rule meets the requirements."""
        if self.infeasible:
            return "infeasible"
        met = self.gap <= self.wanted
        if self.demands is not None and not self.unknown and self.lower >= 0:
            # Requirements may leave nothing to gain, and rounding a little.
            met = met or self.upper <= NOTHING * gain_ceiling(self.instance)
        return "optimal" if met else "gap"

    @property
    def scope(self) -> str:
        """What the upper bound is about, in words."""
        if self.demands is not None:
            return (
                "all threshold rules on what the planner sees that meet the requirements, on this"
                " sample"
            )
        if self.claim["kind"] == "gain":
            return "all threshold rules on what the planner sees, on this sample"
        return "all threshold rules with this η (to within the band), on this sample"

    @cached_property
    def printed(self) -> PrintedRule | None:
        """The rule in few digits, in the user's units, and what it does with just these."""
        if self.recount is None:
            return None
        return printed(self.recount, measure=self.claim["kind"], demands=self.demands)

    @cached_property
    def fragile(self) -> Fragile | None:
        """How much of the gain hangs on agents at the very end of their reach."""
        return None if self.recount is None else fragile(self.recount)

    def plot(self) -> Any:
        """A matplotlib figure of the bounds over time, and of the rule."""
        from mipmech.plots.certificate import certificate_picture  # noqa: PLC0415  (matplotlib is slow to import)

        return certificate_picture(self)

    def to_dict(self) -> dict[str, Any]:
        """The object printed under ``--json``; bounds are rounded outward."""
        bounds: dict[str, float | None] | None = {
            "lower": None if self.unknown else round_down(self.lower), "upper": self.upper,
        }  # fmt: skip
        if self.infeasible:
            bounds = None
        kind = "gain" if self.infeasible else self.claim["kind"]
        return {
            "status": self.status,
            kind: bounds,
            **({"value": bounds} if kind == "gain" else {}),
            "gap": self.gap,
            "level": self.level,
            "scope": self.scope,
            "engine": self.engine,
            "mechanism": None if self.mechanism is None else self.mechanism.to_dict(),
            **facts(self.instance, self.recount, self.printed, self.fragile),
            **({} if self.demands is None else self.demands.facts(self.recount)),
            "lower_exact": None if self.unknown else str(self.lower),
            "stop": self.stop.value,
            "work": dict(self.work),
            "seconds": self.seconds,
        }

    def content(self, folder: Path | None = None) -> dict[str, Any]:
        """The certificate file's object.

        Parameters
        ----------
        folder : Path, optional
            The instance's path is stored relative to it.
        """
        if self.level == "attested" and self.infeasible:
            raise InputError(
                "is that no rule meets the requirements, on a solver's word alone, and a"
                " certificate of that must be proved; use engine='cells'",
                field="certificate",
            )
        if self.demands is not None and self.demands.requirements.own:
            raise InputError(
                "is about constraints of your own, which a certificate cannot hold",
                field="certificate",
            )
        instance, beside = self.instance, None
        if instance.path is not None and folder is not None:
            beside = Path(os.path.relpath(instance.path.resolve(), folder.resolve())).as_posix()
        content: dict[str, Any] = {
            "format": FORMAT,
            "claim": dict(self.claim),
            "instance": {"name": instance.name, "digest": instance.digest, "path": beside},
            "witness": None if self.mechanism is None else self.mechanism.to_dict(),
            "lower": None
            if self.unknown
            else {"value": round_down(self.lower), "exact": str(self.lower)},
            "upper": None if self.infeasible else self.upper,
            "gap": None if self.infeasible else self.gap,
            "level": self.level,
            "scope": self.scope,
            "made_by": {"program": "mipmech", "version": __version__, "engine": self.engine},
            "work": dict(self.work),
            "stop": self.stop.value,
            "proof": dict(self.proof),
        }
        content["seal"] = seal(content)
        return content

    def save(self, path: str | Path) -> None:
        """Write the certificate file; an existing one is replaced whole or not at all.

        Parameters
        ----------
        path : str or Path
            The file.
        """
        file = Path(path)
        text = json.dumps(self.content(file.parent), indent=1, ensure_ascii=False)
        files.write(file, text.encode())

    def check(self) -> Verdict:
        """The verdict of the independent checker."""
        return check_certificate(self.content(), self.instance)


def certify(
    sample: Instance | Geometry | str | Path,
    *,
    require: RequirementsLike | None = None,
    gap: float = DEFAULT_GAP,
    engine: EngineName = "auto",
    budget: Budget | None = None,
    executor: Executor | None = None,
) -> Certificate:
    """The best threshold mechanism on a sample, with a proof.

    Parameters
    ----------
    sample : Instance, Geometry, str or Path
        The sample, or its file.
    require : Requirements, mapping, str or Path, optional
        What is demanded of rules, or the name of its file. If no rule meets it, that is what is
        proved.
    gap : float
        The relative gap (upper − lower)/upper at which the search stops.
    engine : {"auto", "cells", "milp"}
        "cells" gives a proved bound, "milp" an attested one.
    budget : Budget, optional
        Its seconds include the checker's work; its threads do not change the result.
    executor : Executor, optional
        Its workers search and check instead of threads; the result is the same, to the last bit if
        all have the same processor. If a worker dies, only its current block is recomputed. If all
        are lost, the certificate is of what was finished by then, and ``stop`` says so. It stays
        open, and may be busy for a moment with work that is no longer needed.
    """
    geometry = geometry_of(sample, require)
    if not 0 <= gap < 1:
        raise InputError(f"is {gap}; give a number from 0 to below 1", field="gap")
    if engine not in ("auto", "cells", "milp"):
        raise InputError(f"is {engine!r}; give auto, cells or milp", field="engine")
    if engine == "milp" and executor is not None:
        raise InputError("is milp, which does not use workers; give cells", field="engine")
    timer, trace = _traced(budget)
    chosen = FASTEST if engine == "auto" else engine
    if geometry.demands is not None and geometry.demands.requirements.own:
        chosen = _engine_for_own(engine, executor)
    with timer.listening():
        if (
            geometry.p_norm == 0 and geometry.demands is None
        ):  # exactly: no rule on what the planner sees changes quality
            found = Certificate(
                geometry.instance, {"kind": "gain"}, None, Fraction(0), 0.0, gap, "proved", chosen,
                Stop.CLOSED, timer.seconds, {"nodes": 0}, {"kind": "cells@1"},
            )  # fmt: skip
            found = _checked(found, timer)
        elif chosen == "cells":
            found = _by_cells(geometry, gap, timer, executor)
        else:
            found = _by_milp(geometry, gap, timer)
    return replace(found, seconds=timer.seconds, events=tuple(trace.events))


def _engine_for_own(engine: EngineName, executor: Executor | None) -> Literal["milp"]:
    """The engine that knows constraints of a user's own."""
    if engine == "cells":
        said = "does not know constraints of your own; use engine='milp'"
        raise InputError(f"is cells: the cells engine {said}", field="engine")
    if executor is not None:
        said = "are for the engine milp, which does not use workers; leave the executor out"
        raise InputError(said, field="own")
    return "milp"


# Measured for k = 2…8 and m = 12…100,000 (benchmarks/README.md): cells closed sooner everywhere.
FASTEST: Literal["cells", "milp"] = "cells"


def _traced(budget: Budget | None) -> tuple[Timer, Trace]:
    """The clock of a budget, and the events that a certificate keeps."""
    budget = budget or Budget()
    trace = Trace(budget.watch, MOST_EVENTS)
    return replace(budget, watch=trace).start(), trace


def _search_timer(timer: Timer, executor: Executor | None = None) -> Timer:
    """The clock of the search: a part of the time, if that is limited; the rest is for checking."""
    # Workers check as well as search; threads only search.
    share = 1 / (1 + CHECKING * (timer.budget.threads if executor is None else 1))
    return Timer(replace(timer.budget, seconds=timer.left * share))


def _by_cells(
    geometry: Geometry, gap: float, timer: Timer, executor: Executor | None = None
) -> Certificate:
    from mipmech.oracles.cells.engine import GainSearch  # noqa: PLC0415  (numba is slow to import)

    clock, most = _search_timer(timer, executor), _most_nodes(timer.budget)

    def tell() -> None:
        clock.tell(search.lower, search.upper, search.search.nodes)

    demands = geometry.demands

    def made(stop: Stop) -> Certificate:
        recount = search.best.recount if search.lower > 0 or demands is not None else None
        kind = "infeasible" if search.infeasible else "gain"
        return Certificate(
            geometry.instance, _claim(kind, demands), recount, search.lower, round_up(search.upper),
            gap, "proved", "cells", stop, timer.seconds, {"nodes": search.search.nodes},
            cells_proof(geometry, geometry.basis, search.search), demands=demands,
        )  # fmt: skip

    # This compiles, once, before workers start, so that all of them load the same code: two that
    # compiled it for themselves might associate sums in two ways.
    search = GainSearch(geometry, clock, gap=gap, keep=True, tell=tell)
    with clock.listening():
        stop = search.run(most, executor)
        again = partial(search.search.run, timer.budget.threads, most, executor)
        return _in_time(timer, clock, stop, again, made, executor)


def _in_time(
    timer: Timer,
    clock: Timer,
    stop: Stop,
    again: Callable[[], Stop],
    made: Callable[[Stop], Certificate],
    executor: Executor | None = None,
) -> Certificate:
    """The certificate of a search, checked; and while there is time for more, of more search.

    How long checking takes is known only afterwards. So the search has stopped early enough in any
    case; what the first check took then tells how much longer the search may go on.

    stop : why the search stopped; ``again`` goes on with it, for as long as the clock allows
    made : the certificate of what was found so far
    """
    searched = timer.seconds
    proved: Certificate | None = None
    while True:
        timer.interrupted = timer.interrupted or clock.interrupted
        found = made(_why(stop, clock))
        began = timer.seconds
        found = _checked(found, timer, None if stop is Stop.LOST else executor)
        if found.level == "attested" and proved is not None:
            # What was checked before still holds, and so does the better rule found since.
            found = replace(
                found, upper=proved.upper, level="proved", proof=proved.proof, work=proved.work
            )
        proved = found = replace(found, stop=_why(found.stop, timer))
        ratio = UNSURE * (timer.seconds - began) / searched
        more = (timer.left - ratio * searched) / (1 + ratio)
        if stop is not Stop.TIME or more < WORTH_MORE * searched:
            return found
        began = timer.seconds
        clock.allow(more)
        stop = again()
        searched += timer.seconds - began


def _by_milp(geometry: Geometry, gap: float, timer: Timer) -> Certificate:
    from mipmech.design.attested import cover_of, proof_of  # noqa: PLC0415  (Pyomo)

    cover, demands = cover_of(geometry, gap, timer), geometry.demands
    stop = cover.run()
    claim = _claim("infeasible" if cover.infeasible else "gain", demands)
    recount = cover.found if cover.lower > 0 or demands is not None else None
    most = max(gain_ceiling(geometry.instance), round_up(cover.lower))
    return Certificate(
        geometry.instance, claim, recount, cover.lower, min(round_up(cover.upper), most), gap,
        "attested", "milp", _why(stop, timer), timer.seconds, cover.work, proof_of(cover),
        demands=demands,
    )  # fmt: skip


def _claim(kind: str, demands: Demands | None) -> dict[str, Any]:
    """The claim of a certificate's file."""
    if demands is None:
        return {"kind": kind}
    return {"kind": kind, "requirements": demands.requirements.to_dict()}


def _most_nodes(budget: Budget) -> int:
    """As many as were allowed, and no more than a checker accepts."""
    return MOST_NODES if budget.nodes is None else min(budget.nodes, MOST_NODES)


def _why(stop: Stop, clock: Timer) -> Stop:
    return Stop.INTERRUPTED if clock.interrupted and stop is Stop.TIME else stop


def cells_proof(geometry: Geometry, frame: Floats, search: Any) -> dict[str, Any]:
    """The proof that a search leaves: the frame, and the tree of cells."""
    tree = search.tree()
    preset = 6 if len(tree) < LARGE_TREE else 2
    packed = lzma.compress(tree.tobytes(), format=lzma.FORMAT_XZ, preset=preset)
    low, high = search.problem.thresholds
    many = search.problem.y.shape[1] > TILTING_STEPS
    return {
        "kind": "cells@1",
        "frame": frame.tolist(),
        "centre": geometry.centre.tolist(),
        "unit": geometry.unit,
        "thresholds": [low, high],
        **({"steps": TILTING_STEPS} if many else {}),
        "leaves": int(np.count_nonzero(tree == 0)),
        "tree": base64.b85encode(packed).decode(),
    }


class CertificateFault(RuntimeError):
    """The checker rejects a certificate that was just made: a bug, never the instance's fault."""


def _checked(found: Certificate, timer: Timer, executor: Executor | None = None) -> Certificate:
    """The certificate with the upper bound that the checker establishes.

    If the checker has no time for that, the bound is the search's own word: level "attested".
    """
    if found.infeasible:
        return _checked_infeasible(found, timer, executor)
    if found.claim["kind"] == "density":
        ample = most = found.upper
    else:
        # Room for the two programs to round differently; what counts is what the checker
        # establishes.
        ample = math.nextafter(found.upper * (1 + 1e-9), math.inf) if found.upper else 0.0
        most = gain_ceiling(found.instance)
    watch, lower, work = timer.budget.watch, round_down(found.lower), sum(found.work.values())

    def say(text: str) -> None:
        if watch is not None:
            watch(Event(timer.seconds, lower, found.upper, work, f"checking: {text}"))

    least = round_up(found.lower)
    # What is called attested is checked to the end, even if some leaf allows more.
    asked = replace(found, upper=max(min(ample, most), least), level="attested")
    content, go_on = asked.content(), _a_moment_longer(timer)
    verdict = check_on(executor, content, found.instance, say, go_on=go_on)
    if not verdict.finished:
        return replace(asked, level="attested", stop=Stop.TIME)
    if verdict.leaf_bound is None:
        raise CertificateFault(verdict.reason)
    if verdict.leaf_bound <= least:
        return replace(found, upper=least)
    anywhere = min(round_up(Fraction(verdict.leaf_bound) * ELSEWHERE), most)
    return replace(found, upper=max(anywhere, verdict.leaf_bound))


def _checked_infeasible(found: Certificate, timer: Timer, executor: Executor | None) -> Certificate:
    """The certificate that there is no rule; without time to check it, only that none is known."""
    watch, work = timer.budget.watch, sum(found.work.values())

    def say(text: str) -> None:
        if watch is not None:
            watch(Event(timer.seconds, 0.0, 0.0, work, f"checking: {text}"))

    go_on = _a_moment_longer(timer)
    verdict = check_on(executor, found.content(), found.instance, say, go_on=go_on)
    if verdict.accepted:
        return found
    if verdict.finished:
        raise CertificateFault(verdict.reason)
    claim, most = {**found.claim, "kind": "gain"}, gain_ceiling(found.instance)
    return replace(found, claim=claim, upper=most, level="attested", stop=Stop.TIME)


def _a_moment_longer(timer: Timer) -> Callable[[], bool]:
    """Whether there is time to go on: also for a moment after the limit, or after Ctrl-C."""
    over: list[float] = []

    def go_on() -> bool:
        if timer.left > 0:
            return True
        if not over:
            over.append(timer.seconds)
        return timer.seconds - over[0] <= MOMENT

    return go_on


def check_on(
    executor: Executor | None,
    certificate: str | Path | dict[str, Any],
    instance: Instance | str | Path | None = None,
    watch: Callable[[str], None] | None = None,
    seconds: float = math.inf,
    go_on: Callable[[], bool] | None = None,
) -> Verdict:
    """`check` by the workers of an executor; here if there is none, or if it is lost."""
    began = time.monotonic()

    def left() -> float:
        return max(0.0, seconds - (time.monotonic() - began))

    if executor is not None:
        workers = ExecutorPool(executor)

        def waiting() -> bool:
            return left() > 0 and (go_on is None or go_on())

        wait = partial(each, workers, workers.slots, go_on=waiting)
        try:
            return check_certificate(certificate, instance, watch, seconds, wait, go_on)
        except ExecutorLost as error:
            if watch is not None:
                watch(f"the workers were lost ({error}); once more, without them")
    return check_certificate(certificate, instance, watch, left(), None, go_on)


# ------------------------------------------------------------------ density at η


def certify_density(
    sample: Instance | Geometry | str | Path, eta: float, budget: Budget | None = None
) -> Certificate:
    """The densest mechanism at η, with a proof: what `mipmech oracle --out` writes.

    Parameters
    ----------
    sample : Instance, Geometry, str or Path
        The sample, or its file.
    eta : float
        η, the quality gained per unit of distance moved.
    budget : Budget, optional
        Limits on time, threads and nodes.
    """
    from mipmech.oracles.cells.engine import density_search  # noqa: PLC0415  (numba is slow to import)
    from mipmech.oracles.shared.facets import only_slices  # noqa: PLC0415
    from mipmech.oracles.shared.slices import slice_at  # noqa: PLC0415

    geometry = geometry_of(sample)
    if geometry.demands is not None:
        said = "are not known to certificates at η; leave them out, or certify the gain"
        raise InputError(said, field="requirements")
    only_slices(geometry, "a certificate at η")
    if infeasible(geometry, eta):
        raise InputError(
            f"is {eta}, but no direction has that η: there is nothing to certify", field="eta"
        )
    timer, trace = _traced(budget)
    clock, most = _search_timer(timer), _most_nodes(timer.budget)
    part = slice_at(geometry, eta)
    axes = part.turn.T if geometry.p_norm == 0 else np.vstack([part.towards, part.turn.T])
    unit = masses(geometry.instance.weights[part.agents]).unit

    def made(stop: Stop) -> Certificate:
        assert best.recount is not None
        return Certificate(
            geometry.instance, {"kind": "density", "eta": eta, "band": geometry.band}, best.recount,
            best.recount.density, round_up(min(Fraction(1), Fraction(search.upper) * unit)), 1e-6,
            "proved", "cells", stop, timer.seconds, {"nodes": search.nodes},
            cells_proof(geometry, axes @ geometry.basis, search),
        )  # fmt: skip

    with timer.listening(), clock.listening():
        search, best, stop = density_search(geometry, eta, clock, most, keep=True)
        again = partial(search.run, timer.budget.threads, most)
        found = _in_time(timer, clock, stop, again, made)
    return replace(found, seconds=timer.seconds, events=tuple(trace.events))
