"""Ledgers that were put back, lost, swapped or changed: the same on SQLite and PostgreSQL."""

import json
import multiprocessing
import os
import sqlite3
from pathlib import Path

import pytest
from tests.left_out import need_module
from tests.privacy.ledger.ledgers import DATA, FILLED, TEACHER, agree, answer, fill, make_id
from tests.service.ceremony.tampering import (
    change_row,
    keep_copy,
    make_another,
    remove,
    run_sql,
    set_version,
)

from dppp.errors import (
    InputError,
    LedgerDamaged,
    LedgerRolledBack,
    LedgerUnavailable,
    NotALedger,
    SecondList,
    WrongTeacher,
)
from dppp.privacy.ledger.ledger import Ledger
from dppp.service.stores.head_file import HeadFile
from dppp.service.stores.ledgers import create_ledger, inspect_ledger, open_ledger
from dppp.service.stores.locations import Location

need_module("psycopg", extra="service")
import psycopg


@pytest.fixture(autouse=True)
def _filled(location: Location, head_path: Path) -> None:
    create_ledger(location, teacher=TEACHER, head_path=head_path)
    with open_ledger(location, head_path=head_path) as ledger:
        fill(ledger)


def test_an_old_copy_put_back_is_refused_and_says_what_to_do(
    location: Location, head_path: Path
) -> None:
    put_back = keep_copy(location)
    with open_ledger(location, head_path=head_path) as ledger:
        answer(ledger, "c")
    put_back()
    with pytest.raises(LedgerRolledBack, match=r"older copy.*\nhint: .*restore the newest"):
        open_ledger(location, head_path=head_path).__enter__()


STEPS = (Ledger.record_endorsement, Ledger.record_answer)


@pytest.mark.parametrize("is_in_use", [False, True], ids=["closed", "in use"])
@pytest.mark.parametrize("kept", [0, 1], ids=["without the endorsement", "without the answer"])
def test_an_old_copy_put_back_endorses_and_answers_no_second_list(
    kept: int, is_in_use: bool, location: Location, head_path: Path
) -> None:
    """Nor when it was written to in between by whoever has no head file."""
    batch, listed = make_id("batch", "b"), make_id("list")
    with open_ledger(location, head_path=head_path) as ledger:
        for record in STEPS[:kept]:
            record(ledger, batch, listed, b"said")
    put_back = keep_copy(location)
    with open_ledger(location, head_path=head_path) as ledger:
        for record in STEPS[kept:]:
            record(ledger, batch, listed, b"said")
        if is_in_use:
            put_back()
            for record in STEPS:
                with pytest.raises(LedgerRolledBack):
                    record(ledger, batch, make_id("second list"), b"x")
            return
    put_back()
    with pytest.raises(LedgerRolledBack, match="older copy"):
        open_ledger(location, head_path=head_path).__enter__()
    with open_ledger(location) as ledger:
        answer(ledger, "c", queries=1)
        answer(ledger, "d", queries=1)
    with pytest.raises(LedgerRolledBack, match="put back and written to"):
        open_ledger(location, head_path=head_path).__enter__()


def test_an_endorsement_and_an_answer_survive_reopening(
    location: Location, head_path: Path
) -> None:
    batch, listed = make_id("batch", "b"), make_id("list")
    for record, said in zip(STEPS, (b"endorsement", b"answer"), strict=True):
        with open_ledger(location, head_path=head_path) as ledger:
            assert record(ledger, batch, listed, said) == said
            assert HeadFile(head_path).recall() == ledger.head
        with open_ledger(location, head_path=head_path) as ledger:
            assert record(ledger, batch, listed, b"other bytes") == said
            with pytest.raises(SecondList):
                record(ledger, batch, make_id("second list"), b"x")


