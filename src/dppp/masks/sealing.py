"""Seals: the rows that a dealer sends to each teacher, encrypted so that a seal has one opening.

A batch has N dealers with N rows each, of two kinds, so a seal must be cheap: one hash for the two
kinds, and one for each.

    k_1, k_2, stream  = SHAKE-256(domain, pair's key, route, context)
    route             = dealer, recipient
    sealed            = ciphertext, tag;   ciphertext = row XOR the stream's bytes of its kind,
                        tag = SHA-256(domain, kind, tag key, route, context, row)

k_1 is the tag key of the row of the secret, and k_2 of that of the seed. The stream's first 32
bytes are for the row of the seed, which is never longer, and the others for that of the secret.

All fields but the row, which is last, have fixed lengths, so no two inputs of a hash encode alike.

A seal commits to its row: the tag is a hash of it under a key that nobody else can guess, so
without a collision of SHA-256 no two rows and tag keys fit one tag. That makes two kinds of
evidence possible. *Showing* a seal (`show_seal`) gives its row and its tag key to everybody, who
compare the tag: it tells nothing about any other seal of the same pair. That a seal does *not*
open is shown by the pair's secret itself, with a proof (`equal_logarithms.py`), from which
everybody derives the one tag key and stream. AES-GCM's own tag does not commit to its key: a
dealer can make a ciphertext that opens to two rows under two keys.

One stream must never hide two rows. So the context is a hash of the epoch, of the batch and attempt
and of the ballot's header, in which the dealer's fresh salt is.
"""

import hashlib
import hmac
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from dppp.errors import InputError, ProofError, SealUnopened
from dppp.masks.epoch_keys import require_index

KEY_BYTES = 32
CONTEXT_BYTES = 64
TAG_BYTES = 32
_STREAM_DOMAIN = b"dppp seal stream 2"
_TAG_DOMAIN = b"dppp seal tag 2"
_ROUTE = struct.Struct(">II")
_LONGEST_SEED_ROW = 32
_STREAMS_AT = 2 * KEY_BYTES


class Purpose(IntEnum):
    """What is sealed: the bytes that hide one kind of row never hide the other."""

    SECRET_ROW = 1
    SEED_ROW = 2


