"""Makes paillier.json from fixed randomness: `python tests/vectors/make_paillier.py`.

A good vector holds everything that the parties compute for one tally. A bad one names the
operation, what it is given, and the exception that it must cause. All bytes are in hexadecimal.
"""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import gmpy2
from gmpy2 import mpz

from dppp.paillier.blinding import Blinding, BlindingTable, full_blinding
from dppp.paillier.dealer import DealtKey, deal_from_primes
from dppp.paillier.decryption.combination import open_tallies
from dppp.paillier.decryption.shares import DecryptionShares, make_decryption_shares
from dppp.paillier.encryption import Ciphertext, encrypt, write_ciphertexts
from dppp.paillier.keys import Decryption, KeyId, PublicKey
from dppp.paillier.packing import Packing
from dppp.paillier.proofs.ballots import BallotProof, prove_ballot
from dppp.paillier.proofs.shares import prove_shares
from dppp.randomness import RandomSource

PRIMES = (
    mpz("f9dee980ffec50589b84fd3a5aac11e87e3d363e56a8dd4776473f984b12e7f7", 16),
    mpz("c2f4c79bdb0e54aca741e8db74b8b5285dfacd2667f5e0ffba18b1e4bc5e9067", 16),
)
SUBSET = (1, 3, 4)
CONTEXT = b"task, batch, teacher 1"
VECTORS = Path(__file__).with_name("paillier.json")


def fixed_random(seed: str) -> RandomSource:
    """A stream of bytes that is the same in every run."""
    taken = 0

    def draw(length: int) -> bytes:
        nonlocal taken
        stream = hashlib.shake_256(seed.encode()).digest(taken + length)
        taken += length
        return stream[taken - length :]

    return draw


def make() -> dict[str, Any]:
    """All vectors."""
    good = {
        f"{way}_s{s}": _good(s, way, fixed_random(f"{way} {s}"))
        for way in Decryption
        for s in (1, 2)
    }
    return {"good": good, "bad": _bad(good["root_s1"], good["paper_s1"])}


def _deal(s: int, way: Decryption, randomness: RandomSource) -> DealtKey:
    return deal_from_primes(
        PRIMES,
        teachers=5,
        threshold=3,
        s=s,
        decryption=way,
        randomness=randomness,
        insecure_testing=True,
    )


def _good(s: int, way: Decryption, randomness: RandomSource) -> dict[str, Any]:
    dealt = _deal(s, way, randomness)
    public = dealt.public
    packing = Packing(contributions=5, entry_bound=100, plaintext_bits=public.plaintext_bits)
    entries = [index * 7 % 101 for index in range(packing.slots + 3)]
    plaintexts = packing.pack(entries)
    table = BlindingTable(public, bytes_limit=500_000)
    blindings = [table.draw(randomness), full_blinding(public, randomness)]
    ciphertexts = _encrypt(public, plaintexts, blindings)
    proof = prove_ballot(public, ciphertexts, blindings, context=CONTEXT, randomness=randomness)
    shares = [
        make_decryption_shares(public, dealt.shares[index - 1], ciphertexts) for index in SUBSET
    ]
    proofs = {
        share.index: prove_shares(
            public,
            dealt.shares[share.index - 1],
            ciphertexts,
            share,
            context=CONTEXT,
            randomness=randomness,
        )
        for share in shares
    }
    opened = open_tallies(public, ciphertexts, shares, proofs=proofs, context=CONTEXT)
    return {
        "public_key": public.to_bytes().hex(),
        "key_id": public.key_id.hex(),
        "key_shares": [share.to_bytes().hex() for share in dealt.shares],
        "context": CONTEXT.hex(),
        "entry_bound": packing.entry_bound,
        "entries": entries,
        "plaintexts": [plaintext.digits(16) for plaintext in plaintexts],
        "ciphertexts": write_ciphertexts(public, ciphertexts).hex(),
        "ballot_proof": proof.to_bytes(public).hex(),
        "decryption_shares": [share.to_bytes(public).hex() for share in shares],
        "share_proofs": [proofs[index].to_bytes(public).hex() for index in SUBSET],
        "openings": [opening.to_bytes(public).hex() for opening in opened.openings],
    }


def _encrypt(
    public: PublicKey, plaintexts: tuple[mpz, ...], blindings: list[Blinding]
) -> list[Ciphertext]:
    return [
        encrypt(public, plaintext, blinding)
        for plaintext, blinding in zip(plaintexts, blindings, strict=True)
    ]


