"""Good bytes of every kind that is read from somebody else, and what reads them.

One small federation runs a batch, and everything that it says, keeps or publishes is a sample. Used
by the hypothesis tests and, as its corpus, by the coverage-guided fuzzer.
"""

import functools
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tests.crash.runs import identify
from tests.crash.setting import NOW, crash_setting, request_of, teacher_of
from tests.service.ceremony.ceremonies import TEACHERS as MEMBERS
from tests.service.ceremony.ceremonies import hold
from tests.small_federation import Setting, asked_of, reply_of
from tests.vectors.make_rows import MIXED_COLUMNS, MIXED_TABLE

from dppp.paillier.decryption.opening import Opening
from dppp.paillier.decryption.shares import DecryptionShares
from dppp.paillier.encryption import read_ciphertexts, write_ciphertexts
from dppp.paillier.keys import KeyShare, PublicKey
from dppp.paillier.proofs.ballots import BallotProof
from dppp.paillier.proofs.shares import ShareProof
from dppp.privacy.ledger.book import Book
from dppp.privacy.ledger.chain import Entry, Head, chain_record, entry_hash
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.ledger.records import Charge, Digest, ServedList, decode_record
from dppp.privacy.ledger.store import MemoryStore
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.batch_store import Kind, MemoryBatchStore
from dppp.protocol.events import Abort, Output
from dppp.protocol.inputs import decode_rows, encode_rows, join_rows
from dppp.protocol.messages import (
    Ballot,
    BallotList,
    BallotRequest,
    BatchRequest,
    CertifiedList,
    Endorsement,
    FromTeacher,
    ProofRequest,
    SealedQueries,
    Signed,
    SignedShareProof,
    SignedShares,
)
from dppp.protocol.receipt import Receipt, verify_receipt
from dppp.protocol.signing import Signer, sign
from dppp.protocol.task import Task
from dppp.protocol.teacher import Teacher
from dppp.protocol.transcript import Transcript, verify_transcript
from dppp.protocol.wire import Message, decode, encode, kind_of
from dppp.protocol.with_paillier.batch import PaillierBatch
from dppp.service.broker.frames import PIECE_BYTES, Reassembly, read_frame, split_message
from dppp.service.ceremony.authority import require_tls_certificate
from dppp.service.ceremony.federation_file import FederationFile
from dppp.service.ceremony.join_request import JoinRequest
from dppp.service.ceremony.nkey import public_nkey
from dppp.service.ceremony.share_envelope import unseal_from
from dppp.service.stores.head_file import HeadFile


class SignedMessage(Signed, Message, Protocol):
    """What is signed and sent."""


class TeachersMessage(FromTeacher, Message, Protocol):
    """What a teacher signs and sends."""


KINDS: tuple[type[Message], ...] = (
    Task,
    SealedQueries,
    BatchRequest,
    BallotRequest,
    Ballot,
    BallotList,
    Endorsement,
    CertifiedList,
    SignedShares,
    ProofRequest,
    SignedShareProof,
    Abort,
    Receipt,
    Transcript,
)

TO_TEACHERS: tuple[type[SignedMessage], ...] = (
    BallotRequest,
    BallotList,
    CertifiedList,
    ProofRequest,
)
TO_AGGREGATORS: tuple[type[TeachersMessage], ...] = (
    Ballot,
    Endorsement,
    SignedShares,
    SignedShareProof,
)


@dataclass(frozen=True)
class Decoder:
    """Reads bytes or raises one of our errors; `again` gives the bytes back where they are one."""

    name: str
    good: bytes
    read: Callable[[bytes], Any]
    again: Callable[[Any], bytes] | None = None


