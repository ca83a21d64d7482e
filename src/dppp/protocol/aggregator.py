"""The aggregator: runs batches (batch.py), keeps what must survive, trusted by nobody.

Messages come in with the teacher that the channel says they are from; messages to send come out,
signed with the aggregator's key, which stands in the task. The clock is handed in as `now`, in
seconds. The request, the closed list and the outcome are in the store before anything that follows
from them is sent: a second list would be refused by every honest teacher. After a restart `resume`
sends again what was pending; teachers answer from their ledgers. Several aggregators may share a
store: whoever takes over a batch (`adopt`) goes on with what is in it, and whoever comes second to
the end takes the first one's outcome.
"""

from dataclasses import dataclass, field

from dppp.errors import DpppError, InputError, PeerFault, SignatureFault
from dppp.paillier.keys import PublicKey
from dppp.protocol.batch import Abort, Batch, Patience, Phase, Step
from dppp.protocol.batch_store import BatchStore
from dppp.protocol.inputs import decode_inputs
from dppp.protocol.messages import (
    Ballot,
    BallotList,
    BatchId,
    BatchRequest,
    Endorsement,
    FromTeacher,
    SignedShareProof,
    SignedShares,
)
from dppp.protocol.receipt import Receipt
from dppp.protocol.release import Release
from dppp.protocol.signing import Signer, require_from_aggregator, sign
from dppp.protocol.task import Task
from dppp.protocol.transcript import Transcript
from dppp.protocol.wire import decode, encode, kind_of

