"""A querier before a gateway that is none, or lies: one clear line, and the token stays secret."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI, Response
from tests.protocol.small import CLASS_NAMES, FEATURES, small
from tests.service.gateway.served import serve
from tests.service.gateway.test_application import ALICE, QUERIERS

from dppp.errors import GatewayError, GatewayFault, InputError
from dppp.protocol.batch_store import MemoryBatchStore
from dppp.protocol.inputs import encode_rows
from dppp.protocol.messages import QueryId
from dppp.protocol.receipt import Receipt
from dppp.protocol.transcript import Transcript
from dppp.protocol.wire import decode, encode
from dppp.service.gateway.embedded import embed_gateway
from dppp.service.gateway.jobs import Jobs
from dppp.service.querier.asking import AskedParts, OwnRows, ask_in_parts
from dppp.service.querier.connection import GatewayConnection, Labelled
from dppp.service.querier.row_secrets import RowSecrets
from dppp.service.querier.signed_labels import SignedLabels

ROWS = [[1, 1], [0, 2], [2, 3]]
PARTIES = small()
TASK = PARTIES.task
ASKED: Any = {"is_fresh": False, "with_transcripts": True, "report": lambda *_: None}


@contextmanager
def asking(**settings: Any) -> Iterator[GatewayConnection]:
    embedded = embed_gateway(PARTIES, store=MemoryBatchStore(), queriers=QUERIERS, **settings)
    with serve(embedded.app) as address, GatewayConnection(address, ALICE) as gateway:
        yield gateway


@pytest.mark.parametrize(
    "address",
    [
        "",
        "gateway.example.org",
        "ftp://gateway.example.org",
        "http://",
        "https://:8000",
        "https://host:port",
        "http://[::1",
        "http://..",
        f"http://{'a' * 64}.org",
    ],
)
def test_an_address_that_is_none_is_refused_at_once(address: str) -> None:
    with pytest.raises(
        InputError, match="is not the address of a gateway\nhint: write it as https://host:port"
    ):
        GatewayConnection(address, ALICE)


@pytest.mark.parametrize("host", ["gateway.example.org", "10.0.0.7:8080", "127.0.0.1.evil.org"])
def test_a_token_goes_to_another_machine_over_https_only(host: str) -> None:
    with pytest.raises(InputError, match="in the clear\nhint: write it as https://"):
        GatewayConnection(f"http://{host}", ALICE)
    for address in (f"https://{host}", "http://127.0.0.1:8080", "http://[::1]:8080"):
        GatewayConnection(address, ALICE)


@pytest.mark.parametrize("token", ["", "hunter2\nand more", "hunter2 ", "hünter2", "hunter2\0"])
def test_a_token_that_is_none_is_refused_at_once_and_not_repeated(token: str) -> None:
    with pytest.raises(InputError, match="this cannot be a token") as caught:
        GatewayConnection("http://127.0.0.1:9", token)
    assert "nter2" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("body", ["<html>hello", "[]", "{}", '{"features": "all"}', "\xff"])
def test_somebody_else_at_the_address_is_no_gateway(body: str) -> None:
    other = FastAPI()

    @other.get("/api/{path:path}")
    async def answer() -> Response:
        return Response(body.encode("latin-1"))

    with serve(other) as address, GatewayConnection(address, ALICE) as gateway:
        for ask in (gateway.task, gateway.budget, lambda: gateway.labels("0" * 64)):
            with pytest.raises(
                GatewayError, match=r"(not what a|the) gateway.*\nhint: check the address"
            ):
                ask()


def make_plan(path: Path) -> AskedParts:
    return AskedParts(path, rows=len(ROWS), size=2, digest="of these rows", secret=0)


def own_rows(folder: Path) -> OwnRows:
    secrets = RowSecrets(folder / "rowkey")
    return OwnRows(task=TASK, rows=encode_rows(ROWS, len(FEATURES)), secrets=secrets)


def test_fewer_labels_than_rows_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the labels of the next batch would stand beside the rows of this one."""
    told = Jobs.answers

    async def leave_one_out(*arguments: Any) -> Any:
        return (await told(*arguments))[1:]

    monkeypatch.setattr(Jobs, "answers", leave_one_out)
    plan = make_plan(tmp_path / "plan")
    with asking() as gateway, pytest.raises(GatewayFault, match="1 labels for 2 rows"):
        list(ask_in_parts(gateway, own_rows(tmp_path), plan, **ASKED))


