"""A place for a store of each kind that outlives its process."""

from pathlib import Path

import pytest
from tests.privacy.ledgers import STORES, new_location

from dppp.service.locations import Location


@pytest.fixture(params=STORES[1:])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    return new_location(request.param, tmp_path)


@pytest.fixture
def head_path(tmp_path: Path) -> Path:
    return tmp_path / "head.json"
