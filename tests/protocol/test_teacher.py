import dataclasses

import numpy as np
import pytest
from tests.protocol.small import (
    CLASS_NAMES,
    DEADLINE,
    NOW,
    certificate,
    first_feature,
    request_for,
    small,
)

from dppp.errors import (
    DpppError,
    InputError,
    ListFault,
    ListNotServed,
    OwnBallotMissing,
    QueriesExhausted,
    QueryReused,
    RequestExpired,
    SecondList,
    WireError,
    WrongTask,
)
from dppp.federation import Founded
from dppp.paillier.decryption.combination import open_tallies
from dppp.paillier.decryption.shares import DecryptionShares
from dppp.protocol.ballots import check_list
from dppp.protocol.messages import (
    BallotList,
    BatchRequest,
    ProofRequest,
    Query,
    SignedShares,
    batch_id,
    query_id,
)
from dppp.protocol.release import ballots_offset
from dppp.protocol.task import Task
from dppp.protocol.votes import Predict
from dppp.protocol.wire import decode, encode


def list_for(founded: Founded, request: BatchRequest, *, of: tuple[int, ...] = ()) -> BallotList:
    data = encode(request)
    chosen = of or tuple(founded.teachers)
    ids = [query_id(founded.task.task_id, query) for query in request.queries]
    return BallotList(
        task_id=founded.task.task_id,
        batch_id=batch_id(founded.task.task_id, ids),
        ballots=tuple(founded.teachers[index].vote(data, now=NOW) for index in chosen),
    )


def opened_counts(founded: Founded, ballot_list: BallotList, queries: int) -> np.ndarray:
    """The counts that the teachers' own shares open."""
    public, task = founded.key.public, founded.task
    size = task.ciphertexts_for(queries)
    tally = check_list(task, public, ballot_list, size=size)
    shares = [
        DecryptionShares.from_bytes(
            public,
            decode(founded.teachers[index].open_list(encode(ballot_list)), SignedShares).shares,
        )
        for index in range(1, task.trust.threshold + 1)
    ]
    plaintexts = open_tallies(public, tally, shares).plaintexts
    classes = len(task.class_names)
    sums = task.packing.unpack(
        plaintexts, queries * classes, contributions=len(ballot_list.ballots)
    )
    return np.array(sums).reshape(queries, classes) - ballots_offset(task, len(ballot_list.ballots))


def test_votes_and_noise_come_out_as_the_sum() -> None:
    founded = small()
    request = request_for(founded.task, 0, 1, 2, 1)
    counts = opened_counts(founded, list_for(founded, request), 4)
    spread = np.sqrt(founded.task.noise.variance * 5 / 3)
    expected = 5 * np.eye(3)[[0, 1, 2, 1]]
    assert np.all(np.abs(counts - expected) < 8 * spread)


def test_a_repeated_request_gets_the_stored_bytes_and_no_charge() -> None:
    founded = small()
    data = encode(request_for(founded.task, 1, 2))
    first = founded.teachers[1].vote(data, now=NOW)
    assert founded.teachers[1].vote(data, now=NOW) == first
    assert founded.teachers[1].vote(data, now=DEADLINE + 1) == first
    assert answered(founded, 1) == 2


def answered(founded: Founded, teacher: int) -> int:
    return founded.ledgers[teacher].summary().data[0].tasks[0].answered


def test_the_same_input_under_a_new_nonce_is_charged_anew_with_new_noise() -> None:
    founded = small()
    first = founded.teachers[1].vote(encode(request_for(founded.task, 1)), now=NOW)
    second = founded.teachers[1].vote(encode(request_for(founded.task, 1, nonce=50)), now=NOW)
    assert first != second
    assert answered(founded, 1) == 2


def test_a_batch_with_a_query_of_another_batch_is_refused() -> None:
    founded = small()
    founded.teachers[1].vote(encode(request_for(founded.task, 1, 2)), now=NOW)
    with pytest.raises(QueryReused):
        founded.teachers[1].vote(encode(request_for(founded.task, 1)), now=NOW)


def test_past_the_budget_everything_is_refused() -> None:
    founded = small()
    founded.teachers[1].vote(encode(request_for(founded.task, *[1] * 39)), now=NOW)
    with pytest.raises(QueriesExhausted):
        founded.teachers[1].vote(encode(request_for(founded.task, 1, 1, nonce=99)), now=NOW)
    founded.teachers[1].vote(encode(request_for(founded.task, 1, nonce=200)), now=NOW)
    assert answered(founded, 1) == 40


def test_past_the_deadline_nothing_is_charged() -> None:
    founded = small()
    with pytest.raises(RequestExpired):
        founded.teachers[1].vote(encode(request_for(founded.task, 1)), now=DEADLINE + 1)
    assert answered(founded, 1) == 0
    founded.teachers[1].vote(encode(request_for(founded.task, 1)), now=DEADLINE)
    assert answered(founded, 1) == 1


def test_another_task_is_refused() -> None:
    founded, other = small(), small(abstain_below=2)
    request = request_for(other.task, 1)
    with pytest.raises(WrongTask):
        founded.teachers[1].vote(encode(request), now=NOW)
    with pytest.raises(WrongTask):
        founded.teachers[1].open_list(encode(list_for(other, request)))


@pytest.mark.parametrize("data", [b"", np.array([1.0]).tobytes(), np.array([np.nan, 1]).tobytes()])
def test_inputs_that_do_not_fit_the_task_are_refused_before_any_charge(data: bytes) -> None:
    founded = small()
    request = BatchRequest(
        task_id=founded.task.task_id,
        deadline=DEADLINE,
        queries=(Query(nonce=bytes(16), input=data),),
    )
    with pytest.raises(InputError, match="input 0"):
        founded.teachers[1].vote(encode(request), now=NOW)
    assert answered(founded, 1) == 0