def _bad(good: dict[str, Any], paper: dict[str, Any]) -> list[dict[str, Any]]:
    public = PublicKey.from_bytes(bytes.fromhex(good["public_key"]), insecure_testing=True)
    return [
        *_bad_keys(good, public),
        *_bad_ballots(good, public),
        *_bad_shares(good, public),
        *_bad_openings(good),
        _bad_paper_share(paper),
    ]


def _vector(name: str, operation: str, error: str, good: dict[str, Any], **change: Any) -> Any:
    needed = {
        "read_public_key": ["public_key"],
        "read_ciphertexts": ["public_key", "ciphertexts"],
        "verify_ballot": ["public_key", "ciphertexts", "ballot_proof", "context"],
        "open": ["public_key", "ciphertexts", "decryption_shares", "share_proofs", "context"],
        "verify_opening": ["public_key", "ciphertexts", "openings"],
        "unpack": ["public_key", "plaintexts", "entry_bound", "entries"],
    }[operation]
    given = {field: good[field] for field in needed} | change
    return {"name": f"bad_{name}", "operation": operation, "error": error, "given": given}


def _bad_keys(good: dict[str, Any], public: PublicKey) -> list[Any]:
    key = good["public_key"]
    length = (public.modulus_bits + 7) // 8
    generator = public.generator.to_bytes(length, "big").hex()
    other = (public.generator + 2).to_bytes(length, "big").hex()
    even = (public.modulus + 1).to_bytes(length, "big").hex()
    modulus = public.modulus.to_bytes(length, "big").hex()
    base = public.verification_base.to_bytes(length, "big").hex()
    first = public.verification_keys[0].to_bytes(length, "big").hex()
    second = public.verification_keys[1].to_bytes(length, "big").hex()
    material, encoding = "KeyMaterialError", "EncodingError"
    read = "read_public_key"
    return [
        _vector("key_generator", read, material, good, public_key=key.replace(generator, other)),
        _vector("key_even_modulus", read, material, good, public_key=key.replace(modulus, even)),
        _vector("key_zero_base", read, material, good, public_key=key.replace(base, "00" * length)),
        _vector("key_duplicate", read, material, good, public_key=key.replace(second, first)),
        _vector("key_truncated", read, encoding, good, public_key=key[:-2]),
        _vector("key_trailing", read, encoding, good, public_key=key + "00"),
        _vector("key_version_1", read, material, good, public_key=_version(key, "1")),
        _vector("key_version_3", read, encoding, good, public_key=_version(key, "3")),
    ]


def _version(material: str, number: str) -> str:
    """The same bytes under the tag of another version."""
    return material.replace(b" 2\n".hex(), f" {number}\n".encode().hex(), 1)


def _bad_ballots(good: dict[str, Any], public: PublicKey) -> list[Any]:
    length = (public.ciphertext_modulus.bit_length() + 7) // 8
    rest = good["ciphertexts"][2 * length :]

    def first(value: mpz) -> str:
        return value.to_bytes(length, "big").hex() + rest

    read, verify, group = "read_ciphertexts", "verify_ballot", "GroupElementError"
    proof = good["ballot_proof"]
    size = (public.modulus_bits + 7) // 8
    tag = proof[: -4 * size]

    def parts(commitment: mpz, response: mpz) -> str:
        return tag + (commitment.to_bytes(size, "big") + response.to_bytes(size, "big")).hex()

    shown = BallotProof.from_bytes(public, bytes.fromhex(proof))
    a, z = shown.commitment, shown.response
    plaintext = mpz(good["plaintexts"][0], 16)
    overflow = (plaintext + (1 << public.plaintext_bits)).digits(16)
    return [
        _vector("ciphertext_zero", read, group, good, ciphertexts=first(mpz(0))),
        _vector("ciphertext_prime", read, group, good, ciphertexts=first(PRIMES[0])),
        _vector(
            "ciphertext_large", read, group, good, ciphertexts=first(public.ciphertext_modulus)
        ),
        _vector(
            "ciphertext_cut", read, "EncodingError", good, ciphertexts=good["ciphertexts"][:-2]
        ),
        _vector("ballot_context", verify, "ProofError", good, context=b"teacher 2".hex()),
        _vector("ballot_shifted", verify, "ProofError", good, ciphertexts=first(public.generator)),
        _vector("ballot_proof_cut", verify, "EncodingError", good, ballot_proof=proof[:-2]),
        _vector("ballot_zeros", verify, group, good, ballot_proof=parts(mpz(0), mpz(0))),
        _vector("ballot_commitment_n", verify, group, good, ballot_proof=parts(public.modulus, z)),
        _vector("ballot_response_prime", verify, group, good, ballot_proof=parts(a, PRIMES[0])),
        _vector("ballot_response", verify, "ProofError", good, ballot_proof=parts(a, z + 1)),
        _vector(
            "ballot_version_1", verify, "EncodingError", good, ballot_proof=_version(proof, "1")
        ),
        _vector("slot", "unpack", "PackingError", good, entry_bound=90),
        _vector(
            "overflow", "unpack", "PackingError", good, plaintexts=[overflow, good["plaintexts"][1]]
        ),
    ]


