"""A teacher: votes, and helps to open one certified list of ballots. Refuses everything else.

    request ────────► signed? task, deadline, rows, budget ───► votes + noise ─► ledger ─► ballot
    list ───────────► signed? own ballot in it, complete, good? ─► ledger ─► endorsement
    certified list ─► endorsed here, by t in all? ─► ledger ─► answer
    in a dispute ───► (with_masks/, with_paillier/)

A message comes in as bytes and an answer goes out as bytes; a refusal is an exception that says
why. Nothing is sent before it is in the ledger, and a repeated message gets the stored bytes. What
the teacher's model says or fails to say never changes whether the teacher takes part.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from numpy.typing import NDArray

from dppp.errors import (
    DpppError,
    InputError,
    ListNotEndorsed,
    OwnBallotMissing,
    RequestExpired,
    WrongTask,
)
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.sampling import draw_raised_shares
from dppp.protocol.cryptosystem import AboutList, Asked, Desk, TeacherKeys
from dppp.protocol.inputs import Inputs, join_inputs
from dppp.protocol.messages import Endorsement, QueryId, Signed, TaskId
from dppp.protocol.refusals import make_notice
from dppp.protocol.shared_batch import PartRows, read_parts
from dppp.protocol.signing import Signer, require_from_aggregator
from dppp.protocol.task import Task
from dppp.protocol.votes import Predict, Votes, as_models, sum_votes
from dppp.protocol.wire import decode, kind_of
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
        keys: TeacherKeys,
        signer: Signer,
        row_key: X25519PrivateKey,
        ledger: Ledger,
        predict: Predict | Sequence[Predict],
        randomness: RandomSource = system_randomness,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`row_key` opens the rows that queriers seal to this teacher.

        `predict` is one model for each vote that the task gives this teacher.

        `note` takes remarks that stay with the teacher, such as why a model failed.
        """
        if not 1 <= index <= len(task.teachers):
            raise InputError(f"the task has teachers 1 to {len(task.teachers)}, not {index}")
        if row_key.public_key().public_bytes_raw() != task.teachers[index - 1].row_key:
            raise InputError(f"the row key is not the one that the task has of teacher {index}")
        self._models = as_models(predict)
        _require_votes(task, index, len(self._models))
        self.index = index
        self.task = task
        self._side = keys.take_part(
            Desk(index=index, task=task, signer=signer, ledger=ledger, randomness=randomness)
        )
        self._row_key = row_key
        self._signer = signer
        self._ledger = ledger
        self._randomness = randomness
        self._note = note

    @property
    def queries_left(self) -> int:
        """Queries of the task that the ledger may still be charged for."""
        tasks = [task for data in self._ledger.summary().data for task in data.tasks]
        return sum(task.left for task in tasks if task.task_id == self.task.task_id)

    def handle(self, data: bytes, *, now: int) -> bytes | None:
        """The answer to any message, if there is one; `now` is in seconds of the common clock."""
        self.forget(now=now)
        kind = kind_of(data)
        if kind == self._side.request_kind:
            return self.vote(data, now=now)
        if kind == self._side.list_kind:
            return self.endorse_list(data)
        if kind == self._side.certified_kind:
            return self.open_list(data)
        return self._side.settle(kind, data, now=now)

    def notice_of(self, data: bytes, error: DpppError, *, now: int) -> bytes | None:
        """What the aggregator is told of a message that was refused; None: nothing."""
        return make_notice(self.task, self.index, self._signer, data, error, now=now)

    def prepare(self, *, now: int) -> bool:
        """Use a quiet moment: forget what is over, and do one piece of work for the next ballots.

        Nothing leaves the teacher. False: there is nothing more to do now.
        """
        return self._side.prepare(now=now)

    def forget(self, *, now: int) -> None:
        """Delete what must not be known any longer at this time; also for one who is not asked."""
        self._side.forget(now=now)

    def vote(self, data: bytes, *, now: int) -> bytes:
        """A ballot for a batch: charged and stored, then returned."""
        asked = self._side.read_request(data)
        request = asked.request
        self._require_ours(asked.message, request.task_id)
        stored = self._ledger.find_ballot(request.batch_id, asked.attempt)
        if stored is not None:
            return stored
        if now > request.deadline:
            raise RequestExpired(
                f"the deadline of this batch passed {now - request.deadline} s ago; "
                "nothing was charged",
                hint="send the batch anew",
            )
        self._side.require_castable(asked, now=now)
        parts = read_parts(
            self.task,
            self.index,
            self._row_key,
            request,
            is_fresh=functools.partial(self._ledger.may_vote_on, request.batch_id),
            note=self._note,
        )
        query_ids = _charged(parts)
        if asked.attempt == 1:
            self._ledger.check_can_answer(self.task.task_id, request.batch_id, query_ids)
        else:
            self._ledger.check_can_retry(request.batch_id, query_ids)
        ballot = self._side.cast(asked, self._entries_of(parts))
        return self._record(asked, query_ids, ballot)

    def endorse_list(self, data: bytes) -> bytes:
        """The word that this list, and no other of its attempt, may be opened."""
        listed = self._side.read_list(data)
        self._require_ours(listed.message, self.task.task_id)
        place = (listed.batch_id, listed.list_hash)
        stored = self._ledger.find_endorsement(*place, attempt=listed.attempt)
        own_ballot = self._own_ballot(listed)
        if stored is not None:
            self._side.recall(listed, own_ballot)
            return stored
        answer = self._side.endorse(listed, own_ballot)
        if not self._side.is_endorsement(answer):
            return answer
        return self._ledger.record_endorsement(*place, answer, attempt=listed.attempt)

    def open_list(self, data: bytes) -> bytes:
        """What helps to open a list that this teacher and t in all have endorsed."""
        certified = self._side.read_certified(data)
        self._require_ours(certified.message, self.task.task_id)
        place, attempt = (certified.batch_id, certified.list_hash), certified.attempt
        endorsement = self._ledger.find_endorsement(*place, attempt=attempt)
        if endorsement is None:
            raise ListNotEndorsed(
                "this teacher has not endorsed this list, so it gives nothing to open it",
                hint="send the list itself first",
            )
        if decode(endorsement, Endorsement).task_id != self.task.task_id:
            # Several tasks share a ledger, and colluders of one must not open lists of another.
            raise WrongTask(
                "this list was endorsed under another task; nothing of it is opened here"
            )
        stored = self._ledger.find_answer(*place, attempt=attempt)
        if stored is not None:
            return stored
        answer = self._side.answer(certified, endorsement)
        return self._ledger.record_answer(*place, answer, attempt=attempt)

    def _require_ours(self, message: Signed, task_id: TaskId) -> None:
        if task_id != self.task.task_id or getattr(message, "task_id", task_id) != task_id:
            raise WrongTask(
                "this message is for another task",
                hint="compare the task's hash with the aggregator's",
            )
        require_from_aggregator(self.task, message)

    def _own_ballot(self, listed: AboutList) -> bytes:
        own = self._ledger.find_ballot(listed.batch_id, listed.attempt)
        if own is None:
            raise OwnBallotMissing(
                "this list does not hold the ballot that this teacher cast, byte for byte; "
                "it helps to open no other"
            )
        return own

    def _record(self, asked: Asked, query_ids: tuple[QueryId, ...], ballot: bytes) -> bytes:
        batch = asked.request.batch_id
        if asked.attempt == 1:
            return self._ledger.record_ballot(self.task.task_id, batch, query_ids, ballot)
        assert asked.evidence is not None, "a later attempt was allowed by withdrawals"
        return self._ledger.record_retry(batch, asked.attempt, ballot, evidence=asked.evidence)

    def _entries_of(self, parts: Sequence[PartRows]) -> NDArray[np.int64]:
        """Entries of all parts in their order; noise alone on those that are not read."""
        read = [each.opened.inputs for each in parts if each.opened is not None]
        entries = self._entries(join_inputs(read))
        is_read = np.concatenate([np.full(each.queries, each.opened is not None) for each in parts])
        if is_read.all():
            return entries
        found = np.empty((len(is_read), len(self.task.class_names)), dtype=np.int64)
        found[is_read] = entries.reshape(-1, found.shape[1])
        silent = self._votes([_cast_no_vote] * len(self._models), np.zeros(np.sum(~is_read)))
        found[~is_read] = self._with_noise(silent).reshape(-1, found.shape[1])
        return found.ravel()

    def _entries(self, inputs: Inputs) -> NDArray[np.int64]:
        """Votes plus noise shares, shifted to be non-negative: one entry per query and class."""
        return self._with_noise(self._votes(self._models, inputs))

    def _with_noise(self, votes: Votes) -> NDArray[np.int64]:
        shares = draw_raised_shares(self.task.noise, votes.size, self._randomness)
        shares += votes.ravel()
        return shares

    def _votes(self, models: Sequence[Predict], inputs: Any) -> Votes:
        classes = len(self.task.class_names)
        return sum_votes(models, inputs, classes, question=self.task.question, note=self._note)


def _cast_no_vote(rows: Any) -> Sequence[Any]:
    """Where a part of a shared batch is not read."""
    return [None] * len(rows)


def _charged(parts: Sequence[PartRows]) -> tuple[QueryId, ...]:
    """The queries that votes are cast on."""
    read = [each.opened for each in parts if each.opened is not None]
    if len(read) == 1:
        return read[0].query_ids
    return tuple(query_id for each in read for query_id in each.query_ids)


def _require_votes(task: Task, index: int, models: int) -> None:
    """A teacher casts as many votes as the task says: the range of its entries depends on it."""
    entry = task.teachers[index - 1]
    if models != entry.votes:
        raise InputError(
            f"the task gives {entry.name} {entry.votes} votes, and it has {models} models",
            hint="give one model for each vote: `dppp train --votes` makes them",
        )