def test_one_list_is_served_and_served_again_but_no_second_one() -> None:
    founded = small()
    request = request_for(founded.task, 1, 2)
    whole = list_for(founded, request)
    first = founded.teachers[1].open_list(encode(whole))
    assert founded.teachers[1].open_list(encode(whole)) == first
    without_last = dataclasses.replace(whole, ballots=whole.ballots[:-1])
    with pytest.raises(SecondList):
        founded.teachers[1].open_list(encode(without_last))
    founded.teachers[2].open_list(encode(without_last))


def broken_lists(whole: BallotList, other: BallotList) -> dict[str, list[tuple[bytes, ...]]]:
    """Ballots that are no list, by the reason that must be given."""
    first, second, *rest = whole.ballots
    flipped = bytearray(second)
    flipped[-1] ^= 1
    return {
        "expected 4 to 5": [(first,), (first, second, rest[0]), (*whole.ballots, rest[-1])],
        "twice or is out of order": [(first,) * 5, tuple(reversed(whole.ballots))],
        "not signed by teacher 2": [(first, bytes(flipped), *rest)],
        "for another task or batch": [(first, other.ballots[1], *rest)],
        "not a ballot": [(first, b"", *rest)],
    }


def test_a_list_that_is_not_complete_and_good_is_refused_and_leaves_no_trace() -> None:
    founded = small()
    whole = list_for(founded, request_for(founded.task, 1, 2))
    other = list_for(founded, request_for(founded.task, 1, 2, nonce=70))
    for reason, broken in broken_lists(whole, other).items():
        for ballots in broken:
            with pytest.raises(ListFault, match=reason):
                founded.teachers[1].open_list(encode(dataclasses.replace(whole, ballots=ballots)))
    founded.teachers[1].open_list(encode(whole))


def test_a_list_without_the_own_ballot_is_refused() -> None:
    founded = small()
    request = request_for(founded.task, 1)
    others = list_for(founded, request, of=(2, 3, 4, 5))
    with pytest.raises(DpppError):  # took no part at all
        founded.teachers[1].open_list(encode(others))
    founded.teachers[1].vote(encode(request), now=NOW)
    with pytest.raises(OwnBallotMissing):
        founded.teachers[1].open_list(encode(others))


def test_proofs_are_given_only_for_shares_that_were_given() -> None:
    founded = small()
    ballot_list = list_for(founded, request_for(founded.task, 1))
    asking = encode(ProofRequest(ballot_list=encode(ballot_list)))
    with pytest.raises(ListNotServed):
        founded.teachers[1].prove_shares(asking)
    founded.teachers[1].open_list(encode(ballot_list))
    founded.teachers[1].handle(asking, now=NOW)


def broken_model(rows: np.ndarray) -> list[int]:
    if any(row[0] == 2 for row in rows):
        raise RuntimeError("a model's own trouble")
    return [int(row[0]) for row in rows]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (first_feature, [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
        (broken_model, [[1, 0, 0], [0, 1, 0], [0, 0, 0]]),
        (lambda _: [], [[0, 0, 0]] * 3),
        (lambda rows: [7] * len(rows), [[0, 0, 0]] * 3),
        (lambda rows: [len(CLASS_NAMES)] * len(rows), [[0, 0, 0]] * 3),
        (lambda rows: [-1] * len(rows), [[0, 0, 0]] * 3),
        (lambda rows: ["yes"] * len(rows), [[0, 0, 0]] * 3),
        (lambda rows: [True] * len(rows), [[0, 0, 0]] * 3),
        (lambda rows: [None, 1, None][: len(rows)], [[0, 0, 0], [0, 1, 0], [0, 0, 0]]),
        (lambda rows: np.array([2] * len(rows)), [[0, 0, 1]] * 3),
    ],
)
def test_whatever_a_model_says_the_teacher_takes_part(
    model: Predict, expected: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    founded = small(model=model)
    seen: list[np.ndarray] = []
    cast = founded.teachers[1]._cast_votes
    monkeypatch.setattr(
        founded.teachers[1], "_cast_votes", lambda inputs: seen.append(cast(inputs)) or seen[-1]
    )
    founded.teachers[1].vote(encode(request_for(founded.task, 0, 1, 2)), now=NOW)
    assert seen[0].tolist() == expected


def test_why_a_model_failed_stays_at_home() -> None:
    notes: list[str] = []
    founded = small(model=broken_model)
    teacher = founded.teachers[1]
    teacher._note = notes.append
    ballot = teacher.vote(encode(request_for(founded.task, 0, 2)), now=NOW)
    assert "trouble" in notes[0]
    assert b"trouble" not in ballot


@pytest.mark.parametrize("data", [b"", b"\x80", encode(small().task)])
def test_a_message_that_is_none_for_a_teacher_is_refused(data: bytes) -> None:
    with pytest.raises((WireError, InputError)):
        small().teachers[1].handle(data, now=NOW)


def test_a_share_of_another_teacher_is_refused() -> None:
    founded = small()
    one, two = founded.teachers[1], founded.teachers[2]
    with pytest.raises(InputError, match="key share"):
        type(one)(
            index=1,
            task=founded.task,
            public=founded.key.public,
            key_share=two._key_share,
            signer=one._signer,
            ledger=founded.ledgers[1],
            predict=first_feature,
            draw_blinding=one._draw_blinding,
        )


def test_classes_are_those_of_the_task() -> None:
    task: Task = small().task
    assert task.class_names == CLASS_NAMES
    assert task.certificate.promise == certificate().promise
