"""No secret, ballot or single vote reaches the page: everything that it is sent is read here.

The transcript holds the ballots, encrypted, by design. The page links to it and does not fetch it
by itself, which is tested too.
"""

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from playwright.sync_api import Browser, expect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from tests.page.asking import ask_by_drawing
from tests.page.federations import CLASSES, TEACHERS, Shown, found_digits, learned, show

from dppp.learning.models import as_predict
from dppp.protocol.messages import Ballot, BatchId
from dppp.protocol.wire import decode

WORDS_OF_A_TEACHER = {
    "teacher",
    "name",
    "is_online",
    "answered_at",
    "ballots",
    "missed",
    "has_missed_last",
}
WORDS_OF_AN_EVENT = {
    "teacher": {"kind", "teacher", "is_online", "at"},
    "batch": {
        "kind",
        "batch",
        "stage",
        "at",
        "queries",
        "done",
        "flagged",
        "size_bytes",
        "of",
        "teacher",
        "reason",
        "worker",
    },
}


class Recorder:
    """Everything that leaves the gateway: the path and the bytes of every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.sent: list[tuple[str, bytearray]] = []
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kept = bytearray()
        if scope["type"] == "http":
            self.sent.append((scope["path"], kept))

        async def recording(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept.extend(b"".join(name + value for name, value in message["headers"]) + b"\n")
            kept.extend(message.get("body", b""))
            await send(message)

        await self._app(scope, receive, recording)

    @property
    def everything(self) -> bytes:
        return b"\n".join(bytes(each) for _, each in self.sent)

    def documents(self) -> Iterator[tuple[str, Any]]:
        """Every JSON document, also those in streams of events."""
        for path, sent in self.sent:
            for line in bytes(sent).decode("utf-8", "replace").split("\n"):
                text = line.removeprefix("data: ")
                if path.startswith("/api") and text.startswith(("{", "[")):
                    yield path, json.loads(text)


class Recording:
    """A teacher's model that remembers its votes for the test."""

    def __init__(self, model: Any) -> None:
        self.votes: list[int] = []
        self._predict = as_predict(model, CLASSES)

    def __call__(self, rows: Any) -> Sequence[int | None]:
        votes = self._predict(rows)
        self.votes += [vote for vote in votes if vote is not None]
        return votes


def written_in_any_way(secret: bytes) -> list[bytes]:
    number = int.from_bytes(secret, "big")
    return [
        secret,
        secret.hex().encode(),
        base64.b64encode(secret).rstrip(b"=")[:-1],
        base64.urlsafe_b64encode(secret).rstrip(b"=")[:-1],
        str(number).encode(),
    ]


def secrets_of(shown: Shown, batch: BatchId) -> Iterator[tuple[str, bytes]]:
    """What the parties hold: key shares, signing keys, ballots and what is in them."""
    assert shown.parties.key is not None
    for share in shown.parties.key.shares:
        exponent = int(share.exponent)
        yield "key share", exponent.to_bytes((exponent.bit_length() + 7) // 8, "big")
    for index, ledger in shown.parties.ledgers.items():
        ballot = ledger.find_ballot(batch)
        assert ballot is not None
        read = decode(ballot, Ballot)
        yield f"ballot of teacher {index}", ballot[-48:]
        yield f"ciphertexts of teacher {index}", read.ciphertexts[:48]
        yield f"proof of teacher {index}", read.proof[:48]
        yield f"signature of teacher {index}", read.signature


class RecordedKeys:
    """Makes signing keys, and remembers their secret halves for the test."""

    def __init__(self) -> None:
        self.made: list[bytes] = []

    def generate(self) -> Ed25519PrivateKey:
        key = Ed25519PrivateKey.generate()
        self.made.append(key.private_bytes_raw())
        return key


def arrays_in(document: Any) -> Iterator[list[Any]]:
    if isinstance(document, list):
        yield document
    inner = document.values() if isinstance(document, dict) else document
    if isinstance(document, dict | list):
        for each in inner:
            yield from arrays_in(each)


def test_everything_that_the_page_is_sent_holds_no_secret_ballot_or_vote(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    signing_keys = RecordedKeys()
    monkeypatch.setattr("dppp.federation.Ed25519PrivateKey", signing_keys)
    recorders: list[Recorder] = []
    models = [Recording(model) for model in learned()[0]]

    def wrap(app: ASGIApp) -> Recorder:
        recorders.append(Recorder(app))
        return recorders[0]

    with show(found_digits(models=models), wrap=wrap) as shown, shown.opened(browser) as page:
        ask_by_drawing(page, "5")
        expect(page.locator("#answer .mark")).to_have_text("✓ verified")
        for view in ("live", "plan", "ask"):
            page.click(f"nav a[href='#{view}']")
        page.wait_for_timeout(1_500)
        recorder = recorders[0]
        state = next(
            each for path, each in recorder.documents() if "batch" in each and "rows" in each
        )
        batch = BatchId(bytes.fromhex(state["batch"]))
        signing = [("signing key", each) for each in signing_keys.made]
        check_bytes(recorder, [*signing, *secrets_of(shown, batch)])
    assert all(len(model.votes) == 1 for model in models)
    check_documents(recorder, [model.votes[0] for model in models])
    assert not any(path.endswith(("/transcript", "/receipt")) for path, _ in recorder.sent)


def check_bytes(recorder: Recorder, secrets: list[tuple[str, bytes]]) -> None:
    assert len(secrets) == TEACHERS * 6 + 1  # the aggregator signs too
    everything = recorder.everything
    assert b"labels" in everything  # it does read what is sent
    for what, secret in secrets:
        for written in written_in_any_way(secret):
            assert len(written) < 8 or written not in everything, what


def check_documents(recorder: Recorder, votes: list[int]) -> None:
    one_hot = np.eye(len(CLASSES), dtype=int)[votes]
    forbidden = [*one_hot.tolist(), one_hot.sum(axis=0).tolist(), votes]
    documents = list(recorder.documents())
    assert {"/api/events", "/api/teachers", "/api/plan"} <= {path for path, _ in documents}
    for path, document in documents:
        for array in arrays_in(document):
            assert array not in forbidden, path
        if path == "/api/teachers":
            assert all(set(each) == WORDS_OF_A_TEACHER for each in document)
        if path == "/api/events":
            assert set(document) == WORDS_OF_AN_EVENT[document["kind"]]


def test_the_check_for_secrets_finds_one_that_is_there() -> None:
    recorder = Recorder(lambda *_: None)  # type: ignore[arg-type]
    secret = bytes(range(7, 55))
    for written in written_in_any_way(secret):
        recorder.sent = [("/api/x", bytearray(b"labels " + written + b" more"))]
        found = [each for each in written_in_any_way(secret) if each in recorder.everything]
        assert written in found
