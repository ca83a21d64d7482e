"""One federation, dealt once for all tests that only read it."""

import pytest
from tests.service.ceremonies import Ceremony, hold


@pytest.fixture(scope="session")
def ceremony(tmp_path_factory: pytest.TempPathFactory) -> Ceremony:
    return hold(tmp_path_factory.mktemp("ceremony"))
