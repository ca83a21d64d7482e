"""The public key and the share of one teacher: frozen, checked when made, bound to a key id.

A key is dealt for one s (Damgard-Jurik 2001; s = 1 is Paillier) and one way of decryption, and its
id covers both along with everything else that is public. Used by every party.

This is version 2 of keys. Under a key of version 1 the decryption shares were x^(2·d_i), without
Δ = N! in the exponent, and two colluding teachers could factor the modulus from one batch. A share
of each kind under one key would be as bad, so material of version 1 is refused.
"""

import functools
import hashlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType, Self

import gmpy2
from gmpy2 import mpz

from dppp.errors import EncodingError, GroupElementError, KeyMaterialError
from dppp.paillier.arithmetic.groups import check_units
from dppp.paillier.arithmetic.modexp import power_secret
from dppp.paillier.encoding import Reader, byte_length

KeyId = NewType("KeyId", bytes)

KEY_ID_BYTES = 32
SHORTEST_MODULUS_BITS = 2048
SHORTEST_TESTING_BITS = 512
LONGEST_MODULUS_BITS = 8192
LARGEST_S = 8
MOST_TEACHERS = 0xFFFF
_PUBLIC_TAG = b"dppp public key 2\n"
_SHARE_TAG = b"dppp key share 2\n"
_TRIAL_DIVISION_LIMIT = 1 << 16


class Decryption(StrEnum):
    """The two ways of decryption; see `dppp.paillier.decryption`."""

    ROOT = "root"
    PAPER = "paper"


