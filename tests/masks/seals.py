"""One kind of seal at a time, as tests make and open them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dppp.masks.sealing import Pairs, Purpose


def seal_many(
    pair_keys: Sequence[bytes],
    plaintexts: NDArray[np.uint8],
    *,
    purpose: Purpose,
    dealer: int,
    recipients: Sequence[int],
    context: bytes,
) -> tuple[bytes, ...]:
    """A row of this kind sealed to each recipient."""
    pairs = Pairs.of_dealer(
        pair_keys,
        dealer=dealer,
        recipients=recipients,
        context=context,
        length=plaintexts.shape[-1],
    )
    seals = pairs.seal(purpose, plaintexts)
    length = len(seals) // len(recipients)
    return tuple(seals[at : at + length] for at in range(0, len(seals), length))


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
    """The rows of this kind that all dealers sealed to one recipient."""
    pairs = Pairs.of_recipient(
        pair_keys, dealers=dealers, recipient=recipient, contexts=contexts, length=length
    )
    return pairs.open(purpose, b"".join(sealed), dealers, length=length)
