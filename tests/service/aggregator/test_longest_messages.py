"""Messages under masks are never longer than the aggregator takes, nor lists than a broker does."""

from typing import Any

import pytest
from tests.small_federation import kept_certificate

from dppp.masks.ballots import HEADER_BYTES, HEADER_DIGESTS_BYTES
from dppp.masks.dealing import secret_row_bytes, seed_row_bytes
from dppp.masks.sealing import TAG_BYTES
from dppp.privacy.calibration import calibrate
from dppp.protocol.lists import statement_of
from dppp.protocol.messages import MOST_INDEX, MOST_QUERIES, BatchId, Endorsement, ListHash
from dppp.protocol.task import Task, TeacherEntry, agree
from dppp.protocol.wire import Message, encode
from dppp.protocol.with_masks.messages import (
    DELIVERY_BYTES,
    MAC_BYTES,
    DeliveredList,
    MaskedBallot,
    Objection,
    SeedRows,
    ShownRows,
)
from dppp.service.broker.frames import MOST_BYTES

QUERIES = (1, 50, MOST_QUERIES)
BATCH, LIST, HASH = BatchId(b"\1" * 32), ListHash(b"\2" * 32), b"\3" * 32
LAST = MOST_INDEX
"""An index that takes as many bytes as any."""


def task_of(teachers: int, queries: int = 100) -> Task:
    make = calibrate if teachers > 20 else kept_certificate
    promise = make("skellam", epsilon=8, delta=1e-5, teachers=teachers, queries=queries, classes=10)
    return agree(
        name="long",
        data_id="data",
        class_names=[f"class {number}" for number in range(10)],
        features=["first"],
        teachers=[
            TeacherEntry(
                name=f"teacher {index}",
                signing_key=index.to_bytes(32, "big"),
                row_key=(index + 1).to_bytes(32, "little"),
            )
            for index in range(1, teachers + 1)
        ],
        aggregator_key=bytes(32),
        certificate=promise,
    )


def longest_answers(task: Task, queries: int) -> dict[str, Message]:
    """Each message of a teacher whose length grows with teachers or queries, as long as it gets."""
    everybody, parameters = range(1, len(task.teachers) + 1), task.parameters
    count, secret, seed = len(everybody), secret_row_bytes(parameters), seed_row_bytes(parameters)
    about: dict[str, Any] = {
        "task_id": task.task_id,
        "batch_id": BATCH,
        "attempt": 16,
        "teacher": LAST,
    }
    blocks = parameters.blocks_for(10 * queries)
    statement = statement_of(
        task, batch=BATCH, of_list=LIST, tallies=b"", participants=tuple(everybody), key_id=HASH
    )
    made: list[Message] = [
        MaskedBallot(
            **about,
            roster_hash=HASH,
            header=bytes(HEADER_BYTES),
            check_block=bytes(parameters.block_bytes),
            votes=bytes(blocks * parameters.block_bytes),
            secret_seals=bytes(count * (secret + TAG_BYTES)),
            seed_seals=bytes(count * (seed + TAG_BYTES)),
        ),
        Endorsement(
            statement=statement,
            teacher=LAST,
            content=bytes(secret + MAC_BYTES * count + DELIVERY_BYTES),
        ),
        SeedRows(**about, list_hash=LIST, rows=bytes(count * seed)),
        Objection(
            **about,
            list_hash=LIST,
            delivery=bytes(DELIVERY_BYTES),
            purpose=2,
            dealers=tuple(everybody),
        ),
        ShownRows(
            **about,
            purpose=1,
            dealers=tuple(everybody),
            tag_keys=bytes(32 * count),
            rows=bytes(count * secret),
        ),
    ]
    return {each.KIND: each for each in made}


@pytest.mark.parametrize("teachers", [3, 20, 250])
def test_no_message_of_a_teacher_is_longer_than_the_aggregator_takes(teachers: int) -> None:
    task = task_of(teachers)
    for queries in QUERIES:
        bound = task.answer_bytes(queries)
        for kind, message in longest_answers(task, queries).items():
            assert len(encode(message)) <= bound, (kind, queries)
        ballot = longest_answers(task, queries)[MaskedBallot.KIND]
        assert bound < len(encode(ballot)) + 512 * teachers + 2**15  # what a flood may fill


@pytest.mark.parametrize("teachers", [3, 20, 250])
def test_no_list_is_longer_than_it_is_said_to_be_whatever_is_asked(teachers: int) -> None:
    task = task_of(teachers)
    parameters, everybody = task.parameters, tuple(range(1, teachers + 1))
    delivered = DeliveredList(
        task_id=task.task_id,
        batch_id=BATCH,
        attempt=16,
        roster_hash=HASH,
        recipient=LAST,
        participants=everybody,
        header_digests=bytes(HEADER_DIGESTS_BYTES * teachers),
        secret_seals=bytes(teachers * (secret_row_bytes(parameters) + TAG_BYTES)),
        seed_seals=bytes(teachers * (seed_row_bytes(parameters) + TAG_BYTES)),
    )
    assert len(encode(delivered)) <= task.list_bytes(1) == task.list_bytes(MOST_QUERIES)
    assert task.list_bytes(MOST_QUERIES) < MOST_BYTES
