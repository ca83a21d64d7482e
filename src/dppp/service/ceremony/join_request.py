"""What an organisation sends to join: its public keys, signed by its own signing key.

Made by `dppp join` on the organisation's own machine, checked by the coordinator. The fingerprint,
which both see, is compared by telephone; it is the beginning of the file's SHA-256.
"""

import hashlib
from dataclasses import dataclass
from typing import ClassVar, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from dppp.errors import FederationError
from dppp.hashing import hash_parts
from dppp.service.ceremony.authority import hosts_of_tls_request, require_tls_request
from dppp.service.ceremony.identity import Identity, Role
from dppp.service.ceremony.json_document import read_document, require_same, to_text, write_document
from dppp.service.ceremony.nkey import require_nkey

KEY_BYTES = 32
FINGERPRINT_DIGITS = 32  # 128 bits: nobody makes a second request with the same ones
_FIELDS = ("role", "name", "signing_key", "sealing_key", "nkey", "certificate_request", "records")
MOST_RECORDS = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest:
    """One that exists is signed by its own key. Only a teacher has a key to seal shares to.

    `records` is how many records a teacher says it has, where votes go by size. Everybody sees it.
    """

    KIND: ClassVar[str] = "dppp join request"
    role: Role
    name: str
    signing_key: bytes
    sealing_key: bytes | None
    nkey: str | None
    tls_request: str
    records: int | None = None
    signature: bytes

    def __post_init__(self) -> None:
        require_keys(self.name, self.role, self.signing_key, self.sealing_key, self.nkey)
        _require_records(self.name, self.role, self.records)
        require_tls_request(self.tls_request, self.identity)
        self._require_signature()

    @property
    def identity(self) -> Identity:
        """Whom the TLS certificate is to name."""
        hosts = hosts_of_tls_request(self.tls_request) if self.role is Role.BROKER else ()
        return Identity(role=self.role, name=self.name, nkey=self.nkey, hosts=hosts)

    @property
    def fingerprint(self) -> str:
        """What is compared by telephone."""
        return hashlib.sha256(self.to_bytes()).hexdigest()[:FINGERPRINT_DIGITS]

    @property
    def spoken_fingerprint(self) -> str:
        """The same in groups of four, to read aloud."""
        digits = self.fingerprint
        return " ".join(digits[place : place + 4] for place in range(0, len(digits), 4))

    def to_bytes(self) -> bytes:
        """The file that is sent."""
        fields = self._signed_fields()
        return write_document(self.KIND, {**fields, "signature": to_text(self.signature)})

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a request strictly."""
        fields = read_document(data, cls.KIND, (*_FIELDS, "signature"))
        request = cls(
            role=_role(fields.text("role")),
            name=fields.text("name"),
            signing_key=fields.bytes("signing_key"),
            sealing_key=fields.optional_bytes("sealing_key"),
            nkey=fields.optional_text("nkey"),
            tls_request=fields.text("certificate_request"),
            records=fields.optional_number("records"),
            signature=fields.bytes("signature"),
        )
        require_same(request.to_bytes(), data, cls.KIND)
        return request

    def _signed_fields(self) -> dict[str, object]:
        return _fields(
            self.identity, self.signing_key, self.sealing_key, self.tls_request, self.records
        )

    def _require_signature(self) -> None:
        key = Ed25519PublicKey.from_public_bytes(self.signing_key)
        fields = self._signed_fields()
        try:
            key.verify(self.signature, _signed_bytes(fields))
        except InvalidSignature:
            raise FederationError(
                f"the join request of {self.name} is not signed by its own key: it was changed on "
                "the way",
                hint="ask for it again",
            ) from None


def sign_request(
    signing_key: Ed25519PrivateKey,
    *,
    identity: Identity,
    sealing_key: bytes | None,
    tls_request: str,
    records: int | None = None,
) -> JoinRequest:
    """A request by the organisation that holds this key."""
    public = signing_key.public_key().public_bytes_raw()
    fields = _fields(identity, public, sealing_key, tls_request, records)
    return JoinRequest(
        role=identity.role,
        name=identity.name,
        signing_key=public,
        sealing_key=sealing_key,
        nkey=identity.nkey,
        tls_request=tls_request,
        records=records,
        signature=signing_key.sign(_signed_bytes(fields)),
    )


def require_keys(
    name: str, role: Role, signing_key: bytes, sealing_key: bytes | None, nkey: str | None
) -> None:
    """Refuse keys of a wrong length, keys that the role lacks, and keys that it does not have."""
    keys = [signing_key] if sealing_key is None else [signing_key, sealing_key]
    if any(len(key) != KEY_BYTES for key in keys):
        raise FederationError(f"{name[:80]}: signing and sealing keys have {KEY_BYTES} bytes each")
    if (role is Role.TEACHER) != (sealing_key is not None):
        raise FederationError(f"{name[:80]}: a teacher has a sealing key, and nobody else has one")
    if nkey is not None:
        require_nkey(nkey)


def _require_records(name: str, role: Role, records: int | None) -> None:
    if records is None:
        return
    if role is not Role.TEACHER:
        raise FederationError(f"{name[:80]}: only a teacher has records", hint="leave them out")
    if not 1 <= records <= MOST_RECORDS:
        raise FederationError(f"{name[:80]}: a teacher has 1 to {MOST_RECORDS:,} records")


def _fields(
    identity: Identity,
    signing_key: bytes,
    sealing_key: bytes | None,
    tls_request: str,
    records: int | None,
) -> dict[str, object]:
    """Everything that is signed."""
    values = (
        identity.role.value,
        identity.name,
        to_text(signing_key),
        None if sealing_key is None else to_text(sealing_key),
        identity.nkey,
        tls_request,
        records,
    )
    return dict(zip(_FIELDS, values, strict=True))


def _signed_bytes(fields: dict[str, object]) -> bytes:
    return hash_parts("dppp join request 1", (write_document(JoinRequest.KIND, fields),))


def _role(text: str) -> Role:
    try:
        return Role(text)
    except ValueError:
        raise FederationError(
            f"{text[:40]!r} is not a role", hint=f"choose {', '.join(Role)}"
        ) from None
