"""A teacher in a dispute: what it shows, and what it must have seen before it shows it.

    withdrawal request ─► own ballot, not answered? ─► ledger ─► "I will never open this attempt"
    root request ───────► own ballot, t withdrawals? ─► the root of its own dealing
    row request ────────► secrets: t withdrawals?  seeds: given before? ─► rows, each with its key
    seal evidence ──────► did the dealer sign these very bytes? ─► the secret of the pair, proven
    refund notice ──────► own ballot, t withdrawals? ─► ledger: the charge is given back

Each check keeps honest votes hidden. With t withdrawals fewer than t rows of any seed can ever come
together, so every pad stays on and roots may be known. The secret of a pair is shown only about
bytes that its dealer signed, or the aggregator could learn secrets of two honest teachers by
changing a seal on its way. An honest dealer signs only seals that open, so whoever signed one that
does not is dishonest and knows that secret already: it need not be asked which list it was in.

Several tasks may share a ledger. So everything here is about a batch in which this teacher's ballot
is of this task: the t of one task must not end, or pay back, a batch of another.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from dppp.errors import (
    InputError,
    ListFault,
    OwnBallotMissing,
    RosterUnknown,
    RowsNotGiven,
    TooFewWithdrawals,
    WrongTask,
)
from dppp.masks.ballots import Header, digest_of_seals, seal_at
from dppp.masks.blame import SealedRow, opens_to_row, row_bytes
from dppp.masks.dealing import root_of
from dppp.masks.equal_logarithms import prove_pair_secret
from dppp.masks.sealing import TAG_BYTES, Purpose, show_seal
from dppp.protocol.cryptosystem import Desk
from dppp.protocol.messages import BatchId, ListHash, Signed, TaskId
from dppp.protocol.signing import require_from_aggregator, sign, verify_signature
from dppp.protocol.task import Task
from dppp.protocol.wire import decode, encode
from dppp.protocol.with_masks.keys import KeyRing, RosterKeys
from dppp.protocol.with_masks.messages import (
    Complaint,
    MaskedBallot,
    RefundNotice,
    RootRequest,
    RowRequest,
    SealEvidence,
    ShownRoot,
    ShownRows,
    Withdrawal,
    WithdrawalRequest,
    evidence_of,
    header_parts,
    votes_seed,
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OpenedList:
    """A list that a teacher checked, and what it opened: kept in memory only."""

    batch_id: BatchId
    attempt: int
    list_hash: ListHash
    roster: RosterKeys
    heads: dict[int, bytes]
    secret_seals: bytes
    seed_seals: bytes
    row_sum: bytes
    seed_rows: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedHeader:
    """A dealer's header and signature, without the ballot's body; never sent as such."""

    KIND: ClassVar[str] = MaskedBallot.KIND
    task_id: TaskId
    batch_id: BatchId
    attempt: int
    roster_hash: bytes
    teacher: int
    header: bytes
    signature: bytes = field(repr=False)

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over: the same as that of the ballot."""
        return header_parts(
            self.task_id, self.batch_id, self.attempt, self.roster_hash, self.teacher, self.header
        )

    @classmethod
    def in_evidence(cls, evidence: SealEvidence) -> "SignedHeader":
        """The header that a piece of evidence rests on."""
        return cls(
            task_id=evidence.task_id,
            batch_id=evidence.batch_id,
            attempt=evidence.attempt,
            roster_hash=evidence.roster_hash,
            teacher=evidence.dealer,
            header=evidence.header,
            signature=evidence.header_signature,
        )


def require_withdrawn(
    task: Task, withdrawals: Sequence[bytes], *, batch: BatchId, attempt: int
) -> None:
    """Refuse unless t distinct teachers signed that they will never open this attempt."""
    named: set[int] = set()
    for each in withdrawals[: len(task.teachers)]:
        said = decode(each, Withdrawal)
        if (said.task_id, said.batch_id, said.attempt) != (task.task_id, batch, attempt):
            raise TooFewWithdrawals("a withdrawal is from another task, batch or attempt")
        verify_signature(task, said)
        named.add(said.teacher)
    if len(named) < task.trust.threshold:
        raise TooFewWithdrawals(
            f"{len(named)} teachers withdrew, and {task.trust.threshold} make it sure that nothing "
            "is ever opened"
        )


