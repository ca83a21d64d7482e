"""What the aggregator signed of a list when it delivered it to one teacher.

Dealers sign digests of all their seals, and a teacher is delivered only those to itself. So it
cannot see that they are the signed ones. It keeps the aggregator's word on what it was delivered
instead: in its endorsement, which is in its ledger, or in its objection. Whoever holds a dealer's
signed seals against a teacher compares them with this first. Where they differ, the aggregator is
at fault, and what its recipient opened, added up, gave or showed is held against nobody.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from dppp.errors import ListFault
from dppp.hashing import HASH_BYTES
from dppp.protocol.messages import (
    SIGNATURE_BYTES,
    BatchId,
    Endorsement,
    ListHash,
    TaskId,
    require_length,
)
from dppp.protocol.with_masks.messages import (
    DELIVERY_BYTES,
    DeliveredList,
    Objection,
    delivery_parts,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A list as it was delivered, without its seals; never sent as such."""

    KIND: ClassVar[str] = DeliveredList.KIND
    task_id: TaskId
    batch_id: BatchId
    attempt: int
    list_hash: ListHash
    recipient: int
    seals_digest: bytes
    signature: bytes = field(repr=False)

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the aggregator's signature is over: the same as that of the list."""
        return delivery_parts(
            self.task_id,
            self.batch_id,
            self.attempt,
            self.list_hash,
            self.recipient,
            self.seals_digest,
        )

    @classmethod
    def in_endorsement(cls, said: Endorsement, *, attempt: int) -> "Delivery":
        """What an endorser was delivered, by its own word."""
        statement = said.statement
        return cls(
            task_id=statement.task_id,
            batch_id=statement.batch_id,
            attempt=attempt,
            list_hash=statement.list_hash,
            recipient=said.teacher,
            **_parts_of(said.content[-DELIVERY_BYTES:]),
        )

    @classmethod
    def in_objection(cls, said: Objection) -> "Delivery":
        """What an objector was delivered, by its own word."""
        return cls(
            task_id=said.task_id,
            batch_id=said.batch_id,
            attempt=said.attempt,
            list_hash=said.list_hash,
            recipient=said.teacher,
            **_parts_of(said.delivery),
        )


def delivery_of(listed: DeliveredList) -> bytes:
    """What a teacher keeps of a list that the aggregator signed for it."""
    return listed.seals_digest + listed.signature


def require_same_delivery(listed: DeliveredList, said: Endorsement) -> None:
    """Refuse a list that comes again with other seals than those that this teacher endorsed.

    Else its rows would not be those that it said, and it would be named for that.
    """
    before = Delivery.in_endorsement(said, attempt=listed.attempt)
    if before.seals_digest != listed.seals_digest:
        raise ListFault(
            "this list comes with other seals than when this teacher endorsed it",
            hint="ask the aggregator for the list as it was first",
        )


def _parts_of(delivery: bytes) -> dict[str, bytes]:
    require_length("a delivery", delivery, HASH_BYTES + SIGNATURE_BYTES)
    return {"seals_digest": delivery[:HASH_BYTES], "signature": delivery[HASH_BYTES:]}
