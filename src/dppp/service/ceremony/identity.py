"""Who somebody is in a federation, as a TLS certificate says it."""

import ipaddress
import re
from dataclasses import dataclass
from enum import StrEnum

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from dppp.errors import FederationError

LONGEST_NAME_BYTES = 64
"""What a TLS certificate allows for a name, in UTF-8."""

_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_HOST_NAME = re.compile(rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*")


class Role(StrEnum):
    """What an organisation is in a federation."""

    TEACHER = "teacher"
    AGGREGATOR = "aggregator"
    BROKER = "broker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Whom a TLS certificate names: teachers and aggregator by nkey, the broker by its hosts."""

    role: Role
    name: str
    nkey: str | None = None
    hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        is_plain = self.name.isprintable() and self.name == self.name.strip()
        if not is_plain or not 0 < len(self.name.encode()) <= LONGEST_NAME_BYTES:
            raise FederationError(
                f"{self.name[:80]!r} cannot be a name",
                hint=(
                    f"choose 1 to {LONGEST_NAME_BYTES} printable characters (fewer, if they take "
                    "several bytes each) without spaces around them"
                ),
            )
        for host in self.hosts:
            _require_host(host)
        if (self.role is Role.BROKER) != bool(self.hosts):
            raise FederationError(
                f"{self.name} is a {self.role} with {len(self.hosts)} hosts; a broker needs the "
                "host names by which the others reach it (--host), and nobody else has one"
            )
        if (self.role is Role.BROKER) != (self.nkey is None):
            raise FederationError(
                f"{self.name}: teachers and the aggregator have an nkey, and a broker has none"
            )

    @property
    def alternative_names(self) -> x509.SubjectAlternativeName:
        """The names in the TLS certificate's extension."""
        if self.role is Role.BROKER:
            return x509.SubjectAlternativeName([_general_name(host) for host in self.hosts])
        uri = f"urn:dppp:{self.role}:{self.nkey}"
        return x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri)])

    @property
    def usage(self) -> x509.ObjectIdentifier:
        """What the TLS certificate is for."""
        is_server = self.role is Role.BROKER
        return ExtendedKeyUsageOID.SERVER_AUTH if is_server else ExtendedKeyUsageOID.CLIENT_AUTH


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _require_host(host: str) -> None:
    try:
        is_address = str(ipaddress.ip_address(host)) == host
    except ValueError:
        is_address = False
    if not is_address and not _HOST_NAME.fullmatch(host):
        raise FederationError(
            f"{host[:80]!r} is neither a host name in small letters nor an IP address",
            hint="write it as nats.example.org, without a port",
        )
