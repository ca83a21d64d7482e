"""Seals: the rows that a dealer sends to each teacher, encrypted so that a seal has one opening.

A batch has N dealers with N rows each, of two kinds, so a seal must be cheap: two hashes.

    tag key, stream   = SHAKE-256(domain, pair's key, route, context)
    route             = purpose, dealer, recipient
    sealed            = ciphertext, tag;   ciphertext = row XOR stream,
                        tag = SHA-256(domain, tag key, route, context, row)

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
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from dppp.errors import InputError, ProofError, SealUnopened
from dppp.masks.epoch_keys import require_index

KEY_BYTES = 32
CONTEXT_BYTES = 32
TAG_BYTES = 32
_STREAM_DOMAIN = b"dppp seal stream 1"
_TAG_DOMAIN = b"dppp seal tag 1"
_ROUTE = struct.Struct(">BII")


class Purpose(IntEnum):
    """What is sealed: the stream of one kind of row never hides the other."""

    SECRET_ROW = 1
    SEED_ROW = 2


def seal_many(
    pair_keys: Sequence[bytes],
    plaintexts: NDArray[np.uint8],
    *,
    purpose: Purpose,
    dealer: int,
    recipients: Sequence[int],
    context: bytes,
) -> tuple[bytes, ...]:
    """Seal one row of `plaintexts` to each recipient; run by the dealer, once per kind of row."""
    _require_plaintexts(plaintexts, len(pair_keys), len(recipients))
    _require_lengths(pair_keys, KEY_BYTES, "the key of a pair")
    _require_lengths([context], CONTEXT_BYTES, "the context of a seal")
    _require_indices([dealer, *recipients])
    length = plaintexts.shape[1]
    routes = _routes(purpose, repeat(dealer), recipients)
    streams = _expand(pair_keys, routes, repeat(context), length)
    ciphertexts = _rows_of(_as_matrix(streams)[:, KEY_BYTES:] ^ plaintexts)
    tags = _tags(streams, routes, repeat(context), _rows_of(plaintexts))
    return tuple([each + tag for each, tag in zip(ciphertexts, tags, strict=True)])


def open_many(
    pair_keys: Sequence[bytes],
    sealed: Sequence[bytes],
    *,
    purpose: Purpose,
    dealers: Sequence[int],
    recipient: int,
    contexts: Sequence[bytes],
    length: int,
) -> NDArray[np.uint8]:
    """Open one seal of each dealer, to rows of `length` bytes; run by their recipient.

    If any does not open, none is returned, and the exception names the dealers of those. That does
    not convict them yet: the aggregator may have changed the bytes on the way.
    """
    if not len(pair_keys) == len(sealed) == len(dealers) == len(contexts) or length < 1:
        raise InputError("opening takes one key, dealer and context for each seal, and a length")
    _require_lengths(pair_keys, KEY_BYTES, "the key of a pair")
    _require_lengths(contexts, CONTEXT_BYTES, "the context of a seal")
    _require_indices([recipient, *dealers])
    _require_opened(purpose, dealers, [len(each) == length + TAG_BYTES for each in sealed])
    routes = _routes(purpose, dealers, repeat(recipient))
    streams = _expand(pair_keys, routes, contexts, length)
    plaintexts = _as_matrix(streams)[:, KEY_BYTES:] ^ _as_matrix(sealed)[:, :length]
    expected = _tags(streams, routes, contexts, _rows_of(plaintexts))
    given = [each[length:] for each in sealed]
    if not hmac.compare_digest(b"".join(expected), b"".join(given)):
        pairs = zip(expected, given, strict=True)
        _require_opened(purpose, dealers, [hmac.compare_digest(*pair) for pair in pairs])
    return plaintexts


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
    return open_many(
        [pair_key],
        [sealed],
        purpose=purpose,
        dealers=[dealer],
        recipient=recipient,
        contexts=[context],
        length=length,
    ).tobytes()


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
    row = open_one(
        pair_key,
        sealed,
        purpose=purpose,
        dealer=dealer,
        recipient=recipient,
        context=context,
        length=length,
    )
    (route,) = _routes(purpose, [dealer], [recipient])
    (stream,) = _expand([pair_key], [route], [context], length)
    return ShownSeal(tag_key=stream[:KEY_BYTES], row=row)


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
    (route,) = _routes(purpose, [dealer], [recipient])
    (tag,) = _tags([shown.tag_key], [route], [context], [shown.row])
    if len(sealed) != len(shown.row) + TAG_BYTES or sealed[-TAG_BYTES:] != tag:
        raise ProofError(
            f"teacher {recipient} shows another row than teacher {dealer} sealed to it",
            culprits=(recipient,),
        )
    return shown.row


def _routes(purpose: Purpose, dealers: Iterable[int], recipients: Iterable[int]) -> list[bytes]:
    # One of the two repeats for ever, so the lengths cannot be held to each other here.
    pairs = zip(dealers, recipients, strict=False)
    pack = _ROUTE.pack
    return [pack(purpose, one, other) for one, other in pairs]


def _expand(
    keys: Sequence[bytes], routes: Sequence[bytes], contexts: Iterable[bytes], length: int
) -> list[bytes]:
    """For each seal the key of its tag and, after it, its stream."""
    fields = zip(keys, routes, contexts, strict=False)
    size = KEY_BYTES + length
    return [
        hashlib.shake_256(_STREAM_DOMAIN + key + route + context).digest(size)
        for key, route, context in fields
    ]


def _tags(
    streams: Sequence[bytes],
    routes: Sequence[bytes],
    contexts: Iterable[bytes],
    rows: Sequence[bytes],
) -> list[bytes]:
    fields = zip(streams, routes, contexts, rows, strict=False)
    return [
        hashlib.sha256(_TAG_DOMAIN + stream[:KEY_BYTES] + route + context + row).digest()
        for stream, route, context, row in fields
    ]


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


def _require_plaintexts(plaintexts: NDArray[np.uint8], keys: int, recipients: int) -> None:
    if plaintexts.dtype != np.uint8 or plaintexts.ndim != 2:
        raise InputError("plaintexts are a matrix of bytes, one row for each recipient")
    if not plaintexts.shape[0] == keys == recipients or not plaintexts.shape[1]:
        raise InputError("sealing takes one key and one row, not empty, for each recipient")


def _require_opened(purpose: Purpose, dealers: Sequence[int], verdicts: Sequence[bool]) -> None:
    named = tuple(each for each, is_good in zip(dealers, verdicts, strict=True) if not is_good)
    if named:
        raise SealUnopened(
            f"the seals of these dealers do not open: {', '.join(map(str, named))}",
            dealers=named,
            purpose=int(purpose),
            hint="compare them with the dealers' signed digests, then start a dispute",
        )
