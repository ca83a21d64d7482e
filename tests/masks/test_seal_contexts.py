"""The contexts of seals: one for each epoch, batch, attempt and head of a header."""

from itertools import product

from dppp.masks.dealing import digest_of_head, seal_contexts
from dppp.masks.epoch_keys import Epoch
from dppp.masks.sealing import CONTEXT_BYTES

EPOCHS = [Epoch(task_id=bytes([task]) * 32, number=number) for task in (1, 2) for number in (7, 8)]
SEEDS = [b"a batch and an attempt", b"a batch and another"]
DIGESTS = [bytes([number]) * 32 for number in range(1, 6)]


def test_another_epoch_batch_or_head_makes_another_context() -> None:
    heads = DIGESTS[:3]
    found = [
        context
        for epoch, seed in product(EPOCHS, SEEDS)
        for context in seal_contexts(epoch, seed, heads)
    ]
    assert {len(each) for each in found} == {CONTEXT_BYTES}
    assert len(set(found)) == len(found) == 24


def test_a_head_is_of_salt_check_block_votes_and_seed_each_in_its_place() -> None:
    salt, check, votes, seed, other = DIGESTS
    heads = [
        digest_of_head(salt, check=check, votes=votes, seed=seed),
        digest_of_head(other, check=check, votes=votes, seed=seed),
        digest_of_head(salt, check=other, votes=votes, seed=seed),
        digest_of_head(salt, check=check, votes=other, seed=seed),
        digest_of_head(salt, check=check, votes=votes, seed=other),
        digest_of_head(salt, check=votes, votes=check, seed=seed),
        digest_of_head(salt, check=check, votes=seed, seed=votes),
    ]
    assert len(set(heads)) == len(heads)
