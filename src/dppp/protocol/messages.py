"""What the parties say to each other, and the hashes that bind it together.

In the order of the protocol: the querier sends sealed queries; the aggregator makes a batch request
of them and sends every teacher its ballot request; each answers with a ballot; the aggregator sends
back the list of ballots; each teacher checks it and answers with an endorsement; t endorsements
certify the list; each teacher answers a certified list with its decryption shares. Share proofs are
asked for only when an opening fails.
Teachers sign what they say, and the aggregator signs what it says: the task holds all their keys.
Every hash is SHA-256 over length-prefixed parts under a domain of its own.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NewType, Protocol, cast

from dppp.errors import WireError
from dppp.hashing import HASH_BYTES, hash_parts

TaskId = NewType("TaskId", bytes)
QueryId = NewType("QueryId", bytes)
BatchId = NewType("BatchId", bytes)
ListHash = NewType("ListHash", bytes)

WRAPPED_KEY_BYTES = 80
"""A content key under HPKE: 32 bytes of a public key, 32 of the key, 16 of a tag."""
SIGNATURE_BYTES = 64
UNSIGNED = bytes(SIGNATURE_BYTES)
"""What stands in the place of a signature until there is one; it never verifies."""
MOST_INDEX = 0xFFFF
MOST_QUERIES = 20_000
"""Queries in one batch; a larger set is sent as several batches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedQueries:
    """Rows that only teachers can read: what a querier's program sends.

    `query_ids` are keyed digests of the rows, one after the other. `wrapped_keys` are the content
    key, sealed to each teacher in turn. rows.py makes and opens it.
    """

    KIND: ClassVar[str] = "sealed queries"
    SIZE_LIMIT: ClassVar[int] = 256 * 2**20
    task_id: TaskId
    query_ids: bytes = field(repr=False)
    sealed: bytes = field(repr=False)
    wrapped_keys: bytes = field(repr=False)

    def __post_init__(self) -> None:
        require_length("a task id", self.task_id, HASH_BYTES)
        require_query_ids(self.query_ids)
        if not self.wrapped_keys or len(self.wrapped_keys) % WRAPPED_KEY_BYTES:
            raise WireError(f"wrapped keys have {WRAPPED_KEY_BYTES} bytes each")

    @property
    def batch_id(self) -> BatchId:
        """The id of the batch that they make."""
        return batch_id(self.task_id, self.query_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRequest:
    """Queries to answer before the deadline, in seconds of the common clock.

    What the aggregator signs and stores. A teacher is sent a part of it, its ballot request.
    `others` are there where queriers share the batch: what the second and further ones ask.
    """

    KIND: ClassVar[str] = "batch request"
    SIZE_LIMIT: ClassVar[int] = 256 * 2**20
    deadline: int
    queries: SealedQueries
    others: tuple[SealedQueries, ...] = ()
    signature: bytes = field(default=UNSIGNED, repr=False)

    def __post_init__(self) -> None:
        require_length("a signature", self.signature, SIGNATURE_BYTES)
        if self.others:
            require_query_ids(self.query_id_bytes)
            if {each.task_id for each in self.others} != {self.task_id}:
                raise WireError("queries of several tasks cannot share a batch")

    @property
    def task_id(self) -> TaskId:
        """The task of the queries."""
        return self.queries.task_id

    @property
    def parts(self) -> tuple[SealedQueries, ...]:
        """What each querier asks; mostly there is one."""
        return (self.queries, *self.others)

    @property
    def query_id_bytes(self) -> bytes:
        """The id of each query, one after the other."""
        return b"".join(each.query_ids for each in self.parts)

    @property
    def query_ids(self) -> tuple[QueryId, ...]:
        """The id of each query, in order."""
        return split_query_ids(self.query_id_bytes)

    @property
    def batch_id(self) -> BatchId:
        """The id of the batch that it asks for."""
        return batch_id(self.task_id, self.query_id_bytes)

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over."""
        parts = [(each.query_ids, each.sealed, each.wrapped_keys) for each in self.parts]
        return (self.task_id, number_bytes(self.deadline), *sum(parts, ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPart:
    """What one querier asks in a batch that several share, and one teacher's key to its rows."""

    query_ids: bytes = field(repr=False)
    sealed: bytes = field(repr=False)
    wrapped_key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        require_query_ids(self.query_ids)
        require_length("a wrapped key", self.wrapped_key, WRAPPED_KEY_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class BallotRequest:
    """The sealed rows of a batch, and one teacher's key to them.

    The signature is over all but the wrapped key: it is made once for all teachers, and a key that
    is not the right one does not open rows of this batch id.

    Where queriers share the batch, their parts are in `shared` and nothing is in `sealed`. A part
    that does not open gets no vote of its teacher, so the signature is then over the wrapped keys
    too, and made for each teacher: else whoever carries the request could take a vote away.
    """

    KIND: ClassVar[str] = "ballot request"
    SIZE_LIMIT: ClassVar[int] = 256 * 2**20
    task_id: TaskId
    batch_id: BatchId
    deadline: int
    queries: int
    sealed: bytes = field(repr=False)
    shared: tuple[SharedPart, ...] = field(default=(), repr=False)
    signature: bytes = field(default=UNSIGNED, repr=False)
    wrapped_key: bytes = field(default=bytes(WRAPPED_KEY_BYTES), repr=False)

    def __post_init__(self) -> None:
        require_ids(self.task_id, self.batch_id)
        require_query_count(self.queries)
        require_length("a signature", self.signature, SIGNATURE_BYTES)
        require_length("a wrapped key", self.wrapped_key, WRAPPED_KEY_BYTES)
        if self.shared:
            named = sum(len(each.query_ids) for each in self.shared) // HASH_BYTES
            if len(self.shared) < 2 or self.sealed or named != self.queries:
                raise WireError("a shared batch has two parts at least, and all its queries there")

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over."""
        numbers = (number_bytes(self.deadline), number_bytes(self.queries))
        parts = [(each.query_ids, each.sealed, each.wrapped_key) for each in self.shared]
        return (self.task_id, self.batch_id, *numbers, self.sealed, *sum(parts, ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ballot:
    """One teacher's packed, encrypted, proved and signed votes on a batch."""

    KIND: ClassVar[str] = "ballot"
    SIZE_LIMIT: ClassVar[int] = 64 * 2**20
    task_id: TaskId
    batch_id: BatchId
    teacher: int
    ciphertexts: bytes = field(repr=False)
    proof: bytes = field(repr=False)
    signature: bytes = field(default=UNSIGNED, repr=False)

    def __post_init__(self) -> None:
        require_ids(self.task_id, self.batch_id)
        require_length("a signature", self.signature, SIGNATURE_BYTES)

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over."""
        ids = (self.task_id, self.batch_id, number_bytes(self.teacher))
        return (*ids, self.ciphertexts, self.proof)


@dataclass(frozen=True, slots=True, kw_only=True)
class BallotList:
    """All ballots of a batch, byte for byte as the teachers sent them, in the teachers' order."""

    KIND: ClassVar[str] = "ballot list"
    SIZE_LIMIT: ClassVar[int] = 2**30
    task_id: TaskId
    batch_id: BatchId
    ballots: tuple[bytes, ...] = field(repr=False)
    signature: bytes = field(default=UNSIGNED, repr=False)

    def __post_init__(self) -> None:
        require_ids(self.task_id, self.batch_id)
        require_length("a signature", self.signature, SIGNATURE_BYTES)

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over."""
        return (list_hash(self),)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListStatement:
    """What is endorsed: the list, the tallies made from it, and whose ballots are in it."""

    task_id: TaskId
    batch_id: BatchId
    key_id: bytes
    list_hash: ListHash
    tally_hash: bytes
    participants: tuple[int, ...]

    def __post_init__(self) -> None:
        require_ids(self.task_id, self.batch_id, self.key_id, self.list_hash, self.tally_hash)
        require_indices(self.participants)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endorsement:
    """One teacher's word that this is the only list it will help to open in this batch.

    `content` is what the cryptosystem has to add: nothing for paillier, for masks the sum of rows.
    """

    KIND: ClassVar[str] = "endorsement"
    SIZE_LIMIT: ClassVar[int] = 2**20
    statement: ListStatement
    teacher: int
    content: bytes = field(default=b"", repr=False)
    signature: bytes = field(default=UNSIGNED, repr=False)

    def __post_init__(self) -> None:
        require_length("a signature", self.signature, SIGNATURE_BYTES)
        require_indices((self.teacher,))

    @property
    def task_id(self) -> TaskId:
        """The task of the list."""
        return self.statement.task_id

    @property
    def batch_id(self) -> BatchId:
        """The batch of the list."""
        return self.statement.batch_id

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over."""
        return endorsed_parts(self.statement, self.teacher, content_digest(self.content))


@dataclass(frozen=True, slots=True, kw_only=True)
class Endorser:
    """Who endorsed a list, where what was endorsed is known already."""

    teacher: int
    digest: bytes = field(default=b"", repr=False)
    signature: bytes = field(repr=False)

    def __post_init__(self) -> None:
        require_length("a signature", self.signature, SIGNATURE_BYTES)
        require_indices((self.teacher,))
        if self.digest:
            require_ids(self.digest)

    @classmethod
    def of(cls, endorsement: Endorsement) -> "Endorser":
        """The short form of an endorsement."""
        return cls(
            teacher=endorsement.teacher,
            digest=content_digest(endorsement.content),
            signature=endorsement.signature,
        )

    def endorsement_of(self, statement: ListStatement) -> "ShortEndorsement":
        """The endorsement, with the digest of its content in the content's place."""
        return ShortEndorsement(
            statement=statement,
            teacher=self.teacher,
            digest=self.digest,
            signature=self.signature,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortEndorsement:
    """An endorsement of which only the digest of the content is known; never sent as such."""

    KIND: ClassVar[str] = Endorsement.KIND
    statement: ListStatement
    teacher: int
    digest: bytes
    signature: bytes

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over: the same as that of the endorsement."""
        return endorsed_parts(self.statement, self.teacher, self.digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedList:
    """t teachers have endorsed this list: give your decryption shares of its tallies."""

    KIND: ClassVar[str] = "certified list"
    SIZE_LIMIT: ClassVar[int] = 64 * 2**20
    task_id: TaskId
    batch_id: BatchId
    list_hash: ListHash
    tallies: bytes = field(repr=False)
    endorsers: tuple[Endorser, ...]
    signature: bytes = field(default=UNSIGNED, repr=False)

    def __post_init__(self) -> None:
        require_ids(self.task_id, self.batch_id, self.list_hash)
        require_length("a signature", self.signature, SIGNATURE_BYTES)

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over."""
        endorsers = (
            part
            for each in self.endorsers
            for part in (number_bytes(each.teacher), each.digest, each.signature)
        )
        return (self.task_id, self.batch_id, self.list_hash, self.tallies, *endorsers)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedShares:
    """One teacher's decryption shares of the tallies of a certified list."""

    KIND: ClassVar[str] = "decryption shares"
    SIZE_LIMIT: ClassVar[int] = 64 * 2**20
    task_id: TaskId
    batch_id: BatchId
    list_hash: ListHash
    teacher: int
    shares: bytes = field(repr=False)
    signature: bytes = field(default=UNSIGNED, repr=False)

    def __post_init__(self) -> None:
        require_ids(self.task_id, self.batch_id, self.list_hash)
        require_length("a signature", self.signature, SIGNATURE_BYTES)

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over."""
        ids = (self.task_id, self.batch_id, number_bytes(self.teacher))
        return (*ids, self.list_hash, self.shares)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofRequest:
    """Prove the shares that you gave for this list; sent when they did not open it."""

    KIND: ClassVar[str] = "proof request"
    SIZE_LIMIT: ClassVar[int] = 64 * 2**20
    task_id: TaskId
    batch_id: BatchId
    list_hash: ListHash
    tallies: bytes = field(repr=False)
    signature: bytes = field(default=UNSIGNED, repr=False)

    def __post_init__(self) -> None:
        require_ids(self.task_id, self.batch_id, self.list_hash)
        require_length("a signature", self.signature, SIGNATURE_BYTES)

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over."""
        return (self.task_id, self.batch_id, self.list_hash, self.tallies)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedShareProof:
    """One teacher's proof that its decryption shares are right."""

    KIND: ClassVar[str] = "share proof"
    SIZE_LIMIT: ClassVar[int] = 2**20
    task_id: TaskId
    batch_id: BatchId
    list_hash: ListHash
    teacher: int
    proof: bytes = field(repr=False)
    signature: bytes = field(default=UNSIGNED, repr=False)

    def __post_init__(self) -> None:
        require_ids(self.task_id, self.batch_id, self.list_hash)
        require_length("a signature", self.signature, SIGNATURE_BYTES)

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over."""
        ids = (self.task_id, self.batch_id, number_bytes(self.teacher))
        return (*ids, self.list_hash, self.proof)


def content_digest(content: bytes) -> bytes:
    """The digest of what an endorsement adds; empty where it adds nothing."""
    return hash_parts("dppp endorsement content 1", (content,)) if content else b""


def endorsed_parts(statement: ListStatement, teacher: int, digest: bytes) -> tuple[bytes, ...]:
    """What an endorser signs."""
    members = numbers_bytes(statement.participants)
    ids = (statement.task_id, statement.batch_id, number_bytes(teacher))
    parts = (statement.key_id, statement.list_hash, statement.tally_hash, members)
    return (*ids, *parts, digest)


def batch_id(task_id: TaskId, query_ids: bytes) -> BatchId:
    """The hash of the task and the ordered query ids: other rows make another batch."""
    return BatchId(hash_parts("dppp batch 2", (task_id, query_ids)))


def split_query_ids(data: bytes) -> tuple[QueryId, ...]:
    """Each of the query ids that lie one after the other."""
    # Many: a call of QueryId for each would take half the time.
    return cast(
        "tuple[QueryId, ...]",
        tuple([data[at : at + HASH_BYTES] for at in range(0, len(data), HASH_BYTES)]),
    )


def list_hash(ballot_list: BallotList) -> ListHash:
    """The hash of a list, over the ballots' own bytes."""
    return ListHash(
        hash_parts(
            "dppp ballot list 1",
            (ballot_list.task_id, ballot_list.batch_id, *ballot_list.ballots),
        )
    )


def ballot_context(task_id: TaskId, batch: BatchId, teacher: int) -> bytes:
    """What a ballot's proof is bound to: task, batch (and so every query) and teacher."""
    return hash_parts("dppp ballot context 1", (task_id, batch, teacher.to_bytes(8, "big")))


def share_context(task_id: TaskId, batch: BatchId, of_list: ListHash) -> bytes:
    """What a proof of decryption shares is bound to."""
    return hash_parts("dppp share context 1", (task_id, batch, of_list))


def share_lot(of_list: ListHash, teacher: int) -> bytes:
    """The lot by which t voters are drawn to be asked for decryption shares first."""
    return hash_parts("dppp share lot 1", (of_list, teacher.to_bytes(8, "big")))


def tally_hash(tallies: bytes) -> bytes:
    """The hash of a list's tallies, as `write_ciphertexts` writes them."""
    return hash_parts("dppp tallies 1", (tallies,))


class Signed(Protocol):
    """A message with a signature over its kind and its parts."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    KIND: ClassVar[str]

    @property
    def signature(self) -> bytes:
        """The sender's signature."""

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over."""


class FromTeacher(Signed, Protocol):
    """A message that a teacher signs."""

    @property
    def teacher(self) -> int:
        """Who says that it sent it."""


def signed_bytes(message: Signed) -> bytes:
    """What the signature of a message is over: everything else in it."""
    return hash_parts(f"dppp signed {message.KIND} 2", message.signed_parts())


def number_bytes(value: int) -> bytes:
    """A number as it is hashed and signed."""
    return value.to_bytes(8, "big", signed=True)


def numbers_bytes(values: Sequence[int]) -> bytes:
    """Numbers one after another, each as `number_bytes` writes it."""
    return struct.pack(f">{len(values)}q", *values)


def require_ids(*ids: bytes) -> None:
    """Refuse what is not a hash."""
    for each in ids:
        require_length("an id", each, HASH_BYTES)


def require_query_ids(data: bytes) -> None:
    """Refuse what is not a row of query ids, as many as a batch may hold."""
    if len(data) % HASH_BYTES:
        raise WireError(
            f"query ids have {HASH_BYTES} bytes each, and these are {len(data):,} bytes"
        )
    require_query_count(len(data) // HASH_BYTES)


def require_query_count(queries: int) -> None:
    """Refuse more or fewer queries than a batch may hold."""
    if not 1 <= queries <= MOST_QUERIES:
        raise WireError(
            f"a batch holds 1 to {MOST_QUERIES:,} queries, not {queries:,}", hint="split it"
        )


def require_length(what: str, value: bytes, length: int) -> None:
    """Refuse bytes of another length."""
    if len(value) != length:
        raise WireError(f"{what} has {len(value)} bytes, expected {length}")


def require_indices(values: Iterable[int]) -> None:
    """Refuse what is not the number of a teacher."""
    known = tuple(values)
    if known and not 1 <= min(known) <= max(known) <= MOST_INDEX:
        wrong = next(each for each in known if not 1 <= each <= MOST_INDEX)
        raise WireError(f"{wrong} is not the number of a teacher; they count from 1")
