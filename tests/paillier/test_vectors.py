"""The JSON vectors: made again bit by bit, and each bad one fails as it says."""

import json
from typing import Any

import pytest
from gmpy2 import mpz

from dppp import errors
from dppp.paillier.decryption.combination import open_tallies
from dppp.paillier.decryption.opening import Opening, verify_opening
from dppp.paillier.decryption.shares import DecryptionShares
from dppp.paillier.encryption import read_ciphertexts
from dppp.paillier.keys import KeyShare, PublicKey, require_fitting_share
from dppp.paillier.packing import Packing
from dppp.paillier.proofs.ballots import BallotProof, ProvenBallot, verify_ballot
from dppp.paillier.proofs.shares import ShareProof


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text)


def _public(given: Any) -> PublicKey:
    return PublicKey.from_bytes(_bytes(given["public_key"]), insecure_testing=True)


def _ciphertexts(given: Any) -> Any:
    return read_ciphertexts(_public(given), _bytes(given["ciphertexts"]))


def _verify_ballot(given: Any) -> None:
    public = _public(given)
    ballot = ProvenBallot(
        index=1,
        ciphertexts=_ciphertexts(given),
        context=_bytes(given["context"]),
        proof=BallotProof.from_bytes(public, _bytes(given["ballot_proof"])),
    )
    verify_ballot(public, ballot)


def _open(given: Any) -> Any:
    public = _public(given)
    shares = [
        DecryptionShares.from_bytes(public, _bytes(share)) for share in given["decryption_shares"]
    ]
    proofs = {
        index: ShareProof.from_bytes(public, _bytes(proof))
        for index, proof in zip((1, 3, 4), given["share_proofs"], strict=True)
    }
    return open_tallies(
        public, _ciphertexts(given), shares, proofs=proofs, context=_bytes(given["context"])
    )


def _verify_openings(given: Any) -> None:
    public = _public(given)
    for ciphertext, data in zip(_ciphertexts(given), given["openings"], strict=True):
        verify_opening(public, ciphertext, Opening.from_bytes(public, _bytes(data)))


def _unpack(given: Any) -> Any:
    packing = Packing(
        contributions=5,
        entry_bound=given["entry_bound"],
        plaintext_bits=_public(given).plaintext_bits,
    )
    plaintexts = [mpz(plaintext, 16) for plaintext in given["plaintexts"]]
    return packing.unpack(plaintexts, len(given["entries"]), contributions=1)


OPERATIONS = {
    "read_public_key": _public,
    "read_ciphertexts": _ciphertexts,
    "verify_ballot": _verify_ballot,
    "open": _open,
    "verify_opening": _verify_openings,
    "unpack": _unpack,
}


def test_the_vectors_are_made_again_from_their_randomness(vectors: Any) -> None:
    assert json.loads(vectors.VECTORS.read_text()) == json.loads(json.dumps(vectors.make()))


def test_good_vectors_hold(vectors: Any) -> None:
    for name, good in json.loads(vectors.VECTORS.read_text())["good"].items():
        assert _public(good).key_id.hex() == good["key_id"], name
        shares = [KeyShare.from_bytes(_bytes(share)) for share in good["key_shares"]]
        for index, share in enumerate(shares, start=1):
            assert share.index == index, name
            require_fitting_share(_public(good), share)
        _verify_ballot(good)
        opened = _open(good)
        assert [value.digits(16) for value in opened.plaintexts] == good["plaintexts"], name
        if good["openings"]:
            _verify_openings(good)
        assert list(_unpack(good)) == good["entries"], name


def test_bad_vectors_fail_as_they_say(vectors: Any) -> None:
    bad = json.loads(vectors.VECTORS.read_text())["bad"]
    assert len({vector["name"] for vector in bad}) == len(bad) > 25
    for vector in bad:
        assert vector["name"].startswith("bad_")
        expected = getattr(errors, vector["error"])
        with pytest.raises(errors.DpppError) as caught:
            OPERATIONS[vector["operation"]](vector["given"])
        assert caught.type is expected, vector["name"]
