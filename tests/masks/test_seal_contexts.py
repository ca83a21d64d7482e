"""The contexts of many seals at once are those of one seal each."""

import pytest

from dppp.errors import InputError
from dppp.masks.dealing import seal_context, seal_contexts
from dppp.masks.epoch_keys import Epoch

EPOCH = Epoch(task_id=bytes(range(32)), number=7)
FIELDS = [bytes([number]) * 32 for number in range(1, 13)]


def test_contexts_made_together_are_those_made_one_by_one() -> None:
    dealers = [1, 300, 70_000, 2**32 - 1]
    joined = [b"".join(FIELDS[3 * place : 3 * place + 3]) for place in range(4)]
    one_by_one = [
        seal_context(EPOCH, dealer, salt=each[:32], check_digest=each[32:64], seed_digest=each[64:])
        for dealer, each in zip(dealers, joined, strict=True)
    ]
    assert seal_contexts(EPOCH, dealers, joined) == one_by_one


def test_contexts_of_other_lengths_are_refused() -> None:
    with pytest.raises(InputError):
        seal_contexts(EPOCH, [1], [bytes(95)])
    with pytest.raises(InputError):
        seal_contexts(EPOCH, [1, 2], [bytes(96)])
