"""The dealer: makes the modulus, shares the decryption exponent, forgets both.

Run once, by one party, in one process. The dealer knows the key while it runs. Its primes and
polynomial are local to these functions; Python cannot overwrite integers, so run the ceremony in a
process of its own that ends, as ``dppp keys deal`` does. Safe primes, the shared exponent and the
verification keys are those of Shoup (Practical threshold signatures, Eurocrypt 2000).
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import gmpy2
from gmpy2 import mpz

from dppp.errors import KeyMaterialError, WeakModulusWarning
from dppp.paillier.arithmetic.modexp import power_secret
from dppp.paillier.arithmetic.parallel import map_over_cores
from dppp.paillier.arithmetic.primes import safe_prime
from dppp.paillier.keys import (
    LARGEST_S,
    LONGEST_MODULUS_BITS,
    SHORTEST_MODULUS_BITS,
    SHORTEST_TESTING_BITS,
    Decryption,
    KeyShare,
    PublicKey,
)
from dppp.randomness import RandomSource, random_below, random_unit, system_randomness

DEFAULT_MODULUS_BITS = 2048
# A difference of fewer bits would let Fermat's method factor the modulus.
_PRIME_DISTANCE_MARGIN_BITS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class DealtKey:
    """A public key and all its shares, which the dealer hands to their teachers."""

    public: PublicKey
    shares: tuple[KeyShare, ...] = field(repr=False)


def deal(
    *,
    teachers: int,
    threshold: int,
    modulus_bits: int = DEFAULT_MODULUS_BITS,
    s: int = 1,
    decryption: Decryption = Decryption.ROOT,
    randomness: RandomSource = system_randomness,
    insecure_testing: bool = False,
) -> DealtKey:
    """A new key of which any `threshold` of `teachers` decrypt together.

    `insecure_testing` admits a modulus below 2048 bits: for tests, and for the paper's 1024 bits.
    """
    require_dealable(
        teachers=teachers,
        threshold=threshold,
        modulus_bits=modulus_bits,
        s=s,
        insecure_testing=insecure_testing,
    )
    if modulus_bits < SHORTEST_MODULUS_BITS:
        warnings.warn(
            f"a modulus of {modulus_bits} bits is for reproducing the paper and for tests only; "
            f"use {DEFAULT_MODULUS_BITS} bits for anything real",
            WeakModulusWarning,
            stacklevel=2,
        )
    primes = make_primes(modulus_bits, randomness)
    return deal_from_primes(
        primes,
        teachers=teachers,
        threshold=threshold,
        s=s,
        decryption=decryption,
        randomness=randomness,
        insecure_testing=insecure_testing,
    )


def require_dealable(
    *, teachers: int, threshold: int, modulus_bits: int, s: int, insecure_testing: bool = False
) -> None:
    """Refuse what cannot be dealt before any work is done."""
    shortest = SHORTEST_TESTING_BITS if insecure_testing else SHORTEST_MODULUS_BITS
    if modulus_bits not in range(shortest, LONGEST_MODULUS_BITS + 1, 2):
        raise KeyMaterialError(
            f"a modulus of {modulus_bits} bits cannot be dealt",
            hint=f"choose an even number from {shortest} to {LONGEST_MODULUS_BITS}",
        )
    if not 2 <= threshold <= teachers:
        raise KeyMaterialError(
            f"the threshold is {threshold} of {teachers} teachers; "
            "it must be at least 2 and at most the number of teachers"
        )
    if not 1 <= s <= LARGEST_S:
        raise KeyMaterialError(f"s is {s}; it must be between 1 and {LARGEST_S}")


def make_primes(modulus_bits: int, randomness: RandomSource) -> tuple[mpz, mpz]:
    """Two safe primes whose product has exactly `modulus_bits` bits."""
    half = modulus_bits // 2
    while True:
        first, second = (safe_prime(half, randomness) for _ in range(2))
        if abs(first - second).bit_length() > half - _PRIME_DISTANCE_MARGIN_BITS:
            return first, second


def deal_from_primes(
    primes: tuple[mpz, mpz],
    *,
    teachers: int,
    threshold: int,
    s: int,
    decryption: Decryption,
    randomness: RandomSource = system_randomness,
    insecure_testing: bool = False,
) -> DealtKey:
    """A key on a given modulus: for `deal`, for vectors, and for comparing keys in benchmarks."""
    modulus = primes[0] * primes[1]
    half_order = (primes[0] // 2) * (primes[1] // 2)
    order, secret = _decryption_exponent(modulus, half_order, s, decryption)
    exponents = _share_out(secret, order, teachers, threshold, randomness)
    share_modulus = modulus if decryption == Decryption.ROOT else modulus ** (s + 1)
    base = _random_square(share_modulus, randomness)
    verification_keys = map_over_cores(
        lambda exponent: power_secret(base, exponent, share_modulus), exponents
    )
    public = PublicKey(
        modulus=modulus,
        s=s,
        decryption=decryption,
        teachers=teachers,
        threshold=threshold,
        blinding_base=_random_square(modulus, randomness),
        verification_base=base,
        verification_keys=verification_keys,
        insecure_testing=insecure_testing,
    )
    shares = tuple(
        KeyShare(key_id=public.key_id, index=index, exponent=exponent)
        for index, exponent in enumerate(exponents, start=1)
    )
    return DealtKey(public=public, shares=shares)


def _decryption_exponent(
    modulus: mpz, half_order: mpz, s: int, decryption: Decryption
) -> tuple[mpz, mpz]:
    """(order, d): what is shared and modulo what, by docs/protocol.md, equations 5 and 10.

    The factor 2 of a decryption share is not in d: with d = (2 n^s)⁻¹ the root would be a square
    root, and one ballot whose blinding has Jacobi symbol -1 would factor the modulus.
    """
    power = modulus**s
    if decryption == Decryption.ROOT:
        return half_order, gmpy2.invert(power % half_order, half_order)
    # d = 0 mod m′ and d = 1 mod n^s (Damgard-Jurik 2001).
    return power * half_order, half_order * gmpy2.invert(half_order, power)


def _share_out(
    secret: mpz, order: mpz, teachers: int, threshold: int, randomness: RandomSource
) -> Sequence[mpz]:
    """Shamir: the values at 1..N of a random polynomial of degree t - 1 with f(0) = secret."""
    while True:
        coefficients = [secret, *(random_below(order, randomness) for _ in range(threshold - 1))]
        shares = [_evaluate(coefficients, index, order) for index in range(1, teachers + 1)]
        # A share of zero, or two that are equal, happens with probability N²/2^2000.
        if 0 not in shares and len(set(shares)) == teachers:
            return shares


def _evaluate(coefficients: Sequence[mpz], index: int, order: mpz) -> mpz:
    value = mpz(0)
    for coefficient in reversed(coefficients):
        value = (value * index + coefficient) % order
    return value


def _random_square(modulus: mpz, randomness: RandomSource) -> mpz:
    """A random square; it generates all squares but for a chance of 2^-1000.

    A true square, never its negative: the sign of v^(d_i) would be the parity of d_i.
    """
    root = random_unit(modulus, randomness)
    return root * root % modulus
