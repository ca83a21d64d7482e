"""Logs: JSON lines for machines, lines to read for people at a terminal."""

import io
import json
import logging
import re
import sys
from collections.abc import Iterator

import pytest

from dppp.service.process.about_batch import about_batch
from dppp.service.process.logs import log_to_stderr


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def say_two_things() -> None:
    log = logging.getLogger("dppp.test")
    log.info("ballot sent", extra={"batch": "ab12", "queries": 3})
    try:
        raise ValueError("what it was")
    except ValueError:
        log.exception("failed")


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("place", [io.StringIO, Terminal])
def test_lines_are_json_unless_a_terminal_is_there_and_nobody_asked(
    monkeypatch: pytest.MonkeyPatch, place: type[io.StringIO], *, as_json: bool
) -> None:
    stderr = place()
    monkeypatch.setattr(sys, "stderr", stderr)
    log_to_stderr("info", as_json=as_json)
    say_two_things()
    lines = stderr.getvalue().splitlines()
    if place is Terminal and not as_json:
        assert re.fullmatch(r"\d\d:\d\d:\d\d  ballot sent  batch=ab12  queries=3", lines[0])
        assert re.fullmatch(r"\d\d:\d\d:\d\d  error: failed", lines[1])
        assert lines[-1] == "ValueError: what it was"
    else:
        sent, failed = (json.loads(line) for line in lines)
        assert (sent["message"], sent["batch"], sent["queries"]) == ("ballot sent", "ab12", 3)
        assert (sent["level"], failed["level"]) == ("info", "error")
        assert failed["exception"].endswith("ValueError: what it was")


def test_whatever_is_logged_while_a_batch_is_worked_on_names_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log_to_stderr("info", as_json=True)
    log = logging.getLogger("dppp.test")
    with about_batch(b"\xab" * 32):
        log.info("one")
        with about_batch(None):
            log.info("another thing")
        log.info("two", extra={"batch": "its own"})
    log.info("later")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line.get("batch") for line in lines] == ["ab" * 32, None, "its own", None]


def test_what_asyncio_says_of_every_broken_line_is_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log_to_stderr("info", as_json=True)
    log = logging.getLogger("asyncio")
    log.warning("returning true from eof_received() has no effect when using ssl")
    log.warning("socket.send() raised exception.")
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["message"] == "socket.send() raised exception."
