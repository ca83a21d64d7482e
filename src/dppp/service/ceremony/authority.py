"""The certificate authority of one federation's broker: who may open a TLS connection at all.

The coordinator makes it with `dppp init`, signs with it when the key is dealt and when a TLS
certificate is renewed, and may put it away in between. It is trusted for the channel only: ballots
are signed by the teachers' own keys, and shares are sealed to them. So a stolen authority lets
strangers connect, but they have no nkey to vote with and no key to read with. EC P-256, since every
TLS library has it.
"""

import warnings
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.utils import CryptographyDeprecationWarning
from cryptography.x509.oid import NameOID

from dppp.errors import FederationError, TlsCertificateEnded
from dppp.service.ceremony.identity import LONGEST_NAME_BYTES, Identity

LIFETIME = timedelta(days=730)
AUTHORITY_LIFETIME = timedelta(days=3650)
_CLOCK_TOLERANCE = timedelta(minutes=5)
_UNREADABLE = (
    ValueError,
    TypeError,
    InvalidSignature,
    UnsupportedAlgorithm,
    x509.InvalidVersion,
    x509.ExtensionNotFound,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)
"""What `cryptography` raises on TLS certificates and requests that somebody else made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """The authority's key and its own TLS certificate."""

    key: ec.EllipticCurvePrivateKey = field(repr=False)
    tls_certificate: x509.Certificate

    def __post_init__(self) -> None:
        if self.key.public_key() != self.tls_certificate.public_key():
            raise FederationError(
                "authority.key and authority.pem do not belong together",
                hint="use the folder that `dppp init` made",
            )

    @classmethod
    def make(cls, name: str, *, now: datetime) -> Self:
        """A new authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        shortened = f"dppp authority: {name}".encode()[:LONGEST_NAME_BYTES]
        subject = _subject(shortened.decode("utf-8", "ignore"))
        builder = (
            _builder(subject, subject, key.public_key(), now, now + AUTHORITY_LIFETIME)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(is_authority=True), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
        )
        return cls(key=key, tls_certificate=builder.sign(key, hashes.SHA256()))

    @classmethod
    def from_pem(cls, key: bytes, tls_certificate: bytes) -> Self:
        """The authority in the coordinator's folder."""
        return cls(
            key=read_tls_key(key),
            tls_certificate=read_tls_certificate(tls_certificate.decode("utf-8", "replace")),
        )

    @property
    def pem(self) -> str:
        """The TLS certificate, which everybody gets."""
        return _pem(self.tls_certificate)

    def issue(
        self, request: str, identity: Identity, *, now: datetime, lifetime: timedelta = LIFETIME
    ) -> str:
        """A TLS certificate for the key of a request; what it says is the identity, nothing else.

        It does not outlive the authority, without which it would be worth nothing.
        """
        key = require_tls_request(request, identity)
        end = min(now + lifetime, require_valid(self.tls_certificate, "the authority", now=now))
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        builder = (
            _builder(_subject(identity.name), self.tls_certificate.subject, key, now, end)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(is_authority=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([identity.usage]), critical=False)
            .add_extension(identity.alternative_names, critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(issuer_key, critical=False)
        )
        return _pem(builder.sign(self.key, hashes.SHA256()))


def make_tls_key() -> ec.EllipticCurvePrivateKey:
    """A new key for TLS."""
    return ec.generate_private_key(ec.SECP256R1())


def make_tls_request(key: ec.EllipticCurvePrivateKey, identity: Identity) -> str:
    """What an organisation sends instead of its key."""
    builder = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(_subject(identity.name))
        .add_extension(identity.alternative_names, critical=False)
    )
    return _pem(builder.sign(key, hashes.SHA256()))


def require_tls_request(request: str, identity: Identity) -> ec.EllipticCurvePublicKey:
    """The key of a TLS certificate request that was signed by it, for this identity."""
    try:
        found = x509.load_pem_x509_csr(request.encode("ascii"))
        is_fit = found.is_signature_valid and request == _pem(found)
        key, subject = found.public_key(), found.subject
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except _UNREADABLE as error:
        raise FederationError(
            f"the TLS certificate request of {identity.name} cannot be read ({error})",
            hint="ask for it again",
        ) from error
    expected = (_subject(identity.name), identity.alternative_names)
    if not is_fit or (subject, names) != expected:
        raise FederationError(
            f"the TLS certificate request of {identity.name} is not its own or was changed",
            hint="ask for it again",
        )
    return _require_p256(key, identity.name)


