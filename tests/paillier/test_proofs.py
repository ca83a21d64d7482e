"""Proofs hold for what they say and for nothing else."""

from dataclasses import replace
from typing import Any

import gmpy2
import pytest
from gmpy2 import mpz
from hypothesis import given, settings
from hypothesis import strategies as st

from dppp.errors import DpppError, InputError, ProofError
from dppp.paillier.blinding import full_blinding
from dppp.paillier.decryption.shares import DecryptionShares, make_decryption_shares
from dppp.paillier.encryption import Ciphertext, encrypt, read_ciphertexts, write_ciphertexts
from dppp.paillier.keys import Decryption, KeyId
from dppp.paillier.proofs.ballots import (
    BallotProof,
    ProvenBallot,
    prove_ballot,
    verify_ballot,
    verify_ballots,
)
from dppp.paillier.proofs.shares import ShareProof, prove_shares, verify_shares


def _ballot(keys: Any, s: int, count: int, index: int = 1, *, full: bool = False) -> ProvenBallot:
    public, table = keys.dealt(s).public, keys.table(s)
    blindings = [
        full_blinding(public) if full and place % 2 else table.draw() for place in range(count)
    ]
    ciphertexts = tuple(
        encrypt(public, mpz(10 * index + place), blinding)
        for place, blinding in enumerate(blindings)
    )
    context = f"task, batch, teacher {index}".encode()
    proof = prove_ballot(public, ciphertexts, blindings, context=context)
    return ProvenBallot(index=index, ciphertexts=ciphertexts, context=context, proof=proof)


@settings(deadline=None)
@given(st.integers(1, 4), st.integers(1, 5), st.booleans())
def test_an_honest_ballot_is_accepted(keys: Any, s: int, count: int, full: bool) -> None:
    public, ballot = keys.dealt(s).public, _ballot(keys, s, count, full=full)
    verify_ballot(public, ballot)
    verify_ballots(public, [ballot, _ballot(keys, s, count, index=2, full=not full)])
    data = ballot.proof.to_bytes(public)
    assert BallotProof.from_bytes(public, data) == ballot.proof


def test_a_ballot_proof_fails_when_any_of_its_bits_changes(keys: Any) -> None:
    public, ballot = keys.dealt().public, _ballot(keys, 1, 2)
    data = ballot.proof.to_bytes(public)
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DpppError):
            verify_ballot(
                public, replace(ballot, proof=BallotProof.from_bytes(public, bytes(changed)))
            )


@settings(deadline=None)
@given(st.data())
def test_a_ballot_proof_fails_when_any_bit_of_its_statement_changes(
    keys: Any, data: st.DataObject
) -> None:
    public, ballot = keys.dealt(2).public, _ballot(keys, 2, 2)
    statement = write_ciphertexts(public, ballot.ciphertexts)
    bit = data.draw(st.integers(0, 8 * len(statement) - 1))
    changed = bytearray(statement)
    changed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(DpppError):
        verify_ballot(public, replace(ballot, ciphertexts=read_ciphertexts(public, bytes(changed))))


@settings(deadline=None)
@given(st.binary(max_size=40))
def test_a_ballot_proof_fails_in_any_other_context(keys: Any, context: bytes) -> None:
    public, ballot = keys.dealt().public, _ballot(keys, 1, 1)
    others = [context, ballot.context + b"\0", ballot.context[:-1], b"task, batch, teacher 2"]
    for other in others:
        with pytest.raises(ProofError):
            verify_ballot(public, replace(ballot, context=other))


def test_a_ballot_proof_fails_for_other_ciphertexts_and_under_another_key(keys: Any) -> None:
    public, ballot = keys.dealt().public, _ballot(keys, 1, 3)
    one, two, three = ballot.ciphertexts
    for wrong in ((two, one, three), (one, two), (one, two, three, three), (), (one, one, three)):
        with pytest.raises(ProofError):
            verify_ballot(public, replace(ballot, ciphertexts=wrong))
    with pytest.raises(ProofError):
        verify_ballot(keys.dealt(1, Decryption.PAPER).public, ballot)


