"""Good bytes of every kind that is read from somebody else under masks, and what reads them.

Three small federations run a batch each, with a colluder that deals wrongly, so that everything is
said that can be said in a dispute. Before each kind of message of teacher 1, and to it, the role
that is about to read it is copied: whatever is tried is said to a copy of that copy.
"""

import copy
import copyreg
import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fuzz.samples import Decoder, SignedMessage, TeachersMessage
from tests.protocol.with_masks.colluders import add_to_rows, deal_badly
from tests.protocol.with_masks.federation import Federation, set_up

from dppp.masks.ballots import Header
from dppp.masks.epoch_keys import EpochSecret
from dppp.masks.opening import secret_from_bytes, secret_to_bytes, seeds_from_bytes
from dppp.masks.packing import unpack_blocks
from dppp.masks.sealing import Purpose
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.messages import Endorsement
from dppp.protocol.question import CHOICE, Question
from dppp.protocol.receipt import Receipt, verify_receipt
from dppp.protocol.signing import sign
from dppp.protocol.task import Task
from dppp.protocol.teacher import Teacher
from dppp.protocol.transcript import Transcript, verify_transcript
from dppp.protocol.wire import Message, decode, encode, kind_of
from dppp.protocol.with_masks.messages import (
    CastRequest,
    CertifiedSum,
    Complaint,
    DeliveredList,
    KeyRequest,
    MaskedBallot,
    Objection,
    PublishedKey,
    RefundNotice,
    RootRequest,
    Roster,
    RowRequest,
    SealEvidence,
    SeedRows,
    ShownRoot,
    ShownRows,
    Withdrawal,
    WithdrawalRequest,
)
from dppp.protocol.with_masks.teacher import MaskSide

# A store in memory has a lock; a copy of the store gets one of its own.
copyreg.pickle(type(threading.Lock()), lambda _: (threading.Lock, ()))

TO_MASKED_TEACHERS: tuple[type[SignedMessage], ...] = (
    KeyRequest,
    Roster,
    CastRequest,
    DeliveredList,
    CertifiedSum,
    SealEvidence,
    WithdrawalRequest,
    RootRequest,
    RowRequest,
    RefundNotice,
)
TO_MASKING_AGGREGATORS: tuple[type[TeachersMessage], ...] = (
    PublishedKey,
    MaskedBallot,
    Endorsement,
    SeedRows,
    Objection,
    Complaint,
    Withdrawal,
    ShownRoot,
    ShownRows,
)
RELEASED: tuple[type[Message], ...] = (Task, Receipt, Transcript)
MASKED_KINDS: tuple[type[Message], ...] = (
    *TO_MASKED_TEACHERS,
    *TO_MASKING_AGGREGATORS,
    *RELEASED,
)
READER, CULPRIT = 1, 2
NUMBER = Question.of_number(low=0, high=10, levels=10)
LABELS = Question.of_labels(most_labels=1)


@dataclass
class Moment:
    """A message of teacher 1, or to it, and the role that is about to read it."""

    federation: Federation
    data: bytes
    role: Teacher | Aggregator

    def copy(self) -> Teacher | Aggregator:
        return copy.deepcopy(self.role)

    def tell(self, data: bytes) -> object:
        role = self.copy()
        if isinstance(role, Teacher):
            return role.handle(data, now=self.federation.now)
        return role.receive(READER, data, now=self.federation.now)

    def tell_signed(self, kind: type[SignedMessage], data: bytes) -> object:
        """What is read only of a message that is signed: the sender signs what was damaged."""
        setting = self.federation.setting
        is_to_teacher = isinstance(self.role, Teacher)
        signer = setting.aggregator_signer if is_to_teacher else setting.signer(READER)
        return self.tell(encode(sign(decode(data, kind), signer)))


