"""Reading and writing the files of a run; an error names the file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from mipmech import files, untrusted
from mipmech.errors import InputError
from mipmech.tolerances import LARGEST_RUN_FILE


def write_json(file: Path, content: dict[str, Any]) -> None:
    """Replace a file by one that holds this object."""
    files.write(file, json.dumps(content, ensure_ascii=False).encode())


def read_json(file: Path) -> dict[str, Any]:
    """The object in a file."""
    with files.faults("cannot be read", file):
        try:
            return untrusted.json_object(file, LARGEST_RUN_FILE)
        except FileNotFoundError:
            raise InputError("is missing", file=file) from None


def sync_folder(folder: Path) -> None:
    """Bring the names of new files to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
