"""The aggregator: runs batches (batch.py), keeps what must survive, trusted by nobody.

Messages come in with the teacher that the channel says they are from. Messages to send come out,
signed with the aggregator's key, which stands in the task; with them come events (events.py). The
clock is handed in as `now`, in seconds. The request, the closed list and the outcome are in the
store before anything that follows from them is sent: a second list would be refused by every honest
teacher.

After a restart, and whenever an aggregator that shares the store has vanished, `unfinished` finds
the batches that somebody has to go on with, and `adopt` goes on with one: teachers answer from
their ledgers. Whoever comes second to the end takes the first one's outcome.
"""

from collections.abc import Collection, Iterable
from typing import Any

from dppp.errors import DpppError, InputError, PeerFault, Refusal, SignatureFault
from dppp.hashing import hash_parts
from dppp.paillier.keys import PublicKey
from dppp.protocol.batch import Batch, BatchMaker, Patience, Wanted
from dppp.protocol.batch_store import BatchStore, Culprit, StoredBatches
from dppp.protocol.events import (
    Abort,
    Aborted,
    BatchStatus,
    Event,
    Outcome,
    Output,
    Released,
    Send,
    Started,
    TeacherBlamed,
)
from dppp.protocol.messages import BatchId, BatchRequest, QueryId, split_query_ids
from dppp.protocol.receipt import Receipt
from dppp.protocol.refusals import RefusalNotice, read_notice
from dppp.protocol.release import Release
from dppp.protocol.shared_batch import require_distinct
from dppp.protocol.signing import Signer, require_from_aggregator, sign
from dppp.protocol.task import Task
from dppp.protocol.transcript import Transcript
from dppp.protocol.wire import decode, kind_of
from dppp.protocol.with_masks.batch import MaskBatches
from dppp.protocol.with_paillier.batch import PaillierBatches


