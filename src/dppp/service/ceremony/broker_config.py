"""The configuration of a NATS server for one federation: who may connect, and say what to whom.

Mutual TLS decides who gets a connection, the nkey who it is, and the permissions what that one may
publish and hear; everything else is refused by the server. nats-server 2.9, which Debian has, knows
no least version of TLS; naming only suites of TLS 1.3 leaves TLS 1.2 nothing to agree on (tests
try it), and newer servers read the same file.
"""

from collections.abc import Sequence
from pathlib import Path

from dppp.service.ceremony.federation_file import FederationFile
from dppp.service.ceremony.home import AUTHORITY, CERTIFICATE, TLS_KEY
from dppp.service.process.config import split_address

DEFAULT_LISTEN = "0.0.0.0:4222"
DEFAULT_PORT = 4222
MAX_PAYLOAD_BYTES = 2**20
_SPARE_CONNECTIONS = 64
"""For aggregator workers, gateways, and connections whose end the server has not noticed yet."""


def broker_configuration(federation: FederationFile, *, folder: Path, listen: str) -> str:
    """nats.conf for the server of this federation, whose home is the folder."""
    host, port = split_address(listen)
    users = [
        _user(member.nkey, *teacher_subjects(federation.subject_prefix, index))
        for index, member in enumerate(federation.teachers, start=1)
    ]
    assert federation.aggregator.nkey is not None, "the file checked it"
    users.append(_user(federation.aggregator.nkey, *aggregator_subjects(federation.subject_prefix)))
    return _TEMPLATE.format(
        name=_quote(federation.subject_prefix.replace(".", "-")),
        hash=federation.hash.hex(),
        host=_quote(host),
        port=port,
        max_payload=MAX_PAYLOAD_BYTES,
        max_connections=2 * len(federation.teachers) + _SPARE_CONNECTIONS,
        certificate=_quote(str(folder.absolute() / CERTIFICATE)),
        key=_quote(str(folder.absolute() / TLS_KEY)),
        authority=_quote(str(folder.absolute() / AUTHORITY)),
        users="".join(users),
    )


def teacher_subjects(prefix: str, index: int) -> tuple[Sequence[str], Sequence[str]]:
    """What teacher `index` may publish on, and subscribe to."""
    return [f"{prefix}.from.{index}.*"], [f"{prefix}.to.{index}", f"{prefix}.all"]


def aggregator_subjects(prefix: str) -> tuple[Sequence[str], Sequence[str]]:
    """What the aggregator's processes may publish on, and subscribe to."""
    publish = [f"{prefix}.to.*", f"{prefix}.all", f"{prefix}.work", f"{prefix}.events"]
    return publish, [f"{prefix}.from.*.*", f"{prefix}.work", f"{prefix}.events"]


def _user(nkey: str, publish: Sequence[str], subscribe: Sequence[str]) -> str:
    return (
        f"    {{ nkey: {nkey}, permissions: {{\n"
        f"        publish: {{ allow: [{_list(publish)}] }}\n"
        f"        subscribe: {{ allow: [{_list(subscribe)}] }} }} }}\n"
    )


def _list(subjects: Sequence[str]) -> str:
    return ", ".join(_quote(subject) for subject in subjects)


def _quote(text: str) -> str:
    """A string of a NATS configuration; names are printable, so these two are all to escape."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


_TEMPLATE = """\
# The broker of a dppp federation; `dppp setup` wrote this. Check it: nats-server -c nats.conf -t
# Federation {hash}
server_name: {name}
host: {host}
port: {port}

# No message of dppp is larger: it sends frames of at most half of this.
max_payload: {max_payload}
max_connections: {max_connections}
max_pending: 67108864
ping_interval: "20s"
ping_max: 3
write_deadline: "10s"
logtime: true

# Only who has a certificate of this federation's authority gets a connection. The suites are those
# of TLS 1.3: older versions find none in common.
tls {{
  cert_file: {certificate}
  key_file: {key}
  ca_file: {authority}
  verify: true
  timeout: 5
  cipher_suites: [
    "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"
  ]
  curve_preferences: ["X25519", "CurveP256"]
}}

# Who each one is, and what it may say to whom. Nobody else, nothing else.
authorization {{
  timeout: 5
  users: [
{users}  ]
}}
"""
