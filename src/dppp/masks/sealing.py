"""Seals: the rows that a dealer sends to each teacher, encrypted so that a seal has one opening.

A batch has N dealers with N rows each, of two kinds, so a seal must be cheap: two hashes.

    tag key, stream   = SHAKE-256(domain, pair's key, purpose, dealer, recipient, context)
    sealed            = ciphertext, tag;   ciphertext = plaintext XOR stream,
                        tag = SHA-256(domain, tag key, context, length, ciphertext)

All fields but the ciphertext have fixed lengths and its length comes before it, so no two inputs
of a hash encode alike, and extending a hash gives nothing that is ever asked for.

A seal commits to key, purpose, indices, context and plaintext. Say that two openings accept one
sealed string. Their tags are equal, so without a collision of SHA-256 their tag keys are equal.
Those are the first 32 bytes of SHAKE-256, so without a collision of these its whole inputs are
equal: key, purpose, indices and context. Equal inputs give equal streams, hence equal plaintexts.
So there is nothing between the pair's key and a seal that a dealer could choose. AES-GCM's own tag
does not commit to its key: a dealer can make a ciphertext that opens to two rows under two keys.

One stream must never hide two plaintexts. So the context is a hash of task, batch, attempt, the
dealer's fresh salt and the digests in its header, but for those of the seals themselves, which
would be circular.
"""

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from enum import IntEnum
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from dppp.errors import InputError, SealUnopened
from dppp.masks.epoch_keys import require_index

KEY_BYTES = 32
CONTEXT_BYTES = 32
TAG_BYTES = 32
_STREAM_DOMAIN = b"dppp seal stream 1"
_TAG_DOMAIN = b"dppp seal tag 1"


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
    joined = (_as_matrix(streams)[:, KEY_BYTES:] ^ plaintexts).tobytes()
    ciphertexts = [joined[at : at + length] for at in range(0, len(joined), length)]
    tags = _tags(streams, repeat(context), ciphertexts)
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
    _require_opened(dealers, [len(each) == length + TAG_BYTES for each in sealed])
    routes = _routes(purpose, dealers, repeat(recipient))
    streams = _expand(pair_keys, routes, contexts, length)
    expected = _tags(streams, contexts, [each[:length] for each in sealed])
    given = [each[length:] for each in sealed]
    if not hmac.compare_digest(b"".join(expected), b"".join(given)):
        pairs = zip(expected, given, strict=True)
        _require_opened(dealers, [hmac.compare_digest(*pair) for pair in pairs])
    return _as_matrix(streams)[:, KEY_BYTES:] ^ _as_matrix(sealed)[:, :length]


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


def _routes(purpose: Purpose, dealers: Iterable[int], recipients: Iterable[int]) -> list[bytes]:
    # One of the two repeats for ever, so the lengths cannot be held to each other here.
    pairs = zip(dealers, recipients, strict=False)
    head = int(purpose) << 64
    return [(head | one << 32 | other).to_bytes(9, "big") for one, other in pairs]


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
    streams: Sequence[bytes], contexts: Iterable[bytes], ciphertexts: Sequence[bytes]
) -> list[bytes]:
    length = len(ciphertexts[0]).to_bytes(4, "big")
    fields = zip(streams, contexts, ciphertexts, strict=False)
    return [
        hashlib.sha256(_TAG_DOMAIN + stream[:KEY_BYTES] + context + length + ciphertext).digest()
        for stream, context, ciphertext in fields
    ]


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


def _require_opened(dealers: Sequence[int], verdicts: Sequence[bool]) -> None:
    named = tuple(each for each, is_good in zip(dealers, verdicts, strict=True) if not is_good)
    if named:
        raise SealUnopened(
            f"the seals of these dealers do not open: {', '.join(map(str, named))}; "
            "compare them with the dealers' signed digests, then start a dispute",
            dealers=named,
        )