@dataclass(frozen=True)
class Samples:
    """A federation that has answered one batch, and everything that was said."""

    setting: Setting
    messages: Mapping[str, bytes]
    ledger: tuple[Entry, ...]
    contents: tuple[bytes | None, ...]
    """Beside the entries of teacher 1's ledger."""
    endorsements: Mapping[int, bytes]
    teacher: Teacher
    """Teacher 1, who has answered; a repeated message gets the stored bytes."""

    @property
    def receipt(self) -> bytes:
        return self.messages[Receipt.KIND]

    @property
    def transcript(self) -> bytes:
        return self.messages[Transcript.KIND]

    def all_endorsers(self) -> list[dict[str, Any]]:
        """Everybody's endorsement, as they stand in a certified list."""
        found = (decode(each, Endorsement) for each in self.endorsements.values())
        return [{"teacher": each.teacher, "signature": each.signature} for each in found]

    def answer_to(self, certified: CertifiedList) -> bytes:
        """What teacher 1 answers who has endorsed the list, and given nothing for it yet."""
        data = encode(sign(certified, self.setting.aggregator_signer))
        return reply_of(self._teacher_before(TO_TEACHERS.index(CertifiedList)), data, now=NOW)

    def decoders(self) -> tuple[Decoder, ...]:
        return (
            *(self._of_kind(kind) for kind in KINDS),
            *self._paillier(),
            *(self._of_entry(entry) for entry in self.ledger),
            self._of_entry(self._old_entry()),
            *self._roles(),
            *self._roles_to_colluders(),
            *_ceremony(),
            *_broker(),
            Decoder(
                "inputs",
                bytes(16),
                lambda data: decode_rows(data, 2, 1),
                lambda table: join_rows(encode_rows(table, 1)),
            ),
            Decoder(
                "mixed inputs",
                join_rows(encode_rows(MIXED_TABLE, MIXED_COLUMNS)),
                lambda data: decode_rows(data, len(MIXED_TABLE), MIXED_COLUMNS),
                lambda rows: join_rows(encode_rows(rows, MIXED_COLUMNS)),
            ),
            Decoder("kind", self.transcript[:80], kind_of),
            Decoder(
                "head file",
                b'{"index": 3, "hash": "%s"}\n' % (b"ab" * 32),
                lambda data: HeadFile(Path("head"))._parse(data.decode("utf-8", "replace")),
            ),
            Decoder(
                "receipt, checked",
                self.receipt,
                lambda data: verify_receipt(data, insecure_testing=True),
            ),
            Decoder(
                "transcript, checked",
                self.transcript,
                lambda data: verify_transcript(data, insecure_testing=True),
            ),
        )

    def _of_kind(self, kind: type[Message]) -> Decoder:
        return Decoder(kind.KIND, self.messages[kind.KIND], lambda data: decode(data, kind), encode)

    def _paillier(self) -> tuple[Decoder, ...]:
        public = self.setting.public
        ballot = decode(self.messages[Ballot.KIND], Ballot)
        shares = decode(self.messages[SignedShares.KIND], SignedShares).shares
        proof = decode(self.messages[SignedShareProof.KIND], SignedShareProof).proof
        opening = decode(self.receipt, Receipt).openings[0]
        key_share = self.setting.key.shares[0]
        keyed: tuple[tuple[Any, bytes], ...] = (
            (BallotProof, ballot.proof),
            (DecryptionShares, shares),
            (ShareProof, proof),
            (Opening, opening),
        )
        return (
            Decoder(
                "public key",
                public.to_bytes(),
                lambda data: PublicKey.from_bytes(data, insecure_testing=True),
                lambda key: key.to_bytes(),
            ),
            Decoder("key share", key_share.to_bytes(), KeyShare.from_bytes, KeyShare.to_bytes),
            Decoder(
                "ciphertexts",
                ballot.ciphertexts,
                lambda data: read_ciphertexts(public, data),
                lambda found: write_ciphertexts(public, found),
            ),
            *(
                Decoder(
                    kind.__name__,
                    good,
                    functools.partial(kind.from_bytes, public),
                    lambda found: found.to_bytes(public),
                )
                for kind, good in keyed
            ),
        )

    def _of_entry(self, entry: Entry) -> Decoder:
        """A record that somebody put into the store with a hash that fits."""
        return Decoder(
            f"ledger {entry.kind} {entry.index}",
            entry.payload,
            lambda payload: self._book_before(entry.index).apply(
                _forged(self._head_before(entry.index), entry, payload)
            ),
        )

    def _old_entry(self) -> Entry:
        """What version 0.1.0 wrote where this one writes an endorsement and an answer."""
        charge = decode_record(self.ledger[3].kind, self.ledger[3].payload)
        assert isinstance(charge, Charge)
        served = ServedList(
            batch_id=charge.batch_id, list_hash=bytes(32), share=Digest.of(b"share")
        )
        return chain_record(self.ledger[3].head, served)

    def _head_before(self, index: int) -> Head:
        return self.ledger[index - 1].head if index else Book().head

    def _book_before(self, index: int) -> Book:
        book = Book()
        for entry in self.ledger[:index]:
            book.apply(entry)
        return book

    def _roles(self) -> tuple[Decoder, ...]:
        """A teacher and an aggregator to whom anything may be said by anybody."""
        return (
            *(
                Decoder(
                    f"teacher, {kind.KIND}",
                    self.messages[kind.KIND],
                    lambda data: reply_of(self.teacher, data, now=NOW),
                )
                for kind in TO_TEACHERS
            ),
            *(
                Decoder(
                    f"aggregator, {kind.KIND}",
                    self.messages[kind.KIND],
                    functools.partial(self._tell_aggregator, kind),
                )
                for kind in TO_AGGREGATORS
            ),
        )

    def _roles_to_colluders(self) -> tuple[Decoder, ...]:
        """What is read only of a message that is signed: the sender signs what was damaged."""
        return (
            *(
                Decoder(
                    f"teacher, signed {kind.KIND}",
                    self.messages[kind.KIND],
                    functools.partial(self._tell_teacher_signed, step, kind),
                )
                for step, kind in enumerate(TO_TEACHERS)
            ),
            *(
                Decoder(
                    f"aggregator, signed {kind.KIND}",
                    self.messages[kind.KIND],
                    functools.partial(self._tell_aggregator_signed, kind),
                )
                for kind in TO_AGGREGATORS
            ),
        )

    def _tell_aggregator(self, kind: type[TeachersMessage], data: bytes) -> Output:
        return self.aggregator_before(kind).receive(1, data, now=NOW)

    def _tell_aggregator_signed(self, kind: type[TeachersMessage], data: bytes) -> Output:
        return self._tell_aggregator(kind, _signed_again(data, kind, self.setting.signer(1)))

    def _tell_teacher_signed(self, step: int, kind: type[SignedMessage], data: bytes) -> bytes:
        signed = _signed_again(data, kind, self.setting.aggregator_signer)
        return reply_of(self._teacher_before(step), signed, now=NOW)

    def _teacher_before(self, step: int) -> Teacher:
        """Teacher 1 as it was before it voted, endorsed, answered or proved."""
        store = MemoryStore()
        with store.transaction() as transaction:
            for entry, content in zip(self.ledger[: 3 + step], self.contents, strict=False):
                transaction.append(entry, content)
        return teacher_of(self.setting, 1, Ledger.open(store))

    def aggregator_before(self, kind: type[TeachersMessage]) -> Aggregator:
        """Waiting for such a message from teacher 1."""
        store = MemoryBatchStore()
        aggregator = self.setting.aggregator(store)
        request = request_of(self.setting, 0)
        if kind is not Ballot:
            store.put_once(identify(request), Kind.LIST, self.messages[BallotList.KIND])
        aggregator.start(request, now=NOW)
        if kind in (SignedShares, SignedShareProof):
            for index, endorsement in self.endorsements.items():
                aggregator.receive(index, endorsement, now=NOW)
        if kind is SignedShareProof:
            aggregator.receive(1, self.messages[SignedShares.KIND], now=NOW)
            batch = aggregator._batches[identify(request)]
            assert isinstance(batch, PaillierBatch)
            batch.is_proving = True  # as if shares did not open
        return aggregator


