"""Products in Z_q[X]/(X^n + 1), q = 2^modulus_bits: public polynomials times a short secret.

A teacher multiplies its secret with the public polynomial of every block; whoever opens or checks
a batch does the same with the sum of the secrets. Elements are arrays of uint64 below q, short
polynomials arrays of int64. The products are exact, though they go by floating-point transforms:
`multiply` cuts the public polynomial into pieces so short that rounding is proved to be right.

**The transform.** With m = n/2, the folded vector (a_j + i·a_(j+m))·exp(iπj/n) for j < m has as its
DFT of length m the values of the polynomial at those m roots of X^n + 1 where X^m = i. The others
are their conjugates, so products of these m values are all of the product.

**The bound.** Let u = 2^-53 and L = log2 m. Each of the L levels of a fast transform of length 2^L
has at most one addition and one rotation, so its relative error in the 2-norm is at most
η = μ + γ4·(√2 + μ) < 8u, with weights right to μ ≤ 2u (Higham 2002, theorem 24.2; a butterfly of
radix 4 or 8 is two or three such levels with fewer rotations). The twist exp(iπj/n), right to 8u,
and its product, right to 3u, add less than 12u. So one transform is right to ε = (8L + 12)·u.
Let A, S be the exact transforms of a piece a and of s: ‖A‖ = √m·‖a‖, ‖S‖ = √m·‖s‖ in the 2-norm.
What is wrong with their computed pointwise product is at most (2ε + 3u)·‖A‖·‖S‖ in the 1-norm
(Cauchy-Schwarz), and the inverse transform makes of it at most a 1/m part of that in every
coefficient: (2ε + 3u)·‖a‖·‖s‖. The inverse transform's own error is at most ε times the 2-norm of
its result, which is at most ‖a‖·max|S|. Together, with one part in a hundred for products of
errors, no coefficient is off by more than

    1.01·‖a‖·((2ε + 3u)·‖s‖ + ε·max|S|),

where ‖a‖ ≤ 2^(w-1)·√n for pieces of w bits with a sign. `multiply` takes the fewest pieces with
which this is below 0.45. Then ‖a‖·‖s‖, which no coefficient of the product exceeds, is far below
2^53, so the nearest integer is the coefficient.
"""

import functools
import hashlib
import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dppp.errors import InputError
from dppp.masks.packing import LARGEST_BITS, unpack_bits

Words = NDArray[np.uint64]
Integers = NDArray[np.int64]

LARGEST_ROUNDING = 0.45
_UNIT = 2.0**-53
_PUBLIC_DOMAIN = b"dppp masks public polynomial 1"
_LARGEST_SHORT = 2**20
_LARGEST_DEGREE = 2**16
_COEFFICIENTS_AT_ONCE = 12 * 1024


def public_polynomial(seed: bytes, block: int, *, degree: int, modulus_bits: int) -> Words:
    """The public polynomial of one block."""
    blocks = range(block, block + 1)
    return public_polynomials(seed, blocks, degree=degree, modulus_bits=modulus_bits).reshape(-1)


def public_polynomials(seed: bytes, blocks: range, *, degree: int, modulus_bits: int) -> Words:
    """The public polynomials of these blocks, one per row: every party makes them from the seed.

    They are uniform modulo q: SHAKE-128 of the domain, the seed, degree, modulus_bits and block,
    each after its length. The coefficients follow each other in its output without a gap, as in
    `packing.pack_bits`.
    """
    _require_degree(degree)
    start = _prefixed(_PUBLIC_DOMAIN, seed, degree.to_bytes(8), modulus_bits.to_bytes(8))
    length = degree * modulus_bits // 8
    drawn = [
        hashlib.shake_128(start + _prefixed(block.to_bytes(8))).digest(length) for block in blocks
    ]
    return unpack_bits(b"".join(drawn), modulus_bits).reshape(len(blocks), degree)


