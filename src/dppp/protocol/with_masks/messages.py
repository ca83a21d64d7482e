"""What the parties say to each other under masks, and the hashes that bind it together.

    once per epoch     key request → published key;   roster → every teacher
    for each batch     cast request → ballot;   list → endorsement;   certified list → seed rows
    in a dispute       withdrawal request → withdrawal;   root request → root;
                       row request → shown rows;   list → objection, seal evidence → complaint
    at its end         refund notice → every teacher

An attempt is one try at a batch, from 1. Each has fresh secrets, its own list and its own answers.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from dppp.errors import WireError
from dppp.hashing import HASH_BYTES, hash_parts
from dppp.masks.ballots import HEADER_BYTES, HEADER_DIGESTS_BYTES
from dppp.protocol.messages import (
    SIGNATURE_BYTES,
    UNSIGNED,
    BatchId,
    ListHash,
    TaskId,
    number_bytes,
    numbers_bytes,
    require_ids,
    require_indices,
    require_length,
)

MOST_ATTEMPTS = 16
MAC_BYTES = 16
DELIVERY_BYTES = HASH_BYTES + SIGNATURE_BYTES
_KEY_BYTES = 32
_SMALL = 2**20


def _require_attempt(attempt: int) -> None:
    if not 1 <= attempt <= MOST_ATTEMPTS:
        raise WireError(f"attempts count from 1 to {MOST_ATTEMPTS}, got {attempt}")


def _require_epoch(epoch: int) -> None:
    if not 0 <= epoch < 2**62:
        raise WireError(f"{epoch} is not the number of an epoch")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRequest:
    """Publish your key of this epoch. From the aggregator."""

    KIND: ClassVar[str] = "epoch key request"
    SIZE_LIMIT: ClassVar[int] = _SMALL
    task_id: TaskId
    epoch: int
    signature: bytes = field(default=UNSIGNED, repr=False)

    def __post_init__(self) -> None:
        require_ids(self.task_id)
        _require_epoch(self.epoch)
        require_length("a signature", self.signature, SIGNATURE_BYTES)

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over."""
        return (self.task_id, number_bytes(self.epoch))


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedKey:
    """A teacher's public key of an epoch, with the proof that it knows the secret."""

    KIND: ClassVar[str] = "epoch key"
    SIZE_LIMIT: ClassVar[int] = _SMALL
    task_id: TaskId
    epoch: int
    teacher: int
    public: bytes
    possession: bytes = field(repr=False)
    signature: bytes = field(default=UNSIGNED, repr=False)

    def __post_init__(self) -> None:
        require_ids(self.task_id)
        _require_epoch(self.epoch)
        require_indices((self.teacher,))
        require_length("an epoch key", self.public, _KEY_BYTES)
        require_length("a signature", self.signature, SIGNATURE_BYTES)

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over."""
        numbers = (number_bytes(self.epoch), number_bytes(self.teacher))
        return (self.task_id, *numbers, self.public, self.possession)


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    """The epoch keys of all teachers who may take part, in order. From the aggregator."""

    KIND: ClassVar[str] = "roster"
    SIZE_LIMIT: ClassVar[int] = 16 * 2**20
    task_id: TaskId
    epoch: int
    keys: tuple[bytes, ...] = field(repr=False)
    signature: bytes = field(default=UNSIGNED, repr=False)
    hash: bytes = field(init=False, repr=False, compare=False)
    """The hash of epoch and keys: what ballots, lists and endorsements are bound to."""

    def __post_init__(self) -> None:
        require_ids(self.task_id)
        _require_epoch(self.epoch)
        require_length("a signature", self.signature, SIGNATURE_BYTES)
        parts = (self.task_id, number_bytes(self.epoch), *self.keys)
        object.__setattr__(self, "hash", hash_parts("dppp roster 1", parts))

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over."""
        return (self.hash,)


