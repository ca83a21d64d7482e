"""A teacher: votes, and helps to open one certified list of ballots. Refuses everything else.

    request ────────► signed? task, deadline, inputs, budget ─► votes ─► ballot ─► ledger ─► ballot
    list ───────────► signed? own ballot in it, complete, proofs? ─► ledger ─► endorsement
    certified list ─► endorsed here, by t in all, same tallies? ─► ledger ─► shares
    proof request ──► were shares given? ─► proof

A message comes in as bytes and an answer goes out as bytes; a refusal is an exception that says
why. Nothing is sent before it is in the ledger, and a repeated message gets the stored bytes. What
the teacher's model says or fails to say never changes whether the teacher takes part.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dppp.errors import (
    InputError,
    ListFault,
    ListNotEndorsed,
    ListNotServed,
    OwnBallotMissing,
    RequestExpired,
    WrongTask,
)
from dppp.paillier.blinding import Blinding
from dppp.paillier.decryption.shares import DecryptionShares, make_decryption_shares
from dppp.paillier.encryption import Ciphertext, read_ciphertexts, write_ciphertexts
from dppp.paillier.keys import KeyShare, PublicKey
from dppp.paillier.proofs.shares import prove_shares
from dppp.privacy.ledger.ledger import Ledger
from dppp.protocol.ballots import check_list, make_ballot, statement_of
from dppp.protocol.inputs import decode_inputs
from dppp.protocol.messages import (
    Ballot,
    BallotList,
    BatchRequest,
    CertifiedList,
    Endorsement,
    FromAggregator,
    ListStatement,
    ProofRequest,
    SignedShareProof,
    SignedShares,
    batch_id,
    list_hash,
    share_context,
    tally_hash,
)
from dppp.protocol.signing import Signer, require_certified, require_from_aggregator, sign
from dppp.protocol.task import Task
from dppp.protocol.votes import Predict, Votes, cast_votes
from dppp.protocol.wire import decode, encode, kind_of
from dppp.randomness import RandomSource, system_randomness


class Teacher:
    """Teacher `index` of a task; its place among the task's teachers, from 1.

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
    >>> teacher = parties.teachers[3]
    >>> teacher.index, teacher.task.name, teacher.queries_left
    (3, 'fruit', 5)
    """

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
        """`note` takes remarks that stay with the teacher, such as why a model failed."""
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
                return self.endorse_list(data)
            case CertifiedList.KIND:
                return self.open_list(data)
            case ProofRequest.KIND:
                return self.prove_shares(data)
            case other:
                raise InputError(f"a teacher has no answer to a {other}")

    def vote(self, data: bytes, *, now: int) -> bytes:
        """A ballot for a batch: charged and stored, then returned."""
        request = decode(data, BatchRequest)
        self._require_ours(request)
        inputs = decode_inputs([query.input for query in request.queries], len(self.task.features))
        query_ids = request.query_ids
        batch = batch_id(request.task_id, query_ids)
        stored = self._ledger.find_ballot(batch)
        if stored is not None:
            return stored
        if now > request.deadline:
            raise RequestExpired(
                f"the deadline of this batch passed {now - request.deadline} s ago; nothing was "
                "charged",
                hint="send the batch anew",
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

    def endorse_list(self, data: bytes) -> bytes:
        """The word that this list, and no other of its batch, may be opened."""
        ballot_list = decode(data, BallotList)
        self._require_ours(ballot_list)
        identifier = list_hash(ballot_list)
        stored = self._ledger.find_endorsement(ballot_list.batch_id, identifier)
        if stored is not None:
            return stored
        size = self._size_of_own_ballot(ballot_list)
        tallied = check_list(self.task, self._public, ballot_list, size=size)
        statement = statement_of(
            self.task,
            batch=ballot_list.batch_id,
            of_list=identifier,
            tallies=write_ciphertexts(self._public, tallied.tallies),
            participants=tallied.participants,
        )
        endorsement = sign(Endorsement(statement=statement, teacher=self.index), self._signer)
        return self._ledger.record_endorsement(
            ballot_list.batch_id, identifier, encode(endorsement)
        )

    def open_list(self, data: bytes) -> bytes:
        """Decryption shares of a list that this teacher and t in all have endorsed."""
        certified = decode(data, CertifiedList)
        self._require_ours(certified)
        statement = self._endorsed(certified)
        stored = self._ledger.find_answer(certified.batch_id, certified.list_hash)
        if stored is not None:
            return stored
        tallies = self._endorsed_tallies(certified, statement)
        require_certified(self.task, statement, certified.endorsers)
        shares = make_decryption_shares(self._public, self._key_share, tallies)
        unsigned = SignedShares(
            task_id=self.task.task_id,
            batch_id=certified.batch_id,
            list_hash=certified.list_hash,
            teacher=self.index,
            shares=shares.to_bytes(self._public),
        )
        message = encode(sign(unsigned, self._signer))
        return self._ledger.record_answer(certified.batch_id, certified.list_hash, message)

    def prove_shares(self, data: bytes) -> bytes:
        """A proof of the shares given before; tells nothing new about the votes."""
        asked = decode(data, ProofRequest)
        self._require_ours(asked)
        statement = self._endorsed(asked)
        stored = self._ledger.find_answer(asked.batch_id, asked.list_hash)
        if stored is None:
            raise ListNotServed(
                "no shares were given for this list, so there is nothing to prove",
                hint="send the certified list first",
            )
        tallies = self._endorsed_tallies(asked, statement)
        proof = prove_shares(
            self._public,
            self._key_share,
            tallies,
            DecryptionShares.from_bytes(self._public, decode(stored, SignedShares).shares),
            context=share_context(self.task.task_id, asked.batch_id, asked.list_hash),
            randomness=self._randomness,
        )
        unsigned = SignedShareProof(
            task_id=self.task.task_id,
            batch_id=asked.batch_id,
            list_hash=asked.list_hash,
            teacher=self.index,
            proof=proof.to_bytes(self._public),
        )
        return encode(sign(unsigned, self._signer))

    def _require_ours(self, message: FromAggregator) -> None:
        if message.task_id != self.task.task_id:
            raise WrongTask(
                "this message is for another task",
                hint="compare the task's hash with the aggregator's",
            )
        require_from_aggregator(self.task, message)

    def _endorsed(self, about: CertifiedList | ProofRequest) -> ListStatement:
        """What this teacher endorsed of a list, from its ledger, under this task and key.

        Several tasks share a ledger. A list of another one, opened with this one's share of a
        key, would let its colluders choose what is decrypted here.
        """
        stored = self._ledger.find_endorsement(about.batch_id, about.list_hash)
        if stored is None:
            raise ListNotEndorsed(
                "this teacher has not endorsed this list, so it gives nothing to open it",
                hint="send the list itself first",
            )
        statement = decode(stored, Endorsement).statement
        if (statement.task_id, statement.key_id) != (self.task.task_id, self.task.key_id):
            raise WrongTask(
                "this list was endorsed under another task; nothing of it is opened here"
            )
        return statement

    def _endorsed_tallies(
        self, about: CertifiedList | ProofRequest, statement: ListStatement
    ) -> tuple[Ciphertext, ...]:
        """The tallies in a message, if they are those that this teacher worked out."""
        if tally_hash(about.tallies) != statement.tally_hash:
            raise ListFault("these are not the tallies of the list that was endorsed; refuse them")
        return read_ciphertexts(self._public, about.tallies)

    def _size_of_own_ballot(self, ballot_list: BallotList) -> int:
        """How many ciphertexts a ballot has; refuses a list without this teacher's ballot."""
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
