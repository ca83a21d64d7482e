"""The whole protocol in one process, readable on one page.

Every role is the same object, and every message the same bytes, as on a network; only the network
is missing. `Federation.ask` is Protocol 1 of the paper with an aggregator that nobody trusts.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from dppp.errors import BatchAborted, BudgetExceeded, DpppError, InputError
from dppp.paillier.blinding import BlindingTable
from dppp.paillier.dealer import DEFAULT_MODULUS_BITS, DealtKey, deal
from dppp.privacy.certificate import Certificate
from dppp.privacy.ledger.agreement import Agreement
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.ledger.store import MemoryStore
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.batch_store import MemoryBatchStore
from dppp.protocol.columns import Column
from dppp.protocol.cryptosystem import TeacherKeys
from dppp.protocol.events import Aborted, Event, Output, Released, Send, TeacherBlamed
from dppp.protocol.inputs import encode_rows
from dppp.protocol.messages import BatchRequest, split_query_ids
from dppp.protocol.question import CHOICE, Question
from dppp.protocol.receipt import Receipt
from dppp.protocol.release import Release
from dppp.protocol.rows import make_row_secret, query_ids_of, row_key_of, seal_rows
from dppp.protocol.signing import Signer, signer_of
from dppp.protocol.task import Task, TeacherEntry, agree
from dppp.protocol.teacher import Teacher
from dppp.protocol.transcript import Transcript
from dppp.protocol.votes import Predict, as_models
from dppp.protocol.wire import kind_of
from dppp.protocol.with_masks.keys import MemoryEpochSecrets
from dppp.protocol.with_masks.teacher import MaskKeys
from dppp.protocol.with_paillier.teacher import PaillierKeys
from dppp.randomness import RandomSource, system_randomness

Reply = tuple[int, bytes]
Deliver = Callable[[Sequence[Send], int], list[Reply]]
"""Carries messages to teachers and brings back what they answer; silence brings nothing."""
OnMessage = Callable[[str, int, int], None]
"""Told which kind of message how many of how many teachers have dealt with, for progress bars."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was released for all inputs, and the receipt and transcript of those that were new.

    `blamed` are teachers that broke the protocol and were left out, with the reason of each.
    """

    answers: tuple[Release, ...]
    receipt: Receipt | None = None
    transcript: Transcript | None = None
    blamed: Mapping[int, str] = field(default_factory=dict)


class Federation:
    """An aggregator and what carries its messages to the teachers.

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
    >>> from dppp import Federation, in_process
    >>> federation = Federation(aggregator=parties.aggregator, deliver=in_process(parties.teachers))
    >>> outcome = federation.ask([[150.0], [170.0]])
    >>> len(outcome.answers), dict(outcome.blamed), parties.teachers[1].queries_left
    (2, {}, 3)
    """

    def __init__(
        self,
        *,
        aggregator: Aggregator,
        deliver: Deliver,
        clock: Callable[[], int] = lambda: int(time.time()),
        deadline_seconds: int = 600,
        row_secret: bytes | None = None,
    ) -> None:
        """`row_secret` is the querier's: with the same one, rows of an earlier run are free."""
        self.task = aggregator.task
        self.aggregator = aggregator
        self._deliver = deliver
        self._clock = clock
        self._deadline_seconds = deadline_seconds
        self._row_secrets = [row_secret or make_row_secret()]

    def ask(self, rows: Any, *, fresh: bool = False) -> Outcome:
        """Release inputs, or raise who was missing.

        An input that was released before is answered from the aggregator's store, for free, unless
        the querier wants `fresh` noise, at a new charge. The same input twice is asked once.
        """
        inputs = encode_rows(rows, self.task.columns)
        known = {} if fresh else self._known(inputs)
        new = tuple(dict.fromkeys(each for each in inputs if each not in known))
        if not new:
            return Outcome(answers=tuple(known[each] for each in inputs))
        if fresh:
            self._row_secrets.append(make_row_secret())
        try:
            released, blamed = self._run_batch(new)
        except DpppError:
            self._row_secrets.append(make_row_secret())  # teachers answer no query id twice
            raise
        known.update(zip(new, released.receipt.answers, strict=True))
        return Outcome(
            answers=tuple(known[each] for each in inputs),
            receipt=released.receipt,
            transcript=self.aggregator.transcript(released.batch),
            blamed=blamed,
        )

    def unreleased(self, rows: Any) -> list[bytes | None]:
        """The bytes of each row that would be charged if it were asked; None where it is free."""
        inputs = encode_rows(rows, self.task.columns)
        known = self._known(inputs)
        return [None if each in known else each for each in inputs]

    def _known(self, inputs: Sequence[bytes]) -> dict[bytes, Release]:
        """Rows that were released before, under any key that this querier has had."""
        known: dict[bytes, Release] = {}
        for secret in self._row_secrets:
            row_key = row_key_of(secret, self.task.task_id)
            query_ids = split_query_ids(query_ids_of(row_key, self.task.task_id, inputs))
            for each, query_id in zip(inputs, query_ids, strict=True):
                release = self.aggregator.known_release(query_id)
                if release is not None:
                    known[each] = release
        return known

    def _run_batch(self, inputs: Sequence[bytes]) -> tuple[Released, dict[int, str]]:
        """One batch, from request to release, and who was blamed on the way."""
        # The querier: rows sealed to the teachers, and ids by which only it and they know a row.
        now = self._clock()
        row_key = row_key_of(self._row_secrets[-1], self.task.task_id)
        request = BatchRequest(
            deadline=now + self._deadline_seconds,
            queries=seal_rows(self.task, row_key, inputs),
        )
        # The aggregator asks; the teachers open the rows, vote, add noise, encrypt, prove, sign,
        # and write down. Then the list of ballots goes out, and endorsements come back. With t of
        # these the list is certified: it goes out as such, and decryption shares come back. Each
        # reply may call for further messages, until the batch has ended.
        output = self.aggregator.start(request, now=now)
        events = list(output.events)
        while (end := _end_among(events)) is None:
            replies = self._deliver(output.sends, now)
            output = Output()
            for teacher, data in replies:
                output += self.aggregator.receive(teacher, data, now=now)
            if not output.sends and not _end_among(output.events):
                now += 1  # everybody who would answer has: let the time pass
                output += self.aggregator.tick(now)
            events += output.events

        # The querier: a label for every input, or the reason why there is none.
        if isinstance(end, Aborted):
            abort = end.abort
            raise BatchAborted(
                abort.reason,
                missing=abort.missing,
                culprits=abort.culprits,
                is_refunded=abort.is_refunded,
            )
        blamed = {each.teacher: each.reason for each in events if isinstance(each, TeacherBlamed)}
        return end, blamed


