from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Seeds are fixed: a failure here is a failure everywhere. `make test-long` digs deeper.
settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("long", settings.get_profile("fixed"), max_examples=2000)
settings.load_profile("fixed")

ROOT = Path(__file__).parent.parent


@pytest.fixture
def root() -> Path:
    return ROOT
