"""Files that are written once: all of them or none, on disk before going on, never replacing one.

Used wherever keys are made: whoever overwrites a key has lost it.
"""

import contextlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dppp.errors import InputError

SECRET = 0o600
PUBLIC = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """A file to be: its name in the folder, its bytes, and who may read it."""

    name: str
    data: bytes = field(repr=False)
    mode: int = SECRET


def refuse_to_overwrite(folder: Path, names: Iterable[str]) -> None:
    """Say so before any work is done."""
    there = [name for name in names if (folder / name).exists()]
    if there:
        raise InputError(
            f"{there[0]} is in the folder {folder} already, and nothing is overwritten",
            hint="choose an empty folder",
        )


def write_new_files(folder: Path, files: Sequence[NewFile]) -> None:
    """Make the folder if it is missing and all files in it; on any failure remove them again."""
    refuse_to_overwrite(folder, [file.name for file in files])
    written: list[Path] = []
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for file in files:
            _write_new(folder / file.name, file.data, file.mode, written)
        sync_folder(folder)
    except BaseException as error:
        for path in written:
            with contextlib.suppress(OSError):
                path.unlink()
        if isinstance(error, OSError):
            raise InputError(
                f"cannot write to {folder}: {error.strerror}", hint="choose another"
            ) from error
        raise


def read_file(path: Path, *, hint: str = "check the path") -> bytes:
    """The bytes of a file, or one clear line."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", hint=hint) from error


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_new(path: Path, data: bytes, mode: int, written: list[Path]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    written.append(path)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