_CODES = {Decryption.ROOT: 1, Decryption.PAPER: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicKey:
    """What every party knows. Integers are gmpy2.mpz.

    `insecure_testing` admits a modulus from 512 bits on. It is not in the encoding, so a short key
    cannot be loaded unless the code that loads it asks for one.
    """

    modulus: mpz = field(repr=False)
    s: int
    decryption: Decryption
    teachers: int
    threshold: int
    blinding_base: mpz = field(repr=False)
    verification_base: mpz = field(repr=False)
    verification_keys: tuple[mpz, ...] = field(repr=False)
    insecure_testing: bool = field(default=False, compare=False, repr=False)
    plaintext_modulus: mpz = field(init=False, compare=False, repr=False)
    ciphertext_modulus: mpz = field(init=False, compare=False, repr=False)
    key_id: KeyId = field(init=False, compare=False)

    def __post_init__(self) -> None:
        _require_numbers(self)
        _require_modulus(self.modulus, self.insecure_testing)
        object.__setattr__(self, "plaintext_modulus", self.modulus**self.s)
        object.__setattr__(self, "ciphertext_modulus", self.modulus ** (self.s + 1))
        _require_elements(self)
        digest = hashlib.sha256(self.to_bytes()).digest()
        object.__setattr__(self, "key_id", KeyId(digest))

    def __hash__(self) -> int:
        return hash(self.key_id)

    @property
    def generator(self) -> mpz:
        """The only generator that is accepted: 1 + n."""
        return self.modulus + 1

    @property
    def modulus_bits(self) -> int:
        """The length of the modulus."""
        return self.modulus.bit_length()

    @property
    def plaintext_bits(self) -> int:
        """Every integer of this many bits is a plaintext."""
        return self.plaintext_modulus.bit_length() - 1

    @property
    def factorial(self) -> mpz:
        """Δ = N!, of all teachers that have a share of the key, however many are present."""
        return gmpy2.fac(self.teachers)

    @property
    def share_modulus(self) -> mpz:
        """Decryption shares live modulo n (root) or n^(s+1) (paper)."""
        return self.modulus if self.decryption == Decryption.ROOT else self.ciphertext_modulus

    def to_bytes(self) -> bytes:
        """The canonical encoding, of which the key id is the SHA-256."""
        length, share_length = byte_length(self.modulus), byte_length(self.share_modulus)
        return b"".join(
            (
                _PUBLIC_TAG,
                length.to_bytes(2, "big"),
                bytes((self.s, _CODES[self.decryption])),
                self.teachers.to_bytes(2, "big"),
                self.threshold.to_bytes(2, "big"),
                self.modulus.to_bytes(length, "big"),
                self.generator.to_bytes(length, "big"),
                self.blinding_base.to_bytes(length, "big"),
                self.verification_base.to_bytes(share_length, "big"),
                *(key.to_bytes(share_length, "big") for key in self.verification_keys),
            )
        )

    @classmethod
    def from_bytes(cls, data: bytes, *, insecure_testing: bool = False) -> Self:
        """Read a key strictly; whatever is wrong with it is refused by name."""
        refuse_version_1(data, tag=_PUBLIC_TAG, kind="public key")
        reader = Reader(data, tag=_PUBLIC_TAG, kind="a public key")
        length, s, code = reader.count(2), reader.count(1), reader.count(1)
        teachers, threshold = reader.count(2), reader.count(2)
        ways = {number: way for way, number in _CODES.items()}
        if code not in ways or not 1 <= s <= LARGEST_S:
            raise EncodingError("a public key has a decryption or an s that is not known here")
        modulus, generator = reader.integer(length), reader.integer(length)
        _require_modulus(modulus, insecure_testing)
        if generator != modulus + 1:
            raise KeyMaterialError("the generator is not 1 + n; only that one is accepted")
        power = 1 if ways[code] == Decryption.ROOT else s + 1
        share_length = byte_length(modulus**power)
        key = cls(
            modulus=modulus,
            s=s,
            decryption=ways[code],
            teachers=teachers,
            threshold=threshold,
            blinding_base=reader.integer(length),
            verification_base=reader.integer(share_length),
            verification_keys=tuple(reader.integer(share_length) for _ in range(teachers)),
            insecure_testing=insecure_testing,
        )
        reader.finish()
        if key.to_bytes() != data:
            raise EncodingError("a public key is not in its canonical form", hint="get it again")
        return key


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyShare:
    """One teacher's share of the decryption exponent. Teacher `index` of 1..N holds it."""

    key_id: KeyId
    index: int
    exponent: mpz

    def __post_init__(self) -> None:
        if len(self.key_id) != KEY_ID_BYTES:
            raise KeyMaterialError("a key share does not name its key: a key id has 32 bytes")
        if not 1 <= self.index <= MOST_TEACHERS:
            raise KeyMaterialError(f"a key share's index is {self.index}; teachers count from 1")
        if self.exponent < 1:
            raise KeyMaterialError(
                "a key share's exponent is not positive", hint="deal the key anew"
            )

    def __repr__(self) -> str:
        return f"KeyShare(key_id={self.key_id.hex()}, index={self.index}, exponent=<redacted>)"

    def to_bytes(self) -> bytes:
        """The encoding that the dealer seals to its teacher; never send it in the clear."""
        exponent = self.exponent.to_bytes(byte_length(self.exponent), "big")
        return _SHARE_TAG + self.key_id + self.index.to_bytes(2, "big") + exponent

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read what to_bytes wrote."""
        refuse_version_1(data, tag=_SHARE_TAG, kind="key share")
        reader = Reader(data, tag=_SHARE_TAG, kind="a key share")
        key_id, index = KeyId(reader.take(KEY_ID_BYTES)), reader.count(2)
        exponent = data[len(_SHARE_TAG) + KEY_ID_BYTES + 2 :]
        if exponent[:1] in (b"", b"\0"):
            raise EncodingError("a key share is not in its canonical form", hint="get it again")
        return cls(key_id=key_id, index=index, exponent=mpz.from_bytes(exponent, "big"))


def refuse_version_1(data: bytes, *, tag: bytes, kind: str) -> None:
    """Refuse key material that was dealt before 0.2.0, with the reason and what to do."""
    if data.startswith(tag.replace(b"2", b"1")):
        raise KeyMaterialError(
            f"this {kind} was dealt before 0.2.0 and is unsafe: two colluding teachers could "
            "factor its modulus",
            hint=(
                "deal a new key with 'dppp keys deal', and treat ballots that were sealed under "
                "the old one as readable"
            ),
        )


def require_share_of(public: PublicKey, share: KeyShare) -> None:
    """Refuse a share of another key, or of a teacher that the key does not have."""
    if share.key_id != public.key_id:
        raise KeyMaterialError(
            "this key share belongs to another key", hint="use the share of this key"
        )
    if share.index > public.teachers:
        raise KeyMaterialError(f"there is no teacher {share.index} of {public.teachers}")


def require_fitting_share(public: PublicKey, share: KeyShare) -> None:
    """Refuse a share that does not fit its verification key. Run by a teacher that loads one."""
    require_share_of(public, share)
    power = power_secret(public.verification_base, share.exponent, public.share_modulus)
    if power != public.verification_keys[share.index - 1]:
        raise KeyMaterialError(
            "this key share does not fit the public key", hint="ask the dealer for it"
        )


def _require_numbers(key: PublicKey) -> None:
    if key.decryption not in _CODES:
        raise KeyMaterialError(f"the decryption is {key.decryption!r}; it must be root or paper")
    if not 1 <= key.s <= LARGEST_S:
        raise KeyMaterialError(f"s is {key.s}; it must be between 1 and {LARGEST_S}")
    if not 2 <= key.threshold <= key.teachers <= MOST_TEACHERS:
        raise KeyMaterialError(
            f"the threshold is {key.threshold} of {key.teachers} teachers; "
            "it must be at least 2 and at most the number of teachers"
        )
    if len(key.verification_keys) != key.teachers:
        raise KeyMaterialError("a public key needs one verification key for each teacher")


def _require_modulus(modulus: mpz, insecure_testing: bool) -> None:
    """Refuse what is plainly not a product of two large safe primes of equal length."""
    shortest = SHORTEST_TESTING_BITS if insecure_testing else SHORTEST_MODULUS_BITS
    reason = None
    if modulus < 1 or modulus.bit_length() < shortest:
        reason = f"has {modulus.bit_length()} bits, fewer than {shortest}"
    elif modulus.bit_length() > LONGEST_MODULUS_BITS:
        reason = f"has {modulus.bit_length()} bits, more than {LONGEST_MODULUS_BITS}"
    elif modulus % 2 == 0:
        reason = "is even"
    elif gmpy2.gcd(modulus, _small_factors()) != 1:
        reason = "has a small factor"
    elif modulus.is_power():
        reason = "is a perfect power"
    elif modulus.is_prime():
        reason = "is prime"
    elif modulus % 4 != 1:
        reason = "is not a product of two safe primes"
    if reason:
        raise KeyMaterialError(f"the modulus {reason}", hint="deal a new key with 'dppp keys deal'")


def _require_elements(key: PublicKey) -> None:
    """Bases and verification keys are units, not ±1, and all different.

    That they are squares cannot be seen without the primes; it rests on the dealer.
    """
    bases = (key.verification_base, *key.verification_keys)
    try:
        check_units([key.blinding_base], key.modulus, key.modulus, what="blinding base")
        check_units(bases, key.modulus, key.share_modulus, what="verification key")
    except GroupElementError as error:
        raise KeyMaterialError(f"a public key is damaged: {error.message}") from error
    if {1, key.modulus - 1, key.share_modulus - 1} & {key.blinding_base, *bases}:
        raise KeyMaterialError("a base or a verification key is 1 or -1", hint="get the key again")
    if len(set(bases)) != len(bases):
        raise KeyMaterialError(
            "two teachers have the same verification key", hint="get the key again"
        )


@functools.cache
def _small_factors() -> mpz:
    return gmpy2.primorial(_TRIAL_DIVISION_LIMIT)
