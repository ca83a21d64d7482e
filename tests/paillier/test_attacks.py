"""Attacks that were tried, with controls that show the attack works where it should."""

from typing import Any

import gmpy2
import pytest
from gmpy2 import mpz

from dppp.errors import GroupElementError, ProofError
from dppp.paillier.ballot_proofs import ProvenBallot, prove_ballot, verify_ballot, verify_ballots
from dppp.paillier.blinding import Blinding
from dppp.paillier.decryption.combination import open_tallies
from dppp.paillier.decryption.shares import make_decryption_shares
from dppp.paillier.encryption import Ciphertext, encrypt
from dppp.paillier.lagrange import interpolate
from dppp.paillier.structure import lift_root


def _factors(modulus: mpz, *values: mpz) -> bool:
    """Whether any of the values shares a proper factor with the modulus."""
    return any(gmpy2.gcd(value, modulus) not in (1, modulus) for value in values)


def _root_of_jacobi_minus_one(public: Any) -> mpz:
    return next(
        mpz(value) for value in range(2, 999) if gmpy2.jacobi(mpz(value), public.modulus) == -1
    )


@pytest.mark.parametrize("s", [1, 2])
def test_a_blinding_of_jacobi_symbol_minus_one_gives_no_factor(keys: Any, s: int) -> None:
    dealt = keys.dealt(s)
    public = dealt.public
    root = _root_of_jacobi_minus_one(public)
    lifted = lift_root(public, root)
    blinding = Blinding(exponent=mpz(0), root=root, factor=lifted, shift=mpz(0))
    ciphertext = encrypt(public, mpz(3), blinding)
    # The colluder even has a proof that holds, and sees every share.
    proof = prove_ballot(public, [ciphertext], [blinding], context=b"c")
    verify_ballot(
        public, ProvenBallot(index=1, ciphertexts=(ciphertext,), context=b"c", proof=proof)
    )
    shares = [
        make_decryption_shares(public, dealt.shares[index - 1], [ciphertext])
        for index in (1, 2, 3, 4)
    ]
    opening = open_tallies(public, [ciphertext], shares).openings[0]
    denominator = interpolate(opening.subset).denominator
    seen = [opening.root, *(share.elements[0] for share in shares)]
    known = [gmpy2.powmod(root, power, public.modulus) for power in (1, 2, denominator)]
    known.append(gmpy2.powmod(root, 2 * denominator, public.modulus))
    pairs = [(one, other) for one in seen for other in known]
    assert not _factors(public.modulus, *(one - other for one, other in pairs))
    assert not _factors(public.modulus, *(one + other for one, other in pairs))


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
            response=min(
                power := gmpy2.powmod(victims_proof.response, 1 << 100, public.modulus),
                public.modulus - power,
            ),
        ),
    ]
    for proof in guesses:
        ballot = ProvenBallot(index=2, ciphertexts=(copied,), context=b"teacher 2", proof=proof)
        with pytest.raises(ProofError):
            verify_ballot(public, ballot)
