import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.protocol.small import (
    CLASS_NAMES,
    DEADLINE,
    NOW,
    certificate,
    first_feature,
    request_for,
    sent_to,
    small,
)
from tests.small_federation import SmallFederation

import dppp.protocol.teacher
from dppp.errors import (
    BallotUnknown,
    InputError,
    ListFault,
    ListNotCertified,
    ListNotEndorsed,
    ListNotServed,
    NotFromAggregator,
    OwnBallotMissing,
    QueriesExhausted,
    QueryReused,
    RequestExpired,
    RowsUnreadable,
    SecondList,
    WireError,
    WrongTask,
)
from dppp.federation import Parties
from dppp.paillier.decryption.combination import open_tallies
from dppp.paillier.decryption.shares import DecryptionShares
from dppp.paillier.encryption import add_ballots, read_ciphertexts, write_ciphertexts
from dppp.protocol.messages import (
    UNSIGNED,
    Ballot,
    BallotList,
    BallotRequest,
    BatchRequest,
    CertifiedList,
    Endorsement,
    Endorser,
    ProofRequest,
    SignedShares,
    list_hash,
    signed_bytes,
)
from dppp.protocol.release import ballots_offset
from dppp.protocol.rows import make_row_secret, seal_rows
from dppp.protocol.signing import sign
from dppp.protocol.task import Task
from dppp.protocol.teacher import Teacher
from dppp.protocol.votes import Predict, sum_votes
from dppp.protocol.wire import decode, encode
from dppp.protocol.with_paillier.ballots import check_list
from dppp.protocol.with_paillier.teacher import PaillierKeys


def list_for(parties: Parties, request: BatchRequest, *, of: tuple[int, ...] = ()) -> BallotList:
    chosen = of or tuple(parties.teachers)
    unsigned = BallotList(
        task_id=parties.task.task_id,
        batch_id=request.batch_id,
        ballots=tuple(
            parties.teachers[index].vote(sent_to(parties, request, index), now=NOW)
            for index in chosen
        ),
    )
    return sign(unsigned, parties.aggregator_signer)


def opened_counts(parties: SmallFederation, ballot_list: BallotList, queries: int) -> np.ndarray:
    """The counts that the teachers' own shares open."""
    public, task = parties.key.public, parties.task
    size = task.ciphertexts_for(queries)
    tally = check_list(task, public, ballot_list, size=size).tallies
    certified = encode(certified_list(parties, ballot_list))
    shares = [
        DecryptionShares.from_bytes(
            public, decode(parties.teachers[index].open_list(certified), SignedShares).shares
        )
        for index in range(1, task.trust.threshold + 1)
    ]
    plaintexts = open_tallies(public, tally, shares).plaintexts
    classes = len(task.class_names)
    sums = task.packing.unpack(
        plaintexts, queries * classes, contributions=len(ballot_list.ballots)
    )
    return np.array(sums).reshape(queries, classes) - ballots_offset(task, len(ballot_list.ballots))


def signed(parties: Parties, message: Any) -> bytes:
    """As the aggregator sends it."""
    return encode(sign(message, parties.aggregator_signer))


def endorse(parties: Parties, teacher: int, ballot_list: BallotList) -> Endorsement:
    return decode(parties.teachers[teacher].endorse_list(encode(ballot_list)), Endorsement)


def certified_list(
    parties: SmallFederation, ballot_list: BallotList, *, by: Sequence[int] | None = None
) -> CertifiedList:
    """The list with the endorsements of t teachers."""
    public, task = parties.key.public, parties.task
    ballots = [decode(each, Ballot).ciphertexts for each in ballot_list.ballots]
    tallies = add_ballots(public, [read_ciphertexts(public, each) for each in ballots])
    endorsers = range(1, task.trust.threshold + 1) if by is None else by
    unsigned = CertifiedList(
        task_id=task.task_id,
        batch_id=ballot_list.batch_id,
        list_hash=list_hash(ballot_list),
        tallies=write_ciphertexts(public, tallies),
        endorsers=tuple(
            Endorser(teacher=each, signature=endorse(parties, each, ballot_list).signature)
            for each in endorsers
        ),
    )
    return sign(unsigned, parties.aggregator_signer)


def test_votes_and_noise_come_out_as_the_sum() -> None:
    parties = small()
    request = request_for(parties, 0, 1, 2, 1)
    counts = opened_counts(parties, list_for(parties, request), 4)
    spread = np.sqrt(parties.task.noise.variance * 5 / 3)
    expected = 5 * np.eye(3)[[0, 1, 2, 1]]
    assert np.all(np.abs(counts - expected) < 8 * spread)


