"""Certificates: only what this authority issued, to whom it names, for its own use."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID, NameOID

from dppp.errors import FederationError
from dppp.service.ceremony.authority import (
    Authority,
    make_tls_key,
    make_tls_request,
    read_tls_certificate,
    read_tls_key,
    require_authority,
    require_tls_certificate,
    require_tls_request,
)
from dppp.service.ceremony.home import pem_of
from dppp.service.ceremony.identity import Identity, Role
from dppp.service.ceremony.join_request import sign_request
from dppp.service.ceremony.nkey import make_seed, public_nkey

NOW = datetime(2026, 11, 15, tzinfo=UTC)
AUTHORITY = Authority.make("cells", now=NOW)
TEACHER = Identity(role=Role.TEACHER, name="hospital a", nkey=public_nkey(make_seed()))
BROKER = Identity(role=Role.BROKER, name="hosting", hosts=("nats.example.org", "10.0.0.1", "::1"))


def issued(identity: Identity, authority: Authority = AUTHORITY) -> str:
    request = make_tls_request(make_tls_key(), identity)
    return authority.issue(request, identity, now=NOW)


def test_a_certificate_says_who_for_what_and_how_long() -> None:
    client = require_tls_certificate(issued(TEACHER), TEACHER, AUTHORITY.pem)
    usage = client.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert client.not_valid_before_utc == NOW - timedelta(minutes=5)
    assert client.not_valid_after_utc == NOW + timedelta(days=730)
    assert not client.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    server = require_tls_certificate(issued(BROKER), BROKER, AUTHORITY.pem)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(name.value) for name in names] == list(BROKER.hosts)


def test_two_certificates_have_different_serial_numbers() -> None:
    serials = {x509.load_pem_x509_certificate(issued(TEACHER).encode()).serial_number for _ in "ab"}
    assert len(serials) == 2


def test_a_serial_number_that_is_not_positive_is_refused_without_a_warning() -> None:
    certificate = x509.load_pem_x509_certificate(issued(TEACHER).encode())
    der = certificate.public_bytes(serialization.Encoding.DER)
    number = certificate.serial_number
    serial = number.to_bytes(number.bit_length() // 8 + 1)  # with its sign
    negative = der.replace(serial, b"\xff" + serial[1:], 1)
    assert negative != der
    text = base64.encodebytes(negative).decode().replace("\n", "")
    lines = "\n".join(text[at : at + 64] for at in range(0, len(text), 64))
    with pytest.raises(FederationError, match="cannot be read"):
        read_tls_certificate(f"-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n")


def test_the_authority_may_sign_certificates_and_nothing_else() -> None:
    certificate = require_authority(AUTHORITY.pem)
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    assert (constraints.ca, constraints.path_length) == (True, 0)
    assert usage.key_cert_sign
    assert not usage.digital_signature
    with pytest.raises(FederationError, match="not a certificate authority"):
        require_authority(issued(TEACHER))


def test_keys_that_do_not_belong_together_are_refused() -> None:
    other = Authority.make("other", now=NOW)
    with pytest.raises(FederationError, match="belong together"):
        Authority(key=other.key, tls_certificate=AUTHORITY.tls_certificate)
    assert "EllipticCurve" not in repr(AUTHORITY)


def test_an_authority_of_the_same_name_is_another_one() -> None:
    impostor = Authority.make("cells", now=NOW)
    with pytest.raises(FederationError, match="not issued by this"):
        require_tls_certificate(issued(TEACHER, impostor), TEACHER, AUTHORITY.pem)


def test_a_teachers_certificate_is_no_aggregators() -> None:
    aggregator = Identity(role=Role.AGGREGATOR, name=TEACHER.name, nkey=TEACHER.nkey)
    with pytest.raises(FederationError, match="somebody else"):
        require_tls_certificate(issued(TEACHER), aggregator, AUTHORITY.pem)


def test_a_certificate_signed_by_a_member_is_refused() -> None:
    """A member's certificate must not act as an authority."""
    member_key = make_tls_key()
    request = make_tls_request(member_key, TEACHER)
    member = AUTHORITY.issue(request, TEACHER, now=NOW)
    false = Authority(
        key=member_key, tls_certificate=x509.load_pem_x509_certificate(member.encode())
    )
    with pytest.raises(FederationError, match="not issued by this"):
        require_tls_certificate(issued(BROKER, false), BROKER, AUTHORITY.pem)


