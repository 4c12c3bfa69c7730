"""Results that are one line."""

from __future__ import annotations

from mipmech.text import printable


def tell(line: str) -> None:
    """Print a line."""
    print(printable(line))
