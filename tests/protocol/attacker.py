"""An aggregator that keeps no rule, with its colluders' keys; and a way to take a defence out.

Every attack is run twice: against the code as it is, where it must fail, and against the code with
exactly one defence taken out, where it must succeed. So no attack fails for the wrong reason.
"""

import inspect
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from gmpy2 import mpz
from tests.protocol.parties import (
    CLASSES,
    RecordedRandomness,
    Setting,
    certified_list_of,
    endorsed_by,
    list_of,
    new_ledger,
    new_teacher,
    seeded,
    sent_to,
)
from tests.small_federation import reply_of

from dppp.errors import DecryptionError, DpppError
from dppp.paillier.decryption.combination import open_tallies
from dppp.paillier.decryption.shares import DecryptionShares, make_decryption_shares
from dppp.paillier.encryption import add_ballots, read_ciphertexts
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.ledger.store import MemoryStore
from dppp.protocol.messages import Ballot, BatchId, BatchRequest, SignedShares
from dppp.protocol.teacher import Teacher
from dppp.protocol.wire import decode


class NotOpened(Exception):
    """The attacker did not get enough shares; what the teachers said is here by teacher."""

    def __init__(self, refusals: Mapping[int, DpppError]) -> None:
        super().__init__(str(refusals))
        self.refusals = refusals


class Attacker:
    """Holds the key shares of the colluders and talks to all others as it likes."""

    def __init__(self, setting: Setting, *, colluders: Sequence[int] = ()) -> None:
        self.setting = setting
        self.colluders = tuple(colluders)
        self.honest = tuple(each for each in setting.everybody if each not in self.colluders)
        self.randomness = {
            index: RecordedRandomness(seeded("honest", index)) for index in self.honest
        }
        self.ledgers: dict[int, Ledger] = {
            index: new_ledger(setting, index, MemoryStore()) for index in self.honest
        }
        self.teachers: dict[int, Teacher] = {
            index: new_teacher(
                setting, index, self.ledgers[index], randomness=self.randomness[index]
            )
            for index in self.honest
        }

    def collect(
        self, request: BatchRequest, *, of: Sequence[int] | None = None
    ) -> dict[int, bytes]:
        """Honest ballots for a request."""
        asked = self.honest if of is None else of
        return {
            index: reply_of(self.teachers[index], sent_to(self.setting, request, index))
            for index in asked
        }

    def open(
        self,
        batch: BatchId,
        ballots: Sequence[bytes],
        *,
        of: Sequence[int] | None = None,
    ) -> list[mpz]:
        """The plaintexts of the sum of these ballots, if enough teachers help.

        Colluders endorse whatever has a ballot of theirs in it.
        """
        data = list_of(self.setting, batch, ballots)
        public = self.setting.public
        tally = add_ballots(
            public, [read_ciphertexts(public, decode(each, Ballot).ciphertexts) for each in ballots]
        )
        shares = [
            make_decryption_shares(public, self.setting.key.shares[index - 1], tally)
            for index in self.colluders
        ]
        asked = self.honest if of is None else of
        refusals: dict[int, DpppError] = {}
        listed = {decode(each, Ballot).teacher for each in ballots}
        endorsements = [
            endorsed_by(self.setting, each, data) for each in self.colluders if each in listed
        ]
        for index in asked:
            try:
                endorsements.append(reply_of(self.teachers[index], data))
            except DpppError as refusal:
                refusals[index] = refusal
        certified = certified_list_of(self.setting, data, endorsements)
        for index in asked:
            try:
                answer = decode(reply_of(self.teachers[index], certified), SignedShares)
                shares.append(DecryptionShares.from_bytes(public, answer.shares))
            except DpppError as refusal:
                refusals.setdefault(index, refusal)
        try:
            return list(open_tallies(public, tally, shares).plaintexts)
        except DecryptionError:
            raise NotOpened(refusals) from None

    def entries(self, plaintexts: Sequence[mpz], queries: int) -> tuple[int, ...]:
        """The sums in the slots, within bounds or not."""
        packing = self.setting.task.packing
        width, count = packing.slot_bits, queries * len(CLASSES)
        assert count <= packing.slots
        return tuple(int(plaintexts[0] >> slot * width) & (1 << width) - 1 for slot in range(count))

    def answered(self, index: int) -> int:
        """How many queries a teacher's ledger has charged."""
        (data,) = self.ledgers[index].summary().data
        return data.tasks[0].answered


def take_out(
    monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any], defence: str, instead: str
) -> None:
    """Put `instead` in the place of a piece of a function's source, wherever it is used."""
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(defence) == 1, f"{function.__qualname__} no longer holds {defence!r}"
    made: dict[str, Any] = {}
    module = vars(sys.modules[function.__module__])
    exec(compile(source.replace(defence, instead), "<weakened>", "exec"), module, made)  # noqa: S102
    monkeypatch.setattr(function, "__code__", made[function.__name__].__code__)
