"""Single queries of several queriers in one batch, from the gateway's doors to each one's label."""

import asyncio
import base64
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.protocol.small import CLASS_NAMES, certain
from tests.service.gateway.served import serve
from tests.service.gateway.test_application import wait_for_end
from tests.service.gateway.test_jobs import Failing

from dppp.federation import Parties
from dppp.protocol.batch_store import BatchStore, Kind, MemoryBatchStore
from dppp.protocol.inputs import encode_rows
from dppp.protocol.messages import BatchId, BatchRequest, SealedQueries
from dppp.protocol.receipt import verify_receipt
from dppp.protocol.rows import make_row_secret, row_key_of, seal_rows
from dppp.protocol.wire import encode
from dppp.service.gateway import gathering
from dppp.service.gateway.embedded import embed_gateway
from dppp.service.gateway.gathering import Gatherer
from dppp.service.gateway.places import Places
from dppp.service.gateway.queriers import Querier, make_token
from dppp.service.querier.connection import GatewayConnection
from dppp.service.stores.sqlite.batches import SqliteBatchStore

SECONDS = 1.0
"""Longer than a slow machine takes for three posts that are sent at once."""
NAMES = ("alice", "bob", "carol")
APART = "dora"
TOKENS = {name: make_token() for name in (*NAMES, APART)}
QUERIERS = [
    Querier(name=name, token_sha256=digest, queries=20, share=name != APART)
    for name, (_, digest) in TOKENS.items()
]


