"""One federation, dealt once for all tests that only read it; a place for a store of each kind."""

from pathlib import Path

import pytest
from tests.privacy.ledger.ledgers import STORES, new_location
from tests.service.ceremony.ceremonies import Ceremony, hold

from dppp.service.stores.locations import Location


@pytest.fixture(scope="session")
def ceremony(tmp_path_factory: pytest.TempPathFactory) -> Ceremony:
    return hold(tmp_path_factory.mktemp("ceremony"))


@pytest.fixture(params=STORES[1:])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    return new_location(request.param, tmp_path)


@pytest.fixture
def head_path(tmp_path: Path) -> Path:
    return tmp_path / "head.json"
