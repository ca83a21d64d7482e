"""Blindings: the random n^s-th powers that hide a plaintext, made ahead of time.

The short way (Damgard-Jurik-Nielsen) is h^x raised to n^s, with h public and x of half the
modulus' bits. h^(n^s) is fixed, so its powers come from a table with one multiplication for each
window of x, and entries split into residue and logarithm keep these multiplications short. The
full-length way, r^(n^s) with r uniform (paper, Eq. 1), is here for comparison and for those who
would rather not assume that short exponents hide. Run by teachers.

The table is read at places that depend on x, which a neighbour on the same processor might see.
Every x is used once and is made in the background, away from the vote.
"""

import sys
from dataclasses import dataclass

import gmpy2
from gmpy2 import mpz

from dppp.errors import InputError
from dppp.paillier.keys import PublicKey
from dppp.paillier.structure import lift_root, split_element
from dppp.randomness import RandomSource, random_bits, random_unit, system_randomness

# A wider window saves less than it takes to make: a table of this size takes about a second.
TABLE_BYTES_LIMIT = 20_000_000
_WIDEST_WINDOW_BITS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Blinding:
    """A secret root · h^exponent modulo n and its n^s-th power, factor · (1 + n)^shift.

    Use it once.
    """

    exponent: mpz
    root: mpz
    factor: mpz
    shift: mpz

    def __repr__(self) -> str:
        return "Blinding(<redacted>)"


def full_blinding(public: PublicKey, randomness: RandomSource = system_randomness) -> Blinding:
    """A blinding with a uniform root of full length."""
    root = random_unit(public.modulus, randomness)
    return Blinding(exponent=mpz(0), root=root, factor=lift_root(public, root), shift=mpz(0))


# Residues and logarithms of base, base², …: what `split_element` makes of them.
_Row = tuple[tuple[mpz, ...], tuple[mpz, ...]]


class BlindingTable:
    """Powers of h^(n^s), for short blindings. Made once for a key; safe to share by threads."""

    def __init__(self, public: PublicKey, *, bytes_limit: int = TABLE_BYTES_LIMIT) -> None:
        self.public = public
        self.exponent_bits = public.modulus_bits // 2
        self.window_bits = _widest_window(public, self.exponent_bits, bytes_limit)
        self._rows = self._make_rows()

    @property
    def table_bytes(self) -> int:
        """The memory that the table takes."""
        return sum(
            sys.getsizeof(half) + sum(sys.getsizeof(entry) for entry in half)
            for row in self._rows
            for half in row
        )

    def draw(self, randomness: RandomSource = system_randomness) -> Blinding:
        """A new short blinding."""
        return self.blinding(random_bits(self.exponent_bits, randomness))

    def blinding(self, exponent: mpz) -> Blinding:
        """h^(n^s · exponent): one entry from each row, docs/protocol.md, equation 4."""
        digits = gmpy2.unpack(exponent, self.window_bits)
        chosen = [
            (residues[digit - 1], logarithms[digit - 1])
            for digit, (residues, logarithms) in zip(digits, self._rows, strict=False)
            if digit
        ]
        factor = _multiply([residue for residue, _ in chosen], self.public.ciphertext_modulus)
        shift = sum((logarithm for _, logarithm in chosen), start=mpz(0))
        return Blinding(exponent=exponent, root=mpz(1), factor=factor, shift=shift)

    def _make_rows(self) -> tuple[_Row, ...]:
        modulus = self.public.ciphertext_modulus
        base = lift_root(self.public, self.public.blinding_base)
        rows = []
        for _ in range(-(-self.exponent_bits // self.window_bits)):
            powers = [base]
            for _ in range((1 << self.window_bits) - 1):
                powers.append(powers[-1] * base % modulus)
            base = powers.pop()
            split = (split_element(self.public, power) for power in powers)
            residues, logarithms = zip(*split, strict=True)
            rows.append((residues, logarithms))
        return tuple(rows)


def _multiply(residues: list[mpz], modulus: mpz) -> mpz:
    """The product, two residues at a time: fewer reductions, and still short factors."""
    product = residues[-1] if len(residues) % 2 else mpz(1)
    for first, second in zip(residues[::2], residues[1::2], strict=False):
        product = product * (first * second) % modulus
    return product


def _widest_window(public: PublicKey, exponent_bits: int, bytes_limit: int) -> int:
    """The widest window whose table stays within the limit."""
    sample = split_element(public, public.ciphertext_modulus - 2)
    entry_bytes = sum(sys.getsizeof(part) + 8 for part in sample)
    for window in range(_WIDEST_WINDOW_BITS, 0, -1):
        rows = -(-exponent_bits // window)
        if rows * (((1 << window) - 1) * entry_bytes + 128) <= bytes_limit:
            return window
    raise InputError(f"no table of blindings fits in {bytes_limit} bytes", hint="allow more")
