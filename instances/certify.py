"""Prove what is known of the best gain and the densest margins of every instance, or again.

    python instances/certify.py            certify what `known.json` does not know yet, and write it
    python instances/certify.py --check    `make known`: certify everything again and compare

The small hand-made files (tiny, and Example 1) have gains of their own, by hand or brute force;
they are certified all the same under --check. Densities are those at the η of docs/oracles.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from instances.build import HERE, KNOWN, LARGE, known_of  # noqa: E402
from mipmech import (  # noqa: E402
    Budget,
    Certificate,
    Instance,
    certify,
    certify_density,
    make_instance,
)
from mipmech.model import Known, reduce  # noqa: E402
from mipmech.oracles.base import infeasible  # noqa: E402
from mipmech.rationals import round_down  # noqa: E402
from mipmech.workers.processes import cores  # noqa: E402

GAP = 1e-3
# η as fractions of ‖P w_f‖.
FRACTIONS = (0.9, 0.6, 0.3)
# Two machines may round differently; certificates are compared with this much room.
ROOM = 1e-6


def library() -> Iterator[Instance]:
    """Every instance of the library, stored or seeded."""
    for path in sorted(HERE.glob("*/*.json")):
        if path.parent.name != "large":
            yield Instance.load(path)
    for member in LARGE:
        yield make_instance(*member)


def how(found: Certificate, seconds: float) -> str:
    """Where the interval comes from, in words."""
    said = f"mipmech certify --gap {GAP:g}, {found.level} and checked"
    if found.gap > GAP:
        said += f"; open: a gap of {found.gap:.0%} is left after {seconds:g} s"
    return said


def certified(instance: Instance, seconds: float) -> Certificate:
    """The greatest gain."""
    return certify(instance, gap=GAP, budget=Budget(seconds, cores()))


def certified_density(instance: Instance, fraction: float, seconds: float) -> Certificate:
    """The greatest density at η = fraction·‖P w_f‖."""
    geometry = reduce(instance)
    return certify_density(geometry, fraction * geometry.p_norm, Budget(seconds, cores()))


def verdict_on_gain(found: Certificate, known: Known) -> str:
    """Whether a new certificate and what is known can both be true, and the new is as good."""
    return _verdict(found, known.lower, known.upper, closed="; open: " not in known.how)


def verdict_on_density(found: Certificate, lower: float, upper: float) -> str:
    """The same for a density."""
    return _verdict(found, lower, upper, closed=lower >= upper * (1 - ROOM))


def _verdict(found: Certificate, lower: float, upper: float, *, closed: bool) -> str:
    if found.upper < lower * (1 - ROOM) or float(found.lower) > upper * (1 + ROOM):
        return "DISAGREES"
    if found.gap > GAP and closed:
        return "not closed in time; what is known may be true"
    return "agrees"


class Proofs:
    """What was proved so far, and how it compares with what was known."""

    def __init__(self, seconds: float, density_seconds: float, check: bool) -> None:
        self.seconds = seconds
        self.density_seconds = density_seconds
        self.check = check
        self.known: dict[str, Any] = json.loads(KNOWN.read_text()) if KNOWN.exists() else {}
        self.wrong = self.left = 0

    def tell(self, instance: Instance, what: str, found: Certificate, verdict: str) -> None:
        """A line for people, and the count."""
        self.wrong += verdict == "DISAGREES"
        self.left += verdict.startswith("not closed")
        print(
            f"{instance.name:32} m={instance.size:<5} k={instance.view.rank} {what}"
            f" {float(found.lower):.6g} to {found.upper:.6g}, gap {found.gap:.1e},"
            f" {found.seconds:.1f} s: {verdict}",
            flush=True,
        )

    def gain(self, instance: Instance) -> None:
        """The greatest gain of an instance."""
        entry = self.known.get(instance.digest)
        stated = instance.known or (known_of(entry) if entry else None)
        if stated is not None and not self.check:
            return
        found = certified(instance, self.seconds)
        if stated is not None:
            self.tell(instance, "gain", found, verdict_on_gain(found, stated))
            return
        self.tell(instance, "gain", found, "new")
        self.known[instance.digest] = {
            "name": instance.name,
            "gain": [round_down(found.lower), found.upper],
            "how": how(found, self.seconds),
        }
        self.write()

    def densities(self, instance: Instance) -> None:
        """The greatest densities of an instance; not of those that are known by hand."""
        entry = self.known.get(instance.digest)
        if entry is None:
            return
        stated = {at: (lower, upper) for at, lower, upper in entry.get("densities", [])}
        geometry = reduce(instance)
        if geometry.norm != "l2":
            return  # the rates of l1 and linf are those of their facets
        for fraction in FRACTIONS:
            if infeasible(geometry, fraction * geometry.p_norm):
                continue  # with one dimension seen, η is ±‖P w_f‖
            if fraction in stated and not self.check:
                continue
            found = certified_density(instance, fraction, self.density_seconds)
            what = f"density at {fraction:g}"
            if fraction in stated:
                self.tell(instance, what, found, verdict_on_density(found, *stated[fraction]))
                continue
            self.tell(instance, what, found, "new")
            row = [fraction, round_down(found.lower), min(1.0, found.upper)]
            entry.setdefault("densities", []).append(row)
            self.write()

    def write(self) -> None:
        """Keep what there is."""
        KNOWN.write_text(json.dumps(self.known, indent=1, ensure_ascii=False) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="certify everything again")
    parser.add_argument("--seconds", type=float, default=240.0, help="for each gain")
    parser.add_argument("--density-seconds", type=float, default=900.0, help="for each density")
    options = parser.parse_args()
    proofs = Proofs(options.seconds, options.density_seconds, options.check)
    for instance in library():
        proofs.gain(instance)
        proofs.densities(instance)
    shown = f"{proofs.wrong} disagree, {proofs.left} not closed in time (--seconds gives more)"
    print(shown if options.check else f"known.json: {len(proofs.known)} instances")
    return int(proofs.wrong + proofs.left > 0)


if __name__ == "__main__":
    sys.exit(main())