def test_a_receipt_that_is_not_about_these_rows_is_refused(tmp_path: Path) -> None:
    plan = AskedParts(tmp_path / "plan", rows=len(ROWS), size=len(ROWS), digest="", secret=0)
    with asking() as gateway:
        (released,) = ask_in_parts(gateway, own_rows(tmp_path), plan, **ASKED)
    data, labels, ids = released.receipt, released.labels, released.query_ids
    assert data is not None
    assert released.transcript is not None
    assert decode(released.transcript, Transcript).receipt == data
    assert SignedLabels(TASK).find(data, ids, labels) == [True] * len(ROWS)
    whole = decode(data, Receipt)
    first = whole.answers[0]
    for bad in (
        b"no receipt",
        data[:-1],
        encode(replace(whole, task=b"no task")),
        encode(replace(whole, answers=whole.answers[1:])),
        encode(replace(whole, answers=(replace(first, label=len(CLASS_NAMES)),) * len(ROWS))),
        encode(replace(whole, answers=(replace(first, label=-1),) * len(ROWS))),
    ):
        with pytest.raises(GatewayFault, match="the gateway's receipt is not about these rows"):
            SignedLabels(TASK).find(bad, ids, labels)
    with pytest.raises(GatewayFault, match="of another task"):
        SignedLabels(replace(TASK, features=(*FEATURES, "third"))).find(data, ids, labels)
    lie = Labelled(label=labels[2].label, counts=(*labels[2].counts[1:], 7))
    with pytest.raises(GatewayFault, match=r"other counts for row 2 .* its own receipt"):
        SignedLabels(TASK).find(data, ids, [*labels[:2], lie])


def test_a_label_is_signed_by_an_earlier_receipt_of_the_same_run(tmp_path: Path) -> None:
    plan = AskedParts(tmp_path / "plan", rows=len(ROWS), size=len(ROWS), digest="", secret=0)
    with asking() as gateway:
        (released,) = ask_in_parts(gateway, own_rows(tmp_path), plan, **ASKED)
    first, labels, ids = released.receipt, released.labels, released.query_ids
    signed = SignedLabels(TASK)
    assert signed.find(None, ids, labels) == [False] * len(ROWS)
    signed.find(first, ids, labels)
    assert signed.find(None, ids, labels) == [True] * len(ROWS)
    lie = replace(labels[0], counts=(*labels[0].counts[1:], 7))
    assert signed.find(None, ids[:1], [lie]) == [False]


@pytest.mark.parametrize(
    "lie", [Labelled(label="=cmd()", counts=(0, 0, 0)), Labelled(label=None, counts=(0, 0, 0, 1))]
)
def test_labels_and_counts_are_those_of_the_classes(lie: Labelled) -> None:
    """Counts too many would move what the columns beside them say."""
    with pytest.raises(GatewayFault, match="is not a class, or other counts"):
        SignedLabels(TASK).find(None, [QueryId(bytes(32))], [lie])


def test_a_proxy_of_the_environment_is_not_told_a_token_in_the_clear(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.getsockname()[1]}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        proxy.settimeout(0.2)
        with (
            GatewayConnection("http://127.0.0.1:9", ALICE, patience_seconds=0) as gateway,
            pytest.raises(GatewayError, match=r"http://127\.0\.0\.1:9 cannot be used"),
        ):
            gateway.task()
        with pytest.raises(TimeoutError):
            proxy.accept()


def test_a_plan_is_read_again_and_one_of_other_rows_or_that_cannot_be_read_is_refused(
    tmp_path: Path,
) -> None:
    path = tmp_path / "plan"
    assert make_plan(path).parts == make_plan(path).parts
    for digest, rows in (("of other rows", len(ROWS)), ("of these rows", len(ROWS) + 1)):
        with pytest.raises(InputError, match="belongs to other rows"):
            AskedParts(path, rows=rows, size=2, digest=digest, secret=0)
    for text in ("", "[]", "{}", '{"digest": "of these rows", "parts": [[0, 3]]}'):
        path.write_text(text)
        with pytest.raises(InputError, match="cannot be read\nhint: remove it to start again"):
            make_plan(path)


def test_nothing_is_sent_when_its_key_cannot_be_kept(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot write .*plan: No such file"):
        make_plan(tmp_path / "no such folder" / "plan")
