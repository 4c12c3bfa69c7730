"""Batches of solver-backed jobs that lose nothing.

A plan (`plan`) names instances and tasks; its jobs (`jobs`) are done by workers (`tasks`), and what
becomes of them is kept in a run's folder (`folder`, `journal`, `records`). Killed at any moment and
started again, a run does what is missing and nothing twice (`runner`). `docs/batches.md` is the
guide.
"""

from mipmech.studies.batch.bench import run_plan
from mipmech.studies.batch.export import export_run
from mipmech.studies.batch.folder import RunFolder
from mipmech.studies.batch.jobs import Expansion, Job, expand
from mipmech.studies.batch.merge import merge_runs
from mipmech.studies.batch.plan import Plan
from mipmech.studies.batch.records import Record, Records
from mipmech.studies.batch.runner import Progress, RunSummary
from mipmech.studies.batch.status import RunStatus, status_of

__all__ = [
    "Expansion",
    "Job",
    "Plan",
    "Progress",
    "Record",
    "Records",
    "RunFolder",
    "RunStatus",
    "RunSummary",
    "expand",
    "export_run",
    "merge_runs",
    "run_plan",
    "status_of",
]
