"""Whatever is made of batches, parts and attempts: one charge for each vote.

A run takes one seed, and the keys of aggregator and queriers. Queries are dealt into batches, with
some in several; every batch is sent in any form, as one querier's rows or as parts of which some
cannot be read, again and in later attempts, is withdrawn, and given back. After each message no
query was voted on in two batches, each query that was voted on is charged to its batch, and the
ledger counts what was charged.
"""

import itertools
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from tests.protocol.attacker import take_out
from tests.protocol.with_masks.federation import Federation, set_up
from tests.small_federation import seal_table, seeded

from dppp.errors import DpppError
from dppp.privacy.ledger.book import Book
from dppp.protocol import shared_batch
from dppp.protocol.messages import BatchId, BatchRequest, SealedQueries, split_query_ids
from dppp.protocol.rows import ballot_request, wrapped_key_of
from dppp.protocol.shared_batch import shared_ballot_request
from dppp.protocol.signing import sign
from dppp.protocol.wire import encode
from dppp.protocol.with_masks.messages import CastRequest, RefundNotice, Withdrawal

pytestmark = pytest.mark.attack

ROWS = 8
STEPS = 30
RUNS = 15
TEACHER = 1


@dataclass
class Mess:
    """One teacher, and whoever sends it requests with the aggregator's key."""

    source: random.Random
    federation: Federation = field(default_factory=lambda: Federation(set_up()))
    batches: list[tuple[int, ...]] = field(default_factory=list)
    voted: defaultdict[int, set[BatchId]] = field(default_factory=lambda: defaultdict(set))
    later_votes: int = 0

    def __post_init__(self) -> None:
        self.roster = self.federation.take_keys()
        self.teacher = self.federation.teachers[TEACHER]
        self.asked = BatchId(bytes(32))
        self.teacher._models = (self.vote,)

    def vote(self, rows: Any) -> list[int]:
        for row in np.asarray(rows).ravel():
            self.voted[int(row)].add(self.asked)
        return [0] * len(rows)

    @staticmethod
    def part(task: Any, rows: Sequence[int]) -> SealedQueries:
        """All under one key: whoever has it may send them in any form."""
        return seal_table(task, [[float(each)] for each in rows])

    def in_any_form(self, rows: tuple[int, ...]) -> bytes:
        """A ballot request about these rows, in this order."""
        task, source, signer = self.federation.task, self.source, self.federation.setting
        deadline = self.federation.now + 900
        cuts = sorted(source.sample(range(1, len(rows)), source.randrange(len(rows))))
        if not cuts:
            whole = BatchRequest(deadline=deadline, queries=self.part(task, rows))
            unsigned = replace(
                ballot_request(whole), wrapped_key=wrapped_key_of(whole.queries, TEACHER)
            )
            return encode(sign(unsigned, signer.aggregator_signer))
        edges = [0, *cuts, len(rows)]
        parts = [self.part(task, rows[a:b]) for a, b in itertools.pairwise(edges)]
        spoilt = [
            replace(each, sealed=bytes(len(each.sealed))) if source.random() < 0.5 else each
            for each in parts
        ]
        request = BatchRequest(deadline=deadline, queries=spoilt[0], others=tuple(spoilt[1:]))
        return encode(sign(shared_ballot_request(request, TEACHER), signer.aggregator_signer))

    def withdrawals(self, batch: BatchId, attempt: int) -> tuple[bytes, ...]:
        """As if everybody but this teacher had withdrawn."""
        setting = self.federation.setting
        return tuple(
            encode(
                sign(
                    Withdrawal(
                        task_id=setting.task.task_id, batch_id=batch, attempt=attempt, teacher=each
                    ),
                    setting.signer(each),
                )
            )
            for each in setting.everybody
            if each != TEACHER
        )

    def step(self) -> None:
        task, source = self.federation.task, self.source
        if not self.batches or source.random() < 0.3:
            some = source.sample(range(ROWS), source.randint(1, 4))
            self.batches.append(tuple(some))
        rows = source.choice(self.batches)
        batch = self.part(task, rows).batch_id
        ledger = self.teacher._ledger
        attempt = max(1, ledger.current_attempt(batch) + source.choice([0, 1, 1]))
        shown = self.withdrawals(batch, attempt - 1) if attempt > 1 else ()
        self.asked = batch
        ids: dict[str, Any] = {"task_id": task.task_id, "batch_id": batch}
        if source.random() < 0.1:
            given_up = self.withdrawals(batch, attempt)
            self.send(RefundNotice(**ids, attempt=attempt, withdrawals=given_up))
            return
        self.send(
            CastRequest(
                **ids,
                attempt=attempt,
                epoch=self.roster.epoch,
                roster_hash=self.roster.hash,
                withdrawals=shown,
                request=self.in_any_form(rows),
            )
        )

    def send(self, message: Any) -> None:
        try:
            self.teacher.handle(self.federation.sign(message), now=self.federation.now)
        except DpppError:
            return
        self.later_votes += getattr(message, "attempt", 1) > 1

    def require_charged(self) -> None:
        batches = self.teacher._ledger._book.batches
        self.teacher._ledger.summary()  # which reads what was written last
        for row, asked in self.voted.items():
            assert len(asked) == 1, "a query was voted on in two batches"
            (batch,) = asked
            (query_id,) = split_query_ids(self.part(self.federation.task, [row]).query_ids)
            assert query_id in batches[batch].query_ids
        kept = sum(len(each.query_ids) for each in batches.values() if not each.is_refunded)
        assert self.federation.charged(TEACHER) == kept


def run(seed: int) -> Mess:
    mess = Mess(seeded("votes and charges", seed))
    for _ in range(STEPS):
        mess.step()
        mess.require_charged()
    return mess


def run_all() -> list[Mess]:
    return [run(seed) for seed in range(RUNS)]


def test_every_vote_is_charged_once_in_whatever_form_it_is_asked_for() -> None:
    assert sum(mess.later_votes for mess in run_all()) > RUNS


@pytest.mark.parametrize("rule", ["charged before", "asked in another batch"])
def test_without_either_rule_some_votes_would_be_free(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if rule == "charged before":
        take_out(monkeypatch, Book.require_charged, "if free:", "if False:")
    else:
        take_out(
            monkeypatch,
            shared_batch.read_parts,
            "rows.opened is None or not is_fresh(rows.opened.query_ids)",
            "rows.opened is None",
        )
        monkeypatch.setattr(Book, "_require_fresh", lambda *_: None)
    with pytest.raises(AssertionError):
        run_all()