@functools.cache
def make_samples() -> Samples:
    """Run one batch to its release, with a proof asked for besides."""
    setting = crash_setting()
    stores = {index: MemoryStore() for index in setting.everybody}
    made = {
        index: teacher_of(setting, index, setting.new_ledger(index, store))
        for index, store in stores.items()
    }
    aggregator = setting.aggregator(MemoryBatchStore())
    request = request_of(setting, 0)
    messages = {
        Task.KIND: encode(setting.task),
        SealedQueries.KIND: encode(request.queries),
        BatchRequest.KIND: encode(request),
    }
    sends = list(aggregator.start(request, now=NOW).sends)
    while sends:
        send = sends.pop(0)
        reply = reply_of(made[send.teacher], send.data, now=NOW)
        messages |= {kind_of(each): each for each in (send.data, reply)}
        sends += aggregator.receive(send.teacher, reply, now=NOW).sends
    # Not everybody was drawn to endorse; here all do, and teacher 1 gives everything that it can.
    endorsements = {
        index: reply_of(role, messages[BallotList.KIND], now=NOW) for index, role in made.items()
    }
    first = made[1]
    messages[BallotRequest.KIND] = asked_of(request, 1, setting.aggregator_signer)
    messages[Ballot.KIND] = reply_of(first, messages[BallotRequest.KIND], now=NOW)
    messages[Endorsement.KIND] = endorsements[1]
    messages[SignedShares.KIND] = reply_of(first, messages[CertifiedList.KIND], now=NOW)
    messages[ProofRequest.KIND] = _proof_request(setting, messages[CertifiedList.KIND])
    messages[SignedShareProof.KIND] = reply_of(first, messages[ProofRequest.KIND], now=NOW)
    messages[Abort.KIND] = encode(Abort(reason="too few", missing=(1, 3), culprits=(2,)))
    outcome, transcript = (
        aggregator.outcome(identify(request)),
        aggregator.transcript(identify(request)),
    )
    assert isinstance(outcome, Receipt)
    assert transcript is not None
    messages |= {Receipt.KIND: encode(outcome), Transcript.KIND: encode(transcript)}
    with stores[1].transaction() as transaction:
        entries = tuple(transaction.read_entries(0))
        contents = tuple(transaction.read_content(each.index) for each in entries)
    return Samples(
        setting=setting,
        messages=messages,
        ledger=entries,
        contents=contents,
        endorsements=endorsements,
        teacher=first,
    )