_KEY_AT = {Purpose.SECRET_ROW: 0, Purpose.SEED_ROW: KEY_BYTES}
_STREAM_AT = {
    Purpose.SECRET_ROW: _STREAMS_AT + _LONGEST_SEED_ROW,
    Purpose.SEED_ROW: _STREAMS_AT,
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Pairs:
    """One dealer and each recipient, or each dealer and one recipient, in one ballot or list.

    `places` are routes and contexts. `expanded` has for each pair the keys of both tags and, after
    them, both streams.
    """

    places: Sequence[bytes]
    expanded: Sequence[bytes]

    @classmethod
    def of_dealer(
        cls,
        pair_keys: Sequence[bytes],
        *,
        dealer: int,
        recipients: Sequence[int],
        context: bytes,
        length: int,
    ) -> "Pairs":
        """By the dealer, for rows of its secret of at most this length."""
        _require_indices([dealer, *recipients])
        _require_lengths([context], CONTEXT_BYTES, "the context of a seal")
        places = [_ROUTE.pack(dealer, each) + context for each in recipients]
        return cls._expand(pair_keys, places, length)

    @classmethod
    def of_recipient(
        cls,
        pair_keys: Sequence[bytes],
        *,
        dealers: Sequence[int],
        recipient: int,
        contexts: Sequence[bytes],
        length: int,
    ) -> "Pairs":
        """By their recipient, for rows of secrets of at most this length."""
        _require_indices([recipient, *dealers])
        _require_lengths(contexts, CONTEXT_BYTES, "the context of a seal")
        if len(contexts) != len(dealers):
            raise InputError("opening takes one context for each dealer")
        pairs = zip(dealers, contexts, strict=True)
        places = [_ROUTE.pack(dealer, recipient) + context for dealer, context in pairs]
        return cls._expand(pair_keys, places, length)

    @classmethod
    def _expand(cls, keys: Sequence[bytes], places: list[bytes], length: int) -> "Pairs":
        _require_lengths(keys, KEY_BYTES, "the key of a pair")
        if len(keys) != len(places) or length < 1:
            raise InputError("seals take one key for each pair, and the length of a row")
        size, expand = _STREAMS_AT + _LONGEST_SEED_ROW + length, hashlib.shake_256
        expanded = [
            expand(_STREAM_DOMAIN + key + place).digest(size)
            for key, place in zip(keys, places, strict=True)
        ]
        return cls(places=places, expanded=expanded)

    def seal(self, purpose: Purpose, plaintexts: NDArray[np.uint8]) -> bytes:
        """Seal one row of `plaintexts` to each recipient; the seals follow each other."""
        _require_plaintexts(plaintexts, len(self.places))
        hidden = self._apply_streams(purpose, plaintexts)
        return np.concatenate([hidden, self._tags(purpose, plaintexts)], axis=1).tobytes()

    def open(
        self, purpose: Purpose, seals: bytes, dealers: Sequence[int], *, length: int
    ) -> NDArray[np.uint8]:
        """Open one seal of each dealer, to rows of `length` bytes.

        If any does not open, none is returned, and the exception names the dealers of those. That
        does not convict them yet: the aggregator may have changed the bytes on the way.
        """
        if len(dealers) != len(self.places) or len(seals) != len(dealers) * (length + TAG_BYTES):
            raise InputError("opening takes one seal of each dealer, of the row's length")
        sealed = np.frombuffer(seals, dtype=np.uint8).reshape(len(dealers), -1)
        plaintexts = self._apply_streams(purpose, sealed[:, :length])
        expected, given = self._tags(purpose, plaintexts), sealed[:, length:]
        if not hmac.compare_digest(expected.tobytes(), given.tobytes()):
            _refuse_unopened(purpose, dealers, (expected != given).any(axis=1))
        return plaintexts

    def _apply_streams(self, purpose: Purpose, rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
        start, length = _STREAM_AT[purpose], rows.shape[1]
        streams = _as_matrix(self.expanded)[:, start : start + length]
        is_long = purpose is Purpose.SEED_ROW and length > _LONGEST_SEED_ROW
        if is_long or streams.shape[1] != length:
            raise InputError("a row is longer than the stream of its kind")
        return streams ^ rows

    def _tags(self, purpose: Purpose, rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
        start, at, tag = _tag_start(purpose), _KEY_AT[purpose], hashlib.sha256
        stop = at + KEY_BYTES
        tags = [
            tag(start + keys[at:stop] + place + row).digest()
            for keys, place, row in zip(self.expanded, self.places, _rows_of(rows), strict=True)
        ]
        return _as_matrix(tags)


def open_one(
    pair_key: bytes,
    sealed: bytes,
    *,
    purpose: Purpose,
    dealer: int,
    recipient: int,
    context: bytes,
    length: int,
) -> bytes:
    """The row in one seal, or an exception; run by anybody in a dispute.

    If the pair's key was derived from a proven secret and the dealer signed these bytes, then a
    seal that does not open convicts the dealer.
    """
    pair = _pair(pair_key, dealer, recipient, context, length)
    return _open_alone(pair, purpose, sealed, dealer, length)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ShownSeal:
    """What its recipient shows of one seal, so that everybody can read this row and no other."""

    tag_key: bytes
    row: bytes

    def __post_init__(self) -> None:
        _require_lengths([self.tag_key], KEY_BYTES, "the tag key of a seal")


def show_seal(
    pair_key: bytes,
    sealed: bytes,
    *,
    purpose: Purpose,
    dealer: int,
    recipient: int,
    context: bytes,
    length: int,
) -> ShownSeal:
    """Show the row in a seal that opens; run by its recipient in a dispute."""
    pair = _pair(pair_key, dealer, recipient, context, length)
    row = _open_alone(pair, purpose, sealed, dealer, length)
    at = _KEY_AT[purpose]
    return ShownSeal(tag_key=pair.expanded[0][at : at + KEY_BYTES], row=row)


def read_shown(
    shown: ShownSeal,
    sealed: bytes,
    *,
    purpose: Purpose,
    dealer: int,
    recipient: int,
    context: bytes,
) -> bytes:
    """The row that a dealer sealed, from what its recipient shows; run by anybody.

    What does not fit the tag is held against the recipient: it endorsed a list only after the seal
    had opened, so it can show it.
    """
    place = _ROUTE.pack(dealer, recipient) + context
    tag = hashlib.sha256(_tag_start(purpose) + shown.tag_key + place + shown.row).digest()
    if len(sealed) != len(shown.row) + TAG_BYTES or sealed[-TAG_BYTES:] != tag:
        raise ProofError(
            f"teacher {recipient} shows another row than teacher {dealer} sealed to it",
            culprits=(recipient,),
        )
    return shown.row


def _tag_start(purpose: Purpose) -> bytes:
    return _TAG_DOMAIN + bytes([purpose])


def _pair(pair_key: bytes, dealer: int, recipient: int, context: bytes, length: int) -> Pairs:
    return Pairs.of_recipient(
        [pair_key], dealers=[dealer], recipient=recipient, contexts=[context], length=length
    )


def _open_alone(pair: Pairs, purpose: Purpose, sealed: bytes, dealer: int, length: int) -> bytes:
    if len(sealed) != length + TAG_BYTES:
        _refuse_unopened(purpose, [dealer], [True])
    return pair.open(purpose, sealed, [dealer], length=length).tobytes()


def _rows_of(matrix: NDArray[np.uint8]) -> list[bytes]:
    joined, length = matrix.tobytes(), matrix.shape[1]
    return [joined[at : at + length] for at in range(0, len(joined), length)]


def _as_matrix(rows: Sequence[bytes]) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), -1)


def _require_lengths(values: Sequence[bytes], length: int, what: str) -> None:
    if set(map(len, values)) != {length}:
        raise InputError(f"{what} has {length} bytes, and there must be at least one")


def _require_indices(indices: Sequence[int]) -> None:
    require_index(min(indices))
    require_index(max(indices))


def _require_plaintexts(plaintexts: NDArray[np.uint8], recipients: int) -> None:
    if plaintexts.dtype != np.uint8 or plaintexts.ndim != 2:
        raise InputError("plaintexts are a matrix of bytes, one row for each recipient")
    if plaintexts.shape[0] != recipients or not plaintexts.shape[1]:
        raise InputError("sealing takes one row, not empty, for each recipient")


def _refuse_unopened(purpose: Purpose, dealers: Sequence[int], is_bad: Iterable[bool]) -> NoReturn:
    named = tuple(each for each, bad in zip(dealers, is_bad, strict=True) if bad)
    raise SealUnopened(
        f"the seals of these dealers do not open: {', '.join(map(str, named))}",
        dealers=named,
        purpose=int(purpose),
        hint="compare them with the dealers' signed digests, then start a dispute",
    )
