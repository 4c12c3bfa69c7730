"""Batches of solver-backed jobs that lose nothing.

A plan (`plan`) names instances and tasks; its jobs (`jobs`) are done by workers (`tasks`), and what
becomes of them is kept in a run's folder (`folder`, `journal`). Killed at any moment and started
again, a run does what is missing and nothing twice (`runner`). `docs/batches.md` is the guide.
"""

from mipmech.studies.batch.bench import bench
from mipmech.studies.batch.export import export
from mipmech.studies.batch.folder import Records, RunFolder
from mipmech.studies.batch.jobs import Expansion, Job, expand
from mipmech.studies.batch.merge import merge
from mipmech.studies.batch.plan import Plan
from mipmech.studies.batch.runner import Progress, Summary
from mipmech.studies.batch.status import Status, status

__all__ = [
    "Expansion",
    "Job",
    "Plan",
    "Progress",
    "Records",
    "RunFolder",
    "Status",
    "Summary",
    "bench",
    "expand",
    "export",
    "merge",
    "status",
]
