"""Fewer than N - D teachers online: nothing is begun or charged, unless the querier insists."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.commands import run_dppp
from tests.service.gateway.test_application import ALICE, Served, ask, serve_embedded

from dppp.protocol.batch_store import Culprit, StoredBatches
from dppp.service.batches.runner import BatchRunner
from dppp.service.querier.connection import GatewayConnection

ROWS = [[1.0, 3.0], [2.0, 4.0]]
MISSING = (2, 4)


@pytest.fixture
def served() -> Iterator[Served]:
    with serve_embedded() as served:
        yield served


def take_away(served: Served, *teachers: int) -> BatchRunner:
    """As after twelve seconds of silence."""
    served.embedded.channel.silent |= set(teachers)
    for each in teachers:
        served.embedded.runner.teachers[each].is_online = False
    return served.embedded.runner


def charged(served: Served) -> list[int]:
    ledgers = served.parties.ledgers.values()
    tasks = [task for each in ledgers for data in each.summary().data for task in data.tasks]
    return [int(served.client().get("/api/budget").json()["charged"]), *(t.answered for t in tasks)]


def test_a_batch_that_cannot_be_released_is_refused_by_name_and_nothing_is_charged(
    served: Served,
) -> None:
    runner = take_away(served, *MISSING)
    refused = served.client().post("/api/batches", json={"rows": ROWS})
    assert refused.status_code == 503
    assert int(refused.headers["Retry-After"]) > 0
    for index in MISSING:
        assert f"{runner.task.teachers[index - 1].name} ({index}, offline)" in refused.text
    assert "3 of 5 teachers are there, and a batch needs 4" in refused.json()["detail"]
    assert "insist" in refused.json()["hint"]
    assert set(charged(served)) == {0}
    assert served.client().get("/api/batches").json() == []


def test_the_same_request_goes_through_when_they_are_back(served: Served) -> None:
    runner = take_away(served, *MISSING)
    client = served.client()
    headers = {"Idempotency-Key": "monday"}
    assert client.post("/api/batches", json={"rows": ROWS}, headers=headers).status_code == 503
    served.embedded.channel.silent.clear()
    for each in MISSING:
        runner.teachers[each].is_online = True
    assert ask(client, ROWS, key="monday")["stage"] == "released"


def test_as_many_as_may_vanish_are_not_missed(served: Served) -> None:
    take_away(served, MISSING[0])
    assert ask(served.client(), ROWS)["stage"] == "released"


def test_one_who_is_left_out_counts_as_missing(served: Served) -> None:
    """Online or not: it takes part in no new batch until an operator lets it in."""
    runner = take_away(served, MISSING[0])
    stored: StoredBatches = runner._aggregator._stored
    stored.put_culprit(Culprit(teacher=3, batch_id=bytes(32), reason="a wrong seed"))  # type: ignore[arg-type]
    refused = served.client().post("/api/batches", json={"rows": ROWS})
    assert refused.status_code == 503
    assert "(3, left out)" in refused.json()["detail"]


def test_who_insists_is_served_and_pays() -> None:
    with serve_embedded(deadline_seconds=1) as served:
        take_away(served, *MISSING)
        state = ask(served.client(), ROWS, insist=True)
        assert state["stage"] == "aborted"
        assert set(MISSING) <= set(state["missing"])  # a busy machine may miss others too
        assert served.client().get("/api/budget").json()["charged"] == len(ROWS)


def test_rows_that_were_released_before_need_nobody(served: Served) -> None:
    client = served.client()
    ask(client, ROWS)
    take_away(served, 1, 2, 3, 4, 5)
    assert ask(client, ROWS)["charged"] == 0


def test_the_command_says_who_is_missing_and_insists_when_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GatewayConnection.__init__, "__kwdefaults__", {"patience_seconds": 0})
    (tmp_path / "token").write_text(ALICE, encoding="utf-8")
    (tmp_path / "rows.csv").write_text("first,second\n1,2\n", encoding="utf-8")
    with serve_embedded(deadline_seconds=1) as served:
        asked = (
            f"query --gateway {served.address} --token-file {tmp_path / 'token'} "
            f"--input {tmp_path / 'rows.csv'} --out {tmp_path / 'labels.csv'}"
        )
        take_away(served, *MISSING)
        refused = run_dppp(asked)
        assert refused.returncode == 1
        assert "(2, offline)" in refused.stderr
        assert "--insist" in refused.stderr
        assert "the batch was aborted" in run_dppp(f"{asked} --insist").stderr