def test_a_plaintext_changed_behind_the_proof_is_noticed(keys: Any) -> None:
    """The equation is modulo n and does not see (1+n)^k; the hash of the ciphertexts does."""
    public, ballot = keys.dealt(2).public, _ballot(keys, 2, 1)
    shifted = ballot.ciphertexts[0] * public.generator % public.ciphertext_modulus
    assert shifted % public.modulus == ballot.ciphertexts[0] % public.modulus
    with pytest.raises(ProofError):
        verify_ballot(public, replace(ballot, ciphertexts=(Ciphertext(shifted),)))


def test_a_batch_names_exactly_the_false_ballots(keys: Any) -> None:
    public = keys.dealt().public
    ballots = [_ballot(keys, 1, 2, index=index) for index in range(1, 12)]
    verify_ballots(public, ballots)
    verify_ballots(public, [])
    for culprits in ((1,), (11,), (3, 4, 9), tuple(range(1, 12))):
        mixed = [
            replace(ballot, context=b"replayed") if ballot.index in culprits else ballot
            for ballot in ballots
        ]
        with pytest.raises(ProofError) as caught:
            verify_ballots(public, mixed)
        assert caught.value.culprits == culprits


def test_false_ballots_cannot_cancel_in_a_batch(keys: Any) -> None:
    public = keys.dealt().public
    first, second = (_ballot(keys, 1, 1, index=index) for index in (1, 2))
    inverse = gmpy2.invert(mpz(4), public.modulus)
    forged = [
        replace(
            ballot,
            proof=replace(ballot.proof, response=ballot.proof.response * factor % public.modulus),
        )
        for ballot, factor in ((first, mpz(4)), (second, inverse))
    ]
    with pytest.raises(ProofError) as caught:
        verify_ballots(public, forged)
    assert caught.value.culprits == (1, 2)


def test_a_proof_needs_a_blinding_for_each_ciphertext(keys: Any) -> None:
    public, ballot = keys.dealt().public, _ballot(keys, 1, 2)
    for ciphertexts, blindings in ((ballot.ciphertexts, [keys.table().draw()]), ((), [])):
        with pytest.raises(InputError):
            prove_ballot(public, ciphertexts, blindings, context=b"")


def test_a_ballot_without_ciphertexts_proves_nothing(keys: Any) -> None:
    """Its equation, commitment = response^(n^s), can be met by anybody."""
    public = keys.dealt().public
    response = mpz(3)
    power = gmpy2.powmod(response, public.plaintext_modulus, public.modulus)
    proof = BallotProof(commitment=power, response=response)
    empty = ProvenBallot(index=2, ciphertexts=(), context=b"", proof=proof)
    with pytest.raises(ProofError, match="without ciphertexts"):
        verify_ballot(public, empty)
    with pytest.raises(ProofError) as caught:
        verify_ballots(public, [_ballot(keys, 1, 2), empty])
    assert caught.value.culprits == (2,)


def _proven_shares(keys: Any, way: Decryption) -> tuple[Any, Any, DecryptionShares, ShareProof]:
    dealt = keys.dealt(2, way)
    ciphertexts = keys.encrypted(dealt.public, [5, 6, 7])
    shares = make_decryption_shares(dealt.public, dealt.shares[2], ciphertexts)
    proof = prove_shares(dealt.public, dealt.shares[2], ciphertexts, shares, context=b"batch")
    return dealt.public, ciphertexts, shares, proof


@pytest.mark.parametrize("way", list(Decryption))
def test_an_honest_share_proof_holds_and_survives_its_encoding(keys: Any, way: Decryption) -> None:
    public, ciphertexts, shares, proof = _proven_shares(keys, way)
    again = ShareProof.from_bytes(public, proof.to_bytes(public))
    assert again == proof
    verify_shares(public, ciphertexts, shares, again, context=b"batch")


@pytest.mark.parametrize("way", list(Decryption))
def test_a_share_proof_fails_when_any_of_its_bits_changes(keys: Any, way: Decryption) -> None:
    public, ciphertexts, shares, proof = _proven_shares(keys, way)
    data = proof.to_bytes(public)
    for bit in range(0, 8 * len(data), 1 if way is Decryption.ROOT else 7):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DpppError):
            verify_shares(
                public,
                ciphertexts,
                shares,
                ShareProof.from_bytes(public, bytes(changed)),
                context=b"batch",
            )


