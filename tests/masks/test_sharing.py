import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.masks.field import rank, rows_as_linear_maps, told, told_by, trusts
from tests.masks.streams import fixed_stream

from dppp.errors import EncodingError, InputError, PaddingFault, RowsError
from dppp.masks.gaussian import draw
from dppp.masks.parameters import FIELD, Parameters
from dppp.masks.sharing import (
    Sharing,
    add_rows,
    draw_elements,
    elements_from_bytes,
    elements_to_bytes,
)

TRUSTS = list(trusts(12))
SEVEN = Sharing(teachers=7, rows_needed=5, packed=2)


def parameters_of(trust: tuple[int, int, int]) -> Parameters:
    teachers, colluders, dropouts = trust
    return Parameters(
        teachers=teachers,
        colluders=colluders,
        dropouts=dropouts,
        degree=1024,
        modulus_bits=22,
        slot_bits=1,
        slots_per_coefficient=1,
    )


def sharing_of(ring: Parameters) -> Sharing:
    return Sharing(teachers=ring.teachers, rows_needed=ring.rows_needed, packed=ring.packed)


SHARINGS = sorted({sharing_of(parameters_of(trust)) for trust in TRUSTS}, key=repr)


def name_of(sharing: Sharing) -> str:
    return f"{sharing.teachers}-{sharing.rows_needed}-{sharing.packed}"


