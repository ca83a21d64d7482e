"""A copy of a ledger, and a ledger from a copy that cannot be an older one than was remembered.

A copy is a ledger in a SQLite file, whatever the ledger itself is kept in. It is made from one
snapshot beside a running teacher, is whole or not there, and every entry of it is checked. Whether
a copy is too old only the head file can tell, which is never in it. Used by `dppp ledger`.
"""

import os
from collections.abc import Callable
from pathlib import Path

from dppp.errors import InputError, LedgerRolledBack, LedgerUnavailable
from dppp.privacy.ledger.chain import Head
from dppp.privacy.ledger.ledger import Ledger
from dppp.service.stores.head_file import HeadFile
from dppp.service.stores.ledgers import has_ledger, inspect_ledger, open_store
from dppp.service.stores.locations import Location, require_url
from dppp.service.stores.new_files import sync_folder
from dppp.service.stores.sqlite.ledger import write_schema


def back_up_ledger(ledger: Location, copy: Path, *, heads: HeadFile | None = None) -> Head:
    """Copy a ledger into a new file; with its head file, only one that did not go back in time."""
    if copy.exists():
        raise InputError(
            f"{copy} is there already, and a copy replaces none", hint="name a new file"
        )
    with inspect_ledger(ledger) as (found, store):
        store.check_file()
        found.check()
        if heads is not None and (remembered := heads.recall()) is not None:
            found.require_contains(remembered)
    return _make_file(copy, lambda unfinished: _copy(ledger, unfinished))


def restore_ledger(copy: Path, ledger: Location, *, head_path: Path) -> Head:
    """Put a copy where no ledger is, if it contains the head that is remembered.

    The head file stays as it is, or goes on where the copy is ahead of it.
    """
    heads = HeadFile(head_path)
    remembered = heads.recall()
    if remembered is None:
        raise LedgerRolledBack(
            f"there is no head file {head_path}, so nobody can tell how new the copy is",
            hint=(
                "find the head file; or compare the copy's head (`dppp ledger show`) with what "
                "your peers remember of yours, and then run `dppp ledger remember` on the copy"
            ),
        )
    if has_ledger(ledger):
        raise InputError(
            "there is a ledger already, which may hold more than the copy",
            hint=(
                "try `dppp ledger check` on it first; if it is damaged, stop the teacher and move "
                "it aside with the files -wal and -shm beside it"
            ),
        )
    head = _require_new_enough(copy, remembered)
    if isinstance(ledger, Path):
        _make_file(ledger, lambda unfinished: _copy(copy, unfinished))
    else:
        _copy_to_postgres(copy, ledger)
    heads.remember(head)
    return head


def _require_new_enough(copy: Path, remembered: Head) -> Head:
    with inspect_ledger(copy) as (found, store):
        store.check_file()
        head = found.check()
        try:
            found.require_contains(remembered)
        except LedgerRolledBack as error:
            raise LedgerRolledBack(
                f"the copy {copy} must not be restored: {error.message}",
                hint=(
                    "look for a newer copy. If there is none, what was answered since is "
                    "forgotten: this data must not be used again, in this or any other task"
                ),
            ) from error
    return head


def _make_file(path: Path, fill: Callable[[Path], Head]) -> Head:
    """A file that is there as a whole or not at all, and replaces none."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        unfinished.unlink(missing_ok=True)
        write_schema(unfinished)
        head = fill(unfinished)
        os.link(unfinished, path)
        sync_folder(path.parent)
    except FileExistsError:
        raise InputError(f"{path} was made meanwhile", hint="look whose it is") from None
    except OSError as error:
        raise LedgerUnavailable(
            f"cannot write {path}: {error.strerror}", hint="make room or choose another place"
        ) from error
    finally:
        unfinished.unlink(missing_ok=True)
    return head


def _copy_to_postgres(copy: Path, url: str) -> Head:
    """One transaction: a ledger that was half restored is none."""
    require_url(url)
    from dppp.service.stores.postgres.ledger import write_tables  # noqa: PLC0415

    write_tables(url)
    return _copy(copy, url)


def _copy(source: Location, target: Location) -> Head:
    """All entries of one snapshot and the bytes beside them; checked once more where they are."""
    read, written = open_store(source, is_read_only=True), open_store(target)
    try:
        with read.transaction() as old, written.transaction() as new:
            for entry in old.read_entries(0):
                new.append(entry, old.read_content(entry.index))
        return Ledger.open(written).check()
    finally:
        written.close()
        read.close()