def _bad_shares(good: dict[str, Any], public: PublicKey) -> list[Any]:
    shares = [
        DecryptionShares.from_bytes(public, bytes.fromhex(share))
        for share in good["decryption_shares"]
    ]
    one, two = shares[0].elements
    wrong = replace(shares[0], elements=(one * 4 % public.modulus, two))
    swapped = replace(shares[0], elements=(two, one))
    foreign = replace(shares[0], key_id=KeyId(hashlib.sha256(b"another key").digest()))
    prime = replace(shares[0], elements=(PRIMES[0], two))

    def given(*changed: DecryptionShares) -> list[str]:
        return [share.to_bytes(public).hex() for share in changed]

    error = "DecryptionError"
    return [
        _vector("share_wrong", "open", error, good, decryption_shares=given(wrong, *shares[1:])),
        _vector(
            "share_swapped", "open", error, good, decryption_shares=given(swapped, *shares[1:])
        ),
        _vector(
            "share_foreign", "open", error, good, decryption_shares=given(foreign, *shares[1:])
        ),
        _vector(
            "share_twice", "open", error, good, decryption_shares=given(shares[1], *shares[1:])
        ),
        _vector(
            "share_prime",
            "open",
            "GroupElementError",
            good,
            decryption_shares=given(prime, *shares[1:]),
        ),
        _vector("shares_too_few", "open", error, good, decryption_shares=given(*shares[1:])),
    ]


def _bad_openings(good: dict[str, Any]) -> list[Any]:
    one, two = good["openings"]
    changed = one[:-2] + f"{int(one[-2:], 16) ^ 1:02x}"
    modulus = PRIMES[0] * PRIMES[1]
    tag = len(b"dppp opening 2\n")
    end = tag + (modulus.bit_length() + 7) // 8

    def root(value: mpz) -> str:
        data = bytes.fromhex(one)
        return (data[:tag] + value.to_bytes(end - tag, "big") + data[end:]).hex()

    error = "DecryptionError"
    return [
        _vector("opening_swapped", "verify_opening", error, good, openings=[two, one]),
        _vector("opening_root_zero", "verify_opening", error, good, openings=[root(mpz(0)), two]),
        _vector("opening_root_n", "verify_opening", error, good, openings=[root(modulus), two]),
        _vector("opening_root", "verify_opening", error, good, openings=[root(mpz(4)), two]),
        _vector("opening_plaintext", "verify_opening", error, good, openings=[changed, two]),
        _vector("opening_cut", "verify_opening", "EncodingError", good, openings=[one[:-2], two]),
    ]


def _bad_paper_share(paper: dict[str, Any]) -> Any:
    """A share multiplied by (1+n)^9: the paper's combination alone would not notice."""
    public = PublicKey.from_bytes(bytes.fromhex(paper["public_key"]), insecure_testing=True)
    first = DecryptionShares.from_bytes(public, bytes.fromhex(paper["decryption_shares"][0]))
    modulus = public.share_modulus
    shift = gmpy2.powmod(public.generator, 9, modulus)
    shifted = first.elements[0] * shift % modulus
    bad = replace(first, elements=(shifted, first.elements[1])).to_bytes(public).hex()
    shares = [bad, *paper["decryption_shares"][1:]]
    return _vector("share_shifted", "open", "DecryptionError", paper, decryption_shares=shares)


if __name__ == "__main__":
    VECTORS.write_text(json.dumps(make(), indent=1) + "\n")
