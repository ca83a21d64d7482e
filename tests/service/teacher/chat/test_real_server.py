"""Voters against a chat server that others wrote: `transformers serve`, with a tiny model.

In `make soak` only: its packages are large, nothing else here needs them, and it takes a minute.
"""

import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.left_out import leave_out, only_in_soak
from tests.service.teacher.chat.tickets import asked, chat_model, tickets, voters_of

from dppp.protocol.votes import sum_votes
from dppp.service.local.processes import free_ports

pytestmark = only_in_soak

_HERE = Path(__file__).parent
_START_SECONDS = 240
_SERVE = "import sys; from transformers.cli.transformers import main; sys.exit(main())"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The base address of a running server, and the name of its model."""
    if importlib.util.find_spec("transformers") is None:
        leave_out("transformers is missing; install it with: pip install 'transformers[serving]'")
    folder = tmp_path_factory.mktemp("tiny") / "model"
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1"}
    make = [sys.executable, str(_HERE / "tiny_language_model.py"), str(folder)]
    subprocess.run(make, env=env, check=True, timeout=_START_SECONDS)  # noqa: S603 - our own
    (port,) = free_ports(1)
    place = ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    command = [sys.executable, "-c", _SERVE, "serve", str(folder), *place]
    process = subprocess.Popen(command, env=env)  # noqa: S603 - our own interpreter
    try:
        _wait_until_ready(f"http://127.0.0.1:{port}/health", process)
        yield f"http://127.0.0.1:{port}/v1", str(folder)
    finally:
        process.kill()
        process.wait()


def _wait_until_ready(url: str, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            if httpx.get(url, trust_env=False).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    raise AssertionError("the server did not start")


def test_a_real_language_model_votes(served: tuple[str, str], tmp_path: Path) -> None:
    url, name = served
    # Its template has the question last, which is the word that this model goes by.
    model = chat_model(tmp_path, url, tickets()).model_copy(update={"model": name})
    questions = asked("a refund", "my router", "this invoice", "the wifi")
    votes = sum_votes(voters_of(model, votes=3), questions, 2)
    assert votes.tolist() == [[3, 0], [0, 3], [3, 0], [0, 3]]


def test_a_model_that_the_real_server_does_not_have_casts_no_vote(
    served: tuple[str, str], tmp_path: Path
) -> None:
    url, _ = served
    model = chat_model(tmp_path, url, tickets(), retries=0)
    assert voters_of(model, votes=1)[0](asked("a refund")) == [None]
