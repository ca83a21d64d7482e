"""The reference: the paper's protocol exactly as it is written, with gmpy2.

Equation 1 with a full-length r and s = 1, one ciphertext a class, Equation 3 with N! in the
exponent, and the combination of Damgard-Jurik 2001 with one exponentiation a share. One class of
one label is run for real with every party's work, its sum is checked, and the cost is scaled by
the number of classes; packing is what comes after.
"""

import random
from dataclasses import dataclass

import gmpy2
from gmpy2 import mpz

from dppp.benchmarks.clock import time_once
from dppp.benchmarks.workload import Workload
from dppp.errors import DpppError
from dppp.paillier.arithmetic.lagrange import interpolate_with_factorial
from dppp.paillier.dealer import DealtKey
from dppp.paillier.encryption import Ciphertext, add
from dppp.paillier.randomness import random_unit, system_random
from dppp.paillier.structure import generator_logarithm

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


def run_paper(workload: Workload, key: DealtKey) -> PaperRun:
    """One class of one label, every party's work; raise if the sum is wrong. s is 1."""
    public, square = key.public, key.public.ciphertext_modulus
    entries = [mpz(entry) for entry in workload.draw_entries(_SEED)[:, 0].tolist()]

    def encrypt_all() -> list[Ciphertext]:
        roots = (random_unit(public.modulus, system_random) for _ in entries)
        return [
            Ciphertext(
                gmpy2.powmod(public.generator, entry, square)
                * gmpy2.powmod(root, public.modulus, square)
                % square
            )
            for entry, root in zip(entries, roots, strict=True)
        ]

    ciphertexts, encryption = time_once(encrypt_all)
    tally, tally_seconds = time_once(lambda: add(public, ciphertexts))
    subset = _subset(workload)
    factor = 2 * gmpy2.fac(workload.teachers)
    exponents = [factor * key.shares[index - 1].exponent for index in subset]
    shares, share_seconds = time_once(
        lambda: tuple(gmpy2.powmod(tally, exponent, square) for exponent in exponents)
    )
    total, combination = time_once(lambda: _combine(key, subset, shares))
    if total != sum(entries):
        raise DpppError("the reference's sum is wrong; do not trust this benchmark")
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


def _subset(workload: Workload) -> tuple[int, ...]:
    """The randomly chosen t teachers of Protocol 1."""
    indices = range(1, workload.teachers + 1)
    return tuple(sorted(random.Random(_SEED).sample(indices, workload.threshold)))  # noqa: S311


def _combine(key: DealtKey, subset: tuple[int, ...], shares: tuple[mpz, ...]) -> mpz:
    public, square = key.public, key.public.ciphertext_modulus
    weights = interpolate_with_factorial(subset, public.teachers)
    product = mpz(1)
    for share, coefficient in zip(shares, weights.coefficients, strict=True):
        product = product * gmpy2.powmod(share, 2 * coefficient, square) % square
    factor = 4 * weights.denominator * weights.denominator
    inverse = gmpy2.invert(factor, public.plaintext_modulus)
    return generator_logarithm(public, product) * inverse % public.plaintext_modulus
