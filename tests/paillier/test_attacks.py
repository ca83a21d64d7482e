"""Attacks that were tried, with controls that show the attack works where it should."""

from typing import Any

import gmpy2
import pytest
from gmpy2 import mpz

from dppp.errors import GroupElementError, ProofError
from dppp.paillier.ballot_proofs import ProvenBallot, prove_ballot, verify_ballot, verify_ballots
from dppp.paillier.blinding import Blinding, BlindingTable
from dppp.paillier.dealer import deal_from_primes
from dppp.paillier.decryption import root as root_decryption
from dppp.paillier.decryption.combination import open_tallies
from dppp.paillier.decryption.shares import make_decryption_shares
from dppp.paillier.encryption import (
    Ciphertext,
    add,
    encrypt,
    read_ciphertexts,
    write_ciphertexts,
)
from dppp.paillier.keys import Decryption
from dppp.paillier.lagrange import interpolate
from dppp.paillier.structure import lift_root


def _factors(modulus: mpz, *values: mpz) -> bool:
    """Whether any of the values shares a proper factor with the modulus."""
    return any(gmpy2.gcd(value, modulus) not in (1, modulus) for value in values)


def _root_of_jacobi_minus_one(public: Any) -> mpz:
    return next(
        mpz(value) for value in range(2, 999) if gmpy2.jacobi(mpz(value), public.modulus) == -1
    )


def _blinding(public: Any, root: mpz) -> Blinding:
    return Blinding(exponent=mpz(0), root=root, factor=lift_root(public, root), shift=mpz(0))


@pytest.mark.parametrize("s", [1, 2])
def test_a_blinding_of_jacobi_symbol_minus_one_is_refused_everywhere(keys: Any, s: int) -> None:
    dealt = keys.dealt(s)
    public = dealt.public
    blinding = _blinding(public, _root_of_jacobi_minus_one(public))
    ciphertext = encrypt(public, mpz(3), blinding)
    proof = prove_ballot(public, [ciphertext], [blinding], context=b"c")
    ballot = ProvenBallot(index=6, ciphertexts=(ciphertext,), context=b"c", proof=proof)
    for check in (verify_ballot, lambda key, one: verify_ballots(key, [one])):
        with pytest.raises(ProofError) as caught:
            check(public, ballot)
        assert caught.value.culprits == (6,)
    # A tally that has it is not decrypted either, whoever forgot to check the ballot.
    tally = add(public, [ciphertext, *keys.encrypted(public, [1, 2])])
    for refused in (
        lambda: make_decryption_shares(public, dealt.shares[0], [tally]),
        lambda: open_tallies(public, [tally], []),
        lambda: read_ciphertexts(public, write_ciphertexts(public, [ciphertext])),
    ):
        with pytest.raises(GroupElementError, match="Jacobi symbol -1"):
            refused()


def _attack(keys: Any, seeded: Any, root: mpz) -> bool:
    """Teacher 2 and the aggregator try to factor n from one opening with an honest ballot in it.

    The opening gives y = R^(2Δ), and c = R^(n^s) modulo n: as 2Δ and n^s have no common factor, R
    follows. With t = 2, n^s d_1 = (1 + n^s d_2)/2 modulo m′: so teacher 1's share is the square
    root of R^(2E), E = 1 + n^s d_2, that is a square. R^E is a square root of it too.
    """
    for seed in range(9):
        dealt = deal_from_primes(
            keys.short_primes,
            teachers=3,
            threshold=2,
            s=1,
            decryption=Decryption.ROOT,
            random_bytes=seeded(f"attack {seed}"),
            insecure_testing=True,
        )
        public, known = dealt.public, dealt.shares[1].exponent
        exponent = 1 + public.plaintext_modulus * known
        honest = encrypt(public, mpz(5), BlindingTable(public, bytes_limit=500_000).draw())
        tally = add(public, [honest, encrypt(public, mpz(1), _blinding(public, root))])
        # Straight to the arithmetic, past the check that refuses the ciphertext.
        shares = [root_decryption.make_share(public, s.exponent, tally) for s in dealt.shares[:2]]
        opening = root_decryption.combine(public, tally, (1, 2), shares)
        assert opening.plaintext == 6
        doubled = 2 * interpolate((1, 2)).denominator
        _, one, other = gmpy2.gcdext(doubled, public.plaintext_modulus)
        total = gmpy2.powmod(opening.root, one, public.modulus)
        total = total * gmpy2.powmod(tally, other, public.modulus) % public.modulus
        guess = gmpy2.powmod(total, exponent, public.modulus)
        if _factors(public.modulus, shares[0] - guess, shares[0] + guess):
            return True
    return False


def test_were_it_accepted_a_teacher_and_the_aggregator_would_factor_the_modulus(
    keys: Any, seeded: Any
) -> None:
    assert _attack(keys, seeded, _root_of_jacobi_minus_one(keys.dealt().public))


def test_blindings_of_jacobi_symbol_one_give_no_factor(keys: Any, seeded: Any) -> None:
    modulus = keys.dealt().public.modulus
    assert not _attack(keys, seeded, mpz(4))
    assert not _attack(keys, seeded, modulus - 4)  # not a square, and still no factor


def test_a_tally_without_an_honest_ballot_must_never_be_decrypted(keys: Any, seeded: Any) -> None:
    """Why a teacher decrypts nothing that lacks its own fresh ballot (docs/protocol.md, section 7).

    Teacher 4 knows the whole blinding R = r², r of Jacobi symbol -1. With t = 2 teacher 1's share
    is R^(2E/4), E = 3 + n^s d_4: the square root of r^(2E) that is a square. An honest ballot in
    the tally hides it: nobody knows a square root of that ballot's blinding.
    """
    root = _root_of_jacobi_minus_one(keys.dealt().public)
    found = []
    for seed in range(9):
        dealt = deal_from_primes(
            keys.short_primes,
            teachers=4,
            threshold=2,
            s=1,
            decryption=Decryption.ROOT,
            random_bytes=seeded(f"no honest ballot {seed}"),
            insecure_testing=True,
        )
        public = dealt.public
        exponent = 3 + public.plaintext_modulus * dealt.shares[3].exponent
        tally = encrypt(public, mpz(1), _blinding(public, root * root))
        share = make_decryption_shares(public, dealt.shares[0], [tally]).elements[0]
        guess = gmpy2.powmod(root, exponent, public.modulus)
        found.append(_factors(public.modulus, share - guess, share + guess))
        assert found[-1] == (exponent % 2 == 1)
    assert any(found)


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
