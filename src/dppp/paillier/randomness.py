"""Random integers from a source of bytes that the caller hands in.

Every function of this package that draws takes such a source, so that test vectors can be made
again. The default everywhere is the operating system's generator.
"""

import os
from collections.abc import Callable

import gmpy2
from gmpy2 import mpz

RandomBytes = Callable[[int], bytes]
system_random: RandomBytes = os.urandom


def random_bits(bits: int, random_bytes: RandomBytes) -> mpz:
    """A uniform integer in [0, 2^bits)."""
    drawn = mpz.from_bytes(random_bytes((bits + 7) // 8), "big")
    return gmpy2.f_mod_2exp(drawn, bits)


def random_below(bound: mpz, random_bytes: RandomBytes) -> mpz:
    """A uniform integer in [0, bound), by rejection."""
    bits = (bound - 1).bit_length()
    while True:
        drawn = random_bits(bits, random_bytes)
        if drawn < bound:
            return drawn


def random_unit(modulus: mpz, random_bytes: RandomBytes) -> mpz:
    """A uniform residue that has an inverse."""
    while True:
        drawn = random_below(modulus, random_bytes)
        if gmpy2.gcd(drawn, modulus) == 1:
            return drawn
