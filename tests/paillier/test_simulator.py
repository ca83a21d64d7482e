"""Shoup's simulator: R and the colluders' shares of the key give every honest share, for any x.

So shares show nothing but R. Here the polynomial is known, and what the simulator computes is
compared with what the code sends (docs/protocol.md, section 7).
"""

import itertools
from fractions import Fraction
from typing import Any

import gmpy2
import pytest
from gmpy2 import mpz

from dppp.paillier.dealer import DealtKey, deal_from_primes
from dppp.paillier.decryption.shares import make_decryption_shares
from dppp.paillier.encryption import Ciphertext
from dppp.paillier.keys import Decryption

pytestmark = pytest.mark.attack

TEACHERS, THRESHOLD = 7, 4
# Each holds t - 1: the colluders and whoever was added to them.
COALITIONS = [(1, 2, 3), (5, 6, 7), (2, 4, 6), (1, 4, 7)]


def integer_weights(coalition: tuple[int, ...], index: int) -> dict[int, int]:
    """λ with N!·f(index) = λ_0·f(0) + Σ λ_j·f(j), j in the coalition: integers, as Shoup shows."""
    points = (0, *coalition)
    weights = {}
    for point in points:
        weight = Fraction(int(gmpy2.fac(TEACHERS)))
        for other in points:
            if other != point:
                weight *= Fraction(index - other, point - other)
        assert weight.denominator == 1
        weights[point] = weight.numerator
    return weights


def simulated_share(
    dealt: DealtKey, coalition: tuple[int, ...], index: int, root: mpz, residue: mpz
) -> mpz:
    """share_i = R^(2λ_0) · x^(2Σ λ_j·d_j): no d, no honest d_i."""
    modulus, weights = dealt.public.modulus, integer_weights(coalition, index)
    exponent = sum(2 * weights[each] * dealt.shares[each - 1].exponent for each in coalition)
    power = gmpy2.powmod(residue, exponent, modulus)
    return power * gmpy2.powmod(root, 2 * weights[0], modulus) % modulus


def roots_of_every_class(primes: tuple[mpz, mpz], modulus: mpz) -> dict[tuple[int, int], mpz]:
    """A root for each pair of Legendre symbols."""
    found: dict[tuple[int, int], mpz] = {}
    for value in range(2, 99):
        root = gmpy2.powmod(mpz(value), 12345, modulus)
        first, second = (gmpy2.legendre(root % prime, prime) for prime in primes)
        found.setdefault((first, second), root)
    assert len(found) == 4
    return found


@pytest.mark.parametrize("s", [1, 2, 3])
def test_the_simulator_makes_every_share_for_every_class_of_x(keys: Any, s: int) -> None:
    dealt = keys.dealt(s)
    public = dealt.public
    for root in roots_of_every_class(keys.short_primes, public.modulus).values():
        residue = gmpy2.powmod(root, public.plaintext_modulus, public.modulus)
        for coalition, share in itertools.product(COALITIONS, dealt.shares):
            real = make_decryption_shares(public, share, [Ciphertext(residue)]).elements[0]
            assert simulated_share(dealt, coalition, share.index, root, residue) == real


@pytest.mark.parametrize("s", [1, 2, 3])
def test_smaller_coalitions_are_filled_up_at_will(keys: Any, s: int) -> None:
    """Whoever is added to one or two colluders, the simulated shares of the rest are the same."""
    dealt = keys.dealt(s)
    public = dealt.public
    root = mpz(12345)
    residue = gmpy2.powmod(root, public.plaintext_modulus, public.modulus)
    for colluders in ((4,), (2, 6)):
        others = [i for i in range(1, TEACHERS + 1) if i not in colluders]
        for added in itertools.combinations(others, THRESHOLD - 1 - len(colluders)):
            coalition = tuple(sorted((*colluders, *added)))
            for index in set(others) - set(added):
                real = make_decryption_shares(
                    public, dealt.shares[index - 1], [Ciphertext(residue)]
                ).elements[0]
                assert simulated_share(dealt, coalition, index, root, residue) == real


@pytest.mark.parametrize("s", [1, 2, 3])
def test_the_simulator_makes_the_verification_keys(keys: Any, seeded: Any, s: int) -> None:
    """With v = u^(Δ·n^s) for a square u: v_i = u^(λ_0 + n^s·Σ λ_j·d_j)."""
    dealt = deal_from_primes(
        keys.short_primes,
        teachers=TEACHERS,
        threshold=THRESHOLD,
        s=s,
        decryption=Decryption.ROOT,
        randomness=seeded(f"simulator {s}"),
        insecure_testing=True,
    )
    modulus, power = dealt.public.modulus, dealt.public.plaintext_modulus
    base = mpz(99) ** 2
    verification_base = gmpy2.powmod(base, gmpy2.fac(TEACHERS) * power, modulus)
    for coalition, share in itertools.product(COALITIONS, dealt.shares):
        weights = integer_weights(coalition, share.index)
        known = sum(weights[each] * dealt.shares[each - 1].exponent for each in coalition)
        simulated = gmpy2.powmod(base, weights[0] + power * known, modulus)
        assert simulated == gmpy2.powmod(verification_base, share.exponent, modulus)


def test_without_the_factorial_the_simulator_would_need_a_root_that_it_does_not_have() -> None:
    """The weights of f(i) itself are fractions: shares x^(2·d_i) cannot be simulated this way."""
    weights = integer_weights((2, 4, 6), 1)
    assert any(weight % int(gmpy2.fac(TEACHERS)) for weight in weights.values())
