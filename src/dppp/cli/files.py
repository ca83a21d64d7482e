"""Files that commands read and write."""

import json
from pathlib import Path
from typing import Any

from dppp.errors import InputError


def read_json_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{path} is not a JSON file: {error}") from error
    if not isinstance(data, dict):
        raise InputError(f"{path} holds no JSON object")
    return data


def read_bytes(path: Path) -> bytes:
    """The bytes of a file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def write_bytes(path: Path, data: bytes) -> Path:
    """Write a file, its folder too, and return where it is."""
    make_folder(path.parent)
    try:
        path.write_bytes(data)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    return path


def make_folder(path: Path) -> None:
    """Make a folder unless it is there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {path}: {error.strerror}") from error
