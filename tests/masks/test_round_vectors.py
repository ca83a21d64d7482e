"""The JSON vectors of a whole round: the good one holds, each bad one fails as it says.

The operations here read the file's bytes and nothing else; that the script still makes the same
file is a test of its own.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.vectors import make_masks_rounds

from dppp import errors
from dppp.masks.ballots import Header, seal_at
from dppp.masks.blame import SealedRow, read_shown_row, recompute_dealing, row_bytes
from dppp.masks.epoch_keys import Epoch, EpochSecret, derive_pair_keys, pair_secret
from dppp.masks.opening import (
    open_counts,
    recover_secret,
    recover_seeds,
    require_fits,
    secret_from_bytes,
    secret_to_bytes,
    seeds_from_bytes,
)
from dppp.masks.packing import unpack_blocks
from dppp.masks.parameters import choose_parameters
from dppp.masks.ring import ShortPolynomial
from dppp.masks.sealing import Purpose, ShownSeal, open_one

VECTORS = json.loads(Path(make_masks_rounds.VECTORS).read_text(encoding="utf-8"))
GOOD, BAD = VECTORS["good"], VECTORS["bad"]
TEACHERS = GOOD["teachers"]
PRESENT: list[int] = GOOD["present"]
PARAMETERS = choose_parameters(**GOOD["trust"])
_bytes = bytes.fromhex


def epoch_of(number: int) -> Epoch:
    return Epoch(task_id=_bytes(GOOD["task_id"]), number=number)


def header_of(teacher: int) -> Header:
    return Header.from_bytes(_bytes(TEACHERS[str(teacher)]["header"]))


def patched(data: bytes, patch: tuple[int, str] | None) -> bytes:
    if patch is None:
        return data
    place, other = patch[0], _bytes(patch[1])
    return data[:place] + other + data[place + len(other) :]


def read_header(header: str = TEACHERS["2"]["header"]) -> None:
    assert Header.from_bytes(_bytes(header)).to_bytes().hex() == header


def seed_seal(
    recipient: int,
    *,
    votes_seed: str = GOOD["votes_seed"],
    epoch: int = GOOD["epoch"],
    dealer: int = 1,
    header: tuple[int, str] | None = None,
) -> SealedRow:
    """Teacher 1's seal of a seed row, as one would read it in this place."""
    seals = _bytes(TEACHERS["1"]["seed_seals"])
    return SealedRow(
        epoch=epoch_of(epoch),
        votes_seed=_bytes(votes_seed),
        dealer=dealer,
        recipient=recipient,
        purpose=Purpose.SEED_ROW,
        head_digest=Header.from_bytes(patched(header_of(1).to_bytes(), header)).head_digest,
        sealed=seal_at(seals, PRESENT.index(recipient), len(PRESENT)),
    )


def open_seal(**changed: Any) -> None:
    """Teacher 4 opens its seed row of teacher 1."""
    seal = seed_seal(4, **changed)
    own, peer = (
        EpochSecret(teacher=each, secret=_bytes(TEACHERS[str(each)]["epoch_secret"]))
        for each in (4, 1)
    )
    keys = derive_pair_keys(pair_secret(own, peer.key), epoch_of(GOOD["epoch"]), own.key, peer.key)
    row = open_one(
        keys.sealing_key,
        seal.sealed,
        purpose=seal.purpose,
        dealer=seal.dealer,
        recipient=seal.recipient,
        context=seal.context,
        length=row_bytes(PARAMETERS, Purpose.SEED_ROW),
    )
    assert row.hex() == TEACHERS["4"]["answer"][0]
    assert seal.context.hex() == TEACHERS["1"]["seal_context"]


def recover(
    patch: tuple[int, str] | None = None,
    without: int = 0,
    renamed: tuple[int, int] | None = None,
    exchanged: tuple[int, int] | None = None,
) -> None:
    """S from the endorsed sums, teacher 1's patched; then it has to fit."""
    sums = {each: _bytes(TEACHERS[str(each)]["endorsed_sum"]) for each in PRESENT}
    sums[1] = patched(sums[1], patch)
    sums.pop(without, None)
    if renamed:
        sums[renamed[1]] = sums.pop(renamed[0])
    if exchanged:
        one, other = exchanged
        sums[one], sums[other] = sums[other], sums[one]
    fit(secret_to_bytes(recover_secret(PARAMETERS, sums)).hex())


