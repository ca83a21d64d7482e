"""A change of members: the federation file of a task that takes the place of another.

The coordinator proposes it, the teachers of the old task sign it with the keys that they have in
that task, and t signatures make it good: at least t - C of them are honest. A teacher may sign more
than one proposal, and its ledger takes one. A change that exists agrees with itself. It asks the
same of the same data at the same price, with no less noise and no more queries, on the same
authority. Every rotation of keys is signed by the key that is replaced, over the id of the task
that it leaves, so that it is good for one change only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from dppp.errors import ChangeNotSigned, FederationError
from dppp.hashing import hash_parts
from dppp.privacy.noise import has_no_less
from dppp.protocol.task import Task
from dppp.service.ceremony.federation_file import FederationFile, Member, NonVotingMember
from dppp.service.ceremony.json_document import (
    Fields,
    read_document,
    require_same,
    to_text,
    write_document,
)
from dppp.service.stores.new_files import read_file

CHANGE = "change.json"

AnyMember = Member | NonVotingMember

_FIELDS = ("old", "new", "rotations", "consents")
_SIGNED = ("name", "signature")
_MAY_DIFFER = frozenset(
    (
        "teachers",
        "aggregator_key",
        "colluders",
        "dropouts",
        "queries",
        "noise_terms",
        "entry_bound",
        "masks",
        "succeeds",
        "task_id",
        "_ring",
    )
)
"""What a change of members may change in a task; anything else is another question."""


class Movement(StrEnum):
    """What a change does with one member."""

    KEPT = "kept"
    ROTATED = "rotated"
    REPLACED = "replaced"
    ADDED = "added"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedBy:
    """A member's signature, by the key that it has in the old task."""

    name: str
    signature: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The old federation, the new one, who rotated its keys, and who has signed it all."""

    KIND: ClassVar[str] = "dppp change of members"
    old: FederationFile
    new: FederationFile
    rotations: tuple[SignedBy, ...] = ()
    consents: tuple[SignedBy, ...] = ()

    def __post_init__(self) -> None:
        _require_succession(self.old.task, self.new.task)
        if self.old.authority != self.new.authority:
            raise FederationError(
                "a change of members keeps the authority of the TLS certificates",
                hint="with another authority, make a new federation",
            )
        for each in self.rotations:
            _require_rotation(self, each)
        for each in self.consents:
            _require_consent(self, each)
        for signatures in (self.rotations, self.consents):
            names = [each.name for each in signatures]
            if names != sorted(set(names)):
                raise FederationError("signatures are by distinct members, in order of their names")

    @property
    def is_signed(self) -> bool:
        """Whether as many teachers of the old task have signed as certify a list in it."""
        return len(self.consents) >= self.old.task.trust.threshold

    def require_signed(self) -> None:
        """Refuse a change that too few have signed."""
        if not self.is_signed:
            raise ChangeNotSigned(
                f"{len(self.consents)} teachers of the old task have signed this change, and it "
                f"takes {self.old.task.trust.threshold}",
                hint="wait until the coordinator sends the change with their signatures",
            )

    def movements(self) -> tuple[tuple[str, Movement], ...]:
        """What happens to whom, the new members first."""
        after = [(each.name, self.movement_of(each.name)) for each in self.new.everybody]
        names = {each.name for each in self.new.everybody}
        gone = [each.name for each in self.old.everybody if each.name not in names]
        return (*after, *((name, Movement.REMOVED) for name in gone))

    def movement_of(self, name: str) -> Movement:
        """What happens to the member of this name."""
        before, after = find_member(self.old, name), find_member(self.new, name)
        if after is None:
            return Movement.REMOVED
        if before is None:
            return Movement.ADDED
        if _keys(before) == _keys(after):
            return Movement.KEPT
        has_asked = name in [each.name for each in self.rotations]
        return Movement.ROTATED if has_asked else Movement.REPLACED

    def with_consents(self, consents: Sequence[SignedBy]) -> Self:
        """The same with more signatures; the same one again changes nothing."""
        found = {each.name: each for each in (*self.consents, *consents)}
        return replace(self, consents=tuple(found[name] for name in sorted(found)))

    def to_bytes(self) -> bytes:
        """The file that is sent."""
        values = (
            to_text(self.old.to_bytes()),
            to_text(self.new.to_bytes()),
            [_signed_to_json(each) for each in self.rotations],
            [_signed_to_json(each) for each in self.consents],
        )
        return write_document(self.KIND, dict(zip(_FIELDS, values, strict=True)))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a change strictly."""
        found = read_document(data, cls.KIND, _FIELDS)
        change = cls(
            old=FederationFile.from_bytes(found.bytes("old")),
            new=FederationFile.from_bytes(found.bytes("new")),
            rotations=tuple(map(_signed_by, found.inners("rotations", _SIGNED))),
            consents=tuple(map(_signed_by, found.inners("consents", _SIGNED))),
        )
        require_same(change.to_bytes(), data, cls.KIND)
        return change


