"""What the gateway answers for the page: recent batches, verification, plans, examples."""

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.protocol.small import certificate, small
from tests.service.gateway.test_application import ALICE, BOB, QUERIERS, Served, ask, serve_embedded

from dppp.errors import Abandoned, Busy
from dppp.privacy.calibration import calibrate
from dppp.protocol.batch_store import MemoryBatchStore
from dppp.protocol.messages import BatchId
from dppp.protocol.receipt import Receipt
from dppp.protocol.wire import decode
from dppp.service.batches.hub import MOST_BATCHES, StageTimes
from dppp.service.gateway.desk import check_receipt
from dppp.service.gateway.embedded import embed_gateway
from dppp.service.gateway.page_files import read_page
from dppp.service.gateway.schemas import FEW_LABELS
from dppp.service.gateway.single_flight import SingleFlight

PLAN: dict[str, Any] = {
    "teachers": 20,
    "colluders": 4,
    "dropouts": 2,
    "epsilon": 4,
    "delta": 1e-5,
    "queries": 1,
    "classes": 3,
    "margin": 0.4,
    "noise": "skellam",
}


@pytest.fixture
def served() -> Iterator[Served]:
    with serve_embedded(most_rows=30, insecure_testing=True, page=True) as served:
        yield served


def test_the_last_batches_are_listed_newest_first_with_times_and_a_few_labels(
    served: Served,
) -> None:
    client = served.client()
    first = ask(client, [[1.0, 1.0]])
    many = ask(client, [[1.0, float(place)] for place in range(2, 10)])
    listed = client.get("/api/batches").json()
    assert [each["state"]["id"] for each in listed] == [many["id"], first["id"]]
    assert len(listed[0]["labels"]) == FEW_LABELS
    all_labels = client.get(f"/api/batches/{many['id']}/labels").json()["labels"]
    assert listed[0]["labels"] == all_labels[:FEW_LABELS]
    stages = [each["stage"] for each in listed[0]["times"]]
    assert stages[0] == "votes"
    assert stages[-1] == "released"
    times = [each["at"] for each in listed[0]["times"]]
    assert times == sorted(times)
    assert len(client.get("/api/batches?limit=1").json()) == 1
    for limit in ("0", "51", "x"):
        assert client.get(f"/api/batches?limit={limit}").status_code == 422


def test_the_page_has_its_own_files_and_nothing_else_of_the_disk(served: Served) -> None:
    client = served.client()
    assert client.get("/page/index.html").status_code == 200
    for name in ("none.js", "__init__.py", "..%2Fgateway.py", "%2Fetc%2Fpasswd"):
        refused = client.get(f"/page/{name}")
        assert refused.status_code == 404
    assert "no such file" in client.get("/page/none.js").json()["detail"]


def test_a_querier_lists_and_verifies_its_own_batches_only(served: Served) -> None:
    state = ask(served.client(ALICE), [[1.0, 1.0]])
    bob = served.client(BOB)
    assert bob.get("/api/batches").json() == []
    assert bob.get(f"/api/batches/{state['id']}/verification").status_code == 404
    own = ask(bob, [[2.0, 2.0]])
    assert [each["state"]["id"] for each in bob.get("/api/batches").json()] == [own["id"]]


def test_a_release_is_verified_and_a_free_one_has_no_receipt(served: Served) -> None:
    client = served.client()
    state = ask(client, [[1.0, 1.0]])
    found = client.get(f"/api/batches/{state['id']}/verification").json()
    assert found["is_verified"] is True
    assert (found["ballots"], found["endorsements"]) == (5, 4)
    assert "labels" in found["checks"]
    free = ask(client, [[1.0, 1.0]])
    assert client.get(f"/api/batches/{free['id']}/verification").status_code == 409


def test_a_receipt_that_does_not_hold_is_said_to_be_so_with_the_check(served: Served) -> None:
    client = served.client()
    state = ask(client, [[1.0, 1.0]])
    good = client.get(f"/api/batches/{state['id']}/receipt").content
    assert decode(good, Receipt).answers
    bad = bytearray(good)
    bad[-3] ^= 1
    found = check_receipt(bytes(bad), insecure_testing=True)
    assert found.is_verified is False
    assert found.reason is not None
    assert "check of the" in found.reason
    assert check_receipt(good, insecure_testing=True).is_verified


