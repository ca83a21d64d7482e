"""The processes under test: a teacher or an aggregator on its files, answering on a socket.

Messages have their length before them. Each request is answered by any number of frames and an
empty one at the end; what a role says is written to the socket at once, one frame a write, so that
a kill can come between any two. A process that starts says something first, as if asked.
"""

import struct
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from pathlib import Path

from tests.crash.masked_setting import masked_setting
from tests.crash.setting import NOW, teacher_of
from tests.small_federation import Setting, reply_of

from dppp.errors import DpppError
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.batch_store import BatchStore
from dppp.protocol.events import Send
from dppp.protocol.messages import BatchId, BatchRequest
from dppp.protocol.wire import decode, encode
from dppp.service.stores.epoch_secrets import open_epoch_secrets
from dppp.service.stores.ledgers import open_ledger
from dppp.service.stores.sqlite.batches import SqliteBatchStore

MESSAGE, REFUSAL, OUTCOME, END = b"=", b"!", b"o", b""
"""The first byte of a frame that a role sends."""

START, RECEIVE, TICK, REMIND, ASK_OUTCOME = b"s", b"r", b"t", b"m", b"o"
"""The first byte of a request to an aggregator."""

UNDER_TEST = 1
"""The teacher that runs in a process of its own."""

_HEADER = struct.Struct(">cqH")


def request_frame(kind: bytes, *, now: int = NOW, teacher: int = 0, data: bytes = b"") -> bytes:
    return _HEADER.pack(kind, now, teacher) + data


def send_frame(send: Send) -> bytes:
    return MESSAGE + send.teacher.to_bytes(2, "big") + send.data


def read_send(frame: bytes) -> Send:
    return Send(teacher=int.from_bytes(frame[1:3], "big"), data=frame[3:])


def run_teacher(setting: Setting, folder: Path, channel: Connection) -> None:
    name = setting.name(UNDER_TEST)
    with open_ledger(folder / "ledger", teacher=name, head_path=folder / "head") as ledger:
        ledger.check()
        teacher = teacher_of(setting, UNDER_TEST, ledger)
        _serve(channel, lambda data: [MESSAGE + reply_of(teacher, data, now=NOW)])


def run_masked_teacher(setting: Setting, folder: Path, channel: Connection) -> None:
    masked = masked_setting()
    name = masked.name(UNDER_TEST)
    with (
        open_ledger(folder / "ledger", teacher=name, head_path=folder / "head") as ledger,
        open_epoch_secrets(folder / "epochs") as secrets,
    ):
        ledger.check()
        teacher = masked.teacher(UNDER_TEST, ledger, secrets)

        def answer(data: bytes) -> list[bytes]:
            reply = teacher.handle(data, now=NOW)
            return [] if reply is None else [MESSAGE + reply]

        _serve(channel, answer)


def run_masked_aggregator(setting: Setting, folder: Path, channel: Connection) -> None:
    _run_aggregator(masked_setting("aggregator").aggregator, folder, channel)


def run_aggregator(setting: Setting, folder: Path, channel: Connection) -> None:
    _run_aggregator(setting.aggregator, folder, channel)


def _run_aggregator(
    make: Callable[[BatchStore], Aggregator], folder: Path, channel: Connection
) -> None:
    store = SqliteBatchStore(folder / "batches")
    aggregator = make(store)
    for batch in aggregator.unfinished():
        for send in aggregator.adopt(batch, now=NOW).sends:
            channel.send_bytes(send_frame(send))
    _serve(channel, lambda data: _handle(aggregator, data))
    store.close()


def _handle(aggregator: Aggregator, frame: bytes) -> list[bytes]:
    kind, now, teacher = _HEADER.unpack_from(frame)
    data = frame[_HEADER.size :]
    if kind == ASK_OUTCOME:
        outcome = aggregator.outcome(BatchId(data))
        if outcome is None:
            return []
        found = aggregator.transcript(BatchId(data)) or outcome
        return [OUTCOME + encode(found)]
    if kind == START:
        output = aggregator.start(decode(data, BatchRequest), now=now)
    elif kind == RECEIVE:
        output = aggregator.receive(teacher, data, now=now)
    elif kind == REMIND:
        output = aggregator.remind()
    else:
        output = aggregator.tick(now)
    return [send_frame(send) for send in output.sends]


def _serve(channel: Connection, handle: Callable[[bytes], Iterable[bytes]]) -> None:
    channel.send_bytes(END)
    while data := channel.recv_bytes():
        try:
            for frame in handle(data):
                channel.send_bytes(frame)
        except DpppError as refusal:
            channel.send_bytes(REFUSAL + f"{type(refusal).__name__}: {refusal}".encode())
        channel.send_bytes(END)


ROLES = {
    "teacher": run_teacher,
    "aggregator": run_aggregator,
    "teacher under masks": run_masked_teacher,
    "aggregator under masks": run_masked_aggregator,
}