def test_no_endorsement_or_answer_leaves_when_its_head_cannot_be_remembered(
    location: Location, head_path: Path, tmp_path: Path
) -> None:
    other_disk = tmp_path / "other disk"
    other_disk.mkdir()
    batch, listed = make_id("batch", "b"), make_id("list")
    for record in STEPS:
        with open_ledger(location) as ledger:
            HeadFile(other_disk / "head").remember(ledger.head)
        with open_ledger(location, head_path=other_disk / "head") as ledger:
            other_disk.rename(tmp_path / "gone")
            for _ in range(2):
                with pytest.raises(LedgerUnavailable, match="nothing was sent"):
                    record(ledger, batch, listed, b"said")
            (tmp_path / "gone").rename(other_disk)
            assert record(ledger, batch, listed, b"other bytes") == b"said"


def test_an_old_copy_put_back_and_written_to_is_refused(
    location: Location, head_path: Path
) -> None:
    put_back = keep_copy(location)
    with open_ledger(location, head_path=head_path) as ledger:
        answer(ledger, "c", ballot=b"noise")
    put_back()
    with open_ledger(location) as ledger:
        answer(ledger, "c", ballot=b"other noise")
    with pytest.raises(LedgerRolledBack, match="put back and written to"):
        open_ledger(location, head_path=head_path).__enter__()


def test_a_ledger_put_back_while_in_use_answers_no_more(
    location: Location, head_path: Path
) -> None:
    put_back = keep_copy(location)
    with open_ledger(location, head_path=head_path) as ledger:
        answer(ledger, "c")
        put_back()
        with pytest.raises(LedgerRolledBack, match=r"replaced|older copy"):
            answer(ledger, "d", queries=1)


def test_a_store_ahead_of_the_remembered_head_is_fine(location: Location, head_path: Path) -> None:
    with open_ledger(location) as ledger:
        answer(ledger, "c")
    with open_ledger(location, head_path=head_path) as ledger:
        assert ledger.head.index == FILLED + 1


def test_a_ballot_stored_by_a_process_that_died_is_remembered_before_it_is_sent(
    location: Location, head_path: Path
) -> None:
    with open_ledger(location, head_path=head_path) as living, open_ledger(location) as dying:
        answer(dying, "c")
        assert HeadFile(head_path).recall() != dying.head
        assert answer(living, "c", ballot=b"x") == b"ballot of c"
        assert HeadFile(head_path).recall() == dying.head


def test_no_ballot_leaves_when_its_head_cannot_be_remembered(
    location: Location, tmp_path: Path
) -> None:
    other_disk = tmp_path / "other disk"
    other_disk.mkdir()
    with open_ledger(location) as ledger:
        HeadFile(other_disk / "head").remember(ledger.head)
    with open_ledger(location, head_path=other_disk / "head") as ledger:
        other_disk.rename(tmp_path / "gone")
        for _ in range(2):
            with pytest.raises(LedgerUnavailable, match="nothing was sent"):
                answer(ledger, "c")
        (tmp_path / "gone").rename(other_disk)
        assert answer(ledger, "c", ballot=b"x") == b"ballot of c"


def test_a_lost_head_file_is_refused(location: Location, head_path: Path) -> None:
    head_path.unlink()
    with pytest.raises(LedgerRolledBack, match="no head is remembered"):
        open_ledger(location, head_path=head_path).__enter__()


def test_a_lost_ledger_is_not_made_anew(location: Location, head_path: Path) -> None:
    remove(location)
    with pytest.raises(InputError, match="open it instead"):
        create_ledger(location, teacher=TEACHER, head_path=head_path)
    with pytest.raises(LedgerUnavailable, match="would forget what was spent"):
        open_ledger(location, head_path=head_path).__enter__()


def test_an_existing_ledger_is_not_overwritten(location: Location) -> None:
    with pytest.raises(InputError, match="open it instead"):
        create_ledger(location, teacher=TEACHER)
    with open_ledger(location) as ledger:
        assert ledger.check().index == FILLED


