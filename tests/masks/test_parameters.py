import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dppp.errors import InputError, MaskParametersError
from dppp.masks.parameters import DEGREES, Parameters, choose_parameters, security_bits

TWENTY: dict[str, Any] = {
    "teachers": 20,
    "colluders": 4,
    "dropouts": 2,
    "degree": 1024,
    "modulus_bits": 26,
    "slot_bits": 16,
    "slots_per_coefficient": 1,
}


ALL_HONEST = {
    **TWENTY,
    "colluders": 0,
    "dropouts": 0,
    "degree": 2048,
    "slot_bits": 1,
    "modulus_bits": 30,
}


def trust(teachers: int) -> dict[str, int]:
    return {
        "teachers": teachers,
        "colluders": max(1, teachers // 5),
        "dropouts": teachers // 10,
    }


def widest(teachers: int, degree: int) -> int:
    """The largest modulus that is accepted."""
    return max(_accepted(teachers, degree))


def _accepted(teachers: int, degree: int) -> Iterator[int]:
    for bits in range(20, 64):
        try:
            yield Parameters(
                **trust(teachers),
                degree=degree,
                modulus_bits=bits,
                slot_bits=1,
                slots_per_coefficient=1,
            ).modulus_bits
        except MaskParametersError:
            continue


@pytest.mark.parametrize(
    ("teachers", "rows_needed", "packed", "scale_bits", "loss_bits"),
    [(20, 14, 2, 10, 13), (100, 70, 10, 11, 20), (250, 175, 25, 11, 24), (1000, 700, 100, 12, 30)],
)
def test_numbers_follow_from_the_teachers(
    teachers: int, rows_needed: int, packed: int, scale_bits: int, loss_bits: int
) -> None:
    ring = choose_parameters(**trust(teachers), largest_sum=1000, counts=10)
    assert (ring.rows_needed, ring.packed) == (rows_needed, packed)
    assert (ring.scale_bits, ring.loss_bits) == (scale_bits, loss_bits)
    assert ring.security_after_loss == ring.security_bits - loss_bits >= 128


@given(st.integers(2, 5000))
def test_half_the_scale_is_ten_deviations_and_not_twice_as_many(teachers: int) -> None:
    ring = Parameters(**{**ALL_HONEST, "teachers": teachers})
    ten_deviations = 10 * 6.4 * math.sqrt(teachers)
    assert 2 ** (ring.scale_bits - 2) < ten_deviations <= 2 ** (ring.scale_bits - 1)


@given(st.integers(2, 5000))
def test_loss_is_the_cube_of_the_teachers_rounded_up(teachers: int) -> None:
    ring = Parameters(**{**ALL_HONEST, "teachers": teachers})
    assert 2 ** (ring.loss_bits - 1) < teachers**3 <= 2**ring.loss_bits


@pytest.mark.parametrize(
    ("teachers", "small", "large"), [(20, 26, 50), (100, 25, 47), (250, 24, 47), (1000, 22, 43)]
)
def test_the_widest_modulus_keeps_128_bits_after_the_loss(
    teachers: int, small: int, large: int
) -> None:
    assert (widest(teachers, 1024), widest(teachers, 2048)) == (small, large)


def test_a_modulus_between_two_of_the_table_counts_as_the_larger() -> None:
    assert security_bits(1024, 23) == security_bits(1024, 24) == 157
    assert security_bits(2048, 44) == security_bits(2048, 47) == 154
    assert security_bits(2048, 30) == security_bits(2048, 42) == 175


@pytest.mark.parametrize(("degree", "bits"), [(1024, 29), (2048, 55), (2048, 56)])
def test_a_modulus_past_the_table_is_refused(degree: int, bits: int) -> None:
    with pytest.raises(MaskParametersError, match="at most"):
        security_bits(degree, bits)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"modulus_bits": 25}, "take a modulus of 26 bits"),
        ({"modulus_bits": 27}, "138 - 13 = 125 bits"),
        ({"degree": 512}, "must be one of"),
        ({"degree": True}, "degree must be a whole number"),
        ({"slot_bits": 0}, "slot_bits must be a whole number"),
        ({"slots_per_coefficient": 0}, "slots_per_coefficient must"),
        ({"teachers": 1}, "teachers must be a whole number from 2"),
        ({"colluders": -1}, "colluders must"),
        ({"dropouts": 1.0}, "dropouts must"),
        ({"colluders": 17}, "at least 2 honest"),
        ({"dropouts": 8}, "lower dropouts to 7, or have at least 21 teachers"),
        ({"teachers": 40_000}, "at most"),
    ],
)
def test_what_hides_too_little_or_has_no_room_is_refused(change: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        Parameters(**{**TWENTY, **change})


@pytest.mark.parametrize(
    ("teachers", "modulus_bits"), [(2, 12), (20, 16), (100, 18), (250, 19), (1000, 21)]
)
def test_a_modulus_with_which_another_sum_may_fit_is_refused_also_if_it_hides_well(
    teachers: int, modulus_bits: int
) -> None:
    found = {**ALL_HONEST, "teachers": teachers, "degree": 1024}
    assert modulus_bits < math.log2(3918 * teachers) + 64 / 1024 < modulus_bits + 1
    with pytest.raises(MaskParametersError, match="another sum"):
        Parameters(**{**found, "modulus_bits": modulus_bits})
    assert Parameters(**{**found, "modulus_bits": modulus_bits + 1}).security_after_loss > 128


def test_slots_are_as_narrow_as_the_largest_sum_but_not_narrower_than_eleven_bits() -> None:
    for largest_sum, bits in ((1, 11), (255, 11), (2048, 12), (65535, 16)):
        ring = choose_parameters(**trust(20), largest_sum=largest_sum, counts=100)
        assert ring.slot_bits == bits
        assert ring.modulus_bits == ring.scale_bits + ring.slots_per_coefficient * bits


def test_few_counts_take_the_small_ring_and_many_the_large() -> None:
    few = choose_parameters(**trust(20), largest_sum=65535, counts=10)
    many = choose_parameters(**trust(20), largest_sum=65535, counts=10**6)
    assert (few.degree, many.degree) == (1024, 2048)
    assert many.slots_per_coefficient == 2


def test_sums_too_wide_for_the_small_ring_take_the_large_one() -> None:
    ring = choose_parameters(**trust(1000), largest_sum=2**20 - 1, counts=10)
    assert (ring.degree, ring.slots_per_coefficient) == (2048, 1)


def test_sums_too_wide_for_every_ring_are_refused_with_what_to_do() -> None:
    with pytest.raises(MaskParametersError, match="narrow the noise"):
        choose_parameters(**trust(1000), largest_sum=2**32, counts=10)
    with pytest.raises(MaskParametersError, match="largest_sum"):
        choose_parameters(**trust(20), largest_sum=0, counts=10)
    with pytest.raises(MaskParametersError, match="counts"):
        choose_parameters(**trust(20), largest_sum=10, counts=0)


@given(st.integers(11, 16), st.integers(1, 10**6), st.sampled_from([4, 20, 100, 250]))
def test_no_other_ring_takes_fewer_bytes(slot_bits: int, counts: int, teachers: int) -> None:
    chosen = choose_parameters(**trust(teachers), largest_sum=2**slot_bits - 1, counts=counts)
    for degree in DEGREES:
        for slots in range(1, 44 // slot_bits + 1):
            try:
                other = Parameters(
                    **trust(teachers),
                    degree=degree,
                    modulus_bits=chosen.scale_bits + slots * slot_bits,
                    slot_bits=slot_bits,
                    slots_per_coefficient=slots,
                )
            except MaskParametersError:
                continue
            assert chosen.bytes_for(counts) <= other.bytes_for(counts)


def test_blocks_are_counted_up() -> None:
    ring = Parameters(**TWENTY)
    assert [ring.blocks_for(counts) for counts in (1, 1024, 1025, 50_000)] == [1, 1, 2, 49]
    assert ring.bytes_for(50_000) == 50 * 3328 + 2 * 20 * 512