@dataclass
class MaskedSamples:
    """The first of each kind of message, and what was released."""

    moments: dict[str, Moment] = field(default_factory=dict)
    released: dict[str, bytes] = field(default_factory=dict)
    readers: Sequence[Decoder] = ()

    def watch(
        self,
        trust: tuple[int, int, int],
        change: Callable[[MaskSide], None],
        question: Question = CHOICE,
    ) -> Federation:
        """Run a batch with a colluder, and copy roles at every new kind of message."""
        federation = Federation(set_up(*trust, question=question))
        federation.corrupt(CULPRIT, change)

        deliver = federation.deliver

        def watched(teacher: int, data: bytes) -> list[bytes]:
            if teacher == READER:
                self._keep(federation, data, federation.teachers[READER])
            replies = deliver(teacher, data)
            for each in replies:
                if teacher == READER:
                    self._keep(federation, each, federation.aggregator)
            return replies

        federation.deliver = watched  # type: ignore[method-assign]
        federation.run(federation.start(federation.request()))
        return federation

    def _keep(self, federation: Federation, data: bytes, role: Teacher | Aggregator) -> None:
        if kind_of(data) not in self.moments:
            self.moments[kind_of(data)] = Moment(federation, data, copy.deepcopy(role))

    def good(self, kind: type[Message]) -> bytes:
        if kind.KIND in self.released:
            return self.released[kind.KIND]
        return self.moments[kind.KIND].data

    def decoders(self) -> tuple[Decoder, ...]:
        sent = (*TO_MASKED_TEACHERS, *TO_MASKING_AGGREGATORS)
        return (
            *(
                Decoder(named(kind), self.good(kind), functools.partial(_decode, kind=kind), encode)
                for kind in MASKED_KINDS
            ),
            *(
                Decoder(f"masks, told {kind.KIND}", self.good(kind), self.moments[kind.KIND].tell)
                for kind in sent
            ),
            *(
                Decoder(
                    f"masks, told signed {kind.KIND}",
                    self.good(kind),
                    functools.partial(self.moments[kind.KIND].tell_signed, kind),
                )
                for kind in sent
            ),
            *self.readers,
        )


def named(kind: type[Message]) -> str:
    """The reader's name of a kind of message under masks."""
    return f"masks, {kind.KIND}"


def _decode(data: bytes, *, kind: type[Message]) -> Message:
    return decode(data, kind)


@functools.cache
def make_masked_samples() -> MaskedSamples:
    """Three batches: another row dealt, a seal that does not open, and no dropouts to spare.

    They are asked for a number, for labels and for one of several classes.
    """
    samples = MaskedSamples()
    other_row = deal_badly(secret_rows=add_to_rows([READER]))
    federation = samples.watch((5, 1, 1), other_row, NUMBER)
    broken_seal = deal_badly(break_seals=[(READER, Purpose.SECRET_ROW)])
    labelling = samples.watch((5, 1, 1), broken_seal, LABELS)
    samples.watch((5, 1, 0), other_row)
    transcript = federation.aggregator.transcript(federation.request().batch_id)
    assert isinstance(federation.end, Receipt)
    assert transcript is not None
    samples.released = {
        Task.KIND: encode(federation.task),
        Receipt.KIND: encode(federation.end),
        Transcript.KIND: encode(transcript),
    }
    samples.readers = (*_readers(federation, samples), *_readers_of_labels(labelling))
    return samples


def _readers_of_labels(federation: Federation) -> tuple[Decoder, ...]:
    """A task and a receipt as they are where labels are asked for."""
    assert isinstance(federation.end, Receipt)
    assert federation.end.answers[0].labels is not None
    known: dict[str, Any] = {"expected_task": federation.task.task_id}
    return (
        Decoder(
            "masks, task of labels",
            encode(federation.task),
            functools.partial(_decode, kind=Task),
            encode,
        ),
        Decoder(
            "masks, receipt of labels",
            encode(federation.end),
            functools.partial(_decode, kind=Receipt),
            encode,
        ),
        Decoder(
            "masks receipt of labels, checked",
            encode(federation.end),
            lambda data: verify_receipt(data, **known),
        ),
    )


def _readers(federation: Federation, samples: MaskedSamples) -> tuple[Decoder, ...]:
    """What reads the bytes inside of messages and of files."""
    parameters = federation.task.parameters
    known: dict[str, Any] = {"expected_task": federation.task.task_id}
    secret, seeds = decode(samples.released[Receipt.KIND], Receipt).openings
    ballot = decode(samples.moments[MaskedBallot.KIND].data, MaskedBallot)
    shape = {"degree": parameters.degree, "bits": parameters.modulus_bits}
    count = len(seeds) // len(seeds_from_bytes(seeds, 4)[0])
    return (
        Decoder("masks header", ballot.header, Header.from_bytes, lambda header: header.to_bytes()),
        Decoder(
            "masks epoch secret",
            EpochSecret(teacher=READER, secret=bytes(31) + b"\x40").to_bytes(),
            EpochSecret.from_bytes,
            EpochSecret.to_bytes,
        ),
        Decoder(
            "masks sum of secrets",
            secret,
            functools.partial(secret_from_bytes, parameters),
            secret_to_bytes,
        ),
        Decoder("masks seeds", seeds, lambda data: seeds_from_bytes(data, count), b"".join),
        Decoder(
            "masks check block",
            ballot.check_block,
            lambda data: unpack_blocks(data, blocks=1, **shape),
        ),
        Decoder(
            "masks receipt, checked",
            samples.released[Receipt.KIND],
            lambda data: verify_receipt(data, **known),
        ),
        Decoder(
            "masks transcript, checked",
            samples.released[Transcript.KIND],
            lambda data: verify_transcript(data, **known),
        ),
    )
