"""How fast batches are: what a job costs beside its work, and what a second worker is worth.

    python benchmarks/batch.py

Ratios within one run; machines are shared and noisy, so each figure is the best of several.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from mipmech.studies.batch import RunFolder, run_plan

TRIVIAL = """
format = "mipmech/plan@1"
[[instances]]
family = "ties"
agents = 12
seed = {{ from = 1, to = {instances} }}
[[tasks]]
task = "oracle"
oracle = "projection"
eta_fraction = 1
repetitions = 20
"""
BUSY = """
format = "mipmech/plan@1"
[limits]
seconds = 600
[[instances]]
family = "uniform-ball"
agents = 60
rank = 4
seed = { from = 1, to = 16 }
[[tasks]]
task = "certify"
gap = 1e-3
repetitions = 2
"""


def timed(text: str, workers: int) -> tuple[float, float, int]:
    """Seconds of a run, seconds of work in it, and jobs; without starting the workers."""
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder) / "plan.toml"
        plan.write_text(text)
        moments: list[float] = []
        summary = run_plan(plan, workers=workers, watch=lambda _: moments.append(time.monotonic()))
        assert summary.complete, summary
        records = list(RunFolder.open(plan.with_suffix(".run")).records().last.values())
        work = sum(record.seconds for record in records)
        # The first jobs load programs; time runs from the first record on.
        first = records[0].seconds
        return moments[-1] - moments[1], work - first, len(records) - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds

    print("What a job costs beside its work (1,000 trivial jobs, records on disk):\n")
    print("| workers | jobs | ms per job | of which work | overhead |")
    print("|---|---|---|---|---|")
    for workers in (1, 2):
        seconds, work, jobs = min(
            timed(TRIVIAL.format(instances=50), workers) for _ in range(rounds)
        )
        each, inside = 1e3 * seconds / jobs, 1e3 * work / jobs
        share = inside / workers
        print(f"| {workers} | {jobs + 1:,} | {each:.2f} | {share:.2f} | {each - share:.2f} ms |")

    print("\nWhat a second worker is worth (32 certificates, m = 60, k = 4):\n")
    print("| round | one worker | two workers | ratio |")
    print("|---|---|---|---|")
    for number in range(rounds):
        one, _, _ = timed(BUSY, 1)
        two, _, _ = timed(BUSY, 2)
        print(f"| {number + 1} | {one:.2f} s | {two:.2f} s | {one / two:.2f} |")


if __name__ == "__main__":
    main()
