"""A certificate for a server on this machine, of an authority made for it."""

from dataclasses import dataclass
from datetime import UTC, datetime

from dppp.service.ceremony.authority import Authority, make_tls_key, make_tls_request
from dppp.service.ceremony.home import pem_of
from dppp.service.ceremony.identity import Identity, Role


@dataclass(frozen=True)
class TlsKeys:
    authority: str
    certificate: bytes
    key: bytes


def make_keys(host: str) -> TlsKeys:
    now = datetime.now(UTC)
    authority, key = Authority.make("test", now=now), make_tls_key()
    identity = Identity(role=Role.BROKER, name="gateway", hosts=(host,))
    certificate = authority.issue(make_tls_request(key, identity), identity, now=now)
    return TlsKeys(authority.pem, certificate.encode(), pem_of(key))
