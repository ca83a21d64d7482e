"""The dealer's keys, and sealed shares."""

import gc
import warnings
from dataclasses import replace
from typing import Any

import gmpy2
import pytest
from gmpy2 import mpz

from dppp.errors import KeyMaterialError, WeakModulusWarning
from dppp.paillier import dealer
from dppp.paillier.arithmetic.lagrange import interpolate
from dppp.paillier.dealer import deal, deal_from_primes
from dppp.paillier.keys import Decryption, KeyShare
from dppp.paillier.sealing import read_header, seal_share, unseal_share


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
            random_bytes=seeded(seed),
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
            random_bytes=seeded(f"squares {seed}"),
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


def test_a_sealed_share_opens_with_its_passphrase_only(keys: Any) -> None:
    share = keys.dealt().shares[2]
    sealed = seal_share(share, b"correct horse", cost_log2=14)
    assert unseal_share(sealed, b"correct horse") == share
    assert share.exponent.to_bytes(80, "big").lstrip(b"\0") not in sealed
    with pytest.raises(KeyMaterialError, match="passphrase is wrong"):
        unseal_share(sealed, b"correct horsf")
    header = read_header(sealed)
    assert (header.key_id, header.index) == (share.key_id, 3)


def test_a_share_sealed_under_anothers_header_is_refused(
    keys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only who seals can do that: all bytes are authentic, and still not what they say."""
    mine, other = keys.dealt().shares[:2]
    data = other.to_bytes()
    monkeypatch.setattr(KeyShare, "to_bytes", lambda _: data)
    sealed = seal_share(mine, b"correct horse", cost_log2=14)
    with pytest.raises(KeyMaterialError, match="not the one its header names"):
        unseal_share(sealed, b"correct horse")


def test_a_share_sealed_before_0_2_0_is_refused_with_the_reason(keys: Any) -> None:
    sealed = seal_share(keys.dealt().shares[0], b"passphrase", cost_log2=14)
    assert sealed.startswith(b"dppp sealed share 2\n")
    with pytest.raises(KeyMaterialError) as caught:
        unseal_share(sealed.replace(b" 2\n", b" 1\n", 1), b"passphrase")
    for words in ("sealed share", "before 0.2.0", "factor", "dppp keys deal", "readable"):
        assert words in str(caught.value)


def test_truncated_changed_and_foreign_files_are_refused(keys: Any) -> None:
    sealed = seal_share(keys.dealt().shares[0], b"passphrase", cost_log2=14)
    for wrong in (b"", b"a foreign file", sealed[:20], sealed[:70], sealed[:-1], sealed + b"\0"):
        with pytest.raises(KeyMaterialError):
            unseal_share(wrong, b"passphrase")
    for position in (25, 40, 60, 81, 83, 90, len(sealed) - 1):
        changed = bytearray(sealed)
        changed[position] ^= 1
        with pytest.raises(KeyMaterialError):
            unseal_share(bytes(changed), b"passphrase")


def test_a_forged_cost_cannot_exhaust_memory(keys: Any) -> None:
    sealed = bytearray(seal_share(keys.dealt().shares[0], b"passphrase", cost_log2=14))
    sealed[20] = 40
    with pytest.raises(KeyMaterialError, match="cost"):
        unseal_share(bytes(sealed), b"passphrase")


def test_short_passphrases_and_odd_costs_are_refused(keys: Any) -> None:
    share = keys.dealt().shares[0]
    with pytest.raises(KeyMaterialError, match="longer"):
        seal_share(share, b"short")
    with pytest.raises(KeyMaterialError, match="cost"):
        seal_share(share, b"passphrase", cost_log2=5)


def test_a_share_under_another_shares_header_is_refused(keys: Any, seeded: Any) -> None:
    shares = keys.dealt().shares
    first, second = (
        seal_share(share, b"passphrase", cost_log2=14, random_bytes=seeded("same"))
        for share in (shares[0], replace(shares[0], index=2))
    )
    cut = len(first) - len(shares[0].to_bytes()) - 16
    with pytest.raises(KeyMaterialError):
        unseal_share(second[:cut] + first[cut:], b"passphrase")