def seals_of(header: Header, purpose: int) -> bytes:
    """The digest of the seals of this kind in a header."""
    of_secret = purpose == Purpose.SECRET_ROW
    return header.secret_seals_digest if of_secret else header.seed_seals_digest


class Disputes:
    """What one teacher says in disputes."""

    def __init__(self, desk: Desk, ring: KeyRing, opened: dict[bytes, OpenedList]) -> None:
        self._desk = desk
        self._ring = ring
        self._opened = opened

    def settle(self, kind: str, data: bytes) -> bytes | None:
        """The answer to a message of a dispute."""
        match kind:
            case WithdrawalRequest.KIND:
                return self.withdraw(decode(data, WithdrawalRequest))
            case RootRequest.KIND:
                return self.show_root(decode(data, RootRequest))
            case RowRequest.KIND:
                return self.show_rows(decode(data, RowRequest))
            case SealEvidence.KIND:
                return self.complain(decode(data, SealEvidence))
            case RefundNotice.KIND:
                self.take_refund(decode(data, RefundNotice))
                return None
            case _:
                raise InputError(f"a teacher has no answer to a {kind}")

    def require_ours(self, message: Signed, task_id: TaskId) -> None:
        """Refuse what the aggregator of this task did not sign."""
        if task_id != self._desk.task.task_id:
            raise WrongTask(
                "this message is for another task",
                hint="compare the task's hash with the aggregator's",
            )
        require_from_aggregator(self._desk.task, message)

    def withdraw(self, asked: WithdrawalRequest) -> bytes:
        """The word never to open this attempt; impossible once it was answered."""
        self.require_ours(asked, asked.task_id)
        return self._withdraw(asked.batch_id, asked.attempt)

    def show_root(self, asked: RootRequest) -> bytes:
        """The root of this teacher's own dealing."""
        self.require_ours(asked, asked.task_id)
        self._require_withdrawn(asked.withdrawals, asked.batch_id, asked.attempt)
        own = self._own_ballot(asked.batch_id, asked.attempt)
        roster = self._ring.roster(own.roster_hash)
        root = root_of(roster.own_key, Header.from_bytes(own.header).salt)
        unsigned = ShownRoot(
            task_id=asked.task_id,
            batch_id=asked.batch_id,
            attempt=asked.attempt,
            teacher=self._desk.index,
            root=root,
        )
        return encode(sign(unsigned, self._desk.signer))

    def show_rows(self, asked: RowRequest) -> bytes:
        """Rows that dealers sealed to this teacher, so that everybody can read these."""
        self.require_ours(asked, asked.task_id)
        opened = self._opened_list(asked.batch_id, asked.attempt)
        if asked.purpose == Purpose.SECRET_ROW:
            self._require_withdrawn(asked.withdrawals, asked.batch_id, asked.attempt)
        elif not self._was_answered(opened):
            raise RowsNotGiven("rows of seeds are shown only once they were given to open the list")
        shown = [self._show(opened, dealer, Purpose(asked.purpose)) for dealer in asked.dealers]
        unsigned = ShownRows(
            task_id=asked.task_id,
            batch_id=asked.batch_id,
            attempt=asked.attempt,
            teacher=self._desk.index,
            purpose=asked.purpose,
            dealers=asked.dealers,
            tag_keys=b"".join(each[0] for each in shown),
            rows=b"".join(each[1] for each in shown),
        )
        return encode(sign(unsigned, self._desk.signer))

    def complain(self, evidence: SealEvidence) -> bytes:
        """The secret of a pair, about a seal that its dealer signed and that does not open."""
        self.require_ours(evidence, evidence.task_id)
        roster = self._ring.roster(evidence.roster_hash)
        if evidence.dealer == self._desk.index or evidence.dealer not in roster.keys:
            raise InputError("a complaint is about a seal of another teacher of the roster")
        if self._opens(evidence, roster):
            raise ListFault("this seal opens, so there is nothing to complain about")
        pair_secret, proof = prove_pair_secret(
            roster.own, roster.keys[evidence.dealer], roster.epoch.to_bytes(), self._desk.randomness
        )
        unsigned = Complaint(
            task_id=evidence.task_id,
            batch_id=evidence.batch_id,
            attempt=evidence.attempt,
            teacher=self._desk.index,
            dealer=evidence.dealer,
            purpose=evidence.purpose,
            pair_secret=pair_secret,
            proof=proof,
        )
        return encode(sign(unsigned, self._desk.signer))

    def take_refund(self, notice: RefundNotice) -> None:
        """Give the charge of a batch back: t teachers will never open it."""
        self.require_ours(notice, notice.task_id)
        self._require_withdrawn(notice.withdrawals, notice.batch_id, notice.attempt)
        self._own_ballot(notice.batch_id, notice.attempt)
        self._desk.ledger.record_refund(
            notice.batch_id, evidence=evidence_of(notice.withdrawals), attempt=notice.attempt
        )

    def _withdraw(self, batch: BatchId, attempt: int) -> bytes:
        stored = self._desk.ledger.find_withdrawal(batch, attempt)
        if stored is not None:
            return stored
        self._own_ballot(batch, attempt)
        unsigned = Withdrawal(
            task_id=self._desk.task.task_id,
            batch_id=batch,
            attempt=attempt,
            teacher=self._desk.index,
        )
        message = encode(sign(unsigned, self._desk.signer))
        return self._desk.ledger.record_withdrawal(batch, attempt, message)

    def _require_withdrawn(
        self, withdrawals: Sequence[bytes], batch: BatchId, attempt: int
    ) -> None:
        require_withdrawn(self._desk.task, withdrawals, batch=batch, attempt=attempt)

    def _own_ballot(self, batch: BatchId, attempt: int) -> MaskedBallot:
        own = self._desk.ledger.find_ballot(batch, attempt)
        if own is None:
            raise OwnBallotMissing("this teacher cast no ballot in that attempt")
        ballot = decode(own, MaskedBallot)
        if ballot.task_id != self._desk.task.task_id:
            raise WrongTask("this teacher's ballot in that batch is of another task")
        return ballot

    def _opened_list(self, batch: BatchId, attempt: int) -> OpenedList:
        for opened in self._opened.values():
            if (opened.batch_id, opened.attempt) == (batch, attempt):
                return opened
        raise RosterUnknown(
            "this teacher has not opened the rows of this list since it started",
            hint="send the list again",
        )

    def _was_answered(self, opened: OpenedList) -> bool:
        found = self._desk.ledger.find_answer(
            opened.batch_id, opened.list_hash, attempt=opened.attempt
        )
        return found is not None

    def _show(self, opened: OpenedList, dealer: int, purpose: Purpose) -> tuple[bytes, bytes]:
        if dealer not in opened.heads:
            raise InputError(f"teacher {dealer} has no ballot in this list")
        is_secret = purpose is Purpose.SECRET_ROW
        seals = opened.secret_seals if is_secret else opened.seed_seals
        sealed = seal_at(seals, list(opened.heads).index(dealer), len(opened.heads))
        place = SealedRow(
            epoch=opened.roster.epoch,
            votes_seed=votes_seed(self._desk.task.task_id, opened.batch_id, opened.attempt),
            dealer=dealer,
            recipient=self._desk.index,
            purpose=purpose,
            head_digest=opened.heads[dealer],
            sealed=sealed,
        )
        shown = show_seal(
            opened.roster.sealing_key(dealer),
            sealed,
            purpose=purpose,
            dealer=dealer,
            recipient=self._desk.index,
            context=place.context,
            length=len(sealed) - TAG_BYTES,
        )
        return shown.tag_key, shown.row

    def _opens(self, evidence: SealEvidence, roster: RosterKeys) -> bool:
        """Whether the seal to this teacher opens; first of all, that its dealer signed it."""
        verify_signature(self._desk.task, SignedHeader.in_evidence(evidence))
        header, purpose = Header.from_bytes(evidence.header), Purpose(evidence.purpose)
        if digest_of_seals(evidence.seals) != seals_of(header, purpose):
            raise ListFault("these are other seals than those that the dealer signed")
        place = SealedRow(
            epoch=roster.epoch,
            votes_seed=votes_seed(evidence.task_id, evidence.batch_id, evidence.attempt),
            dealer=evidence.dealer,
            recipient=self._desk.index,
            purpose=purpose,
            head_digest=header.head_digest,
            sealed=seal_at(
                evidence.seals, roster.members.index(self._desk.index), len(roster.members)
            ),
        )
        length = row_bytes(self._desk.task.parameters, purpose)
        return opens_to_row(roster.sealing_key(evidence.dealer), place, length=length)