@dataclass(frozen=True)
class Shared:
    parties: Parties
    store: BatchStore
    clients: dict[str, httpx.Client]

    def post(self, name: str, body: dict[str, Any], key: str = "") -> httpx.Response:
        headers = {"Idempotency-Key": key} if key else {}
        return self.clients[name].post("/api/batches", json=body, headers=headers)

    def ask(self, bodies: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """What each querier's job came to, all of them posted in one moment."""
        ready = threading.Barrier(len(bodies))

        def one(name: str) -> dict[str, Any]:
            ready.wait(30)
            posted = self.post(name, bodies[name])
            assert posted.status_code == 202, posted.text
            return wait_for_end(self.clients[name], posted.json()["id"])

        with ThreadPoolExecutor(len(bodies)) as threads:
            return dict(zip(bodies, threads.map(one, bodies), strict=True))

    def labels(self, name: str, state: dict[str, Any]) -> list[dict[str, Any]]:
        found = self.clients[name].get(f"/api/batches/{state['id']}/labels").json()
        labels: list[dict[str, Any]] = found["labels"]
        return labels


@contextmanager
def gateway(
    parties: Parties | None = None, store: BatchStore | None = None, seconds: float = SECONDS
) -> Iterator[Shared]:
    chosen, kept = parties or certain(), store or MemoryBatchStore()
    embedded = embed_gateway(chosen, store=kept, queriers=QUERIERS, gather_seconds=seconds)
    with serve(embedded.app) as address, ExitStack() as stack:
        clients = {
            name: stack.enter_context(
                httpx.Client(
                    base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=60
                )
            )
            for name, (token, _) in TOKENS.items()
        }
        yield Shared(chosen, kept, clients)


def single(label: int, **more: Any) -> dict[str, Any]:
    return {"rows": [[float(label), 1.0]], **more}


def sealed(parties: Parties, label: int) -> SealedQueries:
    key = row_key_of(make_row_secret(), parties.task.task_id)
    return seal_rows(parties.task, key, encode_rows([[float(label), 1.0]], 2))


def posted(queries: SealedQueries) -> dict[str, Any]:
    return {
        "query_ids": base64.b64encode(queries.query_ids).decode(),
        "sealed": base64.b64encode(encode(queries)).decode(),
    }


@pytest.mark.parametrize("is_masked", [False, True])
def test_singles_of_one_moment_share_a_batch_and_each_querier_gets_its_own_label(
    is_masked: bool,
) -> None:
    with gateway(certain(is_masked=is_masked)) as shared:
        ended = shared.ask({name: single(label) for label, name in enumerate(NAMES)})
        assert len({state["batch"] for state in ended.values()}) == 1
        assert len(shared.store.having(Kind.REQUEST)) == 1
        receipts = set()
        for label, name in enumerate(NAMES):
            (found,) = shared.labels(name, ended[name])
            assert found["label"] == CLASS_NAMES[label]
            client, job = shared.clients[name], ended[name]["id"]
            assert client.get("/api/budget").json()["yours"] == 1
            (seen, *_) = client.get("/api/batches").json()
            assert (
                seen["times"][-1]["stage"] == "released"
            )  # it was told of the batch that it shares
            receipts.add(client.get(f"/api/batches/{job}/receipt").content)
        (receipt,) = receipts  # each sees the counts of all, as the documents say
        assert len(verify_receipt(receipt, insecure_testing=True).answers) == len(NAMES)
        again = shared.post("alice", single(0)).json()
        assert (again["stage"], again["charged"]) == ("released", 0)


def test_who_refuses_to_share_and_who_may_not_has_a_batch_of_its_own() -> None:
    with gateway() as shared:
        bodies = {"alice": single(0), "bob": single(1), "carol": single(2, share=False)}
        ended = shared.ask(bodies | {APART: single(1)})
        batches = {name: state["batch"] for name, state in ended.items()}
        assert batches["alice"] == batches["bob"]
        assert len(set(batches.values())) == 3
        for name in ("carol", APART):
            receipt = shared.clients[name].get(f"/api/batches/{ended[name]['id']}/receipt")
            assert len(verify_receipt(receipt.content, insecure_testing=True).answers) == 1


def test_without_the_setting_nobody_shares() -> None:
    with gateway(seconds=0) as shared:
        ended = shared.ask({name: single(label) for label, name in enumerate(NAMES)})
        assert len({state["batch"] for state in ended.values()}) == len(NAMES)


def test_several_rows_and_a_lonely_single_are_batches_of_their_own() -> None:
    with gateway(seconds=0.05) as shared:
        for body in (single(1), {"rows": [[0.0, 2.0], [1.0, 2.0]]}):
            (state,) = shared.ask({"alice": body}).values()
            rows = state["rows"]
            assert len(shared.labels("alice", state)) == rows
        assert shared.store.having(Kind.PLACE) == ()


@pytest.mark.attack
def test_a_querier_of_garbage_neither_holds_the_others_up_nor_spends_their_queries() -> None:
    parties = certain()
    bad = sealed(parties, 1)
    with gateway(parties) as shared:
        bodies = {
            "alice": single(2),
            "bob": posted(replace(bad, sealed=bytes(len(bad.sealed)))),
            "carol": posted(sealed(parties, 0)),
        }
        ended = shared.ask(bodies)
        assert {state["stage"] for state in ended.values()} == {"released"}
        assert len({state["batch"] for state in ended.values()}) == 1
        assert shared.labels("alice", ended["alice"])[0]["label"] == CLASS_NAMES[2]
        assert shared.labels("carol", ended["carol"])[0]["label"] == CLASS_NAMES[0]
        spent = {name: shared.clients[name].get("/api/budget").json()["yours"] for name in NAMES}
        assert spent == {"alice": 1, "bob": 1, "carol": 1}
    for ledger in parties.ledgers.values():
        assert ledger.summary().data[0].tasks[0].answered == 2


@pytest.mark.attack
def test_a_querier_who_asks_again_about_what_was_aborted_or_released_spoils_nothing() -> None:
    parties = certain()
    with gateway(parties) as shared:
        old = sealed(parties, 1)
        for ledger in parties.ledgers.values():  # as after a batch that was aborted
            ledger.record_ballot(parties.task.task_id, bytes(32), (old.query_ids,), b"ballot")
        ended = shared.ask({"alice": single(2), "bob": posted(old)})
        assert {state["stage"] for state in ended.values()} == {"released"}
        assert shared.labels("alice", ended["alice"])[0]["label"] == CLASS_NAMES[2]


def test_a_shared_batch_that_could_not_be_stored_is_started_by_the_same_keys() -> None:
    store = Failing(MemoryBatchStore(), Kind.REQUEST, failures=1)
    with gateway(store=store) as shared:
        with ThreadPoolExecutor(2) as threads:
            first = [
                threads.submit(shared.post, name, single(label), "monday")
                for label, name in enumerate(NAMES[:2])
            ]
            assert [each.result().status_code for each in first] == [503, 503]
        for label, name in enumerate(NAMES[:2]):
            answer = shared.post(name, single(label), "monday")
            assert answer.status_code == 202
            state = wait_for_end(shared.clients[name], answer.json()["id"])
            assert shared.labels(name, state)[0]["label"] == CLASS_NAMES[label]
            assert shared.clients[name].get("/api/budget").json()["yours"] == 1
        assert len(store.having(Kind.REQUEST)) == 1


def test_after_a_restart_each_still_has_its_own_label_of_the_shared_batch(tmp_path: Path) -> None:
    parties, store = certain(), SqliteBatchStore(tmp_path / "batches.db")
    with gateway(parties, store) as shared:
        ended = shared.ask({name: single(label) for label, name in enumerate(NAMES)})
        before = {name: shared.labels(name, state) for name, state in ended.items()}
    with gateway(parties, store) as shared:
        for label, name in enumerate(NAMES):
            assert shared.labels(name, ended[name]) == before[name]
            found = shared.post(name, single(label), "again").json()
            assert (found["stage"], found["charged"]) == ("released", 0)
    store.close()


def test_who_asks_by_the_program_can_refuse_to_share() -> None:
    parties = certain()
    with gateway(parties) as shared, ThreadPoolExecutor(2) as threads:

        def ask(name: str, label: int) -> str:
            own = sealed(parties, label)
            address, token = str(shared.clients[name].base_url), TOKENS[name][0]
            with GatewayConnection(address, token) as connection:
                job = connection.submit(own.query_ids, own, key="alone", share=False)
                connection.wait(job, lambda _: None)
            return job

        jobs = list(threads.map(ask, NAMES[:2], (0, 1)))
        assert len(set(jobs)) == len(shared.store.having(Kind.REQUEST)) == 2
        assert shared.store.having(Kind.PLACE) == ()


@pytest.mark.attack
def test_a_batch_that_never_ends_holds_nobody_up_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "_LONGEST_WAIT_SECONDS", 0.05)
    parties = certain()
    sent: list[BatchId] = []

    async def dispatch(request: BatchRequest) -> None:
        sent.append(request.batch_id)  # and nobody ever ends it

    async def story() -> None:
        gatherer = Gatherer(Places(MemoryBatchStore(), time.time), dispatch, seconds=0.01)
        for label in (0, 1):
            await gatherer.send(BatchRequest(deadline=2**40, queries=sealed(parties, label)))

    asyncio.run(asyncio.wait_for(story(), 60))
    assert len(sent) == 2


