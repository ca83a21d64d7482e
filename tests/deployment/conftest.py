"""One running federation for the tests of a file."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.deployment.running import Running, make_federation, run
from tests.left_out import need_program


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    need_program("nats-server", package="nats-server")
    folder: Path = tmp_path_factory.mktemp("federation") / "local"
    with run(make_federation(folder)) as running:
        yield running
