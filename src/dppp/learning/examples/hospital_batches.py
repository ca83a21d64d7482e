"""Patients asked in batches while hospitals fail: the demo's protocol, without its console.

Everything is as between organisations (federation.py); a failure is a message not delivered.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from dppp.errors import BatchAborted, BudgetExceeded
from dppp.federation import Deliver, Federation, OnMessage, Parties, Reply, in_process
from dppp.privacy.accounting import account
from dppp.protocol.events import Send
from dppp.protocol.messages import BallotRequest
from dppp.protocol.receipt import Receipt
from dppp.protocol.release import Release
from dppp.protocol.transcript import Transcript
from dppp.protocol.wire import decode, kind_of
from dppp.protocol.with_masks.messages import CastRequest, KeyRequest, Roster

_BEFORE_A_BALLOT = {each.KIND for each in (BallotRequest, KeyRequest, Roster, CastRequest)}
"""Messages to a teacher that come before its ballot, under either cryptosystem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A hospital that falls silent in a batch and stays so: at once, or after its ballot."""

    hospital: int
    batch: int
    is_after_ballot: bool = False

    def silences(self, send: Send, batch: int) -> bool:
        """Whether this message of that batch is never answered."""
        if send.teacher != self.hospital:
            return False
        if batch == self.batch and self.is_after_ballot:
            return kind_of(send.data) not in _BEFORE_A_BALLOT
        return batch >= self.batch


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredBatch:
    """What came of one batch, and what all batches up to it have cost."""

    number: int
    answers: tuple[Release, ...]
    transcript: Transcript
    voters: tuple[int, ...]
    answered: int
    """Queries of this batch and those before."""
    epsilon_spent: float
    """Of these queries together, at the task's δ."""


def ask_batch(
    parties: Parties,
    rows: ArrayLike,
    *,
    number: int,
    answered_before: int,
    failures: Sequence[Failure] = (),
    progress: OnMessage = lambda *_: None,
) -> AnsweredBatch:
    """Run one batch of new inputs to its release, or raise who was missing."""
    deliver = in_process(parties.teachers, progress=progress)
    federation = Federation(
        aggregator=parties.aggregator, deliver=_lose_messages(deliver, failures, number)
    )
    outcome = federation.ask(rows)
    assert outcome.transcript is not None, "every input is new"
    answered = answered_before + len(outcome.answers)
    spending = parties.task.certificate.spending(answered)
    return AnsweredBatch(
        number=number,
        answers=outcome.answers,
        transcript=outcome.transcript,
        voters=voters_of(outcome.transcript),
        answered=answered,
        epsilon_spent=account([spending], parties.task.delta),
    )


def _lose_messages(deliver: Deliver, failures: Sequence[Failure], batch: int) -> Deliver:
    def deliver_the_rest(sends: Sequence[Send], now: int) -> list[Reply]:
        heard = [send for send in sends if not any(each.silences(send, batch) for each in failures)]
        return deliver(heard, now)

    return deliver_the_rest


def voters_of(transcript: Transcript) -> tuple[int, ...]:
    """The teachers whose ballots are in the list."""
    return decode(transcript.receipt, Receipt).participants


def ask_past_the_budget(
    parties: Parties, row: ArrayLike, *, number: int, failures: Sequence[Failure] = ()
) -> tuple[str, ...]:
    """Ask one query more than was agreed: what the teachers who are still there say to it."""
    refusals: list[str] = []
    deliver = in_process(parties.teachers, note=refusals.append)
    federation = Federation(
        aggregator=parties.aggregator, deliver=_lose_messages(deliver, failures, number)
    )
    with contextlib.suppress(BatchAborted, BudgetExceeded):
        federation.ask(row)
    return tuple(refusals)
