"""A whole federation in one folder, by the same steps as between organisations.

For trying and for tests: here one person sees everything, so it protects nobody. Used by
`dppp local up` and `dppp bench --deployment`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dppp.errors import InputError
from dppp.paillier.dealer import DealtKey
from dppp.service.ceremony.acceptance import accept_task
from dppp.service.ceremony.assembling import make_federation_file
from dppp.service.ceremony.configurations import folder_model
from dppp.service.ceremony.coordinator import collect, init_federation
from dppp.service.ceremony.dealing import deal_federation
from dppp.service.ceremony.federation_file import FederationFile
from dppp.service.ceremony.home import Home, make_home
from dppp.service.ceremony.identity import Role
from dppp.service.ceremony.join_request import JoinRequest
from dppp.service.ceremony.setup import set_up
from dppp.service.ceremony.terms import Terms, read_terms
from dppp.service.gateway.queriers import make_token
from dppp.service.process.config import TeacherConfig, read_config
from dppp.service.stores.locations import LedgerFiles
from dppp.service.stores.new_files import NewFile, write_new_files
from dppp.service.teacher.models.skops_files import import_skops

LOCALHOST = "127.0.0.1"
PLACES = "local.json"
TOKEN = "token"  # noqa: S105 - the name of the file
QUERIER = "local"
LEDGER = LedgerFiles(path=Path("ledger.db"), head=Path("head.json"))
"""In each teacher's own folder: many teachers are here, and none of them is the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFederation:
    """Where everything of a local federation is."""

    folder: Path
    teachers: int
    broker_port: int
    gateway_port: int

    @property
    def teacher_configs(self) -> tuple[Path, ...]:
        """The teachers' configurations, in the order of their indexes."""
        return tuple(
            self.folder / teacher_name(index, self.teachers) / "teacher.toml"
            for index in range(1, self.teachers + 1)
        )

    @property
    def aggregator_config(self) -> Path:
        """The aggregator's configuration."""
        return self.folder / "aggregator" / "aggregator.toml"

    @property
    def broker_config(self) -> Path:
        """The NATS server's configuration."""
        return self.folder / "broker" / "nats.conf"

    @property
    def gateway(self) -> str:
        """Where queriers ask."""
        return f"http://{LOCALHOST}:{self.gateway_port}"

    @property
    def token_file(self) -> Path:
        """The token of the only querier."""
        return self.folder / TOKEN


def read_local(folder: Path) -> LocalFederation:
    """A local federation that was made before."""
    try:
        plain = json.loads((folder / PLACES).read_text(encoding="utf-8"))
        return LocalFederation(folder=folder, **plain)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"there is no local federation in {folder}", hint="make one with `dppp local up`"
        ) from error


def cryptosystem_of(local: LocalFederation) -> str:
    """How ballots are sealed there: masks or paillier."""
    return read_terms(local.folder / "coordinator").cryptosystem


def make_local(
    folder: Path,
    *,
    terms: Terms,
    models: Sequence[Any],
    broker_port: int,
    gateway_port: int,
    key: DealtKey | None = None,
) -> LocalFederation:
    """Ceremony and configuration for one teacher per model; all of them accept the task.

    A model is a fitted one, the path of a folder that `dppp train` made for several votes, or the
    text of [model] for the teacher's configuration.
    """
    skops = import_skops()
    local = LocalFederation(
        folder=folder, teachers=len(models), broker_port=broker_port, gateway_port=gateway_port
    )
    init_federation(folder / "coordinator", terms)
    collect(folder / "coordinator", _join_all(local))
    federation, shares = _make_federation(folder, terms, key)
    for model, config, share in zip(models, local.teacher_configs, shares, strict=True):
        table = folder_model(model) if isinstance(model, Path) else model
        is_table = isinstance(table, str)
        _set_up(local, federation, config.parent, share, model=table if is_table else None)
        if not is_table:
            skops.dump(model, config.parent / "model.skops")
        accept_task(read_config(config, TeacherConfig), accept_no_colluders=True, is_first_use=True)
    _set_up(local, federation, local.broker_config.parent)
    _set_up(local, federation, local.aggregator_config.parent)
    _open_gateway(local, terms.queries)
    plain = {"teachers": len(models), "broker_port": broker_port, "gateway_port": gateway_port}
    write_new_files(folder, [NewFile(name=PLACES, data=json.dumps(plain).encode())])
    return local


def _make_federation(
    folder: Path, terms: Terms, key: DealtKey | None
) -> tuple[FederationFile, Sequence[bytes | None]]:
    """The federation file, and the share of each teacher where a dealer made one."""
    coordinator, out = folder / "coordinator", folder / "dealt"
    if terms.cryptosystem == "masks":
        federation = make_federation_file(coordinator, out)
        return federation, [None] * len(federation.teachers)
    dealt = deal_federation(coordinator, out, key=key)
    return dealt.federation, [(out / name).read_bytes() for name in dealt.share_files]


def teacher_name(index: int, teachers: int) -> str:
    """The name of a local teacher, and of its folder; sorts by index."""
    return f"teacher-{index:0{len(str(teachers))}d}"


def _join_all(local: LocalFederation) -> list[JoinRequest]:
    names = [teacher_name(index, local.teachers) for index in range(1, local.teachers + 1)]
    requests = [make_home(local.folder / name, name=name) for name in names]
    requests.append(make_home(local.folder / "aggregator", name="aggregator", role=Role.AGGREGATOR))
    requests.append(
        make_home(local.folder / "broker", name="broker", role=Role.BROKER, hosts=[LOCALHOST])
    )
    return requests


def _set_up(
    local: LocalFederation,
    federation: FederationFile,
    home: Path,
    share: bytes | None = None,
    model: str | None = None,
) -> None:
    address = f"{LOCALHOST}:{local.broker_port}"
    set_up(
        Home(folder=home),
        federation,
        federation.hash,
        share=share,
        servers=[f"tls://{address}"],
        listen=address,
        ledger=LEDGER,
        model=model,
    )


def _open_gateway(local: LocalFederation, queries: int) -> None:
    """The gateway on its port, and one querier who may spend all queries and see transcripts."""
    token, digest = make_token()
    write_new_files(local.folder, [NewFile(name=TOKEN, data=f"{token}\n".encode())])
    text = local.aggregator_config.read_text(encoding="utf-8")
    text = text.replace('"127.0.0.1:8080"', f'"{LOCALHOST}:{local.gateway_port}"')
    text += f'\n[[queriers]]\nname = "{QUERIER}"\ntoken_sha256 = "{digest}"\n'
    text += f"queries = {queries}\ntranscripts = true\n"
    local.aggregator_config.write_text(text, encoding="utf-8")
