"""The contexts of many seals at once are those of one seal each, and no two alike."""

import pytest

from dppp.errors import InputError
from dppp.masks.dealing import BOUND_BYTES, seal_context, seal_contexts
from dppp.masks.epoch_keys import Epoch

EPOCH = Epoch(task_id=bytes(range(32)), number=7)
DIGESTS = [bytes([number]) * 32 for number in range(1, 17)]
DEALERS = [1, 300, 70_000, 2**32 - 1]
SEED = b"a batch and an attempt"


def test_contexts_made_together_are_those_made_one_by_one() -> None:
    own = [DIGESTS[4 * place : 4 * place + 4] for place in range(4)]
    one_by_one = [
        seal_context(
            EPOCH,
            dealer,
            votes_seed=SEED,
            salt=salt,
            check_digest=check,
            votes_digest=votes,
            seed_digest=seed,
        )
        for dealer, (salt, check, votes, seed) in zip(DEALERS, own, strict=True)
    ]
    joined = [(dealer, b"".join(each)) for dealer, each in zip(DEALERS, own, strict=True)]
    assert seal_contexts(EPOCH, SEED, joined) == one_by_one


def test_another_epoch_batch_dealer_or_header_makes_another_context() -> None:
    bound = bytes(BOUND_BYTES)
    later = Epoch(task_id=EPOCH.task_id, number=8)
    found = [
        *seal_contexts(EPOCH, SEED, [(1, bound), (2, bound), (1, bytes(127) + b"1")]),
        *seal_contexts(later, SEED, [(1, bound)]),
        *seal_contexts(EPOCH, SEED + b"2", [(1, bound)]),
    ]
    assert len(set(found)) == len(found)


def test_contexts_of_other_lengths_are_refused() -> None:
    with pytest.raises(InputError):
        seal_contexts(EPOCH, SEED, [(1, bytes(BOUND_BYTES - 1))])
