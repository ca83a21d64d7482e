"""The paper's protocol exactly as it is written, with gmpy2: what our costs are compared with.

Equation 1 with a full-length r and s = 1, one ciphertext per class, Equation 3 with N! in the
exponent, and the combination of Damgard-Jurik 2001 with one exponentiation per share. There are no
proofs. One class of one label is run with every party's work, and its sum is checked. Callers
multiply by the number of classes. Used by `dppp reproduce overhead` and `dppp bench`.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import gmpy2
from gmpy2 import mpz

from dppp.errors import DpppError
from dppp.experiments.costs.processor_time import time_once
from dppp.paillier.arithmetic.lagrange import interpolate_with_factorial
from dppp.paillier.dealer import DealtKey
from dppp.paillier.encryption import Ciphertext, add
from dppp.paillier.keys import PublicKey
from dppp.paillier.structure import generator_logarithm
from dppp.randomness import random_unit, system_randomness

_SEED = 20211


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperCosts:
    """Processor seconds of all parties for one ciphertext, by part."""

    encryption: float
    tally: float
    shares: float
    combination: float

    @property
    def everyone(self) -> float:
        """All parties."""
        return self.encryption + self.tally + self.shares + self.combination


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperRun:
    """The costs with the tally, its shares and its sum, for the steps that build on them."""

    costs: PaperCosts
    tally: Ciphertext
    subset: tuple[int, ...]
    shares: tuple[mpz, ...]
    total: mpz


def run_paper(key: DealtKey, entries: Sequence[int]) -> PaperRun:
    """One entry per teacher from encryption to the sum; raise if the sum is wrong.

    The key is a `paper` key with s = 1.
    """
    public = key.public
    ciphertexts, encryption = time_once(lambda: [_encrypt(public, entry) for entry in entries])
    tally, tally_seconds = time_once(lambda: add(public, ciphertexts))
    subset = _draw_subset(public)
    exponents = [2 * public.factorial * key.shares[index - 1].exponent for index in subset]
    shares, share_seconds = time_once(
        lambda: tuple(
            gmpy2.powmod(tally, exponent, public.ciphertext_modulus) for exponent in exponents
        )
    )
    total, combination = time_once(lambda: _combine(public, subset, shares))
    if total != sum(entries):
        raise DpppError("the sum by the paper's protocol is wrong; do not trust these times")
    return PaperRun(
        costs=PaperCosts(
            encryption=encryption,
            tally=tally_seconds,
            shares=share_seconds,
            combination=combination,
        ),
        tally=tally,
        subset=subset,
        shares=shares,
        total=total,
    )


def _encrypt(public: PublicKey, entry: int) -> Ciphertext:
    """Equation 1."""
    square = public.ciphertext_modulus
    root = random_unit(public.modulus, system_randomness)
    blinding = gmpy2.powmod(root, public.modulus, square)
    return Ciphertext(gmpy2.powmod(public.generator, entry, square) * blinding % square)


def _draw_subset(public: PublicKey) -> tuple[int, ...]:
    """The randomly chosen t teachers of Protocol 1."""
    indices = range(1, public.teachers + 1)
    return tuple(sorted(random.Random(_SEED).sample(indices, public.threshold)))  # noqa: S311


def _combine(public: PublicKey, subset: tuple[int, ...], shares: tuple[mpz, ...]) -> mpz:
    square = public.ciphertext_modulus
    weights = interpolate_with_factorial(subset, public.teachers)
    product = mpz(1)
    for share, coefficient in zip(shares, weights.coefficients, strict=True):
        product = product * gmpy2.powmod(share, 2 * coefficient, square) % square
    factor = 4 * weights.denominator * weights.denominator
    inverse = gmpy2.invert(factor, public.plaintext_modulus)
    return generator_logarithm(public, product) * inverse % public.plaintext_modulus