class Aggregator:
    """All batches of one task.

    >>> from dppp import calibrate, create_federation
    >>> from dppp.paillier.dealer import deal
    >>> promise = calibrate("skellam", epsilon=8, delta=1e-5, teachers=4, queries=5, classes=2)
    >>> key = deal(teachers=4, threshold=3, modulus_bits=512, insecure_testing=True)
    >>> parties = create_federation(
    ...     name="fruit",
    ...     class_names=["apple", "pear"],
    ...     features=["weight"],
    ...     certificate=promise,
    ...     models=[lambda rows: [1] * len(rows)] * 4,
    ...     key=key,
    ... )
    >>> from dppp.protocol.inputs import encode_rows
    >>> from dppp.protocol.messages import BatchRequest
    >>> from dppp.protocol.rows import make_row_secret, seal_rows
    >>> queries = seal_rows(parties.task, make_row_secret(), encode_rows([[150.0]], 1))
    >>> request = BatchRequest(deadline=600, queries=queries)
    >>> output = parties.aggregator.start(request, now=0)
    >>> [send.teacher for send in output.sends]
    [1, 2, 3, 4]
    """

    def __init__(
        self,
        *,
        task: Task,
        public: PublicKey | None = None,
        signer: Signer,
        store: BatchStore,
        patience: Patience | None = None,
    ) -> None:
        """`public` is the key of a task under paillier; masks have none."""
        self.task = task
        self._signer = signer
        self._stored = StoredBatches(store)
        self._maker = _batch_maker(task, public, patience or Patience(), signer)
        self._batches: dict[BatchId, Batch] = {}  # those under way; the store has the others
        self._ended: set[BatchId] = set()
        self._releases: dict[QueryId, Release] = {}

    def start(self, request: BatchRequest, *, now: int) -> Output:
        """Open a batch: its request, for every teacher."""
        return self.adopt(self.put(request, now=now), now=now)

    def put(self, request: BatchRequest, *, now: int) -> BatchId:
        """Sign a request and store it, for whichever aggregator runs its batch.

        It is stored signed: whoever can write to the store cannot ask in the aggregator's name.
        """
        if request.task_id != self.task.task_id:
            raise InputError("the request is for another task", hint="compare the task's hash")
        require_distinct(self.task, request)
        if now > request.deadline:
            raise InputError("the deadline of the request has passed", hint="choose a later one")
        identifier = request.batch_id
        self._stored.put_request(identifier, sign(request, self._signer))
        return identifier

    def unfinished(self) -> tuple[BatchId, ...]:
        """Batches of the store without an outcome; the releases of all others are learned."""
        open_here = [each for each in self._stored.requested() if each not in self._ended]
        return tuple(each for each in open_here if self.outcome(each) is None)

    def adopt(self, identifier: BatchId, *, now: int) -> Output:
        """Go on with a batch that is in the store: what has to be asked.

        What no aggregator of this task put into the store ends the batch: it stays there and can
        never run, and whoever waits for it should know.
        """
        if identifier in self._batches:
            batch = self._batches[identifier]
            return Output(sends=_sends(batch, batch.wanted()))
        if self.outcome(identifier) is not None:
            return Output()
        if not self._stored.has_request(identifier):
            raise InputError("a batch that is not in the store", hint="send its request first")
        try:
            batch = self._restore(identifier, now)
        except (InputError, Refusal, PeerFault) as refusal:
            abort = Abort(reason=f"what the store has of it is refused: {refusal.message}")
            outcome = self._stored.put_outcome(identifier, abort)
            return Output(events=(self._end(identifier, outcome),))
        self._batches[identifier] = batch
        started = Started(batch=identifier, queries=len(batch.query_ids))
        return Output(sends=_sends(batch, batch.wanted()), events=(started, *batch.take_news()))

    def receive(self, teacher: int, data: bytes, *, now: int) -> Output:
        """Take a message from a teacher; a bad one that it signed is remembered against it."""
        if not 1 <= teacher <= self.task.trust.teachers:
            return Output()  # a stranger's faults must not count as answers
        try:
            message_kind = kind_of(data)
            if message_kind == RefusalNotice.KIND:
                return self._take_refusal(read_notice(self.task, teacher, data), now)
            if message_kind not in self._maker.batch_kinds:
                self._maker.take(message_kind, teacher, data)
                return self.tick(now)
            message = decode(data, self._maker.batch_kinds[message_kind])
            batch = self._batch_of(message)
        except DpppError:
            return Output()  # names no batch of ours: nobody to remember it against
        before = batch.wanted()
        try:
            batch.take(message, teacher, data, now=now)
        except SignatureFault:
            pass  # whoever carries messages could have made it: nobody is blamed, and it is dropped
        except (PeerFault, InputError) as error:
            batch.blame(teacher, error.message)
        advanced = self._advance(batch, now)
        return advanced + Output(sends=_sends(batch, batch.wanted() - before))

    def tick(self, now: int) -> Output:
        """Let time pass: close votes and openings whose time has come."""
        output = Output()
        for batch in list(self._batches.values()):
            before = batch.wanted()
            batch.ask_all_in_time(now)
            output += self._advance(batch, now)
            output += Output(sends=_sends(batch, batch.wanted() - before))
        return output

    def remind(
        self, batches: Collection[BatchId] | None = None, *, teacher: int | None = None
    ) -> Output:
        """Everything that was asked and not answered, again; for channels that lose messages.

        Of these batches and this teacher only, where they are named.
        """
        chosen = [
            batch
            for identifier, batch in self._batches.items()
            if batches is None or identifier in batches
        ]
        return Output(sends=tuple(send for each in chosen for send in _reminders(each, teacher)))

    def refresh(self, identifier: BatchId) -> Output:
        """Another aggregator may have ended a batch that is under way here as well."""
        outcome = self._stored.outcome(identifier) if identifier in self._batches else None
        return Output() if outcome is None else Output(events=(self._end(identifier, outcome),))

    def outcome(self, identifier: BatchId) -> Outcome | None:
        """What a batch came to; None while it is under way, and until the store has it."""
        if identifier in self._batches:
            return None
        outcome = self._stored.outcome(identifier)
        if outcome is not None:
            self._note_end(identifier, outcome)
        return outcome

    def transcript(self, identifier: BatchId) -> Transcript | None:
        """The transcript of a released batch: its receipt with the list of ballots."""
        return self._stored.transcript(identifier)

    def status(self, identifier: BatchId) -> BatchStatus | None:
        """How far a batch is that is under way here."""
        batch = self._batches.get(identifier)
        return None if batch is None else batch.status

    def learn(self, receipt: Receipt) -> None:
        """Remember what was released, whoever ran the batch."""
        query_ids = split_query_ids(receipt.query_ids)
        self._releases.update(zip(query_ids, receipt.answers, strict=True))

    def known_release(self, query_id: bytes) -> Release | None:
        """What was released before for a query: free."""
        return self._releases.get(QueryId(query_id))

    def left_out(self) -> frozenset[int]:
        """Who takes part in no new batch, for a fault in one before, until an operator lets it in.

        Under paillier a fault counts in its own batch only, and nobody is remembered.
        """
        return frozenset(each.teacher for each in self._stored.culprits())

    def ended_among(self, batches: Iterable[BatchId]) -> set[BatchId]:
        """Which of these have ended, here or elsewhere; what they released is known after this."""
        return {each for each in batches if each in self._ended or self.outcome(each) is not None}

    def derive_secret(self, purpose: str) -> bytes:
        """A secret that whoever signs for this aggregator can work out, and nobody else.

        Signatures of Ed25519 are the same each time. This one is over a domain of its own, and is
        never shown.
        """
        asked = hash_parts("dppp derive secret 1", (self.task.task_id, purpose.encode()))
        return hash_parts("dppp derived secret 1", (self._signer(asked),))

    def _take_refusal(self, notice: RefusalNotice, now: int) -> Output:
        """Said by its teacher; it changes nothing but what is told of the batch."""
        output = Output()
        for batch in self._batches.values():
            if batch.is_about(notice.about):
                batch.note_refusal(notice, now=now)
                output += Output(events=batch.take_news())
        return output

    def _batch_of(self, message: Any) -> Batch:
        if message.batch_id not in self._batches:
            raise InputError("a message about a batch that is not known here")
        return self._batches[message.batch_id]

    def _advance(self, batch: Batch, now: int) -> Output:
        """Make the transitions whose time has come; what is to be sent follows from the store."""
        if batch.batch_id not in self._batches:
            return Output()
        batch.advance(self._stored, now=now)
        news = batch.take_news()
        self._remember_culprits(news)
        if batch.outcome is None:
            return Output(events=news)
        outcome = self._stored.put_outcome(batch.batch_id, batch.outcome)
        events = (*news, self._end(batch.batch_id, outcome))
        return Output(sends=batch.farewell(), events=events)

    def _restore(self, identifier: BatchId, now: int) -> Batch:
        """A batch as the store has it, if an aggregator of this task put it there."""
        request = self._stored.request(identifier)
        assert request is not None, "adopt looked for it"
        if request.task_id != self.task.task_id:
            raise InputError("its request is for another task", hint="give each task its own store")
        require_from_aggregator(self.task, request)
        batch = self._maker.make(request)
        if batch.batch_id != identifier:
            raise InputError("its request is that of another batch; somebody changed it")
        if self._stored.attempt(identifier, 1) is None:
            culprits = self._stored.culprits()
            batch.leave_out({each.teacher: each.reason for each in culprits})
        batch.restore(self._stored, now=now)
        return batch

    def _remember_culprits(self, news: Iterable[Event]) -> None:
        """Under masks whoever was at fault is left out of later batches too."""
        for event in news:
            if isinstance(event, TeacherBlamed) and self.task.masks is not None:
                self._stored.put_culprit(
                    Culprit(teacher=event.teacher, batch_id=event.batch, reason=event.reason)
                )

    def _end(self, identifier: BatchId, outcome: Outcome) -> Event:
        """A batch has this outcome in the store, whoever put it there."""
        batch = self._batches.pop(identifier, None)
        if batch is not None:
            batch.end_with(outcome)
        self._note_end(identifier, outcome)
        if isinstance(outcome, Abort):
            return Aborted(batch=identifier, abort=outcome)
        return Released(batch=identifier, receipt=outcome)

    def _note_end(self, identifier: BatchId, outcome: Outcome) -> None:
        self._ended.add(identifier)
        if isinstance(outcome, Receipt):
            self.learn(outcome)


def _sends(batch: Batch, wanted: Wanted) -> tuple[Send, ...]:
    """A message for each who is asked for something, in the order of the teachers."""
    return tuple(
        Send(teacher=teacher, data=data)
        for teacher, step in sorted(wanted)
        for data in batch.messages(teacher, step)
    )


def _reminders(batch: Batch, only: int | None) -> tuple[Send, ...]:
    """The same for all that is still wanted, with what a restarted teacher has forgotten."""
    return tuple(
        Send(teacher=teacher, data=data)
        for teacher, step in sorted(batch.wanted())
        if only in (None, teacher)
        for data in batch.reminders(teacher, step)
    )


def _batch_maker(
    task: Task, public: PublicKey | None, patience: Patience, signer: Signer
) -> BatchMaker:
    if task.masks is not None:
        return MaskBatches(task=task, patience=patience, signer=signer)
    if public is None:
        raise InputError("the aggregator of a task under paillier needs its public key")
    return PaillierBatches(task=task, public=public, patience=patience, signer=signer)
