"""Many powers multiplied together: Pippenger's buckets.

A product of k powers with exponents of b bits costs about b·(k + 2^w)/w multiplications with
windows of w bits, instead of 1.2·b·k for one power after another.
"""

from collections.abc import Sequence

import gmpy2
from gmpy2 import mpz


def multiply_powers(bases: Sequence[mpz], exponents: Sequence[mpz], modulus: mpz) -> mpz:
    """The product of bases[i]^exponents[i]; exponents are public and may be negative.

    The base of a negative exponent is inverted first; one that has no inverse is a
    ``ZeroDivisionError``, which callers rule out by checking group elements when they read them.
    """
    positive = [
        base if exponent >= 0 else gmpy2.invert(base, modulus)
        for base, exponent in zip(bases, exponents, strict=True)
    ]
    magnitudes = [abs(exponent) for exponent in exponents]
    bits = max((exponent.bit_length() for exponent in magnitudes), default=0)
    window = _best_window(len(positive), bits)
    result = mpz(1)
    for shift in range((bits - 1) // window * window, -1, -window):
        for _ in range(window):
            result = result * result % modulus
        result = result * _window_product(positive, magnitudes, shift, window, modulus) % modulus
    return result


def _best_window(count: int, bits: int) -> int:
    def multiplications(window: int) -> int:
        return -(-bits // window) * (count + (2 << window))

    return min(range(1, 17), key=multiplications)


def _window_product(
    bases: Sequence[mpz], exponents: Sequence[mpz], shift: int, window: int, modulus: mpz
) -> mpz:
    """The product of bases[i]^digit[i] for the digits of one window."""
    mask = (1 << window) - 1
    buckets: list[mpz | None] = [None] * (mask + 1)
    for base, exponent in zip(bases, exponents, strict=True):
        digit = int((exponent >> shift) & mask)
        if digit:
            held = buckets[digit]
            buckets[digit] = base if held is None else held * base % modulus
    return _weigh(buckets, modulus)


def _weigh(buckets: Sequence[mpz | None], modulus: mpz) -> mpz:
    """The product of buckets[d]^d by running products from the top."""
    running: mpz | None = None
    total: mpz | None = None
    for digit in range(len(buckets) - 1, 0, -1):
        held = buckets[digit]
        if held is not None:
            running = held if running is None else running * held % modulus
        if running is not None:
            total = running if total is None else total * running % modulus
    return mpz(1) if total is None else total