def test_the_ledger_of_another_teacher_is_refused(
    location: Location, head_path: Path, tmp_path: Path
) -> None:
    other = make_another(location, tmp_path)
    create_ledger(other, teacher="hospital-8")
    with pytest.raises(WrongTeacher):
        open_ledger(other, teacher=TEACHER).__enter__()
    with pytest.raises(LedgerRolledBack):
        open_ledger(other, head_path=head_path).__enter__()
    with open_ledger(location, teacher=TEACHER, head_path=head_path) as ledger:
        assert ledger.check().index == FILLED


def test_a_later_version_is_refused(location: Location) -> None:
    set_version(location, 2)
    for opening in (open_ledger(location), inspect_ledger(location)):
        with pytest.raises(NotALedger, match="version 2"):
            opening.__enter__()


@pytest.mark.parametrize("statement", ["UPDATE entries SET kind = 'x'", "DELETE FROM contents"])
def test_the_past_cannot_be_changed_by_a_slip_of_the_hand(
    statement: str, location: Location
) -> None:
    with pytest.raises(
        (sqlite3.IntegrityError, psycopg.errors.RaiseException), match="only ever appended"
    ):
        run_sql(location, statement)


CHANGES = {
    "kind": ("entries", "kind = 'cap'"),
    "payload": ("entries", "payload = hash"),
    "hash": ("entries", "hash = payload"),
    "content": ("contents", "content = (SELECT hash FROM entries WHERE position = 0)"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_row_that_was_changed_on_purpose_is_named(what: str, location: Location) -> None:
    table, change = CHANGES[what]
    change_row(location, table, change, "position = 3")
    with pytest.raises(LedgerDamaged, match="entry 3"), open_ledger(location) as ledger:
        ledger.check()


def test_a_ledger_can_be_looked_at_while_it_is_written_to(location: Location) -> None:
    with open_ledger(location) as ledger, inspect_ledger(location) as (seen, _):
        with ledger._turn():
            assert seen.check().index == FILLED
        answer(ledger, "c")
        assert seen.head == ledger.head
        with pytest.raises(LedgerUnavailable):
            answer(seen, "d", queries=1)


def test_a_closed_ledger_says_so(location: Location) -> None:
    with open_ledger(location) as ledger:
        pass
    with pytest.raises(LedgerUnavailable, match="closed"):
        answer(ledger, "c")


def use_after_fork(ledger: Ledger, location: Location) -> None:
    with pytest.raises(InputError, match="open it again in each process"):
        answer(ledger, "c")
    with open_ledger(location) as own:
        answer(own, "c")
    os._exit(7)


def test_a_ledger_does_not_survive_a_fork_but_can_be_opened_again(location: Location) -> None:
    with open_ledger(location) as ledger:
        child = multiprocessing.get_context("fork").Process(
            target=use_after_fork, args=(ledger, location)
        )
        child.start()
        child.join(30)
        assert child.exitcode == 7
        assert answer(ledger, "c", ballot=b"x") == b"ballot of c"


def test_a_large_ballot_is_kept_whole(location: Location) -> None:
    ballot = os.urandom(5_000_000)
    with open_ledger(location) as ledger:
        answer(ledger, "c", ballot=ballot)
    with open_ledger(location) as ledger:
        assert ledger.find_ballot(make_id("batch", "c")) == ballot
        assert ledger.check().index == FILLED + 1


def test_the_head_file_is_what_show_prints(location: Location, head_path: Path) -> None:
    with inspect_ledger(location) as (ledger, _):
        assert json.loads(head_path.read_text()) == ledger.summary().to_json()["head"]
        assert ledger.summary().data[0].data_id == DATA


def test_agreeing_again_after_a_restart_costs_nothing(location: Location, head_path: Path) -> None:
    with open_ledger(location, head_path=head_path) as ledger:
        before = ledger.head
        ledger.fix_cap(DATA, epsilon=2, delta=1e-5)
        ledger.accept(DATA, agree("first"))
        assert ledger.head == before
