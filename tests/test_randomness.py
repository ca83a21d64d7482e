"""The one source of random bytes, and integers drawn from it."""

import math

from gmpy2 import mpz

from dppp.randomness import expand_key, random_below, random_bits, random_unit, system_randomness


def test_system_randomness_never_repeats() -> None:
    assert system_randomness(32) != system_randomness(32)


def test_a_key_is_expanded_with_aes_in_counter_mode() -> None:
    assert expand_key(bytes(32), 8).hex() == "dc95c078a2408989"  # AES-256 of zeros


def test_random_integers_stay_below_their_bounds() -> None:
    assert {int(random_below(mpz(5), system_randomness)) for _ in range(300)} == set(range(5))
    assert {int(random_bits(3, system_randomness)) for _ in range(600)} == set(range(8))


def test_random_units_have_an_inverse() -> None:
    drawn = {int(random_unit(mpz(15), system_randomness)) for _ in range(600)}
    assert drawn == {each for each in range(15) if math.gcd(each, 15) == 1}
