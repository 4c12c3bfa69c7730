"""What became of the picture of a result."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Drawn(NamedTuple):
    """Where a picture is; or why there is none, if one was wanted."""

    file: Path | None = None
    missing: str | None = None


# No picture was wanted.
UNASKED = Drawn()
