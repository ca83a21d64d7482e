"""Encrypting and adding (paper, Eq. 1 and 2; Damgard-Jurik 2001 for s > 1).

A ciphertext is a unit modulo n^(s+1). `read_ciphertexts` is the only way in for those of others:
it refuses whatever is not one. Run by teachers and the aggregator.
"""

from collections.abc import Iterable, Sequence
from typing import NewType

from gmpy2 import mpz

from dppp.errors import EncodingError, InputError
from dppp.paillier.arithmetic.groups import check_units
from dppp.paillier.blinding import Blinding
from dppp.paillier.encoding import byte_length
from dppp.paillier.keys import PublicKey
from dppp.paillier.structure import raise_generator

Ciphertext = NewType("Ciphertext", mpz)


def encrypt(public: PublicKey, plaintext: mpz, blinding: Blinding) -> Ciphertext:
    """(1 + n)^m · blinding: Eq. 1. It needs no exponentiation."""
    if not 0 <= plaintext < public.plaintext_modulus:
        raise InputError("a plaintext is outside 0..n^s - 1", hint="pack it with `packing` first")
    # The blinding's own power of 1 + n is added to m beforehand.
    power = raise_generator(public, plaintext + blinding.shift)
    return Ciphertext(power * blinding.factor % public.ciphertext_modulus)


def add(public: PublicKey, ciphertexts: Iterable[Ciphertext]) -> Ciphertext:
    """The ciphertext of the sum of many plaintexts: their product, Eq. 2."""
    total = mpz(1)
    for ciphertext in ciphertexts:
        total = total * ciphertext % public.ciphertext_modulus
    return Ciphertext(total)


def add_ballots(
    public: PublicKey, ballots: Sequence[Sequence[Ciphertext]]
) -> tuple[Ciphertext, ...]:
    """The tally of many ballots, place by place."""
    if len({len(ballot) for ballot in ballots}) != 1:
        raise InputError("ballots must be there and all of one length to be added")
    return tuple(add(public, place) for place in zip(*ballots, strict=True))


def write_ciphertexts(public: PublicKey, ciphertexts: Sequence[Ciphertext]) -> bytes:
    """Their values one after another, each of the length of n^(s+1)."""
    length = byte_length(public.ciphertext_modulus)
    return b"".join(ciphertext.to_bytes(length, "big") for ciphertext in ciphertexts)


def read_ciphertexts(public: PublicKey, data: bytes) -> tuple[Ciphertext, ...]:
    """The ciphertexts in `data`, each of them checked to be a unit."""
    length = byte_length(public.ciphertext_modulus)
    if not data or len(data) % length:
        raise EncodingError(
            f"{len(data)} bytes are not a whole number of ciphertexts of {length} bytes",
            hint="get them again",
        )
    values = tuple(
        Ciphertext(mpz.from_bytes(data[start : start + length], "big"))
        for start in range(0, len(data), length)
    )
    check_ciphertexts(public, values)
    return values


def check_ciphertexts(public: PublicKey, ciphertexts: Sequence[Ciphertext]) -> tuple[mpz, ...]:
    """Refuse any ciphertext that is not a unit, by its position; return them modulo n."""
    return check_units(ciphertexts, public.modulus, public.ciphertext_modulus, what="ciphertext")
