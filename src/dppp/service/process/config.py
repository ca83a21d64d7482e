"""The configuration of a teacher and of an aggregator: TOML that refuses what it does not know.

Paths are relative to the configuration file. Secrets are not in it: where a password is
needed, "env:NAME" or "file:PATH" says where it is. Used by `dppp teacher` and `dppp aggregator`,
and by whatever reads an address or a TOML file.
"""

import json
import tomllib
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from dppp.errors import InputError
from dppp.protocol.batch import Patience
from dppp.service.stores.locations import Location, read_secret
from dppp.service.stores.new_files import read_file


def _beside_config(path: Path, info: ValidationInfo) -> Path:
    return path if info.context is None else info.context["folder"] / path


def _secret(value: object, info: ValidationInfo) -> object:
    """The secret itself, where the configuration says in which place it is."""
    if not isinstance(value, str):
        return value
    try:
        secret = read_secret(value, Path() if info.context is None else info.context["folder"])
    except InputError as error:
        raise ValueError(error.one_line) from error
    return value if secret is None else secret


def _listen(value: str) -> str:
    try:
        split_address(value)
    except InputError as error:
        raise ValueError(error.one_line) from error
    return value


def is_this_machine(host: str) -> bool:
    """Whether this host can be nothing but the machine itself."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def split_address(text: str) -> tuple[str, int]:
    """Host and port of an address to listen on; an IPv6 host is in brackets."""
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not int(port) <= 65535:
        raise InputError(
            f"{text!r} is not an address to listen on", hint="write it as 127.0.0.1:9101"
        )
    return host.removeprefix("[").removesuffix("]"), int(port)


def _model_url(value: str) -> str:
    """The rows of all queriers go there."""
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"this is not the url of a model server: {error}") from error
    host = parts.hostname or ""
    if parts.scheme != "https" and not is_this_machine(host):
        raise ValueError(
            "rows would pass to another machine in the clear; write https://, or let the model "
            "server run on this machine, as http://127.0.0.1:8000/predict"
        )
    forms = (host, f"[{host}]", f"{host}:{port}", f"[{host}]:{port}")
    is_plain = value.isprintable() and " " not in value and parts.scheme in ("http", "https")
    if not is_plain or not host or parts.netloc.lower() not in forms:
        raise ValueError("write the url of a model server as http://127.0.0.1:8000/predict")
    return value


def _chat_url(value: str) -> str:
    """The same, without its last slash; what comes after the path would be lost."""
    if "?" in value or "#" in value:
        raise ValueError("write the url of a chat server as http://127.0.0.1:8000/v1")
    return _model_url(value).rstrip("/")


def _api_key(value: object, info: ValidationInfo) -> object:
    """A key is never in the configuration itself."""
    secret = _secret(value, info)
    if isinstance(value, str) and secret is value:
        raise ValueError('write where the key is: "env:NAME" or "file:PATH"')
    if isinstance(secret, str) and not (secret.isascii() and secret.isprintable() and secret):
        raise ValueError("what is there is not a key: it is empty, or more than printable ASCII")
    return secret


def _server(value: str) -> str:
    if not value.startswith(("tls://", "nats://")):
        raise ValueError("write a broker as tls://nats.example.org:4222")
    return value


ConfigPath = Annotated[Path, AfterValidator(_beside_config)]
Secret = Annotated[SecretStr, BeforeValidator(_secret)]
Listen = Annotated[str, AfterValidator(_listen)]
Server = Annotated[str, AfterValidator(_server)]
HexHash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
ModelUrl = Annotated[str, Field(pattern=r"^https?://"), AfterValidator(_model_url)]
ChatUrl = Annotated[str, Field(pattern=r"^https?://"), AfterValidator(_chat_url)]
ApiKey = Annotated[SecretStr, BeforeValidator(_api_key)]
ImportName = Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")]
EPOCH_SECRETS = "epoch-secrets.db"
LogLevel = Literal["debug", "info", "warning", "error"]


class Section(BaseModel):
    """A table of a configuration: frozen, of exact types, and without unknown keys."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, hide_input_in_errors=True
    )


class Broker(Section):
    """Where the NATS servers are."""

    servers: tuple[Server, ...] = Field(min_length=1)


class Place(Section):
    """A SQLite file or a database's URL, one of the two."""

    path: ConfigPath | None = None
    url: Secret | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> "Place":
        if (self.path is None) == (self.url is None):
            raise ValueError("give either path (a SQLite file) or url (a database)")
        return self

    @property
    def location(self) -> Location:
        """What opens the store; a url is a secret."""
        if self.path is not None:
            return self.path
        assert self.url is not None
        return self.url.get_secret_value()


