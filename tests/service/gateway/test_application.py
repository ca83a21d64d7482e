"""The gateway over real HTTP, with a small federation behind it."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np
import pytest
from tests.protocol.small import CLASS_NAMES, FEATURES, certificate, first_feature, small
from tests.service.gateway.served import serve
from tests.small_federation import cast_each_vote

from dppp.errors import InputError
from dppp.federation import Parties, create_federation
from dppp.privacy.noise import Noise, pmf_of
from dppp.protocol.batch_store import MemoryBatchStore
from dppp.protocol.messages import MOST_QUERIES, Ballot
from dppp.protocol.receipt import verify_receipt
from dppp.protocol.transcript import verify_transcript
from dppp.protocol.wire import decode
from dppp.service.gateway.embedded import Embedded, embed_gateway
from dppp.service.gateway.queriers import Querier, make_token

ALICE, ALICE_HASH = make_token()
BOB, BOB_HASH = make_token()
QUERIERS = (
    Querier(name="alice", token_sha256=ALICE_HASH, queries=10_000, transcripts=True),
    Querier(name="bob", token_sha256=BOB_HASH, queries=3),
)
MOST_ROWS = 30


@dataclass(frozen=True)
class Served:
    address: str
    parties: Parties
    embedded: Embedded
    clients: ExitStack

    def client(self, token: str = ALICE) -> httpx.Client:
        headers = {"Authorization": f"Bearer {token}"}
        client = httpx.Client(base_url=self.address, headers=headers, timeout=30)
        return self.clients.enter_context(client)


@contextmanager
def serve_embedded(*, parties: Parties | None = None, **settings: Any) -> Iterator[Served]:
    chosen = parties or small()
    embedded = embed_gateway(chosen, store=MemoryBatchStore(), queriers=QUERIERS, **settings)
    with serve(embedded.app) as address, ExitStack() as clients:
        yield Served(address, chosen, embedded, clients)


@pytest.fixture
def served() -> Iterator[Served]:
    with serve_embedded(most_rows=MOST_ROWS) as served:
        yield served


def ask(client: httpx.Client, rows: list[list[float]], **more: Any) -> dict[str, Any]:
    """Post rows and wait for the end of the batch."""
    headers = {"Idempotency-Key": more.pop("key")} if "key" in more else {}
    posted = client.post("/api/batches", json={"rows": rows, **more}, headers=headers)
    assert posted.status_code == 202, posted.text
    return wait_for_end(client, posted.json()["id"])


def wait_for_end(client: httpx.Client, identifier: str) -> dict[str, Any]:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        state: dict[str, Any] = client.get(f"/api/batches/{identifier}").json()
        if state["stage"] in ("released", "aborted"):
            return state
        time.sleep(0.02)
    raise AssertionError(f"the batch did not end: {state}")


def test_rows_become_labels_with_a_transcript_that_verifies(served: Served) -> None:
    client = served.client()
    state = ask(client, [[0.0, 1.0], [1.0, 5.0], [2.0, 0.0]])
    assert state["charged"] == 3
    found = client.get(f"/api/batches/{state['id']}/labels").json()
    assert found["classes"] == list(CLASS_NAMES)
    assert len(found["labels"]) == 3
    for label in found["labels"]:
        best = max(label["counts"])
        assert label["counts"][CLASS_NAMES.index(label["label"])] == best
    transcript = client.get(f"/api/batches/{state['id']}/transcript").content
    verified = verify_transcript(transcript, insecure_testing=True)
    assert [list(each.counts) for each in verified.answers] == [
        label["counts"] for label in found["labels"]
    ]


def test_every_querier_gets_a_receipt_that_verifies_and_holds_no_ballot(served: Served) -> None:
    bob = served.client(BOB)
    state = ask(bob, [[1.0, 7.0]])
    receipt = bob.get(f"/api/batches/{state['id']}/receipt").content
    found = bob.get(f"/api/batches/{state['id']}/labels").json()["labels"]
    verified = verify_receipt(receipt, insecure_testing=True)
    assert [list(each.counts) for each in verified.answers] == [each["counts"] for each in found]
    batch = bytes.fromhex(state["batch"])
    for ledger in served.parties.ledgers.values():
        ballot = ledger.find_ballot(batch)
        assert ballot is not None
        assert decode(ballot, Ballot).ciphertexts not in receipt


def test_every_label_says_how_often_noise_alone_gives_its_lead(served: Served) -> None:
    client = served.client()
    state = ask(client, [[0.0, 2.0], [1.0, 6.0], [2.0, 1.0]])
    noise = certificate().noise.of_teachers(len(served.parties.teachers))
    for label in client.get(f"/api/batches/{state['id']}/labels").json()["labels"]:
        first, second = sorted(label["counts"])[-1:-3:-1]
        assert label["lead_by_noise"] == pytest.approx(two_sided(noise, first - second))


def test_a_teacher_of_several_votes_changes_the_lead_and_not_what_noise_explains() -> None:
    parties = create_federation(
        name="unequal",
        class_names=CLASS_NAMES,
        features=FEATURES,
        certificate=certificate(),
        models=[[first_feature] * votes for votes in (1, 4, 1, 2, 1)],
    )
    with serve_embedded(parties=parties) as served:
        client = served.client()
        state = ask(client, [[1.0, float(place)] for place in range(20)])
        found = client.get(f"/api/batches/{state['id']}/labels").json()["labels"]
    noise = certificate().noise.of_teachers(5)
    for label in found:
        first, second = sorted(label["counts"])[-1:-3:-1]
        assert label["lead_by_noise"] == pytest.approx(two_sided(noise, first - second))
        assert not label["flagged"]
    assert sum(each["counts"][1] for each in found) / len(found) > 5


def two_sided(noise: Noise, lead: int) -> float:
    """How often the difference of two draws is at least this large, by convolution."""
    masses = pmf_of(noise).masses
    differences = np.convolve(masses, masses[::-1])
    middle = len(masses) - 1
    ahead = float(differences[middle + lead :].sum())
    return 1.0 if lead == 0 else 2 * ahead


def test_counts_that_votes_and_noise_hardly_give_are_flagged_and_counted() -> None:
    """Two teachers with their real keys, who cast twenty votes each where they have one."""
    parties = small()
    with serve_embedded(parties=parties) as served:
        client = served.client()
        honest = ask(client, [[1.0, 1.0]])
        for cheat in (parties.teachers[1], parties.teachers[2]):
            cast_each_vote(cheat, times=20)
        state = ask(client, [[2.0, 2.0], [0.0, 3.0]])
        for batch, expected in ((honest, [False]), (state, [True, True])):
            found = client.get(f"/api/batches/{batch['id']}/labels").json()["labels"]
            assert [each["flagged"] for each in found] == expected
        receipt = client.get(f"/api/batches/{state['id']}/receipt").content
    verified = verify_receipt(receipt, insecure_testing=True)
    assert all(each.is_flagged for each in verified.answers)


def test_records_by_name_are_rows_in_the_order_of_the_features(served: Served) -> None:
    client = served.client()
    by_name = [dict(zip(reversed(FEATURES), [7.0, 1.0], strict=True))]
    posted = client.post("/api/batches", json={"records": by_name})
    wait_for_end(client, posted.json()["id"])
    again = ask(client, [[1.0, 7.0]])
    assert again["charged"] == 0  # the same input, so it is known


def test_the_same_key_is_charged_once_and_other_rows_under_it_are_refused(served: Served) -> None:
    client = served.client()
    first = ask(client, [[1.0, 1.0]], key="monday")
    second = ask(client, [[1.0, 1.0]], key="monday")
    assert first["id"] == second["id"]
    assert client.get("/api/budget").json()["charged"] == 1
    other = client.post(
        "/api/batches", json={"rows": [[2.0, 2.0]]}, headers={"Idempotency-Key": "monday"}
    )
    assert other.status_code == 409
    assert "other rows" in other.json()["detail"]


def test_known_rows_are_free_and_fresh_ones_cost(served: Served) -> None:
    client = served.client()
    ask(client, [[1.0, 1.0], [1.0, 1.0], [0.0, 1.0]])
    assert client.get("/api/budget").json()["charged"] == 2
    known = ask(client, [[0.0, 1.0], [1.0, 1.0]])
    assert known["charged"] == 0
    assert known["batch"] is None
    none = client.get(f"/api/batches/{known['id']}/transcript")
    assert none.status_code == 409
    assert "released before, so it has no batch" in none.json()["detail"]
    ask(client, [[0.0, 1.0]], fresh=True)
    budget = client.get("/api/budget").json()
    assert budget["charged"] == 3
    assert budget["left"] == budget["queries"] - 3
    assert 0 < budget["epsilon_spent"] < budget["epsilon"]


def test_past_the_budget_and_past_an_allowance_nothing_is_asked(served: Served) -> None:
    bob = served.client(BOB)
    ask(bob, [[0.0, 0.0], [0.0, 1.0]])
    refused = bob.post("/api/batches", json={"rows": [[0.0, 2.0], [0.0, 3.0]]})
    assert refused.status_code == 403
    assert "1 are left for bob" in refused.json()["detail"]
    assert refused.json()["hint"] == "ask for fewer, or for rows that were released before"
    assert ask(bob, [[0.0, 2.0]])["stage"] == "released"
    alice, left = served.client(), certificate().promise.queries - 3
    ask(alice, [[1.0, float(place)] for place in range(30)])
    ask(alice, [[2.0, float(place)] for place in range(left - 30)])
    refused = alice.post("/api/batches", json={"rows": [[0.0, 9.0]]})
    assert refused.status_code == 403
    budget = alice.get("/api/budget").json()
    assert budget["left"] == 0
    assert budget["epsilon_spent"] == pytest.approx(budget["epsilon"], rel=1e-3)
    assert ask(alice, [[1.0, 0.0]])["charged"] == 0  # released before, so still free


@pytest.mark.parametrize("queries", [0, -1, True, 1.5, float("nan"), "9", None])
def test_nobody_is_a_querier_without_an_allowance(queries: Any) -> None:
    with pytest.raises(InputError, match="may spend must be a whole number, 1 or more"):
        Querier(name="carol", token_sha256=BOB_HASH, queries=queries)


BAD = {
    "no rows": ({"rows": []}, 422, "rows"),
    "neither rows nor records": ({}, 422, "either rows or records"),
    "both": ({"rows": [[1, 1]], "records": [{"first": 1, "second": 1}]}, 422, "either"),
    "too narrow": ({"rows": [[1.0]]}, 422, "row 0 has 1 values"),
    "ragged": ({"rows": [[1.0, 1.0], [1.0]]}, 422, "row 1 has 1 values"),
    "text": ({"rows": [["a", "b"]]}, 422, "number"),
    "null": ({"rows": [[None, 1.0]]}, 422, "number"),
    "unknown feature": ({"records": [{"first": 1, "second": 1, "third": 1}]}, 422, "'third'"),
    "missing feature": ({"records": [{"first": 1}]}, 422, "'second' is missing"),
    "unknown class": ({"rows": [[1, 1]], "classes": ["no", "never"]}, 422, "no class 'never'"),
    "unknown key": ({"rows": [[1, 1]], "colour": 1}, 422, "colour"),
    "too many": ({"rows": [[1, place] for place in range(MOST_ROWS + 1)]}, 413, "31 rows"),
    "a list": ([1], 422, "body"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_malformed_batch_is_refused_with_a_reason_and_charges_nothing(
    served: Served, name: str
) -> None:
    body, code, reason = BAD[name]
    client = served.client()
    refused = client.post("/api/batches", json=body)
    assert refused.status_code == code, refused.text
    assert reason in refused.json()["detail"]
    assert client.get("/api/budget").json()["charged"] == 0


@pytest.mark.parametrize("key", ["", "a b", "x" * 201], ids=["empty", "two words", "too long"])
def test_a_key_that_is_none_is_refused(served: Served, key: str) -> None:
    client = served.client()
    headers = {"Idempotency-Key": key}
    refused = client.post("/api/batches", json={"rows": [[1, 1]]}, headers=headers)
    assert refused.status_code == 422
    assert "Idempotency-Key" in refused.json()["detail"]
    assert client.get("/api/budget").json()["charged"] == 0


def test_more_rows_than_a_batch_can_hold_are_refused_whatever_the_gateway_would_take() -> None:
    with serve_embedded(most_rows=MOST_QUERIES + 1) as served:
        rows = [[1, place] for place in range(MOST_QUERIES + 1)]
        refused = served.client().post("/api/batches", json={"rows": rows})
    assert refused.status_code == 413
    assert refused.json()["hint"] == "split it"


def test_what_is_not_released_yet_is_not_told(served: Served) -> None:
    client = served.client()
    served.embedded.channel.silent |= {1, 2, 3, 4, 5}
    posted = client.post("/api/batches", json={"rows": [[1.0, 1.0]]}).json()
    for path in ("labels", "transcript", "verification"):
        refused = client.get(f"/api/batches/{posted['id']}/{path}")
        assert refused.status_code == 409
        assert "still under way" in refused.json()["detail"]


def test_a_gateway_whose_runner_has_stopped_is_not_well() -> None:
    embedded = embed_gateway(small(), store=MemoryBatchStore(), queriers=QUERIERS)

    async def look() -> httpx.Response:
        """Without a server, so that nothing starts the runner."""
        transport = httpx.ASGITransport(embedded.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            return await client.get("/health")

    found = asyncio.run(look())
    assert found.status_code == 503
    assert "the runner of batches has stopped" in found.json()["detail"]


@pytest.mark.parametrize("body", ['{"rows": [[NaN, 1]]}', '{"rows": [[1e999, 1]]}', "{", "\xff"])
def test_bytes_that_are_no_json_or_no_finite_number_are_refused(served: Served, body: str) -> None:
    client = served.client()
    refused = client.post(
        "/api/batches",
        content=body.encode("latin-1"),
        headers={"Content-Type": "application/json"},
    )
    assert refused.status_code in (400, 422)
    assert refused.json()["detail"]


@pytest.mark.parametrize(
    "token",
    ["", "wrong", ALICE_HASH, ALICE[:-1], "ü"],
    ids=["none", "wrong", "its hash", "shortened", "umlaut"],  # the same for all workers of xdist
)
def test_without_a_right_token_nothing_is_told(served: Served, token: str) -> None:
    headers = {b"Authorization": f"Bearer {token}".encode()} if token else {}
    with httpx.Client(base_url=served.address, headers=headers) as client:
        for path in (
            "task",
            "budget",
            "rights",
            "teachers",
            "events",
            f"batches/{'0' * 64}/labels",
        ):
            refused = client.get(f"/api/{path}")
            assert refused.status_code == 401
            assert "token" in refused.json()["detail"]
        assert client.post("/api/batches", json={"rows": [[1, 1]]}).status_code == 401


def test_a_querier_sees_nothing_of_anothers_batch(served: Served) -> None:
    state = ask(served.client(), [[1.0, 1.0]])
    bob = served.client(BOB)
    for path in ("", "/labels", "/verification", "/events"):
        assert bob.get(f"/api/batches/{state['id']}{path}").status_code == 404
    assert bob.get(f"/api/batches/{state['id']}/transcript").status_code == 403


def test_a_full_transcript_is_for_a_token_with_the_right_and_for_its_own_batches(
    served: Served,
) -> None:
    alice, bob = served.client(ALICE), served.client(BOB)
    own, others = ask(alice, [[1.0, 1.0]]), ask(bob, [[2.0, 2.0]])
    assert alice.get(f"/api/batches/{own['id']}/transcript").status_code == 200
    assert alice.get(f"/api/batches/{others['id']}/transcript").status_code == 404
    refused = bob.get(f"/api/batches/{others['id']}/transcript")
    assert refused.status_code == 403
    assert "holds all ballots" in refused.json()["detail"]
    assert "a querier gets receipts" in refused.json()["detail"]
    assert "transcripts = true" in refused.json()["hint"]
    missing = bob.get(f"/api/batches/{'0' * 64}/transcript")
    assert (missing.status_code, missing.json()) == (403, refused.json())
    assert bob.get(f"/api/batches/{others['id']}/labels").status_code == 200


def test_a_token_is_told_what_it_may_do(served: Served) -> None:
    assert served.client(ALICE).get("/api/rights").json()["transcripts"] is True
    told = served.client(BOB).get("/api/rights").json()
    assert told == {"name": "bob", "queries": 3, "transcripts": False}


def test_the_events_of_a_batch_tell_its_stages_in_order_and_end(served: Served) -> None:
    client = served.client()
    events: list[dict[str, Any]] = []
    watching = threading.Event()

    def watch() -> None:
        with client.stream("GET", "/api/events") as stream:
            watching.set()
            for line in stream.iter_lines():
                if line.startswith("data:"):
                    events.append(json.loads(line[5:]))
                if events and events[-1].get("stage") in ("released", "aborted"):
                    return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    assert watching.wait(10)
    time.sleep(0.3)
    state = ask(client, [[1.0, 1.0]])
    thread.join(10)
    assert not thread.is_alive()
    own = [event for event in events if event.get("batch") == state["batch"]]
    stages = list(dict.fromkeys(event["stage"] for event in own))
    # The answer that opens comes with the release: there may be no event of its own for answers.
    assert [stage for stage in stages if stage != "answers"] == [
        "votes",
        "ballots",
        "tally",
        "endorsements",
        "released",
    ]
    assert stages[-1] == "released"
    assert [event["teacher"] for event in own if event["stage"] == "ballots"] != []
    with client.stream("GET", f"/api/batches/{state['id']}/events") as stream:
        assert "event: end" in list(stream.iter_lines())


def test_silent_teachers_are_seen_and_too_many_abort_by_name(served: Served) -> None:
    client = served.client()
    served.embedded.channel.silent |= {2}
    assert ask(client, [[1.0, 1.0]])["stage"] == "released"
    states = {each["teacher"]: each for each in client.get("/api/teachers").json()}
    assert states[2]["missed"] == 1
    assert states[1]["ballots"] == 1
    assert client.get("/health").json()["status"] == "ok"


def test_a_batch_that_aborts_says_who_was_missing_and_stays_charged() -> None:
    with serve_embedded(deadline_seconds=6) as served:
        served.embedded.channel.silent |= {2, 4}
        client = served.client()
        state = ask(client, [[1.0, 1.0]])
        assert state["stage"] == "aborted"
        assert state["missing"] == [2, 4]
        gone = client.get(f"/api/batches/{state['id']}/labels")
        assert gone.status_code == 410
        assert "teachers 2, 4" in gone.json()["detail"]
        assert client.get("/api/budget").json()["charged"] == 1


def test_the_task_is_described_and_nothing_under_openapi_comes_from_elsewhere(
    served: Served,
) -> None:
    client = served.client()
    task = client.get("/api/task").json()
    assert task["classes"] == list(CLASS_NAMES)
    assert task["queries"] == certificate().promise.queries
    described = client.get("/openapi.json").json()
    assert "/api/batches" in described["paths"]
    assert client.get("/docs").status_code == 404


def test_a_body_over_the_limit_is_refused_while_it_is_read(served: Served) -> None:
    client = served.client()
    refused = client.post(
        "/api/batches",
        content=b" " * (65 * 2**20),
        headers={"Content-Type": "application/json"},
    )
    assert refused.status_code == 413


def test_the_privacy_card_is_served_in_every_form_to_whoever_has_a_token(served: Served) -> None:
    client = served.client(BOB)
    task = served.parties.task
    for form, kind in (("html", "text/html"), ("markdown", "text/markdown"), ("yaml", "yaml")):
        answer = client.get("/api/card", params={"form": form})
        assert kind in answer.headers["content-type"]
        assert task.task_id.hex() in answer.text
        assert "aggregator's count" in answer.text.replace("&#x27;", "'")
    assert client.get("/api/card", params={"form": "pdf"}).status_code == 422
    assert served.client("nobody").get("/api/card").status_code == 401
