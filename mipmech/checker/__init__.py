"""The independent checker of certificates: numpy, the standard library, the instance reader."""

from mipmech.checker.verdict import Verdict, check

__all__ = ["Verdict", "check"]
