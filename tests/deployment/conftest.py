"""One running federation for the tests of a file, under each cryptosystem."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.deployment.running import CRYPTOSYSTEMS, Running, make_federation, run
from tests.left_out import need_program


@pytest.fixture(scope="module", params=CRYPTOSYSTEMS)
def federation(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    need_program("nats-server", package="nats-server")
    folder: Path = tmp_path_factory.mktemp("federation") / "local"
    with run(make_federation(folder, cryptosystem=request.param)) as running:
        yield running
