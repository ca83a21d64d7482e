"""Attacks that were tried, with controls that show the attack works where it should.

The rushing attack on the key is in test_rushing.py.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import gmpy2
import pytest
from gmpy2 import mpz

from dppp.errors import DecryptionError, GroupElementError, ProofError
from dppp.paillier import encryption
from dppp.paillier.decryption.combination import open_tallies
from dppp.paillier.decryption.shares import make_decryption_shares
from dppp.paillier.encryption import Ciphertext, encrypt
from dppp.paillier.proofs import ballots as ballot_proofs
from dppp.paillier.proofs.ballots import (
    BallotProof,
    ProvenBallot,
    prove_ballot,
    verify_ballot,
    verify_ballots,
)

pytestmark = pytest.mark.attack


def _factors(modulus: mpz, *values: mpz) -> bool:
    """Whether any of the values shares a proper factor with the modulus."""
    return any(gmpy2.gcd(value, modulus) not in (1, modulus) for value in values)


def _root_of_jacobi_minus_one(public: Any) -> mpz:
    return next(
        mpz(value) for value in range(2, 999) if gmpy2.jacobi(mpz(value), public.modulus) == -1
    )


def test_with_the_factor_2_in_d_the_same_ballot_would_factor_the_modulus(keys: Any) -> None:
    public = keys.dealt().public
    half_order = (keys.short_primes[0] // 2) * (keys.short_primes[1] // 2)
    wrong_exponent = gmpy2.invert(2 * public.plaintext_modulus, half_order)
    root = _root_of_jacobi_minus_one(public)
    ciphertext = gmpy2.powmod(root, public.plaintext_modulus, public.modulus)
    square_root = gmpy2.powmod(ciphertext, 2 * wrong_exponent, public.modulus)
    assert _factors(public.modulus, square_root - root, square_root + root)


@pytest.mark.parametrize("s", [1, 2])
def test_a_multiple_of_a_prime_is_refused_everywhere_and_not_repeated(keys: Any, s: int) -> None:
    dealt = keys.dealt(s)
    public, prime = dealt.public, keys.short_primes[0]
    honest = keys.encrypted(public, [1])[0]
    for bad in (prime, prime * 12345, prime ** (s + 1), public.modulus * 7):
        ciphertext = Ciphertext(bad % public.ciphertext_modulus)
        with pytest.raises(GroupElementError) as caught:
            make_decryption_shares(public, dealt.shares[0], [honest, ciphertext])
        assert caught.value.position == 1
        assert str(prime) not in str(caught.value)
        with pytest.raises(GroupElementError):
            open_tallies(public, [ciphertext], [])
        table = keys.table(s)
        proof = prove_ballot(public, [ciphertext], [table.draw()], context=b"")
        ballot = ProvenBallot(index=4, ciphertexts=(ciphertext,), context=b"", proof=proof)
        for check in (
            lambda b=ballot: verify_ballot(public, b),
            lambda b=ballot: verify_ballots(public, [b]),
        ):
            with pytest.raises(ProofError) as named:
                check()
            assert named.value.culprits == (4,)


def test_a_power_of_a_victims_ballot_cannot_be_proven(keys: Any) -> None:
    public, table = keys.dealt().public, keys.table()
    blinding = table.draw()
    victim = encrypt(public, mpz(5), blinding)
    victims_proof = prove_ballot(public, [victim], [blinding], context=b"teacher 1")
    copied = Ciphertext(gmpy2.powmod(victim, 1 << 100, public.ciphertext_modulus))
    known = table.draw()
    guesses = [
        victims_proof,
        prove_ballot(public, [copied], [known], context=b"teacher 2"),
        type(victims_proof)(
            commitment=victims_proof.commitment,
            response=gmpy2.powmod(victims_proof.response, 1 << 100, public.modulus),
        ),
    ]
    for proof in guesses:
        ballot = ProvenBallot(index=2, ciphertexts=(copied,), context=b"teacher 2", proof=proof)
        with pytest.raises(ProofError):
            verify_ballot(public, ballot)


def _ballots(keys: Any, count: int) -> list[ProvenBallot]:
    public, table = keys.dealt().public, keys.table()
    ballots = []
    for index in range(1, count + 1):
        blinding = table.draw()
        ciphertexts = (encrypt(public, mpz(index), blinding),)
        proof = prove_ballot(public, ciphertexts, [blinding], context=b"batch")
        ballots.append(
            ProvenBallot(index=index, ciphertexts=ciphertexts, context=b"batch", proof=proof)
        )
    return ballots


def _with_proof(ballot: ProvenBallot, commitment: mpz, response: mpz) -> ProvenBallot:
    return replace(ballot, proof=BallotProof(commitment=commitment, response=response))


def _not_units(keys: Any, good: ProvenBallot) -> list[ProvenBallot]:
    """A ballot with parts that are not units, in every place."""
    modulus, proof, prime = keys.dealt().public.modulus, good.proof, keys.short_primes[0]
    wrong = [_with_proof(good, mpz(0), mpz(0))]
    for bad in (mpz(0), modulus, prime, prime * 4, modulus + 4, mpz(-4)):
        wrong.append(_with_proof(good, bad, proof.response))
        wrong.append(_with_proof(good, proof.commitment, bad))
    for bad in (mpz(0), modulus, prime, keys.dealt().public.ciphertext_modulus):
        wrong.append(replace(good, ciphertexts=(Ciphertext(bad),)))
    return wrong


def test_a_ballot_with_a_part_that_is_not_a_unit_is_refused_alone_and_in_a_batch(keys: Any) -> None:
    public, ballots = keys.dealt().public, _ballots(keys, 5)
    primes = [str(prime) for prime in keys.short_primes]
    for wrong in _not_units(keys, ballots[2]):
        for check in (
            lambda b=wrong: verify_ballot(public, b),
            lambda b=wrong: verify_ballots(public, [*ballots[:2], b, *ballots[3:]]),
        ):
            with pytest.raises(ProofError) as caught:
                check()
            assert caught.value.culprits == (3,)
            assert not any(prime in str(caught.value) for prime in primes)


def test_without_the_check_of_units_one_ballot_of_zeros_would_make_any_batch_hold(
    keys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    public, ballots = keys.dealt().public, _ballots(keys, 4)
    zeros = _with_proof(ballots[0], mpz(0), mpz(0))
    stolen = [replace(ballot, context=b"replayed") for ballot in ballots[1:]]
    with pytest.raises(ProofError) as caught:
        verify_ballots(public, [zeros, *stolen])
    assert caught.value.culprits == (1, 2, 3, 4)

    def unchecked(values: Sequence[mpz], modulus: mpz, *_: Any, **__: Any) -> tuple[mpz, ...]:
        return tuple(value % modulus for value in values)

    monkeypatch.setattr(ballot_proofs, "check_units", unchecked)
    monkeypatch.setattr(encryption, "check_units", unchecked)
    verify_ballots(public, [zeros, *stolen])


def test_a_negative_response_gets_one_verdict_alone_in_a_batch_and_when_halved(
    keys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    public, ballots = keys.dealt().public, _ballots(keys, 6)
    turned = [
        _with_proof(each, each.proof.commitment, public.modulus - each.proof.response)
        for each in ballots
    ]
    false = replace(ballots[5], context=b"replayed")
    for _ in range(20):
        verify_ballot(public, turned[0])
        verify_ballots(public, [turned[0], *ballots[1:]])
        verify_ballots(public, [*turned[:3], *ballots[3:]])
        with pytest.raises(ProofError) as caught:
            verify_ballots(public, [*turned[:3], *ballots[3:5], false])
        assert caught.value.culprits == (6,)
    # An exact comparison would refuse it alone, and let it pass a batch by the toss of a coin.
    monkeypatch.setattr(
        ballot_proofs,
        "are_equal_up_to_sign",
        lambda left, right, modulus: (left - right) % modulus == 0,
    )
    with pytest.raises(ProofError):
        verify_ballot(public, turned[0])
    verdicts = [_passes(public, [turned[0], *ballots[1:]]) for _ in range(60)]
    assert 0 < sum(verdicts) < 60


def _passes(public: Any, ballots: list[ProvenBallot]) -> bool:
    try:
        verify_ballots(public, ballots)
    except ProofError:
        return False
    return True


def test_a_share_that_is_not_a_unit_is_blamed_and_the_rest_opens(keys: Any) -> None:
    dealt = keys.dealt()
    public, prime = dealt.public, keys.short_primes[1]
    ciphertexts = keys.encrypted(public, [3])
    shares = [make_decryption_shares(public, share, ciphertexts) for share in dealt.shares[:5]]
    for bad in (mpz(0), public.modulus, prime, 4 * prime, shares[1].elements[0] + public.modulus):
        given = [shares[0], replace(shares[1], elements=(bad,)), *shares[2:]]
        opened = open_tallies(public, ciphertexts, given)
        assert (opened.plaintexts, opened.culprits) == ((3,), (2,))
        with pytest.raises(DecryptionError) as caught:
            open_tallies(public, ciphertexts, given[:4])
        assert caught.value.culprits == (2,)
        assert str(prime) not in str(caught.value)