def _end_among(events: Iterable[Event]) -> Released | Aborted | None:
    return next((each for each in events if isinstance(each, Released | Aborted)), None)


def in_process(
    teachers: Mapping[int, Teacher],
    *,
    note: Callable[[str], None] = lambda _: None,
    progress: OnMessage = lambda *_: None,
) -> Deliver:
    """Teachers in this process, one after the other; a refusal is silence to the aggregator.

    Where everybody's budget is spent there is nothing to wait for: who asked is told.

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
    >>> from dppp import Federation, in_process
    >>> seen = []
    >>> deliver = in_process(parties.teachers, progress=lambda kind, *_: seen.append(kind))
    >>> outcome = Federation(aggregator=parties.aggregator, deliver=deliver).ask([[150.0]])
    >>> list(dict.fromkeys(seen))
    ['ballot request', 'ballot list', 'certified list']
    """

    def deliver(sends: Sequence[Send], now: int) -> list[Reply]:
        replies: list[Reply] = []
        spent: list[BudgetExceeded] = []
        for done, send in enumerate(sends, start=1):
            if send.teacher in teachers:
                try:
                    answer = teachers[send.teacher].handle(send.data, now=now)
                    if answer is not None:
                        replies.append((send.teacher, answer))
                except DpppError as refusal:
                    note(f"teacher {send.teacher} refused: {refusal.one_line}")
                    if isinstance(refusal, BudgetExceeded):
                        spent.append(refusal)
            progress(kind_of(send.data), done, len(sends))
        if spent and len(spent) == len(sends):
            raise spent[0]
        return replies

    return deliver


@dataclass(frozen=True, slots=True, kw_only=True)
class Parties:
    """A federation's roles, all made in this process: for trying, teaching and testing."""

    task: Task
    key: DealtKey | None
    row_keys: Sequence[X25519PrivateKey] = field(repr=False)
    teachers: dict[int, Teacher]
    ledgers: dict[int, Ledger]
    aggregator: Aggregator
    aggregator_signer: Signer


