"""A row of a secret that is shown in a dispute tells nothing of the row of the seed beside it.

Both are hidden by one output of SHAKE-256. Rows of secrets are shown once t teachers withdrew, and
everybody has all seals by then: were the two hidden by the same bytes, so many rows of the seed
would be read that the pad comes off, and the vote lies bare beside the root that was shown as well.
"""

from typing import Any

import numpy as np
import pytest

from dppp.masks import sealing
from dppp.masks.sealing import CONTEXT_BYTES, TAG_BYTES, Pairs, Purpose, show_seal

pytestmark = pytest.mark.attack

KEY, CONTEXT = bytes(range(32)), bytes(range(CONTEXT_BYTES))
SECRET_ROW, SEED_ROW = bytes(range(1, 165)), b"\x12\x34"
ADDRESS: dict[str, Any] = {"dealer": 3, "recipient": 5, "context": CONTEXT}


def read_the_seeds_row() -> bytes:
    """What everybody makes of both seals of a pair and the shown row of the secret."""
    pair = Pairs.of_dealer([KEY], dealer=3, recipients=[5], context=CONTEXT, length=len(SECRET_ROW))
    of_secret, of_seed = (
        pair.seal(purpose, np.frombuffer(row, dtype=np.uint8)[None])
        for purpose, row in ((Purpose.SECRET_ROW, SECRET_ROW), (Purpose.SEED_ROW, SEED_ROW))
    )
    shown = show_seal(KEY, of_secret, purpose=Purpose.SECRET_ROW, length=len(SECRET_ROW), **ADDRESS)
    stream = bytes(a ^ b for a, b in zip(of_secret[:-TAG_BYTES], shown.row, strict=True))
    return bytes(a ^ b for a, b in zip(of_seed[:-TAG_BYTES], stream, strict=False))


def test_a_shown_row_of_a_secret_does_not_show_the_seeds() -> None:
    assert read_the_seeds_row() != SEED_ROW


def test_if_both_kinds_had_one_stream_a_shown_row_of_a_secret_would_show_the_seeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sealing, "_STREAM_AT", dict.fromkeys(Purpose, 64))
    assert read_the_seeds_row() == SEED_ROW
