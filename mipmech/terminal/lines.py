"""Results that are one line."""

from __future__ import annotations


def tell(line: str) -> None:
    """Print a line."""
    print(line)
