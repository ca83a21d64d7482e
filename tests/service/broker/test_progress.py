"""What a teacher says it has of a message; anything else that comes is nothing."""

import pytest

from dppp.service.broker.progress import Holding, read_presence, write_presence

HELD = {bytes([number]) * 16: list(Holding)[number % 2] for number in range(5)}


@pytest.mark.parametrize("is_new", [False, True])
def test_what_is_written_is_read(is_new: bool) -> None:
    assert read_presence(write_presence(HELD.items(), is_new=is_new)) == (is_new, HELD)


def test_a_plain_sign_of_life_says_nothing_more() -> None:
    assert read_presence(b"") == (False, {})
    assert write_presence([], is_new=False) == b""


@pytest.mark.parametrize("data", [b"x" * 17, b"s", b"s" * 9_999_999], ids=["kind", "short", "long"])
def test_what_is_nothing_is_left_out(data: bytes) -> None:
    is_new, held = read_presence(data)
    assert not is_new
    assert len(held) <= 65


def test_a_teacher_with_much_to_do_says_no_more_than_can_be_read() -> None:
    many = [(number.to_bytes(16, "big"), Holding.ALL) for number in range(1_000)]
    is_new, held = read_presence(write_presence(many, is_new=True))
    assert is_new
    assert len(held) == 64
