"""The configurations that `dppp setup` writes: teacher.toml, aggregator.toml and nats.conf.

A line that wants a decision has a word about it. nats.conf says who may connect to the broker of
one federation, and say what to whom. Mutual TLS decides who gets a connection, the nkey who it is,
and the permissions what that one may publish and hear; everything else is refused by the server.
nats-server 2.9, which Debian has, has no option for the least version of TLS. Naming only suites of
TLS 1.3 leaves TLS 1.2 nothing to agree on (tests try it), and newer servers read the same file.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from dppp.protocol.batch import LEAST_BYTES_PER_SECOND, slow_seconds
from dppp.service.broker.frames import MOST_BYTES
from dppp.service.ceremony.federation_file import FederationFile
from dppp.service.ceremony.home import AUTHORITY, TLS_CERTIFICATE, TLS_KEY
from dppp.service.ceremony.identity import Role
from dppp.service.process.config import EPOCH_SECRETS, split_address
from dppp.service.stores.locations import LedgerFiles

CONFIGURATIONS = {
    Role.TEACHER: "teacher.toml",
    Role.AGGREGATOR: "aggregator.toml",
    Role.BROKER: "nats.conf",
}
DEFAULT_LISTEN = "0.0.0.0:4222"
DEFAULT_PORT = 4222
MAX_PAYLOAD_BYTES = 2**20
MAX_PENDING_BYTES = MOST_BYTES + 64 * 2**20
_SPARE_CONNECTIONS = 64
"""For aggregator workers, gateways, and connections whose end the server has not noticed yet."""

EXAMPLE_MODEL = """\
# Your model: a scikit-learn model in a file written by skops. Other kinds:
#   kind = "folder"    path = "models"     (as `dppp train` makes it: one model for each vote)
#   kind = "onnx"      path = "model.onnx"
#   kind = "torch"     path = "state.pt"   class = "package.module:Class"   arguments = {}
#   kind = "callable"  import = "package.module:function"     (rows in, classes out)
#   kind = "http"      url = "https://model.intranet/predict" timeout_seconds = 30
#   kind = "chat"      a language model: docs/operations.md, step 7
[model]
kind = "skops"
path = "model.skops"
trusted_types = []
"""


_EPOCH_SECRETS = f"""\
# The secrets that others seal to. Each is deleted when its time is over, so that whoever steals
# this file later opens nothing of the past: keep it out of backups, and on an encrypted disk.
[masks]
secrets = "{EPOCH_SECRETS}"

"""


def default_servers(federation: FederationFile) -> tuple[str, ...]:
    """The broker at its hosts, on the usual port."""
    hosts = [f"[{host}]" if ":" in host else host for host in federation.broker.hosts]
    return tuple(f"tls://{host}:{DEFAULT_PORT}" for host in hosts)


def folder_model(folder: Path) -> str:
    """The model of a teacher with several votes: a folder."""
    return f"""\
# Your models, one for each of your votes, as `dppp train --config` with this file makes them.
[model]
kind = "folder"
path = {_text(str(folder))}
"""


def teacher_configuration(
    federation: FederationFile,
    servers: Sequence[str],
    ledger: LedgerFiles,
    model: str = EXAMPLE_MODEL,
) -> str:
    """teacher.toml; the cap in it is what this task costs, and no more."""
    task = federation.task
    secrets = _EPOCH_SECRETS if task.cryptosystem == "masks" else ""
    return f"""\
# A teacher's configuration. Paths are relative to this file.
{_party(federation, servers)}
# What was spent on your data, for good. Give all federations that use the same data the same
# ledger: two ledgers would be two caps. If another ledger counts this data, write that one here.
# Copy the ledger as often as you like, but never put an old copy back. The head file notices if
# somebody does: put it on another disk.
# In PostgreSQL, instead of path: url = "env:DPPP_LEDGER_URL" or "file:ledger.url"
[ledger]
path = {_text(str(ledger.path))}
head = {_text(str(ledger.head))}

# The most that may ever be spent on this data, over all tasks: fixed for good by
# `dppp teacher accept`. As it stands it pays for this task and for nothing after it.
[data]
id = {_text(task.data_id)}
epsilon = {task.epsilon!r}
delta = {task.delta!r}

{secrets}{model}
# Metrics and health, for your own monitoring.
[monitoring]
# listen = "127.0.0.1:9101"
# expose = true                # with an address that other machines can reach
"""


def aggregator_configuration(federation: FederationFile, servers: Sequence[str]) -> str:
    """aggregator.toml, with nobody who may ask yet."""
    return f"""\
# The aggregator's configuration. Paths are relative to this file.
{_party(federation, servers, more=_DEADLINE)}
# How many seconds to wait for teachers: for more ballots once there are enough; for those asked
# first, before all are asked; for endorsements and for answers, before the batch is given up.
# [patience]
# after_quorum = 2
# first_shares = 5
# opening = 60

# Batches, ballot lists and releases. For several aggregator workers on several machines:
# url = "env:DPPP_STORE_URL"   (PostgreSQL; the URL with its password is in the environment)
[store]
path = "batches.db"

# Where queriers ask. To be reached from other machines give it a TLS certificate.
[gateway]
listen = "127.0.0.1:8080"
# tls_certificate = "gateway.pem"
# tls_key = "gateway.key"
# behind_proxy = true          # a proxy on another machine speaks TLS to queriers

# Who may ask. A token is any long random text; only its SHA-256 is written here:
#   openssl rand -hex 32 | tee token | tr -d '\\n' | sha256sum
# [[queriers]]
# name = "clinic"
# token_sha256 = "…"
# queries = 500                # what this querier may spend in all; there is no unlimited
# transcripts = false          # true for an auditor: full transcripts of its batches, all ballots

[monitoring]
# listen = "127.0.0.1:9100"
# expose = true                # with an address that other machines can reach
"""


_DEADLINE = """\
# After how many seconds a batch is given up. What its bytes take at 1 Mbit/s comes on top.
# deadline_seconds = 600
"""


def _party(federation: FederationFile, servers: Sequence[str], *, more: str = "") -> str:
    return f"""\
home = "."
federation = "federation.json"
federation_hash = "{federation.hash.hex()}"
log_level = "info"
{more}
[broker]
servers = [{", ".join(_text(server) for server in servers)}]
"""


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


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
        max_pending=MAX_PENDING_BYTES,
        least_kbit=LEAST_BYTES_PER_SECOND // 125,
        write_deadline_seconds=slow_seconds(MAX_PENDING_BYTES),
        max_connections=2 * len(federation.teachers) + _SPARE_CONNECTIONS,
        tls_certificate=_quote(str(folder.absolute() / TLS_CERTIFICATE)),
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
# What waits for one that is slow to read: the longest message, and some more. It may take as long
# as that needs at {least_kbit:,} kbit/s. Whoever has gone without a word is found by pings.
max_pending: {max_pending}
ping_interval: "20s"
ping_max: 3
write_deadline: "{write_deadline_seconds}s"
logtime: true

# Only who has a TLS certificate of this federation's authority gets a connection. The suites are
# those of TLS 1.3: older versions find none in common.
tls {{
  cert_file: {tls_certificate}
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