def _proof_request(setting: Setting, certified_list: bytes) -> bytes:
    certified = decode(certified_list, CertifiedList)
    unsigned = ProofRequest(
        task_id=certified.task_id,
        batch_id=certified.batch_id,
        list_hash=certified.list_hash,
        tallies=certified.tallies,
    )
    return encode(sign(unsigned, setting.aggregator_signer))


def _signed_again(data: bytes, kind: type[SignedMessage], signer: Signer) -> bytes:
    return encode(sign(decode(data, kind), signer))


def _ceremony() -> tuple[Decoder, ...]:
    """What organisations send each other before there is a federation."""
    with tempfile.TemporaryDirectory() as folder:
        ceremony = hold(Path(folder))
        home, sealed = ceremony.home(MEMBERS[0]), ceremony.share(1)
        request, key = home.request(), home.sealing_key()
        seed = home.nats_seed().encode("ascii")
    federation = ceremony.federation
    return (
        Decoder(
            "federation file",
            federation.to_bytes(),
            lambda data: FederationFile.from_bytes(data, insecure_testing=True),
            FederationFile.to_bytes,
        ),
        Decoder("join request", request.to_bytes(), JoinRequest.from_bytes, JoinRequest.to_bytes),
        Decoder(
            "share envelope", sealed, lambda data: unseal_from(data, key, federation.task.task_id)
        ),
        Decoder(
            "certificate",
            federation.teachers[0].tls_certificate.encode("ascii"),
            lambda data: require_tls_certificate(
                data.decode("utf-8", "replace"), request.identity, federation.authority
            ),
        ),
        Decoder(
            "nkey seed",
            seed,
            lambda data: public_nkey(data.decode("utf-8", "replace")),
        ),
    )


def _broker() -> tuple[Decoder, ...]:
    """What whoever may publish under a subject can make the other side read."""
    first, second = split_message(bytes(PIECE_BYTES + 1))
    assert len(second) < 200 < len(first)
    (whole,) = split_message(b"a message", addressed=(1, 3))

    def reassemble(data: bytes) -> bytes | None:
        pieces = Reassembly()
        pieces.take(read_frame(first))
        return pieces.take(read_frame(data))

    return Decoder("frame", whole, reassemble), Decoder("last frame", second, reassemble)


def _forged(previous: Head, entry: Entry, payload: bytes) -> Entry:
    digest = entry_hash(previous.hash, entry.index, entry.kind, payload)
    return Entry(index=entry.index, kind=entry.kind, payload=payload, hash=digest)
