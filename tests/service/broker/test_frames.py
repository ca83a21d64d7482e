"""Messages in pieces: whatever a broker does to them, a message comes whole or not at all."""

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dppp.errors import WireError
from dppp.service.broker import frames
from dppp.service.broker.frames import Reassembly, read_frame, split_message

PIECE = 16


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that short messages have many pieces."""
    monkeypatch.setattr(frames, "PIECE_BYTES", PIECE)
    monkeypatch.setattr(frames, "MOST_BYTES", 20 * PIECE)


messages = st.binary(max_size=12 * PIECE)


def put_together(pieces: list[bytes]) -> list[bytes]:
    """What one receiver makes of these frames; it never fails on frames that somebody made."""
    reassembly = Reassembly()
    taken = [reassembly.take(read_frame(piece)) for piece in pieces]
    return [message for message in taken if message is not None]


@given(messages, st.sets(st.integers(1, 300)))
def test_reassembling_inverts_splitting(message: bytes, addressed: set[int]) -> None:
    pieces = list(split_message(message, addressed))
    assert put_together(pieces) == [message]
    assert len(pieces) == max(1, -(-len(message) // PIECE))
    assert {read_frame(piece).addressed for piece in pieces} == {tuple(sorted(addressed))}


@given(st.lists(messages, max_size=5))
def test_messages_one_after_the_other_all_come(sent: list[bytes]) -> None:
    assert put_together([piece for each in sent for piece in split_message(each)]) == sent


@given(st.lists(messages, min_size=1, max_size=4), st.data())
def test_lost_doubled_and_reordered_pieces_give_a_message_that_was_sent_or_nothing(
    sent: list[bytes], data: st.DataObject
) -> None:
    pieces = [piece for each in sent for piece in split_message(each)]
    arriving = data.draw(st.lists(st.sampled_from(pieces), max_size=3 * len(pieces)))
    assert set(put_together(arriving)) <= set(sent)


@given(st.binary(min_size=PIECE + 1, max_size=12 * PIECE), st.data())
def test_a_message_with_a_piece_lost_does_not_come_and_the_next_one_does(
    message: bytes, data: st.DataObject
) -> None:
    pieces = list(split_message(message))
    lost = data.draw(st.integers(0, len(pieces) - 1))
    assert put_together([*pieces[:lost], *pieces[lost + 1 :]]) == []
    assert put_together([*pieces[:lost], *pieces[lost + 1 :], *pieces]) == [message]


def test_pieces_of_two_messages_may_be_mixed() -> None:
    first, second = bytes(range(3 * PIECE)), bytes(range(100, 100 + 3 * PIECE))
    mixed = [
        piece
        for pair in zip(split_message(first), split_message(second), strict=True)
        for piece in pair
    ]
    assert put_together(mixed) == [first, second]


def test_of_too_many_unfinished_messages_the_oldest_is_forgotten() -> None:
    begun = [bytes([number]) * 2 * PIECE for number in range(5)]
    first_pieces = [next(iter(split_message(each))) for each in begun]
    last_pieces = [list(split_message(each))[1] for each in begun]
    assert put_together([*first_pieces, *last_pieces]) == begun[1:]


def test_a_message_over_the_bound_is_not_split_and_one_on_it_is() -> None:
    on_it = bytes(20 * PIECE)
    assert put_together(list(split_message(on_it))) == [on_it]
    with pytest.raises(WireError, match="fewer queries"):
        list(split_message(on_it + b"x"))


def test_pieces_whose_hash_is_another_messages_are_refused() -> None:
    frame = msgpack.packb((frames.VERSION, bytes(16), 0, 1, [], b"forged"))
    with pytest.raises(WireError, match="do not fit"):
        Reassembly().take(read_frame(frame))


IDENTIFIER = bytes(16)
BAD = {
    "nothing": b"",
    "no msgpack": b"\xc1",
    "no list": msgpack.packb(7),
    "too short": msgpack.packb((1, IDENTIFIER, 0, 1, [])),
    "too long": msgpack.packb((1, IDENTIFIER, 0, 1, [], b"", 0)),
    "another version": msgpack.packb((2, IDENTIFIER, 0, 1, [], b"")),
    "a boolean for a number": msgpack.packb((1, IDENTIFIER, False, 1, [], b"")),
    "a short id": msgpack.packb((1, IDENTIFIER[1:], 0, 1, [], b"")),
    "a place past the end": msgpack.packb((1, IDENTIFIER, 1, 1, [], b"")),
    "no pieces": msgpack.packb((1, IDENTIFIER, 0, 0, [], b"")),
    "a negative place": msgpack.packb((1, IDENTIFIER, -1, 1, [], b"")),
    "too many pieces": msgpack.packb((1, IDENTIFIER, 0, 22, [], b"")),
    "too long a piece": msgpack.packb((1, IDENTIFIER, 0, 1, [], bytes(PIECE + 1))),
    "text for a piece": msgpack.packb((1, IDENTIFIER, 0, 1, [], "text")),
    "text for an address": msgpack.packb((1, IDENTIFIER, 0, 1, ["a"], b"")),
    "something after it": msgpack.packb((1, IDENTIFIER, 0, 1, [], b"")) + b"\x00",
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_frame_is_refused(name: str) -> None:
    with pytest.raises(WireError, match="cannot be read"):
        read_frame(BAD[name])


@given(st.binary(max_size=60))
def test_no_bytes_make_reading_fail_in_another_way(data: bytes) -> None:
    try:
        frame = read_frame(data)
    except WireError:
        return
    assert 0 <= frame.place < frame.pieces
    assert len(frame.piece) <= PIECE


def test_a_message_longer_than_its_sender_can_have_is_not_kept_at_all() -> None:
    reassembly = Reassembly(3 * PIECE)
    longest, longer = bytes(3 * PIECE), bytes(3 * PIECE + 1)
    assert [reassembly.take(read_frame(each)) for each in split_message(longest)][-1] == longest
    with pytest.raises(WireError, match="longer than any"):
        reassembly.take(read_frame(next(split_message(longer))))


def test_what_is_unfinished_of_one_sender_never_takes_more_than_one_message_would() -> None:
    reassembly = Reassembly()
    pieces = [list(split_message(bytes([number]) * 18 * PIECE)) for number in range(4)]
    for place in range(17):
        for each in pieces:
            reassembly.take(read_frame(each[place]))
    kept = sum(len(frame.piece) for frames in reassembly._unfinished.values() for frame in frames)
    assert kept <= frames.MOST_BYTES
    assert [reassembly.take(read_frame(each)) for each in pieces[0]][-1] is not None
