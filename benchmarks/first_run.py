"""What the first run costs, when nothing is compiled yet, and how fast the compiled search is.

    python benchmarks/first_run.py [--against FOLDER]

Processor time of whole commands, in new processes, because other work disturbs it least. With
``--against``, the same for another copy of the source (an older commit, say), and ratios to it.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from asking import ratio, table

HERE = Path(__file__).resolve().parent.parent
REPEAT = 3
FIRST = ["-m", "mipmech", "certify", "instances/real/satgpa-view.json", "--gap", "1e-4"]
# What is searched: family, agents, k, nodes; at η = 0.6‖p‖, the density if that is said.
CASES = {
    "gain, k = 3, m = 1000": ("gaussian-mixture", 1000, 3, 60_000, False),
    "gain, k = 4, m = 200": ("uniform-ball", 200, 4, 200_000, False),
    "gain, k = 5, m = 60": ("gaussian-mixture", 60, 5, 300_000, False),
    "gain, k = 6, m = 50": ("gaussian-mixture", 50, 6, 300_000, False),
    "gain, k = 3, m = 100,000": ("gaussian-mixture", 100_000, 3, 2_000, False),
    "density at η, k = 6, m = 80": ("gaussian-mixture", 80, 6, 300_000, True),
}
SEARCH = """
import math, sys, time
from mipmech import Budget, make_instance
from mipmech.model import reduce
from mipmech.oracles.cells.engine import GainSearch, density_search
family, agents, rank, nodes, density = eval(sys.argv[1])
geometry = reduce(make_instance(family, agents, rank, seed=1))
GainSearch(reduce(make_instance("ties", 12, 2, seed=1)), Budget().start(), gap=0.5).run()
began = time.process_time()
if density:
    search = density_search(geometry, 0.6 * geometry.p_norm, Budget().start(), nodes)[0]
    found = search.nodes, search.best
else:
    whole = GainSearch(geometry, Budget().start(), gap=1e-6)
    whole.run(nodes)
    found = whole.search.nodes, float(whole.lower)
print(found[0], time.process_time() - began, *found[1:])
"""


def spent(source: Path, cache: str, *arguments: str) -> tuple[float, str]:
    """Processor seconds of a process, and what it printed."""
    known = {**os.environ, "PYTHONPATH": str(source), "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-P", *arguments]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command, env=known, cwd=HERE, stdout=subprocess.PIPE, text=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def measured(sources: list[Path]) -> list[dict[str, tuple[float, str]]]:
    """For every copy of the source, processor seconds or nodes per second, and what was found.

    The copies take turns, since how fast a shared machine is changes with time.
    """
    figures: list[dict[str, tuple[float, str]]] = [{} for _ in sources]
    with tempfile.TemporaryDirectory() as folder:
        caches = [f"{folder}/{place}" for place in range(len(sources))]
        turns = list(zip(sources, caches, figures, strict=True))
        for turn in range(REPEAT):
            for source, cache, own in turns:
                took = spent(source, f"{cache}-{turn}", *FIRST)[0], ""
                own["first run"] = min(own.get("first run", took), took)
        for _ in range(REPEAT):
            for source, cache, own in turns:
                took = spent(source, f"{cache}-0", *FIRST)[0], ""
                own["second run"] = min(own.get("second run", took), took)
        for name, case in CASES.items():
            for _ in range(REPEAT):
                for source, cache, own in turns:
                    said = spent(source, f"{cache}-0", "-c", SEARCH, repr(case))[1]
                    nodes, seconds, best = said.split()
                    rate = int(nodes) / float(seconds), f"{int(nodes):,} nodes, {float(best):.9g}"
                    own[name] = max(own.get(name, rate), rate)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--against", type=Path, help="the folder of another copy of the source")
    chosen = parser.parse_args()
    others = [] if chosen.against is None else [chosen.against.resolve()]
    now, *then = measured([HERE, *others])
    rows = []
    for name, (figure, found) in now.items():
        seconds = name in ("first run", "second run")
        row = [name, f"{figure:,.1f} s" if seconds else f"{figure:,.0f} nodes/s", found]
        for old in then:
            before, found_before = old[name]
            row.append(ratio(figure, before) if seconds else ratio(before, figure))
            row.append("same" if found == found_before else found_before)
        rows.append(row)
    head = ["", "processor time", "found", *(["times as fast", "found there"] if then else [])]
    table("The first run, and the search afterwards", head, rows)


if __name__ == "__main__":
    main()
