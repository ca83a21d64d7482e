"""Powers that an aggregator supplies: the same shares, and no use for lying."""

from typing import Any

import gmpy2
import pytest
from gmpy2 import mpz
from tests.vectors.make_paillier import PRIMES, fixed_random

from dppp.benchmarks.supplied_powers import check_powers, make_shares_from_powers, supply_powers
from dppp.errors import GroupElementError, ProofError
from dppp.paillier.arithmetic.groups import are_equal_up_to_sign
from dppp.paillier.arithmetic.multiexp import multiply_powers
from dppp.paillier.blinding import BlindingTable
from dppp.paillier.dealer import DealtKey, deal_from_primes
from dppp.paillier.decryption.shares import make_decryption_shares
from dppp.paillier.encryption import Ciphertext, encrypt
from dppp.paillier.keys import Decryption
from dppp.randomness import random_bits, system_randomness


@pytest.fixture(scope="module")
def dealt() -> DealtKey:
    return deal_from_primes(
        PRIMES,
        teachers=8,
        threshold=5,
        s=2,
        decryption=Decryption.ROOT,
        randomness=fixed_random("supplied powers"),
        insecure_testing=True,
    )


@pytest.fixture(scope="module")
def ciphertexts(dealt: DealtKey) -> tuple[Ciphertext, ...]:
    table = BlindingTable(dealt.public, bytes_limit=500_000)
    return tuple(encrypt(dealt.public, mpz(number), table.draw()) for number in range(5))


def test_shares_from_supplied_powers_are_the_same(dealt: DealtKey, ciphertexts: Any) -> None:
    powers = supply_powers(dealt.public, ciphertexts)
    for share in dealt.shares:
        plain = make_decryption_shares(dealt.public, share, ciphertexts)
        assert make_shares_from_powers(dealt.public, share, ciphertexts, powers) == plain


def test_false_powers_are_refused(dealt: DealtKey, ciphertexts: Any) -> None:
    public = dealt.public
    one, two, *rest = supply_powers(public, ciphertexts)
    inverse = gmpy2.invert(mpz(4), public.modulus)
    for false in (
        (one * 4 % public.modulus, two, *rest),
        (one * 4 % public.modulus, two * inverse % public.modulus, *rest),
        (two, one, *rest),
        (one * one % public.modulus, two, *rest),
    ):
        with pytest.raises(ProofError):
            make_shares_from_powers(public, dealt.shares[0], ciphertexts, false)
    for bad in (mpz(0), public.modulus, PRIMES[0], one + public.modulus):
        with pytest.raises(GroupElementError, match="supplied power 2 "):
            check_powers(public, ciphertexts, (one, two, bad, *rest[1:]))


def test_a_negative_power_changes_nothing_as_it_is_squared_after_the_check(
    dealt: DealtKey, ciphertexts: Any
) -> None:
    public = dealt.public
    negative = tuple(public.modulus - power for power in supply_powers(public, ciphertexts))
    for share in dealt.shares:
        plain = make_decryption_shares(public, share, ciphertexts)
        assert make_shares_from_powers(public, share, ciphertexts, negative) == plain


def test_squared_before_the_check_a_share_would_show_the_parity_of_its_exponent(
    dealt: DealtKey, ciphertexts: Any
) -> None:
    """The aggregator sends -x^(2Δ) for x^(2Δ), and gets (-1)^(d_i) · x^(2Δ·d_i)."""
    public, modulus = dealt.public, dealt.public.modulus
    squares = [gmpy2.powmod(each, 2 * public.factorial, modulus) for each in ciphertexts]
    negative = [modulus - square for square in squares]
    weights = [random_bits(64, system_randomness) for _ in ciphertexts]
    assert are_equal_up_to_sign(
        multiply_powers(negative, weights, modulus),
        multiply_powers(squares, weights, modulus),
        modulus,
    )
    guessed = []
    for share in dealt.shares:
        right = make_decryption_shares(public, share, ciphertexts).elements[0]
        shown = gmpy2.powmod(negative[0], share.exponent, modulus)
        guessed.append(int(shown != right))
        assert guessed[-1] == share.exponent % 2
    assert len(set(guessed)) == 2
