"""The dealer's keys."""

import gc
import warnings
from typing import Any

import gmpy2
import pytest
from gmpy2 import mpz

from dppp.errors import KeyMaterialError, WeakModulusWarning
from dppp.paillier import dealer
from dppp.paillier.arithmetic.lagrange import interpolate
from dppp.paillier.dealer import deal, deal_from_primes
from dppp.paillier.keys import Decryption


def test_a_modulus_of_1024_bits_must_be_asked_for_and_comes_with_a_warning() -> None:
    with pytest.warns(WeakModulusWarning, match="reproducing the paper"):
        dealt = deal(teachers=3, threshold=2, modulus_bits=1024, insecure_testing=True)
    assert dealt.public.modulus_bits == 1024
    assert len(dealt.shares) == 3


def test_a_modulus_of_2048_bits_comes_without_one() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert deal(teachers=2, threshold=2).public.modulus_bits == 2048


@pytest.mark.parametrize(
    ("terms", "reason"),
    [
        (
            {"modulus_bits": 1024},
            "bits cannot be dealt\nhint: choose an even number from 2048",
        ),
        ({"modulus_bits": 2046}, "2046 bits cannot be dealt"),
        ({"modulus_bits": 510, "insecure_testing": True}, "choose an even number from 512"),
        ({"modulus_bits": 2049}, "2049 bits cannot be dealt"),
        ({"modulus_bits": 99999}, "99999 bits cannot be dealt"),
        ({"threshold": 1}, "threshold is 1 of 3"),
        ({"threshold": 4}, "threshold is 4 of 3"),
        ({"s": 0}, "s is 0; it must be between"),
        ({"s": 9}, "s is 9; it must be between"),
    ],
)
def test_terms_that_cannot_be_dealt_are_refused_before_any_work(
    terms: dict[str, Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dealer, "safe_prime", lambda *_: pytest.fail("worked"))
    with pytest.raises(KeyMaterialError, match=reason):
        deal(**({"teachers": 3, "threshold": 2} | terms))


def test_the_same_randomness_deals_the_same_key(keys: Any, seeded: Any) -> None:
    dealt = [
        deal_from_primes(
            keys.short_primes,
            teachers=3,
            threshold=2,
            s=1,
            decryption=Decryption.ROOT,
            randomness=seeded(seed),
            insecure_testing=True,
        )
        for seed in ("a", "a", "b")
    ]
    assert dealt[0] == dealt[1]
    assert dealt[0].public.key_id != dealt[2].public.key_id


@pytest.mark.parametrize("decryption", list(Decryption))
def test_verification_keys_belong_to_the_shares(keys: Any, decryption: Decryption) -> None:
    dealt = keys.dealt(2, decryption)
    public = dealt.public
    for share, key in zip(dealt.shares, public.verification_keys, strict=True):
        assert gmpy2.powmod(public.verification_base, share.exponent, public.share_modulus) == key


@pytest.mark.parametrize("decryption", list(Decryption))
def test_the_bases_and_verification_keys_are_true_squares(
    keys: Any, seeded: Any, decryption: Decryption
) -> None:
    """Known with the primes only: a negative one would have Legendre symbols -1 and -1."""
    for seed in range(9):
        public = deal_from_primes(
            keys.short_primes,
            teachers=3,
            threshold=2,
            s=1,
            decryption=decryption,
            randomness=seeded(f"squares {seed}"),
            insecure_testing=True,
        ).public
        bases = (public.blinding_base, public.verification_base, *public.verification_keys)
        for prime in keys.short_primes:
            assert {gmpy2.legendre(base % prime, prime) for base in bases} == {1}


def test_shares_interpolate_to_the_inverse_of_n_to_the_s(keys: Any) -> None:
    dealt = keys.dealt(3)
    half_order = (keys.short_primes[0] // 2) * (keys.short_primes[1] // 2)
    weights = interpolate((2, 3, 5, 7))
    total = sum(
        coefficient * dealt.shares[index - 1].exponent
        for index, coefficient in zip(weights.subset, weights.coefficients, strict=True)
    )
    assert total * dealt.public.plaintext_modulus % half_order == weights.denominator


def test_primes_and_polynomial_do_not_outlive_the_call() -> None:
    dealt = deal(teachers=3, threshold=2)
    gc.collect()
    integers = [thing for thing in gc.get_objects() if isinstance(thing, tuple | list | dict)]
    modulus = dealt.public.modulus
    for container in integers:
        values = container.values() if isinstance(container, dict) else container
        for value in list(values):
            if type(value) is mpz and 1 < value < modulus and value.bit_length() > 1000:
                assert modulus % value != 0