def misused(*, is_authority: bool, usages: list[x509.ObjectIdentifier]) -> str:
    """A teacher's certificate, rightly signed and rightly named, that may do other things too."""
    start = x509.load_pem_x509_certificate(issued(TEACHER).encode())
    builder = (
        x509.CertificateBuilder()
        .subject_name(start.subject)
        .issuer_name(start.issuer)
        .public_key(start.public_key())
        .serial_number(start.serial_number)
        .not_valid_before(start.not_valid_before_utc)
        .not_valid_after(start.not_valid_after_utc)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(TEACHER.alternative_names, critical=False)
    )
    signed = builder.sign(AUTHORITY.key, hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM).decode()


CLIENT, SERVER = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH


def test_a_certificate_for_another_use_is_refused() -> None:
    good = misused(is_authority=False, usages=[CLIENT])
    assert require_tls_certificate(good, TEACHER, AUTHORITY.pem)
    for bad in (
        misused(is_authority=True, usages=[CLIENT]),
        misused(is_authority=False, usages=[SERVER]),
        misused(is_authority=False, usages=[CLIENT, SERVER]),
    ):
        with pytest.raises(FederationError, match="for another use than a teacher's"):
            require_tls_certificate(bad, TEACHER, AUTHORITY.pem)


def test_a_second_text_of_the_same_certificate_is_refused() -> None:
    good = issued(TEACHER)
    assert read_tls_certificate(good)
    for bad in (f"{good}\n", f"a word before\n{good}", good + good, good.replace("\n", "\r\n")):
        with pytest.raises(FederationError, match="not in its canonical form"):
            read_tls_certificate(bad)


def test_a_tls_key_of_another_kind_or_behind_a_password_is_refused() -> None:
    locked = make_tls_key().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"password"),
    )
    other_curve = pem_of(ec.generate_private_key(ec.SECP384R1()))
    for bad in (b"", b"no key", locked, other_curve, pem_of(Ed25519PrivateKey.generate())):
        with pytest.raises(FederationError, match="not an EC P-256 key in PEM"):
            read_tls_key(bad)


def strange_request(key: Any, names: x509.ExtensionType, algorithm: Any = None) -> str:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, BROKER.name)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    signed = builder.add_extension(names, critical=False).sign(key, algorithm)
    return signed.public_bytes(serialization.Encoding.PEM).decode()


STRANGE_NAME = x509.UnrecognizedExtension(
    ExtensionOID.SUBJECT_ALTERNATIVE_NAME, bytes.fromhex("3002a300")
)
GARBAGE = x509.UnrecognizedExtension(ExtensionOID.SUBJECT_ALTERNATIVE_NAME, b"\xff\xff")


@pytest.mark.parametrize(
    ("key", "names", "algorithm"),
    [
        (make_tls_key(), STRANGE_NAME, hashes.SHA256()),
        (make_tls_key(), GARBAGE, hashes.SHA256()),
        (make_tls_key(), x509.SubjectAlternativeName([]), hashes.SHA256()),
        (ec.generate_private_key(ec.SECP384R1()), BROKER.alternative_names, hashes.SHA256()),
        (rsa.generate_private_key(65537, 2048), BROKER.alternative_names, hashes.SHA256()),
        (ed448.Ed448PrivateKey.generate(), BROKER.alternative_names, None),
    ],
)
def test_strange_requests_are_refused_in_one_line(
    key: Any, names: x509.ExtensionType, algorithm: Any
) -> None:
    request = strange_request(key, names, algorithm)
    with pytest.raises(FederationError) as caught:
        require_tls_request(request, BROKER)
    assert "\n" not in caught.value.one_line
    with pytest.raises(FederationError):
        sign_request(
            Ed25519PrivateKey.generate(),
            identity=BROKER,
            sealing_key=None,
            tls_request=request,
        )