@pytest.mark.parametrize("way", list(Decryption))
def test_a_share_proof_fails_for_any_other_statement(keys: Any, way: Decryption) -> None:
    public, ciphertexts, shares, proof = _proven_shares(keys, way)
    modulus = public.share_modulus
    one, two, three = shares.elements
    statements = [
        (ciphertexts, shares, b"another batch"),
        (ciphertexts, replace(shares, index=4), b"batch"),
        (ciphertexts, replace(shares, index=9), b"batch"),
        (ciphertexts, replace(shares, key_id=KeyId(bytes(32))), b"batch"),
        (ciphertexts, replace(shares, elements=(two, one, three)), b"batch"),
        (ciphertexts, replace(shares, elements=(one * 4 % modulus, two, three)), b"batch"),
        (ciphertexts[::-1], shares, b"batch"),
        (ciphertexts[:2], replace(shares, elements=(one, two)), b"batch"),
        (ciphertexts[:2], shares, b"batch"),
    ]
    for other_ciphertexts, other_shares, context in statements:
        with pytest.raises(ProofError) as caught:
            verify_shares(public, other_ciphertexts, other_shares, proof, context=context)
        assert caught.value.culprits == (other_shares.index,)


@pytest.mark.parametrize("way", list(Decryption))
def test_shares_that_are_not_units_are_refused_by_name(keys: Any, way: Decryption) -> None:
    public, ciphertexts, shares, proof = _proven_shares(keys, way)
    prime = keys.short_primes[0]
    for value in (mpz(0), public.share_modulus, public.share_modulus + 1, prime, 4 * prime):
        outside = replace(shares, elements=(value, *shares.elements[1:]))
        with pytest.raises(ProofError, match="that is not one") as caught:
            verify_shares(public, ciphertexts, outside, proof, context=b"batch")
        assert caught.value.culprits == (shares.index,)


@pytest.mark.parametrize("way", list(Decryption))
def test_wrong_shares_cannot_be_proven(keys: Any, way: Decryption) -> None:
    dealt = keys.dealt(2, way)
    public = dealt.public
    ciphertexts = keys.encrypted(public, [5, 6])
    honest = make_decryption_shares(public, dealt.shares[0], ciphertexts)
    one, two = honest.elements
    modulus = public.share_modulus
    inverse = gmpy2.invert(mpz(4), modulus)
    cancelling = (one * 4 % modulus, two * inverse % modulus)
    for elements in (cancelling, (two, one), (one, one)):
        wrong = replace(honest, elements=elements)
        proof = prove_shares(public, dealt.shares[0], ciphertexts, wrong, context=b"")
        with pytest.raises(ProofError):
            verify_shares(public, ciphertexts, wrong, proof, context=b"")


@pytest.mark.parametrize("way", list(Decryption))
def test_a_negative_share_is_proven_as_it_opens_like_the_share(keys: Any, way: Decryption) -> None:
    dealt = keys.dealt(2, way)
    public = dealt.public
    ciphertexts = keys.encrypted(public, [5, 6])
    one, two = make_decryption_shares(public, dealt.shares[0], ciphertexts).elements
    turned = DecryptionShares(
        key_id=public.key_id, index=1, elements=(public.share_modulus - one, two)
    )
    proof = prove_shares(public, dealt.shares[0], ciphertexts, turned, context=b"")
    verify_shares(public, ciphertexts, turned, proof, context=b"")


def test_a_share_proof_that_is_too_long_is_refused_though_its_equation_holds(keys: Any) -> None:
    """Who knows the order of the group could write one proof in many ways."""
    public, ciphertexts, shares, proof = _proven_shares(keys, Decryption.ROOT)
    order = (keys.short_primes[0] - 1) * (keys.short_primes[1] - 1)
    near = replace(proof, response=proof.response + order)
    verify_shares(public, ciphertexts, shares, near, context=b"batch")
    too_long = replace(proof, response=proof.response + (order << 2000))
    with pytest.raises(ProofError, match="does not hold"):
        verify_shares(public, ciphertexts, shares, too_long, context=b"batch")


def test_share_proofs_out_of_range_are_refused() -> None:
    for challenge, response in ((mpz(1) << 128, mpz(1)), (mpz(-1), mpz(1)), (mpz(1), mpz(-1))):
        with pytest.raises(InputError):
            ShareProof(challenge=challenge, response=response)
