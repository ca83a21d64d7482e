"""The federation file: everything public that all parties of a federation agree on.

The coordinator writes it (under paillier the dealer), everybody gets it, and everybody compares its
hash by telephone before using it. One that exists agrees with itself: the task names these teachers
and this key, and every TLS certificate was issued by this authority to the member whose entry holds
it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Self

from dppp.errors import FederationChanged, FederationError
from dppp.hashing import hash_parts
from dppp.paillier.keys import PublicKey
from dppp.protocol.task import Task
from dppp.protocol.wire import decode, encode
from dppp.service.ceremony.authority import (
    read_tls_certificate,
    require_authority,
    require_tls_certificate,
)
from dppp.service.ceremony.identity import Identity, Role
from dppp.service.ceremony.join_request import require_keys
from dppp.service.ceremony.json_document import (
    Fields,
    read_document,
    require_same,
    to_text,
    write_document,
)
from dppp.service.stores.new_files import read_file

_FIELDS = ("task", "public_key", "authority", "teachers", "aggregator", "broker")
_MEMBER = ("name", "signing_key", "sealing_key", "nkey", "certificate")
_NON_VOTING = ("name", "signing_key", "nkey", "certificate", "hosts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A teacher's public keys; its place among the members, from 1, is its index."""

    name: str
    signing_key: bytes
    sealing_key: bytes
    nkey: str
    tls_certificate: str = field(repr=False)

    def __post_init__(self) -> None:
        require_keys(self.name, Role.TEACHER, self.signing_key, self.sealing_key, self.nkey)

    @property
    def identity(self) -> Identity:
        """Whom its TLS certificate names."""
        return Identity(role=Role.TEACHER, name=self.name, nkey=self.nkey)


@dataclass(frozen=True, slots=True, kw_only=True)
class NonVotingMember:
    """The aggregator (with an nkey) or the broker (with hosts)."""

    name: str
    signing_key: bytes
    nkey: str | None
    tls_certificate: str = field(repr=False)
    hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_keys(self.name, self.identity.role, self.signing_key, None, self.nkey)

    @property
    def identity(self) -> Identity:
        """Whom its TLS certificate names."""
        role = Role.BROKER if self.nkey is None else Role.AGGREGATOR
        return Identity(role=role, name=self.name, nkey=self.nkey, hosts=self.hosts)


@dataclass(frozen=True, slots=True, kw_only=True)
class FederationFile:
    """Task, public key (under masks there is none), authority, and who is who."""

    KIND: ClassVar[str] = "dppp federation"
    task: Task
    public: PublicKey | None
    authority: str = field(repr=False)
    teachers: tuple[Member, ...]
    aggregator: NonVotingMember
    broker: NonVotingMember

    def __post_init__(self) -> None:
        _require_key(self)
        _require_agreement(self)
        _require_distinct(self)
        _require_tls_certificates(self)

    @property
    def hash(self) -> bytes:
        """What everybody compares: SHA-256 over the canonical content."""
        return hash_parts("dppp federation 2", (self.to_bytes(),))

    @property
    def subject_prefix(self) -> str:
        """What every subject on the broker begins with."""
        return f"dppp.{self.task.task_id.hex()[:16]}"

    @property
    def everybody(self) -> tuple[Member | NonVotingMember, ...]:
        """Teachers, aggregator and broker."""
        return (*self.teachers, self.aggregator, self.broker)

    @property
    def tls_certificates_end(self) -> datetime:
        """When the first of the dealt TLS certificates ends; homes may have renewed theirs."""
        return min(
            read_tls_certificate(each.tls_certificate).not_valid_after_utc
            for each in self.everybody
        )

    @property
    def authority_end(self) -> datetime:
        """When the authority ends, and with it what can be renewed."""
        return read_tls_certificate(self.authority).not_valid_after_utc

    def index_of(self, name: str) -> int:
        """The teacher's index, from 1."""
        names = [member.name for member in self.teachers]
        if name not in names:
            raise FederationError(
                f"there is no teacher {name!r} in this federation",
                hint="check the home and the file",
            )
        return names.index(name) + 1

    def to_bytes(self) -> bytes:
        """The file, in its one form."""
        values = (
            to_text(encode(self.task)),
            None if self.public is None else to_text(self.public.to_bytes()),
            self.authority,
            [_member_to_json(member) for member in self.teachers],
            _non_voting_to_json(self.aggregator),
            _non_voting_to_json(self.broker),
        )
        return write_document(self.KIND, dict(zip(_FIELDS, values, strict=True)))

    @classmethod
    def from_bytes(cls, data: bytes, *, insecure_testing: bool = False) -> Self:
        """Read a file strictly; `insecure_testing` admits short keys, as in PublicKey."""
        fields = read_document(data, cls.KIND, _FIELDS)
        key = fields.optional_bytes("public_key")
        found = cls(
            task=decode(fields.bytes("task"), Task),
            public=None
            if key is None
            else PublicKey.from_bytes(key, insecure_testing=insecure_testing),
            authority=fields.text("authority"),
            teachers=tuple(_member(each) for each in fields.inners("teachers", _MEMBER)),
            aggregator=_non_voting_member(fields.inner("aggregator", _NON_VOTING)),
            broker=_non_voting_member(fields.inner("broker", _NON_VOTING)),
        )
        require_same(found.to_bytes(), data, cls.KIND)
        return found


