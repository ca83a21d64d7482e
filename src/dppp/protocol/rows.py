"""Sealed rows: the querier encrypts its rows for the teachers, and nobody in between reads them.

    row key     = HMAC(row secret, task)          the querier keeps the secret
    query id    = BLAKE2s(id key, row)             names a row to whoever has the row key
    sealed      = AES-256-GCM(row key, all rows)   under a content key that is used once
    wrapped key = HPKE(content key)                one for each teacher

`seal_rows` is run by the querier's program, and by a gateway for those who type rows into its page.
`open_rows` is run by every teacher. The aggregator and the broker have query ids and sealed bytes.
A teacher works out all ids anew and compares the batch id, which is a hash of them: two teachers
whose ballots are about one batch have read the same rows, whatever the querier sent to each. The
same row under the same key has the same id, so that it is answered once and free after that.
"""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from dppp.errors import InputError, RowsChanged, RowsUnreadable, message_of
from dppp.hashing import HASH_BYTES, hash_parts
from dppp.protocol.inputs import Inputs, decode_rows, join_rows, split_rows
from dppp.protocol.messages import (
    WRAPPED_KEY_BYTES,
    BallotRequest,
    BatchRequest,
    QueryId,
    SealedQueries,
    TaskId,
    batch_id,
    number_bytes,
    split_query_ids,
)
from dppp.protocol.task import Task
from dppp.randomness import RandomSource, system_randomness

ROW_KEY_BYTES = 32
_CONTENT_KEY_BYTES = 32
_NONCE = bytes(12)
"""Fixed: every content key encrypts one message."""
_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedRows:
    """What a teacher reads: the rows as a table, and the id of each."""

    inputs: Inputs = field(repr=False)
    query_ids: tuple[QueryId, ...] = field(repr=False)


def make_row_secret(randomness: RandomSource = system_randomness) -> bytes:
    """What a querier keeps to know its rows again; it serves for any number of tasks."""
    return randomness(ROW_KEY_BYTES)


def row_key_of(secret: bytes, task_id: TaskId) -> bytes:
    """The key of a querier's rows in one task; teachers learn it, and no other."""
    return hmac.digest(secret, b"dppp row key 1" + task_id, "sha256")


def query_ids_of(row_key: bytes, task_id: TaskId, rows: Sequence[bytes]) -> bytes:
    """The ids of encoded rows, one after the other."""
    return b"".join(name_rows(row_key, task_id, rows))


def name_rows(row_key: bytes, task_id: TaskId, rows: Sequence[bytes]) -> tuple[QueryId, ...]:
    """The id of each encoded row.

    id key = BLAKE2s(task), under the row key, for this purpose. It has 32 bytes and stands before
    the row: Python takes longer for a hash with a key, and BLAKE2 cannot be extended. For the same
    reason the hash that has read the key is copied for every row.
    """
    begun = hashlib.blake2s(hashlib.blake2s(task_id, key=row_key, person=b"query 4").digest())
    named: list[bytes] = []
    for row in rows:
        one = begun.copy()
        one.update(row)
        named.append(one.digest())
    return cast("tuple[QueryId, ...]", tuple(named))


def seal_rows(
    task: Task,
    row_key: bytes,
    rows: Sequence[bytes],
    *,
    randomness: RandomSource = system_randomness,
) -> SealedQueries:
    """Encrypt rows, each of them once, for all teachers of a task. Run by the querier."""
    query_ids = query_ids_of(row_key, task.task_id, rows)
    if len(set(split_query_ids(query_ids))) < len(rows):
        raise InputError("a row occurs twice in a batch", hint="ask about it once")
    content_key = randomness(_CONTENT_KEY_BYTES)
    plaintext = row_key + join_rows(rows)
    sealed = AESGCM(content_key).encrypt(_NONCE, plaintext, task.task_id)
    payload = _payload_hash(sealed)
    return SealedQueries(
        task_id=task.task_id,
        query_ids=query_ids,
        sealed=sealed,
        wrapped_keys=b"".join(
            wrap_key(content_key, teacher.row_key, _info(task.task_id, index, payload))
            for index, teacher in enumerate(task.teachers, start=1)
        ),
    )


