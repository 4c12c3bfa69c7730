"""Check a certificate, trusting no other program.

The checker shares only the instance reader with the engines that make certificates; otherwise it
needs numpy and the standard library. `docs/proof-format.md` says what a certificate holds and why
the inequalities below are true, in enough detail to write another checker. In order:

1. the file is complete, of a known kind, and belongs to this instance (`content`);
2. the witness is a rule that the planner can apply, and gains exactly what is claimed: rationals
   (`witness`);
3. the frame, an orthonormal basis of what the planner sees, is as good as floats can be: its
   distance from an exact one is bounded in rationals (`ExactInstance.frame_error`);
4. the agents in that frame, with a bound on everything that was rounded on the way (`agents`);
5. the leaves of the tree cover every direction and every threshold that matters (`tree`);
6. no rule in any leaf does better than the upper bound claimed (`leaves`, `bounds`).

Float arithmetic is IEEE double with rounding to nearest; every sum of floats is followed by a
stated bound of its error.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from mipmech.checker.agents import Agents
from mipmech.checker.content import (
    Look,
    Rejected,
    Unfinished,
    number_at,
    numbers,
    object_at,
    read,
    reject,
    text_at,
)
from mipmech.checker.demanded import ClaimedRequirements
from mipmech.checker.exact import at_least, at_most, down, root
from mipmech.checker.leaves import Each, highest_bound
from mipmech.checker.lower import witness_value
from mipmech.checker.tree import Tree
from mipmech.checker.witness import ExactInstance
from mipmech.model.instance import Instance

FORMAT = "mipmech/certificate@1"


@dataclass(frozen=True)
class Verdict:
    """What a check found.

    Attributes
    ----------
    accepted : bool
        Whether everything that the certificate claims was verified (at its level).
    finished : bool
        Whether the check came to an end. If it was ended before, nothing is refuted.
    reason : str or None
        Why not; None if accepted.
    verified : tuple of str
        What was verified, in words.
    claim : str or None
        In words; η and the band in as many digits as tell their floats apart.
    eta, band : float or None
        Of a claim about density: just these floats. None for the gain.
    level : str or None
        "proved" if the bound was verified, whatever the certificate calls it; else what it claims.
    lower : Fraction or None
    upper : float or None
        The interval claimed for the greatest gain (or density).
    leaf_bound : float or None
        What was established: the greatest bound of any leaf, or ‖P w_f‖Σω_iℓ_i if that is smaller.
        At most ``upper`` if accepted as proved. None if not computed, or not for all leaves, or if
        there are none: the bounds of a solver are only its word.
    leaves : int
    seconds : float
    """

    accepted: bool
    finished: bool
    reason: str | None
    verified: tuple[str, ...]
    claim: str | None
    eta: float | None
    band: float | None
    level: str | None
    lower: Fraction | None
    upper: float | None
    leaf_bound: float | None
    leaves: int
    seconds: float

    def __bool__(self) -> bool:
        return self.accepted

    def __repr__(self) -> str:
        if not self.accepted:
            status = "rejected" if self.finished else "unfinished"
            return f"Verdict({status}: {self.reason})"
        return f"Verdict(accepted, {self.level}: {self.claim}; {self.leaves} leaves)"

    def to_dict(self) -> dict[str, Any]:
        """The object printed under ``--json``; bounds are rounded outward."""
        return {
            "status": "accepted" if self.accepted else "rejected",
            "finished": self.finished,
            "reason": self.reason,
            "claim": self.claim,
            "eta": self.eta,
            "band": self.band,
            "level": self.level,
            "lower": None if self.lower is None else down(self.lower),
            "upper": self.upper,
            "leaf_bound": self.leaf_bound,
            "leaves": self.leaves,
            "verified": list(self.verified),
            "seconds": self.seconds,
        }


class InstanceNotFound(FileNotFoundError):
    """The instance is not where its certificate says."""


def check(
    certificate: str | Path | dict[str, Any],
    instance: Instance | str | Path | None = None,
    watch: Callable[[str], None] | None = None,
    seconds: float = math.inf,
    each: Each | None = None,
    go_on: Callable[[], bool] | None = None,
) -> Verdict:
    """Check a certificate against its instance.

    Whatever is wrong with the certificate's content makes it rejected.

    Parameters
    ----------
    certificate : str, Path or dict
        The file, or its content.
    instance : Instance, str or Path, optional
        By default the file named in the certificate, relative to it.
    watch : callable, optional
        Receives a line of progress now and then.
    seconds : float
        The check gives up after this time.
    each : callable, optional
        Called like the builtin map for the parts of the tree; it may have them checked side by side
        or elsewhere, and the verdict is the same to the last bit.
    go_on : callable, optional
        Asked many times a second, in every phase; the check gives up when it returns False.

    Raises
    ------
    InputError, OSError
        If a file cannot be read; `InstanceNotFound` if there is no instance where the certificate
        says.
    """
    began = time.monotonic()
    progress = ""

    def tell(text: str) -> None:
        nonlocal progress
        progress = f" ({text})"
        if watch is not None:
            watch(text)

    def look() -> None:
        if time.monotonic() - began > seconds:
            raise Unfinished(f"not finished within {seconds:g} s")
        if go_on is not None and not go_on():
            raise Unfinished("ended before it was finished")

    state = _State([], tell, look)
    reason, finished = None, True
    try:
        _check(certificate, instance, state, each)
    except Rejected as error:
        reason = str(error)
    except Unfinished as error:
        reason, finished = f"{error}: no fault so far{progress}", False
    except RecursionError:
        reason = "the certificate is nested too deeply"
    return Verdict(
        reason is None, finished, reason, tuple(state.said), state.claim, state.eta, state.band,
        state.level, state.lower, state.upper, state.leaf_bound, state.leaves,
        time.monotonic() - began,
    )  # fmt: skip


@dataclass
class _State:
    """What is known so far."""

    said: list[str]
    watch: Callable[[str], None]
    look: Look
    claim: str | None = None
    eta: float | None = None
    band: float | None = None
    level: str | None = None
    lower: Fraction | None = None
    upper: float | None = None
    leaf_bound: float | None = None
    leaves: int = 0


def _check(
    source: str | Path | dict[str, Any], given: Any, state: _State, each: Each | None
) -> None:
    content, folder = _open(source)
    state.look()
    instance = _instance(content, given, source, folder)
    state.look()
    state.said.append(f"the instance has the digest that is claimed ({instance.digest[:16]}…)")
    exact = ExactInstance(instance, state.look)
    claim = _claim(content, exact, state)
    if claim.demanded.zeros and exact.columns is not None:
        # Features whose weights must be 0 might as well be hidden.
        exact = ExactInstance(instance, state.look, claim.demanded.zeros)
    if claim.kind == "density" and exact.norm != "l2":
        reject("a claim about the density at η is for costs with the norm l2")
    if claim.kind == "infeasible":
        _nothing_claimed(content)
    else:
        _bounds(content, exact, claim, state)
    proof = object_at(content, "proof")
    kind = text_at(proof, "kind", "proof.")
    if kind == "solver" and state.level == "attested":
        _regions(proof, exact, claim, state)
    elif kind == "cells@1":
        _cells(proof, exact, claim, state, each)
    else:
        reject(f"a proof of the kind {kind!r} does not prove a bound")


def _cells(
    proof: dict[str, Any], exact: ExactInstance, claim: _Claim, state: _State, each: Each | None
) -> None:
    """What a tree of cells establishes; proved if that is what is claimed, or better."""
    established = _ceiling(exact, claim, state)
    if established > 0:  # else P w_f is exactly 0, and there is nothing to show
        valued = claim.kind != "infeasible"
        agents = Agents(exact, proof, claim.eta, claim.band, claim.demanded, valued)
        if exact.norm == "l2":
            error = at_most(agents.frame_error, 2, "e")
            said = f"the frame is an orthonormal basis of what the planner sees, to within {error}"
        else:
            said = "the frame is what the planner sees, times the prices"
        state.said.append(said)
        tree = Tree(proof, agents.dimension, state.look)
        state.leaves = tree.leaves
        state.said.append(
            f"{tree.leaves:,} leaves cover every direction and every threshold that matters"
        )
        bound = math.inf
        if established > claim.upper:
            strict = state.level == "proved"  # else what the leaves do carry is of interest
            bound = highest_bound(agents, tree, claim.upper, state.watch, state.look, each, strict)
        if claim.kind == "infeasible":
            established = bound
        elif bound <= established:
            established = max(bound, 0.0)
            state.said.append(
                f"no rule in any leaf{claim.which} has a {claim.kind} above {at_most(established)}"
            )
        elif claim.kind == "gain":
            state.said.append(
                f"no rule gains more than {exact.greatest} times the mean reach,"
                f" {at_most(established)};"
                " the leaves need not tell more"
            )
    if claim.kind == "infeasible":
        if established >= 0:
            reject("some leaf may have a rule that meets the requirements")
        state.level = "proved"
        state.said.append("no rule in any leaf meets the requirements")
        return
    state.leaf_bound = established
    if established <= claim.upper:
        state.level = "proved"
    elif state.level == "proved":
        reject(f"a leaf allows {established!r}, more than the claimed upper bound {claim.upper!r}")
    else:
        state.said.append(
            f"NOT verified: that no rule has a {claim.kind} above {at_most(claim.upper)}; this is"
            " what the search reported, and it was never checked"
        )


def _ceiling(exact: ExactInstance, claim: _Claim, state: _State) -> float:
    """What no rule exceeds, whatever the proof says: ‖P w_f‖Σω_iℓ_i; for density, 1."""
    if claim.kind in ("density", "infeasible"):
        return 1.0
    if exact.seen_square == 0:
        seen = "P w_f" if exact.norm == "l2" else exact.greatest
        state.said.append(f"{seen} is exactly 0: no rule on what the planner sees changes quality")
        return 0.0
    return exact.ceiling()


@dataclass(frozen=True)
class _Claim:
    """What is claimed; eta is None but for density, and upper is below 0 if there is no rule."""

    kind: str
    demanded: ClaimedRequirements
    eta: Fraction | None
    band: Fraction
    upper: float

    @property
    def which(self) -> str:
        """Which rules it is about, in words."""
        return " that meets the requirements" if self.demanded.given else ""


def _claim(content: dict[str, Any], exact: ExactInstance, state: _State) -> _Claim:
    claim = object_at(content, "claim")
    kind = text_at(claim, "kind", "claim.")
    if kind not in ("gain", "density", "infeasible"):
        reject(f"claim.kind is {kind!r}; expected gain, density or infeasible")
    demanded = ClaimedRequirements(claim.get("requirements"), exact)
    eta, band = None, Fraction(0)
    state.claim = "greatest gain over all rules on what the planner sees"
    if demanded.given:
        state.claim += " that meet the requirements"
    if kind == "density" and demanded.given:
        reject("a claim about the density at η has no requirements")
    if kind == "density":
        eta = Fraction(number_at(claim, "eta", "claim."))
        band = Fraction(number_at(claim, "band", "claim."))
        if not 0 <= band <= Fraction(1, 1000):
            reject("claim.band is not small")
        # Every digit: another η has another density.
        state.eta, state.band = float(eta), float(band)
        at = f"η = {state.eta!r} (to within {state.band!r} of ‖P w_f‖)"
        state.claim = f"greatest density of a rule with {at}"
    state.level = text_at(content, "level")
    if state.level not in ("proved", "attested"):
        reject(f"level is {state.level!r}; expected proved or attested")
    if kind == "infeasible":
        return _infeasible(demanded, state)
    state.upper = upper = number_at(content, "upper")
    if upper < 0:
        reject("upper is negative")
    if kind == "density" and upper > 1:
        reject("upper is above 1, the greatest possible density")
    return _Claim(kind, demanded, eta, band, upper)


def _infeasible(demanded: ClaimedRequirements, state: _State) -> _Claim:
    """The claim that no rule meets the requirements."""
    state.claim = "no rule on what the planner sees meets the requirements"
    if state.level != "proved":
        reject("that there is no rule is proved, or not claimed")
    # A threshold above everybody is no agent's end, and accepts nobody.
    if demanded.low <= 0:
        reject("a threshold above everybody meets the requirements: nobody is accepted")
    return _Claim("infeasible", demanded, None, Fraction(0), -1.0)


def _nothing_claimed(content: dict[str, Any]) -> None:
    """Without any rule, there are no bounds."""
    for key in ("witness", "lower", "upper", "gap"):
        if content.get(key) is not None:
            reject(f"{key} is given, but the claim is that there is no rule")


def _bounds(content: dict[str, Any], exact: ExactInstance, claim: _Claim, state: _State) -> None:
    """The lower bound, and the gap between the bounds."""
    state.lower = lower = witness_value(content, exact, claim.demanded, claim.eta, claim.band)
    upper = Fraction(claim.upper)
    gap = Fraction(number_at(content, "gap"))
    if not 0 <= gap <= 1:
        reject("the gap claimed is not between 0 and 1")
    if lower is None or lower < 0:  # no rule is known, or only one that does harm
        if gap < 1:
            reject("the gap claimed is smaller than that of the bounds")
    elif upper < lower:
        reject("upper is below the witness's value")
    elif gap * upper < upper - lower:
        reject("the gap claimed is smaller than that of the bounds")
    if lower is None:
        state.said.append("no rule that meets the requirements is claimed, only an upper bound")
        return
    if claim.demanded.given and content.get("witness") is not None:
        state.said.append("the witness meets the requirements, recomputed in rationals")
    state.said.append(
        f"the witness has a {claim.kind} of {at_least(lower)}, recomputed in rationals"
        if content.get("witness") is not None
        else f"the lower bound is {claim.kind} 0, which needs no witness"
    )


# ------------------------------------------------------------------ 1. the file


def seal(content: dict[str, Any]) -> str:
    """The checksum of a certificate: sha256 of its JSON without the seal, keys in order."""
    bare = {key: value for key, value in content.items() if key != "seal"}
    text = json.dumps(bare, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _open(source: str | Path | dict[str, Any]) -> tuple[dict[str, Any], Path | None]:
    folder = None
    content: Any = source
    if not isinstance(source, dict):
        folder = Path(source).parent
        content = read(Path(source))
    if not isinstance(content, dict):
        reject("the file is not one JSON object")
    if content.get("format") != FORMAT:
        reject(f"format is {content.get('format')!r}; this program reads {FORMAT!r}")
    try:
        whole = content.get("seal") == seal(content)
    except (TypeError, ValueError):
        whole = False
    if not whole:
        reject("the seal does not match: the file was changed or damaged after it was written")
    return content, folder


def _instance(content: dict[str, Any], given: Any, source: Any, folder: Path | None) -> Instance:
    named = object_at(content, "instance")
    if isinstance(given, Instance):
        instance = given
    elif given is not None:
        instance = Instance.load(given)
    else:
        path = text_at(named, "path", "instance.") if named.get("path") is not None else None
        if path is None or folder is None or not path.isprintable():
            reject("the certificate names no instance file; give the instance")
        if Path(path).is_absolute():
            raise InstanceNotFound(
                "it names its instance by an absolute path, which is not followed; name the file:"
                f" mipmech check {source} --instance FILE"
            )
        if not os.path.lexists(folder / path):
            raise InstanceNotFound(
                f"its instance is not at {folder / path}, where it should be; if either was moved:"
                f" mipmech check {source} --instance FILE"
            )
        return _claimed(folder / path, text_at(named, "digest", "instance."))
    if text_at(named, "digest", "instance.") != instance.digest:
        reject("the certificate is for another instance: the digests differ")
    return instance


def _claimed(file: Path, digest: str) -> Instance:
    """The instance of the digest, in a file that the certificate names.

    That may be any file of whoever checks; unless it is the instance, nothing is said of what is in
    it.
    """
    try:
        instance = Instance.load(file)
    except ValueError:
        instance = None
    if instance is None or instance.digest != digest:
        reject(
            "the certificate is for another instance: the file that it names does not hold one with"
            " the digest claimed; if another file does, give it by --instance"
        )
    return instance


# ------------------------------------------------------------------ attested bounds


def _regions(proof: dict[str, Any], exact: ExactInstance, claim: _Claim, state: _State) -> None:
    """An attested bound: intervals of η that cover [0, ‖P w_f‖], each bounded by a solver."""
    if claim.kind != "gain":
        reject("bounds attested by a solver exist for the gain only")
    regions = proof.get("regions")
    if not isinstance(regions, list):
        reject("an attested bound needs the regions that a solver has bounded")
    top = root(exact.seen_square)[1]
    reached, most = Fraction(0), 0.0
    for region in regions:
        if not isinstance(region, dict):
            reject("a region is not an object")
        low, high = numbers(region.get("eta"), (2,), "region.eta")
        if Fraction(low) > reached:
            reject(f"no region covers η = {float(reached):.9g}")
        reached = max(reached, Fraction(high))
        most = max(most, number_at(region, "at_most", "region."))
    if reached < top:
        reject(f"no region covers η from {float(reached):.9g} on")
    if state.lower is not None and most < state.lower:
        reject("the regions allow less than the witness gains")
    # This is a solver's word, and no bound of a leaf.
    if min(most, _ceiling(exact, claim, state)) > claim.upper:
        reject("a region allows more than the upper bound claimed")
    state.said.append(f"{len(regions)} intervals of η cover 0 to {exact.greatest}")
    state.said.append(
        f"NOT verified: that no rule in them gains more; this is what"
        f" {text_at(proof, 'solver', 'proof.')} reports"
    )
