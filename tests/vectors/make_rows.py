"""Makes rows.json: query ids, and sealed rows that open or are refused.

Content keys are fixed. HPKE draws its own keys, so the wrapped keys are new each time: what is held
to these vectors is the opening, which draws nothing. Run: python -m tests.vectors.make_rows
"""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from dppp.protocol.columns import CATEGORY, NUMBER, TEXT, Column, ColumnType, as_columns
from dppp.protocol.inputs import encode_rows, join_rows
from dppp.protocol.messages import BallotRequest, BatchId, BatchRequest, TaskId
from dppp.protocol.rows import (
    ballot_request,
    query_ids_of,
    row_key_of,
    seal_rows,
    wrapped_key_of,
)
from dppp.protocol.wire import encode

TASK_ID = TaskId(bytes(range(32)))
PRIVATE = [X25519PrivateKey.from_private_bytes(bytes([number]) * 32) for number in (1, 2)]
TABLE = [[1.0, -2.5], [0.0, 1e300]]
FEATURES = ("first", "second")
MIXED_COLUMNS = (
    Column(name="age", type=ColumnType(kind=NUMBER, may_be_missing=True)),
    Column(name="ward", type=ColumnType(kind=CATEGORY, values=("east", "west", "süd"))),
    Column(name="note", type=ColumnType(kind=TEXT, may_be_missing=True)),
)
MIXED_TABLE = [[47.5, "süd", "has a caf\u00e9"], [None, "east", None], [-0.0, "west", ""]]


def made(task_id: TaskId = TASK_ID, rows: Any = None, secret: int = 7) -> BatchRequest:
    task: Any = SimpleNamespace(
        task_id=task_id,
        columns=as_columns(FEATURES),
        teachers=[
            SimpleNamespace(row_key=each.public_key().public_bytes_raw()) for each in PRIVATE
        ],
    )
    key = row_key_of(bytes([secret]) * 32, task_id)
    encoded = encode_rows(TABLE, 2) if rows is None else rows
    queries = seal_rows(task, key, encoded, randomness=lambda count: b"\x05" * count)
    return BatchRequest(deadline=600, queries=queries)


def sent(request: BatchRequest, teacher: int = 1, **changes: Any) -> BallotRequest:
    wrapped_key = wrapped_key_of(request.queries, teacher)
    return replace(ballot_request(request), wrapped_key=wrapped_key, **changes)


def sealed_vectors() -> list[dict[str, Any]]:
    good = made()
    nan = made(rows=[b"\xff" * 16])
    other = made(secret=8)
    elsewhere = replace(sent(made(TaskId(bytes(32)))), task_id=TASK_ID)
    cases: list[tuple[str, BallotRequest, str | None]] = [
        ("good", sent(good), None),
        ("wrapped for another teacher", sent(good, 2), "RowsUnreadable"),
        ("truncated", sent(good, sealed=good.queries.sealed[:-1]), "RowsUnreadable"),
        ("one query too few", sent(good, queries=1), "RowsUnreadable"),
        ("one query too many", sent(good, queries=3), "RowsUnreadable"),
        ("not a number", sent(nan), "RowsUnreadable"),
        ("another row key", sent(other, batch_id=good.batch_id), "RowsChanged"),
        ("another batch", sent(good, batch_id=BatchId(bytes(32))), "RowsChanged"),
        ("of another task", elsewhere, "RowsUnreadable"),
    ]
    return [
        {
            "name": name,
            "task_id": TASK_ID.hex(),
            "features": FEATURES,
            "teacher": 1,
            "private_key": (b"\x01" * 32).hex(),
            "request": encode(request).hex(),
            "rows": TABLE,
            "refusal": refusal,
        }
        for name, request, refusal in cases
    ]


def query_id_vectors() -> list[dict[str, Any]]:
    found = []
    for secret, rows in ((7, encode_rows(TABLE, 2)), (8, encode_rows(TABLE, 2)), (7, [b"", b"x"])):
        key = row_key_of(bytes([secret]) * 32, TASK_ID)
        found.append(
            {
                "secret": (bytes([secret]) * 32).hex(),
                "task_id": TASK_ID.hex(),
                "row_key": key.hex(),
                "rows": [row.hex() for row in rows],
                "query_ids": query_ids_of(key, TASK_ID, rows).hex(),
            }
        )
    return found


def mixed_vectors() -> list[dict[str, Any]]:
    """Rows of typed columns: their bytes, and bytes that no teacher takes."""
    good = join_rows(encode_rows(MIXED_TABLE, MIXED_COLUMNS))
    zero = b"\x01" + bytes(8)
    cases = [
        ("good", 3, good, None),
        ("one row too few", 2, good, "follow the last"),
        ("one row too many", 4, good, "end in the middle"),
        ("truncated", 3, good[:-1], "end in the middle"),
        ("a category missing", 1, zero + b"\x00\x00", "neither there"),
        ("another mark", 1, b"\x02", "neither there"),
        ("no such category", 1, zero + b"\x01\x03\x00\x00", "no value 3"),
        ("negative zero", 1, b"\x01" + bytes(7) + b"\x80", "zero with a sign"),
        ("infinity", 1, b"\x01" + bytes.fromhex("000000000000f07f"), "finite"),
        ("not a number", 1, b"\x01" + bytes.fromhex("000000000000f87f"), "finite"),
        ("not UTF-8", 1, zero + b"\x01\x00\x00\x01\x01\0\0\0\xff", "not UTF-8"),
        ("a surrogate", 1, zero + b"\x01\x00\x00\x01\x03\0\0\0\xed\xa0\x80", "not UTF-8"),
        ("not composed", 1, zero + b"\x01\x00\x00\x01\x03\0\0\0e\xcc\x81", "composed"),
        ("too long", 1, zero + b"\x01\x00\x00\x01\x01\x00\x01\x00", "too long"),
    ]
    return [
        {"name": name, "count": count, "bytes": data.hex(), "rows": MIXED_TABLE, "reason": reason}
        for name, count, data, reason in cases
    ]


if __name__ == "__main__":
    vectors = {
        "mixed": mixed_vectors(),
        "query_ids": query_id_vectors(),
        "sealed": sealed_vectors(),
    }
    path = Path(__file__).with_name("rows.json")
    path.write_text(json.dumps(vectors, indent=1) + "\n", encoding="utf-8")
