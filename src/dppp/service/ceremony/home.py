"""An organisation's home: the folder in which its private keys are made and stay.

`make_home` is `dppp join`; `Home` is how everything that runs later gets at the keys. What is
secret has mode 0600, and a home whose secrets others can read is refused.
"""

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from dppp.errors import FederationError, KeyMaterialError
from dppp.paillier.keys import KeyShare, require_fitting_share
from dppp.service.ceremony.authority import (
    make_tls_key,
    make_tls_request,
    read_tls_certificate,
    read_tls_key,
    require_valid,
)
from dppp.service.ceremony.federation_file import FederationFile, read_federation
from dppp.service.ceremony.identity import Identity, Role
from dppp.service.ceremony.join_request import JoinRequest, sign_request
from dppp.service.ceremony.nkey import make_seed, public_nkey
from dppp.service.ceremony.share_envelope import unseal_from
from dppp.service.stores.new_files import PUBLIC, NewFile, read_file, write_new_files

_LOST = "check the path, or restore it from the copy of this home; else docs/operations.md, Keys"
SIGNING_KEY = "signing.key"
SEALING_KEY = "sealing.key"
NATS_SEED = "nats.seed"
TLS_KEY = "tls.key"
NEXT_TLS_KEY = "tls.key.next"
REQUEST = "join-request.json"
RENEWAL = "renewal-request.json"
FEDERATION = "federation.json"
SHARE = "key.share"
TLS_CERTIFICATE = "tls.pem"
AUTHORITY = "authority.pem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """The keys of one organisation in one federation; read from the folder when asked for."""

    folder: Path

    def request(self) -> JoinRequest:
        """What was sent to join: name, role and public keys."""
        return JoinRequest.from_bytes(read_file(self.folder / REQUEST))

    def signing_key(self) -> Ed25519PrivateKey:
        """What this organisation signs with."""
        key = _read_key(self._secret(SIGNING_KEY))
        return key if isinstance(key, Ed25519PrivateKey) else _refuse_key(SIGNING_KEY)

    def sealing_key(self) -> X25519PrivateKey:
        """What rows, and under paillier a share of the key, are sealed to for this teacher."""
        key = _read_key(self._secret(SEALING_KEY))
        return key if isinstance(key, X25519PrivateKey) else _refuse_key(SEALING_KEY)

    def nats_seed(self) -> str:
        """What this organisation proves its identity to the broker with. Secret."""
        seed = self._secret(NATS_SEED).decode("ascii", "replace").strip()
        public_nkey(seed)
        return seed

    def federation(self, expected_hash: bytes | None) -> FederationFile:
        """The federation file that was set up here."""
        return read_federation(self.folder / FEDERATION, expected_hash)

    def tls_key(self, name: str = TLS_KEY) -> EllipticCurvePrivateKey:
        """What opens the channel to the broker."""
        return read_tls_key(self._secret(name))

    def tls_certificate(self) -> x509.Certificate:
        """What this organisation shows the broker, or the broker everybody."""
        path = self.folder / TLS_CERTIFICATE
        if not path.exists():
            raise FederationError(f"there is no {path} yet", hint="run `dppp setup` first")
        return read_tls_certificate(read_file(path).decode("ascii", "replace"))

    def tls_context(self) -> ssl.SSLContext:
        """For dialling the broker: TLS 1.3, this federation's authority, this TLS certificate."""
        self.tls_key()
        require_valid(self.tls_certificate(), str(self.folder), now=datetime.now(UTC))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        try:
            context.load_verify_locations(self.folder / AUTHORITY)
            context.load_cert_chain(self.folder / TLS_CERTIFICATE, self.folder / TLS_KEY)
        except (OSError, ssl.SSLError) as error:
            raise FederationError(
                f"cannot use the TLS certificates in {self.folder} ({error})",
                hint="run `dppp setup` first",
            ) from error
        return context

    def unsealed_share(self, federation: FederationFile) -> KeyShare:
        """The teacher's share of the key, opened and held against its verification key."""
        return self.open_share(self._secret(SHARE), federation)

    def open_share(self, sealed: bytes, federation: FederationFile) -> KeyShare:
        """A share as it came from the dealer; under masks there are none."""
        if federation.public is None:
            raise KeyMaterialError(
                "a federation under masks has no key, and so no shares", hint="leave out --share"
            )
        index = federation.index_of(self.request().name)
        share = unseal_from(sealed, self.sealing_key(), federation.task.task_id)
        if share.index != index:
            raise KeyMaterialError(
                f"this is the share of teacher {share.index}, and this home is teacher {index}",
                hint="ask the dealer for yours",
            )
        require_fitting_share(federation.public, share)
        return share

    def _secret(self, name: str) -> bytes:
        path = self.folder / name
        data = read_file(path, hint=_LOST)
        if path.stat().st_mode & 0o077:
            raise KeyMaterialError(
                f"{path} can be read by others on this machine", hint=f"run: chmod 600 {path}"
            )
        return data


def make_home(
    folder: Path,
    *,
    name: str,
    role: Role = Role.TEACHER,
    hosts: Sequence[str] = (),
    records: int | None = None,
) -> JoinRequest:
    """Make an organisation's keys where none are, and the request that it sends to join.

    `records` is how many a teacher has, where votes go by size; everybody sees it.
    """
    signing_key, tls_key = Ed25519PrivateKey.generate(), make_tls_key()
    sealing_key = X25519PrivateKey.generate() if role is Role.TEACHER else None
    seed = None if role is Role.BROKER else make_seed()
    nkey = None if seed is None else public_nkey(seed)
    identity = Identity(role=role, name=name, nkey=nkey, hosts=tuple(hosts))
    request = sign_request(
        signing_key,
        identity=identity,
        sealing_key=None if sealing_key is None else sealing_key.public_key().public_bytes_raw(),
        tls_request=make_tls_request(tls_key, identity),
        records=records,
    )
    files = [
        NewFile(name=SIGNING_KEY, data=pem_of(signing_key)),
        NewFile(name=TLS_KEY, data=pem_of(tls_key)),
        NewFile(name=REQUEST, data=request.to_bytes(), mode=PUBLIC),
    ]
    if sealing_key is not None:
        files.append(NewFile(name=SEALING_KEY, data=pem_of(sealing_key)))
    if seed is not None:
        files.append(NewFile(name=NATS_SEED, data=f"{seed}\n".encode("ascii")))
    write_new_files(folder, files)
    return request


def pem_of(key: Ed25519PrivateKey | X25519PrivateKey | EllipticCurvePrivateKey) -> bytes:
    """A private key as it is written to its file, which has mode 0600."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _read_key(data: bytes) -> object:
    try:
        return serialization.load_pem_private_key(data, password=None)
    except (ValueError, TypeError):
        return None


def _refuse_key(name: str) -> NoReturn:
    raise KeyMaterialError(
        f"{name} does not hold a private key of its kind",
        hint="restore it from its copy, or join again with a new home",
    )