_REQUEST, _LIST, _OUTCOME = "request", "list", "outcome"


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """A message for one teacher."""

    teacher: int
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a batch is: whose ballots, endorsements and decryption shares have come in."""

    phase: Phase
    queries: int
    voters: tuple[int, ...]
    endorsers: tuple[int, ...]
    sharers: tuple[int, ...]


class Aggregator:
    """All batches of one task."""

    def __init__(
        self,
        *,
        task: Task,
        public: PublicKey,
        signer: Signer,
        store: BatchStore,
        patience: Patience | None = None,
    ) -> None:
        task.require_key(public)
        self.task = task
        self._public = public
        self._signer = signer
        self._store = store
        self._patience = patience or Patience()
        self._batches: dict[BatchId, Batch] = {}  # those under way; the store has the others
        self._faults: dict[BatchId, dict[int, str]] = {}
        self._answers: dict[bytes, Release] = {}

    def start(self, request: BatchRequest, *, now: int) -> list[Send]:
        """Open a batch: its request, for every teacher."""
        return self.adopt(self.put(request, now=now), now=now)

    def put(self, request: BatchRequest, *, now: int) -> BatchId:
        """Sign a request and store it, for whichever aggregator runs its batch.

        It is stored signed: whoever can write to the store cannot ask in the aggregator's name.
        """
        if request.task_id != self.task.task_id:
            raise InputError("the request is for another task; compare the task's hash")
        decode_inputs([query.input for query in request.queries], len(self.task.features))
        if now > request.deadline:
            raise InputError("the deadline of the request has passed; choose a later one")
        identifier = self._new_batch(request).batch_id
        self._store.put_once(identifier, _REQUEST, encode(sign(request, self._signer)))
        return identifier

    def adopt(self, identifier: BatchId, *, now: int) -> list[Send]:
        """Go on with a batch that is in the store: what has to be asked."""
        if identifier not in self._batches:
            self._restore(identifier, now)
        batch = self._batches.get(identifier)
        return [] if batch is None else _sends(batch, batch.wanted())

    def receive(self, teacher: int, data: bytes, *, now: int) -> list[Send]:
        """Take a message from a teacher; a bad one that it signed is remembered against it."""
        if not 1 <= teacher <= self.task.trust.teachers:
            return []  # a stranger's faults must not count as answers
        try:
            batch, message_kind = self._batch_of(data)
        except DpppError:
            return []  # names no batch of ours: nobody to remember it against
        before = batch.wanted()
        try:
            match message_kind:
                case Ballot.KIND:
                    batch.take_ballot(teacher, data, now=now)
                case Endorsement.KIND:
                    batch.take_endorsement(teacher, data, now=now)
                case SignedShares.KIND:
                    batch.take_shares(teacher, data)
                case _:
                    batch.take_proof(teacher, data)
        except SignatureFault:
            pass  # whoever carries messages could have made it: nobody is blamed, and it is dropped
        except (PeerFault, InputError) as error:
            batch.blame(teacher, str(error))
        self._advance(batch, now)
        return _sends(batch, batch.wanted() - before)

    def tick(self, now: int) -> list[Send]:
        """Let time pass: close votes and openings whose time has come."""
        sends: list[Send] = []
        for batch in list(self._batches.values()):
            before = batch.wanted()
            batch.ask_all_in_time(now)
            self._advance(batch, now)
            sends += _sends(batch, batch.wanted() - before)
        return sends

    def resume(self, *, now: int) -> list[Send]:
        """After a restart: read the store, and send again what is pending."""
        sends: list[Send] = []
        for identifier in self._store.having(_REQUEST):
            sends += self.adopt(BatchId(identifier), now=now)
        return sends + self.tick(now)

    def recall(self) -> None:
        """After a restart: remember the answers of all batches that came to an end."""
        for identifier in self._store.having(_OUTCOME):
            self.outcome(BatchId(identifier))

    def remind(self) -> list[Send]:
        """Everything that was asked and not answered, again; for channels that lose messages."""
        return [send for each in self._batches.values() for send in _sends(each, each.wanted())]

    def outcome(self, identifier: BatchId) -> Receipt | Abort | None:
        """What a batch came to; None while it is under way, and until the store has it."""
        if identifier in self._batches:
            return None
        stored = self._store.get(identifier, _OUTCOME)
        return None if stored is None else self._learn(stored)

    def transcript(self, identifier: BatchId) -> Transcript | None:
        """The transcript of a released batch: its receipt with the list of ballots."""
        return stored_transcript(self._store, identifier)

    def refresh(self, identifier: BatchId) -> None:
        """Another aggregator may have ended a batch that is under way here as well."""
        batch, stored = self._batches.get(identifier), self._store.get(identifier, _OUTCOME)
        if batch is not None and stored is not None:
            self._settle(batch, stored)

    def progress(self, identifier: BatchId) -> Progress | None:
        """How far a batch is that is under way here."""
        batch = self._batches.get(identifier)
        if batch is None:
            return None
        return Progress(
            phase=batch.phase,
            queries=len(batch.query_ids),
            voters=batch.voters,
            endorsers=batch.endorsers,
            sharers=batch.sharers,
        )

    def faults(self, identifier: BatchId) -> dict[int, str]:
        """Who was left out of a batch that was under way here, and why."""
        batch = self._batches.get(identifier)
        return dict(batch.faults) if batch is not None else self._faults.get(identifier, {})

    def learn(self, receipt: Receipt) -> None:
        """Remember the answers of a release, whoever ran its batch."""
        for query, answer in zip(receipt.queries, receipt.answers, strict=True):
            self._answers.setdefault(query.digest, answer)

    def known_answer(self, digest: bytes) -> Release | None:
        """The answer to an input, given its digest, that was released before: free."""
        return self._answers.get(digest)

    def _batch_of(self, data: bytes) -> tuple[Batch, str]:
        kind = kind_of(data)
        kinds: dict[str, type[FromTeacher]] = {
            each.KIND: each for each in (Ballot, Endorsement, SignedShares, SignedShareProof)
        }
        if kind not in kinds:
            raise InputError(f"an aggregator has no use for a {kind}")
        message = decode(data, kinds[kind])
        if message.batch_id not in self._batches:
            raise InputError("a message about a batch that is not known here")
        return self._batches[message.batch_id], kind

    def _advance(self, batch: Batch, now: int) -> None:
        """Make the transitions whose time has come; what is to be sent follows from the store."""
        if batch.batch_id not in self._batches:
            return
        if batch.phase is Phase.VOTING and batch.can_close(now):
            closed = batch.close_voting(now)
            if closed is not None:
                stored = self._store.put_once(batch.batch_id, _LIST, encode(closed))
                batch.endorse_with(decode(stored, BallotList), now=now)
        batch.expire(now)
        if batch.outcome is not None:
            self._settle(
                batch, self._store.put_once(batch.batch_id, _OUTCOME, encode(batch.outcome))
            )

    def _new_batch(self, request: BatchRequest) -> Batch:
        return Batch(self.task, self._public, request, self._patience, self._signer)

    def _restore(self, identifier: BatchId, now: int) -> None:
        outcome = self._store.get(identifier, _OUTCOME)
        if outcome is not None:
            self._learn(outcome)
            return
        request = self._store.get(identifier, _REQUEST)
        if request is None:
            raise InputError("a batch that is not in the store; send its request first")
        batch = self._read_batch(identifier, decode(request, BatchRequest))
        stored_list = self._store.get(identifier, _LIST)
        if stored_list is not None:
            batch.endorse_with(decode(stored_list, BallotList), now=now)
        self._batches[identifier] = batch

    def _read_batch(self, identifier: BatchId, request: BatchRequest) -> Batch:
        """The batch of a stored request, if an aggregator of this task put it there."""
        if request.task_id != self.task.task_id:
            raise InputError("a stored request is for another task; give each task its own store")
        require_from_aggregator(self.task, request)
        batch = self._new_batch(request)
        if batch.batch_id != identifier:
            raise InputError("a stored request stands under another batch; somebody changed it")
        return batch

    def _settle(self, batch: Batch, stored: bytes) -> None:
        """End a batch with the outcome that is in the store, whoever put it there."""
        batch.outcome = self._learn(stored)
        batch.phase = Phase.ABORTED if isinstance(batch.outcome, Abort) else Phase.RELEASED
        if batch.faults:
            self._faults[batch.batch_id] = dict(batch.faults)
        del self._batches[batch.batch_id]

    def _learn(self, stored: bytes) -> Receipt | Abort:
        """Read an outcome, and remember the answers in it."""
        if kind_of(stored) == Abort.KIND:
            return decode(stored, Abort)
        receipt = decode(stored, Receipt)
        self.learn(receipt)
        return receipt


def stored_transcript(store: BatchStore, identifier: BatchId) -> Transcript | None:
    """The transcript of a released batch, put together from the store without reading it."""
    receipt, ballot_list = store.get(identifier, _OUTCOME), store.get(identifier, _LIST)
    if receipt is None or ballot_list is None or kind_of(receipt) == Abort.KIND:
        return None
    return Transcript(receipt=receipt, ballot_list=ballot_list)


def _sends(batch: Batch, wanted: frozenset[tuple[int, Step]]) -> list[Send]:
    """A message for each who is asked for something, in the order of the teachers."""
    return [Send(teacher=teacher, data=batch.message(step)) for teacher, step in sorted(wanted)]
