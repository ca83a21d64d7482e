"""Whole rounds of the masks alone, without the protocol around them."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from tests.masks.seals import open_many

from dppp.masks.ballots import Body, Header, cast, seal_at
from dppp.masks.blame import SealedRow, row_bytes
from dppp.masks.dealing import DealerKeys, prepare
from dppp.masks.epoch_keys import (
    Epoch,
    EpochKey,
    EpochSecret,
    derive_pair_keys,
    own_row_key,
    pair_secret,
)
from dppp.masks.opening import (
    add_blocks,
    add_votes,
    open_counts,
    recover_secret,
    recover_seeds,
    require_fits,
)
from dppp.masks.parameters import Parameters
from dppp.masks.sealing import Purpose
from dppp.masks.sharing import add_rows, elements_to_bytes

EPOCH = Epoch(task_id=bytes(range(32)), number=7)
VOTES_SEED = b"the batch of this test"


@dataclass(slots=True)
class Round:
    """Teachers with epoch keys, and the ballots that they cast."""

    parameters: Parameters
    present: tuple[int, ...]
    secrets: dict[int, EpochSecret] = field(default_factory=dict)
    headers: dict[int, Header] = field(default_factory=dict)
    bodies: dict[int, Body] = field(default_factory=dict)
    counts: int = 0
    votes_seed: bytes = VOTES_SEED

    def __post_init__(self) -> None:
        self.secrets = {each: EpochSecret.generate(each) for each in self.present}

    @property
    def keys(self) -> dict[int, EpochKey]:
        return {each: secret.key for each, secret in self.secrets.items()}

    def sealing_key(self, one: int, other: int) -> bytes:
        own, keys = self.secrets[one], self.keys
        if one == other:
            return own_row_key(own, EPOCH)
        shared = pair_secret(own, keys[other])
        return derive_pair_keys(shared, EPOCH, keys[one], keys[other]).sealing_key

    def dealer_keys(self, dealer: int) -> DealerKeys:
        return DealerKeys(
            epoch=EPOCH,
            dealer=dealer,
            own_key=own_row_key(self.secrets[dealer], EPOCH),
            recipients=self.present,
            sealing_keys=tuple(self.sealing_key(dealer, each) for each in self.present),
        )

    def cast(self, entries: dict[int, NDArray[np.int64]]) -> None:
        for dealer, counts in entries.items():
            prepared = prepare(self.parameters, self.dealer_keys(dealer))
            header, body = cast(self.parameters, prepared, counts, votes_seed=self.votes_seed)
            self.headers[dealer], self.bodies[dealer] = header, body
            self.counts = len(counts)

    def seal(self, dealer: int, recipient: int, purpose: Purpose) -> SealedRow:
        body = self.bodies[dealer]
        seals = body.secret_seals if purpose is Purpose.SECRET_ROW else body.seed_seals
        return SealedRow(
            epoch=EPOCH,
            votes_seed=self.votes_seed,
            dealer=dealer,
            recipient=recipient,
            purpose=purpose,
            head_digest=self.headers[dealer].head_digest,
            sealed=seal_at(seals, self.present.index(recipient), len(self.present)),
        )

    def open_rows(self, recipient: int, purpose: Purpose) -> NDArray[np.uint8]:
        dealers = sorted(self.headers)
        seals = [self.seal(dealer, recipient, purpose) for dealer in dealers]
        return open_many(
            [self.sealing_key(recipient, dealer) for dealer in dealers],
            [seal.sealed for seal in seals],
            purpose=purpose,
            dealers=dealers,
            recipient=recipient,
            contexts=[seal.context for seal in seals],
            length=row_bytes(self.parameters, purpose),
        )

    def endorse(self, recipient: int) -> bytes:
        rows = self.open_rows(recipient, Purpose.SECRET_ROW)
        return elements_to_bytes(add_rows(rows.view("<u2").astype(np.uint16)))

    def answer(self, recipient: int) -> tuple[bytes, ...]:
        return tuple(row.tobytes() for row in self.open_rows(recipient, Purpose.SEED_ROW))

    def open(self, endorsers: tuple[int, ...], answerers: tuple[int, ...]) -> NDArray[np.int64]:
        dealers = sorted(self.headers)
        secret = recover_secret(self.parameters, {each: self.endorse(each) for each in endorsers})
        blocks = [self.bodies[each].check_block for each in dealers]
        check_sum = add_blocks(self.parameters, blocks, count=1)[0]
        short = require_fits(self.parameters, EPOCH, check_sum, secret)
        answers = {each: self.answer(each) for each in answerers}
        digests = [self.headers[each].seed_digest for each in dealers]
        seeds, wrong = recover_seeds(self.parameters, answers, digests)
        assert not wrong
        votes = [self.bodies[each].votes for each in dealers]
        total = add_votes(self.parameters, votes, seeds, counts=self.counts)
        return open_counts(self.parameters, self.votes_seed, total, short, counts=self.counts)
