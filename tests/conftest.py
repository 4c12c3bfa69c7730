from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Examples are fixed: a failure here is a failure everywhere. `make test-long` digs deeper.
settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    max_examples=75,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("fast", settings.get_profile("fixed"), max_examples=20)
settings.register_profile("long", settings.get_profile("fixed"), max_examples=2000)
settings.load_profile("fixed")

ROOT = Path(__file__).parent.parent


def seeds(always: int, long: int) -> list[Any]:
    """The seeds of a campaign: the first few for every run, the others for `make test-long`."""
    return [*range(always), *(pytest.param(s, marks=pytest.mark.long) for s in range(always, long))]


# Files most of whose tests start programs, run jobs or build pages.
SLOW_FILES = {
    "report/test_batch.py", "report/test_comparison.py", "studies/test_batch.py",
    "studies/test_compare.py", "studies/test_compare_kill.py", "studies/test_own_oracles.py",
    "test_readme.py",
}  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and str(item.path.relative_to(here)) in SLOW_FILES:
            item.add_marker(pytest.mark.slow)


def pytest_configure(config: pytest.Config) -> None:
    """Compile the engine once, before processes that test side by side start.

    Code that two of them compile at the same time may differ in how sums are associated.
    """
    # Started in the background, a shell lets its programs ignore Ctrl-C; tests send it on purpose.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        code = "import mipmech; mipmech.certify(mipmech.make_instance('ties', 12, 3, seed=1))"
        subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How many files of each kind were fuzzed (`tests/fuzz`), over all processes."""
    counts: Counter[str] = Counter()
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if name == "fuzzed":
                counts[value[0]] += value[1]
    if counts:
        told = ", ".join(f"{number:,} {kind}" for kind, number in counts.items())
        terminalreporter.write_line(f"fuzzed: {told}")


@pytest.fixture
def root() -> Path:
    return ROOT