class LedgerPlace(Place):
    """The teacher's ledger, and the file, on another disk, that remembers its head."""

    head: ConfigPath


class DataCap(Section):
    """The most that may ever be spent on this data."""

    id: str = Field(min_length=1, max_length=200)
    epsilon: float = Field(gt=0)
    delta: float = Field(gt=0, lt=1)


class SkopsModel(Section):
    """A scikit-learn model in a file of skops; types beyond its own list are named."""

    kind: Literal["skops"]
    path: ConfigPath
    trusted_types: tuple[str, ...] = ()


class OnnxModel(Section):
    """A model in ONNX."""

    kind: Literal["onnx"]
    path: ConfigPath


class TorchModel(Section):
    """A torch state, and the class (with arguments) that it is the state of."""

    kind: Literal["torch"]
    path: ConfigPath
    class_name: ImportName = Field(alias="class")
    arguments: dict[str, Any] = Field(default_factory=dict)


class CallableModel(Section):
    """A function of the teacher's own: rows in, classes out."""

    kind: Literal["callable"]
    import_name: ImportName = Field(alias="import")


class HttpModel(Section):
    """A model server: over HTTPS, or in the clear on this machine only."""

    kind: Literal["http"]
    url: ModelUrl
    timeout_seconds: float = Field(default=30, gt=0)


class ChatModel(Section):
    """A language model behind a server with the chat completions interface, and its records.

    The server is reached over HTTPS, or in the clear on this machine only. `url` ends before
    /chat/completions. Each vote has its own shard of the records; the `examples` of them that are
    nearest to a question are in that vote's prompt. `extra` is for fields of a request that this
    server needs, such as a seed.
    """

    kind: Literal["chat"]
    url: ChatUrl
    model: str = Field(min_length=1, max_length=500)
    api_key: ApiKey | None = None
    records: ConfigPath
    label: str = Field(min_length=1)
    person: str | None = None
    identifier: str | None = Field(default=None, alias="id")
    shard_key: ConfigPath | None = None
    template: ConfigPath | None = None
    examples: int = Field(default=8, ge=1, le=1_000)
    longest_record: int = Field(default=2_000, ge=20, le=1_000_000)
    timeout_seconds: float = Field(default=30, gt=0, le=3_600)
    vote_seconds: float = Field(default=60, gt=0, le=86_400)
    retries: int = Field(default=2, ge=0, le=10)
    backoff_seconds: float = Field(default=0.5, ge=0, le=60)
    calls_at_once: int = Field(default=4, ge=1, le=1_000)
    extra: dict[str, Any] = Field(default_factory=dict)
    log_prompts_and_answers: bool = False

    @model_validator(mode="after")
    def _only_what_is_free(self) -> "ChatModel":
        taken = sorted({"model", "messages", "stream", "n"} & set(self.extra))
        if taken:
            raise ValueError(f"extra must not set {taken[0]}, which every request has already")
        return self


class FolderModel(Section):
    """The models that `dppp train` made, one for each vote, beside their manifest."""

    kind: Literal["folder"]
    path: ConfigPath


class PickleModel(Section):
    """A pickle, which can run any code: only with the command's flag that says so."""

    kind: Literal["pickle"]
    path: ConfigPath


Model = Annotated[
    SkopsModel
    | OnnxModel
    | TorchModel
    | CallableModel
    | HttpModel
    | ChatModel
    | FolderModel
    | PickleModel,
    Field(discriminator="kind"),
]


class Monitoring(Section):
    """Where metrics and health are served; nowhere without an address.

    `expose` says that other machines may read them: there is no password.
    """

    listen: Listen | None = None
    expose: bool = False

    @model_validator(mode="after")
    def _exposed_by_name_only(self) -> "Monitoring":
        if self.listen is None or self.expose or is_this_machine(split_address(self.listen)[0]):
            return self
        raise ValueError(
            f"{self.listen} can be reached from elsewhere, and whoever reaches it reads when and "
            "how much is asked; listen on 127.0.0.1, or add expose = true"
        )


class Party(Section):
    """What every party's configuration has."""

    federation: ConfigPath
    federation_hash: HexHash
    home: ConfigPath
    broker: Broker
    monitoring: Monitoring = Monitoring()
    log_level: LogLevel = "info"


class Masks(Section):
    """Where a teacher under masks keeps the secrets of its epochs: a SQLite file, in its home."""

    secrets: ConfigPath | None = None


