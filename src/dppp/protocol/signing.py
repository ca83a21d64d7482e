"""Ed25519 signatures of teachers on what they send. The task says whose key is whose."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from dppp.errors import SignatureFault
from dppp.protocol.messages import (
    SIGNATURE_BYTES,
    Ballot,
    SignedShareProof,
    SignedShares,
    signed_bytes,
)
from dppp.protocol.task import Task

Signed = TypeVar("Signed", Ballot, SignedShares, SignedShareProof)

Signer = Callable[[bytes], bytes]
"""Signs bytes; the key itself may be in another process or a token."""

UNSIGNED = bytes(SIGNATURE_BYTES)


def signer_of(key: Ed25519PrivateKey) -> Signer:
    """Sign with a key in memory."""
    return key.sign


def sign(message: Signed, signer: Signer) -> Signed:
    """The message with its teacher's signature."""
    return replace(message, signature=signer(signed_bytes(message)))


def verify_signature(task: Task, message: Ballot | SignedShares | SignedShareProof) -> None:
    """Raise, naming the teacher, unless it signed this message under this task."""
    if not 1 <= message.teacher <= len(task.teachers):
        raise SignatureFault(f"there is no teacher {message.teacher} in this task; refuse it")
    key = Ed25519PublicKey.from_public_bytes(task.teachers[message.teacher - 1].signing_key)
    try:
        key.verify(message.signature, signed_bytes(message))
    except InvalidSignature:
        raise SignatureFault(
            f"a {message.KIND} is not signed by teacher {message.teacher}; leave it out",
            culprits=(message.teacher,),
        ) from None
