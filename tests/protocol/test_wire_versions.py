"""Two versions of dppp refuse each other in words, each message of them, and change nothing.

The vector holds messages as 0.1.0 encoded them.
"""

import json
from pathlib import Path

import pytest
from tests.protocol.small import small
from tests.protocol.test_wire import REQUEST

from dppp.errors import WireError
from dppp.protocol import wire
from dppp.protocol.messages import Ballot, BallotList, BatchRequest
from dppp.protocol.task import Task
from dppp.protocol.wire import VERSION, Message, decode, encode

VECTOR = json.loads((Path(__file__).parents[1] / "vectors" / "wire_0_1_0.json").read_text())
KINDS: dict[str, type[Message]] = {each.KIND: each for each in (BatchRequest, Ballot, BallotList)}
OLD = {each["kind"]: bytes.fromhex(each["bytes"]) for each in VECTOR["messages"]}


@pytest.mark.parametrize("kind", OLD)
def test_a_message_of_0_1_0_is_refused_by_its_version_and_says_what_to_do(kind: str) -> None:
    assert (VECTOR["dppp"], VECTOR["wire_format"]) == ("0.1.0", 1)
    with pytest.raises(WireError, match=r"before 0\.2\.0") as refused:
        decode(OLD[kind], KINDS[kind])
    assert "CHANGELOG" in (refused.value.hint or "")


@pytest.mark.parametrize("version", [VERSION + 1, 0, -1, 2**40])
def test_a_message_of_another_version_is_refused_by_both_numbers(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = small().task
    for message in (REQUEST, task):
        with monkeypatch.context() as patched:
            patched.setattr(wire, "VERSION", version)
            data = encode(message)
        with pytest.raises(WireError, match=f"format {version}, and this dppp speaks {VERSION}"):
            decode(data, type(message))


def test_an_older_dppp_refuses_a_message_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode(REQUEST)
    monkeypatch.setattr(wire, "VERSION", 3)
    with pytest.raises(WireError, match="format 2, and this dppp speaks 3") as refused:
        decode(data, BatchRequest)
    assert "dppp --version" in (refused.value.hint or "")


def test_an_old_message_changes_nothing_at_a_teacher() -> None:
    federation = small()
    teacher, ledger = federation.teachers[1], federation.ledgers[1]
    head = ledger.head
    for data in OLD.values():
        with pytest.raises(WireError):
            teacher.handle(data, now=0)
    assert ledger.head == head
    assert decode(encode(federation.task), Task) == federation.task