def test_a_repeated_request_gets_the_stored_bytes_and_no_charge() -> None:
    parties = small()
    data = sent_to(parties, request_for(parties, 1, 2), 1)
    first = parties.teachers[1].vote(data, now=NOW)
    assert parties.teachers[1].vote(data, now=NOW) == first
    assert parties.teachers[1].vote(data, now=DEADLINE + 1) == first
    assert answered(parties, 1) == 2


def answered(parties: Parties, teacher: int) -> int:
    return parties.ledgers[teacher].summary().data[0].tasks[0].answered


def test_the_same_input_under_a_new_nonce_is_charged_anew_with_new_noise() -> None:
    parties = small()
    first = parties.teachers[1].vote(sent_to(parties, request_for(parties, 1), 1), now=NOW)
    second = parties.teachers[1].vote(
        sent_to(parties, request_for(parties, 1, nonce=50), 1), now=NOW
    )
    assert first != second
    assert answered(parties, 1) == 2


def test_a_batch_with_a_query_of_another_batch_is_refused() -> None:
    parties = small()
    parties.teachers[1].vote(sent_to(parties, request_for(parties, 1, 2), 1), now=NOW)
    with pytest.raises(QueryReused):
        parties.teachers[1].vote(sent_to(parties, request_for(parties, 1), 1), now=NOW)


def test_past_the_budget_everything_is_refused() -> None:
    parties = small()
    parties.teachers[1].vote(sent_to(parties, request_for(parties, *[1] * 39), 1), now=NOW)
    with pytest.raises(QueriesExhausted):
        parties.teachers[1].vote(sent_to(parties, request_for(parties, 1, 1, nonce=99), 1), now=NOW)
    parties.teachers[1].vote(sent_to(parties, request_for(parties, 1, nonce=200), 1), now=NOW)
    assert answered(parties, 1) == 40


def test_past_the_deadline_nothing_is_charged() -> None:
    parties = small()
    with pytest.raises(RequestExpired):
        parties.teachers[1].vote(sent_to(parties, request_for(parties, 1), 1), now=DEADLINE + 1)
    assert answered(parties, 1) == 0
    parties.teachers[1].vote(sent_to(parties, request_for(parties, 1), 1), now=DEADLINE)
    assert answered(parties, 1) == 1


def test_another_task_is_refused() -> None:
    parties, other = small(), small(abstain_below=2)
    request = request_for(other, 1)
    with pytest.raises(WrongTask):
        parties.teachers[1].vote(sent_to(parties, request, 1), now=NOW)
    ballot_list = list_for(other, request)
    for message in (ballot_list, certified_list(other, ballot_list)):
        with pytest.raises(WrongTask):
            parties.teachers[1].handle(encode(message), now=NOW)


@pytest.mark.parametrize("data", [b"", np.array([1.0]).tobytes(), np.array([np.nan, 1]).tobytes()])
def test_inputs_that_do_not_fit_the_task_are_refused_before_any_charge(data: bytes) -> None:
    parties = small()
    request = BatchRequest(
        deadline=DEADLINE, queries=seal_rows(parties.task, make_row_secret(), [data])
    )
    with pytest.raises(RowsUnreadable, match=r"input 0|are not 1 rows of 2 numbers"):
        parties.teachers[1].vote(sent_to(parties, request, 1), now=NOW)
    assert answered(parties, 1) == 0


def test_one_list_is_endorsed_and_endorsed_again_but_no_second_one() -> None:
    parties = small()
    request = request_for(parties, 1, 2)
    whole = list_for(parties, request)
    first = parties.teachers[1].endorse_list(encode(whole))
    assert parties.teachers[1].endorse_list(encode(whole)) == first
    without_last = signed(parties, dataclasses.replace(whole, ballots=whole.ballots[:-1]))
    with pytest.raises(SecondList):
        parties.teachers[1].endorse_list(without_last)
    parties.teachers[2].endorse_list(without_last)


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
    parties = small()
    whole = list_for(parties, request_for(parties, 1, 2))
    other = list_for(parties, request_for(parties, 1, 2, nonce=70))
    for reason, broken in broken_lists(whole, other).items():
        for ballots in broken:
            data = signed(parties, dataclasses.replace(whole, ballots=ballots))
            with pytest.raises(ListFault, match=reason):
                parties.teachers[1].endorse_list(data)
    parties.teachers[1].endorse_list(encode(whole))