def test_a_plan_is_what_the_library_says(served: Served) -> None:
    client = served.client()
    planned = client.get("/api/plan", params=PLAN).json()
    wanted = calibrate("skellam", epsilon=4, delta=1e-5, teachers=20, classes=3)
    assert planned["variance"] == wanted.noise.variance
    assert planned["exact_delta"] == wanted.exact_delta
    assert planned["is_certified"] is True
    assert 0.5 < planned["accuracy"] < planned["accuracy_without_noise"] == 1
    paper = client.get(
        "/api/plan", params={**PLAN, "noise": "discrete-gaussian", "calibration": "paper"}
    ).json()
    assert paper["is_certified"] is False
    assert paper["exact_delta"] > paper["promised_delta"]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a contradiction": ({"colluders": 15, "dropouts": 10}, "below teachers"),
    "noise that drowns": ({"epsilon": 0.05, "queries": 1_000}, "drown"),
    "no paper's formula": ({"calibration": "paper"}, "the paper has no calibration"),
    "too many teachers": ({"teachers": 2_000}, "teachers"),
    "no such family": ({"noise": "laplace"}, "noise"),
    "not finite": ({"epsilon": "nan"}, "epsilon"),
    "unknown": ({"colour": 1}, "colour"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_plan_that_cannot_be_is_refused_in_words(served: Served, name: str) -> None:
    change, reason = REFUSED[name]
    refused = served.client().get("/api/plan", params={**PLAN, **change})
    assert refused.status_code == 422
    assert reason in refused.json()["detail"]


def test_the_papers_noise_for_very_many_queries_is_told_by_its_variance(served: Served) -> None:
    wide = {**PLAN, "queries": 1_000, "noise": "binomial", "calibration": "paper"}
    planned = served.client().get("/api/plan", params=wide).json()
    assert planned["exact_delta"] is None
    assert planned["variance"] > 1e6


def test_examples_are_those_that_were_handed_in() -> None:
    rows = [[1.0, 2.0], [0.0, 5.0]]
    with serve_embedded(examples=rows) as served:
        assert served.client().get("/api/examples").json() == {"rows": rows}
    with serve_embedded() as served:
        assert served.client().get("/api/examples").json() == {"rows": []}


def test_without_the_page_there_is_no_page(served: Served) -> None:
    assert served.client().get("/").status_code == 200
    assert set(read_page()) >= {"index.html", "page.css", "main.js"}
    plain = embed_gateway(small(of=certificate()), store=MemoryBatchStore(), queriers=QUERIERS)
    assert "/" not in {getattr(route, "path", None) for route in plain.app.routes}


async def _here() -> bool:
    return False


async def _gone() -> bool:
    return True


def test_work_is_done_once_one_at_a_time_and_not_for_nobody() -> None:
    running, most, calls = 0, 0, 0
    lock = threading.Lock()

    def work() -> int:
        nonlocal running, most, calls
        with lock:
            running, calls = running + 1, calls + 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1
        return calls

    async def run() -> None:
        worker: SingleFlight[str, int] = SingleFlight(most_waiting=3, most_kept=2)
        found = await asyncio.gather(*(worker.find(key, work, _here) for key in ("a", "a", "b")))
        assert found == [1, 1, 2]
        waiting = [asyncio.ensure_future(worker.find(str(key), work, _here)) for key in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await worker.find("one more", work, _here)
        await asyncio.gather(*waiting)
        with pytest.raises(Abandoned):
            await worker.find("nobody's", work, _gone)
        assert await worker.find("a", work, _here) > 2  # only the last two are kept

    asyncio.run(run())
    assert most == 1


def test_times_are_kept_of_the_last_batches_only() -> None:
    times = StageTimes()
    for number in range(MOST_BATCHES + 10):
        times.note(str(number), "votes", number)
        times.note(str(number), "votes", number + 0.5)
    assert times.of("3") == {}
    assert times.of(str(MOST_BATCHES)) == {"votes": MOST_BATCHES}


def test_who_has_gone_makes_room_before_its_turn() -> None:
    gone = False
    release = threading.Event()

    async def is_gone() -> bool:
        return gone

    async def run() -> None:
        nonlocal gone
        worker: SingleFlight[str, bool] = SingleFlight(most_waiting=2, most_kept=9)
        first = asyncio.ensure_future(worker.find("long", lambda: release.wait(30), _here))
        second = asyncio.ensure_future(worker.find("left", lambda: True, is_gone))
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await worker.find("third", lambda: True, _here)
        gone = True
        with pytest.raises(Abandoned):
            await second
        third = asyncio.ensure_future(worker.find("third", lambda: True, _here))
        await asyncio.sleep(0)
        release.set()
        assert [await first, await third] == [True, True]

    asyncio.run(run())


def test_the_end_of_a_batch_is_told_once_whoever_looks_again(served: Served) -> None:
    client = served.client()
    state = ask(client, [[1.0, 1.0]])
    runner = served.embedded.runner
    batch = BatchId(bytes.fromhex(state["batch"]))

    async def look_again() -> int:
        with runner.hub.watch() as events:
            await asyncio.gather(*(runner.refresh(batch) for _ in range(2)), runner.adopt(batch))
            runner.hub.end()
            return len([event async for event in events])

    loop = runner._loops[0].get_loop()
    assert asyncio.run_coroutine_threadsafe(look_again(), loop).result(30) == 0
    assert runner.open_batches == ()
    assert client.get("/health").json()["status"] == "ok"