@dataclass(frozen=True, slots=True, kw_only=True)
class CastRequest:
    """Cast a ballot on this batch, in this attempt, with the keys of this roster.

    From the second attempt on it shows t withdrawals from the attempt before. `request` is the
    teacher's own ballot request, which has its own signature; in the store it is empty.
    """

    KIND: ClassVar[str] = "cast request"
    SIZE_LIMIT: ClassVar[int] = 300 * 2**20
    task_id: TaskId
    batch_id: BatchId
    attempt: int
    epoch: int
    roster_hash: bytes
    withdrawals: tuple[bytes, ...] = field(default=(), repr=False)
    signature: bytes = field(default=UNSIGNED, repr=False)
    request: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        require_ids(self.task_id, self.batch_id, self.roster_hash)
        _require_attempt(self.attempt)
        _require_epoch(self.epoch)
        require_length("a signature", self.signature, SIGNATURE_BYTES)

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over."""
        numbers = (number_bytes(self.attempt), number_bytes(self.epoch))
        return (self.task_id, self.batch_id, *numbers, self.roster_hash, *self.withdrawals)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedBallot:
    """One teacher's ballot: its header, which is signed, and the body that the header covers."""

    KIND: ClassVar[str] = "masked ballot"
    SIZE_LIMIT: ClassVar[int] = 64 * 2**20
    task_id: TaskId
    batch_id: BatchId
    attempt: int
    roster_hash: bytes
    teacher: int
    header: bytes
    check_block: bytes = field(repr=False)
    votes: bytes = field(repr=False)
    secret_seals: bytes = field(repr=False)
    seed_seals: bytes = field(repr=False)
    signature: bytes = field(default=UNSIGNED, repr=False)

    def __post_init__(self) -> None:
        require_ids(self.task_id, self.batch_id, self.roster_hash)
        _require_attempt(self.attempt)
        require_indices((self.teacher,))
        require_length("a ballot's header", self.header, HEADER_BYTES)
        require_length("a signature", self.signature, SIGNATURE_BYTES)

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over: the header, and so the whole body."""
        return header_parts(
            self.task_id, self.batch_id, self.attempt, self.roster_hash, self.teacher, self.header
        )


def header_parts(  # noqa: PLR0917 - in the order of the message
    task_id: bytes, batch: bytes, attempt: int, roster_hash: bytes, teacher: int, header: bytes
) -> tuple[bytes, ...]:
    """What a dealer signs of its ballot."""
    numbers = (number_bytes(attempt), number_bytes(teacher))
    return (task_id, batch, *numbers, roster_hash, header)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveredList:
    """The digests of all headers of a list, and the rows sealed to one teacher.

    A recipient needs no more of another's header: what seals are bound to, and what names it.
    """

    KIND: ClassVar[str] = "delivered list"
    SIZE_LIMIT: ClassVar[int] = 64 * 2**20
    task_id: TaskId
    batch_id: BatchId
    attempt: int
    roster_hash: bytes
    recipient: int
    participants: tuple[int, ...]
    header_digests: bytes = field(repr=False)
    secret_seals: bytes = field(repr=False)
    seed_seals: bytes = field(repr=False)
    signature: bytes = field(default=UNSIGNED, repr=False)
    list_hash: ListHash = field(init=False, repr=False, compare=False)
    """The hash of the list, the same for all who get it."""

    def __post_init__(self) -> None:
        require_ids(self.task_id, self.batch_id, self.roster_hash)
        _require_attempt(self.attempt)
        require_indices((self.recipient, *self.participants))
        length = HEADER_DIGESTS_BYTES * len(self.participants)
        require_length("the digests of a list's headers", self.header_digests, length)
        require_length("a signature", self.signature, SIGNATURE_BYTES)
        of_all = (self.task_id, self.batch_id, self.attempt, self.roster_hash)
        found = masked_list_hash(*of_all, self.participants, self.header_digests)
        object.__setattr__(self, "list_hash", found)

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over: its recipient can show it without the seals."""
        return delivery_parts(
            self.task_id,
            self.batch_id,
            self.attempt,
            self.list_hash,
            self.recipient,
            self.seals_digest,
        )

    @property
    def seals_digest(self) -> bytes:
        """The hash of the seals that are delivered."""
        return digest_of_delivered(self.secret_seals, self.seed_seals)


def delivery_parts(  # noqa: PLR0917 - in the order of the message
    task_id: bytes,
    batch: bytes,
    attempt: int,
    list_hash: bytes,
    recipient: int,
    seals_digest: bytes,
) -> tuple[bytes, ...]:
    """What the aggregator signs of a list that it delivers."""
    numbers = (number_bytes(attempt), number_bytes(recipient))
    return (task_id, batch, *numbers, list_hash, seals_digest)


