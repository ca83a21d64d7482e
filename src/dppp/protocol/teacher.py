"""A teacher: votes, and helps to open a list of ballots, once. Refuses everything else.

    request ──► check task, deadline, inputs, budget ─► votes ─► ballot ─► ledger ─► ballot
    list ─────► own ballot in it? complete? proofs? ─► multiply anew ─► ledger ─► shares
    proof request ──► was this list served? ─► proof

A message comes in as bytes and an answer goes out as bytes; a refusal is an exception that says
why. Nothing is sent before it is in the ledger, and a repeated message gets the stored bytes. What
the teacher's model says or fails to say never changes whether the teacher takes part.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dppp.errors import (
    InputError,
    ListNotServed,
    OwnBallotMissing,
    RequestExpired,
    WrongTask,
)
from dppp.paillier.blinding import Blinding
from dppp.paillier.decryption.shares import DecryptionShares, make_decryption_shares
from dppp.paillier.encryption import add_ballots, read_ciphertexts
from dppp.paillier.keys import KeyShare, PublicKey
from dppp.paillier.share_proofs import prove_shares
from dppp.privacy.ledger import Ledger
from dppp.privacy.sampling import RandomSource, system_randomness
from dppp.protocol.ballots import check_list, make_ballot, read_ballot
from dppp.protocol.inputs import decode_inputs
from dppp.protocol.messages import (
    Ballot,
    BallotList,
    BatchRequest,
    ProofRequest,
    SignedShareProof,
    SignedShares,
    TaskId,
    batch_id,
    list_hash,
    query_id,
    share_context,
)
from dppp.protocol.signing import UNSIGNED, Signer, sign
from dppp.protocol.task import Task
from dppp.protocol.votes import Predict, Votes, cast_votes
from dppp.protocol.wire import decode, encode, kind_of


class Teacher:
    """Teacher `index` of a task; its place among the task's teachers, from 1."""

    def __init__(
        self,
        *,
        index: int,
        task: Task,
        public: PublicKey,
        key_share: KeyShare,
        signer: Signer,
        ledger: Ledger,
        predict: Predict,
        draw_blinding: Callable[[], Blinding],
        randomness: RandomSource = system_randomness,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`note` takes remarks that stay at home, such as why a model failed."""
        task.require_key(public)
        if not 1 <= index <= len(task.teachers) or key_share.index != index:
            raise InputError(f"the key share is teacher {key_share.index}'s, not teacher {index}'s")
        self.index = index
        self.task = task
        self._public = public
        self._key_share = key_share
        self._signer = signer
        self._ledger = ledger
        self._predict = predict
        self._draw_blinding = draw_blinding
        self._randomness = randomness
        self._note = note

    @property
    def queries_left(self) -> int:
        """Queries of the task that the ledger may still be charged for."""
        tasks = [task for data in self._ledger.summary().data for task in data.tasks]
        return sum(task.left for task in tasks if task.task_id == self.task.task_id)

    def handle(self, data: bytes, *, now: int) -> bytes:
        """The answer to any message; `now` is in seconds of the common clock."""
        match kind_of(data):
            case BatchRequest.KIND:
                return self.vote(data, now=now)
            case BallotList.KIND:
                return self.open_list(data)
            case ProofRequest.KIND:
                return self.prove_shares(data)
            case other:
                raise InputError(f"a teacher has no answer to a {other}")

    def vote(self, data: bytes, *, now: int) -> bytes:
        """A ballot for a batch: charged and stored, then returned."""
        request = decode(data, BatchRequest)
        self._require_task(request.task_id)
        inputs = decode_inputs([query.input for query in request.queries], len(self.task.features))
        query_ids = [query_id(self.task.task_id, query) for query in request.queries]
        batch = batch_id(self.task.task_id, query_ids)
        stored = self._ledger.find_ballot(batch)
        if stored is not None:
            return stored
        if now > request.deadline:
            raise RequestExpired(
                f"the deadline of this batch passed {now - request.deadline} s ago; "
                "nothing was charged; send the batch anew"
            )
        self._ledger.check_can_answer(self.task.task_id, batch, query_ids)
        ballot = make_ballot(
            self.task,
            self._public,
            self._cast_votes(inputs),
            batch=batch,
            teacher=self.index,
            signer=self._signer,
            draw_blinding=self._draw_blinding,
            randomness=self._randomness,
        )
        return self._ledger.record_ballot(self.task.task_id, batch, query_ids, ballot)

    def open_list(self, data: bytes) -> bytes:
        """Decryption shares of the product of a list, made here, for one list a batch."""
        ballot_list = decode(data, BallotList)
        self._require_task(ballot_list.task_id)
        served = list_hash(ballot_list)
        stored = self._ledger.find_share(ballot_list.batch_id, served)
        if stored is not None:
            return stored
        size = self._size_of_own_ballot(ballot_list)
        tally = check_list(self.task, self._public, ballot_list, size=size)
        shares = make_decryption_shares(self._public, self._key_share, tally)
        unsigned = SignedShares(
            task_id=self.task.task_id,
            batch_id=ballot_list.batch_id,
            list_hash=served,
            teacher=self.index,
            shares=shares.to_bytes(self._public),
            signature=UNSIGNED,
        )
        message = encode(sign(unsigned, self._signer))
        return self._ledger.record_list(ballot_list.batch_id, served, message)

    def prove_shares(self, data: bytes) -> bytes:
        """A proof of the shares given before; tells nothing new about the votes."""
        ballot_list = decode(decode(data, ProofRequest).ballot_list, BallotList)
        self._require_task(ballot_list.task_id)
        served = list_hash(ballot_list)
        stored = self._ledger.find_share(ballot_list.batch_id, served)
        if stored is None:
            raise ListNotServed(
                "no shares were given for this list, so there is nothing to prove; "
                "send the ballot list first"
            )
        shares = DecryptionShares.from_bytes(self._public, decode(stored, SignedShares).shares)
        size = self._size_of_own_ballot(ballot_list)
        ballots = [
            read_ballot(self.task, self._public, each, batch=ballot_list.batch_id, size=size)
            for each in ballot_list.ballots
        ]
        proof = prove_shares(
            self._public,
            self._key_share,
            add_ballots(self._public, [ballot.ciphertexts for ballot in ballots]),
            shares,
            context=share_context(self.task.task_id, ballot_list.batch_id, served),
            random_bytes=self._randomness,
        )
        unsigned = SignedShareProof(
            task_id=self.task.task_id,
            batch_id=ballot_list.batch_id,
            list_hash=served,
            teacher=self.index,
            proof=proof.to_bytes(self._public),
            signature=UNSIGNED,
        )
        return encode(sign(unsigned, self._signer))

    def _require_task(self, task_id: TaskId) -> None:
        if task_id != self.task.task_id:
            raise WrongTask(
                "this message is for another task; compare the task's hash with the aggregator's"
            )

    def _size_of_own_ballot(self, ballot_list: BallotList) -> int:
        """How many ciphertexts a ballot has; refuses a list without the own ballot in it."""
        own = self._ledger.find_ballot(ballot_list.batch_id)
        if own is None or own not in ballot_list.ballots:
            raise OwnBallotMissing(
                "this list does not hold the ballot that this teacher cast, byte for byte; "
                "it helps to open no other"
            )
        return len(read_ciphertexts(self._public, decode(own, Ballot).ciphertexts))

    def _cast_votes(self, inputs: NDArray[np.float64]) -> Votes:
        classes = len(self.task.class_names)
        return cast_votes(self._predict, inputs, classes, note=self._note)
