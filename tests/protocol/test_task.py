import dataclasses
import math
from typing import Any

import pytest
from tests.protocol.small import (
    CLASS_NAMES,
    FEATURES,
    NOW,
    certificate,
    request_for,
    sent_to,
    small,
)
from tests.small_federation import dealt_key
from tests.vectors.make_paillier import PRIMES

from dppp.errors import TaskError, WireError
from dppp.paillier.dealer import deal_from_primes
from dppp.paillier.keys import Decryption
from dppp.privacy.calibration import calibrate
from dppp.privacy.noise import FAMILIES, Binomial, Skellam
from dppp.privacy.sampling import sampling_table
from dppp.protocol.columns import PLAIN, ColumnType
from dppp.protocol.task import NoiseTerms, Task, TeacherEntry, agree, entry_bound
from dppp.protocol.wire import decode, encode

GOOD_ROW_KEY = (9).to_bytes(32, "little")


def changed(**changes: Any) -> Task:
    return dataclasses.replace(small().task, **changes)


def test_a_task_survives_the_wire_and_keeps_its_hash() -> None:
    task = small().task
    again = decode(encode(task), Task)
    assert again == task
    assert again.task_id == task.task_id


@pytest.mark.parametrize("s", [1, 2, 4])
@pytest.mark.parametrize("queries", [1, 40])
def test_no_ballot_is_longer_than_the_task_says(s: int, queries: int) -> None:
    parties = small(s=s)
    ballot = parties.teachers[1].vote(
        sent_to(parties, request_for(parties, *[1] * queries), 1), now=NOW
    )
    longest = parties.task.answer_bytes(queries)
    assert longest - 2**14 <= len(ballot) <= longest


@pytest.mark.parametrize("length", [0, 31, 33])
def test_the_aggregators_key_is_one(length: int) -> None:
    with pytest.raises(TaskError, match="signing key"):
        dataclasses.replace(small().task, aggregator_key=bytes(length))


def test_the_aggregators_key_is_none_of_the_teachers() -> None:
    """Or a teacher could be made to sign a request, and the aggregator a ballot."""
    task = small().task
    with pytest.raises(TaskError, match="all different"):
        dataclasses.replace(task, aggregator_key=task.teachers[2].signing_key)


def test_every_term_changes_the_hash() -> None:
    task = small().task
    others = [
        dataclasses.replace(task, name="other"),
        dataclasses.replace(task, data_id="other"),
        dataclasses.replace(task, class_names=("no", "yes", "maybe")),
        dataclasses.replace(task, features=("first", "third")),
        dataclasses.replace(task, teachers=tuple(reversed(task.teachers))),
        dataclasses.replace(task, epsilon=task.epsilon * 1.5),
        dataclasses.replace(task, queries=task.queries - 1),
        dataclasses.replace(task, abstain_below=3),
        dataclasses.replace(task, key_id=bytes(32)),
        dataclasses.replace(task, aggregator_key=bytes(32)),
    ]
    assert len({each.task_id for each in (task, *others)}) == len(others) + 1


@pytest.mark.parametrize("family", FAMILIES)
def test_a_task_takes_any_certified_family(family: str) -> None:
    parties = small(of=certificate(noise=family))
    assert parties.task.noise == certificate(noise=family).noise
    assert parties.task.certificate.certified
    table = sampling_table(parties.task.noise)
    assert parties.task.entry_bound == 1 + table.highest - table.lowest


