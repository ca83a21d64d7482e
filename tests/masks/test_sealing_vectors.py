"""The JSON vectors of epoch keys, seals and complaints: the good one holds, each bad one fails."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.masks.seals import seal_many
from tests.vectors import make_masks_sealing

from dppp import errors
from dppp.masks.epoch_keys import (
    Epoch,
    EpochKey,
    EpochSecret,
    derive_pair_keys,
    own_row_key,
    pair_secret,
    require_on_curve,
)
from dppp.masks.equal_logarithms import verify_pair_secret
from dppp.masks.possession import prove_possession, verify_possession
from dppp.masks.sealing import Purpose, open_one

VECTORS = json.loads(Path(make_masks_sealing.VECTORS).read_text(encoding="utf-8"))
GOOD, BAD = VECTORS["good"], VECTORS["bad"]
SEAL = GOOD["seals"][0]
_bytes = bytes.fromhex


def epoch_of(number: int = GOOD["epoch"]) -> Epoch:
    return Epoch(task_id=_bytes(GOOD["task_id"]), number=number)


def secret_of(role: str) -> EpochSecret:
    return EpochSecret.from_bytes(_bytes(GOOD[role]["stored"]))


def check_key(public: str = GOOD["dealer"]["public"]) -> None:
    require_on_curve(EpochKey(teacher=1, public=_bytes(public)))


def check_possession(
    teacher: int = GOOD["dealer"]["teacher"],
    epoch: int = GOOD["epoch"],
    possession: str = GOOD["dealer"]["possession"],
) -> None:
    key = EpochKey(teacher=teacher, public=_bytes(GOOD["dealer"]["public"]))
    verify_possession(key, epoch_of(epoch), _bytes(possession))


def read_secret(stored: str = GOOD["dealer"]["stored"]) -> None:
    EpochSecret.from_bytes(_bytes(stored))


def open_seal(
    *,
    sealed: str = SEAL["sealed"],
    sealing_key: str = GOOD["sealing_key"],
    purpose: int = SEAL["purpose"],
    dealer: int = GOOD["dealer"]["teacher"],
    recipient: int = GOOD["recipient"]["teacher"],
    context: str = GOOD["context"],
    length: int = len(SEAL["row"]) // 2,
) -> str:
    return open_one(
        _bytes(sealing_key),
        _bytes(sealed),
        purpose=Purpose(purpose),
        dealer=dealer,
        recipient=recipient,
        context=_bytes(context),
        length=length,
    ).hex()


def complain(
    shown: str = GOOD["shown"],
    complaint: str = GOOD["complaint"],
    proof: str = GOOD["proof"],
    dealer: int = GOOD["dealer"]["teacher"],
    recipient: int = GOOD["recipient"]["teacher"],
) -> None:
    keys = {
        GOOD[role]["teacher"]: EpochKey(
            teacher=GOOD[role]["teacher"], public=_bytes(GOOD[role]["public"])
        )
        for role in ("dealer", "recipient")
    }
    verify_pair_secret(
        keys[recipient], keys[dealer], _bytes(shown), _bytes(complaint), _bytes(proof)
    )


OPERATIONS: dict[str, Any] = {
    "check key": check_key,
    "verify possession": check_possession,
    "read secret": read_secret,
    "open": open_seal,
    "complain": complain,
}


def test_the_file_is_what_its_script_makes() -> None:
    assert make_masks_sealing.make() == VECTORS


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_good_vector_passes_every_operation(operation: str) -> None:
    OPERATIONS[operation]()
    assert any(each["operation"] == operation for each in BAD)


def test_both_teachers_derive_the_keys_of_the_vector() -> None:
    dealer, recipient = secret_of("dealer"), secret_of("recipient")
    for own, other in ((dealer, recipient), (recipient, dealer)):
        shared = pair_secret(own, other.key)
        keys = derive_pair_keys(shared, epoch_of(), own.key, other.key)
        forth = keys.mac_key(sender=dealer.teacher, receiver=recipient.teacher)
        back = keys.mac_key(sender=recipient.teacher, receiver=dealer.teacher)
        derived = (shared, keys.sealing_key, forth, back)
        names = ("pair_secret", "sealing_key", "mac_key_to_recipient", "mac_key_to_dealer")
        assert [each.hex() for each in derived] == [GOOD[name] for name in names]
    assert GOOD["shown"] == GOOD["pair_secret"]


@pytest.mark.parametrize("role", ["dealer", "recipient"])
def test_each_teacher_derives_what_is_its_own(role: str) -> None:
    own = secret_of(role)
    derived = (own.key.public, own_row_key(own, epoch_of()), prove_possession(own, epoch_of()))
    names = ("public", "own_row_key", "possession")
    assert [each.hex() for each in derived] == [GOOD[role][name] for name in names]


@pytest.mark.parametrize("seal", GOOD["seals"], ids=lambda seal: Purpose(seal["purpose"]).name)
def test_sealing_gives_the_bytes_of_the_vector(seal: dict[str, Any]) -> None:
    (sealed,) = seal_many(
        [_bytes(GOOD["sealing_key"])],
        np.frombuffer(_bytes(seal["row"]), dtype=np.uint8).reshape(1, -1),
        purpose=Purpose(seal["purpose"]),
        dealer=GOOD["dealer"]["teacher"],
        recipients=[GOOD["recipient"]["teacher"]],
        context=_bytes(GOOD["context"]),
    )
    assert sealed.hex() == seal["sealed"]
    length = len(seal["row"]) // 2
    opened = open_seal(sealed=seal["sealed"], purpose=seal["purpose"], length=length)
    assert opened == seal["row"]


@pytest.mark.parametrize("vector", BAD, ids=lambda each: f"{each['operation']}: {each['name']}")
def test_each_bad_vector_fails_as_it_says(vector: dict[str, Any]) -> None:
    with pytest.raises(errors.DpppError) as caught:
        OPERATIONS[vector["operation"]](**vector["changed"])
    assert type(caught.value).__name__ == vector["error"]
