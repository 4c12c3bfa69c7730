"""Prove what is known of the best gain on every instance, or prove it again.

    python instances/certify.py            certify what `known.json` does not know yet, and write it
    python instances/certify.py --check    `make known`: certify everything again and compare

The small hand-made files (tiny, and Example 1) have values of their own, by hand or brute force;
they are certified all the same under --check.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from instances.build import HERE, KNOWN, LARGE  # noqa: E402
from mipmech import Budget, Certificate, Instance, Known, certify, make_instance  # noqa: E402
from mipmech.exact import round_down  # noqa: E402
from mipmech.workers import cores  # noqa: E402

GAP = 1e-3
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
    return certify(instance, gap=GAP, budget=Budget(seconds, cores()))


def agrees(found: Certificate, known: Known) -> bool:
    """Whether a new certificate and what is known can both be true, and the new is as good."""
    return verdict_on(found, known) == "agrees"


def verdict_on(found: Certificate, known: Known) -> str:
    """Whether the two can both be true, and whether the new one is as good."""
    if found.upper < known.lower * (1 - ROOM) or float(found.lower) > known.upper * (1 + ROOM):
        return "DISAGREES"
    if found.gap > GAP and "; open: " not in known.how:
        return "not closed in time; what is known may be true"
    return "agrees"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="certify everything again")
    parser.add_argument("--seconds", type=float, default=240.0, help="for each instance")
    options = parser.parse_args()
    known = json.loads(KNOWN.read_text()) if KNOWN.exists() else {}
    wrong = left = 0
    for instance in library():
        entry = known.get(instance.digest)
        stated = instance.known or (Known(*entry["gain"], entry["how"]) if entry else None)
        if stated is not None and not options.check:
            continue
        found = certified(instance, options.seconds)
        verdict = "new"
        if stated is not None:
            verdict = verdict_on(found, stated)
            wrong += verdict == "DISAGREES"
            left += verdict.startswith("not closed")
        print(
            f"{instance.name:32} m={instance.size:<5} k={instance.view.rank}"
            f" {float(found.lower):.6g} to {found.upper:.6g}, gap {found.gap:.1e},"
            f" {found.seconds:.1f} s: {verdict}",
            flush=True,
        )
        if stated is None:
            known[instance.digest] = {
                "name": instance.name,
                "gain": [round_down(found.lower), found.upper],
                "how": how(found, options.seconds),
            }
            KNOWN.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n")
    shown = f"{wrong} disagree, {left} not closed in time (--seconds gives more)"
    print(shown if options.check else f"known.json: {len(known)} instances")
    return int(wrong + left > 0)


if __name__ == "__main__":
    sys.exit(main())
