"""A message in pieces that a broker carries, and back.

Used on both ends of the broker. A broker loses messages, so a piece may be missing: then the whole
message is, and whoever wants an answer asks again. Pieces of one message come in order on one
subject. What a stranger could send is bounded before it is kept.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgpack

from dppp.errors import WireError

VERSION = 1
PIECE_BYTES = 512 * 1024
MOST_BYTES = 256 * 2**20
"""The longest message; a batch with a longer ballot list has to be split."""
_MOST_UNFINISHED = 4
ID_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One piece. `addressed` are the teachers that it is for; nobody named means everybody."""

    message_id: bytes
    place: int
    pieces: int
    addressed: tuple[int, ...]
    piece: bytes = field(repr=False)


def split_message(data: bytes, addressed: Collection[int] = ()) -> Iterator[bytes]:
    """The frames of a message, as bytes to publish in this order."""
    if len(data) > MOST_BYTES:
        raise WireError(
            f"a message of {len(data):,} bytes is over the {MOST_BYTES:,} that a broker carries "
            "for us",
            hint="send fewer queries in a batch",
        )
    identifier = message_id(data)
    pieces = max(1, -(-len(data) // PIECE_BYTES))
    for place in range(pieces):
        piece = data[place * PIECE_BYTES : (place + 1) * PIECE_BYTES]
        yield msgpack.packb((VERSION, identifier, place, pieces, sorted(addressed), piece))


def read_frame(data: bytes) -> Frame:
    """The frame in these bytes."""
    try:
        plain = msgpack.unpackb(data, max_bin_len=PIECE_BYTES, max_str_len=0, max_ext_len=0)
        return _checked(plain)
    except (ValueError, TypeError, msgpack.exceptions.UnpackException) as error:
        raise WireError(f"a frame cannot be read: {type(error).__name__}") from error


def _checked(plain: Any) -> Frame:
    version, identifier, place, pieces, addressed, piece = plain
    numbers = (version, place, pieces, *addressed)
    is_typed = all(type(each) is int and 0 <= each < 2**32 for each in numbers)
    if not is_typed or type(identifier) is not bytes or type(piece) is not bytes:
        raise ValueError("wrong types")
    if version != VERSION or len(identifier) != ID_BYTES or not place < pieces:
        raise ValueError("wrong version, id or place")
    if pieces * PIECE_BYTES > MOST_BYTES + PIECE_BYTES:
        raise ValueError("too many pieces")
    return Frame(
        message_id=identifier,
        place=place,
        pieces=pieces,
        addressed=tuple(addressed),
        piece=piece,
    )


class Reassembly:
    """Puts together what comes from one sender; forgets the oldest when too much is unfinished.

    `most_bytes` is the longest message that can be from this sender, and all that is kept of it.
    """

    def __init__(self, most_bytes: int | None = None) -> None:
        self._most_bytes = MOST_BYTES if most_bytes is None else most_bytes
        self._unfinished: OrderedDict[bytes, list[Frame]] = OrderedDict()
        self._size = 0

    def take(self, frame: Frame) -> bytes | None:
        """The whole message, if this was its last piece."""
        if frame.pieces == 1:
            return self._whole([frame])
        if (frame.pieces - 1) * PIECE_BYTES >= self._most_bytes:
            raise WireError("this piece is of a message that is longer than any can be")
        if frame.place == 0:
            self._forget(frame.message_id)
            self._unfinished[frame.message_id] = []
            if len(self._unfinished) > _MOST_UNFINISHED:
                self._forget(next(iter(self._unfinished)))
        frames = self._unfinished.get(frame.message_id)
        if frames is None:
            return None
        if frame.place != len(frames) or (frames and frame.pieces != frames[0].pieces):
            self._forget(frame.message_id)  # a piece is missing: so is the message
            return None
        frames.append(frame)
        self._size += len(frame.piece)
        if len(frames) == frame.pieces:
            return self._whole(self._forget(frame.message_id))
        while self._size > self._most_bytes and len(self._unfinished) > 1:
            self._forget(next(iter(self._unfinished)))
        return None

    @property
    def unfinished(self) -> tuple[bytes, ...]:
        """The ids of the messages of which some pieces are there."""
        return tuple(self._unfinished)

    def _forget(self, message_id: bytes) -> list[Frame]:
        """Take a message out, as far as it has come."""
        frames = self._unfinished.pop(message_id, [])
        self._size -= sum(len(frame.piece) for frame in frames)
        return frames

    @staticmethod
    def _whole(frames: list[Frame]) -> bytes:
        data = b"".join(frame.piece for frame in frames)
        if message_id(data) != frames[0].message_id:
            raise WireError("the pieces of a message do not fit together")
        return data


def message_id(data: bytes) -> bytes:
    """What names a message, in all its pieces."""
    return hashlib.sha256(data).digest()[:ID_BYTES]
