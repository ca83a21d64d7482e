"""Copies of a ledger: whole, checked, and never put back in the place of a newer one."""

import os
import shutil
import sqlite3
from pathlib import Path

import pytest
from tests.privacy.ledger.ledgers import FILLED, TEACHER, answer, fill, make_id, new_location
from tests.service.stores.full_disk import no_file_longer_than

from dppp.errors import InputError, LedgerDamaged, LedgerRolledBack, LedgerUnavailable, NotALedger
from dppp.service.stores.head_file import HeadFile
from dppp.service.stores.ledger_copies import back_up_ledger, restore_ledger
from dppp.service.stores.ledgers import create_ledger, has_ledger, inspect_ledger, open_ledger
from dppp.service.stores.locations import Location


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path, head_path: Path) -> Location:
    location = new_location(request.param, tmp_path)
    create_ledger(location, teacher=TEACHER, head_path=head_path)
    with open_ledger(location, head_path=head_path) as ledger:
        fill(ledger)
    return location


def another(place: Location, folder: Path) -> Location:
    """A place of the same kind in which there is nothing, as after a loss."""
    folder.mkdir(exist_ok=True)
    return new_location("sqlite" if isinstance(place, Path) else "postgres", folder)


def ask(place: Location, head_path: Path, batch: str) -> None:
    with open_ledger(place, head_path=head_path) as ledger:
        answer(ledger, batch, queries=1)


def test_a_lost_ledger_comes_back_from_its_newest_copy_and_goes_on(
    place: Location, head_path: Path, tmp_path: Path
) -> None:
    with open_ledger(place, head_path=head_path) as running:
        head = back_up_ledger(place, tmp_path / "copy.db", heads=HeadFile(head_path))
        assert head == running.head
    there = another(place, tmp_path / "there")
    assert restore_ledger(tmp_path / "copy.db", there, head_path=head_path) == head
    with open_ledger(there, teacher=TEACHER, head_path=head_path) as ledger:
        assert ledger.check() == head
        assert ledger.find_ballot(make_id("batch", "a")) == b"ballot of a"
        answer(ledger, "c", queries=1)
    assert not list(tmp_path.glob("*.new"))
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.attack
def test_a_copy_from_before_an_answer_is_not_put_back(
    place: Location, head_path: Path, tmp_path: Path
) -> None:
    back_up_ledger(place, tmp_path / "old.db")
    ask(place, head_path, "since")
    there = another(place, tmp_path / "there")
    with pytest.raises(LedgerRolledBack, match="must not be restored"):
        restore_ledger(tmp_path / "old.db", there, head_path=head_path)
    assert not has_ledger(there)
    head_path.unlink()
    with pytest.raises(LedgerRolledBack, match="nobody can tell"):
        restore_ledger(tmp_path / "old.db", there, head_path=head_path)
    forged = tmp_path / "forged head"  # the defence taken out: a head file that knows less
    with inspect_ledger(tmp_path / "old.db") as (ledger, _):
        HeadFile(forged).remember(ledger.head)
    restore_ledger(tmp_path / "old.db", there, head_path=forged)
    ask(there, forged, "the same budget again")


def test_a_copy_that_is_ahead_of_the_head_file_is_restored_and_remembered(
    place: Location, head_path: Path, tmp_path: Path
) -> None:
    """A crash between the ledger and its head leaves the head file one entry behind."""
    behind = tmp_path / "behind"
    shutil.copy(head_path, behind)
    ask(place, head_path, "stored just before the crash")
    head = back_up_ledger(place, tmp_path / "copy.db")
    there = another(place, tmp_path / "there")
    assert restore_ledger(tmp_path / "copy.db", there, head_path=behind) == head
    assert HeadFile(behind).recall() == head


def test_nothing_is_ever_replaced(place: Location, head_path: Path, tmp_path: Path) -> None:
    back_up_ledger(place, tmp_path / "copy.db")
    with pytest.raises(InputError, match="replaces none"):
        back_up_ledger(place, tmp_path / "copy.db")
    with pytest.raises(InputError, match="there is a ledger already"):
        restore_ledger(tmp_path / "copy.db", place, head_path=head_path)


def test_a_ledger_that_went_back_is_not_copied_as_if_it_were_the_newest(
    tmp_path: Path, head_path: Path
) -> None:
    path = tmp_path / "ledger.db"
    create_ledger(path, teacher=TEACHER, head_path=head_path)
    old = tmp_path / "old.db"
    back_up_ledger(path, old)
    with open_ledger(path, head_path=head_path) as ledger:
        fill(ledger)
    os.replace(old, path)
    with pytest.raises(LedgerRolledBack):
        back_up_ledger(path, tmp_path / "copy.db", heads=HeadFile(head_path))
    assert not (tmp_path / "copy.db").exists()


def test_a_damaged_copy_is_neither_made_nor_restored(tmp_path: Path, head_path: Path) -> None:
    path, copy, there = tmp_path / "ledger.db", tmp_path / "copy.db", tmp_path / "there.db"
    create_ledger(path, teacher=TEACHER, head_path=head_path)
    with open_ledger(path, head_path=head_path) as ledger:
        fill(ledger)
    back_up_ledger(path, copy)
    with sqlite3.connect(copy) as connection:
        connection.execute("DROP TRIGGER contents_update")
        connection.execute("UPDATE contents SET content = x'00' WHERE position = 3")
    connection.close()
    with pytest.raises(LedgerDamaged):
        restore_ledger(copy, there, head_path=head_path)
    with pytest.raises(LedgerDamaged):
        back_up_ledger(copy, tmp_path / "second.db")
    (tmp_path / "text").write_text("no ledger")
    with pytest.raises(NotALedger):
        restore_ledger(tmp_path / "text", there, head_path=head_path)
    assert not there.exists()
    assert HeadFile(head_path).recall() is not None
    assert FILLED > 3


def test_a_full_disk_leaves_no_half_copy(tmp_path: Path, head_path: Path) -> None:
    path = tmp_path / "ledger.db"
    create_ledger(path, teacher=TEACHER, head_path=head_path)
    with open_ledger(path, head_path=head_path) as ledger:
        fill(ledger)
        answer(ledger, "large", queries=1, ballot=os.urandom(300_000))
    with no_file_longer_than(100_000), pytest.raises(LedgerUnavailable):
        back_up_ledger(path, tmp_path / "copy.db")
    assert sorted(each.name for each in tmp_path.iterdir() if "copy" in each.name) == []