def test_an_uncertified_task_cannot_exist() -> None:
    weak = calibrate(
        "discrete-gaussian",
        epsilon=1,
        delta=1e-5,
        teachers=5,
        colluders=1,
        dropouts=1,
        calibration="paper",
        classes=3,
    )
    entries = small().task.teachers
    with pytest.raises(TaskError, match="not certified"):
        agree(
            name="weak",
            data_id="data",
            class_names=CLASS_NAMES,
            features=FEATURES,
            teachers=entries,
            aggregator_key=bytes(32),
            certificate=weak,
            public=dealt_key(5, 4).public,
        )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"queries": 4000}, "not certified"),
        ({"delta": 1e-12}, "not certified"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"colluders": 0}, "shares"),
        ({"colluders": 4}, "below teachers"),
        ({"colluders": 2, "dropouts": 2}, "threshold"),
        ({"class_names": ("one",)}, "at least two names"),
        ({"class_names": ("one", "one", "two")}, "different"),
        ({"class_names": ("one", "", "two")}, "printable"),
        ({"features": ()}, "features"),
        ({"name": "line\nbreak"}, "printable"),
        ({"entry_bound": 5}, "entries"),
        ({"key_id": b"short"}, "32"),
        ({"plaintext_bits": 4}, "slot"),
        ({"s": 0}, "no key has s = 0"),
        ({"s": 99}, "no key has s = 99"),
        ({"plaintext_bits": 2**30}, "plaintexts of"),
        ({"queries": 1_000_001}, "at most 1,000,000 queries"),
        (
            {"noise_terms": NoiseTerms(family="skellam", parameters=(1e12,), shares=3)},
            "too wide",
        ),
        (
            {"noise_terms": NoiseTerms(family="skellam", parameters=(1e308,), shares=3)},
            "too wide",
        ),
        ({"noise_terms": NoiseTerms(family="laplace", parameters=(1.0,), shares=3)}, "laplace"),
        ({"noise_terms": NoiseTerms(family="skellam", parameters=(), shares=3)}, "parameters"),
        (
            {"noise_terms": NoiseTerms(family="binomial", parameters=(30.5,), shares=3)},
            "whole number",
        ),
    ],
)
def test_a_task_that_contradicts_itself_cannot_exist(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(TaskError, match=reason):
        changed(**changes)


def test_tosses_that_do_not_divide_into_shares_cannot_be_agreed_on() -> None:
    honest = certificate(noise="binomial")
    terms = small(of=honest).task.noise_terms
    uneven = dataclasses.replace(terms, parameters=(terms.parameters[0] + 1,))
    bound = entry_bound(Binomial(total_tosses=int(uneven.parameters[0]), shares=uneven.shares))
    with pytest.raises(TaskError, match="equal shares"):
        dataclasses.replace(small(of=honest).task, noise_terms=uneven, entry_bound=bound)


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_signing_key_has_32_bytes(length: int) -> None:
    with pytest.raises(TaskError, match="32 bytes"):
        TeacherEntry(name="somebody", signing_key=bytes(length), row_key=GOOD_ROW_KEY)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (b"", "not an X25519 key"),
        (bytes(31), "not an X25519 key"),
        (bytes(33), "not an X25519 key"),
        (b"\xff" * 32, "not an X25519 key"),
        (bytes(32), "low order"),
        (b"\x01" + bytes(31), "low order"),
    ],
)
def test_a_row_key_hides_what_is_sealed_to_it(key: bytes, reason: str) -> None:
    with pytest.raises(TaskError, match=reason):
        TeacherEntry(name="somebody", signing_key=bytes(32), row_key=key)


def test_two_teachers_cannot_share_a_row_key() -> None:
    """Else one of them is sent rows under the other's name."""
    first, second, *rest = small().task.teachers
    twin = dataclasses.replace(second, row_key=first.row_key)
    with pytest.raises(TaskError, match="row keys"):
        changed(teachers=(first, twin, *rest))


def test_two_teachers_cannot_share_a_key() -> None:
    entry = small().task.teachers[0]
    twin = TeacherEntry(name="twin", signing_key=entry.signing_key, row_key=GOOD_ROW_KEY)
    with pytest.raises(TaskError, match="signing keys"):
        changed(teachers=(entry, twin, *small().task.teachers[2:]))


def test_a_foreign_key_is_refused() -> None:
    task = small().task
    for public in (dealt_key(5, 3).public, dealt_key(6, 4).public, dealt_key(5, 4, s=2).public):
        with pytest.raises(TaskError, match="public key"):
            task.require_key(public)


def test_the_papers_decryption_is_refused() -> None:
    paper = deal_from_primes(
        PRIMES, teachers=5, threshold=4, s=1, decryption=Decryption.PAPER, insecure_testing=True
    )
    with pytest.raises(TaskError, match="root"):
        agree(
            name="paper",
            data_id="data",
            class_names=CLASS_NAMES,
            features=FEATURES,
            teachers=small().task.teachers,
            aggregator_key=bytes(32),
            certificate=certificate(),
            public=paper.public,
        )


def test_noise_for_other_numbers_is_refused() -> None:
    with pytest.raises(TaskError, match="calibrated for 5"):
        agree(
            name="few",
            data_id="data",
            class_names=CLASS_NAMES,
            features=FEATURES,
            teachers=small().task.teachers[:4],
            aggregator_key=bytes(32),
            certificate=certificate(),
            public=dealt_key(5, 4).public,
        )
    with pytest.raises(TaskError, match="shares"):
        changed(noise_terms=NoiseTerms.of(Skellam(share_variance=9.0, shares=5)))


def test_a_task_with_a_forged_bound_is_refused_from_the_wire() -> None:
    data = encode(small().task)
    assert b"entry_bound" in data
    forged = data.replace(b"small", b"smell")
    assert decode(forged, Task).task_id != small().task.task_id
    with pytest.raises((WireError, TaskError)):
        decode(data.replace(b"entry_bound", b"entry_bouns"), Task)


def test_a_task_carries_the_types_of_its_columns() -> None:
    text = ColumnType(kind="text", may_be_missing=True)
    task = dataclasses.replace(small().task, column_types=(PLAIN, text))
    again = decode(encode(task), Task)
    assert again == task
    assert [column.type for column in again.columns] == [PLAIN, text]
    assert [column.name for column in again.columns] == list(task.features)
    assert task.task_id != small().task.task_id
    assert all(column.type == PLAIN for column in small().task.columns)


@pytest.mark.parametrize(
    ("types", "reason"),
    [
        ((PLAIN,), "1 types of columns do not go with 2 features"),
        ((PLAIN, PLAIN), "types are left out"),
    ],
)
def test_types_that_do_not_go_with_the_features_are_refused(
    types: tuple[ColumnType, ...], reason: str
) -> None:
    with pytest.raises(TaskError, match=reason):
        dataclasses.replace(small().task, column_types=types)