def large(teachers: int) -> Sharing:
    ring = parameters_of((teachers, teachers // 5, teachers // 10))
    return sharing_of(ring)


@pytest.mark.parametrize("sharing", SHARINGS, ids=name_of)
def test_any_rows_needed_give_the_secret(sharing: Sharing) -> None:
    secret = draw(2 * sharing.packed + 1, fixed_stream(1))
    rows = sharing.deal(secret, fixed_stream(2))
    for chosen in itertools.combinations(range(1, sharing.teachers + 1), sharing.rows_needed):
        found = sharing.combine(chosen, rows[np.array(chosen) - 1], len(secret))
        assert found.tolist() == secret.tolist()


@pytest.mark.parametrize("sharing", SHARINGS, ids=name_of)
def test_any_t_minus_one_rows_tell_nothing_and_one_more_tells_something(sharing: Sharing) -> None:
    """Whatever the secret, drawn rows reach every value of these rows exactly once."""
    secret_map, drawn_map = rows_as_linear_maps(sharing)
    for chosen in itertools.combinations(range(sharing.teachers), sharing.drawn_rows):
        assert rank(drawn_map[list(chosen)]) == sharing.drawn_rows
    one_more = list(range(sharing.drawn_rows + 1))
    assert told(secret_map[one_more], drawn_map[one_more]) == 1


def test_the_rows_that_tell_nothing_are_one_fewer_than_the_threshold() -> None:
    assert len(TRUSTS) > 100
    for trust in TRUSTS:
        ring = parameters_of(trust)
        assert sharing_of(ring).drawn_rows == ring.threshold - 1
        assert ring.colluders < ring.threshold <= ring.rows_needed <= ring.teachers - ring.dropouts


def half_lists_that_tell(trust: tuple[int, int, int], packed: int) -> int:
    """Honest teachers are split in two halves, each shown another list; how many lists tell?

    Each half's rows of one list's sum, and the colluders' rows of it, are in one hand. The lists
    have different dealers, so their sums are two dealt secrets.
    """
    teachers, colluders, _ = trust
    ring = parameters_of(trust)
    sharing = Sharing(teachers=teachers, rows_needed=ring.rows_needed, packed=packed)
    knowing = range(1, colluders + 1)
    honest = range(colluders + 1, teachers + 1)
    halves = honest[: len(honest) // 2], honest[len(honest) // 2 :]
    return sum(told_by(sharing, [*knowing, *half]) > 0 for half in halves)


def test_of_two_half_served_lists_at_most_one_tells() -> None:
    assert all(half_lists_that_tell(trust, parameters_of(trust).packed) <= 1 for trust in TRUSTS)


def test_packing_more_lets_both_half_served_lists_tell() -> None:
    """The control: 2·rows_needed - N - C values per polynomial, as one might think."""
    both = []
    for trust in TRUSTS:
        ring = parameters_of(trust)
        packed = 2 * ring.rows_needed - ring.teachers - ring.colluders
        if packed > ring.packed:
            both.append(half_lists_that_tell(trust, packed) == 2)
    assert len(both) > 20
    assert all(both)


@pytest.mark.parametrize("teachers", [20, 250, 1000])
def test_rows_of_many_dealers_add_up_to_rows_of_the_sum(teachers: int) -> None:
    sharing, stream = large(teachers), fixed_stream(5)
    secrets = [draw(1024, stream) for _ in range(30)]
    dealt = np.stack([sharing.deal(secret, stream) for secret in secrets])
    chosen = list(range(teachers, 0, -1))[: sharing.rows_needed]
    rows = np.stack([add_rows(dealt[:, index - 1]) for index in chosen])
    assert (sharing.combine(chosen, rows, 1024) == sum(secrets)).all()


def test_a_product_in_many_tiles_is_the_product() -> None:
    """Nothing is packed here, so rows are as long as the secret and columns are cut as well."""
    sharing, stream = Sharing(teachers=300, rows_needed=280, packed=1), fixed_stream(10)
    secret = draw(2048, stream)
    rows = sharing.deal(secret, stream)
    assert (sharing.combine(range(21, 301), rows[20:], 2048) == secret).all()


def test_sums_are_right_at_both_ends_of_the_field() -> None:
    secret = np.array([FIELD // 2, -(FIELD // 2), 0, 1, -1])
    rows = SEVEN.deal(secret, fixed_stream(6))
    assert SEVEN.combine([2, 3, 5, 6, 7], rows[[1, 2, 4, 5, 6]], 5).tolist() == secret.tolist()


def test_a_changed_row_changes_the_secret() -> None:
    rows = SEVEN.deal(np.arange(4), fixed_stream(7))[:5]
    rows[3, 1] = (int(rows[3, 1]) + 1) % FIELD
    assert SEVEN.combine([1, 2, 3, 4, 5], rows, 4)[2:].tolist() != [2, 3]


def test_a_secret_that_is_too_long_is_a_fault_with_a_name() -> None:
    rows = SEVEN.deal(np.arange(4), fixed_stream(8))[:5]
    with pytest.raises(PaddingFault, match="longer"):
        SEVEN.combine([1, 2, 3, 4, 5], rows, 3)


@pytest.mark.parametrize(
    "indices",
    [[0, 1, 2, 3, 4], [1, 2, 3, 4, 8], [1, 2, 3, 4, 4], [1, 2, 3, 4], [1, 2, 3, 4, 5, 6], [-1] * 5],
)
def test_indices_of_nobody_or_of_one_twice_are_refused(indices: list[int]) -> None:
    with pytest.raises(RowsError):
        SEVEN.combine(indices, np.zeros((len(indices), 2), dtype=np.uint16), 4)


@pytest.mark.parametrize(
    "rows",
    [
        np.zeros((4, 2), dtype=np.uint16),
        np.zeros((5, 3), dtype=np.uint16),
        np.full((5, 2), FIELD, dtype=np.uint16),
        np.zeros((5, 2), dtype=np.int64),
    ],
)
def test_rows_of_another_shape_or_outside_the_field_are_refused(rows: Any) -> None:
    with pytest.raises(InputError):
        SEVEN.combine([1, 2, 3, 4, 5], rows, 4)


@pytest.mark.parametrize(
    "secret",
    [np.array([FIELD // 2 + 1]), np.array([-(2**63)]), np.zeros(0, dtype=np.int64), np.ones(4)],
)
def test_secrets_that_the_field_does_not_hold_are_refused(secret: Any) -> None:
    with pytest.raises(InputError):
        SEVEN.deal(secret, fixed_stream(9))


def test_drawn_rows_that_are_wrong_are_refused() -> None:
    for drawn in (np.zeros((2, 2)), np.full((3, 2), FIELD)):
        with pytest.raises(InputError):
            SEVEN.deal_from(np.arange(4), drawn.astype(np.uint16))


@pytest.mark.parametrize(
    ("teachers", "rows_needed", "packed"), [(7, 8, 2), (7, 5, 6), (7, 5, 0), (65520, 3, 1)]
)
def test_a_sharing_that_cannot_work_is_refused(
    teachers: int, rows_needed: int, packed: int
) -> None:
    with pytest.raises(InputError):
        Sharing(teachers=teachers, rows_needed=rows_needed, packed=packed)


def test_drawn_elements_leave_out_what_is_not_below_the_prime() -> None:
    words = np.array([65521, 5, 65535, 65520, 1, 2, 3], dtype="<u2").tobytes()
    given_, asked = iter([words[:8], words[8:12]]), []

    def source(count: int) -> bytes:
        asked.append(count)
        return next(given_)

    assert draw_elements(4, source).tolist() == [5, 65520, 1, 2]
    assert asked == [8, 4]
    with pytest.raises(InputError, match="another number of bytes"):
        draw_elements(4, lambda count: bytes(count + 1))


@given(st.lists(st.integers(0, FIELD - 1), max_size=20))
def test_elements_come_back_from_their_bytes(values: list[int]) -> None:
    data = elements_to_bytes(np.array(values, dtype=np.uint16))
    assert data == b"".join(value.to_bytes(2, "little") for value in values)
    assert elements_from_bytes(data, len(values)).tolist() == values


@pytest.mark.parametrize("value", range(FIELD, 2**16))
def test_bytes_that_are_not_of_a_field_element_are_refused(value: int) -> None:
    with pytest.raises(EncodingError, match="not below"):
        elements_from_bytes(bytes(2) + value.to_bytes(2, "little"), 2)
    with pytest.raises(RowsError, match="not below"):
        elements_to_bytes(np.array([value], dtype=np.uint16))
    with pytest.raises(RowsError, match="not below"):
        add_rows(np.array([[0], [value]], dtype=np.uint16))


def test_bytes_of_another_length_are_refused() -> None:
    for length in (0, 3, 5):
        with pytest.raises(EncodingError, match="take 4 bytes"):
            elements_from_bytes(bytes(length), 2)