def read_change(path: Path) -> Change:
    """The change in a file; what is wrong with it names the file."""
    try:
        return Change.from_bytes(read_file(path))
    except FederationError as error:
        raise FederationError(f"{path}: {error.message}", hint=error.hint) from error


def find_member(federation: FederationFile, name: str) -> AnyMember | None:
    """The member of this name."""
    return next((each for each in federation.everybody if each.name == name), None)


def consent_statement(old: FederationFile, new: FederationFile) -> bytes:
    """What a teacher of the old task signs: this federation after that one, and no other."""
    parts = (old.task.task_id, old.hash, new.hash)
    return hash_parts("dppp consent to a change 1", parts)


def rotation_statement(task_id: bytes, member: AnyMember) -> bytes:
    """What a member signs with its old key: that from this task on it has the keys of `member`."""
    return hash_parts(
        "dppp rotation of keys 1",
        (task_id, member.identity.role.encode(), member.name.encode(), *_keys(member)),
    )


def _keys(member: AnyMember) -> tuple[bytes, ...]:
    """All that is a member's own; its TLS certificate is the authority's word."""
    hosts = [host.encode() for host in member.identity.hosts]
    sealing_key = member.sealing_key if isinstance(member, Member) else b""
    return (member.signing_key, sealing_key, (member.nkey or "").encode(), *hosts)


def _require_succession(old: Task, new: Task) -> None:
    if new.succeeds != old.task_id:
        raise FederationError(
            "the new task does not say that it takes the place of the old one",
            hint="get the change again",
        )
    if None in (old.masks, new.masks):
        raise FederationError(
            "under paillier the key is dealt for its teachers, so they cannot change",
            hint="make a new federation",
        )
    names = {each.name for each in fields(Task)} - _MAY_DIFFER
    different = sorted(name for name in names if getattr(old, name) != getattr(new, name))
    if different:
        raise FederationError(
            f"a change of members asks the same as before, and this one changes {different[0]}",
            hint="make a new federation for another question",
        )
    if new.queries > old.queries or not has_no_less(new.noise, old.noise):
        raise FederationError(
            "the new task has more queries or less noise than the old one paid for",
            hint="have the change made again by `dppp change propose`",
        )


def _require_rotation(change: Change, rotation: SignedBy) -> None:
    before = find_member(change.old, rotation.name)
    after = find_member(change.new, rotation.name)
    if before is None or after is None or before.identity.role is not after.identity.role:
        raise FederationError(
            f"{rotation.name} is not in both federations in one role, so its keys did not rotate",
            hint="get the change again",
        )
    statement = rotation_statement(change.old.task.task_id, after)
    _require_signature(before, rotation, statement, "the rotation of its keys")


def _require_consent(change: Change, consent: SignedBy) -> None:
    signer = next((each for each in change.old.teachers if each.name == consent.name), None)
    if signer is None:
        raise FederationError(
            f"{consent.name} is not a teacher of the old task, so it has no say in its change",
            hint="get the change again",
        )
    _require_signature(signer, consent, consent_statement(change.old, change.new), "the change")


def _require_signature(member: AnyMember, signed: SignedBy, statement: bytes, what: str) -> None:
    try:
        Ed25519PublicKey.from_public_bytes(member.signing_key).verify(signed.signature, statement)
    except InvalidSignature:
        raise FederationError(
            f"{member.name} did not sign {what} with the key that it has in the old task",
            hint="use nothing of this file, and ask its sender",
        ) from None


def _signed_to_json(signed: SignedBy) -> dict[str, object]:
    return {"name": signed.name, "signature": to_text(signed.signature)}


def _signed_by(found: Fields) -> SignedBy:
    return SignedBy(name=found.text("name"), signature=found.bytes("signature"))