def read_federation(
    path: Path, expected_hash: bytes | None, *, insecure_testing: bool = False
) -> FederationFile:
    """The federation in a file; with a hash, only the one that was agreed on."""
    try:
        federation = FederationFile.from_bytes(read_file(path), insecure_testing=insecure_testing)
    except FederationError as error:
        raise FederationError(f"{path}: {error.message}", hint=error.hint) from error
    if expected_hash is not None:
        require_hash(federation, expected_hash)
    return federation


def require_hash(federation: FederationFile, expected: bytes) -> None:
    """Refuse another federation file than the one whose hash was compared."""
    if federation.hash != expected:
        raise FederationChanged(
            f"the federation file has the hash {federation.hash.hex()}, expected {expected.hex()}",
            hint=(
                "compare the hash with the others by telephone, and use nothing of this file "
                "until it is the same"
            ),
        )


def read_hash(text: str) -> bytes:
    """A federation hash as people type it: 64 hexadecimal digits, spaces allowed."""
    try:
        found = bytes.fromhex("".join(text.split()))
    except ValueError:
        found = b""
    if len(found) != 32:
        raise FederationError("a federation hash has 64 hexadecimal digits", hint="copy all of it")
    return found


def _require_key(federation: FederationFile) -> None:
    """Under paillier the task's own key, and under masks none."""
    if federation.public is not None:
        federation.task.require_key(federation.public)
    elif federation.task.cryptosystem != "masks":
        raise FederationError(
            "the federation file has no public key, and its task needs one",
            hint="get the file again",
        )


def _require_agreement(federation: FederationFile) -> None:
    entries = [(each.name, each.signing_key, each.row_key) for each in federation.task.teachers]
    members = [(each.name, each.signing_key, each.sealing_key) for each in federation.teachers]
    if entries != members:
        raise FederationError(
            "the task and the federation file name different teachers or keys of theirs",
            hint="get the file again",
        )
    if members != sorted(members):
        raise FederationError(
            "the teachers are not in the order of their names", hint="get it again"
        )
    if federation.aggregator.nkey is None or federation.broker.nkey is not None:
        raise FederationError(
            "an aggregator has an nkey, and a broker has none", hint="get it again"
        )
    if federation.task.aggregator_key != federation.aggregator.signing_key:
        raise FederationError(
            "the task and the federation file name different signing keys of the aggregator",
            hint="get the file again",
        )


def _require_distinct(federation: FederationFile) -> None:
    everybody = federation.everybody
    lists: tuple[tuple[str, Sequence[object]], ...] = (
        ("name", [each.name for each in everybody]),
        ("signing key", [each.signing_key for each in everybody]),
        ("sealing key", [each.sealing_key for each in federation.teachers]),
        ("nkey", [each.nkey for each in everybody]),
    )
    for what, values in lists:
        if len(set(values)) != len(values):
            raise FederationError(
                f"two in this federation have the same {what}", hint="get it again"
            )


def _require_tls_certificates(federation: FederationFile) -> None:
    keys = [require_authority(federation.authority).public_key()]
    for each in federation.everybody:
        tls_certificate = require_tls_certificate(
            each.tls_certificate, each.identity, federation.authority
        )
        if tls_certificate.public_key() in keys:
            raise FederationError(
                f"{each.name} has the TLS key of somebody else", hint="get it again"
            )
        keys.append(tls_certificate.public_key())


def _member_to_json(member: Member) -> dict[str, object]:
    return {
        "name": member.name,
        "signing_key": to_text(member.signing_key),
        "sealing_key": to_text(member.sealing_key),
        "nkey": member.nkey,
        "certificate": member.tls_certificate,
    }


def _non_voting_to_json(member: NonVotingMember) -> dict[str, object]:
    return {
        "name": member.name,
        "signing_key": to_text(member.signing_key),
        "nkey": member.nkey,
        "certificate": member.tls_certificate,
        "hosts": list(member.hosts),
    }


def _member(fields: Fields) -> Member:
    return Member(
        name=fields.text("name"),
        signing_key=fields.bytes("signing_key"),
        sealing_key=fields.bytes("sealing_key"),
        nkey=fields.text("nkey"),
        tls_certificate=fields.text("certificate"),
    )


def _non_voting_member(fields: Fields) -> NonVotingMember:
    return NonVotingMember(
        name=fields.text("name"),
        signing_key=fields.bytes("signing_key"),
        nkey=fields.optional_text("nkey"),
        tls_certificate=fields.text("certificate"),
        hosts=fields.texts("hosts"),
    )
