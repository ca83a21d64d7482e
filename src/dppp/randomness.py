"""The one source of random bytes, and uniform integers drawn from it.

Every function that draws takes such a source, so that test vectors can be made again. The default
everywhere is `system_randomness`.
"""

import os
from collections.abc import Callable

import gmpy2
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from gmpy2 import mpz

RandomSource = Callable[[int], bytes]
"""Gives that many random bytes. Deployments use `system_randomness`; tests hand in their own."""


def system_randomness(count: int) -> bytes:
    """Random bytes: AES-256 in counter mode under a fresh key of the operating system's."""
    return expand_key(os.urandom(32), count)


def expand_key(key: bytes, count: int) -> bytes:
    """The first bytes of the AES-256-CTR key stream under this key, which must be used once."""
    encryptor = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()
    return encryptor.update(bytes(count))


class KeyStream:
    """The AES-256-CTR key stream under one key, read piece by piece: each call goes on."""

    def __init__(self, key: bytes) -> None:
        self._encryptor = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()

    def __call__(self, count: int) -> bytes:
        """The next bytes."""
        return self._encryptor.update(bytes(count))


def random_bits(bits: int, randomness: RandomSource) -> mpz:
    """A uniform integer in [0, 2^bits)."""
    drawn = mpz.from_bytes(randomness((bits + 7) // 8), "big")
    return gmpy2.f_mod_2exp(drawn, bits)


def random_below(bound: mpz, randomness: RandomSource) -> mpz:
    """A uniform integer in [0, bound), by rejection."""
    bits = (bound - 1).bit_length()
    while True:
        drawn = random_bits(bits, randomness)
        if drawn < bound:
            return drawn


def random_unit(modulus: mpz, randomness: RandomSource) -> mpz:
    """A uniform residue that has an inverse."""
    while True:
        drawn = random_below(modulus, randomness)
        if gmpy2.gcd(drawn, modulus) == 1:
            return drawn
