"""What members send the coordinator in a change: new keys, and consent; one file each.

A rotation is a join request with the old key's signature; a consent is a teacher's signature on the
change. Both name the task that they are about, so neither is good for a second one.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

from dppp.service.ceremony.change import SignedBy
from dppp.service.ceremony.federation_file import Member, NonVotingMember
from dppp.service.ceremony.identity import Role
from dppp.service.ceremony.join_request import JoinRequest
from dppp.service.ceremony.json_document import (
    read_document,
    require_same,
    to_text,
    write_document,
)

ROTATION = "rotation-request.json"
CONSENT = "consent.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """A member's new keys, and its old key's word that they are its own."""

    KIND: ClassVar[str] = "dppp rotation of keys"
    request: JoinRequest
    task_id: bytes
    signature: bytes

    def to_bytes(self) -> bytes:
        """The file that is sent."""
        values = {
            "request": to_text(self.request.to_bytes()),
            "task_id": to_text(self.task_id),
            "signature": to_text(self.signature),
        }
        return write_document(self.KIND, values)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a rotation strictly."""
        found = read_document(data, cls.KIND, ("request", "task_id", "signature"))
        rotation = cls(
            request=JoinRequest.from_bytes(found.bytes("request")),
            task_id=found.bytes("task_id"),
            signature=found.bytes("signature"),
        )
        require_same(rotation.to_bytes(), data, cls.KIND)
        return rotation

    @classmethod
    def is_in(cls, data: bytes) -> bool:
        """Whether these bytes say that they are a rotation, and not a join request."""
        return f'"kind": "{cls.KIND}"'.encode() in data[:200]


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """A teacher's signature on one change of its task."""

    KIND: ClassVar[str] = "dppp consent to a change"
    federation_hash: bytes
    signed: SignedBy

    def to_bytes(self) -> bytes:
        """The file that is sent."""
        values = {
            "federation_hash": to_text(self.federation_hash),
            "name": self.signed.name,
            "signature": to_text(self.signed.signature),
        }
        return write_document(self.KIND, values)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a consent strictly."""
        found = read_document(data, cls.KIND, ("federation_hash", "name", "signature"))
        signed = SignedBy(name=found.text("name"), signature=found.bytes("signature"))
        consent = cls(federation_hash=found.bytes("federation_hash"), signed=signed)
        require_same(consent.to_bytes(), data, cls.KIND)
        return consent


def as_member(request: JoinRequest) -> Member | NonVotingMember:
    """Who a request asks to be, before there is a TLS certificate."""
    if request.role is Role.TEACHER:
        assert request.sealing_key is not None, "a teacher's request has one"
        assert request.nkey is not None, "and an nkey"
        return Member(
            name=request.name,
            signing_key=request.signing_key,
            sealing_key=request.sealing_key,
            nkey=request.nkey,
            tls_certificate="",
        )
    return NonVotingMember(
        name=request.name,
        signing_key=request.signing_key,
        nkey=request.nkey,
        tls_certificate="",
        hosts=request.identity.hosts,
    )