def hosts_of_tls_request(request: str) -> tuple[str, ...]:
    """The hosts that a broker's TLS certificate request names."""
    try:
        found = x509.load_pem_x509_csr(request.encode("ascii"))
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except _UNREADABLE as error:
        raise FederationError(
            f"a TLS certificate request cannot be read ({error})", hint="ask for it again"
        ) from error
    hosts = [str(name.value) for name in names if isinstance(name, x509.DNSName | x509.IPAddress)]
    return tuple(hosts)


def require_tls_certificate(text: str, identity: Identity, authority: str) -> x509.Certificate:
    """The TLS certificate, if this authority issued it to this identity and for its use only."""
    tls_certificate, issuer = read_tls_certificate(text), read_tls_certificate(authority)
    what = f"the TLS certificate of {identity.name}"
    try:
        tls_certificate.verify_directly_issued_by(issuer)
        key, subject = tls_certificate.public_key(), tls_certificate.subject
        extensions = tls_certificate.extensions
        is_authority = extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        usage = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except _UNREADABLE as error:
        raise FederationError(
            f"{what} was not issued by this federation's authority ({type(error).__name__})",
            hint="get the federation file again",
        ) from error
    if subject != _subject(identity.name) or names != identity.alternative_names:
        raise FederationError(f"{what} names somebody else", hint="get the federation file again")
    if is_authority or list(usage) != [identity.usage]:
        raise FederationError(
            f"{what} is for another use than a {identity.role}'s",
            hint="get the federation file again",
        )
    _require_p256(key, identity.name)
    return tls_certificate


def require_authority(text: str) -> x509.Certificate:
    """The TLS certificate of an authority, signed by itself."""
    tls_certificate = read_tls_certificate(text)
    try:
        tls_certificate.verify_directly_issued_by(tls_certificate)
        constraints = tls_certificate.extensions.get_extension_for_class(
            x509.BasicConstraints
        ).value
        is_authority = constraints.ca
    except _UNREADABLE:
        is_authority = False
    if not is_authority:
        raise FederationError(
            "the federation's authority is not a certificate authority",
            hint="get the federation file again",
        )
    _require_p256(tls_certificate.public_key(), "the authority")
    return tls_certificate


def require_valid(tls_certificate: x509.Certificate, whose: str, *, now: datetime) -> datetime:
    """When the TLS certificate ends; refused after that, and before it begins."""
    start, end = tls_certificate.not_valid_before_utc, tls_certificate.not_valid_after_utc
    if now < start:
        raise TlsCertificateEnded(
            f"the TLS certificate of {whose} begins at {start:%Y-%m-%d %H:%M} UTC, and it is "
            f"{now:%Y-%m-%d %H:%M} here",
            hint="set the clock",
        )
    if now > end:
        remedy = "make a new federation" if whose == "the authority" else "run `dppp renew request`"
        raise TlsCertificateEnded(
            f"the TLS certificate of {whose} ended at {end:%Y-%m-%d %H:%M} UTC, and it is "
            f"{now:%Y-%m-%d %H:%M} here",
            hint=f"set the clock if that is wrong, otherwise {remedy}",
        )
    return end


def read_tls_certificate(text: str) -> x509.Certificate:
    """A TLS certificate in its one PEM form."""
    try:
        with warnings.catch_warnings():  # of what a later release refuses, as a serial number of 0
            warnings.simplefilter("error", CryptographyDeprecationWarning)
            tls_certificate = x509.load_pem_x509_certificate(text.encode("ascii"))
    except (*_UNREADABLE, CryptographyDeprecationWarning) as error:
        raise FederationError(
            f"a TLS certificate cannot be read ({error})", hint="get it again"
        ) from error
    if _pem(tls_certificate) != text:
        raise FederationError("a TLS certificate is not in its canonical form", hint="get it again")
    return tls_certificate


def read_tls_key(data: bytes) -> ec.EllipticCurvePrivateKey:
    """An EC P-256 key from its PEM file."""
    try:
        key = serialization.load_pem_private_key(data, password=None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise FederationError(
            "this is not an EC P-256 key in PEM", hint="use the file that dppp made"
        )
    return key


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: datetime,
    end: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_TOLERANCE)
        .not_valid_after(end)
    )


def _key_usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _pem(thing: x509.Certificate | x509.CertificateSigningRequest) -> str:
    return thing.public_bytes(serialization.Encoding.PEM).decode("ascii")


def _require_p256(key: object, whose: str) -> ec.EllipticCurvePublicKey:
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise FederationError(
            f"the TLS key of {whose} is not EC P-256", hint="make it with `dppp join`"
        )
    return key
