"""The remembered head of a ledger, in a file of its own on another disk than the ledger.

Whoever puts the ledger back to an older copy does not put this back with it, so the ledger refuses
to open. Written after each append: a temporary file, fsync, rename, fsync of the folder. Never goes
back: processes that share a ledger take turns by a lock file beside it. Only its owner may read or
write it: whoever can write it can make a ledger that was put back look new.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dppp.errors import InputError, LedgerRolledBack, LedgerUnavailable, message_of
from dppp.privacy.ledger.chain import Head
from dppp.service.stores.new_files import sync_folder

_OWNER_ONLY = 0o600


class HeadFile:
    """A HeadMemory in a small JSON file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock_path = path.with_name(path.name + ".lock")
        self._new_path = path.with_name(path.name + ".new")

    def recall(self) -> Head | None:
        """The newest head; None when nothing was remembered yet."""
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise LedgerUnavailable(
                f"cannot read the head file {self._path}: {error}",
                hint="make it readable for its owner",
            ) from error
        return self._parse(text)

    def remember(self, head: Head) -> None:
        """Keep this head durably, unless a later one is kept already."""
        try:
            with self._turn():
                if self._is_news(head):
                    self._replace(head)
                elif self._path.stat().st_mode & 0o077:
                    self._path.chmod(_OWNER_ONLY)
        except OSError as error:
            raise LedgerUnavailable(
                f"cannot remember the head of the ledger in {self._path}, so nothing was sent: "
                f"{error.strerror}",
                hint="make the place writable and ask again",
            ) from error

    def _is_news(self, head: Head) -> bool:
        known = self.recall()
        if known is not None and known.index == head.index and known != head:
            raise LedgerRolledBack(
                f"{self._path} remembers {known}, and this ledger has {head}: two ledgers use one "
                "head file, or one of them went back in time",
                hint="give each its own and check both",
            )
        return known is None or known.index < head.index

    def _replace(self, head: Head) -> None:
        text = json.dumps({"index": head.index, "hash": head.hash.hex()}) + "\n"
        self._new_path.unlink(missing_ok=True)  # left by a crash, with any mode
        with open(self._new_path, "x", encoding="utf-8", opener=_open_for_owner) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        self._new_path.replace(self._path)
        sync_folder(self._path.parent)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Among threads too: each turn opens the lock file again, and flock goes by opened file."""
        with open(self._lock_path, "w", opener=_open_for_owner) as lock:
            if os.fstat(lock.fileno()).st_mode & 0o077:  # of 0.1.0: others could hold it
                os.fchmod(lock.fileno(), _OWNER_ONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _parse(self, text: str) -> Head:
        try:
            data = json.loads(text)
            head = Head(index=data["index"], hash=bytes.fromhex(data["hash"]))
            if head.index < 0:
                raise ValueError("no entry has a negative index")
        except (ValueError, TypeError, KeyError, RecursionError, InputError) as error:
            raise InputError(
                f"{self._path} is not a head file, which is one JSON object with index and hash "
                f"({message_of(error)})",
                hint="find the right file, or compare with your peers what the head was",
            ) from error
        return head


def _open_for_owner(path: str, flags: int) -> int:
    return os.open(path, flags, _OWNER_ONLY)
