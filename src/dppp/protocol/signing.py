"""Ed25519 signatures: of teachers on what they send, and of the aggregator on what it sends.

The task says whose key is whose. A teacher acts on nothing that the aggregator did not sign, so
whoever holds only the broker's keys, or another teacher's, cannot spend anybody's budget.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from dppp.errors import ListNotCertified, NotFromAggregator, SignatureFault
from dppp.protocol.messages import Endorser, FromTeacher, ListStatement, Signed, signed_bytes
from dppp.protocol.task import Task

AnySigned = TypeVar("AnySigned", bound=Signed)

Signer = Callable[[bytes], bytes]
"""Signs bytes; the key itself may be in another process or a token."""


def signer_of(key: Ed25519PrivateKey) -> Signer:
    """Sign with a key in memory."""
    return key.sign


def sign(message: AnySigned, signer: Signer) -> AnySigned:
    """The message with its sender's signature."""
    return replace(message, signature=signer(signed_bytes(message)))


def verify_signature(task: Task, message: FromTeacher) -> None:
    """Raise, naming the teacher, unless it signed this message under this task."""
    if not 1 <= message.teacher <= len(task.teachers):
        raise SignatureFault(f"there is no teacher {message.teacher} in this task; refuse it")
    if not _is_signed(task.teachers[message.teacher - 1].signing_key, message):
        raise SignatureFault(
            f"a {message.KIND} is not signed by teacher {message.teacher}; leave it out",
            culprits=(message.teacher,),
        )


def require_from_aggregator(task: Task, message: Signed) -> None:
    """Raise unless the aggregator of this task signed this message."""
    if not _is_signed(task.aggregator_key, message):
        raise NotFromAggregator(
            f"a {message.KIND} is not signed by the aggregator of this task; nothing was done",
            hint="if the aggregator has a new key, agree on a new task",
        )


def require_certified(task: Task, statement: ListStatement, endorsers: Sequence[Endorser]) -> None:
    """Raise unless t distinct teachers, all of them in the list, endorsed exactly this."""
    is_other_key = task.masks is None and statement.key_id != task.key_id
    if statement.task_id != task.task_id or is_other_key:
        raise ListNotCertified("the list is of another task or key; refuse it")
    named = [each.teacher for each in endorsers]
    if len(set(named)) != len(named) or not set(named) <= set(statement.participants):
        raise ListNotCertified(
            "the endorsements of a list must be by distinct teachers whose ballots are in it; "
            "refuse the list"
        )
    if len(named) < task.trust.threshold:
        raise ListNotCertified(
            f"the list has {len(named)} endorsements, and {task.trust.threshold} certify one; "
            "refuse it"
        )
    for each in endorsers:
        try:
            verify_signature(task, each.endorsement_of(statement))
        except SignatureFault:
            raise ListNotCertified(
                f"teacher {each.teacher} did not endorse this list with these tallies; refuse it"
            ) from None


@functools.lru_cache(maxsize=4096)
def _public_key(key: bytes) -> Ed25519PublicKey:
    return Ed25519PublicKey.from_public_bytes(key)


def _is_signed(key: bytes, message: Signed) -> bool:
    try:
        _public_key(key).verify(message.signature, signed_bytes(message))
    except InvalidSignature:
        return False
    return True
