"""The aggregator's store and a teacher's ledger in PostgreSQL, in a federation of processes."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.deployment.running import (
    CRYPTOSYSTEMS,
    TEACHERS,
    Running,
    charged_in,
    make_federation,
    run,
    wait_for,
)
from tests.left_out import need_program
from tests.postgres import PASSWORD, shared_server

from dppp.service.ceremony.acceptance import accept_task
from dppp.service.process.config import TeacherConfig, read_config

ASKED = [2, 0, 1]


def move(config: Path, section: str) -> str:
    """Let a party keep this in PostgreSQL instead; its url, which the configuration points to."""
    url = shared_server().fresh_url()
    (config.parent / "url").write_text(url, encoding="utf-8")
    text = config.read_text(encoding="utf-8")
    moved = re.sub(rf'(?m)(^\[{section}\]\n)path = ".*"$', r'\1url = "file:url"', text)
    assert moved != text
    config.write_text(moved.replace("head.json", "new-head.json"), encoding="utf-8")
    return url


@pytest.fixture(params=CRYPTOSYSTEMS)
def federation(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Running, str]]:
    need_program("nats-server", package="nats-server")
    local = make_federation(tmp_path / "local", cryptosystem=request.param)
    move(local.aggregator_config, "store")
    first = local.teacher_configs[0]
    url = move(first, "ledger")
    accept_task(read_config(first, TeacherConfig), is_first_use=True)
    with run(local) as running:
        yield running, url


def test_a_batch_is_kept_and_charged_once_in_postgresql(
    federation: tuple[Running, str],
) -> None:
    running, url = federation
    batch = running.submit(*ASKED)
    assert running.wait_for_end(batch)["stage"] == "released"
    labels = running.labels(batch)
    assert charged_in(url) == len(ASKED)
    assert running.charged() == [0, *[len(ASKED)] * (TEACHERS - 1)]
    running.kill("aggregator")
    running.restart("aggregator")
    assert running.wait_for_end(batch)["stage"] == "released"
    assert running.labels(batch) == labels
    for name in ("aggregator", "teacher-1"):
        assert PASSWORD not in running.log_of(name)


def test_of_two_aggregators_on_one_database_the_second_goes_on_with_what_the_first_leaves(
    federation: tuple[Running, str],
) -> None:
    running, url = federation
    first = running.submit(1)  # under masks a batch begins with everybody's key of the epoch
    assert running.wait_for_end(first)["stage"] == "released"
    wait_for(lambda: charged_in(url) == 1, "the first charge")
    running.pause("teacher-2", "teacher-3")
    batch = running.submit(*ASKED)
    wait_for(lambda: running.state(batch)["ballots"] == TEACHERS - 2, "three ballots")
    running.start_second_aggregator()
    running.kill("aggregator")
    running.go_on("teacher-2", "teacher-3")
    wait_for(lambda: "batch released" in running.log_of("second"), "the second to release")
    running.restart("aggregator")
    assert running.wait_for_end(batch)["stage"] == "released"
    assert len(running.labels(batch)) == len(ASKED)
    assert "batch taken over" in running.log_of("second")
    assert charged_in(url) == 1 + len(ASKED)
    if running.cryptosystem == "masks":  # once is enough: it takes some seconds
        assert_one_that_hangs_holds_up_no_batch_of_the_other(running)


def assert_one_that_hangs_holds_up_no_batch_of_the_other(running: Running) -> None:
    """Also one that the broker offers to the sleeper first: it is taken over."""
    running.pause("aggregator")
    with running.at_second_gateway() as second:
        assert second.wait_for_end(second.submit(2))["stage"] == "released"
    running.go_on("aggregator")
