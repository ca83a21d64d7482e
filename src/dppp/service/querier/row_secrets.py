"""A querier's row secrets, in a file of its own: who has it knows which rows a receipt is about.

Used by `dppp query`, which asks under the last of them, and by `dppp verify`. A line each, in hex,
mode 0600. The teachers answer a row once under each: to ask afresh, or again after a batch was
aborted, takes a new secret. The old ones stay, and what was released under them stays free.
"""

import os
from pathlib import Path

from dppp.errors import InputError, KeyMaterialError
from dppp.protocol.messages import TaskId
from dppp.protocol.rows import ROW_KEY_BYTES, make_row_secret, row_key_of
from dppp.service.stores.new_files import SECRET, read_file


class RowSecrets:
    """The secrets of one file, which is made if it is missing."""

    def __init__(self, path: Path, *, may_make: bool = True) -> None:
        self._path = path
        self._secrets: list[bytes] = []
        if path.exists() or not may_make:
            self._secrets = _read(path)
        else:
            self.add()

    def __len__(self) -> int:
        return len(self._secrets)

    def add(self) -> int:
        """A new secret, on disk before it is used; its place."""
        secret = make_row_secret()
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, SECRET)
            with os.fdopen(file, "w", encoding="ascii") as text:
                text.write(f"{secret.hex()}\n")
                text.flush()
                os.fsync(text.fileno())
        except OSError as error:
            raise InputError(
                f"cannot write {self._path}: {error.strerror}", hint="give another as --row-key"
            ) from error
        self._secrets.append(secret)
        return len(self._secrets) - 1

    def row_key(self, place: int, task_id: TaskId) -> bytes:
        """The key of this querier's rows in a task, by the secret at this place."""
        if not 0 <= place < len(self._secrets):
            raise InputError(
                f"{self._path} has fewer secrets than this run began with",
                hint="give the file that it began with as --row-key",
            )
        return row_key_of(self._secrets[place], task_id)

    def row_keys(self, task_id: TaskId) -> list[bytes]:
        """The keys in a task, by all secrets, the newest first."""
        return [row_key_of(each, task_id) for each in reversed(self._secrets)]


def _read(path: Path) -> list[bytes]:
    data = read_file(path)
    if path.stat().st_mode & 0o077:
        raise KeyMaterialError(
            f"{path} can be read by others on this machine", hint=f"run: chmod 600 {path}"
        )
    try:
        secrets = [bytes.fromhex(line) for line in data.decode("ascii").split()]
    except ValueError:
        secrets = []
    if not secrets or any(len(each) != ROW_KEY_BYTES for each in secrets):
        raise KeyMaterialError(
            f"{path} does not hold row secrets, of {2 * ROW_KEY_BYTES} hexadecimal digits each",
            hint="restore it from its copy, or give another file as --row-key",
        )
    return secrets