def test_a_list_without_its_own_ballot_is_refused() -> None:
    parties = small()
    request = request_for(parties, 1)
    others = list_for(parties, request, of=(2, 3, 4, 5))
    with pytest.raises(BallotUnknown):  # took no part at all
        parties.teachers[1].endorse_list(encode(others))
    parties.teachers[1].vote(sent_to(parties, request, 1), now=NOW)
    with pytest.raises(OwnBallotMissing):
        parties.teachers[1].endorse_list(encode(others))


def test_proofs_are_given_only_for_shares_that_were_given() -> None:
    parties = small()
    ballot_list = list_for(parties, request_for(parties, 1))
    certified = certified_list(parties, ballot_list)
    request = ProofRequest(
        task_id=certified.task_id,
        batch_id=certified.batch_id,
        list_hash=certified.list_hash,
        tallies=certified.tallies,
    )
    asking = signed(parties, request)
    with pytest.raises(ListNotServed):
        parties.teachers[1].handle(asking, now=NOW)
    parties.teachers[1].open_list(encode(certified))
    parties.teachers[1].handle(asking, now=NOW)
    others = signed(parties, dataclasses.replace(request, tallies=request.tallies[::-1]))
    with pytest.raises(ListFault, match="not the tallies"):
        parties.teachers[1].handle(others, now=NOW)


def test_shares_are_given_again_as_they_are_stored() -> None:
    parties = small()
    certified = encode(certified_list(parties, list_for(parties, request_for(parties, 1))))
    first = parties.teachers[1].open_list(certified)
    assert parties.teachers[1].open_list(certified) == first


def bad_endorsers(parties: SmallFederation, good: CertifiedList) -> dict[str, tuple[Endorser, ...]]:
    """Endorsements that do not certify a list, by what is wrong with them."""
    first, second, third, fourth = good.endorsers
    foreign = small()
    other_list = list_for(parties, request_for(parties, 1, nonce=30))
    stranger = certified_list(foreign, list_for(foreign, request_for(foreign, 1))).endorsers[3]
    swapped = Endorser(teacher=4, signature=third.signature)
    other = Endorser(teacher=4, signature=endorse(parties, 4, other_list).signature)
    return {
        "one too few": (first, second, third),
        "none": (),
        "one twice": (first, second, third, third),
        "one twice beside t": (first, first, second, third, fourth),
        "another's signature": (first, second, third, swapped),
        "of another batch": (first, second, third, other),
        "of another federation": (first, second, third, stranger),
        "unsigned": (first, second, third, Endorser(teacher=4, signature=bytes(64))),
        "nobody of the task": (first, second, third, Endorser(teacher=6, signature=bytes(64))),
        "one bad beside t": (*good.endorsers, Endorser(teacher=5, signature=bytes(64))),
    }


def test_no_shares_without_t_valid_and_distinct_endorsements_of_the_same_list() -> None:
    parties = small()
    good = certified_list(parties, list_for(parties, request_for(parties, 1)))
    for endorsers in bad_endorsers(parties, good).values():
        with pytest.raises(ListNotCertified):
            parties.teachers[1].open_list(
                signed(parties, dataclasses.replace(good, endorsers=endorsers))
            )
    parties.teachers[1].open_list(encode(good))


def test_endorsements_by_teachers_outside_the_list_do_not_certify_it() -> None:
    parties = small()
    request = request_for(parties, 1)
    of_four = list_for(parties, request, of=(1, 2, 3, 4))
    good = certified_list(parties, of_four, by=(1, 2, 3, 4))
    statement = endorse(parties, 1, of_four).statement
    theirs = sign(Endorsement(statement=statement, teacher=5), parties.signers[5])
    forged = (*good.endorsers[:3], Endorser(teacher=5, signature=theirs.signature))
    with pytest.raises(ListNotCertified, match="whose ballots are in it"):
        parties.teachers[1].open_list(signed(parties, dataclasses.replace(good, endorsers=forged)))


def test_shares_only_of_the_tallies_and_the_list_that_were_endorsed() -> None:
    parties = small()
    request = request_for(parties, 1)
    whole = list_for(parties, request)
    good = certified_list(parties, whole)
    other = list_for(parties, request_for(parties, 2, nonce=60))
    tallies = certified_list(parties, other).tallies
    with pytest.raises(ListFault, match="not the tallies"):
        parties.teachers[1].open_list(signed(parties, dataclasses.replace(good, tallies=tallies)))
    changed = signed(parties, dataclasses.replace(good, list_hash=list_hash(other)))
    with pytest.raises(SecondList):
        parties.teachers[1].open_list(changed)


