"""Where a store is, as a configuration says it."""

import sys
from pathlib import Path

import pytest
from tests.privacy.ledger.ledgers import TEACHER

from dppp.errors import InputError, MissingExtraError
from dppp.service.process.config import LedgerPlace
from dppp.service.stores.ledgers import create_ledger, has_ledger
from dppp.service.stores.locations import LedgerFiles, Location, read_location, require_url

URL = "postgresql://dppp:hunter2@db.example.org/dppp?schema=hospital_a"


def test_a_place_of_a_configuration_is_a_path_or_a_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPPP_LEDGER_URL", URL)
    given = {"url": "env:DPPP_LEDGER_URL", "head": "head.json"}
    place = LedgerPlace.model_validate(given, strict=False, context={"folder": tmp_path})
    assert place.location == URL
    assert "hunter2" not in f"{place} {place!r} {place.model_dump()}"
    given = {"path": "ledger.db", "head": "head.json"}
    place = LedgerPlace.model_validate(given, strict=False, context={"folder": tmp_path})
    assert place.location == tmp_path / "ledger.db"


def test_whether_there_is_a_ledger_can_be_asked_of_both(location: Location) -> None:
    assert not has_ledger(location)
    create_ledger(location, teacher=TEACHER)
    assert has_ledger(location)


@pytest.mark.parametrize("text", ["", "ledger.db", "mysql://me:hunter2@host/x", "postgres:/x"])
def test_a_text_that_is_no_url_of_postgresql_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(InputError, match="begins with postgresql://") as caught:
        require_url(text)
    assert "hunter2" not in str(caught.value)


def test_a_location_is_typed_as_a_file_or_as_where_the_url_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ledger.db").write_bytes(b"")
    (tmp_path / "url").write_text(f"{URL}\n", encoding="utf-8")
    monkeypatch.setenv("DPPP_LEDGER_URL", URL)
    assert read_location(str(tmp_path / "ledger.db")) == tmp_path / "ledger.db"
    assert read_location(f"file:{tmp_path / 'url'}") == URL
    assert read_location("env:DPPP_LEDGER_URL") == URL


def test_a_url_on_the_command_line_is_refused_and_not_repeated() -> None:
    with pytest.raises(InputError, match="does not belong on a command line") as caught:
        read_location(URL)
    assert "hunter2" not in str(caught.value)


def test_a_location_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DPPP_LEDGER_URL", raising=False)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for text, says in (
        (f"file:{tmp_path / 'none'}", r"cannot read the url in file:.*none: No such file"),
        (f"file:{tmp_path / 'binary'}", "not text in UTF-8"),
        ("env:DPPP_LEDGER_URL", "no variable DPPP_LEDGER_URL"),
        (str(tmp_path / "none"), "there is no file"),
        (str(tmp_path), "there is no file"),
    ):
        with pytest.raises(InputError, match=says):
            read_location(text)


@pytest.mark.parametrize("name", ["psycopg", "sqlalchemy"])
def test_a_package_that_is_missing_is_named_with_its_extra(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        MissingExtraError, match=r"SQLAlchemy and psycopg.*\nhint: .*pip install .*\[service\]"
    ):
        require_url(URL)


def test_a_ledger_and_its_head_on_one_disk_are_known_also_before_they_are_made(
    tmp_path: Path,
) -> None:
    here = LedgerFiles(path=tmp_path / "new" / "ledger.db", head=tmp_path / "other" / "head")
    assert here.is_on_one_disk
    elsewhere = Path("/proc/self/head")  # a file system of its own on every Linux
    assert not LedgerFiles(path=tmp_path / "ledger.db", head=elsewhere).is_on_one_disk
