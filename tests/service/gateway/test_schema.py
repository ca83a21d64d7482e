"""The gateway keeps to its own OpenAPI description, whatever schemathesis sends it.

Left out are the two streams of events: the one never ends by itself, the other not before its
batch does. They have tests of their own (test_gateway.py).
"""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    negative_data_rejection,
    positive_data_acceptance,
)
from tests.protocol.small import small
from tests.service.gateway.served import serve

from dppp.protocol.batch_store import MemoryBatchStore
from dppp.service.gateway.embedded import embed_gateway
from dppp.service.gateway.job import MOST_RECENT
from dppp.service.gateway.queriers import Querier, make_token

TOKEN, TOKEN_HASH = make_token()
STREAMS = {("GET", "/api/events"), ("GET", "/api/batches/{batch}/events")}
OPERATIONS = (
    ("GET", "/health"),
    ("GET", "/api/task"),
    ("GET", "/api/task/terms"),
    ("GET", "/api/budget"),
    ("GET", "/api/budget/steps"),
    ("GET", "/api/card"),
    ("GET", "/api/card/lines"),
    ("GET", "/api/rights"),
    ("GET", "/api/teachers"),
    ("GET", "/api/plan"),
    ("GET", "/api/examples"),
    ("POST", "/api/released"),
    ("POST", "/api/batches"),
    ("GET", "/api/batches"),
    ("GET", "/api/batches/{batch}"),
    ("GET", "/api/batches/{batch}/labels"),
    ("GET", "/api/batches/{batch}/receipt"),
    ("GET", "/api/batches/{batch}/transcript"),
    ("GET", "/api/batches/{batch}/verification"),
)
MORE_THAN_A_SCHEMA = {
    ("POST", "/api/released"),
    ("POST", "/api/batches"),
    ("GET", "/api/plan"),
}
"""Whether a row has the task's features, or N, C and D agree, no schema can say: 422 is right."""
WITH_A_LIMIT = {("GET", "/api/batches"), ("GET", "/api/budget/steps")}
EXAMPLES = 30


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    embedded = embed_gateway(
        small(),
        store=MemoryBatchStore(),
        queriers=[Querier(name="alice", token_sha256=TOKEN_HASH, queries=100, transcripts=True)],
        most_rows=30,
        insecure_testing=True,
        page=True,
    )
    with serve(embedded.app) as address:
        yield address


@pytest.fixture(scope="module")
def described(address: str) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"{address}/openapi.json")


def test_every_operation_but_the_streams_is_tried_here(described: schemathesis.BaseSchema) -> None:
    found = set()
    for described_here in described.get_all_operations():
        assert isinstance(described_here, Ok)
        operation = described_here.ok()
        found.add((operation.method.upper(), operation.path))
    assert found == {*OPERATIONS, *STREAMS}


def _is_right(case: schemathesis.Case[Any]) -> bool:
    """Whether what is sent is right after all.

    The test adds the token that a wrong request may lack, and a parameter without a value is not
    sent. So a request with nothing but a limit, or nothing at all, can be right.
    """
    if (case.method, case.path) not in WITH_A_LIMIT:
        return False
    sent = requests.Request(case.method, "http://localhost/", params=case.query).prepare()
    pairs = parse_qsl(urlsplit(sent.url or "").query, keep_blank_values=True)
    return [name for name, _ in pairs] in ([], ["limit"]) and all(
        value.isascii() and value.isdigit() and 1 <= int(value) <= MOST_RECENT for _, value in pairs
    )


@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_whatever_is_sent_is_answered_as_described(
    described: schemathesis.BaseSchema, method: str, path: str, mode: GenerationMode
) -> None:
    if mode is GenerationMode.NEGATIVE and path == "/health":
        return  # it takes nothing, so nothing can be wrong
    excluded: list[Any] = [positive_data_acceptance] if (method, path) in MORE_THAN_A_SCHEMA else []

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=described[path][method].as_strategy(generation_mode=mode))
    def send(case: schemathesis.Case[Any]) -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        left_out = [*excluded, negative_data_rejection] if _is_right(case) else excluded
        case.call_and_validate(headers=headers, excluded_checks=left_out, timeout=120)

    send()
