"""Exponentiation, interpolation and safe primes against the plain way of computing them."""

import math
import os
import threading
from fractions import Fraction

import gmpy2
import pytest
from gmpy2 import mpz
from hypothesis import given
from hypothesis import strategies as st

from dppp.errors import GroupElementError
from dppp.paillier.arithmetic import modexp
from dppp.paillier.arithmetic.groups import are_equal_up_to_sign, check_units
from dppp.paillier.arithmetic.lagrange import interpolate, interpolate_with_factorial
from dppp.paillier.arithmetic.modexp import (
    load_libcrypto,
    power_public,
    power_secret,
    power_secret_gmp,
)
from dppp.paillier.arithmetic.multiexp import multiply_powers
from dppp.paillier.arithmetic.parallel import map_over_cores
from dppp.paillier.arithmetic.primes import safe_prime

odd_moduli = st.integers(3, 1 << 600).map(lambda value: mpz(value | 1))
naturals = st.integers(0, 1 << 700).map(mpz)


@given(naturals, naturals, odd_moduli)
def test_both_constant_time_powers_equal_the_plain_one(
    base: mpz, exponent: mpz, modulus: mpz
) -> None:
    expected = pow(int(base), int(exponent), int(modulus))
    assert power_secret(base, exponent, modulus) == expected
    assert power_secret_gmp(base, exponent, modulus) == expected
    assert power_public(base, exponent, modulus) == expected


@given(naturals, st.integers(-(1 << 300), 1 << 300).map(mpz), st.sampled_from([600, 7000]))
def test_a_public_exponent_may_be_negative(base: mpz, exponent: mpz, bits: int) -> None:
    modulus = mpz(1 << bits) + 1
    if gmpy2.gcd(base, modulus) == 1:
        assert power_public(base, exponent, modulus) == pow(int(base), int(exponent), int(modulus))


def test_libcrypto_is_found_where_python_has_it() -> None:
    pytest.importorskip("ssl")
    assert load_libcrypto() is not None


def test_a_value_out_of_range_or_without_inverse_is_refused_by_its_position() -> None:
    modulus, bound = mpz(7 * 11), mpz(7 * 11) ** 2
    assert check_units([mpz(4), mpz(81), mpz(2)], modulus, bound, what="number") == (4, 4, 2)
    assert check_units([], modulus, bound, what="number") == ()
    for value in (mpz(-4), mpz(0), bound, bound + 4):
        with pytest.raises(GroupElementError, match="number 1 is out of range") as caught:
            check_units([mpz(4), value, mpz(0)], modulus, bound, what="number")
        assert caught.value.position == 1
    for value in map(mpz, (7, 11, 77, 7 * 77, 22)):
        with pytest.raises(GroupElementError, match="number 2 is not invertible") as caught:
            check_units([mpz(4), mpz(5), value], modulus, bound, what="number")
        assert caught.value.position == 2


def test_two_numbers_are_equal_up_to_sign_or_not() -> None:
    modulus = mpz(77)
    assert are_equal_up_to_sign(mpz(5), mpz(5 + 77), modulus)
    assert are_equal_up_to_sign(mpz(5), mpz(72), modulus)
    assert not are_equal_up_to_sign(mpz(5), mpz(6), modulus)
    # 34 is a root of 1 other than ±1: who knows one knows the factors.
    assert not are_equal_up_to_sign(mpz(34), mpz(1), modulus)


def test_an_even_modulus_is_refused_and_not_computed_with() -> None:
    with pytest.raises(ValueError, match="must be odd"):
        power_secret(mpz(3), mpz(5), mpz(100))


def test_without_libcrypto_gmp_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modexp, "load_libcrypto", lambda: None)
    assert power_secret(mpz(3), mpz(5), mpz(101)) == 41


def test_more_moduli_than_are_kept_still_give_right_powers() -> None:
    for _ in range(2):
        for modulus in range(101, 161, 2):
            assert power_secret(mpz(7), mpz(13), mpz(modulus)) == pow(7, 13, modulus)


def test_threads_do_not_disturb_each_other() -> None:
    modulus = mpz(2) ** 521 - 1
    expected = [pow(3, exponent, int(modulus)) for exponent in range(200, 260)]
    results: list[tuple[mpz, ...]] = []

    def work() -> None:
        results.append(
            map_over_cores(
                lambda exponent: power_secret(mpz(3), mpz(exponent), modulus), range(200, 260)
            )
        )

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [tuple(expected)] * 3


@given(st.lists(st.tuples(st.integers(1, 1 << 64), st.integers(-(1 << 200), 1 << 200)), max_size=9))
def test_pippenger_equals_one_power_after_another(pairs: list[tuple[int, int]]) -> None:
    modulus = mpz(2) ** 127 - 1
    expected = mpz(1)
    for base, exponent in pairs:
        expected = expected * gmpy2.powmod(base, exponent, modulus) % modulus
    bases, exponents = [mpz(base) for base, _ in pairs], [mpz(power) for _, power in pairs]
    assert multiply_powers(bases, exponents, modulus) == expected


@given(st.sets(st.integers(1, 60), min_size=1, max_size=12))
def test_interpolation_is_exact_and_its_denominator_the_smallest(indices: set[int]) -> None:
    subset = tuple(sorted(indices))
    weights = interpolate(subset)
    exact = [
        math.prod((Fraction(j, j - i) for j in subset if j != i), start=Fraction(1)) for i in subset
    ]
    denominator = int(weights.denominator)
    assert [Fraction(int(value), denominator) for value in weights.coefficients] == exact
    assert denominator == math.lcm(*(value.denominator for value in exact))
    factorial = interpolate_with_factorial(subset, 60)
    assert [Fraction(int(c), math.factorial(60)) for c in factorial.coefficients] == exact


@pytest.mark.parametrize("bits", [256, 512])
def test_a_safe_prime_is_prime_with_half_of_it_and_of_exact_length(bits: int) -> None:
    prime = safe_prime(bits, os.urandom)
    assert gmpy2.is_prime(prime)
    assert gmpy2.is_prime(prime // 2)
    assert prime >> (bits - 2) == 3
