"""Safe primes by a combined sieve: the dealer's first step.

A safe prime is p = 2p′ + 1 with p′ prime too. Candidates p′ = start + 6k in a window are crossed
out as soon as a small prime divides p′ or 2p′ + 1; those that are left (about one in a hundred
at 1024 bits) are tested. Sieving both at once is what makes this take a second.
"""

import functools

import gmpy2
import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from dppp.randomness import RandomSource, random_bits

_SMALL_PRIME_LIMIT = 1 << 22
_WINDOW = 1 << 17
_LIMB_BITS = 32
_ROUNDS = 30


def safe_prime(bits: int, randomness: RandomSource) -> mpz:
    """A random safe prime of exactly `bits` bits with its two top bits set."""
    while True:
        start = _random_start(bits - 1, randomness)
        for place in _survivors(start):
            half = start + 6 * int(place)
            if half.bit_length() == bits - 1 and _is_safe(half):
                return 2 * half + 1


def _random_start(bits: int, randomness: RandomSource) -> mpz:
    """A random integer of `bits` bits, two top bits set, that is 5 modulo 6.

    p′ must be odd, and 2 modulo 3 because otherwise 3 divides p′ or 2p′ + 1.
    """
    start = random_bits(bits, randomness) | (mpz(3) << (bits - 2))
    return start - start % 6 + 5


def _is_safe(half: mpz) -> bool:
    """Whether p′ = half and 2p′ + 1 are prime; Fermat's test first as nearly all fail it."""
    whole = 2 * half + 1
    if gmpy2.powmod(2, half - 1, half) != 1 or gmpy2.powmod(2, whole - 1, whole) != 1:
        return False
    return all(
        gmpy2.is_strong_bpsw_prp(prime) and gmpy2.is_prime(prime, _ROUNDS)
        for prime in (half, whole)
    )


def _survivors(start: mpz) -> NDArray[np.int64]:
    """The places k of a window where no small prime divides start + 6k or 2(start + 6k) + 1."""
    primes = _small_primes(min(_SMALL_PRIME_LIMIT, 1 << (start.bit_length() // 4)))
    residues = _residues(start, primes)
    sixths = _inverse_of_six(primes)
    alive = np.ones(_WINDOW, dtype=np.bool_)
    # start + 6k = 0, and start + 6k = -1/2 = (prime - 1)/2, modulo the prime.
    for target in (np.zeros_like(primes), (primes - 1) // 2):
        first = (target - residues) % primes * sixths % primes
        _cross_out(alive, first, primes)
    return np.flatnonzero(alive)


def _cross_out(
    alive: NDArray[np.bool_], first: NDArray[np.int64], primes: NDArray[np.int64]
) -> None:
    """Cross out first, first + prime, … for each prime; those above the window hit once at most."""
    dense = int(np.searchsorted(primes, _WINDOW))
    for place, prime in zip(first[:dense].tolist(), primes[:dense].tolist(), strict=True):
        alive[place::prime] = False
    sparse = first[dense:]
    alive[sparse[sparse < _WINDOW]] = False


def _residues(value: mpz, primes: NDArray[np.int64]) -> NDArray[np.int64]:
    """`value` modulo each prime, Horner's rule over its limbs."""
    length = -(-value.bit_length() // _LIMB_BITS)
    limbs = np.frombuffer(value.to_bytes(length * 4, "big"), dtype=">u4").astype(np.int64)
    residue = np.zeros_like(primes)
    for limb in limbs.tolist():
        residue = ((residue << _LIMB_BITS) + limb) % primes
    return residue


def _inverse_of_six(primes: NDArray[np.int64]) -> NDArray[np.int64]:
    """6⁻¹ modulo each prime p > 3: (p + 1)/6 or (5p + 1)/6."""
    return np.where(primes % 6 == 5, (primes + 1) // 6, (5 * primes + 1) // 6)


@functools.lru_cache(maxsize=2)
def _small_primes(limit: int) -> NDArray[np.int64]:
    """The primes from 5 up to the limit."""
    alive = np.ones(limit + 1, dtype=np.bool_)
    alive[:5] = False
    for divisor in range(2, int(limit**0.5) + 1):
        if divisor < 5 or alive[divisor]:
            alive[divisor * divisor :: divisor] = False
    return np.flatnonzero(alive).astype(np.int64)
