"""The configurations that `dppp setup` writes, with a word on each line that wants a decision."""

import json
from collections.abc import Sequence

from dppp.service.ceremony.broker_config import DEFAULT_PORT
from dppp.service.ceremony.federation_file import FederationFile
from dppp.service.stores.locations import LedgerFiles

EXAMPLE_MODEL = """\
# Your model: a scikit-learn model in a file written by skops. Other kinds:
#   kind = "onnx"      path = "model.onnx"
#   kind = "torch"     path = "state.pt"   class = "package.module:Class"   arguments = {}
#   kind = "callable"  import = "package.module:function"     (rows in, classes out)
#   kind = "http"      url = "https://model.intranet/predict" timeout_seconds = 30
[model]
kind = "skops"
path = "model.skops"
trusted_types = []
"""


def default_servers(federation: FederationFile) -> tuple[str, ...]:
    """The broker at its hosts, on the usual port."""
    hosts = [f"[{host}]" if ":" in host else host for host in federation.broker.hosts]
    return tuple(f"tls://{host}:{DEFAULT_PORT}" for host in hosts)


def teacher_configuration(
    federation: FederationFile,
    servers: Sequence[str],
    ledger: LedgerFiles,
    model: str = EXAMPLE_MODEL,
) -> str:
    """teacher.toml; the cap that stands in it is what this task costs, and no more."""
    task = federation.task
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

{model}
# Metrics and health, for your own monitoring.
[monitoring]
# listen = "127.0.0.1:9101"
# expose = true                # with an address that other machines can reach
"""


def aggregator_configuration(federation: FederationFile, servers: Sequence[str]) -> str:
    """aggregator.toml, with nobody who may ask yet."""
    return f"""\
# The aggregator's configuration. Paths are relative to this file.
{_party(federation, servers)}
# Batches, ballot lists and releases. For several aggregator workers on several machines:
# url = "env:DPPP_STORE_URL"   (PostgreSQL; the URL with its password is in the environment)
[store]
path = "batches.db"

# Where queriers ask. To be reached from other machines give it a certificate.
[gateway]
listen = "127.0.0.1:8080"
# tls_certificate = "gateway.pem"
# tls_key = "gateway.key"
# behind_proxy = true          # a proxy on another machine speaks TLS to queriers

# Who may ask. A token is any long random text; only its SHA-256 stands here:
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


def _party(federation: FederationFile, servers: Sequence[str]) -> str:
    return f"""\
home = "."
federation = "federation.json"
federation_hash = "{federation.hash.hex()}"
log_level = "info"

[broker]
servers = [{", ".join(_text(server) for server in servers)}]
"""


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
