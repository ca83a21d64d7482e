"""Where a store is, as a configuration says it."""

from pathlib import Path

import pytest
from tests.privacy.ledgers import TEACHER

from dppp.errors import InputError
from dppp.service.config import LedgerPlace
from dppp.service.ledger_file import create_ledger, has_ledger
from dppp.service.locations import Location, require_url

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