def words_of(data: str) -> np.ndarray[Any, np.dtype[np.uint64]]:
    bits = PARAMETERS.modulus_bits
    return unpack_blocks(_bytes(data), blocks=1, degree=PARAMETERS.degree, bits=bits)


def fit(secret: str = GOOD["secret_sum"], epoch: int = GOOD["epoch"]) -> None:
    values = secret_from_bytes(PARAMETERS, _bytes(secret))
    require_fits(PARAMETERS, epoch_of(epoch), words_of(GOOD["check_sum"])[0], values)
    assert secret == GOOD["secret_sum"]


def count(counts: int = len(GOOD["counts"]), votes_seed: str = GOOD["votes_seed"]) -> None:
    secret = ShortPolynomial(secret_from_bytes(PARAMETERS, _bytes(GOOD["secret_sum"])))
    votes = words_of(GOOD["votes_sum"])
    opened = open_counts(PARAMETERS, _bytes(votes_seed), votes, secret, counts=counts)
    assert opened.tolist() == GOOD["counts"]


def read_seeds(seeds: str = GOOD["seeds"][0]) -> None:
    assert seeds_from_bytes(_bytes(seeds), 1) == (_bytes(GOOD["seeds"][0]),)


def show_root(root: str = TEACHERS["2"]["root"]) -> None:
    dealing = recompute_dealing(PARAMETERS, epoch_of(GOOD["epoch"]), header_of(2), _bytes(root))
    assert make_masks_rounds.digest(dealing.check_block) == TEACHERS["2"]["check_block_sha256"]


def show_seal(
    row: str = TEACHERS["2"]["shown_seed_seal"]["row"],
    tag_key: str = TEACHERS["2"]["shown_seed_seal"]["tag_key"],
    **changed: Any,
) -> None:
    shown = ShownSeal(tag_key=_bytes(tag_key), row=_bytes(row))
    assert read_shown_row(seed_seal(2, **changed), shown).hex() == row


OPERATIONS: dict[str, Any] = {
    "read header": read_header,
    "open seal": open_seal,
    "recover secret": recover,
    "fit": fit,
    "open counts": count,
    "read seeds": read_seeds,
    "show root": show_root,
    "show seal": show_seal,
}


def test_the_file_is_what_its_script_makes() -> None:
    assert json.loads(json.dumps(make_masks_rounds.make())) == VECTORS


def test_the_parameters_are_those_of_the_file() -> None:
    assert {name: getattr(PARAMETERS, name) for name in GOOD["parameters"]} == GOOD["parameters"]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_good_vector_passes_every_operation(operation: str) -> None:
    OPERATIONS[operation]()
    assert operation == "open counts" or any(each["operation"] == operation for each in BAD)


def test_the_counts_are_the_sums_of_the_entries() -> None:
    entries = [TEACHERS[str(each)]["entries"] for each in PRESENT]
    assert np.sum(entries, axis=0).tolist() == GOOD["counts"]


def test_the_answers_give_the_seeds() -> None:
    answers = {each: [_bytes(row) for row in TEACHERS[str(each)]["answer"]] for each in PRESENT}
    digests = [header_of(each).seed_digest for each in PRESENT]
    seeds, wrong = recover_seeds(PARAMETERS, answers, digests)
    assert [each.hex() for each in seeds] == GOOD["seeds"]
    assert wrong == ()


@pytest.mark.parametrize("vector", BAD, ids=lambda each: f"{each['operation']}: {each['name']}")
def test_each_bad_vector_fails_as_it_says(vector: dict[str, Any]) -> None:
    with pytest.raises(errors.DpppError) as caught:
        OPERATIONS[vector["operation"]](**vector["changed"])
    assert type(caught.value).__name__ == vector["error"]