def digest_of_delivered(secret_seals: bytes, seed_seals: bytes) -> bytes:
    """H(the seals of both kinds to one recipient, in the dealers' order)."""
    return hash_parts("dppp delivered seals 1", (secret_seals, seed_seals))


def masked_list_hash(  # noqa: PLR0917 - in the order of the message
    task_id: bytes,
    batch: bytes,
    attempt: int,
    roster_hash: bytes,
    participants: Sequence[int],
    header_digests: bytes,
) -> ListHash:
    """The hash of a list: whose headers are in it, in order, in which attempt."""
    members = numbers_bytes(participants)
    parts = (task_id, batch, number_bytes(attempt), roster_hash, members, header_digests)
    return ListHash(hash_parts("dppp masked list 2", parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedSum:
    """t teachers endorsed this list, and their sums of rows opened its check blocks.

    For one recipient: the MACs are those that the endorsers made for it. Whoever does not find
    t of them good is sent their signatures too.
    """

    KIND: ClassVar[str] = "certified sum"
    SIZE_LIMIT: ClassVar[int] = 64 * 2**20
    task_id: TaskId
    batch_id: BatchId
    attempt: int
    list_hash: ListHash
    recipient: int
    endorsers: tuple[int, ...]
    macs: bytes = field(repr=False)
    digests: bytes = field(repr=False)
    signatures: bytes = field(repr=False)
    check_sum: bytes = field(repr=False)
    secret: bytes = field(repr=False)
    signature: bytes = field(default=UNSIGNED, repr=False)

    def __post_init__(self) -> None:
        require_ids(self.task_id, self.batch_id, self.list_hash)
        _require_attempt(self.attempt)
        require_indices((self.recipient, *self.endorsers))
        count = len(self.endorsers)
        require_length("the MACs of a certified list", self.macs, count * MAC_BYTES)
        if self.signatures or self.digests:
            require_length("signatures", self.signatures, count * SIGNATURE_BYTES)
            require_length("digests", self.digests, count * HASH_BYTES)
        require_length("a signature", self.signature, SIGNATURE_BYTES)

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over."""
        members = numbers_bytes(self.endorsers)
        numbers = (number_bytes(self.attempt), number_bytes(self.recipient))
        bulk = (self.macs, self.digests, self.signatures, self.check_sum, self.secret)
        return (self.task_id, self.batch_id, *numbers, self.list_hash, members, *bulk)


class AboutAttempt:
    """What most messages of teachers are about: one attempt at a batch, signed by a teacher."""

    __slots__ = ()
    task_id: TaskId
    batch_id: BatchId
    attempt: int
    teacher: int
    signature: bytes

    def _check_attempt(self) -> None:
        require_ids(self.task_id, self.batch_id)
        _require_attempt(self.attempt)
        require_indices((self.teacher,))
        require_length("a signature", self.signature, SIGNATURE_BYTES)

    def _attempt_parts(self) -> tuple[bytes, ...]:
        numbers = (number_bytes(self.attempt), number_bytes(self.teacher))
        return (self.task_id, self.batch_id, *numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedRows(AboutAttempt):
    """One teacher's rows of all listed dealers' seeds: it opens the certified list."""

    KIND: ClassVar[str] = "seed rows"
    SIZE_LIMIT: ClassVar[int] = 64 * 2**20
    task_id: TaskId
    batch_id: BatchId
    attempt: int
    list_hash: ListHash
    teacher: int
    rows: bytes = field(repr=False)
    signature: bytes = field(default=UNSIGNED, repr=False)

    def __post_init__(self) -> None:
        self._check_attempt()
        require_ids(self.list_hash)

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over."""
        return (*self._attempt_parts(), self.list_hash, self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection(AboutAttempt):
    """Seals of these dealers do not open, so the list is not endorsed.

    `delivery` is what the aggregator signed of the list when it delivered it (deliveries.py).
    """

    KIND: ClassVar[str] = "objection"
    SIZE_LIMIT: ClassVar[int] = _SMALL
    task_id: TaskId
    batch_id: BatchId
    attempt: int
    teacher: int
    list_hash: ListHash
    delivery: bytes = field(repr=False)
    purpose: int
    dealers: tuple[int, ...]
    signature: bytes = field(default=UNSIGNED, repr=False)

    def __post_init__(self) -> None:
        self._check_attempt()
        require_ids(self.list_hash)
        require_length("a delivery", self.delivery, DELIVERY_BYTES)
        _require_purpose(self.purpose)
        require_indices(self.dealers)
        if not self.dealers:
            raise WireError("an objection names at least one dealer")

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over."""
        members = numbers_bytes(self.dealers)
        about = (self.list_hash, self.delivery)
        return (*self._attempt_parts(), *about, number_bytes(self.purpose), members)


@dataclass(frozen=True, slots=True, kw_only=True)
class SealEvidence:
    """All seals of one kind of one dealer, and the signed header that covers them."""

    KIND: ClassVar[str] = "seal evidence"
    SIZE_LIMIT: ClassVar[int] = 64 * 2**20
    task_id: TaskId
    batch_id: BatchId
    attempt: int
    roster_hash: bytes
    dealer: int
    purpose: int
    header: bytes
    header_signature: bytes = field(repr=False)
    seals: bytes = field(repr=False)
    signature: bytes = field(default=UNSIGNED, repr=False)

    def __post_init__(self) -> None:
        require_ids(self.task_id, self.batch_id, self.roster_hash)
        _require_attempt(self.attempt)
        _require_purpose(self.purpose)
        require_indices((self.dealer,))
        require_length("a ballot's header", self.header, HEADER_BYTES)
        require_length("a signature", self.header_signature, SIGNATURE_BYTES)
        require_length("a signature", self.signature, SIGNATURE_BYTES)

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over."""
        parts = header_parts(
            self.task_id, self.batch_id, self.attempt, self.roster_hash, self.dealer, self.header
        )
        return (*parts, number_bytes(self.purpose), self.header_signature, self.seals)


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint(AboutAttempt):
    """The secret of a pair and its proof: everybody can see whether the dealer's seal opens."""

    KIND: ClassVar[str] = "complaint"
    SIZE_LIMIT: ClassVar[int] = _SMALL
    task_id: TaskId
    batch_id: BatchId
    attempt: int
    teacher: int
    dealer: int
    purpose: int
    pair_secret: bytes = field(repr=False)
    proof: bytes = field(repr=False)
    signature: bytes = field(default=UNSIGNED, repr=False)

    def __post_init__(self) -> None:
        self._check_attempt()
        _require_purpose(self.purpose)
        require_indices((self.dealer,))

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over."""
        numbers = (number_bytes(self.dealer), number_bytes(self.purpose))
        return (*self._attempt_parts(), *numbers, self.pair_secret, self.proof)


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawalRequest:
    """Say that you will never open this attempt. From the aggregator."""

    KIND: ClassVar[str] = "withdrawal request"
    SIZE_LIMIT: ClassVar[int] = _SMALL
    task_id: TaskId
    batch_id: BatchId
    attempt: int
    signature: bytes = field(default=UNSIGNED, repr=False)

    def __post_init__(self) -> None:
        require_ids(self.task_id, self.batch_id)
        _require_attempt(self.attempt)
        require_length("a signature", self.signature, SIGNATURE_BYTES)

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over."""
        return (self.task_id, self.batch_id, number_bytes(self.attempt))


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal(AboutAttempt):
    """A teacher's word that it has not opened and will never open this attempt."""

    KIND: ClassVar[str] = "withdrawal"
    SIZE_LIMIT: ClassVar[int] = _SMALL
    task_id: TaskId
    batch_id: BatchId
    attempt: int
    teacher: int
    signature: bytes = field(default=UNSIGNED, repr=False)

    def __post_init__(self) -> None:
        self._check_attempt()

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over."""
        return self._attempt_parts()


@dataclass(frozen=True, slots=True, kw_only=True)
class RootRequest:
    """t teachers withdrew: show the root of your dealing. From the aggregator."""

    KIND: ClassVar[str] = "root request"
    SIZE_LIMIT: ClassVar[int] = 16 * 2**20
    task_id: TaskId
    batch_id: BatchId
    attempt: int
    withdrawals: tuple[bytes, ...] = field(repr=False)
    signature: bytes = field(default=UNSIGNED, repr=False)

    def __post_init__(self) -> None:
        require_ids(self.task_id, self.batch_id)
        _require_attempt(self.attempt)
        require_length("a signature", self.signature, SIGNATURE_BYTES)

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over."""
        return (self.task_id, self.batch_id, number_bytes(self.attempt), *self.withdrawals)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRoot(AboutAttempt):
    """The root of a dealing: everybody works out its check block and rows again."""

    KIND: ClassVar[str] = "root"
    SIZE_LIMIT: ClassVar[int] = _SMALL
    task_id: TaskId
    batch_id: BatchId
    attempt: int
    teacher: int
    root: bytes = field(repr=False)
    signature: bytes = field(default=UNSIGNED, repr=False)

    def __post_init__(self) -> None:
        self._check_attempt()

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over."""
        return (*self._attempt_parts(), self.root)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRequest:
    """Show the rows of these dealers that were sealed to you. From the aggregator.

    Rows of secrets only where t teachers withdrew; rows of seeds only where they were given before.
    """

    KIND: ClassVar[str] = "row request"
    SIZE_LIMIT: ClassVar[int] = 16 * 2**20
    task_id: TaskId
    batch_id: BatchId
    attempt: int
    purpose: int
    dealers: tuple[int, ...]
    withdrawals: tuple[bytes, ...] = field(default=(), repr=False)
    signature: bytes = field(default=UNSIGNED, repr=False)

    def __post_init__(self) -> None:
        require_ids(self.task_id, self.batch_id)
        _require_attempt(self.attempt)
        _require_purpose(self.purpose)
        require_indices(self.dealers)
        require_length("a signature", self.signature, SIGNATURE_BYTES)

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over."""
        members = numbers_bytes(self.dealers)
        numbers = (number_bytes(self.attempt), number_bytes(self.purpose))
        return (self.task_id, self.batch_id, *numbers, members, *self.withdrawals)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRows(AboutAttempt):
    """Rows that were sealed to a teacher, each with the key of its tag, in the dealers' order."""

    KIND: ClassVar[str] = "shown rows"
    SIZE_LIMIT: ClassVar[int] = 64 * 2**20
    task_id: TaskId
    batch_id: BatchId
    attempt: int
    teacher: int
    purpose: int
    dealers: tuple[int, ...]
    tag_keys: bytes = field(repr=False)
    rows: bytes = field(repr=False)
    signature: bytes = field(default=UNSIGNED, repr=False)

    def __post_init__(self) -> None:
        self._check_attempt()
        _require_purpose(self.purpose)
        require_indices(self.dealers)
        require_length("tag keys", self.tag_keys, _KEY_BYTES * len(self.dealers))

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over."""
        members = numbers_bytes(self.dealers)
        bulk = (self.tag_keys, self.rows)
        return (*self._attempt_parts(), number_bytes(self.purpose), members, *bulk)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundNotice:
    """t teachers withdrew and nothing more will come: take the charge back. From the aggregator."""

    KIND: ClassVar[str] = "refund notice"
    SIZE_LIMIT: ClassVar[int] = 16 * 2**20
    task_id: TaskId
    batch_id: BatchId
    attempt: int
    withdrawals: tuple[bytes, ...] = field(repr=False)
    signature: bytes = field(default=UNSIGNED, repr=False)

    def __post_init__(self) -> None:
        require_ids(self.task_id, self.batch_id)
        _require_attempt(self.attempt)
        require_length("a signature", self.signature, SIGNATURE_BYTES)

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over."""
        return (self.task_id, self.batch_id, number_bytes(self.attempt), *self.withdrawals)


MaskedFromTeacher = (
    PublishedKey
    | MaskedBallot
    | SeedRows
    | Objection
    | Complaint
    | Withdrawal
    | ShownRoot
    | ShownRows
)
MaskedFromAggregator = (
    KeyRequest
    | Roster
    | CastRequest
    | DeliveredList
    | CertifiedSum
    | SealEvidence
    | WithdrawalRequest
    | RootRequest
    | RowRequest
    | RefundNotice
)


def votes_seed(task_id: TaskId, batch: BatchId, attempt: int) -> bytes:
    """From what the public polynomials of the vote blocks are made."""
    return hash_parts("dppp masks votes 1", (task_id, batch, number_bytes(attempt)))


def evidence_of(withdrawals: Iterable[bytes]) -> bytes:
    """The hash of withdrawals that were shown, for the ledger."""
    return hash_parts("dppp withdrawals shown 1", withdrawals)


def _require_purpose(purpose: int) -> None:
    if purpose not in (1, 2):
        raise WireError("rows are of a secret (1) or of a seed (2)")
