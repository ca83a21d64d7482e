"""What a key refuses to be."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gmpy2
import pytest
from gmpy2 import mpz

from dppp.errors import DpppError, EncodingError, KeyMaterialError
from dppp.paillier.keys import (
    Decryption,
    KeyId,
    KeyShare,
    PublicKey,
    require_fitting_share,
    require_share_of,
)


def test_a_public_key_survives_its_encoding(keys: Any) -> None:
    for s in (1, 3):
        for decryption in Decryption:
            public = keys.dealt(s, decryption).public
            again = PublicKey.from_bytes(public.to_bytes(), insecure_testing=True)
            assert again == public
            assert again.key_id == public.key_id


def test_a_public_key_has_one_encoding(keys: Any) -> None:
    """The key id is a hash of it: zeros in front of the numbers would be the same key again."""
    public = keys.dealt().public
    length = (public.modulus_bits + 7) // 8
    data = public.to_bytes()
    start = data.index(length.to_bytes(2, "big") + bytes((public.s,)))
    longer = data[:start] + (length + 1).to_bytes(2, "big") + data[start + 2 : start + 8]
    numbers = data[start + 8 :]
    for place in range(3):  # modulus, generator, base of the blindings
        longer += b"\0" + numbers[place * length : (place + 1) * length]
    longer += numbers[3 * length :]
    with pytest.raises(EncodingError, match="canonical"):
        PublicKey.from_bytes(longer, insecure_testing=True)


def test_a_key_share_has_one_encoding(keys: Any) -> None:
    share = keys.dealt().shares[0]
    data = share.to_bytes()
    start = len(data) - (share.exponent.bit_length() + 7) // 8
    assert KeyShare.from_bytes(data) == share
    for wrong in (data[:start], data[:start] + b"\0" + data[start:]):
        with pytest.raises(EncodingError, match="canonical"):
            KeyShare.from_bytes(wrong)


def test_a_short_key_is_not_loaded_by_default(keys: Any) -> None:
    with pytest.raises(KeyMaterialError, match="fewer than 2048"):
        PublicKey.from_bytes(keys.dealt().public.to_bytes())


def test_a_short_key_cannot_be_made_by_default(keys: Any) -> None:
    with pytest.raises(KeyMaterialError, match="fewer than 2048"):
        replace(keys.dealt().public, insecure_testing=False)


@pytest.mark.parametrize("kind", ["public key", "key share"])
def test_material_of_version_1_is_refused_with_the_reason(keys: Any, kind: str) -> None:
    dealt = keys.dealt()
    material: Any = dealt.public if kind == "public key" else dealt.shares[0]
    data = material.to_bytes()
    old = data.replace(b" 2\n", b" 1\n", 1)
    assert data.startswith(f"dppp {kind} 2\n".encode())
    with pytest.raises(KeyMaterialError) as caught:
        type(material).from_bytes(old)
    for words in (kind, "before 0.2.0", "factor", "dppp keys deal", "readable"):
        assert words in str(caught.value)


def _square(prime: mpz, _other: mpz) -> mpz:
    return prime * prime


MODULI: dict[str, Callable[[mpz, mpz], mpz]] = {
    "is even": lambda p, q: p * q + 1,
    "is a perfect power": _square,
    "is prime": lambda p, q: gmpy2.next_prime(p * q),
    "has a small factor": lambda p, q: p * q * 65521,
    "fewer than 512": lambda p, _q: p,
    "is not a product of two safe primes": lambda p, q: p * gmpy2.next_prime(q * q),
    "more than 8192": lambda p, q: (p * q) ** 17,
    "0 bits": lambda _p, _q: mpz(0),
}


@pytest.mark.parametrize("reason", MODULI)
def test_a_bad_modulus_is_refused_by_name(keys: Any, reason: str) -> None:
    public = keys.dealt().public
    modulus = MODULI[reason](*keys.short_primes)
    if reason.startswith("is not a product") and modulus % 4 == 1:
        modulus = keys.short_primes[0] * gmpy2.next_prime(modulus // keys.short_primes[0])
        while modulus % 4 == 1:
            modulus = keys.short_primes[0] * gmpy2.next_prime(modulus // keys.short_primes[0])
    with pytest.raises(KeyMaterialError, match=reason):
        replace(public, modulus=modulus)


def test_another_generator_is_refused(keys: Any) -> None:
    public = keys.dealt().public
    length = (public.modulus_bits + 7) // 8
    right = public.generator.to_bytes(length, "big")
    wrong = (public.generator + 1).to_bytes(length, "big")
    data = public.to_bytes().replace(right, wrong)
    with pytest.raises(KeyMaterialError, match="1 \\+ n"):
        PublicKey.from_bytes(data, insecure_testing=True)


@pytest.mark.parametrize("decryption", list(Decryption))
def test_elements_outside_the_group_are_refused(keys: Any, decryption: Decryption) -> None:
    public = keys.dealt(1, decryption).public
    prime = keys.short_primes[0]
    for value in (mpz(0), mpz(1), public.share_modulus - 1, public.share_modulus, prime, prime * 4):
        with pytest.raises(KeyMaterialError):
            replace(public, verification_base=value)
        with pytest.raises(KeyMaterialError):
            replace(public, verification_keys=(value, *public.verification_keys[1:]))
    for value in (mpz(0), mpz(1), public.modulus - 1, public.modulus, prime):
        with pytest.raises(KeyMaterialError):
            replace(public, blinding_base=value)


def test_wrong_numbers_of_teachers_are_refused(keys: Any) -> None:
    public = keys.dealt().public
    wrong: list[dict[str, Any]] = [
        {"decryption": "guess"},
        {"threshold": 1},
        {"threshold": 8},
        {"teachers": 6},
        {"s": 0},
        {"s": 9},
    ]
    for change in wrong:
        with pytest.raises(KeyMaterialError):
            replace(public, **change)


def test_two_teachers_with_one_verification_key_are_refused(keys: Any) -> None:
    public = keys.dealt().public
    first = public.verification_keys[0]
    with pytest.raises(KeyMaterialError, match="same verification key"):
        replace(public, verification_keys=(first, first, *public.verification_keys[2:]))


def test_every_changed_byte_of_a_public_key_is_refused_or_is_another_key(keys: Any) -> None:
    public = keys.dealt().public
    data = public.to_bytes()
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 1
        try:
            other = PublicKey.from_bytes(bytes(changed), insecure_testing=True)
        except DpppError:
            continue
        assert other.key_id != public.key_id
        assert position >= 24  # never in the tag or the numbers


def test_truncated_and_longer_encodings_are_refused(keys: Any) -> None:
    dealt = keys.dealt()
    data = dealt.public.to_bytes()
    for wrong in (b"", data[:-1], data[:40], data + b"\0"):
        with pytest.raises(EncodingError):
            PublicKey.from_bytes(wrong, insecure_testing=True)
    share = dealt.shares[0].to_bytes()
    for wrong in (b"", share[:30], b"x" + share):
        with pytest.raises(EncodingError):
            KeyShare.from_bytes(wrong)
    assert KeyShare.from_bytes(share) == dealt.shares[0]


def test_the_key_id_covers_s_and_the_way_of_decryption(keys: Any) -> None:
    ids = {keys.dealt(s, way).public.key_id for s in (1, 2) for way in Decryption}
    assert len(ids) == 4
    public = keys.dealt().public
    assert replace(public, s=2).key_id != public.key_id


def test_secrets_are_not_printed(keys: Any) -> None:
    share = keys.dealt().shares[0]
    for text in (repr(share), str(share), repr(keys.dealt()), repr(keys.table().draw())):
        assert str(share.exponent) not in text
        assert share.exponent.digits(16) not in text
    assert "<redacted>" in repr(share)
    assert "<redacted>" in repr(keys.table().draw())


def test_a_key_share_with_impossible_fields_is_refused(keys: Any) -> None:
    share = keys.dealt().shares[0]
    wrong: list[dict[str, Any]] = [
        {"index": 0},
        {"index": 70000},
        {"exponent": mpz(0)},
        {"key_id": KeyId(b"short")},
    ]
    for change in wrong:
        with pytest.raises(KeyMaterialError):
            replace(share, **change)


def test_a_share_of_another_key_or_of_no_teacher_is_refused(keys: Any) -> None:
    share = keys.dealt(1).shares[0]
    with pytest.raises(KeyMaterialError, match="another key"):
        require_share_of(keys.dealt(2).public, share)
    with pytest.raises(KeyMaterialError, match="no teacher 8"):
        require_share_of(keys.dealt(1).public, replace(share, index=8))


@pytest.mark.parametrize("decryption", list(Decryption))
def test_a_share_that_does_not_fit_its_verification_key_is_refused(
    keys: Any, decryption: Decryption
) -> None:
    dealt = keys.dealt(2, decryption)
    for share in dealt.shares:
        require_fitting_share(dealt.public, share)
    first = dealt.shares[0]
    for wrong in (replace(first, index=2), replace(first, exponent=first.exponent + 1)):
        with pytest.raises(KeyMaterialError, match="does not fit"):
            require_fitting_share(dealt.public, wrong)