@pytest.mark.attack
def test_a_job_that_is_gone_on_with_at_its_last_second_cuts_nobodys_time_short() -> None:
    parties = certain()
    sent: list[BatchRequest] = []
    store = MemoryBatchStore()

    async def dispatch(request: BatchRequest) -> None:
        sent.append(request)
        store.put_once(request.batch_id, Kind.OUTCOME, b"")

    async def story() -> None:
        gatherer = Gatherer(Places(store, time.time), dispatch, seconds=0.05)
        deadlines = (1000, 401, 1002, 995)
        asked = [
            BatchRequest(deadline=deadline, queries=sealed(parties, 1)) for deadline in deadlines
        ]
        await asyncio.gather(*map(gatherer.send, asked))

    asyncio.run(asyncio.wait_for(story(), 60))
    assert sorted((each.deadline, len(each.parts)) for each in sent) == [
        (401, 1),
        (995, 2),
        (1000, 1),
    ]


def test_those_who_shared_a_batch_are_waited_for_and_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gathering, "_LONGEST_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(gathering, "_PART_FOR_RETURN", 1e9)
    monkeypatch.setattr(gathering, "_MOST_FOR_RETURN_SECONDS", 1e9)  # so it ends by their coming
    parties = certain()
    parts: list[int] = []

    async def dispatch(request: BatchRequest) -> None:
        parts.append(1 + len(request.others))

    async def story() -> None:
        gatherer = Gatherer(Places(MemoryBatchStore(), time.time), dispatch, seconds=0.01)

        def send() -> asyncio.Task[None]:
            return asyncio.create_task(
                gatherer.send(BatchRequest(deadline=2**40, queries=sealed(parties, 0)))
            )

        await asyncio.gather(send(), send())
        first = send()
        await asyncio.sleep(0.1)  # the moment of the first is long over
        assert not first.done()
        await asyncio.gather(first, send())
        monkeypatch.setattr(gathering, "_MOST_FOR_RETURN_SECONDS", 0.01)
        await send()  # the other one does not come back
        monkeypatch.setattr(gathering, "_MOST_FOR_RETURN_SECONDS", 1e9)
        await send()  # who was alone waits for nobody
        monkeypatch.setattr(gathering, "_LONGEST_WAIT_SECONDS", 0.05)
        came_meanwhile = send()  # and so is not of the batch before, whose only one may come again
        await asyncio.sleep(0.2)
        assert not came_meanwhile.done()
        await asyncio.gather(came_meanwhile, send())

    asyncio.run(asyncio.wait_for(story(), 60))
    assert parts == [2, 2, 1, 1, 2]
