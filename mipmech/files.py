"""Files: found beside others, and written whole.

An instance file may name another file, but only one beside it.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mipmech.errors import InputError, shorten

WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def beside(folder: Path, name: str) -> Path:
    """The file ``name`` in ``folder``, refused if it leads outside, by .. or by a link."""
    inside = folder.resolve()
    try:
        path = (inside / name).resolve()
        outside = not path.is_relative_to(inside) or Path(name).is_absolute()
        if outside:
            raise InputError(
                f"{shorten(name)} leads outside the instance's folder; put the file beside the"
                " instance and give its name alone",
                field="agents",
            )
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise InputError(
            f"there is no file {shorten(name)} beside the instance", field="agents"
        ) from None
    except (OSError, RuntimeError, ValueError) as error:  # too long, a loop of links, a zero byte
        raise InputError(f"cannot open {shorten(name)}: {reason(error)}", field="agents") from None
    if not stat.S_ISREG(mode):
        raise InputError(f"{shorten(name)} is not a plain file", field="agents")
    return path


def reason(error: BaseException) -> str:
    """Why a file could not be read, without the path (which the message names already)."""
    return (getattr(error, "strerror", None) or str(error)).lower()


def write(file: Path, data: bytes) -> None:
    """Replace a file in one step; through a link, the file that it leads to.

    Raises `InputError` if it cannot be written, or must not be replaced: a folder, a device, a file
    that is read-only.
    """
    with faults("cannot be written", file):
        place = _replaceable(file)
        handle, temporary = _new_beside(place)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, place)
        except BaseException:
            os.unlink(temporary)
            raise


def try_writing(file: Path) -> None:
    """Raise what `write` would raise, as far as that can be known before; leaves nothing behind."""
    with faults("cannot be written", file):
        handle, temporary = _new_beside(_replaceable(file))
        os.close(handle)
        os.unlink(temporary)


@contextmanager
def faults(what: str, file: Path, field: str | None = None) -> Iterator[None]:
    """Turn an `OSError` inside into an `InputError` that says what cannot be done, and why."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{what}: {reason(error)}", file=file, field=field) from error


def _replaceable(file: Path) -> Path:
    """The place that a path leads to, if what is there may be replaced."""
    place = file.resolve()
    if place.is_dir():
        raise InputError("is a folder; give the name of a file in it", file=file)
    if place.exists() and not place.is_file():
        raise InputError("is not a plain file, so it is not replaced; choose another", file=file)
    # Replacing asks only for a writable folder; but what somebody has protected stays.
    if place.exists() and not (place.stat().st_mode & WRITABLE and os.access(place, os.W_OK)):
        raise InputError("is read-only, so it is not replaced; choose another", file=file)
    return place


def _new_beside(file: Path) -> tuple[int, Path]:
    """A new file, open for writing, that can take the place of this one."""
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(6)}")
    return os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), temporary