def wrap_key(content_key: bytes, public: bytes, info: bytes) -> bytes:
    """The content key sealed to one teacher."""
    return _SUITE.encrypt(content_key, X25519PublicKey.from_public_bytes(public), info=info)


def ballot_request(request: BatchRequest) -> BallotRequest:
    """What all teachers are sent of a request; unsigned, and without anybody's key."""
    return BallotRequest(
        task_id=request.task_id,
        batch_id=request.batch_id,
        deadline=request.deadline,
        queries=len(request.queries.query_ids) // HASH_BYTES,
        sealed=request.queries.sealed,
    )


def wrapped_key_of(queries: SealedQueries, teacher: int) -> bytes:
    """The wrapped key of one teacher."""
    end = teacher * WRAPPED_KEY_BYTES
    return queries.wrapped_keys[end - WRAPPED_KEY_BYTES : end]


def require_for_all(task: Task, queries: SealedQueries) -> None:
    """Refuse queries without a wrapped key for each teacher, or with one twice. The aggregator."""
    if len(queries.wrapped_keys) != len(task.teachers) * WRAPPED_KEY_BYTES:
        raise InputError(
            f"the rows are sealed to {len(queries.wrapped_keys) // WRAPPED_KEY_BYTES} teachers, "
            f"and the task has {len(task.teachers)}",
            hint="seal them with the terms of this task",
        )
    query_ids = split_query_ids(queries.query_ids)
    if len(set(query_ids)) < len(query_ids):
        raise InputError("a query id occurs twice in the batch", hint="ask about each row once")


def open_rows(
    task: Task, index: int, private_key: X25519PrivateKey, request: BallotRequest
) -> OpenedRows:
    """Decrypt and check what teacher `index` was sent: the rows of exactly this batch, or none."""
    plaintext = _decrypt(task, index, private_key, request)
    row_key, data = plaintext[:ROW_KEY_BYTES], plaintext[ROW_KEY_BYTES:]
    try:
        inputs = decode_rows(data, request.queries, task.columns)
        rows = split_rows(data, request.queries, task.columns)
    except InputError as error:
        raise RowsUnreadable(
            f"what the sealed rows hold is refused: {message_of(error)}; nothing was charged",
            hint="have the querier seal its rows again, with this version",
        ) from error
    query_ids = name_rows(row_key, task.task_id, rows)
    if batch_id(task.task_id, b"".join(query_ids)) != request.batch_id:
        raise RowsChanged(
            "the rows that this teacher was sent are not those of the batch; nothing was charged",
            hint="the querier, or whoever carried it, sent other rows to this teacher",
        )
    return OpenedRows(inputs=inputs, query_ids=query_ids)


def _decrypt(
    task: Task, index: int, private_key: X25519PrivateKey, request: BallotRequest
) -> bytes:
    info = _info(task.task_id, index, _payload_hash(request.sealed))
    try:
        content_key = _SUITE.decrypt(request.wrapped_key, private_key, info=info)
        plaintext = AESGCM(content_key).decrypt(_NONCE, request.sealed, task.task_id)
    except (InvalidTag, ValueError):
        raise RowsUnreadable(
            f"the sealed rows do not open with the row key of teacher {index}; nothing was charged",
            hint="they were sealed for another task or teacher, or changed on the way",
        ) from None
    return plaintext


def _payload_hash(sealed: bytes) -> bytes:
    """Names a payload; taken once, and not for each of many teachers."""
    return hash_parts("dppp sealed rows 2", (sealed,))


def _info(task_id: TaskId, index: int, payload: bytes) -> bytes:
    """What a wrapped key is bound to: task, teacher, and the one payload that it is for."""
    return hash_parts("dppp rows 2", (task_id, number_bytes(index), payload))
