"""Reading and writing the files of a run; an error names the file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from mipmech import files
from mipmech.errors import InputError


def write_json(file: Path, content: dict[str, Any]) -> None:
    """Replace a file by one that holds this object."""
    files.write(file, json.dumps(content, ensure_ascii=False).encode())


def read_json(file: Path) -> dict[str, Any]:
    """The object in a file."""
    with files.faults("cannot be read", file):
        if not file.is_file():
            raise InputError("is missing, or not a plain file", file=file)
        text = files.read_text(file)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON: {error}", file=file) from None
    if not isinstance(content, dict):
        raise InputError("is not one JSON object", file=file)
    return content


def sync_folder(folder: Path) -> None:
    """Bring the names of new files to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