def test_a_teacher_that_did_not_endorse_gives_no_shares() -> None:
    """Nor one that has no ballot in the batch, whoever endorsed the list."""
    parties = small()
    request = request_for(parties, 1)
    whole = list_for(parties, request)
    good = encode(certified_list(parties, whole))
    with pytest.raises(ListNotEndorsed):
        parties.teachers[5].open_list(good)
    parties.teachers[5].endorse_list(encode(whole))
    parties.teachers[5].open_list(good)
    newcomer = list_for(parties, request_for(parties, 1, nonce=80), of=(1, 2, 3, 4))
    with pytest.raises(BallotUnknown):
        parties.teachers[5].open_list(encode(certified_list(parties, newcomer, by=(1, 2, 3, 4))))


def test_nothing_is_done_that_the_aggregator_did_not_sign() -> None:
    """Whoever holds the broker's keys, or a teacher's, cannot spend a budget or open anything."""
    parties = small()
    request = request_for(parties, 1)
    asked = decode(sent_to(parties, request, 1), BallotRequest)
    other = decode(sent_to(parties, request_for(parties, 2), 1), BallotRequest)
    a_teachers = parties.signers[2]
    unsigned = UNSIGNED, a_teachers(signed_bytes(asked)), other.signature, request.signature
    for signature in unsigned:
        forged = dataclasses.replace(asked, signature=signature)
        with pytest.raises(NotFromAggregator):
            parties.teachers[1].handle(encode(forged), now=NOW)
    assert answered(parties, 1) == 0
    ballot_list = list_for(parties, request)
    certified = certified_list(parties, ballot_list)
    proof = ProofRequest(
        task_id=certified.task_id,
        batch_id=certified.batch_id,
        list_hash=certified.list_hash,
        tallies=certified.tallies,
    )
    for message in (ballot_list, certified, proof):
        for signature in (UNSIGNED, a_teachers(signed_bytes(message)), request.signature):
            with_another = encode(dataclasses.replace(message, signature=signature))
            with pytest.raises(NotFromAggregator):
                parties.teachers[1].handle(with_another, now=NOW)


def test_the_signature_of_a_request_covers_all_of_it() -> None:
    parties = small()
    asked = decode(sent_to(parties, request_for(parties, 1, 2), 1), BallotRequest)
    for change in (
        {"deadline": DEADLINE + 1},
        {"queries": 1},
        {"batch_id": bytes(32)},
        {"sealed": asked.sealed[:-1]},
    ):
        forged = dataclasses.replace(asked, **change)
        with pytest.raises(NotFromAggregator):
            parties.teachers[1].handle(encode(forged), now=NOW)


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
    parties = small(model=model)
    seen: list[np.ndarray] = []

    def cast_and_look(*arguments: Any, **named: Any) -> np.ndarray:
        seen.append(sum_votes(*arguments, **named))
        return seen[-1]

    monkeypatch.setattr(dppp.protocol.teacher, "sum_votes", cast_and_look)
    parties.teachers[1].vote(sent_to(parties, request_for(parties, 0, 1, 2), 1), now=NOW)
    assert seen[0].tolist() == expected


def test_why_a_model_failed_stays_with_its_teacher() -> None:
    notes: list[str] = []
    parties = small(model=broken_model)
    teacher = parties.teachers[1]
    teacher._note = notes.append
    ballot = teacher.vote(sent_to(parties, request_for(parties, 0, 2), 1), now=NOW)
    assert "trouble" in notes[0]
    assert b"trouble" not in ballot


@pytest.mark.parametrize("data", [b"", b"\x80", encode(small().task)])
def test_a_message_that_is_none_for_a_teacher_is_refused(data: bytes) -> None:
    with pytest.raises((WireError, InputError)):
        small().teachers[1].handle(data, now=NOW)


def test_a_share_of_another_teacher_is_refused() -> None:
    parties = small()

    def with_share_of(teacher: int) -> Teacher:
        return Teacher(
            index=1,
            task=parties.task,
            keys=PaillierKeys(
                public=parties.key.public,
                key_share=parties.key.shares[teacher - 1],
                draw_blinding=parties.setting.table.draw,
            ),
            signer=parties.signers[1],
            row_key=parties.row_keys[0],
            ledger=parties.ledgers[1],
            predict=first_feature,
        )

    assert with_share_of(1).index == 1
    with pytest.raises(InputError, match="key share is teacher 2's, not teacher 1's"):
        with_share_of(2)


def test_classes_are_those_of_the_task() -> None:
    task: Task = small().task
    assert task.class_names == CLASS_NAMES
    assert task.certificate.promise == certificate().promise