@dataclass(frozen=True, slots=True, eq=False)
class ShortPolynomial:
    """A short polynomial with its transform, to be multiplied many times. It may be a secret."""

    coefficients: Integers = field(repr=False)
    _transform: NDArray[np.complex128] = field(init=False, repr=False)
    _error_per_norm: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        short = self.coefficients
        if short.dtype != np.int64 or short.ndim != 1:
            raise InputError("a short polynomial is one row of int64")
        _require_degree(len(short))
        if short.max() > _LARGEST_SHORT or short.min() < -_LARGEST_SHORT:
            raise InputError(f"a coefficient of a short polynomial is past {_LARGEST_SHORT}")
        object.__setattr__(self, "_transform", _transformed(short))
        object.__setattr__(self, "_error_per_norm", self._measure())

    @property
    def degree(self) -> int:
        """The ring's n."""
        return len(self.coefficients)

    def _measure(self) -> float:
        """The bound of the module's docstring, without ‖a‖."""
        one = (8 * math.log2(self.degree // 2) + 12) * _UNIT
        norm = math.sqrt(int(np.dot(self.coefficients, self.coefficients)))
        peak = float(np.abs(self._transform).max())
        # The peak is computed, not exact: it may be too small by the error of one transform.
        peak += one * norm * math.sqrt(self.degree)
        return 1.01 * ((2 * one + 3 * _UNIT) * norm + one * peak)

    def rounding_bound(self, piece_bits: int) -> float:
        """How far from an integer a coefficient can be when pieces have this many bits."""
        return 2.0 ** (piece_bits - 1) * math.sqrt(self.degree) * self._error_per_norm

    def pieces_for(self, modulus_bits: int) -> int:
        """The fewest pieces whose products round to the right integers."""
        for pieces in range(1, modulus_bits + 1):
            if self.rounding_bound(-(-modulus_bits // pieces)) < LARGEST_ROUNDING:
                return pieces
        raise InputError("the short polynomial is too long for an exact product")


def multiply(public: Words, short: ShortPolynomial, *, modulus_bits: int) -> Words:
    """The exact products of public polynomials, one per row, with one short polynomial."""
    if public.dtype != np.uint64 or public.shape[-1:] != (short.degree,):
        raise InputError(f"public polynomials are rows of {short.degree} uint64")
    if not 1 <= modulus_bits <= LARGEST_BITS:
        raise InputError(f"a modulus has 1 to {LARGEST_BITS} bits, got {modulus_bits}")
    pieces = short.pieces_for(modulus_bits)
    rows = public.reshape(-1, short.degree)
    products = np.empty_like(rows)
    # Twice as fast as all at once: arrays of less than 128 kB are not mapped anew for each use.
    step = max(1, _COEFFICIENTS_AT_ONCE // short.degree)
    for first in range(0, len(rows), step):
        some = slice(first, first + step)
        products[some] = _multiply_rows(rows[some], short._transform, modulus_bits, pieces)
    return products.reshape(public.shape)


def _multiply_rows(
    rows: Words, transform: NDArray[np.complex128], modulus_bits: int, pieces: int
) -> Words:
    piece_bits = -(-modulus_bits // pieces)
    total = np.zeros_like(rows)
    for number, piece in enumerate(_cut(rows, modulus_bits, pieces)):
        total += _rounded(_transformed(piece) * transform) << np.uint64(number * piece_bits)
    return reduce(total, modulus_bits)


def reduce(elements: Words | Integers, modulus_bits: int) -> Words:
    """Modulo q; integers may be negative, and sums may have gone round 2^64, which q divides."""
    return elements.view(np.uint64) & np.uint64((1 << modulus_bits) - 1)


def centre(elements: Words, modulus_bits: int) -> Integers:
    """The representatives modulo q in [-q/2, q/2)."""
    shift = 64 - modulus_bits
    return (elements << np.uint64(shift)).view(np.int64) >> shift


def _cut(public: Words, modulus_bits: int, pieces: int) -> list[Integers]:
    """Digits with a sign, lowest first, that add up to the polynomial modulo q."""
    bits = -(-modulus_bits // pieces)
    rest = centre(public, modulus_bits)
    digits = []
    for _ in range(pieces - 1):
        digit = centre(rest.view(np.uint64), bits)
        # The digit is below half of 2^bits, so what is left is divisible.
        rest = (rest - digit) >> bits
        digits.append(digit)
    return [*digits, rest]


def _transformed(polynomials: Integers) -> NDArray[np.complex128]:
    half = polynomials.shape[-1] // 2
    folded = np.empty((*polynomials.shape[:-1], half), dtype=np.complex128)
    folded.real = polynomials[..., :half]
    folded.imag = polynomials[..., half:]
    folded *= _twist(half)
    return np.fft.fft(folded)


def _rounded(transform: NDArray[np.complex128]) -> Words:
    """Back from a transform: the nearest integers, modulo 2^64."""
    half = transform.shape[-1]
    folded = np.fft.ifft(transform)
    folded *= _twist(half).conj()
    result = np.empty((*transform.shape[:-1], 2 * half), dtype=np.int64)
    result[..., :half] = np.rint(folded.real)
    result[..., half:] = np.rint(folded.imag)
    return result.view(np.uint64)


@functools.lru_cache(maxsize=8)
def _twist(half: int) -> NDArray[np.complex128]:
    twist: NDArray[np.complex128] = np.exp(1j * np.pi * np.arange(half) / (2 * half))
    twist.flags.writeable = False
    return twist


def _prefixed(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(8) + part for part in parts)


def _require_degree(degree: int) -> None:
    if not 8 <= degree <= _LARGEST_DEGREE or degree & (degree - 1):
        raise InputError(f"the degree must be a power of two from 8 to 2^16, got {degree}")
