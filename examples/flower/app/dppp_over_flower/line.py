"""Bytes over a Unix socket, several at a time; both ends of both sockets use it."""

import json
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection

MOST_BYTES = 256 * 2**20

Parcels = Mapping[int, Sequence[bytes]]
"""Messages for, or from, each of these teachers, in order."""


def send_parcels(line: Connection, parcels: Parcels) -> None:
    line.send_bytes(json.dumps({index: len(each) for index, each in parcels.items()}).encode())
    for each in parcels.values():
        for message in each:
            line.send_bytes(message)


def receive_parcels(line: Connection) -> Parcels:
    """Nothing of what comes is unpickled: `recv` would be, `recv_bytes` is not."""
    counts = {int(index): int(count) for index, count in json.loads(_receive(line)).items()}
    return {index: [_receive(line) for _ in range(count)] for index, count in counts.items()}


def _receive(line: Connection) -> bytes:
    return line.recv_bytes(MOST_BYTES)