class TeacherConfig(Party):
    """The content of teacher.toml."""

    ledger: LedgerPlace
    data: DataCap
    masks: Masks = Masks()
    model: Model

    @property
    def epoch_secrets(self) -> Path:
        """The file with the secrets of this teacher's epochs."""
        return self.masks.secrets or self.home / EPOCH_SECRETS


class GatewaySection(Section):
    """Where queriers ask: over HTTPS, or in the clear on this machine only.

    `behind_proxy` says that a proxy on another machine speaks TLS to queriers. Single queries that
    come within `gather_milliseconds` share a batch; 0 gives each a batch of its own.
    """

    listen: Listen = "127.0.0.1:8080"
    tls_certificate: ConfigPath | None = None
    tls_key: ConfigPath | None = None
    behind_proxy: bool = False
    most_rows: int = Field(default=20_000, ge=1)
    page: bool = True
    gather_milliseconds: int = Field(default=0, ge=0, le=1_000)

    @model_validator(mode="after")
    def _both_or_none(self) -> "GatewaySection":
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("give tls_certificate and tls_key, or neither")
        is_clear = self.tls_certificate is None and not self.behind_proxy
        if is_clear and not is_this_machine(split_address(self.listen)[0]):
            raise ValueError(
                f"{self.listen} can be reached from elsewhere, where tokens and rows would pass in "
                "the clear; give tls_certificate and tls_key, or behind_proxy = true"
            )
        return self


class Querier(Section):
    """Who may ask, known by the SHA-256 of its token, and how many queries it may spend in all.

    `transcripts` is an auditor's right: to fetch the full transcripts of its own batches, with all
    ballots. `share = false` keeps its queries out of batches with those of others.
    """

    name: str = Field(min_length=1, max_length=200)
    token_sha256: HexHash
    queries: int = Field(ge=1)
    transcripts: bool = False
    share: bool = True

    @model_validator(mode="before")
    @classmethod
    def _require_allowance(cls, given: Any) -> Any:
        """Pydantic's own words would not say what to write."""
        queries = given.get("queries") if isinstance(given, dict) else None
        if type(queries) is not int or queries < 1:
            raise ValueError(
                "queries is missing or not a positive number; write how many this querier may "
                "spend in all, as queries = 500 (there is no unlimited)"
            )
        return given


class PatienceSeconds(Section):
    """How long an aggregator waits for teachers; protocol/batch.py says for what."""

    after_quorum: int = Field(default=2, ge=0)
    first_shares: int = Field(default=5, ge=0)
    opening: int = Field(default=60, ge=1)

    def to_patience(self) -> Patience:
        """As the protocol takes it."""
        return Patience(**self.model_dump())


class AggregatorConfig(Party):
    """The content of aggregator.toml."""

    store: Place
    gateway: GatewaySection = GatewaySection()
    queriers: tuple[Querier, ...] = ()
    patience: PatienceSeconds = PatienceSeconds()
    deadline_seconds: int = Field(default=600, ge=1)

    @model_validator(mode="after")
    def _distinct_queriers(self) -> "AggregatorConfig":
        for what in ("name", "token_sha256"):
            values = [getattr(querier, what) for querier in self.queriers]
            if len(set(values)) != len(values):
                raise ValueError(f"two queriers have the same {what}")
        return self


AnySection = TypeVar("AnySection", bound=Section)


def read_config(path: Path, model: type[AnySection]) -> AnySection:
    """The configuration in a file; what is wrong with it names file, key and what is expected."""
    try:
        tables = tomllib.loads(read_file(path).decode("utf-8"))
        text = json.dumps(tables)
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(
            f"{path} is not TOML that can be used here: {error}", hint="correct it"
        ) from error
    try:
        return model.model_validate_json(text, context={"folder": path.absolute().parent})
    except ValidationError as error:
        raise first_problem(str(path), error) from None
    except OSError as error:
        raise InputError(
            f"{path}: cannot read {error.filename}: {error.strerror}", hint="correct the path"
        ) from error


def first_problem(what: str, error: ValidationError) -> InputError:
    """The first thing wrong in `what`; never the value, which may be a secret."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the file"
    if first["type"] == "extra_forbidden":
        return InputError(f"{what}: {where} is not known here", hint="correct or remove it")
    if first["type"] == "missing":
        return InputError(f"{what}: {where} is missing", hint="add it")
    said = first["msg"].removeprefix("Value error, ")
    return InputError(f"{what}: {where}: {said}", hint="correct it, and try again")
