"""A model server that answers, fails, drips, floods or sends elsewhere: a vote or none."""

import http.server
import json
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.service.teacher.test_model_loading import CLASSES, LABELS, PLACES, ROWS

from dppp.errors import InputError
from dppp.learning.models import as_predict
from dppp.protocol.question import Question
from dppp.protocol.votes import cast_votes
from dppp.service.process.config import HttpModel
from dppp.service.teacher.models.configured import load_model
from dppp.service.teacher.models.http import load_http

Answer = Callable[[http.server.BaseHTTPRequestHandler, dict[str, Any]], None]


class ModelServer(http.server.ThreadingHTTPServer):
    """Answers as the test says, and remembers what it was asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []
        self.answer: Answer = label_by_sign


class Handler(http.server.BaseHTTPRequestHandler):
    server: ModelServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(self.path)
        self.server.answer(self, body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[ModelServer]:
    running = ModelServer()
    threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
    yield running
    running.shutdown()
    running.server_close()


def url_of(server: ModelServer) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}/predict"


def reply(handler: http.server.BaseHTTPRequestHandler, body: bytes, status: int = 200) -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def label_by_sign(handler: http.server.BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    labels = ["benign" if row[0] > 0 else "malignant" for row in body["rows"]]
    reply(handler, json.dumps({"labels": labels}).encode())


def test_a_model_server_votes_in_one_request(server: ModelServer) -> None:
    server.answer = label_by_sign
    assert list(as_predict(load_http(url_of(server), 10), CLASSES)(ROWS)) == PLACES
    assert server.asked == ["/predict"]


def test_null_is_no_vote_for_that_row_alone(server: ModelServer) -> None:
    answer = json.dumps({"labels": [None, *LABELS[1:]]}).encode()
    server.answer = lambda handler, _: reply(handler, answer)
    assert list(as_predict(load_http(url_of(server), 10), CLASSES)(ROWS)) == [None, *PLACES[1:]]


LABELLED = Question.of_labels(most_labels=2)


@pytest.mark.parametrize(
    ("said", "votes"),
    [
        ([["malignant", "benign"], [], ["benign"], None], [[1, 1], [0, 0], [0, 1], [0, 0]]),
        ([[["benign"]], [], [], []], None),
        (["benign", [], [], []], None),
        ([{"benign": 1}, [], [], []], None),
        ([["no such label"], [], ["benign"], []], [[0, 0], [0, 0], [0, 1], [0, 0]]),
    ],
)
def test_a_model_server_names_several_labels(
    server: ModelServer, said: Any, votes: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """What cannot be read empties its batch, and a label outside the task its own row."""
    answer = json.dumps({"labels": said}).encode()
    server.answer = lambda handler, _: reply(handler, answer)
    model = load_model(HttpModel(kind="http", url=url_of(server)), CLASSES, LABELLED)
    assert cast_votes(model, ROWS, 2, question=LABELLED).tolist() == (votes or [[0, 0]] * 4)
    assert ("neither a list of labels nor null" in caplog.text) == (votes is None)
    assert len(server.asked) == 1  # never again row by row


def test_a_class_outside_the_task_is_no_vote_and_nothing_is_asked_again(
    server: ModelServer,
) -> None:
    answer = json.dumps({"labels": ["no such class", 1, *LABELS[2:]]}).encode()
    server.answer = lambda handler, _: reply(handler, answer)
    model = load_model(HttpModel(kind="http", url=url_of(server)), CLASSES)
    notes: list[str] = []
    votes = cast_votes(model, ROWS, 2, note=notes.append)
    assert votes.tolist() == [[0, 0], [0, 0], [0, 1], [1, 0]]
    assert (
        notes[0] == "the model answered 'no such class', which is not a class of the task; no vote"
    )
    assert len(notes) == 2
    assert len(server.asked) == 1


def redirect(handler: http.server.BaseHTTPRequestHandler, _: object) -> None:
    handler.send_response(307)
    handler.send_header("Location", "/elsewhere")
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def flood(handler: http.server.BaseHTTPRequestHandler, _: object) -> None:
    handler.send_response(200)
    handler.end_headers()
    for _ in range(1_000):
        handler.wfile.write(b" " * 100_000)


def drip(handler: http.server.BaseHTTPRequestHandler, _: object) -> None:
    """Never silent for long, and never done."""
    for _ in range(600):
        handler.wfile.write(b"H")
        handler.wfile.flush()
        time.sleep(0.05)


def answer_with(body: bytes, status: int = 200) -> Answer:
    return lambda handler, _: reply(handler, body, status)


FAILURES: dict[str, tuple[Answer, str]] = {
    "status": (answer_with(b'{"labels": ["benign", "benign", "benign", "benign"]}', 503), "503"),
    "redirect": (redirect, "status 307"),
    "no JSON": (answer_with(b"benign"), "not JSON"),
    "nested": (answer_with(b"[" * 4_000), "not JSON"),
    "no object": (answer_with(b'["benign"]'), "not a list of 4 labels"),
    "too few": (answer_with(b'{"labels": ["benign"]}'), "not a list of 4 labels"),
    "lists": (answer_with(b'{"labels": [[], [], [], []]}'), "not text, a number or null"),
    "true": (answer_with(b'{"labels": [true, true, true, true]}'), "not text, a number or null"),
    "flood": (flood, "more than 5,000 bytes"),
    "closed": (lambda handler, _: handler.connection.close(), "Error"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failing_server_means_no_vote_and_is_asked_once(
    failure: str, server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.answer, reason = FAILURES[failure]
    with caplog.at_level(logging.WARNING):
        assert list(as_predict(load_http(url_of(server), 10), CLASSES)(ROWS)) == [None] * 4
    assert server.asked == ["/predict"]
    assert reason in caplog.text
    assert "no vote in 4 queries" in caplog.text


def test_a_server_that_drips_or_never_answers_is_left_in_time(
    server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    for answer in (drip, lambda *_: time.sleep(30)):
        server.answer = answer
        assert load_http(url_of(server), 0.3)(ROWS) == [None] * 4
    assert "TimeoutError" in caplog.text


def test_a_server_that_is_gone_means_no_vote(
    server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.server_close()
    assert load_http(url_of(server), 10)(ROWS) == [None] * 4
    # Whether it is refused or hung up on depends on how far the server has closed its door.
    assert re.search(r"127\.0\.0\.1 failed \((Connect|Read)Error\)", caplog.text)


def test_inputs_do_not_go_to_a_proxy_of_the_environment(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    server.answer = label_by_sign
    assert load_http(url_of(server), 10)(ROWS) == LABELS


def test_inputs_are_not_logged(server: ModelServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server.answer = answer_with(b"-3.0 0.5")
    load_http(url_of(server), 10)(ROWS)
    assert "-3.0" not in caplog.text


@pytest.mark.parametrize(
    "url", ["", "predict", "ftp://host/x", "http://", "http://[", "file:///etc/passwd"]
)
def test_an_address_that_is_no_http_address_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="must look like"):
        load_http(url, 10)


def test_a_password_in_the_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(InputError, match="must not hold a name or password") as caught:
        load_http("https://me:hunter2@models.example.org/", 10)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("timeout_seconds", [0, -1, float("nan"), 1e9])
def test_a_timeout_that_is_none_is_refused(timeout_seconds: float) -> None:
    with pytest.raises(InputError, match="timeout_seconds"):
        load_http("http://127.0.0.1/", timeout_seconds)