def create_federation(
    *,
    name: str,
    class_names: Sequence[str],
    features: Sequence[str | Column],
    certificate: Certificate,
    models: Sequence[Predict | Sequence[Predict]],
    data_id: str = "data",
    abstain_below: int | None = None,
    cryptosystem: str | None = None,
    modulus_bits: int = DEFAULT_MODULUS_BITS,
    s: int = 4,
    key: DealtKey | None = None,
    labels_per_batch: int | None = None,
    ledgers: Mapping[int, Ledger] | None = None,
    unit: str | None = None,
    randomness: Mapping[int, RandomSource] | None = None,
    question: Question = CHOICE,
) -> Parties:
    """Task, keys, ledgers and roles. `models` holds a model for each teacher, or several.

    The question is one of the classes, unless it is given; the certificate must be for it.

    A teacher with several models casts a vote with each. The promise then covers a record, or a
    person, and not all that a teacher has: docs/privacy.md, section 1.
    The cryptosystem is `masks`, which needs no dealer, or `paillier`; a key that was dealt before
    means paillier. A teacher for whom no ledger is given keeps one in memory,
    and one for whom no source of randomness is given takes the system's.

    >>> from dppp import calibrate, create_federation
    >>> promise = calibrate("skellam", epsilon=8, delta=1e-5, teachers=4, queries=5, classes=2)
    >>> parties = create_federation(
    ...     name="fruit",
    ...     class_names=["apple", "pear"],
    ...     features=["weight"],
    ...     certificate=promise,
    ...     models=[lambda rows: [1] * len(rows)] * 4,
    ... )
    >>> sorted(parties.teachers), parties.task.trust.threshold, parties.task.cryptosystem
    ([1, 2, 3, 4], 3, 'masks')
    """
    # The dealer, for paillier only: a key of which any t of N decrypt.
    trust = certificate.trust
    if choose_cryptosystem(cryptosystem, key) == "paillier":
        key = key or deal(
            teachers=trust.teachers, threshold=trust.threshold, modulus_bits=modulus_bits, s=s
        )
    of_teachers = [as_models(each) for each in models]
    if len(of_teachers) != trust.teachers:
        raise InputError(
            f"there are models of {len(of_teachers)} teachers, and the noise is for "
            f"{trust.teachers}",
            hint="give one model for each teacher, or a list of them",
        )
    # The aggregator and every teacher: a signing key; every teacher: a key that rows are sealed to.
    # The public halves go into the task.
    aggregator_key = Ed25519PrivateKey.generate()
    signing_keys = [Ed25519PrivateKey.generate() for _ in range(trust.teachers)]
    row_keys = [X25519PrivateKey.generate() for _ in range(trust.teachers)]
    task = agree(
        name=name,
        data_id=data_id,
        class_names=class_names,
        features=features,
        teachers=[
            TeacherEntry(
                name=f"teacher {index}",
                signing_key=_public_half(signing_key),
                row_key=_public_half(row_key),
                votes=len(each),
            )
            for index, (signing_key, row_key, each) in enumerate(
                zip(signing_keys, row_keys, of_teachers, strict=True), start=1
            )
        ],
        aggregator_key=_public_half(aggregator_key),
        certificate=certificate,
        public=None if key is None else key.public,
        abstain_below=abstain_below,
        labels_per_batch=labels_per_batch,
        unit=unit,
        question=question,
    )
    # Every teacher: its own ledger, with this task reserved under the cap of its data.
    accepted = {
        index: _accept(task, (ledgers or {}).get(index) or _ledger_in_memory(entry.name))
        for index, entry in enumerate(task.teachers, start=1)
    }
    signer = signer_of(aggregator_key)
    return Parties(
        task=task,
        key=key,
        row_keys=row_keys,
        teachers=_make_teachers(
            task,
            key,
            (signing_keys, row_keys),
            accepted,
            models=of_teachers,
            randomness=randomness or {},
        ),
        ledgers=accepted,
        aggregator=Aggregator(
            task=task,
            public=None if key is None else key.public,
            signer=signer,
            store=MemoryBatchStore(),
        ),
        aggregator_signer=signer,
    )


def choose_cryptosystem(asked: str | None, key: DealtKey | None) -> str:
    """The cryptosystem that was asked for; a key that was dealt can only be paillier's."""
    chosen = asked or ("masks" if key is None else "paillier")
    if chosen not in ("masks", "paillier"):
        raise InputError(
            f"the cryptosystem is 'masks' or 'paillier', not {chosen!r}",
            hint="leave it out: masks need no dealer",
        )
    if chosen == "masks" and key is not None:
        raise InputError("masks need no key", hint="leave the key out, or take paillier")
    return chosen


def _make_teachers(
    task: Task,
    key: DealtKey | None,
    own_keys: tuple[Sequence[Ed25519PrivateKey], Sequence[X25519PrivateKey]],
    ledgers: Mapping[int, Ledger],
    *,
    models: Sequence[Sequence[Predict]],
    randomness: Mapping[int, RandomSource],
) -> dict[int, Teacher]:
    signing_keys, row_keys = own_keys
    table = None if key is None else BlindingTable(key.public)

    def keys_of(index: int) -> TeacherKeys:
        if key is None or table is None:
            return MaskKeys(secrets=MemoryEpochSecrets())
        share = key.shares[index - 1]
        return PaillierKeys(public=key.public, key_share=share, draw_blinding=table.draw)

    return {
        index: Teacher(
            index=index,
            task=task,
            keys=keys_of(index),
            signer=signer_of(signing_keys[index - 1]),
            row_key=row_keys[index - 1],
            ledger=ledgers[index],
            predict=each,
            randomness=randomness.get(index, system_randomness),
        )
        for index, each in enumerate(models, start=1)
    }


def _ledger_in_memory(teacher: str) -> Ledger:
    return Ledger.create(MemoryStore(), teacher=teacher)


def _public_half(key: Ed25519PrivateKey | X25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()


def _accept(task: Task, ledger: Ledger) -> Ledger:
    ledger.fix_cap(task.data_id, epsilon=task.epsilon, delta=task.delta)
    ledger.accept(task.data_id, Agreement.on_one(task.certificate, task_id=task.task_id))
    return ledger
