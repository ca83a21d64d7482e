"""A chat server that hangs, floods, lies, breaks or sends elsewhere: a vote or none, in time."""

import asyncio
import contextlib
import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.service.teacher.chat.chat_server import (
    Answer,
    ChatServer,
    answer_by_words,
    completion,
    reply,
    saying,
    serving,
)
from tests.service.teacher.chat.tickets import CLASSES, asked, chat_model, tickets, voters_of

from dppp.protocol.votes import Predict, cast_votes
from dppp.service.teacher.models.chat.answers import choices_by_name, content_of, place_of
from dppp.service.teacher.models.posting import BadAnswer

QUESTIONS = asked("invoice refund", "router wifi", "payment")


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with serving() as running:
        yield running


def voter(folder: Path, server: ChatServer, **more: Any) -> Predict:
    return voters_of(chat_model(folder, server.url, tickets(), **more), votes=1)[0]


def redirect(handler: Any, _: object) -> None:
    reply(handler, b"", 307, Location="/v1/elsewhere")


def flood(handler: Any, _: object) -> None:
    handler.send_response(200)
    handler.end_headers()
    for _ in range(1_000):
        handler.wfile.write(b" " * 100_000)


def close(handler: Any, _: object) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


def with_body(body: bytes, status: int = 200, **headers: str) -> Answer:
    return lambda handler, _: reply(handler, body, status, **headers)


