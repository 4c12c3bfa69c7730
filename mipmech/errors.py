"""The exception for bad input: the one error that is the user's to fix."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path


class InputError(ValueError):
    """Bad input, with its location and the remedy.

    The command line prints it as one message and exits with status 2; under ``--json`` it becomes
    ``{"error": {"file", "field", "row", "message"}}``.

    Parameters
    ----------
    message : str
        What is wrong and what to do about it, to be read after the field's name.
    file : str or Path, optional
    field : str, optional
    row : int, optional
        The row of a table, from 0.
    line : int, optional
        The line of the file that the row is on, from 1: shown in its stead.

    Examples
    --------
    >>> print(InputError("is missing; give m rows of n numbers", file="a.json", field="agents"))
    a.json: agents: is missing; give m rows of n numbers
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | Path | None = None,
        field: str | None = None,
        row: int | None = None,
        line: int | None = None,
    ) -> None:
        self.message = message
        self.file = None if file is None else str(file)
        self.field = field
        self.row = row
        self.line = line
        super().__init__(message)

    def __str__(self) -> str:
        place = [self.file] if self.file else []
        if self.field is not None:
            at = "" if self.row is None else f", row {self.row}"
            place.append(self.field + (at if self.line is None else f", line {self.line}"))
        return ": ".join([*place, self.message])

    def located(self, file: str | Path) -> InputError:
        """The same error, with the file named if it was not known where it arose.

        Parameters
        ----------
        file : str or Path
            The file.
        """
        return InputError(
            self.message, file=self.file or file, field=self.field, row=self.row, line=self.line
        )

    def to_dict(self) -> dict[str, dict[str, str | int | None]]:
        """The object printed under ``--json``."""
        keys = ("file", "field", "row", "message")
        return {"error": {key: getattr(self, key) for key in keys}}


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint to append to a message about an unknown word; empty without a close match.

    >>> did_you_mean("qualty", ["quality", "cost"])
    " (did you mean 'quality'?)"
    """
    by_case = {k.casefold(): k for k in known}
    near = get_close_matches(word[:100].casefold(), by_case, n=1)
    return f" (did you mean {by_case[near[0]]!r}?)" if near else ""


def shorten(value: object, width: int = 60) -> str:
    """A value as it may appear in a message: one line, never longer than ``width``.

    >>> shorten("x" * 1000, 12)
    "'xxxxxxx..."
    """
    # A value from a file may be ten megabytes long: cut it before repr, not after.
    text = repr(value[: 2 * width] if isinstance(value, str) else value)
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= width else text[: width - 3].rstrip() + "..."