GOOD = completion("Billing")
FAILURES: dict[str, tuple[Answer, str, int]] = {
    "forbidden": (with_body(GOOD, 401), "status 401", 1),
    "no such model": (with_body(GOOD, 404), "status 404", 1),
    "redirect": (redirect, "status 307", 1),
    "busy": (with_body(GOOD, 429), "status 429", 3),
    "broken": (with_body(GOOD, 500), "status 500", 3),
    "hung up": (close, "Error", 3),
    "flood": (flood, "more than 1,048,576 bytes", 1),
    "empty": (with_body(b""), "not JSON", 1),
    "no JSON": (with_body(b"Billing"), "not JSON", 1),
    "nested": (with_body(b"[" * 400_000), "not JSON", 1),
    "a list": (with_body(b'["Billing"]'), "not a chat completion", 1),
    "no choices": (with_body(b'{"choices": []}'), "not a chat completion", 1),
    "a number": (saying(0), "not a chat completion", 1),
    "null": (saying(None), "not a chat completion", 1),
    "parts": (saying([{"type": "text", "text": "Billing"}]), "not a chat completion", 1),
    "cut off": (saying("Billing", "length"), "cut off", 1),
    "nothing": (saying(""), "not the name of a class", 1),
    "talk": (saying("Billing, I think"), "not the name of a class", 1),
    "both": (saying("Billing Network"), "not the name of a class", 1),
    "another": (saying("Printers"), "not the name of a class", 1),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_is_no_vote_and_is_tried_again_only_where_that_may_help(
    failure: str, tmp_path: Path, server: ChatServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.answer, reason, tries = FAILURES[failure]
    asks = voter(tmp_path, server, retries=2, calls_at_once=1)
    with caplog.at_level(logging.WARNING):
        assert cast_votes(asks, asked("refund"), len(CLASSES)).tolist() == [[0, 0]]
    assert server.paths == ["/v1/chat/completions"] * tries
    assert reason in caplog.text
    assert "no vote in 1 of 1 queries" in caplog.text


@pytest.mark.parametrize("first", [with_body(GOOD, 503), with_body(GOOD, 429), close])
def test_a_server_that_recovers_gets_its_vote(
    first: Answer, tmp_path: Path, server: ChatServer
) -> None:
    def answer(handler: Any, body: dict[str, Any]) -> None:
        (first if len(server.paths) == 1 else answer_by_words)(handler, body)

    server.answer = answer
    assert voter(tmp_path, server, calls_at_once=1)(QUESTIONS) == [0, 1, 0]
    assert len(server.paths) == len(QUESTIONS) + 1


def test_one_question_without_an_answer_takes_none_from_the_others(
    tmp_path: Path, server: ChatServer
) -> None:
    def fail_on_router(handler: Any, body: dict[str, Any]) -> None:
        is_router = body["messages"][0]["content"].endswith("router wifi")
        (saying("hm") if is_router else answer_by_words)(handler, body)

    server.answer = fail_on_router
    assert voter(tmp_path, server)(QUESTIONS) == [0, None, 0]


class Deadlines:
    """Timeouts of this many seconds run out when the test says so, and never before."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        real = asyncio.timeout

        def timeout(asked_for: float) -> asyncio.Timeout:
            if asked_for != seconds:
                return real(asked_for)
            self._loop, self._timeout = asyncio.get_running_loop(), real(None)
            return self._timeout

        monkeypatch.setattr(asyncio, "timeout", timeout)

    def run_out(self) -> None:
        self._loop.call_soon_threadsafe(self._timeout.reschedule, self._loop.time())


@pytest.mark.parametrize("is_dripping", [False, True])
def test_a_server_that_hangs_is_left_in_time(
    is_dripping: bool,
    tmp_path: Path,
    server: ChatServer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_over, deadlines = threading.Event(), Deadlines(monkeypatch, 33)

    def hang(handler: Any, _: object) -> None:
        deadlines.run_out()
        with contextlib.suppress(OSError):
            while not is_over.wait(0.02):
                handler.wfile.write(b"H" * is_dripping)

    server.answer = hang
    asks = voter(tmp_path, server, timeout_seconds=33, vote_seconds=3_600)
    assert asks(asked("refund")) == [None]
    is_over.set()
    assert "TimeoutError" in caplog.text
    assert len(server.paths) == 1  # what hung is not asked again


def test_the_time_of_one_vote_is_bounded_and_what_was_answered_before_counts(
    tmp_path: Path,
    server: ChatServer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_over, deadlines = threading.Event(), Deadlines(monkeypatch, 33)

    def hang_on_router(handler: Any, body: dict[str, Any]) -> None:
        if body["messages"][0]["content"].endswith("router wifi"):
            deadlines.run_out()
            is_over.wait(60)
        answer_by_words(handler, body)

    server.answer = hang_on_router
    asks = voter(tmp_path, server, timeout_seconds=3_600, vote_seconds=33, calls_at_once=1)
    assert asks(QUESTIONS) == [0, None, None]
    is_over.set()
    assert "the time of this vote was over); no vote in 2 of 3 queries" in caplog.text


def test_a_vote_that_used_up_its_time_leaves_the_next_one_all_of_its_own(
    tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record that makes its own vote slow would otherwise empty all votes after it."""
    is_over, deadlines = threading.Event(), Deadlines(monkeypatch, 33)
    model = chat_model(
        tmp_path, server.url, tickets(), timeout_seconds=3_600, vote_seconds=33, calls_at_once=1
    )
    votes = voters_of(model, votes=2)

    def hang(*_: object) -> None:
        deadlines.run_out()
        is_over.wait(60)

    server.answer = hang
    assert votes[0](QUESTIONS) == [None] * 3
    server.answer = answer_by_words
    assert votes[1](QUESTIONS) == [0, 1, 0]
    is_over.set()


def test_no_more_calls_are_made_at_once_than_there_may_be(
    tmp_path: Path, server: ChatServer
) -> None:
    now, most, lock = 0, 0, threading.Lock()

    def count(handler: Any, body: dict[str, Any]) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.02)
        with lock:
            now -= 1
        answer_by_words(handler, body)

    server.answer = count
    questions = asked(*["router"] * 12)
    assert voter(tmp_path, server, calls_at_once=3)(questions) == [1] * 12
    assert most <= 3


def test_questions_do_not_go_to_a_proxy_of_the_environment(
    tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert voter(tmp_path, server)(QUESTIONS) == [0, 1, 0]


def test_a_server_that_is_gone_means_no_vote(
    tmp_path: Path, server: ChatServer, caplog: pytest.LogCaptureFixture
) -> None:
    asks = voter(tmp_path, server)
    server.server_close()
    assert asks(QUESTIONS) == [None] * 3
    assert "Error); no vote in 3 of 3 queries" in caplog.text


def test_a_pause_that_the_server_asks_for_is_kept_within_reason(
    tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused: list[float] = []

    async def note(seconds: float) -> None:
        paused.append(seconds)

    monkeypatch.setattr("dppp.service.teacher.models.chat.server.asyncio.sleep", note)
    for asked_for in ("7", "99999", "soon", "-5"):
        server.answer = with_body(b"", 429, Retry_After=asked_for)
        voter(tmp_path / asked_for, server, retries=2, backoff_seconds=0.5)(asked("refund"))
    assert paused == [7, 7, 30, 30, 0.5, 1, 0.5, 1]


@pytest.mark.parametrize("said", ["Billing", " billing\n", "BILLING", "\tBiLLing "])
def test_spaces_around_a_name_and_its_case_do_not_matter(said: str) -> None:
    assert place_of(said, choices_by_name(CLASSES)) == 0


def test_a_name_is_compared_in_its_composed_form() -> None:
    places = choices_by_name(("caf\u00e9", "STRASSE"))
    assert place_of("Cafe\u0301", places) == 0
    assert place_of("stra\u00dfe", places) == 1


@pytest.mark.parametrize("said", ["Billing.", '"Billing"', "Bill ing", "Billing\nNetwork", "0"])
def test_anything_more_than_a_name_is_no_vote(said: str) -> None:
    with pytest.raises(BadAnswer, match="not the name of a class"):
        place_of(said, choices_by_name(CLASSES))


def test_the_text_of_the_first_choice_counts() -> None:
    more = {"message": {"content": "Network"}}
    body = json.loads(completion("Billing"))
    body["choices"].append(more)
    assert content_of(json.dumps(body).encode()) == "Billing"
